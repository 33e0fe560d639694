"""More kinds of bugs, as in breaking.py: slips that are made when an operator, a layer or a kernel
is written anew, and those of several ranks."""

import re

import torch

from faults import LAYER, insert, replaced
from graph import LEAVES, base, is_number, is_ref, node_refs


def reads(g, n, k):
    """The node of argument k, {} where that is no tensor."""
    return (
        g.by_id[n["args"][k]["ref"]] if len(n["args"]) > k and is_ref(n["args"][k]) else {"op": ""}
    )


def chain(g, n, *steps):
    """The nodes of `steps`, (operator, arguments): "x" is the first argument of n, "n" itself,
    "last" the step before."""
    names, new = {"x": dict(n["args"][0]), "n": {"ref": n["id"]}}, []
    for k, (op, *args) in enumerate(steps):
        m = g.new(
            n,
            "_s%d" % k,
            op,
            [
                names[a]
                if isinstance(a, str)
                else [names[b] if isinstance(b, str) else b for b in a]
                if isinstance(a, list)
                else a
                for a in args
            ],
        )
        names["last"] = {"ref": m["id"]}
        new.append(m)
    return new


def activations(g, n):
    """An activation that is nearly the right one."""
    b = base(n)
    if b not in ("silu", "gelu", "relu") or not g.floating(n["id"]):
        return
    other = {
        "quick": [
            ("aten::mul.Tensor", "x", 1.702),
            ("aten::sigmoid", "last"),
            ("aten::mul.Tensor", "x", "last"),
        ],
        "hard": [("aten::hardswish", "x")],
        "leaky": [("aten::leaky_relu", "x", 0.01)],
        "softplus": [("aten::softplus", "x")],
        "six": [("aten::hardtanh", "x", 0.0, 0.5)],
        "mish": [("aten::mish", "x")],
        "elu": [("aten::elu", "x")],
    }
    for steps in other.values():
        yield "activation-variant", replaced(lambda g, n, steps=steps: chain(g, n, *steps))
    yield (
        "activation-clamped",
        replaced(lambda g, n: chain(g, n, ("aten::clamp", "n", -0.05, 0.05)), keep=True),
    )


def gates(g, n):
    """The activation is applied to the other part."""
    if n["op"] == "aten::mul.Tensor" and len(n["args"]) == 2 and all(is_ref(r) for r in n["args"]):
        for k in (0, 1):
            act = reads(g, n, k)
            if (
                base(act) in ("silu", "gelu", "relu")
                and act["outputs"][0]["shape"] == g.shape(n["args"][1 - k]["ref"])
                and len(g.users[act["id"]]) == 1
                and n["args"][1 - k]["ref"] != act["args"][0]["ref"]
            ):

                def swap(g, n, k=k):
                    act = reads(g, n, k)
                    up, gate = n["args"][1 - k]["ref"], act["args"][0]["ref"]
                    m = g.new(act, "_up", act["op"], [{"ref": up}] + act["args"][1:])
                    m["kwargs"] = dict(act["kwargs"])
                    g.before(n, [m])
                    n["args"] = [{"ref": m["id"]}, {"ref": gate}]
                    return [n["id"], m["id"], act["id"], up, gate]

                yield "gate-up", swap
                return


def norms(g, n):
    """eps outside the root, the unbiased variance, no mean taken off, a weight for 1 + weight, the
    norm of the neighbour."""
    a, b = n["args"], base(n)
    if b in ("rsqrt", "sqrt") or n["op"] == "aten::pow.Tensor_Scalar" and a[1] == -0.5:
        inner = reads(g, n, 0)
        if (
            inner["op"] == "aten::add.Tensor"
            and is_number(inner["args"][1])
            and 0 < inner["args"][1] < 1e-3
        ):

            def outside(g, n):
                inner = reads(g, n, 0)
                eps, x = inner["args"][1], inner["args"][0]
                root = g.new(n, "_root", "aten::sqrt", [dict(x)])
                sum_ = g.new(n, "_eps", "aten::add.Tensor", [{"ref": root["id"]}, eps])
                g.before(n, [root, sum_])
                n["op"], n["args"] = (
                    ("aten::reciprocal" if base(n) != "sqrt" else "aten::alias"),
                    [{"ref": sum_["id"]}],
                )
                return [n["id"], root["id"], sum_["id"], inner["id"]]

            yield "eps-outside", outside
    if (
        n["op"] == "aten::mean.dim"
        and isinstance(a[1], list)
        and len(a[1]) == 1
        and g.floating(n["id"])
    ):
        size = g.shape(a[0]["ref"])[a[1][0]]
        if size > 1:
            yield "unbiased", insert("aten::mul.Tensor", [size / (size - 1)])
    if b == "layer_norm" and len(a) > 3:

        def rms(g, n):
            x, _, w, bias = n["args"][:4]
            eps = n["args"][4] if len(n["args"]) > 4 else 1e-5
            n["op"], n["args"] = "aten::rms_norm", [x, n["args"][1], w, eps]
            new = []
            if is_ref(bias):
                new = [g.new(n, "_b", "aten::add.Tensor", [{"ref": n["id"]}, bias])]
                g.after(n, new)
                g.replace(n["id"], new[0]["id"], skip=new)
            return [n["id"]] + [m["id"] for m in new]

        yield "no-mean", rms
    for k, r in enumerate(a):
        if not is_ref(r):
            continue
        own = g.by_id[r["ref"]]
        m = LAYER.match(own.get("name") or "") if own["op"] == "parameter" else None
        if m and len(g.shape(r["ref"])) == 1:
            near = next(
                (
                    x
                    for x in g.nodes
                    if x["op"] == "parameter"
                    and x["outputs"] == own["outputs"]
                    and (y := LAYER.match(x["name"]))
                    and y.group(1) == m.group(1)
                    and y.group(2) != m.group(2)
                    and y.group(3) == m.group(3)
                ),
                None,
            )
            if near:

                def neighbour(g, n, k=k, near=near["id"]):
                    was = n["args"][k]["ref"]
                    n["args"][k] = {"ref": near}
                    g.doc["nodes"] = [x for x in g.nodes if x["op"] in LEAVES] + [
                        x for x in g.nodes if x["op"] not in LEAVES
                    ]
                    return [n["id"], was, near]

                yield "norm-of-neighbour", neighbour


def attention(g, n):
    """Scales, masks, heads and groups."""
    a, b, kw = n["args"], base(n), n["kwargs"]
    if b == "scaled_dot_product_attention":
        size = g.shape(a[0]["ref"])[-1]

        def operand(k, *steps):
            def change(g, n):
                was, new = n["args"][k]["ref"], []
                last = dict(n["args"][k])
                for j, (op, *args) in enumerate(steps):
                    new.append(g.new(n, "_o%d" % j, op, [last] + args))
                    last = {"ref": new[-1]["id"]}
                g.before(n, new)
                n["args"][k] = last
                return [n["id"], was] + [m["id"] for m in new]

            return change

        yield "scale-twice", operand(0, ("aten::mul.Tensor", size**-0.5))
        yield "scale-of-size", lambda g, n: n["kwargs"].update(scale=1.0 / size)
        heads = g.shape(a[1]["ref"])[1] if len(g.shape(a[1]["ref"])) == 4 else 1
        if heads > 1:
            yield "heads-flipped", operand(2, ("aten::flip", [1]))
        times = g.shape(a[0]["ref"])[1] // heads if heads > 1 else 1
        if kw.get("enable_gqa") and times > 1:

            def tiled(g, n):
                was = [r["ref"] for r in n["args"][1:3]]
                new = [
                    g.new(n, "_t%d" % k, "aten::repeat", [dict(n["args"][k]), [1, times, 1, 1]])
                    for k in (1, 2)
                ]
                g.before(n, new)
                n["args"][1:3] = [{"ref": m["id"]} for m in new]
                n["kwargs"].pop("enable_gqa")
                return [n["id"]] + was + [m["id"] for m in new]

            yield "groups-tiled", tiled
        causal, mask = (
            a[5] if len(a) > 5 else kw.get("is_causal", False),
            a[3] if len(a) > 3 else kw.get("attn_mask"),
        )
        rows, cols = g.shape(a[0]["ref"])[-2], g.shape(a[1]["ref"])[-2]
        if causal and mask is None and rows == cols and rows > 2:

            def masked(*steps):
                def change(g, n):
                    new = [g.new(n, "_ones", "aten::ones", [[rows, cols]])]
                    for j, (op, *args) in enumerate(steps):
                        new.append(g.new(n, "_m%d" % j, op, [{"ref": new[-1]["id"]}] + args))
                    new.append(
                        g.new(
                            n, "_bool", "aten::gt.Scalar", [{"ref": new[-1]["id"]}, 0], dtype="bool"
                        )
                    )
                    g.before(n, new)
                    n["args"] = n["args"][:3] + [{"ref": new[-1]["id"]}, 0.0, False]
                    n["kwargs"] = {
                        k: v for k, v in n["kwargs"].items() if k not in ("is_causal", "attn_mask")
                    }
                    return [n["id"]] + [m["id"] for m in new]

                return change

            yield "causal-shifted", masked(("aten::tril", 1))
            yield "causal-window", masked(("aten::tril",), ("aten::triu", 2 - rows))
    if b == "softmax" and g.floating(n["id"]):
        yield (
            "temperature",
            replaced(
                lambda g, n: chain(
                    g, n, ("aten::mul.Tensor", "x", 1.05), (n["op"], "last", *n["args"][1:])
                )
            ),
        )
        yield "softmax-to-sigmoid", replaced(lambda g, n: chain(g, n, ("aten::sigmoid", "x")))
    if b in ("masked_fill", "where"):
        for k, v in enumerate(a):
            x = float(v["float"]) if isinstance(v, dict) and "float" in v else v
            if k and is_number(x) and x < -100:
                yield "mask-weak", lambda g, n, k=k: n["args"].__setitem__(k, -1.0)
    if n.get("attributes", {}).get("sliding_window"):
        yield (
            "kernel-window-wider",
            lambda g, n: n["attributes"].update(
                sliding_window=n["attributes"]["sliding_window"] + 1
            ),
        )
    if n.get("attributes") and "scale" in n["attributes"]:
        yield (
            "kernel-scale-twice",
            lambda g, n: n["attributes"].update(scale=n["attributes"]["scale"] ** 2),
        )


def rotary(g, n):
    """The pairs of a rotation: halves for neighbours, and the other half with the sign."""
    a = n["args"]
    if (
        n["op"] != "aten::cat"
        or not isinstance(a[0], list)
        or len(a[0]) != 2
        or len(n["outputs"]) != 1
        or not g.floating(n["id"])
    ):
        return
    for k in (0, 1):
        neg, other = g.by_id[a[0][k]["ref"]], g.by_id[a[0][1 - k]["ref"]]
        if (
            neg["op"] != "aten::neg"
            or other["op"] == "aten::neg"
            or other["outputs"] != neg["outputs"]
        ):
            continue
        source = g.by_id[neg["args"][0]["ref"]]
        while (
            source["op"] in ("getitem", "aten::slice.Tensor")
            and is_ref(source["args"][0])
            and g.by_id[source["args"][0]["ref"]]["op"] not in LEAVES
        ):
            whole = g.by_id[source["args"][0]["ref"]]
            source = whole
            if (
                len(whole["outputs"]) == 1
                and whole["outputs"][0]["shape"] == n["outputs"][0]["shape"]
            ):
                break

        def other_sign(g, n, k=k):
            neg, other = g.by_id[n["args"][0][k]["ref"]], n["args"][0][1 - k]
            m = g.new(n, "_neg", "aten::neg", [dict(other)])
            g.before(n, [m])
            n["args"][0][k], n["args"][0][1 - k] = dict(neg["args"][0]), {"ref": m["id"]}
            return [n["id"], neg["id"], m["id"]]

        yield "rotary-other-sign", other_sign
        if (
            len(source["outputs"]) == 1
            and source["outputs"][0]["shape"] == n["outputs"][0]["shape"]
            and k == 0
        ):

            def pairs(g, n, x=source["id"]):
                rank, size, dims = len(g.shape(x)), g.shape(x)[-1], g.shape(x)
                odd = g.new(n, "_odd", "aten::slice.Tensor", [{"ref": x}, rank - 1, 1, size, 2])
                even = g.new(n, "_even", "aten::slice.Tensor", [{"ref": x}, rank - 1, 0, size, 2])
                neg = g.new(n, "_neg", "aten::neg", [{"ref": odd["id"]}])
                st = g.new(
                    n, "_stack", "aten::stack", [[{"ref": neg["id"]}, {"ref": even["id"]}], rank]
                )
                g.before(n, [odd, even, neg, st])
                n["op"], n["args"], n["kwargs"] = "aten::view", [{"ref": st["id"]}, dims], {}
                return [n["id"], odd["id"], even["id"], neg["id"], st["id"]]

            yield "rotary-pairs", pairs


def places(g, n):
    """Elements in the wrong place: along another dimension, heads and their width exchanged, one
    token late."""
    a, b = n["args"], base(n)
    if len(n["outputs"]) != 1 or not g.floating(n["id"]) or n["op"] in LEAVES:
        return
    shape = g.shape(n["id"])
    for d in range(len(shape) - 1):
        if shape[d] > 1:
            yield "extra-roll-dim", insert("aten::roll", [[1], [d]])
    if b in ("view", "reshape") and len(shape) >= 2 and n["id"] in g.trained:
        was = g.shape(a[0]["ref"])
        if (
            len(was) == len(shape) - 1
            and was[:-1] == shape[:-2]
            and shape[-1] > 1
            and shape[-2] > 1
        ):

            def interleaved(g, n):
                rank = len(shape)
                m = g.new(
                    n, "_il", n["op"], [dict(n["args"][0]), shape[:-2] + [shape[-1], shape[-2]]]
                )
                g.before(n, [m])
                n["op"], n["args"] = "aten::transpose.int", [{"ref": m["id"]}, rank - 2, rank - 1]
                return [n["id"], m["id"]]

            yield "heads-interleaved", interleaved
    if (
        n["op"] == "aten::add.Tensor"
        and len(a) == 2
        and is_ref(a[0])
        and is_ref(a[1])
        and n["id"] in g.trained
    ):
        yield "alpha", lambda g, n: n["kwargs"].update(alpha=0.5)


def rounded(g, n):
    """Values kept with few digits: an 8-bit scale, halves."""
    if n["op"] in ("aten::linear", "aten::silu", "aten::matmul", "aten::gelu", "aten::softmax.int"):
        yield (
            "quantised",
            replaced(
                lambda g, n: chain(
                    g,
                    n,
                    ("aten::mul.Tensor", "n", 127.0),
                    ("aten::round", "last"),
                    ("aten::div.Tensor", "last", 127.0),
                ),
                keep=True,
            ),
        )


def parts(g, n):
    """The wrong part of a fused projection, and of fused weights."""
    a = n["args"]
    if n["op"] == "getitem":
        source = g.by_id[a[0]["ref"]]
        for other, o in enumerate(source["outputs"]):
            if other != a[1] and o == source["outputs"][a[1]] and o["dtype"].startswith("float"):

                def part(g, n, other=other):
                    n["args"][1] = other
                    return [n["id"]] + [u["id"] for u in g.users.get(n["id"], [])]

                yield "part-twice", part


def tables(g, n):
    """Whole numbers that are given: a token for another, positions that begin at one."""
    if n["op"] == "input" and n["outputs"][0]["dtype"].startswith("int") and g.users.get(n["id"]):

        def late(g, n):
            first = next(m for m in g.nodes if m["op"] not in LEAVES)
            one = g.new(n, "_one", "aten::add.Tensor", [{"ref": n["id"]}, 1])
            users = [u["id"] for u in g.users[n["id"]]]
            g.before(first, [one])
            g.replace(n["id"], one["id"], skip=[one])
            return [n["id"], one["id"]] + users

        yield "input-off-by-one", late


def blocks(g, n):
    """Rows of a fused weight in another order: blocks exchanged, interleaved by head."""
    if n["op"] != "parameter" or not g.floating(n["id"]):
        return
    shape = g.shape(n["id"])

    def values(f):
        def change(g, n):
            g.weights[n["name"]] = f(g.weights[n["name"]]).contiguous()
            return [n["id"]] + [u["id"] for u in g.users.get(n["id"], [])]

        return change

    if len(shape) == 2:
        for by in (2, 3, 4):
            if shape[0] % by == 0 and shape[0] > by:
                yield (
                    "leaf-interleaved",
                    values(
                        lambda t, by=by: t.view(by, -1, t.shape[1]).transpose(0, 1).reshape(t.shape)
                    ),
                )
        if shape[0] % 3 == 0:
            yield "leaf-thirds", values(lambda t: torch.cat([t.chunk(3)[k] for k in (1, 0, 2)]))
        yield "leaf-columns-rolled", values(lambda t: t.roll(1, 1))
    if len(shape) == 1:
        yield "leaf-reversed", values(lambda t: t.flip(0))
        yield "leaf-mean", values(lambda t: t.mean() * torch.ones_like(t))
    yield (
        "leaf-quantised",
        values(lambda t: (t / t.abs().max() * 127).round() * t.abs().max() / 127),
    )


def layers(g, n):
    """A whole layer left out, or run twice with its weights."""
    if (
        n["op"] in LEAVES
        or not g.floating(n["id"])
        or n["op"] != "aten::add.Tensor"
        or not all(is_ref(r) for r in n["args"])
    ):
        return
    m = re.match(r"^(.*?\.(?:layers|h|blocks)\.)(\d+)$", n.get("scope") or "")
    users = g.users.get(n["id"], [])
    if (
        not m
        or any(
            (u.get("scope") or "").startswith(n["scope"] + ".") or u.get("scope") == n["scope"]
            for u in users
        )
        or g.shape(n["id"]) != g.shape(n["args"][0]["ref"])
    ):
        return
    inside = lambda x: (
        (x.get("scope") or "") == n["scope"] or (x.get("scope") or "").startswith(n["scope"] + ".")
    )  # noqa: E731
    at, left = n, 8  # down the residual stream to what the layer was given
    while inside(at) and at["op"] not in LEAVES and left:
        left -= 1
        same = [
            g.by_id[r["ref"]]
            for r in node_refs(at)
            if g.by_id[r["ref"]]["outputs"] and g.shape(r["ref"]) == g.shape(n["id"])
        ]
        if not same:
            return
        at = next(
            (x for x in same if not inside(x)),
            min(same, key=lambda x: next(i for i, y in enumerate(g.nodes) if y is x)),
        )
    if inside(at) or at["op"] in LEAVES or not g.floating(at["id"]):
        return

    def skipped(g, n, before=at["id"]):
        users = [u["id"] for u in g.users.get(n["id"], [])]
        own = [x["id"] for x in g.nodes if (x.get("scope") or "").startswith(n["scope"])]
        g.replace(n["id"], before)
        return users + own + [before]

    skipped.gone = True
    yield "layer-skipped", skipped


def ranks(g, n):
    """Collectives left out, done twice, or given the ranks in another order."""
    if not n["op"].startswith("dist::"):
        return
    parts = n["args"][0]
    if len(parts) > 1 and n["op"] == "dist::all_gather":
        yield "ranks-reversed", lambda g, n: n["args"][0].reverse()
    if len(parts) > 1:
        yield "rank-twice", lambda g, n: n["args"][0].__setitem__(1, dict(n["args"][0][0]))
    if n["op"] == "dist::all_reduce" and len(parts) > 1:

        def alone(g, n):  # every rank goes on with what it has
            users, parts = g.users.get(n["id"], []), [r["ref"] for r in n["args"][0]]
            for u in users:
                rank = re.match(r"r(\d+)_", u["id"])
                for r in node_refs(u):
                    if r["ref"] == n["id"]:
                        r["ref"] = parts[int(rank.group(1)) if rank else 0]
            return [u["id"] for u in users] + [n["id"]] + parts

        alone.gone = True
        yield "reduce-dropped", alone

        def again(g, n):
            m = g.new(
                n, "_again", n["op"], [[{"ref": n["id"]} for _ in n["args"][0]]] + n["args"][1:]
            )
            users = [u["id"] for u in g.users.get(n["id"], [])]
            g.after(n, [m])
            g.replace(n["id"], m["id"], skip=[m])
            return [n["id"], m["id"]] + users

        yield "reduce-twice", again
        yield "reduce-mean", insert("aten::div.Tensor", [float(len(parts))])


def kinds(g, n):
    if n["op"] in LEAVES:
        for f in (tables, blocks):
            yield from f(g, n)
        return
    if not n["outputs"]:
        return
    if n["op"] == "getitem":
        yield from parts(g, n)
        return
    for f in (activations, gates, norms, attention, rotary, places, rounded, layers, ranks):
        yield from f(g, n)
