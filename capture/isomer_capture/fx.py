"""A graph of torch.fx, as a compiler's passes hold it, as a capture.

A graph of ATen operators is read as it stands. Any other one (torch functions, modules) is captured
as a module is."""

import copy
import operator

import torch
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import _disable_current_modes

from .core import capture
from .errors import CaptureError
from .files import write_capture
from .program import Program


def placeholders(gm):
    return [n for n in gm.graph.nodes if n.op == "placeholder"]


def copy_of(gm):
    """The graph as it is now, with parameters and modules of its own: passes write to both."""
    graph = torch.fx.Graph()
    graph.output(graph.graph_copy(gm.graph, {}))
    own = torch.fx.GraphModule(gm, graph)
    for target in {n.target for n in graph.nodes if n.op in ("get_attr", "call_module")}:
        *path, name = target.split(".")
        holder = own.get_submodule(".".join(path))
        # A compiler runs its passes in a mode for tensors without values, and constants have some.
        with _disable_current_modes():
            setattr(holder, name, own_copy(getattr(holder, name)))
    return own


def own_copy(thing):
    if isinstance(thing, torch.nn.Parameter):
        return torch.nn.Parameter(thing.detach().clone(), thing.requires_grad)
    if isinstance(thing, torch.Tensor):
        return thing.detach().clone()
    return copy.deepcopy(thing) if isinstance(thing, torch.nn.Module) else thing


def is_aten(gm):
    for n in gm.graph.nodes:
        if n.op in ("call_module", "call_method"):
            return False
        if n.op == "call_function" and n.target is not operator.getitem:
            if not isinstance(n.target, (torch._ops.OpOverload, torch._ops.HigherOrderOperator)):
                return False
    return True


def as_aten(gm):
    """Operators of other namespaces that PyTorch's decompositions use, as ATen's."""
    for n in gm.graph.nodes:
        if n.target is torch.ops.prims.convert_element_type.default:
            n.target, n.args, n.kwargs = (
                torch.ops.aten._to_copy.default,
                n.args[:1],
                {"dtype": n.args[1]},
            )
        elif n.target is torch.ops.prims.iota.default:
            start, step = n.kwargs.get("start", 0), n.kwargs.get("step", 1)
            n.target = torch.ops.aten.arange.start_step
            n.args = (start, start + step * n.args[0], step)
            n.kwargs = {"dtype": n.kwargs["dtype"]}
    return gm


def described(node):
    """The tensor that stands for a placeholder while passes run."""
    return node.meta.get("val", node.meta.get("example_value"))


def drawn(like, generator):
    shape = [int(n) for n in like.shape]
    if like.dtype.is_floating_point or like.dtype.is_complex:
        return torch.randn(shape, generator=generator, dtype=torch.float64).to(like.dtype)
    return torch.randint(0, 2, shape, generator=generator).to(like.dtype)


def values_of(gm, given=None, seed=0, strict=False):
    """Values for the placeholders: those that were given, where they fit, else drawn ones; integers
    are 0 or 1, which every table has. strict: what was given has to fit."""
    nodes, generator = placeholders(gm), torch.Generator().manual_seed(seed)
    likes = [described(n) for n in nodes]
    if given is not None and not isinstance(given, (list, tuple)):
        raise CaptureError("inputs are a list, in the order of the placeholders")
    why = None if given is None else misfit(given, nodes, likes)
    if given is not None and not why:
        return [v.detach().clone() if isinstance(v, torch.Tensor) else v for v in given]
    if why and (strict or all(like is None for like in likes)):
        raise CaptureError(why)
    if not all(isinstance(like, torch.Tensor) for like in likes):
        raise CaptureError("a placeholder is no tensor of a known size: give example inputs")
    return [drawn(like, generator) for like in likes]


def misfit(given, nodes, likes):
    """Why these are no values of the placeholders; None where they may be."""
    if len(given) != len(nodes):
        return "%d example inputs for %d placeholders" % (len(given), len(nodes))
    for value, node, like in zip(given, nodes, likes):
        if isinstance(like, torch.Tensor) and kind_of(value) != kind_of(like):
            return "%s is %s, and is given %s" % (node.target, kind_of(like), kind_of(value))
    return None


def kind_of(value):
    if not isinstance(value, torch.Tensor):
        return type(value).__name__
    return "%s %s" % (str(value.dtype).replace("torch.", ""), [int(n) for n in value.shape])


class Known(torch.fx.Interpreter):
    """Each node with its value: nodes that a pass has made say nothing of their results."""

    def run_node(self, n):
        n.meta["val"] = super().run_node(n)
        return n.meta["val"]


def capture_fx(gm, values, folder):
    """Write the graph, run on these values of its placeholders, to a folder."""
    if not is_aten(gm):
        names = [n.target for n in placeholders(gm)]
        return capture(gm, dict(zip(names, values)), folder, domains=False)
    gm = as_aten(copy_of(gm))
    Known(gm).run(*(v.clone() if isinstance(v, torch.Tensor) else v for v in values))
    program, env, inputs = Program(), {}, {}
    for node, value in zip(placeholders(gm), values):
        env[node] = value
        if isinstance(value, torch.Tensor):
            env[node] = program.leaf("input", node.name, value, node.name)
            inputs[node.name] = value
    with torch.no_grad():
        results = pytree.tree_leaves(program.read(gm, env))
        out = [("output_%d" % k, r.read()) for k, r in enumerate(results) if hasattr(r, "read")]
        written = [c for key, c in program.roots.items() if isinstance(key, str) and c.version]
        out += [("written_" + c.name, c.read()) for c in written]
    if not out:
        raise CaptureError("the graph has no output tensor")
    program.prune([s for _, s in out])
    graph = {
        "format": "isomer-capture",
        "version": 1,
        "model": "graph",
        "framework": "pytorch",
        "framework_version": torch.__version__.split("+")[0],
        "torch_version": torch.__version__.split("+")[0],
        "nodes": program.nodes,
        "outputs": [{"name": name, "ref": s.id} for name, s in out],
        "metadata": {},
    }
    weights = {name: t for kind, name, t in program.leaves.values() if kind != "input"}
    write_capture(folder, graph, weights, [inputs], None)
    return graph
