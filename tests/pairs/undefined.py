"""Where a graph is no number: 0/0 of a row of zeros, the root of what is negative, a row that is
masked wholly. Two graphs that are equal wherever both are numbers are not one function if one of
them is a number elsewhere too."""

from dsl import DIFFERENT, EQUIVALENT, NOT_DIFFERENT, NOT_EQUIVALENT, f32, pair
from edges import INF, both


def by_largest(x):
    return x.div(x.abs().amax(-1, True))


NORMS = {
    "by its sum": lambda x: x.div(x.abs().sum(-1, True)),
    "by its norm": lambda x: x.div(x.norm(-1, True)),
    "by the root of its mean square": lambda x: x.mul(x.square().mean(-1, True).rsqrt()),
    "by the root of its squares": lambda x: x.div(x.square().sum(-1, True).sqrt()),
    "by its deviation": lambda x: x.div(x.std(-1, True)),
}


def positive(x):
    """Another input, where it is positive."""
    return x.g.x(*x.shape, name="z") > 0.0


for _what, _norm in NORMS.items():
    both(
        "row divided %s, guarded" % _what,
        NOT_EQUIVALENT,
        "a row of zeros",
        lambda x, s, n=_norm: n(x).nan_to_num() if s else n(x),
    )
    both(
        "row divided %s, selected" % _what,
        NOT_EQUIVALENT,
        "a row of zeros",
        lambda x, s, n=_norm: positive(x).where(n(x), 0.0) if s else n(x).mul(positive(x).to(f32)),
    )
    both(
        "row divided %s, where it has some" % _what,
        NOT_EQUIVALENT,
        "a row of zeros",
        lambda x, s, n=_norm: (x.abs().sum(-1, True) > 0.0).where(n(x), 0.0) if s else n(x),
    )

# ---- guards on both sides ----

both(
    "guard elsewhere",
    NOT_EQUIVALENT,
    "a row of zeros",
    lambda x, s: (
        by_largest(x).add(x.nan_to_num().nan_to_num())
        if s
        else by_largest(x).nan_to_num().add(x.nan_to_num())
    ),
)
both(
    "guard before and behind",
    NOT_EQUIVALENT,
    "a row of zeros",
    lambda x, s: by_largest(x.nan_to_num()) if s else by_largest(x).nan_to_num(),
)
both(
    "guards of two terms",
    NOT_EQUIVALENT,
    "either may be NaN",
    lambda x, s: (lambda p, q: p.nan_to_num().add(q) if s else p.add(q.nan_to_num()))(
        by_largest(x), by_largest(x.g.x(4, 8, name="z"))
    ),
)
both(
    "masked rows, guard elsewhere",
    NOT_EQUIVALENT,
    "a row that is masked wholly",
    lambda x, s: (
        lambda p: (
            p.nan_to_num().add(x.nan_to_num().mul(0.5))
            if s
            else p.add(x.nan_to_num().nan_to_num().mul(0.5))
        )
    )(x.masked_fill(x.g.param("m", 4, 8) > 1.5, -INF).softmax(-1)),
)
both(
    "guard twice",
    EQUIVALENT,
    "once is enough",
    lambda x, s: by_largest(x).nan_to_num().nan_to_num() if s else by_largest(x).nan_to_num(),
)
both(
    "guard on an input",
    EQUIVALENT,
    "inputs are numbers",
    lambda x, s: x.nan_to_num().exp() if s else x.exp(),
)
both(
    "guard before a product",
    EQUIVALENT,
    "the same one",
    lambda x, s: (lambda y, w: y.linear(w) if s else y.mm(w.t()))(
        by_largest(x).nan_to_num(), x.g.param("w", 6, 8)
    ),
)
both(
    "guard told in two ways",
    NOT_DIFFERENT,
    "0 for NaN",
    lambda x, s: (lambda y: y.isnan().where(0.0, y) if s else y.nan_to_num())(by_largest(x)),
)

# ---- guards by another name ----

GUARDS = {
    "unequal to itself": lambda y: y.ne(y).where(0.0, y),
    "equal to itself": lambda y: y.eq(y).where(y, 0.0),
    "filled where unequal to itself": lambda y: y.masked_fill(y.ne(y), 0.0),
    "at least minus infinity": lambda y: y.ge(-INF).where(y, 0.0),
    "below infinity": lambda y: y.abs().lt(INF).where(y, 0.0),
    "not NaN": lambda y: y.isnan().logical_not().where(y, 0.0),
}
for _what, _guard in GUARDS.items():
    both(
        "guard: %s" % _what,
        NOT_EQUIVALENT,
        "a row of zeros",
        lambda x, s, g=_guard: (lambda y: g(y) if s else y)(by_largest(x)),
    )
both(
    "larger of a number and itself",
    EQUIVALENT,
    "NaN stays NaN",
    lambda x, s: (lambda y: y.op("fmax", [y, y]) if s else y)(by_largest(x)),
)
both(
    "sum without what is NaN",
    NOT_EQUIVALENT,
    "a row of zeros",
    lambda x, s: (lambda y: y.op("nansum", [y, [-1], False], (4,)) if s else y.sum(-1))(
        by_largest(x)
    ),
)
both(
    "entropy, guarded",
    NOT_EQUIVALENT,
    "0 log 0",
    lambda x, s: (lambda p: p.op("xlogy.Tensor", [p, p]).sum(-1) if s else p.mul(p.log()).sum(-1))(
        x.relu()
    ),
)
both(
    "sine by its angle, guarded",
    NOT_EQUIVALENT,
    "0/0",
    lambda x, s: x.sin().div(x) if s else x.eq(0.0).where(1.0, x.sin().div(x)),
)

# ---- and what is undefined in one place on both sides ----

both(
    "mean by sum",
    EQUIVALENT,
    "undefined where the sum is 0",
    lambda x, s: (
        x.mean(-1, True).div(x.sum(-1, True))
        if s
        else x.sum(-1, True).div(8.0).div(x.sum(-1, True))
    ),
)
both(
    "mean by sum, and an eighth",
    NOT_EQUIVALENT,
    "undefined where the sum is 0",
    lambda x, s: (
        x.mean(-1, True).div(x.sum(-1, True)) if s else x.sum(-1, True).mul(0.0).add(0.125)
    ),
)
both(
    "softmax of logarithms",
    EQUIVALENT,
    "weights by their sum",
    lambda x, s: x.abs().log().softmax(-1) if s else x.abs().div(x.abs().sum(-1, True)),
)
both(
    "logarithm of a sigmoid",
    EQUIVALENT,
    "log_sigmoid",
    lambda x, s: x.log_sigmoid() if s else x.sigmoid().log(),
)
both(
    "clamp of a quotient",
    DIFFERENT,
    "of a row of zeros relu leaves NaN, and what is not above 0 is 0",
    lambda x, s: (lambda y: y.gt(0.0).where(y, 0.0) if s else y.relu())(by_largest(x)),
)


# A sum that cancels at one width alone: what is true of its quotients at all others has no value
# here, where float64 leaves rounding over rounding.


def by_sum(g, width, shift, times):
    x, y = g.x(4, width), g.x(4, width, name="y")
    d = x.softmax(-1).sub(shift).sum(-1, True)
    return y.mul(d).div(d) if times else d.div(d)


for _width in (2, 4, 8):
    for _times in (False, True):
        for _shift in (1.0 / _width, 0.3):
            pair(
                "a quotient by %d probabilities less %g each, %s"
                % (_width, _shift, "of a product" if _times else "of itself"),
                NOT_EQUIVALENT if _shift == 1.0 / _width else EQUIVALENT,
                "at this width alone they add up to what is taken away",
                lambda g, n=_width, t=_times: g.x(4, n, name="y").mul(1.0) if t else g.ones(4, 1),
                lambda g, n=_width, s=_shift, t=_times: by_sum(g, n, s, t),
            )
