"""capture(): one PyTorch module, on example inputs, as a capture (docs/capture-format.md)."""

import contextlib
import copy
import inspect
import io
import itertools
import logging
import os
import sys
import types
import warnings

import torch
from torch.fx.experimental.proxy_tensor import get_proxy_mode
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import is_traceable_wrapper_subclass

from . import domains as domain_rules
from . import recorded
from . import sizes as open_sizes
from . import weightless as bare_of
from .errors import CaptureError, Unreadable, short
from .files import leaves_of
from .files import value as as_value
from .files import write_capture
from .program import Program, real

TOLERANCE = {torch.float64: 1e-9, torch.float32: 1e-4, torch.float16: 5e-2, torch.bfloat16: 2e-1}


class Traced(TorchFunctionMode):
    """Prepare a program for torch.export's tracing.

    `parameter.data` escapes it; detach() is the same and does not. And of an operator's stack it
    keeps the frames of modules' forward only: here all of the program's, so that an operator of a
    function that a module calls has a line of that function."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        if function == torch.Tensor.data.__get__:
            return args[0].detach()
        tracing = get_proxy_mode()
        graph = tracing.tracer.graph if tracing else None
        last = next(reversed(graph.nodes), None) if graph else None
        result = function(*args, **(kwargs or {}))
        if graph:
            added = itertools.takewhile(lambda n: n is not last, reversed(graph.nodes))
            stack = None
            for node in added:
                stack = stack or stack_text(sys._getframe(1))
                node.meta["stack_trace"] = stack
        return result


def stack_text(frame):
    """The frames of a program below the call of its module, outermost first, as PyTorch writes
    them."""
    lines = []
    while frame and frame.f_code is not Called.forward.__code__:
        code = frame.f_code
        lines.append('File "%s", line %d, in %s' % (code.co_filename, frame.f_lineno, code.co_name))
        frame = frame.f_back
    return "\n".join(reversed(lines))


class Called(torch.nn.Module):
    """The module, called in the caller's way."""

    def __init__(self, module, call, strict):
        super().__init__()
        self.inner, self.call, self.strict = module, call, strict

    def forward(self, **inputs):
        with contextlib.nullcontext() if self.strict else Traced():
            return as_plain(self.call(self.inner, **inputs) if self.call else self.inner(**inputs))


def with_names(called, inputs):
    """The same with a forward that names its inputs, as torch.export wants it where sizes are
    open."""
    kind = inspect.Parameter.KEYWORD_ONLY
    own = [inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)]
    forward = types.FunctionType(Called.forward.__code__, globals(), "forward")
    forward.__signature__ = inspect.Signature(own + [inspect.Parameter(n, kind) for n in inputs])
    called.__class__ = type("Called", (Called,), {"forward": forward})


def named_inputs(module, call, example):
    """The example as keyword arguments, by the names of forward's parameters."""
    if isinstance(example, dict):
        return dict(example)
    example = example if isinstance(example, (list, tuple)) else (example,)
    parameters = list(inspect.signature(call or module.forward).parameters.values())[
        1 if call else 0 :
    ]
    names = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    if not names and call is None and hasattr(module, "get_base_model"):
        return named_inputs(module.get_base_model(), None, example)  # a wrapper hands them on
    if len(example) > len(names) or any(
        p.kind == p.POSITIONAL_ONLY for p in parameters[: len(example)]
    ):
        raise CaptureError(
            "%d example inputs for a forward with %d named parameters; give them as a dictionary"
            % (len(example), len(names))
        )
    return dict(zip(names, example))


def as_plain(x):
    """Framework output classes as dictionaries, which torch.export and the names below can see
    into."""
    if isinstance(x, dict) or (hasattr(x, "to_tuple") and hasattr(x, "keys")):
        return {k: as_plain(x[k]) for k in x.keys()}
    if isinstance(x, (list, tuple)):
        return [as_plain(e) for e in x]
    return x


@contextlib.contextmanager
def quiet_eager():
    """Layers that call torch.compile themselves run as they are written; no gradients; warnings
    kept away."""
    with contextlib.ExitStack() as stack:
        if hasattr(torch.compiler, "set_stance"):
            stack.enter_context(torch.compiler.set_stance("force_eager"))
        stack.enter_context(torch.no_grad())
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")
        # torch.export logs what it then raises.
        stack.callback(logging.disable, logging.root.manager.disable)
        logging.disable(logging.ERROR)
        yield


def reference(called, inputs, weightless=False):
    """The module's results, by name. Buffers that the call changes are put back."""
    if weightless:
        return leaves_of(called(**copied(inputs)), "output")
    state = [(t, t.detach().clone()) for t in list(called.parameters()) + list(called.buffers())]
    out = pytree.tree_map_only(torch.Tensor, lambda t: t.detach().clone(), called(**copied(inputs)))
    for t, old in state:
        if not torch.equal(t, old):
            t.copy_(old)
    return leaves_of(out, "output")


def export(called, inputs, strict, dynamic=None):
    """dynamic: sizes.specification of the inputs, or None where all sizes are fixed."""
    said = io.StringIO()  # torch.export prints graphs before it raises
    try:
        # A part that is under torch.compile is traced as what it compiles; PyTorch 2.6 refuses that
        # unless told.
        with (
            contextlib.redirect_stdout(said),
            contextlib.redirect_stderr(said),
            torch._dynamo.config.patch(error_on_nested_fx_trace=False),
            # A size that is 1 in the example is open like any other.
            torch.fx.experimental._config.patch(backed_size_oblivious=dynamic is not None),
        ):
            return torch.export.export(called, (), inputs, dynamic_shapes=dynamic, strict=strict)
    except Exception as e:
        text, kind = str(e), type(e).__name__
        if (
            "GuardOnDataDependent" in kind
            or "data-dependent" in text.lower()
            or "DataDependentOutput" in kind
        ):
            advice = (
                "a branch or a size depends on the values in a tensor; decide it outside the "
                "module, or choose the "
                "implementation without it (for experts: --set experts_implementation=batched_mm)"
            )
        elif "graph break" in text.lower() or kind == "Unsupported":
            advice = "the program does something that cannot be traced; keep it out of forward"
        elif "torch._check" in text or "torch.fx" in text and "trace" in text:
            advice = "the program inspects a tensor while it is traced"
        else:
            advice = "the module must run on these inputs, and be traceable by torch.export"
        raise CaptureError("torch.export failed: %s: %s (%s)" % (kind, short(e), advice)) from e


@contextlib.contextmanager
def eval_mode(module):
    """All parts of a module in eval mode for a while, and then each as it was."""
    modes = [(m, m.training) for m in module.modules()]
    module.eval()
    try:
        yield
    finally:
        for m, mode in modes:
            m.training = mode


def module_path(node):
    """The path of the module whose forward made a node, for a reader."""
    paths = [str(path) for path, _ in (node.meta.get("nn_module_stack") or {}).values()]
    return paths[-1].removeprefix("inner").lstrip(".") if paths else ""


def described(node):
    """A node's computation, with its operands' names. Dropout of nothing is the same in both
    modes."""
    args = repr(node.args)
    if str(node.target) == "aten.dropout.default" and node.args[1] == 0.0:
        args = repr(node.args[:2])
    return node.op, str(node.target), args


def refuse_training(called, inputs, strict):
    """A module in training mode is captured only if eval mode has the same graph. Raises
    CaptureError, with the first operator that differs."""
    trained = export(called, copied(inputs), strict).graph
    with eval_mode(called):
        evaluated = export(called, copied(inputs), strict).graph
    pairs = list(zip(trained.nodes, evaluated.nodes))
    changed = [a for a, b in pairs if described(a) != described(b)]
    if not changed and len(trained.nodes) == len(evaluated.nodes):
        return
    node = changed[0] if changed else list(trained.nodes)[-1]
    at = module_path(node)
    raise CaptureError(
        "the module is in training mode, which changes its graph (%s%s); call eval() on it first"
        % (node.target, " of " + at if at else "")
    )


def signature_leaves(program, exported, inputs, buffers=None):
    """Cells for the exported graph's placeholders. Tensors that share memory and shape are one
    leaf. buffers: of a module without weights, which have values; None where all have."""
    from torch.export.graph_signature import InputKind

    env, seen, tied = {}, {}, {}
    flat = iter(leaves_of(inputs, "input"))
    nodes = {n.name: n for n in exported.graph.nodes if n.op == "placeholder"}
    state, constants = exported.state_dict, exported.constants
    kinds = {
        InputKind.PARAMETER: "parameter",
        InputKind.BUFFER: "buffer",
        InputKind.CONSTANT_TENSOR: "constant",
    }
    for spec in exported.graph_signature.input_specs:
        node = nodes[spec.arg.name]
        if spec.kind == InputKind.USER_INPUT:
            name, given = next(flat)
            env[node] = (
                program.leaf("input", name, given.detach(), name, node.meta.get("val"))
                if isinstance(given, torch.Tensor)
                else given
            )
            continue
        if spec.kind not in kinds:
            raise CaptureError(
                "the program holds %s (%s), which a capture cannot hold"
                % (spec.target, spec.kind.name)
            )
        tensor = state[spec.target] if spec.target in state else constants[spec.target]
        name = program.stripped(spec.target)
        bare = kinds[spec.kind] == "parameter" or spec.target in (buffers or {})
        tensor = tensor.detach() if buffers is not None and bare else real(tensor, spec.target)
        if buffers is not None and not bare:
            tensor, buffers["inner." + name] = tensor.to("meta"), tensor
        key = (
            tensor.untyped_storage().data_ptr() or tensor.untyped_storage()._cdata,
            tensor.storage_offset(),
            tuple(tensor.shape),
            tensor.stride(),
            tensor.dtype,
        )
        if tensor.numel() and key in seen:
            tied[name] = seen[key].name
            env[node] = seen[key]
            continue
        prefix = {"parameter": "p_", "buffer": "b_", "constant": "c_"}[kinds[spec.kind]]
        env[node] = seen[key] = program.leaf(
            kinds[spec.kind], name, tensor, prefix + name.replace(".", "_"), node.meta.get("val")
        )
    return env, tied


def difference(left, right):
    """The largest difference over the largest value: nothing is said where both are infinite of one
    sign."""
    left, right = left.detach().double(), right.detach().double()
    if not left.numel():
        return 0.0
    if not torch.equal(torch.isfinite(left), torch.isfinite(right)):
        return float("inf")
    finite = torch.isfinite(right)
    if not torch.equal(
        left[~finite].nan_to_num(7.0, 8.0, 9.0), right[~finite].nan_to_num(7.0, 8.0, 9.0)
    ):
        return float("inf")
    top = right[finite].abs().max().item() if finite.any() else 0.0
    gap = (left - right)[finite].abs().max().item() if finite.any() else 0.0
    return gap / top if top else gap


def check(names, ours, theirs, what, weightless=False):
    for name, a, b in zip(names, ours, theirs):
        if tuple(a.shape) != tuple(b.shape):
            raise CaptureError(
                "output %s of the captured graph is %s, the module's is %s%s"
                % (name, list(a.shape), list(b.shape), what)
            )
        if weightless:
            continue
        gap, limit = difference(a, b), TOLERANCE.get(b.dtype, 0.0)
        if not gap <= limit:
            raise CaptureError(
                "the captured graph does not compute what the module computes: output %s differs "
                "by %.2g of its size%s; the module may keep state between calls, or branch on its "
                "data" % (name, gap, what)
            )


def capture(
    module,
    example_inputs,
    out_dir,
    *,
    call=None,
    more_inputs=(),
    model=None,
    framework="pytorch",
    framework_version=None,
    outputs=None,
    output_names=None,
    trace=False,
    attributes=None,
    specialize=False,
    strict=False,
    metadata=None,
    domains=None,
    dynamic=None,
    weightless=False,
):
    """Write `module`, as it runs on `example_inputs`, to the folder `out_dir`. Returns the graph as
    an object.

    module           an nn.Module; in training mode only if that does not change its graph
    example_inputs   a tensor, a tuple in the order of forward's parameters, or a dictionary by
                     their names; nests of tensors are fine, other values are constants of the
                     capture
    call             call(module, **inputs) in place of module(**inputs): chooses flags and outputs
    more_inputs      further sets of inputs, same names and shapes
    outputs          names of the outputs to keep; all, if not given
    output_names     their names in the capture, in order
    trace            keep every node's value
    attributes       operator name to a function of its arguments by name, which says what else the
                     operator depends on
    specialize       allow numbers that are read out of tensors, as they are for these inputs
    domains          input name to what its values may be, {"range": [0, 511], "exclude": [0]}; the
                     module's configuration speaks of inputs that are not named, and False stops it
    dynamic          input name to the names of its dimensions that stay open, as in
                     {"x": {0: "B", 1: "T"}} or {"x": ["B", "T", None]}; in place of a name,
                     (name, least, largest). Dimensions of one name are one size; what the program
                     fixes all the same is said on stderr
    weightless       the module's parameters have no values (weightless.py): nothing is run, and
                     shapes are all that is held against the module's
    strict           trace Python bytecode (torch.export's strict mode) instead of running the
                     module

    Raises CaptureError, with what to do. Nothing is written then."""
    refuse_arguments(module, out_dir, call, dynamic, outputs=outputs, output_names=output_names)
    module = without_subclasses(module)
    inputs = named_inputs(module, call, example_inputs)
    more = [named_inputs(module, call, m) for m in more_inputs]
    called = Called(module, call, strict)
    real_inputs, buffers = inputs, {}
    if weightless:
        refuse_with(weightless, trace=trace, more_inputs=more, dynamic=dynamic, strict=strict)
        buffers = bare_of.without_buffers(called)
        inputs = bare_of.bare(inputs)
    with contextlib.ExitStack() as stack:
        stack.enter_context(quiet_eager())
        if any(m.training for m in module.modules()):
            refuse_training(called, inputs, strict)
        stack.enter_context(eval_mode(called))
        if weightless:
            stack.enter_context(bare_of.Written())
        try:
            expected = [reference(called, i, weightless) for i in [inputs] + more]
        except CaptureError:
            raise
        except Exception as e:
            raise CaptureError(
                "the module does not run on the example inputs: %s" % short(e)
            ) from e
        wanted = open_sizes.asked(dynamic, inputs) if dynamic else {}
        if wanted:
            with_names(called, inputs)
        try:
            exported = export(
                called,
                copied(inputs),
                strict,
                open_sizes.specification(wanted, inputs) if wanted else None,
            )
        except CaptureError as e:
            if wanted or weightless or strict or trace:
                raise
            exported, why = None, e
        if exported is not None:
            sizes = (
                open_sizes.Sizes(exported, leaves_of(inputs, "input"), wanted) if wanted else None
            )
            opened = sizes if sizes and sizes.names else None
            program = Program("inner", attributes, specialize, opened)
            env, tied = signature_leaves(program, exported, inputs, buffers if weightless else None)
            try:
                results = list(pytree.tree_leaves(program.read(exported.graph_module, env)))
                graph, kept = finish(program, exported, results, expected, outputs, output_names)
            except Unreadable as e:
                if wanted or weightless or strict or trace:
                    raise
                exported, why = None, e
        if exported is None:
            sizes, tied = None, {}
            program, kept = recorded.record(called, copied(inputs), outputs, why, specialize)
            graph = {"outputs": [{"name": n, "ref": v.id} for n, v in kept]}
        names = [n for n, _ in kept]
        ssa = [s for _, s in kept]
        if exported is None:
            check(names, program.rerun(given_tensors(inputs), ssa), [s.data for s in ssa], "")
        check(names, [s.data for s in ssa], [dict(expected[0])[n] for n in names], "", weightless)
        for k, one in enumerate(more):
            given = given_tensors(one)
            check(
                names,
                program.rerun(given, ssa),
                [dict(expected[k + 1])[n] for n in names],
                " on input set %d" % (k + 1),
            )
        symbols, guards = [], []
        if program.sizes:
            options = (strict, attributes, specialize, outputs)
            symbols, guards = settled_sizes(called, program, inputs, wanted, options)
        for values in sizes.others(symbols, guards) if symbols else ():
            check_at(called, program, ssa, names, open_sizes.moved(inputs, wanted, values), values)
    if output_names:
        if len(output_names) != len(graph["outputs"]):
            raise CaptureError(
                "%d output names for %d outputs" % (len(output_names), len(graph["outputs"]))
            )
        for o, name in zip(graph["outputs"], output_names):
            o["name"] = name
    sets = [
        {n: t.detach() for n, t in leaves_of(i, "input") if isinstance(t, torch.Tensor)}
        for i in [real_inputs] + more
    ]
    if domains is not False:
        said = domain_rules.of_inputs(module, sets, domains)
        for node in program.nodes:
            if node["op"] == "input" and node["name"] in said:
                node["domain"] = said[node["name"]]
    head = {
        "format": "isomer-capture",
        "version": 2 if symbols else 1,
        "model": model or type(module).__name__,
        "framework": framework,
        "framework_version": framework_version or torch.__version__.split("+")[0],
        "torch_version": torch.__version__.split("+")[0],
    }
    if symbols:
        head.update(symbols=symbols, guards=guards)
    for said in sizes.fixed if sizes else ():
        print("isomer-capture: " + said, file=sys.stderr)
    metadata = dict(
        {
            "tied": tied,
            "dropped_unused_leaves": graph_dropped(program),
            "strict_export": strict,
            "inlined_wrappers": program.inlined,
            "functionalized_in_place": program.functionalized,
            "skipped_ops": sorted(program.skipped),
            "folded": program.folded,
            "written_leaves": written_leaves(program),
            "no_tensors": {
                n: without_tensor(v)
                for n, v in program.no_tensors
                if outputs is None or n in outputs
            },
            "fixed_sizes": sizes.fixed if sizes else [],
            **({"guards": program.guards} if program.guards else {}),
            **({"recorded": True} if exported is None else {}),
        },
        **(metadata or {}),
    )
    graph = dict(head, nodes=program.nodes, outputs=graph["outputs"], metadata=metadata)
    weights = {
        name: buffers.get("inner." + name, t)
        for kind, name, t in program.leaves.values()
        if kind != "input" and not (weightless and kind == "parameter")
    }
    write_capture(out_dir, graph, weights, sets, program.trace if trace else None)
    return graph


def refuse_arguments(module, out_dir, call, dynamic, **names):
    """What would fail later, in words that do not name the argument."""
    if not isinstance(module, torch.nn.Module):
        raise CaptureError("capture() takes an nn.Module, not %s" % type(module).__name__)
    if not isinstance(out_dir, (str, os.PathLike)):
        raise CaptureError("the folder of a capture is a path, not %r" % (out_dir,))
    if call is not None and not callable(call):
        raise CaptureError("call is a function of a module and its inputs, not %r" % (call,))
    if dynamic is not None and not isinstance(dynamic, dict):
        raise CaptureError("dynamic is a dictionary of inputs' names, not %r" % (dynamic,))
    for what, given in names.items():
        if given is not None and (
            isinstance(given, str)
            or not isinstance(given, (list, tuple, set, frozenset))
            or not all(isinstance(name, str) for name in given)
        ):
            raise CaptureError("%s is a list of names, not %r" % (what, given))


def without_subclasses(module):
    """The module, or a copy whose parameters that are several tensors in one (torchao's quantised
    weights) are these tensors, put together where they are read."""
    held = [*module.named_parameters(), *module.named_buffers()]
    wrapped = [n for n, t in held if is_traceable_wrapper_subclass(t)]
    if not wrapped:
        return module
    try:
        from torch._functorch._aot_autograd import subclass_parametrization as parts

        return parts.unwrap_tensor_subclass_parameters(copy.deepcopy(module))
    except Exception as e:  # a PyTorch that has no such function, or a class that is not made so
        raise CaptureError(
            "%s is several tensors in one (%s), which cannot be taken apart here: %s; give the "
            "module with its dequantised weights"
            % (wrapped[0], type(dict(held)[wrapped[0]]).__name__, short(e))
        ) from e


def given_tensors(inputs):
    return {n: t for n, t in leaves_of(inputs, "input") if isinstance(t, torch.Tensor)}


def refuse_with(what, **asked):
    for name, given in asked.items():
        if given:
            raise CaptureError("a capture without weights has no %s" % name.replace("_", " "))


def nodes_at(called, inputs, wanted, options):
    """The nodes of the program as it is captured on another example; none where it is not.
    options: strict, attributes, specialize, outputs."""
    strict, attributes, specialize, outputs = options
    try:
        expected = [reference(called, inputs)]
        specification = open_sizes.specification(wanted, inputs)
        exported = export(called, copied(inputs), strict, specification)
        sizes = open_sizes.Sizes(exported, leaves_of(inputs, "input"), wanted)
        program = Program("inner", attributes, specialize, sizes)
        env, _ = signature_leaves(program, exported, inputs)
        results = list(pytree.tree_leaves(program.read(exported.graph_module, env)))
        finish(program, exported, results, expected, outputs, None)
    except Exception:
        return []
    return program.nodes


def settled_sizes(called, program, inputs, wanted, options):
    """(symbols, guards) of a program. torch.export leaves out sizes of 1, where what broadcasts is
    decided otherwise; where it makes the same nodes of an example with 1, 1 is left in."""
    sizes = program.sizes
    symbols, guards = sizes.settled()
    for s in symbols:
        values = dict(sizes.values, **{s["name"]: 1})
        if s["min"] != 2 or sizes.ranges[s["name"]][0] > 1:
            continue
        given = open_sizes.moved(inputs, wanted, values)
        at_one = nodes_at(called, given, wanted, options)
        s["min"] = 1
        if not sizes.admits(values, symbols, guards) or not open_sizes.same_nodes(
            program.nodes, values, at_one
        ):
            s["min"] = 2
    return symbols, guards


def check_at(called, program, ssa, names, inputs, values):
    """At other sizes the captured graph has to compute what the module computes there."""
    at = open_sizes.said_at(values)
    try:
        expected = dict(reference(called, inputs))
    except Exception as e:
        raise CaptureError(
            "the module does not run at %s, which it was exported for: %s; give the sizes that it "
            "is for" % (at, short(e))
        ) from e
    given = given_tensors(inputs)
    try:
        ours = program.rerun(given, ssa, values)
    except Exception as e:
        raise CaptureError("the captured graph does not run at %s: %s" % (at, short(e))) from e
    check(names, ours, [expected[n] for n in names], " at %s" % at)


def graph_dropped(program):
    return sorted(program.dropped)


def written_leaves(program):
    """Leaves that the call changes: what it leaves behind in them is not an output."""
    return sorted(c.name for k, c in program.roots.items() if isinstance(k, str) and c.version)


def copied(inputs):
    return pytree.tree_map_only(torch.Tensor, lambda t: t.clone(), inputs)


def finish(program, exported, results, expected, wanted, output_names):
    """Chooses and names the outputs, and drops what they do not need."""
    from torch.export.graph_signature import OutputKind

    specs = exported.graph_signature.output_specs
    users = [r for r, s in zip(results, specs) if s.kind == OutputKind.USER_OUTPUT]
    names = [n for n, _ in expected[0]]
    if len(names) != len(users):
        raise CaptureError(
            "the module returns %d values and the exported graph %d" % (len(names), len(users))
        )
    program.no_tensors = [
        (n, program.number_out(u)) for n, u in zip(names, users) if not hasattr(u, "read")
    ]
    kept = [
        (n, c.read())
        for n, c in zip(names, users)
        if hasattr(c, "read") and (wanted is None or n in wanted)
    ]
    missing = [w for w in wanted or [] if w not in [n for n, _ in kept]]
    if missing:
        raise CaptureError(
            "there is no output tensor %s; there are: %s" % (", ".join(missing), ", ".join(names))
        )
    if not kept:
        raise CaptureError("the module returns no tensor")
    program.dropped = program.prune([s for _, s in kept])
    return {"outputs": [{"name": n, "ref": s.id} for n, s in kept]}, kept


def without_tensor(value):
    """An output that is no tensor, as the capture has it: of an object its type, and a list where
    no more is known than that it is a number."""
    if isinstance(value, open_sizes.NUMBERS):
        return [type(value).__name__]
    try:
        small = not isinstance(value, int) or -(1 << 63) <= value < 1 << 63
        return as_value(value) if small else {"int": str(value)}
    except CaptureError:
        return {"object": type(value).__name__}
