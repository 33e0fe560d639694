"""Faults of attention's scale, bias and positions: Mistral, GPT-2, BigCode, Qwen, JAIS."""

import torch
from torch import nn

import decoders as d
import layers as ly
import remote
from sides import Module, Reference, T, like_vllm, llama, loaded, published, rotary, sizes, tokens


class Decode(nn.Module):
    """One decoding step of a model of the Llama family: the positions are computed from the
    sequence's length. `window`: where the position stops; `mask`: the attention's window."""

    def __init__(self, model, c, window, mask):
        super().__init__()
        self.model, self.lm_head, self.c, self.window, self.mask = (
            model.model,
            model.lm_head,
            c,
            window,
            mask,
        )

    def forward(self, input_ids, seq_lens, k0, v0, k1, v1):
        positions = (
            seq_lens if self.window is None else torch.clamp(seq_lens, max=self.window)
        ) - 1
        x, residual = self.model.embed_tokens(input_ids), None
        for layer, k_cache, v_cache in zip(self.model.layers, (k0, k1), (v0, v1)):
            a = layer.self_attn
            y, residual = layer.input_layernorm(x, residual)
            q, k, v = a.qkv_proj(y).split(a.sizes, dim=-1)
            q, k = a.rotary_emb(positions, q, k)
            keys = torch.cat([k_cache, k.view(1, 1, self.c.kv, self.c.head).transpose(1, 2)], 2)
            values = torch.cat([v_cache, v.view(1, 1, self.c.kv, self.c.head).transpose(1, 2)], 2)
            n = keys.shape[2]
            seen = torch.arange(n) > n - 1 - self.mask
            out = nn.functional.scaled_dot_product_attention(
                q.view(1, 1, self.c.heads, self.c.head).transpose(1, 2),
                keys,
                values,
                attn_mask=seen[None, None, None],
                scale=self.c.head**-0.5,
                enable_gqa=True,
            )
            y = a.o_proj(out.transpose(1, 2).reshape(1, -1))
            y, residual = layer.post_attention_layernorm(y, residual)
            x = layer.mlp(y)
        return self.lm_head(self.model.norm(x, residual)[0])


def mistral():
    window = 4
    ref = Reference(
        "mistral",
        attn="eager",
        max_position_embeddings=64,
        sliding_window=window,
        num_key_value_heads=2,
    )
    cfg = ref.config
    c = sizes(kv=2, inner=cfg.intermediate_size, eps=cfg.rms_norm_eps)
    g = torch.Generator().manual_seed(3)
    caches = {n: torch.randn(1, 2, T - 1, 16, generator=g) for n in ("k0", "v0", "k1", "v1")}
    inputs = dict(input_ids=tokens(1), seq_lens=torch.tensor([T]), **caches)

    def call(m, input_ids, seq_lens, k0, v0, k1, v1):
        from transformers import DynamicCache
        from transformers.cache_utils import DynamicLayer

        cache = DynamicCache()
        for keys, values in ((k0, v0), (k1, v1)):
            layer = DynamicLayer()
            layer.keys, layer.values, layer.is_initialized, layer.dtype, layer.device = (
                keys,
                values,
                True,
                keys.dtype,
                keys.device,
            )
            cache.layers.append(layer)
        return m(
            input_ids=input_ids,
            position_ids=(seq_lens - 1).unsqueeze(0),
            past_key_values=cache,
            use_cache=True,
        ).logits

    left = Module(ref.model, inputs, "mistral", "transformers", call=call, attn="eager")

    def build(stop):
        side = llama(
            c, ref, "mistral", rotary_of=lambda: rotary(c, base=cfg.rope_parameters["rope_theta"])
        )
        return Module(
            Decode(side.model, c, stop, window),
            dict(inputs, input_ids=tokens(1)[0]),
            "mistral",
            "vllm",
        )

    return {"reference": left, "faulty": build(window), "twin": build(None)}


GPT2_WEIGHTS = ("c_attn.weight", "c_proj.weight", "c_fc.weight")


def gpt2_vllm(ref, scale=None, kv=4, conv=True):
    c = sizes(eps=1e-5, inner=256)

    def make(i, at):
        more = {"scale": scale(i)} if scale else {}
        act = ly.NewGELU() if conv else ly.Gelu("tanh")
        return d.GPT2Block(
            c,
            d.GPT2Attention(at, c, kv, **more),
            d.FcMlp(("c_fc", "c_proj"), (c.hidden, c.inner), act),
        )

    return like_vllm(
        loaded(d.GPT2(c, make), ref.state, transposed=GPT2_WEIGHTS if conv else ()),
        "gpt2" if conv else "gpt_bigcode",
    )


def gpt2_hf(flag):
    """Both sides are Transformers: eager against sdpa with the scale of a default configuration."""
    ref, left = Reference("gpt2", **flag), Reference("gpt2", attn="eager", **flag)
    plain, plain_left = Reference("gpt2"), Reference("gpt2", attn="eager")
    mended = Reference("gpt2", **flag)
    for block in ref.model.transformer.h:
        block.attn.scaling = block.attn.head_dim**-0.5
    return {
        "reference": left,
        "faulty": ref,
        "twin": plain,
        "twin-reference": plain_left,
        "mended": mended,
    }


def gpt2():
    ref, plain = Reference("gpt2", scale_attn_weights=False), Reference("gpt2")
    return {
        "reference": ref,
        "faulty": gpt2_vllm(ref),
        "twin": gpt2_vllm(plain),
        "twin-reference": plain,
        "mended": gpt2_vllm(ref, lambda i: 1.0),
    }


def bigcode():
    ref, plain = Reference("gpt_bigcode", scale_attn_weights=False), Reference("gpt_bigcode")
    return {
        "reference": ref,
        "faulty": gpt2_vllm(ref, kv=1, conv=False),
        "twin": gpt2_vllm(plain, kv=1, conv=False),
        "twin-reference": plain,
        "mended": gpt2_vllm(ref, lambda i: 1.0, 1, False),
    }


def qwen(trained):
    refs = {
        n: (sizes(trained=n), published(remote.Qwen(sizes(trained=n)), "qwen"))
        for n in (trained, 16)
    }

    def build(n, logn):
        c, ref = refs[n]
        make = lambda i, at: d.QwenBlock(
            c, d.QwenAttention(at, c, rotary(c), remote.logn_table(n, c.rows) if logn else None)
        )  # noqa: E731
        stacked = {"mlp.gate_up_proj": ("mlp.w2", "mlp.w1"), "mlp.down_proj": ("mlp.c_proj",)}
        return like_vllm(
            loaded(d.GPT2(c, make, learned=False, final=ly.RMSNorm), ref.state, stacked), "qwen"
        )

    return {
        "reference": refs[trained][1],
        "faulty": build(trained, False),
        "twin": build(16, False),
        "twin-reference": refs[16][1],
        "mended": build(trained, True),
    }


def jais():
    refs = {
        a: published(
            remote.Jais(sizes(alibi=a, embeddings_scale=2.5, width_scale=0.4, eps=1e-5)), "jais"
        )
        for a in (False, True)
    }

    def build(alibi):
        c, ref = refs[alibi].model.c, refs[alibi]
        make = lambda i, at: d.GPT2Block(
            c, d.GPT2Attention(at, c, c.heads, slopes=remote.slopes(c.heads)), d.JaisMlp(c)
        )  # noqa: E731
        return like_vllm(
            loaded(
                d.GPT2(
                    c, make, learned=not alibi, scale=c.embeddings_scale, logit_scale=c.width_scale
                ),
                ref.state,
                transposed=(),
            ),
            "jais",
        )

    return {
        "reference": refs[False],
        "faulty": build(False),
        "twin": build(True),
        "twin-reference": refs[True],
    }
