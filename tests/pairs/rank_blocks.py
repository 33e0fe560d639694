"""Rows on two ranks that see scores in two blocks: matrices of any number of dimensions, blocks of
other widths, and maxima of tensors that cannot be put together; and keys and values that go round
a ring of two or three ranks under a causal mask, with the gradients, or with a table added to the
scores. `SIDES[name](wrong)` are both sides of a pair as parallel.write_sides() takes them; a wrong
one forgets a factor, or has one number of one rank's part of the table from the place beside it."""

import math

from dsl import Data, Tensor, boolean, f32
from parallel import Outputs, causal
from world import Named, World

SIDES = {}


def pair(name, of, *args, ranks=2):
    def sides(wrong=False):
        out = []
        for n in (1, ranks):
            w, o = World(Named(), n), Outputs()
            of(w, o, wrong and n > 1, *args)
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


def times(w, a, b):
    """A product of any number of dimensions, with its gradient."""
    other = lambda t: t.transpose(len(t.shape) - 2, len(t.shape) - 1)
    return w.taped(
        a.map(Tensor.matmul, b), [a, b], lambda g: [times(w, g, other(b)), times(w, other(a), g)]
    )


def hidden(w, s, n, back, t=2):
    """Scores of each rank's queries and the keys of the rank `back` before it, under the mask."""

    def mask(r):
        of = (r - back) % n
        m = [of * t + j > r * t + i for i in range(t) for j in range(t)]
        name = "mask_%s" % "".join("01"[x] for x in m)
        return w.g.leaf("constant", name, Data((t, t), m), boolean) if any(m) else None

    masks = [mask(r) for r in range(n)]
    fill = lambda v, by: w.each(
        lambda r: v.each[r].masked_fill(masks[r], by) if masks[r] else v.each[r]
    )
    return w.taped(fill(s, -math.inf), [s], lambda g: [fill(g, 0.0)])


def added(w, s, n, back, table, wrong, heads, t=2):
    """Scores of each rank's queries and the keys of the rank `back` before it, and a table that is
    a constant of each rank: `table(head, row, column)`. Many tiles of distances are equal."""

    def tile(r):
        of = (r - back) % n
        at = lambda i, j: wrong and (r, back, i, j) == (n - 1, n - 1, 0, 1)
        values = [
            table(h, r * t + i, of * t + (0 if at(i, j) else j))
            for h in range(heads)
            for i in range(t)
            for j in range(t)
        ]
        return w.g.leaf("constant", "table_%d_%d" % (r, back), Data((heads, t, t), values), f32)

    return w.taped(
        w.each(lambda r: s.each[r] + tile(r)), [s], lambda g: [w.each(lambda r: g.each[r])]
    )


TABLES = {
    "distances": lambda h, i, j: 2.0 ** -(h + 1) * (j - i),
    "numbers": lambda h, i, j: (h * 31 + i * 17 + j * 29) % 23 / 8 - 1.25,
}


def around(w, q, k, v, wrong, multiply, by, table=None):
    """Attention whose keys and values go round a ring. The wrong one forgets a factor."""
    top = total = out = None
    other = lambda t: t.transpose(len(t.shape) - 2, len(t.shape) - 1)
    n = len(q.each)
    for back in range(n):
        keys, values = (x.rotate(back) if back else x for x in (k, v))
        s = multiply(q, other(keys)).mul(by)
        s = added(w, s, n, back, table, wrong, 2) if table else hidden(w, s, n, back)
        here = s.map(lambda x: x.amax(-1, True))
        new = top.map(lambda a, b: a.maximum(b), here) if top else here
        e = s.sub(new).exp()
        y, sums = multiply(e, values), e.sum([-1], True)
        scale = top.map(lambda a, b: a.sub(b).exp(), new) if top else None
        total = total * scale + sums if top else sums
        out = (out if wrong and not table and back == n - 1 else out * scale) + y if top else y
        top = new
    return out / total


def ring(w, o, wrong, kind, rows=4, table=None, heads=2, d=4):
    """kind: matrices, batches, or four dimensions. table: what is added in place of the mask."""
    n = w.n
    w.training, w.leaves = True, []
    q, k, v = (w.cut(name, 0, rows, heads * d, scale=1.0) for name in "qkv")
    if kind != "matrices":
        own = q.shape[0]
        q, k, v = (x.view(own, heads, d).transpose(0, 1) for x in (q, k, v))
    if kind == "four dimensions":
        q, k, v = (x.unsqueeze(0) for x in (q, k, v))
    multiply = {
        "matrices": lambda a, b: a.mm(b),
        "batches": lambda a, b: a.bmm(b),
        "four dimensions": lambda a, b: times(w, a, b),
    }[kind]
    y = around(w, q, k, v, wrong, multiply, d**-0.5, table) if n > 1 else None
    if n == 1:
        s = multiply(q, k.transpose(len(k.shape) - 2, len(k.shape) - 1)).mul(d**-0.5)
        s = (
            added(w, s, 1, 0, table, False, heads, rows)
            if table
            else s.masked_fill(causal(w, s.shape[-1]), -math.inf)
        )
        y = multiply(s.softmax(-1), v)
    loss = (y * y).mean(list(range(len(y.shape))))
    grads = w.backward(loss, w.each(lambda r: w.g.ones(dtype=f32)))
    o.replicas("loss", w.all_reduce(loss, "avg", taped=False))
    for name, grad in grads.items():
        o.parts("grad." + name, grad.div(float(n)) if n > 1 else grad, 0)


EVEN = (8, 8)
pair("two dimensions", online, (), EVEN, ((8, 4), (8, 4)))
pair("four dimensions", online, (1, 2), EVEN, ((8, 4), (8, 4)))
pair("blocks of other widths", online, (), (8, 3), ((8, 4), (3, 4)))
pair("values of one column", online, (), EVEN, ((8,), (8,)))
pair("values of other batches", online, (1,), EVEN, ((1, 8, 4), (3, 8, 4)))
pair("a maximum of one row", largest, (1, 6), 1)
pair("a maximum of more dimensions", largest, (2, 1, 6), 2)
for kind in ("batches", "four dimensions"):
    pair("a ring of two, %s" % kind, ring, kind)
pair("a ring of three, matrices", ring, "matrices", 6, ranks=3)
for name, table in TABLES.items():
    for n, word in ((2, "two"), (3, "three")):
        pair("a ring of %s, %s added" % (word, name), ring, "batches", 2 * n, table, ranks=n)
