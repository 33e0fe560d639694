#!/usr/bin/env python3
"""Certificates of true pairs, forged where a chain is weakest: steps before what they rest on,
relations of leaves crossed, rules and their variables exchanged, conditions dropped, kinds of steps
renamed, evidence raised, input sets exchanged. None may hold. Plain Python 3.

    tests/cli/forged_chains.py [--isomer build/isomer] [--checker build/tests/check/checker]
                               [--seed 1] [--pairs 10] [--only KIND]

A forgery is made only where its falsehood is seen from the certificate: a step that is moved had a
premise, leaves that are crossed have other values. A rule without its conditions may hold if `rules
check` proves it. The last line is `N passed, N failed`."""

import argparse
import copy
import itertools
import json
import os
import random
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "tests", "pairs"))

import dsl  # noqa: E402
import inputs  # noqa: E402
import traps  # noqa: E402, F401  adds the standing pairs to dsl.PAIRS

HOLDS = 0
LEAST = 100  # forgeries, where nothing is left out


def refs(x):
    if isinstance(x, dict):
        return [x["ref"]] if "ref" in x else []
    return [r for y in x for r in refs(y)] if isinstance(x, list) else []


def call(doc, t):
    return doc["terms"][t].get("args")


def some(rng, items, most=2):
    items = list(items)
    rng.shuffle(items)
    return items[:most]


# ---- kinds: each yields changed certificates ----


def before_its_premise(doc, rng, _):
    """A congruence of calls of the certificate's own, taken first."""
    own = [
        i
        for i, s in enumerate(doc["steps"])
        if "same" in s and all(call(doc, t) for t in s["same"])
        if any(a != b for a, b in zip(*(refs(call(doc, t)) for t in s["same"])))
    ]
    for i in some(rng, own):
        new = copy.deepcopy(doc)
        new["steps"].insert(0, new["steps"].pop(i))
        yield new


def backwards(doc, rng, _):
    """All steps, from the last to the first."""
    if len(doc["steps"]) > 3 and any("same" in s for s in doc["steps"][1:]):
        new = copy.deepcopy(doc)
        new["steps"].reverse()
        yield new


def left_out(doc, rng, _):
    """A step that others rest on."""
    for i in some(rng, range(len(doc["steps"])), 3):
        new = copy.deepcopy(doc)
        del new["steps"][i]
        yield new


def crossed_leaves(doc, rng, captured):
    """Two leaves of one side exchanged, whose values differ."""
    leaves = [i for i, s in enumerate(doc["steps"]) if "leaf" in s]
    pairs = [(i, k) for i in leaves for k in leaves if i < k]
    for i, k in some(rng, pairs):
        a, b = (doc["steps"][n]["leaf"] for n in (i, k))
        if captured.value(a[0]) in (captured.value(b[0]), None):
            continue
        new = copy.deepcopy(doc)
        new["steps"][i]["leaf"][1], new["steps"][k]["leaf"][1] = b[1], a[1]
        yield new


def another_rule(doc, rng, _):
    """The rules of two steps exchanged."""
    used = [i for i, s in enumerate(doc["steps"]) if "rule" in s]
    pairs = [(i, k) for i in used for k in used if i < k]
    for i, k in some(rng, pairs):
        if doc["steps"][i]["rule"] == doc["steps"][k]["rule"]:
            continue
        new = copy.deepcopy(doc)
        a, b = new["steps"][i], new["steps"][k]
        a["rule"], b["rule"] = b["rule"], a["rule"]
        yield new


def another_place(doc, rng, _):
    """A rule's two variables, or its two terms, exchanged."""
    for i in some(rng, [i for i, s in enumerate(doc["steps"]) if "rule" in s], 3):
        new = copy.deepcopy(doc)
        step = new["steps"][i]
        given = [v for v in step["vars"] if v is not None]
        if len(set(given)) > 1 and rng.random() < 0.7:
            step["vars"] = step["vars"][1:] + step["vars"][:1]
        else:
            step["terms"].reverse()
        yield new


def without_conditions(doc, rng, _):
    """A rule that holds under conditions, without them."""
    some_rules = [i for i, r in enumerate(doc["rules"]) if not re.search(r"\(where\)", r)]
    for i in some(rng, some_rules):
        new = copy.deepcopy(doc)
        new["rules"][i] = drop_conditions(new["rules"][i])
        yield new


def drop_conditions(rule):
    at = rule.index("(where")
    depth, end = 0, at
    while True:
        depth += (rule[end] == "(") - (rule[end] == ")")
        end += 1
        if depth == 0:
            return rule[:at] + "(where)" + rule[end:]


def renamed_step(doc, rng, captured):
    """A relation of leaves as one of constants, a rule as a congruence, and so on."""
    kinds = ["leaf", "value", "same", "bound", "rounding"]
    for i in some(rng, range(len(doc["steps"])), 3):
        step = doc["steps"][i]
        old = next(iter(step)) if "rule" not in step else "rule"
        terms = step["terms"] if old == "rule" else step[old]
        if "leaf" in step and any("op" in doc["terms"][t] for t in terms):
            continue  # a layout of constants may be one in two ways
        new = copy.deepcopy(doc)
        other = rng.choice([k for k in kinds if k not in (old, "leaf")])
        if old == "value" and other == "rounding":
            continue  # what is equal is so within rounding
        if other in ("value", "rounding") and all(map(captured.is_constant, terms)):
            continue  # constants that are equal for another reason have one value, too
        new["steps"][i] = {other: terms}
        yield new


def raised(doc, rng, _):
    """Tested rules as proved ones, proved ones as certified."""
    new = copy.deepcopy(doc)
    if doc["evidence"] == "tested":
        new["rules"] = [r.replace("(evidence tested", "(evidence proved") for r in doc["rules"]]
        new["evidence"] = "proved"
        yield new
        yield {**copy.deepcopy(new), "evidence": "certified"}
    if doc["evidence"] == "proved":
        yield {**new, "evidence": "certified"}


def other_terms(doc, rng, _):
    """A captured node as its namesake of the other side."""
    for i in some(rng, [i for i, t in enumerate(doc["terms"]) if "op" not in t]):
        new = copy.deepcopy(doc)
        ((side, name),) = doc["terms"][i].items()
        new["terms"][i] = {"left" if side == "right" else "right": name}
        if new["terms"][i] not in doc["terms"]:
            yield new


def another_literal(doc, rng, _):
    """A number in a call of the certificate's own."""
    for i in some(rng, [i for i, t in enumerate(doc["terms"]) if "op" in t]):
        new = copy.deepcopy(doc)
        args = new["terms"][i]["args"]
        at = [k for k, a in enumerate(args) if type(a) in (int, float)]
        if at:
            args[at[0]] += 1
            yield new


def exchanged_sets(doc, rng, _):
    """One input set for the other, on one side."""
    for side in ("left", "right"):
        files = doc[side]["files"]
        names = sorted(n for n in files if n.startswith("inputs"))
        if len(names) > 1 and files[names[0]] != files[names[1]]:
            new = copy.deepcopy(doc)
            new[side]["files"][names[0]], new[side]["files"][names[1]] = (
                files[names[1]],
                files[names[0]],
            )
            yield new


KINDS = [
    before_its_premise,
    backwards,
    left_out,
    crossed_leaves,
    another_rule,
    another_place,
    without_conditions,
    renamed_step,
    raised,
    other_terms,
    another_literal,
    exchanged_sets,
]


# ---- true pairs ----


def written(name, thing, where):
    folder = os.path.join(where, re.sub(r"\W", "-", name))
    thing.write(folder)
    return [os.path.join(folder, s) for s in ("left", "right")]


def true_pairs(rng, where):
    refactored = [
        p
        for p in dsl.PAIRS.values()
        if p.expected == dsl.EQUIVALENT and p.name.startswith("refactored: ")
    ]
    for p in rng.sample(refactored, OPTIONS.pairs):
        yield p.name, written(p.name, p, where)
    # The numbers of a pair hang on its own name alone: a new family leaves them as they are.
    for k, name in itertools.product(range(8), inputs.FAMILIES):
        case = inputs.FAMILIES[name](random.Random("%s %d" % (name, k)))
        if case.expected != dsl.EQUIVALENT or case.relations:
            continue
        sides = written("%s %d" % (name, k), case, where)
        if os.path.exists(os.path.join(sides[0], "inputs.1.safetensors")):
            yield name, sides
            break


class Captured:
    """The terms of a certificate as the captures have them."""

    def __init__(self, doc, sides):
        self.doc, self.raw, self.node = doc, {}, {}
        self.fixed = [next(iter(leaf.items())) for leaf in doc["fixed"]]
        for side, folder in zip(("left", "right"), sides):
            for name in sorted(os.listdir(folder)):
                if name.endswith(".safetensors"):
                    self.read(side, os.path.join(folder, name))
            with open(os.path.join(folder, "graph.json"), encoding="utf-8") as f:
                for node in json.load(f)["nodes"]:
                    self.node[side, node["id"]] = node
                    if (side, node.get("name")) in self.raw:
                        self.raw[side, node["id"]] = self.raw[side, node["name"]]

    def read(self, side, path):
        with open(path, "rb") as f:
            data = f.read()
        n = int.from_bytes(data[:8], "little")
        for key, at in json.loads(data[8 : 8 + n]).items():
            if key != "__metadata__":
                a, b = at["data_offsets"]
                self.raw.setdefault((side, key), data[8 + n + a : 8 + n + b])

    def value(self, t):
        """The bytes of a leaf; None of an operator."""
        term = self.doc["terms"][t]
        return self.raw.get(next(iter(term.items()))) if "op" not in term else None

    def is_constant(self, t):
        """Whether a term has one value, whatever leaves that are not kept as captured are."""
        term = self.doc["terms"][t]
        if "op" in term:
            return all(map(self.is_constant, refs(term["args"])))
        side, name = next(iter(term.items()))
        return self.is_constant_node(side, name)

    def is_constant_node(self, side, name):
        node = self.node[side, name]
        if node["op"] in ("input", "parameter"):
            # Parameters of integers are never drawn anew: they are what a model was quantised to.
            dtype = node["outputs"][0]["dtype"]
            whole = node["op"] == "parameter" and not re.search("float|complex", dtype)
            return whole or (side, name) in self.fixed
        below = refs(node.get("args", [])) + refs(list(node.get("kwargs", {}).values()))
        return all(self.is_constant_node(side, x) for x in below)


# ---- checking ----


def run_checker(sides, paths, *options):
    p = subprocess.run(
        [OPTIONS.checker, *sides, *options],
        input="".join(x + "\n" for x in paths),
        capture_output=True,
        text=True,
        timeout=1200,
    )
    if p.returncode:
        sys.exit("the checker ended with %d: %s" % (p.returncode, p.stderr[-300:]))
    return [(int(x.split(" ", 1)[0]), x.split(" ", 1)[1]) for x in p.stdout.splitlines()]


def proved_without(doc, where):
    """Whether all rules are proved as they stand now."""
    path = os.path.join(where, "r.rules")
    with open(path, "w", encoding="utf-8") as f:
        f.write("\n".join(doc["rules"]))
    p = subprocess.run([OPTIONS.isomer, "rules", "check", path, "-q"], capture_output=True)
    return p.returncode == 0


def forge(name, sides, rng, where):
    """(forgeries, those that hold)"""
    path = os.path.join(where, "c.json")
    p = subprocess.run(
        [OPTIONS.isomer, "compare", *sides, "-q", "--certificate", path], capture_output=True
    )
    if p.returncode:
        return 0, ["no certificate"]
    with open(path, encoding="utf-8") as f:
        doc = json.load(f)
    made = []
    captured = Captured(doc, sides)
    for kind in KINDS:
        if OPTIONS.only in kind.__name__:
            made += [(kind, new) for new in kind(doc, rng, captured)]
    held = []
    for trust in (True, False):
        # False claims about rules are seen only where rules are shown again.
        some_made = [m for m in made if (m[0] in (raised, without_conditions)) != trust]
        paths = [os.path.join(where, "f%d.json" % i) for i in range(len(some_made))]
        for to, (_, new) in zip(paths, some_made):
            with open(to, "w", encoding="utf-8") as f:
                json.dump(new, f)
        outcomes = run_checker(sides, paths, *(["--trust-rules"] if trust else [])) if paths else []
        for (kind, new), (outcome, _) in zip(some_made, outcomes):
            true = kind is without_conditions and outcome == HOLDS and proved_without(new, where)
            if outcome == HOLDS and not true:
                held.append(kind.__name__)
    return len(made), held


def main():
    global OPTIONS
    a = argparse.ArgumentParser(description="forged chains")
    a.add_argument("--isomer", default=os.path.join(ROOT, "build", "isomer"))
    a.add_argument("--checker", default=os.path.join(ROOT, "build", "tests", "check", "checker"))
    a.add_argument("--seed", type=int, default=1)
    a.add_argument("--pairs", type=int, default=10)
    a.add_argument("--only", default="")
    OPTIONS = a.parse_args()
    passed = failed = 0
    rng = random.Random(OPTIONS.seed)
    with tempfile.TemporaryDirectory(prefix="isomer-forged-") as where:
        for name, sides in true_pairs(rng, where):
            n, held = forge(name, sides, rng, where)
            passed, failed = passed + n - len(held), failed + len(held)
            for what in held:
                print("FAILED %s: %s" % (name, what), flush=True)
    if passed < LEAST and not OPTIONS.only:
        failed += 1
        print("FAILED only %d were made" % passed)
    print("%d passed, %d failed" % (passed, failed))
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
