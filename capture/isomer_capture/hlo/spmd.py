"""Collectives: what ranks exchange, in groups."""

import torch

from . import regions, shapes
from .build import Unsupported
from .elementwise import binary
from .indexing import numbers
from .sharding import pairs, replica_groups

COLLECTIVES = (
    "all-reduce",
    "all-gather",
    "reduce-scatter",
    "all-to-all",
    "collective-permute",
    "collective-broadcast",
)
SUMS = {"add": "sum", "maximum": "max", "minimum": "min"}


def collective(p, opcode, i, operands, active):
    """The result for each active rank."""
    if opcode == "collective-permute":
        return each(operands, active, lambda xs: permuted(p, i, xs, active))
    groups = replica_groups(i.attributes, p.ranks)
    groups = [g for g in groups if any(r in active for r in g)]
    if any(r not in active for g in groups for r in g):
        raise Unsupported("some ranks of a group do not come here: the others wait for ever")
    if opcode == "all-to-all" and isinstance(i.shape, tuple):
        return exchange_tuples(operands, groups)
    form = FORMS[opcode]
    return each(operands, active, lambda xs: grouped(p, i, xs, groups, form))


def grouped(p, i, xs, groups, form):
    out = {}
    for g in groups:
        p.place(i, g[0])
        results = form(p, i, [xs[r] for r in g])
        out.update(zip(g, results))
    return out


def each(operands, active, one):
    """One operand at a time; a collective of several gives a tuple."""
    n = len(operands[active[0]])
    results = [one({r: operands[r][k] for r in active}) for k in range(n)]
    return {r: results[0][r] if n == 1 else tuple(x[r] for x in results) for r in active}


def total(p, i, xs):
    """One tensor: the reduction of all of them."""
    name = regions.reducer(p.callee(i, "to_apply"))
    if len(xs) == 1:
        return xs[0]
    if name in SUMS and xs[0].dtype != torch.bool:
        return p.b.collective("dist::all_reduce", xs[0].meta, list(xs), SUMS[name])
    kind = "pred" if xs[0].dtype == torch.bool else "f32"
    out = xs[0]
    for x in xs[1:]:
        out = binary(p.b, name, out, x, kind, out.shape)
    return out


def all_reduce(p, i, xs):
    return [total(p, i, xs)] * len(xs)


def all_gather(p, i, xs):
    d = numbers(i.attributes.get("dimensions"))[0]
    if len(xs) == 1:
        return xs
    meta = torch.cat([x.meta for x in xs], d)
    return [p.b.collective("dist::all_gather", meta, list(xs), d)] * len(xs)


def reduce_scatter(p, i, xs):
    d, n = numbers(i.attributes.get("dimensions"))[0], len(xs)
    if xs[0].shape[d] % n:
        raise Unsupported("%d elements for %d ranks" % (xs[0].shape[d], n))
    step = xs[0].shape[d] // n
    name = regions.reducer(p.callee(i, "to_apply"))
    if name == "add" and n > 1 and xs[0].dtype != torch.bool:
        meta = xs[0].meta.narrow(d, 0, step)
        return p.b.several("dist::reduce_scatter", [meta] * n, list(xs), "sum", d)
    whole = total(p, i, xs)
    return [shapes.slice_(p.b, whole, d, k * step, (k + 1) * step) for k in range(n)]


def all_to_all(p, i, xs):
    """Part k of every rank goes to rank k of the group, which puts them one behind the other."""
    d, n = numbers(i.attributes.get("dimensions"))[0], len(xs)
    if xs[0].shape[d] % n:
        raise Unsupported("%d elements for %d ranks" % (xs[0].shape[d], n))
    step = xs[0].shape[d] // n
    return [
        shapes.cat(p.b, [shapes.slice_(p.b, x, d, k * step, (k + 1) * step) for x in xs], d)
        for k in range(n)
    ]


def broadcast(p, i, xs):
    return [xs[0]] * len(xs)


FORMS = {
    "all-reduce": all_reduce,
    "all-gather": all_gather,
    "reduce-scatter": reduce_scatter,
    "all-to-all": all_to_all,
    "collective-broadcast": broadcast,
}


def exchange_tuples(operands, groups):
    """Operand k of every rank goes to rank k of the group."""
    out = {}
    for g in groups:
        if any(len(operands[r]) != len(g) for r in g):
            raise Unsupported(
                "all-to-all of %d operands in groups of %d" % (len(operands[g[0]]), len(g))
            )
        for k, r in enumerate(g):
            out[r] = tuple(operands[s][k] for s in g)
    return out


def permuted(p, i, xs, active):
    """The tensor that a rank is sent; zeros where nobody sends."""
    source = {t: s for s, t in pairs(i.attributes.get("source_target_pairs"))}
    out = {}
    for r in active:
        if r not in source:
            p.place(i, r)
            out[r] = p.b.full(xs[r].shape, 0, xs[r].dtype)
        elif source[r] in xs:
            out[r] = xs[source[r]]
        else:
            raise Unsupported("rank %d waits for a rank that does not come here" % r)
    return out
