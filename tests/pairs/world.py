"""Several ranks as one program: a `Ranks` holds what each rank has, an operator on it is that
operator on every rank, and collectives are what joins them. With one rank (`World(g)`) the same
code is the sequential program, without collectives and without "rank0." in its leaves' names.

    w = World(Graph(), 4)
    h = w.x("x", 8, 16)                         # one input that all ranks read
    p = h.linear(w.cut("w1", 0, 32, 16))        # rows of w1, an equal part on each rank
    y = w.all_reduce(p.linear(w.cut("w2", 1, 16, 32)))

Differentiable operators go on a tape, and `w.backward(loss)` writes their derivatives as ATen's
backward operators, with the collectives that a distributed program needs. Collectives differ in
what is behind them: `all_reduce` is followed by the same computation on all ranks, so that its
gradient is each rank's own; `copy` is what each rank reads of a replica, so that its gradient is
the sum over ranks (Megatron's g and f)."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from dsl import Data, Dtype, Graph, Tensor, count, f32, i64, values


def columns(d, a, b):
    return d.t().rows(a, b).t()


def part(d, dim, k, n):
    """Part k of n along dimension 0 or 1."""
    step = d.shape[dim] // n
    assert step * n == d.shape[dim], (d.shape, dim, n)
    return (columns if dim else Data.rows)(d, k * step, (k + 1) * step)


def unbroadcast(g, shape):
    """The gradient of an operand that was broadcast."""
    lead = len(g.shape) - len(shape)
    dims = [i for i, s in enumerate(g.shape) if i < lead or (shape[i - lead] == 1 and s != 1)]
    if not dims:
        return g
    g = g.sum(dims, True)
    return g.view(*shape) if lead else g


class Named(Graph):
    """A graph whose nodes are called after the rank that they belong to."""

    rank = None

    def node(self, op, outputs, **more):
        ref = Graph.node(self, op, outputs, **more)
        if self.rank is not None and op not in ("input", "parameter", "buffer", "constant"):
            k = self.counts[self.rank] = self.counts.get(self.rank, 0) + 1
            ref = self.nodes[-1]["id"] = "r%d_n%d" % (self.rank, k)
        return ref


class World:
    """n ranks; with `inner`, ranks lie in a grid of n / inner by inner: rank = outer * inner + k.
    `own`: whether each rank has inputs and replicas of its own."""

    def __init__(self, g, n=1, inner=None):
        self.g, self.n, self.inner = g, n, inner or n
        g.counts = {}
        self.tape, self.grads, self.training = [], {}, False
        self.layer = None

    # leaves

    def name(self, r, name):
        return name if self.n == 1 else "rank%d.%s" % (r, name)

    def each(self, f):
        out = []
        for r in range(self.n):
            self.g.rank = r if self.n > 1 else None
            out.append(f(r))
        self.g.rank = None
        return Ranks(self, out)

    def x(self, name, *shape, **how):
        """An input that all ranks read."""
        t = self.g.x(*shape, name=name, **how)
        return Ranks(self, [t] * self.n)

    def ints(self, name, captured, shape, below):
        t = self.g.ints(name, Data(shape, captured), below)
        return Ranks(self, [t] * self.n)

    def cut_x(self, name, dim, *shape, **how):
        """An input, a part of it on each rank."""
        d = values(name, *shape, input=True, **how)
        return self.each(
            lambda r: self.g.leaf("input", self.name(r, name), part(d, dim, r, self.n), f32)
        )

    def cut_ints(self, name, dim, captured, shape, parts=None):
        d, n = Data(shape, captured), parts or self.n
        k = self.n // n
        return self.each(
            lambda r: self.g.leaf("input", self.name(r, name), part(d, dim, r // k, n), i64)
        )

    def param(self, name, *shape, **how):
        """A parameter, the same on each rank."""
        how.setdefault("scale", 0.3)
        d = values(name, *shape, **how)
        return self.each(lambda r: self.g.param(self.name(r, name), d)).as_leaf(name)

    def cut(self, name, dim, *shape, unit=None, **how):
        """A parameter, cut along `dim` over the ranks (of the inner group). unit: with fewer units
        of this size than ranks, neighbours have the same one."""
        how.setdefault("scale", 0.3)
        d, n = values(name, *shape, **how), self.inner
        if unit:
            n = min(n, shape[dim] // unit)
        return self.each(
            lambda r: self.g.param(
                self.name(r, name), part(d, dim, r % self.inner * n // self.inner, n)
            )
        ).as_leaf(name)

    def groups(self, across=False):
        """The ranks of each inner group, or of each group across them."""
        m = self.n // self.inner
        if across:
            return [[o * self.inner + k for o in range(m)] for k in range(self.inner)]
        return [[o * self.inner + k for k in range(self.inner)] for o in range(m)]

    def collective(self, v, f, across=False):
        """f(parts) gives the tensors of the ranks of one group."""
        if self.n == 1:
            return v
        out = [None] * self.n
        for group in self.groups(across):
            if len(group) == 1:
                out[group[0]] = v.each[group[0]]
                continue
            for r, t in zip(group, f([v.each[r] for r in group])):
                out[r] = t
        return Ranks(self, out)

    # collectives: each with what its gradient is

    def all_reduce(self, v, op="sum", across=False, taped=True):
        out = self.collective(
            v, lambda p: [p[0].op("dist::all_reduce", [list(p), op])] * len(p), across
        )
        return self.taped(out, [v], lambda g: [g]) if taped else out

    def copy(self, v):
        """A replica as each rank reads it: equal values, and gradients summed over ranks."""
        out = Ranks(self, list(v.each))
        return self.taped(out, [v], lambda g: [self.all_reduce(g, taped=False)])

    def gathered(self, v, dim, across=False):
        def f(p):
            t = p[0].op(
                "dist::all_gather", [list(p), dim], p[0].resized(dim, sum(q.shape[dim] for q in p))
            )
            return [t] * len(p)

        return self.collective(v, f, across)

    def scattered(self, v, dim, across=False, op="sum"):
        def f(p):
            s = p[0].resized(dim, p[0].shape[dim] // len(p))
            return p[0].several("dist::reduce_scatter", [list(p), op, dim], [s] * len(p))

        return self.collective(v, f, across)

    def all_gather(self, v, dim):
        """The whole, of which each rank makes something else: gradients are scattered sums."""
        return self.taped(self.gathered(v, dim), [v], lambda g: [self.scattered(g, dim)])

    def reduce_scatter(self, v, dim):
        return self.taped(self.scattered(v, dim), [v], lambda g: [self.gathered(g, dim)])

    def all_to_all(self, v, split, cat):
        """Part k along `split` goes to rank k, which joins what it gets along `cat`."""

        def f(p):
            s = list(p[0].resized(split, p[0].shape[split] // len(p)))
            s[cat] *= len(p)
            return p[0].several("dist::all_to_all", [list(p), split, cat], [s] * len(p))

        return self.taped(self.collective(v, f), [v], lambda g: [self.all_to_all(g, cat, split)])

    # derivatives

    def layer_of(self, layer, layers):
        """What follows is this layer, of so many; -1: what stands before them, `layers`: behind."""

    def taped(self, out, inputs, vjp):
        if self.training and out is not None:
            self.tape.append((out, inputs, vjp))
        return out

    def backward(self, out, grad):
        """Gradients of all leaves, by name: what each rank has of them."""
        grads, self.training = {id(out): grad}, False
        for y, inputs, vjp in reversed(self.tape):
            if id(y) not in grads:
                continue
            for x, g in zip(inputs, vjp(grads.pop(id(y)))):
                if x is None or g is None:
                    continue
                grads[id(x)] = grads[id(x)] + g if id(x) in grads else g
        named = {}
        for v in self.leaves:
            if id(v) in grads:
                named[v.leaf] = grads[id(v)]
        self.tape = []
        return named


class Stages(World):
    """A pipeline: one value for all, since each operator is on one rank only. Which rank has a
    layer's leaves and operators follows from the layer; messages between ranks are edges."""

    def __init__(self, g, stages):
        World.__init__(self, g)
        self.stages, self.stage = stages, 0

    def layer_of(self, layer, layers):
        self.stage = min(max(layer, 0) * self.stages // layers, self.stages - 1)

    def name(self, r, name):
        return "rank%d.%s" % (self.stage, name)

    def each(self, f):
        self.g.rank = self.stage
        out = f(0)
        self.g.rank = None
        return Ranks(self, [out])

    def taped(self, out, inputs, vjp):
        def there(g, stage=self.stage):
            self.stage = stage
            return vjp(g)

        return World.taped(self, out, inputs, there)


class Ranks:
    """One value for each rank. Operators take Ranks, or one value that all ranks share."""

    leaf = None

    def __init__(self, w, each):
        self.w, self.each = w, each

    def as_leaf(self, name):
        self.leaf = name
        self.w.__dict__.setdefault("leaves", []).append(self)
        return self

    @property
    def shape(self):
        return self.each[0].shape

    def map(self, f, *args):
        """f(tensor, arguments of that rank), on each rank; several results are a list of Ranks."""
        at = lambda a, r: (
            a.each[r]
            if isinstance(a, Ranks)
            else [at(b, r) for b in a]
            if isinstance(a, (list, tuple))
            else a
        )
        out = self.w.each(lambda r: f(self.each[r], *[at(a, r) for a in args]))
        if isinstance(out.each[0], list):
            return [Ranks(self.w, [t[k] for t in out.each]) for k in range(len(out.each[0]))]
        return out

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *a, **k: self.map(lambda t, *b: getattr(t, name)(*b, **k), *a)

    def taped(self, out, inputs, vjp):
        return self.w.taped(out, inputs, vjp)

    # views

    def view(self, *shape):
        was = self.shape
        return self.taped(self.map(lambda t: t.view(*shape)), [self], lambda g: [g.reshape(*was)])

    def reshape(self, *shape):
        was = self.shape
        return self.taped(
            self.map(lambda t: t.reshape(*shape)), [self], lambda g: [g.reshape(*was)]
        )

    def t(self):
        return self.taped(self.map(Tensor.t), [self], lambda g: [g.t()])

    def transpose(self, a, b):
        return self.taped(
            self.map(lambda t: t.transpose(a, b)), [self], lambda g: [g.transpose(a, b)]
        )

    def unsqueeze(self, d):
        return self.taped(
            self.map(lambda t: t.unsqueeze(d)), [self], lambda g: [g.map(lambda t: t.squeeze(d))]
        )

    def expand(self, *shape):
        was = self.shape
        return self.taped(
            self.map(lambda t: t.expand(*shape)), [self], lambda g: [unbroadcast(g, was)]
        )

    def slice(self, d, a, b):
        was = self.shape
        return self.taped(
            self.map(lambda t: t.slice(d, a, b)),
            [self],
            lambda g: [g.map(lambda t: t.op("slice_backward", [t, list(was), d, a, b, 1], was))],
        )

    def cat(self, others, d):
        """This and the others, along d."""
        parts = [self] + list(others)
        ends = [0]
        for p in parts:
            ends.append(ends[-1] + p.shape[self.each[0].dim(d)])
        out = self.map(lambda t, o: self.w.g.cat([t] + o, d), list(others))
        return self.taped(
            out,
            parts,
            lambda g: [g.map(lambda t, a=a, b=b: t.slice(d, a, b)) for a, b in zip(ends, ends[1:])],
        )

    # products

    def mm(self, o):
        return self.taped(
            self.map(Tensor.mm, o), [self, o], lambda g: [g.mm(o.t()), self.t().mm(g)]
        )

    def bmm(self, o):
        return self.taped(
            self.map(Tensor.bmm, o),
            [self, o],
            lambda g: [g.bmm(o.transpose(1, 2)), self.transpose(1, 2).bmm(g)],
        )

    def linear(self, w, b=None):
        """As autograd's graphs have it while training: of a view of two dimensions."""
        if not self.w.training:
            return self.map(Tensor.linear, w, b)
        x = self.view(count(self.shape[:-1]), self.shape[-1]) if len(self.shape) > 2 else self
        wt = w.t()
        if b is None:
            y = x.mm(wt)
        else:
            y = self.taped(
                b.map(Tensor.addmm, x, wt),
                [b, x, wt],
                lambda g: [g.sum([0], True).view(*b.shape), g.mm(wt.t()), x.t().mm(g)],
            )
        return y.view(*self.shape[:-1], w.shape[0]) if len(self.shape) > 2 else y

    # element by element

    def add(self, o):
        out = self.map(Tensor.add, o)
        if not isinstance(o, Ranks):
            return self.taped(out, [self], lambda g: [g])
        return self.taped(
            out, [self, o], lambda g: [unbroadcast(g, self.shape), unbroadcast(g, o.shape)]
        )

    def sub(self, o):
        out = self.map(Tensor.sub, o)
        if not isinstance(o, Ranks):
            return self.taped(out, [self], lambda g: [g])
        return self.taped(
            out, [self, o], lambda g: [unbroadcast(g, self.shape), unbroadcast(g.neg(), o.shape)]
        )

    def mul(self, o):
        out = self.map(Tensor.mul, o)
        if not isinstance(o, Ranks):
            return self.taped(out, [self], lambda g: [g.mul(o)])
        return self.taped(
            out,
            [self, o],
            lambda g: [unbroadcast(g.mul(o), self.shape), unbroadcast(g.mul(self), o.shape)],
        )

    def div(self, o):
        out = self.map(Tensor.div, o)
        if not isinstance(o, Ranks):
            return self.taped(out, [self], lambda g: [g.div(o)])
        return self.taped(
            out,
            [self, o],
            lambda g: [
                unbroadcast(g.div(o), self.shape),
                unbroadcast(g.neg().mul(out).div(o), o.shape),
            ],
        )

    __add__, __sub__, __mul__, __truediv__ = add, sub, mul, div

    def neg(self):
        return self.taped(self.map(Tensor.neg), [self], lambda g: [g.map(Tensor.neg)])

    def exp(self):
        out = self.map(Tensor.exp)
        return self.taped(out, [self], lambda g: [g.mul(out)])

    def log(self):
        return self.taped(self.map(Tensor.log), [self], lambda g: [g.div(self)])

    def rsqrt(self):
        out = self.map(Tensor.rsqrt)
        return self.taped(out, [self], lambda g: [g.mul(out.mul(out).mul(out)).mul(-0.5)])

    def masked_fill(self, mask, value):
        return self.taped(
            self.map(Tensor.masked_fill, mask, value),
            [self],
            lambda g: [g.map(lambda t, m: t.masked_fill(m, 0.0), mask)],
        )

    def gelu(self):
        back = lambda g: [g.map(lambda t, x: t.op("gelu_backward", [t, x]), self)]
        return self.taped(self.map(Tensor.gelu), [self], back)

    def silu(self):
        back = lambda g: [g.map(lambda t, x: t.op("silu_backward", [t, x]), self)]
        return self.taped(self.map(Tensor.silu), [self], back)

    # along dimensions

    def sum(self, dims, keep=False):
        was = self.shape
        return self.taped(
            self.map(lambda t: t.sum(dims, keep)),
            [self],
            lambda g: [
                (g if keep else g.reshape(*self.each[0].reduced(dims, True))).map(
                    lambda t: t.expand(*was)
                )
            ],
        )

    def mean(self, dims, keep=False):
        was = self.shape
        n = count(was) // max(1, count(self.each[0].reduced(dims, True)))
        return self.taped(
            self.map(lambda t: t.mean(dims, keep)),
            [self],
            lambda g: [
                (g if keep else g.reshape(*self.each[0].reduced(dims, True)))
                .map(lambda t: t.expand(*was))
                .div(n)
            ],
        )

    def topk(self, k):
        """(values, indices) of the last dimension."""
        best, which = self.map(lambda t: t.topk(k))
        return self.taped(best, [self], lambda g: [g.spread(self.shape, which)]), which

    def spread(self, shape, i):
        """Zeros of this shape, with these numbers at the indices `i` of the last dimension."""
        out = self.map(lambda t, i: self.w.g.zeros(*shape).scatter(-1, i, t), i)
        return self.taped(out, [self], lambda g: [g.map(lambda t, i: t.gather(-1, i), i)])

    def select(self, d, of_rank):
        """On each rank its own element along `d`; of_rank(r) says which."""
        at, was = self.w.each(of_rank), list(self.shape)
        return self.taped(
            self.map(lambda t, k: t.select(d, k), at),
            [self],
            lambda g: [
                g.map(lambda t, k: t.op("select_backward", [t, was, d % len(was), k], was), at)
            ],
        )

    def softmax(self, d=-1):
        if not self.w.training:
            return self.map(lambda t: t.softmax(d))
        out = self.map(lambda t: t.op("_softmax", [t, d, False]))
        return self.taped(
            out,
            [self],
            lambda g: [
                g.map(lambda t, y: t.op("_softmax_backward_data", [t, y, d, Dtype(f32)]), out)
            ],
        )

    def layer_norm(self, w, b, eps=1e-5):
        if not self.w.training:
            return self.map(lambda t, w, b: t.layer_norm(w, b, eps), w, b)
        n, s = [self.shape[-1]], list(self.shape)
        few = s[:-1] + [1]
        out, mean, rstd = self.map(
            lambda t, w, b: t.several("native_layer_norm", [t, n, w, b, eps], [s, few, few]), w, b
        )

        def back(g):
            return g.map(
                lambda t, x, m, r, w, b: t.several(
                    "native_layer_norm_backward",
                    [t, x, n, m, r, w, b, [True, True, True]],
                    [s, n, n],
                ),
                self,
                mean,
                rstd,
                w,
                b,
            )

        return self.taped(out, [self, w, b], back)

    def rms_norm(self, w, eps=1e-6):
        return self.mul(self.mul(self).mean([-1], True).add(eps).rsqrt()).mul(w)

    def gather(self, d, i):
        was = self.shape

        def back(g):
            zeros = g.map(lambda t: t.op("new_zeros", [t, list(was)], was))
            return [zeros.map(lambda z, i, t: z.scatter_add(d, i, t), i, g)]

        return self.taped(self.map(lambda t, i: t.gather(d, i), i), [self], back)

    def log_softmax(self, d=-1):
        if not self.w.training:
            return self.map(lambda t: t.log_softmax(d))
        d = self.each[0].dim(d)
        out = self.map(lambda t: t.op("_log_softmax", [t, d, False]))
        return self.taped(
            out,
            [self],
            lambda g: [
                g.map(lambda t, y: t.op("_log_softmax_backward_data", [t, y, d, Dtype(f32)]), out)
            ],
        )

    def nll_loss(self, target):
        """The mean, of logarithms of two dimensions."""
        if not self.w.training:
            return self.map(lambda t, i: t.op("nll_loss", [t, i], ()), target)
        out, total = self.map(
            lambda t, i: t.several("nll_loss_forward", [t, i, None, 1, -100], [(), ()]), target
        )

        def back(g):
            return [
                g.map(
                    lambda t, x, i, n: t.op(
                        "nll_loss_backward", [t, x, i, None, 1, -100, n], x.shape
                    ),
                    self,
                    target,
                    total,
                )
            ]

        return self.taped(out, [self], back)

    def rotate(self, by):
        """Rank r gets the value of rank r - by: the values are sent around a ring."""
        n = self.w.n
        out = Ranks(self.w, [self.each[(r - by) % n] for r in range(n)])
        return self.taped(out, [self], lambda g: [g.rotate(-by)])

    def embedding(self, i):
        rows = self.shape[0]
        return self.taped(
            self.map(Tensor.embedding, i),
            [self],
            lambda g: [
                g.map(
                    lambda t, i: t.op(
                        "embedding_dense_backward", [t, i, rows, -1, False], self.shape
                    ),
                    i,
                )
            ],
        )
