"""More kinds of bugs, as in breaking.py: those of a whole layer or module, of whole numbers, of
groups of heads, of two leaves."""

import re

from graph import LEAVES, base, is_number, is_ref, node_refs


def insert(op, args):
    def change(g, n):
        m = g.new(n, "_extra", op, [{"ref": n["id"]}] + args)
        users = [u["id"] for u in g.users.get(n["id"], [])]
        g.after(n, [m])
        g.replace(n["id"], m["id"], skip=[m])
        return [m["id"]] + users

    change.gone = True  # the other side has no such node: its first consumer is as good
    return change


def replaced(steps, keep=False):
    """The readers of a node read the last of `steps(g, n)` instead. `keep`: the steps begin at the
    node itself, otherwise at its argument."""

    def change(g, n):
        new = steps(g, n)
        users = [u["id"] for u in g.users.get(n["id"], [])]
        g.after(n, new)
        g.replace(n["id"], new[-1]["id"], skip=new)
        return [n["id"]] + [m["id"] for m in new] + (users if keep else [])

    change.gone = keep
    return change


def integers(g, n):
    """Whole numbers where positions, masks and experts are computed: off by one."""
    b, a = base(n), n["args"]
    if not n["outputs"] or b in (
        "view",
        "reshape",
        "arange",
        "unsqueeze",
        "squeeze",
        "expand",
        "transpose",
        "permute",
        "slice",
        "to",
        "cat",
        "flatten",
    ):
        return
    whole = n["outputs"][0]["dtype"].startswith(("int", "bool", "uint"))
    if (
        whole
        and len(a) > 1
        and is_ref(a[0])
        and is_number(a[1])
        and len(n["outputs"]) == 1
        and b
        in (
            "add",
            "sub",
            "gt",
            "ge",
            "lt",
            "le",
            "eq",
            "ne",
            "clamp",
            "clamp_min",
            "clamp_max",
            "remainder",
            "floor_divide",
            "mul",
            "cumsum",
        )
    ):
        for by in (-1, 1):
            yield (
                "integer-off-by-one",
                lambda g, n, by=by: n["args"].__setitem__(1, n["args"][1] + by),
            )
    if b in ("index_select", "gather") and is_ref(a[2]):

        def offset(g, n):
            one = g.new(
                n,
                "_off",
                "aten::sub.Tensor",
                [dict(n["args"][2]), 1],
                dtype=g.dtype(n["args"][2]["ref"]),
            )
            low = g.new(
                n,
                "_low",
                "aten::clamp_min",
                [{"ref": one["id"]}, 0],
                dtype=g.dtype(n["args"][2]["ref"]),
            )
            g.before(n, [one, low])
            n["args"][2] = {"ref": low["id"]}
            return [n["id"], one["id"], low["id"]]

        yield "index-offset", offset
    for k, v in enumerate(a):
        if isinstance(v, bool) and b in ("topk", "sort", "var", "std", "var_mean", "argsort"):
            yield "flag", lambda g, n, k=k: n["args"].__setitem__(k, not n["args"][k])
    if b == "clamp" and len(a) > 2:
        for k in (1, 2):
            if is_number(a[k]):
                yield "bound-dropped", lambda g, n, k=k: n["args"].__setitem__(k, None)


def halves(g, n):
    """The other half of a slice; the parts of a rotation, of a projection, of a table."""
    a = n["args"]
    if (
        n["op"] == "aten::slice.Tensor"
        and len(a) > 3
        and is_number(a[2])
        and is_number(a[3])
        and g.floating(n["id"])
    ):
        size = g.shape(a[0]["ref"])[a[1]]
        length = min(a[3], size) - a[2]
        for start in (a[2] - length, a[2] + length):
            if 0 <= start and start + length <= size:
                yield (
                    "slice-other-part",
                    lambda g, n, start=start, length=length: n["args"].__setitem__(
                        slice(2, 4), [start, start + length]
                    ),
                )
    if (
        n["op"] == "aten::cat"
        and isinstance(a[0], list)
        and len(a[0]) == 2
        and all(is_ref(r) for r in a[0])
        and a[0][0] != a[0][1]
    ):
        if g.shape(a[0][0]["ref"]) == g.shape(a[0][1]["ref"]):
            for k in (0, 1):

                def doubled(g, n, k=k):
                    n["args"][0][k] = dict(n["args"][0][1 - k])

                yield "cat-doubled", doubled


def groups(g, n):
    """Key and value heads repeated in the wrong order: 0 1 0 1 for 0 0 1 1."""
    a = n["args"]
    if n["op"] == "aten::expand" and is_ref(a[0]):
        source = g.by_id[a[0]["ref"]]
        was, now = g.shape(a[0]["ref"]), g.shape(n["id"])
        wide = [k for k in range(len(now)) if len(was) == len(now) and was[k] != now[k]]
        if (
            len(now) == 5
            and len(wide) == 1
            and wide[0] > 0
            and now[wide[0] - 1] > 1
            and len(g.users.get(n["id"], [])) == 1
        ):

            def order(g, n, k=wide[0]):
                t = g.new(n, "_order", "aten::transpose.int", [{"ref": n["id"]}, k - 1, k])
                g.after(n, [t])
                users = [u["id"] for u in g.users[n["id"]]]
                g.replace(n["id"], t["id"], skip=[t])
                return [n["id"], t["id"], source["id"]] + users

            order.gone = True
            yield "group-order", order
    if n["op"] == "aten::repeat_interleave.self_int" and len(a) > 2 and is_number(a[2]):

        def repeat(g, n):
            rank = len(g.shape(n["id"]))
            times = [1] * rank
            times[n["args"][2] % rank] = n["args"][1]
            n["op"], n["args"], n["kwargs"] = "aten::repeat", [n["args"][0], times], {}

        yield "group-order", repeat
    if n["op"] == "aten::scaled_dot_product_attention":
        for i, j, kind in ((1, 2, "attention-kv-swap"), (0, 1, "attention-qk-swap")):
            if g.shape(a[i]["ref"]) == g.shape(a[j]["ref"]):
                yield (
                    kind,
                    lambda g, n, i=i, j=j: n["args"].__setitem__(
                        slice(i, j + 1), [n["args"][j], n["args"][i]]
                    ),
                )

        def heads(g, n):
            was = n["args"][1]
            m = g.new(n, "_roll", "aten::roll", [dict(was), [1], [1]])
            g.before(n, [m])
            n["args"][1] = {"ref": m["id"]}
            return [n["id"], m["id"], was["ref"]]

        if len(g.shape(a[1]["ref"])) == 4 and g.shape(a[1]["ref"])[1] > 1:
            yield "heads-rolled", heads


def chains(g, n):
    """Several operators left out as one: a soft cap, a norm, a residual branch."""
    a = n["args"]
    if n["op"] == "aten::mul.Tensor" and len(a) == 2 and is_ref(a[0]) and is_number(a[1]):
        t = g.by_id[a[0]["ref"]]
        d = g.by_id[t["args"][0]["ref"]] if t["op"] == "aten::tanh" else None
        if d and d["op"] in ("aten::div.Tensor", "aten::mul.Tensor"):
            yield "cap-dropped", without(d["args"][0]["ref"])
    if (
        base(n) in ("mul", "layer_norm")
        and n.get("scope", "").split(".")[-1].endswith("norm")
        and g.floating(n["id"])
    ):
        scope, at, left = n["scope"], n["id"], 12
        if any(u.get("scope") == scope for u in g.users.get(n["id"], [])):
            return
        while left and g.by_id[at].get("scope") == scope and g.by_id[at]["op"] not in LEAVES:
            left -= 1
            same = [
                r["ref"]
                for r in node_refs(g.by_id[at])
                if g.by_id[r["ref"]]["outputs"] and g.shape(r["ref"]) == g.shape(n["id"])
            ]
            if not same:
                return
            at = same[0]
        if left and g.by_id[at].get("scope") != scope and g.by_id[at]["op"] not in LEAVES:
            yield "norm-dropped", without(at, scope)


def without(earlier, scope=None):
    """The readers of a node read an earlier one, as if the node were left out."""

    def change(g, n):
        users = [u["id"] for u in g.users.get(n["id"], [])]
        own = [m["id"] for m in g.nodes if scope and m.get("scope") == scope]
        g.replace(n["id"], earlier)
        return users + own

    change.gone = True
    return change


LAYER = re.compile(r"^(.*?\.(?:layers|h|blocks)\.)(\d+)(\..*)$")


def layers(g, n):
    """All weights of a layer, or of a module in it, are those of another layer; all of its
    operators with another eps."""
    if n["op"] != "parameter":
        return
    m = LAYER.match(n["name"])
    if not m:
        return
    first = next(
        x
        for x in g.nodes
        if x["op"] == "parameter"
        and LAYER.match(x["name"])
        and LAYER.match(x["name"]).group(1, 2) == m.group(1, 2)
    )
    names = {x["name"]: x for x in g.nodes if x["op"] == "parameter"}
    other = "%s%d%s" % (m.group(1), (int(m.group(2)) + 1) % 2, m.group(3))
    if first is n and other in names and names[other]["outputs"] == n["outputs"]:

        def whole(g, n, prefix=m.group(1) + m.group(2) + "."):
            at = []
            for x in list(g.nodes):
                k = LAYER.match(x.get("name") or "") if x["op"] == "parameter" else None
                twin = (
                    names.get("%s%d%s" % (k.group(1), (int(k.group(2)) + 1) % 2, k.group(3)))
                    if k and x["name"].startswith(prefix)
                    else None
                )
                if twin and twin["outputs"] == x["outputs"]:
                    at += [x["id"], twin["id"]] + [u["id"] for u in g.users.get(x["id"], [])]
                    for u in g.users.get(x["id"], []):
                        for r in node_refs(u):
                            if r["ref"] == x["id"]:
                                r["ref"] = twin["id"]
            g.doc["nodes"] = [x for x in g.nodes if x["op"] in LEAVES] + [
                x for x in g.nodes if x["op"] not in LEAVES
            ]
            return at

        yield "layer-weights", whole
    if other in names and names[other]["outputs"] == n["outputs"] and int(m.group(2)) == 0:

        def swapped(g, n, other=other):
            w = g.weights
            w[n["name"]], w[other] = w[other], w[n["name"]]
            twin = next(x for x in g.nodes if x.get("name") == other and x["op"] == "parameter")
            return [x["id"] for x in (n, twin)] + [
                u["id"] for x in (n, twin) for u in g.users.get(x["id"], [])
            ]

        yield "leaves-swapped", swapped
    near = [
        x
        for x in g.nodes
        if x["op"] == "parameter"
        and x is not n
        and x["id"] > n["id"]
        and x["outputs"] == n["outputs"]
        and len(n["outputs"][0]["shape"]) == 2
        and x["name"].startswith(m.group(1) + m.group(2) + ".")
    ]
    if near:

        def names_swapped(g, n, other=near[0]["name"]):
            w = g.weights
            w[n["name"]], w[other] = w[other], w[n["name"]]
            twin = next(x for x in g.nodes if x.get("name") == other and x["op"] == "parameter")
            return [x["id"] for x in (n, twin)] + [
                u["id"] for x in (n, twin) for u in g.users.get(x["id"], [])
            ]

        yield "leaves-swapped", names_swapped


def residuals(g, n):
    """A sum of the residual stream with what it is normed to, or twice the branch."""
    a = n["args"]
    if (
        n["op"] == "aten::add.Tensor"
        and len(a) == 2
        and is_ref(a[0])
        and is_ref(a[1])
        and g.floating(n["id"])
        and g.shape(a[0]["ref"]) == g.shape(a[1]["ref"])
        and a[0] != a[1]
    ):
        for k in (0, 1):
            if g.by_id[a[k]["ref"]]["op"] not in LEAVES:
                yield (
                    "operand-twice",
                    lambda g, n, k=k: n["args"].__setitem__(1 - k, dict(n["args"][k])),
                )
    if n["op"] == "aten::linear" and g.by_id[a[1]["ref"]]["op"] == "parameter":

        def bias(g, n):
            was = n["args"][1]["ref"]
            m = g.new(
                n, "_scaled", "aten::mul.Tensor", [dict(n["args"][1]), 1.02], dtype=g.dtype(was)
            )
            g.before(n, [m])
            n["args"][1] = {"ref": m["id"]}
            return [n["id"], m["id"], was]

        yield "weight-factor", bias


def kinds(g, n):
    if n["op"] in LEAVES:
        yield from layers(g, n)
        return
    if n["op"] == "getitem" or not n["outputs"]:
        return
    for f in (integers, halves, groups, chains, residuals):
        yield from f(g, n)
