"""Passes: real functions with their domains."""

from notation import law

XY = "(var x f (N)) (var y f (N))"
X1 = "(var x f (N))"

# ---- real functions with their domains (accuracy rewriters)
law("acos-cos", X1, "(cos (acos x))", "x", "(abs x)")
law("asin-sin", X1, "(sin (asin x))", "x", ("(asin (sin x))", "x"))
law(
    "cos-of-asin",
    X1,
    "(cos (asin x))",
    "(sqrt (rsub.Scalar (mul x x) 1))",
    "(rsub.Scalar (mul x x) 1)",
)
law(
    "sin-of-acos",
    X1,
    "(sin (acos x))",
    "(sqrt (rsub.Scalar (mul x x) 1))",
    "(sqrt (adds (mul x x) 1))",
)
law(
    "tan-of-asin",
    X1,
    "(tan (asin x))",
    "(div x (sqrt (rsub.Scalar (mul x x) 1)))",
    "(div x (rsub.Scalar (mul x x) 1))",
)
law(
    "cos-of-atan",
    X1,
    "(cos (atan x))",
    "(rsqrt (adds (mul x x) 1))",
    "(reciprocal (adds (mul x x) 1))",
)
law(
    "sin-of-atan",
    X1,
    "(sin (atan x))",
    "(div x (sqrt (adds (mul x x) 1)))",
    "(rsqrt (adds (mul x x) 1))",
)
law("tan-atan", X1, "(tan (atan x))", "x", ("(atan (tan x))", "x"))
law("asin-odd", X1, "(asin (neg x))", "(neg (asin x))", "(asin x)")
law(
    "asin-acos",
    X1,
    "(add (asin x) (acos x))",
    "(muls (atan (ones_like x)) 2)",
    "(atan (ones_like x))",
)
law(
    "acos-neg",
    X1,
    "(acos (neg x))",
    "(sub (muls (atan (ones_like x)) 4) (acos x))",
    "(neg (acos x))",
)
law("half-tan-sin", X1, "(div (sin x) (adds (cos x) 1))", "(tan (divs x 2))", "(tan x)")
law(
    "half-tan-cos",
    X1,
    "(div (rsub.Scalar (cos x) 1) (sin x))",
    "(tan (divs x 2))",
    "(tan (muls x 2))",
)
law(
    "double-tan",
    X1,
    "(div (muls (tan x) 2) (rsub.Scalar (square (tan x)) 1))",
    "(tan (muls x 2))",
    "(muls (tan x) 2)",
)
law(
    "tan-sum",
    XY,
    "(div (add (tan x) (tan y)) (rsub.Scalar (mul (tan x) (tan y)) 1))",
    "(tan (add x y))",
    "(tan (sub x y))",
)
law(
    "sum-sin",
    XY,
    "(add (sin x) (sin y))",
    "(muls (mul (sin (divs (add x y) 2)) (cos (divs (sub x y) 2))) 2)",
    "(muls (mul (cos (divs (add x y) 2)) (sin (divs (sub x y) 2))) 2)",
)
law(
    "diff-cos",
    XY,
    "(sub (cos x) (cos y))",
    "(muls (mul (sin (divs (sub x y) 2)) (sin (divs (add x y) 2))) -2)",
    "(muls (mul (sin (divs (sub x y) 2)) (sin (divs (add x y) 2))) 2)",
)
law(
    "triple-sin",
    X1,
    "(sin (muls x 3))",
    "(sub (muls (sin x) 3) (muls (pow (sin x) 3) 4))",
    "(sub (muls (sin x) 4) (muls (pow (sin x) 3) 3))",
)
law(
    "triple-cos",
    X1,
    "(cos (muls x 3))",
    "(sub (muls (pow (cos x) 3) 4) (muls (cos x) 3))",
    "(sub (muls (cos x) 3) (muls (pow (cos x) 3) 4))",
)
law(
    "asinh-log",
    X1,
    "(asinh x)",
    "(log (add x (sqrt (adds (mul x x) 1))))",
    "(log (add x (sqrt (subs (mul x x) 1))))",
)
law(
    "acosh-log",
    X1,
    "(acosh x)",
    "(log (add x (sqrt (subs (mul x x) 1))))",
    "(log (sub x (sqrt (subs (mul x x) 1))))",
)
law(
    "atanh-log",
    X1,
    "(atanh x)",
    "(muls (log (div (adds x 1) (rsub.Scalar x 1))) 0.5)",
    "(log (div (adds x 1) (rsub.Scalar x 1)))",
)
law("sinh-asinh", X1, "(sinh (asinh x))", "x", "(abs x)")
law("cosh-acosh", X1, "(cosh (acosh x))", "x", ("(acosh (cosh x))", "x"))
law("tanh-atanh", X1, "(tanh (atanh x))", "x", "(neg x)")
law("cosh-asinh", X1, "(cosh (asinh x))", "(sqrt (adds (mul x x) 1))", "(sqrt (subs (mul x x) 1))")
law(
    "sinh-atanh",
    X1,
    "(sinh (atanh x))",
    "(div x (sqrt (rsub.Scalar (mul x x) 1)))",
    "(div x (sqrt (adds (mul x x) 1)))",
)
law(
    "cosh-sum",
    XY,
    "(cosh (add x y))",
    "(add (mul (cosh x) (cosh y)) (mul (sinh x) (sinh y)))",
    "(sub (mul (cosh x) (cosh y)) (mul (sinh x) (sinh y)))",
)
law(
    "sinh-diff",
    XY,
    "(sinh (sub x y))",
    "(sub (mul (sinh x) (cosh y)) (mul (cosh x) (sinh y)))",
    "(add (mul (sinh x) (cosh y)) (mul (cosh x) (sinh y)))",
)
law(
    "cosh-half",
    X1,
    "(cosh (divs x 2))",
    "(sqrt (divs (adds (cosh x) 1) 2))",
    "(sqrt (divs (subs (cosh x) 1) 2))",
)
law(
    "tanh-half",
    X1,
    "(tanh (divs x 2))",
    "(div (sinh x) (adds (cosh x) 1))",
    "(div (sinh x) (subs (cosh x) 1))",
)
law(
    "tanh-sum",
    XY,
    "(tanh (add x y))",
    "(div (add (tanh x) (tanh y)) (adds (mul (tanh x) (tanh y)) 1))",
    "(div (add (tanh x) (tanh y)) (rsub.Scalar (mul (tanh x) (tanh y)) 1))",
)
law("pow-plus", XY, "(mul (powt x y) x)", "(powt x (adds y 1))", "(powt x (adds y 2))")
law(
    "pow-product-up",
    XY + " (var z f (N))",
    "(mul (powt x y) (powt x z))",
    "(powt x (add y z))",
    "(powt x (mul y z))",
)
law(
    "pow-product-down",
    XY + " (var z f (N))",
    "(mul (powt x z) (powt y z))",
    "(powt (mul x y) z)",
    "(powt (add x y) z)",
)
law("pow-flip", XY, "(reciprocal (powt x y))", "(powt x (neg y))", "(powt (neg x) y)")
law("exp-to-pow", XY, "(exp (mul (log x) y))", "(powt x y)", "(powt y x)")
law("pow-of-exp", XY, "(powt (exp x) y)", "(exp (mul x y))", "(exp (add x y))")
law("pow-of-sqrt", XY, "(powt (sqrt x) y)", "(powt x (muls y 0.5))", "(powt x (muls y 2))")
law(
    "log-of-product-abs",
    XY,
    "(log (mul x y))",
    "(add (log (abs x)) (log (abs y)))",
    "(add (log (abs x)) (abs (log y)))",
)
law(
    "log-of-quotient-abs",
    XY,
    "(log (div x y))",
    "(sub (log (abs x)) (log (abs y)))",
    "(sub (log (abs y)) (log (abs x)))",
)
law(
    "sqrt-of-product-abs",
    XY,
    "(sqrt (mul x y))",
    "(mul (sqrt (abs x)) (sqrt (abs y)))",
    "(mul (sqrt (abs x)) (abs y))",
)
law(
    "sqrt-diff",
    XY,
    "(sub (sqrt x) (sqrt y))",
    "(div (sub x y) (add (sqrt x) (sqrt y)))",
    "(div (add x y) (add (sqrt x) (sqrt y)))",
)
law("copysign-abs", XY, "(abs (copysign.Tensor x y))", "(abs x)", "x")
law("copysign-sign", XY, "(mul y (copysign.Tensor x y))", "(mul (abs x) (abs y))", "(mul x y)")
law(
    "hypot-sqrt",
    XY,
    "(hypot x y)",
    "(sqrt (add (mul x x) (mul y y)))",
    "(sqrt (sub (mul x x) (mul y y)))",
)
law(
    "expm1-tanh",
    X1,
    "(div (expm1 (muls x 2)) (adds (expm1 (muls x 2)) 2))",
    "(tanh x)",
    "(tanh (muls x 2))",
)
law(
    "sigmoid-diff",
    XY,
    "(sub (sigmoid x) (sigmoid y))",
    "(muls (sub (tanh (divs x 2)) (tanh (divs y 2))) 0.5)",
    "(sub (tanh (divs x 2)) (tanh (divs y 2)))",
)
law("logit-of-sigmoid", X1, "(logit (sigmoid x))", "x", "(neg x)")
law("softplus-inverse", X1, "(log (expm1 (log1p (exp x))))", "x", "(exp x)")
law("xlogy", XY, "(xlogy.Tensor x y)", "(mul x (log y))", "(mul y (log x))")
law(
    "frac-sum",
    XY + " (var z f (N))",
    "(add (div x y) (div y z))",
    "(div (add (mul x z) (mul y y)) (mul y z))",
    "(div (add x y) (add y z))",
)
law(
    "cubes",
    XY,
    "(sub (pow x 3) (pow y 3))",
    "(mul (add (mul x x) (add (mul x y) (mul y y))) (sub x y))",
    "(mul (sub (mul x x) (add (mul x y) (mul y y))) (sub x y))",
)
