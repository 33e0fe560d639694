#!/usr/bin/env python3
"""The standing pairs of small captures, each with the verdict it must get and why.

tests/pairs/traps.py                  list them
tests/pairs/traps.py NAME FOLDER      write the captures of one to FOLDER/left and FOLDER/right"""

import sys

import dsl
import arithmetic  # noqa: F401
import attention  # noqa: F401  each adds its pairs to dsl.PAIRS
import bounds  # noqa: F401
import choices  # noqa: F401
import collectives  # noqa: F401
import edges  # noqa: F401
import identities  # noqa: F401
import layers  # noqa: F401
import lowered  # noqa: F401
import open_orders  # noqa: F401
import unsorted  # noqa: F401
import padding  # noqa: F401
import refactored_attention  # noqa: F401
import refactored_caches  # noqa: F401
import refactored_conv  # noqa: F401
import refactored_heads  # noqa: F401
import refactored_layers  # noqa: F401
import refactored_losses  # noqa: F401
import refactored_lowbits  # noqa: F401
import refactored_masks  # noqa: F401
import refactored_more  # noqa: F401
import refactored_routing  # noqa: F401
import refactored_scans  # noqa: F401
import routing  # noqa: F401
import tied  # noqa: F401
import undefined  # noqa: F401
import values  # noqa: F401

# Pairs whose verdict is not yet what it must be, and why. A wrong `equivalent` has a table of its
# own.
GAPS = {
    "undecided: pairs by steps of 2": ["rotary interleaved, by steps, rows permuted"],
    "undecided: a sum of no terms": ["product over nothing"],
    "undecided: a choice that no sample shows to count": ["refactored: cross entropy of two ranks"],
}
# Refactorings that are tested only, and why.
TESTED = {
    "log(2) as a decimal": ["attention by exp2"],
    "losses that ignore a class": ["label smoothing"],
    "a bound in logarithms": ["acceptance of a drafted token"],
    "an order by counting, or of probabilities": [
        "probabilities above a share of the best",
        "ranks",
        "second best by masking the best",
    ],
    "elements put where several may be": ["repetition penalty"],
    "no definition: view_as_real, _int_mm, bincount": [
        "rotary by complex numbers",
        "rotary by complex halves",
        "activations by rows, multiplied in int32",
        "tokens of each expert",
    ],
    "a product of exponentials": ["cumulated product by logs"],
    "exponentials in quotients": ["mish"],
    "more work than the prover's budget": [
        "experts gathered for each token",
        "tokens dispatched by one-hot rows",
        "gated linear attention",
        "tokens in padded rows of their experts",
    ],
}
NOT_PROVED = {"refactored: " + name: why for why, names in TESTED.items() for name in names}
KNOWN = {name: why for why, names in GAPS.items() for name in names}
WRONG_EQUIVALENT = {}


def main():
    if len(sys.argv) == 1:
        for p in dsl.PAIRS.values():
            print("%-60s %-22s %s" % (p.name, p.expected, p.why))
    elif len(sys.argv) == 3 and sys.argv[1] in dsl.PAIRS:
        dsl.PAIRS[sys.argv[1]].write(sys.argv[2])
    else:
        sys.exit(__doc__ if len(sys.argv) != 3 else "no pair is called %s" % sys.argv[1])


if __name__ == "__main__":
    main()
