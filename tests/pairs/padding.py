"""Batches with padding, tables of positions, parameters that a loader computes: what the
frameworks' models of embeddings, towers and state spaces are made of."""

import attention
from dsl import *

B, H, T, D = 2, 2, 6, 4
SEEN = {
    "none padded": [1] * 12,
    "right": [1] * 10 + [0] * 2,
    "left": [0] * 2 + [1] * 10,
    "in the middle": [1] * 3 + [0] + [1] * 8,
}


def qkv(g):
    return [g.x(B, H, T, D, name=n) for n in "qkv"]


def mask(g, seen):
    return g.ints("mask", Data((B, T), seen)).unsqueeze(1).unsqueeze(2)


def eager(g, bias):
    q, k, v = qkv(g)
    return ((q * D**-0.5).matmul(k.transpose(2, 3)) + bias).softmax(-1).matmul(v)


BIAS = {
    "-3.4e38 (1 - m)": lambda g, m: m.to(f32).rsub(1.0) * -3.4e38,
    "finfo.min (1 - m)": lambda g, m: m.to(f32).rsub(1.0) * attention.FINFO,
    "-inf where m is 0": lambda g, m: g.zeros(B, 1, 1, T).masked_fill(m.eq(0), -math.inf),
    "finfo.min where 1 - m": lambda g, m: (lambda i: i.masked_fill(i.to(boolean), attention.FINFO))(
        m.to(f32).rsub(1.0)
    ),
}
for _s, _seen in SEEN.items():
    for _b, _f in BIAS.items():
        pair(
            "padding %s: %s" % (_s, _b),
            EQUIVALENT,
            "the same tokens are seen",
            lambda g, f=_f, s=_seen: eager(g, f(g, mask(g, s))),
            lambda g, s=_seen: (lambda q, k, v: q.sdpa(k, v, mask(g, s).gt(0)))(*qkv(g)),
        )
pair(
    "padding seen",
    DIFFERENT,
    "no mask",
    lambda g: eager(g, BIAS["-3.4e38 (1 - m)"](g, mask(g, SEEN["right"]))),
    lambda g: (lambda q, k, v: q.sdpa(k, v))(*qkv(g)),
)
pair(
    "padding alone seen",
    DIFFERENT,
    "the mask is inverted",
    lambda g: eager(g, BIAS["-inf where m is 0"](g, mask(g, SEEN["in the middle"]))),
    lambda g: (lambda q, k, v: q.sdpa(k, v, mask(g, SEEN["in the middle"]).eq(0)))(*qkv(g)),
)
pair(
    "padding counted",
    DIFFERENT,
    "a mean over all tokens, and over those that are seen",
    lambda g: (lambda m: (g.x(B, T, D) * m).sum(1) / m.sum(1))(
        g.ints("mask", Data((B, T), SEEN["right"])).to(f32).unsqueeze(2)
    ),
    lambda g: (lambda m: (g.x(B, T, D) * m).sum(1) / float(T))(
        g.ints("mask", Data((B, T), SEEN["right"])).to(f32).unsqueeze(2)
    ),
)

# ---- tables of positions ----

pair(
    "all rows of a table, looked up",
    EQUIVALENT,
    "positions are 0, 1, ... in a row of their own",
    lambda g: (
        g.x(1, T, D)
        + g.param("pos", T, D).embedding(g.buffer("ids", Data((1, T), list(range(T))), dtype=i64))
    ),
    lambda g: g.x(1, T, D) + g.param("pos", T, D),
)
pair(
    "the first rows of a table, looked up",
    EQUIVALENT,
    "",
    lambda g: (
        g.x(1, T, D)
        + g.param("pos", 9, D).embedding(
            g.buffer("ids", Data((1, 9), list(range(9))), dtype=i64).slice(1, 0, T)
        )
    ),
    lambda g: g.x(1, T, D) + g.param("pos", 9, D).slice(0, 0, T),
)
pair(
    "rows of a table from 2 on, and from 0 on",
    DIFFERENT,
    "",
    lambda g: (
        g.x(1, T, D)
        + g.param("pos", 9, D).embedding(
            g.buffer("ids", Data((1, T), list(range(2, T + 2))), dtype=i64)
        )
    ),
    lambda g: g.x(1, T, D) + g.param("pos", 9, D).slice(0, 0, T),
)

# ---- parameters that one side computes while it loads: float32 cannot tell that they differ ----


def from32(x):
    return struct.unpack("<f", struct.pack("<f", x))[0]


def loaded(name, f, *shape):
    d = values(name, *shape)
    return Data(d.shape, [from32(f(from32(v))) for v in d.values])


def rms(x):
    return x * x.pow(2).mean(-1, True).add(1e-6).rsqrt()


pair(
    "a norm's weight stored with + 1",
    NOT_DIFFERENT,
    "a loader adds 1",
    lambda g: rms(g.x(4, 8)) * (g.param("w", 8) + 1.0),
    lambda g: rms(g.x(4, 8)) * g.param("w1", loaded("w", lambda v: v + 1.0, 8)),
)
pair(
    "A stored as -exp(A_log)",
    NOT_DIFFERENT,
    "a loader computes it",
    lambda g: (g.x(4, 8) * g.param("A_log", 8).exp().neg()).exp(),
    lambda g: (g.x(4, 8) * g.param("A", loaded("A_log", lambda v: -math.exp(v), 8))).exp(),
)
pair(
    "A stored as exp(A_log)",
    DIFFERENT,
    "a loader forgets the sign",
    lambda g: (g.x(4, 8) * g.param("A_log", 8).exp().neg()).exp(),
    lambda g: (g.x(4, 8) * g.param("A", loaded("A_log", math.exp, 8))).exp(),
)
pair(
    "a norm's weight stored without + 1",
    DIFFERENT,
    "a loader adds 0.999",
    lambda g: rms(g.x(4, 8)) * (g.param("w", 8) + 1.0),
    lambda g: rms(g.x(4, 8)) * g.param("w1", loaded("w", lambda v: v + 0.999, 8)),
)


def fresh_norm(x, n=8, **how):
    g = x.g
    ones, zeros = ({"at": 1.0}, {"at": 0.0})
    return x.op(
        "batch_norm",
        [
            x,
            g.param("w", n, **(how.get("w") or ones)),
            g.param("b", n, **zeros),
            g.buffer("mean", n, **zeros),
            g.buffer("var", n, **ones),
            False,
            0.1,
            how.get("eps", 1e-5),
            False,
        ],
    )


def folded(g, scale, eps=1e-5):
    return (
        g.x(4, 8)
        .mm(g.param("v1", loaded("v", lambda v: scale * v / math.sqrt(1.0 + eps), 8, 8)))
        .add(g.param("b1", 8, at=0.0))
    )


pair(
    "a fresh batch norm folded into a weight",
    NOT_DIFFERENT,
    "a loader folds it",
    lambda g: fresh_norm(g.x(4, 8).mm(g.param("v", 8, 8))),
    lambda g: folded(g, 1),
)
pair(
    "a fresh batch norm folded with another epsilon",
    DIFFERENT,
    "1e-3 for 1e-5",
    lambda g: fresh_norm(g.x(4, 8).mm(g.param("v", 8, 8))),
    lambda g: folded(g, 1, 1e-3),
)
pair(
    "a fresh batch norm folded twice over",
    DIFFERENT,
    "half of it",
    lambda g: fresh_norm(g.x(4, 8).mm(g.param("v", 8, 8))),
    lambda g: folded(g, 0.5),
)
