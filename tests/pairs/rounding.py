#!/usr/bin/env python3
"""Pairs in bfloat16 and float16 that compute one function, right and with bugs of precision.

    tests/pairs/rounding.py [--isomer build/isomer] [--seed 0] [--count 1] [--only NAME]

Both sides of a pair are one function over the reals, so the verdict is `equivalent` whatever
rounding does to them, with `--rounding` and without. A right pair rounds at the same points in
other words; a pair with a bug computes something in the narrow dtype that the other side computes
in float32, rounds before a factor instead of after it, or adds up what a product would have added
up by itself. `compare --rounding` must say `explained` of the first, and of the second that it is
not, with the side, whichever it is, and the place. So it must of vLLM's captures in models/, which
are in float32. The last line is `N passed, N failed`."""

import argparse
import json
import math
import os
import random
import subprocess
import sys
import tempfile

import dsl
from dsl import bf16, f16, f32

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
T, N, H, F = 24, 32, 2, 48  # tokens, width, heads, inner width

CAREFUL = {
    "norm": "float32",
    "softmax": "float32",
    "scores": "narrow",
    "rotary": "float32",
    "product": "whole",
    "residual": "narrow",
    "gelu": "float32",
    "logits": "float32",
}


class Block:
    """One layer of a decoder in dtype `d`, each part written in one of several ways."""

    def __init__(self, g, d, seed, how):
        self.g, self.d, self.how, self.seed = g, d, dict(CAREFUL, **how), seed

    def way(self, part):
        return self.how.get(part)

    def weight(self, name, *shape, scale=None, shift=0.0):
        d = dsl.values("%s %s" % (self.seed, name), *shape, scale=scale or 1, shift=shift)
        if scale is None:
            d = d.scaled(shape[-1] ** -0.5)
        return self.g.param(name, d, dtype=self.d)

    def norm(self, x, name):
        self.g.scope = name
        w, way = self.weight(name + ".weight", N, scale=0.3, shift=1.0), self.way("norm")
        f = x if way == "narrow" else x.to(f32)
        if way == "mean":
            mean = (x * x).mean(-1, True).to(f32)
        else:
            mean = (f * f if self.way("square") != "pow" else f.pow(2)).mean(-1, True)
        y = f * (mean + 1e-5).rsqrt()
        if way == "weight after":
            return y.to(self.d) * w
        return (y * w.to(f32)).to(self.d) if way != "narrow" else y * w

    def linear(self, x, name, out, scope=None):
        self.g.scope = scope or name
        w = self.weight(name + ".weight", out, x.shape[-1])
        if self.way("product") == name:  # a part of the sum at a time, added up in the dtype
            k = x.shape[-1] // 8
            parts = [x.slice(-1, i, i + k).linear(w.slice(1, i, i + k)) for i in range(0, 8 * k, k)]
            total = parts[0]
            for p in parts[1:]:
                total = total + p
            return total
        return x.matmul(w.t()) if self.way("matmul") else x.linear(w)

    def qkv(self, x):
        if not self.way("fused"):
            return [self.linear(x, c + "_proj", N) for c in "qkv"]
        self.g.scope = "qkv_proj"
        named = [self.weight(c + "_proj.weight", N, N) for c in "qkv"]
        return x.linear(self.g.cat(named, 0)).split(N, -1)

    def rotate(self, x, name):
        self.g.scope = "rotary"
        half, narrow = N // H // 2, self.way("rotary") == "narrow"
        angle = [t * 0.3**i for t in range(T) for i in range(half)]
        shape = (T, half)
        cos = self.g.const("cos", dsl.Data(shape, [math.cos(a) for a in angle]), dtype=self.d)
        sin = self.g.const("sin", dsl.Data(shape, [math.sin(a) for a in angle]), dtype=self.d)
        if not narrow:
            x, cos, sin = x.to(f32), cos.to(f32), sin.to(f32)
        a, b = x.split(half, -1)
        y = self.g.cat([a * cos - b * sin, b * cos + a * sin], -1)
        return y if narrow else y.to(self.d)

    def attention(self, x):
        q, k, v = [t.reshape(T, H, N // H).transpose(0, 1) for t in self.qkv(x)]
        q, k = self.rotate(q, "q"), self.rotate(k, "k")
        self.g.scope, wide = "attention", self.way("scores") == "float32"
        if wide:
            q, k = q.to(f32), k.to(f32)
        scale = self.way("scale") or (N // H) ** -0.5  # a power of two, wherever it stands
        s = (
            (q * scale).matmul(k.transpose(1, 2))
            if self.way("early")
            else (q.matmul(k.transpose(1, 2)) * scale)
        )
        y = self.softmax(s).matmul(v).transpose(0, 1).reshape(T, N)
        return self.linear(y, "o_proj", N)

    def softmax(self, s):
        way = self.way("softmax")
        if way == "narrow":
            e = (s - s.amax(-1, True)).exp()
            return e / e.sum(-1, True)
        s = s.to(f32)
        if way == "kernel":
            return s.softmax(-1).to(self.d)
        e = (s - s.amax(-1, True)).exp()
        return (e / e.sum(-1, True)).to(self.d)

    def gelu(self, x):
        self.g.scope = "mlp.act"
        if self.way("gelu") == "kernel":
            return x.gelu(approximate="tanh")
        y = x if self.way("gelu") == "narrow" else x.to(f32)
        inner = (y + y * y * y * 0.044715) * 0.7978845608028654
        return (y * 0.5 * (inner.tanh() + 1.0)).to(self.d)

    def mlp(self, x):
        return self.linear(self.gelu(self.linear(x, "up_proj", F)), "down_proj", N)

    def add(self, x, y):
        self.g.scope = "residual"
        return x + y.to(f32) if self.way("residual") == "float32" else x + y

    def loss(self, x):
        y = self.linear(x, "lm_head", N)
        self.g.scope = "loss"
        return (y if self.way("logits") == "narrow" else y.to(f32)).log_softmax(-1)

    def run(self):
        d = self.d
        x = self.g.x(T, N, name="x", dtype=d, scale=self.way("large") or 1.0)
        if self.way("residual") == "float32":
            x = x.to(f32)
        x = self.add(x, self.attention(self.norm(x, "norm1")))
        x = self.add(x, self.mlp(self.norm(x, "norm2")))
        return self.loss(self.norm(x, "norm3"))


# What differs between the sides: (left, right).
RIGHT = {
    "the same": ({}, {}),
    "fused qkv": ({}, {"fused": True}),
    "matmul with the transposed weight": ({}, {"matmul": True}),
    "scaled by a power of two early": ({}, {"early": True}),
    "square as pow": ({}, {"square": "pow"}),
    "softmax as one kernel": ({}, {"softmax": "kernel"}),
    "gelu as one kernel": ({}, {"gelu": "kernel"}),
    "scores in float32 on both sides": (
        {"scores": "float32"},
        {"scores": "float32", "fused": True},
    ),
    "weight after the cast on both sides": (
        {"norm": "weight after"},
        {"norm": "weight after", "matmul": True},
    ),
    "all of these": (
        {},
        {"fused": True, "matmul": True, "early": True, "square": "pow", "softmax": "kernel"},
    ),
}
BUGS = {  # and where it is: a scope that the words name
    "a norm in the narrow dtype": ({}, {"norm": "narrow"}, "norm"),
    "a mean in the narrow dtype": ({}, {"norm": "mean"}, "norm"),
    "a scale after rounding": ({}, {"norm": "weight after"}, "norm"),
    "softmax without the upcast": ({}, {"softmax": "narrow"}, "attention"),
    "scores without the upcast": ({"scores": "float32"}, {}, "attention"),
    "o_proj accumulates": ({}, {"product": "o_proj"}, "o_proj"),
    "down_proj accumulates": ({}, {"product": "down_proj"}, "down_proj"),
    "gelu in steps in the narrow dtype": ({}, {"gelu": "narrow"}, "mlp.act"),
    "rotary in the narrow dtype": ({}, {"rotary": "narrow"}, "rotary"),
    "logits without the upcast": ({}, {"logits": "narrow"}, "loss"),
    "a residual in the narrow dtype": ({"residual": "float32"}, {}, ""),
}
# What no difference of rounding is: (left, right, verdict, words, dtypes).
OTHER = {
    "another scale": ({}, {"scale": 0.3}, "different", "in float64 the two are", (bf16, f16)),
    "a square beyond the range": (
        {"large": 300.0},
        {"large": 300.0, "norm": "narrow"},
        "equivalent",
        "leaves the range of float16 at norm1",
        (f16,),
    ),
}


def compare(isomer, folder, sides, *options):
    dsl.Pair("", "", "", *sides).write(folder)
    report = os.path.join(folder, "report.json")
    p = subprocess.run(
        [isomer, "compare", *(os.path.join(folder, s) for s in ("left", "right"))]
        + ["--rounding", "--json", report, *options],
        capture_output=True,
        text=True,
    )
    if p.returncode not in (0, 1, 3):
        return None, p.stderr
    with open(report, encoding="utf-8") as f:
        return json.load(f), p.stdout


def side(d, seed, how):
    return lambda g: Block(g, d, seed, how).run()


def wrong_with(report, text, case, faulty):
    """What is wrong with a report, in a line; None: nothing."""
    if report is None:
        return text
    said, out = report["rounding_conclusion"], report["rounding"][0]
    if report["verdict"] != case.verdict:
        return "the verdict is %s" % report["verdict"]
    if "rounding: %s\n" % said not in text:
        return "the text does not say: %s" % said
    if case.words:
        return None if case.words in said and not out["explained"] else said
    return wrong_place(out, said, case.where, faulty)


def wrong_place(out, said, where, faulty):
    """The same of an output. where: None of a right pair."""
    if where is None:
        return None if out["explained"] and not out["operators"] else said
    if out["explained"]:
        return "explained: %s" % json.dumps(out)
    named = [o for o in out["operators"] if where in o["text"]]
    if not named or any(o["side"] != faulty for o in out["operators"]):
        return "named: %s" % [o["text"] for o in out["operators"]]
    return None


class Case:
    def __init__(self, name, d, seed, ways, where=None, verdict="equivalent", words=None):
        self.name, self.d, self.seed, self.ways = name, d, seed, ways
        self.where, self.verdict, self.words = where, verdict, words

    def __str__(self):
        return "%s, %s, %d" % (self.name, self.d, self.seed)


def cases(seeds):
    for k in seeds:
        for d in (bf16, f16):
            for name, ways in RIGHT.items():
                yield Case(name, d, k, ways)
            for name, (left, right, where) in BUGS.items():
                yield Case(name, d, k, (left, right), where)
            for name, (left, right, verdict, words, dtypes) in OTHER.items():
                if d in dtypes:
                    yield Case(name, d, k, (left, right), None, verdict, words)


def captured():
    """(left, right, whether rounding explains it) of vLLM's captures in the tree."""
    for family in ("variants/gpt2-2l", "variants/llama-2l", "variants/qwen2-2l", "llama-2l"):
        folder = os.path.join(ROOT, "models", family)
        for one in sorted(os.listdir(folder)):
            if one.startswith("vllm"):
                sides = os.path.join(folder, "hf-sdpa"), os.path.join(folder, one)
                yield (*sides, "-bug-" not in one)


def look_at_captures(o):
    """(passed, failed): what is right is explained, and of a bug in float32 nothing is."""
    passed = failed = 0
    for left, right, explained in captured():
        name = os.path.relpath(right, ROOT)
        if o.only not in name:
            continue
        with tempfile.TemporaryDirectory() as folder:
            report = os.path.join(folder, "report.json")
            subprocess.run(
                [o.isomer, "compare", left, right, "--rounding", "--json", report],
                capture_output=True,
            )
            with open(report, encoding="utf-8") as f:
                said = json.load(f)["rounding_conclusion"]
        right_one = (said == "rounding explains the difference") == explained
        passed, failed = passed + right_one, failed + (not right_one)
        if not right_one:
            print("FAILED %s: %s" % (name, said), flush=True)
    return passed, failed


def main():
    a = argparse.ArgumentParser()
    a.add_argument("--isomer", default=os.path.join(ROOT, "build", "isomer"))
    a.add_argument("--seed", type=int, default=0)
    a.add_argument("--count", type=int, default=1)
    a.add_argument("--only", default="")
    a.add_argument("--verbose", action="store_true")
    o = a.parse_args()
    passed, failed = look_at_captures(o)
    for case in cases(range(o.seed, o.seed + o.count)):
        if o.only not in str(case):
            continue
        exchange = random.Random(str(case)).random() < 0.5
        sides = [side(case.d, case.seed, how) for how in case.ways]
        with tempfile.TemporaryDirectory() as folder:
            report, text = compare(o.isomer, folder, sides[::-1] if exchange else sides)
        wrong = wrong_with(report, text, case, "left" if exchange else "right")
        passed, failed = passed + (not wrong), failed + bool(wrong)
        if wrong:
            print("FAILED %s: %s" % (case, wrong), flush=True)
        if o.verbose:
            print(case, text.split("\nrules")[0], sep="\n")
    print("%d passed, %d failed" % (passed, failed))
    return failed > 0 or not passed


if __name__ == "__main__":
    sys.exit(main())
