"""Layers in other words: products, norms, activations, reductions, tables, convolutions; and the
attributes of norms and activations that are easily mistaken."""

from dsl import *
from values import rms, same, two


def equal(name, left, right, why="the same function", **how):
    two(name, why, left, right, EQUIVALENT, **how)


# ---- products ----


def linear(name, left, right, why="the same product", expected=EQUIVALENT, shape=(4, 8)):
    """Functions of x, a weight [6, 8] and a bias."""

    def side(f):
        return lambda g: f(g.x(*shape), g.param("w", 6, 8), g.param("b", 6))

    pair(name, expected, why, side(left), side(right))


linear("linear and mm", lambda x, w, b: x.linear(w), lambda x, w, b: x.mm(w.t()))
linear("linear and addmm", lambda x, w, b: x.linear(w, b), lambda x, w, b: b.addmm(x, w.t()))
linear(
    "linear and matmul", lambda x, w, b: x.linear(w, b), lambda x, w, b: x @ w.transpose(0, 1) + b
)
linear(
    "linear and einsum", lambda x, w, b: x.linear(w), lambda x, w, b: x.g.einsum("ti,oi->to", x, w)
)
linear(
    "linear and a sum of products",
    lambda x, w, b: x.linear(w),
    lambda x, w, b: (x.unsqueeze(1) * w).sum(-1),
)
linear(
    "linear as a product from the left",
    lambda x, w, b: x.linear(w),
    lambda x, w, b: w.mm(x.t()).t(),
)
linear(
    "linear of three dimensions",
    lambda x, w, b: x.linear(w, b),
    lambda x, w, b: b.addmm(x.view(-1, 8), w.t()).view(2, 2, 6),
    shape=(2, 2, 8),
)
linear(
    "linear in two parts of the output",
    lambda x, w, b: x.linear(w, b),
    lambda x, w, b: x.g.cat(
        [x.linear(w.slice(0, 0, 2), b.slice(0, 0, 2)), x.linear(w.slice(0, 2), b.slice(0, 2))], -1
    ),
)
linear(
    "linear in two parts of the input",
    lambda x, w, b: x.linear(w),
    lambda x, w, b: x.slice(1, 0, 3).linear(w.slice(1, 0, 3)) + x.slice(1, 3).linear(w.slice(1, 3)),
)
linear(
    "linear of a scaled input",
    lambda x, w, b: (x * 0.5).linear(w),
    lambda x, w, b: x.linear(w) * 0.5,
)
linear(
    "linear and addmm, alpha",
    lambda x, w, b: x.linear(w) * 0.5 + b,
    lambda x, w, b: b.addmm(x, w.t(), alpha=0.5),
)
linear(
    "linear and addmm, beta",
    lambda x, w, b: x.linear(w) + b * 2.0,
    lambda x, w, b: b.addmm(x, w.t(), beta=2),
)
linear("bias missing", lambda x, w, b: x.linear(w, b), lambda x, w, b: x.linear(w), "", DIFFERENT)
linear(
    "bias twice", lambda x, w, b: x.linear(w, b), lambda x, w, b: x.linear(w, b) + b, "", DIFFERENT
)
linear(
    "bias before the scale",
    lambda x, w, b: x.linear(w, b) * 0.5,
    lambda x, w, b: x.linear(w) * 0.5 + b,
    "",
    DIFFERENT,
)
linear(
    "alpha and beta exchanged",
    lambda x, w, b: b.addmm(x, w.t(), alpha=0.5),
    lambda x, w, b: b.addmm(x, w.t(), beta=0.5),
    "",
    DIFFERENT,
)
linear(
    "output rows in another order",
    lambda x, w, b: x.linear(w),
    lambda x, w, b: x.linear(w.roll(1, 0)),
    "",
    DIFFERENT,
)
pair(
    "linear and bmm",
    EQUIVALENT,
    "a batch of one",
    lambda g: g.x(4, 8).linear(g.param("w", 6, 8)),
    lambda g: g.x(4, 8).unsqueeze(0).bmm(g.param("w", 6, 8).t().unsqueeze(0)).squeeze(0),
)
pair(
    "linear and conv1d",
    EQUIVALENT,
    "a kernel of width 1",
    lambda g: g.x(1, 4, 8).linear(g.param("w", 6, 8), g.param("b", 6)),
    lambda g: (
        g.x(1, 4, 8)
        .transpose(1, 2)
        .conv1d(g.param("w", values("w", 6, 8).reshape(6, 8, 1)), g.param("b", 6))
        .transpose(1, 2)
    ),
)
pair(
    "conv1d of width 2 and two products",
    EQUIVALENT,
    "causal, by its taps",
    lambda g: g.x(1, 8, 5).conv1d(g.param("w", values("w", 6, 16).reshape(6, 8, 2))),
    lambda g: (
        lambda x, w: (
            w.select(2, 0).matmul(x.slice(2, 0, 4)) + w.select(2, 1).matmul(x.slice(2, 1, 5))
        )
    )(g.x(1, 8, 5), g.param("w", values("w", 6, 16).reshape(6, 8, 2))),
)
pair(
    "conv1d flipped",
    DIFFERENT,
    "correlation against convolution",
    lambda g, s: g.x(1, 8, 5).conv1d((lambda w: w.flip(2) if s else w)(g.param("w", 6, 8, 2))),
)
pair(
    "conv1d padded on the other side",
    DIFFERENT,
    "causal against anticausal",
    lambda g, s: g.x(1, 8, 5).conv1d(g.param("w", 8, 1, 2), padding=1, groups=8).slice(2, s, 5 + s),
)
pair(
    "weight stored transposed",
    EQUIVALENT,
    "GPT-2's Conv1D",
    lambda g: g.x(4, 8).linear(g.param("w", 6, 8)),
    lambda g: g.x(4, 8).mm(g.param("w", values("w", 6, 8).t())),
)
pair(
    "weight stored as [heads, d, C]",
    EQUIVALENT,
    "",
    lambda g: g.x(4, 8).linear(g.param("w", 6, 8)),
    lambda g: g.einsum(
        "tc,hdc->thd", g.x(4, 8), g.param("w", values("w", 6, 8).reshape(2, 3, 8))
    ).reshape(4, 6),
)


def beside_a_copy(g, other, first=0):
    """Rows of a table that has zeros below; a copy of it without them is read by nothing."""
    table = values("t", 4, 6)
    g.param("copy", table)
    whole = Data((6, 6), list(table.values) + [0.0] * 12)
    return g.param("padded", whole).slice(0, first, first + 4) * other


pair(
    "a parameter that nothing reads is equal to the other side's",
    EQUIVALENT,
    "the one that is read is related",
    lambda g: g.param("t", values("t", 4, 6)) * g.x(4, 6),
    lambda g: beside_a_copy(g, g.x(4, 6)),
)


def crossed_copies(g, side):
    """Each side holds, and never reads, the table that the other side reads."""
    table = values("t", 4, 6)
    whole = Data((6, 6), list(table.values) + [0.0] * 12)
    g.param("old", (whole, table)[side])
    return g.param("new", (table, whole)[side]).slice(0, 0, 4) * g.x(4, 6)


pair(
    "parameters that nothing reads, crossed",
    EQUIVALENT,
    "those that are read are related",
    crossed_copies,
)
pair(
    "a parameter that nothing reads, and other rows",
    DIFFERENT,
    "the rows of zeros",
    lambda g: g.param("t", values("t", 4, 6)) * g.x(4, 6),
    lambda g: beside_a_copy(g, g.x(4, 6), 2),
)
pair(
    "weights renamed",
    EQUIVALENT,
    "related by value",
    lambda g: (
        g.x(4, 8)
        .linear(g.param("h.0.w", values("a", 6, 8)))
        .linear(g.param("h.1.w", values("b", 6, 6)))
    ),
    lambda g: (
        g.leaf("input", "hidden", values("x", 4, 8, input=True), f32)
        .linear(g.param("0.w", values("a", 6, 8)))
        .linear(g.param("1.w", values("b", 6, 6)))
    ),
)
pair(
    "reassociated products",
    EQUIVALENT,
    "(x A) B against x (A B)",
    lambda g: g.x(4, 8).mm(g.param("a", 8, 2)).mm(g.param("b", 2, 6)),
    lambda g: g.x(4, 8).mm(g.param("a", 8, 2).mm(g.param("b", 2, 6))),
)
pair(
    "low-rank update",
    EQUIVALENT,
    "x W + x A B against x (W + A B)",
    lambda g: (lambda x, w, a, b: x.mm(w) + x.mm(a).mm(b))(
        g.x(4, 8), g.param("w", 8, 6), g.param("a", 8, 2), g.param("b", 2, 6)
    ),
    lambda g: (lambda x, w, a, b: x.mm(w + a.mm(b)))(
        g.x(4, 8), g.param("w", 8, 6), g.param("a", 8, 2), g.param("b", 2, 6)
    ),
)


def mlp(g):
    x = g.x(4, 8)
    return (x.linear(g.param("gate", 6, 8)).silu() * x.linear(g.param("up", 6, 8))).linear(
        g.param("down", 8, 6)
    )


def fused_mlp(how):
    def f(g):
        gate, up = values("gate", 6, 8), values("up", 6, 8)
        x = g.x(4, 8)
        if how == "interleaved":
            h = x.linear(
                g.param("gu", join(*[m.rows(i, i + 1) for i in range(6) for m in (gate, up)]))
            )
            a, b = h.slice(-1, 0, INF, 2), h.slice(-1, 1, INF, 2)
        elif how == "up first":
            b, a = x.linear(g.param("gu", join(up, gate))).chunk(2, -1)
        elif how == "chunk":
            a, b = x.linear(g.param("gu", join(gate, up))).chunk(2, -1)
        elif how == "slices":
            h = x.linear(g.param("gu", join(gate, up)))
            a, b = h.slice(-1, 0, 6), h.slice(-1, 6)
        elif how == "view":
            a, b = x.linear(g.param("gu", join(gate, up))).view(4, 2, 6).unbind(1)
        elif how == "narrow":
            h = x.linear(g.param("gu", join(gate, up)))
            a, b = h.narrow(1, 0, 6), h.narrow(1, 6, 6)
        if how == "narrow":
            act = a.div((-a).exp() + 1.0)
        else:
            act = a * a.sigmoid()
        return (act * b).linear(g.param("down", 8, 6))

    return f


for _h in "chunk", "up first", "interleaved", "slices", "view", "narrow":
    pair("gate and up fused: " + _h, EQUIVALENT, "the weight in another order", mlp, fused_mlp(_h))
pair(
    "gate and up fused: kernel",
    EQUIVALENT,
    "vLLM's silu_and_mul",
    mlp,
    lambda g: (
        lambda h: g.op(
            "_C::silu_and_mul",
            [],
            [((4, 6), f32)],
            {"out": g.empty(4, 6), "input": h},
            functionalized={"returns": 0, "writes": ["out"]},
        )[0].linear(g.param("down", 8, 6))
    )(g.x(4, 8).linear(g.param("gu", join(values("gate", 6, 8), values("up", 6, 8))))),
)

# ---- norms ----

LN = lambda g: g.x(4, 8).layer_norm(g.param("w", 8), g.param("b", 8))


def centred(x, eps=1e-5):
    d = x - x.mean(-1, True)
    return d, d.pow(2).mean(-1, True) + eps


def norm(name, right, expected=EQUIVALENT, why="layer_norm expanded", left=LN):
    pair(name, expected, why, left, lambda g: right(g.x(4, 8), g.param("w", 8), g.param("b", 8)))


norm("layer_norm by rsqrt", lambda x, w, b: (lambda d, v: d * v.rsqrt() * w + b)(*centred(x)))
norm("layer_norm by sqrt", lambda x, w, b: (lambda d, v: w * (d / v.sqrt()) + b)(*centred(x)))
norm(
    "layer_norm by var",
    lambda x, w, b: (x - x.mean(-1, True)) * (x.var(-1, True) + 1e-5).rsqrt() * w + b,
)
norm("layer_norm by pow(0.5)", lambda x, w, b: (lambda d, v: d / v.pow(0.5) * w + b)(*centred(x)))
norm(
    "layer_norm by E[x^2] - E[x]^2",
    lambda x, w, b: (
        (x - x.mean(-1, True))
        * ((x * x).mean(-1, True) - x.mean(-1, True).square() + 1e-5).rsqrt()
        * w
        + b
    ),
    NOT_DIFFERENT,
    "rounding aside",
)
norm("layer_norm without attributes", lambda x, w, b: x.layer_norm() * w + b)
norm("layer_norm by addcmul", lambda x, w, b: b.addcmul(x.layer_norm(), w))
norm(
    "layer_norm with var of n - 1",
    lambda x, w, b: (x - x.mean(-1, True)) * (x.var(-1, True, 1) + 1e-5).rsqrt() * w + b,
    DIFFERENT,
    "n - 1",
)
norm(
    "layer_norm with eps outside the root",
    lambda x, w, b: (lambda d, v: d / (v.sqrt() + 1e-5) * w + b)(*centred(x, 0.0)),
    DIFFERENT,
    "sqrt(v) + eps",
)
norm("layer_norm with eps 1e-6", lambda x, w, b: x.layer_norm(w, b, 1e-6), DIFFERENT, "1e-5")
norm("layer_norm with eps 1e-12", lambda x, w, b: x.layer_norm(w, b, 1e-12), DIFFERENT, "1e-5")
norm("layer_norm weight after bias", lambda x, w, b: (x.layer_norm() + b) * w, DIFFERENT, "")
norm(
    "layer_norm as rms_norm",
    lambda x, w, b: rms(x, 1e-5) * w + b,
    DIFFERENT,
    "the mean is not taken away",
)
norm(
    "rms_norm",
    lambda x, w, b: x.rms_norm(w, 1e-6),
    why="rms_norm expanded",
    left=lambda g: rms(g.x(4, 8)) * g.param("w", 8),
)
RMS = lambda g: g.param("w", 8) * rms(g.x(4, 8))
norm(
    "rms_norm by x * x",
    lambda x, w, b: x.mul((x * x).mean(-1, True).add(1e-6).rsqrt()).mul(w),
    left=RMS,
)
norm(
    "rms_norm by division",
    lambda x, w, b: w * x.div((x.square().sum(-1, True) / 8 + 1e-6).sqrt()),
    left=RMS,
)
norm(
    "rms_norm by reciprocal",
    lambda x, w, b: w * (x * x.pow(2).mean(-1, True).add(1e-6).sqrt().reciprocal()),
    left=RMS,
)
norm(
    "rms_norm by pow(-0.5)",
    lambda x, w, b: x * x.pow(2).mean(-1, True).add(1e-6).pow(-0.5) * w,
    left=RMS,
)
norm(
    "rms_norm by its norm",
    lambda x, w, b: x * (x.norm(-1, True).square() * 0.125 + 1e-6).rsqrt() * w,
    left=RMS,
)
norm("rms_norm with casts", lambda x, w, b: rms(x.to(f32)).to(f32) * w, left=RMS)
norm(
    "rms_norm, weight first",
    lambda x, w, b: (x * w) * x.pow(2).mean(-1, True).add(1e-6).rsqrt(),
    left=RMS,
)
norm("rms_norm with eps 1e-5", lambda x, w, b: rms(x, 1e-5) * w, DIFFERENT, "1e-6", RMS)
norm("rms_norm with eps 1.1e-6", lambda x, w, b: rms(x, 1.1e-6) * w, DIFFERENT, "1e-6", RMS)
norm(
    "rms_norm by sum",
    lambda x, w, b: x * x.pow(2).sum(-1, True).add(1e-6).rsqrt() * w,
    DIFFERENT,
    "mean",
    RMS,
)
norm(
    "rms_norm over the other dimension",
    lambda x, w, b: x * x.pow(2).mean(0, True).add(1e-6).rsqrt() * w,
    DIFFERENT,
    "",
    RMS,
)
norm(
    "rms_norm as layer_norm",
    lambda x, w, b: x.layer_norm(w, None, 1e-6),
    DIFFERENT,
    "the mean is taken away",
    RMS,
)
norm(
    "rms_norm of what has mean 0",
    lambda x, w, b: (x - x.mean(-1, True)).layer_norm(w, None, 1e-6),
    EQUIVALENT,
    "the mean of the left side's x is taken away before",
    lambda g: (lambda x: rms(x - x.mean(-1, True)) * g.param("w", 8))(g.x(4, 8)),
)
norm(
    "rms_norm with 1 + w",
    lambda x, w, b: rms(x) + rms(x) * w,
    EQUIVALENT,
    "Gemma",
    lambda g: rms(g.x(4, 8)) * (g.param("w", 8) + 1.0),
)
norm(
    "rms_norm with 1 + w missing",
    lambda x, w, b: rms(x) * w,
    DIFFERENT,
    "Gemma",
    lambda g: rms(g.x(4, 8)) * (g.param("w", 8) + 1.0),
)
norm(
    "rms_norm kernel",
    lambda x, w, b: x.g.op(
        "_C::rms_norm",
        [],
        [(x.shape, f32)],
        {"result": x.g.empty(4, 8), "input": x, "weight": w, "epsilon": 1e-6},
        functionalized={"returns": 0, "writes": ["result"]},
    )[0],
    left=RMS,
)
norm(
    "rms_norm kernel, eps",
    lambda x, w, b: x.g.op(
        "_C::rms_norm",
        [],
        [(x.shape, f32)],
        {"result": x.g.empty(4, 8), "input": x, "weight": w, "epsilon": 1e-5},
        functionalized={"returns": 0, "writes": ["result"]},
    )[0],
    DIFFERENT,
    "1e-6",
    RMS,
)
pair(
    "rms_norm, 1 + w stored",
    EQUIVALENT,
    "the loader added 1",
    lambda g: rms(g.x(4, 8)) * (g.param("w", values("w", 8)) + 1.0),
    lambda g: (g.param("w", values("w", 8)) + 1.0).mul(rms(g.x(4, 8))),
)
pair(
    "group_norm",
    EQUIVALENT,
    "as layer_norm of groups",
    lambda g: g.x(2, 6, 4).group_norm(2),
    lambda g: g.x(2, 6, 4).view(2, 2, 12).layer_norm().view(2, 6, 4),
)
pair(
    "group_norm with weights",
    EQUIVALENT,
    "per channel",
    lambda g: g.x(2, 6, 4).group_norm(2, g.param("w", 6), g.param("b", 6)),
    lambda g: (
        g.x(2, 6, 4).view(2, 2, 12).layer_norm().view(2, 6, 4) * g.param("w", 6).view(6, 1)
        + g.param("b", 6).view(6, 1)
    ),
)
pair(
    "group_norm of other groups",
    DIFFERENT,
    "2 against 3",
    lambda g, s: g.x(2, 6, 4).group_norm(3 if s else 2),
)
pair(
    "norm of each head",
    EQUIVALENT,
    "before and after the transpose",
    lambda g: g.x(4, 8).view(4, 2, 4).layer_norm(g.param("w", 4)).transpose(0, 1),
    lambda g: g.x(4, 8).view(4, 2, 4).transpose(0, 1).layer_norm(g.param("w", 4)),
)
pair(
    "norm of all heads as one",
    DIFFERENT,
    "per head",
    lambda g: g.x(4, 8).view(4, 2, 4).layer_norm().view(4, 8),
    lambda g: g.x(4, 8).layer_norm(),
)
pair(
    "residual before and after the norm",
    DIFFERENT,
    "",
    lambda g, s: (lambda x: x + (x if s else rms(x)).linear(g.param("w", 8, 8)))(g.x(4, 8)),
)
pair(
    "residual in another order",
    EQUIVALENT,
    "",
    lambda g, s: (lambda x, a, b: x + (a + b) if s else b + (a + x))(
        *(lambda x: (x, x.linear(g.param("a", 8, 8)), x.linear(g.param("b", 8, 8))))(g.x(4, 8))
    ),
)
pair(
    "normalised twice",
    NOT_EQUIVALENT,
    "eps acts twice",
    lambda g, s: (lambda x: rms(rms(x)) if s else rms(x))(g.x(4, 8)),
)

# ---- activations ----

GELU = lambda x: x.gelu(approximate="tanh")
equal(
    "gelu tanh expanded",
    GELU,
    lambda x: 0.5 * x * (((x + 0.044715 * x.pow(3.0)) * math.sqrt(2 / math.pi)).tanh() + 1.0),
)
equal(
    "gelu tanh expanded with products",
    GELU,
    lambda x: x * 0.5 * ((x * 0.7978845608028654 * (0.044715 * x * x + 1.0)).tanh() + 1.0),
)
equal(
    "gelu tanh by sigmoid",
    GELU,
    lambda x: x * ((x + 0.044715 * x * x * x) * (2 * math.sqrt(2 / math.pi))).sigmoid(),
)
equal("gelu erf expanded", lambda x: x.gelu(), lambda x: x * 0.5 * ((x / math.sqrt(2)).erf() + 1.0))
two("gelu tanh and erf", "approximations differ by 5e-4", lambda x: x.gelu(), GELU)
two("gelu by sigmoid(1.702 x)", "", lambda x: x.gelu(), lambda x: x * (x * 1.702).sigmoid())
two(
    "gelu with 0.0447",
    "a digit missing",
    GELU,
    lambda x: 0.5 * x * (((x + 0.0447 * x.pow(3.0)) * math.sqrt(2 / math.pi)).tanh() + 1.0),
)
equal("silu as x sigmoid(x)", lambda x: x.silu(), lambda x: x * x.sigmoid())
equal("silu as x / (1 + exp(-x))", lambda x: x.silu(), lambda x: x / ((-x).exp() + 1.0))
two("silu and gelu", "", lambda x: x.silu(), lambda x: x.gelu())
equal("sigmoid by tanh", lambda x: x.sigmoid(), lambda x: ((x * 0.5).tanh() + 1.0) * 0.5)
equal("sigmoid of -x", lambda x: (-x).sigmoid(), lambda x: 1.0 - x.sigmoid())
equal(
    "sigmoid as a softmax of two",
    lambda x: x.sigmoid(),
    lambda x: x.g.stack([x, x.zeros_like()], -1).softmax(-1).select(-1, 0),
)
equal("relu as a maximum", lambda x: x.relu(), lambda x: x.maximum(x.zeros_like()))
equal("relu as a clamp", lambda x: x.relu(), lambda x: x.clamp_min(0))
equal("relu by where", lambda x: x.relu(), lambda x: (x > 0).where(x, x.zeros_like()))
equal("relu squared", lambda x: x.relu().pow(2), lambda x: x.relu() * x)
two("relu, then squared or not", "", lambda x: x.relu().pow(2), lambda x: x.relu())
equal("tanh by sigmoid", lambda x: x.tanh(), lambda x: (x * 2.0).sigmoid() * 2.0 - 1.0)
equal(
    "tanh by exp", lambda x: x.tanh(), lambda x: (1.0 - (x * -2.0).exp()) / (1.0 + (x * -2.0).exp())
)
equal("leaky relu by where", lambda x: x.leaky_relu(0.1), lambda x: (x > 0.0).where(x, x * 0.1))
equal("abs by where", lambda x: x.abs(), lambda x: (x < 0.0).where(-x, x))
equal("abs as the root of the square", lambda x: x.abs(), lambda x: (x * x).sqrt())
equal(
    "clamp in two steps", lambda x: x.clamp(-1.0, 1.0), lambda x: x.clamp_min(-1.0).clamp_max(1.0)
)
equal(
    "clamp by maximum and minimum",
    lambda x: x.clamp(-1.0, 1.0),
    lambda x: x.minimum(x.g.full((), 1.0)).maximum(x.g.full((), -1.0)),
)

# ---- softmax and reductions ----

equal(
    "softmax expanded",
    lambda x: x.softmax(-1),
    lambda x: (lambda e: e / e.sum(-1, True))((x - x.amax(-1, True)).exp()),
)
equal(
    "softmax without the maximum",
    lambda x: x.softmax(-1),
    lambda x: x.exp() / x.exp().sum(-1, True),
)
equal("softmax by log_softmax", lambda x: x.softmax(-1), lambda x: x.log_softmax(-1).exp())
equal("softmax by logsumexp", lambda x: x.softmax(-1), lambda x: (x - x.logsumexp(-1, True)).exp())
equal("softmax of a shifted row", lambda x: x.softmax(-1), lambda x: (x + 3.0).softmax(-1))
equal("softmax of the transpose", lambda x: x.softmax(0), lambda x: x.t().softmax(1).t())
equal("log_softmax", lambda x: x.log_softmax(-1), lambda x: x - x.exp().sum(-1, True).log())
equal("logsumexp", lambda x: x.logsumexp(-1), lambda x: x.exp().sum(-1).log())
equal(
    "logsumexp with its maximum",
    lambda x: x.logsumexp(-1),
    lambda x: (x - x.amax(-1, True)).exp().sum(-1).log() + x.amax(-1),
)
two("softmax over the other dimension", "", lambda x: x.softmax(-1), lambda x: x.softmax(0))
two("softmax of half", "temperature", lambda x: x.softmax(-1), lambda x: (x * 0.5).softmax(-1))
two(
    "softmax plus one",
    "softmax1 has a further 0",
    lambda x: x.softmax(-1),
    lambda x: x.exp() / (x.exp().sum(-1, True) + 1.0),
)
equal("mean as a sum", lambda x: x.mean(-1), lambda x: x.sum(-1) / 8)
equal("mean as a product with ones", lambda x: x.mean(-1), lambda x: x.matmul(x.g.ones(8)) * 0.125)
equal("mean of means", lambda x: x.mean(0).mean(0), lambda x: x.flatten().sum(0) / 32.0)
equal(
    "var as a mean of squares",
    lambda x: x.var(-1),
    lambda x: (x - x.mean(-1, True)).pow(2).mean(-1),
)
equal(
    "var of n - 1",
    lambda x: x.var(-1, correction=1),
    lambda x: (x - x.mean(-1, True)).square().sum(-1) / 7,
)
equal("std as a root", lambda x: x.std(-1), lambda x: x.var(-1).sqrt())
two("var of n and of n - 1", "", lambda x: x.var(-1), lambda x: x.var(-1, correction=1))
equal("norm as a root", lambda x: x.norm(-1), lambda x: x.pow(2).sum(-1).sqrt())
equal(
    "sum by steps", lambda x: x.sum(-1), lambda x: x.slice(1, 0, 3).sum(-1) + x.slice(1, 3).sum(-1)
)
equal("sum by cumsum", lambda x: x.sum(-1), lambda x: x.cumsum(-1).select(-1, 7))
equal("cumsum by a triangle", lambda x: x.cumsum(-1), lambda x: x.matmul(x.g.ones(8, 8).triu()))
two("cumsum without the element itself", "", lambda x: x.cumsum(-1), lambda x: x.cumsum(-1) - x)
equal(
    "amax as the first of sort", lambda x: x.amax(-1), lambda x: x.sort(-1, True)[0].select(-1, 0)
)
equal("amax as topk of 1", lambda x: x.amax(-1, True), lambda x: x.topk(1)[0])
equal("amax as max", lambda x: x.amax(-1), lambda x: x.max(-1)[0])
equal("amin as minus amax", lambda x: x.amin(-1), lambda x: -(-x).amax(-1))
two("amax and amin", "", lambda x: x.amax(-1), lambda x: x.amin(-1))
equal("pow and product", lambda x: x.pow(2), lambda x: x * x)
equal("pow 3", lambda x: x.pow(3), lambda x: x * x * x)
equal(
    "square of the difference",
    lambda x: (x - 1.0).square(),
    lambda x: x * x - 2.0 * x + 1.0,
    "expanded",
)
two("pow 2 and 3", "", lambda x: x.pow(2), lambda x: x.pow(3))
equal("division by a number", lambda x: x / 4.0, lambda x: x * 0.25)
equal("exp of a sum", lambda x: (x + x.t().t()).exp(), lambda x: x.exp() * x.exp())
equal(
    "rsqrt",
    lambda x: (x * x + 1.0).rsqrt(),
    lambda x: 1.0 / 1.0 * (x * x + 1.0).sqrt().reciprocal(),
)
equal("sub as add", lambda x: x.sub(2.0), lambda x: x.add(-2.0))
equal("rsub", lambda x: 1.0 - x, lambda x: -(x - 1.0))
equal("lerp", lambda x: x.lerp(x.exp(), 0.25), lambda x: x * 0.75 + x.exp() * 0.25)
equal("add with alpha", lambda x: x.add(x.sin(), alpha=2), lambda x: x + x.sin() * 2)
two("add without alpha", "", lambda x: x.add(x.sin(), alpha=2), lambda x: x + x.sin())

# ---- layouts ----

equal("split and chunk", lambda x: x.split(4, 1)[1].exp(), lambda x: x.chunk(2, 1)[1].exp())
equal(
    "split and slice",
    lambda x: x.split_with_sizes([3, 5], 1)[1].exp(),
    lambda x: x.slice(1, 3).exp(),
)
equal("narrow and slice", lambda x: x.narrow(1, 2, 3), lambda x: x.slice(1, 2, 5))
equal("select and unbind", lambda x: x.select(0, 2), lambda x: x.unbind(0)[2])
equal(
    "cat of what was split",
    lambda x: x.exp(),
    lambda x: x.g.cat([t.exp() for t in x.split(3, 1)], 1),
)
equal(
    "stack and cat",
    lambda x: x.g.stack([x, x.exp()], 0),
    lambda x: x.g.cat([x.unsqueeze(0), x.exp().unsqueeze(0)], 0),
)
equal(
    "expand and repeat",
    lambda x: x.unsqueeze(0).expand(2, 4, 8) * 2.0,
    lambda x: x.repeat(2, 1, 1) * 2.0,
)
equal(
    "permute and transpose",
    lambda x: x.view(2, 2, 8).permute(1, 2, 0),
    lambda x: x.view(2, 2, 8).transpose(0, 1).transpose(1, 2),
)
equal("flip twice", lambda x: x.exp(), lambda x: x.flip(0, 1).exp().flip(1).flip(0))
equal(
    "roll by slices",
    lambda x: x.roll(2, 1),
    lambda x: x.g.cat([x.slice(1, 6), x.slice(1, 0, 6)], 1),
)
equal("roll all the way", lambda x: x.roll(8, 1), same)
equal(
    "contiguous, clone, detach, alias",
    lambda x: x.t().exp(),
    lambda x: x.t().contiguous().clone().detach().alias().exp(),
)
equal("flatten and view", lambda x: x.flatten().exp(), lambda x: x.view(-1).exp())
equal(
    "unflatten and view", lambda x: x.unflatten(1, [2, 4]).sum(1), lambda x: x.view(4, 2, 4).sum(1)
)
equal(
    "repeat_interleave by expand",
    lambda x: x.repeat_interleave(2, 1),
    lambda x: x.unsqueeze(2).expand(4, 8, 2).reshape(4, 16),
)
equal(
    "masked_fill and where",
    lambda x: x.masked_fill(x > 0.5, 0.0),
    lambda x: (x > 0.5).where(x.zeros_like(), x),
)
equal(
    "where with the condition inverted",
    lambda x: (x > 0.5).where(x, 0.0),
    lambda x: (x <= 0.5).where(0.0, x),
)
equal("stride 2 by a view", lambda x: x.slice(1, 1, INF, 2), lambda x: x.view(4, 4, 2).select(2, 1))
equal("output of size 1 transposed", same, lambda x: x.t(), shape=(4, 1))
two(
    "reshape for transpose",
    "[8, 4] either way",
    lambda x: x.reshape(8, 4).exp(),
    lambda x: x.t().exp(),
)
two(
    "cat in the other order",
    "",
    lambda x: x.g.cat([x, x.exp()], 1),
    lambda x: x.g.cat([x.exp(), x], 1),
)
two(
    "repeat and repeat_interleave",
    "",
    lambda x: x.repeat(1, 2),
    lambda x: x.repeat_interleave(2, 1),
)
two(
    "stride 2 from the wrong start",
    "",
    lambda x: x.slice(1, 0, INF, 2),
    lambda x: x.slice(1, 1, INF, 2),
)
two("transpose missing", "", lambda x: x.exp(), lambda x: x.t().exp().contiguous(), shape=(4, 4))
two(
    "view for permute",
    "[T, H, D] as [H, T, D]",
    lambda x: x.view(4, 2, 4).permute(1, 0, 2),
    lambda x: x.reshape(2, 4, 4),
)


# ---- gradients of a loss that is scaled ----


def backward(g, by, over, layers=16, last=None):
    """Gradients of layers in a row, of a loss that is taken `by` times, divided by `over`. `last`:
    what the last of them is divided by."""
    grad, out = g.x(4, 6) * by if by != 1 else g.x(4, 6), {}
    for k in range(layers):
        h, w, m = g.x(4, 6, name="h%d" % k), g.param("w%d" % k, 6, 6), g.x(4, 6, name="m%d" % k)
        grad = grad @ w * m + grad * (m.relu() * 0.5)
        own = h.t() @ grad
        d = last if last and k == layers - 1 else over
        out["w%d" % k] = own / d if d != 1 else own
    return out


def scaled_loss(name, expected, by, over, **how):
    pair(
        "scaled loss: " + name,
        expected,
        "each step is linear",
        lambda g: backward(g, 1, 1),
        lambda g: backward(g, by, over, **how),
    )


scaled_loss("by four", EQUIVALENT, 4.0, 4.0)
scaled_loss("as mixed precision does", EQUIVALENT, 65536.0, 65536.0)
scaled_loss("the mean of three", EQUIVALENT, 1 / 3, 1 / 3)
scaled_loss("left as it is", DIFFERENT, 4.0, 1)
scaled_loss("the last is left as it is", DIFFERENT, 4.0, 4.0, last=1)
scaled_loss("divided by another", DIFFERENT, 1024.0, 1023.0)
