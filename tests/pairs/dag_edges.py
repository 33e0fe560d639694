"""Steps that choose or jump by operators that no other step has (dag_kinds.py): gradients of
pieces, losses by pieces, norms, pools, orders, weights. `dags.py --edges` draws programs that have
one."""

from dag_kinds import NUMBER, edge


@edge(NUMBER, NUMBER)
def prelus(r, rows, cols, x):
    a = r.choice([0.25, 0.5, 0.1])
    return (
        f"F.prelu({x}, torch.tensor([{a}]))",
        [
            f"torch.where({x} > 0, {x}, {a} * {x})",
            f"torch.maximum({x}, {a} * {x})",
            f"F.leaky_relu({x}, {a})",
            f"torch.relu({x}) - {a} * torch.relu(-{x})",
        ],
        [
            f"F.leaky_relu({x}, {a + 0.01})",
            f"torch.where({x} > -0.5, {x}, {a} * {x})",
            f"torch.minimum({x}, {a} * {x})",
            f"F.elu({x}, {a})",
        ],
    )


@edge(NUMBER, NUMBER, NUMBER)
def gradients_of_pieces(r, rows, cols, x, g):
    t = r.choice([0.5, 1.0, 2.0])
    a = r.choice([0.1, 0.25])
    two = f"torch.where(({x} > -{t}) & ({x} < {t}), {g}, 0.0)"
    wide = f"torch.where(({x} >= -{t}) & ({x} <= {t}), {g}, 0.0)"
    slope = f"torch.where({x} > 0, {g}, {a} * {g})"
    return r.choice(
        [
            (
                f"torch.ops.aten.threshold_backward({g}, {x}, {t})",
                [
                    f"torch.where({x} <= {t}, 0.0, {g})",
                    f"{g} * ({x} > {t})",
                    f"{g}.masked_fill({x} <= {t}, 0.0)",
                ],
                [f"torch.where({x} < {t}, 0.0, {g})", f"torch.where({x} <= {t} + 0.01, 0.0, {g})"],
            ),
            (
                f"torch.ops.aten.hardtanh_backward({g}, {x}, -{t}, {t})",
                [two, f"{g}.masked_fill({x}.abs() >= {t}, 0.0)"],
                [wide, f"torch.where({x} < {t}, {g}, 0.0)"],
            ),
            (
                f"torch.ops.aten.hardsigmoid_backward({g}, {x})",
                [
                    f"torch.where(({x} > -3) & ({x} < 3), {g} / 6, 0.0)",
                    f"torch.where({x}.abs() < 3, {g} * (1 / 6), 0.0)",
                ],
                [
                    f"torch.where(({x} >= -3) & ({x} <= 3), {g} / 6, 0.0)",
                    f"torch.where({x} < 3, {g} / 6, 0.0)",
                ],
            ),
            (
                f"torch.ops.aten.leaky_relu_backward({g}, {x}, {a}, False)",
                [slope, f"{g} * torch.where({x} <= 0, {a}, 1.0)"],
                [
                    f"torch.where({x} >= 0, {g}, {a} * {g})",
                    f"torch.where({x} > 0, {g}, ({a} + 0.01) * {g})",
                ],
            ),
            (
                f"torch.ops.aten.softshrink_backward({g}, {x}, {t})",
                [
                    f"torch.where({x}.abs() > {t}, {g}, 0.0)",
                    f"torch.where(({x} >= -{t}) & ({x} <= {t}), 0.0, {g})",
                ],
                [f"torch.where({x}.abs() >= {t}, {g}, 0.0)", f"torch.where({x} > {t}, {g}, 0.0)"],
            ),
            (
                f"torch.ops.aten.hardshrink_backward({g}, {x}, {t})",
                [
                    f"torch.where({x}.abs() > {t}, {g}, 0.0)",
                    f"torch.where(({x} >= -{t}) & ({x} <= {t}), 0.0, {g})",
                ],
                [f"torch.where({x}.abs() >= {t}, {g}, 0.0)", f"torch.where({x} < -{t}, {g}, 0.0)"],
            ),
            (
                f"torch.ops.aten.elu_backward({g}, {t}, 1.0, 1.0, False, {x})",
                [
                    f"torch.where({x} > 0, {g}, {g} * {t} * torch.exp({x}))",
                    f"torch.where({x} <= 0, {t} * {g} * {x}.exp(), {g})",
                ],
                [
                    f"torch.where({x} > 0, {g}, {g} * torch.exp({x}) * ({t} + 0.02))",
                    f"torch.where({x} > 0.25, {g}, {g} * {t} * torch.exp({x}))",
                ],
            ),
        ]
    )


@edge(NUMBER, NUMBER, NUMBER)
def losses_of_pieces(r, rows, cols, x, y):
    b = r.choice([0.5, 1.0, 2.0])
    d = f"({x} - {y})"
    huber = f"torch.where({d}.abs() < {b}, 0.5 * {d} * {d}, {b} * ({d}.abs() - 0.5 * {b}))"
    smooth = f"torch.where({d}.abs() < {b}, 0.5 * {d} * {d} / {b}, {d}.abs() - 0.5 * {b})"
    back = f"torch.ones_like({x}), {x}, {y}, 0, {b}"
    return r.choice(
        [
            (
                f"F.huber_loss({x}, {y}, reduction='none', delta={b})",
                [
                    huber,
                    f"F.smooth_l1_loss({x}, {y}, reduction='none', beta={b}) * {b}",
                    huber.replace(" < ", " <= "),
                ],
                [
                    f"F.smooth_l1_loss({x}, {y}, reduction='none', beta={b}) * {b + 0.02}",
                    huber.replace(" < ", " > 0.5 + "),
                    f"0.5 * {d} * {d}",
                ],
            ),
            (
                f"F.smooth_l1_loss({x}, {y}, reduction='none', beta={b})",
                [smooth, smooth.replace(" < ", " <= "), huber.join(["(", f") / {b}"])],
                [f"{d}.abs()", f"F.smooth_l1_loss({x}, {y}, reduction='none', beta={b + 0.1})"],
            ),
            (
                f"torch.ops.aten.smooth_l1_loss_backward({back})",
                [f"torch.clamp({d} / {b}, -1, 1)", f"torch.clamp({d}, -{b}, {b}) / {b}"],
                [f"torch.clamp({d} / {b}, -1)", f"torch.sign({d})"],
            ),
            (
                f"torch.ops.aten.huber_loss_backward({back})",
                [
                    f"torch.clamp({d}, -{b}, {b})",
                    f"torch.minimum({d}.clamp(min=-{b}), {b} + 0 * {d})",
                ],
                [f"torch.clamp({d}, max={b})", f"torch.clamp({d}, -{b}, {b + 0.1})"],
            ),
        ]
    )


@edge(NUMBER, NUMBER, NUMBER)
def norms(r, rows, cols, x, y):
    d = f"({x} - {y} + 1e-6)"
    return r.choice(
        [
            (
                f"{x} * torch.linalg.matrix_norm({x} - {y}, 'fro')",
                [
                    f"{x} * torch.sqrt((({x} - {y}) ** 2).sum())",
                    f"{x} * torch.linalg.vector_norm({y} - {x})",
                ],
                [
                    f"{x} * torch.linalg.matrix_norm({x} - {y}, 1)",
                    f"{x} * torch.linalg.matrix_norm({x} - 1.01 * {y}, 'fro')",
                ],
            ),
            (
                f"{x} * torch.linalg.matrix_norm({y}, 1)",
                [
                    f"{x} * {y}.abs().sum(0).amax()",
                    f"{x} * {y}.abs().sum(0).max()",
                    f"{x} * torch.linalg.norm({y}, 1)",
                ],
                [
                    f"{x} * torch.linalg.matrix_norm({y}, float('inf'))",
                    f"{x} * {y}.sum(0).abs().amax()",
                ],
            ),
            (
                f"{x} * F.pairwise_distance({x}, {y})[:, None]",
                [
                    f"{x} * torch.sqrt(({d} ** 2).sum(-1, keepdim=True))",
                    f"{x} * torch.linalg.vector_norm({d}, dim=-1, keepdim=True)",
                ],
                [
                    f"{x} * torch.sqrt(({d} ** 2).sum(-1, keepdim=True) + 0.01)",
                    f"{x} * {d}.abs().sum(-1, keepdim=True)",
                ],
            ),
            (
                f"{x} + torch.cdist({x}, {y}, 1).amax(-1, keepdim=True)",
                [
                    f"{x} + ({x}[:, None] - {y}[None]).abs().sum(-1).amax(-1, keepdim=True)",
                    f"{x} - (-({y}[None] - {x}[:, None]).abs().sum(-1)).amin(-1, keepdim=True)",
                ],
                [
                    f"{x} + torch.cdist({x}, {y}, 2).amax(-1, keepdim=True)",
                    f"{x} + torch.cdist({x}, {y}, 1).amin(-1, keepdim=True)",
                ],
            ),
            (
                f"{x} * F.cosine_similarity({x}, {y}, dim=-1, eps=0.5)[:, None]",
                [
                    f"{x} * (({x} * {y}).sum(-1) / ({x}.norm(dim=-1).clamp(min=0.5)"
                    f" * {y}.norm(dim=-1).clamp(min=0.5)))[:, None]"
                ],
                [
                    f"{x} * F.cosine_similarity({x}, {y}, dim=-1, eps=1e-8)[:, None]",
                    f"{x} * (({x} * {y}).sum(-1) / ({x}.norm(dim=-1) * {y}.norm(dim=-1)"
                    f".clamp(min=0.5)).clamp(min=0.5))[:, None]",
                ],
            ),
        ]
    )


@edge(NUMBER, NUMBER)
def pools(r, rows, cols, x):
    n = cols - 1
    windows = ", ".join(f"{x}[:, {k}:{k} + {n}]" for k in range(2))
    return r.choice(
        [
            (
                f"{x} + F.max_pool1d({x}, {n}, stride=1).amin(-1, keepdim=True)",
                [
                    f"{x} + torch.stack([{windows}]).amax(-1).amin(0)[:, None]",
                    f"{x} + F.max_pool1d({x}, {n}, stride=1, return_indices=True)[0]"
                    f".amin(-1, keepdim=True)",
                    f"{x} + torch.minimum({x}[:, :-1].amax(-1), {x}[:, 1:].amax(-1))[:, None]",
                ],
                [
                    f"{x} + {x}.amax(-1, keepdim=True)",
                    f"{x} + F.max_pool1d({x}, {n - 1}, stride=1).amin(-1, keepdim=True)",
                    f"{x} + F.avg_pool1d({x}, {n}, stride=1).amin(-1, keepdim=True)",
                ],
            ),
            (
                f"{x} - F.adaptive_max_pool2d({x}[None], 1)[0]",
                [
                    f"{x} - {x}.amax()",
                    f"{x} - F.max_pool2d({x}[None], ({rows}, {cols}))[0]",
                    f"{x} - {x}.max()",
                ],
                [f"{x} - {x}.abs().amax()", f"{x} - {x}.amax(0)", f"{x} - {x}[1:].amax()"],
            ),
            (
                f"F.max_pool2d({x}[None], 3, stride=1, padding=1)[0]",
                [
                    f"F.max_pool1d(F.max_pool1d({x}, 3, stride=1, padding=1).t(), 3, stride=1,"
                    f" padding=1).t()",
                    f"-(F.max_pool2d({x}[None] * 1.0, 3, stride=1, padding=1)[0] * -1.0)",
                ],
                [
                    f"F.max_pool2d(F.pad({x}, (1, 1, 1, 1))[None], 3, stride=1)[0]",
                    f"F.avg_pool2d({x}[None], 3, stride=1, padding=1)[0]",
                ],
            ),
            (
                f"{x} * torch.aminmax({x}, dim=-1, keepdim=True).max",
                [
                    f"{x} * {x}.amax(-1, keepdim=True)",
                    f"{x} * {x}.max(-1, keepdim=True).values",
                    f"{x} * -((-{x}).amin(-1, keepdim=True))",
                ],
                [
                    f"{x} * torch.aminmax({x}, dim=-1, keepdim=True).min",
                    f"{x} * torch.logsumexp({x}, -1, keepdim=True)",
                ],
            ),
        ]
    )


@edge(NUMBER, NUMBER)
def orders(r, rows, cols, x):
    return r.choice(
        [
            (
                f"torch.msort({x})",
                [f"{x}.sort(0).values", f"-((-{x}).sort(0, descending=True).values)"],
                [f"{x}.sort(1).values", f"{x}.sort(0, descending=True).values"],
            ),
            (
                f"{x} + torch.nanmedian({x}, -1, keepdim=True).values",
                [
                    f"{x} + torch.median({x}, -1, keepdim=True).values",
                    f"{x} + {x}.sort(-1).values[:, {(cols - 1) // 2}][:, None]",
                    f"{x} + torch.kthvalue({x}, {(cols - 1) // 2 + 1}, -1, keepdim=True).values",
                ],
                [
                    f"{x} + {x}.mean(-1, keepdim=True)",
                    f"{x} + {x}.sort(-1).values[:, {(cols - 1) // 2 + 1}][:, None]",
                ],
            ),
            (
                f"{x}.argsort(-1).argsort(-1).to({x}.dtype)",
                [
                    f"torch.argsort({x}, stable=True, dim=-1).argsort(-1).to({x}.dtype)",
                    f"torch.argsort({x}.argsort(-1), stable=True, dim=-1) * torch.ones_like({x})",
                ],
                [
                    f"{x}.argsort(-1).to({x}.dtype)",
                    f"{x}.argsort(-1, descending=True).argsort(-1).to({x}.dtype)",
                ],
            ),
        ]
    )


@edge(NUMBER, NUMBER, NUMBER)
def weighs(r, rows, cols, x, y):
    two = "math.log(2)"
    return r.choice(
        [
            (
                f"torch.logaddexp2({x}, {y})",
                [
                    f"torch.logaddexp({x} * {two}, {y} * {two}) / {two}",
                    f"torch.logsumexp(torch.stack([{x}, {y}]) * {two}, 0) / {two}",
                ],
                [f"torch.logaddexp({x}, {y})", f"torch.logaddexp2({x}, {y} + 0.01)"],
            ),
            (
                f"F.log_softmax({x}, -1) * {y}",
                [
                    f"({x} - torch.logsumexp({x}, -1, keepdim=True)) * {y}",
                    f"torch.log(torch.softmax({x}, -1)) * {y}",
                ],
                [f"F.log_softmax({x}, 0) * {y}", f"torch.softmax({x}, -1) * {y}"],
            ),
            (
                f"F.scaled_dot_product_attention({x}[None], {y}[None], {y}[None])[0]",
                [
                    f"torch.softmax({x} @ {y}.t() / {cols} ** 0.5, -1) @ {y}",
                    f"F.scaled_dot_product_attention({x}[None, None], {y}[None, None],"
                    f" {y}[None, None], scale={cols} ** -0.5)[0, 0]",
                ],
                [
                    f"torch.softmax({x} @ {y}.t(), -1) @ {y}",
                    f"torch.softmax({x} @ {y}.t() / {cols} ** 0.5, 0) @ {y}",
                ],
            ),
        ]
    )
