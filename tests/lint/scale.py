#!/usr/bin/env python3
"""The cost of lint: seconds of processor time, memory, and how they grow. Plain Python 3.

tests/lint/scale.py [--isomer build/isomer] [--events 100000] [--dumps 1024] [--entries 2000]"""

import argparse
import json
import os
import resource
import subprocess
import tempfile

from harness import ROOT, check, finish

RANKS = 16


def program(r, n, shared):
    """A stage of a long pipeline that also sums something after each microbatch."""
    out = []
    for k in range(n // 5):
        at = {"numel": 4096, "dtype": "bfloat16", "mb": k}
        if r > 0:
            peer = {"pp": -1} if shared else r - 1
            out.append(
                {
                    "op": "recv",
                    "peer": peer,
                    "buffer": "in%d" % (k % 8),
                    "handle": "r%d" % (k % 64),
                    **at,
                }
            )
            out.append({"op": "wait", "handle": "r%d" % (k % 64)})
        out.append(
            {
                "op": "F",
                "stage": r,
                "mb": k,
                "reads": ["in%d" % (k % 8)],
                "writes": ["out%d" % (k % 8)],
            }
        )
        if r + 1 < RANKS:
            out.append(
                {
                    "op": "send",
                    "peer": {"pp": 1} if shared else r + 1,
                    "buffer": "out%d" % (k % 8),
                    **at,
                }
            )
        out.append(
            {"op": "all_reduce", "group": "dp" if shared else "all", "numel": 1024, "reduce": "sum"}
        )
        out += [
            {"op": "compute"} for _ in range(n // (n // 5) - 5 + (r == 0) * 2 + (r + 1 == RANKS))
        ]
    return out


def events(path, n):
    d = {
        "format": "isomer-events",
        "version": 1,
        "backend": "nccl",
        "groups": {"all": list(range(RANKS))},
    }
    with open(path, "w") as f:
        json.dump(dict(d, ranks=[program(r, n, False) for r in range(RANKS)]), f)


def shared(path, n, world, other=None):
    d = {
        "format": "isomer-events",
        "version": 1,
        "backend": "nccl",
        "mesh": {"dp": world // RANKS, "pp": RANKS},
    }
    programs = {"p%d" % r: program(r, n, True) for r in range(RANKS)}
    ranks = ["p%d" % (r % RANKS) for r in range(world)]
    if other is not None:
        programs["other"] = program(other % RANKS, n, True)
        programs["other"][-1] = {"op": "all_reduce", "group": "dp", "numel": 9, "reduce": "sum"}
        ranks[other] = "other"
    with open(path, "w") as f:
        json.dump(dict(d, programs=programs, ranks=ranks), f)


def dumps(where, world, n):
    paths = []
    for r in range(world):
        tp = "tp%d" % (r // 8)
        config = {"0": list(range(world)), tp: list(range(r // 8 * 8, r // 8 * 8 + 8))}
        entries = [
            {
                "record_id": k,
                "process_group": [("0", tp)[k % 2]] * 2,
                "collective_seq_id": 1 + k // 2,
                "profiling_name": "nccl:all_reduce",
                "input_sizes": [[64]],
                "output_sizes": [[64]],
                "input_dtypes": ["Float"],
                "output_dtypes": ["Float"],
                "state": "completed",
                "op_id": k,
                "time_created_ns": 2**60 + k,
                "retired": True,
                "frames": [{"name": "f", "filename": "train.py", "line": k % 50}],
            }
            for k in range(n)
        ]
        paths.append(os.path.join(where, "dump_%d.json" % r))
        with open(paths[-1], "w") as f:
            json.dump(
                {
                    "version": "2.10",
                    "entries": entries,
                    "pg_config": {
                        g: {"name": g, "desc": g, "ranks": str(m)} for g, m in config.items()
                    },
                },
                f,
            )
    return paths


def cost(isomer, paths, status=0):
    """Processor seconds of the fastest of three runs, and the most memory of any run so far."""
    best = None
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        p = subprocess.run(
            [isomer, "lint", "-q"] + paths, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        check(p.returncode == status, "status %d: %s", p.returncode, p.stdout)
        used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        best = used if best is None else min(best, used)
    return best, after.ru_maxrss / 1024


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--isomer", default=os.path.join(ROOT, "build", "isomer"))
    p.add_argument("--events", type=int, default=100000)
    p.add_argument("--dumps", type=int, default=1024)
    p.add_argument("--entries", type=int, default=2000)
    o = p.parse_args()
    with tempfile.TemporaryDirectory() as where:
        path = os.path.join(where, "x.json")
        n = o.events
        events(path, n // 4)
        quarter, _ = cost(o.isomer, [path])
        events(path, n)
        whole, memory = cost(o.isomer, [path])
        print(
            "16 ranks by %d events: %.2f s, %.0f MB; 4 times the events cost %.2f times"
            % (n, whole, memory, whole / quarter)
        )
        check(whole < 4, "%.2f s", whole)
        check(whole < 4.4 * quarter, "four times the events cost %.2f times", whole / quarter)
        shared(path, n, RANKS)
        alone, _ = cost(o.isomer, [path])
        shared(path, n, 8192)
        many, _ = cost(o.isomer, [path])
        print("8192 ranks in 16 programs: %.2f s, %.2f times those 16 alone" % (many, many / alone))
        check(many < 1.5 * alone, "8192 ranks cost %.2f times 16", many / alone)
        shared(path, n, 8192, other=4711)
        one, _ = cost(o.isomer, [path], status=1)
        print("one of them differs: %.2f s" % one)
        os.remove(path)
        quarter, _ = cost(o.isomer, dumps(where, o.dumps // 4, o.entries))
        whole, memory = cost(o.isomer, dumps(where, o.dumps, o.entries))
        print(
            "%d dumps of %d entries: %.2f s, %.0f MB; 4 times the dumps cost %.2f times"
            % (o.dumps, o.entries, whole, memory, whole / quarter)
        )
        check(whole < 10 and memory < 1024, "%.2f s, %.0f MB", whole, memory)
    finish()


main()
