"""The command `record`: the ranks are started, and what each has written becomes one file."""

import json
import os
import tempfile
import time

from .. import forked
from ..errors import CaptureError


def environment(rank, world):
    return {
        "RANK": str(rank),
        "WORLD_SIZE": str(world),
        "LOCAL_RANK": str(rank),
        "LOCAL_WORLD_SIZE": str(world),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": "29500",
    }


def start(o, folder, rank):
    from . import child

    given = (folder, rank, o.ranks, o.backend, bool(o.capture), o.program, o.args)
    return forked.start(child.recorded, *given, environment=environment(rank, o.ranks))


def failure(folder, rank):
    try:
        with open(os.path.join(folder, "error%d" % rank), encoding="utf-8") as f:
            return f.read()
    except OSError:
        return "it was ended from outside"


def run_ranks(o, folder):
    """All ranks to their ends. On fake groups none waits for another: a few run at a time."""
    at_once = o.ranks if o.backend == "gloo" else max(1, min(o.ranks, os.cpu_count() or 1))
    # Read when PyTorch is loaded.
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    waiting, running, end = list(range(o.ranks)), {}, time.monotonic() + o.timeout
    try:
        while waiting or running:
            while waiting and len(running) < at_once:
                r = waiting.pop(0)
                running[r] = start(o, folder, r)
            for r, p in list(running.items()):
                if p.exitcode is not None:
                    del running[r]
                    if p.exitcode:
                        raise CaptureError("rank %d: %s" % (r, failure(folder, r)))
            if time.monotonic() > end:
                raise CaptureError(
                    "the program has not ended in %d s (--timeout): rank%s %s. Where ranks wait "
                    "for each other for ever, --backend fake records what each would do"
                    % (o.timeout, "s" * (len(running) > 1), ", ".join(map(str, sorted(running))))
                )
            time.sleep(0.02)
    finally:
        forked.end(running.values())


def read_ranks(o, folder):
    out = []
    for r in range(o.ranks):
        with open(os.path.join(folder, "rank%d.json" % r), encoding="utf-8") as f:
            out.append(json.load(f))
    return out


# ---- events ----


def operations(events):
    for e in events:
        yield from e.get("ops", [e])


def shared_storages(events):
    """Storages that some communication of the rank uses: no other can be in a race."""
    return {b[0] for e in operations(events) for key in ("buffer", "out") for b in e.get(key) or []}


def buffer_list(found, shared):
    return [{"id": "s%d" % n, "at": at, "bytes": size} for n, at, size in found if n in shared]


class Groups:
    """Names for groups. One that all members know by one number is called what the user calls it,
    where no other is called so."""

    def __init__(self, ranks):
        self.world, self.names, self.members = ranks[0]["world"], {}, {}
        for rank in ranks:
            for e in operations(rank["events"]):
                if "group" in e:
                    self.add(*e["group"])

    def add(self, number, said, ranks):
        key = (number, tuple(ranks))
        if number == self.world or key in self.names:
            return
        name, k = said or "group" + number, 1
        while name in self.members:
            k += 1
            name = "%s.%d" % (said or "group" + number, k)
        self.names[key], self.members[name] = name, ranks

    def name(self, number, ranks):
        return None if number == self.world else self.names[number, tuple(ranks)]


def microbatches(ranks):
    """Steps of a pipeline one behind the other: the k-th time that a stage computes a microbatch
    belongs to step k. Returns the number of stages and of microbatches, or None."""
    work = [e for r in ranks for e in r["events"] if e["op"] in ("F", "B", "I", "W")]
    if not work:
        return None
    size, stages, steps = 1 + max(e["mb"] for e in work), max(e.pop("stages") for e in work), 1
    for r in ranks:
        times = {}
        for e in r["events"]:
            if e["op"] in ("F", "B", "I", "W"):
                key = (e["op"], e["stage"], e["mb"])
                times[key] = times.get(key, -1) + 1
                steps = max(steps, times[key] + 1)
                e["mb"] += times[key] * size
    return {"stages": stages, "microbatches": steps * size}


def plain(e, groups, shared):
    """An event as docs/events.md has it."""
    e = {k: v for k, v in e.items() if v is not None}
    if "group" in e:
        number, _, ranks = e.pop("group")
        if groups.name(number, ranks):
            e["group"] = groups.name(number, ranks)
    for key in ("buffer", "out", "reads", "writes"):
        if key in e:
            e[key] = buffer_list(e[key], shared)
            if not e[key]:
                del e[key]
    if "ops" in e:
        e["ops"] = [plain(x, groups, shared) for x in e["ops"]]
    return e


def of_rank(events, groups):
    """Work that touches nothing of what is sent is left out; a wait just behind what it waits for
    is no wait but an operation that blocks."""
    shared, out = shared_storages(events), []
    for e in events:
        e = plain(e, groups, shared)
        if e["op"] == "compute" and not ("reads" in e or "writes" in e):
            continue
        if e["op"] == "batch" and not e["ops"]:
            continue
        if e["op"] == "wait" and out and out[-1].get("handle") == e["handle"]:
            if out[-1]["op"] != "wait":
                del out[-1]["handle"]
                continue
        out.append(e)
    again = {e["handle"] for e in out if e["op"] == "wait"}
    held = {x.get("handle") for e in out for x in operations([e]) if e["op"] != "wait"}
    return [e for e in out if e["op"] != "wait" or e["handle"] in held & again]


def write_events(o, ranks):
    groups = Groups(ranks)
    pipeline = microbatches(ranks)
    d = {"format": "isomer-events", "version": 1, "world": o.ranks}
    d["backend"] = o.target
    d["groups"] = groups.members
    if pipeline:
        d["pipeline"] = pipeline
    lists = [of_rank(r["events"], groups) for r in ranks]
    part = o.events + ".part"
    with open(part, "w", encoding="utf-8") as f:
        f.write(json.dumps(d)[:-1] + ', "ranks": [')
        for k, events in enumerate(lists):
            f.write((",\n" if k else "\n") + "[" + ",\n ".join(map(json.dumps, events)) + "]")
        f.write("\n]}\n")
    os.replace(part, o.events)
    print("%s: %d ranks, %d events" % (o.events, o.ranks, sum(map(len, lists))))


def run(o):
    if not (o.events or o.capture):
        raise CaptureError("name what is to be written: --events FILE, --capture DIR, or both")
    if not os.path.isfile(o.program):
        raise CaptureError("%s: no such program" % o.program)
    with tempfile.TemporaryDirectory(prefix="isomer-record-") as folder:
        run_ranks(o, folder)
        ranks = read_ranks(o, folder)
        # Events first: they say why values that two ranks race for give no capture.
        if o.events:
            write_events(o, ranks)
        if o.capture:
            from .ranks import write_ranks

            write_ranks(o, os.path.join(folder, "graph"))
    return 0
