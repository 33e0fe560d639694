"""Attention whose masks, caches and ranks are written in several ways: prefixes, chunks, sinks,
windows and slopes, as masks, as kernels and as blocks of keys."""

from refactored_attention import (
    D,
    H,
    NEG,
    S,
    SLOPES,
    T,
    hide,
    is_causal,
    masked,
    online,
    plain,
    qkv,
    scores,
    window,
)
from refactoring import *

at = of(qkv())


def parts(q, k, v, *keys):
    """Attention over each range of keys by itself (a, b, mask or None), merged by their sums."""
    outs, logs = [], []
    for a, b, seen in keys:
        s = scores(q, k.slice(2, a, b))
        s = s if seen is None else hide(s, seen)
        outs.append(s.softmax(-1).matmul(v.slice(2, a, b)))
        logs.append(s.logsumexp(-1))
    w = q.g.stack(logs, 0).softmax(0)
    return (q.g.stack(outs, 0) * w.unsqueeze(-1)).sum(0)


def rows(q, k, v, *cuts):
    """Ranges of queries (a, b), each with its range of keys (c, d), causal from the end or not."""
    return q.g.cat(
        [
            (
                masked(
                    q.slice(2, a, b), k.slice(2, c, d), v.slice(2, c, d), causal(q.g, b - a, d - c)
                )
                if tri
                else plain(q.slice(2, a, b), k.slice(2, c, d), v.slice(2, c, d))
            )
            for a, b, c, d, tri in cuts
        ],
        2,
    )


# ---- prefixes ----


def prefix(g, n):
    return causal(g, T) | (g.arange(T).unsqueeze(0) < n)


at(
    "prefix by rows",
    "the prefix whole, the rest causal",
    lambda q, k, v: masked(q, k, v, prefix(q.g, 3)),
    lambda q, k, v: rows(q, k, v, (0, 3, 0, 3, False), (3, T, 0, T, True)),
    ("a prefix of two", lambda q, k, v: rows(q, k, v, (0, 2, 0, 2, False), (2, T, 0, T, True))),
)
at(
    "prefix by the larger position",
    "PaliGemma's: a key counts as the prefix's last",
    lambda q, k, v: masked(q, k, v, prefix(q.g, 3)),
    lambda q, k, v: (lambda i: masked(q, k, v, i.unsqueeze(0) <= i.clamp_min(2).unsqueeze(1)))(
        q.g.arange(T)
    ),
    (
        "the prefix's length instead",
        lambda q, k, v: (lambda i: masked(q, k, v, i.unsqueeze(0) <= i.clamp_min(3).unsqueeze(1)))(
            q.g.arange(T)
        ),
    ),
)
at(
    "prefix by cumulated marks",
    "blocks of images see themselves whole",
    lambda q, k, v: masked(q, k, v, prefix(q.g, 3)),
    lambda q, k, v: (lambda c: masked(q, k, v, c.unsqueeze(0) <= c.unsqueeze(1)))(
        q.g.const("marks", [1, 0, 0, 1, 1, 1], i64).cumsum(0)
    ),
    (
        "marks of two blocks",
        lambda q, k, v: (lambda c: masked(q, k, v, c.unsqueeze(0) <= c.unsqueeze(1)))(
            q.g.const("marks", [1, 1, 0, 1, 1, 1], i64).cumsum(0)
        ),
    ),
)
at(
    "a shared prefix in cascade",
    "all see the prefix, then themselves",
    is_causal,
    lambda q, k, v: q.g.cat(
        [
            is_causal(*[x.slice(2, 0, 2) for x in (q, k, v)]),
            parts(q.slice(2, 2), k, v, (0, 2, None), (2, T, causal(q.g, T - 2))),
        ],
        2,
    ),
    (
        "the prefix counted once more",
        lambda q, k, v: q.g.cat(
            [
                is_causal(*[x.slice(2, 0, 2) for x in (q, k, v)]),
                parts(q.slice(2, 2), k, v, (0, 2, None), (0, 2, None), (2, T, causal(q.g, T - 2))),
            ],
            2,
        ),
    ),
)
at(
    "keys of a prefix learned",
    "prefix tuning: joined, or merged",
    lambda q, k, v: plain(
        q, *[q.g.cat([q.g.param("p" + n, 1, H, 2, D), x], 2) for n, x in (("k", k), ("v", v))]
    ),
    lambda q, k, v: parts(
        q,
        *[q.g.cat([x, q.g.param("p" + n, 1, H, 2, D)], 2) for n, x in (("k", k), ("v", v))],
        (0, T, None),
        (T, T + 2, None),
    ),
    (
        "keys without values",
        lambda q, k, v: plain(
            q, *[q.g.cat([q.g.param("p" + n, 1, H, 2, D), x], 2) for n, x in (("k", k), ("k", v))]
        ),
    ),
)

# ---- chunks and windows ----


def in_chunks(q, k, v, n):
    """Chunks as a batch."""
    a, b, c = (x.view(H, T // n, n, D) for x in (q, k, v))
    return is_causal(a, b, c).reshape(1, H, T, D)


def chunk_mask(g, n):
    i = g.arange(T)
    return causal(g, T) & (i.unsqueeze(0) >= i.floor_divide(n).mul(n).unsqueeze(1))


for _n in 2, 3:
    at(
        "chunks of %d as a batch" % _n,
        "Llama 4's local layers",
        lambda q, k, v, n=_n: masked(q, k, v, chunk_mask(q.g, n)),
        lambda q, k, v, n=_n: in_chunks(q, k, v, n),
        ("the other length", lambda q, k, v, n=_n: in_chunks(q, k, v, 5 - n)),
    )
at(
    "chunks by remainders",
    "no further back than the place in a chunk",
    lambda q, k, v: masked(q, k, v, chunk_mask(q.g, 3)),
    lambda q, k, v: (
        lambda i: (lambda d: masked(q, k, v, d.ge(0) & (d <= i.remainder(3).unsqueeze(1))))(
            i.unsqueeze(1) - i.unsqueeze(0)
        )
    )(q.g.arange(T)),
    (
        "one further",
        lambda q, k, v: (
            lambda i: (
                lambda d: masked(q, k, v, d.ge(0) & (d <= i.remainder(3).add(1).unsqueeze(1)))
            )(i.unsqueeze(1) - i.unsqueeze(0))
        )(q.g.arange(T)),
    ),
)
at(
    "window in blocks of keys",
    "online softmax with a mask of each block",
    lambda q, k, v: masked(q, k, v, window(q.g, 5)),
    online((3, 3), lambda s, a, n: hide(s, window(s.g, 5).slice(1, a, a + n))),
    ("a window of 4", online((3, 3), lambda s, a, n: hide(s, window(s.g, 4).slice(1, a, a + n)))),
)
at(
    "a window's queries one by one",
    "keys from max(0, i - 2)",
    lambda q, k, v: masked(q, k, v, window(q.g, 3)),
    lambda q, k, v: rows(q, k, v, *[(i, i + 1, max(0, i - 2), i + 1, False) for i in range(T)]),
    (
        "one key less",
        lambda q, k, v: rows(q, k, v, *[(i, i + 1, max(0, i - 1), i + 1, False) for i in range(T)]),
    ),
)


def ring(g, how):
    """One query behind T keys, of which it sees the last 4: a cache of 4 places, written around."""
    q, k, v = g.x(1, H, 1, D, name="q"), g.x(1, H, T, D, name="k"), g.x(1, H, T, D, name="v")
    if how == "cut":
        return plain(q, k.slice(2, T - 4), v.slice(2, T - 4))
    first, late = g.arange(4), g.arange(4, T).remainder(4)
    for x in "kv":
        old = k if x == "k" else v
        new = index_copy(g.zeros(1, H, 4, D), 2, first, old.slice(2, 0, 4))
        new = new if how == "not written" else index_copy(new, 2, late, old.slice(2, 4))
        k, v = (new, v) if x == "k" else (k, new)
    return plain(q, k, v)


refactoring(
    "a cache written around",
    "the order of keys does not matter",
    lambda g: ring(g, "cut"),
    lambda g: ring(g, "ring"),
    ("the last are not written", lambda g: ring(g, "not written")),
)

# ---- sinks, slopes ----


def sinks(g, n, w):
    return (window(g, w) | (g.arange(T) < n).unsqueeze(0)) & causal(g, T)


at(
    "sinks and a window in two parts",
    "StreamingLLM: merged by their sums",
    lambda q, k, v: masked(q, k, v, sinks(q.g, 1, 2)).slice(2, 3),
    lambda q, k, v: parts(
        q.slice(2, 3), k, v, (0, 1, None), (1, T, window(q.g, 2).slice(0, 3).slice(1, 1))
    ),
    (
        "a window of three",
        lambda q, k, v: parts(
            q.slice(2, 3), k, v, (0, 1, None), (1, T, window(q.g, 3).slice(0, 3).slice(1, 1))
        ),
    ),
)
at(
    "sinks and a window by keys that are left",
    "a cache without what lies between",
    lambda q, k, v: masked(q, k, v, sinks(q.g, 2, 2)).slice(2, T - 1),
    lambda q, k, v: plain(
        q.slice(2, T - 1), *[q.g.cat([x.slice(2, 0, 2), x.slice(2, T - 2)], 2) for x in (k, v)]
    ),
    (
        "one sink",
        lambda q, k, v: plain(
            q.slice(2, T - 1), *[q.g.cat([x.slice(2, 0, 1), x.slice(2, T - 2)], 2) for x in (k, v)]
        ),
    ),
)


def with_kernel(**k):
    """Heads as the kernel has them: [T, H D]."""

    def f(q, key, v):
        flat = [x.transpose(1, 2).reshape(T, H * D) for x in (q, key, v)]
        return q.g.attention(*flat, H, H, D, **k).view(1, T, H, D).transpose(1, 2)

    return f


def sloped(g, slopes=SLOPES):
    i = g.arange(T)
    return g.const("slopes", slopes).view(H, 1, 1) * (i.unsqueeze(0) - i.unsqueeze(1)).to(f32)


at(
    "slopes under a window, in the kernel",
    "ALiBi and a window of three",
    lambda q, k, v: hide(scores(q, k) + sloped(q.g), window(q.g, 3)).softmax(-1).matmul(v),
    with_kernel(alibi_slopes=SLOPES, sliding_window=3),
    ("a window of two", with_kernel(alibi_slopes=SLOPES, sliding_window=2)),
)
at(
    "slopes under a window by sdpa",
    "one additive mask",
    lambda q, k, v: hide(scores(q, k) + sloped(q.g), window(q.g, 3)).softmax(-1).matmul(v),
    lambda q, k, v: q.sdpa(k, v, sloped(q.g).masked_fill(~window(q.g, 3), NEG)),
    (
        "slopes exchanged",
        lambda q, k, v: q.sdpa(k, v, sloped(q.g, SLOPES[::-1]).masked_fill(~window(q.g, 3), NEG)),
    ),
)
at(
    "a window and a cap, in the kernel",
    "Gemma 2's local layers",
    lambda q, k, v: (
        hide(scores(q, k).div(20.0).tanh() * 20.0, window(q.g, 3)).softmax(-1).matmul(v)
    ),
    with_kernel(logits_soft_cap=20.0, sliding_window=3),
    ("another cap", with_kernel(logits_soft_cap=25.0, sliding_window=3)),
)
at(
    "a window and sinks beside the kernel",
    "where the window hides nothing more",
    is_causal,
    with_kernel(sliding_window=T),
    ("a window of one less", with_kernel(sliding_window=T - 1)),
)

# ---- ranks ----


def zigzag(q, k, v, order):
    """Tokens in another order over two ranks; each rank attends with its own positions."""
    g = q.g
    i = g.const("order", order, i64)
    out = []
    for half in i.chunk(2, 0):
        seen = i.unsqueeze(0) <= half.unsqueeze(1)
        out.append(
            masked(q.index_select(2, half), k.index_select(2, i), v.index_select(2, i), seen)
        )
    back = g.const("back", [order.index(t) for t in range(T)], i64)
    return g.cat(out, 2).index_select(2, back)


at(
    "context parallel, first and last together",
    "tokens in another order and back",
    is_causal,
    lambda q, k, v: zigzag(q, k, v, [0, 5, 1, 4, 2, 3]),
    (
        "a mask of the new order",
        lambda q, k, v: (
            lambda i, b: is_causal(*[x.index_select(2, i) for x in (q, k, v)]).index_select(2, b)
        )(q.g.const("order", [0, 5, 1, 4, 2, 3], i64), q.g.const("back", [0, 2, 4, 5, 3, 1], i64)),
    ),
)


def around(q, k, v, merged=True):
    """Ring attention of two ranks: its own keys causal, those of the rank before whole."""
    h = T // 2
    first = is_causal(*[x.slice(2, 0, h) for x in (q, k, v)])
    own = (h, T, causal(q.g, h))
    return q.g.cat([first, parts(q.slice(2, h), k, v, *([(0, h, None)] if merged else []), own)], 2)


at(
    "ring attention of two ranks",
    "merged by their sums",
    is_causal,
    around,
    ("the rank before left out", lambda q, k, v: around(q, k, v, False)),
)
at(
    "heads over ranks, tokens over ranks",
    "Ulysses: an exchange before and behind",
    is_causal,
    lambda q, k, v: (lambda f: f(q, k, v))(
        lambda *x: q.g.cat(
            [
                is_causal(
                    *[
                        q.g.cat(
                            [t.slice(2, 0, 3).slice(1, h, h + 1), t.slice(2, 3).slice(1, h, h + 1)],
                            2,
                        )
                        for t in x
                    ]
                )
                for h in range(H)
            ],
            1,
        )
    ),
    (
        "the tokens exchanged",
        lambda q, k, v: (lambda f: f(q, k, v))(
            lambda *x: q.g.cat(
                [
                    is_causal(
                        *[
                            q.g.cat(
                                [
                                    t.slice(2, 3).slice(1, h, h + 1),
                                    t.slice(2, 0, 3).slice(1, h, h + 1),
                                ],
                                2,
                            )
                            for t in x
                        ]
                    )
                    for h in range(H)
                ],
                1,
            )
        ),
    ),
)

# ---- pages of several sequences ----


def two_sequences(how):
    """Two sequences of four keys in pages of two; a table of pages for each."""

    def f(g):
        q = g.x(2, H, 1, D, name="q")
        k, v = (g.x(2, 4, H, D, name=n) for n in "kv")
        if how != "plain":
            slots = g.const("slots", [6, 7, 0, 1, 10, 11, 4, 5], i64)
            pages = [3, 0, 5, 2] if how != "torn" else [3, 5, 0, 2]
            table = g.const("table", Data((2, 2), pages), i64)
            out = []
            for x in (k, v):
                flat = index_copy(g.zeros(12, H, D), 0, slots, x.view(8, H, D))
                if how == "slots":
                    places = (table.unsqueeze(2) * 2 + g.arange(2)).view(2, 4)
                    out.append(flat.index(places))
                elif how == "loop":
                    pages = flat.view(6, 2, H, D)
                    out.append(
                        g.stack(
                            [pages.index(table.select(0, b)).reshape(4, H, D) for b in range(2)], 0
                        )
                    )
                else:
                    out.append(flat.view(6, 2, H, D).index(table).view(2, 4, H, D))
            k, v = out
        return plain(q, k.transpose(1, 2), v.transpose(1, 2))

    return f


for _h in "table", "slots", "loop":
    refactoring(
        "pages of two sequences, " + _h,
        "each reads what it wrote",
        two_sequences("plain"),
        two_sequences(_h),
        ("pages of the other sequence", two_sequences("torn")) if _h == "table" else None,
    )
