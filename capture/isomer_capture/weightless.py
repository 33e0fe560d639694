"""Models at sizes that no machine holds: parameters without values, on PyTorch's meta device.

Buffers keep their values, since code computes them of the configuration alone (frequencies of a
rotary embedding, masks): they are made for real while the model is built, and kept aside while it
is exported."""

import torch
from torch.overrides import TorchFunctionMode


class Unfilled(TorchFunctionMode):
    """What is made to be filled later, as nn.Linear's weight, has no memory."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        if function in (torch.empty, torch.Tensor.new_empty) and kwargs.get("device") is None:
            kwargs["device"] = "meta"
        return function(*args, **kwargs)


class Written(TorchFunctionMode):
    """A number as a tensor on the meta device is a fill: as a constant it would have no value."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if function is torch.tensor and str(kwargs.get("device")) == "meta":
            data = args[0] if args else kwargs.get("data")
            if isinstance(data, (bool, int, float)):
                dtype = kwargs.get("dtype") or torch.tensor(data).dtype
                return torch.full([], data, dtype=dtype, device="meta")
        return function(*args, **kwargs)


def build(make):
    """The module that `make` gives, its parameters without memory."""
    with Unfilled():
        module = make().eval()
    for part in module.modules():
        for name, p in list(part._parameters.items()):
            if p is not None and p.device.type != "meta":
                tied = [
                    (m, n) for m in module.modules() for n, q in m._parameters.items() if q is p
                ]
                bare = torch.nn.Parameter(p.detach().to("meta"), requires_grad=False)
                for m, n in tied:
                    m._parameters[n] = bare
    return module


def without_buffers(module):
    """Moves the module to the meta device as a whole. Returns its buffers' values, by each of their
    names: layers may share a part that has one."""
    values = {}
    for name, b in module.named_buffers(remove_duplicate=False):
        if b.device.type != "meta":
            values[name] = b.detach().clone()
    module.to("meta")
    return values


def bare(tree):
    """Inputs with shapes and dtypes alone."""
    from torch.utils import _pytree as pytree

    return pytree.tree_map_only(torch.Tensor, lambda t: t.detach().to("meta"), tree)


def same_shapes(names, ours, theirs):
    """All that can be said of outputs that have no values. Returns: the first name that differs."""
    for name, a, b in zip(names, ours, theirs):
        if tuple(a.shape) != tuple(b.shape) or a.dtype != b.dtype:
            return name
    return None
