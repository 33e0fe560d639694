"""A compiler's passes: does each leave the function of its graph as it is?

    model = torch.compile(model, backend=isomer.checked("inductor"))
    result = isomer.check_pass(my_pass, graph_module, inputs)

Alive2 asks this of LLVM's passes. Here the graph before a pass of Inductor and the graph after it
are compared, as any two captures are."""

import contextlib
import dataclasses
import os
import re
import shutil
import tempfile
import warnings
from dataclasses import dataclass

from . import Error, folder_for, run, words_of


class PassError(Error):
    """A pass changes what its graph computes."""


@dataclass
class PassCheck:
    """One pass that changed a graph."""

    stage: str  # "pre_grad_passes", "joint_graph_passes", "post_grad_passes", or ""
    name: str
    result: object = None  # isomer.Result
    why: str | None = None  # why there is none
    folder: str | None = None  # left: before it, right: after it, and repro.py where they differ

    def __str__(self):
        said = self.why if self.result is None else self.result.summary
        return "%s: %s" % (".".join(filter(None, (self.stage, self.name))), said)


@dataclass
class Change:
    stage: str
    name: str
    before: object
    after: object


class Watch:
    """Graphs as passes leave them: a change belongs to the innermost pass that made it."""

    def __init__(self):
        self.changes, self.last = [], {}
        self.within = []  # (graph, stage, name) of the passes under way, the outermost first

    def look(self, gm):
        """The graph's text, and a copy of it where it is another one than was seen last."""
        from isomer_capture.fx import copy_of

        text, seen = str(gm.graph), self.last.get(id(gm))
        if seen and seen[0] == text:
            return None
        return text, copy_of(gm)

    def enter(self, gm, stage, name):
        outer = [p for p in self.within if p[0] is gm]
        if outer:  # what it did before this one began
            self.note(*outer[-1])
        elif now := self.look(gm):
            self.last[id(gm)] = now
        self.within.append((gm, stage, name))

    def leave(self, gm, stage, name):
        self.note(gm, stage, name)
        self.end()

    def end(self):
        self.within.pop()

    def note(self, gm, stage, name):
        now, seen = self.look(gm), self.last.get(id(gm))
        if now:
            self.last[id(gm)] = now
            self.changes.append(Change(stage or "", name, seen[1], now[1]))


@contextlib.contextmanager
def watched(watch):
    """Every pass that PyTorch runs under its observer, which is each of Inductor's graph passes."""
    import torch._functorch.config
    import torch._inductor.config
    from torch.fx.passes.graph_transform_observer import GraphTransformObserver as Observer

    enter, leave = Observer.__enter__, Observer.__exit__

    def entered(self):
        watch.enter(self.gm, self.subsystem, self.passname)
        return enter(self)

    def left(self, kind, value, trace):
        if kind is None:
            watch.leave(self.gm, self.subsystem, self.passname)
        else:
            watch.end()
        return leave(self, kind, value, trace)

    Observer.__enter__, Observer.__exit__ = entered, left
    try:
        # A graph that comes out of a cache went through no pass.
        with (
            torch._inductor.config.patch(fx_graph_cache=False, fx_graph_remote_cache=False),
            torch._functorch.config.patch(enable_autograd_cache=False),
        ):
            yield
    finally:
        Observer.__enter__, Observer.__exit__ = enter, leave


def passes_alone(gm, inputs, **options):
    """In place of Inductor's code generation: its passes after autograd, and the graph as it is."""
    import torch._inductor.compile_fx as inductor
    from torch._guards import detect_fake_mode
    from torch._inductor.virtualized import V

    inductor.view_to_reshape(gm)
    with V.set_fake_mode(detect_fake_mode(inputs)):
        inductor._recursive_post_grad_passes(gm, is_inference=True)

    def call(values):
        return gm(*values)

    call._boxed_call = True
    return call


@contextlib.contextmanager
def outside_of_compilation():
    """Tensors are real, and nothing is traced."""
    import torch
    from torch._guards import tracing
    from torch.utils._python_dispatch import _disable_current_modes

    with tracing(None), _disable_current_modes(), torch.no_grad():
        yield


def compared(change, given, folder, timeout, options):
    from isomer_capture import CaptureError
    from isomer_capture.fx import capture_fx, values_of

    check = PassCheck(change.stage, change.name, folder=folder)
    sides = [os.path.join(folder, side) for side in ("left", "right")]
    try:
        with outside_of_compilation():
            values = values_of(change.before, given)
            graphs = (change.before, change.after)
            graphs = [capture_fx(gm, values, side) for gm, side in zip(graphs, sides)]
        repro = ["--repro", os.path.join(folder, "repro.py")]
        result = run(sides, os.path.join(folder, "report.json"), timeout, [*repro, *options])
        check.result = of_a_pass(result, other_outputs(*map(outputs_of, graphs)))
    except (CaptureError, Error) as e:
        check.why = "not checked: %s" % e
    except Exception as e:  # of PyTorch, as it runs what a pass has left
        check.why = "not checked: " + in_a_line(e)
    return check


def outputs_of(graph):
    """Name to what a caller sees of the tensor beside its values; what is written to inputs is no
    output."""
    nodes = {n["id"]: n for n in graph["nodes"]}
    out = {}
    for o in graph["outputs"]:
        meta = nodes[o["ref"]].get("outputs")
        if meta and not o["name"].startswith("written_"):
            out[o["name"]] = "%s %s" % (meta[0]["dtype"], meta[0]["shape"])
    return out


def other_outputs(before, after):
    """What a pass changes of its graph's outputs, which a comparison of two models allows: it reads
    floats as real numbers, and finds how outputs in another layout belong together."""
    if len(before) != len(after):
        return "the graph has %d outputs before the pass and %d after it" % (
            len(before),
            len(after),
        )
    for name, was in before.items():
        if after.get(name) != was:
            return "%s is %s before the pass and %s after it" % (name, was, after.get(name))
    return None


def of_a_pass(result, why):
    if not why or result.verdict == "different":
        return result
    said = "isomer: DIFFERENT: " + why
    report = dict(result.report, verdict="different", evidence=None)
    return dataclasses.replace(
        result, verdict="different", evidence=None, summary=said, text=said + "\n", report=report
    )


def in_a_line(e):
    from isomer_capture.errors import short

    return "%s: %s" % (type(e).__name__, " ".join(short(e).split()))


def checked(
    backend="inductor", *, on_difference="raise", generate=True, keep=None, timeout=60, options=()
):
    """A backend for torch.compile that compares the graph before and after each FX pass of
    Inductor: before autograd, on the joint graph, and after autograd.

    backend        "inductor"; others have no passes that could be seen
    on_difference  "raise" PassError, "warn", or a function of a PassCheck
    generate       False: only the passes run, and the graph they leave is called as it is
    keep           a folder in which the captures stay; without it those that differ do, in a
                   folder for temporary files
    timeout        seconds for each comparison; one that takes longer is undecided
    options        further options of `isomer compare`

    Models are checked as they run without gradients (torch.no_grad()). Its attribute `checks` has a
    PassCheck for each pass that changed a graph."""
    if backend != "inductor":
        raise Error("checked() knows the passes of inductor, not of %r" % (backend,))
    if on_difference not in ("raise", "warn") and not callable(on_difference):
        raise Error('on_difference is "raise", "warn" or a function, not %r' % (on_difference,))
    options = words_of(options)
    keep = keep and folder_for(keep, "")

    def compile(gm, inputs):
        from torch._inductor.compile_fx import compile_fx

        watch = Watch()
        with watched(watch):
            compiled = compile_fx(
                gm, inputs, **({} if generate else {"inner_compile": passes_alone})
            )
        root = keep or tempfile.mkdtemp(prefix="isomer-passes-")
        for change in watch.changes:
            name = re.sub(r"\W+", "_", "%d_%s" % (len(compile.checks), change.name))
            check = compared(change, inputs, os.path.join(root, name), timeout, options)
            compile.checks.append(check)
            if not keep and not (check.result and check.result.verdict == "different"):
                shutil.rmtree(check.folder, ignore_errors=True)
            judge(check, on_difference)
        if not keep:
            with contextlib.suppress(OSError):
                os.rmdir(root)
        return compiled

    compile.checks = []
    return compile


def judge(check, on_difference):
    if check.result is None or check.result.verdict != "different":
        return
    text = "the pass %s of %s changes what the model computes\n%s\nboth graphs are in %s" % (
        check.name,
        check.stage or "the compiler",
        check.result.short(),
        check.folder,
    )
    if callable(on_difference):
        on_difference(check)
    elif on_difference == "raise":
        raise PassError(text)
    else:
        warnings.warn(text, stacklevel=2)


def made_of(returned, given):
    """The GraphModule that a pass leaves: what it returned, or what it was given and changed."""
    import torch
    from torch.fx.passes.infra.pass_base import PassResult

    if isinstance(returned, PassResult):
        returned = returned.graph_module
    if isinstance(returned, torch.fx.Graph):
        return torch.fx.GraphModule(given, returned)
    if isinstance(returned, torch.fx.GraphModule):
        return returned
    if returned is None or isinstance(returned, (bool, int)):  # whether, or how much, it changed
        return given
    raise Error(
        "a pass returns a GraphModule, a Graph, a PassResult or nothing, not %r"
        % type(returned).__name__
    )


def check_pass(
    transform, graph_module, inputs=None, *, of_graph=False, keep=None, timeout=60, options=()
):
    """Compares a torch.fx.GraphModule with what a pass makes of a copy of it.

    transform     a function of a GraphModule, or with of_graph of its graph, that changes it, or
                  returns another one, also in a torch.fx PassResult
    inputs        values for its placeholders, in order; without it, drawn as their meta data says
    keep          a folder in which the captures stay
    timeout       seconds for the comparison
    options       further options of `isomer compare`

    Returns a Result. Raises Error where there is none."""
    import torch
    from isomer_capture import CaptureError
    from isomer_capture.fx import copy_of, values_of

    if not isinstance(graph_module, torch.fx.GraphModule):
        raise Error("check_pass takes a torch.fx.GraphModule, not %r" % type(graph_module).__name__)
    if not callable(transform):
        raise Error("a pass is a function, not %r" % type(transform).__name__)
    options, name = words_of(options), getattr(transform, "__name__", str(transform))
    before, after = copy_of(graph_module), copy_of(graph_module)
    try:
        with outside_of_compilation():
            inputs = values_of(before, inputs, strict=True)
        after = made_of(transform(after.graph if of_graph else after), after)
        after.recompile()
    except CaptureError as e:
        raise Error("%s: not checked: %s" % (name, e)) from e
    except Error:
        raise
    except Exception as e:  # the pass's own
        raise Error("the pass %s fails: %s" % (name, in_a_line(e))) from e
    folder = folder_for(keep, "isomer-pass-")
    try:
        check = compared(Change("", name, before, after), inputs, folder, timeout, options)
    finally:
        if not keep:
            shutil.rmtree(folder, ignore_errors=True)
    if check.result is None:
        raise Error("%s: %s" % (check.name, check.why))
    return check.result
