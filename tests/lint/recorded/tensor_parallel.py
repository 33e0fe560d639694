"""A step of a tensor-parallel layer, forward and backward. `sum`: the gradient of what all ranks
read is not summed; `early`: a sum is read before it has ended."""

import sys

import torch
import torch.distributed as dist
from isomer_capture.record import recorded

fault = sys.argv[1]
dist.init_process_group("nccl")
rank, n = dist.get_rank(), dist.get_world_size()


class Reduced(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = x.clone()
        dist.all_reduce(y)
        return y

    @staticmethod
    def backward(ctx, g):
        return g


class Copied(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, g):
        if fault == "sum":
            return g
        g = g.clone()
        work = dist.all_reduce(g, async_op=True)
        early = g * 1 if fault == "early" else None
        work.wait()
        return early if fault == "early" else g


class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.norm = torch.nn.Linear(8, 8)
        up, down = torch.randn(8 * n, 8), torch.randn(8, 8 * n)
        self.up = torch.nn.Parameter(up.chunk(n, 0)[rank].clone())
        self.down = torch.nn.Parameter(down.chunk(n, 1)[rank].clone())
        self.bias = torch.nn.Parameter(torch.randn(8))

    def forward(self, x):
        h = torch.nn.functional.gelu(Copied.apply(self.norm(x)) @ self.up.t())
        return Reduced.apply(h @ self.down.t()) + self.bias


layer, x = Layer(), torch.randn(4, 8)
with recorded(layer, {"x": x}) as r:
    loss = layer(x).pow(2).mean()
    loss.backward()
    r.output("loss", loss)
