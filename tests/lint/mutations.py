#!/usr/bin/env python3
"""Mutations of correct programs and tables: each is found, nearly all at the exact event, and no
correct
program is accused. Plain Python 3.

    tests/lint/mutations.py [--isomer build/isomer] [--seeds 4] [--exact 0.95] [--show KIND]"""

import argparse
import copy
import json
import os
import random
import tempfile

import mutate_events
import mutate_tables
import programs
from harness import Lint, ROOT, check, finish


class Count:
    def __init__(self):
        self.made, self.found, self.exact, self.alone = 0, 0, 0, 0


def judge(x, kinds, places, count, what, show):
    """Found: a finding of a right kind; exact: the place is among its events; alone: there is no
    other."""
    all_findings = x.report["findings"] if x.report else []
    right = [f for f in all_findings if f["kind"] in kinds]
    exact = [f for f in right if any(tuple(e) in places for e in f["events"])]
    count.made += 1
    count.found += bool(right)
    count.exact += bool(exact)
    alone = len([f for f in all_findings if f["severity"] == "error" or f in right]) == 1
    count.alone += alone
    if not right or not exact or (show and (not alone or show == "all")):
        print(
            "%s: %s at %s, status %d: %s"
            % (
                what,
                kinds,
                places,
                x.status,
                x.text if show else [(f["kind"], f["events"]) for f in all_findings],
            ),
            flush=True,
        )


def write(path, d):
    with open(path, "w") as f:
        json.dump(d, f)


def of_events(o, where, counts):
    path = os.path.join(where, "x.json")
    for family in programs.FAMILIES:
        for seed in range(o.seeds):
            base = family(random.Random(seed))
            write(path, base)
            x = Lint(o.isomer, path, "--strict")
            check(x.status == 0, "%s %d is correct: %s", family.__name__, seed, x.text)
            for name, mutate in mutate_events.MUTATIONS.items():
                if o.only not in name:
                    continue
                d = copy.deepcopy(base)
                expected = mutate(d, random.Random(seed * 1000 + len(name)))
                if expected:
                    write(path, d)
                    judge(
                        Lint(o.isomer, path),
                        expected[0],
                        expected[1],
                        counts.setdefault(name, Count()),
                        "%s %d %s" % (family.__name__, seed, name),
                        o.show,
                    )


def of_tables(o, where, counts):
    path = os.path.join(where, "x.csv")
    folder = os.path.join(ROOT, "tests", "lint", "tables")
    for name in sorted(os.listdir(folder)):
        if ".deferred" in name:
            continue
        base = mutate_tables.read(os.path.join(folder, name))
        for seed in range(max(1, o.seeds // 2)):
            for kind, mutate in mutate_tables.MUTATIONS.items():
                if o.only not in kind:
                    continue
                rows = copy.deepcopy(base)
                expected = mutate(rows, random.Random(seed * 1000 + len(kind)))
                if expected:
                    mutate_tables.write(path, rows)
                    judge(
                        Lint(o.isomer, path),
                        expected[0],
                        expected[1],
                        counts.setdefault(kind, Count()),
                        "%s %d %s" % (name, seed, kind),
                        o.show,
                    )


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--isomer", default=os.path.join(ROOT, "build", "isomer"))
    p.add_argument("--seeds", type=int, default=2)
    p.add_argument("--exact", type=float, default=0.95)
    p.add_argument("--only", default="", help="kinds whose name holds this")
    p.add_argument("--show", default="", help="crowded: where there is more than one finding; all")
    o = p.parse_args()
    events, tables = {}, {}
    with tempfile.TemporaryDirectory() as where:
        of_events(o, where, events)
        of_tables(o, where, tables)
    for title, counts, least in (("events", events, 40), ("tables", tables, 20)):
        total = [
            sum(getattr(c, k) for c in counts.values()) for k in ("made", "found", "exact", "alone")
        ]
        print(
            "%s: %d kinds, %d made, %d found, %d at the exact event, %d as the only finding"
            % ((title, len(counts)) + tuple(total))
        )
        check(o.only or len(counts) >= least, "%d kinds of mutations of %s", len(counts), title)
        check(total[1] == total[0], "%s: %d of %d are found", title, total[1], total[0])
        check(
            total[2] >= o.exact * total[0],
            "%s: %d of %d at the exact event",
            title,
            total[2],
            total[0],
        )
    finish()


main()
