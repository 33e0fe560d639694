"""Kinds of corners.py: events that take several conditions, in as many spellings."""

from branch_terms import compare, el, shaped, to_float, to_int, var, where
from corners_integers import ints


def cat(parts, d):
    s = parts[0].shape
    n = sum(p.shape[d] for p in parts)
    return shaped("cat", [parts, d], s[:d] + (n,) + s[d + 1 :], parts[0].kind)


def stacked(parts):
    return shaped("stack", [parts, 0], (len(parts),) + parts[0].shape, parts[0].kind)


def folded(parts, op):
    out = parts[0]
    for p in parts[1:]:
        out = op(out, p)
    return out


def both(a, b):
    return el("logical_and", a, b, kind="b")


def all_of(d, conditions, how):
    """1.0 where all hold."""
    flags = [to_float(c) for c in conditions]
    k = len(conditions)
    if how == "and":
        return to_float(folded(conditions, both))
    if how == "product":
        return folded(flags, lambda a, b: a * b)
    if how == "least":
        return folded(flags, lambda a, b: el("minimum", a, b))
    if how == "none":
        return to_float(
            ~folded([~c for c in conditions], lambda a, b: el("logical_or", a, b, kind="b"))
        )
    if how == "count":
        count = folded([to_int(c) for c in conditions], lambda a, b: a + b)
        return to_float(compare("eq", count, k))
    if how == "many":
        return el("relu", folded(flags, lambda a, b: a + b) - (k - 1.0))
    if how == "stack":
        return to_float(shaped("all.dim", [stacked(conditions), 0], conditions[0].shape, "b"))
    if how == "prod":
        return shaped("prod.dim_int", [stacked(flags), 0], flags[0].shape)
    one = flags[0] * 0.0 + 1.0
    for c in conditions:
        one = where(c, one, 0.0)
    return one


HOW = ("and", "product", "least", "none", "count", "many", "stack", "prod", "nested")


def condition(d, k, shape):
    """One that a few inputs meet, on a variable of its own or on one that others read too."""
    kind = d.pick("token", "token", "above", "near", "zero", "huge", "below", "flag", "equal")
    x = var("xyz"[k % 3] + str(k), "f", *shape)
    if kind == "token":
        i = ints("i%d" % k, d.pick(10, 1000, 32000), *shape)
        return compare("eq", i, d.rng.randrange(i.limit))
    if kind == "equal":
        i, j = (ints("%s%d" % (c, k), d.pick(50, 1000), *shape) for c in "ab")
        return compare("eq", i, j)
    if kind == "flag":
        return var("m%d" % k, "b", *shape)
    if kind == "near":
        return compare("lt", el("abs", x - d.pick(3.25, -7.5, 100.0)), d.pick(0.05, 1e-3))
    if kind == "zero":
        return compare("eq", x, 0.0)
    if kind == "huge":
        return compare("gt", x, d.pick(50.0, 1e4))
    return compare("gt" if kind == "above" else "lt", x, d.pick(1.5, -2.0, 0.0))


def conjunctions(d):
    shape = d.pick((4,), (2, 3))
    n = d.rng.randrange(2, 8 if d.of_rule else 4)  # of pairs many rules are tried
    conditions = [condition(d, k, shape) for k in range(n)]
    z = var("z", "f", *shape)
    a, b = d.rng.sample(HOW, 2)
    v = d.pick(1.0, 0.5, -2.0)
    event = all_of(d, conditions, a)
    same = z + event * v
    every = folded([to_float(c) for c in conditions], lambda p, q: p + q)
    return d.pick(
        (True, same, z + all_of(d, conditions[::-1], b) * v),
        (True, z + every + event, every + all_of(d, conditions, b) + z),
        (False, z + every, z + every + event * v),
        (False, z * 1.0, z + event * v),
        (False, same, z + all_of(d, conditions[:-1] + [~conditions[-1]], b) * v),
    )


def rows(d):
    """An event of a whole row."""
    n = d.pick(4, 6, 12)
    x = var("x", "f", 2, n)
    i = ints("i", d.pick(5, 100, 5000), 2, n)
    z = var("z", "f", 2)
    sl = lambda t, a, b: shaped("slice.Tensor", [t, 1, a, b], (2, b - a), t.kind)
    step = lambda t, op: el(op + ".Tensor", sl(t, 1, n), sl(t, 0, n - 1), kind="b")
    every = lambda c: to_float(shaped("all.dim", [c, 1], (2,), "b"))
    some = lambda c: to_float(shaped("any.dim", [c, 1], (2,), "b"))
    amount = lambda c: shaped("sum.dim_IntList", [to_int(c), [1]], (2,), "i")
    rising, level = step(x, "gt"), step(i, "eq")
    positive = compare("gt", x, d.pick(0.0, 2.0))
    token = compare("eq", i, d.rng.randrange(i.limit))
    c = d.pick(rising, level, positive, token)
    m = c.shape[1]
    return d.pick(
        (False, z, z + every(c)),
        (True, z + every(c), z + to_float(compare("eq", amount(c), m))),
        (True, z + every(c), z + el("rsub.Scalar", some(~c), 1.0)),
        (False, to_float(amount(c)), to_float(el("remainder.Scalar", amount(c), m))),
        (True, to_float(amount(c)), to_float(el("remainder.Scalar", amount(c), m + 1))),
        (False, to_float(amount(c)), to_float(el("clamp", amount(c), 0, m - 1, kind="i"))),
        (True, to_float(amount(c)), to_float(el("clamp", amount(c), 0, m, kind="i"))),
    )


def chains(d):
    """Equalities of neighbours, of three numbers, of sums."""
    n, top = d.pick(4, 6), d.pick(6, 50, 3000)
    a, b, c = (ints(v, top, n) for v in "abc")
    z = var("z", "f", n)
    ab, bc, ac = compare("eq", a, b), compare("eq", b, c), compare("eq", a, c)
    x, y = var("x", "f", n), var("y", "f", n)
    s = compare("eq", a + b, top)
    return d.pick(
        (True, to_float(both(ab, bc)), to_float(both(both(ab, bc), ac))),
        (
            False,
            to_float(both(ab, bc)),
            to_float(el("logical_xor", ab, ~bc, kind="b")) * to_float(ab) * 0.0,
        ),
        (True, to_float(both(ab, bc)), to_float(both(ac, bc))),
        (False, z, z + to_float(both(ab, bc))),
        (
            False,
            to_float(ab) + to_float(bc),
            to_float(ab) + to_float(bc) + to_float(ac) * to_float(ab),
        ),
        (False, z, z + to_float(both(s, ab)) if top % 2 == 0 else z + to_float(both(s, bc))),
        (True, to_float(s), to_float(compare("eq", a, el("rsub.Scalar", b, top)))),
        (True, z, z + to_float(both(compare("gt", x, y), compare("gt", y, x)))),
        (False, z, z + to_float(both(compare("ge", x, y), compare("ge", y, x)))),
    )


def behind(d):
    """A condition on what arithmetic makes of several numbers."""
    n = d.pick(3, 5)
    x, y, z = (var(v, "f", n) for v in "xyz")
    e = d.pick(
        lambda: x * x + y * y,
        lambda: x * y,
        lambda: el("exp", x) + el("exp", y),
        lambda: el("sin", x * 3.0) * y,
        lambda: el("abs", x) - el("abs", y),
        lambda: el("maximum", x, y),
    )()
    t = d.pick(1e3, 1e6, 30.0, 77.7, 2.5e4)
    c = compare("gt", e, t)
    far = compare("gt", e, t * 1.5)
    band = both(c, ~far)
    return d.pick(
        (False, z, z + to_float(c)),
        (False, z + to_float(c), z + to_float(far)),
        (True, z + to_float(c), z + to_float(band) + to_float(far)),
        (False, z, z + to_float(band)),
        (False, z, where(c, z * 2.0, z)),
        (True, where(c, z * 2.0, z), z * (to_float(c) + 1.0)),
        (False, el("clamp_max", e, t), el("clamp_max", e, t * 1.5)),
        (False, e, el("clamp_max", e, t)),
    )


def places(d):
    """Values read at the place where a row has its largest one."""
    n = d.pick(3, 5)
    x, z = var("x", "f", 2, n), var("z", "f", 2)
    am = shaped("argmax", [x, 1], (2,), "i")
    an = shaped("argmin", [x, 1], (2,), "i")
    first = lambda t, k: shaped("select.int", [t, 0, k], (), t.kind)
    same = compare("eq", first(am, 0), first(am, 1))
    apart = compare("eq", first(am, 0), first(an, 1) + (n - 1))
    i = ints("i", n, 2)
    hit = compare("eq", am, i)
    return d.pick(
        (False, z, z + to_float(same)),
        (False, z, z + to_float(apart)),
        (False, z, z + to_float(both(same, compare("eq", first(am, 0), n - 1)))),
        (True, z + to_float(hit), z + to_float(compare("eq", am - i, 0))),
        (False, z, z + to_float(compare("eq", am, an))),
        (False, to_float(am) + to_float(an), to_float(el("clamp", am + an, 1, 2 * n, kind="i"))),
        (False, z, z + to_float(both(hit, compare("gt", z, 2.0)))),
    )


KINDS = (conjunctions, rows, chains, behind, places)
