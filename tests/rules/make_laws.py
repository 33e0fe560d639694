#!/usr/bin/env python3
"""Write laws.rules: laws of PyTorch's operators that are true for all sizes, and beside each a few
that are not.

    tests/rules/make_laws.py > tests/rules/laws.rules

The laws are those that graph optimisers use (substitution lists, simplifiers of tensor compilers,
e-graph papers), from the operators' meanings. A rule named no-... is a near miss: one that fails
for some sizes, attributes or values."""

import importlib

import notation

SECTIONS = ("arithmetic", "functions", "reductions", "products", "layout", "models")

if __name__ == "__main__":
    for section in SECTIONS:  # the file keeps their order
        importlib.import_module("laws." + section)
    print(
        (
            "; Written by make_laws.py: %d rules. A name that begins with no- is of one that does "
            "not hold."
        )
        % len(notation.out)
    )
    print("\n".join(notation.out))
