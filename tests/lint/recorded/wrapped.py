"""A step of a model that PyTorch wraps: `data` replicates it, `sharded` cuts its parameters."""

import sys

import torch
import torch.distributed as dist
from isomer_capture.record import recorded
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("nccl")
rank, n = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.GELU(), torch.nn.Linear(16, 4))
if sys.argv[1] == "data":
    model = DistributedDataParallel(model)
else:
    mesh = init_device_mesh("cpu", (n,), mesh_dim_names=("dp",))
    for layer in (model[0], model[2]):
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
torch.manual_seed(1 + rank)
x = torch.randn(4, 8)


def step():
    loss = model(x).pow(2).mean()
    loss.backward()
    return loss.detach().clone()


step()
model.zero_grad()
with recorded(model, {"x": x}) as r:
    loss = step()
    dist.all_reduce(loss)
    r.output("loss", loss / n)
