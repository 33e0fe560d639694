"""A capture that can be changed and run: what mutants are made of. Needs PyTorch; independent of
the program under test."""

import copy
import json
import os
import struct

import torch

DTYPES = {
    "F64": torch.float64,
    "F32": torch.float32,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "I64": torch.int64,
    "I32": torch.int32,
    "I16": torch.int16,
    "I8": torch.int8,
    "U8": torch.uint8,
    "BOOL": torch.bool,
}
NAMES = {v: k for k, v in DTYPES.items()}
LEAVES = "input", "parameter", "buffer", "constant"


def read_tensors(path):
    data = bytearray(open(path, "rb").read())
    n = struct.unpack("<Q", data[:8])[0]
    out = {}
    for k, v in json.loads(data[8 : 8 + n]).items():
        if k == "__metadata__":
            continue
        begin, end = v["data_offsets"]
        t = torch.empty(v["shape"], dtype=DTYPES[v["dtype"]])
        if end > begin:
            t = (
                torch.frombuffer(
                    data, dtype=DTYPES[v["dtype"]], count=t.numel(), offset=8 + n + begin
                )
                .reshape(v["shape"])
                .clone()
            )
        out[k] = t
    return out


def write_tensors(path, tensors):
    head, blobs, at = {}, [], 0
    for k, t in tensors.items():
        raw = t.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes() if t.numel() else b""
        head[k] = {
            "dtype": NAMES[t.dtype],
            "shape": list(t.shape),
            "data_offsets": [at, at + len(raw)],
        }
        blobs.append(raw)
        at += len(raw)
    text = json.dumps(head).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + b"".join(blobs))


def is_ref(x):
    return isinstance(x, dict) and "ref" in x


def is_number(x):
    return isinstance(x, (int, float)) and not isinstance(x, bool)


def refs(value):
    """Every reference in arguments, as objects that may be changed."""
    if is_ref(value):
        yield value
    elif isinstance(value, dict):
        for v in value.values():
            yield from refs(v)
    elif isinstance(value, list):
        for v in value:
            yield from refs(v)


def node_refs(node):
    yield from refs(node.get("args", []))
    yield from refs(node.get("kwargs", {}))


def base(node):
    """An operator's name without namespace and overload."""
    return node["op"].split("::")[-1].split(".")[0]


def overload(op):
    space, name = op.split("::")
    name, _, variant = name.partition(".")
    return getattr(getattr(getattr(torch.ops, space), name), variant or "default")


def argument(v, values):
    if isinstance(v, dict):
        if "ref" in v:
            return values[v["ref"]]
        if "dtype" in v:
            d = getattr(torch, v["dtype"])
            return torch.float64 if d.is_floating_point else d
        return (
            float(v["float"])
            if "float" in v
            else None
            if "layout" in v or "memory_format" in v
            else torch.device("cpu")
        )
    return [argument(x, values) for x in v] if isinstance(v, list) else v


def call(node, values):
    """A kernel outside PyTorch is called in its functional form (overload "isomer"), which takes by
    name what it has a place for."""
    op, (args, kwargs) = node["op"], (node["args"], node["kwargs"])
    if "attributes" in node or "functionalized" in node:
        op = node["op"].split(".")[0] + ".isomer"
        places = [a.name for a in overload(op)._schema.arguments]
        given = {
            **dict(zip(places, [a for a in args if is_ref(a)])),
            **kwargs,
            **node.get("attributes", {}),
        }
        args, kwargs = [], {k: v for k, v in given.items() if k in places}
    elif op in ("aten::view", "aten::_unsafe_view"):
        op = "aten::reshape"  # strides are not part of the function
    return overload(op)(
        *[argument(a, values) for a in args], **{k: argument(a, values) for k, a in kwargs.items()}
    )


class Graph:
    def __init__(self, folder):
        self.folder = folder
        self.doc = json.load(open(os.path.join(folder, "graph.json"), encoding="utf-8"))
        self.weights = read_tensors(os.path.join(folder, "weights.safetensors"))
        self.inputs = read_tensors(os.path.join(folder, "inputs.safetensors"))
        for n in self.doc["nodes"]:
            if n["op"] not in LEAVES:
                n.setdefault("args", [])
                n.setdefault("kwargs", {})
        self.index()

    def copy(self):
        g = copy.copy(self)
        g.doc = copy.deepcopy(self.doc)
        g.weights, g.inputs = dict(self.weights), dict(self.inputs)
        g.index()
        return g

    def index(self):
        self.by_id = {n["id"]: n for n in self.nodes}
        self.users, self.trained = {}, set()  # trained: ids of what depends on a parameter
        for n in self.nodes:
            for r in node_refs(n):
                self.users.setdefault(r["ref"], []).append(n)
            if n["op"] == "parameter" or any(r["ref"] in self.trained for r in node_refs(n)):
                self.trained.add(n["id"])

    @property
    def nodes(self):
        return self.doc["nodes"]

    def shape(self, ref):
        return self.by_id[ref]["outputs"][0]["shape"]

    def dtype(self, ref):
        return self.by_id[ref]["outputs"][0]["dtype"]

    def floating(self, ref):
        n = self.by_id[ref]
        return len(n["outputs"]) == 1 and n["outputs"][0]["dtype"].startswith(("float", "bfloat"))

    def new(self, like, suffix, op, args, dtype=None, shape=None):
        """A node that is not in the list yet. Where `shape` is not known, run() finds it."""
        name, k = like["id"] + suffix, 0
        while name in self.by_id:
            k += 1
            name = "%s%s_%d" % (like["id"], suffix, k)
        dtype = dtype or next((o["dtype"] for o in like["outputs"]), "float32")
        n = {
            "id": name,
            "op": op,
            "args": args,
            "kwargs": {},
            "outputs": [{"shape": shape or [], "dtype": dtype}],
        }
        n.update({k: like[k] for k in ("scope", "source") if k in like})
        self.by_id[name] = n
        return n

    def before(self, node, new):
        at = next(i for i, n in enumerate(self.nodes) if n is node)
        self.nodes[at:at] = new

    def after(self, node, new):
        at = next(i for i, n in enumerate(self.nodes) if n is node)
        self.nodes[at + 1 : at + 1] = new

    def replace(self, old, new, skip=()):
        """Every use of `old`, outputs among them, but those by the nodes in `skip`."""
        for n in self.nodes:
            if not any(n is k for k in skip):
                for r in node_refs(n):
                    if r["ref"] == old:
                        r["ref"] = new
        for o in self.doc["outputs"]:
            if o["ref"] == old:
                o["ref"] = new

    def drop_dead(self):
        live, kept = {o["ref"] for o in self.doc["outputs"]}, []
        for n in reversed(self.nodes):
            if n["id"] in live or n["op"] in LEAVES:
                kept.append(n)
                live.update(r["ref"] for r in node_refs(n))
        self.doc["nodes"] = kept[::-1]
        self.index()

    def run(self, keep_all=False):
        """Outputs by name in float64 (all values by id with keep_all); shapes and integer dtypes of
        the nodes are brought up to date."""
        values = {}
        last = {r["ref"]: i for i, n in enumerate(self.nodes) for r in node_refs(n)}
        wanted = {o["ref"] for o in self.doc["outputs"]}
        with torch.inference_mode():
            for i, n in enumerate(self.nodes):
                if n["op"] in LEAVES:
                    t = (self.inputs if n["op"] == "input" else self.weights)[n["name"]]
                    v = t.double() if t.dtype.is_floating_point else t
                elif n["op"] == "getitem":
                    v = values[n["args"][0]["ref"]][n["args"][1]]
                    n["outputs"][0]["shape"] = list(v.shape)
                else:
                    v = call(n, values)
                    outs = [v] if isinstance(v, torch.Tensor) else list(v)
                    while len(n["outputs"]) < len(outs):
                        n["outputs"].append(dict(n["outputs"][0]))
                    for o, t in zip(n["outputs"], outs):
                        o["shape"] = list(t.shape)
                        if not t.dtype.is_floating_point:
                            o["dtype"] = str(t.dtype)[6:]
                values[n["id"]] = v
                if not keep_all:
                    for r in {r["ref"] for r in node_refs(n)}:
                        if last[r] == i and r not in wanted:
                            del values[r]
        if keep_all:
            return values
        return {o["name"]: values[o["ref"]] for o in self.doc["outputs"]}

    def save(self, folder):
        os.makedirs(folder)
        used = {n["name"] for n in self.nodes if n["op"] in LEAVES}
        write_tensors(
            os.path.join(folder, "weights.safetensors"),
            {k: v for k, v in self.weights.items() if k in used},
        )
        write_tensors(os.path.join(folder, "inputs.safetensors"), self.inputs)
        with open(os.path.join(folder, "graph.json"), "w", encoding="utf-8") as f:
            json.dump(self.doc, f)


def moved(a, b):
    """The largest difference of two runs' outputs, relative to each output's largest element; inf
    where one is no number."""
    worst = 0.0
    for p, q in zip(a.values(), b.values()):
        p, q = p.double().flatten(), q.double().flatten()
        if p.numel() != q.numel() or not torch.equal(p.isfinite(), q.isfinite()):
            return float("inf")
        p, q = p[p.isfinite()], q[q.isfinite()]
        if p.numel():
            worst = max(worst, ((p - q).abs().max() / p.abs().max().clamp_min(1e-300)).item())
    return worst
