#!/usr/bin/env python3
"""Random programs on real gloo: what hangs there hangs under `rendezvous`, and nothing else does.
Needs torch.

    tests/lint/gloo.py [--isomer build/isomer] [--count 40] [--seed 0] [--patience 3]"""

import argparse
import datetime
import json
import os
import random
import signal
import tempfile
import time

from harness import Lint, ROOT, check, finish


def drawn(rng):
    """Messages in a sound order, then a few events moved about; a wait stays behind its post."""
    world = rng.choice((2, 3))
    ranks = [[] for _ in range(world)]
    for k in range(rng.randrange(2, 6)):
        if rng.random() < 0.2:
            for r in range(world):
                ranks[r].append({"op": "all_reduce", "numel": 4, "reduce": "sum"})
            continue
        a, b = rng.sample(range(world), 2)
        for r, op, peer in ((a, "send", b), (b, "recv", a)):
            e = {"op": op, "peer": peer, "tag": k, "numel": 4}
            ranks[r].append(e)
            if rng.random() < 0.4:
                e["handle"] = "%s%d" % (op, k)
                ranks[r].append({"op": "wait", "handle": e["handle"]})
    for events in ranks:
        for _ in range(rng.randrange(3)):
            if len(events) < 2:
                continue
            i = rng.randrange(len(events) - 1)
            a, b = events[i], events[i + 1]
            waits = b["op"] == "wait" and a.get("handle") == b["handle"]
            both = a["op"] == b["op"] == "all_reduce"
            if not waits and not both:
                events[i], events[i + 1] = b, a
    return {"format": "isomer-events", "version": 1, "backend": "gloo", "ranks": ranks}


def execute(d, rank, store, patience):
    """What one rank does. Never returns."""
    import torch
    import torch.distributed as dist

    dist.init_process_group(
        "gloo", init_method="file://" + store, rank=rank, world_size=len(d["ranks"]),
        timeout=datetime.timedelta(seconds=60),
    )  # fmt: skip
    dist.barrier()
    works, kept = {}, []
    for e in d["ranks"][rank]:
        t = torch.ones(4)
        kept.append(t)
        if e["op"] == "wait":
            works[e["handle"]].wait()
        elif e["op"] == "all_reduce":
            dist.all_reduce(t)
        else:
            post = dist.isend if e["op"] == "send" else dist.irecv
            work = post(t, e["peer"], tag=e["tag"])
            if "handle" in e:
                works[e["handle"]] = work
            else:
                work.wait()
    os._exit(0)


class Run:
    """A program's processes."""

    def __init__(self, d, where, k, patience):
        store = os.path.join(where, "store%d" % k)
        self.pids, self.end = [], time.time() + patience
        for r in range(len(d["ranks"])):
            pid = os.fork()
            if pid == 0:
                try:
                    null = os.open(os.devnull, os.O_WRONLY)
                    os.dup2(null, 2)
                    execute(d, r, store, patience)
                finally:
                    os._exit(1)
            self.pids.append(pid)

    def hangs(self):
        """Whether some rank does not come to its end in time."""
        late = False
        for pid in self.pids:
            while True:
                done, status = os.waitpid(pid, os.WNOHANG)
                if done:
                    late |= status != 0
                    break
                if time.time() > self.end:
                    os.kill(pid, signal.SIGKILL)
                    os.waitpid(pid, 0)
                    late = True
                    break
                time.sleep(0.01)
        return late


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--isomer", default=os.path.join(ROOT, "build", "isomer"))
    p.add_argument("--count", type=int, default=40)
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--patience", type=float, default=5)
    p.add_argument("--at-once", type=int, default=4)
    o = p.parse_args()
    import torch.distributed  # noqa: F401  once, for all that are forked

    hung = 0
    with tempfile.TemporaryDirectory() as where:
        path = os.path.join(where, "x.json")
        for first in range(0, o.count, o.at_once):
            seeds = range(first, min(first + o.at_once, o.count))
            programs = {k: drawn(random.Random(o.seed + k)) for k in seeds}
            runs = {k: Run(d, where, k, o.patience) for k, d in programs.items()}
            for k, d in programs.items():
                truth = runs[k].hangs()
                hung += truth
                with open(path, "w") as f:
                    json.dump(d, f)
                x = Lint(o.isomer, path)
                said = x.report["progress"]["rendezvous"] if x.report else x.text
                check(
                    said == ("deadlock" if truth else "ok"),
                    "%d: gloo %s, rendezvous %s: %s",
                    o.seed + k,
                    "hangs" if truth else "ends",
                    said,
                    json.dumps(d["ranks"]),
                )
                check(("deadlock" in x.kinds()) == truth, "%d: %s", o.seed + k, x.kinds())
    print("%d of %d hang" % (hung, o.count))
    check(
        o.count < 20 or o.count // 10 <= hung <= o.count * 9 // 10, "%d of %d hang", hung, o.count
    )
    finish()


main()
