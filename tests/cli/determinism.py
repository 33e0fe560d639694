#!/usr/bin/env python3
"""The same seed gives the same bytes, any seed the same verdict, and so do exchanged sides. Plain
Python 3.

    tests/cli/determinism.py [--isomer build/isomer] [--seeds 10] [--captures DIR] [--only TEXT]
    [--quick] [--jobs N]

For the pairs of models/ (one correct pair and one bug of each family; --quick: of seeds 0 and 1
only) and with --captures all that lie in one family's folder there. Bytes are those of the report
without `stats` and of the text. One line per failure; the last line is `N passed, N failed`."""

import argparse
import itertools
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
STATUS = {0: "equivalent", 1: "different", 3: "undecided"}


def run(isomer, left, right, seed, *more):
    """(verdict, bytes)"""
    with tempfile.TemporaryDirectory() as tmp:
        path = os.path.join(tmp, "r.json")
        p = subprocess.run(
            [
                isomer,
                "compare",
                left,
                right,
                "--seed",
                str(seed),
                "--no-stats",
                "--json",
                path,
                *more,
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            timeout=1200,
        )
        if p.returncode not in STATUS:
            raise RuntimeError(
                "exit status %d: %s"
                % (p.returncode, p.stderr.decode("utf-8", "replace")[-300:].strip())
            )
        return STATUS[p.returncode], p.stdout + open(path, "rb").read()


def check(o, left, right):
    """Returns the failure, or None."""
    first = run(o.isomer, left, right, 0)
    if run(o.isomer, left, right, 0)[1] != first[1]:
        return "two runs give other bytes"
    for seed in range(1, o.seeds):
        verdict = run(o.isomer, left, right, seed)[0]
        if verdict != first[0]:
            return "%s with seed 0, %s with seed %d" % (first[0], verdict, seed)
    for seed in (0,) if o.quick else (0, 1):
        verdict = run(o.isomer, right, left, seed)[0]
        if verdict != first[0]:
            return "%s, and %s with the sides exchanged (seed %d)" % (first[0], verdict, seed)
    return None


def families(folder):
    for family in sorted(os.listdir(folder)):
        sides = sorted(
            s
            for s in (
                os.listdir(os.path.join(folder, family))
                if os.path.isdir(os.path.join(folder, family))
                else ()
            )
            if os.path.exists(os.path.join(folder, family, s, "graph.json"))
        )
        if len(sides) > 1:
            yield os.path.join(folder, family), sides


def pairs(o):
    if o.captures:
        for folder, sides in families(o.captures):
            for a, b in itertools.combinations(sides, 2):
                if not ("bug" in a and "bug" in b):
                    yield os.path.join(folder, a), os.path.join(folder, b)
        return
    for folder, sides in families(os.path.join(ROOT, "models")):
        good = [s for s in sides if "bug" not in s]
        bugs = [s for s in sides if "bug" in s]
        yield os.path.join(folder, good[0]), os.path.join(folder, good[-1])
        for bug in bugs[: 1 if o.quick else None]:
            yield os.path.join(folder, good[0]), os.path.join(folder, bug)


def main():
    a = argparse.ArgumentParser(description="same seed same bytes, any seed same verdict")
    a.add_argument("--isomer", default=os.path.join(ROOT, "build", "isomer"))
    a.add_argument("--captures", default="", help="a folder of families of captures")
    a.add_argument("--seeds", type=int, default=10)
    a.add_argument("--only", default="", help="pairs whose paths hold this")
    a.add_argument("--quick", action="store_true")
    a.add_argument("--jobs", type=int, default=2)
    o = a.parse_args()
    o.isomer = os.path.abspath(o.isomer)
    if o.quick:
        o.seeds = min(o.seeds, 2)

    def attempt(pair):
        try:
            return check(o, *pair)
        except Exception as e:
            return str(e)

    passed = failed = 0
    todo = [p for p in pairs(o) if o.only in " ".join(p)]
    with ThreadPoolExecutor(o.jobs) as pool:
        for pair, wrong in zip(todo, pool.map(attempt, todo)):
            passed += wrong is None
            failed += wrong is not None
            if wrong:
                print("FAILED %s %s: %s" % (*pair, wrong.replace("\n", " ")), flush=True)
    print("%d passed, %d failed" % (passed, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
