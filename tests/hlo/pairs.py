#!/usr/bin/env python3
"""Unpartitioned modules against what XLA's partitioner made of them, and against that with one
thing broken. tests/hlo/models.py makes the modules; those of tests/hlo/pairs are kept.

    tests/hlo/pairs.py [--isomer build/isomer] [DIR] [-k NAME] [--faults N]

DIR/NAME/whole.hlo and ranks.hlo must be equivalent, unless NAME is of OPEN, which may be undecided;
what is broken must be different. The last line is `N passed, N failed`."""

import argparse
import collections
import functools
import os
import resource
import subprocess
import sys
import tempfile
import types

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
WORDS = {0: "equivalent", 1: "different", 2: "error", 3: "undecided"}
# Pairs that the rules of today do not join, each with the step that is missing.
OPEN = {}


def capture(folder, whole, ranks):
    from isomer_capture import hlo
    from isomer_capture.errors import CaptureError

    for name, text in (("whole", whole), ("ranks", ranks)):
        with open(os.path.join(folder, name + ".hlo"), "w", encoding="utf-8") as f:
            f.write(text)
    at = {n: os.path.join(folder, n) for n in ("whole", "ranks")}
    try:
        for n in at:
            hlo.run(
                types.SimpleNamespace(
                    file=at[n] + ".hlo",
                    whole=at["whole"] + ".hlo" if n == "ranks" else None,
                    out=at[n],
                    values=None,
                    inputs=[],
                    ranges=[],
                    seed=0,
                    name=None,
                )
            )
    except CaptureError as e:
        return None, str(e)
    return at, None


def compare(isomer, whole, ranks):
    """(verdict, seconds of processor time, last line)"""
    with tempfile.TemporaryDirectory() as folder:
        at, error = capture(folder, whole, ranks)
        if error:
            return "refused", 0, error
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        relations = os.path.join(at["ranks"], "relations.txt")
        p = subprocess.run(
            [isomer, "compare", at["whole"], at["ranks"], "--relations", relations],
            capture_output=True,
            text=True,
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        lines = (p.stdout + p.stderr).strip().split("\n")
        return WORDS.get(p.returncode, "crash %d" % p.returncode), seconds, lines[-1]


DIST = {
    "dist::all_reduce": lambda xs, op: {
        "sum": lambda: sum(xs[1:], xs[0]),
        "max": lambda: functools.reduce(torch.maximum, xs),
        "min": lambda: functools.reduce(torch.minimum, xs),
    }[op](),
    "dist::all_gather": lambda xs, d: torch.cat(xs, d),
    "dist::reduce_scatter": lambda xs, op, d: sum(xs[1:], xs[0]).chunk(len(xs), d),
    "getitem": lambda x, k: x[k],
}


def results(ranks, whole):
    """The outputs' values of a partitioned module, by name."""
    from isomer_capture import hlo
    from isomer_capture.hlo import build, text

    parsed = text.parse(ranks, "ranks.hlo"), text.parse(whole, "whole.hlo")
    options = types.SimpleNamespace(values=None, inputs=[], ranges=[], seed=0, name=None)
    graph, weights, inputs, _ = hlo.lower(*parsed, options)
    values = {}

    def of(x):
        if isinstance(x, dict):
            if "dtype" in x:
                return getattr(torch, x["dtype"])
            return values[x["ref"]] if "ref" in x else float(x["float"])
        return [of(y) for y in x] if isinstance(x, list) else x

    for n in graph["nodes"]:
        if "name" in n:
            t = dict(weights, **inputs)[n["name"]]
            values[n["id"]] = t.double() if t.is_floating_point() else t
            continue
        run = DIST.get(n["op"]) or build.overload(n["op"])
        kwargs = {k: of(v) for k, v in n["kwargs"].items()}
        values[n["id"]] = run(*[of(a) for a in n["args"]], **kwargs)
    return {o["name"]: values[o["ref"]] for o in graph["outputs"]}


def harmless(whole, ranks, broken_ranks):
    """Whether a fault leaves every output as it was: the order of what is sorted afterwards, a
    maximum of numbers of which one rank alone has a positive one."""
    good, bad = results(ranks, whole), results(broken_ranks, whole)
    return all(torch.allclose(good[k], bad[k], rtol=1e-6, atol=1e-9) for k in good)


def spread(cases, n):
    """At most n of each fault, evenly over its places."""
    by = collections.defaultdict(list)
    for c in cases:
        by[c[0]].append(c)
    return [c for one in by.values() for c in one[:: max(1, len(one) // max(1, n))][:n]]


def main():
    a = argparse.ArgumentParser()
    a.add_argument("folder", nargs="?", default=os.path.join(HERE, "pairs"))
    a.add_argument("--isomer", default=os.path.join(ROOT, "build", "isomer"))
    a.add_argument("-k", default="", help="pairs whose name holds this")
    a.add_argument("--faults", type=int, default=1, help="of each kind, for each pair")
    options = a.parse_args()
    sys.path[:0] = [os.path.join(ROOT, "capture"), HERE]
    global torch
    try:
        import torch
    except ImportError:
        local = os.path.join(ROOT, ".venv", "bin", "python3")
        if os.path.exists(local) and sys.executable != local:
            os.execv(local, [local] + sys.argv)
        print("skipped: there is no PyTorch\n0 passed, 0 failed")
        return 0
    from faults import broken

    good = bad = 0
    seen = collections.Counter()
    for name in sorted(os.listdir(options.folder)):
        at = os.path.join(options.folder, name)
        if options.k not in name or not os.path.isdir(at):
            continue
        whole, ranks = (
            open(os.path.join(at, n), encoding="utf-8").read() for n in ("whole.hlo", "ranks.hlo")
        )
        verdict, seconds, line = compare(options.isomer, whole, ranks)
        ok = verdict == "equivalent" or (name in OPEN and verdict == "undecided")
        good, bad = good + ok, bad + (not ok)
        print(
            "%-28s %s, %.1f s%s" % (name, verdict, seconds, "" if ok else ": FAILED " + line),
            flush=True,
        )
        for fault, k, w, r in spread(broken(whole, ranks), options.faults):
            verdict, seconds, line = compare(options.isomer, w, r)
            ok = verdict == "different"
            if not ok and verdict != "refused" and harmless(whole, ranks, r):
                ok, fault = verdict in ("equivalent", "undecided"), "(harmless)"
            seen[fault, verdict] += 1
            good, bad = good + ok, bad + (not ok)
            if not ok:
                print("  %s %d: %s, FAILED %s" % (fault, k, verdict, line), flush=True)
    for (fault, verdict), n in sorted(seen.items()):
        print("  %-18s %-12s %d" % (fault, verdict, n))
    print("%d passed, %d failed" % (good, bad))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
