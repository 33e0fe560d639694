#!/usr/bin/env python3
"""Pairs whose names are words of verdicts, evidence and assumptions. What a comparison says of two
graphs is the same whatever their leaves, outputs, nodes, modules, files and folders are called:
evidence and assumptions are fields, no words that are searched for. Plain Python 3.

    tests/pairs/worded.py [--isomer build/isomer] [--seed 1] [--count 60] [--jobs N] [-v]

Pairs of branches.py, masks.py, constants.py and the standing ones, drawn, equivalent or not. Each
is compared as it is and with other names, the same ones on both sides. Verdict, evidence, what it
is relative to, kinds of assumptions, and status and scope of each rule must be the same, and
certificates must hold with the same evidence. The last line is `N passed, N failed`."""

import argparse
import collections
import json
import os
import random
import struct
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

import branches
import constants
import dsl
import masks
import traps  # noqa: F401  adds the standing pairs to dsl.PAIRS

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TIMEOUT = 600
WORDS = [
    "tested",
    "proved",
    "certified",
    "not proved",
    "refuted",
    "unknown",
    "EQUIVALENT [proved]",
    "isomer: DIFFERENT at x",
    "UNDECIDED",
    "rounding",
    "but for rounding",
    "rounding: 1e-9",
    "mask",
    "minus infinity",
    "-65504",
    "domain",
    "range",
    "captured inputs",
    "by value",
    "definition",
    "means what its reference kernel computes",
    "ties",
    "order",
    "where all parts are numbers",
    "do not wrap",
    "all shapes",
    "these ranks",
    "for B >= 1, T >= 1",
    "UNCHECKED",
    "nan",
    "inf",
    '"kind": "rounding"',
    '", "evidence": "tested',
    "(evidence tested)",
    "literal",
    "guard",
    "assumes:",
    "%s %d %n",
    "aten::dropout",
    "bernoulli",
    "counterexample",
    "timeout",
    "out of memory",
    "error:",
]


# ---- other names ----


class Names:
    """One other name for each, the same on both sides; in the same order, since ties between leaves
    are broken by it."""

    def __init__(self, seed):
        self.rng, self.of = random.Random(seed), {}

    def word(self):
        return " ".join(self.rng.sample(WORDS, self.rng.choice((1, 1, 2))))

    def __call__(self, kind, name):
        if (kind, name) not in self.of:
            self.of[kind, name] = "%s %s" % (name, self.word())
        return self.of[kind, name]


def read(path):
    with open(path, encoding="utf-8") as f:
        return json.load(f)


def renamed_graph(path, names, side, outputs):
    g = read(path)
    g["model"], g["framework"] = names("model", "m"), names("framework", "f")
    for n in g["nodes"]:
        if "name" in n:
            n["name"] = names("leaf", n["name"])
        n["scope"] = n["scope"] if n.get("scope") else names.word().replace(" ", ".")
        n["source"] = n["source"] if n.get("source") else names.word() + ".py:7"
    ids = {n["id"]: names(side, n["id"]) for n in g["nodes"]}

    def other(v):
        if isinstance(v, list):
            return [other(x) for x in v]
        if not isinstance(v, dict):
            return v
        return {k: ids[x] if k in ("ref", "id") and x in ids else other(x) for k, x in v.items()}

    g["nodes"], g["outputs"] = other(g["nodes"]), other(g["outputs"])
    for o in g["outputs"] if outputs else ():
        o["name"] = names("output", o["name"])
    with open(path, "w", encoding="utf-8") as f:
        json.dump(g, f)


def renamed_tensors(path, names):
    with open(path, "rb") as f:
        (n,) = struct.unpack("<Q", f.read(8))
        head, data = json.loads(f.read(n)), f.read()
    head = {k if k == "__metadata__" else names("leaf", k): v for k, v in head.items()}
    text = json.dumps(head).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + data)


def rename(folder, seed):
    names, graphs = Names(seed), [os.path.join(folder, s, "graph.json") for s in ("left", "right")]
    # Where ranks' outputs make one, their names say which.
    had = [{o["name"] for o in read(p)["outputs"]} for p in graphs]
    for side in ("left", "right"):
        for name in sorted(os.listdir(os.path.join(folder, side))):
            path = os.path.join(folder, side, name)
            if name.endswith(".safetensors"):
                renamed_tensors(path, names)
            elif name == "graph.json":
                renamed_graph(path, names, side, had[0] == had[1])


# ---- pairs ----


def of_branches(seed, k):
    name, _, write = branches.captures_of(seed, k, "")
    return name, write


def of_masks(seed, k):
    _, pair = masks.draw(seed, k)
    return pair.name, pair.write


def of_constants(seed, k):
    _, case = list(constants.cases(seed, k + 1))[k]
    return case.name, case.write


def of_standing(seed, k):
    pairs = list(dsl.PAIRS.values())
    pair = random.Random("%s %d" % (seed, k)).choice(pairs)
    return pair.name, pair.write


SOURCES = (of_branches, of_masks, of_constants, of_standing)


# ---- what is said ----


def run(isomer, *words):
    return subprocess.run(
        [isomer, *words], stdin=subprocess.DEVNULL, capture_output=True, timeout=TIMEOUT
    ).returncode


def said(isomer, folder):
    """What a comparison says but for names."""
    sides = [os.path.join(folder, s) for s in ("left", "right")]
    report, path = os.path.join(folder, "report"), os.path.join(folder, "certificate")
    rc = run(isomer, "compare", *sides, "-q", "--json", report, "--certificate", path)
    if rc == 2:
        return {"status": 2}
    with open(report, encoding="utf-8") as f:
        doc = json.load(f)
    about = {
        "status": rc,
        "verdict": doc["verdict"],
        "evidence": doc["evidence"],
        "relative to": doc["relative_to"],
        "assumptions": count((a["kind"], a["weakens"]) for a in doc["assumptions"]),
        "rules": count((r["status"], r["scope"]) for r in doc["rules"]),
        "outputs": [(o["relation"], o["equivalent"]) for o in doc["outputs"]],
    }
    if rc == 0:
        about["check"] = run(isomer, "check", path, *sides, "-q", "--json", report)
        with open(report, encoding="utf-8") as f:
            about["checked"] = json.load(f)["evidence"]
    return about


def count(items):
    return sorted(collections.Counter(items).items())


def attempt(isomer, seed, k):
    """(the pair's name, what is said, what differs)"""
    name, write = SOURCES[k % len(SOURCES)](seed, k // len(SOURCES))
    with tempfile.TemporaryDirectory(prefix="isomer-worded-") as tmp:
        plain, other = (
            os.path.join(tmp, s) for s in ("a", random.Random(k).choice(WORDS[:30]).strip("/"))
        )
        for folder in (plain, other):
            os.makedirs(folder)
            write(folder)
        rename(other, "%s %d" % (seed, k))
        a, b = (said(isomer, folder) for folder in (plain, other))
    return name, a, {key: (a.get(key), b.get(key)) for key in {*a, *b} if a.get(key) != b.get(key)}


def main():
    a = argparse.ArgumentParser(description="names that are words of verdicts")
    a.add_argument("--isomer", default=os.path.join(ROOT, "build", "isomer"))
    a.add_argument("--seed", type=int, default=1)
    a.add_argument("--count", type=int, default=60)
    a.add_argument("--jobs", type=int, default=2)
    a.add_argument("-v", action="store_true")
    o = a.parse_args()
    isomer, failed, verdicts = os.path.abspath(o.isomer), 0, collections.Counter()
    with ThreadPoolExecutor(o.jobs) as pool:
        for k, (name, was, differs) in enumerate(
            pool.map(lambda k: attempt(isomer, o.seed, k), range(o.count))
        ):
            refused = was.get("check")
            verdicts["%s %s" % (was.get("verdict", "refused"), was.get("evidence") or "")] += 1
            failed += bool(differs or refused)
            if differs or refused or o.v:
                print(
                    "%s %d %s: %s"
                    % ("FAILED" if differs or refused else "ok", k, name, differs or was),
                    flush=True,
                )
    print(", ".join("%d %s" % (n, v.strip()) for v, n in sorted(verdicts.items())))
    print("%d passed, %d failed" % (o.count - failed, failed))
    return 1 if failed or not o.count else 0


if __name__ == "__main__":
    sys.exit(main())
