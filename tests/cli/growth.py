#!/usr/bin/env python3
"""Rules that grow: attention with masks, norms, residuals, polynomials and activations, one behind
the other, with the two sides in other words. Each has a twin that is slightly false. No twin is
proved or tested, at most one in ten of the true ones stays unknown, and no proof, with its samples,
takes more than --seconds of processor time beyond the program's start.

    tests/cli/growth.py [--isomer build/isomer] [--count 200] [--seed 1] [--seconds 8]

The truth is known by construction: a step on the right side is the one on the left by a law, and
the twin changes one number or drops one part of one step. The last line is `N passed, N failed`."""

import argparse
import json
import os
import random
import resource
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def op(name, *args):
    return "(aten::%s %s)" % (name, " ".join(str(a) for a in args))


def add(a, b):
    return op("add.Tensor", a, b)


def mul(a, b):
    return op("mul.Tensor", a, b)


class Rule:
    """Tensors are [T, C] throughout; sizes are numbers."""

    def __init__(self, rng):
        self.rng, self.vars, self.T, self.H, self.D = (
            rng,
            {},
            rng.randint(3, 6),
            rng.randint(2, 3),
            rng.randint(2, 4),
        )
        self.C = self.H * self.D
        self.var("x", self.T, self.C)

    def var(self, name, *shape):
        self.vars[name] = shape
        return name

    def fresh(self, *shape):
        return self.var("w%d" % len(self.vars), *shape)

    def linear(self, l, r, wrong):
        w, b = self.fresh(self.C, self.C), self.fresh(self.C)
        other = add(op("matmul", r, op("t", w)), b)
        return op("linear", l, w, b), op("linear", r, w) if wrong else other

    def residual(self, l, r, wrong):
        return add("x", l), op("sub.Tensor", r, op("neg", "x")) if not wrong else op(
            "sub.Tensor", r, "x"
        )

    def polynomial(self, l, r, wrong):
        k = self.rng.choice((2, 3))
        power = op("pow.Tensor_Scalar", l, float(k))
        product = mul(r, r) if k == 2 else mul(mul(r, r), r)
        c, d = self.rng.choice(((0.25, 0.5), (0.125, 3.0), (1.5, 0.75)))
        return add(op("mul.Scalar", power, c), op("mul.Scalar", l, d)), add(
            op("mul.Scalar", r, d), op("mul.Scalar", product, c * 1.125 if wrong else c)
        )

    def gelu(self, l, r, wrong):
        s = 0.7978845608028654
        cube = mul(mul(r, r), r)
        inner = op(
            "tanh",
            op("mul.Scalar", add(r, op("mul.Scalar", cube, 0.044715 if not wrong else 0.04)), s),
        )
        cubed = op("pow.Tensor_Scalar", l, 3.0)
        left = op("tanh", op("mul.Scalar", add(l, op("mul.Scalar", cubed, 0.044715)), s))
        return mul(op("mul.Scalar", l, 0.5), op("add.Scalar", left, 1.0)), op(
            "mul.Scalar", mul(op("add.Scalar", inner, 1.0), r), 0.5
        )

    def silu(self, l, r, wrong):
        return op("silu", l), op(
            "div.Tensor", r, op("add.Scalar", op("exp", op("neg", r)), 1.25 if wrong else 1.0)
        )

    def rms(self, l, r, wrong):
        w = self.fresh(self.C)
        root = op(
            "rsqrt",
            op(
                "add.Scalar",
                op("mean.dim", op("pow.Tensor_Scalar", r, 2), "(list -1)", "true"),
                0.125 if not wrong else 0.25,
            ),
        )
        return op("rms_norm", l, "(list %d)" % self.C, w, 0.125), mul(w, mul(r, root))

    def layer(self, l, r, wrong):
        w, b = self.fresh(self.C), self.fresh(self.C)
        d = op("sub.Tensor", r, op("mean.dim", r, "(list -1)", "true"))
        root = op("rsqrt", op("add.Scalar", op("mean.dim", mul(d, d), "(list -1)", "true"), 0.125))
        return op("layer_norm", l, "(list %d)" % self.C, w, b, 0.125), add(
            mul(mul(d if not wrong else r, root), w), b
        )

    def heads(self, x):
        return op(
            "transpose.int", op("view", x, "(list %d %d %d)" % (self.T, self.H, self.D)), 0, 1
        )

    def attention(self, l, r, wrong):
        T, window = self.T, self.rng.randint(1, self.T - 1)
        w = [self.fresh(self.C, self.C) for _ in "qkv"]
        row, col = op("unsqueeze", op("arange", T), 1), op("unsqueeze", op("arange", T), 0)
        seen = op(
            "logical_and",
            op("le.Tensor", col, row),
            op("gt.Tensor", col, op("sub.Scalar", row, window)),
        )
        ones = op("ones", "(list %d %d)" % (T, T), ":dtype bool")
        band = op(
            "logical_and", op("tril", ones), op("triu", ones, (1 if not wrong else 2) - window)
        )
        q, k, v = (self.heads(op("linear", l, n)) for n in w)
        left = op("scaled_dot_product_attention", q, k, v, seen, 0.0, "false", ":scale 0.5")
        q, k, v = (self.heads(op("linear", r, n)) for n in w)
        scores = op("mul.Scalar", op("matmul", q, op("transpose.int", k, 1, 2)), 0.5)
        right = op(
            "matmul",
            op(
                "softmax.int", op("masked_fill.Scalar", scores, op("logical_not", band), "-inf"), -1
            ),
            v,
        )
        merge = lambda x: op("reshape", op("transpose.int", x, 0, 1), "(list %d %d)" % (T, self.C))
        return merge(left), merge(right)

    STEPS = ("linear", "residual", "polynomial", "gelu", "silu", "rms", "layer", "attention")

    def grow(self, steps, wrong):
        """`wrong`: at which step the right side is slightly false; None. Third: how many steps
        there are before a rule file takes no more of it."""
        l = r = "x"
        for i, s in enumerate(steps):
            was, (l, r) = (l, r), getattr(self, s)(l, r, i == wrong)
            if max(len(l), len(r)) > 60000 or parts(l) + parts(r) > MOST_PARTS:
                return *was, i
        return l, r, len(steps)


MOST_PARTS = 30000  # a rule of more than 32768 is refused


def parts(term):
    """Of a term's text: its lists and its words."""
    return term.count("(") + term.count(" ") + 1


def text(name, seed, steps, wrong):
    g = Rule(random.Random(seed))
    l, r, _ = g.grow(steps, wrong)
    used = [
        (n, s)
        for n, s in g.vars.items()
        if any(" %s " % n in t.replace(")", " ").replace("(", " ") + " " for t in (l, r))
    ]
    variables = " ".join("(var %s f (%s))" % (n, " ".join(map(str, s))) for n, s in used)
    return "(rule %s %s\n  (lhs %s)\n  (rhs %s)\n  (where))\n" % (name, variables, l, r)


def decide(isomer, rule):
    """(status, reason, processor seconds)"""
    with tempfile.NamedTemporaryFile("w", suffix=".rules") as f:
        f.write(rule)
        f.flush()
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        p = subprocess.run(
            [isomer, "rules", "check", f.name, "--json", "-"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            timeout=600,
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        try:
            r = json.loads(p.stdout)["rules"][0]
        except (ValueError, LookupError):
            return "error", p.stderr.decode("utf-8", "replace")[-200:].strip(), 0
        return (
            r["status"],
            r["method"] or r["reason"],
            after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
        )


def main():
    a = argparse.ArgumentParser(description="rules that grow, and their false twins")
    a.add_argument("--isomer", default=os.path.join(ROOT, "build", "isomer"))
    a.add_argument("--count", type=int, default=200)
    a.add_argument("--seed", type=int, default=1)
    a.add_argument("--seconds", type=float, default=8.0)
    o = a.parse_args()
    o.isomer = os.path.abspath(o.isomer)
    start = decide(
        o.isomer,
        "(rule r (var x f (2 3)) (lhs (aten::neg x)) (rhs (aten::mul.Scalar x -1)) (where))\n",
    )[2]
    failed, count, slowest = 0, {}, (0, "")
    for n in range(o.count):
        rng = random.Random("%d %d" % (o.seed, n))
        steps = [rng.choice(Rule.STEPS) for _ in range(1 + n % 7)]
        seed = "%d %d" % (o.seed, n)
        steps = steps[: Rule(random.Random(seed)).grow(steps, None)[2]]
        for wrong in (None, rng.randrange(len(steps))):
            rule = text("r%d" % n, seed, steps, wrong)
            status, why, seconds = decide(o.isomer, rule)
            kind = ("true" if wrong is None else "false", status)
            count[kind] = count.get(kind, 0) + 1
            name = "%d: %s%s" % (
                n,
                " ".join(steps),
                "" if wrong is None else ", false at %d" % wrong,
            )
            slowest = max(slowest, (seconds - start, name))
            bad = (
                status in ("proved", "tested")
                if wrong is not None
                else status in ("refuted", "error")
            )
            late = wrong is None and status == "proved" and seconds - start > o.seconds
            if bad or late:
                failed += 1
                print(
                    "FAILED %s: %s (%s), %.2f s\n%s" % (name, status, why, seconds - start, rule),
                    flush=True,
                )
    true = sum(k for (kind, _), k in count.items() if kind == "true")
    if 10 * count.get(("true", "unknown"), 0) > true:
        failed += 1
        print("FAILED: more than one in ten of the true rules stays unknown")
    print(
        ", ".join("%s %s %d" % (*k, v) for k, v in sorted(count.items()))
        + "; slowest %.2f s: %s" % slowest
    )
    print("%d passed, %d failed" % (2 * o.count - failed, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
