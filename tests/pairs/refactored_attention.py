"""Attention as eager code, kernels, blocks, caches and compilers write it."""

from refactoring import *

H, D, T = 2, 4, 6
S = D**-0.5
NEG = -math.inf
FINFO = -3.4028234663852886e38


def qkv(h=H, kv=None, t=T, s=None, d=D, b=1):
    return lambda g: [
        g.x(b, h if n == "q" else kv or h, t if n == "q" else s or t, d, name=n) for n in "qkv"
    ]


def scores(q, k, scale=S):
    return q.matmul(k.transpose(2, 3)) * scale


def plain(q, k, v, bias=None):
    s = scores(q, k)
    return (s + bias if bias is not None else s).softmax(-1).matmul(v)


def hide(s, seen):
    return s.masked_fill(~seen, NEG)


def masked(q, k, v, seen):
    return hide(scores(q, k), seen).softmax(-1).matmul(v)


def is_causal(q, k, v):
    return q.sdpa(k, v, causal=True)


at = of(qkv())

# ---- online softmax, in blocks of keys ----


def online(sizes, mask=None, first=None, drop=False):
    """FlashAttention's loop; `drop` forgets to rescale what was summed before."""

    def f(q, k, v):
        m = l = o = None
        at_ = 0
        for n in sizes:
            kb, vb = k.slice(2, at_, at_ + n), v.slice(2, at_, at_ + n)
            s = scores(q, kb)
            if mask:
                s = mask(s, at_, n)
            new = s.amax(-1, True) if m is None else m.maximum(s.amax(-1, True))
            p = (s - new).exp()
            if m is None:
                l, o = p.sum(-1, True), p.matmul(vb)
            else:
                c = (m - new).exp()
                l, o = l * c + p.sum(-1, True), (o if drop else o * c) + p.matmul(vb)
            m = new
            at_ += n
        return o / l

    return f


def causal_block(s, at_, n):
    g = s.g
    return hide(s, (g.arange(at_, at_ + n).unsqueeze(0) <= g.arange(s.shape[2]).unsqueeze(1)))


for _n, _sizes in {"two": (3, 3), "three": (2, 2, 2), "uneven": (4, 2), "six": (1,) * 6}.items():
    at(
        "attention in %s blocks" % _n,
        "online softmax",
        lambda q, k, v: q.sdpa(k, v),
        online(_sizes),
        ("a block is not rescaled", online(_sizes, drop=True)) if _n in ("two", "three") else None,
    )
for _n, _sizes in {"two": (3, 3), "three": (2, 2, 2)}.items():
    at(
        "causal attention in %s blocks" % _n,
        "online softmax",
        is_causal,
        online(_sizes, causal_block),
        ("the mask is of block 0", online(_sizes, lambda s, a, n: causal_block(s, 0, n)))
        if _n == "two"
        else None,
    )
of(qkv(t=8))("attention in four blocks", "online softmax", plain, online((2, 2, 2, 2)))


def without_maximum(q, k, v):
    p = scores(q, k).exp()
    return p.matmul(v) / p.sum(-1, True)


at(
    "attention by unnormalised weights",
    "the sum divides at the end",
    plain,
    without_maximum,
    (
        "the sum over queries",
        lambda q, k, v: (lambda p: p.matmul(v) / p.sum(-2).unsqueeze(-1))(scores(q, k).exp()),
    ),
)
at(
    "attention by exp2",
    "log2(e) in the scale, as Triton's kernels",
    plain,
    lambda q, k, v: (
        lambda s: (lambda p: p.matmul(v) / p.sum(-1, True))(exp2(s - s.amax(-1, True)))
    )(scores(q, k, S / math.log(2))),
)


def part(q, k, v, a, b):
    """(output, log of the sum) over some keys."""
    s = scores(q, k.slice(2, a, b))
    return s.softmax(-1).matmul(v.slice(2, a, b)), s.logsumexp(-1, True)


def merged(q, k, v, equal=False):
    (o1, l1), (o2, l2) = part(q, k, v, 0, 4), part(q, k, v, 4, 6)
    top = l1.maximum(l2)
    w1, w2 = (l1 - top).exp(), (l2 - top).exp()
    return (o1 + o2) * 0.5 if equal else (o1 * w1 + o2 * w2) / (w1 + w2)


def split_keys(n):
    def f(q, k, v):
        parts = [part(q, k, v, i, i + T // n) for i in range(0, T, T // n)]
        l = q.g.stack([p[1] for p in parts], 0)
        return (q.g.stack([p[0] for p in parts], 0) * (l - l.logsumexp(0, True)).exp()).sum(0)

    return f


at(
    "attention states merged",
    "merge_attn_states of two parts",
    plain,
    merged,
    ("both count the same", lambda *a: merged(*a, equal=True)),
)
at(
    "attention states merged by logaddexp",
    "the log of both sums",
    plain,
    lambda q, k, v: (
        lambda a, b: (lambda l: a[0] * (a[1] - l).exp() + b[0] * (b[1] - l).exp())(
            logaddexp(a[1], b[1])
        )
    )(part(q, k, v, 0, 3), part(q, k, v, 3, 6)),
)
at(
    "attention states merged by a sigmoid",
    "the weight of the first part",
    plain,
    lambda q, k, v: (lambda a, b: (lambda w: a[0] * w + b[0] * (1.0 - w))((a[1] - b[1]).sigmoid()))(
        part(q, k, v, 0, 3), part(q, k, v, 3, 6)
    ),
)
for _k in 2, 3:
    of(qkv(t=1, s=T))("keys split in %d" % _k, "flash decoding", plain, split_keys(_k))
at(
    "queries in chunks",
    "rows by themselves",
    is_causal,
    lambda q, k, v: q.g.cat(
        [masked(q.slice(2, a, a + 2), k, v, causal(q.g, T).slice(0, a, a + 2)) for a in (0, 2, 4)],
        2,
    ),
    (
        "the mask starts anew",
        lambda q, k, v: q.g.cat(
            [masked(q.slice(2, a, a + 2), k, v, causal(q.g, T).slice(0, 0, 2)) for a in (0, 2, 4)],
            2,
        ),
    ),
)
at(
    "queries in chunks, keys up to them",
    "what is not seen is left out",
    is_causal,
    lambda q, k, v: q.g.cat(
        [
            masked(
                q.slice(2, a, a + 2),
                k.slice(2, 0, a + 2),
                v.slice(2, 0, a + 2),
                causal(q.g, 2, a + 2),
            )
            for a in (0, 2, 4)
        ],
        2,
    ),
)

# ---- heads ----

at(
    "attention by heads",
    "a loop",
    plain,
    lambda q, k, v: q.g.stack(
        [
            (q.select(1, h).bmm(k.select(1, h).transpose(1, 2)) * S).softmax(-1).bmm(v.select(1, h))
            for h in range(H)
        ],
        1,
    ),
    (
        "one head twice",
        lambda q, k, v: q.g.stack(
            [
                (q.select(1, h).bmm(k.select(1, h).transpose(1, 2)) * S)
                .softmax(-1)
                .bmm(v.select(1, 0))
                for h in range(H)
            ],
            1,
        ),
    ),
)
of(qkv(b=2))(
    "attention by sequences of a batch",
    "a loop",
    is_causal,
    lambda q, k, v: q.g.cat(
        [
            q.slice(0, b, b + 1).sdpa(k.slice(0, b, b + 1), v.slice(0, b, b + 1), causal=True)
            for b in range(2)
        ],
        0,
    ),
)
of(qkv(b=2))(
    "attention with batch and heads as one",
    "bmm",
    plain,
    lambda q, k, v: (lambda a, b, c: (a.bmm(b.transpose(1, 2)) * S).softmax(-1).bmm(c))(
        *[t.reshape(2 * H, T, D) for t in (q, k, v)]
    ).view(2, H, T, D),
)
at(
    "attention by baddbmm",
    "BLOOM's and GPT-NeoX's",
    lambda q, k, v: plain(q, k, v),
    lambda q, k, v: (
        baddbmm(
            q.g.zeros(H, T, T), q.view(H, T, D), k.view(H, T, D).transpose(1, 2), beta=0.0, alpha=S
        )
        .softmax(-1)
        .bmm(v.view(H, T, D))
        .view(1, H, T, D)
    ),
)
at(
    "attention bias by baddbmm",
    "the bias is what is added to",
    lambda q, k, v: plain(q, k, v, q.g.param("bias", H, 1, T)),
    lambda q, k, v: (
        baddbmm(
            q.g.param("bias", H, 1, T),
            q.view(H, T, D),
            k.view(H, T, D).transpose(1, 2),
            beta=1.0,
            alpha=S,
        )
        .softmax(-1)
        .bmm(v.view(H, T, D))
        .view(1, H, T, D)
    ),
    (
        "alpha is beta",
        lambda q, k, v: (
            baddbmm(
                q.g.param("bias", H, 1, T),
                q.view(H, T, D),
                k.view(H, T, D).transpose(1, 2),
                beta=S,
                alpha=1.0,
            )
            .softmax(-1)
            .bmm(v.view(H, T, D))
            .view(1, H, T, D)
        ),
    ),
)
at(
    "attention over tokens first",
    "xformers' [B, M, H, K]",
    lambda q, k, v: plain(q, k, v).transpose(1, 2),
    lambda q, k, v: (
        lambda a, b, c: q.g.einsum(
            "bhqk,bkhd->bqhd", (q.g.einsum("bqhd,bkhd->bhqk", a * S, b)).softmax(-1), c
        )
    )(*[t.transpose(1, 2) for t in (q, k, v)]),
    (
        "heads and tokens exchanged",
        lambda q, k, v: (
            lambda a, b, c: q.g.einsum(
                "bkhd,bhqk->bqhd", c, q.g.einsum("bqhd,bkhd->bhqk", a * S, b).softmax(2)
            )
        )(*[t.transpose(1, 2) for t in (q, k, v)]),
    ),
)
at(
    "attention of a transposed product",
    "k q^T",
    plain,
    lambda q, k, v: (
        v.transpose(2, 3).matmul((k.matmul(q.transpose(2, 3)) * S).softmax(-2)).transpose(2, 3)
    ),
)


def grouped(how):
    def f(q, k, v):
        g, (_, kv, s, d), (h, t) = q.g, k.shape, q.shape[1:3]
        r = h // kv
        if how == "expand":
            return plain(
                q, *[x.unsqueeze(2).expand(1, kv, r, s, d).reshape(1, h, s, d) for x in (k, v)]
            )
        if how == "repeat":
            return plain(q, k.repeat(1, r, 1, 1), v.repeat(1, r, 1, 1))
        if how == "repeat_interleave":
            return plain(q, k.repeat_interleave(r, 1), v.repeat_interleave(r, 1))
        if how == "kernel":
            return q.sdpa(k, v, enable_gqa=True)
        if how == "index":
            i = g.arange(h).div(r, "floor")
            return plain(q, k.index_select(1, i), v.index_select(1, i))
        if how == "einsum":
            p = (g.einsum("bgrqd,bgkd->bgrqk", q.view(1, kv, r, t, d), k) * S).softmax(-1)
            return g.einsum("bgrqk,bgkd->bgrqd", p, v).reshape(1, h, t, d)
        if how == "folded":
            p = (q.reshape(1, kv, r * t, d).matmul(k.transpose(2, 3)) * S).softmax(-1)
            return p.matmul(v).view(1, h, t, d)
        if how == "loop":
            return g.cat(
                [
                    plain(
                        q.slice(1, i, i + 1),
                        k.slice(1, i // r, i // r + 1),
                        v.slice(1, i // r, i // r + 1),
                    )
                    for i in range(h)
                ],
                1,
            )
        if how == "broadcast":
            p = (q.unflatten(1, [kv, r]).matmul(k.unsqueeze(2).transpose(3, 4)) * S).softmax(-1)
            return p.matmul(v.unsqueeze(2)).flatten(1, 2)

    return f


for _h in "repeat_interleave", "kernel", "index", "einsum", "folded", "loop", "broadcast":
    of(qkv(4, 2))(
        "grouped heads, " + _h,
        "the same heads are shared",
        grouped("expand"),
        grouped(_h),
        ("heads in another order", grouped("repeat")) if _h == "folded" else None,
    )
of(qkv(4, 1))(
    "one head of keys for all, folded", "multi-query", grouped("expand"), grouped("folded")
)
of(qkv(4, 1))("one head of keys for all, broadcast", "multi-query", grouped("einsum"), plain)


def latent(g):
    return (
        g.x(T, H, D, name="q"),
        g.x(T, 6, name="c"),
        g.param("uk", H, 6, D),
        g.param("uv", H, 6, D),
    )


of(latent)(
    "latent keys expanded or absorbed",
    "DeepSeek's attention: q (c W)^T = (q W^T) c^T",
    lambda q, c, uk, uv: (
        lambda k, v: (q.transpose(0, 1).bmm(k.transpose(1, 2)) * S).softmax(-1).bmm(v)
    )(c.unsqueeze(0).matmul(uk), c.unsqueeze(0).matmul(uv)),
    lambda q, c, uk, uv: (lambda a: (a.matmul(c.t()) * S).softmax(-1).matmul(c).bmm(uv))(
        q.transpose(0, 1).bmm(uk.transpose(1, 2))
    ),
    (
        "the wrong matrix",
        lambda q, c, uk, uv: (lambda a: (a.matmul(c.t()) * S).softmax(-1).matmul(c).bmm(uk))(
            q.transpose(0, 1).bmm(uk.transpose(1, 2))
        ),
    ),
)
of(latent)(
    "latent keys absorbed by einsum",
    "the same",
    lambda q, c, uk, uv: q.g.einsum("thd,hcd->thc", q, uk),
    lambda q, c, uk, uv: q.transpose(0, 1).bmm(uk.transpose(1, 2)).transpose(0, 1),
)
of(lambda g: [g.x(H, T, D, name=n) for n in ("qn", "kn", "qr", "kr")])(
    "two parts of a head",
    "scores of a joined head are a sum",
    lambda qn, kn, qr, kr: (
        qn.g.cat([qn, qr], -1).bmm(qn.g.cat([kn, kr], -1).transpose(1, 2)).softmax(-1)
    ),
    lambda qn, kn, qr, kr: (qn.bmm(kn.transpose(1, 2)) + qr.bmm(kr.transpose(1, 2))).softmax(-1),
    (
        "joined the other way",
        lambda qn, kn, qr, kr: (qn.bmm(kr.transpose(1, 2)) + qr.bmm(kn.transpose(1, 2))).softmax(
            -1
        ),
    ),
)
of(lambda g: (g.x(1, H, T, D), g.param("o", 8, H * D)))(
    "output projection by heads",
    "a sum over heads",
    lambda y, w: y.transpose(1, 2).reshape(1, T, H * D).linear(w),
    lambda y, w: sum(
        (y.select(1, h).linear(w.slice(1, h * D, h * D + D)) for h in range(1, H)),
        y.select(1, 0).linear(w.slice(1, 0, D)),
    ),
    (
        "heads exchanged",
        lambda y, w: (
            y.select(1, 0).linear(w.slice(1, D, 2 * D)) + y.select(1, 1).linear(w.slice(1, 0, D))
        ),
    ),
)
at(
    "differential attention",
    "(a1 - l a2) v and a1 v - l a2 v",
    lambda q, k, v: (scores(q, k).softmax(-1) - scores(k, q).softmax(-1) * 0.3).matmul(v),
    lambda q, k, v: scores(q, k).softmax(-1).matmul(v) - scores(k, q).softmax(-1).matmul(v) * 0.3,
)
of(lambda g: (*qkv()(g), g.x(1, T, H * D, name="gate")))(
    "gated heads",
    "before and after they are merged",
    lambda q, k, v, a: plain(q, k, v).transpose(1, 2).reshape(1, T, H * D) * a.sigmoid(),
    lambda q, k, v, a: (
        (plain(q, k, v) * a.view(1, T, H, D).transpose(1, 2).sigmoid()).transpose(1, 2).flatten(2)
    ),
)

# ---- masks ----

at(
    "causal mask by where",
    "GPT-2's",
    is_causal,
    lambda q, k, v: causal(q.g, T).where(scores(q, k), q.g.full((), FINFO)).softmax(-1).matmul(v),
    (
        "a zero instead of finfo.min",
        lambda q, k, v: causal(q.g, T).where(scores(q, k), q.g.full((), 0.0)).softmax(-1).matmul(v),
    ),
)
at(
    "causal mask by a product",
    "exp(s) m / sum",
    is_causal,
    lambda q, k, v: (lambda p: (p / p.sum(-1, True)).matmul(v))(
        scores(q, k).exp() * q.g.ones(T, T).tril()
    ),
)
at(
    "causal mask after the softmax",
    "renormalised",
    is_causal,
    lambda q, k, v: (lambda p: (p / p.sum(-1, True)).matmul(v))(
        scores(q, k).softmax(-1) * causal(q.g, T).to(f32)
    ),
    (
        "not renormalised",
        lambda q, k, v: (scores(q, k).softmax(-1) * causal(q.g, T).to(f32)).matmul(v),
    ),
)


def window(g, w, t=T):
    i, j = g.arange(t).unsqueeze(1), g.arange(t).unsqueeze(0)
    return (j <= i) & (i.sub(j) < w)


at(
    "window by a band",
    "tril and triu",
    lambda q, k, v: masked(q, k, v, window(q.g, 3)),
    lambda q, k, v: q.sdpa(k, v, q.g.ones(T, T, dtype=boolean).tril().triu(-2)),
    (
        "a window of one more",
        lambda q, k, v: q.sdpa(k, v, q.g.ones(T, T, dtype=boolean).tril().triu(-3)),
    ),
)
at(
    "window by two masks",
    "added",
    lambda q, k, v: masked(q, k, v, window(q.g, 2)),
    lambda q, k, v: plain(q, k, v, q.g.full((T, T), NEG).triu(1) + q.g.full((T, T), NEG).tril(-2)),
)


def banded(q, k, v, w=2):
    """Each block of w queries with its own keys and the block's before it, as Longformer and local
    attention do."""
    g, rows = q.g, []
    for a in range(0, T, w):
        lo = max(0, a - w)
        i, j = g.arange(a, a + w).unsqueeze(1), g.arange(lo, a + w).unsqueeze(0)
        rows.append(
            masked(
                q.slice(2, a, a + w),
                k.slice(2, lo, a + w),
                v.slice(2, lo, a + w),
                (j <= i) & (i.sub(j) < w),
            )
        )
    return g.cat(rows, 2)


at("window by blocks", "local attention", lambda q, k, v: masked(q, k, v, window(q.g, 2)), banded)
at(
    "attention in chunks of positions",
    "Llama 4's",
    lambda q, k, v: (lambda i: masked(q, k, v, causal(q.g, T) & i.unsqueeze(1).eq(i.unsqueeze(0))))(
        q.g.arange(T).div(3, "floor")
    ),
    lambda q, k, v: q.g.cat(
        [is_causal(*[x.slice(2, a, a + 3) for x in (q, k, v)]) for a in (0, 3)], 2
    ),
    (
        "chunks of 2",
        lambda q, k, v: q.g.cat(
            [is_causal(*[x.slice(2, a, a + 2) for x in (q, k, v)]) for a in (0, 2, 4)], 2
        ),
    ),
)
at(
    "packed sequences",
    "a block mask, and each alone",
    lambda q, k, v: (lambda s: masked(q, k, v, s.unsqueeze(1).eq(s.unsqueeze(0))))(
        q.g.const("seq", [0, 0, 0, 0, 1, 1], i64)
    ),
    lambda q, k, v: q.g.cat(
        [q.slice(2, a, b).sdpa(k.slice(2, a, b), v.slice(2, a, b)) for a, b in ((0, 4), (4, 6))], 2
    ),
)
at(
    "sinks and a window",
    "the first token is always seen",
    lambda q, k, v: (lambda j: masked(q, k, v, (window(q.g, 3) | (j < 1)) & causal(q.g, T)))(
        q.g.arange(T).unsqueeze(0)
    ),
    lambda q, k, v: (
        lambda g: q.sdpa(k, v, g.cat([g.ones(T, 1, dtype=boolean), window(g, 3).slice(1, 1)], 1))
    )(q.g),
    (
        "two sinks",
        lambda q, k, v: (
            lambda g: q.sdpa(
                k, v, g.cat([g.ones(T, 2, dtype=boolean), window(g, 3).slice(1, 2)], 1)
            )
        )(q.g),
    ),
)
at(
    "prefix mask",
    "the prefix sees itself",
    lambda q, k, v: (lambda j: masked(q, k, v, causal(q.g, T) | (j < 2)))(
        q.g.arange(T).unsqueeze(0)
    ),
    lambda q, k, v: (
        lambda g: q.sdpa(k, v, g.cat([g.ones(T, 2, dtype=boolean), causal(g, T).slice(1, 2)], 1))
    )(q.g),
)
at(
    "a window on both sides",
    "ModernBERT's",
    lambda q, k, v: (lambda i: masked(q, k, v, i.unsqueeze(1).sub(i.unsqueeze(0)).abs() <= 2))(
        q.g.arange(T)
    ),
    lambda q, k, v: (lambda i, j: q.sdpa(k, v, (j <= i.add(2)) & (j >= i.sub(2))))(
        q.g.arange(T).unsqueeze(1), q.g.arange(T).unsqueeze(0)
    ),
    (
        "of 1 on one side",
        lambda q, k, v: (lambda i, j: q.sdpa(k, v, (j <= i.add(1)) & (j >= i.sub(2))))(
            q.g.arange(T).unsqueeze(1), q.g.arange(T).unsqueeze(0)
        ),
    ),
)
SLOPES = [0.25, 0.0625]


def alibi(g, how):
    m = g.const("slopes", SLOPES).view(H, 1, 1)
    if how == "distance":
        return m * (g.arange(T).unsqueeze(0) - g.arange(T).unsqueeze(1)).to(f32)
    return (
        m * g.arange(T).to(f32).view(1, 1, T)
        if how == "key"
        else m * g.arange(T).sub(T - 1).to(f32).view(1, 1, T)
    )


for _h in "key", "key from the end":
    at(
        "ALiBi by the " + _h,
        "rows are shifted",
        lambda q, k, v: plain(q, k, v, alibi(q.g, "distance") + q.g.full((T, T), NEG).triu(1)),
        lambda q, k, v, h=_h: q.sdpa(
            k, v, alibi(q.g, h) + q.g.zeros(T, T).masked_fill(~causal(q.g, T), NEG)
        ),
        (
            "of twice the slope",
            lambda q, k, v: q.sdpa(
                k, v, alibi(q.g, "key") * 2.0 + q.g.zeros(T, T).masked_fill(~causal(q.g, T), NEG)
            ),
        )
        if _h == "key"
        else None,
    )
at(
    "ALiBi in blocks of keys",
    "the bias of the block",
    lambda q, k, v: plain(q, k, v, alibi(q.g, "key")),
    online((3, 3), lambda s, a, n: s + alibi(s.g, "key").slice(2, a, a + n)),
)
at(
    "soft cap in blocks of keys",
    "Gemma 2's",
    lambda q, k, v: (scores(q, k).div(30.0).tanh() * 30.0).softmax(-1).matmul(v),
    online((3, 3), lambda s, a, n: 30.0 * (s * (1 / 30.0)).tanh()),
)
at(
    "soft cap with the scale inside",
    "one product",
    lambda q, k, v: (scores(q, k).div(20.0).tanh() * 20.0).softmax(-1).matmul(v),
    lambda q, k, v: (
        ((q * (S / 20.0)).matmul(k.transpose(2, 3)).tanh() * 20.0).softmax(-1).matmul(v)
    ),
    (
        "a cap of 21 outside",
        lambda q, k, v: (
            ((q * (S / 20.0)).matmul(k.transpose(2, 3)).tanh() * 21.0).softmax(-1).matmul(v)
        ),
    ),
)


def sink_joined(q, k, v):
    s = q.g.param("sink", H).view(1, H, 1, 1).expand(1, H, T, 1)
    return q.g.cat([scores(q, k), s], -1).softmax(-1).slice(3, 0, T).matmul(v)


at(
    "learned sinks in the sum",
    "gpt-oss",
    sink_joined,
    lambda q, k, v: (
        lambda e: e.matmul(v) / (e.sum(-1, True) + q.g.param("sink", H).view(H, 1, 1).exp())
    )(scores(q, k).exp()),
    (
        "without exp",
        lambda q, k, v: (
            lambda e: e.matmul(v) / (e.sum(-1, True) + q.g.param("sink", H).view(H, 1, 1))
        )(scores(q, k).exp()),
    ),
)
at(
    "learned sinks by the log of the sum",
    "a sigmoid of the difference",
    sink_joined,
    lambda q, k, v: (
        lambda s: (
            s.softmax(-1).matmul(v)
            * (s.logsumexp(-1, True) - q.g.param("sink", H).view(H, 1, 1)).sigmoid()
        )
    )(scores(q, k)),
)
at(
    "learned sinks with the maximum",
    "as the kernels do",
    sink_joined,
    lambda q, k, v: (
        lambda s, b: (
            lambda m: (lambda e: e.matmul(v) / (e.sum(-1, True) + (b - m).exp()))((s - m).exp())
        )(s.amax(-1, True).maximum(b))
    )(scores(q, k), q.g.param("sink", H).view(H, 1, 1)),
)
at(
    "a zero joined to the softmax",
    "softmax1: one more in the sum",
    lambda q, k, v: pad(scores(q, k), (0, 1)).softmax(-1).slice(3, 0, T).matmul(v),
    lambda q, k, v: (lambda e: e.div(e.sum(-1, True) + 1.0).matmul(v))(scores(q, k).exp()),
)

# ---- biases of relative positions ----


def distances(g, t=T, most=3):
    return (g.arange(t).unsqueeze(1) - g.arange(t).unsqueeze(0)).clamp(-most, most).add(most)


at(
    "relative bias by a table",
    "embedding and index",
    lambda q, k, v: plain(
        q, k, v, q.g.param("table", 7, H).embedding(distances(q.g)).permute(2, 0, 1).unsqueeze(0)
    ),
    lambda q, k, v: plain(
        q, k, v, q.g.param("table", 7, H).t().index(None, distances(q.g)).unsqueeze(0)
    ),
    (
        "transposed",
        lambda q, k, v: plain(
            q, k, v, q.g.param("table", 7, H).t().index(None, distances(q.g).t()).unsqueeze(0)
        ),
    ),
)
at(
    "relative bias by a flat index",
    "Swin's view(-1)",
    lambda q, k, v: plain(
        q, k, v, q.g.param("table", 7, H).embedding(distances(q.g)).permute(2, 0, 1).unsqueeze(0)
    ),
    lambda q, k, v: plain(
        q,
        k,
        v,
        q.g.param("table", 7, H)
        .index(distances(q.g).view(-1))
        .view(T, T, H)
        .permute(2, 0, 1)
        .contiguous()
        .unsqueeze(0),
    ),
)
at(
    "relative bias as a mask",
    "T5's under SDPA",
    lambda q, k, v: (
        (
            q.matmul(k.transpose(2, 3))
            + q.g.param("table", 7, H).embedding(distances(q.g)).permute(2, 0, 1).unsqueeze(0)
        )
        .softmax(-1)
        .matmul(v)
    ),
    lambda q, k, v: q.sdpa(
        k,
        v,
        q.g.param("table", 7, H).embedding(distances(q.g)).permute(2, 0, 1).unsqueeze(0),
        scale=1.0,
    ),
    (
        "scaled as well",
        lambda q, k, v: q.sdpa(
            k, v, q.g.param("table", 7, H).embedding(distances(q.g)).permute(2, 0, 1).unsqueeze(0)
        ),
    ),
)
at(
    "keys of relative positions",
    "Shaw's: q (k + r)^T in one product or two",
    lambda q, k, v: (
        (k.unsqueeze(2) + q.g.param("table", 7, D).embedding(distances(q.g)))
        .mul(q.unsqueeze(3))
        .sum(-1)
        .softmax(-1)
    ),
    lambda q, k, v: (
        q.matmul(k.transpose(2, 3))
        + q.g.einsum("bhld,lrd->bhlr", q, q.g.param("table", 7, D).embedding(distances(q.g)))
    ).softmax(-1),
)


def rolled(x, by):
    return roll(x, (-by, -by), (1, 2))


def windows(x, w):
    n, h, _, c = x.shape
    return x.view(n, h // w, w, h // w, w, c).permute(0, 1, 3, 2, 4, 5).reshape(-1, w * w, c)


of(lambda g: (g.x(1, 4, 4, D),))(
    "windows of an image",
    "Swin's partition and a loop",
    lambda x: windows(x, 2).mean(1),
    lambda x: x.g.cat(
        [
            x.slice(1, a, a + 2).slice(2, b, b + 2).reshape(1, 4, D).mean(1)
            for a in (0, 2)
            for b in (0, 2)
        ],
        0,
    ),
)
of(lambda g: (g.x(1, 4, 4, D),))(
    "windows shifted and back",
    "rolls undo each other",
    lambda x: x.exp(),
    lambda x: (
        lambda w: rolled(w.view(1, 2, 2, 2, 2, D).permute(0, 1, 3, 2, 4, 5).reshape(1, 4, 4, D), -1)
    )(windows(rolled(x, 1), 2).exp()),
    (
        "not rolled back",
        lambda x: (
            lambda w: w.view(1, 2, 2, 2, 2, D).permute(0, 1, 3, 2, 4, 5).reshape(1, 4, 4, D)
        )(windows(rolled(x, 1), 2).exp()),
    ),
)
