#!/usr/bin/env python3
"""rules/core.rules from the captures at hand. Plain Python 3.

    rules/make_core.py [--isomer build/isomer] [--out rules/core.rules] [--fresh] [--check] [DIR...]

Each pair of correct sides of each family (sides without "-bug") of each DIR (models/ without one) is compared with the rules found so
far; what it needed beyond them is added, until no pair needs more. At the end every rule is decided once more, on its own, and left out where it does
not hold. What could not be made general speaks of the shapes at hand, and serves models of these sizes only: of such rules those that hold with a
float literal read as the number it stands for are tested there, not proved. Without --fresh it begins with the rules that are in the file. --check compares
only: exit status 1 where a pair needs a rule that is not there."""
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
; the captures alone. Found in the comparisons of models/ and proved by `make core-rules`, which also adds what the families of CAPTURES=DIR need;
; `make check` decides each again.

"""


MOST_TURNS = 4
EVIDENCE = re.compile(r'\(evidence \w+ "[^"]*"\)')


def run(*command, ok=(0,)):
    p = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if p.returncode not in ok:
        sys.exit("%s: exit status %d: %s" % (" ".join(command), p.returncode, p.stderr.decode("utf-8", "replace")[:500]))
    return p.stdout.decode()


def pairs(folder):
    for family in sorted(os.listdir(folder)):
        path = os.path.join(folder, family)
        sides = sorted(s for s in os.listdir(path) if "-bug" not in s and os.path.exists(os.path.join(path, s, "graph.json"))) if os.path.isdir(path) else []
        for l, r in itertools.combinations(sides, 2):
            yield os.path.join(path, l), os.path.join(path, r)


def compare(o, pair, rules, found, report):
    run(o.isomer, "compare", "-q", *pair, *(["--rules", rules] if os.path.exists(rules) else []), "--save-rules", found, "--json", report, ok=(0, 1, 3))
    with open(report, encoding="utf-8") as f:
        return json.load(f)


def keep(o, text, tmp):
    """The rules that hold on their own, each with the evidence that was found."""
    path = os.path.join(tmp, "all.rules")
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    found = json.loads(run(o.isomer, "rules", "check", path, "--json", "-", ok=(0, 1, 3)))["rules"]
    good = {r["name"]: r for r in found if r["status"] == "proved" or (r["status"] == "tested" and r["scope"] == "these shapes")}
    for r in found:
        if r["name"] not in good:
            print("left out: %s is %s %s %s" % (r["name"], r["status"], r["scope"] or "", r["reason"] or ""))
    blocks = [b for b in text.split("(rule ") if b.strip()]
    blocks = [(good[b.split()[0]], b) for b in blocks if b.split()[0] in good]
    return "".join("(rule " + EVIDENCE.sub('(evidence %s "%s")' % (r["status"], r["scope"]), b.rstrip()) + "\n\n" for r, b in blocks).rstrip() + "\n"


def main():
    a = argparse.ArgumentParser()
    a.add_argument("--isomer", default=os.path.join(ROOT, "build", "isomer"))
    a.add_argument("--out", default=os.path.join(ROOT, "rules", "core.rules"))
    a.add_argument("--fresh", action="store_true")
    a.add_argument("--check", action="store_true")
    a.add_argument("folder", nargs="*")
    o = a.parse_args()
    missing = 0
    with tempfile.TemporaryDirectory() as tmp:
        core, found, report = (os.path.join(tmp, n) for n in ("core.rules", "found.rules", "report.json"))
        if os.path.exists(o.out) and not o.fresh:
            with open(o.out, encoding="utf-8") as f, open(core, "w", encoding="utf-8") as g:
                g.write(f.read())
        for turn in range(1 if o.check else MOST_TURNS):
            new = 0
            for folder in o.folder or [os.path.join(ROOT, "models")]:
                for pair in pairs(folder):
                    n = compare(o, pair, core, found, report)["stats"]["rules_synthesised"]
                    new += n
                    print("%s %s: %d new" % (os.path.relpath(pair[0], folder), os.path.basename(pair[1]), n), flush=True)
                    if n and not o.check:
                        merged = run(o.isomer, "rules", "merge", *([core] if os.path.exists(core) else []), found)
                        with open(core, "w", encoding="utf-8") as f:
                            f.write(merged)
            missing = new
            if not new:
                break
        if o.check:
            return 1 if missing else 0
        text = keep(o, run(o.isomer, "rules", "show", core), tmp)
        with open(o.out, "w", encoding="utf-8") as f:
            f.write(HEAD + text)
    print("%s: %d rules" % (o.out, text.count("(rule ")))
    return 0


if __name__ == "__main__":
    sys.exit(main())
