#!/usr/bin/env python3
"""Captures of the known bugs: for each, the faulty side, its reference, and the correct twin.

    make.py DIR [NAME...]     writes DIR/NAME/{reference,faulty,twin,twin-reference}; without NAME
    all of them make.py --list

References are Transformers' own models where it has them (isomer_capture makes their captures),
else the published operators (remote.py). The other sides have vLLM's layers and operators
(layers.py, decoders.py) with the reference's weights. A twin is the same program with the fault
mended, or on a configuration in which it cannot show; `twin-reference` is there where its
configuration differs. Sizes: vocabulary 40, width 64, 4 heads of 16 (2 of keys and values where
grouped), 2 layers, 9 tokens."""

import argparse
import json
import math
import os
import sys
import types
import warnings

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(os.path.dirname(HERE)), "capture")]

import torch  # noqa: E402
from torch import nn  # noqa: E402

import decoders as d  # noqa: E402
import layers as ly  # noqa: E402
import remote  # noqa: E402
from isomer_capture import capture, configs, hf  # noqa: E402

T = 9
C = dict(
    vocab=40,
    hidden=64,
    heads=4,
    head=16,
    kv=4,
    layers=2,
    inner=136,
    eps=1e-6,
    rows=64,
    base=10000.0,
)


def sizes(**more):
    return types.SimpleNamespace(**dict(C, **more))


# ---- sides ----


class Reference:
    """A model of Transformers and how it is captured."""

    def __init__(self, kind, attn="sdpa", **settings):
        settings.setdefault("vocab_size", 40)
        self.options = types.SimpleNamespace(
            model=kind,
            reduce=True,
            layers=2,
            settings=list(settings.items()),
            attn=attn,
            experts="batched_mm",
            length=T,
            sets=1,
            dtype="float32",
            head=None,
            seed=0,
            specialize=False,
            batch=1,
            name=None,
            trace=False,
        )
        self.config, _ = hf.prepare(self.options)
        for name in ("pad_token_id", "bos_token_id", "eos_token_id"):
            if getattr(self.config, name, None) is not None:
                setattr(self.config, name, None if name[0] == "p" else 1)
        self.model = hf.build(self.options, self.config, None)
        self.state = self.model.state_dict()

    def write(self, out):
        hf.capture_model(
            types.SimpleNamespace(**dict(vars(self.options), out=out)), self.config, self.model
        )


class Module:
    """Any module on any inputs."""

    def __init__(self, model, inputs, name, framework, call=None, attn=None):
        self.model, self.inputs, self.name, self.framework, self.call, self.attn = (
            model.eval(),
            inputs,
            name,
            framework,
            call,
            attn,
        )
        self.state = model.state_dict()

    def write(self, out):
        one = lambda: capture(
            self.model,
            self.inputs,
            out,
            call=self.call,
            model=self.name,
            framework=self.framework,  # noqa: E731
            output_names=["logits"],
            attributes=ly.ATTRIBUTES,
            metadata={"written_by": "models/bugs/make.py"},
        )
        if self.attn:
            with hf.as_it_runs(self.attn):
                one()
        else:
            one()


def tokens(length=T):
    return torch.randint(C["vocab"], (1, length), generator=torch.Generator().manual_seed(1))


def published(model, name, length=T):
    """A reference of remote.py with drawn weights."""
    configs.draw(model, 0)
    return Module(model, {"input_ids": tokens(length)}, name, "pytorch")


STACKED = {
    "qkv_proj": ("q_proj", "k_proj", "v_proj"),
    "gate_up_proj": ("gate_proj", "up_proj"),
    "w13_weight": ("gate_up_proj",),
    "w2_weight": ("down_proj",),
    ".mlp.gate.": (".mlp.router.",),
    ".self_attn.": (".attn.",),
}


def source(name, state, stacked, transposed):
    """The tensor of the checkpoint that a parameter is made of."""

    def read(n):
        t = state[n]
        return t.t() if transposed and t.dim() == 2 and n.endswith(transposed) else t

    if name in state:
        return read(name)
    for ours, theirs in stacked.items():
        names = [name.replace(ours, t) for t in theirs]
        if ours in name and all(n in state for n in names):
            return torch.cat([read(n) for n in names])
    raise KeyError(name)


def loaded(model, state, stacked=STACKED, transposed=()):
    with torch.no_grad():
        for name, p in model.named_parameters():
            p.copy_(source(name, state, stacked, transposed))
    return model


def like_vllm(model, name, length=T, positions=None):
    for n, p in model.named_parameters():
        assert not torch.isnan(p).any(), n
    inputs = {
        "input_ids": tokens(length)[0],
        "positions": torch.arange(length) if positions is None else positions,
    }
    return Module(model, inputs, name, "vllm")


class Cut:
    """A side whose table has fewer rows than it is read at: the capture is made with a table that
    is long enough, which is then cut."""

    def __init__(self, side, leaf, rows):
        self.side, self.leaf, self.rows = side, leaf, rows

    def write(self, out):
        from safetensors.torch import load_file, save_file

        self.side.write(out)
        path = os.path.join(out, "graph.json")
        with open(path, encoding="utf-8") as f:
            graph = json.load(f)
        weights = load_file(os.path.join(out, "weights.safetensors"))
        found = [
            n for n in graph["nodes"] if "args" not in n and n.get("name", "").endswith(self.leaf)
        ]
        assert found, self.leaf
        for n in found:
            n["outputs"][0]["shape"][0] = self.rows
            weights[n["name"]] = weights[n["name"]][: self.rows].contiguous()
        with open(path, "w", encoding="utf-8") as f:
            json.dump(graph, f)
        save_file(weights, os.path.join(out, "weights.safetensors"))


class Several:
    """Ranks: nodes and leaves are named as a capture of several ranks has them."""

    def __init__(self, side):
        self.side = side

    def write(self, out):
        self.side.write(out)
        path = os.path.join(out, "graph.json")
        with open(path, encoding="utf-8") as f:
            graph = json.load(f)
        name = {}
        for n in graph["nodes"]:
            where = n.get("name") if "args" not in n else n.get("scope", "")
            new = n["id"]
            for r in range(8):
                if where == "rank%d" % r or where.startswith("rank%d." % r):
                    new = "r%d_%s" % (r, n["id"].replace("_rank%d_" % r, "_"))
                    if "args" in n:
                        n["scope"] = where.partition(".")[2]
            if n["op"].startswith("dist::"):
                new = "dist_" + n["id"]
            name[n["id"]] = new

        def renamed(v):
            if isinstance(v, dict):
                return {k: name[x] if k == "ref" else renamed(x) for k, x in v.items()}
            return [renamed(x) for x in v] if isinstance(v, list) else v

        for n in graph["nodes"]:
            n["id"] = name[n["id"]]
            for key in ("args", "kwargs"):
                if key in n:
                    n[key] = renamed(n[key])
        for o in graph["outputs"]:
            o["ref"] = name[o["ref"]]
        with open(path, "w", encoding="utf-8") as f:
            json.dump(graph, f)


def rotary(c, dim=None, base=None, neox=True, of=None, rows=None):
    return ly.RotaryEmbedding(
        c.head,
        ly.table(ly.inverse_frequencies(base or c.base, dim or c.head, of), rows or c.rows),
        neox,
    )


def llama(
    c,
    ref,
    name,
    norm=ly.RMSNorm,
    act=None,
    mlp=None,
    norm_bias=False,
    attention=None,
    rotary_of=None,
    length=T,
    stacked=STACKED,
    **model,
):
    """A decoder of the Llama family. `attention`, `act`, `mlp`: of layer i."""

    def make(i, at):
        own = attention(i) if attention else {}
        return d.Layer(
            norm(c.hidden, c.eps, bias=norm_bias),
            d.SelfAttention(at + ".self_attn", c, rotary_of() if rotary_of else rotary(c), **own),
            norm(c.hidden, c.eps, bias=norm_bias),
            mlp(i) if mlp else d.gated(c.hidden, c.inner, act(i) if act else ly.SiluAndMul()),
        )

    return like_vllm(
        loaded(d.Llama(c, make, norm=norm, norm_bias=norm_bias, **model), ref.state, stacked),
        name,
        length,
    )


# ---- the bugs ----
# Each gives {"reference", "faulty", "twin", and "twin-reference" where the twin has a configuration
# of its own}.


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


class Headed(nn.Module):
    def __init__(self, model, vocab):
        super().__init__()
        self.model, self.lm_head = model, nn.Linear(model.config.hidden_size, vocab, bias=False)


def qwen2_vl(swapped):
    from transformers import Qwen2VLConfig
    from transformers.models.qwen2_vl.modeling_qwen2_vl import Qwen2VLTextModel

    text = Qwen2VLConfig().text_config
    rope = {"rope_type": "default", "mrope_section": [2, 3, 3], "rope_theta": 10000.0}
    for key, value in dict(
        vocab_size=40,
        hidden_size=64,
        intermediate_size=136,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=64,
        rms_norm_eps=1e-6,
        rope_parameters=rope,
        pad_token_id=None,
        layer_types=["full_attention"] * 2,
        use_sliding_window=False,
        sliding_window=None,
    ).items():
        setattr(text, key, value)
    torch.manual_seed(0)
    model = Headed(
        Qwen2VLTextModel._from_config(text, attn_implementation="sdpa").eval(), 40
    ).eval()
    configs.draw(model, 0)
    # An image of 2 x 2 patches after two tokens: the three positions differ.
    positions = torch.tensor(
        [[0, 1, 2, 2, 2, 2, 4, 5, 6], [0, 1, 2, 2, 3, 3, 4, 5, 6], [0, 1, 2, 3, 2, 3, 4, 5, 6]]
    )
    ref = Module(
        model,
        {"input_ids": tokens(), "positions": positions},
        "qwen2_vl",
        "transformers",
        attn="sdpa",
        call=lambda m, input_ids, positions: m.lm_head(
            m.model(
                input_ids=input_ids, position_ids=positions.unsqueeze(1), use_cache=False
            ).last_hidden_state
        ),
    )
    c = sizes(kv=2)

    def build(fault):
        def make(i, at):
            rope = ly.MRotaryEmbedding(
                c.head, ly.table(ly.inverse_frequencies(c.base, c.head), c.rows), [2, 3, 3]
            )
            return d.Layer(
                ly.RMSNorm(c.hidden, c.eps),
                d.SelfAttention(at + ".self_attn", c, rope, bias=True),
                ly.RMSNorm(c.hidden, c.eps),
                d.gated(c.hidden, c.inner, ly.SiluAndMul()),
            )

        model = loaded(d.Llama(c, make), ref.state)
        if fault:
            with torch.no_grad():
                at = model.model.layers
                if swapped:
                    at[0].mlp.gate_up_proj.weight.copy_(
                        torch.cat(at[0].mlp.gate_up_proj.weight.chunk(2)[::-1])
                    )
                else:  # as the layer was made
                    at[1].self_attn.o_proj.weight.copy_(
                        torch.randn(64, 64, generator=torch.Generator().manual_seed(7)) / 8
                    )
        return like_vllm(model, "qwen2_vl", positions=positions)

    return {"reference": ref, "faulty": build(True), "twin": build(False)}


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


class Encoder(nn.Module):
    """Transformers' Llama4VisionModel from its first norm to its encoder's end."""

    def __init__(self, model):
        super().__init__()
        self.vision_model = d.Bare()
        (
            self.vision_model.layernorm_pre,
            self.vision_model.rotary_embedding,
            self.vision_model.model,
        ) = model.layernorm_pre, model.rotary_embedding, model.model

    def forward(self, patches):
        m = self.vision_model
        return m.model(
            m.layernorm_pre(patches), freqs_ci=m.rotary_embedding(patches)
        ).last_hidden_state


class VisionRotary(nn.Module):
    def __init__(self, cache, real):
        super().__init__()
        self.register_buffer("cos_sin_cache", cache.reshape(cache.shape[0], -1), persistent=False)
        self.real = real

    def forward(self, q, k):
        """[batch, T, heads, head]"""
        cache = self.cos_sin_cache.to(q.dtype) if self.real else self.cos_sin_cache
        out = []
        for x in (q, k):
            pairs = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
            out.append(
                torch.view_as_real(pairs * cache.view(1, pairs.shape[1], 1, pairs.shape[3]))
                .flatten(3)
                .type_as(x)
            )
        return out


class VisionAttention(nn.Module):
    def __init__(self, c, rope):
        super().__init__()
        self.c, self.qkv_proj, self.o_proj, self.rotary_emb = (
            c,
            ly.Linear(c.hidden, 3 * c.hidden, True),
            ly.Linear(c.hidden, c.hidden, True),
            rope,
        )

    def forward(self, x):
        shape = x.shape[:-1] + (self.c.heads, self.c.head)
        q, k, v = (t.view(shape) for t in self.qkv_proj(x).chunk(3, dim=-1))
        q, k = self.rotary_emb(q, k)
        out = nn.functional.scaled_dot_product_attention(
            q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), scale=self.c.head**-0.5
        )
        return self.o_proj(out.transpose(1, 2).reshape(x.shape))


class VisionLayer(nn.Module):
    def __init__(self, c, rope):
        super().__init__()
        self.self_attn, self.mlp = (
            VisionAttention(c, rope),
            d.FcMlp(("fc1", "fc2"), (c.hidden, c.inner), ly.Gelu()),
        )
        self.input_layernorm, self.post_attention_layernorm = (
            ly.LayerNorm(c.hidden, c.eps, bias=True),
            ly.LayerNorm(c.hidden, c.eps, bias=True),
        )

    def forward(self, x):
        x = x + self.self_attn(self.input_layernorm(x)[0])
        return x + self.mlp(self.post_attention_layernorm(x)[0])


class Vision(nn.Module):
    def __init__(self, c, cache, real):
        super().__init__()
        m = self.vision_model = d.Bare()
        m.layernorm_pre, m.model = ly.LayerNorm(c.hidden, 1e-5, bias=True), d.Bare()
        m.model.layers = nn.ModuleList(
            [VisionLayer(c, VisionRotary(cache, real)) for _ in range(c.layers)]
        )

    def forward(self, patches):
        x = self.vision_model.layernorm_pre(patches)[0]
        for layer in self.vision_model.model.layers:
            x = layer(x)
        return x


def llama4_vision():
    from transformers.models.llama4.modeling_llama4 import Llama4VisionConfig, Llama4VisionModel

    config = Llama4VisionConfig(
        hidden_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=136,
        image_size=12,
        patch_size=4,
        vision_output_dim=64,
        projector_input_dim=64,
        projector_output_dim=64,
    )
    torch.manual_seed(0)
    model = Encoder(
        Llama4VisionModel._from_config(config, attn_implementation="sdpa").eval()
    ).eval()
    configs.draw(model, 0)
    patches = torch.randn(1, 10, 64, generator=torch.Generator().manual_seed(2))
    ref = Module(model, {"patches": patches}, "llama4_vision", "transformers", attn="sdpa")
    cache, c = model.vision_model.rotary_embedding.freqs_ci, sizes(eps=1e-5)

    def build(real):
        return Module(
            loaded(Vision(c, cache, real), ref.state), {"patches": patches}, "llama4_vision", "vllm"
        )

    return {"reference": ref, "faulty": build(True), "twin": build(False)}


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


BUGS = {
    "01-internlm2-wqkv": internlm2,
    "02-olmo-ff-proj": olmo,
    "03-gemma-gelu": gemma_gelu,
    "04-gptj-rotary-pairs": gptj,
    "05-glm-rotary-all": lambda: glm(False),
    "05-glm-rotary-quarter": lambda: glm(True),
    "06-cohere-rows": cohere,
    "07-gemma2-window": gemma2,
    "08-qwen2vl-unloaded": lambda: qwen2_vl(False),
    "08-qwen2vl-swapped": lambda: qwen2_vl(True),
    "09-phi-base": phi_base,
    "09-phi-rows": phi_rows,
    "10-llama4-cast": llama4_vision,
    "11-mistral-position": mistral,
    "12-phi35-factors": phi35,
    "13-gguf-lm-head": gguf,
    "14-gpt2-scale": lambda: gpt2_hf({"scale_attn_weights": False}),
    "14-gpt2-layer-scale": lambda: gpt2_hf({"scale_attn_by_inverse_layer_idx": True}),
    "15-gpt2-scale": gpt2,
    "16-bigcode-scale": bigcode,
    "17-qwen-logn-4": lambda: qwen(4),
    "17-qwen-logn-8": lambda: qwen(8),
    "18-phimoe-jitter": phimoe,
    "19-olmoe-clip-1": lambda: olmoe(1.0),
    "19-olmoe-clip-8": lambda: olmoe(8.0),
    "20-jais-alibi": jais,
    "21-phi-qk-norm": phi_norm,
    "two-bugs": two_bugs,
}


def main():
    a = argparse.ArgumentParser(description="captures of the known bugs")
    a.add_argument("folder", nargs="?")
    a.add_argument("name", nargs="*")
    a.add_argument("--list", action="store_true")
    a = a.parse_args()
    if a.list:
        print("\n".join(BUGS))
        return 0
    if not a.folder or any(n not in BUGS for n in a.name):
        print(
            "make.py: %s"
            % (
                "no folder"
                if not a.folder
                else "no bug %s (--list)" % [n for n in a.name if n not in BUGS][0]
            ),
            file=sys.stderr,
        )
        return 2
    warnings.simplefilter("ignore")
    for name in a.name or BUGS:
        sides = BUGS[name]()
        for side, one in sides.items():
            ly.LAYERS.update(
                (m.name, m)
                for x in [getattr(one, "side", one)]
                for m in getattr(getattr(x, "side", x), "model", nn.Module()).modules()
                if isinstance(m, ly.Attention)
            )
            one.write(os.path.join(a.folder, name, side))
        print("%s: %s" % (name, ", ".join(sides)), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
