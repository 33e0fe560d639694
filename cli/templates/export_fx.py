# ---- torch.fx.subgraph_rewriter ----

from torch.fx.subgraph_rewriter import replace_pattern_with_filters


def pattern_of(term):
    """The graph to look for. Literals in it count for nothing: bind() checks them."""
    graph, nodes, seen = torch.fx.Graph(), {}, {}
    for i in sorted(variables(term)):
        nodes[i] = graph.placeholder("v%d" % i)

    def make(t):
        if "var" in t:
            return nodes[t["var"]]
        if "list" in t:
            return [make(a) for a in t["list"]]
        if "op" not in t:
            return None if "none" in t else 0
        key = json.dumps(t, sort_keys=True)
        if key not in seen:  # one node for equal parts, as in graphs
            target = overload(t["op"])
            args = [make(a) for a in t["args"]]
            n = (
                len(args)
                if target is operator.getitem
                else sum(not f.kwarg_only for f in target._schema.arguments)
            )
            names = (
                [] if target is operator.getitem else [f.name for f in target._schema.arguments][n:]
            )
            seen[key] = graph.call_function(target, tuple(args[:n]), dict(zip(names, args[n:])))
        return seen[key]

    graph.output(make(term))
    return graph


def rewrite_one(gm, rule, backward):
    pattern = sides(rule, backward)[0]
    order, plan = sorted(variables(pattern)), {}

    def matches(match, graph, pattern_graph):
        root = match.returning_nodes[0]
        try:
            b = bind(rule, backward, root)
            replacement = torch.fx.Graph()
            places = {i: replacement.placeholder("v%d" % i) for i in order}
            replacement.output(build(rule, backward, b, root, replacement, places)[0])
        except Refused:
            return False
        plan[root] = replacement
        return True

    found = replace_pattern_with_filters(
        gm,
        pattern_of(pattern),
        match_filters=[matches],
        ignore_literals=True,
        replacement_callback=lambda match, graph, pattern_graph: plan[match.returning_nodes[0]],
    )
    return len(found)


def rewrite(gm, only=None, direction="shrink", sweeps=10):
    """Rewrite a GraphModule of ATen operators (torch.export's `ep.module()`, make_fx) whose nodes
    have shapes in meta["val"], in place. `only`: names of rules. `direction`: "shrink" uses each
    rule where it leaves fewer operators, again and again; "forward" (lhs to rhs) and "backward" go
    once through the rules. Returns: how often which rule was applied. A graph that writes to memory
    is left alone."""
    count = {}
    if not functional(gm.graph):
        return count
    tidy(gm.graph)
    for _ in range(sweeps if direction == "shrink" else 1):
        before = sum(count.values())
        for rule, backward in choose(only, direction):
            n = rewrite_one(gm, rule, backward)
            if n:
                count[rule["name"]] = count.get(rule["name"], 0) + n
        if sum(count.values()) == before:
            break
    gm.graph.eliminate_dead_code()
    gm.graph.lint()
    gm.recompile()
    return count
