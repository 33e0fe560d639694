# ---- matching one side of a rule at a node, with every precondition ----

import fractions
import json
import math
import operator

import torch
import torch.fx


class Refused(Exception):
    """Why a rule does not apply at a node."""


def need(ok, why):
    if not ok:
        raise Refused(why)


def overload(name):
    """torch.ops.aten.add.Tensor for "aten::add.Tensor"; None where this PyTorch has no such
    operator."""
    if name == "getitem":
        return operator.getitem
    space, _, rest = name.partition("::")
    base, _, variant = rest.partition(".")
    try:
        return getattr(getattr(getattr(torch.ops, space), base), variant or "default")
    except (AttributeError, RuntimeError):
        return None


CONTEXT = ("device", "layout", "memory_format", "pin_memory", "generator", "non_blocking")
LAYOUTS = (None, torch.contiguous_format, torch.preserve_format)


def arguments(node):
    """All arguments in schema order, defaults filled in; those that rules do not speak of are
    None."""
    if node.target is operator.getitem:
        return list(node.args)
    given, out = dict(node.kwargs), []
    for i, formal in enumerate(node.target._schema.arguments):
        value = node.args[i] if i < len(node.args) else given.get(formal.name, formal.default_value)
        if formal.name in CONTEXT:
            need(value in LAYOUTS or value == formal.default_value, "argument %s" % formal.name)
            value = None
        out.append(value)
    return out


def tensor_of(node):
    """Facts about a node's tensor."""
    for key in ("val", "example_value", "tensor_meta"):
        if key in node.meta:
            return node.meta[key]
    if node.op == "get_attr":
        at = node.graph.owning_module
        for part in node.target.split("."):
            at = getattr(at, part)
        return at
    return None


NARROW = {torch.int32: "i32", torch.int16: "i16", torch.int8: "i8", torch.uint8: "u8"}


def kind_of(dtype):
    return (
        "f"
        if dtype.is_floating_point
        else "c"
        if dtype.is_complex
        else "b"
        if dtype == torch.bool
        else NARROW.get(dtype, "i")
    )


class Binding:
    """Variables to nodes, sizes and attributes to numbers."""

    def __init__(self, rule):
        self.rule, self.node, self.name, self.expected, self.dtypes = rule, {}, {}, [], set()

    def term(self, t, value):
        """`value`, a node or a literal, is an instance of the term."""
        if "var" in t:
            return self.variable(t["var"], value)
        if "op" in t:
            need(
                isinstance(value, torch.fx.Node)
                and value.op == "call_function"
                and value.target == overload(t["op"]),
                "operator",
            )
            args = arguments(value)
            need(len(args) == len(t["args"]), "arguments")
            self.float_dtype(tensor_of(value))
            for a, v in zip(t["args"], args):
                self.term(a, v)
        elif "list" in t:
            need(isinstance(value, (list, tuple)) and len(value) == len(t["list"]), "list")
            for a, v in zip(t["list"], value):
                self.term(a, v)
        else:
            self.literal(t, value)

    def literal(self, t, value):
        need(not isinstance(value, (torch.fx.Node, torch.SymInt, torch.SymFloat)), "not a literal")
        whole = isinstance(value, int) and not isinstance(value, bool)
        if "name" in t:
            need(
                whole
                or isinstance(value, float)
                or (isinstance(value, (list, tuple)) and all(type(v) is int for v in value)),
                "not a number",
            )
            self.bind_name(t["name"], list(value) if isinstance(value, tuple) else value)
        elif "expr" in t:
            need(whole, "not an integer")
            self.expected.append((t, value))
        elif "int" in t:
            need(whole and value == t["int"], "integer")
        elif "float" in t:
            want = float(t["float"])
            need(
                (whole or isinstance(value, float))
                and (float(value) == want or (math.isnan(want) and math.isnan(value))),
                "number",
            )
        elif "bool" in t:
            need(isinstance(value, bool) and value == t["bool"], "flag")
        elif "string" in t:
            need(value == t["string"], "string")
        elif "dtype" in t:
            need(str(value) == "torch." + t["dtype"], "dtype")
        else:
            need(value is None, "none")

    def bind_name(self, name, value):
        need(
            type(self.name.setdefault(name, value)) is type(value) and self.name[name] == value,
            "%s has two values" % name,
        )

    def float_dtype(self, tensor):
        """Rules speak of real numbers: between two float dtypes rounding would be lost or
        gained."""
        for t in tensor if isinstance(tensor, (list, tuple)) else [tensor]:
            if isinstance(t, torch.Tensor) and kind_of(t.dtype) in "fc":
                self.dtypes.add(t.dtype)

    def variable(self, i, value):
        need(isinstance(value, torch.fx.Node), "not a tensor")
        if i in self.node:
            return need(self.node[i] is value, "two tensors for one variable")
        v, t = self.rule["variables"][i], tensor_of(value)
        need(isinstance(t, torch.Tensor), "shape and dtype are not known")
        need(kind_of(t.dtype) == v["kind"], "kind of values")
        shape = list(t.shape)
        need(all(type(d) is int and d >= 1 for d in shape), "sizes that are not known, or 0")
        self.node[i] = value
        self.float_dtype(t)
        if v["shape"] is not None:
            self.shape(v["shape"], shape)

    def shape(self, want, shape):
        dims = want["sizes"]
        need(len(shape) >= len(dims) if want["leading"] else len(shape) == len(dims), "rank")
        for d, size in zip(dims, shape[len(shape) - len(dims) :]):
            if d is not None:
                self.literal(d, size)

    # sizes, attributes and conditions

    def number(self, t, extra=None):
        """The exact value, and whether a real took part; None where a name has no value."""
        if "int" in t:
            return fractions.Fraction(t["int"]), False
        if "float" in t:
            return fractions.Fraction(float(t["float"])), True
        if "name" in t:
            v = self.name.get(t["name"], (extra or {}).get(t["name"]))
            return (
                None
                if v is None or isinstance(v, list)
                else (fractions.Fraction(v), isinstance(v, float))
            )
        parts = [self.number(a, extra) for a in t["args"]]
        if None in parts:
            return None
        (out, real), op = parts[0], t["expr"]
        if op == "-" and len(parts) == 1:
            return -out, real
        for v, r in parts[1:]:
            real |= r
            if op in ("/", "mod") and v == 0:
                return None
            out = {
                "+": lambda: out + v,
                "-": lambda: out - v,
                "*": lambda: out * v,
                "/": lambda: out / v,
                "mod": lambda: out % v,
            }[op]()
        return out, real

    def holds(self, t):
        """A condition is true; None where it is open."""
        op, args = t["expr"], t["args"]
        if op in ("and", "or", "not"):
            parts = [self.holds(a) for a in args]
            if None in parts:
                return None
            return all(parts) if op == "and" else any(parts) if op == "or" else not parts[0]
        parts = [self.number(a) for a in args]
        if None in parts:
            return None
        real = any(r for _, r in parts)

        def same(a, b):  # a literal for 1/sqrt(n) is within an ulp of it; its square rounds again
            return a == b or (
                real and abs(a - b) <= fractions.Fraction(1, 10**15) * max(abs(a), abs(b))
            )

        v = [x for x, _ in parts]
        if op == "in":  # low <= x < high
            return (v[1] <= v[0] or same(v[0], v[1])) and v[0] < v[2] and not same(v[0], v[2])
        if op == "divides":
            return v[0] != 0 and v[1] % v[0] == 0
        sign = 0 if same(v[0], v[1]) else -1 if v[0] < v[1] else 1
        return {
            "=": sign == 0,
            "!=": sign != 0,
            "<": sign < 0,
            "<=": sign <= 0,
            ">": sign > 0,
            ">=": sign >= 0,
        }[op]

    def open_names(self, t):
        if "name" in t:
            return set() if t["name"] in self.name else {t["name"]}
        return set().union(*[self.open_names(a) for a in t.get("args", ())])

    def solve(self, a, b):
        """Bind the one open name of a = b where that is linear in it."""
        names = self.open_names(a) | self.open_names(b)
        if len(names) != 1:
            return False
        name, at = names.pop(), []
        for x in (0, 1):
            l, r = self.number(a, {name: x}), self.number(b, {name: x})
            if l is None or r is None:
                return False
            at.append(l[0] - r[0])
        slope = at[1] - at[0]
        if slope == 0 or (-at[0] / slope).denominator != 1:
            return False
        x = int(-at[0] / slope)
        l, r = self.number(a, {name: x}), self.number(b, {name: x})
        if l[0] != r[0]:
            return False
        self.name[name] = x
        return True

    def finish(self):
        """Expressions, conditions and the kinds of attributes."""
        equations = [(t, {"int": v}) for t, v in self.expected]
        equations += [
            tuple(w["args"]) for w in self.rule["where"] if w["expr"] == "=" and len(w["args"]) == 2
        ]
        while any([self.solve(a, b) for a, b in equations]):
            pass
        for t, v in self.expected:
            found = self.number(t)
            need(found is not None and found[0] == v, "an expression has another value")
        for w in self.rule["where"]:
            need(self.holds(w) is True, "a condition does not hold")
        for v in self.rule["variables"]:
            for d in (v["shape"] or {"sizes": []})["sizes"]:
                self.sizes(d)
        for name, v in self.name.items():
            kind = self.rule["attributes"].get(name, "i")
            need(isinstance(v, {"f": float, "l": list}.get(kind, int)), "kind of %s" % name)
        need(len(self.dtypes) <= 1, "casts between float dtypes")

    def sizes(self, d):
        """Sizes are at least 1. Those of a variable that the pattern does not have stay open."""
        if d is None:
            return
        if "name" in d and d["name"] in self.name:
            need(type(self.name[d["name"]]) is int and self.name[d["name"]] >= 1, "a size below 1")
        for a in d.get("args", ()):
            self.sizes(a)

    def literal_value(self, t):
        if "list" in t:
            return [self.literal_value(a) for a in t["list"]]
        if "name" in t:
            need(t["name"] in self.name, "%s is not known" % t["name"])
            return self.name[t["name"]]
        if "expr" in t:
            v = self.number(t)
            need(v is not None and v[0].denominator == 1, "an expression is not known")
            return int(v[0])
        if "dtype" in t:
            return getattr(torch, t["dtype"])
        if "float" in t:
            return float(t["float"])
        return t.get("int", t.get("bool", t.get("string")))


def call_arguments(target, args):
    """As PyTorch writes calls: trailing defaults and what is context left out."""
    if target is operator.getitem:
        return tuple(args), {}
    formal = target._schema.arguments
    args = [
        f.default_value if f.name in CONTEXT and a is None and f.has_default_value() else a
        for f, a in zip(formal, args)
    ]
    positional = [a for f, a in zip(formal, args) if not f.kwarg_only]
    names = [f for f in formal if not f.kwarg_only]
    while (
        positional
        and names[len(positional) - 1].has_default_value()
        and is_default(names[len(positional) - 1], positional[-1])
    ):
        positional.pop()
    keywords = {
        f.name: a
        for f, a in zip(formal, args)
        if f.kwarg_only
        and not (is_default(f, a) and f.has_default_value())
        and not (f.name in CONTEXT and a is None)
    }
    return tuple(positional), keywords


def is_default(formal, value):
    return (formal.name in CONTEXT and value is None) or (
        not isinstance(value, torch.fx.Node)
        and type(value) is type(formal.default_value)
        and value == formal.default_value
    )


class Builder:
    """Makes the nodes of a term in a graph, with what is known of their tensors."""

    def __init__(self, graph, binding, node_of, value_of):
        self.graph, self.binding, self.node_of, self.value_of, self.made = (
            graph,
            binding,
            node_of,
            value_of,
            [],
        )

    def term(self, t):
        """The node or literal, and its tensor or value."""
        if "var" in t:
            need(t["var"] in self.binding.node, "a variable that the pattern does not have")
            return self.node_of[t["var"]], self.value_of[t["var"]]
        if "list" in t and any("var" in a or "op" in a for a in t["list"]):
            parts = [self.term(a) for a in t["list"]]
            return [n for n, _ in parts], [v for _, v in parts]
        if "op" not in t:
            v = self.binding.literal_value(t)
            return v, v
        target = overload(t["op"])
        need(target is not None, "no operator %s" % t["op"])
        parts = [self.term(a) for a in t["args"]]
        args, kwargs = call_arguments(target, [n for n, _ in parts])
        fake_args, fake_kwargs = call_arguments(target, [v for _, v in parts])
        try:
            value = target(*fake_args, **fake_kwargs)
        except Exception as e:
            raise Refused("%s cannot be run here: %s" % (t["op"], str(e).split("\n")[0]))
        node = self.graph.call_function(target, args, kwargs)
        node.meta["val"] = value
        self.made.append(node)
        return node, value


def fake(tensor):
    return (
        tensor
        if not isinstance(tensor, torch.Tensor)
        or type(tensor) is not torch.Tensor
        and not isinstance(tensor, torch.nn.Parameter)
        else tensor.detach().to("meta")
    )


def modes(values):
    """FakeTensors are to be run in the mode that they come from."""
    for v in values:
        mode = getattr(v, "fake_mode", None)
        if mode is not None:
            return mode
    return torch.no_grad()


def alike(a, b):
    """One tensor can stand for the other: dtype, shape, and strides where they count (a view behind
    it may rely on them)."""
    return (
        isinstance(a, torch.Tensor)
        and isinstance(b, torch.Tensor)
        and a.dtype == b.dtype
        and a.shape == b.shape
        and [s for s, d in zip(a.stride(), a.shape) if d > 1]
        == [s for s, d in zip(b.stride(), b.shape) if d > 1]
    )


def sides(rule, backward):
    return (rule["rhs"], rule["lhs"]) if backward else (rule["lhs"], rule["rhs"])


def bind(rule, backward, root):
    """The binding where the rule applies at `root`, every precondition checked. Raises Refused."""
    b = Binding(rule)
    b.term(sides(rule, backward)[0], root)
    b.finish()
    return b


def build(rule, backward, b, root, graph, node_of):
    """The other side in `graph`, its tensor like that of `root`; and the nodes that were made.
    Raises Refused, and then leaves the graph as it was."""
    values = {i: fake(tensor_of(n)) for i, n in b.node.items()}
    maker = Builder(graph, b, node_of, values)
    try:
        with modes(values.values()):
            node, value = maker.term(sides(rule, backward)[1])
        need(alike(value, fake(tensor_of(root))), "shape, dtype or strides of the result")
    except Refused:
        for n in reversed(maker.made):
            graph.erase_node(n)
        raise
    return node, maker.made


def operators(t):
    return ("op" in t and t["op"] != "getitem") + sum(
        operators(a) for a in t.get("args", t.get("list", ())) if isinstance(a, dict)
    )


def variables(t):
    if "var" in t:
        return {t["var"]}
    return set().union(*[variables(a) for a in t.get("args", t.get("list", ()))])


def known(t):
    return ("op" not in t or overload(t["op"]) is not None) and all(
        known(a) for a in t.get("args", t.get("list", ()))
    )


def applicable(rule, backward):
    """Whether that side can be looked for: it is an operator, and has all variables of the
    other."""
    a, b = sides(rule, backward)
    return "op" in a and variables(b) <= variables(a) and known(a) and known(b)


def directions(rule, direction):
    """Which ways a rule is used: "shrink" where it leaves fewer operators, "forward" lhs to rhs,
    "backward"."""
    for backward in (False, True):
        a, b = sides(rule, backward)
        if applicable(rule, backward) and (
            operators(b) < operators(a)
            if direction == "shrink"
            else backward == (direction == "backward")
        ):
            yield backward


def functional(graph):
    """Rules speak of values: graphs in which memory is written to are left alone."""
    for n in graph.nodes:
        schema = getattr(n.target, "_schema", None) if n.op == "call_function" else None
        if schema is not None and schema.is_mutable:
            return False
    return True


def tidy(graph):
    """Leave out what no output reads, and asserts about tensors for what is known of them: neither
    is a use of what it looks at."""
    for n in list(graph.nodes):
        if n.op == "call_function" and n.target is torch.ops.aten._assert_tensor_metadata.default:
            t, dtype = (
                tensor_of(n.args[0]),
                n.kwargs.get("dtype", n.args[3] if len(n.args) > 3 else None),
            )
            if isinstance(t, torch.Tensor) and dtype in (None, t.dtype) and len(n.args) < 2:
                graph.erase_node(n)
    graph.eliminate_dead_code()


def choose(only, direction):
    if direction not in ("shrink", "forward", "backward"):
        raise ValueError("direction: shrink, forward or backward")
    for rule in RULES:
        if only is None or rule["name"] in only:
            for backward in directions(rule, direction):
                yield rule, backward
