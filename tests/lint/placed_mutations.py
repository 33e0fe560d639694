#!/usr/bin/env python3
"""Collectives of correct programs changed, one at a time: what `isomer lint CAPTURE` says of it,
beside the truth by PyTorch, which runs the ranks and the program of one rank.

    tests/lint/placed_mutations.py --isomer build/isomer [--count 200] [--seed 0] [--only TEXT]

Programs are those of tests/pairs/parallel.py, with what their leaves are written into the capture.
A change that the outputs show has to be found, and at least may not be clean; one that they do not
show may not be accused. Needs a Python with torch."""

import argparse
import copy
import json
import os
import random
import sys
import tempfile

from harness import Lint, check, finish

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "pairs"))
import parallel
from dsl import Tensor
from world import part

CASES = [
    (kind, model, ranks, backward)
    for kind, ranks in (("tensor", 2), ("sequence", 2), ("data", 2), ("grid", 4), ("data", 3))
    for model in ("gpt", "llama")
    for backward in (False, True)
]


def rank_of(node):
    name = node["id"]
    if name[0] == "r" and "_" in name and name[1 : name.index("_")].isdigit():
        return int(name[1 : name.index("_")])
    return None


def refs(v, f):
    """v with f(ref) in place of each reference."""
    if isinstance(v, dict):
        return {"ref": f(v["ref"])} if "ref" in v else v
    return [refs(x, f) for x in v] if isinstance(v, list) else v


def listed(node):
    return [a["ref"] for a in node["args"][0]]


def change(g, o, at, how):
    """Change collective `at`. Returns: whether that is possible."""
    node = g.nodes[at]
    if how in ("sum", "avg", "max"):
        if node["args"][1] == how:
            return False
        node["args"][1] = how
        return True
    own, new = listed(node), node["id"] + "_again"
    if how == "twice":
        again = copy.deepcopy(node)
        again["id"] = new
        again["args"][0] = [{"ref": node["id"]}] * len(own)
    place = {g_rank: i for i, g_rank in enumerate(ranks_of(g, own))}

    def instead(rank):
        return new if how == "twice" else own[place[rank]]

    for n in g.nodes[at + 1 :]:
        if n["op"].startswith("dist::"):
            who = ranks_of(g, listed(n)) if node["id"] not in listed(n) else sorted(place)
            n["args"][0] = [
                {"ref": instead(r) if a == node["id"] else a} for r, a in zip(who, listed(n))
            ]
        elif rank_of(n) is not None:
            n["args"] = refs(
                n["args"], lambda a, n=n: instead(rank_of(n)) if a == node["id"] else a
            )
    for name, t in o.at.items():
        if t.ref == node["id"]:
            rank = int(name.rsplit("_rank", 1)[1]) if "_rank" in name else min(place)
            if rank not in place:
                return False
            o.at[name] = Tensor(g, instead(rank), t.shape, t.dtype)
    if how == "twice":
        g.nodes.insert(at + 1, again)
    return True


def ranks_of(g, names):
    by_id = {n["id"]: n for n in g.nodes}
    out = []
    for i, name in enumerate(names):
        r = rank_of(by_id[name])
        out.append(i if r is None else r)
    return out


def said(left, right):
    """The placements of the ranks' leaves, by their values."""
    whole, parts, out = dict(left.weights), {}, {}
    whole.update(left.inputs)
    for name, (data, _) in list(right.weights.items()) + list(right.inputs.items()):
        if name.startswith("rank"):
            parts.setdefault(name.split(".", 1)[1], []).append(data)
    for name, each in parts.items():
        if name not in whole:
            continue
        w = whole[name][0]
        out[name] = place(w, each)
    return {k: v for k, v in out.items() if v}


def place(w, each):
    if all(d.values == w.values for d in each):
        return "R"
    n = len(each)
    for dim in range(min(2, len(w.shape))):
        if w.shape[dim] % n == 0 and all(
            part(w, dim, r, n).values == d.values for r, d in enumerate(each)
        ):
            return "S(%d)" % dim
        if n == 4 and w.shape[dim] % 2 == 0:
            if all(part(w, dim, r % 2, 2).values == d.values for r, d in enumerate(each)):
                return ["R", "S(%d)" % dim]
    return None


def write(folder, left, right, ranks, kind):
    g, o = right
    g.write(folder, o.at)
    path = os.path.join(folder, "graph.json")
    with open(path, encoding="utf-8") as f:
        graph = json.load(f)
    placed = said(left[0], g)
    if kind == "grid":
        placed = {k: ["R", "R"] if v == "R" else v for k, v in placed.items()}
        graph["metadata"]["mesh"] = {"dp": ranks // 2, "tp": 2}
    graph["metadata"]["placements"] = {
        k: ", ".join(v) if isinstance(v, list) else v for k, v in placed.items()
    }
    with open(path, "w", encoding="utf-8") as f:
        json.dump(graph, f)


def cases(seed):
    out = []
    for kind, model, ranks, backward in CASES:
        right = parallel.build(kind, model, ranks, 1, backward)[1][0]
        for at, n in enumerate(right.nodes):
            if n["op"] == "dist::all_reduce":
                for how in ("sum", "avg", "max", "drop", "twice"):
                    out.append((kind, model, ranks, backward, at, how))
    random.Random(seed).shuffle(out)
    return out


def main():
    a = argparse.ArgumentParser()
    a.add_argument("--isomer", default="build/isomer")
    a.add_argument("--count", type=int, default=200)
    a.add_argument("--seed", type=int, default=0)
    a.add_argument("--only", default="")
    a.add_argument("--keep")
    o = a.parse_args()
    tally = {}
    with tempfile.TemporaryDirectory() as folder:
        done = 0
        for case in cases(o.seed):
            kind, model, ranks, backward, at, how = case
            name = "%s-%s-%d%s-%d-%s" % (kind, model, ranks, "-back" if backward else "", at, how)
            if o.only not in name or done == o.count:
                continue
            left, right = parallel.build(kind, model, ranks, 1, backward)
            if not change(right[0], right[1], at, how):
                continue
            done += 1
            given = set(right[1].at) | {line.split()[1] for line in right[1].lines}
            for key in [key for key in left[1].at if key not in given]:
                del left[1].at[key]  # no rank gives it
            wrong = parallel.far(left, right) > 1e-6
            at_folder = os.path.join(o.keep or folder, name)
            write(at_folder, left, right, ranks, kind)
            r = Lint(o.isomer, at_folder)
            word = {0: "clean", 1: "findings", 3: "undecided"}.get(r.status, "error")
            tally[wrong, word] = tally.get((wrong, word), 0) + 1
            check(word != "error", "%s: %s", name, r.text)
            if wrong:
                check(word != "clean", "%s: it is wrong, and clean", name)
                if word == "findings":
                    check(len(r.kinds()) >= 1, "%s: no kind", name)
                elif word == "undecided":
                    print("open: %s: %s" % (name, r.last))
            else:
                check(word != "findings", "%s: accused: %s", name, r.last)
    for (wrong, word), n in sorted(tally.items()):
        print("%-7s %-9s %d" % ("wrong" if wrong else "correct", word, n))
    finish()


if __name__ == "__main__":
    sys.exit(main())
