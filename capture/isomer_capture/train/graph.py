"""The graph that a rank's recording grows: nodes of graph.json, with what it is that they hold."""

import torch

from ..files import dtype_name, value
from ..program import Program
from .memory import count


class Node:
    """A value: the id by which graph.json refers to it, its shape and dtype."""

    __slots__ = ("id", "shape", "dtype")

    def __init__(self, id, shape, dtype):
        self.id, self.shape, self.dtype = id, tuple(shape), dtype

    @property
    def sizes(self):
        return self.shape

    def fits(self, other):
        return self.shape == other.shape

    @property
    def data(self):
        """For alias.inverse, which asks about a value's shape."""
        return torch.empty(self.shape, dtype=self.dtype, device="meta")


class Graph:
    def __init__(self):
        self.nodes, self.ids, self.here = [], set(), lambda: {}
        self.counts = lambda op, args: None  # what a number in it counts

    fresh = Program.fresh  # an id that no node has

    def leaf(self, kind, name, t):
        id = self.fresh({"parameter": "p_", "constant": "c_"}.get(kind, "") + name)
        meta = {"shape": list(t.shape), "dtype": dtype_name(t.dtype)}
        self.nodes.append({"id": id, "op": kind, "name": name, "outputs": [meta]})
        return Node(id, t.shape, t.dtype)

    def emit(self, op, args, kwargs, like, several=False, **more):
        """like: what has the result's shape and dtype; a list of them for several results."""
        likes = list(like) if several else [like]
        id = self.fresh(op.split("::")[1].split(".")[0])
        node = {
            "id": id,
            "op": op[: -len(".default")] if op.endswith(".default") else op,
            "args": [value(a) for a in args],
            "kwargs": {k: value(v) for k, v in kwargs.items()},
            "outputs": [{"shape": list(t.shape), "dtype": dtype_name(t.dtype)} for t in likes],
        }
        node.update(self.here())
        counts = self.counts(op, args)
        if counts:
            node["counts"] = counts
        node.update(more)
        self.nodes.append(node)
        if not several:
            return Node(id, like.shape, like.dtype)
        return [self.item(id, k, t) for k, t in enumerate(likes)]

    def item(self, owner, k, like):
        id = self.fresh("%s_%d" % (owner, k))
        meta = {"shape": list(like.shape), "dtype": dtype_name(like.dtype)}
        node = {"id": id, "op": "getitem", "args": [{"ref": owner}, k], "kwargs": {}}
        self.nodes.append(dict(node, outputs=[meta], **self.here()))
        return Node(id, like.shape, like.dtype)

    # rearrangements

    def permute(self, v, order):
        shape = [v.shape[d] for d in order]
        return self.emit("aten::permute", [v, list(order)], {}, Node("", shape, v.dtype))

    def view(self, v, shape):
        if tuple(v.shape) == tuple(shape):
            return v
        return self.emit("aten::view", [v, list(shape)], {}, Node("", shape, v.dtype))

    def slice(self, v, dim, first, last):
        if first == 0 and last == v.shape[dim]:
            return v
        shape = list(v.shape)
        shape[dim] = last - first
        return self.emit("aten::slice.Tensor", [v, dim, first, last], {}, Node("", shape, v.dtype))

    def cat(self, values, dim=0):
        if len(values) == 1:
            return values[0]
        shape = list(values[0].shape)
        shape[dim] = sum(v.shape[dim] for v in values)
        return self.emit("aten::cat", [values, dim], {}, Node("", shape, values[0].dtype))

    def zeros(self, shape, dtype):
        like = Node("", shape, dtype)
        return self.emit("aten::zeros", [list(shape)], {"dtype": dtype}, like)

    def cast(self, v, dtype):
        if v.dtype == dtype:
            return v
        return self.emit("aten::to.dtype", [v, dtype], {}, Node("", v.shape, dtype))

    def part(self, v, first, last):
        """Elements [first, last) in row-major order: rows where they are whole ones, else flat."""
        if (first, last) == (0, count(v.shape)):
            return v
        row = count(v.shape[1:])
        if len(v.shape) > 1 and row and first % row == 0 and last % row == 0:
            return self.slice(v, 0, first // row, last // row)
        return self.slice(self.view(v, [count(v.shape)]), 0, first, last)

    def put_together(self, parts, shape, dtype):
        """Parts of values as one value of this shape; without one, rows where all are rows, else
        flat. Memory that nobody wrote is `empty`."""
        values = []
        for v, first, last in parts:
            if v is None:
                like = Node("", [last - first], dtype)
                v = self.emit("aten::empty.memory_format", [[last - first]], {"dtype": dtype}, like)
                first, last = 0, last - first
            values.append(self.part(v, first, last))
        rest = values[0].shape[1:] if shape is None else tuple(shape[1:])
        if len(values) > 1 and not all(len(v.shape) and v.shape[1:] == rest for v in values):
            values = [self.view(v, [count(v.shape)]) for v in values]
        out = self.cat(values)
        return out if shape is None else self.view(out, shape)
