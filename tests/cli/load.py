#!/usr/bin/env python3
"""No clock decides: reports without `stats`, what is printed and certificates are the same bytes on
an idle machine and beside busy loops. Plain Python 3.

    tests/cli/load.py [--isomer build/isomer] [--busy 4] [--every N] [--only TEXT] [--quick]
        [--jobs N]

For the pairs of models/ and of tests/pairs (--every: each N-th of the latter; --quick: one family
of models/ and 24 small pairs in three captures). Some are compared, then --busy loops are started
and the same are compared again, until all have been. Run it on the machine that it is to hold for.
One line for each pair that differs; the last line is `N passed, N failed`."""

import argparse
import hashlib
import os
import signal
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
BATCH = 64  # pairs between two lines of progress
sys.path[:0] = [HERE, os.path.join(ROOT, "tests", "pairs")]
import determinism
import dsl
import traps  # all pairs


class Busy:
    """Loops that do nothing but take the processor."""

    def __init__(self, n):
        self.n, self.loops = n, []

    def __enter__(self):
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # no loop outlives this program
        self.loops = [
            subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(self.n)
        ]

    def __exit__(self, *_):
        for p in self.loops:
            p.kill()
            p.wait()


def outcome(isomer, left, right):
    """A digest of all that a run says and writes, and its verdict's line."""
    with tempfile.TemporaryDirectory() as tmp:
        report, certificate = os.path.join(tmp, "r.json"), os.path.join(tmp, "c.json")
        p = subprocess.run(
            [
                isomer,
                "compare",
                left,
                right,
                "--no-stats",
                "--json",
                report,
                "--certificate",
                certificate,
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            timeout=3600,
        )
        said = [b"%d" % p.returncode, p.stdout, p.stderr] + [
            open(f, "rb").read() if os.path.exists(f) else b"none" for f in (report, certificate)
        ]
        said = [s.replace(tmp.encode(), b"") for s in said]
        return hashlib.sha256(b"\0".join(said)).hexdigest(), p.stdout.decode(
            "utf-8", "replace"
        ).strip().rsplit("\n", 1)[-1]


def compared(o, pool, batch):
    """A line for each pair of the batch that says other bytes beside busy loops."""

    def run(t):
        return outcome(o.isomer, t[1], t[2])

    idle = list(pool.map(run, batch))
    with Busy(o.busy):
        busy = list(pool.map(run, batch))
    return [
        "FAILED %s: %s; beside %d loops %s"
        % (name, x[1], o.busy, y[1] if x[1] != y[1] else "other bytes")
        for (name, _, _), x, y in zip(batch, idle, busy)
        if x[0] != y[0]
    ]


def todo(o, folder):
    """(name, left, right)"""
    for left, right in determinism.pairs(argparse.Namespace(captures="", quick=o.quick)):
        if not o.quick or "gpt2-2l" in left:
            yield "%s %s" % (os.path.relpath(left, ROOT), os.path.basename(right)), left, right
    small = [p for i, p in enumerate(dsl.PAIRS.values()) if i % o.every == 0]
    if o.quick:
        equal = [p for p in small if p.expected == dsl.EQUIVALENT]
        for k in range(3):
            where = os.path.join(folder, "together%d" % k)
            dsl.write_together(equal[k * len(equal) // 3 :][:8], where)
            yield "small pairs, %d" % k, os.path.join(where, "left"), os.path.join(where, "right")
        return
    for k, p in enumerate(small):
        where = os.path.join(folder, str(k))
        p.write(where)
        yield p.name, os.path.join(where, "left"), os.path.join(where, "right")


def main():
    a = argparse.ArgumentParser(description="the same bytes beside busy loops")
    a.add_argument("--isomer", default=os.path.join(ROOT, "build", "isomer"))
    a.add_argument("--busy", type=int, default=4)
    a.add_argument("--every", type=int, default=1)
    a.add_argument("--only", default="", help="pairs whose name holds this")
    a.add_argument("--quick", action="store_true")
    a.add_argument("--jobs", type=int, default=min(2, os.cpu_count() or 1))
    o = a.parse_args()
    o.isomer = os.path.abspath(o.isomer)
    passed, failed = 0, 0
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(o.jobs) as pool:
        work = [t for t in todo(o, folder) if o.only in t[0]]
        for at in range(0, len(work), BATCH):
            batch = work[at : at + BATCH]
            bad = compared(o, pool, batch)
            passed, failed = passed + len(batch) - len(bad), failed + len(bad)
            for line in bad:
                print(line, flush=True)
            if sys.stderr.isatty() or at % (10 * BATCH) == 0:
                print("%d of %d" % (at + len(batch), len(work)), file=sys.stderr)
    print("%d passed, %d failed" % (passed, failed))
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
