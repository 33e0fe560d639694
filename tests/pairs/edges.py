"""Differences at single points: where an operator jumps, where one graph is undefined, where
integers or memory end. A pair that must not be equivalent stands beside one that looks like it and
is."""

from dsl import (
    DIFFERENT,
    EQUIVALENT,
    ERROR,
    NOT_EQUIVALENT,
    PAIRS,
    Data,
    boolean,
    f32,
    i8,
    i32,
    i64,
    pair,
    values,
)

INF = float("inf")


def both(name, expected, why, f, shape=(4, 8)):
    """f(x, side)"""
    pair(name, expected, why, lambda g: f(g.x(*shape), 0), lambda g: f(g.x(*shape), 1))


def half_up(x):
    return x.add(0.5).floor()


# ---- ties of roundings and comparisons ----

for _s in (0.1, 3.0, 127.0):
    both(
        "round and floor of a quotient by %g" % _s,
        NOT_EQUIVALENT,
        "odd halves of the divisor",
        lambda x, s, d=_s: x.div(d).round() if s else half_up(x.div(d)),
    )
both(
    "round of a quotient, negated",
    EQUIVALENT,
    "it is odd",
    lambda x, s: x.div(3.0).neg().round().neg() if s else x.div(3.0).round(),
)
both(
    "half up and half down",
    NOT_EQUIVALENT,
    "halves",
    lambda x, s: half_up(x.neg()).neg() if s else half_up(x),
)
both(
    "round of a sigmoid",
    NOT_EQUIVALENT,
    "0",
    lambda x, s: x.sigmoid().round() if s else (x >= 0.0).to(f32),
)
both(
    "sigmoid above a half, and at it",
    NOT_EQUIVALENT,
    "0",
    lambda x, s: (x.sigmoid() > 0.5 if s else x >= 0.0).to(f32),
)
both(
    "exponential above 1, and at it",
    NOT_EQUIVALENT,
    "0",
    lambda x, s: x.exp() > 1.0 if s else x.exp() >= 1.0,
)
both(
    "sum above a quarter, and at it",
    NOT_EQUIVALENT,
    "a quarter",
    lambda x, s: x.sum(-1) > 0.25 if s else x.sum(-1) >= 0.25,
)
both(
    "mean above a literal, and at it",
    NOT_EQUIVALENT,
    "0.3",
    lambda x, s: x.mean(-1) > 0.3 if s else x.mean(-1) >= 0.3,
)
both(
    "softmax above a half, and at it",
    NOT_EQUIVALENT,
    "two of eight",
    lambda x, s: x.softmax(-1) > 0.5 if s else x.softmax(-1) >= 0.5,
)
both(
    "affine above a literal, and at it",
    NOT_EQUIVALENT,
    "0.7",
    lambda x, s: (lambda y: y > 0.7 if s else y >= 0.7)(
        x.mul(x.g.param("w", 8)).add(x.g.param("b", 8))
    ),
)
both(
    "affine above a literal, and below it",
    EQUIVALENT,
    "one comparison, seen from both sides",
    lambda x, s: (lambda y: (y > 0.7) if s else (y <= 0.7).logical_not())(
        x.mul(x.g.param("w", 8)).add(x.g.param("b", 8))
    ),
)
both(
    "quantised by row, half up",
    NOT_EQUIVALENT,
    "odd halves of a row's scale",
    lambda x, s: (lambda y: y.round() if s else half_up(y))(
        x.div(x.abs().amax(-1, True).div(127.0))
    ),
)
both(
    "sign behind a difference",
    NOT_EQUIVALENT,
    "0.3",
    lambda x, s: x.sub(0.3).sign() if s else (x >= 0.3).where(1.0, x.zeros_like().sub(1.0)),
)
both(
    "bucketize of a product, the other side",
    NOT_EQUIVALENT,
    "a boundary",
    lambda x, s: x.g.op(
        "bucketize.Tensor",
        [x.mul(3.0), x.g.const("bounds", [-1.5, 0.0, 1.25])],
        [(x.shape, i64)],
        {"right": bool(s)},
    )[0],
)
both(
    "trunc and a cast to int32",
    NOT_EQUIVALENT,
    "from 2^31 on",
    lambda x, s: x.to(i32).to(f32) if s else x.trunc(),
)
both(
    "trunc and a cast to int64",
    NOT_EQUIVALENT,
    "from 2^63 on",
    lambda x, s: x.to(i64).to(f32) if s else x.trunc(),
)
both(
    "divided by 0 and by -0",
    NOT_EQUIVALENT,
    "another infinity",
    lambda x, s: x.div(-0.0 if s else 0.0),
)

# ---- where one graph is undefined ----

both(
    "scale by row, guarded against 0",
    NOT_EQUIVALENT,
    "a row of zeros",
    lambda x, s: (lambda a: x.div(a.eq(0.0).where(1.0, a) if s else a))(x.abs().amax(-1, True)),
)
both(
    "root, guarded against NaN",
    NOT_EQUIVALENT,
    "negative numbers",
    lambda x, s: (lambda y: y.isnan().where(0.0, y) if s else y)(x.sqrt()),
)
both(
    "logarithm, guarded within",
    EQUIVALENT,
    "both are 0 where it is undefined",
    lambda x, s: (x > 0.0).where((x > 0.0).where(x, 1.0).log() if s else x.log(), 0.0),
)
both(
    "logarithm, guarded within, another number",
    NOT_EQUIVALENT,
    "1e-3 in place of 0",
    lambda x, s: (x > 0.0).where(
        (x > 0.0).where(x, 1.0).log() if s else x.log(), 1e-3 if s else 0.0
    ),
)
both(
    "rows masked wholly, guarded",
    NOT_EQUIVALENT,
    "NaN of no element",
    lambda x, s: (lambda p: p.nan_to_num() if s else p)(
        x.masked_fill(x.g.param("m", 4, 8) > 1.5, -INF).softmax(-1)
    ),
)
both(
    "nan_to_num of numbers",
    EQUIVALENT,
    "there is no NaN",
    lambda x, s: x.sigmoid().nan_to_num() if s else x.sigmoid(),
)
both(
    "nan_to_num of a logarithm",
    NOT_EQUIVALENT,
    "negative numbers",
    lambda x, s: x.log().nan_to_num() if s else x.log(),
)
both(
    "log of exp, exp of log",
    NOT_EQUIVALENT,
    "negative numbers have no logarithm",
    lambda x, s: x.exp().log() if s else x.log().exp(),
)
both(
    "eps within a root and behind it",
    NOT_EQUIVALENT,
    "rows of 1e-6",
    lambda x, s: (lambda v: v.add(1e-12).rsqrt() if s else v.sqrt().add(1e-12).reciprocal())(
        x.square().mean(-1, True)
    ),
)
both(
    "weights divided by their sum and 1e-6",
    NOT_EQUIVALENT,
    "the sixth digit",
    lambda x, s: (
        (lambda p: p.div(p.sum(-1, True).add(1e-6)))(x.softmax(-1).topk(2)[0])
        if s
        else x.topk(2)[0].softmax(-1)
    ),
)

# ---- integers ----


def ints(name, expected, why, f):
    pair(name, expected, why, lambda g, s: f(g.ints("n", [3, 1, 4, 1, 5, 9, 2, 6], 100), s))


ints(
    "int square in int32",
    NOT_EQUIVALENT,
    "it wraps",
    lambda n, s: (lambda m: m.mul(m).to(i64) if s else n.mul(n))(n.to(i32)),
)
ints(
    "int running sum in int32",
    NOT_EQUIVALENT,
    "it wraps",
    lambda n, s: n.op("cumsum", [n, 0], dtype=i32, dtype_=i32).to(i64) if s else n.cumsum(0),
)
ints(
    "int shift, division towards 0",
    NOT_EQUIVALENT,
    "negative numbers",
    lambda n, s: n.rshift(2) if s else n.div(4, "trunc"),
)
ints(
    "int rounded up, one more",
    NOT_EQUIVALENT,
    "multiples of 4",
    lambda n, s: n.add(4 if s else 3).div(4, "floor"),
)
ints(
    "int rounded up, twice negated",
    NOT_EQUIVALENT,
    "the largest ones wrap",
    lambda n, s: n.neg().div(4, "floor").neg() if s else n.add(3).div(4, "floor"),
)
ints(
    "int bounds in the wrong order",
    NOT_EQUIVALENT,
    "the upper one counts",
    lambda n, s: n.clamp(5, 3) if s else n.clamp(3, 5),
)
pair(
    "byte quantised, out of its range",
    NOT_EQUIVALENT,
    "128 is -128",
    lambda g, s: (
        lambda x: x.div(x.abs().amax(-1, True).div(128.0 if s else 127.0)).round().to(i8)
    )(g.x(4, 8)),
)

# ---- writes and memory ----


def cached(name, expected, why, f):
    """f(cache, new rows, their slots, side)"""
    pair(
        name,
        expected,
        why,
        lambda g, s: f(g.x(8, 4, name="cache"), g.x(3, 4), g.ints("slots", [5, 2, 7], 8), s),
    )


def put(c, i, v, add=False):
    return c.op("index_put", [c, [i], v, add])


cached(
    "slots in another order",
    NOT_EQUIVALENT,
    "two rows may have one slot",
    lambda c, v, i, s: put(c, i.flip(0), v.flip(0)) if s else put(c, i, v),
)
cached(
    "slots added and written",
    NOT_EQUIVALENT,
    "two rows may have one slot",
    lambda c, v, i, s: put(c.zeros_like(), i, v, bool(s)),
)
cached(
    "slots written, and a slice",
    EQUIVALENT,
    "a range",
    lambda c, v, i, s: put(c, c.g.arange(2, 5), v) if s else c.op("slice_scatter", [c, v, 0, 2, 5]),
)
cached(
    "slots written, and the next slice",
    DIFFERENT,
    "one row on",
    lambda c, v, i, s: put(c, c.g.arange(2, 5), v) if s else c.op("slice_scatter", [c, v, 0, 3, 6]),
)
both(
    "strided reading of a transposed tensor",
    ERROR,
    "its strides are not captured",
    lambda x, s: (lambda y: y.op("as_strided", [y, [4, 8], [8, 1]], (4, 8)))(
        x.exp().t() if s else x.exp().t().contiguous()
    ),
)


def unordered(x):
    x.g.nodes[-1]["strided"] = True
    return x


both(
    "strided reading of a leaf in another order",
    ERROR,
    "its strides are not captured",
    lambda x, s: unordered(x).op("as_strided", [x, [4, 8], [8, 1]], (4, 8)) if s else x,
)
both(
    "strided reading of a copy of a leaf in another order",
    EQUIVALENT,
    "a copy lies row by row",
    lambda x, s: (
        (lambda y: y.op("as_strided", [y, [4, 8], [8, 1]], (4, 8)))(unordered(x).contiguous())
        if s
        else x
    ),
)
both(
    "strided reading of a whole",
    EQUIVALENT,
    "it is a transpose",
    lambda x, s: x.op("as_strided", [x, [8, 4], [1, 8]], (8, 4)) if s else x.t(),
)

# ---- leaves ----


def tied(s, wrong=False):
    """Embedding and head: one weight on the left, and on the right two, one of them transposed."""

    def f(g):
        i, w = g.ints("ids", [3, 1, 2, 5], 12), values("w", 12, 8)
        if not s:
            e = g.param("w", w)
            return e.embedding(i).relu().linear(e)
        e, head = g.param("w", w), g.param("head", (values("v", 12, 8) if wrong else w).t())
        return e.embedding(i).relu().mm(head)

    return f


pair("tied weight, transposed here", EQUIVALENT, "one value", tied(0), tied(1))
pair("tied weight, transposed there", EQUIVALENT, "one value", tied(1), tied(0))
pair("tied weight, another one transposed", DIFFERENT, "another value", tied(1, True), tied(0))


def two_ids(g, s, f):
    e, h = g.param("e", 16, 4), g.param("f", 16, 4)
    a, b = g.ints("ids", range(8), 16), g.ints("types", range(8), 16)
    return f(e, h, a, b, s)


pair(
    "two inputs of ids in order",
    DIFFERENT,
    "one for the other",
    lambda g, s: two_ids(g, s, lambda e, h, a, b, s: e.embedding(a) + h.embedding(a if s else b)),
)
pair(
    "two inputs of ids in order, clamped",
    NOT_EQUIVALENT,
    "ids above 7",
    lambda g, s: two_ids(
        g, s, lambda e, h, a, b, s: e.embedding(a.clamp(0, 7) if s else a) + h.embedding(b)
    ),
)
pair(
    "two inputs of ids in order, added",
    EQUIVALENT,
    "either order",
    lambda g, s: two_ids(
        g,
        s,
        lambda e, h, a, b, s: (
            h.embedding(b) + e.embedding(a) if s else e.embedding(a) + h.embedding(b)
        ),
    ),
)


def beside(*names):
    """Several pairs in one capture."""

    def f(g, s):
        out, prefix = {}, g.prefix
        for k, name in enumerate(names):
            g.prefix = "%s%d." % (prefix, k)
            made = PAIRS[name].sides[s](g)
            out.update(
                {
                    "%d.%s" % (k, o): t
                    for o, t in (made if isinstance(made, dict) else {"y": made}).items()
                }
            )
        g.prefix = prefix
        return out

    return f


_two = beside("rotary table looked up", "a table in bfloat16, cast and multiplied")
pair("tables of two dtypes", EQUIVALENT, "each keeps its own", _two)
pair(
    "tables of two dtypes, exchanged", EQUIVALENT, "each keeps its own", lambda g, s: _two(g, 1 - s)
)


# ---- signs of zeros ----


def biased(name, expected, why, f, zeros=1):
    """Six biases, of which the first `zeros` are 0 on the left and -0 on the right."""
    pair(
        name,
        expected,
        why,
        lambda g, s: f(
            g,
            g.param(
                "b", Data((6,), [-0.0 if s else 0.0] * zeros + [1.0 + i for i in range(6 - zeros)])
            ),
        ),
    )


biased(
    "bias with -0",
    EQUIVALENT,
    "one real number",
    lambda g, b: g.x(4, 8).linear(g.param("w", 6, 8), b),
)
biased(
    "bias of -0 everywhere",
    EQUIVALENT,
    "one real number",
    lambda g, b: g.x(4, 8).linear(g.param("w", 6, 8), b),
    zeros=6,
)
biased(
    "sign of -0",
    NOT_EQUIVALENT,
    "copysign reads it",
    lambda g, b: g.x(4, 6) + b.op("copysign.Tensor", [b.ones_like(), b]),
)
biased("quotient by -0", NOT_EQUIVALENT, "another infinity", lambda g, b: g.x(4, 6).div(b))
pair(
    "sign of -0 in a constant",
    NOT_EQUIVALENT,
    "signbit reads it",
    lambda g, s: (
        g.x(4, 2)
        + (lambda c: c.op("signbit", [c], dtype=boolean))(
            g.const("c", [-0.0 if s else 0.0, 1.0])
        ).to(f32)
    ),
)
pair(
    "-0 in a constant",
    EQUIVALENT,
    "one real number",
    lambda g, s: g.x(4, 2) * g.const("c", [-0.0 if s else 0.0, 1.0]).add(1.0),
)

# ---- numbers that ids of no known range are compared with ----


def compared(name, dtype, left, right):
    pair(
        "ids against a number: %s, %s" % (name, dtype),
        DIFFERENT,
        "they part there alone",
        *(
            lambda g, f=f: f(g.ints("ids", [3, 1, 2, 5, 9, 4], None, dtype)).to(f32)
            for f in (left, right)
        ),
    )


for dtype_ in (i64, i32):
    for number in (512, -77777, 50256):
        compared("ge %d" % number, dtype_, lambda n, k=number: n >= k, lambda n, k=number: n > k)
        compared(
            "eq %d" % number, dtype_, lambda n, k=number: n.eq(k), lambda n, k=number: n.eq(k + 2)
        )


# ---- what libtorch does not check ----


def least_divided(g, dtype, step):
    n = g.ints("n", [3, -1, 4, -(2**31)], None, dtype)
    return n.div(-1, "trunc").to(i64) if step else -(n.to(i64))


pair(
    "the least of 32 bits by -1",
    NOT_EQUIVALENT + "|" + ERROR,
    "the processor stops there",
    lambda g, s: least_divided(g, i32, s),
)
pair(
    "weight norm left out, of rows",
    DIFFERENT,
    "a repair that tries the other dimension must not write beside it",
    lambda g, s: g.x(5, 8).linear(
        g.param("v", 6, 8)
        if s
        else g.param("v", 6, 8).op("_weight_norm", [g.param("v", 6, 8), g.param("length", 6, 1), 0])
    ),
)


# ---- outputs of other sizes ----


def layer(g, part=lambda y: y):
    return part(g.x(4, 6).linear(g.param("w", 8, 6)).gelu())


for what, part in (
    ("rows", lambda y: y.slice(0, 0, 3)),
    ("columns", lambda y: y.slice(1, 0, 5)),
    ("everything", lambda y: y.slice(0, 2, 2)),
):
    for side in (0, 1):
        pair(
            "%s left out on the %s" % (what, ("left", "right")[side]),
            DIFFERENT,
            "one side has a part of the other's output alone",
            lambda g, s, at=side, f=part: layer(g, f) if s == at else layer(g),
        )


def wide_and_narrow(g, part=lambda y: y, names="yz"):
    x = g.x(4, 6)
    wide = part(x.linear(g.param("w", 8, 6)).gelu())
    return {names[0]: wide, names[1]: x.linear(g.param("v", 3, 6)).tanh()}


for what, part, verdict in (
    ("rows are left out", lambda y: y.slice(0, 0, 3), DIFFERENT),
    ("everything is there twice", lambda y: y.g.cat([y, y], 1), DIFFERENT),
    ("sums are left", lambda y: y.sum(1), DIFFERENT),
    ("all stands in one row", lambda y: y.reshape(32), EQUIVALENT),
):
    for side in (0, 1):
        pair(
            "%s in one of two outputs on the %s" % (what, ("left", "right")[side]),
            verdict,
            "an output without a counterpart of its size, beside one that has one",
            lambda g, s, at=side, f=part: wide_and_narrow(g, f) if s == at else wide_and_narrow(g),
        )
pair(
    "two outputs have each other's names",
    DIFFERENT,
    "an output is its name's",
    lambda g, s: wide_and_narrow(g, names="zy" if s else "yz"),
)
pair(
    "two outputs have other names, in another order",
    EQUIVALENT,
    "a relation is found in another place",
    lambda g, s: (
        wide_and_narrow(g) if s else dict(reversed(wide_and_narrow(g, names="ab").items()))
    ),
)


def spectrum(g, dim=1, factor=None, part=0.0, turned=False, order=False):
    """A complex output: products of complex numbers, scaled."""
    x, y = g.x(4, 6), g.x(4, 6, name="y")
    a, b = x.complex(y), (y if turned else x).complex(x + part if part else x)
    a, b = (b, a) if order else (a, b)
    z = a.op("mul.Tensor", [a, b], dtype="complex64")
    z = z.op("fft_fft", [z, None, dim], dtype="complex64") if dim is not None else z
    return z if factor is None else z.op("mul.Scalar", [z, factor], dtype="complex64")


for what, verdict, change in (
    ("in another order", EQUIVALENT, {"order": True}),
    ("along another dimension", DIFFERENT, {"dim": 0}),
    ("half as large again", DIFFERENT, {"factor": 1.5}),
    ("one thousandth larger", DIFFERENT, {"factor": 1.001}),
    ("another imaginary part", DIFFERENT, {"part": 0.01}),
    ("another real part", DIFFERENT, {"turned": True}),
    ("without the transform", DIFFERENT, {"dim": None}),
):
    pair(
        "a complex output, " + what,
        verdict,
        "both parts of a complex number are compared",
        lambda g, s, change=change: spectrum(g, **(change if s else {})),
    )
