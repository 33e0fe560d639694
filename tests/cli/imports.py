#!/usr/bin/env python3
"""`isomer saturate --import FILE.json --extract dag|tree`: drawn e-graphs against all choices there
are, and damaged files, each of which is read or refused in one line. Plain Python 3.

    tests/cli/imports.py [--isomer build/isomer] [--count 60] [--seed 1]

The last line is `N passed, N failed`."""

import argparse
import itertools
import json
import math
import os
import random
import subprocess
import sys
import tempfile

passed = failed = 0


def expect(ok, text, *args):
    global passed, failed
    passed, failed = passed + bool(ok), failed + (not ok)
    if not ok:
        print("FAILED: " + text % args)


def extract(isomer, path, *args):
    p = subprocess.run(
        [isomer, "saturate", "--import", path, *args, "--json", "-"],
        capture_output=True,
        timeout=120,
    )
    return p.returncode, p.stdout.decode(), p.stderr.decode("utf-8", "replace")


def graph(nodes, roots):
    """nodes: class -> [(cost, children)]"""
    out = {}
    for c, of in nodes.items():
        for m, (cost, kids) in enumerate(of):
            out["%s.%d" % (c, m)] = {
                "op": "f%s.%d" % (c, m),
                "eclass": str(c),
                "cost": cost,
                "children": ["%s.0" % k for k in kids],
            }
    return {"nodes": out, "root_eclasses": [str(r) for r in roots]}


def truth(nodes, roots):
    """The least cost of one choice for each class without a circle."""
    best = math.inf
    for choice in itertools.product(*(range(len(of)) for of in nodes.values())):
        pick = dict(zip(nodes, choice))
        done, cost = {}, 0

        def visit(c):
            if done.get(c):
                return done[c] == 2
            done[c] = 1
            ok = all(visit(k) for k in nodes[c][pick[c]][1])
            done[c] = 2
            return ok

        if all(visit(r) for r in roots):
            cost = sum(nodes[c][pick[c]][0] for c in done)
            best = min(best, cost)
    return best


def lists(n_items, n_lists, dear, cheap):
    """Items that one dear list has all of, and cheap ones a few each."""
    nodes = {"top": [(0, ["i%d" % i for i in range(n_items)])]}
    for i in range(n_items):
        nodes["i%d" % i] = [(0, ["l%d" % (1 + i % n_lists)]), (0, ["l0"])]
    for k in range(n_lists + 1):
        nodes["l%d" % k] = [(cheap if k else dear, [])]
    return nodes, ["top"]


def drawn(rng):
    n = rng.randint(2, 7)
    nodes = {
        c: [
            (rng.randint(0, 9), [rng.randrange(n) for _ in range(rng.randint(0, 3))])
            for _ in range(rng.randint(1, 3))
        ]
        for c in range(n)
    }
    return nodes, [rng.randrange(n) for _ in range(rng.randint(1, 2))]


def check_graph(isomer, path, nodes, roots):
    """Returns: the file's text where it could be read."""
    text = json.dumps(graph(nodes, roots))
    open(path, "w").write(text)
    best = truth(nodes, roots)
    status, out, err = extract(isomer, path, "--extract", "dag")
    if status == 2:
        expect("without a finite term" in err and err.count("\n") == 1, "refused: %s", err)
        return None
    r = json.loads(out)
    expect(status == 0 and r["optimal"], "%s: status %d, %s", text, status, err)
    expect(r["cost"] == r["bound"] == best, "%s: %s, but %s is the best", text, r["cost"], best)
    expect(sum(t["cost"] for t in r["terms"]) == best, "%s: the terms do not add up", text)
    before = set()
    for t in r["terms"]:
        expect(set(t["children"]) <= before, "%s: children after parents", text)
        before.add(t["id"])
    expect(set(r["roots"]) <= before, "%s: a root is missing", text)
    status, out, err = extract(isomer, path, "--extract", "dag", "--work", "1")
    r = json.loads(out)
    expect(r["bound"] <= best <= r["cost"], "%s: %s <= %s", text, r["bound"], r["cost"])
    status, out, err = extract(isomer, path, "--extract", "tree")
    expect(status == 0 and json.loads(out)["trees"], "%s: %s", text, err)
    return text


def damage(rng, text):
    b = bytearray(text.encode())
    how = rng.randrange(5)
    at = rng.randrange(len(b))
    if how == 0:
        del b[at:]
    elif how == 1:
        b[at] = rng.randrange(256)
    elif how == 2:
        del b[at : at + rng.randint(1, 8)]
    elif how == 3:
        b[at:at] = rng.choice([b"{", b"[", b'"', b"\\", b",", b"-1e999", b"[" * 200, b"null"])
    else:
        to = rng.randrange(len(b))
        b[at:at] = b[to : to + rng.randint(1, 20)]
    return bytes(b)


def check_damaged(isomer, path, data):
    open(path, "wb").write(data)
    status, out, err = extract(isomer, path, "--extract", "dag", "--work", "10000")
    one = err.count("\n") == 1 and err.startswith("isomer: ")
    expect(status in (0, 2) and (status == 0 or one), "%r: status %d, %s", data, status, err)


def main():
    a = argparse.ArgumentParser()
    a.add_argument("--isomer", default="build/isomer")
    a.add_argument("--count", type=int, default=60)
    a.add_argument("--seed", type=int, default=1)
    a = a.parse_args()
    rng = random.Random(a.seed)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "g.json")
        nodes, roots = lists(12, 4, 37, 13)
        expect(truth(nodes, roots) == 37, "four lists of 13 are 52")
        texts = [check_graph(a.isomer, path, nodes, roots)]
        for _ in range(a.count):
            texts.append(check_graph(a.isomer, path, *drawn(rng)))
        texts = [t for t in texts if t]
        expect(len(texts) > a.count / 3, "only %d graphs could be read", len(texts))
        for _ in range(4 * a.count):
            check_damaged(a.isomer, path, damage(rng, rng.choice(texts)))
        for data in (b"", b"[]", b"{}", b'{"nodes": 1}', b"\xff\xfe", b"{" * 100000):
            check_damaged(a.isomer, path, data)
        for data in ({}, {"verdict": "equivalent"}, {"root_eclasses": []}, {"nodes": {}}):
            with open(path, "w") as f:
                json.dump(data, f)
            status, out, err = extract(a.isomer, path, "--extract", "tree")
            expect(status == (0 if "nodes" in data else 2), "%s: %d %s", data, status, err)
        for args in (["--extract", "best"], ["--work", "0"], ["--explain"], ["FILE.sexp"]):
            status, out, err = extract(a.isomer, path, *args)
            expect(status == 2 and err.startswith("isomer"), "%s: %d %s", args, status, err)
        status, out, err = extract(a.isomer, os.path.join(folder, "none.json"))
        expect(status == 2 and err.count("\n") == 1, "no file: %s", err)
    print("%d passed, %d failed" % (passed, failed))
    return 1 if failed else 0


sys.exit(main())
