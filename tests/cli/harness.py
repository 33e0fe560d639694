"""Helpers of the end-to-end tests: the program is run and its report checked, captures are changed,
cases collected. Plain Python 3."""

import argparse
import json
import os
import random
import re
import shutil
import struct
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path[:0] = [os.path.join(ROOT, "tests"), os.path.join(ROOT, "tests", "support")]
from tensors import read_tensors, write_tensors  # noqa: E402

MODELS = os.path.join(ROOT, "models")
STATUS = {"equivalent": 0, "different": 1, "undecided": 3}
TIMEOUT = float(os.environ.get("E2E_TIMEOUT", 600))
OPTIONS = argparse.Namespace()  # of the command line


class Wrong(Exception):
    pass


def expect(ok, message, *args):
    if not ok:
        raise Wrong(message % args if args else message)


def short(text, n=200):
    text = text if isinstance(text, str) else text.decode("utf-8", "replace")
    return repr(text if len(text) <= n else text[:n] + "...")


# ---- captures written by hand ----


def call_node(id, op, args, shape, dtype="float32"):
    return {
        "id": id,
        "op": op,
        "args": args,
        "kwargs": {},
        "outputs": [{"shape": shape, "dtype": dtype}],
    }


def capture_document(nodes, out="y"):
    """graph.json with these nodes, of which `out` is the output."""
    return {
        "format": "isomer-capture",
        "version": 1,
        "model": "m",
        "framework": "f",
        "framework_version": "1",
        "torch_version": "2",
        "nodes": nodes,
        "outputs": [{"name": "out", "ref": out}],
        "metadata": {},
    }


# ---- running the program ----


class Result:
    def __init__(self, status, out, err):
        self.status, self.out, self.err = status, out, err

    def lines(self):
        return self.out.decode().splitlines()


def isomer(*args, cwd=None, stdout=subprocess.PIPE):
    command = [OPTIONS.isomer] + [str(a) for a in args]
    try:
        p = subprocess.run(
            command,
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=subprocess.PIPE,
            timeout=TIMEOUT,
        )
    except subprocess.TimeoutExpired:
        raise Wrong("no answer after %g s: %s" % (TIMEOUT, " ".join(command[1:])))
    expect(
        p.returncode >= 0 and p.returncode < 99,
        "ended with %d: %s",
        p.returncode,
        short(p.stderr, 2000),
    )
    return Result(p.returncode, p.stdout, p.stderr)


def model(name):
    return os.path.join(MODELS, name)


def documented_kinds():
    """Kinds of assumptions by whether they weaken, as docs/reports.md has them."""
    with open(os.path.join(ROOT, "docs", "reports.md"), encoding="utf-8") as f:
        rows = re.findall(r"^\| `(\w+)` \| [^|]+ \| (yes|no) \|$", f.read(), re.M)
    return {kind: weakens == "yes" for kind, weakens in rows}


KINDS = documented_kinds()
NUMBER = (int, float)
REPORT = {
    "format": str,
    "version": int,
    "verdict": str,
    "evidence": (str, type(None)),
    "relative_to": list,
    "left": dict,
    "right": dict,
    "outputs": list,
    "assumptions": list,
    "unexplained_leaves": list,
    "rules": list,
    "divergences": list,
    "counterexample": (dict, type(None)),
    "largest_merged_difference": (float, int, type(None)),
    "stats": dict,
}
NESTED = {
    "outputs": {"left": str, "right": str, "relation": (str, type(None)), "equivalent": bool},
    "assumptions": {
        "kind": str,
        "text": str,
        "left": list,
        "right": list,
        "relation": (str, type(None)),
        "weakens": bool,
        "what": (str, type(None)),
    },
    "unexplained_leaves": {"side": str, "id": str, "name": (str, type(None))},
    "rules": {
        "name": str,
        "lhs": str,
        "rhs": str,
        "conditions": list,
        "status": str,
        "scope": str,
        "relative_to": list,
        "method": str,
        "samples": int,
        "uses": int,
        "origin": str,
        "obligations": (int, type(None)),
    },
    "divergences": {
        "left": (dict, type(None)),
        "right": (dict, type(None)),
        "left_region": list,
        "right_region": list,
        "max_abs": NUMBER + (type(None),),
        "max_rel": NUMBER + (type(None),),
        "hint": (str, type(None)),
    },
}
SIDE = {"path": str, "model": (str, type(None)), "nodes": int}
PLACE = {"id": str, "op": str, "scope": (str, type(None)), "source": (str, type(None))}
COUNTEREXAMPLE = {
    "inputs": (str, type(None)),
    "seed": int,
    "redrawn": bool,
    "output": str,
    "max_abs": NUMBER + (type(None),),
    "max_rel": NUMBER + (type(None),),
}
STATS = {
    "candidates": int,
    "merges": int,
    "rules_synthesised": int,
    "rules_refuted": int,
    "rules_reused": int,
    "peak_rss_bytes": int,
    "seconds": dict,
    "slowest_rule": (dict, type(None)),
}
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
    expect(
        all(isinstance(r["stats"]["seconds"].get(k), NUMBER) for k in SECONDS),
        "report: stats.seconds",
    )
    for rule in r["rules"]:
        expect(
            rule["status"] in ("proved", "tested"),
            "report: a rule that is %s was used",
            rule["status"],
        )
        expect(
            rule["scope"] in ("all shapes", "these ranks", "these shapes"),
            "report: scope %s",
            short(rule["scope"]),
        )
        expect(rule["origin"] in ("synthesised", "loaded"), "report: origin %s", rule["origin"])
    kinds = {a["kind"] for a in r["assumptions"]}
    expect(kinds <= set(KINDS), "report: unknown assumptions %s", sorted(kinds - set(KINDS)))
    for a in r["assumptions"]:
        expect(a["weakens"] == KINDS[a["kind"]], "report: whether %s weakens", a["kind"])
        expect(a["what"] is None or a["kind"] == "definition", "report: %s: an operator", a["kind"])
    kernels = [a["what"] for a in r["assumptions"] if a["what"]]
    expect(r["relative_to"] == kernels, "report: relative_to")
    expect("shape" in kinds, "report: the assumption about shapes is not listed")
    if r["verdict"] == "equivalent":
        expect(r["evidence"] is not None, "report: equivalent without evidence")
        expect(
            r["outputs"] and all(o["equivalent"] for o in r["outputs"]),
            "report: equivalent, and an output is not",
        )
        # Not the other way round: a tested rule may have been used off the chain that evidence
        # speaks of.
        expect(
            r["evidence"] == "proved" or any(x["status"] == "tested" for x in r["rules"]),
            "report: evidence tested without a tested rule",
        )
    if r["verdict"] == "different":
        expect(r["divergences"], "report: different, and no divergence")
        c = r["counterexample"]
        expect(c is not None, "report: different without a counterexample")
        expect(
            c["max_abs"] is None or c["max_abs"] > 0,
            "report: a counterexample without a difference",
        )
    return r


def compare(left, right, *args, verdict=None):
    """Run `compare`, check what every run must keep, return (result, report)."""
    with tempfile.TemporaryDirectory() as tmp:
        path = os.path.join(tmp, "report.json")
        r = isomer("compare", left, right, "--json", path, *args)
        expect(r.status in (0, 1, 3), "exit status %d: %s", r.status, short(r.err))
        report = read_report(open(path, encoding="utf-8").read())
        expect(os.listdir(tmp) == ["report.json"], "left beside the report: %s", os.listdir(tmp))
    expect(
        r.status == STATUS[report["verdict"]],
        "exit status %d, report says %s",
        r.status,
        report["verdict"],
    )
    last = (r.lines() or [""])[-1]
    expect(
        re.match(r"isomer: %s\b" % report["verdict"].upper(), last),
        "last line %s, report says %s",
        short(last),
        report["verdict"],
    )
    if report["verdict"] == "different":
        expect(last.startswith("isomer: DIFFERENT at "), "last line %s", short(last))
    if verdict:
        expect(
            report["verdict"] == verdict,
            "%s, expected %s: %s",
            report["verdict"],
            verdict,
            short(last),
        )
    return r, report


def fails(*args, mentions=None, usage=False, cwd=None, stdout=subprocess.PIPE):
    """Exit status 2 with one line on stderr (or a usage text) and nothing on stdout."""
    r = isomer(*args, cwd=cwd, stdout=stdout)
    expect(
        r.status == 2,
        "exit status %d, not 2: %s: %s",
        r.status,
        " ".join(map(str, args))[-120:],
        short(r.err or r.out),
    )
    err = r.err.decode("utf-8", "replace")
    expect(err.strip(), "exit status 2 and nothing on stderr")
    if not usage:
        expect(
            err.count("\n") == 1 and err.endswith("\n"), "not one line on stderr: %s", short(err)
        )
    if stdout == subprocess.PIPE:
        expect(not r.out, "an error, and stdout has %s", short(r.out))
    if mentions:
        expect(mentions in err, "does not mention %s: %s", mentions, short(err))
    return err


# ---- captures ----


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
        return (
            {"ref": new[value["ref"]]}
            if "ref" in value
            else {k: rename_refs(v, new) for k, v in value.items()}
        )
    return [rename_refs(v, new) for v in value] if isinstance(value, list) else value


def disguise(name, to, seed):
    """The same function: other ids and leaf names, another topological order, contexts renamed,
    dead nodes added."""
    rng = random.Random(seed)
    copy(name, to)
    g = read_graph(to)
    nodes = g["nodes"]
    for k, n in enumerate(
        rng.sample(
            [n for n in nodes if n["outputs"][0]["dtype"] == "float32" and len(n["outputs"]) == 1],
            3,
        )
    ):
        nodes.append(
            {
                "id": "dead%d" % k,
                "op": "aten::mul.Tensor",
                "args": [{"ref": n["id"]}, {"ref": n["id"]}],
                "kwargs": {},
                "outputs": n["outputs"],
            }
        )
    nodes.append(
        {
            "id": "dead_leaf",
            "op": "parameter",
            "name": "dead.weight",
            "outputs": [{"shape": [3, 5], "dtype": "float32"}],
        }
    )
    order, done, left = [], set(), nodes[:]
    while left:
        ready = [
            n
            for n in left
            if all(r in done for r in refs([n.get("args", []), n.get("kwargs", {})]))
        ]
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
    weights["dead.weight"] = (
        "F32",
        [3, 5],
        struct.pack("<15f", *[rng.gauss(0, 1) for _ in range(15)]),
    )
    write_tensors(
        os.path.join(to, "weights.safetensors"),
        {names[k]: weights[k] for k in rng.sample(list(weights), len(weights))},
    )
    inputs = read_tensors(os.path.join(to, "inputs.safetensors"))
    write_tensors(os.path.join(to, "inputs.safetensors"), {names[k]: v for k, v in inputs.items()})
    write_graph(to, g)
    return to


def scale_element(path, name, index, factor):
    tensors = read_tensors(path)
    dtype, shape, data = tensors[name]
    expect(dtype == "F32", "%s is %s", name, dtype)
    value = struct.unpack_from("<f", data, 4 * index)[0] * factor
    tensors[name] = (
        dtype,
        shape,
        data[: 4 * index] + struct.pack("<f", value) + data[4 * index + 4 :],
    )
    write_tensors(path, tensors)


# ---- cases ----

CASES = []  # (name, command that it needs, quick, function)


def case(name, needs, quick=False):
    def add(f):
        CASES.append((name, needs, quick, f))
        return f

    return add


def some_of(path):
    """The text of a file of rules, or each --every-th of them."""
    with open(path, encoding="utf-8") as f:
        begin, *rules = re.split(r"^(?=\(rule )", f.read(), flags=re.M)
    return begin + "".join(rules[:: OPTIONS.every])


def run_functions(without_torch, with_torch, **numbers):
    """The main program of tests that are lists of functions: --isomer, --only NAME, --no-torch, and
    options that are numbers, with their defaults. Returns: the exit status."""
    a = argparse.ArgumentParser()
    a.add_argument("--isomer", default=os.path.join(ROOT, "build", "isomer"))
    a.add_argument("--only", default="")
    a.add_argument("--no-torch", action="store_true")
    for name, default in numbers.items():
        a.add_argument("--" + name, type=int, default=default)
    a.parse_args(namespace=OPTIONS)
    OPTIONS.isomer = os.path.abspath(OPTIONS.isomer)
    passed = failed = 0
    for f in without_torch + ([] if OPTIONS.no_torch else with_torch):
        if OPTIONS.only not in f.__name__:
            continue
        try:
            f()
            passed += 1
        except Exception as e:
            failed += 1
            print(
                "%s: %s%s"
                % (f.__name__, "" if isinstance(e, Wrong) else type(e).__name__ + ": ", e)
            )
    print("%d passed, %d failed" % (passed, failed))
    return 1 if failed else 0
