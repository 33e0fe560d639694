"""`isomer-capture train`: the ranks of a script as processes, their recordings as one capture."""

import json
import os
import tempfile
import time

import torch

from .. import forked
from ..core import TOLERANCE, difference
from ..errors import CaptureError
from ..files import read_safetensors, write_capture, write_safetensors
from . import roles
from .join import Join, prune
from .placements import metadata
from .replay import replay


def train(script, function, world, out, *, as_roles=False, seed=0, timeout=300, name=None):
    """Runs script:function on so many ranks and writes their step to the folder `out`. as_roles:
    what all of them do is written once."""
    if not os.path.isfile(script):
        raise CaptureError("%s: there is no such file" % script)
    with tempfile.TemporaryDirectory(prefix="isomer-train-") as folder:
        run_ranks(script, function, world, folder, seed, timeout)
        recordings = [read_rank(folder, r) for r in range(world)]
        graph, leaves, expected = joined(recordings)
    verify(graph, leaves, expected)
    head = {
        "format": "isomer-capture",
        "version": 1,
        "model": name or "%s:%s" % (os.path.basename(script), function),
        "framework": "pytorch",
        "framework_version": torch.__version__.split("+")[0],
        "torch_version": torch.__version__.split("+")[0],
    }
    guards = [dict(g, rank=r) for r, each in enumerate(recordings) for g in each["guards"]]
    graph = dict(head, **graph, metadata={"world": world, "guards": guards, "step": True})
    graph["metadata"].update(metadata(recordings, graph["nodes"]))
    written = sorted({w for each in recordings for w in each.get("written", [])})
    if written:
        graph["metadata"]["written_leaves"] = written
    kinds = {n["name"]: n["op"] for n in graph["nodes"] if "name" in n}
    if as_roles:
        graph, leaves = one_role(graph, leaves, world)
        named = {n["name"]: n["op"] for n in graph["nodes"] if "name" in n}
        kinds = {n: named.get(n) or kinds[n] for n in leaves}
    weights = {n: t for n, t in leaves.items() if n in kinds and kinds[n] != "input"}
    write_capture(
        out, graph, weights, [{n: t for n, t in leaves.items() if kinds.get(n) == "input"}]
    )
    return graph


def one_role(graph, leaves, world):
    try:
        return roles.as_roles(graph, leaves, world, same)
    except roles.NotOne as e:
        raise CaptureError("--rank roles: %s" % e) from e


def same(a, b):
    """Bit for bit, as a reader tells it."""
    return a.dtype == b.dtype and a.shape == b.shape and as_bytes(a) == as_bytes(b)


def as_bytes(t):
    return t.detach().contiguous().flatten().view(torch.uint8).numpy().tobytes()


def run_ranks(script, function, world, folder, seed, timeout):
    """All ranks, until the last has ended; when one fails, the others are stopped."""
    from . import rank

    ranks = []
    try:
        for r in range(world):
            log = os.path.join(folder, "rank%d.log" % r)
            given = (script, function, r, world, folder, seed, timeout)
            ranks.append(forked.start(rank.recorded, *given, log=log))
        left = dict(enumerate(ranks))
        while left:
            for r, p in list(left.items()):
                if p.exitcode is None:
                    continue
                del left[r]
                if p.exitcode:
                    raise CaptureError("rank %d: %s" % (r, reason(folder, r, p.exitcode)))
            time.sleep(0.02)
    finally:
        forked.end(ranks)


def reason(folder, r, status):
    error = os.path.join(folder, "rank%d.error" % r)
    if os.path.exists(error):
        with open(error) as f:
            return f.read().strip()
    with open(os.path.join(folder, "rank%d.log" % r)) as f:
        lines = [line for line in f.read().split("\n") if line.strip()]
    return "%s (%s)" % (lines[-1] if lines else "it ended", "status %d" % status)


def read_rank(folder, r):
    base = os.path.join(folder, "rank%d" % r)
    with open(base + ".json") as f:
        recording = json.load(f)
    recording["leaves"] = read_safetensors(base + ".leaves")
    recording["expected"] = read_safetensors(base + ".outputs")
    return recording


def write_rank(run, folder):
    """Write a rank's recording for read_rank."""
    recorder, outputs = run.recorded
    base = os.path.join(folder, "rank%d" % run.rank)
    write_safetensors(base + ".leaves", {n: t for _, n, t in recorder.leaves.values()})
    write_safetensors(base + ".outputs", {n: t for n, (_, t) in outputs.items()})
    said = {
        "nodes": recorder.graph.nodes,
        "outputs": [[n, v.id] for n, (v, _) in outputs.items()],
        "guards": recorder.guards,
        "written": getattr(run, "written", []),
        "unwritten": getattr(run, "unwritten", {}),
        "said": recorder.said.metadata(),
        "placements": run.placements,
    }
    with open(base + ".json", "w") as f:
        json.dump(said, f)


def joined(recordings, Join=Join):
    """(nodes and outputs, leaf name to tensor, output name to what the ranks computed)"""
    join = Join(recordings)
    nodes = join.run()
    one, outputs, leaves, expected, given = join.one, [], {}, {}, set()
    for r, (rank, each) in enumerate(zip(join.ranks, recordings)):
        leaves.update({n if one else "rank%d.%s" % (r, n): t for n, t in each["leaves"].items()})
        for name, id in each["outputs"]:
            called = name if name not in given else "%s_rank%d" % (name, r)
            given.add(name)
            outputs.append({"name": called, "ref": rank.name(id)})
            expected[called] = each["expected"][name]
    nodes = prune(nodes, outputs)
    names = {n["name"] for n in nodes if "name" in n}
    for r, each in enumerate(recordings):
        for n, at in each.get("unwritten", {}).items():
            if (n if one else "rank%d.%s" % (r, n)) in names:
                raise CaptureError(
                    "rank %d: memory is read%s that no recorded operator has written, and whose "
                    "values depend on the parameters" % (r, " at " + at if at else "")
                )
    return (
        {"nodes": nodes, "outputs": outputs},
        {n: t for n, t in leaves.items() if n in names},
        expected,
    )


def verify(graph, leaves, expected):
    """Returns the value of every node."""
    ids = {n["id"]: leaves[n["name"]] for n in graph["nodes"] if "name" in n}
    have = replay(graph["nodes"], ids)
    for o in graph["outputs"]:
        theirs = expected[o["name"]]
        gap, limit = difference(have[o["ref"]], theirs), TOLERANCE.get(theirs.dtype, 0.0)
        if not gap <= limit:
            raise CaptureError(
                "the recorded step does not compute what the ranks computed: output %s differs by "
                "%.2g of its size" % (o["name"], gap)
            )
    return have
