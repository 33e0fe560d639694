"""Still more rewrites that keep the function: attention, norms, rotations, gates and products as
other programs say them."""

import math

from graph import LEAVES, base, is_number, is_ref
from spelling import Maker, arg, made, say


def gates(g, n):
    """Activations by functions of the normal distribution, by exponentials, by a gated unit."""
    op, a = n["op"], n["args"]
    if (
        base(n) == "gelu"
        and (n["kwargs"].get("approximate") or (a[1] if len(a) > 1 else "none")) == "none"
    ):

        def normal(m, g, n, x):
            m.end("aten::mul.Tensor", dict(x), m("_cdf", "aten::special_ndtr", dict(x)))

        yield "gelu-by-ndtr", made(normal)

        def erfc(m, g, n, x):
            e = m("_erfc", "aten::erfc", m("_n", "aten::mul.Tensor", dict(x), -math.sqrt(0.5)))
            m.end("aten::mul.Tensor", m("_h", "aten::mul.Tensor", dict(x), e), 0.5)

        yield "gelu-by-erfc", made(erfc)
    if op == "aten::silu":

        def tanh(m, g, n, x):
            h = m("_h", "aten::mul.Tensor", dict(x), 0.5)
            m.end(
                "aten::add.Tensor",
                m("_ht", "aten::mul.Tensor", h, m("_t", "aten::tanh", dict(h))),
                dict(h),
            )

        yield "silu-by-tanh", made(tanh)

        def glu(m, g, n, x):
            d = len(g.shape(x["ref"])) - 1
            m.end("aten::glu", m("_xx", "aten::cat", [dict(x), dict(x)], d), d)

        yield "silu-by-glu", made(glu)
    if op == "aten::relu":

        def threshold(m, g, n, x):
            m.end("aten::threshold", x, 0.0, 0.0)

        yield "relu-to-threshold", made(threshold)

        def maximum(m, g, n, x):
            m.end("aten::maximum", dict(x), m("_0", "aten::zeros_like", dict(x)))

        yield "relu-to-maximum", made(maximum)
    if op == "aten::sigmoid":

        def softmax(m, g, n, x):
            d = len(g.shape(x["ref"]))
            s = m(
                "_s",
                "aten::softmax.int",
                m("_st", "aten::stack", [dict(x), m("_0", "aten::zeros_like", dict(x))], d),
                d,
            )
            m.end("aten::select.int", s, d, 0)

        yield "sigmoid-by-softmax", made(softmax)


def norms(g, n):
    """A root mean square by its operator, by a quotient, by the length of a vector; a variance by
    its operator."""
    op, a = n["op"], n["args"]
    if (
        op == "aten::mean.dim"
        and len(a) > 2
        and a[2]
        and isinstance(a[1], list)
        and len(a[1]) == 1
        and is_ref(a[0])
    ):
        square = g.by_id[a[0]["ref"]]
        if square["op"] == "aten::pow.Tensor_Scalar" and square["args"][1] == 2:
            size = g.shape(a[0]["ref"])[a[1][0]]

            def length(m, g, n, x):
                v = dict(g.by_id[x["ref"]]["args"][0])
                norm = m("_len", "aten::linalg_vector_norm", v, 2, n["args"][1], True)
                m.end("aten::div.Tensor", m("_sq", "aten::square", norm), float(size))

            yield "mean-square-by-length", made(length)

            def inner(m, g, n, x):
                v = g.by_id[x["ref"]]["args"][0]
                rank = len(g.shape(v["ref"]))
                if n["args"][1][0] not in (-1, rank - 1):
                    raise ValueError("not the last dimension")
                p = m(
                    "_vv",
                    "aten::matmul",
                    m("_u", "aten::unsqueeze", dict(v), rank - 1),
                    m("_w", "aten::unsqueeze", dict(v), rank),
                )
                m.end("aten::div.Tensor", m("_s", "aten::squeeze.dim", p, rank), float(size))

            yield "mean-square-by-product", made(inner)
    if base(n) == "layer_norm" and len(a) > 3 and is_ref(a[2]) and is_ref(a[3]):
        eps = a[4] if len(a) > 4 else 1e-5

        def native(g, n):
            m = Maker(g, n)
            m("_all", "aten::native_layer_norm", *n["args"][:4], eps)
            m.new[0]["outputs"] = [dict(n["outputs"][0]) for _ in range(3)]
            m.end("getitem", {"ref": m.new[0]["id"]}, 0)

        yield "layer-norm-native", native

        def variance(m, g, n, x):
            v = m(
                "_var",
                "aten::var.correction",
                dict(x),
                [-1],
                kwargs={"correction": 0, "keepdim": True},
            )
            c = m("_c", "aten::sub.Tensor", dict(x), m("_m", "aten::mean.dim", dict(x), [-1], True))
            y = m(
                "_y",
                "aten::div.Tensor",
                c,
                m("_r", "aten::sqrt", m("_e", "aten::add.Tensor", v, eps)),
            )
            m.end("aten::addcmul", n["args"][3], y, n["args"][2])

        yield "layer-norm-by-var", made(variance)
    if op == "aten::rsqrt":

        def quotient(m, g, n, x):
            m.end("aten::reciprocal", m("_p", "aten::pow.Tensor_Scalar", x, 0.5))

        yield "rsqrt-by-power", made(quotient)
    if op == "aten::mul.Tensor" and len(a) == 2 and all(is_ref(r) for r in a):
        for k in (0, 1):
            if g.by_id[a[k]["ref"]]["op"] == "aten::rsqrt":

                def divide(g, n, k=k):
                    m = Maker(g, n)
                    m.end(
                        "aten::div.Tensor",
                        n["args"][1 - k],
                        m("_root", "aten::sqrt", dict(g.by_id[n["args"][k]["ref"]]["args"][0])),
                    )

                yield "norm-by-quotient", divide


def rotations(g, n):
    """The half turn [-x2, x1], by a roll and signs, by two halves stacked, by a product with a
    matrix."""
    a = n["args"]
    if (
        n["op"] != "aten::cat"
        or not isinstance(a[0], list)
        or len(a[0]) != 2
        or not g.floating(n["id"])
    ):
        return
    shape, rank = g.shape(n["id"]), len(n["outputs"][0]["shape"])
    dim = (a[1] if len(a) > 1 else n["kwargs"].get("dim", 0)) % rank
    neg, low = (g.by_id[r["ref"]] for r in a[0])
    if (
        neg["op"] != "aten::neg"
        or dim != rank - 1
        or shape[-1] % 2
        or neg["outputs"] != low["outputs"]
    ):
        return
    half = shape[-1] // 2

    def signs(m, g, n, x):
        both = m("_both", "aten::cat", [dict(neg["args"][0]), dict(n["args"][0][1])], dim)
        one = m("_one", "aten::ones", [half])
        m.end(
            "aten::mul.Tensor",
            both,
            m("_sign", "aten::cat", [m("_minus", "aten::neg", one), one], 0),
        )

    yield "half-turn-by-signs", made(signs)

    def rolled(m, g, n, x):
        flat = m("_x", "aten::cat", [dict(n["args"][0][1]), dict(neg["args"][0])], dim)
        one = m("_one", "aten::ones", [half])
        turned = m("_roll", "aten::roll", flat, [half], [dim])
        m.end(
            "aten::mul.Tensor",
            turned,
            m("_sign", "aten::cat", [m("_minus", "aten::neg", one), one], 0),
        )

    yield "half-turn-by-roll", made(rolled)

    def stacked(m, g, n, x):
        m.end("aten::view", m("_st", "aten::stack", n["args"][0], rank - 1), shape)

    yield "half-turn-by-stack", made(stacked)

    def matrix(m, g, n, x):
        flat = m("_x", "aten::cat", [dict(n["args"][0][1]), dict(neg["args"][0])], dim)
        eye, none = m("_eye", "aten::eye", half), m("_none", "aten::zeros", [half, half])
        top = m("_top", "aten::cat", [none, eye], 1)
        low = m("_low", "aten::cat", [m("_minus", "aten::neg", eye), none], 1)
        m.end("aten::matmul", flat, m("_turn", "aten::cat", [top, low], 0))

    yield "half-turn-by-matrix", made(matrix)


def heads(g, n):
    """Key and value heads repeated, masks, scales, the product with the values."""
    op, a, kw = n["op"], n["args"], n["kwargs"]
    if op == "aten::scaled_dot_product_attention":
        q, k = (g.shape(r["ref"]) for r in a[:2])
        size, causal, mask = (
            q[-1],
            a[5] if len(a) > 5 else kw.get("is_causal", False),
            a[3] if len(a) > 3 else kw.get("attn_mask"),
        )
        rest = lambda n, *but: {x: y for x, y in n["kwargs"].items() if x not in but}  # noqa: E731
        if kw.get("enable_gqa") and len(q) == 4:
            times = q[1] // k[1]

            def indexed(m, g, n, x):
                i = m(
                    "_i",
                    "aten::div.Tensor_mode",
                    m("_ar", "aten::arange", q[1], dtype="int64"),
                    times,
                    dtype="int64",
                    kwargs={"rounding_mode": "floor"},
                )
                m.end(
                    op,
                    x,
                    *[
                        m("_" + s, "aten::index_select", r, 1, i)
                        for s, r in zip("kv", n["args"][1:3])
                    ],
                    *n["args"][3:],
                    kwargs=rest(n, "enable_gqa"),
                )

            yield "groups-indexed", made(indexed)

            def grouped(m, g, n, x):
                if is_ref(mask):
                    raise ValueError("the mask would have to be viewed, too")
                five = m("_q5", "aten::view", x, [q[0], k[1], times] + q[2:])
                k5, v5 = (
                    m("_%s5" % s, "aten::unsqueeze", r, 2) for s, r in zip("kv", n["args"][1:3])
                )
                out = m("_o5", op, five, k5, v5, *n["args"][3:], kwargs=rest(n, "enable_gqa"))
                m.end("aten::reshape", out, g.shape(n["id"]))

            yield "groups-by-dimension", made(grouped)

        def twice(m, g, n, x):
            by = (n["kwargs"].get("scale") or size**-0.5) ** 0.5
            m.end(
                op,
                m("_q", "aten::mul.Tensor", x, by),
                m("_k", "aten::mul.Tensor", n["args"][1], by),
                *n["args"][2:],
                kwargs=dict(n["kwargs"], scale=1.0),
            )

        yield "scale-on-both", made(twice)
        if causal and mask is None and q[-2] == k[-2]:
            t = q[-2]

            def bias(m, g, n, x):
                full = m("_full", "aten::full", [t, t], {"float": "-inf"})
                m.end(
                    op,
                    *n["args"][:3],
                    m("_up", "aten::triu", full, 1),
                    0.0,
                    False,
                    kwargs=rest(n, "is_causal", "attn_mask"),
                )

            yield "causal-to-bias", made(bias)

            def compared(m, g, n, x):
                i = m("_i", "aten::arange", t, dtype="int64")
                low = m(
                    "_ge",
                    "aten::ge.Tensor",
                    m("_col", "aten::unsqueeze", i, 1),
                    m("_row", "aten::unsqueeze", i, 0),
                    dtype="bool",
                )
                m.end(op, *n["args"][:3], low, 0.0, False, kwargs=rest(n, "is_causal", "attn_mask"))

            yield "causal-to-compare", made(compared)
        if not causal and not kw.get("enable_gqa") and len(q) == 4 and not is_ref(mask):

            def einsum(m, g, n, x):
                s = m("_s", "aten::einsum", "bhqd,bhkd->bhqk", [x, n["args"][1]])
                p = m(
                    "_p",
                    "aten::softmax.int",
                    m("_m", "aten::mul.Tensor", s, n["kwargs"].get("scale") or size**-0.5),
                    -1,
                )
                m.end("aten::einsum", "bhqk,bhkd->bhqd", [p, n["args"][2]])

            yield "attention-by-einsum", made(einsum)
    if (
        op == "aten::matmul"
        and len(n["outputs"][0]["shape"]) == 4
        and all(len(g.shape(r["ref"])) == 4 for r in a)
    ):

        def einsum(m, g, n, x):
            m.end("aten::einsum", "abij,abjk->abik", n["args"][:2])

        yield "matmul-to-einsum", made(einsum)

        def summed(m, g, n, x):
            wide = m(
                "_w",
                "aten::mul.Tensor",
                m("_x", "aten::unsqueeze", x, 4),
                m("_y", "aten::unsqueeze", n["args"][1], 2),
            )
            m.end("aten::sum.dim_IntList", wide, [3])

        yield "matmul-to-sum", made(summed)
    if op == "aten::softmax.int" and not kw and len(a) < 3:
        yield "softmax-in-float32", lambda g, n: n["args"].append({"dtype": "float32"})


def linears(g, n):
    op, a = n["op"], n["args"]
    if op != "aten::linear":
        return
    out, rank = g.shape(n["id"]), len(n["outputs"][0]["shape"])
    bias = a[2] if len(a) > 2 and is_ref(a[2]) else None

    def plus(m, y, g, n):
        m.end("aten::add.Tensor", y, n["args"][2]) if bias else m.end("aten::alias", y)

    def einsum(m, g, n, x):
        plus(m, m("_e", "aten::einsum", "...i,oi->...o", [x, n["args"][1]]), g, n)

    yield "linear-to-einsum", made(einsum)
    if rank == 3:

        def batched(m, g, n, x):
            w = m(
                "_wt",
                "aten::transpose.int",
                m(
                    "_wu",
                    "aten::expand",
                    m("_w1", "aten::unsqueeze", n["args"][1], 0),
                    [out[0]] + g.shape(n["args"][1]["ref"]),
                ),
                1,
                2,
            )
            plus(m, m("_b", "aten::bmm", x, w), g, n)

        yield "linear-to-bmm", made(batched)

        def convolution(m, g, n, x):
            y = m(
                "_cv",
                "aten::conv1d",
                m("_xt", "aten::transpose.int", x, 1, 2),
                m("_wu", "aten::unsqueeze", n["args"][1], 2),
                *([n["args"][2]] if bias else []),
            )
            m.end("aten::transpose.int", y, 1, 2)

        yield "linear-to-conv1d", made(convolution)
    inner = g.by_id[a[0]["ref"]]
    while inner["op"] in ("aten::to.dtype", "aten::dropout", "aten::type_as"):
        inner = g.by_id[inner["args"][0]["ref"]]
    if inner["op"] == "aten::mul.Tensor" and all(is_ref(r) for r in inner["args"]):
        for k in (0, 1):
            w = inner["args"][k]
            if (
                g.shape(w["ref"]) == [g.shape(a[0]["ref"])[-1]]
                and len(g.shape(inner["args"][1 - k]["ref"])) > 1
            ):

                def folded(g, n, k=k, inner=inner):
                    m = Maker(g, n)
                    m.end(
                        op,
                        dict(inner["args"][1 - k]),
                        m("_fold", "aten::mul.Tensor", n["args"][1], dict(inner["args"][k])),
                        *n["args"][2:],
                    )

                yield "norm-weight-folded", folded

    def permuted(m, g, n, x):
        flipped = m(
            "_y",
            op,
            x,
            m("_w", "aten::flip", n["args"][1], [0]),
            *([m("_b", "aten::flip", n["args"][2], [0])] if bias else []),
        )
        m.end("aten::flip", flipped, [rank - 1])

    yield "linear-rows-flipped", made(permuted)


def sums(g, n):
    op, a = n["op"], n["args"]
    if (
        op == "aten::add.Tensor"
        and len(a) == 2
        and is_ref(a[0])
        and is_ref(a[1])
        and g.floating(n["id"])
        and not n["kwargs"]
    ):
        for k in (0, 1):
            p = g.by_id[a[k]["ref"]]
            if p["op"] == "aten::mul.Tensor" and all(
                is_ref(r) and g.floating(r["ref"]) for r in p["args"]
            ):

                def fused(g, n, k=k, p=p):
                    Maker(g, n).end(
                        "aten::addcmul", n["args"][1 - k], *[dict(r) for r in p["args"]]
                    )

                yield "add-to-addcmul", fused
                break
        if g.shape(a[0]["ref"]) == g.shape(a[1]["ref"]) == g.shape(n["id"]):

            def mean(m, g, n, x):
                m.end("aten::mul.Tensor", m("_mid", "aten::lerp.Scalar", x, n["args"][1], 0.5), 2.0)

            yield "add-by-lerp", made(mean)
    if (
        op == "aten::mul.Tensor"
        and len(a) == 2
        and is_ref(a[0])
        and is_ref(a[1])
        and g.floating(n["id"])
    ):
        for k in (0, 1):
            e = g.by_id[a[k]["ref"]]
            if e["op"] == "aten::unsqueeze" and len(g.shape(e["id"])) == len(g.shape(n["id"])):

                def implicit(g, n, k=k, e=e):
                    shape, wide = g.shape(e["id"]), g.shape(n["id"])
                    m = Maker(g, n)
                    n["args"][k] = m(
                        "_wide",
                        "aten::expand",
                        dict(n["args"][k]),
                        [w if s == 1 else s for s, w in zip(shape, wide)],
                    )
                    g.before(n, m.new)

                yield "broadcast-said", implicit
                break
    if op == "aten::embedding" and g.by_id[a[0]["ref"]]["op"] == "parameter":
        rows = g.shape(a[0]["ref"])[0]

        def one_hot(m, g, n, x):
            hot = m("_hot", "aten::one_hot", n["args"][1], rows, dtype="int64")
            m.end(
                "aten::matmul",
                m("_f", "aten::to.dtype", hot, {"dtype": "float32"}, dtype="float32"),
                x,
            )

        yield "embedding-to-one-hot", made(one_hot)
    if (
        op == "aten::expand"
        and is_ref(a[0])
        and len(g.shape(a[0]["ref"])) == len(n["outputs"][0]["shape"])
    ):
        was, now = g.shape(a[0]["ref"]), g.shape(n["id"])
        wide = [k for k in range(len(now)) if was[k] != now[k]]
        if len(wide) == 1:

            def concatenated(m, g, n, x):
                m.end("aten::cat", [dict(x) for _ in range(now[wide[0]])], wide[0])

            yield "expand-to-cat", made(concatenated)

            def indexed(m, g, n, x):
                i = m(
                    "_i",
                    "aten::zeros",
                    [now[wide[0]]],
                    dtype="int64",
                    kwargs={"dtype": {"dtype": "int64"}},
                )
                m.end("aten::index_select", x, wide[0], i)

            yield "expand-to-index", made(indexed)
    if (
        op in ("aten::chunk", "aten::split_with_sizes")
        and all(o["dtype"].startswith("float") for o in n["outputs"])
        and len({tuple(o["shape"]) for o in n["outputs"]}) == 1
    ):
        dim = (a[2] if len(a) > 2 else n["kwargs"].get("dim", 0)) % len(n["outputs"][0]["shape"])

        def unbound(g, n):
            shape = n["outputs"][0]["shape"]
            m = Maker(g, n)
            v = m("_v", "aten::view", n["args"][0], shape[:dim] + [len(n["outputs"])] + shape[dim:])
            g.before(n, m.new)
            n["op"], n["args"], n["kwargs"] = "aten::unbind.int", [v, dim], {}

        yield "chunk-to-unbind", unbound


def kinds(g, n):
    if n["op"] in LEAVES or n["op"] == "getitem" or not n["outputs"]:
        return
    for f in (sums,) if len(n["outputs"]) != 1 else (gates, norms, rotations, heads, linears, sums):
        yield from f(g, n)
