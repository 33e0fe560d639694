"""Captures by another environment's Python, and `isomer-capture upgrade`: the old environment is
this one again, or this one with a library that computes something else."""

import importlib.util
import json
import os
import stat
import sys
import tempfile
import unittest
import unittest.mock

for needed in ("torch", "transformers"):
    if importlib.util.find_spec(needed) is None:
        raise unittest.SkipTest(needed + " is not installed")

from isomer_capture import sweep  # noqa: E402
from test_models import TINY, run  # noqa: E402

# What the other library does: its norms divide by the root of a little more.
OTHER = """
import torch
_plain = torch.rsqrt
torch.rsqrt = lambda x: _plain(x + 0.01)
"""


class Upgrade(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.here = os.path.dirname(os.path.dirname(sys.executable))

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def environment(self, text):
        """A folder like an environment's, whose Python runs a text before all else."""
        os.makedirs(self.path("env", "bin"))
        with open(self.path("env", "sitecustomize.py"), "w") as f:
            f.write(text)
        python = self.path("env", "bin", "python")
        with open(python, "w") as f:
            f.write(
                '#!/bin/sh\nPYTHONPATH="%s" exec "%s" "$@"\n' % (self.path("env"), sys.executable)
            )
        os.chmod(python, os.stat(python).st_mode | stat.S_IXUSR)
        return self.path("env")

    def rows(self):
        with open(self.path("out", "upgrade.json")) as f:
            return json.load(f)["rows"]

    def upgrade(self, environment, *models):
        return run("upgrade", *models, "--python", environment, "-o", self.path("out"), *TINY)

    def test_the_same_library_changes_nothing(self):
        status, out, err = self.upgrade(self.here, "mixtral")
        self.assertEqual(status, 0, err)
        self.assertRegex(out, r"\| mixtral \| [\d.]+ to [\d.]+ \| equivalent \[proved\] \|")
        self.assertEqual([r["verdict"] for r in self.rows()], ["equivalent"])
        # What was drawn there is what is loaded here, and is not left behind.
        self.assertFalse(os.path.exists(self.path("out", "0-mixtral", "checkpoint")))

    def test_what_a_library_changed_is_found_and_named(self):
        status, out, err = self.upgrade(self.environment(OTHER), "llama", "no-such-model")
        self.assertEqual(status, 1, err)
        llama, missing = self.rows()
        self.assertEqual(llama["verdict"], "different")
        self.assertIn("input_layernorm", llama["detail"])
        self.assertEqual(missing["verdict"], "no capture")
        self.assertRegex(missing["detail"], "^old: no-such-model is no folder")

    def test_a_fork_that_dies_of_a_signal_is_followed_by_a_fresh_process(self):
        died = []

        def dies(arguments):
            died.append(arguments)
            os.abort()

        arguments = ["hf", "llama", *TINY]
        with unittest.mock.patch("isomer_capture.cli.main", dies):
            self.assertIsNone(sweep.captured(arguments, self.path("fresh"), 100))
            self.assertEqual(died, [])  # it was the child that died
            wrong = sweep.captured(["hf", "no-such-model"], self.path("wrong"), 100)
        self.assertRegex(wrong, "^no-such-model is no folder")
        self.assertTrue(os.path.exists(self.path("fresh", "graph.json")))

    def test_one_capture_of_another_environment(self):
        status, _, err = run("hf", "llama", "--python", self.here, "-o", self.path("there"), *TINY)
        self.assertEqual(status, 0, err)
        status, _, err = run("hf", "llama", "-o", self.path("here"), *TINY)
        self.assertEqual(status, 0, err)
        texts = [open(self.path(side, "graph.json")).read() for side in ("there", "here")]
        self.assertEqual(*texts)

    def test_a_checkpoint_without_all_values_is_told_of(self):
        status, _, err = run(
            "hf",
            "llama",
            "--head",
            "none",
            "--checkpoint",
            self.path("c"),
            "-o",
            self.path("o"),
            *TINY,
        )
        self.assertEqual((status, err), (0, ""))
        status, _, err = run("hf", self.path("c"), "--head", "lm", "-o", self.path("o"))
        self.assertEqual(status, 0, err)
        self.assertIn("has no values for lm_head.weight (1), which are random", err)

    def test_errors_are_one_line(self):
        silent = self.environment("import os\nos._exit(3)")
        for environment, words in (
            (self.path("nothing"), "is no environment (it has no bin/python)"),
            (silent, "ended with status 3"),
        ):
            for command in (["hf", "gpt2"], ["upgrade", "gpt2"]):
                status, out, err = run(
                    *command, "--python", environment, "-o", self.path("x"), *TINY
                )
                if command[0] == "hf" or "nothing" in environment:
                    self.assertEqual(status, 2, err)
                self.assertEqual(err.count("\n"), 1, err)
                self.assertIn(words, err)


if __name__ == "__main__":
    unittest.main()
