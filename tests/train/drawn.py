#!/usr/bin/env python3
"""Training plans that nobody tuned for (drawn_plans.py), drawn: a model, stages x ranks of a batch
x ranks of weights, sharded or not, with the sequence in parts or not, micro-batches, clipping, a
tied embedding, optimizer and loss. Each is correct: none may be different.

    tests/train/drawn.py [--isomer build/isomer] [--seed 1] [--count 8] [--keep FOLDER] [-k TEXT]

A line for each, with seconds of processor; the last is `N equivalent, N undecided, N failed`."""

import argparse
import os
import random
import sys
import tempfile

import steps

MESHES = [(1, 2, 1), (1, 1, 2), (2, 1, 1), (1, 4, 1), (1, 2, 2), (2, 2, 1), (2, 1, 2)]
MESHES += [(1, 4, 2), (2, 2, 2)]


def one(draw):
    model = draw.choice(("llama", "gpt", "routed"))
    pipe, data, tensor = draw.choice(MESHES)
    words = ["p%dd%dt%d" % (pipe, data, tensor)]
    if model == "routed" and pipe > 1:
        model = "llama"  # it has one layer
    if data > 1 and draw.random() < 0.5:
        words.append("sharded")
    if tensor > 1 and model == "llama" and draw.random() < 0.4:
        words.append("sequence")
    words += draw.choice(([], ["parts2"], ["parts4"]))
    words += draw.choice(([], [], ["torch"], ["hand"], ["squares"]))
    if "sequence" not in words and draw.random() < 0.3:
        words.append("tied")
    words += draw.choice((["sgd"], ["momentum"], []))
    words += draw.choice(([], [], ["sum"]))
    return model + "_" + "_".join(words), pipe * data * tensor


def main():
    a = argparse.ArgumentParser()
    a.add_argument("--isomer", default=os.path.join(steps.ROOT, "build", "isomer"))
    a.add_argument("--seed", type=int, default=1)
    a.add_argument("--count", type=int, default=8)
    a.add_argument("--keep", help="folder of captures")
    a.add_argument("-k", default="", help="plans whose name holds this")
    o = a.parse_args()
    draw = random.Random(o.seed)
    plans = dict(one(draw) for _ in range(o.count))
    count = dict.fromkeys(("equivalent", "undecided", "different", "failed"), 0)
    with tempfile.TemporaryDirectory() as temporary:
        folder = o.keep or temporary
        os.makedirs(folder, exist_ok=True)
        for plan, world in plans.items():
            if o.k not in plan:
                continue
            try:
                left = steps.capture(folder, "drawn_plans:" + plan, 1)
                right = steps.capture(folder, "drawn_plans:" + plan, world)
                report = os.path.join(folder, "r.json")
                said, spent, line = steps.compare(o.isomer, left, right, report)
            except steps.Failed as e:
                said, spent, line = {"verdict": "failed"}, 0, str(e).splitlines()[-1]
            count[said["verdict"]] += 1
            print("%s on %d, %.1f s: %s" % (plan, world, spent, line), flush=True)
    failed = count["different"] + count["failed"]
    print("%(equivalent)d equivalent, %(undecided)d undecided, " % count + "%d failed" % failed)
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
