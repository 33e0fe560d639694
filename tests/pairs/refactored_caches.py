"""Attention over caches: one query after the other, pages, rings, and across two sequences."""

from refactored_attention import *
from refactored_attention import FINFO, NEG, S
from refactoring import *

# ---- caches ----

of(lambda g: (g.x(1, H, 1, D, name="q"), g.x(1, H, T, D, name="k"), g.x(1, H, T, D, name="v")))(
    "one query by sums of products",
    "decoding",
    plain,
    lambda q, k, v: ((((q * k).sum(-1) * S).softmax(-1)).unsqueeze(-1) * v).sum(2, True),
    (
        "the mean of all",
        lambda q, k, v: ((((q * k).mean(-1) * S).softmax(-1)).unsqueeze(-1) * v).sum(2, True),
    ),
)
at(
    "the last row of causal attention",
    "decoding against prefilling",
    lambda q, k, v: is_causal(q, k, v).slice(2, T - 1),
    lambda q, k, v: q.slice(2, T - 1).sdpa(k, v),
)
at(
    "queries behind a cache",
    "j <= i + S - T",
    lambda q, k, v: is_causal(q, k, v).slice(2, 4),
    lambda q, k, v: masked(q.slice(2, 4), k, v, q.g.ones(2, T, dtype=boolean).tril(T - 2)),
    ("top left", lambda q, k, v: masked(q.slice(2, 4), k, v, q.g.ones(2, T, dtype=boolean).tril())),
)


def cached(how):
    """A cache of 6 places whose first 4 are filled, two new ones; T = 2 queries."""

    def f(g):
        q, k, v = (g.x(1, H, 2, D, name=n) for n in "qkv")
        old = [g.x(1, H, 4, D, name="old" + n) for n in "kv"]
        if how == "cat":
            kk, vv = (g.cat([o, n], 2) for o, n in zip(old, (k, v)))
        elif how == "slice_scatter":
            kk, vv = (
                slice_scatter(slice_scatter(g.zeros(1, H, 8, D), o, 2, 0, 4), n, 2, 4, 6).slice(
                    2, 0, 6
                )
                for o, n in zip(old, (k, v))
            )
        elif how == "index_copy":
            kk, vv = (
                index_copy(pad(o, (0, 0, 0, 2)), 2, g.arange(4, 6), n) for o, n in zip(old, (k, v))
            )
        elif how in ("static", "static, all seen"):
            kk, vv = (
                index_copy(pad(o, (0, 0, 0, 4)), 2, g.arange(4, 6), n) for o, n in zip(old, (k, v))
            )
            seen = g.arange(8).unsqueeze(0) <= g.arange(4, 6).unsqueeze(1)
            return masked(q, kk, vv, seen if how == "static" else seen | (g.arange(8) > 6))
        return masked(q, kk, vv, causal(g, 2, 6))

    return f


for _h in "slice_scatter", "index_copy", "static":
    refactoring(
        "cache by " + _h,
        "places are written, or joined",
        cached("cat"),
        cached(_h),
        ("empty places are seen", cached("static, all seen")) if _h == "static" else None,
    )


def paged(how, table=(3, 0, 5), b=2):
    """Keys of [T, H, D] written to pages of b tokens, and read through the block table."""

    def f(g):
        q = g.x(1, H, 1, D, name="q")
        k, v = (g.x(T, H, D, name=n) for n in "kv")
        if how != "plain":
            slots = g.const("slots", [table[i // b] * b + i % b for i in range(T)], i64)
            blocks = g.const("table", list(table), i64)
            out = []
            for x in (k, v):
                if how == "read":
                    pages = g.zeros(6 * b, H, D)
                    x = index_copy(pages, 0, slots, x).view(6, b, H, D).index(blocks).view(T, H, D)
                elif how == "index_put":
                    x = (
                        index_put(
                            g.zeros(6, b, H, D), [slots.div(b, "floor"), slots.remainder(b)], x
                        )
                        .index_select(0, blocks)
                        .flatten(0, 1)
                    )
                elif how == "slots":
                    x = index_copy(g.zeros(6 * b, H, D), 0, slots, x).index_select(0, slots)
                elif how == "scatter":
                    x = (
                        g.zeros(6 * b, H, D)
                        .scatter(0, slots.view(T, 1, 1).expand(T, H, D), x)
                        .index(slots)
                    )
                elif how == "computed":
                    at_ = (blocks.unsqueeze(1) * b + g.arange(b).unsqueeze(0)).view(-1)
                    x = index_copy(g.zeros(6 * b, H, D), 0, at_, x).index(at_)
                out.append(x)
            k, v = out
        return plain(q, k.transpose(0, 1).unsqueeze(0), v.transpose(0, 1).unsqueeze(0))

    return f


def torn(g):
    q = g.x(1, H, 1, D, name="q")
    k, v = (g.x(T, H, D, name=n) for n in "kv")
    wrote, read = g.const("slots", [6, 7, 0, 1, 10, 11], i64), g.const("table", [3, 5, 0], i64)
    k = index_copy(g.zeros(12, H, D), 0, wrote, k).view(6, 2, H, D).index(read).view(T, H, D)
    return plain(q, k.transpose(0, 1).unsqueeze(0), v.transpose(0, 1).unsqueeze(0))


for _h in "read", "index_put", "slots", "scatter", "computed":
    refactoring(
        "paged cache, " + _h,
        "each token is read where it was written",
        paged("plain"),
        paged(_h),
        ("pages in another order", torn) if _h == "read" else None,
    )


def pages_in_blocks(g):
    q = g.x(1, H, 1, D, name="q")
    k, v = (
        index_copy(
            g.zeros(12, H, D), 0, g.const("slots", [6, 7, 0, 1, 10, 11], i64), g.x(T, H, D, name=n)
        ).view(6, 2, H, D)
        for n in "kv"
    )
    m = l = o = None
    for page in (3, 0, 5):
        kb, vb = (x.select(0, page).transpose(0, 1).unsqueeze(0) for x in (k, v))
        s = scores(q, kb)
        new = s.amax(-1, True) if m is None else m.maximum(s.amax(-1, True))
        p = (s - new).exp()
        l, o = (
            (p.sum(-1, True), p.matmul(vb))
            if m is None
            else (l * (m - new).exp() + p.sum(-1, True), o * (m - new).exp() + p.matmul(vb))
        )
        m = new
    return o / l


refactoring(
    "paged attention page by page", "PagedAttention's kernel", paged("plain"), pages_in_blocks
)

# ---- across two sequences, and for one ----

cross = of(qkv(t=3, s=T))
cross(
    "cross attention",
    "another length",
    lambda q, k, v: q.sdpa(k, v),
    lambda q, k, v: (lambda a, b, c: a.bmm(b.transpose(1, 2)).softmax(-1).bmm(c))(
        (q * S).view(H, 3, D), k.view(H, T, D), v.view(H, T, D)
    ).view(1, H, 3, D),
)
cross("cross attention in blocks", "online softmax", lambda q, k, v: q.sdpa(k, v), online((2, 4)))
at(
    "attention for the first token only",
    "a class token's",
    lambda q, k, v: plain(q, k, v).select(2, 0),
    lambda q, k, v: plain(q.slice(2, 0, 1), k, v).squeeze(2),
)
of(lambda g: (g.x(1, H, T, D, name="k"), g.x(1, H, T, D, name="v"), g.param("probe", 1, H, 1, D)))(
    "pooling by attention",
    "one learned query",
    lambda k, v, p: plain(p, k, v).squeeze(2),
    lambda k, v, p: (lambda w: (w.unsqueeze(-1) * v).sum(2))(((k * p).sum(-1) * S).softmax(-1)),
)
at(
    "norms of queries and keys",
    "before and after the heads are transposed",
    lambda q, k, v: plain(rms(q) * q.g.param("nq", D), rms(k) * q.g.param("nk", D), v),
    lambda q, k, v: plain(
        *[
            (rms(x.transpose(1, 2)) * q.g.param(n, D)).transpose(1, 2)
            for x, n in ((q, "nq"), (k, "nk"))
        ],
        v,
    ),
    (
        "one weight for both",
        lambda q, k, v: plain(
            *[
                (rms(x.transpose(1, 2)) * q.g.param(n, D)).transpose(1, 2)
                for x, n in ((q, "nq"), (k, "nq"))
            ],
            v,
        ),
    ),
)
at(
    "norms of queries and keys by rms_norm",
    "the scale is in the weight",
    lambda q, k, v: (rms(q) * q.g.param("nq", D)).matmul(rms(k).transpose(2, 3)) * S,
    lambda q, k, v: q.rms_norm(q.g.param("nq", D) * S).matmul(k.rms_norm().transpose(2, 3)),
)
at(
    "cosine attention",
    "lengths divided before and after the product",
    lambda q, k, v: (
        (q / q.norm(-1, True)).matmul((k / k.norm(-1, True)).transpose(2, 3)).mul(10.0).softmax(-1)
    ),
    lambda q, k, v: (
        q.matmul(k.transpose(2, 3)) / (q.norm(-1, True) * k.norm(-1).unsqueeze(2)) * 10.0
    ).softmax(-1),
    (
        "only the keys'",
        lambda q, k, v: (q.matmul(k.transpose(2, 3)) / k.norm(-1).unsqueeze(2) * 10.0).softmax(-1),
    ),
)
