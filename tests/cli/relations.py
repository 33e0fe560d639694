#!/usr/bin/env python3
"""End-to-end tests of --relations: outputs in other layouts and in parts, outputs left out, leaves
pinned and forbidden, what is refused.

    tests/cli/relations.py [--isomer build/isomer]

The last line is `N passed, N failed`."""

import argparse
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "tests", "pairs"))
import dsl  # noqa: E402

TALLY = [0, 0]
STATUS = {"equivalent": 0, "different": 1, "undecided": 3}


def check(ok, what):
    TALLY[not ok] += 1
    if not ok:
        print("FAILED " + what, flush=True)


class Graph(dsl.Graph):
    """A leaf that is asked for again is the same one."""

    def x(self, *shape):
        return self.once("x", lambda: super(Graph, self).x(*shape))

    def param(self, name, *shape, **how):
        return self.once(name, lambda: super(Graph, self).param(name, *shape, **how))

    def once(self, name, make):
        self.leaves = getattr(self, "leaves", {})
        if name not in self.leaves:
            self.leaves[name] = make()
        return self.leaves[name]


def write(folder, build):
    g = Graph()
    g.write(folder, build(g))
    return folder


class Pair:
    def __init__(self, where, left, right):
        self.where = where
        self.left, self.right = (
            write(os.path.join(where, "left"), left),
            write(os.path.join(where, "right"), right),
        )

    def run(self, text, *more, command=("compare",)):
        path = os.path.join(self.where, "rel.txt")
        report = os.path.join(self.where, "report.json")
        with open(path, "w") as f:
            f.write(text)
        if os.path.exists(report):
            os.remove(report)
        args = (
            list(command)
            + [self.left, self.right]
            + (["--relations", path] if text else [])
            + list(more)
        )
        if command[0] == "compare":
            args += ["--json", report, "--no-stats"]
        p = subprocess.run(
            [O.isomer] + args,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            timeout=300,
        )
        doc = json.load(open(report)) if os.path.exists(report) else None
        return p.returncode, doc, p.stdout.decode(), p.stderr.decode().replace(path, "rel.txt")

    def verdict(self, text, want, what, *more):
        status, doc, out, err = self.run(text, *more)
        check(
            status == STATUS[want] and doc and doc["verdict"] == want,
            "%s: %d, not %s: %s" % (what, status, want, err or out[-300:]),
        )
        return doc or {"outputs": [], "assumptions": [], "divergences": []}

    def refused(self, text, says, what):
        status, doc, out, err = self.run(text)
        check(
            status == 2 and err.count("\n") == 1 and says in err and not doc,
            "%s: %d %s" % (what, status, err or out[-200:]),
        )


def linear(g, name="w"):
    return g.x(4, 8).linear(g.param(name, 6, 8))


def memory(where):
    """What a certificate leaves out is no replica of a left output, and no memory of the model."""
    for extra in ("y_rank1", "updated.buffer.mean", "updated.grad.w"):
        p = Pair(
            where, lambda g: {"y": linear(g)}, lambda g: {"y_t": linear(g).t(), extra: g.x(4, 8)}
        )
        cert = os.path.join(where, "m.json")
        text = "output y = t(y_t)\noutput none = %s\n" % extra
        p.verdict(text, "equivalent", "left out by a file", "--certificate", cert)
        with open(cert) as f:
            forged = dict(json.load(f), relations=text.strip().split("\n"))
        with open(cert, "w") as f:
            json.dump(forged, f)
        status, _, out, err = p.run("", "--refine", command=("check", cert))
        fine = extra == "updated.grad.w"
        check(
            (status == 0) if fine else (status == 1 and "is not left out" in out + err),
            "%s is left out by a certificate: %d %s%s" % (extra, status, out[-300:], err),
        )


def outputs(where):
    p = Pair(
        where,
        lambda g: {"y": linear(g), "aux": g.x(4, 8).relu()},
        lambda g: {"y_t": linear(g).t(), "z": g.x(4, 8).relu(), "more": g.x(4, 8)},
    )
    _, doc, out, _ = p.run("")
    check(
        "UNDECIDED: no left output is made of the right's more," in out,
        "an output that the right alone has: %s" % out[-300:],
    )
    check(
        [(r["output"], r["relation"]) for r in doc["refinement"]]
        == [("y", "transpose(y_t, 0, 1)"), ("aux", "z")],
        "inferred relations: %s" % doc["refinement"],
    )
    check(
        any("right output more is left out" in a["text"] for a in doc["assumptions"]),
        "what nothing is made of is left out: %s" % doc["assumptions"],
    )
    p.verdict("output y = t(y_t)\noutput none = more", "equivalent", "the rest is inferred")
    p.verdict("output y = t(y_t)", "undecided", "the rest is inferred, and one is left")
    p.verdict("", "equivalent", "the left's outputs are all that --refine asks for", "--refine")
    p.refused("output y = t(y_t)\noutput aux = z", "cannot be paired", "three outputs for two")
    doc = p.verdict(
        "# all\noutput y = transpose(y_t, 0, 1) # a comment\noutput aux = z\noutput none = more\n",
        "equivalent",
        "transposed",
    )
    check(
        [(o["left"], o["relation"]) for o in doc["outputs"]]
        == [("y", "transpose(y_t, 0, 1)"), ("aux", "z")],
        "relations in the report: %s" % doc["outputs"],
    )
    check(
        any(
            a["kind"] == "definition" and "right output more is left out" in a["text"]
            for a in doc["assumptions"]
        ),
        "what is left out is assumed",
    )
    check(doc.get("relative_to") == [], "an output that is left out is no kernel")
    doc = p.verdict(
        'output aux = none\noutput none = more\noutput "y" = t(y_t)\noutput none = z',
        "equivalent",
        "left out",
    )
    check([o["left"] for o in doc["outputs"]] == ["y"], "one output is left")
    p.verdict(
        "output y = none\noutput none = y_t\noutput aux = more\noutput none = z",
        "different",
        "another output",
    )
    p.verdict(
        "output y = reshape(y_t, [4, 6])\noutput aux = z\noutput none = more",
        "different",
        "a reshape is no transpose",
    )
    cert = os.path.join(where, "c.json")
    good = "output y = permute(y_t, [1, 0])\noutput aux = z\noutput none = more\n"
    p.verdict(good, "equivalent", "permuted", "--certificate", cert)
    for text, want in (
        (good, 0),
        ("", 1),
        ("output y = t(y_t)\noutput aux = none\noutput none = z\noutput none = more\n", 1),
    ):
        status, _, out, err = p.run(text, command=("check", cert))
        check(status == want, "check with %r: %d %s%s" % (text, status, out[-200:], err))
    with open(cert) as f:
        forged = dict(json.load(f), relations=good.strip().split("\n"))
    with open(cert, "w") as f:
        json.dump(forged, f)
    status, _, out, err = p.run("", command=("check", cert))
    check(
        status == 1 and "as only a relations file may say" in out + err,
        "a certificate leaves an output out by itself: %d %s%s" % (status, out[-200:], err),
    )
    p.verdict("", "equivalent", "the left's outputs alone", "--refine", "--certificate", cert)
    given = open(cert).read()
    lines = json.loads(given)["relations"]
    y, aux, none = lines
    check(none == "output none = more", "what is left out stands in the certificate: %s" % lines)
    for changed, options, says in (
        (lines, ["--refine"], None),
        (lines, [], "as only a relations file may say, or --refine"),
        ([none, aux, y], ["--refine"], None),
        ([y, none], ["--refine"], 'may belong to "aux", of which no line speaks'),
        ([aux, none], ["--refine"], 'may belong to "y", of which no line speaks'),
        ([y, aux, none, "output aux = none"], ["--refine"], 'no output "none"'),
        ([y, aux, none, "output none = z"], ["--refine"], "is left out here, and used in"),
        ([y, aux], ["--refine"], "cannot be paired"),
    ):
        with open(cert, "w") as f:
            json.dump(dict(json.loads(given), relations=changed), f)
        status, _, out, err = p.run("", *options, command=("check", cert))
        check(
            status == (1 if says else 0) and (says or "HOLDS") in out + err,
            "check %s of %s: %d %s%s" % (options, changed, status, out[-300:], err),
        )
    for text, says in (
        (
            "output y = y_t\noutput aux = z\noutput none = more",
            'rel.txt:1: output "y" is [4, 6], what it should be equal to is [6, 4]',
        ),
        (
            "output y = t(y_t)\noutput y = none",
            'rel.txt:2: output "y" is left out here, and used in rel.txt:1',
        ),
        (
            "output none = z\noutput aux = z",
            'rel.txt:2: output "z" is used here, and left out in rel.txt:1',
        ),
        ("output nay = y_t", 'has no output "nay"'),
        ("output y = nay", 'has no output "nay"'),
        ("output y = t(y_t", '")" is expected'),
        ("output y = turn(y_t)", '"turn" is none of'),
        ("output y t", '"=" is expected'),
        ("outputs y = y_t", "rel.txt:1: a line begins with"),
        ("output y = t(y_t) z", "behind the relation"),
        ("output y = permute(y_t, [0, 0])", "every dimension once"),
        ("output y = reshape(y_t, [5, 5])", "24 elements are not 25"),
        ("output y = slice(y_t, 0, 0, 9)", "no part of size 6"),
        ("output y = unsqueeze(y_t, 9)", "no such dimension"),
        ("output y = cat([], 0)", "of nothing"),
        ("output y = cat([y_t, z], 0)", "another dimension"),
        ("output y = add(y_t, z)", "one shape"),
        ("output y = " + "t(" * 100 + "y_t", "too deep"),
        ('output y = "y_t', "does not end"),
        ("output y = transpose(y_t, 0, x)", "an integer is expected"),
        ("output y = none\noutput aux = none", "leave 0 outputs"),
        (
            (
                "output y = none\noutput aux = none\noutput none = y_t\noutput none = z\noutput "
                "none = more"
            ),
            "no output is left",
        ),
    ):
        p.refused(text, says, text[:60])
    status, _, _, err = p.run("output y = t(y_t)", "--relations", os.path.join(where, "missing"))
    check(status == 2 and "No such file" in err, "a missing file: %s" % err)


def parts(where):
    p = Pair(
        where,
        lambda g: {"y": linear(g)},
        lambda g: {
            "a": g.x(4, 8).linear(g.param("w", 6, 8).slice(0, 0, 2)),
            "b": g.x(4, 8).linear(g.param("w", 6, 8).slice(0, 2, 6)),
        },
    )
    p.verdict("output y = cat([a, b], 1)", "equivalent", "in parts")
    p.verdict("output y = cat([slice(b, 1, 0, 4), a], 1)", "different", "parts in another order")
    p = Pair(
        where,
        lambda g: {"y": linear(g)},
        lambda g: {
            "a": g.x(4, 8).slice(1, 0, 4).linear(g.param("w", 6, 8).slice(1, 0, 4)),
            "b": g.x(4, 8).slice(1, 4, 8).linear(g.param("w", 6, 8).slice(1, 4, 8)),
        },
    )
    p.verdict("output y = add(a, b)", "equivalent", "partial sums")
    p.verdict("output y = sum([a, b])", "equivalent", "partial sums, as a list")
    p.verdict("output y = add(a, a)\noutput none = b", "different", "one part twice")
    for text, says in (
        ("output y = sum([])", "of nothing"),
        ("output y = sum(a, b)", '"[" is expected'),
        ("output y = add(a)", '"," is expected'),
        ("output y = sum([a, slice(b, 0, 0, 2)])", "one shape"),
    ):
        p.refused(text, says, text)


def leaves(where):
    """Two norms' weights of equal values: names say one thing, the graphs another."""
    ones = lambda g, name: g.param(name, 8, at=1.0)
    p = Pair(
        where,
        lambda g: {"y": g.x(4, 8) * ones(g, "a") + ones(g, "b")},
        lambda g: {"y": g.x(4, 8) * ones(g, "b") + ones(g, "a")},
    )
    doc = p.verdict("leaf a = b\nleaf b = a\n", "equivalent", "pinned among ties")
    check(
        any("as was given" in a["text"] for a in doc["assumptions"]),
        "a pinned leaf says so: %s" % [a["text"] for a in doc["assumptions"]],
    )
    p.verdict("leaf a = a\nleaf b = b\n", "different", "pinned the other way")
    p.verdict("leaf a != a\nleaf b != b\n", "equivalent", "forbidden")
    status, doc, _, err = p.run("leaf a = none\n")
    check(
        status in (1, 3) and doc and doc["verdict"] != "equivalent",
        "related to nothing: %d %s" % (status, err),
    )
    p = Pair(
        where,
        lambda g: {"y": g.x(4, 8).linear(g.param("q", 6, 8))},
        lambda g: {"y": g.x(4, 8).mm(g.param("q", 6, 8).t())},
    )
    p.verdict("leaf q = q\ninput x = x", "equivalent", "pinned as it is")
    p.verdict("leaf q = q\nleaf q = q", "equivalent", "said twice")
    for text, says in (
        ("leaf q = t(q)", 'rel.txt:1: "q" is [6, 8], what it should be equal to is [8, 6]'),
        ("leaf q = reshape(t(q), [6, 8])", '"q" has other values: element'),
        ("leaf x = x", 'has no leaf "x"'),
        ("input q = q", 'has no input "q"'),
        ("leaf q = sum([q, q])", "sum is for outputs"),
        ("leaf q = q\nleaf q = none", 'rel.txt:2: this of "q" contradicts rel.txt:1'),
        ("leaf q = none\nleaf q = q", 'rel.txt:2: this of "q" contradicts rel.txt:1'),
        ("leaf q = q\nleaf q != q", 'rel.txt:2: this of "q" contradicts rel.txt:1'),
        ("leaf q != q\nleaf q = q", 'rel.txt:2: this of "q" contradicts rel.txt:1'),
        ("leaf q != t(q)", "a leaf is expected"),
        ("leaf q = p", 'has no leaf "p"'),
    ):
        p.refused(text, says, text)


def folds(where):
    """A file may say how a loader computed a parameter. A wrong computation is refused with its
    line."""
    w, s = dsl.values("w", 6, 8), dsl.values("s", 8)
    rows = [w.values[i * 8 + j] * s.values[j] for i in range(6) for j in range(8)]

    def trained(g):
        return {"y": (g.x(4, 8) * g.param("s", s)).linear(g.param("w", w))}

    def loaded(g):
        return {"y": g.x(4, 8).linear(g.param("w", dsl.Data((6, 8), rows)))}

    cert = os.path.join(where, "c.json")
    for left, right, line in (
        (loaded, trained, "leaf w = mul(w, s)"),
        (trained, loaded, "leaf mul(w, reshape(s, [1, 8])) = w"),
        (loaded, trained, "leaf w = mul(mul(w, 2), div(s, 2.0))  # in two steps"),
    ):
        p = Pair(where, left, right)
        doc = p.verdict(line + "\n", "equivalent", line, "--certificate", cert)
        kept = [a["text"] for a in doc["assumptions"] if a["kind"] in ("rounding", "leaf")]
        check(any("by value, off by at most" in a for a in kept), "it is assumed: %s" % kept)
        status, _, out, err = p.run(line + "\n", command=("check", cert))
        check(status == 0 and "off by at most" in out, "check: %d %s%s" % (status, out[-200:], err))
    p = Pair(where, loaded, trained)
    for text, says in (
        ("leaf w = mul(w, 2)", '"w" has other values than rounding explains'),
        ("leaf w = mul(w, add(s, 1e-5))", '"w" has other values than rounding explains'),
        ("leaf w = mul(w, t(w))", "rel.txt:1: mul: [6, 8] and [8, 6] do not fit"),
        ("leaf w = matmul(w, s)", 'rel.txt:1: "w" is [6, 8], what it should be equal to is [6]'),
        ("leaf w = mul(w", '"," is expected'),
        ("leaf w = mul(w, s) s", "something stands behind the relation"),
        ("leaf w = mul(w, nay)", 'has no leaf "nay"'),
        ("leaf w = node(nay)", 'has no operator "nay"'),
        ("leaf w = mul(w, s)\nleaf w = mul(w, s)", "rel.txt:2: "),
        ("leaf exp(w) = s", "what it should be equal to"),
        ("leaf mul(s, 1) = s", 'has no leaf "s"'),
    ):
        p.refused(text, says, text)


W = dsl.values("w", 8, 8)


def families(where):
    """Several lines about one leaf: replicas, other cuts, overlaps, padding; what they leave open
    is related by value, and nothing is drawn so that a line breaks."""

    def left(g):
        return {"y": g.x(4, 8).linear(g.param("w", W))}

    def cuts(*rows):
        """Leaves a, b, ... of these rows, and an output of each."""

        def right(g):
            x, out = g.x(4, 8), {}
            for r, (a, b) in enumerate(rows):
                y = x.linear(g.param("abcd"[r], W.pad(1).rows(a, b)))
                out["y_rank%d" % r if r else "y"] = y.slice(1, 0, min(b, 8) - a)
            return out

        return right

    cert = os.path.join(where, "c.json")
    four = cuts((0, 4), (4, 8), (0, 4), (4, 8))
    over = cuts((0, 6), (3, 8))
    whole = cuts((0, 8), (0, 8))
    padded = cuts((0, 3), (3, 6), (6, 9), (6, 9))
    apart = "output y = cat([y, slice(y_rank1, 1, 3, 5)], 1)\n"
    for name, right, text in (
        ("two cuts", four, "leaf w = cat([a, b], 0)\nleaf w = cat([c, d], 0)\n"),
        ("one cut", four, "leaf w = cat([a, b], 0)\n"),
        ("a right line", four, "leaf w = cat([a, b], 0)\nright c = a\n"),
        ("right lines alone", four, "right c = a\nright cat([b, d], 0) = cat([d, b], 0)\n"),
        (
            "an overlap",
            over,
            apart + "leaf w = cat([slice(a, 0, 0, 4), slice(b, 0, 1, 5)], 0)\n"
            "right slice(a, 0, 3, 6) = slice(b, 0, 0, 3)\n",
        ),
        ("an overlap, half said", over, apart + "leaf w = cat([a, slice(b, 0, 3, 5)], 0)\n"),
        (
            "an overlap, said on the right",
            over,
            apart + "right slice(a, 0, 3, 6) = slice(b, 0, 0, 3)\n",
        ),
        ("replicas", whole, "leaf w = a\nleaf w = b\n"),
        ("one replica", whole, "leaf w = b\n"),
        (
            "padding, twice",
            padded,
            "leaf w = slice(cat([a, b, c], 0), 0, 0, 8)\n"
            "leaf w = slice(cat([a, b, d], 0), 0, 0, 8)\n"
            "output y = cat([y, y_rank1, y_rank2], 1)\noutput y = cat([y, y_rank1, y_rank3], 1)\n",
        ),
    ):
        p = Pair(where, left, right)
        p.verdict(text, "equivalent", name, "--certificate", cert)
        status, _, out, err = p.run(text, command=("check", cert))
        check(status == 0, "%s: check: %d %s%s" % (name, status, out[-200:], err))
    p = Pair(where, left, whole)
    for text, says in (
        (
            "right a = slice(b, 0, 0, 4)",
            'rel.txt:1: right: what stands before "=" is float32 [8, 8]',
        ),
        ("right a = t(b)", 'rel.txt:1: "what stands before =" has other values'),
        ("leaf w = a\nleaf w = t(b)", 'rel.txt:1 and rel.txt:2: "w" has other values'),
        ("right a", '"=" is expected'),
        ("right a = nay", 'has no leaf "nay"'),
        ("right sum([a, b]) = a", "sum is for outputs"),
    ):
        p.refused(text, says, text)


def domains(where):
    """Padding is handled on the right only: where padding may come, they differ."""

    def left(g):
        return {"y": g.param("e", 16, 4).embedding(g.ints("ids", [5, 6, 7]))}

    def right(g):
        i = g.ints("ids", [5, 6, 7])
        return {"y": g.param("e", 16, 4).embedding(i).masked_fill(i.eq(9).unsqueeze(-1), 0.0)}

    p = Pair(where, left, right)
    doc = p.verdict("", "different", "padding may come")
    c = doc["counterexample"]
    check(
        c["redrawn"] and not c["redrawn_parameters"] and c["changed_elements"] == 1,
        "what was redrawn: %s" % c,
    )
    check(
        [(x["name"], x["value"]) for x in c["changed"]] == [("ids", 9.0)],
        "what matters: %s" % c["changed"],
    )
    status, _, out, _ = p.run("")
    check(
        "on redrawn inputs and the captured parameters\n  with ids[" in out
        and "inputs redrawn]" in out,
        "the text says so: %s" % out[-900:],
    )
    cert = os.path.join(where, "c.json")
    said = "input ids range 0 15, exclude 9 9 3  # a comment\ninput ids range -4 12\n"
    doc = p.verdict(said, "equivalent", "padding may not come", "--certificate", cert)
    check(
        any(
            a["kind"] == "range" and "from 0 to 12, without 3, 9" in a["text"]
            for a in doc["assumptions"]
        ),
        "it is assumed: %s" % doc["assumptions"],
    )
    for text, want in ((said, 0), ("", 1), ("input ids range 0 15\n", 1)):
        status, _, out, err = p.run(text, command=("check", cert))
        check(status == want, "check with %r: %d %s%s" % (text, status, out[-200:], err))
    p.verdict("input ids exclude 3", "different", "another one may not come")
    for text, says in (
        ("input ids range 0", "rel.txt:1: range LOWEST HIGHEST"),
        ("input ids range 3 1", "nothing is inside"),
        ("input ids exclude", "a number is expected"),
        ("input ids range 0 9 sideways", '"sideways"'),
        ("input ids mask", "is 5"),
        ("input ids distinct range 5 6", "3 distinct elements are wanted of 2"),
        ("input ids exclude 6", "element 1 (row-major) is 6"),
        ("input nay range 0 9", 'no input "nay"'),
        ("input ids range 0 9\ninput ids range 12 20", "rel.txt:2"),
        ("input ids range 0 nan", "a number is expected"),
        ("leaf e range 0 1", '"=" is expected'),
        ("input ids range 0 9007199254740993", "a number is expected"),
        ("input ids exclude 1" + "0" * 400, "a number is expected"),
    ):
        p.refused(text, says, text)


def main():
    global O
    a = argparse.ArgumentParser(description="--relations")
    a.add_argument("--isomer", default=os.path.join(ROOT, "build", "isomer"))
    O = a.parse_args()
    for part in (outputs, memory, parts, leaves, folds, families, domains):
        with tempfile.TemporaryDirectory(prefix="isomer-relations-") as where:
            part(where)
    print("%d passed, %d failed" % tuple(TALLY))
    return 1 if TALLY[1] else 0


sys.exit(main())
