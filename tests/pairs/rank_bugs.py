#!/usr/bin/env python3
"""The six bugs of GraphGuard (section 6.2) rebuilt: a sequential graph, what the ranks (or the
micro-batches) make of it, and the same with the bug. Without it a pair is `equivalent`; with it
`different`, in the words given here and at the operator given here. One bug leaves a relation that
holds, and is no fault of the values: it has to be listed as surprising.

    tests/pairs/rank_bugs.py [--isomer build/isomer] [--only TEXT] [--show]

The last line is `N passed, N failed`."""

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from distributed import ROOT, VERDICT  # noqa: E402
from dsl import Data, f32, values  # noqa: E402
from parallel import Outputs, write_sides  # noqa: E402
from world import Named, Ranks, World, part  # noqa: E402

BUGS = []  # name, build(w, bug), words that the report has to have, operators that it may name


def bug(words, *operators):
    def add(build):
        BUGS.append((build.__name__, build, words, operators))
        return build

    return add


def own_rows(w, name, dim, *shape):
    """An input of which each rank has a part."""
    d = values(name, *shape, input=True)
    return w.each(lambda r: w.g.leaf("input", w.name(r, name), part(d, dim, r, w.n), f32))


def table(w, f, rows, d):
    data = [f((p + 1) * 0.3 / (i % (d // 2) + 1)) for p in range(rows) for i in range(d)]
    t = w.g.leaf("constant", f.__name__, Data((rows, d), data), f32)
    return Ranks(w, [t] * w.n)


@bug(["rank 1"], "mul.Tensor", "slice.Tensor")
def rope_offset_in_the_backward(w, wrong):
    """1: each rank of a sequence takes its rows of the rotation; the backward takes the first."""
    o, rows, d = Outputs(), 8, 4
    t = rows // w.n
    q, g = own_rows(w, "q", 0, rows, d), own_rows(w, "g", 0, rows, d)
    o.inputs(w, 0, "q", "g")
    cos, sin = table(w, math.cos, rows, d), table(w, math.sin, rows, d)

    def mine(x, backward):
        if w.n == 1:
            return x
        first = w.each(lambda r: 0 if wrong and backward else r * t)
        return x.map(lambda x, a: x.slice(0, a, a + t), first)

    turned = q.slice(-1, d // 2, d).neg().cat([q.slice(-1, 0, d // 2)], -1)
    o.parts("y", q.mul(mine(cos, False)).add(turned.mul(mine(sin, False))), 0)
    s = g.mul(mine(sin, True))
    back = s.slice(-1, d // 2, d).cat([s.slice(-1, 0, d // 2).neg()], -1)
    o.parts("grad.q", g.mul(mine(cos, True)).add(back), 0)
    return o


@bug(["2 times"], "mm", "dist::reduce_scatter", "mul.Tensor")
def auxiliary_loss_not_scaled(w, wrong):
    """2: all ranks compute the gradient of the auxiliary loss, and their sum is scattered."""
    o = Outputs()
    h, table_ = w.x("h", 8, 6), w.param("router", 4, 6)
    p = h.mm(table_.t()).softmax(-1)
    share = p.mean([0], True).mul(0.01)
    d = p.mul(share).mm(table_)
    if w.n > 1 and not wrong:
        d = d.div(float(w.n))
    o.parts("grad.h", w.scattered(d, 0) if w.n > 1 else d, 0)
    return o


@bug(["begins one too late"], "cat", "slice.Tensor", "mm", "baddbmm", "dist::all_gather")
def padding_and_slices_differ(w, wrong):
    """3: ranks have 4 and 3 rows, and pad to 4 to gather them; slices drop the padding."""
    o, have = Outputs(), [4, 3]
    x = values("x", 7, 6, input=True)
    weight = w.param("w", 6, 5)
    if w.n == 1:
        h = Ranks(w, [w.g.leaf("input", "x", x, f32)])
        o.at["y"] = h.mul(2.0).mm(weight).each[0]
        return o
    starts = [0, 4]
    h = w.each(
        lambda r: w.g.leaf("input", w.name(r, "x"), x.rows(starts[r], starts[r] + have[r]), f32)
    )
    o.lines.append("input x = cat([rank0.x, rank1.x], 0)")
    h = h.mul(2.0)
    h = w.each(
        lambda r: h.each[r].op("constant_pad_nd", [h.each[r], [0, 0, 0, 4 - have[r]], 0.0], (4, 6))
    )
    all_ = w.gathered(h, 0)
    ends = [(0, 3), (4, 8)] if wrong else [(0, 4), (4, 7)]
    pieces = [all_.map(lambda t, a=a, b=b: t.slice(0, a, b)) for a, b in ends]
    o.replicas("y", pieces[0].cat([pieces[1]], 0).mm(weight))
    return o


@bug(["`rank0.w1`"], "mm")
def experts_sharded_under_sequence_parallelism(w, wrong):
    """4: each rank has rows of the tokens, and has to have all of an expert's weights."""
    o = Outputs()
    x = own_rows(w, "x", 0, 8, 6)
    o.inputs(w, 0, "x")
    weight = lambda n, dim, *s: w.cut(n, dim, *s) if wrong else w.param(n, *s)
    h = x.mm(weight("w1", 1, 6, 10)).silu()
    o.parts("y", h.mm(weight("w2", 0, 10, 6)), 0)
    return o


@bug(["SURPRISING"])
def norm_weight_not_reduced(w, wrong):
    """5: each rank has the gradient of a norm's weight from its rows, and nobody adds them."""
    o = Outputs()
    x, g = own_rows(w, "x", 0, 8, 6), own_rows(w, "g", 0, 8, 6)
    o.inputs(w, 0, "x", "g")
    weight, bias = w.param("norm.weight", 6), w.param("norm.bias", 6)
    back = lambda t, x, m, r, v, b: t.several(
        "native_layer_norm_backward",
        [t, x, [6], m, r, v, b, [True, True, True]],
        [list(x.shape), [6], [6]],
    )
    few = [x.shape[0], 1]
    y, mean, rstd = x.map(
        lambda t, v, b: t.several("native_layer_norm", [t, [6], v, b, 1e-5], [t.shape, few, few]),
        weight,
        bias,
    )
    grads = g.map(back, x, mean, rstd, weight, bias)
    o.parts("y", y, 0)
    grad = grads[1] if wrong else w.all_reduce(grads[1], taped=False)
    o.replicas("grad.norm.weight", grad)
    return o


@bug(["2 times"], "add.Tensor", "mean.dim")
def accumulated_loss_not_scaled(w, wrong):
    """6: the losses of micro-batches are added up, and not divided by how many they are. The
    micro-batches are one rank's; `w.n` says how many."""
    o, n = Outputs(), w.n
    w.n = 1
    x, y = w.x("x", 8, 6), w.x("y", 8, 1)
    weight = w.param("w", 1, 6)
    loss = None
    for k in range(n):
        cut = lambda v, k=k: (
            v.map(lambda t: t.slice(0, k * 8 // n, (k + 1) * 8 // n)) if n > 1 else v
        )
        e = cut(x).mm(weight.t()).sub(cut(y))
        here = e.mul(e).mean([0, 1])
        loss = here if loss is None else loss + here
    o.at["loss"] = (loss if wrong or n == 1 else loss.div(float(n))).each[0]
    return o


@bug(["only 4 to 12 along dimension 1 are added up", "the right leaves out the others"], "mm")
def gradient_of_a_microbatch_left_out(w, wrong):
    """A rank goes through three micro-batches, all of which are in its loss; of the weight's
    gradients the first is not added."""
    o, n = Outputs(), 3 if w.n > 1 else 1
    w.n = 1
    x, y = w.x("x", 12, 6), w.x("y", 12, 5)
    weight = w.param("w", 5, 6)
    loss = grad = None
    parts = lambda v: v.map(
        lambda t: t.several("split.Tensor", [t, 4, 0], [[4, t.shape[1]]] * n) if n > 1 else [t]
    )
    xs, ys = parts(x), parts(y)
    for k in range(n):
        e = xs[k].mm(weight.t()).sub(ys[k])
        here = e.mul(e).sum([0, 1])
        loss = here if loss is None else loss + here
        if not (wrong and k == 0):
            more = e.mul(2.0).t().mm(xs[k])
            grad = more if grad is None else grad + more
    o.at["loss"], o.at["grad.w"] = loss.each[0], grad.each[0]
    return o


@bug(["nothing on the right reads `rank1.x`", "`rank0.x` is read in its place"])
def rows_of_another_rank(w, wrong):
    """The last rank reads the first one's rows, and its own are read by nobody."""
    o = Outputs()
    x = own_rows(w, "x", 0, 8, 6)
    o.inputs(w, 0, "x")
    own = Ranks(w, [x.each[0]] * w.n) if wrong else x
    o.parts("y", own.mm(w.param("w", 6, 5)), 0)
    return o


@bug(["is taken twice"], "sub.Tensor")
def step_taken_twice(w, wrong):
    """The update of a parameter is applied to its own result once more."""
    o = Outputs()
    w, twice = World(w.g, 1), wrong
    x, weight = w.x("x", 8, 6), w.param("w", 6, 6)
    h = x.mm(weight)
    step = x.t().mm(h).mul(0.125)
    new = weight.sub(step)
    o.at["y"] = h.each[0]
    o.at["updated.w"] = (new.sub(step) if twice else new).each[0]
    return o


def sides(build, wrong):
    out = []
    for n in (1, 2):
        g = Named()
        out.append((g, build(World(g, n), wrong and n > 1)))
    return out


def compare(isomer, folder, *more):
    command = [isomer, "compare", os.path.join(folder, "left"), os.path.join(folder, "right")]
    relations, report = os.path.join(folder, "relations"), os.path.join(folder, "report.json")
    if os.path.getsize(relations):
        command += ["--relations", relations]
    p = subprocess.run(command + ["--json", report, *more], capture_output=True, text=True)
    loaded = None
    if p.returncode in (0, 1, 3):
        with open(report, encoding="utf-8") as f:
            loaded = json.load(f)
    return VERDICT.get(p.returncode, "crash"), loaded, p.stdout + p.stderr


def wrong_with(isomer, folder, build, words, operators, buggy):
    left, right = sides(build, buggy)
    refine = "SURPRISING" in words
    if refine and buggy:
        right[1].lines = [l for l in right[1].lines if l.startswith("input ")]
        names = [k for k in right[1].at if k.startswith("grad.")]
        right[1].at = {k: right[1].at[k] for k in names}
        left[1].at = {"grad.norm.weight": left[1].at["grad.norm.weight"]}
        (lg, lo), (rg, ro) = left, right
        lg.write(os.path.join(folder, "left"), lo.at)
        rg.write(os.path.join(folder, "right"), ro.at)
        with open(os.path.join(folder, "relations"), "w", encoding="utf-8") as f:
            f.write("".join(line + "\n" for line in ro.lines))
    else:
        write_sides(folder, left, right)
    verdict, report, said = compare(isomer, folder, *(["--refine"] if refine and buggy else []))
    if not buggy:
        return None if verdict == "equivalent" else "without the bug: %s" % verdict, said
    if refine:
        odd = [r for r in report["refinement"] if r["surprising"]] if report else []
        found = verdict == "equivalent" and len(odd) == 1 and "sum" in odd[0]["relation"]
        return None if found else "%s, surprising: %s" % (verdict, odd), said
    if verdict != "different":
        return "with the bug: %s" % verdict, said
    d = report["divergences"][0]
    where = [d[s]["op"].replace("aten::", "") for s in ("left", "right") if d[s]]
    if operators and not set(where) & set(operators):
        return "it is at %s" % where, said
    missing = [t for t in words if t not in said]
    return "it does not say %s" % missing if missing else None, said


def main():
    a = argparse.ArgumentParser(description="six published bugs of distributed programs")
    a.add_argument("--isomer", default=os.path.join(ROOT, "build", "isomer"))
    a.add_argument("--only", default="")
    a.add_argument("--show", action="store_true", help="what is said of each bug")
    options = a.parse_args()
    passed = failed = 0
    for name, build, words, operators in BUGS:
        for buggy in (False, True) if options.only in name else ():
            with tempfile.TemporaryDirectory() as folder:
                wrong, said = wrong_with(options.isomer, folder, build, words, operators, buggy)
            passed, failed = passed + (not wrong), failed + bool(wrong)
            if wrong:
                print("FAILED %s: %s" % (name, wrong))
            if (options.show and buggy) or wrong:
                print(said)
    print("%d passed, %d failed" % (passed, failed))
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
