#!/usr/bin/env python3
"""An attacker who has read docs/certificate.md: certificates of pairs that are not equal, and
claims that are raised. Plain Python 3.

    tests/cli/attack.py [--isomer build/isomer] [--checker build/tests/check/checker] [--seed 1]
                        [--count 120] [--only NAME]

A pair of the first kind computes one value where it was captured, and others elsewhere (its truth
is known by its making: a threshold, a bound, a literal, a place). Its certificate joins the two by
one false rule, or by a step of another kind, spelled in some way: names, order, conditions,
evidence, sides. None may hold. A certificate of the second kind is of a pair that is equal: what it
claims is raised, or it is made unreadable; it may hold only at the strength that the comparison
found. The last line is `N passed, N failed`."""

import argparse
import copy
import hashlib
import json
import os
import random
import struct
import subprocess
import sys
import tempfile

from harness import call_node, capture_document, write_tensors

HERE = os.path.dirname(os.path.abspath(__file__))
WHERE = tempfile.TemporaryDirectory()
ROOT = os.path.dirname(os.path.dirname(HERE))
STRENGTH = {"assumed": 0, "tested": 1, "proved": 2, "certified": 3}


# Arguments that complete a call.
DEFAULTS = {
    "aten::elu": [1, 1, 1],
    "aten::celu": [1],
    "aten::add.Tensor": [1],
    "aten::sub.Tensor": [1],
    "aten::mean.dim": [None],
}


def ref(id):
    return {"ref": id}


class Capture:
    """Nodes of one side, written as docs/capture-format.md says."""

    def __init__(self):
        self.nodes, self.weights, self.inputs = [], {}, {}

    def leaf(self, id, kind, dtype, shape, values):
        code, letter = {
            "float32": ("F32", "f"),
            "float16": ("F16", "e"),
            "int64": ("I64", "q"),
            "bool": ("BOOL", "?"),
        }[dtype]
        data = (code, shape, struct.pack("<%d%s" % (len(values), letter), *values))
        self.nodes.append(
            {"id": id, "op": kind, "name": id, "outputs": [{"shape": shape, "dtype": dtype}]}
        )
        (self.inputs if kind == "input" else self.weights)[id] = data

    def op(self, id, op, args, shape, dtype="float32"):
        self.nodes.append(call_node(id, op, args, shape, dtype))

    def write(self):
        path = tempfile.mkdtemp(dir=WHERE.name)
        doc = capture_document(self.nodes)
        with open(os.path.join(path, "graph.json"), "w") as f:
            json.dump(doc, f)
        write_tensors(os.path.join(path, "weights.safetensors"), self.weights)
        write_tensors(os.path.join(path, "inputs.safetensors"), self.inputs)
        return path


def text_of(term):
    """A term as the rule language has it: a name, a literal, or (op, arguments)."""
    if isinstance(term, tuple):
        return "(" + " ".join([term[0]] + [text_of(x) for x in term[1:]]) + ")"
    if isinstance(term, list):
        return "(list " + " ".join(map(text_of, term)) + ")"
    if isinstance(term, bool):
        return "true" if term else "false"
    if isinstance(term, float):
        return repr(term)
    if term is None:
        return "none"
    if isinstance(term, dict):
        return term["dtype"]
    return str(term)


class Pair:
    """x (and w) in, y out: `sides` are terms over "x" and "w", whose values at `x` are the same."""

    def __init__(
        self,
        name,
        sides,
        shape,
        x,
        w=None,
        dtype="float32",
        out=None,
        out_dtype="float32",
        between=None,
    ):
        self.name, self.sides, self.shape, self.x, self.w, self.dtype = (
            name,
            sides,
            shape,
            x,
            w,
            dtype,
        )
        self.out, self.out_dtype, self.between = out or shape, out_dtype, between or {}
        self.leaves = ["x"] + (["w"] if w is not None else [])
        self.path = [self.capture(s) for s in sides]

    def capture(self, side):
        c = Capture()
        c.leaf("x", "input", self.dtype, self.shape, self.x)
        if self.w is not None:
            c.leaf("w", "parameter", "float32", *self.w)
        self.count = 0

        def add(t, top):
            if not isinstance(t, tuple):
                return ref(t) if isinstance(t, str) and t in self.leaves else t
            args = [add(a, False) for a in t[1:]]
            id = "y" if top else "n%d" % self.count
            self.count += 1
            shape, dtype = (
                (self.out, self.out_dtype)
                if top
                else self.between.get(t[0], (self.shape, "float32"))
            )
            c.op(id, t[0], args, shape, dtype)
            return ref(id)

        add(side, True)
        return c.write()


def controls(rng):
    """Equal by their making: the same machinery joins them, and what it writes holds."""
    xs, n = [round(rng.uniform(-5, 5), 3) for _ in range(4)], 4
    yield Pair("twice", (("aten::relu", ("aten::relu", "x")), ("aten::relu", "x")), [n], xs)
    yield Pair(
        "half",
        (("aten::mul.Scalar", ("aten::mul.Scalar", "x", 4.0), 0.25), ("aten::alias", "x")),
        [n],
        xs,
    )
    yield Pair(
        "order",
        (("aten::add.Tensor", "x", "w"), ("aten::add.Tensor", "w", "x")),
        [n],
        xs,
        w=([n], xs),
    )
    yield Pair(
        "mean",
        (
            ("aten::mul.Scalar", ("aten::mean.dim", "x", [0], True), 2.0),
            ("aten::mean.dim", ("aten::mul.Scalar", "x", 2.0), [0], True),
        ),
        [n],
        xs,
        out=[1],
        between={"aten::mean.dim": ([1], "float32")},
    )
    yield Pair("back", (("aten::t", ("aten::t", "x")), ("aten::alias", "x")), [2, 2], xs)


def pairs(rng):
    """False by their making; what they are captured on does not show it."""
    n = 4

    def num(lo, hi):
        return round(rng.uniform(lo, hi), 3)

    t = num(0.3, 3.0)
    xs = [num(-5, 5) for _ in range(n)]
    off = [v for v in xs if abs(v - t) > 0.01] or [t + 1]
    off = (off * n)[:n]
    pos = [num(0.1, 4) for _ in range(n)]
    cond = lambda op: ("aten::where.ScalarOther", (op, "x", t), "x", 0.0)
    gates = {"aten::gt.Scalar": ([n], "bool"), "aten::ge.Scalar": ([n], "bool")}
    yield Pair(
        "threshold", (cond("aten::gt.Scalar"), cond("aten::ge.Scalar")), [n], off, between=gates
    )
    big = float(rng.choice([1e3, 1e5, 1e9, 1e18, 12345.678, 1e30]))
    yield Pair("bound", (("aten::clamp", "x", -big, big), ("aten::mul.Scalar", "x", 1.0)), [n], xs)
    yield Pair("lower bound", (("aten::clamp", "x", -big, None), ("aten::alias", "x")), [n], xs)
    yield Pair("relu", (("aten::relu", "x"), ("aten::alias", "x")), [n], pos)
    for op, args in (("elu", []), ("celu", []), ("hardshrink", [0.6]), ("threshold", [0.0, 0.0])):
        # Those that the checker evaluates have a definition there; of these only other values tell.
        yield Pair(
            op, (("aten::" + op, "x", *args), ("aten::alias", "x")), [n], [v + 0.7 for v in pos]
        )
    yield Pair("abs", (("aten::abs", "x"), ("aten::alias", "x")), [n], pos)
    eps = rng.choice([1e-5, 1e-6, 1e-8])

    def norm(e):
        return (
            "aten::mul.Tensor",
            "x",
            (
                "aten::rsqrt",
                (
                    "aten::add.Scalar",
                    ("aten::mean.dim", ("aten::mul.Tensor", "x", "x"), [0], True),
                    e,
                    1,
                ),
            ),
        )

    small = {
        "aten::mean.dim": ([1], "float32"),
        "aten::add.Scalar": ([1], "float32"),
        "aten::rsqrt": ([1], "float32"),
    }
    yield Pair("eps", (norm(eps), norm(eps / 10)), [n], [1e3 * v for v in pos], between=small)
    s = num(0.2, 3)
    yield Pair(
        "scale", (("aten::mul.Scalar", "x", s), ("aten::mul.Scalar", "x", s * (1 + 3e-8))), [n], xs
    )
    whole = [float(rng.randrange(-5, 6)) for _ in range(n)]
    yield Pair("floor", (("aten::floor", "x"), ("aten::trunc", "x")), [n], [abs(v) for v in whole])
    yield Pair(
        "round",
        (("aten::round", "x"), ("aten::floor", ("aten::add.Scalar", "x", 0.5, 1))),
        [n],
        [v + 0.25 for v in whole],
    )
    yield Pair("whole", (("aten::ceil", "x"), ("aten::alias", "x")), [n], whole)
    yield Pair(
        "absorbed",
        (
            ("aten::sub.Scalar", ("aten::add.Scalar", "x", 1e20, 1), 1e20, 1),
            ("aten::mul.Scalar", "x", 0.0),
        ),
        [n],
        xs,
    )
    same = [num(-2, 2)] * n
    yield Pair(
        "largest",
        (("aten::amax", "x", [0], True), ("aten::mean.dim", "x", [0], True)),
        [n],
        same,
        out=[1],
    )
    yield Pair(
        "first",
        (("aten::slice.Tensor", "x", 0, 0, 2, 1), ("aten::slice.Tensor", "x", 0, 2, 4, 1)),
        [n],
        same,
        out=[2],
    )
    yield Pair("flip", (("aten::flip", "x", [0]), ("aten::alias", "x")), [n], same)
    sym = [1.0, 2.0, 2.0, 3.0]
    yield Pair(
        "transposed",
        (("aten::mm", "x", "w"), ("aten::mm", "x", ("aten::t", "w"))),
        [2, 2],
        xs,
        w=([2, 2], sym),
    )
    yield Pair(
        "other norm",
        (("aten::mul.Tensor", "x", "w"), ("aten::alias", "x")),
        [n],
        xs,
        w=([n], [1.0] * n),
    )
    yield Pair(
        "bias",
        (("aten::add.Tensor", "x", "w"), ("aten::sub.Tensor", "x", "w")),
        [n],
        xs,
        w=([n], [0.0] * n),
    )
    yield Pair("gelu", (("aten::mul.Scalar", "x", 0.5), ("aten::alias", "x")), [n], [0.0] * n)
    ids = [rng.randrange(0, 500) for _ in range(n)]
    yield Pair(
        "integers",
        (("aten::ge.Scalar", "x", 512), ("aten::gt.Scalar", "x", 512)),
        [n],
        ids,
        dtype="int64",
        out_dtype="bool",
    )
    yield Pair(
        "integers far",
        (("aten::clamp", "x", 0, 100000), ("aten::clamp", "x", 0, 99999)),
        [n],
        ids,
        dtype="int64",
        out_dtype="int64",
    )
    far = num(60, 90)
    yield Pair(
        "rare",
        (
            (
                "aten::where.ScalarOther",
                ("aten::gt.Scalar", ("aten::mul.Tensor", "x", "x"), far),
                "x",
                1.0,
            ),
            (
                "aten::where.ScalarOther",
                ("aten::gt.Scalar", ("aten::mul.Tensor", "x", "x"), far + 0.001),
                "x",
                1.0,
            ),
        ),
        [n],
        xs,
        between=gates,
    )
    yield Pair(
        "observed nowhere",
        (
            ("aten::mul.Tensor", "x", ("aten::gt.Scalar", "x", 0.0)),
            ("aten::mul.Tensor", "x", ("aten::gt.Scalar", "x", 1e-7)),
        ),
        [n],
        xs,
        between={"aten::gt.Scalar": ([n], "bool")},
    )
    yield from rarely(rng, n, xs)


def rarely(rng, n, xs):
    """False where several things happen at once, or far from what was captured."""

    def flag(of, at, op="aten::gt.Scalar"):
        return ("aten::to.dtype", (op, of, at), {"dtype": "float32"})

    def both(a, b):
        total = ("aten::add.Tensor", a, b)
        return total, ("aten::add.Tensor", total, ("aten::mul.Tensor", a, b))

    truth = {"aten::gt.Scalar": ([n], "bool"), "aten::lt.Scalar": ([n], "bool")}
    a, b = flag("x", rng.uniform(30, 90)), flag("w", -rng.uniform(30, 90), "aten::lt.Scalar")
    yield Pair("flags", both(a, b), [n], xs, w=([n], [-v for v in xs]), between=truth)

    def band(of, at):
        away = ("aten::abs", ("aten::sub.Tensor", of, round(at, 2)))
        return flag(away, rng.choice([0.05, 0.02]), "aten::lt.Scalar")

    a, b = band("x", rng.uniform(6, 9)), band("w", rng.uniform(-9, -6))
    yield Pair("bands", both(a, b), [n], xs, w=([n], xs), between=truth)
    fill = float(rng.choice([1e3, 1e4, 65504.0, 1e6]))
    for op, by in (("aten::amax", -fill), ("aten::amin", fill)):
        small = {op: ([1], "float32"), "aten::constant_pad_nd": ([n + 1], "float32")}
        padded = (op, ("aten::constant_pad_nd", "x", [0, 1], by), [0], True)
        yield Pair("filled " + op, ((op, "x", [0], True), padded), [n], xs, out=[1], between=small)
    steps = (
        "aten::sub.Tensor",
        ("aten::slice.Tensor", "x", 0, 1, n, 1),
        ("aten::slice.Tensor", "x", 0, 0, n - 1, 1),
    )
    some = {k: ([n - 1], "float32") for k in ("aten::slice.Tensor", "aten::sub.Tensor")}
    some["aten::constant_pad_nd"] = ([n], "float32")
    padded = ("aten::amax", ("aten::constant_pad_nd", steps, [0, 1], -fill), [0], True)
    whole = ("aten::amax", steps, [0], True)
    yield Pair("filled steps", (whole, padded), [n], xs, out=[1], between=some)
    ids = rng.sample(range(500), n)
    first, then = (v for v in rng.sample(range(500, 900), 2))
    a = ("aten::slice.Tensor", flag("x", first, "aten::eq.Scalar"), 0, 0, n - 1, 1)
    b = ("aten::slice.Tensor", flag("x", then, "aten::eq.Scalar"), 0, 1, n, 1)
    some = {k: ([n - 1], "float32") for k in ("aten::slice.Tensor", "aten::add.Tensor")}
    some.update({"aten::mul.Tensor": ([n - 1], "float32"), "aten::eq.Scalar": ([n], "bool")})
    yield Pair("in a row", both(a, b), [n], ids, dtype="int64", out=[n - 1], between=some)
    put, summed = (
        (op, ("aten::mul.Scalar", "w", 0.0), 0, "x", ("aten::slice.Tensor", "w", 0, 0, n, 1))
        for op in ("aten::index_copy", "aten::index_add")
    )
    some = {"aten::mul.Scalar": ([9], "float32"), "aten::slice.Tensor": ([n], "float32")}
    ids, w = rng.sample(range(9), n), ([9], [rng.uniform(-2, 2) for _ in range(9)])
    yield Pair("twice", (put, summed), [n], ids, w=w, dtype="int64", out=[9], between=some)


# ---- how a false rule is spelled ----

NAMES = [
    "x",
    "w",
    "a",
    "zz",
    "input",
    "v1",
    "x_",
    "QQQ",
    "lhs0",
    "n",
    "h",
    "k9",
    "\u00e9",
    "x.y",
    "_t",
]


def renamed(t, to):
    if isinstance(t, tuple):
        return (t[0],) + tuple(renamed(a, to) for a in t[1:])
    if isinstance(t, list):
        return [renamed(a, to) for a in t]
    return to.get(t, t) if isinstance(t, str) else t


def spelled(rng, p, swap):
    """The false rule as text, with its variables in the order in which they are declared."""
    names = rng.sample(NAMES[:12], len(p.leaves))
    to = dict(zip(p.leaves, names))
    order = list(p.leaves)
    rng.shuffle(order)
    kind = {"float32": "f", "int64": "i"}[p.dtype]

    def sizes(leaf):
        shape = p.shape if leaf == "x" else p.w[0]
        return "(" + " ".join(map(str, shape)) + ")"

    decl = ["(var %s %s %s)" % (to[l], kind if l == "x" else "f", sizes(l)) for l in order]
    sides = [text_of(renamed(s, to)) for s in p.sides]
    if swap:
        sides.reverse()
    extra = rng.choice(
        [
            "",
            "",
            "(where (= 1 1))",
            "(where (>= 2 1) (< 0 5))",
            "(float exact)",
            "(literals read)",
            "(where (not (= 1 2)))",
        ]
    )
    evidence = rng.choice(
        [
            '(evidence tested "these shapes")',
            '(evidence proved "these shapes")',
            '(evidence proved "all shapes")',
            '(evidence tested "these shapes")',
        ]
    )
    head = "(rule %s " % rng.choice(["r", "id-view", "proved", "x" * 40, "add-zero", "rule"])
    parts = (
        decl
        + ["(lhs %s)" % sides[0], "(rhs %s)" % sides[1]]
        + ([extra] if extra else [])
        + [evidence]
    )
    return head + " ".join(parts) + ")", order, "proved" if "proved" in evidence else "tested"


class Forgery:
    def __init__(self, p):
        self.p, self.terms, self.steps, self.rules, self.fixed = p, [], [], [], []

    def term(self, t):
        self.terms.append(t)
        return len(self.terms) - 1

    def call(self, t, leaves):
        """A term of the certificate's own."""
        if not isinstance(t, tuple):
            return {"ref": leaves[t]} if isinstance(t, str) and t in leaves else t
        args = [self.call(a, leaves) for a in t[1:]] + DEFAULTS.get(t[0], [])
        return {"ref": self.term({"op": t[0], "args": args})}

    def document(self, evidence, outputs):
        def files(path):
            return {
                n: hashlib.sha256(open(os.path.join(path, n), "rb").read()).hexdigest()
                for n in sorted(os.listdir(path))
            }

        return {
            "format": "isomer-certificate",
            "version": 1,
            "left": {"model": "m", "files": files(self.p.path[0])},
            "right": {"model": "m", "files": files(self.p.path[1])},
            "evidence": evidence,
            "fixed": self.fixed,
            "terms": self.terms,
            "steps": self.steps,
            "rules": self.rules,
            "outputs": [{"left": "out", "right": "out", "terms": outputs}],
        }


def by_rule(rng, p):
    """The outputs joined by the false rule, in one step or with its other side as a call of the
    certificate's own."""
    f = Forgery(p)
    left = {l: f.term({"left": l}) for l in p.leaves}
    right = {l: f.term({"right": l}) for l in p.leaves}
    yl, yr = f.term({"left": "y"}), f.term({"right": "y"})
    for l in p.leaves:
        f.steps.append({"leaf": [right[l], left[l]]})
    swap = rng.random() < 0.5
    text, order, claim = spelled(rng, p, swap)
    f.rules.append(text)
    base, at, mine = (1, right, yr) if swap else (0, left, yl)
    other = f.call(p.sides[1 - base], at)["ref"]
    f.steps.append({"rule": 0, "vars": [at[l] for l in order], "terms": [mine, other]})
    end = yl if swap else yr
    # The calls of the other side, one by one, on equal leaves.
    f.steps.append({"same": [other, end]})
    chain = []

    def same(t, top):
        if isinstance(t, tuple):
            for a in t[1:]:
                same(a, False)
            if not top:
                chain.append(t)

    same(p.sides[1 - base], True)
    side = "right" if not swap else "left"
    own = [i for i, t in enumerate(f.terms) if "op" in t and i != other]
    joins = [
        {"same": [i, f.term({side: "n%d" % k})]} for k, i in zip(post_order(p.sides[1 - base]), own)
    ]
    f.steps[-1:] = joins + f.steps[-1:]
    return f.document(rng.choice([claim, claim, "proved", "certified"]), [yl, yr])


def post_order(side):
    """Numbers of the inner calls as Pair.capture gives them: arguments first."""
    out, count = [], [0]

    def walk(t, top):
        if not isinstance(t, tuple):
            return
        for a in t[1:]:
            walk(a, False)
        if not top:
            out.append(count[0])
        count[0] += 1

    walk(side, True)
    return out


def by_step(rng, p):
    """No rule: the outputs are said to be equal by a step of another kind, with inputs kept fixed
    or not."""
    f = Forgery(p)
    yl, yr = f.term({"left": "y"}), f.term({"right": "y"})
    for l in p.leaves:
        f.steps.append({"leaf": [f.term({"right": l}), f.term({"left": l})]})
    if rng.random() < 0.6:
        f.fixed = [{"left": "x"}, {"right": "x"}]
    f.steps.append(
        {rng.choice(["value", "same", "mask", "bound", "leaf"]): rng.choice([[yl, yr], [yr, yl]])}
    )
    return f.document(rng.choice(["proved", "tested", "certified"]), [yl, yr])


def true_pairs(rng, n):
    all = list(controls(rng))
    for k in range(n):
        p = all[k % len(all)]
        doc = by_rule(rng, p)
        doc["rules"][0] = (
            doc["rules"][0].split("(evidence")[0] + '(evidence proved "these shapes"))'
        )
        doc["evidence"] = "proved"
        yield "control: %s %d" % (p.name, k), p.path, json.dumps(doc), "holds"


def false_pairs(rng, n):
    all = list(pairs(rng))
    for k in range(n):
        p = all[k % len(all)]
        doc = by_step(rng, p) if rng.random() < 0.2 else by_rule(rng, p)
        yield "%s %d" % (p.name, k), p.path, json.dumps(doc), None


# ---- claims that are raised, of pairs that are equal ----


def used_rules(doc):
    return sorted({s["rule"] for s in doc["steps"] if "rule" in s})


def drop_condition(rng, doc):
    i = rng.randrange(len(doc["rules"]))
    at = doc["rules"][i].find("(where")
    if at < 0:
        return False
    depth, end = 0, at
    while True:
        depth += {"(": 1, ")": -1}.get(doc["rules"][i][end], 0)
        end += 1
        if depth == 0:
            break
    doc["rules"][i] = doc["rules"][i][:at] + doc["rules"][i][end:]


def weaken_condition(rng, doc):
    i = rng.randrange(len(doc["rules"]))
    if "(where" not in doc["rules"][i]:
        return False
    doc["rules"][i] = (
        doc["rules"][i].replace("(= ", "(<= ", 1)
        if rng.random() < 0.5
        else doc["rules"][i].replace("(>= ", "(!= ", 1)
    )


def raise_rule(rng, doc):
    i = rng.randrange(len(doc["rules"]))
    doc["rules"][i] = (
        doc["rules"][i]
        .replace("(evidence tested", "(evidence proved")
        .replace("these shapes", "all shapes")
        .replace("these ranks", "all shapes")
    )


def claim_certified(rng, doc):
    doc["rules"] = [r.replace("(evidence proved", "(evidence certified") for r in doc["rules"]]


def other_substitution(rng, doc):
    s = rng.choice([s for s in doc["steps"] if "rule" in s])
    if not s["vars"]:
        return False
    s["vars"][rng.randrange(len(s["vars"]))] = rng.randrange(len(doc["terms"]))


def swap_sides(rng, doc):
    s = rng.choice([s for s in doc["steps"] if "rule" in s])
    s["terms"].reverse()


def exchange_rules(rng, doc):
    a, b = rng.randrange(len(doc["rules"])), rng.randrange(len(doc["rules"]))
    doc["rules"][a], doc["rules"][b] = doc["rules"][b], doc["rules"][a]
    return a != b


def obligations(rng, doc):
    doc["obligations"] = [["(assert false)\n(check-sat)\n"] for _ in doc["rules"]]


def seeds(rng, doc):
    doc[rng.choice(["seed", "samples", "tolerance"])] = rng.randrange(1 << 40)


def leave_out(rng, doc):
    for _ in range(rng.randrange(1, 4)):
        doc["steps"].pop(rng.randrange(len(doc["steps"])))


def relation(rng, doc):
    leaves = [s for s in doc["steps"] if "leaf" in s]
    a, b = rng.sample(leaves, 2) if len(leaves) > 1 else (None, None)
    if not a:
        return False
    a["leaf"][0], b["leaf"][0] = b["leaf"][0], a["leaf"][0]


def kind_of_step(rng, doc):
    s = rng.choice([s for s in doc["steps"] if "leaf" in s or "value" in s or "same" in s])
    (key,) = s
    s[rng.choice([k for k in ("leaf", "value", "same", "mask", "bound") if k != key])] = s.pop(key)


def digest(rng, doc):
    side = rng.choice(["left", "right"])
    name = rng.choice(sorted(doc[side]["files"]))
    doc[side]["files"][name] = rng.choice(
        ["", "0" * 64, doc[side]["files"][name].upper(), doc[side]["files"][name][:-1]]
    )


def outputs(rng, doc):
    o = doc["outputs"][0]
    rng.choice(
        [
            lambda: o["terms"].reverse(),
            lambda: o.update(left="nothing"),
            lambda: doc.update(outputs=[]),
            lambda: doc["outputs"].append(dict(o)),
            lambda: o["terms"].__setitem__(1, o["terms"][0]),
        ]
    )()


def raise_whole(rng, doc):
    doc["evidence"] = rng.choice(["certified", "proved", "Certified", "certified ", "proven"])


def huge(rng, doc):
    s = rng.choice([s for s in doc["steps"] if "rule" not in s])
    (key,) = s
    s[key][0] = rng.choice(
        [
            1 << 70,
            -1,
            1e300,
            len(doc["terms"]),
            1 << 32,
            (1 << 32) + s[key][0],
            True,
            None,
            str(s[key][0]),
            0.0,
        ]
    )


def fix_more(rng, doc):
    tokens = [t for t in doc["terms"] if "op" not in t]
    doc["fixed"].append(rng.choice(tokens))


def text_tricks(rng, text):
    trick = rng.randrange(6)
    if trick == 0:
        return text.replace('"evidence"', '"evidence": "certified", "evidence"', 1)
    if trick == 1:
        return text.replace('"steps": [', '"steps": [NaN, ', 1)
    if trick == 2:
        return text.replace('"version": 1', '"version": 1.0', 1)
    if trick == 3:
        return text + "\x00" + text
    if trick == 4:
        return text.replace('"left"', '"l\\u0065ft\\u0000"', 1)
    return text.replace('"terms"', '"terms\\u0000"', 1)


CHANGES = [
    drop_condition,
    weaken_condition,
    raise_rule,
    claim_certified,
    other_substitution,
    swap_sides,
    exchange_rules,
    obligations,
    seeds,
    leave_out,
    relation,
    kind_of_step,
    digest,
    outputs,
    raise_whole,
    huge,
    fix_more,
]
HONEST = [("gpt2-2l/hf-sdpa", "gpt2-2l/vllm"), ("llama-2l/hf-sdpa", "llama-2l/vllm")]


def run(*args):
    p = subprocess.run(
        [O.isomer] + list(args),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        timeout=300,
    )
    return p.returncode, (p.stdout or p.stderr).decode("utf-8", "replace").strip()


def raised_claims(rng, n):
    made = []
    for k, (left, right) in enumerate(HONEST):
        path = [os.path.join(ROOT, "models", s) for s in (left, right)]
        out = os.path.join(WHERE.name, "honest%d.json" % k)
        status, text = run("compare", *path, "-q", "--certificate", out)
        assert status == 0, text
        made.append((path, open(out).read(), text.rsplit("[", 1)[1].rstrip("]")))
    k = 0
    while k < n:
        path, text, truth = made[k % len(made)]
        doc = json.loads(text)
        if rng.random() < 0.15:
            forged, name = text_tricks(rng, text), "text"
        else:
            change = rng.choice(CHANGES)
            if change(rng, doc) is False:
                continue
            forged, name = json.dumps(doc), change.__name__
        k += 1
        if forged != text:
            yield "%s %d" % (name, k), path, forged, truth


# ---- the pairs of models/ that hold a bug ----


def faulty(rng, n):
    """The certificate of the correct pair, of the faulty one: with its files, and what is another
    node there said to be equal by whatever step."""
    found = []
    for family in ("gpt2-2l", "llama-2l"):
        folder = os.path.join(ROOT, "models", family)
        bugs = sorted(x for x in os.listdir(folder) if "bug" in x)
        path = [os.path.join(folder, x) for x in ("hf-sdpa", "vllm")]
        out = os.path.join(WHERE.name, family + ".json")
        run("compare", *path, "-q", "--certificate", out)
        found += [(path[0], os.path.join(folder, b), path[1], json.load(open(out))) for b in bugs]
    for k in range(n):
        left, bug, good, doc = copy.deepcopy(found[k % len(found)])
        names = [
            x
            for x in sorted(os.listdir(bug))
            if x in ("graph.json", "weights.safetensors") or x.startswith("inputs")
        ]
        doc["right"]["files"] = {
            x: hashlib.sha256(open(os.path.join(bug, x), "rb").read()).hexdigest() for x in names
        }
        was, now = (
            {x["id"]: x for x in json.load(open(os.path.join(p, "graph.json")))["nodes"]}
            for p in (good, bug)
        )
        doc["terms"] = [
            t
            if t.get("right", None) is None or t["right"] in now
            else {"right": rng.choice(sorted(now))}
            for t in doc["terms"]
        ]
        other = [
            i
            for i, t in enumerate(doc["terms"])
            if "right" in t and was.get(t["right"]) != now.get(t["right"])
        ]
        for i in other if rng.random() < 0.8 else []:
            doc["steps"].insert(
                rng.randrange(len(doc["steps"]) + 1),
                {rng.choice(["same", "value", "leaf"]): [i, rng.randrange(len(doc["terms"]))]},
            )
        if rng.random() < 0.5:
            doc["steps"].append(
                {rng.choice(["same", "value", "leaf", "mask"]): list(doc["outputs"][0]["terms"])}
            )
        else:
            rule = (
                '(rule %s (var x f _) (var y f _) (lhs x) (rhs y) (evidence proved "all shapes"))'
                % rng.choice(NAMES[:12])
            )
            doc["rules"].append(rule)
            doc["steps"].append(
                {
                    "rule": len(doc["rules"]) - 1,
                    "vars": list(doc["outputs"][0]["terms"]),
                    "terms": list(doc["outputs"][0]["terms"]),
                }
            )
        yield "faulty %s %d" % (os.path.basename(bug), k), [left, bug], json.dumps(doc), None


# ---- a prover that lies ----


def liar(path, text):
    """Outcome and reason of the checker where every rule is proved, and z3 answers for each."""
    where = os.path.join(WHERE.name, "liar.json")
    with open(where, "w") as f:
        f.write(text)
    p = subprocess.run(
        [O.checker, *path, "--liar"],
        input=where.encode() + b"\n",
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        timeout=300,
    )
    return p.stdout.decode("utf-8", "replace").strip() or "2 " + p.stderr.decode("utf-8", "replace")


def lies(rng, n):
    """The false rule of each pair, and true ones: what the prover says does not count."""
    yield from true_pairs(rng, 5)
    all = list(pairs(rng))
    for k in range(n):
        p = all[k % len(all)]
        doc = by_rule(rng, p)
        doc["rules"] = [r.replace("(evidence tested", "(evidence proved") for r in doc["rules"]]
        doc["evidence"] = rng.choice(["proved", "certified"])
        yield "%s %d" % (p.name, k), p.path, json.dumps(doc), None


def against_a_liar(rng, n, tally):
    by = {"the rule": 0, "other values": 0, "the form": 0}
    for name, path, text, truth in lies(rng, n):
        if O.only and O.only not in name:
            continue
        said = liar(path, text)
        fine = said.startswith("0") if truth else said[:1] in "123"
        tally[not fine] += 1
        how = (
            "the rule"
            if " is false: " in said
            else "other values"
            if "on other inputs" in said
            else "the form"
        )
        by[how] += not truth
        if not fine or O.verbose:
            word = "FAILED" if not fine else "as it should be:"
            print("%s liar, %s: %s" % (word, name, said[:200]), flush=True)
    if O.summary:
        print("a prover that lies: refused by " + ", ".join("%s %d" % x for x in by.items()))


def main():
    tally, refused = [0, 0], {}
    rng = random.Random(O.seed)
    share = max(1, O.count // 4)
    for name, path, text, truth in [
        *true_pairs(rng, 10),
        *false_pairs(rng, O.count - 2 * share),
        *raised_claims(rng, share),
        *faulty(rng, share),
    ]:
        if O.only and O.only not in name:
            continue
        where = os.path.join(WHERE.name, "forged.json")
        with open(where, "w") as f:
            f.write(text)
        status, said = run(
            "check", where, *path, *(["--seed", str(O.check_seed)] if O.check_seed else [])
        )
        last = said.rsplit("\n", 1)[-1]
        fine = status in (1, 2, 3) and (status != 2 or said.count("\n") == 0)
        if truth == "holds":
            fine = status == 0
        elif status == 0 and truth is not None:  # equal in truth: no stronger than it is
            fine = STRENGTH[last.rsplit("[", 1)[1].rstrip("]")] <= STRENGTH[truth]
        tally[not fine] += 1
        key = "%s: %s" % (
            status,
            " ".join(w for w in last.split() if not any(c.isdigit() for c in w))[:70],
        )
        refused[key] = refused.get(key, 0) + 1
        if not fine:
            print("FAILED %s: status %d: %s" % (name, status, last[:300]), flush=True)
            if O.keep:
                kept = os.path.join(O.keep, name.replace(" ", "-") + ".json")
                with open(kept, "w") as f:
                    f.write(text)
                print("  kept: %s %s" % (kept, " ".join(path)))
        elif O.verbose:
            print("%s: %d %s" % (name, status, last[:160]))
    if os.path.exists(O.checker):
        against_a_liar(random.Random(O.seed + 1), max(30, O.count // 4), tally)
    if O.summary:
        for key, n in sorted(refused.items(), key=lambda x: -x[1]):
            print("%4d %s" % (n, key))
    print("%d passed, %d failed" % tuple(tally))
    return tally[1] > 0


if __name__ == "__main__":
    a = argparse.ArgumentParser()
    a.add_argument("--isomer", default=os.path.join(ROOT, "build", "isomer"))
    a.add_argument("--checker", default=os.path.join(ROOT, "build", "tests", "check", "checker"))
    a.add_argument("--seed", type=int, default=1)
    a.add_argument("--check-seed", type=int, default=0, help="the checker's own")
    a.add_argument("--count", type=int, default=120)
    a.add_argument("--only")
    a.add_argument("--keep", help="a folder for what was accepted")
    a.add_argument("--summary", action="store_true")
    a.add_argument("-v", "--verbose", action="store_true")
    O = a.parse_args()
    sys.argv = sys.argv[:1]
    sys.exit(main())
