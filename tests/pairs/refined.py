"""Sequential graphs and what several ranks make of them, whose outputs are put together in a known
way: each kind of distribution with its own relations, and with faults of many kinds.

A kind is a function of a Case that returns the outputs of both sides and the relations that the
generator itself has in mind. What a case does at its places (an all_reduce, a shard, an offset) can
be done wrongly there: `fault` names what is wrong, and `at` the rank where it is."""

import random

import dsl
from dsl import values

FAULTS = (
    "no collective",  # a collective is left out on every rank
    "one rank alone",  # on one rank
    "twice",  # a reduction is made twice
    "other rank's",  # a rank uses another one's shard
    "order",  # a gather puts the parts in another order
    "offset",  # a slice is off by one
    "scale",  # a mean is divided once too often
    "bias on all",  # each partial result has the bias
    "average",  # avg for sum
    "sign",  # a rank's part is negated
    "replica",  # a rank's replica of a parameter has other values
)
KINDS = {}


def kind(f):
    KINDS[f.__name__] = f
    return f


class Case:
    """One pair. `self.places` counts what faults could be made; a fault is made at one of them."""

    def __init__(self, name, ranks, seed, fault=None):
        self.name, self.n, self.fault = name, ranks, fault
        self.rng = random.Random("%s %d %d" % (name, ranks, seed))
        self.choice = random.Random("%s %d %d fault" % (name, ranks, seed))
        self.made = False
        self.bad = self.choice.randrange(1, ranks)
        self.uneven = self.rng.random() < 0.3
        self.sizes = {}

    # sizes

    def size(self, name, most=3, least=1):
        if name not in self.sizes:
            self.sizes[name] = self.rng.randint(least, most)
        return self.sizes[name]

    def cut(self, total):
        """(from, to) of each rank: equal parts, or not."""
        n = self.n
        at = [total * r // n for r in range(n + 1)]
        if self.uneven and total > n:
            at[1] = at[1] + 1 if at[1] + 1 < at[2] else at[1] - 1 if at[1] > 1 else at[1]
        return list(zip(at, at[1:]))

    # faults

    def wrong(self, fault, rank=None):
        """Whether the fault is to be made here: each once, at one rank where there is one."""
        if self.fault != fault or (rank is not None and rank != self.bad):
            return False
        self.made = True
        return True

    def shard_of(self, r):
        return (r + 1) % self.n if self.wrong("other rank's", r) else r

    # leaves of ranks

    def param(self, g, r, name, data):
        if not name.startswith("cut.") and self.wrong("replica", r):
            data = data.scaled(1.25)
        return g.param("rank%d.%s" % (r, name.replace("cut.", "")), data)

    def rows(self, g, name, data):
        cut = self.cut(data.shape[0])
        return [
            self.param(g, r, "cut." + name, data.rows(*cut[self.same_size(cut, r)]))
            for r in range(self.n)
        ]

    def columns(self, g, name, data):
        cut = self.cut(data.shape[1])
        return [
            self.param(g, r, "cut." + name, data.t().rows(*cut[self.same_size(cut, r)]).t())
            for r in range(self.n)
        ]

    def same_size(self, cut, r):
        """Another rank's shard, if it fits."""
        s = (r + 1) % self.n
        fits = cut[s][1] - cut[s][0] == cut[r][1] - cut[r][0]
        return s if fits and self.wrong("other rank's", r) else r

    def slices(self, x, d, cut=None):
        out = []
        for r, (a, b) in enumerate(cut or self.cut(x.shape[d])):
            if a > 0 and self.wrong("offset", r):
                a, b = a - 1, b - 1
            out.append(x.slice(d, a, b))
        return out

    # collectives: each gives a list, by rank

    def sign(self, parts):
        return [-p if self.wrong("sign", r) else p for r, p in enumerate(parts)]

    def all_reduce(self, parts, op="sum"):
        parts = self.sign(parts)
        if op == "sum" and self.wrong("average"):
            op = "avg"
        whole = parts[0].op("dist::all_reduce", [list(parts), op])
        if self.wrong("no collective"):
            return parts
        if self.wrong("twice"):
            whole = whole.op("dist::all_reduce", [[whole] * self.n, "sum"])
        return [p if self.wrong("one rank alone", r) else whole for r, p in enumerate(parts)]

    def all_gather(self, parts, d):
        parts = self.sign(parts)
        d = parts[0].dim(d)
        if self.wrong("no collective"):
            return parts
        order = list(range(self.n))
        if self.wrong("order"):
            order = order[1:] + order[:1]
        whole = parts[0].op(
            "dist::all_gather",
            [[parts[k] for k in order], d],
            parts[0].resized(d, sum(p.shape[d] for p in parts)),
        )
        return [whole] * self.n

    def reduce_scatter(self, parts, d):
        parts = self.sign(parts)
        op = "avg" if self.wrong("average") else "sum"
        s = parts[0].resized(d, parts[0].shape[d] // self.n)
        return parts[0].several(
            "dist::reduce_scatter", [list(parts), op, d], [s] * self.n, [parts[0].dtype] * self.n
        )


def of_ranks(name, parts):
    return {name if r == 0 else "%s_rank%d" % (name, r): p for r, p in enumerate(parts)}


def names(name, n):
    return [name if r == 0 else "%s_rank%d" % (name, r) for r in range(n)]


def whole(name, n):
    return {name: names(name, n)}


def joined(name, n, d):
    return {name: ["cat([%s], %d)" % (", ".join(names(name, n)), d)]}


def summed(name, n):
    return {name: ["sum([%s])" % ", ".join(names(name, n))]}


def tokens(c, g):
    return g.x(c.size("batch", 4, 2) * c.n, c.size("in", 3) * 2 * c.n)


def weight(c, name, rows, columns):
    return values(name, rows, columns)


# ---- one matrix ----


@kind
def columns_stay(c):
    """Columns of the output, each rank its own."""
    k = 2 * c.n + c.size("more", 2) * c.n
    left = lambda g: {"y": tokens(c, g).linear(g.param("w", values("w", k, tokens(c, g).shape[1])))}

    def right(g):
        x = tokens(c, g)
        w = c.rows(g, "w", values("w", k, x.shape[1]))
        return of_ranks("y", c.sign([x.linear(v) for v in w]))

    return left, right, joined("y", c.n, 1)


@kind
def columns_gathered(c):
    c.uneven = False  # a collective's parts have one shape
    k = 2 * c.n + c.size("more", 2) * c.n
    left = lambda g: {
        "y": tokens(c, g).linear(g.param("w", values("w", k, tokens(c, g).shape[1]))).silu()
    }

    def right(g):
        x = tokens(c, g)
        w = c.rows(g, "w", values("w", k, x.shape[1]))
        return of_ranks("y", c.all_gather([x.linear(v).silu() for v in w], 1))

    return left, right, whole("y", c.n)


def row_parallel(c, g, k):
    """Each rank has columns of the input and of the weight; the bias is added to the sum."""
    x = tokens(c, g)
    w = c.columns(g, "w", values("w", k, x.shape[1]))
    return [v.linear(u) for v, u in zip(c.slices(x, 1), w)]


@kind
def rows_reduced(c):
    k = c.size("out", 4, 2)

    def left(g):
        x = tokens(c, g)
        return {"y": x.linear(g.param("w", values("w", k, x.shape[1])), g.param("b", k))}

    def right(g):
        parts = row_parallel(c, g, k)
        b = [c.param(g, r, "b", values("b", k)) for r in range(c.n)]
        if c.wrong("bias on all"):
            return of_ranks("y", c.all_reduce([p + v for p, v in zip(parts, b)]))
        return of_ranks("y", [y + v for y, v in zip(c.all_reduce(parts), b)])

    return left, right, whole("y", c.n)


@kind
def partial_sums(c):
    """Nobody adds them up, and that is meant."""
    k = c.size("out", 4, 2)
    left = lambda g: {"y": tokens(c, g).linear(g.param("w", values("w", k, tokens(c, g).shape[1])))}
    right = lambda g: of_ranks("y", c.sign(row_parallel(c, g, k)))
    return left, right, summed("y", c.n)


# ---- blocks ----


@kind
def feed_forward(c):
    """Columns, then rows, then a sum, on top of what goes past."""
    mid = c.n * c.size("mid", 3, 2)

    def left(g):
        x = tokens(c, g)
        h = x.linear(g.param("w1", values("w1", mid, x.shape[1]))).gelu()
        return {"y": x + h.linear(g.param("w2", values("w2", x.shape[1], mid)))}

    def right(g):
        x = tokens(c, g)
        w1 = c.rows(g, "w1", values("w1", mid, x.shape[1]))
        w2 = c.columns(g, "w2", values("w2", x.shape[1], mid))
        parts = [x.linear(a).gelu().linear(b) for a, b in zip(w1, w2)]
        if c.wrong("bias on all"):
            return of_ranks("y", c.all_reduce([x + p for p in parts]))
        return of_ranks("y", [x + y for y in c.all_reduce(parts)])

    return left, right, whole("y", c.n)


def rms(x, w):
    return x * (x.square().mean(-1, True) + 1e-6).rsqrt() * w


@kind
def sequence_parallel(c):
    """The norm on each rank's rows, gathered in front of the block, scattered behind."""
    c.uneven = False
    mid = c.n * c.size("mid", 2, 1)

    def left(g):
        x = tokens(c, g)
        h = rms(x, g.param("norm", x.shape[1])).linear(g.param("w1", values("w1", mid, x.shape[1])))
        return {"y": x + h.relu().linear(g.param("w2", values("w2", x.shape[1], mid)))}

    def right(g):
        x = tokens(c, g)
        mine = c.slices(x, 0)
        norm = [c.param(g, r, "norm", values("norm", x.shape[1])) for r in range(c.n)]
        h = c.all_gather([rms(v, w) for v, w in zip(mine, norm)], 0)
        if c.fault == "no collective":
            return None
        w1 = c.rows(g, "w1", values("w1", mid, x.shape[1]))
        w2 = c.columns(g, "w2", values("w2", x.shape[1], mid))
        parts = [v.linear(a).relu().linear(b) for v, a, b in zip(h, w1, w2)]
        return of_ranks("y", [v + p for v, p in zip(mine, c.reduce_scatter(parts, 0))])

    return left, right, joined("y", c.n, 0)


@kind
def heads(c):
    """Attention, some heads on each rank; ranks share the key and value heads where these are
    fewer."""
    c.uneven = False
    width, kv = 2, c.n // 2 if c.n % 2 == 0 else c.n
    q, t = c.n * c.size("heads", 2), 4

    def attend(x, wq, wk, wv, n_q, n_kv):
        def split(w, n):
            return x.linear(w).view(t, n, width).transpose(0, 1)

        k, v = split(wk, n_kv), split(wv, n_kv)
        if n_kv != n_q:
            k, v = k.repeat_interleave(n_q // n_kv, 0), v.repeat_interleave(n_q // n_kv, 0)
        s = (split(wq, n_q) @ k.transpose(1, 2)).softmax(-1)
        return (s @ v).transpose(0, 1).reshape(t, n_q * width)

    x_of = lambda g: g.x(t, 6)

    def left(g):
        w = [
            g.param("w" + s, values("w" + s, h * width, 6))
            for s, h in (("q", q), ("k", kv), ("v", kv))
        ]
        return {"y": attend(x_of(g), *w, q, kv)}

    def right(g):
        x, out = x_of(g), []
        per, each = q // c.n * width, max(1, kv // c.n) * width
        for r in range(c.n):
            s = (r + 1) % c.n if c.wrong("other rank's", r) else r
            at = r * kv // c.n * width
            if at + each < kv * width and c.wrong("offset", r):
                at += width
            wq = c.param(g, r, "cut.wq", values("wq", q * width, 6).rows(s * per, s * per + per))
            wk = c.param(g, r, "cut.wk", values("wk", kv * width, 6).rows(at, at + each))
            wv = c.param(g, r, "cut.wv", values("wv", kv * width, 6).rows(at, at + each))
            out.append(attend(x, wq, wk, wv, q // c.n, each // width))
        return of_ranks("y", c.sign(out))

    return left, right, joined("y", c.n, 1)


# ---- data parallel ----


@kind
def batches(c):
    """Each rank has rows of the batch, an input of its own, and all parameters."""
    k, m = c.size("out", 3, 2), c.size("in", 3, 2)
    total = c.n * c.size("rows", 3, 2)

    def left(g):
        x = g.leaf("input", "x", values("x", total, m, input=True), dsl.f32)
        return {"y": x.linear(g.param("w", values("w", k, m))).tanh()}

    def right(g):
        data = values("x", total, m, input=True)
        cut = c.cut(total)
        out = []
        for r in range(c.n):
            x = g.leaf("input", "rank%d.x" % r, data.rows(*cut[r]), dsl.f32)
            out.append(x.linear(c.param(g, r, "w", values("w", k, m))).tanh())
        return of_ranks("y", c.sign(out))

    return left, right, joined("y", c.n, 0)


@kind
def gradients(c):
    """The loss is a mean over the batch; its gradient is summed up over the ranks."""
    k, m = c.size("out", 3, 2), c.size("in", 3, 2)
    total = c.n * c.size("rows", 3, 2)
    c.uneven = False

    def grad(x, w):
        e = x.linear(w)
        return e.t().mm(x).mul(2.0 / (total * k)), e.square()

    def left(g):
        x = g.leaf("input", "x", values("x", total, m, input=True), dsl.f32)
        d, e = grad(x, g.param("w", values("w", k, m)))
        return {"grad_w": d, "loss": e.mean([0, 1])}

    def right(g):
        x = g.leaf("input", "x", values("x", total, m, input=True), dsl.f32)
        w = [c.param(g, r, "w", values("w", k, m)) for r in range(c.n)]
        both = [grad(v, u) for v, u in zip(c.slices(x, 0), w)]
        d, loss = [b[0] for b in both], [b[1].mean([0, 1]) for b in both]
        if c.wrong("scale"):
            d = [v.div(float(c.n)) for v in d]
        mean = loss[0].op("dist::all_reduce", [loss, "avg"])
        return {**of_ranks("grad_w", c.all_reduce(d)), **of_ranks("loss", [mean] * c.n)}

    return left, right, {**whole("grad_w", c.n), **whole("loss", c.n)}


# ---- layouts ----


@kind
def transposed(c):
    """Ranks keep their columns as rows."""
    k = 2 * c.n

    def left(g):
        x = tokens(c, g)
        return {"y": x.linear(g.param("w", values("w", k, x.shape[1])))}

    def right(g):
        x = tokens(c, g)
        w = c.rows(g, "w", values("w", k, x.shape[1]))
        return of_ranks("y", c.sign([v.mm(x.t()) for v in w]))

    return left, right, {"y": ["transpose(cat([%s], 0), 0, 1)" % ", ".join(names("y", c.n))]}


@kind
def padded(c):
    """A vocabulary that does not divide: the last rank's rows end with zeros."""
    per = c.size("per", 3, 2)
    k = c.n * per - c.rng.randint(1, per - 1)

    def left(g):
        x = tokens(c, g)
        return {"y": x.linear(g.param("w", values("w", k, x.shape[1])))}

    def right(g):
        x = tokens(c, g)
        w = values("w", k, x.shape[1]).pad(c.n * per - k)
        parts = []
        for r in range(c.n):
            s = c.shard_of(r)
            parts.append(x.linear(g.param("rank%d.w" % r, w.rows(s * per, s * per + per))))
        return of_ranks("y", c.sign(parts))

    inner = ", ".join(names("y", c.n))
    return left, right, {"y": ["slice(cat([%s], 1), 1, 0, %d)" % (inner, k)]}


@kind
def mesh(c):
    """Rows over the outer ranks, columns over the inner ones."""
    c.uneven = False
    a = 2 if c.n % 2 == 0 else 1
    b = c.n // a
    k = 2 * b

    def left(g):
        x = tokens(c, g)
        return {"y": x.linear(g.param("w", values("w", k, x.shape[1]))).relu()}

    def right(g):
        x = tokens(c, g)
        data, rows = values("w", k, x.shape[1]), x.shape[0] // a
        out = []
        for r in range(c.n):
            i, j = r // b, r % b
            if b > 1 and c.wrong("other rank's", r):
                j = (j + 1) % b
            w = c.param(g, r, "cut.w", data.rows(j * 2, j * 2 + 2))
            out.append(x.slice(0, i * rows, i * rows + rows).linear(w).relu())
        return of_ranks("y", c.sign(out))

    n = names("y", c.n)
    groups = ["cat([%s], 1)" % ", ".join(n[i * b : i * b + b]) for i in range(a)]
    if b == 1:
        return left, right, {"y": ["cat([%s], 0)" % ", ".join(n)]}
    return left, right, {"y": ["cat([%s], 0)" % ", ".join(groups) if a > 1 else groups[0]]}


def make(name, ranks, seed, fault=None):
    """(left, right, relations) as graphs' builders; None where the fault cannot be made there."""
    c = Case(name, ranks, seed, fault)
    left, right, relations = KINDS[name](c)
    if fault:
        probe = dsl.Graph()
        if right(probe) is None or not c.made:
            return None
        c.made = False
    return left, right, relations


def write(folder, build):
    g = dsl.Graph()
    g.write(folder, build(g))
    return folder
