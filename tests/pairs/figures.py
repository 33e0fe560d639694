#!/usr/bin/env python3
"""How many rules the comparisons of captured families need, and how many of them are proved.

    python3 tests/pairs/figures.py --isomer build/isomer DIR [DIR...]

Each DIR holds families, each family the captures of one model (as tests/pairs/captures.py has
them). Pairs of correct sides are compared; a rule counts as an instance in each pair that uses it,
and as one distinct rule by its two sides. Prints a line per family and one over all; exits 1 where
less than --least of the distinct rules are proved."""

import argparse
import collections
import concurrent.futures
import itertools
import json
import os
import subprocess
import sys


def pairs(folders, only):
    for folder in folders:
        for family in sorted(os.listdir(folder)):
            at = os.path.join(folder, family)
            if not os.path.isdir(at) or (only and family not in only):
                continue
            sides = [
                s
                for s in sorted(os.listdir(at))
                if os.path.exists(os.path.join(at, s, "graph.json")) and "bug" not in s
            ]
            for left, right in itertools.combinations(sides, 2):
                yield family, os.path.join(at, left), os.path.join(at, right)


def report(isomer, timeout, pair):
    family, left, right = pair
    run = subprocess.run(
        [isomer, "compare", left, right, "--timeout", str(timeout), "--json", "-"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    try:
        return family, left, right, json.loads(run.stdout)
    except ValueError:
        return family, left, right, None


class Count:
    def __init__(self):
        self.pairs = self.by_proof = self.instances = 0
        self.verdicts = collections.Counter()
        self.status = {}

    def add(self, answer):
        self.pairs += 1
        self.verdicts[answer["verdict"]] += 1
        self.by_proof += answer["verdict"] == "equivalent" and answer["evidence"] == "proved"
        for r in answer["rules"]:
            self.instances += 1
            self.status[r["lhs"], r["rhs"]] = r["status"]

    def line(self, name):
        proved = sum(s == "proved" for s in self.status.values())
        share = 100 * proved / len(self.status) if self.status else 100.0
        return "%-16s %5d %11d %8d %10d %9d %7d %6.1f %%" % (
            name,
            self.pairs,
            self.verdicts["equivalent"],
            self.by_proof,
            self.instances,
            len(self.status),
            proved,
            share,
        )


def main():
    p = argparse.ArgumentParser(description="rules that comparisons need, and how many are proved")
    p.add_argument("--isomer", default="build/isomer")
    p.add_argument("--only", action="append", help="this family only")
    p.add_argument("--timeout", type=int, default=120)
    p.add_argument("--jobs", type=int, default=2)
    p.add_argument(
        "--least", type=float, default=0.0, help="share of the distinct rules to be proved, of 1"
    )
    p.add_argument("--tested", action="store_true", help="list the rules that are not proved")
    p.add_argument("folder", nargs="+")
    o = p.parse_args()
    everything, families, models = Count(), {}, collections.defaultdict(set)
    with concurrent.futures.ThreadPoolExecutor(o.jobs) as pool:
        for family, left, right, answer in pool.map(
            lambda pair: report(o.isomer, o.timeout, pair), list(pairs(o.folder, o.only))
        ):
            if answer is None:
                print("no report: %s %s" % (left, right), file=sys.stderr)
                continue
            for count in (everything, families.setdefault(family, Count())):
                count.add(answer)
            for r in answer["rules"]:
                models[r["lhs"], r["rhs"]].add(answer["left"]["model"])
    print(
        "%-16s %5s %11s %8s %10s %9s %7s %8s"
        % ("family", "pairs", "equivalent", "by proof", "instances", "distinct", "proved", "share")
    )
    for family, count in sorted(families.items()):
        print(count.line(family))
    print(everything.line("all"))
    print("rules shared by two models or more: %d" % sum(len(m) > 1 for m in models.values()))
    if o.tested:
        for (lhs, rhs), status in everything.status.items():
            if status != "proved":
                print("%s: %s\n    <=> %s" % (status, lhs, rhs))
    proved = sum(s == "proved" for s in everything.status.values())
    return 1 if proved < o.least * len(everything.status) else 0


if __name__ == "__main__":
    sys.exit(main())
