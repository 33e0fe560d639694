#!/usr/bin/env python3
"""The tests of the Python side. Finds a Python with PyTorch (this one, else .venv) and runs the cases in it; the last
line is `N passed, N failed`. What is not installed is said to be skipped.

    tests/capture_py/run.py [--isomer build/isomer] [-k NAME]"""
import argparse
import os
import subprocess
import sys
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))


def has_torch(python):
    return subprocess.run([python, "-c", "import torch"], stderr=subprocess.DEVNULL).returncode == 0


def main():
    a = argparse.ArgumentParser()
    a.add_argument("--isomer", default=os.path.join(ROOT, "build", "isomer"))
    a.add_argument("-k", default="", help="cases whose name holds this")
    a.add_argument("--slowest", type=int, default=0)
    options = a.parse_args()
    os.environ["ISOMER"] = os.path.abspath(options.isomer)
    local = os.path.join(ROOT, ".venv", "bin", "python3")
    if not os.environ.get("ISOMER_CAPTURE_TESTS"):
        os.environ["ISOMER_CAPTURE_TESTS"] = "1"
        # The pinned PyTorch and Transformers are in .venv.
        if os.path.exists(local) and has_torch(local):
            os.execv(local, [local] + sys.argv)
    sys.path[:0] = [os.path.join(ROOT, "capture"), HERE]
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    suite, names = unittest.TestSuite(), sorted(f[:-3] for f in os.listdir(HERE) if f.startswith("test_"))
    for test in tests(unittest.defaultTestLoader.loadTestsFromNames(names)):
        if options.k in test.id():
            suite.addTest(test)
    start = time.monotonic()
    result = unittest.TextTestRunner(stream=sys.stdout, verbosity=1).run(suite)
    for test, reason in result.skipped:
        print("skipped %s: %s" % (test.id(), reason))
    failed = len(result.failures) + len(result.errors)
    print("%.1f s" % (time.monotonic() - start))
    print("%d passed, %d failed" % (result.testsRun - failed - len(result.skipped), failed))
    return 1 if failed else 0


def tests(suite):
    for t in suite:
        if isinstance(t, unittest.TestSuite):
            yield from tests(t)
        else:
            yield t


if __name__ == "__main__":
    sys.exit(main())
