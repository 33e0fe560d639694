#!/usr/bin/env python3
"""Pairs of parallel.py without the lines that say what outputs are made of: the relation that is
inferred is the generator's own. A gradient that nobody adds up over the ranks is a surprising sum.

    tests/pairs/inferred.py [--isomer build/isomer] [--only TEXT] [--table]

The last line is `N passed, N failed`."""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import distributed
import parallel
from world import World

# kind, model, ranks, layers, backward
CASES = [
    ("data", "gpt", 2, 1, False),
    ("data", "llama", 4, 1, False),
    ("zero", "gpt", 2, 1, False),
    ("context", "llama", 2, 1, False),
    ("exchange", "llama", 2, 1, False),
    ("tensor", "llama", 2, 1, False),
    ("sequence", "gpt", 4, 1, False),
    ("tensor", "llama", 2, 1, True),
    ("zero", "llama", 2, 1, True),
]


def renamed(text):
    return re.sub(r"\.part(\d+)", r"_rank\1", text)


def own_lines(outputs):
    """The generator's own relations of its outputs: {name: expression}."""
    found = {}
    for line in outputs.lines:
        if line.startswith("output "):
            name, said = line[len("output ") :].split(" = ", 1)
            found[name] = renamed(said)
    return found


def refined(isomer, folder, sides):
    """(verdict, what is said of each output) without lines about outputs."""
    (lg, lo), (rg, ro) = sides
    ro.at = {renamed(k): v for k, v in ro.at.items()}
    lg.write(os.path.join(folder, "left"), lo.at)
    rg.write(os.path.join(folder, "right"), ro.at)
    relations, report = os.path.join(folder, "relations"), os.path.join(folder, "report.json")
    with open(relations, "w", encoding="utf-8") as f:
        f.write("".join(x + "\n" for x in ro.lines if not x.startswith("output ")))
    command = [isomer, "compare", os.path.join(folder, "left"), os.path.join(folder, "right")]
    command += ["--refine", "--json", report]
    if os.path.getsize(relations):
        command += ["--relations", relations]
    p = subprocess.run(command, capture_output=True, preexec_fn=distributed.limits)
    verdict = distributed.VERDICT.get(p.returncode, "crash")
    if verdict == "error":
        return p.stderr.decode("utf-8", "replace").strip(), []
    with open(report, encoding="utf-8") as f:
        return verdict, json.load(f)["refinement"]


def plain(expression):
    """Without what only says how it is written: `slice` of a right order, spaces, quotes."""
    return re.sub(r'["\s]', "", expression)


def as_said(case, isomer):
    """Nothing, or what is otherwise than the generator says."""
    sides = parallel.build(*case)
    own = own_lines(sides[1][1])
    with tempfile.TemporaryDirectory() as folder:
        verdict, found = refined(isomer, folder, sides)
    if verdict != "equivalent":
        return verdict
    for name in sides[0][1].at:
        relations = [plain(f["relation"]) for f in found if f["output"] == name]
        want = plain(own.get(name, name))
        if want not in relations:
            return "%s is %s, and should be %s" % (name, "; ".join(relations) or "nothing", want)
        odd = [f for f in found if f["output"] == name and f["surprising"]]
        if odd:
            return "%s is surprising: %s" % (name, odd[0]["surprising"])
    return None


def unreduced(isomer, model):
    """Gradients that each rank keeps for itself."""
    reduce = World.all_reduce
    World.all_reduce = lambda w, v, op="sum", across=False, taped=True: (
        v if op == "avg" and not taped else reduce(w, v, op, across, taped)
    )
    try:
        sides = parallel.build("data", model, 2, 1, True)
    finally:
        World.all_reduce = reduce
    with tempfile.TemporaryDirectory() as folder:
        verdict, found = refined(isomer, folder, sides)
    # The bias of keys has no gradient: what is there is rounding.
    silent = [
        f["output"]
        for f in found
        if f["output"].startswith("grad.")
        and not f["output"].endswith("k.bias")
        and ("sum" not in f["relation"] or not f["surprising"])
    ]
    if verdict == "equivalent":
        return "equivalent"
    if not found or silent:
        return "%s: not said of %s" % (verdict, ", ".join(silent) or "any")
    return None


def main():
    a = argparse.ArgumentParser(description="relations of outputs, inferred")
    a.add_argument("--isomer", default=os.path.join(distributed.ROOT, "build", "isomer"))
    a.add_argument("--only", default="")
    a.add_argument("--table", action="store_true", help="a line for each pair")
    options = a.parse_args()
    checks = [(distributed.title(c), lambda c=c: as_said(c, options.isomer)) for c in CASES]
    checks += [
        ("gradients of %s that nobody adds up" % m, lambda m=m: unreduced(options.isomer, m))
        for m in ("gpt", "llama")
    ]
    passed = failed = 0
    for name, check in checks:
        if options.only not in name:
            continue
        wrong = check()
        passed, failed = passed + (wrong is None), failed + (wrong is not None)
        if wrong or options.table:
            print("%s%s: %s" % ("FAILED " if wrong else "", name, wrong or "as said"), flush=True)
    print("%d passed, %d failed" % (passed, failed))
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
