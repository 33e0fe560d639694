"""Captures of ranks as graphs of version 3, by what `isomer-capture train --rank roles` does."""

import importlib.util
import json
import os

from tensors import read_tensors, write_tensors

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def module():
    """It needs no PyTorch, and its package does."""
    path = os.path.join(ROOT, "capture", "isomer_capture", "train", "roles.py")
    spec = importlib.util.spec_from_file_location("roles_of_ranks", path)
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


def write(capture, out, ranks):
    """The capture again, with what its ranks have in common once. Raises NotOne."""
    with open(os.path.join(capture, "graph.json")) as f:
        graph = json.load(f)
    files = ("inputs.safetensors", "weights.safetensors")
    leaves = [read_tensors(os.path.join(capture, name)) for name in files]
    graph, kept = module().as_roles(graph, dict(leaves[0], **leaves[1]), ranks, lambda a, b: a == b)
    os.makedirs(out, exist_ok=True)
    with open(os.path.join(out, "graph.json"), "w") as f:
        json.dump(graph, f)
    kinds = {n["name"]: n["op"] for n in graph["nodes"] if "name" in n}
    for k, name in enumerate(files):
        own = {}
        for n, t in kept.items():
            kind = kinds.get(n) or kinds[n.split(".", 1)[1]]
            if (kind == "input") == (k == 0):
                own[n] = t
        write_tensors(os.path.join(out, name), own)
