#!/usr/bin/env python3
"""Write laws.rules: laws of PyTorch's operators that are true for all sizes, and beside each a few
that are not.

    tests/rules/make_laws.py > tests/rules/laws.rules

The laws are those that graph optimisers use (substitution lists, simplifiers of tensor compilers,
e-graph papers), from the operators' meanings. A rule named no-... is a near miss: one that fails
for some sizes, attributes or values."""

import re
import sys

SHORT = {
    "add": "add.Tensor",
    "adds": "add.Scalar",
    "sub": "sub.Tensor",
    "subs": "sub.Scalar",
    "mul": "mul.Tensor",
    "muls": "mul.Scalar",
    "div": "div.Tensor",
    "divs": "div.Scalar",
    "pow": "pow.Tensor_Scalar",
    "powt": "pow.Tensor_Tensor",
    "T": "transpose.int",
    "sum": "sum.dim_IntList",
    "mean": "mean.dim",
    "softmax": "softmax.int",
    "logsoftmax": "log_softmax.int",
    "slice": "slice.Tensor",
    "select": "select.int",
    "split": "split.Tensor",
    "unbind": "unbind.int",
    "squeeze": "squeeze.dim",
    "where": "where.self",
    "eq": "eq.Tensor",
    "ne": "ne.Tensor",
    "lt": "lt.Tensor",
    "le": "le.Tensor",
    "gt": "gt.Tensor",
    "ge": "ge.Tensor",
    "eqs": "eq.Scalar",
    "nes": "ne.Scalar",
    "lts": "lt.Scalar",
    "les": "le.Scalar",
    "gts": "gt.Scalar",
    "ges": "ge.Scalar",
    "sdpa": "scaled_dot_product_attention",
    "mfill": "masked_fill.Scalar",
    "var": "var.correction",
    "maxd": "max.dim",
    "mind": "min.dim",
    "max2": "maximum",
    "min2": "minimum",
    "any": "any.dim",
    "all": "all.dim",
    "to": "to.dtype",
    "flatten": "flatten.using_ints",
    "repint": "repeat_interleave.self_int",
    "fmods": "fmod.Scalar",
    "rems": "remainder.Scalar",
    "lin": "linear",
    "flr": "floor",
    "zl": "zeros_like",
    "ol": "ones_like",
    "prod": "prod.dim_int",
    "powst": "pow.Scalar",
    "cumsum": "cumsum",
    "normd": "linalg_vector_norm",
    "lse": "logsumexp",
    "divm": "div.Tensor_mode",
    "lerps": "lerp.Scalar",
    "band": "bitwise_and.Tensor",
    "bor": "bitwise_or.Tensor",
    "bxor": "bitwise_xor.Tensor",
    "shl": "bitwise_left_shift.Tensor_Scalar",
    "clampT": "clamp.Tensor",
}
KEEP = {
    "list",
    "getitem",
    "in",
    "=",
    "!=",
    "<",
    "<=",
    ">",
    ">=",
    "+",
    "-",
    "*",
    "/",
    "mod",
    "divides",
    "and",
    "or",
    "not",
    "...",
}


def full(term):
    def op(m):
        name = m.group(1)
        if name in KEEP or "::" in name:
            return m.group(0)
        return "(aten::" + SHORT.get(name, name)

    return re.sub(r"\(([^\s()]+)", op, term)


VARS = {
    "x": "(var x f (N M))",
    "y": "(var y f (N M))",
    "z": "(var z f (N M))",
    "v": "(var v f (M))",
    "u": "(var u f (N))",
    "X": "(var X f _)",
    "Y": "(var Y f _)",
    "Z": "(var Z f _)",
    "s": "(var s f ())",
    "a": "(var a f (N K))",
    "b": "(var b f (K M))",
    "c": "(var c f (K M))",
    "d": "(var d f (M L))",
    "t": "(var t f (B N M))",
    "w": "(var w f (M N))",
    "p": "(var p b (N M))",
    "q": "(var q b (N M))",
    "i": "(var i i (N M))",
    "j": "(var j i (N M))",
    "h": "(var h f (B H S D))",
    "k": "(var k f (B H S D))",
    "g": "(var g f (B H S D))",
    "P": "(var P b _)",
    "Q": "(var Q b _)",
    "I": "(var I i _)",
    "J": "(var J i _)",
}
out, names = [], set()


def emit(name, decl, lhs, rhs, where):
    base, n = name, 2
    while name in names:
        name, n = "%s-%d" % (base, n), n + 1
    names.add(name)
    used = decl
    if ";" not in decl and "(" not in decl:
        used = " ".join(VARS[v] for v in decl.split())
    out.append(
        "(rule %s %s\n  (lhs %s)\n  (rhs %s)%s)"
        % (name, used, full(lhs), full(rhs), "\n  (where %s)" % where if where else "")
    )


def law(name, decl, lhs, rhs, *wrong, where="", attrs=""):
    """`wrong`: right sides that are not equal, or (lhs, rhs), or (lhs, rhs, where)."""
    if "(" in decl:
        pass
    else:
        decl = " ".join(VARS[v] for v in decl.split())
    decl = (decl + " " + attrs).strip()
    emit(name, decl, lhs, rhs, where)
    for w in wrong:
        w = (lhs, w) if isinstance(w, str) else w
        emit("no-" + name, decl, w[0], w[1], w[2] if len(w) > 2 else where)


# ---- arithmetic
law("add-comm", "X Y", "(add X Y)", "(add Y X)", "(sub Y X)", "(add Y Y)")
law("mul-comm", "X Y", "(mul X Y)", "(mul Y X)", "(div X Y)")
law("add-assoc", "X Y Z", "(add (add X Y) Z)", "(add X (add Y Z))", "(add X (sub Y Z))")
law("mul-assoc", "X Y Z", "(mul (mul X Y) Z)", "(mul X (mul Y Z))", "(mul X (div Y Z))")
law(
    "distribute",
    "x y z",
    "(mul x (add y z))",
    "(add (mul x y) (mul x z))",
    "(add (mul x y) z)",
    "(add (mul x y) (mul y z))",
)
law(
    "distribute-div", "x y z", "(div (add x y) z)", "(add (div x z) (div y z))", "(add (div x z) y)"
)
law("sub-self", "X", "(sub X X)", "(zl X)", "(ol X)")
law("div-self", "X", "(div X X)", "(ol X)", "(zl X)")
law("sub-as-add-neg", "X Y", "(sub X Y)", "(add X (neg Y))", "(add X Y)", "(add (neg X) Y)")
law("neg-sub", "X Y", "(neg (sub X Y))", "(sub Y X)", "(sub X Y)")
law("neg-neg", "X", "(neg (neg X))", "X", "(neg X)")
law("mul-one", "X", "(mul X 1.0)", "X", "(neg X)", ("(mul X 1.000000001)", "X"))
law("add-zero", "X", "(add X 0.0)", "X", ("(add X 1e-12)", "X"), ("(add X 1.0)", "X"))
law("mul-zero", "X", "(mul X 0.0)", "(zl X)", "X")
law(
    "add-alpha",
    "X Y",
    "(add X Y :alpha 2)",
    "(add X (mul Y 2.0))",
    "(add (mul X 2.0) Y)",
    "(add X Y :alpha 3)",
)
law("sub-alpha", "X Y", "(sub X Y :alpha 2)", "(sub X (mul Y 2.0))", "(sub (mul X 2.0) Y)")
law(
    "alpha-attr",
    "X Y",
    "(add X Y :alpha s)",
    "(add X (mul Y s))",
    "(add (mul X s) Y)",
    "(add X Y)",
    attrs="(attr s float)",
)
law("twice", "X", "(add X X)", "(mul X 2.0)", "(mul X X)", "(mul X 2.0000001)")
law("square", "X", "(mul X X)", "(pow X 2)", "(pow X 3)", "(mul X 2.0)", "(abs (pow X 3))")
law("cube", "X", "(mul X (mul X X))", "(pow X 3)", "(pow X 2)", "(abs (pow X 3))")
law("pow-one", "X", "(pow X 1)", "X", "(abs X)")
law("pow-zero", "X", "(pow X 0)", "(ol X)", "(zl X)")
law("pow-half", "X", "(pow X 0.5)", "(sqrt X)", "(rsqrt X)", "(pow X 0.25)")
law("pow-neg-half", "X", "(pow X -0.5)", "(rsqrt X)", "(sqrt X)")
law("pow-minus-one", "X", "(pow X -1)", "(reciprocal X)", "(neg X)")
law("pow-pow", "X", "(pow (pow X 2) 3)", "(pow X 6)", "(pow X 5)", "(pow X 8)")
law("reciprocal", "X", "(reciprocal X)", "(div (ol X) X)", "(div X X)")
law("recip-recip", "X", "(reciprocal (reciprocal X))", "X", "(reciprocal X)")
law(
    "div-as-mul",
    "X Y",
    "(div X Y)",
    "(mul X (reciprocal Y))",
    "(mul Y (reciprocal X))",
    "(mul X Y)",
)
law("div-half", "X", "(div X 2.0)", "(mul X 0.5)", "(mul X 2.0)", "(mul X 0.5000001)")
law("div-div", "x y z", "(div (div x y) z)", "(div x (mul y z))", "(mul x (div y z))")
law("rsqrt", "X", "(rsqrt X)", "(reciprocal (sqrt X))", "(sqrt X)", "(reciprocal X)")
law("sqrt-square", "X", "(sqrt (mul X X))", "(abs X)", "X", "(neg X)")
law("square-sqrt", "X", "(pow (sqrt X) 2)", "X", "(mul X X)", "(neg X)")
law("square-abs", "X", "(pow (abs X) 2)", "(pow X 2)", "(mul X (abs X))")
law("abs-neg", "X", "(abs (neg X))", "(abs X)", "(neg (abs X))", "X")
law("abs-abs", "X", "(abs (abs X))", "(abs X)", "X")
law(
    "abs-mul",
    "X Y",
    "(abs (mul X Y))",
    "(mul (abs X) (abs Y))",
    "(mul (abs X) Y)",
    ("(abs (add X Y))", "(add (abs X) (abs Y))"),
)
law("abs-relu", "X", "(abs X)", "(add (relu X) (relu (neg X)))", "(sub (relu X) (relu (neg X)))")
law("abs-max", "X", "(abs X)", "(max2 X (neg X))", "(min2 X (neg X))", "(max2 X (zl X))")
law("sign-abs", "X", "(mul (sign X) (abs X))", "X", "(abs X)", "(sign X)")
law("add-sub-cancel", "X Y", "(sub (add X Y) Y)", "(add X (zl Y))", "(add Y (zl X))")
law("far-cancel", "X", "(sub (add X 1000000000000.0) 1000000000000.0)", "X", "(add X 1.0)")
law(
    "diff-of-squares",
    "x y",
    "(sub (mul x x) (mul y y))",
    "(mul (add x y) (sub x y))",
    "(mul (sub x y) (sub x y))",
)
law(
    "binomial",
    "x y",
    "(pow (add x y) 2)",
    "(add (add (mul x x) (mul 2.0 (mul x y))) (mul y y))"
    if False
    else "(add (add (mul x x) (mul (mul x y) 2.0)) (mul y y))",
    "(add (mul x x) (mul y y))",
    "(add (add (mul x x) (mul x y)) (mul y y))",
)
law(
    "lerp",
    "x y",
    "(lerps x y 0.25)",
    "(add (mul x 0.75) (mul y 0.25))",
    "(add (mul x 0.25) (mul y 0.75))",
)
law(
    "lerp-attr",
    "x y",
    "(lerps x y s)",
    "(add x (mul (sub y x) s))",
    "(add x (mul (sub x y) s))",
    attrs="(attr s float)",
)
law(
    "addcmul",
    "x y z",
    "(addcmul x y z :value 2)",
    "(add x (mul (mul y z) 2.0))",
    "(add x (mul y z))",
    "(mul x (add y z))",
)
law(
    "addcdiv",
    "x y z",
    "(addcdiv x y z)",
    "(add x (div y z))",
    "(add x (div z y))",
    "(div (add x y) z)",
)
law("rsub", "x y", "(rsub.Tensor x y)", "(sub y x)", "(sub x y)")
law("max-comm", "X Y", "(max2 X Y)", "(max2 Y X)", "(min2 X Y)", "(add X Y)")
law("max-neg", "X Y", "(neg (max2 X Y))", "(min2 (neg X) (neg Y))", "(max2 (neg X) (neg Y))")
law("max-min-sum", "X Y", "(add (max2 X Y) (min2 X Y))", "(add X Y)", "(mul X Y)", "(max2 X Y)")
law("max-assoc", "X Y Z", "(max2 (max2 X Y) Z)", "(max2 X (max2 Y Z))", "(max2 X (min2 Y Z))")
law("max-idem", "X", "(max2 X X)", "X", "(abs X)")
law("max-absorb", "x y", "(max2 x (min2 x y))", "x", "y", "(max2 x y)")
law("max-add", "x y z", "(add z (max2 x y))", "(max2 (add z x) (add z y))", "(max2 (add z x) y)")
law(
    "max-mul-no",
    "x y",
    "(mul (max2 x y) 2.0)",
    "(max2 (mul x 2.0) (mul y 2.0))",
    ("(mul (max2 x y) -2.0)", "(max2 (mul x -2.0) (mul y -2.0))"),
)
law(
    "max-where",
    "x y",
    "(max2 x y)",
    "(where (gt x y) x y)",
    "(where (lt x y) x y)",
    "(where (gt x y) y x)",
)
# ---- functions
law("exp-add", "x y", "(exp (add x y))", "(mul (exp x) (exp y))", "(add (exp x) (exp y))")
law("exp-neg", "X", "(exp (neg X))", "(reciprocal (exp X))", "(neg (exp X))", "(exp X)")
law("exp-log", "X", "(exp (log X))", "X", "(log X)", "(abs (add X 1.0))")
law("log-exp", "X", "(log (exp X))", "X", "(exp X)", "(abs X)")
law("log-mul", "x y", "(add (log x) (log y))", "(log (mul x y))", "(log (add x y))")
law("log-div", "x y", "(sub (log x) (log y))", "(log (div x y))", "(log (sub x y))")
law("log-abs", "X", "(log (abs X))", "(log X)", "(log (neg X))" if False else "(log (mul X X))")
law("log1p", "X", "(log1p X)", "(log (add X 1.0))", "(log X)", "(log (add X 2.0))")
law("expm1", "X", "(expm1 X)", "(sub (exp X) 1.0)", "(exp X)", "(sub (exp X) 2.0)")
law("log2", "X", "(log2 X)", "(div (log X) 0.6931471805599453)", "(log X)", "(log10 X)")
law(
    "log-pow",
    "X",
    "(log (pow X 2))",
    "(mul (log (abs X)) 2.0)",
    "(log (abs X))",
    "(mul (log (abs X)) 3.0)",
)
law("exp2", "X", "(exp2 X)", "(exp (mul X 0.6931471805599453))", "(exp X)")
law(
    "sigmoid",
    "X",
    "(sigmoid X)",
    "(reciprocal (add (exp (neg X)) 1.0))",
    "(reciprocal (add (exp X) 1.0))",
    "(tanh X)",
)
law(
    "sigmoid-neg",
    "X",
    "(sigmoid (neg X))",
    "(sub (ol X) (sigmoid X))",
    "(neg (sigmoid X))",
    "(sigmoid X)",
)
law(
    "sigmoid-tanh",
    "X",
    "(sigmoid X)",
    "(mul (add (tanh (mul X 0.5)) 1.0) 0.5)",
    "(mul (add (tanh X) 1.0) 0.5)",
)
law("tanh-neg", "X", "(tanh (neg X))", "(neg (tanh X))", "(tanh X)")
law(
    "tanh-sigmoid",
    "X",
    "(tanh X)",
    "(sub (mul (sigmoid (mul X 2.0)) 2.0) 1.0)",
    "(sub (mul (sigmoid X) 2.0) 1.0)",
)
law(
    "silu",
    "X",
    "(silu X)",
    "(mul X (sigmoid X))",
    "(sigmoid X)",
    "(mul X (sigmoid (neg X)))",
    "(relu X)",
)
law("silu-div", "X", "(silu X)", "(div X (add (exp (neg X)) 1.0))", "(div X (add (exp X) 1.0))")
law(
    "softplus",
    "X",
    "(softplus X)",
    "(where (gts X 20) X (log1p (exp X)))",
    "(relu X)",
    "(log1p (exp (neg X)))",
)
law(
    "log-sigmoid",
    "X",
    "(log_sigmoid X)",
    "(log (sigmoid X))",
    "(sigmoid X)",
    "(log (sigmoid (neg X)))",
)
law(
    "log-sigmoid-softplus",
    "X",
    "(log_sigmoid X)",
    "(neg (log1p (exp (neg X))))",
    "(neg (log1p (exp X)))",
)
law(
    "gelu-erf",
    "X",
    "(gelu X)",
    "(mul (mul X 0.5) (add (erf (mul X 0.7071067811865476)) 1.0))",
    '(gelu X :approximate "tanh")',
    "(mul (mul X 0.5) (add (erf X) 1.0))",
    "(silu X)",
    "(mul X (sigmoid (mul X 1.702)))",
)
law(
    "gelu-tanh",
    "X",
    '(gelu X :approximate "tanh")',
    "(mul (mul X 0.5) (add (tanh (mul (add X (mul (pow X 3) 0.044715)) 0.7978845608028654)) 1.0))",
    "(mul (mul X 0.5) (add (tanh (mul (add X (mul (pow X 3) 0.044716)) 0.7978845608028654)) 1.0))",
    "(mul (mul X 0.5) (add (tanh (mul (add X (mul (pow X 2) 0.044715)) 0.7978845608028654)) 1.0))",
)
law("erf-neg", "X", "(erf (neg X))", "(neg (erf X))", "(erf X)")
law("erfc", "X", "(erfc X)", "(sub (ol X) (erf X))", "(erf X)")
law("sin-neg", "X", "(sin (neg X))", "(neg (sin X))", "(sin X)", "(cos X)")
law("cos-neg", "X", "(cos (neg X))", "(cos X)", "(neg (cos X))")
law("sin-cos", "X", "(add (pow (sin X) 2) (pow (cos X) 2))", "(ol X)", "(sin X)", "(zl X)")
law(
    "sin-double",
    "X",
    "(sin (mul X 2.0))",
    "(mul (mul (sin X) (cos X)) 2.0)",
    "(mul (sin X) (cos X))",
    "(mul (sin X) 2.0)",
)
law(
    "cos-double",
    "X",
    "(cos (mul X 2.0))",
    "(sub (pow (cos X) 2) (pow (sin X) 2))",
    "(add (pow (cos X) 2) (pow (sin X) 2))",
)
law("tan", "X", "(tan X)", "(div (sin X) (cos X))", "(div (cos X) (sin X))")
law(
    "sinh",
    "X",
    "(sinh X)",
    "(mul (sub (exp X) (exp (neg X))) 0.5)",
    "(mul (add (exp X) (exp (neg X))) 0.5)",
)
law("hardtanh", "X", "(hardtanh X)", "(clamp X -1 1)", "(clamp X 0 1)", "(tanh X)")
law("relu-max", "X", "(relu X)", "(max2 X (zl X))", "(min2 X (zl X))", "(abs X)")
law("relu-clamp", "X", "(relu X)", "(clamp_min X 0)", "(clamp_max X 0)", "(clamp_min X 0.001)")
law("relu-idem", "X", "(relu (relu X))", "(relu X)", "X", "(neg (relu X))")
law(
    "relu-scale",
    "X",
    "(relu (mul X 3.0))",
    "(mul (relu X) 3.0)",
    ("(relu (mul X -3.0))", "(mul (relu X) -3.0)"),
)
law(
    "relu-scale-attr",
    "X",
    "(relu (mul X s))",
    "(mul (relu X) s)",
    ("(relu (mul X s))", "(mul (relu X) s)", "(< s 1)"),
    where="(> s 0)",
    attrs="(attr s float)",
)
law("relu-where", "X", "(relu X)", "(where (gts X 0) X (zl X))", "(where (lts X 0) X (zl X))")
law("relu-sub", "X", "(sub (relu X) (relu (neg X)))", "X", "(abs X)")
law("relu6", "X", "(relu6 X)", "(clamp X 0 6)", "(clamp X 0 5)", "(relu X)", "(clamp X -6 6)")
law(
    "leaky",
    "X",
    "(leaky_relu X 0.1)",
    "(max2 X (mul X 0.1))",
    "(min2 X (mul X 0.1))",
    "(leaky_relu X 0.01)",
)
law("leaky-wrong-slope", "X", "(leaky_relu X 2.0)", "(min2 X (mul X 2.0))", "(max2 X (mul X 2.0))")
law(
    "hardsigmoid",
    "X",
    "(hardsigmoid X)",
    "(div (clamp (add X 3.0) 0 6) 6.0)",
    "(div (clamp X 0 6) 6.0)",
    "(sigmoid X)",
)
law("hardswish", "X", "(hardswish X)", "(mul X (hardsigmoid X))", "(hardsigmoid X)", "(silu X)")
law("mish", "X", "(mish X)", "(mul X (tanh (softplus X)))", "(tanh (softplus X))", "(silu X)")
law(
    "elu",
    "X",
    "(elu X)",
    "(where (gts X 0) X (expm1 X))",
    "(where (gts X 0) X (exp X))",
    "(relu X)",
)
law("selu", "X", "(selu X)", "(elu X 1.6732632423543772 1.0507009873554805)", "(elu X)")
law(
    "clamp-clamp",
    "X",
    "(clamp (clamp X 0 6) 2 8)",
    "(clamp X 2 6)",
    "(clamp X 0 8)",
    "(clamp X 2 8)",
)
law(
    "clamp-min-max",
    "X",
    "(clamp X -1 1)",
    "(clamp_max (clamp_min X -1) 1)",
    "(clamp_min X -1)",
    "(clamp X -1 2)",
)
law(
    "clamp-far",
    "X",
    "(clamp X -1000 1000)",
    "(clamp_max (clamp_min X -1000) 1000)",
    "X",
    "(clamp X -1000.0 1001.0)",
    "(clamp X -1000 100000)",
)
law(
    "clamp-max-far",
    "X",
    "(clamp_max X 10000000.0)",
    "(min2 X (full_like X 10000000.0))",
    "X",
    "(clamp_max X 10000001.0)",
)
law(
    "clamp-attr",
    "X",
    "(clamp X l h)",
    "(max2 (min2 X (full_like X h)) (full_like X l))",
    "(clamp_min X l)",
    "(clamp X l none)",
    where="(< l h)",
    attrs="(attr l float) (attr h float)",
)
law("nan-to-num", "X", "(nan_to_num X)", "X", "(abs X)")
law("floor-ceil", "X", "(neg (floor (neg X)))", "(ceil X)", "(floor X)", "(round X)")
law("floor-floor", "X", "(floor (floor X))", "(floor X)", "(ceil X)", "X")
law("trunc", "X", "(trunc X)", "(mul (sign X) (floor (abs X)))", "(floor X)", "(round X)")
law("frac", "X", "(frac X)", "(sub X (trunc X))", "(sub X (floor X))")
law("round-idem", "X", "(round (round X))", "(round X)", "(floor (add X 0.5))", "(floor X)", "X")
law("round-neg", "X", "(round (neg X))", "(neg (round X))", ("(floor (neg X))", "(neg (floor X))"))
law(
    "round-half",
    "X",
    "(round X)",
    "(sub X (sub X (round X)))",
    "(floor (add X 0.5))",
    "(ceil (sub X 0.5))",
    "(trunc (add X (mul (sign X) 0.5)))",
)
law(
    "quantise",
    "X",
    "(mul (round (div X 0.25)) 0.25)",
    "(div (round (mul X 4.0)) 4.0)",
    "X",
    "(mul (floor (div X 0.25)) 0.25)",
    "(mul (floor (add (div X 0.25) 0.5)) 0.25)",
)
law(
    "remainder",
    "X",
    "(rems X 3)",
    "(sub X (mul (floor (div X 3.0)) 3.0))",
    "(fmods X 3)",
    "(rems X 4)",
)
law("fmod", "X", "(fmods X 3)", "(sub X (mul (trunc (div X 3.0)) 3.0))", "(rems X 3)")
law(
    "div-floor",
    "x y",
    '(divm x y :rounding_mode "floor")',
    "(floor (div x y))",
    "(div x y)",
    '(divm x y :rounding_mode "trunc")',
)
# ---- comparisons, logic, where
law("gt-flip", "X Y", "(gt X Y)", "(lt Y X)", "(le Y X)", "(gt Y X)")
law("not-gt", "X Y", "(logical_not (gt X Y))", "(le X Y)", "(lt X Y)", "(ge X Y)")
law(
    "ge-parts",
    "X Y",
    "(ge X Y)",
    "(logical_or (gt X Y) (eq X Y))",
    "(gt X Y)",
    "(logical_and (gt X Y) (eq X Y))",
)
law(
    "gt-half",
    "X",
    "(gts X 0.5)",
    "(logical_not (les X 0.5))",
    "(ges X 0.5)",
    "(gts X 0.25)",
    "(gts X 0.5000001)",
)
law("gt-thousand", "X", "(gts X 1000)", "(lts (neg X) -1000)", "(ges X 1000)", "(gts X 1001)")
law(
    "min-thousand",
    "X",
    "(where (gts X 1000) (full_like X 1000) X)",
    "(clamp_max X 1000)",
    "X",
    "(clamp_max X 1001)",
    "(where (gts X 1000) (zl X) X)",
)
law(
    "threshold",
    "X",
    "(threshold X 1.0 5.0)",
    "(where (gts X 1.0) X (full_like X 5.0))",
    "(where (ges X 1.0) X (full_like X 5.0))",
)
law(
    "de-morgan",
    "P Q",
    "(logical_not (logical_and P Q))",
    "(logical_or (logical_not P) (logical_not Q))",
    "(logical_and (logical_not P) (logical_not Q))",
)
law(
    "or-comm",
    "P Q",
    "(logical_or P Q)",
    "(logical_or Q P)",
    "(logical_and P Q)",
    "(logical_xor P Q)",
)
law(
    "xor",
    "P Q",
    "(logical_xor P Q)",
    "(logical_and (logical_or P Q) (logical_not (logical_and P Q)))",
    "(logical_or P Q)",
)
law("not-not", "P", "(logical_not (logical_not P))", "P", "(logical_not P)")
law("and-absorb", "p q", "(logical_and p (logical_or p q))", "p", "q")
law("bits-and", "P Q", "(band P Q)", "(logical_and P Q)", "(logical_or P Q)")
law("where-not", "p x y", "(where (logical_not p) x y)", "(where p y x)", "(where p x y)")
law("where-same", "p x", "(where p x x)", "x", "(neg x)")
law(
    "where-add",
    "p x y z",
    "(add (where p x y) z)",
    "(where p (add x z) (add y z))",
    "(where p (add x z) y)",
)
law(
    "where-where",
    "p x y z",
    "(where p (where p x y) z)",
    "(where p x z)",
    "(where p y z)",
    "(where p x y)",
)
law(
    "where-mul",
    "p x",
    "(where p x (zl x))",
    "(mul x (to p float64))",
    "x",
    "(mul x (to (logical_not p) float64))",
)
law(
    "masked-fill",
    "p x",
    "(mfill x p 3.0)",
    "(where p (full_like x 3.0) x)",
    "(where p x (full_like x 3.0))",
    "(mfill x p 2.0)",
)
law(
    "masked-fill-attr",
    "p x",
    "(mfill x p s)",
    "(where p (full_like x s) x)",
    "(where p x (full_like x s))",
    attrs="(attr s float)",
)
law("masked-twice", "p x", "(mfill (mfill x p 3.0) p 2.0)", "(mfill x p 2.0)", "(mfill x p 3.0)")
law("heaviside", "X", "(gts X 0)", "(gt X (zl X))", "(ge X (zl X))", "(lt X (zl X))")
law("eq-sub", "x y", "(eq x y)", "(eqs (sub x y) 0)", "(nes (sub x y) 0)")
law(
    "sign-cmp",
    "X",
    "(sign X)",
    "(sub (to (gts X 0) float64) (to (lts X 0) float64))",
    "(to (gts X 0) float64)",
)
law("abs-where", "X", "(abs X)", "(where (lts X 0) (neg X) X)", "(where (gts X 0) (neg X) X)", "X")
# ---- reductions
law(
    "sum-sum",
    "t",
    "(sum (sum t (list 2)) (list 1))",
    "(sum t (list 1 2))",
    "(sum t (list 0 1))",
    "(sum t (list 1))",
)
law(
    "sum-order",
    "x",
    "(sum (sum x (list 0) true) (list 1) true)",
    "(sum (sum x (list 1) true) (list 0) true)",
    "(sum x (list 0) true)",
)
law("sum-T", "x", "(sum (T x 0 1) (list 0))", "(sum x (list 1))", "(sum x (list 0))")
law("sum-all", "x", "(sum x (list 0 1))", "(aten::sum x)", "(aten::mean x)", "(sum x (list 0))")
law(
    "sum-add",
    "x y",
    "(sum (add x y) (list 1))",
    "(add (sum x (list 1)) (sum y (list 1)))",
    "(sum x (list 1))",
    "(add (sum x (list 1)) (sum y (list 0)))",
)
law(
    "sum-scale",
    "x",
    "(sum (mul x 3.0) (list 1))",
    "(mul (sum x (list 1)) 3.0)",
    "(sum x (list 1))",
    ("(sum (add x 3.0) (list 1))", "(add (sum x (list 1)) 3.0)"),
)
law(
    "sum-scale-row",
    "x u",
    "(sum (mul x (unsqueeze u 1)) (list 1))",
    "(mul (sum x (list 1)) u)",
    "(sum x (list 1))",
)
law("sum-neg", "x", "(sum (neg x) (list 1))", "(neg (sum x (list 1)))", "(sum x (list 1))")
law(
    "sum-keepdim",
    "x",
    "(sum x (list 1) true)",
    "(unsqueeze (sum x (list 1)) 1)",
    "(unsqueeze (sum x (list 1)) 0)",
    "(sum x (list 1))",
)
law(
    "sum-matmul",
    "x",
    "(sum x (list 1))",
    "(mv x (ones (list M) :dtype float64))",
    "(mv x (zeros (list M) :dtype float64))",
)
law(
    "sum-neg-dim",
    "t",
    "(sum t (list -1))",
    "(sum t (list 2))",
    "(sum t (list 1))",
    "(sum t (list 0))",
)
law(
    "mean-sum",
    "x",
    "(mean x (list 1))",
    "(div (sum x (list 1)) M)",
    "(div (sum x (list 1)) N)",
    "(sum x (list 1))",
    "(div (sum x (list 1)) (+ M 1))",
)
law(
    "mean-add",
    "x y",
    "(mean (add x y) (list 0))",
    "(add (mean x (list 0)) (mean y (list 0)))",
    "(mean x (list 0))",
)
law(
    "mean-mean",
    "x",
    "(mean (mean x (list 1)) (list 0))",
    "(mean x (list 0 1))",
    "(mean x (list 0))",
)
law(
    "mean-shift",
    "x",
    "(mean (add x 3.0) (list 1))",
    "(add (mean x (list 1)) 3.0)",
    "(mean x (list 1))",
)
law(
    "var-two-ways",
    "x",
    "(var x (list 1) :correction 0)",
    "(sub (mean (mul x x) (list 1)) (pow (mean x (list 1)) 2))",
    "(mean (mul x x) (list 1))",
    "(var x (list 1) :correction 1)",
    "(sub (mean (mul x x) (list 1)) (mean x (list 1)))",
)
law(
    "var-centred",
    "x",
    "(var x (list 1) :correction 0)",
    "(mean (pow (sub x (mean x (list 1) true)) 2) (list 1))",
    "(mean (pow x 2) (list 1))",
)
law(
    "var-shift",
    "x",
    "(var (add x 5.0) (list 1))",
    "(var x (list 1))",
    "(add (var x (list 1)) 5.0)",
    ("(var (mul x 5.0) (list 1))", "(mul (var x (list 1)) 5.0)"),
)
law("std", "x", "(std.correction x (list 1))", "(sqrt (var x (list 1)))", "(var x (list 1))")
law("prod-exp", "x", "(log (prod (exp x) 1))", "(sum x (list 1))", "(prod x 1)")
law(
    "amax-neg", "x", "(amax (neg x) (list 1))", "(neg (amin x (list 1)))", "(neg (amax x (list 1)))"
)
law(
    "amax-amax",
    "x",
    "(amax (amax x (list 1)) (list 0))",
    "(amax x (list 0 1))",
    "(amin x (list 0 1))",
    "(amax x (list 1))",
)
law(
    "amax-shift",
    "x",
    "(amax (add x 2.0) (list 1))",
    "(add (amax x (list 1)) 2.0)",
    "(amax x (list 1))",
)
law(
    "amax-relu",
    "(var x f (N 64))",
    "(amax (relu x) (list 1))",
    "(relu (amax x (list 1)))",
    "(amax x (list 1))",
)
law(
    "amax-max",
    "x",
    "(amax x (list 1))",
    "(getitem (maxd x 1) 0)",
    "(getitem (mind x 1) 0)",
    "(getitem (maxd x 0) 0)",
)
law(
    "argmax",
    "(var x f (N 64))",
    "(argmax x 1)",
    "(getitem (maxd x 1) 1)",
    "(argmin x 1)",
    "(argmax (abs x) 1)",
    "(argmax x 0)",
)
law("argmax-neg", "x", "(argmax (neg x) 1)", "(argmin x 1)", "(argmax x 1)")
law(
    "argmax-monotone",
    "x",
    "(argmax (exp x) 1)",
    "(argmax x 1)",
    "(argmin x 1)",
    ("(argmax (mul x x) 1)", "(argmax x 1)"),
)
law(
    "topk",
    "(var x f (N 64))",
    "(getitem (topk x 1 1) 0)",
    "(amax x (list 1) true)",
    "(amin x (list 1) true)",
    "(amax (relu x) (list 1) true)",
)
law(
    "sort",
    "x",
    "(getitem (sort (getitem (sort x 1) 0) 1) 0)",
    "(getitem (sort x 1) 0)",
    "x",
    "(getitem (sort x 0) 0)",
)
law(
    "sort-desc",
    "x",
    "(getitem (sort x 1 true) 0)",
    "(flip (getitem (sort x 1) 0) (list 1))",
    "(getitem (sort x 1) 0)",
    "(flip (getitem (sort x 1) 0) (list 0))",
)
law(
    "any",
    "(var p b (N 64))",
    "(any p 1)",
    "(logical_not (all (logical_not p) 1))",
    "(all p 1)",
    "(any p 0)",
)
law(
    "all-and",
    "p q",
    "(all (logical_and p q) 1)",
    "(logical_and (all p 1) (all q 1))",
    "(all p 1)",
    ("(any (logical_and p q) 1)", "(logical_and (any p 1) (any q 1))"),
)
law(
    "norm",
    "x",
    "(normd x 2 (list 1))",
    "(sqrt (sum (mul x x) (list 1)))",
    "(sum (abs x) (list 1))",
    "(sum (mul x x) (list 1))",
)
law("norm-one", "x", "(normd x 1 (list 1))", "(sum (abs x) (list 1))", "(sum x (list 1))")
law(
    "lse",
    "x",
    "(lse x (list 1))",
    "(log (sum (exp x) (list 1)))",
    "(sum x (list 1))",
    "(log (sum x (list 1)))",
)
law(
    "lse-shift", "x", "(lse (add x 2.0) (list 1))", "(add (lse x (list 1)) 2.0)", "(lse x (list 1))"
)
law(
    "lse-stable",
    "x",
    "(log (sum (exp x) (list 1) true))",
    "(add (log (sum (exp (sub x (amax x (list 1) true))) (list 1) true)) (amax x (list 1) true))",
    "(log (sum (exp (sub x (amax x (list 1) true))) (list 1) true))",
)
law(
    "cumsum-last",
    "x",
    "(select (cumsum x 1) 1 -1)",
    "(sum x (list 1))",
    "(select x 1 -1)",
    "(select (cumsum x 1) 1 0)",
    "(select (cumsum x 0) 1 -1)",
)
law(
    "cumsum-scale",
    "x",
    "(cumsum (mul x 2.0) 1)",
    "(mul (cumsum x 1) 2.0)",
    "(cumsum x 1)",
    "(mul (cumsum x 0) 2.0)",
)
law(
    "cumsum-flip",
    "x",
    "(cumsum x 1)",
    "(add (sub (sum x (list 1) true) (flip (cumsum (flip x (list 1)) 1) (list 1))) x)",
    "(flip (cumsum (flip x (list 1)) 1) (list 1))",
)
law(
    "softmax",
    "x",
    "(softmax x 1)",
    "(div (exp x) (sum (exp x) (list 1) true))",
    "(div (exp x) (sum (exp x) (list 0) true))",
    "(exp x)",
    "(softmax x 0)",
)
law(
    "softmax-shift",
    "x",
    "(softmax (add x 3.0) 1)",
    "(softmax x 1)",
    ("(softmax (mul x 3.0) 1)", "(softmax x 1)"),
    "(softmax x 0)",
)
law(
    "softmax-stable",
    "x",
    "(softmax x 1)",
    (
        "(div (exp (sub x (amax x (list 1) true))) (sum (exp (sub x (amax x (list 1) true))) "
        "(list 1) "
        "true))"
    ),
    "(div (exp (sub x (amax x (list 1) true))) (sum (exp x) (list 1) true))",
)
law(
    "softmax-row-shift",
    "x u",
    "(softmax (add x (unsqueeze u 1)) 1)",
    "(softmax x 1)",
    ("(softmax (mul x (unsqueeze u 1)) 1)", "(softmax x 1)"),
)
law("softmax-T", "x", "(T (softmax x 0) 0 1)", "(softmax (T x 0 1) 1)", "(softmax (T x 0 1) 0)")
law(
    "softmax-sum",
    "x",
    "(sum (softmax x 1) (list 1))",
    "(ones (list N) :dtype float64)",
    "(ones (list M) :dtype float64)",
)
law(
    "log-softmax",
    "x",
    "(logsoftmax x 1)",
    "(log (softmax x 1))",
    "(log (softmax x 0))",
    "(softmax x 1)",
    "(clamp_min (logsoftmax x 1) -50.0)",
)
law(
    "log-softmax-lse",
    "x",
    "(logsoftmax x 1)",
    "(sub x (lse x (list 1) true))",
    "(sub x (lse x (list 0) true))",
    "(sub x (amax x (list 1) true))",
)
law(
    "softmin",
    "x",
    "(softmax (neg x) 1)",
    "(softmax (sub (amax x (list 1) true) x) 1)",
    "(softmax x 1)",
)
# ---- norms
law(
    "layer-norm",
    "x v",
    "(layer_norm x (list M) v none 1e-05)",
    (
        "(mul (mul (sub x (mean x (list 1) true)) (rsqrt (add (var x (list 1) :correction 0 "
        ":keepdim "
        "true) 1e-05))) v)"
    ),
    "(layer_norm x (list M) v none 1e-06)",
    (
        "(mul (mul (sub x (mean x (list 1) true)) (rsqrt (add (var x (list 1) :correction 1 "
        ":keepdim "
        "true) 1e-05))) v)"
    ),
    "(mul (mul x (rsqrt (add (mean (mul x x) (list 1) true) 1e-05))) v)",
)
law(
    "layer-norm-bias",
    "x v (var n f (M))".replace("x v", VARS["x"] + " " + VARS["v"]),
    "(layer_norm x (list M) v n e)",
    "(add (mul (layer_norm x (list M) none none e) v) n)",
    "(mul (add (layer_norm x (list M) none none e) n) v)",
    "(add (layer_norm x (list M) none none e) n)",
    attrs="(attr e float)",
    where="(> e 0)",
)
law(
    "layer-norm-eps-tiny",
    "x",
    "(layer_norm x (list M) none none 1e-12)",
    "(getitem (native_layer_norm x (list M) none none 1e-12) 0)",
    "(layer_norm x (list M) none none 1e-13)",
)
law(
    "rms-norm",
    "x v",
    "(rms_norm x (list M) v 1e-06)",
    "(mul (mul x (rsqrt (add (mean (pow x 2) (list 1) true) 1e-06))) v)",
    "(rms_norm x (list M) v 1e-05)",
    "(rms_norm x (list M) none 1e-06)",
    "(mul (mul x (rsqrt (add (sum (pow x 2) (list 1) true) 1e-06))) v)",
)
law(
    "rms-eps-tiny",
    "x",
    "(mul x (rsqrt (add (mean (pow x 2) (list 1) true) 1e-12)))",
    "(rms_norm x (list M) none 1e-12)",
    "(rms_norm x (list M) none 1e-13)",
)
law(
    "layer-norm-shift",
    "x",
    "(layer_norm (add x 3.0) (list M))",
    "(layer_norm x (list M))",
    ("(layer_norm (mul x 3.0) (list M))", "(layer_norm x (list M))"),
)
law(
    "batch-norm",
    "(var x f (B C L)) (var m f (C)) (var s f (C))",
    "(batch_norm x none none m (exp s) false 0.1 1e-05 false)",
    "(mul (sub x (unsqueeze m 1)) (unsqueeze (rsqrt (add (exp s) 1e-05)) 1))",
    "(mul (sub x (unsqueeze m 1)) (unsqueeze (rsqrt (exp s)) 1))",
)
law(
    "group-norm",
    "(var x f (B 4 L))",
    "(group_norm x 1)",
    "(layer_norm x (list 4 L))",
    "(group_norm x 2)",
)
# ---- products
law(
    "mm-T",
    "a b",
    "(T (mm a b) 0 1)",
    "(mm (T b 0 1) (T a 0 1))",
    "(mm (T a 0 1) (T b 0 1))",
    "(mm a b)",
)
law("mm-assoc", "a b d", "(mm (mm a b) d)", "(mm a (mm b d))", "(mm a b)")
law(
    "mm-dist",
    "a b c",
    "(mm a (add b c))",
    "(add (mm a b) (mm a c))",
    "(add (mm a b) c)",
    "(mm a b)",
)
law("mm-scale", "a b", "(mm (mul a 2.0) b)", "(mul (mm a b) 2.0)", "(mm (mul a 2.0) (mul b 2.0))")
law(
    "mm-scale-attr",
    "a b",
    "(mm (mul a s) (mul b t))",
    "(mul (mm a b) (* s t))" if False else "(mul (mul (mm a b) s) t)",
    "(mul (mm a b) s)",
    attrs="(attr s float) (attr t float)",
)
law("mm-neg", "a b", "(mm (neg a) b)", "(mm a (neg b))", "(mm a b)")
law(
    "mm-sum",
    "a b",
    "(mm a b)",
    "(sum (mul (unsqueeze a 2) (unsqueeze b 0)) (list 1))",
    "(sum (mul (unsqueeze a 2) (unsqueeze b 0)) (list 0))",
)
law("mm-matmul", "a b", "(mm a b)", "(matmul a b)", "(mm (mul a 1.001) b)")
law(
    "mm-row-scale",
    "a b u",
    "(mm (mul a (unsqueeze u 1)) b)",
    "(mul (mm a b) (unsqueeze u 1))",
    "(mm a b)",
)
law("mm-col-scale", "a b v", "(mul (mm a b) v)", "(mm a (mul b v))", "(mm a b)")
law(
    "linear-addmm",
    "(var a f (N K)) (var c f (K M)) (var v f (M))",
    "(lin a (T c 0 1) v)",
    "(addmm v a c)",
    "(lin a (T c 0 1))",
    "(addmm v a c :beta 2)",
    "(add (addmm v a c) v)",
)
law(
    "linear-mm",
    "(var a f (N K)) (var c f (M K))",
    "(lin a c)",
    "(mm a (T c 0 1))",
    "(mm c (T a 0 1))",
)
law(
    "linear-square-trap",
    "(var a f (K K)) (var c f (K K))",
    "(lin a c)",
    "(mm a (T c 0 1))",
    "(mm a c)",
    "(mm (T a 0 1) c)",
)
law(
    "linear-lead",
    "(var x f (... K)) (var c f (M K))",
    "(lin x c)",
    "(matmul x (T c 0 1))",
    "(mul (matmul x (T c 0 1)) 2.0)",
)
law(
    "addmm",
    "x a b",
    "(addmm x a b :beta 2 :alpha 3)",
    "(add (mul x 2.0) (mul (mm a b) 3.0))",
    "(add (mul x 3.0) (mul (mm a b) 2.0))",
    "(add x (mm a b))",
)
law(
    "addmm-attr",
    "x a b",
    "(addmm x a b :beta s :alpha t)",
    "(add (mul x s) (mul (mm a b) t))",
    "(add (mul x t) (mul (mm a b) s))",
    attrs="(attr s float) (attr t float)",
)
law(
    "bmm",
    "(var a f (B N K)) (var b f (B K M))",
    "(bmm a b)",
    "(matmul a b)",
    "(matmul b a)" if False else "(matmul a (flip b (list 0)))",
)
law(
    "bmm-T",
    "(var a f (B N K)) (var b f (B K M))",
    "(T (bmm a b) 1 2)",
    "(bmm (T b 1 2) (T a 1 2))",
    "(bmm a b)",
)
law(
    "baddbmm",
    "(var x f (B N M)) (var a f (B N K)) (var b f (B K M))",
    "(baddbmm x a b)",
    "(add x (bmm a b))",
    "(bmm a b)",
    "(sub x (bmm a b))",
)
law("mv", "x v", "(mv x v)", "(squeeze (mm x (unsqueeze v 1)) 1)", "(sum x (list 1))")
law(
    "dot",
    "v (var n f (M))".replace("v ", VARS["v"] + " "),
    "(dot v n)",
    "(aten::sum (mul v n))",
    "(aten::sum (add v n))",
)
law(
    "outer",
    "u v",
    "(outer u v)",
    "(mul (unsqueeze u 1) (unsqueeze v 0))",
    "(add (unsqueeze u 1) (unsqueeze v 0))",
)
law("einsum-mm", "a b", '(einsum "ik,km->im" (list a b))', "(mm a b)", "(mul (mm a b) 2.0)")
law("einsum-T", "x", '(einsum "ij->ji" (list x))', "(T x 0 1)", "x")
law("einsum-sum", "x", '(einsum "ij->i" (list x))', "(sum x (list 1))", "(sum x (list 0))")
law(
    "block-mm",
    "(var a f (N K)) (var b f (N L)) (var c f (K M)) (var d f (L M))",
    "(mm (cat (list a b) 1) (cat (list c d) 0))",
    "(add (mm a c) (mm b d))",
    "(mm a c)",
    "(sub (mm a c) (mm b d))",
)
law(
    "mm-cat-cols",
    "a b c",
    "(mm a (cat (list b c) 1))",
    "(cat (list (mm a b) (mm a c)) 1)",
    "(cat (list (mm a c) (mm a b)) 1)",
    "(cat (list (mm a b) (mm a b)) 1)",
)
law(
    "mm-cat-rows",
    "(var a f (N K)) (var e f (L K)) (var b f (K M))",
    "(mm (cat (list a e) 0) b)",
    "(cat (list (mm a b) (mm e b)) 0)",
    "(cat (list (mm e b) (mm a b)) 0)",
)
law(
    "linear-fused",
    "(var x f (N K)) (var w f (M K)) (var y f (L K))",
    "(slice (lin x (cat (list w y) 0)) 1 0 M)",
    "(lin x w)",
    "(lin x y)",
    ("(slice (lin x (cat (list w y) 0)) 1 L)", "(lin x w)"),
)
law(
    "conv-linear",
    "(var x f (B C 1)) (var w f (O C 1))",
    "(squeeze (conv1d x w) 2)",
    "(lin (squeeze x 2) (squeeze w 2))",
    "(neg (lin (squeeze x 2) (squeeze w 2)))",
)
law(
    "conv-scale",
    "(var x f (B C L)) (var w f (O C 2))",
    "(conv1d (mul x 2.0) w)",
    "(mul (conv1d x w) 2.0)",
    "(conv1d x w)",
)
law(
    "conv-add",
    "(var x f (B C L)) (var w f (O C 2)) (var y f (O C 2))",
    "(conv1d x (add w y))",
    "(add (conv1d x w) (conv1d x y))",
    "(conv1d x w)",
)
law(
    "conv-cat",
    "(var x f (B C L)) (var w f (O C 2)) (var y f (P C 2))",
    "(conv1d x (cat (list w y) 0))",
    "(cat (list (conv1d x w) (conv1d x y)) 1)",
    "(cat (list (conv1d x y) (conv1d x w)) 1)",
)
law(
    "conv-bias",
    "(var x f (B C L)) (var w f (O C 2)) (var n f (O))",
    "(conv1d x w n)",
    "(add (conv1d x w) (unsqueeze n 1))",
    "(conv1d x w)",
)
law(
    "conv-merge",
    "(var x f (B 2 5 5)) (var w f (3 2 3 3)) (var y f (3 2 3 3))",
    "(add (conv2d x w) (conv2d x y))",
    "(conv2d x (add w y))",
    "(conv2d x w)",
)
law(
    "conv-enlarge",
    "(var x f (1 2 4 4)) (var w f (3 2 1 1))",
    "(conv2d x w)",
    "(conv2d x (constant_pad_nd w (list 1 1 1 1)) none (list 1 1) (list 1 1))",
    "(conv2d x (constant_pad_nd w (list 0 2 1 1)) none (list 1 1) (list 1 1))",
)
law(
    "avg-pool",
    "(var x f (B C L))",
    "(avg_pool1d x (list 2) (list 2))",
    "(squeeze (avg_pool2d (unsqueeze x 2) (list 1 2) (list 1 2)) 2)",
    "(max_pool1d x (list 2) (list 2))",
)
law(
    "max-pool-relu",
    "(var x f (B C H W))",
    "(max_pool2d (relu x) (list 2 2))",
    "(relu (max_pool2d x (list 2 2)))",
    "(max_pool2d x (list 2 2))",
    where="(>= H 2) (>= W 2)",
)
law(
    "avg-pool-linear",
    "(var x f (B C H W))",
    "(avg_pool2d (mul x 3.0) (list 2 2))",
    "(mul (avg_pool2d x (list 2 2)) 3.0)",
    "(avg_pool2d x (list 2 2))",
    where="(>= H 2) (>= W 2)",
)
# ---- layout
law("T-T", "x", "(T (T x 0 1) 0 1)", "x", "(T x 0 1)")
law("t-T", "x", "(aten::t x)", "(T x 0 1)", "x")
law("T-neg-dim", "t", "(T t 1 2)", "(T t -2 -1)", "(T t 0 1)", "(T t 0 2)")
law("T-swap", "t", "(T t 0 2)", "(T t 2 0)", "(T t 1 2)")
law(
    "permute", "t", "(permute t (list 0 2 1))", "(T t 1 2)", "(T t 0 1)", "(permute t (list 1 2 0))"
)
law(
    "permute-permute",
    "t",
    "(permute (permute t (list 1 2 0)) (list 1 2 0))",
    "(permute t (list 2 0 1))",
    "(permute t (list 1 2 0))",
    "t",
)
law(
    "permute-inverse",
    "t",
    "(permute (permute t (list 1 2 0)) (list 2 0 1))",
    "t",
    "(permute t (list 2 0 1))",
)
law("T-add", "x y", "(T (add x y) 0 1)", "(add (T x 0 1) (T y 0 1))", "(add x y)")
law("T-relu", "x", "(T (relu x) 0 1)", "(relu (T x 0 1))", "(relu x)")
law(
    "view-view",
    "x",
    "(view (view x (list (* N M))) (list M N))",
    "(view x (list M N))",
    "(T x 0 1)",
)
law("view-back", "x", "(view (view x (list (* N M))) (list N M))", "x", "(neg x)")
law("reshape-infer", "x", "(reshape x (list -1))", "(flatten x)", "(flatten (T x 0 1))")
law(
    "reshape-view",
    "t",
    "(reshape t (list B (* N M)))",
    "(flatten t 1 2)",
    "(flatten (T t 1 2) 1 2)",
    "(reshape (T t 0 1) (list B (* N M)))",
)
law(
    "view-relu",
    "x",
    "(relu (view x (list (* N M))))",
    "(view (relu x) (list (* N M)))",
    "(view x (list (* N M)))",
)
law(
    "view-attr",
    "x",
    "(view (view x (list A B)) (list N M))",
    "x",
    "(neg x)",
    where="(= (* A B) (* N M))",
)
law("unsqueeze-squeeze", "x", "(squeeze (unsqueeze x 1) 1)", "x", "(unsqueeze x 1)")
law("unsqueeze-view", "x", "(unsqueeze x 1)", "(view x (list N 1 M))", "(view x (list 1 N M))")
law(
    "unsqueeze-attr",
    "x",
    "(squeeze (unsqueeze x d) d)",
    "x",
    "(unsqueeze x d)",
    attrs="(attr d int)",
)
law("expand", "v", "(expand v (list N M))", "(repeat v (list N 1))", "(repeat v (list 1 N))")
law("expand-add", "x v", "(add x (expand v (list N M)))", "(add x v)", "x")
law("expand-sum", "v", "(sum (expand v (list N M)) (list 0))", "(mul v N)", "(mul v M)", "v")
law(
    "repeat-cat",
    "x",
    "(repeat x (list 2 1))",
    "(cat (list x x) 0)",
    "(cat (list x x) 1)",
    "(repeat x (list 1 2))",
)
law(
    "repint",
    "x",
    "(repint x 2 0)",
    "(view (expand (unsqueeze x 1) (list N 2 M)) (list (* 2 N) M))",
    "(repeat x (list 2 1))",
    "(repint x 2 1)",
)
law(
    "repint-attr",
    "x",
    "(repint x R 0)",
    "(view (expand (unsqueeze x 1) (list N R M)) (list (* N R) M))",
    "(repeat x (list R 1))",
    where="(>= R 1)",
)
law(
    "cat-relu",
    "x y",
    "(relu (cat (list x y) 0))",
    "(cat (list (relu x) (relu y)) 0)",
    "(cat (list x y) 0)",
    "(cat (list (relu y) (relu x)) 0)",
)
law(
    "cat-assoc",
    "x y z",
    "(cat (list (cat (list x y) 0) z) 0)",
    "(cat (list x y z) 0)",
    "(cat (list y x z) 0)",
    "(cat (list x y z) 1)",
)
law(
    "cat-T",
    "x y",
    "(T (cat (list x y) 0) 0 1)",
    "(cat (list (T x 0 1) (T y 0 1)) 1)",
    "(cat (list (T x 0 1) (T y 0 1)) 0)",
)
law(
    "cat-slice",
    "(var x f (N M)) (var y f (K M))",
    "(slice (cat (list x y) 0) 0 0 N)",
    "x",
    "(neg x)",
    ("(slice (cat (list x y) 0) 0 1 (+ N 1))", "x"),
    ("(slice (cat (list x y) 0) 0 0 K)", "x"),
)
law(
    "cat-slice-2",
    "(var x f (N M)) (var y f (K M))",
    "(slice (cat (list x y) 0) 0 N)",
    "y",
    ("(slice (cat (list x y) 0) 0 K)", "y"),
)
law(
    "slice-cat",
    "x",
    "(cat (list (slice x 0 0 k) (slice x 0 k)) 0)",
    "x",
    "(cat (list (slice x 0 k) (slice x 0 0 k)) 0)",
    ("(cat (list (slice x 0 0 k) (slice x 0 (+ k 1))) 0)", "x"),
    where="(>= k 0)",
)
law(
    "cat-big-small",
    "x",
    "(cat (list (mul x 1000000.0) (mul x 0.001)) 1)",
    "(cat (list (mul x 1000000.0) (div x 1000.0)) 1)",
    "(cat (list (mul x 1000000.0) (mul x 0.0010001)) 1)",
    "(cat (list (mul x 1000000.0) (mul x 0.0)) 1)",
)
law(
    "cat-sum",
    "x y",
    "(sum (cat (list x y) 0) (list 0))",
    "(add (sum x (list 0)) (sum y (list 0)))",
    "(sum x (list 0))",
)
law(
    "stack",
    "x y",
    "(stack (list x y) 0)",
    "(cat (list (unsqueeze x 0) (unsqueeze y 0)) 0)",
    "(cat (list (unsqueeze y 0) (unsqueeze x 0)) 0)",
    "(stack (list x y) 1)",
)
law("stack-select", "x y", "(select (stack (list x y) 0) 0 1)", "y", "x")
law("stack-sum", "x y", "(sum (stack (list x y) 0) (list 0))", "(add x y)", "x")
law(
    "select-slice",
    "x",
    "(select x 0 0)",
    "(squeeze (slice x 0 0 1) 0)",
    "(select x 0 -1)",
    "(select x 1 0)",
)
law(
    "select-attr",
    "x",
    "(select x 0 k)",
    "(squeeze (slice x 0 k (+ k 1)) 0)",
    "(select x 0 (- k 1))" if False else "(select x 0 0)",
    where="(>= k 0) (< k N)",
)
law("slice-slice", "x", "(slice (slice x 0 1) 0 1)", "(slice x 0 2)", "(slice x 0 1)")
law(
    "slice-slice-attr",
    "x",
    "(slice (slice x 0 a) 0 b)",
    "(slice x 0 (+ a b))",
    "(slice x 0 b)",
    where="(>= a 0) (>= b 0)",
)
law(
    "slice-add",
    "x y",
    "(slice (add x y) 0 1)",
    "(add (slice x 0 1) (slice y 0 1))",
    ("(slice (add x y) 0 1)", "(slice x 0 1)"),
)
law(
    "slice-mm",
    "a b",
    "(slice (mm a b) 1 0 k)",
    "(mm a (slice b 1 0 k))",
    ("(slice (mm a b) 0 0 k)", "(mm a (slice b 1 0 k))"),
    where="(>= k 1) (<= k M)",
)
law(
    "slice-step",
    "x",
    "(slice x 0 0 none 2)" if False else "(slice x 0 0 9223372036854775807 2)",
    "(index_select x 0 (arange.start_step 0 N 2))",
    "(slice x 0 1 9223372036854775807 2)",
    "(slice x 0 0 9223372036854775807 3)",
)
law(
    "narrow",
    "x",
    "(narrow x 0 k l)",
    "(slice x 0 k (+ k l))",
    "(slice x 0 k l)",
    where="(>= k 0) (>= l 1) (<= (+ k l) N)",
)
law(
    "split-chunk",
    "x",
    "(getitem (split x S 1) 1)",
    "(getitem (chunk x 3 1) 1)",
    "(getitem (chunk x 3 1) 0)",
    ("(getitem (split x S 1) 1)", "(getitem (chunk x 3 1) 1)", "(= (* 2 S) M)"),
    where="(= (* 3 S) M)",
)
law(
    "split-slice",
    "x",
    "(getitem (split x S 0) 0)",
    "(slice x 0 0 S)",
    "(slice x 0 1 S)",
    "(slice x 0 0 (+ S 1))",
    where="(>= S 1)",
)
law(
    "split-cat",
    "x",
    "(cat (list (getitem (split x S 0) 0) (getitem (split x S 0) 1)) 0)",
    "x",
    "(cat (list (getitem (split x S 0) 1) (getitem (split x S 0) 0)) 0)",
    where="(= (* 2 S) N)",
)
law("unbind", "(var x f (2 M))", "(getitem (unbind x 0) 1)", "(select x 0 1)", "(select x 0 0)")
law("flip-flip", "x", "(flip (flip x (list 0)) (list 0))", "x", "(flip x (list 0))")
law(
    "flip-both",
    "x",
    "(flip x (list 0 1))",
    "(flip (flip x (list 1)) (list 0))",
    "(flip x (list 0))",
)
law(
    "flip-sum",
    "x",
    "(sum (flip x (list 1)) (list 1))",
    "(sum x (list 1))",
    ("(sum (flip x (list 0)) (list 1))", "(sum x (list 1))"),
)
law(
    "flip-cat",
    "x y",
    "(flip (cat (list x y) 0) (list 0))",
    "(cat (list (flip y (list 0)) (flip x (list 0))) 0)",
    "(cat (list (flip x (list 0)) (flip y (list 0))) 0)",
)
law(
    "roll-roll",
    "x",
    "(roll (roll x (list 1) (list 0)) (list 2) (list 0))",
    "(roll x (list 3) (list 0))",
    "(roll x (list 2) (list 0))",
)
law(
    "roll-back",
    "x",
    "(roll (roll x (list k) (list 0)) (list (- 0 k)) (list 0))",
    "x",
    "(roll x (list k) (list 0))",
)
law(
    "roll-full",
    "x",
    "(roll x (list N) (list 0))",
    "x",
    ("(roll x (list M) (list 0))", "x"),
    ("(roll x (list (+ N 1)) (list 0))", "x"),
)
law(
    "tril-triu",
    "(var x f (N N))",
    "(add (tril x) (triu x 1))",
    "x",
    "(add (tril x) (triu x))",
    "(tril x)",
)
law(
    "tril-T",
    "(var x f (N N))",
    "(T (tril x) 0 1)",
    "(triu (T x 0 1))",
    "(tril (T x 0 1))",
    "(triu x)",
)
law("tril-idem", "x", "(tril (tril x))", "(tril x)", "x", "(triu x)", "(tril x -1)")
law(
    "tril-mask",
    "(var x f (N N))",
    "(tril x)",
    "(mul x (tril (ones (list N N) :dtype float64)))",
    "(mul x (triu (ones (list N N) :dtype float64)))",
    "(mul x (tril (ones (list N N) :dtype float64) -1))",
)
law(
    "pad-zero",
    "x",
    "(constant_pad_nd x (list 0 2))",
    "(cat (list x (zeros (list N 2) :dtype float64)) 1)",
    "(cat (list (zeros (list N 2) :dtype float64) x) 1)",
    "(cat (list x (ones (list N 2) :dtype float64)) 1)",
)
law(
    "pad-slice",
    "x",
    "(slice (constant_pad_nd x (list 1 1)) 1 1 (+ M 1))",
    "x",
    ("(slice (constant_pad_nd x (list 1 1)) 1 0 M)", "x"),
)
law(
    "pad-sum",
    "x",
    "(sum (constant_pad_nd x (list 1 1)) (list 1))",
    "(sum x (list 1))",
    ("(sum (constant_pad_nd x (list 1 1) 1.0) (list 1))", "(sum x (list 1))"),
)
law(
    "diag",
    "(var x f (N N))",
    "(diagonal x)",
    "(diagonal (T x 0 1))",
    "(neg (diagonal x))",
    "(diagonal x 0 1 0)" if False else "(diagonal (flip x (list 0)))",
)
law(
    "movedim",
    "t",
    "(movedim.int t 0 2)",
    "(permute t (list 1 2 0))",
    "(permute t (list 2 0 1))",
    "t",
)
law("clone", "X", "(clone X)", "X", "(neg X)")
law("contiguous", "x", "(contiguous (T x 0 1))", "(T x 0 1)", "x")
law("cast-float", "X", "(to X float16)", "X", "(neg X)")
law(
    "cast-int",
    "I",
    "(to (to I float64) int64)",
    "I",
    ("(to (to I float32) int64)", "I"),
    ("(to (to I bfloat16) int64)", "I"),
    ("(to (to I float16) int64)", "I"),
)
law(
    "cast-int-float",
    "I",
    "(to I float64)",
    "(mul (to I float64) 1.0)",
    "(to (to I int32) float64)",
    "(to (to I int8) float64)",
    "(to I bfloat16)",
    "(to I float16)",
    "(to I float32)",
)
law(
    "cast-int32",
    "I",
    "(to (to I int32) int32)",
    "(to I int32)",
    ("(to (to I int32) int64)", "I"),
    ("(to (to I int8) int64)", "I"),
    ("(to (to I int16) int64)", "I"),
    "I",
)
law("cast-trunc", "X", "(to (to X int64) float64)", "(trunc X)", "(floor X)", "(round X)", "X")
law("cast-bool", "X", "(to X bool)", "(nes X 0)", "(gts X 0)")
law("int-add", "I J", "(add I J)", "(add J I)", "(sub I J)", "(add I I)")
law(
    "int-mul-shift",
    "I",
    "(mul.Scalar I 4)" if False else "(muls I 4)",
    "(shl I 2)",
    "(shl I 1)",
    "(shl I 3)",
)
law(
    "int-div",
    "i",
    '(divm i (full_like i 2) :rounding_mode "floor")',
    "(bitwise_right_shift.Tensor_Scalar i 1)",
    '(divm i (full_like i 2) :rounding_mode "trunc")',
)
# ---- indexing
W = "(var w f (V M)) (var i i (N))"
law(
    "embedding",
    W,
    "(embedding w i)",
    "(index_select w 0 i)",
    "(embedding (flip w (list 0)) i)",
    "(mul (embedding w i) 2.0)",
)
law(
    "embedding-scale",
    W,
    "(embedding (mul w 2.0) i)",
    "(mul (embedding w i) 2.0)",
    "(embedding w i)",
)
law(
    "embedding-range",
    W,
    "(embedding w i)",
    "(embedding (slice w 0 0 R) i)",
    ("(embedding w i)", "(embedding (slice (roll w (list 1) (list 0)) 0 0 R) i)"),
    where="(in i 0 R) (<= R V)",
)
law(
    "embedding-clamp",
    W,
    "(embedding w i)",
    "(embedding w (clamp i 0 (- V 1)))",
    "(embedding w (clamp i 1 none))",
    "(embedding w (clamp i none (- V 2)))" if False else "(embedding w (clamp i 0 0))",
)
law(
    "one-hot",
    W,
    "(mm (to (one_hot i V) float64) w)",
    "(embedding w i)",
    "(embedding (neg w) i)",
    where="(in i 0 V)",
)
law(
    "index-T",
    W,
    "(index_select (T w 0 1) 1 i)",
    "(T (index_select w 0 i) 0 1)",
    "(index_select w 0 i)",
)
law(
    "gather-self",
    "(var x f (N M)) (var i i (N M))",
    "(gather (mul x 2.0) 1 i)",
    "(mul (gather x 1 i) 2.0)",
    "(gather x 1 i)",
)
law(
    "gather-dim",
    "(var x f (N N)) (var i i (N N))",
    "(gather x 0 i)",
    "(T (gather (T x 0 1) 1 (T i 0 1)) 0 1)",
    "(gather x 1 i)",
    "(T (gather x 1 (T i 0 1)) 0 1)",
)
law(
    "index",
    W,
    "(index.Tensor w (list i))",
    "(index.Tensor (cat (list w w) 0) (list (remainder.Scalar i V)))",
    "(index.Tensor (flip w (list 0)) (list i))",
)
law(
    "arange-index",
    "x",
    "(index_select x 0 (arange N))",
    "x",
    "(neg x)",
    "(index_select x 0 (flip (arange N) (list 0)))",
)
law(
    "flip-index",
    "x",
    "(flip x (list 0))",
    "(index_select x 0 (sub (full (list N) (- N 1)) (arange N)))",
    "x",
)
law(
    "arange",
    "u",
    "(add u (arange N))",
    "(add u (arange.start 0 N))",
    "(add u (arange.start 1 (+ N 1)))",
)
law("full", "x", "(add x (full (list N M) 2.0))", "(add x 2.0)", "(add x (full (list N M) 3.0))")
law("ones", "x", "(mul x (ones (list N M)))", "x", "(mul x (zeros (list N M)))")
law("eye", "(var x f (N M))", "(mm (eye N :dtype float64) x)", "x", "(neg x)")
# ---- attention
AT = "h k g"
sc = "(mul (matmul h (T k 2 3)) s)"
law(
    "sdpa",
    AT,
    "(sdpa h k g :scale s)",
    "(matmul (softmax %s -1) g)" % sc,
    "(matmul (softmax %s -2) g)" % sc,
    "(matmul (softmax (matmul h (T k 2 3)) -1) g)",
    "(matmul (softmax %s -1) k)" % sc,
    attrs="(attr s float)",
    where="(> s 0)",
)
law(
    "sdpa-default",
    AT,
    "(sdpa h k g)",
    "(sdpa h k g :scale s)",
    "(sdpa k h g)",
    "(sdpa h k g :scale (+ D 1))" if False else "(sdpa h k g :scale 0.3)",
    where="(= (* (* s s) D) 1) (> s 0)",
    attrs="(attr s float)",
)
law(
    "sdpa-causal",
    AT,
    "(sdpa h k g none 0.0 true)",
    "(sdpa h k g (tril (ones (list S S) :dtype bool)))",
    "(sdpa h k g)",
    "(sdpa h k g (triu (ones (list S S) :dtype bool)))",
)
law("sdpa-T", AT, "(matmul h (T k 2 3))", "(T (matmul k (T h 2 3)) 2 3)", "(matmul k (T h 2 3))")
law(
    "sdpa-q-scale",
    AT,
    "(matmul (mul h s) (T k 2 3))",
    "(matmul h (T (mul k s) 2 3))",
    "(matmul h (T k 2 3))",
    attrs="(attr s float)",
)
law(
    "sdpa-heads",
    (
        "(var h f (B H S D)) (var k f (B H S D)) (var g f (B H S D)) (var H2 f (B L S D)) (var K2 "
        "f "
        "(B L S D)) (var G2 f (B L S D))"
    ),
    "(sdpa (cat (list h H2) 1) (cat (list k K2) 1) (cat (list g G2) 1))",
    "(cat (list (sdpa h k g) (sdpa H2 K2 G2)) 1)",
    "(cat (list (sdpa H2 K2 G2) (sdpa h k g)) 1)",
    "(cat (list (sdpa h K2 g) (sdpa H2 k G2)) 1)",
)
law(
    "gqa",
    "(var h f (B H S D)) (var k f (B G S D)) (var g f (B G S D))",
    "(sdpa h (repint k R 1) (repint g R 1))",
    "(sdpa h k g :enable_gqa true)",
    "(sdpa h (repeat k (list 1 R 1 1)) (repeat g (list 1 R 1 1)))",
    where="(= H (* R G)) (>= R 1)",
)
# ---- open leading dimensions
law(
    "lead-softmax",
    "(var x f (... K))",
    "(softmax (add x 1.0) -1)",
    "(softmax x -1)",
    "(softmax x 0)",
)
law(
    "lead-mean",
    "(var x f (... K))",
    "(mean x (list -1))",
    "(div (sum x (list -1)) K)",
    "(sum x (list -1))",
)
law(
    "lead-norm",
    "(var x f (... K))",
    "(rms_norm x (list K) none 1e-06)",
    "(mul x (rsqrt (add (mean (mul x x) (list -1) true) 1e-06)))",
    "(mul x (rsqrt (mean (mul x x) (list -1) true)))",
)
law("lead-unsqueeze", "(var x f (... K))", "(squeeze (unsqueeze x -1) -1)", "x", "(unsqueeze x -1)")
law("unnamed", "(var x f (_ _))", "(T (T x 0 1) 0 1)", "x", "(T x 0 1)")
law(
    "unnamed-each",
    "(var x f (_)) (var y f (_))",
    "(outer x y)",
    "(T (outer y x) 0 1)",
    "(outer y x)",
)
# ---- tensor parallel
law(
    "mlp-shards",
    "(var x f (N K)) (var w f (M K)) (var y f (L K)) (var c f (M O)) (var d f (L O))",
    "(mm (gelu (mm x (T (cat (list w y) 0) 0 1))) (cat (list c d) 0))",
    "(add (mm (gelu (mm x (T w 0 1))) c) (mm (gelu (mm x (T y 0 1))) d))",
    "(mm (gelu (mm x (T w 0 1))) c)",
    "(add (mm (gelu (mm x (T w 0 1))) c) (mm (gelu (mm x (T w 0 1))) c))",
)
law(
    "bias-once",
    "(var x f (N K)) (var e f (N L)) (var w f (O K)) (var y f (O L)) (var n f (O))",
    "(lin (cat (list x e) 1) (cat (list w y) 1) n)",
    "(add (lin x w) (lin e y n))",
    "(add (lin x w n) (lin e y n))",
    "(add (lin x w) (lin e y))",
)
law(
    "gelu-cat",
    "(var x f (N K)) (var e f (N L))",
    "(gelu (cat (list x e) 1))",
    "(cat (list (gelu x) (gelu e)) 1)",
    "(cat (list (gelu e) (gelu x)) 1)",
)

if __name__ == "__main__":
    print(
        (
            "; Written by make_laws.py: %d rules. A name that begins with no- is of one that does "
            "not "
            "hold."
        )
        % len(out)
    )
    print("\n".join(out))
