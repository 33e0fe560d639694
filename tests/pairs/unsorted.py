"""topk that need not sort: libtorch leaves the order of its results open, and takes another one
than it sorts in. Where outputs do not depend on it, such a call is one that sorts. Where they do,
it is not: rows have orders of their own, so that two must not be put together place by place."""

from dsl import *

ROWS, WIDTH, BEST, INNER = 12, 16, 5, 6


def experts(g, x, v, i):
    """Each chosen expert's product with what its row is given, weighed, and added up."""
    given = g.param("given", ROWS, 4)
    inner = g.param("w", WIDTH, 2 * INNER, 4).index(i).matmul(given.unsqueeze(1).unsqueeze(-1))
    inner = inner.squeeze(-1) + g.param("b", WIDTH, 2 * INNER).index(i)
    inner = inner.slice(2, 0, INNER).sigmoid() * inner.slice(2, INNER, 2 * INNER)
    return (inner * v.softmax(-1).unsqueeze(-1)).sum(1)


def halves(t):
    return t.slice(0, 0, ROWS // 2), t.slice(0, ROWS // 2, ROWS)


def times(a, b):
    return (a * b).sum(-1)


UNSEEN = {
    "their sum": lambda g, x, v, i: times(v, v),
    "experts": experts,
    "the scores that were chosen": lambda g, x, v, i: times(x.sigmoid().gather(-1, i), v),
    "parts of their sum": lambda g, x, v, i: times(v / v.abs().sum([-1], True), v),
    "the least of them": lambda g, x, v, i: v.exp().amin(-1) + v.logsumexp(-1),
    "all of them": lambda g, x, v, i: (v * v).sum([0, 1]),
    "a row's factor": lambda g, x, v, i: times(v * g.param("f", ROWS, 1), v.sigmoid()),
    "behind another dimension": lambda g, x, v, i: times(v.unsqueeze(1) * g.param("f", 3, 1), 1.5),
    "rows of a table": lambda g, x, v, i: g.param("w", WIDTH, 3).embedding(i).sum(1),
    "in other shapes": lambda g, x, v, i: v.reshape(ROWS, 1, BEST).view(1, ROWS, BEST).sum(2),
}
SEEN = {
    "as they are": lambda g, x, v, i: v,
    "the first": lambda g, x, v, i: v.select(1, 0) + v.sum(1),
    "weighed by place": lambda g, x, v, i: times(v, g.param("f", BEST)),
    "a product over places": lambda g, x, v, i: v.matmul(g.param("f", BEST, 3)),
    "added up so far": lambda g, x, v, i: v.cumsum(1).amin(1),
    "turned round": lambda g, x, v, i: times(v, v.flip(1)),
    "two rows together": lambda g, x, v, i: times(*halves(v)),
    "a row and the one before": lambda g, x, v, i: times(v, v.roll(1, 0)),
    "weighed along the rows": lambda g, x, v, i: times(v.softmax(0), v),
    "added up along the rows": lambda g, x, v, i: times(v.sum(0), v.sum(0)),
    "beside those that sort": lambda g, x, v, i: times(v, x.topk(BEST)[0]),
    "rows and places exchanged": lambda g, x, v, i: v.reshape(BEST, ROWS).amax(1),
    "experts beside other weights": lambda g, x, v, i: experts(g, x, x.topk(BEST)[0], i),
    "a table's columns": lambda g, x, v, i: (
        g.param("t", ROWS, BEST).gather(0, i.clamp(0, ROWS - 1)).sum(1)
    ),
}


def built(f, g, ordered):
    x = g.x(ROWS, WIDTH)
    return f(g, x, *x.topk(BEST, -1, True, ordered))


for _expected, _kinds in ((EQUIVALENT, UNSEEN), (DIFFERENT, SEEN)):
    for _what, _f in _kinds.items():
        pair(
            "no order: %s" % _what,
            _expected,
            "no output sees the order" if _expected == EQUIVALENT else "the order is seen",
            lambda g, f=_f: built(f, g, False),
            lambda g, f=_f: built(f, g, True),
        )
for _what in ("experts", "their sum"):
    pair(
        "no order, on both sides: %s" % _what,
        EQUIVALENT,
        "no output sees the order",
        lambda g, f=UNSEEN[_what]: built(f, g, False),
        lambda g, f=UNSEEN[_what]: built(f, g, False),
    )
