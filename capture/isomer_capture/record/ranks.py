"""The graphs of all ranks as one capture (docs/capture-format.md, docs/placements.md). Training
steps are joined alike (train/join.py); here what is sent keeps a node of its own, for a placement
may be wrong at it."""

import os

import torch

from .. import __version__
from ..errors import CaptureError
from ..files import write_capture
from ..train.join import Join, dim_of
from ..train.launch import joined, read_rank, verify
from ..train.placements import metadata as said
from ..train.replay import replay


class Spelled(Join):
    def run(self):
        """The ranks meet at each collective, so that their programs have one order in the graph;
        where each waits for another so, the first goes on past what it has posted."""
        moved = True
        while moved:
            moved = any([self.advance(rank, True) for rank in self.ranks])
            moved = moved or any(self.advance(rank, False) for rank in self.ranks)
        self.refuse_leftovers()
        return self.nodes

    def advance(self, rank, meets):
        """Whether the rank could do anything. `meets`: it stands still at what it has posted."""
        done = False
        while rank.at < len(rank.nodes):
            id = rank.nodes[rank.at]["id"]
            if id not in rank.posted:
                if not self.step(rank):
                    break
                done = True
            if meets and id in rank.posted and rank.names[id] is None and self.gathers(rank):
                break
            rank.at += 1
            done = True
            if not meets:
                break
        return done

    @staticmethod
    def gathers(rank):
        return rank.nodes[rank.at]["op"] not in ("comm::send", "comm::receive")

    def step(self, rank):
        node = rank.nodes[rank.at]
        if node["op"] == "aten::cat":
            parts = [rank.name(a["ref"]) for a in node["args"][0]]
            whole = all(parts) and self.put_together(rank, node, parts)
            if whole:
                rank.names[node["id"]] = whole
                return True
        return Join.step(self, rank)

    def put_together(self, rank, node, parts):
        """The tensor that a concatenation is where nothing has to be put together; or None."""
        if node["args"][1:] in ([], [0]):
            whole = self.whole_of(parts) or self.flattened(rank, node, parts)
            if whole:
                return whole
        return self.exchanged(rank, node, parts)

    def exchanged(self, rank, node, parts):
        """Parts that were exchanged, put together: along another dimension than they were cut, the
        exchange is one along both."""
        dim, (base, along) = dim_of(node), self.cut(parts)
        mine = self.made(base) if base else {}
        owner = mine["args"][0].get("ref") if mine.get("op") == "getitem" else None
        whole = self.made(owner) if owner else {}
        if whole.get("op") != "dist::all_to_all" or whole["args"][1:] != [along, along]:
            return None
        if len(parts) != len(whole["args"][0]):
            return None
        if dim == along:
            return base
        if (owner, dim) not in self.turned:
            args, like = [whole["args"][0], along, dim], node["outputs"] * len(parts)
            self.turned[owner, dim] = self.emit(rank, node, 0, "dist::all_to_all", args, like)
        args = [{"ref": self.turned[owner, dim]}, mine["args"][1]]
        return self.emit(rank, node, 1, "getitem", args, node["outputs"])

    def flattened(self, rank, node, parts):
        """The same of rows that are each flat: one flat tensor."""
        flat = [self.made(p) for p in parts]
        if any(n["op"] != "aten::view" or len(n["outputs"][0]["shape"]) != 1 for n in flat):
            return None
        base = self.whole_of([n["args"][0]["ref"] for n in flat])
        args = [{"ref": base}, node["outputs"][0]["shape"]]
        return base and self.emit(rank, node, 0, "aten::view", args, node["outputs"])

    def whole_of(self, parts):
        """The tensor of which these are all rows, slice by slice; or None."""
        cut, end = [self.made(p) for p in parts], 0
        if any(n["op"] != "aten::slice.Tensor" or n["args"][1] for n in cut):
            return None
        base = cut[0]["args"][0]["ref"]
        for n in cut:
            if n["args"][0]["ref"] != base or n["args"][2] != end:
                return None
            end = n["args"][3]
        return base if self.made(base)["outputs"][0]["shape"][0] == end else None

    def taken_apart(self, parts):
        """The tensor of which these are all the parts, and along which dimension."""
        base = self.whole_of(parts)
        return (base, 0) if base else self.cut(parts)

    def deliver(self, sender, sent, receiver, received):
        Join.deliver(self, sender, sent, receiver, received)
        given = [{"ref": ref} for ref in receiver.names[received["id"]]]
        made = self.emit(receiver, received, 0, "dist::receive", given, received["outputs"])
        receiver.names[received["id"]] = [made]

    def broadcast(self, ranks, nodes, said):
        source = [rank.r for rank in ranks].index(said["source"])
        for j, out in enumerate(nodes[0]["outputs"]):
            given = self.operands(ranks, nodes, j)
            id = self.emit(ranks[0], nodes[0], j, "dist::broadcast", [given, source], [out])
            for rank, n in zip(ranks, nodes):
                rank.names[n["id"]].append(id)

    def all_to_all(self, ranks, nodes, said):
        """Parts of one shape, of which each rank's are one tensor, are exchanged by one node."""
        out = nodes[0]["outputs"][0]
        given = [[{"ref": r.name(a["ref"])} for a in n["args"][0]] for r, n in zip(ranks, nodes)]
        whole = [self.taken_apart([p["ref"] for p in parts]) for parts in given]
        shapes, dim = [n["outputs"] for n in nodes], whole[0][1]
        known = all(base and along == dim for base, along in whole)
        if not known or any(s != out for each in shapes for s in each):
            return Join.all_to_all(self, ranks, nodes, said)
        step, shape = out["shape"][dim], list(out["shape"])
        shape[dim] = step * len(ranks)
        like = [dict(out, shape=shape)] * len(ranks)
        args = [[{"ref": base} for base, _ in whole], dim, dim]
        id = self.emit(ranks[0], nodes[0], 0, "dist::all_to_all", args, like)
        for k, (rank, n) in enumerate(zip(ranks, nodes)):
            mine = self.emit(rank, n, 0, "getitem", [{"ref": id}, k], like[:1])
            for i in range(len(ranks)):
                args = [{"ref": mine}, dim, i * step, (i + 1) * step]
                part = self.emit(rank, n, i + 1, "aten::slice.Tensor", args, [out])
                rank.names[n["id"]].append(part)


def mesh(text):
    """ "dp=2,tp=4" as metadata."""
    out = {}
    for part in text.split(","):
        name, _, size = part.partition("=")
        if not name or not size.isdigit():
            raise CaptureError('--mesh "%s" is not of the form dp=2,tp=4' % text)
        out[name] = int(size)
    return out


def metadata(o, recordings, nodes):
    out = {"recorded_by": "isomer-capture " + __version__}
    guards = [dict(g, rank=r) for r, each in enumerate(recordings) for g in each["guards"]]
    if guards:
        out["guards"] = guards
    out.update(said(recordings, nodes))
    if o.mesh:
        if mesh(o.mesh) != out.get("mesh", mesh(o.mesh)):
            out.pop("placements", None)
        out["mesh"] = mesh(o.mesh)
    return out


def values(o, graph, leaves, expected):
    """The value of every node. On fake groups the ranks had other ones: nothing was sent."""
    if o.backend == "gloo":
        return verify(graph, leaves, expected)
    named = {n["id"]: leaves[n["name"]] for n in graph["nodes"] if "name" in n}
    return replay(graph["nodes"], named)


def traced(graph, have):
    out = {}
    for n in graph["nodes"]:
        v = have[n["id"]]
        many = isinstance(v, (list, tuple))
        each = [("%s.%d" % (n["id"], k), t) for k, t in enumerate(v)] if many else [(n["id"], v)]
        out.update({k: t.contiguous() for k, t in each if t is not None})
    return out


def write_ranks(o, folder):
    recordings = [read_rank(folder, r) for r in range(o.ranks)]
    try:
        graph, leaves, expected = joined(recordings, Spelled)
    except CaptureError as e:
        raise CaptureError("%s: record the events (--events) and ask isomer lint" % e) from None
    have = values(o, graph, leaves, expected)
    version = torch.__version__.split("+")[0]
    head = {
        "format": "isomer-capture",
        "version": 1,
        "model": os.path.basename(o.program),
        "framework": "pytorch",
        "framework_version": version,
        "torch_version": version,
    }
    graph = dict(head, **graph, metadata=metadata(o, recordings, graph["nodes"]))
    kinds = {n["name"]: n["op"] for n in graph["nodes"] if "name" in n}
    inputs = {n: t for n, t in leaves.items() if kinds[n] == "input"}
    weights = {n: t for n, t in leaves.items() if kinds[n] != "input"}
    write_capture(o.capture, graph, weights, [inputs], traced(graph, have) if o.trace else None)
    print("%s: %d ranks, %d nodes" % (o.capture, o.ranks, len(graph["nodes"])))
