"""Ways to divide a model, in plain PyTorch: each kind is a program of one rank, that is the whole
program where there is one rank. plain_more.py draws sizes and compares them.

A program asks `r` (a Run) for parameters and inputs, by what it has of them, and gives outputs by
what they are of the whole: `cut` along a dimension, a `replica`, or a rank's alone."""

import math
import zlib

import torch
import torch.nn.functional as F

import plain_record as record


def drawn(name, shape, dtype):
    g = torch.Generator().manual_seed(zlib.crc32(name.encode()))
    t = torch.randn(*shape, generator=g) * 0.4
    return (t + 1 if name.endswith("scale") else t).to(dtype)


class Run:
    """What a program of one rank asks for, and gives."""

    def __init__(self, world, s, dtype):
        self.w, self.s, self.dtype, self.n, self.rank = world, s, dtype, world.n, world.rank
        self.c = record.Collectives(world)
        self.params, self.cuts, self.outs, self.how = {}, {}, {}, {}
        self.inputs = {}

    def leaf(self, kind, name, t):
        if self.w.recorder:
            name = name if self.w.meeting.n == 1 else "rank%d.%s" % (self.w.own, name)
            self.w.recorder.graph.leaf(self.w.own, kind, name, t)
        return t

    def param(self, name, *shape, cut=None, within=None):
        """cut: the dimension along which each rank of the group has its part"""
        full, w = drawn(name, shape, self.dtype), within or self.w
        t = full if cut is None else full.chunk(w.n, cut)[w.rank].contiguous()
        t = t.clone().requires_grad_()
        self.leaf("parameter", name, t)
        self.params[name] = t
        self.cuts[name] = cut if w.n > 1 else None
        return t

    def ids(self, name, *shape, cut=None, within=None, most=None):
        g, w = torch.Generator().manual_seed(zlib.crc32(name.encode())), within or self.w
        t = torch.randint(0, most or self.s["vocabulary"], shape, generator=g)
        return self.input(name, t, cut, w)

    def x(self, name, *shape, cut=None, within=None):
        return self.input(name, drawn(name, shape, self.dtype), cut, within or self.w)

    def input(self, name, full, cut, w):
        t = full if cut is None else full.chunk(w.n, cut)[w.rank].contiguous().clone()
        self.inputs[name] = cut if w.n > 1 else None
        return self.leaf("input", name, t)

    def out(self, name, t, cut=None):
        self.outs[name], self.how[name] = t, cut if self.n > 1 else None

    def gradients(self, loss, finish=lambda name, g: g, only=None):
        names = [k for k in self.params if only is None or k in only]
        for k, g in zip(names, torch.autograd.grad(loss, [self.params[k] for k in names])):
            self.out("grad." + k, finish(k, g), self.cuts[k])


# parts of models


def norm(r, name, x):
    w = r.param(name + ".scale", x.shape[-1])
    if r.s["norm"] == "layer":
        return F.layer_norm(x, x.shape[-1:], w, r.param(name + ".bias", x.shape[-1]))
    if r.s["norm"] == "rms":
        return F.rms_norm(x, x.shape[-1:], w, 1e-5)
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-5) * w


ACT = {"gelu": F.gelu, "silu": F.silu, "relu": F.relu, "tanh": torch.tanh}


def feed(r, name, x):
    s, d = r.s, x.shape[-1]
    y = F.linear(x, r.param(name + ".up", s["inner"], d), r.param(name + ".up.bias", s["inner"]))
    y = F.linear(ACT[s["act"]](y), r.param(name + ".down", d, s["inner"]))
    return y + r.param(name + ".down.bias", d)


def heads(x, d):
    b, t = x.shape[:2]
    return x.view(b, t, -1, d).transpose(1, 2)


def projections(r, name, x):
    s, d = r.s, r.s["head"]
    q = heads(F.linear(x, r.param(name + ".q", s["heads"] * d, x.shape[-1])), d)
    k = heads(F.linear(x, r.param(name + ".k", s["heads"] * d, x.shape[-1])), d)
    v = heads(F.linear(x, r.param(name + ".v", s["heads"] * d, x.shape[-1])), d)
    return q, k, v


def attend(s, q, k, v, first=0):
    """Causal; the queries stand at `first` and behind."""
    if first == 0 and q.shape[2] == k.shape[2] and s["core"] == "fused":
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)
    ahead = torch.arange(first, first + q.shape[2])[:, None] < torch.arange(k.shape[2])[None, :]
    y = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
    return torch.softmax(y.masked_fill(ahead, -math.inf), -1) @ v


def merged(x):
    return x.transpose(1, 2).flatten(2)


def block(r, name, x, core=None):
    q, k, v = projections(r, name, norm(r, name + ".n1", x))
    y = merged((core or (lambda q, k, v: attend(r.s, q, k, v)))(q, k, v))
    x = x + F.linear(y, r.param(name + ".o", x.shape[-1], y.shape[-1]))
    return x + feed(r, name, norm(r, name + ".n2", x))


def embedded(r, ids):
    return F.embedding(ids, r.param("tokens", r.s["vocabulary"], r.s["width"]))


def logits(r, x):
    return F.linear(norm(r, "last", x), r.param("head", r.s["vocabulary"], r.s["width"]))


def cross(y, labels, how="mean"):
    return F.cross_entropy(y.reshape(-1, y.shape[-1]), labels.reshape(-1), reduction=how)


# kinds


def data(r):
    """A part of the batch on each rank; gradients and the loss averaged, or sums of sums."""
    s, n = r.s, r.n
    ids = r.ids("ids", s["batch"], s["length"], cut=0)
    labels = r.ids("labels", s["batch"], s["length"], cut=0)
    y = logits(r, block(r, "b", embedded(r, ids)))
    if s["sums"]:
        loss = cross(y, labels, "sum") / (s["batch"] * s["length"])
        r.out("loss", r.c.plain(loss))
        return r.gradients(loss, lambda k, g: r.c.plain(g))
    loss = cross(y, labels)
    r.out("loss", r.c.plain(loss) / n if n > 1 else loss)
    after = r.s["after"]
    return r.gradients(
        loss / n if not after else loss, lambda k, g: r.c.plain(g) / n if after else r.c.plain(g)
    )


def pieces(x, many):
    return x.chunk(many) if many > 1 else [x]


def accumulate(r):
    """Parts of the batch one after another, gradients added up as autograd adds them."""
    s = r.s
    many = s["micro"] if r.n > 1 else 1
    ids = r.ids("ids", s["batch"], s["length"], cut=0)
    labels = r.ids("labels", s["batch"], s["length"], cut=0)
    model = None
    total, grads = None, None
    for i, l in zip(pieces(ids, many), pieces(labels, many)):
        if model:
            r.param = lambda name, *a, **k: r.params[name]
        model = True
        loss = cross(logits(r, block(r, "b", embedded(r, i))), l) / many
        got = torch.autograd.grad(loss, list(r.params.values()))
        total = loss.detach() if total is None else total + loss.detach()
        grads = got if grads is None else [a + b for a, b in zip(grads, got)]
    r.out("loss", r.c.plain(total, "avg"))
    for k, g in zip(r.params, grads):
        r.out("grad." + k, r.c.plain(g, "avg"))


def context_gather(r):
    """Positions on each rank; keys and values of all are gathered."""
    s, t = r.s, r.s["length"] // r.n
    ids = r.ids("ids", s["batch"], s["length"], cut=1)

    def core(q, k, v):
        return attend(s, q, r.c.gather(k, 2), r.c.gather(v, 2), r.rank * t)

    y = logits(r, block(r, "b", embedded(r, ids), core))
    return finish_positions(r, y)


def finish_positions(r, y):
    s = r.s
    if not s["backward"]:
        return r.out("logits", y, 1)
    loss = cross(y, r.ids("labels", s["batch"], s["length"], cut=1))
    r.out("loss", r.c.plain(loss, "avg"))
    return r.gradients(loss, lambda k, g: r.c.plain(g, "avg"))


class Turn(torch.autograd.Function):
    """To the next rank; the gradient goes back."""

    @staticmethod
    def forward(ctx, x, w):
        ctx.w = w
        w.send(x.contiguous(), (w.rank + 1) % w.n)
        return w.receive((w.rank - 1) % w.n)

    @staticmethod
    def backward(ctx, g):
        w = ctx.w
        g = g.contiguous()
        w.send(g, (w.rank - 1) % w.n)
        return w.receive((w.rank + 1) % w.n), None


def context_ring(r):
    """Positions on each rank; keys and values go around, with a running maximum and sum."""
    s, n, t = r.s, r.n, r.s["length"] // r.n
    ids = r.ids("ids", s["batch"], s["length"], cut=1)

    def core(q, k, v):
        if n == 1:
            return attend(s, q, k, v)
        top = total = out = None
        kv = torch.stack([k, v])
        for step in range(n):
            at = (r.rank - step) % n
            y = q @ kv[0].transpose(-1, -2) / math.sqrt(q.shape[-1])
            q_at, k_at = (torch.arange(p * t, (p + 1) * t) for p in (r.rank, at))
            y = y.masked_fill(q_at[:, None] < k_at[None, :], -math.inf)
            new = y.amax(-1, keepdim=True)
            new = new.detach() if s["detached"] else new
            new = new if top is None else torch.maximum(top, new)
            e = torch.exp(y - new)
            if top is None:
                total, out = e.sum(-1, keepdim=True), e @ kv[1]
            else:
                by = torch.exp(top - new)
                total, out = total * by + e.sum(-1, keepdim=True), out * by + e @ kv[1]
            top = new
            if step < n - 1:
                kv = Turn.apply(kv, r.w)
        return out / total

    y = logits(r, block(r, "b", embedded(r, ids), core))
    return finish_positions(r, y)


def ulysses(r):
    """Positions on each rank; all of them for some heads in attention."""
    s = r.s
    ids = r.ids("ids", s["batch"], s["length"], cut=1)

    def swap(x, a, b):
        there = lambda x: r.w.meet("all_to_all", x.contiguous(), a, b)
        return r.c.pair(x, there, lambda g: r.w.meet("all_to_all", g.contiguous(), b, a))

    def core(q, k, v):
        q, k, v = (swap(x, 1, 2) for x in (q, k, v))
        return swap(attend(s, q, k, v), 2, 1)

    y = logits(r, block(r, "b", embedded(r, ids), core))
    return finish_positions(r, y)


def experts(r):
    """A part of the experts and of the batch on each rank; tokens go to all and come back."""
    s, n, d = r.s, r.n, r.s["width"]
    e = s["experts"]
    x = r.x("x", s["batch"] * s["length"], d, cut=0)
    gate = torch.softmax(F.linear(x, r.param("gate", e, d)), -1)
    if s["top"]:
        best, at = gate.topk(2, -1)
        best = best / best.sum(-1, keepdim=True)
        gate = torch.zeros_like(gate).scatter(-1, at, best)
    up, down = r.param("up", e, d, s["inner"], cut=0), r.param("down", e, s["inner"], d, cut=0)

    def swap(x, a, b):
        there = lambda x: r.w.meet("all_to_all", x.contiguous(), a, b)
        return r.c.pair(x, there, lambda g: r.w.meet("all_to_all", g.contiguous(), b, a))

    if s["early"]:
        z = torch.einsum("te,td->etd", gate, x)
    else:
        z = x.unsqueeze(0).expand(e, *x.shape)
    z = swap(z, 0, 1)
    z = torch.bmm(ACT[s["act"]](torch.bmm(z, up)), down)
    z = swap(z, 1, 0)
    z = z.sum(0) if s["early"] else torch.einsum("te,etd->td", gate, z)
    if not s["backward"]:
        return r.out("out", z, 0)
    loss = F.mse_loss(z, r.x("y", s["batch"] * s["length"], d, cut=0))
    r.out("loss", r.c.plain(loss, "avg"))
    own = lambda k, g: g / n if r.cuts[k] is not None and n > 1 else r.c.plain(g, "avg")
    return r.gradients(loss, own)


def pipeline(r):
    """A block on each rank; micro-batches go through them."""
    s, n, many = r.s, r.n, r.s["micro"] if r.n > 1 else 1
    ids = labels = None
    first, last = r.rank == 0, r.rank == n - 1
    layers = range(s["stages"]) if n == 1 else [r.rank]
    if first:
        ids = pieces(r.ids("ids", s["batch"], s["length"]), many)
    if last:
        labels = pieces(r.ids("labels", s["batch"], s["length"]), many)
    make, losses, held, grads = r.param, [], [], None
    for m in range(many):
        if m:
            r.param = lambda name, *a, **k: r.params[name]
        x = None if first else r.w.receive(r.rank - 1).requires_grad_()
        y = embedded(r, ids[m]) if first else x
        for l in layers:
            y = block(r, "b%d" % l, y)
        if last:
            losses.append(cross(logits(r, y), labels[m]) / many)
        else:
            r.w.send(y, r.rank + 1)
        held.append((x, losses[-1] if last else y))
    r.param = make
    for x, y in held if s["order"] else held[::-1]:
        g = None if last else r.w.receive(r.rank + 1)
        want = list(r.params.values()) + ([] if first else [x])
        got = torch.autograd.grad(y, want, g)
        if not first:
            r.w.send(got[-1].contiguous(), r.rank - 1)
            got = got[:-1]
        grads = got if grads is None else [a + b for a, b in zip(grads, got)]
    if last:
        total = losses[0]
        for x in losses[1:]:
            total = total + x
        r.out("loss", total)
    for k, g in zip(r.params, grads):
        r.out("grad." + k, g)


def zero(r):
    """Rows of each parameter on each rank: gathered for use, gradients scattered."""
    s, n = r.s, r.n
    ids = r.ids("ids", s["batch"], s["length"], cut=0)
    labels = r.ids("labels", s["batch"], s["length"], cut=0)
    make = r.param

    def param(name, *shape):
        t = make(name, *shape, cut=0 if n > 1 and shape[0] % n == 0 else None)
        if r.cuts[name] is None:
            return t
        return r.c.gather(t, 0)

    r.param = param
    loss = cross(logits(r, block(r, "b", embedded(r, ids))), labels)
    r.param = make
    r.out("loss", r.c.plain(loss, "avg"))
    got = torch.autograd.grad(loss, list(r.params.values()))
    for k, g in zip(r.params, got):
        g = r.c.plain(g, "avg") if r.cuts[k] is None else g / n if n > 1 else g
        r.out("new." + k, r.params[k].detach() - s["rate"] * g, r.cuts[k])


def flat_zero(r):
    """ZeRO's first: a shard of all gradients in one vector, the new parameters gathered."""
    s, n = r.s, r.n
    ids = r.ids("ids", s["batch"], s["length"], cut=0)
    labels = r.ids("labels", s["batch"], s["length"], cut=0)
    loss = cross(logits(r, block(r, "b", embedded(r, ids))), labels)
    r.out("loss", r.c.plain(loss, "avg"))
    got = torch.autograd.grad(loss, list(r.params.values()))
    if n == 1:
        for k, g in zip(r.params, got):
            r.out("new." + k, r.params[k].detach() - s["rate"] * g)
        return
    flat = torch.cat([g.reshape(-1) for g in got])
    old = torch.cat([p.detach().reshape(-1) for p in r.params.values()])
    pad = -len(flat) % n
    flat, old = F.pad(flat, (0, pad)), F.pad(old, (0, pad))
    g = r.c.scattered(flat, 0) / n
    new = r.c.gathered(old.chunk(n)[r.rank] - s["rate"] * g, 0)
    at = 0
    for k, p in r.params.items():
        r.out("new." + k, new[at : at + p.numel()].view(p.shape))
        at += p.numel()


def grid(r):
    """Tensor parallel inside, data parallel outside."""
    s, n = r.s, r.n
    inner = 2 if n > 1 else 1
    w = r.w
    if n > 1:
        base = w.own - w.own % inner
        tp = w.within(range(base, base + inner))
        dp = w.within(range(w.own % inner, n, inner))
    else:
        tp = dp = w
    ct, cd = record.Collectives(tp), record.Collectives(dp)
    d = s["head"]
    ids = r.ids("ids", s["batch"], s["length"], cut=0, within=dp)
    labels = r.ids("labels", s["batch"], s["length"], cut=0, within=dp)
    x = embedded(r, ids)
    z = ct.copy(norm(r, "n1", x))
    cut = lambda name, a, b, along: r.param(name, a, b, cut=along, within=tp)
    q, k, v = (
        heads(F.linear(z, cut(m, s["heads"] * d, s["width"], 0)), d) for m in ("q", "k", "v")
    )
    y = merged(attend(s, q, k, v))
    x = x + ct.reduce(F.linear(y, cut("o", s["width"], s["heads"] * d, 1)))
    z = ct.copy(norm(r, "n2", x))
    z = ACT[s["act"]](F.linear(z, cut("up", s["inner"], s["width"], 0)))
    x = x + ct.reduce(F.linear(z, cut("down", s["width"], s["inner"], 1)))
    loss = cross(logits(r, x), labels)
    r.out("loss", cd.plain(loss, "avg"))
    return r.gradients(loss, lambda k, g: cd.plain(g, "avg"))


def gathered_output(r):
    """Layers that give all columns, or take the rows' parts by themselves."""
    s = r.s
    x, y = (
        r.x("x", s["batch"], s["length"], s["width"]),
        r.x("y", s["batch"], s["length"], s["width"]),
    )
    z = F.linear(r.c.copy(x), r.param("up", s["inner"], s["width"], cut=0))
    z = r.c.gather_same(z, -1) if r.n > 1 else z
    z = ACT[s["act"]](z + r.param("bias", s["inner"]))
    z = r.c.split(z, -1) if r.n > 1 else z
    z = r.c.reduce(F.linear(z, r.param("down", s["width"], s["inner"], cut=1)))
    z = norm(r, "n", x + z)
    loss = F.mse_loss(z, y) if r.s["sums"] else (z - y).pow(2).mean()
    r.out("loss", loss)
    return r.gradients(loss)


def wide_embedding(r):
    """Columns of the table on each rank; the vocabulary's logits gathered for the loss."""
    s = r.s
    ids, labels = (r.ids(k, s["batch"], s["length"]) for k in ("ids", "labels"))
    x = F.embedding(ids, r.param("tokens", s["vocabulary"], s["width"], cut=1))
    x = r.c.gather_same(x, -1) if r.n > 1 else x
    x = norm(r, "n", x)
    y = F.linear(r.c.copy(x), r.param("head", s["vocabulary"], s["width"], cut=0))
    y = r.c.gather_same(y, -1) if r.n > 1 else y
    loss = cross(y, labels)
    r.out("loss", loss)
    return r.gradients(loss)


class Indexed(torch.autograd.Function):
    """The vocabulary's loss as index and index_put write it."""

    @staticmethod
    def forward(ctx, x, labels, c, n, rank):
        size = x.shape[-1]
        x = x - c.plain(x.max(-1)[0], "max").unsqueeze(-1)
        mask = (labels < rank * size) | (labels >= (rank + 1) * size)
        at = labels.clone() - rank * size
        at[mask] = 0
        flat, at = x.view(-1, size), at.view(-1)
        rows = torch.arange(flat.shape[0])
        own = flat[rows, at].clone().contiguous().view_as(labels)
        own[mask] = 0.0
        own = c.plain(own)
        e = torch.exp(x)
        total = c.plain(e.sum(-1))
        loss = torch.log(total) - own
        ctx.save_for_backward(e / total.unsqueeze(-1), mask, at)
        return loss

    @staticmethod
    def backward(ctx, g):
        p, mask, at = ctx.saved_tensors
        flat = p.view(-1, p.shape[-1])
        rows = torch.arange(flat.shape[0])
        by = 1.0 - mask.view(-1).to(p.dtype)
        flat = flat.index_put((rows, at), flat[rows, at] - by)
        return flat.view_as(p) * g.unsqueeze(-1), None, None, None, None, None


def indexed_loss(r):
    s = r.s
    x = r.x("x", s["batch"], s["length"], s["width"])
    labels = r.ids("labels", s["batch"], s["length"])
    y = F.linear(r.c.copy(norm(r, "n", x)), r.param("head", s["vocabulary"], s["width"], cut=0))
    if r.n == 1:
        loss = cross(y, labels)
    else:
        loss = Indexed.apply(y, labels, r.c, r.n, r.rank).mean()
    r.out("loss", loss)
    return r.gradients(loss)


KINDS = {
    "data": data,
    "accumulate": accumulate,
    "context_gather": context_gather,
    "context_ring": context_ring,
    "ulysses": ulysses,
    "experts": experts,
    "pipeline": pipeline,
    "zero": zero,
    "flat_zero": flat_zero,
    "grid": grid,
    "gathered_output": gathered_output,
    "wide_embedding": wide_embedding,
    "indexed_loss": indexed_loss,
}


def draw(rng, kind):
    """(sizes and style, ranks)"""
    n = rng.choice([2, 2, 3, 4, 4, 6, 8])
    if kind == "grid":
        n = rng.choice([4, 4, 6, 8])
    s = {
        "heads": n * rng.choice([1, 2]),
        "head": rng.choice([2, 4]),
        "width": rng.choice([6, 8, 12]),
    }
    s["inner"], s["vocabulary"] = n * rng.choice([2, 3]), n * rng.choice([3, 4])
    s["batch"], s["length"] = rng.choice([2, 3]), n * rng.choice([1, 2])
    s["micro"], s["stages"], s["experts"] = rng.choice([2, 3]), n, n * rng.choice([1, 2])
    if kind in ("data", "accumulate", "zero", "flat_zero", "grid"):
        s["batch"], s["length"] = n * rng.choice([1, 2]), rng.choice([3, 4])
    if kind == "accumulate":
        s["batch"] = n * s["micro"] * rng.choice([1, 2])
    if kind == "wide_embedding":
        s["width"] = n * rng.choice([2, 3])
    if kind == "pipeline":
        s["batch"], s["length"] = s["micro"] * rng.choice([1, 2]), rng.choice([3, 4])
    s["norm"], s["act"] = rng.choice(["layer", "rms", "written"]), rng.choice(list(ACT))
    s["core"] = rng.choice(["fused", "plain"])
    s["rate"] = rng.choice([0.1, 0.01])
    for k in ("sums", "after", "top", "early", "order", "detached"):
        s[k] = rng.random() < 0.5
    s["backward"] = rng.random() < 0.75 if kind in FORWARD else True
    return s, n


FORWARD = ("context_gather", "context_ring", "ulysses", "experts")
