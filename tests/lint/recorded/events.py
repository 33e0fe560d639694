"""Performs a file of events: what is recorded of that are these events."""

import json
import os
import sys

import torch.distributed as dist

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from gloo_programs import perform

with open(sys.argv[1], encoding="utf-8") as f:
    ranks = json.load(f)["ranks"]
dist.init_process_group("nccl")
perform(ranks[dist.get_rank()])
dist.destroy_process_group()
