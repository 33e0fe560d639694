#!/usr/bin/env python3
"""Rules as `isomer rules export` writes them, drawn, their truth known by construction: choices and
jumps (tests/pairs/branches.py, corners.py), what cancels (tests/adversary/cancelled.py),
attributes, numbers and branches of complex functions (tests/adversary/rules.py, where mpmath is).
Each rule's file claims that it is proved for all shapes. Plain Python 3.

    tests/cli/exported.py [--isomer build/isomer] [--seed 1] [--count 70] [--target NAME] [-v]

No target has a rule that is false; of those that hold under a condition only `json` and `smtlib`
may, and they say it. What is left out is named, with the reason, and what is written is the rule
that was given. With --unchecked all are there and each file says that nobody checked it. At most a
tenth of the true ones is neither proved nor tested. The last line is `N passed, N failed`."""

import argparse
import importlib.util
import json
import os
import random
import re
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "pairs"))
import branch_kinds  # noqa: E402
import branch_terms  # noqa: E402
import corners  # noqa: E402

CONDITIONS = ("where all parts are numbers", "do not wrap")
SAYS_CONDITION = ("json", "smtlib")
TARGETS = {
    "egg": "// UNCHECKED",
    "egglog": "; UNCHECKED",
    "fx": "# UNCHECKED",
    "inductor": "# UNCHECKED",
    "json": '"unchecked": true',
    "pdll": "// UNCHECKED",
    "smtlib": "; UNCHECKED",
}


def adversary(name):
    """A module of tests/adversary; None where it lacks mpmath."""
    path = os.path.join(ROOT, "tests", "adversary", name + ".py")
    spec = importlib.util.spec_from_file_location("adversary_" + name, path)
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except SystemExit:
        return None
    return module


def chosen(kinds, bare, symbolic):
    """Rules of branch_kinds.instance, with other kinds in the place of its own."""

    def draw(seed, k):
        own = branch_kinds.KINDS, branch_kinds.BARE, branch_terms.SYMBOLIC
        branch_kinds.KINDS, branch_kinds.BARE, branch_terms.SYMBOLIC = kinds, bare, symbolic
        try:
            name, true, left, right, rng = branch_kinds.instance(seed, k, "")
            return name, true, branch_terms.rule_text(name, left, right, rng)
        finally:
            branch_kinds.KINDS, branch_kinds.BARE, branch_terms.SYMBOLIC = own

    return draw


def cancelled(module):
    def draw(seed, k):
        text, parts = module.draw(random.Random("%s %d" % (seed, k)), "cancelled-%d" % k)
        return "cancelled-%d" % k, not parts, text

    return draw


def of_numbers(module):
    def draw(seed, k):
        kind = ("attrs", "complex", "literals")[k % 3]
        rule, true = module.generate(hash_of(seed, k), 1, kind)[0]
        name = "%s-%d" % (rule.name, k)
        # A rule that parts on a branch cut alone is neither true nor false here.
        either = true and rule.kind == "c" and "inverse" in rule.name
        return name, None if either else true, rule.text().replace(rule.name, name, 1)

    return draw


def hash_of(seed, k):
    return random.Random("%s %d" % (seed, k)).randrange(1 << 30)


def claimed(text):
    text = text.rstrip()
    assert text.endswith(")")
    return text[:-1] + '\n  (evidence proved "all shapes"))\n'


def drawn(seed, count):
    sources = [
        chosen(branch_kinds.KINDS, branch_kinds.BARE, branch_terms.SYMBOLIC),
        chosen(corners.KINDS, corners.BARE, 0),
        cancelled(adversary("cancelled")),
    ]
    numbers = adversary("rules")
    sources += [of_numbers(numbers)] if numbers else []
    rules, seen, k = {}, set(), 0
    while len(rules) < count:
        name, true, text = sources[k % len(sources)](seed, k)
        same = text.replace(name, "", 1)  # of two that are one rule a file keeps one
        if same not in seen:
            rules[name] = (true, claimed(text))
        seen.add(same)
        k += 1
    return rules


def export(o, target, path, *more):
    words = [o.isomer, "rules", "export", "--to", target, path, *more]
    return subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True)


def has(text, name):
    return re.search(r"(?<![\w-])%s(?![\w-])" % re.escape(name), text) is not None


def reasons(p):
    """Why a rule is not there, as it is said; a name that is said twice is wrong."""
    said = re.findall(r"rule (\S+) is not exported: (.*)", p.stderr)
    said += re.findall(r"^(?:isomer: )?(\S+) is left out: (.*)", p.stderr, re.M)
    return said


def judged(target, rules, p):
    """What is wrong with one file, and what became of each rule."""
    lines = [s for s in p.stdout.split("\n") if "not here: " not in s]
    text, said = "\n".join(lines), reasons(p)
    why = dict(said)
    if len(why) != len(said):
        yield "a rule is named twice", None
    n = re.search(r"isomer: (\d+) of (\d+) rules exported", p.stderr)
    if not n or int(n[1]) != len(rules) - len(why) or int(n[2]) != len(rules):
        yield "it says %s, %d are named" % (n and n[0], len(why)), None
    for name, (true, _) in rules.items():
        there = has(text, name)
        if there == (name in why):
            yield "%s is %sthere, and %s" % (name, "" if there else "not ", why.get(name)), name
        elif there and true is False and not conditional(target, name, p.stdout):
            yield "%s is false and is there" % name, name
    broken = p.returncode not in (0, 1, 3) or (p.returncode == 0) != (len(why) == left_out(p))
    if broken:
        yield "status %d: %s" % (p.returncode, p.stderr[-200:]), None


def left_out(p):
    return len(re.findall(r" is left out: ", p.stderr))


def conditional(target, name, text):
    """Whether the file says of this rule under which condition it holds."""
    if target == "json":
        (rule,) = (r for r in json.loads(text)["rules"] if r["name"] == name)
        return any(c in " ".join(rule["evidence"]["rests_on"]) for c in CONDITIONS)
    if target == "smtlib":
        proofs = [p for p in text.split("\n; proved: ") if '(echo "%s' % name in p]
        return bool(proofs) and all(any(c in p for c in CONDITIONS) for p in proofs)
    return False


def same_rules(rules, text):
    """Rules of the JSON form whose text is not that of the rule given."""
    for r in json.loads(text)["rules"]:
        given = rules[r["name"]][1]
        ops = sorted(re.findall(r"\(((?:\w+::)[\w.]+)", given))
        if sorted(operators(r["lhs"]) + operators(r["rhs"])) != ops:
            yield "%s: its operators are not those of the rule" % r["name"]
        if r["evidence"]["status"] != "proved":
            yield "%s: its evidence is %s" % (r["name"], r["evidence"]["status"])


def operators(term):
    if isinstance(term, list):
        return [o for t in term for o in operators(t)]
    if not isinstance(term, dict):
        return []
    own = [term["op"]] if "::" in str(term.get("op", "")) else []
    return own + [o for v in term.values() for o in operators(v) if isinstance(v, (list, dict))]


def main():
    a = argparse.ArgumentParser(description="what rules export writes")
    a.add_argument("--isomer", default=os.path.join(ROOT, "build", "isomer"))
    a.add_argument("--seed", type=int, default=1)
    a.add_argument("--count", type=int, default=70, help="rules, spread over the targets")
    a.add_argument("--target", choices=list(TARGETS))
    a.add_argument("-v", action="store_true")
    o = a.parse_args()
    rules = list(drawn(o.seed, o.count).items())
    targets = [o.target] if o.target else list(TARGETS)
    failed = passed = n_false = n_true = written = unknown = 0

    def wrong(what):
        nonlocal failed
        failed += 1
        print("FAILED " + what)

    for i, target in enumerate(targets):
        some = dict(rules[i :: len(targets)])
        if not some:
            continue
        with tempfile.NamedTemporaryFile("w", suffix=".rules") as f:
            f.write("".join(text for _, text in some.values()))
            f.flush()
            p, free = export(o, target, f.name), export(o, target, f.name, "--unchecked")
        bad = list(judged(target, some, p))
        bad += [(s, None) for s in same_rules(some, p.stdout)] if target == "json" else []
        if TARGETS[target] in p.stdout or TARGETS[target] not in free.stdout:
            bad.append(("--unchecked is not said, or said of what is checked", None))
        for what, _ in bad:
            wrong("%s: %s" % (target, what))
        passed += len(some) - len({name for _, name in bad if name})
        why = dict(reasons(p))
        n_false += sum(t is False for t, _ in some.values())
        for name, (true, _) in some.items():
            if true:
                n_true += 1
                written += name not in why
                unknown += "it is unknown" in why.get(name, "")
            if o.v:
                print("%s %s %s: %s" % (target, true, name, why.get(name, "exported")))
    if unknown > max(1, n_true / 10):
        wrong("%d of %d true ones are unknown" % (unknown, n_true))
    print("%d false, %d true: %d exported, %d unknown" % (n_false, n_true, written, unknown))
    print("%d passed, %d failed" % (passed, failed))
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
