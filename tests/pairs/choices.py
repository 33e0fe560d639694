"""Choices that few inputs make, differences in the last digits, and leaves that are equal by
chance."""

from dsl import DIFFERENT, EQUIVALENT, NOT_EQUIVALENT, Data, boolean, f32, i8, i64, pair, values


def both(name, expected, why, f):
    """f(g, x, side)"""
    pair(name, expected, why, lambda g: f(g, g.x(4, 8), 0), lambda g: f(g, g.x(4, 8), 1))


def rare(name, why, condition):
    both(name, NOT_EQUIVALENT, why, lambda g, x, s: x if s else condition(g, x).where(0.0, x))


rare("zero where the square is huge", "x of 3e7", lambda g, x: x.mul(x) > 1e15)
rare("zero where the exponential is huge", "x of 81", lambda g, x: x.exp() > 1e35)
rare(
    "zero in a narrow band of squares",
    "x of 31.63",
    lambda g, x: (x * x > 1000.0) & (x * x < 1001.0),
)
rare(
    "zero at one number behind arithmetic",
    "2x - 1 = 0.12345",
    lambda g, x: x.mul(2.0).sub(1.0).eq(0.12345),
)
rare("zero near one sine", "five digits of it", lambda g, x: x.sin().sub(0.678).abs() < 1e-5)
both(
    "square bounded far away",
    NOT_EQUIVALENT,
    "1e15",
    lambda g, x, s: x.mul(x) if s else x.mul(x).clamp(None, 1e15),
)
both(
    "exponential of an exponential, bounded",
    NOT_EQUIVALENT,
    "1e100",
    lambda g, x, s: x.exp().exp() if s else x.exp().exp().clamp(None, 1e100),
)
both(
    "log gamma, bounded",
    NOT_EQUIVALENT,
    "1e14",
    lambda g, x, s: (lambda y: y if s else y.clamp(None, 1e14))(x.op("lgamma", [x])),
)
both(
    "multiples of 1e9 added",
    NOT_EQUIVALENT,
    "a ninth digit",
    lambda g, x, s: x if s else x.add(x.div(1e9).trunc()),
)
both(
    "a third in eleven digits",
    NOT_EQUIVALENT,
    "1e-11",
    lambda g, x, s: x.div(3.0) if s else x.mul(0.33333333333),
)
both(
    "softplus with threshold 15",
    NOT_EQUIVALENT,
    "3e-7 behind it",
    lambda g, x, s: x.exp().log1p() if s else x.op("softplus", [x, 1.0, 15.0]),
)
both(
    "soft cap of a million before a softmax",
    NOT_EQUIVALENT,
    "where one takes all",
    lambda g, x, s: (x if s else x.div(1e6).tanh().mul(1e6)).softmax(1),
)
both(
    "a leaf where the square is huge",
    NOT_EQUIVALENT,
    "two leaves that no draw reads",
    lambda g, x, s: (x.mul(x) > 1e15).where(g.param("w", 8, like="v" if s else "w"), x),
)


def integers(name, expected, why, f):
    pair(name, expected, why, lambda g, s: f(g.ints("n", [3, 1, 4, 1, 5, 9, 2, 6], 100), s))


integers(
    "int doubled and halved",
    NOT_EQUIVALENT,
    "from 2^62 on",
    lambda n, s: n if s else n.mul(2).div(2, "floor"),
)
integers(
    "int square not negative",
    NOT_EQUIVALENT,
    "it wraps",
    lambda n, s: n.eq(n) if s else n.mul(n) >= 0,
)
integers(
    "int absolute value not negative",
    NOT_EQUIVALENT,
    "the least one has none",
    lambda n, s: n.eq(n) if s else n.abs() >= 0,
)
integers(
    "int below its successor",
    NOT_EQUIVALENT,
    "the largest has none",
    lambda n, s: n.eq(n) if s else n.add(1).gt(n),
)
integers("byte and back", NOT_EQUIVALENT, "from 128 on", lambda n, s: n if s else n.to(i8).to(i64))
pair(
    "first and last of equal tokens",
    NOT_EQUIVALENT,
    "5 may stand twice",
    lambda g, s: (lambda m: m.flip(0).argmax(0).rsub(7) if s else m.argmax(0))(
        g.ints("ids", [3, 1, 5, 1, 7, 9, 2, 6], 10).eq(5).to(i64)
    ),
)
pair(
    "a row that no draw reads",
    DIFFERENT,
    "row 2777 of 3000",
    lambda g, s: g.param(
        "e",
        Data(
            (3000, 4),
            [v + (s and i // 4 == 2777) for i, v in enumerate(values("e", 3000, 4).values)],
        ),
    ).embedding(g.ints("ids", [3, 1, 4, 1, 5], 3000)),
)


both(
    "two norms of ones, one weight",
    DIFFERENT,
    "another norm's weight",
    lambda g, x, s: (
        lambda a: (
            x.layer_norm(a)
            .linear(g.param("l", 8, 8))
            .layer_norm(a if s else g.param("n2", 8, at=1.0))
        )
    )(g.param("n1", 8, at=1.0)),
)
both(
    "two biases of zeros, another name",
    EQUIVALENT,
    "one is left for it",
    lambda g, x, s: (
        x.linear(g.param("w", 8, 8), g.param("b", 8, at=0.0))
        .relu()
        .linear(g.param("w2", 8, 8), g.param("b3" if s else "b2", 8, at=0.0))
    ),
)
both(
    "batch norm without statistics",
    NOT_EQUIVALENT,
    "fresh ones",
    lambda g, x, s: (
        lambda w, b: (
            x.mul(w).add(b)
            if s
            else x.op(
                "batch_norm",
                [
                    x,
                    w,
                    b,
                    g.buffer("mean", 8, at=0.0),
                    g.buffer("var", 8, at=1.0),
                    False,
                    0.1,
                    0.0,
                    False,
                ],
            )
        )
    )(g.param("w", 8, at=1.0), g.param("b", 8, at=0.0)),
)
both(
    "buffer here, parameter there",
    EQUIVALENT,
    "one value",
    lambda g, x, s: x.mul(g.param("t", 8) if s else g.buffer("t", 8)),
)
both(
    "dropout of nothing in training",
    EQUIVALENT,
    "probability 0",
    lambda g, x, s: x if s else x.op("dropout", [x, 0.0, True]),
)
pair(
    "attention that drops out",
    "error",
    "it draws",
    lambda g, s: (lambda q: q.op("scaled_dot_product_attention", [q, q, q, None, 0.1, False]))(
        g.x(1, 2, 6, 8)
    ),
)
pair(
    "ids in order, and a range",
    DIFFERENT,
    "they are tokens",
    lambda g, s: (lambda i: g.param("e", 40, 4).embedding(i if s else g.arange(8)))(
        g.ints("ids", list(range(8)), 40)
    ),
)
pair(
    "equal ids, and their number",
    DIFFERENT,
    "they are tokens",
    lambda g, s: (lambda i: g.param("e", 40, 4).embedding(i if s else g.full((8,), 5, i64)))(
        g.ints("ids", [5] * 8, 40)
    ),
)
both(
    "float to int to bool",
    NOT_EQUIVALENT,
    "a half",
    lambda g, x, s: (x.to(i64) if s else x).to(boolean).to(f32),
)
