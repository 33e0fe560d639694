#!/usr/bin/env python3
"""Pipeline tables of torch's seven schedules against an independent simulation: verdict, makespan
and
activations under each progress model. Plain Python 3 on tables that are kept; with --torch they are
made anew.

    tests/lint/schedules.py [--isomer build/isomer] [--torch] [--ranks 2,4]"""

import argparse
import os
import random
import tempfile

import simulation
from harness import Lint, ROOT, check, finish


def held_against(isomer, path):
    rows = simulation.read(path)
    name = os.path.basename(path)
    for model in simulation.MODELS:
        x = Lint(isomer, path, "--progress", model)
        if not check(x.status in (0, 1), "%s: %s", name, x.text):
            continue
        expected = simulation.simulate(rows, model)
        check(
            x.report["progress"][model] == ("ok" if expected is not None else "deadlock"),
            "%s under %s: %s, the simulation says %s",
            name,
            model,
            x.report["progress"][model],
            expected,
        )
        check(
            x.report["makespan"] == expected,
            "%s under %s: makespan %s, not %s",
            name,
            model,
            x.report["makespan"],
            expected,
        )
        check(
            x.report["peak_in_flight"] == simulation.activations(rows),
            "%s: activations %s, not %s",
            name,
            x.report["peak_in_flight"],
            simulation.activations(rows),
        )
        check(x.report["decides"] == model, "%s: %s decides", name, x.report["decides"])
        if expected is None:
            check(
                "deadlock" in x.kinds() or "value-mismatch" in x.kinds(),
                "%s under %s: hangs, found %s",
                name,
                model,
                x.kinds(),
            )
        else:
            check("deadlock" not in x.kinds(), "%s under %s: does not hang", name, model)
        if ".deferred" not in name and "shuffled" not in name:
            check(
                x.status == 0 and x.last == "isomer: CLEAN",
                "%s under %s: accused of %s",
                name,
                model,
                x.kinds(),
            )


def shuffled(path, seed, where):
    """The messages of a table moved about, so that it often hangs: each still behind what it sends,
    and
    before what needs it."""
    rng = random.Random(seed)
    with open(path) as f:
        rows = [line.strip().split(",") for line in f]
    for row in rows:
        for _ in range(4):
            i = rng.randrange(len(row) - 1)
            a, b = row[i], row[i + 1]
            of = lambda s: (s.split("SEND")[0].split("RECV")[0], s[-1])  # noqa: E731
            # A neighbour that has nothing to do with it, and no other message, which might share
            # its channel.
            if (
                ("SEND" in a or "RECV" in a) != ("SEND" in b or "RECV" in b)
                and "(" not in a + b
                and of(a)[0] != b[: len(of(a)[0])]
                and "SHARD" not in a + b
            ):
                row[i], row[i + 1] = b, a
            elif "SEND" in a and "RECV" in b or "RECV" in a and "SEND" in b:
                row[i], row[i + 1] = b, a
    out = os.path.join(where, "shuffled-%d-%s" % (seed, os.path.basename(path)))
    with open(out, "w") as f:
        f.write("".join(",".join(r) + "\n" for r in rows))
    return out


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--isomer", default=os.path.join(ROOT, "build", "isomer"))
    p.add_argument("--torch", action="store_true")
    p.add_argument("--ranks", default="2,4")
    p.add_argument("--shuffles", type=int, default=40)
    o = p.parse_args()
    with tempfile.TemporaryDirectory() as where:
        folder = os.path.join(ROOT, "tests", "lint", "tables")
        if o.torch:
            import torch_tables

            torch_tables.main(where, *o.ranks.split(","))
            folder = where
        names = sorted(n for n in os.listdir(folder) if n.endswith(".csv"))
        for name in names:
            held_against(o.isomer, os.path.join(folder, name))
        comms = [n for n in names if ".comms" in n]
        for seed in range(o.shuffles):
            held_against(
                o.isomer, shuffled(os.path.join(folder, comms[seed % len(comms)]), seed, where)
            )
    finish()


main()
