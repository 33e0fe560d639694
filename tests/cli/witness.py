#!/usr/bin/env python3
"""End-to-end tests of what `compare` writes beside its verdict: --repro, --counterexample, --also
and the coverage section.

    tests/cli/witness.py [--isomer build/isomer] [--python PYTHON] [--only NAME]

Scripts are run by PYTHON where it has PyTorch, else only compiled. The last line is `N passed, N
failed`."""

import argparse
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
MODELS = os.path.join(ROOT, "models")
sys.path[:0] = [os.path.join(ROOT, "tests", "pairs"), os.path.join(ROOT, "tests", "support")]
import commands  # noqa: E402
import dsl  # noqa: E402

CASES = []


class Wrong(Exception):
    pass


def expect(ok, message, *args):
    if not ok:
        raise Wrong(message % args if args else message)


def case(name):
    return lambda f: CASES.append((name, f))


def compare(*args, status):
    """Run with a JSON report; returns (report, text)."""
    with tempfile.TemporaryDirectory() as tmp:
        path = os.path.join(tmp, "report.json")
        p = subprocess.run(
            [OPTIONS.isomer, "compare", *args, "--json", path],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        expect(
            p.returncode == status,
            "exit status %d, expected %d: %s",
            p.returncode,
            status,
            (p.stderr or p.stdout[-300:]).decode(),
        )
        return (json.load(open(path, encoding="utf-8")) if os.path.exists(path) else None), (
            p.stdout + p.stderr
        ).decode()


def model(name):
    return os.path.join(MODELS, name)


def runs(script):
    """The script's exit status, None where there is no PyTorch to run it with."""
    compile(open(script, encoding="utf-8").read(), script, "exec")
    if not OPTIONS.torch:
        return None
    p = commands.python([script], executable=OPTIONS.python, cwd="/")
    expect(p.returncode in (0, 1), "%s: %s", os.path.basename(script), p.stderr[-300:])
    expect("difference" in p.stdout or "run" in p.stdout, "the script says %s", p.stdout[:200])
    return p.returncode


def header(path):
    data = open(path, "rb").read()
    n = struct.unpack("<Q", data[:8])[0]
    return {k: v for k, v in json.loads(data[8 : 8 + n]).items() if k != "__metadata__"}, data[
        8 + n :
    ]


def integers(path, name):
    head, data = header(path)
    a, b = head[name]["data_offsets"]
    return list(struct.unpack("<%dq" % ((b - a) // 8), data[a:b]))


def sides(tmp, name, left, right):
    """Two captures from functions of a graph; their folders."""
    for side, build in (("left", left), ("right", right)):
        g = dsl.Graph()
        out = build(g)
        g.write(os.path.join(tmp, name, side), out if isinstance(out, dict) else {"y": out})
    return os.path.join(tmp, name, "left"), os.path.join(tmp, name, "right")


def mended(name, left, right, was, now):
    """The script shows the bug; with `was` replaced by `now` on the right it does not."""
    with tempfile.TemporaryDirectory() as tmp:
        script = os.path.join(tmp, "bug.py")
        report, _ = compare(model(left), model(right), "--repro", script, status=1)
        expect(
            report["repro"] == script and os.listdir(tmp) == ["bug.py"], "wrote %s", os.listdir(tmp)
        )
        expect(runs(script) in (1, None), "%s: the script does not show the difference", name)
        text = open(script, encoding="utf-8").read()
        at = text.index("def right():")
        expect(was in text[at:], "%s is not in the right region", was)
        with open(script, "w", encoding="utf-8") as f:
            f.write(text[:at] + text[at:].replace(was, now))
        expect(runs(script) in (0, None), "%s: the mended script shows a difference", name)


@case("repro: an attribute")
def _():
    mended("eps", "llama-2l/hf-sdpa", "llama-2l/vllm-bug-eps", "1e-06", "1e-05")


@case("repro: a kernel outside PyTorch")
def _():
    mended(
        "scale",
        "llama-2l/hf-sdpa",
        "llama-2l/vllm-bug-scale",
        "scale=0.08333333333333333",
        "scale=0.28867513459481287",
    )


@case("repro: swapped and shifted values show alone")
def _():
    for left, right in (
        ("llama-2l/vllm", "llama-2l/vllm-bug-kvswap"),
        ("gpt2-2l/hf-sdpa", "gpt2-2l/vllm-bug-posoff"),
        ("llama-2l/vllm-bug-normafter", "llama-2l/vllm"),
    ):
        with tempfile.TemporaryDirectory() as tmp:
            script = os.path.join(tmp, "bug.py")
            compare(model(left), model(right), "--repro", script, status=1)
            expect(runs(script) in (1, None), "%s: the script does not show the difference", right)


@case("repro: large values are drawn")
def _():
    with tempfile.TemporaryDirectory() as tmp:
        left, right = sides(
            tmp,
            "wide",
            lambda g: g.x(4, 600).linear(g.param("w", 2000, 600)).gelu(),
            lambda g: g.x(4, 600).linear(g.param("w", 2000, 600)).relu(),
        )
        script = os.path.join(tmp, "bug.py")
        compare(left, right, "--repro", script, status=1)
        expect(
            os.path.getsize(script) < 1 << 24, "the script has %d bytes", os.path.getsize(script)
        )
        expect(runs(script) in (1, None), "the script does not show the difference")


@case("counterexample: small, and it shows the difference")
def _():
    with tempfile.TemporaryDirectory() as tmp:
        for left, right, most in (
            ("llama-2l/hf-sdpa", "llama-2l/vllm-bug-eps", 1),
            ("llama-2l/hf-sdpa", "llama-2l/vllm-bug-scale", 2),
            ("gpt2-2l/hf-sdpa", "gpt2-2l/vllm-bug-posoff", 2),
        ):
            file = os.path.join(tmp, "inputs.safetensors")
            report, text = compare(model(left), model(right), "--counterexample", file, status=1)
            expect(
                report["counterexample"]["inputs"] == file and "counterexample: " + file in text,
                "the report does not name the file",
            )
            head, _ = header(file)
            expect(
                set(head) == {"left.input_ids", "right.input_ids", "right.positions"},
                "the file has %s",
                sorted(head),
            )
            expect(
                head["left.input_ids"]["shape"] == [1, 7]
                and head["left.input_ids"]["dtype"] == "I64",
                "left.input_ids is %s",
                head["left.input_ids"],
            )
            ids = integers(file, "left.input_ids")
            expect(
                ids == integers(file, "right.input_ids")
                and sum(x != 0 for x in ids) <= most
                and max(ids) <= 2,
                "%s: inputs are %s",
                right,
                ids,
            )
            for side, name in (("left", left), ("right", right)):
                shutil.copytree(model(name), os.path.join(tmp, side))
                head, data = header(file)
                own = {k[len(side) + 1 :]: v for k, v in head.items() if k.startswith(side)}
                blob = b""
                for v in own.values():
                    a, b = v["data_offsets"]
                    v["data_offsets"] = [len(blob), len(blob) + b - a]
                    blob += data[a:b]
                top = json.dumps(own).encode()
                with open(os.path.join(tmp, side, "inputs.safetensors"), "wb") as f:
                    f.write(struct.pack("<Q", len(top)) + top + blob)
            again, _ = compare(os.path.join(tmp, "left"), os.path.join(tmp, "right"), status=1)
            expect(
                not again["counterexample"]["redrawn"],
                "%s: the inputs written show no difference",
                right,
            )
            one, two = again["counterexample"]["max_abs"], report["counterexample"]["max_abs"]
            expect(
                abs(one - two) <= 1e-6 * two, "a difference of %g is reported, it is %g", two, one
            )
            shutil.rmtree(os.path.join(tmp, "left"))
            shutil.rmtree(os.path.join(tmp, "right"))


@case("nothing is written where nothing differs")
def _():
    with tempfile.TemporaryDirectory() as tmp:
        report, _ = compare(
            model("gpt2-2l/hf-sdpa"),
            model("gpt2-2l/vllm"),
            "--repro",
            os.path.join(tmp, "a.py"),
            "--counterexample",
            os.path.join(tmp, "b"),
            status=0,
        )
        expect(
            os.listdir(tmp) == [] and report["counterexample"] is None and "repro" not in report,
            "wrote %s",
            os.listdir(tmp),
        )


@case("files that cannot be written are errors")
def _():
    for option in "--repro", "--counterexample":
        compare(
            model("llama-2l/vllm"),
            model("llama-2l/vllm-bug-eps"),
            option,
            "/no/such/folder/file",
            status=2,
        )


def windows(tmp, diagonal):
    """Captures of two lengths: the right side sees `diagonal` tokens ahead where it should see all
    (4 are captured first)."""
    short = sides(tmp, "short", lambda g: g.x(4, 4), lambda g: g.x(4, 4).tril(diagonal))
    return short, sides(tmp, "long", lambda g: g.x(9, 9), lambda g: g.x(9, 9).tril(diagonal))


@case("also: a difference that only a longer input has")
def _():
    with tempfile.TemporaryDirectory() as tmp:
        short, long = windows(tmp, 5)
        compare(*short, status=0)
        report, text = compare(*short, "--also", *long, status=1)
        expect(
            report["verdict"] == "different"
            and [p["verdict"] for p in report["pairs"]] == ["equivalent", "different"],
            "verdicts",
        )
        expect(
            report["left"]["path"] == long[0] and [d["pair"] for d in report["divergences"]] == [1],
            "the report does not say for which pair",
        )
        expect(
            "pair 2 of 2: different" in text and text.splitlines()[-1].endswith("pair 2 of 2]"),
            "last line %s",
            text.splitlines()[-1],
        )
        # The order of pairs does not matter, nor does a third that agrees.
        report, _ = compare(*long, "--also", *short, "--also", *short, status=1)
        expect(
            [p["verdict"] for p in report["pairs"]] == ["different", "equivalent", "equivalent"],
            "verdicts",
        )


@case("also: the shortest input that shows it")
def _():
    with tempfile.TemporaryDirectory() as tmp:
        short, long = windows(tmp, 2)
        report, text = compare(*long, "--also", *short, status=1)
        expect(
            report["left"]["path"] == short[0]
            and [d["pair"] for d in report["divergences"]] == [1],
            "the shorter pair is not the one that is shown",
        )
        expect(
            text.splitlines()[-1].endswith("pair 2 of 2]"), "last line %s", text.splitlines()[-1]
        )


@case("repro: an operator that cannot be run on one side")
def _():
    with tempfile.TemporaryDirectory() as tmp:
        rows = lambda n: (
            lambda g: (
                g.param("t", dsl.Data((n, 4), dsl.values("t", 9, 4).values[: 4 * n]))
                .index_select(0, g.arange(8))
                .mul(2.0)
            )
        )
        for k, pair in enumerate(
            (sides(tmp, "right", rows(9), rows(6)), sides(tmp, "left", rows(6), rows(9)))
        ):
            script = os.path.join(tmp, "bug.py")
            report, _ = compare(*pair, "--repro", script, status=1)
            expect(report["repro"] == script, "no script")
            text = open(script, encoding="utf-8").read()
            expect(
                ("right" if k == 0 else "left") + "()" in text, "the script is of the other side"
            )
            expect(runs(script) in (1, None), "the script does not fail")
            table, side = (
                re.search(r"index_select\.default\((\w+), 0", text).group(1),
                "def %s():" % ("right" if k == 0 else "left"),
            )
            with open(script, "w", encoding="utf-8") as f:
                f.write(
                    text.replace(side, "%s = torch.cat([%s] * 2)\n\n\n%s" % (table, table, side))
                )
            expect(runs(script) in (0, None), "the mended script fails")


@case("repro: of the first divergence that shows on the inputs")
def _():
    with tempfile.TemporaryDirectory() as tmp:

        def build(threshold):
            def f(g):
                x = g.x(4, 8)
                return {
                    "y": (x > threshold).where(x, 0.0),
                    "z": x.linear(g.param("w", 6, 8)).mul(1.0 if threshold > 90 else 2.0),
                }

            return f

        pair = sides(tmp, "rare", build(1000.0), build(50.0))
        script = os.path.join(tmp, "bug.py")
        report, _ = compare(*pair, "--repro", script, status=1)
        expect(runs(script) in (1, None), "the script does not show the difference")


@case("also: all agree, and rules are reused")
def _():
    with tempfile.TemporaryDirectory() as tmp:
        short, long = windows(tmp, 9)
        report, text = compare(*short, "--also", *long, status=0)
        expect(
            len(report["pairs"]) == 2
            and report["verdict"] == "equivalent"
            and "pair 1 of 2: equivalent" in text,
            "verdicts",
        )
    pair = model("gpt2-2l/hf-sdpa"), model("gpt2-2l/vllm")
    report, _ = compare(*pair, "--also", *pair, status=0)
    first, second = report["pairs"]
    expect(
        first["stats"]["rules_synthesised"] > 0 and second["stats"]["rules_synthesised"] == 0,
        "the second pair synthesised %d rules",
        second["stats"]["rules_synthesised"],
    )
    expect(
        all(r["origin"] == "loaded" for r in second["rules"]),
        "a rule of the second pair is not the first one's",
    )


@case("also: usage")
def _():
    pair = model("gpt2-2l/hf-sdpa"), model("gpt2-2l/vllm")
    for more in (("--also",), ("--also", pair[0])):
        p = subprocess.run(
            [OPTIONS.isomer, "compare", *pair, *more],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        expect(
            p.returncode == 2 and not p.stdout and b"--also" in p.stderr,
            "exit status %d: %s",
            p.returncode,
            p.stderr,
        )
    p = subprocess.run(
        [OPTIONS.isomer, "compare", *pair, "--also", pair[0], "/no/such"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    expect(
        p.returncode == 2 and not p.stdout and p.stderr.count(b"\n") == 1,
        "exit status %d: %s",
        p.returncode,
        p.stderr,
    )


@case("coverage: branches that no draw takes, and nodes that nothing reaches")
def _():
    with tempfile.TemporaryDirectory() as tmp:

        def left(g):
            x = g.x(3, 5)
            x.neg()  # dead
            return {"y": x.clamp(-1e9, 1e9), "z": x.relu()}

        def right(g):
            x = g.x(3, 5)
            return {"y": x.clamp(-1e9, 1e9), "z": x.clamp_min(0.0)}

        pair = sides(tmp, "pair", left, right)
        report, text = compare(*pair, status=0)
        c = report["coverage"]
        missing = {
            (b["op"].split(".")[0], b["missing"]) for b in c["branches"] if b["side"] == "left"
        }
        expect(
            missing
            == {
                ("aten::clamp", "no value below the lower bound -1e+09"),
                ("aten::clamp", "no value above the upper bound 1e+09"),
            },
            "branches: %s",
            sorted(missing),
        )
        expect(
            len(c["left"]["unreached"]) == 1 and c["right"]["unreached"] == [],
            "unreached: %s",
            c["left"]["unreached"],
        )
        expect(
            c["draws"]["captured"] == 1
            and c["draws"]["redrawn"] >= 2
            and c["left"]["input_shapes"] == {"x": [3, 5]},
            "draws: %s",
            c["draws"],
        )
        expect(
            c["largest_merged_difference"] is not None
            and "coverage:" in text
            and "no value below the lower bound -1e+09" in text,
            "text",
        )


@case("coverage: two captures that are one graph, of other leaves or of other wiring")
def _():
    with tempfile.TemporaryDirectory() as tmp:

        def product(swap=False, twice=False, alpha=2):
            def build(g):
                x, y = g.x(3, 5), g.x(3, 5, name="y")
                a, b = (x * y).relu(), (x * (x if twice else y)).relu()
                pair = [b, a] if swap else [a, b]
                return g.op("sub.Tensor", pair, [((3, 5), dsl.f32)], {"alpha": alpha})[0]

            return build

        for name, other, status, same in (
            ("itself", product(), 0, True),
            ("order", product(swap=True), 0, True),
            ("twice", product(twice=True), 1, False),
            ("attribute", product(alpha=3), 1, False),
        ):
            report, text = compare(*sides(tmp, name, product(), other), status=status)
            expect(report["coverage"]["same_graph"] is same, "%s", name)
            expect(("same graph:" in text) is same, "%s: %s", name, text)


@case("a divergence in a function says which line called it")
def _():
    with tempfile.TemporaryDirectory() as tmp:
        buggy = os.path.join(tmp, "buggy")
        shutil.copytree(model("llama-2l/vllm-bug-eps"), buggy)
        path = os.path.join(buggy, "graph.json")
        with open(path, encoding="utf-8") as f:
            graph = json.load(f)
        for node in graph["nodes"]:
            if node.get("source"):
                node["caller"] = "model.py:7"
        with open(path, "w", encoding="utf-8") as f:
            json.dump(graph, f)
        report, text = compare(model("llama-2l/hf-sdpa"), buggy, status=1)
        place = report["divergences"][0]
        expect(place["right"]["caller"] == "model.py:7", "right: %s", place["right"])
        expect("caller" not in place["left"], "left: %s", place["left"])
        expect("layernorm.py:140, called at model.py:7\n" in text, "text: %s", text[:600])


@case("the verdict comes first, and without -v the text fits a screen")
def _():
    for pair, status in (
        (("gpt2-2l/hf-sdpa", "gpt2-2l/vllm"), 0),
        (("llama-2l/hf-sdpa", "llama-2l/vllm-bug-eps"), 1),
    ):
        sides = [model(p) for p in pair]
        report, text = compare(*sides, status=status)
        lines = text.splitlines()
        expect(lines[0] == lines[-1], "first line %s, last %s", lines[0], lines[-1])
        expect(len(lines) <= 48, "%d lines", len(lines))
        count = "rules: %d proved" % len(report["rules"])
        expect(any(line.startswith(count) for line in lines), "no '%s'", count)
        _, all_of_it = compare(*sides, "-v", status=status)
        for rule in report["rules"]:
            expect("  %s: proved" % rule["name"] in all_of_it, "-v leaves %s out", rule["name"])
        for a in report["assumptions"]:
            expect(a["text"] in all_of_it, "-v leaves out: %s", a["text"])
        expect("another divergence" in all_of_it or status == 0, "-v leaves divergences out")


@case("a rule that holds the evidence back is shown without -v")
def _():
    with tempfile.TemporaryDirectory() as tmp:
        log2_e = 1.4426950408889634  # a float, not the number: no proof rests on it

        def right(g):
            x = g.x(3, 5) * log2_e
            return {"y": x.op("exp2", [x])}

        pair = sides(tmp, "pair", lambda g: {"y": g.x(3, 5).exp()}, right)
        report, text = compare(*pair, status=0)
        weak = [r["name"] for r in report["rules"] if r["status"] != "proved"]
        expect(weak, "all are proved: another pair is needed here")
        expect(all("  %s: " % name in text for name in weak), "not shown: %s", weak)


@case("a divergence says where, in which shape")
def _():
    report, text = compare(model("llama-2l/hf-sdpa"), model("llama-2l/vllm-bug-eps"), status=1)
    d = report["divergences"][0]
    expect(
        d["left"]["shape"] == [1, 7, 1]
        and len(d["index"]) == 3
        and all(0 <= i < n for i, n in zip(d["index"], d["left"]["shape"])),
        "index %s",
        d["index"],
    )
    expect(
        "1e-05" in d["left"]["call"] and "1e-06" in d["right"]["call"],
        "calls: %s, %s",
        d["left"]["call"],
        d["right"]["call"],
    )
    expect(", at [" in text, "the text has no index")


@case("what is chosen alike beside outputs that differ is not looked into far")
def _():
    def routed(exchanged=False, twice=False):
        """Two blocks with a gate, then a router. The first block, whose gate and other factor may
        be exchanged, adds too little for the router to choose otherwise."""

        def build(g):
            x, t = g.x(6, 8), g.x(6, 8)
            for k in range(2):
                gate, up = (g.param("%s%d" % (n, k), 16, 8) for n in ("gate", "up"))
                if exchanged and k == 0:
                    gate, up = up, gate
                h = x.linear(gate).silu() * x.linear(up)
                x = x + h.linear(g.param("down%d" % k, 8, 16)) * (1 if k else 1e-5)
            scores = x.linear(g.param("router", 5, 8)).sigmoid()
            chosen = (scores * 2 if twice else scores).topk(2)[1]
            return x * chosen.sum(-1, True).to(dsl.f32) + t

        return build

    with tempfile.TemporaryDirectory() as tmp:
        faulty = sides(tmp, "faulty", routed(), routed(exchanged=True))
        _, text = compare(*faulty, "--trace", status=1)
        tried = len(re.findall(r"(?m)^candidate ", text))
        expect(tried <= 4, "%d candidates are looked into to the end", tried)
        compare(*sides(tmp, "chosen", routed(), routed(twice=True)), status=0)


def main():
    global OPTIONS
    a = argparse.ArgumentParser(description="what compare writes beside its verdict")
    a.add_argument("--isomer", default=os.path.join(ROOT, "build", "isomer"))
    a.add_argument(
        "--python",
        default=next(
            (p for p in (os.path.join(ROOT, ".venv", "bin", "python3"),) if os.path.exists(p)),
            sys.executable,
        ),
    )
    a.add_argument("--only", default="")
    OPTIONS = a.parse_args()
    OPTIONS.isomer = os.path.abspath(OPTIONS.isomer)
    OPTIONS.torch = commands.has_torch(OPTIONS.python)
    passed = failed = 0
    for name, f in CASES:
        if OPTIONS.only not in name:
            continue
        try:
            f()
            passed += 1
        except Wrong as e:
            failed += 1
            print("FAILED %s: %s" % (name, e))
        except Exception as e:  # a case that breaks is a failure like any other
            failed += 1
            print("FAILED %s: %s: %s" % (name, type(e).__name__, e))
    print("%d passed, %d failed" % (passed, failed))
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
