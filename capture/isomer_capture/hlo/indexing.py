"""gather and scatter: indices that a tensor gives.

Both are one indexing in PyTorch's sense: every indexed dimension of the operand gets a tensor of
positions over (batch dimensions, indexed window dimensions), the others come behind. Forms that
PyTorch has an operator for (embedding, gather, scatter_add) become it."""

import re

import torch

from . import shapes
from .build import Unsupported, product


def numbers(text):
    return [int(n) for n in re.findall(r"-?\d+", text or "")]


def integer(text):
    return int(text) if text else 0


def bounds(x):
    """(lowest, highest) of an integer value, as far as its operator says. None: not known."""
    if x.known is not None and x.known.numel():
        return int(x.known.min()), int(x.known.max())
    if x.op == "aten::clamp" and None not in x.args[1:]:
        return x.args[1], x.args[2]
    moves = ("reshape", "expand", "permute", "transpose.int", "slice.Tensor", "_to_copy")
    if x.op[len("aten::") :] in moves and not x.args[0].dtype.is_floating_point:
        return bounds(x.args[0])
    return None


def within(x, low, high):
    known = bounds(x)
    return known is not None and low <= known[0] and known[1] <= high


class Places:
    """Where an HLO gather or scatter reaches: for each batch position the start of a window of the
    operand. `window`: its size in each dimension of the operand; `dropped`: dimensions of size 1
    that the window is without."""

    def __init__(self, b, operand, indices, a, keys, window):
        dropped, batching, starts_batching, self.map = (numbers(a.get(k)) for k in keys)
        self.b, self.operand, self.window, self.batching = b, operand, window, batching
        self.axis = integer(a.get("index_vector_dim"))
        if self.axis == len(indices.shape):
            indices = shapes.view(b, indices, indices.shape + (1,))
        sizes = list(indices.shape)
        if not 0 <= self.axis < len(sizes) or sizes[self.axis] != len(self.map):
            raise Unsupported("index_vector_dim does not fit the indices")
        self.batch = sizes[: self.axis] + sizes[self.axis + 1 :]
        self.starts_batching = [d - (d > self.axis) for d in starts_batching]
        self.starts = [self.start(indices, k) for k in range(len(self.map))]
        self.kept = [d for d in range(len(window)) if d not in dropped and d not in batching]
        sizes = operand.shape
        self.indexed = sorted(
            set(self.map) | set(batching) | {d for d in range(len(sizes)) if window[d] != sizes[d]}
        )
        self.inner = [d for d in self.kept if d in self.indexed]
        self.rest = [d for d in self.kept if d not in self.indexed]
        self.dtype = indices.dtype

    def start(self, indices, k):
        one = shapes.slice_(self.b, indices, self.axis, k, k + 1)
        return shapes.view(self.b, one, self.batch)

    def room(self, k):
        """The last start at which the whole window is inside."""
        d = self.map[k]
        return self.operand.shape[d] - self.window[d]

    def inside(self, k):
        return within(self.starts[k], 0, self.room(k))

    def clamped(self, k):
        s = self.starts[k]
        return s if self.inside(k) else self.b.call("aten::clamp", s, 0, self.room(k))

    def over(self, x, dims):
        """`x` with its dimensions at `dims` of (batch..., inner...), others of size 1."""
        ones = [1] * (len(self.batch) + len(self.inner))
        for n, d in zip(x.shape, dims):
            ones[d] = n
        return shapes.view(self.b, x, ones)

    def position(self, d, starts):
        """The indices along the operand's dimension d."""
        b, nb = self.b, len(self.batch)
        if d in self.batching:
            at = self.starts_batching[self.batching.index(d)]
            return self.over(shapes.arange(b, self.operand.shape[d], self.dtype), [at])
        out = None
        if d in self.map:
            out = self.over(starts[self.map.index(d)], range(nb))
        if d in self.inner and (self.window[d] > 1 or out is None):
            own = shapes.arange(b, self.window[d], self.dtype)
            own = self.over(own, [nb + self.inner.index(d)])
            out = own if out is None else b.call("aten::add.Tensor", out, own)
        return shapes.arange(b, 1, self.dtype) if out is None else out

    def positions(self, starts):
        return [self.position(d, starts) for d in self.indexed]

    def along(self):
        """The one dimension that PyTorch's gather takes, where it does: every other one of the
        operand is a batch dimension in its own place."""
        if len(self.map) != 1 or self.kept or self.window[self.map[0]] != 1:
            return None
        d = self.map[0]
        others = [k for k in range(len(self.operand.shape)) if k != d]
        if len(self.batch) != len(self.operand.shape):
            return None
        return d if self.batching == others and self.starts_batching == others else None


GATHER = (
    "collapsed_slice_dims",
    "operand_batching_dims",
    "start_indices_batching_dims",
    "start_index_map",
)
SCATTER = (
    "inserted_window_dims",
    "input_batching_dims",
    "scatter_indices_batching_dims",
    "scatter_dims_to_operand_dims",
)


def arrange(b, x, axes, offset_dims):
    """`x` over (batch..., window dimensions `axes` of the operand...) in HLO's order, where window
    dimensions stand at `offset_dims`."""
    n = len(x.shape)
    batch = iter(range(n - len(axes)))
    order = sorted(axes)
    place = {d: n - len(axes) + k for k, d in enumerate(axes)}
    where = {p: place[d] for p, d in zip(sorted(offset_dims), order)}
    return shapes.permute(b, x, [where[p] if p in where else next(batch) for p in range(n)])


def gather(b, operand, indices, a):
    window = numbers(a.get("slice_sizes"))
    if len(window) != len(operand.shape):
        raise Unsupported("slice_sizes does not fit the operand")
    p = Places(b, operand, indices, a, GATHER, window)
    starts = [p.clamped(k) for k in range(len(p.map))]
    d = p.along()
    if d is not None:
        return b.call("aten::gather", operand, d, shapes.as_type(b, starts[0], torch.int64))
    out = table_rows(b, p, starts)
    if out is None:
        front = shapes.permute(b, operand, p.indexed + p.rest) if p.indexed else operand
        where = p.positions(starts)
        out = b.call("aten::index.Tensor", front, where) if where else operand
        sizes = p.batch + [window[k] for k in p.inner] + [window[k] for k in p.rest]
        out = shapes.expand(b, out, sizes) if len(out.shape) == len(sizes) else out
    return arrange(b, out, p.inner + p.rest, numbers(a.get("offset_dims")))


def table_rows(b, p, starts):
    """Rows of a matrix. NULL: it is another gather."""
    matrix = len(p.operand.shape) == 2 and p.operand.dtype.is_floating_point
    if not matrix or p.indexed != [0] or p.inner or p.batching:
        return None
    return b.call("aten::embedding", p.operand, starts[0])


def window_of_updates(operand, updates, a):
    window_dims = numbers(a.get("update_window_dims"))
    kept = [
        d
        for d in range(len(operand.shape))
        if d not in numbers(a.get("inserted_window_dims"))
        and d not in numbers(a.get("input_batching_dims"))
    ]
    if len(kept) != len(window_dims):
        raise Unsupported("update_window_dims do not fit the operand")
    window = [1] * len(operand.shape)
    for d, k in zip(kept, sorted(window_dims)):
        window[d] = updates.shape[k]
    return window, kept, window_dims


def unarrange(b, updates, p, kept, window_dims):
    """The updates over (batch..., inner window, rest of the window)."""
    place = dict(zip(kept, sorted(window_dims)))
    batch = [k for k in range(len(updates.shape)) if k not in window_dims]
    return shapes.permute(b, updates, batch + [place[d] for d in p.inner + p.rest])


def valid(b, p):
    """Over the batch, whether the whole window is inside; None: it always is."""
    out = None
    for k in range(len(p.map)):
        if p.inside(k):
            continue
        low = b.call("aten::ge.Scalar", p.starts[k], 0)
        high = b.call("aten::le.Scalar", p.starts[k], p.room(k))
        one = b.call("aten::bitwise_and.Tensor", low, high)
        out = one if out is None else b.call("aten::bitwise_and.Tensor", out, one)
    return out


def masked(b, p, updates):
    """Updates outside add nothing."""
    ok = valid(b, p)
    if ok is None:
        return updates
    ok = shapes.view(b, ok, p.batch + [1] * (len(updates.shape) - len(p.batch)))
    return b.call("aten::where.self", ok, updates, b.full([], 0, updates.dtype))


def scatter(b, name, operand, indices, updates, a):
    """`name`: the reducer, "set" where the update replaces what was there."""
    window, kept, window_dims = window_of_updates(operand, updates, a)
    p = Places(b, operand, indices, a, SCATTER, window)
    if name == "set":
        return scatter_set(b, p, unarrange(b, updates, p, kept, window_dims))
    if name in REDUCE and operand.dtype != torch.bool:
        return scatter_reduce(b, p, name, unarrange(b, updates, p, kept, window_dims))
    if name != "add" or operand.dtype == torch.bool:
        raise Unsupported("scatter with %s" % name)
    starts = [p.clamped(k) for k in range(len(p.map))]
    updates = masked(b, p, unarrange(b, updates, p, kept, window_dims))
    d = p.along()
    if d is not None:
        at = shapes.as_type(b, starts[0], torch.int64)
        return b.call("aten::scatter_add", operand, d, at, updates)
    return put(b, p, operand, starts, updates, True)


REDUCE = {"maximum": "amax", "minimum": "amin", "multiply": "prod"}


def scatter_reduce(b, p, name, updates):
    """Rows, each reduced with those that go there; what is outside goes to a row behind them."""
    if p.indexed != p.map or any(p.window[k] != 1 for k in p.inner) or p.batching:
        raise Unsupported("scatter with %s, of other than rows" % name)
    d, n = p.map[0], product(p.batch)
    rest = [p.operand.shape[k] for k in p.rest]
    at, ok = p.clamped(0), valid(b, p)
    front = shapes.permute(b, p.operand, [d] + p.rest)
    if ok is not None:
        front = shapes.constant_pad(b, front, [0] * (1 + len(rest)), [1] + [0] * len(rest), 0)
        behind = b.full([], p.operand.shape[d], at.dtype)
        at = b.call("aten::where.self", ok, at, behind)
    at = shapes.view(b, shapes.as_type(b, at, torch.int64), [n] + [1] * len(rest))
    at = shapes.expand(b, at, [n] + rest)
    updates = shapes.view(b, updates, [n] + rest)
    out = b.call("aten::scatter_reduce.two", front, 0, at, updates, REDUCE[name])
    out = shapes.slice_(b, out, 0, 0, p.operand.shape[d]) if ok is not None else out
    return shapes.permute(b, out, shapes.inverse([d] + p.rest))


def put(b, p, operand, starts, updates, accumulate):
    order = p.indexed + p.rest
    where = p.positions(starts)
    if not where:
        return b.call("aten::add.Tensor", operand, updates) if accumulate else updates
    front = shapes.permute(b, operand, order)
    where = [shapes.as_type(b, i, torch.int64) for i in where]
    out = b.call("aten::index_put", front, where, updates, accumulate)
    return shapes.permute(b, out, shapes.inverse(order))


def scatter_set(b, p, updates):
    """Indices that are outside go to rows that are put behind the operand and taken off again."""
    ok = valid(b, p)
    starts = [p.clamped(k) for k in range(len(p.map))]
    if ok is None:
        return put(b, p, p.operand, starts, updates, False)
    d, size = p.map[0], p.operand.shape[p.map[0]]
    zeros = [0] * len(p.operand.shape)
    more = zeros[:d] + [p.window[d]] + zeros[d + 1 :]
    longer = shapes.constant_pad(b, p.operand, zeros, more, 0)
    starts[0] = b.call("aten::where.self", ok, starts[0], b.full([], size, starts[0].dtype))
    return shapes.slice_(b, put(b, p, longer, starts, updates, False), d, 0, size)
