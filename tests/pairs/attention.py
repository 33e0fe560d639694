"""Attention: layouts of heads and of fused weights, masks, rotary embedding, positions. What is one
function in other words must be `equivalent`; what has a head, a sign, a pair or a mask in the wrong
place must not."""

from dsl import *

H, D, T = 4, 4, 5  # heads, width of a head, tokens
C = H * D


def heads(x, n=H):
    """[1, T, n * D] to [1, n, T, D]"""
    return x.view(1, x.shape[1], -1, D).transpose(1, 2)


def merge(x):
    return x.transpose(1, 2).reshape(1, x.shape[2], -1)


def project(g, names="qkv", kv=H, t=T):
    x = g.x(1, t, C)
    return [heads(x.linear(g.param(n, (H if n == "q" else kv) * D, C))) for n in names]


def eager(q, k, v, mask=None, scale=D**-0.5, cap=None):
    """mask: what is done to the scores."""
    s = q.matmul(k.transpose(2, 3)) * scale
    if cap:
        s = (s / cap).tanh() * cap
    return (mask(s) if mask else s).softmax(-1).matmul(v)


def below(g, t=T, window=None):
    """[t, t] booleans, true where a token is seen."""
    i, j = g.arange(t).unsqueeze(1), g.arange(t).unsqueeze(0)
    seen = j <= i
    return seen.logical_and(j > i - window) if window else seen


FINFO = -3.4028234663852886e38
MASKS = {
    "finfo.min by where": lambda s: (
        s + below(s.g, s.shape[-1]).where(s.g.zeros(s.shape[-1], s.shape[-1]), s.g.full((), FINFO))
    ),
    "finfo.min by masked_fill": lambda s: s.masked_fill(~below(s.g, s.shape[-1]), FINFO),
    "finfo.min by triu": lambda s: s + s.g.full((s.shape[-1],) * 2, FINFO).triu(1),
    "-inf by masked_fill": lambda s: s.masked_fill(~below(s.g, s.shape[-1]), -math.inf),
    "-inf by triu": lambda s: s + s.g.full((s.shape[-1],) * 2, -math.inf).triu(1),
    "-inf by where": lambda s: below(s.g, s.shape[-1]).where(s, s.g.full((), -math.inf)),
    "tril of ones": lambda s: s.masked_fill(
        s.g.ones(s.shape[-1], s.shape[-1]).tril().eq(0), -math.inf
    ),
    "-1e4": lambda s: s.masked_fill(~below(s.g, s.shape[-1]), -1e4),
    "stored -inf": lambda s: (
        s
        + s.g.const(
            "m", Data((T, T), [0.0 if i % T <= i // T else -math.inf for i in range(T * T)])
        )
    ),
    "stored boolean": lambda s: s.masked_fill(
        s.g.const("m", Data((T, T), [i % T > i // T for i in range(T * T)]), boolean), -math.inf
    ),
    "none": lambda s: s,
    "strictly below, and itself": lambda s: s.masked_fill(
        s.g.ones(T, T, dtype=boolean).triu(1), FINFO
    ),
    "one more": lambda s: s.masked_fill(s.g.ones(T, T, dtype=boolean).triu(2), -math.inf),
    "above": lambda s: s.masked_fill(s.g.ones(T, T, dtype=boolean).tril(-1), -math.inf),
}
CAUSAL = lambda g: merge((lambda q, k, v: q.sdpa(k, v, causal=True))(*project(g)))
for _m, _f in MASKS.items():
    pair(
        "causal sdpa, mask " + _m,
        DIFFERENT
        if _m in ("none", "one more", "above")
        else NOT_EQUIVALENT
        if _m == "-1e4"
        else EQUIVALENT,
        "the same causal mask"
        if _m not in ("none", "one more", "above", "-1e4")
        else "another mask",
        CAUSAL,
        lambda g, f=_f: merge(eager(*project(g), mask=f)),
    )
pair(
    "causal sdpa, boolean mask",
    EQUIVALENT,
    "True is seen",
    CAUSAL,
    lambda g: merge((lambda q, k, v: q.sdpa(k, v, below(g)))(*project(g))),
)
pair(
    "causal sdpa, boolean mask inverted",
    DIFFERENT,
    "True is seen",
    CAUSAL,
    lambda g: merge(
        (lambda q, k, v: q.sdpa(k, v, g.arange(T).unsqueeze(1) <= g.arange(T)))(*project(g))
    ),
)
pair(
    "causal sdpa, additive mask",
    EQUIVALENT,
    "0 and finfo.min",
    CAUSAL,
    lambda g: merge(
        (lambda q, k, v: q.sdpa(k, v, below(g).where(g.zeros(T, T), g.full((), FINFO))))(
            *project(g)
        )
    ),
)
pair(
    "causal sdpa, 4-d mask",
    EQUIVALENT,
    "expanded over heads",
    CAUSAL,
    lambda g: merge(
        (lambda q, k, v: q.sdpa(k, v, below(g).unsqueeze(0).unsqueeze(0).expand(1, H, T, T)))(
            *project(g)
        )
    ),
)
pair(
    "causal mask in T = 1",
    EQUIVALENT,
    "one token sees itself",
    lambda g, s: merge((lambda q, k, v: q.sdpa(k, v, causal=bool(s)))(*project(g, t=1))),
)
pair(
    "attention over one token is v",
    EQUIVALENT,
    "softmax of one number is 1",
    lambda g: merge((lambda q, k, v: eager(q, k, v))(*project(g, t=1))),
    lambda g: g.x(1, 1, C).linear(g.param("v", C, C)),
)
pair(
    "scale in T = 1",
    EQUIVALENT,
    "softmax of one number is 1",
    lambda g, s: merge(eager(*project(g, t=1), scale=1.0 if s else 0.5)),
)
pair(
    "scale 1/d",
    DIFFERENT,
    "",
    lambda g, s: merge(eager(*project(g), scale=1 / D if s else D**-0.5)),
)
pair(
    "scale 1/sqrt(d + 1)",
    DIFFERENT,
    "",
    lambda g, s: merge(eager(*project(g), scale=(D + s) ** -0.5)),
)
pair(
    "scale of sdpa given",
    EQUIVALENT,
    "1/sqrt(d) is the default",
    CAUSAL,
    lambda g: merge((lambda q, k, v: q.sdpa(k, v, causal=True, scale=D**-0.5))(*project(g))),
)
pair(
    "scale of sdpa of 1",
    DIFFERENT,
    "",
    CAUSAL,
    lambda g: merge((lambda q, k, v: q.sdpa(k, v, causal=True, scale=1.0))(*project(g))),
)
pair(
    "scale before the product",
    EQUIVALENT,
    "(s q) k^T",
    lambda g: merge(eager(*project(g))),
    lambda g: merge(
        (lambda q, k, v: (q * D**-0.5).matmul(k.transpose(-1, -2)).softmax(-1).matmul(v))(
            *project(g)
        )
    ),
)
pair(
    "scale shared by q and k",
    EQUIVALENT,
    "sqrt(s) each",
    lambda g: merge(eager(*project(g))),
    lambda g: merge(
        (
            lambda q, k, v: (
                (q * D**-0.25).matmul((k * D**-0.25).transpose(-1, -2)).softmax(-1).matmul(v)
            )
        )(*project(g))
    ),
)
pair(
    "scale by division",
    EQUIVALENT,
    "/ sqrt(d)",
    lambda g: merge(eager(*project(g))),
    lambda g: merge(
        (lambda q, k, v: q.matmul(k.transpose(-1, -2)).div(D**0.5).softmax(-1).matmul(v))(
            *project(g)
        )
    ),
)
pair(
    "attention by bmm",
    EQUIVALENT,
    "heads as a batch",
    lambda g: merge(eager(*project(g))),
    lambda g: (
        lambda q, k, v: (
            q.bmm(k.transpose(1, 2))
            .mul(D**-0.5)
            .softmax(-1)
            .bmm(v)
            .transpose(0, 1)
            .reshape(1, T, C)
        )
    )(*[t.reshape(H, T, D) for t in project(g)]),
)
pair(
    "attention by einsum",
    EQUIVALENT,
    "bqhd,bkhd->bhqk",
    lambda g: merge(eager(*project(g))),
    lambda g: (
        lambda x: (
            lambda q, k, v: g.einsum(
                "bhqk,bkhd->bqhd", (g.einsum("bqhd,bkhd->bhqk", q, k) * D**-0.5).softmax(-1), v
            ).reshape(1, T, C)
        )(*[x.linear(g.param(n, C, C)).view(1, T, H, D) for n in "qkv"])
    )(g.x(1, T, C)),
)
pair(
    "softmax over queries",
    DIFFERENT,
    "dim -2 against -1",
    lambda g, s: merge(
        (lambda q, k, v: q.matmul(k.transpose(2, 3)).softmax(-2 if s else -1).matmul(v))(
            *project(g)
        )
    ),
)
pair(
    "softmax in float32",
    EQUIVALENT,
    "casts are identities",
    lambda g: merge(eager(*project(g))),
    lambda g: merge(
        (
            lambda q, k, v: (
                q.matmul(k.transpose(2, 3))
                .mul(D**-0.5)
                .softmax(-1, f32)
                .to(f32)
                .dropout(0.0, False)
                .matmul(v)
            )
        )(*project(g))
    ),
)
pair(
    "heads merged without transposing back",
    DIFFERENT,
    "view of the wrong layout",
    lambda g: merge(eager(*project(g))),
    lambda g: eager(*project(g)).reshape(1, T, C),
)
pair(
    "heads split as (d, h)",
    DIFFERENT,
    "heads and their width exchanged",
    lambda g: merge(eager(*project(g))),
    lambda g: (
        lambda x: merge(
            eager(*[x.linear(g.param(n, C, C)).view(1, T, D, H).permute(0, 3, 1, 2) for n in "qkv"])
        )
    )(g.x(1, T, C)),
)

# ---- fused weights: q, k, v of each head in their order ----


def fused(g, layout, kv=H):
    """q, k, v from one weight."""
    q, k, v = (values(n, (H if n == "q" else kv) * D, C) for n in "qkv")
    r = H // kv
    x = g.x(1, T, C)
    if layout == "blocks":
        h = x.linear(g.param("qkv", join(q, k, v)))
        return [heads(t) for t in h.split_with_sizes([H * D, kv * D, kv * D], -1)]
    if layout == "per head":  # (head, q k v, d), as BLOOM and GPT-NeoX have it
        w = join(*[m.rows(i * D, i * D + D) for i in range(H) for m in (q, k, v)])
        h = x.linear(g.param("qkv", w)).view(1, T, H, 3 * D)
        return [t.transpose(1, 2) for t in h.chunk(3, -1)]
    if layout == "interleaved":  # (head, d, q k v)
        w = join(*[m.rows(i, i + 1) for i in range(C) for m in (q, k, v)])
        h = x.linear(g.param("qkv", w)).view(1, T, H, D, 3)
        return [h.select(4, i).transpose(1, 2) for i in range(3)]
    if layout == "grouped":  # (group, its q's, k, v), as Falcon and InternLM2 have it
        w = join(
            *[
                p
                for i in range(kv)
                for p in (
                    q.rows(i * r * D, (i + 1) * r * D),
                    k.rows(i * D, i * D + D),
                    v.rows(i * D, i * D + D),
                )
            ]
        )
        h = x.linear(g.param("qkv", w)).view(1, T, kv, r + 2, D)
        return [
            h.slice(3, 0, r).reshape(1, T, H, D).transpose(1, 2),
            h.select(3, r).transpose(1, 2),
            h.select(3, r + 1).transpose(1, 2),
        ]
    if layout == "stacked":  # (q k v, head, d) by view
        h = x.linear(g.param("qkv", join(q, k, v))).view(1, T, 3, H, D).permute(2, 0, 3, 1, 4)
        return [h.select(0, i) for i in range(3)]
    if layout == "conv1d":  # GPT-2: the weight transposed, addmm
        h = (
            g.param("b", 3 * C)
            .addmm(x.view(T, C), g.param("qkv", join(q, k, v).t()))
            .view(1, T, 3 * C)
        )
        return [heads(t) for t in h.split(C, 2)]


for _l in "blocks", "per head", "interleaved", "stacked":
    pair(
        "fused q, k, v: " + _l,
        EQUIVALENT,
        "the same weights in another order",
        lambda g: merge(eager(*project(g))),
        lambda g, l=_l: merge(eager(*fused(g, l))),
    )
pair(
    "fused q, k, v: per head against blocks",
    EQUIVALENT,
    "the same weights in another order",
    lambda g: merge(eager(*fused(g, "per head"))),
    lambda g: merge(eager(*fused(g, "blocks"))),
)
pair(
    "fused q, k, v: conv1d",
    EQUIVALENT,
    "addmm with the transposed weight",
    lambda g: merge(eager(*fused(g, "conv1d"))),
    lambda g: (
        lambda x: merge(
            eager(
                *[
                    heads(
                        x.linear(
                            g.param(n, C, C),
                            g.param("b" + n, values("b", 3 * C).rows(i * C, i * C + C)),
                        )
                    )
                    for i, n in enumerate("qkv")
                ]
            )
        )
    )(g.x(1, T, C)),
)
pair(
    "fused q, k, v: per head read as blocks",
    DIFFERENT,
    "the layout of the weight is not the layout that is read",
    lambda g: merge(eager(*project(g))),
    lambda g: (
        lambda q, k, v: merge(
            eager(
                *[
                    heads(t)
                    for t in g.x(1, T, C)
                    .linear(
                        g.param(
                            "qkv",
                            join(*[m.rows(i * D, i * D + D) for i in range(H) for m in (q, k, v)]),
                        )
                    )
                    .chunk(3, -1)
                ]
            )
        )
    )(*[values(n, C, C) for n in "qkv"]),
)


def repeated(x, how, n=H):
    r = n // x.shape[1]
    if how == "expand":
        return x.unsqueeze(2).expand(1, x.shape[1], r, *x.shape[2:]).reshape(1, n, *x.shape[2:])
    if how == "repeat_interleave":
        return x.repeat_interleave(r, 1)
    if how == "repeat":
        return x.repeat(1, r, 1, 1)
    if how == "index":
        return x.index_select(1, x.g.full((n,), 1, i64).cumsum(0).sub(1).div(r, "floor"))


def grouped(how, kv=2, scheme=project):
    return lambda g: (lambda q, k, v: merge(eager(q, repeated(k, how), repeated(v, how))))(
        *(project(g, kv=kv) if scheme is project else fused(g, scheme, kv))
    )


GROUPED = grouped("expand")
pair(
    "grouped heads by repeat_interleave",
    EQUIVALENT,
    "expand and reshape",
    GROUPED,
    grouped("repeat_interleave"),
)
pair("grouped heads by an index", EQUIVALENT, "expand and reshape", GROUPED, grouped("index"))
pair(
    "grouped heads by repeat",
    DIFFERENT,
    "heads 0 1 0 1 against 0 0 1 1",
    GROUPED,
    grouped("repeat"),
)
pair(
    "grouped heads by repeat, of equal heads",
    DIFFERENT,
    "both heads of k and v have the same weights",
    lambda g: grouped_equal(g, "expand"),
    lambda g: grouped_equal(g, "repeat"),
)
pair(
    "grouped heads by enable_gqa",
    EQUIVALENT,
    "",
    lambda g: (lambda q, k, v: merge(q.sdpa(repeated(k, "expand"), repeated(v, "expand"))))(
        *project(g, kv=2)
    ),
    lambda g: (lambda q, k, v: merge(q.sdpa(k, v, enable_gqa=True)))(*project(g, kv=2)),
)
pair(
    "grouped heads by a batch of groups",
    EQUIVALENT,
    "[kv, r, T, D] against [kv, 1, T, D]",
    GROUPED,
    lambda g: (
        lambda q, k, v: (
            (
                q.view(1, 2, 2, T, D)
                .matmul(k.unsqueeze(2).transpose(-1, -2))
                .mul(D**-0.5)
                .softmax(-1)
                .matmul(v.unsqueeze(2))
            )
            .view(1, H, T, D)
            .transpose(1, 2)
            .reshape(1, T, C)
        )
    )(*project(g, kv=2)),
)
pair(
    "grouped heads, fused per group",
    EQUIVALENT,
    "(group, q's, k, v)",
    GROUPED,
    grouped("expand", scheme="grouped"),
)
pair("grouped heads, fused in blocks", EQUIVALENT, "", GROUPED, grouped("expand", scheme="blocks"))
pair(
    "multi-query by broadcasting",
    EQUIVALENT,
    "one k and v",
    grouped("expand", kv=1),
    lambda g: merge(eager(*project(g, kv=1))),
)
pair(
    "multi-query, fused",
    EQUIVALENT,
    "one k and v",
    grouped("expand", kv=1),
    lambda g: merge(eager(*fused(g, "blocks", kv=1))),
)
pair(
    "multi-query as heads repeated",
    EQUIVALENT,
    "all orders of one head are the same",
    grouped("expand", kv=1),
    grouped("repeat", kv=1),
)


def grouped_equal(g, how):
    x = g.x(1, T, C)
    k, v = (
        heads(x.linear(g.param(n, 2 * D, C, at=lambda i, n=n: math.sin(i % (D * C) + ord(n)))))
        for n in "kv"
    )
    return merge(eager(heads(x.linear(g.param("q", C, C))), repeated(k, how), repeated(v, how)))


# ---- sliding windows, soft caps, ALiBi ----


def windowed(w, t=T):
    return lambda g: merge(
        eager(*project(g), mask=lambda s: s.masked_fill(~below(g, t, w), -math.inf))
    )


pair(
    "window longer than T",
    EQUIVALENT,
    "T <= window: at the captured shape nothing is cut",
    lambda g: merge(eager(*project(g), mask=MASKS["-inf by masked_fill"])),
    windowed(9),
)
pair("window of T", EQUIVALENT, "nothing is cut", CAUSAL, windowed(T))
pair("window of 3", DIFFERENT, "", CAUSAL, windowed(3))
pair("window of 3 and of 2", DIFFERENT, "one off", windowed(3), windowed(2))
pair(
    "window by tril and triu",
    EQUIVALENT,
    "",
    windowed(3),
    lambda g: merge(
        eager(
            *project(g), mask=lambda s: s + (g.ones(T, T).tril().mul(g.ones(T, T).triu(-2))).log()
        )
    ),
)
pair(
    "window as an additive mask",
    EQUIVALENT,
    "",
    windowed(3),
    lambda g: (
        lambda q, k, v: merge(q.sdpa(k, v, below(g, T, 3).where(g.zeros(T, T), g.full((), FINFO))))
    )(*project(g)),
)
pair(
    "soft cap missing",
    DIFFERENT,
    "",
    lambda g, s: merge(eager(*project(g), cap=None if s else 50.0)),
)
pair(
    "soft cap of 30 and of 50",
    DIFFERENT,
    "",
    lambda g, s: merge(eager(*project(g), cap=30.0 if s else 50.0)),
)
pair(
    "soft cap far above",
    NOT_EQUIVALENT,
    "c tanh(x / c) with a large c",
    lambda g, s: (lambda y: y.div(1e4).tanh().mul(1e4) if s else y)(
        g.x(1, T, C, scale=0.01).linear(g.param("w", 6, C))
    ),
)
pair(
    "soft cap after the mask",
    DIFFERENT,
    "masked places become -cap",
    lambda g: merge(eager(*project(g), cap=20.0, mask=MASKS["-inf by masked_fill"])),
    lambda g: (
        lambda q, k, v: merge(
            (MASKS["-inf by masked_fill"](q.matmul(k.transpose(2, 3)) * D**-0.5) / 20.0)
            .tanh()
            .mul(20.0)
            .softmax(-1)
            .matmul(v)
        )
    )(*project(g)),
)
pair(
    "soft cap of logits",
    EQUIVALENT,
    "div, tanh, mul in other words",
    lambda g: g.x(4, 8).linear(g.param("w", 6, 8)).div(30.0).tanh().mul(30.0),
    lambda g: 30.0 * (g.x(4, 8).linear(g.param("w", 6, 8)) * (1 / 30.0)).tanh(),
)
SLOPES = [2.0 ** (-8 * (i + 1) / H) for i in range(H)]


def alibi(slopes, how="distance"):
    def f(g):
        m = g.const("slopes", list(slopes)).view(H, 1, 1)
        rel = (
            (g.arange(T).unsqueeze(0) - g.arange(T).unsqueeze(1)).to(f32)
            if how == "distance"
            else g.arange(T).view(1, T).to(f32)
        )
        bias = m * rel if how != "flipped" else -(m * rel)
        return merge(
            eager(
                *project(g),
                mask=lambda s: (s + bias.unsqueeze(0)).masked_fill(~below(g), -math.inf),
            )
        )

    return f


pair(
    "ALiBi by key position",
    EQUIVALENT,
    "softmax is the same after a shift of each row",
    alibi(SLOPES),
    alibi(SLOPES, "position"),
)
pair("ALiBi with slopes reversed", DIFFERENT, "", alibi(SLOPES), alibi(SLOPES[::-1]))
pair(
    "ALiBi with the other sign", DIFFERENT, "", alibi(SLOPES, "position"), alibi(SLOPES, "flipped")
)
pair("ALiBi missing", DIFFERENT, "", alibi(SLOPES), CAUSAL)
pair(
    "ALiBi with slopes computed",
    EQUIVALENT,
    "2^(-8 i / n)",
    alibi(SLOPES, "position"),
    lambda g: merge(
        eager(
            *project(g),
            mask=lambda s: (
                s
                + (
                    (g.arange(1, H + 1) * -2.0).mul(math.log(2)).exp().view(H, 1, 1)
                    * g.arange(T).view(1, T)
                ).unsqueeze(0)
            ).masked_fill(~below(g), -math.inf),
        )
    ),
)

# ---- rotary embedding ----

BASE = 100.0


def angles(g, t=T, base=BASE, start=0, width=D, positions=None):
    """[t, width / 2]"""
    p = (positions if positions else g.arange(start, t + start)).to(f32).unsqueeze(1)
    inv = g.const("inv_freq", [base ** (-2 * i / width) for i in range(width // 2)])
    return p * inv.unsqueeze(0)


def rotate(x, a, how="half"):
    """x: [..., t, D]; a: [t, D / 2]"""
    n = x.shape[-1] // 2
    if how in ("half", "half, sign", "half, exchanged"):
        c, s = (x.g.cat([f, f], -1) for f in (a.cos(), a.sin()))
        if how == "half, exchanged":
            c, s = s, c
        lo, hi = x.slice(-1, 0, n), x.slice(-1, n)
        turned = x.g.cat([hi, -lo], -1) if how == "half, sign" else x.g.cat([-hi, lo], -1)
        return x * c + turned * s
    c, s = a.cos(), a.sin()
    if how == "half, by parts":
        lo, hi = x.chunk(2, -1)
        return x.g.cat([lo * c - hi * s, hi * c + lo * s], -1)
    if how == "half, by a table":
        t = x.g.cat([c, s], -1)
        c, s = t.chunk(2, -1)
        lo, hi = x.split_with_sizes([n, n], -1)
        return x.g.cat([lo * c - hi * s, lo * s + hi * c], -1)
    if how == "interleaved":
        p = x.view(*x.shape[:-1], n, 2)
        even, odd = p.select(-1, 0), p.select(-1, 1)
        return x.g.stack([even * c - odd * s, even * s + odd * c], -1).view(*x.shape)
    if how == "interleaved, by steps":
        even, odd = x.slice(-1, 0, INF, 2), x.slice(-1, 1, INF, 2)
        turned = x.g.stack([-odd, even], -1).flatten(-2, -1)
        return x * c.repeat_interleave(2, -1) + turned * s.repeat_interleave(2, -1)
    if how == "interleaved, complex":
        z = x.reshape(*x.shape[:-1], n, 2).view_as_complex()
        return z.mul(a.ones_like().polar(a)).view_as_real().flatten(-2, -1)
    if how == "interleaved, cos only":
        return x * c.repeat_interleave(2, -1)


def rotary(how, order=lambda d: d, value=True, **more):
    """Scores of rotated q and k; `order` is done to the rows of both weights."""

    def f(g):
        x = g.x(1, T, C)
        q, k = (heads(x.linear(g.param(n, order(values(n, C, C))))) for n in "qk")
        a = angles(g, **more)
        return eager(rotate(q, a, how), rotate(k, a, how), heads(x.linear(g.param("v", C, C))))

    return f


def permuted(d):
    return half_to_interleaved(d, H, D)


HALF = rotary("half")
for _h in "half, by parts", "half, by a table":
    pair("rotary " + _h, EQUIVALENT, "the same rotation", HALF, rotary(_h))
for _h in "interleaved", "interleaved, by steps", "interleaved, complex":
    pair(
        "rotary %s, rows permuted" % _h,
        EQUIVALENT,
        "the rows of q and k are permuted to match",
        HALF,
        rotary(_h, permuted),
    )
    pair(
        "rotary %s, rows as they are" % _h,
        DIFFERENT,
        "pairs (i, i + d/2) against (2 i, 2 i + 1)",
        HALF,
        rotary(_h),
    )
pair(
    "rotary interleaved and complex",
    EQUIVALENT,
    "the same rotation",
    rotary("interleaved"),
    rotary("interleaved, complex"),
)
pair(
    "rotary interleaved and by steps",
    EQUIVALENT,
    "the same rotation",
    rotary("interleaved"),
    rotary("interleaved, by steps"),
)
pair(
    "rotary without sines",
    DIFFERENT,
    "the complex table cast to a real one",
    rotary("interleaved"),
    rotary("interleaved, cos only"),
)
pair("rotary with sin and cos exchanged", DIFFERENT, "", HALF, rotary("half, exchanged"))
pair("rotary base 101", DIFFERENT, "", HALF, rotary("half", base=101.0))
pair(
    "rotary of another width",
    DIFFERENT,
    "the exponent's denominator",
    HALF,
    lambda g: (
        lambda x, a: eager(
            *[rotate(heads(x.linear(g.param(n, C, C))), a) for n in "qk"],
            heads(x.linear(g.param("v", C, C))),
        )
    )(
        g.x(1, T, C),
        g.arange(T).to(f32).unsqueeze(1)
        * g.const("inv_freq", [BASE ** (-i / D) for i in range(D // 2)]).unsqueeze(0),
    ),
)


def rotated(how, **more):
    """One rotated tensor by itself."""
    return lambda g: rotate(g.x(1, H, T, D), angles(g, **more), how)


pair(
    "rotary with the other sign",
    DIFFERENT,
    "turned the other way",
    rotated("half"),
    rotated("half, sign"),
)
pair(
    "rotary scores",
    EQUIVALENT,
    "two ways to turn",
    lambda g: (lambda q, k, a: rotate(q, a).matmul(rotate(k, a).transpose(2, 3)))(
        g.x(1, H, T, D), g.x(1, H, T, D, name="k"), angles(g)
    ),
    lambda g: (lambda q, k, a: rotate(q, a).matmul(rotate(k, a, "half, by parts").transpose(2, 3)))(
        g.x(1, H, T, D), g.x(1, H, T, D, name="k"), angles(g)
    ),
)
pair("rotary positions from 1", DIFFERENT, "one off", rotated("half"), rotated("half", start=1))
pair(
    "rotary of q only",
    DIFFERENT,
    "",
    HALF,
    lambda g: (
        lambda x, a: eager(
            rotate(heads(x.linear(g.param("q", C, C))), a),
            *[heads(x.linear(g.param(n, C, C))) for n in "kv"],
        )
    )(g.x(1, T, C), angles(g)),
)
pair(
    "rotary at position 0",
    EQUIVALENT,
    "T = 1: an angle of 0",
    lambda g: rotate(g.x(1, H, 1, D), angles(g, 1)),
    lambda g: g.x(1, H, 1, D),
)
pair(
    "rotary at a position that is 0 as captured",
    NOT_EQUIVALENT + "|equivalent:input",
    "T = 1: the position is an input",
    lambda g: rotate(g.x(1, H, 1, D), angles(g, 1, positions=g.ints("positions", [0]))),
    lambda g: (g.ints("positions", [0]), g.x(1, H, 1, D))[1],
)
pair(
    "rotary base in T = 1",
    EQUIVALENT,
    "an angle of 0",
    lambda g, s: rotate(g.x(1, H, 1, D), angles(g, 1, base=1e4 if s else BASE)),
)
pair(
    "rotary of width 2",
    EQUIVALENT,
    "half and interleaved are the same",
    lambda g, s: rotate(g.x(1, H, T, 2), angles(g, width=2), "interleaved" if s else "half"),
)
pair(
    "rotary of half the width",
    DIFFERENT,
    "all of the head against half of it",
    rotated("half"),
    lambda g: (
        lambda x: g.cat([rotate(x.slice(-1, 0, 2), angles(g, width=2), "half"), x.slice(-1, 2)], -1)
    )(g.x(1, H, T, D)),
)
pair(
    "rotary of part of the head",
    EQUIVALENT,
    "slices and split_with_sizes",
    lambda g: (
        lambda x: g.cat([rotate(x.slice(-1, 0, 2), angles(g, width=2), "half"), x.slice(-1, 2)], -1)
    )(g.x(1, H, T, D)),
    lambda g: (lambda p: g.cat([rotate(p[0], angles(g, width=2), "interleaved"), p[1]], -1))(
        g.x(1, H, T, D).split_with_sizes([2, 2], -1)
    ),
)
pair(
    "rotary table looked up",
    EQUIVALENT,
    "rows of a stored cos and sin table",
    rotated("half"),
    lambda g: (
        lambda x, t: (lambda c, s, lo, hi: g.cat([lo * c - hi * s, hi * c + lo * s], -1))(
            *t.chunk(2, -1), *x.chunk(2, -1)
        )
    )(
        g.x(1, H, T, D),
        g.buffer(
            "cos_sin",
            Data(
                (8, D),
                [
                    f(
                        struct.unpack(
                            "f",
                            struct.pack(
                                "f",
                                p * struct.unpack("f", struct.pack("f", BASE ** (-2 * i / D)))[0],
                            ),
                        )[0]
                    )
                    for p in range(8)
                    for f in (math.cos, math.sin)
                    for i in range(D // 2)
                ],
            ),
        ).embedding(g.arange(T)),
    ),
)
pair(
    "rotary frequencies computed",
    EQUIVALENT,
    "1 / base^(2 i / d)",
    rotated("half"),
    lambda g: rotate(
        g.x(1, H, T, D),
        g.arange(T).to(f32).unsqueeze(1)
        * g.full((), BASE)
        .op("pow.Tensor_Tensor", [g.full((), BASE), g.arange(0, D, 2).to(f32).div(D)], (D // 2,))
        .reciprocal()
        .unsqueeze(0),
    ),
)
pair(
    "rotary before splitting heads",
    DIFFERENT,
    "over all heads as one",
    lambda g: merge(rotate(heads(g.x(1, T, C)), angles(g))),
    lambda g: rotate(g.x(1, T, C), angles(g, width=C)),
)
pair(
    "rotary before transposing",
    EQUIVALENT,
    "[1, T, H, D] with the table unsqueezed",
    lambda g: merge(rotate(heads(g.x(1, T, C)), angles(g))),
    lambda g: rotate(
        g.x(1, T, C).view(1, T, H, D), angles(g).unsqueeze(1), "half, by parts"
    ).reshape(1, T, C),
)


# ---- vLLM's attention, whose attributes say what it does ----


def kernel(kv=H, weights=None, **attributes):
    def f(g):
        x = g.x(1, T, C).view(T, C)
        return g.attention(
            *[x.linear(g.param(n, (H if n == "q" else kv) * D, C)) for n in "qkv"],
            H,
            kv,
            D,
            **attributes,
        ).view(1, T, C)

    return f


pair("attention kernel", EQUIVALENT, "causal", CAUSAL, kernel())
pair(
    "attention kernel against eager",
    EQUIVALENT,
    "causal, finfo.min",
    lambda g: merge(eager(*project(g), mask=MASKS["finfo.min by where"])),
    kernel(),
)
pair("attention kernel, scale", DIFFERENT, "1/d", CAUSAL, kernel(scale=1 / D))
pair("attention kernel, not causal", DIFFERENT, "", CAUSAL, kernel(causal=False))
pair(
    "attention kernel, encoder",
    EQUIVALENT,
    "not causal",
    lambda g: merge((lambda q, k, v: q.sdpa(k, v))(*project(g))),
    kernel(causal=False),
)
pair(
    "attention kernel, grouped",
    EQUIVALENT,
    "",
    lambda g: (
        lambda q, k, v: merge(q.sdpa(repeated(k, "expand"), repeated(v, "expand"), causal=True))
    )(*project(g, kv=2)),
    kernel(2),
)
pair(
    "attention kernel, grouped the other way",
    DIFFERENT,
    "",
    lambda g: (
        lambda q, k, v: merge(q.sdpa(repeated(k, "repeat"), repeated(v, "repeat"), causal=True))
    )(*project(g, kv=2)),
    kernel(2),
)
pair("attention kernel, window", EQUIVALENT, "", windowed(3), kernel(sliding_window=3))
pair("attention kernel, window missing", DIFFERENT, "", windowed(3), kernel())
pair("attention kernel, long window", EQUIVALENT, "T <= window", CAUSAL, kernel(sliding_window=64))
pair(
    "attention kernel, soft cap",
    EQUIVALENT,
    "",
    lambda g: merge(eager(*project(g), cap=50.0, mask=MASKS["-inf by masked_fill"])),
    kernel(logits_soft_cap=50.0),
)
pair("attention kernel, soft cap missing", DIFFERENT, "", kernel(logits_soft_cap=50.0), kernel())
pair("attention kernel, ALiBi", EQUIVALENT, "", alibi(SLOPES), kernel(alibi_slopes=SLOPES))
pair(
    "attention kernel, ALiBi reversed",
    DIFFERENT,
    "",
    alibi(SLOPES),
    kernel(alibi_slopes=SLOPES[::-1]),
)
pair("attention kernel, ALiBi added", DIFFERENT, "", CAUSAL, kernel(alibi_slopes=SLOPES))
