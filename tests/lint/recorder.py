#!/usr/bin/env python3
"""Flight recorder dumps of programs whose fault is known: where a hang starts, who does something
else, which dump is missing; in JSON and as pickles, of which nothing is executed.

    tests/lint/recorder.py [--isomer build/isomer] [--count 40]"""

import argparse
import copy
import json
import os
import pickle
import random
import tempfile

from harness import Lint, ROOT, check, finish


def program(rng):
    """The calls of each rank, in order: (group, operation, size)."""
    tp, dp = rng.choice((2, 4)), rng.choice((1, 2, 3))
    world = tp * dp
    groups = {"0": list(range(world))}
    for d in range(dp):
        groups["tp%d" % d] = [d * tp + t for t in range(tp)]
    for t in range(tp):
        groups["dp%d" % t] = [d * tp + t for d in range(dp)]
    calls = {r: [] for r in range(world)}
    for _ in range(rng.randrange(4, 12)):
        what = rng.randrange(4)
        n = rng.choice((8, 16, 32))
        for r in range(world):
            if what == 0:
                calls[r].append(("0", "all_reduce", n))
            elif what == 1:
                calls[r].append(("tp%d" % (r // tp), "_all_gather_base", n))
            elif what == 2:
                calls[r].append(("dp%d" % (r % tp), "_reduce_scatter_base", n))
            elif r % 2 == 0:
                calls[r].append(("0", "send %d->%d" % (r, r + 1), n))
            else:
                calls[r].append(("0", "recv %d<-%d" % (r, r - 1), n))
    return groups, calls


def entry(k, seq, group, op, n, size, state):
    name = op.split(" ")[0]
    sizes = {"_all_gather_base": (n, n * size), "_reduce_scatter_base": (n * size, n)}.get(
        name, (n, n)
    )
    frames = [
        {"name": "f", "filename": "/x/torch/distributed/c.py", "line": 1},
        {"name": "g", "filename": "train.py", "line": 10 + k},
    ]
    return {
        "record_id": k,
        "pg_id": 0,
        "process_group": (group, group),
        "collective_seq_id": seq,
        "p2p_seq_id": 0,
        "op_id": k,
        "profiling_name": "nccl:" + op,
        "input_sizes": [[sizes[0]]],
        "output_sizes": [[2, sizes[1] // 2]],
        "input_dtypes": ["Float"],
        "output_dtypes": ["Float"],
        "state": state,
        "retired": False,
        "time_created_ns": 2**60,
        "is_p2p": " " in op,
        "frames": frames,
        "time_discovered_started_ns": None,
    }


def key(call):
    """Calls of one key meet: those of a group's collective, or of a message."""
    group, op, _ = call
    if " " not in op:
        return group
    a, b = op.split(" ")[1].replace("<-", "->").split("->")
    return (group, a, b) if op.startswith("send") else (group, b, a)


def run(groups, calls, stops=(), never=None):
    """Each call blocks until all that meet in it have come. Returns: how far each rank came. Calls
    meet by number alone, whatever they are. A rank does not make a call of `stops`; what meets with
    call `never` does not end: a rank and an index."""
    at = {r: 0 for r in calls}
    number = {}
    come = {}
    members = lambda call: len(groups[call[0]]) if " " not in call[1] else 2  # noqa: E731

    def ticket(r):
        """The meeting of a rank's next call."""
        k = key(calls[r][at[r]])
        return k, number.setdefault((r, k), 0)

    stuck = None
    if never:
        r, i = never
        k = key(calls[r][i])
        stuck = k, sum(key(c) == k for c in calls[r][:i])
    moved = True
    while moved:
        moved = False
        for r in calls:
            if at[r] == len(calls[r]) or (r, at[r]) in stops:
                continue
            come.setdefault(ticket(r), set()).add(r)
        for r in calls:
            if at[r] == len(calls[r]) or (r, at[r]) in stops:
                continue
            if ticket(r) != stuck and len(come[ticket(r)]) == members(calls[r][at[r]]):
                k, i = ticket(r)
                number[r, k] = i + 1
                at[r] += 1
                moved = True
    return at


def dumps(groups, calls, at, stops=()):
    out = {}
    for r in calls:
        seq, entries = {}, []
        for k, (group, op, n) in enumerate(calls[r][: at[r] + ((r, at[r]) not in stops)]):
            if " " not in op:
                seq[group] = seq.get(group, 0) + 1
            entries.append(
                entry(
                    k,
                    seq.get(group, 0),
                    group,
                    op,
                    n,
                    len(groups[group]),
                    "completed" if k < at[r] else "started",
                )
            )
        config = {g: {"name": g, "desc": g, "ranks": str(m)} for g, m in groups.items() if r in m}
        out[r] = {"version": "2.10", "pg_config": config, "pg_status": {}, "entries": entries}
    return out


def write(where, made, as_pickle, folder):
    paths = []
    os.makedirs(os.path.join(where, folder), exist_ok=True)
    for r, d in made.items():
        paths.append(
            os.path.join(where, folder, "trace_rank_%d%s" % (r, "" if as_pickle else ".json"))
        )
        with open(paths[-1], "wb") as f:
            f.write(pickle.dumps(d, protocol=2 + r % 4) if as_pickle else json.dumps(d).encode())
    return paths


class Trap:
    def __reduce__(self):
        return (os.mkdir, ("/tmp/must-not-be-there",))


def hostile(isomer, where):
    bad = pickle.dumps({"entries": [Trap()]}, protocol=2)
    whole = pickle.dumps(
        {"entries": [entry(0, 1, "0", "all_reduce", 8, 2, "completed")]}, protocol=2
    )
    for i, data in enumerate([bad] + [whole[:k] for k in range(1, len(whole))]):
        path = os.path.join(where, "bad%d" % i)
        with open(path, "wb") as f:
            f.write(data)
        x = Lint(isomer, path)
        check(x.status == 2 and x.text.count("\n") == 1, "hostile %d: %d %s", i, x.status, x.text)
    check(not os.path.exists("/tmp/must-not-be-there"), "a pickle was executed")


def expect(x, status, kinds, what):
    if not check(x.status == status, "%s: status %d: %s", what, x.status, x.text):
        return False
    return check(
        not kinds or (len(x.kinds()) == 1 and x.kinds()[0] in kinds),
        "%s: %s, not %s: %s",
        what,
        x.kinds(),
        kinds,
        x.text,
    )


def one(isomer, where, seed, as_pickle):
    rng = random.Random(seed)
    groups, calls = program(rng)

    def lint(made, name):
        return Lint(isomer, *write(where, made, as_pickle, "%d%s" % (seed, name)))

    made = dumps(groups, calls, run(groups, calls))
    expect(lint(made, "ok"), 0, (), "%d correct" % seed)
    few = copy.deepcopy(made)  # recorders that keep the last entries only
    for d in few.values():
        d["entries"] = d["entries"][rng.randrange(3) :] or d["entries"]
    expect(lint(few, "few"), 0, (), "%d the last entries" % seed)
    lost = rng.choice(sorted(made))
    some = {r: d for r, d in made.items() if r != lost}
    x = lint(some, "lost")
    check(
        x.status == 3 and x.last.endswith("the dump of rank %d is missing" % lost),
        "%d: %s",
        seed,
        x.last,
    )
    r = rng.choice(sorted(calls))
    k = rng.randrange(len(calls[r]))
    stops = ((r, k),)
    at = run(groups, calls, stops)
    x = lint(dumps(groups, calls, at, stops), "stop")
    if any(at[q] < len(calls[q]) for q in calls if q != r):
        kinds = ("missing-collective", "unmatched-send", "unmatched-recv")
        if expect(x, 1, kinds, "%d rank %d stops at %d" % (seed, r, k)):
            f = x.report["findings"][0]
            check(
                r in f["ranks"] and ("rank %d" % r) in f["text"],
                "%d: not rank %d: %s",
                seed,
                r,
                f["text"],
            )
            check(f["source"].startswith("train.py:"), "%d: source %s", seed, f["source"])
    others = [i for i, c in enumerate(calls[r]) if " " not in c[1] and len(groups[c[0]]) > 1]
    if others:
        k = rng.choice(others)
        for change, kind in (("broadcast", "collective-mismatch"), (64, "size-mismatch")):
            wrong = copy.deepcopy(calls)
            g, op, n = wrong[r][k]
            wrong[r][k] = (g, change, n) if isinstance(change, str) else (g, op, change)
            stuck = run(groups, calls, never=(r, k))
            made = dumps(groups, wrong, run(groups, wrong) if kind == "size-mismatch" else stuck)
            x = lint(made, kind)
            if kind == "size-mismatch" and expect(x, 1, (kind,), "%d %s" % (seed, kind)):
                check((r, k) in x.events(), "%d %s: not at %d %d: %s", seed, kind, r, k, x.text)
            if kind == "collective-mismatch":
                check(
                    x.status == 1 and kind in x.kinds() and (r, k) in x.events(),
                    "%d %s at %d %d: %s",
                    seed,
                    kind,
                    r,
                    k,
                    x.text,
                )


def circle(isomer, where):
    groups = {"a": [0, 1], "b": [0, 1]}
    calls = {
        0: [("a", "all_reduce", 8), ("b", "all_reduce", 8)],
        1: [("b", "all_reduce", 8), ("a", "all_reduce", 8)],
    }
    x = Lint(isomer, *write(where, dumps(groups, calls, run(groups, calls)), False, "circle"))
    expect(x, 1, ("deadlock",), "two groups in two orders")
    calls = {0: [("a", "all_reduce", 8)], 1: [("a", "all_reduce", 8)]}
    x = Lint(isomer, *write(where, dumps(groups, calls, {0: 0, 1: 0}), False, "running"))
    check(x.status == 3, "still running: %d %s", x.status, x.text)
    made = dumps(groups, calls, {0: 1, 1: 1})
    for d in made.values():
        d["pg_config"] = {"": {"name": "", "desc": "", "ranks": "[]"}}
    x = Lint(isomer, *write(where, made, True, "gloo"))
    check(x.status == 3 and "has no members" in x.last, "no members: %s", x.last)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--isomer", default=os.path.join(ROOT, "build", "isomer"))
    p.add_argument("--count", type=int, default=40)
    o = p.parse_args()
    with tempfile.TemporaryDirectory() as where:
        circle(o.isomer, where)
        hostile(o.isomer, where)
        for seed in range(o.count):
            one(o.isomer, where, seed, seed % 2 == 1)
    finish()


main()
