"""Kinds of corners.py: zeros that have a sign, and operators that read it. Their truth is that of
IEEE numbers, which Python's are."""

import itertools
import math

from branch_terms import el, var

STEPS = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "neg": lambda x: -x,
    "abs": abs,
    "exp": math.exp,
    "copysign": math.copysign,
    "atan2": math.atan2,
    "signbit": lambda x: math.copysign(1, x) < 0,
    "logical_not": lambda x: not x,
    "minimum": min,
    "maximum": max,
}
NUMBERS = (-3.0, -1.0, -0.0, 0.0, 0.5, 2.0)


def value(t, at):
    if not hasattr(t, "op"):
        return t
    return (
        at[t.op] if t.args is None else STEPS[t.op.split(".")[0]](*(value(a, at) for a in t.args))
    )


def truth(left, right):
    """Whether they agree on all of these; None: only a variable that is 0 or -0 tells them
    apart."""
    same = only_at_zeros = True
    for x, y in itertools.product(NUMBERS, NUMBERS):
        at = {"x": x, "y": y}
        if value(left, at) != value(right, at):
            same = False
            only_at_zeros &= 0 in (x, y)
    return same if same or not only_at_zeros else None


def copysign(x, y):
    return el("copysign.Tensor", x, y)


def draw(d):
    shape = d.pick((6,), (2, 4), (3, 3))
    x, y = var("x", "f", *shape), var("y", "f", *shape)
    size, tiny = el("abs", y), el("exp", x)
    zero = lambda: d.pick(
        y * 0.0,
        y - y,
        -(y - y),
        -(y * 0.0),
        size * 0.0,
        -(size * 0.0),
        y * 0.0 + 0.0,
        copysign(x * 0.0, y),
        copysign(y - y, -y),
        y,
        -y,
        copysign(y, x),
    )
    read = d.pick(
        lambda z: copysign(x, z),
        lambda z: copysign(tiny, z) * x,
        lambda z: el("signbit", z, kind="b"),
        lambda z: el("atan2", z, -tiny),
        lambda z: el("atan2", z, tiny),
        lambda z: copysign(x, copysign(z, x)),
        lambda z: el("abs", copysign(x, z)),
        lambda z: el("maximum", copysign(x, z), z),
    )
    return d.pick(
        (read(zero()), read(zero())),
        (read(zero()), read(zero())),
        (read(zero()), read(zero())),
        (copysign(x, zero()), d.pick(el("abs", x), -el("abs", x), copysign(x, y))),
        (copysign(copysign(x, zero()), y), copysign(x, y)),
        (copysign(x, -zero()), -copysign(x, zero())),
        (el("atan2", -y, x), -el("atan2", y, x)),
        (el("signbit", -y, kind="b"), ~el("signbit", y, kind="b")),
        (el("minimum", x, y), -el("maximum", -x, -y)),
    )


def zeros(d):
    """The sign of a 0 that is made: from products, differences, opposites."""
    while True:
        left, right = draw(d)
        same = truth(left, right)
        if same is not None:
            return same, left, right


KINDS = (zeros,)
