#!/usr/bin/env python3
"""Faults of distributed programs: one change of the right side of a pair of parallel.py, after
which PyTorch sees another output. None may be called `equivalent`.

    tests/pairs/rank_faults.py [--isomer build/isomer] [--count 40] [--seed 1] [--only TEXT]
                               [--show]

Needs Python's torch, which says whether a change is one. The last line is `N passed, N failed`."""

import argparse
import copy
import os
import random
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import distributed  # noqa: E402
import parallel  # noqa: E402


def is_list(n):
    return n["op"].startswith("dist::") and isinstance(n["args"][0], list)


def arg(n, k):
    return n.get("args", [])[k] if len(n.get("args", [])) > k else None


def missing(n):
    if n["op"] != "dist::all_reduce":
        return False
    n["op"], n["args"] = "aten::clone", [n["args"][0][0]]
    return True


def doubled(n):
    if n["op"] != "dist::all_reduce" or n["args"][1] != "sum":
        return False
    n["args"][0] = n["args"][0] * 2
    return True


def another_rank(n):
    if not is_list(n):
        return False
    n["args"][0][-1] = n["args"][0][0]
    return True


def order(n):
    if not is_list(n) or n["op"] == "dist::all_reduce":
        return False
    n["args"][0].reverse()
    return True


def averaged(n):
    if n["op"] not in ("dist::all_reduce", "dist::reduce_scatter"):
        return False
    n["args"][1] = {"sum": "avg", "avg": "sum", "max": "min"}[n["args"][1]]
    return True


def offset(n):
    if n["op"] != "aten::slice.Tensor" or not arg(n, 2):
        return False
    n["args"][2] -= 1
    n["args"][3] -= 1
    return True


def scale(n):
    if n["op"] not in ("aten::mul.Tensor", "aten::div.Tensor") or not isinstance(arg(n, 1), float):
        return False
    n["args"][1] *= 2.0
    return True


def bias(n):
    if n["op"] != "aten::linear" or len(n["args"]) < 3:
        return False
    n["args"].pop()
    return True


def bound(n):
    if n["op"] not in ("aten::lt.Scalar", "aten::ge.Scalar", "aten::sub.Tensor"):
        return False
    if not isinstance(arg(n, 1), int) or n["args"][1] == 0:
        return False
    n["args"][1] -= 1
    return True


def part(n):
    if n["op"] != "getitem" or n["args"][1] == 0:
        return False
    n["args"][1] = 0
    return True


def epsilon(n):
    if n["op"] != "aten::layer_norm" and not (
        n["op"] == "aten::add.Tensor" and isinstance(arg(n, 1), float)
    ):
        return False
    n["args"][-1] = 1e-3
    return True


NODES = [missing, doubled, another_rank, order, averaged, offset, scale, bias, bound, part, epsilon]


def another_shard(g, rng):
    """A rank has the leaf of another one."""
    names = [k for k in g.weights if k.startswith("rank1.")]
    name = rng.choice(names) if names else None
    first = g.weights.get("rank0." + name[len("rank1.") :]) if name else None
    if not first or first[0].shape != g.weights[name][0].shape:
        return False
    same = first[0].values == g.weights[name][0].values
    g.weights[name] = (first[0].scaled(1.5) if same else first[0], first[1])
    return True


def change(g, rng):
    """One fault; its name, or None."""
    kinds = NODES + [another_shard]
    for kind in rng.sample(kinds, len(kinds)):
        if kind is another_shard:
            if another_shard(g, rng):
                return kind.__name__
            continue
        sites = [n for n in g.nodes if n.get("args")]
        for n in rng.sample(sites, len(sites)):
            if kind(n):
                return "%s at %s (%s)" % (kind.__name__, n["id"], n["op"])
    return None


def main():
    a = argparse.ArgumentParser(description="faults of distributed programs")
    a.add_argument("--isomer", default=os.path.join(distributed.ROOT, "build", "isomer"))
    a.add_argument("--count", type=int, default=40)
    a.add_argument("--seed", type=int, default=1)
    a.add_argument("--only", default="")
    a.add_argument("--show", action="store_true", help="every fault and its verdict")
    options = a.parse_args()
    rng = random.Random(options.seed)
    cases = [c for c in distributed.QUICK if options.only in distributed.title(c)]
    passed = failed = 0
    verdicts = {}
    while passed + failed < options.count:
        case = rng.choice(cases)
        sides = parallel.build(*case)
        if len(sides[1][0].nodes) > 900:
            continue
        g = copy.copy(sides[1][0])
        g.nodes, g.weights = copy.deepcopy(g.nodes), dict(g.weights)
        what = change(g, rng)
        try:
            far = parallel.far(sides[0], (g, sides[1][1])) if what else 0
        except Exception:  # it is no program
            continue
        if not far > 1e-6:
            continue
        with tempfile.TemporaryDirectory() as folder:
            parallel.write_sides(folder, sides[0], (g, sides[1][1]))
            verdict = distributed.compare(options.isomer, folder)[0]
        verdicts[verdict] = verdicts.get(verdict, 0) + 1
        if options.show:
            print("%s, %s: %s" % (distributed.title(case), what, verdict), flush=True)
        wrong = verdict in ("equivalent", "crash")
        passed, failed = passed + (not wrong), failed + wrong
        if wrong:
            print("FAILED %s, %s: %s" % (distributed.title(case), what, verdict), flush=True)
    print("verdicts: %s" % ", ".join("%s %d" % v for v in sorted(verdicts.items())))
    print("%d passed, %d failed" % (passed, failed))
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
