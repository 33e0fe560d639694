"""Kinds of rewrites that keep the function: generators of (kind, node id, change), as in
breaking.py."""

import math
import random

import torch

import algebra
import rewrites
import spelling
import wording
from graph import LEAVES, base, is_number, is_ref, node_refs


def ref(n):
    return {"ref": n["id"]}


def become(g, n, op, args, new=()):
    g.before(n, list(new))
    n["op"], n["args"], n["kwargs"] = op, args, {}


def wrap(*ops):
    """Operators put behind a node, that together do nothing. An op: (name, arguments after the
    tensor, dtype or None)."""

    def change(g, n):
        last, new = n, []
        for k, (op, args, dtype) in enumerate(ops):
            last = g.new(n, "_p%d" % k, op, [ref(last)] + args, dtype=dtype)
            new.append(last)
        g.after(n, new)
        g.replace(n["id"], last["id"], skip=new)

    return change


def neutral(g, n):
    """Nothing put behind a node, in many ways."""
    if len(n["outputs"]) != 1 or not g.floating(n["id"]) or n["op"] in LEAVES:
        return
    shape, dtype = n["outputs"][0]["shape"], n["outputs"][0]["dtype"]
    rank = len(shape)
    yield "contiguous", wrap(("aten::contiguous", [], None))
    yield "clone", wrap(("aten::clone", [], None))
    yield "alias", wrap(("aten::alias", [], None))
    yield (
        "cast-and-back",
        wrap(
            ("aten::to.dtype", [{"dtype": "float64"}], "float64"),
            ("aten::to.dtype", [{"dtype": dtype}], None),
        ),
    )
    if n["id"] in g.trained:  # a table that is stored with fewer bits is another table
        yield (
            "cast-down-and-back",
            wrap(
                ("aten::to.dtype", [{"dtype": "bfloat16"}], "bfloat16"),
                ("aten::to.dtype", [{"dtype": dtype}], None),
            ),
        )
    yield "flatten-and-back", wrap(("aten::reshape", [[-1]], None), ("aten::view", [shape], None))
    yield (
        "unsqueeze-squeeze",
        wrap(("aten::unsqueeze", [0], None), ("aten::squeeze.dim", [0], None)),
    )
    yield "plus-zero", wrap(("aten::add.Tensor", [0.0], None))
    yield "times-one", wrap(("aten::mul.Tensor", [1.0], None))
    yield "twice-half", wrap(("aten::mul.Tensor", [2.0], None), ("aten::div.Tensor", [2.0], None))
    yield "double-negation", wrap(("aten::neg", [], None), ("aten::neg", [], None))
    yield "dropout-off", wrap(("aten::dropout", [0.1, False], None))
    if rank >= 2:
        yield (
            "double-transpose",
            wrap(
                ("aten::transpose.int", [0, rank - 1], None),
                ("aten::transpose.int", [0, rank - 1], None),
            ),
        )
        yield (
            "double-permute",
            wrap(
                ("aten::permute", [list(range(1, rank)) + [0]], None),
                ("aten::permute", [[rank - 1] + list(range(rank - 1))], None),
            ),
        )
    if rank and shape[-1] > 1:
        yield (
            "pad-and-slice",
            wrap(
                ("aten::constant_pad_nd", [[0, 3], 0.0], None),
                ("aten::slice.Tensor", [rank - 1, 0, shape[-1]], None),
            ),
        )
        yield (
            "roll-and-back",
            wrap(("aten::roll", [[1], [rank - 1]], None), ("aten::roll", [[-1], [rank - 1]], None)),
        )
        yield (
            "flip-twice",
            wrap(("aten::flip", [[rank - 1]], None), ("aten::flip", [[rank - 1]], None)),
        )

        def parts(g, n):
            half = shape[-1] // 2
            a = g.new(n, "_lo", "aten::slice.Tensor", [ref(n), rank - 1, 0, half])
            b = g.new(n, "_hi", "aten::slice.Tensor", [ref(n), rank - 1, half, shape[-1]])
            c = g.new(n, "_cat", "aten::cat", [[ref(a), ref(b)], rank - 1])
            g.after(n, [a, b, c])
            g.replace(n["id"], c["id"], skip=[a, b])

        yield "slice-and-cat", parts
    if len(g.users.get(n["id"], [])) > 1:

        def duplicate(g, n):
            m = g.new(n, "_copy", n["op"], [x for x in n["args"]])
            m["kwargs"] = dict(n["kwargs"])
            if "attributes" in n:
                m["attributes"] = n["attributes"]
            g.after(n, [m])
            user = g.users[n["id"]][-1]
            for r in node_refs(user):
                if r["ref"] == n["id"]:
                    r["ref"] = m["id"]

        yield "computed-twice", duplicate


def arithmetic(g, n):
    b, a, kw = base(n), n["args"], n["kwargs"]
    if not g.floating(n["id"]) if len(n["outputs"]) == 1 else True:
        return
    two = len(a) == 2 and is_ref(a[0]) and is_ref(a[1]) and not kw
    if b in ("add", "mul") and two:
        yield "commute", lambda g, n: n["args"].reverse()
    if b == "add" and two:
        yield (
            "add-to-sub",
            lambda g, n: (
                become(g, n, "aten::sub.Tensor", [n["args"][0], ref(m)], [m])
                if (m := g.new(n, "_neg", "aten::neg", [n["args"][1]]))
                else None
            ),
        )
        left = g.by_id[a[0]["ref"]]
        if (
            left["op"] == n["op"]
            and len(left["args"]) == 2
            and all(is_ref(r) for r in left["args"])
            and not left["kwargs"]
        ):

            def reassociate(g, n):
                left = g.by_id[n["args"][0]["ref"]]
                m = g.new(n, "_as", n["op"], [dict(left["args"][1]), n["args"][1]])
                become(g, n, n["op"], [dict(left["args"][0]), ref(m)], [m])

            yield "reassociate", reassociate
    if b == "sub" and two:
        yield (
            "sub-to-add",
            lambda g, n: (
                become(g, n, "aten::add.Tensor", [n["args"][0], ref(m)], [m])
                if (m := g.new(n, "_neg", "aten::neg", [n["args"][1]]))
                else None
            ),
        )
    if b == "div" and len(a) == 2 and is_number(a[1]) and a[1]:
        yield (
            "div-to-mul",
            lambda g, n: become(g, n, "aten::mul.Tensor", [n["args"][0], 1.0 / n["args"][1]]),
        )
    if b == "div" and two:
        yield (
            "div-to-mul",
            lambda g, n: (
                become(g, n, "aten::mul.Tensor", [n["args"][0], ref(m)], [m])
                if (m := g.new(n, "_rec", "aten::reciprocal", [n["args"][1]], shape=None))
                else None
            ),
        )
    if b == "mul" and len(a) == 2 and is_number(a[1]) and a[1]:
        yield (
            "mul-to-div",
            lambda g, n: become(g, n, "aten::div.Tensor", [n["args"][0], 1.0 / n["args"][1]]),
        )
    if b == "pow" and len(a) > 1 and a[1] == 2:
        yield (
            "square-to-mul",
            lambda g, n: become(g, n, "aten::mul.Tensor", [n["args"][0], dict(n["args"][0])]),
        )
    if b == "neg":
        yield "neg-to-mul", lambda g, n: become(g, n, "aten::mul.Tensor", [n["args"][0], -1.0])
    if b == "rsqrt":
        yield (
            "rsqrt-to-sqrt",
            lambda g, n: (
                become(g, n, "aten::reciprocal", [ref(m)], [m])
                if (m := g.new(n, "_sqrt", "aten::sqrt", n["args"]))
                else None
            ),
        )
        yield (
            "rsqrt-to-pow",
            lambda g, n: become(g, n, "aten::pow.Tensor_Scalar", [n["args"][0], -0.5]),
        )
    if b == "silu":
        yield (
            "silu-expand",
            lambda g, n: (
                become(g, n, "aten::mul.Tensor", [n["args"][0], ref(m)], [m])
                if (m := g.new(n, "_sig", "aten::sigmoid", [dict(n["args"][0])]))
                else None
            ),
        )
    if b == "sigmoid":

        def expand(g, n):
            m = g.new(n, "_neg", "aten::neg", n["args"])
            e = g.new(n, "_exp", "aten::exp", [ref(m)])
            s = g.new(n, "_one", "aten::add.Tensor", [ref(e), 1.0])
            become(g, n, "aten::reciprocal", [ref(s)], [m, e, s])

        yield "sigmoid-expand", expand
    if b == "relu":
        yield "relu-to-clamp", lambda g, n: become(g, n, "aten::clamp_min", [n["args"][0], 0.0])
    if b == "gelu":
        yield "gelu-expand", expand_gelu
    if b == "mean" and len(a) > 1 and isinstance(a[1], list) and n["op"] == "aten::mean.dim":

        def mean(g, n):
            x, dims = n["args"][0], n["args"][1]
            count = math.prod(g.shape(x["ref"])[d] for d in dims)
            keep = n["args"][2] if len(n["args"]) > 2 else n["kwargs"].get("keepdim", False)
            m = g.new(n, "_sum", "aten::sum.dim_IntList", [x, dims, keep])
            become(g, n, "aten::div.Tensor", [ref(m), float(count)], [m])

        yield "mean-to-sum", mean


def expand_gelu(g, n):
    x = n["args"][0]
    how = n["kwargs"].get("approximate", n["args"][1] if len(n["args"]) > 1 else "none")
    new = []

    def mk(suffix, op, *args):
        new.append(g.new(n, suffix, op, list(args)))
        return ref(new[-1])

    if how == "tanh":
        cube = mk("_3", "aten::pow.Tensor_Scalar", dict(x), 3)
        inner = mk("_in", "aten::add.Tensor", dict(x), mk("_c", "aten::mul.Tensor", cube, 0.044715))
        t = mk("_t", "aten::tanh", mk("_s", "aten::mul.Tensor", inner, math.sqrt(2 / math.pi)))
    else:
        t = mk("_t", "aten::erf", mk("_s", "aten::mul.Tensor", dict(x), math.sqrt(0.5)))
    one = mk("_1", "aten::add.Tensor", t, 1.0)
    become(g, n, "aten::mul.Tensor", [mk("_h", "aten::mul.Tensor", dict(x), 0.5), one], new)


def composite(g, n):
    """Operators spelled out by others."""
    b, a, kw = base(n), n["args"], n["kwargs"]
    new = []

    def maker(g, n, new):
        def mk(suffix, op, *args, dtype=None):
            new.append(g.new(n, suffix, op, list(args), dtype=dtype))
            return ref(new[-1])

        return mk

    if n["op"] == "aten::linear" and len(g.shape(a[0]["ref"])) > 1:

        def addmm(g, n):
            new = []
            mk = maker(g, n, new)
            x, w, bias = (n["args"] + [None])[:3]
            flat = mk("_x2", "aten::reshape", dict(x), [-1, g.shape(x["ref"])[-1]])
            wt = mk("_wt", "aten::t", dict(w))
            y = (
                mk("_mm", "aten::addmm", bias, flat, wt)
                if is_ref(bias)
                else mk("_mm", "aten::mm", flat, wt)
            )
            become(g, n, "aten::view", [y, g.shape(n["id"])], new)

        yield "linear-to-addmm", addmm

        def matmul_add(g, n):
            new = []
            mk = maker(g, n, new)
            x, w, bias = (n["args"] + [None])[:3]
            wt = mk("_wt", "aten::transpose.int", dict(w), 0, 1)
            if is_ref(bias):
                become(
                    g, n, "aten::add.Tensor", [mk("_mm", "aten::matmul", dict(x), wt), bias], new
                )
            else:
                become(g, n, "aten::matmul", [dict(x), wt], new)

        yield "linear-to-matmul", matmul_add
        if g.shape(a[1]["ref"])[0] % 2 == 0:

            def halves(g, n):
                new = []
                mk = maker(g, n, new)
                x, w, bias = (n["args"] + [None])[:3]
                out = g.shape(w["ref"])[0]
                part = []
                for k in range(2):
                    rows = (k * out // 2, (k + 1) * out // 2)
                    args = [dict(x), mk("_w%d" % k, "aten::slice.Tensor", dict(w), 0, *rows)]
                    if is_ref(bias):
                        args.append(mk("_b%d" % k, "aten::slice.Tensor", dict(bias), 0, *rows))
                    part.append(mk("_y%d" % k, "aten::linear", *args))
                become(g, n, "aten::cat", [part, len(g.shape(n["id"])) - 1], new)

            yield "linear-column-split", halves
        if g.shape(a[1]["ref"])[1] % 2 == 0:

            def partial(g, n):
                new = []
                mk = maker(g, n, new)
                x, w, bias = (n["args"] + [None])[:3]
                size, rank = g.shape(w["ref"])[1], len(g.shape(x["ref"]))
                part = []
                for k in range(2):
                    cols = (k * size // 2, (k + 1) * size // 2)
                    args = [
                        mk("_x%d" % k, "aten::slice.Tensor", dict(x), rank - 1, *cols),
                        mk("_w%d" % k, "aten::slice.Tensor", dict(w), 1, *cols),
                    ]
                    part.append(
                        mk(
                            "_y%d" % k,
                            "aten::linear",
                            *args,
                            *([bias] if k == 0 and is_ref(bias) else []),
                        )
                    )
                become(g, n, "aten::add.Tensor", part, new)

            yield "linear-row-split", partial

        def padded(g, n):
            new = []
            mk = maker(g, n, new)
            x, w, bias = (n["args"] + [None])[:3]
            args = [
                mk("_xp", "aten::constant_pad_nd", dict(x), [0, 2], 0.0),
                mk("_wp", "aten::constant_pad_nd", dict(w), [0, 2], 0.0),
            ]
            become(g, n, "aten::linear", args + ([bias] if is_ref(bias) else []), new)

        yield "linear-padded", padded
    if n["op"] == "aten::addmm" and not kw and all(is_ref(x) for x in a[:3]):
        yield (
            "addmm-to-mm",
            lambda g, n: (
                become(g, n, "aten::add.Tensor", [ref(m), n["args"][0]], [m])
                if (m := g.new(n, "_mm", "aten::mm", n["args"][1:3]))
                else None
            ),
        )
    if b in ("split", "split_with_sizes", "chunk"):

        def slices(g, n):
            dim = n["args"][2] if len(n["args"]) > 2 else n["kwargs"].get("dim", 0)
            source, start, ids = n["args"][0], 0, []
            for k, o in enumerate(n["outputs"]):
                size = o["shape"][dim]
                m = g.new(
                    n,
                    "_s%d" % k,
                    "aten::slice.Tensor",
                    [dict(source), dim % len(o["shape"]), start, start + size],
                    dtype=o["dtype"],
                )
                ids.append(m["id"])
                g.before(n, [m])
                start += size
            for m in [
                m for m in g.nodes if m["op"] == "getitem" and m["args"][0]["ref"] == n["id"]
            ]:
                g.replace(m["id"], ids[m["args"][1]])

        yield "split-to-slices", slices
    if (
        n["op"] == "aten::slice.Tensor"
        and len(a) > 3
        and is_number(a[2])
        and is_number(a[3])
        and len(a) == 4
        and 0 <= a[2]
    ):

        def narrow(g, n):
            x, dim, begin, end = n["args"]
            end = min(end, g.shape(x["ref"])[dim])
            become(g, n, "aten::narrow", [x, dim, begin, end - begin])

        yield "slice-to-narrow", narrow
    if n["op"] in ("aten::view", "aten::reshape", "aten::_unsafe_view"):
        yield (
            "view-spelling",
            lambda g, n: n.update(
                op="aten::reshape"
                if n["op"] != "aten::reshape"
                else "aten::_unsafe_view"
                if False
                else "aten::view_copy"
            ),
        )
    if n["op"] == "aten::transpose.int":

        def permute(g, n):
            x, d0, d1 = n["args"]
            order = list(range(len(g.shape(x["ref"]))))
            order[d0], order[d1] = order[d1], order[d0]
            become(g, n, "aten::permute", [x, order])

        yield "transpose-to-permute", permute
    if n["op"] == "aten::unsqueeze":
        yield (
            "unsqueeze-to-view",
            lambda g, n: become(g, n, "aten::reshape", [n["args"][0], g.shape(n["id"])]),
        )
    if (
        n["op"] == "aten::matmul"
        and len(g.shape(a[0]["ref"])) == len(g.shape(a[1]["ref"])) >= 2
        and g.shape(a[0]["ref"])[:-2] == g.shape(a[1]["ref"])[:-2]
    ):

        def transposed(g, n):
            new = []
            mk = maker(g, n, new)
            r = len(g.shape(n["id"]))
            x, y = n["args"]
            z = mk(
                "_mt",
                "aten::matmul",
                mk("_yt", "aten::transpose.int", dict(y), r - 2, r - 1),
                mk("_xt", "aten::transpose.int", dict(x), r - 2, r - 1),
            )
            become(g, n, "aten::transpose.int", [z, r - 2, r - 1], new)

        yield "matmul-transposed", transposed
    if b == "softmax" and n["op"] == "aten::softmax.int":

        def explicit(g, n):
            new = []
            mk = maker(g, n, new)
            x, dim = n["args"][:2]
            top = mk("_max", "aten::amax", dict(x), [dim], True)
            e = mk("_exp", "aten::exp", mk("_sub", "aten::sub.Tensor", dict(x), top))
            become(
                g,
                n,
                "aten::div.Tensor",
                [e, mk("_sum", "aten::sum.dim_IntList", e, [dim], True)],
                new,
            )

        yield "softmax-explicit", explicit
    if b == "layer_norm" and len(a) > 3 and is_ref(a[2]) and is_ref(a[3]) and len(a[1]) == 1:

        def norm(g, n):
            new = []
            mk = maker(g, n, new)
            x, _, w, bias = n["args"][:4]
            eps = n["args"][4] if len(n["args"]) > 4 else 1e-5
            c = mk(
                "_c", "aten::sub.Tensor", dict(x), mk("_m", "aten::mean.dim", dict(x), [-1], True)
            )
            v = mk("_v", "aten::mean.dim", mk("_q", "aten::mul.Tensor", c, c), [-1], True)
            y = mk(
                "_y",
                "aten::mul.Tensor",
                c,
                mk("_r", "aten::rsqrt", mk("_e", "aten::add.Tensor", v, eps)),
            )
            become(
                g,
                n,
                "aten::add.Tensor",
                [mk("_z", "aten::mul.Tensor", y, dict(w)), dict(bias)],
                new,
            )

        yield "layer-norm-explicit", norm
    if b == "scaled_dot_product_attention" and not kw.get("enable_gqa"):
        mask = a[3] if len(a) > 3 else kw.get("attn_mask")
        if mask is None or (is_ref(mask) and g.floating(mask["ref"])):
            yield "attention-explicit", attention


def attention(g, n):
    new = []

    def mk(suffix, op, *args, dtype=None):
        new.append(g.new(n, suffix, op, list(args), dtype=dtype))
        return ref(new[-1])

    q, k, v = n["args"][:3]
    mask = n["args"][3] if len(n["args"]) > 3 else n["kwargs"].get("attn_mask")
    causal = n["args"][5] if len(n["args"]) > 5 else n["kwargs"].get("is_causal", False)
    rank, size = len(g.shape(q["ref"])), g.shape(q["ref"])[-1]
    scale = n["kwargs"].get("scale") or size**-0.5
    s = mk(
        "_qk",
        "aten::matmul",
        dict(q),
        mk("_kt", "aten::transpose.int", dict(k), rank - 2, rank - 1),
    )
    s = mk("_sc", "aten::mul.Tensor", s, scale)
    if is_ref(mask):
        s = mk("_mk", "aten::add.Tensor", s, dict(mask))
    if causal:
        ones = mk("_on", "aten::ones", [g.shape(q["ref"])[-2], g.shape(k["ref"])[-2]])
        far = mk("_tri", "aten::triu", ones, 1)
        s = mk(
            "_fill",
            "aten::masked_fill.Scalar",
            s,
            mk("_bool", "aten::gt.Scalar", far, 0, dtype="bool"),
            {"float": "-inf"},
        )
    become(g, n, "aten::matmul", [mk("_sm", "aten::softmax.int", s, -1), dict(v)], new)


def leaves(g, n):
    """A parameter stored in another way, and undone in the graph."""
    if n["op"] != "parameter" or not g.floating(n["id"]):
        return
    shape = n["outputs"][0]["shape"]

    def stored(f, *ops):
        def change(g, n):
            g.weights[n["name"]] = f(g.weights[n["name"]]).contiguous()
            n["outputs"] = [
                {"shape": list(g.weights[n["name"]].shape), "dtype": n["outputs"][0]["dtype"]}
            ]
            first = next(m for m in g.nodes if m["op"] not in LEAVES)
            last, new = n, []
            for k, (op, args) in enumerate(ops):
                last = g.new(n, "_u%d" % k, op, [ref(last)] + args)
                new.append(last)
            g.before(first, new)
            g.replace(n["id"], last["id"], skip=new)

        return change

    if len(shape) == 2:
        yield "stored-transposed", stored(lambda t: t.t(), ("aten::t", []))
    if shape:
        yield (
            "stored-padded",
            stored(
                lambda t: torch.cat([t, torch.zeros_like(t[:1])]),
                ("aten::slice.Tensor", [0, 0, shape[0]]),
            ),
        )
        yield "stored-flat", stored(lambda t: t.reshape(-1), ("aten::view", [shape]))
        yield "stored-with-one", stored(lambda t: t[None], ("aten::squeeze.dim", [0]))


def fused(g, n):
    """Linears over one tensor become one over a leaf that holds all their weights."""
    if n["op"] != "aten::linear":
        return
    same = [
        m
        for m in g.users[n["args"][0]["ref"]]
        if m["op"] == "aten::linear"
        and m["args"][0] == n["args"][0]
        and g.by_id[m["args"][1]["ref"]]["op"] == "parameter"
        and all(g.by_id[r["ref"]]["op"] in LEAVES for r in m["args"][1:] if is_ref(r))
    ]
    biased = [len(m["args"]) > 2 and is_ref(m["args"][2]) for m in same]
    if (
        len(same) < 2
        or same[0] is not n
        or len(set(biased)) != 1
        or any(len(g.users[r["ref"]]) > 1 for m in same for r in m["args"][1:] if is_ref(r))
    ):
        return
    members = [m["id"] for m in same]

    def fuse(g, n):
        group = [g.by_id[i] for i in members]
        sizes = [g.shape(m["args"][1]["ref"])[0] for m in group]
        args = [group[0]["args"][0]]
        for k in range(1, 3 if biased[0] else 2):
            parts = [g.by_id[m["args"][k]["ref"]] for m in group]
            leaf = dict(parts[0], id=parts[0]["id"] + "_fused", name=parts[0]["name"] + ".fused")
            t = g.weights[leaf["name"]] = torch.cat([g.weights[p["name"]] for p in parts])
            leaf["outputs"] = [{"shape": list(t.shape), "dtype": parts[0]["outputs"][0]["dtype"]}]
            g.nodes.insert(0, leaf)
            g.by_id[leaf["id"]] = leaf
            g.doc["nodes"] = [m for m in g.nodes if not any(m is p for p in parts)]
            args.append(ref(leaf))
        all_of = g.new(group[0], "_all", "aten::linear", args)
        g.before(group[0], [all_of])
        start, last = 0, len(g.shape(n["id"])) - 1
        for m, size in zip(group, sizes):
            m["op"], m["args"], m["kwargs"] = (
                "aten::slice.Tensor",
                [ref(all_of), last, start, start + size],
                {},
            )
            start += size

    yield "fused-linears", fuse


def whole(g, n):
    """Once for a graph, at its first operator."""
    if n is not next(m for m in g.nodes if m["op"] not in LEAVES):
        return

    def reorder(g, n):
        rng, order, done = random.Random(7), [], set()
        rest = list(g.nodes)
        while rest:
            ready = [m for m in rest if all(r["ref"] in done for r in node_refs(m))]
            m = rng.choice(ready)
            order.append(m)
            done.add(m["id"])
            rest = [x for x in rest if x is not m]
        g.doc["nodes"] = order

    yield "reorder", reorder

    def rename(g, n):
        name = {m["id"]: "v%d" % (997 * k % 1000003) for k, m in enumerate(g.nodes)}
        for m in g.nodes:
            for r in node_refs(m):
                r["ref"] = name[r["ref"]]
        for m in g.nodes:
            m["id"] = name[m["id"]]
        for o in g.doc["outputs"]:
            o["ref"] = name[o["ref"]]

    yield "rename", rename

    def unscoped(g, n):
        for m in g.nodes:
            m.pop("scope", None)
            m.pop("source", None)

    yield "no-scopes", unscoped


def kinds(g):
    for n in list(g.nodes):
        for f in (leaves,) if n["op"] in LEAVES else (neutral, arithmetic, composite, fused, whole):
            for kind, change in f(g, n):
                yield kind, n["id"], change
        if n["op"] not in LEAVES and n["op"] != "getitem":
            for f in (spelling, algebra, wording, rewrites):
                for kind, change in f.kinds(g, n):
                    yield kind, n["id"], change
