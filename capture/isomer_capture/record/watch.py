"""One rank, watched: every operator passes through a dispatch mode, every wait through the method
that waits. Both become events in the order in which the rank runs them."""

import contextlib
import importlib.util
import sys

import torch
import torch.distributed as dist
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._python_dispatch import TorchDispatchMode

from ..errors import CaptureError
from ..program import users_line
from ..works import Works
from .buffers import Storages, buffers
from .posted import functional, posted


def place():
    return users_line(sys._getframe(1))


class Scopes:
    """The module whose forward runs, by its path from the outermost one."""

    def __init__(self):
        self.stack, self.paths = [], {}
        torch.nn.modules.module.register_module_forward_pre_hook(self.enter)
        torch.nn.modules.module.register_module_forward_hook(self.leave, always_call=True)

    def enter(self, module, args):
        if not self.stack:
            self.paths = {id(m): name for name, m in module.named_modules()}
        self.stack.append(self.paths.get(id(module), type(module).__name__))

    def leave(self, module, args, result):
        if self.stack:
            self.stack.pop()

    def now(self):
        return self.stack[-1] if self.stack else ""


class Watch(TorchDispatchMode):
    """events: those that communicate or wait, with "accesses" of memory beside them; work is an
    event too, with what it reads and writes."""

    def __init__(self, wants_graph=False):
        super().__init__()
        self.events, self.storages, self.scopes = [], Storages(), Scopes()
        self.works, self.handles = {}, 0
        self.last, self.batch = None, None
        self.graph, self.wants_graph = None, wants_graph

    # ---- operators ----

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if FakeTensor in types:
            return func(*args, **kwargs)  # it asks for shapes: nothing is computed
        if any(t not in (torch.Tensor, torch.nn.Parameter) for t in types):
            return NotImplemented  # its own operators come by next
        if func.namespace == "c10d":
            return self.c10d(func, args, kwargs)
        if func.namespace == "_c10d_functional":
            return self.functional(func, args, kwargs)
        result = func(*args, **kwargs)
        if any(isinstance(t, FakeTensor) for t in tensors_of(result)):
            return result
        self.work(func, args, kwargs, result)
        return result

    def work(self, func, args, kwargs, result):
        reads, writes = [], []
        for k, a in enumerate(func._schema.arguments):
            given = args[k] if k < len(args) else kwargs.get(a.name)
            tensors = list(tensors_of(given))
            written = a.alias_info is not None and a.alias_info.is_write
            viewed = a.alias_info is not None and not written
            if not viewed:
                (writes if written else reads).extend(tensors)
        returns = func._schema.returns
        if not any(r.alias_info for r in returns):
            writes += tensors_of(result)
        if reads or writes:
            self.touch(reads, writes)

    def touch(self, reads, writes):
        e = {"op": "compute", "source": place()}
        e["reads"] = buffers(self.storages, reads)
        e["writes"] = buffers(self.storages, writes)
        if e["reads"] or e["writes"]:
            self.events.append(e)

    def add(self, one):
        e = dict(one.event)
        e["source"], scope = place(), self.scopes.now()
        if scope:
            e["name"] = "%s in %s" % (e["op"], scope)
        e["buffer"] = buffers(self.storages, one.inputs or one.results)
        if one.inputs and one.results is not one.inputs and one.event["op"] != "recv":
            out = buffers(self.storages, one.results)
            if out != e["buffer"]:
                e["out"] = out
        (self.events if self.batch is None else self.batch).append(e)
        self.last = e
        return e

    def c10d(self, func, args, kwargs):
        one = posted(func, args, kwargs)
        if one is None:
            return func(*args, **kwargs)
        self.add(one)
        return func(*args, **kwargs)

    def functional(self, func, args, kwargs):
        name = func._schema.name.split("::")[1]
        if name == "wait_tensor":
            number = self.storages.number(args[0])
            known = self.works.pop(("tensor", number), None)
            if known:
                self.waits(known[1])
            return func(*args, **kwargs)
        result = func(*args, **kwargs)
        one = functional(func, args, kwargs, result)
        if one:
            e = self.add(one)
            e["handle"] = self.handle()
            for t in tensors_of(result):
                self.works["tensor", self.storages.number(t)] = (result, e["handle"])
        return result

    # ---- waits ----

    def handle(self):
        self.handles += 1
        return "h%d" % self.handles

    def waits(self, handle):
        self.events.append({"op": "wait", "handle": handle, "source": place()})

    def returned(self, e):
        """A process group gave the program a Work of it, which is to wait for that."""
        e["handle"] = self.handle()

    # ---- what is patched ----

    def patch(self):
        Works(lambda: self.last, self.returned, lambda e: self.waits(e["handle"])).__enter__()
        replace(dist.batch_isend_irecv, self.batched)
        for name in ("numpy", "tolist"):
            self.reading(name)
        sys.meta_path.insert(0, Late("torch.distributed.pipelining.stage", self.staged))

    def staged(self, module):
        self.stages(module._PipelineStageBase)

    def batched(self, original, ops):
        self.batch = []
        try:
            return original(ops)
        finally:
            e = {"op": "batch", "ops": self.batch, "source": place()}
            self.batch = None
            self.events.append(e)

    def reading(self, name):
        """Tensors are read by no operator, but by what looks at their memory."""
        original = getattr(torch.Tensor, name)

        def method(tensor, *args, **kwargs):
            if self.graph:
                raise CaptureError(
                    "the program takes numbers out of a tensor (%s) inside of what is recorded, "
                    "where no graph can follow them" % name
                )
            if type(tensor) in (torch.Tensor, torch.nn.Parameter):
                self.touch([tensor], [])
            return original(tensor, *args, **kwargs)

        setattr(torch.Tensor, name, method)

    def stages(self, Stage):
        """Computations of pipeline stages, by microbatch."""

        def around(name, op):
            original = getattr(Stage, name)

            def method(stage, k, *args, **kwargs):
                e = {"op": op(args, kwargs), "stage": stage.stage_index, "mb": k}
                e.update(source=place(), stages=stage.num_stages)
                self.events.append(e)
                return original(stage, k, *args, **kwargs)

            setattr(Stage, name, method)

        def whole(args, kwargs):
            return args[1] if len(args) > 1 else kwargs.get("full_backward", True)

        around("forward_one_chunk", lambda a, k: "F")
        around("backward_weight_one_chunk", lambda a, k: "W")
        around("backward_one_chunk", lambda a, k: "B" if whole(a, k) else "I")

    @contextlib.contextmanager
    def capturing(self, module, inputs, placements):
        from .graph import Graph

        if self.graph:
            raise CaptureError("one part of a program is recorded inside of another")
        self.graph = graph = Graph(module, inputs, placements)
        try:
            with graph.recording():
                yield graph
            graph.close()
            self.done = graph
        finally:
            self.graph = None


class Late:
    """Calls `then` with a module once that is imported: most programs never do."""

    def __init__(self, name, then):
        self.name, self.then = name, then

    def find_spec(self, name, path=None, target=None):
        if name != self.name:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        run = spec.loader.exec_module

        def exec_module(module):
            run(module)
            self.then(module)

        spec.loader.exec_module = exec_module
        return spec


def tensors_of(x):
    if isinstance(x, torch.Tensor):
        return [x]
    if isinstance(x, (list, tuple)):
        return [t for e in x for t in tensors_of(e)]
    return []


def replace(original, wrapper):
    """In all modules that have imported a function by its name."""

    def instead(*args, **kwargs):
        return wrapper(original, *args, **kwargs)

    for name, module in list(sys.modules.items()):
        if name.startswith("torch.distributed"):
            for key, thing in list(vars(module).items()):
                if thing is original:
                    setattr(module, key, instead)
