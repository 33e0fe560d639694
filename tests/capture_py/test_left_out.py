"""What a capture holds beside its tensors: numbers that the program read out of its data, sizes of
what data selects among them, and outputs that are no tensors. Nothing of it is lost in silence."""

import itertools
import json
import math
import os
import subprocess
import sys
import tempfile
import unittest

try:
    import torch
    from torch import nn
except ImportError:
    raise unittest.SkipTest("PyTorch is not installed") from None

from isomer_capture import CaptureError, capture


class Fn(nn.Module):
    def __init__(self, fn):
        super().__init__()
        self.fn = fn

    def forward(self, x):
        return self.fn(x)


# Tensors of as many elements, or rows, as data has it.
SELECTED = {
    "nonzero": lambda x: (x > 0).nonzero(),
    "masked": lambda x: x[x > 0],
    "masked_select": lambda x: x.masked_select(x > 0),
    "where": lambda x: torch.where(x > 0)[0],
    "rows": lambda x: x[x[:, 0] > 0],
    "unique": lambda x: (x > 0).long().cumsum(1).unique(),
    "repeated": lambda x: torch.arange(x.shape[0]).repeat_interleave((x[:, 0] > 0).long() + 1),
    "one_hot": lambda x: nn.functional.one_hot((x[0] > 0).long().cumsum(0)).T,
    "of_selected": lambda x: (x[x > 0] * 2 + 1).reshape(-1),
    "taken": lambda x: x.flatten()[torch.where(x.flatten() > 0)[0]],
    "joined": lambda x: torch.cat([x[x > 0], x.flatten()]),
}
# Ways from its size to a number, or to what the program does.
ASKED = {
    "shape": lambda t, x: x * t.shape[0],
    "size": lambda t, x: x * t.size(0),
    "numel": lambda t, x: x + t.numel(),
    "len": lambda t, x: x + len(t),
    "branch": lambda t, x: x * 2 if t.shape[0] % 2 else x * 3,
    "arange": lambda t, x: x + torch.arange(t.shape[0]).sum(),
    "loop": lambda t, x: sum((v.sum() * 0 + 1 for v in t), x.sum()) * x,
}
# The same tensors, where nobody asks how many they are.
UNASKED = {"sum": lambda t, x: x * t.sum(), "twice": lambda t, x: x + (t * 2).double().mean()}


class Folder(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(3)
        self.x = torch.randn(5, 6)
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def at(self, name):
        return os.path.join(self.folder.name, name)

    def isomer(self, *words):
        words = [self.at(w) if w in ("left", "right") else w for w in words]
        return subprocess.run(
            [os.environ["ISOMER"], *words], capture_output=True, text=True, timeout=120
        )


class Sizes(Folder):
    def test_sizes_of_what_data_selects_are_guards(self):
        for (what, select), (how, ask) in itertools.product(SELECTED.items(), ASKED.items()):
            with self.subTest(what=what, how=how):
                module = Fn(lambda x, select=select, ask=ask: ask(select(x), x)).eval()
                with self.assertRaises(CaptureError) as e:
                    capture(module, (self.x,), self.at("c"))
                self.assertIn("specialize", str(e.exception))
                graph = capture(module, (self.x,), self.at("c"), specialize=True)
                self.assertTrue(graph["metadata"]["guards"])

    def test_what_data_selects_is_no_guard_by_itself(self):
        # one_hot itself reads how large the largest value is.
        selected = {w: s for w, s in SELECTED.items() if w != "one_hot"}
        for (what, select), (how, use) in itertools.product(selected.items(), UNASKED.items()):
            with self.subTest(what=what, how=how):
                module = Fn(lambda x, select=select, use=use: use(select(x), x)).eval()
                graph = capture(module, (self.x,), self.at("c"))
                self.assertFalse(graph["metadata"].get("guards"))

    def test_sizes_that_values_change_are_refused_by_that_cause(self):
        for what in ("nonzero", "masked", "rows"):
            with self.subTest(what):
                select = SELECTED[what]
                capture(
                    Fn(lambda x, s=select: s(x).double().sum()).eval(), (self.x,), self.at("left")
                )
                p = self.isomer("compare", "left", "left")
                self.assertEqual((p.returncode, p.stderr.count("\n")), (2, 1), p.stderr)
                self.assertIn("for other values of inputs: tensors whose sizes depend on", p.stderr)

    def test_recorded_sizes(self):
        """The same where a module is recorded as it runs: this one cannot be traced."""

        def untraced(x):
            rows = x[x[:, 0] > 0]
            sys.intern("a")
            kept = rows.sum() if rows.numpy is None else rows.mean()
            return x * kept * (2 if bool((x.sum() < 1e9).item()) else 3), rows

        for name, more in (("shape", True), ("none", False)):
            with self.subTest(name):
                module = Fn(
                    lambda x, more=more: (lambda y, r: y * r.shape[0] if more else y)(*untraced(x))
                ).eval()
                guards = capture(module, (self.x,), self.at("c"), specialize=True)["metadata"][
                    "guards"
                ]
                asked = [g["op"] for g in guards if g["op"] == "Tensor.shape"]
                self.assertEqual(bool(asked), more, guards)

    def test_guards_are_assumptions(self):
        count = int((self.x > 0).sum())
        sides = {"left": lambda x: x * x[x > 0].shape[0], "right": lambda x: x * count}
        for side, fn in sides.items():
            capture(Fn(fn).eval(), (self.x,), self.at(side), specialize=True)
        report, certificate = self.at("r.json"), self.at("certificate.json")
        p = self.isomer("compare", "left", "right", "--json", report, "--certificate", certificate)
        self.assertEqual(p.returncode, 0, p.stdout + p.stderr)
        guards = self.guards(report)
        self.assertEqual(len(guards), 1, guards)
        self.assertIn("on the left", guards[0])
        self.assertIn("it is %d" % count, guards[0])
        p = self.isomer("check", certificate, "left", "right", "--json", report)
        self.assertEqual(p.returncode, 0, p.stdout + p.stderr)
        self.assertEqual(self.guards(report), guards)

    def guards(self, report):
        with open(report, encoding="utf-8") as f:
            return [a["text"] for a in json.load(f)["assumptions"] if a["kind"] == "guard"]


class NoTensors(Folder):
    """Outputs that are no tensors, of two modules whose tensors are one."""

    def verdict(self, left, right, **options):
        for side, value, twice in (("left", left, True), ("right", right, False)):

            def forward(x, value=value, twice=twice):
                return {
                    "y": x * 2 if twice else x + x,
                    "other": value(x) if callable(value) else value,
                }

            capture(Fn(forward).eval(), {"x": self.x}, self.at(side), **options)
        return self.isomer("compare", "left", "right").returncode

    def test_values(self):
        values = [3, 4, 1 << 53, (1 << 53) + 1, 1 << 70, 1.5, True, "a", "nan", math.nan, math.inf]
        values += [None, "null", None, torch.float32, torch.float64, "float32", 1, True]
        for a, b in itertools.pairwise(values):
            with self.subTest(a=a, b=b):
                self.assertEqual(self.verdict(a, b), 3)
        for a in values[::3]:
            with self.subTest(a=a):
                self.assertEqual(self.verdict(a, a), 0)

    def test_sizes_that_are_open(self):
        def length(x):
            return x.shape[1]

        ways = {
            "T": length,
            "6": 6,
            "T + 1": lambda x: x.shape[1] + 1,
            "even": lambda x: x.shape[1] // 2 * 2,
            "half": lambda x: x.shape[1] / 2,
        }
        dynamic = {"x": [None, "T"]}
        for a, b in itertools.combinations(ways, 2):
            with self.subTest(a=a, b=b):
                self.assertEqual(self.verdict(ways[a], ways[b], dynamic=dynamic), 3)
        for a in ("T", "6", "even"):
            with self.subTest(a):
                self.assertEqual(self.verdict(ways[a], ways[a], dynamic=dynamic), 0)
