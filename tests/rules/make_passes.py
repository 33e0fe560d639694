#!/usr/bin/env python3
"""Write passes.rules: what compilers' passes, simplifiers and e-graph papers rewrite, beyond
published.rules.

    tests/rules/make_passes.py > tests/rules/passes.rules

From what they are known to do: integers with floor division, real functions with their domains,
compositions of convolutions, fusions and foldings of graph optimisers, and identities of attention,
normalisation, parallel layers and quantisation. Beside each at least one near miss, named no-...;
notation: notation.py."""

import importlib

import notation

SECTIONS = ("integers", "functions", "convolution", "fusions", "models")

if __name__ == "__main__":
    for section in SECTIONS:  # the file keeps their order
        importlib.import_module("passes." + section)
    print(
        (
            "; Written by make_passes.py: %d rules. A name that begins with no- is of one that "
            "does not hold."
        )
        % len(notation.out)
    )
    print("\n".join(notation.out))
