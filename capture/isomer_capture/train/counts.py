"""Numbers of ranks in a program: a division by one is no part of the model, as one rank alone
divides by 1. A node that has such a number is marked, `"counts": "ranks"`, for `isomer lint`.

The number alone does not tell: a model may halve what two ranks share. It is one where the program
has it from torch.distributed, or where torch's own wrappers divide. A number in a derivative that
is not a mean's counts nothing, neither ranks nor elements: `"counts": "nothing"`. That of a
mean counts what the rank has: `"counts": "elements"`."""

import sys

import torch
import torch.distributed as dist
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree

from . import taken

# Files of torch that divide by a number of ranks, and compute nothing of the user's.
WRAPPERS = (
    "torch/distributed/fsdp/",
    "torch/distributed/_composable/",
    "torch/distributed/algorithms/ddp_comm_hooks/",
    "torch/distributed/tensor/placement_types.py",
    "torch/distributed/tensor/_ops/_math_ops.py",
    "torch/nn/parallel/distributed.py",
)
BETWEEN = ("isomer_capture/", "torch/_compile.py", "torch/_dynamo/", "torch/_tensor.py", "torch/_o")
ENGINE = ("torch/autograd/graph.py",)
# Operators whose derivative has a number of elements. That of others has numbers of the model.
AVERAGES = ("Mean", "Var", "Std", "torch::autograd::AccumulateGrad")
DIVISIONS = ("aten::mul", "aten::div", "aten::true_divide")


class Count(int):
    """A number of ranks, which knows that it is one."""

    def __rtruediv__(self, other):
        share = other / int(self)
        return Share(share) if other == 1 else share


class Share(float):
    """One through a number of ranks."""


def package_path(path):
    """A file below the folder of its package."""
    for root in ("torch/", "isomer_capture/"):
        k = path.rfind("/" + root)
        if k >= 0:
            return path[k + 1 :]
    return path


def caller(frame):
    """The innermost file that is neither ours nor torch's way to an operator."""
    while frame:
        path = package_path(frame.f_code.co_filename)
        if not path.startswith(BETWEEN):
            return path
        frame = frame.f_back
    return ""


def group_sizes():
    if not dist.is_initialized():
        return set()
    groups = dist.distributed_c10d._world.pg_group_ranks
    return {len(ranks) for ranks in groups.values() if len(ranks) > 1}


class Counts(TorchFunctionMode):
    """Which operators have a number of ranks, while a step is recorded."""

    def __init__(self):
        super().__init__()
        self.inside, self.later = 0, set()
        self.depends = lambda t: False  # whether a tensor is computed from leaves of the step

    def __torch_function__(self, func, types, args=(), kwargs=None):
        given = pytree.tree_leaves((args, kwargs or {}))
        has = any(isinstance(a, (Count, Share)) for a in given)
        self.inside += has
        try:
            if taken.holds((args, kwargs)):
                return taken.applied(func, args, kwargs or {})
            out = func(*args, **(kwargs or {}))
        finally:
            self.inside -= has
        if taken.is_read(func, args, out) and self.depends(args[0]):
            return taken.Taken(out, args[0].detach().double())
        return out

    def marks(self, op, args):
        """ "ranks", "elements", "nothing" where that is known, or None, for an operator that is
        written down now."""
        numbers = [a for a in args if isinstance(a, (int, float)) and not isinstance(a, bool)]
        if not op.startswith(DIVISIONS) or not numbers:
            return None
        node, path = torch._C._current_autograd_node(), caller(sys._getframe(1))
        sizes = group_sizes()
        # A root of it, where norms are added up as powers.
        sizes |= {n**0.5 for n in sizes}
        if any(a == n or a == 1.0 / n for a in numbers for n in sizes):
            if self.of_ranks(node, path):
                return "ranks"
        formula = node is not None and path.startswith(ENGINE)
        if formula and node.name().startswith("MeanBackward"):
            return "elements"
        return "nothing" if formula and not node.name().startswith(AVERAGES) else None

    def of_ranks(self, node, path):
        if node is None and self.inside:
            self.later.add(torch._C._autograd._get_sequence_nr() - 1)  # its derivative has it too
            return True
        if node is None or path.startswith(WRAPPERS):
            return path.startswith(WRAPPERS)
        # What is done in C++ where a gradient is complete is a wrapper's.
        whole = node.name().endswith("AccumulateGrad") and path.startswith(ENGINE)
        return whole or node._sequence_nr() in self.later


def counted(original):
    """A function of torch.distributed whose number is a Count for the user's program."""

    def function(*args, **kwargs):
        n = original(*args, **kwargs)
        inside = package_path(sys._getframe(1).f_code.co_filename).startswith("torch/")
        return n if inside or type(n) is not int or n < 2 else Count(n)

    return function


def install():
    """The program of this process gets Counts where it asks for a number of ranks."""
    from torch.distributed.device_mesh import DeviceMesh

    for owner, name in (
        (dist, "get_world_size"),
        (dist.distributed_c10d, "get_world_size"),
        (dist.ProcessGroup, "size"),
        (DeviceMesh, "size"),
    ):
        setattr(owner, name, counted(getattr(owner, name)))
