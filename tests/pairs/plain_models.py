"""Decoders as plain nn.Modules, whole or a rank's share of them: the layers that libraries of
tensor parallel layers have, in the ways in which people write them.

`Style` is what a drawn number decides: how a linear layer, a norm, attention, rotation, the
vocabulary's embedding and loss are written; `Plan` is how a model is divided: "whole", "tensor",
"sequence" or "data". A parameter knows how it is cut of the whole one (`cut`)."""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F


def parameter(shape, cut=None, parts=None, n=1):
    """A rank's share of a parameter of this shape: cut along `cut` over n ranks; with `parts`,
    pieces of these sizes along it are cut one by one (a fused projection)."""
    own = list(shape)
    if cut is not None:
        own[cut] //= n
    p = nn.Parameter(torch.empty(*own))
    p.full, p.cut, p.parts = tuple(shape), cut if n > 1 else None, parts
    return p


def share(p, full, rank, n):
    """What this rank has of a parameter's values."""
    if p.cut is None:
        return full
    if p.parts:
        return torch.cat([x.chunk(n, p.cut)[rank] for x in full.split(p.parts, p.cut)], p.cut)
    return full.chunk(n, p.cut)[rank]


class Plan:
    """How a model is divided over the ranks of a world; `c` has the collectives."""

    def __init__(self, kind, world, c):
        self.kind, self.world, self.c = kind, world, c
        self.n = world.n if kind in ("tensor", "sequence") else 1
        self.rank = world.rank if self.n > 1 else 0

    def enter(self, x):
        """What a layer that is divided by columns reads."""
        if self.n == 1:
            return x
        return self.c.gather(x, 1) if self.kind == "sequence" else self.c.copy(x)

    def leave(self, x):
        """What a layer that is divided by rows gives."""
        if self.n == 1:
            return x
        return self.c.scatter(x, 1) if self.kind == "sequence" else self.c.reduce(x)

    def outside(self, ids, first, size):
        return (ids < first) | (ids >= first + size)

    def biased(self, y, bias):
        """Of a layer that is divided by rows: the bias is added once."""
        y = self.leave(y)
        return y if bias is None else y + bias


class Linear(nn.Module):
    def __init__(self, s, plan, inner, outer, cut, bias=False, parts=None):
        super().__init__()
        self.how, self.plan, self.cut = s["linear"], plan, cut
        turned = self.how in ("matmul", "addmm")
        shape = (inner, outer) if turned else (outer, inner)
        dim = {"columns": int(turned), "rows": int(not turned), None: None}[cut]
        self.weight = parameter(shape, dim, parts, plan.n)
        over = 0 if cut == "columns" else None
        self.bias = parameter((outer,), over, parts, plan.n) if bias else None

    def product(self, x, bias):
        w = self.weight
        if self.how == "linear":
            return F.linear(x, w, bias)
        if self.how == "addmm" and bias is not None:
            return torch.addmm(bias, x.reshape(-1, x.shape[-1]), w).view(*x.shape[:-1], w.shape[1])
        if self.how == "einsum":
            y = torch.einsum("bti,oi->bto", x, w)
        elif self.how == "mm":
            y = torch.mm(x.reshape(-1, x.shape[-1]), w.t()).view(*x.shape[:-1], w.shape[0])
        else:
            y = x @ w
        return y if bias is None else y + bias

    def forward(self, x):
        if self.cut == "columns":
            return self.product(x, self.bias)
        return self.plan.biased(self.product(x, None), self.bias)


class Norm(nn.Module):
    def __init__(self, s, width):
        super().__init__()
        self.how = s["norm"]
        self.weight = parameter((width,))
        self.bias = parameter((width,)) if self.how.startswith("layer") else None

    def forward(self, x):
        n, w = x.shape[-1:], self.weight
        if self.how == "layer":
            return F.layer_norm(x, n, w, self.bias, 1e-5)
        if self.how == "layer_written":
            d = x - x.mean(-1, keepdim=True)
            return d / torch.sqrt(d.pow(2).mean(-1, keepdim=True) + 1e-5) * w + self.bias
        if self.how == "rms":
            return F.rms_norm(x, n, w, 1e-6)
        return w * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))


def rotated(x, how, first=0):
    """x: (batch, heads, positions, size of a head)"""
    t, d = x.shape[-2:]
    by = 1.0 / (10000.0 ** (torch.arange(0, d, 2).float() / d))
    angle = torch.outer(torch.arange(first, first + t).float(), by).to(x.dtype)
    if how == "halves":
        both = torch.cat([angle, angle], -1)
        a, b = x.chunk(2, -1)
        return x * both.cos() + torch.cat([-b, a], -1) * both.sin()
    if how == "pairs":
        a, b = x[..., ::2], x[..., 1::2]
        cos, sin = angle.cos(), angle.sin()
        return torch.stack([a * cos - b * sin, b * cos + a * sin], -1).flatten(-2)
    unit = torch.polar(torch.ones_like(angle), angle)
    z = torch.view_as_complex(x.reshape(*x.shape[:-1], -1, 2))
    return torch.view_as_real(z * unit).flatten(-2)


def attention(q, k, v, how):
    """Causal; q: (batch, heads, positions, size), k and v of as many heads or fewer."""
    b, h, t, d = q.shape
    times = h // k.shape[1]
    if how == "grouped" and times > 1:
        q = q.reshape(b, h // times, times, t, d)
        s = torch.einsum("bgrtd,bgsd->bgrts", q, k) * d**-0.5
        mask = torch.tril(torch.ones(t, t, dtype=torch.bool))
        p = torch.where(mask, s, torch.finfo(torch.float32).min).softmax(-1)
        return torch.einsum("bgrts,bgsd->bgrtd", p, v).reshape(b, h, t, d)
    if times > 1 and how == "fused":
        k, v = k.repeat_interleave(times, 1), v.repeat_interleave(times, 1)
    elif times > 1:
        wide = lambda x: x[:, :, None].expand(b, h // times, times, t, d).reshape(b, h, t, d)
        k, v = wide(k), wide(v)
    if how == "fused":
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)
    if how == "baddbmm":
        bias = torch.full((t, t), -1e9).triu(1).to(q.dtype).expand(b * h, t, t)
        q, k, v = (x.reshape(b * h, t, d) for x in (q, k, v))
        s = torch.baddbmm(bias, q, k.transpose(1, 2), alpha=d**-0.5)
        return torch.bmm(F.softmax(s, -1), v).view(b, h, t, d)
    s = q @ k.transpose(-1, -2) / math.sqrt(d)
    if how == "filled":
        s = s.masked_fill(torch.ones(t, t, dtype=torch.bool).triu(1), float("-inf"))
    else:
        s = s + torch.full((t, t), float("-inf")).triu(1).to(s.dtype)
    return torch.softmax(s, -1) @ v


class Attention(nn.Module):
    def __init__(self, s, plan, bias):
        super().__init__()
        self.s, self.plan, d = s, plan, s["head"]
        q, k = s["heads"] * d, s["groups"] * d
        self.own = [q // plan.n, k // plan.n, k // plan.n]
        make = lambda o, parts=None: Linear(s, plan, s["width"], o, "columns", bias, parts)
        if s["fused_qkv"]:
            self.qkv = make(q + 2 * k, [q, k, k])
        else:
            self.q, self.k, self.v = make(q), make(k), make(k)
        self.out = Linear(s, plan, q, s["width"], "rows", bias)

    def forward(self, x):
        s, d = self.s, self.s["head"]
        if s["fused_qkv"]:
            q, k, v = self.qkv(x).split(self.own, -1)
        else:
            q, k, v = self.q(x), self.k(x), self.v(x)
        b, t = q.shape[:2]
        q, k, v = (y.view(b, t, -1, d).transpose(1, 2) for y in (q, k, v))
        if s["rotation"]:
            q, k = rotated(q, s["rotation"]), rotated(k, s["rotation"])
        y = attention(q, k, v, s["attention"]).transpose(1, 2)
        y = y.flatten(2) if s["flat"] == "flatten" else y.reshape(b, t, self.own[0])
        return self.out(y)


class Feed(nn.Module):
    def __init__(self, s, plan, bias):
        super().__init__()
        self.s, w, m = s, s["width"], s["inner"]
        if s["feed"] == "swiglu_fused":
            self.up = Linear(s, plan, w, 2 * m, "columns", bias, [m, m])
        elif s["feed"] == "swiglu":
            self.gate = Linear(s, plan, w, m, "columns", bias)
            self.up = Linear(s, plan, w, m, "columns", bias)
        else:
            self.up = Linear(s, plan, w, m, "columns", bias)
        self.down = Linear(s, plan, m, w, "rows", bias)

    def forward(self, x):
        how = self.s["feed"]
        if how == "swiglu_fused":
            a, b = self.up(x).chunk(2, -1)
            y = F.silu(a) * b
        elif how == "swiglu":
            y = F.silu(self.gate(x)) * self.up(x)
        elif how == "relu":
            y = F.relu(self.up(x))
        else:
            y = F.gelu(self.up(x), approximate="tanh" if how == "gelu_tanh" else "none")
        return self.down(y)


class Block(nn.Module):
    def __init__(self, s, plan):
        super().__init__()
        self.plan = plan
        self.norm1, self.norm2 = Norm(s, s["width"]), Norm(s, s["width"])
        self.attention = Attention(s, plan, s["bias"])
        self.feed = Feed(s, plan, s["bias"])

    def forward(self, x):
        x = x + self.attention(self.plan.enter(self.norm1(x)))
        return x + self.feed(self.plan.enter(self.norm2(x)))


class Embedding(nn.Module):
    """Rows of the vocabulary, a part on each rank."""

    def __init__(self, s, plan):
        super().__init__()
        self.how, self.plan, self.size = s["embedding"], plan, s["vocabulary"] // plan.n
        self.weight = parameter((s["vocabulary"], s["width"]), 0, None, plan.n)

    def forward(self, ids):
        if self.plan.n == 1:
            return F.embedding(ids, self.weight)
        first = self.plan.rank * self.size
        mask = self.plan.outside(ids, first, self.size)
        at = ids - first
        if self.how == "clamp":
            at = at.clamp(0, self.size - 1)
        elif self.how == "where":
            at = torch.where(mask, torch.zeros_like(at), at)
        elif self.how == "mul":
            at = at * (~mask)
        else:
            at = at.masked_fill(mask, 0)
        y = self.weight[at] if self.how == "where" else F.embedding(at, self.weight)
        if self.how == "mul":
            y = y * (~mask).unsqueeze(-1).to(y.dtype)
        elif self.how == "where":
            y = torch.where(mask.unsqueeze(-1), torch.zeros_like(y), y)
        else:
            y = y.masked_fill(mask.unsqueeze(-1), 0.0)
        return self.plan.leave(y)


class VocabularyLoss(torch.autograd.Function):
    """The cross entropy of each position over shards of a vocabulary, and its gradient, by hand."""

    @staticmethod
    def forward(ctx, x, labels, plan):
        size = x.shape[-1]
        first = plan.rank * size
        top = plan.c.plain(x.max(-1)[0], "max")
        x = x - top.unsqueeze(-1)
        mask = plan.outside(labels, first, size)
        at = (labels - first).masked_fill(mask, 0)
        own = x.gather(-1, at.unsqueeze(-1)).squeeze(-1).masked_fill(mask, 0.0)
        own = plan.c.plain(own)
        e = x.exp()
        total = plan.c.plain(e.sum(-1))
        ctx.save_for_backward(e / total.unsqueeze(-1), mask, at)
        return total.log() - own

    @staticmethod
    def backward(ctx, g):
        p, mask, at = ctx.saved_tensors
        hit = F.one_hot(at, p.shape[-1]).to(p.dtype) * (~mask).unsqueeze(-1).to(p.dtype)
        return (p - hit) * g.unsqueeze(-1), None, None


def vocabulary_loss(x, labels, s, plan):
    """Of logits over a rank's part of the vocabulary."""
    how, size = s["loss"], x.shape[-1]
    x, labels = x.reshape(-1, size), labels.reshape(-1)
    if plan.n == 1:
        return F.cross_entropy(x, labels)
    if how == "function":
        return VocabularyLoss.apply(x, labels, plan).mean()
    first = plan.rank * size
    top = plan.c.plain(x.detach().amax(-1) if how == "clamp" else x.detach().max(-1)[0], "max")
    x = x - top.unsqueeze(-1)
    total = plan.c.reduce(x.exp().sum(-1))
    mask = plan.outside(labels, first, size)
    at = labels - first
    if how == "clamp":
        at = at.clamp(0, size - 1)
    elif how == "where":
        at = torch.where(mask, 0, at)
    else:
        at = at.masked_fill(mask, 0)
    own = x.gather(-1, at.unsqueeze(-1))
    if how == "where":
        own = torch.where(mask, 0.0, own.squeeze(-1))
    elif how == "late":
        own = own.masked_fill(mask.unsqueeze(-1), 0.0).squeeze(-1)
    else:
        own = own.squeeze(-1).masked_fill(mask, 0.0)
    own = plan.c.reduce(own)
    return (total.log() - own).mean()


class Decoder(nn.Module):
    def __init__(self, s, plan):
        super().__init__()
        self.s, self.plan = s, plan
        self.tokens = Embedding(s, plan)
        if not s["rotation"]:
            self.positions = nn.Parameter(torch.empty(s["length"], s["width"]))
            self.positions.full, self.positions.cut = tuple(self.positions.shape), None
        self.blocks = nn.ModuleList([Block(s, plan) for _ in range(s["layers"])])
        self.norm = Norm(s, s["width"])
        if not s["tied"]:
            self.head = parameter((s["vocabulary"], s["width"]), 0, None, plan.n)

    def forward(self, ids):
        x = self.tokens(ids)
        if not self.s["rotation"]:
            p = self.positions
            if self.plan.kind == "sequence":
                t = p.shape[0] // self.plan.n
                p = p[self.plan.rank * t : (self.plan.rank + 1) * t]
            x = x + p
        for block in self.blocks:
            x = block(x)
        x = self.plan.enter(self.norm(x))
        return F.linear(x, self.tokens.weight if self.s["tied"] else self.head)

    def sequence_gradients(self):
        """Names of parameters whose gradient each rank has for its positions only."""
        if self.plan.kind != "sequence":
            return set()
        rows = {
            n + ".bias"
            for n, m in self.named_modules()
            if isinstance(m, Linear) and m.cut == "rows" and m.bias is not None
        }
        norms = {n + "." for n, m in self.named_modules() if isinstance(m, Norm)}
        return {
            n
            for n, _ in self.named_parameters()
            if n in rows or n == "positions" or any(n.startswith(p) for p in norms)
        }
