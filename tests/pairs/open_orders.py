"""Orders of equal numbers, which topk and an unstable sort leave open: what a kernel does with ties
is no difference, of floating numbers as of integers, wherever the places go. Where manuals say
which place is meant (argmax: the first), ties tell two functions apart, and so do other places."""

from dsl import *

WIDTH = 8


def rows(g, dtype):
    """Numbers with ties."""
    n = 4 * WIDTH
    if dtype == i64:
        return g.ints("x", Data((4, WIDTH), [7 * k * k % 11 for k in range(n)]), 5)
    return g.x(4, WIDTH)


def chosen(places):
    return places.one_hot(WIDTH).sum(-2)


def ordered(x, n):
    return x.sort(-1, True)[1].slice(1, 0, n)


SAME = {
    "best three": (lambda x: x.topk(3)[1], lambda x: ordered(x, 3)),
    "the best one": (lambda x: x.argmax(-1), lambda x: x.topk(1)[1].squeeze(-1)),
    "chosen by a mask": (lambda x: chosen(x.topk(2)[1]), lambda x: chosen(ordered(x, 2))),
    "in an order": (lambda x: x.sort(-1)[1], lambda x: x.topk(WIDTH, -1, False)[1]),
}
OTHER = {
    "the last of the best": (
        lambda x: x.argmax(-1),
        lambda x: x.flip(1).argmax(-1).rsub(WIDTH - 1),
    ),
    "one place further": (
        lambda x: x.topk(3)[1].slice(1, 2, 3),
        lambda x: x.topk(4)[1].slice(1, 3, 4),
    ),
    "chosen of three": (lambda x: chosen(x.topk(2)[1]), lambda x: chosen(ordered(x, 3))),
    "the lowest": (lambda x: x.topk(1)[1], lambda x: x.topk(1, -1, False)[1]),
}

for _dtype in (f32, i64):
    for _what, (_one, _two) in {**SAME, **OTHER}.items():
        pair(
            "an open order, %s: %s" % (_dtype, _what),
            EQUIVALENT if _what in SAME else DIFFERENT,
            "equal numbers in any order" if _what in SAME else "another place",
            lambda g, f=_one, d=_dtype: f(rows(g, d)),
            lambda g, f=_two, d=_dtype: f(rows(g, d)),
        )
