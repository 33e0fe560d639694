#!/usr/bin/env python3
"""Captures of the known bugs: for each, the faulty side, its reference, and the correct twin.

    make.py DIR [NAME...]     writes DIR/NAME/{reference,faulty,twin,twin-reference}; all of them
                              without NAME
    make.py --list            the names

References are Transformers' own models where it has them (isomer_capture makes their captures),
else the published operators (remote.py). The other sides have vLLM's layers and operators
(layers.py, decoders.py) with the reference's weights. A twin is the same program with the fault
mended, or on a configuration in which it cannot show; `twin-reference` is there where its
configuration differs. Sizes: vocabulary 40, width 64, 4 heads of 16 (2 of keys and values where
grouped), 2 layers, 9 tokens."""

import argparse
import os
import sys
import warnings

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(os.path.dirname(HERE)), "capture")]

from torch import nn  # noqa: E402

import layers as ly  # noqa: E402
from ranks import gguf, internlm2, olmo  # noqa: E402
from gemmas import gemma2, gemma_gelu, two_bugs  # noqa: E402
from rotations import cohere, glm, gptj, phi35, phi_base, phi_norm, phi_rows  # noqa: E402
from vision import llama4_vision, qwen2_vl  # noqa: E402
from attention import bigcode, gpt2, gpt2_hf, jais, mistral, qwen  # noqa: E402
from experts import olmoe, phimoe  # noqa: E402

# Each gives "reference", "faulty", "twin", and "twin-reference" where the twin has a configuration
# of its own.
BUGS = {
    "01-internlm2-wqkv": internlm2,
    "02-olmo-ff-proj": olmo,
    "03-gemma-gelu": gemma_gelu,
    "04-gptj-rotary-pairs": gptj,
    "05-glm-rotary-all": lambda: glm(False),
    "05-glm-rotary-quarter": lambda: glm(True),
    "06-cohere-rows": cohere,
    "07-gemma2-window": gemma2,
    "08-qwen2vl-unloaded": lambda: qwen2_vl(False),
    "08-qwen2vl-swapped": lambda: qwen2_vl(True),
    "09-phi-base": phi_base,
    "09-phi-rows": phi_rows,
    "10-llama4-cast": llama4_vision,
    "11-mistral-position": mistral,
    "12-phi35-factors": phi35,
    "13-gguf-lm-head": gguf,
    "14-gpt2-scale": lambda: gpt2_hf({"scale_attn_weights": False}),
    "14-gpt2-layer-scale": lambda: gpt2_hf({"scale_attn_by_inverse_layer_idx": True}),
    "15-gpt2-scale": gpt2,
    "16-bigcode-scale": bigcode,
    "17-qwen-logn-4": lambda: qwen(4),
    "17-qwen-logn-8": lambda: qwen(8),
    "18-phimoe-jitter": phimoe,
    "19-olmoe-clip-1": lambda: olmoe(1.0),
    "19-olmoe-clip-8": lambda: olmoe(8.0),
    "20-jais-alibi": jais,
    "21-phi-qk-norm": phi_norm,
    "two-bugs": two_bugs,
}


def main():
    a = argparse.ArgumentParser(description="captures of the known bugs")
    a.add_argument("folder", nargs="?")
    a.add_argument("name", nargs="*")
    a.add_argument("--list", action="store_true")
    a = a.parse_args()
    if a.list:
        print("\n".join(BUGS))
        return 0
    if not a.folder or any(n not in BUGS for n in a.name):
        print(
            "make.py: %s"
            % (
                "no folder"
                if not a.folder
                else "no bug %s (--list)" % [n for n in a.name if n not in BUGS][0]
            ),
            file=sys.stderr,
        )
        return 2
    warnings.simplefilter("ignore")
    for name in a.name or BUGS:
        sides = BUGS[name]()
        for side, one in sides.items():
            ly.LAYERS.update(
                (m.name, m)
                for x in [getattr(one, "side", one)]
                for m in getattr(getattr(x, "side", x), "model", nn.Module()).modules()
                if isinstance(m, ly.Attention)
            )
            one.write(os.path.join(a.folder, name, side))
        print("%s: %s" % (name, ", ".join(sides)), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
