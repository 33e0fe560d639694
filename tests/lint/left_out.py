#!/usr/bin/env python3
"""Collectives that are left out where shapes agree: `isomer lint` may not call that clean. The
programs are those of placements.py and drawn exchanges of shards; what is wrong is seen by running
both beside the program of one rank, with PyTorch.

    tests/lint/left_out.py [--isomer build/isomer] [--count 40] [--seed 0] [--only TEXT]
                           [--keep DIR]

The last lines count what was found and what was undecided. Needs a Python with torch."""

import argparse
import os
import random
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "pairs"))
import placements  # adds programs, too
from harness import ROOT, Lint, check, finish
from placed_programs import PROGRAMS, Placed, Program
from world import Named, Ranks

WORD = {0: "clean", 1: "found", 3: "undecided"}


class Lacking(Placed):
    """A World that leaves its k-th collective out, if shapes allow that."""

    def __init__(self, g, n, inner, lacks):
        Placed.__init__(self, g, n, inner)
        self.lacks, self.met, self.left = lacks, 0, None

    def collective(self, v, f, across=False):
        out = Placed.collective(self, v, f, across)
        if self.n == 1:
            return out
        self.met += 1
        if self.met - 1 == self.lacks and all(a.shape == b.shape for a, b in zip(v.each, out.each)):
            self.left = self.g.nodes[-1]["op"]
            return Ranks(self, list(v.each))
        return out


class Left(Program):
    """A program of which a collective is left out."""

    def __init__(self, p, lacks, ranks=None):
        Program.__init__(self, p.build, p.kind, ranks or p.ranks, p.mesh, None, ())
        self.lacks, self.left, self.met = lacks, None, 0

    def graph(self, ranks, bad, inner=None):
        w = Lacking(Named(), ranks, inner, self.lacks if bad else -1)
        flat = {}
        for name, v in self.build(w, False).items():
            for r, t in enumerate(v.each):
                flat[name if r == 0 else "%s_rank%d" % (name, r)] = t
        self.left, self.met = w.left or self.left, max(w.met, self.met)
        return w, flat


# ---- drawn exchanges ----


class Exchanged:
    """Rows of tokens are laid out by rank, exchanged, worked on and brought back, in several ways
    of layout and of work; what comes back is used beside what has stayed."""

    def __init__(self, seed):
        rng = random.Random(seed)
        self.rng, self.ranks = rng, rng.choice((2, 4, 4))
        self.mesh = None
        self.own, self.width = rng.choice((1, 2)) * 4, rng.choice((4, 6, 8))
        self.local = rng.choice((1, 1, 2))  # experts of a rank
        self.layout = rng.choice(("all", "part", "gated", "heads"))
        self.work = rng.choice(("linear", "expert", "expert", "bent", "norm"))
        self.after = rng.choice(("sum", "gate", "residual", "norm", "linear", "mean"))
        self.gives = rng.choice(("gathered", "gathered", "loss", "squares"))

    def __str__(self):
        return "%d ranks, %s, %s, %s, %s" % (
            self.ranks,
            self.layout,
            self.work,
            self.after,
            self.gives,
        )

    def build(self, w, bad):
        n, own, d = w.n, self.own * self.ranks // w.n, self.width
        x, experts = w.cut_x("x", 0, self.own * self.ranks, d), self.local * self.ranks
        mine = experts // n
        gate = x.linear(w.param("gate", experts, d)).softmax(-1)
        if self.layout == "heads":
            return self.heads(w, x, own)
        if self.layout == "gated":  # each expert gets all tokens, weighed
            slots = gate.map(lambda t: t.t().unsqueeze(2)) * x.map(lambda t: t.unsqueeze(0))
        elif self.layout == "all":
            slots = x.map(lambda t: t.unsqueeze(0).expand(experts, own, d))
            slots = slots * 1.0
        else:  # an equal part of each rank's tokens, by their order
            return self.parts(w, x, own)
        there = slots.view(n, mine, own, d)
        there = w.all_to_all(there, 0, 0) if n > 1 else there
        h = there.transpose(0, 1).reshape(mine, n * own, d)
        h = self.works(w, h, experts, d).view(mine, n, own, d).transpose(0, 1)
        h = w.all_to_all(h, 0, 0) if n > 1 else h.reshape(n, mine, own, d)
        return self.ends(w, x, gate, h.reshape(experts, own, d))

    def works(self, w, h, experts, d):
        if self.work == "expert":
            return h.bmm(w.cut("up", 0, experts, d, d)).gelu()
        if self.work == "linear":
            return h.linear(w.param("up", d, d)).gelu()
        if self.work == "norm":
            return h.layer_norm(w.param("ng", d), w.param("nb", d))
        return h.silu()

    def ends(self, w, x, gate, h):
        """h: for each expert, what it makes of this rank's tokens."""
        d = self.width
        if self.after in ("gate", "residual"):
            h = h * gate.map(lambda t: t.t().unsqueeze(2))
        y = h.mean([0]) if self.after == "mean" else h.sum([0])
        if self.after == "residual":
            y = y + x
        if self.after == "norm":
            y = y.layer_norm(w.param("g", d), w.param("b", d))
        if self.after == "linear":
            y = y.linear(w.param("out", 6, d))
        return self.given(w, y)

    def given(self, w, y):
        if self.gives == "gathered":
            return {"y": w.gathered(y, 0)}
        if self.gives == "squares":
            y = y * y
        dims = list(range(len(y.shape)))
        return {"loss": w.all_reduce(y.mean(dims), "avg")}

    def parts(self, w, x, own):
        """Part k of a rank's tokens is worked on by rank k. One rank alone does the same parts."""
        d, n, step = self.width, self.ranks, self.own // self.ranks
        if step == 0:
            return self.heads(w, x, own)
        h = x.view(n, step, d) if w.n > 1 else x.view(n, n, step, d).transpose(0, 1)
        h = w.all_to_all(h, 0, 0) if w.n > 1 else h
        h = h.reshape(1 if w.n > 1 else n, n * step, d)
        h = self.works(w, h, n, d)
        h = h.view(n, step, d) if w.n > 1 else h.view(n, n, step, d).transpose(0, 1)
        h = w.all_to_all(h, 0, 0) if w.n > 1 else h
        y = h.reshape(own, d)
        if self.after in ("gate", "residual"):
            y = y + x
        return self.given(w, y)

    def heads(self, w, x, own):
        d, n, mine = self.width, w.n, 4 // w.n
        h = x.linear(w.param("q", 4 * d, d)).view(own, n, mine, d).transpose(0, 1)
        h = w.all_to_all(h, 0, 0) if n > 1 else h
        h = h.reshape(own * n, mine, d).transpose(0, 1)
        h = h.matmul(h.transpose(1, 2)).softmax(-1).matmul(h).transpose(0, 1)
        h = h.reshape(n, own, mine, d)
        h = w.all_to_all(h, 0, 0) if n > 1 else h
        y = h.transpose(0, 1).reshape(own, 4 * d)
        return self.given(w, y.linear(w.param("o", 6, 4 * d)))


# ---- running ----


def one(o, folder, name, p, tally, whole=None):
    """`p` right where it lacks nothing. Returns: the outputs of one rank."""
    whole = whole or p.values(1, False)[0]
    lacks = p.lacks >= 0
    try:
        ranks = p.values(p.ranks, lacks)[0]
        if lacks and not p.left:
            return whole
        off = placements.far(ranks, whole)
        at = os.path.join(o.keep or folder, name.replace(" ", "-"))
        p.write(at, lacks)
    except (AssertionError, RuntimeError, IndexError) as e:
        check(lacks, "%s: %s", name, e)
        return whole
    r = Lint(o.isomer, at)
    word, wrong = WORD.get(r.status, "error"), not off < 1e-6
    check(word != "error", "%s: %s", name, r.last)
    check(lacks or not wrong, "%s: the right program is off by %g", name, off)
    if wrong:
        check(word != "clean", "%s: off by %g without %s, and clean", name, off, p.left)
    else:
        check(word != "found", "%s: accused: %s", name, r.last)
    if word == "undecided" and o.verbose:
        print("open: %s: %s" % (name, r.last), flush=True)
    key = ("wrong" if wrong else "right", word)
    tally[key] = tally.get(key, 0) + 1
    return whole


def all_of(o, folder, name, p, tally, ranks=None):
    """The program, and without each of its collectives."""
    right = Left(p, -1, ranks)
    whole = one(o, folder, name, right, tally)
    for k in range(right.met):
        one(o, folder, "%s without %d" % (name, k), Left(p, k, ranks), tally, whole)


def main():
    a = argparse.ArgumentParser()
    a.add_argument("--isomer", default=os.path.join(ROOT, "build", "isomer"))
    a.add_argument("--count", type=int, default=40)
    a.add_argument("--seed", type=int, default=0)
    a.add_argument("--only", default="")
    a.add_argument("--keep")
    a.add_argument("-v", "--verbose", action="store_true")
    o = a.parse_args()
    o.isomer, tally = os.path.abspath(o.isomer), {}
    with tempfile.TemporaryDirectory() as folder:
        for name, p in PROGRAMS.items():
            # What is divided by a number that may be the ranks', a model may mean as it stands.
            if o.only in name and not name.endswith("and divided"):
                all_of(o, folder, name, p, tally)
        for seed in range(o.seed, o.seed + o.count):
            e = Exchanged(seed)
            name = "%d: %s" % (seed, e)
            if o.only in name:
                all_of(o, folder, name, Program(e.build, None, e.ranks, None, None, ()), tally)
    for (truth, word), n in sorted(tally.items()):
        print("%-6s %-9s %d" % (truth, word, n))
    finish()


if __name__ == "__main__":
    main()
