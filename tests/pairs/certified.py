#!/usr/bin/env python3
"""Every `EQUIVALENT` of the tree has a certificate that `isomer check` accepts.

    tests/pairs/certified.py [--isomer build/isomer] [--only TEXT] [--source NAME] [--count N]
                             [--seed N] [--sample K] [--jobs N] [--list FILE]

Pairs of models/ and models/variants, the standing pairs of traps.py, and COUNT drawn by each of the
generators beside this file. Each is compared with --certificate; what is `equivalent` is checked,
with the evidence that the certificate says. What another verdict is for, the generators' own tests
say. --sample K takes every K-th of the standing pairs only, and FEW pairs of models. For each
source the shares of proved and of certified are printed, and each reason for which a proved pair is
not certified. The last line is `N passed, N failed`."""

import argparse
import collections
import json
import os
import random
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

import branches
import captures
import constants
import dsl
import inputs
import masks
import traps  # noqa: F401  adds the standing pairs to dsl.PAIRS

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TIMEOUT = 900
FEW = 3
# Standing pairs whose certificates were refused once, taken whatever --sample leaves out: rules
# with a side that is no number at other sizes than the pair's.
ALWAYS = ["padding left: -3.4e38 (1 - m)"]
SAID = {0: "holds", 1: "refused", 2: "malformed", 3: "not proved again"}


def sides(folder):
    return [os.path.join(folder, s) for s in ("left", "right")]


# ---- sources: (name, what writes the two captures to a folder and says where, options) ----


def written(name, thing, *options):
    def write(folder):
        thing.write(folder)
        return sides(folder) + [o.replace("FOLDER", folder) for o in options]

    return name, write


def there(folder, left, right):
    return "%s %s" % (left, right), lambda _: [os.path.join(folder, s) for s in (left, right)]


def of_models(o):
    models = os.path.join(ROOT, "models")
    pairs = [there(models, *p[:2]) for p in captures.PAIRS if p[2] == "equivalent"]
    pairs += [
        there(os.path.join(models, "variants"), *p[:2])
        for p in captures.families(os.path.join(models, "variants"))
        if p[2] == "equivalent"
    ]
    return pairs[o.seed % len(pairs) :: -(-len(pairs) // FEW)] if o.sample > 1 else pairs


def of_folder(o):
    return [
        there(o.captures, *p[:2]) for p in captures.families(o.captures) if p[2] == "equivalent"
    ]


def standing(o):
    pairs = [p for p in dsl.PAIRS.values() if p.expected != dsl.DIFFERENT]
    taken = pairs[o.seed % o.sample :: o.sample]
    taken += [p for p in pairs if p.name in ALWAYS and p not in taken]
    return [written(p.name, p) for p in taken]


def of_masks(o):
    for n in range(o.count):
        _, pair = masks.draw(o.seed, n)
        if dsl.EQUIVALENT in pair.expected:
            yield written(pair.name, pair)


def of_constants(o):
    for k, case in constants.cases(o.seed, o.count):
        if case.same:
            yield written("%d %s" % (k, case.name), case)


def of_inputs(o):
    names = list(inputs.FAMILIES)
    for k in range(o.count):
        name, seed = names[k % len(names)], o.seed * 100000 + k
        case = inputs.FAMILIES[name](random.Random("%s %d" % (name, seed)))
        if case.expected == dsl.EQUIVALENT:
            options = ["--relations", "FOLDER/relations.txt"] if case.relations else []
            yield written("%s %d" % (name, seed), case, *options)


def of_absorbed(o):
    import absorbed  # needs mpmath, and says so

    for k, case in absorbed.cases(o.seed, o.count, None):
        if case.same:
            yield written("%d %s %s" % (k, case.name, case.attrs or ""), case)


def of_undefined(o):
    import undefined_drawn  # needs torch

    for k in range(o.count):
        name, left, true, _, _ = undefined_drawn.draw(random.Random("%d %d" % (o.seed, k)))
        yield written("%d %s" % (k, name), dsl.Pair(name, "", "", left, true))


def of_branches(o):
    for k in range(o.count):
        name, true, write = branches.captures_of(o.seed, k, "")
        if true:
            yield name, lambda folder, write=write: write(folder) or sides(folder)


SOURCES = {
    "models": of_models,
    "folder": of_folder,
    "standing": standing,
    "masks": of_masks,
    "constants": of_constants,
    "inputs": of_inputs,
    "absorbed": of_absorbed,
    "undefined": of_undefined,
    "branches": of_branches,
}


# ---- one pair ----


def last(p):
    return (p.stderr.strip() or p.stdout.strip()).rsplit("\n", 1)[-1]


def run(*command):
    return subprocess.run(
        [OPTIONS.isomer, *command],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
    )


def attempt(pair):
    """(outcome, evidence, reasons): outcome `other` where compare says no `equivalent`."""
    name, write = pair
    with tempfile.TemporaryDirectory(prefix="isomer-certified-") as folder:
        path, report = os.path.join(folder, "c.json"), os.path.join(folder, "check.json")
        try:
            args = write(folder)
            p = run("compare", *args, "-q", "--certificate", path)
            if p.returncode != 0:
                return "other", "", []
            p = run("check", path, *args, "-q", "--json", report)
        except subprocess.TimeoutExpired:
            return "timeout", "", ["no answer after %d s" % TIMEOUT]
        outcome = SAID.get(p.returncode, "crash")
        if outcome != "holds":
            return outcome, "", [last(p)]
        with open(report, encoding="utf-8") as f:
            doc = json.load(f)
        why = ["%s: %s" % (r["by"], r["no_obligation"]) for r in doc["rules"] if r["by"] != "z3"]
        return outcome, doc["evidence"], why


class Tally:
    def __init__(self):
        self.outcomes = collections.Counter()
        self.evidence = collections.Counter()
        self.reasons = collections.Counter()

    def add(self, outcome, evidence, why):
        self.outcomes[outcome] += 1
        if outcome == "holds":
            self.evidence[evidence] += 1
        if evidence == "proved":
            self.reasons.update(set(why))

    def line(self, name):
        known = sum(self.evidence.values())
        return "%-10s %4d hold: %s; %d are not equivalent" % (
            name,
            known,
            ", ".join("%d %s" % (self.evidence[e], e) for e in ("certified", "proved", "tested")),
            self.outcomes["other"],
        )


def main():
    global OPTIONS
    a = argparse.ArgumentParser(description="certificates of everything equivalent")
    a.add_argument("--isomer", default=os.path.join(ROOT, "build", "isomer"))
    a.add_argument("--only", default="", help="pairs whose name holds this")
    a.add_argument("--source", action="append", choices=list(SOURCES))
    a.add_argument("--captures", help="a folder of families, in place of all else")
    a.add_argument("--count", type=int, default=40, help="drawn by each generator")
    a.add_argument("--seed", type=int, default=1)
    a.add_argument("--sample", type=int, default=1)
    a.add_argument("--jobs", type=int, default=2)
    a.add_argument("--list", help="a line for each pair, to this file")
    OPTIONS = o = a.parse_args()
    o.isomer = os.path.abspath(o.isomer)
    passed = failed = 0
    names = o.source or (["folder"] if o.captures else [s for s in SOURCES if s != "folder"])
    lines, reasons = [], collections.Counter()
    for source in names:
        try:
            pairs, tally = [p for p in SOURCES[source](o) if o.only in p[0]], Tally()
        except (ImportError, SystemExit):
            print("%-10s left out: a package is missing" % source)
            continue
        with ThreadPoolExecutor(o.jobs) as pool:
            for (name, _), (outcome, evidence, why) in zip(pairs, pool.map(attempt, pairs)):
                tally.add(outcome, evidence, why)
                lines.append("\t".join([source, name, outcome, evidence, "; ".join(why)]) + "\n")
                wrong = outcome not in ("holds", "other")
                failed, passed = failed + wrong, passed + (outcome == "holds")
                if wrong:
                    said = why[0] if why else ""
                    print("FAILED %s: %s: %s: %s" % (source, name, outcome, said), flush=True)
        print(tally.line(source), flush=True)
        reasons.update(tally.reasons)
    for why, n in reasons.most_common():
        print("not certified, %d: %s" % (n, why))
    if o.list:
        with open(o.list, "w", encoding="utf-8") as f:
            f.writelines(lines)
    print("%d passed, %d failed" % (passed, failed))
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
