#!/usr/bin/env python3
"""How the time of `isomer compare` grows with ranks of one role, as a ratio measured in one run.

    tests/bench/role_growth.py [--isomer build/isomer] [--rounds 3] [--ranks 64]

The pairs are those of tests/pairs/roles.py: so many ranks against 8, on a batch that grows with
them; and 1,024 against 8, written once for all ranks, on one batch. Whole processes, both in each
round; of each the median processor time counts, less that of a capture of one node. Exit status 1
where the ranks cost more than they may: as many times as 8 do, to the power 0.7, since
half of what is added is to read them; written once, 1.5 times."""

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
import one_role
import roles

FEW, MANY, POWER, ONCE = 8, 1024, 0.7, 1.5


def write_once(folder, model, ranks, rows):
    whole = folder + "-whole"
    roles.write(whole, model, ranks, rows=rows)
    one_role.write(os.path.join(whole, "right"), os.path.join(folder, "right"), ranks)
    os.rename(os.path.join(whole, "left"), os.path.join(folder, "left"))


def growth(isomer, start, what, pairs, rounds, most):
    """Whether the second pair costs as much as it may: `pairs` by number of ranks."""
    few, many = sorted(pairs)
    seen = {0: [], few: [], many: []}
    for _ in range(rounds):
        seen[0].append(compare.measure([isomer, "compare", start, start])[0])
        for n, pair in pairs.items():
            sides = [os.path.join(pair, s) for s in ("left", "right")]
            seen[n].append(compare.measure([isomer, "compare", *sides, "--refine", "--quiet"])[0])
    t = {n: statistics.median(v) for n, v in seen.items()}
    ratio = (t[many] - t[0]) / (t[few] - t[0])
    print(
        "%-12s %4d ranks against %d  %5.2f s %5.2f s  %4.2f times, at most %.2f%s"
        % (what, many, few, t[many], t[few], ratio, most, "  FAILED" * (ratio > most)),
        flush=True,
    )
    return ratio <= most


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
            pairs = {n: os.path.join(tmp, model + str(n)) for n in (FEW, o.ranks)}
            for n, pair in pairs.items():
                roles.write(pair, model, n)
            most = (o.ranks / FEW) ** POWER
            failed += not growth(o.isomer, start, model, pairs, o.rounds, most)
            pairs = {n: os.path.join(tmp, "%s%d-once" % (model, n)) for n in (FEW, MANY)}
            for n, pair in pairs.items():
                write_once(pair, model, n, 2 * MANY)
            failed += not growth(o.isomer, start, model + ", once", pairs, o.rounds, ONCE)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
