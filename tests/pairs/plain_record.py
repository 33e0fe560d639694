"""Plain PyTorch on one rank or several, recorded as it runs: forward, backward, collectives.

    found = run(4, program)          # program(world) in each rank's thread; `world` has its rank
    found.write(folder, outputs)     # outputs: name to tensor

A rank is a thread of its own with modules of its own, as a process would be. Ranks take turns: one
runs until it meets a collective, then the next. A TorchDispatchMode in each thread sees all
operators below autograd and writes them into one graph. A tensor is known by its memory, so that
what autograd saves and unpacks is found again; memory that nobody named is an error, never a
constant in silence.

The collectives are Functions of autograd whose backward is written by hand, as in libraries of
tensor parallel layers: `copy` (what each rank reads of a replica: the gradient is the sum),
`reduce` (a sum: the gradient is each rank's own), `gather` and `scatter` along a dimension, `split`
(each rank takes its part) and `exchange`."""

import json
import os
import struct
import threading

import torch
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes

DTYPE = {
    torch.float32: "F32",
    torch.float64: "F64",
    torch.int64: "I64",
    torch.bool: "BOOL",
    torch.complex64: "C64",
}
SAME = ("detach", "alias")


def word(dtype):
    return str(dtype).split(".")[1]


def key(t):
    return t.untyped_storage()._cdata, t.storage_offset(), tuple(t.shape), tuple(t.stride())


def safetensors(path, tensors):
    """A file of these tensors, by name."""
    head, body = {}, []
    at = 0
    for name, t in tensors.items():
        raw = bytes(t.detach().contiguous().reshape(-1).view(torch.uint8).tolist())
        head[name] = {
            "dtype": DTYPE[t.dtype],
            "shape": list(t.shape),
            "data_offsets": [at, at + len(raw)],
        }
        at += len(raw)
        body.append(raw)
    text = json.dumps(head).encode()
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + b"".join(body))


class Graph:
    """Nodes of all ranks, and which node's value lies where."""

    def __init__(self, ranks):
        self.ranks, self.nodes, self.counts = ranks, [], {}
        self.at, self.kept = {}, []  # rank and memory to node; kept: no memory is used again
        self.leaves = {"input": {}, "weight": {}}

    def put(self, rank, t, node):
        self.at[rank, key(t)] = node
        self.kept.append(t)

    def has(self, rank, t):
        return (rank, key(t)) in self.at or (None, key(t)) in self.at

    def find(self, rank, t):
        """What this rank has there, or all have (a shared input)."""
        if not self.has(rank, t):
            raise RuntimeError("memory that no operator wrote: %s" % (list(t.shape),))
        return self.at.get((rank, key(t))) or self.at[None, key(t)]

    def leaf(self, rank, kind, name, t):
        self.leaves["input" if kind == "input" else "weight"][name] = t.detach().clone()
        self.nodes.append({"id": name.replace(".", "_"), "op": kind, "name": name})
        self.nodes[-1]["outputs"] = [self.shape(t)]
        self.put(rank, t, self.nodes[-1]["id"])
        return t

    def shape(self, t):
        if not isinstance(t, torch.Tensor):
            return {"shape": [0], "dtype": "float32"}
        return {"shape": list(t.shape), "dtype": word(t.dtype)}

    def node(self, rank, op, args, kwargs, results):
        k = self.counts[rank] = self.counts.get(rank, 0) + 1
        name = "n%d" % k if rank is None or self.ranks == 1 else "r%d_n%d" % (rank, k)
        self.nodes.append({"id": name, "op": op, "args": args, "kwargs": kwargs})
        self.nodes[-1]["outputs"] = [self.shape(t) for t in results]
        return name

    def results(self, rank, name, results, group=None):
        """Of a node with several results; of a collective, which has no rank, each rank's own."""
        out = []
        for k, t in enumerate(results):
            if isinstance(t, torch.Tensor):
                r = group[k] if rank is None else rank
                item = self.node(r, "getitem", [{"ref": name}, k], {}, [t])
                self.put(r, t, item)
                out.append(item)
        return out

    def value(self, rank, a):
        if isinstance(a, torch.Tensor):
            return {"ref": self.find(rank, a)}
        if isinstance(a, (list, tuple)):
            return [self.value(rank, x) for x in a]
        if isinstance(a, torch.dtype):
            return {"dtype": word(a)}
        if isinstance(a, torch.memory_format):
            return {"memory_format": word(a)}
        if isinstance(a, float) and (a != a or abs(a) == float("inf")):
            return {"float": "nan" if a != a else "inf" if a > 0 else "-inf"}
        return a

    def live(self, wanted):
        by = {n["id"]: n for n in self.nodes}
        live, todo = set(), list(wanted)
        while todo:
            x = todo.pop()
            if x not in live:
                live.add(x)
                todo += refs([by[x].get("args", []), by[x].get("kwargs", {})])
        return [n for n in self.nodes if n["id"] in live]

    def write(self, folder, outputs):
        """outputs: name to rank and tensor"""
        os.makedirs(folder, exist_ok=True)
        named = [{"name": k, "ref": self.find(*at)} for k, at in outputs.items()]
        nodes = self.live([o["ref"] for o in named])
        graph = {"format": "isomer-capture", "version": 1, "model": "plain", "framework": "torch"}
        graph.update(framework_version=torch.__version__, torch_version=torch.__version__)
        graph.update(nodes=nodes, outputs=named, metadata={})
        with open(os.path.join(folder, "graph.json"), "w", encoding="utf-8") as f:
            json.dump(graph, f)
        names = {n.get("name") for n in nodes}
        for kind, file in (("weight", "weights"), ("input", "inputs")):
            some = {k: t for k, t in self.leaves[kind].items() if k in names}
            safetensors(os.path.join(folder, file + ".safetensors"), some)


def refs(a):
    if isinstance(a, dict):
        return [a["ref"]] if "ref" in a else [r for x in a.values() for r in refs(x)]
    return [r for x in a for r in refs(x)] if isinstance(a, list) else []


class Recorder(TorchDispatchMode):
    def __init__(self, graph, rank):
        super().__init__()
        self.graph, self.rank = graph, rank

    def constant(self, t):
        """A literal tensor of the program."""
        name = "literal%d" % len(self.graph.nodes)
        name = name if self.graph.ranks == 1 else self.named(name)
        self.graph.leaf(self.rank, "constant", name, t)

    def named(self, name):
        return "rank%d.%s" % (self.rank, name)

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        g, (space, name) = self.graph, func._schema.name.split("::")
        over = func._schema.overload_name
        if name == "lift_fresh":
            self.constant(args[0])
            return args[0]
        for a in [*args, *kwargs.values()]:
            if isinstance(a, torch.Tensor) and a.dim() == 0 and not g.has(self.rank, a):
                self.constant(a)  # a number that PyTorch made a tensor
        inplace = func._schema.is_mutable
        known = [g.value(self.rank, a) for a in args]
        more = {
            k: g.value(self.rank, v)
            for k, v in kwargs.items()
            if v is not None and k not in ("device", "layout", "pin_memory")
        }
        out = func(*args, **kwargs)
        if name in SAME:
            g.put(self.rank, out, g.find(self.rank, args[0]))
            return out
        if inplace:
            if not name.endswith("_") or args[0].storage_offset():
                raise RuntimeError("%s writes into part of a tensor" % name)
            name = name[:-1]
            for k in [k for k in g.at if k[1][0] == args[0].untyped_storage()._cdata]:
                del g.at[k]
        if name == "_unsafe_view":
            name = "view"
        op = space + "::" + name + ("." + over if over else "")
        many = list(out) if isinstance(out, (list, tuple)) else [out]
        node = g.node(self.rank, op, known, more, many)
        if inplace or isinstance(out, torch.Tensor):
            g.put(self.rank, args[0] if inplace else out, node)
        else:
            g.results(self.rank, node, many)
        return out


class World:
    """What one rank knows of all: its number, theirs, and how to meet them."""

    def __init__(self, meeting, rank, recorder):
        self.meeting, self.rank, self.n, self.recorder = meeting, rank, meeting.n, recorder
        self.group = tuple(range(self.n))  # ranks that meet; `rank` is the place among these
        self.own = rank

    def within(self, group):
        """What this rank knows of a group that it is of."""
        part = World(self.meeting, self.own, self.recorder)
        part.group, part.rank, part.n = tuple(group), list(group).index(self.own), len(group)
        return part

    def meet(self, name, t, *how):
        """The collective of this name over what the ranks bring, as this rank's result."""
        if self.n == 1:
            return t
        with _disable_current_modes():
            return self.meeting.meet(self, name, t.detach(), how)

    def send(self, t, to):
        """To a rank of the group."""
        self.meeting.mail.setdefault((self.own, self.group[to]), []).append(t.detach())

    def receive(self, source):
        """What that rank sent first of what is not taken."""
        with _disable_current_modes():
            return self.meeting.receive(self.group[source], self.own)


class Meeting:
    """Ranks take turns; at a collective all of a group meet."""

    def __init__(self, n, graph):
        self.n, self.graph = n, graph
        self.turn = [threading.Semaphore(0) for _ in range(n)]
        self.brought, self.given, self.failed, self.done = {}, {}, None, set()
        self.mail, self.idle = {}, 0

    def next(self, rank):
        for k in range(1, self.n + 1):
            if (rank + k) % self.n not in self.done:
                self.turn[(rank + k) % self.n].release()
                return

    def wait(self, r, ready):
        """Others go on until this is so."""
        while not ready():
            self.idle += 1
            if self.failed or self.idle > 4 * self.n:
                raise RuntimeError("the other ranks do not meet")
            self.next(r)
            self.turn[r].acquire()
        self.idle = 0

    def meet(self, world, name, t, how):
        r, group = world.own, world.group
        here = self.brought.setdefault(group, {})
        here[r] = t, name, how
        if len(here) == len(group):
            self.together(group, self.brought.pop(group))
        self.wait(r, lambda: r in self.given)
        return self.given.pop(r)

    def receive(self, source, r):
        mail = self.mail.setdefault((source, r), [])
        self.wait(r, lambda: mail)
        t = mail.pop(0)
        here = t.clone()
        if self.graph:
            sent = {"ref": self.graph.find(source, t)}
            self.graph.put(r, here, self.graph.node(r, "dist::receive", [sent], {}, [here]))
        return here

    def together(self, group, brought):
        """The last to come makes the collective's node; results go out in turn."""
        parts = [brought[r][0] for r in group]
        kinds = {brought[r][1:] for r in group}
        if len(kinds) != 1:
            raise RuntimeError("ranks meet for different things: %s" % kinds)
        ((name, how),) = kinds
        results = COLLECTIVE[name](parts, *how)
        one = isinstance(results, torch.Tensor)
        if self.graph:
            args = [[{"ref": self.graph.find(r, t)} for r, t in zip(group, parts)], *how]
            node = self.graph.node(None, "dist::" + name, args, {}, [results] if one else results)
            if not one:
                self.graph.results(None, node, results, group)
        for k, r in enumerate(group):
            self.given[r] = results.clone() if one else results[k]
            if one and self.graph:
                self.graph.put(r, self.given[r], node)


def all_reduce(parts, how):
    s = torch.stack(parts)
    return {"sum": lambda: s.sum(0), "avg": lambda: s.mean(0), "max": lambda: s.amax(0)}[how]()


def all_to_all(parts, split, cat):
    n = len(parts)
    cut = [p.chunk(n, split) for p in parts]
    return [torch.cat([p[r] for p in cut], cat).contiguous() for r in range(n)]


COLLECTIVE = {
    "all_reduce": all_reduce,
    "all_gather": lambda parts, d: torch.cat(parts, d),
    "reduce_scatter": lambda parts, how, d: [
        t.contiguous() for t in all_reduce(parts, how).chunk(len(parts), d)
    ],
    "all_to_all": all_to_all,
}


class Function(torch.autograd.Function):
    """A collective: `there` forward and `back` backward, each a function of this rank's tensor."""

    @staticmethod
    def forward(ctx, x, there, back):
        ctx.back = back
        return there(x)

    @staticmethod
    def backward(ctx, g):
        return ctx.back(g), None, None


class Collectives:
    """Of one rank."""

    def __init__(self, world):
        self.world = world

    def here(self, fault):
        """Whether this use is faulty."""
        return False

    def pair(self, x, there, back):
        return Function.apply(x, there, back) if self.world.n > 1 else x

    def same(self, x):
        return x.view_as(x)

    def sum(self, x):
        return self.world.meet("all_reduce", x, "sum")

    def copy(self, x):
        return self.pair(x, self.same, self.sum)

    def reduce(self, x):
        return self.pair(x, self.sum, self.same)

    def gathered(self, x, d):
        return self.world.meet("all_gather", x.contiguous(), d)

    def scattered(self, x, d):
        return self.world.meet("reduce_scatter", x.contiguous(), "sum", d)

    def own(self, x, d):
        return x.chunk(self.world.n, d)[self.world.rank]

    def gather(self, x, d):
        """Of shards that each rank goes on with by itself: gradients are added up and cut."""
        return self.pair(x, lambda x: self.gathered(x, d), lambda g: self.scattered(g, d))

    def gather_same(self, x, d):
        """Of shards, to what all ranks go on with alike: a gradient is cut."""
        return self.pair(x, lambda x: self.gathered(x, d), lambda g: self.own(g, d).contiguous())

    def scatter(self, x, d):
        return self.pair(x, lambda x: self.scattered(x, d), lambda g: self.gathered(g, d))

    def split(self, x, d):
        return self.pair(x, lambda x: self.own(x, d).contiguous(), lambda g: self.gathered(g, d))

    def plain(self, x, how="sum"):
        """Without a gradient."""
        return self.world.meet("all_reduce", x.detach(), how)


def run(n, program, record=True):
    """program(world) in each of n ranks. Returns: the graph (None if it is not recorded), and what
    each rank returned."""
    graph = Graph(n) if record else None
    meeting, out = Meeting(n, graph), [None] * n

    def rank(r):
        recorder = Recorder(graph, r) if record else None
        meeting.turn[r].acquire()
        try:
            if not meeting.failed:
                out[r] = program(World(meeting, r, recorder))
        except BaseException as e:  # whatever it is, the others must not wait for this rank
            meeting.failed = meeting.failed or e
        meeting.done.add(r)
        meeting.next(r)

    threads = [threading.Thread(target=rank, args=(r,)) for r in range(n)]
    for t in threads:
        t.start()
    meeting.turn[0].release()
    for t in threads:
        t.join()
    if meeting.failed:
        raise meeting.failed
    return graph, out
