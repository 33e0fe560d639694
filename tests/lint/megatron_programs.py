"""Findings of Megatron-LM's issue 7452 that a capture can show, each with a correct twin: the
computation of the finding alone, written anew. The numbers are those of the issue's list. Those of
which the list says that only a checkpoint, a process group that is never used, or Megatron-Bridge's
configuration is wrong are not here. As in placed_programs.py, to whose programs they are added."""

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


@program(None, ranks=4, mesh={"dp": 2, "tp": 2}, undecided=[True])
def finding_7_scattered_over_another_group(w, bad):
    """Each rank keeps the part that it would have in another group: parts of other data then meet,
    of which nothing can be said but that they are nothing whole."""
    h = w.batch("x", 4, 8).linear(w.param("w", 8, 8)).gelu()
    own = h.shape[1] // w.inner
    place = (lambda r: r // w.inner * own) if bad and w.n > 1 else (lambda r: r % w.inner * own)
    part = h.map(lambda t, a: t.slice(1, a, a + own), w.each(place))
    y = w.gathered(part, 1).tanh() if w.n > 1 else part.tanh()
    return {"y": w.gathered(y, 0, across=w.n > 1)}


@program(None, undecided=[True])
def finding_8_sinks_in_the_norm_of_one_rank(w, bad):
    """Gradients of which each rank has its own heads count on the first rank alone, as what all
    ranks have rightly does. What a rank alone adds is not read as one program."""
    cut, sinks, same = w.cut_x("cut", 0, 8, 4), w.cut_x("sinks", 0, 8, 1), w.x("same", 4, 4)
    own, heads, every = (t.mul(t).sum([0, 1], False) for t in (cut, sinks, same))
    first = lambda r, a, b: a + b if r == 0 else a  # noqa: E731
    at = w.each(lambda r: r)
    total = own.map(lambda t, r, b: first(r, t, b), at, heads) if bad else own + heads
    total = total.map(lambda t, r, b: first(r, t, b), at, every)
    return {"norm": w.all_reduce(total).sqrt()}


@program("bad-collective", where="all_reduce")
def finding_10_count_overwritten(w, bad):
    """The number of a rank's own tokens is overwritten by that of all."""
    mask = w.cut_x("mask", 0, 8, 1, positive=True)
    probabilities = w.x("x", 4, 6).linear(w.param("gate", 6, 6)).softmax(-1)
    loss = probabilities.mul(probabilities).mean([0, 1])
    count = mask.sum([0, 1], False)
    every = w.all_reduce(count)
    return {"loss": w.all_reduce(loss.mul(every if bad else count)) / every}


@program("group-mismatch", ranks=4, mesh={"dp": 2, "tp": 2}, where="all_reduce")
def sum_over_another_group(w, bad):
    """As of finding 4, of a sum."""
    y = w.batch("x", 4, 8).linear(w.cut("w1", 0, 8, 8)).gelu().linear(w.cut("w2", 1, 6, 8))
    y = w.all_reduce(y, across=bad and w.n > 1).gelu()
    return {"y": w.gathered(y, 0, across=w.n > 1)}
