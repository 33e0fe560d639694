"""Tables of torch's own pipeline schedules, with the messages that torch adds. Needs torch.

tests/lint/torch_tables.py FOLDER     writes NAME-RANKS-STAGES-MICROBATCHES.{compute,comms}.csv"""

import csv
import os
import sys


class Stage:
    """As much of a stage as the schedules' constructors look at."""

    def __init__(self, index, stages, size):
        import torch

        self.stage_index, self.num_stages, self.group_size = index, stages, size
        self.is_first, self.is_last = index == 0, index == stages - 1
        self.group_rank, self.submod = 0, torch.nn.Identity()
        self.device, self.group, self.has_backward = "cpu", None, True
        self.stage_index_to_group_rank = {}


def placement(name, ranks, stages):
    """The rank of each stage."""
    if name in ("ZBVZeroBubble", "DualPipeV"):
        return {s: s if s < ranks else 2 * ranks - 1 - s for s in range(stages)}
    return {s: s % ranks for s in range(stages)}


def computations(name, ranks, stages, microbatches):
    """The order of computations that torch makes."""
    from torch.distributed.pipelining import schedules as S

    owner = placement(name, ranks, stages)
    mine = [Stage(s, stages, ranks) for s in range(stages) if owner[s] == 0]
    single = name in ("GPipe", "1F1B")
    made = S.get_schedule_class(name)(mine[0] if single else mine, microbatches, lambda *a: None)
    return made._get_pipeline_order() if single else made.pipeline_order


def mended(name, order):
    """torch 2.13's table of 1F1B has its last rank begin with microbatch 1, and end with one too
    many."""
    last = order[max(order)]
    forward = [a for a in last if a and a.computation_type.value == "F"]
    if name != "1F1B" or forward[0].microbatch_index != 1:
        return order
    return {
        **order,
        max(order): [
            a._replace(microbatch_index=a.microbatch_index - 1) if a in forward else a for a in last
        ],
    }


def orders(name, ranks, stages, microbatches):
    """The computations of each rank, and the same with messages."""
    from torch.distributed.pipelining import schedules as S

    owner = placement(name, ranks, stages)
    compute = mended(name, computations(name, ranks, stages, microbatches))
    comms = {
        r: S._add_unshard_reshard(
            [a for a in compute[r] if a and a.computation_type != S.REDUCE_GRAD]
        )
        for r in compute
    }
    comms = {r: S._add_reduce_grad(comms[r], microbatches) for r in comms}
    return compute, S._add_send_recv(comms, lambda s: owner[s], stages)


def deferred(name, ranks, stages, microbatches):
    """The same with receives as late as torch can put them."""
    from torch.distributed.pipelining import schedules as S

    owner = placement(name, ranks, stages)
    return S._defer_recv_ops(orders(name, ranks, stages, microbatches)[1], lambda s: owner[s])


def cases(ranks_of=(2, 4)):
    for ranks in ranks_of:
        for m in (ranks, 2 * ranks):
            yield "GPipe", ranks, ranks, m
            yield "1F1B", ranks, ranks, m
            yield "LoopedBFS", ranks, 2 * ranks, m
            yield "Interleaved1F1B", ranks, 2 * ranks, m
            yield "InterleavedZeroBubble", ranks, 2 * ranks, m
            yield "ZBVZeroBubble", ranks, 2 * ranks, m
        yield "DualPipeV", ranks, 2 * ranks, 2 * ranks
        yield "DualPipeV", ranks, 2 * ranks, 3 * ranks


def write(path, order):
    with open(path, "w", newline="") as f:
        out = csv.writer(f)
        for r in sorted(order):
            out.writerow(order[r])


def main(folder, *ranks):
    for name, r, s, m in cases([int(x) for x in ranks] or (2, 4)):
        compute, comms = orders(name, r, s, m)
        stem = os.path.join(folder, "%s-%d-%d-%d" % (name, r, s, m))
        write(stem + ".compute.csv", compute)
        write(stem + ".comms.csv", comms)
        write(stem + ".deferred.csv", deferred(name, r, s, m))


if __name__ == "__main__":
    main(*sys.argv[1:])
