#!/usr/bin/env python3
"""Certificates: `isomer compare --certificate` and `isomer check`. Plain Python 3.

    tests/cli/certificates.py [--isomer build/isomer] [--checker build/tests/check/checker]
        [--mutations 100] [--seed N] [--captures FOLDER]

FOLDER holds families: every correct pair of them is taken too.

Every correct pair of models/ gives a certificate that checks. A certificate that was changed must
be refused, unless what it says still follows: that is judged here, from the certificate's text
alone, against the one that was written. Changed captures and weights are refused. The last line is
`N passed, N failed`."""

import argparse
import hashlib
import importlib.util
import json
import os
import random
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import time

from changed_certificates import mutate

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "support"))
import commands  # noqa: E402

spec = importlib.util.spec_from_file_location(
    "pairs", os.path.join(ROOT, "tests", "pairs", "captures.py")
)
PAIRS = importlib.util.module_from_spec(spec)
spec.loader.exec_module(PAIRS)
MODELS = os.path.join(ROOT, "models")
HOLDS, REFUSED, MALFORMED, UNPROVED = range(4)
TALLY = [0, 0]


def report(ok, what):
    TALLY[not ok] += 1
    if not ok:
        print("FAILED " + what, flush=True)


def isomer(*args):
    p = subprocess.run(
        [O.isomer] + list(args),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        timeout=900,
    )
    text = (p.stdout or p.stderr).decode("utf-8", "replace").strip()
    return p.returncode, text.rsplit("\n", 1)[-1]


# ---- is what a changed certificate says still true? ----


def arguments(x, content):
    if isinstance(x, dict) and set(x) == {"ref"}:
        return content[x["ref"]]
    if isinstance(x, list):
        return tuple(["list"] + [arguments(y, content) for y in x])
    return json.dumps(x, sort_keys=True)


def contents(doc):
    """Every term by what it is, whatever its number: equal for equal terms."""
    number, content = {}, []
    for t in doc["terms"]:
        key = (
            (t["op"],) + tuple(arguments(a, content) for a in t["args"])
            if "op" in t
            else tuple(t.items())[0]
        )
        content.append(number.setdefault(key, len(number)))
    return content, {v: k for k, v in number.items()}


def deep(doc):
    """Terms as digests, comparable between certificates."""
    out = []
    for t in doc["terms"]:
        out.append(
            hashlib.sha256(
                repr(
                    (t["op"],) + tuple(arguments(a, out) for a in t["args"])
                    if "op" in t
                    else tuple(t.items())[0]
                ).encode()
            ).hexdigest()
        )
    return out


def nameless(rule):
    return re.sub(r"^\(rule [^\s]+", "(rule", re.sub(r"\(evidence [^)]*\)", "", rule)).split()


def claims(doc, steps=None, d=None):
    """The claims of all steps that are no congruences, over the terms' digests `d`."""
    d, out = d or deep(doc), set()
    for s in doc["steps"] if steps is None else steps:
        if "rule" in s:
            out.add(
                (
                    "rule",
                    " ".join(nameless(doc["rules"][s["rule"]])),
                    tuple(None if v is None else d[v] for v in s["vars"]),
                    tuple(d[t] for t in s["terms"]),
                    json.dumps(s.get("names", {}), sort_keys=True),
                )
            )
        elif "same" not in s:
            for kind, pair in s.items():
                out.add((kind,) + tuple(sorted(d[t] for t in pair)))
    return out


def lifted(call, side):
    """A captured call's arguments with references to captured terms."""
    if isinstance(call, dict) and "ref" in call:
        return (side, call["ref"])
    return call


class Judge:
    """Follows the steps with sets of equal terms. A captured node's own call is known where the
    original certificate, which was checked, joins it with a call by congruence: such a step is
    taken over by what it says."""

    def __init__(self, doc):
        d = deep(doc)
        self.said = claims(doc)
        self.same = {
            tuple(sorted((d[a], d[b]))) for s in doc["steps"] if "same" in s for a, b in [s["same"]]
        }
        self.outputs = {
            (o["left"], o["right"], tuple(d[t] for t in o["terms"])) for o in doc["outputs"]
        }
        self.captures = [doc[s] for s in ("left", "right")]
        self.evidence = doc["evidence"]
        self.claimed = {
            " ".join(nameless(r)): re.search(r"\(evidence (\w+)", r).group(1) for r in doc["rules"]
        }
        self.fixed = {tuple(x.items()) for x in doc["fixed"]}

    def new_rules(self, doc):
        """The rules that are used and were not there."""
        return {
            " ".join(nameless(doc["rules"][s["rule"]])) for s in doc["steps"] if "rule" in s
        } - set(self.claimed)

    def holds(self, doc, proved=()):
        """None, or why what was accepted does not follow as far as can be seen here."""
        d, up = deep(doc), {}

        def root(x):
            while up.get(x, x) != x:
                x = up[x]
            return x

        def equal(x, y):
            if isinstance(x, dict) and isinstance(y, dict) and "ref" in x and "ref" in y:
                return root(d[x["ref"]]) == root(d[y["ref"]])
            if isinstance(x, list) and isinstance(y, list):
                return len(x) == len(y) and all(map(equal, x, y))
            return json.dumps(x) == json.dumps(y)

        if [doc[s] for s in ("left", "right")] != self.captures:
            return "other captures"
        if not {tuple(x.items()) for x in doc["fixed"]} <= self.fixed:
            return "other inputs are fixed"
        for i, s in enumerate(doc["steps"]):
            if "same" in s:
                a, b = s["same"]
                x, y = doc["terms"][a], doc["terms"][b]
                known = (
                    "op" in x and "op" in y and x["op"] == y["op"] and equal(x["args"], y["args"])
                )
                if not known and tuple(sorted((d[a], d[b]))) not in self.same and d[a] != d[b]:
                    return "step %d is a congruence that was not there" % i
            else:
                if not {c for c in claims(doc, [s], d) if c[1] not in proved} <= self.said:
                    return "step %d says something new" % i
                a, b = s["terms"] if "rule" in s else list(s.values())[0]
            up[root(d[a])] = root(d[b])
        for o in doc["outputs"]:
            if (o["left"], o["right"], tuple(d[t] for t in o["terms"])) not in self.outputs:
                return "outputs that were not there"
            if root(d[o["terms"][0]]) != root(d[o["terms"][1]]):
                return "outputs that do not meet"
        if {(o["left"], o["right"]) for o in doc["outputs"]} != {o[:2] for o in self.outputs}:
            return "an output is left out"
        claimed = [
            re.search(r"\(evidence (\w+)", doc["rules"][s["rule"]])
            for s in doc["steps"]
            if "rule" in s
        ]
        if any(c is None for c in claimed):
            return "a rule without evidence"
        weakest = "tested" if "tested" in [c.group(1) for c in claimed] else "proved"
        if doc["evidence"] != weakest and (doc["evidence"], weakest, self.evidence) != (
            "certified",
            "proved",
            "certified",
        ):
            return "other evidence"
        return None


def run_checker(left, right, paths, *options):
    """(outcome, reason) of each."""
    p = subprocess.run(
        [O.checker, left, right, *options],
        input="".join(x + "\n" for x in paths).encode(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        timeout=1200,
    )
    lines = p.stdout.decode("utf-8", "replace").splitlines()
    report(
        p.returncode == 0,
        "the checker ended with %d after %d certificates: %s"
        % (p.returncode, len(lines), p.stderr[-500:].decode("utf-8", "replace")),
    )
    return [(int(x.split(" ", 1)[0]), x.split(" ", 1)[1]) for x in lines]


def campaign(name, left, right, text, n, rng, where):
    judge, paths = Judge(json.loads(text)), []
    wrong = judge.holds(json.loads(text))
    report(
        wrong is None,
        "%s: the judge does not follow the certificate as it was written: %s" % (name, wrong),
    )
    for i in range(n):
        paths.append(os.path.join(where, "mutant-%d.json" % i))
        with open(paths[-1], "wb") as f:
            f.write(mutate(text, rng))
    tally, other_rule = [0] * 4, 0
    for path, (outcome, reason) in zip(paths, run_checker(left, right, paths, "--trust-rules")):
        wrong = None
        doc = json.load(open(path)) if outcome == HOLDS else None
        proved = judge.new_rules(doc) if doc else ()
        if proved:
            # With other conditions or sizes a rule may still fit where it is used: then it counts
            # whether it is true.
            ((outcome, reason),) = run_checker(left, right, [path])
            other_rule += outcome == HOLDS
        tally[outcome] += 1
        if outcome == HOLDS:
            wrong = judge.holds(doc, proved)
            if wrong and O.keep:
                shutil.copy(path, O.keep)
        elif not reason:
            wrong = "no reason is given"
        report(wrong is None, "%s: %s: %s" % (name, os.path.basename(path), wrong))
        os.unlink(path)
    print(
        (
            "%s: %d changed: %d refused, %d malformed, %d with a rule that is not proved, %d say "
            "the same as before, %d with another rule, which is proved"
        )
        % (
            name,
            n,
            tally[REFUSED],
            tally[MALFORMED],
            tally[UNPROVED],
            tally[HOLDS] - other_rule,
            other_rule,
        ),
        flush=True,
    )


# ---- pairs ----


def certify(left, right, path):
    t0 = time.monotonic()
    status, last = isomer("compare", left, right, "-q", "--certificate", path)
    t1 = time.monotonic()
    checked, why = isomer("check", path, left, right, "-q") if status == 0 else (None, last)
    return status, t1 - t0, checked, why, time.monotonic() - t1


def check_pair(folder, left, right, path):
    a, b = os.path.join(folder, left), os.path.join(folder, right)
    if os.path.exists(path):
        os.unlink(path)
    status, compare, checked, why, check = certify(a, b, path)
    report(
        status == 0 and checked == 0,
        "%s %s: compare %d, check %s: %s" % (left, right, status, checked, why),
    )
    if O.captures:
        print(
            "%-28s %-28s compare %5.1f s, check %5.1f s  %s" % (left, right, compare, check, why),
            flush=True,
        )
    return status == 0, compare, check


def rewrite(path, out, change):
    doc = json.load(open(path))
    change(doc)
    with open(out, "w") as f:
        json.dump(doc, f)


def digests(capture):
    names = [
        n
        for n in os.listdir(capture)
        if n == "graph.json"
        or n == "weights.safetensors"
        or re.fullmatch(r"inputs(\.\d+)?\.safetensors", n)
    ]
    return {
        n: hashlib.sha256(open(os.path.join(capture, n), "rb").read()).hexdigest() for n in names
    }


def expect(what, got, wanted, mentions=""):
    status, text = got
    report(
        status == wanted and mentions in text,
        "%s: status %d, expected %d: %s" % (what, status, wanted, text),
    )


def changed_captures(where):
    """A certificate for one pair of captures does not hold for another one, whatever its digests
    say."""
    family = os.path.join(MODELS, "llama-2l")
    left, right, path, out = (
        os.path.join(family, "hf-sdpa"),
        os.path.join(family, "vllm"),
        os.path.join(where, "llama.json"),
        os.path.join(where, "changed.json"),
    )
    isomer("compare", left, right, "-q", "--certificate", path)
    expect(
        "trusted rules",
        isomer("check", path, left, right, "-q", "--trust-rules"),
        0,
        "rules trusted",
    )
    expect("sides exchanged", isomer("check", path, right, left, "-q"), 1, "not the one")
    for bug in sorted(os.listdir(family)):
        if "bug" not in bug:
            continue
        faulty = os.path.join(family, bug)
        expect("%s for vllm" % bug, isomer("check", path, left, faulty, "-q"), 1, "not the one")
        rewrite(path, out, lambda d: d["right"].update(files=digests(faulty)))
        expect(
            "%s for vllm, with its own digests" % bug,
            isomer("check", out, left, faulty, "-q", "--trust-rules"),
            1,
        )
    # One bit of one weight.
    copy = os.path.join(where, "copy")
    shutil.copytree(right, copy)
    name = os.path.join(copy, "weights.safetensors")
    data = bytearray(open(name, "rb").read())
    data[8 + struct.unpack("<Q", data[:8])[0] + 1000] ^= 1
    open(name, "wb").write(data)
    expect(
        "a bit of a weight",
        isomer("check", path, left, copy, "-q"),
        1,
        "weights.safetensors is not the one",
    )
    rewrite(path, out, lambda d: d["right"].update(files=digests(copy)))
    expect(
        "a bit of a weight, with its digest",
        isomer("check", out, left, copy, "-q"),
        1,
        "their values differ",
    )
    shutil.rmtree(copy)


def dishonest_rules(where):
    """A rule that is false is refuted, one that is stronger on paper than it can be shown is said
    so."""
    family = os.path.join(MODELS, "llama-2l")
    left, right, path, out = (
        os.path.join(family, "hf-sdpa"),
        os.path.join(family, "vllm"),
        os.path.join(where, "llama.json"),
        os.path.join(where, "changed.json"),
    )

    def add(rule, op):
        def change(doc):
            x = next(
                i
                for i, t in enumerate(doc["terms"])
                if t.get("left") == doc["terms"][doc["outputs"][0]["terms"][0]]["left"]
            )
            doc["terms"].append({"op": op, "args": [{"ref": x}]})
            doc["rules"].append(rule)
            doc["steps"].append(
                {"rule": len(doc["rules"]) - 1, "vars": [x], "terms": [x, len(doc["terms"]) - 1]}
            )

        return change

    rule = '(rule r (var x f (1 7 192)) (lhs x) (rhs (%s x)) (evidence proved "these shapes"))'
    rewrite(path, out, add(rule % "aten::relu", "aten::relu"))
    expect("a false rule", isomer("check", out, left, right, "-q"), 1, "refuted")
    expect("a false rule, trusted", isomer("check", out, left, right, "-q", "--trust-rules"), 0)
    rewrite(path, out, add(rule % "aten::relu" + " ", "aten::neg"))
    expect(
        "another operator than the rule's",
        isomer("check", out, left, right, "-q"),
        1,
        "not the right side",
    )
    rewrite(path, out, add((rule % "aten::alias").replace("192", "191"), "aten::alias"))
    expect(
        "another shape than the rule's", isomer("check", out, left, right, "-q"), 1, "kind or shape"
    )
    rewrite(path, out, add((rule % "aten::alias").replace("(var x f", "(var x i"), "aten::alias"))
    expect(
        "another kind than the rule's", isomer("check", out, left, right, "-q"), 1, "kind or shape"
    )
    rewrite(path, out, add(rule % "aten::alias", "aten::alias"))
    expect("a rule that holds", isomer("check", out, left, right, "-q"), 0)


def open_rules(where):
    """Sizes and attributes that a rule leaves open: the values that a step gives are held against
    the terms, the shapes and the conditions."""
    family = os.path.join(MODELS, "llama-2l")
    left, right, path, out = (
        os.path.join(family, "hf-sdpa"),
        os.path.join(family, "vllm"),
        os.path.join(where, "llama.json"),
        os.path.join(where, "changed.json"),
    )

    def tried(
        what,
        shape,
        rhs,
        args,
        names,
        status,
        mentions="",
        attr="",
        condition="",
        claim="proved",
        trust=("--trust-rules",),
    ):
        def change(doc):
            x = next(
                i
                for i, t in enumerate(doc["terms"])
                if t.get("left") == doc["terms"][doc["outputs"][0]["terms"][0]]["left"]
            )
            doc["terms"].append(
                {"op": re.match(r"\((\S+)", rhs).group(1), "args": [{"ref": x}] + args}
            )
            doc["rules"].append(
                '(rule r (var x f %s) %s (lhs x) (rhs %s) (where %s) (evidence %s "these ranks"))'
                % (shape, attr, rhs, condition, claim)
            )
            doc["steps"].append(
                {
                    "rule": len(doc["rules"]) - 1,
                    "vars": [x],
                    "terms": [x, len(doc["terms"]) - 1],
                    **({"names": names} if names is not None else {}),
                }
            )

        rewrite(path, out, change)
        expect(what, isomer("check", out, left, right, "-q", *trust), status, mentions)

    view, sizes = "(aten::view x (list A B C))", {"A": 1, "B": 7, "C": 192}
    drop = ("(A B C)", "(aten::dropout x p false)")
    tried("sizes left open", "(A B C)", view, [[1, 7, 192]], sizes, 0, trust=())
    tried("sizes without values", "(A B C)", view, [[1, 7, 192]], None, 1, "a size is none")
    tried("no names at all", "(A B C)", view, [[1, 7, 192]], {}, 2, "malformed")
    tried(
        "one size without a value",
        "(A B C)",
        view,
        [[1, 7, 192]],
        {"A": 1, "B": 7},
        1,
        "a size is none",
    )
    tried("a name too many", "(A B C)", view, [[1, 7, 192]], dict(sizes, D=1), 1, "no such name")
    tried(
        "a size that is another",
        "(A B C)",
        view,
        [[1, 7, 191]],
        dict(sizes, C=191),
        1,
        "kind or shape",
    )
    tried(
        "a size that the term does not have",
        "(A B C)",
        view,
        [[1, 7, 192]],
        dict(sizes, C=191),
        1,
        "not the right side",
    )
    tried(
        "a size that is a float",
        "(A B C)",
        view,
        [[1, 7, 192]],
        dict(sizes, C=192.0),
        1,
        "another kind",
    )
    tried(
        "a size of zero",
        "(A B (+ C Z))",
        "(aten::view x (list A B (+ C Z)))",
        [[1, 7, 192]],
        dict(sizes, Z=0),
        1,
        "a size is none",
    )
    tried(
        "a size computed",
        "(A B (* 2 H))",
        "(aten::view x (list A B (* 2 H)))",
        [[1, 7, 192]],
        {"A": 1, "B": 7, "H": 96},
        0,
    )
    tried(
        "an attribute that meets its condition",
        *drop,
        [0.5, False],
        dict(sizes, p=0.5),
        0,
        attr="(attr p float)",
        condition="(< p 1)",
    )
    tried(
        "an attribute that does not",
        *drop,
        [1.5, False],
        dict(sizes, p=1.5),
        1,
        "a condition does not hold",
        attr="(attr p float)",
        condition="(< p 1)",
    )
    tried(
        "a condition over a name without a value",
        "(A B C)",
        view,
        [[1, 7, 192]],
        sizes,
        1,
        "a condition does not hold",
        condition="(< q 1)",
    )
    tried("a range of values", "(A B C)) (in x 0 9", "(aten::alias x)", [], sizes, 2)
    tried("any shape", "_", "(aten::alias x)", [], None, 0)
    tried("leading sizes", "(... C)", "(aten::alias x)", [], {"C": 192}, 0)
    tried(
        "leading sizes, and another one",
        "(... C)",
        "(aten::alias x)",
        [],
        {"C": 7},
        1,
        "kind or shape",
    )
    tried(
        "open, and tested only",
        "(A B C)",
        view,
        [[1, 7, 192]],
        sizes,
        1,
        "open sizes",
        claim="tested",
        trust=(),
    )
    tried("open, and false", "(A B C)", "(aten::relu x)", [], sizes, 1, "refuted", trust=())
    tried("open, false and trusted", "(A B C)", "(aten::relu x)", [], sizes, 0)
    tried(
        "true of this size alone",
        "(A B C)",
        "(aten::slice.Tensor x 1 0 7)",
        [1, 0, 7, 1],
        sizes,
        1,
        "refuted",
        trust=(),
    )


def further_pairs(where):
    """A certificate for each pair of --also; the others say nothing of it."""
    first, second = (
        [os.path.join(MODELS, f, s) for s in ("hf-sdpa", "vllm")] for f in ("gpt2-2l", "llama-2l")
    )
    one, two = os.path.join(where, "also.json"), os.path.join(where, "also.2.json")
    expect(
        "compare --also",
        isomer("compare", *first, "--also", *second, "-q", "--certificate", one),
        0,
    )
    expect("the first pair's", isomer("check", one, *first, "-q"), 0)
    expect("the second pair's", isomer("check", two, *second, "-q"), 0)
    expect(
        "the second pair's for the first", isomer("check", two, *first, "-q"), 1, "left model is"
    )


def checkpoints(where):
    """Weights in a checkpoint belong to what is certified."""
    left, copy, path = (
        os.path.join(MODELS, "gpt2-2l", "hf-sdpa"),
        os.path.join(where, "checkpoint"),
        os.path.join(where, "checkpoint.json"),
    )
    shutil.copytree(os.path.join(MODELS, "gpt2-2l", "vllm"), copy)
    os.rename(os.path.join(copy, "weights.safetensors"), os.path.join(copy, "model-1.safetensors"))
    data = bytearray(open(os.path.join(copy, "model-1.safetensors"), "rb").read())
    (n,) = struct.unpack("<Q", data[:8])
    json.dump(
        {"weight_map": {k: "model-1.safetensors" for k in json.loads(data[8 : 8 + n])}},
        open(os.path.join(copy, "model.safetensors.index.json"), "w"),
    )
    expect(
        "compare with a checkpoint", isomer("compare", left, copy, "-q", "--certificate", path), 0
    )
    expect("a checkpoint", isomer("check", path, left, copy, "-q"), 0)
    data[-1] ^= 1
    open(os.path.join(copy, "model-1.safetensors"), "wb").write(data)
    expect(
        "a checkpoint with one bit changed",
        isomer("check", path, left, copy, "-q"),
        1,
        "model-1.safetensors is not the one",
    )
    shutil.rmtree(copy)


EXPORT = """
import sys, torch
from torch.nn.functional import gelu
class Plain(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.up, self.down = torch.nn.Linear(8, 6), torch.nn.Linear(6, 4)
    def forward(self, x):
        return self.down(gelu(self.up(x)))
class Addmm(Plain):
    def forward(self, x):
        up = gelu(torch.addmm(self.up.bias, x, self.up.weight.t()))
        return torch.addmm(self.down.bias, up, self.down.weight.t())
for m in Plain, Addmm:
    program = torch.export.export(m().eval(), (torch.randn(3, 8),))
    torch.export.save(program, "%s/%s.pt2" % (sys.argv[1], m.__name__))
"""


def archives(where):
    """Archives of torch.export.save: where a Python with PyTorch makes some."""
    python = next(
        (
            p
            for p in (os.path.join(ROOT, ".venv", "bin", "python3"), sys.executable)
            if os.path.exists(p)
            and commands.has_torch(p)
            and not commands.python(["-c", EXPORT, where], executable=p).returncode
        ),
        None,
    )
    if python is None:
        print("no Python with PyTorch: certificates of archives are not tried")
        return
    left, right, path = (os.path.join(where, n) for n in ("Plain.pt2", "Addmm.pt2", "archive.json"))
    expect("compare archives", isomer("compare", left, right, "-q", "--certificate", path), 0)
    expect("archives", isomer("check", path, left, right, "-q"), 0)
    expect(
        "archives exchanged",
        isomer("check", path, right, left, "-q"),
        1,
        "left capture's archive is not the one",
    )
    inputs = os.path.join(where, "inputs.safetensors")
    head = json.dumps({"x": {"dtype": "F32", "shape": [3, 8], "data_offsets": [0, 96]}}).encode()
    open(inputs, "wb").write(
        struct.pack("<Q", len(head)) + head + struct.pack("<24f", *[k / 7 - 1 for k in range(24)])
    )
    expect(
        "other inputs",
        isomer("check", path, left, right, "-q", "--inputs", inputs),
        1,
        "inputs.safetensors, which the certificate does not know",
    )
    expect(
        "compare archives with inputs",
        isomer("compare", left, right, "-q", "--inputs", inputs, "--certificate", path),
        0,
    )
    expect("archives with inputs", isomer("check", path, left, right, "-q", "--inputs", inputs), 0)
    expect("their own inputs", isomer("check", path, left, right, "-q"), 1, "lacks a file")


def counted(where):
    """How many rules were shown in which way stands in the JSON: of GPT-2's and Llama's all by z3
    and by the checker's own evaluation; with trusted rules none."""
    path, out = os.path.join(where, "counted.json"), os.path.join(where, "report.json")
    for family in ("gpt2-2l", "llama-2l"):
        sides = [os.path.join(MODELS, family, x) for x in ("hf-sdpa", "vllm")]
        expect("compare " + family, isomer("compare", *sides, "-q", "--certificate", path), 0)
        for trust in ([], ["--trust-rules"]):
            expect("check --json", isomer("check", path, *sides, "-q", "--json", out, *trust), 0)
            doc = json.load(open(out))
            n = doc["counts"]
            all = 0 if trust else n["rules"]
            report(
                n["rules"] > 20 and [n["z3"], n["evaluated"], n["only_re_run"]] == [all, all, 0],
                "%s: counts %s" % (family, n),
            )
            report(
                len(doc["rules"]) == n["rules"] and doc["outcome"] == "holds",
                "%s: %d rules, %s" % (family, len(doc["rules"]), doc["outcome"]),
            )


def excused_roundings(where):
    """(x + 1e12) - 1e12 and x are one number where x is 0, as it was captured, and on other inputs
    as far apart as rounding moves them: that is listed."""
    sys.path.insert(0, os.path.join(ROOT, "tests", "pairs"))
    import dsl

    path, out = os.path.join(where, "rounds.json"), os.path.join(where, "rounds-report.json")
    sides = [os.path.join(where, "rounds", s) for s in ("left", "right")]
    for side in (0, 1):
        g = dsl.Graph()
        x = g.leaf("input", "x", dsl.values("x", 3, 4, at=0.0), dsl.f32)
        call = lambda op, t, by: g.op(op, [t, by], [((3, 4), dsl.f32)])[0]
        y = call("mul.Scalar", x, 1.0) if side else call("add.Scalar", x, 1e12)
        g.write(sides[side], {"y": y if side else call("sub.Scalar", y, 1e12)})
    expect("compare roundings", isomer("compare", *sides, "-q", "--certificate", path), 0)
    expect("check roundings", isomer("check", path, *sides, "-q", "--json", out), 0)
    said = [a for a in json.load(open(out))["assumptions"] if a["kind"] == "rounding"]
    report(
        len(said) == 1 and "on other inputs and parameters" in said[0]["text"],
        "a difference that rounding explains is not listed once: %s" % said,
    )


def ranges_of_parts(where):
    """Two ranks' inputs are one on the left, and only the ranks say which numbers may stand there:
    as long as both do, the whole may be clamped to these."""
    sys.path.insert(0, os.path.join(ROOT, "tests", "pairs"))
    import dsl

    path, forged = os.path.join(where, "parts.json"), os.path.join(where, "parts-forged.json")
    sides = [os.path.join(where, "parts", s) for s in ("left", "right")]
    numbers, row = [0, 3, 5, 1, 2, 4, 5, 1], ((4,), dsl.i64)

    def say(ranges):
        graph = os.path.join(sides[1], "graph.json")
        doc = json.load(open(graph))
        for node in doc["nodes"]:
            if node["op"] == "input":
                node.pop("domain", None)
                if node["name"] in ranges:
                    node["domain"] = {"range": ranges[node["name"]]}
        json.dump(doc, open(graph, "w"))

    g = dsl.Graph()
    x = g.leaf("input", "x", dsl.Data((8,), numbers), dsl.i64)
    g.write(sides[0], {"y": g.op("mul.Scalar", [x, 2], [((8,), dsl.i64)])[0]})
    g, parts = dsl.Graph(), []
    for r in range(2):
        x = g.leaf("input", "rank%d.x" % r, dsl.Data((4,), numbers[4 * r : 4 * r + 4]), dsl.i64)
        parts.append(g.op("mul.Scalar", g.op("clamp", [x, 0, 5], [row]) + [2], [row])[0])
    g.write(sides[1], {"y": g.op("cat", [parts, 0], [((8,), dsl.i64)])[0]})
    say({"rank0.x": [0, 5], "rank1.x": [0, 5]})
    expect("ranges of parts", isomer("compare", *sides, "-q", "--certificate", path), 0)
    expect("ranges of all parts", isomer("check", path, *sides, "-q"), 0)
    for ranges in (
        {"rank0.x": [0, 5]},
        {"rank1.x": [0, 5]},
        {"rank0.x": [0, 5], "rank1.x": [0, 6]},
        {"rank0.x": [-1, 5], "rank1.x": [0, 5]},
    ):
        say(ranges)
        rewrite(path, forged, lambda doc: doc["right"].update(files=digests(sides[1])))
        expect("ranges %s" % ranges, isomer("check", forged, *sides, "-q"), 1)


def borderline(where):
    """f(x + 1) and its recurrence: of gamma's kin some samples say nothing, and which are drawn
    decides. What is called equivalent is found to be so with the checker's samples, too."""
    sys.path.insert(0, os.path.join(ROOT, "tests", "pairs"))
    import dsl

    recurrences = {
        "lgamma": lambda call, x: call("log", call("abs", x)),
        "digamma": lambda call, x: call("reciprocal", x),
    }
    path = os.path.join(where, "borderline.json")
    sides = [os.path.join(where, "borderline", s) for s in ("left", "right")]
    for op, step in sorted(recurrences.items()):
        for n in (1, 5, 8):
            for side in (0, 1):
                g = dsl.Graph()
                x = g.leaf("input", "x", dsl.values("x", n), dsl.f32)
                call = lambda op, *args: g.op(op, list(args), [((n,), dsl.f32)])[0]
                if side:
                    y = call("add.Tensor", call(op, x), step(call, x))
                else:
                    y = call(op, call("add.Scalar", x, 1.0))
                g.write(sides[side], {"y": y})
            status, said = isomer("compare", *sides, "-q", "--certificate", path)
            report(status in (0, 3), "%s of %d: compare %d: %s" % (op, n, status, said))
            if status == 0:
                expect("%s of %d" % (op, n), isomer("check", path, *sides, "-q"), 0)


def one_of_a_list(where):
    """unbind of one row gives a list of one tensor, which getitem takes: so do the rules of the
    certificate."""
    sys.path.insert(0, os.path.join(ROOT, "tests", "pairs"))
    import dsl

    path = os.path.join(where, "list.json")
    sides = [os.path.join(where, "list", s) for s in ("left", "right")]
    for rows in (2, 4):
        data, loss = dsl.values("x", rows, 4), ((), dsl.f32)
        for side in (0, 1):
            g, sums = dsl.Graph(), []
            for r in range(rows if side else 1):
                n, row = 1 if side else rows, ((4,), dsl.f32)
                name = "rank%d.x" % r if side else "x"
                own = dsl.Data((n, 4), data.values[4 * r : 4 * (r + n)])
                each = g.op("unbind.int", [g.leaf("input", name, own, dsl.f32), 0], [row] * n)
                if n == 1:
                    taken = g.node("getitem", [row], args=[g.json(each[0]), 0], kwargs={})
                    each = [dsl.Tensor(g, taken, *row)]
                y = g.op("stack", [each, 0], [((n, 4), dsl.f32)])
                y = g.op("clone", y, [((n, 4), dsl.f32)])
                y = g.op("view", [y[0], [-1, 2]], [((2 * n, 2), dsl.f32)])
                y = g.op("mul.Tensor", [y[0], y[0]], [((2 * n, 2), dsl.f32)])
                sums += g.op("sum", y, [loss])
            if side:
                sums = g.op("dist::all_reduce", [sums, "sum"], [loss])
            g.write(sides[side], {"y": sums[0]})
        expect("a list of one", isomer("compare", *sides, "-q", "--certificate", path), 0)
        expect("check a list of one", isomer("check", path, *sides, "-q"), 0)


def bad_usage(where):
    family = os.path.join(MODELS, "llama-2l")
    left, right, path, out = (
        os.path.join(family, "hf-sdpa"),
        os.path.join(family, "vllm"),
        os.path.join(where, "llama.json"),
        os.path.join(where, "x"),
    )
    expect("no captures", isomer("check", path), 2, "needed")
    expect("unknown option", isomer("check", path, left, right, "--fast"), 2, "unknown option")
    expect("no such file", isomer("check", out, left, right), 2, "No such file")
    open(out, "w").write("{}")
    expect("an empty object", isomer("check", out, left, right), 2)
    open(out, "w").write("[" * 100000)
    expect("deep nesting", isomer("check", out, left, right), 2)
    missing = os.path.join(where, "not-written.json")
    expect(
        "of a faulty pair",
        isomer(
            "compare", left, os.path.join(family, "vllm-bug-eps"), "-q", "--certificate", missing
        ),
        1,
    )
    report(not os.path.exists(missing), "a certificate was written for a faulty pair")
    expect(
        "to a folder that is not there",
        isomer("compare", left, right, "-q", "--certificate", os.path.join(where, "no", "c.json")),
        2,
    )
    again = os.path.join(where, "again.json")
    isomer("compare", left, right, "-q", "--certificate", again)
    report(open(again).read() == open(path).read(), "the same comparison gives other bytes")


def main():
    global O
    a = argparse.ArgumentParser(description="certificates")
    a.add_argument("--isomer", default=os.path.join(ROOT, "build", "isomer"))
    a.add_argument("--checker", default=os.path.join(ROOT, "build", "tests", "check", "checker"))
    a.add_argument("--mutations", type=int, default=100)
    a.add_argument("--seed", type=int, default=1)
    a.add_argument("--captures", help="a folder of families: each correct pair of it too")
    a.add_argument(
        "--keep",
        help="a folder for changed certificates that were accepted and should not have been",
    )
    O = a.parse_args()
    folder = O.captures or MODELS
    pairs = list(PAIRS.families(O.captures)) if O.captures else [p[:3] for p in PAIRS.PAIRS]
    pairs = [p[:2] for p in pairs if p[2] == "equivalent"]
    chosen = pairs if O.captures or O.mutations > 100 else pairs[::3] + pairs[-2:]
    total, rng = [0, 0], random.Random(O.seed)
    with tempfile.TemporaryDirectory(prefix="isomer-cert-") as where:
        path = os.path.join(where, "certificate.json")
        for i, (left, right) in enumerate(chosen):
            written, compare, check = check_pair(folder, left, right, path)
            total = [total[0] + compare, total[1] + check]
            if written and not O.captures:
                campaign(
                    left + " " + right.split("/")[1],
                    os.path.join(folder, left),
                    os.path.join(folder, right),
                    open(path, "rb").read(),
                    -(-O.mutations // len(chosen)),
                    rng,
                    where,
                )
        print("%d pairs: comparisons %.1f s, checks %.1f s" % (len(chosen), total[0], total[1]))
        if not O.captures:
            changed_captures(where)
            dishonest_rules(where)
            open_rules(where)
            further_pairs(where)
            checkpoints(where)
            archives(where)
            counted(where)
            excused_roundings(where)
            ranges_of_parts(where)
            borderline(where)
            one_of_a_list(where)
            bad_usage(where)
    print("%d passed, %d failed" % tuple(TALLY))
    return 1 if TALLY[1] or not TALLY[0] else 0


if __name__ == "__main__":
    sys.exit(main())
