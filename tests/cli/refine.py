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
import dsl  # noqa: E402
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


W = dsl.values("w", 6, 8)


def two_ranks(g, how):
    """Gradients of two ranks that have rows of the batch each, and what becomes of them."""
    x = g.x(4, 8)
    w = [g.param("rank%d.w" % r, W) for r in range(2)]
    rows = [x.slice(0, 2 * r, 2 * r + 2) for r in range(2)]
    y = [v.linear(u) for v, u in zip(rows, w)]
    d = [a.t().mm(v) for a, v in zip(y, rows)]
    whole = d[0].op("dist::all_reduce", [d, "sum"])
    shards = d[0].several("dist::reduce_scatter", [d, "sum", 0], [(3, 8)] * 2, ["float32"] * 2)
    d = {"none": d, "reduced": [whole] * 2, "scattered": shards, "one": [whole, d[1]]}[how]
    return {**refined.of_ranks("grad_w", d), **refined.of_ranks("y", y)}


def parts(name, y):
    """Its columns on two ranks."""
    return {name + r: y.slice(1, 3 * k, 3 * k + 3) for k, r in enumerate(("", "_rank1"))}


def names_count(pair, plain):
    """An output is made of what has its name; replicas that are too small are no parts of a sum."""
    sides = lambda g: (g.x(4, 6).sin(), g.x(4, 6).cos())
    caches = lambda g: dict(zip("kv", sides(g)))
    kept = lambda g: {**parts("k", sides(g)[0]), **parts("v", sides(g)[1])}
    crossed = lambda g: {**parts("k", sides(g)[1]), **parts("v", sides(g)[0])}
    other = lambda g: {"y": g.x(4, 8).linear(g.param("w", W)).mul(1.5), **aside(g)}
    aside = lambda g: {"debug": g.x(4, 8).linear(g.param("w", W))}
    small = lambda g: {n: g.x(4, 8).linear(g.param("w", W)).mul(0.5) for n in ("y", "y_rank1")}
    ranked = lambda g: {n: g.x(4, 6).sin() for n in ("y", "y_rank1")}
    unequal = lambda g: {"y": g.x(4, 6).sin(), "y_rank1": g.x(4, 6).cos()}
    for what, left, right, expected in (
        ("names kept", caches, kept, 0),
        ("names crossed", caches, crossed, 1),
        ("right under another name", plain, other, 1),
        ("replicas of half", plain, small, 1),
        ("ranks on both sides", ranked, ranked, 0),
        ("one rank wrong", ranked, unequal, 1),
    ):
        status, _, says = pair(left, right, "--refine")
        check(status == expected, "%s: %d %s" % (what, status, says))
    status, _, says = pair(caches, kept, "--refine", "--timeout", "0.000001")
    check(
        status == 3 and says == "isomer: UNDECIDED: the time limit was reached",
        "no time: %d %s" % (status, says),
    )


def crossed_certificate(where):
    """A certificate that takes the parts of one output for another's is refused: by a forger's
    relations everything may be equal. What a user says to the checker is another matter."""
    sides = lambda g: (g.x(4, 6).sin(), g.x(4, 6).cos())
    caches = lambda g: dict(zip("kv", sides(g)))
    other_names = lambda g: dict(zip(("a", "b"), sides(g)))
    crossed = lambda g: {**parts("k", sides(g)[1]), **parts("v", sides(g)[0])}
    twice = lambda g: parts("z", sides(g)[0])
    both_sines = lambda g: {"k": g.x(4, 6).sin(), "v": g.x(4, 6).sin()}
    whole = "output %s = cat([%s, %s_rank1], 1)\n"
    for what, left, right, said, bare in (
        ("crossed", caches, crossed, {"k": "v", "v": "k"}, 1),
        ("other names", other_names, crossed, {"a": "v", "b": "k"}, 0),
        ("parts of one for two", both_sines, twice, {"k": "z", "v": "z"}, 1),
    ):
        a = refined.write(os.path.join(where, "left"), left)
        b = refined.write(os.path.join(where, "right"), right)
        cert, expect = os.path.join(where, "c.json"), os.path.join(where, "expected")
        with open(expect, "w") as f:
            f.write("".join(whole % (k, v, v) for k, v in said.items()))
        status, _, says = compare(where, a, b, "--expect", expect, "--certificate", cert)
        check(status == 0, "%s: %d %s" % (what, status, says))
        if status == 0:
            status, out, err = run("check", cert, a, b)
            check(status == bare, "%s: certificate: %d %s%s" % (what, status, out[-200:], err))
            status, out, err = run("check", cert, a, b, "--relations", expect)
            check(status == 0, "%s: both: %d %s%s" % (what, status, out[-200:], err))


def turned(pair):
    """A square output that stands transposed: clean, and surprising; without --refine a fault."""
    square = lambda g: g.x(4, 8).linear(g.param("w", W.rows(0, 4)))
    sides = lambda g: {"y": square(g)}, lambda g: {"y": square(g).t()}
    status, doc, says = pair(*sides, "--refine")
    mine = doc["refinement"]
    check(status == 0 and found(doc) == {"y": ["transpose(y, 0, 1)"]}, "turned: %s" % says)
    check(all(r["clean"] and r["surprising"] for r in mine), "turned: %s" % mine)
    status, doc, says = pair(*sides)
    check(status == 1, "turned, and nothing asked: %d %s" % (status, says))


SQUARE = dsl.values("w", 8, 8)


def outside(pair):
    """Four ranks hold rows of a weight that was cut for the inner group first: what they make of
    these stands in that order, and only if they were given them so."""

    def ranks(order, made):
        def build(g):
            w = [
                g.param("rank%d.w" % r, SQUARE.rows(2 * k, 2 * k + 2)) for r, k in enumerate(order)
            ]
            y = [v.sin() for v in w]
            return refined.of_ranks("y", [y[k] for k in made])

        return build

    left = lambda g: {"y": g.param("w", SQUARE).sin()}
    straight, mesh = (0, 1, 2, 3), (0, 2, 1, 3)
    for what, order, made, expected in (
        ("in the order of ranks", straight, straight, 0),
        ("in the order of a mesh", mesh, straight, 0),
        ("two ranks in each other's place", straight, mesh, 1),
        ("ranks of a mesh in each other's place", mesh, (1, 0, 2, 3), 1),
    ):
        status, _, says = pair(left, ranks(order, made), "--refine")
        check(status == expected, "%s: %d %s" % (what, status, says))


def roles(where):
    """Outputs that ranks hold in surprising ways, are left over, or have no counterpart."""

    def left(g):
        x, w = g.x(4, 8), g.param("w", W)
        return {"grad_w": x.linear(w).t().mm(x), "y": x.linear(w)}

    def pair(l, r, *more):
        a = refined.write(os.path.join(where, "left"), l)
        b = refined.write(os.path.join(where, "right"), r)
        return compare(where, a, b, *more)

    rows = "cat([%s, %s_rank1], 0)"
    for how, want, relations, why in (
        ("reduced", 0, ["grad_w", "grad_w_rank1"], None),
        ("none", 0, ["sum([grad_w, grad_w_rank1])"], "an all_reduce is missing"),
        ("scattered", 0, [rows % ("grad_w", "grad_w")], "other parts of the gradient"),
        ("one", 1, [None], None),
    ):
        status, doc, says = pair(left, lambda g: two_ranks(g, how), "--refine")
        mine = [r for r in doc["refinement"] if r["output"] == "grad_w"]
        check(status == want, "gradient, %s: %d %s" % (how, status, says))
        check([r["relation"] for r in mine] == relations, "gradient, %s: %s" % (how, mine))
        check(
            all(why in r["surprising"] if why else not r["surprising"] for r in mine),
            "gradient, %s: %s" % (how, mine),
        )
        status, doc, says = pair(left, lambda g: two_ranks(g, how))
        check(status == (0 if how in ("reduced", "scattered") else 1), "%s: %s" % (how, says))
        check([r["relation"] for r in doc["refinement"]][-1] == rows % ("y", "y"), "%s, y" % how)
    plain = lambda g: {"y": g.x(4, 8).linear(g.param("w", W))}
    status, doc, says = pair(plain, lambda g: {"z": g.x(4, 8).slice(0, 0, 3).slice(1, 0, 5)})
    check(status == 1 and "no right output has it" in doc["divergences"][0]["hint"], says)
    check(doc["refinement"][0]["relation"] is None, "nothing: %s" % doc["refinement"])
    half = lambda g: {"y": g.x(4, 8).linear(g.param("rank0.w", W.rows(0, 3)))}
    status, doc, says = pair(plain, half, "--refine")
    check(status == 1 and not doc["refinement"][0]["clean"], "half of it: %d %s" % (status, says))
    names_count(pair, plain)
    flat = lambda g: {"y": g.x(4, 8).linear(g.param("w", W)).reshape(2, 12)}
    status, doc, says = pair(plain, flat)
    check(status == 0 and found(doc) == {"y": ["reshape(y, [4, 6])"]}, "flat: %s" % says)
    turned(pair)
    outside(pair)
    mean = lambda g: {"loss": g.x(4, 8).mean([0, 1])}
    halves = lambda g: {
        "loss_rank%d" % r: g.x(4, 8).slice(0, 2 * r, 2 * r + 2).mean([0, 1]) for r in range(2)
    }
    status, doc, says = pair(mean, halves)
    check(
        status == 1
        and doc["refinement"]
        == [
            {
                "output": "loss",
                "relation": "0.5 * sum([loss_rank0, loss_rank1])",
                "clean": False,
                "surprising": "a scale of 0.5 is left over",
            }
        ],
        "a mean of means: %d %s" % (status, doc["refinement"]),
    )
    for name, fault, words in (
        ("feed_forward", "no collective", "an all_reduce is missing here"),
        ("rows_reduced", "other rank's", "rank 1 holds 0 to"),
    ):
        left_of, right_of, _ = refined.make(name, 2, 1000, fault)
        status, doc, says = pair(left_of, right_of)
        hints = [d["hint"] or "" for d in doc["divergences"]]
        check(status == 1 and any(words in h for h in hints), "%s: %s" % (fault, hints))
    expected = os.path.join(where, "expected")
    for text, want in (
        ("output y = y\n", 1),
        ("output y = reshape(y, [4, 6])\n", 0),
        ("output y = t(y)\n", 1),
        ("output nay = y\n", 2),
        ("", 0),
    ):
        with open(expected, "w") as f:
            f.write(text)
        status, doc, says = pair(plain, flat, "--expect", expected)
        check(status == want, "expecting %r: %d %s" % (text, status, says))


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
    with tempfile.TemporaryDirectory(prefix="isomer-refine-") as where:
        roles(where)
        crossed_certificate(where)
    with ThreadPoolExecutor(O.jobs) as pool:
        list(pool.map(one, list(jobs())))
    print("faulty pairs by status: %s" % dict(sorted(COUNTS.items())))
    print("%d passed, %d failed" % tuple(TALLY))
    return 1 if TALLY[1] else 0


if __name__ == "__main__":
    sys.exit(main())
