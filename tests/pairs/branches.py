#!/usr/bin/env python3
"""Rules and pairs that turn on where an operator chooses or jumps, drawn from a seed, their truth
known by construction.

    tests/pairs/branches.py [--isomer build/isomer] [--seed N] [--rules N] [--pairs N] [--only KIND]
    [--write FILE] [--jobs N]

Each is an expression with a choice in it (a threshold, a comparison, a mask, a rounding, a bucket,
a rank) and a twin: another spelling of the same, or one that differs on few inputs (`>=` for `>`, a
threshold beside it, another rounding), inside a context that hides neither. Nothing that is false
may be proved, tested or equivalent, nothing that is true refuted or different, and at most a tenth
of what is true may stay open. One line for each that is wrong; the last line is `N passed, N
failed`."""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

import dsl
from branch_kinds import instance
from branch_terms import build, rule_text, variables

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
OPEN_SHARE = 0.10


def check_rules(options):
    items = [instance(options.seed, k, options.only) for k in range(options.rules)]
    with tempfile.TemporaryDirectory() as tmp:
        path, out = os.path.join(tmp, "r.rules"), os.path.join(tmp, "out.json")
        text = "".join(rule_text(n, l, r, rng) for n, _, l, r, rng in items)
        with open(options.write or path, "w", encoding="utf-8") as f:
            f.write(text)
        p = subprocess.run(
            [
                options.isomer,
                "rules",
                "check",
                options.write or path,
                "--json",
                out,
                "-q",
                "--jobs",
                str(options.jobs),
            ],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )
        if p.returncode not in (0, 1, 3):
            raise SystemExit("rules check: %d: %s" % (p.returncode, p.stderr.strip()[-400:]))
        with open(out, encoding="utf-8") as f:
            entries = {e["name"]: e for e in json.load(f)["rules"]}
    for name, true, _, _, _ in items:
        e = entries[name]
        yield (
            name,
            true,
            # A rule about integers that do not wrap claims nothing of those that do.
            e["status"] in ("proved", "tested") and "do not wrap" not in (e["method"] or ""),
            e["status"] == "refuted",
            "%s: %s" % (e["status"], e["reason"] or e["method"]),
        )


def captures_of(seed, k, only):
    """Pair `k`: its name, whether it is true, and what writes it to a folder."""
    name, true, left, right, rng = instance("pair %s" % seed, k, only)
    found = {}
    variables(left, found)
    variables(right, found)
    data = {
        v.op: [
            rng.randrange(v.limit or 10) if v.kind == "i" else rng.random() < 0.5
            for _ in range(dsl.count(v.shape))
        ]
        for v in found.values()
        if v.kind != "f"
    }

    def write(folder):
        for side, t in (("left", left), ("right", right)):
            g = dsl.Graph()
            g.write(os.path.join(folder, side), {"y": build(g, t, {}, data)})

    return name, true, write


def compare_pair(options, k):
    name, true, write = captures_of(options.seed, k, options.only)
    with tempfile.TemporaryDirectory() as tmp:
        write(tmp)
        p = subprocess.run(
            [options.isomer, "compare", os.path.join(tmp, "left"), os.path.join(tmp, "right")],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )
    says = (p.stdout.strip() or p.stderr.strip()).rsplit("\n", 1)[-1]
    if p.returncode not in (0, 1, 3):
        says = "status %d: %s" % (p.returncode, p.stderr.strip()[-300:])
    return name, true, p.returncode == 0, p.returncode == 1, says, (p.returncode not in (0, 1, 3))


def main():
    a = argparse.ArgumentParser(description="choices and jumps, drawn")
    a.add_argument("--isomer", default=os.path.join(ROOT, "build", "isomer"))
    a.add_argument("--seed", default="1")
    a.add_argument("--rules", type=int, default=360)
    a.add_argument("--pairs", type=int, default=24)
    a.add_argument("--only", default="", help="kinds whose name holds this")
    a.add_argument("--write", help="leave the rules in this file")
    a.add_argument("--show", action="store_true", help="what is open, too")
    a.add_argument("--jobs", type=int, default=min(2, os.cpu_count() or 1))
    options = a.parse_args()
    options.isomer = os.path.abspath(options.isomer)
    failed = passed = 0
    for what in ("rule", "pair"):
        if what == "rule":
            results = [r + (False,) for r in check_rules(options)] if options.rules else []
        else:
            with ThreadPoolExecutor(options.jobs) as pool:
                results = list(pool.map(lambda k: compare_pair(options, k), range(options.pairs)))
        n_true = sum(1 for r in results if r[1])
        undecided = 0
        for name, true, equal, different, says, broken in results:
            wrong = broken or (equal and not true) or (different and true)
            undecided += true and not equal and not different
            if wrong:
                failed += 1
                print("FAILED %s %s: %s" % (what, name, says))
            elif options.show and true and not equal:
                print("open %s %s: %s" % (what, name, says))
            passed += not wrong
        if undecided > OPEN_SHARE * n_true:
            failed += 1
            print("FAILED %d of %d true %ss are open" % (undecided, n_true, what))
        if results:
            print(
                "%ss: %d, %d true, %d of these open; %d false, %d of these shown different"
                % (
                    what,
                    len(results),
                    n_true,
                    undecided,
                    len(results) - n_true,
                    sum(1 for r in results if not r[1] and r[3]),
                )
            )
    print("%d passed, %d failed" % (passed, failed))
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
