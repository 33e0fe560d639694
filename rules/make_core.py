#!/usr/bin/env python3
"""rules/core.rules from the captures at hand. Plain Python 3.

    rules/make_core.py [--isomer build/isomer] [--out rules/core.rules] [--fresh] [--check] [DIR...]

Each pair of correct sides of each family (sides without "-bug") of each DIR (models/variants
without one, which has all of models/ too) is compared with the rules found so far, in both orders;
what it needed beyond them is added, until no pair needs more. Rules that no comparison used are
left out then, and every rule that stays is decided once more, on its own: it has to be proved.
Where that took a rule away the comparisons are tried again. What could not be made general speaks
of the shapes at hand, and serves models of these sizes only. Without --fresh it begins with the
rules that are in the file. --check compares only: exit status 1 where a pair needs a rule that is
not there."""

import argparse
import collections
import itertools
import json
import os
import re
import subprocess
import sys
import tempfile
from concurrent import futures

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
HEAD = """\
; Rules between Transformers' and vLLM's ways of writing models, for all sizes at their ranks or for
; all shapes; a few, of several ranks, for the shapes of the captures alone. Found in the
; comparisons of models/variants and proved by `make core-rules`, which also adds what the families
; of CAPTURES=DIR need; `make check` decides each again.

"""


MOST_TURNS = 12
EVIDENCE = re.compile(r'\(evidence \w+ "[^"]*"\)')


def run(*command, ok=(0,)):
    p = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if p.returncode not in ok:
        sys.exit(
            "%s: exit status %d: %s"
            % (" ".join(command), p.returncode, p.stderr.decode("utf-8", "replace")[:500])
        )
    return p.stdout.decode()


def write(path, text):
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def pairs(folders):
    for folder in folders:
        for family in sorted(os.listdir(folder)):
            path = os.path.join(folder, family)
            sides = (
                sorted(
                    s
                    for s in os.listdir(path)
                    if "-bug" not in s and os.path.exists(os.path.join(path, s, "graph.json"))
                )
                if os.path.isdir(path)
                else []
            )
            for l, r in itertools.combinations(sides, 2):
                yield os.path.join(path, l), os.path.join(path, r)


class Maker:
    def __init__(self, o, tmp):
        self.isomer, self.jobs, self.tmp, self.core = (
            o.isomer,
            o.jobs,
            tmp,
            os.path.join(tmp, "core.rules"),
        )
        each = list(pairs(o.folder or [os.path.join(ROOT, "models", "variants")]))
        self.pairs = each + [(r, l) for l, r in each]

    def compare(self, i, found=None):
        report = os.path.join(self.tmp, "%d.json" % i)
        run(
            self.isomer,
            "compare",
            "-q",
            *self.pairs[i],
            *(["--rules", self.core] if os.path.exists(self.core) else []),
            "--json",
            report,
            *(["--save-rules", found] if found else []),
            ok=(0, 1, 3),
        )
        r = json.loads(read(report))
        return r["stats"]["rules_synthesised"], [x["name"] for x in r["rules"] if x["uses"]]

    def turn(self):
        """Every comparison with the rules so far. Returns: those that made rules, and how often
        each rule was used."""
        short, used = [], collections.Counter()
        with futures.ThreadPoolExecutor(self.jobs) as at_once:
            for i, (n, names) in enumerate(at_once.map(self.compare, range(len(self.pairs)))):
                used.update(names)
                if n:
                    short.append(i)
                    print(
                        "%s %s: %d new"
                        % (
                            os.path.join(*self.pairs[i][0].split(os.sep)[-2:]),
                            os.path.basename(self.pairs[i][1]),
                            n,
                        ),
                        flush=True,
                    )
        return short, used

    def add(self, short):
        """One after the other, each with what those before it found."""
        found = os.path.join(self.tmp, "found.rules")
        for i in short:
            if self.compare(i, found)[0]:
                write(
                    self.core,
                    run(
                        self.isomer,
                        "rules",
                        "merge",
                        *([self.core] if os.path.exists(self.core) else []),
                        found,
                    ),
                )

    def blocks(self):
        return [
            "(rule " + b.rstrip()
            for b in run(self.isomer, "rules", "show", self.core).split("(rule ")
            if b.strip()
        ]

    def prune(self, used):
        """Leave out the rules that were not used; put the others in the order of how often they
        were, since the first that fits is taken. Returns: how many are left out."""
        blocks = self.blocks()
        left = sorted((b for b in blocks if used[b.split()[1]]), key=lambda b: -used[b.split()[1]])
        write(self.core, "\n\n".join(left) + "\n")
        return len(blocks) - len(left)

    def prove(self):
        """The rules that are proved on their own, with the scope that was found. Returns: how many
        are not."""
        found = {
            r["name"]: r
            for r in json.loads(
                run(self.isomer, "rules", "check", self.core, "--json", "-", ok=(0, 1, 3))
            )["rules"]
        }
        blocks = self.blocks()
        good = [
            EVIDENCE.sub('(evidence proved "%s")' % found[b.split()[1]]["scope"], b)
            for b in blocks
            if found[b.split()[1]]["status"] == "proved"
        ]
        for r in found.values():
            if r["status"] != "proved":
                print(
                    "left out: %s is %s %s %s"
                    % (r["name"], r["status"], r["scope"] or "", r["reason"] or ""),
                    flush=True,
                )
        write(self.core, "\n\n".join(good) + "\n")
        return len(blocks) - len(good)

    def make(self):
        for turn in range(MOST_TURNS):
            short, used = self.turn()
            if short:
                self.add(short)
            elif not self.prune(used) and not self.prove():
                return


def main():
    a = argparse.ArgumentParser()
    a.add_argument("--isomer", default=os.path.join(ROOT, "build", "isomer"))
    a.add_argument("--out", default=os.path.join(ROOT, "rules", "core.rules"))
    a.add_argument("--fresh", action="store_true")
    a.add_argument("--check", action="store_true")
    a.add_argument("--jobs", type=int, default=min(2, os.cpu_count() or 1))
    a.add_argument("folder", nargs="*")
    o = a.parse_args()
    with tempfile.TemporaryDirectory() as tmp:
        m = Maker(o, tmp)
        if os.path.exists(o.out) and not o.fresh:
            write(m.core, read(o.out))
        if o.check:
            return 1 if m.turn()[0] else 0
        m.make()
        text = read(m.core)
        write(o.out, HEAD + text)
    print("%s: %d rules" % (o.out, text.count("(rule ")))
    return 0


if __name__ == "__main__":
    sys.exit(main())
