"""Embeddings, positions, pooling, heads, losses and what is done to logits before a token is
drawn."""

from refactoring import *

B, T, V, C = 2, 4, 6, 4
IDS = [3, 1, 4, 1, 5, 0, 2, 5]


def tokens(g, shape=(B, T)):
    return g.ints("ids", Data(shape, IDS[: count(shape)]), V)


embed = of(lambda g: (tokens(g), g.param("e", V, C)))
embed(
    "embedding by one-hot rows",
    "a product",
    lambda i, e: e.embedding(i),
    lambda i, e: i.one_hot(V).to(f32).matmul(e),
)
embed(
    "embedding by index_select",
    "flattened",
    lambda i, e: e.embedding(i),
    lambda i, e: e.index_select(0, i.view(-1)).view(B, T, C),
)
embed(
    "embedding by gather",
    "rows expanded",
    lambda i, e: e.embedding(i),
    lambda i, e: e.gather(0, i.view(-1, 1).expand(B * T, C)).view(B, T, C),
)
embed(
    "embedding of two ranks",
    "each its part of the vocabulary, others masked",
    lambda i, e: e.embedding(i),
    lambda i, e: (lambda f: f(0) + f(3))(
        lambda lo: (
            lambda m: (
                e.slice(0, lo, lo + 3)
                .embedding(i.sub(lo).mul(m.to(i64)))
                .masked_fill(~m.unsqueeze(2), 0.0)
            )
        )((i >= lo) & (i < lo + 3))
    ),
    (
        "not masked",
        lambda i, e: (lambda f: f(0) + f(3))(
            lambda lo: (lambda m: e.slice(0, lo, lo + 3).embedding(i.sub(lo).mul(m.to(i64))))(
                (i >= lo) & (i < lo + 3)
            )
        ),
    ),
)
embed(
    "embedding of a padded table",
    "rows that no token has",
    lambda i, e: e.embedding(i),
    lambda i, e: pad(e, (0, 0, 0, 2)).embedding(i),
)
embed(
    "embedding scaled",
    "Gemma's, of the table or of the rows",
    lambda i, e: e.embedding(i) * 2.0,
    lambda i, e: (e * 2.0).embedding(i),
    ("scaled by the square", lambda i, e: (e * 4.0).embedding(i)),
)
embed(
    "embedding projected",
    "ALBERT's factors",
    lambda i, e: e.embedding(i).linear(i.g.param("p", C, C)),
    lambda i, e: e.linear(i.g.param("p", C, C)).embedding(i),
)
embed(
    "padding left out",
    "rows of padding zeroed",
    lambda i, e: e.embedding(i) * i.ne(0).to(f32).unsqueeze(2),
    lambda i, e: e.embedding(i).masked_fill(i.eq(0).unsqueeze(2), 0.0),
    ("token 1 as well", lambda i, e: e.embedding(i).masked_fill((i < 2).unsqueeze(2), 0.0)),
)
embed(
    "images in the text",
    "placeholders replaced",
    lambda i, e: i.eq(5).unsqueeze(2).where(i.g.param("img", C), e.embedding(i)),
    lambda i, e: (lambda m: e.embedding(i) * (1.0 - m) + i.g.param("img", C) * m)(
        i.eq(5).to(f32).unsqueeze(2)
    ),
)
head = of(lambda g: (g.x(B, T, C), g.param("e", V, C)))
head(
    "tied head",
    "the table as the weight",
    lambda x, e: x.linear(e),
    lambda x, e: x.g.einsum("btc,vc->btv", x, e),
)
head(
    "head of the last token",
    "cut before and behind",
    lambda x, e: x.linear(e).slice(1, T - 1),
    lambda x, e: x.select(1, T - 1).mm(e.t()).unsqueeze(1),
    ("of the first", lambda x, e: x.select(1, 0).mm(e.t()).unsqueeze(1)),
)
head(
    "head of a padded vocabulary",
    "cut off again",
    lambda x, e: x.linear(e),
    lambda x, e: x.linear(pad(e, (0, 0, 0, 2))).slice(-1, 0, V),
)
head(
    "head of two ranks",
    "logits joined",
    lambda x, e: x.linear(e),
    lambda x, e: x.g.cat([x.linear(p) for p in e.chunk(2, 0)], -1),
    ("the other order", lambda x, e: x.g.cat([x.linear(p) for p in e.chunk(2, 0)[::-1]], -1)),
)
head(
    "head of several tokens",
    "indexed before and behind",
    lambda x, e: x.view(-1, C).linear(e).index_select(0, x.g.const("last", [3, 5], i64)),
    lambda x, e: x.view(-1, C).index(x.g.const("last", [3, 5], i64)).linear(e),
)
head(
    "head in the width of its input",
    "Granite's divided logits",
    lambda x, e: x.linear(e) / 8.0,
    lambda x, e: (x * 0.125).linear(e),
)

# ---- positions ----

seen = of(lambda g: (g.ints("mask", Data((B, T), [0, 0, 1, 1, 1, 1, 0, 1]), 2),))
seen(
    "positions of what is seen",
    "cumulated mask",
    lambda m: m.cumsum(1).sub(1).clamp_min(0),
    lambda m: m.cumsum(1).sub(1).maximum(m.zeros_like()),
    ("from one", lambda m: m.cumsum(1).clamp_min(0)),
)
seen(
    "positions behind padding",
    "1 where padding stands",
    lambda m: m.cumsum(1).sub(1).masked_fill(m.eq(0), 1),
    lambda m: m.ne(0).where(m.cumsum(1).sub(1), 1),
)
seen(
    "positions with padding's own",
    "RoBERTa's",
    lambda m: m.cumsum(1).mul(m).add(1),
    lambda m: m.ne(0).where(m.cumsum(1), m.zeros_like()).add(1),
    ("not masked", lambda m: m.cumsum(1).add(1)),
)
seen(
    "length of what is seen",
    "sum and count",
    lambda m: m.sum(1),
    lambda m: m.ne(0).to(i64).cumsum(1).select(1, T - 1),
)
seen(
    "bias of a mask",
    "(1 - m) times the least",
    lambda m: (m.to(f32).rsub(1.0) * -1e9).unsqueeze(1),
    lambda m: m.to(boolean).where(0.0, -1e9).unsqueeze(1),
    ("not inverted", lambda m: m.to(boolean).where(-1e9, 0.0).unsqueeze(1)),
)
seen(
    "mask of pairs",
    "both seen",
    lambda m: (m.unsqueeze(1) * m.unsqueeze(2)).to(boolean),
    lambda m: m.to(boolean).unsqueeze(1) & m.to(boolean).unsqueeze(2),
    ("one of both", lambda m: m.to(boolean).unsqueeze(1) | m.to(boolean).unsqueeze(2)),
)
whole = of(lambda g: (g.x(T, T),))
whole(
    "causal mask by tril and by comparison",
    "two ways to a triangle",
    lambda x: x * x.g.ones(T, T).tril(),
    lambda x: x.masked_fill(x.g.arange(T).unsqueeze(0) > x.g.arange(T).unsqueeze(1), 0.0),
    ("without the diagonal", lambda x: x * x.g.ones(T, T).tril(-1)),
)
whole(
    "block of a position",
    "floor division",
    lambda x: x + x.g.arange(T).div(2, "floor").to(f32),
    lambda x: x + x.g.arange(T).to(f32).div(2.0).floor(),
    ("rounded up", lambda x: x + x.g.arange(T).to(f32).div(2.0).ceil()),
)
count_ = of(lambda g: (g.ints("n", [3, 1, 4, 1, 16, 9, 2, 6], 100, i32).to(i64),))
count_(
    "pages of a length",
    "rounded up: (n + 15) / 16",
    lambda n: n.add(15).div(16, "floor"),
    lambda n: -(-n).div(16, "floor"),
    ("rounded down", lambda n: n.div(16, "floor")),
)
count_(
    "pages of a length in floats",
    "ceil of a quotient",
    lambda n: n.add(15).floor_divide(16),
    lambda n: n.to(f64).div(16.0).ceil().to(i64),
    ("one more where it fits", lambda n: n.to(f64).div(16.0).floor().add(1.0).to(i64)),
)
count_(
    "place in a page",
    "remainder",
    lambda n: n.remainder(16),
    lambda n: n - n.floor_divide(16) * 16,
    ("of pages of 15", lambda n: n.remainder(15)),
)
count_(
    "page and place",
    "what was divided",
    lambda n: n.floor_divide(16) * 16 + n.remainder(16),
    lambda n: n.add(0),
)
count_(
    "pages of pages",
    "floors of floors",
    lambda n: n.div(4, "floor").div(8, "floor"),
    lambda n: n.floor_divide(32),
    ("12", lambda n: n.floor_divide(12)),
)
count_(
    "starts of sequences",
    "cumulated lengths",
    lambda n: n.cumsum(0) - n,
    lambda n: pad(n, (1, 0), 0).slice(0, 0, 8).cumsum(0),
)
count_(
    "rounded up to a multiple",
    "aligned",
    lambda n: n.add(7).div(8, "floor").mul(8),
    lambda n: n + (-n).remainder(8),
    ("to one more", lambda n: n.div(8, "floor").add(1).mul(8)),
)

# ---- pooling ----

pool = of(lambda g: (g.x(B, T, C), g.ints("mask", Data((B, T), [1, 1, 1, 0, 1, 1, 1, 1]))))
pool(
    "mean of what is seen",
    "masked sum over the count",
    lambda x, m: (x * m.to(f32).unsqueeze(2)).sum(1) / m.sum(1, True).to(f32).clamp_min(1e-9),
    lambda x, m: (
        m.to(f32).unsqueeze(1).bmm(x).squeeze(1) / m.to(f32).sum(1).clamp_min(1e-9).unsqueeze(1)
    ),
    ("over all", lambda x, m: (x * m.to(f32).unsqueeze(2)).mean(1)),
)
pool(
    "mean of what is seen, weights first",
    "normalised masks",
    lambda x, m: (x * m.to(f32).unsqueeze(2)).sum(1) / m.to(f32).sum(1, True).clamp_min(1.0),
    lambda x, m: x.g.einsum("btc,bt->bc", x, m.to(f32) / m.to(f32).sum(1, True).clamp_min(1.0)),
)
pool(
    "maximum of what is seen",
    "others at minus infinity",
    lambda x, m: x.masked_fill(m.eq(0).unsqueeze(2), -math.inf).amax(1),
    lambda x, m: m.to(boolean).unsqueeze(2).where(x, x.g.full((), -math.inf)).max(1)[0],
)
pool(
    "the last that is seen",
    "gathered and indexed",
    lambda x, m: x.gather(1, m.sum(1).sub(1).view(B, 1, 1).expand(B, 1, C)).squeeze(1),
    lambda x, m: x.index(x.g.arange(B), m.sum(1) - 1),
    ("the first", lambda x, m: x.select(1, 0)),
)
pool(
    "the last that is seen, by one-hot rows",
    "masked sum",
    lambda x, m: x.index(x.g.arange(B), m.sum(1) - 1),
    lambda x, m: (x * m.sum(1).sub(1).one_hot(T).to(f32).unsqueeze(2)).sum(1),
)
pool(
    "last of left-padded",
    "the last place",
    lambda x, m: x.select(1, T - 1),
    lambda x, m: x.flip(1).select(1, 0),
)

# ---- losses ----

loss = of(lambda g: (g.x(T, V, name="logits"), g.ints("target", IDS[:T], V)))
loss(
    "cross entropy by gather",
    "of log_softmax",
    lambda x, t: cross_entropy(x, t),
    lambda x, t: mean_of_all(-x.log_softmax(-1).gather(1, t.unsqueeze(1))),
    ("the sum", lambda x, t: total(-x.log_softmax(-1).gather(1, t.unsqueeze(1)))),
)
loss(
    "cross entropy by logsumexp",
    "its value less the target's",
    lambda x, t: cross_entropy(x, t, reduction=0),
    lambda x, t: x.logsumexp(-1) - x.gather(1, t.unsqueeze(1)).squeeze(1),
    ("the target's probability", lambda x, t: x.softmax(-1).gather(1, t.unsqueeze(1)).squeeze(1)),
)
loss(
    "cross entropy by one-hot rows",
    "a sum of products",
    lambda x, t: cross_entropy(x, t),
    lambda x, t: -total(x.log_softmax(-1) * t.one_hot(V).to(f32)) / T,
)
loss(
    "cross entropy in chunks of tokens",
    "sums of chunks",
    lambda x, t: cross_entropy(x, t),
    lambda x, t: (
        (
            cross_entropy(x.slice(0, 0, 2), t.slice(0, 0, 2), reduction=2)
            + cross_entropy(x.slice(0, 2), t.slice(0, 2), reduction=2)
        )
        / t.ne(-100).sum(0).to(f32)
    ),
)
loss(
    "cross entropy of two ranks",
    "log of both sums",
    lambda x, t: cross_entropy(x, t, reduction=0),
    lambda x, t: (
        logaddexp(x.slice(1, 0, 3).logsumexp(-1), x.slice(1, 3).logsumexp(-1))
        - take_along(x, t.clamp_min(0).unsqueeze(1), 1).squeeze(1)
    ).masked_fill(t.eq(-100), 0.0),
)
loss(
    "label smoothing",
    "a part for all",
    lambda x, t: cross_entropy(x, t, 0.1),
    lambda x, t: (
        lambda p: mean_of_all(p.gather(1, t.unsqueeze(1)).squeeze(1) * -0.9 - p.mean(-1) * 0.1)
    )(x.log_softmax(-1)),
    ("0.2", lambda x, t: cross_entropy(x, t, 0.2)),
)
loss(
    "probability of the target",
    "exp of the log",
    lambda x, t: x.softmax(-1).gather(1, t.unsqueeze(1)),
    lambda x, t: x.log_softmax(-1).gather(1, t.unsqueeze(1)).exp(),
)
two = of(lambda g: (g.x(T, V, name="p"), g.x(T, V, name="q")))
two(
    "distillation",
    "Kullback and Leibler's",
    lambda p, q: (p.softmax(-1) * (p.log_softmax(-1) - q.log_softmax(-1))).sum(-1),
    lambda p, q: (p.softmax(-1) * (p - q)).sum(-1) - p.logsumexp(-1) + q.logsumexp(-1),
    (
        "exchanged",
        lambda p, q: (q.softmax(-1) * (q - p)).sum(-1) - q.logsumexp(-1) + p.logsumexp(-1),
    ),
)
two(
    "contrastive logits",
    "cosines of all pairs",
    lambda p, q: (p / p.norm(-1, True)).mm((q / q.norm(-1, True)).t()),
    lambda p, q: p.mm(q.t()) / (p.norm(-1, True) * q.norm(-1).unsqueeze(0)),
)
two(
    "binary cross entropy",
    "of logits, stable and plain",
    lambda p, q: p.clamp_min(0.0) - p * q + (-p.abs()).exp().log1p(),
    lambda p, q: -(q * p.log_sigmoid() + (1.0 - q) * (-p).log_sigmoid()),
    ("of the other sign", lambda p, q: -(q * (-p).log_sigmoid() + (1.0 - q) * p.log_sigmoid())),
)
two(
    "preference loss",
    "DPO's",
    lambda p, q: -((p.sum(-1) - q.sum(-1)) * 0.1).sigmoid().log(),
    lambda p, q: ((q - p).sum(-1) * 0.1).exp().log1p(),
)
two(
    "mean squared error",
    "expanded",
    lambda p, q: p.op("mse_loss", [p, q], ()),
    lambda p, q: mean_of_all(p * p - p * q * 2.0 + q.square()),
)
one = of(lambda g: (g.x(T, V),))
one(
    "entropy",
    "of logits",
    lambda x: -(x.softmax(-1) * x.log_softmax(-1)).sum(-1),
    lambda x: x.logsumexp(-1) - (x.softmax(-1) * x).sum(-1),
    ("in bits", lambda x: (x.logsumexp(-1) - (x.softmax(-1) * x).sum(-1)) / math.log(2)),
)

# ---- logits before a token is drawn ----

one(
    "temperature",
    "divided, or its inverse",
    lambda x: (x / 0.5).softmax(-1),
    lambda x: (x * 2.0).softmax(-1),
    ("the wrong way", lambda x: (x * 0.5).softmax(-1)),
)
one(
    "largest logits kept",
    "a threshold",
    lambda x: (x < x.topk(3)[0].slice(1, 2, 3)).where(-math.inf, x),
    lambda x: x.masked_fill(x.topk(3)[0].select(1, 2).unsqueeze(1) > x, -math.inf),
    ("one more", lambda x: x.masked_fill(x.topk(4)[0].select(1, 3).unsqueeze(1) > x, -math.inf)),
)
one(
    "probabilities above a share of the best",
    "min-p in logs",
    lambda x: (lambda p: p.masked_fill(p < p.amax(-1, True) * 0.25, 0.0))(x.softmax(-1)),
    lambda x: x.softmax(-1).masked_fill(x < x.amax(-1, True) + math.log(0.25), 0.0),
)
one(
    "the largest by order",
    "sorted and from the end",
    lambda x: x.sort(-1, True)[0],
    lambda x: x.sort(-1, False)[0].flip(1),
)
one(
    "ranks",
    "the order of the order",
    lambda x: argsort(argsort(x, stable=True), stable=True),
    lambda x: (
        lambda a, b: ((b < a) | (b.eq(a) & x.g.ones(V, V, dtype=boolean).tril(-1))).to(i64).sum(2)
    )(x.unsqueeze(2), x.unsqueeze(1)),
    (
        "equal ones in the other order",
        lambda x: (
            lambda a, b: (
                ((b < a) | (b.eq(a) & x.g.ones(V, V, dtype=boolean).triu(1))).to(i64).sum(2)
            )
        )(x.unsqueeze(2), x.unsqueeze(1)),
    ),
)
one(
    "sorted and put back",
    "a permutation and its inverse",
    lambda x: x.softmax(-1),
    lambda x: (lambda v, i: x.zeros_like().scatter(1, i, v.softmax(-1)))(*x.sort(-1, True)),
    ("not put back", lambda x: x.sort(-1, True)[0].softmax(-1)),
)
one(
    "largest mass",
    "top-p: cumulated before each",
    lambda x: (lambda p: p.masked_fill((p.cumsum(-1) - p) > 0.7, 0.0))(
        x.softmax(-1).sort(-1, True)[0]
    ),
    lambda x: (lambda p: (p.cumsum(-1) - p <= 0.7).where(p, p.zeros_like()))(
        x.sort(-1, True)[0].softmax(-1)
    ),
    (
        "cumulated with each",
        lambda x: (lambda p: (p.cumsum(-1) <= 0.7).where(p, p.zeros_like()))(
            x.sort(-1, True)[0].softmax(-1)
        ),
    ),
)
one(
    "log probability of the best",
    "less the log of the sum",
    lambda x: x.log_softmax(-1).amax(-1),
    lambda x: x.amax(-1) - x.logsumexp(-1),
)
one(
    "bias of some tokens",
    "added at their places",
    lambda x: x + x.g.const("bias", [0, 2.5, 0, 0, -1.0, 0]),
    lambda x: x.index_add(
        1, x.g.const("where", [1, 4], i64), x.g.const("much", [2.5, -1.0]).expand(T, 2)
    ),
    (
        "one of them",
        lambda x: x.index_add(
            1, x.g.const("where", [1], i64), x.g.const("much", [2.5]).expand(T, 1)
        ),
    ),
)
one(
    "tokens forbidden",
    "minus infinity at their places",
    lambda x: x.masked_fill(
        x.g.const("bad", [False, True, False, False, True, False], boolean), -math.inf
    ),
    lambda x: x.scatter(1, x.g.const("where", [1, 4], i64).unsqueeze(0).expand(T, 2), -math.inf),
    (
        "zero at their places",
        lambda x: x.scatter(1, x.g.const("where", [1, 4], i64).unsqueeze(0).expand(T, 2), 0.0),
    ),
)
rep = of(
    lambda g: (
        g.x(T, V),
        g.ints("before", Data((T, 3), [(5 * i + 1) % V for i in range(T * 3)]), V),
    )
)
rep(
    "repetition penalty",
    "gathered and scattered, or masked",
    lambda x, b: (lambda s: x.scatter(1, b, (s < 0.0).where(s * 1.5, s / 1.5)))(x.gather(1, b)),
    lambda x, b: (lambda m: m.where((x > 0.0).where(x / 1.5, x * 1.5), x))(b.one_hot(V).sum(1) > 0),
    ("divided below zero too", lambda x, b: (b.one_hot(V).sum(1) > 0).where(x / 1.5, x)),
)
rep(
    "frequency penalty",
    "counts",
    lambda x, b: x - x.zeros_like().scatter_add(1, b, b.ones_like().to(f32)) * 0.3,
    lambda x, b: x - b.one_hot(V).sum(1).to(f32) * 0.3,
    ("presence", lambda x, b: x - (b.one_hot(V).sum(1) > 0).to(f32) * 0.3),
)
rep(
    "presence penalty",
    "seen at all",
    lambda x, b: x - x.zeros_like().scatter(1, b, 1.0) * 0.3,
    lambda x, b: x - (b.one_hot(V).sum(1) > 0).to(f32) * 0.3,
)
guide = of(lambda g: (g.x(2, C, name="both"),))
guide(
    "guidance",
    "u + s (c - u)",
    lambda x: (lambda u, c: u + (c - u) * 7.5)(*x.chunk(2, 0)),
    lambda x: x.slice(0, 1, 2) * 7.5 - x.slice(0, 0, 1) * 6.5,
    ("s of 6.5", lambda x: x.slice(0, 1, 2) * 6.5 - x.slice(0, 0, 1) * 5.5),
)
guide(
    "guidance by a product",
    "one small matrix",
    lambda x: (lambda u, c: u + (c - u) * 7.5)(*x.chunk(2, 0)),
    lambda x: x.g.const("s", Data((1, 2), [-6.5, 7.5])).mm(x),
)
time_ = of(lambda g: (g.x(3, name="t"),))
time_(
    "sinusoids of a time step",
    "cosines first, flipped or not",
    lambda t: (lambda a: t.g.cat([a.cos(), a.sin()], 1))(
        t.unsqueeze(1) * t.g.const("f", [1.0, 0.1, 0.01])
    ),
    lambda t: (lambda e: t.g.cat([e.slice(1, 3), e.slice(1, 0, 3)], 1))(
        (lambda a: t.g.cat([a.sin(), a.cos()], 1))(outer(t, t.g.const("f", [1.0, 0.1, 0.01])))
    ),
    (
        "sines first",
        lambda t: (lambda a: t.g.cat([a.sin(), a.cos()], 1))(
            outer(t, t.g.const("f", [1.0, 0.1, 0.01]))
        ),
    ),
)
