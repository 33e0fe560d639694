"""Kinds of corners.py: windows, padding, views, empty tensors, broadcasting, pooling."""

import math

from branch_terms import arange, compare, el, item, masked, several, shaped, total, unsqueeze, var

INF = math.inf


def full(shape, v):
    return shaped("full", [list(shape), v], shape, "f")


def sl(x, d, a, b, step=1):
    n = len(range(x.shape[d])[a:b:step])
    args = [x, d, a, b] + ([step] if step != 1 else [])
    return shaped("slice.Tensor", args, x.shape[:d] + (n,) + x.shape[d + 1 :])


def cat(parts, d):
    n = sum(p.shape[d] for p in parts)
    s = parts[0].shape
    return shaped("cat", [parts, d], s[:d] + (n,) + s[d + 1 :], parts[0].kind)


def flip(x, *dims):
    return shaped("flip", [x, list(dims)], x.shape)


def summed(x, dims, keep=False):
    dims = [a % len(x.shape) for a in dims]
    s = tuple(1 if k in dims else n for k, n in enumerate(x.shape) if keep or k not in dims)
    return shaped("sum.dim_IntList", [x, dims, keep], s)


def cumsum(x, d):
    return shaped("cumsum", [x, d], x.shape)


def running(d):
    """Running sums, products and maxima: where they begin and which way they go."""
    n = d.pick(3, 5, 7)
    x = var("x", "f", 2, n)
    c = cumsum(x, 1)
    zero = shaped("zeros", [[2, 1]], (2, 1), "f")
    before = cat([zero, sl(c, 1, 0, n - 1)], 1)
    whole = summed(x, [1], True)
    cm = lambda t: item(several("cummax", [t, 1], [((2, n), "f"), ((2, n), "i")]), 0)
    return d.pick(
        (True, before, c - x),
        (False, before, cat([sl(c, 1, 1, n), zero], 1)),
        (True, flip(cumsum(flip(x, 1), 1), 1), whole - c + x),
        (False, flip(cumsum(flip(x, 1), 1), 1), whole - c),
        (True, sl(c, 1, n - 1, n), whole),
        (True, cat([sl(c, 1, 0, 1), sl(c, 1, 1, n) - sl(c, 1, 0, n - 1)], 1), x),
        (False, cumsum(x, 1), cumsum(x, 0)),
        (False, cm(x), flip(cm(flip(x, 1)), 1)),
        (True, sl(cm(x), 1, n - 1, n), shaped("amax", [x, [1], True], (2, 1))),
        (False, cm(x), el("relu", cm(x))),
        (True, shaped("logcumsumexp", [x, 1], (2, n)), el("log", cumsum(el("exp", x), 1))),
        (
            False,
            shaped("cumprod", [x, 1], (2, n)),
            el("exp", cumsum(el("log", el("abs", x) + 1e-9), 1)),
        ),
    )


def padded(d):
    """Padding: the values beyond the edge."""
    n, p = d.pick(4, 6), d.pick(1, 2)
    x = var("x", "f", 1, 2, n)
    out = (1, 2, n + 2 * p)
    reflect = shaped("reflection_pad1d", [x, [p, p]], out)
    repeat = shaped("replication_pad1d", [x, [p, p]], out)
    zeros = shaped("constant_pad_nd", [x, [p, p], 0.0], out)
    ends = lambda a, b: cat([a, x, b], 2)
    z = shaped("zeros", [[1, 2, p]], (1, 2, p), "f")
    one = lambda t: shaped("expand", [t, [1, 2, p]], (1, 2, p))
    return d.pick(
        (True, zeros, ends(z, z)),
        (False, zeros, shaped("constant_pad_nd", [x, [p + 1, p - 1], 0.0], out)),
        (True, reflect, ends(flip(sl(x, 2, 1, p + 1), 2), flip(sl(x, 2, n - 1 - p, n - 1), 2))),
        (False, reflect, ends(flip(sl(x, 2, 0, p), 2), flip(sl(x, 2, n - p, n), 2))),
        (True, repeat, ends(one(sl(x, 2, 0, 1)), one(sl(x, 2, n - 1, n)))),
        (p == 1, repeat, ends(flip(sl(x, 2, 0, p), 2), flip(sl(x, 2, n - p, n), 2))),
        (False, reflect, repeat),
        (False, ends(sl(x, 2, n - p, n), sl(x, 2, 0, p)), ends(sl(x, 2, 0, p), sl(x, 2, n - p, n))),
        (True, shaped("constant_pad_nd", [zeros, [-p, -p], 0.0], x.shape), x),
    )


def pooled(d):
    """Windows at the edge: what is counted, and what the padding is."""
    n = d.pick(4, 5, 6)
    x = var("x", "f", 1, 2, n)
    out = n + 2 - 3 + 1
    mp = shaped("max_pool1d", [x, [3], [1], [1]], (1, 2, out))
    ap = lambda inc: shaped("avg_pool1d", [x, [3], [1], [1], False, inc], (1, 2, out))
    pad = lambda v: shaped("constant_pad_nd", [x, [1, 1], v], (1, 2, n + 2))
    mpp = lambda v: shaped("max_pool1d", [pad(v), [3], [1]], (1, 2, out))
    parts = lambda v: [sl(pad(v), 2, k, k + out) for k in range(3)]
    mx = lambda p: el("maximum", el("maximum", p[0], p[1]), p[2])
    add = lambda p: p[0] + p[1] + p[2]
    return d.pick(
        (True, mp, mx(parts(-INF))),
        (False, mp, mpp(0.0)),
        (False, mp, mpp(-1e4)),
        (True, ap(True), el("div.Scalar", add(parts(0.0)), 3.0)),
        (False, ap(True), ap(False)),
        (False, ap(False), el("div.Scalar", add(parts(0.0)), 3.0)),
        (
            True,
            -mx([-p for p in parts(INF)]),
            el("minimum", el("minimum", *parts(INF)[:2]), parts(INF)[2]),
        ),
        (
            True,
            shaped("avg_pool1d", [x, [2], [2]], (1, 2, n // 2)),
            el("div.Scalar", sl(x, 2, 0, 2 * (n // 2), 2) + sl(x, 2, 1, 2 * (n // 2), 2), 2.0),
        ),
        (False, shaped("max_pool1d", [x, [2], [2]], (1, 2, n // 2)), sl(x, 2, 0, 2 * (n // 2), 2)),
    )


def viewed(d):
    """Diagonals, triangles, steps."""
    n = d.pick(3, 4, 5)
    x = var("x", "f", n, n)
    t = shaped("transpose.int", [x, 0, 1], (n, n))
    k = d.pick(-1, 0, 1)
    low = lambda a, m: shaped("tril", [a, m], (n, n))
    up = lambda a, m: shaped("triu", [a, m], (n, n))
    rows = unsqueeze(arange(n), 1)
    cols = unsqueeze(arange(n), 0)
    diag = shaped("diagonal", [x, 0, 0, 1], (n,))
    return d.pick(
        (True, low(x, k), masked(x, compare("gt", cols, rows + k), 0.0)),
        (False, low(x, k), masked(x, compare("ge", cols, rows + k), 0.0)),
        (True, low(x, k) + up(x, k + 1), x),
        (False, low(x, k) + up(x, k), x),
        (True, shaped("transpose.int", [low(t, k), 0, 1], (n, n)), up(x, -k)),
        (k == 0, shaped("transpose.int", [low(t, k), 0, 1], (n, n)), up(x, k)),
        (True, shaped("sum.dim_IntList", [diag, [0]], ()), shaped("trace", [x], ())),
        (True, total(low(x, 0) * up(x, 0)), diag * diag),
        (False, total(x * t), total(x * x)),
        (True, flip(flip(x, 0), 1), flip(x, 0, 1)),
        (False, flip(x, 0), flip(x, 1)),
        (
            True,
            shaped("reshape", [t, [n * n]], (n * n,)),
            shaped("reshape", [shaped("permute", [x, [1, 0]], (n, n)), [n * n]], (n * n,)),
        ),
        (
            False,
            shaped("reshape", [t, [n * n]], (n * n,)),
            shaped("reshape", [x, [n * n]], (n * n,)),
        ),
        (
            True,
            cat([sl(x, 0, 0, n, 2), sl(x, 0, 1, n, 2)], 0),
            shaped(
                "index_select",
                [
                    x,
                    0,
                    shaped(
                        "cat",
                        [
                            [
                                shaped("arange.start_step", [0, n, 2], ((n + 1) // 2,), "i"),
                                shaped("arange.start_step", [1, n, 2], (n // 2,), "i"),
                            ],
                            0,
                        ],
                        (n,),
                        "i",
                    ),
                ],
                (n, n),
            ),
        ),
        (True, shaped("rot90", [x, 1, [0, 1]], (n, n)), flip(t, 0)),
        (False, shaped("rot90", [x, 1, [0, 1]], (n, n)), flip(t, 1)),
    )


def empties(d):
    """Nothing, and what it sums to."""
    n = d.pick(2, 3)
    x, y = var("x", "f", n, 4), var("y", "f", 4, n)
    none = sl(x, 1, 2, 2)
    return d.pick(
        (True, cat([x, none], 1), x),
        (True, summed(none, [1]), shaped("zeros", [[n]], (n,), "f") + summed(x, [1]) * 0.0),
        (
            False,
            shaped("prod.dim_int", [none, 1], (n,)) * summed(x, [1]),
            shaped("zeros", [[n]], (n,), "f") + summed(x, [1]) * 0.0,
        ),
        (True, shaped("prod.dim_int", [none, 1], (n,)) * summed(x, [1]), summed(x, [1])),
        (
            True,
            shaped("matmul", [none, sl(y, 0, 1, 1)], (n, n)) + shaped("matmul", [x, y], (n, n)),
            shaped("matmul", [x, y], (n, n)),
        ),
        (
            True,
            shaped("all.dim", [compare("gt", none, 0.0), 1], (n,), "b"),
            ~shaped("any.dim", [compare("gt", none, 0.0), 1], (n,), "b"),
        ),
        (
            False,
            shaped("all.dim", [compare("gt", x, 0.0), 1], (n,), "b"),
            shaped("any.dim", [compare("gt", x, 0.0), 1], (n,), "b"),
        ),
        (True, sl(cat([none, x], 1), 1, 1, 4), sl(x, 1, 1, 4)),
    )


def spread(d):
    """Which dimension is meant where all have one size."""
    n = d.pick(2, 3, 4)
    x, v, w = var("x", "f", n, n), var("v", "f", n), var("u", "f", n)
    col, row = unsqueeze(v, 1), unsqueeze(v, 0)
    diff = unsqueeze(v, 1) - unsqueeze(w, 0)
    return d.pick(
        (False, x * col, x * row),
        (True, x * row, x * v),
        (False, x - summed(x, [1], True), x - summed(x, [0], True)),
        (False, x - summed(x, [1], True), x - summed(x, [1])),
        (True, x - summed(x, [0], True), x - summed(x, [0])),
        (False, diff, unsqueeze(w, 1) - unsqueeze(v, 0)),
        (True, diff, -shaped("transpose.int", [unsqueeze(w, 1) - unsqueeze(v, 0), 0, 1], (n, n))),
        (True, shaped("einsum", ["ij,j->i", [x, v]], (n,), "f"), shaped("mv", [x, v], (n,))),
        (False, shaped("einsum", ["ij,i->j", [x, v]], (n,), "f"), shaped("mv", [x, v], (n,))),
        (True, shaped("einsum", ["ij,i->j", [x, v]], (n,), "f"), summed(x * col, [0])),
        (True, shaped("outer", [v, w], (n, n)), col * unsqueeze(w, 0)),
        (False, shaped("outer", [v, w], (n, n)), shaped("outer", [w, v], (n, n))),
        (True, shaped("addmm", [v, x, x], (n, n)), shaped("matmul", [x, x], (n, n)) + row),
        (False, shaped("addmm", [v, x, x], (n, n)), shaped("matmul", [x, x], (n, n)) + col),
    )


def windows(d):
    """Convolutions and unfolded windows."""
    n, k = d.pick(5, 6, 8), d.pick(2, 3)
    x, w = var("x", "f", 1, 1, n), var("w", "f", 1, 1, k)
    out = n - k + 1
    conv = shaped("conv1d", [x, w], (1, 1, out))
    at = lambda j: shaped("slice.Tensor", [w, 2, j, j + 1], (1, 1, 1))
    parts = lambda order: [sl(x, 2, j, j + out) * at(order(j)) for j in range(k)]

    def add(p):
        s = p[0]
        for q in p[1:]:
            s = s + q
        return s

    unfolded = shaped("unfold", [x, 2, k, 1], (1, 1, out, k))
    return d.pick(
        (True, conv, add(parts(lambda j: j))),
        (False, conv, add(parts(lambda j: k - 1 - j))),
        (True, shaped("conv1d", [x, flip(w, 2)], (1, 1, out)), add(parts(lambda j: k - 1 - j))),
        (True, total(unfolded * shaped("reshape", [w, [k]], (k,))), conv),
        (
            False,
            shaped("conv1d", [x, w, None, [1], [1]], (1, 1, out + 2)),
            shaped("constant_pad_nd", [conv, [1, 1], 0.0], (1, 1, out + 2)),
        ),
        (True, sl(shaped("conv1d", [x, w, None, [1], [1]], (1, 1, out + 2)), 2, 1, out + 1), conv),
        (
            True,
            shaped("conv1d", [x, w, None, [2]], (1, 1, (n - k) // 2 + 1)),
            sl(conv, 2, 0, out, 2),
        ),
        (
            False,
            shaped("conv1d", [x, w, None, [2]], (1, 1, (n - k) // 2 + 1)),
            sl(conv, 2, 0, (n - k) // 2 + 1),
        ),
    )


KINDS = (running, padded, pooled, viewed, empties, spread, windows)
