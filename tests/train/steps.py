#!/usr/bin/env python3
"""Training steps of PyTorch's own wrappers against the step on one device: each plan of plans.py is
recorded on so many ranks and compared, and so is each with a mistake. No correct plan may be
different, no faulty one equivalent; what is undecided is said, and fails where the table below
knows that it was decided.

    tests/train/steps.py [--isomer build/isomer] [-k TEXT] [--quick] [--table]

--quick: a few of them, as make check has it.
--table prints rows for docs/training.md. The last line is `N passed, N failed`."""

import argparse
import glob
import json
import os
import resource
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "tests", "support"))
import commands  # noqa: E402

OPEN = "undecided"
PROVED = "proved"  # equivalent, by rules that are all proved

# (the step on one rank, the plan, ranks, verdict); FILE:FUNCTION where it is not in plans.py
STEPS = [
    ("data", "data", 2, "equivalent"),
    ("data", "data", 4, "equivalent"),
    ("data", "data", 8, "equivalent"),
    ("data", "data_by_hand", 2, "equivalent"),
    ("data_clipped", "data_clipped", 2, "equivalent"),
    ("data", "one_accumulated", 1, "equivalent"),
    ("data_accumulated", "data", 2, PROVED),
    ("data_accumulated", "sharded", 2, PROVED),
    ("data_accumulated", "data", 4, PROVED),
    ("data_accumulated_4", "sharded", 4, PROVED),
    ("data_accumulated_4", "data_accumulated", 2, PROVED),
    ("data_accumulated_4", "data", 8, PROVED),
    ("data_accumulated", "data_accumulated", 2, PROVED),
    ("data_accumulated", "sharded", 4, PROVED),
    ("data_accumulated", "data_accumulated_4", 2, PROVED),
    ("data_accumulated", "data_unsynchronised", 2, "different"),
    ("data", "data_accumulated", 2, "equivalent"),
    ("data", "data_accumulated", 4, "equivalent"),
    ("data", "data_accumulated_4", 2, "equivalent"),
    ("data", "data_accumulated_4", 4, PROVED),
    ("data", "data_delayed", 2, "equivalent"),
    ("data", "data_strided", 2, "equivalent"),
    ("data", "sharded", 2, "equivalent"),
    ("data", "sharded", 4, "equivalent"),
    ("data", "sharded", 8, "equivalent"),
    ("data", "zero", 2, "equivalent"),
    ("data", "tensor", 2, "equivalent"),
    ("data", "tensor", 4, "equivalent"),
    ("data", "tensor_by_hand", 2, "equivalent"),
    ("data", "tensor_by_hand", 4, "equivalent"),
    ("data", "data_unsynchronised", 2, "different"),
    ("data_clipped", "data_summed", 2, "different"),
    ("data_clipped", "data_clipped_early", 2, "different"),
    ("data", "data_one_left_out", 2, "different"),
    ("data", "data_same_rows", 2, "different"),
    ("data", "data_stepped_twice", 2, "different"),
    ("data", "tensor_unreduced", 2, "different"),
]


def decoders():
    for model, plan, world, verdict in DECODERS:
        clipped = "_clipped" if plan.endswith("clipped") else ""
        left = "decoders:%s_data%s" % (model, clipped)
        yield left, "decoders:%s_%s" % (model, plan), world, verdict


DECODERS = [
    ("llama", "data", 2, "equivalent"),
    ("llama", "data", 4, "equivalent"),
    ("llama", "data_clipped", 2, "equivalent"),
    ("llama", "sharded", 2, "equivalent"),
    ("llama", "sharded", 4, "equivalent"),
    ("llama", "sharded_clipped", 2, "equivalent"),
    ("llama", "zero", 2, "equivalent"),
    ("llama", "tensor", 2, "equivalent"),
    ("llama", "sequence", 2, PROVED),
    ("llama", "mixed", 4, PROVED),
    ("llama", "mixed_accumulated", 4, PROVED),
    ("llama", "mixed_many", 8, PROVED),
    ("llama", "mixed_many_accumulated", 8, PROVED),
    ("llama", "mixed_sequence", 4, PROVED),
    ("llama", "mixed_sequence_accumulated", 4, PROVED),
    ("llama", "mixed_sequence_accumulated_clipped", 4, PROVED),
    ("llama", "tensor_accumulated", 2, "equivalent"),
    ("llama", "sequence_clipped", 2, "equivalent"),
    ("llama", "sequence_accumulated", 2, "equivalent"),
    ("llama", "sharded_accumulated_clipped", 2, "equivalent"),
    ("gpt", "data", 2, "equivalent"),
    ("gpt", "data", 4, "equivalent"),
    ("gpt", "data_accumulated", 4, PROVED),
    ("gpt", "data_clipped", 2, "equivalent"),
    ("gpt", "sharded", 2, "equivalent"),
    ("gpt", "zero", 2, "equivalent"),
    ("gpt", "tensor", 2, "equivalent"),
    ("gpt", "sharded_clipped", 4, PROVED),
    ("gpt", "sharded_clipped", 8, PROVED),
    ("gpt", "tensor_accumulated", 2, "equivalent"),
    ("gpt", "zero_accumulated", 8, PROVED),
    ("gpt", "sharded_accumulated_clipped", 8, PROVED),
    ("gpt", "mixed_accumulated_clipped", 4, PROVED),
    ("gpt", "mixed", 4, PROVED),
    ("gpt", "mixed_many", 8, PROVED),
    ("gpt", "tensor_clipped", 2, PROVED),
    ("gpt", "tensor_clipped", 4, PROVED),
    ("gpt", "mixed_clipped", 4, PROVED),
    ("gpt", "mixed_clipped", 8, PROVED),
    ("routed", "data", 2, PROVED),
    ("routed", "sharded", 2, PROVED),
    ("routed", "zero", 2, PROVED),
    ("routed", "mixed", 4, PROVED),
    ("routed", "mixed_accumulated", 4, PROVED),
]

# Each is the plan that its name begins with, with one mistake.
FAULTS = [
    ("hand", 2, "no_norm no_bias twice_divided not_divided wrong_count reduced_twice largest"),
    ("hand", 2, "from_first before_its_turn embedding_dropped batch_dropped labels_swapped"),
    ("hand", 4, "wrong_group"),
    ("frozen", 2, "trained decayed"),
    ("frozen", 4, "decayed"),
    ("sharded", 2, "local_norm"),
    ("sequence", 2, "norm_unreduced norm_averaged norm_multiplied"),
]


def faults():
    for plan, world, names in FAULTS:
        yield "faults:" + plan, "faults:" + plan, world, "equivalent"
        for name in names.split():
            yield "faults:" + plan, "faults:%s_%s" % (plan, name), world, "different"


def pipelines():
    for plan, world in PIPELINES:
        clipped = "_clipped" if plan.endswith("clipped") else ""
        yield "pipelines:gpipe" + clipped, "pipelines:" + plan, world, "equivalent"
    for plan, world in MIXED:
        yield "pipelines:mixed", "pipelines:" + plan, world, PROVED
    for fault in "unreduced summed norm last_stage".split():
        yield "pipelines:mixed", "pipelines:mixed_" + fault, 8, "different"
    yield "pipelines:mixed", "pipelines:mixed_same_rows", 4, "different"


PIPELINES = [("gpipe", 2), ("gpipe", 4), ("one_forward", 2), ("one_forward", 4), ("interleaved", 2)]
# Stages, over replicas or shards, over columns and rows; four micro-batches.
MIXED = [("mixed", 8), ("mixed_sharded", 8), ("mixed_replicas", 4), ("mixed_columns", 4)]
MIXED += [("mixed_flat", 4)]


def optimizers():
    for name in REPLICATED.split():
        yield "optimizers:" + name, "optimizers:" + name, 2, PROVED
    for name in SHARDED.split():
        one = "optimizers:" + name
        yield one, one + "_sharded", 2, PROVED
        yield one, one + "_unreduced", 2, "different"


def wrappers():
    for plan, worlds, verdict in WRAPPERS:
        start = plan.split("_")[0]
        one = ALONE.get(plan) or (plan if start in ("fused", "few") else "plain")
        for world in worlds:
            yield "wrappers:" + one, "wrappers:" + plan, world, verdict


# The step on one device, where it is not `plain` or what the plan is on one rank.
ALONE = {"uneven_clipped": "uneven_clipped", "lists": "fused_adam", "read": "read"}
ALONE.update({"read_wrong": "read", "adafactor": "adafactor"})
WRAPPERS = [
    ("uneven", (2, 3, 4), PROVED),
    ("uneven_clipped", (2, 3), "equivalent"),
    ("uneven_accumulated", (2,), "equivalent"),
    ("uneven_doubled", (2, 4), "different"),
    ("few", (4,), PROVED),
    ("hook", (2,), PROVED),
    ("hook_half", (2,), PROVED),
    ("hook_narrow", (2,), PROVED),
    ("hook_summed", (2,), "different"),
    ("fused_adam", (2,), PROVED),
    ("fused_adamw", (2,), PROVED),
    ("fused_momentum", (2,), PROVED),
    ("fused_adagrad", (2,), PROVED),
    ("fused_decayed", (2,), "different"),
    ("lists", (2,), PROVED),
    ("read", (2,), PROVED),
    ("read_wrong", (2,), "different"),
    ("adafactor", (2,), PROVED),
]

# What a plan keeps itself: the plan, that of the step on one device, and their verdict.
KEPT = [
    ("averaged", "averaged", PROVED),
    ("averaged_shard", "averaged", PROVED),
    ("averaged_named", "averaged_named", PROVED),
    ("averaged_named_shard", "averaged_named", PROVED),
    ("averaged_slower", "averaged", "different"),
    ("averaged_named_slower", "averaged_named", "different"),
    ("plain", "averaged", "different"),
    ("averaged", "plain", PROVED),
    ("spare", "plain", PROVED),
    ("momentum", "momentum", PROVED),
    ("momentum_shard", "momentum", PROVED),
    ("momentum_named", "momentum_named", PROVED),
    ("momentum_named_shard", "momentum_named", PROVED),
    ("momentum_less", "momentum", "different"),
    ("adam", "adam", PROVED),
    ("adam_shard", "adam", PROVED),
    ("adam_less", "adam", "different"),
]

SHARDED = "momentum nesterov adam"
REPLICATED = (
    SHARDED + " amsgrad adamax nadam radam rmsprop adagrad adadelta averaged cosine clipped"
)

STEPS += list(optimizers()) + list(decoders()) + list(dict.fromkeys(faults())) + list(pipelines())
STEPS += list(wrappers())
# Stages, ranks of a batch, ranks of weights: each is the plan of its name on one device.
DRAWN = [
    ("llama_p1d1t2_hand", 2),
    ("gpt_p1d1t2_hand", 2),
    ("llama_p1d2t2_sharded_hand", 4),
    ("llama_p2d1t2_torch", 4),
]
DRAWN += [("llama_p1d2t2_sharded_sequence_parts4_sgd", 4), ("gpt_p1d2t2_parts2_tied", 4)]
DRAWN += [("llama_p2d1t2_sequence", 4), ("gpt_p1d2t2_hand_sum", 4)]
# One rank alone counts what all have, and ranks are decided once all the same.
DRAWN += [("gpt_p1d2t2_parts2_hand", 4), ("gpt_p1d4t1_sharded_hand", 4)]
DRAWN += [("llama_p2d2t2_parts2_hand_sgd_sum", 8), ("routed_p1d4t2_parts4_hand_sgd", 8)]
DRAWN += [("llama_p1d1t2_sequence_parts4_hand_sum", 2), ("gpt_p2d1t2_hand_momentum", 4)]
SQUARES = ["gpt_p1d1t2_squares", "llama_p1d1t2_roots"]
# Sums of squares in the place of norms: on the right, and on both sides.
DRAWN += [("gpt_p1d1t2_squares", 2), ("llama_p1d2t2_squares", 4), ("llama_p2d2t1_squares", 4)]
DRAWN += [("gpt_p1d1t2_roots", 2), ("llama_p1d2t2_roots", 4)]
# Two ranks, which are decided once only after they were compared as they are.
DRAWN += [("routed_p1d2t1_parts4_torch_tied_momentum", 2)]
# A tied weight's gradients are of two operators, and a rank has one head of the keys.
DRAWN += [("llama_p1d2t2_sharded_parts4_tied_sgd_sum", 4)]
STEPS += [("drawn_plans:" + p, "drawn_plans:" + p, world, PROVED) for p, world in DRAWN]
STEPS += [("drawn_plans:llama_p1d1t2_hand", "drawn_plans:llama_p1d1t2_hand_twice", 2, "different")]
STEPS += [("drawn_plans:gpt_p1d2t2_hand", "drawn_plans:gpt_p1d2t2_hand_twice", 4, "different")]
STEPS += [("drawn_plans:" + p, "drawn_plans:" + p + "_twice", 2, "different") for p in SQUARES]
STEPS += [("kept:" + one, "kept:" + plan, 2, verdict) for plan, one, verdict in KEPT]
STEPS += [
    ("columns:forward", "columns:forward", 8, PROVED),
    ("columns:forward", "columns:unreduced", 8, "different"),
    ("faults:frozen", "faults:frozen_remembered", 2, "undecided"),
]
# Megatron-core's layers: the plan, that of the step on one device, and their verdict.
MEGATRON = [
    ("columns", 2, "columns", PROVED),
    ("columns_4", 4, "columns", PROVED),
    ("columns", 4, "columns", PROVED),
    ("sequence", 2, "columns", PROVED),
    ("sequence_4", 4, "columns", PROVED),
    ("sequence", 4, "columns", PROVED),
    ("sequence_parts", 2, "sequence_parts", PROVED),
    ("sequence_layers", 2, "sequence_layers", PROVED),
    ("replicas", 2, "columns", PROVED),
    ("replicas_parts", 2, "replicas_parts", PROVED),
    ("sequence_unmarked", 2, "columns", "different"),
    ("replicas_scaled", 2, "columns", "different"),
]
STEPS += [("megatron_layers:" + one, "megatron_layers:" + p, n, v) for p, n, one, v in MEGATRON]
QUICK = "data-4 data_strided-2 data_unsynchronised-2 decoders:llama_sharded_clipped-2".split()
QUICK += ["optimizers:momentum_sharded-2", "wrappers:uneven-3", "wrappers:hook_half-2"]
QUICK += ["kept:averaged_shard-2", "kept:momentum_named_shard-2"]
QUICK += ["decoders:llama_mixed_sequence_accumulated_clipped-4"]
QUICK += ["decoders:routed_mixed_accumulated-4"]
QUICK += ["pipelines:mixed-8"]
QUICK += ["megatron_layers:sequence-2", "megatron_layers:sequence_unmarked-2"]


class Failed(Exception):
    pass


def python():
    local = os.path.join(ROOT, ".venv", "bin", "python3")
    return local if os.path.exists(local) else sys.executable


def is_missing(plan):
    """Whether what its model is made of is not installed."""
    there = os.path.join(ROOT, ".venv", "lib", "python3*", "site-packages", "megatron", "core")
    return plan.startswith("megatron") and not glob.glob(there)


def capture(folder, function, world):
    out = os.path.join(folder, "%s-%d" % (function, world))
    if os.path.exists(out):
        return out
    script, _, function = function.rpartition(":")
    script = os.path.join(HERE, (script or "plans") + ".py")
    p = commands.run(["train", script + ":" + function, "--world", world, "-o", out], python())
    if p.returncode:
        raise Failed(p.stderr.strip() or "capturing failed")
    return out


def compare(isomer, left, right, report):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    p = subprocess.run(
        [isomer, "compare", left, right, "--refine", "--json", report],
        capture_output=True,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (60, 60)),
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    if not os.path.exists(report):
        if p.returncode >= 0:
            raise Failed(p.stderr.strip() or "no report")
        return {"verdict": OPEN, "evidence": None, "rules": [], "stats": {}}, spent, "over 60 s"
    with open(report) as f:
        said = json.load(f)
    os.unlink(report)
    return said, spent, p.stdout.strip().rsplit("\n", 1)[-1]


def is_good(said, expected):
    if expected == PROVED:
        return said["verdict"] == "equivalent" and said["evidence"] == PROVED
    return said["verdict"] in ((OPEN, "equivalent") if expected == OPEN else (expected,))


def nodes(folder):
    with open(os.path.join(folder, "graph.json")) as f:
        return len(json.load(f)["nodes"])


def row(plan, world, right, said, spent):
    rules = said["rules"]
    proved = sum(r["status"] == "proved" for r in rules)
    print(
        "| `%s` | %d | %d | %d of %d | %s%s | %.1f |"
        % (
            plan,
            world,
            nodes(right),
            proved,
            len(rules),
            said["verdict"],
            " [%s]" % said["evidence"] if said["verdict"] == "equivalent" else "",
            spent,
        ),
        flush=True,
    )


def main():
    a = argparse.ArgumentParser()
    a.add_argument("--isomer", default=os.path.join(ROOT, "build", "isomer"))
    a.add_argument("-k", default="", help="steps whose plan or number of ranks holds this")
    a.add_argument("--quick", action="store_true")
    a.add_argument("--table", action="store_true")
    o = a.parse_args()
    passed = failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for one, plan, world, expected in STEPS:
            called = "%s-%d" % (plan, world)
            if o.k not in called or (o.quick and called not in QUICK):
                continue
            if is_missing(plan):
                print("skipped: %s: Megatron-core is not installed" % called)
                continue
            try:
                left, right = capture(folder, one, 1), capture(folder, plan, world)
                said, spent, line = compare(o.isomer, left, right, os.path.join(folder, "r.json"))
                # An open plan may be decided, but never `different`: all of them are correct.
                good = is_good(said, expected)
            except Failed as e:
                good, line = False, str(e)
            passed, failed = passed + good, failed + (not good)
            if not good:
                print("%s on %d: %s, not %s" % (plan, world, line, expected), flush=True)
            elif o.table:
                row(plan, world, right, said, spent)
    print("%d passed, %d failed" % (passed, failed))
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
