"""Memory while a program is recorded: which elements of a storage hold which elements of a value.

A storage is a row of *segments*: elements [start, end) hold elements [first, first + end - start)
of a value in its row-major order. What a tensor holds is read off the segments that it covers,
whatever buffers, views and in-place writes put it there: flat buckets, `.data =`, storages that
were freed and filled anew. A value is a `Node` of the graph (graph.py)."""

from ..errors import CaptureError

BLOCKS = 64  # a strided view of more dense blocks than this is made by its operator, not by parts


class Segment:
    __slots__ = ("start", "end", "value", "first")

    def __init__(self, start, end, value, first):
        self.start, self.end, self.value, self.first = start, end, value, first

    def cut(self, start, end):
        """The part in [start, end); the segment itself where that is all of it."""
        start, end = max(start, self.start), min(end, self.end)
        if (start, end) == (self.start, self.end):
            return self
        return Segment(start, end, self.value, self.first + start - self.start)


def count(shape):
    n = 1
    for s in shape:
        n *= s
    return n


def layout(shape, strides):
    """(order of the dimensions as memory has them, number of elements in a dense block, offsets of
    the blocks), or None where elements overlap. No offsets where there are too many."""
    wide = sorted((d for d in range(len(shape)) if shape[d] != 1), key=lambda d: (-strides[d], d))
    if any(strides[d] == 0 for d in wide):
        return None
    order = list(range(len(shape)))
    if wide != sorted(wide):
        order = [d for d in order if shape[d] == 1] + wide
    block, outer = 1, list(order)
    while outer and (shape[outer[-1]] == 1 or strides[outer[-1]] == block):
        block *= shape[outer.pop()]
    offsets, reach = [0], block
    for d in reversed(outer):
        if shape[d] > 1 and strides[d] < reach:
            return None
        reach = strides[d] * shape[d]
    for d in outer:
        offsets = [o + k * strides[d] for o in offsets for k in range(shape[d])]
        if len(offsets) > BLOCKS:
            return order, block, None
    return order, block, offsets


class Storage:
    """`keep` holds the memory itself, so that its address is not given to another."""

    def __init__(self, keep, dtype):
        self.keep, self.dtype, self.segments, self.seen, self.views = keep, dtype, [], {}, {}

    def covering(self, start, end):
        return [s for s in self.segments if s.start < end and s.end > start]

    def put(self, start, end, value, first=0):
        kept = []
        for s in self.segments:
            if s.end <= start or s.start >= end:
                kept.append(s)
                continue
            if s.start < start:
                kept.append(s.cut(s.start, start))
            if s.end > end:
                kept.append(s.cut(end, s.end))
        kept.append(Segment(start, end, value, first))
        self.segments = sorted(kept, key=lambda s: s.start)

    def parts(self, start, end):
        """[(value, first, last)] of the elements in order, neighbours of one value joined; None
        in place of a value where nothing was written."""
        out, at = [], start
        for s in [s.cut(start, end) for s in self.covering(start, end)]:
            if s.start > at:
                out.append((None, 0, s.start - at))
            out.append((s.value, s.first, s.first + s.end - s.start))
            at = s.end
        if at < end:
            out.append((None, 0, end - at))
        return joined(out)


def joined(parts):
    out = []
    for value, first, last in parts:
        if out and value is not None and out[-1][0] is value and out[-1][2] == first:
            out[-1] = (value, out[-1][1], last)
        else:
            out.append((value, first, last))
    return out


def key_of(t):
    return (t.storage_offset(), tuple(t.shape), tuple(t.stride()))


class Memory:
    """All storages of one rank. `graph` makes nodes; `unknown(tensor)` gives the value of memory
    that is read and was there before recording began, or raises."""

    def __init__(self, graph, unknown):
        self.graph, self.unknown, self.storages = graph, unknown, {}

    def storage(self, t):
        """None where the memory is new to us."""
        return self.storages.get(t.untyped_storage()._cdata)

    def new(self, t):
        kept = t.untyped_storage()
        found = self.storages[kept._cdata] = Storage(kept, t.dtype)
        return found

    def known(self, t, where=None):
        found = self.storage(t)
        if found is None:
            found = self.new(t)
            self.unknown(t, found)
        if found.dtype != t.dtype:
            raise CaptureError(
                "memory of %s is read as %s, which a capture cannot hold" % (found.dtype, t.dtype)
            )
        return found

    # reading

    def parts(self, t):
        """The contents of a tensor, in row-major order, as parts of values."""
        found = layout(t.shape, t.stride())
        plain = found and found[0] == sorted(found[0])
        storage = self.known(t)
        if not plain or found[2] is None or self.remembered(storage, t):
            v = self.read(t)
            return [(v, 0, count(v.shape))]
        start = t.storage_offset()
        parts = [p for o in found[2] for p in storage.parts(start + o, start + o + found[1])]
        return joined(parts)

    def remembered(self, storage, t):
        """The value of this very view, if nothing was written to what it covers since."""
        seen = storage.seen.get(key_of(t))
        if seen is None:
            return None
        value, low, high, segments = seen
        now = storage.covering(low, high)
        same = len(now) == len(segments) and all(a is b for a, b in zip(now, segments))
        return value if same else None

    def remember(self, storage, t, value):
        low, high = extent(t)
        storage.seen[key_of(t)] = (value, low, high, storage.covering(low, high))

    def read(self, t):
        storage = self.known(t)
        if t.numel() == 0:
            return self.graph.emit("aten::zeros", [list(t.shape)], {"dtype": t.dtype}, t)
        value = self.remembered(storage, t)
        if value is None:
            value = self.assembled(storage, t)
            self.remember(storage, t, value)
        return value

    def assembled(self, storage, t):
        found = layout(t.shape, t.stride())
        if found is None or found[2] is None:
            return self.viewed(storage, t)
        order, block, offsets = found
        start = t.storage_offset()
        parts = joined([p for o in offsets for p in storage.parts(start + o, start + o + block)])
        shape = [t.shape[d] for d in order]
        value = self.graph.put_together(parts, shape, t.dtype)
        back = [order.index(d) for d in range(len(order))]
        return value if back == sorted(back) else self.graph.permute(value, back)

    def viewed(self, storage, t):
        """By the operator that made the view."""
        made = storage.views.get(key_of(t))
        if made is None:
            raise CaptureError(
                "a view of shape %s and strides %s was made outside of the recording"
                % (tuple(t.shape), tuple(t.stride()))
            )
        base, remake, _ = made
        return remake(self.read(base))

    def view(self, base, t, remake, invert):
        """Notes that t is a view of base: how its value is made from base's, and back."""
        storage = self.known(base)
        if key_of(base) != key_of(t):
            storage.views.setdefault(key_of(t), (base, remake, invert))

    # writing

    def write(self, t, value):
        if t.numel() == 0:
            return
        storage = self.storage(t) or self.new(t)
        found = layout(t.shape, t.stride())
        if found is None or found[2] is None:
            self.write_through(storage, t, value)
            return
        order, block, offsets = found
        start = t.storage_offset()
        turned = value if order == sorted(order) else self.graph.permute(value, order)
        for k, o in enumerate(offsets):
            storage.put(start + o, start + o + block, turned, k * block)
        self.remember(storage, t, value)

    def write_through(self, storage, t, value):
        made = storage.views.get(key_of(t))
        if made is None or made[2] is None:
            raise CaptureError(
                "a write through a view of shape %s and strides %s has no functional form"
                % (tuple(t.shape), tuple(t.stride()))
            )
        base, _, invert = made
        self.write(base, invert(self.read(base), value))
        self.remember(storage, t, value)

    def write_parts(self, t, parts):
        """t is filled by parts of values in its row-major order; t is dense and not turned."""
        storage = self.storage(t) or self.new(t)
        at = t.storage_offset()
        for value, first, last in parts:
            storage.put(at, at + last - first, value, first)
            at += last - first


def extent(t):
    """[low, high): the elements of the storage between a tensor's first and last."""
    low = high = t.storage_offset()
    for n, s in zip(t.shape, t.stride()):
        high += (n - 1) * s
    return low, high + 1
