"""Sizes that a capture leaves open: torch.export's symbols under the user's names, as the
expressions and guards of docs/capture-format.md.

torch.export gives every node tensors that have symbols for sizes. Here these get names, and what it
assumed of them on its way becomes guards."""

import itertools
import sys

import sympy
import torch
from torch.utils import _pytree as pytree

from .errors import CaptureError
from .files import Size, leaves_of

LARGEST = sys.maxsize - 1
NUMBERS = (torch.SymInt, torch.SymFloat, torch.SymBool)


def asked(dynamic, inputs):
    """{input: {dimension: (name, least, largest)}} of what a caller wrote: for each input the names
    of its dimensions, as a list (None for one that stays fixed) or as a dictionary by dimension; in
    place of a name, (name, least, largest). Inputs in a nest are named as captures name them."""
    out, given = {}, dict(leaves_of(inputs, "input"))
    for name, dims in dynamic.items():
        if not isinstance(given.get(name), torch.Tensor):
            raise CaptureError("dynamic names %s, which is no input tensor" % name)
        pairs = dims.items() if isinstance(dims, dict) else enumerate(dims)
        out[name] = {}
        for d, said in pairs:
            if said is None:
                continue
            said = (said, 1, None) if isinstance(said, str) else tuple(said)
            rank = given[name].dim()
            if not (isinstance(d, int) and -rank <= d < rank and len(said) == 3):
                raise CaptureError("dynamic says of %s what is no dimension and name" % name)
            if not said[0].isidentifier() or said[0] in ("and", "or", "not", "min", "max"):
                raise CaptureError("dynamic: %s is no name of letters, digits and _" % said[0])
            out[name][d % rank] = said
    return out


def specification(wanted, inputs):
    """The same as torch.export wants it."""

    def one(name, given):
        open_ones = {d: torch.export.Dim.AUTO for d in wanted.get(name, {})}
        return open_ones if isinstance(given, torch.Tensor) else None

    return by_name(one, inputs)


def by_name(change, inputs):
    """The nest of inputs with change(name, it) in place of each."""
    flat, form = pytree.tree_flatten(inputs)
    names = [name for name, _ in leaves_of(inputs, "input")]
    return pytree.tree_unflatten([change(*pair) for pair in zip(names, flat)], form)


class Sizes:
    """Names, values and ranges of a program's symbols."""

    def __init__(self, exported, inputs, wanted):
        """inputs: (name, tensor) in the order of the program's own."""
        self.names, self.values, self.ranges, self.fixed = {}, {}, {}, []
        self.exported, self.mode = exported, None
        user = [s.arg.name for s in exported.graph_signature.input_specs if "USER" in s.kind.name]
        nodes = {n.name: n for n in exported.graph.nodes if n.op == "placeholder"}
        for placeholder, (name, given) in zip(user, inputs):
            val = nodes[placeholder].meta.get("val")
            if not isinstance(val, torch.Tensor):
                continue
            self.mode = self.mode or getattr(val, "fake_mode", None)
            for d, said in sorted(wanted.get(name, {}).items()):
                self.bind(name, d, val.shape[d], given.shape[d], said)
        self.env = self.mode.shape_env if self.mode else None

    def bind(self, name, d, size, value, said):
        expr = sympy.Integer(size) if isinstance(size, int) else size.node.expr
        if not isinstance(expr, sympy.Symbol):
            how = "fixed at %d" % value if expr.is_Integer else "%s" % expr
            self.fixed.append("%s of %s is %s by the program" % (said[0], name, how))
            return
        least, largest = said[1:]
        old = self.names.setdefault(expr, said[0])
        if old != said[0]:
            raise CaptureError(
                "%s and %s are one size in this program: give them one name" % (old, said[0])
            )
        if self.values.setdefault(said[0], value) != value:
            raise CaptureError(
                "%s is %d and %d in the example" % (said[0], self.values[old], value)
            )
        low, high = self.ranges.get(said[0], (1, None))
        self.ranges[said[0]] = (
            max(low, least),
            largest if high is None else high if largest is None else min(high, largest),
        )

    # ---- expressions ----

    def symbol(self, s):
        if s in self.names:
            return self.names[s]
        if str(s).startswith("u"):
            raise CaptureError(
                "a size is none that torch.export can tell (%s): it depends on the values in a "
                "tensor, or is that of a slice whose end it cannot compare with the length" % s
            )
        raise CaptureError("a size of the program has no name: name every dimension that may vary")

    def simple(self, expr):
        return self.env.replace(expr) if self.env and isinstance(expr, sympy.Basic) else expr

    def text(self, size):
        """The expression of a size; an int where it has no symbols."""
        if isinstance(size, int):
            return size
        expr = self.simple(size.node.expr)
        return int(expr) if expr.is_Integer else write(expr, self.symbol)

    def number(self, size, values=None):
        """A size's value at `values` of the symbols, by name; at the captured ones."""
        if not isinstance(size, NUMBERS):
            return size
        expr = self.simple(size.node.expr)
        values = values or self.values
        at = {s: values[self.symbol(s)] for s in expr.free_symbols}
        out = expr.xreplace({s: sympy.Integer(v) for s, v in at.items()})
        return (
            bool(out)
            if isinstance(size, torch.SymBool)
            else float(out)
            if isinstance(size, torch.SymFloat)
            else int(out)
        )

    def plain(self, tree, values=None):
        return pytree.tree_map_only(NUMBERS, lambda s: self.number(s, values), tree)

    def written(self, tree):
        """Sizes as graph.json has them among arguments."""

        def one(size):
            if not isinstance(size, torch.SymInt):
                raise CaptureError("a number that is computed from sizes (%s) is no size" % size)
            said = self.text(size)
            return said if isinstance(said, int) else Size(said)

        return pytree.tree_map_only(NUMBERS, one, tree)

    def run(self, operator, given):
        """An operator on stand-ins, as torch.export runs them."""
        with torch.fx.experimental._config.patch(backed_size_oblivious=True), self.mode:
            return operator(*given[0], **given[1])

    # ---- what is written ----

    def assumed(self):
        """What torch.export assumed of the symbols, each once, as expressions."""
        out = []
        for guard in self.env.guards:
            expr = self.simple(guard.expr)
            if isinstance(expr, sympy.Eq):  # T == min(32, T) is T <= 32
                for one, other in (expr.args, expr.args[::-1]):
                    if type(other).__name__ == "Min" and one in other.args:
                        expr = sympy.And(*[sympy.Le(one, a) for a in other.args if a != one])
            for part in expr.args if isinstance(expr, sympy.And) else (expr,):
                part = divided(part)
                if part is not sympy.true and part not in out:
                    out.append(part)
        return out

    def narrowed(self, name, least, largest, facts):
        """The range of a name by the comparisons of it with a number, which `facts` are."""
        for expr in facts:
            if self.names.get(expr.args[0]) != name:
                continue
            n = int(expr.args[1])
            if isinstance(expr, (sympy.Ge, sympy.Gt)):
                least = max(least, n + isinstance(expr, sympy.Gt))
            elif isinstance(expr, (sympy.Le, sympy.Lt)):
                top = n - isinstance(expr, sympy.Lt)
                largest = top if largest is None else min(largest, top)
        while any(
            isinstance(e, sympy.Ne) and self.names.get(e.args[0]) == name and e.args[1] == least
            for e in facts
        ):
            least += 1
        return least, largest

    def settled(self):
        """(symbols, guards) as graph.json has them."""
        symbols, guards = [], []
        everything = self.assumed()
        facts = [e for e in everything if one_sided(e, self.names)]
        for name in dict.fromkeys(self.names.values()):
            low, high = self.ranges[name]
            for symbol in [s for s, n in self.names.items() if n == name]:
                known = self.exported.range_constraints.get(
                    symbol, self.env.var_to_range.get(symbol)
                )
                if known is not None and known.upper.is_Integer and int(known.upper) < LARGEST:
                    high = min(int(known.upper), LARGEST if high is None else high)
                low = max(low, int(known.lower)) if known is not None else low
            low, high = self.narrowed(name, low, high, facts)
            value = self.values[name]
            if any(
                equal_to(e, s, value)
                for s, n in self.names.items()
                if n == name
                for e in everything
            ):
                self.fixed.append("%s is fixed at %d by the program" % (name, value))
                low = high = value
            if value < low or (high is not None and value > high):
                raise CaptureError("%s is %d, outside of %d to %s" % (name, value, low, high))
            one = {"name": name, "min": low, "value": value}
            symbols.append(dict(one, max=high) if high is not None else one)
        ranges = {s["name"]: s for s in symbols}
        for expr in everything:
            if expr in facts and not (isinstance(expr, sympy.Ne) and inside(expr, self, ranges)):
                continue
            if any(equal_to(expr, s, self.values[n]) for s, n in self.names.items()):
                continue
            text = write(expr, self.symbol)
            if text not in guards and not self.always(expr, text, ranges):
                guards.append(text)
        return symbols, guards

    def always(self, expr, text, ranges):
        """Whether a guard over one symbol holds at each of its values, few as they are."""
        most = 1 << 13
        names = {self.names.get(s) for s in expr.free_symbols}
        own = ranges.get(names.pop()) if len(names) == 1 else None
        if own is None or own.get("max", LARGEST) - own["min"] >= most:
            return False
        scope = {"__builtins__": {}, "min": min, "max": max}
        values = range(own["min"], own["max"] + 1)
        return all(eval(text, scope, {own["name"]: v}) for v in values)  # noqa: S307

    def admits(self, values, symbols, guards):
        for s in symbols:
            if not s["min"] <= values[s["name"]] <= s.get("max", sys.maxsize):
                return False
        scope = dict(values, __builtins__={}, min=min, max=max)
        return all(eval(g, scope) for g in guards)  # noqa: S307 -- our own text, no names but these

    def check(self, node, tensors, values):
        """The shapes that a node says of its results, held against these."""
        scope = dict(values or self.values, __builtins__={}, min=min, max=max)
        for said, t in zip(node["outputs"], tensors):
            shape = [eval(str(d), scope) for d in said["shape"]]  # noqa: S307
            if shape != list(t.shape):
                raise CaptureError(
                    "%s gives %s, and %s was expected" % (node["id"], list(t.shape), shape)
                )

    def others(self, symbols, guards):
        """A few other sizes at which the program is looked at again: small, next, larger."""
        tries = []
        for step in (lambda v: v + 1, lambda v: 2, lambda v: 2 * v + 3, lambda v: 1):
            for names in [list(self.values)] + [[n] for n in self.values]:
                tries.append({n: step(v) if n in names else v for n, v in self.values.items()})
        good, room = [], 4
        for one in tries:
            if one != self.values and one not in good and self.admits(one, symbols, guards):
                good.append(one)
        return good[:room]


def divided(expr):
    """16*T != 16 is T != 1."""
    if not isinstance(expr, (sympy.Eq, sympy.Ne)) or not expr.args[1].is_Integer:
        return expr
    by, rest = expr.args[0].as_coeff_Mul()
    if not by.is_Integer or by <= 1 or not rest.is_Symbol or expr.args[1] % by:
        return expr
    return expr.func(rest, expr.args[1] / by)


def equal_to(expr, symbol, value):
    return isinstance(expr, sympy.Eq) and set(expr.args) == {symbol, sympy.Integer(value)}


def one_sided(expr, names):
    """Whether it compares one symbol with a number."""
    kinds = (sympy.Le, sympy.Lt, sympy.Ge, sympy.Gt, sympy.Ne)
    return isinstance(expr, kinds) and expr.args[0] in names and expr.args[1].is_Integer


def inside(expr, sizes, ranges):
    """Whether the number that a symbol is not lies within its range."""
    own = ranges[sizes.names[expr.args[0]]]
    return own["min"] <= int(expr.args[1]) <= own.get("max", LARGEST)


RELATIONS = {
    sympy.Eq: "==",
    sympy.Ne: "!=",
    sympy.Lt: "<",
    sympy.Le: "<=",
    sympy.Gt: ">",
    sympy.Ge: ">=",
}


def write(expr, name):
    """A sympy expression in the words of the format. `name`: of a symbol."""

    def inner(e):
        return name(e) if isinstance(e, sympy.Symbol) else text(e)

    def grouped(e):
        said = inner(e)
        return said if e.is_Symbol or (e.is_Integer and e >= 0) else "(%s)" % said

    def text(e):
        kind = type(e).__name__
        if e.is_Integer:
            return str(int(e))
        if e.is_Symbol:
            return name(e)
        if type(e) in RELATIONS:
            return "%s %s %s" % (inner(e.args[0]), RELATIONS[type(e)], inner(e.args[1]))
        if isinstance(e, sympy.Not):
            return "not %s" % grouped(e.args[0])
        if isinstance(e, (sympy.And, sympy.Or)):
            word = " and " if isinstance(e, sympy.And) else " or "
            return word.join(sorted(grouped(a) for a in e.args))
        if e.is_Add:
            return " + ".join(grouped(a) for a in e.args)
        if e.is_Mul and all(a.is_integer for a in e.args):
            return "*".join(grouped(a) for a in e.args)
        if e.is_Pow and e.exp.is_Integer and int(e.exp) > 0:
            return "*".join([grouped(e.base)] * int(e.exp))
        if kind in ("FloorDiv", "CleanDiv"):
            return "%s // %s" % tuple(grouped(a) for a in e.args)
        if kind in ("Mod", "PythonMod"):
            return "%s %% %s" % tuple(grouped(a) for a in e.args)
        if kind in ("Min", "Max"):
            return "%s(%s)" % (kind.lower(), ", ".join(sorted(inner(a) for a in e.args)))
        if kind == "Identity":
            return inner(e.args[0])
        raise CaptureError("a size of the program, %s, has no place in a capture" % e)

    return inner(expr)


def at_values(node, order, values):
    """A node as it is at some values of the symbols, its references as places in `order`."""
    scope = dict(values, __builtins__={}, min=min, max=max)

    def number(x):
        return eval(x, scope) if isinstance(x, str) else x  # noqa: S307

    def settled(x):
        if isinstance(x, dict) and set(x) == {"size"}:
            return number(x["size"])
        if isinstance(x, dict) and set(x) == {"ref"}:
            return {"ref": order[x["ref"]]}
        if isinstance(x, dict):
            return {k: settled(v) for k, v in x.items()}
        return [settled(v) for v in x] if isinstance(x, (list, tuple)) else x

    said = {
        k: settled(node[k]) for k in ("op", "name", "args", "kwargs", "attributes") if k in node
    }
    if node["op"] == "getitem":
        said["args"] = [order[node["args"][0]["ref"]], node["args"][1]]
    said["outputs"] = [(o["dtype"], [number(d) for d in o["shape"]]) for o in node["outputs"]]
    return said


def same_nodes(nodes, values, others):
    """Whether the nodes are, at these values, the same calls as those of another capture."""
    order = {n["id"]: k for k, n in enumerate(nodes)}
    other = {n["id"]: k for k, n in enumerate(others)}
    return [at_values(n, order, values) for n in nodes] == [
        at_values(n, other, values) for n in others
    ]


def resized(tensor, shape):
    """The tensor with other sizes: its own elements, over and over."""
    for d, n in enumerate(shape):
        if tensor.shape[d] != n:
            at = torch.arange(n) % max(tensor.shape[d], 1)
            tensor = tensor.index_select(d, at)
    return tensor.clone()


def moved(inputs, wanted, values):
    """The example at other sizes."""

    def one(name, given):
        shape = list(getattr(given, "shape", ()))
        for d, said in wanted.get(name, {}).items():
            shape[d] = values.get(said[0], shape[d])
        return resized(given, shape) if isinstance(given, torch.Tensor) else given

    return by_name(one, inputs)


def said_at(values):
    return ", ".join(itertools.starmap("{} = {}".format, values.items()))
