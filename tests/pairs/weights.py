#!/usr/bin/env python3
"""Pairs that are one function at the captured parameters only, drawn by seed, and their twins.

    tests/pairs/weights.py [--isomer build/isomer] [--seed 0] [--count 1] [--only KIND]

A bias of zeros is left out, a weight of ones, an adapter that adds nothing, a branch whose gate is
0; a parameter stands as a number; a symmetric matrix is transposed. Without `--at-these-weights`
none of it is `equivalent`, because other parameters tell the sides apart. With it each is, the last
line says so, and the certificate holds, which says so too; a twin in which one number of the
parameter is another is `different`. The last line is `N passed, N failed`."""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile

import dsl

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
STATUS = {0: dsl.EQUIVALENT, 1: dsl.DIFFERENT, 2: dsl.ERROR, 3: dsl.UNDECIDED}
AT = ", at these weights"


class Kind:
    """The special parameter's values, and the graphs with it and without it."""

    def __init__(self, rng):
        self.n, self.m, self.seed = rng.choice([5, 6, 8]), rng.choice([4, 7]), rng.random()

    def free(self, g, name, *shape):
        return g.param(name, dsl.values("%s %s" % (self.seed, name), *shape))

    def x(self, g):
        return g.x(3, self.n)


class ZeroBias(Kind):
    def special(self):
        return (self.m,), [0.0] * self.m

    def left(self, g, p):
        return self.x(g).linear(self.free(g, "w", self.m, self.n), p).relu()

    def right(self, g):
        return self.x(g).linear(self.free(g, "w", self.m, self.n)).relu()


class OnesWeight(Kind):
    def special(self):
        return (self.n,), [1.0] * self.n

    def norm(self, g):
        x = self.x(g)
        return x * ((x * x).mean(-1, True) + 1e-5).rsqrt()

    def left(self, g, p):
        return (self.norm(g) * p).linear(self.free(g, "w", self.m, self.n))

    def right(self, g):
        return self.norm(g).linear(self.free(g, "w", self.m, self.n))


class IdleAdapter(Kind):
    def special(self):
        return (self.m, 2), [0.0] * (2 * self.m)

    def left(self, g, p):
        adapted = self.x(g).linear(self.free(g, "a", 2, self.n)).linear(p) * 2.0
        return self.x(g).linear(self.free(g, "w", self.m, self.n)) + adapted

    def right(self, g):
        return self.x(g).linear(self.free(g, "w", self.m, self.n))


class ClosedGate(Kind):
    def special(self):
        return (1,), [0.0]

    def left(self, g, p):
        return self.x(g) + p * self.x(g).linear(self.free(g, "w", self.n, self.n)).relu()

    def right(self, g):
        return self.x(g)


class StoredNumber(Kind):
    def special(self):
        return (1,), [0.125]

    def scores(self, g):
        q = self.x(g).linear(self.free(g, "q", self.m, self.n))
        return q.matmul(self.x(g).linear(self.free(g, "k", self.m, self.n)).t())

    def left(self, g, p):
        return (self.scores(g) * p).softmax(-1)

    def right(self, g):
        return (self.scores(g) * 0.125).softmax(-1)


class Symmetric(Kind):
    def special(self):
        v = dsl.values("%s s" % self.seed, self.n, self.n).values
        n = self.n
        return (n, n), [v[min(i, j) * n + max(i, j)] for i in range(n) for j in range(n)]

    def left(self, g, p):
        return self.x(g).linear(p).tanh()

    def right(self, g):
        p = g.param("p", dsl.Data(*self.special()))
        return self.x(g).matmul(p).tanh()


KINDS = [ZeroBias, OnesWeight, IdleAdapter, ClosedGate, StoredNumber, Symmetric]


def last_line(p):
    """Of the verdict; on stderr a slow run says how far it is."""
    return (p.stdout.strip() or p.stderr.strip()).split("\n")[-1]


def compare(o, folder, *options):
    sides = [os.path.join(folder, s) for s in ("left", "right")]
    command = [o.isomer, "compare", *sides, *options]
    p = subprocess.run(command, capture_output=True, text=True)
    return STATUS.get(p.returncode, "?"), last_line(p)


def check(o, folder, certificate):
    sides = [os.path.join(folder, s) for s in ("left", "right")]
    p = subprocess.run([o.isomer, "check", certificate, *sides], capture_output=True, text=True)
    return p.returncode, last_line(p)


def without_the_words(certificate):
    """The certificate without what says that it is of these weights."""
    with open(certificate, encoding="utf-8") as f:
        doc = json.load(f)
    del doc["at_these_weights"]
    with open(certificate, "w", encoding="utf-8") as f:
        json.dump(doc, f)


def attempt(o, kind, change):
    """What is wrong, a line each."""
    shape, values = kind.special()
    if change is not None:
        values = [v + 0.01 if i == change else v for i, v in enumerate(values)]
    sides = [lambda g: kind.left(g, g.param("p", dsl.Data(shape, values))), kind.right]
    with tempfile.TemporaryDirectory() as folder:
        dsl.Pair("", "", "", *sides).write(folder)
        certificate = os.path.join(folder, "c.json")
        options = ["--certificate", certificate] if change is None else []
        got, line = compare(o, folder, "--at-these-weights", *options)
        if change is not None:
            good = got == dsl.DIFFERENT and line.endswith(AT)
            return [] if good else ["the twin: " + line]
        wrong = [] if got == dsl.EQUIVALENT and line.endswith(AT) else [line]
        free, says = compare(o, folder)
        if free == dsl.EQUIVALENT or says.endswith(AT):
            wrong.append("with free parameters: " + says)
        if not wrong:
            status, says = check(o, folder, certificate)
            if status != 0 or not says.endswith(AT):
                wrong.append("checked: " + says)
            without_the_words(certificate)
            if check(o, folder, certificate)[0] != 1:
                wrong.append("it holds with free parameters, too")
        return wrong


def main():
    a = argparse.ArgumentParser()
    a.add_argument("--isomer", default=os.path.join(ROOT, "build", "isomer"))
    a.add_argument("--seed", type=int, default=0)
    a.add_argument("--count", type=int, default=1)
    a.add_argument("--only", default="")
    o = a.parse_args()
    passed = failed = 0
    for k in range(o.seed, o.seed + o.count):
        for make in KINDS:
            if o.only not in make.__name__:
                continue
            rng = random.Random("%s %d" % (make.__name__, k))
            kind = make(rng)
            for change in (None, rng.randrange(len(kind.special()[1]))):
                if make is Symmetric and change is not None and change % (kind.n + 1) == 0:
                    change = 1  # off the diagonal
                wrong = attempt(o, kind, change)
                passed, failed = passed + (not wrong), failed + bool(wrong)
                for line in wrong:
                    print("FAILED %s %d: %s" % (make.__name__, k, line), flush=True)
    print("%d passed, %d failed" % (passed, failed))
    return failed > 0 or not passed


if __name__ == "__main__":
    sys.exit(main())
