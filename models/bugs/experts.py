"""Faults in models with experts: PhiMoE, OLMoE."""

import decoders as d
import layers as ly
from sides import Reference, llama, rotary, sizes


def phimoe():
    def reference(jitter):
        return Reference("phimoe", max_position_embeddings=64, router_jitter_noise=jitter)

    refs = {j: reference(j) for j in (0.2, 0.01)}

    def build(ref, jitter):
        cfg = ref.config
        c = sizes(kv=cfg.num_key_value_heads, eps=cfg.rms_norm_eps, inner=cfg.intermediate_size)
        head_bias, bias = "lm_head.bias" in ref.state, cfg.attention_bias
        side = llama(
            c,
            ref,
            "phimoe",
            norm=ly.LayerNorm,
            norm_bias=True,
            head_bias=head_bias,
            attention=lambda i: {"bias": bias, "o_bias": bias},
            rotary_of=lambda: rotary(c, base=cfg.rope_parameters["rope_theta"]),
            mlp=lambda i: d.Moe(
                c.hidden, cfg.num_local_experts, c.inner, ly.phimoe_routing(jitter)
            ),
        )
        return side

    return {
        "reference": refs[0.2],
        "faulty": build(refs[0.2], 0.01),
        "twin": build(refs[0.01], 0.01),
        "twin-reference": refs[0.01],
    }


def olmoe(clip):
    refs = {x: Reference("olmoe", clip_qkv=x, max_position_embeddings=64) for x in (clip, None)}

    def build(ref, own):
        cfg = ref.config
        c = sizes(kv=cfg.num_key_value_heads, eps=cfg.rms_norm_eps, inner=cfg.intermediate_size)
        return llama(
            c,
            ref,
            "olmoe",
            attention=lambda i: {"qk_norm": "full", "clip": own},
            rotary_of=lambda: rotary(c, base=cfg.rope_parameters["rope_theta"]),
            mlp=lambda i: d.Moe(
                c.hidden,
                cfg.num_experts,
                c.inner,
                ly.softmax_topk(cfg.num_experts_per_tok, cfg.norm_topk_prob),
            ),
        )

    return {
        "reference": refs[clip],
        "faulty": build(refs[clip], None),
        "twin": build(refs[None], None),
        "twin-reference": refs[None],
        "mended": build(refs[clip], clip),
    }
