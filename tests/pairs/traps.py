#!/usr/bin/env python3
"""The standing pairs of small captures, each with the verdict it must get and why.

    tests/pairs/traps.py                  list them
    tests/pairs/traps.py NAME FOLDER      write the captures of one to FOLDER/left and FOLDER/right"""
import sys

import dsl
import arithmetic  # noqa: F401
import attention  # noqa: F401  each adds its pairs to dsl.PAIRS
import choices  # noqa: F401
import collectives  # noqa: F401
import edges  # noqa: F401
import layers  # noqa: F401
import lowered  # noqa: F401
import padding  # noqa: F401
import tied  # noqa: F401
import undefined  # noqa: F401
import values  # noqa: F401

# Pairs whose verdict is not yet what it must be, and why. A wrong `equivalent` has a table of its own.
GAPS = {
    "undecided: pairs by steps of 2": ["rotary interleaved, by steps, rows permuted"],
    "undecided: a stored table that repeats": ["a stored table and its half"],
    "undecided: an integer times a float": ["int times 2.0"],
    "undecided: unordered sums": ["index_add in another order"],
    "undecided: a sum of no terms": ["product over nothing"],
}
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
