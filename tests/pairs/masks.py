#!/usr/bin/env python3
"""Pairs with masks, drawn: of all dtypes and values, put there in many ways, and going to where
they vanish or to where they do not.

    tests/pairs/masks.py [--isomer build/isomer] [--seed N] [--count N] [--keep FOLDER] [--jobs N]
        [--certificates]

What a pair's verdict may be is known from how it is made. The two sides are one function of real
numbers, or they are one where a mask is read as minus infinity: the least number of its dtype, in
rows that keep an element, beside numbers that are far from it, where nothing but a softmax sees it.
Else they are not. A wrong `equivalent` or `different` is a failure; of those that are equivalent
one in ten may be undecided. The last line is `N passed, N failed, N of N undecided`."""

import argparse
import collections
import json
import math
import os
import random
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

from dsl import *

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
VERDICT = {0: EQUIVALENT, 1: DIFFERENT, 2: ERROR, 3: UNDECIDED}
LEAST = {
    f16: -65504.0,
    bf16: -3.3895313892515355e38,
    f32: -3.4028234663852886e38,
    f64: -1.7976931348623157e308,
}


class Case:
    """The choices drawn for a pair; `side` has those for one side."""

    def __init__(self, rng):
        self.rng = rng
        self.b, self.t, self.u = rng.randint(1, 3), rng.randint(2, 6), rng.randint(2, 7)
        self.shape = rng.choice(
            [(self.t, self.u), (self.b, self.t, self.u), (1, self.b, self.t, self.u)]
        )
        self.which = rng.choice(["causal", "window", "drawn", "padding", "stored"])
        t, u = self.shape[-2:]
        if self.which in ("causal", "window"):
            u = t
            self.shape = self.shape[:-1] + (t,)
        first = 0 if self.which == "window" else -1
        self.hidden = [
            [j > i + (0 if self.which != "drawn" else -1) and not (j == 0) for j in range(u)]
            for i in range(t)
        ]
        if self.which == "window":
            w = rng.randint(1, t)
            self.hidden = [[j > i or j <= i - w for j in range(u)] for i in range(t)]
        elif self.which == "drawn":
            self.hidden = [[rng.random() < 0.5 for _ in range(u)] for _ in range(t)]
            for row in self.hidden:
                row[rng.randrange(u)] = False
            self.hidden[rng.randrange(t)][rng.randrange(u)] |= False
        elif self.which == "padding":
            n = rng.randint(1, max(1, u - 1))
            self.hidden = [[j >= n for j in range(u)]] * t
        self.wholly = False
        if not any(any(r) for r in self.hidden):
            self.hidden = [[j == u - 1 and u > 1 for j in range(u)] for _ in range(t)]

    def hide_a_row(self):
        """One row is masked wholly. What is not drawn is taken from what is stored."""
        self.wholly, self.which = True, "stored"
        t = self.rng.randrange(len(self.hidden))
        self.hidden = [list(r) for r in self.hidden]
        self.hidden[t] = [True] * len(self.hidden[t])


def held(g, name, make):
    """A leaf, once."""
    at = g.__dict__.setdefault("held", {})
    if name not in at:
        at[name] = make()
    return at[name]


def number(g, name, shape, dtype):
    """A float16 input, cast."""
    x = held(g, name, lambda: g.x(*shape, name=name, dtype=f16))
    return x if dtype == f16 else held(g, "%s %s" % (name, dtype), lambda: x.to(dtype))


def hidden(g, case, how):
    """[t, u] booleans: what is masked."""
    t, u = len(case.hidden), len(case.hidden[0])
    if how == "computed" and case.which == "causal":
        return g.arange(u).unsqueeze(0) > g.arange(t).unsqueeze(1)
    if how == "ones" and case.which == "causal":
        return g.ones(t, u, dtype=boolean).triu(1)
    data = Data((t, u), [x for r in case.hidden for x in r])
    return held(g, "hidden", lambda: g.const("hidden", data, boolean))


def put(g, s, case, value, way, how):
    """Scores with a mask."""
    d = s.dtype
    m = hidden(g, case, how)
    t, u = len(case.hidden), len(case.hidden[0])
    if way == "masked_fill":
        return s.masked_fill(m, value)
    if way == "where":
        return m.where(g.full((), value, d), s)
    if way == "where number":
        return m.logical_not().where(s, value)
    if way == "filled, added":
        return s + g.zeros(t, u, dtype=d).masked_fill(m, value)
    if way == "chosen, added":
        return s + m.where(g.full((), value, d), g.zeros(t, u, dtype=d))
    if way == "stored, added":
        return s + g.const(
            "mask %g" % value,
            Data((t, u), [value if x else 0.0 for r in case.hidden for x in r]),
            d,
        )
    if way == "stored, added, cast":
        return s.to(f32) + g.const(
            "mask %g" % value,
            Data((t, u), [value if x else 0.0 for r in case.hidden for x in r]),
            d,
        ).to(f32)
    assert way == "triangle, added"
    return s + g.full((t, u), value, d).triu(1)


REPLACES = ["masked_fill", "where", "where number"]
ADDS = ["filled, added", "chosen, added", "stored, added"]

ENDS = {
    "softmax": lambda g, s: s.softmax(-1),
    "softmax in float32": lambda g, s: s.softmax(-1, f32).to(s.dtype),
    "softmax, weighted": lambda g, s: s.softmax(-1).matmul(
        number(g, "v", (*s.shape[:-2], s.shape[-1], 3), s.dtype)
    ),
    "exponentials": lambda g, s: (lambda e: e / e.sum(-1, True))(s.exp()),
    "softmax of the transposed": lambda g, s: s.transpose(-1, -2).softmax(-2).transpose(-1, -2),
}
LEAKS = {
    "nothing": lambda g, s: s,
    "cast": lambda g, s: s.to(f32 if s.dtype != f32 else f64),
    "log_softmax": lambda g, s: s.log_softmax(-1),
    "half of it": lambda g, s: s * 0.5,
    "sum of rows": lambda g, s: s.sum(-1),
    "mean": lambda g, s: s.mean(-1),
    "least": lambda g, s: s.amin(-1),
    "clamped": lambda g, s: s.clamp_max(1.0),
    "returned beside its softmax": lambda g, s: {"y": s.softmax(-1), "z": s},
    "used twice": lambda g, s: s.softmax(-1) + s,
    "second use transposed": lambda g, s: {
        "y": s.softmax(-1),
        "z": s.transpose(-1, -2).contiguous(),
    },
    "negated": lambda g, s: -s,
    "divided": lambda g, s: s / 3.0,
    "square root": lambda g, s: (s * s).sqrt(),
    "inverse": lambda g, s: s.reciprocal() * 1e30 if s.dtype != f16 else s.reciprocal(),
    "the mask as it is read": lambda g, s: s.masked_fill(s > -1.0, 0.0),
}


def scores(g, case, dtype, scale=1.0, way="x"):
    if way == "product":
        q = number(g, "q", (*case.shape[:-1], 4), dtype)
        k = number(g, "k", (*case.shape[:-2], case.shape[-1], 4), dtype)
        s = q.matmul(k.transpose(-1, -2)) * 0.5
    else:
        s = number(g, "x", case.shape, dtype)
    return s * scale if scale != 1.0 else s


# A family draws (name, what the verdict may be, left, right).


def read(rng, case):
    """Two masks that stand for minus infinity, which only a softmax sees."""
    dl, dr = rng.choice([f16, f16, bf16, f32]), rng.choice([f16, bf16, f32])
    vl, vr = rng.choice([LEAST[dl], -math.inf]), rng.choice([LEAST[dr], LEAST[dr], -math.inf])
    ways = [rng.choice(REPLACES + ADDS), rng.choice(REPLACES + ADDS)]
    hows = [rng.choice(["stored", "computed", "ones"]) for _ in "lr"]
    end, way = rng.choice(sorted(ENDS)), rng.choice(["x", "product"])
    sure = EQUIVALENT
    return (
        "%s %g by %s, %s %g by %s; %s of %s" % (dl, vl, ways[0], dr, vr, ways[1], end, case.which),
        sure,
        lambda g: ENDS[end](g, put(g, scores(g, case, dl, way=way), case, vl, ways[0], hows[0])),
        lambda g: ENDS[end](g, put(g, scores(g, case, dr, way=way), case, vr, ways[1], hows[1])),
    )


def half(rng, case):
    """Both in float16, one with the other's mask or the same in another way."""
    values_ = [-65504.0, rng.choice([-65504.0, -math.inf])]
    ways = [rng.choice(REPLACES + ADDS), rng.choice(REPLACES + ADDS)]
    end = rng.choice(sorted(ENDS))
    return (
        "float16 %g by %s, %g by %s; %s of %s"
        % (values_[0], ways[0], values_[1], ways[1], end, case.which),
        EQUIVALENT,
        lambda g: ENDS[end](g, put(g, scores(g, case, f16), case, values_[0], ways[0], "stored")),
        lambda g: ENDS[end](g, put(g, scores(g, case, f16), case, values_[1], ways[1], "stored")),
    )


def leak(rng, case):
    """The same masks where something else sees them."""
    dl, dr = rng.choice([(f16, f32), (f16, bf16), (bf16, f32), (f32, f32), (f16, f16), (f32, f64)])
    vl, vr = LEAST[dl], LEAST[dr] if dl != dr else -math.inf
    ways = [rng.choice(REPLACES + ADDS)] * 2
    end = rng.choice(sorted(LEAKS))
    return (
        "%s %g, %s %g by %s; %s of %s" % (dl, vl, dr, vr, ways[0], end, case.which),
        NOT_EQUIVALENT,
        lambda g: LEAKS[end](g, put(g, scores(g, case, dl) * 2.0, case, vl, ways[0], "stored")),
        lambda g: LEAKS[end](g, put(g, scores(g, case, dr) * 2.0, case, vr, ways[1], "stored")),
    )


def cast(rng, case):
    """The pair that was found: a float16 mask, cast and returned."""
    end = rng.choice(
        [lambda g, s: s, lambda g, s: s.softmax(-1) + s, lambda g, s: {"y": s.softmax(-1), "z": s}]
    )
    way = rng.choice(REPLACES)
    return (
        "returned, by %s of %s" % (way, case.which),
        NOT_EQUIVALENT,
        lambda g: end(
            g, put(g, number(g, "x", case.shape, f16) * 2.0, case, -65504.0, way, "stored").to(f32)
        ),
        lambda g: end(
            g,
            put(
                g, (number(g, "x", case.shape, f16) * 2.0).to(f32), case, LEAST[f32], way, "stored"
            ),
        ),
    )


def another_dim(rng, case):
    """A softmax over the other dimension, in which a column is masked wholly."""
    column = rng.randrange(len(case.hidden[0]))
    case.which = "stored"
    case.hidden = [[x or j == column for j, x in enumerate(r)] for r in case.hidden]
    d, way = rng.choice([(f16, f32), (f32, f32), (bf16, f32)]), rng.choice(REPLACES)
    vr = -math.inf if d[0] == d[1] else rng.choice([LEAST[d[1]], -math.inf])
    # A finite mask gives the mean of a column; numbers as large as the smaller mask tell two of
    # them apart.
    expected = NOT_EQUIVALENT if vr == -math.inf else NOT_DIFFERENT + "|" + DIFFERENT
    return (
        "softmax over the other dimension, %s %g" % (d[1], vr),
        expected,
        lambda g: put(
            g, number(g, "x", case.shape, d[0]), case, LEAST[d[0]], way, "stored"
        ).softmax(-2),
        lambda g: put(g, number(g, "x", case.shape, d[1]), case, vr, way, "stored").softmax(-2),
    )


def wholly(rng, case):
    """A row that is masked wholly."""
    case.hide_a_row()
    d, way = rng.choice([f16, bf16, f32]), rng.choice(REPLACES + ADDS)
    end = rng.choice(sorted(set(ENDS) - {"exponentials"}))  # 0/0 with either mask
    return (
        "a row masked wholly: %s by %s; %s" % (d, way, end),
        NOT_EQUIVALENT,
        lambda g: ENDS[end](g, put(g, scores(g, case, d), case, LEAST[d], way, "stored")),
        lambda g: ENDS[end](g, put(g, scores(g, case, d), case, -math.inf, way, "stored")),
    )


def wholly_added(rng, case):
    """A row that is masked wholly: a mask that is added leaves the scores as they are, one that is
    put there does not."""
    case.hide_a_row()
    way = rng.choice(ADDS)
    return (
        "a row masked wholly: added and put there, by %s" % way,
        NOT_EQUIVALENT,
        lambda g: put(g, scores(g, case, f16), case, -65504.0, way, "stored").softmax(-1),
        lambda g: put(g, scores(g, case, f16), case, -65504.0, "masked_fill", "stored").softmax(-1),
    )


def weak(rng, case):
    """Masks that are no least number: scores may be as large."""
    d = rng.choice([f32, bf16, f32])
    v = (
        rng.choice([-1e4, -1e9, -65504.0, -1e5, -100.0, -3e4])
        if d != f16
        else rng.choice([-1e4, -3e4, -100.0])
    )
    way, end = rng.choice(REPLACES), rng.choice(["softmax", "softmax, weighted"])
    return (
        "%s %g against -inf; %s of %s" % (d, v, end, case.which),
        NOT_EQUIVALENT,
        lambda g: ENDS[end](g, put(g, scores(g, case, d), case, v, way, "stored")),
        lambda g: ENDS[end](g, put(g, scores(g, case, d), case, -math.inf, way, "stored")),
    )


def large(rng, case):
    """Scores so large that the mask hides nothing."""
    d, scale = rng.choice([(f16, 3e4), (f16, 6e4), (f32, 2e38), (f32, 1e38), (bf16, 2e38)])
    way = rng.choice(REPLACES + ADDS)
    sign = rng.choice([1.0, -1.0])
    return (
        "%s scores times %g by %s of %s" % (d, sign * scale, way, case.which),
        NOT_EQUIVALENT,
        lambda g: put(g, scores(g, case, d, sign * scale), case, LEAST[d], way, "stored").softmax(
            -1
        ),
        lambda g: put(g, scores(g, case, d, sign * scale), case, -math.inf, way, "stored").softmax(
            -1
        ),
    )


def undone(rng, case):
    """A mask that is taken away again, or covered by another number, or counted twice."""
    d = rng.choice([f16, f32])
    m, kind = (
        LEAST[d],
        rng.choice(
            [
                "taken away",
                "halved twice",
                "subtracted",
                "compared",
                "scaled to nothing",
                "largest",
                "clamped",
            ]
        ),
    )

    def left(g):
        s = put(g, scores(g, case, d), case, m, "masked_fill", "stored")
        h = hidden(g, case, "stored")
        if kind == "taken away":
            s = s + g.zeros(*h.shape, dtype=d).masked_fill(h, -m)
        elif kind == "halved twice":
            s = s * 1e-4 if d == f16 else s * 1e-38
        elif kind == "subtracted":
            s = scores(g, case, d).sub(g.zeros(*h.shape, dtype=d).masked_fill(h, m), alpha=1)
        elif kind == "compared":
            return (s > m / 2).to(d) * 3.0 + s.eq(-math.inf).to(d)
        elif kind == "scaled to nothing":
            s = s.mul(1 / -m)
        elif kind == "largest":
            s = s.maximum(g.full((), -3.0, d))
        elif kind == "clamped":
            s = s.clamp_min(-2.0)
        return s.softmax(-1)

    def right(g):
        s = put(g, scores(g, case, d), case, -math.inf, "masked_fill", "stored")
        if kind == "compared":
            return (s > m / 2).to(d) * 3.0 + s.eq(-math.inf).to(d)
        return s.softmax(-1)

    return "%s %s of %s" % (d, kind, case.which), NOT_EQUIVALENT, left, right


def alike(rng, case):
    """One mask on both sides, and a function that is one whatever it is."""
    d = rng.choice([f16, bf16, f32])
    v = rng.choice([LEAST[d], LEAST[d] / 2, -1e4, -1e9 if d != f16 else -3e4, -math.inf])
    way = rng.choice(REPLACES)
    ends = {
        "scaled after": (lambda s: s.softmax(-1) * 3.0, lambda s: 3.0 * s.softmax(-1)),
        "softmax": (lambda s: s.softmax(-1), lambda s: s.unsqueeze(0).softmax(-1).squeeze(0)),
        "returned": (lambda s: s.transpose(-1, -2), lambda s: s.transpose(-1, -2)),
        "log": (lambda s: s.log_softmax(-1), lambda s: s.unsqueeze(0).log_softmax(-1).squeeze(0)),
        "largest": (lambda s: s.amax(-1), lambda s: s.unsqueeze(0).amax(-1).squeeze(0)),
    }
    end = rng.choice(sorted(ends))
    return (
        "%s %g on both sides by %s; %s of %s" % (d, v, way, end, case.which),
        EQUIVALENT,
        lambda g: ends[end][0](
            put(g, scores(g, case, d) + scores(g, case, d), case, v, way, "stored")
        ),
        lambda g: ends[end][1](put(g, 2.0 * scores(g, case, d), case, v, way, "stored")),
    )


def kernel(rng, case):
    """Attention kernels with a mask that is added, against softmax and minus infinity, or without
    it."""
    h, t, n = rng.randint(1, 3), rng.randint(2, 5), 4
    d = rng.choice([f16, bf16, f32])
    good = rng.random() < 0.6

    def qkv(g):
        return [number(g, x, (1, h, t, n), d) for x in "qkv"]

    def seen(g):
        return g.arange(t).unsqueeze(0) <= g.arange(t).unsqueeze(1)

    m = rng.choice(["where", "triangle", "stored"])

    def additive(g):
        if m == "where":
            return seen(g).where(g.zeros(t, t, dtype=d), g.full((), LEAST[d], d))
        if m == "triangle":
            return g.full((t, t), LEAST[d], d).triu(1)
        return g.const(
            "m", Data((t, t), [LEAST[d] if j > i else 0.0 for i in range(t) for j in range(t)]), d
        )

    def left(g):
        q, k, v = qkv(g)
        return q.sdpa(k, v, additive(g))

    def right(g):
        q, k, v = qkv(g)
        if not good:
            return q.sdpa(k, v)
        return (
            q.sdpa(k, v, causal=True)
            if rng_choice
            else (q.matmul(k.transpose(2, 3)) * 0.5)
            .masked_fill(~seen(g), -math.inf)
            .softmax(-1)
            .matmul(v)
        )

    rng_choice = rng.random() < 0.5
    return (
        "%s sdpa, mask by %s%s" % (d, m, "" if good else ", none"),
        EQUIVALENT if good else DIFFERENT,
        left,
        right,
    )


def given(rng, case):
    """A mask with minus infinity that is an input. Its numbers may be any, and it hides other
    elements on other inputs, but no whole row, where none is hidden on the captured ones."""
    h, t, u = rng.randint(1, 3), len(case.hidden), len(case.hidden[0])
    kind = rng.choice(
        ["kernel", "kernel", "two", "wholly", "halved", "left out", "taken as 0", "computed too"]
    )
    d = rng.choice([f16, bf16, f32])
    if kind == "wholly":
        case.hide_a_row()
    rows = [[-math.inf if x else 0.0 for x in row] for row in case.hidden]
    visible = [not all(row) for row in case.hidden]
    padding = [0.0] + [rng.choice([0.0, -math.inf]) for _ in range(u - 1)]
    if kind == "computed too":
        keep = [rng.choice([j for j in range(u) if not r[j]]) for r in case.hidden]
        also = [0.0 if j == keep[i] else -math.inf for i in range(t) for j in range(u)]
    assert all(visible) or kind == "wholly"
    if kind == "two":
        rows = [[0.0] + row[1:] for row in rows]
    data = Data((1, 1, t, u), [x for row in rows for x in row])

    def mask(g):
        return held(g, "mask", lambda: g.leaf("input", "mask", data, d))

    def read(g, side):
        m = mask(g)
        if kind == "two":
            p = held(g, "p", lambda: g.leaf("input", "p", Data((1, 1, 1, u), padding), d))
            return p + m if side else m + p
        if kind == "computed too":
            return m + g.const("also", Data((t, u), also), d)
        if kind == "taken as 0":
            # Where the captured one hides, something else does on both sides.
            c = g.const("c", Data((t, u), data.values), d)
            return (m.masked_fill(m.eq(-math.inf), 0.0) if side else m) + c
        if kind == "left out" and side:
            return g.const("c", Data((1, 1, t, u), data.values), d)
        return m * 0.5 if kind == "halved" and side else m

    def build(side):
        def f(g):
            q = number(g, "q", (1, h, t, 4), d)
            k, v = [number(g, x, (1, h, u, 4), d) for x in "kv"]
            m = read(g, side)
            mask(g)
            if side:
                return q.sdpa(k, v, m)
            return (q.matmul(k.transpose(2, 3)) * 0.5 + m).softmax(-1).matmul(v)

        return f

    # Where each row shows one element, a mask that hides it hides the row.
    alone = kind == "taken as 0" and all(sum(not x for x in r) < 2 for r in case.hidden)
    expected = {
        "kernel": EQUIVALENT,
        "two": EQUIVALENT,
        "computed too": NOT_DIFFERENT,
        "taken as 0": NOT_EQUIVALENT,
    }.get(kind, DIFFERENT)
    return (
        "%s, %s of %s" % (kind, d, case.which),
        NOT_DIFFERENT if alone else expected,
        build(0),
        build(1),
    )


FAMILIES = [
    (read, 5),
    (half, 2),
    (leak, 4),
    (cast, 1),
    (another_dim, 1),
    (wholly, 2),
    (wholly_added, 1),
    (weak, 2),
    (large, 2),
    (undone, 2),
    (alike, 3),
    (kernel, 2),
    (given, 4),
]


def draw(seed, n):
    rng = random.Random("masks %d %d" % (seed, n))
    family = rng.choices([f for f, _ in FAMILIES], [w for _, w in FAMILIES])[0]
    name, expected, left, right = family(rng, Case(rng))
    return family.__name__, Pair(
        "%d %s: %s" % (n, family.__name__, name), expected, family.__doc__, left, right
    )


def call(command):
    """Returns exit status and last line; the status is None where there was no end."""
    try:
        p = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            timeout=120,
        )
    except subprocess.TimeoutExpired:
        return None, ""
    says = (p.stdout.decode().strip() or p.stderr.decode().strip()).rsplit("\n", 1)[-1]
    return p.returncode, says


def run(pair, folder, isomer, seed, certify):
    pair.write(folder)
    sides = [os.path.join(folder, side) for side in ("left", "right")]
    certificate = os.path.join(folder, "certificate")
    command = [isomer, "compare", *sides, "--seed", str(seed)]
    status, says = call(command + (["--certificate", certificate] if certify else []))
    if status is None:
        return "timeout", ""
    if certify and VERDICT.get(status) == EQUIVALENT:
        held, words = call([isomer, "check", certificate, *sides])
        if held != 0:
            return "no certificate", words
    return VERDICT.get(status, "crash"), says


def main():
    a = argparse.ArgumentParser(description="pairs with masks")
    a.add_argument("--isomer", default=os.path.join(ROOT, "build", "isomer"))
    a.add_argument("--seed", type=int, default=int(os.environ.get("SEED", 0)))
    a.add_argument("--count", type=int, default=int(os.environ.get("COUNT", 200)))
    a.add_argument("--one", type=int, help="only this one")
    a.add_argument("--family", default="")
    a.add_argument("--keep", help="write the pairs that fail there")
    a.add_argument("--verbose", action="store_true")
    a.add_argument(
        "--certificates", action="store_true", help="of what is equivalent: written, and checked"
    )
    a.add_argument("--jobs", type=int, default=2)
    o = a.parse_args()

    def attempt(n):
        family, pair = draw(o.seed, n)
        if o.family and family != o.family:
            return None
        with tempfile.TemporaryDirectory() as folder:
            got, says = run(
                pair,
                folder if not o.keep else os.path.join(o.keep, str(n)),
                os.path.abspath(o.isomer),
                n % 3,
                o.certificates,
            )
        return family, pair, got, says

    passed = failed = undecided = equivalent = 0
    of = collections.Counter()
    with ThreadPoolExecutor(o.jobs) as pool:
        for result in pool.map(attempt, range(o.count) if o.one is None else [o.one]):
            if result is None:
                continue
            family, pair, got, says = result
            of[family, pair.expected, got] += 1
            equivalent += pair.expected == EQUIVALENT
            missed = pair.expected == EQUIVALENT and got == UNDECIDED
            undecided += missed
            right = got in pair.expected.split("|")
            passed += right
            failed += not right and not missed
            if not right or o.verbose:
                print(
                    "%s %s: %s, expected %s: %s"
                    % (
                        "UNDECIDED" if missed else "ok" if right else "FAILED",
                        pair.name,
                        got,
                        pair.expected,
                        says,
                    ),
                    flush=True,
                )
    for key in sorted(of):
        print("  %-12s %-22s %-10s %d" % (*key, of[key]))
    print("%d passed, %d failed, %d of %d undecided" % (passed, failed, undecided, equivalent))
    return 1 if failed or undecided * 10 > equivalent or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
