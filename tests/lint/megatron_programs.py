"""Findings of Megatron-LM's issue 7452 that a capture can show, each with a correct twin: the
computation of the finding alone, written anew. The numbers are those of the issue's list. That of
which the list says that only a checkpoint (12) is wrong is not here (docs/placements.md). As in
placed_programs.py, to whose programs they are added."""

from dsl import f32, values
from own_programs import scores, sliced
from placed_programs import program, vocabulary

VOCABULARY = 8


def log_sum(w, x):
    """The logarithm of the sum of exponentials over a vocabulary of which each rank has a part."""
    top = w.all_reduce(x.map(lambda t: t.amax(-1, True)), "max")
    return w.all_reduce(x.sub(top).exp().sum([-1], True)).log() + top


def of_targets(w, x, target, size):
    """The logits of the targets; a rank whose part has a target's gives it."""
    rows, out = vocabulary(w, target, size)
    own = x.gather(-1, rows.map(lambda i: i.unsqueeze(-1)))
    return w.all_reduce(own.masked_fill(out.map(lambda o: o.unsqueeze(-1)), 0.0))


@program("partial-bias", where="sub")
def finding_1_label_smoothing(w, bad):
    """The mean of log-probabilities is of the rank's own part of the vocabulary."""
    x = w.x("x", 4, 6).linear(w.cut("head", 0, VOCABULARY, 6))
    target = w.tokens("labels", (4,), VOCABULARY)
    z = log_sum(w, x)
    loss = z - of_targets(w, x, target, VOCABULARY)
    own = x.sub(z).sum([-1], True)
    if bad and w.n > 1:
        smooth = own / float(VOCABULARY // w.n)
    else:
        smooth = w.all_reduce(own) / float(VOCABULARY)
    return {"loss": (loss * 0.9 - smooth * 0.1).mean([0, 1])}


@program("bad-collective", where="all_reduce")
def finding_2_gathered_logits(w, bad):
    """Logits that were gathered go into a loss that takes parts of the vocabulary."""
    x = w.x("x", 4, 6).linear(w.cut("head", 0, VOCABULARY, 6))
    target = w.tokens("labels", (4,), VOCABULARY)
    if bad and w.n > 1:
        x = w.gathered(x, 1)
        total = w.all_reduce(x.exp().sum([-1], True)).log()
        own = x.gather(-1, target.map(lambda i: i.unsqueeze(-1)))
        return {"loss": (total - own).mean([0, 1])}
    return {"loss": (log_sum(w, x) - of_targets(w, x, target, VOCABULARY)).mean([0, 1])}


@program("partial-nonlinear", where="div")
def finding_3_local_token_counts(w, bad):
    """A mean over the rank's own tokens that count, and then over ranks."""
    each, mask = w.cut_x("each", 0, 8, 2), w.cut_x("mask", 0, 8, 2, positive=True)
    total, count = each.mul(mask).sum([0, 1], False), mask.sum([0, 1], False)
    if bad:
        return {"loss": w.all_reduce(total / count, "avg")}
    return {"loss": w.all_reduce(total) / w.all_reduce(count)}


def saved_in_parts(w, h, restored):
    """Activations that all ranks of a group have are kept in parts, one on each rank."""
    own = h.shape[1] // w.inner
    first = w.each(lambda r: r % w.inner * own)
    return restored(h.map(lambda t, a: t.slice(1, a, a + own), first))


@program("group-mismatch", ranks=4, mesh={"dp": 2, "tp": 2}, where="all_gather")
def finding_4_recomputed_over_another_group(w, bad):
    """Parts of activations are gathered over ranks that have other data."""
    h = w.batch("x", 4, 8).linear(w.param("w", 8, 8)).gelu()
    h = saved_in_parts(w, h, lambda p: w.gathered(p, 1, across=bad and w.n > 1))
    y = h.linear(w.cut("w2", 0, 6, 8))
    y = w.gathered(y, 1)
    return {"y": w.gathered(y, 0, across=w.n > 1)}


@program("bad-placement", ranks=4, mesh={"dp": 2, "tp": 2}, where="mul")
def finding_5_padding_of_another_group(w, bad):
    """Each rank has some tokens of its group's sequence, and of the padding mask those that it
    would have in another group."""
    x, mask = tokens_of_both(w, "x", 2, 4, 6), w.batch("mask", 2, 4, 1)
    own = mask.shape[1] // w.inner
    place = (lambda r: r // w.inner * own) if bad and w.n > 1 else (lambda r: r % w.inner * own)
    part = mask.map(lambda t, a: t.slice(1, a, a + own), w.each(place))
    p = x.linear(w.param("gate", 5, 6)).softmax(-1).mul(part).sum([0, 1])
    p = w.all_reduce(w.all_reduce(p), across=w.n > 1)
    return {"loads": p.mul(p)}


@program("replicas-differ", ranks=4, mesh={"dp": 2, "tp": 2})
def finding_6_queries_of_another_group(w, bad):
    """The queries of a cross attention are cut over another group than what follows them."""
    x, other = w.batch("x", 2, 4, 8), w.batch("other", 2, 3, 8)
    own = 4 // w.inner

    def heads(t, name):
        return t.linear(projection(w, name, bad and name == "q")).view(
            t.shape[0], t.shape[1], own, 2
        )

    q, k, v = heads(x, "q"), heads(other, "k"), heads(other, "v")
    q, k, v = (t.transpose(1, 2) for t in (q, k, v))
    y = scores(q, k, 2).matmul(v).transpose(1, 2).reshape(x.shape[0], 4, own * 2)
    y = w.all_reduce(y.linear(w.cut("o", 1, 6, 8)))
    return {"y": w.gathered(y, 0, across=w.n > 1)}


def projection(w, name, bad):
    """Rows of a weight for each rank, by its place in a group."""
    d, n = values(name, 8, 8, scale=0.3), 8 // w.inner
    w.say(name, 0)
    place = (lambda r: r // w.inner) if bad and w.n > 1 else (lambda r: r % w.inner)
    return w.each(lambda r: w.g.param(w.name(r, name), d.rows(place(r) * n, place(r) * n + n)))


def tokens_of_both(w, name, batch, length, width):
    """Samples are cut over one axis, and their tokens over the other."""
    d, outer = values(name, batch, length, width, input=True), w.n // w.inner
    w.said[name] = ["S(0)", "S(1)"]
    b, n = batch // outer, length // w.inner

    def leaf(r):
        mine = d.rows(r // w.inner * b, (r // w.inner + 1) * b)
        mine = sliced(mine, 1, r % w.inner * n, (r % w.inner + 1) * n)
        return w.g.leaf("input", w.name(r, name), mine, f32)

    return w.each(leaf)


@program("bad-collective", ranks=4, mesh={"dp": 2, "tp": 2}, where="all_gather")
def finding_7_scattered_over_another_group(w, bad):
    """Each rank keeps the part that it would have in another group: parts of other data then meet,
    and the ranks that gather have the same part each."""
    h = w.batch("x", 4, 8).linear(w.param("w", 8, 8)).gelu()
    own = h.shape[1] // w.inner
    place = (lambda r: r // w.inner * own) if bad and w.n > 1 else (lambda r: r % w.inner * own)
    part = h.map(lambda t, a: t.slice(1, a, a + own), w.each(place))
    y = w.gathered(part, 1).tanh() if w.n > 1 else part.tanh()
    return {"y": w.gathered(y, 0, across=w.n > 1)}


@program("bad-placement", where="add")
def finding_8_sinks_in_the_norm_of_one_rank(w, bad):
    """Gradients of which each rank has its own heads count on the first rank alone, as what all
    ranks have rightly does."""
    cut, sinks, same = w.cut_x("cut", 0, 8, 4), w.cut_x("sinks", 0, 8, 1), w.x("same", 4, 4)
    own, heads, every = (t.mul(t).sum([0, 1], False) for t in (cut, sinks, same))
    first = lambda r, a, b: a + b if r == 0 else a  # noqa: E731
    at = w.each(lambda r: r)
    total = own.map(lambda t, r, b: first(r, t, b), at, heads) if bad else own + heads
    total = total.map(lambda t, r, b: first(r, t, b), at, every)
    return {"norm": w.all_reduce(total).sqrt()}


@program(["partial-nonlinear", "gradient-scaled"], where="div")
def finding_9_gradients_by_local_token_counts(w, bad):
    """Each rank's gradient is of a mean over its own tokens that count; then a mean over ranks. Of
    what all count, the sum over ranks is right."""
    x, mask = w.cut_x("x", 0, 8, 6), w.cut_x("mask", 0, 8, 1, positive=True)
    m = w.param("w", 4, 6).as_leaf("w")
    w.training, w.leaves = True, [m]
    out = x.linear(m).gelu()
    count = mask.sum([0, 1], False)
    every = w.all_reduce(count, taped=False)
    grads = w.backward(out, mask.div(count if bad else every).expand(8 // w.n, 4))
    loss = w.all_reduce(out.mul(mask).sum([0, 1], False), taped=False) / every
    return {"loss": loss, "grad.w": w.all_reduce(grads["w"], "avg" if bad else "sum", taped=False)}


@program("bad-collective", where="all_reduce")
def finding_10_count_overwritten(w, bad):
    """The number of a rank's own tokens is overwritten by that of all."""
    mask = w.cut_x("mask", 0, 8, 1, positive=True)
    probabilities = w.x("x", 4, 6).linear(w.param("gate", 6, 6)).softmax(-1)
    loss = probabilities.mul(probabilities).mean([0, 1])
    count = mask.sum([0, 1], False)
    every = w.all_reduce(count)
    return {"loss": w.all_reduce(loss.mul(every if bad else count)) / every}


@program("gradient-unreduced")
def finding_11_gated_norm_of_the_heads(w, bad):
    """The weight of a norm of each head is on all ranks; its gradient is of a rank's own heads."""
    x, own = w.x("x", 4, 8), 4 // w.inner
    g = w.param("g", 2, shift=1.0)
    w.training, w.leaves = True, [g]
    gate = x.linear(w.cut("gate", 0, 8, 8)).view(4, own, 2).silu()
    h = x.linear(w.cut("w", 0, 8, 8)).view(4, own, 2).rms_norm(g).mul(gate)
    y = w.all_reduce(h.view(4, own * 2).linear(w.cut("o", 1, 6, 8)))
    grads = w.backward(y, y.map(lambda t: t.g.ones(*t.shape, dtype=f32)))
    return {"grad.g": grads["g"] if bad else w.all_reduce(grads["g"], taped=False)}


@program("group-mismatch", ranks=4, mesh={"dp": 2, "cp": 2}, where="all_gather")
def finding_13_second_batch_in_the_first_group(w, bad):
    """Keys and values are gathered over a group that belongs to each microbatch; behind the first
    one the group of before is back."""
    y, m = None, [w.param(p, 4, 4) for p in "qkv"]
    for k in range(2):
        x = tokens_of_both(w, "x%d" % k, 2, 4, 4)
        q, keys, rows = (x.linear(p) for p in m)
        wrong = bad and k == 1 and w.n > 1
        keys, rows = (w.gathered(t, 1, across=wrong) for t in (keys, rows))
        one = scores(q, keys, 4).matmul(rows).sum([0, 1])
        y = one if y is None else y + one
    return {"y": w.all_reduce(w.all_reduce(y), across=w.n > 1)}


@program("group-mismatch", ranks=4, mesh={"dp": 2, "tp": 2}, where="all_reduce")
def sum_over_another_group(w, bad):
    """As of finding 4, of a sum."""
    y = w.batch("x", 4, 8).linear(w.cut("w1", 0, 8, 8)).gelu().linear(w.cut("w2", 1, 6, 8))
    y = w.all_reduce(y, across=bad and w.n > 1).gelu()
    return {"y": w.gathered(y, 0, across=w.n > 1)}
