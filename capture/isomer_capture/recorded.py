"""A module as it runs, where torch.export cannot trace it: its operators are recorded below
autograd (train/recorder.py). The capture holds for what the module read out of its tensors."""

import contextlib
from types import SimpleNamespace

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import _disable_current_modes

from .errors import CaptureError, short

# Ways from a tensor's values to Python that no operator shows.
UNSEEN = ("tolist", "numpy", "__array__", "__reduce_ex__", "storage", "untyped_storage")


class Reads(TorchFunctionMode):
    """Guards for what is read out of tensors past their operators."""

    def __init__(self, recorder):
        super().__init__()
        self.recorder = recorder

    def __torch_function__(self, function, types, args=(), kwargs=None):
        name = getattr(function, "__name__", "")
        if name in UNSEEN and args and isinstance(args[0], torch.Tensor):
            with _disable_current_modes():
                known = self.recorder.memory.storage(args[0]) is not None
            if known:
                said = {"reads": [], "op": "Tensor." + name, "value": str(args[0].shape)}
                self.recorder.guards.append(dict(said, **self.recorder.here()))
        return function(*args, **(kwargs or {}))


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
    from .core import leaves_of
    from .record.graph import Graph
    from .train.join import prune

    given = {n: t for n, t in leaves_of(inputs, "input") if isinstance(t, torch.Tensor)}
    try:
        with put_back(called.inner):
            graph = Graph(called.inner, given, {})
            with Reads(graph.recorder), graph.recording():
                out = called(**inputs)
            for name, t in leaves_of(out, "output"):
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
    return Recording(nodes, leaves, dropped, written, recorder.guards), kept


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
