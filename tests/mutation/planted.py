"""More kinds of bugs, as in breaking.py: what someone plants who knows where models go wrong.
Reductions and broadcasts along another dimension, heads and tables in the wrong place, routers,
residual branches, masks, biases and scales."""

from faults import LAYER, insert
from graph import LEAVES, base, is_number, is_ref


def reductions(g, n):
    """A mean, a sum, a softmax, a maximum along another dimension, whatever its size."""
    b, a = base(n), n["args"]
    if (
        b not in ("mean", "sum", "softmax", "amax", "log_softmax", "cumsum")
        or len(a) < 2
        or not is_ref(a[0])
        or not g.floating(n["id"])
    ):
        return
    dim = a[1][0] if isinstance(a[1], list) and len(a[1]) == 1 else a[1]
    source = g.shape(a[0]["ref"])
    keeps = (
        b in ("softmax", "log_softmax", "cumsum")
        or (len(a) > 2 and a[2] is True)
        or n["kwargs"].get("keepdim")
    )
    if not is_number(dim) or not keeps:
        return
    for other in range(len(source)):
        if other != dim % len(source) and source[other] > 1:

            def change(g, n, other=other):
                n["args"][1] = [other] if isinstance(n["args"][1], list) else other

            yield "reduced-elsewhere", change
    if b in ("mean", "sum", "amax") and len(source) > 1:

        def all_of(g, n):
            n["args"][1] = list(range(len(source)))

        if isinstance(a[1], list) and max(source[:-1] or [1]) > 1:
            yield "reduced-everywhere", all_of


def broadcasts(g, n):
    """A dimension of size 1 put elsewhere, a permutation of dimensions of one size, a product not
    transposed."""
    b, a = base(n), n["args"]
    if len(n["outputs"]) != 1:
        return
    shape = g.shape(n["id"])
    if b == "unsqueeze" and is_ref(a[0]):
        at = a[1] % len(shape)
        for other in range(len(shape)):
            if other != at:
                yield (
                    "broadcast-elsewhere",
                    lambda g, n, other=other: n["args"].__setitem__(1, other),
                )
    if b in ("transpose", "permute") and is_ref(a[0]):
        was = g.shape(a[0]["ref"])
        if was == shape and g.floating(n["id"]):

            def left_out(g, n):
                users = [u["id"] for u in g.users.get(n["id"], [])]
                g.replace(n["id"], n["args"][0]["ref"])
                return users

            left_out.gone = True
            yield "transpose-dropped", left_out
    if n["op"] == "aten::permute" and g.floating(n["id"]):
        order = a[1]
        for i in range(len(order)):
            for j in range(i):
                if order[i] != order[j] and shape[i] == shape[j] > 1:

                    def other(g, n, i=i, j=j):
                        p = list(n["args"][1])
                        p[i], p[j] = p[j], p[i]
                        n["args"][1] = p

                    yield "permute-other", other


def heads(g, n):
    """Two heads exchanged, one head for all, heads taken from the other end."""
    b, a = base(n), n["args"]
    if (
        b not in ("view", "reshape", "transpose")
        or len(n["outputs"]) != 1
        or not g.floating(n["id"])
        or n["id"] not in g.trained
    ):
        return
    shape = g.shape(n["id"])
    if len(shape) not in (3, 4) or not (n.get("scope") or "").endswith(
        ("attn", "attention", "self", "self_attention", "rotary_emb")
    ):
        return
    for dim in range(len(shape) - 1):
        if 2 <= shape[dim] <= 8:
            size = shape[dim]

            def behind(steps):
                def change(g, n):
                    new, last = [], {"ref": n["id"]}
                    for k, (op, *args) in enumerate(steps):
                        new.append(
                            g.new(n, "_h%d" % k, op, [last if x == "x" else x for x in args])
                        )
                        last = {"ref": new[-1]["id"]}
                    users = [u["id"] for u in g.users.get(n["id"], [])]
                    g.after(n, new)
                    g.replace(n["id"], new[-1]["id"], skip=new)
                    return [n["id"]] + [m["id"] for m in new] + users

                change.gone = True
                return change

            yield "heads-reversed", behind([("aten::flip", "x", [dim])])
            yield "heads-shifted", behind([("aten::roll", "x", [1], [dim])])

            def first_for_all(g, n, dim=dim, size=size):
                one = g.new(n, "_one", "aten::slice.Tensor", [{"ref": n["id"]}, dim, 0, 1])
                all_ = g.new(n, "_all", "aten::expand", [{"ref": one["id"]}, list(shape)])
                users = [u["id"] for u in g.users.get(n["id"], [])]
                g.after(n, [one, all_])
                g.replace(n["id"], all_["id"], skip=[one])
                return [n["id"], one["id"], all_["id"]] + users

            first_for_all.gone = True
            yield "one-head-for-all", first_for_all


def routers(g, n):
    """A router's weights: softmax of the chosen alone, another choice, the last one dropped,
    renormalised or not."""
    b, a = base(n), n["args"]
    if b != "topk":
        return
    parts = {m["args"][1]: m for m in g.users.get(n["id"], []) if m["op"] == "getitem"}
    if 0 in parts:

        def behind(op, *args):
            def change(g, n):
                m = g.by_id[parts[0]["id"]]
                new = g.new(m, "_p", op, [{"ref": m["id"]}, *args])
                users = [u["id"] for u in g.users.get(m["id"], [])]
                g.after(m, [new])
                g.replace(m["id"], new["id"], skip=[new])
                return [n["id"], m["id"], new["id"]] + users

            change.gone = True
            return change

        yield "router-softmax-again", behind("aten::softmax.int", -1)
        yield "router-sigmoid", behind("aten::sigmoid")
        yield "router-flipped", behind("aten::flip", [-1])

        def renormalised(g, n):
            m = g.by_id[parts[0]["id"]]
            s = g.new(m, "_s", "aten::sum.dim_IntList", [{"ref": m["id"]}, [-1], True])
            d = g.new(m, "_d", "aten::div.Tensor", [{"ref": m["id"]}, {"ref": s["id"]}])
            users = [u["id"] for u in g.users.get(m["id"], [])]
            g.after(m, [s, d])
            g.replace(m["id"], d["id"], skip=[s, d])
            return [n["id"], m["id"], s["id"], d["id"]] + users

        renormalised.gone = True
        yield "router-renormalised", renormalised
    if 1 in parts:

        def next_expert(g, n):
            m = g.by_id[parts[1]["id"]]
            count = g.shape(n["args"][0]["ref"])[-1]
            one = g.new(m, "_1", "aten::add.Tensor", [{"ref": m["id"]}, 1], dtype="int64")
            low = g.new(
                m, "_r", "aten::remainder.Scalar", [{"ref": one["id"]}, count], dtype="int64"
            )
            users = [u["id"] for u in g.users.get(m["id"], [])]
            g.after(m, [one, low])
            g.replace(m["id"], low["id"], skip=[one])
            return [n["id"], m["id"], one["id"], low["id"]] + users

        next_expert.gone = True
        yield "router-next-expert", next_expert


def residuals(g, n):
    """The branch's input for the stream: what was normed, or the stream from a layer before."""
    a = n["args"]
    if (
        n["op"] != "aten::add.Tensor"
        or len(a) != 2
        or not all(is_ref(r) for r in a)
        or not g.floating(n["id"])
        or not (g.shape(a[0]["ref"]) == g.shape(a[1]["ref"]) == g.shape(n["id"]))
    ):
        return
    at = next(i for i, m in enumerate(g.nodes) if m is n)
    normed = [
        m
        for m in g.nodes[:at]
        if len(m["outputs"]) == 1
        and m["outputs"] == n["outputs"]
        and m["op"] not in LEAVES
        and "norm" in (m.get("scope") or "").lower()
    ]
    if not normed:
        return
    last = normed[-1]["id"]
    for k in (0, 1):
        if a[k]["ref"] != last and g.by_id[a[k]["ref"]]["op"] not in LEAVES:

            def change(g, n, k=k):
                was = n["args"][k]["ref"]
                n["args"][k] = {"ref": last}
                return [n["id"], was, last]

            yield "residual-normed", change


def biases(g, n):
    """A bias twice, with the other sign, of the next layer; a weight plus one; a product with the
    weight before the mean was taken."""
    b, a = base(n), n["args"]
    k = {"linear": 2, "addmm": 0, "layer_norm": 3}.get(b)
    if k is not None and len(a) > k and is_ref(a[k]):

        def again(g, n):
            m = g.new(n, "_b", "aten::add.Tensor", [{"ref": n["id"]}, dict(n["args"][k])])
            users = [u["id"] for u in g.users.get(n["id"], [])]
            g.after(n, [m])
            g.replace(n["id"], m["id"], skip=[m])
            return [n["id"], m["id"]] + users

        again.gone = True
        yield "bias-twice", again

        def negative(g, n):
            was = n["args"][k]["ref"]
            m = g.new(n, "_nb", "aten::neg", [dict(n["args"][k])])
            g.before(n, [m])
            n["args"][k] = {"ref": m["id"]}
            return [n["id"], m["id"], was]

        yield "bias-negative", negative
    for j, r in enumerate(a):
        leaf = g.by_id[r["ref"]] if is_ref(r) else {"op": ""}
        if (
            leaf["op"] == "parameter"
            and len(leaf["outputs"][0]["shape"]) == 1
            and b in ("mul", "layer_norm", "rms_norm")
            and j == (2 if b != "mul" else j)
        ):

            def plus_one(g, n, j=j):
                was = n["args"][j]["ref"]
                m = g.new(n, "_w1", "aten::add.Tensor", [dict(n["args"][j]), 1.0])
                g.before(n, [m])
                n["args"][j] = {"ref": m["id"]}
                return [n["id"], m["id"], was]

            yield "weight-plus-one", plus_one


def tables(g, n):
    """Frequencies of another base, positions scaled, cosines for sines."""
    if (
        n["op"] in ("buffer", "constant")
        and n["outputs"]
        and len(n["outputs"][0]["shape"]) == 1
        and "inv_freq" in n.get("name", "")
        and g.users.get(n["id"])
    ):

        def values(f):
            def change(g, n):
                g.weights[n["name"]] = f(g.weights[n["name"]].clone())
                return [n["id"]] + [u["id"] for u in g.users.get(n["id"], [])]

            return change

        yield "rotary-base", values(lambda t: t**1.2)
        yield "rotary-scaled", values(lambda t: t / 4)
        yield "rotary-one-frequency", values(lambda t: t[:1].expand_as(t).contiguous())
    if (
        n["op"] in ("buffer", "constant")
        and "cos_sin" in n.get("name", "")
        and g.users.get(n["id"])
    ):

        def halves(g, n):
            t = g.weights[n["name"]]
            g.weights[n["name"]] = t.roll(t.shape[1] // 2, 1).contiguous()
            return [n["id"]] + [u["id"] for u in g.users.get(n["id"], [])]

        yield "table-sin-cos", halves


def masks(g, n):
    """A mask that lets the next token through, that hides the own one, that is added where it
    should hide."""
    b, a = base(n), n["args"]
    if len(n["outputs"]) != 1:
        return
    if (
        n["outputs"][0]["dtype"] == "bool"
        and b in ("le", "ge", "lt", "gt", "tril", "logical_and", "bitwise_and", "__and__")
        and len(g.shape(n["id"])) > 1
    ):
        yield "mask-turned", insert("aten::logical_not", [])
        if g.shape(n["id"])[-1] == g.shape(n["id"])[-2] > 1:
            yield "mask-transposed", insert("aten::transpose.int", [-1, -2])
            yield "mask-rolled", insert("aten::roll", [[1], [-1]])
    if b == "scaled_dot_product_attention":
        mask, causal = (
            a[3] if len(a) > 3 else n["kwargs"].get("attn_mask"),
            a[5] if len(a) > 5 else n["kwargs"].get("is_causal", False),
        )
        if is_ref(mask) and not causal and len(a) > 3:
            t = g.shape(mask["ref"])
            if t[-1] == t[-2]:

                def late(g, n):
                    was = n["args"][3]["ref"]
                    m = g.new(
                        n,
                        "_late",
                        "aten::roll",
                        [dict(n["args"][3]), [1], [-1]],
                        dtype=g.dtype(was),
                    )
                    g.before(n, [m])
                    n["args"][3] = {"ref": m["id"]}
                    return [n["id"], m["id"], was]

                yield "mask-late", late


def modules(g, n):
    """The first and last operator of a module: a projection left out, an input from the module
    before."""
    if n["op"] != "aten::linear" or len(n["args"]) < 2 or not is_ref(n["args"][0]):
        return
    if g.shape(n["id"]) == g.shape(n["args"][0]["ref"]):

        def left_out(g, n):
            users, was = [u["id"] for u in g.users.get(n["id"], [])], n["args"][0]["ref"]
            g.replace(n["id"], was)
            return users

        left_out.gone = True
        yield "projection-dropped", left_out
    w = g.by_id[n["args"][1]["ref"]]
    k = LAYER.match(w.get("name") or "") if w["op"] == "parameter" else None
    twin = k and next(
        (
            x
            for x in g.nodes
            if x["op"] == "parameter"
            and x["outputs"] == w["outputs"]
            and (y := LAYER.match(x["name"]))
            and y.group(1) == k.group(1)
            and y.group(3) == k.group(3)
            and y.group(2) != k.group(2)
        ),
        None,
    )
    if twin:

        def other(g, n):
            was = n["args"][1]["ref"]
            n["args"][1] = {"ref": twin["id"]}
            g.doc["nodes"] = [x for x in g.nodes if x["op"] in LEAVES] + [
                x for x in g.nodes if x["op"] not in LEAVES
            ]
            return [n["id"], was, twin["id"]]

        yield "weight-of-other-layer", other


def casts(g, n):
    """Floats rounded to whole numbers where they only change type; a narrow type on the way."""
    if (
        base(n) in ("to", "_to_copy", "type_as")
        and is_ref(n["args"][0])
        and g.floating(n["id"])
        and g.floating(n["args"][0]["ref"])
    ):
        yield "cast-rounds", insert("aten::round", [])
        yield "cast-saturates", insert("aten::clamp", [-0.25, 0.25])


def kinds(g, n):
    if n["op"] in LEAVES:
        yield from tables(g, n)
        return
    if n["op"] == "getitem" or not n["outputs"]:
        return
    for f in (reductions, broadcasts, heads, routers, residuals, biases, masks, modules, casts):
        yield from f(g, n)
