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

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "pairs"))
import exchanged_programs  # noqa: F401  adds programs
import megatron_programs  # noqa: F401  too
import own_programs  # noqa: F401  too
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
        if bad in p.undecided:
            check(r.status == 3, "%s: nothing can be said of it: %s", name, r.last)
            continue
        if not bad:
            check(r.status == 0, "%s: accused: %s", name, r.last)
            continue
        kinds = r.kinds() if r.report else []
        wanted = p.kind if isinstance(p.kind, list) else [p.kind]
        found = check(kinds == wanted, "%s: %s is not found: %s", name, p.kind, r.last)
        if found and p.where:
            op = r.report["findings"][0]["name"]
            check(p.where in op, "%s: found at %s", name, op)


def said(isomer, folder):
    """A user's words about mesh and placements, and the errors in them."""
    p = PROGRAMS["row parallel"]
    at, one, bare = (os.path.join(folder, n) for n in ("said", "one-rank", "unsaid"))
    p.write(at, False)
    p.write(one, False, ranks=1)
    p.write(bare, False, said=False)
    lines = os.path.join(folder, "placements.txt")

    def run(text, *args, capture=bare):
        with open(lines, "w", encoding="utf-8") as f:
            f.write(text)
        return Lint(isomer, capture, "--placements", lines, *args)

    good = "# shards\nx = S(1)\n* = ranks S(1)\n"
    check(run(good).status == 0, "a placements file: %s", run(good).last)
    check(Lint(isomer, bare).status == 0, "leaves are guessed")
    uneven = os.path.join(folder, "uneven")
    PROGRAMS["mean of uneven shards"].write(uneven, False, said=False)
    check(Lint(isomer, uneven).status == 0, "leaves are guessed that have shards of other sizes")
    chance = os.path.join(folder, "chance")
    PROGRAMS["tokens that are equal by chance"].write(chance, False, said=False)
    r = Lint(isomer, chance)
    check(r.status == 0, "equal tokens are no replicas: %s", r.last)
    stars = "x = S(1)\n" + "*r" * 60 + "*q = R\n*w* = S(1)\n"
    check(run(stars).status == 0, "patterns with many stars: %s", run(stars).last)
    for text, why in (
        ("x = S(7)\nw = S(1)\n", "does not fit its shapes"),
        ("x = S(0)\nv = R\n", 'no leaf is called "v"'),
        ("x = Q\n", ":1: "),
        ("x\n", ":1: "),
        ("x = S(1), S(1)\n", ":1: "),
        ("output z = R\n", 'no output is called "z"'),
    ):
        r = run(text)
        check(r.status == 2 and why in r.text, "%r: %s", text, r.text)
    for args, why in (
        (("--mesh", "tp=3"), "has 2 ranks"),
        (("--mesh", "tp"), "not of the form"),
        (("--mesh", ""), "not of the form"),
        (("--mesh", "a=2,a=1"), "two axes"),
    ):
        r = Lint(isomer, at, *args)
        check(r.status == 2 and why in r.text, "%r: %s", args, r.text)
    check("of one rank" in Lint(isomer, one).text, "one rank")
    check(run("output y = P(sum)\n").status == 1, "an output that is declared otherwise")
    r = Lint(isomer, at)
    placed = {p["node"][1]: p for p in r.report["placements"]}
    kinds = sorted(p["placement"] for p in placed.values())
    check(kinds == ["P(sum)", "R", "S(1)", "S(1)"], "placements: %r", kinds)
    check(all(p["evidence"] == "proved" for p in placed.values()), "evidence")


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
        if not o.truth and not o.only:
            said(o.isomer, folder)
    finish()


if __name__ == "__main__":
    sys.exit(main())
