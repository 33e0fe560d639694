#!/usr/bin/env python3
"""Compare the pairs of parallel.py and see that each is `equivalent`, within its bounds; those of
rank_blocks.py are, and their wrong twins `different`.

    tests/pairs/distributed.py [--isomer build/isomer] [--only TEXT] [--all] [--table]

Without --all: the pairs of QUICK. --table: a line for each pair, not for failures alone.

A line per pair: verdict, evidence, rules (how many of them proved), seconds of processor time, MiB.
A pair fails that is not equivalent, or takes more than 5 s or 500 MiB, or of whose rules less than
90 % are proved, or that tries IN_VAIN times as many rules in vain, unless it is in KNOWN with what
it is short of; one that is in KNOWN and short of nothing fails, too. The last line is `N passed, N
failed`."""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import parallel
import rank_blocks

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
VERDICT = {0: "equivalent", 1: "different", 2: "error", 3: "undecided"}
SECONDS, MIB, PROVED = 5.0, 500.0, 0.9  # seconds: with --all or --table, on a quiet machine
LIMIT = 60  # seconds of processor time
IN_VAIN = 3  # candidates that are refuted, for each rule that is found

# kind, model, ranks, layers, backward
QUICK = [
    ("tensor", "gpt", 2, 1, False),
    ("tensor", "gpt", 4, 1, False),
    ("tensor", "gpt", 8, 1, False),
    ("tensor", "llama", 2, 2, False),
    ("sequence", "gpt", 2, 1, False),
    ("data", "gpt", 2, 1, False),
    ("experts", "llama", 2, 1, False),
    ("exchange", "llama", 2, 1, False),
    ("context", "llama", 2, 1, False),
    ("accumulate", "gpt", 2, 1, False),
    ("data", "llama", 2, 1, True),
    ("zero", "llama", 2, 1, True),
    ("accumulate", "llama", 2, 1, True),
    ("data", "gpt", 2, 1, True),
    ("tensor", "llama", 2, 1, True),
    ("tensor", "gpt", 4, 2, True),
    ("sequence", "llama", 2, 1, True),
    ("sequence", "gpt", 2, 1, True),
    ("tensor", "gpt", 2, 1, True),
    ("tensor", "gpt", 8, 1, True),
    ("data", "llama", 8, 1, True),
    ("grid", "llama", 8, 1, True),
    ("grid", "gpt", 4, 1, True),
    ("grid", "qwen", 4, 1, True),
    ("experts", "llama", 2, 1, True),
    ("context", "llama", 2, 1, True),
    ("context", "gpt", 2, 1, True),
    ("context", "llama", 3, 1, True),
    ("context", "qwen", 4, 1, True),
    ("exchange", "llama", 2, 1, True),
    ("exchange", "llama", 4, 2, True),
    ("pipeline", "llama", 2, 2, True),
    ("replaced", "gpt", 2, 1, True),
]
# These are compared the other way about, too: the ranks' graph is the left one.
EXCHANGED = [
    ("tensor", "gpt", 2, 1, False),
    ("data", "llama", 2, 1, True),
    ("data", "gpt", 2, 1, True),
    ("zero", "llama", 2, 1, True),
    ("accumulate", "llama", 2, 1, True),
    ("exchange", "llama", 2, 1, False),
    ("tensor", "gpt", 2, 1, True),
    ("tensor", "qwen", 4, 2, True),
    ("sequence", "llama", 2, 1, True),
    ("context", "gpt", 4, 1, False),
    ("context", "llama", 2, 1, True),
]
# Of these the certificate is checked, too: gradients that are zero but for rounding (a key's bias),
# rules of eight parts, of groups of groups, and tiles.
CHECKED = [
    ("tensor", "gpt", 2, 1, True),
    ("data", "llama", 8, 1, True),
    ("grid", "gpt", 4, 1, True),
    ("context", "llama", 3, 1, True),
]


def every():
    for kind in [*parallel.KIND, *parallel.BOTH]:
        models = ["llama"] if kind in ("experts", "exchange") else ["gpt", "llama", "qwen"]
        for model in models:
            for backward in (False, True):
                for ranks in (2, 3, 4, 6, 8):
                    if kind == "grid" and ranks in (2, 3) or kind == "doubled" and ranks % 4:
                        continue
                    if kind == "zero" and model == "gpt" and ranks in (3, 6):
                        continue  # a table of four places has no such shards
                    for layers in (1, 2, 4, 8):
                        if layers > 1 and ranks not in (2, 4):
                            continue
                        yield kind, model, ranks, layers, backward


# A vocabulary over two ranks against four.
KNOWN = {"doubled llama 4 ranks 1 layers": "undecided"}


def title(case):
    kind, model, ranks, layers, backward = case
    return "%s %s %d ranks %d layers%s" % (
        kind,
        model,
        ranks,
        layers,
        " backward" if backward else "",
    )


def limits():
    resource.setrlimit(resource.RLIMIT_CPU, (LIMIT, LIMIT))


def compare(isomer, folder, more=()):
    """(verdict, report or None, seconds, MiB, what it said)"""
    relations, report = os.path.join(folder, "relations"), os.path.join(folder, "report.json")
    command = [isomer, "compare", os.path.join(folder, "left"), os.path.join(folder, "right")]
    command += ["--json", report, *more]
    if os.path.getsize(relations):
        command += ["--relations", relations]
    p = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, preexec_fn=limits
    )
    out = p.stdout.read().decode("utf-8", "replace")
    _, status, used = os.wait4(p.pid, 0)
    p.returncode = 0
    code = os.waitstatus_to_exitcode(status)
    verdict = VERDICT.get(code, "limit" if code in (-24, -9) else "crash")
    loaded = None
    if verdict in ("equivalent", "different", "undecided"):
        with open(report, encoding="utf-8") as f:
            loaded = json.load(f)
    return verdict, loaded, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, out


def certificate_holds(case, isomer):
    with tempfile.TemporaryDirectory() as folder:
        parallel.write(folder, *case)
        left, right, relations, certificate = (
            os.path.join(folder, name)
            for name in ("left", "right", "relations", "certificate.json")
        )
        pair = [left, right]
        if os.path.getsize(relations):
            pair += ["--relations", relations]
        for command in (
            ["compare", *pair, "--certificate", certificate],
            ["check", certificate, *pair],
        ):
            p = subprocess.run(
                [isomer, *command], capture_output=True, text=True, preexec_fn=limits
            )
            if p.returncode:
                return (p.stdout + p.stderr).strip().split("\n")[-1]
    return None


def unbounded(isomer):
    """A label that is left out counts nowhere on one side, and as none of all on the other: without
    its range the loss over shards of a vocabulary is another one."""
    with tempfile.TemporaryDirectory() as folder:
        parallel.write(folder, "tensor", "gpt", 2, 1, False)
        at = os.path.join(folder, "relations")
        lines = [line for line in open(at, encoding="utf-8") if " range " not in line]
        with open(at, "w", encoding="utf-8") as f:
            f.write("".join(lines))
        return compare(isomer, folder)[0]


def blocks_wrong(name, isomer):
    """What is wrong with a pair of rank_blocks.py, or with its twin; None: nothing."""
    for wrong, verdict in ((False, "equivalent"), (True, "different")):
        with tempfile.TemporaryDirectory() as folder:
            parallel.write_sides(folder, *rank_blocks.SIDES[name](wrong))
            found = compare(isomer, folder)
            if found[0] != verdict:
                return "%s%s: %s" % (found[0], " of a mistake" * wrong, found[4].strip()[-160:])
    return None


def short_of(case, isomer, exchanged=False):
    """(what the pair is short of or None, its line)"""
    with tempfile.TemporaryDirectory() as folder:
        parallel.write_sides(folder, *parallel.build(*case), exchanged=exchanged)
        found = compare(isomer, folder)
        wrong, line = judged(title(case) + " exchanged" * exchanged, found)
        stats = found[1]["stats"] if found[1] else {"rules_refuted": 0, "rules_synthesised": 0}
        if stats["rules_refuted"] > IN_VAIN * stats["rules_synthesised"]:
            wrong, line = wrong or "search", line + "  %d refuted" % stats["rules_refuted"]
        return wrong, line


def judged(name, found):
    """The same of what compare() gave."""
    verdict, report, seconds, mib, out = found
    rules = report["rules"] if report else []
    proved = sum(r["status"] == "proved" for r in rules)
    line = "%-44s %-10s %-7s %3d/%-3d %6.2f s %5.0f MiB" % (
        name,
        verdict,
        (report or {}).get("evidence") or "-",
        proved,
        len(rules),
        seconds,
        mib,
    )
    if verdict == "error":
        line += "  " + out.strip().split("\n")[-1][-160:]
    elif verdict == "undecided" and report["divergences"]:
        d = report["divergences"][0]
        line += "  %s | %s" % tuple((d[s] or {}).get("op", "-") for s in ("left", "right"))
    wrong = (
        verdict
        if verdict != "equivalent"
        else "seconds"
        if seconds > SECONDS
        else "memory"
        if mib > MIB
        else "proofs"
        if proved < PROVED * len(rules)
        else None
    )
    return wrong, line


def main():
    global SECONDS
    a = argparse.ArgumentParser(description="sequential programs against several ranks")
    a.add_argument("--isomer", default=os.path.join(ROOT, "build", "isomer"))
    a.add_argument("--only", default="")
    a.add_argument("--all", action="store_true", help="all kinds, models, ranks and layers")
    a.add_argument("--table", action="store_true", help="print a line for each pair")
    options = a.parse_args()
    if not (options.all or options.table):
        SECONDS = LIMIT
    passed = failed = 0
    for case in every() if options.all else QUICK:
        if options.only not in title(case):
            continue
        wrong, line = short_of(case, options.isomer)
        known = KNOWN.get(title(case))
        if options.table:
            print(line, flush=True)
        if wrong == known:
            passed += wrong is None
            continue
        failed += 1
        print("FAILED %s: %s, expected %s" % (line, wrong or "right by now", known), flush=True)
    for case in EXCHANGED:
        if options.only not in title(case):
            continue
        wrong, line = short_of(case, options.isomer, exchanged=True)
        failed += wrong is not None
        passed += wrong is None
        if wrong or options.table:
            print("%s%s" % ("FAILED: " * (wrong is not None), line), flush=True)
    for case in CHECKED:
        said = certificate_holds(case, options.isomer) if options.only in title(case) else None
        failed += said is not None
        passed += said is None and options.only in title(case)
        if said:
            print("FAILED %s: certificate: %s" % (title(case), said), flush=True)
    for name in rank_blocks.SIDES:
        if options.only not in name:
            continue
        said = blocks_wrong(name, options.isomer)
        failed += said is not None
        passed += said is None
        if said:
            print("FAILED %s: %s" % (name, said), flush=True)
    if not options.only:
        verdict = unbounded(options.isomer)
        if verdict not in ("different", "undecided"):
            failed += 1
            print("FAILED labels without their range: %s" % verdict)
        else:
            passed += 1
    print("%d passed, %d failed" % (passed, failed))
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
