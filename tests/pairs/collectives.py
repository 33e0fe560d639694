"""Two ranks in one graph against one: what tensor, sequence and data parallelism do, and what goes
wrong with it. The left side is the sequential one."""

from dsl import DIFFERENT, EQUIVALENT, NOT_DIFFERENT, pair, values

N, IN, MID = 4, 8, 12  # tokens, width, width between


def columns(d, a, b):
    return d.t().rows(a, b).t()


def halves(d, dim=0, at=None):
    n = d.shape[dim]
    cut = columns if dim else (lambda d, a, b: d.rows(a, b))
    at = at or n // 2
    return cut(d, 0, at), cut(d, at, n)


def all_reduce(parts, op="sum"):
    return parts[0].op("dist::all_reduce", [list(parts), op])


def all_gather(parts, dim):
    return parts[0].op(
        "dist::all_gather",
        [list(parts), dim],
        parts[0].resized(dim, sum(p.shape[dim] for p in parts)),
    )


def reduce_scatter(parts, dim, op="sum"):
    s = parts[0].resized(dim, parts[0].shape[dim] // len(parts))
    return parts[0].several(
        "dist::reduce_scatter",
        [list(parts), op, dim],
        [s] * len(parts),
        [parts[0].dtype] * len(parts),
    )


def each(f):
    return [f(0), f(1)]


def given(y):
    """The outputs of both ranks, from one tensor for both or one for each."""
    a, b = y if isinstance(y, (list, tuple)) else (y, y)
    return {"y": a, "y_rank1": b}


def ranks(name, expected, why, sequential, parallel):
    pair(name, expected, why, lambda g: {"y": sequential(g)}, lambda g: given(parallel(g)))


def x(g):
    return g.x(N, IN)


def sharded(g, name, d, dim, order=(0, 1), at=None):
    """A parameter cut over the ranks; `order`: which part each has."""
    part = halves(d, dim, at)
    return each(lambda r: g.param("rank%d.%s" % (r, name), part[order[r]]))


def replicated(g, name, *shape, second=None, **how):
    d = values(name, *shape, **how)
    return each(
        lambda r: g.param(
            "rank%d.%s" % (r, name), values(second, *shape, **how) if r and second else d
        )
    )


W1, B1, W2, B2 = (
    (lambda: values("w1", MID, IN)),
    (lambda: values("b1", MID)),
    (lambda: values("w2", IN, MID)),
    (lambda: values("b2", IN)),
)


def mlp(g):
    return (
        x(g)
        .linear(g.param("w1", W1()), g.param("b1", B1()))
        .gelu()
        .linear(g.param("w2", W2()), g.param("b2", B2()))
    )


def parts(g, act=lambda h, r: h.gelu(), one=(0, 1), two=(0, 1), at=None):
    """The summand of each rank, before the block's results are reduced."""
    w1, b1, w2 = (
        sharded(g, "w1", W1(), 0, one, at),
        sharded(g, "b1", B1(), 0, one, at),
        sharded(g, "w2", W2(), 1, two, at),
    )
    h = x(g)
    return each(lambda r: act(h.linear(w1[r], b1[r]), r).linear(w2[r]))


def bias(g):
    return g.param("b2", B2())


# ---- a block of two matrices ----

for _name, _expected, _why, _f in [
    ("reduced", EQUIVALENT, "tensor parallel", lambda g: all_reduce(parts(g)) + bias(g)),
    (
        "reduced in another order",
        EQUIVALENT,
        "a sum",
        lambda g: all_reduce(parts(g)[::-1]) + bias(g),
    ),
    (
        "ranks exchanged",
        EQUIVALENT,
        "whole shards",
        lambda g: all_reduce(parts(g, one=(1, 0), two=(1, 0))) + bias(g),
    ),
    ("uneven shards", EQUIVALENT, "eight and four", lambda g: all_reduce(parts(g, at=8)) + bias(g)),
    (
        "reduced twice",
        DIFFERENT,
        "twice the sum",
        lambda g: (lambda y: all_reduce([y, y]) + bias(g))(all_reduce(parts(g))),
    ),
    (
        "averaged twice",
        NOT_DIFFERENT,
        "of equal ones",
        lambda g: (lambda y: all_reduce([y, y], "avg") + bias(g))(all_reduce(parts(g))),
    ),
    (
        "not reduced",
        DIFFERENT,
        "shares only",
        lambda g: (lambda p, b: [p[0] + b, p[1] + b])(parts(g), bias(g)),
    ),
    (
        "not reduced on one rank",
        DIFFERENT,
        "its share only",
        lambda g: (lambda p, b: [all_reduce(p) + b, p[1] + b])(parts(g), bias(g)),
    ),
    ("averaged", DIFFERENT, "half the sum", lambda g: all_reduce(parts(g), "avg") + bias(g)),
    (
        "averaged and doubled",
        NOT_DIFFERENT,
        "the sum",
        lambda g: all_reduce(parts(g), "avg").mul(2.0) + bias(g),
    ),
    ("largest share", DIFFERENT, "no sum", lambda g: all_reduce(parts(g), "max") + bias(g)),
    (
        "one rank twice",
        DIFFERENT,
        "the other one is left out",
        lambda g: (lambda p: all_reduce([p[0], p[0]]) + bias(g))(parts(g)),
    ),
    (
        "shards of the second exchanged",
        DIFFERENT,
        "rows of another rank",
        lambda g: all_reduce(parts(g, two=(1, 0))) + bias(g),
    ),
    (
        "one shard on both ranks",
        DIFFERENT,
        "the first half twice",
        lambda g: all_reduce(parts(g, one=(0, 0), two=(0, 0))) + bias(g),
    ),
    (
        "bias on every rank",
        DIFFERENT,
        "twice",
        lambda g: (lambda p, b: all_reduce([p[0] + b, p[1] + b]))(parts(g), bias(g)),
    ),
    (
        "bias on the first rank",
        EQUIVALENT,
        "once",
        lambda g: (lambda p, b: all_reduce([p[0] + b, p[1]]))(parts(g), bias(g)),
    ),
    (
        "half the bias on every rank",
        NOT_DIFFERENT,
        "once in all",
        lambda g: (lambda p, b: all_reduce([p[0] + b.mul(0.5), p[1] + b.mul(0.5)]))(
            parts(g), bias(g)
        ),
    ),
    (
        "bias behind on one rank only",
        DIFFERENT,
        "the other one gives the sum",
        lambda g: (lambda y, b: [y + b, y])(all_reduce(parts(g)), bias(g)),
    ),
    (
        "bias of another value on one rank",
        DIFFERENT,
        "a replica that differs",
        lambda g: (lambda y, b: [y + b[0], y + b[1]])(
            all_reduce(parts(g)), replicated(g, "b2", IN, second="other")
        ),
    ),
    (
        "bias on each rank, one value",
        EQUIVALENT,
        "replicas",
        lambda g: (lambda y, b: [y + b[0], y + b[1]])(
            all_reduce(parts(g)), replicated(g, "b2", IN)
        ),
    ),
    (
        "activation behind the sum",
        DIFFERENT,
        "of shares",
        lambda g: all_reduce(parts(g, lambda h, r: h)).gelu() + bias(g),
    ),
    (
        "another activation on one rank",
        DIFFERENT,
        "tanh",
        lambda g: (
            all_reduce(parts(g, lambda h, r: h.gelu(approximate="tanh") if r else h.gelu()))
            + bias(g)
        ),
    ),
    (
        "scattered and gathered",
        EQUIVALENT,
        "an all_reduce",
        lambda g: all_gather(reduce_scatter(parts(g), 0), 0) + bias(g),
    ),
    (
        "scattered and gathered by columns",
        EQUIVALENT,
        "an all_reduce",
        lambda g: all_gather(reduce_scatter(parts(g), 1), 1) + bias(g),
    ),
    (
        "scattered and gathered in another order",
        DIFFERENT,
        "rows of the other rank first",
        lambda g: all_gather(reduce_scatter(parts(g), 0)[::-1], 0) + bias(g),
    ),
    (
        "scattered by averages",
        DIFFERENT,
        "half",
        lambda g: all_gather(reduce_scatter(parts(g), 0, "avg"), 0) + bias(g),
    ),
    (
        "bias on scattered rows",
        EQUIVALENT,
        "each row once",
        lambda g: (lambda p, b: all_gather([p[0] + b, p[1] + b], 0))(
            reduce_scatter(parts(g), 0), bias(g)
        ),
    ),
    (
        "bias on scattered rows of one rank",
        DIFFERENT,
        "half of the rows",
        lambda g: (lambda p, b: all_gather([p[0] + b, p[1]], 0))(
            reduce_scatter(parts(g), 0), bias(g)
        ),
    ),
]:
    ranks("two ranks: %s" % _name, _expected, _why, mlp, _f)

# ---- residuals, norms ----


def block(g):
    return (lambda h: h + h.linear(g.param("w", values("w", IN, IN))))(x(g))


def shares(g, h):
    w = sharded(g, "w", values("w", IN, IN), 1)
    return each(lambda r: (h.slice(1, 4 * r, 4 * r + 4)).linear(w[r]))


def residual(name, expected, why, f):
    ranks(
        "two ranks, residual: %s" % name,
        expected,
        why,
        block,
        lambda g: (lambda h: f(h, shares(g, h)))(x(g)),
    )


residual("behind the sum", EQUIVALENT, "once", lambda h, p: h + all_reduce(p))
residual("on the first rank", EQUIVALENT, "once", lambda h, p: all_reduce([p[0] + h, p[1]]))
residual("on every rank", DIFFERENT, "twice", lambda h, p: all_reduce([p[0] + h, p[1] + h]))
residual(
    "halved on every rank",
    NOT_DIFFERENT,
    "once in all",
    lambda h, p: all_reduce([p[0] + h.mul(0.5), p[1] + h.div(2.0)]),
)
residual(
    "left out on one rank",
    DIFFERENT,
    "of its output",
    lambda h, p: (lambda y: [h + y, y])(all_reduce(p)),
)


def rms(h, w=None, eps=1e-6):
    y = h.mul(h.square().mean(-1, True).add(eps).rsqrt())
    return y if w is None else y.mul(w)


def normed(name, expected, why, f, sequential=lambda g: rms(x(g), g.param("n", IN))):
    ranks("two ranks, norm: %s" % name, expected, why, sequential, f)


def by_columns(g, reduce, width=None):
    """The norm of a row whose halves lie on two ranks; reduce(squares of each rank) gives the mean
    square."""
    h, w = x(g), sharded(g, "n", values("n", IN), 0)
    part = each(lambda r: h.slice(1, 4 * r, 4 * r + 4))
    m = reduce([p.square() for p in part])
    m = m if isinstance(m, list) else [m, m]
    return all_gather([part[r].mul(m[r].add(1e-6).rsqrt()).mul(w[r]) for r in (0, 1)], 1)


normed(
    "rows on two ranks",
    EQUIVALENT,
    "each is normed by itself",
    lambda g: (lambda h, w: all_gather(each(lambda r: rms(h.slice(0, 2 * r, 2 * r + 2), w[r])), 0))(
        x(g), replicated(g, "n", IN)
    ),
)
normed(
    "weights differ by rank",
    DIFFERENT,
    "a replica that differs",
    lambda g: (lambda h, w: all_gather(each(lambda r: rms(h.slice(0, 2 * r, 2 * r + 2), w[r])), 0))(
        x(g), replicated(g, "n", IN, second="other")
    ),
)
normed(
    "eps differs by rank",
    DIFFERENT,
    "1e-5",
    lambda g: (
        lambda h, w: all_gather(
            each(lambda r: rms(h.slice(0, 2 * r, 2 * r + 2), w[r], (1e-6, 1e-5)[r])), 0
        )
    )(x(g), replicated(g, "n", IN)),
)
normed(
    "mean of the squares' means",
    EQUIVALENT,
    "equal halves",
    lambda g: by_columns(g, lambda q: all_reduce([p.mean(-1, True) for p in q], "avg")),
)
normed(
    "sum of the squares",
    EQUIVALENT,
    "by the whole width",
    lambda g: by_columns(g, lambda q: all_reduce([p.sum(-1, True) for p in q]).div(8.0)),
)
normed(
    "sum of the squares by half the width",
    DIFFERENT,
    "twice the mean",
    lambda g: by_columns(g, lambda q: all_reduce([p.sum(-1, True) for p in q]).div(4.0)),
)
normed(
    "sum of the squares' means",
    DIFFERENT,
    "twice the mean",
    lambda g: by_columns(g, lambda q: all_reduce([p.mean(-1, True) for p in q])),
)
normed(
    "squares of each rank",
    DIFFERENT,
    "not reduced",
    lambda g: by_columns(g, lambda q: [p.mean(-1, True) for p in q]),
)
normed(
    "largest of the squares' means",
    DIFFERENT,
    "no mean",
    lambda g: by_columns(g, lambda q: all_reduce([p.mean(-1, True) for p in q], "max")),
)

# ---- gathers ----


def projected(g):
    return x(g).linear(g.param("w", values("w", 8, IN)))


def gathered(name, expected, why, f):
    ranks("two ranks, gathered: %s" % name, expected, why, projected, f)


def shard_outputs(g, order=(0, 1), at=None):
    w = sharded(g, "w", values("w", 8, IN), 0, order, at)
    h = x(g)
    return each(lambda r: h.linear(w[r]))


gathered("columns", EQUIVALENT, "rows of the weight", lambda g: all_gather(shard_outputs(g), 1))
gathered(
    "in another order",
    DIFFERENT,
    "the second half first",
    lambda g: all_gather(shard_outputs(g)[::-1], 1),
)
gathered(
    "exchanged twice",
    EQUIVALENT,
    "shards and order",
    lambda g: all_gather(shard_outputs(g, (1, 0))[::-1], 1),
)
gathered(
    "shards exchanged",
    DIFFERENT,
    "the second half first",
    lambda g: all_gather(shard_outputs(g, (1, 0)), 1),
)
gathered(
    "one rank's twice",
    DIFFERENT,
    "the first half twice",
    lambda g: (lambda p: all_gather([p[0], p[0]], 1))(shard_outputs(g)),
)
gathered(
    "uneven, padded",
    EQUIVALENT,
    "five and three with zeros, which are cut off",
    lambda g: (
        lambda h, w: all_gather(
            [
                h.linear(g.param("rank0.w", w.rows(0, 5))),
                h.linear(g.param("rank1.w", w.rows(5, 8).pad(2))),
            ],
            1,
        ).slice(1, 0, 8)
    )(x(g), values("w", 8, IN)),
)
gathered(
    "uneven, padded in front",
    DIFFERENT,
    "zeros for rows",
    lambda g: (
        lambda h, w: all_gather(
            [
                h.linear(g.param("rank0.w", w.rows(5, 8).pad(2))),
                h.linear(g.param("rank1.w", w.rows(0, 5))),
            ],
            1,
        ).slice(1, 2, 10)
    )(x(g), values("w", 8, IN)),
)
gathered(
    "activation before and behind",
    DIFFERENT,
    "silu of nothing",
    lambda g: all_gather([p.silu() for p in shard_outputs(g)], 1),
)

# ---- vocabularies ----


def looked_up(g):
    return g.param("e", values("e", 12, 4)).embedding(g.ints("ids", [3, 11, 6, 0, 5, 7], 12))


def vocabulary(name, expected, why, f):
    ranks(
        "two ranks, vocabulary: %s" % name,
        expected,
        why,
        looked_up,
        lambda g: f(
            g, sharded(g, "e", values("e", 12, 4), 0), g.ints("ids", [3, 11, 6, 0, 5, 7], 12)
        ),
    )


def own_rows(e, i, low, high, first):
    """Rows low <= i < high of the table, which lie from `first` on; zeros for others."""
    out = i.lt(low).logical_or(i.ge(high))
    return e.embedding(i.sub(first).masked_fill(out, 0)).masked_fill(out.unsqueeze(-1), 0.0)


vocabulary(
    "masked",
    EQUIVALENT,
    "each row on one rank",
    lambda g, e, i: all_reduce([own_rows(e[0], i, 0, 6, 0), own_rows(e[1], i, 6, 12, 6)]),
)
vocabulary(
    "a row on both ranks",
    DIFFERENT,
    "row 6 for ids below it",
    lambda g, e, i: all_reduce(
        [own_rows(e[0], i, 0, 6, 0), own_rows(e[1], i.clamp(6, 11), 6, 12, 6)]
    ),
)
vocabulary(
    "a row on no rank",
    DIFFERENT,
    "row 5",
    lambda g, e, i: all_reduce([own_rows(e[0], i, 0, 5, 0), own_rows(e[1], i, 6, 12, 6)]),
)
vocabulary(
    "offset by one",
    DIFFERENT,
    "the next row",
    lambda g, e, i: all_reduce(
        [own_rows(e[0], i, 0, 6, 0), own_rows(e[1], i.add(1).clamp(0, 11), 6, 12, 6)]
    ),
)
vocabulary(
    "not masked behind",
    DIFFERENT,
    "row 0 for others",
    lambda g, e, i: (
        lambda o: all_reduce(
            [own_rows(e[0], i, 0, 6, 0), e[1].embedding(i.sub(6).masked_fill(o, 0))]
        )
    )(i.lt(6)),
)


def probabilities(g):
    return projected(g).softmax(-1)


def distributed(name, expected, why, f):
    ranks(
        "two ranks, softmax: %s" % name,
        expected,
        why,
        probabilities,
        lambda g: all_gather(f(shard_outputs(g)), 1),
    )


def shares_of(p, top, total):
    e = [(p[r].sub(top[r])).exp() for r in (0, 1)]
    t = total([v.sum(-1, True) for v in e])
    t = t if isinstance(t, list) else [t, t]
    return [e[r].div(t[r]) for r in (0, 1)]


def top(p):
    return [all_reduce([v.amax(-1, True) for v in p], "max")] * 2


distributed(
    "largest and sum reduced",
    EQUIVALENT,
    "over both halves",
    lambda p: shares_of(p, top(p), all_reduce),
)
distributed(
    "largest of each rank",
    DIFFERENT,
    "two scales",
    lambda p: shares_of(p, [v.amax(-1, True) for v in p], all_reduce),
)
distributed(
    "sum of each rank", DIFFERENT, "each sums to 1", lambda p: shares_of(p, top(p), lambda t: t)
)
distributed(
    "smallest in place of the largest",
    NOT_DIFFERENT,
    "any number will do",
    lambda p: shares_of(p, [all_reduce([v.amin(-1, True) for v in p], "min")] * 2, all_reduce),
)

# ---- data parallel ----


def batch(name, expected, why, at, reduce):
    """The mean over rows that lie on two ranks."""
    ranks(
        "two ranks, mean over a batch: %s" % name,
        expected,
        why,
        lambda g: g.x(8, 4).square().mean(0),
        lambda g: (lambda h: reduce([h.slice(0, 0, at).square(), h.slice(0, at, 8).square()]))(
            g.x(8, 4)
        ),
    )


batch(
    "of means", EQUIVALENT, "equal halves", 4, lambda p: all_reduce([q.mean(0) for q in p], "avg")
)
batch(
    "of means, five and three",
    DIFFERENT,
    "uneven",
    5,
    lambda p: all_reduce([q.mean(0) for q in p], "avg"),
)
batch("of sums", EQUIVALENT, "by eight", 5, lambda p: all_reduce([q.sum(0) for q in p]).div(8.0))
batch(
    "of sums, averaged",
    DIFFERENT,
    "by sixteen",
    4,
    lambda p: all_reduce([q.sum(0) for q in p], "avg").div(8.0),
)
batch(
    "weighted by rows",
    NOT_DIFFERENT,
    "five and three of eight",
    5,
    lambda p: all_reduce([p[0].mean(0).mul(0.625), p[1].mean(0).mul(0.375)]),
)
