#!/usr/bin/env python3
"""How the time of `isomer compare` grows with ranks and with layers, as ratios measured in one run.

    tests/bench/rank_growth.py [--isomer build/isomer] [--rounds 3] [--only TEXT]

The pairs are those of tests/pairs/parallel.py, backward: a layer on 8 ranks against 2, and 8 layers
against 2, on 2 ranks (4 where ranks are a grid). Whole processes, all of them in each round; of
each the median processor time counts, less that of a capture of one node. Ranks may cost as many
times more as N^1.3, layers 4.4 times. Exit status 1 where one costs more."""

import argparse
import os
import statistics
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, HERE)
sys.path.insert(0, os.path.join(ROOT, "tests", "pairs"))
import compare
import distributed
import parallel

KINDS = ("tensor", "sequence", "grid", "data", "zero", "accumulate")
LAYERS = 4.4
POWER = 1.3


def cases(only):
    """(title, the larger pair, the smaller, how many times it may cost)"""
    for kind in KINDS:
        least = 4 if kind == "grid" else 2
        for model in ("gpt", "llama"):
            name = "%s %s" % (kind, model)
            if only not in name:
                continue
            pair = lambda ranks, layers, k=kind, m=model: (k, m, ranks, layers, True)
            yield (
                "%s, 8 ranks against %d" % (name, least),
                pair(8, 1),
                pair(least, 1),
                (8 / least) ** POWER,
            )
            yield name + ", 8 layers against 2", pair(least, 8), pair(least, 2), LAYERS


def main():
    a = argparse.ArgumentParser(description="time over ranks and layers")
    a.add_argument("--isomer", default=os.path.join(ROOT, "build", "isomer"))
    a.add_argument("--rounds", type=int, default=3)
    a.add_argument("--only", default="")
    o = a.parse_args()
    failed = 0
    with tempfile.TemporaryDirectory() as tmp:
        start = os.path.join(tmp, "start")
        compare.one_node(start)
        for title, large, small, most in cases(o.only):
            seen = {"start": [], large: [], small: []}
            for case in (large, small):
                parallel.write(os.path.join(tmp, distributed.title(case)), *case)
            for _ in range(o.rounds):
                seen["start"].append(compare.measure([o.isomer, "compare", start, start])[0])
                for case in (large, small):
                    folder = os.path.join(tmp, distributed.title(case))
                    verdict, _, seconds, _, _ = distributed.compare(o.isomer, folder)
                    if verdict != "equivalent":
                        sys.exit("%s: %s" % (distributed.title(case), verdict))
                    seen[case].append(seconds)
            t = {k: statistics.median(v) for k, v in seen.items()}
            ratio = (t[large] - t["start"]) / (t[small] - t["start"])
            failed += ratio > most
            print(
                "%-44s %5.2f s %5.2f s  %4.2f times, at most %.2f%s"
                % (title, t[large], t[small], ratio, most, "  FAILED" if ratio > most else ""),
                flush=True,
            )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
