"""Models in small, their partitionings, and the HLO around XLA's partitioner. Needs JAX.

    tests/hlo/models.py -o DIR [--devices 2 4 8] [--layers 1] [-k gpt-tensor]

writes DIR/NAME/whole.hlo and ranks.hlo, where NAME is MODEL[-backward]-PARTITIONING-DEVICES."""

import argparse
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

BATCH, LENGTH, WIDTH, HEADS, GROUPS, INNER, VOCABULARY, EXPERTS = 8, 16, 16, 8, 8, 32, 32, 8
SIZE = 4  # of a head


def attention(q, k, v, mask):
    import jax
    import jax.numpy as jnp

    s = jnp.einsum("bqhd,bkhd->bhqk", q, k) * SIZE**-0.5
    p = jax.nn.softmax(jnp.where(mask, s, -jnp.inf))
    return jnp.einsum("bhqk,bkhd->bqhd", p, v)


def causal(n):
    import jax.numpy as jnp

    return jnp.tril(jnp.ones((n, n), bool))


def layer_norm(x, w, b):
    from jax import lax

    m = x.mean(-1, keepdims=True)
    return (x - m) * lax.rsqrt(((x - m) ** 2).mean(-1, keepdims=True) + 1e-5) * w + b


def rms_norm(x, w):
    from jax import lax

    return x * lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-6) * w


def rotary(x):
    import jax.numpy as jnp
    import numpy as np

    n, d = x.shape[1], x.shape[-1] // 2
    angle = jnp.arange(n)[:, None, None] / np.float32(10000) ** (jnp.arange(d) / d)
    a, b, c, s = x[..., :d], x[..., d:], jnp.cos(angle), jnp.sin(angle)
    return jnp.concatenate([a * c - b * s, b * c + a * s], -1)


def gpt_block(p, x):
    import jax
    import jax.numpy as jnp

    h = layer_norm(x, p["ln1"], p["ln1b"])
    q, k, v = (jnp.einsum("bse,ehd->bshd", h, p[n]) + p[n + "b"] for n in ("q", "k", "v"))
    a = attention(q, k, v, causal(x.shape[1]))
    x = x + jnp.einsum("bshd,hde->bse", a, p["o"]) + p["ob"]
    h = layer_norm(x, p["ln2"], p["ln2b"])
    return x + jax.nn.gelu(h @ p["up"] + p["upb"]) @ p["down"] + p["downb"]


def llama_block(p, x):
    import jax
    import jax.numpy as jnp

    h = rms_norm(x, p["ln1"])
    q, k, v = (jnp.einsum("bse,ehd->bshd", h, p[n]) for n in ("q", "k", "v"))
    a = attention(rotary(q), rotary(k), v, causal(x.shape[1]))
    x = x + jnp.einsum("bshd,hde->bse", a, p["o"])
    h = rms_norm(x, p["ln2"])
    return x + (jax.nn.silu(h @ p["gate"]) * (h @ p["up"])) @ p["down"]


def expert_block(p, x):
    """Every expert on every token, weighted by the router's two best."""
    import jax
    import jax.numpy as jnp
    from jax import lax

    h = rms_norm(x, p["ln1"])
    score = jax.nn.softmax(h @ p["router"])
    least = lax.top_k(score, 2)[0][..., 1:]
    weight = jnp.where(score >= least, score, 0.0)
    weight = weight / weight.sum(-1, keepdims=True)
    inner = jax.nn.silu(jnp.einsum("bse,xei->bxsi", h, p["gate"]))
    inner = inner * jnp.einsum("bse,xei->bxsi", h, p["up"])
    return x + jnp.einsum("bxsi,xie,bsx->bse", inner, p["down"], weight)


def looked_up(p, ids):
    import jax

    return jax.nn.silu(p["table"][ids] @ p["down"])


# name: (shape, which dimension tensor parallelism cuts; None: replicated)
GPT = {
    "ln1": ((WIDTH,), None),
    "ln1b": ((WIDTH,), None),
    "q": ((WIDTH, HEADS, SIZE), 1),
    "qb": ((HEADS, SIZE), 0),
    "k": ((WIDTH, HEADS, SIZE), 1),
    "kb": ((HEADS, SIZE), 0),
    "v": ((WIDTH, HEADS, SIZE), 1),
    "vb": ((HEADS, SIZE), 0),
    "o": ((HEADS, SIZE, WIDTH), 0),
    "ob": ((WIDTH,), None),
    "ln2": ((WIDTH,), None),
    "ln2b": ((WIDTH,), None),
    "up": ((WIDTH, INNER), 1),
    "upb": ((INNER,), 0),
    "down": ((INNER, WIDTH), 0),
    "downb": ((WIDTH,), None),
}
LLAMA = {
    "ln1": ((WIDTH,), None),
    "q": ((WIDTH, HEADS, SIZE), 1),
    "k": ((WIDTH, GROUPS, SIZE), 1),
    "v": ((WIDTH, GROUPS, SIZE), 1),
    "o": ((HEADS, SIZE, WIDTH), 0),
    "ln2": ((WIDTH,), None),
    "gate": ((WIDTH, INNER), 1),
    "up": ((WIDTH, INNER), 1),
    "down": ((INNER, WIDTH), 0),
}
MIXTURE = {
    "ln1": ((WIDTH,), None),
    "router": ((WIDTH, EXPERTS), None),
    "gate": ((EXPERTS, WIDTH, INNER), 0),
    "up": ((EXPERTS, WIDTH, INNER), 0),
    "down": ((EXPERTS, INNER, WIDTH), 0),
}
LOOKUP = {"table": ((VOCABULARY, WIDTH), 0), "down": ((WIDTH, WIDTH), None)}
MODELS = {
    "gpt": (gpt_block, GPT, ("data", "tensor", "both", "sequence")),
    "llama": (llama_block, LLAMA, ("data", "tensor", "both", "sequence")),
    "mixture": (expert_block, MIXTURE, ("expert", "data")),
    "lookup": (looked_up, LOOKUP, ("data", "tensor", "both")),
}


def stacked(block):
    def model(params, x):
        for p in params:
            x = block(p, x)
        return x

    return model


def backward(model):
    """Gradients of a loss that weighs each element, of all parameters and of the input."""
    import jax
    import jax.numpy as jnp

    def loss(params, x, y):
        return ((model(params, x) - y) ** 2).mean() + 0 * jnp.sum(y)

    return jax.value_and_grad(loss)


def shardings(table, layers, how, n):
    """(mesh axes, spec of a parameter, spec of the activations)"""
    import jax
    import numpy as np
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    sizes = {"data": (n, 1), "sequence": (n, 1), "both": (2, n // 2)}.get(how, (1, n))
    mesh = Mesh(np.array(jax.devices()[:n]).reshape(sizes), ("data", "model"))

    def named(*spec):
        return NamedSharding(mesh, PartitionSpec(*spec))

    def parameter(cut):
        cuts = how in ("tensor", "both", "expert") and cut is not None
        return named(*([None] * cut + ["model"])) if cuts else named()

    params = [{k: parameter(cut) for k, (_, cut) in table.items()} for _ in range(layers)]
    x = {"data": named("data"), "both": named("data"), "sequence": named(None, "data")}
    return params, x.get(how, named()), named()


def run_one(name, layers, out):
    """In a process of its own, whose flags have the dump."""
    import jax
    import jax.numpy as jnp

    m = re.fullmatch(r"(\w+?)(-backward)?-(\w+)-(\d+)", name)
    block, table, _ = MODELS[m[1]]
    params, x, scalar = shardings(table, layers, m[3], int(m[4]))
    shapes = [
        {k: jax.ShapeDtypeStruct(s, jnp.float32) for k, (s, _) in table.items()}
        for _ in range(layers)
    ]
    hidden = jax.ShapeDtypeStruct((BATCH, LENGTH, WIDTH), jnp.float32)
    ids = jax.ShapeDtypeStruct((BATCH, LENGTH), jnp.int32)
    given = ids if table is LOOKUP else hidden
    model = stacked(block)
    if m[2]:
        f = jax.jit(backward(model), in_shardings=(params, x, x), out_shardings=(scalar, params))
        lowered = f.lower(shapes, given, hidden)
    else:
        lowered = jax.jit(model, in_shardings=(params, x), out_shardings=x).lower(shapes, given)
    lowered.compile()


def texts(name, layers, out):
    """The modules before and after the partitioner, into out/whole.hlo and out/ranks.hlo."""
    with tempfile.TemporaryDirectory() as dump:
        flags = "--xla_force_host_platform_device_count=%s --xla_dump_to=%s" % (
            name.rsplit("-", 1)[1],
            dump,
        )
        flags += " --xla_dump_hlo_pass_re=spmd.* --xla_dump_large_constants"
        words = [sys.executable, __file__, "--one", name, "--layers", str(layers), "-o", out]
        subprocess.run(words, check=True, env=dict(os.environ, XLA_FLAGS=flags))
        os.makedirs(out, exist_ok=True)
        for part, to in (
            ("*before_spmd-part*.txt", "whole.hlo"),
            ("*after_spmd-part*.txt", "ranks.hlo"),
        ):
            found = max(glob.glob(os.path.join(dump, part)), key=os.path.getsize)
            shutil.copy(found, os.path.join(out, to))


def names(devices):
    return [
        "%s%s-%s-%d" % (model, way, how, n)
        for n in devices
        for model, (_, _, hows) in MODELS.items()
        for how in hows
        for way in ("", "-backward")
        if not (how == "both" and n < 4)
    ]


def main():
    a = argparse.ArgumentParser()
    a.add_argument("-o", "--out", required=True)
    a.add_argument("-k", default="", help="pairs whose name holds this")
    a.add_argument("--devices", type=int, nargs="+", default=[2, 4, 8])
    a.add_argument("--layers", type=int, default=1)
    a.add_argument("--one", help=argparse.SUPPRESS)
    options = a.parse_args()
    if options.one:
        return run_one(options.one, options.layers, options.out)
    for name in names(options.devices):
        if options.k in name:
            texts(name, options.layers, os.path.join(options.out, name))
    return 0


if __name__ == "__main__":
    sys.exit(main())
