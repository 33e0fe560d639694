#!/usr/bin/env python3
"""The cost of `isomer compare`, as ratios. Plain Python 3; the loop that `isomer run` is compared
with needs PyTorch.

    tests/bench/compare.py [--isomer build/isomer] [--captures DIR] [--python PYTHON] [--rounds N]
    [--no-ablation]

Whole processes, one after the other, all commands in each round; of each the median processor time
(user and system) over the rounds counts. Start-up (the same command on a capture of one node) is
subtracted, and is most of what a run takes: each round runs these short commands three times, and
the first ratio is given with the range that nine in ten of resampled rounds lie in, which tells how
far the figure is to be trusted: on a machine that others use, give it more rounds. The pair is
Llama's from models/, its last layer repeated (stack.py) to 8 and 32 layers; with --captures also
llama-8l and llama-32l from there, whose 32 layers are narrower. The floor of `compare` is one run
of each side:

    compare     (compare - start) / (run left + run right - 2 starts), at most 8
    run         (run - start) / loop.py once PyTorch is imported, at most 2
    growth      32 layers against 8, at most 4.4; the rules must be the same ones
    memory      peak below 1 GiB

The first limit comes from what a comparison of equivalent graphs has to do. Both sides run on three
sets of values (of the operators' calls, 3.2 times those of the two runs), one once more as captured
and with the roundings of constants disturbed (1.5 times), and layouts, constants and examples of
rules ask for calls of their own (2.7 times): 7.5 times the calls at 32 layers, in less time, since
reading the captures is a part of each run.

Exit status 1 where a limit is exceeded. Then what each optimisation buys: --disable, with the
verdict the same."""

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, HERE)
import stack  # noqa: E402

LIMITS = {"compare": 8.0, "run": 2.0, "growth": 4.4, "memory": 1 << 30}
SIDES = "hf-sdpa", "vllm"
SHORT = 3  # times that a short command runs in a round
SWITCHES = "signature", "fingerprint", "reachable", "lazy", "reuse", "saturate"


def measure(command):
    """(processor seconds, peak bytes); ends the bench where the command fails. loop.py says itself
    what it took."""
    with (
        open(os.devnull, "rb") as null,
        tempfile.TemporaryFile() as out,
        tempfile.TemporaryFile() as err,
    ):
        p = subprocess.Popen(command, stdin=null, stdout=out, stderr=err)
        _, status, used = os.wait4(p.pid, 0)
        p.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0), err.seek(0)
        if p.returncode != 0:
            sys.exit(
                "%s: exit status %d: %s"
                % (" ".join(command), p.returncode, err.read(2000).decode("utf-8", "replace"))
            )
        said = [
            line
            for line in out.read().decode("utf-8", "replace").splitlines()
            if line.startswith("processor seconds ")
        ]
    return float(
        said[0].split()[2]
    ) if said else used.ru_utime + used.ru_stime, used.ru_maxrss * 1024


def one_node(folder):
    """A capture with one operator."""
    os.makedirs(folder)
    out = [{"shape": [2], "dtype": "float32"}]
    graph = {
        "format": "isomer-capture",
        "version": 1,
        "nodes": [
            {"id": "x", "op": "input", "name": "x", "outputs": out},
            {"id": "y", "op": "aten::relu", "args": [{"ref": "x"}], "kwargs": {}, "outputs": out},
        ],
        "outputs": [{"name": "y", "ref": "y"}],
    }
    with open(os.path.join(folder, "graph.json"), "w") as f:
        json.dump(graph, f)
    stack.write_tensors(os.path.join(folder, "weights.safetensors"), {})
    stack.write_tensors(os.path.join(folder, "inputs.safetensors"), {"x": ("F32", [2], bytes(8))})


def seconds(seen):
    return {k: statistics.median(s for s, _ in v) for k, v in seen.items()}


def against_runs(t):
    """`compare` by the floor: one run of each side; None where the runs are lost in the start's
    noise."""
    runs = t["run l"] + t["run r"] - 2 * t["start run"]
    return (t["compare 32"] - t["start compare"]) / runs if runs > 0 else None


def spread(seen, of):
    """(low, high): nine in ten of `of` over samples drawn again from those seen."""
    rng, found = random.Random(1), []
    for _ in range(400):
        value = of(
            {k: statistics.median(s for s, _ in rng.choices(v, k=len(v))) for k, v in seen.items()}
        )
        found.append(float("inf") if value is None else value)
    found.sort()
    return found[len(found) // 20], found[-1 - len(found) // 20]


def rules_of(report):
    return sorted((r["lhs"], r["rhs"]) for r in report["rules"])


class Bench:
    def __init__(self, o, tmp):
        self.o, self.tmp, self.failed = o, tmp, 0
        self.tiny = os.path.join(tmp, "tiny")
        one_node(self.tiny)

    def run(self, capture):
        return [self.o.isomer, "run", "--float64", "--propagate", "-q", capture]

    def compare(self, pair, *more):
        return [self.o.isomer, "compare", "-q", *more, *pair]

    def loop(self, capture):
        return [
            self.o.python,
            os.path.join(HERE, "loop.py"),
            capture,
            "--kernels",
            os.path.join(os.path.dirname(self.o.isomer), "libisomer_kernels.so"),
        ]

    def seen(self, commands, rounds):
        """{name: [(seconds, peak bytes)]}, of short commands three a round, between the others"""
        seen = {k: [] for k in commands}
        for _ in range(rounds):
            for turn in range(SHORT):
                for k, c in commands.items():
                    if turn == 0 or k.startswith(("start", "run")):
                        seen[k].append(measure(c))
        return seen

    def report(self, pair, *more):
        path = os.path.join(self.tmp, "report.json")
        measure(self.compare(pair, "--json", path, *more))
        return json.load(open(path, encoding="utf-8"))

    def check(self, what, value, limit, form="%.2f"):
        ok = value <= limit
        self.failed += not ok
        print(
            "  %-34s %s, limit %s%s"
            % (what, form % value, form % limit, "" if ok else "   EXCEEDED")
        )

    def pair(self, name, small, large):
        o = self.o
        commands = {
            "start run": self.run(self.tiny),
            "start compare": self.compare((self.tiny, self.tiny)),
            "compare 8": self.compare(small),
            "compare 32": self.compare(large),
        }
        for side, capture in zip("lr", large):
            commands["run " + side] = self.run(capture)
        if o.python:
            for side, capture in zip("lr", large):
                commands["loop " + side] = self.loop(capture)
        seen = self.seen(commands, o.rounds)
        t = seconds(seen)
        print("%s: processor seconds, median (smallest) of %d rounds" % (name, o.rounds))
        for k, v in seen.items():
            print(
                "  %-16s %7.3f (%.3f) %5d MiB"
                % (k, t[k], min(s for s, _ in v), max(m for _, m in v) >> 20)
            )
        runs = t["run l"] + t["run r"] - 2 * t["start run"]
        deep, shallow = (t["compare %d" % n] - t["start compare"] for n in (32, 8))
        ratio = against_runs(t)
        self.check(
            "compare / (run + run)", float("inf") if ratio is None else ratio, LIMITS["compare"]
        )
        print(
            "  %-34s %.2f to %.2f"
            % ("  nine in ten of resampled rounds", *spread(seen, against_runs))
        )
        if o.python:
            self.check("run / loop in Python", runs / (t["loop l"] + t["loop r"]), LIMITS["run"])
        self.check("32 layers / 8 layers", deep / shallow, LIMITS["growth"])
        self.check(
            "peak memory, MiB",
            max(m for _, m in seen["compare 32"]) / 2**20,
            LIMITS["memory"] / 2**20,
            "%.0f",
        )
        a, b = self.report(small), self.report(large)
        same = rules_of(a) == rules_of(b) if o.same_shapes else len(a["rules"]) == len(b["rules"])
        self.failed += not same
        print(
            "  rules at 8 and 32 layers: %d and %d, %s"
            % (len(a["rules"]), len(b["rules"]), "the same" if same else "DIFFERENT")
        )
        s = b["stats"]["seconds"]
        print("  of which (wall clock, once): " + ", ".join("%s %.3f" % (k, s[k]) for k in s))

    def ablation(self, pair):
        usage = subprocess.run(
            [self.o.isomer, "compare", "--help"], stdout=subprocess.PIPE
        ).stdout.decode()
        if "--disable" not in usage:
            return print("no --disable: no ablation")
        switches = [s for s in SWITCHES if s in usage.split("--disable", 1)[1].split("--", 1)[0]]
        commands = {"start": self.compare((self.tiny, self.tiny)), "all on": self.compare(pair)}
        commands.update((s, self.compare(pair, "--disable", s)) for s in switches)
        t = seconds(self.seen(commands, max(1, self.o.rounds // 2)))
        base, verdict = t["all on"] - t["start"], self.report(pair)["verdict"]
        print("without one optimisation, 8 layers:")
        for s in switches:
            r = self.report(pair, "--disable", s)
            n = r["stats"]
            self.failed += r["verdict"] != verdict
            print(
                (
                    "  %-12s %.2f times the time; candidates %d, rules synthesised %d, refuted %d, "
                    "reused %d%s"
                )
                % (
                    s,
                    (t[s] - t["start"]) / base,
                    n["candidates"],
                    n["rules_synthesised"],
                    n["rules_refuted"],
                    n["rules_reused"],
                    "" if r["verdict"] == verdict else "   OTHER VERDICT: " + r["verdict"],
                )
            )


def main():
    a = argparse.ArgumentParser(description="what compare costs, as ratios")
    a.add_argument("--isomer", default=os.path.join(ROOT, "build", "isomer"))
    a.add_argument("--captures", default="", help="a folder with llama-8l and llama-32l")
    a.add_argument("--python", default="", help="a Python with PyTorch")
    a.add_argument("--rounds", type=int, default=7)
    a.add_argument("--no-ablation", action="store_true")
    o = a.parse_args()
    o.isomer = os.path.abspath(o.isomer)
    with tempfile.TemporaryDirectory() as tmp:
        b = Bench(o, tmp)
        made = {n: [os.path.join(tmp, "llama-%d-%s" % (n, s)) for s in SIDES] for n in (8, 32)}
        for n, folders in made.items():
            for side, to in zip(SIDES, folders):
                stack.make(os.path.join(ROOT, "models", "llama-2l", side), to, n)
        o.same_shapes = True
        b.pair("models/llama-2l, stacked", made[8], made[32])
        if o.captures:
            o.same_shapes = False
            b.pair(
                os.path.basename(o.captures.rstrip("/")),
                *[[os.path.join(o.captures, "llama-%dl" % n, s) for s in SIDES] for n in (8, 32)],
            )
        if not o.no_ablation:
            b.ablation(made[8])
    return 1 if b.failed else 0


if __name__ == "__main__":
    sys.exit(main())
