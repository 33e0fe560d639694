"""Captures and certificates written by hand, and what becomes of them (forged.py)."""

import hashlib
import json
import os
import struct
import tempfile

from harness import call_node, capture_document, expect, isomer, short, write_tensors

CODE = {
    "float32": ("F32", "f"),
    "int64": ("I64", "q"),
    "bool": ("BOOL", "?"),
    "float16": ("F16", "e"),
}
WHERE = tempfile.TemporaryDirectory()
HOLDS, REFUSED = 0, 1


def ref(id):
    return {"ref": id}


def flat(x):
    return [z for y in x for z in flat(y)] if isinstance(x, list) else [x]


def shape(x):
    return [len(x)] + (shape(x[0]) if x else []) if isinstance(x, list) else []


def tensor(dtype, values):
    code, letter = CODE[dtype]
    return code, shape(values), struct.pack("<%d%s" % (len(flat(values)), letter), *flat(values))


class Capture:
    def __init__(self, name):
        self.path, self.nodes, self.weights, self.sets = (
            os.path.join(WHERE.name, name),
            [],
            {},
            [{}],
        )

    def leaf(self, id, kind, dtype, values, *further):
        """`further`: an input's values in further sets."""
        self.nodes.append(
            {
                "id": id,
                "op": kind,
                "name": id,
                "outputs": [{"shape": shape(values), "dtype": dtype}],
            }
        )
        if kind != "input":
            self.weights[id] = tensor(dtype, values)
            return
        for k, v in enumerate((values,) + further):
            self.sets += [{}] * (k + 1 - len(self.sets))
            self.sets[k] = dict(self.sets[k], **{id: tensor(dtype, v)})

    def op(self, id, op, args, shape, dtype="float32"):
        self.nodes.append(call_node(id, op, args, shape, dtype))

    def write(self, out="y"):
        os.makedirs(self.path, exist_ok=True)
        doc = capture_document(self.nodes, out)
        with open(os.path.join(self.path, "graph.json"), "w") as f:
            json.dump(doc, f)
        write_tensors(os.path.join(self.path, "weights.safetensors"), self.weights)
        for k, s in enumerate(self.sets):
            write_tensors(
                os.path.join(self.path, "inputs.%d.safetensors" % k if k else "inputs.safetensors"),
                s,
            )
        return self.path


def two(build):
    """The captures build(c, 0) and build(c, 1)."""
    out = []
    for side in (0, 1):
        where = tempfile.mkdtemp(dir=WHERE.name)
        c = Capture(where)
        build(c, side)
        out.append(c.write())
    return out


class Certificate:
    def __init__(self, left, right, fixed=()):
        self.sides, self.fixed, self.terms, self.steps, self.rules = (
            (left, right),
            list(fixed),
            [],
            [],
            [],
        )

    def term(self, t):
        self.terms.append(t)
        return len(self.terms) - 1

    def left(self, *ids):
        return (
            [self.term({"left": i}) for i in ids] if len(ids) > 1 else self.term({"left": ids[0]})
        )

    def right(self, *ids):
        return (
            [self.term({"right": i}) for i in ids] if len(ids) > 1 else self.term({"right": ids[0]})
        )

    def call(self, op, *args):
        return self.term({"op": op, "args": list(args)})

    def rule(self, text):
        self.rules.append(text)
        return len(self.rules) - 1

    def apply(self, rule, vars, first, second, **names):
        self.steps.append(
            {
                "rule": rule,
                "vars": vars,
                "terms": [first, second],
                **({"names": names} if names else {}),
            }
        )

    def step(self, kind, *pairs):
        for a, b in pairs:
            self.steps.append({kind: [a, b]})

    def check(self, a, b, status, mentions="", evidence="proved", change=None):
        """As the output `a` of the left and `b` of the right; `change` changes the document."""

        def files(p):
            return {
                n: hashlib.sha256(open(os.path.join(p, n), "rb").read()).hexdigest()
                for n in sorted(os.listdir(p))
            }

        doc = {
            "format": "isomer-certificate",
            "version": 1,
            "left": {"model": "m", "files": files(self.sides[0])},
            "right": {"model": "m", "files": files(self.sides[1])},
            "evidence": evidence,
            "fixed": self.fixed,
            "terms": self.terms,
            "steps": self.steps,
            "rules": self.rules,
            "outputs": [{"left": "out", "right": "out", "terms": [a, b]}],
        }
        if change:
            change(doc)
        path = os.path.join(WHERE.name, "c.json")
        with open(path, "w") as f:
            json.dump(doc, f)
        r = isomer("check", path, *self.sides)
        text = (r.out or r.err).decode("utf-8", "replace")
        expect(
            r.status == status and mentions in text,
            "status %d, expected %d (%s): %s",
            r.status,
            status,
            mentions,
            short(text[-300:]),
        )
        return text


def compared(left, right, status):
    for a, b in ((left, right), (right, left)):
        r = isomer("compare", a, b, "-q")
        expect(
            r.status == status,
            "compare: status %d, expected %d: %s",
            r.status,
            status,
            short((r.out or r.err).decode("utf-8", "replace")),
        )
