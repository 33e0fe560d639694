#!/usr/bin/env python3
"""Compare every pair of traps.py and see that its verdict is one that it may have.

    tests/pairs/run.py [--isomer build/isomer] [--only NAME] [--jobs N] [--all] [--device cuda]
    [--failures FILE]

Each pair is compared once; every ninth also with its sides exchanged and every 13th with another
seed (--all, and what is in KNOWN: every pair both ways), where the verdict must be the same. Most
of the time is the program's start, so that pairs that must be equivalent are compared several in
one capture, and one by one where that is not `equivalent` (--all: all one by one). One line per
failure; a pair in KNOWN whose verdict is still wrong is a known gap, neither passed nor failed, and
one whose verdict is right by now is a failure: it leaves the table. Of the refactorings
(refactoring.py) the shares that are equivalent and proved are printed, and must not be below LEAST;
one that is tested only is in the table TESTED, with the reason. The last line is `N passed, N
failed`."""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor

import dsl
import traps
from refactoring import REFACTORINGS

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
VERDICT = {0: dsl.EQUIVALENT, 1: dsl.DIFFERENT, 2: dsl.ERROR, 3: dsl.UNDECIDED}
TIMEOUT = float(os.environ.get("PAIRS_TIMEOUT", 120))

LEAST = {"equivalent": 0.95, "proved": 0.85}

WRITING = threading.Lock()


def compare(report, left, right, *args):
    """(verdict, what it says): `crash` or `timeout` where there is none; an error must be one
    line."""
    command = [
        OPTIONS.isomer,
        "compare",
        left,
        right,
        "--json",
        report,
        "--device",
        OPTIONS.device,
        *args,
    ]
    try:
        p = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            timeout=TIMEOUT,
        )
    except subprocess.TimeoutExpired:
        return "timeout", "no answer after %g s" % TIMEOUT
    out, err = p.stdout.decode("utf-8", "replace"), p.stderr.decode("utf-8", "replace")
    verdict = VERDICT.get(p.returncode, "crash")
    if verdict == dsl.ERROR and (err.count("\n") != 1 or out):
        verdict = "crash"
    if verdict in ("crash", dsl.ERROR):
        return verdict, "status %d: %s" % (p.returncode, err.strip().replace("\n", " / ")[-300:])
    return verdict, out.strip().rsplit("\n", 1)[-1]


def allowed(expected, got, report):
    """Whether `expected` has the verdict; equivalent:KIND:TEXT stands for one that rests on such an
    assumption."""
    for want in expected.split("|"):
        verdict, _, assumption = want.partition(":")
        if verdict != got:
            continue
        kind, _, text = assumption.partition(":")
        if not kind:
            return True
        with open(report, encoding="utf-8") as f:
            if any(a["kind"] == kind and text in a["text"] for a in json.load(f)["assumptions"]):
                return True
    return False


def proved(report):
    with open(report, encoding="utf-8") as f:
        return json.load(f)["evidence"] == "proved"


def evidence(pair, report):
    """Returns the fault in a refactoring's evidence, or None."""
    tested = traps.NOT_PROVED.get(pair.name)
    if pair.name in REFACTORINGS and proved(report) == (tested is not None):
        return "proved, and still in the table TESTED" if tested else "tested only"


# Operators of the left and of the right that are named where these pairs part.
PLACES = {
    "equal rows expanded": ("aten::exp", "aten::slice.Tensor"),
    "sorted already": ("aten::exp", "aten::sort"),
    "argmax of the negated": ("aten::argmax", "aten::neg"),
    "rotary with sin and cos exchanged": ("aten::mul.Tensor", "aten::mul.Tensor"),
    "lowered: zero point of another sign": ("aten::sub.Tensor", "aten::add.Tensor"),
    "lowered: scale for each row, and the first for all": ("aten::unsqueeze", "aten::slice.Tensor"),
    "routing: weights exchanged": ("aten::unsqueeze", "aten::flip"),
    "two ranks: averaged": ("aten::linear", "dist::all_reduce"),
    "two ranks: reduced twice": ("aten::linear", "dist::all_reduce"),
}


def elsewhere(pair, report):
    """Returns the fault in the place that a report names, or None."""
    with open(report, encoding="utf-8") as f:
        first = (json.load(f)["divergences"] or [{}])[0]
    at = tuple((first.get(side) or {}).get("op") for side in ("left", "right"))
    return None if at == PLACES[pair.name] else "parts at %s and %s" % at


def attempt(n, pair):
    """(what went wrong or None, the verdict)"""
    with tempfile.TemporaryDirectory() as folder:
        with WRITING:
            pair.write(folder)
        left, right = os.path.join(folder, "left"), os.path.join(folder, "right")
        report = os.path.join(folder, "report.json")
        runs = [("", (report, left, right))]
        every = OPTIONS.all or pair.name in traps.KNOWN
        if every or n % 9 == 0:
            runs.append(("sides exchanged: ", (report, right, left)))
        if every or n % 13 == 0:
            runs.append(("seed 1: ", (report, left, right, "--seed", "1")))
        first = None
        for how, args in runs:
            got, says = compare(*args)
            if not allowed(pair.expected, got, report):
                return "%s%s, expected %s (%s): %s" % (
                    how,
                    got,
                    pair.expected,
                    pair.why,
                    says.replace(folder, ""),
                ), got
            wrong = elsewhere(pair, report) if not how and pair.name in PLACES else None
            if wrong:
                return wrong, got
            if first not in (None, got):
                return "%s%s, without that %s" % (how, got, first), got
            if first is None and got == dsl.EQUIVALENT and evidence(pair, report):
                return evidence(pair, report), got
            first = got
        return None, first


def attempt_several(n, pairs):
    """The same for each of several pairs that must be equivalent."""
    if len(pairs) > 1:
        with tempfile.TemporaryDirectory() as folder:
            with WRITING:
                dsl.write_together(pairs, folder)
            sides = [os.path.join(folder, "left"), os.path.join(folder, "right")]
            report = os.path.join(folder, "report.json")
            got, _ = compare(report, *(sides[::-1] if n % 2 else sides))
            if got == dsl.EQUIVALENT and (pairs[0].name not in REFACTORINGS or proved(report)):
                return [(None, got)] * len(pairs)
            print(
                "one by one: %s: %s together" % (", ".join(p.name for p in pairs), got), flush=True
            )
    return [attempt(n + k, p) for k, p in enumerate(pairs)]


def groups(pairs, size=10):
    """Pairs that one process compares: consecutive ones that must be equivalent, or proved. Any
    other pair is compared alone."""
    alone = {**traps.KNOWN, **traps.WRONG_EQUIVALENT, **traps.NOT_PROVED}
    together = {False: [], True: []}
    for p in pairs:
        if OPTIONS.all or p.expected != dsl.EQUIVALENT or p.name in alone:
            yield [p]
            continue
        some = together[p.name in REFACTORINGS]
        some.append(p)
        if len(some) == size:
            yield list(some)
            some.clear()
    for some in together.values():
        if some:
            yield some


def shares(verdicts):
    """Prints how many refactorings are equivalent and proved. False: too few."""
    n = len(verdicts)
    share = {
        "equivalent": sum(v == dsl.EQUIVALENT for v, _ in verdicts) / max(1, n),
        "proved": sum(p for _, p in verdicts) / max(1, n),
    }
    print("%d refactorings: %s" % (n, ", ".join("%.1f %% %s" % (100 * share[k], k) for k in LEAST)))
    return n == 0 or bool(OPTIONS.only) or all(share[k] >= LEAST[k] for k in LEAST)


def main():
    global OPTIONS
    a = argparse.ArgumentParser(description="small pairs with known verdicts")
    a.add_argument("--isomer", default=os.path.join(ROOT, "build", "isomer"))
    a.add_argument("--only", default="", help="pairs whose name holds this")
    a.add_argument(
        "--all",
        action="store_true",
        help="every pair with its sides exchanged and with another seed",
    )
    a.add_argument("--jobs", type=int, default=min(2, os.cpu_count() or 1))
    a.add_argument("--device", default="cpu", help="cpu or cuda")
    a.add_argument("--failures", help="write what is wrong, known or not, to this file")
    OPTIONS = a.parse_args()
    OPTIONS.isomer = os.path.abspath(OPTIONS.isomer)
    pairs = [p for p in dsl.PAIRS.values() if OPTIONS.only in p.name]
    passed = failed = gaps = 0
    lines, verdicts = [], []
    for name in sorted(
        {**traps.KNOWN, **traps.WRONG_EQUIVALENT, **traps.NOT_PROVED}.keys() - dsl.PAIRS.keys()
    ):
        failed += 1
        print("FAILED %s: in a table of gaps, and there is no such pair" % name)
    with ThreadPoolExecutor(OPTIONS.jobs) as pool:
        work = list(groups(pairs))
        starts = [sum(len(w) for w in work[:k]) for k in range(len(work))]
        results = (
            (p, r)
            for w, rs in zip(work, pool.map(attempt_several, starts, work))
            for p, r in zip(w, rs)
        )
        for p, (wrong, got) in results:
            known = traps.KNOWN.get(p.name) or traps.WRONG_EQUIVALENT.get(p.name)
            if p.name in REFACTORINGS:
                verdicts.append(
                    (
                        got,
                        got == dsl.EQUIVALENT and p.name not in traps.NOT_PROVED and wrong is None,
                    )
                )
            if wrong is None and known is None:
                passed += 1
                continue
            if wrong is not None:
                lines.append("%s\t%s\n" % (p.name, wrong))
            if wrong is None:
                failed += 1
                print(
                    "FAILED %s: %s is right, and the pair is still in the table of gaps"
                    % (p.name, got),
                    flush=True,
                )
            elif (
                known is not None
                and got not in ("crash", "timeout")
                and (got == dsl.EQUIVALENT) == (p.name in traps.WRONG_EQUIVALENT)
            ):
                gaps += 1
                print(
                    "%s %s: %s (%s)"
                    % ("WRONG" if got == dsl.EQUIVALENT else "known gap", p.name, wrong, known),
                    flush=True,
                )
            else:
                failed += 1
                print("FAILED %s: %s" % (p.name, wrong), flush=True)
    if OPTIONS.failures:
        with open(OPTIONS.failures, "w", encoding="utf-8") as f:
            f.writelines(lines)
    if gaps:
        print("%d known gaps" % gaps)
    if not shares(verdicts):
        failed += 1
        print(
            "FAILED fewer than %s" % ", ".join("%g %% %s" % (100 * v, k) for k, v in LEAST.items())
        )
    print("%d passed, %d failed" % (passed, failed))
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
