"""More rewrites that keep the function: one operator said by others that give the same."""

import math

from graph import base, is_number, is_ref


def ref(n):
    return {"ref": n["id"]}


class Maker:
    """Collects new nodes in front of `n`; the last step makes n itself another operator."""

    def __init__(self, g, n):
        self.g, self.n, self.new = g, n, []

    def __call__(self, suffix, op, *args, dtype=None, kwargs=None):
        self.new.append(self.g.new(self.n, suffix, op, list(args), dtype=dtype))
        self.new[-1]["kwargs"] = kwargs or {}
        return ref(self.new[-1])

    def end(self, op, *args, kwargs=None):
        self.g.before(self.n, self.new)
        self.n["op"], self.n["args"], self.n["kwargs"] = op, list(args), kwargs or {}


def say(op, *args):
    """One operator for another; an argument that is a function is given the old arguments."""

    def change(g, n):
        Maker(g, n).end(op, *[a(g, n) if callable(a) else a for a in args])

    return change


def arg(k):
    return lambda g, n: n["args"][k]


def made(f):
    """f(m, g, n, x): x the first argument."""
    return lambda g, n: f(Maker(g, n), g, n, n["args"][0])


def elementwise(g, n):
    b, a = base(n), n["args"]
    op = n["op"]
    if b == "silu":

        def fraction(m, g, n, x):
            e = m("_e", "aten::exp", m("_n", "aten::neg", dict(x)))
            m.end("aten::div.Tensor", dict(x), m("_d", "aten::add.Tensor", e, 1.0))

        yield "silu-fraction", made(fraction)
    if b == "tanh":

        def sigmoid(m, g, n, x):
            s = m("_s", "aten::sigmoid", m("_2x", "aten::mul.Tensor", dict(x), 2.0))
            m.end("aten::sub.Tensor", m("_2s", "aten::mul.Tensor", s, 2.0), 1.0)

        yield "tanh-to-sigmoid", made(sigmoid)
    if b == "relu":

        def where(m, g, n, x):
            c = m("_c", "aten::gt.Scalar", dict(x), 0, dtype="bool")
            m.end("aten::where.ScalarOther", c, dict(x), 0.0)

        yield "relu-to-where", made(where)

        def half(m, g, n, x):
            m.end(
                "aten::mul.Tensor",
                m("_s", "aten::add.Tensor", dict(x), m("_a", "aten::abs", dict(x))),
                0.5,
            )

        yield "relu-to-abs", made(half)
    if op == "aten::pow.Tensor_Scalar" and a[1] == 2:
        yield "pow-to-square", say("aten::square", arg(0))
    if op == "aten::pow.Tensor_Scalar" and a[1] == 3:

        def cube(m, g, n, x):
            m.end("aten::mul.Tensor", m("_2", "aten::mul.Tensor", dict(x), dict(x)), dict(x))

        yield "cube-to-mul", made(cube)
    if b == "rsqrt":

        def one_over(m, g, n, x):
            s = m("_s", "aten::sqrt", x)
            m.end("aten::div.Tensor", m("_1", "aten::ones_like", s), s)

        yield "rsqrt-to-div", made(one_over)
    if b == "neg":

        def zero_less(m, g, n, x):
            m.end("aten::sub.Tensor", m("_0", "aten::zeros_like", x), x)

        yield "neg-to-sub", made(zero_less)
    if (
        op in ("aten::mul.Tensor", "aten::div.Tensor", "aten::add.Tensor")
        and len(a) == 2
        and is_ref(a[0])
        and is_number(a[1])
        and g.floating(n["id"])
    ):

        def tensor(m, g, n, x):
            m.end(n["op"], x, m("_c", "aten::full", [], float(n["args"][1])))

        yield "number-to-tensor", made(tensor)
    if (
        op == "aten::sub.Tensor"
        and len(a) == 2
        and is_ref(a[0])
        and is_ref(a[1])
        and g.floating(n["id"])
    ):

        def alpha(m, g, n, x):
            m.end("aten::add.Tensor", x, n["args"][1], kwargs={"alpha": -1})

        yield "sub-to-alpha", made(alpha)
        yield "sub-to-rsub", say("aten::rsub.Tensor", arg(1), arg(0))
    if op == "aten::sigmoid":

        def tanh(m, g, n, x):
            t = m("_t", "aten::tanh", m("_h", "aten::mul.Tensor", x, 0.5))
            m.end("aten::mul.Tensor", m("_1", "aten::add.Tensor", t, 1.0), 0.5)

        yield "sigmoid-to-tanh", made(tanh)
    if op == "aten::clamp" and all(is_number(x) for x in a[1:]) and len(a) == 3:

        def bounds(m, g, n, x):
            m.end("aten::clamp_max", m("_lo", "aten::clamp_min", x, n["args"][1]), n["args"][2])

        yield "clamp-in-two", made(bounds)


def compare(g, n):
    op, a = n["op"], n["args"]
    turned = {
        "aten::le.Tensor": "aten::ge.Tensor",
        "aten::ge.Tensor": "aten::le.Tensor",
        "aten::lt.Tensor": "aten::gt.Tensor",
        "aten::gt.Tensor": "aten::lt.Tensor",
    }
    negated = {
        "aten::le": "aten::gt",
        "aten::ge": "aten::lt",
        "aten::lt": "aten::ge",
        "aten::gt": "aten::le",
        "aten::eq": "aten::ne",
        "aten::ne": "aten::eq",
    }
    if op in turned and len(a) == 2 and is_ref(a[1]):
        yield "compare-turned", say(turned[op], arg(1), arg(0))
    short, _, kind = op.partition(".")
    if short in negated and len(a) == 2:

        def negation(m, g, n, x):
            m.end(
                "aten::logical_not",
                m("_not", negated[short] + "." + kind, x, n["args"][1], dtype="bool"),
            )

        yield "compare-negated", made(negation)
    if op == "aten::where.self":

        def other(m, g, n, x):
            m.end(
                n["op"], m("_not", "aten::logical_not", x, dtype="bool"), n["args"][2], n["args"][1]
            )

        yield "where-turned", made(other)
    if op == "aten::masked_fill.Scalar" and is_number(a[2]):
        yield "fill-to-where", say("aten::where.ScalarSelf", arg(1), arg(2), arg(0))
    if op in ("aten::__and__.Tensor", "aten::bitwise_and.Tensor", "aten::logical_and"):
        yield (
            "and-spelling",
            say(
                "aten::logical_and" if op != "aten::logical_and" else "aten::bitwise_and.Tensor",
                arg(1),
                arg(0),
            ),
        )
    if (
        op == "aten::arange"
        and len(a) == 1
        and is_number(a[0])
        and n["outputs"][0]["dtype"].startswith("int")
    ):

        def ones(m, g, n, x):
            o = m("_ones", "aten::ones", [x], kwargs={"dtype": {"dtype": n["outputs"][0]["dtype"]}})
            m.end("aten::sub.Tensor", m("_sum", "aten::cumsum", o, 0), 1)

        yield "arange-to-cumsum", made(ones)
    if op == "aten::arange" and len(a) == 1 and is_number(a[0]):

        def start(g, n):
            n["op"], n["args"] = "aten::arange.start", [0, n["args"][0]]

        yield "arange-from-zero", start


def layout(g, n):
    op, a, shape = n["op"], n["args"], n["outputs"][0]["shape"] if n["outputs"] else []
    rank = len(shape)
    if op == "aten::expand" and is_ref(a[0]) and g.floating(n["id"]):
        was = g.shape(a[0]["ref"])
        times = [shape[k] // ([1] * (rank - len(was)) + was)[k] for k in range(rank)]
        yield "expand-to-repeat", say("aten::repeat", arg(0), times)
        if len(was) == rank:

            def broadcast(m, g, n, x):
                m.end("aten::mul.Tensor", x, m("_1", "aten::ones", shape))

            yield "expand-to-ones", made(broadcast)
    if op == "aten::repeat_interleave.self_int" and len(a) > 2 and is_number(a[2]):

        def expand(m, g, n, x):
            was, dim = g.shape(x["ref"]), n["args"][2] % rank
            wide = was[: dim + 1] + [n["args"][1]] + was[dim + 1 :]
            m.end(
                "aten::reshape",
                m("_e", "aten::expand", m("_u", "aten::unsqueeze", x, dim + 1), wide),
                shape,
            )

        yield "repeat-to-expand", made(expand)
    if (
        op == "aten::cat"
        and isinstance(a[0], list)
        and len(a[0]) == 2
        and len(n["outputs"]) == 1
        and g.floating(n["id"])
    ):

        def padded(m, g, n, x):
            dim = (n["args"][1] if len(n["args"]) > 1 else n["kwargs"].get("dim", 0)) % rank
            first, second = (g.shape(r["ref"])[dim] for r in x)
            after = [0, 0] * (rank - 1 - dim)
            m.end(
                "aten::add.Tensor",
                m("_lo", "aten::constant_pad_nd", x[0], after + [0, second], 0.0),
                m("_hi", "aten::constant_pad_nd", x[1], after + [first, 0], 0.0),
            )

        yield "cat-to-pads", made(padded)
    if op == "aten::stack" and isinstance(a[0], list):

        def cat(m, g, n, x):
            dim = (n["args"][1] if len(n["args"]) > 1 else n["kwargs"].get("dim", 0)) % rank
            m.end(
                "aten::cat", [m("_%d" % k, "aten::unsqueeze", r, dim) for k, r in enumerate(x)], dim
            )

        yield "stack-to-cat", made(cat)
    if op == "aten::squeeze.dim" or op == "aten::flatten.using_ints":
        yield "squeeze-to-view", say("aten::view_copy", arg(0), shape)
    if op == "aten::select.int":

        def narrow(m, g, n, x):
            d, i = n["args"][1], n["args"][2] % g.shape(x["ref"])[n["args"][1]]
            m.end("aten::squeeze.dim", m("_n", "aten::narrow", x, d, i, 1), d)

        yield "select-to-narrow", made(narrow)
    if (
        op == "aten::slice.Tensor"
        and len(a) == 4
        and is_number(a[2])
        and is_number(a[3])
        and 0 <= a[2]
    ):

        def chosen(m, g, n, x):
            i = m(
                "_i",
                "aten::arange.start",
                n["args"][2],
                min(n["args"][3], g.shape(x["ref"])[n["args"][1]]),
                dtype="int64",
                kwargs={"dtype": {"dtype": "int64"}},
            )
            m.end("aten::index_select", x, n["args"][1], i)

        yield "slice-to-index-select", made(chosen)
    if op == "aten::transpose.int":
        yield "transpose-to-copy", say("aten::transpose_copy.int", arg(0), arg(1), arg(2))
    if op in ("aten::view", "aten::reshape") and rank and is_ref(a[0]):

        def two(m, g, n, x):
            m.end("aten::view", m("_flat", "aten::flatten.using_ints", x, 0, -1), shape)

        yield "view-in-two", made(two)
    if op == "aten::split.Tensor" and len({tuple(o["shape"]) for o in n["outputs"]}) == 1:
        yield (
            "split-to-chunk",
            lambda g, n: n.update(
                op="aten::chunk", args=[n["args"][0], len(n["outputs"])] + n["args"][2:]
            ),
        )
    if op == "aten::chunk" and len({tuple(o["shape"]) for o in n["outputs"]}) == 1:

        def split(g, n):
            dim = n["args"][2] if len(n["args"]) > 2 else n["kwargs"].get("dim", 0)
            n.update(
                op="aten::split_with_sizes",
                args=[n["args"][0], [o["shape"][dim] for o in n["outputs"]], dim],
                kwargs={},
            )

        yield "chunk-to-split", split


def products(g, n):
    op, a, kw, rank = (
        n["op"],
        n["args"],
        n["kwargs"],
        len(n["outputs"][0]["shape"]) if n["outputs"] else 0,
    )
    if op == "aten::linear" and len(a) > 2 and is_ref(a[2]):

        def bias_out(m, g, n, x):
            m.end("aten::add.Tensor", m("_l", "aten::linear", x, n["args"][1]), n["args"][2])

        yield "linear-bias-out", made(bias_out)
    if op == "aten::linear" and rank == 2:

        def turned(m, g, n, x):
            y = m("_mm", "aten::mm", n["args"][1], m("_xt", "aten::t", x))
            y = m("_yt", "aten::t", y)
            bias = n["args"][2] if len(n["args"]) > 2 else None
            m.end("aten::add.Tensor", y, bias) if is_ref(bias) else m.end("aten::clone", y)

        yield "linear-turned", made(turned)
    if op == "aten::addmm" and not kw and len(g.shape(a[0]["ref"])) == 1:

        def linear(m, g, n, x):
            m.end("aten::linear", n["args"][1], m("_wt", "aten::t", n["args"][2]), x)

        yield "addmm-to-linear", made(linear)
    if op == "aten::matmul" and rank == 4 and g.shape(a[0]["ref"])[:2] == g.shape(a[1]["ref"])[:2]:

        def batched(m, g, n, x):
            def flat(r, s):
                return m("_f" + s, "aten::reshape", r, [-1] + g.shape(r["ref"])[2:])

            m.end(
                "aten::view",
                m("_bmm", "aten::bmm", flat(x, "a"), flat(n["args"][1], "b")),
                g.shape(n["id"]),
            )

        yield "matmul-to-bmm", made(batched)
    if op == "aten::bmm":
        yield "bmm-to-matmul", say("aten::matmul", arg(0), arg(1))
    if op == "aten::softmax.int":

        def shifted(m, g, n, x):
            m.end(n["op"], m("_up", "aten::add.Tensor", x, 1.5), *n["args"][1:])

        yield "softmax-shifted", made(shifted)
        yield (
            "softmax-spelling",
            lambda g, n: n.update(op="aten::_softmax", args=n["args"][:2] + [False], kwargs={}),
        )

        def logs(m, g, n, x):
            m.end("aten::exp", m("_log", "aten::log_softmax.int", x, n["args"][1]))

        yield "softmax-by-log", made(logs)

        def by_sum(m, g, n, x):
            m.end(
                "aten::exp",
                m(
                    "_d",
                    "aten::sub.Tensor",
                    dict(x),
                    m("_l", "aten::logsumexp", dict(x), [n["args"][1]], True),
                ),
            )

        yield "softmax-by-logsumexp", made(by_sum)
    if op == "aten::embedding":

        def rows(m, g, n, x):
            flat = m("_i", "aten::reshape", n["args"][1], [-1], dtype="int64")
            m.end("aten::view", m("_rows", "aten::index_select", x, 0, flat), g.shape(n["id"]))

        yield "embedding-to-select", made(rows)
    if op == "aten::layer_norm" and len(a) > 3 and is_ref(a[2]) and is_ref(a[3]):

        def affine(m, g, n, x):
            y = m("_n", n["op"], x, n["args"][1], None, None, *n["args"][4:5])
            m.end("aten::add.Tensor", m("_w", "aten::mul.Tensor", y, n["args"][2]), n["args"][3])

        yield "layer-norm-affine", made(affine)

        def square_mean(m, g, n, x):
            mean = m("_m", "aten::mean.dim", dict(x), [-1], True)
            v = m(
                "_v",
                "aten::sub.Tensor",
                m(
                    "_q",
                    "aten::mean.dim",
                    m("_x2", "aten::mul.Tensor", dict(x), dict(x)),
                    [-1],
                    True,
                ),
                m("_m2", "aten::mul.Tensor", mean, mean),
            )
            eps = n["args"][4] if len(n["args"]) > 4 else 1e-5
            y = m(
                "_y",
                "aten::mul.Tensor",
                m("_c", "aten::sub.Tensor", dict(x), mean),
                m("_r", "aten::rsqrt", m("_e", "aten::add.Tensor", v, eps)),
            )
            m.end("aten::add.Tensor", m("_z", "aten::mul.Tensor", y, n["args"][2]), n["args"][3])

        if (
            a[4] if len(a) > 4 else 1e-5
        ) >= 1e-6:  # below that the difference of squares has no digits left
            yield "layer-norm-by-squares", made(square_mean)


def attention(g, n):
    if n["op"] != "aten::scaled_dot_product_attention":
        return
    a, kw = n["args"], n["kwargs"]
    mask, causal = (
        a[3] if len(a) > 3 else kw.get("attn_mask"),
        a[5] if len(a) > 5 else kw.get("is_causal", False),
    )
    size = g.shape(a[0]["ref"])[-1]
    if kw.get("scale") is None:
        yield "scale-said", lambda g, n: n["kwargs"].update(scale=size**-0.5)

    def before(m, g, n, x):
        q = m("_q", "aten::mul.Tensor", x, n["kwargs"].get("scale") or size**-0.5)
        m.end(n["op"], q, *n["args"][1:], kwargs=dict(n["kwargs"], scale=1.0))

    yield "scale-before", made(before)
    if causal and mask is None and g.shape(a[0]["ref"])[-2] == g.shape(a[1]["ref"])[-2]:

        def masked(m, g, n, x):
            t = g.shape(x["ref"])[-2]
            ones = m(
                "_ones", "aten::ones", [t, t], dtype="bool", kwargs={"dtype": {"dtype": "bool"}}
            )
            low = m("_low", "aten::tril", ones, dtype="bool")
            rest = {k: v for k, v in n["kwargs"].items() if k not in ("is_causal", "attn_mask")}
            m.end(n["op"], *n["args"][:3], low, 0.0, False, kwargs=rest)

        yield "causal-to-mask", made(masked)
    if kw.get("enable_gqa"):

        def wide(m, g, n, x):
            times = g.shape(x["ref"])[-3] // g.shape(n["args"][1]["ref"])[-3]
            k, v = (
                m("_" + s, "aten::repeat_interleave.self_int", r, times, -3)
                for s, r in zip("kv", n["args"][1:3])
            )
            m.end(
                n["op"],
                x,
                k,
                v,
                *n["args"][3:],
                kwargs={a: b for a, b in n["kwargs"].items() if a != "enable_gqa"},
            )

        yield "groups-repeated", made(wide)

    def halves(m, g, n, x):
        heads = g.shape(x["ref"])[1]
        part = lambda r, k: m(
            "_%s%d" % (r["ref"], k),
            "aten::slice.Tensor",
            dict(r),
            1,
            g.shape(r["ref"])[1] * k // 2,
            g.shape(r["ref"])[1] * (k + 1) // 2,
        )  # noqa: E731
        m.end(
            "aten::cat",
            [
                m(
                    "_at%d" % k,
                    n["op"],
                    *[part(r, k) for r in n["args"][:3]],
                    *n["args"][3:],
                    kwargs=dict(n["kwargs"]),
                )
                for k in range(2)
            ],
            1,
        ) if heads % 2 == 0 else None

    if (
        len(g.shape(a[0]["ref"])) == 4
        and g.shape(a[1]["ref"])[1] % 2 == 0
        and (not is_ref(mask) or g.shape(mask["ref"])[1] == 1)
    ):
        yield "heads-in-two", made(halves)


def kinds(g, n):
    if len(n["outputs"]) == 0:
        return
    for f in (elementwise, compare, layout, products, attention):
        yield from f(g, n)
