"""The operation of a called computation of scalars: a reducer's operator, a comparator's order.

A reducer's name says nothing: one named `add` may be a boolean or. Comparators choose by order and
equality alone, so that evaluating them on numbers in every order says all about them."""

import itertools
from dataclasses import dataclass

from .build import Unsupported

REDUCERS = ("add", "multiply", "maximum", "minimum", "and", "or")
ORDER = {
    "EQ": lambda x, y: x == y,
    "NE": lambda x, y: x != y,
    "LT": lambda x, y: x < y,
    "LE": lambda x, y: x <= y,
    "GT": lambda x, y: x > y,
    "GE": lambda x, y: x >= y,
}
CHOICES = {
    "and": lambda x, y: x and y,
    "or": lambda x, y: x or y,
    "not": lambda x: not x,
    "maximum": max,
    "minimum": min,
}


def find(computation, name):
    return next(i for i in computation.instructions if i.name == name)


def reducer(computation):
    """The operator of a reducer of two scalars."""
    name = reducer_at(computation, computation.root, 0, 1)
    if name is None:
        raise Unsupported("%s is no reducer that is known" % computation.name)
    return name


def is_float(shape):
    return not isinstance(shape, tuple) and shape.dtype[0] in "fb"


def unconverted(computation, i):
    """The operand of a cast among floats: numbers in few bits are reduced in more."""
    while i.opcode in ("convert", "copy") and len(i.operands) == 1:
        x = find(computation, i.operands[0])
        if i.opcode == "convert" and not (is_float(i.shape) and is_float(x.shape)):
            break
        i = x
    return i


def reducer_at(computation, i, first, second):
    """The operator of the result `i`, if it is one of the parameters of these numbers."""
    i = unconverted(computation, i)
    if i.opcode not in REDUCERS or len(i.operands) != 2:
        return None
    used = [unconverted(computation, find(computation, o)) for o in i.operands]
    if any(u.opcode != "parameter" for u in used):
        return None
    if sorted(int(u.literal) for u in used) != sorted((first, second)):
        return None
    if i.shape.dtype == "pred":
        return {"add": "or", "maximum": "or", "multiply": "and", "minimum": "and"}.get(
            i.opcode, i.opcode
        )
    return None if i.opcode in ("and", "or") else i.opcode


def reducers(computation, n):
    """The operators of a reducer of n pairs, each on its own. None: they depend on each other."""
    root = computation.root
    if root.opcode != "tuple" or len(root.operands) != n:
        return None
    results = [find(computation, o) for o in root.operands]
    out = [reducer_at(computation, i, k, n + k) for k, i in enumerate(results)]
    return out if all(out) else None


def literal(text):
    if text in ("true", "false"):
        return text == "true"
    try:
        return float(text)
    except ValueError:
        raise Unsupported("constant %s in a comparator" % text[:40]) from None


@dataclass(frozen=True)
class Bits:
    """A float's bits as an integer. XLA compares floats in their total order so: of those below
    zero all bits but the sign are turned over, and then the integers are in the floats' order."""

    number: float
    turned: bool = False


def is_bits(*x):
    return any(isinstance(v, Bits) for v in x)


def same_bits(i, x):
    """copy, and bitcast of a scalar."""
    to_float = i.shape.dtype[0] in "fb"
    return x if i.opcode == "copy" or to_float or not isinstance(x, float) else Bits(x)


def compared(i, x, y):
    if is_bits(x, y):
        if i.attributes.get("direction") != "LT" or is_bits(y) or y != 0 or x.turned:
            raise Unsupported("a comparator of bits")
        return x.number < 0
    return ORDER[i.attributes.get("direction", "")](x, y)


def turned(i, x, y):
    x, y = (x, y) if is_bits(x) else (y, x)
    if not is_bits(x) or is_bits(y) or y != 2147483647 or i.shape.dtype != "s32" or x.turned:
        raise Unsupported("xor in a comparator")
    return Bits(x.number, True)


def chosen(c, x, y):
    """Bits that are turned over where they should be are the float again, as to order."""
    v = x if c else y
    if is_bits(v):
        if is_bits(x) and is_bits(y) and v.turned == (v.number < 0):
            return v.number
        raise Unsupported("a choice of bits in a comparator")
    return v


def evaluate(computation, arguments):
    """A computation of comparisons and choices, on numbers."""
    env = {}
    for i in computation.instructions:
        x = [env[o] for o in i.operands]
        if i.opcode == "parameter":
            env[i.name] = arguments[int(i.literal)]
        elif i.opcode == "constant":
            env[i.name] = literal(i.literal)
        elif i.opcode == "compare":
            env[i.name] = compared(i, *x)
        elif i.opcode == "select":
            env[i.name] = chosen(*x)
        elif i.opcode in ("copy", "bitcast", "bitcast-convert"):
            env[i.name] = same_bits(i, x[0])
        elif i.opcode == "xor":
            env[i.name] = turned(i, *x)
        elif i.opcode == "tuple":
            env[i.name] = tuple(x)
        elif i.opcode in CHOICES and not is_bits(*x):
            env[i.name] = CHOICES[i.opcode](*x)
        else:
            raise Unsupported("%s in the comparator %s" % (i.opcode, computation.name))
    return env[computation.root.name]


def keeps_larger(computation):
    """Whether the first of two numbers is kept where it is no smaller."""
    pairs = list(itertools.product((-1.0, 0.0, 1.0), repeat=2))
    return all(bool(evaluate(computation, xy)) == (xy[0] >= xy[1]) for xy in pairs)


def wanted(largest, v0, i0, v1, i1):
    """Of two (value, index), the larger (smaller) value, and of equal ones the smaller index."""
    if v0 == v1:
        return v0, min(i0, i1)
    return (v0, i0) if (v0 > v1) == largest else (v1, i1)


def arg_extreme(computation):
    """ "maximum" or "minimum" where the reducer of pairs is an argmax or argmin whose ties go to
    the smaller index."""
    if len(computation.parameters) != 4:
        raise Unsupported("%s reduces %d values" % (computation.name, len(computation.parameters)))
    cases = list(itertools.product((-1.0, 0.0, 1.0), (0, 1, 2), repeat=2))
    found = [evaluate(computation, (a, i, c, k)) for a, i, c, k in cases]
    for largest, name in ((True, "maximum"), (False, "minimum")):
        if all(f == wanted(largest, *c) for f, c in zip(found, cases)):
            return name
    raise Unsupported("%s is neither argmax nor argmin" % computation.name)


def descending(computation):
    """The order of a comparator of sort, which must look at the first key only."""
    n = len(computation.parameters)
    orders = set()
    for x, y in itertools.product((-1.0, 0.0, 1.0), repeat=2):
        for rest in itertools.product((-1.0, 1.0), repeat=min(n - 2, 4)):
            more = list(rest) + [0.0] * (n - 2 - len(rest))
            got = evaluate(computation, [x, y] + more)
            orders.add((x < y, x > y, bool(got)))
    if all(got == less for less, _, got in orders):
        return False
    if all(got == more for _, more, got in orders):
        return True
    raise Unsupported("%s is no order of its first key" % computation.name)
