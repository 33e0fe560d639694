#!/usr/bin/env python3
"""Inputs of lint that are cut off, or have wrong bytes: what is cut off is never clean, and nothing
crashes; what is refused is refused with one line. Plain Python 3.

    tests/lint/damaged.py [--isomer build/isomer] [--cuts 24] [--count 200] [--seed 0]

With --isomer of a build with sanitizers, what they see fails."""

import argparse
import os
import random
import shutil
import subprocess
import tempfile

from harness import ROOT, check, finish
from placed_programs import PROGRAMS

CORPUS = os.path.join(ROOT, "tests", "fuzz", "corpus", "lint")
TABLES = os.path.join(ROOT, "tests", "lint", "tables")
TOKENS = [b"-1", b"0", b"4294967296", b"18446744073709551615", b"1e400", b"null", b"[]", b"{}",
          b'""', b"[[[[", b"\\u0000", b"\xff", b"\n", b",", b'"', b"\x80\x02"]  # fmt: skip


class Input:
    """Files of one input; `at` is the one that is damaged, `args` what lint is called with."""

    def __init__(self, at, args, data):
        self.at, self.args, self.data = at, args, data


def inputs(folder):
    for name in sorted(os.listdir(CORPUS)):
        with open(os.path.join(CORPUS, name), "rb") as f:
            at = os.path.join(folder, name)
            yield Input(at, [at], f.read())
    for name in sorted(os.listdir(TABLES))[:4]:
        with open(os.path.join(TABLES, name), "rb") as f:
            at = os.path.join(folder, name)
            yield Input(at, [at], f.read())
    for program in ("row parallel", "vocabulary parallel embedding"):
        at = os.path.join(folder, program.replace(" ", "-"))
        PROGRAMS[program].write(at, False)
        for name in ("graph.json", "weights.safetensors", "inputs.safetensors"):
            path = os.path.join(at, name)
            with open(path, "rb") as f:
                yield Input(path, [at], f.read())


def put(one, data):
    with open(one.at, "wb") as f:
        f.write(data)


def lint(isomer, one, what):
    """The status; complains where it crashes, or refuses in other words than one line."""
    p = subprocess.run(
        [isomer, "lint", "-q"] + one.args,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        timeout=120,
    )
    said = p.stderr.decode("utf-8", "replace")
    check(p.returncode in (0, 1, 2, 3), "%s: status %d: %s", what, p.returncode, said[-600:])
    lines = said.count("\n")
    check(p.returncode != 2 or (lines == 1 and said.startswith("isomer: ")), "%s: %r", what, said)
    return p.returncode


def changed(data, rng):
    """A few bytes that are others, doubled, gone, or words that readers stumble over."""
    out = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 5))):
        k = rng.randrange(len(out) + 1)
        kind = rng.randrange(4)
        if kind == 0 and k < len(out):
            out[k] = rng.randrange(256)
        elif kind == 1:
            out[k : k + rng.randrange(1, 12)] = rng.choice(TOKENS)
        elif kind == 2:
            del out[k : k + rng.choice((1, 4, 40))]
        else:
            out[k:k] = out[max(0, k - rng.randrange(1, 60)) : k]
    return bytes(out)


def without_rows(isomer, folder):
    """Tables without their last rows. That of a GPipe without messages is a shorter one's."""
    at = os.path.join(folder, "rows.csv")
    for name in sorted(os.listdir(TABLES)):
        with open(os.path.join(TABLES, name), encoding="utf-8") as f:
            rows = f.readlines()
        for n in range(1, len(rows)):
            with open(at, "w", encoding="utf-8") as f:
                f.writelines(rows[:n])
            quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
            status = subprocess.call([isomer, "lint", at], **quiet)
            same = name.startswith("GPipe") and "compute" in name
            check((status == 0) == same, "%s with %d rows: %d", name, n, status)
            said = [isomer, "lint", "--stages", str(len(rows)), at]
            status = subprocess.call(said, **quiet)
            check(status != 0, "%s with %d rows and --stages is clean", name, n)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--isomer", default=os.path.join(ROOT, "build", "isomer"))
    p.add_argument("--cuts", type=int, default=24, help="of each file")
    p.add_argument("--count", type=int, default=200, help="files with wrong bytes")
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--keep", help="a folder for what fails")
    o = p.parse_args()
    rng = random.Random(o.seed)
    with tempfile.TemporaryDirectory() as folder:
        without_rows(o.isomer, folder)
        all = list(inputs(folder))
        for one in all:
            name = os.path.relpath(one.at, folder)
            whole = len(one.data.rstrip())
            for n in sorted(rng.sample(range(whole), min(o.cuts, whole))):
                if name.endswith(".csv") and one.data[n - 1 : n] == b"\n":
                    continue  # a shorter table, whole
                put(one, one.data[:n])
                status = lint(o.isomer, one, "%s cut at %d" % (name, n))
                check(status != 0, "%s cut at %d of %d is clean", name, n, whole)
            put(one, one.data)
        for k in range(o.count):
            one = rng.choice(all)
            put(one, changed(one.data, rng))
            name = "%s, damage %d" % (os.path.relpath(one.at, folder), k)
            if lint(o.isomer, one, name) not in (0, 1, 2, 3) and o.keep:
                shutil.copy(one.at, os.path.join(o.keep, "damage-%d" % k))
            put(one, one.data)
    finish()


main()
