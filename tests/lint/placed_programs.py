"""Programs of several ranks, each with a wrong twin: what `isomer lint CAPTURE` has to find, and
what it may not. With one rank the same code is the program that the ranks should be together.

A program is f(w, bad): it builds on the World `w` and returns its outputs, Ranks by name. `bad` is
what is wrong with it, False for the correct twin."""

import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "pairs"))
from dsl import Data, f32
from world import Named, Ranks, World

PROGRAMS = {}


def program(kind, ranks=2, mesh=None, where=None, undecided=()):
    """kind: of the finding in the wrong twin; where: the operator that it is at. undecided: of
    which twins, False for the correct one, nothing can be said."""

    def add(f):
        PROGRAMS[f.__name__.replace("_", " ")] = Program(f, kind, ranks, mesh, where, undecided)
        return f

    return add


class Program:
    def __init__(self, build, kind, ranks, mesh, where, undecided):
        self.build, self.kind, self.ranks, self.mesh, self.where = build, kind, ranks, mesh, where
        self.undecided = undecided

    def graph(self, ranks, bad, inner=None):
        w = Placed(Named(), ranks, inner)
        out = self.build(w, bad)
        flat = {}
        for name, v in out.items():
            for r, t in enumerate(v.each):
                flat[name if r == 0 else "%s_rank%d" % (name, r)] = t
        return w, flat

    def write(self, folder, bad, ranks=None, said=True):
        n = ranks or self.ranks
        w, flat = self.graph(n, bad, w_inner(self.mesh))
        w.g.write(folder, flat)
        path = os.path.join(folder, "graph.json")
        with open(path, encoding="utf-8") as f:
            graph = json.load(f)
        if said:
            graph["metadata"] = {"placements": w.said}
            if self.mesh:
                graph["metadata"]["mesh"] = self.mesh
        for node in graph["nodes"]:
            below = node["op"] == "input" and w.below.get(node["name"])
            if below:
                node["domain"] = {"range": [0, below - 1]}
        with open(path, "w", encoding="utf-8") as f:
            json.dump(graph, f)

    def values(self, ranks, bad):
        """The outputs by PyTorch."""
        import torch
        import truth as by_torch

        class Run(by_torch.Run):
            def node(self, n):
                if not n["op"].startswith("dist::"):
                    return by_torch.Run.node(self, n)
                x, *how = [self.value(a) for a in n["args"]]
                return collective(torch, n["op"], x, how)

        w, flat = self.graph(ranks, bad, w_inner(self.mesh) if ranks > 1 else None)
        run = Run(w.g)
        run.all()
        return {k: run.at[t.ref] for k, t in flat.items()}, w


def collective(torch, op, x, how):
    if op == "dist::all_gather":
        return torch.cat(x, how[0])
    if op == "dist::broadcast":
        return x[how[0]]
    if op == "dist::all_to_all":
        parts = [t.chunk(len(x), how[0]) for t in x]
        return [torch.cat([p[r] for p in parts], how[1]) for r in range(len(x))]
    y = torch.stack(x)
    y = {"sum": y.sum, "avg": y.mean, "max": y.amax, "min": y.amin}[how[0]](0)
    return y if op == "dist::all_reduce" else list(y.chunk(len(x), how[1]))


def w_inner(mesh):
    return list(mesh.values())[-1] if mesh else None


class Placed(World):
    """A World that writes down how it cuts leaves."""

    def __init__(self, g, n=1, inner=None):
        World.__init__(self, g, n, inner)
        self.said, self.below, self.leaves = {}, {}, []

    def say(self, name, dim, across=False):
        axes = 1 if self.inner == self.n else 2
        one = "S(%d)" % dim
        self.said[name] = one if axes == 1 else [one, "R"] if across else ["R", one]

    def cut(self, name, dim, *shape, **how):
        self.say(name, dim)
        return World.cut(self, name, dim, *shape, **how)

    def param(self, name, *shape, **how):
        if self.n > 1:
            self.said[name] = "R" if self.inner == self.n else ["R", "R"]
        return World.param(self, name, *shape, **how)

    def cut_x(self, name, dim, *shape, **how):
        self.say(name, dim)
        return World.cut_x(self, name, dim, *shape, **how)

    def batch(self, name, *shape):
        """An input whose first dimension is cut over the outer groups."""
        from dsl import values
        from world import part

        d, n = values(name, *shape, input=True), self.n // self.inner
        self.say(name, 0, across=self.inner != self.n)
        if self.n == 1 or n == 1:
            return self.cut_x(name, 0, *shape)
        return self.each(
            lambda r: self.g.leaf("input", self.name(r, name), part(d, 0, r // self.inner, n), f32)
        )

    def rows(self, name, sizes, width):
        """An input of which the ranks have so many rows each."""
        from dsl import values

        d = values(name, sum(sizes), width, input=True)
        self.say(name, 0)
        if self.n == 1:
            return self.each(lambda r: self.g.leaf("input", name, d, f32))
        at = [sum(sizes[:r]) for r in range(self.n)]
        return self.each(
            lambda r: self.g.leaf("input", self.name(r, name), d.rows(at[r], at[r] + sizes[r]), f32)
        )

    def cut3(self, name, n, a, b):
        """A parameter of n matrices, of which each rank has some."""
        from dsl import values

        d, k = values(name, n, a, b, scale=0.3), n // self.inner
        self.say(name, 0)
        return self.each(
            lambda r: self.g.param(
                self.name(r, name), d.rows(r % self.inner * k, (r % self.inner + 1) * k)
            )
        )

    def tokens(self, name, shape, below, dim=None):
        n = 1
        for s in shape:
            n *= s
        captured = [(7 * i * i + 3 * i + 1) % below for i in range(n)]
        for r in range(self.n):
            self.below[self.name(r, name)] = below
        self.below[name] = below
        if dim is None:
            return self.ints(name, captured, shape, below)
        self.say(name, dim)
        return self.cut_ints(name, dim, captured, shape)


def last(v):
    return len(v.shape) - 1


# ---- tensor parallel ----


@program("partial-output")
def row_parallel(w, bad):
    y = w.cut_x("x", 1, 4, 8).linear(w.cut("w", 1, 6, 8))
    return {"y": y if bad else w.all_reduce(y)}


@program("bad-placement")
def column_parallel(w, bad):
    y = w.x("x", 4, 8).linear(w.cut("w", 0, 6, 8))
    return {"y": y if bad else w.gathered(y, 1)}


@program("partial-nonlinear", where="gelu")
def gelu_of_a_partial_sum(w, bad):
    y = w.cut_x("x", 1, 4, 8).linear(w.cut("w1", 1, 6, 8))
    y = y.gelu() if bad else w.all_reduce(y).gelu()
    y = w.all_reduce(y) if bad else y
    return {"y": y.linear(w.param("w2", 5, 6))}


@program("partial-bias", where="add")
def bias_on_every_rank(w, bad):
    b = w.param("b", 6)
    y = w.cut_x("x", 1, 4, 8).linear(w.cut("w", 1, 6, 8))
    return {"y": w.all_reduce(y + b) if bad else w.all_reduce(y) + b}


@program("partial-bias", ranks=3, where="linear")
def bias_within_the_product(w, bad):
    b, x, m = w.param("b", 6), w.cut_x("x", 1, 4, 12), w.cut("w", 1, 6, 12)
    y = x.map(lambda t, m, b: t.linear(m, b), m, b) if bad else x.linear(m)
    y = w.all_reduce(y)
    return {"y": y if bad else y + b}


@program("bad-collective", where="all_reduce")
def sum_of_replicas(w, bad):
    y = w.x("x", 4, 8).linear(w.param("w", 6, 8))
    return {"y": (w.all_reduce(y) if bad else y).gelu()}


@program("bad-collective", where="all_gather")
def gathered_along_the_wrong_dimension(w, bad):
    y = w.x("x", 4, 8).linear(w.cut("w", 0, 8, 8))
    y = w.gathered(y, 0 if bad else 1)
    return {"y": y.gelu().sum([0], False) if bad else y.gelu().sum([0], False)}


@program("bad-collective", where="all_reduce")
def largest_of_partial_sums(w, bad):
    y = w.cut_x("x", 1, 4, 8).linear(w.cut("w", 1, 6, 8))
    return {"y": w.all_reduce(y, "max" if bad else "sum").gelu()}


@program("bad-collective", where="all_reduce")
def sum_of_shards(w, bad):
    y = w.x("x", 4, 8).linear(w.cut("w", 0, 8, 8))
    y = w.all_reduce(y).gelu() if bad else y.gelu()
    return {"y": w.gathered(y, 1) if not bad else w.gathered(y, 1)}


def heads(w, x, width, n, bad=False):
    """Attention over n heads, of which each rank has some."""
    d, own = width // n, n // w.inner
    q, k, v = (
        x.linear(w.cut(p, 0, width, width)).view(2, 4, own, d).transpose(1, 2) for p in "qkv"
    )
    s = q.matmul(k.transpose(2, 3)).mul(d**-0.5)
    s = s.map(lambda t: t.softmax(1 if bad else -1))
    y = s.matmul(v).transpose(1, 2).reshape(2, 4, own * d)
    return y.linear(w.cut("o", 1, width, width))


@program("bad-placement", where="softmax")
def softmax_over_the_heads(w, bad):
    return {"y": w.all_reduce(heads(w, w.x("x", 2, 4, 8), 8, 4, bad))}


@program("partial-bias", ranks=4, where="add")
def residual_before_the_sum(w, bad):
    x = w.x("x", 2, 4, 8)
    y = heads(w, x, 8, 4)
    y = w.all_reduce(y + x) if bad else w.all_reduce(y) + x
    return {"y": y}


@program("bad-placement", where="layer_norm")
def norm_over_a_cut_dimension(w, bad):
    y = w.x("x", 4, 8).linear(w.cut("w1", 0, 8, 8))
    if bad:
        y = y.layer_norm(w.cut("g", 0, 8), w.cut("b", 0, 8))
        return {"y": w.gathered(y, 1)}
    return {"y": w.gathered(y, 1).layer_norm(w.param("g", 8), w.param("b", 8))}


# ---- vocabulary parallel ----


def vocabulary(w, ids, size):
    own = size // w.inner
    first = w.each(lambda r: r % w.inner * own)
    out = ids.map(lambda i, a: i.lt(a).logical_or(i.ge(a + own)), first)
    return ids.map(lambda i, a, o: i.sub(a).masked_fill(o, 0), first, out), out


@program("partial-nonlinear", where="layer_norm")
def vocabulary_parallel_embedding(w, bad):
    ids = w.tokens("ids", (2, 4), 8)
    rows, out = vocabulary(w, ids, 8)
    h = w.cut("table", 0, 8, 6).embedding(rows)
    h = h.masked_fill(out.map(lambda o: o.unsqueeze(-1)), 0.0)
    h = h if bad else w.all_reduce(h)
    return {"y": h.layer_norm(w.param("g", 6), w.param("b", 6))}


@program("partial-nonlinear")
def vocabulary_parallel_loss(w, bad):
    x = w.x("x", 4, 6).linear(w.cut("head", 0, 8, 6))
    target = w.tokens("labels", (4,), 8)
    top = x.map(lambda t: t.amax(-1, True))
    top = top if bad else w.all_reduce(top, "max")
    x = x.sub(top)
    total = w.all_reduce(x.exp().sum([-1], True))
    rows, out = vocabulary(w, target, 8)
    own = x.gather(-1, rows.map(lambda i: i.unsqueeze(-1)))
    own = w.all_reduce(own.masked_fill(out.map(lambda o: o.unsqueeze(-1)), 0.0))
    return {"loss": (total.log() - own).mean([0, 1])}


# ---- sequence parallel ----


@program("bad-collective", where="all_reduce")
def sequence_parallel(w, bad):
    x = w.cut_x("x", 0, 4, 8)
    h = x.layer_norm(w.param("g", 8), w.param("b", 8))
    h = w.all_reduce(h) if bad else w.gathered(h, 0)
    y = h.linear(w.cut("w1", 0, 8, 8)).gelu().linear(w.cut("w2", 1, 8, 8))
    return {"y": w.gathered(w.scattered(y, 0), 0)}


def norm_gradients(w, x, reduced, how="sum"):
    g = w.param("g", 8, shift=1.0)
    w.training, w.leaves = True, [g]
    h = x.rms_norm(g).linear(w.param("w", 8, 8)).gelu()
    grads = w.backward(h, h.map(lambda t: t.g.ones(*t.shape, dtype=f32)))
    return w.all_reduce(grads["g"], how, taped=False) if reduced else grads["g"]


@program("gradient-unreduced", ranks=4)
def norm_gradient_of_sequence_shards(w, bad):
    x = w.cut_x("x", 0, 4, 8)
    return {"grad.g": norm_gradients(w, x, not bad)}


@program("gradient-scaled")
def norm_gradient_averaged(w, bad):
    x = w.cut_x("x", 0, 4, 8)
    return {"grad.g": norm_gradients(w, x, True, "avg" if bad else "sum")}


@program("gradient-scaled")
def norm_gradient_of_replicas(w, bad):
    return {"grad.g": norm_gradients(w, w.x("x", 4, 8), bad)}


# ---- data parallel ----


def data_parallel(w, reduce, across=False):
    x = w.batch("x", 8, 6)
    m = w.param("w", 4, 6).as_leaf("w")
    w.training, w.leaves = True, [m]
    out = x.linear(m).gelu()
    loss = out.mean([0, 1])
    grads = w.backward(loss, loss.map(lambda t: t.g.ones(dtype=f32)))
    loss = w.all_reduce(loss, "avg", across=w.inner != w.n, taped=False)
    return {"loss": loss, "grad.w": reduce(grads["w"])}


@program("gradient-scaled")
def data_parallel_summed(w, bad):
    return data_parallel(w, lambda g: w.all_reduce(g, "sum" if bad else "avg", taped=False))


@program("gradient-unreduced", ranks=3)
def data_parallel_unreduced(w, bad):
    x = w.batch("x", 6, 6)
    m = w.param("w", 4, 6).as_leaf("w")
    w.training, w.leaves = True, [m]
    out = x.linear(m).gelu()
    grads = w.backward(out, out.map(lambda t: t.g.ones(*t.shape, dtype=f32)))
    g = grads["w"]
    return {"grad.w": g if bad else w.all_reduce(g, taped=False)}


@program("gradient-unreduced", ranks=4, mesh={"dp": 2, "tp": 2})
def gradient_over_the_wrong_group(w, bad):
    across = w.inner != w.n and not bad
    return data_parallel(w, lambda g: w.all_reduce(g, "avg", across=across, taped=False))


@program("bad-collective", where="all_reduce")
def summed_loss_of_means(w, bad):
    y = w.cut_x("x", 0, 4, 6).linear(w.param("w", 4, 6)).gelu().mean([0, 1])
    return {"loss": w.all_reduce(y, "sum" if bad else "avg")}


# ---- shards of other sizes ----


@program("bad-placement", ranks=3, where="mean")
def mean_of_uneven_shards(w, bad):
    x = w.rows("x", [3, 3, 2], 6)
    y = x.linear(w.param("w", 4, 6)).gelu()
    if bad:
        return {"y": w.all_reduce(y.mean([0], False), "avg")}
    return {"y": w.all_reduce(y.sum([0], False)) / 8.0}


@program("bad-placement")
def tokens_that_are_equal_by_chance(w, bad):
    """Each rank has tokens of its own, which are the same numbers."""
    w.say("ids", 0)
    for name in ("ids", "rank0.ids", "rank1.ids"):
        w.below[name] = 3
    y = w.param("table", 3, 6).embedding(w.cut_ints("ids", 0, [2, 0, 2, 0], (4,)))
    return {"y": y if bad else w.gathered(y, 0)}


@program("size-mismatch", ranks=3, where="all_reduce")
def uneven_shards_gathered(w, bad):
    y = w.rows("x", [3, 3, 2], 6).linear(w.param("w", 4, 6))
    if w.n > 1:
        y = w.all_reduce(y) if bad else w.gathered(y, 0)
    return {"y": y.sum([0], False)}


@program("size-mismatch", ranks=3, where="all_reduce")
def padding_that_lacks(w, bad):
    x = w.rows("x", [3, 3, 2], 6)
    y = x.linear(w.param("w", 4, 6))
    if w.n == 1:
        return {"y": y.sum([0], False)}
    if bad:
        y = w.all_reduce(y)
        return {"y": y.sum([0], False)}
    pad = w.each(lambda r: [0, 0, 1][r])
    y = y.map(lambda t, p: t.op("constant_pad_nd", [t, [0, 0, 0, p], 0.0], (3, 4)), pad)
    y = w.gathered(y, 0).map(lambda t: t.slice(0, 0, 8))
    return {"y": y.sum([0], False)}


# ---- experts ----


@program("partial-nonlinear", where="silu")
def experts_of_each_rank(w, bad):
    """Each rank has some of the experts of one batched product."""
    x = w.x("x", 4, 6)
    gate = x.linear(w.param("gate", 4, 6)).softmax(-1)
    own = 4 // w.inner
    first = w.each(lambda r: r % w.inner * own)
    gate = gate.map(lambda t, a: t.slice(1, a, a + own), first)
    up = w.cut3("up", 4, 6, 5)
    h = x.unsqueeze(0).expand(own, 4, 6).bmm(up).gelu()
    y = h.mul(gate.t().unsqueeze(-1)).sum([0], False)
    y = y if bad else w.all_reduce(y)
    y = y.silu()
    return {"y": w.all_reduce(y) if bad else y}


# ---- as in Megatron-LM's issue 7452: gradients of what ranks share ----


@program("gradient-unreduced")
def norm_shared_by_the_heads(w, bad):
    """A norm of each head with one weight: each rank has the gradient of its own heads."""
    x, own = w.x("x", 4, 8), 4 // w.inner
    m = w.cut("w", 0, 8, 8)
    g = w.param("g", 2, shift=1.0)
    w.training, w.leaves = True, [g]
    h = x.linear(m).view(4, own, 2).rms_norm(g)
    y = h.gelu().view(4, own * 2).linear(w.cut("o", 1, 6, 8))
    y = w.all_reduce(y)
    grads = w.backward(y, y.map(lambda t: t.g.ones(*t.shape, dtype=f32)))
    return {"grad.g": grads["g"] if bad else w.all_reduce(grads["g"], taped=False)}


@program("partial-bias", where="add")
def gradient_norm_with_replicas(w, bad):
    """The norm of gradients of which some are cut and some are on all ranks."""
    cut, same = w.cut_x("cut", 0, 8, 4), w.x("same", 4, 4)
    a = cut.mul(cut).sum([0, 1], False)
    b = same.mul(same).sum([0, 1], False)
    total = w.all_reduce(a + b) if bad else w.all_reduce(a) + b
    return {"norm": total.sqrt()}


@program("bad-collective", where="all_reduce")
def gradient_norm_of_parts(w, bad):
    """Norms of shards do not add up, their squares do."""
    cut = w.cut_x("cut", 0, 8, 4)
    a = cut.mul(cut).sum([0, 1], False)
    if bad:
        return {"norm": w.all_reduce(a.sqrt(), "max").exp()}
    return {"norm": w.all_reduce(a).sqrt().exp()}


@program("gradient-scaled")
def router_gradient_reduced_twice(w, bad):
    x = w.x("x", 4, 8)
    g = w.param("gate", 6, 8).as_leaf("gate")
    w.training, w.leaves = True, [g]
    y = x.linear(g).softmax(-1)
    loss = y.mul(y).mean([0, 1])
    grads = w.backward(loss, loss.map(lambda t: t.g.ones(dtype=f32)))
    grad = grads["gate"]
    return {"loss": loss, "grad.gate": w.all_reduce(grad, taped=False) if bad else grad}


@program("gradient-scaled", ranks=4, mesh={"dp": 2, "tp": 2})
def gradient_summed_over_both_groups(w, bad):
    def reduce(g):
        g = w.all_reduce(g, "avg", across=w.inner != w.n, taped=False)
        return w.all_reduce(g, "sum", taped=False) if bad else g

    return data_parallel(w, reduce)


# ---- meshes, and numbers of ranks ----


def grid(w, bad, *order):
    """Rows over one axis and columns over the other, gathered in either order."""
    y = w.batch("x", 4, 8).linear(w.cut("w", 0, 6, 8)).gelu()
    for dim in order[:1] if bad else order:
        y = w.gathered(y, dim, across=dim == 0 and w.n > 1)
    return {"y": y}


@program("bad-placement", ranks=4, mesh={"dp": 2, "tp": 2})
def gathered_over_both_axes(w, bad):
    return grid(w, bad, 1, 0)


@program("bad-placement", ranks=4, mesh={"dp": 2, "tp": 2})
def gathered_over_both_axes_the_outer_first(w, bad):
    return grid(w, bad, 0, 1)


@program("bad-placement", ranks=4, mesh={"dp": 2, "tp": 2})
def gathered_behind_a_sum(w, bad):
    y = w.batch("x", 4, 8).linear(w.cut("w1", 0, 8, 8)).gelu().linear(w.cut("w2", 1, 6, 8))
    y = w.all_reduce(y)
    return {"y": y if bad else w.gathered(y, 0, across=w.n > 1)}


@program("bad-collective", ranks=3, undecided=[False])
def replicas_summed_and_divided(w, bad):
    y = w.x("x", 4, 8).linear(w.param("w", 6, 8)).gelu()
    return {"y": w.all_reduce(y) / (2.0 if bad else 3.0) if w.n > 1 else y}


@program("bad-collective", where="all_reduce", undecided=[False])
def summed_twice_and_divided(w, bad):
    y = w.all_reduce(w.cut_x("x", 1, 4, 8).linear(w.cut("w", 1, 6, 8)))
    y = w.all_reduce(y) / (4.0 if bad else 2.0) if w.n > 1 else y
    return {"y": y.gelu()}


@program("partial-bias", where="add", undecided=[False])
def bias_divided_by_the_ranks(w, bad):
    y, b = w.cut_x("x", 1, 4, 8).linear(w.cut("w", 1, 6, 8)), w.param("b", 6)
    return {"y": w.all_reduce(y + (b / (1.0 if bad else 2.0) if w.n > 1 else b)).gelu()}


@program(None, undecided=[False, True])
def norm_of_groups_of_channels(w, bad):
    """An integer that is larger for one rank, and changes no shape."""
    x = w.x("x", 2, 4).linear(w.cut("w", 0, 8, 4))
    n = 4 if w.n == 1 else 1 if bad else 2
    y = x.map(lambda t, g, b: t.group_norm(n, g, b), w.cut("g", 0, 8), w.cut("b", 0, 8))
    return {"y": w.gathered(y, 1)}


@program(None, undecided=[True])
def gradient_divided_by_another_number(w, bad):
    def reduce(g):
        return w.all_reduce(g, taped=False) / (3.0 if bad else 2.0) if w.n > 1 else g

    return data_parallel(w, reduce)


@program("replicas-differ")
def replicas_that_differ(w, bad):
    from dsl import values

    d = values("m", 6, 8)
    other = Data(d.shape, [v + (0.5 if bad else 0.0) for v in d.values])
    w.said["m"] = "R"
    m = w.each(lambda r: w.g.param(w.name(r, "m"), other if r else d))
    return {"y": w.x("x", 4, 8).linear(m)}
