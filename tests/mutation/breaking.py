"""Kinds of bugs: each a generator of (kind, node id, change) for one node of a graph. `change(g,
n)` breaks the copy `g` at its node `n`; it returns the ids at which the bug may be reported (None:
at `n`)."""

import random

import torch

import faults
import planted
import slips
from faults import insert
from graph import LEAVES, base, is_number, is_ref, node_refs

UNARY = (
    "gelu",
    "silu",
    "relu",
    "tanh",
    "sigmoid",
    "exp",
    "neg",
    "rsqrt",
    "sqrt",
    "reciprocal",
    "cos",
    "sin",
    "softplus",
    "erf",
    "square",
    "abs",
)
ACTIVATIONS = ("gelu", "silu", "relu", "tanh", "sigmoid")
OTHER = {
    "add.Tensor": "sub.Tensor",
    "sub.Tensor": "add.Tensor",
    "mul.Tensor": "add.Tensor",
    "div.Tensor": "mul.Tensor",
    "cos": "sin",
    "sin": "cos",
    "tril": "triu",
    "triu": "tril",
    "le.Tensor": "lt.Tensor",
    "lt.Tensor": "le.Tensor",
    "gt.Tensor": "ge.Tensor",
    "ge.Tensor": "gt.Tensor",
    "le.Scalar": "lt.Scalar",
    "lt.Scalar": "le.Scalar",
    "gt.Scalar": "ge.Scalar",
    "ge.Scalar": "gt.Scalar",
    "maximum": "minimum",
    "minimum": "maximum",
    "bitwise_and.Tensor": "bitwise_or.Tensor",
    "logical_and": "logical_or",
    "clamp_min": "clamp_max",
    "mean.dim": "sum.dim_IntList",
    "amax": "amin",
    "rsqrt": "reciprocal",
    "sqrt": "square",
    "log": "exp",
    "floor": "ceil",
}


def set_arg(k, value):
    def change(g, n):
        n["args"][k] = value(n["args"][k]) if callable(value) else value

    return change


def set_kwarg(k, value):
    def change(g, n):
        n["kwargs"][k] = value(n["kwargs"][k]) if callable(value) else value

    return change


def literals(g, n):
    """Numbers that an operator is given: eps, scales, factors, exponents, fill values, bounds."""
    if not any(o["dtype"].startswith(("float", "bfloat")) for o in n["outputs"]):
        return

    def kind(x):
        return "eps" if 0 < abs(x) < 1e-3 else "constant"

    def other(x):
        return x * 10 if 0 < abs(x) < 1e-3 else x * 1.01 if x else 0.01

    places = [(set_arg, k, v) for k, v in enumerate(n["args"])] + [
        (set_kwarg, k, v) for k, v in n["kwargs"].items()
    ]
    for how, k, v in places:
        if base(n) == "scaled_dot_product_attention" and k in (4, "dropout_p"):
            continue  # what draws is refused
        if isinstance(v, float) and abs(v) < 1e30:
            yield kind(v), how(k, other)
            if v and kind(v) != "eps":
                yield "constant-sign", how(k, lambda x: -x)
                yield "constant-slight", how(k, lambda x: x * (1 + 1e-5))
            if kind(v) == "eps":
                yield "eps-slight", how(k, lambda x: x * 1.5)
                yield "eps-zero", how(k, 0.0)
    if base(n) == "pow" and len(n["args"]) > 1 and is_number(n["args"][1]):
        yield "exponent", set_arg(1, lambda x: x + 1)


def attributes(g, n):
    b, a, kw = base(n), n["args"], n["kwargs"]
    if b == "gelu":

        def approximate(g, n):
            cur = n["kwargs"].pop("approximate", n["args"][1] if len(n["args"]) > 1 else "none")
            n["args"] = n["args"][:1]
            n["kwargs"]["approximate"] = "none" if cur == "tanh" else "tanh"

        yield "gelu-approximate", approximate
    if b in ACTIVATIONS:
        for other in ACTIVATIONS:
            if other != b:

                def activation(g, n, other=other):
                    n["op"], n["args"], n["kwargs"] = "aten::" + other, n["args"][:1], {}

                yield "activation", activation
    if b == "scaled_dot_product_attention":

        def scale(g, n):
            n["args"] = n["args"][:6]
            n["kwargs"]["scale"] = (
                n["kwargs"].get("scale") or g.shape(n["args"][0]["ref"])[-1] ** -0.5
            ) * 1.05

        yield "attention-scale", scale
        causal = a[5] if len(a) > 5 else kw.get("is_causal", False)
        mask = a[3] if len(a) > 3 else kw.get("attn_mask")

        def no_mask(g, n):
            if len(n["args"]) > 3:
                n["args"][3] = None
            if len(n["args"]) > 5:
                n["args"][5] = False
            n["kwargs"].pop("is_causal", None)
            n["kwargs"].pop("attn_mask", None)

        if causal or is_ref(mask):
            yield "mask-drop", no_mask
        if not causal and mask is None:
            yield "mask-causal", set_kwarg_new("is_causal", True)
    if b in ("softmax", "sum", "mean", "cumsum", "amax", "argmax", "cat", "flip", "log_softmax"):
        yield from dimension(g, n)
    if b in ("slice", "narrow") and len(a) > 2 and is_number(a[2]):
        for by in (-1, 1):

            def shift(g, n, by=by):
                size = g.shape(n["args"][0]["ref"])[n["args"][1]]
                begin = n["args"][2]
                if base(n) == "slice" and len(n["args"]) > 3 and is_number(n["args"][3]):
                    end = min(n["args"][3], size)
                    n["args"][3] = end + by
                    assert 0 <= begin + by < end + by <= size
                n["args"][2] = begin + by

            yield "slice-shift", shift
    if b == "select" and len(a) > 2:
        size = g.shape(a[0]["ref"])[a[1]]
        if size > 1:
            yield "select-other", set_arg(2, (a[2] + 1) % size)
    if b == "arange" and n["outputs"][0]["dtype"].startswith("int") and is_number(a[0]):

        def start(g, n):
            n["op"] = "aten::arange.start"
            n["args"] = (
                [1, n["args"][0] + 1]
                if len(n["args"]) == 1
                else [n["args"][0] + 1, n["args"][1] + 1]
            )

        if n["op"] in ("aten::arange", "aten::arange.start"):
            yield "arange-shift", start
    if b in ("tril", "triu"):
        yield (
            "diagonal",
            lambda g, n: n.update(
                args=[n["args"][0], (n["args"][1] if len(n["args"]) > 1 else 0) + 1]
            ),
        )
    if b in ("linear", "layer_norm", "conv1d"):
        k = 3 if b == "layer_norm" else 2
        if len(a) > k and is_ref(a[k]):
            yield "bias-drop", set_arg(k, None)
    if b == "layer_norm" and len(a) > 2 and is_ref(a[2]):
        yield "weight-drop", set_arg(2, None)
    if b in ("addmm", "baddbmm"):
        yield "beta", set_kwarg_new("beta", 0)
    for k, v in list(kw.items()):
        if isinstance(v, bool) and k in ("enable_gqa", "is_neox", "renormalize", "causal"):
            yield "flag", set_kwarg(k, not v)
    for k, v in enumerate(a):
        if isinstance(v, bool) and base(n) in ("rotary_embedding", "topk_softmax"):
            yield "flag", set_arg(k, not v)


def set_kwarg_new(k, v):
    return lambda g, n: n["kwargs"].update({k: v})


def dimension(g, n):
    shape = n["outputs"][0]["shape"]
    if base(n) == "cat":
        return
    k = 1
    if len(n["args"]) <= k:
        return
    dim = n["args"][k]
    one = dim[0] if isinstance(dim, list) and len(dim) == 1 else dim
    if not is_number(one) or not n["args"] or not is_ref(n["args"][0]):
        return
    source = g.shape(n["args"][0]["ref"])
    one %= max(1, len(source))
    for other in range(len(source)):
        if other != one and source[other] == source[one] and source[one] > 1:
            yield "dimension", set_arg(k, [other] if isinstance(dim, list) else other)


def operators(g, n):
    b, a = base(n), n["args"]
    short = n["op"].split("::")[-1]
    if n["op"].startswith("aten::") and short in OTHER:
        yield "operator", lambda g, n: n.update(op="aten::" + OTHER[n["op"].split("::")[-1]])
    if (
        b in ("sub", "div", "matmul", "mm", "bmm", "lt", "le", "gt", "ge")
        and len(a) > 1
        and is_ref(a[0])
        and is_ref(a[1])
        and a[0] != a[1]
    ):

        def swap(g, n):
            n["args"][0], n["args"][1] = n["args"][1], n["args"][0]

        yield "operands", swap
    if b in ("where",) and len(a) == 3:
        yield "where-branches", lambda g, n: n["args"].__setitem__(slice(1, 3), n["args"][:0:-1])
        for k in (1, 2):
            if is_ref(a[k]) and g.shape(a[k]["ref"]) == n["outputs"][0]["shape"]:
                yield "where-drop", drop(k)
    if b == "masked_fill":
        yield "mask-drop", drop(0)
    if (
        b == "cat"
        and isinstance(a[0], list)
        and len(a[0]) > 1
        and len({r["ref"] for r in a[0]}) > 1
    ):
        yield "cat-order", lambda g, n: n["args"][0].reverse()
    if n["op"] == "getitem":
        source = g.by_id[a[0]["ref"]]
        k = a[1]
        if (
            k + 1 < len(source["outputs"])
            and source["outputs"][k]["shape"] == source["outputs"][k + 1]["shape"]
        ):

            def order(g, n, k=k):
                for m in g.users[n["args"][0]["ref"]]:
                    if m["op"] == "getitem" and m["args"][1] in (k, k + 1):
                        m["args"][1] = 2 * k + 1 - m["args"][1]
                return [n["id"], n["args"][0]["ref"]] + [
                    m["id"] for m in g.users[n["args"][0]["ref"]]
                ]

            yield "split-order", order
    if (
        b in ("transpose", "permute")
        and g.floating(n["id"])
        and g.shape(n["id"]) != g.shape(a[0]["ref"])
    ):

        def view(g, n):
            n["op"], n["args"], n["kwargs"] = "aten::reshape", [n["args"][0], g.shape(n["id"])], {}

        yield "view-for-transpose", view


def drop(k):
    """The operator is left out: what read it reads argument k."""

    def change(g, n):
        users = [m["id"] for m in g.users.get(n["id"], [])]
        g.replace(n["id"], n["args"][k]["ref"])
        return users

    change.gone = True
    return change


def steps(g, n):
    """Operators left out, taken twice, or put in."""
    b, a = base(n), n["args"]
    if len(n["outputs"]) != 1 or not g.floating(n["id"]) or n["op"] == "getitem":
        return
    same = [
        k
        for k, v in enumerate(a)
        if is_ref(v) and g.floating(v["ref"]) and g.shape(v["ref"]) == g.shape(n["id"])
    ]
    if b in UNARY or b in (
        "add",
        "sub",
        "mul",
        "div",
        "pow",
        "layer_norm",
        "softmax",
        "rms_norm",
        "clamp",
    ):
        for k in same[:2]:
            yield "drop", drop(k)
    if b in UNARY + ("layer_norm", "softmax", "mul", "add") and same:

        def twice(g, n, k=same[0]):
            m = g.new(n, "_again", n["op"], [dict(x) if is_ref(x) else x for x in n["args"]])
            m["kwargs"] = dict(n["kwargs"])
            g.after(n, [m])
            g.replace(n["id"], m["id"], skip=[m])
            m["args"][k] = {"ref": n["id"]}
            return [n["id"], m["id"]] + [u["id"] for u in g.users.get(n["id"], [])]

        yield "twice", twice
    for what, op, args in (
        ("extra-neg", "aten::neg", []),
        ("extra-factor", "aten::mul.Tensor", [1.01]),
        ("extra-offset", "aten::add.Tensor", [0.01]),
        ("extra-tanh", "aten::tanh", []),
    ):
        yield what, insert(op, args)
    shape = g.shape(n["id"])
    if shape and shape[-1] > 1:
        yield "extra-roll", insert("aten::roll", [[1], [-1]])
        yield "extra-flip", insert("aten::flip", [[-1]])
    if b in ("linear", "addmm", "matmul", "mul"):

        def integer(g, n):
            i = g.new(
                n, "_i", "aten::to.dtype", [{"ref": n["id"]}, {"dtype": "int64"}], dtype="int64"
            )
            f = g.new(
                n, "_f", "aten::to.dtype", [{"ref": i["id"]}, {"dtype": n["outputs"][0]["dtype"]}]
            )
            g.after(n, [i, f])
            users = [u["id"] for u in g.users.get(n["id"], [])]
            g.replace(n["id"], f["id"], skip=[i])
            return [n["id"], i["id"], f["id"]] + users

        yield "precision-integer", integer


def unspecified(g, m):
    """Memory that nothing was written to, or a view of it."""
    while base(m) in ("view", "reshape", "alias", "to", "_unsafe_view") and is_ref(m["args"][0]):
        m = g.by_id[m["args"][0]["ref"]]
    return base(m).startswith("empty")


def wiring(g, n):
    """An argument is another tensor of the same shape: a wrong leaf, q for k, the value before the
    norm."""
    rng = random.Random(n["id"])
    at = next(i for i, m in enumerate(g.nodes) if m is n)
    places = [("args", k, v) for k, v in enumerate(n["args"])] + [
        ("kwargs", k, v) for k, v in n["kwargs"].items()
    ]
    for where, k, v in places:
        if not is_ref(v) or len(g.by_id[v["ref"]]["outputs"]) != 1 or n["op"] == "getitem":
            continue
        own = g.by_id[v["ref"]]
        leaf = own["op"] in LEAVES
        if own["op"] == "input":
            continue
        like = [
            m
            for m in g.nodes[:at]
            if m is not own
            and len(m["outputs"]) == 1
            and m["outputs"] == own["outputs"]
            and (m["op"] in LEAVES) == leaf
            and not unspecified(g, m)
        ]
        if not leaf:
            like = like[-6:]
        if like:
            other = rng.choice(like)["id"]

            def rewire(g, n, where=where, k=k, other=other):
                was = n[where][k]["ref"]
                n[where][k] = {"ref": other}
                return [n["id"], was, other]

            yield "wrong-leaf" if leaf else "wrong-tensor", rewire
        shape = g.shape(v["ref"])
        if leaf and len(shape) == 2 and shape[0] == shape[1] and shape[0] > 1:

            def transposed(g, n, where=where, k=k):
                t = g.new(
                    n, "_t", "aten::t", [dict(n[where][k])], dtype=g.dtype(n[where][k]["ref"])
                )
                g.before(n, [t])
                was = n[where][k]["ref"]
                n[where][k] = {"ref": t["id"]}
                return [n["id"], t["id"], was]

            yield "transposed-leaf", transposed
    if base(n) == "embedding" and is_ref(n["args"][1]):

        def offset(g, n):
            one = g.new(
                n,
                "_off",
                "aten::sub.Tensor",
                [dict(n["args"][1]), 1],
                dtype=g.dtype(n["args"][1]["ref"]),
            )
            low = g.new(
                n,
                "_low",
                "aten::clamp_min",
                [{"ref": one["id"]}, 0],
                dtype=g.dtype(n["args"][1]["ref"]),
            )
            g.before(n, [one, low])
            n["args"][1] = {"ref": low["id"]}
            return [n["id"], one["id"], low["id"]]

        yield "index-offset", offset


def weights(g, n):
    """A leaf's values: loaded wrongly."""
    if n["op"] not in LEAVES[1:] or not g.floating(n["id"]):
        return

    def values(f):
        def change(g, n):
            t = f(g.weights[n["name"]].clone())
            g.weights[n["name"]] = t
            return [n["id"]] + [u["id"] for u in g.users.get(n["id"], [])]

        return change

    def one_element(t):
        i = t.abs().argmax()
        t.view(-1)[i] *= 1 + 1e-4
        return t

    def roll(t):
        return t.roll(1, 0)

    def swap_halves(t):
        return torch.cat(t.chunk(2, 0)[::-1])

    def zero_row(t):
        t[0] = 0
        return t

    yield "leaf-element", values(one_element)
    yield "leaf-scaled", values(lambda t: t * 1.001)
    if g.shape(n["id"]) and g.shape(n["id"])[0] > 1:
        yield "leaf-rolled", values(roll)
        yield "leaf-zero-row", values(zero_row)
        if g.shape(n["id"])[0] % 2 == 0:
            yield "leaf-halves", values(swap_halves)
    if len(g.shape(n["id"])) == 2 and g.shape(n["id"])[0] == g.shape(n["id"])[1] > 1:
        yield "leaf-transposed", values(lambda t: t.t().contiguous())


def kernels(g, n):
    at = n.get("attributes")
    if at is None:
        return

    def put(k, v):
        return lambda g, n: n["attributes"].update({k: v})

    if "scale" in at:
        yield "kernel-scale", put("scale", at["scale"] * 1.05)
    if "sliding_window" in at:
        yield "kernel-window", put("sliding_window", (at["sliding_window"] or 5) - 1)
    if "causal" in at:
        yield "kernel-causal", put("causal", not at["causal"])
    if "logits_soft_cap" in at:
        yield "kernel-cap", put("logits_soft_cap", (at["logits_soft_cap"] or 20.0) * 0.9)
    if at.get("alibi_slopes"):
        yield "kernel-alibi", put("alibi_slopes", [s * 1.1 for s in at["alibi_slopes"]])
    where, key, value = ("args", 1, 2) if len(n["args"]) > 2 else ("kwargs", "key", "value")
    if (where == "args" or "value" in n["kwargs"]) and g.shape(n[where][key]["ref"]) == g.shape(
        n[where][value]["ref"]
    ):

        def swap(g, n):
            n[where][key], n[where][value] = n[where][value], n[where][key]

        yield "kernel-kv-swap", swap


def kinds(g):
    """(kind, node id, change) of all mutations of a graph."""
    for n in list(g.nodes):
        for f in (
            (weights,)
            if n["op"] in LEAVES
            else (literals, attributes, operators, steps, wiring, kernels)
        ):
            for kind, change in f(g, n):
                yield kind, n["id"], change
        for f in (faults, slips, planted):
            for kind, change in f.kinds(g, n):
                yield kind, n["id"], change
