"""One rank of a recorded program, in a process of its own. The folder gets rank<r>.json: events,
groups; and what the graph needs."""

import json
import os
import runpy
import sys

import torch.distributed as dist

from .. import record
from ..errors import CaptureError, short
from ..train.counts import install
from .watch import Watch, replace


def start_group(folder, rank, world, backend):
    """The program's init_process_group: the same ranks, on `backend`."""

    def start(original, *args, **kwargs):
        timeout = kwargs.get("timeout")
        how = {"rank": rank, "world_size": world}
        if backend == "fake":
            from torch.testing._internal.distributed.fake_pg import FakeStore

            how["store"] = FakeStore()
        else:
            how["init_method"] = "file://" + os.path.join(folder, "store")
            if timeout is not None:
                how["timeout"] = timeout
        return original(backend, **how)

    return start


def new_group(original, ranks=None, timeout=None, backend=None, *args, **kwargs):
    """Groups are on the backend of all, whatever the program asks for."""
    kwargs.pop("device_id", None)
    kwargs.pop("pg_options", None)
    return original(ranks, timeout, **kwargs)


def world_name(dist):
    return dist.group.WORLD.group_name if dist.is_initialized() else "0"


def run(folder, rank, world, backend, graph, program, args):
    watch = record.ACTIVE = Watch(graph)
    replace(dist.init_process_group, start_group(folder, rank, world, backend))
    replace(dist.new_group, new_group)

    watch.patch()
    install()
    sys.argv = [program] + args
    sys.path.insert(0, os.path.dirname(os.path.abspath(program)))
    with watch:
        try:
            runpy.run_path(program, run_name="__main__")
        except SystemExit as e:
            if e.code not in (None, 0):
                raise CaptureError("the program ends with status %s" % e.code) from None
    held = {"events": watch.events, "world": world_name(dist)}
    if graph:
        if not hasattr(watch, "done"):
            raise CaptureError(
                "the program names nothing that is to be captured: put it inside of "
                "`with isomer_capture.record.recorded(module, inputs)`"
            )
        watch.done.write(os.path.join(folder, "graph"), rank)
    with open(os.path.join(folder, "rank%d.json" % rank), "w", encoding="utf-8") as f:
        json.dump(held, f)


def recorded(folder, rank, world, backend, graph, program, args):
    """The status with which the rank's process ends; what went wrong is in a file."""
    try:
        run(folder, rank, world, backend, graph, program, args)
        return 0
    except BaseException as e:
        text = str(e) if isinstance(e, CaptureError) else "%s: %s" % (type(e).__name__, short(e))
        at = e.__traceback__
        where = ""
        while at is not None:
            if at.tb_frame.f_code.co_filename == program:
                where = " (%s:%d)" % (os.path.basename(program), at.tb_lineno)
            at = at.tb_next
        with open(os.path.join(folder, "error%d" % rank), "w", encoding="utf-8") as f:
            f.write(text + where)
        return 1
