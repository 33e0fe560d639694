"""One rank's training step as a graph: a TorchDispatchMode that sees every operator of forward,
backward and optimizer below autograd, and writes each down as a function of values.

What a tensor holds is asked of memory.py, so that writes, views and buffers become dataflow.
Nothing passes by silently: an operator that has no functional form, or draws random numbers, is an
error, and a number that the program reads out of a tensor is a guard of the capture."""

import contextlib
import sys

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from ..alias import inverse
from ..errors import CaptureError
from ..program import Program, users_line
from . import comm, flat, foreach, fsdp, fused, norms
from .counts import Counts
from .flight import Flight
from .graph import Graph, Node
from .join import refs
from .memory import Memory, count
from .placements import Said

SAME = ("detach", "alias", "lift_fresh")
COPIES = ("clone", "contiguous", "lift_fresh_copy", "_to_copy")
FILLS = {w % f: f for f in ("ones", "zeros", "full") for w in ("%s_like", "new_%s")}
SPELLED = {"aten::_unsafe_view": "aten::view"}  # of a copy, which the graph does not make
MASKS = (torch.bool, torch.uint8)
LAST = ("one_hot", "bincount")  # whose results have a last dimension as long as the largest value
READS = ("_local_scalar_dense", "item", "is_nonzero", "equal", "allclose")
QUIET = ("_assert_async", "_assert_scalar", "_assert_tensor_metadata", "_print", "record_stream")


class Recorder(TorchDispatchMode):
    def __init__(self, rank):
        super().__init__()
        self.rank, self.graph = rank, Graph()
        self.memory = Memory(self.graph, self.constant)
        self.leaves, self.guards, self.constants = {}, [], 0
        self.read_at = {}  # name of a constant to the line that read it first
        self.of_constant = {}  # and to its storage, its node, and the memory as one tensor
        self.counting = set()  # storages of numbers that count steps
        self.events, self.silent, self.modules, self.scopes = 0, 0, [], {}
        self.selected = (
            set()
        )  # sizes that operators have made of what their operands' values select
        self.graph.here, self.counts, self.said = self.here, Counts(), Said()
        self.flight = Flight(self.here)
        self.graph.counts, self.counts.depends = self.counts.marks, self.depends

    def __enter__(self):
        self.counts.__enter__()
        self.flight.__enter__()
        return super().__enter__()

    def __exit__(self, *error):
        super().__exit__(*error)
        self.flight.__exit__(*error)
        self.counts.__exit__(*error)
        if error == (None, None, None):
            self.flight.close()

    @contextlib.contextmanager
    def again(self):
        """Records what a handler runs in place of an operator."""
        TorchDispatchMode.__enter__(self)
        try:
            yield
        finally:
            TorchDispatchMode.__exit__(self, None, None, None)

    # leaves

    def leaf(self, kind, name, t, domain=None):
        """A tensor's contents before the step, as a leaf. Names of one memory are one leaf."""
        self.said.leaf(name, t)
        whole, t = t, local(t)
        storage = self.memory.storage(t)
        if storage is not None and self.memory.remembered(storage, t) is not None:
            return
        if whole is not t:
            self.padding(t)
        if t.numel() == 0:
            return  # a rank that holds no row of it
        node = self.graph.leaf(kind, name, t)
        if domain:
            self.graph.nodes[-1]["domain"] = domain
        self.leaves[node.id] = (kind, name, t.detach().clone())
        self.memory.write(t, node)

    def zeros(self, t):
        """Memory that is zero before the step."""
        t = local(t)
        if t.numel() and self.memory.storage(t) is None:
            self.memory.write(t, self.graph.zeros(t.shape, t.dtype))

    def padding(self, t):
        """The zeros behind a shard that has fewer rows than others, as rows of zeros: what is
        gathered of all ranks has as many of each."""
        whole = torch.empty(0, dtype=t.dtype).set_(t.untyped_storage())
        row, at = count(t.shape[1:]), t.numel()
        fits = t.dim() and t.storage_offset() == 0 and t.is_contiguous()
        rows, odd = divmod(whole.numel() - at, row) if fits and row else (0, 0)
        if rows and not odd and not whole[at:].any() and not self.memory.storage(t):
            value = self.graph.zeros((rows,) + tuple(t.shape[1:]), t.dtype)
            self.memory.new(t).put(at, whole.numel(), value)

    def constant(self, t, storage):
        """Memory that was there before the step and has no name. Its storage is one leaf."""
        whole = torch.empty(0, dtype=t.dtype).set_(t.untyped_storage())
        if t.is_contiguous() and t.numel() == whole.numel():
            whole = whole.view(t.shape)
        name = "constant_%d" % self.constants
        node = self.graph.leaf("constant", name, whole)
        self.constants += 1
        self.leaves[node.id] = ("constant", name, whole.clone())
        self.read_at[name] = self.here().get("source")
        self.of_constant[name] = storage, node, whole
        storage.put(0, whole.numel(), node)

    def counts_of_steps(self, optimizers, modules):
        """Numbers that say how many steps there were are no state to compare."""
        for each in optimizers:
            for state in getattr(each, "optim", each).state.values():
                step = state.get("step") if isinstance(state, dict) else None
                if isinstance(step, torch.Tensor):
                    self.counting.add(local(step).untyped_storage()._cdata)
        for _, b in (b for m in modules for b in m.named_buffers()):
            if b.dim() == 0 and not b.is_floating_point():
                self.counting.add(b.untyped_storage()._cdata)

    def read_leaves(self, names):
        """Those of these leaves that some operator reads."""
        read = {id for n in self.graph.nodes for id in refs(n)}
        return [name for id, (_, name, _) in self.leaves.items() if name in names and id in read]

    def written_constants(self):
        """Memory without a name that the step reads, and then writes for the next one: name of the
        constant to the memory. Counts are none, nor is memory that was freed."""
        read = {id for n in self.graph.nodes for id in refs(n)}
        return {
            name: whole
            for name, (storage, node, whole) in self.of_constant.items()
            if node.id in read
            and storage.keep._cdata not in self.counting
            and storage.keep.nbytes() >= whole.numel() * whole.element_size()
            and any(s.value is not node for s in storage.segments)
        }

    def is_written(self, name, t):
        """Whether leaf `name`, of memory t, holds something else after the step."""
        node = next((id for id, (_, called, _) in self.leaves.items() if called == name), None)
        with torch.no_grad():
            return node is not None and self.memory.read(local(t).detach()).id != node

    def put_back(self):
        """Memory without a name holds again what it held before the step."""
        held = {name: t for _, name, t in self.leaves.values()}
        with torch.no_grad():
            for name, whole in self.written_constants().items():
                whole.copy_(held[name])

    def constant_values(self):
        return {name: t for kind, name, t in self.leaves.values() if kind == "constant"}

    # where an operator comes from

    def here(self):
        node = torch._C._current_autograd_node()
        if node is not None:
            return self.scopes.get(node._sequence_nr(), {})
        out = {}
        if self.modules and self.modules[-1]:
            out["scope"] = self.modules[-1]
        source = users_line(sys._getframe(1))
        if source:
            out["source"] = source
        self.scopes[torch._C._autograd._get_sequence_nr() - 1] = out
        return out

    # operators

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if any(issubclass(t, FakeTensor) for t in types):
            return func(*args, **kwargs)  # a layout that DTensor has not met before is tried out
        if any(t not in (torch.Tensor, torch.nn.Parameter) for t in types):
            return NotImplemented  # a subclass calls again with the tensors that it holds
        if self.silent:
            return func(*args, **kwargs)
        self.flight.operator(func, args, kwargs)
        space, name = func._schema.name.split("::")
        if space in comm.SPACES:
            return comm.record(self, func, name, args, kwargs)
        if space == "fsdp":
            return fsdp.record(self, func, name, args, kwargs)
        if name.startswith("_foreach_"):
            return foreach.record(self, func, args, kwargs)
        if name in fused.FORMULAS:
            return fused.record(self, func, name, args, kwargs)
        return self.operator(func, name, args, kwargs)

    def operator(self, func, name, args, kwargs):
        if stands_in(args, kwargs) or name in QUIET or func.namespace == "profiler":
            return func(*args, **kwargs)
        if name in READS:
            return self.guard(func, args, kwargs)
        if func._schema.is_mutable:
            return self.mutation(func, name, args, kwargs)
        refuse_random(func, args, kwargs)
        if norms.writes(name, args):
            return norms.record(self, func, name, args, kwargs)
        args, wanted = all_results(func, args)
        storages = {t.untyped_storage()._cdata for t in tensors((args, kwargs))}
        out = func(*args, **kwargs)
        results = list(out) if isinstance(out, (list, tuple)) else [out]
        if torch.Tag.dynamic_output_shape in func.tags:
            self.selected.update(selected_sizes(name, args, results))
        if not all(isinstance(r, torch.Tensor) or r is None for r in results):
            raise CaptureError("%s returns something other than tensors" % func.name())
        if name in SAME:
            return out
        given = [r for r in results if r is not None]
        if any(r.untyped_storage()._cdata in storages for r in given):
            self.view(func, args, kwargs, results, isinstance(out, (list, tuple)))
        elif "empty" in name:
            self.memory.new(out)
        elif name in COPIES:
            self.copy(args[0], out)
        elif name in FILLS:
            self.memory.write(out, self.filled(name, args, kwargs, out))
        elif not self.flat(func, args, kwargs, out):
            made = self.emit(func, self.read((args, kwargs)), out)
            for t, value in zip(results, made):
                if t is not None:
                    self.memory.write(t, value)
        return out if wanted is None else tuple(r if w else None for r, w in zip(out, wanted))

    def copy(self, source, out):
        parts = flat.copied(self, source, out.dtype) if out.shape == source.shape else None
        if parts and flat.is_flat(out):
            self.memory.write_parts(out, parts)
        else:
            self.memory.write(out, self.fitted(self.memory.read(source), out))

    def flat(self, func, args, kwargs, out):
        """Whether it was an element-wise operator on flat buffers of several tensors."""
        if not isinstance(out, torch.Tensor) or not flat.is_flat(out):
            return False

        def emit(args, kwargs, like):
            return self.graph.emit(func.name(), args, kwargs, like)

        parts = flat.results(self, func, args, kwargs, out.dtype, emit)
        if parts:
            self.memory.write_parts(out, parts)
        return bool(parts)

    def filled(self, name, args, kwargs, out):
        """`ones_like` and its kin read a shape, and no values."""
        given, at = [list(out.shape)], 2 if name == "new_full" else 1
        if FILLS[name] == "full":
            given.append(args[at] if len(args) > at else kwargs["fill_value"])
        return self.graph.emit("aten::" + FILLS[name], given, {"dtype": out.dtype}, out)

    def read(self, tree):
        return pytree.tree_map_only(torch.Tensor, self.memory.read, tree)

    def emit(self, func, read, out):
        """The nodes of a function's results. One that was not asked for has no elements."""
        several = isinstance(out, (list, tuple))
        name = SPELLED.get(func.name(), func.name())
        if several:
            some = next(t for t in out if t is not None)
            out = [some.new_empty(0) if t is None else t for t in out]
        made = self.graph.emit(name, read[0], read[1], out, several)
        return made if several else [made]

    def view(self, func, args, kwargs, results, several):
        """A view of one value is written down as its operator; one of a buffer, where several
        values lie, is read off the memory when it is needed."""
        base, made = args[0], None
        storage = self.memory.known(base)
        plain = (
            self.memory.remembered(storage, base) is not None and "as_strided" not in func.name()
        )
        for k, t in enumerate(results):
            index = k if several else None
            self.memory.view(base, t, *self.ways(func, args, kwargs, index, t, results))
            if not plain or self.memory.remembered(storage, t) is not None:
                continue
            made = made or self.emit(func, self.read((args, kwargs)), results if several else t)
            self.memory.remember(storage, t, made[k])

    def ways(self, func, args, kwargs, index, like, results):
        """A view's value from that of its base, and back."""

        def remake(new):
            several = index is not None
            rest = pytree.tree_map_only(torch.Tensor, self.memory.read, (list(args[1:]), kwargs))
            out = results if several else like
            made = self.graph.emit(func.name(), [new] + rest[0], rest[1], out, several)
            return made[index] if several else made

        def back(name, overload, given):
            target = getattr(getattr(torch.ops.aten, name), overload)
            return self.graph.emit(target.name(), given, {}, given[0])

        rest = pytree.tree_map_only(torch.Tensor, lambda t: None, (list(args), kwargs))
        return remake, inverse(back, func, rest[0], rest[1], index)

    def mutation(self, func, name, args, kwargs):
        written = [t for _, t in self.written(func, args, kwargs)]
        if name == "copy_":
            self.copy(args[1], args[0])
            return func(*args, **kwargs)
        if name in ("set_", "resize_", "resize_as_"):
            return func(*args, **kwargs)
        refuse_random(func, args, kwargs)
        names = [n for n, _ in self.written(func, args, kwargs)]
        keep = name[-1] == "_"
        fills = name in ("zero_", "fill_")
        if keep and not fills and len(written) == 1 and flat.is_flat(written[0]):

            def emit(args, kwargs, like):
                other, given, named = Program.counterpart(func, list(args), dict(kwargs), names)
                return self.graph.emit(other.name(), given, named, like)

            parts = flat.results(self, func, args, kwargs, written[0].dtype, emit)
            if parts:
                self.memory.write_parts(written[0], parts)
                return func(*args, **kwargs)
        read = self.read(
            (args, kwargs if keep else {k: v for k, v in kwargs.items() if k not in names})
        )
        other, given, named = Program.counterpart(func, list(read[0]), dict(read[1]), names)
        out = func(*args, **kwargs)
        several = len(written) > 1
        like = written if several else written[0]
        made = self.graph.emit(other.name(), given, named, like, several)
        for t, value in zip(written, made if several else [made]):
            self.memory.write(t, value)
        return out

    @staticmethod
    def written(func, args, kwargs):
        out = []
        for k, a in enumerate(func._schema.arguments):
            if a.alias_info is not None and a.alias_info.is_write:
                given = args[k] if k < len(args) and not a.kwarg_only else kwargs.get(a.name)
                given = given if isinstance(given, (list, tuple)) else [given]
                out += [(a.name, t) for t in given if isinstance(t, torch.Tensor)]
        return out

    def fitted(self, value, t):
        """A value as copy_ puts it into t."""
        value = self.graph.cast(value, t.dtype)
        if tuple(value.shape) != tuple(t.shape):
            like = Node("", t.shape, t.dtype)
            value = self.graph.emit("aten::expand", [value, list(t.shape)], {}, like)
        return value

    def depends(self, t):
        """Whether what a tensor holds is computed from a parameter or an input, or received."""
        nodes = {n["id"]: n for n in self.graph.nodes}
        todo, seen = [self.memory.read(t.detach()).id], set()
        while todo:
            n = nodes[todo.pop()]
            if n["op"] in ("parameter", "input", "comm::receive"):
                return True
            new = {r for r in refs(n) if r not in seen}
            seen |= new
            todo += new
        return False

    def guard(self, func, args, kwargs):
        """A number that the program reads out of a tensor: the capture holds where it is this."""
        read = [v.id for v in tensors(self.read((args, kwargs)), Node)]
        number = func(*args, **kwargs)
        said = number if isinstance(number, (bool, int, float)) else str(number)
        self.guards.append(dict({"reads": read, "op": func.name(), "value": said}, **self.here()))
        return number


def selected_sizes(name, args, results):
    """The sizes of an operator's results that depend on the values of its operands."""
    if name == "index":
        return [int(i.sum()) for i in args[1] if i is not None and i.dtype in MASKS]
    if name in LAST:
        return [results[0].shape[-1]]
    return [results[0].shape[args[1] if name == "unique_dim" else 0]]


def tensors(tree, kind=torch.Tensor):
    return [t for t in pytree.tree_leaves(tree) if isinstance(t, kind)]


def all_results(func, args):
    """A backward operator may be asked for some of its results: it is recorded with all that it can
    give. (arguments, what was asked for, or None)"""
    names = [a.name for a in func._schema.arguments]
    if "output_mask" not in names or names.index("output_mask") >= len(args):
        return args, None
    k = names.index("output_mask")
    here = dict(zip(names, args))
    can = [True, here.get("weight") is not None, "bias" not in here or here["bias"] is not None]
    wanted = list(args[k])
    can = [c or w for c, w in zip(can, wanted)]
    return args[:k] + (can,) + args[k + 1 :], wanted


def refuse_random(func, args, kwargs):
    try:
        Program.refuse_random(func, args, kwargs)
    except CaptureError:
        raise CaptureError(
            "%s draws random numbers (dropout, PowerSGD), which are others on every device; "
            "a step is recorded without them" % func.name()
        ) from None


def stands_in(args, kwargs):
    """Propagation of shapes, below what the program computes."""
    given = tensors((args, kwargs))
    device = kwargs.get("device")
    meta = device is not None and torch.device(device).type == "meta"
    return meta or any(isinstance(t, FakeTensor) or t.device.type == "meta" for t in given)


def local(t):
    """The tensor that a rank holds of a parameter."""
    return t.to_local() if hasattr(t, "to_local") else t
