#!/usr/bin/env python3
"""Every plan of decoders.py on 2, 4 and 8 ranks, plain, clipped, with micro-batches: what each
comparison with the step on one device comes to. All plans are correct: none may be different.

    tests/train/matrix.py [--isomer build/isomer] [-k TEXT] [--keep FOLDER] [--jobs N] [--table]

--keep: captures stay there, and are not made again. --table prints the table of docs/training.md at
the end. The last line is `N equivalent, N undecided, N failed`."""

import argparse
import concurrent.futures
import os
import sys
import tempfile

import steps

MODELS = ("llama", "gpt", "routed")
PLANS = ("data", "sharded", "zero", "tensor", "sequence", "mixed", "mixed_many", "mixed_sequence")
VARIANTS = ("", "_clipped", "_accumulated", "_accumulated_clipped")
# Heads are cut by whole groups, and a tied weight is no column of a layer alone.
RANKS = {"llama_tensor": 2, "llama_sequence": 2, "llama_mixed": 4, "llama_mixed_sequence": 4}
RANKS.update({"%s_tensor" % m: 4 for m in ("gpt", "routed")})


def table():
    for world in (2, 4, 8):
        for variant in VARIANTS:
            for model in MODELS:
                for plan in PLANS:
                    if fits(model, plan, world):
                        left = "%s_data%s" % (model, "_clipped" * variant.endswith("_clipped"))
                        yield left, "%s_%s%s" % (model, plan, variant), world


def fits(model, plan, world):
    if "sequence" in plan and model != "llama":
        return False
    if "many" in plan and world < 8:
        return False
    return (world > 2 or "mixed" not in plan) and world <= RANKS.get(model + "_" + plan, 8)


def one(o, folder, row):
    left, plan, world = row
    try:
        a = steps.capture(folder, "decoders:" + left, 1)
        b = steps.capture(folder, "decoders:" + plan, world)
        report = os.path.join(folder, "%s-%d.json" % (plan, world))
        said, spent, line = steps.compare(o.isomer, a, b, report)
    except steps.Failed as e:
        return row, "failed", str(e).splitlines()[-1], "failed"
    steps.row(plan, world, b, said, spent)
    return row, said["verdict"], line, cell(said, spent)


def cell(said, spent):
    if said["verdict"] != "equivalent":
        return said["verdict"]
    proved = sum(r["status"] == "proved" for r in said["rules"])
    tested = "" if said["evidence"] == "proved" else " of %d" % len(said["rules"])
    return "%d%s, %.1f" % (proved, tested, spent)


def print_table(cells):
    """A row for each plan on so many ranks, a column for each variant."""
    rows = {}
    for (_, plan, world), text in cells:
        variant = max((v for v in VARIANTS if plan.endswith(v)), key=len)
        name = plan[: len(plan) - len(variant)]
        rows.setdefault((name, world), {})[variant] = text
    print("| plan | ranks |%s" % "".join(" %s |" % (v[1:] or "plain") for v in VARIANTS))
    print("| --- " * (2 + len(VARIANTS)) + "|")
    for (name, world), of in sorted(rows.items()):
        print("| %s | %d |%s" % (name, world, "".join(" %s |" % of.get(v, "") for v in VARIANTS)))


def main():
    a = argparse.ArgumentParser()
    a.add_argument("--isomer", default=os.path.join(steps.ROOT, "build", "isomer"))
    a.add_argument("-k", default="", help="plans whose name or number of ranks holds this")
    a.add_argument("--keep", help="folder of captures")
    a.add_argument("--jobs", type=int, default=1)
    a.add_argument("--table", action="store_true")
    o = a.parse_args()
    count = dict.fromkeys(("equivalent", "undecided", "different", "failed"), 0)
    with tempfile.TemporaryDirectory() as temporary:
        folder = o.keep or temporary
        os.makedirs(folder, exist_ok=True)
        rows = [r for r in table() if o.k in "%s-%d" % r[1:]]
        for left in {r[0] for r in rows}:
            steps.capture(folder, "decoders:" + left, 1)
        with concurrent.futures.ThreadPoolExecutor(o.jobs) as pool:
            cells = []
            for row, verdict, line, text in pool.map(lambda r: one(o, folder, r), rows):
                count[verdict] += 1
                cells.append((row, text))
                if verdict in ("different", "failed"):
                    print("%s on %d: %s" % (row[1], row[2], line), flush=True)
        if o.table:
            print_table(cells)
    wrong = count["different"] + count["failed"]
    print(
        "%d equivalent, %d undecided, %d failed" % (count["equivalent"], count["undecided"], wrong)
    )
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
