"""What a program names as the graph of one rank: the recorder of training steps (train/) sees its
operators, and is told here what the leaves and outputs are."""

import contextlib
import os
from types import SimpleNamespace

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._python_dispatch import _disable_current_modes

from ..errors import CaptureError
from ..train.launch import write_rank
from ..train.recorder import Recorder
from ..train.run import named_parameters, quiet_waits, scopes


def quiet(f):
    """Our own operators are none of the program's."""

    def method(*args, **kwargs):
        with _disable_current_modes(), torch.no_grad():
            return f(*args, **kwargs)

    return method


class Silent(Recorder):
    leaf = quiet(Recorder.leaf)
    constant = quiet(Recorder.constant)

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if FakeTensor in types:
            return func(*args, **(kwargs or {}))  # it asks for shapes: nothing is computed
        return Recorder.__torch_dispatch__(self, func, types, args, kwargs)


def local(t):
    """This rank's part of a tensor that is spread over ranks, or that is on its way."""
    for inside in ("_local_tensor", "elem"):
        if isinstance(getattr(t, inside, None), torch.Tensor):
            return local(getattr(t, inside))
    return t


class Graph:
    def __init__(self, module, inputs, placements):
        self.module, self.recorder, self.outputs = module, Silent(None), {}
        self.placements = dict(placements)
        self.parameters = named_parameters(module)
        for name, t in self.parameters.items():
            self.leaf("parameter", name, t)
        for name, t in module.named_buffers():
            self.leaf("buffer", name, t)
        for name, t in inputs.items():
            if isinstance(t, torch.Tensor):
                self.leaf("input", name, t)

    def leaf(self, kind, name, t):
        self.recorder.said.leaf(name, t)
        self.recorder.leaf(kind, name, local(t))

    @contextlib.contextmanager
    def recording(self):
        with scopes(self.module, self.recorder), quiet_waits(self.recorder), self.recorder:
            yield

    @quiet
    def output(self, name, tensor):
        if not isinstance(tensor, torch.Tensor):
            raise CaptureError("output %s is no tensor" % name)
        if name in self.outputs:
            raise CaptureError("two outputs are called %s" % name)
        t = local(tensor).detach()
        self.outputs[name] = (self.recorder.memory.read(t), t.clone().contiguous())

    @quiet
    def close(self):
        """Gradients that came to be inside are outputs."""
        memory, leaves = self.recorder.memory, self.recorder.leaves
        for name, p in self.parameters.items():
            grad = None if p.grad is None else local(p.grad).detach()
            if grad is not None and memory.storage(grad) and memory.read(grad).id not in leaves:
                self.output("grad." + name, grad)
        if not self.outputs:
            raise CaptureError("what is recorded has no output: name one with output(NAME, TENSOR)")

    @quiet
    def write(self, folder, rank):
        """What train.launch.read_rank reads."""
        os.makedirs(folder, exist_ok=True)
        recorded = (self.recorder, self.outputs)
        write_rank(
            SimpleNamespace(rank=rank, recorded=recorded, placements=self.placements), folder
        )
