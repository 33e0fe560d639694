"""A module as it runs, where torch.export cannot trace it: its operators are recorded below
autograd (train/recorder.py). The capture holds for what the module read out of its tensors."""

import contextlib
from types import SimpleNamespace

import torch
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import _disable_current_modes
from torch.utils.weak import WeakTensorKeyDictionary

from .errors import CaptureError, short

# Ways from a tensor's values to Python that no operator shows.
UNSEEN = ("tolist", "numpy", "__array__", "__reduce_ex__", "storage", "untyped_storage")


# Functions that give all sizes of a tensor to Python, or as many results as one of them.
COUNTS = ("numel", "nelement", "__iter__", "unbind", "split", "chunk", "tensor_split")


def sizes_asked(function, args, kwargs):
    """The dimensions of its first argument whose sizes a function gives to Python; None where it
    gives none."""
    name, owner = getattr(function, "__name__", ""), getattr(function, "__self__", None)
    if name == "__get__":
        return slice(None) if getattr(owner, "__name__", "") == "shape" else None
    if name == "size":
        d = args[1] if len(args) > 1 else kwargs.get("dim")
        return slice(None) if not isinstance(d, int) else d
    if name == "__len__":
        return 0
    return slice(None) if name in COUNTS else None


class Selected:
    """Which sizes of tensors depend on what data selects: the elements that a mask lets through,
    different ones, repeated ones. Known by tensor, as a flag for each dimension."""

    def __init__(self):
        self.flags = WeakTensorKeyDictionary()

    def asked(self, t, dims):
        flags = self.flags.get(t)
        return flags is not None and any([flags[dims]] if isinstance(dims, int) else flags[dims])

    def passed_on(self, given, out, made):
        """The results of a function of these tensors, in which operators have `made` such sizes: a
        size is one where an operand has it so, and where no operand explains it."""
        chosen, plain, any_chosen = set(made), {1}, bool(made)
        for x in given:
            if isinstance(x, int):
                plain.add(x)
            if not isinstance(x, torch.Tensor):
                continue
            flags = self.flags.get(x)
            any_chosen = any_chosen or flags is not None
            for k, s in enumerate(x.shape):
                (chosen if flags is not None and flags[k] else plain).add(s)
        if not any_chosen:
            return
        for t in out:
            flags = [s in chosen or s not in plain for s in t.shape]
            if any(flags):
                self.flags[t] = flags


class Reads(TorchFunctionMode):
    """Guards for what is read out of tensors past their operators: values, and sizes that depend on
    values."""

    def __init__(self, recorder):
        super().__init__()
        self.recorder, self.selected = recorder, Selected()

    def guard(self, name, value):
        said = {"reads": [], "op": "Tensor." + name, "value": str(value)}
        self.recorder.guards.append(dict(said, **self.recorder.here()))

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        name = getattr(function, "__name__", "")
        first = args[0] if args and isinstance(args[0], torch.Tensor) else None
        if name in UNSEEN and first is not None:
            with _disable_current_modes():
                known = self.recorder.memory.storage(first) is not None
            if known:
                self.guard(name, first.shape)
        dims = sizes_asked(function, args, kwargs)
        if dims is not None and first is not None and self.selected.asked(first, dims):
            self.guard("shape" if name == "__get__" else name, tuple(first.shape))
        self.recorder.selected.clear()
        out = function(*args, **kwargs)
        self.selected.passed_on(
            pytree.tree_leaves((args, kwargs)),
            [t for t in pytree.tree_leaves(out) if isinstance(t, torch.Tensor)],
            self.recorder.selected,
        )
        return out


class Value:
    """An output, as core.check and the capture's `outputs` want it."""

    def __init__(self, id, data):
        self.id, self.data = id, data


class Recording:
    """What core.capture takes from a Program, of a recording."""

    sizes, trace, folded = None, {}, {}
    inlined, functionalized, skipped = {}, {}, {}

    def __init__(self, nodes, leaves, dropped, written, guards):
        self.nodes, self.leaves, self.dropped, self.guards = nodes, leaves, dropped, guards
        self.roots = {name: SimpleNamespace(name=name, version=1) for name in written}

    def rerun(self, inputs, outputs):
        from .train.replay import replay

        held = {k: inputs[n] if w == "input" else t for k, (w, n, t) in self.leaves.items()}
        have = replay(self.nodes, held)
        return [have[o.id] for o in outputs]


@contextlib.contextmanager
def put_back(module):
    """Buffers that a call changes are as before."""
    state = [(t, t.detach().clone()) for t in [*module.parameters(), *module.buffers()]]
    try:
        yield
    finally:
        for t, old in state:
            t.data.copy_(old)


def record(called, inputs, wanted, why, specialize):
    """(Recording, [(name, Value)]) of a module's call on example inputs; `inputs` are its own to
    write to. wanted: names of the outputs to keep, or None for all. why: the CaptureError of
    torch.export, which is raised where recording is no way either."""
    from .files import leaves_of
    from .record.graph import Graph
    from .train.join import prune

    given = {n: t for n, t in leaves_of(inputs, "input") if isinstance(t, torch.Tensor)}
    try:
        with put_back(called.inner):
            graph = Graph(called.inner, given, {})
            with Reads(graph.recorder), graph.recording():
                out = called(**inputs)
            given_back = leaves_of(out, "output")
            for name, t in given_back:
                if isinstance(t, torch.Tensor) and (wanted is None or name in wanted):
                    graph.output(name, t)
            written = written_leaves(graph.recorder, called.inner)
    except Exception as e:
        if not isinstance(e, CaptureError):
            e = CaptureError(short(e))
        raise CaptureError("%s; recording it as it runs failed too: %s" % (why, e)) from e
    if not graph.outputs or any(w not in graph.outputs for w in wanted or ()):
        raise why
    recorder = graph.recorder
    refuse_reads(recorder.guards, specialize)
    kept = [(n, Value(node.id, data)) for n, (node, data) in graph.outputs.items()]
    nodes = prune(recorder.graph.nodes, [{"ref": v.id} for _, v in kept])
    held = {n["id"] for n in nodes}
    leaves = {k: v for k, v in recorder.leaves.items() if k in held}
    dropped = [n for k, (_, n, _) in recorder.leaves.items() if k not in held]
    recording = Recording(nodes, leaves, dropped, written, recorder.guards)
    recording.no_tensors = [(n, v) for n, v in given_back if not isinstance(v, torch.Tensor)]
    return recording, kept


def written_leaves(recorder, module):
    """Names of parameters and buffers that hold something else after the call."""
    ids = {name: k for k, (_, name, _) in recorder.leaves.items()}
    named = [*module.named_parameters(), *module.named_buffers()]
    with torch.no_grad():
        now = {n: recorder.memory.read(t.detach()).id for n, t in named if n in ids}
    return sorted(n for n, id in now.items() if id != ids[n])


def refuse_reads(guards, specialize):
    if guards and not specialize:
        raise CaptureError(
            "%s: the program reads a number out of a tensor (%s), or branches on its data; pass "
            "specialize=True (--specialize) to capture it for these inputs only"
            % (guards[0].get("source", "the program"), guards[0]["op"])
        )
