"""Routing of tokens to experts: what is chosen, how it is weighted, and how the experts are run."""

from refactoring import *

T, E, K, C, M = 5, 4, 2, 6, 4


def logits(g):
    return (g.x(T, E),)


route = of(logits)


def dense(w, i):
    """[T, E]: the weights of chosen experts, 0 elsewhere."""
    return w.g.zeros(T, E).scatter(1, i, w)


def soft_then_top(x, norm=True):
    w, i = x.softmax(-1).topk(K)
    return (w / w.sum(-1, True) if norm else w), i


def top_then_soft(x):
    w, i = x.topk(K)
    return w.softmax(-1), i


route(
    "softmax of the chosen",
    "Mixtral's and the renormalised",
    lambda x: top_then_soft(x)[0],
    lambda x: soft_then_top(x)[0],
    ("not renormalised", lambda x: soft_then_top(x, False)[0]),
)
route(
    "weights in their places",
    "of the chosen, and masked",
    lambda x: dense(*top_then_soft(x)),
    lambda x: dense(*soft_then_top(x)),
    ("not renormalised", lambda x: dense(*soft_then_top(x, False))),
)
route(
    "chosen of logits and of their softmax",
    "the order is the same",
    lambda x: x.topk(K)[1],
    lambda x: x.softmax(-1).topk(K)[1],
    ("the smallest", lambda x: x.topk(K, -1, False)[1]),
)
route(
    "chosen of logits and of sigmoids",
    "the order is the same",
    lambda x: x.topk(K)[1],
    lambda x: x.sigmoid().topk(K)[1],
)
route(
    "weights of the chosen gathered",
    "values and what stands there",
    lambda x: x.softmax(-1).topk(K)[0],
    lambda x: (lambda p: p.gather(1, x.topk(K)[1]))(x.softmax(-1)),
    ("of the logits", lambda x: x.gather(1, x.topk(K)[1])),
)
route(
    "weights of the chosen by a softmax of what is left",
    "others at minus infinity",
    lambda x: dense(*top_then_soft(x)),
    lambda x: (lambda m: x.masked_fill(m.eq(0), -math.inf).softmax(-1))(
        x.zeros_like().scatter(1, x.topk(K)[1], 1.0)
    ),
    (
        "others at zero",
        lambda x: (lambda m: x.masked_fill(m.eq(0), 0.0).softmax(-1))(
            x.zeros_like().scatter(1, x.topk(K)[1], 1.0)
        ),
    ),
)
route(
    "the chosen by one-hot rows",
    "summed over the choices",
    lambda x: x.zeros_like().scatter(1, x.topk(K)[1], 1.0),
    lambda x: x.topk(K)[1].one_hot(E).sum(1).to(f32),
)
route(
    "the best by argmax and topk",
    "Switch's",
    lambda x: (lambda i: x.softmax(-1).gather(1, i))(x.argmax(1, True)),
    lambda x: x.softmax(-1).topk(1)[0],
    ("the logit", lambda x: x.topk(1)[0]),
)
route(
    "the best by amax",
    "its probability",
    lambda x: x.softmax(-1).amax(-1, True),
    lambda x: (x.amax(-1, True) - x.logsumexp(-1, True)).exp(),
)
route(
    "the chosen by sort",
    "the first of a descending order",
    lambda x: x.topk(K)[0],
    lambda x: x.sort(-1, True)[0].slice(1, 0, K),
    ("ascending", lambda x: x.sort(-1, False)[0].slice(1, 0, K)),
)
route(
    "the chosen by a sort of their negatives",
    "ascending",
    lambda x: x.topk(K)[0],
    lambda x: -((-x).sort(-1, False)[0].slice(1, 0, K)),
)
route(
    "second best by masking the best",
    "Switch's and GShard's two rounds",
    lambda x: x.topk(2)[0].slice(1, 1, 2),
    lambda x: x.masked_fill(x.argmax(1, False).one_hot(E).to(boolean), -math.inf).amax(1, True),
    ("the best again", lambda x: x.amax(1, True)),
)
route(
    "scaled weights",
    "a routing factor in or behind the norm",
    lambda x: soft_then_top(x)[0] * 2.5,
    lambda x: (lambda w: w * 2.5 / w.sum(-1, True))(x.softmax(-1).topk(K)[0]),
)
route(
    "sigmoid weights renormalised",
    "DeepSeek-V3's",
    lambda x: (lambda w: w / (w.sum(-1, True) + 1e-20))(x.sigmoid().topk(K)[0]),
    lambda x: (lambda w: w / (w.sum(-1, True) + 1e-20))(x.topk(K)[0].sigmoid()),
    ("a softmax", lambda x: x.topk(K)[0].softmax(-1)),
)


def biased(x):
    s, b = x.sigmoid(), x.g.param("correction", E)
    return s, s + b


route(
    "chosen with a bias, weighted without",
    "DeepSeek-V3's correction",
    lambda x: (lambda s, c: s.gather(1, c.topk(K)[1]))(*biased(x)),
    lambda x: (lambda s, c: c.topk(K)[0] - x.g.param("correction", E).index(c.topk(K)[1]))(
        *biased(x)
    ),
    ("weighted with it", lambda x: biased(x)[1].topk(K)[0]),
)


def by_groups(x, how):
    """Two groups of two experts; the group with the best expert alone is looked at."""
    s = x.softmax(-1)
    best = s.view(T, 2, 2).amax(-1)
    i = best.topk(1)[1]
    if how == "scatter":
        mask = best.zeros_like().scatter(1, i, 1.0).unsqueeze(-1).expand(T, 2, 2).reshape(T, E)
        return s.masked_fill(~mask.to(boolean), 0.0)
    if how == "one_hot":
        return (s.view(T, 2, 2) * i.squeeze(1).one_hot(2).to(f32).unsqueeze(-1)).view(T, E)
    if how == "repeat":
        return (
            best.zeros_like()
            .scatter(1, i, 1.0)
            .repeat_interleave(2, 1)
            .ne(0)
            .where(s, s.zeros_like())
        )
    return s * best.zeros_like().scatter(1, i, 1.0).repeat(1, 2)


route(
    "groups of experts, by one-hot rows",
    "DeepSeek-V2's",
    lambda x: by_groups(x, "scatter"),
    lambda x: by_groups(x, "one_hot"),
    ("groups interleaved", lambda x: by_groups(x, "interleaved")),
)
route(
    "groups of experts, repeated",
    "DeepSeek-V2's",
    lambda x: by_groups(x, "scatter"),
    lambda x: by_groups(x, "repeat"),
)
route(
    "the best two of each group added",
    "DeepSeek-V3's score of groups",
    lambda x: x.view(T, 2, 2).topk(2)[0].sum(-1),
    lambda x: x.view(T, 2, 2).sum(-1),
    ("the best alone", lambda x: x.view(T, 2, 2).topk(1)[0].sum(-1)),
)

# ---- running the experts ----


def experts(g):
    x, r = g.x(T, C), g.param("router", E, C)
    return x, g.param("w1", E, 2 * M, C), g.param("w2", E, C, M), *top_then_soft(x.linear(r))


def expert(x, w1, w2):
    a, b = x.linear(w1).chunk(2, -1)
    return (a.silu() * b).linear(w2)


def all_masked(x, w1, w2, w, i):
    y = None
    for e in range(E):
        one = expert(x, w1.select(0, e), w2.select(0, e)) * (w * i.eq(e).to(f32)).sum(1, True)
        y = one if y is None else y + one
    return y


def all_stacked(x, w1, w2, w, i, weight=None):
    h = x.unsqueeze(0).matmul(w1.transpose(1, 2))
    y = (h.slice(2, 0, M).silu() * h.slice(2, M)).matmul(w2.transpose(1, 2))
    return (y * (dense(w, i) if weight is None else weight).t().unsqueeze(2)).sum(0)


def gathered(x, w1, w2, w, i):
    """Each token's own weights, as for few tokens."""
    h = w1.index(i).matmul(x.unsqueeze(1).unsqueeze(-1)).squeeze(-1)
    y = w2.index(i).matmul((h.slice(2, 0, M).silu() * h.slice(2, M)).unsqueeze(-1)).squeeze(-1)
    return (y * w.unsqueeze(-1)).sum(1)


def by_einsum(x, w1, w2, w, i):
    h = x.g.einsum("tc,emc->tem", x, w1)
    y = x.g.einsum("tem,ecm->tec", h.slice(2, 0, M).silu() * h.slice(2, M), w2)
    return x.g.einsum("tec,te->tc", y, dense(w, i))


def by_choice(x, w1, w2, w, i):
    """All experts, of which the chosen are gathered."""
    h = x.unsqueeze(0).matmul(w1.transpose(1, 2))
    y = (h.slice(2, 0, M).silu() * h.slice(2, M)).matmul(w2.transpose(1, 2)).transpose(0, 1)
    return (y.gather(1, i.unsqueeze(2).expand(T, K, C)) * w.unsqueeze(2)).sum(1)


def one_hot_dispatch(x, w1, w2, w, i):
    c = i.one_hot(E).to(f32)
    xe = x.g.einsum("tke,tc->ektc", c, x).sum(1)
    h = xe.matmul(w1.transpose(1, 2))
    y = (h.slice(2, 0, M).silu() * h.slice(2, M)).matmul(w2.transpose(1, 2))
    return (y.transpose(0, 1) * (c * w.unsqueeze(2)).sum(1).unsqueeze(2)).sum(1)


def repeated(x, w1, w2, w, i):
    """K copies of each token, one expert each."""
    rows = x.repeat_interleave(K, 0)
    e = i.view(-1)
    h = w1.index(e).bmm(rows.unsqueeze(2)).squeeze(2)
    y = w2.index(e).bmm((h.slice(1, 0, M).silu() * h.slice(1, M)).unsqueeze(2)).squeeze(2)
    return (y.view(T, K, C) * w.unsqueeze(2)).sum(1)


def sorted_rows(x, w1, w2, w, i, back=True):
    """Copies sorted by their expert, and back."""
    order = argsort(i.view(-1), -1, False, True)
    inverse = argsort(order)
    e = i.view(-1).index(order)
    rows = x.index(order.div(K, "floor"))
    h = w1.index(e).bmm(rows.unsqueeze(2)).squeeze(2)
    y = w2.index(e).bmm((h.slice(1, 0, M).silu() * h.slice(1, M)).unsqueeze(2)).squeeze(2)
    return (y.index(inverse if back else order).view(T, K, C) * w.unsqueeze(2)).sum(1)


def index_added(x, w1, w2, w, i):
    rows, e = x.repeat_interleave(K, 0), i.view(-1)
    h = w1.index(e).bmm(rows.unsqueeze(2)).squeeze(2)
    y = w2.index(e).bmm((h.slice(1, 0, M).silu() * h.slice(1, M)).unsqueeze(2)).squeeze(
        2
    ) * w.reshape(-1, 1)
    return x.zeros_like().index_add(0, x.g.arange(T).repeat_interleave(K, 0), y)


def scattered(x, w1, w2, w, i):
    rows, e = x.repeat_interleave(K, 0), i.view(-1)
    h = w1.index(e).bmm(rows.unsqueeze(2)).squeeze(2)
    y = w2.index(e).bmm((h.slice(1, 0, M).silu() * h.slice(1, M)).unsqueeze(2)).squeeze(
        2
    ) * w.reshape(-1, 1)
    return x.zeros_like().scatter_add(
        0, x.g.arange(T * K).div(K, "floor").unsqueeze(1).expand(T * K, C), y
    )


moe = of(experts)
moe(
    "experts masked, and stacked",
    "a loop over experts, and one product",
    all_masked,
    all_stacked,
    (
        "all experts alike",
        lambda x, a, b, w, i: all_stacked(x, a, b, w, i, x.g.full((T, E), 1 / E)),
    ),
)
moe("experts stacked, and by einsum", "dense mixtures", all_stacked, by_einsum)
moe("experts gathered for each token", "weights looked up", all_masked, gathered)
moe("all experts, the chosen gathered", "outputs looked up", all_masked, by_choice)
moe("tokens dispatched by one-hot rows", "GShard's", all_stacked, one_hot_dispatch)
moe("tokens repeated for their experts", "copies as rows", gathered, repeated)
moe(
    "tokens sorted by their experts",
    "permuted and back",
    repeated,
    sorted_rows,
    ("not back", lambda *a: sorted_rows(*a, back=False)),
)
moe("outputs added by index_add", "rows of their tokens", repeated, index_added)
moe("outputs added by scatter_add", "rows of their tokens", repeated, scattered)
moe(
    "router weights on the output",
    "before or behind the second product",
    gathered,
    lambda x, w1, w2, w, i: (
        lambda h: (
            w2.index(i)
            .matmul((h.slice(2, 0, M).silu() * h.slice(2, M) * w.unsqueeze(-1)).unsqueeze(-1))
            .squeeze(-1)
        ).sum(1)
    )(w1.index(i).matmul(x.unsqueeze(1).unsqueeze(-1)).squeeze(-1)),
    (
        "on the input",
        lambda x, w1, w2, w, i: (
            lambda h: (
                w2.index(i)
                .matmul((h.slice(2, 0, M).silu() * h.slice(2, M)).unsqueeze(-1))
                .squeeze(-1)
            ).sum(1)
        )(w1.index(i).matmul((x.unsqueeze(1) * w.unsqueeze(2)).unsqueeze(-1)).squeeze(-1)),
    ),
)
moe(
    "a shared expert",
    "joined to the chosen with a weight of its own",
    lambda x, w1, w2, w, i: (
        all_masked(x, w1, w2, w, i)
        + expert(x, x.g.param("s1", 2 * M, C), x.g.param("s2", C, M))
        * x.linear(x.g.param("sg", 1, C)).sigmoid()
    ),
    lambda x, w1, w2, w, i: (
        x.linear(x.g.param("sg", 1, C)).sigmoid()
        * expert(x, x.g.param("s1", 2 * M, C), x.g.param("s2", C, M))
        + all_stacked(x, w1, w2, w, i)
    ),
    (
        "without its gate",
        lambda x, w1, w2, w, i: (
            expert(x, x.g.param("s1", 2 * M, C), x.g.param("s2", C, M))
            + all_stacked(x, w1, w2, w, i)
        ),
    ),
)
moe(
    "a shared expert as one of all",
    "the last is always chosen",
    lambda x, w1, w2, w, i: (
        all_masked(x, w1, w2, w, i) + expert(x, x.g.param("s1", 2 * M, C), x.g.param("s2", C, M))
    ),
    lambda x, w1, w2, w, i: (
        lambda u1, u2, d: (
            lambda h: (
                (h.slice(2, 0, M).silu() * h.slice(2, M)).matmul(u2.transpose(1, 2))
                * d.t().unsqueeze(2)
            ).sum(0)
        )(x.unsqueeze(0).matmul(u1.transpose(1, 2)))
    )(
        x.g.cat([w1, x.g.param("s1", 2 * M, C).unsqueeze(0)], 0),
        x.g.cat([w2, x.g.param("s2", C, M).unsqueeze(0)], 0),
        pad(dense(w, i), (0, 1), 1.0),
    ),
)
moe(
    "experts of two ranks",
    "expert parallelism: each rank its own, then a sum",
    all_masked,
    lambda x, w1, w2, w, i: (
        lambda d: (lambda f: f(0, 2) + f(2, 4))(
            lambda lo, hi: (
                lambda h: (
                    (h.slice(2, 0, M).silu() * h.slice(2, M)).matmul(
                        w2.slice(0, lo, hi).transpose(1, 2)
                    )
                    * d.slice(1, lo, hi).t().unsqueeze(2)
                ).sum(0)
            )(x.unsqueeze(0).matmul(w1.slice(0, lo, hi).transpose(1, 2)))
        )
    )(dense(w, i)),
    (
        "one rank's experts twice",
        lambda x, w1, w2, w, i: (
            lambda d: (lambda f: f(0, 2) * 2.0)(
                lambda lo, hi: (
                    lambda h: (
                        (h.slice(2, 0, M).silu() * h.slice(2, M)).matmul(
                            w2.slice(0, lo, hi).transpose(1, 2)
                        )
                        * d.slice(1, lo, hi).t().unsqueeze(2)
                    ).sum(0)
                )(x.unsqueeze(0).matmul(w1.slice(0, lo, hi).transpose(1, 2)))
            )
        )(dense(w, i)),
    ),
)


def capacity(n):
    """The weights of choices; those beyond the n-th of an expert are dropped."""

    def f(x):
        w, i = top_then_soft(x)
        c = i.one_hot(E).view(T * K, E)
        place = c.cumsum(0).sub(1).mul(c).sum(1).view(T, K)
        return w * (place < n).to(f32)

    return f


route(
    "a capacity that never binds",
    "each expert has room for all",
    lambda x: top_then_soft(x)[0],
    capacity(T * K),
    ("room for one less than there are tokens", capacity(T - 1)),
)


def padded_rows(x, w1, w2, w, i):
    """Each expert's tokens in rows of its own, as many as there are choices."""
    c = i.one_hot(E).view(T * K, E)
    place = c.cumsum(0).sub(1).mul(c).sum(1)
    e = i.view(-1)
    rows = index_put(x.g.zeros(E, T * K, C), [e, place], x.repeat_interleave(K, 0))
    h = rows.matmul(w1.transpose(1, 2))
    y = (h.slice(2, 0, M).silu() * h.slice(2, M)).matmul(w2.transpose(1, 2))
    return (y.index(e, place).view(T, K, C) * w.unsqueeze(2)).sum(1)


moe("tokens in padded rows of their experts", "batched experts", repeated, padded_rows)

# ---- what is measured ----

route(
    "tokens of each expert",
    "counted",
    lambda x: bincount(x.topk(K)[1].view(-1), E),
    lambda x: x.topk(K)[1].one_hot(E).sum([0, 1]),
    ("at least two", lambda x: x.topk(K)[1].one_hot(E).sum([0, 1]).clamp_min(2)),
)
route(
    "tokens of each expert by a scatter",
    "ones added",
    lambda x: x.topk(K)[1].one_hot(E).sum([0, 1]),
    lambda x: (lambda i: x.g.zeros(E, dtype=i64).scatter_add(0, i, i.ones_like()))(
        x.topk(K)[1].view(-1)
    ),
)
route(
    "tokens of each expert by comparison",
    "one row for each expert",
    lambda x: x.topk(K)[1].one_hot(E).sum([0, 1]),
    lambda x: x.topk(K)[1].view(-1, 1).eq(x.g.arange(E)).sum(0),
)
route(
    "load-balancing loss",
    "Switch's",
    lambda x: (
        total((x.topk(K)[1].one_hot(E).to(f32).mean(0) * x.softmax(-1).mean(0).unsqueeze(0))) * E
    ),
    lambda x: (
        (x.topk(K)[1].one_hot(E).to(f32).sum(1).mean(0) * x.softmax(-1).mean(0)).sum(0) * float(E)
    ),
    (
        "of the best alone",
        lambda x: (
            (x.topk(1)[1].one_hot(E).to(f32).sum(1).mean(0) * x.softmax(-1).mean(0)).sum(0)
            * float(E)
        ),
    ),
)
route(
    "z-loss",
    "the squared log of the sum",
    lambda x: mean_of_all(x.logsumexp(-1).square()),
    lambda x: x.exp().sum(-1).log().pow(2).sum(0) / T,
    ("the log of the squared sum", lambda x: x.exp().sum(-1).pow(2).log().sum(0) / T),
)
route(
    "offsets of experts",
    "cumulated counts",
    lambda x: x.topk(K)[1].one_hot(E).sum([0, 1]).cumsum(0),
    lambda x: x.topk(K)[1].view(-1, 1).le(x.g.arange(E)).sum(0),
)

# ---- vLLM's kernel, with all of its arguments ----


def fused(experts_of=E, ids=i64, **more):
    off = {
        n: False
        for n in (
            "use_fp8_w8a8",
            "use_int8_w8a8",
            "use_int8_w8a16",
            "use_int4_w4a16",
            "per_channel_quant",
        )
    }
    none = {
        n: None
        for n in (
            "expert_map",
            "w1_scale",
            "w2_scale",
            "w1_zp",
            "w2_zp",
            "a1_scale",
            "a2_scale",
            "block_shape",
        )
    }

    def f(x, w1, w2, w, i):
        return x.op(
            "vllm::outplace_fused_experts",
            [x, w1, w2, w, i.to(ids)],
            activation="silu",
            apply_router_weight_on_input=False,
            **off,
            **none,
            global_num_experts=experts_of,
            **more,
        )

    return f


moe("the kernel of experts", "each token's own weights", gathered, fused())
moe(
    "the kernel of experts, numbers in int32",
    "each token's own weights",
    gathered,
    fused(ids=i32, w1_bias=None, w2_bias=None),
)
pair(
    "the kernel of experts, in float8",
    "error",
    "a flag that is on",
    lambda g: fused(use_mxfp4_w4a4=True)(*experts(g)),
    lambda g: gathered(*experts(g)),
)

# ---- experts that each have tensors of their own, and what a loader makes of them ----


def apart(g):
    x, r = g.x(T, C), g.param("router", E, C)
    w1 = [g.param("experts.%d.w1" % e, 2 * M, C) for e in range(E)]
    w2 = [g.param("experts.%d.w2" % e, C, M) for e in range(E)]
    return x, w1, w2, *top_then_soft(x.linear(r))


def one_by_one(x, w1, w2, w, i):
    """A loop over the experts, each weighted by one-hot rows."""
    share = (i.one_hot(E).to(f32) * w.unsqueeze(2)).sum(1)
    y = x.zeros_like()
    for e in range(E):
        y = y + expert(x, w1[e], w2[e]) * share.slice(1, e, e + 1)
    return y


def joined(how, order=range(E)):
    def run(x, w1, w2, w, i):
        one = [x.g.cat([w[e] for e in order], 0).view(E, *w[0].shape) for w in (w1, w2)]
        return how(x, *one, w, i)

    return run


own = of(apart)
for name, how in (
    ("looked up", gathered),
    ("repeated for", repeated),
    ("sorted by", sorted_rows),
    ("added from", index_added),
    ("by einsum of", by_einsum),
):
    own(
        "tokens %s experts that were joined" % name,
        "a loader's one tensor of all",
        one_by_one,
        joined(how),
        ("two exchanged", joined(how, [0, 2, 1, 3])),
    )
