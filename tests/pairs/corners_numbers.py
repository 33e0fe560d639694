"""Kinds of corners.py: functions that are flat, steep or undefined somewhere."""

import math

from branch_terms import (
    compare,
    el,
    item,
    largest,
    masked,
    mean,
    several,
    shaped,
    to_float,
    total,
    unsqueeze,
    var,
    where,
)

INF = math.inf


def full(shape, v):
    return shaped("full", [list(shape), v], shape, "f")


def clamp_min(x, v):
    return el("clamp_min", x, v)


def last(d, n=None):
    """A variable of rows."""
    return var("z", "f", d.pick(2, 3), n or d.pick(4, 5, 6))


def saturated(d):
    """Functions that are flat far out, and the number that they come near."""
    x = d.x
    far, flat, at = d.pick(
        (lambda: el("mul.Tensor", x, x) + d.pick(1e17, 1e18, 3e19), "atan", math.pi / 2),
        (lambda: el("abs", x) + d.pick(30.0, 45.0), "tanh", 1.0),
        (lambda: el("exp", x) + d.pick(9.0, 20.0), "erf", 1.0),
        (lambda: x * x + d.pick(45.0, 80.0), "sigmoid", 1.0),
    )
    c = d.pick(math.sqrt(2 / math.pi), 1 / 3, math.sqrt(3.0), 1.0)
    e = far()
    f = el(flat, e)
    y = var("y", "f", *d.shape)
    # The two spellings of the limit differ in the last digit at most.
    number = at * c
    return d.pick(
        (False, f * c, full(d.shape, number)),
        (False, y + f * c, y + number),
        (False, y * (f * c), y * number),
        (True, f * c, el("rsub.Scalar", el("rsub.Scalar", f * c, 0.0), 0.0)),
        (True, -(f * c), (-f) * c),
        (True, y * (f * c), (y * f) * c),
    )


def filled(d):
    """A fill that stands for minus infinity competes with numbers beyond it."""
    n = d.pick(5, 6, 8)
    x, b = var("x", "f", 2, n), var("m", "b", 2, n)
    v = d.pick(-1e3, -1e4, -65504.0, -1e6, -1e9)
    i = var("i", "i", 2, n, limit=d.pick(9, 1000))
    y = var("y", "f", 2, n)
    hidden = d.pick(
        lambda: b,
        lambda: compare("eq", i, 7),
        lambda: compare("gt", y, 0.5),
        lambda: el("logical_or", b, compare("lt", i, 2), kind="b"),
    )()
    first = shaped("slice.Tensor", [hidden, 1, 0, 1], (2, 1), "b")
    kept = el("logical_and", hidden, ~first, kind="b")
    open_ = el("logical_and", kept, compare("ne", shaped("arange", [n], (n,), "i"), 0), kind="b")
    fills = lambda w: d.pick(lambda: masked(x, open_, w), lambda: where(open_, w, x))()
    name = d.pick("softmax", "amax", "argmax", "topk", "logsumexp", "max", "sort")

    def use(t):
        if name == "softmax":
            return shaped("softmax.int", [t, 1], (2, n))
        if name in ("amax", "logsumexp"):
            return shaped(name, [t, [1]], (2,))
        if name == "argmax":
            return shaped("argmax", [t, 1], (2,), "i")
        if name == "max":
            return item(several("max.dim", [t, 1], [((2,), "f"), ((2,), "i")]), 0)
        if name == "sort":
            s = item(several("sort", [t, 1, True], [((2, n), "f"), ((2, n), "i")]), 0)
            return shaped("slice.Tensor", [s, 1, 0, 1], (2, 1))
        return item(several("topk", [t, 1, 1], [((2, 1), "f"), ((2, 1), "i")]), 0)

    # Three hidden ones are topk's of rows that may keep one: only the largest is asked for.
    if d.rng.random() < 0.5:
        return False, use(fills(-INF)), use(fills(v))
    return True, use(masked(x, open_, -INF)), use(where(open_, -INF, x))


def guards(d):
    """Guards, at numbers that they let through and at numbers on their edge."""
    x = last(d)
    e = d.pick(1e-3, 1e-6, 1e-12)
    s = total(x * x)
    return d.pick(
        (
            False,
            el("div.Tensor", x, unsqueeze(clamp_min(el("sqrt", s), e), -1)),
            el("div.Tensor", x, unsqueeze(el("sqrt", clamp_min(s, e)), -1)),
        ),
        (
            True,
            el("div.Tensor", x, unsqueeze(clamp_min(el("sqrt", s), e), -1)),
            el("div.Tensor", x, unsqueeze(el("maximum", el("sqrt", s), full([], e)), -1)),
        ),
        (False, el("rsqrt", s + e), el("reciprocal", el("sqrt", s) + math.sqrt(e))),
        (True, el("rsqrt", s + e), el("reciprocal", el("sqrt", s + e))),
        (
            False,
            el("div.Tensor", x, unsqueeze(s + e, -1)),
            el("div.Tensor", x, unsqueeze(clamp_min(s, e), -1)),
        ),
        (False, el("log", s + e), clamp_min(el("log", s + e), math.log(e) + 1.0)),
        (True, el("log", s + e), el("log", el("add.Scalar", s, e))),
        (False, el("log1p", s), el("log", clamp_min(s, 1.0)) + math.log(2.0)),
        (True, el("log1p", s), el("log", s + 1.0)),
    )


def moments(d):
    """Variances, their corrections, and means of other things."""
    n = d.pick(3, 4, 5)
    x = last(d, n)
    m = mean(x)
    c = x - m
    s = shaped
    v = lambda k: s("var.correction", [x, [-1]], x.shape[:-1], correction=k)
    return d.pick(
        (True, v(0), total(c * c) * (1 / n) if n == 4 else el("div.Scalar", total(c * c), n)),
        (True, v(1), el("div.Scalar", total(c * c), n - 1)),
        (False, v(0), v(1)),
        (
            True,
            v(0),
            s("mean.dim", [x * x, [-1]], x.shape[:-1])
            - s("mean.dim", [x, [-1]], x.shape[:-1]) * s("mean.dim", [x, [-1]], x.shape[:-1]),
        ),
        (False, v(0), s("mean.dim", [x * x, [-1]], x.shape[:-1])),
        (False, s("std.correction", [x, [-1]], x.shape[:-1], correction=1), el("sqrt", v(0))),
        (True, s("linalg_vector_norm", [x, 2, [-1]], x.shape[:-1]), el("sqrt", total(x * x))),
        (False, s("linalg_vector_norm", [x, 1, [-1]], x.shape[:-1]), total(x)),
        (True, s("linalg_vector_norm", [x, 1, [-1]], x.shape[:-1]), total(el("abs", x))),
        (
            False,
            s("linalg_vector_norm", [x, INF, [-1]], x.shape[:-1]),
            s("amax", [x, [-1]], x.shape[:-1]),
        ),
        (
            True,
            s("linalg_vector_norm", [x, INF, [-1]], x.shape[:-1]),
            s("amax", [el("abs", x), [-1]], x.shape[:-1]),
        ),
    )


def signs(d):
    """At zero, and on either side of it."""
    x, y = d.x, d.y
    return d.pick(
        (False, el("sign", x), el("sub.Scalar", to_float(compare("ge", x, 0.0)) * 2.0, 1.0)),
        (True, el("sign", x), to_float(compare("gt", x, 0.0)) - to_float(compare("lt", x, 0.0))),
        (False, el("heaviside", x, full([], 0.5)), to_float(compare("gt", x, 0.0))),
        (True, el("abs", x), x * el("sign", x)),
        (True, el("relu", x), el("div.Scalar", x + el("abs", x), 2.0)),
        (False, el("relu", x), el("clamp", x, 0.0, 6.0)),
        (False, el("leaky_relu", x, 0.01), el("maximum", x, x * -0.01)),
        (True, el("leaky_relu", x, 0.01), el("maximum", x, x * 0.01)),
        (False, el("leaky_relu", x, 1.5), el("maximum", x, x * 1.5)),
        (True, el("leaky_relu", x, 1.5), el("minimum", x, x * 1.5)),
        (False, el("hypot", x, y), el("sqrt", x * x) + el("abs", y)),
        (False, el("fmod.Tensor", x, y), el("remainder.Tensor", x, y)),
        (True, el("frac", x), x - el("trunc", x)),
        (False, el("frac", x), x - el("floor", x)),
        (True, el("ceil", x), -el("floor", -x)),
        (False, el("round", x), el("floor", x + 0.5)),
        (False, el("round", x), el("ceil", x - 0.5)),
        (False, el("trunc", x), el("floor", x)),
        (True, el("trunc", x), el("sign", x) * el("floor", el("abs", x))),
    )


def activations(d):
    """Formulas of activations, and those that leave them far out."""
    x = d.x
    sig = lambda t: el("sigmoid", t)
    return d.pick(
        (True, el("silu", x), x * sig(x)),
        (False, el("silu", x), el("hardswish", x)),
        (True, el("softplus", x, 1.0, 1e9), el("logaddexp", x, el("zeros_like", x))),
        (False, el("softplus", x, 1.0, 5.0), el("logaddexp", x, el("zeros_like", x))),
        (
            True,
            el("logaddexp", x, el("zeros_like", x)),
            el("relu", x) + el("log1p", el("exp", -el("abs", x))),
        ),
        (True, el("tanh", x), el("sub.Scalar", sig(x * 2.0) * 2.0, 1.0)),
        (False, el("tanh", x), el("clamp", el("tanh", x), -0.999999, 0.999999)),
        (True, el("hardsigmoid", x), el("div.Scalar", el("clamp", x + 3.0, 0.0, 6.0), 6.0)),
        (False, el("hardsigmoid", x), el("clamp", x * 0.2 + 0.5, 0.0, 1.0)),
        (True, el("hardswish", x), x * el("hardsigmoid", x)),
        (True, el("elu", x, 1.0), where(compare("gt", x, 0.0), x, el("expm1", x))),
        (False, el("elu", x, 1.0), el("maximum", x, el("tanh", x))),
        (True, el("log_sigmoid", x), -el("softplus", -x, 1.0, 1e9)),
        (False, el("log_sigmoid", x), el("log", sig(x) + 1e-9)),
        (False, el("mish", x), x * el("tanh", el("relu", x))),
        (True, el("mish", x), x * el("tanh", el("softplus", x, 1.0, 1e9))),
        (False, el("gelu", x), x * sig(x * 1.702)),
    )


def shifted(d):
    """Softmaxes and sums of exponentials, moved by something of the row."""
    x = last(d)
    m = largest(x)
    lse = lambda t: shaped("logsumexp", [t, [-1], True], t.shape[:-1] + (1,))
    soft = lambda t: shaped("softmax.int", [t, -1], t.shape)
    return d.pick(
        (True, soft(x), soft(x - m)),
        (False, soft(x), soft(x * 1.0001)),
        (True, lse(x), lse(x - m) + m),
        (False, lse(x), m),
        (True, shaped("log_softmax.int", [x, -1], x.shape), x - lse(x)),
        (False, soft(x), soft(el("clamp", x, -50.0, 50.0))),
        (False, soft(x), soft(masked(x, compare("lt", x, -200.0), -INF))),
        (True, soft(x), soft(where(compare("lt", x, -1e9), x, x))),
        (
            True,
            soft(x),
            el(
                "div.Tensor",
                el("exp", x - m),
                shaped("sum.dim_IntList", [el("exp", x - m), [-1], True], m.shape),
            ),
        ),
        (
            False,
            soft(x),
            el(
                "div.Tensor",
                el("exp", x - m),
                shaped("sum.dim_IntList", [el("exp", x - m), [-1], True], m.shape) + 1e-3,
            ),
        ),
    )


KINDS = (saturated, filled, guards, moments, signs, activations, shifted)
