# ---- Inductor's pattern matcher ----

import itertools

from torch._inductor.pattern_matcher import (
    CallFunction,
    KeywordArg,
    PatternMatcherPass,
    register_graph_pattern,
)


def uses(term, count):
    """How often each operator's result is read inside the pattern; equal parts are one node."""
    for a in term.get("args", term.get("list", ())):
        if "op" in a:
            key = json.dumps(a, sort_keys=True)
            count[key] = count.get(key, 0) + 1
            if count[key] > 1:
                continue
        uses(a, count)
    return count


def pattern_of(term):
    count, seen, literals = uses(term, {}), {}, itertools.count()

    def make(t):
        if "var" in t:
            return KeywordArg("v%d" % t["var"])
        if "list" in t:
            return [make(a) for a in t["list"]]
        if "op" not in t:  # bind() checks it
            return KeywordArg("literal%d" % next(literals))
        key = json.dumps(t, sort_keys=True)
        if key not in seen:
            target = overload(t["op"])
            args = [make(a) for a in t["args"]]
            formal = [] if target is operator.getitem else target._schema.arguments
            n = len(args) if target is operator.getitem else sum(not f.kwarg_only for f in formal)
            keywords = {f.name: a for f, a in zip(formal[n:], args[n:]) if f.name not in CONTEXT}
            seen[key] = CallFunction(target, *args[:n], _users=count.get(key, 1), **keywords)
        return seen[key]

    return make(term)


def register(pass_dict, only=None, direction="shrink"):
    """Register the rules with a PatternMatcherPass. Nodes are matched in the form that `spell_out`
    gives them."""
    counts = {}
    for rule, backward in choose(only, direction):

        def check(match, rule=rule, backward=backward):
            try:
                bind(rule, backward, match.output_node())
                return True
            except Refused:
                return False

        def replace(match, *args, rule=rule, backward=backward, **kwargs):
            root = match.output_node()
            b = bind(rule, backward, root)
            with match.graph.inserting_before(root):
                try:
                    node, made = build(rule, backward, b, root, match.graph, b.node)
                except Refused:
                    return
            for n in made:
                spell_out_node(n)
            root.replace_all_uses_with(node)
            match.erase_nodes()
            counts[rule["name"]] = counts.get(rule["name"], 0) + 1

        register_graph_pattern(
            pattern_of(sides(rule, backward)[0]), extra_check=check, pass_dict=pass_dict
        )(replace)
    return counts


def spell_out_node(n):
    if n.op != "call_function" or not isinstance(n.target, torch._ops.OpOverload):
        return
    formal, given = n.target._schema.arguments, dict(n.kwargs)
    args = [
        n.args[i] if i < len(n.args) else given.pop(f.name, f.default_value)
        for i, f in enumerate(formal)
        if not f.kwarg_only
    ]
    for f in formal:
        if f.kwarg_only and f.name not in CONTEXT and f.has_default_value():
            given.setdefault(f.name, f.default_value)
    n.args, n.kwargs = tuple(args), {f.name: given[f.name] for f in formal if f.name in given}


def spell_out(graph):
    """Every call with all its arguments: the matcher counts them."""
    for n in graph.nodes:
        spell_out_node(n)


def shorten(graph):
    """Calls as PyTorch writes them, which other passes expect."""
    for n in graph.nodes:
        if n.op != "call_function" or not isinstance(n.target, torch._ops.OpOverload):
            continue
        given = dict(n.kwargs)
        args = [
            n.args[i] if i < len(n.args) else given.get(f.name, f.default_value)
            for i, f in enumerate(n.target._schema.arguments)
        ]
        n.args, n.kwargs = call_arguments(n.target, args)


def apply(graph, only=None, direction="shrink", sweeps=10):
    """Rewrite a Graph or GraphModule in place; for
    `torch._inductor.config.post_grad_custom_pre_pass` and its like, or by itself. Arguments and
    result: as in the FX module's rewrite."""
    gm = graph if isinstance(graph, torch.fx.GraphModule) else None
    graph = gm.graph if gm is not None else graph
    if not functional(graph):
        return {}
    rules = PatternMatcherPass(pass_name="isomer_rules")
    counts = register(rules, only, direction)
    tidy(graph)
    spell_out(graph)
    for _ in range(sweeps if direction == "shrink" else 1):
        before = sum(counts.values())
        rules.apply(graph)
        if sum(counts.values()) == before:
            break
        graph.eliminate_dead_code()
    shorten(graph)
    graph.lint()
    if gm is not None:
        gm.recompile()
    return counts
