"""The computation of one rank as a graph: operators as they run, made functional (program.py). A
collective is two nodes, where it is posted and where it has ended: ranks.py joins those of all
ranks."""

import os
from types import SimpleNamespace

import torch
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import _disable_current_modes

from ..alias import Cell
from ..core import check
from ..errors import CaptureError
from ..files import write_safetensors
from ..program import SSA, Program

REDUCTIONS = ("sum", "avg", "max", "min")


class Live(Program):
    """A program whose operators have just run: results say which of them are views."""

    result = None

    def parents(self, node, target, args, kwargs):
        if not args or not isinstance(args[0], Cell) or target.namespace != "aten":
            return {}
        base, result = node.args[0], self.result

        def views(t):
            return isinstance(t, torch.Tensor) and own(t) == own(base)

        if isinstance(result, torch.Tensor):
            return {None: args[0]} if views(result) else {}
        return {k: args[0] for k, t in enumerate(result) if views(t)}


def local(t):
    """This rank's part of a tensor that is spread over ranks, or that is on its way."""
    for inside in ("_local_tensor", "elem"):
        if isinstance(getattr(t, inside, None), torch.Tensor):
            return local(getattr(t, inside))
    return t


def own(t):
    return t.untyped_storage()._cdata


def quiet(f):
    """Our own operators are none of the program's."""

    def method(*args, **kwargs):
        with _disable_current_modes(), torch.no_grad():
            return f(*args, **kwargs)

    return method


class Graph:
    def __init__(self, watch, module, inputs):
        self.storages, self.module = watch.storages, module
        self.program, self.cells, self.roots = Live(), {}, {}
        self.outputs, self.posts, self.constants = [], {}, 0
        with _disable_current_modes(), torch.no_grad():
            for name, t in module.named_parameters():
                self.leaf("parameter", name, t, "p_" + name)
            for name, t in module.named_buffers():
                self.leaf("buffer", name, t, "b_" + name)
            for name, t in inputs.items():
                if isinstance(t, torch.Tensor):
                    self.leaf("input", name, t, name)

    # ---- tensors ----

    def key(self, t):
        place = (t.storage_offset(), tuple(t.shape), t.stride(), t.dtype)
        return (self.storages.number(t),) + place

    def leaf(self, kind, name, t, id):
        t = local(t)
        cell = self.program.leaf(kind, name, t.detach().clone(), id)
        self.cells[self.key(t)] = cell
        self.roots.setdefault(self.storages.number(t), (cell, t.detach()))
        return cell

    def cell(self, t):
        """The graph's node of a tensor. One that it has not seen is a constant; one that lies in
        the memory of a tensor that it has seen is a part of that."""
        key = self.key(t)
        if key in self.cells:
            return self.cells[key]
        if key[0] not in self.roots:
            self.constants += 1
            name = "constant.%d" % self.constants
            return self.leaf("constant", name, t, name.replace(".", "_"))
        whole, base = self.roots[key[0]]
        first = t.storage_offset() - base.storage_offset()
        if not (t.is_contiguous() and base.is_contiguous() and base.dtype == t.dtype):
            raise CaptureError("the program has two tensors of other layouts in one memory")
        if first < 0 or first + t.numel() > base.numel():
            raise CaptureError("the program has a tensor beside another one in one memory")
        part, at = base, whole
        for op, args in (
            (torch.ops.aten.view.default, [[-1]]),
            (torch.ops.aten.slice.Tensor, [0, first, first + t.numel()]),
            (torch.ops.aten.view.default, [list(t.shape)]),
        ):
            made = op(part, *args)
            self.program.result = made
            node = SimpleNamespace(name=op._schema.name.split("::")[1], args=[part], target=op)
            part, at = made, self.program.operator(node, op, [at] + args, {})
        self.cells[key] = at
        return at

    def known(self, t, cell):
        key = self.key(t)
        if key[0] is None or key in self.cells:
            return
        self.cells[key] = cell
        self.roots.setdefault(key[0], (cell, t.detach()))

    # ---- operators ----

    @quiet
    def before(self, func, args, kwargs):
        """Called before an operator runs, which may write to its arguments. Returns what is to be
        called with its result."""
        if func._schema.name in ("profiler::_record_function_exit",):
            return None
        cells = pytree.tree_map_only(torch.Tensor, self.cell, (list(args), dict(kwargs)))
        node = SimpleNamespace(
            name=func._schema.name.split("::")[1].strip("_"), args=args, target=func
        )

        @quiet
        def run(result, source, scope):
            self.program.here = (scope, (source, None))
            self.program.result = result
            out = self.program.operator(node, func, *cells)
            tensors, out = pytree.tree_leaves(result), pytree.tree_leaves(out)
            for t, c in zip(tensors, out):
                if isinstance(t, torch.Tensor) and isinstance(c, Cell):
                    self.known(t, c)

        return run

    # ---- communication ----

    def node(self, op, **more):
        id = self.program.fresh(op)
        self.program.nodes.append(dict({"id": id, "op": "c10d::" + op}, **more))
        return id

    def value(self, id, data):
        self.program.trace[id] = data
        return SSA(id, data)

    def seq(self, *key):
        self.posts[key] = self.posts.get(key, -1) + 1
        return self.posts[key]

    @quiet
    def collective(self, one, event):
        """An operation is posted. Returns what is to be called when it has ended."""
        op, e = one.event["op"], one.event
        if op == "barrier":
            return None
        number, _, ranks = e["group"]
        if op in ("send", "recv"):
            return self.message(op, e, one, number, event["source"])
        if op == "scatter":
            raise CaptureError("scatter has no place in a capture of ranks; record its events")
        if e.get("reduce", "sum") not in REDUCTIONS:
            raise CaptureError("a capture of ranks has no reduction %s" % e["reduce"])
        pairs = list(zip(one.inputs, one.results)) if op == "all_reduce" else None
        ends = [
            self.join(op, e, ins, outs, [number, ranks], event["source"])
            for ins, outs in (
                [([i], [o]) for i, o in pairs] if pairs else [(one.inputs, one.results)]
            )
        ]

        @quiet
        def then():
            for end in ends:
                end()

        return then

    def message(self, op, e, one, number, source):
        peer, tag = e["peer"], e["tag"]
        k = self.seq(op, number, peer, tag)
        if op == "send":
            ref = self.cell(one.inputs[0]).read().id
            self.node("send", peer=peer, tag=tag, group=number, seq=k, ref=ref, source=source)
            return None
        target, cell = one.results[0], self.cell(one.results[0])

        @quiet
        def then():
            meta = [self.program.meta(target)]
            id = self.node(
                "receive", peer=peer, tag=tag, group=number, seq=k, outputs=meta, source=source
            )
            cell.write(self.value(id, target.detach().clone()))

        return then

    def joined(self, tensors):
        """A rank's contribution, as one tensor along dimension 0."""
        parts = [self.cell(t).read() for t in tensors]
        parts = [self.emit("view", "default", [p, [1]]) if not p.shape else p for p in parts]
        return parts[0] if len(parts) == 1 else self.emit("cat", "default", [parts, 0])

    def emit(self, name, overload, args):
        return self.program.emit(name, overload, args)

    def join(self, op, e, inputs, results, group, source):
        """One collective of one tensor: its post now; its result when that is there."""
        if op == "all_to_all" and (
            len(set(e.get("in_splits", []))) > 1 or len(set(e.get("out_splits", []))) > 1
        ):
            raise CaptureError("a capture of ranks has no all_to_all of uneven parts")
        number, ranks = group
        if op in ("broadcast", "all_reduce", "reduce") and not inputs[0].shape:
            given = self.cell(inputs[0]).read()
        else:
            given = self.joined(inputs)
        k = self.seq("group", number, tuple(ranks))
        how = {"group": number, "ranks": ranks, "seq": k}
        kind = {"reduce": "all_reduce", "gather": "all_gather"}.get(op, op)
        what = {"kind": kind, "reduce": e.get("reduce"), "root": e.get("root")}
        what["root"] = what["root"] if op == "broadcast" else None
        self.node("post", ref=given.id, source=source, **how, **what)
        cells = [self.cell(t) if t.numel() else None for t in results]

        def end():
            if not results:
                return  # only the root has one
            data = [t.detach().clone() for t in results]
            rows = [d.reshape(1) if not d.shape else d for d in data]
            whole = rows[0] if len(rows) == 1 else torch.cat(rows, 0)
            shape = self.shape(kind, given.shape, whole, len(ranks))
            outputs = [{"shape": shape, "dtype": self.program.meta(whole)["dtype"]}]
            id = self.node("done", outputs=outputs, **how)
            self.spread(self.value(id, whole.reshape(shape)), cells, data)

        return end

    @staticmethod
    def shape(kind, given, whole, n):
        """The shape that the collective has: that of a gathered tensor is n times as long."""
        rest = list(given[1:])
        row = max(1, torch.Size(rest).numel())
        if kind in ("all_gather", "reduce_scatter"):
            return [whole.numel() // row] + rest
        return list(given)

    def spread(self, whole, cells, data):
        at = 0
        for cell, d in zip(cells, data):
            if cell is None:
                continue
            n = whole.shape[0] * d.numel() // whole.data.numel() if whole.shape else 1
            part = whole
            if n != (whole.shape[0] if whole.shape else 1):
                part = self.emit("slice", "Tensor", [whole, 0, at, at + n])
            at += n
            if part.shape != tuple(d.shape):
                part = self.emit("view", "default", [part, list(d.shape)])
            cell.write(part)

    # ---- what comes out ----

    @quiet
    def output(self, name, tensor):
        tensor = local(tensor)
        self.outputs.append((name, self.cell(tensor).read(), tensor.detach().clone()))

    @quiet
    def close(self):
        for name, p in self.module.named_parameters():
            grad = local(p.grad)
            cell = None if grad is None else self.cells.get(self.key(grad))
            if cell and cell.read().id not in self.program.leaves:
                self.outputs.append(("grad." + name, cell.read(), grad.detach().clone()))
        if not self.outputs:
            raise CaptureError("what is recorded has no output: name one with output(NAME, TENSOR)")
        names = [n for n, _, _ in self.outputs]
        check(names, [s.data for _, s, _ in self.outputs], [t for _, _, t in self.outputs], "")

    @quiet
    def write(self, folder, rank):
        """The leaves' values as files; returns the graph."""
        for kinds, what in (
            (("input",), "inputs"),
            (("parameter", "buffer", "constant"), "weights"),
        ):
            held = {n: t for k, n, t in self.program.leaves.values() if k in kinds}
            write_safetensors(os.path.join(folder, "%s%d" % (what, rank)), held)
        write_safetensors(os.path.join(folder, "trace%d" % rank), self.program.trace)
        outputs = [{"name": n, "ref": s.id} for n, s, _ in self.outputs]
        return {"nodes": self.program.nodes, "outputs": outputs}
