"""Families of inputs.py: zeros and ones of which nobody says what they may be. What they look like
is what they are; pairs that agree for the captured ones alone are different."""

from dsl import DIFFERENT, EQUIVALENT, UNDECIDED, Data, bf16, boolean, f32, i32, i64
from input_cases import Case, attend, family, linear, norm, normals, say


def rows_of(rng, batch, n, kind):
    """Rows of a mask: some 1 and some 0, and two ones at least somewhere."""
    while True:
        rows = []
        for _ in range(batch):
            k = rng.randint(1, n)
            if kind == "right":
                rows.append([1] * k + [0] * (n - k))
            elif kind == "left":
                rows.append([0] * (n - k) + [1] * k)
            else:
                row = [int(rng.random() < 0.6) for _ in range(n)]
                row[rng.randrange(n)] = 1
                rows.append(row)
        if fine(rows, kind):
            return rows


def fine(rows, kind):
    """Whether the rows look like what they are: no padding, steps or choice by chance."""
    counts = [sum(r) for r in rows]
    if max(counts) < 2 or all(c == len(rows[0]) for c in counts):
        return False
    if kind == "any":
        lined = all(sorted(r) == r for r in rows) or all(sorted(r) == r[::-1] for r in rows)
        return not lined and [sum(c) for c in zip(*rows)] != [1] * len(rows[0])
    return len(rows) < 3 or {b - a for a, b in zip(counts, counts[1:])} not in ({1}, {-1})


def give(g, rows, side, how):
    """The mask as zeros and ones in int64; `how` the sides have it: by dtype, and ones for zeros.
    What is not the same has another name, in every other case where the kinds tell them apart."""
    dtype, swapped = how[side]
    flat = [int(v) for r in rows for v in r]
    apart = (how[0][0] == boolean) != (how[1][0] == boolean) and sum(flat) % 2
    name = "m" if how[0] == how[1] or apart else "mask of side %d" % side
    shape = (len(rows), len(rows[0]))
    if swapped:
        return g.given(name, shape, [[1 - v for v in flat]], dtype).eq(0).to(i64)
    m = g.given(name, shape, [flat], dtype)
    return m if dtype == i64 else m.to(i64)


def ways(rng):
    dtype = rng.choice([i64, i64, boolean, i32])
    one = (dtype, rng.random() < 0.15)
    if rng.random() < 0.8:
        return one, one
    return one, (rng.choice([i64, boolean]), not one[1])


def mean(g, x, m, count, other):
    kept = x.mul(m.to(f32)) if not other else m.ne(0).where(x, 0.0)
    return kept.sum(1).div(count.to(f32))


@family
def counts_as_captured(rng):
    """How many ones a row has, or all of them: a bound or a number that fits those captured."""
    kind, batch, n = rng.choice(["right", "left", "any"]), rng.randint(1, 3), rng.randint(4, 8)
    what = rng.choice(["clamp", "constant", "above", "full", "total", "guard", "guarded"])
    while True:
        rows = rows_of(rng, min(batch, 2) if kind == "any" else batch, n, kind)
        counts = [sum(r) for r in rows]
        if what == "constant" and kind != "any":
            rows = [rows[0]] * len(rows)
            counts = [sum(r) for r in rows]
        if what in ("clamp", "above") and min(counts) < 2:
            continue
        if what == "constant" and len(set(counts)) > 1:
            continue
        if (what != "full" or max(counts) < n) and fine(rows, kind):
            break
    b, how = len(rows), ways(rng)
    if how[0][1] and how[1][1]:  # that one is kept in each row is not seen of what is left out
        how = ((how[0][0], False),) * 2
    x = normals(rng, b * n)
    k = rng.randint(2, max(2, min(counts)))

    def build(side):
        def f(g):
            h = g.given("x", (b, n), [x], f32)
            m = give(g, rows, side, how)
            count = m.sum(1)
            if what == "clamp" and side:
                count = count.clamp_min(k)
            elif what == "constant" and side:
                return (
                    mean(g, h, m, count, side)
                    .mul(0.0)
                    .add(h.mul(m.to(f32)).sum(1).div(float(counts[0])))
                )
            elif what == "guard" and side:  # no row is without a one
                count = count.clamp_min(1)
            y = mean(g, h, m, count, side)
            if what == "above" and side:
                return count.gt(k - 1).where(y, y.mul(2.0))
            if what == "guarded" and side:
                return count.gt(0).where(y, y.mul(2.0))
            if what == "full" and side:
                return count.eq(n).where(y.add(1.0), y)
            if what == "total":
                total = m.sum(1).sum(0).to(f32)
                return y.div(total) if not side else y.div(float(sum(counts)))
            return y

        return f

    same = what in ("guard", "guarded")
    return Case(
        EQUIVALENT if same else DIFFERENT, build(0), build(1), None, "%s %s %s" % (what, kind, rows)
    )


@family
def places_as_captured(rng):
    """Where the ones are: the first, the last, positions; as a mask of this padding has them."""
    kind, batch, n = rng.choice(["right", "left", "any"]), rng.randint(1, 3), rng.randint(4, 8)
    what = rng.choice(["first", "last", "positions", "stored", "row", "lengths"])
    if what in ("positions", "lengths") and kind == "any":
        kind = rng.choice(["right", "left"])
    at = 0 if what == "first" else n - 1
    while True:
        rows = rows_of(rng, min(batch, 2) if kind == "any" else batch, n, kind)
        if what == "row":
            rows = [rows[0]] * rng.randint(2, 3)
        if what == "first" and kind == "left" or what == "last" and kind == "right":
            kind = "any"
        if what in ("first", "last") and kind == "any":
            rows = [r[:at] + [1] + r[at + 1 :] for r in rows]
        if fine(rows, kind):
            break
    same = {
        "first": kind == "right",
        "last": kind == "left",
        "positions": True,
        "lengths": True,
        "stored": False,
        "row": False,
    }[what]
    b, how = len(rows), ways(rng)
    x = normals(rng, b * n)

    def build(side):
        def f(g):
            h = g.given("x", (b, n), [x], f32)
            m = give(g, rows, side, how)
            real = m.to(f32)
            if what in ("first", "last"):
                seen = m.select(1, at).ne(0).to(f32).unsqueeze(1)
                y = h.mul(seen) if side else h
                return y.mul(real).sum(1)
            if what == "positions":
                before = m.cumsum(1).mul(m)
                if side:
                    before = g.arange(n).add(1)
                    if kind == "left":
                        before = before.sub(m.sum(1, True).rsub(n))
                    before = before.mul(m)
                return h.mul(before.to(f32)).sum(1)
            if what == "stored":
                until = m.cumsum(1)
                if side:
                    flat = [sum(r[: j + 1]) for r in rows for j in range(n)]
                    until = g.leaf("constant", "until", Data((b, n), flat), i64)
                return h.mul(until.to(f32)).mul(real).sum(1)
            if what == "row":
                real = real.slice(0, 0, 1) if side else real
                return h.mul(real).sum(1)
            count = m.sum(1, True)
            keep = g.arange(n).lt(count) if kind == "right" else g.arange(n).ge(count.rsub(n))
            return h.mul(keep.to(f32) if side else real).sum(1)

        return f

    return Case(
        EQUIVALENT if same else DIFFERENT, build(0), build(1), None, "%s %s %s" % (what, kind, rows)
    )


@family
def chosen_by_ones(rng):
    """One 1 in each row chooses: what was chosen, or that it is one."""
    batch, n = rng.randint(2, 5), rng.randint(4, 7)
    what = rng.choice(["sum", "argmax", "stored", "place", "count"])
    while True:
        picks = [rng.randrange(n) for _ in range(batch)]
        if what == "place":
            picks = [rng.randrange(1, n - 1)] * batch
        first, last = all(p == 0 for p in picks), all(p == n - 1 for p in picks)
        steps = len({(b - a) % n for a, b in zip(picks, picks[1:])}) == 1
        if not (first or last) and (what == "place" or not steps or batch < 3):
            break
    rows = [[int(j == p) for j in range(n)] for p in picks]
    if what == "count" and all(rows.count(r) == 1 for r in rows):
        what = "stored"  # ones in different columns may be a permutation
    x, how = normals(rng, batch * n), ways(rng)
    if how[0][1] and how[1][1]:  # a choice of one is seen as it is alone
        how = ((how[0][0], False),) * 2
    if what in ("place", "stored"):  # the mask is given to both, by one name, and one reads it
        how = (how[0], how[0])

    most_of = max(picks.count(p) for p in picks)
    if what == "count" and most_of == batch:
        what = "sum"

    def build(side):
        def f(g):
            h = g.given("x", (batch, n), [x], f32)
            m = give(g, rows, side, how)
            y = h.mul(m.to(f32)).sum(1)
            if what == "sum":
                return y.div(m.sum(1).to(f32)) if side else y
            if what == "argmax":
                at = m.argmax(1, True) if side else m.mul(g.arange(n)).sum(1, True)
                return h.gather(1, at).squeeze(1)
            if what == "stored" and side:
                at = g.leaf("constant", "at", Data((batch, 1), picks), i64)
                return h.gather(1, at).squeeze(1)
            if what == "place" and side:
                return h.select(1, picks[0])
            if what == "count":
                most = m.sum(0).amax(0) if not side else m.sum(0).amax(0).clamp_max(most_of)
                return y.mul(most.to(f32))
            return y

        return f

    same = what in ("sum", "argmax")
    return Case(
        EQUIVALENT if same else DIFFERENT, build(0), build(1), None, "%s %s" % (what, picks)
    )


def structure(rng, n):
    kind = rng.choice(["causal", "window", "both", "sink", "blocks", "prefix", "tree"])
    w, s = rng.randint(1, n - 2), rng.randint(1, 2)
    cut = sorted(rng.sample(range(1, n), rng.randint(1, min(3, n - 1))))
    of = [sum(j >= c for c in cut) for j in range(n)]
    parent = [-1] + [rng.randrange(i) for i in range(1, n)]

    def above(i, j):
        while i > j:
            i = parent[i]
        return i == j

    sees = {
        "causal": lambda i, j: j <= i,
        "window": lambda i, j: i - w <= j <= i,
        "both": lambda i, j: abs(i - j) <= w,
        "sink": lambda i, j: j <= i and (j < s or i - j <= w),
        "blocks": lambda i, j: of[i] == of[j],
        "prefix": lambda i, j: j <= i or j < w,
        "tree": above,
    }[kind]
    return kind, [[int(sees(i, j)) for j in range(n)] for i in range(n)]


@family
def structures_are_kept(rng):
    """The shape of attention is the captured branch: what one side is given the other computes, or
    has stored."""
    n, width = rng.randint(4, 7), 4
    kind, rows = structure(rng, n)
    dtype, wide = rng.choice([boolean, i64]), rng.random() < 0.5
    how = rng.choice(["given", "stored", "given"])
    wrong = rng.random() < 0.3
    x = normals(rng, n * width)

    def build(side):
        def f(g):
            h = g.given("x", (n, width), [x], f32)
            shape = (1, 1, n, n) if wide else (n, n)
            flat = [v for r in rows for v in r]
            m = g.given("m", shape, [flat], dtype)
            if how == "stored" and side:
                m = g.leaf("constant", "seen", Data(shape, flat), dtype)
            q, k, v = (linear(g, h, name, width, side) for name in "qkv")
            s = q.matmul(k.t())
            gone = m.eq(0)
            s = s.masked_fill(gone, float("-inf")) if not side else gone.where(float("-inf"), s)
            y = s.softmax(-1).matmul(v)
            return y.mul(1.001) if wrong and side else y

        return f

    return Case(
        DIFFERENT if wrong else EQUIVALENT, build(0), build(1), None, "%s %s" % (kind, rows)
    )


def by_chance(rng):
    """Rows of a small batch that look like something else, or like more than they are."""
    what = rng.choice(["steps", "square", "triangle", "identity", "flags", "starts", "chosen"])
    n = rng.randint(4, 9)
    if what == "steps":
        b = rng.randint(2, min(4, n - 2))
        first = rng.randint(1, n - b)
        rows = [[int(j < first + i) for j in range(n)] for i in range(b)]
    elif what == "square":
        n = rng.randint(3, 4)
        rows = [[int(j < rng.randint(i + 1, n)) for j in range(n)] for i in range(n)]
        rows = [[1] * min(sum(r), n - (i == 0)) for i, r in enumerate(rows)]
        rows = [r + [0] * (n - len(r)) for r in rows]
    elif what == "triangle":
        n = rng.randint(3, 4)
        rows = [[int(j <= i or rng.random() < 0.6) for j in range(n)] for i in range(n)]
        rows[0][n - 1] = 0
    elif what == "identity":
        n = rng.randint(3, 6)
        rows = [[int(i == j) for j in range(n)] for i in range(n)]
    elif what == "flags":
        n, k = 3, rng.randint(1, 2)  # of two 0, 1 are positions
        rows = [rng.choice([[1] * k + [0] * (n - k), [0] * (n - k) + [1] * k])]
    elif what == "starts":
        rows = [[1] + [int(rng.random() < 0.4) for _ in range(n - 1)] for _ in range(2)]
        rows = [r[:-2] + [1, 0] for r in rows]
    else:
        rows = []
        while len({tuple(r) for r in rows}) < 3:
            k = rng.sample(range(n), 2)
            rows = rows[-3:] + [[int(j in k) for j in range(n)]]
        rows = rows[-3:] if len({tuple(r) for r in rows[-3:]}) > 1 else rows
    return what, rows


@family
def small_batches(rng):
    """What fits the captured zeros and ones alone is never equal, whatever a small batch of them
    looks like; a mask that one side has twice is one mask."""
    what, rows = by_chance(rng)
    b, n = len(rows), len(rows[0])
    how, twice = ways(rng), rng.random() < 0.4
    known, flip = rng.choice(["counts", "places", "same", "same"]), rng.randint(0, 1)
    if known == "counts" and what == "identity":
        known = "places"  # a choice of one has one
    weight = [rng.choice([0.5, 1.0, 2.0]) for _ in range(n - 1)] + [3.0]
    x = normals(rng, b * 2)
    counts = [float(sum(r)) for r in rows]
    places = [sum(w * v for w, v in zip(weight, r)) for r in rows]

    def build(side):
        def f(g):
            h = g.given("x", (b, 2), [x], f32)
            w = g.leaf("constant", "w", Data((1, n), weight), f32)
            stored = counts if known == "counts" else places
            other = g.leaf("constant", "stored", Data((b, 1), stored), f32)
            if twice and side == flip:
                flat = [v for r in rows for v in r]
                m = g.given("keys", (b, n), [flat], boolean).to(i64)
                m2 = g.given("queries", (b, n), [flat], boolean).to(i64)
            elif twice:
                m = m2 = g.given("m", (b, n), [[v for r in rows for v in r]], i64)
            else:
                m = m2 = give(g, rows, side, how)
            y = m2.to(f32).mul(w).sum(1, True)
            if known == "counts":
                y = m.to(f32).sum(1, True)
            elif known == "same" and side:
                y = m.eq(0).where(0.0, w).sum(1, True)
            if known != "same" and side:
                y = other.add(m.sum(1, True).mul(0).to(f32)).add(m2.sum(1, True).mul(0).to(f32))
            return h.mul(y)

        return f

    same = known == "same"
    text = "%s %s %s" % (what, known, rows)
    return Case(EQUIVALENT if same else DIFFERENT, build(0), build(1), None, text)


def given_beside(rng, rows, what):
    """What a caller computes from a mask: by name the values, their shape, and the graph of it."""
    b, n = len(rows), len(rows[0])
    counts = [sum(r) for r in rows]
    so_far = [[sum(r[: j + 1]) for j in range(n)] for r in rows]
    at = [v for r in so_far for v in r]
    flat = [v for r in rows for v in r]
    last = [max(j for j in range(n) if r[j]) for r in rows]
    bounds = [sum(counts[:k]) for k in range(b + 1)]
    return {
        "counts": ((b,), counts, lambda g, m: m.sum(1)),
        "last index": ((b,), [k - 1 for k in counts], lambda g, m: m.sum(1).sub(1)),
        "last place": ((b,), last, lambda g, m: m.mul(g.arange(n)).amax(1)),
        "zeros": ((b,), [n - k for k in counts], lambda g, m: m.eq(0).to(i64).sum(1)),
        "total": ((), [sum(counts)], lambda g, m: m.sum(1).sum(0)),
        "most": ((), [max(counts)], lambda g, m: m.sum(1).amax(0)),
        "positions": (
            (b, n),
            [max(v - 1, 0) for v in at],
            lambda g, m: m.cumsum(1).sub(1).clamp_min(0),
        ),
        "positions, 1 in gaps": (
            (b, n),
            [v - 1 if w else 1 for v, w in zip(at, flat)],
            lambda g, m: m.ne(0).where(m.cumsum(1).sub(1), g.ones(b, n, dtype=i64)),
        ),
        "positions from 2": (
            (b, n),
            [v + 1 if w else 1 for v, w in zip(at, flat)],
            lambda g, m: m.cumsum(1).mul(m).add(1),
        ),
        "bounds": (
            (b + 1,),
            bounds,
            lambda g, m: g.cat([g.zeros(1, dtype=i64), m.sum(1).cumsum(0)], 0),
        ),
    }[what]


COMPUTED = [
    "counts",
    "last index",
    "last place",
    "zeros",
    "total",
    "most",
    "positions",
    "positions, 1 in gaps",
    "positions from 2",
    "bounds",
]


@family
def computed_from_a_mask(rng):
    """What a caller computed from the mask and gives beside it, on one side or both; the other
    side computes it. With a mistake it is another number, for the captured mask or others only. One
    number alone may be what the mask gives by chance."""
    kind, batch, n = rng.choice(["right", "left", "any"]), rng.randint(4, 5), rng.randint(8, 10)
    rows = rows_of(rng, batch, n, kind)
    while len({sum(r) for r in rows}) == 1 or min(sum(r) for r in rows) < 2:
        rows = rows_of(rng, batch, n, kind)
    batch = len(rows)
    what = rng.choice(COMPUTED)
    shape, values, compute = given_beside(rng, rows, what)
    wrong = rng.choice([None, None, None, "more", "stored", "most"])
    if wrong == "most" and what.startswith("positions"):
        wrong = None  # none is beyond the captured ones where a row was full
    if wrong in ("most", "stored") and what == "last place" and kind == "left":
        wrong = None  # it is the last of all
    numbers, how = len(values), ways(rng)
    both = rng.random() < 0.4
    used = [rng.choice([0.5, 1.0, 2.0]) for _ in range(numbers)]
    x = normals(rng, batch * n)

    def build(side):
        def f(g):
            h = g.given("x", (batch, n), [x], f32)
            m = give(g, rows, side, how)
            p = g.given("beside", shape, [values])
            if side:
                own = compute(g, m)
                if wrong == "more":
                    own = own.add(1)
                elif wrong == "stored":
                    own = g.leaf("constant", "stored", Data(shape, values), i64)
                elif wrong == "most":
                    own = own.clamp_max(max(values)).clamp_min(min(values))
                p = p.mul(0).add(own) if both else own
            p = p.to(f32).reshape(1, numbers)
            w = g.leaf("constant", "w", Data((1, numbers), used), f32)
            y = p.mul(w).sum(1, True)
            return h.mul(m.to(f32)).sum(1, True).add(y)

        return f

    text = "%s %s %s %s" % (what, wrong, kind, rows)
    truth = DIFFERENT if wrong else UNDECIDED if what in ("total", "most") else EQUIVALENT
    return Case(truth, build(0), build(1), None, text)


@family
def threshold_of_a_length(rng):
    """Long rows of which one count alone shows a mistake: the one that the graphs compare with."""
    kind, batch, n = rng.choice(["right", "left", "any"]), rng.randint(1, 2), rng.randint(16, 90)
    rows = rows_of(rng, batch, n, kind)
    counts = {sum(r) for r in rows}
    while min(counts) < 4 or max(counts) > n - 2:
        rows = rows_of(rng, batch, n, kind)
        counts = {sum(r) for r in rows}
    k = rng.choice([i for i in range(3, n - 1) if i not in counts])
    way = rng.choice(["gt", "clamp", "cut"])
    same = rng.random() < 0.5
    x = normals(rng, batch * n)

    def build(side):
        def f(g):
            h = g.given("x", (batch, n), [x], f32)
            m = g.given("m", (batch, n), [[v for r in rows for v in r]])
            count = m.sum(1, True)
            if way == "clamp":
                other = count.clamp_min(k).sub(k).ne(0) if side else count.gt(k)
                y = other if same or not side else count.clamp_min(k + 1).sub(k + 1).ne(0)
            elif way == "cut" and kind == "right":
                at = k if same else k - 1
                y = m.slice(1, at, at + 1).ne(0) if side else count.gt(k)
            else:
                y = count.ge(k + 1 if same else k) if side else count.gt(k)
            return h.mul(m.to(f32)).sum(1, True).add(y.to(f32))

        return f

    text = "%s %d %s %s" % (way, k, same, rows)
    return Case(EQUIVALENT if same else DIFFERENT, build(0), build(1), None, text)


@family
def a_count_by_chance(rng):
    """A number that is some count of a mask's row as it was captured, and is none: a class, the
    index of a token, a temperature. The other side reads the mask in its place."""
    kind, batch, n = rng.choice(["right", "left", "any"]), rng.randint(1, 2), rng.randint(5, 8)
    rows = rows_of(rng, batch, n, kind)
    while min(sum(r) for r in rows) < 2:
        rows = rows_of(rng, batch, n, kind)
    what = rng.choice(["count", "last", "temperature"])
    same = rng.random() < 0.4
    counts = [sum(r) - (what == "last") for r in rows]
    x = normals(rng, batch * n)

    def build(side):
        def f(g):
            h = g.given("x", (batch, n), [x], f32)
            m = g.given("m", (batch, n), [[v for r in rows for v in r]])
            p = g.given("p", (batch,), [counts])
            if side and not same:
                p = m.sum(1).sub(1) if what == "last" else m.sum(1)
            if what == "temperature":
                y = h.div(p.to(f32).unsqueeze(-1).add(1.0))
            else:
                y = g.param("e", n + 1, n).embedding(p).add(h)
            return y.mul(m.to(f32)).sum(1)

        return f

    text = "%s %s %s" % (what, same, rows)
    return Case(EQUIVALENT if same else DIFFERENT, build(0), build(1), None, text)


@family
def ids_of_padding(rng):
    """Ids are a number of their own exactly where the mask hides them: read by the mask or by that
    number is one function of what a caller gives, and nothing says so. What differs on ids and a
    mask that agree is different."""
    kind, batch, n, size = rng.choice(["right", "left"]), rng.randint(2, 3), rng.randint(4, 7), 24
    rows = rows_of(rng, batch, n, kind)
    while sum(v == 0 for r in rows for v in r) < 2 or min(sum(r) for r in rows) < 2:
        rows = rows_of(rng, batch, n, kind)
    pad = rng.choice([0, 0, 1, size - 1])
    rest = [i for i in range(2, size - 4) if i != pad]
    ids = [rng.choice(rest) if v else pad for r in rows for v in r]
    what = rng.choice(["mask", "number", "one id", "count"])
    how = ways(rng)

    def build(side):
        def f(g):
            tokens = g.given("ids", (batch, n), [ids])
            h = g.param("e", size, 4).embedding(tokens)
            m = give(g, rows, side, how)
            scale = [1.0 + 0.5 * k for k in range(batch)]
            t = g.given("scale", (batch, 1), [scale], f32)
            seen = m
            if side and what == "number":
                seen = tokens.ne(pad).to(i64)
            y = h.mul(seen.to(f32).unsqueeze(-1)).sum(1)
            if side and what == "one id":
                far = tokens.eq(size - 2).to(f32).mul(m.to(f32)).sum(1, True)
                y = y.add(far)
            if what == "count":
                counts = [float(sum(r)) for r in rows]
                stored = g.leaf("constant", "counts", Data((batch, 1), counts), f32)
                y = y.div(stored) if side else y.div(m.sum(1, True).to(f32))
            return y.mul(t)

        return f

    truth = {"mask": EQUIVALENT, "number": UNDECIDED, "one id": DIFFERENT, "count": DIFFERENT}[what]
    return Case(truth, build(0), build(1), None, "%s %s %s" % (what, kind, rows))


@family
def float_zeros_and_ones(rng):
    """Masks, hard targets and flags in a float dtype are zeros and ones like others, if somebody
    says so; what fits the captured ones alone is not equal."""
    batch, n = rng.randint(2, 3), rng.randint(4, 7)
    what = rng.choice(["where", "square", "count", "power", "stored", "half"])
    while True:
        rows = [[int(rng.random() < 0.5) for _ in range(n)] for _ in range(batch)]
        counts = [sum(r) for r in rows]
        if min(counts) > 1 and max(counts) < n - 1 and fine(rows, "any"):
            break
    x = normals(rng, batch * n)
    dtype = rng.choice([f32, f32, bf16])
    said = say(rng, "m", {"mask": "any"}) if rng.random() < 0.5 else None

    def build(side):
        def f(g):
            h = g.given("x", (batch, n), [x], f32)
            flat = [float(v) for r in rows for v in r]
            m = g.given("m", (batch, n), [flat], dtype, said[side] if said else None)
            real = m.to(f32)
            y = h.mul(real)
            if side and what == "where":
                y = m.ne(0).where(h, 0.0)
            elif side and what == "square":
                y = y.mul(real)
            elif side and what == "half":
                y = m.gt(0.5).where(h, 0.0)
            elif side and what == "power":
                y = h.sub(h.mul(real.rsub(1.0)))
            y = y.sum(1)
            if what == "count":
                y = y.div(real.sum(1)) if not side else y.div(float(counts[0]))
            if what == "stored":
                stored = g.leaf(
                    "constant", "counts", Data((batch,), [float(k) for k in counts]), f32
                )
                y = y.add(stored if side else real.sum(1))
            return y

        return f

    truth = DIFFERENT if what in ("stored", "count") else EQUIVALENT
    if what in ("where", "square", "half") and not said:
        truth = UNDECIDED
    lines = said[2] if said else None
    return Case(truth, build(0), build(1), lines, "%s %s %s" % (what, bool(said), rows))


@family
def masks_spelled_otherwise(rng):
    """One function of a mask, written twice."""
    kind, batch, n = rng.choice(["right", "left", "any"]), rng.randint(1, 2), rng.randint(4, 7)
    rows, width, how = rows_of(rng, batch, n, kind), 4, ways(rng)
    what = rng.choice(["attend", "pool", "last", "tokens"])
    wrong = rng.random() < 0.25
    x = normals(rng, batch * n * width)
    ids = [rng.randrange(20) for _ in range(batch * n)]

    def build(side):
        def f(g):
            if what == "tokens":
                h = g.param("e", 20, width).embedding(g.given("ids", (batch, n), [ids]))
            else:
                h = g.given("x", (batch, n, width), [x], f32)
            m = give(g, rows, side, how)
            real = m.to(f32).unsqueeze(-1)
            if what == "attend":
                y = attend(g, norm(h, side), m, side, width)
            elif what == "last":
                at = m.mul(g.arange(n)).amax(1, True)
                if side:
                    at = m.mul(g.arange(n)).argmax(1, True)
                at = at.unsqueeze(-1).expand(batch, 1, width)
                y = h.gather(1, at).squeeze(1)
            else:
                total = h.mul(real).sum(1)
                if side:
                    total = m.eq(0).unsqueeze(-1).where(0.0, h).sum(1)
                y = total.div(m.sum(1, True).to(f32))
            return y.mul(1.001) if wrong and side else y

        return f

    what = "%s %s %s" % (what, kind, rows)
    return Case(DIFFERENT if wrong else EQUIVALENT, build(0), build(1), None, what)
