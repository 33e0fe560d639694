"""A joined graph, run with PyTorch: what is written must compute what the ranks computed."""

import torch

from ..errors import CaptureError, short


def given(x, have):
    if isinstance(x, list):
        return [given(e, have) for e in x]
    if not isinstance(x, dict):
        return x
    if "ref" in x:
        return have[x["ref"]]
    if "float" in x:
        return float(x["float"])
    key, word = next(iter(x.items()))
    if key == "device":
        return torch.device(word)
    return getattr(torch, word + "_format" if key == "memory_format" else word)


def operator(name):
    space, rest = name.split("::")
    base, _, overload = rest.partition(".")
    return getattr(getattr(getattr(torch.ops, space), base), overload or "default")


def reduced(parts, op):
    stacked = torch.stack(parts)
    if op == "sum":
        out = parts[0].clone()
        for p in parts[1:]:
            out += p
        return out
    if op == "avg":
        return reduced(parts, "sum") / len(parts)
    if op == "product":
        return stacked.prod(0)
    return stacked.amax(0) if op == "max" else stacked.amin(0)


def dist(name, args):
    if name == "dist::all_reduce":
        return reduced(*args)
    if name == "dist::all_gather":
        return torch.cat(args[0], args[1])
    if name == "dist::reduce_scatter":
        parts, op, dim = args
        return list(reduced(parts, op).chunk(len(parts), dim))
    if name == "dist::broadcast":
        return args[0][args[1]]
    if name == "dist::receive":
        return args[0]
    if name == "dist::all_to_all":
        parts = [t.chunk(len(args[0]), args[1]) for t in args[0]]
        return [torch.cat([p[r] for p in parts], args[2]) for r in range(len(parts))]
    raise CaptureError("%s cannot be replayed" % name)


def replay(nodes, leaves):
    """id to value; leaves: id to tensor."""
    have = dict(leaves)
    for node in nodes:
        if "name" in node:
            continue
        args = given(node["args"], have)
        if node["op"] == "getitem":
            have[node["id"]] = args[0][args[1]]
        elif node["op"].startswith("dist::"):
            have[node["id"]] = dist(node["op"], args)
        else:
            named = {k: given(v, have) for k, v in node["kwargs"].items()}
            if node["op"] == "aten::view":
                node_op = torch.ops.aten.reshape.default
            else:
                node_op = operator(node["op"])
            try:
                out = node_op(*args, **named)
            except Exception as e:
                raise CaptureError("node %s (%s): %s" % (node["id"], node["op"], short(e))) from e
            have[node["id"]] = out
        check(node, have[node["id"]])
    return have


def check(node, out):
    outs = list(out) if isinstance(out, (list, tuple)) else [out]
    for t, said in zip(outs, node["outputs"]):
        if t is None:
            continue
        if list(t.shape) != said["shape"] or str(t.dtype) != "torch." + said["dtype"]:
            raise CaptureError(
                "node %s (%s) is %s %s, was recorded as %s %s"
                % (node["id"], node["op"], t.dtype, list(t.shape), said["dtype"], said["shape"])
            )
