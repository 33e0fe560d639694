#!/usr/bin/env python3
"""Ranks that bring different things to one sum: the squares of what all have are counted by one of
them alone, as a norm over a mesh of ranks has it.

    tests/pairs/role_norms.py [--isomer build/isomer] [--seed 1] [--count 4]
                              [--driver build/tests/capture/wrong_folds]

Right pairs are `equivalent` [proved] by ranks that are decided once, and `isomer check` says so.
The others are never equivalent: a rank counts what it alone has, or its share of what all have, or
each rank counts what all have. With --driver folds that are wrong on purpose are refused on all of
them. The last line is `N passed, N failed`."""

import argparse
import os
import random
import sys
import tempfile

import roles
from collectives import all_reduce, reduce_scatter
from dsl import f32
from input_cases import Graph, normals

# Which squares each rank brings: of its own d, of its share, of the drawn rank's d.
RIGHT = ("first", "another", "by turns", "shares")
WRONG = ("own", "one share", "each", "none")


def squares(x):
    return x.mul(x).sum(0)


def brings(g, kind, r, who, own):
    """What rank r brings, by its own tensors: h before the sum over ranks, d and e behind it."""
    nothing = g.zeros()
    h, d, e, share = own
    if kind == "by turns":  # two tensors of all, each counted by another rank
        return nothing + (squares(d) if r == who else squares(e) if r == (who + 1) % 2 else 0.0)
    if kind in ("shares", "each"):
        return nothing + squares(share if kind == "shares" else d)
    if r != (0 if kind == "first" else who) or kind == "none":
        return nothing
    return nothing + squares({"own": h, "one share": share}.get(kind, d))


def build(kind, ranks, who, x, w, side):
    n = len(w)

    def leaves(g, r):
        of_rank = "" if r is None else "rank%d." % r
        mine = x if r is None else x[r * n * ranks : (r + 1) * n * ranks]
        h = g.given(of_rank + "x", (len(mine) // n, n), [mine], f32)
        return h, h.mul(g.given(of_rank + "w", (n,), [w], f32))

    def one(g):
        h, hw = leaves(g, None)
        d, e = hw.sum(0).mul(0.5), hw.mul(hw).sum(0).mul(0.25)
        total = squares(d) + squares(e) if kind == "by turns" else squares(d)
        return [d.mul(total).add(e)]

    def all_of(g):
        hws = [leaves(g, r)[1] for r in range(ranks)]
        s = all_reduce([hw.sum(0) for hw in hws])
        t = all_reduce([hw.mul(hw).sum(0) for hw in hws])
        parts = reduce_scatter([hw.sum(0) for hw in hws], 0) if "share" in kind else [None] * ranks
        own = []
        for r in range(ranks):
            share = parts[r].mul(0.5) if parts[r] else None
            own.append((hws[r].sum(0).mul(0.5), s.mul(0.5), t.mul(0.25), share))
        total = all_reduce([brings(g, kind, r, who, own[r]) for r in range(ranks)])
        return [d.mul(total).add(e) for _, d, e, _ in own]

    return all_of if side else one


def write(folder, kind, draw):
    """Returns how many ranks there are."""
    ranks = draw.randint(4, 6)  # of fewer nothing is decided once
    n, who = ranks * draw.randint(1, 2), draw.randrange(2)
    x, w = normals(draw, ranks * ranks * n), normals(draw, n)
    for side, name in enumerate(("left", "right")):
        g = Graph()
        out = build(kind, ranks, who, x, w, side)(g)
        named = {"y_rank%d" % r if r else "y": y for r, y in enumerate(out)}
        g.write(os.path.join(folder, name), named)
    return ranks


def check(o, pair, kind, draw):
    """What is wrong."""
    ranks = write(pair, kind, draw)
    left, right = os.path.join(pair, "left"), os.path.join(pair, "right")
    if kind in RIGHT:
        wrong = roles.certified(o.isomer, pair, ranks)
    else:
        verdict = roles.compare(o.isomer, left, right, 20)[0]
        wrong = None if verdict in ("different", "undecided") else verdict
    if not wrong and o.driver:
        wrong = roles.wrong_folds(o.driver, pair, draw.randrange(1000), 8)
    return wrong


def main():
    a = argparse.ArgumentParser()
    a.add_argument("--isomer", default=os.path.join(roles.ROOT, "build", "isomer"))
    a.add_argument("--driver")
    a.add_argument("--seed", type=int, default=1)
    a.add_argument("--count", type=int, default=4)
    o = a.parse_args()
    passed = failed = 0
    draw = random.Random(o.seed)
    with tempfile.TemporaryDirectory() as folder:
        for k in range(o.count):
            for kind in RIGHT + WRONG:
                wrong = check(o, os.path.join(folder, "%s%d" % (kind, k)), kind, draw)
                passed, failed = passed + (not wrong), failed + bool(wrong)
                if wrong:
                    print("seed %d, %s %d: %s" % (o.seed, kind, k, wrong))
    print("%d passed, %d failed" % (passed, failed))
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
