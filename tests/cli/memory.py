#!/usr/bin/env python3
"""Commands that run out of memory, at each place of the program that allocates
(tests/cli/out_of_memory.c says how, and what a run may end with): comparisons that need masks,
domains, constants and redrawn inputs, with and without a difference, rules of many kinds, a
certificate that is written and checked.

    tests/cli/memory.py [--driver build/tests/cli/out_of_memory] [--every K] [--seed N]
        [--only NAME] [--keep DIR]

Every K-th place is tried, beginning at another one in each case. The last line is `N passed, N
failed`."""

import argparse
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "pairs"))
import constants  # noqa: E402
import masks  # noqa: E402
import parallel  # noqa: E402
import rank_blocks  # noqa: E402
import refined  # noqa: E402
import rounding  # noqa: E402

sys.path.insert(0, os.path.join(ROOT, "tests", "lint"))
import megatron_programs  # noqa: E402, F401  adds programs
import placed_programs  # noqa: E402

MODELS = os.path.join(ROOT, "models", "gpt2-2l")
COUNT = re.compile(r"^(\d+) passed, (\d+) failed$", re.M)
INPUTS = ["float_ranges", "mask_forms", "lengths", "distinct_slots", "more_sets_on_one_side"]
DOMAINS = "input %s range -3 3 exclude 0 2\n"


def script(name, *args):
    path = os.path.join(ROOT, "tests", "pairs", name)
    subprocess.run([sys.executable, path, *args], cwd=ROOT, check=False, stdout=subprocess.DEVNULL)


def compare(folder, *more):
    return [
        "compare",
        os.path.join(folder, "left"),
        os.path.join(folder, "right"),
        "--jobs",
        "1",
        *more,
    ]


def drawn_masks(folder, seed):
    """One of each family of masks.py whose comparison takes few steps."""
    seen = {"weak", "wholly"}
    for n in range(40):
        family, pair = masks.draw(seed, n)
        if family not in seen and not seen.add(family):
            at = os.path.join(folder, family)
            pair.write(at)
            yield "masks " + family, compare(at)


def drawn_constants(folder, seed):
    seen = set()
    for k, case in constants.cases(seed, 40):
        kind = (case.name.split(":")[0].split(" ")[0], case.same)
        if kind not in seen and not seen.add(kind) and len(seen) < 7:
            at = os.path.join(folder, str(k))
            case.write(at)
            yield "constants " + case.name, compare(at)


def drawn_inputs(folder, seed, isomer):
    for name in INPUTS:
        script(
            "inputs.py",
            "--isomer",
            isomer,
            "--seed",
            str(seed),
            "--count",
            "4",
            "--only",
            name,
            "--keep",
            folder,
        )
    for name in sorted(os.listdir(folder)):
        if any(name == f or name.startswith(f + "-") for f in INPUTS):
            yield "inputs " + name, compare(os.path.join(folder, name))


def with_relations(folder, seed):
    """A line that says what an input may be, of two graphs that are equal only there."""
    for n in range(40):
        family, pair = masks.draw(seed, n)
        if family == "read":
            pair.write(folder)
            break
    path = os.path.join(folder, "relations.txt")
    with open(os.path.join(folder, "left", "graph.json"), encoding="utf-8") as f:
        name = re.search(r'"op": *"input", *"name": *"([^"]*)"', f.read())
    with open(path, "w", encoding="utf-8") as f:
        f.write(DOMAINS % name.group(1) if name else "")
    yield "relations", compare(folder, "--relations", path)


def of_ranks(folder, seed):
    """Relations of outputs that are inferred, and leaves that have several lines."""
    for name, fault in (("transposed", None), ("mesh", None), ("feed_forward", "no collective")):
        left, right, _ = refined.make(name, 4 if name == "mesh" else 2, seed, fault)
        at = os.path.join(folder, name)
        refined.write(os.path.join(at, "left"), left)
        refined.write(os.path.join(at, "right"), right)
        yield "inferred " + name, compare(at, "--refine")
    path = os.path.join(folder, "relations.txt")
    with open(path, "w", encoding="utf-8") as f:
        f.write("leaf w = cat([rank0.w, rank1.w], 0)\nright rank2.w = rank0.w\n")
    yield "lines about leaves", compare(os.path.join(folder, "mesh"), "--relations", path)


def of_blocks(folder):
    """Scores that come block by block."""
    parallel.write_sides(folder, *rank_blocks.SIDES["two dimensions"]())
    yield "blocks", compare(folder)


def in_captured_dtypes(folder, seed):
    """A right pair and one that loses digits, in a report and a page."""
    for name in ("fused qkv", "down_proj accumulates"):
        at = os.path.join(folder, name.replace(" ", "-"))
        ways = (rounding.RIGHT.get(name) or rounding.BUGS[name])[:2]
        sides = [rounding.side(rounding.bf16, seed, how) for how in ways]
        rounding.dsl.Pair("", "", "", *sides).write(at)
        yield "rounding " + name, compare(at, "--rounding", "--json", os.path.join(at, "r.json"))


def rules(folder, seed, isomer):
    path = os.path.join(folder, "branches.rules")
    script(
        "branches.py",
        "--isomer",
        isomer,
        "--seed",
        str(seed),
        "--rules",
        "40",
        "--pairs",
        "0",
        "--write",
        path,
    )
    yield "rules of branches", ["rules", "check", path]
    path = os.path.join(folder, "adversary.rules")
    with open(path, "w", encoding="utf-8") as f:
        f.write(ADVERSE)
    yield "rules of an adversary", ["rules", "check", path]
    yield "rules exported", ["rules", "export", "--to", "egglog", path]


# Operands that vanish beside others, bounds exchanged, factors of any sign, complex numbers: all
# but the last are false.
ADVERSE = """
(rule absorbed (var x f (N))
  (lhs (aten::sub.Scalar (aten::add.Scalar x 1e20) 1e20)) (rhs (aten::mul.Scalar x 0)))
(rule amax-mul (var x f (N M)) (lhs (aten::amax (aten::mul.Scalar x S) (list 1) false))
 (rhs (aten::mul.Scalar (aten::amax x (list 1) false) S)))
(rule clamp (var x f (N)) (lhs (aten::clamp x A B)) (rhs (aten::clamp x B A)))
(rule log-prod (var x c (N)) (var y c (N)) (lhs (aten::log (aten::mul.Tensor x y)))
 (rhs (aten::add.Tensor (aten::log x) (aten::log y))))
(rule threshold (var x i (N)) (lhs (aten::ge.Scalar x 512)) (rhs (aten::gt.Scalar x 512)))
(rule relu-relu (var x f (N)) (lhs (aten::relu (aten::relu x))) (rhs (aten::relu x)))
"""


def certificate(folder, isomer):
    sides = [os.path.join(MODELS, "hf-sdpa"), os.path.join(MODELS, "vllm")]
    path = os.path.join(folder, "certificate.json")
    yield (
        "certificate written",
        [
            "compare",
            *sides,
            "--jobs",
            "1",
            "--require",
            "certified",
            "--certificate",
            path + ".again",
        ],
    )
    subprocess.run(
        [isomer, "compare", *sides, "-q", "--certificate", path],
        check=False,
        stdout=subprocess.DEVNULL,
    )
    yield "certificate checked", ["check", path, *sides]


def placements(folder):
    """Captures of ranks, right and wrong, with lines that say what leaves are; and the page."""
    lines = os.path.join(folder, "placements.txt")
    with open(lines, "w", encoding="utf-8") as f:
        f.write("# shards\nx = S(1)\n*.w = ranks S(1)\n* = R\n")
    for name, bad in (("row parallel", False), ("gelu of a partial sum", True)):
        at = os.path.join(folder, name.replace(" ", "-"))
        placed_programs.PROGRAMS[name].write(at, bad)
        yield "lint " + name, ["lint", at]
    at = os.path.join(folder, "group")  # judged by groups of its ranks
    placed_programs.PROGRAMS["finding 7 scattered over another group"].write(at, True)
    yield "lint group", ["lint", at]
    at = os.path.join(folder, "row-parallel")
    yield "lint with lines", ["lint", at, "--mesh", "ranks=2", "--placements", lines]
    page = os.path.join(folder, "page.html")
    table = os.path.join(ROOT, "tests", "fuzz", "corpus", "lint", "hang.json")
    yield "lint page", ["lint", table, "--html", page]


def cases(folder, seed, isomer):
    def place(name):
        path = os.path.join(folder, name)
        os.makedirs(path)
        return path

    yield from drawn_masks(place("masks"), seed)
    yield from drawn_constants(place("constants"), seed)
    yield from drawn_inputs(place("inputs"), seed, isomer)
    yield from with_relations(place("relations"), seed)
    yield from of_ranks(place("ranks"), seed)
    yield from of_blocks(place("blocks"))
    yield from in_captured_dtypes(place("rounding"), seed)
    yield from rules(place("rules"), seed, isomer)
    yield from certificate(place("certificate"), isomer)
    yield from placements(place("placements"))


def main():
    a = argparse.ArgumentParser(description="commands that run out of memory")
    a.add_argument("--driver", default=os.path.join(ROOT, "build", "tests", "cli", "out_of_memory"))
    a.add_argument("--isomer", default=os.path.join(ROOT, "build", "isomer"))
    a.add_argument("--every", type=int, default=1)
    a.add_argument("--seed", type=int, default=1)
    a.add_argument("--only", default="", help="cases whose name holds this")
    a.add_argument("--keep", help="write the captures here and leave them there")
    o = a.parse_args()
    passed = failed = 0
    with tempfile.TemporaryDirectory() as folder:
        if o.keep:
            folder = o.keep
        for k, (name, command) in enumerate(cases(folder, o.seed, os.path.abspath(o.isomer))):
            if o.only not in name:
                continue
            options = ["--from", str((o.seed + 7 * k) % o.every), "--every", str(o.every)]
            p = subprocess.run(
                [o.driver, *options, *command],
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
            )
            text = p.stdout.decode("utf-8", "replace")
            counts = COUNT.findall(text)
            passed += sum(int(n) for n, _ in counts)
            failed += sum(int(n) for _, n in counts) if counts else 1
            lines = text.strip().split("\n")
            says = lines[-2] if len(lines) > 1 else "status %d" % p.returncode
            print("%s: %s" % (name, says), flush=True)
            if p.returncode:
                print("\n".join(lines[:-2]), flush=True)
    print("%d passed, %d failed" % (passed, failed))
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
