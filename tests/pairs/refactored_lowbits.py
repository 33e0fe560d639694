"""Weights and activations in few bits: where scales and zero points stand, how bits are packed,
what is rounded."""

from refactoring import *

T, C, M, G = 3, 8, 4, 2  # G groups of C / G inputs
S = C // G
INT8 = Data((M, C), [(53 * i + 7 * (i // C)) % 255 - 127 for i in range(M * C)])
INT4 = Data((M, C), [(7 * i + 3 * (i // C)) % 16 for i in range(M * C)])


def weight(data, dtype):
    return lambda g: (g.x(T, C), g.param("q", data, dtype=dtype))


def row_scale(g):
    return g.param("s", M, 1, positive=True, shift=0.1)


def group_scale(g):
    return g.param("s", M, G, positive=True, shift=0.1)


def zeros_of(g):
    return g.param("z", Data((M, G), [(5 * i + 1) % 16 for i in range(M * G)]), dtype=u8)


int8 = of(weight(INT8, i8))
int8(
    "scale of a tensor on the product",
    "one number",
    lambda x, q: x.linear(q.to(f32) * 0.02),
    lambda x, q: x.linear(q.to(f32)) * 0.02,
    ("on both", lambda x, q: x.linear(q.to(f32) * 0.02) * 0.02),
)
int8(
    "scale of a tensor on the input",
    "one number",
    lambda x, q: x.linear(q.to(f32) * 0.02),
    lambda x, q: (x * 0.02).mm(q.to(f32).t()),
)
int8(
    "scale of a stored number",
    "a tensor without dimensions",
    lambda x, q: x.linear(q.to(f32) * x.g.param("one", Data((), [0.375]))),
    lambda x, q: x.linear(q.to(f32)) * x.g.param("one", Data((), [0.375])),
)
int8(
    "scales of rows on the product",
    "bitsandbytes'",
    lambda x, q: x.linear(q.to(f32) * row_scale(x.g)),
    lambda x, q: x.linear(q.to(f32)) * row_scale(x.g).t(),
    ("their inverse", lambda x, q: x.linear(q.to(f32)) / row_scale(x.g).t()),
)
int8(
    "scales of rows divided by 127",
    "SCB / 127",
    lambda x, q: x.linear(q.to(f32) * (row_scale(x.g) / 127.0)),
    lambda x, q: x.linear(q.to(f32)).mul(row_scale(x.g).view(M)).mul(1 / 127.0),
)
int8(
    "scales of rows, transposed weight",
    "a stored transpose",
    lambda x, q: x.linear(q.to(f32) * row_scale(x.g)),
    lambda x, q: x.mm(x.g.param("qt", INT8.t(), dtype=i8).to(f32) * row_scale(x.g).view(1, M)),
)
int8(
    "scales of inputs smoothed",
    "SmoothQuant: x / s and W s",
    lambda x, q: x.linear(q.to(f32)),
    lambda x, q: (lambda s: (x / s).linear(q.to(f32) * s))(
        x.g.param("smooth", C, positive=True, shift=0.5).clamp_min(1e-5)
    ),
    (
        "multiplied twice",
        lambda x, q: (lambda s: (x * s).linear(q.to(f32) * s))(
            x.g.param("smooth", C, positive=True, shift=0.5).clamp_min(1e-5)
        ),
    ),
)
int8(
    "bias behind the scales",
    "added last",
    lambda x, q: x.linear(q.to(f32) * row_scale(x.g), x.g.param("b", M)),
    lambda x, q: x.g.param("b", M).addcmul(x.linear(q.to(f32)), row_scale(x.g).view(M)),
)
int8(
    "weight in two parts of its columns",
    "row parallel, one scale",
    lambda x, q: x.linear(q.to(f32) * row_scale(x.g)),
    lambda x, q: (
        (
            x.slice(1, 0, S).linear(q.slice(1, 0, S).to(f32))
            + x.slice(1, S).linear(q.slice(1, S).to(f32))
        )
        * row_scale(x.g).view(M)
    ),
)


def absmax(x, top=127.0):
    s = x.abs().amax(-1, True).clamp_min(1e-5) / top
    return (x / s).round(), s


int8(
    "activations by rows, integers multiplied",
    "int8 by int8, then both scales",
    lambda x, q: (lambda a, s: (a * s).linear(q.to(f32) * row_scale(x.g)))(*absmax(x)),
    lambda x, q: (lambda a, s: a.linear(q.to(f32)) * (s * row_scale(x.g).view(1, M)))(*absmax(x)),
    ("one scale left out", lambda x, q: (lambda a, s: a.linear(q.to(f32)) * s)(*absmax(x))),
)
int8(
    "activations by rows, in int8",
    "cast and back",
    lambda x, q: (lambda a, s: a.linear(q.to(f32)) * s)(*absmax(x)),
    lambda x, q: (lambda a, s: a.clamp(-128.0, 127.0).to(i8).to(f32).linear(q.to(f32)) * s)(
        *absmax(x)
    ),
)
int8(
    "activations by rows, multiplied in int32",
    "_int_mm",
    lambda x, q: (lambda a, s: a.to(i8).to(f32).mm(q.to(f32).t()) * s)(*absmax(x)),
    lambda x, q: (lambda a, s: x.op("_int_mm", [a.to(i8), q.t()], (T, M), i32).to(f32) * s)(
        *absmax(x)
    ),
)
int8(
    "outliers apart",
    "LLM.int8: some columns in floats",
    lambda x, q: x.linear(q.to(f32)),
    lambda x, q: (lambda m: (x * m).linear(q.to(f32)) + (x * (1.0 - m)).linear(q.to(f32)))(
        x.g.const("outlier", [1.0, 0, 0, 1.0, 0, 0, 0, 0])
    ),
    (
        "outliers in both",
        lambda x, q: (lambda m: (x * m).linear(q.to(f32)) + x.linear(q.to(f32)))(
            x.g.const("outlier", [1.0, 0, 0, 1.0, 0, 0, 0, 0])
        ),
    ),
)
ops = of(lambda g: (g.x(T, C),))
ops(
    "largest magnitudes",
    "abs and both ends",
    lambda x: x.abs().amax(-1, True),
    lambda x: x.amax(-1, True).maximum(-x.amin(-1, True)),
    ("the larger end alone", lambda x: x.amax(-1, True).maximum(x.amin(-1, True))),
)
ops(
    "quantised by the inverse of its scale",
    "127 / m",
    lambda x: absmax(x)[0],
    lambda x: (x * (127.0 / 1.0 * x.abs().amax(-1, True).clamp_min(1e-5).reciprocal())).round(),
    (
        "cut off",
        lambda x: (x * (127.0 * x.abs().amax(-1, True).clamp_min(1e-5).reciprocal())).trunc(),
    ),
)
ops(
    "fake quantisation with a zero point",
    "in floats, and shifted",
    lambda x: ((x / 0.1).round() + 128.0).clamp(0.0, 255.0).sub(128.0) * 0.1,
    lambda x: (x * 10.0).round().clamp(-128.0, 127.0) * 0.1,
    ("a bound of one less", lambda x: (x * 10.0).round().clamp(-127.0, 127.0) * 0.1),
)
ops(
    "fake quantisation, clamped before",
    "whole bounds",
    lambda x: (x / 0.25).round().clamp(-8.0, 7.0) * 0.25,
    lambda x: (x / 0.25).clamp(-8.0, 7.0).round() * 0.25,
)
ops(
    "ternary weights",
    "BitNet's",
    lambda x: (lambda s: (x * (1.0 / 1.0 * s.reciprocal())).round().clamp(-1.0, 1.0) * s)(
        x.abs().mean(-1, True).clamp_min(1e-5)
    ),
    lambda x: (lambda s: (x / s).clamp(-1.0, 1.0).round() / s.reciprocal())(
        x.abs().mean(-1, True).clamp_min(1e-5)
    ),
    (
        "not clamped",
        lambda x: (lambda s: (x / s).round() / s.reciprocal())(
            x.abs().mean(-1, True).clamp_min(1e-5)
        ),
    ),
)
ops(
    "scales of groups",
    "a view of the row",
    lambda x: (lambda v: (v / v.abs().amax(-1, True).clamp_min(1e-5)).view(T, C))(x.view(T, G, S)),
    lambda x: (lambda v: x / v.abs().amax(-1).clamp_min(1e-5).repeat_interleave(S, 1))(
        x.view(T, G, S)
    ),
    (
        "tiled",
        lambda x: (lambda v: x / v.abs().amax(-1).clamp_min(1e-5).repeat(1, S))(x.view(T, G, S)),
    ),
)
ops(
    "to float8 by a scale, as floats",
    "a cast in between",
    lambda x: (x / 0.5).to(e4m3).to(f32) * 0.5,
    lambda x: (x * 2.0).to(bf16).to(f32) / 2.0,
)

int4 = of(weight(INT4, u8))


def plain4(x, q):
    """AWQ's and GPTQ's: (q - z) s for each group."""
    return x.linear(
        (
            (q.view(M, G, S).to(f32) - zeros_of(x.g).to(f32).unsqueeze(2))
            * group_scale(x.g).unsqueeze(2)
        ).view(M, C)
    )


int4(
    "scales of groups repeated",
    "each place its own",
    plain4,
    lambda x, q: x.linear(
        (q.to(f32) - zeros_of(x.g).to(f32).repeat_interleave(S, 1))
        * group_scale(x.g).repeat_interleave(S, 1)
    ),
    (
        "tiled",
        lambda x, q: x.linear(
            (q.to(f32) - zeros_of(x.g).to(f32).repeat(1, S)) * group_scale(x.g).repeat(1, S)
        ),
    ),
)
int4(
    "scales of groups by an index",
    "GPTQ's g_idx",
    plain4,
    lambda x, q: (
        lambda i: x.linear(
            (q.to(f32) - zeros_of(x.g).to(f32).index(None, i)) * group_scale(x.g).index(None, i)
        )
    )(x.g.arange(C).div(S, "floor")),
)
int4(
    "zero points folded",
    "q s - z s",
    plain4,
    lambda x, q: x.linear(
        q.to(f32) * group_scale(x.g).repeat_interleave(S, 1)
        - (zeros_of(x.g).to(f32) * group_scale(x.g)).repeat_interleave(S, 1)
    ),
    (
        "not scaled",
        lambda x, q: x.linear(
            q.to(f32) * group_scale(x.g).repeat_interleave(S, 1)
            - zeros_of(x.g).to(f32).repeat_interleave(S, 1)
        ),
    ),
)
int4(
    "zero points by sums of the input",
    "a correction of each group",
    plain4,
    lambda x, q: (
        lambda s: (
            x.linear(q.to(f32) * s.repeat_interleave(S, 1))
            - x.view(T, G, S).sum(2).linear(zeros_of(x.g).to(f32) * s)
        )
    )(group_scale(x.g)),
)
int4(
    "groups added one by one",
    "a product for each",
    plain4,
    lambda x, q: sum(
        (
            x.slice(1, a, a + S).linear(
                q.slice(1, a, a + S).to(f32) - zeros_of(x.g).to(f32).slice(1, a // S, a // S + 1)
            )
            * group_scale(x.g).select(1, a // S)
            for a in (S,)
        ),
        x.slice(1, 0, S).linear(q.slice(1, 0, S).to(f32) - zeros_of(x.g).to(f32).slice(1, 0, 1))
        * group_scale(x.g).select(1, 0),
    ),
)
int4(
    "zero point of 8 for all",
    "signed four bits",
    lambda x, q: x.linear((q.to(f32) - 8.0) * row_scale(x.g)),
    lambda x, q: x.linear(q.to(i8).sub(8).to(f32) * row_scale(x.g)),
    ("of 7", lambda x, q: x.linear(q.to(i8).sub(7).to(f32) * row_scale(x.g))),
)


def packed(q, order=(0, 1, 2, 3)):
    """Four bits of four neighbours in one number."""
    v = q.to(i64).view(M, C // 4, 4)
    return bor(
        bor(v.select(2, order[0]), v.select(2, order[1]).lshift(4)),
        bor(v.select(2, order[2]).lshift(8), v.select(2, order[3]).lshift(12)),
    )


int4(
    "packed by shifts and unpacked",
    "GPTQ's",
    lambda x, q: x.linear(q.to(f32)),
    lambda x, q: x.linear(
        packed(q).unsqueeze(2).rshift(x.g.arange(0, 16, 4)).bitwise_and(15).view(M, C).to(f32)
    ),
    (
        "unpacked in another order",
        lambda x, q: x.linear(
            packed(q)
            .unsqueeze(2)
            .rshift(x.g.arange(0, 16, 4).flip(0))
            .bitwise_and(15)
            .view(M, C)
            .to(f32)
        ),
    ),
)
int4(
    "packed in AWQ's order",
    "places exchanged and back",
    lambda x, q: x.linear(q.to(f32)),
    lambda x, q: (
        lambda v: x.linear(
            v.index(None, None, x.g.const("order", [0, 2, 1, 3], i64)).view(M, C).to(f32)
        )
    )(x.g.stack([packed(q, (0, 2, 1, 3)).rshift(4 * i).bitwise_and(15) for i in range(4)], 2)),
)
int4(
    "packed by sums",
    "multiplied by 16",
    lambda x, q: packed(q),
    lambda x, q: (
        lambda v: (
            v.select(2, 0) + v.select(2, 1) * 16 + v.select(2, 2) * 256 + v.select(2, 3) * 4096
        )
    )(q.to(i64).view(M, C // 4, 4)),
)
int4(
    "unpacked by remainders",
    "modulo 16",
    lambda x, q: q.bitwise_and(15),
    lambda x, q: q.remainder(16),
    ("modulo 15", lambda x, q: q.remainder(15)),
)
nibbles = of(
    lambda g: (
        g.x(T, C),
        g.param("p", Data((M, C // 2), [(37 * i + 11) % 256 for i in range(M * C // 2)]), dtype=u8),
    )
)
nibbles(
    "two in a byte, interleaved",
    "stacked, or written to every second place",
    lambda x, p: x.linear(x.g.stack([p.bitwise_and(15), p.rshift(4)], -1).view(M, C).to(f32) - 8.0),
    lambda x, p: (
        lambda lo, hi: (
            x.slice(1, 0, INF, 2).linear(lo.to(f32) - 8.0)
            + x.slice(1, 1, INF, 2).linear(hi.to(f32) - 8.0)
        )
    )(p.bitwise_and(15), p.rshift(4)),
    (
        "the high ones first",
        lambda x, p: (
            lambda lo, hi: (
                x.slice(1, 0, INF, 2).linear(hi.to(f32) - 8.0)
                + x.slice(1, 1, INF, 2).linear(lo.to(f32) - 8.0)
            )
        )(p.bitwise_and(15), p.rshift(4)),
    ),
)
nibbles(
    "two in a byte, halves",
    "llama.cpp's",
    lambda x, p: x.linear(x.g.cat([p.bitwise_and(15), p.rshift(4)], -1).to(f32)),
    lambda x, p: (
        x.slice(1, 0, S).linear(p.remainder(16).to(f32))
        + x.slice(1, S).linear(p.div(16, "floor").to(f32))
    ),
)
nibbles(
    "a table of sixteen numbers",
    "NF4: looked up by both halves",
    lambda x, p: x.g.param("nf4", 16).index(
        x.g.stack([p.rshift(4), p.bitwise_and(15)], -1).view(M, C).to(i64)
    ),
    lambda x, p: (
        lambda t: x.g.stack(
            [
                t.index_select(0, p.rshift(4).to(i64).view(-1)).view(M, S),
                t.index_select(0, p.bitwise_and(15).to(i64).view(-1)).view(M, S),
            ],
            2,
        ).flatten(1)
    )(x.g.param("nf4", 16)),
    (
        "halves exchanged",
        lambda x, p: (
            lambda t: x.g.stack(
                [
                    t.index_select(0, p.bitwise_and(15).to(i64).view(-1)).view(M, S),
                    t.index_select(0, p.rshift(4).to(i64).view(-1)).view(M, S),
                ],
                2,
            ).flatten(1)
        )(x.g.param("nf4", 16)),
    ),
)
nibbles(
    "scales of blocks of the table's numbers",
    "absmax of blocks, flattened",
    lambda x, p: (
        x.g.param("nf4", 16).index(p.to(i64).bitwise_and(15)).view(-1, S)
        * x.g.param("am", M * C // 2 // S, 1)
    ).view(M, C // 2),
    lambda x, p: (
        x.g.param("nf4", 16).index(p.to(i64).remainder(16)) * x.g.param("am", M * C // 2 // S, 1)
    ),
)
blocks = of(lambda g: (g.x(T, C), g.param("w", M, C), g.param("s", 2, 2, positive=True, shift=0.1)))
blocks(
    "scales of blocks by a view",
    "DeepSeek's float8",
    lambda x, w, s: x.linear((w.view(2, 2, 2, 4) * s.view(2, 1, 2, 1)).view(M, C)),
    lambda x, w, s: x.linear(w * s.repeat_interleave(2, 0).repeat_interleave(4, 1)),
    (
        "blocks transposed",
        lambda x, w, s: x.linear(w * s.t().repeat_interleave(2, 0).repeat_interleave(4, 1)),
    ),
)
blocks(
    "scales of blocks in the products",
    "a sum of scaled products",
    lambda x, w, s: x.linear((w.view(2, 2, 2, 4) * s.view(2, 1, 2, 1)).view(M, C)),
    lambda x, w, s: (lambda p: p(0) + p(1))(
        lambda k: (
            x.slice(1, 4 * k, 4 * k + 4).linear(w.slice(1, 4 * k, 4 * k + 4))
            * s.select(1, k).repeat_interleave(2, 0)
        )
    ),
)

# ---- keys that a cache holds in integers ----

cached = of(lambda g: (g.x(1, T, C), g.param("k", C, C), g.param("scale", 1, shift=0.3)))


def in_floats(x, k, s):
    return x.matmul(((x.linear(k) / s).round().clamp(-128.0, 127.0) * s).transpose(1, 2)) * 0.5


def in_integers(x, k, s, least=-128.0):
    """A scale of 0 makes no numbers, of which the cast makes some: no difference of the two."""
    kept = (x.linear(k) / s).round().clamp(least, 127.0).to(i8)
    return x.g.einsum("bqd,bkd->bqk", x * (s * 0.5), kept.to(f32))


cached(
    "keys kept in int8",
    "scaled behind the products",
    in_floats,
    in_integers,
    ("a bound of one less", lambda x, k, s: in_integers(x, k, s, -127.0)),
)
