#!/usr/bin/env python3
"""Defects planted in the parallel plans of matrix.py, one at a time: each has to be `different`, at
its place and named for what it is. PyTorch says whether a change is a defect at all.

    tests/train/planted.py [--isomer build/isomer] [-k TEXT] [--only KIND] [--world 2]
                           [--keep FOLDER] [--seed 1] [--show] [--least 90]

--keep: captures stay there, and are not made again. The last lines say by kind how many are
`different`, at their place and named; then `N passed, N failed`: one that is equivalent fails, and
so does a share below --least per cent that has the right place and kind."""

import argparse
import os
import random
import re
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(HERE)), "capture"))
import defects  # noqa: E402
import matrix  # noqa: E402
import steps  # noqa: E402


def steps_of(plan, nodes):
    """Nodes with their projections, which are one step of a program."""
    at = set(nodes)
    for n in plan.nodes:
        if n["op"] == "getitem" and defects.refs(n["args"]) & at:
            at.add(n["id"])
    return at


def near(plan, at):
    """The nodes of a defect, what they read and what reads them."""
    own = steps_of(plan, at)
    out = set(own)
    for n in plan.nodes:
        reads = defects.refs(n.get("args", []))
        if n["id"] in own:
            out |= reads
        if reads & own:
            out.add(n["id"])
    return steps_of(plan, out)


def judged(plan, at, kind, report):
    """Whether the first divergence is at the defect, and whether words name its kind."""
    found = report["divergences"]
    if not found:
        return False, False, "no divergence"
    d = found[0]
    hint = d["hint"] or ""
    said = "%s | %s: %s" % (d["left"] and d["left"]["id"], d["right"] and d["right"]["id"], hint)
    place = {d["right"]["id"]} if d["right"] else set()
    return bool(place & near(plan, at)), bool(re.search(defects.KINDS[kind], hint)), said


def plant(o, folder, row, right, kind, rng):
    """The verdict of one defect; None: the plan has no place for it."""
    left, plan, world = row
    for _ in range(4):
        wrong = right.copy()
        at = kind(wrong, rng)
        if at and defects.differs(right, wrong):
            break
    else:
        return None
    wrong.index()
    with tempfile.TemporaryDirectory() as temporary:
        there = os.path.join(temporary, "wrong")
        wrong.write(there)
        report = os.path.join(temporary, "report.json")
        one = steps.capture(folder, "decoders:" + left, 1)
        said, spent, line = steps.compare(o.isomer, one, there, report)
    if said["verdict"] != "different":
        return said["verdict"], False, False, line
    return (said["verdict"],) + judged(wrong, at, kind, said)


def table(counts):
    total = [0, 0, 0, 0]
    for name, c in sorted(counts.items()):
        print(
            "%-26s %3d planted, %3d different, %3d at the place, %3d named" % ((name,) + tuple(c))
        )
        total = [a + b for a, b in zip(total, c)]
    print(
        "%-26s %3d planted, %3d different, %3d at the place, %3d named" % (("all",) + tuple(total))
    )


def main():
    a = argparse.ArgumentParser()
    a.add_argument("--isomer", default=os.path.join(steps.ROOT, "build", "isomer"))
    a.add_argument("-k", default="", help="plans whose name and ranks hold this")
    a.add_argument("--only", default="", help="kinds whose name holds this")
    a.add_argument("--world", type=int, default=2)
    a.add_argument("--keep", help="folder of captures")
    a.add_argument("--seed", type=int, default=1)
    a.add_argument("--show", action="store_true")
    a.add_argument("--least", type=int, default=90)
    o = a.parse_args()
    counts, wrong, both = {}, 0, 0
    with tempfile.TemporaryDirectory() as temporary:
        folder = o.keep or temporary
        for row in matrix.table():
            if row[2] > o.world or not re.search(o.k, "%s-%d" % row[1:]):
                continue
            try:
                right = defects.Plan(steps.capture(folder, "decoders:" + row[1], row[2]))
            except steps.Failed as e:
                print("%s on %d: %s" % (row[1], row[2], str(e).splitlines()[-1]))
                continue
            for kind in defects.KINDS:
                rng = random.Random("%s %d %s %d" % (row[1], row[2], kind.__name__, o.seed))
                found = plant(o, folder, row, right, kind, rng) if o.only in kind.__name__ else None
                if not found:
                    continue
                c = counts.setdefault(kind.__name__, [0, 0, 0, 0])
                for k, x in enumerate((True, found[0] == "different", found[1], found[2])):
                    c[k] += x
                wrong += found[0] == "equivalent"
                both += found[1] and found[2]
                if o.show or found[0] == "equivalent":
                    marks = "%s%s" % (
                        "at" if found[1] else "--",
                        " named" if found[2] else " -----",
                    )
                    print(
                        "%s-%d %s: %s %s; %s"
                        % (row[1], row[2], kind.__name__, found[0], marks, found[3][:300]),
                        flush=True,
                    )
    table(counts)
    n = sum(c[0] for c in counts.values())
    print("%d of %d at the right place and named" % (both, n))
    failed = wrong + (100 * both < o.least * n)
    print("%d passed, %d failed" % (n - wrong, failed))
    return bool(failed or not n)


if __name__ == "__main__":
    sys.exit(main())
