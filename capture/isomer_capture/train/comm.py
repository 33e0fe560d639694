"""Collectives and messages of one rank, as nodes `comm::KIND` that join.py replaces.

A collective on a flat buffer that holds several tensors is one on each of them: what a bucket or a
flat shard puts together for the network's sake comes apart again."""

import torch.distributed as dist

from ..errors import CaptureError
from .graph import Node
from .memory import count, joined

SPACES = ("c10d", "_c10d_functional")
REDUCTIONS = {0: "sum", 1: "avg", 2: "product", 3: "min", 4: "max"}


def group_of(x):
    """The members of a group, in its order, as ranks of the world."""
    if isinstance(x, str):
        x = dist.distributed_c10d._resolve_process_group(x)
    elif not isinstance(x, dist.ProcessGroup):
        x = dist.ProcessGroup.unbox(x)
    return list(dist.get_process_group_ranks(x))


def reduction(x):
    if isinstance(x, str):
        return x
    op = x.op() if hasattr(x, "op") else x
    word = REDUCTIONS.get(int(op))
    if word is None:
        raise CaptureError("a collective reduces by %s, which a capture cannot hold" % x)
    return word


class Comm:
    """A collective call, as the handlers below read it."""

    def __init__(self, recorder, group):
        self.graph, self.memory, self.group = recorder.graph, recorder.memory, group

    def node(self, kind, values, likes, **said):
        said = dict(said, group=self.group)
        return self.graph.emit("comm::" + kind, [values], {}, likes, True, comm=said)

    def values(self, parts):
        """Each part as a value with a first dimension."""
        out = []
        for part in parts:
            v = self.graph.put_together([part], part_shape(part), self.dtype)
            out.append(v if len(v.shape) else self.graph.view(v, [1]))
        return out

    def read(self, t):
        self.dtype = t.dtype
        return self.values(self.memory.parts(t))

    def fill(self, t, values):
        """t holds these values one after another."""
        self.memory.write_parts(t, [(v, 0, count(v.shape)) for v in values])

    def all_reduce(self, t, op, out=None, keep=True):
        values = self.read(t)
        made = self.node("all_reduce", values, values, op=op)
        if keep:
            self.fill(t if out is None else out, made)

    def is_root(self, g):
        return dist.get_rank() == self.group[g["root_rank"]]

    def broadcast(self, t, source, out=None):
        values = self.read(t)
        made = self.node("broadcast", values, values, source=source)
        self.fill(t if out is None else out, made)

    def all_gather(self, t, outs):
        """outs: one tensor for each rank's part, or one for all."""
        n, values = len(self.group), self.read(t)
        likes = [Node("", (n * v.shape[0],) + v.shape[1:], v.dtype) for v in values]
        made = self.node("all_gather", values, likes)
        parts = []
        for r in range(n):
            sizes = [count(v.shape) for v in values]
            parts.append([(m, r * k, (r + 1) * k) for m, k in zip(made, sizes)])
        if len(outs) == 1:
            self.memory.write_parts(outs[0], joined([p for each in parts for p in each]))
        else:
            for out, each in zip(outs, parts):
                self.memory.write_parts(out, each)

    def reduce_scatter(self, blocks, out, op):
        """blocks: for each rank, the parts of what is its."""
        n = len(self.group)
        sizes = [[last - first for _, first, last in b] for b in blocks]
        if any(s != sizes[0] for s in sizes):
            v = self.graph.put_together(joined([p for b in blocks for p in b]), None, self.dtype)
            values = [self.graph.view(v, [count(v.shape)])]
        else:
            values = [
                self.graph.put_together(joined([b[j] for b in blocks]), None, self.dtype)
                for j in range(len(sizes[0]))
            ]
        values = [
            v if len(v.shape) and v.shape[0] % n == 0 else self.graph.view(v, [count(v.shape)])
            for v in values
        ]
        likes = [Node("", (v.shape[0] // n,) + v.shape[1:], v.dtype) for v in values]
        self.fill(out, self.node("reduce_scatter", values, likes, op=op))

    def all_to_all(self, inputs, outs):
        """Parts and their shape for each rank, and tensors like those that come from each."""
        values = [
            self.graph.put_together(joined(p), shape, self.dtype)
            if p
            else self.graph.zeros(shape, self.dtype)
            for p, shape in inputs
        ]
        return self.node("all_to_all", values, outs)


def part_shape(part):
    """The shape of whole rows of a value, or of so many elements."""
    v, first, last = part
    if v is None:
        return [last - first]
    row = count(v.shape[1:])
    if (first, last) == (0, count(v.shape)):
        return v.shape
    if len(v.shape) > 1 and row and first % row == 0 and last % row == 0:
        return ((last - first) // row,) + v.shape[1:]
    return [last - first]


def blocks_of(memory, t, n):
    """The parts of t, cut into n equal ranges."""
    parts, size = memory.parts(t), t.numel() // n
    out, k, left = [[] for _ in range(n)], 0, size
    for value, first, last in parts:
        while first < last:
            take = min(left, last - first)
            out[k].append((value, first, first + take))
            first, left = first + take, left - take
            if left == 0 and k + 1 < n:
                k, left = k + 1, size
    return out


def split_sizes(given, total, n):
    return list(given) if given else [total // n] * n


def ranges_of(memory, t, sizes):
    """The parts of t, cut into ranges of so many elements each."""
    parts, out = memory.parts(t), []
    for size in sizes:
        mine = []
        while size:
            value, first, last = parts.pop(0)
            take = min(size, last - first)
            mine.append((value, first, first + take))
            size -= take
            if first + take < last:
                parts.insert(0, (value, first + take, last))
        out.append(mine)
    return out


def record(recorder, func, name, args, kwargs):
    handler = HANDLERS.get((func.namespace, name))
    if handler is None:
        raise CaptureError("%s has no place in a capture of ranks yet" % func.name())
    given = {a.name: v for a, v in zip(func._schema.arguments, args)}
    given.update(kwargs)
    return handler(recorder, func, given, args, kwargs)


def in_place(each):
    """A c10d operator: what it does to memory is written down before it runs."""

    def handler(recorder, func, given, args, kwargs):
        comm = Comm(recorder, group_of(given["process_group"]))
        each(comm, given)
        return func(*args, **kwargs)

    return handler


def functional(each):
    """One of _c10d_functional: what it returns is new."""

    def handler(recorder, func, given, args, kwargs):
        comm = Comm(recorder, group_of(given["group_name"]))
        out = func(*args, **kwargs)
        each(comm, given, out)
        return out

    return handler


def allreduce(comm, g):
    for t in g["tensors"]:
        comm.all_reduce(t, reduction(g["reduce_op"]))


def allgather(comm, g):
    for t, outs in zip(g["input_tensors"], g["output_tensors"]):
        comm.all_gather(t, outs)


def allgather_base(comm, g):
    comm.all_gather(g["input_tensor"], [g["output_tensor"]])


def allgather_coalesced(comm, g):
    for t, out in zip(g["inputs"], g["outputs"]):
        comm.all_gather(t, [out])


def scatter_sum_base(comm, g):
    comm.dtype = g["input_tensor"].dtype
    blocks = blocks_of(comm.memory, g["input_tensor"], len(comm.group))
    comm.reduce_scatter(blocks, g["output_tensor"], reduction(g["reduce_op"]))


def scatter_sum(comm, g):
    for out, given in zip(g["output_tensors"], g["input_tensors"]):
        comm.dtype = out.dtype
        blocks = [comm.memory.parts(t) for t in given]
        comm.reduce_scatter(blocks, out, reduction(g["reduce_op"]))


def scatter_sum_coalesced(comm, g):
    for t, out in zip(g["inputs"], g["outputs"]):
        comm.dtype = t.dtype
        blocks = blocks_of(comm.memory, t, len(comm.group))
        comm.reduce_scatter(blocks, out, reduction(g["reduce_op"]))


def reduce_to_one(comm, g):
    """All know the sum; the root alone has a place for it."""
    for t in g["tensors"]:
        comm.all_reduce(t, reduction(g["reduce_op"]), keep=comm.is_root(g))


def gather_to_one(comm, g):
    for k, t in enumerate(g["input_tensors"]):
        comm.all_gather(t, g["output_tensors"][k] if comm.is_root(g) else [])


def broadcast(comm, g):
    for t in g["tensors"]:
        comm.broadcast(t, comm.group[g["root_rank"]])


def exchange(comm, g):
    comm.dtype = g["output_tensors"][0].dtype
    inputs = [(comm.memory.parts(t), list(t.shape)) for t in g["input_tensors"]]
    made = comm.all_to_all(inputs, g["output_tensors"])
    for t, v in zip(g["output_tensors"], made):
        comm.fill(t, [v])


def exchange_base(comm, g):
    out, t, n = g["output"], g["input"], len(comm.group)
    exchange_flat(comm, t, out, g["output_split_sizes"], g["input_split_sizes"], n)


def exchange_flat(comm, t, out, outs, ins, n):
    comm.dtype = t.dtype
    rest, rows = list(t.shape[1:]), split_sizes(ins, t.shape[0], n)
    parts = ranges_of(comm.memory, t, [k * count(rest) for k in rows])
    shapes = [[k] + rest for k in rows]
    likes = [Node("", [k] + rest, t.dtype) for k in split_sizes(outs, out.shape[0], n)]
    comm.fill(out, comm.all_to_all(list(zip(parts, shapes)), likes))


def send(comm, g):
    for t in g["tensors"]:
        comm.node("send", [comm.memory.read(t)], [], peer=comm.group[g["dst"]], tag=g["tag"])


def receive(comm, g):
    for t in g["tensors"]:
        like = Node("", t.shape, t.dtype)
        made = comm.node("receive", [], [like], peer=comm.group[g["src"]], tag=g["tag"])
        comm.memory.write(t, made[0])


def barrier(comm, g):
    comm.node("barrier", [], [])


def fun_all_reduce(comm, g, out):
    comm.all_reduce(g["input"], g["reduce_op"], out)


def fun_all_reduce_in_place(comm, g, out):
    comm.all_reduce(g["input"], g["reduce_op"])


def fun_all_reduce_coalesced(comm, g, out):
    for t, o in zip(g["inputs"], out):
        comm.all_reduce(t, g["reduce_op"], o)


def fun_all_gather(comm, g, out):
    comm.all_gather(g["input"], [out])


def fun_all_gather_coalesced(comm, g, out):
    for t, o in zip(g["inputs"], out):
        comm.all_gather(t, [o])


def fun_reduce_scatter(comm, g, out):
    comm.dtype = out.dtype
    blocks = blocks_of(comm.memory, g["input"], len(comm.group))
    comm.reduce_scatter(blocks, out, g["reduce_op"])


def fun_exchange(comm, g, out):
    exchange_flat(
        comm, g["input"], out, g["output_split_sizes"], g["input_split_sizes"], len(comm.group)
    )


def fun_broadcast(comm, g, out):
    comm.broadcast(g["input"], comm.group[g["src"]], out)


def identity(recorder, func, given, args, kwargs):
    return func(*args, **kwargs)


HANDLERS = {
    ("c10d", "allreduce_"): in_place(allreduce),
    ("c10d", "allreduce_coalesced_"): in_place(allreduce),
    ("c10d", "allgather_"): in_place(allgather),
    ("c10d", "_allgather_base_"): in_place(allgather_base),
    ("c10d", "allgather_into_tensor_coalesced_"): in_place(allgather_coalesced),
    ("c10d", "_reduce_scatter_base_"): in_place(scatter_sum_base),
    ("c10d", "reduce_scatter_"): in_place(scatter_sum),
    ("c10d", "reduce_scatter_tensor_coalesced_"): in_place(scatter_sum_coalesced),
    ("c10d", "broadcast_"): in_place(broadcast),
    ("c10d", "reduce_"): in_place(reduce_to_one),
    ("c10d", "gather_"): in_place(gather_to_one),
    ("c10d", "alltoall_"): in_place(exchange),
    ("c10d", "alltoall_base_"): in_place(exchange_base),
    ("c10d", "send"): in_place(send),
    ("c10d", "recv_"): in_place(receive),
    ("c10d", "barrier"): in_place(barrier),
    ("_c10d_functional", "all_reduce"): functional(fun_all_reduce),
    ("_c10d_functional", "all_reduce_"): functional(fun_all_reduce_in_place),
    ("_c10d_functional", "all_reduce_coalesced"): functional(fun_all_reduce_coalesced),
    ("_c10d_functional", "all_gather_into_tensor"): functional(fun_all_gather),
    ("_c10d_functional", "all_gather_into_tensor_coalesced"): functional(fun_all_gather_coalesced),
    ("_c10d_functional", "reduce_scatter_tensor"): functional(fun_reduce_scatter),
    ("_c10d_functional", "all_to_all_single"): functional(fun_exchange),
    ("_c10d_functional", "broadcast"): functional(fun_broadcast),
    ("_c10d_functional", "wait_tensor"): identity,
    ("_c10d_functional", "_wrap_tensor_autograd"): identity,
}
