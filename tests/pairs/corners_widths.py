"""Kinds of corners.py: integers of every width, which wrap where theirs ends, and casts between
them. Their truth is that of Python's integers, wrapped."""

from branch_terms import compare, el, shaped, total, var
from corners_integers import quotient, step
from dsl import Dtype

# The narrower ones first: bits, and whether they have a sign.
WIDTHS = {"uint8": (8, 0), "int8": (8, 1), "int16": (16, 1), "int32": (32, 1), "int64": (64, 1)}


def least(dtype):
    bits, sign = WIDTHS[dtype]
    return -(2 ** (bits - 1)) if sign else 0


def most(dtype):
    bits, sign = WIDTHS[dtype]
    return 2 ** (bits - sign) - 1


def wrap(x, dtype):
    """As so many bits hold it."""
    return (x - least(dtype)) % 2 ** WIDTHS[dtype][0] + least(dtype)


def cast(t, dtype):
    return el("to.dtype", t, Dtype(dtype), kind="i")


def typed(t):
    """Says of each part of t what PyTorch makes it: operands here are of one dtype."""
    for a in t.args or ():
        if hasattr(a, "op"):
            typed(a)
    if t.kind == "i" and t.args is not None:
        name = t.op.split(".")[0]
        wide = name in ("sum", "cumsum") and "dtype" not in t.kw
        given = [a.name for a in t.args + list(t.kw.values()) if isinstance(a, Dtype)]
        first = [a.dtype for a in t.args if hasattr(a, "op")][0]
        t.dtype = given[0] if given else "int64" if wide else first
    return t


def machine(t, n):
    """The value of t where each element of its one variable is n; a row has three."""
    if not hasattr(t, "op"):
        return t
    if t.args is None:
        return n
    a = [machine(x, n) for x in t.args if not isinstance(x, (Dtype, list))]
    name = t.op.split(".")[0]
    if name == "to":
        v = a[0]
    elif name == "sum":
        v = 3 * a[0]
    else:
        v = step(t, a)
    return wrap(v, t.dtype) if t.kind == "i" else v


def agree_everywhere(left, right, n, numbers):
    """On all of few bits; else both are linear on few pieces, which end at or beside these."""
    low, high = (0, n.limit) if n.limit else (least(n.dtype), most(n.dtype) + 1)
    if high - low <= 256:
        return all(machine(left, v) == machine(right, v) for v in range(low, high))
    ends = {0, high}
    for bits, sign in WIDTHS.values():
        ends |= {s * 2 ** (bits - b) for b in (0, 1, 2) for s in (-1, 1)}
    ends |= {e // c for e in ends for c in numbers if abs(c) > 1}
    ends |= {e + s * c for e in ends for c in numbers for s in (-1, 1)}
    places = {e + j for e in ends for j in range(-3, 4)} | set(range(-40, 40))
    return all(machine(left, v) == machine(right, v) for v in places if low <= v < high)


def widths(d):
    """Identities of whole numbers, and of which of them the width leaves true."""
    dtype = d.pick(*WIDTHS)
    wider = d.pick(*[w for w in WIDTHS if w == "int64" or WIDTHS[w][0] > WIDTHS[dtype][0]])
    other = d.pick(*WIDTHS)
    c, k, b = d.pick(2, 3, 5, 7), d.pick(1, 4, 15), d.pick(0, 5, 64)
    n = var("n", "i", *d.pick((6, 3), (2, 3)), limit=d.pick(None, None, None, 5, 40, 100))
    n.dtype, n.said = dtype, n.limit is not None
    wide, back = lambda t: cast(t, wider), lambda t: cast(t, dtype)
    rem = lambda x, y: el("remainder.Scalar", x, y)
    sum_in = lambda x, name: shaped(
        "sum.dim_IntList", [x, [-1], False], x.shape[:-1], "i", dtype=Dtype(name)
    )
    always = compare("eq", n, n)
    left, right = d.pick(
        (compare("gt", n + k, n), always),
        (compare("gt", wide(n) + k, wide(n)), always),
        (n + k - k, n * 1),
        (quotient(n * c, c), n * 1),
        (back(quotient(wide(n) * c, c)), n * 1),
        (wide(n + k), wide(n) + k),
        (wide(n * c), wide(n) * c),
        (wide(-n), -wide(n)),
        (wide(el("abs", n)), el("abs", wide(n))),
        (wide(quotient(n, c)), quotient(wide(n), c)),
        (wide(rem(n, c)), rem(wide(n), c)),
        (back(wide(n) + k), n + k),
        (back(wide(n) * c + k), n * c + k),
        (back(wide(n) * wide(n)), n * n),
        (back(wide(n)), n * 1),
        (back(cast(n, other)), n * 1),
        (cast(wide(n), other), cast(n, other)),
        (cast(n + k, other), cast(n, other) + k),
        (cast(n * c, other), cast(n, other) * c),
        ((n + k) * c, n * c + k * c),
        ((n + 1) * (n - 1), n * n - 1),
        (el("bitwise_and.Scalar", n + 16, 15), el("bitwise_and.Scalar", n, 15)),
        (el("bitwise_and.Scalar", n, 15), rem(n, 16)),
        (rem(n + c, c), rem(n, c)),
        (el("__lshift__.Scalar", n, 2), n * 4),
        (el("__rshift__.Scalar", n, 2), quotient(n, 4)),
        (wide(el("__lshift__.Scalar", n, 2)), wide(n) * 4),
        (quotient(n + (c - 1), c), -quotient(-n, c)),
        (quotient(wide(n) + (c - 1), c), -quotient(-wide(n), c)),
        (compare("lt", n + k, b + k), compare("lt", n, b)),
        (compare("eq", n + k, b + k), compare("eq", n, b)),
        (compare("ge", el("abs", n), 0), always),
        (el("bitwise_not", n), el("rsub.Scalar", n, -1)) if dtype != "uint8" else (-(-n), n * 1),
        (total(n), total(wide(n))),
        (sum_in(n, dtype), back(total(n))),
        (wide(sum_in(n, dtype)), sum_in(n, wider)),
        (total(n * c), total(n) * c),
        (total(n + k), total(n) + 3 * k),
        (wide(el("clamp", n, 1, b + 2, kind="i")), el("clamp", wide(n), 1, b + 2, kind="i")),
    )
    same = agree_everywhere(typed(left), typed(right), n, (c, k, b, k * c, b + k, 3 * k, 3, 16, 4))
    return same, left, right


KINDS = (widths,)
