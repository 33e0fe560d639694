"""The models of the known bugs as vLLM writes them. What is wrong in a faulty one is an argument,
None or False where it is right."""

import torch
from torch import nn

from layers import (
    Attention,
    CohereNorm,
    Embedding,
    Experts,
    GeluAndMul,
    GemmaRMSNorm,
    LayerNorm,
    Linear,
    NewGELU,
    RMSNorm,
    ShardedEmbedding,
    SiluAndMul,
    all_gather,
    all_reduce,
)


class Bare(nn.Module):
    """A module that only holds others."""


def gated(inner_in, inner, act, bias=False):
    m = Mlp()
    m.gate_up_proj, m.act_fn, m.down_proj = (
        Linear(inner_in, 2 * inner, bias),
        act,
        Linear(inner, inner_in, bias),
    )
    return m


class Mlp(nn.Module):
    def forward(self, x):
        return self.down_proj(self.act_fn(self.gate_up_proj(x)))


class SelfAttention(nn.Module):
    """qkv_proj, rotary_emb, attn, o_proj, and what some models have between them. `qk_norm`: None,
    "full" (over all heads) or "head"."""

    def __init__(
        self,
        name,
        c,
        rotary,
        kv=None,
        bias=False,
        o_bias=False,
        out="o_proj",
        qk_norm=None,
        clip=None,
        **attention,
    ):
        super().__init__()
        kv = kv or c.kv
        self.sizes, self.out, self.clip, self.qk_norm, self.head = (
            [c.heads * c.head, kv * c.head, kv * c.head],
            out,
            clip,
            qk_norm,
            c.head,
        )
        self.qkv_proj = Linear(c.hidden, sum(self.sizes), bias)
        setattr(self, out, Linear(c.heads * c.head, c.hidden, o_bias))
        if qk_norm == "full":
            self.q_norm, self.k_norm = RMSNorm(self.sizes[0], c.eps), RMSNorm(self.sizes[1], c.eps)
        elif qk_norm == "head":
            self.q_layernorm, self.k_layernorm = (
                LayerNorm(c.head, c.eps, bias=True),
                LayerNorm(c.head, c.eps, bias=True),
            )
        self.rotary_emb = rotary
        attention.setdefault("scale", c.head**-0.5)
        self.attn = Attention(name + ".attn", c.heads, c.head, kv=kv, **attention)

    def forward(self, positions, x):
        q, k, v = self.qkv_proj(x).split(self.sizes, dim=-1)
        if self.qk_norm == "full":
            q, k = self.q_norm(q)[0], self.k_norm(k)[0]
        elif self.qk_norm == "head":
            q = self.q_layernorm(q.view(-1, self.sizes[0] // self.head, self.head))[0].reshape(
                q.shape
            )
            k = self.k_layernorm(k.view(-1, self.sizes[1] // self.head, self.head))[0].reshape(
                k.shape
            )
        if self.clip is not None:
            q, k, v = (t.clamp(min=-self.clip, max=self.clip) for t in (q, k, v))
        q, k = self.rotary_emb(positions, q, k)
        return getattr(self, self.out)(self.attn(q, k, v))


class Moe(nn.Module):
    def __init__(self, hidden, n, inner, choose):
        super().__init__()
        self.gate, self.experts = Linear(hidden, n), Experts(n, hidden, inner, choose)

    def forward(self, x):
        return self.experts(x, self.gate(x))


# ---- the Llama family ----


class Layer(nn.Module):
    def __init__(self, norm1, attention, norm2, mlp):
        super().__init__()
        self.self_attn, self.mlp, self.input_layernorm, self.post_attention_layernorm = (
            attention,
            mlp,
            norm1,
            norm2,
        )

    def forward(self, positions, x, residual):
        x, residual = self.input_layernorm(x, residual)
        x = self.self_attn(positions, x)
        x, residual = self.post_attention_layernorm(x, residual)
        return self.mlp(x), residual


class Llama(nn.Module):
    """make(i, name): layer i. `scale`: of the embeddings; `cap`: of the logits, tanh;
    `logit_scale`."""

    def __init__(
        self,
        c,
        make,
        norm=RMSNorm,
        scale=None,
        cap=None,
        logit_scale=None,
        head_bias=False,
        norm_bias=False,
    ):
        super().__init__()
        self.model, self.cap, self.logit_scale = Bare(), cap, logit_scale
        if scale is not None:
            self.model.register_buffer("normalizer", torch.tensor(scale), persistent=False)
        self.model.embed_tokens = Embedding(c.vocab, c.hidden)
        self.model.layers = nn.ModuleList([make(i, "model.layers.%d" % i) for i in range(c.layers)])
        self.model.norm = norm(c.hidden, c.eps, bias=norm_bias)
        self.lm_head = Linear(c.hidden, c.vocab, head_bias)

    def forward(self, input_ids, positions):
        x, residual = self.model.embed_tokens(input_ids), None
        if hasattr(self.model, "normalizer"):
            x = x * self.model.normalizer
        for layer in self.model.layers:
            x, residual = layer(positions, x, residual)
        logits = self.lm_head(self.model.norm(x, residual)[0])
        if self.logit_scale is not None:
            logits = logits * self.logit_scale
        if self.cap is not None:
            logits = torch.tanh(logits / self.cap) * self.cap
        return logits


class Gemma2Layer(nn.Module):
    def __init__(self, c, attention):
        super().__init__()
        self.self_attn, self.mlp = attention, gated(c.hidden, c.inner, GeluAndMul("tanh"))
        for name in (
            "input_layernorm",
            "post_attention_layernorm",
            "pre_feedforward_layernorm",
            "post_feedforward_layernorm",
        ):
            setattr(self, name, GemmaRMSNorm(c.hidden, c.eps))

    def forward(self, positions, x, residual):
        x, residual = self.input_layernorm(x, residual)
        x = self.post_attention_layernorm(self.self_attn(positions, x))[0]
        x, residual = self.pre_feedforward_layernorm(x, residual)
        return self.post_feedforward_layernorm(self.mlp(x))[0], residual


class CohereLayer(nn.Module):
    def __init__(self, c, attention):
        super().__init__()
        self.self_attn, self.mlp = attention, gated(c.hidden, c.inner, SiluAndMul())
        self.input_layernorm = CohereNorm(c.hidden, c.eps)

    def forward(self, positions, x, residual):
        residual = x
        x, _ = self.input_layernorm(x)
        return residual + self.self_attn(positions, x) + self.mlp(x), None


class FcMlp(nn.Module):
    def __init__(self, names, sizes, act, bias=True):
        super().__init__()
        self.names = names
        setattr(self, names[0], Linear(sizes[0], sizes[1], bias))
        self.act = act
        setattr(self, names[1], Linear(sizes[1], sizes[0], bias))

    def forward(self, x):
        return getattr(self, self.names[1])(self.act(getattr(self, self.names[0])(x)))


class PhiLayer(nn.Module):
    def __init__(self, c, attention):
        super().__init__()
        self.input_layernorm = LayerNorm(c.hidden, c.eps, bias=True)
        self.self_attn, self.mlp = attention, FcMlp(("fc1", "fc2"), (c.hidden, c.inner), NewGELU())

    def forward(self, positions, x, residual):
        residual = x
        x, _ = self.input_layernorm(x)
        return self.self_attn(positions, x) + self.mlp(x) + residual, None


class Phi(nn.Module):
    def __init__(self, c, make):
        super().__init__()
        self.model = Bare()
        self.model.embed_tokens = Embedding(c.vocab, c.hidden)
        self.model.layers = nn.ModuleList(
            [PhiLayer(c, make(i, "model.layers.%d.self_attn" % i)) for i in range(c.layers)]
        )
        self.model.final_layernorm = LayerNorm(c.hidden, c.eps, bias=True)
        self.lm_head = Linear(c.hidden, c.vocab, True)

    def forward(self, input_ids, positions):
        x = self.model.embed_tokens(input_ids)
        for layer in self.model.layers:
            x, _ = layer(positions, x, None)
        return self.lm_head(self.model.final_layernorm(x)[0])


# ---- the GPT-2 family ----


class GPTJBlock(nn.Module):
    def __init__(self, c, attention):
        super().__init__()
        self.ln_1 = LayerNorm(c.hidden, c.eps, bias=True)
        self.attn, self.mlp = attention, FcMlp(("fc_in", "fc_out"), (c.hidden, c.inner), NewGELU())

    def forward(self, positions, x):
        residual = x
        x, _ = self.ln_1(x)
        return self.attn(positions, x) + self.mlp(x) + residual


class GPT2Attention(nn.Module):
    """`kv` heads: all of them, or one (GPT-BigCode)."""

    def __init__(self, name, c, kv, **attention):
        super().__init__()
        self.sizes = [c.heads * c.head, kv * c.head, kv * c.head]
        self.c_attn, self.c_proj = (
            Linear(c.hidden, sum(self.sizes), True),
            Linear(c.hidden, c.hidden, True),
        )
        attention.setdefault("scale", c.head**-0.5)
        self.attn = Attention(name + ".attn", c.heads, c.head, kv=kv, **attention)

    def forward(self, positions, x):
        q, k, v = self.c_attn(x).split(self.sizes, dim=-1)
        return self.c_proj(self.attn(q, k, v))


class GPT2Block(nn.Module):
    def __init__(self, c, attention, mlp):
        super().__init__()
        self.ln_1, self.ln_2 = (
            LayerNorm(c.hidden, c.eps, bias=True),
            LayerNorm(c.hidden, c.eps, bias=True),
        )
        self.attn, self.mlp = attention, mlp

    def forward(self, positions, x):
        x = self.attn(positions, self.ln_1(x)[0]) + x
        return x + self.mlp(self.ln_2(x)[0])


class GPT2(nn.Module):
    """make(i, name): block i. `learned`: position embeddings; `scale`: of the embeddings (JAIS)."""

    def __init__(
        self, c, make, learned=True, head_bias=False, scale=None, logit_scale=None, final=LayerNorm
    ):
        super().__init__()
        self.transformer, self.scale, self.logit_scale = Bare(), scale, logit_scale
        self.transformer.wte = Embedding(c.vocab, c.hidden)
        if learned:
            self.transformer.wpe = Embedding(c.rows, c.hidden)
        self.transformer.h = nn.ModuleList(
            [make(i, "transformer.h.%d.attn" % i) for i in range(c.layers)]
        )
        self.transformer.ln_f = final(c.hidden, c.eps, bias=final is LayerNorm)
        self.lm_head = Linear(c.hidden, c.vocab, head_bias)

    def forward(self, input_ids, positions):
        x = self.transformer.wte(input_ids)
        if hasattr(self.transformer, "wpe"):
            x = x + self.transformer.wpe(positions)
        if self.scale is not None:
            x = x * self.scale
        for block in self.transformer.h:
            x = block(positions, x)
        logits = self.lm_head(self.transformer.ln_f(x)[0])
        return logits if self.logit_scale is None else logits * self.logit_scale


class JaisMlp(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c_fc, self.c_fc2, self.c_proj = (
            Linear(c.hidden, c.inner, True),
            Linear(c.hidden, c.inner, True),
            Linear(c.inner, c.hidden, True),
        )

    def forward(self, x):
        return self.c_proj(self.c_fc(x) * torch.nn.functional.silu(self.c_fc2(x)))


class QwenAttention(nn.Module):
    """Qwen 1's. `logn`: the table that q is multiplied with, by position; None: left out."""

    def __init__(self, name, c, rotary, logn=None):
        super().__init__()
        self.c_attn, self.c_proj, self.rotary_emb = (
            Linear(c.hidden, 3 * c.hidden, True),
            Linear(c.hidden, c.hidden),
            rotary,
        )
        self.attn = Attention(name + ".attn", c.heads, c.head, c.head**-0.5)
        if logn is not None:
            self.register_buffer("logn_tensor", logn, persistent=False)

    def forward(self, positions, x):
        q, k, v = self.c_attn(x).chunk(chunks=3, dim=-1)
        q, k = self.rotary_emb(positions, q, k)
        if hasattr(self, "logn_tensor"):
            q = q * self.logn_tensor[positions].unsqueeze(-1)
        return self.c_proj(self.attn(q, k, v))


class QwenBlock(nn.Module):
    def __init__(self, c, attention):
        super().__init__()
        self.ln_1, self.ln_2, self.attn, self.mlp = (
            RMSNorm(c.hidden, c.eps),
            RMSNorm(c.hidden, c.eps),
            attention,
            Mlp(),
        )
        self.mlp.gate_up_proj, self.mlp.act_fn, self.mlp.down_proj = (
            Linear(c.hidden, 2 * c.inner),
            SiluAndMul(),
            Linear(c.inner, c.hidden),
        )

    def forward(self, positions, x):
        x = x + self.attn(positions, self.ln_1(x)[0])
        return x + self.mlp(self.ln_2(x)[0])


# ---- several ranks ----


class InternAttention(nn.Module):
    """InternLM2's. wqkv holds, for each key-value group, its queries, its key and its value. Its
    loader takes it for q, k and v one after the other and gives each rank its rows of each: the
    repair gathers all ranks' products and puts them back into order."""

    def __init__(self, name, c, ranks, rank, rotary):
        super().__init__()
        self.c, self.ranks, self.rank, self.groups = c, ranks, rank, c.heads // c.kv
        self.q, self.kv = c.heads * c.head // ranks, c.kv * c.head // ranks
        self.wqkv, self.wo, self.rotary_emb = (
            Linear(c.hidden, self.q + 2 * self.kv),
            Linear(self.q, c.hidden),
            rotary,
        )
        self.attn = Attention(
            "rank%d.%s.attn" % (rank, name),
            c.heads // ranks,
            c.head,
            c.head**-0.5,
            kv=c.kv // ranks,
        )

    def project(self, x):
        return self.wqkv(x)

    def attend(self, positions, qkv, mended):
        """Of its own product, or, mended, of all ranks'."""
        n = qkv.shape[0]
        if mended and self.ranks > 1:
            parts = torch.split(qkv, [self.q, self.kv, self.kv] * self.ranks, dim=-1)
            qkv = torch.cat(parts[::3] + parts[1::3] + parts[2::3], dim=-1)
        qkv = qkv.view(n, -1, self.groups + 2, self.c.head)
        q, k, v = torch.split(qkv, [self.groups, 1, 1], dim=-2)
        q, k, v = q.reshape(n, -1), k.reshape(n, -1), v.reshape(n, -1)
        if mended and self.ranks > 1:
            q, k, v = (
                q.chunk(self.ranks, -1)[self.rank],
                k.chunk(self.ranks, -1)[self.rank],
                v.chunk(self.ranks, -1)[self.rank],
            )
        q, k = self.rotary_emb(positions, q, k)
        return self.wo(self.attn(q, k, v))


class OlmoMlp(nn.Module):
    """ff_proj gives x and gate, one after the other."""

    def __init__(self, c, ranks):
        super().__init__()
        self.ff_proj, self.ff_out = (
            Linear(c.hidden, 2 * c.inner // ranks),
            Linear(c.inner // ranks, c.hidden),
        )

    def forward(self, x):
        x, gate = self.ff_proj(x).chunk(2, dim=-1)
        return self.ff_out(torch.nn.functional.silu(gate) * x)


class PlainAttention(nn.Module):
    """Tensor parallel attention of Llama and OLMo; `qkv`, `out`: what its projections are
    called."""

    def __init__(self, name, c, ranks, rank, rotary, qkv="qkv_proj", out="o_proj"):
        super().__init__()
        self.sizes, self.names = (
            [c.heads * c.head // ranks, c.kv * c.head // ranks, c.kv * c.head // ranks],
            (qkv, out),
        )
        setattr(self, qkv, Linear(c.hidden, sum(self.sizes)))
        self.rotary_emb = rotary
        self.attn = Attention(
            "rank%d.%s.attn" % (rank, name),
            c.heads // ranks,
            c.head,
            c.head**-0.5,
            kv=c.kv // ranks,
        )
        setattr(self, out, Linear(self.sizes[0], c.hidden))

    def project(self, x):
        return getattr(self, self.names[0])(x)

    def attend(self, positions, qkv, mended):
        q, k, v = qkv.split(self.sizes, dim=-1)
        q, k = self.rotary_emb(positions, q, k)
        return getattr(self, self.names[1])(self.attn(q, k, v))


class Rank(nn.Module):
    """One rank's modules, by the roles in ROLES."""

    def __init__(self, c, ranks, rank, roles, layer, norm, head_rows=None):
        super().__init__()
        self.roles = roles
        rows = c.vocab // ranks
        base, _, stem = roles["layers"].rpartition(".")
        inner = self
        for part in base.split(".") if base else ():
            setattr(inner, part, Bare())
            inner = getattr(inner, part)
        embed = (
            Embedding(c.vocab, c.hidden)
            if ranks == 1
            else ShardedEmbedding(rows, c.hidden, rank * rows)
        )
        self.put(roles["embed"], embed)
        layers = []
        for i in range(c.layers):
            one = Bare()
            for role, module in layer(i, "%s.%d" % (roles["layers"], i), rank).items():
                setattr(one, roles[role], module)
            layers.append(one)
        setattr(inner, stem, nn.ModuleList(layers))
        self.put(roles["final"], norm())
        self.put(roles["head"], Linear(c.hidden, head_rows or rows))

    def at(self, path):
        return self.get_submodule(path)

    def put(self, path, module):
        base, _, name = path.rpartition(".")
        setattr(self.at(base) if base else self, name, module)

    def layer(self, i):
        one = self.at(self.roles["layers"])[i]
        return {
            role: getattr(one, self.roles[role]) for role in ("norm1", "attention", "norm2", "mlp")
        }


class Ranks(nn.Module):
    """All ranks in step. `mended`: InternLM2's gathering of wqkv's products."""

    def __init__(self, ranks, n_layers, vocab, mended=False):
        super().__init__()
        for k, r in enumerate(ranks):
            setattr(self, "rank%d" % k, r)
        self.n, self.n_layers, self.vocab, self.mended = len(ranks), n_layers, vocab, mended

    def forward(self, input_ids, positions):
        ranks = [getattr(self, "rank%d" % k) for k in range(self.n)]
        x = all_reduce([r.at(r.roles["embed"])(input_ids) for r in ranks])
        residual = [None] * self.n
        for i in range(self.n_layers):
            layers = [r.layer(i) for r in ranks]
            products = []
            for k, one in enumerate(layers):
                y, residual[k] = one["norm1"](x, residual[k])
                products.append(one["attention"].project(y))
            if self.mended and self.n > 1:
                products = [all_gather(products)] * self.n
            x = all_reduce(
                [
                    one["attention"].attend(positions, p, self.mended)
                    for one, p in zip(layers, products)
                ]
            )
            parts = []
            for k, one in enumerate(layers):
                y, residual[k] = one["norm2"](x, residual[k])
                parts.append(one["mlp"](y))
            x = all_reduce(parts)
        logits = all_gather(
            [
                r.at(r.roles["head"])(r.at(r.roles["final"])(x, residual[k])[0])
                for k, r in enumerate(ranks)
            ]
        )
        return logits[..., : self.vocab]
