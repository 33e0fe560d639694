"""isomer.egraph: its manual runs as it stands, runs have the counts of `isomer saturate`, and what
goes wrong is said."""

import doctest
import json
import os
import random
import subprocess
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
BUILD = os.path.dirname(os.environ.get("ISOMER", os.path.join(ROOT, "build", "isomer")))
os.environ.setdefault("ISOMER_EGRAPH", os.path.join(BUILD, "libegraph.so"))

try:
    from isomer.egraph import Analysis, Backoff, EGraph, Error, rewrite
except ImportError as e:
    raise unittest.SkipTest(str(e)) from e

SUM = [
    rewrite("(+ ?x ?y)", "(+ ?y ?x)", "commute"),
    rewrite("(+ ?x (+ ?y ?z))", "(+ (+ ?x ?y) ?z)", "associate"),
]


def chain(n):
    term = "x0"
    for i in range(1, n):
        term = ("+", "x%d" % i, term)
    return term


def text(term):
    return "(%s)" % " ".join(map(text, term)) if isinstance(term, tuple) else term


def drawn_rules(rng):
    """Rules over three operators whose right sides have no variable of their own."""

    def side(depth, names):
        if depth == 0 or rng.random() < 0.3:
            return rng.choice(names)
        op, n = rng.choice((("f", 1), ("g", 2), ("h", 2)))
        return (op, *(side(depth - 1, names) for _ in range(n)))

    rules = []
    while len(rules) < 4:
        left = side(2, ["?a", "?b", "c"])
        bound = [v for v in ("?a", "?b") if v in text(left)]
        if isinstance(left, tuple):
            rules.append((text(left), text(side(2, [*bound, "c"]))))
    return rules


class Manual(unittest.TestCase):
    def test_it_runs_as_it_stands(self):
        path = os.path.join(ROOT, "docs", "egraph-python.md")
        result = doctest.testfile(path, module_relative=False)
        self.assertGreater(result.attempted, 80)
        self.assertEqual(result.failed, 0)


class Counts(unittest.TestCase):
    def saturated(self, rules, start, scheduler, iterations):
        """What the program counts for the same rules."""
        lines = ["(rule r%d %s %s)" % (i, *r) for i, r in enumerate(rules)]
        run = "(run (scheduler %s) (iteration-limit %d) (node-limit 3000))"
        workload = "(workload (name w) (language l) (analysis none) (rules %s) (start (term %s))"
        workload = workload % (" ".join(lines), start)
        workload += " (measure %s))" % (run % (scheduler, iterations))
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "w.sexp")
            with open(path, "w", encoding="utf-8") as f:
                f.write(workload)
            p = subprocess.run(
                [os.environ["ISOMER"], "saturate", path, "--full-search", "--json", "-"],
                capture_output=True,
                text=True,
                check=True,
            )
        run = json.loads(p.stdout)["runs"][0]
        counts = [(i["nodes"], i["classes"], i["matches"]) for i in run["iterations"]]
        return run["stop"], counts

    def test_runs_are_those_of_the_program(self):
        rng = random.Random(7)
        stops = set()
        for k in range(60):
            rules = drawn_rules(rng)
            start = text(("g", ("h", "c", ("f", "d")), ("g", "d", ("h", ("f", "c"), "d"))))
            for name in ("simple", "backoff"):
                stop, counts = self.saturated(rules, start, name, 12)
                g = EGraph()
                g.add(start)
                # A scheduler of Python's own finds all matches, as --full-search does.
                scheduler = Backoff() if name == "backoff" else Backoff(limit=1 << 40)
                report = g.run(
                    [rewrite(*r) for r in rules], 12, scheduler=scheduler, nodes=3000, memory=0
                )
                mine = [(i.nodes, i.classes, sum(i.matches.values())) for i in report.iterations]
                self.assertEqual((report.stop, mine), (stop, counts), (k, name, rules))
                stops.add(stop)
                plain = EGraph()
                plain.add(start)
                if name == "simple":
                    plain.run([rewrite(*r) for r in rules], 12, nodes=3000, memory=0, jobs=2)
                    self.assertEqual(plain.n_nodes, counts[-1][0])
        self.assertIn("saturated", stops)
        self.assertGreater(len(stops), 1)

    def test_rules_that_are_not_asked_for_rest(self):
        g = EGraph(explain=True)
        t = g.add(chain(5))
        g.run(SUM, iterations=1)
        n = g.n_nodes
        report = g.run(rewrite("(+ ?x x0)", "?x", "drop"))
        self.assertLessEqual(g.n_nodes, n)
        self.assertEqual(list(report.iterations[1].matches), ["drop"])
        self.assertIn("drop", {s.why for s in g.explain(t, "(+ x4 (+ x3 (+ x2 x1)))")})


class Explanations(unittest.TestCase):
    def test_steps_lead_from_one_to_the_other(self):
        g = EGraph(explain=True)
        g.add(chain(4))
        g.run(SUM)
        a, b = text(chain(4)), "(+ (+ x0 x1) (+ x2 x3))"
        g.add(b)
        g.run(SUM)
        steps = g.explain(a, b)
        self.assertEqual(steps[-1].after, b)
        self.assertTrue(any(s.before == a for s in steps))
        self.assertEqual({s.why for s in steps} - {"congruence", "commute", "associate"}, set())
        with self.assertRaisesRegex(Error, "not known to be equal"):
            g.explain("x0", "x1")

    def test_reasons_of_merges(self):
        g = EGraph(explain=True)
        a, b, c = (g.add(t) for t in "abc")
        g.merge(a, b, why="I say so")
        g.merge(b, c, why="he says so")
        g.add("(f a)"), g.add("(f c)")
        whys = [s.why for s in g.explain("(f a)", "(f c)")]
        self.assertEqual(sorted(whys), ["I say so", "congruence", "he says so"])


class Errors(unittest.TestCase):
    def test_what_is_wrong_is_said(self):
        g = EGraph()
        for call, said in (
            (lambda: g.add("(f a"), "ends too early"),
            (lambda: g.add("(f ?x)"), "variable"),
            (lambda: g.extract("(f a)"), "not in the e-graph"),
            (lambda: g.run(rewrite("(f ?x)", "(f ?y)")), r"\?y"),
            (lambda: g.find(99), "no class 99"),
            (lambda: g.explain("a", "a"), "explain=True"),
            (lambda: g.fact("a"), "no analysis"),
            (lambda: rewrite("(f ?x)"), "right side"),
            (lambda: rewrite("(f ?x)", "?x", when=3), "when is a function"),
            (lambda: g.run("(f ?x) => ?x"), "no rule"),
            (lambda: g.run(SUM, iterations=-1), "iterations: -1"),
            (lambda: g.run(SUM, nodes="many"), "nodes: 'many'"),
            (lambda: g.node("f", "a"), "no class a"),
            (lambda: g.node(3), "no text of a term"),
            (lambda: g.add("\ud800"), "no text of a term"),
            (lambda: g.extract_dag("a"), "list of terms"),
            (lambda: g.extract(g.add("z"), cost=3), "dictionary by operator"),
            (lambda: EGraph(analysis=3), "is an Analysis"),
        ):
            with self.assertRaisesRegex(Error, said):
                call()
        g.add("(f a)")  # and it serves on
        self.assertTrue(g.check("(f ?x)"))

    def test_what_a_callback_raises_comes_out_of_the_run(self):
        class Own(Exception):
            pass

        def wrong(*_args):
            raise Own

        class Broken(Analysis):
            make = wrong

        schedulers = ("allowed", "found", "may_stop", "next")
        for how in ("when", "check", "apply", "each", "cost", "make", *schedulers):
            g = EGraph(analysis=Broken() if how == "make" else None)
            with self.assertRaises(Own, msg=how):
                g.add("(f (f a))")
                if how in schedulers:
                    g.run(rewrite("(f ?x)", "?x"), scheduler=type("S", (Backoff,), {how: wrong})())
                if how == "each":
                    g.run(SUM, each=wrong)
                elif how == "cost":
                    g.extract("a", wrong)
                else:
                    rhs = None if how == "apply" else "?x"
                    g.run(rewrite("(f ?x)", rhs, **{how: wrong}))
            if how != "make":
                self.assertEqual(g.run(rewrite("(f ?x)", "?x")).stop, "saturated")
