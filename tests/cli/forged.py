#!/usr/bin/env python3
"""Certificates written by hand for graphs that are not equal: every one must be refused. Here rules
and steps are forged; leaves, inputs and constants in forged_leaves.py.

    tests/cli/forged.py [--isomer build/isomer] [--only NAME]

The last line is `N passed, N failed`."""

import os
import sys

from forged_limits import (
    declared_dtypes,
    deep_questions,
    endless_memory,
    huge_literals,
    open_ends,
    said_too_much,
    targets,
)
from forging import HOLDS, REFUSED, WHERE, Certificate, compared, ref, two
from harness import expect, isomer, run_functions, short


# ---- conditions of rules ----


def cancelling_conditions():
    """1e20 is no other number for every step: x + 0 is not x + 1."""

    def build(c, side):
        c.leaf("x", "input", "float32", [0.5, -1.25, 2.0, 3.5])
        c.op("y", "aten::add.Scalar", [ref("x"), float(side), 1], [4])

    left, right = two(build)
    compared(left, right, 1)
    for condition in (
        "(= (+ a b) d)",
        "(= a (- d b))",
        "(= b (- d a))",
        "(and (<= a (- d b)) (>= a (- d b)))",
    ):
        c = Certificate(left, right)
        xl, yl = c.left("x", "y")
        xr, yr = c.right("x", "y")
        c.step("leaf", (xr, xl))
        both = c.call(
            "aten::add.Scalar", ref(c.call("aten::add.Scalar", ref(xl), 1e20, 1)), -1e20, 1
        )
        one = c.call("aten::add.Scalar", ref(xl), 1.0, 1)
        r = c.rule(
            "(rule r (var x f _) (attr a float) (attr b float) (attr d float) (lhs "
            "(aten::add.Scalar (aten::add.Scalar x a 1) b 1)) "
            '(rhs (aten::add.Scalar x d 1)) (where %s) (evidence proved "all shapes"))' % condition
        )
        c.apply(r, [xl], both, yl, a=1e20, b=-1e20, d=0.0)
        c.apply(r, [xl], both, one, a=1e20, b=-1e20, d=1.0)
        c.step("same", (one, yr))
        c.check(yl, yr, REFUSED, "a condition does not hold")


def rounded_inequality():
    """(1e20 - 5) - 1e20 is not at least 0."""

    def build(c, side):
        c.leaf("x", "input", "float32", [0.5, -1.25, 2.0, 3.5])
        c.op("q", "aten::mul.Tensor", [ref("x"), ref("x")], [4])
        for id, of, n in (("a", "q", 1e20), ("b", "a", -5.0), ("c", "b", -1e20)):
            c.op(id, "aten::add.Scalar", [ref(of), n], [4])
        c.op("y", "aten::relu" if side else "aten::alias", [ref("c")], [4])

    c = Certificate(*two(build))
    xl, yl = c.left("x", "y")
    xr, yr = c.right("x", "y")
    c.step("leaf", (xr, xl))
    for id in "qabc":
        c.step("same", (c.left(id), c.right(id)))
    sum = (
        "(aten::add.Scalar (aten::add.Scalar (aten::add.Scalar (aten::mul.Tensor x x) a 1) b 1) "
        "d 1)"
    )
    r = c.rule(
        "(rule r (var x f _) (attr a float) (attr b float) (attr d float) (lhs (aten::alias %s)) "
        "(rhs (aten::relu %s)) (where (>= (+ (+ a b) d) 0)) "
        '(evidence proved "all shapes"))' % (sum, sum)
    )
    t = c.call("aten::relu", ref(c.left("c")))
    c.apply(r, [xl], yl, t, a=1e20, b=-5.0, d=-1e20)
    c.step("same", (t, yr))
    c.check(yl, yr, REFUSED, "a condition does not hold")


# ---- rules where they do not hold ----


def unary(left, right, dtype="float32", values=(0.5, -1.25, 2.0, 3.5), out=None):
    """x through one of two operators, (name, further arguments)."""

    def build(c, side):
        op, args = (left, right)[side]
        c.leaf("x", "input", dtype, list(values))
        c.op("y", op, [ref("x")] + list(args), [len(values)], out or dtype)

    return two(build)


def joined_by(captures, rule):
    """The certificate that joins the two outputs by one rule over x."""
    c = Certificate(*captures)
    xl, yl = c.left("x", "y")
    xr, yr = c.right("x", "y")
    c.step("leaf", (xr, xl))
    return c, xl, yl, xr, yr, c.rule(rule)


def ties_of_roundings():
    """round and floor(x + 1/2) differ at halves: no samples make it a rule."""

    def build(c, side):
        c.leaf("x", "input", "float32", [0.5, -1.25, 2.0, 3.5])
        c.op("q", "aten::div.Tensor", [ref("x"), 3.0], [4])
        if not side:
            c.op("h", "aten::add.Tensor", [ref("q"), 0.5], [4])
        c.op("y", "aten::round" if side else "aten::floor", [ref("q" if side else "h")], [4])

    for scale in ("3.0", "s"):
        c = Certificate(*two(build))
        xl, ql, yl = c.left("x", "q", "y")
        xr, qr, yr = c.right("x", "q", "y")
        c.step("leaf", (xr, xl))
        c.step("same", (ql, qr))
        q = "(aten::div.Tensor x %s)" % scale
        r = c.rule(
            (
                "(rule r (var x f (4)) %s(lhs (aten::floor (aten::add.Tensor %s 0.5))) (rhs "
                '(aten::round %s)) (evidence tested "these shapes"))'
            )
            % ("(attr s float) " if scale == "s" else "", q, q)
        )
        c.apply(r, [xl], yl, c.call("aten::round", ref(ql)), **({"s": 3.0} if scale == "s" else {}))
        c.step("same", (c.call("aten::round", ref(ql)), yr))
        r = c.check(yl, yr, REFUSED, evidence="tested")


def ranges_of_indices():
    """A rule of integers from 0 to 3 is none of the tokens, of which there are eight."""
    for clause in ("(in i 0 4)", ""):

        def build(c, side):
            c.leaf("i", "input", "int64", [3, 1, 3, 2])
            c.leaf("w", "parameter", "float32", [[0.1 * a + b for b in range(3)] for a in range(8)])
            if side:
                c.op("j", "aten::clamp", [ref("i"), 0, 3], [4], "int64")
            c.op("y", "aten::embedding", [ref("w"), ref("j" if side else "i")], [4, 3])

        left, right = two(build)
        compared(left, right, 1)
        c = Certificate(left, right)
        il, wl, yl = c.left("i", "w", "y")
        ir, jr, wr, yr = c.right("i", "j", "w", "y")
        c.step("leaf", (ir, il), (wr, wl))
        q = c.call("aten::clamp", ref(il), 0, 3)
        r = c.rule(
            (
                '(rule r (var i i _) %s (lhs (aten::clamp i 0 3)) (rhs i) (evidence proved "all '
                'shapes"))'
            )
            % clause
        )
        c.apply(r, [il], q, il)
        c.step("same", (q, jr), (yl, yr))
        c.check(yl, yr, REFUSED)


def other_kinds():
    """A cast of floats is an identity, and a cast of integers is not; a mean over one row is that
    row, and over two it is not."""
    c, xl, yl, xr, yr, r = joined_by(
        unary(
            ("aten::to.dtype", [{"dtype": "float16"}]),
            ("aten::to.dtype", [{"dtype": "float32"}]),
            "int64",
            (4099, 2, 70000, 1),
            "float32",
        ),
        (
            "(rule r (var x f _) (lhs (aten::to.dtype x float16)) (rhs (aten::to.dtype x float32)) "
            '(evidence proved "all shapes"))'
        ),
    )
    c.apply(r, [xl], yl, yr)
    c.check(yl, yr, REFUSED)

    def build(c, side):
        c.leaf("x", "input", "float32", [[0.5, -1.25], [2.0, 3.5]])
        c.op(
            "y",
            "aten::cumsum" if side else "aten::alias",
            [ref("x")] + ([0] if side else []),
            [2, 2],
        )

    c = Certificate(*two(build))
    xl, yl = c.left("x", "y")
    xr, yr = c.right("x", "y")
    c.step("leaf", (xr, xl))
    r = c.rule(
        (
            "(rule r (var x f (1 N)) (lhs (aten::cumsum x 0)) (rhs (aten::alias x)) (evidence "
            "proved "
            '"all shapes"))'
        )
    )
    c.apply(r, [xr], yr, yl)
    c.check(yl, yr, REFUSED)


def zeros_of_both_signs():
    """0 and -0 are one real number, as leaves and not as divisors, and not where a sign is read."""
    c, xl, yl, xr, yr, r = joined_by(
        unary(("aten::div.Tensor", [0.0]), ("aten::div.Tensor", [-0.0])),
        (
            "(rule r (var x f _) (lhs (aten::div.Tensor x 0.0)) (rhs (aten::div.Tensor x -0.0)) "
            '(evidence proved "all shapes"))'
        ),
    )
    c.step("same", (yl, yr))
    c.check(yl, yr, REFUSED)
    c.steps.pop()
    c.apply(r, [xl], yl, yr)
    c.check(yl, yr, REFUSED)
    for op, status in (
        ("aten::add.Tensor", HOLDS),
        ("aten::copysign.Tensor", REFUSED),
        ("aten::div.Tensor", REFUSED),
    ):
        for kind in ("parameter", "constant"):

            def build(c, side):
                c.leaf("x", "input", "float32", [0.5, -1.25])
                c.leaf("b", kind, "float32", [-0.0 if side else 0.0, 1.0])
                c.op("y", op, [ref("x"), ref("b")], [2])

            c = Certificate(*two(build))
            xl, bl, yl = c.left("x", "b", "y")
            xr, br, yr = c.right("x", "b", "y")
            c.step("leaf", (xr, xl), (br, bl))
            c.step("same", (yl, yr))
            c.check(yl, yr, status)


def strided_memory():
    """Memory that is read by strides has to lie row by row: otherwise its order is unknown."""

    def build(c, side):
        c.leaf("x", "input", "float32", [[0.5, -1.25], [2.0, 3.5]])
        c.op("t", "aten::t", [ref("x")], [2, 2])
        c.op("y", "aten::as_strided", [ref("t"), [2, 2], [2, 1]], [2, 2])

    left, right = two(build)
    compared(left, right, 2)
    c = Certificate(left, right)
    xl, tl, yl = c.left("x", "t", "y")
    xr, tr, yr = c.right("x", "t", "y")
    c.step("leaf", (xr, xl))
    c.step("same", (tl, tr), (yl, yr))
    c.check(yl, yr, REFUSED, "order is not captured")


# ---- what has no value of its own ----


def no_function():
    for op, args, why in (
        ("aten::rand", [[4]], "random"),
        ("aten::bernoulli", [ref("x")], "random"),
        ("aten::dropout", [ref("x"), 0.5, True], "random"),
        ("aten::empty.memory_format", [[4]], "unspecified"),
        ("aten::empty_like", [ref("x")], "unspecified"),
        ("aten::relu_", [ref("x")], "writes"),
    ):

        def build(c, side):
            c.leaf("x", "input", "float32", [0.5, -1.25, 2.0, 3.5])
            c.op("e", op, args, [4])
            c.op("y", "aten::add.Tensor", [ref("e"), ref("x")], [4])

        left, right = two(build)
        compared(left, right, 2)
        c = Certificate(left, right)
        xl, el, yl = c.left("x", "e", "y")
        xr, er, yr = c.right("x", "e", "y")
        c.step("leaf", (xr, xl))
        c.step("same", (el, er), (yl, yr))
        c.check(yl, yr, REFUSED, why)


def infinite_differences():
    """x - x is 0 over the reals, and not where x is minus infinity."""

    def build(c, side):
        c.leaf("x", "input", "float32", [0.5, -1.25, 2.0, 3.5])
        c.leaf("m", "constant", "bool", [True, False, True, False])
        c.op("s", "aten::masked_fill.Scalar", [ref("x"), ref("m"), {"float": "-inf"}], [4])
        c.op(
            "y",
            "aten::sub.Tensor" if side == 0 else "aten::mul.Scalar",
            [ref("s"), ref("s") if side == 0 else 0.0],
            [4],
        )
        if side:
            c.nodes[-1] = dict(c.nodes[-1], op="aten::zeros_like", args=[ref("s")])

    left, right = two(build)
    compared(left, right, 1)
    c = Certificate(left, right)
    xl, ml, sl, yl = c.left("x", "m", "s", "y")
    xr, mr, sr, yr = c.right("x", "m", "s", "y")
    c.step("leaf", (xr, xl), (mr, ml))
    c.step("same", (sl, sr))
    z = c.call("aten::zeros_like", ref(sl), None, None, None, None, None)
    r = c.rule(
        (
            "(rule r (var x f _) (lhs (aten::sub.Tensor x x)) (rhs (aten::zeros_like x)) (evidence "
            'proved "all shapes"))'
        )
    )
    c.apply(r, [sl], yl, z)
    c.step("same", (z, yr))
    c.check(yl, yr, REFUSED)


def guards():
    """A guard against NaN does nothing over the reals, and 0/0 of a row of zeros is none: where one
    side alone has it, or each has it elsewhere."""
    zero, x = 0.0, [[0.5, -1.25], [2.0, 3.5]]

    def normed(c):
        c.leaf("x", "input", "float32", x)
        c.op("a", "aten::abs", [ref("x")], [2, 2])
        c.op("s", "aten::sum.dim_IntList", [ref("a"), [-1], True], [2, 1])
        c.op("q", "aten::div.Tensor", [ref("x"), ref("s")], [2, 2])

    def nan_to_num(c, id, of):
        c.op(id, "aten::nan_to_num", [ref(of)], [2, 2])

    def where(c, id, of):
        c.op("n", "aten::isnan", [ref(of)], [2, 2], "bool")
        c.op(id, "aten::where.ScalarSelf", [ref("n"), zero, ref(of)], [2, 2])

    def unequal(c, id, of):
        c.op("n", "aten::ne.Tensor", [ref(of), ref(of)], [2, 2], "bool")
        c.op(id, "aten::masked_fill.Scalar", [ref(of), ref("n"), zero], [2, 2])

    for guard, told, evidence in (
        (nan_to_num, "(aten::nan_to_num x none none none)", "proved"),
        (where, "(aten::where.ScalarSelf (aten::isnan x) 0.0 x)", "tested"),
        (unequal, "(aten::masked_fill.Scalar x (aten::ne.Tensor x x) 0.0)", "proved"),
    ):

        def build(c, side):
            normed(c)
            (guard if side else lambda c, id, of: c.op(id, "aten::alias", [ref(of)], [2, 2]))(
                c, "y", "q"
            )

        left, right = two(build)
        compared(left, right, 1)
        c = Certificate(left, right)
        xl, al, sl, ql, yl = c.left("x", "a", "s", "q", "y")
        xr, ar, sr, qr, yr = c.right("x", "a", "s", "q", "y")
        c.step("leaf", (xr, xl))
        c.step("same", (al, ar), (sl, sr), (ql, qr))
        alias = c.rule(
            '(rule a (var x f _) (lhs (aten::alias x)) (rhs x) (evidence proved "all shapes"))'
        )
        r = c.rule(
            '(rule r (var x f (2 2)) (lhs %s) (rhs x) (evidence %s "these shapes"))'
            % (told, evidence)
        )
        c.apply(alias, [ql], yl, ql)
        c.apply(r, [qr], yr, qr)
        c.check(yl, yr, REFUSED, "one is NaN where the other is not", evidence)


def guards_elsewhere():
    """Two quotients, of which each side guards another one; and the same one."""
    for second, status in ((True, REFUSED), (False, HOLDS)):

        def build(c, side):
            for of in "xz":
                c.leaf(
                    of,
                    "input",
                    "float32",
                    [[0.5, -1.25], [2.0, 3.5]] if of == "x" else [[1.5, 0.25], [-2.0, 1.0]],
                )
                c.op("s" + of, "aten::amax", [ref(of), [-1], True], [2, 1])
                c.op("q" + of, "aten::div.Tensor", [ref(of), ref("s" + of)], [2, 2])
            guarded = "qz" if side and second else "qx"
            c.op("g", "aten::nan_to_num", [ref(guarded)], [2, 2])
            c.op(
                "y",
                "aten::add.Tensor",
                [ref("g"), ref("qz")] if guarded == "qx" else [ref("qx"), ref("g")],
                [2, 2],
            )

        left, right = two(build)
        compared(left, right, 1 if second else 0)
        c = Certificate(left, right)
        r = c.rule(
            (
                "(rule r (var x f _) (lhs (aten::nan_to_num x none none none)) (rhs x) (evidence "
                'proved "all shapes"))'
            )
        )
        for of in "xz":
            for id in (of, "s" + of, "q" + of):
                c.step("same" if id != of else "leaf", (c.right(id), c.left(id)))
        yl, yr = c.left("y"), c.right("y")
        if second:
            c.apply(r, [c.left("qx")], c.left("g"), c.left("qx"))
            c.apply(r, [c.right("qz")], c.right("g"), c.right("qz"))
        else:
            c.step("same", (c.left("g"), c.right("g")))
        c.step("same", (yl, yr))
        c.check(yl, yr, status, "one is NaN where the other is not" if second else "")


def proved_rules_at_poles():
    """A rule is true where both of its sides are defined. Between two graphs, (x/w)*w at w = 0 is
    not x: no more with the rule given than without it."""

    def build(c, side):
        c.leaf("x", "input", "float32", [0.5, -1.25, 2.0, 3.5])
        c.leaf("w", "parameter", "float32", [1.5, -0.25, 3.0, 0.75])
        if side:
            c.op("y", "aten::alias", [ref("x")], [4])
        else:
            c.op("q", "aten::div.Tensor", [ref("x"), ref("w")], [4])
            c.op("y", "aten::mul.Tensor", [ref("q"), ref("w")], [4])

    left, right = two(build)
    rules = os.path.join(WHERE.name, "poles.rules")
    for shape, scope in (("(N)", "these ranks"), ("(4)", "these shapes")):
        text = (
            "(rule r (var x f %s) (var w f %s) (lhs (aten::mul.Tensor (aten::div.Tensor x w) w)) "
            '(rhs x) (evidence proved "%s"))'
        ) % (shape, shape, scope)
        with open(rules, "w") as f:
            f.write(text + "\n")
        r = isomer("rules", "check", rules)
        expect(
            r.status == 0 and b"1 proved" in r.out,
            "rules check: status %d: %s",
            r.status,
            short(r.out),
        )
        compared(left, right, 1)
        for a, b in ((left, right), (right, left)):
            r = isomer("compare", a, b, "-q", "--rules", rules)
            expect(r.status == 1, "compare --rules: status %d: %s", r.status, short(r.out or r.err))
        c = Certificate(left, right)
        xl, wl, ql, yl = c.left("x", "w", "q", "y")
        xr, yr = c.right("x", "y")
        c.step("leaf", (xr, xl))
        names = {"N": 4} if scope == "these ranks" else {}
        c.apply(c.rule(text), [xl, wl], yl, xl, **names)
        c.apply(
            c.rule(
                '(rule a (var x f _) (lhs (aten::alias x)) (rhs x) (evidence proved "all shapes"))'
            ),
            [xr],
            yr,
            xr,
        )
        c.check(yl, yr, REFUSED, "refuted")


def cancelled_divisors():
    """x * d / d is x but where d is 0. Of exp(x) - 5 no float gives that exactly, and no draw comes
    upon it; that it lies between two draws is known. A divisor above 0 may be cancelled."""
    for inner, k in (
        ([("exp", "")], 5.0),
        ([("abs", ""), ("sqrt", "")], 0.7),
        ([("sigmoid", "")], 0.3),
        ([("tanh", ""), ("mul.Tensor", " 3.0")], 0.55),
        ([("atan", ""), ("exp", "")], 1.7),
        ([("sinh", "")], -1.3),
    ):
        for least in (0.0, 9.0):
            divisor = "x"
            for op, further in inner:
                divisor = "(aten::%s %s%s)" % (op, divisor, further)
            if least:
                divisor = "(aten::mul.Tensor %s %s)" % (divisor, divisor)

            def build(c, side):
                c.leaf("x", "input", "float32", [0.5, -1.25, 2.0, 3.5])
                if side:
                    return c.op("y", "aten::alias", [ref("x")], [4])
                of = "x"
                for op, further in inner:
                    c.op(
                        of + "i",
                        "aten::" + op,
                        [ref(of)] + [float(z) for z in further.split()],
                        [4],
                    )
                    of += "i"
                if least:
                    c.op("s", "aten::mul.Tensor", [ref(of), ref(of)], [4])
                    of = "s"
                c.op("d", "aten::sub.Tensor", [ref(of), k - least], [4])
                c.op("p", "aten::mul.Tensor", [ref("x"), ref("d")], [4])
                c.op("y", "aten::div.Tensor", [ref("p"), ref("d")], [4])

            c = Certificate(*two(build))
            xl, yl = c.left("x", "y")
            xr, yr = c.right("x", "y")
            c.step("leaf", (xr, xl))
            d = "(aten::sub.Tensor %s %r)" % (divisor, k - least)
            r = c.rule(
                "(rule r (var x f (N)) (lhs (aten::div.Tensor (aten::mul.Tensor x %s) %s)) (rhs x) "
                '(evidence proved "these ranks"))' % (d, d)
            )
            c.apply(r, [xl], yl, xl, N=4)
            c.apply(
                c.rule(
                    "(rule a (var x f _) (lhs (aten::alias x)) (rhs x) (evidence proved "
                    '"all shapes"))'
                ),
                [xr],
                yr,
                xr,
            )
            c.check(yl, yr, HOLDS if least else REFUSED, "" if least else "divides by is 0")


def main():
    return run_functions(
        [],
        [
            cancelling_conditions,
            rounded_inequality,
            no_function,
            infinite_differences,
            guards,
            guards_elsewhere,
            proved_rules_at_poles,
            cancelled_divisors,
            declared_dtypes,
            targets,
            ties_of_roundings,
            ranges_of_indices,
            other_kinds,
            zeros_of_both_signs,
            strided_memory,
            endless_memory,
            open_ends,
            huge_literals,
            deep_questions,
            said_too_much,
        ],
    )


if __name__ == "__main__":
    sys.exit(main())
