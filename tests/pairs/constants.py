#!/usr/bin/env python3
"""Pairs of graphs whose constants are one table, stored and computed or computed twice, that
rounding tells apart, and pairs whose tables are two by a bug of nearly that size. Which is which is
known by construction.

    tests/pairs/constants.py [--isomer build/isomer] [--seed N] [--count N] [--only TEXT] [--jobs N]
    [--list] [-v]

Tables: cosines and sines of angles, ALiBi slopes, decays, roots, linear ramps, scales; in float32,
bfloat16 and float16; by several formulas for one number; sliced, gathered, interleaved,
concatenated, transposed, scaled, nested. Buffers that one side computes with in float32, and the
other inside of an operator; differences that outputs have in their denominators; 1 - beta ** step,
as Adam corrects its moments, in float32 and written in double; tables of few digits, and the same
times a number that hides in each element; reciprocals behind a steep softmax. No pair that is
equivalent may be `different`, none with a bug `equivalent`, and one in ten of the equivalent ones
may be `undecided`."""

import argparse
import hashlib
import json
import math
import os
import random
import struct
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

import dsl
from dsl import Data, bf16, f16, f32, f64

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
VERDICT = {0: "equivalent", 1: "different", 2: "error", 3: "undecided"}


# ---- arithmetic as a dtype rounds it ----


def rnd(x, dtype):
    if dtype == f64 or not math.isfinite(x):
        return x
    if dtype == f32:
        return struct.unpack("<f", struct.pack("<f", x))[0]
    if dtype == f16:
        return struct.unpack("<e", struct.pack("<e", x))[0]
    return struct.unpack("<f", struct.pack("<I", dsl.to_bf16(rnd(x, f32)) << 16))[0]


def ulp(x, dtype):
    bits = {f64: 52, f32: 23, f16: 10, bf16: 7}[dtype]
    return 2.0 ** (math.frexp(x)[1] - 1 - bits) if x else 2.0**-bits


FORMULAS = ("reciprocal", "power", "exp", "factor")


def frequencies(base, d, formula, dtype):
    """base ** (-2i/d), each step rounded to the dtype."""
    r = lambda x: rnd(x, dtype)
    out = []
    for i in range(d // 2):
        e = r(r(2.0 * i) / d)
        if formula == "reciprocal":
            v = r(1 / r(base**e))
        elif formula == "power":
            v = r(base**-e)
        elif formula == "exp":
            v = r(math.exp(r(-e * r(math.log(base)))))
        else:
            v = r(math.exp(r(2.0 * i * r(-math.log(base) / d))))
        out.append(v)
    return out


def frequencies_graph(g, base, d, formula, dtype):
    i = g.arange(0, d, 2, dtype=dtype)
    if formula == "factor":
        return (i * (-math.log(base) / d)).exp()
    e = i / d
    if formula == "reciprocal":
        return e.op("pow.Scalar", [float(base), e]).reciprocal()
    if formula == "power":
        return (-e).op("pow.Scalar", [float(base), -e])
    return (-(e * math.log(base))).exp()


# ---- one pair ----


class Case:
    """`clear`: a bug that may not end undecided. `open`: one function, which may."""

    def __init__(self, name, same, left, right, clear=False, open=False):
        self.name, self.same, self.left, self.right = name, same, left, right
        self.clear, self.open = clear, open

    def write(self, folder):
        for side, build in (("left", self.left), ("right", self.right)):
            g = dsl.Graph()
            g.write(os.path.join(folder, side), {"y": build(g)})


def unless(same, bug):
    """Drawn in either case, so that a case and its twin with a bug have the same graphs."""
    return None if same else bug


def rope(rng, same):
    """Rotation by a table; one side stores it or its frequencies."""
    d = rng.choice([8, 12, 16, 24, 32, 80])
    base = rng.choice([10000, 10000, 500000, 1000000, 150000])
    n, first = rng.choice([(4, 0), (8, 0), (16, 0), (6, 100), (5, 1000), (4, 4000)])
    if rng.random() < 0.3:
        rows, scattered = [rng.randrange(first + n + 2) for _ in range(n)], True
    else:
        rows, scattered = list(range(first, first + n)), False
    scaling = rng.choice([1.0, 1.0, 1.0, 0.25, 1 / 3])
    factor = rng.choice([1.0, 1.0, 1.0, 0.1 * math.log(3) + 1])
    stored_f, graph_f = rng.choice(FORMULAS), rng.choice(FORMULAS)
    how = rng.choice(
        ["table f64", "table f32", "freq f32", "freq f64", "both stored", "both computed", "narrow"]
    )
    narrow = rng.choice([bf16, f16]) if how == "narrow" else f32
    bugs = ["base", "base", "shift", "element", "ulps", "exponent", "scale"]
    bug = unless(same, rng.choice(bugs))
    if bug == "base" and how == "narrow":
        bug = "shift"
    wrong = base + 1 if bug == "base" else base
    layout = rng.choice(["halves", "interleaved", "cache"])
    table_rows = max(rows) + rng.choice([1, 3])
    whole = rng.random() < 0.5 or scattered

    def cosines(freqs, dtype, row):
        r = lambda x: rnd(x, dtype)
        a = [r(r(row * scaling) * f) for f in freqs]
        return [r(r(math.cos(x)) * factor) for x in a], [r(r(math.sin(x)) * factor) for x in a]

    def numbers(use, dtype, formula):
        fr = frequencies(use, d if bug != "exponent" else d + 2, formula, dtype)[: d // 2]
        cs = [cosines(fr, dtype, p) for p in (range(table_rows) if whole else rows)]
        c, s = [x[0] for x in cs], [x[1] for x in cs]
        if bug == "shift":
            more = cosines(fr, dtype, table_rows if whole else max(rows) + 1)
            c, s = c[1:] + [more[0]], s[1:] + [more[1]]
        k, j = (rows[-1] if whole else len(rows) - 1), rng_bug.randrange(d // 2)
        if bug == "element":
            c[k][j] += 1e-6 if narrow == f32 else 0.05
        if bug == "ulps":
            s[k][j] += 40 * ulp(s[k][j], narrow)
        if bug == "scale":
            c = [[x * (1 + 3e-6 if narrow == f32 else 1.05) for x in y] for y in c]
        return c, s

    rng_bug = random.Random(rng.random())

    def stored(g, use, dtype, formula):
        c, s = numbers(use, dtype, formula)
        m = len(c)
        if layout == "cache":
            t = g.buffer(
                "cache", Data((m, d), [v for a, b in zip(c, s) for v in a + b]), dtype=narrow
            )
            t = pick(g, t)
            return widen(t.slice(1, 0, d // 2)), widen(t.slice(1, d // 2, d))
        c = g.buffer("cos", Data((m, d // 2), [v for a in c for v in a]), dtype=narrow)
        s = g.buffer("sin", Data((m, d // 2), [v for a in s for v in a]), dtype=narrow)
        return widen(pick(g, c)), widen(pick(g, s))

    def widen(t):
        return t.to(f32) if narrow != f32 else t

    def pick(g, t):
        if not whole:
            return t
        return t.op("index_select", [t, 0, positions(g)], (n, t.shape[1]))

    def positions(g):
        if not hasattr(g, "positions"):
            g.positions = g.ints("positions", rows)
        return g.positions

    def computed(g, use, formula, dtype=f32, freq=None):
        f = (
            g.buffer("inv_freq", Data((d // 2,), freq))
            if freq
            else frequencies_graph(g, use, d, formula, dtype)
        )
        p = positions(g).to(f.dtype)
        if scaling != 1:
            p = p * scaling
        a = p.unsqueeze(1) * f.unsqueeze(0)
        c, s = a.cos(), a.sin()
        if factor != 1:
            c, s = c * factor, s * factor
        if c.dtype != f32:
            c, s = c.to(f32), s.to(f32)
        return c, s

    def rotate(g, c, s):
        x = g.x(2, n, d)
        if layout == "interleaved":
            c, s = c.repeat_interleave(2, 1), s.repeat_interleave(2, 1)
        else:
            c, s = g.cat([c, c], 1), g.cat([s, s], 1)
        turned = g.cat([-x.slice(2, d // 2, d), x.slice(2, 0, d // 2)], 2)
        return x * c + turned * s

    def bugged(freqs):
        if bug in ("base", "exponent"):
            return freqs
        j = rng_bug.randrange(1, d // 2)
        freqs = list(freqs)
        freqs[j] += 40 * ulp(freqs[j], f32) if rows[-1] * freqs[j] > 1e-3 else freqs[j] * 1e-2
        return freqs

    if how != "narrow" and not how.startswith("table") and bug == "exponent":
        how = "table f32"
    if how == "both stored" and bug:
        bug = rng.choice(["base", "ulps"])
        wrong = base + 1 if bug == "base" else base
    fr_dtype = f64 if how == "freq f64" else f32
    if how in ("table f64", "table f32", "narrow"):
        sides = (
            lambda g: rotate(g, *stored(g, wrong, f64 if how == "table f64" else f32, stored_f)),
            lambda g: rotate(g, *computed(g, base, graph_f)),
        )
    elif how.startswith("freq"):
        fr = [rnd(x, f32) for x in frequencies(wrong, d, stored_f, fr_dtype)]
        fr = fr if same else bugged(fr)
        sides = (
            lambda g: rotate(g, *computed(g, base, graph_f, freq=fr)),
            lambda g: rotate(g, *computed(g, base, graph_f)),
        )
    elif how == "both stored":
        fr = [rnd(x, f32) for x in frequencies(wrong, d, stored_f, f32)]
        fr = fr if same else bugged(fr)

        def other(g):
            nonlocal bug
            was, bug = bug, None
            try:
                return rotate(g, *stored(g, base, f32, stored_f))
            finally:
                bug = was

        sides = (other, lambda g: rotate(g, *computed(g, base, graph_f, freq=fr)))
    else:
        two = rng.choice([f32, f32 if scattered else f64])
        if bug and bug != "base":
            wrong = base * (1 + 1e-5)
        sides = (
            lambda g: rotate(g, *computed(g, wrong, stored_f)),
            lambda g: rotate(g, *computed(g, base, graph_f, two)),
        )
    if rng.random() < 0.5:
        sides = sides[::-1]
    return Case(
        "rope %s d=%d base=%d rows=%d..%d %s/%s %s%s%s%s"
        % (
            how,
            d,
            base,
            rows[0],
            rows[-1],
            stored_f,
            graph_f,
            layout,
            " whole" if whole else "",
            " " + narrow if narrow != f32 else "",
            "" if same else " bug:" + str(bug),
        ),
        same,
        *sides,
    )


def slopes(rng, same):
    """ALiBi: slopes and distances, added to scores."""
    h, n = rng.choice([(4, 5), (8, 4), (6, 5), (12, 4)]), None
    heads, n = h
    scale8 = 8.0 if same or rng.random() < 0.5 else 8.0 + 1e-5
    bug = unless(same, "exponent" if scale8 != 8 else rng.choice(["element", "ulps", "first"]))
    dtype = rng.choice([f32, f32, bf16, f16])
    if dtype != f32 and bug:
        bug, scale8 = rng.choice(["first"]), 8.0
    if bug == "ulps" and heads in (4, 8):
        pass
    how = rng.choice(["python", "f32", "repeated"])

    def numbers(start):
        if how == "python":
            return [2 ** (-scale8 * (i + start) / heads) for i in range(heads)]
        if how == "f32":
            return [rnd(2 ** rnd(-scale8 * (i + start) / heads, f32), f32) for i in range(heads)]
        b, out, v = rnd(2 ** (-scale8 / heads), f32), [], 1.0
        for i in range(heads):
            v = rnd(v * b, f32)
            out.append(v)
        return out if start == 1 else out[1:] + [rnd(v * b, f32)]

    def left(g):
        v = numbers(2 if bug == "first" else 1)
        if bug == "element":
            v[1] += 1e-6
        if bug == "ulps":
            v[2] += 40 * ulp(v[2], dtype)
        s = g.buffer("slopes", Data((heads,), [rnd(x, dtype) for x in v]), dtype=dtype)
        return score(g, s.to(f32) if dtype != f32 else s)

    def right(g):
        e = g.arange(1, heads + 1, dtype=f32) * (-8.0 / heads)
        return score(g, e.op("pow.Scalar", [2.0, e]))

    def score(g, s):
        j = g.arange(n, dtype=f32)
        dist = j.unsqueeze(0) - j.unsqueeze(1)
        bias = s.reshape(heads, 1, 1) * dist.unsqueeze(0)
        return (g.x(heads, n, n) + bias).softmax(-1) @ g.x(heads, n, 4, name="v")

    sides = (left, right) if rng.random() < 0.5 else (right, left)
    return Case(
        "slopes %d %s %s%s" % (heads, how, dtype, "" if same else " bug:" + str(bug)), same, *sides
    )


def scale(rng, same):
    """A scale as a literal, as a stored number, as a root that divides."""
    d = rng.choice([80, 96, 40, 24, 72, 5, 11, 112])
    true = d**-0.5
    bug = unless(same, rng.choice(["d", "ulps"]))
    used = (d + 1) ** -0.5 if bug == "d" else true
    dtype = f32
    left_how, right_how = (
        rng.choice(["buffer", "root", "f32 literal"]),
        rng.choice(["literal", "literal", "divide", "computed"]),
    )

    def left(g):
        x = g.x(3, 8)
        v = rnd(used, dtype)
        if bug == "ulps":
            v += 40 * ulp(v, f32)
        if left_how == "f32 literal":
            return (x * rnd(v, f32)).softmax(-1)
        if left_how == "root":
            v = rnd((1 / used) if bug != "ulps" else 1 / v, dtype)
            b = g.buffer("root", Data((), [v]), dtype=dtype)
            return (x / (b.to(f32) if dtype != f32 else b)).softmax(-1)
        b = g.buffer("scale", Data((), [v]), dtype=dtype)
        return (x * (b.to(f32) if dtype != f32 else b)).softmax(-1)

    def right(g):
        x = g.x(3, 8)
        if right_how == "literal":
            return (x * true).softmax(-1)
        if right_how == "divide":
            return (x / d**0.5).softmax(-1)
        return (x * g.full((), float(d)).rsqrt()).softmax(-1)

    sides = (left, right) if rng.random() < 0.5 else (right, left)
    return Case(
        "scale %d %s/%s %s%s" % (d, left_how, right_how, dtype, "" if same else " bug:" + str(bug)),
        same,
        *sides,
    )


def curve(rng, same):
    """exp, sqrt, linspace and log tables, sliced, transposed, scaled; one stored, the other
    computed or stored from elsewhere."""
    m, n = rng.choice([(4, 6), (3, 8), (6, 6), (2, 16)])
    kind = rng.choice(["decay", "sqrt", "ramp", "log", "gauss"])
    dtype = rng.choice([f32, f32, f32, bf16, f16])
    stage = rng.choice([f64, f32])
    form = rng.choice(["plain", "transposed", "sliced", "scaled", "twice"])
    step = rng.choice([0.37, 0.05, 1 / 7])
    bug = unless(same, rng.choice(["step", "shift", "element", "ulps"]))
    if dtype != f32 and bug in ("step", "element"):
        bug = "shift"
    times = 1.7 if form == "scaled" else 1.0

    def numbers(count, first, st):
        r = lambda x: rnd(x, stage)
        out = []
        for i in range(first, first + count):
            if kind == "decay":
                v = r(math.exp(r(-st * i)))
            elif kind == "sqrt":
                v = r(math.sqrt(r(i + 1 + st)))
            elif kind == "ramp":
                v = r(r(i * st) + 0.1)
            elif kind == "log":
                v = r(math.log(r(i + 1 + st)))
            else:
                v = r(math.exp(r(r(r(i * st) * r(i * st)) * -0.5)))
            out.append(v)
        return out

    def graph(g, count):
        i = g.arange(count, dtype=f32)
        if kind == "decay":
            return (i * -step).exp()
        if kind == "sqrt":
            return (i + (1 + step)).sqrt()
        if kind == "ramp":
            return i * step + 0.1
        if kind == "log":
            return (i + (1 + step)).log()
        a = i * step
        return (a * a * -0.5).exp()

    def left(g):
        count = m * n
        st = step * (1 + 1e-4) if bug == "step" else step
        v = numbers(count + 6, 1 if bug == "shift" else 0, st)
        if bug == "element":
            v[5] += 1e-6 * max(1, abs(v[5]))
        if bug == "ulps":
            v[4] += 40 * ulp(v[4], dtype)
        if form != "sliced":
            v = v[:count]
        if form == "scaled":
            v = [rnd(x * times, stage) for x in v]
        v = [rnd(x, dtype) for x in v]
        if form == "transposed":
            t = g.buffer("table", Data((m, n), v).t(), dtype=dtype)
            t = t.t()
        elif form == "twice":
            t = g.buffer("table", Data((count,), v), dtype=dtype)
            t = g.cat([t.reshape(m, n), t.reshape(m, n)], 1).slice(1, 0, n)
        elif form == "sliced":
            t = (
                g.buffer("table", Data((count + 6,), v), dtype=dtype)
                .slice(0, 0, count)
                .reshape(m, n)
            )
        else:
            t = g.buffer("table", Data((m, n), v), dtype=dtype)
        return use(g, t.to(f32) if dtype != f32 else t)

    def right(g):
        t = graph(g, m * n)
        if times != 1:
            t = t * times
        return use(g, t.reshape(m, n))

    def use(g, t):
        x = g.x(2, m, n)
        return (x * t).tanh() @ g.param("w", n, 3)

    sides = (left, right) if rng.random() < 0.5 else (right, left)
    return Case(
        "curve %s %s %s from %s%s" % (kind, form, dtype, stage, "" if same else " bug:" + str(bug)),
        same,
        *sides,
    )


def folded(rng, same):
    """Buffers that one side computes with in float32, and the other inside of an operator, or
    behind a product."""
    n, m = rng.choice([4, 6, 8, 12]), rng.choice([3, 5, 7, 70])  # long rows show how far they move
    kind = rng.choice(["norm", "norm", "norm", "product", "mean"])
    root = rng.choice(["rsqrt", "sqrt", "power"])
    eps = rng.choice([1e-5, 1e-6, 1e-3])
    bug = unless(same, rng.choice(["eps", "buffer", "element", "scale"]))
    swap = rng.random() < 0.5
    where = rng.randrange(n)

    def root_of(t):
        if root == "rsqrt":
            return t.rsqrt()
        return t.sqrt().reciprocal() if root == "sqrt" else t.pow(-0.5)

    def buffers(g):
        mean = g.buffer("mean", n, shift=rng_shift)
        var = g.buffer("var", n, positive=True, shift=0.5)
        return mean, var

    rng_shift = rng.choice([0.0, 0.3, 2.0])
    off = Data((n,), [1.0 + (1e-4 if k == where else 0.0) for k in range(n)])

    def spoilt(g, t):
        if bug == "element":
            return t * g.buffer("off", off)
        return t * 1.0001 if bug == "scale" else t

    def left(g):
        x = g.x(2, n, m)
        if kind == "norm":
            mean, var = buffers(g)
            return x.op(
                "batch_norm",
                [x, g.param("w", n), g.param("b", n), mean, var, False, 0.1, eps, False],
            )
        if kind == "product":
            mean, var = buffers(g)
            return x * mean.view(1, n, 1) * var.view(1, n, 1)
        counts = g.arange(1, n + 1, dtype=f32)
        return x.cumsum(1) / counts.view(1, n, 1)

    def right(g):
        x = g.x(2, n, m)
        if kind == "mean":
            ones = g.ones(n, n).tril()
            weights = (
                spoilt(g, (ones / ones.sum(1, True)).t()).t()
                if bug in ("element", "scale")
                else ones / (ones.sum(1, True) + (1.0 if bug else 0.0))
            )
            return weights.matmul(x)
        mean, var = buffers(g)
        if bug == "buffer":
            mean, var = (mean.exp(), var) if kind == "product" else (mean, mean.exp())
        if kind == "product":
            f = mean * (var + (1e-4 if bug == "eps" else 0.0)) if bug == "eps" else mean * var
            return x * spoilt(g, f).view(1, n, 1)
        w, b = g.param("w", n), g.param("b", n)
        a = w * spoilt(g, root_of(var + (eps * 10 if bug == "eps" else eps)))
        return x * a.view(1, n, 1) + (b - mean * a).view(1, n, 1)

    sides = (right, left) if swap else (left, right)
    return Case(
        "folded %s n=%d %s eps=%g%s" % (kind, n, root, eps, "" if same else " bug:" + str(bug)),
        same,
        *sides,
    )


def amplified(rng, same):
    """A constant is subtracted from a number near it: its rounding moves the outputs without bound,
    or hardly at all."""
    how = rng.choice(["division", "reciprocal", "log"])
    while True:
        n, step = rng.choice([6, 8, 12, 16, 72]), rng.choice([0.37, 0.05, 1 / 7, 0.11, 0.83])
        v = [rnd(math.exp(-step * i), f32) for i in range(n)]
        graph = [rnd(math.exp(rnd(i * rnd(-step, f32), f32)), f32) for i in range(n)]
        off = [
            i for i in range(n) if abs(v[i] - graph[i]) >= 2 * ulp(v[i], f32)
        ]  # an exponential may be a unit off
        if off:
            break
    at = v[rng.choice(off)] if not same else -2.0

    def use(g, t):
        t, x = t - at, g.x(3, n)
        if how == "division":
            return x / t
        return x * (t.reciprocal() if how == "reciprocal" else (t * t).log())

    def left(g):
        return use(g, g.buffer("table", Data((n,), v)))

    def right(g):
        return use(g, (g.arange(n, dtype=f32) * -step).exp())

    sides = (left, right) if rng.random() < 0.5 else (right, left)
    return Case("amplified %s %d%s" % (how, n, "" if same else " bug:pole"), same, *sides)


def corrected(rng, same):
    """1 - beta ** step, where the step is a number in float32 and the digits that are left are few,
    and the number that Python makes of it in double, as Adam's correction of its moments. The power
    may be stored in float32, and so may beta be."""
    beta, step = rng.choice([0.9, 0.95, 0.99, 0.999, 0.9995]), rng.choice([2, 3, 4, 7, 10, 50])
    held, n = rng.choice([f32, f32, f32, f64]), rng.choice([3, 5, 8])
    form = rng.choice(["division", "product", "root", "step", "apart"])
    bug = unless(same, rng.choice(["step", "beta", "none", "eps"]))
    if bug == "eps" and form not in ("step", "apart"):
        bug = "step"
    ahead = rng.random() < 0.5  # the step is counted in the graph
    stored = rng.choice([None, None, "power", "beta"])

    def use(g, t, by, eps):
        """`by`: the correction, a tensor or a number; None: its root, which is divided by."""
        if form == "division":
            return t / by
        if form == "product":
            return t * by
        second = t.exp() if by is None else t.exp() / by
        root = second.op("sqrt", [second])
        if by is None:
            root = root / math.sqrt(1 - beta**step)
        return root if form == "root" else g.param("w", n) * 0.01 / (root + eps)

    def left(g):
        return use(g, g.x(3, n), None if form == "apart" else 1 - beta**step, 1e-8)

    def right(g):
        base, count = beta * (0.9999 if bug == "beta" else 1.0), step + (bug == "step")
        if stored == "power":
            power = g.const("power", Data((), [rnd(base**count, held)]), held)
        elif stored == "beta":
            power = g.const("beta", Data((), [rnd(base, held)]), held).pow(count)
        else:
            at = g.const("step", Data((), [float(count - ahead)]), held)
            at = at + 1.0 if ahead else at
            power = at.op("pow.Scalar", [base, at])
        by = power if bug == "none" else 1 - power
        return use(g, g.x(3, n), by, 1e-3 if bug == "eps" else 1e-8)

    sides = (left, right) if rng.random() < 0.5 else (right, left)
    return Case(
        "corrected %s %g ** %d %s%s%s"
        % (
            form,
            beta,
            step,
            held,
            " stored " + stored if stored else "",
            "" if same else " bug:" + str(bug),
        ),
        same,
        *sides,
    )


def drifted(rng, same):
    """A table of few digits that both sides store, or one computes. On the way to it one side may
    have rounded once more, which moves elements up and down; a factor near 1 moves all one way, by
    no more than that in each of them."""
    n, dtype = rng.choice([24, 64, 96]), rng.choice([bf16, bf16, f16])
    form = rng.choice(["stored", "stored", "computed", "sliced"])
    unit, k = ulp(1.0, dtype), rng.choice([0.3, 0.7, 1.3])
    bug = unless(same, rng.choice(["factor", "some" if n > 24 else "factor"]))
    far = rng.choice([0.55, 0.7, 1.1])
    by = 1 + rng.choice([-1, 1]) * unit * far
    if form == "computed":
        exact = [math.exp(k * math.sin(i + 1.0)) for i in range(n)]
    else:
        exact = [rng.gauss(0, 1) for _ in range(n)]
    detour = rng.choice([1.0, 3.0, 0.7])
    if form == "computed" or bug == "some" or (bug and n == 24):
        detour = 1.0  # more ups and downs would hide a few that go one way
    half = n // 2 if bug == "some" else 0
    # One number that all are multiplied by may be rounded, too: that drifts, and is no bug.
    scale = rng.choice([1.0, rng.uniform(1.0, 2.0)]) if form != "computed" else 1.0

    def numbers(side):
        v = [x * by if bug and side and i >= half else x for i, x in enumerate(exact)]
        v = [x * (rnd(scale, dtype) if side and not bug else scale) for x in v]
        return [rnd(rnd(x * detour, dtype) / detour if side else x, dtype) for x in v]

    def table(g, side):
        if form == "computed" and not side:
            return ((g.arange(1, n + 1, dtype=f32)).sin() * k).exp()
        v = numbers(side)
        if form == "sliced" and side:
            t = g.buffer("table", Data((n + 4,), [1.0] * 4 + v), dtype=dtype).slice(0, 4, n + 4)
        else:
            t = g.buffer("table", Data((n,), v), dtype=dtype)
        return t.to(f32)

    sides = [lambda g, side=side: (g.x(3, n) * table(g, side)).tanh() for side in (0, 1)]
    if rng.random() < 0.5:
        sides = sides[::-1]
    return Case(
        "drifted %s n=%d %s%s%s%s"
        % (
            form,
            n,
            dtype,
            " detour" if detour != 1 else "",
            " scaled" if scale != 1 else "",
            "" if same else " bug:%s %g" % (bug, far),
        ),
        same,
        *sides,
        clear=bug == "factor" and far > 1 and n > 24 and form != "computed",
        open=scale != 1,
    )


def steep(rng, same):
    """What one side stores in float32, and the other computes in double from numbers of its own,
    behind a softmax of many times that: how far it moves an output hangs on two of its elements."""
    n, by = rng.choice([4, 8, 24, 64]), rng.choice([1.0, 40.0, 400.0])
    bug = unless(same, rng.choice(["element", "some"]))
    s = [rnd(0.5 + rng.random(), f32) for _ in range(n)]
    wrong = {rng.randrange(n)} if bug == "element" else set(range(0, n, 3)) if bug else set()
    c = [rnd(math.exp(-x / 2) * (1 + 1e-3 * (i in wrong)), f32) for i, x in enumerate(s)]

    def steps(y):
        return (y * by).op("softmax.int", [y * by, -1])

    def left(g):
        x = g.x(6, n)
        return steps(x * g.buffer("c", Data((n,), c)))

    def right(g):
        x, e = g.x(6, n), g.buffer("s", Data((n,), s)).to(f64).exp()
        return steps((x.to(f64) / e.op("sqrt", [e])).to(f32))

    sides = (left, right) if rng.random() < 0.5 else (right, left)
    return Case(
        "steep n=%d by=%g%s" % (n, by, "" if same else " bug:" + bug),
        same,
        *sides,
        clear=not same,
        open=True,
    )


KINDS = [
    drifted,
    rope,
    rope,
    rope,
    slopes,
    scale,
    curve,
    curve,
    folded,
    folded,
    amplified,
    corrected,
]


def case_of(seed, k, same=None):
    """Case `k`, or its twin that has no bug, or one."""
    rng = random.Random("%d %d" % (seed, k))
    make = rng.choice(KINDS)
    if k % 12 == 11:
        make = steep  # beside the others, whose draws stay as they were
    drawn = rng.random() < 0.6
    return make(rng, drawn if same is None else same)


def cases(seed, count):
    for k in range(count):
        yield k, case_of(seed, k)


def operators(capture):
    with open(os.path.join(capture, "graph.json"), encoding="utf-8") as f:
        return [(n["id"], n.get("op")) for n in json.load(f)["nodes"]]


def last_line(p):
    return (p.stderr.strip() or p.stdout.strip()).rsplit("\n", 1)[-1]


def certified(isomer, folder, seed, k):
    """Returns the failure of an equivalent pair's certificate, or None. The certificate has to hold
    of the pair, and must not hold of a twin with the same operators whose constants have a bug."""
    sides = [os.path.join(folder, s) for s in ("left", "right")]
    path = os.path.join(folder, "c.json")

    def run(*args):
        return subprocess.run([isomer, *args], capture_output=True, text=True, timeout=300)

    p = run("compare", *sides, "--certificate", path)
    if p.returncode:
        return "no certificate: " + last_line(p)
    p = run("check", path, *sides)
    if p.returncode:
        return "refused: " + last_line(p)
    other = os.path.join(folder, "twin")
    case_of(seed, k, False).write(other)
    twins = [os.path.join(other, s) for s in ("left", "right")]
    if list(map(operators, sides)) != list(map(operators, twins)):
        return None
    with open(path, encoding="utf-8") as f:
        doc = json.load(f)
    for side, twin in zip(("left", "right"), twins):
        for name in doc[side]["files"]:
            with open(os.path.join(twin, name), "rb") as f:
                doc[side]["files"][name] = hashlib.sha256(f.read()).hexdigest()
    with open(path, "w", encoding="utf-8") as f:
        json.dump(doc, f)
    TWINS.append(k)
    p = run("check", path, *twins)
    return None if p.returncode == 1 else "its twin's certificate: " + last_line(p)


TWINS = []  # cases whose twin was tried


def compare(isomer, item, certify=None):
    k, case = item
    with tempfile.TemporaryDirectory() as folder:
        case.write(folder)
        report = os.path.join(folder, "r.json")
        sides = [os.path.join(folder, s) for s in ("left", "right")]
        try:
            p = subprocess.run(
                [isomer, "compare", *sides, "--json", report],
                capture_output=True,
                text=True,
                timeout=120,
            )
        except subprocess.TimeoutExpired:
            return k, case, "timeout", "", []
        notes = []
        if os.path.exists(report):
            with open(report, encoding="utf-8") as f:
                notes = [a["text"] for a in json.load(f)["assumptions"] if a["kind"] == "rounding"]
        if certify is not None and p.returncode == 0 and case.same:
            wrong = certified(isomer, folder, certify, k)
            if wrong:
                return k, case, "refused", wrong, notes
        return k, case, VERDICT.get(p.returncode, "crash"), last_line(p), notes


def main():
    a = argparse.ArgumentParser()
    a.add_argument("--isomer", default=os.path.join(ROOT, "build", "isomer"))
    a.add_argument("--seed", type=int, default=1)
    a.add_argument("--count", type=int, default=60)
    a.add_argument("--only", default="")
    a.add_argument("--number", type=int)
    a.add_argument("--keep")
    a.add_argument("--jobs", type=int, default=2)
    a.add_argument(
        "--certificates", action="store_true", help="of what is equivalent: written, and checked"
    )
    a.add_argument("-v", action="store_true")
    o = a.parse_args()
    todo = [c for c in cases(o.seed, o.count) if o.only in c[1].name and o.number in (None, c[0])]
    if o.keep:
        for k, c in todo:
            c.write(os.path.join(o.keep, str(k)))
        return 0
    tally, wrong, left_open, certify = {}, 0, 0, o.seed if o.certificates else None
    with ThreadPoolExecutor(o.jobs) as pool:
        for k, case, got, says, notes in pool.map(lambda c: compare(o.isomer, c, certify), todo):
            tally[case.same, got] = tally.get((case.same, got), 0) + 1
            bad = got not in ("equivalent", "different", "undecided") or got == (
                "different" if case.same else "equivalent"
            )
            bad |= case.clear and got == "undecided"
            left_open += case.same and not case.open and got == "undecided"
            wrong += bad
            if bad or o.v or (case.same and got == "undecided"):
                print("%s %d: %s: %s: %s" % ("WRONG" if bad else "     ", k, case.name, got, says))
                if o.v:
                    for t in notes:
                        print("        " + t)
    same = sum(n for (s, _), n in tally.items() if s)
    open_ = tally.get((True, "undecided"), 0)
    print(
        "equivalent: %d, of them undecided %d; with a bug: %d, of them undecided %d"
        % (
            same,
            open_,
            sum(n for (s, _), n in tally.items() if not s),
            tally.get((False, "undecided"), 0),
        )
    )
    if o.certificates:
        print("certificates were held against %d twins with a bug" % len(TWINS))
    failed = wrong + (left_open * 10 > same and left_open > 1)
    print("%d passed, %d failed" % (len(todo) - wrong, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
