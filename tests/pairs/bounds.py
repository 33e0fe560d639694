"""Bounds that cannot bind, and twins in which they bind by one: counts, probabilities, sums of
gates, casts of what fits. No draw can take such a branch: that it is never taken has to be shown
(validate/branch/range.c)."""

from dsl import *

ROWS, COLUMNS = 6, 5


def bound(name, free, bounded, binding, shape=(ROWS, COLUMNS)):
    """`free`: without a bound; `bounded`: with one that never binds; `binding`: by one too much."""
    for twin, side, expected in (("", bounded, EQUIVALENT), (", by one", binding, NOT_EQUIVALENT)):
        pair(
            "bound: " + name + twin,
            expected,
            "it never binds" if not twin else "it does",
            lambda g: free(g.x(*shape, name="x")),
            lambda g, side=side: side(g.x(*shape, name="x")),
        )


def counts(x):
    return (x > 0.0).to(i64).sum(1)


def loads(x):
    return x.argmax(1).one_hot(COLUMNS).sum(0)


def clamped(f, low, high, dtype=f32):
    return lambda x: f(x).clamp(low, high).to(dtype)


bound(
    "a count of a row",
    lambda x: counts(x).to(f32),
    clamped(counts, 0, COLUMNS),
    clamped(counts, 0, COLUMNS - 1),
)
bound(
    "a count from below",
    lambda x: counts(x).to(f32),
    lambda x: counts(x).clamp_min(0).to(f32),
    lambda x: counts(x).clamp_min(1).to(f32),
)
bound(
    "tokens of an expert",
    lambda x: loads(x).to(f32),
    clamped(loads, 0, ROWS),
    clamped(loads, 0, ROWS - 1),
)
bound(
    "a sum of gates",
    lambda x: x.sigmoid().sum(1),
    lambda x: x.sigmoid().sum(1).clamp_max(float(COLUMNS)),
    lambda x: x.sigmoid().sum(1).clamp_max(COLUMNS - 1.0),
)
bound(
    "probabilities",
    lambda x: x.softmax(1) * 2.0,
    lambda x: x.softmax(1).clamp(0.0, 1.0) * 2.0,
    lambda x: x.softmax(1).clamp(0.0, 0.5) * 2.0,
)
