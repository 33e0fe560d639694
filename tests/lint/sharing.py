#!/usr/bin/env python3
"""Ranks that share programs against the same ranks, each with a program of its own: the same
verdict,
kinds of findings, progress, makespan and activations. Programs are drawn, some of them faulty, some
with one rank that differs from those that it stands among.

    tests/lint/sharing.py [--isomer build/isomer] [--count 60] [--seed 0]"""

import argparse
import copy
import json
import os
import random
import tempfile

from harness import Lint, ROOT, check, finish


def coordinates(mesh, rank):
    out = {}
    for axis in reversed(list(mesh)):
        out[axis] = rank % mesh[axis]
        rank //= mesh[axis]
    return out


def rank_at(mesh, at):
    rank = 0
    for axis in mesh:
        rank = rank * mesh[axis] + at[axis] % mesh[axis]
    return rank


def expanded(d):
    """Peers as ranks, groups by name, roots as ranks."""
    mesh, groups, ranks = d["mesh"], {}, []
    for r, name in enumerate(d["ranks"]):
        events = copy.deepcopy(d["programs"][name])
        for e in [x for e in events for x in [e] + e.get("ops", [])]:
            at = coordinates(mesh, r)
            if isinstance(e.get("peer"), dict):
                e["peer"] = rank_at(mesh, {a: at[a] + e["peer"].get(a, 0) for a in mesh})
            if "group" in e:
                axes = [e["group"]] if isinstance(e["group"], str) else e["group"]
                fixed = {a: at[a] for a in mesh if a not in axes}
                members = [
                    k
                    for k in range(len(d["ranks"]))
                    if all(coordinates(mesh, k)[a] == v for a, v in fixed.items())
                ]
                e["group"] = "+".join(axes) + str(fixed)
                groups[e["group"]] = members
                if "root" in e:
                    e["root"] = members[e["root"]]
        ranks.append(events)
    out = {k: d[k] for k in ("format", "version", "backend") if k in d}
    return dict(out, groups=groups, ranks=ranks)


def drawn(rng):
    """A pipeline along one axis, replicas along another, a ring along a third."""
    mesh = {"dp": rng.choice((1, 2, 3)), "pp": rng.choice((2, 3)), "cp": rng.choice((1, 2, 3))}
    if rng.random() < 0.5:
        mesh = dict(reversed(list(mesh.items())))
    n = 16
    ring = [
        {"op": "send", "peer": {"cp": 1}, "numel": n, "buffer": "k"},
        {"op": "recv", "peer": {"cp": -1}, "numel": n, "buffer": "l"},
    ]
    programs = {}
    for s in range(mesh["pp"]):
        out = []
        for m in range(2):
            if s:
                out.append(
                    {"op": "recv", "peer": {"pp": -1}, "numel": n, "mb": m, "buffer": "x%d" % m}
                )
            out.append(
                {
                    "op": "compute",
                    "cost": rng.randrange(3),
                    "reads": ["x%d" % m],
                    "writes": ["y%d" % m],
                }
            )
            out.append({"op": "batch", "ops": copy.deepcopy(ring)})
            out.append(
                {
                    "op": "all_gather",
                    "group": "cp",
                    "numel": n,
                    "out_numel": n * mesh["cp"],
                    "buffer": "l",
                    "out": "c",
                }
            )
            if s + 1 < mesh["pp"]:
                out.append(
                    {"op": "send", "peer": {"pp": 1}, "numel": n, "mb": m, "buffer": "y%d" % m}
                )
        out.append(
            {"op": "all_reduce", "group": ["dp", "cp"], "numel": n, "reduce": "sum", "buffer": "g"}
        )
        out.append(
            {"op": "broadcast", "group": "dp", "root": 0, "numel": n, "buffer": "w", "handle": "h"}
        )
        out.append({"op": "wait", "handle": "h"})
        out.append({"op": "compute", "reads": ["w"], "writes": ["w"]})
        programs["s%d" % s] = out
    world = mesh["dp"] * mesh["pp"] * mesh["cp"]
    names = ["s%d" % coordinates(mesh, r)["pp"] for r in range(world)]
    return {
        "format": "isomer-events",
        "version": 1,
        "backend": rng.choice(("nccl", "gloo")),
        "mesh": mesh,
        "programs": programs,
        "ranks": names,
    }


def broken(events, rng):
    i = rng.randrange(len(events))
    what = rng.randrange(5)
    e = events[i]
    if what == 0 and e["op"] not in ("wait", "broadcast"):
        events.pop(i)
    elif what == 1 and "numel" in e:
        e["numel"] += 1
    elif what == 2 and e["op"] == "batch":
        events[i : i + 1] = e["ops"]
    elif what == 3 and e["op"] == "wait":
        events.append(events.pop(i))
    elif what == 4 and i + 1 < len(events):
        events[i], events[i + 1] = events[i + 1], events[i]


def run(isomer, path, d):
    with open(path, "w") as f:
        json.dump(d, f)
    return Lint(isomer, path)


def one_of_many(isomer, where):
    """8192 ranks, 16 programs: what all do is checked once, and what one does otherwise is
    found."""
    mesh = {"dp": 512, "pp": 16}
    programs = {}
    for s in range(16):
        out = [{"op": "recv", "peer": {"pp": -1}, "numel": 4, "mb": 0}] if s else []
        out.append({"op": "F", "stage": s, "mb": 0})
        out += [{"op": "send", "peer": {"pp": 1}, "numel": 4, "mb": 0}] if s < 15 else []
        out.append({"op": "all_reduce", "group": "dp", "numel": 4, "reduce": "sum"})
        programs["s%d" % s] = out
    d = {
        "format": "isomer-events",
        "version": 1,
        "backend": "nccl",
        "mesh": mesh,
        "programs": programs,
        "pipeline": {"stages": 16, "microbatches": 1},
        "ranks": ["s%d" % (r % 16) for r in range(8192)],
    }
    path = os.path.join(where, "many.json")
    x = run(isomer, path, d)
    check(x.status == 0, "8192 ranks: %s", x.text)
    for rank, change, kind in (
        (4711, ("reduce", "max"), "reduce-mismatch"),
        (16, ("numel", 5), "size-mismatch"),
    ):
        e = copy.deepcopy(d)
        e["programs"]["other"] = copy.deepcopy(programs["s%d" % (rank % 16)])
        e["programs"]["other"][-1][change[0]] = change[1]
        e["ranks"][rank] = "other"
        x = run(isomer, path, e)
        check(x.kinds() == [kind], "one of 8192: %s", x.text)
        check(
            any(f["events"][0][0] == rank for f in x.report["findings"]),
            "one of 8192: not at %d: %s",
            rank,
            x.text,
        )
    absolute = copy.deepcopy(d)
    for name, events in absolute["programs"].items():
        events.insert(0, {"op": "send", "peer": 0, "handle": "h"})
        events += [{"op": "compute"} for _ in range(4000)]
    x = run(isomer, path, absolute)
    check(
        x.status == 3 and x.last.startswith("isomer: UNDECIDED: ranks that share"),
        "not alike: %s",
        x.last,
    )


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--isomer", default=os.path.join(ROOT, "build", "isomer"))
    p.add_argument("--count", type=int, default=90)
    p.add_argument("--seed", type=int, default=0)
    o = p.parse_args()
    found = 0
    with tempfile.TemporaryDirectory() as where:
        path = os.path.join(where, "x.json")
        one_of_many(o.isomer, where)
        for seed in range(o.seed, o.seed + o.count):
            rng = random.Random(seed)
            d = drawn(rng)
            if seed % 3 == 1:  # all that share it
                broken(d["programs"][rng.choice(sorted(d["programs"]))], rng)
            if seed % 3 == 2:  # one of them
                r = rng.randrange(len(d["ranks"]))
                d["programs"]["other"] = copy.deepcopy(d["programs"][d["ranks"][r]])
                broken(d["programs"]["other"], rng)
                d["ranks"][r] = "other"
            a, b = run(o.isomer, path, d), run(o.isomer, path, expanded(d))
            found += a.status == 1
            if not check(
                a.status == b.status,
                "%d: %d shared, %d alone: %s %s",
                seed,
                a.status,
                b.status,
                a.text,
                b.text,
            ):
                continue
            check(
                set(a.kinds()) == set(b.kinds()),
                "%d: %s shared, %s alone",
                seed,
                a.kinds(),
                b.kinds(),
            )
            for key in ("progress", "makespan", "peak_in_flight"):
                check(
                    a.report[key] == b.report[key],
                    "%d: %s: %s shared, %s alone",
                    seed,
                    key,
                    a.report[key],
                    b.report[key],
                )
            check(
                seed % 3 != 0 or d["backend"] == "gloo" or a.status == 0,
                "%d: accused of %s",
                seed,
                a.kinds(),
            )
    check(found >= o.count // 8, "only %d of %d have a finding", found, o.count)
    finish()


main()
