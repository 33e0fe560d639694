"""Faults of rotary positions and of what stands beside them: GPT-J, GLM, Cohere, Phi, Phi 3.5."""

import math

import torch

import decoders as d
import layers as ly
from sides import Cut, Reference, T, like_vllm, llama, loaded, rotary, sizes, tokens


def gptj_blocks(c, ref, neox, dim):
    def make(i, at):
        return d.GPTJBlock(c, d.SelfAttention(at, c, rotary(c, dim, neox=neox), out="out_proj"))

    model = d.GPT2(c, make, learned=False, head_bias=True)
    return like_vllm(loaded(model, ref.state), "gptj")


def gptj():
    c = sizes(eps=1e-5, inner=256)
    refs = {n: Reference("gptj", attn="eager", rotary_dim=n) for n in (8, 2)}
    c.inner = refs[8].state["transformer.h.0.mlp.fc_in.weight"].shape[0]
    return {
        "reference": refs[8],
        "faulty": gptj_blocks(c, refs[8], True, 8),
        "twin": gptj_blocks(c, refs[2], True, 2),
        "twin-reference": refs[2],
        "mended": gptj_blocks(c, refs[8], False, 8),
    }


def glm(quarter):
    ref = Reference("glm", max_position_embeddings=64)
    c = sizes(
        kv=ref.config.num_key_value_heads,
        eps=ref.config.rms_norm_eps,
        inner=ref.config.intermediate_size,
    )

    def build(dim, of=None):
        return llama(
            c,
            ref,
            "glm",
            attention=lambda i: {"bias": ref.config.attention_bias},
            rotary_of=lambda: rotary(c, dim, neox=False, of=of),
        )

    return {"reference": ref, "faulty": build(4, 8) if quarter else build(16), "twin": build(8)}


def cohere():
    ref = Reference("cohere", max_position_embeddings=64)
    c = sizes(
        eps=ref.config.layer_norm_eps,
        inner=ref.config.intermediate_size,
        kv=ref.config.num_key_value_heads,
    )
    base = ref.config.rope_parameters["rope_theta"]

    def make(i, at):
        return d.CohereLayer(
            c, d.SelfAttention(at + ".self_attn", c, rotary(c, base=base, neox=False))
        )

    model = d.Llama(c, make, norm=ly.CohereNorm, logit_scale=ref.config.logit_scale)
    side = like_vllm(loaded(model, ref.state), "cohere")
    return {
        "reference": ref,
        "faulty": Cut(side, "cos_sin_cache", 6),
        "twin": Cut(side, "cos_sin_cache", T),
    }


def phi_sides(ref, base=None, qk=None):
    cfg = ref.config
    c = sizes(eps=cfg.layer_norm_eps, inner=cfg.intermediate_size, kv=cfg.num_key_value_heads)
    base = base or cfg.rope_parameters["rope_theta"]

    def make(i, at):
        return d.SelfAttention(
            at, c, rotary(c, 8, base=base), bias=True, o_bias=True, out="dense", qk_norm=qk
        )

    return like_vllm(loaded(d.Phi(c, make), ref.state), "phi")


def phi(**settings):
    return Reference("phi", max_position_embeddings=64, **settings)


def phi_base():
    rope = {"rope_type": "default", "rope_theta": 50000.0, "partial_rotary_factor": 0.5}
    ref = phi(rope_parameters=rope)
    return {"reference": ref, "faulty": phi_sides(ref, 10000.0), "twin": phi_sides(ref)}


def phi_rows():
    ref = phi()
    side = phi_sides(ref)
    return {
        "reference": ref,
        "faulty": Cut(side, "cos_sin_cache", 8),
        "twin": Cut(side, "cos_sin_cache", T),
    }


def phi_norm():
    ref, plain = phi(qk_layernorm=True), phi()
    return {
        "reference": ref,
        "faulty": phi_sides(ref),
        "twin": phi_sides(plain),
        "twin-reference": plain,
        "mended": phi_sides(ref, qk="head"),
    }


class LongRope(Reference):
    """Phi-3.5: Transformers chooses the factors by the greatest position; the choice is made here
    before the graph is taken, by a plain run."""

    def write(self, out):
        rope = self.model.model.rotary_emb
        with torch.no_grad():
            self.model(tokens(self.options.length), use_cache=False)
        kind, rope.rope_type = rope.rope_type, "default"
        super().write(out)
        rope.rope_type = kind


def phi35():
    short, long = [1.0 + 0.1 * i for i in range(8)], [2.0 + i for i in range(8)]

    def reference(trained):
        rope = {
            "rope_type": "longrope",
            "rope_theta": 10000.0,
            "short_factor": short,
            "long_factor": long,
            "original_max_position_embeddings": trained,
        }
        return LongRope(
            "phi3",
            rope_parameters=rope,
            original_max_position_embeddings=trained,
            max_position_embeddings=64,
            num_key_value_heads=4,
        )

    def build(ref, trained, decided):
        cfg = ref.config
        c = sizes(inner=cfg.intermediate_size, eps=cfg.rms_norm_eps)
        scale = math.sqrt(1 + math.log(64 / trained) / math.log(trained))

        def one(factors, rows):
            return ly.table(ly.inverse_frequencies(c.base, c.head, factors=factors), rows, scale)

        return llama(
            c,
            ref,
            "phi3",
            rotary_of=lambda: ly.LongRotaryEmbedding(
                c.head, one(short, trained), one(long, 64), decided
            ),
        )

    refs = {n: reference(n) for n in (8, 12)}
    return {
        "reference": refs[8],
        "faulty": build(refs[8], 8, None),
        "twin": build(refs[12], 12, None),
        "twin-reference": refs[12],
        "mended": build(refs[8], 8, 1),
    }
