#!/usr/bin/env python3
"""A campaign over several integer inputs of different ranges in one graph: ids of several tables,
positions, labels of a loss, masks, indices with offsets, ids that are added up before they are
looked up. Two writings of one function, and twins that differ, some of them in a table's last row
only. Options and what must hold are those of inputs.py.

    tests/pairs/input_ranges.py [--isomer build/isomer] [--seed N] [--count N] [--only FAMILY]"""

import random
import sys

import inputs
from dsl import DIFFERENT, EQUIVALENT, boolean, f32, i64
from inputs import Case, normals, tokens

inputs.FAMILIES.clear()
WIDTH = 3


class Use:
    """One way to use integers: `term` is a tensor (n, WIDTH) of them, in two writings. Where `last`
    is set, the table's last row is never read."""

    def __init__(self, rng, k, n):
        self.rng, self.k, self.n = rng, k, n
        self.rows = rng.randint(4, 60)
        self.write = rng.randint(0, 2)

    def name(self, what):
        return "%s%d" % (what, self.k)

    def ids(self, low, high, n=None):
        """Captured ones are sometimes far from the end of what is possible, and sometimes look like
        bounds of sequences or like positions in several. What looks like truth values, one number
        or positions in one sequence would be kept."""
        n, top, first = n or self.n, rng_high(self.rng, low, high), max(low, 0)
        looks = self.rng.choice(["any", "any", "bounds", "restarts"])
        while True:
            v = tokens(self.rng, n, low, top)
            if looks == "bounds" and first == 0:
                v = [0] + sorted(tokens(self.rng, n - 1, 0, top))
            if looks == "restarts":
                v = positions_of_several(self.rng, n, self.rng.choice([0, 1]))
            if max(v) < top and not looks_kept(v):
                return v
            looks = "any"

    def table(self, g, rows=None):
        return g.param(self.name("table"), rows or self.rows, WIDTH)

    def look_up(self, g, i, other, last, rows=None):
        rows = rows or self.rows
        i = i.clamp(0, rows - 2) if last else i
        t = self.table(g, rows)
        if not other or self.write == 0:
            return t.embedding(i)
        if self.write == 1:
            return t.index_select(0, i)
        return t.index(i)


def looks_kept(v):
    return max(v) <= 1 or len(set(v)) == 1 or all(y - x == 1 for x, y in zip(v, v[1:]))


def positions_of_several(rng, n, start):
    """1, 2, 3, 0, 1: at least half of them follow the one before."""
    v = [start]
    while len(v) < n:
        v.append(0 if v[-1] > 1 and rng.random() < 0.4 else v[-1] + 1)
    return v


def rng_high(rng, low, high):
    return high if rng.random() < 0.5 else rng.randint(min(max(low, 0) + 4, high), high)


USES = {}


def use(f):
    USES[f.__name__] = f
    return f


@use
class ids(Use):
    def __init__(self, *a):
        super().__init__(*a)
        self.value = self.ids(0, self.rows)

    def term(self, g, other, last):
        return self.look_up(g, g.given(self.name("ids"), (self.n,), [self.value]), other, last)


@use
class offset(Use):
    def __init__(self, *a):
        super().__init__(*a)
        self.by = self.rng.randint(1, 3)
        self.rows = max(self.rows, self.by + 3)  # of fewer ids all look kept
        self.value = self.ids(0, self.rows - self.by)

    def term(self, g, other, last):
        i = g.given(self.name("ids"), (self.n,), [self.value])
        if other and self.write == 0 and not last:  # the rows before the offset are never read
            return self.table(g).slice(0, self.by, self.rows).embedding(i)
        return self.look_up(g, i.add(self.by), other, last)


@use
class added(Use):
    """Two inputs make one row's number."""

    def __init__(self, *a):
        super().__init__(*a)
        self.rows = self.rng.randint(8, 60)
        half = self.rng.randint(3, self.rows // 2)
        self.value = self.ids(0, half), self.ids(0, self.rows - half)

    def term(self, g, other, last):
        a, b = (g.given(self.name(w), (self.n,), [v]) for w, v in zip(("ids", "kinds"), self.value))
        return self.look_up(g, b.add(a) if other else a.add(b), other, last)


@use
class grid(Use):
    """A row and a column make one number."""

    def __init__(self, *a):
        super().__init__(*a)
        self.high, self.wide = self.rng.randint(3, 6), self.rng.randint(3, 6)
        self.rows = self.high * self.wide
        self.value = self.ids(0, self.high), self.ids(0, self.wide)

    def term(self, g, other, last):
        a, b = (
            g.given(self.name(w), (self.n,), [v]) for w, v in zip(("row", "column"), self.value)
        )
        i = b.add(a.mul(self.wide)) if other else a.mul(self.wide).add(b)
        return self.look_up(g, i, other, last)


@use
class joined(Use):
    """Ids of two inputs, one behind the other, in one table."""

    def __init__(self, *a):
        super().__init__(*a)
        self.value = self.ids(0, self.rows), self.ids(0, self.rows, self.rng.randint(2, 5))

    def term(self, g, other, last):
        parts = [
            g.given(self.name(w), (len(v),), [v]) for w, v in zip(("head", "tail"), self.value)
        ]
        if other and self.write == 0:
            x = g.cat([self.look_up(g, p, other, last) for p in parts], 0)
        else:
            x = self.look_up(g, g.cat(parts, 0), other, last)
        return x.slice(0, len(self.value[1]), x.shape[0])


@use
class viewed(Use):
    def __init__(self, *a):
        super().__init__(*a)
        self.value = self.ids(0, self.rows)

    def term(self, g, other, last):
        i = g.given(self.name("ids"), (1, self.n), [self.value])
        if other:
            return self.look_up(g, i.to("int32").to(i64).squeeze(0), other, last)
        return self.look_up(g, i, False, last).squeeze(0)


@use
class shard(Use):
    """A table in two parts, as ranks hold a vocabulary."""

    def __init__(self, *a):
        super().__init__(*a)
        self.rows = 2 * self.rng.randint(2, 30)
        self.value = self.ids(0, self.rows)

    def term(self, g, other, last):
        i = g.given(self.name("ids"), (self.n,), [self.value])
        if not other:
            return self.look_up(g, i, False, last)
        i = i.clamp(0, self.rows - 2) if last else i
        half, table, out = self.rows // 2, self.table(g), None
        for r in range(2):
            away = i.lt(r * half).logical_or(i.ge((r + 1) * half))
            part = table.slice(0, r * half, (r + 1) * half)
            x = part.embedding(i.sub(r * half).masked_fill(away, 0))
            x = x.masked_fill(away.unsqueeze(-1), 0.0)
            out = x if out is None else out.add(x)
        return out


@use
class clamped(Use):
    """Any integers: they are brought into the table's range first."""

    def __init__(self, *a):
        super().__init__(*a)
        self.value = self.ids(-3, self.rows + 3)

    def term(self, g, other, last):
        i = g.given(self.name("ids"), (self.n,), [self.value])
        top = self.rows - 1
        i = i.clamp_max(top).clamp_min(0) if other else i.clamp(0, top)
        return self.look_up(g, i, other, last)


@use
class label(Use):
    """The loss of a class that is given, whatever those that were captured look like."""

    def __init__(self, *a):
        super().__init__(*a)
        self.rows = self.rng.randint(3, 12)
        self.value = self.rng.choice(
            [
                self.ids(0, self.rows),
                [self.rng.randint(0, 1) for _ in range(self.n)],
                [self.rng.randrange(self.rows)] * self.n,
                [k % self.rows for k in range(self.n)],
            ]
        )
        self.x = normals(self.rng, self.n * WIDTH)

    def term(self, g, other, last):
        y = g.given(self.name("labels"), (self.n,), [self.value])
        x = g.given(self.name("x"), (self.n, WIDTH), [self.x], f32)
        p = x.linear(g.param(self.name("head"), self.rows, WIDTH)).log_softmax(-1)
        y = y.clamp(0, self.rows - 2) if last else y
        if not other:
            loss = p.several("nll_loss_forward", [p, y, None, 0, -100], [(self.n,), ()])[0]
            return loss.unsqueeze(-1)
        return p.gather(1, y.unsqueeze(-1)).neg()


@use
class counted(Use):
    def __init__(self, *a):
        super().__init__(*a)
        self.rows = self.rng.randint(3, 12)
        self.value = self.ids(0, self.rows)

    def term(self, g, other, last):
        i = g.given(self.name("ids"), (self.n,), [self.value])
        if other:
            return self.look_up(g, i, other, last)
        i = i.clamp(0, self.rows - 2) if last else i
        return i.one_hot(self.rows).to(f32).matmul(self.table(g))


@use
class mask(Use):
    """Truth values as integers: they look nothing up. Some hide: a mask that hides nothing is kept
    as it was captured, and the report says so."""

    def __init__(self, *a):
        super().__init__(*a)
        self.value = [0, 1] + [self.rng.randint(0, 1) for _ in range(self.n - 2)]
        self.rng.shuffle(self.value)
        self.x = normals(self.rng, self.n * WIDTH)

    def term(self, g, other, last):
        m = g.given(self.name("mask"), (self.n,), [self.value])
        x = g.given(self.name("x"), (self.n, WIDTH), [self.x], f32)
        gone = m.to(boolean).logical_not() if other else m.eq(0)
        x = x.masked_fill(gone.unsqueeze(-1), 0.0 if not last else 0.5)
        return x.linear(g.param(self.name("w"), WIDTH, WIDTH))


@use
class positions(Use):
    def __init__(self, *a):
        super().__init__(*a)
        self.rows = self.n + self.rng.randint(0, 40)
        self.start = self.rng.randint(0, self.rows - self.n)

    def term(self, g, other, last):
        i = g.given(
            self.name("positions"), (self.n,), [list(range(self.start, self.start + self.n))]
        )
        if last:
            i = i.add(1).clamp(0, self.rows - 1).sub(1)
            return self.look_up(g, i, other, False).mul(1.01)
        return self.look_up(g, i, other, False)


def graph(uses, order, wrong):
    def build(side):
        def f(g):
            given = {}
            for k in order[side]:
                given[k] = uses[k].term(g, side == 1, wrong == k and side == 1)
            y = None
            for k in range(len(uses)):
                y = given[k] if y is None else y.add(given[k])
            return y

        return f

    return build


def case(rng, kinds, wrong):
    n = rng.randint(4, 9)
    uses = [USES[kind](rng, k, n) for k, kind in enumerate(kinds)]
    orders = [list(range(len(uses))), list(range(len(uses)))]
    if rng.random() < 0.5:
        rng.shuffle(orders[1])
    at = rng.randrange(len(uses)) if wrong else -1
    build = graph(uses, orders, at)
    what = " ".join("%s/%d" % (k, u.rows) for k, u in zip(kinds, uses))
    return Case(
        DIFFERENT if wrong else EQUIVALENT,
        build(0),
        build(1),
        what=what + (", wrong in %s" % kinds[at] if wrong else ""),
    )


def family(kind):
    def draw(rng):
        """`kind` beside one or two others."""
        kinds = [kind] + [rng.choice(sorted(USES)) for _ in range(rng.randint(1, 2))]
        return case(rng, kinds, rng.random() < 0.5)

    draw.__name__ = kind
    inputs.family(draw)


for _kind in sorted(USES):
    family(_kind)


@inputs.family
def read_in_part(rng):
    """Only some of the ids are looked up, or they are under a condition: the others may be any
    integers, and one side looks whether they are rows of the table."""
    n, rows, wrong = rng.randint(4, 9), rng.randint(4, 30), rng.random() < 0.6
    how = rng.choice(["floats", "mask", "product", "itself", "moved", "sliced", "constant"])
    kept = sorted(rng.sample(range(n), n // 2))
    value = tokens(rng, n, 0, rows)
    while looks_kept(value):
        value = tokens(rng, n, 0, rows)
    by, hides = normals(rng, n), [1, 0] + [rng.randint(0, 1) for _ in range(n - 2)]
    at = rng.randint(1, n - 1)

    def chosen(g, i, other):
        """Those that are looked up, and 0 for the others."""
        if how == "itself":
            away = i.to(f32).gt(rows - 0.5)
            return i.masked_fill(away, 0)
        if how == "moved":
            return i.sub(i.to(f32).gt(rows - 0.5).to(i64).mul(rows))
        if how == "constant":
            away = g.const("away", [k not in kept for k in range(n)], boolean)
        elif how == "floats":
            away = g.given("by", (n,), [by], f32).le(0)
        else:
            away = g.given("hides", (n,), [hides]).ne(0)
        if how == "product":
            keep = away.logical_not().to(i64)
            return keep.mul(i) if other else i.mul(keep)
        return i.masked_fill(away, 0) if other else away.where(i.mul(0), i)

    def rows_of(g, i, other):
        table = g.param("table", rows, WIDTH)
        if how != "sliced":
            return table.embedding(chosen(g, i, other)).sum(-1)
        head = i.slice(0, 0, at)
        x = (table.index(head) if other else table.embedding(head)).sum(-1)
        return g.cat([x, g.full((n - at,), 1.0)], 0)

    def side(other, looks):
        def f(g):
            i = g.given("ids", (n,), [value])
            y = rows_of(g, i, other)
            return y.mul(i.lt(rows).to(f32)) if looks else y

        return f

    looks = rng.random() < 0.5
    a, b = side(False, looks), side(True, looks != wrong)
    what = "%s, %d rows" % (how, rows) + (", one side looks" if wrong else "")
    return Case(DIFFERENT if wrong else EQUIVALENT, a, b, what=what)


if __name__ == "__main__":
    random.seed(0)
    sys.exit(inputs.main())
