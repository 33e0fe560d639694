#!/usr/bin/env python3
"""The yardstick of `isomer run --float64 --propagate`: the same nodes in a loop in Python, with
PyTorch.

    tests/bench/loop.py CAPTURE [--kernels build/libisomer_kernels.so]

Reads a capture, runs every node in float64 in order and prints a line per output and the processor
time that it took, from the files to there: importing PyTorch is left out, whose seconds would drown
it. One thread, values let go after their last use, as in `isomer run`."""

import argparse
import json
import os
import struct
import sys
import time

import torch

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "mutation"))
from graph import DTYPES, argument, overload, refs  # noqa: E402


def read_tensors(path):
    data = bytearray(open(path, "rb").read())
    n = struct.unpack("<Q", data[:8])[0]
    out = {}
    for k, v in json.loads(data[8 : 8 + n]).items():
        if k == "__metadata__":
            continue
        begin, end = v["data_offsets"]
        t = torch.empty(v["shape"], dtype=DTYPES[v["dtype"]])
        if end > begin:
            t = torch.frombuffer(
                data, dtype=DTYPES[v["dtype"]], count=t.numel(), offset=8 + n + begin
            ).reshape(v["shape"])
        out[k] = t.double() if t.dtype.is_floating_point else t
    return out


def call(node, found):
    """A function of the values: the operator, or for a kernel outside PyTorch its overload that
    takes attributes."""
    op = node["op"]
    if "attributes" not in node:
        f = found[op] = found.get(op) or overload(op)
        return lambda v: f(
            *[argument(a, v) for a in node["args"]],
            **{k: argument(a, v) for k, a in node["kwargs"].items()},
        )
    f = overload(op + ".isomer")
    tensors = [a for a in node["args"] if isinstance(a, dict) and "ref" in a]
    return lambda v: f(*[argument(a, v) for a in tensors], **node["attributes"])


def main():
    a = argparse.ArgumentParser(description="run a capture's nodes in Python, in float64")
    a.add_argument("capture")
    a.add_argument("--kernels")
    a = a.parse_args()
    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float64)
    if a.kernels:
        torch.ops.load_library(a.kernels)
    start = time.process_time()
    graph = json.load(open(os.path.join(a.capture, "graph.json"), encoding="utf-8"))
    leaves = {
        **read_tensors(os.path.join(a.capture, "weights.safetensors")),
        **read_tensors(os.path.join(a.capture, "inputs.safetensors")),
    }
    last = {}
    for i, n in enumerate(graph["nodes"]):
        for r in refs([n.get("args", []), n.get("kwargs", {})]):
            last[r["ref"]] = i
    keep = {o["ref"] for o in graph["outputs"]}
    values, found = {}, {}
    with torch.inference_mode():
        for i, n in enumerate(graph["nodes"]):
            if "args" not in n:
                values[n["id"]] = leaves[n["name"]]
            elif n["op"] == "getitem":
                values[n["id"]] = values[n["args"][0]["ref"]][n["args"][1]]
            else:
                values[n["id"]] = call(n, found)(values)
            for r in {r["ref"] for r in refs([n.get("args", []), n.get("kwargs", {})])}:
                if last[r] == i and r not in keep:
                    del values[r]
    for o in graph["outputs"]:
        t = values[o["ref"]]
        print(o["name"], list(t.shape), "sum %.9g" % t.sum().item())
    print("processor seconds %.6f" % (time.process_time() - start))


if __name__ == "__main__":
    main()
