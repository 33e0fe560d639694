"""The graph that a module is lowered to: calls of ATen operators on values.

A value knows its shape and element type, which PyTorch's own meta kernels give, so that a wrong
lowering shows as another shape than the HLO declares. Where all operands are known numbers, so is
a small integer result: starts of slices and trip counts of loops are numbers then. Equal calls are
one value, and only what the outputs need is written."""

import math

import torch

from ..errors import CaptureError
from ..files import dtype_name, value

MAX_KNOWN = 1 << 16  # elements of a value that is kept as numbers
MAX_VALUES = 1 << 21

DTYPES = {
    "pred": torch.bool,
    "s8": torch.int8,
    "s16": torch.int16,
    "s32": torch.int32,
    "s64": torch.int64,
    "u8": torch.uint8,
    "u16": torch.int64,  # PyTorch lacks most operators of these: they are held in int64, wrapped
    "u32": torch.int64,
    "f16": torch.float16,
    "bf16": torch.bfloat16,
    "f32": torch.float32,
    "f64": torch.float64,
}
WRAPPED = {"u16": (1 << 16) - 1, "u32": (1 << 32) - 1}


class Unsupported(Exception):
    """The reason alone; whoever reads the instruction says where."""


def dtype_of(name):
    if name not in DTYPES:
        raise Unsupported("element type %s has no place in a capture" % name)
    return DTYPES[name]


class Value:
    """One tensor. `known`: its elements; `number`: the one that all of them are; `placed`: it
    depends on which rank computes it; `node`: of a leaf, what graph.json says of it."""

    __slots__ = ("op", "args", "kwargs", "meta", "known", "number", "placed", "node", "here", "id")

    def __init__(self, op, args, kwargs, meta):
        self.op, self.args, self.kwargs, self.meta = op, args, kwargs, meta
        self.known = self.number = self.node = self.here = self.id = None
        self.placed = False

    @property
    def shape(self):
        return tuple(self.meta.shape)

    @property
    def dtype(self):
        return self.meta.dtype


def parts(x):
    """The values among arguments, lists of them included."""
    for a in x:
        if isinstance(a, Value):
            yield a
        elif isinstance(a, (list, tuple)):
            yield from parts(a)


def mapped(f, x):
    if isinstance(x, Value):
        return f(x)
    return [mapped(f, a) for a in x] if isinstance(x, (list, tuple)) else x


def key_of(x):
    if isinstance(x, Value):
        return ("value", id(x))
    if isinstance(x, (list, tuple)):
        return tuple(key_of(a) for a in x)
    return (type(x).__name__, repr(x))


def overload(op):
    namespace, _, name = op.partition("::")
    name, _, kind = name.partition(".")
    return getattr(getattr(getattr(torch.ops, namespace), name), kind or "default")


class Builder:
    def __init__(self):
        self.memo, self.leaves, self.here, self.step = {}, {}, None, 0
        self.kept = []  # every value: their addresses are keys of `memo`

    def add(self, key, v):
        if len(self.kept) >= MAX_VALUES:
            raise Unsupported("more than %d operators (unrolled loops?)" % MAX_VALUES)
        v.here = self.here and (self.name(), *self.here[1:])
        self.memo[key] = v
        self.kept.append(v)
        return v

    def place(self, hint, scope, source):
        """Where the operators that follow come from. They are numbered, those that are there
        already too: ranks give one step one name, whatever they share."""
        self.here, self.step = (hint, scope, source), 0

    def name(self):
        return self.here[0] if self.step < 2 else "%s_%d" % (self.here[0], self.step - 1)

    def call(self, op, *args, **kwargs):
        """One operator with one output."""
        self.step += 1
        key = (op, key_of(args), key_of(sorted(kwargs.items())))
        if key in self.memo:
            return self.memo[key]
        used = list(parts(args))
        device = {} if used else {"device": "meta"}
        v = Value(op, args, kwargs, self.run(op, args, dict(kwargs, **device), lambda x: x.meta))
        v.placed = any(x.placed for x in used)
        if all(x.known is not None for x in used) and v.meta.numel() <= MAX_KNOWN:
            self.know(v, self.run(op, args, kwargs, lambda x: x.known))
        return self.add(key, v)

    def run(self, op, args, kwargs, of):
        try:
            return overload(op)(*mapped(of, args), **kwargs)
        except (RuntimeError, IndexError, TypeError, NotImplementedError) as e:
            reason = str(e).strip().split("\n")[0][:200]
            raise Unsupported("PyTorch refuses %s: %s" % (op, reason)) from None

    def know(self, v, tensor):
        v.known = tensor
        if tensor.numel() > 0:
            first = tensor.reshape(-1)[0]
            if bool((tensor == first).all()):
                v.number = first.item()

    def several(self, op, metas, *args, **kwargs):
        """One operator with several outputs, as values; `metas` where PyTorch lacks it."""
        self.step += 1
        key = (op, key_of(args), key_of(sorted(kwargs.items())))
        if key not in self.memo:
            metas = metas or list(self.run(op, args, kwargs, lambda x: x.meta))
            v = Value(op, args, kwargs, metas)
            v.placed = any(x.placed for x in parts(args))
            self.add(key, v)
        whole = self.memo[key]
        return [self.item(whole, k) for k in range(len(whole.meta))]

    def item(self, whole, k):
        key = ("getitem", id(whole), k)
        if key in self.memo:
            return self.memo[key]
        v = Value("getitem", (whole, k), {}, whole.meta[k])
        v.placed = whole.placed
        return self.add(key, v)

    def collective(self, op, meta, *args):
        key = (op, key_of(args))
        if key in self.memo:
            return self.memo[key]
        return self.add(key, Value(op, args, {}, meta))

    def leaf(self, kind, name, tensor, domain=None):
        if name in self.leaves:
            raise CaptureError("two leaves are named %s" % name)
        v = Value(kind, (), {}, torch.empty(tensor.shape, dtype=tensor.dtype, device="meta"))
        v.node = {"name": name}
        if domain:
            v.node["domain"] = domain
        self.leaves[name] = tensor
        return self.add(("leaf", name), v)

    def full(self, shape, number, dtype):
        kind = bool if dtype == torch.bool else float if dtype.is_floating_point else int
        v = self.call("aten::full", list(shape), kind(number), dtype=dtype)
        v.number = kind(number)
        return v

    def constant(self, tensor):
        """Numbers of the module: one for all elements, or a leaf of the graph."""
        flat = tensor.reshape(-1)
        if flat.numel() and (bool((flat == flat[0]).all()) or bool(flat.isnan().all())):
            v = self.full(tensor.shape, flat[0].item(), tensor.dtype)
            if tensor.numel() <= MAX_KNOWN and v.known is None:
                v.known = tensor
            return v
        key = ("constant", dtype_name(tensor.dtype), tuple(tensor.shape), str(flat.tolist()))
        if key in self.memo:
            return self.memo[key]
        v = self.leaf(
            "constant", "constant_%d" % sum(k[0] == "constant" for k in self.memo), tensor
        )
        v.known = tensor
        self.memo[key] = v
        return v

    def rank(self, rank):
        """The number of the rank that computes, which is a constant to it."""
        key = ("rank", rank)
        if key not in self.memo:
            v = Value("aten::full", ([], rank), {"dtype": torch.int64}, None)
            v.meta = torch.empty((), dtype=torch.int64, device="meta")
            v.known, v.number, v.placed = torch.tensor(rank), rank, True
            self.add(key, v)
        return self.memo[key]


# ---- writing ----


def outputs_of(v):
    metas = v.meta if isinstance(v.meta, list) else [v.meta]
    return [{"shape": list(m.shape), "dtype": dtype_name(m.dtype)} for m in metas]


def folded(v):
    """A value's node in the graph; of a value that depends on the rank alone, its number."""
    if v.placed and v.number is not None and v.known is not None and v.op != "aten::full":
        kind = bool if v.dtype == torch.bool else float if v.dtype.is_floating_point else int
        f = Value("aten::full", (list(v.shape), kind(v.number)), {"dtype": v.dtype}, v.meta)
        f.here = v.here
        return f
    return v


class Writer:
    """Nodes in the order in which each is computed from earlier ones."""

    def __init__(self):
        self.nodes, self.ids, self.done, self.kept = [], {}, {}, []

    def new_id(self, hint):
        n = self.ids.get(hint, 0)
        self.ids[hint] = n + 1
        return self.new_id("%s_%d" % (hint, n)) if n else hint

    def resolve(self, v):
        if id(v) not in self.done:
            self.done[id(v)] = folded(v)
            self.kept.append(v)
        return self.done[id(v)]

    def needed(self, roots):
        """Depth first, without recursion: an unrolled loop is a long chain."""
        stack = [(self.resolve(v), False) for v in reversed(roots)]
        while stack:
            v, ready = stack.pop()
            if v.id is not None:
                continue
            if ready:
                self.emit(v)
                continue
            stack.append((v, True))
            stack.extend((self.resolve(x), False) for x in reversed(list(parts(v.args))))

    def emit(self, v):
        hint, scope, source = v.here or ("leaf", "", "")
        v.id = self.new_id(v.node["name"] if v.node else hint)
        node = {"id": v.id, "op": v.op}
        if v.node is not None:
            node.update(v.node)
        else:
            args = [mapped(self.resolve, a) for a in v.args]
            node["args"] = [value(a) for a in args]
            node["kwargs"] = {k: value(a) for k, a in v.kwargs.items()}
            node["op"] = v.op[: -len(".default")] if v.op.endswith(".default") else v.op
        node["outputs"] = outputs_of(v)
        if scope:
            node["scope"] = scope
        if source:
            node["source"] = source
        self.nodes.append(node)


def product(sizes):
    return math.prod(sizes)
