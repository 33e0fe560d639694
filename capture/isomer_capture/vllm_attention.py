"""Stand-ins that vLLM gets from us in place of a GPU: a platform, and an attention backend that
computes one prompt in PyTorch.

Both go in through vLLM's own interfaces (a platform class; an attention backend that the platform
names). The backend's arguments are what attention depends on, and become the node attributes of the
capture.
"""

import random

import torch
from vllm.platforms.cpu import CpuPlatform
from vllm.platforms.interface import PlatformEnum
from vllm.v1.attention.backend import (
    AttentionBackend,
    AttentionImpl,
    AttentionMetadataBuilder,
    AttentionType,
)
from vllm.v1.attention.backends.registry import AttentionBackendEnum, register_backend


class ReferencePlatform(CpuPlatform):
    """vLLM's CPU platform without the parts that ask for its compiled kernels: to vLLM it is a
    platform from outside, for which layers take their native forward."""

    _enum = PlatformEnum.OOT
    device_name = "cpu"

    @classmethod
    def get_attn_backend_cls(cls, *args, **kwargs):
        return ReferenceBackend.__module__ + ".ReferenceBackend"

    @classmethod
    def check_and_update_config(cls, vllm_config):
        pass

    @classmethod
    def import_kernels(cls):
        pass


class ReferenceBuilder(AttentionMetadataBuilder):
    """One prompt needs no metadata; vLLM derives classes from this."""

    def build(self, common_prefix_len, common_attn_metadata, fast_build=False):
        return None


@register_backend(AttentionBackendEnum.CUSTOM, __name__ + ".ReferenceBackend")
class ReferenceBackend(AttentionBackend):
    @staticmethod
    def get_name():
        return "CUSTOM"

    @staticmethod
    def get_impl_cls():
        return ReferenceAttention

    @staticmethod
    def get_builder_cls():
        return ReferenceBuilder

    @staticmethod
    def get_kv_cache_shape(num_blocks, block_size, num_kv_heads, head_size, cache_dtype_str="auto"):
        return (2, num_blocks, block_size, num_kv_heads, head_size)

    @classmethod
    def supports_attn_type(cls, attn_type):
        return True

    @classmethod
    def supports_sink(cls):
        return True

    @classmethod
    def supports_alibi_sqrt(cls):
        return False


def open_sinks(model):
    """Attention with sinks is captured as what it computes: they are parameters of the model, which
    the operator finds behind its layer's name and not among its arguments. torch.export puts other
    tensors in their place, so that they are asked of their layer at each call."""
    owner = {id(p): (m, n) for m in model.modules() for n, p in m._parameters.items()}
    for module in model.modules():
        sinks = getattr(getattr(module, "impl", None), "extra", {}).get("sinks")
        if sinks is not None and id(sinks) in owner:
            module.use_direct_call = True
            module.register_forward_pre_hook(take_sinks(module.impl, *owner[id(sinks)]))


def take_sinks(impl, owner, name):
    def take(module, given):
        impl.extra["sinks"] = getattr(owner, name)

    return take


class Pages:
    """A cache in blocks that lie in no order, as vLLM's scheduler hands them out: the tokens of one
    sequence, `done` of which are there. Slots and table are what a step's metadata says."""

    BLOCK = 4

    def __init__(self, tokens, seed, done=0, held=None):
        n = -(-tokens // self.BLOCK)
        self.blocks = n + 2  # others are another sequence's
        self.table, self.done = random.Random(seed).sample(range(self.blocks), n), done
        self.held = {name: dict(kinds) for name, kinds in (held or {}).items()}

    def slots(self, n):
        places = range(self.done, self.done + n)
        return [self.table[i // self.BLOCK] * self.BLOCK + i % self.BLOCK for i in places]

    def append(self, name, key, value):
        """Writes one layer's keys and values; returns those of all tokens so far."""
        slots = torch.tensor(self.slots(key.shape[0]))
        end = self.done + key.shape[0]
        table = torch.tensor(self.table[: -(-end // self.BLOCK)])
        held = self.held.setdefault(name, {})
        read = []
        for kind, new in ("keys", key), ("values", value):
            shape = (self.blocks, self.BLOCK, *new.shape[1:])
            before = held[kind] if kind in held else torch.zeros(shape, dtype=new.dtype)
            held[kind] = before.flatten(0, 1).index_copy(0, slots, new).view(shape)
            read.append(held[kind][table].flatten(0, 1)[:end])
        return read


def open_pages(layers):
    """Attention over a cache is captured as what it computes: which blocks it reads is not among
    the operator's arguments."""
    for layer in layers.values():
        if not isinstance(getattr(layer, "impl", None), ReferenceAttention):
            raise NotImplementedError("a cache for %s" % type(layer).__name__)
        if layer.impl.shared is not None or layer.impl.attn_type != AttentionType.DECODER:
            raise NotImplementedError("a cache of attention that is no decoder's own")
        layer.use_direct_call = True


class ReferenceAttention(AttentionImpl):
    pages = None  # the cache of the call that runs

    def __init__(
        self,
        num_heads,
        head_size,
        scale,
        num_kv_heads=None,
        alibi_slopes=None,
        sliding_window=None,
        kv_cache_dtype="auto",
        logits_soft_cap=None,
        attn_type=AttentionType.DECODER,
        kv_sharing_target_layer_name=None,
        **extra,
    ):
        self.num_heads, self.head_size, self.scale = num_heads, head_size, float(scale)
        self.num_kv_heads = num_kv_heads or num_heads
        self.alibi_slopes, self.sliding_window = alibi_slopes, sliding_window
        self.kv_cache_dtype, self.logits_soft_cap = kv_cache_dtype, logits_soft_cap
        self.attn_type, self.shared, self.extra = attn_type, kv_sharing_target_layer_name, extra

    def attributes(self):
        """Settings that the operator depends on beyond its tensors (docs/capture-format.md)."""
        slopes = self.alibi_slopes
        out = {
            "num_heads": int(self.num_heads),
            "num_kv_heads": int(self.num_kv_heads),
            "head_size": int(self.head_size),
            "scale": self.scale,
            "sliding_window": int(self.sliding_window)
            if self.sliding_window and self.sliding_window > 0
            else None,
            "logits_soft_cap": float(self.logits_soft_cap) if self.logits_soft_cap else None,
            "alibi_slopes": None if slopes is None else [float(s) for s in slopes],
            "causal": self.attn_type == AttentionType.DECODER,
        }
        if self.shared is not None:
            out["kv_sharing_target_layer_name"] = self.shared
        for key in sorted(self.extra):
            if key != "sinks" and self.extra[key] is not None and self.extra[key] is not False:
                out[key] = self.extra[key]
        return out

    def forward(
        self,
        layer,
        query,
        key,
        value,
        kv_cache,
        attn_metadata,
        output,
        output_scale=None,
        output_block_scale=None,
    ):
        if len(self.attributes()) > 8:
            raise NotImplementedError("attention with %s" % ", ".join(sorted(self.attributes())))
        group = self.num_heads // self.num_kv_heads
        q = query.view(-1, self.num_heads, self.head_size).transpose(0, 1)
        key = key.view(-1, self.num_kv_heads, self.head_size)
        value = value.view(key.shape[0], self.num_kv_heads, -1)
        if ReferenceAttention.pages is not None:
            key, value = ReferenceAttention.pages.append(layer.layer_name, key, value)
        k = key.transpose(0, 1).repeat_interleave(group, 0)
        v = value.transpose(0, 1).repeat_interleave(group, 0)
        scores = torch.matmul(q, k.transpose(1, 2)).float() * self.scale
        if self.logits_soft_cap:
            scores = torch.tanh(scores / self.logits_soft_cap) * self.logits_soft_cap
        at = torch.arange(k.shape[1], device=q.device)
        own = at if k.shape[1] == q.shape[1] else at[k.shape[1] - q.shape[1] :]
        distance = at[None, :] - own[:, None]
        if self.alibi_slopes is not None:
            slopes = torch.tensor([float(s) for s in self.alibi_slopes], device=q.device)
            scores = scores + slopes[:, None, None] * distance
        hidden = torch.zeros_like(distance, dtype=torch.bool)
        if self.attn_type == AttentionType.DECODER:
            hidden |= distance > 0
        if self.sliding_window and self.sliding_window > 0:
            hidden |= distance <= -self.sliding_window
        scores = scores.masked_fill(hidden, float("-inf"))
        sinks = self.extra.get("sinks")
        if sinks is not None:
            column = sinks.float()[:, None, None].expand(-1, scores.shape[1], 1)
            p = torch.softmax(torch.cat([scores, column], -1), -1)[..., :-1]
        else:
            p = torch.softmax(scores, -1)
        out = torch.matmul(p.to(v.dtype), v).transpose(0, 1)
        output.copy_(out.reshape(output.shape).contiguous())
        return output
