"""Rewrites that keep the function, as someone would plant them who knows how programs of one model
differ: other names of an operator, masks and rotations in other words, attention in blocks,
products joined in the graph."""

import math

from graph import LEAVES, base, is_number, is_ref
from spelling import Maker, made, say

ALIAS = {
    "aten::mul.Tensor": "aten::multiply.Tensor",
    "aten::sub.Tensor": "aten::subtract.Tensor",
    "aten::div.Tensor": "aten::true_divide.Tensor",
    "aten::neg": "aten::negative",
    "aten::sigmoid": "aten::special_expit",
    "aten::softmax.int": "aten::special_softmax",
    "aten::cat": "aten::concat",
    "aten::transpose.int": "aten::swapaxes",
    "aten::gt.Tensor": "aten::greater.Tensor",
    "aten::le.Tensor": "aten::less_equal.Tensor",
    "aten::abs": "aten::absolute",
    "aten::clamp": "aten::clip",
    "aten::linear": None,
}


def names(g, n):
    """Another name of the operator, a scalar overload, an operator that is a special case of it."""
    op, a = n["op"], n["args"]
    if ALIAS.get(op) and len(n["outputs"]) == 1 and not n["kwargs"]:

        def other(g, n):
            n["op"] = ALIAS[op]
            if op == "aten::softmax.int":
                n["args"] = n["args"] + [None] * (3 - len(n["args"]))
                n["args"], n["kwargs"] = n["args"][:2], {}

        yield "other-name", other
    if (
        op in ("aten::mul.Tensor", "aten::add.Tensor", "aten::div.Tensor", "aten::sub.Tensor")
        and len(a) == 2
        and is_ref(a[0])
        and is_number(a[1])
        and g.floating(n["id"])
    ):
        yield "scalar-overload", lambda g, n: n.update(op=op.split(".")[0] + ".Scalar")
    rank = len(g.shape(n["id"])) if len(n["outputs"]) == 1 else 0
    if op == "aten::transpose.int" and rank >= 2:
        d = sorted(k % rank for k in a[1:3])
        if d == [rank - 2, rank - 1]:
            yield "transpose-to-mT", say("aten::mT", lambda g, n: n["args"][0])
        if d[1] == d[0] + 1:
            yield (
                "transpose-to-movedim",
                say("aten::movedim.int", lambda g, n: n["args"][0], d[0], d[1]),
            )
    if op in ("aten::view", "aten::reshape") and is_ref(a[0]):
        was, now = g.shape(a[0]["ref"]), g.shape(n["id"])
        if len(now) == len(was) + 1 and was[:-1] == now[:-2]:
            yield (
                "view-to-unflatten",
                say("aten::unflatten.int", lambda g, n: n["args"][0], len(was) - 1, now[-2:]),
            )
        if len(now) == len(was) - 1 and now[:-1] == was[:-2]:
            yield (
                "view-to-flatten",
                say("aten::flatten.using_ints", lambda g, n: n["args"][0], len(now) - 1, len(now)),
            )
    if op == "aten::embedding" and is_ref(a[0]):

        def index(m, g, n, x):
            m.end("aten::index.Tensor", x, [n["args"][1]])

        yield "embedding-to-index", made(index)
    if op == "aten::unsqueeze" and is_ref(a[0]):
        dim = a[1] % rank
        yield "unsqueeze-by-index", say("aten::stack", lambda g, n: [n["args"][0]], dim)


def reads(g, r):
    return g.by_id[r["ref"]] if is_ref(r) else {"op": "", "args": []}


def norms(g, n):
    """A root mean square norm by its operator, its mean by a product with ones; the norm's weight
    as a diagonal."""
    op, a = n["op"], n["args"]
    if op == "aten::mul.Tensor" and len(a) == 2 and all(is_ref(r) for r in a):
        for k in (0, 1):
            root = reads(g, a[k])
            eps = (
                reads(g, root["args"][0]) if root["op"] == "aten::rsqrt" else {"op": "", "args": []}
            )
            mean = (
                reads(g, eps["args"][0])
                if eps["op"] == "aten::add.Tensor" and is_number(eps["args"][1])
                else {"op": ""}
            )
            square = (
                reads(g, mean["args"][0])
                if mean["op"] == "aten::mean.dim" and mean["args"][1] == [-1]
                else {"op": ""}
            )
            if (
                square["op"] == "aten::pow.Tensor_Scalar"
                and square["args"][1] == 2
                and square["args"][0] == a[1 - k]
            ):

                def operator(g, n, x=a[1 - k], by=eps["args"][1]):
                    Maker(g, n).end("aten::rms_norm", dict(x), [g.shape(x["ref"])[-1]], None, by)

                yield "norm-to-operator", operator
    if op == "aten::mean.dim" and is_ref(a[0]) and a[1] == [-1] and len(a) > 2 and a[2]:
        size = g.shape(a[0]["ref"])[-1]

        def product(m, g, n, x):
            m.end("aten::matmul", x, m("_1", "aten::full", [size, 1], 1.0 / size))

        yield "mean-to-product", made(product)


def shapes_of(g, n):
    return [g.shape(r["ref"]) for r in n["args"][:3]]


def mask_of(n):
    a, kw = n["args"], n["kwargs"]
    return a[3] if len(a) > 3 else kw.get("attn_mask"), a[5] if len(a) > 5 else kw.get(
        "is_causal", False
    )


def attention(g, n):
    """Attention by heads, by blocks of queries, of keys (their sums of exponentials merged), by one
    product with a bias, with a mask out of a larger buffer."""
    if n["op"] != "aten::scaled_dot_product_attention":
        return
    op, kw = n["op"], n["kwargs"]
    q, k, v = shapes_of(g, n)
    mask, causal = mask_of(n)
    scale = kw.get("scale") or q[-1] ** -0.5
    plain = {x: y for x, y in kw.items() if x not in ("is_causal", "attn_mask")}
    if len(q) != 4 or q[-2] != k[-2]:
        return
    t, heads = q[-2], q[1]

    def one_by_one(m, g, n, x):
        part = lambda j, h: m(
            "_%d_%d" % (j, h),
            "aten::slice.Tensor",
            dict(n["args"][j]),
            1,
            h * g.shape(n["args"][j]["ref"])[1] // heads,
            h * g.shape(n["args"][j]["ref"])[1] // heads + 1,
        )  # noqa: E731
        m.end(
            "aten::cat",
            [
                m(
                    "_h%d" % h,
                    op,
                    *[part(j, h) for j in range(3)],
                    *n["args"][3:],
                    kwargs={x: y for x, y in n["kwargs"].items() if x != "enable_gqa"},
                )
                for h in range(heads)
            ],
            1,
        )

    if not is_ref(mask) or g.shape(mask["ref"])[1] == 1:
        yield "heads-one-by-one", made(one_by_one)
    if causal and mask is None:

        def queries(m, g, n, x):
            half, out = t // 2, []
            for j, (lo, hi) in enumerate(((0, half), (half, t))):
                ones = m(
                    "_ones%d" % j,
                    "aten::ones",
                    [hi - lo, hi],
                    dtype="bool",
                    kwargs={"dtype": {"dtype": "bool"}},
                )
                low = m("_low%d" % j, "aten::tril", ones, lo, dtype="bool")
                qs = m("_q%d" % j, "aten::slice.Tensor", dict(x), 2, lo, hi)
                ks, vs = (
                    m("_%s%d" % (s, j), "aten::slice.Tensor", dict(r), 2, 0, hi)
                    for s, r in zip("kv", n["args"][1:3])
                )
                out.append(m("_part%d" % j, op, qs, ks, vs, low, 0.0, False, kwargs=dict(plain)))
            m.end("aten::cat", out, 2)

        yield "queries-in-two", made(queries)

        def buffer(m, g, n, x):
            ones = m(
                "_ones",
                "aten::ones",
                [4 * t, 4 * t],
                dtype="bool",
                kwargs={"dtype": {"dtype": "bool"}},
            )
            low = m("_low", "aten::tril", ones, dtype="bool")
            part = m(
                "_cols",
                "aten::slice.Tensor",
                m("_rows", "aten::slice.Tensor", low, 0, 0, t, dtype="bool"),
                1,
                0,
                t,
                dtype="bool",
            )
            m.end(op, *n["args"][:3], part, 0.0, False, kwargs=dict(plain))

        yield "causal-from-buffer", made(buffer)

        def additive(m, g, n, x):
            ones = m("_ones", "aten::ones", [t, t])
            high = m("_high", "aten::triu", ones, 1)
            bias = m("_bias", "aten::mul.Tensor", high, -3.4028234663852886e38)
            m.end(op, *n["args"][:3], bias, 0.0, False, kwargs=dict(plain))

        yield "causal-to-lowest", made(additive)
        if not kw.get("enable_gqa"):

            def baddbmm(m, g, n, x):
                def flat(r, s):
                    return m("_f" + s, "aten::reshape", r, [-1] + g.shape(r["ref"])[2:])

                kt = m("_kt", "aten::transpose.int", flat(n["args"][1], "k"), 1, 2)
                bias = m(
                    "_bias", "aten::triu", m("_full", "aten::full", [t, t], {"float": "-inf"}), 1
                )
                wide = m(
                    "_wide",
                    "aten::expand",
                    m("_b1", "aten::unsqueeze", bias, 0),
                    [q[0] * heads, t, t],
                )
                s = m(
                    "_s",
                    "aten::baddbmm",
                    wide,
                    flat(x, "q"),
                    kt,
                    kwargs={"beta": 1, "alpha": scale},
                )
                o = m(
                    "_o", "aten::bmm", m("_p", "aten::softmax.int", s, -1), flat(n["args"][2], "v")
                )
                m.end("aten::view", o, g.shape(n["id"]))

            yield "attention-by-baddbmm", made(baddbmm)
    if mask is not None and is_ref(mask) and g.dtype(mask["ref"]) == "bool":

        def bias(m, g, n, x):
            zero = m("_0", "aten::zeros", [])
            b = m("_bias", "aten::where.ScalarOther", n["args"][3], zero, {"float": "-inf"})
            m.end(op, *n["args"][:3], b, *n["args"][4:], kwargs=dict(n["kwargs"]))

        if len(n["args"]) > 3:
            yield "mask-to-bias", made(bias)


def rotations(g, n):
    """x cos + turned(x) sin by halves, each by itself, and as a product of complex numbers."""
    op, a = n["op"], n["args"]
    if (
        op != "aten::add.Tensor"
        or len(a) != 2
        or not all(is_ref(r) for r in a)
        or not g.floating(n["id"])
    ):
        return
    straight, turned = (reads(g, r) for r in a)
    if (
        straight["op"] != "aten::mul.Tensor"
        or turned["op"] != "aten::mul.Tensor"
        or not all(is_ref(r) for m in (straight, turned) for r in m["args"])
    ):
        return
    cat = reads(g, turned["args"][0])
    if cat["op"] != "aten::cat" or not isinstance(cat["args"][0], list) or len(cat["args"][0]) != 2:
        return
    if reads(g, cat["args"][0][0])["op"] != "aten::neg" or g.shape(n["id"])[-1] % 2:
        return
    x, cos, sin = straight["args"][0], straight["args"][1], turned["args"][1]
    rank, size = len(g.shape(n["id"])), g.shape(n["id"])[-1]

    def halves(m, r, name):
        return [
            m(
                "_%s%d" % (name, k),
                "aten::slice.Tensor",
                dict(r),
                len(g.shape(r["ref"])) - 1,
                k * size // 2,
                (k + 1) * size // 2,
            )
            for k in range(2)
        ]

    def by_halves(g, n):
        m = Maker(g, n)
        (x1, x2), c, s = halves(m, x, "x"), halves(m, cos, "c")[0], halves(m, sin, "s")[0]
        lo = m(
            "_lo",
            "aten::sub.Tensor",
            m("_a", "aten::mul.Tensor", x1, c),
            m("_b", "aten::mul.Tensor", x2, s),
        )
        hi = m(
            "_hi",
            "aten::add.Tensor",
            m("_d", "aten::mul.Tensor", dict(x2), dict(c)),
            m("_e", "aten::mul.Tensor", dict(x1), dict(s)),
        )
        m.end("aten::cat", [lo, hi], rank - 1)

    yield "rotation-by-halves", by_halves

    def by_complex(g, n):
        m = Maker(g, n)
        (x1, x2), c, s = halves(m, x, "x"), halves(m, cos, "c")[0], halves(m, sin, "s")[0]
        z = m("_z", "aten::complex", x1, x2, dtype="complex64")
        w = m("_w", "aten::complex", c, s, dtype="complex64")
        y = m("_y", "aten::mul.Tensor", z, w, dtype="complex64")
        m.end("aten::cat", [m("_re", "aten::real", y), m("_im", "aten::imag", y)], rank - 1)

    yield "rotation-by-complex", by_complex


def linears(g, n):
    """Linears joined in the graph, their bias as one more column, their result by blocks of the
    input."""
    op, a = n["op"], n["args"]
    if op != "aten::linear":
        return
    bias = a[2] if len(a) > 2 and is_ref(a[2]) else None
    same = [
        m
        for m in g.users[a[0]["ref"]]
        if m["op"] == op and m["args"][0] == a[0] and len(m["args"]) == len(a)
    ]
    if (
        len(same) > 1
        and same[0] is n
        and all(len(m["args"]) < 3 or is_ref(m["args"][2]) for m in same)
    ):
        members = [m["id"] for m in same]

        def joined(g, n):
            m, group = Maker(g, n), [g.by_id[i] for i in members]
            sizes, dim = [g.shape(x["args"][1]["ref"])[0] for x in group], len(g.shape(n["id"])) - 1
            args = [
                dict(n["args"][0]),
                m("_w", "aten::cat", [dict(x["args"][1]) for x in group], 0),
            ]
            if bias:
                args.append(m("_b", "aten::cat", [dict(x["args"][2]) for x in group], 0))
            whole = m("_all", op, *args)
            first = min(g.nodes.index(x) for x in group)
            leaves_first = [x for x in g.nodes if x["op"] in LEAVES]
            g.doc["nodes"] = leaves_first + [x for x in g.nodes if x["op"] not in LEAVES]
            assert first >= 0
            g.before(n, m.new)
            start = 0
            for x, size in zip(group, sizes):
                x["op"], x["args"], x["kwargs"] = (
                    "aten::slice.Tensor",
                    [dict(whole), dim, start, start + size],
                    {},
                )
                start += size

        yield "linears-joined", joined
    if bias:

        def column(m, g, n, x):
            one = m("_one", "aten::ones", g.shape(x["ref"])[:-1] + [1])
            wide = m("_x1", "aten::cat", [dict(x), one], len(g.shape(x["ref"])) - 1)
            w = m(
                "_w1", "aten::cat", [n["args"][1], m("_b1", "aten::unsqueeze", n["args"][2], 1)], 1
            )
            m.end(op, wide, w)

        yield "bias-as-column", made(column)

        def twice(m, g, n, x):
            half = m("_half", "aten::mul.Tensor", n["args"][2], 0.5)
            m.end("aten::add.Tensor", m("_l", op, x, n["args"][1], half), dict(half))

        yield "bias-in-halves", made(twice)
    rank = len(g.shape(n["id"]))

    def scaled(m, g, n, x):
        w = m("_w2", "aten::mul.Tensor", n["args"][1], 4.0)
        y = m("_y4", "aten::linear", m("_x4", "aten::div.Tensor", x, 4.0), w)
        m.end("aten::add.Tensor", y, n["args"][2]) if bias else m.end("aten::alias", y)

    yield "scales-cancel", made(scaled)
    if rank == 3:

        def turned(m, g, n, x):
            y = m("_y", op, m("_xt", "aten::transpose.int", x, 0, 1), *n["args"][1:])
            m.end("aten::transpose.int", y, 0, 1)

        yield "batch-second", made(turned)


def gates(g, n):
    """Gates and sums in other words."""
    op, a = n["op"], n["args"]
    if op == "aten::silu":

        def exponent(m, g, n, x):
            e = m("_e", "aten::exp", dict(x))
            m.end(
                "aten::div.Tensor",
                m("_xe", "aten::mul.Tensor", dict(x), e),
                m("_1e", "aten::add.Tensor", dict(e), 1.0),
            )

        yield "silu-by-exponent", made(exponent)
    if (
        base(n) == "gelu"
        and (n["kwargs"].get("approximate") or (a[1] if len(a) > 1 else "none")) == "tanh"
    ):

        def nested(m, g, n, x):
            inner = m(
                "_in",
                "aten::mul.Tensor",
                m("_p", "aten::mul.Tensor", dict(x), math.sqrt(2 / math.pi)),
                m(
                    "_q",
                    "aten::add.Tensor",
                    m(
                        "_r",
                        "aten::mul.Tensor",
                        m("_xx", "aten::mul.Tensor", dict(x), dict(x)),
                        0.044715,
                    ),
                    1.0,
                ),
            )
            m.end(
                "aten::mul.Tensor",
                dict(x),
                m("_s", "aten::sigmoid", m("_2", "aten::mul.Tensor", inner, 2.0)),
            )

        yield "gelu-by-sigmoid", made(nested)
    if (
        op == "aten::add.Tensor"
        and len(a) == 2
        and all(is_ref(r) for r in a)
        and g.shape(a[0]["ref"]) == g.shape(a[1]["ref"]) == g.shape(n["id"])
        and g.floating(n["id"])
    ):

        def halves(m, g, n, x):
            m.end(
                "aten::add.Tensor",
                m(
                    "_sum",
                    "aten::add.Tensor",
                    dict(x),
                    m("_h", "aten::mul.Tensor", dict(n["args"][1]), 0.5),
                ),
                m("_h2", "aten::mul.Tensor", dict(n["args"][1]), 0.5),
            )

        yield "sum-in-halves", made(halves)


def kinds(g, n):
    if n["op"] in LEAVES or n["op"] == "getitem" or len(n["outputs"]) != 1:
        return
    for f in (names, norms, attention, rotations, linears, gates):
        yield from f(g, n)
