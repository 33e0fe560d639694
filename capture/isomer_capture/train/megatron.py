"""What Megatron-core's layers say of a parameter: that a rank has its part of it, along which
dimension, and in how many pieces each (a gated layer's first matrix has two)."""

import sys

import torch


def rank_and_ranks(p):
    """Of the group that shares the parameter."""
    state = sys.modules["megatron.core.parallel_state"]
    if getattr(p, "allreduce", True):
        return state.get_tensor_model_parallel_rank(), state.get_tensor_model_parallel_world_size()
    return state.get_expert_tensor_parallel_rank(), state.get_expert_tensor_parallel_world_size()


def is_cut(p):
    return (
        getattr(p, "tensor_model_parallel", False)
        and getattr(p, "partition_dim", -1) >= 0
        and "megatron.core.parallel_state" in sys.modules
    )


def held(p, t, whole):
    """This rank's part of whole(shape), where `t` is the parameter `p` or a state of it."""
    if not is_cut(p) or t.dim() != p.dim():
        return whole(tuple(t.shape))
    rank, ranks = rank_and_ranks(p)
    dim, pieces = p.partition_dim, getattr(p, "partition_stride", 1)
    shape = list(t.shape)
    shape[dim] *= ranks
    return torch.cat(whole(tuple(shape)).chunk(ranks * pieces, dim)[rank::ranks], dim)
