"""Training steps of several ranks as captures: `isomer-capture train` (docs/training.md).

launch.py    the ranks as processes (../forked.py), and their recordings as one capture
rank.py      one of those processes          run.py      what a script is handed
recorder.py  every operator of a step        memory.py   what buffers and views hold
graph.py     nodes as graph.json has them    foreach.py, fsdp.py   operators of lists, of shards
flat.py      element-wise operators on buffers of several tensors
fused.py     kernels of whole optimizers, as their formulas
norms.py     batch norm, with what it writes
comm.py      collectives of one rank         join.py     those of all, as dataflow
flight.py    memory that a collective still works on, and its waits
counts.py    numbers of ranks        placements.py   what DTensors say of themselves
roles.py     ranks of one program as one
taken.py     numbers that are read out of tensors and computed with
replay.py    what is written must compute what the ranks computed"""

from ..errors import CaptureError
from .launch import train
from .run import Run

__all__ = ["Run", "run", "train"]


def run(options):
    """The command. Returns the graph, and nothing else."""
    script, _, function = options.script.rpartition(":")
    if not script:
        raise CaptureError("%s is no SCRIPT:FUNCTION" % options.script)
    graph = train(
        script,
        function,
        options.world,
        options.out,
        as_roles=options.rank == "roles",
        seed=options.seed,
        timeout=options.timeout,
        name=options.name,
    )
    return graph, None
