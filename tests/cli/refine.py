#!/usr/bin/env python3
"""End-to-end tests of inferred relations (--refine, --save-relations, --expect): the generator's
own relation is found, its certificate holds and is refused once a number in it is another, and no
faulty twin is what was expected.

    tests/cli/refine.py [--isomer build/isomer] [--count N] [--seed N] [--only KIND] [--ranks N]

Without --count each kind is made once for some number of ranks, with two faults. The last line is
`N passed, N failed`."""

import argparse
import json
import os
import random
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "tests", "pairs"))
import refined  # noqa: E402

TALLY = [0, 0]
COUNTS = {}


def check(ok, what):
    TALLY[not ok] += 1
    if not ok:
        print("FAILED " + what, flush=True)


def run(*args):
    p = subprocess.run(
        [O.isomer, *args],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        timeout=300,
    )
    return p.returncode, p.stdout.decode(), p.stderr.decode()


def compare(where, left, right, *more):
    report = os.path.join(where, "report.json")
    if os.path.exists(report):
        os.remove(report)
    status, out, err = run("compare", left, right, "--json", report, "--no-stats", *more)
    doc = json.load(open(report)) if os.path.exists(report) else None
    return status, doc, (err or out).strip().rsplit("\n", 1)[-1]


def found(doc):
    out = {}
    for r in doc["refinement"] if doc else []:
        out.setdefault(r["output"], []).append(r["relation"])
    return out


def lines(relations):
    return "".join("output %s = %s\n" % (k, v) for k, vs in relations.items() for v in vs)


def changed(text, rng):
    """The certificate with one number of a relation one larger, or two parts exchanged."""
    doc = json.loads(text)
    spots = [
        (i, m.start())
        for i, line in enumerate(doc["relations"])
        for m in re.finditer(r"(?<=, )\d+(?=[,)])", line)
    ]
    if spots:
        i, at = rng.choice(spots)
        line = doc["relations"][i]
        number = re.match(r"\d+", line[at:]).group()
        doc["relations"][i] = line[:at] + str(int(number) + 1) + line[at + len(number) :]
    else:
        line = doc["relations"][0]
        if "_rank1" not in line:
            return None
        doc["relations"][0] = line.replace("_rank1", "", 1)
    return json.dumps(doc)


def correct(name, ranks, seed, where):
    label = "%s, %d ranks, seed %d" % (name, ranks, seed)
    left, right, own = refined.make(name, ranks, seed)
    a = refined.write(os.path.join(where, "left"), left)
    b = refined.write(os.path.join(where, "right"), right)
    cert, saved = os.path.join(where, "c.json"), os.path.join(where, "saved")
    status, doc, says = compare(
        where, a, b, "--refine", "--certificate", cert, "--save-relations", saved
    )
    check(status == 0, "%s: %d %s" % (label, status, says))
    check(found(doc) == own, "%s: found %s, made %s" % (label, found(doc), own))
    if status:
        return
    sums = any("sum(" in v for vs in own.values() for v in vs)
    check(
        all(r["clean"] and bool(r["surprising"]) == sums for r in doc["refinement"]),
        "%s: %s" % (label, doc["refinement"]),
    )
    check(open(saved).read().strip() == lines(own).strip(), "%s: saved relations" % label)
    status, out, err = run("check", cert, a, b)
    check(status == 0, "%s: certificate: %d %s%s" % (label, status, out[-200:], err))
    other = changed(open(cert).read(), random.Random(seed))
    if other:
        with open(cert, "w") as f:
            f.write(other)
        status, out, err = run("check", cert, a, b)
        check(status == 1, "%s: changed certificate: %d %s%s" % (label, status, out[-200:], err))
    for more in (["--expect", saved], ["--relations", saved]):
        status, doc, says = compare(where, a, b, *more)
        check(status == 0, "%s %s: %d %s" % (label, more[0], status, says))


def faulty(name, ranks, seed, fault, where):
    label = "%s, %d ranks, seed %d, %s" % (name, ranks, seed, fault)
    made = refined.make(name, ranks, seed, fault)
    if not made:
        return False
    left, right, own = made
    a = refined.write(os.path.join(where, "left"), left)
    b = refined.write(os.path.join(where, "right"), right)
    expected = os.path.join(where, "expected")
    with open(expected, "w") as f:
        f.write(lines(own))
    status, doc, says = compare(where, a, b, "--expect", expected)
    check(status in (1, 3), "%s, expecting: %d %s" % (label, status, says))
    status, doc, says = compare(where, a, b, "--refine")
    surprising = bool(doc) and any(r["surprising"] for r in doc["refinement"])
    other = bool(doc) and found(doc) != own
    check(
        status in (1, 3) or (status == 0 and other and (surprising or fault == "no collective")),
        "%s: %d %s %s" % (label, status, says, doc and doc["refinement"]),
    )
    COUNTS[status] = COUNTS.get(status, 0) + 1
    return True


def one(job):
    name, ranks, seed, fault = job
    with tempfile.TemporaryDirectory(prefix="isomer-refine-") as where:
        try:
            if fault is None:
                correct(name, ranks, seed, where)
            else:
                faulty(name, ranks, seed, fault, where)
        except Exception as e:  # noqa: BLE001  a case that cannot be made is a failure of its own
            check(False, "%s: %r" % (job, e))


def jobs():
    rng = random.Random(O.seed)
    for k in range(O.count or 1):
        for i, name in enumerate(refined.KINDS):
            if O.only and O.only != name:
                continue
            ranks = O.ranks or ((2, 3, 4)[(i + k) % 3] if O.count else (2, 4)[i % 2])
            seed = O.seed * 1000 + k
            yield name, ranks, seed, None
            faults = [f for f in refined.FAULTS if refined.make(name, ranks, seed, f)]
            for f in faults if O.count else rng.sample(faults, min(2, len(faults))):
                yield name, ranks, seed, f


def main():
    global O
    a = argparse.ArgumentParser(description="inferred relations")
    a.add_argument("--isomer", default=os.path.join(ROOT, "build", "isomer"))
    a.add_argument("--count", type=int, default=0)
    a.add_argument("--seed", type=int, default=1)
    a.add_argument("--only")
    a.add_argument("--ranks", type=int)
    a.add_argument("--jobs", type=int, default=1)
    O = a.parse_args()
    with ThreadPoolExecutor(O.jobs) as pool:
        list(pool.map(one, list(jobs())))
    print("faulty pairs by status: %s" % dict(sorted(COUNTS.items())))
    print("%d passed, %d failed" % tuple(TALLY))
    return 1 if TALLY[1] else 0


if __name__ == "__main__":
    sys.exit(main())
