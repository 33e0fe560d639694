"""Laws: sums, products, powers, signs."""

from notation import law

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
