"""A module as a list of functional operators: torch.export's graph, flattened and run as it is
read.

Every node is executed on the example's own tensors when it is added. That gives the trace, shows
which results alias their arguments, and lets `capture` check in the end that the list computes what
the module computes.
"""

import operator
import os
import re
import sys

import torch
from torch.utils import _pytree as pytree

from . import forked
from .alias import Cell, inverse
from .errors import CaptureError, Unreadable, short
from .files import dtype_name, value

SKIPPED = (
    "_assert_async",
    "_assert_scalar",
    "_assert_tensor_metadata",
    "sym_constrain_range",
    "sym_constrain_range_for_size",
    "_print",
)
LIMIT = 1 << 62


class Counted:
    """A number that depends on the values in a tensor, which the program has not gone on with yet:
    a size of what was selected, or arithmetic on such sizes."""

    __slots__ = ("number", "node")

    def __init__(self, number, node):
        self.number, self.node = number, node


def uncounted(tree):
    return pytree.tree_map_only(Counted, lambda c: c.number, tree)


class SSA:
    """One tensor: the node's id, its value, and where sizes are open, a stand-in that has symbols
    for them."""

    __slots__ = ("id", "data", "open")

    def __init__(self, id, data, open=None):
        self.id, self.data, self.open = id, data, open

    @property
    def shape(self):
        return tuple(self.data.shape)

    @property
    def sizes(self):
        """The shape as arguments of operators have it, with symbols."""
        return self.shape if self.open is None else tuple(self.open.shape)

    def fits(self, other):
        """Whether the other tensor has this one's shape, whatever the symbols are."""
        return [str(s) for s in self.sizes] == [str(s) for s in other.sizes]


def relative(path):
    """A source file's path from its package's folder on."""
    path = path.replace("\\", "/")
    own = os.path.dirname(os.path.abspath(__file__)) + "/"
    if path.startswith(own):  # which need not be on the path (elsewhere.py)
        return "isomer_capture/" + path.removeprefix(own)
    for mark in ("/site-packages/", "/dist-packages/"):
        if mark in path:
            return path.split(mark)[-1]
    roots = sorted(
        (p for p in sys.path if p and path.startswith(os.path.abspath(p) + "/")), key=len
    )
    return os.path.relpath(path, roots[-1]) if roots else os.path.basename(path)


# Packages and modules through which a user's line comes to an operator.
PASSED = ("torch/", "isomer_capture/", "<", "threading")
THROUGH = ("runpy.py", "contextlib.py", "functools.py", "typing_extensions.py", "warnings.py")


def users_line(frame):
    """file:line of the innermost frame that is the user's."""
    while frame:
        path = relative(frame.f_code.co_filename)
        if path == forked.HERE:
            return None
        if not path.startswith(PASSED) and path not in THROUGH:
            return "%s:%d" % (path, frame.f_lineno)
        frame = frame.f_back
    return None


FRAME = re.compile(r'^\s*File "([^"]+)", line (\d+)(?:, in (\w+))?', re.M)


def source_of(node):
    """(source, caller): file:line of the innermost frame outside PyTorch and outside this package,
    and where that is no forward, of the forward that called it; None for what is not known."""
    found = FRAME.findall(node.meta.get("stack_trace") or "")
    frames = [(relative(f), n, name) for f, n, name in found]
    frames = [f for f in frames if not f[0].startswith(("torch/", "isomer_capture/", "<"))]
    if not frames:
        return None, None
    places = ["%s:%s" % f[:2] for f in frames]
    callers = [at for at, f in zip(places, frames) if f[2] == "forward"]
    inner = frames[-1][2] in ("", "forward")
    return places[-1], callers[-1] if callers and not inner else None


def scope_of(node):
    """The path of the module whose forward made a node, "" for the root; None where nothing is
    said of it."""
    stack = node.meta.get("nn_module_stack")
    if not stack:
        return None
    entry = list(stack.values())[-1]
    path = entry[0] if isinstance(entry, tuple) else ""
    return path.replace("L['self'].", "").replace("L['self']", "")


def storage(t):
    try:
        return t.untyped_storage()._cdata
    except (NotImplementedError, RuntimeError, AttributeError):
        return None


class Program:
    """nodes: JSON objects in order; leaves: id to (kind, name, tensor); outputs: SSA values."""

    def __init__(self, strip="", attributes=None, specialize=False, sizes=None):
        """sizes: of a program that leaves some open (sizes.py)."""
        self.sizes = sizes
        self.nodes, self.trace, self.ids, self.calls = [], {}, set(), []
        self.leaves, self.roots = {}, {}
        self.strip, self.attributes, self.specialize = strip, attributes or {}, specialize
        self.skipped, self.inlined, self.functionalized, self.folded = {}, {}, {}, {}
        self.guards, self.no_tensors = [], []
        self.here = (None, (None, None))  # scope, and source with caller, of what is being read

    # ---- nodes ----

    def fresh(self, name):
        name = re.sub(r"[^A-Za-z0-9_.]", "_", name) or "n"
        out, k = name, 0
        while out in self.ids:
            k += 1
            out = "%s_%d" % (name, k)
        self.ids.add(out)
        return out

    def stripped(self, path):
        if self.strip and (path == self.strip or path.startswith(self.strip + ".")):
            return path[len(self.strip) + 1 :]
        return path

    def leaf(self, kind, name, tensor, id, open=None):
        id = self.fresh(id)
        if self.sizes and open is None:
            open = self.sizes.mode.from_tensor(tensor, static_shapes=True)
        meta = self.meta(tensor, open)
        node = {"id": id, "op": kind, "name": name, "outputs": [meta]}
        if not tensor.is_contiguous() or tensor.storage_offset():
            node["strided"] = True  # values are written row by row, without strides
        self.nodes.append(node)
        self.leaves[id] = (kind, name, tensor)
        cell = Cell(SSA(id, tensor, open), name=name)
        self.roots[id] = cell
        return cell

    def meta(self, t, open=None):
        shape = list(t.shape)
        if self.sizes and open is not None:
            if [self.sizes.number(s) for s in open.shape] != shape:
                raise CaptureError(
                    "a tensor is %s where torch.export has %s" % (shape, list(open.shape))
                )
            shape = [self.sizes.text(s) for s in open.shape]
        return {"shape": shape, "dtype": dtype_name(t.dtype)}

    def stand_ins(self, run, args, kwargs, known, n):
        """The n results once more, with symbols for sizes; Nones where all sizes are fixed.
        `known`: what torch.export has of the node, if it has it."""
        if not self.sizes:
            return [None] * n
        if known is None:
            given = pytree.tree_map_only(SSA, lambda s: s.open, (list(args), dict(kwargs)))
            known = self.sizes.run(run, given)
        return list(known) if isinstance(known, (list, tuple)) else [known]

    def add(self, target, args, kwargs, id, extra=None, run=None, known=None):
        """One call of an operator on SSA values: an SSA, or a list of them for several results."""
        data = pytree.tree_map_only(SSA, lambda s: s.data, (list(args), dict(kwargs)))
        said = (list(args), dict(kwargs))
        if self.sizes:
            data, said = self.sizes.plain(data), self.sizes.written(said)
        try:
            result = (run or target)(*data[0], **data[1])
        except CaptureError:
            raise
        except Exception as e:
            raise CaptureError("%s cannot be run here: %s" % (target.name(), short(e))) from e
        if isinstance(result, torch.Tensor) and "empty" in target._schema.name.split("::")[1]:
            result.zero_()
        several = isinstance(result, (list, tuple))
        tensors = list(result) if several else [result]
        if not all(isinstance(t, torch.Tensor) for t in tensors):
            raise CaptureError("%s returns something other than tensors" % target.name())
        opens = self.stand_ins(run or target, args, kwargs, known, len(tensors))
        id = self.fresh(id)
        node = {
            "id": id,
            "op": target.name(),
            "args": [value(a) for a in said[0]],
            "kwargs": {k: value(v) for k, v in said[1].items()},
            "outputs": [self.meta(t, o) for t, o in zip(tensors, opens)],
        }
        self.place(node, extra)
        self.calls.append((node, run or target, list(args), dict(kwargs), several))
        for k, t in enumerate(tensors):
            self.trace["%s.%d" % (id, k) if several else id] = t
        if not several:
            return SSA(id, tensors[0], opens[0])
        return [(id, k, t, o) for k, (t, o) in enumerate(zip(tensors, opens))]

    def place(self, node, extra=None):
        scope, places = self.here
        if scope:
            node["scope"] = scope
        for key, place in zip(("source", "caller"), places):
            if place:
                node[key] = place
        node.update(extra or {})
        self.nodes.append(node)

    def project(self, parts, k, id):
        """The k-th result of a node with several."""
        owner, k, t, open = parts[k]
        id = self.fresh(id)
        self.place(
            {
                "id": id,
                "op": "getitem",
                "args": [{"ref": owner}, k],
                "kwargs": {},
                "outputs": [self.meta(t, open)],
            }
        )
        self.calls.append((self.nodes[-1], None, [owner, k], {}, False))
        self.trace[id] = t
        return SSA(id, t, open)

    def emit(self, name, overload, args):
        """An operator of ours: what a write through a view becomes."""
        return self.add(getattr(getattr(torch.ops.aten, name), overload), args, {}, name)

    # ---- reading torch.export's graph ----

    def read(self, graph_module, env):
        """Adds the nodes of a graph; env holds what its placeholders stand for. Returns its
        outputs."""
        for node in graph_module.graph.nodes:
            if node.op == "placeholder":
                continue
            if node.op == "output":
                return self.lookup(node.args[0], env)
            scope, places = scope_of(node), source_of(node)
            self.here = (
                self.here[0] if scope is None else self.stripped(scope),
                self.here[1] if places[0] is None else places,
            )
            if node.op == "get_attr":
                env[node] = self.attribute(graph_module, node)
            elif node.op == "call_function":
                env[node] = self.call(node, env)
            else:
                raise CaptureError(
                    "torch.export left a %s (%s) in the graph" % (node.op, node.target)
                )
        return None

    def attribute(self, graph_module, node):
        thing = graph_module
        for part in node.target.split("."):
            thing = getattr(thing, part)
        if isinstance(thing, torch.Tensor):
            key = ("constant", id(thing))
            if key not in self.roots:
                self.roots[key] = self.leaf(
                    "constant", node.target, real(thing, node.target), node.name
                )
            return self.roots[key]
        return thing

    @staticmethod
    def lookup(x, env):
        return pytree.tree_map_only(torch.fx.Node, lambda n: env[n], x)

    def call(self, node, env):
        target, args, kwargs = (
            node.target,
            self.lookup(list(node.args), env),
            self.lookup(dict(node.kwargs), env),
        )
        if isinstance(target, torch._ops.OpOverload):
            name = target._schema.name.split("::")[1]
            if name in SKIPPED:
                self.skipped[target.name()] = self.skipped.get(target.name(), 0) + 1
                return None
            return self.operator(node, target, args, kwargs)
        if target is operator.getitem:
            return args[0][args[1]]
        if isinstance(target, torch._ops.HigherOrderOperator):
            return self.wrapper(node, target, args, kwargs)
        name = getattr(target, "__name__", str(target))
        # To call these would leave the process inside of a vmap.
        if "batch_dim" in name or "vmap" in name:
            raise Unreadable(
                (
                    "the program uses torch.vmap, which torch.export leaves in the graph; write "
                    "the dimension out"
                )
            )
        if callable(target) and not any(
            isinstance(a, Cell) for a in pytree.tree_leaves((args, kwargs))
        ):
            given = uncounted((args, kwargs))
            return self.size(node, lambda: target(*given[0], **given[1]))  # arithmetic on sizes
        raise Unreadable("%s is no operator that a capture can hold" % name)

    def wrapper(self, node, target, args, kwargs):
        """Wrappers without a meaning of their own are replaced by what they wrap."""
        name = target.name() if callable(target.name) else str(target)
        if name == "auto_functionalized" or name == "auto_functionalized_v2":
            raise CaptureError(
                "torch.export made a functional wrapper (%s); use a later PyTorch" % name
            )
        rest = [a for a in args if not isinstance(a, torch.fx.GraphModule)]
        bodies = [a for a in args if isinstance(a, torch.fx.GraphModule)]
        wraps = (
            "wrap_with_set_grad_enabled",
            "wrap_with_autocast",
            "invoke_subgraph",
            "wrap",
            "wrap_activation_checkpoint",
            "tag_activation_checkpoint",
            "hints_wrapper",
            "strict_mode",
            "checkpoint",
        )
        if len(bodies) != 1 or name not in wraps:
            advice = (
                "choose the branch before capturing"
                if name == "cond"
                else "write it out with operators, a loop as its steps"
            )
            raise CaptureError(
                "the program uses torch's %s, which a capture cannot hold; %s" % (name, advice)
            )
        if name == "wrap_with_autocast":
            at = args.index(bodies[0])
            enabled = args[2] if at > 2 else kwargs.get("enabled", True)
            if enabled:
                raise CaptureError(
                    "the program turns autocast on (%s); capture it with autocast off"
                    % (args[:at],)
                )
        operands = args[args.index(bodies[0]) + 1 :]
        if name == "invoke_subgraph":
            operands = [a for a in rest if not isinstance(a, str)]
        self.inlined[name] = self.inlined.get(name, 0) + 1
        inner = [n for n in bodies[0].graph.nodes if n.op == "placeholder"]
        here = self.here
        out = self.read(bodies[0], dict(zip(inner, operands)))
        self.here = here
        return out

    # ---- one operator ----

    def operator(self, node, target, args, kwargs):
        schema, name = target._schema, target._schema.name.split("::")[1]
        cells = [c for c in pytree.tree_leaves((args, kwargs)) if isinstance(c, Cell)]
        if name in ("_local_scalar_dense", "item"):
            return self.fold(node, cells[0].read().data.item())
        if target.name().startswith("aten::sym_") or name in ("numel", "size", "stride"):
            data = uncounted(pytree.tree_map_only(Cell, lambda c: c.read().data, (args, kwargs)))
            return self.size(node, lambda: target(*data[0], **data[1]))
        if name in ("lift_fresh_copy", "lift_fresh", "detach_", "requires_grad_"):
            return cells[0]
        written = self.written(target, args, kwargs)
        if not node.users and not written:
            return None  # drawn, say, and then not read
        self.refuse_random(target, args, kwargs)
        args, kwargs = self.plain(node, args), self.plain(node, kwargs)
        if written:
            return self.mutation(node, target, args, kwargs, written)
        return self.function(node, target, args, kwargs)

    def size(self, node, compute):
        """What a node computes with sizes: torch.export's symbols where sizes are open. Where none
        is, only a size that depends on data has a symbol."""
        if self.sizes:
            return node.meta["val"]
        known = getattr(getattr(node.meta.get("val"), "node", None), "expr", None)
        return Counted(compute(), node) if getattr(known, "free_symbols", None) else compute()

    def plain(self, node, x):
        """Symbolic sizes that are known, as numbers; those of data are guarded."""
        if self.sizes:
            return x

        def number(v):
            expr = v.node.expr if hasattr(v, "node") else v
            try:
                return type(v).__name__ == "SymFloat" and float(expr) or int(expr)
            except TypeError:
                raise CaptureError("a size in %s depends on data" % node.target) from None

        x = pytree.tree_map_only(Counted, lambda c: self.fold(c.node, c.number), x)
        return pytree.tree_map_only((torch.SymInt, torch.SymFloat), number, x)

    def fold(self, node, number):
        source = source_of(node)[0]
        if not self.specialize:
            raise CaptureError(
                "%s: the program reads a number out of a tensor (%s) and goes on with it; pass "
                "specialize=True (--specialize) to capture it for these inputs only"
                % (source or "the program", node.name)
            )
        if node.name not in self.folded:
            name = getattr(node.target, "name", lambda: node.target.__name__)()
            guard = {"reads": [], "op": name, "value": value(number)}
            self.guards.append(dict(guard, source=source) if source else guard)
        self.folded[node.name] = number
        return number

    def number_out(self, x):
        """An output that is no tensor: a number, a text, none, or a size as an expression. A number
        of another formula stays what it is, of which a capture says no more than its type."""
        if isinstance(x, Counted):
            return self.fold(x.node, x.number)
        if not self.sizes or not isinstance(x, (torch.SymInt, torch.SymFloat, torch.SymBool)):
            return x
        try:
            return self.sizes.written(x)
        except CaptureError:
            return x

    @staticmethod
    def refuse_random(target, args, kwargs):
        if torch.Tag.nondeterministic_seeded not in target.tags:
            return
        bound = dict(zip([a.name for a in target._schema.arguments], args))
        bound.update(kwargs)
        off = {"train": False, "training": False, "dropout_p": 0.0, "p": 0.0, "dropout": 0.0}
        given = {
            a.name: bound.get(a.name, a.default_value if a.has_default_value() else None)
            for a in target._schema.arguments
        }
        if not any(given.get(k, ...) == v for k, v in off.items()):
            raise CaptureError(
                "%s draws random numbers; call eval() on the module first" % target.name()
            )

    @staticmethod
    def written(target, args, kwargs):
        """Names of the arguments that the call writes to, in the schema's order, and their
        cells."""
        out = []
        for k, a in enumerate(target._schema.arguments):
            if a.alias_info is not None and a.alias_info.is_write:
                given = args[k] if k < len(args) and not a.kwarg_only else kwargs.get(a.name)
                for cell in given if isinstance(given, (list, tuple)) else [given]:
                    if isinstance(cell, Cell):
                        out.append((a.name, cell))
                    elif given is not None:
                        raise CaptureError(
                            "%s writes to something that is no tensor" % target.name()
                        )
        return out

    def function(self, node, target, args, kwargs):
        read = pytree.tree_map_only(Cell, lambda c: c.read(), (args, kwargs))
        extra = self.context(target, read)
        if target.namespace != "aten":
            read = ([], self.named(target, *read))
        out = self.add(target, *read, node.name, extra, known=node.meta.get("val"))
        parents = self.parents(node, target, args, kwargs)
        if isinstance(out, SSA):
            return self.cell(out, parents.get(None), target, read, None, node.name)
        cells = []
        for k in range(len(out)):
            ssa = self.project(out, k, "%s_%d" % (node.name, k))
            cells.append(self.cell(ssa, parents.get(k), target, read, k, node.name))
        return cells

    def cell(self, ssa, parent, target, read, index, name):
        if parent is None:
            return Cell(ssa)
        args, kwargs = read

        def remake(new):
            fresh = [new] + list(args[1:])
            out = self.add(target, fresh, kwargs, name)
            return out if index is None else self.project(out, index, "%s_%d" % (name, index))

        return Cell(ssa, parent, remake, inverse(self.emit, target, args, kwargs, index))

    @staticmethod
    def parents(node, target, args, kwargs):
        """Which results are views of the first argument, by result (None: the only one), as
        torch.export saw it."""
        if not args or not isinstance(args[0], Cell) or not isinstance(node.args[0], torch.fx.Node):
            return {}
        if target.namespace != "aten":
            return {}
        base, val = node.args[0].meta.get("val"), node.meta.get("val")
        if not isinstance(base, torch.Tensor):
            return {None: args[0]} if isinstance(val, torch.Tensor) and target.is_view else {}
        own = storage(base)
        if isinstance(val, torch.Tensor):
            return {None: args[0]} if own is not None and storage(val) == own else {}
        return {k: args[0] for k, v in enumerate(val) if own is not None and storage(v) == own}

    # ---- writes ----

    def mutation(self, node, target, args, kwargs, written):
        name = target._schema.name.split("::")[1]
        self.functionalized[target.name()] = self.functionalized.get(target.name(), 0) + 1
        if target.namespace != "aten":
            return self.custom_mutation(node, target, args, kwargs, written)
        if name in ("set_", "resize_", "resize_as_", "swap_", "as_strided_"):
            raise CaptureError(
                (
                    "the program calls aten::%s, which changes a tensor's memory; a capture cannot "
                    "hold it"
                )
                % name
            )
        if name == "copy_" and len(written) == 1:
            written[0][1].write(self.copied(written[0][1].read(), args[1].read()))
            return written[0][1]
        if name == "fill_diagonal_" and self.one_diagonal(target, args, kwargs):
            old, number = written[0][1].read(), args[1]
            line = self.add(torch.ops.aten.diagonal.default, [old], {}, "diagonal")
            line = self.add(torch.ops.aten.fill.Scalar, [line, number], {}, "fill")
            new = self.add(torch.ops.aten.diagonal_scatter.default, [old, line], {}, node.name)
            written[0][1].write(new)
            return written[0][1]
        read = pytree.tree_map_only(Cell, lambda c: c.read(), (args, kwargs))
        function, args, kwargs = self.counterpart(target, read[0], read[1], [w for w, _ in written])
        new = self.add(function, args, kwargs, node.name)
        new = (
            [new]
            if isinstance(new, SSA)
            else [self.project(new, k, node.name + "_%d" % k) for k in range(len(new))]
        )
        cells = [c for _, c in written]
        if len(new) != len(cells):
            raise CaptureError(
                "%s writes to %d tensors and %s returns %d"
                % (target.name(), len(cells), function.name(), len(new))
            )
        for cell, ssa in zip(cells, new):
            cell.write(self.fitted(cell.read(), ssa))
        return cells[0] if len(cells) == 1 else cells

    def copied(self, old, new):
        """The contents of `old` after new was copied into it."""
        if new.data.dtype != old.data.dtype:
            new = self.add(torch.ops.aten.to.dtype, [new, old.data.dtype], {}, "to")
        if not new.fits(old):
            new = self.add(torch.ops.aten.expand.default, [new, list(old.sizes)], {}, "expand")
        return new

    def fitted(self, old, new):
        if new.shape != old.shape:
            raise CaptureError(
                "an in-place operator changes a tensor's shape from %s to %s"
                % (old.shape, new.shape)
            )
        return self.copied(old, new)

    @classmethod
    def one_diagonal(cls, target, args, kwargs):
        """Whether fill_diagonal_ writes the elements that diagonal() reads: of a matrix, and of a
        tall one not also those where it begins anew."""
        given = cls.named(target, args, kwargs)
        sizes = given["self"].read().data.shape
        return len(sizes) == 2 and (not given.get("wrap") or sizes[0] <= sizes[1] + 1)

    @staticmethod
    def counterpart(target, args, kwargs, written):
        """The operator that returns what an in-place or `out` operator writes."""
        schema = target._schema
        space, name = schema.name.split("::")
        packet = getattr(
            torch.ops.aten,
            name[:-1] if name.endswith("_") and not name.endswith("__") else name,
            None,
        )
        if name.startswith("__i") and name.endswith("__"):
            packet = getattr(torch.ops.aten, "__" + name[3:], None)
        want = [
            (a.name, str(a.type))
            for a in schema.arguments
            if not (name[-1] != "_" and a.name in written)
        ]
        for overload in packet.overloads() if packet is not None else []:
            other = getattr(packet, overload)
            if [
                (a.name, str(a.type)) for a in other._schema.arguments
            ] == want and not other._schema.is_mutable:
                return (
                    other,
                    args,
                    {k: v for k, v in kwargs.items() if name[-1] == "_" or k not in written},
                )
        if name in ("zero_",):
            return torch.ops.aten.zeros_like.default, args, kwargs
        raise CaptureError("%s writes in place and has no functional counterpart" % target.name())

    @staticmethod
    def named(target, args, kwargs):
        """Arguments by name; those that are None by default are left out."""
        out = {}
        for k, a in enumerate(target._schema.arguments):
            given = args[k] if k < len(args) and not a.kwarg_only else kwargs.get(a.name, ...)
            if given is ... or (
                given is None and a.has_default_value() and a.default_value is None
            ):
                continue
            out[a.name] = given
        return out

    def context(self, target, read):
        """Node attributes of an operator that looks up more than its arguments."""
        known = self.attributes.get(target._schema.name)
        if known is None:
            return None
        attributes = known(**self.named(target, *read))
        return {"attributes": {k: value(v) for k, v in attributes.items()}}

    def custom_mutation(self, node, target, args, kwargs, written):
        read = pytree.tree_map_only(Cell, lambda c: c.read(), (args, kwargs))
        extra = self.context(target, read) or {}
        names = [w for w, _ in written]
        extra["functionalized"] = {"returns": len(target._schema.returns), "writes": names}
        given = self.named(target, *read)

        def run(**kw):
            kw = {k: v.clone() if k in names else v for k, v in kw.items()}
            out = target(**kw)
            out = [] if out is None else list(out) if isinstance(out, (list, tuple)) else [out]
            out += [kw[n] for n in names]
            return out if len(out) > 1 else out[0]

        out = self.add(target, [], given, node.name, extra, run)
        parts = (
            [out]
            if isinstance(out, SSA)
            else [self.project(out, k, "%s_%d" % (node.name, k)) for k in range(len(out))]
        )
        returns = parts[: len(parts) - len(names)]
        for (_, cell), ssa in zip(written, parts[len(returns) :]):
            cell.write(ssa)
        return (
            None
            if not returns
            else Cell(returns[0])
            if len(returns) == 1
            else [Cell(r) for r in returns]
        )

    # ---- afterwards ----

    def prune(self, outputs):
        """Drops the nodes that no output needs. Returns the names of the leaves that went."""
        needed, by_id = set(), {n["id"]: n for n in self.nodes}
        todo = [o.id for o in outputs]
        while todo:
            id = todo.pop()
            if id not in needed:
                needed.add(id)
                n = by_id[id]
                todo += [
                    x["ref"]
                    for x in pytree.tree_leaves(
                        (n.get("args", []), n.get("kwargs", {})),
                        is_leaf=lambda x: isinstance(x, dict) and "ref" in x,
                    )
                    if isinstance(x, dict) and "ref" in x
                ]
        dropped = [
            n["name"]
            for n in self.nodes
            if n["id"] not in needed and n["op"] in ("parameter", "buffer", "constant")
        ]
        self.nodes = [n for n in self.nodes if n["id"] in needed or n["op"] == "input"]
        self.calls = [c for c in self.calls if c[0]["id"] in needed]
        self.leaves = {k: v for k, v in self.leaves.items() if k in needed or v[0] == "input"}
        self.trace = {
            k: v for k, v in self.trace.items() if k in needed or k.rsplit(".", 1)[0] in needed
        }
        return dropped

    def rerun(self, inputs, outputs, values=None):
        """The outputs on other inputs, by name, from the nodes alone; `values`: of symbols, by
        name."""
        have = {
            id: inputs[name] if kind == "input" else t
            for id, (kind, name, t) in self.leaves.items()
        }
        for node, run, args, kwargs, several in self.calls:
            if run is None:
                have[node["id"]] = have[args[0]][args[1]]
                continue
            data = pytree.tree_map_only(SSA, lambda s: have[s.id], (args, kwargs))
            if self.sizes:
                data = self.sizes.plain(data, values)
            have[node["id"]] = out = run(*data[0], **data[1])
            if self.sizes:
                self.sizes.check(node, out if several else [out], values)
        return [have[o.id] for o in outputs]


def real(t, name):
    """The tensor, unless it is one of torch.export's stand-ins."""
    from torch._subclasses.fake_tensor import FakeTensor

    if isinstance(t, FakeTensor) or t.device.type == "meta":
        raise CaptureError(
            "constant %s was made while torch.export was tracing and has no values (a cache filled "
            "during the call?); run the module once before capturing it" % name
        )
    return t.detach()
