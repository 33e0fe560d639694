#!/usr/bin/env python3
"""Pairs of parallel.py whose ranks are written in other words than the sequential side: products as
`matmul` and `add` or as `einsum`, narrow for slice, heads kept apart, fused attention, collectives
along the first dimension as real ones go, or as plain sums and concatenations. What both sides
compute is the same, so each is `equivalent`.

    tests/pairs/spelled.py [--isomer build/isomer] [--only TEXT] [--table]

Bounds and lines are those of distributed.py."""

import argparse
import contextlib
import os
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import distributed
import parallel
from world import Ranks, World


def matmul_linear(x, w, b=None):
    y = x.map(lambda t, w: t.matmul(w.t()), w)
    return y.map(lambda t, b: t.add(b), b) if b else y


def einsum_linear(x, w, b=None):
    letters = "abc"[: len(x.shape) - 1]
    how = "%si,oi->%so" % (letters, letters)
    y = x.map(lambda t, w: t.op("einsum", [how, [t, w]], t.shape[:-1] + w.shape[:1]), w)
    return y.map(lambda t, b: t.add(b), b) if b else y


def addmm_linear(x, w, b=None):
    n = 1
    for s in x.shape[:-1]:
        n *= s
    flat = x.map(lambda t: t.reshape(n, t.shape[-1]))
    y = (
        b.map(lambda b, t, w: b.addmm(t, w.t()), flat, w)
        if b
        else flat.map(lambda t, w: t.mm(w.t()), w)
    )
    return y.map(lambda t, w: t.reshape(*x.shape[:-1], w.shape[0]), w)


def narrow_slice(x, d, a, b):
    return x.map(lambda t: t.narrow(d, a, min(b, t.shape[t.dim(d)]) - a))


def chunk_slice(x, d, a, b):
    n = x.shape[d]
    if a not in (0, n // 2) or b - a != n // 2:
        return narrow_slice(x, d, a, b)
    return x.map(lambda t: t.chunk(2, d)[0 if a == 0 else 1])


def apart_heads(w, q, k, v, d):
    """Attention with the heads in a dimension of their own, as matmul takes them."""
    n, t, _ = q.shape
    four = lambda x: x.map(lambda s: s.reshape(2, s.shape[0] // 2, s.shape[1], s.shape[2]))
    q, k, v = four(q), four(k), four(v)
    s = q.map(lambda a, b: a.matmul(b.transpose(-2, -1)), k).map(lambda x: x.div(d**0.5))
    p = s.masked_fill(parallel.causal(w, t), float("-inf")).softmax(-1)
    return p.map(lambda a, b: a.matmul(b), v).map(lambda x: x.reshape(n, t, d))


def fused_attention(w, q, k, v, d):
    return q.map(lambda a, b, c: a.sdpa(b, c, causal=True), k, v)


def plain_sum(w, v, op="sum", across=False, taped=True):
    if op not in ("sum", "avg"):
        return ALL_REDUCE(w, v, op, across, taped)

    def f(p):
        y = p[0]
        for q in p[1:]:
            y = y.add(q)
        return [y.div(float(len(p))) if op == "avg" else y] * len(p)

    return w.collective(v, f, across)


def first_gathered(w, v, dim, across=False):
    """Along dimension 0, whatever it is of, then taken apart and put together again."""

    def f(p):
        n, s = len(p), p[0].shape[0]
        t = p[0].op("dist::all_gather", [list(p), 0], p[0].resized(0, n * s))
        parts = t.split(s, 0)
        whole = w.g.cat(parts, dim) if dim else t
        return [whole] * n

    return w.collective(v, f, across)


def plain_gathered(w, v, dim, across=False):
    return w.collective(v, lambda p: [w.g.cat(list(p), dim)] * len(p), across)


def reduced_and_cut(w, v, dim, across=False, op="sum"):
    """An all_reduce of which each rank takes its part."""

    def f(p):
        t = p[0].op("dist::all_reduce", [list(p), op])
        n = t.shape[dim] // len(p)
        return [t.slice(dim, k * n, (k + 1) * n) for k in range(len(p))]

    return w.collective(v, f, across)


ALL_REDUCE = World.all_reduce

# name: what is written otherwise
SPELLING = {
    "matmul": {"linear": matmul_linear},
    "einsum": {"linear": einsum_linear},
    "addmm": {"linear": addmm_linear},
    "narrow": {"slice": narrow_slice},
    "chunk": {"slice": chunk_slice},
    "heads": {"core": apart_heads},
    "fused": {"core": fused_attention},
    "sums": {"all_reduce": plain_sum},
    "gathered": {"gathered": first_gathered},
    "cat": {"gathered": plain_gathered},
    "cut": {"scattered": reduced_and_cut},
    "all": {
        "linear": matmul_linear,
        "slice": chunk_slice,
        "core": fused_attention,
        "gathered": first_gathered,
    },
}


@contextlib.contextmanager
def spelled(how):
    """Programs written in these words; `core` is what attention() takes by default."""
    was = []
    for name, f in how.items():
        if name == "core":
            place, key = parallel, "plain_attention"
        else:
            place, key = (
                (Ranks if hasattr(Ranks, name) and name in ("linear", "slice") else World),
                name,
            )
        was.append((place, key, getattr(place, key)))
        setattr(place, key, f)
    if "core" in how:
        was.append((parallel.attention, "__defaults__", parallel.attention.__defaults__))
        for f in (parallel.attention, parallel.gpt_block, parallel.llama_block, parallel.body):
            was.append((f, "__defaults__", f.__defaults__))
            f.__defaults__ = tuple(
                how["core"] if callable(d) and d.__name__.endswith("_attention") else d
                for d in f.__defaults__
            )
    try:
        yield
    finally:
        for place, key, old in reversed(was):
            setattr(place, key, old)


def build(kind, model, ranks, layers, how):
    left = parallel.build(kind, model, ranks, layers)[0]
    with spelled(SPELLING[how]):
        right = parallel.build(kind, model, ranks, layers)[1]
    return left, right


CASES = [
    (kind, model, ranks, 1, how)
    for how in SPELLING
    for kind, model, ranks in (
        ("tensor", "gpt", 2),
        ("tensor", "llama", 4),
        ("sequence", "llama", 2),
        ("zero", "gpt", 2),
    )
    if not (kind == "tensor" and how == "cut") and not (kind == "zero" and how == "sums")
]


def main():
    a = argparse.ArgumentParser(description="ranks in other words than the sequential program")
    a.add_argument("--isomer", default=os.path.join(distributed.ROOT, "build", "isomer"))
    a.add_argument("--only", default="")
    a.add_argument("--table", action="store_true", help="print a line for each pair")
    options = a.parse_args()
    passed = failed = 0
    for case in CASES:
        title = "%s %s %d ranks: %s" % (case[0], case[1], case[2], case[4])
        if options.only not in title:
            continue
        sides = build(*case)
        with tempfile.TemporaryDirectory() as folder:
            parallel.write_sides(folder, *sides)
            found = distributed.compare(options.isomer, folder)
        wrong, line = distributed.judged(title, found)
        passed, failed = passed + (wrong is None), failed + (wrong is not None)
        if wrong or options.table:
            print("%s%s" % ("FAILED " if wrong else "", line), flush=True)
    print("%d passed, %d failed" % (passed, failed))
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
