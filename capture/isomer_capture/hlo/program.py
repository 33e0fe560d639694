"""A module's entry as values: every instruction lowered once for each rank that runs it.

Ranks go through the program together, so that a collective has the tensors of all of them. Called
computations and fusions are read in place, loops as often as they run: their trip count has to be
known, as it is where a counter starts and steps by constants."""

import torch

from . import elementwise, indexing, linear, literals, reductions, regions, shapes
from .build import Unsupported, dtype_of
from .spmd import COLLECTIVES, collective
from .text import HloError, Shape, scope_of, source_of

MAX_TRIPS = 4096
SAME = ("copy", "optimization-barrier", "opt-barrier", "add-dependency", "copy-done", "domain")
CALLS = {"call": "to_apply", "fusion": "calls", "async-start": "calls"}
# Errors that reading an instruction may raise whose operands are not those of its opcode.
MALFORMED = (
    IndexError,
    KeyError,
    TypeError,
    AttributeError,
    OverflowError,
    RuntimeError,
    StopIteration,
)
# Calls that mean nothing to values.
MARKS = ("Sharding", "annotate_device_placement", "xla.sdy.FuncResultSharding")


class Program:
    def __init__(self, module, builder, ranks, per_partition):
        self.module, self.b, self.ranks = module, builder, ranks
        self.per_partition = per_partition  # ranks are partitions, else replicas
        self.literals = {}  # those that are read as another real, by their text

    # ---- computations ----

    def callee(self, i, key):
        name = i.attributes.get(key, "").lstrip("%")
        c = self.module.computations.get(name)
        if c is None or c.line >= self.current.line:
            raise Unsupported("%s=%s is no computation before this one" % (key, name[:40]))
        return c

    def run(self, computation, arguments, active):
        """The result for each of the active ranks; `arguments`: a list by rank."""
        outer = getattr(self, "current", None)
        env = {r: {} for r in active}
        for i in computation.instructions:
            self.current = computation
            try:
                results = self.instruction(i, env, arguments, active)
                for r in active:
                    env[r][i.name] = checked(i, results[r])
            except (Unsupported, ValueError) as e:
                self.refuse(i, str(e))
            except MALFORMED:
                self.refuse(i, "its operands or attributes do not fit the opcode")
        self.current = outer
        return {r: env[r][computation.root.name] for r in active}

    def refuse(self, i, reason):
        name = "%s (%s)" % (i.name, i.opcode)
        raise HloError(self.module.path, i.line, name, reason) from None

    def instruction(self, i, env, arguments, active):
        operands = {r: [env[r][o] for o in i.operands] for r in active}
        if i.opcode == "parameter":
            return {r: arguments[r][int(i.literal)] for r in active}
        if i.opcode in CALLS:
            c = self.callee(i, CALLS[i.opcode])
            if len(c.parameters) != len(i.operands):
                raise Unsupported("%s takes %d operands" % (c.name, len(c.parameters)))
            return self.run(c, operands, active)
        if i.opcode == "while":
            return self.loop(i, operands, active)
        if i.opcode == "conditional":
            return self.branch(i, operands, active)
        self.place(i, active[0])
        base = i.opcode[:-6] if i.opcode.endswith("-start") else i.opcode
        if base in COLLECTIVES:
            return collective(self, base, i, operands, active)
        out = {}
        for r in active:
            self.place(i, r)
            out[r] = self.lower(i, operands[r], r)
        return out

    def place(self, i, rank):
        """Where emitted nodes come from."""
        prefix = "r%d_" % rank if self.ranks > 1 else ""
        self.b.place(
            prefix + i.name.replace(".", "_").replace("-", "_"),
            scope_of(i.metadata),
            source_of(self.module, i.metadata),
        )

    def loop(self, i, operands, active):
        condition, body = self.callee(i, "condition"), self.callee(i, "body")
        if len(condition.parameters) != 1 or len(body.parameters) != 1:
            raise Unsupported("a loop over other than one value")
        state = {r: operands[r][0] for r in active}
        for _ in range(MAX_TRIPS + 1):
            go = self.run(condition, {r: [state[r]] for r in active}, active)
            known = {None if go[r].number is None else bool(go[r].number) for r in active}
            if None in known:
                raise Unsupported("a loop whose trip count depends on data")
            if len(known) > 1:
                raise Unsupported("ranks leave a loop at different times")
            if known == {False}:
                return state
            state = self.run(body, {r: [state[r]] for r in active}, active)
        raise Unsupported("a loop of more than %d steps" % MAX_TRIPS)

    def branch(self, i, operands, active):
        names = i.attributes.get("branch_computations")
        if names is None:
            branches = [self.callee(i, k) for k in ("true_computation", "false_computation")]
        else:
            found = [n.strip().lstrip("%") for n in names.strip("{}").split(",")]
            branches = [self.callee_named(n) for n in found]
        if len(i.operands) != len(branches) + 1:
            raise Unsupported("as many branches as operands behind the first")
        chosen = {}
        if any(operands[r][0].number is None for r in active):
            return self.select_branch(i, branches, operands, active)
        for r in active:
            x = operands[r][0]
            k = int(not x.number) if x.dtype == torch.bool else int(x.number)
            chosen.setdefault(k if 0 <= k < len(branches) else len(branches) - 1, []).append(r)
        out = {}
        for k, some in sorted(chosen.items()):
            out.update(self.run(branches[k], {r: [operands[r][k + 1]] for r in some}, some))
        return out

    def select_branch(self, i, branches, operands, active):
        """All branches are run, and data chooses among their results."""
        given = [{r: [operands[r][k + 1]] for r in active} for k in range(len(branches))]
        results = [self.run(c, x, active) for c, x in zip(branches, given)]
        out = results[-1]
        for k in reversed(range(len(branches) - 1)):
            for r in active:
                self.place(i, r)
                x = operands[r][0]
                if x.dtype != torch.bool:
                    x = elementwise.compare(self.b, "EQ", x, self.b.full([], k, x.dtype), x.shape)
                out[r] = self.choose(x, results[k][r], out[r])
        return out

    def choose(self, condition, x, y):
        if isinstance(x, tuple):
            return tuple(self.choose(condition, *xy) for xy in zip(x, y))
        c = shapes.expand(self.b, condition, x.shape)
        return elementwise.select(self.b, c, x, y, x.shape)

    def callee_named(self, name):
        c = self.module.computations.get(name)
        if c is None or c.line >= self.current.line:
            raise Unsupported("%s is no computation before this one" % name[:40])
        return c

    # ---- one instruction of one rank ----

    def shape(self, i, k):
        """The declared shape of an operand."""
        shape = self.current.declared[i.operands[k]]
        if not isinstance(shape, Shape):
            raise Unsupported("a tuple as an operand")
        return shape

    def kind(self, i, k):
        return self.shape(i, k).dtype

    def lower(self, i, x, rank):
        if i.opcode == "tuple":
            return tuple(x)
        if i.opcode == "get-tuple-element":
            k = int(i.attributes.get("index", "-1"))
            if not isinstance(x[0], tuple) or not 0 <= k < len(x[0]):
                raise Unsupported("there is no element %d" % k)
            return x[0][k]
        if i.opcode in SAME or i.opcode.endswith("-done"):
            return x[0]
        if i.opcode == "after-all":
            return ()
        if any(isinstance(o, tuple) for o in x):
            raise Unsupported("a tuple as an operand")
        handler = HANDLERS.get(i.opcode)
        if handler is not None:
            if len(x) != OPERANDS.get(i.opcode, len(x)):
                raise Unsupported("%d operands" % len(x))
            return handler(self, i, x, rank)
        if i.opcode in elementwise.UNARY and len(x) == 1:
            return elementwise.unary(self.b, i.opcode, x[0], i.shape.dtype)
        if (i.opcode in elementwise.BINARY or i.opcode.startswith("shift-")) and len(x) == 2:
            sizes = i.shape.sizes
            return elementwise.binary(self.b, i.opcode, x[0], x[1], i.shape.dtype, sizes)
        raise Unsupported("this opcode is not read")


def checked(i, v):
    """The lowered value has the shape that the text declares."""
    if isinstance(i.shape, tuple) or isinstance(v, (tuple, list)):
        return v
    if i.shape.dtype in ("token", "opaque"):
        return v
    if v.shape != i.shape.sizes or v.dtype != dtype_of(i.shape.dtype):
        raise Unsupported(
            "it is lowered to %s%s, and declared as %s%s"
            % (v.dtype, list(v.shape), i.shape.dtype, list(i.shape.sizes))
        )
    return v


# ---- literals ----


def elements(text, dtype):
    words = text.replace("{", " ").replace("}", " ").replace(",", " ").split()
    kind = float if dtype.is_floating_point else int
    if dtype == torch.bool:
        table = {"true": True, "false": False, "1": True, "0": False}
        return [table[w] for w in words]
    return [float("nan") if w.startswith(("nan", "-nan")) else kind(w) for w in words]


def constant(p, i, x, rank):
    if "..." in i.literal:
        raise Unsupported("its numbers are left out of the text (print large constants)")
    dtype = dtype_of(i.shape.dtype)
    try:
        numbers = elements(i.literal, dtype)
        tensor = torch.tensor(numbers, dtype=dtype).reshape(i.shape.sizes)
    except (ValueError, KeyError, RuntimeError, OverflowError):
        raise Unsupported("its literal is none of its type") from None
    if len(numbers) == 1 and tensor.numel() == 1:
        number, name = numbers[0], None
        if dtype == torch.float32:
            number, name = literals.read(i.literal.strip("{} "))
        if name:
            p.literals[i.literal.strip("{} ")] = name
        return p.b.full(i.shape.sizes, number, dtype)
    return p.b.constant(tensor)


def iota(p, i, x, rank):
    d = int(i.attributes.get("iota_dimension", "0"))
    n = i.shape.sizes[d] if d < len(i.shape.sizes) else 1
    dtype = dtype_of(i.shape.dtype)
    whole = shapes.arange(p.b, n, dtype if dtype != torch.bool else torch.int64)
    return shapes.broadcast_in(p.b, shapes.as_type(p.b, whole, dtype), [d], i.shape.sizes)


# ---- the others ----


def broadcast(p, i, x, rank):
    return shapes.broadcast_in(
        p.b, x[0], indexing.numbers(i.attributes.get("dimensions")), i.shape.sizes
    )


def reshape(p, i, x, rank):
    return shapes.view(p.b, x[0], i.shape.sizes)


def transpose(p, i, x, rank):
    return shapes.permute(p.b, x[0], indexing.numbers(i.attributes.get("dimensions")))


def convert(p, i, x, rank):
    return elementwise.convert(p.b, x[0], p.kind(i, 0), i.shape.dtype)


def compare(p, i, x, rank):
    # The total order differs for NaN and minus zero only, and real numbers are neither.
    return elementwise.compare(p.b, i.attributes.get("direction"), x[0], x[1], i.shape.sizes)


def select(p, i, x, rank):
    c = x[0] if x[0].shape == i.shape.sizes else shapes.expand(p.b, x[0], i.shape.sizes)
    return elementwise.select(p.b, c, x[1], x[2], i.shape.sizes)


def clamp(p, i, x, rank):
    return elementwise.clamp(p.b, x[0], x[1], x[2], i.shape.sizes)


def slice_(p, i, x, rank):
    v = x[0]
    for d, part in enumerate(i.attributes.get("slice", "").strip("{}").split(",")):
        if not part.strip():
            continue
        at = [int(n) for n in part.strip(" []").split(":")]
        v = shapes.slice_(p.b, v, d, at[0], at[1], at[2] if len(at) > 2 else 1)
    return v


def concatenate(p, i, x, rank):
    return shapes.cat(p.b, x, int(i.attributes.get("dimensions", "{0}").strip("{}")))


def reverse(p, i, x, rank):
    return p.b.call("aten::flip", x[0], indexing.numbers(i.attributes.get("dimensions")))


def pad(p, i, x, rank):
    config = shapes.pad_config(i.attributes.get("padding", ""), len(x[0].shape))
    return shapes.pad(p.b, x[0], config, x[1])


def dynamic_slice(p, i, x, rank):
    sizes = indexing.numbers(i.attributes.get("dynamic_slice_sizes"))
    return shapes.dynamic_slice(p.b, x[0], starts(x[1:], len(sizes)), sizes)


def dynamic_update_slice(p, i, x, rank):
    return shapes.dynamic_update(p.b, x[0], x[1], starts(x[2:], len(x[0].shape)))


def starts(x, n):
    if len(x) != n:
        raise Unsupported("%d starts for %d dimensions" % (len(x), n))
    return x


def bitcast(p, i, x, rank):
    return shapes.bitcast(p.b, x[0], p.shape(i, 0), i.shape)


def reduce(p, i, x, rank):
    n = len(x) // 2
    dims = indexing.numbers(i.attributes.get("dimensions"))
    kinds = [p.kind(i, k) for k in range(n)]
    out = reductions.reduce(p.b, p.callee(i, "to_apply"), x[:n], x[n:], dims, kinds)
    return tuple(out) if isinstance(i.shape, tuple) else out[0]


def reduce_window(p, i, x, rank):
    if len(x) != 2:
        raise Unsupported("reduce-window of several operands")
    return reductions.reduce_window(
        p.b, p.callee(i, "to_apply"), x[0], x[1], i.attributes.get("window", "")
    )


def select_and_scatter(p, i, x, rank):
    select, add = p.callee(i, "select"), p.callee(i, "scatter")
    if regions.reducer(add) != "add" or not regions.keeps_larger(select):
        raise Unsupported("it adds up at other places than those of the first maxima")
    return reductions.at_maxima(p.b, x[0], x[1], x[2], i.attributes.get("window", ""))


# Dtypes to which a float is rounded, by the bits of exponent and mantissa.
PRECISIONS = {(8, 23): torch.float32, (8, 7): torch.bfloat16, (5, 10): torch.float16}


def reduce_precision(p, i, x, rank):
    bits = tuple(int(i.attributes.get(k, "0")) for k in ("exponent_bits", "mantissa_bits"))
    if bits not in PRECISIONS:
        raise Unsupported("%d bits of exponent and %d of mantissa" % bits)
    return shapes.as_type(p.b, shapes.as_type(p.b, x[0], PRECISIONS[bits]), x[0].dtype)


def sort(p, i, x, rank):
    d = indexing.numbers(i.attributes.get("dimensions"))
    out = reductions.sort(p.b, p.callee(i, "to_apply"), x, d[0] if d else 0)
    return tuple(out) if isinstance(i.shape, tuple) else out[0]


def topk(p, i, x, rank):
    if i.attributes.get("largest", "true") != "true" or not isinstance(i.shape, tuple):
        raise Unsupported("topk of the smallest")
    values, index = i.shape
    return tuple(reductions.top_k(p.b, x[0], values.sizes[-1], dtype_of(index.dtype)))


def dot(p, i, x, rank):
    return linear.dot(p.b, x[0], x[1], i.attributes, dtype_of(i.shape.dtype))


def convolution(p, i, x, rank):
    return linear.convolution(p.b, x[0], x[1], i.attributes)


def gather(p, i, x, rank):
    return indexing.gather(p.b, x[0], x[1], i.attributes)


def scatter(p, i, x, rank):
    if len(x) != 3:
        raise Unsupported("scatter of several operands")
    region = p.callee(i, "to_apply")
    replaces = region.root.opcode == "parameter" and region.root.literal == "1"
    name = "set" if replaces else regions.reducer(region)
    return indexing.scatter(p.b, name, x[0], x[1], x[2], i.attributes)


def partition_id(p, i, x, rank):
    return p.b.rank(rank if p.per_partition else 0)


def replica_id(p, i, x, rank):
    return p.b.rank(0 if p.per_partition else rank)


def custom_call(p, i, x, rank):
    target = i.attributes.get("custom_call_target", "").strip('"')
    if target in MARKS and len(x) == 1:
        return x[0]
    if target == "TopK" and isinstance(i.shape, tuple):
        return topk(p, i, x, rank)
    raise Unsupported("a call of %s, which is no operator of HLO" % (target or "nothing")[:80])


OPERANDS = {
    "bitcast": 1,
    "broadcast": 1,
    "clamp": 3,
    "compare": 2,
    "constant": 0,
    "convert": 1,
    "convolution": 2,
    "dot": 2,
    "gather": 2,
    "iota": 0,
    "pad": 2,
    "reshape": 1,
    "reduce-precision": 1,
    "reverse": 1,
    "select": 3,
    "select-and-scatter": 3,
    "slice": 1,
    "topk": 1,
    "transpose": 1,
}
HANDLERS = {
    "bitcast": bitcast,
    "broadcast": broadcast,
    "clamp": clamp,
    "compare": compare,
    "concatenate": concatenate,
    "constant": constant,
    "convert": convert,
    "convolution": convolution,
    "custom-call": custom_call,
    "dot": dot,
    "dynamic-slice": dynamic_slice,
    "dynamic-update-slice": dynamic_update_slice,
    "gather": gather,
    "iota": iota,
    "pad": pad,
    "partition-id": partition_id,
    "reduce": reduce,
    "reduce-precision": reduce_precision,
    "reduce-window": reduce_window,
    "replica-id": replica_id,
    "reshape": reshape,
    "reverse": reverse,
    "scatter": scatter,
    "select": select,
    "select-and-scatter": select_and_scatter,
    "slice": slice_,
    "sort": sort,
    "topk": topk,
    "transpose": transpose,
}
