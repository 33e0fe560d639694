#!/usr/bin/env python3
"""End-to-end tests of the program, as a user runs it. Plain Python 3.

    tests/cli/e2e.py [--isomer build/isomer] [--quick] [--no-torch] [--only NAME] [--list]
        [--jobs N]

A case is a function that raises on failure. One line per failure; the last line is `N passed, N
failed`. Verdicts that are expected of the captures in models/ are in tests/pairs/captures.py.
Variants of captures (renamed, shuffled, malformed) are made here and in harness.py and
malformed.py. --only runs the cases whose name holds NAME."""

import argparse
import io
import json
import os
import re
import stat
import subprocess
import sys
import tempfile
import zipfile
from concurrent.futures import ThreadPoolExecutor

from harness import (
    CASES,
    MODELS,
    OPTIONS,
    ROOT,
    STATUS,
    Wrong,
    call_node,
    capture_document,
    case,
    compare,
    copy,
    disguise,
    expect,
    fails,
    isomer,
    model,
    read_graph,
    read_report,
    scale_element,
    short,
    write_graph,
    write_tensors,
)
from malformed import change_node, put, truncated

sys.path.insert(0, os.path.join(ROOT, "tests", "pairs"))
sys.path.insert(0, os.path.join(ROOT, "tests", "bench"))
import ranks  # noqa: E402
import stack  # noqa: E402
from captures import PAIRS, WORDS  # noqa: E402


def pair_case(left, right, verdict, place, swap):
    def run():
        a, b = (right, left) if swap else (left, right)
        _, report = compare(model(a), model(b), verdict=verdict)
        if place:
            side = report["divergences"][0]["left" if swap else "right"]
            expect(side is not None, "the first divergence has nothing on the side with the bug")
            text = (
                json.dumps(side)
                + " "
                + " ".join(report["divergences"][0]["left_region" if swap else "right_region"])
            )
            expect(
                place in text or place.replace(".", "_") in text,
                "first divergence at %s, expected %s",
                short(text),
                place,
            )
            hint = report["divergences"][0]["hint"] or ""
            expect(swap or re.search(WORDS.get(right, ""), hint), "hint: %s", hint)

    return run


QUICK_PAIRS = {
    ("gpt2-2l/hf-sdpa", "gpt2-2l/vllm"),
    ("gpt2-2l/hf-sdpa", "gpt2-2l/vllm-bug-posoff"),
    ("llama-2l/vllm", "llama-2l/vllm-bug-eps"),
}
for _l, _r, _v, _p in PAIRS:
    case("pair %s %s" % (_l, _r), "compare", (_l, _r) in QUICK_PAIRS)(
        pair_case(_l, _r, _v, _p, False)
    )
    case("pair %s %s" % (_r, _l), "compare")(pair_case(_l, _r, _v, _p, True))

SIDES = sorted(
    "%s/%s" % (m, s)
    for m in os.listdir(MODELS)
    if os.path.isdir(os.path.join(MODELS, m))
    for s in os.listdir(os.path.join(MODELS, m))
    if os.path.exists(model("%s/%s/graph.json" % (m, s)))
)


@case("every capture is in tests/pairs/captures.py", None, True)
def _():
    seen = {x for p in PAIRS for x in p[:2]}
    expect(seen == set(SIDES), "not in both: %s", sorted(seen ^ set(SIDES)))
    expect(all(p[2] in STATUS for p in PAIRS), "a verdict is misspelt")


@case("two runs give the same bytes", "compare", True)
def _():
    for left, right in (
        ("gpt2-2l/hf-sdpa", "gpt2-2l/vllm"),
        ("llama-2l/vllm", "llama-2l/vllm-bug-eps"),
    ):
        (a, ra), (b, rb) = (compare(model(left), model(right), "--seed", 5) for _ in range(2))
        expect(a.out == b.out, "stdout differs between two runs of %s %s", left, right)
        ra.pop("stats"), rb.pop("stats")
        expect(
            json.dumps(ra) == json.dumps(rb),
            "reports differ between two runs of %s %s",
            left,
            right,
        )


def seed_case(left, right, verdict):
    def run():
        for seed in 1, 2, 7:
            compare(model(left), model(right), "--seed", seed, verdict=verdict)

    return run


for _l, _r, _v in (
    ("gpt2-2l/hf-sdpa", "gpt2-2l/vllm", "equivalent"),
    ("llama-2l/hf-sdpa", "llama-2l/vllm", "equivalent"),
    ("llama-2l/hf-sdpa", "llama-2l/vllm-bug-eps", "different"),
    ("gpt2-2l/hf-sdpa", "gpt2-2l/vllm-bug-posoff", "different"),
):
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
for _s, _k in (
    ("gpt2-2l/hf-sdpa", 1),
    ("gpt2-2l/vllm", 2),
    ("llama-2l/hf-sdpa", 3),
    ("llama-2l/vllm-kernels", 4),
):
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
            expect(
                any(p in side for p in place.split("|")),
                "first divergence at %s, expected %s",
                short(side),
                place,
            )

    return run


for _m, _n, _o in (
    ("gpt2-2l", 4, "gpt2-2l/hf-sdpa"),
    ("gpt2-2l", 2, "gpt2-2l/vllm"),
    ("llama-2l", 4, "llama-2l/hf-sdpa"),
    ("llama-2l", 2, "llama-2l/vllm-kernels"),
):
    case("%d ranks of %s" % (_n, _m), "compare")(ranks_case(_m, _n, _o))
for _f, _cases in ranks.FAULTS.items():
    _m, _n, _p = _cases[0]
    case("%d ranks of %s, %s" % (_n, _m, _f), "compare")(rank_fault_case(_f, _m, _n, _p))


@case("rules of several ranks", "run")
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
        faulty = ranks.shard(model("gpt2-2l/vllm"), os.path.join(tmp, "ranks"), 2, "reduce-xor")
        fails("compare", model("gpt2-2l/hf-sdpa"), faulty, mentions="xor")


@case("disguised ranks", "compare")
def _():
    with tempfile.TemporaryDirectory() as tmp:
        compare(
            model("gpt2-2l/hf-sdpa"),
            disguise("gpt2-2l/vllm-tp2", os.path.join(tmp, "other"), 7),
            verdict="equivalent",
        )


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


case("one weight changed gpt2", "compare")(
    element_case("gpt2-2l/vllm", "transformer.h.1.mlp.c_fc.weight")
)
case("one weight changed llama", "compare")(
    element_case("llama-2l/vllm", "model.layers.1.mlp.down_proj.weight")
)


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
    expect(
        last.startswith("isomer: " + report["verdict"].upper()),
        "the text is not on stderr: %s",
        short(last),
    )


@case("quiet, verbose, explain", "compare")
def _():
    for option in "-q", "-v", "--explain":
        for right, verdict in (
            ("gpt2-2l/vllm", "equivalent"),
            ("gpt2-2l/vllm-bug-posoff", "different"),
        ):
            r = isomer("compare", model("gpt2-2l/hf-sdpa"), model(right), option)
            expect(
                r.status == STATUS[verdict],
                "%s: exit status %d, expected %d: %s",
                option,
                r.status,
                STATUS[verdict],
                short(r.err),
            )
            expect(
                (r.lines() or [""])[-1].startswith("isomer: " + verdict.upper()),
                "%s: no last line",
                option,
            )


@case("a text names the first of many inputs", "compare", True)
def _():
    names = ["a%d" % k for k in range(12)]
    nodes = [
        {"id": n, "op": "input", "name": n, "outputs": [{"shape": [2], "dtype": "float32"}]}
        for n in names
    ]
    for k, (left, right) in enumerate(zip(["a0"] + ["s%d" % k for k in range(1, 11)], names[1:])):
        ends = [{"ref": left}, {"ref": right}]
        nodes.append(call_node("s%d" % (k + 1), "aten::add.Tensor", ends, [2]))
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "graph.json"), "w") as f:
            json.dump(capture_document(nodes, "s11"), f)
        write_tensors(
            os.path.join(folder, "inputs.safetensors"), {n: ("F32", [2], bytes(8)) for n in names}
        )
        write_tensors(os.path.join(folder, "weights.safetensors"), {})
        short, whole = isomer("compare", folder, folder), isomer("compare", folder, folder, "-v")
    for r, all in ((short, False), (whole, True)):
        line = [x for x in r.lines() if x.startswith("  draws: ")][0]
        expect("left's a7 [2]" in line and "right's a7 [2]" in line, "%s", line)
        expect(("a8" in line) == all and ("4 more (-v)" in line) != all, "%s", line)


@case("rules are saved and reused", "compare", True)
def _():
    with tempfile.TemporaryDirectory() as tmp:
        path = os.path.join(tmp, "found.rules")
        pair = model("gpt2-2l/hf-sdpa"), model("gpt2-2l/vllm")
        _, first = compare(*pair, "--save-rules", path, verdict="equivalent")
        expect(
            first["rules"] and all(r["origin"] == "synthesised" for r in first["rules"]),
            "no synthesised rules at first",
        )
        expect("(rule " in open(path, encoding="utf-8").read(), "no rules in the file")
        _, second = compare(*pair, "--rules", path, verdict="equivalent")
        expect(any(r["origin"] == "loaded" for r in second["rules"]), "no loaded rule was used")
        n, m = (r["stats"]["rules_synthesised"] for r in (first, second))
        expect(m == 0, "%d rules synthesised again, %d at first", m, n)
        wide = [r for r in first["rules"] if r["scope"] != "these shapes"]
        expect(len(wide) >= 0.9 * n, "%d of %d rules hold for more than these shapes", len(wide), n)
        expect(
            second["evidence"] == first["evidence"],
            "evidence %s, then %s",
            first["evidence"],
            second["evidence"],
        )
        # Across orders and seeds too: they are rules, not notes on one run.
        compare(pair[1], pair[0], "--rules", path, "--seed", 3, verdict="equivalent")


@case("rules of one family serve another", "compare")
def _():
    with tempfile.TemporaryDirectory() as tmp:
        pair, other = (
            [model(f + "/" + s) for s in ("hf-sdpa", "vllm")] for f in ("gpt2-2l", "llama-2l")
        )
        path, deep = os.path.join(tmp, "gpt2.rules"), [os.path.join(tmp, s) for s in ("l", "r")]
        compare(*pair, "--save-rules", path, verdict="equivalent")
        _, cold = compare(
            *other, "--save-rules", os.path.join(tmp, "llama.rules"), verdict="equivalent"
        )
        _, warm = compare(*other, "--rules", path, verdict="equivalent")
        n, m = (r["stats"]["rules_synthesised"] for r in (cold, warm))
        expect(m < n, "%d rules synthesised with another family's, %d without", m, n)
        used = [r for r in warm["rules"] if r["origin"] == "loaded"]
        expect(
            used and all(r["status"] == "proved" for r in used),
            "no rule of another family was used",
        )
        expect(
            warm["evidence"] == cold["evidence"],
            "evidence %s, then %s",
            cold["evidence"],
            warm["evidence"],
        )
        for side, to in zip(other, deep):
            stack.make(side, to, 6)
        _, r = compare(*deep, "--rules", os.path.join(tmp, "llama.rules"), verdict="equivalent")
        expect(
            r["stats"]["rules_synthesised"] == 0,
            "%d rules synthesised for more layers",
            r["stats"]["rules_synthesised"],
        )
        # And what is different stays so with them.
        for bug in "vllm-bug-eps", "vllm-bug-scale":
            compare(
                model("llama-2l/hf-sdpa"),
                model("llama-2l/" + bug),
                "--rules",
                os.path.join(tmp, "llama.rules"),
                verdict="different",
            )


@case("with the core library nothing is synthesised", "compare")
def _():
    core = os.path.join(ROOT, "rules", "core.rules")
    for family in "gpt2-2l", "llama-2l":
        for left, right in (
            ("hf-sdpa", "vllm"),
            ("hf-sdpa", "vllm-kernels"),
            ("hf-sdpa", "vllm-tp2"),
            ("vllm-kernels", "vllm-tp2"),
        ):
            _, r = compare(
                model(family + "/" + left),
                model(family + "/" + right),
                "--rules",
                core,
                verdict="equivalent",
            )
            n = r["stats"]["rules_synthesised"]
            expect(n == 0, "%s, %s, %s: %d rules synthesised", family, left, right, n)
            expect(r["evidence"] == "proved", "%s, %s, %s: %s", family, left, right, r["evidence"])
    # The other ways to write them (make core-rules CHECK=1 tries every pair, in both orders).
    for family, one, others in (
        ("gpt2-2l", "hf-sdpa-core", ("hf-eager", "hf-sdpa-mask", "vllm")),
        ("llama-2l", "hf-sdpa-core", ("hf-eager", "hf-sdpa-pos", "vllm-kernels")),
        ("llama-2l", "vllm-tp2", ("hf-eager", "hf-sdpa-core")),
        ("qwen2-2l", "vllm", ("hf-sdpa", "vllm-kernels")),
        ("gpt2-2l-v5", "vllm", ("hf-eager", "hf-sdpa")),
        ("llama-2l-v5", "vllm", ("hf-eager", "hf-sdpa")),
    ):
        for other in others:
            _, r = compare(
                model("variants/%s/%s" % (family, one)),
                model("variants/%s/%s" % (family, other)),
                "--rules",
                core,
                verdict="equivalent",
            )
            n = r["stats"]["rules_synthesised"]
            expect(n == 0, "%s, %s, %s: %d rules synthesised", family, one, other, n)
            expect(r["evidence"] == "proved", "%s, %s, %s: %s", family, one, other, r["evidence"])


@case("a false rule is not believed", "compare")
def _():
    with tempfile.TemporaryDirectory() as tmp:
        path = os.path.join(tmp, "false.rules")
        with open(path, "w") as f:
            f.write(
                "(rule eps (var x f _) (lhs (aten::add.Tensor x 1e-05)) (rhs (aten::add.Tensor x "
                "1e-06))\n"
                ' (evidence proved "all shapes"))\n'
            )
        for a, b in ("vllm", "vllm-bug-eps"), ("vllm-bug-eps", "vllm"):
            _, r = compare(
                model("llama-2l/" + a), model("llama-2l/" + b), "--rules", path, verdict="different"
            )
            expect(all(x["name"] != "eps" for x in r["rules"]), "the false rule was used")


@case("malformed rule files", "compare")
def _():
    pair = model("gpt2-2l/hf-sdpa"), model("gpt2-2l/vllm")
    with tempfile.TemporaryDirectory() as tmp:
        path = os.path.join(tmp, "bad.rules")
        for text in (
            b"(rule",
            b")",
            b"(rule r (var x f _) (lhs (aten::no_such x)) (rhs x))",
            b"\xff\xfe",
            b"(" * 100000,
            b"(rule r (var x f _) (lhs (aten::relu y)) (rhs x))",
        ):
            with open(path, "wb") as f:
                f.write(text)
            fails("compare", *pair, "--rules", path, mentions="bad.rules")
        fails("compare", *pair, "--rules", os.path.join(tmp, "none"), mentions="none")


# ---- what cannot be read or written ----


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


def archive(*names):
    """A zip file of empty members."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as z:
        for name in names:
            z.writestr(name, b"")
    return out.getvalue()


@case("what is no capture is named", "show", True)
def _():
    weights = open(os.path.join(MODELS, "gpt2-2l/vllm/weights.safetensors"), "rb").read(4096)
    for says, data in (
        ("graph.json", b'{"format": "isomer-capture"}'),
        ("safetensors", weights),
        ("ONNX", b"\x08\x07\x12\x07pytorch\x1a\x051.9.0"),
        ("isomer-capture hlo", b"HloModule jit_f"),
        ("old file of torch.save", b"\x80\x02\x8a\x0al\xfc\x9cF\xf9"),
        ("weights without a graph", archive("m/data.pkl", "m/version")),
        ("TorchScript", archive("m/data.pkl", "m/code/__torch__.py")),
        ("torch.export.save", archive("readme")),
        ("neither", b"hello"),
        ("neither", b""),
    ):
        with tempfile.TemporaryDirectory() as tmp:
            path = os.path.join(tmp, "file")
            with open(path, "wb") as f:
                f.write(data + b"\0" * 65536 if says == "safetensors" else data)
            r = isomer("show", path)
            expect(r.status == 2 and not r.out, "%s: exit status %d", says, r.status)
            err = r.err.decode()
            expect(says in err and err.count("\n") == 1, "%s: %s", says, err)


@case("an operator that nobody can run", "compare")
def _():
    with tempfile.TemporaryDirectory() as tmp:
        other = copy("llama-2l/vllm-bug-eps", os.path.join(tmp, "other"))
        change_node(lambda n: n["op"] == "aten::rsqrt", put("op", "no_such::rsqrt"))(other)
        fails(
            "compare",
            model("llama-2l/hf-sdpa"),
            other,
            "--json",
            os.path.join(tmp, "r.json"),
            mentions="no_such::rsqrt",
        )
        expect(not os.path.exists(os.path.join(tmp, "r.json")), "a report all the same")


@case("an old report stays when a run fails", "compare")
def _():
    with tempfile.TemporaryDirectory() as tmp:
        path = os.path.join(tmp, "r.json")
        with open(path, "w") as f:
            f.write("old")
        fails(
            "compare",
            model("gpt2-2l/hf-sdpa"),
            "/no/such/capture",
            "--json",
            path,
            mentions="/no/such/capture",
        )
        expect(open(path).read() == "old", "it was overwritten")


def full_device(tmp):
    """A device that is always full, such that a program that replaces it does no harm outside
    `tmp`; None if there is none."""
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
                expect(
                    err.count("\n") == 1 and path in err,
                    "%s %s: stderr %s",
                    option,
                    path,
                    short(err),
                )
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
    for args in (
        (),
        pair[:1],
        pair + pair[:1],
        pair + ("--no-such-option",),
        pair + ("--seed",),
        pair + ("--seed", "x"),
        pair + ("--seed", "-1"),
        pair + ("--seed", "99999999999999999999"),
        pair + ("--json",),
        pair + ("-Z",),
    ):
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
        expect(
            str(n) in r.out.decode(), "does not say that there are %d nodes: %s", n, short(r.out)
        )
        dot = isomer("show", model(name), "--dot")
        expect(
            dot.status == 0 and dot.out.startswith(b"digraph") and dot.out.rstrip().endswith(b"}"),
            "--dot: %s",
            short(dot.out),
        )

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
    for at in (
        lambda n, h: 0,
        lambda n, h: 7,
        lambda n, h: h // 2,
        lambda n, h: h,
        lambda n, h: n - 1,
    ):
        with tempfile.TemporaryDirectory() as tmp:
            bad = copy("gpt2-2l/vllm", os.path.join(tmp, "bad"), trace=True)
            truncated("trace.safetensors", at)(bad)
            fails("run", bad, mentions="trace.safetensors")


@case("a reader that stops reading", "show", True)
def _():
    p = subprocess.Popen(
        [OPTIONS.isomer, "show", model("gpt2-2l/hf-sdpa"), "--dot"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
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
    for run in re.split(r"\(run ", text[text.index("(expected") :])[1:]:
        rows = re.findall(
            r"\(iter \d+ \(nodes (\d+)\) \(classes (\d+)\)(?: \(matches (\d+)\))?", run
        )
        out.append(
            (
                re.search(r"scheduler (\w+)", run).group(1),
                re.search(r"stop ([\w-]+)", run).group(1),
                [(int(n), int(c), int(m or 0)) for n, c, m in rows],
            )
        )
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
                expect(
                    got["scheduler"] == scheduler and got["stop"] == stop,
                    "%s: stopped by %s",
                    scheduler,
                    got["stop"],
                )
                matches = full or scheduler == "backoff"
                mine = [
                    (i["nodes"], i["classes"], i["matches"] if matches else 0)
                    for i in got["iterations"]
                ]
                expect(
                    mine == [(n, c, m if matches else 0) for n, c, m in rows],
                    "%s%s: %s",
                    scheduler,
                    full,
                    mine,
                )

    return run


for _name in sorted(os.listdir(WORKLOADS)):
    if _name != "cc.sexp":
        CASES.append(("saturate " + _name, "saturate", True, saturate_case(_name)))


@case("congruence closure", "saturate", True)
def _():
    path = os.path.join(WORKLOADS, "cc.sexp")
    want = re.findall(r"\(nodes (\d+)\) \(classes (\d+)\).*?\(checksum (\w+)\)", open(path).read())[
        :16
    ]
    for batches in 1, 7:
        r = isomer(
            "saturate",
            path,
            "--json",
            "-",
            "--batches",
            batches,
            "--only",
            ",".join(map(str, range(16))),
        )
        got = [
            (str(c["nodes"]), str(c["classes"]), c["checksum"]) for c in json.loads(r.out)["cases"]
        ]
        expect(r.status == 0 and got == want, "%s", got)


@case("saturate: terms, reasons, other formats", "saturate", True)
def _():
    with tempfile.TemporaryDirectory() as t:
        j, dot = os.path.join(t, "g.json"), os.path.join(t, "g.dot")
        r = isomer(
            "saturate",
            os.path.join(WORKLOADS, "simple.sexp"),
            "--only",
            "0",
            "--explain",
            "--serialize",
            j,
            "--dot",
            dot,
        )
        text = r.out.decode()
        expect(
            r.status == 0 and "  foo\n" in text and "(* 1 foo) = (* foo 1)  by commute-mul" in text,
            "%s",
            short(text, 2000),
        )
        g = json.load(open(j))
        classes = {n["eclass"] for n in g["nodes"].values()}
        expect(
            len(g["nodes"]) == 10 and len(classes) == 4 and set(g["root_eclasses"]) <= classes,
            "%s",
            short(str(g)),
        )
        expect(
            all(k in g["nodes"] for n in g["nodes"].values() for k in n["children"]),
            "a child that is not there",
        )
        expect(open(dot).read().count("subgraph") == 4, "classes in DOT")


BAD_WORKLOADS = {
    "an open list": "(workload (rules (rule r ?a",
    "an unbound variable": (
        "(workload (rules (rule r (f ?a) ?b)) (start (term x)) (measure (run (scheduler simple))))"
    ),
    "an unknown guard": (
        "(workload (language math) (rules (rule r (f ?a) ?a (when (blue ?a)))) "
        "(start) (measure (run)))"
    ),
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
            expect(
                r.status == 2 and not r.out, "%s: exit status %d, %s", what, r.status, short(r.out)
            )
            lines = [x for x in r.err.decode().splitlines() if x.startswith("isomer: ")]
            expect(len(lines) == 1, "%s: %s", what, short(r.err))
    for args in (
        [],
        ["nosuch.sexp"],
        ["--only", "x", "f"],
        ["--batches", "0", "f"],
        ["--fast", "f"],
        ["a", "b"],
    ):
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
    a = argparse.ArgumentParser(description="end-to-end tests")
    a.add_argument("--isomer", default=os.path.join(ROOT, "build", "isomer"))
    a.add_argument("--only", default="", help="cases whose name holds this")
    a.add_argument("--quick", action="store_true", help="a part that takes seconds")
    a.add_argument("--no-torch", action="store_true", help="only what needs no libtorch")
    a.add_argument("--list", action="store_true")
    a.add_argument("--jobs", type=int, default=min(4, os.cpu_count() or 1))
    a.parse_args(namespace=OPTIONS)
    OPTIONS.isomer = os.path.abspath(OPTIONS.isomer)
    cases = [
        c
        for c in CASES
        if OPTIONS.only in c[0]
        and (c[2] or not OPTIONS.quick)
        and not (OPTIONS.no_torch and c[1] in ("compare", "run"))
    ]
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
