#!/usr/bin/env python3
"""Pairs whose graphs turn what is no number back into numbers, drawn by seed.

    tests/pairs/undefined_drawn.py [--isomer build/isomer] [--count 60] [--seed 0]

An operand is undefined for some inputs alone: a mean over no tokens, a quotient by a difference, a
row of softmax that is masked wholly, a power or an exponential that overflows; a guard makes a
number of it. The true twin has the operand written otherwise, the false one another number in its
place. libtorch says on the inputs where it
is undefined that the one agrees and the other does not. No false twin may be `equivalent`, no true
one `different`, and at most one true one in ten `undecided`. The last line is `N passed, N failed`.
"""

import argparse
import os
import random
import subprocess
import sys
import tempfile

import dsl
import torch
import truth

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
INF = float("inf")


class Run(truth.Run):
    inputs = {}

    def node(self, n):
        if n["op"] == "input" and n["name"] in self.inputs:
            return self.inputs[n["name"]].reshape(n["outputs"][0]["shape"])
        return super().node(n)


# ---- operands: of a graph, the number at which they are undefined, and how they are written ----


def mean_of_tokens(g, pole, again):
    ids, w = g.ints("ids", [3, 17, 41, 9, 55, 12], 64), g.param("w", 64, 4)
    m = ids.ne(pole).to(dsl.f32).unsqueeze(1)
    s, n = (w.embedding(ids) * m).sum(0), m.sum(0)
    return n.reciprocal() * s if again else s / n


def quotient(g, pole, again):
    x, y = g.x(3, 4, name="x"), g.x(3, 4, name="y")
    return (y - pole).reciprocal() * (x - pole) if again else (x - pole) / (y - pole)


def masked_row(g, pole, again):
    ids, x = g.ints("ids", [3, 17, 41, 9, 55, 12], 64), g.x(6, 6, name="x")
    hidden = ids.eq(pole).unsqueeze(0).expand(6, 6)
    p = x * 2.0 if not again else x + x
    return p.masked_fill(hidden, -INF).softmax(1)


def large(x, **inputs):
    return {"x": torch.full((3, 4), x, dtype=torch.float64), **inputs}


def cube(g, again):
    x = g.x(3, 4, name="x")
    return x.op("pow.Tensor_Scalar", [x, 3]) if again else x * x * x


def scaled(g, again):
    x = g.x(3, 4, name="x") * 1e160
    return x * (x * 2.0) if again else (x * x) * 2.0


def exponential(g, again):
    x = g.x(3, 4, name="x")
    return x.exp() + x.exp() if again else x.exp() * 2.0


def weights(g, again):
    e = g.x(3, 4, name="x").exp()
    return e.sum(-1, True).expand(3, 4) if again else (e * 1.0).sum(-1, True).expand(3, 4)


def projected(g, again):
    x, w = g.x(3, 4, name="x"), g.param("w", 4, 4)
    y = x * x
    return (y * y).linear(w * w) if again else (y * y).mm((w * w).t())


OVERFLOWS = [(cube, 1e150), (scaled, 1e10), (exponential, 800.0), (weights, 900.0)]
OVERFLOWS.append((projected, 1e100))


def operands(rng):
    token, number = rng.choice([0, 1, 2, 9, 33, 63]), rng.choice([0.0, 1.0, -0.5, 0.3, 2.7, -3.0])
    ids = {"ids": torch.full((6,), token)}
    full = torch.full((3, 4), number, dtype=torch.float64)
    return rng.choice(
        [
            (mean_of_tokens, token, ids),
            (quotient, number, {"x": full, "y": full}),
            (masked_row, token, ids),
        ]
    )


# ---- guards: of an operand and the number that stands for what is none ----

GUARDS = {
    "nan_to_num": lambda q, v: q.op("nan_to_num", [q, v]),
    "isnan": lambda q, v: q.isnan().where(v, q),
    "not isnan": lambda q, v: q.isnan().logical_not().where(q, v),
    "equal to itself": lambda q, v: q.eq(q).where(q, v),
    "unequal to itself": lambda q, v: q.masked_fill(q.ne(q), v),
    "flag": lambda q, v: q.isnan().to(dsl.f32) * v,
    "either": lambda q, v: q.gt(0.0).to(dsl.f32) + q.le(0.0).to(dsl.f32) * v,
}

# Of an operand that is infinite there.
INFINITE = {
    "nan_to_num": lambda q, v: q.op("nan_to_num", [q, 0.0, v]),
    "isinf": lambda q, v: q.isinf().where(v, q),
    "isfinite": lambda q, v: q.isfinite().where(q, v),
    "equal to infinity": lambda q, v: q.eq(INF).where(v, q),
    "below infinity": lambda q, v: q.lt(INF).where(q, v),
    "filled": lambda q, v: q.masked_fill(q.isinf(), v),
    "less itself": lambda q, v: (q - q).isnan().where(v, q),
    "times zero": lambda q, v: (q * 0.0).isnan().where(v, q),
    "flag": lambda q, v: q.isinf().to(dsl.f32) * v,
    "flag of infinity": lambda q, v: q.eq(INF).to(dsl.f32) * v,
    "flag of a difference": lambda q, v: (q - q).ne(0.0).to(dsl.f32) * v,
    "flag less itself": lambda q, v: (q - q).isnan().to(dsl.f32) * v,
}


def result(build, inputs):
    g = dsl.Graph()
    y = build(g)
    run = Run(g)
    run.inputs = inputs
    run.all()
    return run.at[y.ref]


def draw(rng):
    """The left graph, its true twin, its false one and the inputs that tell."""
    if rng.random() < 0.5:
        written, pole = rng.choice(OVERFLOWS)
        inputs, guards = large(pole), INFINITE

        def operand(g, _, again):
            return written(g, again)

        operand.__name__ = written.__name__
    else:
        operand, pole, inputs = operands(rng)
        guards = GUARDS
    name = rng.choice(sorted(guards))
    guard = guards[name]
    v = rng.choice([0.5, 2.0, -1.0])
    other = None if name == "either" else rng.choice([v + 1.0, None])
    if "flag" in name:
        other = 0.0

    def left(g):
        return guard(operand(g, pole, False), v)

    def true(g):
        return guard(operand(g, pole, True), v)

    def false(g):
        q = operand(g, pole, False)
        if name == "either":  # for every number
            return q.gt(0.0).to(dsl.f32) + q.gt(0.0).logical_not().to(dsl.f32) * v
        return q if other is None else guard(q, other)

    return "%s, %s at %g" % (operand.__name__, name, pole), left, true, false, inputs


def verdict(isomer, folder, name, left, right):
    dsl.Pair(name, "", "", left, right).write(folder)
    sides = [os.path.join(folder, "left"), os.path.join(folder, "right")]
    p = subprocess.run([isomer, "compare", *sides], capture_output=True, text=True)
    return {0: dsl.EQUIVALENT, 1: dsl.DIFFERENT, 3: dsl.UNDECIDED}.get(p.returncode, dsl.ERROR)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--isomer", default=os.path.join(ROOT, "build", "isomer"))
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    o = parser.parse_args()
    torch.set_default_dtype(torch.float64)
    passed = failed = undecided = 0
    for i in range(o.count):
        name, left, true, false, inputs = draw(random.Random("%d %d" % (o.seed, i)))
        at = [result(side, inputs) for side in (left, true, false)]
        assert torch.allclose(at[0], at[1], equal_nan=True), name
        assert not torch.allclose(at[0], at[2], equal_nan=True), name
        for right, wrong in ((true, dsl.DIFFERENT), (false, dsl.EQUIVALENT)):
            with tempfile.TemporaryDirectory() as folder:
                got = verdict(o.isomer, folder, name, left, right)
            undecided += right is true and got == dsl.UNDECIDED
            if got in (wrong, dsl.ERROR):
                print("FAILED %s: the %s twin is %s" % (name, right.__name__, got))
            failed += got in (wrong, dsl.ERROR)
            passed += got not in (wrong, dsl.ERROR)
    if undecided > o.count / 10:
        print("FAILED %d of %d true twins are undecided" % (undecided, o.count))
        failed += 1
    print("%d passed, %d failed" % (passed, failed))
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
