#!/usr/bin/env python3
"""compare --also: captures of one model at two lengths, of which the second may tell what the first
does not.

    tests/cli/lengths.py [--isomer build/isomer] [--only NAME]

The last line is `N passed, N failed`."""

import os
import sys
import tempfile

from harness import ROOT, expect, isomer, run_functions, short

sys.path.insert(0, os.path.join(ROOT, "tests", "pairs"))
from dsl import Pair, values  # noqa: E402

EQUIVALENT, DIFFERENT = 0, 1
SHORT, LONG = 4, 6


def judged(status, f):
    """f(g, side, length): the verdict is the same whichever side or length comes first, and names
    the length that tells."""
    with tempfile.TemporaryDirectory() as d:
        at = {}
        for n in (SHORT, LONG):
            Pair("", "", "", lambda g: f(g, 0, n), lambda g: f(g, 1, n)).write(
                os.path.join(d, str(n))
            )
            at[n] = [os.path.join(d, str(n), side) for side in ("left", "right")]
        r = isomer("compare", *at[SHORT], "-q")
        expect(
            r.status == EQUIVALENT,
            "the short ones alone: status %d: %s",
            r.status,
            short(r.out or r.err),
        )
        for first, second, pair in (
            (at[SHORT], at[LONG], 2),
            (at[SHORT][::-1], at[LONG][::-1], 2),
            (at[LONG], at[SHORT], 1),
        ):
            r = isomer("compare", *first, "--also", *second, "-q")
            expect(
                r.status == status,
                "status %d, expected %d: %s",
                r.status,
                status,
                short(r.out or r.err),
            )
            expect(status == EQUIVALENT or b"pair %d of 2" % pair in r.out, "%s", short(r.out))


def attention(x, mask):
    return x.mm(x.t()).masked_fill(mask, -float("inf")).softmax(-1).mm(x)


def window(width):
    def f(g, side, n):
        behind = g.arange(n).unsqueeze(1).sub(g.arange(n).unsqueeze(0))
        return attention(
            g.x(n, 8), behind.lt(0).logical_or(behind.ge(width)) if side else behind.lt(0)
        )

    return f


def two_spellings():
    judged(
        EQUIVALENT,
        lambda g, s, n: (lambda x, w: x.linear(w) if s else x.mm(w.t()))(
            g.x(n, 8), g.param("w", 6, 8)
        ),
    )


def scale_by_length():
    judged(EQUIVALENT, lambda g, s, n: g.x(n, 8).mul(1 / n) if s else g.x(n, 8).div(float(n)))
    judged(DIFFERENT, lambda g, s, n: g.x(n, 8).mul(1 / SHORT if s else 1 / n))


def windows():
    judged(EQUIVALENT, window(LONG + 3))
    judged(DIFFERENT, window(SHORT))


def positions():
    judged(
        DIFFERENT,
        lambda g, s, n: g.x(n, 8).add(
            g.param("p", 16, 8).embedding(g.arange(n).clamp(0, SHORT - 1) if s else g.arange(n))
        ),
    )


def last_token():
    judged(
        EQUIVALENT,
        lambda g, s, n: g.x(n, 8).select(0, n - 1) if s else g.x(n, 8).flip(0).select(0, 0),
    )
    judged(DIFFERENT, lambda g, s, n: g.x(n, 8).select(0, SHORT - 1 if s else n - 1))


def means():
    judged(
        DIFFERENT, lambda g, s, n: g.x(n, 8).slice(0, 0, SHORT).mean(0) if s else g.x(n, 8).mean(0)
    )


def weights():
    judged(
        DIFFERENT,
        lambda g, s, n: g.x(n, 8).linear(
            g.param("w", values("v" if s and n == LONG else "w", 6, 8))
        ),
    )


def main():
    return run_functions(
        [], [two_spellings, scale_by_length, windows, positions, last_token, means, weights]
    )


if __name__ == "__main__":
    sys.exit(main())
