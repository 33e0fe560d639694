#!/usr/bin/env python3
"""Pairs of the size of real models, with random weights, and what comparing them costs. Needs a
Python with PyTorch.

    tests/bench/real.py [--isomer build/isomer] [--only gpt2|qwen2] [--layers N] [--folder DIR]
    [--rounds 1]

GPT-2 (124M: 12 layers of width 768, 50257 words) and Qwen2-0.5B (24 layers of width 896, 14 heads
over 2, 151936 words) as Transformers and as vLLM run them. The graphs are those of models/, their
last layer repeated (stack.py), their sizes replaced; Llama's becomes Qwen2's by biases behind the
three projections and one table for words in and out. The weights are drawn here, the same for both
sides, fused and transposed as each side stores them: gigabytes in --folder (a temporary one by
default).

Of each pair: seconds of wall clock and of processor, and peak resident memory. Limits: 11 s and 23
s of processor on two cores that nobody else uses; the float64 size of one side's weights and 2 GiB.
Exit status 1 where one is exceeded or the pair is not equivalent."""

import argparse
import json
import math
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import time

import torch

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, HERE)
import stack  # noqa: E402

SIDES = "hf-sdpa", "vllm"
# from, layers, sizes (what stands in the small graph: what it becomes), seconds
MODELS = {
    "gpt2": (
        "gpt2-2l",
        12,
        {48: 768, 144: 2304, 192: 3072, 12: 64, 4: 12, 300: 50257, 320: 50304, 40: 1024},
        11,
    ),
    "qwen2": (
        "llama-2l",
        24,
        {
            48: 896,
            24: 128,
            96: 1152,
            128: 4864,
            256: 9728,
            12: 64,
            6: 32,
            4: 14,
            192: 151936,
            128 * 128: 32768,
        },
        23,
    ),
}
THETA = 1e6
LEAVES = "parameter", "buffer", "constant", "input"


def resize(value, sizes):
    """Sizes stand in lists, in arguments and in attributes; floats, flags and references stay."""
    if isinstance(value, bool) or isinstance(value, float):
        return value
    if isinstance(value, int):
        return sizes.get(value, value)
    if isinstance(value, list):
        return [resize(v, sizes) for v in value]
    if isinstance(value, dict):
        return {k: v if k in ("ref", "dtype") else resize(v, sizes) for k, v in value.items()}
    return value


def rescale(value, was, now):
    """Attention's scale is a float of the head's size."""
    if isinstance(value, dict):
        return {k: rescale(v, was, now) for k, v in value.items()}
    return now if isinstance(value, float) and abs(value - was) < 1e-12 else value


def enlarge(graph, name, sizes):
    for n in graph["nodes"]:
        for o in n["outputs"]:
            o["shape"] = resize(o["shape"], sizes)
        for k in ("args", "kwargs", "attributes"):
            if k in n:
                n[k] = rescale(resize(n[k], sizes), 12**-0.5, 64**-0.5)
    if name == "qwen2":
        biases(graph)
        tie(graph)
        for n in graph["nodes"]:
            if n["op"] == "buffer":
                n["outputs"][0]["shape"] = [32] if n["name"].endswith("inv_freq") else [4096, 64]


def biases(graph):
    """Qwen2's projections of queries, keys and values have one."""
    by_id, new = {n["id"]: n for n in graph["nodes"]}, []
    for n in graph["nodes"]:
        if n["op"] != "aten::linear":
            continue
        w = by_id[n["args"][1]["ref"]]
        if w["name"].split(".")[-2] in ("q_proj", "k_proj", "v_proj", "qkv_proj"):
            b = dict(
                w,
                id=w["id"] + "_bias",
                name=w["name"].replace(".weight", ".bias"),
                outputs=[{"shape": w["outputs"][0]["shape"][:1], "dtype": "float32"}],
            )
            n["args"] = n["args"][:2] + [{"ref": b["id"]}]
            new.append(b)
    graph["nodes"] = new + graph["nodes"]


def tie(graph):
    """Words in and out are one table."""
    words, head = (
        next(n for n in graph["nodes"] if n.get("name") == x)
        for x in ("model.embed_tokens.weight", "lm_head.weight")
    )
    text = json.dumps(graph["nodes"]).replace(
        json.dumps({"ref": words["id"]}), json.dumps({"ref": head["id"]})
    )
    graph["nodes"] = [n for n in json.loads(text) if n["id"] != words["id"]]


def drawn(name, shape, scale):
    seed = int.from_bytes(name.encode()[-7:], "little") ^ hash_of(name)
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)) * scale


def hash_of(text):
    h = 1469598103934665603
    for c in text.encode():
        h = (h ^ c) * 1099511628211 % (1 << 62)
    return h


def rotary(name, shape):
    freq = 1.0 / THETA ** (torch.arange(0, 64, 2, dtype=torch.float32) / 64)
    if name.endswith("inv_freq"):
        return freq
    angle = torch.arange(shape[0], dtype=torch.float32)[:, None] * freq[None]
    return torch.cat([angle.cos(), angle.sin()], -1)


def tensor(name, shape):
    """The values of a leaf: a function of its name, so that both sides' parts agree."""
    if "rotary_emb" in name:
        return rotary(name, shape)
    for fused, parts in (
        ("qkv_proj", ("q_proj", "k_proj", "v_proj")),
        ("gate_up_proj", ("gate_proj", "up_proj")),
    ):
        if fused in name:
            rows = [896, 128, 128] if fused == "qkv_proj" else [4864, 4864]
            return torch.cat(
                [tensor(name.replace(fused, p), [r] + shape[1:]) for p, r in zip(parts, rows)]
            )
    kind, scale = name.split(".")[-1], 0.02
    if "norm" in name or ".ln_" in name:
        return (kind == "weight") + drawn(name, shape, 0.05)
    if (
        name.startswith("transformer.h") and kind == "weight"
    ):  # stored one way by Transformers, the other by vLLM
        return drawn(name, shape, scale)
    return drawn(name, shape, scale if kind == "weight" else 0.05)


def leaf(name, shape, side):
    if name == "lm_head.weight" and shape[0] == 50304:  # vLLM pads its tables
        return torch.cat([tensor(name, [50257, shape[1]]), torch.zeros(47, shape[1])])
    if (
        name.startswith("transformer.h.")
        and name.endswith("weight")
        and len(shape) == 2
        and side == "vllm"
    ):
        return tensor(name, shape[::-1]).t().contiguous()
    return tensor(name, shape)


def write(path, tensors):
    """`tensors`: (name, shape, function that gives it): one at a time is in memory. Returns how
    many elements."""
    head, at = {}, 0
    for name, shape, dtype, _ in tensors:
        size = math.prod(shape) * (8 if dtype == "I64" else 4)
        head[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(head).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        for name, shape, _, make in tensors:
            t = make().contiguous()
            assert list(t.shape) == list(shape), (name, t.shape, shape)
            f.write(memoryview(t.reshape(-1).view(torch.uint8).numpy()))
    return at // 4


def make(name, side, to, layers):
    source, depth, sizes, _ = MODELS[name]
    with tempfile.TemporaryDirectory() as tmp:
        small = os.path.join(tmp, "small")
        stack.make(os.path.join(ROOT, "models", source, side), small, layers or depth)
        graph = json.load(open(os.path.join(small, "graph.json"), encoding="utf-8"))
    enlarge(graph, name, sizes)
    os.makedirs(to)
    leaves = [
        (n["name"], n["outputs"][0]["shape"]) for n in graph["nodes"] if n["op"] in LEAVES[:3]
    ]
    count = write(
        os.path.join(to, "weights.safetensors"),
        [(n, s, "F32", lambda n=n, s=s: leaf(n, s, side)) for n, s in leaves],
    )
    ids = torch.tensor([31, 7, 299, 12, 150, 3, 88]) * 163
    inputs = [(n["name"], n["outputs"][0]["shape"]) for n in graph["nodes"] if n["op"] == "input"]
    write(
        os.path.join(to, "inputs.safetensors"),
        [
            (
                n,
                s,
                "I64",
                lambda n=n, s=s: (torch.arange(7) if n == "positions" else ids).reshape(s),
            )
            for n, s in inputs
        ],
    )
    with open(os.path.join(to, "graph.json"), "w", encoding="utf-8") as f:
        json.dump(graph, f)
    return count


def compare(isomer, left, right):
    """(wall seconds, processor seconds, peak bytes, status, last line)"""
    start = time.monotonic()
    with tempfile.TemporaryFile() as out:
        p = subprocess.Popen(
            [isomer, "compare", left, right],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
        )
        _, status, used = os.wait4(p.pid, 0)
        p.returncode = os.waitstatus_to_exitcode(status)
        wall = time.monotonic() - start
        out.seek(0)
        last = out.read().decode("utf-8", "replace").strip().rsplit("\n", 1)[-1]
    return wall, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024, p.returncode, last


def main():
    a = argparse.ArgumentParser(description="real sizes")
    a.add_argument("--isomer", default=os.path.join(ROOT, "build", "isomer"))
    a.add_argument("--only", default="")
    a.add_argument("--layers", type=int)
    a.add_argument("--rounds", type=int, default=1)
    a.add_argument("--folder", help="make the captures here, or take those that are there")
    a = a.parse_args()
    folder, failed = a.folder or tempfile.mkdtemp(), 0
    try:
        for name, (_, _, _, limit) in MODELS.items():
            if a.only not in name:
                continue
            paths = [os.path.join(folder, name, side) for side in SIDES]
            for side, path in zip(SIDES, paths):
                if not os.path.exists(path):
                    make(name, side, path, a.layers)
            count = os.path.getsize(os.path.join(paths[0], "weights.safetensors")) / 4
            wall, cpu, peak, status, last = min(compare(a.isomer, *paths) for _ in range(a.rounds))
            room = 8 * count + (2 << 30)
            ok = status == 0 and cpu <= limit and peak <= room
            failed += not ok
            print(
                (
                    "%-6s %-6s %4.0fM parameters: %.1f s, processor %.1f s of %d, peak %.2f GiB of "
                    "%.2f; %s"
                )
                % (
                    "ok" if ok else "OVER",
                    name,
                    count / 1e6,
                    wall,
                    cpu,
                    limit,
                    peak / 2**30,
                    room / 2**30,
                    last,
                ),
                flush=True,
            )
    finally:
        if not a.folder:
            shutil.rmtree(folder)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
