"""Integers, booleans and casts; captured float16 and bfloat16; tables, positions and vocabularies;
routing; zero-size tensors; what only rounding tells apart; what must be refused."""

from attention import T, below
from dsl import *
from values import rms, same, two

IDS = [3, 1, 4, 1, 5, 9, 2, 6]


def ints(name, expected, why, left, right, captured=IDS, below=100):
    pair(
        name,
        expected,
        why,
        lambda g: left(g.ints("i", captured, below)),
        lambda g: right(g.ints("i", captured, below)),
    )


def equal(name, left, right, why="the same function", **how):
    two(name, why, left, right, EQUIVALENT, **how)


# ---- integers and booleans ----

ints(
    "int shift and floor division",
    EQUIVALENT,
    "a power of two",
    lambda i: i.rshift(1),
    lambda i: i.floor_divide(2),
)
ints("int shift and product", EQUIVALENT, "wrap alike", lambda i: i.lshift(3), lambda i: i * 8)
ints(
    "int floor and trunc",
    NOT_EQUIVALENT,
    "negative numbers",
    lambda i: i.div(3, "floor"),
    lambda i: i.div(3, "trunc"),
)
ints(
    "int remainder and fmod",
    NOT_EQUIVALENT,
    "negative numbers",
    lambda i: i.remainder(3),
    lambda i: i.fmod(3),
)
ints(
    "int remainder by its quotient",
    EQUIVALENT,
    "i - 3 floor(i / 3)",
    lambda i: i.remainder(3),
    lambda i: i - i.div(3, "floor") * 3,
)
ints(
    "int remainder and bitwise and",
    EQUIVALENT,
    "a power of two",
    lambda i: i.remainder(8),
    lambda i: i.bitwise_and(7),
)
ints("int abs", NOT_EQUIVALENT, "negative numbers", same, lambda i: i.abs())
ints(
    "int overflow and back",
    NOT_EQUIVALENT,
    "wraps for i >= 8",
    lambda i: i * 2,
    lambda i: (i * 2**60).div(2**59, "floor"),
    [3, 1, 4, 1, 5, 2, 2, 6],
)
ints(
    "int multiple of 1000",
    DIFFERENT,
    "all captured are below 1000",
    lambda i: i.div(1000, "floor") * 1000,
    lambda i: i * 0,
    below=10000,
)
ints("int through int32", NOT_EQUIVALENT, "large numbers", same, lambda i: i.to(i32).to(i64))
ints(
    "int through int8",
    NOT_EQUIVALENT,
    "numbers above 127",
    same,
    lambda i: i.to(i8).to(i64),
    below=1000,
)
ints("int through float32", NOT_EQUIVALENT, "numbers above 2^24", same, lambda i: i.to(f32).to(i64))
ints(
    "int through bfloat16",
    DIFFERENT,
    "numbers above 256",
    same,
    lambda i: i.to(bf16).to(i64),
    [3, 1, 256, 7, 90, 12, 511, 300],
    below=5000,
)
ints(
    "int through bfloat16, small",
    NOT_EQUIVALENT,
    "numbers above 256",
    same,
    lambda i: i.to(bf16).to(i64),
    below=5000,
)
ints(
    "int and 255",
    NOT_EQUIVALENT,
    "numbers above 255",
    same,
    lambda i: i.bitwise_and(255),
    below=5000,
)
ints(
    "int clamped at 1000",
    NOT_EQUIVALENT,
    "numbers above 1000",
    same,
    lambda i: i.clamp_max(1000),
    below=5000,
)
ints(
    "int true division",
    DIFFERENT,
    "a fraction",
    lambda i: i.div(3),
    lambda i: i.div(3, "floor").to(f32),
)
ints(
    "int true division of multiples",
    DIFFERENT,
    "captured values are multiples of 3",
    lambda i: i.div(3),
    lambda i: i.div(3, "floor").to(f32),
    [3, 6, 9, 0],
)
ints(
    "int times 2.0",
    EQUIVALENT,
    "of another dtype inside",
    lambda i: i * 2.0,
    lambda i: i.to(f32) * 2,
)
ints(
    "int sum and mean",
    NOT_DIFFERENT,
    "float32 rounds large integers before or after",
    lambda i: i.to(f32).mean(0),
    lambda i: i.sum(0).div(8),
)
ints("int eq and ne", EQUIVALENT, "", lambda i: i.eq(3), lambda i: ~i.ne(3))
ints("int lt and le", EQUIVALENT, "over the integers", lambda i: i < 4, lambda i: i <= 3)
ints("int lt and le, one off", DIFFERENT, "", lambda i: i < 4, lambda i: i <= 4)
ints(
    "int maximum and where", EQUIVALENT, "", lambda i: i.clamp_min(3), lambda i: (i > 3).where(i, 3)
)
ints("int sorted", DIFFERENT, "", lambda i: i.sort()[0], lambda i: i.sort(-1, True)[0])
ints("bool of an int", EQUIVALENT, "not 0", lambda i: i.to(boolean), lambda i: i.ne(0))
ints(
    "bool of what is never 0",
    DIFFERENT,
    "all captured are positive",
    lambda i: i.to(boolean),
    lambda i: i.ones_like().to(boolean),
    below=4,
)
ints("bool counted", EQUIVALENT, "", lambda i: (i > 3).sum(0), lambda i: (i > 3).to(i64).sum(0))
ints(
    "bool and its product",
    EQUIVALENT,
    "",
    lambda i: (i > 3) & (i < 9),
    lambda i: ((i > 3).to(i64) * (i < 9).to(i64)).to(boolean),
)
ints("bool and, or", DIFFERENT, "", lambda i: (i > 3) & (i < 5), lambda i: (i > 3) | (i < 5))
ints(
    "bool by De Morgan",
    EQUIVALENT,
    "",
    lambda i: (i > 5) | (i < 3),
    lambda i: ~((i <= 5) & (i >= 3)),
)
two(
    "bool of a float",
    "through int64 loses 0.5",
    lambda x: x.to(boolean),
    lambda x: x.to(i64).to(boolean),
)
two(
    "bool of a float that is never 0",
    "x is not 0 as captured",
    lambda x: x.to(boolean),
    lambda x: x.ones_like().to(boolean),
    NOT_EQUIVALENT,
)
equal("gt as not le", lambda x: x > 0.0, lambda x: ~(x <= 0.0), "NaN aside")
equal("any as a sum", lambda x: (x > 0.5).any(1), lambda x: (x > 0.5).sum(1) > 0)
equal("all as not any", lambda x: (x > 0.5).all(1), lambda x: ~(x <= 0.5).any(1))
two("any for all", "", lambda x: (x > 0.5).any(1), lambda x: (x > 0.5).all(1))
two(
    "any for all, all true",
    "all captured values are above",
    lambda x: (x > 0.5).any(1),
    lambda x: (x > 0.5).all(1),
    shift=100,
)
equal("float to int", lambda x: x.to(i64), lambda x: x.trunc().to(i64))
two("float to int by floor", "negative numbers", lambda x: x.to(i64), lambda x: x.floor().to(i64))
two(
    "float to int by floor, positive",
    "negative numbers",
    lambda x: x.to(i64),
    lambda x: x.floor().to(i64),
    shift=50,
)
two("float to int by round", "", lambda x: x.to(i64), lambda x: x.round().to(i64))
two(
    "float through int", "x is whole as captured", same, lambda x: x.to(i64).to(f32), at=lambda i: i
)
two("argmax of the negated", "", lambda x: x.argmax(-1), lambda x: (-x).argmax(-1))
equal(
    "argmax of an increasing function", lambda x: x.argmax(-1), lambda x: (x * 2.0 + 1.0).argmax(-1)
)
equal(
    "argmax of softmax",
    lambda x: x.argmax(-1),
    lambda x: x.softmax(-1).argmax(-1),
    "ties aside",
    shape=(4, 8),
)
equal("argmin of the negated", lambda x: x.argmin(-1), lambda x: (-x).argmax(-1))
equal("argmax as max", lambda x: x.argmax(-1), lambda x: x.max(-1)[1])
equal("ceil by floor", lambda x: x.ceil(), lambda x: -(-x).floor())
two("ceil and floor plus 1", "integers", lambda x: x.ceil(), lambda x: x.floor() + 1)

# ---- captured in bfloat16 and float16; casts ----


def coarse(name, *shape):
    """Values that every floating dtype holds exactly."""
    return Data(
        shape, [max(-2.0, min(2.0, round(32 * v) / 32)) for v in values(name, *shape).values]
    )


for _d in bf16, f16:
    pair(
        "%s linear" % _d,
        EQUIVALENT,
        "mm",
        lambda g, d=_d: g.x(4, 8, dtype=d).linear(
            g.param("w", 6, 8, dtype=d), g.param("b", 6, dtype=d)
        ),
        lambda g, d=_d: g.param("b", 6, dtype=d).addmm(
            g.x(4, 8, dtype=d), g.param("w", 6, 8, dtype=d).t()
        ),
    )
    pair(
        "%s norm in float32" % _d,
        EQUIVALENT,
        "casts are identities",
        lambda g, d=_d: g.param("w", 8, dtype=d) * rms(g.x(4, 8, dtype=d).to(f32)).to(d),
        lambda g, d=_d: (rms(g.x(4, 8, dtype=d).to(f32)) * g.param("w", 8, dtype=d).to(f32)).to(d),
    )
    pair(
        "%s softmax in float32" % _d,
        EQUIVALENT,
        "casts are identities",
        lambda g, d=_d: g.x(4, 8, dtype=d).softmax(-1, f32).to(d),
        lambda g, d=_d: g.x(4, 8, dtype=d).softmax(-1),
    )
    pair(
        "%s one more factor" % _d,
        DIFFERENT,
        "1.0009765625 is 1 in bfloat16",
        lambda g, d=_d: g.x(4, 8, dtype=d) * 1.0009765625,
        lambda g, d=_d: g.x(4, 8, dtype=d) * 1.0,
    )
    pair(
        "%s eps" % _d,
        DIFFERENT,
        "1e-6 and 1e-5 are hidden by rounding",
        lambda g, s, d=_d: rms(g.x(4, 8, dtype=d), 1e-5 if s else 1e-6),
    )
    pair(
        "%s fused gate and up" % _d,
        EQUIVALENT,
        "",
        lambda g, d=_d: (
            lambda x: (
                x.linear(g.param("gate", 6, 8, dtype=d)).silu()
                * x.linear(g.param("up", 6, 8, dtype=d))
            )
        )(g.x(4, 8, dtype=d)),
        lambda g, d=_d: (lambda h: h[0].silu() * h[1])(
            g.x(4, 8, dtype=d)
            .linear(g.param("gu", join(values("gate", 6, 8), values("up", 6, 8)), dtype=d))
            .chunk(2, -1)
        ),
    )
    pair(
        "%s mask of finfo.min" % _d,
        EQUIVALENT,
        "-inf",
        lambda g, d=_d: (lambda s: s.masked_fill(~below(g), -math.inf).softmax(-1))(
            g.x(T, T, dtype=d)
        ),
        lambda g, d=_d: (
            lambda s: s.masked_fill(
                ~below(g), -65504.0 if d == f16 else -3.3895313892515355e38
            ).softmax(-1)
        )(g.x(T, T, dtype=d)),
    )
    pair(
        "%s cast to float32 and back" % _d,
        EQUIVALENT,
        "casts are identities",
        lambda g, d=_d: g.x(4, 8, dtype=d).exp(),
        lambda g, d=_d: g.x(4, 8, dtype=d).to(f32).exp().to(d),
    )
    pair(
        "%s inside float32" % _d,
        EQUIVALENT,
        "casts are identities",
        lambda g, d=_d: g.x(4, 8).to(d).exp().to(f32),
        lambda g: g.x(4, 8).exp(),
    )
    pair(
        "%s weights and the same in float32" % _d,
        EQUIVALENT,
        "one side keeps them in float32",
        lambda g, d=_d: g.x(4, 8).linear(g.param("w", coarse("w", 6, 8), dtype=d).to(f32)),
        lambda g: g.x(4, 8).linear(g.param("w", coarse("w", 6, 8))),
    )
pair(
    "float64 captured",
    EQUIVALENT,
    "",
    lambda g: g.x(4, 8, dtype=f64).linear(g.param("w", 6, 8, dtype=f64)),
    lambda g: g.x(4, 8, dtype=f64).mm(g.param("w", 6, 8, dtype=f64).t()),
)
pair(
    "a scalar in bfloat16",
    DIFFERENT,
    "sqrt(48) is 6.9375 there",
    lambda g: g.x(4, 8) * 48**0.5,
    lambda g: g.x(4, 8) * g.const("normalizer", Data((), [48**0.5]), bf16).to(f32),
)
pair(
    "a scalar in float32",
    EQUIVALENT,
    "2 ulp of float32 are storage",
    lambda g: g.x(4, 8) * g.full((), 0.1),
    lambda g: g.x(4, 8) * g.const("tenth", Data((), [0.1])),
)
pair(
    "a scalar as a number",
    EQUIVALENT,
    "0.5 is 0.5",
    lambda g: g.x(4, 8) * 0.5,
    lambda g: g.x(4, 8) * g.const("half", Data((), [0.5])),
)
pair(
    "a table in bfloat16, cast and multiplied",
    EQUIVALENT,
    "its values are float32's, its dtype is not",
    lambda g, s: (
        g.x(4, 8)
        * (lambda f, t: f.matmul(t) if s else f * t)(
            g.const("f", Data((4, 1), [1.0, 0.5, 0.25, 0.125]), bf16).to(f32),
            g.arange(8).to(f32).view(1, 8),
        )
    ),
)
pair(
    "a scalar one ulp off",
    NOT_EQUIVALENT,
    "1 and 1.0078125 in bfloat16",
    lambda g, s: (
        g.x(4, 8, dtype=bf16) * g.const("c", Data((8,), [1.0078125 if s else 1.0] * 8), bf16)
    ),
)
pair(
    "positions in bfloat16",
    DIFFERENT,
    "above 256 they are rounded",
    lambda g, s: g.x(300) * g.arange(300).to(bf16 if s else f32).to(f32).mul(0.01).cos(),
)
pair(
    "positions in bfloat16, few",
    EQUIVALENT,
    "below 256 they are exact: at the captured shape",
    lambda g, s: g.x(30) * g.arange(30).to(bf16 if s else f32).to(f32).mul(0.01).cos(),
)

# ---- tables, positions, vocabularies ----


def table(g, rows=16, name="e"):
    return g.param(name, rows, 4)


def tokens(g):
    return g.ints("input_ids", IDS, 16)


pair(
    "embedding and one-hot",
    EQUIVALENT,
    "one_hot(i) E",
    lambda g: table(g).embedding(tokens(g)),
    lambda g: tokens(g).one_hot(16).to(f32).mm(table(g)),
)
pair(
    "embedding and one-hot of a stored table",
    EQUIVALENT,
    "both sides have it, so that ids are free",
    lambda g: g.buffer("b", 16, 4).embedding(tokens(g)),
    lambda g: tokens(g).one_hot(16).to(f32).mm(g.buffer("b", 16, 4)),
)
pair(
    "embedding and one-hot of other ids of a stored table",
    DIFFERENT,
    "in a row that no captured id reads",
    lambda g: g.buffer("b", 16, 4).embedding(tokens(g)),
    lambda g: tokens(g).clamp(0, 14).one_hot(16).to(f32).mm(g.buffer("b", 16, 4)),
)
pair(
    "embedding and index_select",
    EQUIVALENT,
    "",
    lambda g: table(g).embedding(tokens(g)),
    lambda g: table(g).index_select(0, tokens(g)),
)
pair(
    "embedding and index",
    EQUIVALENT,
    "",
    lambda g: table(g).embedding(tokens(g)),
    lambda g: table(g).index(tokens(g)),
)
pair(
    "embedding and gather",
    EQUIVALENT,
    "",
    lambda g: table(g).embedding(tokens(g)),
    lambda g: table(g).gather(0, tokens(g).unsqueeze(1).expand(8, 4)),
)
pair(
    "embedding scaled",
    EQUIVALENT,
    "before and after",
    lambda g: table(g).embedding(tokens(g)) * 2.0,
    lambda g: (table(g) * 2.0).embedding(tokens(g)),
)
pair(
    "embedding unscaled",
    DIFFERENT,
    "",
    lambda g: table(g).embedding(tokens(g)) * 2.0,
    lambda g: table(g).embedding(tokens(g)),
)
pair(
    "embedding of [1, T]",
    EQUIVALENT,
    "",
    lambda g: table(g).embedding(tokens(g)).unsqueeze(0),
    lambda g: table(g).embedding(tokens(g).unsqueeze(0)),
)
pair("gather off by one", DIFFERENT, "", lambda g, s: table(g, 20).embedding(tokens(g) + s))
pair(
    "gather off by one, at times past the table",
    DIFFERENT,
    "no token as captured, but one that is drawn may be the last row",
    lambda g, s: (lambda i: table(g).embedding(i + s if s else i))(
        g.ints("i", [3, 9, 1, 14, 7, 2, 11, 5] * 8)
    ),
)
pair(
    "two embeddings added",
    EQUIVALENT,
    "in another order",
    lambda g, s: (lambda a, b: b + a if s else a + b)(
        table(g).embedding(tokens(g)), table(g, 8, "p").embedding(g.arange(8))
    ),
)
pair(
    "two embeddings exchanged",
    DIFFERENT,
    "tables of one shape",
    lambda g, s: (
        lambda a, b, i: (b if s else a).embedding(i) + (a if s else b).embedding(g.arange(8))
    )(table(g), table(g, 16, "p"), tokens(g)),
)
pair(
    "two embeddings from one table",
    EQUIVALENT,
    "tables joined",
    lambda g: table(g).embedding(tokens(g)) + table(g, 8, "p").embedding(g.arange(8)),
    lambda g: (lambda t: t.embedding(tokens(g)) + t.embedding(g.arange(8) + 16))(
        g.param("t", join(values("e", 16, 4), values("p", 8, 4)))
    ),
)
pair(
    "positions by cumsum",
    EQUIVALENT,
    "cumsum of ones",
    lambda g: table(g, 8, "p").embedding(g.arange(8)),
    lambda g: table(g, 8, "p").embedding(g.full((8,), 1, i64).cumsum(0) - 1),
)
pair(
    "positions stored",
    EQUIVALENT,
    "a buffer of them, sliced",
    lambda g: table(g, 8, "p").embedding(g.arange(8)),
    lambda g: table(g, 8, "p").embedding(
        g.leaf("buffer", "position_ids", Data((1, 16), range(16)), i64).slice(1, 0, 8).squeeze(0)
    ),
)
pair(
    "positions stored, from 1",
    DIFFERENT,
    "one off",
    lambda g: table(g, 16, "p").embedding(g.arange(8)),
    lambda g: table(g, 16, "p").embedding(
        g.leaf("buffer", "position_ids", Data((1, 16), range(16)), i64).slice(1, 1, 9).squeeze(0)
    ),
)
pair(
    "positions as an input",
    "equivalent:input",
    "kept as captured",
    lambda g: table(g, 8, "p").embedding(g.arange(8)) + table(g).embedding(tokens(g)),
    lambda g: (
        table(g, 8, "p").embedding(g.ints("positions", range(8))) + table(g).embedding(tokens(g))
    ),
)
pair(
    "positions by slicing the table",
    EQUIVALENT,
    "rows 0..7",
    lambda g: table(g, 16, "p").embedding(g.arange(8)),
    lambda g: table(g, 16, "p").slice(0, 0, 8),
)
pair(
    "positions with an offset of 2",
    EQUIVALENT,
    "OPT's table: the loader dropped two rows",
    lambda g: table(g, 10, "p").embedding(g.arange(8) + 2),
    lambda g: g.param("p", values("p", 10, 4).rows(2, 10)).embedding(g.arange(8)),
)
pair(
    "vocabulary padded",
    EQUIVALENT,
    "rows of zeros, logits cut",
    lambda g: (lambda e: e.embedding(tokens(g)).linear(e))(table(g)),
    lambda g: (lambda e: e.embedding(tokens(g)).linear(e).slice(-1, 0, 16))(
        g.param("e", values("e", 16, 4).pad(4))
    ),
)
pair(
    "vocabulary padded with other values",
    EQUIVALENT,
    "what is cut away does not matter",
    lambda g: (lambda e: e.embedding(tokens(g)).linear(e))(table(g)),
    lambda g: (lambda e: e.embedding(tokens(g)).linear(e).slice(-1, 0, 16))(
        g.param("e", values("e", 16, 4).pad(4, 0.25))
    ),
)
pair(
    "vocabulary padded in front",
    DIFFERENT,
    "rows moved",
    lambda g: (lambda e: e.embedding(tokens(g)).linear(e))(table(g)),
    lambda g: (lambda e: e.embedding(tokens(g)).linear(e).slice(-1, 0, 16))(
        g.param("e", join(Data((4, 4), [0.0] * 16), values("e", 16, 4)))
    ),
)
pair(
    "vocabulary padded, logits cut in front",
    DIFFERENT,
    "",
    lambda g: (lambda e: e.embedding(tokens(g)).linear(e))(table(g)),
    lambda g: (lambda e: e.embedding(tokens(g)).linear(e).slice(-1, 4))(
        g.param("e", values("e", 16, 4).pad(4))
    ),
)
pair(
    "tied weights",
    EQUIVALENT,
    "one leaf on both sides",
    lambda g: (lambda e: e.embedding(tokens(g)).linear(e))(table(g)),
    lambda g: (lambda e: e.embedding(tokens(g)).mm(e.t()))(g.param("wte", values("e", 16, 4))),
)
pair(
    "tied weights transposed",
    DIFFERENT,
    "a square table",
    lambda g, s: (
        lambda e: e.embedding(g.ints("input_ids", [3, 1, 2], 4)).linear(e.t() if s else e)
    )(g.param("e", 4, 4)),
)
pair(
    "dropout outside training",
    EQUIVALENT,
    "the identity",
    lambda g: g.x(4, 8).exp(),
    lambda g: g.x(4, 8).dropout(0.5, False).exp(),
)
pair(
    "dropout of 0",
    EQUIVALENT,
    "the identity",
    lambda g: g.x(4, 8).exp(),
    lambda g: g.x(4, 8).dropout(0.0, False).exp(),
)
pair(
    "mask of padding used and not",
    DIFFERENT,
    "a captured padding mask with a 0",
    lambda g: (lambda x, m: x * m.to(f32).unsqueeze(-1))(
        g.x(4, 8), g.ints("attention_mask", [1, 1, 1, 0])
    ),
    lambda g: (lambda x, m: x * m.ones_like().to(f32).unsqueeze(-1))(
        g.x(4, 8), g.ints("attention_mask", [1, 1, 1, 0])
    ),
)
pair(
    "mask of ones ignored",
    NOT_EQUIVALENT + "|equivalent:input",
    "equal only where the mask is kept",
    lambda g: (lambda x, m: x * m.to(f32).unsqueeze(-1))(
        g.x(4, 8), g.ints("attention_mask", [1] * 4)
    ),
    lambda g: (lambda x, m: x * m.ones_like().to(f32).unsqueeze(-1))(
        g.x(4, 8), g.ints("attention_mask", [1] * 4)
    ),
)

# ---- zero-size tensors and scalars ----

equal("empty tensors", lambda x: x.exp(), lambda x: x.sin(), "no element differs", shape=(0, 8))
equal(
    "cat with an empty tensor", lambda x: x.exp(), lambda x: x.g.cat([x, x.slice(0, 0, 0)], 0).exp()
)
equal("empty slice in front", lambda x: x.exp(), lambda x: x.g.cat([x.slice(1, 0, 0), x], 1).exp())
equal("sum of nothing", lambda x: x.sum(0), lambda x: x.g.zeros(8), shape=(0, 8))
pair(
    "product over nothing",
    EQUIVALENT,
    "zeros",
    lambda g: g.x(4, 0).mm(g.param("w", 0, 6)),
    lambda g: g.zeros(4, 6) + g.x(4, 0).sum(1, True),
)
equal("scalar input", lambda x: x * 3.0, lambda x: x + x * 2.0, shape=())
two("scalar input, another factor", "", lambda x: x * 3.0, lambda x: x + x, shape=())

# ---- what only rounding tells apart: never `different` ----


def rounds(name, left, right, why="equal over the reals", **how):
    two("rounding: " + name, why, left, right, NOT_DIFFERENT, **how)


rounds("(x + 1e9) - 1e9", same, lambda x: (x + 1e9) - 1e9)
two("a millionth beside what rounding makes", "", same, lambda x: ((x + 1e3) - 1e3) + x * 1e-6)
two(
    "a thousandth of what log cannot see",
    "float64 has nothing of it",
    lambda x: (x * 1e-20).log1p(),
    lambda x: (x * 1.001e-20).log1p(),
)
rounds(
    "log of nearly one",
    lambda x: (x.tanh() * 1e-20 + 1.0).log(),
    lambda x: (x.tanh() * 1e-20).log1p(),
)
rounds("(x + 1e12) - 1e12", same, lambda x: (x + 1e12) - 1e12)
rounds("(x + 1e13) - 1e13, then exp", lambda x: x.exp(), lambda x: ((x + 1e13) - 1e13).exp())
rounds("sum from the other end", lambda x: x.sum(-1), lambda x: x.flip(-1).sum(-1), shape=(4, 64))
rounds(
    "sum minus sum",
    lambda x: (x.sum(-1) - x.flip(-1).sum(-1)) * 1e12,
    lambda x: x.g.zeros(4),
    shape=(4, 64),
)
rounds(
    "cumsum of large and small",
    lambda x: (x * 1e10).cumsum(-1) - (x * 1e10).cumsum(-1).flip(-1).flip(-1),
    lambda x: x.zeros_like(),
    shape=(4, 64),
)
rounds(
    "naive var, far from 0",
    lambda x: x.var(-1),
    lambda x: (x * x).mean(-1) - x.mean(-1).square(),
    shift=1e4,
)
rounds(
    "naive logsumexp of large numbers",
    lambda x: x.logsumexp(-1),
    lambda x: x.exp().sum(-1).log(),
    "exp overflows",
    shift=800,
)
rounds(
    "naive softmax of large numbers",
    lambda x: x.softmax(-1),
    lambda x: x.exp() / x.exp().sum(-1, True),
    "exp overflows",
    shift=800,
)
rounds(
    "log of softmax",
    lambda x: x.log_softmax(-1),
    lambda x: x.softmax(-1).log(),
    "softmax underflows",
    scale=1000,
)
rounds("1 - sigmoid", lambda x: (-x).sigmoid(), lambda x: 1.0 - x.sigmoid(), shift=40)
rounds("log1p", lambda x: x.log1p(), lambda x: (x + 1.0).log(), scale=1e-12)
rounds("expm1", lambda x: x.expm1(), lambda x: x.exp() - 1.0, scale=1e-12)
rounds(
    "argmax of a saturated sigmoid",
    lambda x: x.argmax(-1),
    lambda x: x.sigmoid().argmax(-1),
    shift=100,
)
rounds(
    "argmax of a saturated softmax",
    lambda x: x.argmax(-1),
    lambda x: x.softmax(-1).argmax(-1),
    scale=1000,
)
rounds(
    "topk of a saturated softmax",
    lambda x: x.topk(3)[1],
    lambda x: x.softmax(-1).topk(3)[1],
    scale=1000,
)
rounds("topk of equal numbers", lambda x: x.topk(3)[1], lambda x: x.softmax(-1).topk(3)[1], at=1)
rounds("floor(x / 3 * 3)", lambda x: x.floor(), lambda x: (x / 3.0 * 3.0).floor(), at=lambda i: i)
rounds("floor(x / 49 * 49)", lambda x: x.floor(), lambda x: (x / 49.0 * 49.0).floor(), at=49)
rounds(
    "round of an exact half",
    lambda x: (x * 0.1).round(),
    lambda x: (x / 10.0).round(),
    at=lambda i: 5 * i,
)
rounds("(x + 0.1) - 0.1 > 0", lambda x: x > 0.0, lambda x: ((x + 0.1) - 0.1) > 0.0, at=0)
rounds(
    "sqrt(x^2 + 1) - x",
    lambda x: ((x * x + 1.0).sqrt() + x).reciprocal(),
    lambda x: (x * x + 1.0).sqrt() - x,
    shift=1e6,
)
rounds("difference of squares", lambda x: (x - 1.0) * (x + 1.0), lambda x: x * x - 1.0, at=1)
rounds(
    "(1 - cos x) / x^2",
    lambda x: (1.0 - x.cos()) / (x * x),
    lambda x: (x * 0.5).sin().square() * 2.0 / (x * x),
    scale=1e-7,
)
rounds(
    "tanh by exp",
    lambda x: x.tanh(),
    lambda x: (x.exp() - (-x).exp()) / (x.exp() + (-x).exp()),
    shift=400,
)
rounds(
    "layer_norm of a constant row",
    lambda x: x.layer_norm(eps=1e-12),
    lambda x: (x - x.mean(-1, True)) * (x.var(-1, True) + 1e-12).rsqrt(),
    at=0.3,
)
rounds(
    "rms_norm of a constant row, tiny eps",
    lambda x: (x - x.mean(-1, True)).rms_norm(None, 1e-20),
    lambda x: (lambda d: d * (d.square().mean(-1, True) + 1e-20).rsqrt())(x - x.sum(-1, True) / 8),
    at=0.3,
)
rounds(
    "sin of a large number",
    lambda x: (x * 1e7).sin(),
    lambda x: (x * 5e6).sin() * (x * 5e6).cos() * 2.0,
)
rounds("product of a large and a small number", same, lambda x: x * 1e200 * 1e-200)
rounds("product that overflows", same, lambda x: x * 1e300 * 1e300 * 1e-300 * 1e-300)
rounds(
    "powers that underflow", lambda x: x.square(), lambda x: (x * 1e-200).square() * 1e200 * 1e200
)
pair(
    "rounding: products reassociated",
    NOT_DIFFERENT,
    "with large weights",
    lambda g: g.x(4, 8).mm(g.param("a", 8, 8, scale=1e6)).mm(g.param("b", 8, 6)),
    lambda g: g.x(4, 8).mm(g.param("a", 8, 8, scale=1e6).mm(g.param("b", 8, 6))),
)

# ---- other sizes of the same thing ----

for _a, _b in (1e-5, 1e-6), (1e-8, 1e-9), (1e-12, 1e-6), (1e-12, 1e-13):
    two(
        "rms_norm eps %g and %g" % (_a, _b),
        "",
        lambda x, e=_a: rms(x, e),
        lambda x, e=_b: rms(x, e),
    )
for _e in 1e-7, 1e-9:
    two(
        "a factor of 1 + %g" % _e,
        "",
        lambda x: x.tanh(),
        lambda x, e=_e: (x * (1 + e)).tanh(),
        NOT_EQUIVALENT,
    )
    two("a term of %g" % _e, "", lambda x: x.tanh(), lambda x, e=_e: x.tanh() + e, NOT_EQUIVALENT)
two(
    "an outlier hides the rest",
    "one column is 1e11 times the others",
    lambda x: x * x.g.const("c", [1e11] + [1.0] * 7),
    lambda x: (
        x.g.cat([x.slice(1, 0, 1), x.slice(1, 1).tanh()], 1) * x.g.const("c", [1e11] + [1.0] * 7)
    ),
)
two(
    "routing weights' eps",
    "1e-20 against 1e-2",
    lambda x: x / (x.abs().sum(-1, True) + 1e-20),
    lambda x: x / (x.abs().sum(-1, True) + 1e-2),
)
two(
    "normalise's eps",
    "max(norm, eps)",
    lambda x: x / x.norm(-1, True).clamp_min(1e-12),
    lambda x: x / x.norm(-1, True).clamp_min(0.1),
)

# ---- refused: one line, exit status 2 ----


def refused(name, why, left, right=None, **how):
    two("refused: " + name, why, left, right or left, ERROR, **how)


refused("bernoulli", "random", lambda x: x * x.sigmoid().op("bernoulli", [x.sigmoid()]), same)
refused("dropout in training", "random", lambda x: x.dropout(0.5, True), same)
refused("dropout in training on both sides", "random", lambda x: x.dropout(0.5, True))
refused("rand_like", "random", lambda x: x + x.op("rand_like", [x]), same)
refused(
    "randn on both sides", "random", lambda x: x + x.g.op("randn", [[4, 8]], [((4, 8), f32)])[0]
)
refused(
    "multinomial",
    "random",
    lambda x: x.softmax(-1).op("multinomial", [x.softmax(-1), 1], (4, 1), i64),
)
refused(
    "add_ without functionalized",
    "writes to its argument",
    lambda x: x.op("add_.Tensor", [x, 1.0]),
    lambda x: x + 1.0,
)
refused(
    "copy_ without functionalized",
    "writes to its argument",
    lambda x: x.exp().op("copy_", [x.exp(), x]),
    same,
)
refused("an operator that nobody knows", "", lambda x: x.op("no_such_operator", [x]), same)
refused(
    "an operator of an unknown library",
    "",
    lambda x: x.op("mylib::fused", [x]),
    lambda x: x.op("mylib::fused", [x]),
)
refused("shapes that do not fit", "both sides fail", lambda x: x.op("mm", [x, x]))
refused(
    "a shape that is not what the operator gives",
    "",
    lambda x: x.op("exp", [x], (8, 4)),
    lambda x: x.exp(),
)
refused(
    "an index out of range on both sides",
    "row 9 of 4",
    lambda x: x.index_select(0, x.g.const("i", [9], i64)),
)
refused(
    "unspecified contents in the output",
    "empty",
    lambda x: x + x.g.empty(4, 8),
    lambda x: x + x.g.empty(4, 8),
)
pair(
    "unspecified contents unused",
    EQUIVALENT,
    "copied over",
    lambda g: g.x(4, 8).exp(),
    lambda g: g.empty(4, 8).op("copy", [g.empty(4, 8), g.x(4, 8)]).exp(),
)
pair(
    "an index out of range on one side",
    NOT_EQUIVALENT,
    "row 9 of 4: that side alone fails",
    lambda g: g.x(4, 8).index_select(0, g.const("i", [3], i64)),
    lambda g: g.x(4, 8).index_select(0, g.const("i", [9], i64)),
)
two(
    "nothing but NaN",
    "nothing can be seen",
    lambda x: x * math.nan,
    lambda x: x.exp() * math.nan,
    "undecided|error",
)
two(
    "nothing but infinity",
    "nothing can be seen",
    lambda x: x.exp() * math.inf,
    lambda x: x.exp().exp() * math.inf,
    NOT_DIFFERENT + "|error",
)
