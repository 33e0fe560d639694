#!/usr/bin/env python3
"""Training steps of PyTorch's own wrappers, and with mistakes, by `isomer lint`: recorded by
`isomer-capture train` from tests/train/. A step that is right is CLEAN, or undecided where the
table says so; a mistake that one capture can show is found. Needs torch.

    tests/lint/training.py --isomer build/isomer [-k TEXT] [--quick]

--quick: a few of them, as make check has it."""

import argparse
import os
import sys
import tempfile

from harness import Lint, ROOT, check, finish

sys.path.insert(0, os.path.join(ROOT, "tests", "train"))
import steps

CLEAN, FOUND, OPEN = 0, 1, 3

PLANS = """mlp-2 data-2 data-4 data_by_hand-2 data_clipped-2 data_accumulated-2 data_accumulated_4-2
data_delayed-2 data_strided-2 sharded-2 sharded-4 tensor-2 tensor-4 tensor_by_hand-2"""
DECODERS = """llama_data-2 llama_sharded-2 llama_sharded_clipped-2 llama_tensor-2 llama_sequence-2
llama_mixed-4 llama_tensor_accumulated-2 gpt_data-2 gpt_data_clipped-2 gpt_sharded-2
gpt_sharded_clipped-4 gpt_tensor-2 gpt_mixed-4 routed_data-2 routed_sharded-2
llama_sharded_accumulated_clipped-2"""
RIGHT = ["plans:" + p for p in PLANS.split()] + ["decoders:" + p for p in DECODERS.split()]
RIGHT += ["plans:zero-2", "decoders:llama_sequence_clipped-2", "faults:sequence_norm_summed-2"]
RIGHT += ["faults:hand-2", "faults:sharded-2", "faults:sequence-2"]

# What rank 1 throws away it has not done; rows of the table that a mask chooses, on a grid.
UNDECIDED = ["faults:hand_from_first-2", "decoders:llama_mixed_sequence-4"]

WRONG = """plans:mlp_alone-2 plans:data_unsynchronised-2 plans:data_summed-2
plans:tensor_unreduced-2 plans:data_clipped_early-2 plans:data_one_left_out-2
faults:hand_no_norm-2 faults:hand_no_bias-2
faults:hand_twice_divided-2 faults:hand_not_divided-2 faults:hand_wrong_count-2
faults:hand_reduced_twice-2 faults:hand_largest-2 faults:hand_before_its_turn-2
faults:hand_wrong_group-4 faults:sharded_local_norm-2 faults:sequence_norm_unreduced-2
faults:sequence_norm_averaged-2 faults:sequence_norm_multiplied-2""".split()

# A number of ranks too often or too seldom, under each wrapper.
for plan in ("data-2", "sharded-2", "tensor-2", "sequence-2", "mixed-4"):
    name, _, world = plan.partition("-")
    RIGHT.append("faults:wrapped_%s_there_and_back-%s" % (name, world))
    wrong = ["faults:wrapped_%s_%s-%s" % (name, f, world) for f in ("averaged_again", "multiplied")]
    if name == "mixed":
        UNDECIDED += wrong  # nothing is said of its inputs
    else:
        WRONG += wrong

QUICK = ("plans:data_accumulated-2", "plans:sharded-2", "plans:tensor-2", "plans:data_summed-2")


def one(o, folder, name, wanted):
    plan, _, world = name.rpartition("-")
    try:
        at = steps.capture(folder, plan, int(world))
    except steps.Failed as e:
        check(False, "%s: %s", name, e)
        return
    x = Lint(o.isomer, at)
    said = "%s on %s ranks: status %d, not %d: %s"
    check(x.status == wanted, said, plan, world, x.status, wanted, x.last)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--isomer", default=os.path.join(ROOT, "build", "isomer"))
    p.add_argument("-k", default="", help="plans whose name holds this")
    p.add_argument("--quick", action="store_true")
    o = p.parse_args()
    o.isomer = os.path.abspath(o.isomer)
    rows = (
        [(n, CLEAN) for n in RIGHT] + [(n, OPEN) for n in UNDECIDED] + [(n, FOUND) for n in WRONG]
    )
    with tempfile.TemporaryDirectory() as folder:
        for name, wanted in rows:
            if o.k in name and (not o.quick or name in QUICK):
                one(o, folder, name, wanted)
    finish()


main()
