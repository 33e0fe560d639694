#!/usr/bin/env python3
"""rules/core.rules from the captures at hand. Plain Python 3.

    rules/make_core.py [--isomer build/isomer] [--out rules/core.rules] [--fresh] [--check] [DIR...]

Each pair of correct sides of each family (sides without "-bug") of each DIR (models/variants without one, which has all of models/ too) is compared with
the rules found so far, in both orders; what it needed beyond them is added, until no pair needs more. Rules that no comparison used are left out then, and
every rule that stays is decided once more, on its own: it has to be proved. Where that took a rule away the comparisons are tried again. What could not be
made general speaks of the shapes at hand, and serves models of these sizes only. Without --fresh it begins with the rules that are in the file. --check
compares only: exit status 1 where a pair needs a rule that is not there."""
import argparse
import itertools
import json
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
HEAD = """; Rules between Transformers' and vLLM's ways of writing models, for all sizes at their ranks or for all shapes; a few, of several ranks, for the shapes of
; the captures alone. Found in the comparisons of models/variants and proved by `make core-rules`, which also adds what the families of CAPTURES=DIR need;
; `make check` decides each again.

"""


MOST_TURNS = 8
EVIDENCE = re.compile(r'\(evidence \w+ "[^"]*"\)')


def run(*command, ok=(0,)):
    p = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if p.returncode not in ok:
        sys.exit("%s: exit status %d: %s" % (" ".join(command), p.returncode, p.stderr.decode("utf-8", "replace")[:500]))
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
            sides = sorted(s for s in os.listdir(path) if "-bug" not in s and os.path.exists(os.path.join(path, s, "graph.json"))) if os.path.isdir(path) else []
            for l, r in itertools.combinations(sides, 2):
                yield os.path.join(path, l), os.path.join(path, r)


class Maker:
    def __init__(self, o, tmp):
        self.isomer, self.pairs = o.isomer, list(pairs(o.folder or [os.path.join(ROOT, "models", "variants")]))
        self.core, self.found, self.report = (os.path.join(tmp, n) for n in ("core.rules", "found.rules", "report.json"))

    def turn(self, add):
        """Every comparison with the rules so far. Returns: how many rules were made, and the names of those that were used."""
        made, used = 0, set()
        for l, r in self.pairs:
            for pair in ((l, r), (r, l)):
                run(self.isomer, "compare", "-q", *pair, *(["--rules", self.core] if os.path.exists(self.core) else []), "--save-rules", self.found, "--json",
                    self.report, ok=(0, 1, 3))
                report = json.loads(read(self.report))
                n = report["stats"]["rules_synthesised"]
                used |= {x["name"] for x in report["rules"] if x["uses"]}
                made += n
                if n:
                    print("%s %s: %d new" % (os.path.join(*pair[0].split(os.sep)[-2:]), os.path.basename(pair[1]), n), flush=True)
                if n and add:
                    write(self.core, run(self.isomer, "rules", "merge", *([self.core] if os.path.exists(self.core) else []), self.found))
        return made, used

    def keep(self, used):
        """The rules that were used and hold on their own, with the evidence that was found. Returns: how many were left out."""
        found = {r["name"]: r for r in json.loads(run(self.isomer, "rules", "check", self.core, "--json", "-", ok=(0, 1, 3)))["rules"]}
        blocks = [b for b in run(self.isomer, "rules", "show", self.core).split("(rule ") if b.strip()]
        text, left = "", 0
        for b in blocks:
            r = found[b.split()[0]]
            if r["status"] == "proved" and r["name"] in used:
                text += "(rule " + EVIDENCE.sub('(evidence proved "%s")' % r["scope"], b.rstrip()) + "\n\n"
                continue
            left += 1
            if r["name"] in used:
                print("left out: %s is %s %s %s" % (r["name"], r["status"], r["scope"] or "", r["reason"] or ""))
        write(self.core, text.rstrip() + "\n")
        return left

    def make(self):
        for turn in range(MOST_TURNS):
            made, used = self.turn(True)
            if not made and not self.keep(used):
                return


def main():
    a = argparse.ArgumentParser()
    a.add_argument("--isomer", default=os.path.join(ROOT, "build", "isomer"))
    a.add_argument("--out", default=os.path.join(ROOT, "rules", "core.rules"))
    a.add_argument("--fresh", action="store_true")
    a.add_argument("--check", action="store_true")
    a.add_argument("folder", nargs="*")
    o = a.parse_args()
    with tempfile.TemporaryDirectory() as tmp:
        m = Maker(o, tmp)
        if os.path.exists(o.out) and not o.fresh:
            write(m.core, read(o.out))
        if o.check:
            return 1 if m.turn(False)[0] else 0
        m.make()
        text = read(m.core)
        write(o.out, HEAD + text)
    print("%s: %d rules" % (o.out, text.count("(rule ")))
    return 0


if __name__ == "__main__":
    sys.exit(main())
