"""Kinds of corners.py: integers, their quotients, their places in tables and counts."""

from branch_terms import (
    compare,
    el,
    embedding,
    masked,
    shaped,
    to_float,
    to_int,
    total,
    unsqueeze,
    var,
)
from dsl import Dtype

I64 = Dtype("int64")


def ints(name, top, *shape):
    """They have that range in the captures as well."""
    v = var(name, "i", *shape, limit=top)
    v.said = True
    return v


def quotient(i, c, mode="floor"):
    return el("div.Tensor_mode", i, c, kind="i", rounding_mode=mode)


def thin(i, name):
    t = el("to.dtype", i, Dtype(name), kind="i")
    t.dtype = name
    return t


def narrow(i, name):
    return el("to.dtype", thin(i, name), I64, kind="i")


def multiplied(d):
    """Division by multiplying and shifting: right as far as the factor has digits."""
    c, bits = d.pick(3, 5, 6, 7, 9, 10, 12, 100), d.pick(8, 9, 10, 11, 12, 13, 16)
    top, m = d.pick(300, 700, 2100, 5000, 20000), -(-(1 << bits) // c)
    same = all((n * m) >> bits == n // c for n in range(top))
    i = ints("i", top, d.pick(4, 6, 16))
    right = el("__rshift__.Scalar", el("mul.Tensor", i, m), bits)
    read = d.rng.random() < 0.5
    w = var("w", "f", top, 2)
    use = (lambda t: embedding(w, t)) if read else to_float
    if d.rng.random() < 0.4:
        return True, use(quotient(i, c)), use(quotient(i - el("remainder.Scalar", i, c), c))
    return same, use(quotient(i, c)), use(right)


def modes(d):
    """Quotients and remainders of both signs."""
    i, c = ints("i", d.pick(50, 1000), *d.shape), d.pick(2, 3, 5, 16)
    k = d.pick(0, 7, 25)
    j = i - k
    neg = k > 0
    fmod = el("fmod.Scalar", j, c)
    rem = el("remainder.Scalar", j, c)
    return d.pick(
        (not neg, quotient(j, c), quotient(j, c, "trunc")),
        (not neg, fmod, rem),
        (True, rem, j - quotient(j, c) * c),
        (True, fmod, j - quotient(j, c, "trunc") * c),
        (True, el("remainder.Scalar", rem + c, c), rem),
        (True, quotient(j + (c - 1), c), -quotient(-j, c)),
        (False, quotient(j + (c - 1), c), quotient(j, c) + 1),
        (False, quotient(j + c // 2, c), quotient(j, c)),
        (True, quotient(j + c, c), quotient(j, c) + 1),
        (True, el("remainder.Scalar", j, 2), el("bitwise_and.Scalar", j, 1)),
        (c in (2, 16), el("bitwise_and.Scalar", j, c - 1), rem),
        (True, to_float(compare("eq", rem, 0)), to_float(compare("eq", fmod, 0))),
        (True, quotient(j, 16), el("__rshift__.Scalar", j, 4)),
        (not neg, quotient(j, 16, "trunc"), el("__rshift__.Scalar", j, 4)),
    )


def narrowed(d):
    """Integers in few bits."""
    name, high = d.pick(("uint8", 256), ("int8", 128), ("int16", 32768))
    top = d.pick(high - 1, high, high + 1, high + 5)
    i = ints("i", top, *d.shape)
    row = i.shape[-1] if i.shape else 1
    sums = shaped("sum.dim_IntList", [thin(i, name), [-1]], i.shape[:-1], "i")
    wide = shaped("sum.dim_IntList", [i, [-1]], i.shape[:-1], "i")
    few = shaped("sum.dim_IntList", [thin(i, name), [-1]], i.shape[:-1], "i", dtype=Dtype(name))
    doubled = el("mul.Tensor", thin(i, name), 2)
    few.dtype = doubled.dtype = name
    few = el("to.dtype", few, I64, kind="i")
    twice = el("to.dtype", doubled, I64, kind="i")
    return d.pick(
        (top <= high, i, narrow(i, name)),
        (top <= high, wide, sums),
        (row * (top - 1) < high, wide, few),
        (2 * (top - 1) < high, i * 2, twice),
        (
            top <= high,
            to_float(compare("gt", i, 100)),
            to_float(compare("gt", narrow(i, name), 100)),
        ),
        (True, narrow(i, "int32"), i),
    )


def wrapped(d):
    """Ring buffers and places counted from the end."""
    n = d.pick(4, 5, 8)
    i = ints("i", d.pick(n, n + 1, 3 * n), d.pick(3, 5))
    top = i.limit
    w = var("w", "f", n, 2)
    r = el("remainder.Scalar", i, n)
    back = el("rsub.Scalar", r, n - 1)
    return d.pick(
        (
            True,
            embedding(w, r),
            embedding(w, el("where.ScalarOther", compare("lt", i, n), i, 0) if top <= n else r),
        ),
        (top <= 2 * n, embedding(w, r), embedding(w, i - to_int(compare("ge", i, n)) * n))
        if top <= 2 * n
        else (True, embedding(w, r), embedding(w, i - quotient(i, n) * n)),
        (top <= n, embedding(w, r), embedding(w, el("clamp", i, 0, n - 1, kind="i"))),
        (True, embedding(shaped("flip", [w, [0]], w.shape), r), embedding(w, back)),
        (False, embedding(w, r), embedding(w, back)),
        (
            False,
            embedding(w, el("clamp", i, 0, n - 1, kind="i")),
            embedding(w, el("clamp", i, 0, n - 2, kind="i")),
        ),
        (
            True,
            embedding(shaped("roll", [w, [1], [0]], w.shape), r),
            embedding(w, el("remainder.Scalar", r + (n - 1), n)),
        ),
        (
            False,
            embedding(shaped("roll", [w, [1], [0]], w.shape), r),
            embedding(w, el("remainder.Scalar", r + 1, n)),
        ),
    )


def counted(d):
    """How often numbers stand in a row."""
    n, k = d.pick(4, 6, 40), d.pick(3, 5)
    i = ints("i", n, k)
    hot = shaped("one_hot", [i, n], (k, n), "i")
    count = shaped("sum.dim_IntList", [hot, [0]], (n,), "i")
    same = el("eq.Tensor", unsqueeze(i, 0), unsqueeze(i, 1), kind="b")
    pairs = shaped("sum.dim_IntList", [to_int(same), [0, 1]], (), "i")
    ones = shaped("ones", [[k]], (k,), "f")
    added = shaped("scatter_add", [shaped("zeros", [[n]], (n,), "f"), 0, i, ones], (n,))
    put = shaped("scatter.value", [shaped("zeros", [[n]], (n,), "f"), 0, i, 1.0], (n,))
    return d.pick(
        (True, to_float(count), added),
        (False, to_float(count), put),
        (True, to_float(compare("gt", count, 0)), put),
        (True, shaped("sum.dim_IntList", [count * count, [0]], (), "i"), pairs),
        (False, pairs, shaped("sum.dim_IntList", [count, [0]], (), "i")),
        (
            True,
            shaped("sum.dim_IntList", [count, [0]], (), "i"),
            shaped("sum.dim_IntList", [hot, [0, 1]], (), "i"),
        ),
        (False, to_float(compare("le", count, k - 1)), shaped("ones", [[n]], (n,), "f")),
        (True, to_float(compare("le", count, k)), shaped("ones", [[n]], (n,), "f")),
    )


def collided(d):
    """The same place written more than once."""
    n, k = d.pick(3, 8, 500), d.pick(2, 4)
    i, y, w = ints("i", n, k), var("y", "f", k), var("w", "f", n)
    red = lambda how, own: shaped("scatter_reduce.two", [w, 0, i, y, how], (n,), include_self=own)
    read = lambda t: shaped("index_select", [t, 0, i], (k,))
    added = shaped("index_add", [w, 0, i, y], (n,))
    twice = shaped("index_add", [added, 0, i, y], (n,))
    ip = lambda acc: shaped("index_put", [w, [i], y, acc], (n,))
    return d.pick(
        (True, red("sum", True), added),
        (False, red("sum", False), added),
        (True, ip(True), added),
        (False, ip(False), added),
        (False, red("amax", True), red("amax", False)),
        (True, twice, shaped("index_add", [w, 0, i, y * 2.0], (n,))),
        (False, read(added), read(w) + y),
        (False, red("mean", True), added),
        (True, read(w) * 2.0, read(w * 2.0)),
        (
            True,
            shaped("sum.dim_IntList", [added, [0]], ()),
            shaped("sum.dim_IntList", [w, [0]], ()) + shaped("sum.dim_IntList", [y, [0]], ()),
        ),
        (
            False,
            shaped("sum.dim_IntList", [ip(False), [0]], ()),
            shaped("sum.dim_IntList", [w, [0]], ()) + shaped("sum.dim_IntList", [y, [0]], ()),
        ),
    )


def lengths(d):
    """Masks from lengths."""
    t, b = d.pick(5, 8), d.pick(2, 3)
    n = ints("n", d.pick(t, t + 1, t + 3), b)
    top = n.limit
    x = var("x", "f", b, t)
    pos = shaped("arange", [t], (t,), "i")
    inside = compare("lt", unsqueeze(pos, 0), unsqueeze(n, 1))
    count = total(to_float(inside))
    s = total(x * to_float(inside))
    tail = shaped("flip", [inside, [1]], (b, t))
    return d.pick(
        (top <= t + 1, count, to_float(n)),
        (True, count, to_float(el("clamp", n, 0, t, kind="i"))),
        (True, s, total(masked(x, ~inside, 0.0))),
        (False, s, total(masked(x, ~compare("le", unsqueeze(pos, 0), unsqueeze(n, 1)), 0.0))),
        (True, tail, compare("ge", unsqueeze(pos, 0), unsqueeze(el("rsub.Scalar", n, t), 1))),
        (False, tail, compare("gt", unsqueeze(pos, 0), unsqueeze(el("rsub.Scalar", n, t), 1))),
        (
            False,
            el("div.Tensor", s, count + 1e-6),
            el("div.Tensor", s, el("clamp_min", count, 1.0)),
        ),
        (
            True,
            el("div.Tensor", s, el("maximum", count, shaped("ones", [[]], (), "f"))),
            el("div.Tensor", s, el("clamp_min", count, 1.0)),
        ),
    )


def bits(d):
    """Packing and unpacking."""
    top = d.pick(15, 16, 17, 20)
    i, j = ints("i", top, 4), ints("j", top, 4)
    packed = el("mul.Tensor", i, 16) + j
    ored = el("bitwise_or.Tensor", el("__lshift__.Scalar", i, 4), j)
    fits = top <= 16
    return d.pick(
        (fits, packed, ored),
        (fits, el("bitwise_and.Scalar", packed, 15), j),
        (fits, el("__rshift__.Scalar", packed, 4), i),
        (fits, el("bitwise_xor.Tensor", el("__lshift__.Scalar", i, 4), j), packed),
        (True, el("bitwise_and.Scalar", packed, 15), el("remainder.Scalar", j, 16)),
        (True, i + j, el("bitwise_or.Tensor", i, j) + el("bitwise_and.Tensor", i, j)),
        (False, i + j, el("bitwise_or.Tensor", i, j)),
        (
            True,
            el("bitwise_xor.Tensor", i, j),
            el("bitwise_or.Tensor", i, j) - el("bitwise_and.Tensor", i, j),
        ),
        (True, -i, el("bitwise_not", i) + 1),
    )


def wrap(x):
    """As 64 bits hold it."""
    return (x + 2**63) % 2**64 - 2**63


STEPS = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "rsub": lambda x, y: y - x,
    "mul": lambda x, y: x * y,
    "neg": lambda x: -x,
    "abs": abs,
    "remainder": lambda x, y: x % y,
    "bitwise_and": lambda x, y: x & y,
    "bitwise_not": lambda x: ~x,
    "__lshift__": lambda x, y: x << y,
    "__rshift__": lambda x, y: x >> y,
    "lt": lambda x, y: x < y,
    "gt": lambda x, y: x > y,
    "ge": lambda x, y: x >= y,
    "eq": lambda x, y: x == y,
    "clamp": lambda x, lo, hi: min(max(x, lo), hi),
}


def step(t, a):
    """The whole number that call t gives for a, of as many bits as it takes."""
    name = t.op.split(".")[0]
    if name != "div":
        return STEPS[name](*a)
    q = a[0] // a[1]
    return q + (q < 0 and q * a[1] != a[0] and t.kw["rounding_mode"] == "trunc")


def machine(t, n):
    """The value of t where its one variable is n: two's complement, as PyTorch computes it."""
    if not hasattr(t, "op"):
        return t
    if t.args is None:
        return n
    return wrap(step(t, [machine(x, n) for x in t.args]))


def agree_everywhere(left, right, top, numbers):
    """Both are linear on few pieces, which end at or beside these numbers."""
    ends = [0, 2**62, 2**63 - 1, -(2**63), -(2**62), top or 0]
    ends += [wrap(e + c) for e in (2**61, 2**62, 2**63) for c in numbers]
    ends += [e // c for e in (2**63, -(2**63)) for c in numbers if abs(c) > 1]
    ends += [e + s * c for e in ends for c in numbers for s in (-1, 1)]
    low, high = (0, top) if top else (-(2**63), 2**63)
    places = {e + j for e in ends for j in range(-3, 4)} | set(range(-40, 40))
    return all(machine(left, n) == machine(right, n) for n in places if low <= n < high)


def ends(d):
    """Where 64 bits end: identities of whole numbers, and of which of them wrapping leaves true."""
    c, k, b = d.pick(2, 3, 5, 16, 1000), d.pick(1, 4, 15, 1000), d.pick(-7, 0, 5, 64)
    tops = (None, None, 100, 2**40) + ((2**62, 2**63 - 1200) if d.of_rule else ())  # captures: 2^53
    top = d.pick(*tops)
    shape = d.pick((6,), (2, 4), (3, 3))
    n = ints("n", top, *shape) if top else var("n", "i", *shape)
    rem, both = (
        lambda x, y: el("remainder.Scalar", x, y),
        lambda x, y: el("bitwise_and.Scalar", x, y),
    )
    size, back = lambda x: el("abs", x), lambda x, y: el("rsub.Scalar", x, y)
    bound = lambda x, lo, hi: el("clamp", x, lo, hi, kind="i")
    always = compare("eq", n, n)
    left, right = d.pick(
        (quotient(n + (c - 1), c), -quotient(-n, c)),
        (rem(n + c, c), rem(n, c)),
        (quotient(n * c, c), n * 1),
        (quotient(n * c, c), n * 1),
        (compare("lt", n + k, b), compare("lt", n, b - k)),
        (compare("gt", n + k, n), always),
        (compare("eq", n + k, b), compare("eq", n, b - k)),
        (n + k - k, n * 1),
        (n * c + n * k, n * (c + k)),
        ((n + k) * c, n * c + k * c),
        (size(-n), size(n)),
        (compare("ge", size(n), 0), always),
        (quotient(n + k * c, c), quotient(n, c) + k),
        (quotient(n, c, "trunc"), -quotient(-n, c, "trunc")),
        (rem(n, 2), both(n, 1)),
        (both(n + 16, 15), both(n, 15)),
        (back(back(n, k), k), n * 1),
        (bound(n + k, b, b + 9), bound(n, b - k, b + 9 - k) + k),
        (compare("gt", n * c, b * c), compare("gt", n, b)),
        (rem(n * c, c), n * 0),
        (n - quotient(n, c) * c, rem(n, c)),
        (quotient(n * c + n, c + 1), n * 1),
        (compare("gt", n * n, -1), always),
    )
    numbers = (c, k, b, c - 1, c + 1, k * c, b - k)
    same = agree_everywhere(left, right, top, numbers)
    if left.op.startswith("gt") and left.args[0].op == "mul.Tensor":
        same = bool(top) and top <= 3037000500
    return same, left, right


def few(d):
    """Equalities that fail of few integers among all: rows of a table by a remainder, a product
    that is equal to a number."""
    c, b, k = d.pick(2, 3, 6, 10, 12, 16, 64), d.pick(-3, 0, 2, 9), d.pick(1, 2, 5)
    top, shape = d.pick(None, None, 1000), d.pick((6,), (2, 4))
    n = ints("n", top, *shape) if top else var("n", "i", *shape)
    rem = lambda x: el("remainder.Scalar", x, c)
    low = lambda x: el("bitwise_and.Scalar", x, c - 1)
    left, right = d.pick(
        (rem(n + k * c), rem(n)),
        (rem(n - k * c), rem(n)),
        (rem(n * (c + 1)), rem(n)),
        (low(n + k * c), low(n)) if c & (c - 1) == 0 else (rem(rem(n) + c), rem(n)),
        (compare("eq", n * c, b * c), compare("eq", n, b)),
    )
    same = agree_everywhere(left, right, top, (c, b, k * c, b * c, c + 1))
    if left.op.startswith("eq"):
        return same, left, right
    w = var("w", "f", c, 2)
    return same, embedding(w, left), embedding(w, right)


KINDS = (multiplied, modes, narrowed, wrapped, counted, collided, lengths, bits, ends, few)
