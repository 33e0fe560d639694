#!/usr/bin/env python3
"""How many rules comparisons need, how many of them are different ones, how many serve several
models, and how many are proved. Plain Python 3.

    tests/bench/rule_figures.py [--isomer build/isomer] [--only NAME ...] [--rules FILE] [DIR ...]

Each pair of correct sides (folders without "bug" in their name) of each family of each DIR
(models/variants without one) is compared, without rules given (or with those of FILE). A rule
instance is a rule that one comparison used; two are one distinct rule where both sides are the same
up to names; it is shared where comparisons of two models or more used it. `minimised`: the distinct
rules without those that follow from the others. Prints a Markdown table, a row for each family and
one for all. The exit status is 1 if a pair is not equivalent."""

import argparse
import itertools
import json
import os
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def run(*command, ok=(0,)):
    p = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if p.returncode not in ok:
        sys.exit("%s: exit status %d: %s" % (" ".join(command), p.returncode, p.stderr[:500]))
    return p


def families(folders, only):
    for folder in folders:
        for family in sorted(os.listdir(folder)):
            path = os.path.join(folder, family)
            sides = (
                sorted(
                    s
                    for s in os.listdir(path)
                    if "bug" not in s and os.path.exists(os.path.join(path, s, "graph.json"))
                )
                if os.path.isdir(path)
                else []
            )
            if len(sides) > 1 and (not only or family in only):
                yield (
                    family,
                    [
                        (os.path.join(path, a), os.path.join(path, b))
                        for a, b in itertools.combinations(sides, 2)
                    ],
                )


class Figures:
    def __init__(self, isomer, work, rules):
        self.isomer, self.work, self.n, self.given = (
            isomer,
            work,
            0,
            ["--rules", rules] if rules else [],
        )

    def compare(self, left, right):
        """(report, rules) of a pair; None where it is not equivalent."""
        self.n += 1
        report, rules = (
            os.path.join(self.work, "%d.%s" % (self.n, kind)) for kind in ("json", "rules")
        )
        p = run(
            self.isomer,
            "compare",
            left,
            right,
            "-q",
            "--json",
            report,
            "--save-rules",
            rules,
            *self.given,
            ok=(0, 1, 3),
        )
        if p.returncode == 0:
            return report, rules
        print("%s and %s: %s" % (left, right, p.stdout.strip().split("\n")[-1]), file=sys.stderr)
        return None

    def row(self, done):
        """Figures of some comparisons, and of their rules where none follows from the others."""
        few, many = os.path.join(self.work, "few.rules"), os.path.join(self.work, "many.rules")
        rules = [r for _, r in done]
        run(self.isomer, "rules", "merge", *rules, "-o", many)
        p = run(self.isomer, "rules", "minimize", many, "-o", few, ok=(0, 2))
        used = json.loads(
            run(
                self.isomer,
                "rules",
                "stats",
                many,
                *sum((["--report", r] for r, _ in done), []),
                "--json",
                "-",
            ).stdout
        )["use"]
        if p.returncode:
            print("not minimised: %s" % p.stderr.strip()[:300], file=sys.stderr)
            return used, None, None
        left = json.loads(run(self.isomer, "rules", "stats", few, "--json", "-").stdout)
        return used, left["rules"], left["evidence"].get("proved", 0)


def line(name, used, left, proved):
    cells = [name] + [
        str(used[k]) for k in ("reports", "instances", "distinct", "proved", "shared")
    ]
    cells += (
        ["–", "–"]
        if left is None
        else [str(left), "%d (%.1f %%)" % (proved, 100.0 * proved / left if left else 100.0)]
    )
    print("| %s |" % " | ".join(cells), flush=True)


def main():
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument(
        "folders", nargs="*", default=[os.path.join(ROOT, "models", "variants")], metavar="DIR"
    )
    p.add_argument("--isomer", default=os.path.join(ROOT, "build", "isomer"))
    p.add_argument("--only", nargs="+", default=[], metavar="NAME")
    p.add_argument("--rules", metavar="FILE")
    args = p.parse_args()
    every, wrong = [], 0
    print(
        (
            "| family | comparisons | rule instances | distinct rules | of them proved | shared by "
            "models | minimised | of them proved |\n| --- | --- | --- | --- | --- | --- | --- | "
            "--- |"
        )
    )
    with tempfile.TemporaryDirectory() as work:
        figures = Figures(args.isomer, work, args.rules)
        for family, pairs in families(args.folders, set(args.only)):
            done = [c for c in (figures.compare(*pair) for pair in pairs) if c]
            wrong += len(pairs) - len(done)
            every += done
            if done:
                line(family, *figures.row(done))
        if every:
            line("all", *figures.row(every))
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main())
