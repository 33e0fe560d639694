#!/usr/bin/env python3
"""Pairs of graphs that rounding tells apart, or makes alike, though the functions are the same, or
are not. mpmath knows.

    tests/pairs/absorbed.py [--isomer build/isomer] [--seed N] [--count N] [--only KIND]
                            [--number K] [--keep DIR] [-v]

The expressions are those of the adversary's rules (tests/adversary/rules.py): `absorb`, sums that
swallow operands, near powers of two too; `attrs`, attributes that are negative, zero, equal,
exchanged or huge; `complex`, identities that hold on one branch only. Here they are graphs: each
attribute has a value, numbers stand as literals or as buffers, inputs are float32 or float64. No
pair that is the same may be `different`, none other `equivalent`, and one in ten of the same may be
`undecided`. Sides that are the same wherever both are numbers, but of which one has none at 0 or
below it (1/z, and its angle), may be either. Buffers that are some last places apart may be one, if
the report says that they are so but for rounding, and how little that moves."""

import argparse
import itertools
import os
import random
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

try:
    import mpmath  # noqa: F401
except ImportError:
    print("absorbed: no mpmath here: left out")
    sys.exit(0)

import dsl
from dsl import Data, f32, f64

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "adversary"))
import rules  # noqa: E402
from rules import N, mp  # noqa: E402

VERDICT = {0: "equivalent", 1: "different", 2: "error", 3: "undecided"}
TO_ONE = ("sum", "mean", "amax", "amin")  # of the three elements


# ---- expressions as graphs ----


def parse(text):
    """Lists, and words."""
    stack = [[]]
    for word in re.findall(r"[()]|[^\s()]+", text):
        if word == "(":
            stack.append([])
        elif word == ")":
            done = stack.pop()
            stack[-1].append(done)
        else:
            stack[-1].append(word)
    return stack[0][0]


class Writer:
    """One side of a pair in a graph `g`."""

    def __init__(self, g, case):
        self.g, self.case, self.rng = g, case, random.Random(case.seed)
        self.made = {}

    def variable(self, name):
        c = self.case
        if c.rule.kind == "c":
            return self.complex_variable(name)
        return self.g.x(N, name=name, dtype=c.dtype, scale=c.scale)

    def complex_variable(self, name):
        x = self.g.x(N, 2, name=name, dtype=self.case.dtype, scale=self.case.scale)
        return self.g.op("view_as_complex", [x], [((N,), self.complex_dtype())])[0]

    def complex_dtype(self):
        return "complex64" if self.case.dtype == f32 else "complex128"

    def number(self, word):
        return self.case.attrs[word] if word in self.case.attrs else float(word)

    def term(self, t):
        key = repr(t)
        if key not in self.made:
            self.made[key] = self.variable(t) if isinstance(t, str) else self.call(t)
        return self.made[key]

    def is_number(self, t):
        return isinstance(t, str) and (t in self.case.attrs or re.match(r"-?[\d.]", t) is not None)

    def call(self, t):
        op, args, kwargs, i = t[0][len("aten::") :], [], {}, 1
        while i < len(t):
            if isinstance(t[i], str) and t[i].startswith(":"):
                kwargs[t[i][1:]] = self.number(t[i + 1])
                i += 2
                continue
            args.append(self.argument(op, t[i], i))
            i += 1
        with_number = op in ("add.Scalar", "sub.Scalar", "mul.Scalar", "div.Scalar")
        if with_number and self.rng.random() < self.case.stored:
            c = args[1]
            args[1] = self.g.buffer("c%s" % repr(c), Data((), [c]), dtype=f64)
            op = op[:3] + ".Tensor"
        tensors = [a for a in args if isinstance(a, dsl.Tensor)]
        shapes = [a.shape for a in tensors]
        shape = () if op in TO_ONE else dsl.broadcast(*shapes)
        dtypes = [a.dtype for a in tensors if a.shape or not tensors[0].shape]
        dtype = dsl.promote(*dtypes)
        if op in ("angle", "abs") and "complex" in dtype:
            dtype = self.case.dtype
        return self.g.op(op, args, [(shape, dtype)], kwargs)[0]

    def argument(self, op, t, i):
        if isinstance(t, list) and t[0] == "list":
            return [int(x) for x in t[1:]]
        if self.is_number(t):
            return int(t) if op == "softmax.int" and i == 2 else self.number(t)
        return self.term(t)

    def output(self, e):
        y = self.term(parse(e.text))
        if "complex" not in y.dtype:
            return y
        return self.g.op("view_as_real", [y], [(y.shape + (2,), self.case.dtype)])[0]


class Case:
    def __init__(self, rule, same, attrs, rng):
        self.rule, self.same, self.attrs = rule, same, attrs
        self.either = same and one_has_none(rule, attrs)
        self.name, self.seed = rule.name, rng.random()
        self.dtype = rng.choice([f32, f32, f64])
        self.stored = rng.choice([0, 0, 0.5, 1])
        self.scale = rng.choice([1.0, 1.0, 1.0, 8.0, 0.125])

    def write(self, folder):
        for side, e in (("left", self.rule.lhs), ("right", self.rule.rhs)):
            g = dsl.Graph()
            g.write(os.path.join(folder, side), {"y": Writer(g, self).output(e)})


# ---- cases ----

LAST_PLACES = 1e-14  # forty of them
FAR = [1e4] * 4 + [1e8] * 4 + [1e24] * 4
NUMBERS = [0.5, 2.0, -1.0, -0.5, 3.0, 0.0, 1.0, 1e3, -1e-3, 1e20, -1e20, 65504.0, 2.0**-40, 1e-30]


def numbers(rng, rule):
    """Values of the attributes: any, or equal, or one the other's negative."""
    names = [a for a, _ in rule.attrs]
    out = {a: rng.choice(NUMBERS) for a in names}
    if len(names) > 1 and rng.random() < 0.4:
        out[names[1]] = rng.choice([1, 1, -1]) * out[names[0]]
    return out


def points(rng, rule, attrs):
    """The adversary's, with the attributes' values; and where these are thresholds, far numbers, as
    inputs may be that a graph scales by 0.001 before it compares them."""
    point = rules.complex_point if rule.kind == "c" else rules.real_point
    given = {a: mp.mpf(v) for a, v in attrs.items()}
    for k in range(40):
        yield {**point(rng, rule, k), **given}
    own = random.Random(0)
    for scale in FAR if attrs and rule.kind == "f" else ():
        yield {**{v: [mp.mpf(own.gauss(0, scale)) for _ in range(N)] for v in rule.vars}, **given}


def truth(rule, attrs, rng):
    mp.mp.dps, good = rules.DIGITS, 0
    for env in points(rng, rule, attrs):
        try:
            a, b = rule.lhs.at(env), rule.rhs.at(env)
        except (rules.Undefined, ZeroDivisionError, OverflowError, ValueError):
            continue
        for x, y in zip(a, b):
            size = max(abs(x), abs(y), mp.mpf(10) ** -300)
            if abs(x - y) > mp.mpf(10) ** (-rules.DIGITS // 2) * size:
                return False
        good += 1
    return True if good >= 8 else None


def has_value(e, env):
    try:
        return bool(e.at(env))
    except (rules.Undefined, ZeroDivisionError):
        return False


def one_has_none(rule, attrs):
    """Whether one side alone is a number where some of the variables are 0, or negative."""
    number = mp.mpc(1.5, 0.5) if rule.kind == "c" else mp.mpf(1.5)
    for factors in itertools.product([1, 0, -1], repeat=len(rule.vars)):
        env = {v: [number * f] * N for v, f in zip(rule.vars, factors)}
        env.update({a: mp.mpf(v) for a, v in attrs.items()})
        if has_value(rule.lhs, env) != has_value(rule.rhs, env):
            return True
    return False


def both_read_all(rule):
    """A graph has the inputs that it reads, and the other one must have these."""
    words = [set(re.findall(r"[^\s()]+", e.text)) for e in (rule.lhs, rule.rhs)]
    return all(set(rule.vars) & w == set(rule.vars) & words[0] for w in words)


MAGNITUDE = rules.magnitude


def powers(rng):
    """At a power of two or beside it: sums there round by twice as much on one side."""
    e = rng.choice([24, 25, 52, 53, 54, 55, 60, 64, 100])
    aside = rng.choice([0, 0, 1, -1]) * 2.0 ** (e - rng.choice([52, 53, 50]))
    return rng.choice([1.0, -1.0]) * (2.0**e + aside)


def cases(seed, count, only):
    rng, k = random.Random(seed), 0
    kinds = [only] if only else list(rules.MAKERS)
    while k < count:
        rules.magnitude = powers if rng.random() < 0.4 else MAGNITUDE
        rule = rules.MAKERS[kinds[k % len(kinds)]](rng, k)
        attrs = numbers(rng, rule)
        same = truth(rule, attrs, rng)
        if same is None or not both_read_all(rule):
            continue
        yield k, Case(rule, same, attrs, rng)
        k += 1


def but_for_rounding(case, report):
    """Whether the report says that stored constants are one but for rounding, and this is all."""
    said = re.findall(r"but for rounding: the outputs move by up to (\S+)", report)
    return bool(case.stored and said) and max(map(float, said)) <= LAST_PLACES


def compare(isomer, item):
    k, case = item
    with tempfile.TemporaryDirectory() as folder:
        case.write(folder)
        try:
            sides = [os.path.join(folder, "left"), os.path.join(folder, "right")]
            p = subprocess.run(
                [isomer, "compare", "-v", *sides], capture_output=True, text=True, timeout=120
            )
        except subprocess.TimeoutExpired:
            return k, case, "timeout", ""
        said = (p.stderr.strip() if p.returncode == 2 else p.stdout.strip()) or p.stderr.strip()
        case.either |= but_for_rounding(case, p.stdout)
        return k, case, VERDICT.get(p.returncode, "crash"), said.rsplit("\n", 1)[-1]


def main():
    a = argparse.ArgumentParser()
    a.add_argument("--isomer", default=os.path.join(ROOT, "build", "isomer"))
    a.add_argument("--seed", type=int, default=1)
    a.add_argument("--count", type=int, default=60)
    a.add_argument("--only", choices=list(rules.MAKERS))
    a.add_argument("--number", type=int)
    a.add_argument("--keep")
    a.add_argument("--open", type=float, default=0.1, help="the share that may be undecided")
    a.add_argument("--jobs", type=int, default=2)
    a.add_argument("-v", action="store_true")
    o = a.parse_args()
    todo = [c for c in cases(o.seed, o.count, o.only) if o.number in (None, c[0])]
    if o.keep:
        for k, c in todo:
            c.write(os.path.join(o.keep, str(k)))
        return 0
    tally, wrong = {}, 0
    with ThreadPoolExecutor(o.jobs) as pool:
        for k, case, got, says in pool.map(lambda c: compare(o.isomer, c), todo):
            tally[case.same, got] = tally.get((case.same, got), 0) + 1
            bad = got not in ("equivalent", "different", "undecided")
            bad |= not case.either and got == ("different" if case.same else "equivalent")
            wrong += bad
            if bad or o.v or (case.same and got == "undecided"):
                print(
                    "%s %d: %s %s: %s, is %s: %s\n    %s\n    %s"
                    % (
                        "WRONG" if bad else "     ",
                        k,
                        case.name,
                        case.attrs or "",
                        got,
                        "the same" if case.same else "other",
                        says,
                        case.rule.lhs.text,
                        case.rule.rhs.text,
                    ),
                    flush=True,
                )
    same = sum(n for (s, _), n in tally.items() if s)
    open_ = tally.get((True, "undecided"), 0)
    print(
        "the same: %d, of them undecided %d; other: %d, of them undecided %d"
        % (
            same,
            open_,
            sum(n for (s, _), n in tally.items() if not s),
            tally.get((False, "undecided"), 0),
        )
    )
    failed = wrong + (open_ > o.open * same and open_ > 1)
    print("%d passed, %d failed" % (len(todo) - wrong, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
