"""Faults in Gemma and Gemma 2, and two at once."""

import decoders as d
import layers as ly
from sides import Reference, like_vllm, llama, loaded, rotary, sizes


def gemma():
    c = sizes(heads=4, kv=4, hidden=96, inner=200)
    ref = Reference("gemma", max_position_embeddings=64)
    c.hidden, c.kv, c.inner = (
        ref.config.hidden_size,
        ref.config.num_key_value_heads,
        ref.config.intermediate_size,
    )

    def build(approximate, eps=None):
        side = llama(
            c,
            ref,
            "gemma",
            norm=ly.GemmaRMSNorm,
            act=lambda i: ly.GeluAndMul(approximate(i)),
            scale=c.hidden**0.5,
        )
        for i, value in (eps or {}).items():
            side.model.model.layers[i].input_layernorm.eps = value
        return side

    return ref, build


def gemma_gelu():
    ref, build = gemma()
    return {"reference": ref, "faulty": build(lambda i: "none"), "twin": build(lambda i: "tanh")}


def two_bugs():
    """A norm's eps in layer 0, and the activation of layer 1."""
    ref, build = gemma()
    return {
        "reference": ref,
        "faulty": build(lambda i: "none" if i else "tanh", {0: 1e-4}),
        "twin": build(lambda i: "tanh"),
    }


def gemma2():
    def reference(window):
        return Reference("gemma2", attn="eager", max_position_embeddings=64, sliding_window=window)

    refs = {w: reference(w) for w in (4, 16)}

    def build(ref, window):
        cfg = ref.config
        c = sizes(hidden=cfg.hidden_size, kv=cfg.num_key_value_heads, inner=cfg.intermediate_size)

        def make(i, at):
            return d.Gemma2Layer(
                c,
                d.SelfAttention(
                    at + ".self_attn",
                    c,
                    rotary(c),
                    scale=cfg.query_pre_attn_scalar**-0.5,
                    soft_cap=cfg.attn_logit_softcapping,
                    window=None if i % 2 else window,
                ),
            )

        model = d.Llama(
            c, make, norm=ly.GemmaRMSNorm, scale=c.hidden**0.5, cap=cfg.final_logit_softcapping
        )
        return like_vllm(loaded(model, ref.state), "gemma2")

    return {
        "reference": refs[4],
        "faulty": build(refs[4], None),
        "twin": build(refs[16], None),
        "twin-reference": refs[16],
        "mended": build(refs[4], 4),
    }
