#!/usr/bin/env python3
"""Rules and pairs in whose corners few inputs lie, drawn from a seed, their truth known by
construction.

    tests/pairs/corners.py [--isomer build/isomer] [--seed N] [--rules N] [--pairs N] [--only KIND]
    [--write FILE] [--jobs N] [--show] [--truth]

As branches.py, which runs them, with other kinds: functions that are flat far out, divisions by
multiplying and shifting, fills that compete with numbers, places that collide, running sums,
rounding modes of integers, events of several conditions, windows, padding, empty tensors,
broadcasting, orders of equal numbers, integers of every width, signs of zeros. Integers have a
range that the captures say. `--truth`: have libtorch say of each whether its sides agree on some
draws, without Isomer."""

import random
import sys

import branch_kinds
import branch_terms
import branches
import corners_events
import corners_integers
import corners_layout
import corners_numbers
import corners_order
import corners_widths
import corners_zeros
import dsl

MODULES = (
    corners_numbers,
    corners_integers,
    corners_widths,
    corners_layout,
    corners_order,
    corners_events,
    corners_zeros,
)
KINDS = {f.__name__: f for m in MODULES for f in m.KINDS}
# A sum would hide their differences.
BARE = {
    "filled",
    "shifted",
    "sorted_rows",
    "viewed",
    "running",
    "padded",
    "spread",
    "pooled",
    "widths",
    "zeros",
}


def agree(left, right, draws, seed):
    """On how many draws the sides have the same numbers, and on how many they were compared."""
    import torch

    torch.set_default_dtype(torch.float64)
    found, same, told = {}, 0, 0
    branch_terms.variables(left, found)
    branch_terms.variables(right, found)
    for k in range(draws):
        at = {
            v.op: value(torch, v, random.Random("%s %s %d" % (seed, v.op, k)), k)
            for v in found.values()
        }
        a, b = (evaluate(torch, t, at, {}) for t in (left, right))
        if a.shape != b.shape or (a.is_floating_point() != b.is_floating_point()):
            return -1, draws
        if a.is_floating_point() and not (a.isfinite().all() and b.isfinite().all()):
            continue
        a, b = a.double(), b.double()
        size = max(1e-9, a.abs().max().item()) if a.numel() else 1.0
        same += bool(a.numel() == 0 or (a - b).abs().max().item() <= 1e-9 * size)
        told += 1
    return same, told


def value(torch, v, rng, k):
    n = dsl.count(v.shape)
    if v.kind == "i":
        top, dtype = v.limit or 10, getattr(torch, v.dtype or "int64")
        some = [rng.randrange(top) for _ in range(2)]
        x = [rng.choice(some) if k % 3 == 0 else rng.randrange(top) for _ in range(n)]
        return torch.tensor(x, dtype=dtype).reshape(v.shape)
    if v.kind == "b":
        p = (0.5, 0.1, 0.9)[k % 3]
        return torch.tensor([rng.random() < p for _ in range(n)]).reshape(v.shape)
    scale = (1.0, 1.0, 30.0, 1e3, 1e-2, 3e4)[k % 6]
    x = [rng.gauss(0, 1) * scale for _ in range(n)]
    if k % 4 == 1:
        x = [float(round(a)) for a in x]
    if k % 7 == 3:
        x = [-abs(a) for a in x]
    return torch.tensor(x, dtype=torch.float64).reshape(v.shape)


def evaluate(torch, t, at, memo):
    if isinstance(t, (list, tuple)):
        return [evaluate(torch, a, at, memo) for a in t]
    if isinstance(t, dsl.Dtype):
        return torch.float64 if t.name == "float32" else getattr(torch, t.name)
    if not isinstance(t, branch_terms.T):
        return t
    if t.args is None:
        return at[t.op]
    if id(t) not in memo:
        args = [evaluate(torch, a, at, memo) for a in t.args]
        kw = {k: evaluate(torch, v, at, memo) for k, v in t.kw.items()}
        if t.op == "getitem":
            memo[id(t)] = args[0][args[1]]
        else:
            op, _, overload = t.op.partition(".")
            memo[id(t)] = getattr(getattr(torch.ops.aten, op), overload or "default")(*args, **kw)
    return memo[id(t)]


def check_truth(seed, count, only):
    wrong = 0
    for k in range(count):
        name, true, left, right, _ = branch_kinds.instance(seed, k, only)
        try:
            same, told = agree(left, right, 48, "%s %d" % (seed, k))
        except Exception as e:  # the kind is malformed
            same, told = -2, "%s: %s" % (type(e).__name__, str(e).split("\n")[0][:200])
        if (same != told) if true else (same < 0):
            wrong += 1
            print("FAILED %s: agrees on %s of %s draws" % (name, same, told))
        elif not true and same == told:
            print("rare %s: agrees on all %s draws" % (name, told))
    print("%d passed, %d failed" % (count - wrong, wrong))
    return 1 if wrong else 0


def main():
    branch_kinds.KINDS, branch_terms.SYMBOLIC = KINDS, 0
    branch_kinds.BARE = BARE
    if "--truth" in sys.argv:
        args = dict(zip(sys.argv[1:], sys.argv[2:]))
        return check_truth(
            args.get("--seed", "1"), int(args.get("--rules", "300")), args.get("--only", "")
        )
    return branches.main()


if __name__ == "__main__":
    sys.exit(main())
