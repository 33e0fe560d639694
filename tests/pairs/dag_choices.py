"""Steps of drawn programs (dag_kinds.py): what chooses, orders, counts, rounds or casts, and
integers and truth values."""

import math

from dag_kinds import NUMBER, TRUTH, WHOLE, term


@term(NUMBER, NUMBER)
def relus(r, rows, cols, x):
    return (
        f"torch.relu({x})",
        [
            f"torch.clamp({x}, min=0)",
            f"torch.where({x} > 0, {x}, 0.0)",
            f"torch.where({x} >= 0, {x}, torch.zeros_like({x}))",
            f"({x} + {x}.abs()) / 2",
            f"torch.maximum({x}, torch.zeros_like({x}))",
            f"{x} * ({x} > 0)",
            f"{x}.masked_fill({x} < 0, 0.0)",
            f"F.threshold({x}, 0.0, 0.0)",
            f"-torch.minimum(-{x}, torch.zeros_like({x}))",
        ],
        [
            f"torch.where({x} > 1e-3, {x}, 0.0)",
            f"F.leaky_relu({x}, 0.01)",
            f"F.relu6({x})",
            f"({x} > 0).to({x}.dtype)",
            f"torch.where({x} > 0, {x}, -0.001)",
        ],
    )


@term(NUMBER, NUMBER, NUMBER)
def maxima(r, rows, cols, x, y):
    return (
        f"torch.maximum({x}, {y})",
        [
            f"torch.where({x} > {y}, {x}, {y})",
            f"torch.where({x} < {y}, {y}, {x})",
            f"torch.stack([{x}, {y}]).amax(0)",
            f"torch.relu({x} - {y}) + {y}",
            f"-torch.minimum(-{x}, -{y})",
            f"({x} + {y} + ({x} - {y}).abs()) / 2",
            f"torch.stack([{x}, {y}], -1).max(-1).values",
            f"torch.clamp({x}, min={y})",
            f"torch.stack([{x},{y}]).sort(0).values[1]",
        ],
        [
            f"torch.minimum({x}, {y})",
            f"torch.where({x} > {y}, {y}, {x})",
            f"torch.where({x} + 1e-3 > {y}, {x}, {y})",
            f"torch.where({x}.abs() > {y}.abs(), {x}, {y})",
            f"torch.logaddexp({x}, {y})",
        ],
    )


@term(NUMBER, NUMBER, NUMBER)
def where_edge(r, rows, cols, x, y):
    c = r.choice([0.0, 1.0, -0.5, 0.25])
    return (
        f"torch.where({x} > {c}, {y}, 1.0)",
        [
            f"torch.where({x} <= {c}, 1.0, {y})",
            f"{y}.masked_fill({x} <= {c}, 1.0)",
            f"torch.where(({x} < {c}) | ({x} == {c}), 1.0, {y})",
            f"torch.where(~({x} > {c}), 1.0, {y})",
            f"torch.where(torch.sign({x} - {c}) == 1, {y}, 1.0)",
            f"{y}.clone().masked_fill_(torch.logical_not({x}.gt({c})), 1)",
        ],
        [
            f"torch.where({x} >= {c}, {y}, 1.0)",
            f"{y}.masked_fill({x} < {c}, 1.0)",
            f"torch.where(torch.sign({x} - {c}) != -1, {y}, 1.0)",
            f"torch.where({x} > {c}, {y}, 0.999)",
            f"torch.where({x} > {c + 1e-2}, {y}, 1.0)",
        ],
    )


@term(NUMBER, NUMBER, NUMBER)
def where_xy(r, rows, cols, x, y):
    return (
        f"torch.where({x} > {y}, {x} * 2, {y} - 1)",
        [
            f"torch.where({y} >= {x}, {y} - 1, {x} * 2)",
            f"torch.where({x} - {y} > 0, {x} + {x}, {y} - 1)",
            f"torch.where({x} <= {y}, {y} - 1, {x} / 0.5)",
        ],
        [f"torch.where({x} >= {y}, {x} * 2, {y} - 1)", f"torch.where({y} > {x}, {y} - 1, {x} * 2)"],
    )


@term(NUMBER, NUMBER)
def rounds(r, rows, cols, x):
    k = r.choice(["floor", "ceil", "trunc", "round", "frac", "fmod", "rem"])
    c = r.choice([2.0, 3.0, 0.5])
    return {
        "floor": (
            f"torch.floor({x})",
            [
                f"-torch.ceil(-{x})",
                f"torch.div({x}, 1.0, rounding_mode='floor')",
                f"{x} - torch.remainder({x}, 1.0)",
                f"torch.where({x} < 0, -torch.ceil(-{x}), torch.trunc({x}))",
            ],
            [
                f"torch.trunc({x})",
                f"torch.ceil({x}) - 1",
                f"torch.round({x} - 0.5)",
                f"torch.floor({x} + 1e-4)",
            ],
        ),
        "ceil": (
            f"torch.ceil({x})",
            [f"-torch.floor(-{x})", f"-torch.div(-{x}, 1.0, rounding_mode='floor')"],
            [f"torch.floor({x}) + 1", f"torch.ceil({x} - 1e-4)", f"torch.floor({x} + 0.5)"],
        ),
        "trunc": (
            f"torch.trunc({x})",
            [
                f"torch.sign({x}) * torch.floor({x}.abs())",
                f"torch.div({x}, 1.0, rounding_mode='trunc')",
                f"{x} - torch.frac({x})",
                f"{x} - torch.fmod({x}, 1.0)",
                f"torch.where({x} >= 0, {x}.floor(), {x}.ceil())",
            ],
            [
                f"torch.floor({x})",
                f"torch.sign({x}) * torch.ceil({x}.abs())",
                f"{x} - torch.remainder({x}, 1.0)",
            ],
        ),
        "round": (
            f"torch.round({x})",
            [f"-torch.round(-{x})", f"torch.round({x} + 4) - 4", f"torch.round({x}, decimals=0)"],
            [
                f"torch.floor({x} + 0.5)",
                f"torch.round({x} + 1) - 1",
                f"torch.sign({x}) * torch.floor({x}.abs() + 0.5)",
                f"torch.ceil({x} - 0.5)",
            ],
        ),
        "frac": (
            f"torch.frac({x})",
            [
                f"{x} - torch.trunc({x})",
                f"torch.fmod({x}, 1.0)",
                f"torch.sign({x}) * ({x}.abs() - {x}.abs().floor())",
            ],
            [
                f"{x} - torch.floor({x})",
                f"torch.remainder({x}, 1.0)",
                f"{x}.abs() - {x}.abs().floor()",
            ],
        ),
        "fmod": (
            f"torch.fmod({x}, {c})",
            [
                f"{x} - torch.trunc({x} / {c}) * {c}",
                f"torch.sign({x}) * torch.remainder({x}.abs(), {c})",
                f"torch.fmod({x}, -{c})",
                f"{x} - {c} * torch.div({x}, {c}, rounding_mode='trunc')",
            ],
            [
                f"torch.remainder({x}, {c})",
                f"{x} - torch.floor({x}/{c}) * {c}",
                f"{x} - torch.round({x}/{c}) * {c}",
            ],
        ),
        "rem": (
            f"torch.remainder({x}, {c})",
            [
                f"{x} - torch.floor({x} / {c}) * {c}",
                f"torch.fmod(torch.fmod({x}, {c}) + {c}, {c})",
                f"-torch.remainder(-{x}, -{c})",
            ],
            [
                f"torch.fmod({x}, {c})",
                f"torch.remainder({x}, -{c})",
                f"{x} - torch.ceil({x}/{c})*{c}",
                f"{c} - torch.remainder(-{x}, {c})",
            ],
        ),
    }[k]


@term(NUMBER, NUMBER)
def first_places(r, rows, cols, x):
    d = r.choice([0, 1])
    n = (rows, cols)[d]
    mm = r.choice(["max", "min"])
    o = "min" if mm == "max" else "max"
    desc = mm == "max"
    base = f"torch.arg{mm}({x}, {d}, keepdim=True).to({x}.dtype) + {x}"
    return (
        base,
        [
            f"{x} + torch.arg{o}(-{x}, {d}, keepdim=True).to({x}.dtype)",
            f"{x}.{mm}({d}, keepdim=True).indices + {x}",
            (
                f"torch.sort({x}, dim={d}, descending={desc}, "
                f"stable=True).indices.narrow({d}, 0, 1) + {x}"
            ),
            (
                f"torch.argsort({x}, dim={d}, descending={desc}, stable=True).narrow({d}, "
                f"0, 1) + {x}"
            ),
            (
                f"torch.argmax(({x} == {x}.a{mm}({d}, keepdim=True)).to(torch.int64), "
                f"{d}, keepdim=True) + {x}"
            ),
        ],
        [
            f"({n}-1 - torch.arg{mm}({x}.flip({d}), {d}, keepdim=True)) + {x}",
            (
                f"torch.sort({x}, dim={d}, descending={not desc}, "
                f"stable=True).indices.narrow({d}, {n - 1}, 1) + {x}"
            ),
            f"torch.arg{o}({x}, {d}, keepdim=True).to({x}.dtype) + {x}",
            f"torch.arg{mm}({x}, {1 - d}, keepdim=True).to({x}.dtype) + {x}",
        ],
    )


@term(NUMBER, NUMBER)
def sorts(r, rows, cols, x):
    d = r.choice([0, 1])
    n = (rows, cols)[d]
    return (
        f"torch.sort({x}, dim={d}).values",
        [
            f"-torch.sort(-{x}, dim={d}, descending=True).values",
            f"torch.sort({x}, dim={d}, descending=True).values.flip({d})",
            f"torch.take_along_dim({x}, torch.argsort({x}, dim={d}), {d})",
            f"torch.topk({x}, {n}, dim={d}, largest=False).values",
            f"torch.gather({x}, {d}, torch.sort({x}, stable=True, dim={d}).indices)",
            f"torch.sort({x}.flip({d}), dim={d}).values",
        ],
        [
            f"torch.sort({x}, dim={1 - d}).values",
            f"torch.sort({x}, dim={d}, descending=True).values",
            f"torch.topk({x}, {n}, dim={d}, largest=True).values",
            (
                f"torch.gather({x}, {d}, torch.argsort(torch.argsort({x}, dim={d}, "
                f"stable=True), dim={d}))"
            ),
            f"torch.sort({x}.abs(), dim={d}).values",
        ],
    )


@term(NUMBER, NUMBER)
def ranks(r, rows, cols, x):
    d = 1
    return (
        (
            f"torch.argsort(torch.argsort({x}, dim=1, stable=True), dim=1, "
            f"stable=True).to({x}.dtype)"
        ),
        [
            (
                f"(({x}.unsqueeze(1) < {x}.unsqueeze(2)) | (({x}.unsqueeze(1) == "
                f"{x}.unsqueeze(2)) & (torch.arange({cols})[None,:] < "
                f"torch.arange({cols})[:,None]))).sum(2).to({x}.dtype)"
            ),
            (
                f"torch.zeros({rows},{cols},dtype=torch.int64).scatter(1, torch.argsort({x}, "
                f"dim=1, stable=True), torch.arange({cols}).expand({rows},{cols})).to({x}.dtype)"
            ),
        ],
        [
            f"({x}.unsqueeze(1) < {x}.unsqueeze(2)).sum(2).to({x}.dtype)",
            f"({x}.unsqueeze(1) <= {x}.unsqueeze(2)).sum(2).to({x}.dtype) - 1",
            f"torch.argsort({x}, dim=1, stable=True).to({x}.dtype)",
        ],
    )


@term(NUMBER, NUMBER)
def topk_sum(r, rows, cols, x):
    k = r.choice([1, 2])
    return (
        f"torch.topk({x}, {k}, dim=1).values.sum(1, keepdim=True) - {x}",
        [
            (f"torch.sort({x}, dim=1, descending=True).values[:, :{k}].sum(1, keepdim=True) - {x}"),
            (f"-(torch.topk(-{x}, {k}, dim=1, largest=False).values.sum(1, keepdim=True)) - {x}"),
            f"{x}.sort(1).values[:, {cols - k}:].sum(1, keepdim=True) - {x}",
        ],
        [
            f"torch.topk({x}, {k + 1}, dim=1).values.sum(1, keepdim=True) - {x}",
            (f"torch.topk({x}, {k}, dim=1, largest=False).values.sum(1, keepdim=True) - {x}"),
            (
                f"torch.sort({x}, dim=1, descending=True).values[:, 1:{k + 1}].sum(1, "
                f"keepdim=True) - {x}"
            ),
            f"torch.topk({x}.abs(), {k}, dim=1).values.sum(1, keepdim=True) - {x}",
        ],
    )


@term(NUMBER, NUMBER)
def kept_largest(r, rows, cols, x):
    k = r.choice([2, 3])
    th = f"torch.topk({x}, {k}, dim=1).values[:, -1:]"
    return (
        f"{x}.masked_fill({x} < {th}, 0.0)",
        [
            (f"torch.where({x} >= {x}.sort(1, descending=True).values[:, {k - 1}:{k}], {x}, 0.0)"),
            f"{x} * ({x} >= torch.kthvalue({x}, {cols - k + 1}, 1, keepdim=True).values)",
        ],
        [
            (
                f"torch.zeros_like({x}).scatter(1, torch.topk({x}, {k}, dim=1).indices, "
                f"torch.topk({x}, {k}, dim=1).values) * 1.0"
            ),
            f"{x}.masked_fill({x} <= {th}, 0.0)",
            (f"torch.where({x} >= {x}.sort(1, descending=True).values[:, {k}:{k + 1}], {x}, 0.0)"),
        ],
    )


@term(NUMBER, NUMBER)
def casts(r, rows, cols, x):
    k = r.choice(["half", "int", "u8", "i8", "bool", "i32"])
    if k == "half":
        return (
            f"({x}.to(torch.float16) * 2).to(torch.float32).to({x}.dtype)",
            [
                f"{x} * 2",
                f"({x}.to(torch.bfloat16) + {x}.to(torch.bfloat16)).to({x}.dtype)",
                f"({x}.float() / 0.5).to({x}.dtype)",
            ],
            [
                f"({x}.to(torch.float16) * 2.01).to({x}.dtype)",
                f"{x}.to(torch.int64).to({x}.dtype) * 2",
            ],
        )
    if k == "bool":
        return (
            f"{x}.to(torch.bool).to({x}.dtype)",
            [
                f"({x} != 0).to({x}.dtype)",
                f"{x}.sign().abs()",
                f"1 - ({x} == 0).to({x}.dtype)",
                f"torch.logical_not(torch.logical_not({x})).to({x}.dtype)",
            ],
            [
                f"({x} > 0).to({x}.dtype)",
                f"({x}.abs() > 1e-3).to({x}.dtype)",
                f"{x}.sign()",
                f"{x}.to(torch.int64).to(torch.bool).to({x}.dtype)",
            ],
        )
    lo, hi, ty = {
        "int": (-50, 50, "int64"),
        "u8": (0, 255, "uint8"),
        "i8": (-128, 127, "int8"),
        "i32": (-1000, 1000, "int32"),
    }[k]
    c = f"{x}.clamp({lo}, {hi})"
    return (
        f"{c}.to(torch.{ty}).to({x}.dtype)",
        [
            f"{c}.trunc()",
            f"{x}.trunc().clamp({lo}, {hi})",
            f"{x}.clamp({lo}, {hi}).to(torch.int64).to({x}.dtype)",
            f"({c} - torch.frac({c}))",
        ],
        [
            f"{c}.round()",
            f"{c}.floor().to(torch.{ty}).to({x}.dtype)" if lo < 0 else f"{c}.ceil()",
            f"{x}.clamp({lo}, {hi - 1}).to(torch.{ty}).to({x}.dtype)",
            f"{c}",
        ],
    )


@term(NUMBER, NUMBER)
def clamps(r, rows, cols, x):
    lo, hi = r.choice([(-1.0, 1.0), (0.0, 2.0), (-0.5, 3.0)])
    return (
        f"torch.clamp({x}, {lo}, {hi})",
        [
            (
                f"torch.minimum(torch.maximum({x}, torch.tensor({lo}, dtype={x}.dtype)), "
                f"torch.tensor({hi}, dtype={x}.dtype))"
            ),
            f"F.hardtanh({x}, {lo}, {hi})",
            f"torch.where({x} < {lo}, {lo}, torch.where({x} > {hi}, {hi}, {x}))",
            f"{lo} + torch.relu({x} - {lo}) - torch.relu({x} - {hi})",
            f"{x}.clamp(max={hi}).clamp(min={lo})",
            f"{x}.clone().clamp_(min={lo}).clamp_(max={hi})",
        ],
        [
            f"torch.clamp({x}, {lo}, {hi + 0.01})",
            f"torch.clamp({x}, min={lo})",
            f"torch.where({x} < {lo}, {hi}, torch.where({x} > {hi}, {lo}, {x}))",
            f"{lo} + torch.relu({x} - {lo}) - torch.relu({x} + {hi})",
        ],
    )


@term(NUMBER, NUMBER, WHOLE)
def chosen_by_integers(r, rows, cols, x, k):
    c = r.choice([0, 1, 3, 7])
    m = r.choice([2, 3, 4])
    q = r.choice(["cmp", "mod", "div", "shift", "bits"])
    return {
        "cmp": (
            f"torch.where({k} > {c}, {x}, -{x})",
            [
                f"torch.where({k} >= {c + 1}, {x}, -{x})",
                f"torch.where({k} <= {c}, -{x}, {x})",
                f"{x} * (2 * ({k} > {c}).to({x}.dtype) - 1)",
                f"torch.where({k} < {c + 1}, -{x}, {x})",
            ],
            [
                f"torch.where({k} >= {c}, {x}, -{x})",
                f"torch.where({k} > {c + 1}, {x}, -{x})",
                f"torch.where({k} != {c}, {x}, -{x})",
                f"torch.where({k}.abs() > {c}, {x}, -{x})",
            ],
        ),
        "mod": (
            f"torch.where({k} % {m} == 0, {x}, 0.0)",
            [
                f"{x} * (torch.remainder({k}, {m}) == 0)",
                f"torch.where(torch.fmod({k}, {m}) == 0, {x}, 0.0)",
                (
                    f"torch.where({k} - torch.div({k}, {m}, rounding_mode='trunc') * {m} == "
                    f"0, {x}, 0.0)"
                ),
                f"{x}.masked_fill({k} % {m} != 0, 0.0)",
            ],
            [
                f"torch.where({k} % {m} == 1, {x}, 0.0)",
                f"torch.where({k} % {m + 1} == 0, {x}, 0.0)",
                f"torch.where(({k} - 1) % {m} == 0, {x}, 0.0)",
                f"torch.where({k} % {m} <= 1, {x}, 0.0)",
            ],
        ),
        "div": (
            f"({k} // {m}).to({x}.dtype) + {x}",
            [
                f"torch.div({k}, {m}, rounding_mode='floor') + {x}",
                f"(({k} - {k} % {m}) // {m}) + {x}",
                (
                    f"torch.where({k} >= 0, torch.div({k}, {m}, rounding_mode='trunc'), -1 - "
                    f"torch.div(-1 - {k}, {m}, rounding_mode='trunc')) + {x}"
                ),
            ],
            [
                f"torch.div({k}, {m}, rounding_mode='trunc') + {x}",
                f"({k} / {m}) + {x}",
                f"-((-{k}) // {m}) + {x}",
                f"(({k} + 1) // {m}) + {x}",
            ],
        ),
        "shift": (
            f"({k} >> 2) + {x}",
            [
                f"{k} // 4 + {x}",
                f"torch.div({k}, 4, rounding_mode='floor') + {x}",
                f"(({k} >> 1) >> 1) + {x}",
            ],
            [
                f"torch.div({k}, 4, rounding_mode='trunc') + {x}",
                f"({k} >> 1) + {x}",
                f"(({k} + 1) >> 2) + {x}",
            ],
        ),
        "bits": (
            f"({k} & 3) + {x}",
            [
                f"{k} % 4 + {x}",
                f"({k} - (({k} >> 2) << 2)) + {x}",
                f"torch.bitwise_and({k}, 1) + 2 * (({k} >> 1) & 1) + {x}",
                f"(3 - (~{k} & 3)) + {x}",
            ],
            [
                f"torch.fmod({k}, 4) + {x}",
                f"({k} & 2) + {x}",
                f"({k} | 3) + {x}",
                f"({k} ^ 3) + {x}",
                f"(3 - ({k} & 3)) + {x}",
            ],
        ),
    }[q]


@term(WHOLE, NUMBER)
def counting(r, rows, cols, x):
    q = r.choice(["search", "bucket", "gt", "cum"])
    return {
        "gt": (
            f"({x}.unsqueeze(2) > {x}.unsqueeze(1)).sum(2)",
            [
                f"({x}.unsqueeze(1) < {x}.unsqueeze(2)).to(torch.int64).sum(-1)",
                f"{cols} - ({x}.unsqueeze(2) <= {x}.unsqueeze(1)).sum(2)",
                f"torch.count_nonzero({x}[:, :, None] > {x}[:, None, :], dim=2)",
            ],
            [
                f"({x}.unsqueeze(2) >= {x}.unsqueeze(1)).sum(2)",
                f"({x}.unsqueeze(2) > {x}.unsqueeze(1)).sum(1)",
                f"({x}.unsqueeze(2) >= {x}.unsqueeze(1)).sum(2) - 1",
            ],
        ),
        "search": (
            (f"torch.searchsorted(torch.tensor([-1.0, 0.0, 0.5, 2.0], dtype={x}.dtype), {x})"),
            [
                (f"torch.bucketize({x}, torch.tensor([-1.0, 0.0, 0.5, 2.0], dtype={x}.dtype))"),
                (
                    f"({x}.unsqueeze(-1) > torch.tensor([-1.0, 0.0, 0.5, 2.0], "
                    f"dtype={x}.dtype)).sum(-1)"
                ),
                f"({x} > -1).long() + ({x} > 0) + ({x} > 0.5) + ({x} > 2)",
            ],
            [
                (
                    "torch.searchsorted(torch.tensor([-1.0, 0.0, 0.5, 2.0], "
                    f"dtype={x}.dtype), {x}, right=True)"
                ),
                (
                    f"torch.bucketize({x}, torch.tensor([-1.0, 0.0, 0.5, 2.0], "
                    f"dtype={x}.dtype), right=True)"
                ),
                (
                    f"({x}.unsqueeze(-1) >= torch.tensor([-1.0, 0.0, 0.5, 2.0], "
                    f"dtype={x}.dtype)).sum(-1)"
                ),
                f"({x} > -1).long() + ({x} > 0) + ({x} >= 0.5) + ({x} > 2)",
            ],
        ),
        "bucket": (
            (f"torch.bucketize({x}, torch.tensor([0.0, 1.0], dtype={x}.dtype), right=True)"),
            [
                f"({x} >= 0).long() + ({x} >= 1).long()",
                f"2 - ({x} < 0).long() - ({x} < 1).long()",
                f"torch.where({x} < 0, 0, torch.where({x} < 1, 1, 2))",
            ],
            [
                f"({x} > 0).long() + ({x} >= 1).long()",
                f"torch.bucketize({x}, torch.tensor([0.0, 1.0], dtype={x}.dtype))",
                f"torch.where({x} < 0, 0, torch.where({x} <= 1, 1, 2))",
            ],
        ),
        "cum": (
            f"torch.cumsum(({x} > 0).long(), 1)",
            [
                f"torch.stack([({x}[:, :i+1] > 0).sum(1) for i in range({cols})], 1)",
                (
                    f"(({x} > 0).sum(1, keepdim=True) - torch.cumsum(({x} > "
                    f"0).flip(1).long(), 1).flip(1) + ({x} > 0))"
                ),
            ],
            [
                f"torch.cumsum(({x} >= 0).long(), 1)",
                f"torch.cumsum(({x} > 0).long(), 1) - 1",
                f"torch.cumsum(({x} > 0).long(), 0)",
                f"torch.cumsum(({x} > 0).long(), 1) * ({x} > 0)",
            ],
        ),
    }[q]


@term(WHOLE, WHOLE, WHOLE)
def int_arith(r, rows, cols, k, l):
    q = r.choice(["min", "xor", "dist", "dem", "abs"])
    return {
        "min": (
            f"torch.minimum({k}, {l})",
            [
                f"torch.where({k} < {l}, {k}, {l})",
                f"torch.where({k} <= {l}, {k}, {l})",
                f"torch.stack([{k}, {l}]).amin(0)",
                f"{k} ^ (({k} ^ {l}) & -({l} < {k}).long())",
            ],
            [
                f"torch.where({k} < {l} - 1, {k}, {l})",
                f"torch.maximum({k}, {l})",
                f"torch.where({k} > {l}, {k}, {l})",
                f"torch.where({k}.abs() < {l}.abs(), {k}, {l})",
            ],
        ),
        "xor": (
            f"{k} ^ {l}",
            [
                f"({k} | {l}) - ({k} & {l})",
                f"({k} & ~{l}) | (~{k} & {l})",
                f"{k} + {l} - 2 * ({k} & {l})",
                f"({k} | {l}) & ~({k} & {l})",
            ],
            [f"({k} | {l})", f"{k} + {l}", f"({k} & ~{l})", f"{k} + {l} - ({k} & {l})"],
        ),
        "dist": (
            f"3 * ({k} - {l}) + {l}",
            [f"3 * {k} - 2 * {l}", f"{k} + 2 * ({k} - {l})", f"{k} * 3 - ({l} << 1)"],
            [f"3 * {k} - 3 * {l}", f"3 * {k} + 2 * {l}", f"3 * {k} - {l}"],
        ),
        "dem": (
            f"~({k} & {l})",
            [
                f"~{k} | ~{l}",
                f"-({k} & {l}) - 1",
                f"torch.bitwise_not(torch.bitwise_and({l}, {k}))",
            ],
            [f"~{k} & ~{l}", f"-({k} & {l})", f"~({k} | {l})"],
        ),
        "abs": (
            f"({k} - {l}).abs()",
            [
                f"torch.where({k} > {l}, {k} - {l}, {l} - {k})",
                f"({l} - {k}).abs()",
                f"torch.maximum({k} - {l}, {l} - {k})",
            ],
            [
                f"torch.where({k} > {l}, {k} - {l}, {k} + {l})",
                f"{k}.abs() - {l}.abs()",
                f"({k} - {l})",
            ],
        ),
    }[q]


@term(TRUTH, NUMBER, NUMBER)
def booleans(r, rows, cols, x, y):
    q = r.choice(["and", "xor", "ge", "close", "any"])
    return {
        "and": (
            f"({x} > 0) & ({y} > 0)",
            [
                f"~(({x} <= 0) | ({y} <= 0))",
                f"torch.minimum({x}, {y}) > 0",
                f"torch.logical_and({x} > 0, {y} > 0)",
                f"torch.where({x} > 0, {y} > 0, False)",
            ],
            [
                f"({x} * {y}) > 0",
                f"({x} > 0) | ({y} > 0)",
                f"({x} > 0) & ({y} >= 0)",
                f"torch.maximum({x}, {y}) > 0",
            ],
        ),
        "xor": (
            f"({x} > 0) ^ ({y} > 0)",
            [
                f"({x} > 0) != ({y} > 0)",
                f"torch.logical_xor({x} > 0, {y} > 0)",
                f"(({x} > 0) & ({y} <= 0)) | (({x} <= 0) & ({y} > 0))",
            ],
            [f"({x} * {y}) < 0", f"({x} > 0) == ({y} > 0)", f"({x} > 0) ^ ({y} >= 0)"],
        ),
        "ge": (
            f"{x} >= {y}",
            [
                f"{y} <= {x}",
                f"~({x} < {y})",
                f"({x} > {y}) | ({x} == {y})",
                f"torch.maximum({x}, {y}) == {x}",
            ],
            [
                f"{x} > {y}",
                f"{x} <= {y}",
                f"{x} != {y}",
                f"torch.minimum({x}, {y}) == {x}",
                f"{x} >= {y} - 1e-3",
            ],
        ),
        "close": (
            f"({x} - {y}).abs() <= 0.5",
            [
                f"(({x} - {y}) <= 0.5) & (({y} - {x}) <= 0.5)",
                f"({x} - {y}).square() <= 0.25",
                f"~(({x} - {y}).abs() > 0.5)",
            ],
            [f"({x} - {y}).abs() < 0.5", f"({x} - {y}) <= 0.5", f"({x} - {y}).abs() <= 0.501"],
        ),
        "any": (
            f"({x} > {y}).any(0, keepdim=True).expand({rows}, {cols})",
            [
                f"(({x} - {y}).amax(0, keepdim=True) > 0).expand({rows}, {cols})",
                f"~({x} <= {y}).all(0).expand({rows}, {cols})",
            ],
            [
                f"(({x} - {y}).amax(0, keepdim=True) >= 0).expand({rows}, {cols})",
                f"({x}.amax(0, keepdim=True) > {y}.amax(0, keepdim=True)).expand({rows}, {cols})",
                f"({x} > {y}).any(1, keepdim=True).expand({rows}, {cols})",
            ],
        ),
    }[q]


@term(NUMBER, NUMBER, TRUTH)
def masked(r, rows, cols, x, m):
    q = r.choice(["fill", "attn", "mean", "cnt", "seg"])
    return {
        "fill": (
            f"{x}.masked_fill({m}, 0.0)",
            [
                f"{x} * (~{m})",
                f"torch.where({m}, 0.0, {x})",
                f"{x} * (1 - {m}.to({x}.dtype))",
                f"torch.where(torch.logical_not({m}), {x}, torch.zeros_like({x}))",
            ],
            [
                f"{x} * {m}",
                f"{x}.masked_fill(~{m}, 0.0)",
                f"{x}.masked_fill({m}, 1e-3)",
                f"{x}.masked_fill({m} & ({x} > 0), 0.0)",
            ],
        ),
        "attn": (
            f"torch.softmax({x} + {m}.to({x}.dtype) * -2.0, 1)",
            [
                f"torch.softmax(torch.where({m}, {x} - 2, {x}), 1)",
                (
                    f"[e := {x}.exp() * torch.where({m}, {math.exp(-2)!r}, 1.0), e / e.sum(1, "
                    "keepdim=True)][-1]"
                ),
            ],
            [
                f"torch.softmax(torch.where({m}, {x} - 2, {x} + 2e-3), 1)",
                f"torch.softmax(torch.where({m}, {x}, {x} - 2), 1)",
                f"torch.softmax(torch.where({m}, -2.0, {x}), 1)",
            ],
        ),
        "mean": (
            (f"({x} * {m}).sum(1, keepdim=True) / {m}.sum(1, keepdim=True).clamp(min=1) + {x}"),
            [
                (
                    f"torch.where({m}, {x}, 0.0).sum(1, keepdim=True) / "
                    f"{m}.to({x}.dtype).sum(1, keepdim=True).clamp(min=1) + {x}"
                ),
                (
                    f"torch.einsum('ij,ij->i', {x}, {m}.to({x}.dtype))[:, None] / "
                    f"torch.maximum({m}.sum(1, keepdim=True), torch.tensor(1)) + {x}"
                ),
            ],
            [
                f"({x} * {m}).mean(1, keepdim=True) + {x}",
                (f"({x} * {m}).sum(1, keepdim=True) / ({m}.sum(1, keepdim=True) + 1e-6) + {x}"),
                f"({x} * {m}).sum(1, keepdim=True) / ({m}.sum(1, keepdim=True) + 1) + {x}",
            ],
        ),
        "cnt": (
            f"{m}.sum(0, keepdim=True) * {x}",
            [
                f"{m}.long().sum(0) * {x}",
                f"({rows} - (~{m}).sum(0, keepdim=True)) * {x}",
                f"torch.count_nonzero({m}, 0) * {x}",
            ],
            [
                f"{m}.sum(1, keepdim=True) * {x}",
                f"{m}.any(0, keepdim=True) * {x}",
                f"(~{m}).sum(0) * {x}",
            ],
        ),
        "seg": (
            f"(torch.cumsum({m}.long(), 1) * {x})",
            [
                f"torch.cumsum({m}.to({x}.dtype), 1) * {x}",
                (
                    f"({m}.to({x}.dtype) @ torch.triu(torch.ones({cols},{cols},dtype={x}.dtype)))"
                    f" * "
                    f"{x}"
                ),
            ],
            [
                f"(torch.cumsum({m}.long(), 1) - {m}.long()) * {x}",
                (
                    f"({m}.to({x}.dtype) @ torch.tril(torch.ones({cols},{cols},dtype={x}.dtype)))"
                    f" * "
                    f"{x}"
                ),
                f"(torch.cumsum({m}.long(), 1) % {cols} * {x})",
            ],
        ),
    }[q]


@term(NUMBER, NUMBER)
def cumulated_maxima(r, rows, cols, x):
    d = r.choice([0, 1])
    n = (rows, cols)[d]
    return (
        f"torch.cummax({x}, {d}).values",
        [
            f"-torch.cummin(-{x}, {d}).values",
            f"torch.stack([{x}.narrow({d}, 0, i+1).amax({d}) for i in range({n})], {d})",
        ],
        [
            f"torch.cummax({x}, {1 - d}).values",
            f"torch.cummin({x}, {d}).values",
            f"torch.cummax({x}.flip({d}), {d}).values.flip({d})",
            f"{x}.amax({d}, keepdim=True).expand({rows},{cols})",
        ],
    )


@term(NUMBER, NUMBER)
def signs(r, rows, cols, x):
    return (
        f"torch.sign({x})",
        [
            f"({x} > 0).to({x}.dtype) - ({x} < 0).to({x}.dtype)",
            f"torch.where({x} > 0, 1.0, torch.where({x} < 0, -1.0, 0.0))",
            f"-torch.sign(-{x})",
            f"torch.sgn({x})",
            (
                f"torch.heaviside({x}, torch.zeros_like({x})) - torch.heaviside(-{x}, "
                f"torch.zeros_like({x}))"
            ),
        ],
        [
            f"torch.where({x} >= 0, 1.0, -1.0)",
            f"torch.where({x} > 0, 1.0, -1.0)",
            f"{x} / ({x}.abs() + 1e-6)",
            (
                f"torch.heaviside({x}, torch.ones_like({x})) - torch.heaviside(-{x}, "
                f"torch.zeros_like({x}))"
            ),
            f"({x} > 0).to({x}.dtype) - ({x} <= 0).to({x}.dtype)",
        ],
    )
