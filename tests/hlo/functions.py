"""Small JAX functions, one for each form that HLO text takes in models and their gradients:
`CASES` is name -> (function, arguments). Needs JAX."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

draw = np.random.default_rng(7)


def f(*shape):
    return draw.standard_normal(shape).astype(np.float32)


def pos(*shape):
    return np.abs(f(*shape)) + 0.5


def ints(low, high, *shape):
    return draw.integers(low, high, shape).astype(np.int32)


CASES = {}


def case(name, function, *args):
    assert name not in CASES, name
    CASES[name] = (function, args)


def sum_of(function):
    """A scalar of all results, weighted so that each element counts differently."""

    def scalar(*args):
        out = function(*args)
        w = jnp.arange(out.size, dtype=jnp.float32).reshape(out.shape) * 0.1 + 0.5
        return (out * w).sum()

    return scalar


def grad(name, function, *args, wrt=0):
    case(name, jax.grad(sum_of(function), argnums=wrt), *args)


# ---- elements ----

for name, g in {
    "exp": jnp.exp,
    "expm1": jnp.expm1,
    "tanh": jnp.tanh,
    "logistic": jax.nn.sigmoid,
    "erf": lax.erf,
    "sin": jnp.sin,
    "cos": jnp.cos,
    "tan": jnp.tan,
    "abs": jnp.abs,
    "sign": jnp.sign,
    "floor": jnp.floor,
    "ceil": jnp.ceil,
    "round": jnp.round,
    "cbrt": jnp.cbrt,
    "negate": lambda x: -x,
    "square": lambda x: x**2,
    "cube": lambda x: x**3,
    "isfinite": jnp.isfinite,
    "reciprocal": lambda x: 1 / x,
    "halves": lambda x: (1 - x) / 3,
}.items():
    case("element_" + name, g, f(3, 5))
for name, g in {
    "log": jnp.log,
    "log1p": jnp.log1p,
    "sqrt": jnp.sqrt,
    "rsqrt": lax.rsqrt,
    "power": lambda x: x**2.5,
    "power_of": lambda x: 2.0**x,
}.items():
    case("positive_" + name, g, pos(3, 5))
for name, g in {
    "arithmetic": lambda x, y: (x + y) * (x - y) / (y * y + 1),
    "extremes": lambda x, y: jnp.maximum(x, y) - jnp.minimum(x, 0.25),
    "clip": lambda x, y: jnp.clip(x, -0.5, 0.75) + jnp.clip(y, x - 1, x + 1),
    "atan2": jnp.arctan2,
    "where": lambda x, y: jnp.where(x < y, x, jnp.where(x >= 1, y, 2.0)),
    "remainder": lambda x, y: lax.rem(x, y),
    "modulo": lambda x, y: x % y,
    "compare": lambda x, y: (x > y) & (x <= 1) | ~(y == x),
    "row": lambda x, y: x * y[0] + y[:, :1] - 3,
}.items():
    case("pair_" + name, g, f(4, 6), f(4, 6))
case(
    "int_arithmetic", lambda i, j: (i + 3) * j - i // 4 + i % 3, ints(-9, 9, 4, 5), ints(1, 7, 4, 5)
)
case("int_bits", lambda i: ((i << 2) ^ 5) & (i >> 1) | 1, ints(0, 99, 7))
case(
    "int_convert",
    lambda i, x: i.astype(jnp.float32) * x.astype(jnp.int32),
    ints(-9, 9, 6),
    4 * f(6),
)
case("bool_add", lambda x: (x > 0).astype(jnp.int32).sum(1) + (x > 1).any(), f(4, 5))
case(
    "bfloat", lambda x: (x.astype(jnp.bfloat16) * 2).astype(jnp.float32), ints(0, 9, 8).astype("f")
)
case("unsigned", lambda i: (i.astype(jnp.uint32) * 3 + 7).astype(jnp.int32), ints(0, 1000, 8))

# ---- activations ----

for name, g in {
    "gelu_tanh": jax.nn.gelu,
    "gelu_erf": lambda x: jax.nn.gelu(x, approximate=False),
    "silu": jax.nn.silu,
    "relu": jax.nn.relu,
    "softplus": jax.nn.softplus,
    "softmax": jax.nn.softmax,
    "log_softmax": jax.nn.log_softmax,
    "logsumexp": lambda x: jax.nn.logsumexp(x, -1),
}.items():
    case("activation_" + name, g, f(4, 6))
    grad("gradient_" + name, g, f(4, 6))


def layer_norm(x, w, b):
    m = x.mean(-1, keepdims=True)
    v = ((x - m) ** 2).mean(-1, keepdims=True)
    return (x - m) * lax.rsqrt(v + 1e-5) * w + b


def rms_norm(x, w):
    return x * lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-6) * w


case("layer_norm", layer_norm, f(3, 8), f(8), f(8))
grad("layer_norm_gradient", layer_norm, f(3, 8), f(8), f(8), wrt=(0, 1, 2))
case("rms_norm", rms_norm, f(2, 3, 8), f(8))
grad("rms_norm_gradient", rms_norm, f(2, 3, 8), f(8), wrt=(0, 1))

# ---- products ----

case("dot", lambda x, w: x @ w, f(4, 6), f(6, 5))
case("dot_vector", lambda x, w: x @ w, f(4, 6), f(6))
case("dot_rows", lambda x, w: x @ w.T, f(2, 4, 6), f(5, 6))
case("dot_batch", lambda x, y: jnp.einsum("bhqd,bhkd->bhqk", x, y), f(2, 3, 4, 5), f(2, 3, 6, 5))
case("dot_mixed", lambda x, y: jnp.einsum("bqhd,bkhd->bhqk", x, y), f(2, 4, 3, 5), f(2, 6, 3, 5))
case("dot_two", lambda x, y: jnp.einsum("bshd,hde->bse", x, y), f(2, 4, 3, 5), f(3, 5, 7))
case("dot_heads", lambda x, y: jnp.einsum("bse,ehd->bshd", x, y), f(2, 4, 6), f(6, 3, 5))
case("dot_outer", lambda x, y: jnp.einsum("i,j->ij", x, y), f(4), f(5))
case("dot_bfloat", lambda x, w: jnp.dot(x, w, preferred_element_type=jnp.float32), f(4, 6), f(6, 5))
case("einsum_trace", lambda x: jnp.einsum("bii->b", x), f(3, 4, 4))
grad("dot_gradient", lambda x, w: x @ w, f(2, 4, 6), f(6, 5), wrt=(0, 1))
case("conv1d", lambda x, w: lax.conv(x, w, (2,), "SAME"), f(2, 3, 9), f(4, 3, 3))
conv2d = lambda x, w: lax.conv_general_dilated(  # noqa: E731
    x, w, (1, 2), "SAME", rhs_dilation=(2, 1), dimension_numbers=("NHWC", "HWIO", "NHWC")
)
case("conv2d", conv2d, f(2, 7, 6, 3), f(3, 3, 3, 4))
grad("conv2d_gradient", conv2d, f(2, 7, 6, 3), f(3, 3, 3, 4))
case(
    "conv_groups",
    lambda x, w: lax.conv_general_dilated(x, w, (1,), [(2, 0)], feature_group_count=3),
    *(f(2, 3, 8), f(3, 1, 3)),
)

# ---- reductions ----

case("sum", lambda x: (x.sum(1), x.sum((0, 2)), x.mean()), f(3, 4, 5))
case("extremes", lambda x: (x.max(1), x.min(0), x.max()), f(3, 4))
case("product", lambda x: (x.prod(1), x.prod()), f(3, 4))
case("logic", lambda x: ((x > 0).all(0), (x > 0).any(1)), f(3, 4))
case("arguments", lambda x: (x.argmax(1), x.argmin(0), x.argmax()), f(5, 7))
case("argmax_ties", lambda i: (i.argmax(1), i.argmin(1)), ints(0, 3, 6, 8))
case("variance", lambda x: (x.var(-1), x.std(0)), f(4, 6))
grad("max_gradient", lambda x: x.max(1), f(4, 6))
case("int_sum", lambda i: (i.sum(1), i.max(0), i.prod(1)), ints(-4, 5, 3, 4))
case("cumsum", lambda x: (jnp.cumsum(x, 1), lax.cumsum(x, 0, reverse=True)), f(4, 6))
case("cumprod", lambda x: jnp.cumprod(x, 1), f(4, 6))
case("cummax", lambda x: lax.cummax(x, 1), f(4, 6))
grad("cumsum_gradient", lambda x: jnp.cumsum(x, 1), f(4, 6))
pool = lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (1, 3, 2), (1, 2, 1), "SAME")  # noqa: E731
case("max_pool", pool, f(2, 7, 6))
case(
    "mean_pool", lambda x: lax.reduce_window(x, 0.0, lax.add, (1, 3), (1, 2), "VALID") / 3, f(2, 7)
)
case("sort", lambda x: (jnp.sort(x, 1), jnp.argsort(x, 0)), f(4, 6))
case("sort_down", lambda x: jnp.sort(x, descending=True), f(4, 6))
case("sort_ties", lambda i: jnp.argsort(i, stable=True), ints(0, 3, 12))
case("top_k", lambda x: lax.top_k(x, 3), f(4, 8))

# ---- shapes ----

case("transpose", lambda x: x.transpose(2, 0, 1) + 1, f(2, 3, 4))
case("reshape", lambda x: x.reshape(2, 3, 2, 2).swapaxes(1, 2).reshape(4, 6), f(2, 12))
case("split", lambda x: [a * k for k, a in enumerate(jnp.split(x, 3, -1))], f(2, 9))
case("stack", lambda x, y: jnp.stack([x, y], 1), f(2, 3), f(2, 3))
case("concatenate", lambda x, y: jnp.concatenate([x, y[:, ::-1]], 1), f(2, 3), f(2, 4))
case("slice", lambda x: x[1:, ::2] + x[:-1, 1::2], f(4, 6))
case("pad", lambda x: jnp.pad(x, ((1, 2), (0, 3)), constant_values=-1.5), f(3, 4))
case("pad_odd", lambda x: lax.pad(x, 2.0, ((-1, 2, 0), (1, -2, 2))), f(4, 5))
case("pad_value", lambda x, v: lax.pad(x, v, ((1, 0, 1),)), f(4), f())
case("roll", lambda x: jnp.roll(x, 2, 1), f(3, 5))
case("flip", lambda x: jnp.flip(x, 0), f(3, 5))
case("iota", lambda x: x + jnp.arange(5) - lax.broadcasted_iota(jnp.int32, (3, 5), 0), f(3, 5))
case("tile", lambda x: jnp.tile(x, (2, 3)), f(2, 3))
case("repeat", lambda x: jnp.repeat(x, 3, axis=1), f(2, 3, 4))
case("tril", lambda x: jnp.tril(x) + jnp.where(jnp.eye(4) > 0, x, 0), f(4, 4))
case("constant", lambda x: x @ jnp.array(np.arange(12.0).reshape(4, 3) / 7, jnp.float32), f(2, 4))
grad("slice_gradient", lambda x: x[1:3, ::2], f(4, 6))
grad("pad_gradient", lambda x: jnp.pad(x, ((1, 2), (0, 3))), f(3, 4))

# ---- indices ----

case("embedding", lambda w, i: w[i], f(11, 4), ints(0, 11, 2, 5))
case("embedding_take", lambda w, i: jnp.take(w, i, axis=0), f(11, 4), ints(-3, 14, 2, 5))
case("embedding_clip", lambda w, i: jnp.take(w, i, axis=0, mode="clip"), f(11, 4), ints(-3, 14, 7))
grad("embedding_gradient", lambda w, i: w[i], f(11, 4), ints(0, 11, 2, 5))
grad("take_gradient", lambda w, i: jnp.take(w, i, axis=0, mode="clip"), f(6, 4), ints(-3, 9, 7))
case("take_column", lambda x, i: jnp.take(x, i, axis=1), f(3, 6, 2), ints(0, 6, 4))
along = lambda x, i: jnp.take_along_axis(x, i, axis=-1)  # noqa: E731
case("take_along", along, f(3, 6), ints(0, 6, 3, 2))
grad("take_along_gradient", along, f(3, 6), ints(0, 6, 3, 2))
along0 = lambda x, i: jnp.take_along_axis(x, i, axis=0)  # noqa: E731
case("take_along_first", along0, f(5, 3), ints(0, 5, 2, 3))
case("pick_pairs", lambda x, i: x[jnp.arange(4), i], f(4, 6), ints(0, 6, 4))
grad("pick_pairs_gradient", lambda x, i: x[jnp.arange(4), i], f(4, 6), ints(0, 6, 4))
case("pick_window", lambda x, i: lax.dynamic_slice(x, (i, 1), (2, 3)), f(5, 6), ints(0, 9))
case(
    "set_window",
    lambda x, y, i: lax.dynamic_update_slice(x, y, (i, 1)),
    f(5, 6),
    f(2, 3),
    ints(0, 9),
)
case("set_rows", lambda x, y: x.at[jnp.array([3, 0, 9])].set(y), f(5, 4), f(3, 4))
case("set_data_rows", lambda x, y, i: x.at[i].set(y), f(5, 4), f(2, 4), np.array([3, 8], np.int32))
case("add_rows", lambda x, y, i: x.at[i].add(y), f(5, 4), f(6, 4), ints(-2, 8, 6))
case("add_columns", lambda x, y, i: x.at[:, i].add(y), f(5, 4), f(5, 3), ints(0, 4, 3))
case("set_slice", lambda x, y: x.at[1:3, 2:].set(y), f(5, 4), f(2, 2))
case("one_hot", lambda i: jax.nn.one_hot(i, 6), ints(-1, 7, 3, 4))
case("vmapped_index", jax.vmap(lambda x, i: x[i]), f(4, 6), ints(0, 6, 4))
case(
    "vmapped_slice", jax.vmap(lambda x, i: lax.dynamic_slice(x, (i,), (3,))), f(4, 6), ints(0, 6, 4)
)
grad(
    "vmapped_slice_gradient",
    jax.vmap(lambda x, i: lax.dynamic_slice(x, (i,), (3,))),
    *(f(4, 6), ints(0, 6, 4)),
)

# ---- control flow ----

case(
    "scan", lambda x, w: lax.scan(lambda h, a: (jnp.tanh(h @ w + a), h), x[0], x), f(5, 3), f(3, 3)
)
grad(
    "scan_gradient",
    lambda x, w: lax.scan(lambda h, a: (jnp.tanh(h @ w + a), h.sum()), x[0], x)[0],
    *(f(5, 3), f(3, 3)),
)
case("fori", lambda x: lax.fori_loop(0, 4, lambda k, v: v * 0.5 + k, x), f(3))
case("checkpoint", jax.checkpoint(lambda x, w: jnp.sin(x @ w)), f(3, 4), f(4, 4))
case("switch", lambda x: lax.switch(1, [jnp.sin, jnp.cos, jnp.tanh], x), f(4))

# ---- models in small ----


def attention(x, wq, wk, wv, wo):
    q, k, v = (jnp.einsum("bse,ehd->bhsd", x, w) for w in (wq, wk, wv))
    s = jnp.einsum("bhqd,bhkd->bhqk", q, k) / np.sqrt(q.shape[-1])
    s = jnp.where(jnp.tril(jnp.ones(s.shape[-2:], bool)), s, -1e9)
    return jnp.einsum("bhqk,bhkd,hde->bqe", jax.nn.softmax(s), v, wo)


weights = (f(2, 4, 6), f(6, 2, 3), f(6, 2, 3), f(6, 2, 3), f(2, 3, 6))
case("attention", attention, *weights)
grad("attention_gradient", attention, *weights, wrt=(0, 1, 4))


def rotary(x):
    n, d = x.shape[-2], x.shape[-1] // 2
    angle = jnp.arange(n)[:, None] / 10000 ** (jnp.arange(d) / d)
    a, b = x[..., :d], x[..., d:]
    return jnp.concatenate(
        [a * jnp.cos(angle) - b * jnp.sin(angle), b * jnp.cos(angle) + a * jnp.sin(angle)], -1
    )


case("rotary", rotary, f(2, 5, 6))
grad("rotary_gradient", rotary, f(2, 5, 6))


def cross_entropy(x, y):
    return -jnp.take_along_axis(jax.nn.log_softmax(x), y[..., None], -1).mean()


case("cross_entropy", cross_entropy, f(4, 7), ints(0, 7, 4))
case("cross_entropy_gradient", jax.grad(cross_entropy), f(4, 7), ints(0, 7, 4))


def routed(x, router, up, down):
    p, chosen = lax.top_k(jax.nn.softmax(x @ router), 2)
    h = jnp.einsum("tef,efd->ted", jax.nn.silu(jnp.einsum("td,edf->tef", x, up)), down)
    picked = jnp.take_along_axis(h, chosen[..., None], 1)
    return (picked * (p / p.sum(-1, keepdims=True))[..., None]).sum(1)


case("routed", routed, f(5, 4), f(4, 3), f(3, 4, 6), f(3, 6, 4))
grad("routed_gradient", routed, f(5, 4), f(4, 3), f(3, 4, 6), f(3, 6, 4), wrt=(0, 1, 2))

# ---- forms that stand late, so that the values above stay as they were drawn ----

case(
    "dot_integers",
    lambda x, y: lax.dot(x.astype("int8"), y.astype("int8"), preferred_element_type="int32"),
    *(ints(-128, 128, 4, 6), ints(-128, 128, 6, 5)),
)
depthwise = lambda x, w: lax.conv_general_dilated(  # noqa: E731
    x, w, (2,), "SAME", dimension_numbers=("NWC", "WIO", "NWC"), feature_group_count=3
)
grad("depthwise_gradient", depthwise, f(4, 7, 3), f(3, 1, 6))
grad("max_pool_gradient", pool, f(2, 7, 6))
halves = lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (2, 2), (2, 2), "VALID")  # noqa: E731
case("max_pool_ties", jax.grad(sum_of(halves)), np.round(f(6, 8)))
case("sum_bfloat", lambda x: x.astype("bfloat16").sum(1).astype("float32"), np.round(f(3, 4)))
case("round_to_bits", lambda x: lax.reduce_precision(x, 8, 7), np.round(f(4, 5)))
case(
    "reduce_rows",
    lambda x, y, i: (x.at[i].max(y), x.at[i].min(y), x.at[i].mul(y)),
    *(f(5, 4), f(6, 4), ints(-2, 8, 6)),
)
case("segment_max", lambda x, i: jax.ops.segment_max(x, i, 3), f(6, 4), ints(0, 3, 6))
case("cond_data", lambda x, w: lax.cond(x[0] > 0, jnp.sin, lambda v: v * w, x), f(4), f(4))
case(
    "switch_data",
    lambda x, i: lax.switch(i[2], [lambda v: (v, v.sum()), lambda v: (-v, v.max())], x),
    *(f(4), ints(-2, 4, 3)),
)
