#!/usr/bin/env python3
"""A table (Markdown) of what `isomer compare` says about a folder of families of captures: each
sub-folder is a family, each folder in it one side of the model. Sides whose name has "bug" in it
are faulty twins and are compared only where --bugs asks for it.

    tests/bench/families.py --isomer build/isomer DIR [--only NAME ...] [--bugs] [--timeout 120]
    [--keep rows.json] [--name llama=Llama ...]

One pair at a time. Seconds are wall clock of the whole process. With --keep, rows that the file has
already are not run again."""

import argparse
import itertools
import json
import os
import subprocess
import sys
import tempfile
import time


def sides(folder, bugs):
    names = sorted(
        s for s in os.listdir(folder) if os.path.exists(os.path.join(folder, s, "graph.json"))
    )
    return [s for s in names if bugs or "bug" not in s]


def pairs(names):
    """Each pair once, faulty twins against sound sides only, the reference (hf) on the left."""
    return [p for p in itertools.combinations(names, 2) if not all("bug" in s for s in p)]


def place(report):
    """Where the first divergence is, or what is missing."""
    first = (report.get("divergences") or [None])[0]
    for side in ("left", "right"):
        at = first and first.get(side)
        if at:
            return "%s (%s)" % (
                at.get("scope") or at.get("id"),
                (at.get("op") or "?").split("::")[-1],
            )
    return ""


def compare(isomer, left, right, timeout):
    """One row: verdict, evidence, nodes, rules, seconds, where."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "report.json")
        start = time.monotonic()
        try:
            done = subprocess.run(
                [isomer, "compare", left, right, "--json", path, "--timeout", str(timeout)],
                capture_output=True,
                text=True,
                timeout=timeout * 2 + 30,
            )
        except subprocess.TimeoutExpired:
            return {"verdict": "no answer", "seconds": time.monotonic() - start}
        seconds = time.monotonic() - start
        if done.returncode not in (0, 1, 3):
            return {"verdict": "error", "where": done.stderr.strip()[-200:], "seconds": seconds}
        with open(path, encoding="utf-8") as f:
            report = json.load(f)
    return {
        "verdict": report["verdict"],
        "evidence": report["evidence"],
        "nodes": [report[s]["nodes"] for s in ("left", "right")],
        "rules": len(report["rules"]),
        "seconds": seconds,
        "where": place(report) if report["verdict"] != "equivalent" else "",
    }


def table(rows):
    out = [
        "| model | left | right | nodes | rules | verdict | seconds |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for r in rows:
        verdict = (
            r["verdict"]
            + (" [%s]" % r["evidence"] if r.get("evidence") else "")
            + (": " + r["where"] if r.get("where") else "")
        )
        out.append(
            "| %s | %s | %s | %s | %s | %s | %.1f |"
            % (
                r["family"],
                r["left"],
                r["right"],
                "%d / %d" % tuple(r["nodes"]) if r.get("nodes") else "",
                r.get("rules", ""),
                verdict,
                r["seconds"],
            )
        )
    return "\n".join(out)


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("folder", metavar="DIR")
    p.add_argument("--isomer", default="build/isomer")
    p.add_argument("--only", nargs="+", default=[], help="these families")
    p.add_argument("--bugs", action="store_true", help="faulty twins too")
    p.add_argument("--timeout", type=int, default=120, help="seconds for one pair")
    p.add_argument("--keep", metavar="FILE", help="rows as JSON, read and written")
    o = p.parse_args()
    have = {}
    if o.keep and os.path.exists(o.keep):
        with open(o.keep, encoding="utf-8") as f:
            have = {(r["family"], r["left"], r["right"]): r for r in json.load(f)}
    families = sorted(
        f
        for f in os.listdir(o.folder)
        if not f.startswith(".") and os.path.isdir(os.path.join(o.folder, f))
    )
    rows = []
    for family in families:
        if o.only and family not in o.only:
            continue
        folder = os.path.join(o.folder, family)
        for left, right in pairs(sides(folder, o.bugs)):
            row = have.get((family, left, right))
            if row is None:
                row = dict(
                    family=family,
                    left=left,
                    right=right,
                    **compare(
                        o.isomer, os.path.join(folder, left), os.path.join(folder, right), o.timeout
                    ),
                )
                have[family, left, right] = row
                print(
                    "%s: %s, %s: %s (%.1f s)"
                    % (family, left, right, row["verdict"], row["seconds"]),
                    file=sys.stderr,
                    flush=True,
                )
                if o.keep:
                    with open(o.keep, "w", encoding="utf-8") as f:
                        json.dump(list(have.values()), f, indent=1)
            rows.append(row)
    print(table(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
