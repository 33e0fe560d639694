#!/usr/bin/env python3
"""Reports of lint for other programs: SARIF, JUnit, GitHub, baselines, strictness. The change that
a report says would mend a hang is made, and mends it.

    tests/lint/lint_reports.py [--isomer build/isomer]"""

import argparse
import json
import os
import random
import re
import subprocess
import tempfile
import xml.etree.ElementTree as xml

from harness import Lint, ROOT, check, finish


def write(where, name, d):
    path = os.path.join(where, name)
    with open(path, "w") as f:
        json.dump(d, f)
    return path


def program(*ranks, backend="gloo"):
    return {"format": "isomer-events", "version": 1, "backend": backend, "ranks": list(ranks)}


def two_faults():
    """A size that differs, with a source line, and a send that nobody waits for."""
    return program(
        [
            {"op": "send", "peer": 1, "numel": 4, "source": "train loop.py:12"},
            {"op": "send", "peer": 1, "handle": "h", "name": "<last>"},
        ],
        [{"op": "recv", "peer": 0, "numel": 8, "source": "a,b.py:7"}, {"op": "recv", "peer": 0}],
    )


def raw(isomer, *args):
    p = subprocess.run(
        [isomer, "lint"] + list(args), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    return p.returncode, p.stdout.decode(), p.stderr.decode()


def files(isomer, where):
    path = write(where, "two.json", two_faults())
    out = {k: os.path.join(where, k) for k in ("json", "sarif", "junit")}
    status, text, _ = raw(isomer, path, "--github", *[x for k in out for x in ("--" + k, out[k])])
    check(
        status == 1
        and text.endswith("isomer: FINDINGS 1: size-mismatch at rank 1 event 0 (recv from 0)\n"),
        text,
    )
    report = json.load(open(out["json"]))
    check(report["format"] == "isomer-lint" and report["version"] == 1, "the format")
    keys = {"kind", "severity", "ranks", "events", "nodes", "text", "source", "mend"}
    check(
        all(keys <= set(f) for f in report["findings"]), "keys of findings: %s", report["findings"]
    )
    check([f["severity"] for f in report["findings"]] == ["error", "warning"], "errors go first")
    check(set(report["progress"]) == {"buffered", "rendezvous", "stream", "serial"}, "progress")
    sarif = json.load(open(out["sarif"]))
    run = sarif["runs"][0]
    check(
        sarif["version"] == "2.1.0"
        and [r["level"] for r in run["results"]] == ["error", "warning"],
        "SARIF: %s",
        run,
    )
    ids = {r["id"] for r in run["tool"]["driver"]["rules"]}
    check(all(r["ruleId"] in ids for r in run["results"]), "SARIF: each kind is a rule")
    at = run["results"][0]["locations"][0]["physicalLocation"]
    check(
        at["artifactLocation"]["uri"] == "a%2Cb.py" and at["region"]["startLine"] == 7,
        "SARIF: %s",
        at,
    )
    suite = xml.parse(out["junit"]).getroot()
    check(suite.get("failures") == "1" and suite.get("tests") == "2", "JUnit: %s", suite.attrib)
    check(
        len(suite.findall(".//failure")) == 1 and len(suite.findall(".//skipped")) == 1,
        "JUnit: cases",
    )
    commands = [line for line in text.split("\n") if line.startswith("::")]
    check(
        commands[0].startswith("::error file=a%2Cb.py,line=7,title=isomer: size-mismatch::"),
        "GitHub: %s",
        commands,
    )
    check(commands[1].startswith("::warning file="), "GitHub: %s", commands)
    status, text, err = raw(isomer, path, "--json", "-")
    check(json.loads(text) and err.count("FINDINGS") == 1, "--json -: the text goes to stderr")
    status, text, _ = raw(isomer, path, "-q")
    check(status == 1 and text.count("\n") == 1, "-q: %s", text)
    check(raw(isomer, path) == raw(isomer, path), "the same bytes")


def baselines(isomer, where):
    path = write(where, "two.json", two_faults())
    known = {"kind": "size-mismatch", "rank": 1, "event": 0, "reason": "ticket 12"}

    def lint(*entries, args=()):
        base = {"format": "isomer-baseline", "version": 1, "findings": list(entries)}
        return Lint(isomer, path, "--baseline", write(where, "base.json", base), *args)

    x = lint(known)
    check(
        x.status == 0
        and x.last.endswith("[known]")
        and x.report["findings"][0]["known"] == "ticket 12",
        x.text,
    )
    check(lint(dict(known, event=1)).status == 1, "another event is new")
    check(lint(dict(known, kind="dtype-mismatch")).status == 1, "another kind is new")
    check(
        lint({"kind": "size-mismatch", "name": "recv from 0", "reason": "r"}).status == 0, "by name"
    )
    check(
        "no finding matches deadlock" in lint(known, {"kind": "deadlock", "reason": "r"}).text,
        "entries that match nothing",
    )
    check(lint(known, args=("--strict",)).status == 1, "a warning is new with --strict")
    for bad in ({"kind": "x"}, {"reason": "x"}, dict(known, other=1), dict(known, reason=""), 7):
        check(lint(bad).status == 2, "malformed: %s", bad)
    sarif = os.path.join(where, "known.sarif")
    lint(known, args=("--sarif", sarif))
    check(json.load(open(sarif))["runs"][0]["results"][0]["suppressions"], "SARIF: suppressed")


def strictness(isomer, where):
    path = write(
        where,
        "warned.json",
        program([{"op": "send", "peer": 1, "handle": "h"}], [{"op": "recv", "peer": 0}]),
    )
    check(Lint(isomer, path).status == 0, "a warning alone is clean")
    x = Lint(isomer, path, "--strict")
    check(x.status == 1 and x.last.startswith("isomer: FINDINGS 1: unwaited-send"), x.last)


MOVE = re.compile(r"on rank (\d+), move .* \(event (\d+)\) (before|behind) .* \(event (\d+)\)$")


def mends(isomer, where):
    """Two ranks whose messages cross; what lint says mends it is done, and mends it."""
    made = 0
    for seed in range(40):
        rng = random.Random(seed)
        n = rng.randrange(1, 4)
        ranks = [[], []]
        for k in range(n):
            for r in (0, 1):
                both = [
                    {"op": "send", "peer": 1 - r, "mb": k},
                    {"op": "recv", "peer": 1 - r, "mb": k},
                ]
                ranks[r] += both if k == n - 1 else (both if r else both[::-1])
                ranks[r].append({"op": "compute"})
        d = program(*ranks, backend=rng.choice(("gloo", "nccl")))
        x = Lint(isomer, write(where, "hang.json", d))
        if not check(x.kinds() == ["deadlock"], "%d: %s", seed, x.text):
            continue
        m = MOVE.match(x.report["findings"][0]["mend"] or "")
        if not check(m, "%d: nothing mends it: %s", seed, x.text):
            continue
        rank, i, k = int(m.group(1)), int(m.group(2)), int(m.group(4))
        e = d["ranks"][rank].pop(i)
        k -= i < k
        d["ranks"][rank].insert(k + (m.group(3) == "behind"), e)
        x = Lint(isomer, write(where, "hang.json", d))
        made += check(x.status == 0, "%d: it is not mended: %s", seed, x.text)
    check(made == 40, "%d of 40 are mended", made)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--isomer", default=os.path.join(ROOT, "build", "isomer"))
    o = p.parse_args()
    with tempfile.TemporaryDirectory() as where:
        files(o.isomer, where)
        baselines(o.isomer, where)
        strictness(o.isomer, where)
        mends(o.isomer, where)
    finish()


main()
