#!/usr/bin/env python3
"""Pairs of captures of real models, and the verdict that is expected in both orders.

    tests/pairs/captures.py [--isomer build/isomer]            those of models/, listed here
    tests/pairs/captures.py [--isomer build/isomer] FOLDER     every pair of every family in FOLDER

A family is a folder of captures of one model, its sides. A side with `bug` in its name is faulty:
`different` from every other side; any two others are `equivalent`. Two faulty sides are not
compared. The last line is `N passed, N failed`."""

import argparse
import os
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
VERDICT = {0: "equivalent", 1: "different", 2: "error", 3: "undecided"}

# left, right, verdict; the place that the first divergence's line must hold on the side with the
# bug (a node, a leaf or a module path), when it is the right side.
PAIRS = [
    ("gpt2-2l/hf-sdpa", "gpt2-2l/vllm", "equivalent", None),
    ("gpt2-2l/hf-sdpa", "gpt2-2l/vllm-kernels", "equivalent", None),
    ("gpt2-2l/vllm", "gpt2-2l/vllm-kernels", "equivalent", None),
    ("gpt2-2l/hf-sdpa", "gpt2-2l/vllm-bug-posoff", "different", "transformer.wpe"),
    ("gpt2-2l/vllm", "gpt2-2l/vllm-bug-posoff", "different", "transformer.wpe"),
    ("gpt2-2l/vllm-kernels", "gpt2-2l/vllm-bug-posoff", "different", "transformer.wpe"),
    ("llama-2l/hf-sdpa", "llama-2l/vllm", "equivalent", None),
    ("llama-2l/hf-sdpa", "llama-2l/vllm-kernels", "equivalent", None),
    ("llama-2l/vllm", "llama-2l/vllm-kernels", "equivalent", None),
    ("llama-2l/hf-sdpa", "llama-2l/vllm-bug-kvswap", "different", "model.layers.0.self_attn"),
    ("llama-2l/hf-sdpa", "llama-2l/vllm-bug-scale", "different", "model.layers.0.self_attn"),
    ("llama-2l/hf-sdpa", "llama-2l/vllm-bug-eps", "different", "model.layers.0.input_layernorm"),
    (
        "llama-2l/hf-sdpa",
        "llama-2l/vllm-bug-normafter",
        "different",
        "model.layers.1.input_layernorm",
    ),
    ("llama-2l/vllm", "llama-2l/vllm-bug-kvswap", "different", "model.layers.0.self_attn"),
    ("llama-2l/vllm", "llama-2l/vllm-bug-scale", "different", "model.layers.0.self_attn"),
    ("llama-2l/vllm", "llama-2l/vllm-bug-eps", "different", "model.layers.0.input_layernorm"),
    ("llama-2l/vllm", "llama-2l/vllm-bug-normafter", "different", "model.layers.1.input_layernorm"),
    ("llama-2l/vllm-kernels", "llama-2l/vllm-bug-eps", "different", None),
    ("llama-2l/vllm-bug-eps", "llama-2l/vllm-bug-scale", "different", None),
    ("gpt2-2l/hf-sdpa", "gpt2-2l/vllm-tp2", "equivalent", None),
    ("gpt2-2l/vllm", "gpt2-2l/vllm-tp2", "equivalent", None),
    ("gpt2-2l/vllm-tp2", "gpt2-2l/vllm-bug-posoff", "different", "transformer.wpe"),
    ("llama-2l/hf-sdpa", "llama-2l/vllm-tp2", "equivalent", None),
    ("llama-2l/vllm-kernels", "llama-2l/vllm-tp2", "equivalent", None),
    (
        "llama-2l/vllm-tp2",
        "llama-2l/vllm-bug-normafter",
        "different",
        "model.layers.1.input_layernorm",
    ),
]

# By the right side's name: the words of the hint, as a pattern. The left is right.
WORDS = {
    "llama-2l/vllm-bug-kvswap": r"(k_proj.* and .*v_proj|part 1 .* and part 2 .*) are exchanged in "
    r".*qkv_proj",
    "llama-2l/vllm-bug-normafter": r" reads .*layers\.0\.input_layernorm\.weight.* where the left "
    r"reads .*layers\.1\.input_layernorm\.weight",
    "gpt2-2l/vllm-bug-posoff": r"rows of .*wpe\.weight.* the left's 1 position further",
}


def families(folder):
    """(left, right, verdict) of all pairs."""
    for family in sorted(os.listdir(folder)):
        where = os.path.join(folder, family)
        if not os.path.isdir(where):
            continue
        sides = sorted(
            s for s in os.listdir(where) if os.path.exists(os.path.join(where, s, "graph.json"))
        )
        for i, left in enumerate(sides):
            for right in sides[i + 1 :]:
                faulty = ("bug" in left) + ("bug" in right)
                if faulty < 2:
                    yield (
                        os.path.join(family, left),
                        os.path.join(family, right),
                        "different" if faulty else "equivalent",
                    )


def compare(isomer, folder, left, right, order):
    a, b = os.path.join(folder, left), os.path.join(folder, right)
    start = time.monotonic()
    p = subprocess.run(
        [isomer, "compare", *((b, a) if order else (a, b))],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    out, err = (
        p.stdout.decode("utf-8", "replace").strip(),
        p.stderr.decode("utf-8", "replace").strip(),
    )
    return (
        VERDICT.get(p.returncode, "status %d" % p.returncode),
        (out or err).rsplit("\n", 1)[-1],
        time.monotonic() - start,
        " ".join(out.partition("first divergence:")[2].strip().split("\n")[:3]),
    )


def main():
    a = argparse.ArgumentParser(description="pairs of captures")
    a.add_argument("folder", nargs="?", help="of families; without it, models/")
    a.add_argument("--isomer", default=os.path.join(ROOT, "build", "isomer"))
    a.add_argument("--only", default="", help="pairs with this in one of their names")
    a.add_argument(
        "--without", action="append", default=[], help="no pair with this in one of its names"
    )
    a.add_argument("--both", action="store_true", help="both orders of each")
    a.add_argument("--jobs", type=int, default=min(2, os.cpu_count() or 1))
    a = a.parse_args()
    folder = a.folder or os.path.join(ROOT, "models")
    pairs = [(*p, None) for p in families(folder)] if a.folder else PAIRS
    pairs = [
        p
        for p in pairs
        if a.only in p[0] + " " + p[1] and not any(w in p[0] + " " + p[1] for w in a.without)
    ]
    pairs = [p + (order,) for p in pairs for order in range(1 + a.both)]
    passed = failed = 0
    with ThreadPoolExecutor(a.jobs) as pool:
        for p, (got, says, seconds, place) in zip(
            pairs, pool.map(lambda p: compare(a.isomer, folder, p[0], p[1], p[4]), pairs)
        ):
            named = p[4] or p[3] is None or p[3] in place and re.search(WORDS.get(p[1], ""), place)
            ok = got == p[2] and bool(named)
            passed, failed = passed + ok, failed + (not ok)
            left, right = (p[1], p[0]) if p[4] else p[:2]
            print(
                "%-6s %-32s %-32s %6.1f s  %s"
                % (
                    "ok" if ok else "FAILED",
                    left,
                    right,
                    seconds,
                    says if ok else "expected %s: %s: %s" % (p[2], says, place),
                ),
                flush=True,
            )
    print("%d passed, %d failed" % (passed, failed))
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
