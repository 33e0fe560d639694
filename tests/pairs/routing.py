"""Routers and experts, by one-hot sums, by gathers and by sorting."""

from dsl import *
from values import two

E, K = 4, 2  # experts, experts of a token


def routed(how, k=K, normalise=True, bias=None, order=None):
    """Scores of [6, 8] tokens over E experts, the k best of them, a weighted sum of the experts'
    outputs [6, 3]."""

    def f(g):
        x, w = g.x(6, 8), g.param("experts", E, 3, 8)
        logits = x.linear(g.param("router", E, 8))
        if how == "softmax of the chosen":
            top, chosen = logits.topk(k)
            weight = top.softmax(-1)
        else:
            scores = logits.softmax(-1)
            if bias:
                chosen = (scores + g.param("bias", E, at=0)).topk(k)[1]
                weight = (
                    scores + g.param("bias2", E, at=0) if bias == "weights too" else scores
                ).gather(1, chosen)
            else:
                weight, chosen = scores.topk(k)
            if normalise:
                weight = weight / weight.sum(-1, True)
        if order:
            weight = weight.flip(-1)
        if how == "chosen experts only":
            return (g.einsum("tkoc,tc->tko", w.index(chosen), x) * weight.unsqueeze(-1)).sum(1)
        if how == "scatter":
            dense = g.zeros(6, E).scatter(1, chosen, weight)
        elif how == "index_add":
            y = g.einsum("tkoc,tc->tko", w.index(chosen), x) * weight.unsqueeze(-1)
            return g.zeros(6, 3).index_add(
                0, g.arange(6).repeat_interleave(k, 0), y.reshape(6 * k, 3)
            )
        elif how == "index_add, one row off":
            y = g.einsum("tkoc,tc->tko", w.index(chosen), x) * weight.unsqueeze(-1)
            return g.zeros(6, 3).index_add(
                0, g.arange(6).roll(1, 0).repeat_interleave(k, 0), y.reshape(6 * k, 3)
            )
        elif how == "index_add, by choice":
            y = g.einsum("tkoc,tc->kto", w.index(chosen), x) * weight.t().unsqueeze(-1)
            return g.zeros(6, 3).index_add(0, g.arange(6).repeat(k), y.reshape(6 * k, 3))
        elif how == "next expert":
            dense = (chosen.add(1).remainder(E).one_hot(E).to(f32) * weight.unsqueeze(-1)).sum(1)
        else:
            dense = (chosen.one_hot(E).to(f32) * weight.unsqueeze(-1)).sum(1)
        return (g.einsum("tc,eoc->teo", x, w) * dense.unsqueeze(-1)).sum(1)

    return f


ROUTED = routed("one-hot")
for _h in (
    "chosen experts only",
    "scatter",
    "softmax of the chosen",
    "index_add",
    "index_add, by choice",
):
    pair("routing: " + _h, EQUIVALENT, "against one-hot weights of all experts", ROUTED, routed(_h))
pair("routing: next expert", DIFFERENT, "an index one off", ROUTED, routed("next expert"))
pair(
    "routing: index_add one row off",
    DIFFERENT,
    "",
    routed("index_add"),
    routed("index_add, one row off"),
)
pair("routing: weights not normalised", DIFFERENT, "", ROUTED, routed("one-hot", normalise=False))
pair(
    "routing: weights of all experts normalised",
    EQUIVALENT,
    "k is all of them: softmax sums to 1",
    routed("one-hot", E),
    routed("one-hot", E, False),
)
pair("routing: k of 2 and 1", DIFFERENT, "", ROUTED, routed("one-hot", 1))
pair("routing: k of 2 and 3", DIFFERENT, "", ROUTED, routed("one-hot", 3))
pair(
    "routing: weights exchanged",
    DIFFERENT,
    "the best expert gets the weight of the second",
    ROUTED,
    routed("one-hot", order=True),
)
pair(
    "routing: bias of zeros missing",
    DIFFERENT,
    "a correction that chooses",
    routed("one-hot", bias="choice"),
    routed("one-hot"),
)


def routed_flipped(g):
    x, w = g.x(6, 8), g.param("experts", E, 3, 8)
    weight, chosen = x.linear(g.param("router", E, 8)).softmax(-1).topk(K)
    dense = (chosen.one_hot(E).to(f32) * (weight / weight.sum(-1, True)).unsqueeze(-1)).sum(1)
    return (g.einsum("tc,eoc->teo", x, w.flip(0)) * dense.unsqueeze(-1)).sum(1)


pair("routing: experts exchanged", DIFFERENT, "in reverse", ROUTED, routed_flipped)
two(
    "topk and sort",
    "",
    lambda x: x.topk(3)[0],
    lambda x: x.sort(-1, True)[0].slice(-1, 0, 3),
    EQUIVALENT,
)
two("topk of the smallest", "", lambda x: x.topk(3)[0], lambda x: x.topk(3, -1, False)[0])
two(
    "topk by its indices",
    "",
    lambda x: x.topk(3)[0],
    lambda x: x.gather(1, x.topk(3)[1]),
    EQUIVALENT,
)
two(
    "topk by the indices of the rows below",
    "",
    lambda x: x.topk(3)[0],
    lambda x: x.gather(1, x.topk(3)[1].roll(1, 0)),
)
pair(
    "scatter_add and index_add",
    EQUIVALENT,
    "",
    lambda g: g.zeros(3, 8).index_add(0, g.const("at", [0, 2, 1, 0], i64), g.x(4, 8)),
    lambda g: g.zeros(3, 8).scatter_add(
        0, g.const("at", [0, 2, 1, 0], i64).unsqueeze(1).expand(4, 8), g.x(4, 8)
    ),
)
pair(
    "index_add in another order",
    EQUIVALENT,
    "a sum",
    lambda g: g.zeros(3, 8).index_add(0, g.const("at", [0, 2, 1, 0], i64), g.x(4, 8)),
    lambda g: g.zeros(3, 8).index_add(0, g.const("at", [0, 1, 2, 0], i64), g.x(4, 8).flip(0)),
)
pair(
    "index_add and assignment",
    DIFFERENT,
    "row 0 is written twice",
    lambda g: g.zeros(3, 8).index_add(0, g.const("at", [0, 2, 1, 0], i64), g.x(4, 8)),
    lambda g: g.x(4, 8).index_select(0, g.const("of", [3, 2, 1], i64)),
)
pair(
    "scatter and where",
    EQUIVALENT,
    "a row written",
    lambda g: g.zeros(4, 8).index_add(0, g.arange(4), g.x(4, 8)),
    lambda g: g.x(4, 8) + g.zeros(4, 8),
)
