"""Steps of drawn programs (dag_kinds.py): what moves elements, pools them or writes in place."""

from dag_kinds import NUMBER, WHOLE, fresh, term


@term(NUMBER, NUMBER)
def cumulated(r, rows, cols, x):
    d = r.choice([0, 1])
    n = (rows, cols)[d]
    m = f"torch.tril(torch.ones({n}, {n}, dtype={x}.dtype))"
    return (
        f"torch.cumsum({x}, {d})",
        [
            f"{m} @ {x}" if d == 0 else f"{x} @ {m}.t()",
            (f"{x}.sum({d}, keepdim=True) - torch.cumsum({x}.flip({d}), {d}).flip({d}) + {x}"),
            (f"torch.stack([{x}.narrow({d}, 0, i + 1).sum({d}) for i in range({n})], {d})"),
        ],
        [
            f"{m}.t() @ {x}" if d == 0 else f"{x} @ {m}",
            f"torch.cumsum({x}, {1 - d})",
            f"torch.cumsum({x}, {d}) - {x}",
            f"torch.cumsum({x}.flip({d}), {d}).flip({d})",
            (f"torch.stack([{x}.narrow({d}, 0, max(i, 1)).sum({d}) for i in range({n})], {d})"),
        ],
    )


@term(NUMBER, NUMBER)
def shifts(r, rows, cols, x):
    d = r.choice([0, 1])
    n = (rows, cols)[d]
    s = r.choice([1, 2])
    return (
        f"torch.roll({x}, {s}, {d})",
        [
            f"torch.cat([{x}.narrow({d}, {n - s}, {s}), {x}.narrow({d}, 0, {n - s})], {d})",
            f"{x}.index_select({d}, (torch.arange({n}) - {s}) % {n})",
            f"torch.roll({x}, {s - n}, {d})",
            f"torch.gather({x}, {d}, ((torch.arange({n}) + {n - s}) % {n})"
            + (f"[:, None]" if d == 0 else "[None, :]")
            + f".expand({rows}, {cols}))",
        ],
        [
            f"torch.roll({x}, -{s}, {d})" if 2 * s != n else f"torch.roll({x}, {s + 1}, {d})",
            f"torch.roll({x}, {s}, {1 - d})",
            (
                f"torch.cat([torch.zeros_like({x}.narrow({d}, {n - s}, {s})), "
                f"{x}.narrow({d}, 0, {n - s})], {d})"
            ),
            f"torch.roll({x}, {s}).reshape({rows},{cols})"
            if d == 1
            else f"torch.roll({x}, {s + 1}, 0)",
        ],
    )


@term(NUMBER, NUMBER)
def pads(r, rows, cols, x):
    m = r.choice(["reflect", "replicate", "constant"])
    z = f"{x}.unsqueeze(0)"
    base = f"F.pad({z}, (2, 1), mode='{m}')[0][:, 1:{cols + 1}]"
    if m == "constant":
        return (
            f"F.pad({x}, (2, 1))[:, 1:{cols + 1}]",
            [
                f"torch.cat([torch.zeros({rows},1,dtype={x}.dtype), {x}[:, :{cols - 1}]], 1)",
                f"torch.roll(F.pad({x}[:, :-1], (0, 1)), 1, 1)",
            ],
            [
                f"F.pad({x}, (1, 2))[:, 1:{cols + 1}]",
                f"torch.roll({x}, 1, 1)",
                base.replace("constant", "replicate"),
            ],
        )
    if m == "reflect":
        return (
            base,
            [
                f"torch.cat([{x}[:, 1:2], {x}[:, :{cols - 1}]], 1)",
                f"{x}.index_select(1, (torch.arange({cols}) - 1).abs())",
            ],
            [base.replace("reflect", "replicate"), base.replace("reflect", "circular")],
        )
    return (
        base,
        [
            f"torch.cat([{x}[:, :1], {x}[:, :{cols - 1}]], 1)",
            f"{x}[:, (torch.arange({cols}) - 1).clamp(min=0)]",
        ],
        [
            base.replace("replicate", "reflect"),
            f"{x}[:, torch.arange({cols}).clamp(min=1)]",
            base.replace("replicate", "circular"),
        ],
    )


@term(NUMBER, NUMBER, WHOLE)
def gathers(r, rows, cols, x, k):
    i = f"torch.remainder({k}, {cols})"
    return (
        f"torch.gather({x}, 1, {i})",
        [
            f"torch.take_along_dim({x}, {i}, 1)",
            f"{x}[torch.arange({rows})[:, None], {i}]",
            f"(F.one_hot({i}, {cols}).to({x}.dtype) @ {x}.unsqueeze(-1)).squeeze(-1)",
            f"torch.gather({x}.flip(1), 1, {cols - 1} - {i})",
            f"{x}.reshape(-1)[{i} + {cols} * torch.arange({rows})[:, None]]",
            (f"torch.gather({x}, 1, {k} - torch.div({k}, {cols}, rounding_mode='floor') * {cols})"),
            (
                f"torch.where(torch.arange({cols}) == {i}.unsqueeze(-1), {x}.unsqueeze(1), "
                "0.0).sum(-1)"
            ),
        ],
        [
            f"torch.gather({x}, 1, torch.fmod({k}, {cols}).abs())",
            f"torch.gather({x}, 1, torch.remainder({k}, {cols - 1}))",
            f"torch.gather({x}, 1, {k}.clamp(0, {cols - 1}))",
            f"torch.gather({x}, 1, torch.remainder({k} + 1, {cols}))",
            (
                f"torch.where(torch.arange({cols}) <= {i}.unsqueeze(-1), {x}.unsqueeze(1), "
                "0.0).sum(-1)"
            ),
        ],
    )


@term(NUMBER, NUMBER, WHOLE)
def scatters(r, rows, cols, x, k):
    i = f"torch.remainder({k}, {cols})"
    m = r.choice(["add", "amax", "mean"])
    if m == "add":
        return (
            f"torch.zeros_like({x}).scatter_add(1, {i}, {x})",
            [
                f"({x}.unsqueeze(1) @ F.one_hot({i}, {cols}).to({x}.dtype)).squeeze(1)",
                f"torch.zeros_like({x}).scatter_reduce(1, {i}, {x}, 'sum')",
                f"(({i}.unsqueeze(-1) == torch.arange({cols})) * {x}.unsqueeze(-1)).sum(1)",
                (
                    f"torch.zeros_like({x}).index_put((torch.arange({rows})[:, None].expand("
                    f"{rows}, {cols}), "
                    f"{i}), {x}, accumulate=True)"
                ),
            ],
            [
                f"torch.zeros_like({x}).scatter(1, {i}, {x})",
                (f"torch.zeros_like({x}).scatter_reduce(1, {i}, {x}, 'mean', include_self=False)"),
                (
                    f"torch.zeros_like({x}).index_put((torch.arange({rows})[:, None].expand("
                    f"{rows}, {cols}), "
                    f"{i}), {x}, accumulate=False)"
                ),
                f"torch.ones_like({x}).scatter_add(1, {i}, {x})",
            ],
        )
    if m == "amax":
        return (
            f"torch.zeros_like({x}).scatter_reduce(1, {i}, {x}, 'amax')",
            [
                (
                    f"torch.where({i}.unsqueeze(-1) == torch.arange({cols}), {x}.unsqueeze(-1), "
                    "0.0).amax(1).relu()"
                )
            ],
            [
                (f"torch.zeros_like({x}).scatter_reduce(1, {i}, {x}, 'amax', include_self=False)"),
                f"torch.zeros_like({x}).scatter_reduce(1, {i}, {x}, 'amin')",
                (
                    f"torch.where({i}.unsqueeze(-1) == torch.arange({cols}), {x}.unsqueeze(-1), "
                    "0.0).amax(1)"
                ),
            ],
        )
    return (
        f"torch.zeros_like({x}).scatter_reduce(1, {i}, {x}, 'mean')",
        [
            (
                f"torch.zeros_like({x}).scatter_add(1, {i}, {x}) / (1 + (F.one_hot({i}, "
                f"{cols}).sum(1)))"
            )
        ],
        [
            (f"torch.zeros_like({x}).scatter_reduce(1, {i}, {x}, 'mean', include_self=False)"),
            (
                f"torch.zeros_like({x}).scatter_add(1, {i}, {x}) / (F.one_hot({i}, "
                f"{cols}).sum(1).clamp(min=1))"
            ),
        ],
    )


@term(NUMBER, NUMBER)
def inplace_rows(r, rows, cols, x):
    t = fresh()
    s = r.choice([0, 1, rows - 1])
    return (
        f"[{t} := {x}.clone(), {t}[{s}].add_({t}[0]), {t}][-1]",
        [
            f"torch.cat([{x}[:{s}], ({x}[{s}] + {x}[0])[None], {x}[{s + 1}:]], 0)",
            f"{x} + {x}[0:1] * (torch.arange({rows}) == {s})[:, None]",
            f"[{t} := {x} + 0, {t}[{s}:{s + 1}, :].copy_({x}[{s}] + {x}[:1]), {t}][-1]",
            f"{x}.index_add(0, torch.tensor([{s}]), {x}[:1])",
        ],
        [
            f"{x} + {x}[0:1] * (torch.arange({rows}) == {(s + 1) % rows})[:, None]",
            f"{x} + {x}[0:1] * (torch.arange({rows}) <= {s})[:, None]" if s else f"{x} + {x}[0:1]",
            f"{x}.index_add(0, torch.tensor([{s}]), {x}[:1], alpha=-1)",
        ],
    )


@term(NUMBER, NUMBER)
def inplace_views(r, rows, cols, x):
    t, v = fresh(), fresh()
    k = r.choice(["odd", "diag", "t"])
    if k == "odd":
        return (
            (
                f"[{t} := {x}.clone(), {v} := {t}[:, ::2], {v}.mul_(2), {t}[:, "
                f"1:].sub_({t}[:, :-1].clone()), {v} + 0, {t}][-1]"
            ),
            [
                (
                    f"[{v} := torch.where(torch.arange({cols}) % 2 == 0, {x} * 2, {x}), {v} - "
                    f"F.pad({v}[:, :-1], (1, 0))][-1]"
                ),
                (
                    f"[{v} := {x} * (2 - torch.arange({cols}) % 2), torch.cat([{v}[:, :1], "
                    f"{v}[:, 1:] - {v}[:, :-1]], 1)][-1]"
                ),
                (
                    f"[{v} := {x} * (2 - torch.arange({cols}) % 2), torch.diff({v}, dim=1, "
                    f"prepend=torch.zeros({rows},1,dtype={x}.dtype))][-1]"
                ),
            ],
            [
                (
                    f"[{v} := torch.where(torch.arange({cols}) % 2 == 1, {x} * 2, {x}), {v} - "
                    f"F.pad({v}[:, :-1], (1, 0))][-1]"
                ),
                (
                    f"[{v} := {x} * (2 - torch.arange({cols}) % 2), torch.cat([{v}[:, :1] - "
                    f"{v}[:, -1:], {v}[:, 1:] - {v}[:, :-1]], 1)][-1]"
                ),
                (
                    f"[{v} := {x} * (2 - torch.arange({cols}) % 2), torch.cat([{v}[:, :1], "
                    f"{x}[:, 1:] - {v}[:, :-1]], 1)][-1]"
                ),
            ],
        )
    if k == "diag":
        m = min(rows, cols)
        return (
            f"[{t} := {x}.clone(), {t}.diagonal().zero_(), {t}][-1]",
            [
                f"torch.where(torch.arange({rows})[:, None] == torch.arange({cols}), 0.0, {x})",
                f"{x} * (1 - torch.eye({rows}, {cols}, dtype={x}.dtype))",
                f"{x} - torch.tril(torch.triu({x}))",
                f"torch.triu({x}, 1) + torch.tril({x}, -1)",
            ],
            [
                f"torch.triu({x}, 1)",
                f"torch.triu({x}, 1) + torch.tril({x}, -2)",
                f"torch.triu({x}) + torch.tril({x}, -1)",
                f"{x} - torch.triu(torch.tril({x}, 1))",
            ],
        )
    return (
        f"[{t} := {x}.clone(), {v} := {t}.t(), {v}[1:].add_(1.0), {t}][-1]",
        [
            f"{x} + (torch.arange({cols}) > 0)",
            f"{x} + torch.arange({cols}).clamp(max=1)",
            f"{x} + torch.arange({cols}).sign()",
        ],
        [
            f"{x} + (torch.arange({rows})[:, None] > 0)",
            f"{x} + (torch.arange({cols}) > 1)",
            f"{x} + 1",
        ],
    )


@term(NUMBER, NUMBER)
def unfolds(r, rows, cols, x):
    return (
        f"F.pad({x}, (1, 1)).unfold(1, 3, 1).mean(-1)",
        [
            f"F.avg_pool1d({x}[None], 3, 1, 1)[0]",
            f"(F.pad({x}, (1, 1))[:, :-2] + {x} + F.pad({x}, (1, 1))[:, 2:]) / 3",
            (
                f"F.conv1d({x}[:, None], torch.full((1, 1, 3), 1/3, dtype={x}.dtype), "
                "padding=1)[:, 0]"
            ),
        ],
        [
            f"F.avg_pool1d({x}[None], 3, 1, 1, count_include_pad=False)[0]",
            f"F.pad({x}, (2, 0)).unfold(1, 3, 1).mean(-1)",
            f"F.pad({x}, (1, 1)).unfold(1, 3, 1).sum(-1)",
            f"F.pad({x}[None], (1, 1), mode='replicate')[0].unfold(1, 3, 1).mean(-1)",
        ],
    )


@term(NUMBER, NUMBER)
def pools(r, rows, cols, x):
    return (
        f"F.max_pool1d({x}[None], 3, 1, 1)[0]",
        [
            f"F.pad({x}, (1, 1), value=float('-inf')).unfold(1, 3, 1).amax(-1)",
            (f"-(F.pad(-{x}[None], (1, 1), mode='replicate')[0].unfold(1, 3, 1).amin(-1))"),
            (
                f"torch.maximum(torch.maximum({x}, torch.cat([{x}[:, :1], {x}[:, :-1]], "
                f"1)), torch.cat([{x}[:, 1:], {x}[:, -1:]], 1))"
            ),
        ],
        [
            f"F.pad({x}, (1, 1)).unfold(1, 3, 1).amax(-1)",
            f"F.max_pool1d({x}[None], 5, 1, 2)[0]",
            f"torch.maximum({x}, torch.cat([{x}[:, :1], {x}[:, :-1]], 1))",
        ],
    )


@term(NUMBER, NUMBER, WHOLE)
def segments(r, rows, cols, x, k):
    i = f"torch.remainder({k}[:, 0], 3)"
    return (
        f"torch.zeros(3, {cols}, dtype={x}.dtype).index_add(0, {i}, {x})[{i}]",
        [
            f"(F.one_hot({i}, 3).to({x}.dtype).t() @ {x})[{i}]",
            f"({i}[:, None] == {i}[None, :]).to({x}.dtype) @ {x}",
        ],
        [
            f"({i}[:, None] >= {i}[None, :]).to({x}.dtype) @ {x}",
            f"torch.zeros(3, {cols}, dtype={x}.dtype).index_copy(0, {i}, {x})[{i}]",
            f"torch.ones(3, {cols}, dtype={x}.dtype).index_add(0, {i}, {x})[{i}]",
        ],
    )


@term(NUMBER, NUMBER, WHOLE)
def embeds(r, rows, cols, x, k):
    i = f"torch.remainder({k}, 7)"
    return (
        f"F.embedding({i}, self.table)[..., 0] * {x}",
        [
            f"self.table[{i}][..., 0] * {x}",
            f"self.table[:, 0][{i}] * {x}",
            f"(F.one_hot({i}, 7).to({x}.dtype) @ self.table)[..., 0] * {x}",
            (
                f"self.table.index_select(0, {i}.reshape(-1)).reshape({rows}, {cols}, 3)[..., "
                f"0] * {x}"
            ),
            f"torch.where({i} == 0, self.table[0, 0], self.table[{i}, 0]) * {x}",
        ],
        [
            f"self.table[{i}][..., 1] * {x}",
            f"torch.where({i} == 0, 0.0, self.table[{i}, 0]) * {x}",
            f"self.table[({i} + 1) % 7, 0] * {x}",
            f"self.table[{i}.clamp(max=5), 0] * {x}",
            f"self.table[{i}.clamp(min=1), 0] * {x}",
        ],
    )


@term(NUMBER, NUMBER)
def reshapes(r, rows, cols, x):
    return (
        f"{x}.reshape({cols}, {rows}).t()",
        [
            f"{x}.t().t().reshape(-1).view({cols}, {rows}).transpose(0, 1)",
            f"{x}.reshape(-1)[torch.arange({rows * cols}).reshape({cols}, {rows}).t()]",
            f"torch.stack({x}.reshape({cols}, {rows}).unbind(1), 0)",
            f"torch.as_strided({x}.clone(memory_format=torch.contiguous_format), ({rows}, {cols}),"
            f" (1, {rows}))",
        ],
        [
            f"{x}",
            f"{x}.t().reshape({rows}, {cols})",
            f"{x}.reshape({cols}, {rows}).t().flip(0)",
            f"{x}.t().contiguous().view({rows}, {cols})",
        ],
    )


@term(NUMBER, NUMBER)
def moves(r, rows, cols, x):
    q = r.choice(["ri", "tril", "diff", "chunk", "rot", "glu", "flip"])
    return {
        "ri": (
            f"torch.repeat_interleave({x}, 2, 1)[:, :{cols}]",
            [
                f"torch.stack([{x}, {x}], 2).reshape({rows}, -1)[:, :{cols}]",
                f"{x}[:, torch.arange({cols}) // 2]",
                f"{x}[:, torch.arange({cols}) >> 1]",
                f"{x}.unsqueeze(-1).expand(-1, -1, 2).flatten(1)[:, :{cols}]",
            ],
            [
                f"{x}.repeat(1, 2)[:, 1:{cols + 1}]",
                f"torch.cat([{x}, {x}], 1)[:, :{cols}]",
                f"{x}[:, (torch.arange({cols}) + 1) // 2]",
            ],
        ),
        "tril": (
            f"torch.tril({x})",
            [
                (
                    f"{x}.masked_fill(torch.arange({cols})[None] > torch.arange({rows})[:, None], "
                    "0.0)"
                ),
                f"{x} - torch.triu({x}, 1)",
                f"torch.triu({x}.t()).t()",
                f"torch.where(torch.ones({rows}, {cols}, dtype=torch.bool).tril(), {x}, 0.0)",
            ],
            [
                f"torch.tril({x}, -1)",
                f"torch.tril({x}, 1)",
                (
                    f"{x}.masked_fill(torch.arange({cols})[None] >= torch.arange({rows})[:, None], "
                    "0.0)"
                ),
                f"torch.triu({x})",
            ],
        ),
        "diff": (
            f"torch.diff({x}, dim=1, prepend={x}[:, :1])",
            [
                f"F.pad({x}[:, 1:] - {x}[:, :-1], (1, 0))",
                f"{x} - torch.cat([{x}[:, :1], {x}[:, :-1]], 1)",
            ],
            [
                f"{x} - torch.roll({x}, 1, 1)",
                f"F.pad({x}[:, 1:] - {x}[:, :-1], (0, 1))",
                f"F.pad({x}[:, :-1] - {x}[:, 1:], (1, 0))",
            ],
        ),
        "chunk": (
            f"torch.cat(list(reversed(torch.chunk({x}, 2, 1))), 1)",
            [
                f"torch.cat([{x}[:, {(cols + 1) // 2}:], {x}[:, :{(cols + 1) // 2}]], 1)",
                f"torch.roll({x}, {cols - (cols + 1) // 2}, 1)",
                f"torch.cat([*torch.tensor_split({x}, [{(cols + 1) // 2}], 1)][::-1], 1)",
            ],
            [
                f"torch.roll({x}, {cols - (cols + 1) // 2 + 1}, 1)",
                f"torch.cat(list(torch.chunk({x}, 2, 1)), 1)",
                f"{x}.flip(1)",
            ],
        ),
        "rot": (
            f"torch.rot90({x}, 2)",
            [
                f"{x}.flip(0, 1)",
                f"{x}.flip(1).flip(0)",
                f"{x}.reshape(-1).flip(0).reshape({rows}, {cols})",
            ],
            [f"{x}.flip(0)", f"{x}.flip(1)", f"torch.rot90({x}, 1).reshape({rows}, {cols})"],
        ),
        "glu": (
            f"F.glu(torch.cat([{x}, {x}.flip(1)], 1), 1)",
            [f"{x} * torch.sigmoid({x}.flip(1))", f"{x} / (1 + torch.exp(-{x}.flip(1)))"],
            [f"{x}.flip(1) * torch.sigmoid({x})", f"{x} * torch.tanh({x}.flip(1))"],
        ),
        "flip": (
            f"{x} + {x}.flip(0)",
            [
                f"{x} + {x}[torch.arange({rows - 1}, -1, -1)]",
                f"({x}.flip(0) + {x}).flip(0)",
                f"{x} + {x}[{rows - 1} - torch.arange({rows})]",
            ],
            [f"{x} + {x}.flip(1)", f"{x} - {x}.flip(0)", f"{x} + torch.roll({x}, 1, 0)"],
        ),
    }[q]
