"""Tokens that are drawn, losses, images and sound, streams and positions, in two ways."""

from refactoring import *

T, C, V = 6, 4, 5

# ---- drawing tokens ----

logit = of(lambda g: (g.x(3, V),))
logit(
    "beams over a flat vocabulary",
    "the beam and the token of a place",
    lambda x: (lambda i: i.floor_divide(V) * 10 + i.remainder(V))(x.view(-1).topk(2)[1]),
    lambda x: (
        lambda i: (i - i.remainder(V)).div(V, "floor").mul(10) + (i - i.floor_divide(V) * V)
    )(x.reshape(15).topk(2)[1]),
    (
        "places of another width",
        lambda x: (lambda i: i.floor_divide(V - 1) * 10 + i.remainder(V - 1))(
            x.view(-1).topk(2)[1]
        ),
    ),
)
logit(
    "tokens suppressed",
    "index_fill and where",
    lambda x: x.op("index_fill.int_Scalar", [x, 1, x.g.const("bad", [1, 3], i64), -math.inf]),
    lambda x: (lambda m: m.where(x.g.full((), -math.inf), x))(
        x.g.const("mask", [False, True, False, True, False], boolean)
    ),
    (
        "another token",
        lambda x: (lambda m: m.where(x.g.full((), -math.inf), x))(
            x.g.const("mask", [False, True, True, False, False], boolean)
        ),
    ),
)
two = of(lambda g: (g.x(3, V, name="p"), g.x(3, V, name="q")))
two(
    "acceptance of a drafted token",
    "speculative decoding: min(1, p / q)",
    lambda p, q: (p.softmax(1) / q.softmax(1)).clamp_max(1.0),
    lambda p, q: (p.log_softmax(1) - q.log_softmax(1)).clamp_max(0.0).exp(),
    ("q over p", lambda p, q: (q.log_softmax(1) - p.log_softmax(1)).clamp_max(0.0).exp()),
)
two(
    "what is left of a rejected token",
    "speculative decoding: max(p - q, 0)",
    lambda p, q: (lambda d: d / d.sum(1, True))((p.softmax(1) - q.softmax(1)).relu()),
    lambda p, q: (lambda a, b: (lambda d: d / d.sum(1, True))(a.maximum(b) - b))(
        p.softmax(1), q.softmax(1)
    ),
    (
        "of q less p",
        lambda p, q: (lambda d: d / d.sum(1, True))((q.softmax(1) - p.softmax(1)).relu()),
    ),
)
two(
    "contrastive decoding",
    "(1 + a) p - a q",
    lambda p, q: p * 1.5 - q * 0.5,
    lambda p, q: p + (p - q) * 0.5,
    ("with 1", lambda p, q: p + (p - q)),
)

# ---- losses ----

ppo = of(lambda g: (g.x(T, name="new"), g.x(T, name="old"), g.x(T, name="adv")))
ppo(
    "clipped objective",
    "PPO's: the least, or minus the largest",
    lambda n, o, a: (lambda r: (r * a).minimum(r.clamp(0.8, 1.2) * a))((n - o).exp()),
    lambda n, o, a: (lambda r: -((r * -a).maximum(r.clamp(0.8, 1.2) * -a)))((n - o).exp()),
    (
        "the largest",
        lambda n, o, a: (lambda r: (r * a).maximum(r.clamp(0.8, 1.2) * a))((n - o).exp()),
    ),
)
ppo(
    "an estimate of a divergence",
    "k3: r - log r - 1",
    lambda n, o, a: (lambda d: d.exp() - d - 1.0)(o - n),
    lambda n, o, a: (o - n).op("expm1", [o - n]) + (n - o),
    ("the other sign", lambda n, o, a: (lambda d: d.exp() - d - 1.0)(n - o)),
)
ppo(
    "advantages of a group",
    "GRPO's: less the mean, over the spread",
    lambda n, o, a: (lambda x: (x - x.mean(1, True)) / (x.std(1, True) + 1e-4))(a.view(2, 3)),
    lambda n, o, a: (
        lambda x: (lambda d: d / (d.square().mean(1, True).sqrt() + 1e-4))(x - x.sum(1, True) / 3.0)
    )(a.view(2, 3)),
    (
        "one less in the spread",
        lambda n, o, a: (lambda x: (x - x.mean(1, True)) / (x.std(1, True, correction=1) + 1e-4))(
            a.view(2, 3)
        ),
    ),
)
ppo(
    "masked mean of a loss",
    "the sum over the count",
    lambda n, o, a: (n * (a > 0.0).to(f32)).sum(0) / (a > 0.0).to(f32).sum(0).clamp_min(1.0),
    lambda n, o, a: (
        lambda m: m.where(n, n.zeros_like()).sum(0) / m.to(i64).sum(0).to(f32).clamp_min(1.0)
    )(a > 0.0),
    ("over all", lambda n, o, a: (n * (a > 0.0).to(f32)).mean(0)),
)
ppo(
    "Huber's loss",
    "by where, and by a clamp",
    lambda n, o, a: (lambda d: (d.abs() < 1.0).where(d * d * 0.5, d.abs() - 0.5))(n - o),
    lambda n, o, a: (lambda d, c: c * (d - c * 0.5))((n - o).abs(), (n - o).abs().clamp_max(1.0)),
    ("twice below", lambda n, o, a: (lambda d: (d.abs() < 1.0).where(d * d, d.abs() - 0.5))(n - o)),
)
ppo(
    "hinges of a ranking",
    "relu and maximum",
    lambda n, o, a: (o - n + 0.2).relu(),
    lambda n, o, a: o.sub(n).add(0.2).maximum(a.zeros_like()),
    ("another margin", lambda n, o, a: (o - n + 0.3).relu()),
)
two(
    "focal loss",
    "(1 - p)^2 log p",
    lambda p, q: -((1.0 - p.sigmoid()).pow(2.0) * p.log_sigmoid()),
    lambda p, q: (-p).sigmoid().square() * logaddexp(-p, p.zeros_like()),
    ("not squared", lambda p, q: (-p).sigmoid() * logaddexp(-p, p.zeros_like())),
)
two(
    "symmetric contrastive loss",
    "CLIP's: rows and columns",
    lambda p, q: (lambda s: -(diagonal(s.log_softmax(1)) + diagonal(s.log_softmax(0))) * 0.5)(
        p.mm(q.t())
    ),
    lambda p, q: (lambda s: (s.logsumexp(1) + s.logsumexp(0)) * 0.5 - (p * q).sum(1))(p.mm(q.t())),
    ("rows twice", lambda p, q: (lambda s: s.logsumexp(1) - (p * q).sum(1) * 0.5)(p.mm(q.t()))),
)
two(
    "distillation at a temperature",
    "T^2 in the loss",
    lambda p, q: (lambda a, b: (a.exp() * (a - b)).sum(1) * 4.0)(
        (p / 2.0).log_softmax(1), (q / 2.0).log_softmax(1)
    ),
    lambda p, q: (
        lambda a: (
            ((a * (p - q)).sum(1) * 0.5 - (p * 0.5).logsumexp(1) + (q * 0.5).logsumexp(1)) * 4.0
        )
    )((p * 0.5).softmax(1)),
    (
        "T in the loss",
        lambda p, q: (
            lambda a: (
                ((a * (p - q)).sum(1) * 0.5 - (p * 0.5).logsumexp(1) + (q * 0.5).logsumexp(1)) * 2.0
            )
        )((p * 0.5).softmax(1)),
    ),
)

# ---- images and sound ----

img = of(lambda g: (g.x(1, 3, 4, 4, name="img"),))
img(
    "normalised colours in the first convolution",
    "(x - m) / s folded into weight and bias",
    lambda x: conv2d(
        (x - x.g.const("m", [0.5, 0.25, 0.75]).view(3, 1, 1))
        / x.g.const("s", [0.5, 0.25, 2.0]).view(3, 1, 1),
        x.g.param("w", 2, 3, 2, 2),
        None,
        2,
    ),
    lambda x: (
        lambda w: conv2d(
            x, w, -(w * x.g.const("m", [0.5, 0.25, 0.75]).view(3, 1, 1)).sum([1, 2, 3]), 2
        )
    )(x.g.param("w", 2, 3, 2, 2) / x.g.const("s", [0.5, 0.25, 2.0]).view(3, 1, 1)),
    (
        "without the bias",
        lambda x: conv2d(
            x, x.g.param("w", 2, 3, 2, 2) / x.g.const("s", [0.5, 0.25, 2.0]).view(3, 1, 1), None, 2
        ),
    ),
)
img(
    "patches put back",
    "fold: the inverse of a partition",
    lambda x: x.exp(),
    lambda x: (
        x.view(3, 2, 2, 2, 2)
        .permute(1, 3, 0, 2, 4)
        .reshape(4, 12)
        .exp()
        .view(2, 2, 3, 2, 2)
        .permute(2, 0, 3, 1, 4)
        .reshape(1, 3, 4, 4)
    ),
    (
        "rows and columns exchanged",
        lambda x: (
            x.view(3, 2, 2, 2, 2)
            .permute(1, 3, 0, 2, 4)
            .reshape(4, 12)
            .exp()
            .view(2, 2, 3, 2, 2)
            .permute(2, 1, 3, 0, 4)
            .reshape(1, 3, 4, 4)
        ),
    ),
)
img(
    "a token for the mean",
    "joined in front",
    lambda x: (lambda t: x.g.cat([t.mean(1, True), t], 1))(x.view(1, 3, 16).transpose(1, 2)),
    lambda x: (lambda t: x.g.cat([t.sum(2, True) * 0.0625, t], 2).transpose(1, 2))(x.flatten(2)),
    (
        "behind",
        lambda x: (lambda t: x.g.cat([t, t.mean(1, True)], 1))(x.view(1, 3, 16).transpose(1, 2)),
    ),
)
wave = of(lambda g: (g.x(1, 1, 12, name="wave"),))


def basis(g):
    return g.const(
        "basis",
        Data(
            (4, 1, 4),
            [
                v
                for k in range(2)
                for f in (math.cos, math.sin)
                for v in (round(f(2 * math.pi * k * n / 4), 9) for n in range(4))
            ],
        ),
    )


wave(
    "power of a spectrum",
    "frames by a convolution, or by windows",
    lambda x: (lambda y: (y.square().view(1, 2, 2, 5)).sum(2))(conv1d(x, basis(x.g), None, 2)),
    lambda x: (lambda y: (y.square().view(5, 2, 2)).sum(2).t().unsqueeze(0))(
        unfold(x.view(12), 0, 4, 2).mm(basis(x.g).view(4, 4).t())
    ),
    (
        "cosines alone",
        lambda x: (lambda y: (y.square().view(1, 2, 2, 5)).select(2, 0))(
            conv1d(x, basis(x.g), None, 2)
        ),
    ),
)
wave(
    "emphasis of what changes",
    "x_t - 0.97 x_{t-1}",
    lambda x: conv1d(pad(x, (1, 0)), x.g.const("k", Data((1, 1, 2), [-0.96875, 1.0]))),
    lambda x: x - pad(x, (1, 0)).slice(2, 0, 12) * 0.96875,
    ("of what comes", lambda x: x - pad(x, (0, 1)).slice(2, 1) * 0.96875),
)

# ---- heads, streams, positions ----

head = of(lambda g: (g.x(2, T, T, name="s"), g.param("mix", 2, 2)))
head(
    "talking heads",
    "scores mixed over heads",
    lambda s, m: s.g.einsum("hij,gh->gij", s, m),
    lambda s, m: s.permute(1, 2, 0).linear(m).permute(2, 0, 1),
    ("transposed", lambda s, m: s.g.einsum("hij,hg->gij", s, m)),
)
stream = of(lambda g: (g.x(T, 2, C, name="h"), g.param("a", 2, 2), g.param("b", 2)))
stream(
    "hyper-connections",
    "streams mixed and added to",
    lambda h, a, b: h.g.einsum("tsc,rs->trc", h, a) + b.view(1, 2, 1) * h.mean(1, True).tanh(),
    lambda h, a, b: h.g.stack(
        [
            h.select(1, 0) * a.select(0, r).select(0, 0)
            + h.select(1, 1) * a.select(0, r).select(0, 1)
            + h.mean(1).tanh() * b.select(0, r)
            for r in (0, 1)
        ],
        1,
    ),
    (
        "mixed transposed",
        lambda h, a, b: h.g.einsum("tsc,sr->trc", h, a) + b.view(1, 2, 1) * h.mean(1, True).tanh(),
    ),
)
place = of(
    lambda g: (g.ints("ids", [3, 1, 4, 1, 2, 0], V), g.param("e", V, C), g.param("p", 10, C))
)
place(
    "tokens and positions in one table",
    "joined tables, places shifted",
    lambda i, e, p: e.embedding(i) + p.slice(0, 0, T),
    lambda i, e, p: (lambda t: t.embedding(i) + t.embedding(i.g.arange(V, V + T)))(
        i.g.cat([e, p], 0)
    ),
    (
        "positions from one",
        lambda i, e, p: (lambda t: t.embedding(i) + t.embedding(i.g.arange(V + 1, V + 1 + T)))(
            i.g.cat([e, p], 0)
        ),
    ),
)
place(
    "two kinds of tokens in the table",
    "BERT's types by where, or by their difference",
    lambda i, e, p: e.embedding(i) + p.embedding((i > 2).to(i64)),
    lambda i, e, p: (
        e.embedding(i)
        + p.select(0, 0)
        + (i > 2).to(f32).unsqueeze(1) * (p.select(0, 1) - p.select(0, 0))
    ),
    ("the other types", lambda i, e, p: e.embedding(i) + p.embedding((i < 3).to(i64))),
)
angle = of(lambda g: (g.x(T, C),))


def turned(x, a):
    return x * x.g.cat([a.cos(), a.cos()], 1) + x.g.cat(
        [-x.slice(1, 2), x.slice(1, 0, 2)], 1
    ) * x.g.cat([a.sin(), a.sin()], 1)


angle(
    "positions divided",
    "linear scaling: of positions or of frequencies",
    lambda x: turned(x, outer(x.g.arange(T).to(f32) / 4.0, x.g.const("f", [1.0, 0.125]))),
    lambda x: turned(x, outer(x.g.arange(T).to(f32), x.g.const("f", [1.0, 0.125]) * 0.25)),
    (
        "multiplied",
        lambda x: turned(x, outer(x.g.arange(T).to(f32), x.g.const("f", [1.0, 0.125]) * 4.0)),
    ),
)
angle(
    "a query scaled by its position",
    "Llama 4's temperature",
    lambda x: x * ((x.g.arange(T).to(f32).add(1.0) / 4.0).floor().log1p() * 0.1 + 1.0).unsqueeze(1),
    lambda x: (
        x + x * (x.g.arange(1, T + 1).floor_divide(4).to(f32).add(1.0).log() * 0.1).unsqueeze(1)
    ),
    (
        "from zero",
        lambda x: x + x * (x.g.arange(T).floor_divide(4).to(f32).add(1.0).log() * 0.1).unsqueeze(1),
    ),
)
angle(
    "segments' means",
    "pooled by a sum over a mask or by rows",
    lambda x: x.g.stack([x.slice(0, 0, 2).mean(0), x.slice(0, 2).mean(0)], 0),
    lambda x: (lambda m: m.mm(x) / m.sum(1, True))(
        x.g.const("segments", Data((2, T), [1.0, 1, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1]))
    ),
    ("another border", lambda x: x.g.stack([x.slice(0, 0, 3).mean(0), x.slice(0, 3).mean(0)], 0)),
)
