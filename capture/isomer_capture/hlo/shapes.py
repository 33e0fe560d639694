"""Operators that move elements: views, broadcasts, slices, padding, and updates of slices."""

import torch

from .build import Unsupported, product

REDUCTIONS = ("aten::sum.dim_IntList", "aten::amax", "aten::amin")
UNKNOWN = None


def view(b, x, sizes):
    sizes = list(sizes)
    if list(x.shape) == sizes:
        return x
    if x.number is not None and not x.placed:
        return b.full(sizes, x.number, x.dtype)
    if x.op == "aten::reshape":
        return view(b, x.args[0], sizes)
    if x.op in REDUCTIONS and not x.args[2] and kept(x) == sizes:
        return b.call(x.op, x.args[0], x.args[1], True, **x.kwargs)
    return b.call("aten::reshape", x, sizes)


def kept(x):
    """The shape of a reduction that keeps its dimensions at size 1."""
    return [1 if d in x.args[1] else n for d, n in enumerate(x.args[0].shape)]


def expand(b, x, sizes):
    sizes = list(sizes)
    if list(x.shape) == sizes:
        return x
    if x.number is not None and not x.placed:
        return b.full(sizes, x.number, x.dtype)
    return b.call("aten::expand", x, sizes)


def permute(b, x, order):
    order = list(order)
    moved = [d for d, o in enumerate(order) if d != o]
    if not moved:
        return x
    if x.number is not None and not x.placed:
        return b.full([x.shape[o] for o in order], x.number, x.dtype)
    if len(moved) == 2:
        return b.call("aten::transpose.int", x, moved[0], moved[1])
    return b.call("aten::permute", x, order)


def inverse(order):
    out = [0] * len(order)
    for i, o in enumerate(order):
        out[o] = i
    return out


def broadcast_in(b, x, dims, sizes):
    """Dimension i of `x` is dimension dims[i] of the result."""
    order = sorted(range(len(dims)), key=lambda i: dims[i])
    x = permute(b, x, order)
    ones = [1] * len(sizes)
    for i in order:
        ones[dims[i]] = x.shape[order.index(i)]
    return expand(b, view(b, x, ones), sizes)


def slice_(b, x, d, start, end, step=1):
    if start == 0 and end == x.shape[d] and step == 1:
        return x
    if x.number is not None and not x.placed:
        n = max(0, (end - start + step - 1) // step)
        return b.full(x.shape[:d] + (n,) + x.shape[d + 1 :], x.number, x.dtype)
    return b.call("aten::slice.Tensor", x, d, start, end, step)


def cat(b, xs, d):
    xs = list(xs)
    return xs[0] if len(xs) == 1 else b.call("aten::cat", xs, d)


def arange(b, n, dtype):
    return b.call("aten::arange", n, dtype=dtype)


def as_type(b, x, dtype):
    if x.dtype == dtype:
        return x
    if x.number is not None and not x.placed:
        if not (isinstance(x.number, float) and not dtype.is_floating_point):
            return b.full(x.shape, x.number, dtype)
    return b.call("aten::_to_copy", x, dtype=dtype)


# ---- padding ----


def pad_config(text, rank):
    """lo_hi or lo_hi_interior for each dimension."""
    out = []
    for part in text.split("x") if text else []:
        numbers = [int(n) for n in part.split("_")]
        if len(numbers) not in (2, 3):
            raise ValueError("%r is no padding" % part)
        out.append((numbers + [0])[:3])
    if len(out) != rank:
        raise ValueError("its padding is not one of %d dimensions" % rank)
    return out


def constant_pad(b, x, lows, highs, number):
    if not any(lows) and not any(highs):
        return x
    flat = []
    for d in reversed(range(len(lows))):
        flat += [lows[d], highs[d]]
    while len(flat) > 2 and flat[-1] == flat[-2] == 0:
        flat = flat[:-2]
    return b.call("aten::constant_pad_nd", x, flat, number)


def interior(b, x, d, n, number):
    """`n` times the number between neighbours along `d`."""
    size = x.shape[d]
    if n == 0 or size < 2:
        return x
    apart = view(b, x, x.shape[: d + 1] + (1,) + x.shape[d + 1 :])
    zeros = [0] * len(apart.shape)
    apart = constant_pad(b, apart, zeros, zeros[: d + 1] + [n] + zeros[d + 2 :], number)
    joined = view(b, apart, x.shape[:d] + (size * (n + 1),) + x.shape[d + 1 :])
    return slice_(b, joined, d, 0, size * (n + 1) - n)


def pad(b, x, config, fill):
    if fill.number is None:
        mask = pad(b, b.full(x.shape, True, torch.bool), config, b.full([], False, torch.bool))
        padded = pad(b, x, config, b.full([], 0, x.dtype))
        return b.call("aten::where.self", mask, padded, fill)
    for d, (_, _, between) in enumerate(config):
        x = interior(b, x, d, between, fill.number)
    lows, highs = [c[0] for c in config], [c[1] for c in config]
    x = constant_pad(b, x, [max(0, n) for n in lows], [max(0, n) for n in highs], fill.number)
    for d, n in enumerate(x.shape):
        x = slice_(b, x, d, max(0, -lows[d]), n - max(0, -highs[d]))
    return x


# ---- slices whose start is computed ----


def start_of(b, start, size, length):
    """Where a slice starts: a number where it is known, else a value within the bounds."""
    if size < length:
        raise Unsupported("a slice of %d elements of %d" % (length, size))
    if start.known is not None:
        return min(max(int(start.known), 0), size - length)
    if size == length:
        return 0
    return b.call("aten::clamp", start, 0, size - length)


def positions(b, start, length):
    at = view(b, start, [1])
    return at if length == 1 else b.call("aten::add.Tensor", at, arange(b, length, start.dtype))


def dynamic_slice(b, x, starts, lengths):
    for d, n in enumerate(lengths):
        at = start_of(b, starts[d], x.shape[d], n)
        if isinstance(at, int):
            x = slice_(b, x, d, at, at + n)
        else:
            x = b.call("aten::index_select", x, d, positions(b, at, n))
    return x


def dynamic_update(b, x, update, starts, d=0):
    """`x` with `update` in its place; along `d` and the dimensions behind it they may differ."""
    while d < len(x.shape) and update.shape[d] == x.shape[d]:
        d += 1
    if d == len(x.shape):
        return update
    n = update.shape[d]
    at = start_of(b, starts[d], x.shape[d], n)
    if isinstance(at, int):
        inner = dynamic_update(b, slice_(b, x, d, at, at + n), update, starts, d + 1)
        return b.call("aten::slice_scatter", x, inner, d, at, at + n)
    where = positions(b, at, n)
    inner = update
    if update.shape[d + 1 :] != x.shape[d + 1 :]:
        inner = dynamic_update(b, b.call("aten::index_select", x, d, where), update, starts, d + 1)
    return b.call("aten::index_copy", x, d, as_type(b, where, torch.int64), inner)


def bitcast(b, x, old, new):
    """The same bytes in memory under another shape: through the order in which they lie there."""
    if product(old.sizes) != product(new.sizes) or old.dtype != new.dtype:
        raise Unsupported("bitcast between element types")
    before = major_first(old)
    after = major_first(new)
    x = permute(b, x, before)
    x = view(b, x, [new.sizes[d] for d in after])
    return permute(b, x, inverse(after))


def major_first(shape):
    minor = shape.layout or tuple(reversed(range(len(shape.sizes))))
    return list(reversed(minor))
