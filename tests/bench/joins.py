#!/usr/bin/env python3
"""Patterns whose rows meet in few places: graphs that a join in a poor order takes squares of steps
for, with as many matches as are known by construction. Each is run by `isomer saturate` at several
sizes; the table says how its time grows (n^x).

    tests/bench/joins.py [--isomer build/isomer] [--only NAME ...] [--sizes 1250 5000 20000]
    [--repeat 3] [--check]

With --check small sizes are run, the numbers of matches are held against the truth, and growth is
to stay below n^1.6; the last line is `N passed, N failed`."""

import argparse
import json
import math
import os
import random
import subprocess
import sys
import tempfile


def hub(n):
    """A wheel: through its hub n^2 paths of two edges, and 3 n triangles."""
    edges = [("h", i) for i in range(n)] + [(i, "h") for i in range(n)]
    edges += [(i, (i + 1) % n) for i in range(n)]
    rule = "?p = (e ?x ?y), (e ?y ?z), (e ?z ?x)"
    return rule, [("e", a, b) for a, b in edges], [], 3 * n


def square(n):
    """Four edges in a circle; the paths from a to b all go through one node."""
    rule = "?p = (a ?x ?y), (b ?y ?z), (c ?z ?w), (d ?w ?x)"
    rows = []
    for i in range(n):
        rows += [("a", i, "h"), ("b", "h", i), ("c", i, "w%d" % i), ("d", "w%d" % i, i)]
    return rule, rows, [], n


def path(n):
    """No circle; of n^2 paths n go on."""
    rows = [("a", i, "h") for i in range(n)] + [("b", "h", i) for i in range(n)]
    rows += [("c", "u%d" % i, i) for i in range(n)] + [("c", 0, "w")]
    return "?p = (a ?x ?y), (b ?y ?z), (c ?z ?w)", rows, [], n


def star(n):
    """Three lists at one node, the last of which is empty there."""
    rows = [("a", "h", i) for i in range(n)] + [("b", "h", i) for i in range(n)]
    rows += [("c", i, i) for i in range(n)]
    return "?p = (a ?x ?y), (b ?x ?z), (c ?x ?w)", rows, [], 0


def term(n):
    """One term: n parents, n nodes of one class, one of which has what is asked for below."""
    rows = [("g", "x%d" % i, "c") for i in range(n)] + [("f", "d%d" % i) for i in range(n)]
    rows += [("k", "u%d" % i) for i in range(n)] + [("k", "w")]
    unions = [("c", "(f d%d)" % i) for i in range(n)] + [("d0", "(k w)")]
    return "(g ?x (f (k ?y)))", rows, unions, n


def common(n):
    """Common factors: the sums of n products each have one factor in common."""
    rows, unions = [("+", "p", "q")], []
    for i in range(n):
        unions += [("p", "(* a%d b%d)" % (i, i)), ("q", "(* c%d b%d)" % (i, i))]
    unions[1] = ("q", "(* a0 z)")
    return "(+ (* ?x ?y) (* ?x ?z))", rows, unions, 1


def drawn(n):
    """Triangles of a drawn graph with some nodes of many edges, counted."""
    rng = random.Random(n)
    edges = set()
    while len(edges) < 3 * n:
        edges.add((int(n * rng.random() ** 3), int(n * rng.random() ** 3)))
    out, into = {}, {}
    for a, b in edges:
        out.setdefault(a, set()).add(b)
        into.setdefault(b, set()).add(a)
    found = sum(len(out.get(b, set()) & into.get(a, set())) for a, b in edges)
    rule = "?p = (e ?x ?y), (e ?y ?z), (e ?z ?x)"
    return rule, [("e", a, b) for a, b in sorted(edges)], [], found


SHAPES = {f.__name__: f for f in (hub, square, path, star, term, common, drawn)}


def workload(shape, n):
    rule, rows, unions, matches = SHAPES[shape](n)
    several = "," in rule
    text = ["(workload (name %s) (language simple) (analysis none) (rules" % shape]
    if several:
        text.append(' (multi-rule r "%s" "?p = (found)")' % rule)
    else:
        text.append(" (rule r %s (found))" % rule)
    text.append(") (start")
    text += ["(term (%s %s))" % (r[0], " ".join(map(str, r[1:]))) for r in rows]
    text += ["(union %s %s)" % u for u in unions]
    text.append(") (measure (run (scheduler simple) (iteration-limit 1) (node-limit none))))")
    return "\n".join(text), matches


def run(isomer, folder, shape, n, repeat):
    """(matches, matches that there are, least seconds of the processor)"""
    path = os.path.join(folder, "%s-%d.sexp" % (shape, n))
    text, truth = workload(shape, n)
    with open(path, "w") as f:
        f.write(text)
    least = math.inf
    for _ in range(repeat):
        p = subprocess.run(
            [isomer, "saturate", path, "--json", "-"], capture_output=True, check=True
        )
        one = json.loads(p.stdout)["runs"][0]
        least = min(least, one["cpu_seconds"])
    return one["iterations"][1]["matches"], truth, least


def main():
    a = argparse.ArgumentParser()
    a.add_argument("--isomer", default="build/isomer")
    a.add_argument("--only", nargs="*")
    a.add_argument("--sizes", nargs="*", type=int)
    a.add_argument("--repeat", type=int, default=3)
    a.add_argument("--check", action="store_true")
    a = a.parse_args()
    sizes = a.sizes or ([4, 50, 1000, 16000] if a.check else [1250, 5000, 20000])
    passed = failed = 0
    print("%-8s %8s %9s %10s %8s" % ("shape", "n", "matches", "ms", "growth"))
    with tempfile.TemporaryDirectory() as folder:
        for shape in a.only or SHAPES:
            before = None
            for n in sizes:
                found, truth, s = run(a.isomer, folder, shape, n, a.repeat)
                growth = math.log(s / before[1]) / math.log(n / before[0]) if before else 0
                wrong = found != truth or (n >= 16000 and a.check and growth > 1.6)
                passed, failed = passed + (not wrong), failed + wrong
                print(
                    "%-8s %8d %9d %10.2f %8s%s"
                    % (
                        shape,
                        n,
                        found,
                        1e3 * s,
                        "n^%.2f" % growth if before else "",
                        "  WRONG: %d matches are there" % truth if found != truth else "",
                    ),
                    flush=True,
                )
                before = n, s
    print("%d passed, %d failed" % (passed, failed))
    return 1 if failed else 0


sys.exit(main())
