#!/usr/bin/env python3
"""Certificates that read masks as minus infinity, written for pairs where that is another function,
and such ones with what they say of masks changed.

    tests/cli/forged_masks.py [--isomer build/isomer] [--only NAME] [SEED=N COUNT=N in the
    environment]

Two captures that are one graph with a finite mask and with an infinite one are joined node by node.
That is a proof exactly where every mask vanishes, in rows that keep an element, beside numbers far
from it. The last line is `N passed, N failed`."""

import hashlib
import json
import math
import os
import random
import sys
import tempfile

from harness import expect, isomer, run_functions, short

sys.path.insert(
    0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "pairs")
)
import masks
from dsl import *

SEED, COUNT = int(os.environ.get("SEED", 1)), int(os.environ.get("COUNT", 4))
HOLDS, REFUSED = 0, 1
WAYS = masks.REPLACES + ["filled, added", "chosen, added"]


def files(side):
    return {
        n: hashlib.sha256(open(os.path.join(side, n), "rb").read()).hexdigest()
        for n in sorted(os.listdir(side))
    }


def nodes(side):
    with open(os.path.join(side, "graph.json")) as f:
        return json.load(f)


def joined(left, right, read):
    """Each node of the left with the right's at its place."""
    docs, terms, steps = [nodes(left), nodes(right)], [], []
    at = {}
    for a, b in zip(docs[0]["nodes"], docs[1]["nodes"]):
        at[a["id"]] = [len(terms), len(terms) + 1]
        terms += [{"left": a["id"]}, {"right": b["id"]}]
        steps.append(
            {
                "leaf" if a["op"] in ("input", "parameter", "buffer", "constant") else "same": at[
                    a["id"]
                ]
            }
        )
    outputs = [
        {"left": a["name"], "right": b["name"], "terms": at[a["ref"]]}
        for a, b in zip(docs[0]["outputs"], docs[1]["outputs"])
    ]
    return {
        "format": "isomer-certificate",
        "version": 1,
        **({"masks_read": read} if read else {}),
        **{
            name: {"model": doc["model"], "files": files(side)}
            for name, doc, side in zip(("left", "right"), docs, (left, right))
        },
        "evidence": "proved",
        "fixed": [],
        "rules": [],
        "terms": terms,
        "steps": steps,
        "outputs": outputs,
    }


def check(doc, left, right):
    with tempfile.NamedTemporaryFile("w", suffix=".json") as f:
        json.dump(doc, f)
        f.flush()
        r = isomer("check", f.name, left, right)
    return r.status, (r.out or r.err).decode("utf-8", "replace")


def answers(doc, left, right, status, what):
    got, text = check(doc, left, right)
    expect(got == status, "%s: status %d, expected %d: %s", what, got, status, short(text[-300:]))
    if got == HOLDS and doc.get("masks_read"):
        expect("literal" in text, "%s: nothing is said of the masks: %s", what, short(text[-300:]))


def twins(rng, end, value=None, scale=1.0, wholly=False):
    """One graph with a finite mask and with an infinite one: (what it is, what is to be read, left,
    right)."""
    case, d, way = masks.Case(rng), rng.choice([f16, bf16, f32]), rng.choice(WAYS)
    if wholly:
        case.hide_a_row()
    finite = masks.LEAST[d] if value is None else value
    size = abs(masks.LEAST[d]) * scale if scale < 1 else 1.0

    def side(v):
        return lambda g: end(
            g, masks.put(g, masks.scores(g, case, d, size), case, v, way, "stored")
        )

    what = "%s %g by %s of %s" % (d, finite, way, case.which)
    return what, [d == f16, d != f16], Pair(what, DIFFERENT, "", side(finite), side(-math.inf))


def written(pair):
    folder = tempfile.mkdtemp(dir=WHERE.name)
    pair.write(folder)
    return os.path.join(folder, "left"), os.path.join(folder, "right")


WHERE = tempfile.TemporaryDirectory()


def forge(name, status, draw):
    for n in range(COUNT):
        rng = random.Random("%s %d %d" % (name, SEED, n))
        end, more = draw(rng)
        what, read, pair = twins(rng, end, **more)
        sides = written(pair)
        answers(joined(*sides, read), *sides, status, "%s: %s" % (n, what))
        answers(joined(*sides, None), *sides, REFUSED, "%d: %s, not read" % (n, what))
        answers(
            joined(*sides, [not x for x in read]),
            *sides,
            REFUSED,
            "%d: %s, the other read" % (n, what),
        )


def vanishing():
    """The forger's own proof, where it is one."""
    forge("vanishing", HOLDS, lambda rng: (masks.ENDS[rng.choice(sorted(masks.ENDS))], {}))


def seen():
    """Masks that go elsewhere too."""
    forge("seen", REFUSED, lambda rng: (masks.LEAKS[rng.choice(sorted(masks.LEAKS))], {}))


def whole_rows():
    """A row that keeps nothing."""
    forge(
        "whole rows",
        REFUSED,
        lambda rng: (
            masks.ENDS[rng.choice(sorted(set(masks.ENDS) - {"exponentials"}))],
            {"wholly": True},
        ),
    )


def weak():
    """Numbers that are no masks."""
    forge(
        "weak",
        REFUSED,
        lambda rng: (masks.ENDS["softmax"], {"value": rng.choice([-1e4, -3e4, -100.0])}),
    )


def near():
    """Numbers as large as the mask."""
    forge("near", REFUSED, lambda rng: (masks.ENDS["softmax"], {"scale": rng.choice([0.5, 0.9])}))


def changed():
    """Certificates of true pairs that need their masks read: what they say of them is left out, or
    exchanged."""
    tried = 0
    for n in range(COUNT):
        rng = random.Random("changed %d %d" % (SEED, n))
        name, expected, left, right = rng.choice([masks.read, masks.half])(rng, masks.Case(rng))
        sides = written(Pair(name, expected, "", left, right))
        path = os.path.join(WHERE.name, "changed.json")
        if isomer("compare", *sides, "-q", "--certificate", path).status != 0 or not os.path.exists(
            path
        ):
            continue
        with open(path) as f:
            doc = json.load(f)
        os.unlink(path)
        before, text = check(doc, *sides)
        expect(before == HOLDS, "%s: its own certificate: %s", name, short(text[-300:]))
        read = doc.pop("masks_read", None)
        for other in ([None] if read else []) + [
            r
            for r in ([True, False], [False, True], [True, True], [False, False])
            if read and r != read
        ]:
            status, says = check({**doc, **({"masks_read": other} if other else {})}, *sides)
            tried += 1
            expect(
                status in (HOLDS, REFUSED) and (status == REFUSED or "literal" in says),
                "%s: %s for %s: status %d: %s",
                name,
                other,
                read,
                status,
                short(says[-300:]),
            )
    expect(tried >= COUNT, "only %d were tried", tried)


if __name__ == "__main__":
    sys.exit(run_functions([], [vanishing, seen, whole_rows, weak, near, changed]))
