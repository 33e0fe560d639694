#!/usr/bin/env python3
"""Certificates of all sizes: `isomer check` replays the chain with symbols for what is equal at all
sizes, and refuses what says more than is so. Cases are those of size_bugs.py, and masks that are
the least finite number. Changes are drawn:

range    a symbol's range is widened past what a capture admits
symbol   a size of a call of the certificate's own is another one, and the same as captured
name     the same of what stands for a rule's name
number   a size becomes the captured number
early    a step is taken before what it rests on
kind     a proof is left out, so that values at the captured sizes would have to do
capture  a size in a capture is another one beyond the captured sizes, and the digests are mended
guard    a capture leaves out a size past the captured ones, and the digests are mended
twin     a pair that differs at another length, and is equal at the captured one, gets a chain made
         of its own steps, of symbols wherever a number is one of theirs at the captured sizes
another  the same pair gets the chain of the honest one, where both have the same terms and steps

None may hold. What was taken from an honest certificate in the way of `twin` may.

    tests/capture_py/size_certificates.py [--isomer build/isomer] [--count N] [--changes N]
                                          [--seed S] [--only CASE] [--pair LEFT RIGHT]

--changes: of each kind and case. --pair: two captures in place of the cases, equal at all sizes.
The last line is `N passed, N failed`."""

import argparse
import copy
import hashlib
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import size_bugs  # noqa: E402
import torch  # noqa: E402
from size_bugs import D, Module, capture, evaluated, sizes_in, truth  # noqa: E402

HOLDS, REFUSED, MALFORMED = 0, 1, 2


def least_number(self, x, other):
    """A causal mask of the least finite number, added or filled in."""
    pos = torch.arange(x.shape[1])
    by = pos[:, None] - pos[None, :]
    hidden = (by < 0) | (by >= self.n)
    least = torch.finfo(torch.float32).min
    scores = (self.q(x) @ self.k(x).transpose(1, 2)) / 2
    if other:
        seen = torch.logical_not(hidden)
        mask = torch.where(seen, 0.0, least)
    else:
        mask = torch.zeros(x.shape[1], x.shape[1]).masked_fill(hidden, least)
    return (scores + mask).softmax(-1) @ x


CASES = [
    least_number,
    size_bugs.window,
    size_bugs.sinks,
    size_bugs.past_table,
    size_bugs.scaled,
    size_bugs.stored,
    size_bugs.last_token,
    size_bugs.chunks,
]


def run(isomer, *args):
    done = subprocess.run(
        [isomer, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    return done.returncode, (done.stdout or done.stderr).strip().splitlines()[-1:]


def symbols_of(path):
    with open(os.path.join(path, "graph.json")) as f:
        return {x["name"]: x for x in json.load(f)["symbols"]}


def others(rng, text, symbols):
    """Sizes that are `text` at the captured sizes, and another one at some others."""
    value = {name: x["value"] for name, x in symbols.items()}
    now = evaluated(text, value)
    name = rng.choice(sorted(symbols))
    by = value[name]
    yield "%s + %s - %d" % (text, name, by)
    yield str(now)
    yield "%s + max(0, %s - %d)" % (text, name, by + rng.randint(0, 40))
    yield "min(%s, %d)" % (text, now + rng.randint(0, 40))
    yield "%s * %s - %d" % (text, name, now * by - now)


def is_other(text, new, symbols):
    """Whether they differ somewhere within the ranges, not far off."""
    for _ in range(200):
        at = {n: x["min"] + random.randint(0, 60) for n, x in symbols.items()}
        if evaluated(text, at) != evaluated(new, at):
            return True
    return False


def changed_sizes(rng, doc, symbols, pick):
    """The certificate with one of the sizes that `pick` gives of it changed."""
    n = len(pick(doc))
    if not n:
        return
    i = rng.randrange(n)
    text = pick(doc)[i]["size"]
    new = [x for x in others(rng, text, symbols) if is_other(text, x, symbols)]
    if not new:
        return
    out = copy.deepcopy(doc)
    pick(out)[i]["size"] = rng.choice(new)
    yield out, "%s in place of %s" % (pick(out)[i]["size"], text)


def steps_with(doc, key):
    return [s for s in doc["sizes"]["steps"] if isinstance(s, dict) and key in s]


def widened(rng, doc, symbols):
    out = copy.deepcopy(doc)
    s = rng.choice(out["sizes"]["symbols"])
    known = symbols[s["name"]]
    if "max" in known and rng.random() < 0.5:
        if rng.random() < 0.5:
            del s["max"]
        else:
            s["max"] = known["max"] + rng.randint(1, 100)
    else:
        s["min"] = known["min"] - 1
    yield out, "%s" % s


def used(doc):
    """Terms that a step of the scope names."""
    out = set()
    for s in doc["sizes"]["steps"]:
        step = doc["steps"][s if isinstance(s, int) else s["step"]]
        out |= set(
            next(v for k, v in step.items() if k in KINDS) if "rule" not in step else step["terms"]
        )
        out |= {v for v in step.get("vars", ()) if v is not None}
    return out


KINDS = ("leaf", "value", "bound", "rounding", "same")


def of_calls(doc):
    live = used(doc)
    return [x for c in doc["sizes"]["calls"] if c["term"] in live for x in sizes_in(c["args"])]


def symbol(rng, doc, symbols):
    yield from changed_sizes(rng, doc, symbols, of_calls)


def name(rng, doc, symbols):
    pick = lambda d: [x for s in steps_with(d, "names") for x in sizes_in(s["names"])]  # noqa: E731
    yield from changed_sizes(rng, doc, symbols, pick)


def number(rng, doc, symbols):
    """All sizes of a call are numbers again."""
    live = used(doc)
    calls = [i for i, c in enumerate(doc["sizes"]["calls"]) if c["term"] in live]
    calls = [i for i in calls if list(sizes_in(doc["sizes"]["calls"][i]["args"]))]
    if calls:
        out = copy.deepcopy(doc)
        del out["sizes"]["calls"][rng.choice(calls)]
        yield out, "a call without symbols"


def terms_of(doc, s):
    step = doc["steps"][s if isinstance(s, int) else s["step"]]
    return step["terms"] if "rule" in step else next(step[k] for k in KINDS if k in step)


def references(x):
    if isinstance(x, dict):
        return [x["ref"]] if "ref" in x else []
    return [r for y in x for r in references(y)] if isinstance(x, list) else []


def early(rng, doc, symbols):
    """A congruence of calls of its own whose arguments are two terms, before all others."""
    steps = doc["sizes"]["steps"]
    own = []
    for i, s in enumerate(steps):
        if not isinstance(s, int) or "same" not in doc["steps"][s] or i == 0:
            continue
        a, b = (doc["terms"][t].get("args") for t in terms_of(doc, s))
        if a and b and any(x != y for x, y in zip(references(a), references(b))):
            own.append(i)
    if own:
        out = copy.deepcopy(doc)
        i = rng.choice(own)
        out["sizes"]["steps"].insert(0, out["sizes"]["steps"].pop(i))
        yield out, "step %s first" % steps[i]


def kind(rng, doc, symbols):
    """A constant that a symbol changes, by its captured value."""
    proved = [
        i
        for i, s in enumerate(doc["sizes"]["steps"])
        if isinstance(s, dict) and "proved" in s and "value" in doc["steps"][s["step"]]
    ]
    if proved:
        out = copy.deepcopy(doc)
        i = rng.choice(proved)
        out["sizes"]["steps"][i] = out["sizes"]["steps"][i]["step"]
        yield out, "step %d by its value" % out["sizes"]["steps"][i]


CHANGES = [widened, symbol, name, number, early, kind]


def digest(path):
    with open(path, "rb") as f:
        return hashlib.sha256(f.read()).hexdigest()


def changed_captures(rng, doc, sides, folder):
    """A capture with a size that is another one past the captured ones, and its certificate."""
    which = rng.randrange(2)
    with open(os.path.join(sides[which], "graph.json")) as f:
        graph = json.load(f)
    symbols = {x["name"]: x for x in graph["symbols"]}
    sizes = [x for node in graph["nodes"] for x in sizes_in(node.get("args", ()))]
    if not sizes:
        return
    size = rng.choice(sizes)
    text = size["size"]
    new = [x for x in others(rng, text, symbols) if is_other(text, x, symbols)]
    if not new:
        return
    size["size"] = rng.choice(new)
    out, now = with_graph(doc, sides, folder, which, graph)
    yield out, now, "%s in place of %s, side %d" % (size["size"], text, which)


def with_graph(doc, sides, folder, which, graph):
    """The certificate for another graph in place of one side's, and the two captures."""
    path = os.path.join(folder, "changed")
    shutil.rmtree(path, ignore_errors=True)
    shutil.copytree(sides[which], path)
    with open(os.path.join(path, "graph.json"), "w") as f:
        json.dump(graph, f)
    out = copy.deepcopy(doc)
    out["left" if which == 0 else "right"]["files"]["graph.json"] = digest(
        os.path.join(path, "graph.json")
    )
    now = list(sides)
    now[which] = path
    return out, now


def guarded_captures(rng, doc, sides, folder):
    """A capture whose program is another one at a size past the captured ones."""
    which = rng.randrange(2)
    with open(os.path.join(sides[which], "graph.json")) as f:
        graph = json.load(f)
    x = rng.choice(graph["symbols"])
    guard = "%s != %d" % (x["name"], x["value"] + rng.randint(1, 9))
    graph["guards"] = [*graph.get("guards", []), guard]
    out, now = with_graph(doc, sides, folder, which, graph)
    yield out, now, "guard %s, side %d" % (guard, which)


def symbolic(rng, x, meanings):
    """Numbers that may mean a size become symbols, most of the time."""
    if isinstance(x, bool) or not isinstance(x, (int, list)):
        return x
    if isinstance(x, list):
        return [symbolic(rng, y, meanings) for y in x]
    return {"size": rng.choice(meanings[x])} if x in meanings and rng.random() < 0.9 else x


def own_scope(rng, doc, symbols):
    """A chain for all sizes, guessed from that of the captured ones."""
    value = {n: x["value"] for n, x in symbols.items()}
    meanings = {}
    for text in [*symbols, *("%s*%s" % (a, b) for a in symbols for b in symbols if a < b)]:
        meanings.setdefault(evaluated(text, value), []).append(text)
    for n in symbols:
        meanings.setdefault(value[n] - 1, []).append("%s - 1" % n)
    out = copy.deepcopy(doc)
    calls = [
        {"term": i, "args": symbolic(rng, t["args"], meanings)}
        for i, t in enumerate(doc["terms"])
        if "args" in t
    ]
    steps = []
    for i, s in enumerate(doc["steps"]):
        names = {n: symbolic(rng, v, meanings) for n, v in s.get("names", {}).items()}
        how = {"step": i, "names": names} if names else i
        if "value" in s or ("rule" in s and rng.random() < 0.1):
            how = rng.choice([{"step": i, "proved": w} for w in ("shared", "whole", "table")] + [i])
        steps.append(how)
    scope = [
        dict({"name": n, "min": x["min"]}, **({"max": x["max"]} if "max" in x else {}))
        for n, x in symbols.items()
    ]
    out["sizes"] = {"symbols": scope, "calls": calls, "steps": steps}
    return out


class Tally:
    def __init__(self, why):
        self.why = why
        self.passed = self.failed = self.held = 0
        self.of = {}

    def refused(self, isomer, doc, sides, folder, what):
        path = os.path.join(folder, "forged.json")
        with open(path, "w") as f:
            json.dump(doc, f)
        status, last = run(isomer, "check", path, *sides, "-q")
        self.of[what.split(":")[0]] = self.of.get(what.split(":")[0], 0) + 1
        if status in (REFUSED, MALFORMED) or not re.search("; proved for|, for", last[0]):
            self.passed += 1
            if self.why:
                print("%s: %s" % (what, last[0]))
        else:
            self.wrong(what, last)

    def wrong(self, what, last):
        self.failed += 1
        print("%s: %s" % (what, last))
        sys.stdout.flush()


def honest(o, rng, sides, folder, tally, what):
    """The pair's own certificate holds for all sizes, and nothing that is made of it does. Returns:
    it, or None."""
    path = os.path.join(folder, "c.json")
    status, last = run(
        o.isomer, "compare", *sides, "--certificate", path, "-q", "--disable", "sizes"
    )
    with open(path) as f:
        doc = json.load(f)
    if "sizes" not in doc:
        return None
    status, last = run(o.isomer, "check", path, *sides, "-q")
    if status != HOLDS or not re.search("; proved for|, for", last[0]):
        tally.wrong("%s: honest" % what, last)
        return None
    tally.passed += 1
    symbols = symbols_of(sides[0])
    for change in CHANGES:
        for _ in range(o.changes):
            for new, how in change(rng, doc, symbols):
                tally.refused(
                    o.isomer, new, sides, folder, "%s: %s, %s" % (change.__name__, what, how)
                )
    for _ in range(o.changes):
        for new, now, how in changed_captures(rng, doc, sides, folder):
            tally.refused(o.isomer, new, now, folder, "capture: %s, %s" % (what, how))
    for new, now, how in guarded_captures(rng, doc, sides, folder):
        tally.refused(o.isomer, new, now, folder, "guard: %s, %s" % (what, how))
    guessed = own_scope(rng, {k: v for k, v in doc.items() if k != "sizes"}, symbols)
    with open(path, "w") as f:
        json.dump(guessed, f)
    status, last = run(o.isomer, "check", path, *sides, "-q")
    tally.held += status == HOLDS
    return doc


def twins(o, rng, sides, folder, tally, what, other):
    """`other`: the honest pair's certificate, or None."""
    path = os.path.join(folder, "t.json")
    status, last = run(
        o.isomer, "compare", *sides, "--certificate", path, "-q", "--disable", "sizes"
    )
    if status != HOLDS:
        return
    with open(path) as f:
        doc = json.load(f)
    if "sizes" in doc:
        tally.wrong("twin: %s" % what, last)
        return
    symbols = symbols_of(sides[0])
    if other and all(doc[k] == other[k] for k in ("terms", "steps", "rules")):
        new = dict(doc, sizes=other["sizes"])
        tally.refused(o.isomer, new, sides, folder, "another: %s" % what)
    for _ in range(o.changes):
        tally.refused(o.isomer, own_scope(rng, doc, symbols), sides, folder, "twin: %s" % what)


def case(o, rng, i, tally):
    function = CASES[i % len(CASES)]
    captured = rng.randint(4, 7)
    n = rng.randint(captured + 1, 24)
    m = n + rng.choice([1, 2, 5])
    make = {how: Module(function, how, n, m).eval() for how in ("plain", "honest", "twin")}
    first = truth(make["plain"], make["twin"])
    make = {how: Module(function, how, n, m).eval() for how in make}
    with tempfile.TemporaryDirectory() as folder:
        path = {how: os.path.join(folder, how) for how in make}
        for how, module in make.items():
            torch.manual_seed(0)
            most = {
                "dynamic": {
                    "x": {0: "B", 1: ("T", 1, 64) if i % 2 or function is size_bugs.stored else "T"}
                }
            }
            capture(module, {"x": torch.randn(2, captured, D)}, path[how], **most)
        what = "%d %s n=%d m=%d at %d" % (i, function.__name__, n, m, captured)
        for other in ("plain", "honest"):
            doc = honest(o, rng, [path["plain"], path[other]], folder, tally, what + " " + other)
        if first is not None and first > captured:
            twins(o, rng, [path["plain"], path["twin"]], folder, tally, what, doc)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--isomer", default=os.path.join(size_bugs.ROOT, "build", "isomer"))
    p.add_argument("--count", type=int, default=len(CASES))
    p.add_argument("--changes", type=int, default=4)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--only", type=int)
    p.add_argument("--pair", nargs=2)
    p.add_argument("--why", action="store_true", help="print why each was refused")
    o = p.parse_args()
    tally = Tally(o.why)
    rng = random.Random(o.seed)
    if o.pair:
        with tempfile.TemporaryDirectory() as folder:
            if honest(o, rng, o.pair, folder, tally, "pair") is None:
                tally.wrong("pair", "its certificate is not of all sizes")
    for i in range(0 if o.pair else o.count):
        rng = random.Random(o.seed * 1000 + i)
        if o.only is None or i == o.only:
            case(o, rng, i, tally)
    print("%s; %d guessed chains of honest pairs held" % (tally.of, tally.held))
    print("%d passed, %d failed" % (tally.passed, tally.failed))
    return tally.failed > 0


if __name__ == "__main__":
    sys.exit(main())
