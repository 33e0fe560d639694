"""More programs of several ranks with wrong twins: other layers, meshes, routings and reductions
than those of placed_programs.py, to whose programs they are added."""

from dsl import Data, count, f32, values
from placed_programs import data_parallel, program, vocabulary


def sliced(d, dim, a, b):
    """[a, b) along any dimension."""
    shape, inner = list(d.shape), count(d.shape[dim + 1 :])
    rows, step = count(d.shape[:dim]), d.shape[dim] * inner
    out = [v for r in range(rows) for v in d.values[r * step + a * inner : r * step + b * inner]]
    shape[dim] = b - a
    return Data(tuple(shape), out)


def cut(w, name, dim, *shape, input=False, outer=None):
    """Cut along any dimension. outer: over groups alone (True), or over all ranks of both axes."""
    d = values(name, *shape, input=input, **({} if input else {"scale": 0.3}))
    one, axes = "S(%d)" % dim, 1 if w.inner == w.n else 2
    of = (lambda r: r // w.inner) if outer else (lambda r: r)
    n = shape[dim] // (w.n // w.inner if outer else w.n)
    w.said[name] = one if axes == 1 else [one, "R"] if outer else [one, one]

    def leaf(r):
        part = sliced(d, dim, of(r) * n, (of(r) + 1) * n)
        if input:
            return w.g.leaf("input", w.name(r, name), part, f32)
        return w.g.param(w.name(r, name), part)

    return w.each(leaf)


def both(w, y):
    """The sum over both axes."""
    return w.all_reduce(w.all_reduce(y), across=w.n > 1)


def norm(w, h):
    return h.layer_norm(w.param("g", h.shape[-1], shift=1.0), w.param("b", h.shape[-1]))


# ---- gradients without a loss ----


def mean_gradient(w, reduce, loss=False):
    x, m = w.batch("x", 8, 6), w.param("w", 4, 6).as_leaf("w")
    w.training, w.leaves = True, [m]
    out = x.linear(m).gelu().mean([0, 1])
    grads = w.backward(out, out.map(lambda t: t.g.ones(dtype=f32)))
    return {"grad.w": reduce(grads["w"])}


@program(None, undecided=[False, True])
def gradient_of_a_mean_without_a_loss(w, bad):
    """The divisor is a number of a rank's elements, or it is what the model means."""
    return mean_gradient(w, lambda g: w.all_reduce(g, "sum" if bad else "avg", taped=False))


@program("gradient-scaled")
def gradient_divided_by_the_ranks_first(w, bad):
    """As DDP does it: each rank's gradient through the number of ranks, and then the sum."""

    def reduce(g):
        return w.all_reduce(g if bad or w.n == 1 else g.mul(1.0 / w.n), taped=False)

    return data_parallel(w, reduce)


@program(None, undecided=[False, True])
def gradient_divided_first_without_a_loss(w, bad):
    return mean_gradient(
        w, lambda g: w.all_reduce(g if bad or w.n == 1 else g.mul(1.0 / w.n), taped=False)
    )


@program("gradient-unreduced", ranks=3)
def gradient_of_a_sum_without_a_loss(w, bad):
    x, m = w.batch("x", 6, 6), w.param("w", 4, 6).as_leaf("w")
    w.training, w.leaves = True, [m]
    out = x.linear(m).silu().sum([0, 1])
    grads = w.backward(out, out.map(lambda t: t.g.ones(dtype=f32)))
    return {"grad.w": grads["w"] if bad else w.all_reduce(grads["w"], taped=False)}


@program(None, undecided=[True])
def step_of_a_summed_gradient(w, bad):
    """An optimizer's step: that gradients are summed where they are averaged shows in no loss."""
    x, m = w.batch("x", 8, 6), w.param("w", 4, 6).as_leaf("w")
    w.training, w.leaves = True, [m]
    out = x.linear(m).gelu().sum([0, 1])
    if bad:
        out = out / 16.0
    grads = w.backward(out, out.map(lambda t: t.g.ones(dtype=f32)))
    g = w.all_reduce(grads["w"], taped=False)
    return {"updated.w": m.sub(g.mul(0.001))}


# ---- gated layers, tied weights, low-rank adapters ----


@program("bad-placement", where="mul")
def gate_of_other_columns(w, bad):
    """A gate that is whole beside values that are cut."""
    x = w.x("x", 4, 8)
    up, gate = x.linear(w.cut("up", 0, 8, 8)), x.linear(w.cut("gate", 0, 8, 8)).silu()
    if bad:
        first = w.each(lambda r: 0)
        whole = w.gathered(gate, 1)
        gate = whole.map(lambda t, a: t.slice(1, a, a + 8 // w.n), first)
    return {"y": w.all_reduce(gate.mul(up).linear(w.cut("down", 1, 6, 8)))}


@program("partial-output")
def tied_embedding(w, bad):
    """One table looks tokens up and makes logits."""
    table = w.cut("table", 0, 8, 6)
    ids = w.tokens("ids", (6,), 8)
    rows, out = vocabulary(w, ids, 8)
    h = table.embedding(rows).masked_fill(out.map(lambda o: o.unsqueeze(-1)), 0.0)
    h = h if bad else w.all_reduce(h)
    if bad:
        return {"h": h}
    return {"h": h, "logits": w.gathered(norm(w, h).linear(table), 1)}


@program("partial-nonlinear", where="tanh")
def adapter_beside_a_row_parallel_layer(w, bad):
    x, a = w.cut_x("x", 1, 4, 8), w.cut("a", 1, 2, 8)
    base = w.all_reduce(x.linear(w.cut("w", 1, 6, 8)))
    low = x.linear(a)
    low = low if bad else w.all_reduce(low)
    y = low.map(lambda t: t.op("tanh", [t])).linear(w.param("b", 6, 2))
    return {"y": base + (w.all_reduce(y) if bad else y)}


@program("bad-collective", where="all_reduce")
def adapter_reduced_twice(w, bad):
    x, a = w.cut_x("x", 1, 4, 8), w.cut("a", 1, 2, 8)
    low = w.all_reduce(x.linear(a))
    y = low.linear(w.param("b", 6, 2))
    y = w.all_reduce(y) if bad else y
    return {"y": (w.all_reduce(x.linear(w.cut("w", 1, 6, 8))) + y).gelu()}


# ---- convolutions and statistics ----


def conv(x, m, groups=1):
    n, o = x.shape[2], m.shape[0]

    def one(t, m):
        shape = (x.shape[0], o, n)
        return t.op("conv1d", [t, m, None, [1], [1], [1], groups], shape)

    return x.map(one, m)


@program("partial-nonlinear", where="relu")
def convolution_of_cut_channels(w, bad):
    h = conv(w.x("x", 2, 4, 6), cut(w, "w1", 0, 8, 4, 3))
    h = h.map(lambda t: t.op("relu", [t]))
    y = conv(h, cut(w, "w2", 1, 6, 8, 3))
    y = y if bad else w.all_reduce(y)
    y = y.map(lambda t: t.op("relu", [t]))
    return {"y": w.all_reduce(y) if bad else y}


@program("bad-placement")
def convolution_over_a_cut_dimension(w, bad):
    """Each rank pads what its neighbour has."""
    x, m = cut(w, "x", 2, 2, 4, 8, input=True), w.param("w", 6, 4, 3)
    if bad:
        return {"y": w.gathered(conv(x, m), 2)}
    return {"y": conv(w.gathered(x, 2), m)}


@program("partial-nonlinear", ranks=3, where="sub")
def means_of_each_ranks_batch(w, bad):
    """One mean that is not reduced, in several places."""
    x = w.cut_x("x", 0, 6, 5)
    mean = x.mean([0], True) if bad else w.all_reduce(x.sum([0], True)) / 6.0
    c = x.sub(mean)
    var = w.all_reduce(c.mul(c).sum([0], True)) / 6.0
    return {"y": w.gathered(x.sub(mean).mul(var.add(1e-5).rsqrt()), 0)}


@program("partial-bias", ranks=3, where="add")
def variances_of_each_ranks_batch(w, bad):
    x = w.cut_x("x", 0, 6, 5)
    c = x.sub(w.all_reduce(x.mean([0], True), "avg"))
    var = c.mul(c).sum([0], True) / 6.0
    var = var if bad else w.all_reduce(var)
    return {"y": w.gathered(c.mul(var.add(1e-5).rsqrt()), 0)}


@program("partial-bias", where="add")
def norm_with_its_own_columns(w, bad):
    """The mean square of what is cut."""
    x = w.x("x", 4, 6).linear(w.cut("w", 0, 8, 6))
    s = x.mul(x).sum([-1], True)
    s = s if bad else w.all_reduce(s)
    y = x.mul((s / 8.0).add(1e-5).rsqrt())
    return {"y": w.gathered(y, 1)}


# ---- attention ----


def scores(q, k, d):
    return q.matmul(k.transpose(-1, -2)).mul(d**-0.5).softmax(-1)


@program(None, ranks=4, mesh={"kv": 2, "q": 2}, undecided=[False, True])
def grouped_queries(w, bad):
    """Two heads of keys for four of queries: neighbours have one of them together."""
    x, d, own = w.x("x", 4, 8), 2, 4 // w.n
    q = x.linear(cut(w, "q", 0, 8, 8)).view(4, own, d).transpose(0, 1)
    k, v = (x.linear(cut(w, p, 0, 4, 8, outer=True)) for p in "kv")
    k, v = (t.view(4, max(1, own // 2), d).transpose(0, 1) for t in (k, v))
    if own > 1:
        k, v = (t.map(lambda t: t.repeat_interleave(2, 0)) for t in (k, v))
    y = scores(q, k, d).matmul(v).transpose(0, 1).reshape(4, own * d)
    y = y.linear(cut(w, "o", 1, 6, 8))
    return {"y": both(w, y.gelu()) if bad else both(w, y).gelu()}


@program("bad-placement")
def exchange_of_sequence_and_heads(w, bad):
    """Tokens are cut, then heads for the attention, then tokens again."""
    x = w.cut_x("x", 0, 8, 8)
    q, k, v = (x.linear(w.param(p, 8, 8)).view(8 // w.n, 4, 2) for p in "qkv")
    q, k, v = (w.all_to_all(t, 1, 0) if w.n > 1 else t for t in (q, k, v))
    q, k, v = (t.transpose(0, 1) for t in (q, k, v))
    y = scores(q, k, 2).matmul(v).transpose(0, 1)
    if w.n > 1:
        y = w.all_to_all(y, 0, 1)
    y = y.reshape(8 // w.n, 8)
    y = y if bad else y.linear(w.param("o", 6, 8))
    return {"y": y if bad else w.gathered(y, 0)}


@program("bad-placement")
def keys_of_each_rank_alone(w, bad):
    """Tokens are cut; keys and values have to be gathered."""
    x = w.cut_x("x", 0, 8, 4)
    q, k, v = (x.linear(w.param(p, 4, 4)) for p in "qkv")
    if not bad:
        k, v = w.gathered(k, 0), w.gathered(v, 0)
    return {"y": w.gathered(scores(q, k, 4).matmul(v), 0)}


@program("bad-collective", where="all_reduce")
def denominators_of_averages(w, bad):
    """Softmax by parts: sums of exponentials are summed, not averaged."""
    x = w.x("x", 4, 6).linear(w.cut("w", 0, 8, 6))
    top = w.all_reduce(x.map(lambda t: t.amax(-1, True)), "max")
    e = x.sub(top).exp()
    total = w.all_reduce(e.sum([-1], True), "avg" if bad else "sum")
    return {"p": w.gathered(e.div(total), 1)}


@program("bad-collective", where="all_reduce")
def largest_by_a_sum(w, bad):
    x = w.x("x", 4, 6).linear(w.cut("w", 0, 8, 6))
    top = x.map(lambda t: t.amax(-1, True))
    return {"top": w.all_reduce(top, "sum" if bad else "max").gelu()}


# ---- experts ----


def routed(w, x, experts):
    """The chosen expert's weight for each token, 0 for the others."""
    p = x.linear(w.param("gate", experts, x.shape[1])).softmax(-1)
    top = p.map(lambda t: t.amax(-1, True))
    return p.mul(p.map(lambda t, m: t.op("ge.Tensor", [t, m], dtype="bool").to(f32), top))


@program("partial-nonlinear", where="layer_norm")
def routing_to_one_expert(w, bad):
    x = w.x("x", 5, 6)
    gate = routed(w, x, 4)
    own = 4 // w.n
    gate = gate.map(lambda t, a: t.slice(1, a, a + own), w.each(lambda r: r * own))
    h = x.unsqueeze(0).expand(own, 5, 6).bmm(w.cut3("up", 4, 6, 5)).silu()
    y = h.bmm(w.cut3("down", 4, 5, 6)).mul(gate.t().unsqueeze(-1)).sum([0])
    return {"y": norm(w, y if bad else w.all_reduce(y))}


@program("bad-placement", where="topk")
def best_of_each_ranks_experts(w, bad):
    """The two best of all are not the two best of some."""
    x = w.x("x", 5, 6)
    p = x.linear(w.cut("gate", 0, 8, 6))
    p = p if bad else w.gathered(p, 1)
    best = p.map(lambda t: t.topk(2)[0])
    return {"best": w.gathered(best, 1) if bad else best}


@program("bad-collective", where="all_reduce")
def shared_expert_summed(w, bad):
    """What all ranks compute of the shared expert is in the sum of the routed ones."""
    x, own = w.x("x", 5, 6), 4 // w.n
    gate = x.linear(w.param("gate", 4, 6)).softmax(-1)
    gate = gate.map(lambda t, a: t.slice(1, a, a + own), w.each(lambda r: r * own))
    h = x.unsqueeze(0).expand(own, 5, 6).bmm(w.cut3("up", 4, 6, 6))
    y = w.all_reduce(h.mul(gate.t().unsqueeze(-1)).sum([0]))
    shared = x.linear(w.param("shared", 6, 6)).gelu()
    return {"y": y + (w.all_reduce(shared) if bad else shared)}


@program("bad-collective", where="all_reduce")
def balance_of_gathered_loads(w, bad):
    """A loss of the loads of experts: tokens are cut."""
    x = w.cut_x("x", 0, 8, 6)
    p = x.linear(w.param("gate", 4, 6)).softmax(-1)
    load = w.all_reduce(p.mean([0]), "sum" if bad else "avg")
    return {"loss": load.mul(load).sum([0])}


# ---- two axes ----


@program("bad-collective", ranks=4, mesh={"dp": 2, "tp": 2}, where="all_reduce")
def reduced_over_both_axes(w, bad):
    """Columns' sums over tp, and again over dp, where the rows are other ones."""
    y = w.batch("x", 4, 8).linear(w.cut("w1", 0, 8, 8)).gelu().linear(w.cut("w2", 1, 6, 8))
    y = w.all_reduce(y)
    if w.n > 1 and bad:
        y = w.all_reduce(y, across=True)
    y = y.gelu()
    return {"y": w.gathered(y, 0, across=w.n > 1)}


@program("partial-nonlinear", ranks=4, mesh={"dp": 2, "tp": 2}, where="gelu")
def sum_over_one_of_two_axes(w, bad):
    """A contraction that is cut over both axes."""
    y = cut(w, "x", 1, 4, 8, input=True).linear(cut(w, "w", 1, 6, 8))
    y = w.all_reduce(y)
    if w.n > 1 and not bad:
        y = w.all_reduce(y, across=True)
    y = y.gelu()
    if w.n > 1 and bad:
        y = w.all_reduce(y, across=True)
    return {"y": y}


@program("group-mismatch", ranks=4, mesh={"dp": 2, "tp": 2}, where="all_gather")
def gathered_over_the_other_axis(w, bad):
    y = w.x("x", 4, 8).linear(w.cut("w", 0, 8, 8)).gelu()
    return {"y": w.gathered(y, 1, across=bad and w.n > 1)}


# ---- scattered and gathered ----


@program("partial-bias", where="add")
def bias_before_the_scatter(w, bad):
    y, b = w.cut_x("x", 1, 4, 8).linear(w.cut("w", 1, 6, 8)), w.param("b", 6)
    y = w.scattered(y + b, 0) if bad else w.scattered(y, 0) + b
    return {"y": w.gathered(y.gelu(), 0)}


@program("bad-collective", where="reduce_scatter")
def scattered_replicas(w, bad):
    """The replicas' sum is scattered in place of a slice of each."""
    x, own = w.x("x", 4, 8), 4 // w.n
    if bad:
        part = w.scattered(x, 0)
    else:
        part = x.map(lambda t, a: t.slice(0, a, a + own), w.each(lambda r: r * own))
    return {"y": w.gathered(part.gelu(), 0)}


@program("bad-collective", ranks=3)
def averaged_shards_of_uneven_rows(w, bad):
    """The mean over rows of which the last rank has fewer."""
    x = w.rows("x", [3, 3, 2], 6).linear(w.param("w", 4, 6)).gelu()
    s = w.all_reduce(x.sum([0], True), "avg" if bad else "sum") / 8.0
    return {"y": s.gelu()}


@program("bad-placement", where="cumsum")
def running_sums_of_shards(w, bad):
    x = w.cut_x("x", 0, 6, 4)
    x = x if bad else w.gathered(x, 0)
    y = x.map(lambda t: t.cumsum(0))
    return {"y": w.gathered(y, 0) if bad else y}


@program("bad-placement", where="argmax")
def best_token_of_a_part(w, bad):
    x = w.x("x", 4, 6).linear(w.cut("head", 0, 8, 6))
    x = x if bad else w.gathered(x, 1)
    return {"best": x.map(lambda t: t.argmax(-1))}


@program("bad-placement", where="add")
def positions_that_begin_at_0_on_each_rank(w, bad):
    """Tokens are cut, and each rank counts its positions from 0."""
    x, own = w.cut_x("x", 0, 8, 4), 8 // w.n
    table = w.param("table", 8, 4)
    at = w.each(lambda r: 0 if bad else r * own)
    y = x.add(table.map(lambda t, a: t.slice(0, a, a + own), at))
    return {"y": w.gathered(y, 0)}


# ---- rows of a table that a rank has a part of, numbered in ways of their own ----


def rows_by(number):
    """One rank alone has the bound of the whole table. Of the wrong twin it is not known what one
    rank would number: nobody is accused."""

    def build(w, bad):
        ids, own = w.tokens("ids", (2, 4), 8), 8 // w.inner
        first = w.each(lambda r: r % w.inner * own)
        _, out = vocabulary(w, ids, 8)
        rows = ids.map(lambda i, a: number(i, a, own), first)
        h = w.cut("table", 0, 8, 6).embedding(rows)
        if not bad:
            h = h.masked_fill(out.map(lambda o: o.unsqueeze(-1)), 0.0)
        return {"y": w.all_reduce(h)}

    return build


for name, number in (
    ("clamp", lambda i, a, own: i.sub(a).clamp(0, own - 1)),
    ("remainder", lambda i, a, own: i.remainder(own)),
    ("relu", lambda i, a, own: i.sub(a).op("relu", [i.sub(a)]).clamp(None, own - 1)),
):
    build = rows_by(number)
    build.__name__ = "rows by " + name
    program(None, undecided=[True])(build)


@program("partial-output")
def rows_that_a_mask_numbers(w, bad):
    """The mask asks whether a row is among the rank's own, by the number that it has there."""
    ids, own = w.tokens("ids", (2, 4), 8), 8 // w.inner
    first = w.each(lambda r: r % w.inner * own)
    row = ids.map(lambda i, a: i.sub(a), first)
    out = row.map(lambda i: i.lt(0).logical_or(i.ge(own)))
    h = w.cut("table", 0, 8, 6).embedding(row.map(lambda i, o: i.masked_fill(o, 0), out))
    h = h.masked_fill(out.map(lambda o: o.unsqueeze(-1)), 0.0)
    return {"y": h if bad else w.all_reduce(h)}


# ---- shards that ranks go through in pieces, or whose ends their neighbours need ----


@program(None, undecided=[False, True])
def ends_of_shards(w, bad):
    """A convolution over what is cut: each rank needs the end of the shard before its own."""
    x, own = cut(w, "x", 2, 2, 3, 8, input=True), 8 // w.n
    a = 0 if bad else own - 1
    ends = w.gathered(x.map(lambda t: t.slice(2, a, a + 1)), 2)
    before = ends.map(
        lambda t, r: t.slice(2, r - 1, r) if r else t.slice(2, 0, 1) * 0.0, w.each(lambda r: r)
    )
    y = x.map(lambda t, b: t.g.cat([b, t], 2), before).map(
        lambda t, k: t.conv1d(k), w.param("k", 4, 3, 2)
    )
    return {"y": w.gathered(y, 2) * 2.0}


@program(["bad-placement", "bad-collective"], where="slice", undecided=[False])
def pieces_of_shards(w, bad):
    """Each rank goes through its rows in two pieces, or forgets the second."""
    x, half = w.cut_x("x", 0, 8, 6), 4 // w.n
    m = w.param("w", 5, 6)
    y, *rest = (
        x.map(lambda t, a=a: t.slice(0, a, a + half)).linear(m).gelu()
        for a in ((0,) if bad else (0, half))
    )
    return {"y": w.gathered(y.map(lambda t, *u: t.g.cat([t, *u], 0), *rest), 0)}


@program("bad-placement", where="cumsum")
def sums_that_are_carried(w, bad):
    """Running sums over what is cut: each rank adds what the ranks before it have."""
    x, own = w.cut_x("x", 0, 8, 6), 8 // w.n
    c = x.linear(w.param("w", 5, 6)).cumsum(0)
    if not bad:
        ends = w.gathered(c.map(lambda t: t.slice(0, own - 1, own)), 0)
        c = c.map(
            lambda t, e, r: t + e.slice(0, 0, r).sum(0, True) if r else t, ends, w.each(lambda r: r)
        )
    return {"y": w.gathered(c, 0)}


@program(None, undecided=[True])
def last_token(w, bad):
    """It is the last rank's; counted from the end, no other rank's will do."""
    x = w.cut_x("x", 0, 8, 6).gelu()
    root = 0 if bad else w.n - 1
    h = w.collective(
        x.map(lambda t: t.slice(0, -1)),
        lambda p: [p[0].op("dist::broadcast", [list(p), root])] * len(p),
    )
    return {"y": h.linear(w.param("w", 5, 6))}


@program("bad-placement", where="slice")
def own_rows_of_a_sum(w, bad):
    """Each rank takes its rows of its part of a sum, which nobody has added up."""
    y, own = w.cut_x("x", 1, 4, 8).linear(w.cut("w", 1, 6, 8)), 4 // w.n
    first = w.each(lambda r: r * own)
    if bad:
        y = y.map(lambda t, a: t.slice(0, a, a + own), first)
    elif w.n > 1:
        y = w.scattered(y, 0)
    return {"y": w.gathered(y.gelu(), 0)}
