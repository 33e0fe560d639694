#!/usr/bin/env python3
"""`isomer lint CAPTURE`: programs of several ranks and their wrong twins (placed_programs.py).

    tests/lint/placements.py --isomer build/isomer [--only TEXT] [--truth] [--keep DIR]

Each wrong twin has its finding, at its operator, and no correct one has any. With --truth, which
needs a Python with torch, both are run beside the program of one rank: the correct one agrees with
it, the wrong one does not."""

import argparse
import os
import sys
import tempfile

from harness import Lint, check, finish
from placed_programs import PROGRAMS


def far(ranks, one):
    """The largest relative difference of the ranks' outputs from those of one rank."""
    worst = 0.0
    for name, b in ranks.items():
        a = one[name.split("_rank")[0]]
        if a.shape != b.shape:
            return float("inf")
        worst = max(worst, ((a - b).abs().max() / max(a.abs().max(), 1e-6)).item())
    return worst


def truth(name, p):
    one, _ = p.values(1, False)
    for bad in (False, True):
        try:
            off = far(p.values(p.ranks, bad)[0], one)
        except RuntimeError:  # the ranks' shapes do not fit
            off = float("inf")
        side = "wrong" if bad else "right"
        check((off > 1e-6) == bad, "%s: the %s twin is off by %g", name, side, off)


def lint(isomer, folder, name, p):
    for bad in (False, True):
        at = os.path.join(folder, name.replace(" ", "-") + ("-bad" if bad else ""))
        p.write(at, bad)
        r = Lint(isomer, at)
        if not bad:
            check(r.status == 0, "%s: accused: %s", name, r.last)
            continue
        kinds = r.kinds() if r.report else []
        found = check(kinds == [p.kind], "%s: %s is not found: %s", name, p.kind, r.last)
        if found and p.where:
            op = r.report["findings"][0]["name"]
            check(p.where in op, "%s: found at %s", name, op)


def main():
    a = argparse.ArgumentParser()
    a.add_argument("--isomer", default="build/isomer")
    a.add_argument("--only", default="")
    a.add_argument("--truth", action="store_true")
    a.add_argument("--keep")
    o = a.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for name, p in PROGRAMS.items():
            if o.only not in name:
                continue
            if o.truth:
                truth(name, p)
            else:
                lint(o.isomer, o.keep or folder, name, p)
    finish()


if __name__ == "__main__":
    sys.exit(main())
