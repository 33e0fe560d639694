#!/usr/bin/env python3
"""Rules that cancel what may be 0 or below, of drawn operators: d / d <=> 1, exp(log(d)) <=> d.

    cancelled.py --isomer build/isomer [--seed 1] [--count 60] [--keep FILE] [-v]

The range of d is known by construction: operator after operator maps an interval to another one,
and a number is taken off that lies within it or below. Within it, the sides part where d is 0 (or
negative, behind a root or a logarithm): no such rule may count as proved or tested unless its
verdict says "where all parts are numbers". Below it none is refuted, and one in ten may say so all
the same. What `rules export` writes of the proved ones says so as well: `json` and
`smtlib` beside the rule, and no target that rewrites graphs has one of them.
"""

import argparse
import json
import math
import random
import re
import subprocess
import sys
import tempfile

INF = math.inf
CONDITION = "where all parts are numbers"
REWRITE = ("egg", "egglog", "fx", "inductor", "pdll")


def op(name, *args):
    return "(aten::%s %s)" % (name, " ".join(map(str, args)))


def positive(low, high):
    return 0 if low <= 0 <= high else min(abs(low), abs(high)), max(abs(low), abs(high))


def times(c):
    return lambda low, high: tuple(sorted((low * c, high * c)))


def exps(low, high):
    return math.exp(low) if low > -INF else 0, math.exp(high) if high < 50 else INF


def shift(c):
    return lambda low, high: (low + c, high + c)


def over_rows(low, high):
    """A sum of any number of terms."""
    return (low if low >= 0 else -INF), INF


def steps(rng):
    c = rng.choice([0.5, 2.0, 3.0, -1.5, -2.0])
    a = float(rng.randint(-4, 4))
    return [
        (lambda t: op("exp", t), lambda low, high: exps(low, high)),
        (lambda t: op("abs", t), positive),
        (lambda t: op("mul.Tensor", t, t), lambda lo, hi: tuple(x * x for x in positive(lo, hi))),
        (lambda t: op("square", t), lambda lo, hi: tuple(x * x for x in positive(lo, hi))),
        (lambda t: op("sigmoid", t), lambda lo, hi: (0, 1) if (lo, hi) == (-INF, INF) else None),
        (lambda t: op("sqrt", op("abs", t)), lambda lo, hi: tuple(map(root, positive(lo, hi)))),
        (lambda t: op("relu", t), lambda lo, hi: (max(lo, 0), max(hi, 0))),
        (lambda t: op("mul.Tensor", t, c), times(c)),
        (lambda t: op("add.Tensor", t, a), shift(a)),
        (lambda t: op("mean.dim", t, "(list 1)", "true"), lambda lo, hi: (lo, hi)),
        (lambda t: op("sum.dim_IntList", t, "(list 1)", "true"), over_rows),
    ]


def root(x):
    return math.sqrt(x) if x < INF else INF


def inner(rng):
    """A term of x and the interval of its numbers."""
    text, low, high = "x", -INF, INF
    for _ in range(rng.randint(1, 4)):
        f, along = rng.choice(steps(rng))
        to = along(low, high)
        if to is None or to[1] - to[0] < 0.25 or to[0] > 1e3 or to[1] < -1e3:
            continue
        text, (low, high) = f(text), to
    return text, low, high


def within(rng, low, high):
    a, b = max(low, -9.0), min(high, 9.0)
    return round(a + (b - a) * rng.uniform(0.2, 0.8), 2)


def forms(d):
    ones = op("ones_like", d)
    return [
        (op("div.Tensor", d, d), ones),
        (op("div.Tensor", op("mul.Tensor", d, d), d), d),
        (op("mul.Tensor", d, op("reciprocal", d)), ones),
        (op("mul.Tensor", op("square", d), op("pow.Tensor_Scalar", d, -1)), d),
        (op("mul.Tensor", op("sqrt", d), op("sqrt", d)), d),
        (op("exp", op("log", d)), d),
        (op("mul.Tensor", op("rsqrt", d), op("sqrt", d)), ones),
    ]


def draw(rng, name):
    """The rule's text, and whether its sides part somewhere."""
    while True:
        text, low, high = inner(rng)
        parts = rng.random() < 0.7
        if not parts and low == -INF:
            continue
        c = within(rng, low, high) if parts else round(low - rng.choice([0.5, 1.0, 3.0]), 2)
        if parts and not (low < c < high and c < 9):
            continue
        left, right = rng.choice(forms(op("sub.Tensor", text, c)))
        return "(rule %s (var x f (N M))\n  (lhs %s)\n  (rhs %s))" % (name, left, right), parts


def exported(isomer, rules, said):
    """What is wrong with the files that `rules export` writes of proved rules."""
    with tempfile.NamedTemporaryFile("w", suffix=".rules") as f:
        f.write("\n".join(rules.values()) + "\n")
        f.flush()

        def export(target):
            how = [isomer, "rules", "export", "--to", target, f.name]
            return subprocess.run(how, capture_output=True, text=True)

        hedged = {name for name in rules if CONDITION in said[name]}
        rests = {
            r["name"]: CONDITION in r["evidence"]["rests_on"]
            for r in json.loads(export("json").stdout)["rules"]
        }
        proofs = export("smtlib").stdout.split("\n; proved: ")
        in_smtlib = {
            name for name in hedged for p in proofs if CONDITION in p and 'echo "%s' % name in p
        }
        wrong = ["json: " + name for name in rules if rests.get(name) != (name in hedged)]
        wrong += ["smtlib: " + name for name in hedged - in_smtlib]
        for target in REWRITE:
            p = export(target)
            out = set(re.findall(r"^(\S+) is left out: .*" + CONDITION, p.stderr, re.M))
            named = set(re.findall(r"not here: (\S+): .*" + CONDITION, p.stdout))
            wrong += ["%s: %s" % (target, name) for name in hedged ^ out | hedged ^ named]
    return wrong


def main():
    a = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    a.add_argument("--isomer", required=True)
    a.add_argument("--seed", type=int, default=1)
    a.add_argument("--count", type=int, default=60)
    a.add_argument("--keep", help="write the rules there")
    a.add_argument("-v", action="store_true")
    o = a.parse_args()
    rng = random.Random(o.seed)
    rules = {"r%d" % k: draw(rng, "r%d" % k) for k in range(o.count)}
    text = "\n".join(t for t, _ in rules.values()) + "\n"
    with tempfile.NamedTemporaryFile("w", suffix=".rules") as f:
        open(o.keep or f.name, "w").write(text)
        p = subprocess.run(
            [o.isomer, "rules", "check", o.keep or f.name], capture_output=True, text=True
        )
    said = dict(line.split(": ", 1) for line in p.stdout.splitlines() if ": " in line)
    failed = careful = plain = 0
    for name, (rule, parts) in rules.items():
        verdict = said.get(name, "no verdict")
        holds = verdict.startswith(("proved", "tested"))
        wrong = verdict == "no verdict" or (
            holds and CONDITION not in verdict if parts else verdict.startswith("refuted")
        )
        plain += not parts
        careful += not parts and (not holds or CONDITION in verdict)
        failed += wrong
        if wrong or o.v:
            print("%s %s\n  %s" % ("FAILED" if wrong else "ok", rule, verdict))
    proved = [name for name in rules if said.get(name, "").startswith("proved")]
    wrong = exported(o.isomer, {name: rules[name][0] for name in proved[:12]}, said)
    failed += len(wrong)
    for line in wrong:
        print("FAILED to say %s\n  %s" % (CONDITION, line))
    print("%d of %d that never part are hedged or unknown" % (careful, plain))
    print("%d passed, %d failed" % (len(rules) - (failed - len(wrong)), failed))
    return 1 if failed or careful > 1 + plain / 10 else 0


if __name__ == "__main__":
    sys.exit(main())
