#!/usr/bin/env python3
"""The kinds of plain_kinds.py, whole against divided over ranks, recorded as they run.

    tests/pairs/plain_more.py [--isomer build/isomer] [--seed N] [--count N] [--kind NAME] [--lines]
                              [--keep FOLDER] [--table]

Without --kind: those of OPEN are left out, which the rules of today do not join. --lines: the
relations file speaks of parameters, too. Both sides run in float64 first, and must agree. The last
line is `N passed, N failed`."""

import argparse
import collections
import os
import random
import sys
import tempfile

import torch

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import distributed
import plain_kinds as kinds
import plain_record as record

# A ring's running maximum and sum backward; a vector of all gradients, padded and cut anywhere.
OPEN = ("context_ring", "flat_zero")


def side(kind, s, n, dtype, recorded):
    """(graph, each rank's Run)"""

    def program(world):
        r = kinds.Run(world, s, dtype)
        if world.recorder:
            with world.recorder:
                kinds.KINDS[kind](r)
        else:
            kinds.KINDS[kind](r)
        return r

    was = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        return record.run(n, program, recorded)
    finally:
        torch.set_default_dtype(was)


def holders(runs, name):
    return [k for k, r in enumerate(runs) if name in r.outs]


def wholes(kind, runs, name):
    """What the ranks' outputs of this name are together, for each replica."""
    have = holders(runs, name)
    cut = runs[have[0]].how[name]
    if cut is None:
        return [runs[k].outs[name] for k in have]
    step = 2 if kind == "grid" else len(have)
    each = [have[i : i + step] for i in range(0, len(have), step)]
    return [torch.cat([runs[k].outs[name] for k in some], cut) for some in each]


def farthest(kind, s, n):
    _, (left,) = side(kind, s, 1, torch.float64, False)
    _, right = side(kind, s, n, torch.float64, False)
    far = 0.0
    for name, t in left.outs.items():
        for w in wholes(kind, right, name):
            far = max(far, ((w - t).abs().max() / t.abs().max().clamp(min=1e-3)).item())
    return far


def together(what, name, parts, cut, step):
    """Lines: parts side by side, once for each replica."""
    return [
        "%s %s = cat([%s], %d)" % (what, name, ", ".join(parts[i : i + step]), cut)
        for i in range(0, len(parts), step)
    ]


def write(folder, kind, s, n, every):
    graph, (left,) = side(kind, s, 1, torch.float32, True)
    graph.write(os.path.join(folder, "left"), {k: (0, t) for k, t in left.outs.items()})
    graph, runs = side(kind, s, n, torch.float32, True)
    outs, lines = {}, []
    step = 2 if kind == "grid" else n
    for name in left.outs:
        have = holders(runs, name)
        cut = runs[have[0]].how[name]
        for k in have:
            own = name if k == have[0] else "%s_rank%d" % (name, k)
            outs[own if cut is None else "%s.part%d" % (name, k)] = k, runs[k].outs[name]
        if cut is not None:
            lines += together("output", name, ["%s.part%d" % (name, k) for k in have], cut, step)
    for name in left.inputs:
        have = [k for k, r in enumerate(runs) if name in r.inputs]
        cut = runs[have[0]].inputs[name]
        parts = ["rank%d.%s" % (k, name) for k in have]
        if cut is None:
            lines += ["input %s = %s" % (name, p) for p in parts]
        elif kind == "grid":
            for k in range(2):
                lines += together("input", name, parts[k::2], cut, n)
        else:
            lines += together("input", name, parts, cut, n)
        if name == "labels":
            lines.append("input labels range 0 %d" % (s["vocabulary"] - 1))
    for name in left.params if every else []:
        have = [k for k, r in enumerate(runs) if name in r.params]
        cut = runs[have[0]].cuts[name]
        parts = ["rank%d.%s" % (k, name) for k in have]
        if cut is None:
            lines += ["leaf %s = %s" % (name, p) for p in parts]
        else:
            lines += together("leaf", name, parts, cut, step)
    graph.write(os.path.join(folder, "right"), outs)
    with open(os.path.join(folder, "relations"), "w", encoding="utf-8") as f:
        f.write("".join(line + "\n" for line in lines))


def judged(name, kind, s, n, every, folder, isomer):
    far = farthest(kind, s, n)
    if far > 1e-9:
        return "sides are %g apart" % far, name, "generator"
    write(folder, kind, s, n, every)
    found = distributed.compare(isomer, folder)
    wrong, line = distributed.judged(name, found)
    return wrong, line, found[0]


def main():
    a = argparse.ArgumentParser(description="further kinds in plain PyTorch")
    a.add_argument("--isomer", default=os.path.join(distributed.ROOT, "build", "isomer"))
    a.add_argument("--seed", type=int, default=1)
    a.add_argument("--count", type=int, default=1, help="of each kind")
    a.add_argument("--first", type=int, default=0)
    a.add_argument("--kind", choices=list(kinds.KINDS))
    a.add_argument("--lines", action="store_true")
    a.add_argument("--keep", help="a folder for the captures")
    a.add_argument("--limit", type=int, default=60, help="seconds of processor time")
    a.add_argument("--table", action="store_true", help="print a line for each pair")
    options = a.parse_args()
    distributed.LIMIT = options.limit
    if not options.table:
        distributed.SECONDS = options.limit
    passed = failed = 0
    verdicts = collections.Counter()
    cases = [
        (kind, k)
        for k in range(options.first, options.first + options.count)
        for kind in kinds.KINDS
        if (kind == options.kind if options.kind else kind not in OPEN)
    ]
    for kind, k in cases:
        s, n = kinds.draw(random.Random("more %d %s %d" % (options.seed, kind, k)), kind)
        said = ("%s=%s" % (x, int(v) if v in (True, False) else v) for x, v in s.items())
        name = "%s-%d-%d r%d %s" % (kind, options.seed, k, n, " ".join(said))
        with tempfile.TemporaryDirectory() as own:
            at = "%s-%d-%d" % (kind, options.seed, k)
            folder = os.path.join(options.keep, at) if options.keep else own
            wrong, line, verdict = judged(name, kind, s, n, options.lines, folder, options.isomer)
        passed += wrong is None
        failed += wrong is not None
        verdicts[verdict] += 1
        if options.table or wrong:
            print("%s%s" % ("FAILED %s: " % wrong if wrong else "", line), flush=True)
    if options.table:
        print(", ".join("%d %s" % (n, v) for v, n in sorted(verdicts.items())))
    print("%d passed, %d failed" % (passed, failed))
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
