"""Reductions, windows and sorting."""

import itertools
import re

import torch

from . import regions, shapes
from .build import Unsupported
from .elementwise import binary

NEUTRAL = {"add": 0, "multiply": 1, "and": True, "or": False}


def neutral(name, dtype):
    if name in NEUTRAL:
        return NEUTRAL[name]
    low = name == "maximum"
    if dtype.is_floating_point:
        return float("-inf") if low else float("inf")
    info = torch.iinfo(dtype)
    return info.min if low else info.max


def reduce_dims(b, name, x, dims):
    dims = list(dims)
    if not dims:
        return x
    more = {} if x.dtype.is_floating_point else {"dtype": x.dtype}
    if name == "add":
        return b.call("aten::sum.dim_IntList", x, dims, False, **more)
    if name in ("maximum", "minimum"):
        return b.call("aten::amax" if name == "maximum" else "aten::amin", x, dims, False)
    for d in sorted(dims, reverse=True):
        if name == "multiply":
            x = b.call("aten::prod.dim_int", x, d, False, **more)
        else:
            x = b.call("aten::all.dim" if name == "and" else "aten::any.dim", x, d, False)
    return x


def reduced(b, name, x, init, dims, kind):
    out = reduce_dims(b, name, x, dims)
    if init.number is not None and init.number == neutral(name, x.dtype):
        return out
    return binary(b, name, out, shapes.expand(b, init, out.shape), kind, out.shape)


def reduce(b, computation, xs, inits, dims, kinds):
    """The results of a reduce of one or several operands, as a list."""
    if len(xs) == 1:
        name = regions.reducer(computation)
        return [reduced(b, name, xs[0], inits[0], dims, kinds[0])]
    apart = regions.reducers(computation, len(xs))
    if apart is not None:
        return [reduced(b, *parts) for parts in zip(apart, xs, inits, [dims] * len(xs), kinds)]
    return arg_reduce(b, regions.arg_extreme(computation), xs, inits, dims)


def is_iota(x, d):
    """Whether the known numbers count up from 0 along `d`."""
    if x.known is None:
        return False
    count = torch.arange(x.shape[d]).reshape([-1 if k == d else 1 for k in range(len(x.shape))])
    return bool((x.known == count).all())


def arg_reduce(b, name, xs, inits, dims):
    x, index = xs
    if len(dims) != 1:
        raise Unsupported("argmax along %d dimensions" % len(dims))
    d = dims[0]
    if inits[0].number is None or inits[0].number != neutral(name, x.dtype):
        raise Unsupported("argmax that begins with a number of its own")
    best = reduce_dims(b, name, x, [d])
    if is_iota(index, d) and x.shape[d] > 0:
        at = b.call("aten::argmax" if name == "maximum" else "aten::argmin", x, d, False)
        return [best, shapes.as_type(b, at, index.dtype)]
    shape = list(x.shape)
    row = shapes.view(b, best, shape[:d] + [1] + shape[d + 1 :])
    far = b.full([], torch.iinfo(index.dtype).max, index.dtype)
    there = b.call("aten::where.self", b.call("aten::eq.Tensor", x, row), index, far)
    return [best, reduce_dims(b, "minimum", there, [d])]


# ---- windows ----


def window(text, rank):
    """The words of window={size=2x2 stride=1x1 pad=0_0x1_1 ...} as lists."""
    words = dict(re.findall(r"(\w+)=([\dx_\-]+)", text))

    def numbers(key, default):
        if key not in words:
            return [default] * rank
        out = [int(n) for n in words[key].split("x")]
        if len(out) != rank:
            raise ValueError("window: %s is not of %d dimensions" % (key, rank))
        return out

    pads = shapes.pad_config(words.get("pad", "x".join(["0_0"] * rank)), rank)
    return {
        "size": numbers("size", 1),
        "stride": numbers("stride", 1),
        "pad": [p[:2] for p in pads],
        "lhs_dilate": numbers("lhs_dilate", 1),
        "rhs_dilate": numbers("rhs_dilate", 1),
        "reversal": numbers("rhs_reversal", 0),
    }


SCANS = {"add": "aten::cumsum", "multiply": "aten::cumprod"}


def scan(b, name, x, w):
    """A window over all that came before is a scan. NULL: it is none."""
    dims = [d for d, n in enumerate(w["size"]) if n != 1]
    others = [p for d, p in enumerate(w["pad"]) if d not in dims]
    if len(dims) != 1 or name not in SCANS or any(any(p) for p in others):
        return None
    d = dims[0]
    n = x.shape[d]
    if w["size"][d] != n or sorted(w["pad"][d]) != [0, n - 1]:
        return None
    more = {} if x.dtype.is_floating_point else {"dtype": x.dtype}
    if w["pad"][d][0] == n - 1:
        return b.call(SCANS[name], x, d, **more)
    back = b.call(SCANS[name], b.call("aten::flip", x, [d]), d, **more)
    return b.call("aten::flip", back, [d])


def reduce_window(b, computation, x, init, text):
    w = window(text, len(x.shape))
    name = regions.reducer(computation)
    plain = all(s == 1 for key in ("stride", "lhs_dilate", "rhs_dilate") for s in w[key])
    if init.number is None or init.number != neutral(name, x.dtype):
        raise Unsupported("reduce-window that begins with a number of its own")
    if plain:
        out = scan(b, name, x, w)
        if out is not None:
            return out
    if any(n != 1 for n in w["rhs_dilate"]):
        raise Unsupported("reduce-window with a dilated window")
    config = [[lo, hi, n - 1] for (lo, hi), n in zip(w["pad"], w["lhs_dilate"])]
    x = shapes.pad(b, x, config, init)
    rank, trailing = len(x.shape), []
    for d in range(rank):
        if w["size"][d] == 1 and w["stride"][d] == 1:
            continue
        trailing.append(rank + len(trailing))
        x = b.call("aten::unfold", x, d, w["size"][d], w["stride"][d])
    return reduce_dims(b, name, x, trailing)


def at_maxima(b, x, source, init, text):
    """Each element of `source` where its window of `x` has its first maximum, added up."""
    w, rank = window(text, len(x.shape)), len(x.shape)
    if init.number != 0 or not x.dtype.is_floating_point:
        raise Unsupported("select-and-scatter of integers, or onto other numbers than 0")
    low = b.full([], neutral("maximum", x.dtype), x.dtype)
    x = shapes.pad(b, x, [[lo, hi, 0] for lo, hi in w["pad"]], low)
    ends = [(n - 1) * s + 1 for n, s in zip(source.shape, w["stride"])]
    offsets = list(itertools.product(*(range(n) for n in w["size"])))
    parts = []
    for at in offsets:
        part = x
        for d in range(rank):
            part = shapes.slice_(b, part, d, at[d], at[d] + ends[d], w["stride"][d])
        parts.append(part)
    best = parts[0]
    for part in parts[1:]:
        best = b.call("aten::maximum", best, part)
    zero, out, taken = b.full([], 0, source.dtype), None, None
    for at, part in zip(offsets, parts):
        here = b.call("aten::eq.Tensor", part, best)
        first = here
        if taken is not None:
            first = b.call("aten::bitwise_and.Tensor", here, b.call("aten::bitwise_not", taken))
        taken = here if taken is None else b.call("aten::bitwise_or.Tensor", here, taken)
        own = b.call("aten::where.self", first, source, zero)
        sides = zip(at, x.shape, ends, w["stride"])
        own = shapes.pad(b, own, [[lo, n - lo - end, s - 1] for lo, n, end, s in sides], zero)
        out = own if out is None else b.call("aten::add.Tensor", out, own)
    return shapes.pad(b, out, [[-lo, -hi, 0] for lo, hi in w["pad"]], zero)


# ---- sorting ----


def sort(b, computation, xs, d):
    down = regions.descending(computation)
    values, order = b.several("aten::sort.stable", None, xs[0], stable=True, dim=d, descending=down)
    return [values] + [b.call("aten::gather", x, d, order) for x in xs[1:]]


def top_k(b, x, k, index):
    """Of equal elements the first comes first, which PyTorch's topk does not promise."""
    d = len(x.shape) - 1
    values, order = b.several("aten::sort.stable", None, x, stable=True, dim=d, descending=True)
    return [
        shapes.slice_(b, values, d, 0, k),
        shapes.as_type(b, shapes.slice_(b, order, d, 0, k), index),
    ]
