"""`aten::_foreach_*`: one operator per element of its lists."""

import torch

from ..errors import CaptureError


def base_of(func):
    name = func._schema.name.split("::")[1][len("_foreach_") :]
    if name in ("norm", "norm_"):
        return "aten::linalg_vector_norm"
    return "aten::" + name


def record(recorder, func, args, kwargs):
    lists = [a for a in list(args) + list(kwargs.values()) if isinstance(a, (list, tuple))]
    n = len(lists[0])

    def at(k, a):
        return a[k] if isinstance(a, (list, tuple)) and len(a) == n else a

    name = base_of(func)
    out = []
    for k in range(n):
        one = [at(k, a) for a in args]
        named = {key: at(k, a) for key, a in kwargs.items()}
        if name.startswith(("aten::addcmul", "aten::addcdiv")) and len(one) > 3:
            named["value"] = one.pop()  # named where it is one tensor's
        out.append(call(recorder, name, one, named))
    return None if func._schema.is_mutable else out


def call(recorder, name, args, kwargs):
    try:
        _, overload = torch._C._jit_resolve_packet(name, *args, **kwargs), None
        overload = _[1] if isinstance(_, tuple) else _
    except RuntimeError as e:
        raise CaptureError("aten::_foreach form of %s is not known" % name) from e
    packet = getattr(torch.ops.aten, name.split("::")[1])
    func = getattr(packet, overload or "default")
    return recorder.operator(func, name.split("::")[1], tuple(args), kwargs)
