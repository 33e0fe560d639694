#!/usr/bin/env python3
"""Faults of distributed programs: one change of the right side of a pair of parallel.py, after
which PyTorch sees another output. None may be called `equivalent`, and the operator that is changed
is to be the one reported, or next to it.

    tests/pairs/rank_faults.py [--isomer build/isomer] [--count 40] [--seed 1] [--only TEXT]
                               [--kind NAME] [--show] [--least 80]

Needs Python's torch, which says whether a change is one. The last lines say how many are reported
at the changed operator, next to it and elsewhere, by kind of fault; what share has words about
ranks; and `N passed, N failed`."""

import argparse
import copy
import os
import random
import re
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import distributed  # noqa: E402
import parallel  # noqa: E402


def is_list(n):
    return n["op"].startswith("dist::") and isinstance(n["args"][0], list)


def arg(n, k):
    return n.get("args", [])[k] if len(n.get("args", [])) > k else None


def without(a, ref, by):
    """Arguments with a reference replaced."""
    if isinstance(a, dict):
        return by if a.get("ref") == ref else a
    return [without(x, ref, by) for x in a] if isinstance(a, list) else a


def missing(g, rng):
    """Each rank goes on with its own summand. Returns: the operators that read it."""
    reduced = [n for n in g.nodes if n["op"] == "dist::all_reduce"]
    for n in rng.sample(reduced, len(reduced)):
        readers = [m for m in g.nodes if n["id"] in refs(m.get("args", []))]
        ranks = [re.match(r"r(\d+)_", m["id"]) for m in readers]
        parts = n["args"][0]
        if not readers or not all(ranks) or len(set(map(str, parts))) < len(parts):
            continue
        if len(parts) <= max(int(r[1]) for r in ranks):
            continue  # a group of some ranks
        for m, r in zip(readers, ranks):
            m["args"] = without(m["args"], n["id"], parts[int(r[1])])
        return {m["id"] for m in readers}
    return None


def unreduced(g, outputs, rng):
    """A rank gives its own summand of a gradient, or of a loss. Returns: what it gives now."""
    reduced = {n["id"]: n for n in g.nodes if n["op"] == "dist::all_reduce"}
    given = sorted(k for k, t in outputs.items() if t.ref in reduced)
    if not given:
        return None
    name = rng.choice(given)
    ref = reduced[outputs[name].ref]["args"][0][0]["ref"]
    outputs[name] = copy.copy(outputs[name])
    outputs[name].ref = ref
    return {ref}


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


NODES = [doubled, another_rank, order, averaged, offset, scale, bias, bound, part, epsilon]


def another_shard(g, rng):
    """A rank has the leaf of another one. Returns: its node."""
    names = [k for k in g.weights if k.startswith("rank1.")]
    name = rng.choice(names) if names else None
    first = g.weights.get("rank0." + name[len("rank1.") :]) if name else None
    if not first or first[0].shape != g.weights[name][0].shape:
        return None
    same = first[0].values == g.weights[name][0].values
    g.weights[name] = (first[0].scaled(1.5) if same else first[0], first[1])
    return {n["id"] for n in g.nodes if n.get("name") == name}


def change(g, outputs, rng, only=""):
    """One fault: (its name, the nodes where it is), or None."""
    kinds = [k for k in NODES + [another_shard, missing, unreduced] if only in k.__name__]
    for kind in rng.sample(kinds, len(kinds)):
        if kind is unreduced:
            at = unreduced(g, outputs, rng)
            if at:
                return kind.__name__, at
            continue
        if kind not in NODES:
            at = kind(g, rng)
            if at:
                return kind.__name__, at
            continue
        sites = [n for n in g.nodes if n.get("args")]
        for n in rng.sample(sites, len(sites)):
            if kind(n):
                return kind.__name__, {n["id"]}
    return None


# ---- where it is reported ----


def refs(a):
    if isinstance(a, dict):
        return {a["ref"]} if "ref" in a else set()
    return set().union(*map(refs, a)) if isinstance(a, list) else set()


def projected(g, of):
    """Nodes with their projections and views, which are one step of a program."""
    same = {n["id"]: refs(n["args"]).pop() for n in g.nodes if n["op"] == "getitem"}
    return {same.get(i, i) for i in of}


def distance(g, site, reported):
    """0: at it, 1: an operand or a reader of it, 2: further away."""
    at = projected(g, site)
    near = set(at)
    for n in g.nodes:
        if n.get("args"):
            reads = projected(g, refs(n["args"]))
            if n["id"] in at:
                near |= reads
            if reads & at and n["op"] != "getitem":
                near.add(n["id"])
    mine = projected(g, reported)
    return 0 if mine & at else 1 if mine & near else 2


def place(g, site, report):
    """How far the first divergence is from the fault, and whether it has words about ranks."""
    found = report["divergences"]
    if not found:
        return None, False
    right = [d["right"]["id"] for d in found if d["right"]]
    words = " ".join(d["hint"] or "" for d in found)
    return distance(g, site, set(right[:1])), "rank" in words or "times" in words


def said(report):
    """Where the report is, and why, in a line."""
    d = report["divergences"][0]
    hint = "; ".join(d["hint"] or "" for d in report["divergences"])
    return "%s, %s" % (" ".join((d[s] or {}).get("id", "-") for s in ("left", "right")), hint)


def main():
    a = argparse.ArgumentParser(description="faults of distributed programs")
    a.add_argument("--isomer", default=os.path.join(distributed.ROOT, "build", "isomer"))
    a.add_argument("--count", type=int, default=40)
    a.add_argument("--seed", type=int, default=1)
    a.add_argument("--only", default="")
    a.add_argument("--kind", default="", help="faults whose name holds this")
    a.add_argument("--show", action="store_true", help="every fault and its verdict")
    a.add_argument("--least", type=int, default=0, help="per cent at the operator, else it fails")
    options = a.parse_args()
    rng = random.Random(options.seed)
    cases = [c for c in distributed.QUICK if options.only in distributed.title(c)]
    passed = failed = 0
    verdicts, places, worded = {}, {}, 0
    while passed + failed < options.count:
        case = rng.choice(cases)
        sides = parallel.build(*case)
        if len(sides[1][0].nodes) > 900:
            continue
        g = copy.copy(sides[1][0])
        g.nodes, g.weights = copy.deepcopy(g.nodes), dict(g.weights)
        given = copy.copy(sides[1][1])
        given.at = dict(given.at)
        what = change(g, given.at, rng, options.kind)
        try:
            far = parallel.far(sides[0], (g, given)) if what else 0
        except ImportError as e:
            sys.exit("rank_faults: %s: the truth needs PyTorch" % e)
        except Exception:  # it is no program
            continue
        if not far > 1e-6:
            continue
        with tempfile.TemporaryDirectory() as folder:
            parallel.write_sides(folder, sides[0], (g, given))
            verdict, report = distributed.compare(options.isomer, folder)[:2]
        far_off, words = place(g, what[1], report) if verdict == "different" else (None, False)
        if far_off is not None:
            places.setdefault(what[0], [0, 0, 0])[far_off] += 1
            worded += words
        what = "%s at %s" % (what[0], ", ".join(sorted(what[1]))) if what else what
        verdicts[verdict] = verdicts.get(verdict, 0) + 1
        if options.show:
            steps = "" if far_off is None else ", %d away: %s" % (far_off, said(report))
            print("%s, %s: %s%s" % (distributed.title(case), what, verdict, steps), flush=True)
        wrong = verdict in ("equivalent", "crash")
        passed, failed = passed + (not wrong), failed + wrong
        if wrong:
            print("FAILED %s, %s: %s" % (distributed.title(case), what, verdict), flush=True)
    for kind, (at, next_, off) in sorted(places.items()):
        print("%-13s %3d at the operator, %3d next to it, %3d elsewhere" % (kind, at, next_, off))
    total = [sum(p[k] for p in places.values()) for k in range(3)]
    n = max(1, sum(total))
    print(
        "located: %d %% at the operator, %d %% at most one away; words of ranks: %d %%"
        % (100 * total[0] / n, 100 * (total[0] + total[1]) / n, 100 * worded / n)
    )
    if 100 * total[0] < options.least * n:
        print("FAILED: fewer than %d %% are located at the operator" % options.least)
        failed += 1
    print("verdicts: %s" % ", ".join("%s %d" % v for v in sorted(verdicts.items())))
    print("%d passed, %d failed" % (passed, failed))
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
