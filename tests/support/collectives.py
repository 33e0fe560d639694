"""Calls of torch.distributed that go on by themselves: one of each function that takes async_op.

post(name, ranks) returns (Work, what comes in, what goes out), lists of tensors."""

import inspect
import types

import torch
import torch.distributed as dist


# Deprecated ones: the first gives a future, and taking one counts as waiting.
LEFT_OUT = ("all_reduce_coalesced", "all_gather_coalesced")


def names():
    """Asked of PyTorch, so that a function that is new there is not forgotten here."""
    found = [(name, f) for name, f in vars(dist).items() if type(f) is types.FunctionType]
    found = [(name, f) for name, f in found if "async_op" in inspect.signature(f).parameters]
    return [name for name, _ in found if name[0] != "_" and name not in LEFT_OUT]


def post(name, ranks):
    one, whole, longer = torch.ones(2), torch.ones(2 * ranks), torch.ones(2 * ranks)
    parts, pieces = list(torch.ones(ranks, 2)), [torch.ones(2) for _ in range(ranks)]
    root = dist.get_rank() == 0
    given = {
        "all_gather": ([parts, one], parts, [one]),
        "all_gather_into_tensor": ([whole, one], [whole], [one]),
        "all_gather_single": ([whole, one], [whole], [one]),
        "all_reduce": ([one], [one], []),
        "all_to_all": ([parts, pieces], parts, pieces),
        "all_to_all_single": ([whole, longer], [whole], [longer]),
        "broadcast": ([one, 0], [one], []),
        "gather": ([one, parts if root else None, 0], parts if root else [], [one]),
        "reduce": ([one, 0], [one], []),
        "reduce_scatter": ([one, parts], [one], parts),
        "reduce_scatter_single": ([one, whole], [one], [whole]),
        "reduce_scatter_tensor": ([one, whole], [one], [whole]),
        "scatter": ([one, parts if root else None, 0], [one], parts if root else []),
    }
    if name == "barrier":
        return dist.barrier(async_op=True), [], []
    args, comes, goes = given[name]
    return getattr(dist, name)(*args, async_op=True), comes, goes
