"""Two steps of a pipeline by torch's own schedule."""

import sys

import torch
import torch.distributed as dist
from torch.distributed import pipelining

dist.init_process_group("nccl")
rank, n = dist.get_rank(), dist.get_world_size()
layer = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU())
stage = pipelining.PipelineStage(layer, rank, n, torch.device("cpu"))
schedule = getattr(pipelining, sys.argv[1])(stage, 4, loss_fn=lambda y, t: (y - t).pow(2).mean())
for _ in range(2):
    if rank == 0:
        schedule.step(torch.randn(8, 4))
    else:
        schedule.step(target=torch.randn(8, 4), losses=[])
dist.destroy_process_group()
