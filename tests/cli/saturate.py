#!/usr/bin/env python3
"""Saturation in `isomer compare`: products of many matrices in different orders, which no
proof in one piece joins; their certificates, and forged ones. Plain Python 3.

    tests/cli/saturate.py [--isomer build/isomer] [--only NAME] [--no-torch]

The last line is `N passed, N failed`."""

import copy
import json
import os
import random
import subprocess
import sys
import tempfile

from harness import OPTIONS, ROOT, expect, run_functions, short

sys.path.insert(0, os.path.join(ROOT, "tests", "pairs"))
import dsl  # noqa: E402

ASSOCIATE = (
    "(rule associate (var x f (A B)) (var y f (B C)) (var z f (C D))"
    " (lhs (aten::mm (aten::mm x y) z)) (rhs (aten::mm x (aten::mm y z))))\n"
)
FALSE = (
    "(rule exchange (var x f (A A)) (var y f (A A)) (lhs (aten::mm x y)) (rhs (aten::mm y x)))\n"
)
FACTORS = 18
STATUS = {0: "equivalent", 1: "different", 3: "undecided"}


def product(order, tree):
    """A graph that multiplies x with the parameters w0, w1, ... in this order, as the tree says."""

    def build(g):
        leaf = [g.x(3, 4)] + [g.param("w%d" % i, 4, 4) for i in order]

        def of(t):
            return leaf[t] if isinstance(t, int) else of(t[0]).mm(of(t[1]))

        return of(tree)

    return build


def random_tree(rng, first, n):
    if n == 1:
        return first
    k = rng.randint(1, n - 1)
    return random_tree(rng, first, k), random_tree(rng, first + k, n - k)


def nested(n, left):
    t = 0 if left else n - 1
    for i in range(1, n):
        t = (t, i) if left else (n - 1 - i, t)
    return t


class Case:
    def __init__(self, left, right):
        """Two functions of a graph."""
        self.folder = tempfile.TemporaryDirectory()
        dsl.Pair("p", "", "", left, right).write(self.folder.name)
        self.sides = [os.path.join(self.folder.name, s) for s in ("left", "right")]

    @staticmethod
    def of_products(left, right, order=None):
        straight = list(range(FACTORS))
        return Case(product(straight, left), product(order or straight, right))

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def compare(self, rules, *args):
        open(self.path("rules"), "w").write(rules)
        given = ["--rules", self.path("rules")] if rules else []
        p = subprocess.run(
            [OPTIONS.isomer, "compare", *self.sides, "--require", "proved", "--no-stats"]
            + ["--json", self.path("r.json"), *given, *args],
            capture_output=True,
            text=True,
            timeout=600,
        )
        expect(p.returncode in STATUS, "exit status %d: %s", p.returncode, short(p.stderr))
        return STATUS[p.returncode], json.load(open(self.path("r.json")))

    def check(self, certificate, *args):
        open(self.path("c.json"), "w").write(json.dumps(certificate))
        p = subprocess.run(
            [OPTIONS.isomer, "check", self.path("c.json"), *self.sides, *args],
            capture_output=True,
            text=True,
            timeout=600,
        )
        return p.returncode, p.stdout + p.stderr


def steps_through_terms_of_neither_graph():
    c = Case.of_products(nested(FACTORS + 1, True), nested(FACTORS + 1, False))
    verdict, report = c.compare(ASSOCIATE, "--disable", "saturate")
    expect(verdict == "undecided", "without saturation: %s", verdict)
    verdict, report = c.compare(ASSOCIATE, "--certificate", c.path("c.json"))
    expect(verdict == "equivalent", "%s: %s", verdict, report.get("reason"))
    certificate = json.load(open(c.path("c.json")))
    own = [i for i, t in enumerate(certificate["terms"]) if t.get("op") == "aten::mm"]
    expect(own, "no term of its own")
    status, text = c.check(certificate)
    expect(status == 0, "check: %d %s", status, short(text))
    # Another operand, another operator, the operands exchanged: each is another equality.
    rng = random.Random(1)
    for k in rng.sample(own, min(4, len(own))):
        for how in ("operand", "operator", "exchanged", "gone"):
            forged = copy.deepcopy(certificate)
            term = forged["terms"][k]
            if how == "operand":
                term["args"][0]["ref"] = (term["args"][0]["ref"] + 1) % k
            elif how == "operator":
                term["op"] = "aten::matmul"
            elif how == "exchanged":
                term["args"].reverse()
            else:
                forged["terms"][k] = forged["terms"][k - 1]
            if forged == certificate:
                continue
            status, text = c.check(forged, "--trust-rules")
            expect(status in (1, 2), "term %d, %s: %d %s", k, how, status, short(text))


def a_rule_found_in_one_place_serves_in_another():
    """Three factors show what the product of many needs; nothing is given."""

    def side(left):
        def build(g):
            start = (0, 1), 2
            x = product([0, 1], start if left else (0, (1, 2)))(g).relu()
            factor = [x] + [g.param("v%d" % i, 4, 4) for i in range(FACTORS)]

            def of(t):
                return factor[t] if isinstance(t, int) else of(t[0]).mm(of(t[1]))

            return of(nested(FACTORS + 1, left))

        return build

    c = Case(side(True), side(False))
    verdict, report = c.compare("", "--disable", "saturate")
    expect(verdict == "undecided", "without saturation: %s", verdict)
    verdict, report = c.compare("", "--certificate", c.path("c.json"))
    expect(verdict == "equivalent", "%s: %s", verdict, report.get("reason"))
    status, text = c.check(json.load(open(c.path("c.json"))))
    expect(status == 0, "check: %d %s", status, short(text))


def random_orders_of_one_product():
    for seed in range(2):
        rng = random.Random(seed)
        n = FACTORS + 1
        c = Case.of_products(random_tree(rng, 0, n), random_tree(rng, 0, n))
        verdict, report = c.compare(ASSOCIATE)
        expect(verdict == "equivalent", "seed %d: %s: %s", seed, verdict, report.get("reason"))


def exchanged_factors_are_not_joined():
    order = list(range(FACTORS))
    order[7], order[8] = order[8], order[7]
    c = Case.of_products(nested(FACTORS + 1, True), nested(FACTORS + 1, False), order)
    for rules in (ASSOCIATE, ASSOCIATE + FALSE):
        verdict, report = c.compare(rules)
        expect(verdict == "different", "%s: %s", verdict, report.get("reason"))


def a_false_rule_beside_a_true_one_is_left_out():
    c = Case.of_products(nested(FACTORS + 1, True), nested(FACTORS + 1, False))
    verdict, report = c.compare(FALSE + ASSOCIATE)
    expect(verdict == "equivalent", "%s: %s", verdict, report.get("reason"))
    expect(all(r["name"] != "exchange" for r in report["rules"]), "the false rule is used")


def same_report_each_time():
    c = Case.of_products(nested(FACTORS + 1, True), nested(FACTORS + 1, False))
    first = c.compare(ASSOCIATE)[1]
    expect(c.compare(ASSOCIATE, "--jobs", "1")[1] == first, "another report")


if __name__ == "__main__":
    sys.exit(
        run_functions(
            [],
            [
                steps_through_terms_of_neither_graph,
                a_rule_found_in_one_place_serves_in_another,
                random_orders_of_one_product,
                exchanged_factors_are_not_joined,
                a_false_rule_beside_a_true_one_is_left_out,
                same_report_each_time,
            ],
        )
    )
