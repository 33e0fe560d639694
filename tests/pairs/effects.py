#!/usr/bin/env python3
"""What a node does beside its result, and what it reads beside its operands' numbers.

    tests/pairs/effects.py [--isomer build/isomer] [--every N]

PyTorch says which of its operators write to an argument or draw random numbers: a capture that
holds one is refused (status 2), whatever its arguments; every N-th of them is tried. Statistics
that training writes are read by something else or not. What reads memory as it lies is given what
libtorch leaves row by row, and what it does not: there the capture is refused, for it does not tell
the order. The last line is `N passed, N failed`.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile

import dsl
import torch

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
REFUSED = 2


def ref(x):
    return {"ref": x}


def capture(folder, nodes, outputs, inputs):
    """Nodes as (id, op, args, kwargs, shapes); inputs as name: shape."""
    os.makedirs(folder)
    data = {n: (dsl.values(n, *s), dsl.f32) for n, s in inputs.items()}
    graph = {
        "format": "isomer-capture",
        "version": 1,
        "model": "m",
        "framework": "none",
        "framework_version": "0",
        "torch_version": torch.__version__,
        "nodes": [],
        "outputs": [{"name": "y%d" % i, "ref": r} for i, r in enumerate(outputs)],
        "metadata": {},
    }
    for n, shape in inputs.items():
        out = [{"shape": list(shape), "dtype": "float32"}]
        graph["nodes"].append({"id": n, "op": "input", "name": n, "outputs": out})
    for name, op, args, kwargs, shapes in nodes:
        out = [{"shape": list(s), "dtype": "float32"} for s in shapes]
        graph["nodes"].append(
            {"id": name, "op": op, "args": args, "kwargs": kwargs, "outputs": out}
        )
    with open(os.path.join(folder, "graph.json"), "w", encoding="utf-8") as f:
        json.dump(graph, f)
    dsl.write_safetensors(os.path.join(folder, "inputs.safetensors"), data)
    dsl.write_safetensors(os.path.join(folder, "weights.safetensors"), {})


def status(isomer, *sides):
    """Of a comparison, and its last line."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [os.path.join(folder, side) for side in ("left", "right")]
        for path, side in zip(paths, sides):
            capture(path, *side)
        p = subprocess.run([isomer, "compare", "-q", *paths], capture_output=True, text=True)
    said = (p.stderr or p.stdout).strip().splitlines()
    return p.returncode, said[-1] if said else ""


# ---- operators that are no functions ----


def argument(a):
    """Some value of the argument's type: what trains does, and what is a probability is none."""
    kind = str(a.type)
    if a.name in ("train", "training", "use_input_stats"):
        return True
    for word, value in (
        ("List[Tensor]", [ref("x"), ref("x")]),
        ("Tensor", ref("x")),
        ("List[", [1]),
        ("bool", False),
        ("float", 0.5),
        ("number", 0.5),
        ("int", 1),
        ("str", "mean"),
    ):
        if word in kind:
            return value
    return None


def call(schema):
    args, kwargs = [], {}
    for a in schema.arguments:
        if a.kwarg_only:
            if not a.has_default_value():
                kwargs[a.name] = argument(a)
        else:
            args.append(argument(a))
    return args, kwargs


def is_seeded(name, overload):
    packet = getattr(torch.ops.aten, name, None)
    op = getattr(packet, overload or "default", None)
    return op is not None and torch.Tag.nondeterministic_seeded in op.tags


def no_functions():
    """aten operators with an effect that return tensors."""
    for s in sorted(torch._C._jit_get_all_schemas(), key=str):
        name = s.name[len("aten::") :]
        tensors = s.returns and all(str(r.type) == "Tensor" for r in s.returns)
        if not s.name.startswith("aten::") or not tensors or "backward" in name:
            continue
        writes = any(a.alias_info is not None and a.alias_info.is_write for a in s.arguments)
        # Attention draws where a probability says so, which is by default 0.
        drops = any(a.name == "dropout_p" for a in s.arguments)
        if writes or (is_seeded(name, s.overload_name) and not drops):
            yield s.name + ("." + s.overload_name if s.overload_name else ""), s


def refused_operators(isomer, every):
    for k, (name, s) in enumerate(no_functions()):
        if k % every:
            continue
        node = ("y", name, *call(s), [[2, 3]] * len(s.returns))
        side = ([node], ["y"], {"x": (2, 3)})
        if len(s.returns) > 1:
            item = ("z", "getitem", [ref("y"), 0], {}, [[2, 3]])
            side = ([node, item], ["z"], {"x": (2, 3)})
        got, said = status(isomer, side, side)
        why = "writes to" in said or "draws random" in said or "is not functionalized" in said
        yield name, got == REFUSED and why, "%d, %s" % (got, said)


# ---- statistics ----

NORMS = {
    "aten::batch_norm": (lambda m, v: [ref("x"), None, None, m, v, True, 0.5, 1e-5, False], 1),
    "aten::instance_norm": (lambda m, v: [ref("x"), None, None, m, v, True, 0.5, 1e-5, False], 1),
    "aten::native_batch_norm": (lambda m, v: [ref("x"), None, None, m, v, True, 0.5, 1e-5], 3),
    "aten::batch_norm_update_stats": (lambda m, v: [ref("x"), m, v, 0.5], 2),
}


def norm(op, m, v, training=True):
    make, n = NORMS[op]
    args = [False if a is True and not training else a for a in make(m, v)]
    shapes = [[2, 3, 4]] + [[3]] * (n - 1) if op != "aten::batch_norm_update_stats" else [[3], [3]]
    nodes = [("n", op, args, {}, shapes)]
    if n > 1:
        nodes.append(("o", "getitem", [ref("n"), 0], {}, [shapes[0]]))
    return nodes, nodes[-1][0]


def statistics(isomer):
    inputs = {"x": (2, 3, 4), "m": (3,), "v": (3,)}
    read = ("r", "aten::mul.Tensor", [ref("m"), 2.0], {}, [[3]])
    for op in NORMS:
        nodes, out = norm(op, ref("m"), ref("v"))
        alone, other = (nodes, [out], inputs), (nodes + [read], [out, "r"], inputs)
        kept = (nodes, [out, "m"], inputs)
        view = [("w", "aten::view", [ref("m"), [3]], {}, [[3]])]
        behind = (view + norm(op, ref("w"), ref("v"))[0], [out], inputs)
        for what, side, refuse in (
            ("and nothing else reads them", alone, False),
            ("read by another node", other, True),
            ("an output", kept, True),
            ("a view", behind, True),
        ):
            got, said = status(isomer, side, side)
            yield "%s: %s" % (op, what), (got == REFUSED) == refuse, "%d, %s" % (got, said)
        if "update" not in op:
            nodes, out = norm(op, ref("m"), ref("v"), training=False)
            side = (nodes + [read], [out, "r"], inputs)
            got, said = status(isomer, side, side)
            yield "%s: evaluated" % op, got == 0, "%d, %s" % (got, said)


# ---- memory ----

LAST = {"memory_format": "channels_last"}
ROWS = {"memory_format": "contiguous"}
X4, X2 = (2, 3, 4, 5), (4, 4)
# name: steps from x, each an operator, its arguments behind the tensor, and keywords
MADE = {
    "as it is": (X4, []),
    "twice": (X4, [("mul.Tensor", [2.0], {})]),
    "another format": (X4, [("contiguous", [], {"memory_format": LAST})]),
    "a copy in another format": (X4, [("clone", [], {"memory_format": LAST})]),
    "cast to another format": (X4, [("_to_copy", [], {"memory_format": LAST})]),
    "and back": (
        X4,
        [("contiguous", [], {"memory_format": LAST}), ("contiguous", [], {"memory_format": ROWS})],
    ),
    "pooled in it": (X4, [("clone", [], {"memory_format": LAST}), ("avg_pool2d", [[2, 2]], {})]),
    "pooled": (X4, [("avg_pool2d", [[2, 2]], {})]),
    "sine of it": (X4, [("clone", [], {"memory_format": LAST}), ("sin", [], {})]),
    "like it": (X4, [("clone", [], {"memory_format": LAST}), ("ones_like", [], {})]),
    "larger, in it": (
        X4,
        [("clone", [], {"memory_format": LAST}), ("upsample_nearest2d", [[8, 10]], {})],
    ),
    "transposed": (X2, [("t", [], {})]),
    "exp of transposed": (X2, [("t", [], {}), ("exp", [], {})]),
    "a row less": (X2, [("slice.Tensor", [0, 1, 4, 1], {})]),
    "turned": (X2, [("rot90", [], {})]),
    "inverse": (X2, [("linalg_inv", [], {})]),
    "spectrum": (X2, [("linalg_qr", [], {})]),
    "softmax": (X2, [("softmax.int", [-1], {})]),
    "viewed": (X2, [("view", [[2, 8]], {})]),
    "summed": (X4, [("sum.dim_IntList", [[1]], {})]),
}
READERS = {
    "as_strided": lambda n: [[n], [1], 0],
    "as_strided_copy": lambda n: [[n], [1], 0],
    "_reshape_alias": lambda n: [[n], [1]],
}


def value(v):
    formats = {"channels_last": torch.channels_last, "contiguous": torch.contiguous_format}
    return formats[v["memory_format"]] if isinstance(v, dict) else v


def run(op, x, args, kwargs):
    packet, _, overload = op.partition(".")
    out = getattr(getattr(torch.ops.aten, packet), overload or "default")(
        x, *args, **{k: value(v) for k, v in kwargs.items()}
    )
    return out[0] if isinstance(out, tuple) else out


def memory(isomer):
    for what, (shape, steps) in MADE.items():
        x = torch.randn(shape)
        nodes, last, in_place = [], "x", True
        for k, (op, args, kwargs) in enumerate(steps):
            several = op == "linalg_qr"
            y = run(op, x, args, kwargs)
            shapes = [list(y.shape)] * (2 if several else 1)
            nodes.append(("s%d" % k, "aten::" + op, [ref(last), *args], kwargs, shapes))
            if several:
                nodes.append(("g%d" % k, "getitem", [ref("s%d" % k), 0], {}, shapes[:1]))
            last, x = nodes[-1][0], y
            in_place = x.is_contiguous() and x.storage_offset() == 0
        n = min(x.numel(), 6)
        for reader, args in READERS.items():
            node = ("y", "aten::" + reader, [ref(last), *args(n)], {}, [[n]])
            side = (nodes + [node], ["y"], {"x": shape})
            got, said = status(isomer, side, side)
            # That it is not refused is asked where libtorch leaves it row by row and it is ours.
            right = got == 0 if in_place else got == REFUSED
            yield "%s of %s" % (reader, what), right, "%d, %s" % (got, said)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--isomer", default=os.path.join(ROOT, "build", "isomer"))
    parser.add_argument("--every", type=int, default=1)
    o = parser.parse_args()
    passed = failed = 0
    for part in (statistics(o.isomer), memory(o.isomer), refused_operators(o.isomer, o.every)):
        for what, right, said in part:
            passed += right
            failed += not right
            if not right:
                print("FAILED %s: %s" % (what, said))
    print("%d passed, %d failed" % (passed, failed))
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
