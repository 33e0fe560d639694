"""Reference models whose code does not ship with Transformers: InternLM2, OLMo, Qwen 1 and JAIS,
with the operators of their published code."""

import torch
from torch import nn
from torch.nn import functional as F


class RMSNorm(nn.Module):
    def __init__(self, width, eps):
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.ones(width)), eps

    def forward(self, x):
        wide = x.to(torch.float32)
        wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + self.eps)
        return self.weight * wide.to(x.dtype)


class Rotary(nn.Module):
    def __init__(self, head, base):
        super().__init__()
        self.register_buffer(
            "inv_freq", 1.0 / (base ** (torch.arange(0, head, 2).float() / head)), persistent=False
        )

    def forward(self, x):
        t = torch.arange(x.shape[1], dtype=torch.float32)
        freqs = torch.outer(t, self.inv_freq)
        emb = torch.cat((freqs, freqs), dim=-1)
        return emb.cos()[None, None], emb.sin()[None, None]


def rotate_half(x):
    half = x.shape[-1] // 2
    return torch.cat((-x[..., half:], x[..., :half]), dim=-1)


def rotate(x, cos, sin):
    return x * cos + rotate_half(x) * sin


def attend(q, k, v):
    """[batch, heads, T, head]; keys and values repeated for their groups."""
    group = q.shape[1] // k.shape[1]
    k, v = (
        t[:, :, None].expand(t.shape[0], t.shape[1], group, *t.shape[2:]).reshape(q.shape)
        for t in (k, v)
    )
    out = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    return out.transpose(1, 2).reshape(q.shape[0], q.shape[2], -1)


def heads_of(x, head):
    return x.view(x.shape[0], x.shape[1], -1, head).transpose(1, 2)


def stack(make, n):
    return nn.ModuleList([make() for _ in range(n)])


# ---- InternLM2 ----


class InternAttention(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c, self.groups = c, c.heads // c.kv
        self.wqkv = nn.Linear(c.hidden, (c.heads + 2 * c.kv) * c.head, bias=False)
        self.wo, self.rotary_emb = (
            nn.Linear(c.heads * c.head, c.hidden, bias=False),
            Rotary(c.head, c.base),
        )

    def forward(self, x):
        b, t, _ = x.shape
        qkv = self.wqkv(x).view(b, t, self.c.kv, self.groups + 2, self.c.head)
        q = qkv[..., : self.groups, :].reshape(b, t, self.c.heads, self.c.head).transpose(1, 2)
        k, v = qkv[..., -2, :].transpose(1, 2), qkv[..., -1, :].transpose(1, 2)
        cos, sin = self.rotary_emb(x)
        return self.wo(attend(rotate(q, cos, sin), rotate(k, cos, sin), v))


class InternMlp(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.w1, self.w3, self.w2 = (
            nn.Linear(a, b, bias=False)
            for a, b in ((c.hidden, c.inner), (c.hidden, c.inner), (c.inner, c.hidden))
        )

    def forward(self, x):
        return self.w2(F.silu(self.w1(x)) * self.w3(x))


class InternLayer(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.attention, self.feed_forward = InternAttention(c), InternMlp(c)
        self.attention_norm, self.ffn_norm = RMSNorm(c.hidden, c.eps), RMSNorm(c.hidden, c.eps)

    def forward(self, x):
        x = x + self.attention(self.attention_norm(x))
        return x + self.feed_forward(self.ffn_norm(x))


class InternLM2(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.model = nn.Module()
        self.model.tok_embeddings, self.model.norm = (
            nn.Embedding(c.vocab, c.hidden),
            RMSNorm(c.hidden, c.eps),
        )
        self.model.layers = stack(lambda: InternLayer(c), c.layers)
        self.output = nn.Linear(c.hidden, c.vocab, bias=False)

    def forward(self, input_ids):
        x = self.model.tok_embeddings(input_ids)
        for layer in self.model.layers:
            x = layer(x)
        return self.output(self.model.norm(x))


# ---- OLMo ----


class OlmoBlock(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c = c
        self.attn_norm, self.ff_norm = (
            nn.LayerNorm(c.hidden, c.eps, elementwise_affine=False),
            nn.LayerNorm(c.hidden, c.eps, elementwise_affine=False),
        )
        self.att_proj, self.attn_out = (
            nn.Linear(c.hidden, 3 * c.hidden, bias=False),
            nn.Linear(c.hidden, c.hidden, bias=False),
        )
        self.ff_proj, self.ff_out = (
            nn.Linear(c.hidden, 2 * c.inner, bias=False),
            nn.Linear(c.inner, c.hidden, bias=False),
        )
        self.rotary_emb = Rotary(c.head, c.base)

    def forward(self, x):
        q, k, v = (
            heads_of(t, self.c.head)
            for t in self.att_proj(self.attn_norm(x)).split(self.c.hidden, dim=-1)
        )
        cos, sin = self.rotary_emb(x)
        x = x + self.attn_out(attend(rotate(q, cos, sin), rotate(k, cos, sin), v))
        inner, gate = self.ff_proj(self.ff_norm(x)).chunk(2, dim=-1)
        return x + self.ff_out(F.silu(gate) * inner)


class Olmo(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.model = nn.Module()
        t = self.model.transformer = nn.Module()
        t.wte, t.ln_f = (
            nn.Embedding(c.vocab, c.hidden),
            nn.LayerNorm(c.hidden, c.eps, elementwise_affine=False),
        )
        t.blocks, t.ff_out = (
            stack(lambda: OlmoBlock(c), c.layers),
            nn.Linear(c.hidden, c.vocab, bias=False),
        )

    def forward(self, input_ids):
        t = self.model.transformer
        x = t.wte(input_ids)
        for block in t.blocks:
            x = block(x)
        return t.ff_out(t.ln_f(x))


# ---- Qwen 1 ----


class QwenAttention(nn.Module):
    def __init__(self, c, logn):
        super().__init__()
        self.c, self.trained = c, c.trained
        self.c_attn, self.c_proj = (
            nn.Linear(c.hidden, 3 * c.hidden),
            nn.Linear(c.hidden, c.hidden, bias=False),
        )
        self.rotary_emb = Rotary(c.head, c.base)
        self.register_buffer("logn_tensor", logn[None, None, :, None], persistent=False)

    def forward(self, x):
        t = x.shape[1]
        q, k, v = (heads_of(p, self.c.head) for p in self.c_attn(x).split(self.c.hidden, dim=2))
        cos, sin = self.rotary_emb(x)
        q, k = rotate(q, cos, sin), rotate(k, cos, sin)
        if t > self.trained:
            q = q * self.logn_tensor[:, :, :t, :].type_as(q).expand_as(q)
        return self.c_proj(attend(q, k, v))


class QwenMlp(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.w1, self.w2, self.c_proj = (
            nn.Linear(a, b, bias=False)
            for a, b in ((c.hidden, c.inner), (c.hidden, c.inner), (c.inner, c.hidden))
        )

    def forward(self, x):
        return self.c_proj(self.w1(x) * F.silu(self.w2(x)))


class QwenBlock(nn.Module):
    def __init__(self, c, logn):
        super().__init__()
        self.ln_1, self.ln_2, self.attn, self.mlp = (
            RMSNorm(c.hidden, c.eps),
            RMSNorm(c.hidden, c.eps),
            QwenAttention(c, logn),
            QwenMlp(c),
        )

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


def logn_table(trained, rows):
    """log_n(i) past the trained length n, 1 up to it."""
    i = torch.arange(1, rows + 1, dtype=torch.float64)
    return torch.where(
        i > trained,
        torch.log(i) / torch.log(torch.tensor(float(trained), dtype=torch.float64)),
        torch.ones_like(i),
    ).float()


class Qwen(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.transformer = t = nn.Module()
        logn = logn_table(c.trained, c.rows)
        t.wte, t.ln_f = nn.Embedding(c.vocab, c.hidden), RMSNorm(c.hidden, c.eps)
        t.h = stack(lambda: QwenBlock(c, logn), c.layers)
        self.lm_head = nn.Linear(c.hidden, c.vocab, bias=False)

    def forward(self, input_ids):
        x = self.transformer.wte(input_ids)
        for block in self.transformer.h:
            x = block(x)
        return self.lm_head(self.transformer.ln_f(x))


# ---- JAIS ----


def slopes(heads):
    """ALiBi's, for a power of two heads."""
    first = 2.0 ** (-8.0 / heads)
    return [first ** (i + 1) for i in range(heads)]


class JaisAttention(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c = c
        self.c_attn, self.c_proj = nn.Linear(c.hidden, 3 * c.hidden), nn.Linear(c.hidden, c.hidden)
        self.register_buffer(
            "bias",
            torch.tril(torch.ones(c.rows, c.rows, dtype=torch.bool)).view(1, 1, c.rows, c.rows),
            persistent=False,
        )

    def forward(self, x):
        t = x.shape[1]
        q, k, v = (heads_of(p, self.c.head) for p in self.c_attn(x).split(self.c.hidden, dim=2))
        scores = torch.matmul(q, k.transpose(-1, -2)) * self.c.head**-0.5
        scores = torch.where(
            self.bias[:, :, :t, :t], scores, torch.full([], torch.finfo(scores.dtype).min)
        )
        if self.c.alibi:
            scores = scores + self.relative(t).unsqueeze(0)
        out = torch.matmul(F.softmax(scores, dim=-1), v)
        return self.c_proj(out.transpose(1, 2).reshape(x.shape))

    def relative(self, t):
        """ALiBi's bias. The slopes are computed here, as MPT does; JAIS keeps them in a table."""
        at, powers = torch.arange(t), torch.arange(1, self.c.heads + 1, dtype=torch.float32)
        slope = torch.pow(2.0, powers * (-8.0 / self.c.heads))
        return slope[:, None, None] * (at[None, :] - at[:, None])[None]


class JaisMlp(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c_fc, self.c_fc2, self.c_proj = (
            nn.Linear(c.hidden, c.inner),
            nn.Linear(c.hidden, c.inner),
            nn.Linear(c.inner, c.hidden),
        )

    def forward(self, x):
        return self.c_proj(self.c_fc(x) * F.silu(self.c_fc2(x)))


class JaisBlock(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.ln_1, self.ln_2, self.attn, self.mlp = (
            nn.LayerNorm(c.hidden, c.eps),
            nn.LayerNorm(c.hidden, c.eps),
            JaisAttention(c),
            JaisMlp(c),
        )

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class Jais(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c, self.transformer = c, nn.Module()
        t = self.transformer
        t.wte, t.ln_f, t.h = (
            nn.Embedding(c.vocab, c.hidden),
            nn.LayerNorm(c.hidden, c.eps),
            stack(lambda: JaisBlock(c), c.layers),
        )
        if not c.alibi:
            t.wpe = nn.Embedding(c.rows, c.hidden)
        self.lm_head = nn.Linear(c.hidden, c.vocab, bias=False)

    def forward(self, input_ids):
        t = self.transformer
        x = t.wte(input_ids)
        if not self.c.alibi:
            x = x + t.wpe(torch.arange(input_ids.shape[1])[None])
        x = x * self.c.embeddings_scale
        for block in t.h:
            x = block(x)
        return self.lm_head(t.ln_f(x)) * self.c.width_scale
