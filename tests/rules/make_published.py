#!/usr/bin/env python3
"""Write published.rules: rules in the manner of published sets, written from what they are known to
rewrite.

    tests/rules/make_published.py > tests/rules/published.rules

Graph optimisers' substitutions (TASO, PET, Tensat), simplifiers of compilers (TVM, XLA, MLIR, ONNX
Runtime, Inductor, Halide), e-graph papers, and what inference engines do to models (attention in
blocks, rotary positions, grouped heads, adapters, tensor parallelism, quantisation). Beside each at
least one near miss, named no-...; notation: notation.py."""

import importlib

import notation

SECTIONS = ("products", "convolution", "layout", "elementwise", "models", "indexing")

if __name__ == "__main__":
    for section in SECTIONS:  # the file keeps their order
        importlib.import_module("published." + section)
    print(
        (
            "; Written by make_published.py: %d rules. A name that begins with no- is of one that "
            "does not hold."
        )
        % len(notation.out)
    )
    print("\n".join(notation.out))
