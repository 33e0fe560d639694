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

from gloo_programs import drawn, perform
from harness import Lint, ROOT, check, finish


def execute(d, rank, store, patience):
    """Runs the program of one rank. Never returns."""
    import torch.distributed as dist

    dist.init_process_group(
        "gloo", init_method="file://" + store, rank=rank, world_size=len(d["ranks"]),
        timeout=datetime.timedelta(seconds=60),
    )  # fmt: skip
    dist.barrier()
    perform(d["ranks"][rank])
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
