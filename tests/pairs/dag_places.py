"""More steps that choose or jump by operators that no other step has (dag_edges.py): casts, sets of
integers, places, ends of domains, quantisation, what is no number."""

from dag_kinds import NUMBER, TRUTH, WHOLE, edge


@edge(WHOLE, NUMBER)
def casts_to_whole(r, rows, cols, x):
    return (
        f"torch.ops.aten._to_copy({x}, dtype=torch.int64)",
        [
            f"{x}.trunc().to(torch.int64)",
            f"{x}.long()",
            f"{x}.type_as(torch.zeros(1, dtype=torch.int64))",
            f"torch.where({x} < 0, -((-{x}).long()), {x}.long())",
        ],
        [
            f"{x}.floor().long()",
            f"{x}.round().long()",
            f"({x} + 1e-3).long()",
            f"{x}.ceil().long()",
        ],
    )


@edge(TRUTH, WHOLE)
def sets_of_integers(r, rows, cols, k):
    a, b = r.sample([-2, 0, 1, 3, 5, 8, 301, 4096], 2)
    return (
        f"torch.isin({k}, torch.tensor([{a}, {b}]))",
        [
            f"({k} == {a}) | ({k} == {b})",
            f"({k}[..., None] == torch.tensor([{a}, {b}])).any(-1)",
            f"~torch.isin({k}, torch.tensor([{b}, {a}]), invert=True)",
        ],
        [
            f"({k} == {a}) | ({k} == {b + 1})",
            f"{k} == {a}",
            f"({k} == {a}) | ({k} >= {b})",
            f"({k} >= {min(a, b)}) & ({k} <= {max(a, b)})",
        ],
    )


@edge(WHOLE, WHOLE)
def shifts(r, rows, cols, k):
    n = r.choice([1, 2, 3])
    return r.choice(
        [
            (
                f"torch.bitwise_left_shift({k}, {n})",
                [f"{k} * {2**n}", f"{k} << {n}"],
                [f"{k} * {2**n + 1}", f"{k} | {2**n}"],
            ),
            (
                f"torch.bitwise_right_shift({k}, {n})",
                [
                    f"torch.div({k}, {2**n}, rounding_mode='floor')",
                    f"({k} - torch.remainder({k}, {2**n})) // {2**n}",
                ],
                [
                    f"torch.div({k}, {2**n}, rounding_mode='trunc')",
                    f"torch.div({k} + 1, {2**n}, rounding_mode='floor')",
                ],
            ),
        ]
    )


@edge(WHOLE, WHOLE)
def counts_of_each(r, rows, cols, k):
    m = f"torch.remainder({k}, 7)"
    return (
        f"torch.bincount({m}.flatten(), minlength=7)[{m}]",
        [
            f"({m}[..., None, None] == {m}).sum((-1, -2))",
            f"F.one_hot({m}, 7).sum((0, 1))[{m}]",
            f"torch.zeros(7, dtype=torch.int64).index_add(0, {m}.flatten(),"
            f" torch.ones({rows * cols}, dtype=torch.int64))[{m}]",
        ],
        [
            f"({m}[..., None, None] <= {m}).sum((-1, -2))",
            f"({m}[..., None] == {m}[:, None]).sum(-1)",
        ],
    )


@edge(NUMBER, NUMBER, WHOLE)
def places(r, rows, cols, x, k):
    m = f"torch.remainder({k}, {cols})"
    n = f"torch.remainder({k}[:, 0], {cols})"
    rows_of = f"torch.arange({rows})[:, None]"
    return r.choice(
        [
            (
                f"{x}[{rows_of}, {m}]",
                [
                    f"{x}.gather(1, {m})",
                    f"torch.ops.aten._unsafe_index({x}, [{rows_of}, {m}])",
                    f"(F.one_hot({m}, {cols}) * {x}[:, None]).sum(-1)",
                ],
                [f"{x}[{rows_of}, {m} - 1]", f"{x}.gather(1, ({m} + 1).clamp(max={cols - 1}))"],
            ),
            (
                f"{x} * F.cross_entropy({x}, {n}, reduction='none')[:, None]",
                [
                    f"{x} * -F.log_softmax({x}, -1).gather(1, {n}[:, None])",
                    f"{x} * F.nll_loss(F.log_softmax({x}, -1), {n}, reduction='none')[:, None]",
                    f"{x} * (torch.logsumexp({x}, -1, keepdim=True) - {x}.gather(1, {n}[:, None]))",
                ],
                [
                    f"{x} * F.cross_entropy({x}, {n})",
                    f"{x} * F.cross_entropy({x}, {n}, reduction='none', ignore_index=1)[:, None]",
                ],
            ),
            (
                f"{x} * F.cross_entropy({x}, {n}, ignore_index=1, reduction='sum')",
                [
                    f"{x} * (-F.log_softmax({x}, -1).gather(1, {n}[:, None])"
                    f".masked_fill({n}[:, None] == 1, 0.0)).sum()",
                    f"{x} * F.nll_loss(F.log_softmax({x}, -1), {n}, ignore_index=1,"
                    f" reduction='sum')",
                ],
                [
                    f"{x} * F.cross_entropy({x}, {n}, ignore_index=0, reduction='sum')",
                    f"{x} * F.cross_entropy({x}, {n}, reduction='sum')",
                ],
            ),
            (
                f"torch.ops.aten.embedding_dense_backward({x}, {n}, {cols}, -1, False)[{n}]",
                [
                    f"torch.zeros({cols}, {cols}).index_add(0, {n}, {x})[{n}]",
                    f"(({n}[:, None] == {n}[None]).to({x}.dtype) @ {x})",
                    f"(F.one_hot({n}, {cols}).to({x}.dtype).t() @ {x})[{n}]",
                ],
                [
                    f"torch.ops.aten.embedding_dense_backward({x}, {n}, {cols}, 1, False)[{n}]",
                    f"torch.ops.aten.embedding_dense_backward({x}, {n}, {cols}, -1, True)[{n}]",
                    f"torch.zeros({cols}, {cols}).index_copy(0, {n}, {x})[{n}]",
                ],
            ),
            (
                f"{x}.index_fill(1, {n}[:1], 2.0)",
                [
                    f"{x}.masked_fill((torch.arange({cols}) == {n}[0])[None], 2.0)",
                    f"torch.where(F.one_hot({n}[:1], {cols}) == 1, 2.0, {x})",
                ],
                [f"{x}.index_fill(1, {n}[:1], 2.01)", f"{x}.index_fill(1, {n}[:2], 2.0)"],
            ),
        ]
    )


@edge(NUMBER, NUMBER, TRUTH)
def scatters_by_truth(r, rows, cols, x, m):
    return (
        f"{x}.masked_scatter({m}, torch.arange({rows * cols}).to({x}.dtype))",
        [
            f"torch.where({m}, (torch.cumsum({m}.flatten().long(), 0) - 1)"
            f".reshape({rows}, {cols}).to({x}.dtype), {x})"
        ],
        [
            f"torch.where({m}, torch.cumsum({m}.flatten().long(), 0)"
            f".reshape({rows}, {cols}).to({x}.dtype), {x})",
            f"torch.where({m}, torch.arange({rows * cols}).reshape({rows}, {cols})"
            f".to({x}.dtype), {x})",
        ],
    )


@edge(NUMBER, NUMBER)
def ends_of_domains(r, rows, cols, x):
    c = f"torch.clamp({x}, -1, 1)"
    return r.choice(
        [
            (
                f"torch.acos({c})",
                [f"math.pi / 2 - torch.asin({c})", f"math.pi - torch.acos(-{c})"],
                [f"math.pi / 2 - torch.atan({c})", f"torch.acos(torch.clamp({x}, -1, 0.999))"],
            ),
            (
                f"torch.asin({c})",
                [f"-torch.asin(-{c})", f"torch.arcsin(torch.clamp({x}, -1, 1))"],
                [f"torch.sin({c})", f"torch.asin(torch.clamp({x}, -0.99, 1))"],
            ),
            (
                f"torch.atanh({c} / 2)",
                [
                    f"0.5 * torch.log((1 + {c} / 2) / (1 - {c} / 2))",
                    f"0.5 * (torch.log1p({c} / 2) - torch.log1p(-{c} / 2))",
                ],
                [f"torch.tanh({c} / 2)", f"0.5 * torch.log1p({c} / 2)"],
            ),
            (
                f"torch.logit({x}, eps=0.1)",
                [
                    f"torch.logit(torch.clamp({x}, 0.1, 0.9))",
                    f"torch.log(torch.clamp({x}, 0.1, 0.9) / (1 - torch.clamp({x}, 0.1, 0.9)))",
                ],
                [
                    f"torch.logit({x}, eps=0.11)",
                    f"torch.log(torch.clamp({x}, 0.1, 0.9) / (1.001 - torch.clamp({x}, 0.1, 0.9)))",
                ],
            ),
        ]
    )


@edge(NUMBER, NUMBER)
def quantised(r, rows, cols, x):
    s, z = r.choice([(0.5, 0), (0.25, 3), (1.0, -2)])
    q = f"torch.clamp(torch.round({x} / {s}) + {z}, -128, 127)"
    return (
        f"torch.fake_quantize_per_tensor_affine({x}, {s}, {z}, -128, 127)",
        [
            f"({q} - {z}) * {s}",
            f"(torch.clamp(torch.round({x} * {1 / s}) + {z}, -128, 127) - {z}) * {s}",
            f"torch.clamp(torch.round({x} / {s}), {-128 - z}, {127 - z}) * {s}",
        ],
        [
            f"({q.replace('127', '126')} - {z}) * {s}",
            f"({q.replace('round', 'floor')} - {z}) * {s}",
            f"torch.round({x} / {s}) * {s}",
        ],
    )


@edge(TRUTH, NUMBER, NUMBER)
def nearness(r, rows, cols, x, y):
    a, b = r.choice([(0.5, 0.1), (0.25, 0.0), (1.0, 0.5)])
    return (
        f"torch.isclose({x}, {y}, rtol={b}, atol={a})",
        [
            f"({x} - {y}).abs() <= {a} + {b} * {y}.abs()",
            f"~(({y} - {x}).abs() > {b} * {y}.abs() + {a})",
        ],
        [
            f"({x} - {y}).abs() < {a} + {b} * {y}.abs()",
            f"({x} - {y}).abs() <= {a} + {b + 0.1} * {x}.abs()",
            f"torch.isclose({x}, {y}, rtol={b}, atol={a + 0.25})",
        ],
    )


@edge(NUMBER, NUMBER, NUMBER)
def no_numbers(r, rows, cols, x, y):
    u = f"torch.where({x} > 0.5, float('nan'), {y})"
    return r.choice(
        [
            (
                f"torch.nan_to_num({u}, nan=2.0)",
                [
                    f"torch.where({x} > 0.5, 2.0, {y})",
                    f"torch.where(torch.isnan({u}), 2.0, {u})",
                    f"{y}.masked_fill({x} > 0.5, 2.0)",
                ],
                [f"torch.where({x} >= 0.5, 2.0, {y})", f"torch.nan_to_num({u}, nan=2.01)"],
            ),
            (
                f"{x} + torch.nansum({u}, -1, keepdim=True)",
                [
                    f"{x} + torch.where({x} > 0.5, 0.0, {y}).sum(-1, keepdim=True)",
                    f"{x} + {y}.masked_fill({x} > 0.5, 0.0).sum(-1, keepdim=True)",
                ],
                [f"{x} + torch.where({x} > 0.5, 0.01, {y}).sum(-1, keepdim=True)"],
            ),
            (
                f"torch.fmax({u}, {x})",
                [
                    f"torch.where({x} > 0.5, {x}, torch.maximum({x}, {y}))",
                    f"torch.maximum({y}.masked_fill({x} > 0.5, float('-inf')), {x})",
                ],
                [f"torch.maximum({x}, {y})", f"torch.fmin({u}, {x})"],
            ),
            (
                f"torch.isnan({u}).to({x}.dtype) * {y}",
                [f"({x} > 0.5) * {y}", f"torch.where({x} > 0.5, {y}, 0.0)"],
                [f"({x} >= 0.5) * {y}", f"torch.isinf({u}).to({x}.dtype) * {y}"],
            ),
        ]
    )
