"""Faults in models with images: Qwen2-VL, Llama 4's tower."""

import torch
from torch import nn

import decoders as d
import layers as ly
from isomer_capture import configs
from sides import Module, like_vllm, loaded, sizes, tokens


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
