"""One rank of `isomer-capture train`, in a process of its own."""

import datetime
import importlib.util
import os
import sys

import torch

from ..errors import CaptureError, short
from .counts import install
from .launch import write_rank
from .run import Run


def main(script, function, rank, world, folder, seed, timeout):
    torch.set_num_threads(1)
    torch.manual_seed(seed)  # models start from the same in each plan, where scripts say nothing
    install()
    if world > 1:
        torch.distributed.init_process_group(
            "gloo",
            store=torch.distributed.FileStore(os.path.join(folder, "store"), world),
            rank=rank,
            world_size=world,
            timeout=datetime.timedelta(seconds=timeout),
        )
    sys.argv = [script]
    sys.path.insert(0, os.path.dirname(os.path.abspath(script)))
    spec = importlib.util.spec_from_file_location("training_script", script)
    if spec is None:
        raise CaptureError("%s is no Python file" % script)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    if not callable(getattr(module, function, None)):
        raise CaptureError("%s has no function %s" % (script, function))
    run = Run(rank, world, seed)
    getattr(module, function)(run)
    if run.recorded is None:
        raise CaptureError("%s:%s returns without calling run.step()" % (script, function))
    write_rank(run, folder)
    if world > 1:
        torch.distributed.barrier()


def recorded(script, function, rank, world, folder, seed, timeout):
    """The status with which the rank's process ends; what went wrong is in a file."""
    try:
        main(script, function, rank, world, folder, seed, timeout)
        return 0
    except Exception as e:
        text = str(e) if isinstance(e, CaptureError) else "%s: %s" % (type(e).__name__, short(e))
        path = os.path.join(folder, "rank%d.error" % rank)
        with open(path + ".part", "w") as f:
            f.write(text)
        os.rename(path + ".part", path)
        if os.environ.get("ISOMER_TRACEBACK"):
            raise
        return 2
