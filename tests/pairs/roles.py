#!/usr/bin/env python3
"""Data parallel steps on many ranks of one role, and the same with one rank that deviates.

    tests/pairs/roles.py [--isomer build/isomer] [--ranks 16] [--seed 1] [--count 6]
                         [--driver build/tests/capture/wrong_folds]

The pairs are those of parallel.py, backward, with the domain of the labels in the captures. The
right ones are `equivalent` [proved] by ranks that are decided once, which the report says. So
are steps whose ranks go through their rows in pieces. In each
of the others one rank, which is drawn, has another number in an operator, another operand, another
value of a leaf, or another's tensor in a collective: those are never equivalent, and without a
comparison of all ranks node by node some would be. Certificates of the right ones hold, and are
refused with another number of ranks, and where they are said to be of the others.

Written once for all ranks (version 3) a right pair gives the same, its certificate too, and is the
capture that it was made of. Ranks that deviate cannot be written so.

Of more ranks than are run when they are written once one has a stale parameter, in a place that is
drawn, and is found; and folds that are wrong on purpose are refused there as well.

Of data over tensor parallel (role_grid.py) the rows become one, and the report says which ranks
that are; their faults are never equivalent either.

The driver folds ranks wrongly on purpose, of the right pairs and of those of roles_wrong.py, and
running the ranks has to refuse it each time. The last line is `N passed, N failed`."""

import argparse
import hashlib
import json
import os
import random
import resource
import shutil
import struct
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, HERE)
sys.path.insert(0, os.path.dirname(HERE))
import one_role
import parallel
import role_grid
import roles_wrong
from tensors import read_tensors, write_tensors

VERDICT = {0: "equivalent", 1: "different", 2: "error", 3: "undecided"}


def load(folder):
    with open(os.path.join(folder, "graph.json")) as f:
        return json.load(f)


def save(folder, graph):
    with open(os.path.join(folder, "graph.json"), "w") as f:
        json.dump(graph, f)


def write(folder, model, ranks, layers=1, pieces=1, early=False, rows=0):
    """Widths are the same for any number of ranks, and the batch grows with it unless it is given.
    Each rank goes through its rows in pieces; the left one takes all rows at once."""
    c = parallel.Config(model, 2, layers)
    c.ranks, c.batch, c.length = ranks, rows or 2 * pieces * ranks, 4
    sides = []
    for n in (1, ranks):
        g = parallel.Named()
        how = (pieces, early) if n > 1 else (1, False)
        sides.append((g, parallel.data(g, c, n, True, False, *how)))
    parallel.write_sides(folder, *sides)
    for side in ("left", "right"):
        graph = load(os.path.join(folder, side))
        for n in graph["nodes"]:
            if n.get("name", "").split(".")[-1] == "labels":
                n["domain"] = {"range": [0, c.vocabulary - 1]}
        if side == "left":
            graph["outputs"] = [o for o in graph["outputs"] if "_rank" not in o["name"]]
        save(os.path.join(folder, side), graph)


def compare(isomer, left, right, seconds, *more):
    report = os.path.join(os.path.dirname(right), "report.json")
    if os.path.exists(report):
        os.unlink(report)
    p = subprocess.run(
        [isomer, "compare", left, right, "--refine", "--timeout", str(seconds), "--json", report]
        + list(more),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        universal_newlines=True,
    )
    said = {}
    if os.path.exists(report):
        with open(report) as f:
            said = json.load(f)
    return VERDICT.get(p.returncode, p.stdout), said


def once(said, ranks):
    """Whether the report says that the ranks were decided once."""
    words = "to rank%d." % (ranks - 1)
    return any(words in a["text"] for a in said.get("assumptions", []))


def refs(x):
    if isinstance(x, dict):
        return [x["ref"]] if "ref" in x else []
    if isinstance(x, list):
        return [r for e in x for r in refs(e)]
    return []


def owners(graph):
    """By node: the ranks whose leaves it depends on."""
    of = {}
    for n in graph["nodes"]:
        if "args" not in n:
            name = n["name"].split(".")[0]
            of[n["id"]] = {int(name[4:])} if name[:4] == "rank" and name[4:].isdigit() else set()
        else:
            of[n["id"]] = set().union(*[of[r] for r in refs(n["args"])])
    return of


def number(graph, weights, draw, r):
    """Another number: a real among the arguments, or the dimension of a sum."""
    of = owners(graph)
    found = [
        (n, i)
        for n in graph["nodes"]
        for i, a in enumerate(n.get("args", []))
        if of[n["id"]] == {r} and isinstance(a, float)
    ]
    if not found:
        return False
    n, i = draw.choice(found)
    n["args"][i] = n["args"][i] * 1.5 + 0.125
    return True


def operand(graph, weights, draw, r):
    """Another tensor of the same shape in the place of an operand: none of the same numbers, which
    the transpose of a transpose has, and none of several results."""
    of, shape = owners(graph), {n["id"]: n["outputs"][0] for n in graph["nodes"]}
    at = {n["id"]: k for k, n in enumerate(graph["nodes"])}

    def same_numbers(i):
        while graph["nodes"][at[i]]["op"].startswith("aten::transpose"):
            i = graph["nodes"][at[i]]["args"][0]["ref"]
        return i

    found = []
    for n in graph["nodes"]:
        for a in n.get("args", []) if n["op"] != "getitem" else []:
            if of[n["id"]] == {r} and isinstance(a, dict) and "ref" in a and "args" in n:
                mine = a["ref"]
                for m in graph["nodes"][: at[n["id"]]]:
                    same = shape[m["id"]] == shape[mine] and len(m["outputs"]) == 1
                    same = same and same_numbers(m["id"]) != same_numbers(mine)
                    if same and of[m["id"]] == {r} and "args" in m:
                        found.append((a, m["id"]))
    if not found:
        return False
    a, other = draw.choice(found)
    a["ref"] = other
    return True


def leaf(graph, weights, draw, r):
    """A parameter that is stale on one rank."""
    name = draw.choice(sorted(n for n in weights if n.startswith("rank%d." % r)))
    dtype, shape, data = weights[name]
    half = len(data) // 2
    half -= half % 8
    weights[name] = (dtype, shape, data[half:] + data[:half])
    return weights[name][2] != data


def collective(graph, weights, draw, r):
    """A collective that takes a neighbour's tensor for that of the rank."""
    found = [n for n in graph["nodes"] if n["op"].startswith("dist::")]
    if not found:
        return False
    args = draw.choice(found)["args"][0]
    args[r] = args[r - 1]
    return True


def output(graph, weights, draw, r):
    """One rank gives another tensor than it has computed."""
    mine = [o for o in graph["outputs"] if o["name"].endswith("_rank%d" % r)]
    shape = {n["id"]: n["outputs"][0] for n in graph["nodes"]}
    o = draw.choice(mine)
    other = [p["ref"] for p in mine if shape[p["ref"]] == shape[o["ref"]] and p["ref"] != o["ref"]]
    if not other:
        return False
    o["ref"] = draw.choice(other)
    return True


def slices(graph, owner):
    """Where the rank takes a piece of its rows."""
    leaves = {n["id"] for n in graph["nodes"] if "args" not in n}
    of = owners(graph)
    cut = [n for n in graph["nodes"] if n["op"] == "aten::slice.Tensor" and of[n["id"]] == {owner}]
    return [n for n in cut if n["args"][0]["ref"] in leaves]


def rows(graph, weights, draw, r):
    """One rank takes the rows of one piece for those of another."""
    found = slices(graph, r)
    n = draw.choice(found)
    other = draw.choice([m for m in found if m["args"][1:] != n["args"][1:]])
    n["args"][1:] = other["args"][1:]
    return True


def all_rows(graph, ranks):
    """Every rank takes the first piece's rows for the next one's: they are one role still."""
    for r in range(ranks):
        first = slices(graph, r)[0]["args"][1:]
        for n in slices(graph, r):
            n["args"][1:] = first


FAULTS = (number, operand, leaf, collective, output)


def is_one_role(capture, ranks):
    try:
        one_role.write(capture, capture + "_once", ranks)
    except Exception as e:
        if type(e).__name__ != "NotOne":
            raise
        return False
    return True


def written_once(isomer, pair, ranks):
    """What is wrong with a right pair whose ranks are written once."""
    other = os.path.join(pair, "once")
    os.makedirs(other, exist_ok=True)
    left, right = os.path.join(other, "left"), os.path.join(other, "right")
    if not os.path.exists(left):
        os.symlink(os.path.join(pair, "left"), left)
    one_role.write(os.path.join(pair, "right"), right, ranks)
    verdict, _ = compare(isomer, os.path.join(pair, "right"), right, 60)
    if verdict != "equivalent":
        return "against what it was made of: %s" % verdict
    return certified(isomer, other, ranks)


def own_copies(pair, right, ranks, draw, stale):
    """The pair written once, with each rank's own copy of a parameter. `stale`: on one of them,
    which is drawn, another number in it."""
    once = os.path.join(pair, "once", "right")
    graph = load(once)
    path = [os.path.join(d, "weights.safetensors") for d in (once, right)]
    weights = read_tensors(path[0])
    name = draw.choice(sorted(n for n, t in weights.items() if t[0] == "F32"))
    dtype, shape, data = weights.pop(name)
    for r in range(ranks):
        weights["rank%d.%s" % (r, name)] = (dtype, shape, data)
    if stale:
        at = 4 * draw.randrange(len(data) // 4)
        other = struct.pack("<f", struct.unpack_from("<f", data, at)[0] * 1.25 + 0.0625)
        own = "rank%d.%s" % (draw.randrange(ranks), name)
        weights[own] = (dtype, shape, data[:at] + other + data[at + 4 :])
    graph["roles"]["own"] = sorted(graph["roles"]["own"] + [name])
    os.makedirs(right, exist_ok=True)
    save(right, graph)
    write_tensors(path[1], weights)
    shutil.copy(os.path.join(once, "inputs.safetensors"), right)


def killed_after(seconds, command):
    """The exit status of a command that has so much of the processor."""
    limit = (seconds, seconds)
    p = subprocess.run(
        command,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, limit),
    )
    return p.returncode


def many(isomer, driver, folder, draw):
    """What is wrong with ranks that are written once, and are more than are run: one that has a
    stale parameter is found wherever it is."""
    ranks, model = draw.randint(33, 48), draw.choice(("gpt", "llama"))
    pair = os.path.join(folder, "many")
    once_at, own = os.path.join(pair, "once"), os.path.join(pair, "own")
    write(pair, model, ranks)
    one_role.write(os.path.join(pair, "right"), os.path.join(once_at, "right"), ranks)
    os.rename(os.path.join(pair, "left"), os.path.join(once_at, "left"))
    left, name = os.path.join(once_at, "left"), "%s on %d ranks" % (model, ranks)
    yield name, decided(isomer, once_at, ranks)
    if driver:
        yield name + ", folds", wrong_folds(driver, once_at, draw.randrange(1000), 16)
    for stale in (False, True, True):
        own_copies(pair, own, ranks, draw, stale)
        if stale:  # once it would be equivalent in a tenth of that; as they are takes minutes
            said = killed_after(3, [isomer, "compare", left, own, "--refine"])
            yield name + ", stale", said if said in (0, 2) else None
            continue
        verdict, said = compare(isomer, left, own, 60)
        fine = verdict == "equivalent" and once(said, ranks)
        yield name + ", copies", None if fine else verdict


def faulty(isomer, folder, pair, ranks, draw, fault):
    graph = load(os.path.join(pair, "right"))
    path = os.path.join(pair, "right", "weights.safetensors")
    weights, r = read_tensors(path), draw.randrange(1, ranks)
    if not fault(graph, weights, draw, r):
        return None
    right = os.path.join(folder, "faulty")
    os.makedirs(right, exist_ok=True)
    save(right, graph)
    write_tensors(os.path.join(right, "weights.safetensors"), weights)
    with open(os.path.join(pair, "right", "inputs.safetensors"), "rb") as f:
        data = f.read()
    with open(os.path.join(right, "inputs.safetensors"), "wb") as f:
        f.write(data)
    if fault is not leaf and is_one_role(right, ranks):
        return "rank %d: it is written as one role" % r
    # Decided once it would be equivalent by then; the ranks as they are may take longer.
    verdict, _ = compare(isomer, os.path.join(pair, "left"), right, 4)
    if verdict not in ("different", "undecided"):
        return "rank %d: %s" % (r, verdict)
    return forged(isomer, pair, right)


def check(isomer, certificate, left, right):
    p = subprocess.run(
        [isomer, "check", certificate, left, right],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        universal_newlines=True,
    )
    return p.returncode, p.stdout.strip().split("\n")[-1]


def forged(isomer, pair, right):
    """The right pair's certificate, said to be of captures that it is not of."""
    with open(os.path.join(pair, "c.json")) as f:
        c = json.load(f)
    for name in c["right"]["files"]:
        with open(os.path.join(right, name), "rb") as f:
            c["right"]["files"][name] = hashlib.sha256(f.read()).hexdigest()
    path = os.path.join(os.path.dirname(right), "forged.json")
    with open(path, "w") as f:
        json.dump(c, f)
    status, line = check(isomer, path, os.path.join(pair, "left"), right)
    return None if status == 1 else "a forged certificate: %s" % line


def decided(isomer, pair, ranks, *more):
    """What is wrong with the verdict."""
    left, right = os.path.join(pair, "left"), os.path.join(pair, "right")
    verdict, said = compare(isomer, left, right, 120, *more)
    if verdict != "equivalent" or said["evidence"] not in ("proved", "certified"):
        return verdict
    return None if once(said, ranks) else "not decided once"


def certified(isomer, pair, ranks):
    """What is wrong with the pair's certificate, and with what is made of it."""
    left, right = os.path.join(pair, "left"), os.path.join(pair, "right")
    path = os.path.join(pair, "c.json")
    wrong = decided(isomer, pair, ranks, "--certificate", path)
    if wrong:
        return wrong
    status, line = check(isomer, path, left, right)
    if status != 0:
        return line
    with open(path) as f:
        c = json.load(f)
    for n in (ranks - 1, None):
        other = dict(c, roles=n)
        if n is None:
            del other["roles"]
        with open(os.path.join(pair, "other.json"), "w") as f:
            json.dump(other, f)
        status, line = check(isomer, os.path.join(pair, "other.json"), left, right)
        if status not in (1, 2):
            return "of %s ranks: %s" % (n, line)
    return None


def in_pieces(isomer, driver, folder, draw):
    """What is wrong with steps whose ranks go through their rows in pieces."""
    ranks = 4
    for model, pieces, early in (("gpt", 2, False), ("llama", 3, True)):
        name = "%s in %d pieces%s" % (model, pieces, ", reduced each time" if early else "")
        pair = os.path.join(folder, "pieces-%s-%d" % (model, pieces))
        write(pair, model, ranks, 1, pieces, early)
        path = os.path.join(pair, "c.json")
        left, right = os.path.join(pair, "left"), os.path.join(pair, "right")
        verdict, said = compare(isomer, left, right, 120, "--certificate", path)
        yield name, None if verdict == "equivalent" and once(said, ranks) else verdict
        if driver:
            yield name + ", folds", wrong_folds(driver, pair, draw.randrange(1000), 16)
        if model == "gpt":
            yield name + ", certificate", check(isomer, path, left, right)[0] or None
            for fault in (rows, operand, collective):
                wrong = faulty(isomer, folder, pair, ranks, draw, fault)
                yield "%s, %s" % (name, fault.__name__), wrong
        graph = load(right)
        all_rows(graph, ranks)
        save(right, graph)
        verdict, _ = compare(isomer, left, right, 60)
        yield name + ", one of them read again", None if verdict == "different" else verdict


def wrong_folds(driver, pair, seed, count):
    p = subprocess.run(
        [driver, os.path.join(pair, "left"), os.path.join(pair, "right"), str(seed), str(count)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        universal_newlines=True,
    )
    return p.stdout.strip().split("\n")[0] if p.returncode else None


def other_program(isomer, driver, pair, draw, kind):
    """What is wrong with a pair whose ranks are another program than the left one."""
    roles_wrong.write(pair, draw, kind, draw.randint(4, 7))
    verdict, said = compare(isomer, os.path.join(pair, "left"), os.path.join(pair, "right"), 4)
    if verdict not in ("different", "undecided"):
        return verdict
    return wrong_folds(driver, pair, draw.randrange(1000), 8) if driver else None


def grid(isomer, driver, folder, draw):
    """What is wrong with rows of ranks, and of which of them: with each fault in turn."""
    pair = os.path.join(folder, "grid")
    rows, members = draw.randint(4, 6), draw.randint(2, 3)
    role_grid.write(pair, draw, rows, members)
    left, right = os.path.join(pair, "left"), os.path.join(pair, "right")
    words = "to rank%d.x, every %d ranks, are parts" % ((rows - 1) * members, members)
    path = os.path.join(pair, "c.json")
    verdict, said = compare(isomer, left, right, 60, "--certificate", path)
    yield "as it is", None if verdict == "equivalent" else verdict
    once = any(words in a["text"] for a in said.get("assumptions", []))
    yield "decided once", None if once else "it is not"
    alone, other = compare(isomer, left, right, 4, "--disable", "roles")
    told = any("ranks, are parts" in a["text"] for a in other.get("assumptions", []))
    yield "one by one", None if alone in ("equivalent", "undecided") and not told else alone
    where = [x.get("where") or "" for x in said.get("refinement", [])]
    yield "certificate", None if check(isomer, path, left, right)[0] == 0 else "does not hold"
    yield "outputs in parts", "said, of replicas" if any(where) else None
    if driver:
        yield "folds", wrong_folds(driver, pair, draw.randrange(1000), 16)
    graph, leaves = load(right), read_tensors(os.path.join(right, "inputs.safetensors"))
    for fault in role_grid.FAULTS:
        bad, own = json.loads(json.dumps(graph)), dict(leaves)
        fault(bad, own, draw)
        save(right, bad)
        write_tensors(os.path.join(right, "inputs.safetensors"), own)
        verdict, said = compare(isomer, left, right, 4)
        # Of parts that all ranks hold, one that holds another is what the report calls surprising.
        told = any(x.get("surprising") for x in said.get("refinement", []))
        once = any(words in a["text"] for a in said.get("assumptions", []))
        fine = verdict in ("different", "undecided")
        fine |= fault is role_grid.another_output and told and not once
        yield fault.__name__, None if fine else verdict


def main():
    a = argparse.ArgumentParser()
    a.add_argument("--isomer", default=os.path.join(ROOT, "build", "isomer"))
    a.add_argument("--driver")
    a.add_argument("--ranks", type=int, default=16)
    a.add_argument("--seed", type=int, default=1)
    a.add_argument("--count", type=int, default=5)
    o = a.parse_args()
    passed = failed = 0
    draw = random.Random(o.seed)
    with tempfile.TemporaryDirectory() as folder:
        for model in ("gpt", "llama"):
            pair = os.path.join(folder, model)
            write(pair, model, o.ranks)
            wrong = (certified if model == "gpt" else decided)(o.isomer, pair, o.ranks)
            passed, failed = passed + (not wrong), failed + bool(wrong)
            if wrong:
                print("%s on %d ranks: %s" % (model, o.ranks, wrong))
            wrong = written_once(o.isomer, pair, o.ranks)
            passed, failed = passed + (not wrong), failed + bool(wrong)
            if wrong:
                print("%s on %d ranks, written once: %s" % (model, o.ranks, wrong))
            if o.driver:
                wrong = wrong_folds(o.driver, pair, o.seed, 8 * o.count)
                passed, failed = passed + (not wrong), failed + bool(wrong)
                if wrong:
                    print("%s on %d ranks, %s" % (model, o.ranks, wrong))
        for k in range(o.count):
            fault = FAULTS[k % len(FAULTS)]
            wrong = faulty(o.isomer, folder, os.path.join(folder, "gpt"), o.ranks, draw, fault)
            passed, failed = passed + (not wrong), failed + bool(wrong)
            if wrong:
                print("seed %d, %d, %s: %s" % (o.seed, k, fault.__name__, wrong))
        for k in range(3 * o.count):
            kind = roles_wrong.KINDS[k % len(roles_wrong.KINDS)]
            pair = os.path.join(folder, "other%d" % k)
            wrong = other_program(o.isomer, o.driver, pair, draw, kind)
            passed, failed = passed + (not wrong), failed + bool(wrong)
            if wrong:
                print("seed %d, %s %d: %s" % (o.seed, kind, k, wrong))
        for what, wrong in in_pieces(o.isomer, o.driver, folder, draw):
            passed, failed = passed + (not wrong), failed + bool(wrong)
            if wrong:
                print("seed %d, %s: %s" % (o.seed, what, wrong))
        for what, wrong in many(o.isomer, o.driver, folder, draw):
            passed, failed = passed + (not wrong), failed + bool(wrong)
            if wrong:
                print("seed %d, %s: %s" % (o.seed, what, wrong))
        for what, wrong in grid(o.isomer, o.driver, folder, draw):
            passed, failed = passed + (not wrong), failed + bool(wrong)
            if wrong:
                print("seed %d, rows of ranks, %s: %s" % (o.seed, what, wrong))
    print("%d passed, %d failed" % (passed, failed))
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
