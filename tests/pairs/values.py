"""Pairs that agree on the captured values, or nearly, and are not the same function: a value that
is 1 or 0, a position that is also a token, an attribute that shows elsewhere. None may be
`equivalent`."""

from dsl import *


def rms(x, eps=1e-6):
    return x * x.pow(2).mean(-1, True).add(eps).rsqrt()


def two(name, why, left, right, expected=DIFFERENT, shape=(4, 8), **how):
    """Both sides are functions of the one input."""
    pair(
        name, expected, why, lambda g: left(g.x(*shape, **how)), lambda g: right(g.x(*shape, **how))
    )


# Equivalent only with the assumption that an input keeps its captured value, as one with a visible
# structure does.
UNLESS_KEPT = NOT_EQUIVALENT + "|equivalent:input:keeps its captured value"


def same(x):
    return x


# ---- parameters whose captured values hide what is done with them ----

pair(
    "norm weight of ones missing",
    DIFFERENT,
    "the weight is a parameter",
    lambda g: rms(g.x(4, 8)) * g.param("w", 8, at=1),
    lambda g: rms(g.x(4, 8)),
)
pair(
    "norm weight of ones unused",
    DIFFERENT,
    "the weight is there and does nothing",
    lambda g, s: (lambda x, w: rms(x) if s else rms(x) * w)(g.x(4, 8), g.param("w", 8, at=1)),
)
pair(
    "layer_norm weight of ones missing",
    DIFFERENT,
    "the weight is a parameter",
    lambda g: g.x(4, 8).layer_norm(g.param("w", 8, at=1)),
    lambda g: g.x(4, 8).layer_norm(),
)
pair(
    "layer_norm bias of zeros missing",
    DIFFERENT,
    "the bias is a parameter",
    lambda g: g.x(4, 8).layer_norm(g.param("w", 8, at=1), g.param("b", 8, at=0)),
    lambda g: g.x(4, 8).layer_norm(g.param("w", 8, at=1)),
)
pair(
    "linear bias of zeros missing",
    DIFFERENT,
    "the bias is a parameter",
    lambda g: g.x(4, 8).linear(g.param("w", 6, 8), g.param("b", 6, at=0)),
    lambda g: g.x(4, 8).linear(g.param("w", 6, 8)),
)
pair(
    "linear bias of zeros twice",
    DIFFERENT,
    "b against 2 b",
    lambda g: g.x(4, 8).linear(g.param("w", 6, 8), g.param("b", 6, at=0)),
    lambda g: (lambda b: g.x(4, 8).linear(g.param("w", 6, 8), b) + b)(g.param("b", 6, at=0)),
)
pair(
    "weights of gemma norms",
    DIFFERENT,
    "1 + w against w, where w is 1 and 0",
    lambda g: rms(g.x(4, 8)) * (g.param("w", 8, at=0) + 1.0),
    lambda g: rms(g.x(4, 8)) * g.param("w", 8, at=0).exp(),
)
pair(
    "norm weight squared",
    DIFFERENT,
    "w is 1",
    lambda g: rms(g.x(4, 8)) * g.param("w", 8, at=1),
    lambda g: rms(g.x(4, 8)) * g.param("w", 8, at=1).square(),
)
pair(
    "norm weight of the other norm",
    DIFFERENT,
    "both are 1",
    lambda g, s: (lambda a, b: (rms(g.x(4, 8)) * a).tanh() * (a if s else b))(
        g.param("n1", 8, at=1), g.param("n2", 8, at=1)
    ),
)
pair(
    "gate of zero",
    DIFFERENT,
    "a residual branch behind a parameter of 0",
    lambda g: (lambda x: x + g.param("gate", 1, at=0) * x.exp())(g.x(4, 8)),
    lambda g: g.x(4, 8).add(0.0),
)
pair(
    "two gates of zero",
    DIFFERENT,
    "what is behind the gate differs",
    lambda g, s: (lambda x: x + g.param("gate", 8, at=0) * (x.exp() if s else x.sin()))(g.x(4, 8)),
)
pair(
    "equal layers, one used twice",
    DIFFERENT,
    "both have the same weights",
    lambda g, s: (lambda x, a, b: x.linear(a).tanh().linear(a if s else b))(
        g.x(4, 8), g.param("l0.w", 8, 8, like="w"), g.param("l1.w", 8, 8, like="w")
    ),
)
pair(
    "equal layers exchanged",
    DIFFERENT,
    "both have the same weights",
    lambda g, s: (lambda x, a, b: x.linear(b if s else a).tanh().linear(a if s else b))(
        g.x(4, 8), g.param("l0.w", 8, 8, like="w"), g.param("l1.w", 8, 8, like="w")
    ),
)
pair(
    "layers exchanged",
    DIFFERENT,
    "other weights",
    lambda g, s: (lambda x, a, b: x.linear(b if s else a).tanh().linear(a if s else b))(
        g.x(4, 8), g.param("l0.w", 8, 8), g.param("l1.w", 8, 8)
    ),
)
pair(
    "symmetric weight transposed",
    DIFFERENT,
    "W is symmetric as captured",
    lambda g, s: (lambda x, w: x.linear(w.t() if s else w))(
        g.x(4, 8), g.param("w", symmetric("w", 8))
    ),
)
pair(
    "symmetric weight by mm",
    DIFFERENT,
    "W is symmetric as captured",
    lambda g, s: (lambda x, w: x.mm(w) if s else x.linear(w))(
        g.x(4, 8), g.param("w", symmetric("w", 8))
    ),
)
pair(
    "square weight transposed",
    DIFFERENT,
    "the shape fits either way",
    lambda g, s: (lambda x, w: x.linear(w.t() if s else w))(g.x(4, 8), g.param("w", 8, 8)),
)
pair(
    "identity weight missing",
    DIFFERENT,
    "W is the identity",
    lambda g: g.x(4, 8).linear(g.param("w", 8, 8, at=lambda i: i % 9 == 0)),
    lambda g: g.x(4, 8).add(0),
)
pair(
    "q and k of equal weights exchanged",
    DIFFERENT,
    "q k^T against k q^T",
    lambda g, s: (
        lambda x, a, b: x.linear(b if s else a).mm(x.linear(a if s else b).t()).softmax(-1)
    )(g.x(4, 8), g.param("q", 8, 8, like="w"), g.param("k", 8, 8, like="w")),
)
pair(
    "q and k exchanged",
    DIFFERENT,
    "q k^T against k q^T",
    lambda g, s: (
        lambda x, a, b: x.linear(b if s else a).mm(x.linear(a if s else b).t()).softmax(-1)
    )(g.x(4, 8), g.param("q", 8, 8), g.param("k", 8, 8)),
)
pair(
    "gate and up exchanged",
    DIFFERENT,
    "silu of the wrong half",
    lambda g, s: (lambda x, a, b: x.linear(b if s else a).silu() * x.linear(a if s else b))(
        g.x(4, 8), g.param("gate", 6, 8), g.param("up", 6, 8)
    ),
)
pair(
    "gate and up of equal weights exchanged",
    DIFFERENT,
    "silu of the wrong half",
    lambda g, s: (lambda x, a, b: x.linear(b if s else a).silu() * x.linear(a if s else b))(
        g.x(4, 8), g.param("gate", 6, 8, like="w"), g.param("up", 6, 8, like="w")
    ),
)
pair(
    "fused gate and up in the other order",
    DIFFERENT,
    "the halves of the fused weight are exchanged",
    lambda g: (lambda x: x.linear(g.param("gate", 6, 8)).silu() * x.linear(g.param("up", 6, 8)))(
        g.x(4, 8)
    ),
    lambda g: (lambda h: h[0].silu() * h[1])(
        g.x(4, 8)
        .linear(g.param("gate_up", join(values("up", 6, 8), values("gate", 6, 8))))
        .chunk(2, -1)
    ),
)
pair(
    "fused q, k, v with v and k exchanged",
    DIFFERENT,
    "the parts of the fused weight are exchanged",
    lambda g: (
        lambda x: x.linear(g.param("q", 8, 8)).sdpa(
            x.linear(g.param("k", 8, 8)), x.linear(g.param("v", 8, 8))
        )
    )(g.x(1, 4, 8)),
    lambda g: (lambda h: h[0].sdpa(h[1], h[2]))(
        g.x(1, 4, 8).linear(g.param("qkv", join(*[values(n, 8, 8) for n in "qvk"]))).chunk(3, -1)
    ),
)
pair(
    "tied and untied table",
    NOT_EQUIVALENT + "|equivalent:leaf:head is",
    "the head has a table of its own, of the same values",
    lambda g, s: (
        lambda e: e.embedding(g.ints("ids", [3, 1, 2], 16)).linear(
            e if s else g.param("head", 16, 4, like="e")
        )
    )(g.param("e", 16, 4)),
)
pair(
    "one row of the table missing",
    DIFFERENT,
    "a row that is read is 0",
    lambda g: g.param("e", 8, 4).embedding(g.ints("ids", [3, 1, 2], 8)),
    lambda g: g.param(
        "e",
        join(
            values("e", 8, 4).rows(0, 3),
            values("e", 8, 4).rows(3, 4).scaled(0.0),
            values("e", 8, 4).rows(4, 8),
        ),
    ).embedding(g.ints("ids", [3, 1, 2], 8)),
)
pair(
    "one unread row of the table missing",
    UNLESS_KEPT,
    "another token reads it",
    lambda g: g.param("e", 8, 4).embedding(g.ints("ids", [0, 1, 2], 8)),
    lambda g: g.param(
        "e",
        join(
            values("e", 8, 4).rows(0, 5),
            values("e", 8, 4).rows(5, 6).scaled(0.0),
            values("e", 8, 4).rows(6, 8),
        ),
    ).embedding(g.ints("ids", [0, 1, 2], 8)),
)
pair(
    "rows of the table exchanged",
    UNLESS_KEPT,
    "unread rows",
    lambda g: g.param("e", 8, 4).embedding(g.ints("ids", [0, 1, 2], 8)),
    lambda g: g.param("e", values("e", 8, 4).take([0, 1, 2, 4, 3, 5, 6, 7])).embedding(
        g.ints("ids", [0, 1, 2], 8)
    ),
)
pair(
    "one element of a weight",
    DIFFERENT,
    "a weight that is a thousandth off in one place",
    lambda g: g.x(4, 8).linear(g.param("w", 6, 8)),
    lambda g: g.x(4, 8).linear(
        g.param(
            "w",
            (lambda d: Data(d.shape, d.values[:9] + [d.values[9] * 1.001] + d.values[10:]))(
                values("w", 6, 8)
            ),
        )
    ),
)
pair(
    "one bit of a weight",
    NOT_EQUIVALENT,
    "the last bit of one element",
    lambda g: g.x(4, 8).linear(g.param("w", 6, 8)),
    lambda g: g.x(4, 8).linear(
        g.param(
            "w",
            (lambda d: Data(d.shape, d.values[:9] + [d.values[9] * (1 + 2e-7)] + d.values[10:]))(
                values("w", 6, 8)
            ),
        )
    ),
)

# ---- inputs whose captured values hide what is done with them ----

two("constant input", "x is 2, so that 2 x is x x", lambda x: x * 2.0, lambda x: x * x, at=2)
two(
    "input of ones, rolled",
    "all elements are equal",
    lambda x: x * 2.0,
    lambda x: x.roll(1, 1) * 2.0,
    at=1,
)
two(
    "input of ones, another slice",
    "all elements are equal",
    lambda x: x.slice(1, 0, 4),
    lambda x: x.slice(1, 1, 5),
    at=1,
)
two(
    "input of ones, transposed",
    "all elements are equal",
    lambda x: x.exp(),
    lambda x: x.t().exp(),
    at=1,
    shape=(4, 4),
)
two(
    "input of ones, mean for one row",
    "all rows are equal",
    lambda x: x.mean(0),
    lambda x: x.select(0, 0),
    at=1,
)
two("input of zeros, squared", "0 is 0 * 0", same, lambda x: x * x, at=0)
two(
    "equal rows expanded",
    "all rows are equal",
    lambda x: x.exp(),
    lambda x: x.slice(0, 0, 1).expand(4, 8).exp(),
    at=lambda i: i % 8,
)
two("slice moved by one", "", lambda x: x.slice(1, 0, 4), lambda x: x.slice(1, 1, 5))
two("relu of what is positive", "x happens to be positive", same, lambda x: x.relu(), shift=100)
two("abs of what is positive", "x happens to be positive", same, lambda x: x.abs(), shift=100)
two("sqrt of the square", "x happens to be positive", same, lambda x: (x * x).sqrt(), shift=100)
two("clamp at 3", "no captured value reaches it", same, lambda x: x.clamp(-3.0, 3.0), scale=0.1)
two(
    "clamp at 50",
    "no captured value reaches it",
    lambda x: x.tanh() + x,
    lambda x: x.tanh() + x.clamp(-50.0, 50.0),
    scale=0.01,
)
two(
    "clamp at 65504",
    "no captured value reaches it",
    same,
    lambda x: x.clamp(-65504.0, 65504.0),
    NOT_EQUIVALENT,
)
two(
    "clamp of one side",
    "min against min and max",
    lambda x: x.clamp_min(-2.0),
    lambda x: x.clamp(-2.0, 2.0),
    scale=0.1,
)
two(
    "minimum with a full tensor",
    "no captured value reaches it",
    same,
    lambda x: x.minimum(x.g.full((), 1000.0)),
    NOT_EQUIVALENT,
)
two(
    "where beside its condition",
    "no captured value reaches it",
    same,
    lambda x: (x < 100.0).where(x, -x),
    scale=0.1,
)
two("threshold", "no captured value is below", same, lambda x: x.threshold(-5.0, 0.0), scale=0.1)
two("hardtanh of 6", "relu6 against relu", lambda x: x.relu(), lambda x: x.relu6(), scale=0.5)
two(
    "leaky relu",
    "x happens to be positive",
    lambda x: x.leaky_relu(0.1),
    lambda x: x.leaky_relu(0.2),
    shift=100,
)
two("gt and ge", "equal values do not occur", lambda x: x > 0.0, lambda x: x >= 0.0)
two(
    "gt at another threshold",
    "2e-2 against 1e-2",
    lambda x: (x > 0.02).where(x, 0.0),
    lambda x: (x > 0.01).where(x, 0.0),
)
two(
    "step beside a threshold",
    "at the threshold itself",
    lambda x: x * (x > 0.5).to(f32),
    lambda x: x * (x >= 0.5).to(f32),
)
two(
    "round and floor",
    "half to even against half up",
    lambda x: x.round(),
    lambda x: (x + 0.5).floor(),
)
two("ceil and floor", "integers only", lambda x: x.ceil(), lambda x: x.floor() + 1.0)
two(
    "floor and trunc",
    "x happens to be positive",
    lambda x: x.floor(),
    lambda x: x.trunc(),
    shift=100,
)
two(
    "sign at zero",
    "zeros do not occur",
    lambda x: x.sign(),
    lambda x: (x >= 0.0).where(x.ones_like(), x.ones_like().neg()),
)
two(
    "saturated sigmoid",
    "sigmoid(x + 30) and sigmoid(x + 40) are nearly 1",
    lambda x: (x + 30.0).sigmoid(),
    lambda x: (x + 40.0).sigmoid(),
)
two(
    "saturated tanh",
    "tanh(100 + x) is 1",
    lambda x: x.tanh(),
    lambda x: (x * 2.0).tanh(),
    shift=100,
)
two("saturated gelu", "gelu(x) is x for large x", same, lambda x: x.gelu(), shift=100)
two("saturated silu", "silu(x) is x for large x", same, lambda x: x.silu(), shift=100)
two(
    "saturated softmax",
    "softmax of either dimension is the identity",
    lambda x: x.softmax(1),
    lambda x: x.softmax(0),
    shape=(8, 8),
    at=lambda i: 1e4 * (i % 9 == 0),
)
two(
    "saturated softmax, scaled",
    "one-hot either way",
    lambda x: x.softmax(-1),
    lambda x: (x * 0.5).softmax(-1),
    scale=1e6,
)
two("saturated softplus", "softplus(x) is x for large x", same, lambda x: x.softplus(), shift=100)
two(
    "exp of what is very negative",
    "both are 0 as captured",
    lambda x: x.exp(),
    lambda x: (x * 2.0).exp(),
    shift=-1000,
)
two(
    "argmax of relu",
    "the greatest is positive",
    lambda x: x.argmax(-1),
    lambda x: x.relu().argmax(-1),
    shift=100,
)
two(
    "argmax that is always the last",
    "the last is the greatest",
    lambda x: x.argmax(-1),
    lambda x: x.g.full((4,), 7, i64),
    at=lambda i: i,
)
two(
    "argmax of ties",
    "the first against the last of equal values",
    lambda x: x.argmax(-1),
    lambda x: x.flip(-1).argmax(-1).rsub(7),
    NOT_EQUIVALENT + "|equivalent:ties",
)
two(
    "argmax and argmin of ties",
    "all values are equal",
    lambda x: x.argmax(-1),
    lambda x: x.argmin(-1),
    at=1,
)
two(
    "topk of relu",
    "the greatest are positive",
    lambda x: x.topk(3)[0],
    lambda x: x.relu().topk(3)[0],
    shift=100,
)
two(
    "amax of abs",
    "the greatest is positive",
    lambda x: x.amax(-1),
    lambda x: x.abs().amax(-1),
    shift=100,
)
two(
    "sorted already",
    "x is sorted",
    lambda x: x.exp(),
    lambda x: x.sort(-1)[0].exp(),
    at=lambda i: i % 8,
)
two("cumsum the other way", "", lambda x: x.cumsum(1), lambda x: x.flip(1).cumsum(1).flip(1))
two(
    "prod and sum of ones",
    "1 of one, 8 of the other, divided",
    lambda x: x.prod(1),
    lambda x: x.sum(1).div(8.0),
    at=1,
)
pair(
    "two inputs of equal values",
    DIFFERENT,
    "x + y against x + x",
    lambda g, s: (lambda x, y: x + (x if s else y))(
        g.x(4, 8, like="v"), g.x(4, 8, name="y", like="v")
    ),
)
pair(
    "two inputs exchanged",
    DIFFERENT,
    "x - y against y - x",
    lambda g, s: (lambda x, y: y - x if s else x - y)(g.x(4, 8), g.x(4, 8, name="y")),
)
pair(
    "two inputs of equal values exchanged",
    DIFFERENT,
    "x - y against y - x",
    lambda g, s: (lambda x, y: y - x * 2.0 if s else x - y * 2.0)(
        g.x(4, 8, like="v"), g.x(4, 8, name="y", like="v")
    ),
)
pair(
    "two outputs exchanged",
    DIFFERENT,
    "outputs pair by name",
    lambda g, s: (lambda x: {"a": x.sin() if s else x.exp(), "b": x.exp() if s else x.sin()})(
        g.x(4, 8)
    ),
)
pair(
    "one of two outputs",
    DIFFERENT,
    "the other is equal",
    lambda g, s: (lambda x: {"a": x.exp(), "b": x.expm1() if s else x.exp()})(g.x(4, 8)),
)

# ---- token ids and positions ----

pair(
    "positions that are the token ids",
    UNLESS_KEPT,
    "both are 0..7",
    lambda g, s: (
        lambda i, p: g.param("e", 16, 4).embedding(i) + g.param("p", 16, 4).embedding(i if s else p)
    )(g.ints("input_ids", range(8), 16), g.ints("positions", range(8))),
)
pair(
    "arange that is the token ids",
    UNLESS_KEPT,
    "the ids are 0..7",
    lambda g, s: (
        lambda i: (
            g.param("e", 16, 4).embedding(i)
            + g.param("p", 16, 4).embedding(i if s else g.arange(8))
        )
    )(g.ints("input_ids", range(8), 16)),
)
pair(
    "one token that is its position",
    UNLESS_KEPT,
    "T = 1, both are 3",
    lambda g, s: (
        lambda i, p: g.param("e", 16, 4).embedding(i) + g.param("p", 16, 4).embedding(i if s else p)
    )(g.ints("input_ids", [3], 16), g.ints("positions", [3])),
)
pair(
    "one token as a constant",
    DIFFERENT,
    "the id is 3",
    lambda g, s: g.param("e", 16, 4).embedding(
        g.full((1,), 3, i64) if s else g.ints("input_ids", [3], 16)
    ),
)
pair(
    "one token as a row",
    DIFFERENT,
    "the id is 3",
    lambda g, s: (
        g.param("e", 16, 4).slice(0, 3, 4)
        if s
        else g.param("e", 16, 4).embedding(g.ints("input_ids", [3], 16))
    ),
)
pair(
    "positions one off",
    DIFFERENT,
    "",
    lambda g, s: g.param("p", 16, 4).embedding(g.ints("positions", range(8)) + s),
)
pair(
    "positions one off in T = 1",
    DIFFERENT,
    "",
    lambda g, s: g.param("p", 16, 4).embedding(g.arange(1) + s),
)
pair(
    "position table moved by two rows",
    DIFFERENT,
    "positions 0..7 of a table that starts at 2",
    lambda g: g.param("p", 16, 4).embedding(g.arange(8) + 2),
    lambda g: g.param("p", values("p", 16, 4).rows(1, 16)).embedding(g.arange(8)),
)
pair(
    "repeated token rolled",
    DIFFERENT,
    "all ids are 2",
    lambda g, s: g.param("e", 16, 4).embedding(g.ints("input_ids", [2] * 4, 16)).roll(s, 0),
)
pair(
    "repeated token by its mean",
    DIFFERENT,
    "all ids are 2",
    lambda g, s: (lambda e: e.mean(0) if s else e.select(0, 0))(
        g.param("e", 16, 4).embedding(g.ints("input_ids", [2] * 4, 16))
    ),
)
pair(
    "ids clamped",
    UNLESS_KEPT,
    "no captured id is above 7",
    lambda g, s: g.param("e", 16, 4).embedding(
        (lambda i: i.clamp(0, 7) if s else i)(g.ints("input_ids", [0, 1, 2, 3], 16))
    ),
)
pair(
    "ids modulo 4",
    UNLESS_KEPT,
    "no captured id is above 3",
    lambda g, s: g.param("e", 16, 4).embedding(
        (lambda i: i.remainder(4) if s else i)(g.ints("input_ids", [0, 1, 2, 3], 16))
    ),
)
pair(
    "table cut behind the captured ids",
    NOT_EQUIVALENT + "|equivalent:input:the smaller table",
    "other ids are out of range on one side",
    lambda g, s: (lambda e: e.slice(0, 0, 4) if s else e)(g.param("e", 16, 4)).embedding(
        g.ints("input_ids", [0, 1, 2, 3], 16)
    ),
)
pair(
    "padding id masked",
    UNLESS_KEPT,
    "id 0 does not occur",
    lambda g, s: (
        lambda i, e: e.embedding(i).masked_fill(i.eq(0).unsqueeze(-1), 0.0) if s else e.embedding(i)
    )(g.ints("input_ids", [3, 1, 2], 16), g.param("e", 16, 4)),
)
pair(
    "ids clamped, in no order",
    DIFFERENT,
    "no captured id is above 7",
    lambda g, s: g.param("e", 16, 4).embedding(
        (lambda i: i.clamp(0, 7) if s else i)(g.ints("input_ids", [6, 1, 2, 3], 16))
    ),
)
pair(
    "ids modulo 8, in no order",
    DIFFERENT,
    "no captured id is above 7",
    lambda g, s: g.param("e", 16, 4).embedding(
        (lambda i: i.remainder(8) if s else i)(g.ints("input_ids", [6, 1, 2, 3], 16))
    ),
)
pair(
    "padding id masked, in no order",
    DIFFERENT,
    "id 0 does not occur",
    lambda g, s: (
        lambda i, e: e.embedding(i).masked_fill(i.eq(0).unsqueeze(-1), 0.0) if s else e.embedding(i)
    )(g.ints("input_ids", [3, 1, 2, 7, 4, 6, 9, 5], 10), g.param("e", 10, 4)),
)
pair(
    "unread rows exchanged, ids in no order",
    DIFFERENT,
    "other tokens read them",
    lambda g: g.param("e", 8, 4).embedding(g.ints("input_ids", [6, 1, 2], 8)),
    lambda g: g.param("e", values("e", 8, 4).take([0, 1, 2, 4, 3, 5, 6, 7])).embedding(
        g.ints("input_ids", [6, 1, 2], 8)
    ),
)


def masked_positions(mask, expected, why):
    pair(
        "positions from the mask %s" % mask,
        expected,
        why,
        lambda g, s: (
            lambda m: (
                g.param("p", 32, 4).embedding(
                    (m.cumsum(0) - 1).clamp_min(0) if s else g.arange(len(mask))
                )
                * m.to(f32).unsqueeze(-1)
            )
        )(g.ints("attention_mask", mask)),
    )


masked_positions([1, 1, 1, 1], NOT_EQUIVALENT + "|equivalent:input", "only where the mask is kept")
masked_positions([1, 1, 1, 0], UNDECIDED, "so few look like padding by chance")
masked_positions([1] * 14 + [0] * 3, EQUIVALENT, "the last positions are masked, the mask is kept")
masked_positions([0, 1, 1, 1], DIFFERENT, "0 0 1 2 against 0 1 2 3")
