"""Steps of drawn programs (dag_kinds.py): functions of numbers, norms, statistics, attention."""

import math

from dag_kinds import NUMBER, term


@term(NUMBER, NUMBER, NUMBER)
def add_scaled(r, rows, cols, x, y):
    s = r.choice([0.5, 2.0, -1.5, 3.0])
    return (
        f"torch.add({x}, {y}, alpha={s})",
        [
            f"{x} + {y} * {s}",
            f"{y}*{s} + {x}",
            f"torch.addcmul({x}, {y}, torch.full_like({y}, {s}))",
            f"{x} - {y} * {-s}",
        ],
        [f"{y} + {x} * {s}", f"{x} - {y} * {s}"],
    )


@term(NUMBER, NUMBER)
def softmax_any(r, rows, cols, x):
    d = r.choice([0, 1])
    return (
        f"torch.softmax({x}, {d})",
        [
            (
                f"({x} - {x}.amax({d}, keepdim=True)).exp() / ({x} - {x}.amax({d}, "
                f"keepdim=True)).exp().sum({d}, keepdim=True)"
            ),
            f"torch.log_softmax({x}, {d}).exp()",
            f"({x} - torch.logsumexp({x}, {d}, keepdim=True)).exp()",
            f"torch.softmax({x}.t(), {1 - d}).t()",
            f"torch.softmax({x} - {x}.narrow({d},0,1), {d})",
        ],
        [
            f"torch.softmax({x}, {1 - d})",
            (
                f"({x} - {x}.amax({d}, keepdim=True)).exp() / (({x} - {x}.amax({d}, "
                f"keepdim=True)).exp().sum({d}, keepdim=True) + 1e-6)"
            ),
            (
                f"({x} - {x}.amax({1 - d}, keepdim=True)).exp() / (({x} - {x}.amax({d}, "
                f"keepdim=True)).exp().sum({d}, keepdim=True))"
            ),
            f"torch.softmax({x} * 1.001, {d})",
        ],
    )


@term(NUMBER, NUMBER)
def layer_norms(r, rows, cols, x):
    e = r.choice([1e-5, 1e-6, 1e-3])
    return (
        (
            f"({x} - {x}.mean(1, keepdim=True)) / torch.sqrt({x}.var(1, keepdim=True, "
            f"unbiased=False) + {e})"
        ),
        [
            f"F.layer_norm({x}, ({cols},), eps={e})",
            (
                f"({x} - {x}.mean(1, keepdim=True)) * torch.rsqrt(({x}*{x}).mean(1, "
                f"keepdim=True) - {x}.mean(1, keepdim=True)**2 + {e})"
            ),
            (
                f"({x} - {x}.sum(1, keepdim=True)/{cols}) * ({x}.var(1, keepdim=True, "
                f"correction=0) + {e}).pow(-0.5)"
            ),
            f"F.group_norm({x}.reshape({rows}, {cols}, 1), 1, eps={e}).reshape({rows},{cols})",
        ],
        [
            (f"({x} - {x}.mean(1, keepdim=True)) / torch.sqrt({x}.var(1, keepdim=True) + {e})"),
            (
                f"({x} - {x}.mean(1, keepdim=True)) / (torch.sqrt({x}.var(1, "
                f"keepdim=True, unbiased=False)) + {e})"
            ),
            f"F.layer_norm({x}, ({cols},), eps={e * 2})",
            (
                f"({x} - {x}.mean(0, keepdim=True)) / torch.sqrt({x}.var(1, keepdim=True, "
                f"unbiased=False) + {e})"
            ),
        ],
    )


@term(NUMBER, NUMBER)
def rms_norms(r, rows, cols, x):
    e = r.choice([1e-5, 1e-6])
    return (
        f"{x} * torch.rsqrt({x}.pow(2).mean(-1, keepdim=True) + {e})",
        [
            f"F.rms_norm({x}, ({cols},), eps={e})",
            f"{x} / torch.sqrt({x}.square().sum(1, keepdim=True) / {cols} + {e})",
            (
                f"{x} * {math.sqrt(cols)!r} / torch.sqrt(({x}*{x}).sum(1, keepdim=True) + "
                f"{e * cols!r})"
            )
            if cols == 4
            else f"{x} / ({x}.square().mean(1, keepdim=True) + {e}) ** 0.5",
        ],
        [
            f"{x} / (torch.sqrt({x}.square().sum(1, keepdim=True) / {cols}) + {e})",
            f"{x} / torch.sqrt(({x}*{x}).sum(1, keepdim=True) + {e})",
            f"{x} * torch.rsqrt({x}.pow(2).mean(0, keepdim=True) + {e})",
            f"{x} / torch.sqrt(({x}*{x}).mean(1, keepdim=True).clamp(min={e}))",
        ],
    )


@term(NUMBER, NUMBER)
def quantised(r, rows, cols, x):
    s = f"({x}.abs().amax(1, keepdim=True) / 127 + 1e-3)"
    return (
        f"torch.round({x} / {s}).clamp(-128, 127) * {s}",
        [
            f"torch.clamp(torch.round({x} / {s}), -127, 127) * {s}",
            f"torch.round({x} / {s}).to(torch.int8) * {s}",
            f"torch.round({x} * (1 / {s})) * {s}",
        ],
        [
            f"torch.floor({x} / {s} + 0.5) * {s}",
            f"torch.round({x} / {s}).clamp(-128, 126) * {s}",
            f"torch.trunc({x} / {s}).clamp(-128, 127) * {s}",
        ],
    )


@term(NUMBER, NUMBER, NUMBER)
def attention(r, rows, cols, x, y):
    return (
        f"({x} @ {y}.t()).softmax(-1) @ {y}",
        [
            f"torch.matmul(torch.softmax(torch.einsum('ik,jk->ij', {x}, {y}), 1), {y})",
            (f"F.scaled_dot_product_attention({x}[None], {y}[None], {y}[None], scale=1.0)[0]"),
            f"({y}.t() @ ({y} @ {x}.t()).softmax(0)).t()",
            (
                f"[e := ({x} @ {y}.t() - ({x} @ {y}.t()).amax(1, keepdim=True)).exp(), (e "
                f"@ {y}) / e.sum(1, keepdim=True)][-1]"
            ),
        ],
        [
            f"({x} @ {y}.t()).softmax(0) @ {y}",
            f"({y} @ {x}.t()).softmax(-1) @ {y}",
            f"F.scaled_dot_product_attention({x}[None], {y}[None], {y}[None])[0]",
            f"({x} @ {y}.t()).softmax(-1) @ {x}",
            (
                f"F.scaled_dot_product_attention({x}[None], {y}[None], {y}[None], "
                "scale=1.0, is_causal=True)[0]"
            ),
        ],
    )


@term(NUMBER, NUMBER)
def logarithms_of_sums(r, rows, cols, x):
    d = r.choice([0, 1])
    return (
        f"torch.logsumexp({x}, {d}, keepdim=True) - {x}",
        [
            f"-torch.log_softmax({x}, {d})",
            f"torch.log(torch.exp({x}).sum({d}, keepdim=True)) - {x}",
            (
                f"torch.log(torch.exp({x} - {x}.amax({d}, keepdim=True)).sum({d}, "
                f"keepdim=True)) + {x}.amax({d}, keepdim=True) - {x}"
            ),
            (
                f"torch.log(torch.exp({x}.narrow({d},0,1)) + "
                f"torch.exp({x}.narrow({d},1,{(rows, cols)[d] - 1})).sum({d}, keepdim=True)) - {x}"
            ),
        ],
        [
            f"torch.logsumexp({x}, {1 - d}, keepdim=True) - {x}",
            f"torch.log(torch.exp({x}).sum({d}, keepdim=True) + 1e-4) - {x}",
            f"torch.log(torch.exp({x}).mean({d}, keepdim=True)) - {x}",
            f"torch.log_softmax({x}, {d})",
        ],
    )


@term(NUMBER, NUMBER)
def statistics(r, rows, cols, x):
    k = r.choice(["var", "std", "prod", "norm", "median", "any", "minmax", "mean"])
    return {
        "var": (
            f"{x}.var(1, keepdim=True) + {x}",
            [
                f"(({x} - {x}.mean(1, keepdim=True))**2).sum(1, keepdim=True) / {cols - 1} + {x}",
                f"torch.var_mean({x}, 1, keepdim=True)[0] + {x}",
                f"{x}.t().var(0).unsqueeze(1) + {x}",
                f"{x}.var(1, correction=0, keepdim=True) * {cols} / {cols - 1} + {x}",
            ],
            [
                f"{x}.var(1, correction=0, keepdim=True) + {x}",
                f"{x}.var(0, keepdim=True) + {x}",
                f"{x}.std(1, keepdim=True) + {x}",
                f"{x}.var(1, correction=2, keepdim=True) + {x}",
            ],
        ),
        "std": (
            f"{x}.std(0, keepdim=True, correction=0) * {x}",
            [
                f"{x}.var(0, keepdim=True, correction=0).sqrt() * {x}",
                f"({x} - {x}.mean(0)).square().mean(0).sqrt() * {x}",
                f"torch.linalg.vector_norm({x} - {x}.mean(0), dim=0) * {rows**-0.5!r} * {x}",
            ],
            [
                f"{x}.std(0, keepdim=True, correction=1) * {x}",
                f"({x}.var(0, keepdim=True, correction=0) + 1e-5).sqrt() * {x}",
                f"{x}.square().mean(0).sqrt() * {x}",
            ],
        ),
        "prod": (
            f"torch.tanh({x}).prod(1, keepdim=True) + {x}",
            [
                f"torch.cumprod(torch.tanh({x}), 1)[:, -1:] + {x}",
                f"torch.tanh({x}.flip(1)).prod(1, keepdim=True) + {x}",
                (f"torch.tanh({x}[:, :1]) * torch.tanh({x}[:, 1:]).prod(1, keepdim=True) + {x}"),
            ],
            [
                f"torch.tanh({x}).prod(0, keepdim=True) + {x}",
                f"torch.tanh({x}[:, 1:]).prod(1, keepdim=True) + {x}",
                f"torch.tanh({x}).prod(1, keepdim=True).abs() + {x}",
                f"torch.cumprod(torch.tanh({x}), 1)[:, -2:-1] + {x}",
            ],
        ),
        "norm": (
            f"F.normalize({x}, dim=1, eps=1e-3)",
            [
                f"{x} / {x}.norm(dim=1, keepdim=True).clamp(min=1e-3)",
                f"{x} / torch.sqrt(({x}*{x}).sum(1, keepdim=True)).clamp_min(1e-3)",
                (
                    f"{x} / torch.maximum({x}.square().sum(1, keepdim=True).sqrt(), "
                    f"torch.tensor(1e-3, dtype={x}.dtype))"
                ),
                f"{x} * torch.rsqrt({x}.square().sum(1, keepdim=True).clamp(min=1e-6))",
            ],
            [
                f"{x} / ({x}.norm(dim=1, keepdim=True) + 1e-3)",
                f"F.normalize({x}, dim=0, eps=1e-3)",
                f"F.normalize({x}, p=1, dim=1, eps=1e-3)",
                f"{x} * torch.rsqrt({x}.square().sum(1, keepdim=True).clamp(min=1e-3))",
                f"F.normalize({x}, dim=1, eps=2e-3)",
            ],
        ),
        "median": (
            f"torch.median({x}, 1, keepdim=True).values - {x}",
            [
                f"torch.sort({x}, 1).values[:, {(cols - 1) // 2}:{(cols - 1) // 2 + 1}] - {x}",
                f"torch.kthvalue({x}, {(cols - 1) // 2 + 1}, 1, keepdim=True).values - {x}",
            ],
            [
                (
                    f"torch.kthvalue({x}, {cols // 2 + 1 if cols % 2 == 0 else cols // 2 + 2}, 1, "
                    f"keepdim=True).values - {x}"
                ),
                f"{x}.mean(1, keepdim=True) - {x}",
                f"torch.quantile({x}, 0.5, dim=1, keepdim=True) - {x}"
                if cols % 2 == 0
                else f"torch.median({x}, 0, keepdim=True).values - {x}",
            ],
        ),
        "any": (
            f"({x} > 1).any(1, keepdim=True) * {x}",
            [
                f"({x}.amax(1, keepdim=True) > 1) * {x}",
                f"~(({x} <= 1).all(1, keepdim=True)) * {x}",
                f"(({x} > 1).sum(1, keepdim=True) > 0) * {x}",
                (f"torch.where(torch.count_nonzero({x} > 1, dim=1).unsqueeze(1) >= 1, {x}, 0.0)"),
            ],
            [
                f"({x} > 1).all(1, keepdim=True) * {x}",
                f"({x} >= 1).any(1, keepdim=True) * {x}",
                f"({x} > 1).any(0, keepdim=True) * {x}",
                f"({x} > 1).any() * {x}",
                f"(({x} > 1).sum(1, keepdim=True) > 1) * {x}",
                f"({x}.abs().amax(1, keepdim=True) > 1) * {x}",
            ],
        ),
        "minmax": (
            (
                f"({x} - {x}.amin(0, keepdim=True)) / ({x}.amax(0, keepdim=True) - "
                f"{x}.amin(0, keepdim=True) + 0.1)"
            ),
            [
                (
                    f"({x} - torch.aminmax({x}, dim=0, keepdim=True)[0]) / "
                    f"(torch.aminmax({x}, dim=0, keepdim=True)[1] - torch.aminmax({x}, dim=0, "
                    "keepdim=True)[0] + 0.1)"
                ),
                f"1 - ({x}.amax(0) - {x} + 0.1) / ({x}.amax(0) + (-{x}).amax(0) + 0.1)",
            ],
            [
                (
                    f"({x} - {x}.amin(1, keepdim=True)) / ({x}.amax(0, keepdim=True) - "
                    f"{x}.amin(0, keepdim=True) + 0.1)"
                ),
                (
                    f"({x} - {x}.amin(0, keepdim=True) + 0.1) / ({x}.amax(0, keepdim=True) - "
                    f"{x}.amin(0, keepdim=True) + 0.1)"
                ),
                (
                    f"({x} - {x}.amin(0, keepdim=True)) / ({x}.amax(0, keepdim=True) - "
                    f"{x}.amin(0, keepdim=True)).clamp(min=0.1)"
                ),
            ],
        ),
        "mean": (
            f"{x}.mean() + {x}",
            [
                f"{x}.sum() / {rows * cols} + {x}",
                f"{x}.mean(0).mean() + {x}",
                f"{x}.mean(1).sum(0) / {rows} + {x}",
                f"F.adaptive_avg_pool2d({x}[None], 1)[0] + {x}",
            ],
            [
                f"{x}.sum(0) / {rows * cols} + {x}",
                f"{x}.mean(0) + {x}",
                f"{x}.mean(1, keepdim=True) + {x}",
                f"{x}.sum() / {rows * cols - 1} + {x}",
            ],
        ),
    }[k]


@term(NUMBER, NUMBER)
def activations(r, rows, cols, x):
    k = r.choice(
        [
            "silu",
            "gelu",
            "geluT",
            "softplus",
            "elu",
            "hs",
            "logsig",
            "mish",
            "tanh",
            "selu",
            "celu",
            "softsign",
            "hsig",
            "shrink",
            "sshrink",
        ]
    )
    return {
        "silu": (
            f"F.silu({x})",
            [
                f"{x} * torch.sigmoid({x})",
                f"{x} / (1 + torch.exp(-{x}))",
                f"{x} * 0.5 * (1 + torch.tanh({x} / 2))",
                f"{x} - {x} * torch.sigmoid(-{x})",
            ],
            [
                f"{x} * torch.sigmoid(1.702 * {x})",
                f"{x} * torch.sigmoid(-{x})",
                f"F.gelu({x})",
                f"F.hardswish({x})",
            ],
        ),
        "gelu": (
            f"F.gelu({x})",
            [
                f"{x} * 0.5 * (1 + torch.erf({x} / {math.sqrt(2)!r}))",
                f"{x} * 0.5 * torch.erfc(-{x} * {2**-0.5!r})",
                f"{x} * torch.special.ndtr({x})",
            ],
            [
                f"F.gelu({x}, approximate='tanh')",
                f"{x} * 0.5 * (1 + torch.erf({x}))",
                f"{x} * torch.sigmoid(1.702 * {x})",
            ],
        ),
        "geluT": (
            f"F.gelu({x}, approximate='tanh')",
            [
                (
                    f"0.5 * {x} * (1 + torch.tanh({math.sqrt(2 / math.pi)!r} * ({x} + 0.044715 "
                    f"* {x}**3)))"
                ),
                (
                    f"{x} * torch.sigmoid({2 * math.sqrt(2 / math.pi)!r} * ({x} + 0.044715 * {x} "
                    f"* {x} * {x}))"
                ),
            ],
            [
                f"F.gelu({x})",
                (
                    f"0.5 * {x} * (1 + torch.tanh({math.sqrt(2 / math.pi)!r} * ({x} + 0.04715 * "
                    f"{x}**3)))"
                ),
                (
                    f"0.5 * {x} * (1 + torch.tanh({math.sqrt(2 / math.pi)!r} * ({x} + 0.044715 "
                    f"* {x}**2)))"
                ),
            ],
        ),
        "softplus": (
            f"F.softplus({x})",
            [
                f"torch.where({x} > 20, {x}, torch.log1p(torch.exp({x})))",
                f"F.softplus({x}, 1.0, 20.0)",
            ],
            [
                f"torch.logaddexp({x}, torch.full_like({x}, 0.1))",
                f"F.softplus({x}, 1.1)",
                f"F.softplus({x}, threshold=1.0)",
                f"torch.relu({x})",
            ],
        ),
        "elu": (
            f"F.elu({x})",
            [
                f"torch.where({x} > 0, {x}, torch.expm1({x}))",
                f"torch.relu({x}) + torch.expm1(-torch.relu(-{x}))",
                f"torch.where({x} > 0, {x}, torch.exp({x}) - 1)",
                f"F.celu({x})",
            ],
            [
                f"F.elu({x}, 1.1)",
                f"torch.where({x} > 0, {x}, torch.exp({x}))",
                f"F.selu({x})",
                f"torch.where({x} > 0.1, {x}, torch.expm1({x}))",
            ],
        ),
        "hs": (
            f"F.hardswish({x})",
            [
                f"{x} * F.relu6({x} + 3) / 6",
                f"{x} * F.hardsigmoid({x})",
                f"{x} * torch.clamp({x} / 6 + 0.5, 0, 1)",
                (f"torch.where({x} >= 3, {x}, torch.where({x} <= -3, 0.0, {x} * ({x} + 3) / 6))"),
            ],
            [
                f"{x} * F.relu6({x} + 3) / 6.01",
                f"{x} * F.hardtanh({x} / 6 + 0.5, -1, 1)",
                (f"torch.where({x} >= 3, 3.0, torch.where({x} <= -3, 0.0, {x} * ({x} + 3) / 6))"),
            ],
        ),
        "logsig": (
            f"F.logsigmoid({x})",
            [
                f"-torch.log1p(torch.exp(-{x}))",
                f"torch.log(torch.sigmoid({x}))",
                (f"torch.minimum({x}, torch.zeros_like({x})) - torch.log1p(torch.exp(-{x}.abs()))"),
                f"{x} - torch.logaddexp({x}, torch.zeros_like({x}))",
            ],
            [
                f"-torch.log1p(torch.exp({x}))",
                f"torch.log(torch.sigmoid({x}) + 1e-4)",
                (f"torch.minimum({x}, torch.zeros_like({x})) - torch.log1p(torch.exp({x}.abs()))"),
            ],
        ),
        "mish": (
            f"F.mish({x})",
            [
                f"{x} * torch.tanh(torch.log1p(torch.exp({x})))",
                f"{x} * torch.tanh(-F.logsigmoid(-{x}))",
            ],
            [f"{x} * torch.sigmoid(F.softplus({x}))", f"{x} * torch.tanh(F.softplus({x}, 1.01))"],
        ),
        "tanh": (
            f"torch.tanh({x})",
            [
                f"2 * torch.sigmoid(2 * {x}) - 1",
                f"1 - 2 / (torch.exp(2 * {x}) + 1)",
                f"torch.sinh({x}) / torch.cosh({x})",
                f"-torch.tanh(-{x})",
            ],
            [
                f"2 * torch.sigmoid({x}) - 1",
                f"F.hardtanh({x})",
                f"torch.atan({x})",
                f"torch.erf({x})",
                f"1 - 2 / (torch.exp({x}) + 1)",
            ],
        ),
        "selu": (
            f"F.selu({x})",
            [
                (
                    f"1.0507009873554804934193349852946 * torch.where({x} > 0, {x}, "
                    f"1.6732632423543772848170429916717 * torch.expm1({x}))"
                ),
                (
                    f"1.0507009873554804934193349852946 * F.elu({x}, "
                    "1.6732632423543772848170429916717)"
                ),
            ],
            [f"1.0507 * F.elu({x}, 1.67326)", f"F.elu({x})"],
        ),
        "celu": (
            f"F.celu({x}, 2.0)",
            [
                f"torch.relu({x}) + torch.clamp(2 * torch.expm1({x} / 2), max=0)",
                f"torch.where({x} > 0, {x}, 2 * (torch.exp({x} * 0.5) - 1))",
            ],
            [f"F.elu({x}, 2.0)", f"torch.where({x} > 0, {x}, 2 * (torch.exp({x}) - 1))"],
        ),
        "softsign": (
            f"F.softsign({x})",
            [f"{x} / (1 + {x}.abs())", f"torch.sign({x}) * (1 - 1 / (1 + {x}.abs()))"],
            [f"{x} / (1 + {x}*{x})", f"{x} / (1 + {x}.relu())"],
        ),
        "hsig": (
            f"F.hardsigmoid({x})",
            [f"torch.clamp(({x} + 3) / 6, 0, 1)", f"F.relu6({x} + 3) / 6"],
            [f"torch.clamp(0.2 * {x} + 0.5, 0, 1)", f"torch.clamp(({x} + 3) / 6, min=0)"],
        ),
        "shrink": (
            f"F.hardshrink({x}, 0.5)",
            [
                f"torch.where({x}.abs() > 0.5, {x}, 0.0)",
                f"{x}.masked_fill(({x} >= -0.5) & ({x} <= 0.5), 0.0)",
            ],
            [
                f"torch.where({x}.abs() >= 0.5, {x}, 0.0)",
                f"F.softshrink({x}, 0.5)",
                f"torch.where({x} > 0.5, {x}, 0.0)",
            ],
        ),
        "sshrink": (
            f"F.softshrink({x}, 0.5)",
            [
                f"torch.sign({x}) * torch.relu({x}.abs() - 0.5)",
                f"torch.relu({x} - 0.5) - torch.relu(-{x} - 0.5)",
                f"{x} - {x}.clamp(-0.5, 0.5)",
            ],
            [
                f"F.hardshrink({x}, 0.5)",
                f"torch.sign({x}) * ({x}.abs() - 0.5)",
                f"{x} - {x}.clamp(-0.5, 0.51)",
            ],
        ),
    }[k]


@term(NUMBER, NUMBER, NUMBER)
def algebra(r, rows, cols, x, y):
    q = r.choice(["sq", "lerp", "div", "hyp", "norm2", "expo", "pow", "cross", "dist", "atan"])
    return {
        "sq": (
            f"({x} + {y}) * ({x} - {y})",
            [
                f"{x}*{x} - {y}*{y}",
                f"{x}.square() - {y}.pow(2)",
                f"({x}-{y}) * {x} + ({x}-{y}) * {y}",
            ],
            [f"{x}*{x} + {y}*{y}", f"({x} - {y}).square()", f"{y}*{y} - {x}*{x}"],
        ),
        "lerp": (
            f"torch.lerp({x}, {y}, 0.25)",
            [
                f"0.75 * {x} + 0.25 * {y}",
                f"{x} + 0.25 * ({y} - {x})",
                f"torch.lerp({y}, {x}, 0.75)",
            ],
            [f"torch.lerp({y}, {x}, 0.25)", f"0.75 * {x} + 0.26 * {y}", f"{x} + 0.25 * {y}"],
        ),
        "div": (
            f"{x} / (1 + {y}*{y})",
            [
                f"{x} * (1 + {y}*{y}).reciprocal()",
                f"torch.addcdiv(torch.zeros_like({x}), {x}, {y}.square() + 1)",
                f"{x} / ({y}*{y} - (-1))",
                f"{x} - {x} * {y}*{y} / (1 + {y}*{y})",
            ],
            [
                f"{x} / (1 + {y}.abs())",
                f"{x} / (1.001 + {y}*{y})",
                f"{y} / (1 + {x}*{x})",
                f"{x} / (1 - {y}*{y}).abs().clamp(min=0.1)",
            ],
        ),
        "hyp": (
            f"torch.sqrt({x}*{x} + {y}*{y})",
            [
                f"torch.hypot({x}, {y})",
                f"torch.stack([{x}, {y}]).norm(dim=0)",
                f"torch.linalg.vector_norm(torch.stack([{x}, {y}], -1), dim=-1)",
                f"torch.hypot({y}, -{x})",
            ],
            [
                f"torch.sqrt({x}*{x} + {y}*{y} + 1e-6)",
                f"{x}.abs() + {y}.abs()",
                f"torch.sqrt(({x} + {y})**2)",
                f"torch.maximum({x}.abs(), {y}.abs())",
            ],
        ),
        "norm2": (
            f"(({x} - {y})**2).sum(1, keepdim=True) + {x}",
            [
                (
                    f"({x}*{x}).sum(1, keepdim=True) - 2 * ({x}*{y}).sum(1, keepdim=True) + "
                    f"({y}*{y}).sum(1, keepdim=True) + {x}"
                ),
                f"torch.cdist({x}[:, None], {y}[:, None])[:, 0].square() + {x}",
                f"F.mse_loss({x}, {y}, reduction='none').sum(1, keepdim=True) + {x}",
            ],
            [
                (
                    f"({x}*{x}).sum(1, keepdim=True) - ({x}*{y}).sum(1, keepdim=True) + "
                    f"({y}*{y}).sum(1, keepdim=True) + {x}"
                ),
                f"(({x} - {y})**2).sum(0, keepdim=True) + {x}",
                f"(({x} - {y})**2).mean(1, keepdim=True) + {x}",
                f"({x} - {y}).sum(1, keepdim=True)**2 + {x}",
            ],
        ),
        "expo": (
            f"torch.exp(-({x} - {y})**2)",
            [
                f"torch.exp(-{x}*{x}) * torch.exp(2*{x}*{y}) * torch.exp(-{y}*{y})",
                f"1 / torch.exp(({y} - {x}).square())",
                f"torch.exp((({x}-{y})*({y}-{x})))",
            ],
            [
                f"torch.exp(-({x} + {y})**2)",
                f"torch.exp(-({x} - {y}).abs())",
                f"torch.exp(-0.999*({x} - {y})**2)",
            ],
        ),
        "pow": (
            f"(1 + {x}*{x}) ** 1.5",
            [
                f"(1 + {x}*{x}) * torch.sqrt(1 + {x}*{x})",
                f"torch.exp(1.5 * torch.log1p({x}*{x}))",
                f"torch.sqrt((1 + {x}*{x}) ** 3)",
            ],
            [
                f"(1 + {x}*{x}) ** 1.25",
                f"torch.exp(1.5 * torch.log({x}*{x} + 1.001))",
                f"(1 + {x}*{x}).sqrt() ** 2",
            ],
        ),
        "cross": (
            f"{x}.sum(1, keepdim=True) * {y}.sum(1, keepdim=True) + {x}",
            [
                f"({x}.unsqueeze(2) * {y}.unsqueeze(1)).sum((1, 2)).unsqueeze(1) + {x}",
                f"torch.einsum('ij,ik->i', {x}, {y}).unsqueeze(1) + {x}",
            ],
            [
                f"({x} * {y}).sum(1, keepdim=True) + {x}",
                f"{x}.sum(1, keepdim=True) * {y}.sum(0, keepdim=True) + {x}",
            ],
        ),
        "dist": (
            (f"torch.where(({x} - {y}).abs() < 1, 0.5 * ({x} - {y})**2, ({x} - {y}).abs() - 0.5)"),
            [
                f"F.smooth_l1_loss({x}, {y}, reduction='none')",
                f"F.huber_loss({x}, {y}, reduction='none')",
                (
                    f"torch.where(({x} - {y}).abs() <= 1, 0.5 * ({y} - {x})**2, ({x} - "
                    f"{y}).abs() - 0.5)"
                ),
            ],
            [
                f"F.smooth_l1_loss({x}, {y}, reduction='none', beta=0.5)",
                f"F.huber_loss({x}, {y}, reduction='none', delta=1.1)",
                f"F.l1_loss({x}, {y}, reduction='none')",
                (f"torch.where(({x} - {y}).abs() < 1, ({x} - {y})**2, ({x} - {y}).abs() - 0.5)"),
            ],
        ),
        "atan": (
            f"torch.atan2({x}, 1 + {y}*{y})",
            [f"torch.atan({x} / (1 + {y}*{y}))", f"-torch.atan2(-{x}, 1 + {y}.square())"],
            [
                f"torch.atan2(1 + {y}*{y}, {x})",
                f"torch.atan2({x}, 1 + {y})",
                f"torch.atan({x} * (1 + {y}*{y}))",
            ],
        ),
    }[q]


@term(NUMBER, NUMBER)
def cumulated_exponentials(r, rows, cols, x):
    d = r.choice([0, 1])
    return (
        f"torch.logcumsumexp({x}, {d})",
        [
            f"torch.log(torch.cumsum(torch.exp({x}), {d}))",
            (
                f"torch.stack([torch.logsumexp({x}.narrow({d}, 0, i+1), {d}) for i in "
                f"range({(rows, cols)[d]})], {d})"
            ),
        ],
        [
            f"torch.logcumsumexp({x}, {1 - d})",
            f"torch.log(torch.cumsum(torch.exp({x}), {d}) + 1e-3)",
            f"torch.cumsum({x}, {d})",
        ],
    )


@term(NUMBER, NUMBER)
def linears(r, rows, cols, x):
    return (
        f"F.linear({x}, self.w, self.b)",
        [
            f"{x} @ self.w.t() + self.b",
            f"torch.addmm(self.b, {x}, self.w.t())",
            f"torch.einsum('ij,kj->ik', {x}, self.w) + self.b",
            (
                f"torch.cat([F.linear({x}, self.w[:2], self.b[:2]), F.linear({x}, "
                "self.w[2:], self.b[2:])], 1)"
            ),
            f"{x}[:, :1] @ self.w.t()[:1] + {x}[:, 1:] @ self.w.t()[1:] + self.b",
            f"(self.w @ {x}.t() + self.b[:, None]).t()",
        ],
        [
            f"{x} @ self.w + self.b",
            f"{x} @ self.w.t()",
            f"{x} @ self.w.t() - self.b",
            f"{x}[:, :1] @ self.w.t()[:1] + {x}[:, 1:] @ self.w.t()[1:] + 2 * self.b",
            f"({x} + self.b) @ self.w.t()",
            (
                f"torch.cat([F.linear({x}, self.w[:2], self.b[:2]), F.linear({x}, "
                f"self.w[2:], self.b[:{cols - 2}])], 1)"
            ),
        ],
    )
