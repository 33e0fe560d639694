#!/usr/bin/env python3
"""A campaign over what two captures are run on: captures of one module on other example inputs,
relations that only the first input set has, and inputs that may not be everything. Every case is
drawn; what it must give is known from how it was made.

    tests/pairs/inputs.py [--isomer build/isomer] [--seed N] [--count N] [--only FAMILY]
        [--keep DIR] [--jobs N]

No case that is different may be `equivalent`, none that is equivalent may be `different`, and of
those that are equivalent at most a tenth may be `undecided`. One line for each case that is not as
it must be; the last line is `N passed, N failed`."""

import argparse
import collections
import os
import random
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

import dsl
import input_chance  # noqa: F401  more families
import input_looks  # noqa: F401
import input_masks  # noqa: F401
from dsl import DIFFERENT, EQUIVALENT, ERROR, UNDECIDED, boolean, f32, i32, i64
from input_cases import (
    FAMILIES,
    Case,
    attend,
    bug,
    family,
    linear,
    norm,
    normals,
    ones_and_zeros,
    say,
    silu,
    softmax,
    tokens,
)

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
VERDICT = {0: EQUIVALENT, 1: DIFFERENT, 2: ERROR, 3: UNDECIDED}
# ---- captures of other inputs ----


@family
def other_floats(rng):
    shape = rng.choice([(4, 6), (2, 3, 5), (1, 7, 4)])
    n = dsl.count(shape)
    sets = rng.choice([1, 1, 2])
    values = [[normals(rng, n, rng.choice([0.1, 1, 8])) for _ in range(sets)] for _ in range(2)]
    second = rng.random() < 0.5
    more = [[normals(rng, n) for _ in range(sets)] for _ in range(2)]
    if rng.random() < 0.3:
        more[1] = more[0]  # one of two inputs is the same
    names = [("x", "y"), rng.choice([("x", "y"), ("hidden", "y"), ("hidden", "residual")])]
    squeeze = len(shape) > 1 and shape[0] == 1 and rng.random() < 0.7
    wrong = rng.random() < 0.4
    steps = [rng.choice(["norm", "silu", "linear", "soft"]) for _ in range(rng.randint(1, 3))]

    def build(side):
        def f(g):
            own = shape[1:] if side and squeeze else shape
            x = g.given(names[side][0], own, values[side], f32)
            r = g.given(names[side][1], own, more[side], f32) if second else x
            for k, s in enumerate(steps):
                x = (
                    norm(x, side)
                    if s == "norm"
                    else silu(x, side)
                    if s == "silu"
                    else softmax(x, side)
                    if s == "soft"
                    else linear(g, x, "w%d" % k, x.shape[-1], side)
                )
            y = x.add(r) if not side else r.add(x)
            return bug(random.Random(n), y) if wrong and side else y

        return f

    return Case(
        DIFFERENT if wrong else EQUIVALENT, build(0), build(1), what="%s %s" % (shape, steps)
    )


@family
def other_tokens(rng):
    rows, n, width = rng.randint(9, 40), rng.randint(3, 9), 8
    batch = rng.choice([1, 2])
    ids = [tokens(rng, batch * n, 0, rows) for _ in range(2)]
    masks = [
        ones_and_zeros(rng, batch, n, rng.choice(["right", "right", "full"])) for _ in range(2)
    ]
    kind = rng.choice(["none", "input", "constant", "mixed", "shifted"])
    if kind == "mixed" and batch > 1:
        kind = "input"
    masked = rng.random() < 0.5
    wrong = rng.random() < 0.35
    start = [0, rng.choice([0, 0, 3])] if kind == "input" else [0, 0]
    name = ["input_ids", rng.choice(["input_ids", "input_ids", "tokens"])]
    order = rng.random() < 0.3

    def build(side):
        def f(g):
            def positions():
                if kind == "none":
                    return None
                if kind == "constant" or (kind == "mixed" and side):
                    return g.arange(n)
                if kind == "shifted":
                    return g.given("position_ids", (n,), [list(range(2, n + 2))])
                return g.given("position_ids", (n,), [list(range(start[side], start[side] + n))])

            p = positions() if order else None
            i = g.given(name[side], (batch, n), [ids[side]])
            p = p if order else positions()
            m = g.given("attention_mask", (batch, n), [masks[side]]) if masked else None
            x = g.param("embed.weight", rows, width).embedding(i)
            if p is not None:
                x = x.add(g.param("place.weight", 64, width).embedding(p))
            x = norm(x, side)
            y = x.add(attend(g, x, m, side, width))
            return bug(random.Random(n), y) if wrong and side else y

        return f

    return Case(
        DIFFERENT if wrong else EQUIVALENT,
        build(0),
        build(1),
        what="%s masked=%s order=%s" % (kind, masked, order),
    )


@family
def other_shapes(rng):
    """Nothing to run both on."""
    n, m = rng.sample(range(3, 9), 2)
    kind = rng.choice(["floats", "tokens"])

    def build(size):
        seed = random.Random(size)

        def f(g):
            if kind == "floats":
                x = g.given("x", (size, 4), [normals(seed, size * 4)], f32)
            else:
                x = g.param("e", 500, 4).embedding(
                    g.given("x", (1, size), [tokens(seed, size, 0, 500)]).squeeze(0)
                )
            return x.mul(2.0).mean(0)

        return f

    return Case(ERROR, build(n), build(m), what=kind)


@family
def swapped_names(rng):
    """Values tell which input is which, as far as each has its counterpart."""
    n, k = rng.randint(2, 5), rng.randint(2, 6)
    a, b = normals(rng, n * k), normals(rng, n * k)
    wrong = rng.random() < 0.4

    def left(g):
        x, y = g.given("x", (n, k), [a], f32), g.given("y", (n, k), [b], f32)
        return x.mul(2.0).add(y.exp())

    def right(g):
        x, y = g.given("x", (n, k), [b], f32), g.given("y", (n, k), [a], f32)
        return y.exp().add(x.mul(2.0)) if wrong else y.mul(2.0).add(x.exp())

    return Case(DIFFERENT if wrong else EQUIVALENT, left, right)


# ---- relations that hold on the first set only ----


@family
def first_set_only(rng):
    shape = rng.choice([(4, 6), (3, 3), (2, 8)])
    n = dsl.count(shape)
    integers = rng.random() < 0.4
    draw = (lambda: tokens(rng, n, 0, 16)) if integers else (lambda: normals(rng, n))
    first = draw()
    kind = rng.choice(["equal", "turned", "part", "three"])
    if kind == "turned" and shape[0] != shape[1]:
        kind = "equal"
    turned = (
        [first[j * shape[1] + i] for i in range(shape[1]) for j in range(shape[0])]
        if kind == "turned"
        else None
    )
    a = [first] + [draw() for _ in range(rng.randint(1, 2))]
    b = [turned or first] + [draw() for _ in a[1:]]
    c = [first] + [draw() for _ in a[1:]]
    wrong = rng.random() < 0.5
    dtype = i64 if integers else f32

    def read(g, name, v):
        t = g.given(name, shape, v, dtype)
        return g.param("e", 16, 4).embedding(t).sum(-1) if integers else t

    def left(g):
        x, y = read(g, "a", a), None
        if not integers:
            y = read(g, "b", b)
            z = read(g, "c", c) if kind == "three" else None
            return x.mul(2.0).add(y.tanh()) if z is None else x.mul(2.0).add(y.tanh()).sub(z)
        y = g.given("b", shape, b, dtype)
        return x.mul(2.0).add(g.param("e2", 16, 4).embedding(y).sum(-1))

    def right(g):
        x = read(g, "a", a)
        if not integers:
            y = read(g, "b", b)
            z = read(g, "c", c) if kind == "three" else None
            used = x.t() if turned and wrong else x if wrong else y
            out = used.tanh().add(x.mul(2.0))
            return out if z is None else out.sub(z)
        y = g.given("b", shape, b, dtype)
        if wrong:
            return g.param("e2", 16, 4).embedding(g.nodes and x_of(g, "a")).sum(-1).add(x.mul(2.0))
        return g.param("e2", 16, 4).embedding(y).sum(-1).add(x.mul(2.0))

    return Case(DIFFERENT if wrong else EQUIVALENT, left, right, what="%s %s" % (kind, dtype))


def x_of(g, name):
    for n in g.nodes:
        if n.get("name") == name:
            o = n["outputs"][0]
            return dsl.Tensor(g, n["id"], o["shape"], o["dtype"])
    raise KeyError(name)


# ---- domains ----


@family
def padding_ids(rng):
    """Padding is handled on one side only: that shows where padding may come."""
    rows, n, width = rng.randint(8, 64), rng.randint(3, 8), rng.choice([4, 8])
    pad = rng.choice([0, 0, 1, rows - 1, rng.randrange(1, rows - 1)])
    kind = rng.choice(["times", "where", "fill", "row", "after"])
    admitted = rng.random() < 0.5
    same = rng.random() < 0.5
    dtype = rng.choice([i64, i64, i32])
    ids = [tokens(rng, n, 0, rows, (pad,)) for _ in range(2)]
    domain = (
        {"range": [0, rows - 1], "exclude": [pad]} if not admitted else {"range": [0, rows - 1]}
    )
    if not admitted and pad in (0, rows - 1) and rng.random() < 0.5:
        domain = {"range": [1, rows - 1] if pad == 0 else [0, rows - 2]}
    dl, dr, relations = (
        say(rng, "ids", domain) if not admitted or rng.random() < 0.5 else (None, None, None)
    )

    def build(side):
        def f(g):
            i = g.given("ids", (n,), [ids[0 if same else side]], dtype, dr if side else dl)
            x = g.param("e", rows, width).embedding(i)
            if side:
                keep = i.ne(pad).unsqueeze(-1)
                if kind == "times":
                    x = x.mul(keep.to(f32))
                elif kind == "where":
                    x = keep.where(x, 0.0)
                elif kind == "fill":
                    x = x.masked_fill(keep.logical_not(), 0.0)
                elif kind == "row":
                    x = keep.where(x, g.param("pad", width).expand(n, width))
                else:
                    x = x.mul(2.0).masked_fill(i.eq(pad).unsqueeze(-1), 5.0).mul(0.5)
            return silu(linear(g, x, "w", width, side), side)

        return f

    return Case(
        DIFFERENT if admitted else EQUIVALENT,
        build(0),
        build(1),
        relations,
        "%s pad %d of %d %s %s" % (kind, pad, rows, domain, relations),
    )


@family
def special_ids(rng):
    """Ids from a bound on are looked up in another table, or not at all."""
    rows, n, width = rng.randint(12, 40), rng.randint(3, 8), 4
    bound = rng.randint(4, rows - 2)
    admitted = rng.random() < 0.5
    high = bound - 1 if not admitted else rng.choice([bound, rows - 1])
    kind = rng.choice(["clamp", "mask", "two", "minimum"])
    ids = tokens(rng, n, 0, bound)
    dl, dr, relations = say(rng, "ids", {"range": [0, high]})

    def build(side):
        def f(g):
            i = g.given("ids", (n,), [ids], i64, dr if side else dl)
            table = g.param("e", rows, width)
            if not side:
                return table.embedding(i).mul(3.0)
            if kind == "clamp":
                return table.embedding(i.clamp(0, bound - 1)).mul(3.0)
            if kind == "minimum":
                return table.embedding(i.clamp_max(bound - 1)).mul(3.0)
            if kind == "mask":
                return table.embedding(i).masked_fill(i.ge(bound).unsqueeze(-1), 0.0).mul(3.0)
            other = g.param("e2", rows, width).embedding(i)
            return i.ge(bound).unsqueeze(-1).where(other, table.embedding(i)).mul(3.0)

        return f

    return Case(
        DIFFERENT if admitted else EQUIVALENT,
        build(0),
        build(1),
        relations,
        "%s bound %d high %d" % (kind, bound, high),
    )


@family
def float_ranges(rng):
    n, k = rng.randint(2, 5), rng.randint(2, 6)
    low, high = rng.choice([(0.0, 1.0), (-1.0, 1.0), (0.5, 4.0), (-2.0, 3.0)])
    kind = rng.choice(["relu", "clamp", "abs", "max"])
    sound = {"relu": low >= 0, "clamp": True, "abs": low >= 0, "max": True}[kind]
    if rng.random() < 0.4 and kind in ("clamp", "max"):
        sound = False
    end = high if sound else (low + high) / 2
    x = [rng.uniform(low, high) if sound else rng.uniform(low, high) for _ in range(n * k)]
    dl, dr, relations = say(rng, "x", {"range": [low, high]})

    def build(side):
        def f(g):
            t = g.given("x", (n, k), [x], f32, dr if side else dl)
            if side:
                t = (
                    t.relu()
                    if kind == "relu"
                    else t.clamp(low, end)
                    if kind == "clamp"
                    else t.abs()
                    if kind == "abs"
                    else t.clamp_max(end)
                )
            return linear(g, t.mul(1.5), "w", 3, side)

        return f

    return Case(
        EQUIVALENT if sound else DIFFERENT,
        build(0),
        build(1),
        relations,
        "%s %s" % (kind, (low, high, end)),
    )


@family
def mask_forms(rng):
    """One side reads lengths out of the mask: right for masks padded on one side only."""
    batch, n, width = rng.randint(1, 3), rng.randint(4, 8), 4
    reads = rng.choice(["right", "left"])
    said = rng.choice(["right", "left", "any"])
    form = rng.choice([said, "full"]) if said != "any" else rng.choice([reads, "full"])
    sets = [ones_and_zeros(rng, batch, n, form)]
    dtype = rng.choice([i64, i64, boolean, f32])
    dl, dr, relations = say(rng, "mask", {"mask": said})
    x = normals(rng, batch * n * width)

    def build(side):
        def f(g):
            m = g.given("mask", (batch, n), sets, dtype, dr if side else dl)
            h = g.given("x", (batch, n, width), [x], f32)
            if side:
                count = m.to(i64).sum(-1, True)
                place = g.arange(n)
                keep = place.lt(count) if reads == "right" else place.ge(count.neg().add(n))
            else:
                keep = m.ne(0) if dtype != boolean else m
            pooled = h.mul(keep.to(f32).unsqueeze(-1)).sum(1)
            return linear(g, pooled, "w", 3, side)

        return f

    return Case(
        EQUIVALENT if said == reads else DIFFERENT,
        build(0),
        build(1),
        relations,
        "%s said %s from %s %s" % (reads, said, form, dtype),
    )


@family
def sorted_bounds(rng):
    n, k = rng.randint(3, 6), rng.randint(3, 6)
    is_sorted = rng.random() < 0.5
    strict = rng.random() < 0.5
    b = list(range(k))
    while b[-1] - b[0] == k - 1:  # what looks like positions is kept
        b = sorted(rng.sample(range(0, 20), k))
    dl, dr, relations = say(
        rng, "bounds", {"range": [0, 20], "sorted": True} if is_sorted else {"range": [0, 20]}
    )
    x = [rng.randrange(20) for _ in range(n)]

    def build(side):
        def f(g):
            t = g.given("bounds", (k,), [b], i64, dr if side else dl)
            w = g.param("w", n, k)
            v = (t.sort(0)[0] if side else t).to(f32)
            return w.mul(v).sum(-1) if strict else w.matmul(v)

        return f

    return Case(
        EQUIVALENT if is_sorted else DIFFERENT,
        build(0),
        build(1),
        relations,
        "sorted=%s %s" % (is_sorted, x),
    )


@family
def contradictions(rng):
    kind = rng.choice(["apart", "outside", "both", "key", "captured"])
    n = rng.randint(3, 6)
    ids = tokens(rng, n, 4, 8)
    if kind == "apart":
        said = ({"range": [0, 9]}, {"range": [20, 30]}, None)
    elif kind == "outside":
        said = ({"range": [0, 3]}, None, None)
    elif kind == "both":
        said = ({"range": [0, 9]}, None, "input ids range 12 20\n")
    elif kind == "key":
        said = ({"rnage": [0, 9]}, None, None)
    else:
        said = (None, None, "input ids exclude %d\n" % ids[-1])

    def build(side):
        def f(g):
            return g.param("e", 16, 4).embedding(g.given("ids", (n,), [ids], i64, said[side]))

        return f

    return Case(ERROR, build(0), build(1), said[2], kind)


@family
def lengths(rng):
    """A sequence's length is at least one: what a guard against none does shows only below."""
    batch, n, width = rng.randint(2, 4), rng.randint(4, 7), 4
    admitted = rng.random() < 0.5
    low = 0 if admitted else 1
    kind = rng.choice(["mean", "clamp", "softmax", "last"])
    lens = [rng.randint(1, n) for _ in range(batch)]
    dl, dr, relations = say(rng, "lens", {"range": [low, n]})
    x = normals(rng, batch * n * width)

    def build(side):
        def f(g):
            length = g.given("lens", (batch,), [lens], i64, dr if side else dl)
            h = g.given("x", (batch, n, width), [x], f32)
            keep = g.arange(n).unsqueeze(0).lt(length.unsqueeze(1))
            if kind == "last":
                at = length.sub(1).clamp_min(0) if side else length.clamp_min(1).sub(1)
                i = at.view(batch, 1, 1).expand(batch, 1, width)
                y = h.gather(1, i).squeeze(1)
                if side and admitted:
                    y = length.gt(0).unsqueeze(-1).where(y, y.add(1.0))
                return linear(g, y, "w", 3, side)
            if kind == "softmax":
                s = linear(g, h, "s", 1, side).squeeze(-1)
                p = s.masked_fill(keep.logical_not(), float("-inf")).softmax(-1)
                if side:
                    p = length.eq(0).unsqueeze(-1).where(0.0, p)
                return p.unsqueeze(-1).mul(h).sum(1)
            total = h.mul(keep.to(f32).unsqueeze(-1)).sum(1)
            count = length.clamp_min(1) if side else length
            if kind == "mean":
                return total.div(count.to(f32).unsqueeze(-1))
            return total.mul(count.to(f32).unsqueeze(-1)).add(
                length.eq(0).to(f32).unsqueeze(-1) if side else 0.0
            )

        return f

    return Case(
        DIFFERENT if admitted else EQUIVALENT,
        build(0),
        build(1),
        relations,
        "%s from %d" % (kind, low),
    )


@family
def distinct_slots(rng):
    rows, n, width = rng.randint(6, 10), rng.randint(2, 4), 4
    admitted = rng.random() < 0.5
    slots = rng.sample(range(rows), n)
    dl, dr, relations = say(
        rng,
        "slots",
        {"range": [0, rows - 1]} if admitted else {"range": [0, rows - 1], "distinct": True},
    )
    kind = rng.choice(["flip", "add"])
    cache, x = normals(rng, rows * width), normals(rng, n * width)

    def build(side):
        def f(g):
            c = g.given("cache", (rows, width), [cache], f32)
            v = g.given("x", (n, width), [x], f32)
            i = g.given("slots", (n,), [slots], i64, dr if side else dl)
            if kind == "flip":
                return (
                    c.op("index_put", [c, [i.flip(0)], v.flip(0), False])
                    if side
                    else c.op("index_put", [c, [i], v, False])
                )
            z = c.zeros_like()
            return z.op("index_put", [z, [i], v, bool(side)])

        return f

    return Case(
        DIFFERENT if admitted else EQUIVALENT,
        build(0),
        build(1),
        relations,
        "%s %s" % (kind, slots),
    )


@family
def two_tokens(rng):
    """Two inputs of ids, each with its own padding."""
    rows, n, width = rng.randint(10, 30), rng.randint(3, 6), 4
    pads = [rng.randrange(rows), rng.randrange(rows)]
    said = [rng.random() < 0.7, rng.random() < 0.7]
    ids = [[tokens(rng, n, 0, rows, (p,)) for p in pads] for _ in range(2)]
    same = rng.random() < 0.5
    names = ("src", "tgt")
    text = "".join(
        "input %s exclude %d range 0 %d\n" % (names[k], pads[k], rows - 1)
        for k in (0, 1)
        if said[k]
    )

    def build(side):
        def f(g):
            parts = []
            for k in (0, 1):
                i = g.given(names[k], (n,), [ids[0 if same else side][k]])
                x = g.param("e%d" % k, rows, width).embedding(i)
                if side:
                    x = x.masked_fill(i.eq(pads[k]).unsqueeze(-1), 0.0)
                parts.append(silu(linear(g, x, "w%d" % k, width, side), side))
            return parts[0].add(parts[1]) if not side else parts[1].add(parts[0])

        return f

    return Case(
        EQUIVALENT if all(said) else DIFFERENT,
        build(0),
        build(1),
        text or None,
        "%s of %d, said %s" % (pads, rows, said),
    )


@family
def several_excluded(rng):
    rows, n, width = rng.randint(20, 60), rng.randint(3, 6), 4
    special = sorted(rng.sample(range(rows), rng.randint(2, 6)))
    admitted = rng.random() < 0.4
    out = special[1:] if admitted else special
    ids = tokens(rng, n, 0, rows, special)
    dl, dr, relations = say(rng, "ids", {"range": [0, rows - 1], "exclude": out})

    def build(side):
        def f(g):
            i = g.given("ids", (n,), [ids], i64, dr if side else dl)
            x = g.param("e", rows, width).embedding(i)
            for s in special if side else ():
                x = x.masked_fill(i.eq(s).unsqueeze(-1), 0.25)
            return linear(g, x, "w", width, side)

        return f

    return Case(
        DIFFERENT if admitted else EQUIVALENT,
        build(0),
        build(1),
        relations,
        "%s of %d" % (special, rows),
    )


@family
def more_sets_on_one_side(rng):
    """One capture has a second input set, in which what was equal in the first is not."""
    shape = (rng.randint(2, 4), rng.randint(3, 6))
    n = dsl.count(shape)
    first, second = normals(rng, n), normals(rng, n)
    wrong = rng.random() < 0.5
    long = rng.randrange(2)
    lone = (
        rng.random() < 0.5 and long == 0
    )  # what one capture has alone, its own sets have to tell apart

    def build(side):
        def f(g):
            sets = (lambda *v: list(v)) if side == long else (lambda *v: [v[0]])
            x = g.given("a", shape, sets(first, first), f32)
            if side and wrong and lone:
                return x.tanh().add(x.mul(2.0))
            y = g.given("b", shape, sets(first, second), f32)
            return y.tanh().add(x.mul(2.0)) if not (side and wrong) else x.tanh().add(y.mul(2.0))

        return f

    return Case(
        DIFFERENT if wrong else EQUIVALENT,
        build(0),
        build(1),
        what="long %d lone %s" % (long, lone),
    )


@family
def constant_in_first_set(rng):
    """Positions that are those of a constant in the first set only."""
    n, width = rng.randint(3, 6), 4
    wrong = rng.random() < 0.5
    kind = rng.choice(["float", "int"])
    starts = [0, rng.randint(1, 5)] if wrong else [0, 0]
    x = [normals(rng, n * width) for _ in range(2)]

    def build(side):
        def f(g):
            h = g.given("x", (n, width), x, f32)
            if side:
                p = g.arange(n)
            else:
                p = g.given("p", (n,), [list(range(s, s + n)) for s in starts])
            if kind == "float":
                return h.add(p.to(f32).unsqueeze(-1).mul(0.1))
            return h.add(g.param("e", 16, width).embedding(p))

        return f

    return Case(
        DIFFERENT if wrong else EQUIVALENT, build(0), build(1), what="%s %s" % (kind, starts)
    )


@family
def structured_by_value(rng):
    """Nothing is said, and what the values look like is kept: bounds of sequences, positions that
    begin again."""
    width = 4
    cuts = [0]
    for _ in range(rng.randint(2, 4)):
        cuts.append(cuts[-1] + rng.randint(1, 3))
    n = cuts[-1]
    kind = rng.choice(["segments", "restarts"])
    x = normals(rng, n * width)
    places = [p for a, b in zip(cuts, cuts[1:]) for p in range(b - a)]
    if kind == "restarts" and (
        len(places) < 4 or 2 * sum(b == a + 1 for a, b in zip(places, places[1:])) < len(places)
    ):
        kind = "segments"

    def build(side):
        def f(g):
            h = g.given("x", (n, width), [x], f32)
            if kind == "segments":
                b = g.given("cu_seqlens", (len(cuts),), [cuts])
                inner = b.slice(0, 1, len(cuts) - 1)
                if side:
                    s = g.op(
                        "searchsorted.Tensor", [inner, g.arange(n)], [((n,), i64)], {"right": True}
                    )[0]
                else:
                    s = g.arange(n).unsqueeze(-1).ge(inner).to(i64).sum(-1)
            else:
                p = g.given("positions", (n,), [places])
                if side:
                    s = p.eq(0).to(i64).cumsum(0)
                else:
                    step = p.slice(0, 1, n).sub(p.slice(0, 0, n - 1)).ne(1).to(i64)
                    s = g.cat([g.ones(1, dtype=i64), step], 0).cumsum(0)
            same = s.unsqueeze(0).eq(s.unsqueeze(1))
            scores = h.matmul(h.t()).masked_fill(same.logical_not(), float("-inf"))
            return softmax(scores, side).matmul(h)

        return f

    return Case(EQUIVALENT, build(0), build(1), what="%s %s" % (kind, cuts))


# ---- running ----


def run(job):
    name, seed, case = job
    with tempfile.TemporaryDirectory() as folder:
        if OPTIONS.keep:
            folder = os.path.join(OPTIONS.keep, "%s-%d" % (name, seed))
        case.write(folder)
        sides = [os.path.join(folder, s) for s in ("left", "right")]
        if seed % 3 == 2 and not case.in_order:
            sides.reverse()
        more = ["--relations", os.path.join(folder, "relations.txt")] if case.relations else []
        path = os.path.join(folder, "certificate.json")
        asked = ["--certificate", path] if OPTIONS.certificates else []
        try:
            p = subprocess.run(
                [OPTIONS.isomer, "compare", *sides, *more, *asked],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                timeout=120,
            )
        except subprocess.TimeoutExpired:
            return name, seed, case, "timeout", ""
        out, err = p.stdout.decode("utf-8", "replace"), p.stderr.decode("utf-8", "replace")
        got = VERDICT.get(p.returncode, "crash")
        if got == ERROR and (err.count("\n") != 1 or out):
            got = "crash"
        if asked and got == EQUIVALENT:
            p = subprocess.run(
                [OPTIONS.isomer, "check", path, *sides, *more],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                timeout=120,
                env=dict(os.environ, MALLOC_PERTURB_="177"),  # what was freed is no text
            )
            out, err = (s.decode("utf-8", "replace") for s in (p.stdout, p.stderr))
            got = got if p.returncode == 0 else "refused"
            got = "garbled" if "\ufffd" in out + err else got
        return name, seed, case, got, (err or out).strip().rsplit("\n", 1)[-1].replace(folder, "")


def main():
    global OPTIONS
    a = argparse.ArgumentParser(description="what two captures are run on")
    a.add_argument("--isomer", default=os.path.join(ROOT, "build", "isomer"))
    a.add_argument("--seed", type=int, default=0)
    a.add_argument("--count", type=int, default=300)
    a.add_argument("--only", default="", help="families whose name holds this")
    a.add_argument("--keep", help="write the captures here and leave them there")
    a.add_argument("--certificates", action="store_true", help="of what is equivalent: checked")
    a.add_argument("--jobs", type=int, default=min(2, os.cpu_count() or 1))
    OPTIONS = a.parse_args()
    OPTIONS.isomer = os.path.abspath(OPTIONS.isomer)
    names = [n for n in FAMILIES if OPTIONS.only in n]
    jobs = []
    for k in range(OPTIONS.count):
        name, seed = names[k % len(names)], OPTIONS.seed * 100000 + k
        jobs.append((name, seed, FAMILIES[name](random.Random("%s %d" % (name, seed)))))
    tally = collections.Counter()
    open_of = collections.Counter()
    of = collections.Counter()
    failed = 0
    with ThreadPoolExecutor(OPTIONS.jobs) as pool:
        for name, seed, case, got, says in pool.map(run, jobs):
            tally[case.expected, got] += 1
            of[name] += case.expected == EQUIVALENT
            if got == case.expected:
                continue
            late = got == UNDECIDED and not case.sure
            failed += not late
            open_of[name] += late and case.expected == EQUIVALENT
            print(
                "%s %s %d: %s, expected %s (%s): %s"
                % ("OPEN" if late else "FAILED", name, seed, got, case.expected, case.what, says),
                flush=True,
            )
    for (expected, got), n in sorted(tally.items()):
        print("%-10s -> %-10s %d" % (expected, got, n))
    most = 0.1 * sum(of.values())
    if sum(open_of.values()) > most:
        failed += 1
        print("FAILED: more than a tenth of the equivalent ones are undecided: %s" % dict(open_of))
    print("%d passed, %d failed" % (sum(tally.values()) - failed, failed))
    return 1 if failed or not tally else 0


if __name__ == "__main__":
    sys.exit(main())
