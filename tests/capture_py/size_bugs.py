#!/usr/bin/env python3
"""Bugs that only another length shows, drawn: windows, positions past a table, the last token, the
switch of a long rotary table, padding to blocks, chunks, a quotient of zeros. Each case is a
module, an honest refactoring of it and a faulty twin. The truth is had by execution: modules are
run at every length up to LONGEST, and the least at which the twin differs must be the one that
`compare` names, from one capture of each. What is honest must be accused at no length.

What a verdict is for must be no more than is true: where other sizes are not looked at, the twin is
equivalent, and that must be for the captured sizes alone. The same holds of mutants: the capture
with one size written so that it is the same there, and another one at some size beyond. One of
which more is said is compared at other sizes, and must be equivalent at each.

    tests/capture_py/size_bugs.py [--isomer build/isomer] [--count N] [--seed S] [--only CASE]
                                  [--mutants N] [--claims SHARE]

--mutants: of each case. --claims: the least share of honest ones that are equivalent for all sizes.
The last line is `N passed, N failed`."""

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile

import torch
from torch import nn

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "capture"))
from isomer_capture import capture  # noqa: E402

D, LONGEST = 4, 48


class Module(nn.Module):
    """One function of x (B, T, D); `how` is plain, honest or twin; `n` and `m` are the numbers that
    the case is about, `m` that of the twin."""

    def __init__(self, function, how, n, m):
        super().__init__()
        torch.manual_seed(n)
        self.function, self.how, self.n = function, how, m if how == "twin" else n
        self.odd = n % 2
        self.q, self.k = nn.Linear(D, D), nn.Linear(D, D)
        self.table = nn.Parameter(torch.randn(64, D))
        self.register_buffer("short", torch.rand(D) + 0.1)
        self.register_buffer("long", torch.rand(D) + 0.1)
        self.register_buffer("halves", torch.arange(1, D + 1) / 2)
        rows = torch.arange(ROWS)[:, None] * self.halves[None, :] + 1
        rows[self.n] += how == "twin"
        self.register_buffer("rows", rows)

    def forward(self, x):
        return self.function(self, x, self.how == "honest")


def attend(self, x, seen):
    scores = (self.q(x) @ self.k(x).transpose(1, 2)) / 2
    return scores.masked_fill(~seen, float("-inf")).softmax(-1) @ x


def window(self, x, other):
    pos = torch.arange(x.shape[1])
    by = pos[:, None] - pos[None, :]
    seen = torch.logical_not((by < 0) | (by > self.n - 1)) if other else (by >= 0) & (by < self.n)
    return attend(self, x, seen)


def chunks(self, x, other):
    """Attention within chunks, and causal."""
    pos = torch.arange(x.shape[1])
    chunk = torch.div(pos, self.n, rounding_mode="floor")
    same = chunk[:, None] == chunk[None, :]
    ahead = pos[None, :] > pos[:, None]
    return attend(self, x, ~(ahead | ~same) if other else same & ~ahead)


def sinks(self, x, other):
    """A window beside which the first two tokens are always seen."""
    pos = torch.arange(x.shape[1])
    by = pos[:, None] - pos[None, :]
    seen = (by >= 0) & ((by < self.n) | (pos[None, :] < 2))
    if other:
        seen = torch.where(pos[None, :] > 1, (by >= 0) & (by <= self.n - 1), by >= 0)
    return attend(self, x, seen)


def past_table(self, x, other):
    """Positions past a table's end have its last row."""
    pos = torch.arange(x.shape[1])
    at = torch.where(pos >= self.n, self.n, pos) if other else pos.clamp(max=self.n)
    return x + self.table[at]


def wrapped(self, x, other):
    """Positions past a table's end begin anew."""
    pos = torch.arange(x.shape[1])
    at = pos - torch.div(pos, self.n, rounding_mode="floor") * self.n if other else pos % self.n
    return x + self.table[at]


def switch(self, x, other):
    """A rotary table that changes where there are more positions than the model was trained on."""
    pos = torch.arange(x.shape[1])
    many = pos[-1] + 1 > self.n
    by = torch.where(pos.max() >= self.n if other else many, self.long, self.short)
    angle = pos[:, None] * by[None, :]
    return x * angle.cos() + x.flip(-1) * angle.sin()


def last_token(self, x, other):
    """The last token, where there are no more than `n`; the twin takes one of the first at most."""
    if self.how == "twin":
        at = (torch.arange(x.shape[1]) == min_of(x.shape[1], self.n) - 1).to(x.dtype)
        return (self.q(x) * at[None, :, None]).sum(1)
    return self.q(x).flip(1)[:, 0] if other else self.q(x[:, -1])


def min_of(length, n):
    return (torch.arange(length) < n).sum()


def padding(self, x, other):
    """Sums of blocks of four, of which the twin drops those past its number."""
    rest = (-x.shape[1]) % 4
    whole = nn.functional.pad(x, (0, 0, 0, rest))
    n = whole.shape[1] // 4
    blocks = whole.view(-1, n, 4, D) if other else whole.reshape(x.shape[0], n, 4, D)
    out = blocks.cumsum(2)
    if self.how == "twin":
        out = out * (torch.arange(n) < (self.n + 3) // 4)[None, :, None, None]
    return out.reshape(x.shape[0], n * 4, D)[:, : x.shape[1]]


def scaled(self, x, other):
    """Scores that grow with the logarithm of the position past a length."""
    pos = torch.arange(x.shape[1]) + 1
    by = torch.log(pos / self.n).clamp(min=0) + 1
    if other:
        by = torch.where(pos > self.n, 1 + torch.log(pos / self.n), torch.ones(()))
    return attend(self, x * by[None, :, None], pos[None, :] <= pos[:, None])


def divided(self, x, other):
    """A product; the twin is divided by what it was multiplied by, which is 0 at one length."""
    out = x @ self.q.weight.T + self.q.bias if other else self.q(x)
    if self.how == "twin":
        by = x.shape[1] - self.n if self.n % 2 else torch.arange(x.shape[1])[-1] + 1 - self.n
        out = out * by / by
    return out


def stored(self, x, other):
    """Numbers of positions, computed, and looked up in a table, of which the twin has a wrong row.
    They are exact, so that none is off by rounding."""
    pos = torch.arange(x.shape[1])
    if self.how == "plain":
        return x * (pos[:, None] * self.halves[None, :] + 1)
    return x * (self.rows.narrow(0, 0, x.shape[1]) if self.odd else self.rows[pos])


CASES = [
    window, chunks, sinks, past_table, wrapped, switch, last_token, padding, scaled, divided, stored
]  # fmt: skip
ROWS = 64


def open_sizes(function):
    """A table has an end."""
    return {"x": {0: "B", 1: ("T", 1, ROWS) if function is stored else "T"}}


def truth(plain, other):
    """The least length at which they differ; None: none up to LONGEST."""
    torch.manual_seed(5)
    for length in range(1, LONGEST + 1):
        x = torch.randn(1 + length % 3, length, D, dtype=torch.float64)
        with torch.no_grad():
            a, b = plain.double()(x), other.double()(x)
        if not torch.allclose(a, b, rtol=1e-7, atol=1e-9):
            return length
    return None


def compare(isomer, left, right, *options):
    done = subprocess.run(
        [isomer, "compare", left, right, "--json", "-", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    return json.loads(done.stdout) if done.stdout else {"verdict": done.stderr, "scope": {}}


def sizes_in(value):
    """Every {"size": ...} below a value of graph.json."""
    if isinstance(value, dict):
        if set(value) == {"size"}:
            yield value
        for v in value.values():
            yield from sizes_in(v)
    elif isinstance(value, list):
        for v in value:
            yield from sizes_in(v)


def evaluated(text, symbols):
    return eval(text, {"__builtins__": {"min": min, "max": max}}, symbols)


def mutants(path, folder, rng, count):
    """Copies of a capture in which one size is another one at some sizes that were not captured."""
    with open(os.path.join(path, "graph.json")) as f:
        text = f.read()
    graph = json.loads(text)
    symbols = {x["name"]: x["value"] for x in graph["symbols"]}
    n = len([x for node in graph["nodes"] for x in sizes_in(node)])
    for k in range(count if n else 0):
        graph = json.loads(text)
        size = rng.choice([x for node in graph["nodes"] for x in sizes_in(node)])
        was, now = size["size"], evaluated(size["size"], symbols)
        by = rng.randint(0, 5)
        size["size"] = rng.choice(
            [
                str(now),
                "min(%s, %d)" % (was, now + by),
                "%s + max(0, T - %d)" % (was, symbols["T"] + by),
                "max(%s, %d)" % (was, now - by),
                "%s + max(0, B - %d)" % (was, symbols["B"]),
            ]
        )
        out = os.path.join(folder, "mutant%d" % k)
        shutil.copytree(path, out)
        with open(os.path.join(out, "graph.json"), "w") as f:
            json.dump(graph, f)
        yield out, "%s in place of %s" % (size["size"], was)


def scope_of(report):
    """The sizes that an equivalence is for; None where these are the captured ones."""
    text = report["scope"].get("text")
    return None if report["verdict"] != "equivalent" or text == "captured sizes" else text


def overclaimed(isomer, left, right):
    """Whether an equivalence is said to be for sizes at which the two differ."""
    scope = scope_of(compare(isomer, left, right, "--disable", "sizes"))
    if scope is None:
        return None
    report = compare(isomer, left, right)
    at = [x for x in report["scope"].get("looked_at", ()) if x["verdict"] == "different"]
    at += [x for x in report["scope"].get("looked_at", ()) if "asks for" in (x["reason"] or "")]
    return "equivalent for %s" % scope if report["verdict"] != "equivalent" or at else None


def judge_scopes(isomer, path, first, rng, count):
    """None, or what is wrong. `first`: the length at which the twin differs; None: nowhere."""
    if first is not None:
        twin = compare(isomer, path["plain"], path["twin"], "--disable", "sizes")
        if scope_of(twin):
            return "the twin is equivalent for %s" % scope_of(twin)
    with tempfile.TemporaryDirectory() as folder:
        for mutant, what in mutants(path["plain"], folder, rng, count):
            for other in ("plain", "honest"):
                wrong = overclaimed(isomer, path[other], mutant)
                if wrong:
                    return "%s, %s: %s" % (other, what, wrong)
    return None


def judge(isomer, case, rng, count, claims):
    """None, or what is wrong. Adds to `claims` whether the honest one is equal at all sizes."""
    function, n, m, captured = case
    make = {how: Module(function, how, n, m).eval() for how in ("plain", "honest", "twin")}
    first = truth(make["plain"], make["twin"])
    if truth(make["plain"], make["honest"]) is not None:
        return "the honest one is none"
    make = {how: Module(function, how, n, m).eval() for how in make}
    with tempfile.TemporaryDirectory() as folder:
        path = {how: os.path.join(folder, how) for how in make}
        for how, module in make.items():
            torch.manual_seed(0)
            inputs = {"x": torch.randn(2, captured, D)}
            capture(module, inputs, path[how], dynamic=open_sizes(function))
        report = compare(isomer, path["plain"], path["honest"])
        looked = report["scope"].get("looked_at", ())
        at = [x["sizes"] for x in looked if x["verdict"] == "different"]
        if report["verdict"] == "different" or at:
            return "the honest one is accused %s" % at
        claims.append(scope_of(report) is not None)
        report = compare(isomer, path["plain"], path["twin"])
        if first is None and report["verdict"] == "different":
            return "accused"
        want = "T = %d" % first if first and first > captured else None
        found = report["scope"].get("first")
        if first and (report["verdict"] != "different" or (want and found != want)):
            return "%s, first %s, and not %s" % (report["verdict"], found, want)
        return judge_scopes(isomer, path, first, rng, count)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--isomer", default=os.path.join(ROOT, "build", "isomer"))
    p.add_argument("--count", type=int, default=27)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--only", type=int)
    p.add_argument("--mutants", type=int, default=4)
    p.add_argument("--claims", type=float, default=0)
    o = p.parse_args()
    passed = failed = 0
    claims = []
    for i in range(o.count):
        if o.only is not None and i != o.only:
            continue
        rng = random.Random(o.seed * 1000 + i)
        captured = rng.randint(5, 9)
        n = rng.randint(captured + 1, 24)
        m = n + rng.choice([-1, 1, 2, 5])
        function = CASES[i % len(CASES)]
        wrong = judge(o.isomer, (function, n, m, captured), rng, o.mutants, claims)
        passed, failed = passed + (wrong is None), failed + (wrong is not None)
        if wrong:
            print("%d %s n=%d m=%d at %d: %s" % (i, function.__name__, n, m, captured, wrong))
            sys.stdout.flush()
    print("%d of %d honest ones are equivalent for all sizes" % (sum(claims), len(claims)))
    if sum(claims) < o.claims * len(claims):
        failed += 1
    print("%d passed, %d failed" % (passed, failed))
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
