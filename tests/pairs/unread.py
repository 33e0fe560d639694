#!/usr/bin/env python3
"""A campaign over leaves that nothing reads: copies, parts and wholes of parameters, constants and
inputs that stand in a capture, on either side or both, beside the leaf that is read. Such a copy is
no reason to take the two sides' leaves for different ones, and none to miss that one side forgot to
use its own. Options and what must hold are those of inputs.py.

    tests/pairs/unread.py [--isomer build/isomer] [--seed N] [--count N] [--only FAMILY]"""

import random
import sys

import inputs
from dsl import DIFFERENT, EQUIVALENT, UNDECIDED, Data, f32, join, values
from inputs import Case, normals, tokens

inputs.FAMILIES.clear()


class Weight:
    """A parameter of the left side, and values to put beside it."""

    def __init__(self, rng):
        self.rows, self.columns = rng.randint(4, 8), rng.randint(3, 6)
        self.salt = "%d" % rng.randrange(10**9)
        self.data = self.other("w")

    def other(self, name, rows=None):
        return values(name + self.salt, rows or self.rows, self.columns)


# ---- how the right side stores what the left stores as it is: leaves, and what reads them ----


def same(rng, w):
    return [w.data], lambda g, p: p[0]


def turned(rng, w):
    return [w.data.t()], lambda g, p: p[0].t()


def flat(rng, w):
    return [w.data.reshape(w.rows * w.columns)], lambda g, p: p[0].view(w.rows, w.columns)


def padded(rng, w):
    return [w.data.pad(rng.randint(1, 4))], lambda g, p: p[0].slice(0, 0, w.rows)


def padded_in_front(rng, w):
    n = rng.randint(1, 4)
    front = Data((n, w.columns), [rng.choice([0.0, 0.5])] * (n * w.columns))
    return [join(front, w.data)], lambda g, p: p[0].slice(0, n, n + w.rows)


def with_others(rng, w):
    n = rng.randint(1, 5)
    whole = join(w.other("before", n), w.data, w.other("behind", 2))
    return [whole], lambda g, p: p[0].slice(0, n, n + w.rows)


def halves(rng, w):
    n = rng.randint(1, w.rows - 1)
    return [w.data.rows(0, n), w.data.rows(n, w.rows)], lambda g, p: g.cat(p, 0)


def padded_and_turned(rng, w):
    n = rng.randint(1, 3)
    return [w.data.pad(n).t()], lambda g, p: p[0].slice(1, 0, w.rows).t()


STORED = [same, turned, flat, padded, padded_in_front, with_others, halves, padded_and_turned]


# ---- what uses it ----


def linear(g, x, w):
    return x.linear(w)


def gated(g, x, w):
    return x.linear(w).sigmoid().mul(x.linear(w))


def through_norm(g, x, w):
    return x.matmul(w.t()).layer_norm()


USES = [linear, gated, through_norm]


# ---- what nothing reads ----


def beside(rng, w, stored, read):
    """One leaf: what it is called, what it holds. `read`: the names that are in use."""
    what = rng.choice(["copy", "copy", "copy", "turned", "part", "stored", "zeros", "other"])
    data = {
        "copy": w.data,
        "turned": w.data.t(),
        "part": w.data.rows(0, w.rows // 2),
        "stored": stored[0],
        "zeros": Data((w.rows,), [0.0] * w.rows),
        "other": w.other("nothing"),
    }[what]
    kind = rng.choice(["parameter", "parameter", "parameter", "buffer", "constant"])
    name = next(n for n in rng.sample(["w", "weight", "copy", "old.w", "z"], 5) if n not in read)
    return what, kind, name, data


class Side:
    """The leaves that are read and those that are not, in any order; `also`: one that is not read
    otherwise is added to the output, so that it is."""

    def __init__(self, rng, w, read, reader, stored, names):
        self.read, self.reader, self.names = read, reader, names
        self.unread = []
        taken = list(names)
        for _ in range(rng.randint(0, 2)):
            self.unread.append(beside(rng, w, stored, taken))
            taken.append(self.unread[-1][2])
        self.first = rng.random() < 0.5

    def says(self):
        return "+".join("%s:%s:%s" % (what, kind, name) for what, kind, name, _ in self.unread)

    def leaves(self, g):
        def unread():
            for _, kind, name, data in self.unread:
                g.leaf(kind, name, data, f32)

        if self.first:
            unread()
        p = [g.leaf("parameter", n, d, f32) for n, d in zip(self.names, self.read)]
        if not self.first:
            unread()
        return self.reader(g, p)


def case_of(rng, how, wrong):
    w = Weight(rng)
    use = rng.choice(USES)
    stored, reader = how(rng, w)
    left_name = rng.choice(["w", "layer.w"])
    names = ["w"] if len(stored) == 1 and rng.random() < 0.4 else ["s%d" % k for k in range(9)]
    left = Side(rng, w, [w.data], lambda g, p: p[0], stored, [left_name])
    right = Side(rng, w, stored, reader, stored, names[: len(stored)])
    while not (left.unread or right.unread) or (not right.unread and rng.random() < 0.8):
        right = Side(rng, w, stored, reader, stored, names[: len(stored)])
    n = rng.randint(2, 4)

    def build(side):
        def f(g):
            x = g.x(n, w.columns)
            t = (left, right)[side].leaves(g)
            if side and wrong == "rows":
                t = t.roll(1, 0)
            if side and wrong == "scaled":
                t = t.mul(1.001)
            if side and wrong == "one row":
                t = g.cat([t.slice(0, 0, 1), t.slice(0, 0, w.rows - 1)], 0)
            return use(g, x, t)

        return f

    what = "%s %s %s left %s right %s" % (
        how.__name__,
        use.__name__,
        wrong,
        left.says(),
        right.says(),
    )
    return Case(DIFFERENT if wrong else EQUIVALENT, build(0), build(1), what=what)


def family(how):
    def draw(rng):
        return case_of(rng, how, rng.choice([None, None, None, "rows", "scaled", "one row"]))

    draw.__name__ = how.__name__
    inputs.family(draw)


for _how in STORED:
    family(_how)


@inputs.family
def read_too(rng):
    """The copy is read, too: two leaves of one side hold what is one on the other."""
    w = Weight(rng)
    stored, reader = rng.choice([padded, padded_in_front, with_others, padded_and_turned])(rng, w)
    part = rng.randint(1, w.rows) if rng.random() < 0.5 else w.rows
    wrong = rng.choice([None, None, 1.001])
    names = ["w", "s"] if rng.random() < 0.5 else ["a", "b"]
    n, order = rng.randint(2, 4), rng.random() < 0.5

    def left(g):
        x, t = g.x(n, w.columns), g.param("w", w.data)
        return g.cat([x.linear(t), x.linear(t.slice(0, 0, part)).sigmoid()], 1)

    def right(g):
        x = g.x(n, w.columns)
        leaves = [(names[0], w.data.rows(0, part)), (names[1], stored[0])]
        got = {k: g.param(k, d) for k, d in (leaves if order else leaves[::-1])}
        t = reader(g, [got[names[1]]])
        y = x.linear(t if not wrong else t.mul(wrong))
        return g.cat([y, x.linear(got[names[0]]).sigmoid()], 1)

    return Case(DIFFERENT if wrong else EQUIVALENT, left, right, what="%d %s" % (part, names))


@inputs.family
def computed_when_loaded(rng):
    """A table that is read was computed from a parameter, which is kept too, when it was loaded."""
    w = Weight(rng)
    how, undo = rng.choice(
        [
            (lambda v: 2.0 * v, lambda t: t.mul(0.5)),
            (lambda v: -v, lambda t: t.neg()),
            (lambda v: v + 1.0, lambda t: t.sub(1.0)),
        ]
    )
    wrong = rng.random() < 0.4
    n, name = rng.randint(2, 4), rng.choice(["w", "copy"])

    def left(g):
        return g.x(n, w.columns).linear(g.param("w", w.data))

    def right(g):
        g.param(name, w.data)
        t = g.param("folded", Data(w.data.shape, [how(v) for v in w.data.values]))
        t = undo(t).mul(1.001) if wrong else undo(t)
        return g.x(n, w.columns).linear(t)

    # The computed table is found as a fold, unless something else explains it.
    return Case(DIFFERENT if wrong else EQUIVALENT, left, right, what=name)


@inputs.family
def forgotten(rng):
    """One side does not use what it has, where that shows on other parameters alone."""
    n, m = rng.randint(2, 4), rng.randint(4, 8)
    init = rng.choice([1.0, 0.0])
    name = rng.choice(["w", "weight", "norm.w"])
    instead = rng.random() < 0.4
    same_other = [init] * m

    def build(side):
        def f(g):
            x = g.x(n, m)
            one = g.param("w" if not side else name, Data((m,), same_other))
            y = g.x(n, m).layer_norm()
            if instead:
                two = g.param("other", Data((m,), same_other))
                one = two if side else one
            elif side:
                return y + x
            return (y * one if init else y + one) + x

        return f

    return Case(DIFFERENT, build(0), build(1), what="%g %s %s" % (init, name, instead))


@inputs.family
def constants(rng):
    """A constant of one side is a number on the other, whose copy of the constant is not read."""
    m = rng.randint(2, 6)
    v = rng.choice([0.1, 1.0 / 3.0, 64**-0.5, 80**-0.5, 1e20, 0.7071067811865476])
    table = [v] if rng.random() < 0.5 else [v] * m
    kind = rng.choice(["buffer", "constant"])
    name = rng.choice(["c", "d"])
    wrong = rng.choice([None, None, 1.001])
    both = rng.random() < 0.3

    def left(g):
        c = g.leaf(kind, "c", Data((len(table),), table), f32)
        if both:
            g.leaf(kind, "unused", Data((len(table),), table), f32)
        return g.x(3, m).mul(c).sigmoid()

    def right(g):
        g.leaf(kind, name, Data((len(table),), table), f32)
        return g.x(3, m).mul(v * (wrong or 1.0)).sigmoid()

    return Case(DIFFERENT if wrong else EQUIVALENT, left, right, what="%g %s" % (v, name))


@inputs.family
def absorbing(rng):
    """As constants(), where rounding of the one that is stored shows in the outputs."""
    v = rng.choice([1e20, 1e15, 1.1e12])
    name = rng.choice(["w", "v"])
    kind = rng.choice(["buffer", "constant"])
    n = rng.randint(6, 9)

    def left(g):
        w = g.leaf(kind, "w", Data((1, 1, 3), [1.0, v, 1.0]), f32)
        return g.x(1, 1, n).tanh().conv1d(w)

    def right(g):
        g.leaf(kind, name, Data((1, 1, 3), [1.0, v, 1.0]), f32)
        x = g.x(1, 1, n).tanh()
        return x.slice(2, 0, n - 2) + x.slice(2, 1, n - 1) * v + x.slice(2, 2, n)

    return Case(UNDECIDED, left, right, what="%g %s" % (v, name))


@inputs.family
def given(rng):
    """Inputs: names say what is what, also of those that nothing reads."""
    n, m = rng.randint(2, 4), rng.randint(3, 6)
    v = normals(rng, n * m)
    crossed = rng.random() < 0.5
    integers = rng.random() < 0.3
    ids = tokens(rng, n, 0, 9)
    extra = rng.choice(["left", "right"])
    apart = rng.random() < 0.5  # what is not read has other values
    v2 = normals(rng, n * m) if apart else v
    ids2 = tokens(rng, n, 0, 9) if apart else ids

    def build(side):
        def f(g):
            w = g.param("w", 9 if integers else m, m)
            both = [
                g.given(k, (n,), [i]) if integers else g.given(k, (n, m), [x], f32)
                for k, i, x in (("a", ids, v), ("b", ids2, v2))
            ]
            if not crossed and side == (extra == "right"):
                g.given("c", (n, m), [v], f32)
            x = both[side if crossed else 0]
            return w.embedding(x) if integers else x.matmul(w)

        return f

    return Case(DIFFERENT if crossed else EQUIVALENT, build(0), build(1), what=extra)


if __name__ == "__main__":
    random.seed(0)
    sys.exit(inputs.main())
