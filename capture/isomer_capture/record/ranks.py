"""The graphs of all ranks as one capture (docs/capture-format.md, docs/placements.md): a receive is
what its sender has sent, a collective one node of all its members."""

import os

import torch

from .. import __version__
from ..errors import CaptureError
from ..files import read_safetensors, write_capture

PER_RANK = ("reduce_scatter", "all_to_all")  # collectives with an output for each rank


def renamed(x, names):
    if isinstance(x, dict):
        if "ref" in x:
            return {"ref": names[x["ref"]]}
        return {k: renamed(v, names) for k, v in x.items()}
    return [renamed(e, names) for e in x] if isinstance(x, list) else x


class Rank:
    def __init__(self, number, graph):
        self.number, self.nodes, self.outputs = number, graph["nodes"], graph["outputs"]
        self.at, self.names = 0, {}

    def traced(self, id):
        """The name of a value: of a node, or of the k-th that it gives."""
        owner, _, k = id.rpartition(".")
        return self.names.get(id) or "%s.%s" % (self.names.get(owner), k)


class Join:
    """Runs through the ranks' nodes; a rank stands still until what it needs of others is there."""

    def __init__(self, graphs):
        self.ranks = [Rank(r, g) for r, g in enumerate(graphs)]
        self.nodes, self.posts, self.done, self.sent = [], {}, {}, {}

    def run(self):
        moved = True
        while moved:
            moved = False
            for rank in self.ranks:
                while rank.at < len(rank.nodes) and self.step(rank, rank.nodes[rank.at]):
                    rank.at += 1
                    moved = True
        for rank in self.ranks:
            if rank.at < len(rank.nodes):
                n = rank.nodes[rank.at]
                raise CaptureError(
                    "rank %d waits for ever at %s (%s): record the events (--events) and ask "
                    "isomer lint" % (rank.number, n["op"][6:], n.get("source"))
                )

    def step(self, rank, n):
        """Takes a node of a rank. Returns False where it has to wait."""
        if n["op"] == "c10d::send":
            key = (rank.number, n["peer"], n["group"], n["tag"], n["seq"])
            self.sent[key] = rank.names[n["ref"]]
        elif n["op"] == "c10d::receive":
            key = (n["peer"], rank.number, n["group"], n["tag"], n["seq"])
            if key not in self.sent:
                return False
            more = {"source": n["source"]} if n.get("source") else {}
            self.add(rank, n["id"], "dist::receive", [{"ref": self.sent[key]}], n["outputs"], more)
        elif n["op"] == "c10d::post":
            key = (n["group"], tuple(n["ranks"]), n["seq"])
            n["node"] = rank.names[n["ref"]]
            self.posts.setdefault(key, {})[rank.number] = n
        elif n["op"] == "c10d::done":
            return self.ended(rank, n)
        else:
            self.plain(rank, n)
        return True

    def plain(self, rank, n):
        n = dict(n)
        id, rank.names[n["id"]] = n["id"], "r%d_%s" % (rank.number, n["id"])
        n["id"] = rank.names[id]
        if "name" in n:
            n["name"] = "rank%d.%s" % (rank.number, n["name"])
        for key in ("args", "kwargs"):
            if key in n:
                n[key] = renamed(n[key], rank.names)
        self.nodes.append(n)

    def add(self, rank, id, op, args, outputs, more):
        rank.names[id] = "r%d_%s" % (rank.number, id)
        n = {"id": rank.names[id], "op": op, "args": args, "kwargs": {}, "outputs": outputs}
        self.nodes.append(dict(n, **more))

    def ended(self, rank, n):
        key = (n["group"], tuple(n["ranks"]), n["seq"])
        posts = self.posts[key]
        if len(posts) < len(n["ranks"]):
            return False
        if key not in self.done:
            self.done[key] = self.collective(posts, n)
        kind = posts[rank.number]["kind"]
        if kind in PER_RANK:
            args = [{"ref": self.done[key]}, n["ranks"].index(rank.number)]
            self.add(rank, n["id"], "getitem", args, n["outputs"], {})
        else:
            rank.names[n["id"]] = self.done[key]
        return True

    def collective(self, posts, n):
        members = [posts[r] for r in n["ranks"]]
        first = members[0]
        for r, p in zip(n["ranks"], members):
            if any(p[k] != first[k] for k in ("kind", "reduce", "root")):
                raise CaptureError(
                    "rank %d calls %s (%s) where rank %d calls %s (%s): record the events "
                    "(--events) and ask isomer lint"
                    % (n["ranks"][0], first["kind"], first["source"], r, p["kind"], p["source"])
                )
        args = [[{"ref": p["node"]} for p in members]]
        if first["kind"] in ("all_reduce", "reduce_scatter"):
            args.append(first["reduce"])
        if first["kind"] in ("all_gather", "reduce_scatter"):
            args.append(0)
        if first["kind"] == "all_to_all":
            args += [0, 0]
        if first["kind"] == "broadcast":
            args.append(n["ranks"].index(first["root"]))
        id = "c%d" % len(self.done)
        outputs = n["outputs"] * (len(members) if first["kind"] in PER_RANK else 1)
        node = {"id": id, "op": "dist::" + first["kind"], "args": args, "kwargs": {}}
        node["outputs"] = outputs
        if first.get("source"):
            node["source"] = first["source"]
        self.nodes.append(node)
        return id

    def outputs(self):
        out = []
        for rank in self.ranks:
            for o in rank.outputs:
                name = o["name"] + ("_rank%d" % rank.number if rank.number else "")
                out.append({"name": name, "ref": rank.names[o["ref"]]})
        return out


def references(x):
    if isinstance(x, dict):
        return [x["ref"]] if "ref" in x else [r for v in x.values() for r in references(v)]
    return [r for e in x for r in references(e)] if isinstance(x, list) else []


def needed(nodes, outputs):
    """The nodes that outputs need, and all inputs."""
    by_id, keep, todo = {n["id"]: n for n in nodes}, set(), [o["ref"] for o in outputs]
    while todo:
        id = todo.pop()
        if id not in keep:
            keep.add(id)
            todo += references([by_id[id].get("args", []), by_id[id].get("kwargs", {})])
    return [n for n in nodes if n["id"] in keep or n["op"] == "input"]


def mesh(text):
    """ "dp=2,tp=4" as metadata."""
    out = {}
    for part in text.split(","):
        name, _, size = part.partition("=")
        if not name or not size.isdigit():
            raise CaptureError('--mesh "%s" is not of the form dp=2,tp=4' % text)
        out[name] = int(size)
    return out


def write_ranks(o, folder, ranks):
    join = Join([r["graph"] for r in ranks])
    join.run()
    outputs = join.outputs()
    nodes = needed(join.nodes, outputs)
    held = {"inputs": {}, "weights": {}, "trace": {}}
    kept = {n["name"] for n in nodes if "name" in n} | {n["id"] for n in nodes}
    for rank in join.ranks:
        for what, tensors in held.items():
            read = read_safetensors(os.path.join(folder, "%s%d" % (what, rank.number)))
            for name, t in read.items():
                name = rank.traced(name) if what == "trace" else "rank%d.%s" % (rank.number, name)
                if name in kept or what == "trace" and name.rsplit(".", 1)[0] in kept:
                    tensors[name] = t
    version = torch.__version__.split("+")[0]
    graph = {
        "format": "isomer-capture",
        "version": 1,
        "model": os.path.basename(o.program),
        "framework": "pytorch",
        "framework_version": version,
        "torch_version": version,
        "nodes": nodes,
        "outputs": outputs,
        "metadata": {"recorded_by": "isomer-capture " + __version__},
    }
    if o.mesh:
        graph["metadata"]["mesh"] = mesh(o.mesh)
    trace = held["trace"] if o.trace else None
    write_capture(o.capture, graph, held["weights"], [held["inputs"]], trace)
    print("%s: %d ranks, %d nodes" % (o.capture, o.ranks, len(nodes)))
