"""Programs whose ranks lay out by rank what they exchange, count their own rows, or pass round what
they have; with wrong twins. They are added to those of placed_programs.py."""

from placed_programs import program
from world import Ranks


def positions(w, t, own, bad):
    """Those of a rank's tokens, a column."""
    first = w.each(lambda r: 0 if bad else r * own)
    return t.map(lambda u, a: u.g.arange(own).unsqueeze(1).add(a), first)


@program("bad-placement", where="masked_fill")
def causal_attention_over_cut_tokens(w, bad):
    """Keys and values are gathered; a rank counts its positions from its first token, or from 0."""
    x, own = w.cut_x("x", 0, 8, 6), 8 // w.n
    q, k, v = (x.linear(w.param(p, 6, 6)) for p in "qkv")
    k, v = w.gathered(k, 0), w.gathered(v, 0)
    later = positions(w, x, own, bad).map(lambda i: i.lt(i.g.arange(8).unsqueeze(0)))
    s = q.matmul(k.map(lambda t: t.t())).mul(0.4)
    y = s.map(lambda t, m: t.masked_fill(m, -1e9), later).softmax(-1).matmul(v)
    return {"y": w.gathered(y, 0)}


@program(["partial-nonlinear", "partial-nonlinear"])
def statistics_of_counted_rows(w, bad):
    """Sums, sums of squares and the number of rows are reduced together."""
    x = w.cut_x("x", 0, 8, 5)
    rows = float(8 // w.n)
    sums = x.map(lambda t: t.g.stack([t.sum([0]), (t * t).sum([0]), t.g.full([5], rows)], 0))
    sums = sums if bad else w.all_reduce(sums)
    mean, square = (sums.map(lambda t, k=k: t.select(0, k) / t.select(0, 2)) for k in (0, 1))
    y = (x - mean) * (square - mean * mean + 1e-5).rsqrt()
    return {"y": w.gathered(y, 0)}


@program(None, undecided=[True])
def mean_by_a_count(w, bad):
    """The number of rows is counted, and summed up or not."""
    x, rows = w.cut_x("x", 0, 8, 5), 8 // w.n
    count = x.map(lambda t: t.g.full([rows], 1.0).sum([0]))
    count = count if bad else w.all_reduce(count)
    mean = w.all_reduce(x.map(lambda t: t.sum([0]))) / count
    return {"y": w.gathered((x - mean).gelu(), 0)}


@program(None, undecided=[True])
def positions_of_each_sequence(w, bad):
    """Ranks have whole sequences of tokens, or parts of one, and count their positions from 0."""
    x, own = w.cut_x("x", 0, 16, 6), 16 // w.n
    of = own if bad else 4
    p = x.map(lambda t: t.g.arange(of).unsqueeze(1).to("float32").mul(0.1).repeat(own // of, 1))
    y = (x.linear(w.param("w", 6, 6)) * p.map(lambda t: t.cos())).softmax(-1)
    return {"y": w.gathered(y, 0)}


def exchanged(w, t):
    """As all_to_all_single does it: part k of the first dimension goes to rank k."""
    return w.all_to_all(t, 0, 0) if w.n > 1 else t


@program(None, undecided=[True])
def heads_laid_out_by_rank(w, bad):
    """Tokens are cut, then heads for the attention, then tokens again; or heads come back in a
    wrong order."""
    x, own, heads = w.cut_x("x", 0, 8, 12), 8 // w.n, 4 // w.n
    q, k, v = (x.linear(w.param(p, 12, 12)) for p in "qkv")
    q, k, v = (t.view(own, w.n, heads, 3).transpose(0, 1) for t in (q, k, v))
    q, k, v = (exchanged(w, t).reshape(8, heads, 3).transpose(0, 1) for t in (q, k, v))
    y = q.matmul(k.transpose(1, 2)).softmax(-1).matmul(v).transpose(0, 1)
    y = exchanged(w, y.reshape(w.n, own, heads, 3))
    y = (y if bad else y.transpose(0, 1)).reshape(own, 12)
    return {"y": w.gathered(y.linear(w.param("o", 6, 12)), 0)}


@program(None, undecided=[True])
def tokens_sent_to_experts(w, bad):
    """Each expert gets all tokens weighed by its gate; its results are sent back, or not."""
    x, own, experts = w.cut_x("x", 0, 8, 6), 8 // w.n, 4 // w.n
    gate = x.linear(w.param("gate", 4, 6)).softmax(-1)
    slots = gate.map(lambda t: t.t().unsqueeze(2)) * x.map(lambda t: t.unsqueeze(0))
    there = exchanged(w, slots.view(w.n, experts, own, 6)).transpose(0, 1)
    h = there.reshape(experts, 8, 6).bmm(w.cut("up", 0, 4, 6, 5)).gelu()
    h = h.bmm(w.cut("down", 0, 4, 5, 6)).view(experts, w.n, own, 6).transpose(0, 1)
    y = (h if bad else exchanged(w, h)).reshape(4, own, 6).sum([0])
    return {"y": w.gathered(y, 0)}


@program(None, ranks=4, undecided=[False, True])
def copies_sent_to_experts(w, bad):
    """Each expert normalises all tokens, so that all results are equal; they are sent back, or not:
    the ranks end with equal numbers all the same."""
    x, own, mine = w.cut_x("x", 0, 16, 6), 16 // w.n, 4 // w.n
    slots = x.map(lambda t: t.unsqueeze(0).expand(4, own, 6)) * 1.0
    h = exchanged(w, slots.view(w.n, mine, own, 6)).transpose(0, 1).reshape(mine, 16, 6)
    h = h.layer_norm(w.param("g", 6), w.param("b", 6)).view(mine, w.n, own, 6).transpose(0, 1)
    y = (h if bad else exchanged(w, h)).reshape(4, own, 6).sum([0])
    return {"loss": w.all_reduce((y * y).mean([0, 1]), "avg")}


# ---- passed round: right where the ranks end with what one rank alone has at once; else what one
# rank would do is not known, and nobody is accused ----


def passed(w, v):
    """What the rank before has."""
    return Ranks(w, [v.each[r - 1] for r in range(w.n)])


@program(None, undecided=[True])
def linear_attention_in_a_ring(w, bad):
    x = w.cut_x("x", 0, 8, 6)
    q, k, v = (x.linear(w.param(p, 6, 6)) for p in "qkv")
    y = None
    for _ in range(w.n):
        part = q.matmul(k.transpose(0, 1).matmul(v))
        y = part if y is None else y + part
        k, v = passed(w, k), v if bad else passed(w, v)
    return {"y": w.gathered(y, 0)}


@program(None, undecided=[True])
def columns_in_a_ring(w, bad):
    x, m, parts = w.cut_x("x", 0, 4, 6), w.cut("w", 0, 8, 6), [None] * w.n
    for k in range(w.n):
        parts[k] = x.linear(m)
        m = passed(w, m)
    order = w.each(lambda r: [(k if bad else r - k) % w.n for k in range(w.n)])
    y = parts[0].map(lambda t, o, *u: t.g.cat([[t, *u][k] for k in o], 1), order, *parts[1:])
    y = w.gathered(y, 0)
    return {"y": y, "z": y.softmax(-1).linear(w.param("o", 3, 8))}


@program("partial-output")
def gradients_summed_in_a_ring(w, bad):
    """Each rank adds what it gets, or once more what it has."""
    x = w.cut_x("x", 0, 8, 6)
    g = x.transpose(0, 1).matmul(x.linear(w.param("w", 6, 6)).tanh())
    y = now = g
    for _ in range(w.n - 1):
        now = passed(w, now)
        y = y + (g if bad else now)
    return {"y": y}
