"""The package `isomer`: light to import; compare() and assert_equivalent()."""

import contextlib
import dataclasses
import importlib.util
import io
import os
import re
import subprocess
import sys
import tempfile
import time
import unittest
from unittest import mock

import isomer
from isomer import testing

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
HAVE_TORCH = importlib.util.find_spec("torch") is not None


class Package(unittest.TestCase):
    def test_importing_is_light(self):
        code = (
            "import sys, isomer, isomer.testing, isomer_capture.cli\n"
            "print([m for m in ('torch', 'transformers', 'numpy', 'vllm') if m in sys.modules])"
        )
        p = subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            env=dict(os.environ, PYTHONPATH=os.path.join(ROOT, "capture")),
        )
        self.assertEqual(p.stdout.strip(), "[]", p.stderr)

    @unittest.skipUnless(HAVE_TORCH, "PyTorch is not installed")
    def test_the_first_build_says_that_it_takes_a_minute(self):
        torch = importlib.util.find_spec("torch").submodule_search_locations[0]
        with tempfile.TemporaryDirectory() as folder:
            p = subprocess.run(
                ["bash", os.path.join(ROOT, ".ci", "build-shim"), folder],
                capture_output=True,
                text=True,
                env=dict(os.environ, LIBTORCH=torch, CXX="false"),  # what is said before it begins
            )
        self.assertEqual(p.returncode, 2, p.stderr)
        said = p.stderr.splitlines()
        self.assertIn("isomer: building for ", said[0])
        self.assertTrue(said[0].endswith("; once, about a minute"), said[0])
        self.assertIn("isomer: the build failed", said[-1])

    def test_captures(self):
        folder = os.path.join(ROOT, "models", "llama-2l")
        good = isomer.compare(os.path.join(folder, "hf-sdpa"), os.path.join(folder, "vllm"))
        self.assertNotIn("rounding:", good.short())
        sides = [os.path.join(folder, side) for side in ("hf-sdpa", "vllm")]
        rounded = isomer.compare(*sides, options=["--rounding"])
        self.assertIn("\n  rounding: rounding explains the difference", rounded.short())
        self.assertTrue(good)
        self.assertEqual(good.verdict, "equivalent")
        self.assertIn(good.evidence, ("tested", "proved"))
        self.assertTrue(good.rules and good.assumptions and not good.divergences)
        with self.assertRaises(AssertionError) as e:
            testing.assert_equivalent(
                os.path.join(folder, "hf-sdpa"), os.path.join(folder, "vllm-bug-eps")
            )
        for words in ("DIFFERENT", "input_layernorm", "1e-06", "witness"):
            self.assertIn(words, str(e.exception))
        weak = dataclasses.replace(
            good, evidence="tested", rules=[{"name": "some-rule", "status": "tested"}]
        )
        with mock.patch.object(testing, "compare", lambda *a, **k: weak):
            self.assertIs(testing.assert_equivalent("a", "b"), weak)
            with self.assertRaises(AssertionError) as e:
                testing.assert_equivalent("a", "b", evidence="proved")
        self.assertIn("some-rule", str(e.exception))

    def test_errors(self):
        with self.assertRaises(isomer.Error):
            isomer.compare("/no/such/capture", "/no/such/capture")
        with self.assertRaises(isomer.Error):
            isomer.compare(object(), object())

    @unittest.skipUnless(HAVE_TORCH, "PyTorch is not installed")
    def test_numpy_is_not_needed(self):
        code = (
            "import sys; sys.modules['numpy'] = None\n"
            "import torch, isomer\n"
            "m = torch.nn.Linear(3, 2).eval()\n"
            "m.register_buffer('empty', torch.empty(0))\n"
            "print(isomer.compare(m, m, (torch.randn(2, 3),)).verdict)"
        )
        p = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", code],
            capture_output=True,
            text=True,
            env=dict(os.environ, PYTHONPATH=os.path.join(ROOT, "capture")),
        )
        self.assertEqual(p.stdout.strip(), "equivalent", p.stderr)

    def test_a_package_without_its_program(self):
        from isomer import program

        self.assertIsNone(program.path())  # the source tree's: its program is built into build/
        with mock.patch.object(program, "folder_of", lambda name: None):
            with self.assertRaises(program.NoShim):
                program.environment("compare")
            self.assertNotIn("ISOMER_SHIM_DIR", program.environment("lint"))

    def test_why_a_shim_cannot_be_built_is_said(self):
        from isomer import program

        here = isomer.find_program()
        with tempfile.TemporaryDirectory() as folder:
            torch = os.path.join(folder, "torch")
            os.makedirs(torch)
            with open(os.path.join(torch, "version.py"), "w", encoding="utf-8") as f:
                f.write("__version__ = '2.9.1'\n")
            given = {"XDG_CACHE_HOME": folder, "CXX": "no-such-compiler"}
            with contextlib.ExitStack() as stack:
                for one in (
                    mock.patch.object(program, "SHIM", folder),
                    mock.patch.object(program, "path", lambda: here),
                    mock.patch.object(program, "folder_of", lambda name: torch * (name == "torch")),
                    mock.patch.dict(os.environ, given),
                ):
                    stack.enter_context(one)
                os.environ.pop("ISOMER_SHIM_DIR", None)
                for script, words in (
                    ("echo isomer: building for it >&2; exit 1", "could not be built"),
                    ("echo isomer: no compiler >&2; exit 2", "could not be built: no compiler"),
                ):
                    os.makedirs(os.path.join(folder, ".ci"), exist_ok=True)
                    with open(os.path.join(folder, ".ci", "build-shim"), "w") as f:
                        f.write(script)
                    said = io.StringIO()
                    with contextlib.redirect_stderr(said), self.assertRaises(isomer.Error) as e:
                        isomer.compare("/left", "/right")
                    self.assertTrue(str(e.exception).endswith(words), e.exception)
                    self.assertEqual("building" in said.getvalue(), "building" in script)

    def test_progress_is_passed_on_at_once(self):
        """The program waits with its end until the line was seen: one that came with the rest at
        the end would never be."""
        with tempfile.TemporaryDirectory() as folder:
            seen, script = os.path.join(folder, "seen"), os.path.join(folder, "isomer")
            with open(script, "w", encoding="utf-8") as f:
                f.write(
                    "#!/bin/sh\n"
                    "echo 'isomer: after 10 s: execute 1/2' >&2\n"
                    "echo 'isomer: a warning' >&2\n"
                    "for i in $(seq 200); do [ -e %s ] && break; sleep 0.1; done\n"
                    "[ -e %s ] && echo 'isomer: so it was' >&2\n"
                    "exit 2\n" % (seen, seen)
                )
            os.chmod(script, 0o755)

            class Terminal(io.StringIO):
                def write(self, text):
                    if "after 10 s" in text:
                        open(seen, "w").close()
                    return super().write(text)

            said = Terminal()
            with mock.patch.object(isomer, "find_program", lambda: script):
                with contextlib.redirect_stderr(said), self.assertRaises(isomer.Error) as e:
                    isomer.compare("/left", "/right")
            self.assertEqual(said.getvalue(), "isomer: after 10 s: execute 1/2\n")
            self.assertEqual(str(e.exception), "isomer: a warning\nisomer: so it was")

    def test_progress_is_said_once_in_ten_seconds(self):
        build = os.path.join(ROOT, "build")
        clock = os.path.join(build, "tests", "warm", "clock.so")
        if not os.path.exists(clock):
            self.skipTest("no clock that runs faster was built")
        sides = [os.path.join(ROOT, "models", "llama-2l", side) for side in ("hf-sdpa", "vllm-tp2")]
        said, began = io.StringIO(), time.monotonic()
        given = {"LD_PRELOAD": clock, "ISOMER": os.path.join(build, "isomer")}
        with mock.patch.dict(os.environ, given), contextlib.redirect_stderr(said):
            result = isomer.compare(*sides)
        self.assertEqual(result.verdict, "equivalent")
        lines = said.getvalue().splitlines()
        form = r"isomer: after (\d+) s(?:: \w[\w ]* \d+/\d+)?$"
        at = [0] + [int(re.match(form, line)[1]) for line in lines]
        if time.monotonic() - began > 1:  # twenty seconds of that clock
            self.assertGreater(len(at), 1, said.getvalue())
        self.assertTrue(all(b - a >= 10 for a, b in zip(at, at[1:])), at)

    def test_the_shim_that_was_brought_serves_a_pytorch_elsewhere(self):
        from isomer import program

        with tempfile.TemporaryDirectory() as folder:
            shim, torch = os.path.join(folder, "shim"), os.path.join(folder, "packages", "torch")
            brought = os.path.join(shim, "2.9.1")
            os.makedirs(brought), os.makedirs(torch)
            open(os.path.join(brought, "libisomer_shim.so"), "w").close()
            with open(os.path.join(torch, "version.py"), "w", encoding="utf-8") as f:
                f.write("__version__ = '2.9.1+cpu'\n")
            below = {"LD_LIBRARY_PATH": "/a/b"}
            given = [
                mock.patch.object(program, "SHIM", shim),
                mock.patch.object(program, "folder_of", lambda name: torch * (name == "torch")),
                mock.patch.object(program, "build", mock.Mock(side_effect=AssertionError)),
                mock.patch.dict(os.environ, below),
            ]
            with contextlib.ExitStack() as stack:
                for one in given:
                    stack.enter_context(one)
                os.environ.pop("ISOMER_SHIM_DIR", None)
                env = program.environment("compare")
                self.assertEqual(env["ISOMER_SHIM_DIR"], brought)
                self.assertEqual(env["LD_LIBRARY_PATH"], os.path.join(torch, "lib") + ":/a/b")
                with mock.patch.object(program, "HERE", os.path.join(folder, "packages", "isomer")):
                    self.assertEqual(program.environment("compare")["LD_LIBRARY_PATH"], "/a/b")
                with open(os.path.join(torch, "version.py"), "w", encoding="utf-8") as f:
                    f.write("__version__ = '2.8.0'\n")
                with self.assertRaises(AssertionError):  # another version's is built
                    program.environment("compare")
                with self.assertRaises(program.NoShim):  # not to say which version there is
                    program.environment("--version")

    @unittest.skipUnless(HAVE_TORCH, "PyTorch is not installed")
    def test_what_a_side_may_be(self):
        import torch
        from torch import nn

        x = torch.randn(3, 4)
        plain = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 2)).eval()
        other = nn.Sequential(plain[0], nn.GELU(approximate="tanh"), plain[2]).eval()
        for make in (torch.compile, lambda m: torch.export.export(m, (x,))):
            self.assertTrue(isomer.compare(make(plain), plain, (x,)))
            self.assertEqual(isomer.compare(make(other), plain, (x,)).verdict, "different")

    @unittest.skipUnless(HAVE_TORCH, "PyTorch is not installed")
    def test_what_is_no_side_is_refused_with_what_to_give(self):
        import copy
        import warnings

        import torch
        from torch import nn

        x = torch.randn(3, 4)
        plain = nn.Sequential(nn.Linear(4, 4)).eval()
        onnx = type("ModelProto", (), {"__module__": "onnx.onnx_ml_pb2"})()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            traced = torch.jit.trace(plain, x)
            quantize = torch.ao.quantization.quantize_dynamic
            packed = quantize(copy.deepcopy(plain), {nn.Linear}, dtype=torch.qint8)
        for side, words in (
            (3, "int: a side is a torch.nn.Module"),
            (len, "a side is a torch.nn.Module"),
            (onnx, "ONNX models are not read: give the module"),
            (traced, "TorchScript is not read: give the module"),
            (packed, "0 holds packed weights .*give the module before it is converted"),
        ):
            for both in ((side, plain), (plain, side)):
                with self.assertRaisesRegex(isomer.Error, words):
                    isomer.compare(*both, (x,))

    @unittest.skipUnless(HAVE_TORCH, "PyTorch is not installed")
    def test_wrong_arguments_are_told_of_in_a_line(self):
        import torch
        from torch import nn

        class Sparse(nn.Module):
            def forward(self, x):
                return x.to_sparse()

        x, m = torch.randn(3, 4), nn.ReLU()
        for wrong, words in (
            ({"outputs": "output"}, "outputs is a list of names, not 'output'"),
            ({"outputs": 3}, "outputs is a list of names, not 3"),
            ({"outputs": ["nope"]}, "there is no output tensor nope; there are: output"),
            ({"call_a": 3}, "call is a function of a module and its inputs, not 3"),
            ({"options": "--rounding"}, 'options is a list, as in ["--rounding"]'),
            ({"options": None}, "options is a list"),
            ({"options": ["--json", "r.json"]}, "options cannot hold --json"),
            ({"options": ["--help"]}, "options cannot hold --help"),
            ({"options": ["--nope"]}, 'unknown option "--nope"'),
            ({"keep": __file__}, "cannot be made: File exists"),
            ({"keep": 3}, "keep is the path of a folder, not 3"),
            ({"timeout": "soon"}, 'not a number of seconds: "soon"'),
            ({"inputs": 3}, "must be Tensor, not int"),
            ({"inputs": (x, x)}, "2 example inputs for a forward with 1 named parameters"),
            ({"model_a": Sparse()}, "Sparse cannot be captured: "),
            ({"model_a": ""}, "'' is no path of a capture"),
            ({"model_a": b"/a"}, "a side is a torch.nn.Module"),
            ({"model_a": "a\0b"}, "is no path of a capture"),
            ({"model_a": "--help"}, "./--help/graph.json: No such file"),
        ):
            given = {"model_a": m, "model_b": m, "inputs": (x,), **wrong}
            with self.assertRaises(isomer.Error, msg=wrong) as e:
                isomer.compare(**given)
            self.assertIn(words, str(e.exception))
            self.assertNotIn("\n", str(e.exception))

    @unittest.skipUnless(HAVE_TORCH, "PyTorch is not installed")
    def test_an_output_in_another_layout_is_told_of(self):
        import torch
        from torch import nn

        class Turned(nn.Module):
            def forward(self, x):
                return x.relu().T

        sides = nn.ReLU(), Turned(), (torch.randn(3, 4),)
        result = isomer.compare(*sides)
        self.assertEqual(result.verdict, "equivalent")
        self.assertIn("\n  output output = transpose(output, 0, 1)", result.short())
        with self.assertRaisesRegex(AssertionError, r"laid out otherwise: output = transpose"):
            testing.assert_equivalent(*sides)
        self.assertTrue(testing.assert_equivalent(*sides, any_layout=True))

    @unittest.skipUnless(HAVE_TORCH, "PyTorch is not installed")
    def test_modules(self):
        import torch
        from torch import nn

        class Manual(nn.Module):
            def __init__(self, linear, scale):
                super().__init__()
                self.w, self.b, self.scale = linear.weight, linear.bias, scale

            def forward(self, x):
                return torch.addmm(self.b, x, self.w.t()) * self.scale

        torch.manual_seed(0)
        linear, x = nn.Linear(6, 4).eval(), torch.randn(3, 6)
        result = testing.assert_equivalent(linear, Manual(linear, 1.0).eval(), (x,))
        self.assertEqual(result.evidence, "proved")
        self.assertEqual(
            isomer.compare(linear, Manual(linear, 1.5).eval(), (x,)).verdict, "different"
        )
        with self.assertRaises(isomer.Error):
            isomer.compare(linear, linear)
        with self.assertRaises(isomer.Error) as e:
            isomer.compare(nn.Dropout(), linear, (x,))
        self.assertIn("eval()", str(e.exception))


if __name__ == "__main__":
    unittest.main()
