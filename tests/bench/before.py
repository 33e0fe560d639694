#!/usr/bin/env python3
"""What a build costs beside an older one: the engine, comparisons and `rules check`, the two in
turns. Plain Python 3.

    tests/bench/before.py --old DIR [--isomer build/isomer] [--rounds 5] [--only TEXT] [--most 1.1]

DIR is the older tree, built there: make bench-before OLD=DIR. Both programs read the captures,
workloads and rules of this tree, and of rules that the older one cannot read, its own. Of each row
the median processor time (user and system) of each build, and the median over the rounds of the
ratio of two neighbours, which what else the machine does disturbs least. Who begins changes with
the round. A row on which the two end with another status is marked, for they did not do the same
thing. Exit status 1 where a ratio is above --most in a row that is not marked."""

import argparse
import os
import statistics
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
WORKLOADS = "cc", "ac-8", "math-constfold", "math-test-integ-part3"
PAIRS = (
    ("gpt2-2l/hf-sdpa", "gpt2-2l/vllm"),
    ("gpt2-2l/hf-sdpa", "gpt2-2l/vllm-tp2"),
    ("gpt2-2l/hf-sdpa", "gpt2-2l/vllm-bug-posoff"),
    ("llama-2l/hf-sdpa", "llama-2l/vllm"),
    ("llama-2l/hf-sdpa", "llama-2l/vllm-kernels"),
    ("llama-2l/hf-sdpa", "llama-2l/vllm-bug-eps"),
    ("variants/qwen2-2l/hf-sdpa", "variants/qwen2-2l/vllm"),
)
RULES = "paper.rules", "core.rules"


def rows(old):
    """(name, words after the program's name for the older build, the same for this one)"""
    for w in WORKLOADS:
        words = ["saturate", os.path.join(ROOT, "tests", "egraph", "data", w + ".sexp")]
        yield "saturate " + w, words, words
    for pair in PAIRS:
        words = ["compare", "-q", *(os.path.join(ROOT, "models", side) for side in pair)]
        yield "compare %s %s" % (pair[0], pair[1].split("/")[-1]), words, words
    for name in RULES:
        mine = os.path.join(ROOT, "rules", name)
        its = os.path.join(old, "rules", name)
        for at in (mine, its):
            if status([os.path.join(old, "build", "isomer"), "rules", "stats", at]) == 0:
                yield "rules check " + name, ["rules", "check", at], ["rules", "check", at]
                break


def status(command):
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    return subprocess.run(command, stdin=subprocess.DEVNULL, **quiet).returncode


def measure(command):
    """(exit status, processor seconds)"""
    with open(os.devnull, "r+b") as none:
        p = subprocess.Popen(command, stdin=none, stdout=none, stderr=none)
        _, end, used = os.wait4(p.pid, 0)
    p.returncode = os.waitstatus_to_exitcode(end)
    return p.returncode, used.ru_utime + used.ru_stime


def main():
    a = argparse.ArgumentParser()
    a.add_argument("--isomer", default=os.path.join(ROOT, "build", "isomer"))
    a.add_argument("--old", required=True, help="an older tree with its build/isomer")
    a.add_argument("--rounds", type=int, default=5)
    a.add_argument("--only", default="", help="rows whose name holds this")
    a.add_argument("--most", type=float, default=1.1, help="times slower that fail")
    a = a.parse_args()
    builds = {"old": os.path.join(a.old, "build", "isomer"), "new": a.isomer}
    for program in builds.values():
        if not os.access(program, os.X_OK):
            sys.exit("before.py: %s: no program" % program)
    slower = 0
    print("%-52s %8s %8s %7s" % ("processor seconds, %d rounds" % a.rounds, "old", "new", "ratio"))
    for name, old, new in rows(a.old):
        if a.only not in name:
            continue
        words = {"old": old, "new": new}
        seen, ended = {"old": [], "new": []}, {"old": set(), "new": set()}
        for turn in range(a.rounds):
            for k in list(builds)[:: -1 if turn % 2 else 1]:
                how, seconds = measure([builds[k], *words[k]])
                seen[k].append(seconds)
                ended[k].add(how)
        ratio = statistics.median(n / max(o, 1e-3) for o, n in zip(seen["old"], seen["new"]))
        same = ended["old"] == ended["new"]
        slower += same and ratio > a.most
        text = "%-52s %8.3f %8.3f %7.2f" % (
            name,
            statistics.median(seen["old"]),
            statistics.median(seen["new"]),
            ratio,
        )
        if not same:
            said = ["/".join(map(str, sorted(ended[k]))) for k in ("old", "new")]
            text += "  exit status %s before, %s now" % tuple(said)
        elif ratio > a.most:
            text += "  SLOWER"
        print(text, flush=True)
    print("%d rows are slower by more than %g" % (slower, a.most))
    return 1 if slower else 0


if __name__ == "__main__":
    sys.exit(main())
