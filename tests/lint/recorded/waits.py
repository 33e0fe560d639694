"""Each collective that goes on by itself: what it brings is read, and what goes out written over,
once it was waited for, or (`early`) before."""

import os
import sys

import torch.distributed as dist

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(HERE)), "support"))
import collectives  # noqa: E402

dist.init_process_group("gloo")
for name in collectives.names():
    work, comes, goes = collectives.post(name, dist.get_world_size())
    if sys.argv[1] != "early":
        work.wait()
    for t in comes:
        t.sum()
    for t in goes:
        t.zero_()
    if sys.argv[1] == "early":
        work.wait()
dist.destroy_process_group()
