#!/usr/bin/env python3
"""Certificates written by hand for graphs that are not equal: every one must be refused. Here what
they say of leaves, inputs and constants is forged; and captures with several input sets, of which
the first alone says nothing of the others.

    tests/cli/forged_leaves.py [--isomer build/isomer] [--only NAME]

The last line is `N passed, N failed`."""

import os
import sys

from forging import HOLDS, REFUSED, WHERE, Certificate, compared, ref, two
from harness import expect, isomer, run_functions, short


# ---- several input sets ----


def further_positions():
    """Positions that are kept in one set are others in the next one: a table that has the first
    ones is not equal."""
    for rows in (False, True):

        def build(c, side):
            def made(v):
                return [v] if rows else v

            n = [1, 4] if rows else [4]
            c.leaf(
                "x", "input", "float32", made([0.5, -1.25, 2.0, 3.5]), made([1.0, 2.0, 3.0, 4.5])
            )
            c.leaf("p", "input", "int64", made([0, 1, 2, 3]), made([5, 6, 7, 8]))
            c.leaf("c", "buffer", "float32", made([0.0, 1.0, 2.0, 3.0]))
            c.op("f", "aten::to.dtype", [ref("p"), {"dtype": "float32"}], n)
            c.op("y", "aten::mul.Tensor", [ref("x"), ref("c" if side else "f")], n)

        compared(*two(build), 1)


def further_positions_alike():
    """A table that is looked up, and one that is computed, at positions that are others in each
    set."""

    def build(c, side):
        c.leaf("x", "input", "float32", [0.5, -1.25, 2.0, 3.5], [1.0, 2.0, 3.0, 4.5])
        c.leaf("p", "input", "int64", [0, 1, 2, 3], [3, 4, 5, 6])
        c.leaf("t", "buffer", "float32", [0.0, 1.0, 4.0, 9.0, 16.0, 25.0, 36.0, 49.0])
        if side:
            c.op("f", "aten::index_select", [ref("t"), 0, ref("p")], [4])
        else:
            c.op("g", "aten::to.dtype", [ref("p"), {"dtype": "float32"}], [4])
            c.op("f", "aten::mul.Tensor", [ref("g"), ref("g")], [4])
        c.op("y", "aten::mul.Tensor", [ref("x"), ref("f")], [4])

    left, right = two(build)
    compared(left, right, 0)
    path = os.path.join(WHERE.name, "sets.json")
    isomer("compare", left, right, "-q", "--certificate", path)
    r = isomer("check", path, left, right)
    expect(
        r.status == 0,
        "check: status %d: %s",
        r.status,
        short((r.out or r.err).decode("utf-8", "replace")[-300:]),
    )


# ---- constants ----


def drifting_table():
    """A table that is multiplied by 1 + an ulp again and again."""
    table = [0.3 + 0.1 * k for k in range(6)]

    def build(c, side):
        c.leaf("x", "input", "float32", [0.5, -1.25, 2.0, 3.5, 1.0, -2.0])
        c.leaf("t", "buffer", "float32", [v * (1 + 1e-5 * side) for v in table])
        c.op("y", "aten::mul.Tensor", [ref("x"), ref("t")], [6])

    left, right = two(build)
    compared(left, right, 1)
    c = Certificate(left, right)
    xl, tl, yl = c.left("x", "t", "y")
    xr, tr, yr = c.right("x", "t", "y")
    c.step("leaf", (xr, xl))
    at = tl
    for _ in range(60):
        c.step("value", (at, c.call("aten::mul.Scalar", ref(at), 1 + 1.6e-7)))
        at = len(c.terms) - 1
    c.step("value", (at, tr))
    c.step("same", (yl, yr))
    c.check(yl, yr, REFUSED, "rounds")


def drifting_by_rounding():
    """The same, each step said to be a rounding."""
    table = [0.3 + 0.1 * k for k in range(6)]

    def build(c, side):
        c.leaf("x", "input", "float32", [0.5, -1.25, 2.0, 3.5, 1.0, -2.0])
        c.leaf("t", "buffer", "float32", [v * (1 + 1e-5 * side) for v in table])
        c.op("y", "aten::mul.Tensor", [ref("x"), ref("t")], [6])

    left, right = two(build)
    compared(left, right, 1)
    c = Certificate(left, right)
    xl, tl, yl = c.left("x", "t", "y")
    xr, tr, yr = c.right("x", "t", "y")
    c.step("leaf", (xr, xl))
    at = tl
    for _ in range(60):
        c.step("rounding", (at, c.call("aten::mul.Scalar", ref(at), 1 + 1.6e-7)))
        at = len(c.terms) - 1
    c.step("rounding", (at, tr))
    c.step("same", (yl, yr))
    c.check(yl, yr, REFUSED, "rounds")


def no_rounding():
    """Tables that are 40 units in the last place apart, or a part in 500000, said to be one but for
    rounding."""
    table = [0.3 + 0.1 * k for k in range(6)]
    for by in (40 * 2.0**-24, 2e-6, 0.1):

        def build(c, side):
            c.leaf("x", "input", "float32", [0.5, -1.25, 2.0, 3.5, 1.0, -2.0])
            c.leaf(
                "t",
                "buffer",
                "float32",
                [v + (by if side and k == 3 else 0) for k, v in enumerate(table)],
            )
            c.op("y", "aten::mul.Tensor", [ref("x"), ref("t")], [6])

        left, right = two(build)
        c = Certificate(left, right)
        xl, tl, yl = c.left("x", "t", "y")
        xr, tr, yr = c.right("x", "t", "y")
        c.step("leaf", (xr, xl))
        c.step("rounding", (tl, tr))
        c.step("same", (yl, yr))
        c.check(yl, yr, REFUSED, "by more than rounding")


def rounding_through_jumps():
    """Constants a unit in the last place apart are one but for rounding; a floor, a comparison or a
    sign of them is not."""
    for op, args, value, unit in (
        ("floor", [], 3.0, 2.0**-22),
        ("ceil", [], 1.0, -(2.0**-23)),
        ("gt.Scalar", [0], 2.0**-149, 2.0**-149),
        ("round", [], 1.5, 2.0**-23),
        ("sign", [], 2.0**-149, 2.0**-149),
    ):

        def build(c, side):
            c.leaf("x", "input", "float32", [4.0, -1.25, 2.0, 3.5])
            c.leaf("t", "buffer", "float32", [value - (unit if side else 0), 0.25, 0.5, 0.75])
            c.op(
                "f", "aten::" + op, [ref("t"), *args], [4], "bool" if op[:2] == "gt" else "float32"
            )
            c.op("y", "aten::mul.Tensor", [ref("x"), ref("f")], [4])

        left, right = two(build)
        c = Certificate(left, right)
        xl, tl, fl, yl = c.left("x", "t", "f", "y")
        xr, tr, fr, yr = c.right("x", "t", "f", "y")
        c.step("leaf", (xr, xl))
        c.step("rounding", (tl, tr))
        c.step("same", (fl, fr), (yl, yr))
        c.check(yl, yr, REFUSED, "because of constants")


def rounded_away():
    """x + 1e10 - 1e10 is x over the reals, and in float32 it is 0 for small ones."""

    def build(c, side):
        c.leaf("x", "input", "float32", [0.5, -1.25, 2.0])
        c.leaf("t", "buffer", "float32", [0.0, 0.0, 0.0] if side else [0.5, 0.25, 0.125])
        c.op("y", "aten::mul.Tensor", [ref("x"), ref("t")], [3])

    left, right = two(build)
    compared(left, right, 1)
    c = Certificate(left, right)
    xl, tl, yl = c.left("x", "t", "y")
    xr, tr, yr = c.right("x", "t", "y")
    c.step("leaf", (xr, xl))
    u = c.call("aten::add.Scalar", ref(c.call("aten::add.Scalar", ref(tl), 1e10, 1)), -1e10, 1)
    c.step("value", (u, tr))
    r = c.rule(
        (
            "(rule r (var x f _) (lhs (aten::add.Scalar (aten::add.Scalar x 1e10 1) -1e10 1)) "
            "(rhs x) "
            '(evidence proved "all shapes"))'
        )
    )
    c.apply(r, [tl], u, tl)
    c.step("same", (yl, yr))
    c.check(yl, yr, REFUSED, "rounds")


# ---- leaves and inputs ----


def pinned_tokens():
    """Tokens that were captured between 3 and 5 are not clamped there."""

    def build(c, side):
        c.leaf("i", "input", "int64", [3, 5, 3, 5])
        c.leaf("w", "parameter", "float32", [[0.1 * a + b for b in range(3)] for a in range(8)])
        if side:
            c.op("j", "aten::clamp", [ref("i"), 3, 5], [4], "int64")
        c.op("y", "aten::embedding", [ref("w"), ref("j" if side else "i")], [4, 3])

    left, right = two(build)
    compared(left, right, 1)
    for low, high in ((3, 5), (3, 7), (0, 5)):
        c = Certificate(left, right)
        il, wl, yl = c.left("i", "w", "y")
        ir, jr, wr, yr = c.right("i", "j", "w", "y")
        c.step("leaf", (ir, il), (wr, wl))
        q = c.call("aten::clamp", ref(il), low, high)
        c.step("bound", (il, q))
        c.step("same", (q, jr), (yl, yr))
        c.check(yl, yr, REFUSED, "not padding")


def kept_by_chance():
    """Few integers are all 0, or consecutive, by chance: kept, they hide what other ones show. Many
    are what they look like."""
    cases = [
        ([0, 0, 0], 0, 0, REFUSED),
        ([4] * 12, 0, 4, REFUSED),
        ([5] * 3, 5, 100, REFUSED),
        ([4, 5], 4, 100, REFUSED),
        ([20] * 3, 20, 100, REFUSED),
        ([0, 1], 0, 1, REFUSED),
        ([0, 0, 0], 0, 20, REFUSED),
        ([5] * 3, 0, 100, REFUSED),
        ([5] * 3, 0, 1 << 20, HOLDS),
        (list(range(12)), 0, 11, HOLDS),
    ]
    for numbers, least, most, answer in cases:
        n = len(numbers)

        def build(c, side):
            c.leaf("i", "input", "int64", numbers)
            c.leaf("x", "input", "float32", [0.5 * a - 1.25 for a in range(n)])
            if side:
                c.op("j", "aten::clamp", [ref("i"), least, most], [n], "int64")
            c.op("y", "aten::mul.Tensor", [ref("x"), ref("j" if side else "i")], [n])

        left, right = two(build)
        compared(left, right, 3 if answer == REFUSED else 0)
        c = Certificate(left, right, [{"left": "i"}, {"right": "i"}])
        il, xl, fl, yl = c.left("i", "x", "y_operand1", "y")
        ir, jr, xr, fr, yr = c.right("i", "j", "x", "y_operand1", "y")
        c.step("leaf", (ir, il), (xr, xl))
        c.step("value", (il, jr))
        c.step("same", (fl, fr), (yl, yr))
        c.check(yl, yr, answer, "other integers" if answer == REFUSED else "")


def counted_by_chance():
    """So few ids count the zeros of a mask by chance: kept as these, they hide what rows of their
    own show. Many more are the positions that they look like."""
    for row, answer in (([1, 1, 0, 0], REFUSED), ([0, 1, 0, 1, 1, 0] * 6, HOLDS)):
        n = len(row)
        ids = [row[: k + 1].count(0) for k in range(n)]

        def build(c, side):
            c.leaf("i", "input", "int64", ids)
            c.leaf("m", "input", "int64", row)
            c.leaf("x", "input", "float32", [0.5 * a - 1.25 for a in range(n)])
            c.leaf("w", "parameter", "float32", [[0.25 * a - 3.0] for a in range(53)])
            if side:
                c.op("j", "aten::clamp", [ref("i"), 0, 51], [n], "int64")
            c.op("e", "aten::embedding", [ref("w"), ref("j" if side else "i")], [n, 1])
            c.op("s", "aten::mul.Tensor", [ref("x"), ref("m")], [n])
            c.op("y", "aten::add.Tensor", [ref("e"), ref("s")], [n, n])

        left, right = two(build)
        compared(left, right, 3 if answer == REFUSED else 0)
        c = Certificate(left, right, [{"left": i} for i in "im"] + [{"right": i} for i in "im"])
        il, ml, xl, wl, yl = c.left("i", "m", "x", "w", "y")
        ir, jr, mr, xr, wr, yr = c.right("i", "j", "m", "x", "w", "y")
        c.step("leaf", (ir, il), (mr, ml), (xr, xl), (wr, wl))
        c.step("value", (il, jr))
        c.step("same", (c.left("e"), c.right("e")))
        c.step("same", (c.left("s_operand1"), c.right("s_operand1")))
        c.step("same", (c.left("s"), c.right("s")))
        c.step("same", (yl, yr))
        c.check(yl, yr, answer, "other integers" if answer == REFUSED else "")


def floats_counted_by_chance():
    """A factor is by chance how many ones a mask has: kept so, it hides what larger ones show."""
    for row, answer in (([1, 1, 0, 1], REFUSED), ([0, 1, 0, 1, 1, 0] * 6, HOLDS)):
        n = len(row)
        counts = [float(sum(row[: k + 1])) for k in range(n)]

        def build(c, side):
            c.leaf("p", "input", "float32", counts)
            c.leaf("m", "input", "int64", row)
            c.leaf("x", "input", "float32", [0.5 * a - 1.25 for a in range(n)])
            if side:
                c.op("j", "aten::clamp", [ref("p"), 0, 51], [n])
            c.op("e", "aten::mul.Tensor", [ref("x"), ref("j" if side else "p")], [n])
            c.op("s", "aten::mul.Tensor", [ref("x"), ref("m")], [n])
            c.op("y", "aten::add.Tensor", [ref("e"), ref("s")], [n])

        left, right = two(build)
        compared(left, right, 3 if answer == REFUSED else 0)
        c = Certificate(left, right, [{"left": i} for i in "pm"] + [{"right": i} for i in "pm"])
        pl, ml, xl, yl = c.left("p", "m", "x", "y")
        pr, jr, mr, xr, yr = c.right("p", "j", "m", "x", "y")
        c.step("leaf", (pr, pl), (mr, ml), (xr, xl))
        c.step("value", (pl, jr))
        c.step("same", (c.left("e"), c.right("e")))
        c.step("same", (c.left("s_operand1"), c.right("s_operand1")))
        c.step("same", (c.left("s"), c.right("s")))
        c.step("same", (yl, yr))
        c.check(yl, yr, answer, "other integers" if answer == REFUSED else "")


def classes_kept():
    """The classes that a loss is told may be any, though those captured are zeros and ones, or
    consecutive, and so many that it is no chance. A mask of as many keeps what it looks like."""
    for numbers in ([0, 0, 1, 1, 1, 0, 1, 1, 0, 1, 0, 0, 1, 1], list(range(14))):
        for what in ("loss", "mask"):
            n = len(numbers)

            def build(c, side):
                c.leaf("i", "input", "int64", numbers)
                c.leaf(
                    "x", "input", "float32", [[0.5 * a - b for b in range(20)] for a in range(n)]
                )
                if side:
                    c.op("j", "aten::clamp", [ref("i"), 0, 18], [n], "int64")
                told = ref("j" if side else "i")
                if what == "mask":
                    c.op("s", "aten::sum.dim_IntList", [ref("x"), [1], False], [n])
                    c.op("y", "aten::mul.Tensor", [ref("s"), told], [n])
                    return
                c.op("k", "aten::reshape", [told, [n]], [n], "int64")
                c.op("y", "aten::cross_entropy_loss", [ref("x"), ref("k"), None, 0, -100, 0.0], [n])

            left, right = two(build)
            compared(left, right, 0 if what == "mask" else 1)
            c = Certificate(left, right, [{"left": "i"}, {"right": "i"}])
            il, xl, yl = c.left("i", "x", "y")
            ir, jr, xr, yr = c.right("i", "j", "x", "y")
            c.step("leaf", (ir, il), (xr, xl))
            c.step("value", (il, jr))
            if what == "mask":
                c.step("same", (c.left("s"), c.right("s")))
                c.step("same", (c.left("y_operand1"), c.right("y_operand1")))
            else:
                c.step("same", (c.left("k"), c.right("k")))
            c.step("same", (yl, yr))
            held = what == "mask"
            c.check(yl, yr, HOLDS if held else REFUSED, "" if held else "is no input that is kept")


def equal_layers():
    """Weights that are all one are not therefore one: each has its namesake. Where names do not
    tell, they may be taken as one, and then it is said."""
    for names, status, why in (
        (("w0", "w1"), REFUSED, "under their own name"),
        (
            ("u0", "u1"),
            HOLDS,
            "leaf: left's w0 and w1, which have one captured value, are taken as one parameter",
        ),
    ):

        def build(c, side):
            own = names if side else ("w0", "w1")
            c.leaf("x", "input", "float32", [0.5, -1.25, 2.0, 3.5])
            for w in own:
                c.leaf(w, "parameter", "float32", [1.0] * 4)
            c.op("a", "aten::mul.Tensor", [ref("x"), ref(own[0])], [4])
            c.op("y", "aten::mul.Tensor", [ref("a"), ref(own[0] if side else own[1])], [4])

        left, right = two(build)
        if status == REFUSED:
            compared(left, right, 1)
        c = Certificate(left, right)
        xl, w0, w1, al, yl = c.left("x", "w0", "w1", "a", "y")
        xr, wr, ar, yr = c.right("x", names[0], "a", "y")
        c.step("leaf", (xr, xl), (w0, wr), (w1, wr))
        c.step("same", (al, ar), (yl, yr))
        c.check(yl, yr, status, why)


def swapped_layers():
    """Two norms that are all ones, and two inputs of one value, in the other order."""
    for kind in ("parameter", "input"):

        def build(c, side):
            c.leaf("x", "input", "float32", [0.5, -1.25])
            for w in "uv":
                c.leaf(w, kind, "float32", [1.0, 1.0])
            c.op("a", "aten::mul.Tensor", [ref("x"), ref("uv"[side])], [2])
            c.op("b", "aten::relu", [ref("a")], [2])
            c.op("y", "aten::add.Tensor", [ref("b"), ref("vu"[side])], [2])

        left, right = two(build)
        compared(left, right, 1)
        c = Certificate(left, right)
        xl, ul, vl, al, bl, yl = c.left("x", "u", "v", "a", "b", "y")
        xr, ur, vr, ar, br, yr = c.right("x", "u", "v", "a", "b", "y")
        c.step("leaf", (xr, xl), (ur, vl), (vr, ul))
        c.step("same", (al, ar), (bl, br), (yl, yr))
        c.check(yl, yr, REFUSED, "under their own name")


def own_transpose():
    """A weight that is all ones is its own transpose where it was captured: said of it, over the
    other side, or over the other side's layout."""
    for kind in ("parameter", "input"):
        for named in (True, False):

            def build(c, side):
                w = "v" if side and not named else "w"
                c.leaf("x", "input", "float32", [[0.5, -1.25], [2.0, 3.5]])
                c.leaf(w, kind, "float32", [[1.0, 1.0], [1.0, 1.0]])
                if side:
                    c.op("t", "aten::t", [ref(w)], [2, 2])
                c.op("y", "aten::mm", [ref("x"), ref("t" if side else w)], [2, 2])

            left, right = two(build)
            if named:
                compared(left, right, 1)
            for over in (False, True):
                c = Certificate(left, right)
                xl, wl, yl = c.left("x", "w", "y")
                xr, wr, tr, yr = c.right("x", "w" if named else "v", "t", "y")
                t = c.call("aten::t", ref(wr if over else wl))
                c.step("leaf", (xr, xl), (wr, wl), (wl, t))
                c.step("same", (tr, t), (yl, yr))
                c.check(
                    yl,
                    yr,
                    REFUSED,
                    "its own side"
                    if not over
                    else "its value as w"
                    if named
                    else "equal to each other",
                )


def slices_of_zeros():
    """Parts of a bias that is all zeros have no order of their own: that they were chosen is said,
    and that one is taken twice."""
    for second, says in (
        (2, "leaf: right's k is left's k by value, which is one number everywhere"),
        (0, "leaf: right's q and k, which have captured values in common, are taken as one there"),
    ):

        def build(c, side):
            c.leaf("x", "input", "float32", [0.5, -1.25])
            for w in ("q", "k") if side else ("b",):
                c.leaf(w, "parameter", "float32", [0.0] * (2 if side else 4))
            if not side:
                c.op("q", "aten::slice.Tensor", [ref("b"), 0, 0, 2, 1], [2])
                c.op("k", "aten::slice.Tensor", [ref("b"), 0, second, second + 2, 1], [2])
            c.op("a", "aten::add.Tensor", [ref("x"), ref("q")], [2])
            c.op("r", "aten::relu", [ref("a")], [2])
            c.op("y", "aten::add.Tensor", [ref("r"), ref("k")], [2])

        c = Certificate(*two(build))
        xl, ql, kl, al, rl, yl = c.left("x", "q", "k", "a", "r", "y")
        xr, qr, kr, ar, rr, yr = c.right("x", "q", "k", "a", "r", "y")
        c.step("leaf", (xr, xl), (qr, ql), (kr, kl))
        c.step("same", (al, ar), (rl, rr), (yl, yr))
        c.check(yl, yr, HOLDS, says)


def halves_that_another_leaf_has():
    """A leaf is said to be another one twice over, and so its halves to be equal. It is seen
    although a third leaf has these elements first."""
    half = [0.5, -1.25]

    def build(c, side):
        c.leaf("x", "input", "float32", [0.25, 2.0])
        c.leaf("u" if side else "a", "parameter", "float32", half)
        c.leaf("b", "parameter", "float32", half + half)
        c.op("h", "aten::slice.Tensor", [ref("b"), 0, 2 * side, 2 * side + 2, 1], [2])
        c.op("r", "aten::mul.Tensor", [ref("x"), ref("u" if side else "a")], [2])
        c.op("y", "aten::add.Tensor", [ref("r"), ref("h")], [2])

    left, right = two(build)
    compared(left, right, 1)
    c = Certificate(left, right)
    xl, al, bl, hl, rl, yl = c.left("x", "a", "b", "h", "r", "y")
    xr, ur, br, hr, rr, yr = c.right("x", "u", "b", "h", "r", "y")
    twice = c.call("aten::cat", [ref(ur), ref(ur)], 0)
    first = c.call("aten::slice.Tensor", ref(twice), 0, 0, 2, 1)
    second = c.call("aten::slice.Tensor", ref(twice), 0, 2, 4, 1)
    c.step("leaf", (xr, xl), (ur, al), (br, bl), (bl, twice))
    part = "(aten::slice.Tensor (aten::cat (list v v) 0) 0 %d %d 1)"
    r = c.rule(
        '(rule r (var v f (2)) (lhs %s) (rhs %s) (evidence proved "these shapes"))'
        % (part % (0, 2), part % (2, 4))
    )
    c.step("same", (hl, first), (hr, second))
    c.apply(r, [ur], first, second)
    c.step("same", (rl, rr), (yl, yr))
    c.check(yl, yr, REFUSED, "elements of left's b equal to each other")


def pinned_parameter():
    """A weight that is all ones, and a buffer of ones: a parameter is no constant, whatever it is
    related to."""

    def build(c, side):
        c.leaf("x", "input", "float32", [0.5, -1.25, 2.0])
        if not side:
            c.leaf("w", "parameter", "float32", [1.0] * 3)
        c.leaf("o", "buffer", "float32", [1.0] * 3)
        c.op("d", "aten::relu", [ref("o")], [3])
        c.op("y", "aten::mul.Tensor", [ref("x"), ref("o" if side else "w")], [3])

    left, right = two(build)
    c = Certificate(left, right)
    xl, wl, yl = c.left("x", "w", "y")
    xr, br, yr = c.right("x", "o", "y")
    ones = c.call("aten::ones", [3], {"dtype": "float32"}, None, None, None)
    one = c.call("aten::mul.Tensor", ref(xl), ref(ones))
    c.step("leaf", (xr, xl), (wl, br))
    c.step("value", (br, ones))
    c.step("same", (yl, yr), (yl, one))
    c.check(yl, yr, REFUSED, "is no constant")


def unread_table():
    """Tokens are not bounded by a table that no output reads."""

    def build(c, side):
        c.leaf("i", "input", "int64", [3, 5, 3, 5])
        for w, rows in (("w", 8), ("s", 6)):
            c.leaf(
                w, "parameter", "float32", [[0.1 * a + b for b in range(3)] for a in range(rows)]
            )
        c.op("dead", "aten::embedding", [ref("s"), ref("i")], [4, 3])
        if side:
            c.op("j", "aten::clamp", [ref("i"), 0, 5], [4], "int64")
        c.op("y", "aten::embedding", [ref("w"), ref("j" if side else "i")], [4, 3])

    left, right = two(build)
    compared(left, right, 1)
    c = Certificate(left, right)
    il, wl, yl = c.left("i", "w", "y")
    ir, jr, wr, yr = c.right("i", "j", "w", "y")
    c.step("leaf", (ir, il), (wr, wl))
    q = c.call("aten::clamp", ref(il), 0, 5)
    c.step("bound", (il, q))
    c.step("same", (q, jr), (yl, yr))
    c.check(yl, yr, REFUSED, "not padding")


def main():
    return run_functions(
        [],
        [
            further_positions,
            further_positions_alike,
            drifting_table,
            drifting_by_rounding,
            no_rounding,
            rounding_through_jumps,
            rounded_away,
            pinned_tokens,
            kept_by_chance,
            counted_by_chance,
            floats_counted_by_chance,
            classes_kept,
            equal_layers,
            swapped_layers,
            own_transpose,
            slices_of_zeros,
            halves_that_another_leaf_has,
            pinned_parameter,
            unread_table,
        ],
    )


if __name__ == "__main__":
    sys.exit(main())
