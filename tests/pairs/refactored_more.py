"""More refactorings that developers of frameworks make: norms folded into products, adapters,
experts that choose, scans."""

from refactoring import *

T, C, E = 6, 4, 8

# ---- norms and products ----

row = of(lambda g: (g.x(T, C), g.param("w", E, C)))
row(
    "RMS norm behind the product",
    "a row's root commutes with the product",
    lambda x, w: (rms(x) * x.g.param("g", C)).linear(w),
    lambda x, w: x.linear(w * x.g.param("g", C)) * x.square().mean(1, True).add(1e-6).rsqrt(),
    (
        "the weight of the norm left out",
        lambda x, w: x.linear(w) * x.square().mean(1, True).add(1e-6).rsqrt(),
    ),
)
row(
    "layer norm folded into the product",
    "the mean's part is one row of sums",
    lambda x, w: x.layer_norm().linear(w),
    lambda x, w: (x.linear(w) - x.mean(1, True) * w.sum(1)) * x.var(1, True).add(1e-5).rsqrt(),
    (
        "the mean's part is not subtracted",
        lambda x, w: x.linear(w) * x.var(1, True).add(1e-5).rsqrt(),
    ),
)
row(
    "product of a weight that was normalised",
    "weight norm: g v / |v|",
    lambda x, w: x.linear(w / w.norm(1, True) * x.g.param("g", E, 1)),
    lambda x, w: x.linear(w) * (x.g.param("g", E, 1) / w.square().sum(1, True).sqrt()).squeeze(1),
    (
        "the norm's square",
        lambda x, w: x.linear(w) * (x.g.param("g", E, 1) / w.square().sum(1, True)).squeeze(1),
    ),
)
row(
    "norms of two ranks' rows",
    "sequence parallel: rows by themselves",
    lambda x, w: rms(x).linear(w),
    lambda x, w: x.g.cat([rms(p).linear(w) for p in x.chunk(2, 0)], 0),
    ("ranks exchanged", lambda x, w: x.g.cat([rms(p).linear(w) for p in x.chunk(2, 0)[::-1]], 0)),
)
row(
    "norm of columns over two ranks",
    "sums of squares added",
    lambda x, w: rms(x).linear(w),
    lambda x, w: (
        lambda a, b: (lambda r: (a * r).linear(w.slice(1, 0, 2)) + (b * r).linear(w.slice(1, 2)))(
            ((a.square().sum(1, True) + b.square().sum(1, True)) / C).add(1e-6).rsqrt()
        )
    )(*x.chunk(2, 1)),
    (
        "each rank's own mean",
        lambda x, w: (lambda a, b: rms(a).linear(w.slice(1, 0, 2)) + rms(b).linear(w.slice(1, 2)))(
            *x.chunk(2, 1)
        ),
    ),
)
mod = of(lambda g: (g.x(2, T, C), g.x(2, 2 * C, name="cond")))
mod(
    "modulated norm",
    "DiT's: x (1 + s) + b",
    lambda x, c: (lambda s, b: x.layer_norm() * s.add(1.0).unsqueeze(1) + b.unsqueeze(1))(
        *c.chunk(2, 1)
    ),
    lambda x, c: (lambda n, s, b: n + n * s + b)(
        x.layer_norm(), c.slice(1, 0, C).view(2, 1, C), c.slice(1, C).view(2, 1, C)
    ),
    (
        "shift and scale exchanged",
        lambda x, c: (lambda b, s: x.layer_norm() * s.add(1.0).unsqueeze(1) + b.unsqueeze(1))(
            *c.chunk(2, 1)
        ),
    ),
)
blk = of(lambda g: (g.x(T, C), g.param("wo", C, C), g.param("wd", C, E), g.param("wu", E, C)))
blk(
    "parallel attention and layers in one product",
    "outputs joined, weights joined",
    lambda x, o, d, u: x + x.tanh().linear(o) + x.linear(u).silu().linear(d),
    lambda x, o, d, u: x + x.g.cat([x.tanh(), x.linear(u).silu()], 1).linear(x.g.cat([o, d], 1)),
    (
        "in the other order",
        lambda x, o, d, u: (
            x + x.g.cat([x.linear(u).silu(), x.tanh()], 1).linear(x.g.cat([o, d], 1))
        ),
    ),
)
blk(
    "residual divided over ranks",
    "each rank adds a half before the sum",
    lambda x, o, d, u: x + x.linear(u).relu().linear(d),
    lambda x, o, d, u: (lambda p: p(0, 4) + p(4, E))(
        lambda a, b: x * 0.5 + x.linear(u.slice(0, a, b)).relu().linear(d.slice(1, a, b))
    ),
    (
        "each rank adds all of it",
        lambda x, o, d, u: (lambda p: p(0, 4) + p(4, E))(
            lambda a, b: x + x.linear(u.slice(0, a, b)).relu().linear(d.slice(1, a, b))
        ),
    ),
)
blk(
    "a shared expert in the dense layer",
    "hidden rows joined",
    lambda x, o, d, u: (
        x.linear(u).relu().linear(d)
        + x.linear(x.g.param("su", 3, C)).relu().linear(x.g.param("sd", C, 3))
    ),
    lambda x, o, d, u: (
        x.linear(x.g.cat([u, x.g.param("su", 3, C)], 0))
        .relu()
        .linear(x.g.cat([d, x.g.param("sd", C, 3)], 1))
    ),
    (
        "its output twice",
        lambda x, o, d, u: (
            x.linear(x.g.cat([u, x.g.param("su", 3, C)], 0))
            .relu()
            .linear(x.g.cat([d, x.g.param("sd", C, 3) * 2.0], 1))
        ),
    ),
)
blk(
    "gates interleaved",
    "gpt-oss: every second row",
    lambda x, o, d, u: (lambda h: h.slice(1, 0, INF, 2).silu() * h.slice(1, 1, INF, 2))(
        x.linear(u)
    ),
    lambda x, o, d, u: (lambda h: h.select(2, 0).silu() * h.select(2, 1))(
        x.linear(u).view(T, E // 2, 2)
    ),
    ("in halves", lambda x, o, d, u: (lambda a, b: a.silu() * b)(*x.linear(u).chunk(2, 1))),
)
blk(
    "a clamped gate",
    "gpt-oss: (up + 1) gate sigmoid(1.702 gate)",
    lambda x, o, d, u: (
        lambda a, b: (
            (b.clamp(-7.0, 7.0) + 1.0) * (a.clamp_max(7.0) * (a.clamp_max(7.0) * 1.702).sigmoid())
        )
    )(*x.linear(u).chunk(2, 1)),
    lambda x, o, d, u: (lambda a, b: (lambda s: s + s * b)(a / ((a * -1.702).exp() + 1.0)))(
        *(lambda a, b: (a.minimum(x.g.full((), 7.0)), b.clamp_max(7.0).clamp_min(-7.0)))(
            *x.linear(u).chunk(2, 1)
        )
    ),
    (
        "the gate is not clamped",
        lambda x, o, d, u: (lambda a, b: (b.clamp(-7.0, 7.0) + 1.0) * (a * (a * 1.702).sigmoid()))(
            *x.linear(u).chunk(2, 1)
        ),
    ),
)

# ---- adapters ----

lora = of(
    lambda g: (
        g.x(T, C),
        g.param("A", 3, 2, C),
        g.param("B", 3, E, 2),
        g.ints("which", [0, 2, 1, 1, 0, 2], 3),
    )
)
lora(
    "several adapters by gathered weights",
    "S-LoRA: a row's own, or a loop over all",
    lambda x, a, b, i: b.index(i).bmm(a.index(i).bmm(x.unsqueeze(2))).squeeze(2),
    lambda x, a, b, i: (lambda f: f(0) + f(1) + f(2))(
        lambda k: x.linear(a.select(0, k)).linear(b.select(0, k)) * i.eq(k).to(f32).unsqueeze(1)
    ),
    (
        "one is left out",
        lambda x, a, b, i: (lambda f: f(0) + f(1))(
            lambda k: x.linear(a.select(0, k)).linear(b.select(0, k)) * i.eq(k).to(f32).unsqueeze(1)
        ),
    ),
)
lora(
    "several adapters stacked",
    "one product, other parts masked",
    lambda x, a, b, i: b.index(i).bmm(a.index(i).bmm(x.unsqueeze(2))).squeeze(2),
    lambda x, a, b, i: (
        (x.linear(a.view(6, C)).view(T, 3, 2) * i.one_hot(3).to(f32).unsqueeze(2))
        .view(T, 6)
        .linear(b.permute(1, 0, 2).reshape(E, 6))
    ),
    (
        "not masked",
        lambda x, a, b, i: x.linear(a.view(6, C)).linear(b.permute(1, 0, 2).reshape(E, 6)),
    ),
)
row(
    "a scaled input",
    "IA3: of the input or of the weight",
    lambda x, w: (x * x.g.param("l", C)).linear(w),
    lambda x, w: x.linear(w * x.g.param("l", C).unsqueeze(0)),
    ("of the rows", lambda x, w: x.linear(w * x.g.param("l2", E, 1))),
)
row(
    "products of ranks' rows",
    "column parallel and gathered",
    lambda x, w: x.linear(w).silu(),
    lambda x, w: x.g.cat([x.linear(p).silu() for p in w.split(3, 0)], 1),
    (
        "one rank twice",
        lambda x, w: (
            lambda p: x.g.cat(
                [x.linear(p[0]).silu(), x.linear(p[0]).silu(), x.linear(p[2]).silu()], 1
            )
        )(w.split(3, 0)),
    ),
)

# ---- experts and slots ----

slots = of(lambda g: (g.x(T, C), g.param("phi", C, 3), g.param("we", 3, C, C)))
slots(
    "soft mixture of experts",
    "slots of all tokens, by einsum and by products",
    lambda x, p, w: (
        lambda s: x.g.einsum(
            "ts,sc->tc",
            s.softmax(1),
            x.g.einsum("sc,scd->sd", x.g.einsum("ts,tc->sc", s.softmax(0), x), w),
        )
    )(x.mm(p)),
    lambda x, p, w: (
        lambda s: s.softmax(1).mm((s.t().softmax(1).mm(x).unsqueeze(1).bmm(w)).squeeze(1))
    )(x.mm(p)),
    (
        "one softmax for both",
        lambda x, p, w: (
            lambda s: s.softmax(1).mm((s.softmax(1).t().mm(x).unsqueeze(1).bmm(w)).squeeze(1))
        )(x.mm(p)),
    ),
)
slots(
    "experts that choose their tokens",
    "rows gathered and added",
    lambda x, p, w: (
        lambda v, i: x.zeros_like().index_add(
            0, i.t().reshape(6), (x.index(i.t()).bmm(w) * v.t().unsqueeze(2)).view(6, C)
        )
    )(*x.mm(p).softmax(1).topk(2, 0)),
    lambda x, p, w: (
        lambda v, i: (
            lambda d: x.g.einsum(
                "est,esc->tc", d, x.g.einsum("est,tc->esc", d, x).bmm(w) * v.t().unsqueeze(2)
            )
        )(i.t().one_hot(T).to(f32))
    )(*x.mm(p).softmax(1).topk(2, 0)),
    (
        "weights left out",
        lambda x, p, w: (
            lambda v, i: (
                lambda d: x.g.einsum("est,esc->tc", d, x.g.einsum("est,tc->esc", d, x).bmm(w))
            )(i.t().one_hot(T).to(f32))
        )(*x.mm(p).softmax(1).topk(2, 0)),
    ),
)
slots(
    "depths mixed",
    "chosen rows are computed and put back, or all are and masked",
    lambda x, p, w: (lambda i: index_copy(x, 0, i, x.index(i).mm(w.select(0, 0))))(
        x.g.const("kept", [0, 3, 4], i64)
    ),
    lambda x, p, w: (
        x.g.const("mask", [True, False, False, True, True, False], boolean)
        .unsqueeze(1)
        .where(x.mm(w.select(0, 0)), x)
    ),
    (
        "the others",
        lambda x, p, w: (
            x.g.const("mask", [True, False, False, True, True, False], boolean)
            .unsqueeze(1)
            .where(x, x.mm(w.select(0, 0)))
        ),
    ),
)

# ---- scans ----

qkv = of(lambda g: [g.x(T, C, name=n) for n in "qkv"])


def with_sums(q, k, v, summed=True):
    """A linear attention with its normaliser, token by token."""
    s = z = None
    out = []
    for t in range(T):
        a, kt, vt = q.select(0, t).exp(), k.select(0, t).exp(), v.select(0, t)
        s = outer(kt, vt) if s is None else s + outer(kt, vt)
        z = kt if z is None or not summed else z + kt
        out.append(a.unsqueeze(0).mm(s).squeeze(0) / (a * z).sum(0))
    return q.g.stack(out, 0)


qkv(
    "normalised linear attention, recurrent",
    "a state and its normaliser",
    lambda q, k, v: (lambda p: (p / p.sum(1, True)).mm(v))(q.exp().mm(k.exp().t()).tril()),
    with_sums,
    ("the normaliser of one token", lambda q, k, v: with_sums(q, k, v, False)),
)


def in_parts(q, k, v, n, late=False):
    """Chunks of n with the state before each, all computed at once."""
    m = T // n
    a, b, c = (x.view(m, n, C) for x in (q, k, v))
    own = a.bmm(b.transpose(1, 2)).tril().bmm(c)
    kv = b.transpose(1, 2).bmm(c)
    before = kv.cumsum(0) if late else kv.cumsum(0) - kv
    return (own + a.bmm(before)).view(T, C)


for _n in 1, 2, 3:
    qkv(
        "linear attention in chunks of %d at once" % _n,
        "states by a sum over chunks",
        lambda q, k, v: q.mm(k.t()).tril().mm(v),
        lambda q, k, v, n=_n: in_parts(q, k, v, n),
        ("states with the chunk itself", lambda q, k, v, n=_n: in_parts(q, k, v, n, True)),
    )
gate = of(lambda g: (g.x(T, C, name="a").sigmoid(), g.x(T, C, name="b")))


def stepped(a, b, first=None):
    h, out = first, []
    for t in range(a.shape[0]):
        h = b.select(0, t) if h is None else a.select(0, t) * h + b.select(0, t)
        out.append(h)
    return a.g.stack(out, 0)


def in_tree(a, b, right=True):
    """Halves by themselves, the second behind the last of the first."""
    n = a.shape[0]
    if n == 1:
        return a, b
    (p, x), (q, y) = (
        in_tree(a.slice(0, s, e), b.slice(0, s, e), right) for s, e in ((0, n // 2), (n // 2, n))
    )
    last = slice(n // 2 - 1, n // 2)
    lp, lx = p.slice(0, last.start, last.stop), x.slice(0, last.start, last.stop)
    return a.g.cat([p, q * lp], 0), a.g.cat(
        [x, y + (q if right else a.slice(0, n // 2, n)) * lx], 0
    )


gate(
    "gated recurrence in a tree",
    "Griffin's associative scan",
    stepped,
    lambda a, b: in_tree(a, b)[1],
    ("decays of one step", lambda a, b: in_tree(a, b, False)[1]),
)
gate(
    "gated recurrence from a state",
    "a prompt in two calls",
    stepped,
    lambda a, b: (lambda x: a.g.cat([x, stepped(a.slice(0, 4), b.slice(0, 4), x.select(0, 3))], 0))(
        stepped(a.slice(0, 0, 4), b.slice(0, 0, 4))
    ),
    (
        "the state is not carried",
        lambda a, b: a.g.cat(
            [stepped(a.slice(0, 0, 4), b.slice(0, 0, 4)), stepped(a.slice(0, 4), b.slice(0, 4))], 0
        ),
    ),
)
gate(
    "normalised inputs of a gated recurrence",
    "RG-LRU: sqrt(1 - a^2) x",
    lambda a, b: stepped(a, (1.0 - a.square()).sqrt() * b),
    lambda a, b: stepped(a, (1.0 - a).sqrt() * (a + 1.0).sqrt() * b),
    ("without the root", lambda a, b: stepped(a, (1.0 - a.square()) * b)),
)
