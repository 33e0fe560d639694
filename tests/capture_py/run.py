#!/usr/bin/env python3
"""The tests of the Python side. Finds a Python with PyTorch (this one, else .venv) and runs the
cases in it; the last line is `N passed, N failed`. What is not installed is said to be skipped.

    tests/capture_py/run.py [--isomer build/isomer] [-k NAME]"""

import argparse
import os
import sys
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "tests", "support"))
import commands  # noqa: E402


def main():
    a = argparse.ArgumentParser()
    a.add_argument("--isomer", default=os.path.join(ROOT, "build", "isomer"))
    a.add_argument("-k", default="", help="cases whose name holds this")
    a.add_argument(
        "--slowest",
        type=int,
        default=0,
        metavar="N",
        help="say which N cases took the most processor time",
    )
    options = a.parse_args()
    os.environ["ISOMER"] = os.path.abspath(options.isomer)
    local = os.path.join(ROOT, ".venv", "bin", "python3")
    if not os.environ.get("ISOMER_CAPTURE_TESTS"):
        os.environ["ISOMER_CAPTURE_TESTS"] = "1"
        # The pinned PyTorch and Transformers are in .venv.
        if os.path.exists(local) and not commands.same(local, sys.executable):
            if commands.has_torch(local):
                os.execv(local, [local] + sys.argv)
    sys.path[:0] = [os.path.join(ROOT, "capture"), HERE]
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    suite, missing = unittest.TestSuite(), []
    for name in sorted(f[:-3] for f in os.listdir(HERE) if f.startswith("test_")):
        try:
            loaded = unittest.defaultTestLoader.loadTestsFromName(name)
        except (
            unittest.SkipTest
        ) as e:  # as it is imported: discovery would have taken it, names it does not
            missing.append((name, e))
            continue
        suite.addTests(test for test in tests(loaded) if options.k in test.id())
    start = time.monotonic()
    result = unittest.TextTestRunner(stream=sys.stdout, verbosity=1, resultclass=Timed).run(suite)
    for seconds, name in sorted(result.spent, reverse=True)[: options.slowest]:
        print("%6.1f s %s" % (seconds, name))
    for test, reason in result.skipped:
        print("skipped %s: %s" % (test.id(), reason))
    for name, reason in missing:
        print("skipped %s: %s" % (name, reason))
    failed = len(result.failures) + len(result.errors)
    print("%.1f s, %.1f s of processor time" % (time.monotonic() - start, processor_time()))
    print("%d passed, %d failed" % (result.testsRun - failed - len(result.skipped), failed))
    return 1 if failed else 0


def processor_time():
    """Of this process and of those it has waited for."""
    t = os.times()
    return t.user + t.system + t.children_user + t.children_system


class Timed(unittest.TextTestResult):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.spent = []

    def startTest(self, test):
        super().startTest(test)
        self.began = processor_time()

    def stopTest(self, test):
        super().stopTest(test)
        self.spent.append((processor_time() - self.began, test.id()))


def tests(suite):
    for t in suite:
        if isinstance(t, unittest.TestSuite):
            yield from tests(t)
        else:
            yield t


if __name__ == "__main__":
    sys.exit(main())
