"""Ranks that are another program than one of one rank, though each of their operators could be
taken for an operator on what they have together: for the driver tests/capture/wrong_folds.c, whose
prover says yes to everything, and for compare, which may not say `equivalent`."""

import os

from collectives import all_gather, all_reduce
from dsl import f32
from input_cases import Graph, normals

# What is not linear, and what looks at several rows.
EARLY = ("tanh", "square", "relu", "exp", "sigmoid", "abs", "by itself", "root")
ROWS = ("softmax", "cumsum", "flip", "mean", "largest")
KINDS = ("early", "rows", "pairs")


def bent(x, how):
    if how == "by itself":
        return x.mul(x)
    if how == "root":
        return x.square().add(1e-3).sqrt()
    return getattr(x, how)()


def across(x, how):
    if how == "softmax":
        return x.softmax(0)
    if how == "cumsum":
        return x.cumsum(0)
    if how == "flip":
        return x.flip(0)
    if how == "mean":
        return x.sub(x.mean(0, True))
    return x.sub(x.amax(0, True))


def build(rng, kind, ranks, x, w, side):
    """The outputs of the one rank (side 0), or of all of them."""
    early, rows, bend = rng.choice(EARLY), rng.choice(ROWS), rng.random() < 0.5

    def f(g):
        of, n = range(ranks) if side else [None], len(w)
        hs = []
        for r in of:
            mine = x if r is None else x[r * n * n : (r + 1) * n * n]
            of_rank = "" if r is None else "rank%d." % r
            h = g.given(of_rank + "x", (len(mine) // n, n), [mine], f32)
            h = h.mul(g.given(of_rank + "w", (n,), [w], f32))
            hs.append(h.tanh() if bend else h)
        if kind == "early":
            s = [bent(h.sum(0).mul(0.5), early) for h in hs]
            return [all_reduce(s)] * ranks if side else s
        s = [across(h, rows).mul(2.0) for h in hs]
        if kind == "pairs":
            s = [h.matmul(h.t()).sum(1) for h in hs]
        return [all_gather(s, 0)] * ranks if side else s

    return f


def write(folder, rng, kind, ranks):
    n = rng.randint(3, 5)
    x, w = normals(rng, ranks * n * n), normals(rng, n)
    state = rng.getstate()
    for side, name in enumerate(("left", "right")):
        g = Graph()
        rng.setstate(state)
        out = build(rng, kind, ranks, x, w, side)(g)
        named = {"y_rank%d" % r if r else "y": y for r, y in enumerate(out)}
        g.write(os.path.join(folder, name), named)
