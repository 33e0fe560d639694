#!/usr/bin/env python3
"""Programs of 3 to 12 operators, drawn, each written in two ways. Needs PyTorch.

    tests/pairs/dags.py [--isomer build/isomer] [--seed N] [--count N] [--only honest|false]
                        [--edges] [--open SHARE] [--jobs N] [--keep DIR] [-v]

A program is a graph of steps (dag_kinds.py). The honest pair writes about half of its steps in
another way; in its false twin one more step is another function. Both sides are run in float64 on
40 inputs, with ties, zeros and whole numbers among them: honest sides agree on all of them, and
false ones differ on some, where the honest sides agree. Others are left out: a rounding error
before a jump parts honest sides, and a step that nothing reads hides what is false. With --edges
programs are of up to four steps. One of them is by an operator that chooses or jumps and that no
other step has (dag_edges.py); it is the one that differs. Half of the inputs hold the numbers
that the texts name, and what is beside them.

No honest pair may be `different` and no false one `equivalent`; of the honest ones SHARE (0.1) may
be `undecided`. Whatever is equivalent has a certificate that `isomer check` accepts. The last line
is `N passed, N failed`."""

import argparse
import collections
import os
import random
import re
import subprocess
import sys
import tempfile
import warnings
from concurrent.futures import ThreadPoolExecutor

import dag_choices  # noqa: F401  adds its steps
import dag_edges  # noqa: F401
import dag_functions  # noqa: F401
import dag_layout  # noqa: F401
import dag_places  # noqa: F401
import torch
from dag_kinds import EDGES, NUMBER, TERMS, TRUTH, WHOLE

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "capture"))
from isomer_capture import capture  # noqa: E402

VERDICT = {0: "equivalent", 1: "different", 2: "error", 3: "undecided"}
DRAWS = 40

HEAD = """import math
import torch
import torch.nn.functional as F

class Module(torch.nn.Module):
    def __init__(self):
        super().__init__()
        g = torch.Generator().manual_seed(11)
        self.w = torch.nn.Parameter(torch.randn({cols}, {cols}, generator=g))
        self.b = torch.nn.Parameter(torch.randn({cols}, generator=g))
        self.table = torch.nn.Parameter(torch.randn(7, 3, generator=g))

    def forward(self, x, y, k):
"""

Step = collections.namedtuple("Step", "name kind text honest false reads")


# ---- programs ----


class Program:
    def __init__(self, rng, edges=False):
        self.rows, self.cols = rng.choice([(3, 4), (4, 4), (2, 5), (4, 3), (3, 6), (5, 5)])
        self.steps = []
        have = {NUMBER: ["x", "y"], WHOLE: ["k"], TRUTH: []}
        n = rng.randint(1, 4) if edges else rng.randint(3, 12)
        self.edge = rng.randrange(n) if edges else None
        while len(self.steps) < n:
            of = EDGES if self.edge == len(self.steps) else TERMS
            if self.edge == len(self.steps) and not have[TRUTH]:
                of = {name: t for name, t in of.items() if TRUTH not in t[1]}
            kind, read, make = of[rng.choice(list(of))]
            if all(have[r] for r in read):
                self.add(rng, have, kind, read, make)
        read = {r for s in self.steps for r in s.reads}
        self.outputs = [s.name for s in self.steps if s.name not in read]

    def add(self, rng, have, kind, read, make):
        """A step that reads what was made last as often as not."""
        reads = []
        for r in read:
            free = [v for v in have[r] if v not in reads] or have[r]
            reads.append(free[-1] if rng.random() < 0.4 else rng.choice(free))
        name = "v%d" % len(self.steps)
        text, honest, false = make(rng, self.rows, self.cols, *reads)
        self.steps.append(Step(name, kind, text, honest, false, reads))
        have[kind].append(name)

    def written(self, texts):
        lines = ["        %s = %s" % (s.name, t) for s, t in zip(self.steps, texts)]
        lines.append("        return (%s,)" % ", ".join(self.outputs))
        return HEAD.format(cols=self.cols) + "\n".join(lines) + "\n"


def pairs(seed, only=None, edges=False):
    """(what, texts of left, right and, of a false twin, its honest right, program)"""
    rng = random.Random(seed)
    p = Program(rng, edges)
    left = [s.text for s in p.steps]
    right = [rng.choice(s.honest) if rng.random() < 0.5 else s.text for s in p.steps]
    k = rng.randrange(len(p.steps)) if p.edge is None else p.edge
    right[k] = right[k] if p.edge is None else rng.choice(p.steps[k].honest)
    wrong = rng.choice(p.steps[k].false)
    if only != "false":
        yield "honest", [p.written(left), p.written(right)], p
    if only != "honest":
        other = right[:k] + [wrong] + right[k + 1 :]
        same = right[:k] + [left[k]] + right[k + 1 :]
        yield (
            "%s for %s" % (wrong, left[k]),
            [p.written(left), p.written(other), p.written(same)],
            p,
        )


# ---- what they are, by running them ----


def module(text):
    names = {}
    exec(text, names)
    return names["Module"]().eval()


def in_float64(text):
    for name in ("float16", "bfloat16", "float32"):
        text = text.replace("torch." + name, "torch.float64")
    return module(text.replace(".float()", ".double()")).double()


def inputs(rows, cols, n, seed):
    g = torch.Generator().manual_seed(seed)

    def halves(i):
        return torch.randint(-3, 4, (rows, cols), generator=g).double() / (1, 2, 4)[i % 3]

    for i in range(n):
        scale = (1.0, 3.0, 0.3, 10.0, 0.05)[i % 5]
        x, y = (torch.randn(rows, cols, generator=g, dtype=torch.float64) * scale for _ in "xy")
        if i % 4 == 1:
            x, y = halves(i), halves(i)
        if i % 7 == 3:
            y = x.clone()
        if i % 9 == 5:
            x = x * (torch.rand(rows, cols, generator=g) < 0.3)
        k = torch.randint(-9 if i % 3 == 1 else 0, 9, (rows, cols), generator=g)
        yield x, y, k


def beside(given, texts, seed):
    """The same inputs, in which some numbers are those that the texts name, or beside them."""
    rng = random.Random(seed)
    read = "".join(text[text.index("def forward") :] for text in texts)
    named = sorted(
        {1.0} | {float(n) for n in re.findall(r"(?<![\w.])\d+(?:\.\d+)?(?:e-?\d+)?", read)}
    )
    for i, (x, y, k) in enumerate(given):
        yield x, y, k
        x, y, k, signs = x.clone(), y.clone(), k.clone(), (1, 1, -1, -1, rng.choice(named))
        for t, steps in ((x, (0, 0, 1e-3, -1e-3)), (y, (0, 0, 1e-3, -1e-3)), (k, (0, 0, 1, -1))):
            for place in range(t.numel()):
                if rng.random() < 0.3:
                    number = rng.choice(named) * rng.choice(signs) + rng.choice(steps)
                    t.view(-1)[place] = number if t is not k else round(number)
        yield x, y, k


def agree(one, other, given):
    return all(
        u.shape == v.shape
        and torch.isclose(u.double(), v.double(), rtol=1e-7, atol=1e-9, equal_nan=True).all()
        for u, v in zip(one(*given), other(*given))
    )


def is_so(texts, p, edges=False):
    """Whether the pair is what it was drawn as."""
    torch.set_default_dtype(torch.float64)
    try:
        sides = [in_float64(t) for t in texts]
        with torch.no_grad():
            given = list(inputs(p.rows, p.cols, DRAWS, 5))
            given = list(beside(given, texts, 5)) if edges else given
            same = [agree(sides[0], sides[1], g) for g in given]
            if len(sides) == 2:
                return all(same)
            return any(not s and agree(sides[0], sides[2], g) for s, g in zip(same, given))
    finally:
        torch.set_default_dtype(torch.float32)


# ---- what Isomer says ----


def run(isomer, *words):
    p = subprocess.run([isomer, *words], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    return p.returncode, ((p.stdout + p.stderr).strip().splitlines() or [""])[-1]


def judged(isomer, folder, honest):
    """(verdict, what is wrong or None, what was said)"""
    sides = [os.path.join(folder, s) for s in ("left", "right")]
    certificate = os.path.join(folder, "c.json")
    rc, said = run(isomer, "compare", *sides, "--certificate", certificate, "--jobs", "1")
    verdict = VERDICT.get(rc, "status %d" % rc)
    if verdict not in ("equivalent" if honest else "different", "undecided"):
        return verdict, "%s, expected %s" % (verdict, "equivalent" if honest else "different"), said
    if rc == 0:
        rc, said = run(isomer, "check", certificate, *sides)
        if rc:
            return verdict, "its certificate", said
    return verdict, None, said


def write(texts, p, seed, folder):
    x, y, k = next(inputs(p.rows, p.cols, 1, seed))
    given = {"x": x.float(), "y": y.float(), "k": k}
    for side, text in zip(("left", "right"), texts):
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, side + ".py"), "w", encoding="utf-8") as f:
            f.write(text)
        capture(module(text), given, os.path.join(folder, side))


def drawn(o, folder):
    for k in range(o.count):
        seed = o.seed * 10000 + k
        for what, texts, p in pairs(seed, o.only, o.edges):
            honest = what == "honest"
            if not is_so(texts, p, o.edges):
                continue
            at = os.path.join(folder, "%d-%s" % (seed, "honest" if honest else "false"))
            write(texts, p, k, at)
            yield seed, what, at


def main():
    a = argparse.ArgumentParser()
    a.add_argument("--isomer", default=os.path.join(ROOT, "build", "isomer"))
    a.add_argument("--seed", type=int, default=1)
    a.add_argument("--count", type=int, default=20, help="programs")
    a.add_argument("--only", choices=("honest", "false"))
    a.add_argument("--edges", action="store_true", help="an operator of dag_edges.py in each")
    a.add_argument("--open", type=float, default=0.1, help="how many honest may be undecided")
    a.add_argument("--jobs", type=int, default=2)
    a.add_argument("--keep", help="a folder for the captures")
    a.add_argument("-v", action="store_true")
    o = a.parse_args()
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    count, failed = collections.Counter(), 0
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(o.jobs) as pool:
        isomer, at = os.path.abspath(o.isomer), o.keep or folder
        todo = [
            (seed, what, pool.submit(judged, isomer, path, what == "honest"))
            for seed, what, path in drawn(o, at)
        ]
        for seed, what, result in todo:
            wrong = ("its sides differ", "")
            verdict, *wrong = result.result() if result else ("none", *wrong)
            count[what == "honest", verdict] += 1
            failed += wrong[0] is not None
            if o.v or wrong[0] or (what == "honest" and verdict == "undecided"):
                said = "%s: %s" % (wrong[0], wrong[1]) if wrong[0] else verdict
                print(
                    "%s %d, %s: %s" % ("FAILED" if wrong[0] else "ok", seed, what, said), flush=True
                )
    honest = sum(n for (h, _), n in count.items() if h)
    for (h, verdict), n in sorted(count.items()):
        print("%s: %d %s" % ("honest" if h else "false", n, verdict))
    if count[True, "undecided"] > max(1, o.open * honest):
        failed += 1
        print("FAILED %d of %d honest pairs are undecided" % (count[True, "undecided"], honest))
    print("%d passed, %d failed" % (sum(count.values()) - failed, failed))
    return 1 if failed or not count else 0


if __name__ == "__main__":
    sys.exit(main())
