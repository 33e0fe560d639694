"""Numbers that a program reads out of tensors and computes with: a norm that is `.item()`, what is
made of it, and what is multiplied by that. The number is one of this run, and another where the
parameters are other ones; what it is computed from stays in the graph in its place. What the
program decides by it is a guard still."""

import torch
from torch.utils import _pytree as pytree

# Operators, by Python's names, that take a tensor of one element for a number.
TENSOR_TOO = {"mul", "multiply", "imul", "rmul", "div", "divide", "true_divide", "truediv"}
TENSOR_TOO |= {"itruediv", "add", "iadd", "radd", "sub", "isub", "foreach_mul", "foreach_div"}


class Taken(float):
    """A number, and the tensor of one element that it was read from or that is computed from
    such."""

    def __new__(cls, number, tensor):
        made = super().__new__(cls, number)
        made.tensor = tensor
        return made


def both(name):
    plain = getattr(float, name)

    def operation(self, *other):
        if other and (isinstance(other[0], torch.Tensor) or not isinstance(other[0], (int, float))):
            return NotImplemented
        number = plain(self, *other)
        if not isinstance(number, float):
            return number
        given = [o.tensor if isinstance(o, Taken) else o for o in other]
        with torch.no_grad():
            return Taken(number, getattr(self.tensor, name)(*given))

    return operation


for _name in ("add", "radd", "sub", "rsub", "mul", "rmul", "truediv", "rtruediv", "pow", "rpow"):
    setattr(Taken, "__%s__" % _name, both("__%s__" % _name))
for _name in ("__neg__", "__abs__"):
    setattr(Taken, _name, both(_name))


def is_read(func, args, result):
    return type(result) is float and func is torch.Tensor.item and type(args[0]) is torch.Tensor


def holds(tree):
    return any(isinstance(a, Taken) for a in pytree.tree_leaves(tree))


def applied(func, args, kwargs):
    """func(*args, **kwargs), with tensors in place of numbers that were taken, where it has a place
    for them."""
    name, first = getattr(func, "__name__", "").strip("_"), pytree.tree_leaves(args)[0]

    def tensor(a):
        given = first.dtype if isinstance(first, torch.Tensor) else a.tensor.dtype
        return a.tensor.to(given)

    kwargs = dict(kwargs)
    if isinstance(kwargs.get("alpha"), Taken) and isinstance(args[1], torch.Tensor):
        args = (args[0], args[1] * tensor(kwargs.pop("alpha"))) + tuple(args[2:])
    if isinstance(kwargs.get("value"), Taken) and name.startswith(("addcmul", "addcdiv")):
        args = (args[0], args[1] * tensor(kwargs.pop("value"))) + tuple(args[2:])
    if name in ("rtruediv", "rsub") and isinstance(args[1], Taken):
        turned = torch.div if name == "rtruediv" else torch.sub
        return turned(tensor(args[1]), args[0])
    if name == "tensor" and isinstance(args[0], Taken):
        return args[0].tensor.to(kwargs.get("dtype") or torch.get_default_dtype(), copy=True)
    if name in TENSOR_TOO:
        args = pytree.tree_map_only(Taken, tensor, args)
    return func(*args, **kwargs)
