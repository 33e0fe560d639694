"""`--helper`: operators that only Python can call. What a bad one does costs its call and nothing
else."""

import contextlib
import glob
import json
import os
import subprocess
import sys
import tempfile
import time
import unittest

try:
    import torch
except ImportError:
    torch = None
if torch is None:
    raise unittest.SkipTest("PyTorch is not installed")

import commands
from isomer_capture.files import write_safetensors

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

OPERATORS = '''
import contextlib, ctypes, os, sys, time
import torch
from torch import Tensor

@torch.library.custom_op("mine::twice", mutates_args=())
def twice(x: Tensor, by: float) -> Tensor:
    print("noise on stdout"); os.write(1, b"more noise\\n")
    return x * by

def operator(name, schema):
    """Not custom_op: its first call imports torch._dynamo, which takes as long as PyTorch."""
    torch.library.define(name, schema)
    return torch.library.impl(name, "cpu")

@operator("mine::crash", "(Tensor x) -> Tensor")
def crash(x):
    ctypes.string_at(0)

@operator("mine::leave", "(Tensor x) -> Tensor")
def leave(x):
    os._exit(7)

@operator("mine::hang", "(Tensor x) -> Tensor")
def hang(x):
    os.system("sleep 1000")
    return x

@operator("mine::raises", "(Tensor x) -> Tensor")
def raises(x):
    raise ValueError("no such thing\\nand more")

@operator("mine::shape", "(Tensor x) -> Tensor")
def shape(x):
    return x.flatten().clone()

@operator("mine::nothing", "(Tensor x) -> Tensor")
def nothing(x):
    return x * float("nan")

@operator("mine::sometimes", "(Tensor x) -> Tensor")
def sometimes(x):
    if x.abs().max() > 40:
        os._exit(9)
    return x * 2

@operator("mine::truncates", "(Tensor x) -> Tensor")
def truncates(x):
    os.ftruncate(int(os.environ["ISOMER_HELPER_MEMORY"]), 0)
    os._exit(1)

@operator("mine::scaled", "(Tensor x, str layer_name) -> Tensor")
def scaled(x, layer_name):
    return x * CONTEXT[layer_name]

CONTEXT = {}

@contextlib.contextmanager
def adaptor(op, attributes, arguments):
    CONTEXT["here"] = attributes["scale"]
    yield {"layer_name": "here"}

@operator("mine::fill_with", "(Tensor(a!) out, Tensor x) -> ()")
def fill_with(out, x):
    out.copy_(x * 2)
'''


def forked():
    """A helper that need not load PyTorch. It ends a moment after the one that isomer knows."""
    return "%s -S -E %s %s" % (sys.executable, commands.__file__, commands.server())


def processes():
    """The command lines of all processes, words ended by zero bytes."""
    found = b""
    for path in glob.glob("/proc/[0-9]*/cmdline"):
        with contextlib.suppress(OSError), open(path, "rb") as f:
            found += f.read()
    return found


class Helper(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        with open(os.path.join(self.folder, "operators.py"), "w") as f:
            f.write(OPERATORS)

    def capture(self, name, *nodes):
        """x of [2, 3], then the nodes (op, kwargs, more), each on the one before."""
        path = os.path.join(self.folder, name)
        os.mkdir(path)
        out = [{"shape": [2, 3], "dtype": "float32"}]
        graph = [{"id": "x", "op": "input", "name": "x", "outputs": out}]
        for k, (op, kwargs, more) in enumerate(nodes):
            args = dict({"x": {"ref": graph[-1]["id"]}}, **kwargs)
            graph.append(
                dict(
                    {"id": "n%d" % k, "op": op, "args": [], "kwargs": args, "outputs": out}, **more
                )
            )
            if op.startswith("aten::"):
                graph[-1]["kwargs"] = dict({"self": args.pop("x")}, **args)
        with open(os.path.join(path, "graph.json"), "w") as f:
            json.dump(
                {
                    "format": "isomer-capture",
                    "version": 1,
                    "nodes": graph,
                    "outputs": [{"name": "y", "ref": graph[-1]["id"]}],
                },
                f,
            )
        write_safetensors(os.path.join(path, "weights.safetensors"), {})
        write_safetensors(
            os.path.join(path, "inputs.safetensors"),
            {"x": torch.tensor([[1.0, -2, 3], [0.5, 7, -1]])},
        )
        return path

    def isomer(self, *words, helper=None, more="", seconds=30, python=None):
        command = (
            helper
            or "exec %s -m isomer_capture.helper --import operators --seconds %d %s"
            % (python or forked(), seconds, more)
        )
        environment = dict(
            os.environ, PYTHONPATH=os.pathsep.join([os.path.join(ROOT, "capture"), self.folder])
        )
        return subprocess.run(
            [os.environ["ISOMER"], *words, "--helper", command],
            capture_output=True,
            text=True,
            env=environment,
            timeout=200,
        )

    def refused(self, op, *words, **options):
        done = self.isomer("run", self.capture(op.replace("::", "-"), (op, {}, {})), **options)
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        last = done.stderr.strip().splitlines()[-1]
        for w in (op,) + words:
            self.assertIn(w, last)

    def test_runs(self):
        """Arguments, float64 and a written argument arrive; the kernel's prints do not reach our
        stdout."""
        path = self.capture(
            "c",
            ("mine::twice", {"by": 2.0}, {}),
            ("mine::twice", {"by": 0.5}, {}),
            (
                "mine::fill_with",
                {"out": {"ref": "x"}},
                {"functionalized": {"returns": 0, "writes": ["out"]}},
            ),
        )
        for more in ((), ("--float64",)):
            done = self.isomer("run", path, *more, python=sys.executable)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertIn("sum 17 max 14", done.stdout)
            self.assertIn("float64" if more else "float32", done.stdout)
            self.assertNotIn("noise", done.stdout)
            self.assertIn("noise", done.stderr)

    def test_compares(self):
        left, right = (
            self.capture("l", ("mine::twice", {"by": 2.0}, {}), ("aten::relu", {}, {})),
            self.capture("r", ("aten::relu", {}, {}), ("mine::twice", {"by": 2.0}, {})),
        )
        done = self.isomer("compare", left, right)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("EQUIVALENT [tested]", done.stdout)
        wrong = self.capture("w", ("aten::relu", {}, {}), ("mine::twice", {"by": 2.5}, {}))
        self.assertEqual(self.isomer("compare", left, wrong).returncode, 1)

    def test_crashes(self):
        self.refused("mine::crash", "signal 11")
        self.refused("mine::leave", "exit status 7")
        self.refused("mine::truncates", "without an answer")

    def test_hangs(self):
        start = time.monotonic()
        self.refused("mine::hang", "did not answer in time", seconds=4, python=sys.executable)
        self.assertLess(time.monotonic() - start, 100)
        self.assertNotIn(b"sleep\x001000", processes())

    def test_raises(self):
        self.refused("mine::raises", "ValueError: no such thing")
        self.refused("mine::missing", "--import")

    def test_wrong_shape(self):
        path = self.capture("c", ("mine::shape", {}, {}))
        done = self.isomer("run", path)
        self.assertIn(done.returncode, (1, 2), done.stdout + done.stderr)
        self.assertIn("[6]", done.stdout + done.stderr)
        done = self.isomer("compare", path, path)
        self.assertNotEqual(done.returncode, 0, done.stdout)

    def test_nan(self):
        bad, good = (
            self.capture("b", ("mine::nothing", {}, {})),
            self.capture("g", ("mine::twice", {"by": 2.0}, {})),
        )
        done = self.isomer("compare", bad, good)
        self.assertNotEqual(done.returncode, 0, done.stdout)

    def test_survives(self):
        """It ends on some samples: those are refused, and the run goes on with another process."""
        left, right = (
            self.capture("l", ("mine::sometimes", {}, {}), ("aten::relu", {}, {})),
            self.capture("r", ("mine::sometimes", {}, {}), ("aten::relu", {}, {})),
        )
        done = self.isomer("compare", left, right)
        self.assertIn(done.returncode, (0, 3), done.stdout + done.stderr)
        self.assertTrue(done.stdout.strip().splitlines()[-1].startswith("isomer: "))

    def test_attributes(self):
        scaled = [("mine::scaled", {"layer_name": "layers.0"}, {"attributes": {"scale": 4.0}})]
        path = self.capture("c", *scaled)
        done = self.isomer("run", path, more="--adaptor operators:adaptor")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("sum 34 max 28", done.stdout)
        done = self.isomer("run", path)
        self.assertEqual(done.returncode, 2)
        self.assertIn("--adaptor", done.stderr)

    def test_no_helper(self):
        """Commands that are no helper, and helpers that talk nonsense."""
        path = self.capture("c", ("mine::twice", {"by": 2.0}, {}))
        for command in (
            "exit 3",
            "/no/such/program",
            "printf 'not a message' >&3; sleep 5",
            "printf '\\377\\377\\377\\177' >&3; sleep 5",
        ):
            done = self.isomer("run", path, helper=command)
            self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
            self.assertIn("helper", done.stderr.strip().splitlines()[-1])


if __name__ == "__main__":
    unittest.main()
