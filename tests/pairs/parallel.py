"""Sequential programs and what several ranks make of them: GPT, Llama and a routed expert layer,
forward and backward, under every common way to divide them. `build(kind, model, ranks, layers,
backward)` gives the two sides and the relations of their outputs; the truth is known, because both
are the same code (world.py) and collectives stand where its rules ask for them. Truth is measured
all the same: truth() runs both sides with PyTorch.

    tests/pairs/parallel.py write FOLDER KIND MODEL RANKS LAYERS [--backward] [--fault N]"""

import math
import os
import random
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from dsl import Data, boolean, f32, values
from world import Named, Ranks, Stages, World


class Config:
    def __init__(self, model, ranks, layers, kv=None):
        self.model, self.ranks, self.layers = model, ranks, layers
        self.heads = {1: 2, 2: 4, 3: 6}.get(ranks, ranks)
        self.head = 4
        self.width = self.heads * self.head
        self.kv = kv or (self.heads if model == "gpt" else max(self.heads // 2, ranks))
        if self.heads % self.kv:
            self.kv = self.heads
        self.mid = 2 * self.width
        self.vocabulary = 4 * self.heads
        self.batch, self.length = 2, 2 * ranks
        self.length = max(self.length, 4)


class Way:
    """How a program is divided: what stands before and behind the blocks whose weights are cut."""

    def __init__(self, w, tensor=False, sequence=False, gather=None):
        self.w, self.tensor, self.sequence = w, tensor, sequence
        self.gather = gather  # ZeRO: parameters are whole where they are used

    def enter(self, h):
        if not self.tensor:
            return h
        return self.w.all_gather(h, 1) if self.sequence else self.w.copy(h)

    def leave(self, h):
        if not self.tensor:
            return h
        return self.w.reduce_scatter(h, 1) if self.sequence else self.w.all_reduce(h)

    def whole(self, name, *shape, **how):
        if self.gather:
            return self.gather(name, *shape, **how)
        return self.w.param(name, *shape, **how)

    def cut(self, name, dim, *shape, unit=None, **how):
        if not self.tensor:
            return self.whole(name, *shape, **how)
        return self.w.cut(name, dim, *shape, unit=unit, **how)

    def own(self):
        """How many parts weights are in."""
        return self.w.inner if self.tensor and self.w.n > 1 else 1


# ---- blocks ----


def heads_first(x, b, t, n, d):
    return x.view(b, t, n, d).transpose(1, 2).reshape(b * n, t, d)


def repeated(x, b, t, kv, times, d):
    """Key-value heads, each for `times` heads: [b * kv, t, d] to [b * kv * times, t, d]."""
    if times == 1:
        return x
    return x.view(b, kv, t, d).unsqueeze(2).expand(b, kv, times, t, d).reshape(b * kv * times, t, d)


def causal(w, t):
    """True where a query must not see."""
    g = w.g
    at = [j > i for i in range(t) for j in range(t)]
    mask = g.leaf("constant", "mask%d" % t, Data((t, t), at), boolean)
    return Ranks(w, [mask] * w.n)


def plain_attention(w, q, k, v, d):
    s = q.bmm(k.transpose(1, 2)).mul(d**-0.5).masked_fill(causal(w, q.shape[1]), -math.inf)
    return s.softmax(-1).bmm(v)


def attention(way, c, name, h, rope=None, bias=False, core=plain_attention):
    w, n = way.w, way.own()
    b, t, _ = h.shape
    heads, kv = c.heads // n, max(1, c.kv // n)
    part = lambda p, m, unit: h.linear(
        way.cut("%s.%s.weight" % (name, p), 0, m * c.head, c.width, unit=unit),
        way.cut("%s.%s.bias" % (name, p), 0, m * c.head, unit=unit) if bias else None,
    )
    q, k, v = part("q", c.heads, None), part("k", c.kv, c.head), part("v", c.kv, c.head)
    q, k, v = (heads_first(x, b, t, m, c.head) for x, m in ((q, heads), (k, kv), (v, kv)))
    if rope:
        q, k = rope(q), rope(k)
    k, v = (repeated(x, b, t, kv, heads // kv, c.head) for x in (k, v))
    o = core(w, q, k, v, c.head)
    o = o.view(b, heads, t, c.head).transpose(1, 2).reshape(b, t, heads * c.head)
    return o.linear(way.cut("%s.o.weight" % name, 1, c.width, c.width))


def rope_of(w, t, d, at=None):
    """x * cos + rotate_half(x) * sin; `at`: the first position of each rank."""
    half, tables = d // 2, {}
    for f in ("cos", "sin"):

        def rows(r, f=f):
            first = at(r) if at else 0
            data = [
                getattr(math, f)((first + p) * 10000.0 ** (-(i % half) / half))
                for p in range(t)
                for i in range(d)
            ]
            name = w.name(r, f) if at else f
            return w.g.leaf("constant", name, Data((t, d), data), f32)

        tables[f] = w.each(rows) if at else Ranks(w, [rows(0)] * w.n)

    def apply(x):
        turned = x.slice(-1, half, d).neg().cat([x.slice(-1, 0, half)], -1)
        return x.mul(tables["cos"]).add(turned.mul(tables["sin"]))

    return apply


def gpt_block(way, c, l, h, core=plain_attention, rope=None):
    p = lambda n: "layers.%d.%s" % (l, n)
    norm = lambda n, x: x.layer_norm(
        way.whole(p(n + ".weight"), c.width, shift=1.0), way.whole(p(n + ".bias"), c.width)
    )
    a = attention(way, c, p("attn"), way.enter(norm("ln1", h)), bias=True, core=core)
    h = h + (way.leave(a) + way.whole(p("attn.o.bias"), c.width))
    m = way.enter(norm("ln2", h))
    m = m.linear(
        way.cut(p("mlp.up.weight"), 0, c.mid, c.width), way.cut(p("mlp.up.bias"), 0, c.mid)
    ).gelu()
    m = m.linear(way.cut(p("mlp.down.weight"), 1, c.width, c.mid))
    return h + (way.leave(m) + way.whole(p("mlp.down.bias"), c.width))


def llama_block(way, c, l, h, core=plain_attention, rope=None):
    p = lambda n: "layers.%d.%s" % (l, n)
    norm = lambda n, x: x.rms_norm(way.whole(p(n + ".weight"), c.width, shift=1.0))
    a = attention(
        way, c, p("attn"), way.enter(norm("ln1", h)), rope, bias=c.model == "qwen", core=core
    )
    h = h + way.leave(a)
    m = way.enter(norm("ln2", h))
    gate = m.linear(way.cut(p("mlp.gate.weight"), 0, c.mid, c.width)).silu()
    up = m.linear(way.cut(p("mlp.up.weight"), 0, c.mid, c.width))
    return h + way.leave((gate * up).linear(way.cut(p("mlp.down.weight"), 1, c.width, c.mid)))


def dense_experts(way, c, l, h, count):
    """The two best experts of each token, computed for all tokens."""
    w, n = way.w, way.own()
    p = lambda name: "layers.%d.%s" % (l, name)
    b, t, _ = h.shape
    each = count // n
    x = h.rms_norm(way.whole(p("ln.weight"), c.width, shift=1.0)).view(b * t, c.width)
    best, which = x.linear(way.whole(p("router.weight"), count, c.width)).softmax(-1).topk(2)
    best = best / best.sum([-1], True)
    share = way.enter(best.spread((b * t, count), which))
    x = way.enter(x)
    out = None
    for e in range(each):

        def weight(q, *shape, e=e):
            """Of the expert that is this rank's e-th; the name is that of the rank's own."""
            own = p("experts.%d.%s" % (e, q))
            whole = lambda r: p("experts.%d.%s" % (r % n * each + e, q))
            return w.each(
                lambda r: w.g.param(w.name(r, own), values(whole(r), *shape, scale=0.3))
            ).as_leaf(own)

        y = x.linear(weight("w1", c.mid, c.width)).silu().linear(weight("w2", c.width, c.mid))
        y = y * share.select(-1, lambda r, e=e: r % n * each + e).unsqueeze(-1)
        out = y if out is None else out + y
    return h + way.leave(out).view(b, t, c.width)


def exchanged_experts(way, c, l, h, count):
    """Experts on other ranks than their tokens: two exchanges of all with all."""
    w = way.w
    p = lambda n: "layers.%d.%s" % (l, n)
    t = h.shape[0]
    x = h.rms_norm(w.param(p("ln.weight"), c.width, shift=1.0))
    best, which = x.linear(w.param(p("router.weight"), count, c.width)).softmax(-1).topk(2)
    share = best.spread((t, count), which).t().unsqueeze(-1)
    sent = x.unsqueeze(0) * share.map(lambda s: s.gt(0.0).to(f32))
    got = w.all_to_all(sent, 0, 1)
    y = got.bmm(w.cut(p("w1"), 0, count, c.width, c.mid)).silu()
    y = y.bmm(w.cut(p("w2"), 0, count, c.mid, c.width))
    return h + (w.all_to_all(y, 1, 0) * share).sum([0])


# ---- ends ----


def vocabulary_rows(w, way, ids, c):
    """Ids as rows of each rank's part of the table, and which are another rank's."""
    size = c.vocabulary // way.own()
    first = w.each(lambda r: r % w.inner * size)
    out = ids.map(lambda i, a: i.lt(a).logical_or(i.ge(a + size)), first)
    if c.model == "qwen":  # the same, as others write it
        return ids.map(lambda i, a, o: o.where(0, i.sub(a)), first, out), out
    return ids.map(lambda i, a, o: i.sub(a).masked_fill(o, 0), first, out), out


def embed(way, c, ids, first=None):
    w = way.w
    table = way.cut("embed.weight", 0, c.vocabulary, c.width)
    if way.own() == 1:
        h = table.embedding(ids)
        return h
    rows, out = vocabulary_rows(w, way, ids, c)
    h = table.embedding(rows).masked_fill(out.map(lambda o: o.unsqueeze(-1)), 0.0)
    return way.leave(h)


def loss_of(way, c, logits, labels):
    """The mean cross entropy of [b, t, v]; over vocabulary shards with three reductions."""
    w = way.w
    v = logits.shape[-1]
    flat = logits.view(-1 if False else logits.shape[0] * logits.shape[1], v)
    target = labels.map(lambda i: i.view(labels.shape[0] * labels.shape[1]))
    if way.own() == 1:
        return flat.log_softmax(-1).nll_loss(target)
    top = w.all_reduce(flat.map(lambda t: t.amax(-1, True)), "max", taped=False)
    x = flat.sub(detached(top))
    total = w.all_reduce(x.exp().sum([-1], True))
    rows, out = vocabulary_rows(w, way, target, c)
    own = x.gather(-1, rows.map(lambda i: i.unsqueeze(-1)))
    own = own.masked_fill(out.map(lambda o: o.unsqueeze(-1)), 0.0)
    return (total.log() - w.all_reduce(own)).mean([0, 1])


def detached(v):
    return Ranks(v.w, v.each)


def tokens(name, c, salt=0):
    rng = random.Random("%s %d" % (name, salt))
    n = c.batch * c.length
    out = [rng.randrange(c.vocabulary) for _ in range(n)]
    out[:2] = [0, c.vocabulary - 1]
    return out


BLOCK = {"gpt": gpt_block, "llama": llama_block, "qwen": llama_block}


def body(way, c, ids, core=plain_attention, first=None, layers=None):
    """From ids to the last hidden states. first(r): the position of a rank's first token."""
    w = way.w
    w.layer_of(-1, c.layers)
    h = embed(way, c, ids)
    t = ids.shape[1] if first else h.shape[1]
    rope = None
    if c.model == "gpt":
        table = way.whole("position.weight", c.length, c.width)
        if way.sequence and w.n > 1:
            t = h.shape[1]
            rows = lambda r, t: (r % w.inner * t, (r % w.inner + 1) * t)
            p = table.map(
                lambda x, r: x.slice(0, r * t, (r + 1) * t), w.each(lambda r: r % w.inner)
            )
            whole = table.shape
            p = w.taped(
                p,
                [table],
                lambda g: [
                    w.each(
                        lambda r: g.each[r].op(
                            "slice_backward", [g.each[r], list(whole), 0, *rows(r, t), 1], whole
                        )
                    )
                ],
            )
        elif first:
            at, rows = w.each(first), list(table.shape)
            p = w.taped(
                table.map(lambda x, a: x.slice(0, a, a + t), at),
                [table],
                lambda g: [
                    g.map(lambda y, a: y.op("slice_backward", [y, rows, 0, a, a + t, 1], rows), at)
                ],
            )
        else:
            p = table
        h = h + p
    else:
        rope = rope_of(w, c.length if way.sequence else t, c.head, first)
    for l in range(c.layers):
        w.layer_of(l, c.layers)
        h = BLOCK[c.model](way, c, l, h, core=core, rope=rope)
    w.layer_of(c.layers, c.layers)
    if c.model == "gpt":
        return h.layer_norm(
            way.whole("ln.weight", c.width, shift=1.0), way.whole("ln.bias", c.width)
        )
    return h.rms_norm(way.whole("ln.weight", c.width, shift=1.0))


def head(way, c, h):
    return way.enter(h).linear(way.cut("head.weight", 0, c.vocabulary, c.width))


# ---- what each side gives ----


class Outputs:
    """Outputs by name, and the lines of the relations file."""

    def __init__(self):
        self.at, self.lines = {}, []

    def tokens(self, c, *names):
        """Labels are none that is left out, which would count nowhere."""
        for name in names:
            self.lines.append("input %s range 0 %d" % (name, c.vocabulary - 1))

    def inputs(self, w, dim, *names):
        """Inputs of which each rank has a part."""
        for name in names if w.n > 1 else ():
            parts = ", ".join(w.name(r, name) for r in range(w.n))
            self.lines.append("input %s = cat([%s], %d)" % (name, parts, dim))

    def replicas(self, name, v):
        for r, t in enumerate(v.each):
            self.at[name if r == 0 else "%s_rank%d" % (name, r)] = t

    def parts(self, name, v, dim, ranks=None, sum_=False):
        """Parts of one tensor, of the ranks named."""
        ranks = list(range(v.w.n)) if ranks is None else ranks
        if len(ranks) == 1:
            self.at[name] = v.each[ranks[0]]
            return
        names = ["%s.part%d" % (name, k) for k in range(len(ranks))]
        for k, r in enumerate(ranks):
            self.at[names[k]] = v.each[r]
        if sum_:
            e = names[0]
            for k in names[1:]:
                e = "add(%s, %s)" % (e, k)
        else:
            e = "cat([%s], %d)" % (", ".join(names), dim)
        self.lines.append("output %s = %s" % (name, e))


CUT = {  # along which dimension parameters are cut by tensor parallelism
    "q.weight": 0, "k.weight": 0, "v.weight": 0, "q.bias": 0, "k.bias": 0, "v.bias": 0,
    "o.weight": 1, "up.weight": 0, "up.bias": 0, "gate.weight": 0, "down.weight": 1,
    "embed.weight": 0, "head.weight": 0,
}  # fmt: skip


def cut_of(name):
    for end, d in CUT.items():
        if name.endswith(end):
            return d
    return None


def give_gradients(o, way, grads, sequence=False, reduce=None):
    w = way.w
    for name, g in grads.items():
        d = cut_of(name)
        if reduce:
            g = reduce(g)
        if w.n == 1:
            o.at["grad." + name] = g.each[0]
        elif d is None or not way.tensor:
            if sequence:  # a replica that saw its rows alone
                g = w.all_reduce(g, taped=False)
            o.replicas("grad." + name, g)
        else:
            o.parts("grad." + name, g, d, range(w.inner))


def start(w):
    return w.each(lambda r: w.g.ones(dtype=f32))


def train(w, f):
    """f() is the loss, and what its gradients are."""
    w.training, w.leaves = True, []
    loss = f()
    return loss, w.backward(loss, start(w))


def tensor(g, c, n, backward, sequence=False, inner=None):
    w = World(g, n, inner)
    way = Way(w, True, sequence)
    o = Outputs()
    o.tokens(c, "labels")
    many = w.n // w.inner
    if many > 1:  # the batch is cut over the outer groups
        size = c.batch // many
        own = lambda v: w.each(
            lambda r: v.each[r].slice(0, r // w.inner * size, (r // w.inner + 1) * size)
        )
        ids = own(w.ints("ids", tokens("ids", c), (c.batch, c.length), c.vocabulary))
        labels = own(w.ints("labels", tokens("labels", c), (c.batch, c.length), c.vocabulary))
    else:
        ids = w.ints("ids", tokens("ids", c), (c.batch, c.length), c.vocabulary)
        labels = w.ints("labels", tokens("labels", c), (c.batch, c.length), c.vocabulary)
    if not backward:
        y = head(way, c, body(way, c, ids))
        loss = loss_of(way, c, y, labels)
        logits = w.gathered(y, 2)
        if many > 1:
            o.parts("logits", logits, 0, [k * w.inner for k in range(many)])
            o.replicas("loss", w.all_reduce(loss, "avg", across=True))
        else:
            o.replicas("logits", logits)
            o.replicas("loss", loss)
        return o
    loss, grads = train(w, lambda: loss_of(way, c, head(way, c, body(way, c, ids)), labels))
    average = (lambda g: w.all_reduce(g, "avg", across=True, taped=False)) if many > 1 else None
    o.replicas("loss", average(loss) if average else loss)
    give_gradients(o, way, grads, sequence and n > 1, average)
    return o


def pieces_of(w, way, c, ids, labels, pieces, early):
    """The loss of a rank's rows, a piece of them after the other, and its gradients. early: those
    so far are reduced again with each piece's, as DistributedDataParallel does it."""
    total, losses = {}, None
    size = c.batch // w.n // pieces
    for k in range(pieces):
        cut = lambda v, k=k: (
            v if pieces == 1 else v.map(lambda t: t.slice(0, k * size, (k + 1) * size))
        )
        run = lambda cut=cut: loss_of(way, c, head(way, c, body(way, c, cut(ids))), cut(labels))
        loss, grads = train(w, run)
        losses = loss if losses is None else losses + loss
        for name, grad in grads.items():
            both = total[name] + grad if name in total else grad
            total[name] = w.all_reduce(both, "avg", taped=False) if early else both
    if pieces == 1:
        return losses, total
    return losses.div(float(pieces)), {k: v.div(float(pieces)) for k, v in total.items()}


def data(g, c, n, backward, zero=False, pieces=1, early=False):
    w = World(g, n)
    o = Outputs()
    ids = w.cut_ints("ids", 0, tokens("ids", c), (c.batch, c.length))
    labels = w.cut_ints("labels", 0, tokens("labels", c), (c.batch, c.length))
    o.inputs(w, 0, "ids", "labels")
    o.tokens(c, "labels")
    shards = {}

    def gather(name, *shape, **how):
        shards[name] = w.cut(name, 0, *shape, **how)
        leaf = w.leaves.pop()
        whole = w.gathered(leaf, 0)
        whole = Ranks(w, whole.each)
        whole.leaf = name
        w.leaves.append(whole)
        return whole

    way = Way(w, gather=gather if zero else None)
    w.leaves = []
    if not backward:
        y = head(way, c, body(way, c, ids))
        o.parts("logits", y, 0)
        o.replicas("loss", w.all_reduce(loss_of(way, c, y, labels), "avg"))
        return o
    loss, grads = pieces_of(w, way, c, ids, labels, pieces, early)
    o.replicas("loss", w.all_reduce(loss, "avg", taped=False))
    if not zero:
        for name, grad in grads.items():
            shown = grad if early else w.all_reduce(grad, "avg", taped=False)
            o.replicas("grad." + name, shown)
        return o
    for name, grad in grads.items():
        own = w.scattered(grad, 0, op="avg")
        o.parts("new." + name, shards[name].map(lambda p, d: p.sub(d.mul(0.1)), own), 0)
    return o


def micro_batches(g, c, n, backward, stages=False):
    """One rank that goes through its batch in n pieces; or stages of which each has its layers."""
    w = Stages(g, n) if stages and n > 1 else World(g, 1)
    way, o = Way(w), Outputs()
    if isinstance(w, Stages):
        o.lines += ["input ids = rank0.ids", "input labels = rank%d.labels" % (n - 1)]
    ids = w.cut_ints("ids", 0, tokens("ids", c), (c.batch, c.length))
    w.layer_of(c.layers, c.layers)
    labels = w.cut_ints("labels", 0, tokens("labels", c), (c.batch, c.length))
    o.tokens(c, "labels")
    total, losses, logits = {}, None, []
    size = c.batch // n
    for k in range(n):
        cut = lambda v, k=k: v if n == 1 else v.map(lambda t: t.slice(0, k * size, (k + 1) * size))

        def run(cut=cut):
            w.layer_of(-1, c.layers)
            y = head(way, c, body(way, c, cut(ids)))
            logits.append(y)
            return loss_of(way, c, y, cut(labels))

        if not backward:
            loss, grads = run(), {}
        else:
            loss, grads = train(w, run)
        losses = loss if losses is None else losses + loss
        for name, grad in grads.items():
            total[name] = total[name] + grad if name in total else grad
    o.at["loss"] = (losses.div(float(n)) if n > 1 else losses).each[0]
    for name, grad in total.items():
        o.at["grad." + name] = (grad.div(float(n)) if n > 1 else grad).each[0]
    if not backward:
        o.at["logits"] = g.cat([y.each[0] for y in logits], 0) if n > 1 else logits[0].each[0]
    return o


def ring(c, n):
    """Each rank's queries see the keys that go around; what lies ahead is masked."""

    def hidden(w, s, j):
        """The scores of the keys of rank r - j: of a rank before this one, or not at all."""
        t = s.shape[1]
        if j == 0:
            return s.masked_fill(causal(w, t), -math.inf)
        masks = [None if r >= j else w.g.full((t, t), True, boolean) for r in range(n)]
        fill = lambda v, by: w.each(
            lambda r: v.each[r].masked_fill(masks[r], by) if masks[r] else v.each[r]
        )
        return w.taped(fill(s, -math.inf), [s], lambda g: [fill(g, 0.0)])

    def core(w, q, k, v, d):
        top = total = out = None
        for j in range(n):
            kj, vj = (k, v) if j == 0 else (k.rotate(j), v.rotate(j))
            s = hidden(w, q.bmm(kj.transpose(1, 2)).mul(d**-0.5), j)
            here = s.map(lambda x: x.amax(-1, True))
            new = here if top is None else top.map(lambda a, b: a.maximum(b), here)
            e = s.sub(new).exp()
            if top is None:
                total, out = e.sum([-1], True), e.bmm(vj)
            else:
                scale = top.map(lambda a, b: a.sub(b).exp(), new)
                total, out = total * scale + e.sum([-1], True), out * scale + e.bmm(vj)
            top = new
        return out / total

    return core if n > 1 else plain_attention


def context(g, c, n, backward):
    w = World(g, n)
    way, o = Way(w), Outputs()
    t = c.length // n
    ids = w.cut_ints("ids", 1, tokens("ids", c), (c.batch, c.length))
    o.inputs(w, 1, "ids")
    run = lambda: head(way, c, body(way, c, ids, ring(c, n), lambda r: r * t))
    if not backward:
        o.parts("logits", run(), 1)
        return o
    labels = w.cut_ints("labels", 1, tokens("labels", c), (c.batch, c.length))
    o.inputs(w, 1, "labels")
    o.tokens(c, "labels")
    loss, grads = train(w, lambda: loss_of(way, c, run(), labels))
    average(o, w, loss, grads)
    return o


def average(o, w, loss, grads):
    """What ranks with a part of the tokens do with the loss and the gradients of replicas."""
    o.replicas("loss", w.all_reduce(loss, "avg", taped=False))
    for name, grad in grads.items():
        o.replicas("grad." + name, w.all_reduce(grad, "avg", taped=False))


def squares(h):
    """A loss."""
    return (h * h).mean(list(range(len(h.shape))))


def experts(g, c, n, backward):
    w = World(g, n)
    way, o = Way(w, True), Outputs()
    h = w.x("x", c.batch, c.length, c.width)

    def run(h=h):
        for l in range(c.layers):
            h = dense_experts(way, c, l, h, 2 * c.ranks)
        return h

    if not backward:
        o.replicas("y", run())
        return o
    loss, grads = train(w, lambda: squares(run()))
    o.replicas("loss", loss)
    for name, grad in grads.items():
        if ".experts." not in name:
            o.replicas("grad." + name, grad)
            continue
        before, e, q = re.fullmatch(r"(.*experts)\.(\d+)\.(.*)", name).groups()
        for r, t in enumerate(grad.each):  # a rank's e-th expert, as the whole counts them
            o.at["grad.%s.%d.%s" % (before, r * (2 * c.ranks // n) + int(e), q)] = t
    return o


def exchange(g, c, n, backward):
    w = World(g, n)
    way, o = Way(w), Outputs()
    h = w.cut_x("x", 0, 2 * c.ranks, c.width)
    o.inputs(w, 0, "x")

    def run(h=h):
        for l in range(c.layers):
            h = exchanged_experts(way, c, l, h, 2 * c.ranks)
        return h

    if not backward:
        o.parts("y", run(), 0)
        return o
    loss, grads = train(w, lambda: squares(run()))
    own = lambda name: name.endswith((".w1", ".w2"))
    average(o, w, loss, {k: v for k, v in grads.items() if not own(k)})
    for name, grad in grads.items():
        if own(name):  # of the tokens of all ranks, whose losses are averaged
            o.parts("grad." + name, grad.div(float(n)) if n > 1 else grad, 0)
    return o


KIND = {
    "tensor": tensor,
    "sequence": lambda g, c, n, b: tensor(g, c, n, b, True),
    "grid": lambda g, c, n, b: tensor(g, c, n, b, inner=n // 2 if n > 1 else None),
    "data": data,
    "zero": lambda g, c, n, b: data(g, c, n, b, True),
    "accumulate": micro_batches,
    "pipeline": lambda g, c, n, b: micro_batches(g, c, n, b, True),
    "context": context,
    "experts": experts,
    "exchange": exchange,
}
# Both sides are divided: the kind of the left one, of how many times fewer ranks, and of the right.
BOTH = {"replaced": ("tensor", 1, "sequence"), "doubled": ("tensor", 2, "tensor")}


def build(kind, model, ranks, layers, backward=False, kv=None):
    """((graph, outputs) of the left side, of the right)"""
    c = Config(model, ranks, layers, kv)
    if kind in ("data", "zero", "accumulate", "pipeline"):
        c.batch, c.length = 2 * ranks, max(4, ranks) if kind == "zero" else 4
    if kind == "exchange":
        c.width = 8
    one, fewer, other = BOTH.get(kind, (kind, ranks, kind))
    sides = []
    for k, n in ((one, ranks // fewer), (other, ranks)):
        g = Named()
        sides.append((g, KIND[k](g, c, n, backward)))
    if kind in BOTH:
        sides[1][1].lines = between(sides[0][1], sides[1][1])
    return sides


def between(left, right):
    """Lines of two divided sides, from those of each with the whole: a part on the left is as many
    parts on the right."""
    split = lambda line: re.fullmatch(r"(output \S+ = cat\()\[(.*)\](, \d\))", line)
    mine = {line.split(" ")[1]: split(line) for line in left.lines if split(line)}
    lines = []
    for line in right.lines:
        cut = split(line)
        if not cut:
            lines.append(line)
            continue
        parts, name = cut[2].split(", "), line.split(" ")[1]
        own = mine[name][2].split(", ") if name in mine else [name]
        n = len(parts) // len(own)
        for k, part in enumerate(own):
            of = parts[k * n : (k + 1) * n]
            whole = "cat([%s]%s" % (", ".join(of), cut[3]) if n > 1 else of[0]
            lines.append("output %s = %s" % (part, whole))
    return lines


def write(folder, *case):
    write_sides(folder, *build(*case))


def write_sides(folder, left, right, exchanged=False):
    """exchanged: the ranks' graph is the left one, and lines are turned about."""
    (lg, lo), (rg, ro) = left, right
    for name in ro.at:  # what each rank has a replica of
        stem = name.split("_rank")[0]
        if name != stem and stem in lo.at:
            lo.at[name] = lo.at[stem]
    names = ("right", "left") if exchanged else ("left", "right")
    lg.write(os.path.join(folder, names[0]), lo.at)
    rg.write(os.path.join(folder, names[1]), ro.at)
    lines = [t for x in ro.lines for t in (turned(x, rg, ro.at) if exchanged else [x])]
    with open(os.path.join(folder, "relations"), "w", encoding="utf-8") as f:
        f.write("".join(line + "\n" for line in lines))


def turned(line, g, outputs):
    """`kind A = B` as lines of the other direction: each part is a slice of the whole."""
    kind, rest = line.split(" ", 1)
    if " = " not in rest:
        return [line]
    whole, e = rest.split(" = ", 1)
    cut = re.fullmatch(r"cat\(\[(.*)\], (\d)\)", e)
    if not cut:
        return ["%s %s = %s" % (kind, e, whole)]
    lines, at, d = [], 0, int(cut[2])
    for part in cut[1].split(", "):
        shape = outputs[part].shape if kind == "output" else g.leaves[part][0].shape
        end = at + shape[d]
        lines.append("%s %s = slice(%s, %d, %d, %d)" % (kind, part, whole, d, at, end))
        at = end
    return lines


def truth(*case):
    return far(*build(*case))


def far(*sides):
    """The largest relative difference of the outputs of both sides, by PyTorch."""
    import torch
    import truth as by_torch

    torch.set_default_dtype(torch.float64)

    class Run(by_torch.Run):
        def node(self, n):
            if not n["op"].startswith("dist::"):
                return by_torch.Run.node(self, n)
            x, *how = [self.value(a) for a in n["args"]]
            if n["op"] == "dist::all_gather":
                return torch.cat(x, how[0])
            if n["op"] == "dist::all_to_all":
                parts = [t.chunk(len(x), how[0]) for t in x]
                return [torch.cat([p[r] for p in parts], how[1]) for r in range(len(x))]
            y = torch.stack(x)
            y = {"sum": y.sum, "avg": y.mean, "max": y.amax, "min": y.amin}[how[0]](0)
            return y if n["op"] == "dist::all_reduce" else list(y.chunk(len(x), how[1]))

    values = []
    for g, o in sides:
        run = Run(g)
        run.all()
        values.append(({k: run.at[t.ref] for k, t in o.at.items()}, o.lines))
    (left, _), (right, lines) = values
    right = dict(right)
    for line in lines:
        if not line.startswith("output "):
            continue
        name, e = line[len("output ") :].split(" = ", 1)
        flat = {"v%d" % i: k for i, k in enumerate(right)}
        for v, k in sorted(flat.items(), key=lambda x: -len(x[1])):
            e = e.replace(k, v)
        env = {v: right[k] for v, k in flat.items()}
        right[name] = eval(e, {"cat": torch.cat, "add": torch.add}, env)
    worst = 0.0
    for k, b in right.items():
        a = left.get(k.split("_rank")[0])
        if a is not None:
            assert a.shape == b.shape, (k, a.shape, b.shape)
            off = ((a - b).abs().max() / max(a.abs().max(), 1e-6)).item()
            worst = max(worst, off)
    assert {k for k in left} <= set(right)
    return worst


if __name__ == "__main__":
    what, *args = [a for a in sys.argv[1:] if a != "--backward"]
    back = "--backward" in sys.argv
    if what == "truth":
        print(truth(args[0], args[1], int(args[2]), int(args[3]), back))
    else:
        write(args[0], args[1], args[2], int(args[3]), int(args[4]), back)
