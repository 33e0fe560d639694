"""Kinds of rules that turn on where an operator chooses or jumps: each gives (true, left, right)
(branches.py)."""

import random

from branch_draw import *
from branch_terms import *


def thresholds(d):
    e, t, name = d.expression(), d.number(), d.pick("gt", "ge", "lt", "le")
    a = d.pick(d.y, el("exp", d.y), d.y * 2.0 + 7.0)
    how = d.pick("true", "true", "slip", "beside")
    c, right = compare(name, e, t), None
    if how == "true":
        right = spelled(d, name, e, t) if d.rng.random() < 0.7 else c
    else:
        right = compare(SLIP[name], e, t) if how == "slip" else compare(name, e, beside(d, t))
    state = d.rng.getstate()
    left = d.pick(*forms(d, c, a))
    after = d.rng.getstate()
    d.rng.setstate(state)
    chosen = forms(d, right, a)
    d.rng.setstate(after)
    right = d.pick(*chosen)
    return how == "true", left, right


def hidden_factor(d):
    """The factor is 0 where one would look first."""
    g, name = d.other(), d.pick("gt", "ge", "lt", "le")
    how = d.pick("true", "slip", "slip", "vanishes")
    c, x = compare(name, d.x, g), d.x
    if how == "vanishes":
        f = x - g
        return True, f * c, f * compare(SLIP[name], x, g)
    r = compare(SLIP[name], x, g) if how == "slip" else spelled(d, name, x, g)
    return (
        how == "true",
        d.pick(x * c, where(c, x, 0.0)),
        d.pick(x * r, where(r, x, 0.0), masked(x, ~r, 0.0)),
    )


def bounds(d):
    e, lo = d.expression(), d.number()
    hi = lo + (d.pick(0.5, 1.0, 4.0, 100.0) if d.reach[1] > 100 else 0.25)
    left = d.pick(
        clamp(e, lo, hi), el("clamp_max", el("clamp_min", e, lo), hi), el("hardtanh", e, lo, hi)
    )
    how = d.pick("true", "true", "beside", "one", "far")
    if how == "true":
        return (
            True,
            left,
            d.pick(
                where(compare("gt", e, hi), hi, where(compare("lt", e, lo), lo, e)),
                el("hardtanh", e, lo, hi),
                el("clamp_min", el("clamp_max", e, hi), lo),
                where(compare("ge", e, hi), hi, where(compare("le", e, lo), lo, e)),
            ),
        )
    if how == "beside":
        return (
            False,
            left,
            clamp(e, lo, hi + d.pick(0.5, 0.1))
            if d.rng.random() < 0.5
            else clamp(e, lo + d.pick(0.125, 0.1), hi),
        )
    e = d.pick(d.x, d.x + d.y, d.x * 2.0 + 1.0)
    if how == "one":
        return False, clamp(e, lo, hi), clamp(e, lo, None)
    return False, clamp(e, lo, lo + d.pick(3e4, 1e6)), clamp(e, lo, None)


def kinks(d):
    e, t = d.expression(), d.pick(0.5, 1.0, 0.25, 1.5)
    zero = el("relu", e)
    absolute = el("abs", e)
    true = d.rng.random() < 0.5
    twins = [
        (zero, e * compare("gt", e, 0.0)),
        (zero, where(compare("ge", e, 0.0), e, 0.0)),
        (absolute, where(compare("lt", e, 0.0), -e, e)),
        (el("hardshrink", e, t), where(compare("gt", absolute, t), e, 0.0)),
        (el("threshold", e, t, 9.0), where(compare("gt", e, t), e, 9.0)),
        (el("relu6", e), clamp(e, 0, 6)),
        (el("leaky_relu", e, 0.125), where(compare("gt", e, 0.0), e, e * 0.125)),
        (el("sign", e), to_float(compare("gt", e, 0.0)) - to_float(compare("lt", e, 0.0))),
        (el("softshrink", e, t), zero * 0.0 + e - clamp(e, -t, t)),
        (el("maximum", e, d.y * 2.0), where(compare("ge", e, d.y * 2.0), e, d.y * 2.0)),
    ]
    slips = [
        (el("hardshrink", e, t), where(compare("ge", absolute, t), e, 0.0)),
        (el("threshold", e, t, 9.0), where(compare("ge", e, t), e, 9.0)),
        (el("sign", e), to_float(compare("gt", e, 0.0)) * 2.0 - 1.0),
        (el("sign", e), to_float(compare("ge", e, 0.0)) - to_float(compare("lt", e, 0.0))),
        (el("threshold", e, t, 9.0), el("threshold", e, t * 1.0625, 9.0)),
        (el("hardshrink", e, t), el("hardshrink", e, t + 0.03125)),
    ]
    l, r = d.pick(*(twins if true else slips))
    return true, l, r


def roundings(d):
    k = d.pick(1.0, 2.0, 0.5, 4.0, 0.25)
    e = d.pick(d.x, d.x * k, d.x + d.y, d.x * 2.0 + 0.5, d.x * d.y, mean(d.x) * k)
    floor, ceil, rounded, trunc = (el(n, e) for n in ("floor", "ceil", "round", "trunc"))
    true = d.rng.random() < 0.5
    twins = [
        (floor, -el("ceil", -e)),
        (rounded, -el("round", -e)),
        (trunc, where(compare("ge", e, 0.0), floor, ceil)),
        (trunc, where(compare("gt", e, 0.0), floor, ceil)),
        (e - floor, el("remainder.Scalar", e, 1.0)),
        (el("frac", e), e - trunc),
        (el("div.Tensor_mode", e, k, rounding_mode="floor"), el("floor", el("div.Tensor", e, k))),
        (el("fmod.Scalar", e, k), e - el("trunc", el("div.Tensor", e, k)) * k),
        (trunc, el("sign", e) * el("floor", el("abs", e))),
    ]
    slips = [
        (rounded, el("floor", e + 0.5)),
        (rounded, el("ceil", e - 0.5)),
        (floor, trunc),
        (ceil, floor + 1.0),
        (rounded, el("sign", e) * el("floor", el("abs", e) + 0.5)),
        (el("frac", e), el("remainder.Scalar", e, 1.0)),
        (el("fmod.Scalar", e, k), el("remainder.Scalar", e, k)),
        (floor, ceil - 1.0),
        (
            el("div.Tensor_mode", e, k, rounding_mode="floor"),
            el("div.Tensor_mode", e, k, rounding_mode="trunc"),
        ),
        (trunc, el("floor", e + to_float(compare("lt", e, 0.0)))),
    ]
    l, r = d.pick(*(twins if true else slips))
    return true, l, r


def logic(d):
    e, t, name = d.expression(), d.number(), d.pick("gt", "ge", "lt", "le")
    f = d.y
    c = compare(name, e, t)
    true = d.rng.random() < 0.5
    s = (
        spelled(d, name, e, t)
        if true
        else compare(SLIP[name], e, t)
        if d.rng.random() < 0.7
        else compare(name, e, beside(d, t))
    )
    any_of = lambda x: shaped("any.dim", [x, -1, False], x.shape[:-1], "b")
    all_of = lambda x: shaped("all.dim", [x, -1, False], x.shape[:-1], "b")
    how = d.pick("any", "all", "count", "and")
    if how == "any":
        return true, any_of(c), ~all_of(~s)
    if how == "all":
        return true, all_of(c), ~any_of(~s)
    if how == "count":
        k = d.rng.randrange(1, d.shape[-1] + 1)
        n = lambda q: total(q)
        if d.rng.random() < 0.5:
            return True, compare("ge", n(c), k), compare("gt", n(c), k - 1)
        return false_count(d, n(c), k)
    g = compare("gt", f, 1.0)
    return (
        true,
        where(el("logical_and", c, g, kind="b"), d.x * 0.0 + 1.0, d.x * 0.0 - 1.0),
        where(el("logical_or", ~s, ~g, kind="b"), d.x * 0.0 - 1.0, d.x * 0.0 + 1.0),
    )


def false_count(d, n, k):
    return False, compare("ge", n, k), compare("gt", n, k)


def integers(d):
    """Tokens against constants, by themselves or behind arithmetic."""
    r = d.rng
    shape = d.pick((1,), (1,), (3,), (2, 4), (6,))
    large = d.pick(10, 64, 1000, 50000)
    i = var("ids", "i", *shape, limit=d.pick(None, None, large))
    table = var("w3", "f", large if i.limit is None else i.limit, 4)
    e = embedding(table, i)
    top = table.shape[0]
    t = r.randrange(1, top - 1)
    m, k = d.pick(3, 7, 10, 16, 512 if top > 600 else 5), d.pick(2, 4, 8, 100 if top > 300 else 3)
    name = d.pick("gt", "ge", "lt", "le")
    q = r.randrange(0, max(1, top // k - 1))
    rest = r.randrange(0, m)
    c = compare(name, i, t)
    step = {"gt": ("ge", t + 1), "ge": ("gt", t - 1), "lt": ("le", t - 1), "le": ("lt", t + 1)}[
        name
    ]
    within = lambda a, b, hi="lt": el(
        "logical_and", compare("ge", i, a), compare(hi, i, b), kind="b"
    )
    true = r.random() < 0.5
    if true:
        l, s = d.pick(
            (c, compare(step[0], i, step[1])),
            (c, spelled(d, name, i, t)),
            (c, compare(name, i * 2 + 1, 2 * t + 1)),
            (compare("ge", i, t), compare("gt", i * 3, 3 * t - 2)),
            (compare("eq", el("floor_divide", i, k), q), within(q * k, q * k + k)),
            (
                compare("eq", el("remainder.Scalar", i, m), rest),
                compare("eq", el("remainder.Scalar", i - rest, m), 0),
            ),
            (compare("eq", i, t), within(t, t, "le")),
            (compare("ne", i, t), ~compare("eq", i, t)),
            (compare("ge", el("floor_divide", i, k), q), compare("ge", i, q * k)),
        )
    else:
        l, s = d.pick(
            (c, compare(SLIP[name], i, t)),
            (c, compare(SLIP[name], i, t)),
            (c, compare(name, i, t + d.pick(1, -1))),
            (c, compare(name, i * 2 + 1, 2 * t + (3 if name in ("gt", "ge", "lt", "le") else 0))),
            (compare("eq", el("floor_divide", i, k), q), within(q * k, q * k + k, "le")),
            (
                compare("eq", el("remainder.Scalar", i, m), rest),
                compare("eq", el("remainder.Scalar", i, m), (rest + 1) % m),
            ),
            (compare("eq", i, t), within(t, t + 1, "le")),
            (
                compare("ge", i, t),
                el("logical_and", compare("ge", i, t), compare("ne", i, top - 1), kind="b"),
            ),
            (
                compare("ge", i, t),
                el("logical_or", compare("ge", i, t), compare("eq", i, t - 1), kind="b"),
            ),
        )
    use = d.pick("where", "mul", "fill")
    form = lambda b: (
        where(unsqueeze(b, -1), e, 0.0)
        if use == "where"
        else e * unsqueeze(b, -1)
        if use == "mul"
        else masked(e, unsqueeze(~b, -1), 0.0)
    )
    return true, form(l), form(s)


def repeats(d):
    n = d.pick(3, 4, 6)
    i = var("ids", "i", n, limit=d.pick(10, 500, 50000))
    row, column = unsqueeze(i, 0), unsqueeze(i, -1)
    p = var("x", "f", n, n)
    place = arange(n)
    eye = compare("eq", unsqueeze(place, -1), unsqueeze(place, 0))
    same = compare("eq", column, row)
    later = compare("gt", column, row)
    true = d.rng.random() < 0.5
    if true:
        l, r = d.pick(
            (same, ~compare("ne", row, column)),
            (later, ~compare("le", column, row)),
            (later, compare("lt", row, column)),
            (
                same,
                el("logical_and", compare("ge", row, column), compare("le", row, column), kind="b"),
            ),
            (el("logical_or", same, eye, kind="b"), same),
        )
    else:
        l, r = d.pick(
            (same, eye),
            (later, compare("ge", column, row)),
            (compare("ne", row, column), ~eye),
            (el("logical_or", later, eye, kind="b"), compare("ge", column, row)),
        )
    return true, masked(p, l, 0.0), d.pick(masked(p, r, 0.0), where(r, 0.0, p))


def windows(d):
    n = d.pick(3, 5)
    i = var("pos", "i", n, limit=d.pick(16, 4096, 100000))
    w = d.pick(1, 2, 8, 13)
    x = var("x", "f", n, n)
    far = unsqueeze(i, -1) - unsqueeze(i, 0)
    true = d.rng.random() < 0.5
    causal = compare("ge", far, 0)
    near = compare("lt", far, w)
    both = el("logical_and", causal, near, kind="b")
    if true:
        r = d.pick(
            ~el("logical_or", compare("lt", far, 0), compare("ge", far, w), kind="b"),
            el("logical_and", compare("gt", far, -1), compare("le", far, w - 1), kind="b"),
        )
    else:
        r = d.pick(
            el("logical_and", causal, compare("le", far, w), kind="b"),
            el("logical_and", compare("gt", far, 0), near, kind="b"),
            el("logical_and", causal, compare("lt", far, w + 1), kind="b"),
        )
    return true, where(both, x, 0.0), d.pick(where(r, x, 0.0), masked(x, ~r, 0.0))


def buckets(d):
    e = d.pick(d.x, d.x * 2.0, d.x + d.y, d.x - 0.5)
    n, at = d.pick(2, 3, 6), d.pick(0.0, 0.5, -1.0)
    edge = to_float(arange(n)) + at
    left = shaped("bucketize.Tensor", [e, edge], e.shape, "i", out_int32=False, right=False)
    right = shaped("bucketize.Tensor", [e, edge], e.shape, "i", out_int32=False, right=True)
    below, up_to = (
        total(compare("gt", unsqueeze(e, -1), edge)),
        total(compare("ge", unsqueeze(e, -1), edge)),
    )
    floor_of = lambda: clamp(el("ceil", e - at), 0, n)
    return d.pick(
        (True, left, below),
        (True, right, up_to),
        (False, left, up_to),
        (False, right, below),
        (False, left, right),
        (True, to_float(left), floor_of()),
        (False, to_float(right), floor_of()),
    )


def ranks(d):
    x = d.x
    n = x.shape[-1]
    k = d.rng.randrange(1, n + 1)
    kept = several(
        "topk", [x, k, -1, True, True], [(x.shape[:-1] + (k,), "f"), (x.shape[:-1] + (k,), "i")]
    )
    last = shaped("slice.Tensor", [item(kept, 0), -1, k - 1, k], x.shape[:-1] + (1,))
    ordered = several("sort", [x, -1, True], [(x.shape, "f"), (x.shape, "i")])
    kth = shaped("slice.Tensor", [item(ordered, 0), -1, k - 1, k], x.shape[:-1] + (1,))
    top = largest(x)
    first = shaped("argmax", [x, -1, True], x.shape[:-1] + (1,), "i")
    hot = compare("eq", arange(n), first)
    chosen = shaped(
        "any.dim", [compare("eq", unsqueeze(item(kept, 1), -1), arange(n)), -2, False], x.shape, "b"
    )
    best = several(
        "max.dim", [x, -1, True], [(x.shape[:-1] + (1,), "f"), (x.shape[:-1] + (1,), "i")]
    )
    return d.pick(
        (True, masked(x, compare("lt", x, last), -9.0), where(compare("ge", x, last), x, -9.0)),
        (False, masked(x, compare("lt", x, last), -9.0), where(compare("gt", x, last), x, -9.0)),
        (True, where(compare("ge", x, last), d.y, 0.0), where(~compare("lt", x, kth), d.y, 0.0)),
        (False, where(compare("ge", x, last), d.y, 0.0), where(compare("gt", x, last), d.y, 0.0)),
        (False, where(compare("ge", x, top), d.y, 0.0), where(hot, d.y, 0.0)),
        (True, where(compare("ge", x, top), d.y, 0.0), where(compare("eq", x, top), d.y, 0.0)),
        (False, where(compare("ge", x, last), d.y, 0.0), where(chosen, d.y, 0.0)),
        (True, masked(d.y, ~chosen, 0.0), where(chosen, d.y, 0.0)),
        (True, where(hot, d.y, 0.0), d.y * hot),
        (True, item(best, 0), top),
        (
            True,
            where(compare("eq", arange(n), item(best, 1)), d.y, 0.0),
            masked(d.y, compare("ne", item(best, 1), arange(n)), 0.0),
        ),
    )


def ties(d):
    """Which of equal numbers is found: the first one, or the last."""
    n, z = max(d.shape[-1], 2), var("z", "f", *d.shape)
    x, y = d.x, d.y
    e = d.pick(x, x, x + y, x * 2.0 + 1.0, x * y, el("relu", x), el("round", x))
    low = d.rng.random() < 0.3
    flip = lambda t: shaped("flip", [t, [-1]], t.shape)
    place = lambda t: shaped("argmin" if low else "argmax", [t, -1, True], t.shape[:-1] + (1,), "i")
    from_end = lambda t: el("rsub.Scalar", t, d.shape[-1] - 1)
    best = lambda t: several(
        "min.dim" if low else "max.dim",
        [t, -1, True],
        [(t.shape[:-1] + (1,), "f"), (t.shape[:-1] + (1,), "i")],
    )
    value = shaped("amin" if low else "amax", [e, [-1], True], e.shape[:-1] + (1,))
    results = [(e.shape, "f"), (e.shape, "i")]
    stable = lambda t, down: T(
        "sort.stable", [t], (), results, stable=True, dim=-1, descending=down
    )
    values = lambda t, down: item(several("sort", [t, -1, down], results), 0)
    gather = lambda t, i: shaped("gather", [t, -1, i], i.shape)
    first, last = place(e), from_end(place(flip(e)))
    at_best = compare("eq", e, value)
    end = lambda name, none: shaped(
        name, [where(at_best, arange(d.shape[-1]), none), [-1], True], value.shape, "i"
    )
    gathered = d.rng.random() < 0.5
    read = lambda l, r: (gather(z, l), gather(z, r)) if gathered else (l, r)
    hot = lambda i: z * compare("eq", arange(d.shape[-1]), i)
    head = lambda i: shaped("slice.Tensor", [i, -1, 0, 1], value.shape)
    down, up = stable(e, True), stable(e, False)
    if d.rng.random() < 0.5 or d.shape[-1] < 2:
        l, r = d.pick(
            read(first, item(best(e), 1)),
            read(first, place(e * 2.0 + 1.0)),
            read(last, from_end(item(best(flip(e)), 1))),
            (gather(e, first), value),
            (gather(e, last), value),
            read(first, end("amin", n)),
            read(last, end("amax", -1)),
            (values(e, True), flip(values(e, False))),
            read(item(down, 1), item(stable(-e, False), 1)),
            (gather(e, item(up, 1)), item(up, 0)),
            (hot(first), where(compare("eq", arange(d.shape[-1]), first), z, 0.0)),
        )
        return True, l, r
    l, r = d.pick(
        read(first, last),
        read(first, end("amax", -1)),
        read(last, end("amin", n)),
        read(head(item(down, 1)), head(flip(item(up, 1)))),
        (hot(first), z * at_best),
        (hot(last), hot(first)),
        read(last, item(best(e), 1)),
        (hot(last), z * at_best),
        read(
            last,
            item(
                several(
                    "topk", [e, 1, -1, not low, True], [(value.shape, "f"), (value.shape, "i")]
                ),
                1,
            ),
        ),
    )
    return False, l, r


def clamped_integers(d):
    i = var("ids", "i", *d.pick((1,), (4,), (2, 3)))
    a = d.rng.randrange(-3, 2000)
    b = a + d.rng.randrange(1, 300)
    m = d.pick(3, 5, 64)
    return d.pick(
        (True, clamp(i, a, b), where(compare("gt", i, b), b, where(compare("lt", i, a), a, i))),
        (False, clamp(i, a, b), clamp(i, a, b + 1)),
        (False, clamp(i, a, b), clamp(i, a + 1, b)),
        (
            False,
            clamp(i, a, b),
            where(compare("gt", i, b), b - 1, where(compare("lt", i, a), a, i)),
        ),
        (True, el("floor_divide", i, m), el("floor_divide", i - el("remainder.Scalar", i, m), m)),
        (False, el("floor_divide", i, m), el("floor_divide", i + 1, m)),
        (False, el("remainder.Scalar", i, m), el("fmod.Scalar", i, m)),
        (True, el("relu", i), clamp(i, 0, None)),
        (False, el("relu", i), clamp(i, 1, None)),
        (True, el("maximum", i, i * 2), where(compare("ge", i, 0), i * 2, i)),
        (False, el("floor_divide", i + (m - 1), m), el("floor_divide", i, m) + 1),
    )


def nested(d):
    """A choice inside another one's branch, of a variable of its own: beside exp(x) - y a
    threshold of y may lie where the branch is never taken."""
    e, t = d.expression(), d.number()
    f, u = var("z", "f", *d.shape) * 2.0, d.pick(0.5, -1.0, 3.0)
    name, inner = d.pick("gt", "ge", "lt", "le"), d.pick("gt", "ge", "lt", "le")
    a, b = d.x + 7.0, d.y - 3.0
    c = compare(name, e, t)
    how = d.pick("true", "inner", "outer", "true")
    k = compare(SLIP[inner] if how == "inner" else inner, f, u)
    o = compare(SLIP[name], e, t) if how == "outer" else spelled(d, name, e, t)
    left = where(c, where(compare(inner, f, u), a, b), b)
    return (
        how == "true",
        left,
        d.pick(
            where(o, where(k, a, b), b),
            where(~o, b, where(~k, b, a)),
            where(el("logical_and", o, k, kind="b"), a, b),
        ),
    )


def dead_factors(d):
    """A factor that is 0 on one side of another choice."""
    t, x = d.pick(0.5, 1.0, 2.0), d.x
    up, g = el("relu", x), d.other()
    return d.pick(
        (True, up * compare("gt", x, -t), up),
        (False, up * compare("gt", x, t), up),
        (False, up * compare("gt", x, t), up * compare("ge", x, t)),
        (True, up * compare("ge", x, 0.0), up * compare("gt", x, 0.0)),
        (False, el("abs", x) * compare("gt", x, g), el("abs", x) * compare("ge", x, g)),
        (False, x * x * compare("gt", x, d.y), x * x * compare("ge", x, d.y)),
        (False, (x - t) * compare("gt", x, d.y), (x - t) * compare("ge", x, d.y)),
        (True, (x - t) * compare("gt", x, t), (x - t) * compare("ge", x, t)),
        (
            False,
            el("tanh", x) * d.y * compare("le", x, d.y),
            el("tanh", x) * d.y * compare("lt", x, d.y),
        ),
    )


def equalities(d):
    x, y = d.x, d.y
    t = d.pick(0.0, 0.3, 2.0, -7.5, 1000.5)
    z = var("z", "f", *d.shape)
    top = el("maximum", x, y)
    signs = el("sign", x)
    return d.pick(
        (False, where(compare("eq", x, y), z, y), y),
        (False, where(compare("eq", x, t), z, y), y),
        (False, where(compare("ne", x, y), z, x), z),
        (True, where(compare("eq", x, y), x, z), where(compare("eq", x, y), y, z)),
        (True, compare("eq", top, x), compare("ge", x, y)),
        (False, compare("eq", top, x), compare("gt", x, y)),
        (False, signs * signs, x * 0.0 + 1.0),
        (True, signs * el("sign", y), el("sign", x * y)),
        (True, signs * signs, to_float(compare("ne", x, 0.0))),
        (False, where(compare("eq", mean(x), mean(y)), z, y), y),
        (False, where(compare("eq", x * 2.0 - 1.0, y), z, x), x),
        (True, el("abs", x) * signs, x),
        (
            True,
            el("logical_xor", compare("gt", x, t), compare("gt", y, t), kind="b"),
            compare("ne", compare("gt", x, t), compare("gt", y, t)),
        ),
        (
            False,
            el("logical_xor", compare("gt", x, t), compare("gt", y, t), kind="b"),
            compare("ne", compare("gt", x, t), compare("ge", y, t)),
        ),
    )


def sums(d):
    """Comparisons of what is summed up."""
    x, y, name, t = d.x, d.y, d.pick("gt", "ge", "lt", "le"), d.number_of(-9e9, 9e9)
    n = x.shape[-1]
    a, b = d.pick(
        (mean(x), mean(y)),
        (mean(x), t),
        (largest(x), t),
        (largest(x), mean(y)),
        (mean(x * y), t),
        (mean(x * x), abs(t) + 1.0),
    )
    c = compare(name, a, b)
    how = d.pick("true", "slip", "scaled")
    if how == "scaled" and isinstance(b, float) and b:
        return True, where(c, y, 0.0), where(compare(name, a * 2.0, b * 2.0), y, 0.0)
    r = compare(SLIP[name], a, b) if how == "slip" else spelled(d, name, a, b)
    return how != "slip", where(c, y, 0.0), d.pick(where(~r, 0.0, y), masked(y, ~r, 0.0))


def quantised(d):
    x, step = d.x, d.pick(0.5, 0.25, 2.0, 1.0)
    v = x * (1 / step)
    low, high = d.pick((-128.0, 127.0), (-8.0, 7.0), (0.0, 15.0))
    q = clamp(el("round", v), low, high)
    return d.pick(
        (True, q * step, clamp(el("round", v), low, high) * step),
        (True, q, el("round", clamp(v, low, high))),
        (False, q, clamp(el("floor", v + 0.5), low, high)),
        (False, q, clamp(el("round", v), low + 1, high)),
        (False, q, clamp(el("trunc", v), low, high)),
        (False, q, clamp(el("round", v), low, high + 1)),
        (True, to_int(q), clamp(to_int(el("round", v)), int(low), int(high)))
        if False
        else (True, q, el("hardtanh", el("round", v), low, high)),
    )


def tokens(d):
    """Arithmetic of integers, in large tables."""
    r = d.rng
    top = d.pick(16, 1000, 50000, 128256)
    i = var("ids", "i", *d.pick((1,), (1,), (4,), (2, 3)), limit=top)
    t = r.randrange(2, top - 2)
    table = var("w3", "f", top, 3)
    e = embedding(table, i)
    a, b = t, r.randrange(1, top - 1)
    name = d.pick("gt", "ge", "lt", "le")
    m = d.pick(2, 3, 10, 100 if top > 200 else 5)
    k = r.randrange(0, top // m)
    special = lambda *of: [compare("eq", i, v) for v in of]
    any_of = lambda c: c[0] if len(c) == 1 else el("logical_or", c[0], any_of(c[1:]), kind="b")
    l, s, true = d.pick(
        (compare("eq", (i - a) * (i - b), 0), any_of(special(a, b)), True),
        (compare("eq", (i - a) * (i - b), 0), any_of(special(a)), a == b),
        (compare(name, i * m, t * m), compare(name, i, t), True),
        (compare(name, i * m, t * m), compare(SLIP[name], i, t), False),
        (any_of(special(a, b)), any_of(special(b, a)), True),
        (any_of(special(a, b)), any_of(special(a)), a == b),
        (compare("gt", el("floor_divide", i, m), k), compare("ge", i, (k + 1) * m), True),
        (compare("gt", el("floor_divide", i, m), k), compare("gt", i, (k + 1) * m), False),
        (
            compare("eq", el("remainder.Scalar", i, m), 0),
            compare("eq", el("floor_divide", i, m) * m, i),
            True,
        ),
        (
            compare("eq", el("remainder.Scalar", i, m), 0),
            compare("eq", el("remainder.Scalar", i, m * 2), 0),
            False,
        ),
        (compare(name, i, t), compare(name, el("clamp_max", i, t + 1), t), name not in ("zz",)),
        (compare("gt", i, t), compare("gt", el("clamp_max", i, t), t - 1), False),
    )
    c = lambda q: unsqueeze(q, -1)
    return (
        true,
        d.pick(where(c(l), e, 0.0), e * c(l)),
        d.pick(where(c(s), e, 0.0), masked(e, c(~s), 0.0)),
    )


def attention(d):
    n, h = d.pick(3, 4, 6), 4
    q, k, v = (var(name, "f", n, h) for name in "qkv")
    at = var("pos", "i", n, limit=d.pick(16, 4096))
    w = d.pick(2, 5)
    far = unsqueeze(at, -1) - unsqueeze(at, 0)
    scores = shaped("matmul", [q, transposed(k)], (n, n))
    name, bound = d.pick(("ge", 0), ("gt", -w), ("le", w))
    keep = compare(name, far, bound)
    true = d.rng.random() < 0.5
    other = (
        d.pick(~compare(OPPOSITE[name], far, bound), compare(TURNED[name], -far, -bound))
        if true
        else d.pick(
            compare(SLIP[name], far, bound - 1 if name == "gt" else bound + 1),
            compare(name, far, bound - 1),
        )
        if name == "ge"
        else compare(SLIP[name], far, bound)
    )
    if not true and name == "ge":
        other = compare("ge", far, -1)
    if not true and name == "gt":
        other = compare("ge", far, -w)
    value = d.pick(-1e4, -30.0)
    soft = lambda s: shaped("matmul", [shaped("softmax.int", [s, -1], (n, n)), v], (n, h))
    return (
        true,
        soft(where(keep, scores, value)),
        soft(d.pick(masked(scores, ~other, value), where(~other, value, scores))),
    )


def fills(d):
    """A literal that a maximum, a choice or a softmax weighs against values."""
    n, rows = d.pick(4, 6, 8), d.pick(2, 3)
    x = var("x", "f", rows, n)
    far = d.pick(1e4, 1e5, 1e6, 1e9, 1e20)
    true = d.rng.random() < 0.5
    low = d.rng.random() < 0.7
    value = (-1 if low else 1) * (float("inf") if true else far)
    more = shaped("full", [[rows, 2], value], (rows, 2), "f")
    e = d.pick(x, x * 2.0, x + 1.0)
    wide = shaped("cat", [[e, more], -1], (rows, n + 2), "f")
    best = lambda t: shaped("amax" if low else "amin", [t, [-1], True], (rows, 1))
    return true, best(e), best(wide)


def joint(d):
    """Conditions that are rare, and what holds where several do."""
    i, j = (var(v, "i", *d.shape, limit=d.pick(100, 5000)) for v in "ij")
    a, b = d.rng.randrange(2, 98), d.rng.randrange(2, 98)
    c1, c2 = compare("eq", i, a), compare("eq", j, b)
    if d.rng.random() < 0.5:
        x, y, w = d.x, d.y, d.pick(0.01, 0.001)
        near = lambda v: compare("lt", el("abs", v - d.pick(3.0, -3.5, 12.125, 8.0)), w)
        c1, c2 = near(x), near(y)
    f, g = to_float(c1), to_float(c2)
    either = el("logical_or", c1, c2, kind="b")
    z = var("z", "f", *d.shape)
    return d.pick(
        (False, z * to_float(either), z * (f + g)),
        (True, z * to_float(either), z * (f + g - f * g)),
        (False, to_float(either), to_float(el("logical_xor", c1, c2, kind="b"))),
        (True, to_float(either), el("maximum", f, g)),
        (False, masked(masked(z, c1, 1.0), c2, 2.0), masked(masked(z, c2, 2.0), c1, 1.0)),
        (True, masked(masked(z, c1, 1.0), c2, 2.0), where(c2, 2.0, masked(z, c1, 1.0))),
        (False, f + g, f + g - f * g),
        (True, f * g, to_float(el("logical_and", c1, c2, kind="b"))),
    )


def neighbours(d):
    """Tokens in a row: slices of one tensor."""
    n, top = d.pick(6, 8), d.pick(50, 5000)
    i = var("ids", "i", n, limit=top)
    a, b = d.rng.sample(range(2, top - 1), 2)
    first = shaped("slice.Tensor", [i, 0, 0, n - 1], (n - 1,))
    second = shaped("slice.Tensor", [i, 0, 1, n], (n - 1,))
    p, q = to_float(compare("eq", first, a)), to_float(compare("eq", second, b))
    return d.pick(
        (False, p + q, p + q - p * q),
        (True, p + q - p * q, el("maximum", p, q)),
        (False, p + q, el("maximum", p, q)),
        (True, p * q, el("minimum", p, q)),
    )


def duplicates(d):
    """The same place twice, in a large table."""
    n, k = d.pick(300, 1000, 2000), d.pick(2, 3)
    i, y, w = var("slots", "i", k, limit=n), var("y", "f", k), var("w3", "f", n)
    read = lambda t: shaped("index_select", [t, 0, i], (k,))
    added = shaped("index_add", [w, 0, i, y], (n,))
    put = shaped("scatter.src", [w, 0, i, y], (n,))
    return d.pick(
        (True, added, shaped("scatter_add", [w, 0, i, y], (n,))),
        (False, read(added), read(w) + y),
        (False, read(put), y),
        (False, added, shaped("scatter.src", [w, 0, i, read(w) + y], (n,))),
        (True, read(w) + y, y + read(w)),
    )


def apart(d):
    """Integers that are one apart, or equal, among thousands."""
    top = d.pick(50, 5000, 100000)
    i, j = (var(v, "i", *d.shape, limit=top) for v in "ij")
    return d.pick(
        (False, compare("gt", i, j), compare("ge", i, j + 2)),
        (True, compare("gt", i, j), compare("ge", i, j + 1)),
        (False, compare("ge", i, j), compare("gt", i, j)),
        (False, compare("lt", i, j + 1), compare("le", i, j + 1)),
        (True, compare("ne", i, j), ~compare("eq", i, j)),
    )


KINDS = {
    f.__name__: f
    for f in (
        thresholds,
        hidden_factor,
        bounds,
        kinks,
        roundings,
        logic,
        integers,
        repeats,
        windows,
        buckets,
        ranks,
        clamped_integers,
        nested,
        ties,
        dead_factors,
        equalities,
        sums,
        quantised,
        tokens,
        attention,
        fills,
        joint,
        neighbours,
        duplicates,
        apart,
    )
}


BARE = set()  # those whose differences a sum would hide


def instance(seed, k, only):
    rng = random.Random("%s %d" % (seed, k))
    names = [n for n in KINDS if only in n]
    d = Draw(rng)
    d.of_rule = not str(seed).startswith("pair")
    kind = names[k % len(names)]
    true, left, right = KINDS[kind](d)
    if kind in BARE:
        return "%s%s-%d" % ("" if true else "no-", kind, k), true, left, right, rng
    state = rng.getstate()
    left = d.context(left)
    rng.setstate(state)
    right = d.context(right)
    return "%s%s-%d" % ("" if true else "no-", kind, k), true, left, right, rng
