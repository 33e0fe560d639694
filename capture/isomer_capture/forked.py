"""The ranks of a program as processes that are forked from this one, which has loaded PyTorch: to
load it takes a rank longer than a small step does. This one must not have computed anything yet:
PyTorch's threads do not survive a fork."""

import multiprocessing
import os
import random
import sys


HERE = "isomer_capture/forked.py"  # what stands above it in a stack is not the rank's


def start(main, *args, log=None, environment=None):
    """A process that ends with the status that main(*args) returns; both streams go to `log`."""
    process = multiprocessing.get_context("fork").Process(
        target=run, args=(main, args, log, environment or {})
    )
    process.start()
    return process


def run(main, args, log, environment):
    os.environ.update(environment)
    random.seed()  # else all ranks would draw what one draws
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed()
    if log is not None:
        out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
        os.dup2(out, 1)
        os.dup2(out, 2)
        os.close(out)
    status = main(*args)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)  # another rank may have ended without this one


def end(processes):
    """Those that still run are stopped."""
    for p in processes:
        p.kill()
        p.join()
