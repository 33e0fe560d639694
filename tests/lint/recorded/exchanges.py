"""Collectives of all kinds with results that are used, as a capture: the ranks' outputs are what
the program computed, however it spells a collective."""

import torch
import torch.distributed as dist
from isomer_capture.record import recorded

dist.init_process_group("gloo")
rank, n = dist.get_rank(), dist.get_world_size()
torch.manual_seed(rank)
x = torch.randn(2 * n, 3)
outputs = {}
with recorded(torch.nn.Module(), {"x": x}) as r:
    y = x * 2
    whole = torch.empty(2 * n * n, 3)
    dist.all_gather_into_tensor(whole, y)
    outputs["gathered"] = whole.sum(0)
    parts = [torch.empty(2 * n, 3) for _ in range(n)]
    dist.all_gather(parts, y[:, :])
    outputs["last"] = parts[-1] - y
    stacked = [torch.empty(()) for _ in range(n)]
    dist.all_gather(stacked, y.sum())
    stacked = torch.stack(stacked)
    outputs["stacked"] = stacked
    mine = torch.empty(2, 3)
    dist.reduce_scatter_tensor(mine, y.sin())
    outputs["scattered"] = mine
    swapped = torch.empty_like(y)
    dist.all_to_all_single(swapped, y + rank)
    outputs["swapped"] = swapped
    from_first = y[1].clone()
    dist.broadcast(from_first, 0)
    outputs["from first"] = from_first
    largest = y.clone()
    dist.all_reduce(largest[:2], op=dist.ReduceOp.MAX)
    outputs["largest"] = largest
    sizes = [1 + (rank + k) % 2 for k in range(n)]
    uneven = torch.empty(sum(sizes), 3)
    dist.all_to_all_single(uneven, (y * 5)[: sum(sizes)], sizes, sizes)
    outputs["uneven"] = uneven
    to_one = y + 7
    dist.reduce(to_one, 0)
    collected = [torch.empty(2 * n, 3) for _ in range(n)] if rank == 0 else None
    dist.gather(y.cos(), collected, 0)
    if rank == 0:
        outputs["to one"] = to_one
        outputs["collected"] = torch.stack(collected)
    got = torch.zeros(3)
    works = [dist.irecv(got, (rank - 1) % n), dist.isend(y[0] * 3, (rank + 1) % n)]
    for w in works:
        w.wait()
    outputs["got"] = got + 1
    for name, t in outputs.items():
        r.output(name, t)
