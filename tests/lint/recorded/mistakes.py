"""Programs of which nothing can be recorded."""

import sys

import torch
import torch.distributed as dist
from isomer_capture.record import recorded

dist.init_process_group("nccl")
rank, t = dist.get_rank(), torch.ones(2)
if sys.argv[1] == "any":
    dist.send(t, 1) if rank == 0 else dist.recv(t)
elif sys.argv[1] == "hang":
    dist.recv(t, 1 - rank)
elif sys.argv[1] == "status":
    sys.exit(3)
elif sys.argv[1] == "numbers":
    with recorded(torch.nn.Module(), {"t": t}) as r:
        r.output("y", torch.tensor((t * 2).tolist()))
