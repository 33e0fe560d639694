"""Faults between ranks: InternLM2, OLMo and a head that was not gathered (GGUF)."""

import torch

import decoders as d
import layers as ly
import remote
from sides import Reference, STACKED, Several, like_vllm, published, rotary, sizes


def intern(ranks, mended, ref, c):
    roles = {
        "embed": "model.tok_embeddings",
        "layers": "model.layers",
        "norm1": "attention_norm",
        "attention": "attention",
        "norm2": "ffn_norm",
        "mlp": "feed_forward",
        "final": "model.norm",
        "head": "output",
    }

    def layer(i, at, rank):
        m = d.gated(c.hidden, c.inner // ranks, ly.SiluAndMul())
        return {
            "norm1": ly.RMSNorm(c.hidden, c.eps),
            "norm2": ly.RMSNorm(c.hidden, c.eps),
            "mlp": m,
            "attention": d.InternAttention(at + ".attention", c, ranks, rank, rotary(c)),
        }

    parts = [
        d.Rank(c, ranks, r, roles, layer, lambda: ly.RMSNorm(c.hidden, c.eps)) for r in range(ranks)
    ]
    q, k = c.heads * c.head, c.kv * c.head

    def value(name, r):
        if "gate_up_proj" in name:
            return torch.cat(
                [shard(ref.state[name.replace("gate_up_proj", w)], r, ranks) for w in ("w1", "w3")]
            )
        t = ref.state[name.replace("down_proj", "w2")]
        if "wqkv" in name:  # its rows read as q, k and v one after the other
            return torch.cat([shard(x, r, ranks) for x in t.split([q, k, k])])
        return (
            shard(t, r, ranks, 1)
            if name.endswith(("wo.weight", "down_proj.weight"))
            else shard(t, r, ranks)
            if name.endswith(("embeddings.weight", "output.weight"))
            else t
        )

    return in_ranks(parts, value, c, "internlm2", mended)


def shard(t, r, ranks, dim=0):
    return t.chunk(ranks, dim)[r]


def in_ranks(parts, value, c, name, mended=False):
    with torch.no_grad():
        for r, part in enumerate(parts):
            for n, p in part.named_parameters():
                p.copy_(value(n, r))
    side = like_vllm(d.Ranks(parts, c.layers, c.vocab, mended), name)
    return Several(side)


def internlm2():
    c = sizes(kv=2)
    ref = published(remote.InternLM2(c), "internlm2")
    return {
        "reference": ref,
        "faulty": intern(2, False, ref, c),
        "twin": intern(1, False, ref, c),
        "mended": intern(2, True, ref, c),
    }


def olmo():
    c = sizes(eps=1e-5)
    ref = published(remote.Olmo(c), "olmo")

    def build(ranks, contiguous):
        roles = {
            "embed": "model.transformer.wte",
            "layers": "model.transformer.blocks",
            "norm1": "attn_norm",
            "attention": "attn",
            "norm2": "ff_norm",
            "mlp": "mlp",
            "final": "model.transformer.ln_f",
            "head": "model.transformer.ff_out",
        }

        def norm():
            return ly.LayerNorm(c.hidden, c.eps, weight=False)

        def layer(i, at, rank):
            return {
                "norm1": norm(),
                "norm2": norm(),
                "mlp": d.OlmoMlp(c, ranks),
                "attention": d.PlainAttention(
                    at + ".attn", c, ranks, rank, rotary(c), "att_proj", "attn_out"
                ),
            }

        parts = [d.Rank(c, ranks, r, roles, layer, norm) for r in range(ranks)]

        def value(name, r):
            t = ref.state[name.replace(".attn.", ".").replace(".mlp.", ".")]
            if "att_proj" in name:
                return torch.cat([shard(x, r, ranks) for x in t.chunk(3)])
            if "ff_proj" in name and not contiguous:
                return torch.cat([shard(x, r, ranks) for x in t.chunk(2)])
            row = name.endswith("attn_out.weight") or ".mlp.ff_out" in name
            return shard(t, r, ranks, 1 if row else 0)

        return in_ranks(parts, value, c, "olmo")

    return {
        "reference": ref,
        "faulty": build(2, True),
        "twin": build(1, True),
        "mended": build(2, False),
    }


def gguf():
    c = sizes(kv=2)
    ref = Reference("llama", num_key_value_heads=2, max_position_embeddings=64)

    def build(ranks, padded):
        roles = {
            "embed": "model.embed_tokens",
            "layers": "model.layers",
            "norm1": "input_layernorm",
            "attention": "self_attn",
            "norm2": "post_attention_layernorm",
            "mlp": "mlp",
            "final": "model.norm",
            "head": "lm_head",
        }

        def layer(i, at, rank):
            return {
                "norm1": ly.RMSNorm(c.hidden, c.eps),
                "norm2": ly.RMSNorm(c.hidden, c.eps),
                "mlp": d.gated(c.hidden, c.inner // ranks, ly.SiluAndMul()),
                "attention": d.PlainAttention(at + ".self_attn", c, ranks, rank, rotary(c)),
            }

        parts = [
            d.Rank(
                c,
                ranks,
                r,
                roles,
                layer,
                lambda: ly.RMSNorm(c.hidden, c.eps),
                c.vocab if padded else None,
            )
            for r in range(ranks)
        ]

        def value(name, r):
            for ours, theirs in STACKED.items():
                if ours in name and ours in ("qkv_proj", "gate_up_proj"):
                    return torch.cat(
                        [shard(ref.state[name.replace(ours, w)], r, ranks) for w in theirs]
                    )
            t = ref.state[name]
            if (
                name == "lm_head.weight" and padded
            ):  # the rank's rows at the front of a leaf as long as the vocabulary
                own = shard(t, r, ranks)
                return torch.cat([own, torch.zeros(c.vocab - own.shape[0], c.hidden)])
            return (
                shard(t, r, ranks, 1)
                if name.endswith(("o_proj.weight", "down_proj.weight"))
                else shard(t, r, ranks)
                if name in ("lm_head.weight", "model.embed_tokens.weight")
                else t
            )

        return in_ranks(parts, value, c, "llama")

    return {
        "reference": ref,
        "faulty": build(2, True),
        "twin": build(1, True),
        "mended": build(2, False),
    }
