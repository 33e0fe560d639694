"""Layers as vLLM writes them in PyTorch (their native forward): the operators, their order, the
modules' names.

Attention is the operator vllm::unified_attention_with_output with its layer's attributes, and
collectives are dist::all_reduce and dist::all_gather over the ranks' tensors, as in
docs/capture-format.md."""

import torch
from torch import nn
from torch.nn import functional as F

# ---- operators outside PyTorch ----

LAYERS = {}  # what vllm::unified_attention_with_output looks its layer up in, by name

_vllm = torch.library.Library("vllm", "FRAGMENT")
_vllm.define(
    (
        "unified_attention_with_output(Tensor query, Tensor key, Tensor value, Tensor(a!) output, "
        "str layer_name) -> ()"
    )
)
_dist = torch.library.Library("dist", "FRAGMENT")
_dist.define("all_reduce(Tensor[] inputs, str op) -> Tensor")
_dist.define("all_gather(Tensor[] inputs, int dim) -> Tensor")


def _attention(query, key, value, output, layer_name):
    a = LAYERS[layer_name].attributes()
    group = a["num_heads"] // a["num_kv_heads"]
    q = query.transpose(0, 1)
    k, v = (t.transpose(0, 1).repeat_interleave(group, 0) for t in (key, value))
    scores = torch.matmul(q, k.transpose(1, 2)) * a["scale"]
    if a["logits_soft_cap"]:
        scores = torch.tanh(scores / a["logits_soft_cap"]) * a["logits_soft_cap"]
    at = torch.arange(q.shape[1])
    distance = at[None, :] - at[:, None]
    if a["alibi_slopes"] is not None:
        scores = scores + torch.tensor(a["alibi_slopes"])[:, None, None] * distance
    hidden = distance > 0
    if a["sliding_window"]:
        hidden |= distance <= -a["sliding_window"]
    p = torch.softmax(scores.masked_fill(hidden, float("-inf")), -1)
    output.copy_(torch.matmul(p, v).transpose(0, 1))


_vllm.impl("unified_attention_with_output", _attention, "CPU")
torch.library.register_fake(
    "vllm::unified_attention_with_output", lambda query, key, value, output, layer_name: None
)
_dist.impl("all_reduce", lambda inputs, op: torch.stack(inputs).sum(0), "CPU")
_dist.impl("all_gather", lambda inputs, dim: torch.cat(inputs, dim), "CPU")
torch.library.register_fake("dist::all_reduce", lambda inputs, op: torch.empty_like(inputs[0]))
torch.library.register_fake("dist::all_gather", lambda inputs, dim: torch.cat(inputs, dim))


def attributes(layer_name, **_):
    return LAYERS[layer_name].attributes()


ATTRIBUTES = {"vllm::unified_attention_with_output": attributes}


def all_reduce(parts):
    return parts[0] if len(parts) == 1 else torch.ops.dist.all_reduce(parts, "sum")


def all_gather(parts):
    return parts[0] if len(parts) == 1 else torch.ops.dist.all_gather(parts, 1)


# ---- layers ----


class Linear(nn.Module):
    def __init__(self, n_in, n_out, bias=False):
        super().__init__()
        self.weight = nn.Parameter(torch.full((n_out, n_in), float("nan")))
        self.bias = nn.Parameter(torch.full((n_out,), float("nan"))) if bias else None

    def forward(self, x):
        return F.linear(x, self.weight, self.bias)


class Embedding(nn.Module):
    def __init__(self, rows, width):
        super().__init__()
        self.weight = nn.Parameter(torch.full((rows, width), float("nan")))

    def forward(self, ids):
        return F.embedding(ids.long(), self.weight)


class ShardedEmbedding(nn.Module):
    """The rows [begin, begin + rows) of a vocabulary; other tokens are zero here."""

    def __init__(self, rows, width, begin):
        super().__init__()
        self.weight = nn.Parameter(torch.full((rows, width), float("nan")))
        self.begin, self.end = begin, begin + rows

    def forward(self, ids):
        mine = (ids >= self.begin) & (ids < self.end)
        found = F.embedding((mine * (ids - self.begin)).long(), self.weight)
        return found.masked_fill(~mine.unsqueeze(-1), 0)


class Norm(nn.Module):
    """The norms with vLLM's fused residual: (x, residual) to (normed, x + residual)."""

    def __init__(self, width, eps, weight=True, bias=False):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.full((width,), float("nan"))) if weight else None
        self.bias = nn.Parameter(torch.full((width,), float("nan"))) if bias else None

    def forward(self, x, residual=None):
        if residual is not None:
            x = x + residual
        return self.norm(x), x


class RMSNorm(Norm):
    def norm(self, x):
        wide = x.to(torch.float32)
        wide = wide * torch.rsqrt(wide.pow(2).mean(dim=-1, keepdim=True) + self.eps)
        return wide.to(x.dtype) * self.weight


class GemmaRMSNorm(Norm):
    def norm(self, x):
        wide = x.float()
        wide = wide * torch.rsqrt(wide.pow(2).mean(dim=-1, keepdim=True) + self.eps)
        return (wide * (1.0 + self.weight.float())).to(x.dtype)


class LayerNorm(Norm):
    def norm(self, x):
        return F.layer_norm(x, x.shape[-1:], self.weight, self.bias, self.eps)


class CohereNorm(Norm):
    """Command-R's, written out."""

    def norm(self, x):
        wide = x.to(torch.float32)
        mean = wide.mean(-1, keepdim=True)
        variance = (wide - mean).pow(2).mean(-1, keepdim=True)
        return (
            self.weight.to(torch.float32) * ((wide - mean) * torch.rsqrt(variance + self.eps))
        ).to(x.dtype)


def inverse_frequencies(base, dim, of=None, factors=None):
    powers = base ** (torch.arange(0, dim, 2, dtype=torch.float) / (of or dim))
    return 1.0 / (powers if factors is None else torch.tensor(factors) * powers)


def table(inv_freq, rows, scale=1.0):
    freqs = torch.einsum("i,j -> ij", torch.arange(rows, dtype=torch.float), inv_freq)
    return torch.cat((freqs.cos() * scale, freqs.sin() * scale), dim=-1)


class RotaryEmbedding(nn.Module):
    """`neox`: pairs (i, i + d/2); else (2i, 2i + 1)."""

    def __init__(self, head, cache, neox=True):
        super().__init__()
        self.head, self.rotary, self.neox = head, cache.shape[1], neox
        self.register_buffer("cos_sin_cache", cache, persistent=False)

    def rotate(self, x, cos, sin):
        cos, sin = cos.unsqueeze(-2).to(x.dtype), sin.unsqueeze(-2).to(x.dtype)
        x1, x2 = torch.chunk(x, 2, dim=-1) if self.neox else (x[..., ::2], x[..., 1::2])
        o1, o2 = x1 * cos - x2 * sin, x2 * cos + x1 * sin
        return (
            torch.cat((o1, o2), dim=-1) if self.neox else torch.stack((o1, o2), dim=-1).flatten(-2)
        )

    def apply(self, x, cos, sin):
        n = x.shape[0]
        heads = x.view(n, -1, self.head)
        rotated, passed = heads[..., : self.rotary], heads[..., self.rotary :]
        return torch.cat((self.rotate(rotated, cos, sin), passed), dim=-1).reshape(x.shape)

    def index(self, positions):
        return positions.flatten()

    def forward(self, positions, q, k):
        cos, sin = self.cos_sin_cache.index_select(0, self.index(positions)).chunk(2, dim=-1)
        return self.apply(q, cos, sin), self.apply(k, cos, sin)


class LongRotaryEmbedding(RotaryEmbedding):
    """Phi-3.5's: the short table, then the long one. The choice is made for the whole batch, by any
    position past `short` (`decided` None), or by the configuration (0 or 1)."""

    def __init__(self, head, short, long, decided=None):
        super().__init__(head, torch.cat([short, long], 0))
        self.short, self.decided = short.shape[0], decided

    def index(self, positions):
        if self.decided is None:
            offset = (
                torch.any(positions > self.short).float() * torch.full_like(positions, self.short)
            ).long()
            return torch.add(positions, offset)
        return positions + self.decided * self.short


class MRotaryEmbedding(RotaryEmbedding):
    """Qwen2-VL's: three positions a token, each for its section of the frequencies."""

    def __init__(self, head, cache, section):
        super().__init__(head, cache)
        self.section = section

    def forward(self, positions, q, k):
        cos, sin = self.cos_sin_cache[positions].chunk(2, dim=-1)
        cos, sin = (
            torch.cat([m[i] for i, m in enumerate(t.split(self.section, dim=-1))], dim=-1)
            for t in (cos, sin)
        )
        return self.apply(q, cos, sin), self.apply(k, cos, sin)


class Attention(nn.Module):
    def __init__(self, name, heads, head, scale, kv=None, window=None, soft_cap=None, slopes=None):
        super().__init__()
        self.name, self.heads, self.kv, self.head, self.scale = (
            name,
            heads,
            kv or heads,
            head,
            scale,
        )
        self.window, self.soft_cap, self.slopes = window, soft_cap, slopes
        LAYERS[name] = self

    def attributes(self):
        return {
            "num_heads": self.heads,
            "num_kv_heads": self.kv,
            "head_size": self.head,
            "scale": float(self.scale),
            "sliding_window": self.window,
            "logits_soft_cap": self.soft_cap,
            "alibi_slopes": self.slopes,
            "causal": True,
        }

    def forward(self, q, k, v):
        output = torch.empty(q.shape, dtype=q.dtype)
        torch.ops.vllm.unified_attention_with_output(
            q.view(-1, self.heads, self.head),
            k.view(-1, self.kv, self.head),
            v.view(-1, self.kv, self.head),
            output.view(-1, self.heads, self.head),
            self.name,
        )
        return output.view(-1, self.heads * self.head)


class SiluAndMul(nn.Module):
    def forward(self, x):
        d = x.shape[-1] // 2
        return F.silu(x[..., :d]) * x[..., d:]


class GeluAndMul(nn.Module):
    def __init__(self, approximate):
        super().__init__()
        self.approximate = approximate

    def forward(self, x):
        d = x.shape[-1] // 2
        return F.gelu(x[..., :d], approximate=self.approximate) * x[..., d:]


class NewGELU(nn.Module):
    def forward(self, x):
        return 0.5 * x * (1.0 + torch.tanh(0.7978845608028654 * (x + 0.044715 * torch.pow(x, 3.0))))


class Gelu(nn.Module):
    def __init__(self, approximate="none"):
        super().__init__()
        self.approximate = approximate

    def forward(self, x):
        return F.gelu(x, approximate=self.approximate)


class Experts(nn.Module):
    """The chosen experts' products, written out."""

    def __init__(self, n, hidden, inner, choose):
        super().__init__()
        self.w13_weight = nn.Parameter(torch.full((n, 2 * inner, hidden), float("nan")))
        self.w2_weight = nn.Parameter(torch.full((n, hidden, inner), float("nan")))
        self.act_fn, self.choose = SiluAndMul(), choose

    def forward(self, x, logits):
        weights, ids = self.choose(logits)
        inner = self.act_fn(
            torch.matmul(self.w13_weight[ids], x.unsqueeze(1).unsqueeze(-1)).squeeze(-1)
        )
        out = torch.matmul(self.w2_weight[ids], inner.unsqueeze(-1)).squeeze(-1)
        return (out * weights.unsqueeze(-1)).sum(1)


def softmax_topk(k, renormalize=False):
    def choose(logits):
        weights, ids = torch.topk(torch.softmax(logits, dim=-1, dtype=torch.float), k, dim=-1)
        return (weights / weights.sum(dim=-1, keepdim=True) if renormalize else weights), ids

    return choose


def phimoe_routing(jitter):
    """PhiMoE's choice of two experts; what lies further than 2 * jitter (relative) below the best
    is masked out."""

    def one(scores, among):
        threshold, best = among.max(dim=-1, keepdim=True)
        factor = scores.abs().clamp(min=threshold)
        far = ((threshold - scores) / factor) > (2 * jitter)
        gates = torch.softmax(among.masked_fill(far, float("-inf")), dim=-1)
        return gates.gather(dim=-1, index=best), best

    def choose(logits):
        first, best = one(logits, logits)
        second, next_best = one(logits, torch.scatter(logits, -1, best, float("-inf")))
        return torch.concat((first, second), dim=-1), torch.concat((best, next_best), dim=-1)

    return choose
