#!/usr/bin/env python3
"""Mutants of captures, and what `isomer compare` makes of them. Needs a Python with PyTorch.

    tests/mutation/campaign.py [FOLDER] [--isomer build/isomer] [--breaking N] [--preserving N]
    [--seed S] [--only TEXT]
                               [--kind KIND] [--keep DIR] [--jobs N]

FOLDER holds families, folders of captures of one model (models/ where it is left out); sides with
`bug` in their names are left alone. Of each family two correct sides are drawn for each mutant: one
is changed, at one place (breaking.py), or rewritten harmlessly (preserving.py), and compared with
the other. N mutants of either sort for each family, spread over kinds.

What a mutant is, PyTorch says: a breaking one counts where its outputs move by more than 1e-9
(relative) in float64 on the captured inputs, a preserving one where they stay within 1e-9; others
are left out. Reported are the kill rate (`different` of the breaking ones), where the first
divergence stands, and false alarms (preserving ones not `equivalent`):

    exact    at the changed node (or a view or cast beside it, as parting.c counts them); where a
             bug adds a node or takes one away, at it, at the first that reads there, or at a node
             of the other side that has the value which is missing
    block    in the same layer's part (model.layers.0.mlp)
    further  elsewhere

--faults 2 breaks the side at two places, in different layers; right is one divergence for each of
them, at it (or in its block), and no other.

--keep leaves the mutants that did not come out as they should in DIR, each beside a link to the
other side. Exit status 1 where a breaking mutant is `equivalent`, less than 98 % are `different` or
90 % exact, or a preserving one is not `equivalent`."""

import argparse
import collections
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

import torch

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, HERE)
import breaking  # noqa: E402
import preserving  # noqa: E402
from graph import LEAVES, Graph, base, moved, node_refs  # noqa: E402

VERDICT = {0: "equivalent", 1: "different", 3: "undecided"}


def block(scope):
    """The layer and its part: transformer.h.0.attn of transformer.h.0.attn.c_proj."""
    m = re.match(r"(.*?\.(?:layers|h|blocks|layer|block)\.\d+(?:\.\w+)?)", (scope or "") + ".")
    return m.group(1).rstrip(".") if m else (scope or "").split(".")[0]


PASSES = {
    "to",
    "_to_copy",
    "type_as",
    "view",
    "reshape",
    "_unsafe_view",
    "alias",
    "detach",
    "contiguous",
    "clone",
    "unsqueeze",
    "squeeze",
    "transpose",
    "permute",
    "t",
    "numpy_T",
    "expand",
    "flatten",
    "dropout",
    "lift_fresh_copy",
    "getitem",
    "chunk",
    "split",
    "split_with_sizes",
}


def beside(g, at):
    """Views and casts behind the nodes `at`; behind leaves and those that are such themselves, what
    reads them: the first that is no view of a leaf nor computed from leaves alone."""
    given = set()  # depends on what is given
    for n in g.nodes:
        if n["op"] == "input" or any(r["ref"] in given for r in node_refs(n)):
            given.add(n["id"])
    found = set()
    for first in at:
        stack, through = [first], base(g.by_id[first]) in PASSES or first not in given
        while stack:
            for u in g.users.get(stack.pop(), []):
                if (
                    base(u) in PASSES
                    or (base(u) == "index_select" and g.by_id[u["args"][0]["ref"]]["op"] in LEAVES)
                    or (u["id"] not in given and first not in given and u["id"] in g.trained)
                ):
                    stack.append(u["id"])
                elif not through:
                    continue
                found.add(u["id"])
    return found


class Side:
    def __init__(self, path):
        self.path, self.graph = path, Graph(path)
        self.values = self.graph.copy().run(keep_all=True)
        self.outputs = {o["name"]: self.values[o["ref"]] for o in self.graph.doc["outputs"]}
        self.kinds = {}
        for table in breaking, preserving:
            self.kinds[table] = collections.defaultdict(list)
            for kind, node, change in table.kinds(self.graph):
                self.kinds[table][kind].append((node, change))

    def holding(self, value):
        """Nodes whose value has the elements of `value`, in some order."""
        if not isinstance(value, torch.Tensor) or not value.double().isfinite().all():
            return []
        want = value.double().flatten().sort().values
        found = []
        for i, v in self.values.items():
            if (
                isinstance(v, torch.Tensor)
                and v.numel() == want.numel()
                and v.dtype == value.dtype
                and torch.allclose(
                    v.double().flatten().sort().values,
                    want,
                    rtol=1e-6,
                    atol=1e-9 * float(want.abs().max() if want.numel() else 0),
                )
            ):
                found.append(i)
        return found


class Mutant:
    """One mutant, made in `folder`; None in `want` where it is none that counts."""

    def __init__(self, side, other, table, kind, node, change, folder, flip):
        self.side, self.other, self.kind, self.node, self.folder, self.flip = (
            side,
            other,
            kind,
            node,
            folder,
            flip,
        )
        g = side.graph.copy()
        self.want, at = None, {node}
        n = g.by_id[node]
        self.scope = n.get("scope") or next(
            (u.get("scope") for u in g.users.get(node, []) if u.get("scope")), ""
        )
        try:
            at.update(change(g, n) or [])
            if not getattr(change, "keeps_dead", False):
                g.drop_dead()
            outputs = g.run()
        except Exception:  # the mutant does not run: none
            return
        self.moved = moved(side.outputs, outputs)
        if (table is breaking) != (self.moved > 1e-9) or any(
            a.shape != b.shape for a, b in zip(side.outputs.values(), outputs.values())
        ):
            return
        self.want = "different" if table is breaking else "equivalent"
        new = {m["id"] for m in g.nodes} - set(side.graph.by_id)
        g.index()
        self.at = at | beside(
            g,
            {
                i
                for i in at | new | {node}
                if i in g.by_id
                and (
                    i in new
                    or i == node
                    or g.by_id[i]["op"] in LEAVES
                    or base(g.by_id[i]) in PASSES
                )
            },
        )
        self.partners = set()
        if getattr(change, "gone", False) or node not in g.by_id:
            self.partners.update(other.holding(side.values.get(node)))
            for i in at - {node}:
                self.partners.update(other.holding(side.values.get(i)))
        g.save(folder)

    def compare(self, isomer, timeout):
        pair = [self.other.path, self.folder]
        report = self.folder + ".json"
        start = time.monotonic()
        try:
            p = subprocess.run(
                [isomer, "compare", "--json", report, "-q", *(pair[::-1] if self.flip else pair)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                timeout=timeout,
            )
            self.got, self.says = (
                VERDICT.get(p.returncode, "status %d" % p.returncode),
                (p.stdout or p.stderr).decode("utf-8", "replace").strip()[-160:],
            )
        except subprocess.TimeoutExpired:
            self.got, self.says = "no answer", "after %g s" % timeout
        self.seconds = time.monotonic() - start
        self.place, self.first = None, ""
        if self.got == "different" and os.path.exists(report):
            self.judge(json.load(open(report, encoding="utf-8"))["divergences"])
        if os.path.exists(report):
            os.remove(report)
        return self

    def sides(self, d):
        own, its = (d["left"], d["right"]) if self.flip else (d["right"], d["left"])
        return own or {}, its or {}

    def judge(self, divergences):
        d = divergences[0]
        own, its = self.sides(d)
        near = block(own.get("scope") or its.get("scope")) == block(self.scope)
        self.place = (
            "exact"
            if own.get("id") in self.at or its.get("id") in self.partners
            else "block"
            if near
            else "further"
        )
        self.first = "%s | %s (%s) %s" % (
            own.get("id"),
            its.get("id"),
            own.get("scope"),
            d["hint"] or "",
        )


class Twice(Mutant):
    """Two faults in different layers."""

    def __init__(self, side, other, first, second, folder, flip):
        self.side, self.other, self.folder, self.flip = side, other, folder, flip
        self.kind, self.node = "%s + %s" % (first[0], second[0]), "%s + %s" % (first[1], second[1])
        g, self.want, self.faults, outputs = side.graph.copy(), None, [], side.outputs
        try:
            for kind, node, change in first, second:
                n = g.by_id[node]
                scope = n.get("scope") or next(
                    (u.get("scope") for u in g.users.get(node, []) if u.get("scope")), ""
                )
                at = {node} | set(change(g, n) or [])
                g.drop_dead()
                before, outputs = outputs, g.run()
                self.faults.append((at, scope, moved(before, outputs)))
        except Exception:  # the mutant does not run: none
            return
        self.moved = moved(side.outputs, outputs)
        if (
            min(f[2] for f in self.faults) <= 1e-9
            or not all(t.isfinite().all() for t in outputs.values())
            or any(a.shape != b.shape for a, b in zip(side.outputs.values(), outputs.values()))
        ):
            return
        self.want = "different"
        self.at = set().union(*[f[0] for f in self.faults])
        g.index()
        new = {m["id"] for m in g.nodes} - set(side.graph.by_id)
        self.faults = [
            (
                at
                | beside(
                    g,
                    {
                        i
                        for i in at
                        if i in g.by_id
                        and (i in new or g.by_id[i]["op"] in LEAVES or base(g.by_id[i]) in PASSES)
                    },
                ),
                scope,
            )
            for at, scope, _ in self.faults
        ]
        g.save(folder)

    def judge(self, divergences):
        found, extra = [False, False], 0
        for d in divergences:
            own, its = self.sides(d)
            at = [own.get("id") in at for at, _ in self.faults]
            if not any(at):
                at = [
                    block(own.get("scope") or its.get("scope")) == block(scope)
                    for _, scope in self.faults
                ]
            for k in range(2):
                found[k] |= at[k]
            extra += not any(at)
        self.first = "; ".join(
            "%s | %s %s" % (*[x.get("id") for x in self.sides(d)], (d["hint"] or "")[:60])
            for d in divergences
        )
        self.place = (
            "exact"
            if all(found) and not extra and len(divergences) == 2
            else "block"
            if all(found)
            else "further"
        )


def pairs_of_faults(side, rng):
    """Endless pairs of kinds in two layers."""
    by_layer = collections.defaultdict(list)
    for kind, list_ in side.kinds[breaking].items():
        for node, change in list_:
            n = side.graph.by_id[node]
            m = re.search(
                r"\.(?:layers|h|blocks|layer)\.(\d+)\.",
                (n.get("name") or n.get("scope") or "") + ".",
            )
            if (
                m
                and kind not in ("leaves-swapped", "layer-weights", "layer-skipped")
                and not getattr(change, "gone", False)
            ):
                by_layer[m.group(1)].append((kind, node, change))
    layers = sorted(by_layer)
    while len(layers) > 1:
        a, b = rng.sample(layers, 2)
        yield rng.choice(by_layer[a]), rng.choice(by_layer[b])


def agree(a, b):
    """A correct pair: the outputs are as near as tables in float32 let them be."""
    x, y = ({str(k): v.flatten() for k, v in enumerate(s.outputs.values())} for s in (a, b))
    return (
        len(x) == len(y)
        and moved(x, y) < 1e-5
        or any("_rank" in k for s in (a, b) for k in s.outputs)
    )


def correct(a, one, other, known={}):
    """Mutants of a pair that is not found equivalent as it is say nothing."""
    pair = tuple(sorted((one.path, other.path)))
    if pair not in known:
        known[pair] = (
            subprocess.run(
                [a.isomer, "compare", "-q", *pair],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            ).returncode
            == 0
        )
        if not known[pair]:
            print("%s and %s are not equivalent as they are: left out" % pair, flush=True)
    return known[pair]


def sample(rng, sides, table, n, only):
    """Endless (side, kind, node, change): kinds in turn, in random order."""
    left = {
        k: [(s, m) for s in sides for m in s.kinds[table].get(k, [])]
        for k in sorted({k for s in sides for k in s.kinds[table]})
    }
    order = [k for k in left if not only or k in only]
    rng.shuffle(order)
    for v in left.values():
        rng.shuffle(v)
    while any(left[k] for k in order):
        for k in order:
            if left[k]:
                side, (node, change) = left[k].pop()
                yield side, k, node, change


def mutants(a, folder, family, tmp):
    where = os.path.join(folder, family)
    names = [
        s
        for s in sorted(os.listdir(where))
        if "bug" not in s and os.path.exists(os.path.join(where, s, "graph.json"))
    ]
    sides = []
    for s in names:
        try:
            sides.append(Side(os.path.join(where, s)))
        except Exception as e:  # what PyTorch cannot run says nothing about mutants
            print("%s/%s is left out: %s" % (family, s, str(e).splitlines()[0][:120]))
    if len(sides) < 2:
        return
    partners = {
        s: [o for o in sides if o is not s and agree(s, o) and correct(a, s, o)] for s in sides
    }
    if not any(partners.values()):
        print("%s is left out: no two sides of it are equivalent" % family)
        return
    sides = [s for s in sides if partners[s]]
    if a.faults == 2:
        rng, made = random.Random("%s twice %d" % (family, a.seed)), 0
        tries = {s: pairs_of_faults(s, rng) for s in sides}
        for _ in range(20 * a.breaking):
            side = rng.choice(sides)
            two = next(tries[side], None)
            if made == a.breaking or two is None:
                break
            m = Twice(
                side,
                rng.choice(partners[side]),
                *two,
                os.path.join(tmp, "%s-twice-%d" % (family, made)),
                rng.random() < 0.5,
            )
            if m.want:
                made += 1
                m.family = family
                yield m
        return
    for table, n in ((breaking, a.breaking), (preserving, a.preserving)):
        rng = random.Random("%s %s %d" % (family, table.__name__, a.seed))
        made = 0
        for side, kind, node, change in sample(rng, sides, table, n, a.kind):
            if made == n:
                break
            other = rng.choice(partners[side])
            m = Mutant(
                side,
                other,
                table,
                kind,
                node,
                change,
                os.path.join(tmp, "%s-%s-%d" % (family, kind, made)),
                rng.random() < 0.5,
            )
            if m.want:
                made += 1
                m.family = family
                yield m


class Tally:
    def __init__(self):
        self.n, self.right, self.place, self.fatal = (
            collections.Counter(),
            collections.Counter(),
            collections.Counter(),
            0,
        )
        self.kinds = collections.defaultdict(collections.Counter)

    def add(self, m):
        self.n[m.want] += 1
        self.right[m.want] += m.got == m.want
        self.kinds[m.kind][m.place or m.got] += 1
        if m.place:
            self.place[m.place] += m.want == "different"
        self.fatal += m.want == "different" and m.got == "equivalent"

    def show(self, verbose):
        if verbose:
            for k in sorted(self.kinds):
                print(
                    "  %-22s %s"
                    % (k, ", ".join("%s %d" % i for i in sorted(self.kinds[k].items())))
                )
        n, p = self.n["different"], self.place
        share = lambda x, of: 100.0 * x / of if of else 100.0  # noqa: E731
        killed = self.right["different"]
        print(
            (
                "breaking: %d of %d different (%.1f %%), %d equivalent; of these %d exact (%.1f "
                "%%), %d in the same block, %d further"
            )
            % (
                killed,
                n,
                share(killed, n),
                self.fatal,
                p["exact"],
                share(p["exact"], killed),
                p["block"],
                p["further"],
            )
        )
        print(
            "preserving: %d of %d equivalent, %d false alarms"
            % (
                self.right["equivalent"],
                self.n["equivalent"],
                self.n["equivalent"] - self.right["equivalent"],
            )
        )
        return (
            self.fatal == 0
            and killed >= 0.98 * n
            and p["exact"] >= 0.9 * killed
            and self.right["equivalent"] == self.n["equivalent"]
        )


def main():
    a = argparse.ArgumentParser(description="a mutation campaign")
    a.add_argument("folder", nargs="?", default=os.path.join(ROOT, "models"))
    a.add_argument("--isomer", default=os.path.join(ROOT, "build", "isomer"))
    a.add_argument("--breaking", type=int, default=24)
    a.add_argument("--preserving", type=int, default=12)
    a.add_argument("--seed", type=int, default=1)
    a.add_argument("--only", default="", help="families with this in their name")
    a.add_argument("--without", action="append", default=[], help="no family with this in its name")
    a.add_argument("--kind", action="append", default=[])
    a.add_argument("--faults", type=int, default=1, choices=(1, 2))
    a.add_argument("--keep")
    a.add_argument("--timeout", type=float, default=300)
    a.add_argument("--jobs", type=int, default=min(2, os.cpu_count() or 1))
    a.add_argument("-v", action="store_true", help="every mutant")
    a = a.parse_args()
    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float64)
    kernels = os.path.join(os.path.dirname(os.path.abspath(a.isomer)), "libisomer_kernels.so")
    if os.path.exists(kernels):
        torch.ops.load_library(kernels)
    tally = Tally()
    with tempfile.TemporaryDirectory() as tmp, ThreadPoolExecutor(a.jobs) as pool:
        waiting = collections.deque()

        def finish():
            m = waiting.popleft().result()
            tally.add(m)
            wrong = m.got != m.want or m.place in ("block", "further")
            if wrong or a.v:
                print(
                    "%-10s %s %s/%s at %s against %s%s, moved %.3g: %s %s (%.1f s) %s"
                    % (
                        ""
                        if not wrong
                        else m.place
                        if m.place and m.want == "different"
                        else m.got.upper(),
                        m.family,
                        os.path.basename(m.side.path),
                        m.kind,
                        m.node,
                        os.path.basename(m.other.path),
                        " (flipped)" if m.flip else "",
                        m.moved,
                        m.place or "",
                        m.first,
                        m.seconds,
                        m.says if m.got != "different" else "",
                    ),
                    flush=True,
                )
            if wrong and a.keep:
                to = os.path.join(a.keep, os.path.basename(m.folder))
                shutil.rmtree(to, ignore_errors=True)
                os.makedirs(to)
                shutil.copytree(m.folder, os.path.join(to, "mutant"))
                os.symlink(os.path.abspath(m.other.path), os.path.join(to, "other"))
                with open(os.path.join(to, "what"), "w") as f:
                    f.write(
                        "%s at %s (%s) of %s\nwant %s, got %s %s\n%s\n"
                        % (
                            m.kind,
                            m.node,
                            ", ".join(sorted(m.at)),
                            m.side.path,
                            m.want,
                            m.got,
                            m.place or "",
                            m.says,
                        )
                    )
            shutil.rmtree(m.folder)

        for family in sorted(os.listdir(a.folder)):
            if (
                not os.path.isdir(os.path.join(a.folder, family))
                or a.only not in family
                or any(w in family for w in a.without)
                or family.startswith(".")
            ):
                continue
            for m in mutants(a, a.folder, family, tmp):
                waiting.append(pool.submit(m.compare, a.isomer, a.timeout))
                while len(waiting) > 2 * a.jobs:
                    finish()
        while waiting:
            finish()
        ok = tally.show(True)
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
