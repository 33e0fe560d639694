"""The scripts of docs/found.md print what the page says: this Transformers has the bugs."""

import contextlib
import importlib.util
import io
import os
import re
import unittest

for needed in ("torch", "transformers"):
    if importlib.util.find_spec(needed) is None:
        raise unittest.SkipTest(needed + " is not installed")

import torch  # noqa: E402
import transformers  # noqa: E402
from isomer_capture.hf import TESTED  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SCRIPT = re.compile(r"```python\n(.*?)```\s*```text\n(.*?)```", re.S)
NOISE = 1e-4  # what is smaller is rounding, and differs between machines


def numbers(text):
    return [float(line.split()[-1]) for line in text.splitlines()]


class Found(unittest.TestCase):
    @unittest.skipIf(transformers.__version__ != TESTED, "the page is of Transformers " + TESTED)
    def test_scripts_show_what_the_page_says(self):
        with open(os.path.join(ROOT, "docs", "found.md"), encoding="utf-8") as f:
            scripts = SCRIPT.findall(f.read())
        self.assertEqual(len(scripts), 4)
        for script, said in scripts:
            with self.subTest(script[:80]), torch.no_grad():
                out = io.StringIO()
                with contextlib.redirect_stdout(out):
                    exec(script, {})
                for is_now, was in zip(numbers(out.getvalue()), numbers(said), strict=True):
                    if was < NOISE:
                        self.assertLess(is_now, NOISE)
                    else:
                        self.assertAlmostEqual(is_now / was, 1.0, places=2)


if __name__ == "__main__":
    unittest.main()
