"""Norms, rotary embedding, feed-forward layers and adapters, each in the words of two
frameworks."""

from refactoring import *

T, C, M = 4, 8, 6
x_only = of(lambda g: (g.x(T, C),))
x_w = of(lambda g: (g.x(T, C), g.param("w", C)))
x_wb = of(lambda g: (g.x(T, C), g.param("w", C), g.param("b", C)))

# ---- norms ----


def fused_add(x, r, w):
    """The norm of the sum, and the sum: vLLM's and TensorRT-LLM's residual."""
    s = x + r
    return rms(s) * w, s


x_w(
    "RMS norm as Llama's",
    "in float32 and back",
    lambda x, w: w * rms(x.to(f32)).to(f32),
    lambda x, w: x.rms_norm(w),
    ("eps is 1e-5", lambda x, w: x.rms_norm(w, 1e-5)),
)
x_w(
    "RMS norm by the length of a row",
    "sqrt(n) / |x|",
    lambda x, w: rms(x, 0.0) * w,
    lambda x, w: x / x.norm(-1, True) * (C**0.5) * w,
    ("by the length alone", lambda x, w: x / x.norm(-1, True) * w),
)
x_w(
    "Gemma's norm",
    "x (1 + w)",
    lambda x, w: rms(x) * (w + 1.0),
    lambda x, w: (lambda y: y.addcmul(y, w))(rms(x)),
    ("the weight alone", lambda x, w: rms(x) * w),
)
x_w(
    "norm with the residual fused",
    "two layers",
    lambda x, w: (lambda h: h + (rms(h) * w).tanh())(x + x.sin()),
    lambda x, w: (lambda n, s: n.tanh() + s)(*fused_add(x.sin(), x, w)),
    (
        "the residual before the sum",
        lambda x, w: (lambda n, s: n.tanh() + x)(*fused_add(x.sin(), x, w)),
    ),
)
x_wb(
    "layer norm by var_mean",
    "Inductor's",
    lambda x, w, b: x.layer_norm(w, b),
    lambda x, w, b: (lambda v, m: (x - m) * (v + 1e-5).rsqrt() * w + b)(
        *x.g.op(
            "var_mean.correction", [x, [1]], [((T, 1), f32)] * 2, {"correction": 0, "keepdim": True}
        )
    ),
)
x_wb(
    "layer norm by moments",
    "E[x^2] - E[x]^2, as Triton's",
    lambda x, w, b: x.layer_norm(w, b),
    lambda x, w, b: (lambda m, q: (x - m) / (q - m * m + 1e-5).sqrt() * w + b)(
        x.mean(-1, True), (x * x).mean(-1, True)
    ),
    ("n - 1", lambda x, w, b: (x - x.mean(-1, True)) / (x.var(-1, True, 1) + 1e-5).sqrt() * w + b),
)
x_wb(
    "layer norm by a product with ones",
    "means as products of matrices",
    lambda x, w, b: x.layer_norm(w, b),
    lambda x, w, b: (lambda d: d * ((d * d).mm(x.g.full((C, C), 1 / C)) + 1e-5).rsqrt() * w + b)(
        x - x.mm(x.g.full((C, C), 1 / C))
    ),
)
x_wb(
    "layer norm's weight in the next layer",
    "x W diag(w) + b W",
    lambda x, w, b: x.layer_norm(w, b).linear(x.g.param("l", M, C)),
    lambda x, w, b: (lambda l: x.layer_norm().linear(l * w) + l.matmul(b))(x.g.param("l", M, C)),
    (
        "the bias not carried along",
        lambda x, w, b: x.layer_norm().linear(x.g.param("l", M, C) * w) + b.slice(0, 0, M),
    ),
)
of(lambda g: (g.x(1, C, 2, 3), g.param("w", C), g.param("b", C)))(
    "layer norm of channels first",
    "ConvNeXt's LayerNorm2d",
    lambda x, w, b: x.permute(0, 2, 3, 1).layer_norm(w, b, 1e-6).permute(0, 3, 1, 2),
    lambda x, w, b: (
        lambda d: d / (d.pow(2).mean(1, True) + 1e-6).sqrt() * w.view(C, 1, 1) + b.view(C, 1, 1)
    )(x - x.mean(1, True)),
    (
        "over pixels",
        lambda x, w, b: (
            lambda d: (
                d / (d.pow(2).mean(-1, True) + 1e-6).sqrt() * w.view(C, 1, 1) + b.view(C, 1, 1)
            )
        )(x - x.mean(-1, True)),
    ),
)
of(lambda g: (g.x(2, C, 3), g.param("w", C), g.param("b", C)))(
    "group norm by a view",
    "groups as rows",
    lambda x, w, b: x.group_norm(4, w, b),
    lambda x, w, b: (
        lambda y: (
            ((y - y.mean(-1, True)) * (y.var(-1, True) + 1e-5).rsqrt()).view(2, C, 3)
            * w.view(1, C, 1)
            + b.view(1, C, 1)
        )
    )(x.reshape(2, 4, 6)),
    ("of two groups", lambda x, w, b: x.group_norm(2, w, b)),
)
of(lambda g: (g.x(2, C, 3), g.param("w", C), g.param("b", C)))(
    "group norm of one group",
    "a layer norm of all channels",
    lambda x, w, b: x.group_norm(1, w, b),
    lambda x, w, b: x.flatten(1).layer_norm().view(2, C, 3) * w.unsqueeze(1) + b.unsqueeze(1),
)
of(lambda g: (g.x(2, C, 3), g.param("w", C), g.param("b", C)))(
    "group norm of single channels",
    "an instance norm",
    lambda x, w, b: x.group_norm(C, w, b),
    lambda x, w, b: (
        (x - x.mean(2, True))
        .mul((x.var(2, True) + 1e-5).rsqrt())
        .mul(w.unsqueeze(-1))
        .add(b.unsqueeze(-1))
    ),
)


def statistics(g, n=C):
    return (
        g.param("w", n),
        g.param("b", n),
        g.param("mean", n, kind="buffer"),
        g.param("var", n, kind="buffer", positive=True, shift=0.5),
    )


of(lambda g: (g.x(2, C, 3), *statistics(g)))(
    "batch norm folded",
    "one product and one sum",
    lambda x, w, b, m, v: batch_norm(x, w, b, m, v),
    lambda x, w, b, m, v: (lambda a: x * a.view(1, C, 1) + (b - m * a).view(1, C, 1))(
        w * (v + 1e-5).rsqrt()
    ),
    (
        "the mean not scaled",
        lambda x, w, b, m, v: (lambda a: x * a.view(1, C, 1) + (b - m).view(1, C, 1))(
            w * (v + 1e-5).rsqrt()
        ),
    ),
)
of(lambda g: (g.x(1, C, 5), g.param("k", C, C, 3), *statistics(g)))(
    "batch norm folded into a convolution",
    "its weight scaled",
    lambda x, k, w, b, m, v: batch_norm(conv1d(x, k, padding=1), w, b, m, v),
    lambda x, k, w, b, m, v: (lambda a: conv1d(x, k * a.view(C, 1, 1), b - m * a, padding=1))(
        w / (v + 1e-5).sqrt()
    ),
    (
        "inputs scaled, not outputs",
        lambda x, k, w, b, m, v: (lambda a: conv1d(x, k * a.view(1, C, 1), b - m * a, padding=1))(
            w / (v + 1e-5).sqrt()
        ),
    ),
)
of(lambda g: (g.x(T, C), g.param("l", C, C), *statistics(g)))(
    "batch norm folded into a linear layer",
    "its weight scaled",
    lambda x, l, w, b, m, v: batch_norm(x.linear(l), w, b, m, v),
    lambda x, l, w, b, m, v: (lambda a: (b - m * a).addmm(x, (l * a.unsqueeze(1)).t()))(
        w / (v + 1e-5).sqrt()
    ),
)
of(lambda g: (g.x(1, T, C), g.x(1, 6 * C, name="c")))(
    "adaptive norm",
    "chunks of the condition",
    lambda x, c: (
        lambda s, a, g_, *_: (
            x + g_.unsqueeze(1) * (x.layer_norm(eps=1e-6) * (a.unsqueeze(1) + 1.0) + s.unsqueeze(1))
        )
    )(*c.silu().chunk(6, 1)),
    lambda x, c: (
        lambda m: (
            lambda n: x.addcmul(
                m.select(1, 2).unsqueeze(1), n + n * m.slice(1, 1, 2) + m.slice(1, 0, 1)
            )
        )(x.layer_norm(eps=1e-6))
    )(c.silu().view(1, 6, C)),
    (
        "shift and scale exchanged",
        lambda x, c: (
            lambda a, s, g_, *_: (
                x
                + g_.unsqueeze(1)
                * (x.layer_norm(eps=1e-6) * (a.unsqueeze(1) + 1.0) + s.unsqueeze(1))
            )
        )(*c.silu().chunk(6, 1)),
    ),
)
of(lambda g: (g.x(1, 2, 2, C), g.param("w", C), g.param("b", C)))(
    "response norm of channels",
    "ConvNeXt V2's GRN",
    lambda x, w, b: (lambda n: b + w * (x * (n / (n.mean(-1, True) + 1e-6))) + x)(
        x.pow(2).sum([1, 2], True).sqrt()
    ),
    lambda x, w, b: (lambda n: x * (w * n / (n.sum(-1, True) / C + 1e-6) + 1.0) + b)(
        x.op("linalg_vector_norm", [x, 2, [1, 2], True], (1, 1, 1, C))
    ),
)
x_only(
    "rows of length one",
    "normalize",
    lambda x: x / x.norm(-1, True).clamp_min(1e-12),
    lambda x: x / x.pow(2).sum(-1, True).sqrt().maximum(x.g.full((), 1e-12)),
    ("columns", lambda x: x / x.norm(0, True).clamp_min(1e-12)),
)
x_only(
    "standardised weights",
    "WSConv's",
    lambda x: (x - x.mean(-1, True)) / (x.std(-1, True) + 1e-5),
    lambda x: (lambda v: (x - x.mean(-1, True)).div(v.sqrt() + 1e-5))(x.var(-1, True)),
)
of(lambda g: (g.x(T, C), g.param("v", M, C), g.param("m", M, 1)))(
    "weight norm",
    "m v / |v|",
    lambda x, v, m: x.linear(v * (m / v.norm(1, True))),
    lambda x, v, m: x.linear(v) * (m.view(M) / v.pow(2).sum(1).sqrt()),
    ("lengths of columns", lambda x, v, m: x.linear(v / v.norm(0, True) * m)),
)

# ---- rotary embedding ----

H, D, R = 2, 8, 4


def q_and_angles(g):
    return g.x(1, H, T, D, name="q"), g.arange(T).to(f32).unsqueeze(1) * g.const(
        "inv_freq", [50.0 ** (-i / R) for i in range(R)]
    ).unsqueeze(0)


rope = of(q_and_angles)


def halves(q, a):
    c, s = (q.g.cat([f, f], -1) for f in (a.cos(), a.sin()))
    return q * c + q.g.cat([-q.slice(-1, R), q.slice(-1, 0, R)], -1) * s


def pairs_of(q, a):
    e, o = q.slice(-1, 0, INF, 2), q.slice(-1, 1, INF, 2)
    return q.g.stack([e * a.cos() - o * a.sin(), o * a.cos() + e * a.sin()], -1).flatten(-2)


rope(
    "rotary by a signed roll",
    "the halves are exchanged by a roll",
    halves,
    lambda q, a: (lambda c, s: q * c + q.roll(R, 3) * s)(
        a.g.cat([a.cos()] * 2, -1), a.g.cat([-a.sin(), a.sin()], -1)
    ),
    (
        "the sign of the other half",
        lambda q, a: (lambda c, s: q * c + q.roll(R, 3) * s)(
            a.g.cat([a.cos()] * 2, -1), a.g.cat([a.sin(), -a.sin()], -1)
        ),
    ),
)
rope(
    "rotary by complex numbers",
    "Llama's own",
    pairs_of,
    lambda q, a: (
        q.view(1, H, T, R, 2)
        .view_as_complex()
        .mul(a.ones_like().polar(a))
        .view_as_real()
        .flatten(3)
    ),
    (
        "turned back",
        lambda q, a: (
            q.view(1, H, T, R, 2)
            .view_as_complex()
            .mul(a.ones_like().polar(-a))
            .view_as_real()
            .flatten(3)
        ),
    ),
)
rope(
    "rotary by complex halves",
    "the halves are real and imaginary parts",
    halves,
    lambda q, a: (lambda z: q.g.cat([z.select(-1, 0), z.select(-1, 1)], -1))(
        q.slice(-1, 0, R).complex(q.slice(-1, R)).mul(a.cos().complex(a.sin())).view_as_real()
    ),
)
rope(
    "rotary by matrices",
    "Flux: sums over 2 x 2",
    pairs_of,
    lambda q, a: (
        lambda m, x: (
            m.select(-1, 0) * x.select(-1, 0) + m.select(-1, 1) * x.select(-1, 1)
        ).reshape(1, H, T, D)
    )(
        a.g.stack([a.cos(), -a.sin(), a.sin(), a.cos()], -1).view(T, R, 2, 2),
        q.view(1, H, T, R, 1, 2),
    ),
    (
        "the matrix transposed",
        lambda q, a: (
            lambda m, x: (
                m.select(-1, 0) * x.select(-1, 0) + m.select(-1, 1) * x.select(-1, 1)
            ).reshape(1, H, T, D)
        )(
            a.g.stack([a.cos(), a.sin(), -a.sin(), a.cos()], -1).view(T, R, 2, 2),
            q.view(1, H, T, R, 1, 2),
        ),
    ),
)
rope(
    "rotary by a product of matrices",
    "2 x 2 by matmul",
    pairs_of,
    lambda q, a: (
        a.g.stack([a.cos(), -a.sin(), a.sin(), a.cos()], -1)
        .view(T, R, 2, 2)
        .matmul(q.view(1, H, T, R, 2, 1))
        .view(1, H, T, D)
    ),
)
rope(
    "rotary of pairs through halves",
    "GPT-J through NeoX: permuted and back",
    pairs_of,
    lambda q, a: (
        halves(q.view(1, H, T, R, 2).transpose(3, 4).reshape(1, H, T, D), a)
        .view(1, H, T, 2, R)
        .transpose(3, 4)
        .reshape(1, H, T, D)
    ),
    (
        "not permuted back",
        lambda q, a: halves(q.view(1, H, T, R, 2).transpose(3, 4).reshape(1, H, T, D), a),
    ),
)
rope(
    "rotary tables repeated",
    "repeat_interleave and stack",
    lambda q, a: q * a.cos().repeat_interleave(2, 1),
    lambda q, a: q * a.g.stack([a, a], -1).flatten(-2).cos(),
)
rope(
    "rotary of part of a head",
    "the rest is joined again",
    lambda q, a: (lambda b: q.g.cat([pairs_of(q.slice(3, 0, 4), b), q.slice(3, 4)], -1))(
        a.slice(1, 0, 2)
    ),
    lambda q, a: (
        lambda c, s: (lambda e, o: q.g.stack([e * c - o * s, o * c + e * s], -1).flatten(-2))(
            q.slice(-1, 0, INF, 2), q.slice(-1, 1, INF, 2)
        )
    )(pad(a.slice(1, 0, 2).cos(), (0, 2), 1.0), pad(a.slice(1, 0, 2).sin(), (0, 2), 0.0)),
    (
        "the rest is dropped",
        lambda q, a: (
            lambda b: q.g.cat([pairs_of(q.slice(3, 0, 4), b), q.slice(3, 4).zeros_like()], -1)
        )(a.slice(1, 0, 2)),
    ),
)
rope(
    "rotary from a table",
    "rows of cos and sin looked up",
    halves,
    lambda q, a: (
        lambda t: (
            lambda c, s: (lambda lo, hi: q.g.cat([lo * c - hi * s, hi * c + lo * s], -1))(
                *q.chunk(2, -1)
            )
        )(*t.chunk(2, -1))
    )(a.g.cat([a.cos(), a.sin()], -1).index_select(0, a.g.arange(T))),
    (
        "positions reversed",
        lambda q, a: (
            lambda t: (
                lambda c, s: (lambda lo, hi: q.g.cat([lo * c - hi * s, hi * c + lo * s], -1))(
                    *q.chunk(2, -1)
                )
            )(*t.chunk(2, -1))
        )(a.g.cat([a.cos(), a.sin()], -1).index_select(0, a.g.arange(T).rsub(T - 1))),
    ),
)
rope(
    "rotary of tokens first",
    "before the heads are transposed",
    halves,
    lambda q, a: (
        lambda x, c, s: (lambda lo, hi: x.g.cat([lo * c - hi * s, hi * c + lo * s], -1))(
            x.slice(3, 0, R), x.slice(3, R)
        ).transpose(1, 2)
    )(q.transpose(1, 2), a.cos().unsqueeze(1), a.sin().unsqueeze(1)),
)
rope(
    "rotary with the scale of YaRN",
    "in the tables, and behind",
    lambda q, a: halves(q, a) * 1.25,
    lambda q, a: (lambda c, s: q * c + q.g.cat([-q.slice(-1, R), q.slice(-1, 0, R)], -1) * s)(
        *[q.g.cat([f, f], -1) * 1.25 for f in (a.cos(), a.sin())]
    ),
    (
        "in the cosines only",
        lambda q, a: (
            lambda c, s: q * c * 1.25 + q.g.cat([-q.slice(-1, R), q.slice(-1, 0, R)], -1) * s
        )(*[q.g.cat([f, f], -1) for f in (a.cos(), a.sin())]),
    ),
)
rope(
    "rotary of two tensors at once",
    "joined along the heads",
    lambda q, a: halves(q, a).matmul(halves(q.exp(), a).transpose(2, 3)),
    lambda q, a: (lambda b: b.slice(1, 0, H).matmul(b.slice(1, H).transpose(2, 3)))(
        halves(q.g.cat([q, q.exp()], 1), a)
    ),
)
rope(
    "rotary in two dimensions",
    "rows and columns of an image",
    lambda q, a: q.g.cat(
        [halves_of(q.slice(3, 0, 4), a.slice(1, 0, 2)), halves_of(q.slice(3, 4), a.slice(1, 2))], -1
    ),
    lambda q, a: (
        lambda x, t: q.g.stack(
            [
                x.select(4, 0) * t.cos() - x.select(4, 1) * t.sin(),
                x.select(4, 1) * t.cos() + x.select(4, 0) * t.sin(),
            ],
            4,
        ).view(1, H, T, D)
    )(q.view(1, H, T, 2, 2, 2), a.view(T, 2, 2)),
)
rope(
    "rotary of three kinds of positions",
    "Qwen2-VL's sections",
    lambda q, a: halves(
        q,
        a.g.cat(
            [
                p.slice(1, i, i + 1) if i < 3 else p.slice(1, 3)
                for i, p in enumerate((a, a * 2.0, a * 3.0, a))
            ],
            1,
        ),
    ),
    lambda q, a: (
        lambda t: halves(
            q,
            a.g.cat(
                [s.select(0, i % 3) for i, s in enumerate(t.split_with_sizes([1, 1, 1, 1], 2))], -1
            ),
        )
    )(a.g.stack([a, a * 2.0, a * 3.0], 0)),
)


def halves_of(q, a):
    n = q.shape[-1] // 2
    lo, hi = q.slice(3, 0, n), q.slice(3, n)
    return q.g.cat([lo * a.cos() - hi * a.sin(), hi * a.cos() + lo * a.sin()], -1)


# ---- feed-forward layers ----


def gated(g):
    return g.x(T, C), values("gate", M, C), values("up", M, C), g.param("down", C, M)


def two_weights(act):
    return lambda x, a, b, d: (
        act(x.linear(x.g.param("gate", a))) * x.linear(x.g.param("up", b))
    ).linear(d)


def one_weight(act, how="chunk"):
    def f(x, a, b, d):
        if how == "interleaved":
            h = x.linear(
                x.g.param("gu", join(*[m.rows(i, i + 1) for i in range(M) for m in (a, b)]))
            )
            return (act(h.slice(-1, 0, INF, 2)) * h.slice(-1, 1, INF, 2)).linear(d)
        h = x.linear(x.g.param("gu", join(b, a) if how == "up first" else join(a, b)))
        if how == "view":
            return (act(h.view(T, 2, M).select(1, 0)) * h.view(T, 2, M).select(1, 1)).linear(d)
        if how == "exchanged":
            return (act(h.slice(1, M)) * h.slice(1, 0, M)).linear(d)
        p, q = h.chunk(2, -1)
        return (act(q) * p if how == "up first" else act(p) * q).linear(d)

    return f


def quick(x):
    return x * (x * 1.702).sigmoid()


def tanh_gelu(x):
    return x * 0.5 * ((x * 0.7978845608028654 * (x * x * 0.044715 + 1.0)).tanh() + 1.0)


mlp = of(gated)
for _h in "chunk", "interleaved", "up first", "view":
    mlp(
        "gate and up in one weight, " + _h,
        "rows in another order",
        two_weights(lambda y: y.silu()),
        one_weight(lambda y: y * y.sigmoid(), _h),
        ("gate and up exchanged", one_weight(lambda y: y.silu(), "exchanged"))
        if _h == "chunk"
        else None,
    )
mlp(
    "GeGLU",
    "tanh GELU written out",
    two_weights(lambda y: y.gelu(approximate="tanh")),
    one_weight(tanh_gelu, "interleaved"),
    ("the exact GELU", one_weight(lambda y: y.gelu(), "interleaved")),
)
mlp(
    "ReGLU, clamped",
    "gpt-oss: limits before the product",
    two_weights(lambda y: y.clamp(None, 7.0) * (y.clamp(None, 7.0) * 1.702).sigmoid()),
    one_weight(lambda y: quick(y.minimum(y.g.full((), 7.0)))),
    ("limited behind", one_weight(lambda y: quick(y).minimum(y.g.full((), 7.0)))),
)
mlp(
    "gated layer in two halves",
    "ranks of tensor parallelism",
    two_weights(lambda y: y.silu()),
    lambda x, a, b, d: (lambda f: f(0, 3) + f(3, 6))(
        lambda lo, hi: (
            x.linear(x.g.param("gate", a).slice(0, lo, hi)).silu()
            * x.linear(x.g.param("up", b).slice(0, lo, hi))
        ).linear(d.slice(1, lo, hi))
    ),
    (
        "one half twice",
        lambda x, a, b, d: (lambda f: f(0, 3) * 2.0)(
            lambda lo, hi: (
                x.linear(x.g.param("gate", a).slice(0, lo, hi)).silu()
                * x.linear(x.g.param("up", b).slice(0, lo, hi))
            ).linear(d.slice(1, lo, hi))
        ),
    ),
)
mlp(
    "gated layer in chunks of tokens",
    "rows by themselves",
    two_weights(lambda y: y.silu()),
    lambda x, a, b, d: (
        lambda p, q: x.g.cat(
            [(y.linear(p).silu() * y.linear(q)).linear(d) for y in x.split(3, 0)], 0
        )
    )(x.g.param("gate", a), x.g.param("up", b)),
)
mlp(
    "gated linear unit",
    "aten::glu",
    lambda x, a, b, d: (
        x.linear(x.g.param("up", b)) * x.linear(x.g.param("gate", a)).sigmoid()
    ).linear(d),
    lambda x, a, b, d: glu(x.linear(x.g.param("ug", join(b, a)))).linear(d),
    ("halves exchanged", lambda x, a, b, d: glu(x.linear(x.g.param("ug", join(a, b)))).linear(d)),
)
x_only(
    "squared ReLU",
    "Primer's",
    lambda x: x.relu().square(),
    lambda x: x.clamp_min(0.0) * x,
    ("the square of what is below too", lambda x: x * x),
)
x_only(
    "GELU with tanh, in powers",
    "HF's NewGELU",
    lambda x: x.gelu(approximate="tanh"),
    lambda x: 0.5 * x * ((math.sqrt(2 / math.pi) * (x + 0.044715 * x.pow(3.0))).tanh() + 1.0),
)
x_only(
    "GELU with tanh as a sigmoid",
    "tanh(y) = 2 sigmoid(2 y) - 1",
    lambda x: x.gelu(approximate="tanh"),
    lambda x: x * ((x + x * x * x * 0.044715) * math.sqrt(8 / math.pi)).sigmoid(),
)
x_only(
    "GELU by erfc",
    "the normal distribution",
    lambda x: x.gelu(),
    lambda x: x * 0.5 * x.op("erfc", [x * -math.sqrt(0.5)]),
    ("the other tail", lambda x: x * 0.5 * x.op("erfc", [x * math.sqrt(0.5)])),
)
x_only("quick GELU", "CLIP's", quick, lambda x: x / ((x * -1.702).exp() + 1.0))
x_only(
    "hard swish",
    "MobileNet's",
    lambda x: x.hardswish(),
    lambda x: x * (x + 3.0).relu6() / 6.0,
    ("clamped at 5", lambda x: x * (x + 3.0).clamp(0.0, 5.0) / 6.0),
)
x_only(
    "mish",
    "x tanh(softplus(x))",
    lambda x: x.mish(),
    lambda x: (lambda e: x * (e * e + e * 2.0) / (e * e + e * 2.0 + 2.0))(x.exp()),
)
x_only(
    "softplus by a log",
    "Mamba's dt",
    lambda x: x.clamp(-15.0, 15.0).exp().log1p(),
    lambda x: -(x.clamp(-15.0, 15.0).neg().sigmoid().log()),
)
x_only(
    "scaled hyperbolic tangent",
    "a learned soft cap",
    lambda x: x.tanh() * 3.0,
    lambda x: (x * 2.0).sigmoid() * 6.0 - 3.0,
    ("one time too few", lambda x: (x * 2.0).sigmoid() * 6.0 - 2.0),
)

# ---- adapters and products ----


def adapter(g):
    return g.x(T, C), g.param("w", M, C), g.param("a", 2, C), g.param("b", M, 2)


lora = of(adapter)
lora(
    "LoRA merged",
    "x (W + s B A)",
    lambda x, w, a, b: x.linear(w) + x.linear(a).linear(b) * 2.0,
    lambda x, w, a, b: x.linear(w + b.mm(a) * 2.0),
    ("scaled twice", lambda x, w, a, b: x.linear(w + b.mm(a) * 4.0)),
)
lora(
    "LoRA merged by addmm",
    "alpha is the scale",
    lambda x, w, a, b: x.linear(w) + (x * 0.5).linear(a).linear(b),
    lambda x, w, a, b: x.linear(w.addmm(b, a, alpha=0.5)),
)
lora(
    "LoRA beside a fused weight",
    "both in one product",
    lambda x, w, a, b: (lambda h: h.slice(1, 0, M) + h.slice(1, M).linear(b))(
        x.linear(x.g.cat([w, a], 0))
    ),
    lambda x, w, a, b: x.linear(w) + x.linear(a).linear(b),
)
lora(
    "DoRA's magnitude",
    "rows scaled, or outputs",
    lambda x, w, a, b: (lambda v: x.linear(v * (x.g.param("m", M).unsqueeze(1) / v.norm(1, True))))(
        w + b.mm(a)
    ),
    lambda x, w, a, b: (
        lambda v: (x.linear(w) + x.linear(a).linear(b)) * (x.g.param("m", M) / v.norm(1))
    )(w + b.mm(a)),
    (
        "only what was there is scaled",
        lambda x, w, a, b: (
            lambda v: x.linear(w) * (x.g.param("m", M) / v.norm(1)) + x.linear(a).linear(b)
        )(w + b.mm(a)),
    ),
)
of(
    lambda g: (
        g.x(T, C),
        g.param("a", 3, 2, C),
        g.param("b", 3, M, 2),
        g.const("which", [0, 2, 1, 2], i64),
    )
)(
    "many adapters",
    "each token's own: gathered, or all and masked",
    lambda x, a, b, i: b.index(i).bmm(a.index(i).bmm(x.unsqueeze(2))).squeeze(2),
    lambda x, a, b, i: sum(
        (
            x.linear(a.select(0, k)).linear(b.select(0, k)) * i.eq(k).to(f32).unsqueeze(1)
            for k in (1, 2)
        ),
        x.linear(a.select(0, 0)).linear(b.select(0, 0)) * i.eq(0).to(f32).unsqueeze(1),
    ),
    (
        "one adapter left out",
        lambda x, a, b, i: sum(
            (
                x.linear(a.select(0, k)).linear(b.select(0, k)) * i.eq(k).to(f32).unsqueeze(1)
                for k in (1,)
            ),
            x.linear(a.select(0, 0)).linear(b.select(0, 0)) * i.eq(0).to(f32).unsqueeze(1),
        ),
    ),
)
of(lambda g: (g.x(T, C), g.param("w", M, C), g.param("b", M)))(
    "bias as a column",
    "joined to weight and input",
    lambda x, w, b: x.linear(w, b),
    lambda x, w, b: pad(x, (0, 1), 1.0).linear(x.g.cat([w, b.unsqueeze(1)], 1)),
)
of(lambda g: (g.x(T, C), g.param("w", M, C), g.param("b", M)))(
    "padded weight",
    "rows of zeros cut off again",
    lambda x, w, b: x.linear(w, b),
    lambda x, w, b: x.linear(pad(w, (0, 0, 0, 2)), pad(b, (0, 2))).slice(1, 0, M),
)
of(lambda g: (g.x(2, T, C), g.param("w", 2, M, C)))(
    "a weight for each group",
    "einsum and bmm",
    lambda x, w: x.g.einsum("gtc,gmc->gtm", x, w),
    lambda x, w: x.g.stack([x.select(0, i).linear(w.select(0, i)) for i in (0, 1)], 0),
    (
        "groups exchanged",
        lambda x, w: x.g.stack([x.select(0, i).linear(w.select(0, 1 - i)) for i in (0, 1)], 0),
    ),
)
of(lambda g: (g.x(T, C), g.param("w", C, C)))(
    "a block-diagonal weight",
    "two small products",
    lambda x, w: x.linear(
        w * x.g.const("m", Data((C, C), [float(i // C // 4 == i % C // 4) for i in range(C * C)]))
    ),
    lambda x, w: x.g.cat(
        [
            x.slice(1, 0, 4).linear(w.slice(0, 0, 4).slice(1, 0, 4)),
            x.slice(1, 4).linear(w.slice(0, 4).slice(1, 4)),
        ],
        1,
    ),
)
of(lambda g: (g.x(T, C), g.param("w", C, C), g.param("s", C)))(
    "layer scale",
    "LayerScale in the weight",
    lambda x, w, s: x + s * x.linear(w),
    lambda x, w, s: x + x.linear(w * s.unsqueeze(1)),
    ("in the input", lambda x, w, s: x + x.linear(w * s)),
)
of(lambda g: (g.x(T, C), g.param("w", C, C), g.param("u", C, C)))(
    "attention and feed-forward side by side",
    "one product of joined weights",
    lambda x, w, u: x + x.layer_norm().linear(w) + x.layer_norm().linear(u),
    lambda x, w, u: (lambda h: h.slice(1, 0, C) + (h.slice(1, C) + x))(
        x.layer_norm().linear(x.g.cat([w, u], 0))
    ),
)

# ---- rotary embedding by sections, each of its own axis ----

SECTIONS, AXES = [1, 2, 1], 3


def axes_and_frequencies(g):
    places = Data((AXES, T), [7 * a + 2 * t * (a + 1) for a in range(AXES) for t in range(T)])
    return g.ints("places", places, 64), g.const("inv_freq", [50.0 ** (-i / R) for i in range(R)])


sections = of(axes_and_frequencies)


def sliced(places, f):
    """All angles of all axes, of which each section takes those of one."""
    every = places.to(f32).unsqueeze(2) * f
    ends = [sum(SECTIONS[:k]) for k in range(AXES + 1)]
    parts = [every.select(0, a).slice(1, ends[a], ends[a + 1]) for a in range(AXES)]
    return places.g.cat(parts, 1)


def repeated(places, f, lengths=SECTIONS):
    """Each frequency's axis, as often repeated as its section is long."""
    g = places.g
    own = g.op(
        "repeat_interleave.self_Tensor",
        [g.const("axes", list(range(AXES)), i64), g.const("lengths", lengths, i64)],
        [((R,), i64)],
    )[0]
    return places.to(f32).index(own).t() * f


sections(
    "angles by sections",
    "Qwen2-VL's places in time, height and width",
    sliced,
    repeated,
    ("other sections", lambda p, f: repeated(p, f, [2, 1, 1])),
)
