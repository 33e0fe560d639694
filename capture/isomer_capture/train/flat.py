"""Element-wise operators and copies of flat buffers: on each tensor that lies in the buffer. What a
communication hook does to a bucket is done to every gradient in it."""

import torch
from torch.utils import _pytree as pytree

from .graph import Node
from .memory import count


def is_flat(t):
    return t.dim() == 1 and t.is_contiguous()


def pieces(memory, given):
    """Of flat tensors of one size, [(parts, one of each), ...] along the cuts of all of them; None
    where each is one value."""
    held = [memory.parts(t) for t in given]
    if all(len(parts) == 1 for parts in held):
        return None
    cuts = {0}
    for parts in held:
        at = 0
        for _, first, last in parts:
            at += last - first
            cuts.add(at)
    cuts = sorted(cuts)
    return list(zip(*[[cut(parts, a, b) for a, b in zip(cuts, cuts[1:])] for parts in held]))


def cut(parts, a, b):
    """Elements [a, b) of parts, which lie in one of them."""
    at = 0
    for value, first, last in parts:
        if a < at + last - first:
            return value, first + a - at, first + b - at
        at += last - first
    raise AssertionError("no such part")


def as_values(graph, parts, dtypes):
    """Parts of as many elements as values of one shape, that of the first which has more than one
    dimension."""
    values = [graph.put_together([p], None, d) for p, d in zip(parts, dtypes)]
    shapes = [v.shape for v in values]
    shape = max(shapes, key=len) if shapes else ()
    return [graph.view(v, shape) for v in values]


def copied(recorder, source, dtype):
    """Parts that a copy of a flat tensor has, or None."""
    found = pieces(recorder.memory, [source]) if is_flat(source) else None
    if not found:
        return None
    graph, out = recorder.graph, []
    for (part,) in found:
        if source.dtype == dtype and part[0] is not None:
            out.append(part)
            continue
        value = graph.cast(graph.put_together([part], None, source.dtype), dtype)
        out.append((value, 0, count(value.shape)))
    return out


def results(recorder, func, args, kwargs, dtype, emit):
    """Parts that an element-wise operator's result has, or None where it is to be written down as
    one operator. emit(args, kwargs, like) makes a node."""
    given = [t for t in pytree.tree_leaves((args, kwargs)) if isinstance(t, torch.Tensor)]
    flats = [t for t in given if t.dim()]
    if torch.Tag.pointwise not in func.tags or not flats or not all(map(is_flat, flats)):
        return None
    if len({t.numel() for t in flats}) > 1:
        return None
    found, out = pieces(recorder.memory, flats), []
    dtypes = [t.dtype for t in flats]
    for parts in found or []:
        values = as_values(recorder.graph, parts, dtypes)
        of = {id(t): v for t, v in zip(flats, values)}

        def value(t):
            return of.get(id(t)) or recorder.memory.read(t)

        one = pytree.tree_map_only(torch.Tensor, value, (args, kwargs))
        made = emit(one[0], one[1], Node("", values[0].shape, dtype))
        out.append((made, 0, count(made.shape)))
    return out or None
