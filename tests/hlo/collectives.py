"""JAX functions of eight ranks, one for each collective and each way to group ranks. Needs JAX with
eight devices: XLA_FLAGS=--xla_force_host_platform_device_count=8. `CASES` is name -> (function,
arguments, shardings of the arguments, of the result)."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

draw = np.random.default_rng(11)
MESH = Mesh(np.array(jax.devices()[:8]).reshape(2, 4), ("a", "b"))
TURNED = Mesh(np.array(jax.devices()[:8]).reshape(4, 2).T, ("a", "b"))
CASES = {}


def f(*shape):
    return draw.standard_normal(shape).astype(np.float32)


def mapped(name, function, specs, out, *args, mesh=MESH):
    """A module in which each rank applies `function` to its own part of the arguments."""
    whole = jax.shard_map(function, mesh=mesh, in_specs=specs, out_specs=out, check_vma=False)
    CASES[name] = (whole, args, specs, out, mesh)


def placed(name, function, specs, out, *args, mesh=MESH):
    """XLA's partitioner finds what ranks do."""
    CASES[name] = (function, args, specs, out, mesh)


AB, A, B, NONE = P("a", "b"), P("a"), P(None, "b"), P()
mapped("psum_all", lambda x: lax.psum(x, ("a", "b")), (AB,), NONE, f(4, 8))
mapped("psum_rows", lambda x: lax.psum(x, "a"), (AB,), B, f(4, 8))
mapped("psum_columns", lambda x: lax.psum(x, "b"), (AB,), A, f(4, 8))
mapped("psum_turned", lambda x: lax.psum(x, "a"), (AB,), B, f(4, 8), mesh=TURNED)
mapped("psum_two", lambda x, y: lax.psum((x, y * 2), "b"), (AB, AB), (A, A), f(4, 8), f(2, 4))
mapped("pmax", lambda x: lax.pmax(x, "b") - lax.pmin(x, "a"), (AB,), AB, f(4, 8))
mapped("gather", lambda x: lax.all_gather(x, "b", axis=1, tiled=True), (AB,), A, f(4, 8))
mapped("gather_new", lambda x: lax.all_gather(x, "a"), (AB,), B, f(4, 8))
mapped(
    "gather_turned",
    lambda x: lax.all_gather(x, "a", axis=0, tiled=True),
    (AB,),
    B,
    f(4, 8),
    mesh=TURNED,
)
mapped(
    "scatter",
    lambda x: lax.psum_scatter(x, "b", scatter_dimension=0, tiled=True),
    *((B,), B, f(8, 8)),
)
mapped("all_to_all", lambda x: lax.all_to_all(x, "b", 0, 1, tiled=True), (P("b"),), B, f(16, 8))
mapped("all_to_all_new", lambda x: lax.all_to_all(x, "b", 0, 0), (P(None, "b"),), B, f(4, 8))
ring = [(k, (k + 1) % 4) for k in range(4)]
mapped("permute_ring", lambda x: lax.ppermute(x, "b", ring), (AB,), AB, f(4, 8))
mapped("permute_open", lambda x: lax.ppermute(x, "b", ring[:3]), (AB,), AB, f(4, 8))
mapped("place", lambda x: x * lax.axis_index("b") + lax.axis_index("a"), (AB,), AB, f(4, 8))
mapped(
    "place_slice",
    lambda x: lax.dynamic_slice(x, (lax.axis_index("b") * 2, 0), (2, 8)),
    *((NONE,), P("b"), f(8, 8)),
)
mapped(
    "ring_loop",
    lambda x: lax.fori_loop(0, 4, lambda k, y: lax.ppermute(y, "b", ring) + k * x, x),
    *((AB,), AB, f(4, 8)),
)
placed("matmul_both", lambda x, w: x @ w, (A, B), AB, f(8, 6), f(6, 8))
placed("matmul_inner", lambda x, w: x @ w, (AB, P("b")), A, f(8, 8), f(8, 6))
placed("softmax_cut", lambda x: jax.nn.softmax(x), (AB,), AB, f(4, 8))
placed("softmax_turned", lambda x: jax.nn.softmax(x), (AB,), AB, f(4, 8), mesh=TURNED)
placed("argmax_cut", lambda x: x.argmax(1).astype(jnp.float32), (AB,), A, f(4, 8))
placed("cumsum_cut", lambda x: jnp.cumsum(x, 1), (AB,), AB, f(4, 8))
placed("roll_cut", lambda x: jnp.roll(x, 3, 1), (AB,), AB, f(4, 8))
placed("flip_cut", lambda x: x[:, ::-1] + x, (AB,), AB, f(4, 8))
placed("transpose_cut", lambda x: x.T + 1, (AB,), AB, f(8, 8))
placed("reshape_cut", lambda x: x.reshape(4, 4, 2), (AB,), A, f(4, 8))
placed("concatenate_cut", lambda x, y: jnp.concatenate([x, y], 1), (AB, AB), AB, f(4, 8), f(4, 8))
placed("slice_cut", lambda x: x[:, 1:5] * 2, (AB,), A, f(4, 8))
placed("pad_cut", lambda x: jnp.pad(x, ((0, 0), (3, 5))), (AB,), AB, f(4, 8))
table = (P("a"), NONE)
placed("lookup_cut", lambda w, x: w[(x > 0).astype(int)[:, 0] + 3], table, NONE, f(8, 3), f(5, 2))


def shardings(case):
    _, _, specs, out, mesh = case
    named = lambda s: NamedSharding(mesh, s)  # noqa: E731
    return tuple(map(named, specs)), jax.tree.map(named, out, is_leaf=lambda s: isinstance(s, P))
