"""Families of inputs.py: what few zeros and ones have in common by chance. A pair that agrees for
what has it alone is never equivalent; nor is it sure to be different."""

from dsl import DIFFERENT, EQUIVALENT, UNDECIDED, Data, boolean, f32, i32, i64
from input_cases import Case, family, normals


def is_band(rows):
    """One number along each diagonal: a window, perhaps with gaps, which is kept."""
    n = len(rows)
    return all(rows[i][j] == rows[i - 1][j - 1] for i in range(1, n) for j in range(1, n))


def square(rng, n, what):
    """Zeros and ones, 0.4 of them ones: symmetric, with a diagonal of ones, or of zeros."""
    while True:
        rows = [[int(rng.random() < 0.4) for _ in range(n)] for _ in range(n)]
        for i in range(n):
            for j in range(i):
                if what == "symmetric":
                    rows[i][j] = rows[j][i]
            if what != "symmetric":
                rows[i][i] = int(what == "diagonal")
        chosen = all(sum(r) == 1 for r in rows) or all(sum(r) == 1 for r in zip(*rows))
        other = len({tuple(r) for r in rows}) > 1 and not (n > 3 and is_band(rows))
        if all(sum(r) for r in rows) and other and not chosen:
            return rows


def scattered(rng, n):
    row = [0] * n
    while not 0 < sum(row) < n or sorted(row) in (row, row[::-1]):
        row = [int(rng.random() < 0.5) for _ in range(n)]
    return row


def complements(rng, n):
    row = scattered(rng, n)
    return [row, [1 - v for v in row]]


def turned(rows):
    return [list(r) for r in zip(*rows)]


SMALL = ["symmetric", "diagonal", "hollow", "rows", "columns", "distinct", "complements", "order"]


def so_by_chance(rng, what):
    """Their shape is that of what callers batch: two dimensions."""
    n = rng.randint(4, 6)
    if what in ("symmetric", "diagonal", "hollow"):
        return square(rng, rng.randint(3, 5), what)
    if what == "rows":  # no batch: as many as a row is long
        return [scattered(rng, 3)] * 3
    if what == "columns":
        return turned([scattered(rng, n)] * 2)
    if what == "distinct":
        return [[int(j == k) for j in range(n)] for k in rng.sample(range(n), 3)]
    if what == "complements":
        return complements(rng, n)
    k = rng.randint(1, n - 1)
    return [[int(j < k) for j in range(n)]]


def other_reading(g, m, what):
    """Of `m` what is the same where it has the property alone."""
    b, n = m.shape
    eye = g.leaf(
        "constant", "eye", Data((b, n), [int(i == j) for i in range(b) for j in range(n)]), i64
    )
    if what == "symmetric":
        return m.t()
    if what == "diagonal":
        return m.add(eye).clamp_max(1)
    if what == "hollow":
        return m.mul(eye.rsub(1))
    if what == "rows":
        return m.slice(0, 0, 1).expand(b, n)
    if what == "columns":
        return m.slice(1, 0, 1).expand(b, n)
    if what == "distinct":
        return m.mul(m.cumsum(0).le(1).to(i64))
    if what == "complements":
        return g.cat([m.slice(0, 1, 2).rsub(1), m.slice(0, 1, 2)], 0)
    return g.arange(n).lt(m.sum(1, True)).to(i64)


@family
def properties_by_chance(rng):
    """One side reads the zeros and ones, the other what they are where they have the property."""
    what = rng.choice(SMALL)
    rows = so_by_chance(rng, what)
    b, n = len(rows), len(rows[0])
    same, dtype = rng.random() < 0.4, rng.choice([i64, i64, i32, boolean])
    wrong = rng.random() < 0.3
    x, w = normals(rng, b * n), normals(rng, b * n)

    def build(side):
        def f(g):
            h = g.given("x", (b, n), [x], f32)
            m = g.given("m", (b, n), [[v for r in rows for v in r]], dtype)
            m = m if dtype == i64 else m.to(i64)
            scale = g.leaf("constant", "w", Data((b, n), w), f32)
            seen = m if same or not side else other_reading(g, m, what)
            y = h.mul(seen.to(f32)) if not (same and side) else seen.ne(0).where(h, 0.0)
            y = y.mul(scale).sum(1)
            return y.mul(1.001) if wrong and side else y

        return f

    truth = DIFFERENT if wrong else EQUIVALENT if same else UNDECIDED
    return Case(truth, build(0), build(1), None, "%s %s %s" % (what, same, rows))


@family
def integers_by_chance(rng):
    """Few integers are all 0, consecutive, or none above 1, and index a table of more rows, or are
    compared with one that none of them reaches, or all do."""
    what = rng.choice(["zeros", "steps", "bits", "offset", "factors", "compared"])
    n, size = rng.randint(2, 3), rng.randint(6, 12)
    many, number = rng.randint(2, 9), rng.choice([0, 0, 3])
    ids = {
        "zeros": [0] * many,
        "compared": [number] * many,
        "steps": list(range(n)),
        "bits": scattered(rng, n + 1),
        "offset": [0],
        "factors": [1] * n,
    }[what]
    n = n if what == "offset" else len(ids)
    same, wrong, x = rng.random() < 0.4, rng.random() < 0.3, normals(rng, n * 2)
    above, gap = number > 0 and rng.random() < 0.5, rng.choice([1, 1, 30])

    def build(side):
        def f(g):
            h = g.given("x", (n, 2), [x], f32)
            p = g.given("p", (len(ids),), [ids])
            other = side and not same
            if what == "factors":
                y = h if other else h.mul(p.to(f32).unsqueeze(1))
            elif what == "compared":
                seen = (p.gt(number - 1) if above else p.lt(number + gap)).unsqueeze(1)
                y = h if other else seen.where(h, 0.0) if side else h.mul(seen.to(f32))
            else:
                table = g.param("e", size, 2)
                at = p.add(g.arange(n)) if what == "offset" else p
                if other and what == "offset":
                    at = p.mul(2).add(g.arange(n))
                elif other and what == "steps":
                    at = p.mul(0).add(g.arange(n))
                elif other:
                    at = p.clamp_max(1)
                row = table.embedding(at)
                y = h.add(row) if not (same and side) else row.add(h)
            return y.mul(1.001) if wrong and side else y

        return f

    truth = DIFFERENT if wrong else EQUIVALENT if same else UNDECIDED
    return Case(truth, build(0), build(1), None, "%s %s %s" % (what, same, ids))


@family
def one_mask_for_two(rng):
    """One side has two inputs of the same zeros and ones, the other side one for both: what goes
    for them everywhere if somebody says so, and else for those captured."""
    b, n = rng.randint(2, 3), rng.randint(4, 7)
    rows = [scattered(rng, n) for _ in range(b)]
    spare, exchanged = rng.randrange(2), rng.random() < 0.3
    names = rng.choice([("q", "k"), ("k", "q"), ("a", "b")])
    what = rng.choice(["read", "read", "said", "unread", "wrong"])
    dtype, x = rng.choice([i64, boolean, i32]), normals(rng, b * n)

    def build(side):
        def f(g):
            flat = [v for r in rows for v in r]
            h = g.given("x", (b, n), [x], f32)
            q = g.given(names[0], (b, n), [flat], dtype)
            k = q.eq(0) if exchanged else q
            if side == spare:
                own = [1 - v for v in flat] if exchanged else flat
                k = g.given(names[1], (b, n), [own], dtype)
                if what == "unread":
                    k = q.eq(0) if exchanged else q
            y = h.mul(q.to(f32)).add(h.square().mul(k.to(f32)))
            return y.mul(1.001) if what == "wrong" and side else y

        return f

    lines = None
    if what == "said" and exchanged:
        lines = "input %s mask any\n" % names[1]
    elif what == "said":
        lines = "input %s = %s\n" % (names[0], names[0])
        lines += "input %s = %s\n" % (names[::-1] if not spare else names)
    truth = {"read": UNDECIDED, "said": EQUIVALENT, "unread": EQUIVALENT, "wrong": DIFFERENT}[what]
    if what == "said" and exchanged:
        truth = DIFFERENT
    in_order = bool(lines) and not exchanged
    return Case(truth, build(0), build(1), lines, "%s %s %s" % (what, exchanged, rows), in_order)


def segments(rng, n):
    """Segments of a row of `n`, of other lengths: which one each element is of."""
    while True:
        of, at = [], 0
        while len(of) < n:
            of += [at] * min(rng.randint(1, 4), n - len(of))
            at += 1
        sizes = [of.count(k) for k in range(at)]
        if at > 1 and len(set(sizes[:-1] + [max(sizes)])) > 1:
            return of


@family
def squares_that_are_data(rng):
    """Segments, a tree and neighbours are of the batch: the other side, which has those captured,
    is right for it alone. Causal squares and windows are of the program."""
    n = rng.randint(8, 9)
    what = rng.choice(["segments", "later", "neighbours", "causal", "window"])
    of, width = segments(rng, n), rng.randint(2, 3)
    seen = {
        "segments": lambda i, j: of[i] == of[j],
        "later": lambda i, j: of[i] == of[j] and j <= i,
        "neighbours": lambda i, j: abs(i - j) == 1,
        "causal": lambda i, j: j <= i,
        "window": lambda i, j: 0 <= i - j < width,
    }[what]
    flat = [int(seen(i, j)) for i in range(n) for j in range(n)]
    dtype, same, wrong = rng.choice([boolean, i64]), rng.random() < 0.3, rng.random() < 0.2
    x = normals(rng, n * 2)

    def build(side):
        def f(g):
            h = g.given("x", (n, 2), [x], f32)
            m = g.given("m", (n, n), [flat], dtype)
            if side and not same:
                m = g.leaf("constant", "own", Data((n, n), flat), i64)
            m = m.ne(0) if side else m.to(f32).gt(0.5)
            y = m.to(f32).matmul(h)
            return y.mul(1.001) if wrong and side else y

        return f

    data = what in ("segments", "later", "neighbours")
    truth = DIFFERENT if wrong else UNDECIDED if data and not same else EQUIVALENT
    return Case(truth, build(0), build(1), None, "%s %s" % (what, same))


def hanging(rng, what):
    """Two inputs of which a caller computes one from the other, and the graph that reads the second
    where the first is asked for: values, and a function of the graph and both."""
    n = rng.randint(4, 6)
    lengths = rng.sample(range(1, 9), n)
    starts = [rng.randint(0, 3) for _ in range(n)]
    ends = [s + rng.randint(0, 4) for s in starts]
    if rng.random() < 0.4:  # far apart: neighbours of the one and their doubles are below the other
        ends = [3 * s + rng.randint(2, 40) for s in starts]
    bits = scattered(rng, n)
    return {
        "total": (lengths, [sum(lengths)], lambda g, a, b, s: b if s else a.sum(0, True)),
        "twice": (lengths, [2 * k for k in lengths], lambda g, a, b, s: b if s else a.add(a)),
        "most": (lengths, [max(lengths)], lambda g, a, b, s: b if s else a.amax(0, True)),
        "ends": (starts, ends, lambda g, a, b, s: a.sub(b).clamp_max(0) if s else a.sub(b)),
        "bias": (
            bits,
            [0.0 if v else -1e4 for v in bits],
            lambda g, a, b, s: b.eq(0).to(i64) if s else a,
        ),
    }[what]


@family
def integers_that_hang_together(rng):
    """One side reads what a caller computed from what the other side reads. Nothing says so, and an
    input where they contradict each other shows nothing. A mistake in one of them alone does."""
    what = rng.choice(["total", "twice", "most", "ends", "bias"])
    first, second, read = hanging(rng, what)
    wrong = rng.choice([None, None, "scale", "one", "alone"])
    if what == "bias" and wrong == "alone":
        wrong = "scale"  # a mask is never more than 1
    high = max(first) + 1
    x = normals(rng, len(first))

    def build(side):
        def f(g):
            h = g.given("x", (len(first),), [x], f32)
            a = g.given("a", (len(first),), [first])
            b = g.given("b", (len(second),), [second], f32 if what == "bias" else i64)
            own = side and wrong != "alone"
            y = h.mul(a.to(f32)).add(read(g, a, b, own).to(f32))
            y = y.add(b.to(f32).sum(0).mul(0.5))
            if side and wrong == "scale":
                y = y.mul(1.001)
            if side and wrong == "one":
                y = y.add(a.eq(high).to(f32))
            if side and wrong == "alone":
                y = y.add(a.gt(high).to(f32))
            return y

        return f

    truth = DIFFERENT if wrong in ("scale", "alone") else UNDECIDED
    return Case(truth, build(0), build(1), None, "%s %s %s" % (what, wrong, first))


def with_property(rng, what):
    """Integers that a caller made so, their number of rows, and two readings of them that are one
    where they are so: a function of the graph, rows of numbers, the integers and the side."""
    n = rng.randint(4, 6)
    if what == "permutation":
        order = list(range(n))
        while order in (list(range(n)), list(range(n))[::-1]):
            rng.shuffle(order)

        def read(g, x, p, s):
            back = p.unsqueeze(0).eq(g.arange(n).unsqueeze(1)).to(i64)
            return x[0].index_select(0, back.argmax(1) if s else back.mul(g.arange(n)).sum(1))

        return order, (n,), read
    if what == "edges":
        ends = [rng.sample(range(n), 2) for _ in range(3)]
        a, b = zip(*ends)
        rows = list(a + b) + list(b + a)

        def read(g, x, p, s):
            to, of = p.select(0, s), p.select(0, 1 - s)
            seen = to.unsqueeze(0).eq(g.arange(n).unsqueeze(1)).to(f32)
            return seen.matmul(x[0].index_select(0, of))

        return rows, (2, 6), read
    lengths = list(range(n))
    while lengths[-1] - lengths[0] == n - 1:  # not consecutive
        lengths = sorted(rng.sample(range(1, 9), n))
    if what == "falling":
        lengths.reverse()

    def read(g, x, p, s):
        first = p.slice(0, 0, 1) if what == "falling" else p.slice(0, n - 1, n)
        return x[0].mul((p.amax(0, True) if s else first).to(f32)).mul(p.to(f32).unsqueeze(1))

    return lengths, (n,), read


@family
def integers_with_a_property(rng):
    """A permutation, sorted lengths, edges in both directions: what holds of these is neither equal
    nor different as long as nobody says whether others are meant. A mistake shows on these, too."""
    what = rng.choice(["permutation", "edges", "falling", "rising"])
    values, shape, read = with_property(rng, what)
    n = max(values) + 1 if what in ("permutation", "edges") else len(values)
    n = max(n, 6) if what == "edges" else n
    wrong = rng.choice([None, None, "scale", "row"])
    said = rng.choice([None, None, "any", "so"])
    x = normals(rng, n * 2)
    lines = {
        None: None,
        "any": "input p range %d %d\n" % (0, max(values) + 1),
        "so": {
            "permutation": "input p range 0 %d distinct\n" % (n - 1),
            "rising": "input p sorted\n",
        }.get(what),
    }[said]
    if what in ("permutation", "edges") and said == "any":
        lines = "input p range 0 %d\n" % (n - 1)

    def build(side):
        def f(g):
            h = g.given("x", (n, 2), [x], f32)
            p = g.given("p", shape, [values])
            y = read(g, (h,), p, side)
            if side and wrong == "row":
                at = p if p.shape == (n,) else p.select(0, 0)
                y = y.add(at.eq(values[1]).to(f32).sum(0, True).unsqueeze(1))
            return y.mul(1.001) if wrong == "scale" and side else y

        return f

    so = EQUIVALENT if said == "so" and lines else UNDECIDED
    truth = DIFFERENT if wrong or said == "any" else so
    return Case(truth, build(0), build(1), lines, "%s %s %s %s" % (what, wrong, said, values))


@family
def one_integer_between_bounds(rng):
    """One integer, captured where counting begins, far below the bounds that it is kept between: a
    bound that is one off shows at one number alone."""
    low = rng.randint(1, 2000)
    high = low + rng.randint(3, 300)
    wrong, x = rng.choice([None, "low", "high"]), normals(rng, 2)

    def build(side):
        def f(g):
            h, p = g.given("x", (1, 2), [x], f32), g.given("p", (1,), [[0]])
            at = p.clamp(low, high)
            if side:
                at = p.lt(low + 2 * (wrong == "low")).where(low, p)
                at = p.gt(high).where(high - (wrong == "high"), at)
            return h.mul(at.to(f32).unsqueeze(1))

        return f

    truth = UNDECIDED if wrong else EQUIVALENT
    return Case(truth, build(0), build(1), None, "%s %d %d" % (wrong, low, high))


@family
def ids_counted_by_chance(rng):
    """Few numbers, ids that choose rows, say, are how many ones, or zeros, come up to each place,
    and no side says so: one side reads them up to a bound that none of these counts reaches."""
    n, size, zeros = rng.randint(4, 5), rng.randint(20, 60), rng.random() < 0.5
    row = scattered(rng, n)
    while sorted(set(row)) != [0, 1] or sum(row) < 2 or sum(row) > n - 2:
        row = [int(rng.random() < 0.5) for _ in range(n)]
    counted = [1 - v for v in row] if zeros else row
    ids = [sum(counted[: k + 1]) for k in range(n)]
    what = rng.choice(["rows", "numbers", "floats"])
    bound = rng.randint(n + 1, n + 6)
    same, dtype = rng.random() < 0.4, rng.choice([i64, i64, i32])
    if what == "rows":
        bound = size - 1 if same else rng.randint(n + 3, size - 2)
    x = normals(rng, n * 3)

    def build(side):
        def f(g):
            h = g.given("x", (n, 3), [x], f32)
            m = g.given("m", (n,), [row], dtype)
            i = g.given("i", (n,), [ids], f32 if what == "floats" else i64)
            i = i.clamp(0, bound) if side and not (same and what != "rows") else i
            seen = m.ne(0) if side else m.eq(0).logical_not()
            y = h.mul(seen.to(f32).unsqueeze(-1))
            if what != "rows":
                return y.add(h.mul(i.to(f32).unsqueeze(-1)))
            return y.add(g.param("e", size, 3).embedding(i))

        return f

    text = "%s %s %s, %d of %d" % (what, row, ids, bound, size)
    return Case(EQUIVALENT if same else UNDECIDED, build(0), build(1), None, text)


def tells(g, m, how, n):
    """Numbers that zeros and ones choose, and of which what is left out is another."""
    if how == "types":
        return g.param("types", 2, 3).embedding(m.to(i64))
    x = g.param("h", n, 3)
    if how == "pool":
        return x.mul(m.to(f32).unsqueeze(-1)).sum(0)
    scores = x.matmul(x.t()).masked_fill(m.eq(0).unsqueeze(0), float("-inf"))
    return scores.softmax(-1).matmul(x)


@family
def opposed_under_one_name(rng):
    """Two captures were given a mask with ones for zeros. It may be what is kept on one side, and
    what is left out on the other: a bug beside it is one whichever it is, and what reads one of
    them the other way round is one function or two."""
    n, how = rng.randint(6, 9), rng.choice(["types", "pool", "attend"])
    names, bits = ["m", "k"][: rng.choice([1, 1, 2])], {}
    for k in names:
        row = scattered(rng, n)
        while sum(row) < 3 or sum(row) > n - 3 or row in bits.values():
            row = scattered(rng, n)
        bits[k] = row
    opposed = names if rng.random() < 0.6 else names[:1]
    wrong, turned_round = rng.choice(["scale", "eps", None]), rng.random() < 0.5
    dtype = rng.choice([i64, i64, i32, boolean])
    x = normals(rng, n * 3)

    def build(side):
        def f(g):
            y = g.given("x", (n, 3), [x], f32)
            for k in names:
                own = [1 - v for v in bits[k]] if side and k in opposed else bits[k]
                m = g.given(k, (n,), [own], dtype)
                if side and turned_round and k in opposed:
                    m = m.eq(0) if dtype == boolean else m.rsub(1)
                y = y.add(tells(g, m, how, n))
            y = y.layer_norm(eps=0.1 if side and wrong == "eps" else 1e-5)
            return y.mul(1.5) if side and wrong == "scale" else y

        return f

    truth = DIFFERENT if wrong else UNDECIDED if turned_round else EQUIVALENT
    what = "%s %s %s of %s %s" % (how, wrong, opposed, names, turned_round)
    return Case(truth, build(0), build(1), None, what, sure=truth == DIFFERENT)


@family
def opposed_where_nothing_is_padded(rng):
    """The same where ones stand everywhere, or all but once: floats, too, which may be drawn as any
    numbers. Bugs beside them are found whichever they are."""
    n, dtype = rng.randint(5, 8), rng.choice([f32, f32, i64, boolean])
    how = rng.choice(["pool", "attend"] if dtype == f32 else ["pool", "types", "attend"])
    row = [1] * n
    if rng.random() < 0.5:
        row[rng.randrange(n)] = 0
    wrong, turned_round = rng.choice(["scale", "eps", None, None]), rng.random() < 0.7
    if how == "attend":
        turned_round = True  # nothing is left where all is left out
    x = normals(rng, n * 3)

    def build(side):
        def f(g):
            y = g.given("x", (n, 3), [x], f32)
            m = g.given("m", (n,), [[1 - v for v in row] if side else row], dtype)
            if side and turned_round:
                m = m.eq(0) if dtype == boolean else m.rsub(1)
            if dtype == f32 and how == "attend":
                m = m.eq(1)
            y = y.add(tells(g, m, how, n)).layer_norm(eps=0.1 if side and wrong == "eps" else 1e-5)
            return y.mul(1.5) if side and wrong == "scale" else y

        return f

    truth = DIFFERENT if wrong else UNDECIDED if turned_round else EQUIVALENT
    what = "%s %s %s %s %s" % (how, wrong, turned_round, dtype, row)
    return Case(truth, build(0), build(1), None, what, sure=truth == DIFFERENT)


@family
def opposed_and_turned(rng):
    """A square of who sees whom, which the other capture was given as who is not seen by whom."""
    n, dtype = rng.randint(3, 5), rng.choice([boolean, i64])
    while True:
        seen = [[int(i == j or rng.random() < 0.5) for j in range(n)] for i in range(n)]
        other = [[1 - seen[j][i] for j in range(n)] for i in range(n)]
        if seen != [list(r) for r in zip(*seen)] and 2 < sum(map(sum, other)) < n * n - n - 1:
            break
    wrong, reads = rng.choice(["scale", "eps", None, None]), rng.choice(["so", "so", "plainly"])
    x = normals(rng, n * 4)

    def build(side):
        def f(g):
            h = g.given("x", (n, 4), [x], f32)
            m = g.given("m", (n, n), [sum(other if side else seen, [])], dtype)
            hidden = m.t().ne(0) if side and reads == "so" else m.eq(0)
            scores = h.matmul(h.t()).masked_fill(hidden, -1e30)
            y = scores.softmax(-1).matmul(h)
            y = y.layer_norm(eps=0.1 if side and wrong == "eps" else 1e-5)
            return y.mul(1.5) if side and wrong == "scale" else y

        return f

    truth = DIFFERENT if wrong else UNDECIDED if reads == "so" else EQUIVALENT
    what = "%s %s %s" % (wrong, reads, seen)
    return Case(truth, build(0), build(1), None, what, sure=truth == DIFFERENT)


@family
def few_integers_of_ranks(rng):
    """Ranks that each have few of a whole's integers: positions, or rows that all are one, or zeros
    and ones. Drawn apart from the others they would be of another whole."""
    ranks, m, size = rng.randint(2, 3), rng.randint(2, 4), rng.choice([16, 40, 64])
    n = ranks * m
    what = rng.choice(["places", "one", "bits"])
    ids = {"places": list(range(n)), "one": [rng.randrange(9)] * n, "bits": scattered(rng, n)}[what]
    reads = "rows" if what == "one" else rng.choice(["rows", "factors"])
    wrong, said = rng.choice([None, None, "scale", "rank"]), rng.random() < 0.5
    late = what == "one" and rng.random() < 0.4  # a bound that none of those captured reaches
    x = normals(rng, n * 3)

    def read(g, h, p):
        return h.add(g.param("e", size, 3).embedding(p) if reads == "rows" else p.unsqueeze(-1))

    def build(side):
        def f(g):
            if not side:
                h, p = g.given("x", (n, 3), [x], f32), g.given("p", (n,), [ids])
                y = read(g, h, p)
                return y if what == "one" else y.mul(p.unsqueeze(-1).to(f32).add(1.0))
            out = {}
            for r in range(ranks):
                h = g.given("rank%d.x" % r, (m, 3), [x[3 * m * r : 3 * m * (r + 1)]], f32)
                p = g.given("rank%d.p" % r, (m,), [ids[m * r : m * (r + 1)]])
                y = read(g, h, p.clamp_max(ids[0] + 3) if late else p)
                if what != "one":
                    y = y.mul(p.unsqueeze(-1).to(f32).add(1.0))
                bad = wrong == "scale" or (wrong == "rank" and r)
                out["y%d" % r] = y.mul(1.001) if bad else y
            return out

        return f

    parts = ["rank%d.p" % r for r in range(ranks)]
    lines = "output y = cat([%s], 0)\n" % ", ".join("y%d" % r for r in range(ranks))
    lines += "input p = cat([%s], 0)\n" % ", ".join(parts) if said else ""
    text = "%s %s %s %s %s of %d: %s" % (what, reads, wrong, late, ranks, size, ids)
    truth = DIFFERENT if wrong else UNDECIDED if late else EQUIVALENT
    return Case(truth, build(0), build(1), lines, text, in_order=True)
