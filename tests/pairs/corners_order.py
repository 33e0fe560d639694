"""Kinds of corners.py: orders, equal numbers, ranks, buckets, thresholds of sums."""

from branch_terms import compare, el, item, several, shaped, to_float, to_int, total, unsqueeze, var
from corners_integers import ints
from dsl import Dtype


def flip(x, d):
    return shaped("flip", [x, [d]], x.shape, x.kind)


def pairs_of(x, op, *args):
    """Values and places."""
    return several(op, [x, *args], [(x.shape, x.kind), (x.shape, "i")])


def first(x, d=1):
    return shaped("slice.Tensor", [x, d, 0, 1], x.shape[:d] + (1,) + x.shape[d + 1 :])


def sorted_rows(d):
    """Orders and what is read of them."""
    n = d.pick(3, 5, 6)
    x = var("x", "f", 2, n)
    up, down = item(pairs_of(x, "sort", 1), 0), item(pairs_of(x, "sort", 1, True), 0)
    k = d.rng.randrange(1, n)
    top = item(several("topk", [x, k, 1], [((2, k), "f"), ((2, k), "i")]), 0)
    kth = item(several("kthvalue", [x, k, 1], [((2,), "f"), ((2,), "i")]), 0)
    sl = lambda t, a, b: shaped("slice.Tensor", [t, 1, a, b], (2, b - a))
    mid = item(several("median.dim", [x, 1], [((2,), "f"), ((2,), "i")]), 0)
    return d.pick(
        (True, down, flip(up, 1)),
        (True, top, sl(down, 0, k)),
        (False, top, sl(up, 0, k)) if k < n else (True, top, top),
        (True, unsqueeze(kth, 1), sl(up, k - 1, k)),
        (False, unsqueeze(kth, 1), sl(down, k - 1, k))
        if n != 2 * k - 1
        else (True, unsqueeze(kth, 1), sl(down, k - 1, k)),
        (True, total(up), total(x)),
        (True, sl(up, 0, 1), shaped("amin", [x, [1], True], (2, 1))),
        (True, unsqueeze(mid, 1), sl(down, n // 2, n // 2 + 1)),
        (True, unsqueeze(mid, 1), sl(up, (n - 1) // 2, (n - 1) // 2 + 1)),
        (False, up, x),
    )


def equal_numbers(d):
    """The first of equal ones, or the last."""
    n, top = d.pick(4, 6), d.pick(2, 3, 50, 3000)
    i = ints("i", top, 2, n)
    am = shaped("argmax", [i, 1], (2,), "i")
    back = el("rsub.Scalar", shaped("argmax", [flip(i, 1), 1], (2,), "i"), n - 1)
    m = shaped("amax", [i, [1], True], (2, 1), "i")
    hits = el("eq.Tensor", i, m, kind="b")
    kinds = d.pick(
        (False, am, back),
        (True, am, shaped("argmax", [i * 2 + 3, 1], (2,), "i")),
        (True, am, shaped("argmin", [-i, 1], (2,), "i")),
        (True, am, shaped("argmax", [to_int(hits), 1], (2,), "i")),
        (
            False,
            shaped("sum.dim_IntList", [to_int(hits), [1]], (2,), "i"),
            shaped("ones", [[2]], (2,), "i", dtype=Dtype("int64")),
        ),
        (
            True,
            shaped("any.dim", [hits, 1], (2,), "b"),
            shaped("ones", [[2]], (2,), "b", dtype=Dtype("bool")),
        ),
        (
            False,
            am,
            shaped(
                "argmax",
                [el("div.Tensor_mode", i, 2, kind="i", rounding_mode="floor"), 1],
                (2,),
                "i",
            ),
        ),
        (
            True,
            unsqueeze(shaped("amax", [i, [1]], (2,), "i"), 1),
            shaped("gather", [i, 1, unsqueeze(am, 1)], (2, 1), "i"),
        ),
    )
    return kinds


def ranked(d):
    """How many are smaller."""
    n = d.pick(3, 4, 5)
    x = var("x", "f", n)
    less = el("lt.Tensor", unsqueeze(x, 0), unsqueeze(x, 1), kind="b")
    leq = el("le.Tensor", unsqueeze(x, 0), unsqueeze(x, 1), kind="b")
    count = lambda b: shaped("sum.dim_IntList", [to_int(b), [1]], (n,), "i")
    order = item(several("sort", [x, 0], [((n,), "f"), ((n,), "i")]), 1)
    return d.pick(
        (False, count(less), count(leq) - 1),
        (True, el("rsub.Scalar", count(less), n), count(~less)),
        (
            True,
            to_float(compare("eq", count(less), 0)),
            to_float(el("eq.Tensor", x, shaped("amin", [x, [0]], ()), kind="b")),
        ),
        (
            False,
            to_float(compare("eq", count(leq), 1)),
            to_float(el("eq.Tensor", x, shaped("amin", [x, [0]], ()), kind="b")),
        ),
        (
            True,
            shaped("index_select", [x, 0, order], (n,)),
            item(several("sort", [x, 0], [((n,), "f"), ((n,), "i")]), 0),
        ),
        (
            True,
            count(less),
            shaped(
                "sum.dim_IntList",
                [to_int(el("gt.Tensor", unsqueeze(x, 1), unsqueeze(x, 0), kind="b")), [1]],
                (n,),
                "i",
            ),
        ),
    )


def bucketed(d):
    """On a boundary."""
    n = d.pick(3, 4)
    x = d.x
    edges = sorted(d.rng.sample([-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0, 3.5, 100.0], n))

    def count(op):
        s = None
        for e in edges:
            t = to_int(compare(op, x, e))
            s = t if s is None else s + t
        return s

    name = d.pick("ge", "gt")
    other = {"ge": "gt", "gt": "ge"}[name]
    other_form = count(other)
    c = count(name)
    rest = None
    for e in edges:
        t = to_int(~compare({"ge": "lt", "gt": "le"}[name], x, e))
        rest = t if rest is None else rest + t
    return d.pick(
        (False, c, other_form),
        (True, c, rest),
        (True, c, el("rsub.Scalar", el("rsub.Scalar", c, n), n)),
    )


def summed_thresholds(d):
    """Thresholds of what is summed up."""
    n = d.pick(3, 4, 6)
    x = var("x", "f", 2, n)
    b = compare("gt", x, d.pick(0.0, 1.0, 5.0))
    k = d.rng.randrange(1, n + 1)
    count = shaped("sum.dim_IntList", [to_int(b), [1]], (2,), "i")
    return d.pick(
        (True, compare("ge", count, n), shaped("all.dim", [b, 1], (2,), "b")),
        (n == 1, compare("ge", count, n - 1), shaped("all.dim", [b, 1], (2,), "b")),
        (True, compare("ge", count, 1), shaped("any.dim", [b, 1], (2,), "b")),
        (False, compare("ge", count, 2), shaped("any.dim", [b, 1], (2,), "b")),
        (True, compare("gt", count, k - 1), compare("ge", count, k)),
        (False, compare("gt", count, k), compare("ge", count, k)),
        (
            True,
            el("rsub.Scalar", count, n),
            shaped("sum.dim_IntList", [to_int(~b), [1]], (2,), "i"),
        ),
    )


def chosen(d):
    """The best, by a mask or by its place."""
    n = d.pick(3, 5)
    x, y = var("x", "f", 2, n), var("y", "f", 2, n)
    am = unsqueeze(shaped("argmax", [x, 1], (2,), "i"), 1)
    pick = shaped("gather", [y, 1, am], (2, 1))
    m = shaped("amax", [x, [1], True], (2, 1))
    hit = to_float(el("eq.Tensor", x, m, kind="b"))
    hot = to_float(shaped("one_hot", [shaped("argmax", [x, 1], (2,), "i"), n], (2, n), "i"))
    tot = lambda t: shaped("sum.dim_IntList", [t, [1], True], (2, 1))
    return d.pick(
        (True, pick, tot(y * hot)),
        (False, pick, tot(y * hit)),
        (True, shaped("gather", [x, 1, am], (2, 1)), m),
        (True, tot(x * hot), m),
        (False, tot(x * hit), m),
        (True, tot(hot), shaped("ones", [[2, 1]], (2, 1), "f")),
        (False, tot(hit), shaped("ones", [[2, 1]], (2, 1), "f")),
    )


KINDS = (sorted_rows, equal_numbers, ranked, bucketed, summed_thresholds, chosen)
