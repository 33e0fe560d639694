#!/usr/bin/env python3
"""No clock decides: reports without `stats`, what is printed and certificates are the same bytes on
an idle machine and beside busy loops. Plain Python 3.

    tests/cli/load.py [--isomer build/isomer] [--busy 4] [--every N] [--only TEXT] [--jobs N]
        [--quick --clock build/tests/warm/clock.so] [--record FILE | --against FILE]

For the pairs of models/ and of tests/pairs (--every: each N-th of the latter). Some are compared,
then --busy loops are started and the same are compared again, until all have been. Run it on the
machine that it is to hold for. One line for each pair that differs; the last line is `N passed, N
failed`.

--record compares each once and writes what came of it, for a time when the machine is idle;
--against compares each once beside --busy loops, and holds it against such a file.

--quick takes one family of models/ and 24 small pairs in three captures. Loops would take most of
its time: they run beside the first small capture alone, and all are compared again with clocks that
are twenty times as fast (tests/warm/clock.c); of models/ without certificates, whose obligations
take z3 ten seconds."""

import argparse
import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
BATCH = 64  # pairs between two lines of progress
SMALL = "small pairs, %d"
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


def outcome(isomer, left, right, clock="", certify=True):
    """A digest of all that a run says and writes, folders aside, and its verdict's line."""
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
                *(["--certificate", certificate] if certify else []),
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=dict(os.environ, LD_PRELOAD=clock) if clock else None,
            timeout=3600,
        )
        said = [b"%d" % p.returncode, p.stdout, without_progress(p.stderr)] + [
            open(f, "rb").read() if os.path.exists(f) else b"none" for f in (report, certificate)
        ]
        for name in (tmp, os.path.dirname(os.path.dirname(left))):
            said = [s.replace(name.encode(), b"") for s in said]
        return hashlib.sha256(b"\0".join(said)).hexdigest(), p.stdout.decode(
            "utf-8", "replace"
        ).strip().rsplit("\n", 1)[-1]


PROGRESS = re.compile(rb"^isomer: after (\d+) s(?:: [^\n]* \d+/\d+)?\n", re.M)
TOLD = []  # how often something was said of progress


def without_progress(said):
    """On a pipe a comparison says once in ten seconds that it goes on: of all, a clock's alone."""
    at = [0, *map(int, PROGRESS.findall(said))]
    if any(b - a < 10 for a, b in zip(at, at[1:])):
        return said  # more often than that
    TOLD.append(len(at) - 1)
    return PROGRESS.sub(b"", said)


def compared(o, pool, batch):
    """A line for each pair of the batch that says other bytes beside busy loops, or by another
    clock."""

    def run(t, clock=""):
        return outcome(o.isomer, t[1], t[2], clock, not o.quick or t[0] in small)

    def by_clock(t):
        return run(t, o.clock)

    small = [SMALL % k for k in range(3)]
    beside = [k for k, t in enumerate(batch) if not o.quick or t[0] == small[0]]
    idle = list(pool.map(run, batch))
    again = list(zip(range(len(batch)), pool.map(by_clock, batch))) if o.clock else []
    if beside:
        with Busy(o.busy):
            again += zip(beside, pool.map(run, [batch[k] for k in beside]))
    return [
        "FAILED %s: %s; beside %d loops, or by a fast clock, %s"
        % (batch[k][0], idle[k][1], o.busy, y[1] if idle[k][1] != y[1] else "other bytes")
        for k, y in again
        if idle[k][0] != y[0]
    ]


def told(at, n):
    """Progress, for who waits an hour."""
    if sys.stderr.isatty() or at % (10 * BATCH) == 0:
        print("%d of %d" % (min(at + BATCH, n), n), file=sys.stderr, flush=True)


def held(t, now, was):
    """Whether a pair says what was recorded; else a line is printed."""
    if list(now) == was.get(t[0]):
        return True
    before = was.get(t[0], ("", "nothing"))[1]
    print("FAILED %s: %s; recorded was %s" % (t[0], now[1], before), flush=True)
    return False


def recorded(o, pool, work):
    """How many pairs say what was recorded, or were, and how many say something else."""
    good, found, was = 0, {}, {}
    if o.against:
        with open(o.against) as f:
            was = json.load(f)
    with Busy(0 if o.record else o.busy):
        for at in range(0, len(work), BATCH):
            batch = work[at : at + BATCH]
            for t, now in zip(batch, pool.map(lambda t: outcome(o.isomer, t[1], t[2]), batch)):
                found[t[0]] = now
                good += bool(o.record) or held(t, now, was)
            if o.record:
                with open(o.record, "w") as f:
                    json.dump(found, f, indent=0)
            told(at, len(work))
    return good, len(work) - good


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
            yield SMALL % k, os.path.join(where, "left"), os.path.join(where, "right")
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
    a.add_argument("--clock", default="", help="a library of clocks to run all by, too")
    a.add_argument("--record", default="", help="write what came of each pair")
    a.add_argument("--against", default="", help="hold each pair against such a record")
    a.add_argument("--jobs", type=int, default=min(2, os.cpu_count() or 1))
    o = a.parse_args()
    o.isomer, o.clock = os.path.abspath(o.isomer), o.clock and os.path.abspath(o.clock)
    passed, failed = 0, 0
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(o.jobs) as pool:
        work = [t for t in todo(o, folder) if o.only in t[0]]
        if o.record or o.against:
            passed, failed = recorded(o, pool, work)
            work = []
        for at in range(0, len(work), BATCH):
            batch = work[at : at + BATCH]
            bad = compared(o, pool, batch)
            passed, failed = passed + len(batch) - len(bad), failed + len(bad)
            for line in bad:
                print(line, flush=True)
            told(at, len(work))
    if o.clock and not any(TOLD):
        print("FAILED by a fast clock nothing was said of progress")
        failed += 1
    print("%d passed, %d failed" % (passed, failed))
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
