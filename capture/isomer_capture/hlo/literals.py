"""Numbers of a module's text as the reals that they are roundings of.

A float32 stands in the text with the fewest digits that tell it from its neighbours, and that
decimal is what is read: 1e-06, not 9.99999997475e-07. Where a compiler has computed the number
before, as 1 / 48 or sqrt(2 / pi), no short decimal is near, and the text would be off by half a
unit of float32. So a number with all its digits is read as the simplest of 1 / n, p / q, sqrt(p /
q) and sqrt(p / (q pi)) that rounds to it, if there is one. Either is the same float32."""

import math
import re
import struct
from fractions import Fraction

DIGITS = 8  # as many as a float32 has when it is no short decimal
MOST = 256  # of p and q


def rounded(x):
    return struct.unpack("f", struct.pack("f", x))[0]


def ratio(x, most):
    """The p / q nearest to x, None where one is more than `most`."""
    f = Fraction(x).limit_denominator(most)
    return f if 0 < f.numerator <= most else None


def candidates(x):
    n = round(1 / x)
    if n > 1:
        yield 1 / n, "1/%d" % n
    f = ratio(x, MOST)
    if f is not None:
        yield float(f), str(f)
    f = ratio(x * x, MOST)
    if f is not None:
        yield math.sqrt(f), "sqrt(%s)" % f
    f = ratio(x * x * math.pi, 16)
    if f is not None:
        yield math.sqrt(f / math.pi), "sqrt(%s/pi)" % f


def read(text):
    """(number, how it was read; None: as it stands) of a float32's literal."""
    x = float(text)
    digits = re.sub(r"[eE].*|[^\d]", "", text).lstrip("0")
    if not math.isfinite(x) or not 1e-6 < abs(x) < 1e6 or len(digits) < DIGITS:
        return x, None
    for real, name in candidates(abs(x)):
        if rounded(real) == rounded(abs(x)):
            return math.copysign(real, x), "-" + name if x < 0 else name
    return x, None
