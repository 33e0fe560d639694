"""In-place operators and the aliases through which they write, made functional.

Each tensor of the captured program is a `Cell`. A view's cell knows its parent and the operator
that made it. A write to a cell computes the new value, carries it up to the root through the
inverse of each view (slice_scatter for a slice, the inverse permutation for a permute, a reshape
for a view), and leaves every other alias stale: it is made anew from its parent when it is next
read. What has no such inverse is refused.
"""

from .errors import CaptureError

# Operators whose result, where it aliases the argument, holds the same elements in the same
# row-major order.
RESHAPES = {
    "view",
    "_unsafe_view",
    "reshape",
    "_reshape_alias",
    "flatten",
    "unflatten",
    "unsqueeze",
    "squeeze",
    "alias",
    "detach",
    "detach_",
    "contiguous",
    "to",
    "type_as",
    "view_as",
    "reshape_as",
    "lift_fresh",
    "_to_copy",
    "clone",
    "expand",
    "expand_as",
    "ravel",
    "positive",
    "resolve_conj",
    "resolve_neg",
    "dropout",
    "pad",
    "constant_pad_nd",
}


class Cell:
    __slots__ = ("ssa", "parent", "remake", "invert", "version", "name")

    def __init__(self, ssa, parent=None, remake=None, invert=None, name=None):
        self.ssa, self.parent, self.remake, self.invert, self.name = (
            ssa,
            parent,
            remake,
            invert,
            name,
        )
        self.version = parent.root().version if parent else 0

    def root(self):
        cell = self
        while cell.parent is not None:
            cell = cell.parent
        return cell

    def read(self):
        """The value now: what was written through any alias is in it."""
        if self.parent is not None and self.version != self.root().version:
            self.ssa = self.remake(self.parent.read())
            self.version = self.root().version
        return self.ssa

    def write(self, new):
        path, cell, value = [], self, new
        while True:
            path.append((cell, value))
            if cell.parent is None:
                break
            value = cell.invert(cell.parent.read(), value)
            cell = cell.parent
        cell.version += 1
        for each, value in path:
            each.ssa, each.version = value, cell.version


def inverse(emit, op, args, kwargs, index):
    """How a new value of a view becomes a new value of what it views. emit(op name, overload, args)
    makes a node. args and kwargs are the view operator's, the viewed tensor first; index is the
    output's number, or None."""
    name = op._schema.name.split("::")[1]
    given = dict(zip([a.name for a in op._schema.arguments], args))
    given.update(kwargs)

    def get(key, default=None):
        return given.get(key, default)

    def whole(old, new):
        if tuple(old.shape) == tuple(new.shape):
            return new
        if old.data.numel() != new.data.numel():
            raise CaptureError(
                "the program writes through aten::%s, of which several elements share one place; "
                "write to a copy (clone) instead" % name
            )
        return emit(
            "view" if new.data.is_contiguous() else "reshape", "default", [new, list(old.shape)]
        )

    def permuted(order):
        back = [0] * len(order)
        for k, d in enumerate(order):
            back[d] = k
        return lambda old, new: emit("permute", "default", [new, back])

    def sliced(old, new, dim, start, stop, step=1):
        if tuple(old.shape) == tuple(new.shape):
            return new
        return emit("slice_scatter", "default", [old, new, dim, start, stop, step])

    refused = CaptureError(
        "the program writes in place through a view made by aten::%s, which cannot be turned into "
        "a function; write to a copy (clone) instead" % name
    )
    if name in RESHAPES:
        return whole
    if name in (
        "t",
        "numpy_T",
        "transpose",
        "swapaxes",
        "swapdims",
        "mT",
        "adjoint",
        "matrix_H",
        "permute",
        "movedim",
        "moveaxis",
    ):

        def turned(old, new):
            n = len(old.shape)
            if name == "permute":
                order = [d % n for d in get("dims")]
            elif name in ("movedim", "moveaxis"):
                from_, to = get("source"), get("destination")
                from_, to = ([v] if isinstance(v, int) else list(v) for v in (from_, to))
                from_, to = [d % n for d in from_], [d % n for d in to]
                order = [None] * n
                for a, b in zip(from_, to):
                    order[b] = a
                rest = iter(d for d in range(n) if d not in from_)
                order = [next(rest) if d is None else d for d in order]
            elif name in ("transpose", "swapaxes", "swapdims"):
                a, b = [int(v) % n for v in list(given.values())[1:3]]
                order = list(range(n))
                order[a], order[b] = order[b], order[a]
            else:
                order = (
                    list(range(n - 2)) + list(range(n - 2, n))[::-1]
                    if name != "numpy_T"
                    else list(range(n))[::-1]
                )
            return permuted(order)(old, new)

        return turned
    if name == "slice":
        return lambda old, new: sliced(
            old, new, get("dim", 0), get("start"), get("end"), get("step", 1)
        )
    if name == "narrow":
        return lambda old, new: sliced(
            old,
            new,
            get("dim"),
            get("start") % old.shape[get("dim")],
            get("start") % old.shape[get("dim")] + get("length"),
        )
    if name == "select":
        return lambda old, new: emit(
            "select_scatter", "default", [old, new, get("dim"), get("index")]
        )
    if name == "unbind":
        return lambda old, new: emit("select_scatter", "default", [old, new, get("dim", 0), index])
    if name == "diagonal":
        return lambda old, new: emit(
            "diagonal_scatter",
            "default",
            [old, new, get("offset", 0), get("dim1", 0), get("dim2", 1)],
        )
    if name in (
        "split",
        "split_with_sizes",
        "chunk",
        "tensor_split",
        "hsplit",
        "vsplit",
        "unsafe_split",
        "unsafe_chunk",
        "unsafe_split_with_sizes",
    ):

        def part(old, new):
            dim = get("dim", 0) % len(old.shape)
            sizes = get("split_size", get("split_sizes", get("split_size_or_sections")))
            if name.endswith("chunk"):
                sizes = -(-old.shape[dim] // get("chunks"))
            if sizes is None:
                raise refused
            start = sum(sizes[:index]) if isinstance(sizes, (list, tuple)) else index * sizes
            return sliced(old, new, dim, start, start + new.shape[dim])

        return part
    if name in ("view_as_complex", "view_as_real"):
        back = "view_as_real" if name == "view_as_complex" else "view_as_complex"
        return lambda old, new: emit(back, "default", [new])

    def refuse(old, new):
        raise refused

    return refuse
