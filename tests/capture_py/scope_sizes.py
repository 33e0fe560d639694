#!/usr/bin/env python3
"""Claimed scopes of families of Transformers, run: each family is captured with eager attention and
with sdpa, length and batch open, and compared. What the verdict is for is held against execution:
both graphs are run by PyTorch, in float64, at the corners of the scope and at sizes drawn from it,
and their outputs must be one. `isomer check` must say the same scope of the certificate.

    tests/capture_py/scope_sizes.py [--isomer build/isomer] [--sizes 50] [--seed S] [--vllm PYTHON]
                                    [--captures DIR] [--table FILE] [--pair LEFT RIGHT] [FAMILY...]

--vllm: Transformers against vLLM in place of eager against sdpa, by a Python with both; only the
length is open. --captures: where captures are kept and, where they are there, read. --table: what
came out, in Markdown. --pair: two captures in place of families. A verdict for the captured sizes
alone is listed with what holds it back, and is no failure. The last line: `N passed, N failed`."""

import argparse
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time

import torch

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "mutation"))
import graph  # noqa: E402

FAMILIES = "gpt2 llama mistral qwen2 gemma phi opt gpt_neox".split()
MOST = 1 << 22  # elements of the largest tensor that is made
LONGEST = 1200  # of a symbol that nothing bounds
TOLERANCE = 1e-6  # of the largest element: tables were rounded when they were stored


def evaluated(value, symbols):
    """What arguments, shapes and domains are at these sizes."""
    if isinstance(value, dict):
        if set(value) == {"size"}:
            return at(value["size"], symbols)
        return {k: evaluated(v, symbols) for k, v in value.items()}
    return [evaluated(v, symbols) for v in value] if isinstance(value, list) else value


def at(text, symbols):
    names = {"__builtins__": {"min": min, "max": max}}
    return eval(text, names, symbols) if isinstance(text, str) else text


def moved(path, symbols):
    """The graph of a capture with these values for its symbols."""
    g = graph.Graph(path)
    for n in g.nodes:
        for key in ("args", "kwargs", "attributes", "domain"):
            if key in n:
                n[key] = evaluated(n[key], symbols)
        for o in n["outputs"]:
            o["shape"] = [at(d, symbols) for d in o["shape"]]
    g.index()
    return g


def elements(g):
    most = 0
    for n in g.nodes:
        for o in n["outputs"]:
            k = 1
            for d in o["shape"]:
                k *= d
            most = max(most, k)
    return most


def drawn(g, generator):
    """Inputs by name, within their domains."""
    out = {}
    for n in g.nodes:
        if n["op"] != "input":
            continue
        shape, was = n["outputs"][0]["shape"], g.inputs[n["name"]]
        low, high = n.get("domain", {}).get("range", (0, 1))
        if was.dtype.is_floating_point:
            t = torch.randn(shape, generator=generator, dtype=torch.float64)
        elif was.dtype == torch.bool:
            t = torch.ones(shape, dtype=torch.bool)
        else:
            t = torch.randint(low, high + 1, shape, generator=generator, dtype=was.dtype)
        out[n["name"]] = t
    return out


def shaped(inputs, g):
    """The inputs of one graph as the other one takes them: vLLM has no batch."""
    return {
        n["name"]: inputs[n["name"]].reshape(n["outputs"][0]["shape"])
        for n in g.nodes
        if n["op"] == "input"
    }


def apart(left, right, symbols, seed):
    """By how much the outputs differ, relative; None: the graphs are too large there, or a side is
    undefined (a table has no such row), of which nothing is claimed."""
    g = [moved(path, symbols) for path in (left, right)]
    if max(map(elements, g)) > MOST:
        return None
    inputs = drawn(g[0], torch.Generator().manual_seed(seed))
    for x in g:
        x.inputs = shaped(inputs, x)
    try:
        a, b = (list(x.run().values()) for x in g)
    except (RuntimeError, IndexError):
        return None
    worst = 0.0
    for x, y in zip(a, b, strict=True):
        if x.numel() != y.numel():
            return float("inf")
        y = y.reshape(x.shape)
        if x.numel():
            worst = max(worst, float((x - y).abs().max() / x.abs().max().clamp(min=1e-30)))
    return worst


def points(ranges, rng):
    """Corners first, and then sizes drawn: most of them small."""
    low = {n: r[0] for n, r in ranges.items()}
    high = {n: min(r[1] or LONGEST, LONGEST) for n, r in ranges.items()}
    yield low
    for n in ranges:
        yield dict(low, **{n: low[n] + 1})
        yield dict(low, **{n: high[n]})
    while True:
        most = rng.choice([8, 40, 300])
        yield {n: rng.randint(low[n], min(high[n], low[n] + most)) for n in ranges}


def report_of(isomer, sides, certificate):
    done = subprocess.run(
        [isomer, "compare", *sides, "--json", "-", "--certificate", certificate],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    return json.loads(done.stdout) if done.stdout else {"verdict": done.stderr.strip(), "scope": {}}


def scope_of(report):
    """Ranges by symbol that an equivalence is for; None: the captured sizes."""
    text = report["scope"].get("text", "captured sizes")
    if report["verdict"] != "equivalent" or text == "captured sizes":
        return None
    out = {}
    for part in text.split(" where ")[0].split(", "):
        m = re.fullmatch(r"(\w+) >= (\d+)", part)
        if m:
            out[m[1]] = (int(m[2]), None)
        else:
            m = re.fullmatch(r"(\d+) <= (\w+) <= (\d+)", part)
            out[m[2]] = (int(m[1]), int(m[3]))
    return out


def judge(o, what, sides, folder, table):
    """(whether it is for all sizes, what is wrong or None). Prints a line, and adds a row."""
    begin = time.time()
    certificate = os.path.join(folder, "c.json")
    report = report_of(o.isomer, sides, certificate)
    ranges, text = scope_of(report), report["scope"].get("text")
    if ranges is None:
        held = report["scope"].get("held_back_by") or [report.get("reason") or ""]
        print("%-12s %s, %s: %s" % (what, report["verdict"], text, held[0]))
        seconds = time.time() - begin
        table.append((what, report["verdict"], text or "", "", "%.1f" % seconds, held[0]))
        return False, None
    check = subprocess.run(
        [o.isomer, "check", certificate, *sides, "-q"], stdout=subprocess.PIPE, text=True
    ).stdout.strip()
    with open(certificate) as f:
        written = "sizes" in json.load(f)
    seconds, tried, worst, wrong = time.time() - begin, 0, 0.0, None
    if written and not check.endswith("for %s]" % text):
        wrong = "check says %s" % check
    rng, k = random.Random(o.seed), 0
    for k, symbols in enumerate(points(ranges, rng)):
        if tried >= o.sizes or k > 4 * o.sizes:
            break
        by = apart(*sides, symbols, o.seed + k)
        if by is None:
            continue
        tried, worst = tried + 1, max(worst, by)
        if by > TOLERANCE and wrong is None:
            wrong = "they differ by %.2g at %s" % (by, symbols)
    if wrong is None and 2 * tried < o.sizes:
        wrong = "too few sizes could be run"
    print(
        "%-12s for %s, %s; %d sizes, at most %.1e apart; %.1f s%s"
        % (what, text, "replayed" if written else "no chain", tried, worst, seconds,
           ": " + wrong if wrong else "")
    )  # fmt: skip
    sys.stdout.flush()
    ran = "%d, at most %.0e apart" % (tried, worst)
    table.append((what, report["verdict"], text, ran, "%.1f" % seconds, wrong or ""))
    return True, wrong


SIDES = {
    "eager": ("hf", "--attn", "eager", "--dynamic", "length,batch"),
    "sdpa": ("hf", "--attn", "sdpa", "--dynamic", "length,batch"),
    "hf": ("hf", "--attn", "sdpa", "--dynamic", "length"),
    "vllm": ("vllm", "--dynamic", "length"),
}


def captured(family, side, folder, python):
    path = os.path.join(folder, "%s-%s" % (family, side))
    how, *options = SIDES[side]
    if not os.path.exists(os.path.join(path, "graph.json")):
        subprocess.run(
            [python if side == "vllm" else sys.executable, "-m", "isomer_capture", how, family,
             "--reduce", "--layers", "2", *options, "-o", path],
            env=dict(os.environ, PYTHONPATH=os.path.join(ROOT, "capture")),
            check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
    return path


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--isomer", default=os.path.join(ROOT, "build", "isomer"))
    p.add_argument("--sizes", type=int, default=50)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--captures")
    p.add_argument("--vllm")
    p.add_argument("--table")
    p.add_argument("--pair", nargs=2)
    p.add_argument("family", nargs="*")
    o = p.parse_args()
    passed = failed = whole = 0
    table, both = [], ("hf", "vllm") if o.vllm else ("eager", "sdpa")
    torch.ops.load_library(os.path.join(os.path.dirname(o.isomer), "libisomer_kernels.so"))
    with tempfile.TemporaryDirectory() as folder:
        kept = o.captures or folder
        for family in ["pair"] if o.pair else o.family or FAMILIES:
            try:
                sides = o.pair or [captured(family, x, kept, o.vllm) for x in both]
            except subprocess.CalledProcessError:
                print("%-12s cannot be captured" % family)
                table.append((family, "no capture", "", "", "", ""))
                continue
            all_sizes, wrong = judge(o, family, sides, folder, table)
            whole += all_sizes
            passed, failed = passed + (wrong is None), failed + (wrong is not None)
    if o.table:
        with open(o.table, "w", encoding="utf-8") as f:
            f.write("| model | verdict | for | run at | seconds | held back by |\n")
            f.write("| --- | --- | --- | --- | --- | --- |\n")
            f.writelines("| %s |\n" % " | ".join(row) for row in table)
    print("%d of %d are equivalent for all sizes" % (whole, passed + failed))
    print("%d passed, %d failed" % (passed, failed))
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
