#!/usr/bin/env python3
"""Write passes.rules: what compilers' passes, simplifiers and e-graph papers rewrite, beyond
published.rules.

    tests/rules/make_passes.py > tests/rules/passes.rules

From what they are known to do: integers with floor division, real functions with their domains,
compositions of convolutions, fusions and foldings of graph optimisers, and identities of attention,
normalisation, parallel layers and quantisation. Beside each at least one near miss, named no-...;
notation: make_laws.py."""

import make_laws
from make_laws import law

make_laws.out.clear()
make_laws.names.clear()
A = "(var A i (N))"
AB = "(var A i (N)) (var B i (N))"
ABC = AB + " (var C i (N))"
INT = " (attr c int) (attr e int)"
XY = "(var x f (N)) (var y f (N))"
X1 = "(var x f (N))"
R1 = "(var x f (N)) (attr r float)"

# ---- integers: quotients, remainders, limits (simplifiers of array compilers)
law(
    "div-mono-min",
    AB + INT,
    "(minimum (floor_divide.Scalar A c) (floor_divide.Scalar B c))",
    "(floor_divide.Scalar (minimum A B) c)",
    "(floor_divide.Scalar (maximum A B) c)",
    (
        "(minimum (floor_divide.Scalar A c) (floor_divide.Scalar B e))",
        "(floor_divide.Scalar (minimum A B) c)",
        "(> c 0) (> e 0)",
    ),
    where="(> c 0)",
)
law(
    "div-max-three",
    ABC + INT,
    "(maximum (maximum (floor_divide.Scalar A c) B) (floor_divide.Scalar C c))",
    "(maximum (floor_divide.Scalar (maximum A C) c) B)",
    "(maximum (floor_divide.Scalar (maximum A B) c) C)",
    where="(> c 0)",
)
law(
    "div-round-up",
    A + INT,
    "(rsub.Scalar (floor_divide.Scalar (rsub.Scalar A c) e) 0)",
    "(floor_divide.Scalar (adds A (- (- e c) 1)) e)",
    "(floor_divide.Scalar (adds A (- e c)) e)",
    where="(> e 0)",
)
law(
    "minus-div",
    A + INT,
    "(sub A (floor_divide.Scalar A c))",
    "(floor_divide.Scalar (adds (muls A (- c 1)) (- c 1)) c)",
    "(floor_divide.Scalar (muls A (- c 1)) c)",
    where="(> c 0)",
)
law(
    "halves",
    A,
    "(add (floor_divide.Scalar A 2) (rems A 2))",
    "(floor_divide.Scalar (adds A 1) 2)",
    "(floor_divide.Scalar (adds A 2) 2)",
)
law(
    "parity-sum",
    AB,
    "(rems (sub A B) 2)",
    "(rems (add A B) 2)",
    ("(rems (sub A B) 3)", "(rems (add A B) 3)"),
)
law(
    "clamp-multiple",
    AB + INT,
    "(minimum (muls (minimum (floor_divide.Scalar (adds B e) c) A) c) B)",
    "(minimum (muls A c) B)",
    (
        "(minimum (muls (minimum (floor_divide.Scalar (adds B e) c) A) c) B)",
        "(minimum (muls A c) B)",
        "(> c 0) (<= c (+ e 2))",
    ),
    where="(> c 0) (<= c (+ e 1))",
)
law(
    "div-less",
    AB + INT,
    "(lt (floor_divide.Scalar (maximum A (adds (muls B c) e)) c) B)",
    "(lt (floor_divide.Scalar A c) B)",
    (
        "(lt (floor_divide.Scalar (maximum A (adds (muls B c) e)) c) B)",
        "(lt (floor_divide.Scalar A c) B)",
        "(> c 0) (<= e 0)",
    ),
    where="(> c 0) (< e 0)",
)
law(
    "mul-less-neg",
    AB + INT,
    "(lt (muls A c) (muls B c))",
    "(lt B A)",
    ("(lt (muls A c) (muls B c))", "(lt B A)", "(<= c 0)"),
    where="(< c 0)",
)
law(
    "mul-less-pos",
    AB + INT,
    "(le (muls A c) (muls B c))",
    "(le A B)",
    ("(le (muls A c) (muls B c))", "(le A B)", "(>= c 0)"),
    where="(> c 0)",
)
law(
    "product-is-zero",
    AB,
    "(eqs (mul A B) 0)",
    "(logical_or (eqs A 0) (eqs B 0))",
    "(logical_and (eqs A 0) (eqs B 0))",
)
law("product-is-factor", AB, "(eq (mul A B) A)", "(logical_or (eqs A 0) (eqs B 1))", "(eqs B 1)")
law("max-times-min", AB, "(mul (maximum A B) (minimum A B))", "(mul A B)", "(mul A A)")
law(
    "max-minus-max",
    ABC,
    "(sub (maximum A B) (maximum A C))",
    "(maximum (sub A (maximum A C)) (sub B (maximum A C)))",
    "(sub B C)",
)
law(
    "select-max",
    A + INT,
    "(where.ScalarOther (gts A c) (adds A e) (+ c e))",
    "(clamp_min (adds A e) (+ c e))",
    "(clamp_min (adds A e) (+ (+ c e) 2))",
)
law(
    "select-min-scaled",
    A + INT,
    "(where (gts A 0) (clamp_max (muls A c) e) (muls A c))",
    "(clamp_max (muls A c) e)",
    (
        "(where (gts A 0) (clamp_max (muls A c) e) (muls A c))",
        "(clamp_max (muls A c) e)",
        "(>= c 0)",
    ),
    where="(>= c 0) (>= e 0)",
)
law(
    "relu-product",
    AB,
    "(where.ScalarSelf (lts A 0) 0 (mul A B))",
    "(mul (clamp_min A 0) B)",
    "(clamp_min (mul A B) 0)",
)
law(
    "min-of-min-div",
    A + " (attr c int) (attr e int) (attr d int)",
    "(minimum (floor_divide.Scalar (adds A d) c) (muls (floor_divide.Scalar A (* c e)) e))",
    "(floor_divide.Scalar (adds A d) c)",
    "(muls (floor_divide.Scalar A (* c e)) e)",
    where="(> c 0) (> e 0) (<= (- (+ d (* c e)) c) 0)",
)
law(
    "wrap-cancel",
    ABC + " (var D i (N))",
    "(sub (minimum (add (mul (add A B) C) D) B) (mul A C))",
    "(minimum (sub B (mul A C)) (add (mul B C) D))",
    "(minimum (sub B (mul A C)) (add (mul A C) D))",
)
law(
    "mod-nested",
    A + INT,
    "(rems (rems A (* c e)) c)",
    "(rems A c)",
    "(rems A e)",
    where="(> c 0) (> e 0)",
)
law(
    "div-nested",
    A + INT,
    "(floor_divide.Scalar (floor_divide.Scalar A c) e)",
    "(floor_divide.Scalar A (* c e))",
    "(floor_divide.Scalar A (+ c e))",
    where="(> c 0) (> e 0)",
)
law(
    "mod-of-scaled",
    A + INT,
    "(rems (muls A c) (* c e))",
    "(muls (rems A e) c)",
    "(rems (muls A c) e)",
    where="(> c 0) (> e 0)",
)
law(
    "align-up-idempotent",
    A + INT,
    (
        "(muls (floor_divide.Scalar (adds (muls (floor_divide.Scalar (adds A (- c 1)) c) c) (- c "
        "1)) "
        "c) c)"
    ),
    "(muls (floor_divide.Scalar (adds A (- c 1)) c) c)",
    "(muls (floor_divide.Scalar A c) c)",
    where="(> c 0)",
)
law(
    "cmp-remainder",
    A + INT,
    "(gts (rems A c) (- c 2))",
    "(eqs (rems A c) (- c 1))",
    "(eqs (rems A c) 1)",
    where="(> c 2)",
)
law(
    "cmp-floor",
    A + INT,
    "(lts (floor_divide.Scalar A c) e)",
    "(lts A (* c e))",
    "(les A (* c e))",
    where="(> c 0)",
)
law(
    "cmp-floor-ge",
    A + INT,
    "(gts (floor_divide.Scalar A c) e)",
    "(gts A (- (+ (* c e) c) 1))",
    "(gts A (* c e))",
    where="(> c 0)",
)
law(
    "ne-or-eq",
    A + INT,
    "(logical_or (nes A c) (eqs A e))",
    "(nes A c)",
    ("(logical_or (nes A c) (eqs A e))", "(nes A c)", ""),
    where="(!= c e)",
)
law(
    "lt-and-le",
    A + INT,
    "(logical_and (lts A c) (les A e))",
    "(lts A c)",
    ("(logical_and (lts A c) (les A e))", "(lts A c)", "(<= (- c 2) e)"),
    where="(<= (- c 1) e)",
)
law(
    "lt-or-gt",
    A + INT,
    "(logical_or (lts A c) (gts A e))",
    "(ones_like A :dtype bool)",
    ("(logical_or (lts A c) (gts A e))", "(ones_like A :dtype bool)", "(<= e c)"),
    where="(< e c)",
)
law("max-eq-left", AB, "(eq (maximum A B) A)", "(ge A B)", "(gt A B)")
law(
    "max-lt-both",
    ABC,
    "(lt (maximum A B) C)",
    "(logical_and (lt A C) (lt B C))",
    "(logical_or (lt A C) (lt B C))",
)
law(
    "min-le-either",
    ABC,
    "(le (minimum A B) C)",
    "(logical_or (le A C) (le B C))",
    "(logical_and (le A C) (le B C))",
)

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

# ---- convolutions of convolutions, and what folds into them
CONV = "(list 1 1) (list 1 1)"
W = "(var x f (B C H W)) (var w f (D C 3 3)) (var v f (E D 3 3))"
law(
    "conv-conv-scale-in",
    W + " (var s f ())",
    "(mul (conv2d (conv2d x w none %s) v none %s) s)" % (CONV, CONV),
    "(conv2d (conv2d (mul x s) w none %s) v none %s)" % (CONV, CONV),
    "(conv2d (adds (conv2d x w none %s) 1) v none %s)" % (CONV, CONV),
)
law(
    "conv-conv-scale-weight",
    W + " (var s f ())",
    "(conv2d (conv2d x w none %s) (mul v s) none %s)" % (CONV, CONV),
    "(conv2d (conv2d x (mul w s) none %s) v none %s)" % (CONV, CONV),
    "(conv2d (conv2d (mul x s) (mul w s) none %s) v none %s)" % (CONV, CONV),
)
law(
    "conv-relu-conv-scale",
    W + " (var s f ())",
    "(conv2d (relu (conv2d x w none %s)) (mul v s) none %s)" % (CONV, CONV),
    "(mul (conv2d (relu (conv2d x w none %s)) v none %s) s)" % (CONV, CONV),
    "(conv2d (relu (conv2d (mul x s) w none %s)) v none %s)" % (CONV, CONV),
)
law(
    "conv-conv-batch",
    W + " (var y f (N C H W))",
    "(cat (list (conv2d (conv2d x w none %s) v none %s) (conv2d (conv2d y w none %s) v none %s)) 0)"
    % (CONV, CONV, CONV, CONV),
    "(conv2d (conv2d (cat (list x y) 0) w none %s) v none %s)" % (CONV, CONV),
    "(conv2d (conv2d (cat (list y x) 0) w none %s) v none %s)" % (CONV, CONV),
)
law(
    "conv-conv-out",
    W + " (var u f (F D 3 3))",
    "(cat (list (conv2d (conv2d x w none %s) v none %s) (conv2d (conv2d x w none %s) u none %s)) 1)"
    % (CONV, CONV, CONV, CONV),
    "(conv2d (conv2d x w none %s) (cat (list v u) 0) none %s)" % (CONV, CONV),
    "(conv2d (conv2d x w none %s) (cat (list u v) 0) none %s)" % (CONV, CONV),
)
law(
    "pool-pool-conv",
    "(var x f (B C H W)) (var s f ())",
    "(mul (avg_pool2d (avg_pool2d x (list 3 3) %s) (list 3 3) %s) s)" % (CONV, CONV),
    "(avg_pool2d (avg_pool2d (mul x s) (list 3 3) %s) (list 3 3) %s)" % (CONV, CONV),
    "(avg_pool2d (avg_pool2d (add x s) (list 3 3) %s) (list 3 3) %s)" % (CONV, CONV),
)
law(
    "pool-as-depthwise",
    "(var x f (B C H W))",
    "(avg_pool2d x (list 3 3) %s)" % CONV,
    "(conv2d x (divs (ones (list C 1 3 3)) 9) none %s (list 1 1) C)" % CONV,
    "(conv2d x (divs (ones (list C 1 3 3)) 3) none %s (list 1 1) C)" % CONV,
)
law(
    "identity-kernel",
    "(var x f (B C H W))",
    "(conv2d x (constant_pad_nd (reshape (eye C) (list C C 1 1)) (list 1 1 1 1) 0) none %s)" % CONV,
    "x",
    "(relu x)",
)
law(
    "conv-bn-relu",
    (
        "(var x f (B C H W)) (var w f (D C R S)) (var m f (D)) (var g f (D)) (var b f (D)) (var n "
        "f "
        "(D)) (attr eps float)"
    ),
    "(batch_norm (conv2d x w) g b m n false 0.1 eps true)",
    (
        "(conv2d x (mul w (view (mul g (rsqrt (adds n eps))) (list D 1 1 1))) (sub b (mul m (mul g "
        "(rsqrt (adds n eps))))))"
    ),
    "(conv2d x (mul w (view (mul g (rsqrt (adds n eps))) (list D 1 1 1))) (sub b (mul m g)))",
    where="(> eps 0)",
)
law(
    "conv-mul-after",
    "(var x f (B C H W)) (var w f (D C R S)) (var b f (D)) (var s f (D))",
    "(mul (conv2d x w b) (view s (list D 1 1)))",
    "(conv2d x (mul w (view s (list D 1 1 1))) (mul b s))",
    "(conv2d x (mul w (view s (list D 1 1 1))) b)",
)
law(
    "conv-mul-before",
    "(var x f (B C H W)) (var w f (D C R S)) (var s f (C))",
    "(conv2d (mul x (view s (list C 1 1))) w)",
    "(conv2d x (mul w (view s (list 1 C 1 1))))",
    ("(conv2d (add x (view s (list C 1 1))) w)", "(conv2d x (add w (view s (list 1 C 1 1))))"),
)
law(
    "conv-pad-fold",
    "(var x f (B C H W)) (var w f (D C R S)) (attr p int) (attr q int)",
    "(conv2d (constant_pad_nd x (list q q p p)) w)",
    "(conv2d x w none (list 1 1) (list p q))",
    "(conv2d x w none (list 1 1) (list q p))",
    where="(>= p 0) (>= q 0)",
)
law(
    "conv-spatial-select",
    "(var x f (B C H W)) (var w f (D C R S))",
    "(select (conv2d x w) 0 0)",
    "(squeeze (conv2d (slice x 0 0 1) w) 0)",
    "(squeeze (conv2d (slice x 0 1 2) w) 0)",
    where="(>= B 2)",
)
law(
    "conv-group-split",
    "(var x f (B (* 2 C) H W)) (var w f ((* 2 D) C R S))",
    "(slice (conv2d x w none (list 1 1) (list 0 0) (list 1 1) 2) 1 0 D)",
    "(conv2d (slice x 1 0 C) (slice w 0 0 D))",
    "(conv2d (slice x 1 C (* 2 C)) (slice w 0 0 D))",
)
law(
    "parallel-convs",
    "(var x f (B C H W)) (var w f (D C R S)) (var v f (E C R S)) (var a f (D)) (var b f (E))",
    "(cat (list (conv2d x w a) (conv2d x v b)) 1)",
    "(conv2d x (cat (list w v) 0) (cat (list a b) 0))",
    "(conv2d x (cat (list w v) 0) (cat (list b a) 0))",
)

# ---- fusions and foldings of graph optimisers
law(
    "bias-gelu",
    "(var x f (... K)) (var w f (M K)) (var b f (M))",
    "(gelu (add (matmul x (t w)) b))",
    "(gelu (lin x w b))",
    "(add (gelu (lin x w)) b)",
)
law(
    "skip-layer-norm",
    "(var x f (... D)) (var y f (... D)) (var g f (D)) (var b f (D)) (attr eps float)",
    "(layer_norm (add x y) (list D) g b eps)",
    "(add (mul (layer_norm (add y x) (list D) none none eps) g) b)",
    "(add (mul (layer_norm (add x y) (list D) none none eps) b) g)",
    where="(> eps 0)",
)
law(
    "layer-norm-chain",
    "(var x f (... D)) (attr eps float)",
    "(layer_norm x (list D) none none eps)",
    (
        "(div (sub x (mean x (list -1) true)) (sqrt (adds (mean (pow (sub x (mean x (list -1) "
        "true)) "
        "2) (list -1) true) eps)))"
    ),
    (
        "(div (sub x (mean x (list -1) true)) (adds (sqrt (mean (pow (sub x (mean x (list -1) "
        "true)) "
        "2) (list -1) true)) eps))"
    ),
    where="(> eps 0)",
)
law(
    "rms-chain",
    "(var x f (... D)) (var g f (D)) (attr eps float)",
    "(rms_norm x (list D) g eps)",
    "(mul (div x (sqrt (adds (divs (sum (mul x x) (list -1) true) D) eps))) g)",
    "(mul (div x (sqrt (divs (adds (sum (mul x x) (list -1) true) eps) D))) g)",
    where="(> eps 0)",
)
law(
    "embed-layer-norm",
    "(var w f (V D)) (var p f (T D)) (var i i (B T)) (attr eps float)",
    "(layer_norm (add (embedding w i) (unsqueeze p 0)) (list D) none none eps)",
    "(layer_norm (add (index_select p 0 (arange T)) (embedding w i)) (list D) none none eps)",
    "(layer_norm (add (flip p (list 0)) (embedding w i)) (list D) none none eps)",
    where="(> eps 0)",
)
law(
    "quick-gelu",
    "(var x f _) (attr a float)",
    "(mul x (sigmoid (muls x a)))",
    "(divs (silu (muls x a)) a)",
    "(silu (muls x a))",
    where="(!= a 0)",
)
law(
    "gemm-trans",
    "(var a f (K N)) (var b f (M K)) (var c f (N M)) (attr p float) (attr q float)",
    "(addmm c (t a) (t b) :beta q :alpha p)",
    "(add (muls (t (mm b a)) p) (muls c q))",
    "(add (muls (t (mm b a)) q) (muls c p))",
)
law(
    "matmul-add-split",
    "(var x f (B T K)) (var w f (K (* 3 D))) (var b f ((* 3 D)))",
    "(slice (add (matmul x w) b) 2 D (* 2 D))",
    "(add (matmul x (slice w 1 D (* 2 D))) (slice b 0 D (* 2 D)))",
    "(add (matmul x (slice w 1 D (* 2 D))) (slice b 0 0 D))",
)
law(
    "pad-mm",
    "(var a f (N K)) (var b f (K M)) (attr p int) (attr q int) (attr r int)",
    (
        "(slice (slice (mm (constant_pad_nd a (list q 0 0 0)) (constant_pad_nd b (list 0 0 q 0))) "
        "0 0 "
        "N) 1 0 M)"
    ),
    "(mm a b)",
    (
        (
            "(slice (slice (mm (constant_pad_nd a (list 0 q 0 0)) (constant_pad_nd b (list 0 0 q "
            "0))) "
            "0 0 N) 1 0 M)"
        ),
        "(mm a b)",
    ),
    where="(>= q 0)",
)
law(
    "pad-mm-outer",
    "(var a f (N K)) (var b f (K M)) (attr p int) (attr r int)",
    (
        "(slice (slice (mm (constant_pad_nd a (list 0 0 0 p)) (constant_pad_nd b (list 0 r 0 0))) "
        "0 0 "
        "N) 1 0 M)"
    ),
    "(mm a b)",
    (
        "(slice (slice (mm (constant_pad_nd a (list 0 0 0 p)) (constant_pad_nd b (list 0 r 0 0))) "
        "0 p "
        "(+ N p)) 1 0 M)"
    ),
    where="(>= p 0) (>= r 0)",
)
law(
    "split-cat-pieces",
    "(var x f (N (* 3 M)))",
    "(cat (list (getitem (split x M 1) 2) (getitem (split x M 1) 0)) 1)",
    "(cat (list (slice x 1 (* 2 M) (* 3 M)) (slice x 1 0 M)) 1)",
    "(cat (list (slice x 1 0 M) (slice x 1 (* 2 M) (* 3 M))) 1)",
)
law(
    "split-stack",
    "(var x f (N (* 2 M)))",
    "(stack (list (getitem (split x M 1) 0) (getitem (split x M 1) 1)) 1)",
    "(view x (list N 2 M))",
    "(T (view x (list N M 2)) 1 2)",
)
law(
    "split-squeeze-unbind",
    "(var x f (N 3 M))",
    "(squeeze (getitem (split x 1 1) 1) 1)",
    "(select x 1 1)",
    "(select x 1 0)",
)
law(
    "cat-slice-noop",
    "(var x f (N M)) (attr k int)",
    "(cat (list (slice x 1 0 k) (slice x 1 k M)) 1)",
    "x",
    ("(cat (list (slice x 1 0 k) (slice x 1 (+ k 1) M)) 1)", "x", "(>= k 0) (< k M)"),
    where="(>= k 0) (<= k M)",
)
law(
    "slice-scatter-noop",
    "(var x f (N M)) (attr i int) (attr j int)",
    "(slice_scatter x (slice x 1 i j) 1 i j)",
    "x",
    ("(slice_scatter x (slice x 1 0 (- j i)) 1 i j)", "x", "(>= i 1) (< i j) (<= j M)"),
    where="(>= i 0) (<= i j) (<= j M)",
)
law(
    "constant-fold-uniform",
    "(attr n int) (attr v float)",
    "(muls (full (list n) v :dtype float32) 2)",
    "(full (list n) (* v 2) :dtype float32)",
    "(full (list n) (+ v 2) :dtype float32)",
    where="(>= n 1)",
)
law(
    "mul-softmax-scale",
    "(var x f (N M)) (attr s float)",
    "(sub (muls x s) (amax (muls x s) (list 1) true))",
    "(muls (sub x (amax x (list 1) true)) s)",
    (
        "(sub (muls x s) (amax (muls x s) (list 1) true))",
        "(muls (sub x (amax x (list 1) true)) s)",
        "(!= s 0)",
    ),
    where="(> s 0)",
)
law(
    "div-softmax-scale",
    "(var x f (N M)) (attr s float)",
    "(sub (divs x s) (amax (divs x s) (list 1) true))",
    "(divs (sub x (amax x (list 1) true)) s)",
    ("(sub (divs x s) (amax (divs x s) (list 1) true))", "(divs (sub x (amin x (list 1) true)) s)"),
    where="(> s 0)",
)
law(
    "view-of-permute-noop",
    "(var x f (A 1 C))",
    "(permute x (list 1 0 2))",
    "(view x (list 1 A C))",
    ("(permute x (list 2 1 0))", "(view x (list C 1 A))"),
)
law(
    "pointless-cumsum",
    "(attr n int) (attr m int)",
    "(cumsum (full (list n m) 1) 1)",
    "(expand (unsqueeze (arange.start 1 (+ m 1)) 0) (list n m))",
    "(expand (unsqueeze (arange m) 0) (list n m))",
    where="(>= n 1) (>= m 1)",
)
law("same-convert", "(var p b (N))", "(to (to p int64) bool)", "p", "(logical_not p)")
law(
    "bitcast-not",
    "(var p b (N)) (var q b (N))",
    "(bitwise_not (band p q))",
    "(logical_or (logical_not p) (logical_not q))",
    "(logical_and (logical_not p) (logical_not q))",
)
law(
    "scatter-upon-const",
    "(var i i (N)) (attr V int) (attr v float)",
    "(mul (to (one_hot i V) float32) (full (list 1 V) v :dtype float32))",
    "(muls (to (one_hot i V) float32) v)",
    "(adds (to (one_hot i V) float32) v)",
    where="(>= V 1)",
)
law(
    "baddbmm-addmm",
    "(var a f (1 N K)) (var b f (1 K M)) (var c f (M))",
    "(squeeze (baddbmm c a b) 0)",
    "(addmm c (squeeze a 0) (squeeze b 0))",
    "(mm (squeeze a 0) (squeeze b 0))",
)
law(
    "mm-as-sum",
    "(var a f (N K)) (var b f (K M))",
    "(mm a b)",
    "(sum (mul (unsqueeze a 2) (unsqueeze b 0)) (list 1))",
    ("(mm a b)", "(sum (mul (unsqueeze a 1) (unsqueeze b 0)) (list 1))"),
)
law(
    "mv-as-mm",
    "(var a f (N K)) (var v f (K))",
    "(mv a v)",
    "(squeeze (mm a (unsqueeze v 1)) 1)",
    "(sum (mul (t a) (unsqueeze v 1)) (list 1))",
)
law(
    "binary-cat-split",
    "(var x f (N A)) (var y f (N B)) (var z f (N (+ A B)))",
    "(mul (cat (list x y) 1) z)",
    "(cat (list (mul x (slice z 1 0 A)) (mul y (slice z 1 A (+ A B)))) 1)",
    "(cat (list (mul x (slice z 1 B (+ A B))) (mul y (slice z 1 0 B))) 1)",
)
law(
    "group-linears",
    "(var x f (N K)) (var y f (N K)) (var w f (M K)) (var v f (M K))",
    "(stack (list (lin x w) (lin y v)) 0)",
    "(bmm (stack (list x y) 0) (T (stack (list w v) 0) 1 2))",
    "(bmm (stack (list y x) 0) (T (stack (list w v) 0) 1 2))",
)
law(
    "combine-parallel-bmm",
    "(var x f (B N K)) (var w f (B K M)) (var v f (B K P))",
    "(cat (list (bmm x w) (bmm x v)) 2)",
    "(bmm x (cat (list w v) 2))",
    "(bmm x (cat (list v w) 2))",
)
law(
    "fold-scale-axis",
    "(var x f (N K)) (var w f (M K)) (var s f (M)) (var b f (M))",
    "(mul (lin x w b) s)",
    "(lin x (mul w (unsqueeze s 1)) (mul b s))",
    "(lin x (mul w (unsqueeze s 1)) b)",
)
law(
    "simplify-full-argwhere",
    "(attr n int)",
    "(sum.dim_IntList (arange n) (list 0))",
    "(sum.dim_IntList (flip (arange n) (list 0)) (list 0))",
    "(sum.dim_IntList (arange (+ n 1)) (list 0))",
    where="(>= n 1)",
)
law(
    "broadcast-in-dim-reduce",
    "(var v f (M)) (attr n int)",
    "(mean (expand (unsqueeze v 0) (list n M)) (list 0))",
    "v",
    "(muls v n)",
    where="(>= n 1)",
)
law(
    "dot-of-concat",
    "(var a f (N K)) (var c f (N L)) (var b f ((+ K L) M))",
    "(mm (cat (list a c) 1) b)",
    "(add (mm a (slice b 0 0 K)) (mm c (slice b 0 K (+ K L))))",
    "(add (mm a (slice b 0 L (+ K L))) (mm c (slice b 0 0 L)))",
)
law(
    "dot-strength",
    "(var x f (N)) (var y f (N))",
    "(sum (mul x y) (list 0))",
    "(squeeze (squeeze (mm (unsqueeze x 0) (unsqueeze y 1)) 0) 0)",
    "(sum (mul x (flip y (list 0))) (list 0))",
)
law(
    "pad-of-slice",
    "(var x f (N)) (attr k int)",
    "(constant_pad_nd (slice x 0 0 k) (list 0 (- N k)) 0)",
    "(mul x (to (lts (arange N) k) float32))",
    "(mul x (to (les (arange N) k) float32))",
    where="(>= k 0) (< k N)",
)
law(
    "iota-concat",
    "(attr n int) (attr m int)",
    "(cat (list (arange n) (adds (arange m) n)) 0)",
    "(arange (+ n m))",
    "(cat (list (arange m) (adds (arange n) n)) 0)",
    where="(>= n 1) (>= m 1)",
)
law(
    "reverse-reverse-axes",
    "(var x f (A B))",
    "(flip (flip x (list 0)) (list 1))",
    "(flip x (list 0 1))",
    "(flip x (list 0))",
)
law(
    "select-of-pad",
    "(var x f (N)) (attr l int)",
    "(select (constant_pad_nd x (list l 0) 0) 0 l)",
    "(select x 0 0)",
    ("(select (constant_pad_nd x (list l 0) 0) 0 (+ l 1))", "(select x 0 0)", "(>= l 0) (>= N 2)"),
    where="(>= l 0)",
)
law(
    "while-loop-count",
    "(attr n int)",
    "(sum.dim_IntList (ones (list n) :dtype int64) (list 0))",
    "(full (list) n)",
    "(full (list) (+ n 1))",
    where="(>= n 1)",
)
law(
    "transpose-reshape-transpose",
    "(var x f (A B C))",
    "(T (view (T x 0 1) (list B (* A C))) 0 1)",
    "(view (permute x (list 0 2 1)) (list (* A C) B))",
    "(T (view x (list (* A B) C)) 0 1)",
)
law(
    "depth-to-space",
    "(var x f (B (* 4 C) H W))",
    "(pixel_shuffle x 2)",
    "(reshape (permute (view x (list B C 2 2 H W)) (list 0 1 4 2 5 3)) (list B C (* 2 H) (* 2 W)))",
    "(reshape (permute (view x (list B C 2 2 H W)) (list 0 1 4 3 5 2)) (list B C (* 2 H) (* 2 W)))",
)
law(
    "tile-expand",
    "(var x f (N M)) (attr r int)",
    "(repeat x (list r 1))",
    "(reshape (expand (unsqueeze x 0) (list r N M)) (list (* r N) M))",
    "(reshape (expand (unsqueeze x 1) (list N r M)) (list (* r N) M))",
    where="(>= r 1)",
)

# ---- relational algebra and index notation
law(
    "rel-join-push",
    "(var a f (N K)) (var b f (K M)) (var v f (M))",
    "(sum (mul (mm a b) v) (list 1))",
    "(mv a (mv b v))",
    "(mv a (mul (sum b (list 1)) (select v 0 0)))",
)
law(
    "rel-sum-sum",
    "(var a f (N K)) (var b f (K M))",
    "(sum (sum (mm a b) (list 1)) (list 0))",
    "(dot (sum a (list 0)) (sum b (list 1)))",
    "(mul (sum (sum a (list 1)) (list 0)) (sum (sum b (list 1)) (list 0)))",
)
law(
    "rel-loss",
    "(var x f (N M)) (var u f (N)) (var v f (M))",
    "(sum.dim_IntList (square (sub x (outer u v))) (list 0 1))",
    (
        "(add (sub (sum.dim_IntList (square x) (list 0 1)) (muls (dot u (mv x v)) 2)) (mul (dot u "
        "u) "
        "(dot v v)))"
    ),
    (
        "(sub (sub (sum.dim_IntList (square x) (list 0 1)) (muls (dot u (mv x v)) 2)) (mul (dot u "
        "u) "
        "(dot v v)))"
    ),
)
law(
    "rel-diag",
    "(var a f (N N)) (var d f (N))",
    "(diagonal (mm a (diag d)))",
    "(mul (diagonal a) d)",
    "(diagonal (mm (diag d) (diag d)))",
)
law(
    "rel-row-sum-outer",
    "(var u f (N)) (var v f (M))",
    "(sum (outer u v) (list 1))",
    "(mul u (sum v (list 0)))",
    "(mul u (sum u (list 0)))",
)
law(
    "ein-bilinear",
    "(var x f (B N)) (var w f (N M)) (var y f (B M))",
    '(einsum "bn,nm,bm->b" (list x w y))',
    "(sum (mul (mm x w) y) (list 1))",
    ('(einsum "bn,nm,bm->b" (list x w y))', "(sum (mul (mm x w) (flip y (list 1))) (list 1))"),
)

# ---- attention, positions, normalisation
H = "(var q f (B H T D)) (var k f (B H S D)) (var v f (B H S D))"
law(
    "sdpa-scale-both",
    H + " (attr s float)",
    "(sdpa (muls q s) (muls k s) v :scale 1.0)",
    "(sdpa q k v :scale (* s s))",
    "(sdpa q k v :scale s)",
)
law(
    "sdpa-mask-add",
    H + " (var m f (T S))",
    "(sdpa q k v m :scale 0.5)",
    "(matmul (softmax (add (muls (matmul q (T k -1 -2)) 0.5) m) -1) v)",
    "(matmul (softmax (muls (add (matmul q (T k -1 -2)) m) 0.5) -1) v)",
)
law(
    "sdpa-query-shift-mask",
    H + " (var m f (B H T 1)) ",
    "(sdpa q k v m)",
    "(sdpa q k v)",
    ("(sdpa q k v (adds m 1))", "(sdpa (adds q 1) k v)"),
)
law(
    "heads-as-batch",
    H,
    "(sdpa q k v)",
    (
        "(view (sdpa (view q (list (* B H) T D)) (view k (list (* B H) S D)) (view v (list (* B "
        "H) S "
        "D))) (list B H T D))"
    ),
    (
        "(view (sdpa (view q (list (* B H) T D)) (view v (list (* B H) S D)) (view k (list (* B "
        "H) S "
        "D))) (list B H T D))"
    ),
)
law(
    "mqa-expand",
    "(var q f (B H T D)) (var k f (B 1 S D)) (var v f (B 1 S D))",
    "(sdpa q (expand k (list B H S D)) (expand v (list B H S D)))",
    "(view (sdpa (view q (list B 1 (* H T) D)) k v) (list B H T D))",
    "(T (view (sdpa (view (T q 1 2) (list B 1 (* T H) D)) k v) (list B H T D)) 1 1)",
)
law(
    "gqa-repeat",
    "(var q f (B (* G K) T D)) (var k f (B K S D)) (var v f (B K S D))",
    "(sdpa q k v none 0.0 false :enable_gqa true)",
    "(sdpa q (repint k G 1) (repint v G 1))",
    "(sdpa q (repeat k (list 1 G 1 1)) (repeat v (list 1 G 1 1)))",
    where="(>= G 1)",
)
law(
    "kv-cache-split",
    "(var q f (T D)) (var k f (S D)) (var l f (R D)) (var v f (S D)) (var u f (R D))",
    "(mm (softmax (mm q (t (cat (list k l) 0))) 1) (cat (list v u) 0))",
    (
        "(div (add (mm (exp (mm q (t k))) v) (mm (exp (mm q (t l))) u)) (add (sum (exp (mm q (t "
        "k))) "
        "(list 1) true) (sum (exp (mm q (t l))) (list 1) true)))"
    ),
    "(add (mm (softmax (mm q (t k)) 1) v) (mm (softmax (mm q (t l)) 1) u))",
)
law(
    "online-softmax-merge",
    "(var a f (N M)) (var b f (N K)) (var v f (M D)) (var u f (K D))",
    "(mm (softmax (cat (list a b) 1) 1) (cat (list v u) 0))",
    (
        "(add (mul (mm (softmax a 1) v) (unsqueeze (sigmoid (sub (lse a (list 1)) (lse b (list "
        "1)))) "
        "1)) (mul (mm (softmax b 1) u) (unsqueeze (sigmoid (sub (lse b (list 1)) (lse a (list "
        "1)))) "
        "1)))"
    ),
    (
        "(add (mul (mm (softmax a 1) v) (unsqueeze (sigmoid (sub (lse b (list 1)) (lse a (list "
        "1)))) "
        "1)) (mul (mm (softmax b 1) u) (unsqueeze (sigmoid (sub (lse a (list 1)) (lse b (list "
        "1)))) "
        "1)))"
    ),
)
law(
    "lse-three",
    "(var a f (N A)) (var b f (N B)) (var c f (N C))",
    "(lse (cat (list a b c) 1) (list 1))",
    "(logaddexp (logaddexp (lse a (list 1)) (lse b (list 1))) (lse c (list 1)))",
    "(logaddexp (logaddexp (lse a (list 1)) (lse b (list 1))) (lse a (list 1)))",
)
law(
    "masked-softmax-fill",
    "(var x f (N M)) (var p b (N M))",
    "(mul (softmax (mfill x p -inf) 1) (to p float32))",
    "(zeros_like x)",
    "(softmax (mfill x p -inf) 1)",
)
law(
    "log-softmax-nll",
    "(var x f (N C)) (var i i (N 1))",
    "(neg (gather (logsoftmax x 1) 1 i))",
    "(sub (lse x (list 1) true) (gather x 1 i))",
    "(sub (gather x 1 i) (lse x (list 1) true))",
)
law(
    "rope-halves",
    "(var x f (T (* 2 D))) (var c f (T D)) (var s f (T D))",
    (
        "(add (mul x (cat (list c c) 1)) (mul (cat (list (neg (slice x 1 D (* 2 D))) (slice x 1 0 "
        "D)) "
        "1) (cat (list s s) 1)))"
    ),
    (
        "(cat (list (sub (mul (slice x 1 0 D) c) (mul (slice x 1 D (* 2 D)) s)) (add (mul (slice "
        "x 1 "
        "D (* 2 D)) c) (mul (slice x 1 0 D) s))) 1)"
    ),
    (
        "(cat (list (add (mul (slice x 1 0 D) c) (mul (slice x 1 D (* 2 D)) s)) (sub (mul (slice "
        "x 1 "
        "D (* 2 D)) c) (mul (slice x 1 0 D) s))) 1)"
    ),
)
law(
    "rope-interleaved",
    "(var x f (T D 2)) (var a f (T D)) ",
    (
        "(stack (list (sub (mul (select x 2 0) (cos a)) (mul (select x 2 1) (sin a))) (add (mul "
        "(select x 2 0) (sin a)) (mul (select x 2 1) (cos a)))) 2)"
    ),
    (
        '(einsum "tdi,tdij->tdj" (list x (stack (list (stack (list (cos a) (sin a)) 2) (stack '
        "(list "
        "(neg (sin a)) (cos a)) 2)) 2)))"
    ),
    (
        '(einsum "tdi,tdij->tdj" (list x (stack (list (stack (list (cos a) (neg (sin a))) 2) '
        "(stack "
        "(list (sin a) (cos a)) 2)) 2)))"
    ),
)
law(
    "rope-compose",
    "(var x f (T D)) (var y f (T D)) (var a f (T D)) (var b f (T D))",
    (
        "(sub (mul (sub (mul x (cos a)) (mul y (sin a))) (cos b)) (mul (add (mul x (sin a)) (mul y "
        "(cos a))) (sin b)))"
    ),
    "(sub (mul x (cos (add a b))) (mul y (sin (add a b))))",
    "(sub (mul x (cos (sub a b))) (mul y (sin (sub a b))))",
)
law(
    "alibi-relative",
    "(var s f (H 1 1)) (var x f (H T S))",
    (
        "(softmax (add x (mul s (unsqueeze (to (sub (unsqueeze (arange S) 0) (unsqueeze (arange T) "
        "1)) float64) 0))) 2)"
    ),
    "(softmax (add x (mul s (view (to (arange S) float64) (list 1 1 S)))) 2)",
    "(softmax (add x (mul s (view (to (arange T) float64) (list 1 T 1)))) 2)",
)
law(
    "welford-merge",
    "(var x f (N A)) (var y f (N B))",
    "(mean (cat (list x y) 1) (list 1))",
    "(divs (add (muls (mean x (list 1)) A) (muls (mean y (list 1)) B)) (+ A B))",
    "(muls (add (mean x (list 1)) (mean y (list 1))) 0.5)",
)
law(
    "var-merge",
    "(var x f (N A)) (var y f (N B))",
    "(muls (var (cat (list x y) 1) (list 1) :correction 0) (+ A B))",
    (
        "(add (add (muls (var x (list 1) :correction 0) A) (muls (var y (list 1) :correction 0) "
        "B)) "
        "(divs (muls (square (sub (mean x (list 1)) (mean y (list 1)))) (* A B)) (+ A B)))"
    ),
    "(add (muls (var x (list 1) :correction 0) A) (muls (var y (list 1) :correction 0) B))",
)
law(
    "var-one-pass",
    "(var x f (N M))",
    "(var x (list 1) :correction 0)",
    "(sub (mean (mul x x) (list 1)) (square (mean x (list 1))))",
    "(sub (square (mean x (list 1))) (mean (mul x x) (list 1)))",
)
law(
    "group-norm-layer-norm",
    "(var x f (B C H W)) (attr eps float)",
    "(group_norm x 1 none none eps)",
    "(layer_norm x (list C H W) none none eps)",
    "(layer_norm x (list H W) none none eps)",
    where="(> eps 0)",
)
law(
    "batch-norm-affine",
    "(var x f (B C)) (var g f (C)) (var b f (C)) (var m f (C)) (var n f (C)) (attr eps float)",
    "(batch_norm x g b m n false 0.1 eps true)",
    "(add (mul x (div g (sqrt (adds n eps)))) (sub b (div (mul m g) (sqrt (adds n eps)))))",
    "(add (mul x (div g (sqrt (adds n eps)))) (sub b (div m (sqrt (adds n eps)))))",
    where="(> eps 0)",
)
law(
    "rms-scale",
    "(var x f (N D)) (attr s float)",
    "(rms_norm (muls x s) (list D) none 0.0)",
    "(rms_norm x (list D) none 0.0)",
    ("(rms_norm (muls x s) (list D) none 0.0)", "(rms_norm x (list D) none 0.0)", "(!= s 0)"),
    where="(> s 0)",
)
law(
    "layer-norm-rms",
    "(var x f (N D)) (attr eps float)",
    "(layer_norm x (list D) none none eps)",
    "(rms_norm (sub x (mean x (list 1) true)) (list D) none eps)",
    "(rms_norm x (list D) none eps)",
    where="(> eps 0)",
)

# ---- parallel layers
law(
    "mlp-column-row",
    "(var x f (N K)) (var a f (M K)) (var b f (M K)) (var c f (L M)) (var d f (L M))",
    "(add (lin (relu (lin x a)) c) (lin (relu (lin x b)) d))",
    "(lin (relu (lin x (cat (list a b) 0))) (cat (list c d) 1))",
    "(lin (relu (lin x (cat (list a b) 0))) (cat (list d c) 1))",
)
law(
    "gated-shards",
    (
        "(var x f (N K)) (var a f (A K)) (var b f (B K)) (var c f (A K)) (var d f (B K)) (var u f "
        "(L "
        "A)) (var w f (L B))"
    ),
    "(add (lin (mul (silu (lin x a)) (lin x c)) u) (lin (mul (silu (lin x b)) (lin x d)) w))",
    "(lin (mul (silu (lin x (cat (list a b) 0))) (lin x (cat (list c d) 0))) (cat (list u w) 1))",
    "(lin (mul (silu (lin x (cat (list a b) 0))) (lin x (cat (list d c) 0))) (cat (list u w) 1))",
)
law(
    "vocab-parallel-embedding",
    "(var w f (V D)) (var u f (V D)) (var i i (N))",
    (
        "(add (where.ScalarOther (unsqueeze (lts i V) 1) (embedding w (clamp_max i (- V 1))) 0) "
        "(where.ScalarOther (unsqueeze (ges i V) 1) (embedding u (clamp_min (subs i V) 0)) 0))"
    ),
    "(embedding (cat (list w u) 0) i)",
    "(embedding (cat (list u w) 0) i)",
)
law(
    "vocab-parallel-lse",
    "(var h f (N D)) (var a f (V D)) (var b f (U D))",
    "(lse (lin h (cat (list a b) 0)) (list 1))",
    "(log (add (sum (exp (lin h a)) (list 1)) (sum (exp (lin h b)) (list 1))))",
    "(add (lse (lin h a) (list 1)) (lse (lin h b) (list 1)))",
)
law(
    "sequence-shards-norm",
    "(var x f (A D)) (var y f (B D)) (attr eps float)",
    "(rms_norm (cat (list x y) 0) (list D) none eps)",
    "(cat (list (rms_norm x (list D) none eps) (rms_norm y (list D) none eps)) 0)",
    "(cat (list (rms_norm y (list D) none eps) (rms_norm x (list D) none eps)) 0)",
    where="(> eps 0)",
)
law(
    "data-parallel-mean",
    "(var x f (N D)) (var y f (N D))",
    "(mean (cat (list x y) 0) (list 0))",
    "(muls (add (mean x (list 0)) (mean y (list 0))) 0.5)",
    "(add (mean x (list 0)) (mean y (list 0)))",
)

# ---- quantisation
law(
    "dequant-linear",
    "(var i i (N K)) (var w f (M K)) (attr s float) (attr z int)",
    "(lin (muls (to (subs i z) float64) s) w)",
    "(muls (sub (lin (to i float64) w) (muls (sum w (list 1)) z)) s)",
    "(sub (muls (lin (to i float64) w) s) (muls (sum w (list 1)) z))",
)
law(
    "dequant-pair",
    "(var i i (N K)) (var j i (M K)) (attr s float) (attr r float)",
    "(lin (muls (to i float64) s) (muls (to j float64) r))",
    "(muls (lin (to i float64) (to j float64)) (* s r))",
    "(muls (lin (to i float64) (to j float64)) (+ s r))",
)
law(
    "quant-shift-zero",
    "(var x f (N)) (attr z int)",
    "(clamp (adds (round x) z) 0 255)",
    "(adds (clamp (round x) (- 0 z) (- 255 z)) z)",
    "(adds (clamp (round x) z (- 255 z)) z)",
)
law(
    "per-channel-scale",
    "(var i i (M K)) (var s f (M 1)) (var x f (N K))",
    "(lin x (mul (to i float32) s))",
    "(mul (lin x (to i float32)) (t s))",
    ("(lin x (mul (to i float32) s))", "(mul (lin x (to i float32)) (select s 0 0))", "(>= M 2)"),
)
law(
    "round-requant",
    "(var x f (N))",
    "(round (adds (muls x 2) 4))",
    "(adds (round (muls x 2)) 4)",
    "(adds (round (muls x 2)) 3)",
)
law(
    "relu-quant",
    "(var i i (N)) (attr s float)",
    "(relu (muls (to i float32) s))",
    "(muls (to (clamp_min i 0) float32) s)",
    ("(relu (muls (to i float32) s))", "(muls (to (clamp_min i 0) float32) s)", "(!= s 0)"),
    where="(> s 0)",
)
law(
    "fake-quant-grid",
    "(var i i (N)) (attr s float)",
    "(muls (round (divs (muls (to i float32) s) s)) s)",
    "(muls (to i float32) s)",
    "(to i float32)",
    where="(> s 0)",
)

if __name__ == "__main__":
    print(
        (
            "; Written by make_passes.py: %d rules. A name that begins with no- is of one that "
            "does "
            "not hold."
        )
        % len(make_laws.out)
    )
    print("\n".join(make_laws.out))
