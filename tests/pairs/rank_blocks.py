"""Rows on two ranks that see scores in two blocks: matrices of any number of dimensions, blocks of
other widths, and maxima of tensors that cannot be put together. `SIDES[name](wrong)` are both sides
of a pair as parallel.write_sides() takes them; a wrong one forgets a factor."""

from parallel import Outputs
from world import Named, World

SIDES = {}


def pair(name, of, *args):
    def sides(wrong=False):
        out = []
        for n in (1, 2):
            w, o = World(Named(), n), Outputs()
            of(w, o, wrong and n == 2, *args)
            out.append((w.g, o))
        return out

    SIDES[name] = sides


def product(a, b):
    return a.map(lambda x, y: x.mm(y) if len(x.shape) == len(y.shape) == 2 else x.matmul(y), b)


def online(w, o, wrong, lead, widths, values):
    """lead: dimensions in front of the rows'; values: shapes behind these of each block."""
    q = w.cut_x("q", 0, 4, 4)
    o.inputs(w, 0, "q")
    if lead:
        q = q.view(*[1] * len(lead), q.shape[0], 4).expand(*lead, q.shape[0], 4)
    top = total = out = None
    for i, (n, shape) in enumerate(zip(widths, values)):
        s, v = product(q, w.x("k%d" % i, n, 4).t()), w.x("v%d" % i, *shape)
        here = s.map(lambda t: t.amax(-1, True))
        new = top.map(lambda a, b: a.maximum(b), here) if top else here
        e = s.sub(new).exp()
        y = e.map(lambda x, y: x.matmul(y), v) if len(shape) == 1 else product(e, v)
        y = y.unsqueeze(-1) if len(shape) == 1 else y
        by = top.map(lambda a, b: a.sub(b).exp(), new) if top else None
        total = total * by + e.sum([-1], True) if top else e.sum([-1], True)
        out = (out if wrong else out * by) + y if top else y
        top = new
    o.parts("y", out / total, len(out.shape) - 2)


def largest(w, o, wrong, shape, d):
    """The larger of two maxima, of tensors of different shapes."""
    x, y = w.cut_x("x", 0, 8, 6), w.x("y", *shape)
    o.inputs(w, 0, "x")
    a, b = x.map(lambda t: t.amax(1, True)), y.map(lambda t: t.amax(d, True))
    m = a.map(lambda p, q: p.minimum(q) if wrong else p.maximum(q), b)
    o.parts("y", m.exp(), len(shape) - 2)


EVEN = (8, 8)
pair("two dimensions", online, (), EVEN, ((8, 4), (8, 4)))
pair("four dimensions", online, (1, 2), EVEN, ((8, 4), (8, 4)))
pair("blocks of other widths", online, (), (8, 3), ((8, 4), (3, 4)))
pair("values of one column", online, (), EVEN, ((8,), (8,)))
pair("values of other batches", online, (1,), EVEN, ((1, 8, 4), (3, 8, 4)))
pair("a maximum of one row", largest, (1, 6), 1)
pair("a maximum of more dimensions", largest, (2, 1, 6), 2)
