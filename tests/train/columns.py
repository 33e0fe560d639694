"""A feed-forward layer whose inner width is cut over ranks, with its output cut by rows: the pair
of docs/ranks.md, for isomer-capture train. With one rank it is the whole layer."""

import torch
import torch.distributed as dist
import torch.nn.functional as F

WIDTH, INNER, ROWS = 8, 16, 16


class Layer(torch.nn.Module):
    def __init__(self, ranks):
        super().__init__()
        self.up = torch.nn.Linear(WIDTH, INNER // ranks, bias=False)
        self.down = torch.nn.Linear(INNER // ranks, WIDTH, bias=False)

    def forward(self, x):
        return self.down(F.gelu(self.up(x)))


def scattered(y, run):
    """Of the ranks' sum the rows of this one."""
    rows = torch.empty(ROWS // run.world, WIDTH)
    dist.reduce_scatter_tensor(rows, y)
    return rows


def own(y, run):
    """The same rows, of what this rank has."""
    return y.chunk(run.world)[run.rank].clone()


def forward(run, rows=scattered):
    n = INNER // run.world
    mine = slice(run.rank * n, (run.rank + 1) * n)

    def part(name, values, held):
        if name.startswith("up"):
            return values((INNER, WIDTH))[mine]
        return values((WIDTH, INNER))[:, mine]

    layer = Layer(run.world)

    def step(x):
        y = layer(x).detach()
        return {"y": rows(y, run) if run.world > 1 else y}

    x = torch.randn(ROWS, WIDTH, generator=torch.Generator().manual_seed(1))
    optimizer = torch.optim.SGD(layer.parameters(), 0.1)
    run.step(step, layer, optimizer, inputs={"x": x}, part=part)


def unreduced(run):
    forward(run, own)
