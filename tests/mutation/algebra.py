"""Rewrites that keep the function by an identity over several operators."""

from graph import base, is_number, is_ref
from spelling import Maker


def two(g, n):
    """A sum, difference, product or quotient of two floating tensors."""
    a = n["args"]
    return (
        len(a) == 2
        and is_ref(a[0])
        and is_ref(a[1])
        and not n["kwargs"]
        and g.floating(n["id"])
        and all(g.floating(r["ref"]) for r in a)
    )


def by(g, r, *ops):
    """The node of a reference where it is one of `ops` over tensors."""
    m = g.by_id[r["ref"]] if is_ref(r) else None
    return m if m and m["op"] in ops and two(g, m) else None


def scales(g, n, k):
    """Argument k is a tensor times or over a number: (tensor, number)."""
    m = g.by_id[n["args"][k]["ref"]] if is_ref(n["args"][k]) else None
    if (
        m
        and m["op"] in ("aten::mul.Tensor", "aten::div.Tensor")
        and len(m["args"]) == 2
        and is_ref(m["args"][0])
        and is_number(m["args"][1])
        and m["args"][1]
    ):
        return m["args"][0], m["args"][1] if m["op"] == "aten::mul.Tensor" else 1.0 / m["args"][1]


def sums(g, n):
    if not two(g, n):
        return
    op, a = n["op"], n["args"]
    if op == "aten::mul.Tensor":
        for k in (0, 1):
            inner = by(g, a[k], "aten::add.Tensor", "aten::sub.Tensor")
            if inner:

                def distribute(g, n, k=k, inner=inner):
                    m, other = Maker(g, n), n["args"][1 - k]
                    m.end(
                        inner["op"],
                        *[
                            m("_d%d" % j, n["op"], dict(r), dict(other))
                            for j, r in enumerate(inner["args"])
                        ],
                    )

                yield "distribute", distribute
            inner = by(g, a[k], "aten::mul.Tensor")
            if inner:

                def reassociate(g, n, k=k, inner=inner):
                    m, other = Maker(g, n), n["args"][1 - k]
                    m.end(
                        n["op"],
                        dict(inner["args"][0]),
                        m("_as", n["op"], dict(inner["args"][1]), other),
                    )

                yield "product-reassociate", reassociate
            inner = g.by_id[a[k]["ref"]]
            if inner["op"] == "aten::neg":

                def outside(g, n, k=k, inner=inner):
                    m, other = Maker(g, n), n["args"][1 - k]
                    m.end("aten::neg", m("_p", n["op"], dict(inner["args"][0]), other))

                yield "neg-outside", outside
            if scales(g, n, k):

                def later(g, n, k=k):
                    m, (x, by_) = Maker(g, n), scales(g, n, k)
                    m.end("aten::mul.Tensor", m("_p", n["op"], dict(x), n["args"][1 - k]), by_)

                yield "factor-later", later
    if op == "aten::sub.Tensor":

        def turned(g, n):
            m = Maker(g, n)
            m.end("aten::neg", m("_r", n["op"], n["args"][1], n["args"][0]))

        yield "sub-turned", turned
    if op == "aten::add.Tensor" and g.shape(n["id"]) == g.shape(a[0]["ref"]) == g.shape(
        a[1]["ref"]
    ):

        def stacked(g, n):
            m = Maker(g, n)
            m.end(
                "aten::sum.dim_IntList",
                m("_st", "aten::stack", [dict(r) for r in n["args"]], 0),
                [0],
            )

        yield "add-to-sum", stacked
        for k in (0, 1):
            inner = by(g, a[k], "aten::add.Tensor")
            if inner and g.shape(inner["id"]) == g.shape(inner["args"][0]["ref"]) == g.shape(
                inner["args"][1]["ref"]
            ):

                def other(g, n, k=k, inner=inner):
                    m = Maker(g, n)
                    m.end(
                        n["op"],
                        m("_o", n["op"], n["args"][1 - k], dict(inner["args"][0])),
                        dict(inner["args"][1]),
                    )

                yield "sum-other-order", other


def products(g, n):
    op, a = n["op"], n["args"]
    if op in ("aten::matmul", "aten::bmm", "aten::mm", "aten::linear") and is_ref(a[0]):
        if len(a) == 2 or a[2] is None:
            for k in (0, 1):
                if is_ref(a[k]) and scales(g, n, k):

                    def later(g, n, k=k):
                        m, (x, by_) = Maker(g, n), scales(g, n, k)
                        args = list(n["args"][:2])
                        args[k] = dict(x)
                        m.end("aten::mul.Tensor", m("_p", n["op"], *args), by_)

                    yield "scale-behind-product", later
    if (
        op in ("aten::mul.Tensor", "aten::div.Tensor")
        and len(a) == 2
        and is_ref(a[0])
        and is_number(a[1])
        and a[1]
    ):
        inner = g.by_id[a[0]["ref"]]
        if inner["op"] in ("aten::matmul", "aten::bmm"):
            for k in (0, 1):

                def before(g, n, inner=inner, k=k):
                    m, args = Maker(g, n), [dict(r) for r in inner["args"]]
                    args[k] = m("_s", n["op"], args[k], n["args"][1])
                    m.end(inner["op"], *args)

                yield "scale-before-product", before
    if op == "aten::linear" and is_ref(a[0]) and len(a) <= 3:
        inner = by(g, a[0], "aten::add.Tensor")
        if inner and all(g.shape(r["ref"]) == g.shape(a[0]["ref"]) for r in inner["args"]):

            def apart(g, n, inner=inner):
                m, (x, y) = Maker(g, n), inner["args"]
                m.end(
                    "aten::add.Tensor",
                    m("_a", "aten::linear", dict(x), *n["args"][1:]),
                    m("_b", "aten::linear", dict(y), n["args"][1]),
                )

            yield "linear-of-sum", apart
        if len(g.shape(n["id"])) >= 2 and g.shape(n["id"])[-2] > 1:

            def rows(g, n):
                m, rank, size = Maker(g, n), len(g.shape(n["id"])), g.shape(n["id"])[-2]
                part = [
                    m(
                        "_x%d" % k,
                        "aten::slice.Tensor",
                        dict(n["args"][0]),
                        rank - 2,
                        k * size // 2,
                        (k + 1) * size // 2,
                    )
                    for k in range(2)
                ]
                m.end(
                    "aten::cat",
                    [m("_y%d" % k, n["op"], p, *n["args"][1:]) for k, p in enumerate(part)],
                    rank - 2,
                )

            yield "rows-in-two", rows
    if (
        op
        in (
            "aten::silu",
            "aten::gelu",
            "aten::relu",
            "aten::tanh",
            "aten::neg",
            "aten::cos",
            "aten::sin",
        )
        and is_ref(a[0])
        and g.floating(n["id"])
    ):
        shape = g.shape(n["id"])
        if shape and shape[-1] % 2 == 0:

            def halves(g, n):
                m, rank = Maker(g, n), len(shape)
                part = [
                    m(
                        "_x%d" % k,
                        "aten::slice.Tensor",
                        dict(n["args"][0]),
                        rank - 1,
                        k * shape[-1] // 2,
                        (k + 1) * shape[-1] // 2,
                    )
                    for k in range(2)
                ]
                out = []
                for k, p in enumerate(part):
                    out.append(m("_y%d" % k, n["op"], p, *n["args"][1:], kwargs=dict(n["kwargs"])))
                m.end("aten::cat", out, rank - 1)

            yield "pointwise-in-two", halves
    if base(n) in ("silu", "gelu", "relu", "tanh", "rsqrt", "cos", "sin", "sigmoid") and is_ref(
        a[0]
    ):
        inner = g.by_id[a[0]["ref"]]
        if inner["op"] in ("aten::view", "aten::reshape", "aten::unsqueeze") and g.floating(
            n["id"]
        ):

            def earlier(g, n, inner=inner):
                m = Maker(g, n)
                y = m(
                    "_e", n["op"], dict(inner["args"][0]), *n["args"][1:], kwargs=dict(n["kwargs"])
                )
                m.end(inner["op"], y, *inner["args"][1:])

            yield "pointwise-before-view", earlier


def dead(g, n):
    """Once for a graph: operators that nothing reads."""
    if n is not next(
        (
            m
            for m in g.nodes
            if m["op"].startswith("aten::") and g.floating(m["id"]) and len(g.shape(m["id"])) > 1
        ),
        None,
    ):
        return

    def unread(g, n):
        rows = g.new(n, "_dead", "aten::mul.Tensor", [{"ref": n["id"]}, 3.0])
        g.after(n, [rows, g.new(n, "_dead2", "aten::tanh", [{"ref": rows["id"]}])])

    unread.keeps_dead = True
    yield "dead", unread


def kinds(g, n):
    if len(n["outputs"]) != 1:
        return
    for f in (sums, products, dead):
        yield from f(g, n)
