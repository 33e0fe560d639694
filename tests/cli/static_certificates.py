#!/usr/bin/env python3
"""Certificates of compare --static: they hold for the captures that were compared, and no forged
one does. What is forged: relations of leaves, the learned pair's certificate, digests (so that a
faulty capture stands in the place of the one that was compared), steps and rules.

    tests/cli/static_certificates.py [--isomer build/isomer] [--only NAME]

The last line is `N passed, N failed`."""

import copy
import hashlib
import json
import os
import random
import sys
import tempfile

from harness import expect, isomer, run_functions, short
from static import FAULTS, LARGE, PLAIN, SMALL, decoder, drawn, read_tensors, write, write_tensors

HOLDS, REFUSED, MALFORMED, UNPROVED = 0, 1, 2, 3


def certified(d, small, both):
    """The certificate of a comparison, and that of the pair that was learned from."""
    path = os.path.join(d, "c.json")
    got = isomer("compare", "--static", "--learn", *small, *both, "--certificate", path, "-q")
    expect(got.status == 0, "not equivalent: %d: %s", got.status, short(got.out or got.err))
    with open(path, encoding="utf-8") as f:
        return json.load(f)


def checked(d, certificate, both, small=None, learned=None, name="f"):
    path = os.path.join(d, name + ".json")
    with open(path, "w", encoding="utf-8") as f:
        json.dump(certificate, f)
    with open(os.path.join(d, name + ".learned.json"), "w", encoding="utf-8") as f:
        if learned is None:
            with open(os.path.join(d, "c.learned.json"), encoding="utf-8") as own:
                f.write(own.read())
        else:
            json.dump(learned, f)
    return isomer("check", path, *both, *(["--learn", *small] if small else []), "-q")


def digests(folder):
    out = {}
    for name in ("graph.json", "weights.safetensors", "inputs.safetensors"):
        path = os.path.join(folder, name)
        if os.path.exists(path):
            with open(path, "rb") as f:
                out[name] = hashlib.sha256(f.read()).hexdigest()
    return out


def made_for(certificate, both):
    """The certificate with these captures' digests."""
    out = copy.deepcopy(certificate)
    for side, folder in zip(("left", "right"), both):
        out[side]["files"] = digests(folder)
    return out


def leaf_steps(certificate):
    return [i for i, s in enumerate(certificate["steps"]) if "leaf" in s]


def pairs(d, l, r, bare, fault=None, at=0, name="large"):
    return write(
        d, name, lambda g: decoder(g, LARGE, l), lambda g: decoder(g, LARGE, r, fault, at), bare
    )


def learned_pair(d, l, r):
    return write(d, "small", lambda g: decoder(g, SMALL, l), lambda g: decoder(g, SMALL, r), False)


FUSED = dict(PLAIN, norm="mul", fused=True, turned=True)
UNFUSED = dict(PLAIN, norm="mul")


def test_what_was_compared():
    """Drawn spellings, without values and with them; relations that were learned need the pair."""
    for seed in range(2):
        rng = random.Random(seed)
        with tempfile.TemporaryDirectory() as d:
            l, r = drawn(rng), drawn(rng)
            small = learned_pair(d, l, r)
            both = pairs(d, l, r, True)
            c = certified(d, small, both)
            for given in (None, small):
                got = checked(d, c, both, given)
                expect(got.status == HOLDS, "seed %d: %s", seed, short(got.out or got.err))
    for bare in (True, False):
        with tempfile.TemporaryDirectory() as d:
            small = learned_pair(d, UNFUSED, FUSED)
            both = pairs(d, UNFUSED, FUSED, bare)
            c = certified(d, small, both)
            got = checked(d, c, both, small)
            expect(got.status == HOLDS, "fused, %s: %s", bare, short(got.out or got.err))
            got = checked(d, c, both)
            expect(got.status == UNPROVED, "fused, %s, alone: %d", bare, got.status)
            expect(b"--learn" in got.out, "%s", short(got.out))
            del c["static"]
            got = checked(d, c, both, small)
            expect(not bare or got.status != HOLDS, "said to have been run: %d", got.status)


def test_leaves():
    """Every relation of leaves, put onto another leaf: none holds."""
    rng = random.Random(5)
    for l, r in ((UNFUSED, dict(PLAIN, norm="pow")), (UNFUSED, FUSED)):
        with tempfile.TemporaryDirectory() as d:
            small = learned_pair(d, l, r)
            both = pairs(d, l, r, True)
            c = certified(d, small, both)
            steps = leaf_steps(c)
            for i in rng.sample(steps, min(5, len(steps))):
                for j in rng.sample(steps, 2):
                    if i == j:
                        continue
                    f = copy.deepcopy(c)
                    a, b = f["steps"][i]["leaf"], f["steps"][j]["leaf"]
                    a[1], b[1] = b[1], a[1]
                    got = checked(d, f, both, small)
                    expect(got.status in (REFUSED, UNPROVED), "%s, %s: %d", a, b, got.status)
                f = copy.deepcopy(c)
                f["steps"].insert(i, copy.deepcopy(f["steps"][i]))
                got = checked(d, f, both, small)
                expect(got.status == REFUSED, "a leaf said twice: %d", got.status)


def parts_exchanged(c, leaf):
    """A fused leaf with its first two parts in the other order."""
    term = c["terms"][c["steps"][leaf]["leaf"][1]]
    if term.get("op") != "aten::cat":
        return False
    of = term["args"][0]
    of[0], of[1] = of[1], of[0]
    return True


def test_fused_parts():
    """The right side takes k for q and q for k. Its certificate has them exchanged in the fused
    leaf, too, so that its chain is whole: it is refused by the pair that was learned from, and not
    shown without it. Exchanged in that pair's certificate as well, this one is refused."""
    with tempfile.TemporaryDirectory() as d:
        small = learned_pair(d, UNFUSED, FUSED)
        c = certified(d, small, pairs(d, UNFUSED, FUSED, True))
        f = copy.deepcopy(c)
        some = [i for i in leaf_steps(f) if parts_exchanged(f, i)]
        expect(len(some) == LARGE["layers"], "%d leaves are fused", len(some))
        both = [os.path.join(d, "large", side) for side in ("left", "right")]
        for given in (None, small):
            got = checked(d, f, both, given)
            expect(got.status == (REFUSED if given else UNPROVED), "exchanged: %d", got.status)
            expect(b"is neither said by" in got.out, "%s", short(got.out))
        with open(os.path.join(d, "c.learned.json"), encoding="utf-8") as own:
            learned = json.load(own)
        for i in leaf_steps(learned):
            parts_exchanged(learned, i)
        got = checked(d, f, both, small, learned)
        expect(got.status == REFUSED, "exchanged in both: %d", got.status)


def changed(rng, c):
    """A small change of a certificate."""
    f = copy.deepcopy(c)
    steps = f["steps"]
    i = rng.randrange(len(steps))
    how = rng.randrange(6)
    if how == 0:
        del steps[i]
    elif how == 1:
        j = rng.randrange(len(steps))
        steps[i], steps[j] = steps[j], steps[i]
    elif how == 2:
        key = next(iter(steps[i])) if "rule" not in steps[i] else "terms"
        steps[i][key][rng.randrange(2)] = rng.randrange(len(f["terms"]))
    elif how == 3 and "rule" in steps[i]:
        steps[i]["rule"] = rng.randrange(len(f["rules"]))
    elif how == 4 and steps[i].get("vars"):
        steps[i]["vars"][0] = rng.randrange(len(f["terms"]))
    else:
        k = rng.randrange(len(f["terms"]))
        args = f["terms"][k].get("args", [])
        if args and args[0] != [] and isinstance(args[0], dict) and "ref" in args[0] and k > 0:
            args[0] = {"ref": rng.randrange(k)}
    return f


def test_faulty_captures():
    """A certificate of the right pair, with the digests of a faulty one and changes of its own."""
    rng = random.Random(11)
    l, r = UNFUSED, dict(PLAIN, norm="pow")
    with tempfile.TemporaryDirectory() as d:
        small = learned_pair(d, l, r)
        c = certified(d, small, pairs(d, l, r, True))
        for fault in FAULTS:
            both = pairs(d, l, r, True, fault, rng.randrange(1, LARGE["layers"]), fault)
            got = checked(d, c, both, small)
            expect(got.status == REFUSED, "%s: other files: %d", fault, got.status)
            for k in range(4):
                f = made_for(changed(rng, c) if k else c, both)
                got = checked(d, f, both, small)
                expect(got.status != HOLDS, "%s, change %d: it holds", fault, k)


def test_checkpoints():
    """Where both have weights their bytes count, whatever the names say."""
    with tempfile.TemporaryDirectory() as d:
        small = learned_pair(d, UNFUSED, FUSED)
        both = pairs(d, UNFUSED, FUSED, False)
        c = certified(d, small, both)
        path = os.path.join(both[1], "weights.safetensors")
        tensors = read_tensors(path)
        for name in ("layers.2.qkv", "layers.1.down", "layers.4.o"):
            kind, shape, data = tensors[name]
            write_tensors(path, dict(tensors, **{name: (kind, shape, b"\0" * 4 + data[4:])}))
            got = checked(d, made_for(c, both), both, small)
            expect(got.status == REFUSED, "%s: %d", name, got.status)
            expect(b"its values differ" in got.out, "%s: %s", name, short(got.out))


if __name__ == "__main__":
    sys.exit(
        run_functions(
            [],
            [
                test_what_was_compared,
                test_leaves,
                test_fused_parts,
                test_faulty_captures,
                test_checkpoints,
            ],
        )
    )
