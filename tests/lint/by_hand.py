#!/usr/bin/env python3
"""Layers and training steps as a user writes them for several ranks (layers.py, frameworks.py,
blocks.py and totals.py of recorded/), right and with mistakes, by `isomer lint`: recorded from
processes on gloo. What is wrong is seen by running them beside one process. Needs torch.

    tests/lint/by_hand.py [--isomer build/isomer] [-k TEXT] [--keep DIR] [-v]

A mistake is found, unless the table says that nothing can be said of it; what is right is never
accused."""

import argparse
import math
import os
import sys
import tempfile

from harness import Lint, ROOT, check, finish

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "recorded"), os.path.join(ROOT, "capture")]
sys.path.insert(0, os.path.join(ROOT, "tests", "support"))
import commands  # noqa: E402
import blocks  # noqa: E402, F401  fills the list of programs
import frameworks  # noqa: E402, F401
import layers  # noqa: E402, F401
import torch  # noqa: E402
import totals  # noqa: E402, F401
from rank import PROGRAMS  # noqa: E402

WORD = {0: "clean", 1: "found", 3: "undecided"}


def near(a, b):
    return a.shape == b.shape and bool((a - b).abs().max() <= 1e-4 * max(1, a.abs().max()))


def whole(held, name):
    """What the ranks' parts make up; None where replicas differ."""
    mesh, parts = held[0]["mesh"], [h["out"][name].double() for h in held]
    said = held[0]["said"].get(name.split(".", 1)[1] if "." in name else name, ["R"] * len(mesh))
    for axis, s in reversed(list(zip(mesh, said))):
        n, joined = mesh[axis], []
        for k in range(0, len(parts), n):
            group = parts[k : k + n]
            if s == "R" and not all(near(t, group[0]) for t in group[1:]):
                return None
            joined.append(group[0] if s == "R" else torch.cat(group, int(s[2:-1])))
        parts = joined
    return parts[0]


def read(folder, n):
    return [torch.load(os.path.join(folder, "%d-of-%d.pt" % (r, n))) for r in range(n)]


def agree(held, one):
    """Whether the ranks' outputs are those of one process."""
    for name, t in one[0]["out"].items():
        if any(name not in h["out"] for h in held):
            return False
        w = whole(held, name)
        if w is None or not near(t.double(), w):
            return False
    return True


def file_of(name):
    return sys.modules[PROGRAMS[name].__module__].__file__


def run_alone(name, folder):
    env = dict(os.environ, PYTHONPATH=os.path.join(ROOT, "capture"), WORLD_SIZE="1")
    done = commands.python([file_of(name), name, "none", folder], env=env)
    check(done.returncode == 0, "%s in one process: %s", name, done.stderr[-300:])
    return done.returncode == 0


def one(o, folder, name, fault, tally):
    p = PROGRAMS[name]
    n, at = math.prod(p.mesh.values()), os.path.join(folder, "%s-%s" % (name, fault))
    mesh = ",".join("%s=%d" % pair for pair in p.mesh.items())
    words = ["record", "--ranks", n, "--capture", at, "--mesh", mesh]
    done = commands.run(words + [file_of(name), name, fault, folder])
    if not check(done.returncode == 0, "%s, %s: %s", name, fault, done.stderr[-300:]):
        return
    wrong = not agree(read(folder, n), read(folder, 1))
    check(wrong == (fault != "none"), "%s, %s: the ranks agree: %s", name, fault, not wrong)
    x = Lint(o.isomer, at)
    word = WORD.get(x.status, "error")
    tally[wrong, word] = tally.get((wrong, word), 0) + 1
    if o.verbose:
        print("%-20s %-20s %-10s %s" % (name, fault, word, x.last), flush=True)
    if fault in p.undecided:
        wanted = "undecided"
    else:
        wanted = "found" if wrong else "clean"
    check(word == wanted, "%s, %s: %s", name, fault, x.last)


def main():
    a = argparse.ArgumentParser()
    a.add_argument("--isomer", default=os.path.join(ROOT, "build", "isomer"))
    a.add_argument("-k", default="", help="programs whose name holds this")
    a.add_argument("--keep")
    a.add_argument("-v", "--verbose", action="store_true")
    o = a.parse_args()
    o.isomer, tally = os.path.abspath(o.isomer), {}
    with tempfile.TemporaryDirectory() as folder:
        folder = o.keep or folder
        for name, p in PROGRAMS.items():
            if o.k in name and run_alone(name, folder):
                for fault in ["none"] + p.faults:
                    one(o, folder, name, fault, tally)
    for (wrong, word), n in sorted(tally.items()):
        print("%-5s %-9s %d" % ("wrong" if wrong else "right", word, n))
    finish()


if __name__ == "__main__":
    main()
