"""Weights and activations in few bits: float8, bfloat16, integers with scales. Casts between floats
are identities; stored numbers are what they are, and scales, zero points, the order of packed bits
and what is rounded to integers are part of the function."""

from dsl import (
    DIFFERENT,
    EQUIVALENT,
    NOT_DIFFERENT,
    NOT_EQUIVALENT,
    Data,
    bf16,
    e4m3,
    e5m2,
    f16,
    f32,
    i8,
    i64,
    rounded,
    u8,
    values,
)
from edges import both

N, M = 4, 8
W8 = rounded(
    values("w", M, M), e4m3
)  # numbers that both float8s and all larger types hold where they are few
SMALL = Data((M, M), [round(2 * v) / 2 for v in values("w", M, M).values])
SCALE = [0.5 + 0.125 * i for i in range(M)]


def weight(g, dtype, data=W8):
    return g.param("w", data, dtype=dtype)


def scales(g, *shape):
    return g.param("s", Data(shape, SCALE[: max(shape)]))


def stored(name, expected, why, f):
    """f(x, side)"""
    both("lowered: %s" % name, expected, why, f, (N, M))


# ---- float8 and its scales ----

stored(
    "float8 weight, and its numbers in float32",
    EQUIVALENT,
    "the same numbers",
    lambda x, s: x.linear(weight(x.g, e4m3).to(f32) if s else weight(x.g, f32)),
)
stored(
    "float8 weight, and what it was rounded from",
    DIFFERENT,
    "its last bits",
    lambda x, s: x.linear(weight(x.g, e4m3).to(f32) if s else weight(x.g, f32, values("w", M, M))),
)
stored(
    "the two float8s, numbers of both",
    EQUIVALENT,
    "the same numbers",
    lambda x, s: x.linear(weight(x.g, e5m2 if s else e4m3, rounded(W8, e5m2)).to(f32)),
)
stored(
    "the two float8s, rounded to each",
    DIFFERENT,
    "another bit less",
    lambda x, s: x.linear(weight(x.g, e5m2 if s else e4m3, values("w", M, M)).to(f32)),
)
stored(
    "activation to float8 and back",
    EQUIVALENT,
    "a cast",
    lambda x, s: x.to(e4m3).to(f32).exp() if s else x.exp(),
)
stored(
    "activation to the other float8",
    EQUIVALENT,
    "a cast",
    lambda x, s: x.to(e5m2 if s else e4m3).to(f32).exp(),
)
stored(
    "clamped at the largest float8, then cast",
    NOT_EQUIVALENT,
    "larger numbers",
    lambda x, s: (x.clamp(-448.0, 448.0) if s else x).to(e4m3).to(f32),
)
stored(
    "clamped at the largest numbers of two float8s",
    NOT_EQUIVALENT,
    "240 and 448",
    lambda x, s: (lambda c: x.clamp(-c, c).to(e4m3).to(f32))(240.0 if s else 448.0),
)
stored(
    "clamped within the division by the scale",
    EQUIVALENT,
    "the same bound",
    lambda x, s: (
        x.div(0.25).clamp(-448.0, 448.0).to(e4m3).to(f32).mul(0.25) if s else x.clamp(-112.0, 112.0)
    ),
)
stored(
    "divided by the scale and multiplied",
    NOT_DIFFERENT,
    "nothing is rounded",
    lambda x, s: x.div(0.25).to(e4m3).to(f32).mul(0.25) if s else x,
)
stored(
    "divided by the scale twice",
    DIFFERENT,
    "the inverse",
    lambda x, s: x.div(0.25).to(e4m3).to(f32).div(0.25) if s else x,
)
stored(
    "scale on the weight and on the product",
    EQUIVALENT,
    "one number",
    lambda x, s: (
        lambda w: x.linear(w.to(f32)).mul(0.375) if s else x.linear(w.to(f32).mul(0.375))
    )(weight(x.g, e4m3)),
)
stored(
    "scale for each row, behind the product",
    EQUIVALENT,
    "rows of the weight are columns of the product",
    lambda x, s: (
        lambda w: (
            x.linear(w).mul(scales(x.g, M)) if s else x.linear(w.mul(scales(x.g, M).unsqueeze(1)))
        )
    )(weight(x.g, e4m3).to(f32)),
)
stored(
    "scale for each row, by columns",
    DIFFERENT,
    "a square weight",
    lambda x, s: (lambda w: x.linear(w.mul(scales(x.g, M).unsqueeze(0 if s else 1))))(
        weight(x.g, e4m3).to(f32)
    ),
)
stored(
    "scale for each row, its inverse",
    DIFFERENT,
    "1/s",
    lambda x, s: (lambda w, c: x.linear(w.div(c) if s else w.mul(c)))(
        weight(x.g, e4m3).to(f32), scales(x.g, M).unsqueeze(1)
    ),
)
stored(
    "scale for each row, and the first for all",
    DIFFERENT,
    "others are left out",
    lambda x, s: (lambda w, c: x.linear(w.mul(c.slice(0, 0, 1) if s else c)))(
        weight(x.g, e4m3).to(f32), scales(x.g, M).unsqueeze(1)
    ),
)
stored(
    "scale for each column, on the input",
    EQUIVALENT,
    "columns of the weight meet the input's",
    lambda x, s: (lambda w, c: x.mul(c).linear(w) if s else x.linear(w.mul(c)))(
        weight(x.g, e4m3).to(f32), scales(x.g, M)
    ),
)
stored(
    "scale for each block",
    EQUIVALENT,
    "repeated, and broadcast",
    lambda x, s: (
        lambda w, c: x.linear(
            w.reshape(2, 4, 2, 4).mul(c.reshape(2, 1, 2, 1)).reshape(M, M)
            if s
            else w.mul(
                c.unsqueeze(1)
                .expand(2, 4, 2)
                .reshape(8, 2)
                .unsqueeze(2)
                .expand(8, 2, 4)
                .reshape(M, M)
            )
        )
    )(weight(x.g, e4m3).to(f32), x.g.param("s", Data((2, 2), SCALE[:4]))),
)
stored(
    "scale for each block, transposed",
    DIFFERENT,
    "blocks of the other corner",
    lambda x, s: (
        lambda w, c: x.linear(
            w.reshape(2, 4, 2, 4).mul((c.t() if s else c).reshape(2, 1, 2, 1)).reshape(M, M)
        )
    )(weight(x.g, e4m3).to(f32), x.g.param("s", Data((2, 2), SCALE[:4]))),
)
stored(
    "bfloat16 weight, and its numbers in float32",
    EQUIVALENT,
    "the same numbers",
    lambda x, s: x.linear(weight(x.g, bf16).to(f32) if s else weight(x.g, f32)),
)
stored(
    "bfloat16 weight, and what it was rounded from",
    NOT_EQUIVALENT,
    "its last bits, which storage explains",
    lambda x, s: x.linear(
        weight(x.g, bf16, values("w", M, M)).to(f32) if s else weight(x.g, f32, values("w", M, M))
    ),
)
stored(
    "half and bfloat16, rounded to each",
    NOT_EQUIVALENT,
    "three bits, which storage explains",
    lambda x, s: x.linear(weight(x.g, bf16 if s else f16, values("w", M, M)).to(f32)),
)
stored(
    "half and bfloat16, few bits",
    EQUIVALENT,
    "both hold them",
    lambda x, s: x.linear(weight(x.g, bf16 if s else f16, SMALL).to(f32)),
)

# ---- by the largest number of a row ----


def quantised(x, d=(-1,), top=127.0, f=lambda y: y.round()):
    c = x.abs().amax(list(d), True).clamp_min(1e-5).div(top)
    return f(x.div(c)).mul(c)


stored(
    "rounded by rows, and by all",
    NOT_EQUIVALENT,
    "another scale",
    lambda x, s: quantised(x, (0, 1) if s else (-1,)),
)
stored(
    "rounded by rows, and by columns",
    NOT_EQUIVALENT,
    "another scale",
    lambda x, s: quantised(x, (0,) if s else (-1,)),
)
stored(
    "rounded to 127 and to 128",
    NOT_EQUIVALENT,
    "another scale",
    lambda x, s: quantised(x, top=128.0 if s else 127.0),
)
stored(
    "rounded and cut off",
    NOT_EQUIVALENT,
    "towards 0",
    lambda x, s: quantised(x, f=lambda y: y.trunc() if s else y.round()),
)
stored(
    "rounded, through int8",
    NOT_DIFFERENT,
    "all within 127",
    lambda x, s: quantised(x, f=lambda y: y.round().to(i8).to(f32) if s else y.round()),
)
stored(
    "not rounded, by rows and by all",
    NOT_DIFFERENT,
    "a cast to float8 is none",
    lambda x, s: quantised(x, (0, 1) if s else (-1,), 448.0, lambda y: y.to(e4m3).to(f32)),
)

# ---- integers with zero points ----

Q = Data((M, M), [(37 * i + 11 * (i // M)) % 256 for i in range(M * M)])
SIGNED = Data((M, M), [v - 128 for v in Q.values])


def bytes_of(g, dtype=u8, data=Q):
    return g.param("q", data, dtype=dtype)


stored(
    "zero point within and behind",
    EQUIVALENT,
    "one product",
    lambda x, s: (lambda q: x.linear(q.mul(0.05).sub(0.05 * 7) if s else q.sub(7.0).mul(0.05)))(
        bytes_of(x.g).to(f32)
    ),
)
stored(
    "zero point behind, without its scale",
    DIFFERENT,
    "7 and 0.35",
    lambda x, s: (lambda q: x.linear(q.mul(0.05).sub(7.0) if s else q.sub(7.0).mul(0.05)))(
        bytes_of(x.g).to(f32)
    ),
)
stored(
    "zero point of another sign",
    DIFFERENT,
    "added",
    lambda x, s: (lambda q: x.linear((q.add(7.0) if s else q.sub(7.0)).mul(0.05)))(
        bytes_of(x.g).to(f32)
    ),
)
stored(
    "signed bytes, and unsigned ones less 128",
    NOT_DIFFERENT,
    "the same numbers",
    lambda x, s: x.linear(
        (bytes_of(x.g, i8, SIGNED).to(f32) if s else bytes_of(x.g).to(f32).sub(128.0)).mul(0.05)
    ),
)
stored(
    "signed bytes, and unsigned ones",
    DIFFERENT,
    "128 less",
    lambda x, s: x.linear((bytes_of(x.g, i8, SIGNED) if s else bytes_of(x.g)).to(f32).mul(0.05)),
)
stored(
    "zero point in bytes",
    DIFFERENT,
    "unsigned bytes wrap",
    lambda x, s: (
        lambda q: x.linear((q.sub(130).to(f32) if s else q.to(f32).sub(130.0)).mul(0.05))
    )(bytes_of(x.g)),
)


def nibbles(q, order, by_shift):
    low = q.bitwise_and(15) if by_shift else q.remainder(16)
    high = q.rshift(4) if by_shift else q.div(16, "floor")
    pair_ = [low, high] if order == 0 else [high, low]
    return q.g.stack(pair_, -1).reshape(M, 2 * M).to(f32)


def packed(name, expected, why, f, dtype=u8, data=Q):
    both(
        "lowered: packed %s" % name,
        expected,
        why,
        lambda x, s: x.linear(f(bytes_of(x.g, dtype, data), s)),
        (N, 2 * M),
    )


packed(
    "by shifts and by remainders",
    EQUIVALENT,
    "the same nibbles",
    lambda q, s: nibbles(q, 0, s == 0),
)
packed("in another order", DIFFERENT, "the high one first", lambda q, s: nibbles(q, s, True))
packed(
    "side by side and one behind the other",
    DIFFERENT,
    "halves of a row",
    lambda q, s: (
        nibbles(q, 0, True) if s == 0 else q.g.cat([q.bitwise_and(15), q.rshift(4)], -1).to(f32)
    ),
)
packed(
    "with a sign, shifted",
    DIFFERENT,
    "the sign moves along",
    lambda q, s: (
        q.g.stack([q.bitwise_and(15), q.rshift(4).bitwise_and(15) if s else q.rshift(4)], -1)
        .reshape(M, 2 * M)
        .to(f32)
    ),
    i8,
    SIGNED,
)
packed(
    "less 8, before and behind the cast",
    EQUIVALENT,
    "small integers",
    lambda q, s: (
        nibbles(q, 0, True).sub(8.0)
        if s
        else q.g.stack([q.to(i64).bitwise_and(15).sub(8), q.to(i64).rshift(4).sub(8)], -1)
        .reshape(M, 2 * M)
        .to(f32)
    ),
)
packed(
    "less 8 and less 7",
    DIFFERENT,
    "one less",
    lambda q, s: nibbles(q, 0, True).sub(8.0 if s else 7.0),
)
