"""The object that a training script is handed: its rank, and `step`, which records one step."""

import contextlib
import functools
import re
import zlib

import torch

from ..errors import CaptureError
from . import megatron
from .counts import Count
from .recorder import Recorder, local

WRAPPERS = re.compile(
    r"(^|\.)(module|_orig_mod|_checkpoint_wrapped_module|_fsdp_wrapped_module)(?=\.)"
)
# States that a square root is taken of, or by which is divided.
POSITIVE = ("sq", "sum", "square", "var", "exp_inf", "acc_delta", "step_size")


def clean(name):
    """A parameter's name without its wrappers' parts, the same for every plan."""
    before = None
    while before != name:
        before, name = name, WRAPPERS.sub("", name).lstrip(".")
    return name


class Run:
    """One rank of a training step that is recorded.

    rank, world    as in torch.distributed, which is set up (gloo) where world > 1"""

    def __init__(self, rank, world, seed=0):
        self.rank, self.seed = rank, seed
        self.world = Count(world) if world > 1 else world
        self.placements = {}
        self.recorded, self.unwritten, self.written = None, {}, []

    def step(
        self,
        function,
        model,
        optimizer=None,
        *,
        inputs=None,
        domains=None,
        states=None,
        part=None,
        gradients=False,
        placements=None,
    ):
        """Records function(**inputs): forward, backward, optimizer, over all micro-batches. It
        returns the step's outputs, name to tensor, or None.

        model       a module, or several (the stages of a rank): its parameters are leaves, and
                    outputs `updated.NAME`
        optimizer   or several: states of parameters are inputs `KEY.NAME`, outputs too; so are
                    buffers that the step writes (`buffer.NAME`), and gradients that the step before
                    left and this one reads (`grad.NAME`)
        states      name to tensor: what the program keeps from step to step besides, as averages of
                    the weights. Such memory that nobody names is `memory.N`, in the order in which
                    the step reads it
        inputs      name to tensor: what this rank's function is called with
        domains     input name to what its values may be, as in captures: {"labels": {"range": [0,
                    15]}} says that no label is left out, without which the mean of the ranks' mean
                    losses is not the mean of the whole
        part        part(name, values, held) -> what this rank holds of a parameter or state, where
                    values(shape) is the whole one and `held` the tensor to fill; unsaid for those
                    that are DTensors, or whole on every rank
        placements  input name to how the ranks share it, "S(0)", or one for each axis of the mesh,
                    for isomer lint (docs/placements.md); DTensors say it themselves
        gradients   outputs `grad.NAME`, as the step leaves them

        The function is run three times. Setting up buckets, shapes and states belongs to the first
        step, and is not recorded. Parameters and states are then filled with values that depend on
        their names, so that all plans of a model start from the same. It is recorded twice, from
        different parameters: memory that differs then, and that nothing recorded has written, is
        no constant. It has to be the same program each time."""
        if self.recorded is not None:
            raise CaptureError("step() is called twice; one step is recorded")
        inputs, domains, kept_by = dict(inputs or {}), dict(domains or {}), dict(states or {})
        self.placements = dict(placements or {})
        for what, said in (("domains", domains), ("placements", self.placements)):
            unknown = sorted(set(said) - set(inputs))
            if unknown:
                raise CaptureError("%s speak of %s, which is no input" % (what, ", ".join(unknown)))
        tensors = {n: t for n, t in inputs.items() if isinstance(t, torch.Tensor)}
        given = [(local(t).detach(), local(t).detach().clone()) for t in tensors.values()]
        before = {b: b.detach().clone() for b in buffers(model)}
        parameters = named_parameters(model)
        fill(parameters, {}, part, self.seed)  # also what memory without a name keeps of this step
        function(**inputs)
        parameters = named_parameters(model)
        written = written_buffers(model, before)
        kept = {b: b.detach().clone() for b in buffers(model)}
        kept.update({local(t): local(t).detach().clone() for t in kept_by.values()})
        memory = {}

        def record(seed):
            with torch.no_grad():
                for t, before in [*kept.items(), *given]:
                    if not torch.equal(t, before):
                        t.copy_(before)
            states = {**named_states(optimizer, parameters), **written, **kept_by}
            # What the step before leaves: most programs drop it first of all.
            left, zeros = left_gradients(parameters)
            fill(parameters, dict(states, **left), part, seed)
            states.update(memory)
            recorder = Recorder(self.rank)
            recorder.counts_of_steps(several(optimizer), several(model))
            for t in zeros:
                recorder.zeros(t)
            for name, p in parameters.items():
                recorder.leaf("parameter", name, p)
            for name, t in {**states, **left}.items():
                kind = "constant" if name in memory else "input"
                recorder.leaf(kind, name, t, positive_domain(name))
            for name, t in tensors.items():
                recorder.leaf("input", name, t, domains.get(name))
            with scopes(model, recorder), quiet_waits(recorder), own_callbacks(), recorder:
                out = function(**inputs)
            states.update((n, left[n]) for n in recorder.read_leaves(left))
            self.written = [n for n, t in tensors.items() if recorder.is_written(n, t)]
            return recorder, outputs(recorder, parameters, states, out, gradients)

        def record_named(seed):
            """Recorded once more where memory of the program turns out to be a state of it."""
            while True:
                recording = record(seed)
                found = recording[0].written_constants()
                recording[0].put_back()
                if not found:
                    return recording
                for t in found.values():
                    t.copy_(coarse(t))
                    kept[t] = t.clone()
                memory.update(
                    ("memory.%d" % i, t) for i, t in enumerate(found.values(), len(memory))
                )

        other = record_named(self.seed + 1)
        self.recorded = record_named(self.seed)
        self.unwritten = unwritten(other[0], self.recorded[0])
        if read(other) != read(self.recorded) and changed(other, self.recorded):
            # Perhaps a branch on what was read, which from the same parameters is the same.
            other = record_named(self.seed)
        name = changed(other, self.recorded)
        if name is not None:
            raise CaptureError(
                "output %s is computed in another way when the step runs once more: a program that "
                "counts its steps has no one step to record" % name
            )


def unwritten(one, two):
    """Of two recordings from different parameters, the constants that differ, and the line that
    reads each. Their values came to memory past the recorder: the graph lacks what made them."""
    before = {name: as_bytes(t) for name, t in one.constant_values().items()}
    return {
        name: two.read_at.get(name)
        for name, t in two.constant_values().items()
        if name not in before or not torch.equal(before[name], as_bytes(t))
    }


def read(recording):
    """The numbers that the program read out of tensors."""
    return [g["value"] for g in recording[0].guards]


def changed(one, two):
    """The first output that two recordings compute by other operators or from other leaves; None:
    there is none. Floating numbers are left aside: a learning rate may follow a schedule."""
    codes = {}
    a, b = programs(*one, codes), programs(*two, codes)
    return next((name for name in {**a, **b} if a.get(name) != b.get(name)), None)


def programs(recorder, outputs, codes):
    """By output a number that stands for what computes it; `codes` has those that were given."""
    of = {}

    def text(x):
        if isinstance(x, dict) and "ref" in x:
            return "#%d" % of[x["ref"]]
        if isinstance(x, list):
            return "[%s]" % ", ".join(map(text, x))
        floats = isinstance(x, float) or isinstance(x, dict) and {"float", "as_float"} & set(x)
        return "float" if floats else repr(x)

    for n in recorder.graph.nodes:
        said = [n["op"], n["outputs"], n.get("name") if n["op"] != "constant" else None]
        said += [text(n.get("args", [])), text(sorted(map(list, n.get("kwargs", {}).items())))]
        of[n["id"]] = codes.setdefault(repr(said), len(codes))
    return {name: of[v.id] for name, (v, _) in outputs.items()}


def as_bytes(t):
    return t.contiguous().reshape(-1).view(torch.uint8)


def several(x):
    return list(x) if isinstance(x, (list, tuple)) else [x] if x is not None else []


def buffers(model):
    """(Megatron-core's wrappers have an attribute `buffers` of their own.)"""
    return [b for part in several(model) for _, b in part.named_buffers()]


def named_parameters(model):
    out = {}
    for part in several(model):
        for name, p in part.named_parameters():
            if out.setdefault(clean(name), p) is not p:
                raise CaptureError("two parameters are named %s" % clean(name))
    return out


def named_states(optimizer, parameters):
    """KEY.NAME to a state of a parameter. Counts of steps are numbers."""
    names = {id(p): name for name, p in parameters.items()}
    out = {}
    for each in several(optimizer):
        each = getattr(each, "optim", each)
        for p, state in each.state.items():
            for key, t in state.items():
                if isinstance(t, torch.Tensor) and id(p) in names:
                    if t.dim() and t.is_floating_point():
                        out["%s.%s" % (key, names[id(p)])] = t
                    elif t.dim() == 0 and key == "step":
                        t.fill_(3.0)
    return out


def written_buffers(model, before):
    """buffer.NAME to a buffer that a step has written, which held this before it. Counts are
    numbers. (Versions do not tell: kernels of norms write behind their schema.)"""
    out = {}
    for part in several(model):
        for name, b in part.named_buffers():
            if b.is_floating_point() and b in before and not torch.equal(b, before[b]):
                out.setdefault("buffer." + clean(name), b)
    return out


def left_gradients(parameters):
    """Gradients that a step leaves: grad.NAME to those that the next one might add to; and those
    that are zero, as a step leaves them that drops them last of all."""
    left = {"grad." + n: p.grad for n, p in parameters.items() if p.grad is not None}
    zeros = [t for t in left.values() if not local(t).any()]
    return {n: t for n, t in left.items() if all(t is not z for z in zeros)}, zeros


def is_positive(name):
    if name.startswith("buffer."):
        return name.endswith("var")
    return any(word in name.split(".")[0] for word in POSITIVE)


def positive_domain(name):
    return {"range": [0, {"float": "inf"}]} if is_positive(name) else None


def values(name, shape, dtype, seed):
    made = torch.Generator().manual_seed(zlib.crc32(name.encode()) + seed)
    x = torch.randn(shape, generator=made, dtype=torch.float32)
    if is_positive(name):
        return (x.abs() * 0.01 + 1e-3).to(dtype)
    return (x * 0.2 + (1.0 if len(shape) == 1 and name.endswith("weight") else 0.0)).to(dtype)


def fill(parameters, states, part, seed):
    with torch.no_grad():
        for name, t in list(parameters.items()) + list(states.items()):
            if not t.is_floating_point():
                continue  # a count
            whole = functools.partial(values, name, dtype=t.dtype, seed=seed)
            whose = name.removeprefix("grad.")  # a gradient lies as its parameter does
            mine = (
                part(whose, whole, t)
                if part and not name.startswith("buffer.")
                else held(parameters.get(name, parameters.get(whose.split(".", 1)[-1])), t, whole)
            )
            target = local(t)
            if tuple(mine.shape) != tuple(target.shape):
                raise CaptureError(
                    "%s: this rank holds %s and is given %s"
                    % (name, list(target.shape), list(mine.shape))
                )
            target.detach().copy_(mine)


def coarse(t):
    """Numbers that plans compute in another order, so that they are the same for each: powers of
    two, and zero where all digits may have cancelled."""
    if not t.is_floating_point() or not t.numel():
        return t
    _, exponent = torch.frexp(t)
    small = t.abs() < t.abs().max() * 1e-5
    return torch.where(small, 0, t.sign() * torch.ldexp(torch.ones_like(t), exponent))


def held(p, t, whole):
    """A rank's part of a DTensor, or of what Megatron-core's layers cut: the parameter `p`, or a
    state of it."""
    if not hasattr(t, "placements"):
        return megatron.held(p, t, whole)
    from torch.distributed.tensor._utils import compute_local_shape_and_global_offset

    whole = whole(tuple(t.shape))
    shape, offset = compute_local_shape_and_global_offset(t.shape, t.device_mesh, t.placements)
    for dim, (n, at) in enumerate(zip(shape, offset)):
        whole = whole.narrow(dim, at if n else 0, n)
    return whole


def outputs(recorder, parameters, states, out, gradients):
    """Name to (value, tensor), as the step leaves them."""
    found = {}
    for name, p in parameters.items():
        if gradients and p.grad is not None:
            found["grad." + name] = local(p.grad)
    for name, t in (out or {}).items():
        if not isinstance(t, torch.Tensor):
            raise CaptureError("output %s is no tensor" % name)
        found[name] = local(t)
    for name, p in parameters.items():
        found["updated." + name] = local(p)
    for name, t in states.items():
        found["updated." + name] = local(t)
    with torch.no_grad():
        return {
            n: (recorder.memory.read(t.detach()), t.detach().clone().contiguous())
            for n, t in found.items()
        }


@contextlib.contextmanager
def scopes(model, recorder):
    """While a module's forward runs, its path is the scope of the operators."""
    names = {}
    for each in several(model):
        names.update({id(m): clean(n + ".").rstrip(".") for n, m in each.named_modules()})

    def enter(module, _):
        recorder.modules.append(names.get(id(module)) or last(recorder.modules))

    def leave(module, *_):
        if recorder.modules:
            recorder.modules.pop()

    hooks = [
        torch.nn.modules.module.register_module_forward_pre_hook(enter),
        torch.nn.modules.module.register_module_forward_hook(leave, always_call=True),
    ]
    try:
        yield
    finally:
        for h in hooks:
            h.remove()


def last(stack):
    return stack[-1] if stack else ""


@contextlib.contextmanager
def quiet_waits(recorder):
    """Gloo finishes a reduction with copies inside of wait(); they are not the program's."""
    work = torch._C._distributed_c10d.Work if torch.distributed.is_available() else None
    if work is None:
        yield
        return
    wait = work.wait

    def quiet(self, *args, **kwargs):
        recorder.silent += 1
        try:
            return wait(self, *args, **kwargs)
        finally:
            recorder.silent -= 1

    work.wait = quiet
    try:
        yield
    finally:
        work.wait = wait


@contextlib.contextmanager
def own_callbacks():
    """What is to be done with a collective's result, as communication hooks say it, is done by this
    thread: the network's threads are not recorded."""
    kinds = [torch._C.Future, torch.futures.Future]
    before = [(kind, kind.__dict__["then"]) for kind in kinds if "then" in kind.__dict__]

    def then(self, callback):
        self.wait()
        made = torch.futures.Future()
        made.set_result(callback(self))
        return made

    for kind, _ in before:
        kind.then = then
    try:
        yield
    finally:
        for kind, original in before:
            kind.then = original
