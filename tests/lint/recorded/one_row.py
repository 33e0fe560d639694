"""ZeRO-1 by hand, a row of the batch on each rank: the mean's numbers are constants of one row,
which fit many rows as they do one. `undivided`: the sum of the ranks' gradients is taken for their
mean."""

import sys

import torch
import torch.distributed as dist
from isomer_capture.record import recorded

fault = sys.argv[1]
dist.init_process_group("gloo")
rank, n = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
layer = torch.nn.Linear(8, 8, bias=False)
x, t = (torch.randn(n, 8)[rank : rank + 1].clone() for _ in range(2))
with recorded(layer, {"x": x, "t": t}, {"x": "S(0)", "t": "S(0)", "weight": "R"}) as r:
    loss = (layer(x) - t).pow(2).mean()
    (gradient,) = torch.autograd.grad(loss, [layer.weight])
    mine = torch.empty(64 // n)
    dist.reduce_scatter_tensor(mine, gradient.reshape(-1).contiguous())
    if fault != "undivided":
        mine = mine / n
    part = layer.weight.detach().reshape(-1).chunk(n)[rank] - 0.1 * mine
    whole = torch.empty(64)
    dist.all_gather_into_tensor(whole, part.contiguous())
    r.output("updated.weight", whole.view(8, 8))
