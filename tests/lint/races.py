#!/usr/bin/env python3
"""Races in drawn programs of streams, queues, handles and byte ranges, held against sets of what
each stream knows to be over. No pair is told that is ordered, and of each operation that another
one races with there is a finding. Plain Python 3.

    tests/lint/races.py [--isomer build/isomer] [--count 150] [--seed 0]"""

import argparse
import json
import os
import random
import tempfile

from harness import Lint, ROOT, check, finish

RACES = ("read-in-flight", "write-in-flight", "two-writers")
BUFFERS, STREAMS, GROUPS = ("a", "b", "c"), ("main", "side"), ("x", "y")


def part(rng):
    at = rng.choice((0, 0, 4))
    return {"id": rng.choice(BUFFERS), "at": at, "bytes": rng.choice((4, 8))}


def drawn(rng, backend):
    """A program that both ranks run. Whatever it posts it waits for, some of it at the end."""
    streams = STREAMS if backend == "nccl" else STREAMS[:1]
    events, open_handles = [], []
    for k in range(rng.randint(4, 12)):
        e = {"stream": rng.choice(streams)}
        what = rng.choice(("work", "work", "sum", "gather", "wait", "order"))
        if what == "work":
            e.update(op="compute", reads=[part(rng)], name="c%d" % k)
            if rng.random() < 0.6:
                e["writes"] = [part(rng)]
        elif what == "sum":
            e.update(op="all_reduce", reduce="sum", buffer=part(rng), group=rng.choice(GROUPS))
        elif what == "gather":
            e.update(op="all_gather", buffer=part(rng), out=part(rng), group=rng.choice(GROUPS))
        elif what == "wait" and open_handles:
            e.update(op="wait", handle=open_handles.pop(rng.randrange(len(open_handles))))
        elif what == "order" and len(streams) > 1:
            e.update(op="stream_wait", on=streams[1 - streams.index(e["stream"])])
        else:
            continue
        if what in ("sum", "gather") and rng.random() < 0.8:
            e["handle"] = "h%d" % k
            open_handles.append(e["handle"])
        events.append(e)
    return events + [{"op": "wait", "handle": h} for h in open_handles]


def uses(e):
    """(buffer, writes) of an event"""
    out = [(b, False) for b in e.get("reads", [])] + [(b, True) for b in e.get("writes", [])]
    if "buffer" in e:
        out.append((e["buffer"], False))
        out.append((e.get("out", e["buffer"]), True))
    return out


def conflict(e, f):
    return any(
        (w or v)
        and b["id"] == c["id"]
        and b["at"] < c["at"] + c["bytes"]
        and c["at"] < b["at"] + b["bytes"]
        for b, w in uses(e)
        for c, v in uses(f)
    )


def racing(events, backend):
    """Pairs of which nothing orders the one behind the other; what is over when an event begins."""
    over = {s: set() for s in STREAMS}  # what a stream knows to have ended
    queue = {g: set() for g in GROUPS}
    posted, pairs, before = {}, set(), {}
    for i, e in enumerate(events):
        mine = over[e.get("stream", "main")]
        if e["op"] == "wait":
            mine |= posted[e["handle"]]
            continue
        if e["op"] == "stream_wait":
            mine |= over[e["on"]]
            continue
        known = set(mine)
        if "group" in e and backend == "nccl":
            known |= queue[e["group"]]
        before[i] = known
        pairs |= {(j, i) for j in range(i) if j not in known and conflict(events[j], e)}
        ended = known | {i}
        if "group" in e and backend == "nccl":
            queue[e["group"]] = ended
        if "handle" in e:
            posted[e["handle"]] = ended if backend == "nccl" else {i}
        else:
            mine |= ended
    return pairs, before


def one(o, path, seed):
    rng = random.Random(seed)
    backend = rng.choice(("nccl", "gloo"))
    events = drawn(rng, backend)
    pairs, before = racing(events, backend)
    with open(path, "w") as f:
        json.dump(
            {"format": "isomer-events", "version": 1, "backend": backend, "world": 2}
            | {"groups": {g: [0, 1] for g in GROUPS}, "ranks": [events, events]},
            f,
        )
    x = Lint(o.isomer, path)
    if not check(x.report is not None, "%d: %s", seed, x.last):
        return
    for rank in (0, 1):
        told = set()
        for f in x.report["findings"]:
            if f["kind"] in RACES and f["ranks"] == [rank]:
                told.add(tuple(sorted(p for _, p in f["events"])))
        check(told <= pairs, "%d: ordered, and told: %s of %s", seed, told - pairs, events)
        left = {j for j, _ in pairs if not implied(events, before, told, j)}
        check(not left, "%d: not told: %s, but %s: %s", seed, left, told, json.dumps(events))


def implied(events, before, told, j):
    """Whether a race is told of j, or of what lies in its lane or behind it: they lack one wait."""

    def lane(e):
        return e.get("group", e.get("stream", "main"))

    return any(k == j or j in before[k] or lane(events[k]) == lane(events[j]) for k, _ in told)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--isomer", default=os.path.join(ROOT, "build", "isomer"))
    p.add_argument("--count", type=int, default=150)
    p.add_argument("--seed", type=int, default=0)
    o = p.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(o.seed, o.seed + o.count):
            one(o, os.path.join(folder, "x.json"), seed)
    finish()


main()
