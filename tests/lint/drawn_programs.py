#!/usr/bin/env python3
"""Programs of 2 to 4 ranks that are drawn: operators, shapes, collectives and groups, each with a
wrong twin, in which one step is another. What is wrong is seen by running both with PyTorch beside
the program of one rank: a twin that is off may not be CLEAN, one that is not may not be accused.

    tests/lint/drawn_programs.py [--isomer build/isomer] [--count 200] [--seed 0] [--keep DIR]

The last lines count what was found and what was undecided. Needs a Python with torch."""

import argparse
import os
import random
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "pairs"))
from harness import ROOT, Lint, check, finish
from placed_programs import Program
from placements import far

SIZE = 12  # rows and columns: 2, 3 and 4 go into it
WORD = {0: "clean", 1: "found", 3: "undecided"}
BENT = ("gelu", "tanh", "sigmoid", "silu", "exp")


class Drawn:
    """The steps of a program, as (what, detail, how the tensor lies before it)."""

    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.ranks, self.mesh = self.rng.choice(
            [(2, None), (3, None), (4, None), (4, {"dp": 2, "tp": 2})]
        )
        self.start = self.rng.choice(("R", "S0", "S1"))
        if self.mesh:
            self.start = "R"  # of a rank's own rows
        self.steps, lies = [], self.start
        for _ in range(self.rng.randint(3, 8)):
            what, detail, after = self.rng.choice(self.steps_from(lies))
            self.steps.append((what, detail, lies))
            lies = after
        while lies != "R":
            what, detail, after = self.rng.choice(self.meetings(lies))
            self.steps.append((what, detail, lies))
            lies = after
        self.at = self.rng.randrange(len(self.steps))
        after = self.steps[self.at + 1][2] if self.at + 1 < len(self.steps) else "R"
        self.fault = self.rng.choice(self.faults(self.steps[self.at][0], after))

    def meetings(self, lies):
        return {
            "P": [("reduce", "sum", "R"), ("scatter", "sum", "S0")],
            "S0": [("gather", 0, "R")],
            "S1": [("gather", 1, "R")],
            "R": [("part", 0, "S0"), ("part", 1, "S1")],
        }[lies]

    def steps_from(self, lies):
        out = self.meetings(lies) * 2 + [("times", self.rng.choice((0.5, -1.5, 3.0)), lies)]
        if lies != "P":
            out += [("bent", self.rng.choice(BENT), lies), ("add", lies, lies)]
        if lies in ("R", "S0"):
            out += [("norm", None, lies), ("softmax", None, lies)]
        if lies == "R":
            out.append(("columns", None, "S1"))
        if lies == "S1":
            out += [("rows", None, "P")] * 2
        else:
            out.append(("linear", None, lies))
        return out

    def faults(self, what, after):
        """What the wrong twin does in place of a step, or behind it. What all ranks may rightly do
        to their tensors is none: it is another model."""
        again = ["sum behind", "avg behind", "max behind"]
        if what == "reduce":
            return ["none", "avg", "max", "bent before"] + again + ["across"] * bool(self.mesh)
        if what == "scatter":
            return ["avg", "max", "bent before"]
        if what == "gather":
            return ["sum", "across"] if self.mesh else ["sum", "shuffled"]
        if what == "part" and self.mesh:
            return ["by the other axis"]
        if after == "P":
            return again + ["bias", "bent behind"]
        return again + ["softmax behind"] * (after == "S1")

    def build(self, w, bad):
        y = self.first(w)
        for k, (what, detail, lies) in enumerate(self.steps):
            wrong = self.fault if bad and w.n > 1 and k == self.at else None
            y = self.step(w, y, k, (what, detail, lies), wrong)
        return {"y": w.gathered(y, 0, across=w.n > 1) if self.mesh else y}

    def first(self, w):
        if self.mesh:
            return w.batch("x", 2 * SIZE, SIZE)
        if self.start == "R":
            return w.x("x", SIZE, SIZE)
        return w.cut_x("x", int(self.start[1]), SIZE, SIZE)

    def step(self, w, y, k, step, wrong):
        what, detail, lies = step
        name = "p%d" % k
        if wrong == "bent before":
            y = y.tanh()
        if what in ("reduce", "scatter", "gather"):
            return self.meet(w, y, what, detail, wrong)
        if what == "part":
            own, other = y.shape[detail] // w.inner, wrong == "by the other axis"
            at = w.each(lambda r: (r // w.inner if other else r % w.inner) * own)
            y = y.map(lambda t, a: t.slice(detail, a, a + own), at)
        elif what == "times":
            y = y * detail
        elif what == "bent":
            y = getattr(y, detail)()
        elif what == "add":
            y = y + y.sigmoid()
        elif what == "norm":
            y = y.layer_norm(w.param(name + ".g", SIZE), w.param(name + ".b", SIZE))
        elif what == "softmax":
            y = y.softmax(-1)
        elif what == "columns":
            y = y.linear(w.cut(name, 0, SIZE, SIZE))
        elif what == "rows":
            y = y.linear(w.cut(name, 1, SIZE, SIZE))
        else:
            y = y.linear(w.param(name, SIZE, SIZE))
        return self.behind(w, y, wrong, name)

    def behind(self, w, y, wrong, name):
        if wrong == "bias":
            return y + w.param(name + ".bias", SIZE)
        if wrong == "bent behind":
            return y.gelu()
        if wrong == "softmax behind":
            return y.softmax(-1)
        if wrong and wrong.endswith(" behind"):
            return w.all_reduce(y, wrong.split()[0])
        return y

    def meet(self, w, y, what, detail, wrong):
        across = wrong == "across"
        if what == "reduce":
            if wrong != "none":
                y = w.all_reduce(y, wrong if wrong in ("avg", "max") else detail, across=across)
            return self.behind(w, y, wrong, "")
        if what == "scatter":
            return w.scattered(y, 0, op=wrong if wrong in ("avg", "max") else detail)
        if wrong == "sum":
            y = w.all_reduce(y)
        if wrong == "shuffled":  # each rank has what another one had
            n = len(y.each)
            y = w.each(lambda r: y.each[(r + 1) % n] * 1.0)
        return w.gathered(y, detail, across=across)


def one(o, folder, seed, tally):
    d = Drawn(seed)
    p = Program(d.build, None, d.ranks, d.mesh, None, ())
    whole, _ = p.values(1, False)
    for bad in (False, True):
        name = "%d-%s" % (seed, d.fault.replace(" ", "-") if bad else "right")
        try:
            off = far(p.values(p.ranks, bad)[0], whole)
            at = os.path.join(o.keep or folder, name)
            p.write(at, bad)
        except (AssertionError, RuntimeError, IndexError):
            continue  # its shapes do not fit: nobody could have captured it
        check(bad or not off > 1e-5, "%s: the right twin is off by %g", name, off)
        r = Lint(o.isomer, at)
        word, wrong = WORD.get(r.status, "error"), not off < 1e-6
        what = "%s at %d of %s" % (d.fault, d.at, " ".join(s[0] for s in d.steps))
        check(word != "error", "%s: %s", name, r.last)
        if 1e-6 <= off < 1e-5:  # a norm behind the fault hides all of it but its epsilon
            key = ("masked", word)
            tally[key] = tally.get(key, 0) + 1
            continue
        if wrong:
            check(word != "clean", "%s: off by %g, and clean: %s", name, off, what)
        else:
            check(word != "found", "%s: accused: %s: %s", name, r.last, what)
        if word == "undecided":
            print("open: %s: %s: %s" % (name, r.last, what if bad else ""), flush=True)
        key = ("wrong" if wrong else "right", word)
        tally[key] = tally.get(key, 0) + 1


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--isomer", default=os.path.join(ROOT, "build", "isomer"))
    p.add_argument("--count", type=int, default=200)
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--keep")
    o = p.parse_args()
    o.isomer, tally = os.path.abspath(o.isomer), {}
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(o.seed, o.seed + o.count):
            one(o, folder, seed, tally)
    for (truth, word), n in sorted(tally.items()):
        print("%-6s %-9s %d" % (truth, word, n))
    finish()


main()
