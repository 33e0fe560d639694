#!/usr/bin/env python3
"""`isomer-capture record`: real processes on gloo, and what is written of them. Needs torch.

tests/lint/recorded.py --isomer build/isomer [--count 30]"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile

from gloo_programs import drawn
from harness import Lint, ROOT, check, finish

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(ROOT, "tests", "support"))
import commands  # noqa: E402


def record(program, *args, ranks=2, **options):
    """One call. Returns status, and what it says."""
    words = ["record", "--ranks", ranks]
    for name, value in options.items():
        words += ["--" + name] + [value] * (value is not True)
    done = commands.run(words + [os.path.join(HERE, "recorded", program), *args])
    return done.returncode, (done.stdout + done.stderr).strip()


def bare(ranks):
    """Events without names of handles, places, memory; what is posted and at once waited for
    blocks."""
    out = []
    for events in ranks:
        numbers, mine = {}, []
        for e in events:
            e = {k: v for k, v in e.items() if k not in ("source", "buffer", "dtype")}
            if e["op"] == "compute":
                continue
            if e["op"] == "wait" and mine and mine[-1].get("handle") == e["handle"]:
                if mine[-1]["op"] != "wait":
                    del mine[-1]["handle"]
                    continue
            mine.append(e)
        for e in mine:
            if "handle" in e:
                e["handle"] = numbers.setdefault(e["handle"], len(numbers))
        out.append(mine)
    return out


def programs(o, folder, world, backend, shuffled):
    """Many programs as one: what is recorded is what was drawn."""
    at, out = os.path.join(folder, "drawn.json"), os.path.join(folder, "recorded.json")
    ranks = [[] for _ in range(world)]
    for k in range(o.count):
        for r, events in enumerate(drawn(random.Random(k), world, shuffled)["ranks"]):
            for e in events:
                more = {"handle": "%d.%s" % (k, e["handle"])} if "handle" in e else {}
                ranks[r].append(dict(e, **more))
    with open(at, "w", encoding="utf-8") as f:
        d = {"format": "isomer-events", "version": 1, "backend": "gloo", "ranks": ranks}
        json.dump(d, f)
    what = "%d ranks on %s" % (world, backend)
    status, text = record("events.py", at, ranks=world, backend=backend, events=out, target="gloo")
    if not check(status == 0, "%s: %s", what, text):
        return
    with open(out, encoding="utf-8") as f:
        written = json.load(f)
    for r, (a, b) in enumerate(zip(bare(ranks), bare(written["ranks"]))):
        first = next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))
        check(a == b, "%s: rank %d from event %d on: %s", what, r, first, b[first : first + 2])
    x, y = Lint(o.isomer, at), Lint(o.isomer, out)
    check(x.status == y.status, "%s: %s, recorded %s", what, x.last, y.last)
    check(x.report["progress"] == y.report["progress"], "%s: %s", what, y.report["progress"])
    check(shuffled or y.status == 0, "%s: accused: %s", what, y.text)
    places = [e["source"] for events in written["ranks"] for e in events]
    check(all("gloo_programs.py:" in s for s in places), "%s: places %s", what, places[:2])


def tensor_parallel(o, folder):
    """One program that is right, and two that are not: by the capture, and by the events."""
    for fault, of_capture, of_events in (
        ("none", [], []),
        ("sum", ["gradient-unreduced"], []),
        ("early", [], ["read-in-flight"]),
    ):
        at = os.path.join(folder, "capture-" + fault)
        events = os.path.join(folder, fault + ".json")
        # A tensor read while it is written has other values each time: there is no capture.
        of = {"events": events} if fault == "early" else {"events": events, "capture": at}
        status, text = record("tensor_parallel.py", fault, **of)
        if not check(status == 0, "tensor parallel, %s: %s", fault, text):
            continue
        y = Lint(o.isomer, events)
        check(sorted(set(y.kinds())) == of_events, "events of %s: %s", fault, y.text)
        if fault == "early":
            line = next(f["source"] for f in y.report["findings"])
            check(line == "tensor_parallel.py:38", "found at %s", line)
            continue
        x = Lint(o.isomer, at)
        check(sorted(set(x.kinds())) == of_capture, "capture of %s: %s", fault, x.text)
        if fault == "none":
            check(x.status == 0, "tensor parallel is right: %s", x.text)


def waits(o, folder):
    """Memory that any collective still works on, whatever function of PyTorch's posted it."""
    import collectives

    for when in ("late", "early"):
        events = os.path.join(folder, when + ".json")
        status, text = record("waits.py", when, events=events, target="gloo")
        if not check(status == 0, "waits, %s: %s", when, text):
            continue
        with open(events, encoding="utf-8") as f:
            (first, _) = json.load(f)["ranks"]
        posted = [e["op"] for e in first if e["op"] not in ("compute", "wait")]
        check(len(posted) == len(collectives.names()), "waits, %s: %s", when, posted)
        found = Lint(o.isomer, events).report["findings"]
        told = [f for f in found if f["ranks"] == [0]]
        # A barrier brings nothing, and a broadcast nothing to its root.
        want = len(posted) - 2 if when == "early" else 0
        check(len(told) >= want and (want or not found), "waits, %s: %s", when, found)
        check(all("waits.py:" in f["source"] for f in found), "places: %s", found[:2])


def exchanges(o, folder):
    """The graph gives the values that the program had, when isomer runs it from its leaves."""
    for ranks in (2, 3):
        at = os.path.join(folder, "exchanges%d" % ranks)
        status, text = record("exchanges.py", ranks=ranks, capture=at, trace=True)
        if not check(status == 0, "exchanges: %s", text):
            continue
        p = subprocess.run(
            [o.isomer, "run", at, "--propagate"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        check(p.returncode == 0, "exchanges of %d ranks: %s", ranks, p.stdout.decode())
        with open(os.path.join(at, "graph.json"), encoding="utf-8") as f:
            graph = json.load(f)
        kinds = {n["op"] for n in graph["nodes"] if n["op"].startswith("dist::")}
        check(len(kinds) == 6, "exchanges of %d ranks: %s", ranks, sorted(kinds))
        check(len(graph["outputs"]) == 9 * ranks + 2, "%d outputs", len(graph["outputs"]))


def wrapped(o, folder):
    """Wrappers' buckets and flat shards become dataflow: gradients are of the inputs, and lie as
    they should. That the loss is divided by the number of ranks, the capture says."""
    for how in ("data", "sharded"):
        at = os.path.join(folder, how)
        status, text = record("wrapped.py", how, capture=at)
        if not check(status == 0, "%s: %s", how, text):
            continue
        with open(os.path.join(at, "graph.json"), encoding="utf-8") as f:
            graph = json.load(f)
        kinds = [n["op"] for n in graph["nodes"]]
        check("constant" not in kinds, "%s: memory that nobody wrote is read", how)
        check(kinds.count("input") == 2, "%s: %d inputs", how, kinds.count("input"))
        names = [x["name"] for x in graph["outputs"] if x["name"].startswith("grad.")]
        check(len(names) == 8, "%s: gradients %s", how, names)
        x = Lint(o.isomer, at)
        check(x.status == 0, "%s: %s", how, x.text)


def one_row(o, folder):
    """Of a row on each rank it is not seen whether a mean's numbers count the whole's: a right
    program is not accused, and a wrong one is not clean."""
    for fault in ("none", "undivided"):
        at = os.path.join(folder, "one-row-" + fault)
        status, text = record("one_row.py", fault, ranks=4, capture=at)
        if not check(status == 0, "one row, %s: %s", fault, text):
            continue
        x = Lint(o.isomer, at)
        check(x.status != (1 if fault == "none" else 0), "one row, %s: %s", fault, x.text)


def pipeline(o, folder):
    for name in ("Schedule1F1B",):
        out = os.path.join(folder, name + ".json")
        status, text = record("pipeline.py", name, events=out)
        if not check(status == 0, "%s: %s", name, text):
            continue
        x = Lint(o.isomer, out)
        check(x.status == 0, "%s is accused: %s", name, x.text)
        with open(out, encoding="utf-8") as f:
            d = json.load(f)
        check(d["pipeline"] == {"stages": 2, "microbatches": 8}, "%s: %s", name, d["pipeline"])
        for r, events in enumerate(d["ranks"]):
            done = [(e["op"], e["mb"]) for e in events if e["op"] in "FB"]
            want = {(op, k) for op in "FB" for k in range(8)}
            check(len(done) == 16 and set(done) == want, "%s rank %d: %s", name, r, done)


def mistakes(folder):
    out = os.path.join(folder, "no.json")
    for args, options, why in (
        (["any"], {"events": out, "backend": "fake"}, "receives from any rank"),
        (["hang"], {"events": out, "timeout": 8}, "has not ended in 8 s"),
        (["status"], {"events": out, "backend": "fake"}, "ends with status 3"),
        ([""], {"capture": out, "backend": "fake"}, "names nothing that is to be captured"),
        (["numbers"], {"capture": out, "backend": "fake"}, "takes numbers out of a tensor"),
        ([""], {"backend": "fake"}, "name what is to be written"),
    ):
        status, text = record("mistakes.py", *args, **options)
        said = status == 2 and why in text and text.count("\n") == 0
        check(said, "%s: status %d: %s", args, status, text)
        check(not os.path.exists(out), "%s: something is written", args)
    status, text = record("nothing.py", events=out)
    check(status == 2 and "no such program" in text, "no program: %s", text)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--isomer", default=os.path.join(ROOT, "build", "isomer"))
    p.add_argument("--count", type=int, default=30)
    o = p.parse_args()
    o.isomer = os.path.abspath(o.isomer)
    with tempfile.TemporaryDirectory() as folder:
        programs(o, folder, 2, "gloo", False)
        programs(o, folder, 3, "fake", True)
        tensor_parallel(o, folder)
        waits(o, folder)
        exchanges(o, folder)
        wrapped(o, folder)
        one_row(o, folder)
        pipeline(o, folder)
        mistakes(folder)
    finish()


main()
