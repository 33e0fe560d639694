"""Families of inputs.py: masks, lengths and shards whose captured values hide what they are."""

from collectives import all_reduce
from dsl import DIFFERENT, EQUIVALENT, Data, boolean, f32, i64
from input_cases import Case, family, linear, normals, ones_and_zeros, say, tokens


@family
def seldom(rng):
    """What an input is kept at by its looks, and may be otherwise as its domain says: one side asks
    for one of the others."""
    batch, n = rng.randint(1, 3), rng.randint(4, 8)
    kind = rng.choice(["ones", "hole", "length", "bound", "order"])
    dtype, shape = i64, (batch, n)
    if kind in ("ones", "hole"):
        said = {"mask": "any" if kind == "hole" else rng.choice(["left", "right"])}
        first, k = [1] * (batch * n), rng.randrange(1, n)
        dtype = rng.choice([i64, boolean, f32])
    elif kind == "length":
        said, shape, first, k = (
            {"range": [1, n]},
            (batch + 1,),
            [n] * (batch + 1),
            rng.randint(1, n),
        )
    elif kind == "bound":
        said, shape = {"range": [0, 1000], "sorted": True}, (n,)
        first, k = list(range(n)), rng.randrange(50, 1000)
    else:
        said, shape, first, k = {"range": [0, n - 1], "distinct": True}, (n,), list(range(n)), None
    dl, dr, relations = say(rng, "m", said)
    x = normals(rng, n)

    def build(side):
        def f(g):
            m = g.given("m", shape, [first], dtype, dr if side else dl)
            h = linear(g, g.given("x", (1, n), [x], f32), "w", 3, side)
            whole = m.to(i64)
            if kind in ("ones", "hole"):
                asked = whole.sum(-1).eq(k) if kind == "ones" else whole.select(-1, k).eq(0)
                asked = asked.to(f32).sum(0)
            elif kind == "length":
                asked = whole.eq(k).to(f32).sum(0)
            elif kind == "bound":
                asked = whole.eq(k).to(f32).sum(0)
            else:
                asked = whole.select(0, 0).eq(n - 1).to(f32)
            return h.add(asked.mul(0.5)) if side else h.add(asked.mul(0.0))

        return f

    return Case(DIFFERENT, build(0), build(1), relations, "%s %s %s" % (kind, k, shape))


@family
def not_passed_on(rng):
    """Both sides are given a mask, positions or kinds of tokens, and one reads them nowhere; or the
    other one reads what makes no difference."""
    batch, n, kinds = rng.randint(1, 3), rng.randint(4, 8), rng.randint(2, 5)
    kind = rng.choice(["mask", "positions", "types", "lengths"])
    dtype, shape, same = i64, (batch, n), rng.random() < 0.3
    if kind == "mask":
        said, first = {"mask": rng.choice(["left", "right", "any"])}, [1] * (batch * n)
        dtype = rng.choice([i64, boolean])
    elif kind == "positions":
        said, shape, first = {"range": [0, n + rng.randint(1, 9)]}, (n,), list(range(n))
    elif kind == "types":
        said, first = {"range": [0, kinds - 1]}, [0] * (batch * n)
    else:
        said, shape, first = {"range": [1, n]}, (batch + 1,), [n] * (batch + 1)
    dl, dr, relations = say(rng, "m", said)
    x, table = normals(rng, n), normals(rng, kinds * 3)

    def build(side):
        def f(g):
            m = g.given("m", shape, [first], dtype, dr if side else dl)
            h = linear(g, g.given("x", (1, n), [x], f32), "w", 3, side)
            if side:
                return h.add(g.param("table", Data((kinds, 3), table)).select(0, 0))
            whole = m.to(i64)
            if kind == "types":
                rows = g.param("table", Data((kinds, 3), table))
                read = rows.embedding(whole).select(0, 0).select(0, 0)
                return h.add(read.mul(0.0).add(rows.select(0, 0)) if same else read)
            apart = whole.to(f32).sum(0).sum(0) if len(shape) > 1 else whole.to(f32).sum(0)
            apart = apart.sub(float(sum(first))).mul(0.0 if same else 0.5)
            return h.add(g.param("table", Data((kinds, 3), table)).select(0, 0)).add(apart)

        return f

    return Case(EQUIVALENT if same else DIFFERENT, build(0), build(1), relations, kind)


@family
def exchanged(rng):
    """Two masks, lengths or kinds that were captured as one value and are two inputs by their
    names: an encoder's mask where the decoder's belongs. Or each side reads the same one."""
    batch, n = rng.randint(1, 3), rng.randint(4, 8)
    kind, same = rng.choice(["mask", "types", "lengths"]), rng.random() < 0.3
    shape, how = (batch, n), rng.choice(["one", "both", "twice"])
    if kind == "mask":
        said, first = {"mask": rng.choice(["left", "right", "any"])}, [1] * (batch * n)
    elif kind == "types":
        said, first = {"range": [0, 3]}, [0] * (batch * n)
    else:
        said, shape, first = {"range": [1, n]}, (batch + 1,), [n] * (batch + 1)
    dl, dr, relations = say(rng, "m", said)
    el, er, more = say(rng, "k", said)
    x = normals(rng, n)

    def build(side):
        def f(g):
            m = g.given("m", shape, [first], i64, dr if side else dl).to(f32)
            k = g.given("k", shape, [first], i64, er if side else el).to(f32)
            h = linear(g, g.given("x", (1, n), [x], f32), "w", 3, side)
            sums = lambda t: t.sum(0).sum(0) if len(shape) > 1 else t.sum(0)
            other = side and not same
            if how == "one":
                read = sums(k if other else m)
            elif how == "both":
                read = sums(m.sub(k.mul(0.5))) if not other else sums(k.sub(m.mul(0.5)))
            else:
                read = sums(m).add(sums(m if other else k))
            return h.add(read.mul(0.25))

        return f

    relations = (relations or "") + (more or "") or None
    return Case(EQUIVALENT if same else DIFFERENT, build(0), build(1), relations, kind + " " + how)


@family
def on_ranks(rng):
    """Ranks that hold rows of one mask, or of lengths, which was captured full or as full on each:
    a mean of the ranks' means is the mean of all on those values only."""
    ranks, rows, n = rng.randint(2, 4), rng.randint(1, 3), rng.randint(3, 6)
    masks, full = rng.random() < 0.6, rng.random() < 0.5
    what = rng.choice(["right", "right", "means", "first", "constant", "one", "exchanged"])
    if masks:
        said, part, shape = {"mask": rng.choice(["right", "any"])}, (rows, n), (ranks * rows, n)
        own = [1] * (rows * n) if full else ones_and_zeros(rng, rows, n, "right")
    else:
        said, part, shape = {"range": [1, n]}, (rows,), (ranks * rows,)
        own = [n] * rows if full else tokens(rng, rows, 1, n + 1)
    values = normals(rng, ranks * len(own))
    dl, dr = (said, said) if masks else rng.choice([(said, said), (said, None)])

    def total(t):
        return t.sum(0).sum(0) if masks else t.sum(0)

    def left(g):
        m = g.given("m", shape, [own * ranks], i64, dl).to(f32)
        v = g.given("v", shape, [values], f32)
        return total(v.mul(m)).div(total(m))

    def right(g):
        m, v = [], []
        for r in range(ranks):
            cut = values[r * len(own) : (r + 1) * len(own)]
            m.append(g.given("rank%d.m" % r, part, [own], i64, dr).to(f32))
            v.append(g.given("rank%d.v" % r, part, [cut], f32))
        if what == "one":
            m = [m[0]] * ranks
        elif what == "exchanged":
            m = m[1:] + m[:1]
        up, down = [total(a.mul(b)) for a, b in zip(v, m)], [total(b) for b in m]
        if what == "means":
            return all_reduce([a.div(b) for a, b in zip(up, down)], "avg")
        if what == "first":
            return all_reduce(up, "avg").div(down[0])
        if what == "constant":
            return all_reduce(up).div(float(sum(own) * ranks))
        return all_reduce(up).div(all_reduce(down))

    kind = "%s of %d ranks, %s" % ("mask" if masks else "lengths", ranks, what)
    return Case(EQUIVALENT if what == "right" else DIFFERENT, left, right, None, kind)


@family
def shards_of_one_value(rng):
    """Ranks that hold parts of a bias of zeros, or of a scale of ones, as they are initialised: the
    ranks' numbers say which part is whose."""
    ranks, n, rows, width = rng.randint(2, 4), rng.randint(2, 4), rng.randint(2, 3), 5
    what = rng.choice(["right", "right", "first", "exchanged"])
    scale, value = rng.random() < 0.5, rng.choice([0.0, 1.0, 0.5])
    x, w = normals(rng, rows * width), normals(rng, width * n * ranks)

    def given(g, name, cut):
        columns = [w[k * n * ranks :][: n * ranks][cut] for k in range(width)]
        size = len(columns[0])
        m = g.leaf("parameter", name + "w", Data((width, size), sum(columns, [])), f32)
        b = g.leaf("parameter", name + "b", Data((size,), [value] * size), f32)
        return g.given(name + "x", (rows, width), [x], f32).matmul(m), b

    def left(g):
        y, b = given(g, "", slice(None))
        return y.mul(b) if scale else y.add(b)

    def right(g):
        held = [given(g, "rank%d." % r, slice(r * n, r * n + n)) for r in range(ranks)]
        b = [b for _, b in held]
        b = [b[0]] * ranks if what == "first" else b[1:] + b[:1] if what == "exchanged" else b
        parts = [y.mul(c) if scale else y.add(c) for (y, _), c in zip(held, b)]
        shape = (rows, n * ranks)
        return parts[0].op("dist::all_gather", [parts, 1], shape)

    kind = "%s of %d ranks, %s" % ("scale" if scale else "bias", ranks, what)
    return Case(EQUIVALENT if what == "right" else DIFFERENT, left, right, None, kind)


@family
def repeated_by_chance(rng):
    """A leaf of any values, captured with the same numbers at several places, against a smaller one
    that is read at each of them; or against one as large."""
    times, rows, width = rng.randint(2, 4), rng.randint(2, 3), rng.randint(3, 5)
    kind, same = rng.choice(["input", "parameter"]), rng.random() < 0.4
    few, rest = normals(rng, rows * width), normals(rng, rows * width)

    def leaf(g, n):
        if kind == "input":
            return g.given("x", (rows * n, width), [few * n], f32)
        return g.leaf("parameter", "x", Data((rows * n, width), few * n), f32)

    def build(one):
        def f(g):
            z = g.given("z", (rows, width), [rest], f32).mul(0.5)
            x = leaf(g, times if one or same else 1).mul(2.0)
            whole = x if one or same else x.op("cat", [[x] * times, 0], (rows * times, width))
            return whole.op("cat", [[whole, z], 0], (rows * times + rows, width))

        return f

    what = "%s, %d times, %s" % (kind, times, "as large" if same else "smaller")
    return Case(EQUIVALENT if same else DIFFERENT, build(True), build(False), None, what)


@family
def said_of_a_part(rng):
    """What one rank says of its part's numbers holds of no other part: a bound that only this one
    has no need of, or that each has none of."""
    ranks, rows, width = rng.randint(2, 3), rng.randint(1, 3), rng.randint(2, 4)
    ints, every = rng.random() < 0.5, rng.random() < 0.4
    low, high = 0, rng.randint(3, 5)
    n = ranks * rows * width
    x = tokens(rng, n, low, high) if ints else [rng.uniform(low, high) for _ in range(n)]
    dtype, says = (i64 if ints else f32), rng.randrange(ranks)
    named = rng.random() < 0.5  # the whole has the statement, too

    def left(g):
        whole = {"range": [low, high]} if every and named else None
        return g.given("x", (ranks * rows, width), [x], dtype, whole).mul(2)

    def right(g):
        parts = []
        for r in range(ranks):
            own = {"range": [low, high]} if every or r == says else None
            cut = [x[r * rows * width : (r + 1) * rows * width]]
            part = g.given("rank%d.x" % r, (rows, width), cut, dtype, own)
            parts.append(part.clamp(low, high).mul(2))
        return parts[0].op("cat", [parts, 0], (ranks * rows, width))

    what = "%s of %d ranks, %s" % (
        "integers" if ints else "floats",
        ranks,
        "all" if every else "one",
    )
    return Case(EQUIVALENT if every else DIFFERENT, left, right, None, what)


@family
def said_otherwise_of_each_part(rng):
    """Each rank says something else of its part: each is drawn inside its own, so that bounds that
    it has no need of show nothing, and one that is too low does."""
    ranks, rows, width = rng.randint(2, 3), rng.randint(1, 3), rng.randint(2, 4)
    ints, same = rng.random() < 0.5, rng.random() < 0.5
    high = [rng.randint(3, 5) + 3 * r for r in range(ranks)]
    low_one = rng.randrange(ranks)
    looks = rng.choice(["any", "one number", "bits"])  # the others are kept where nothing is said
    own = [
        tokens(rng, rows * width, 0, 1 if looks == "bits" else h - 2)
        if ints
        else [rng.uniform(0, h - 2) for _ in range(rows * width)]
        for h in high
    ]
    if looks == "one number":
        own = [[part[0]] * len(part) for part in own]
    dtype = i64 if ints else f32

    def left(g):
        whole = [v for part in own for v in part]
        return g.given("x", (ranks * rows, width), [whole], dtype).mul(2)

    def right(g):
        parts = []
        for r, h in enumerate(high):
            x = g.given("rank%d.x" % r, (rows, width), [own[r]], dtype, {"range": [0, h]})
            parts.append(x.clamp(0, h if same or r != low_one else h - 1).mul(2))
        return parts[0].op("cat", [parts, 0], (ranks * rows, width))

    what = "%s of %d ranks" % ("integers" if ints else "floats", ranks)
    return Case(EQUIVALENT if same else DIFFERENT, left, right, None, what)


@family
def places_by_index(rng):
    """Columns by `index`, and by indices that are clamped first: no index counts from the end, as
    both `compare` and `check` say that they assume; or clamped to one too few."""
    rows, n, k = rng.randint(2, 4), rng.randint(4, 8), rng.randint(2, 5)
    same, x = rng.random() < 0.6, normals(rng, rows * n)
    ids = [n - 2, 0] + tokens(rng, k - 2, 0, n - 1)  # no mask, and no positions

    def build(side):
        def f(g):
            h = g.given("x", (rows, n), [x], f32).mul(2.0)
            y = g.given("y", (k,), [ids], i64)
            if side:
                y = y.clamp(0, n - 1 if same else n - 2)
            return h.op("index.Tensor", [h, [None, y]], (rows, k))

        return f

    return Case(EQUIVALENT if same else DIFFERENT, build(0), build(1), None, "columns")


@family
def same_on_ranks(rng):
    """Ranks of one role that hold one value: sums of integers wrap and those of booleans do not
    count, and a leaf that the left lacks may be another on each rank."""
    ranks, n = rng.randint(4, 6), rng.randint(3, 5)
    what = rng.choice(["right", "wraps", "counts", "own"])
    x, c = normals(rng, n), normals(rng, n)
    if what == "wraps":
        dtype, x = "uint8", [rng.randint(90, 200) for _ in range(n)]
    elif what == "counts":
        dtype, x = boolean, [True] + [rng.random() < 0.5 for _ in range(n - 1)]
    else:
        dtype = f32
    whole = i64 if what in ("wraps", "counts") else f32

    def given(g, r):
        return g.given("rank%d.x" % r if r >= 0 else "x", (n,), [x], dtype)

    def left(g):
        y = given(g, -1).to(whole)
        y = y if what == "own" else y.mul(ranks)
        return {"y_rank%d" % r if r else "y": y for r in range(ranks)}

    def right(g):
        parts = [given(g, r) for r in range(ranks)]
        if what == "own":
            own = [g.given("rank%d.c" % r, (n,), [c], f32) for r in range(ranks)]
            mean = all_reduce(own, "avg")
            out = [a.add(b.sub(mean)) for a, b in zip(parts, own)]
        else:
            out = [all_reduce(parts).to(whole)] * ranks
        return {"y_rank%d" % r if r else "y": y for r, y in enumerate(out)}

    return Case(EQUIVALENT if what == "right" else DIFFERENT, left, right, None, what)
