"""`aten::_fused_*_`, an optimizer's whole step as one kernel: written down as the formula that
PyTorch's optimizer runs tensor by tensor, which the kernel has to agree with on the values of the
run."""

import importlib
import inspect

import torch
from torch.utils import _pytree as pytree

from ..core import TOLERANCE, difference
from ..errors import CaptureError

# The kernel's name to the module of torch.optim that has its formula, and what that is told more.
FORMULAS = {
    "_fused_adam_": ("adam", {}),
    "_fused_adamw_": ("adam", {"decoupled_weight_decay": True}),
    "_fused_sgd_": ("sgd", {}),
    "_fused_adagrad_": ("adagrad", {}),
}
SCALES = ("grad_scale", "found_inf")  # of a GradScaler, which skips steps by values


def record(recorder, func, name, args, kwargs):
    where, more = FORMULAS[name]
    given = {a.name: v for a, v in zip(func._schema.arguments, args)}
    given.update(kwargs, **more)
    if any(given.get(k) is not None for k in SCALES):
        raise CaptureError("%s with a GradScaler is not recorded" % func.name())
    module = importlib.import_module("torch.optim." + where)
    formula = getattr(module, "_single_tensor_" + where)
    theirs = pytree.tree_map_only(torch.Tensor, torch.clone, (args, kwargs))
    func(*theirs[0], **theirs[1])
    with torch.no_grad(), recorder.again():
        formula(**told(formula, dict(given)))
    for a, mine in zip(func._schema.arguments, args):
        if a.alias_info is not None and a.alias_info.is_write and a.name != "state_steps":
            agree(func, a.name, mine, theirs[0][list(given).index(a.name)])


def told(formula, given):
    """The formula's arguments. It counts the step itself, which was done before the kernel ran."""
    given["params"] = given.pop("self")
    if given.get("is_first_step"):
        given["momentum_buffer_list"] = [None] * len(given["params"])
    if "state_steps" in given:
        given["state_steps"] = [t - 1 for t in given["state_steps"]]
    if isinstance(given["lr"], torch.Tensor):
        given["lr"] = given["lr"].item()
    out = {}
    for name, p in inspect.signature(formula).parameters.items():
        if name in given or p.default is p.empty:
            out[name] = given.get(name, name in SCALES and None)
    return out


def agree(func, what, mine, theirs):
    for a, b in zip(mine, theirs):
        if difference(a, b) > TOLERANCE.get(a.dtype, 0.0):
            raise CaptureError("%s leaves %s that its formula does not" % (func.name(), what))
