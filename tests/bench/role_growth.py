#!/usr/bin/env python3
"""How the time of `isomer compare` grows with ranks of one role, as a ratio measured in one run.

    tests/bench/role_growth.py [--isomer build/isomer] [--rounds 3] [--ranks 64]

The pairs are those of tests/pairs/roles.py: so many ranks against 8. Whole processes, both in each
round; of each the median processor time counts, less that of a capture of one node. Exit status 1
where the ranks cost more than they may: as many times as 8 do, to the power 0.6."""

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
import roles

FEW, POWER = 8, 0.6


def main():
    a = argparse.ArgumentParser(description="time over ranks of one role")
    a.add_argument("--isomer", default=os.path.join(ROOT, "build", "isomer"))
    a.add_argument("--rounds", type=int, default=3)
    a.add_argument("--ranks", type=int, default=64)
    o = a.parse_args()
    failed = 0
    with tempfile.TemporaryDirectory() as tmp:
        start = os.path.join(tmp, "start")
        compare.one_node(start)
        for model in ("gpt", "llama"):
            seen = {0: [], FEW: [], o.ranks: []}
            for n in (FEW, o.ranks):
                roles.write(os.path.join(tmp, model + str(n)), model, n)
            for _ in range(o.rounds):
                seen[0].append(compare.measure([o.isomer, "compare", start, start])[0])
                for n in (FEW, o.ranks):
                    pair = [os.path.join(tmp, model + str(n), s) for s in ("left", "right")]
                    command = [o.isomer, "compare", *pair, "--refine", "--quiet"]
                    seen[n].append(compare.measure(command)[0])
            t = {n: statistics.median(v) for n, v in seen.items()}
            ratio, most = (t[o.ranks] - t[0]) / (t[FEW] - t[0]), (o.ranks / FEW) ** POWER
            failed += ratio > most
            print(
                "%-6s %d ranks against %d  %5.2f s %5.2f s  %4.2f times, at most %.2f%s"
                % (
                    model,
                    o.ranks,
                    FEW,
                    t[o.ranks],
                    t[FEW],
                    ratio,
                    most,
                    "  FAILED" * (ratio > most),
                ),
                flush=True,
            )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
