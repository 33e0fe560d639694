#!/usr/bin/env python3
"""End-to-end tests of the program, as a user runs it. Plain Python 3.

    tests/cli/e2e.py [--isomer build/isomer] [--quick] [--no-torch] [--only NAME] [--list] [--jobs N]

A case is a function that raises on failure. One line per failure; the last line is `N passed, N failed`. Verdicts that
are expected of the captures in models/ are in tests/pairs/captures.py. Variants of captures (renamed, shuffled, malformed) are made
here. --only runs the cases whose name holds NAME."""
import argparse
import json
import os
import random
import re
import shutil
import stat
import struct
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "pairs"))
sys.path.insert(0, os.path.join(ROOT, "tests", "bench"))
import ranks  # noqa: E402
import stack  # noqa: E402
from captures import PAIRS  # noqa: E402
MODELS = os.path.join(ROOT, "models")
STATUS = {"equivalent": 0, "different": 1, "undecided": 3}
TIMEOUT = float(os.environ.get("E2E_TIMEOUT", 600))


class Wrong(Exception):
    pass


def expect(ok, message, *args):
    if not ok:
        raise Wrong(message % args if args else message)


def short(text, n=200):
    text = text if isinstance(text, str) else text.decode("utf-8", "replace")
    return repr(text if len(text) <= n else text[:n] + "...")


# ---- running the program ----

class Result:
    def __init__(self, status, out, err):
        self.status, self.out, self.err = status, out, err

    def lines(self):
        return self.out.decode().splitlines()


def isomer(*args, cwd=None, stdout=subprocess.PIPE):
    command = [OPTIONS.isomer] + [str(a) for a in args]
    try:
        p = subprocess.run(command, cwd=cwd, stdin=subprocess.DEVNULL, stdout=stdout, stderr=subprocess.PIPE,
                           timeout=TIMEOUT)
    except subprocess.TimeoutExpired:
        raise Wrong("no answer after %g s: %s" % (TIMEOUT, " ".join(command[1:])))
    expect(p.returncode >= 0 and p.returncode < 99, "ended with %d: %s", p.returncode, short(p.stderr, 2000))
    return Result(p.returncode, p.stdout, p.stderr)


def model(name):
    return os.path.join(MODELS, name)


KINDS = {"leaf", "input", "dtype", "value", "literal", "shape", "definition", "ties", "order"}
NUMBER = (int, float)
REPORT = {"format": str, "version": int, "verdict": str, "evidence": (str, type(None)), "relative_to": list, "left": dict,
          "right": dict, "outputs": list, "assumptions": list, "unexplained_leaves": list, "rules": list,
          "divergences": list, "counterexample": (dict, type(None)), "largest_merged_difference": (float, int, type(None)),
          "stats": dict}
NESTED = {
    "outputs": {"left": str, "right": str, "relation": (str, type(None)), "equivalent": bool},
    "assumptions": {"kind": str, "text": str, "left": list, "right": list, "relation": (str, type(None))},
    "unexplained_leaves": {"side": str, "id": str, "name": (str, type(None))},
    "rules": {"name": str, "lhs": str, "rhs": str, "conditions": list, "status": str, "scope": str, "relative_to": list,
              "method": str, "samples": int, "uses": int, "origin": str},
    "divergences": {"left": (dict, type(None)), "right": (dict, type(None)), "left_region": list, "right_region": list,
                    "max_abs": NUMBER + (type(None),), "max_rel": NUMBER + (type(None),), "hint": (str, type(None))},
}
SIDE = {"path": str, "model": (str, type(None)), "nodes": int}
PLACE = {"id": str, "op": str, "scope": (str, type(None)), "source": (str, type(None))}
COUNTEREXAMPLE = {"inputs": (str, type(None)), "seed": int, "redrawn": bool, "output": str, "max_abs": NUMBER + (type(None),),
                  "max_rel": NUMBER + (type(None),)}
STATS = {"candidates": int, "merges": int, "rules_synthesised": int, "rules_refuted": int, "rules_reused": int,
         "peak_rss_bytes": int, "seconds": dict}
SECONDS = ["load", "execute", "relate", "synthesise", "validate", "total"]


def has_keys(what, d, keys):
    for k, t in keys.items():
        expect(k in d, "report: %s has no %s", what, k)
        expect(isinstance(d[k], t), "report: %s: %s is %s", what, k, short(json.dumps(d[k])))


def no_constant(name):
    raise Wrong("report: %s is not JSON" % name)


def read_report(text):
    try:
        r = json.loads(text, parse_constant=no_constant)
    except ValueError as e:
        raise Wrong("report: %s" % e)
    has_keys("it", r, REPORT)
    expect(r["format"] == "isomer-report" and r["version"] == 1, "report: format or version")
    expect(r["verdict"] in STATUS, "report: verdict %s", r["verdict"])
    expect(r["evidence"] in ("proved", "tested", None), "report: evidence %s", r["evidence"])
    for name, keys in NESTED.items():
        for item in r[name]:
            has_keys(name, item, keys)
    for side in ("left", "right"):
        has_keys(side, r[side], SIDE)
        for d in r["divergences"]:
            if d[side] is not None:
                has_keys("divergences." + side, d[side], PLACE)
    if r["counterexample"] is not None:
        has_keys("counterexample", r["counterexample"], COUNTEREXAMPLE)
    has_keys("stats", r["stats"], STATS)
    expect(all(isinstance(r["stats"]["seconds"].get(k), NUMBER) for k in SECONDS), "report: stats.seconds")
    for rule in r["rules"]:
        expect(rule["status"] in ("proved", "tested"), "report: a rule that is %s was used", rule["status"])
        expect(rule["scope"] in ("all shapes", "these ranks", "these shapes"), "report: scope %s", short(rule["scope"]))
        expect(rule["origin"] in ("synthesised", "loaded"), "report: origin %s", rule["origin"])
    kinds = {a["kind"] for a in r["assumptions"]}
    expect(kinds <= KINDS, "report: unknown assumptions %s", sorted(kinds - KINDS))
    expect("shape" in kinds, "report: the assumption about shapes is not listed")
    if r["verdict"] == "equivalent":
        expect(r["evidence"] is not None, "report: equivalent without evidence")
        expect(r["outputs"] and all(o["equivalent"] for o in r["outputs"]), "report: equivalent, and an output is not")
        # Not the other way round: a tested rule may have been used off the chain that evidence speaks of.
        expect(r["evidence"] == "proved" or any(x["status"] == "tested" for x in r["rules"]),
               "report: evidence tested without a tested rule")
    if r["verdict"] == "different":
        expect(r["divergences"], "report: different, and no divergence")
        c = r["counterexample"]
        expect(c is not None, "report: different without a counterexample")
        expect(c["max_abs"] is None or c["max_abs"] > 0, "report: a counterexample without a difference")
    return r


def compare(left, right, *args, verdict=None):
    """Run `compare`, check what every run must keep, return (result, report)."""
    with tempfile.TemporaryDirectory() as tmp:
        path = os.path.join(tmp, "report.json")
        r = isomer("compare", left, right, "--json", path, *args)
        expect(r.status in (0, 1, 3), "exit status %d: %s", r.status, short(r.err))
        report = read_report(open(path, encoding="utf-8").read())
        expect(os.listdir(tmp) == ["report.json"], "left beside the report: %s", os.listdir(tmp))
    expect(r.status == STATUS[report["verdict"]], "exit status %d, report says %s", r.status, report["verdict"])
    last = (r.lines() or [""])[-1]
    expect(re.match(r"isomer: %s\b" % report["verdict"].upper(), last), "last line %s, report says %s", short(last),
           report["verdict"])
    if report["verdict"] == "different":
        expect(last.startswith("isomer: DIFFERENT at "), "last line %s", short(last))
    if verdict:
        expect(report["verdict"] == verdict, "%s, expected %s: %s", report["verdict"], verdict, short(last))
    return r, report


def fails(*args, mentions=None, usage=False, cwd=None, stdout=subprocess.PIPE):
    """Exit status 2 with one line on stderr (or a usage text) and nothing on stdout."""
    r = isomer(*args, cwd=cwd, stdout=stdout)
    expect(r.status == 2, "exit status %d, not 2: %s: %s", r.status, " ".join(map(str, args))[-120:], short(r.err or r.out))
    err = r.err.decode("utf-8", "replace")
    expect(err.strip(), "exit status 2 and nothing on stderr")
    if not usage:
        expect(err.count("\n") == 1 and err.endswith("\n"), "not one line on stderr: %s", short(err))
    if stdout == subprocess.PIPE:
        expect(not r.out, "an error, and stdout has %s", short(r.out))
    if mentions:
        expect(mentions in err, "does not mention %s: %s", mentions, short(err))
    return err


# ---- captures ----

def read_tensors(path):
    """{name: (dtype, shape, bytes)}"""
    data = open(path, "rb").read()
    n = struct.unpack("<Q", data[:8])[0]
    head = json.loads(data[8:8 + n])
    return {k: (v["dtype"], v["shape"], data[8 + n + v["data_offsets"][0]:8 + n + v["data_offsets"][1]])
            for k, v in head.items() if k != "__metadata__"}


def write_tensors(path, tensors):
    head, at = {}, 0
    for k, (dtype, shape, data) in tensors.items():
        head[k] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + len(data)]}
        at += len(data)
    text = json.dumps(head).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + b"".join(d for _, _, d in tensors.values()))


def read_graph(folder):
    return json.load(open(os.path.join(folder, "graph.json"), encoding="utf-8"))


def write_graph(folder, graph):
    with open(os.path.join(folder, "graph.json"), "w", encoding="utf-8") as f:
        json.dump(graph, f)


def copy(name, to, trace=False):
    shutil.copytree(model(name), to, ignore=None if trace else shutil.ignore_patterns("trace*"))
    return to


def refs(value):
    if isinstance(value, dict):
        if "ref" in value:
            yield value["ref"]
        else:
            for v in value.values():
                yield from refs(v)
    elif isinstance(value, list):
        for v in value:
            yield from refs(v)


def rename_refs(value, new):
    if isinstance(value, dict):
        return {"ref": new[value["ref"]]} if "ref" in value else {k: rename_refs(v, new) for k, v in value.items()}
    return [rename_refs(v, new) for v in value] if isinstance(value, list) else value


def disguise(name, to, seed):
    """The same function: other ids and leaf names, another topological order, contexts renamed, dead nodes added."""
    rng = random.Random(seed)
    copy(name, to)
    g = read_graph(to)
    nodes = g["nodes"]
    for k, n in enumerate(rng.sample([n for n in nodes if n["outputs"][0]["dtype"] == "float32" and len(n["outputs"]) == 1], 3)):
        nodes.append({"id": "dead%d" % k, "op": "aten::mul.Tensor", "args": [{"ref": n["id"]}, {"ref": n["id"]}], "kwargs": {},
                      "outputs": n["outputs"]})
    nodes.append({"id": "dead_leaf", "op": "parameter", "name": "dead.weight", "outputs": [{"shape": [3, 5], "dtype": "float32"}]})
    order, done, left = [], set(), nodes[:]
    while left:
        ready = [n for n in left if all(r in done for r in refs([n.get("args", []), n.get("kwargs", {})]))]
        n = rng.choice(ready)
        left.remove(n)
        done.add(n["id"])
        order.append(n)
    numbers = rng.sample(range(len(order)), len(order))
    new = {n["id"]: "v%d" % k for n, k in zip(order, numbers)}
    names = {}
    for n, k in zip(order, numbers):
        n["id"] = new[n["id"]]
        for key in ("args", "kwargs"):
            if key in n:
                n[key] = rename_refs(n[key], new)
        n.pop("scope", None), n.pop("source", None)
        if "name" in n:
            old, n["name"] = n["name"], "leaf%d" % k
            names[old] = n["name"]
        if "attributes" in n:
            n["args"] = ["ctx" if isinstance(a, str) else a for a in n["args"]]
            n["kwargs"] = {k: "ctx" if k == "layer_name" else v for k, v in n["kwargs"].items()}
    g["nodes"], g["metadata"] = order, {}
    for o in g["outputs"]:
        o["ref"] = new[o["ref"]]
    weights = read_tensors(os.path.join(to, "weights.safetensors"))
    weights["dead.weight"] = ("F32", [3, 5], struct.pack("<15f", *[rng.gauss(0, 1) for _ in range(15)]))
    write_tensors(os.path.join(to, "weights.safetensors"), {names[k]: weights[k] for k in rng.sample(list(weights), len(weights))})
    inputs = read_tensors(os.path.join(to, "inputs.safetensors"))
    write_tensors(os.path.join(to, "inputs.safetensors"), {names[k]: v for k, v in inputs.items()})
    write_graph(to, g)
    return to


def scale_element(path, name, index, factor):
    tensors = read_tensors(path)
    dtype, shape, data = tensors[name]
    expect(dtype == "F32", "%s is %s", name, dtype)
    value = struct.unpack_from("<f", data, 4 * index)[0] * factor
    tensors[name] = (dtype, shape, data[:4 * index] + struct.pack("<f", value) + data[4 * index + 4:])
    write_tensors(path, tensors)


# ---- cases ----

CASES = []  # (name, command that it needs, quick, function)


def case(name, needs, quick=False):
    def add(f):
        CASES.append((name, needs, quick, f))
        return f
    return add


def pair_case(left, right, verdict, place, swap):
    def run():
        a, b = (right, left) if swap else (left, right)
        _, report = compare(model(a), model(b), verdict=verdict)
        if place:
            side = report["divergences"][0]["left" if swap else "right"]
            expect(side is not None, "the first divergence has nothing on the side with the bug")
            text = json.dumps(side) + " " + " ".join(report["divergences"][0]["left_region" if swap else "right_region"])
            expect(place in text or place.replace(".", "_") in text, "first divergence at %s, expected %s", short(text), place)
    return run


QUICK_PAIRS = {("gpt2-2l/hf-sdpa", "gpt2-2l/vllm"), ("gpt2-2l/hf-sdpa", "gpt2-2l/vllm-bug-posoff"),
               ("llama-2l/vllm", "llama-2l/vllm-bug-eps")}
for _l, _r, _v, _p in PAIRS:
    case("pair %s %s" % (_l, _r), "compare", (_l, _r) in QUICK_PAIRS)(pair_case(_l, _r, _v, _p, False))
    case("pair %s %s" % (_r, _l), "compare")(pair_case(_l, _r, _v, _p, True))

SIDES = sorted("%s/%s" % (m, s) for m in os.listdir(MODELS) if os.path.isdir(os.path.join(MODELS, m))
               for s in os.listdir(os.path.join(MODELS, m)) if os.path.exists(model("%s/%s/graph.json" % (m, s))))


@case("every capture is in tests/pairs/captures.py", None, True)
def _():
    seen = {x for p in PAIRS for x in p[:2]}
    expect(seen == set(SIDES), "not in both: %s", sorted(seen ^ set(SIDES)))
    expect(all(p[2] in STATUS for p in PAIRS), "a verdict is misspelt")


@case("two runs give the same bytes", "compare", True)
def _():
    for left, right in ("gpt2-2l/hf-sdpa", "gpt2-2l/vllm"), ("llama-2l/vllm", "llama-2l/vllm-bug-eps"):
        (a, ra), (b, rb) = (compare(model(left), model(right), "--seed", 5) for _ in range(2))
        expect(a.out == b.out, "stdout differs between two runs of %s %s", left, right)
        ra.pop("stats"), rb.pop("stats")
        expect(json.dumps(ra) == json.dumps(rb), "reports differ between two runs of %s %s", left, right)


def seed_case(left, right, verdict):
    def run():
        for seed in 1, 2, 7:
            compare(model(left), model(right), "--seed", seed, verdict=verdict)
    return run


for _l, _r, _v in (("gpt2-2l/hf-sdpa", "gpt2-2l/vllm", "equivalent"), ("llama-2l/hf-sdpa", "llama-2l/vllm", "equivalent"),
                   ("llama-2l/hf-sdpa", "llama-2l/vllm-bug-eps", "different"),
                   ("gpt2-2l/hf-sdpa", "gpt2-2l/vllm-bug-posoff", "different")):
    case("seeds %s %s" % (_l, _r), "compare")(seed_case(_l, _r, _v))


def self_case(name):
    def run():
        _, r = compare(model(name), model(name), verdict="equivalent")
        expect(not r["rules"], "%d rules to see that a capture equals itself", len(r["rules"]))
        expect(not r["unexplained_leaves"], "unexplained leaves")
    return run


def disguise_case(name, seed):
    def run():
        with tempfile.TemporaryDirectory() as tmp:
            other = disguise(name, os.path.join(tmp, "other"), seed)
            for a, b in (model(name), other), (other, model(name)):
                _, r = compare(a, b, verdict="equivalent")
                expect(not r["rules"], "%d rules for renamed ids and names", len(r["rules"]))
    return run


for _s in SIDES:
    case("itself " + _s, "compare", _s == "gpt2-2l/vllm")(self_case(_s))
for _s, _k in ("gpt2-2l/hf-sdpa", 1), ("gpt2-2l/vllm", 2), ("llama-2l/hf-sdpa", 3), ("llama-2l/vllm-kernels", 4):
    case("disguised " + _s, "compare", _k == 2)(disguise_case(_s, _k))


def ranks_case(name, n, other):
    def run():
        with tempfile.TemporaryDirectory() as tmp:
            sharded = ranks.shard(model(name + "/vllm"), os.path.join(tmp, "ranks"), n)
            for a, b in (model(other), sharded), (sharded, model(other)):
                _, r = compare(a, b, verdict="equivalent")
                expect(len(r["outputs"]) == n, "%d outputs of %d ranks", len(r["outputs"]), n)
    return run


def rank_fault_case(fault, name, n, place):
    def run():
        with tempfile.TemporaryDirectory() as tmp:
            faulty = ranks.shard(model(name + "/vllm"), os.path.join(tmp, "ranks"), n, fault)
            _, r = compare(model(name + "/hf-sdpa"), faulty, verdict="different")
            side = json.dumps(r["divergences"][0]["right"])
            expect(any(p in side for p in place.split("|")), "first divergence at %s, expected %s", short(side), place)
    return run


for _m, _n, _o in ("gpt2-2l", 4, "gpt2-2l/hf-sdpa"), ("gpt2-2l", 2, "gpt2-2l/vllm"), ("llama-2l", 4, "llama-2l/hf-sdpa"), ("llama-2l", 2, "llama-2l/vllm-kernels"):
    case("%d ranks of %s" % (_n, _m), "compare")(ranks_case(_m, _n, _o))
for _f, _cases in ranks.FAULTS.items():
    _m, _n, _p = _cases[0]
    case("%d ranks of %s, %s" % (_n, _m, _f), "compare")(rank_fault_case(_f, _m, _n, _p))


@case("rules of several ranks", "rules")
def _():
    path = os.path.join(ROOT, "tests", "validate", "rules", "ranks.rules")
    with tempfile.TemporaryDirectory() as tmp:
        out = os.path.join(tmp, "out.json")
        r = isomer("rules", "check", path, "--json", out)
        expect(r.status == 1, "exit status %d, expected 1 (some are refuted)", r.status)
        for e in json.load(open(out))["rules"]:
            want = "refuted" if e["name"].startswith("no-") else "proved"
            expect(e["status"] == want, "%s is %s, expected %s", e["name"], e["status"], want)


@case("ranks that cannot reduce", "compare")
def _():
    with tempfile.TemporaryDirectory() as tmp:
        faulty = ranks.shard(model("gpt2-2l/vllm"), os.path.join(tmp, "ranks"), 2, "reduce-max")
        fails("compare", model("gpt2-2l/hf-sdpa"), faulty, mentions="max")


@case("disguised ranks", "compare")
def _():
    with tempfile.TemporaryDirectory() as tmp:
        compare(model("gpt2-2l/hf-sdpa"), disguise("gpt2-2l/vllm-tp2", os.path.join(tmp, "other"), 7), verdict="equivalent")


@case("disguised against the other framework", "compare")
def _():
    with tempfile.TemporaryDirectory() as tmp:
        other = disguise("gpt2-2l/vllm", os.path.join(tmp, "other"), 11)
        compare(model("gpt2-2l/hf-sdpa"), other, verdict="equivalent")
        bug = disguise("llama-2l/vllm-bug-scale", os.path.join(tmp, "bug"), 12)
        compare(model("llama-2l/hf-sdpa"), bug, verdict="different")


def element_case(name, weight):
    def run():
        with tempfile.TemporaryDirectory() as tmp:
            other = copy(name, os.path.join(tmp, "other"))
            scale_element(os.path.join(other, "weights.safetensors"), weight, 17, 1.5)
            compare(model(name), other, verdict="different")
            compare(model(name.split("/")[0] + "/hf-sdpa"), other, verdict="different")
    return run


case("one weight changed gpt2", "compare")(element_case("gpt2-2l/vllm", "transformer.h.1.mlp.c_fc.weight"))
case("one weight changed llama", "compare")(element_case("llama-2l/vllm", "model.layers.1.mlp.down_proj.weight"))


@case("one attribute changed", "compare")
def _():
    with tempfile.TemporaryDirectory() as tmp:
        other = copy("gpt2-2l/vllm", os.path.join(tmp, "other"))
        g = read_graph(other)
        node = [n for n in g["nodes"] if "attributes" in n][1]
        node["attributes"]["causal"] = False
        write_graph(other, g)
        compare(model("gpt2-2l/vllm"), other, verdict="different")


@case("json on stdout", "compare", True)
def _():
    r = isomer("compare", model("gpt2-2l/hf-sdpa"), model("gpt2-2l/vllm"), "--json", "-")
    report = read_report(r.out)
    expect(r.status == STATUS[report["verdict"]], "exit status %d, %s", r.status, report["verdict"])
    last = (r.err.decode().splitlines() or [""])[-1]
    expect(last.startswith("isomer: " + report["verdict"].upper()), "the text is not on stderr: %s", short(last))


@case("quiet, verbose, explain", "compare")
def _():
    for option in "-q", "-v", "--explain":
        for right, verdict in ("gpt2-2l/vllm", "equivalent"), ("gpt2-2l/vllm-bug-posoff", "different"):
            r = isomer("compare", model("gpt2-2l/hf-sdpa"), model(right), option)
            expect(r.status == STATUS[verdict], "%s: exit status %d, expected %d: %s", option, r.status, STATUS[verdict], short(r.err))
            expect((r.lines() or [""])[-1].startswith("isomer: " + verdict.upper()), "%s: no last line", option)


@case("rules are saved and reused", "compare", True)
def _():
    with tempfile.TemporaryDirectory() as tmp:
        path = os.path.join(tmp, "found.rules")
        pair = model("gpt2-2l/hf-sdpa"), model("gpt2-2l/vllm")
        _, first = compare(*pair, "--save-rules", path, verdict="equivalent")
        expect(first["rules"] and all(r["origin"] == "synthesised" for r in first["rules"]), "no synthesised rules at first")
        expect("(rule " in open(path, encoding="utf-8").read(), "no rules in the file")
        _, second = compare(*pair, "--rules", path, verdict="equivalent")
        expect(any(r["origin"] == "loaded" for r in second["rules"]), "no loaded rule was used")
        n, m = (r["stats"]["rules_synthesised"] for r in (first, second))
        expect(m == 0, "%d rules synthesised again, %d at first", m, n)
        wide = [r for r in first["rules"] if r["scope"] != "these shapes"]
        expect(len(wide) >= 0.9 * n, "%d of %d rules hold for more than these shapes", len(wide), n)
        expect(second["evidence"] == first["evidence"], "evidence %s, then %s", first["evidence"], second["evidence"])
        # Across orders and seeds too: they are rules, not notes on one run.
        compare(pair[1], pair[0], "--rules", path, "--seed", 3, verdict="equivalent")


@case("rules of one family serve another", "compare")
def _():
    with tempfile.TemporaryDirectory() as tmp:
        pair, other = ([model(f + "/" + s) for s in ("hf-sdpa", "vllm")] for f in ("gpt2-2l", "llama-2l"))
        path, deep = os.path.join(tmp, "gpt2.rules"), [os.path.join(tmp, s) for s in ("l", "r")]
        compare(*pair, "--save-rules", path, verdict="equivalent")
        _, cold = compare(*other, "--save-rules", os.path.join(tmp, "llama.rules"), verdict="equivalent")
        _, warm = compare(*other, "--rules", path, verdict="equivalent")
        n, m = (r["stats"]["rules_synthesised"] for r in (cold, warm))
        expect(m < n, "%d rules synthesised with another family's, %d without", m, n)
        used = [r for r in warm["rules"] if r["origin"] == "loaded"]
        expect(used and all(r["status"] == "proved" for r in used), "no rule of another family was used")
        expect(warm["evidence"] == cold["evidence"], "evidence %s, then %s", cold["evidence"], warm["evidence"])
        for side, to in zip(other, deep):
            stack.make(side, to, 6)
        _, r = compare(*deep, "--rules", os.path.join(tmp, "llama.rules"), verdict="equivalent")
        expect(r["stats"]["rules_synthesised"] == 0, "%d rules synthesised for more layers", r["stats"]["rules_synthesised"])
        # And what is different stays so with them.
        for bug in "vllm-bug-eps", "vllm-bug-scale":
            compare(model("llama-2l/hf-sdpa"), model("llama-2l/" + bug), "--rules", os.path.join(tmp, "llama.rules"), verdict="different")


@case("with the core library nothing is synthesised", "compare")
def _():
    core = os.path.join(ROOT, "rules", "core.rules")
    for family in "gpt2-2l", "llama-2l":
        for left, right in ("hf-sdpa", "vllm"), ("hf-sdpa", "vllm-kernels"), ("hf-sdpa", "vllm-tp2"), ("vllm-kernels", "vllm-tp2"):
            _, r = compare(model(family + "/" + left), model(family + "/" + right), "--rules", core, verdict="equivalent")
            n = r["stats"]["rules_synthesised"]
            expect(n == 0, "%s, %s, %s: %d rules synthesised", family, left, right, n)
            expect(r["evidence"] == "proved", "%s, %s, %s: %s", family, left, right, r["evidence"])


@case("a false rule is not believed", "compare")
def _():
    with tempfile.TemporaryDirectory() as tmp:
        path = os.path.join(tmp, "false.rules")
        with open(path, "w") as f:
            f.write('(rule eps (var x f _) (lhs (aten::add.Tensor x 1e-05)) (rhs (aten::add.Tensor x 1e-06))\n'
                    ' (evidence proved "all shapes"))\n')
        for a, b in ("vllm", "vllm-bug-eps"), ("vllm-bug-eps", "vllm"):
            _, r = compare(model("llama-2l/" + a), model("llama-2l/" + b), "--rules", path, verdict="different")
            expect(all(x["name"] != "eps" for x in r["rules"]), "the false rule was used")


@case("malformed rule files", "compare")
def _():
    pair = model("gpt2-2l/hf-sdpa"), model("gpt2-2l/vllm")
    with tempfile.TemporaryDirectory() as tmp:
        path = os.path.join(tmp, "bad.rules")
        for text in (b"(rule", b")", b"(rule r (var x f _) (lhs (aten::no_such x)) (rhs x))", b"\xff\xfe", b"(" * 100000,
                     b"(rule r (var x f _) (lhs (aten::relu y)) (rhs x))"):
            with open(path, "wb") as f:
                f.write(text)
            fails("compare", *pair, "--rules", path, mentions="bad.rules")
        fails("compare", *pair, "--rules", os.path.join(tmp, "none"), mentions="none")


# ---- what is malformed ----

def change_node(pick, change):
    def run(folder):
        g = read_graph(folder)
        change(next(n for n in g["nodes"] if pick(n)))
        write_graph(folder, g)
    return run


def change_graph(change):
    def run(folder):
        g = read_graph(folder)
        change(g)
        write_graph(folder, g)
    return run


def put(key, value):
    return lambda n: n.__setitem__(key, value)


def shape(value):
    return lambda n: n["outputs"][0].__setitem__("shape", value)


def truncated(file, at):
    def run(folder):
        path = os.path.join(folder, file)
        data = open(path, "rb").read().rstrip() if file == "graph.json" else open(path, "rb").read()
        n = 8 + struct.unpack("<Q", data[:8])[0] if file != "graph.json" else 0
        with open(path, "wb") as f:
            f.write(data[:at(len(data), n)])
    return run


def patched(file, change):
    def run(folder):
        path = os.path.join(folder, file)
        data = change(open(path, "rb").read())
        with open(path, "wb") as f:
            f.write(data)
    return run


def header(change, file="weights.safetensors"):
    def edit(data):
        n = struct.unpack("<Q", data[:8])[0]
        text = change(data[8:8 + n])
        return struct.pack("<Q", len(text)) + text + data[8 + n:]
    return patched(file, edit)


def header_json(change):
    def edit(text):
        h = json.loads(text)
        change(h, [k for k in h if k != "__metadata__"])
        return json.dumps(h).encode()
    return header(edit)


def drop(file):
    return lambda folder: os.remove(os.path.join(folder, file))


def as_folder(file):
    def run(folder):
        os.remove(os.path.join(folder, file))
        os.mkdir(os.path.join(folder, file))
    return run


def is_op(n):
    return n["op"].startswith("aten::")


def is_parameter(n):
    return n["op"] == "parameter"


def with_ref(n):
    return is_op(n) and any(True for _ in refs(n["args"]))


MALFORMED = {
    "dangling ref": change_node(with_ref, lambda n: n["args"].__setitem__(0, {"ref": "no_such_node"})),
    "ref to itself": change_node(with_ref, lambda n: n["args"].__setitem__(0, {"ref": n["id"]})),
    "ref that is a number": change_node(with_ref, lambda n: n["args"].__setitem__(0, {"ref": 7})),
    "ref forward": change_graph(lambda g: g["nodes"].insert(0, g["nodes"].pop())),
    "duplicate id": change_graph(lambda g: g["nodes"][1].__setitem__("id", g["nodes"][0]["id"])),
    "no id": change_graph(lambda g: g["nodes"][1].pop("id")),
    "id that is a number": change_graph(lambda g: g["nodes"][1].__setitem__("id", 1)),
    "no op": change_graph(lambda g: g["nodes"][1].pop("op")),
    "nodes is an object": change_graph(put("nodes", {})),
    "no outputs": change_graph(lambda g: g.pop("outputs")),
    "dangling output": change_graph(lambda g: g["outputs"][0].__setitem__("ref", "no_such_node")),
    "unknown version": change_graph(put("version", 2)),
    "unknown format": change_graph(put("format", "other")),
    "top is a list": patched("graph.json", lambda d: b"[" + d.rstrip() + b"]"),
    "trailing text": patched("graph.json", lambda d: d.rstrip() + b" {}"),
    "not UTF-8": patched("graph.json", lambda d: d.replace(b'"parameter"', b'"param\xff\xfe"', 1)),
    "deep nesting": patched("graph.json", lambda d: d.replace(b'"metadata": {', b'"metadata": {"x": ' + b"[" * 200000 + b"]" * 200000 + b",", 1)),
    "size 2^62": change_node(is_parameter, shape([2 ** 62, 4])),
    "size 2^63": change_node(is_parameter, shape([2 ** 63])),
    "size 1e30": change_node(is_parameter, shape([1e30])),
    "size of an operator 2^62": change_node(is_op, shape([2 ** 62, 2 ** 62])),
    "negative size": change_node(is_parameter, shape([-1])),
    "size is a string": change_node(is_parameter, shape(["7"])),
    "rank 100000": change_node(is_parameter, shape([1] * 100000)),
    "other shape than the tensor": change_node(is_parameter, shape([1, 1])),
    "unknown dtype": change_node(is_parameter, lambda n: n["outputs"][0].__setitem__("dtype", "float33")),
    "other dtype than the tensor": change_node(is_parameter, lambda n: n["outputs"][0].__setitem__("dtype", "int32")),
    "leaf without its tensor": change_node(is_parameter, put("name", "nobody")),
    "getitem past the end": change_node(lambda n: n["op"] == "getitem", lambda n: n["args"].__setitem__(1, 99)),
    "missing argument": change_node(lambda n: n["op"] == "aten::layer_norm", put("args", [])),
    "too many arguments": change_node(lambda n: n["op"] == "aten::tanh", lambda n: n["args"].extend([1, 2, 3, 4])),
    "unknown keyword": change_node(lambda n: n["op"] == "aten::tanh", put("kwargs", {"no_such": 1})),
    "no graph.json": drop("graph.json"), "no weights": drop("weights.safetensors"), "no inputs": drop("inputs.safetensors"),
    "graph.json is a folder": as_folder("graph.json"), "weights is a folder": as_folder("weights.safetensors"),
    "header of 2^63 bytes": patched("weights.safetensors", lambda d: struct.pack("<Q", 2 ** 63) + d[8:]),
    "header of 2^64-1 bytes": patched("weights.safetensors", lambda d: struct.pack("<Q", 2 ** 64 - 1) + d[8:]),
    "header is longer than the file": patched("weights.safetensors", lambda d: struct.pack("<Q", len(d)) + d[8:]),
    "header is no object": header(lambda t: b"[" + b" " * (len(t) - 2) + b"]"),
    "header is not UTF-8": header(lambda t: t.replace(b"weight", b"w\xff\xfeght", 1)),
    "offsets past the end": header_json(lambda h, k: h[k[-1]].__setitem__("data_offsets", [0, 2 ** 40])),
    "offsets exchanged": header_json(lambda h, k: h[k[0]]["data_offsets"].reverse()),
    "offsets negative": header_json(lambda h, k: h[k[0]].__setitem__("data_offsets", [-8, 0])),
    "offsets overlap": header_json(lambda h, k: h[k[1]].__setitem__("data_offsets", [x + 4 for x in h[k[1]]["data_offsets"]])),
    "shape against bytes": header_json(lambda h, k: h[k[0]].__setitem__("shape", [2 ** 62, 4])),
    "unknown dtype in the header": header_json(lambda h, k: h[k[0]].__setitem__("dtype", "F33")),
    "no dtype in the header": header_json(lambda h, k: h[k[0]].pop("dtype")),
}
for _file, _points in (("graph.json", [lambda n, h: 0, lambda n, h: 1, lambda n, h: n // 3, lambda n, h: n // 2, lambda n, h: n - 1]),
                       ("weights.safetensors", [lambda n, h: 0, lambda n, h: 7, lambda n, h: 8, lambda n, h: h // 2, lambda n, h: h,
                                                lambda n, h: (n + h) // 2, lambda n, h: n - 1]),
                       ("inputs.safetensors", [lambda n, h: 0, lambda n, h: 7, lambda n, h: 8, lambda n, h: h // 2, lambda n, h: h,
                                               lambda n, h: n - 1])):
    for _i, _at in enumerate(_points):
        MALFORMED["%s cut, %d" % (_file, _i)] = truncated(_file, _at)


def malformed_case(damage, command):
    def run():
        with tempfile.TemporaryDirectory() as tmp:
            bad = copy("gpt2-2l/vllm", os.path.join(tmp, "bad"))
            damage(bad)
            work = os.path.join(tmp, "work")
            os.mkdir(work)
            good = model("gpt2-2l/hf-sdpa")
            if command == "show":
                fails("show", bad, mentions="bad", cwd=work)
            else:
                fails("compare", good, bad, "--json", "report.json", mentions="bad", cwd=work)
                fails("compare", bad, good, "--json", "report.json", "--save-rules", "r.rules", mentions="bad", cwd=work)
            expect(not os.listdir(work), "written all the same: %s", os.listdir(work))
    return run


for _name, _damage in MALFORMED.items():
    case("malformed (show): " + _name, "show", True)(malformed_case(_damage, "show"))
    case("malformed: " + _name, "compare")(malformed_case(_damage, "compare"))


@case("unreadable file", "show", True)
def _():
    if os.geteuid() == 0:
        return
    with tempfile.TemporaryDirectory() as tmp:
        bad = copy("gpt2-2l/vllm", os.path.join(tmp, "bad"))
        for file in "graph.json", "weights.safetensors":
            os.chmod(os.path.join(bad, file), 0)
            fails("show", bad, mentions=file)
            os.chmod(os.path.join(bad, file), 0o644)


@case("no such capture", "show", True)
def _():
    fails("show", "/no/such/capture", mentions="/no/such/capture")
    fails("show", os.path.join(ROOT, "tests"), mentions="graph.json")


@case("an operator that nobody can run", "compare")
def _():
    with tempfile.TemporaryDirectory() as tmp:
        other = copy("llama-2l/vllm-bug-eps", os.path.join(tmp, "other"))
        change_node(lambda n: n["op"] == "aten::rsqrt", put("op", "no_such::rsqrt"))(other)
        fails("compare", model("llama-2l/hf-sdpa"), other, "--json", os.path.join(tmp, "r.json"), mentions="no_such::rsqrt")
        expect(not os.path.exists(os.path.join(tmp, "r.json")), "a report all the same")


@case("an old report stays when a run fails", "compare")
def _():
    with tempfile.TemporaryDirectory() as tmp:
        path = os.path.join(tmp, "r.json")
        with open(path, "w") as f:
            f.write("old")
        fails("compare", model("gpt2-2l/hf-sdpa"), "/no/such/capture", "--json", path, mentions="/no/such/capture")
        expect(open(path).read() == "old", "it was overwritten")


def full_device(tmp):
    """A device that is always full, such that a program that replaces it does no harm outside `tmp`; None if there is none."""
    if not os.access("/dev", os.W_OK):
        return "/dev/full"
    path = os.path.join(tmp, "full")
    try:
        os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 7))
        return path
    except OSError:
        return None


@case("results that cannot be written", "compare", True)
def _():
    pair = model("gpt2-2l/hf-sdpa"), model("gpt2-2l/vllm")
    with tempfile.TemporaryDirectory() as tmp, tempfile.TemporaryDirectory() as own:
        full = full_device(own)
        for option in "--json", "--save-rules":
            for path in filter(None, (full, "/no/such/folder/file", tmp)):
                r = isomer("compare", *pair, option, path)
                expect(r.status == 2, "%s %s: exit status %d", option, path, r.status)
                err = r.err.decode()
                expect(err.count("\n") == 1 and path in err, "%s %s: stderr %s", option, path, short(err))
        expect(not os.listdir(tmp), "left behind: %s", os.listdir(tmp))
        if full:
            expect(stat.S_ISCHR(os.stat(full).st_mode), "a device was replaced by a file")
            expect(os.listdir(own) in ([], ["full"]), "left behind: %s", os.listdir(own))
    with open("/dev/full", "wb") as full:
        for args in (("compare",) + pair, ("compare",) + pair + ("--json", "-")):
            fails(*args, stdout=full, usage=True)


@case("usage errors", None, True)
def _():
    fails(usage=True)
    fails("no_such_command", usage=True, mentions="no_such_command")
    fails("--no-such-option", usage=True, mentions="--no-such-option")


@case("usage errors of compare", "compare", True)
def _():
    pair = model("gpt2-2l/hf-sdpa"), model("gpt2-2l/vllm")
    for args in ((), pair[:1], pair + pair[:1], pair + ("--no-such-option",), pair + ("--seed",), pair + ("--seed", "x"),
                 pair + ("--seed", "-1"), pair + ("--seed", "99999999999999999999"), pair + ("--json",), pair + ("-Z",)):
        fails("compare", *args, usage=True)


@case("usage errors of show and run", "show", True)
def _():
    fails("show", usage=True)
    fails("show", model("gpt2-2l/vllm"), "--no-such-option", usage=True)


@case("help and version", None, True)
def _():
    for args in ("--help",), ("--version",):
        r = isomer(*args)
        expect(r.status == 0 and r.out and not r.err, "%s: exit status %d", args[0], r.status)
    with open("/dev/full", "wb") as full:
        fails("--help", stdout=full)


def show_case(name):
    def run():
        r = isomer("show", model(name))
        expect(r.status == 0 and not r.err, "exit status %d: %s", r.status, short(r.err))
        n = len(read_graph(model(name))["nodes"])
        expect(str(n) in r.out.decode(), "does not say that there are %d nodes: %s", n, short(r.out))
        dot = isomer("show", model(name), "--dot")
        expect(dot.status == 0 and dot.out.startswith(b"digraph") and dot.out.rstrip().endswith(b"}"), "--dot: %s", short(dot.out))
    return run


def run_case(name):
    def run():
        r = isomer("run", model(name))
        expect(r.status == 0, "exit status %d: %s", r.status, short((r.err or r.out)[-400:]))
        expect(r.out, "nothing on stdout")
    return run


for _s in SIDES:
    case("show " + _s, "show", True)(show_case(_s))
    if os.path.exists(model(_s + "/trace.safetensors")):
        case("run " + _s, "run", True)(run_case(_s))


@case("run sees a wrong trace", "run", True)
def _():
    with tempfile.TemporaryDirectory() as tmp:
        other = copy("gpt2-2l/vllm", os.path.join(tmp, "other"), trace=True)
        node = [n["id"] for n in read_graph(other)["nodes"] if n["op"] == "aten::tanh"][1]
        scale_element(os.path.join(other, "trace.safetensors"), node, 5, 1.01)
        r = isomer("run", other)
        expect(r.status == 1, "exit status %d", r.status)
        expect(node in r.out.decode(), "does not name %s: %s", node, short(r.out))


@case("run with a malformed trace", "run")
def _():
    for at in (lambda n, h: 0, lambda n, h: 7, lambda n, h: h // 2, lambda n, h: h, lambda n, h: n - 1):
        with tempfile.TemporaryDirectory() as tmp:
            bad = copy("gpt2-2l/vllm", os.path.join(tmp, "bad"), trace=True)
            truncated("trace.safetensors", at)(bad)
            fails("run", bad, mentions="trace.safetensors")


@case("a reader that stops reading", "show", True)
def _():
    p = subprocess.Popen([OPTIONS.isomer, "show", model("gpt2-2l/hf-sdpa"), "--dot"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    p.stdout.read(1)
    p.stdout.close()
    err = p.stderr.read()
    p.stderr.close()
    expect(p.wait() == 0 and not err, "exit status %d, %s", p.returncode, short(err))


# ---- equality saturation: counts of the workloads beside the tests ----

WORKLOADS = os.path.join(ROOT, "tests", "egraph", "data")


def expected_runs(path):
    """Per run of the file: its scheduler, stop, and (nodes, classes, matches) of each iteration."""
    text = re.sub(r";[^\n]*", "", open(path).read())
    out = []
    for run in re.split(r"\(run ", text[text.index("(expected"):])[1:]:
        rows = re.findall(r"\(iter \d+ \(nodes (\d+)\) \(classes (\d+)\)(?: \(matches (\d+)\))?", run)
        out.append((re.search(r"scheduler (\w+)", run).group(1), re.search(r"stop ([\w-]+)", run).group(1),
                    [(int(n), int(c), int(m or 0)) for n, c, m in rows]))
    return out


def saturate_case(name):
    def run():
        path = os.path.join(WORKLOADS, name)
        for full in ([], ["--full-search"]):
            r = isomer("saturate", path, "--json", "-", *full)
            expect(r.status == 0, "exit status %d: %s", r.status, short(r.err))
            runs, want = json.loads(r.out)["runs"], expected_runs(path)
            expect(len(runs) == len(want), "%d runs", len(runs))
            for got, (scheduler, stop, rows) in zip(runs, want):
                expect(got["scheduler"] == scheduler and got["stop"] == stop, "%s: stopped by %s", scheduler, got["stop"])
                matches = full or scheduler == "backoff"
                mine = [(i["nodes"], i["classes"], i["matches"] if matches else 0) for i in got["iterations"]]
                expect(mine == [(n, c, m if matches else 0) for n, c, m in rows], "%s%s: %s", scheduler, full, mine)
    return run


for _name in sorted(os.listdir(WORKLOADS)):
    if _name != "cc.sexp":
        CASES.append(("saturate " + _name, "saturate", True, saturate_case(_name)))


@case("congruence closure", "saturate", True)
def _():
    path = os.path.join(WORKLOADS, "cc.sexp")
    want = re.findall(r"\(nodes (\d+)\) \(classes (\d+)\).*?\(checksum (\w+)\)", open(path).read())[:16]
    for batches in 1, 7:
        r = isomer("saturate", path, "--json", "-", "--batches", batches, "--only", ",".join(map(str, range(16))))
        got = [(str(c["nodes"]), str(c["classes"]), c["checksum"]) for c in json.loads(r.out)["cases"]]
        expect(r.status == 0 and got == want, "%s", got)


@case("saturate: terms, reasons, other formats", "saturate", True)
def _():
    with tempfile.TemporaryDirectory() as t:
        j, dot = os.path.join(t, "g.json"), os.path.join(t, "g.dot")
        r = isomer("saturate", os.path.join(WORKLOADS, "simple.sexp"), "--only", "0", "--explain", "--serialize", j, "--dot", dot)
        text = r.out.decode()
        expect(r.status == 0 and "  foo\n" in text and "(* 1 foo) = (* foo 1)  by commute-mul" in text, "%s", short(text, 2000))
        g = json.load(open(j))
        classes = {n["eclass"] for n in g["nodes"].values()}
        expect(len(g["nodes"]) == 10 and len(classes) == 4 and set(g["root_eclasses"]) <= classes, "%s", short(str(g)))
        expect(all(k in g["nodes"] for n in g["nodes"].values() for k in n["children"]), "a child that is not there")
        expect(open(dot).read().count("subgraph") == 4, "classes in DOT")


BAD_WORKLOADS = {
    "an open list": "(workload (rules (rule r ?a",
    "an unbound variable": "(workload (rules (rule r (f ?a) ?b)) (start (term x)) (measure (run (scheduler simple))))",
    "an unknown guard": "(workload (language math) (rules (rule r (f ?a) ?a (when (blue ?a)))) (start) (measure (run)))",
    "an unknown analysis": "(workload (analysis magic) (rules) (start) (measure (run)))",
    "no start": "(workload (rules) (measure))",
    "a name without a meaning": "(workload (rules) (start (term $t)) (measure (run)))",
    "two workloads": "(workload (rules) (start) (measure)) (workload)",
    "a variable at the start": "(workload (rules) (start (term ?x)) (measure (run)))",
    "another file": "hello",
    "nothing": "",
    "a zero byte": "(workload (rules\0) (start) (measure))",
    "a case by nothing": "(congruence-closure (case (random 10 1 0)))",
    "depth": "(" * 5000,
}


@case("malformed workloads", "saturate", True)
def _():
    with tempfile.TemporaryDirectory() as t:
        for what, text in BAD_WORKLOADS.items():
            path = os.path.join(t, "w.sexp")
            open(path, "w").write(text)
            r = isomer("saturate", path, "--json", "-")
            expect(r.status == 2 and not r.out, "%s: exit status %d, %s", what, r.status, short(r.out))
            lines = [x for x in r.err.decode().splitlines() if x.startswith("isomer: ")]
            expect(len(lines) == 1, "%s: %s", what, short(r.err))
    for args in [], ["nosuch.sexp"], ["--only", "x", "f"], ["--batches", "0", "f"], ["--fast", "f"], ["a", "b"]:
        expect(isomer("saturate", *args).status == 2, "%s", args)


# ---- running them ----

def attempt(c):
    try:
        c[3]()
        return None
    except Wrong as e:
        return str(e)
    except Exception as e:  # a case that breaks is a failure like any other
        return "%s: %s" % (type(e).__name__, e)


def main():
    global OPTIONS
    a = argparse.ArgumentParser(description="end-to-end tests")
    a.add_argument("--isomer", default=os.path.join(ROOT, "build", "isomer"))
    a.add_argument("--only", default="", help="cases whose name holds this")
    a.add_argument("--quick", action="store_true", help="a part that takes seconds")
    a.add_argument("--no-torch", action="store_true", help="only what needs no libtorch")
    a.add_argument("--list", action="store_true")
    a.add_argument("--jobs", type=int, default=min(4, os.cpu_count() or 1))
    OPTIONS = a.parse_args()
    OPTIONS.isomer = os.path.abspath(OPTIONS.isomer)
    cases = [c for c in CASES if OPTIONS.only in c[0] and (c[2] or not OPTIONS.quick)
             and not (OPTIONS.no_torch and c[1] in ("compare", "run"))]
    if OPTIONS.list:
        print("\n".join(c[0] for c in cases))
        return 0
    usage = subprocess.run([OPTIONS.isomer, "--help"], stdout=subprocess.PIPE).stdout.decode()
    missing = sorted({c[1] for c in cases if c[1] and "isomer %s " % c[1] not in usage})
    passed, failed = 0, len(missing)
    for name in missing:
        left_out = sum(c[1] == name for c in cases)
        print("FAILED %s: there is no such command; %d cases left out" % (name, left_out))
    cases = [c for c in cases if c[1] not in missing]
    with ThreadPoolExecutor(OPTIONS.jobs) as pool:
        for c, wrong in zip(cases, pool.map(attempt, cases)):
            if wrong is None:
                passed += 1
            else:
                failed += 1
                print("FAILED %s: %s" % (c[0], wrong.replace("\n", " ")), flush=True)
    print("%d passed, %d failed" % (passed, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
