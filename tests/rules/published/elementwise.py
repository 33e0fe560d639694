"""Published rules: elementwise operators (XLA, Inductor, Halide), integers and quantisation, masks
and logic."""

from notation import law

# ---- elementwise: XLA, Inductor, Halide
law("min-max-absorb", "x y", "(max2 x (min2 x y))", "x", "y")
law(
    "max-distributes",
    "X Y Z",
    "(max2 (min2 X Y) Z)",
    "(min2 (max2 X Z) (max2 Y Z))",
    "(min2 (max2 X Z) Y)",
)
law("max-sub", "X Y Z", "(sub (max2 X Y) Z)", "(max2 (sub X Z) (sub Y Z))", "(max2 (sub X Z) Y)")
law(
    "sub-max",
    "X Y Z",
    "(sub Z (max2 X Y))",
    "(min2 (sub Z X) (sub Z Y))",
    "(max2 (sub Z X) (sub Z Y))",
)
law("max-minus-min", "X Y", "(sub (max2 X Y) (min2 X Y))", "(abs (sub X Y))", "(sub X Y)")
law(
    "max-half",
    "X Y",
    "(max2 X Y)",
    "(mul (add (add X Y) (abs (sub X Y))) 0.5)",
    "(mul (sub (add X Y) (abs (sub X Y))) 0.5)",
)
law("max-add-const", "X", "(max2 (adds X 3) X)", "(adds X 3)", "X")
law("min-add-const", "X Y", "(min2 (min2 X Y) (adds X 1))", "(min2 X Y)", "(min2 (adds X 1) Y)")
law("clamp-of-max", "(var X f _)", "(clamp (relu X) -1 5)", "(clamp X 0 5)", "(clamp X -1 5)")
law(
    "clamp-shift",
    "(var X f _) (attr a float) (attr b float) (attr c float)",
    "(adds (clamp X a b) c)",
    "(clamp (adds X c) (+ a c) (+ b c))",
    "(clamp (adds X c) a b)",
)
law(
    "clamp-scale",
    "(var X f _) (attr a float) (attr b float)",
    "(muls (clamp X a b) 2)",
    "(clamp (muls X 2) (* 2 a) (* 2 b))",
    "(clamp (muls X 2) a b)",
)
law(
    "clamp-negate",
    "(var X f _) (attr a float) (attr b float)",
    "(neg (clamp X a b))",
    "(clamp (neg X) (- 0 b) (- 0 a))",
    "(clamp (neg X) (- 0 a) (- 0 b))",
    where="(<= a b)",
)
law(
    "clamp-where",
    "(var X f _) (attr a float) (attr b float)",
    "(clamp X a b)",
    "(where (lts X a) (full_like X a) (where (gts X b) (full_like X b) X))",
    "(where (gts X a) (full_like X a) X)",
    where="(<= a b)",
)
law(
    "clamp-idempotent",
    "(var X f _) (attr a float) (attr b float)",
    "(clamp (clamp X a b) a b)",
    "(clamp X a b)",
    "X",
)
law("clamp-disjoint", "X", "(clamp (clamp X 3 4) 0 1)", "(full_like X 1)", "(full_like X 3)")
law("relu-neg-relu", "X", "(sub (relu X) (relu (neg X)))", "X", "(abs X)")
law("relu-min", "X", "(neg (relu (neg X)))", "(clamp_max X 0)", "(clamp_min X 0)")
law(
    "relu-mul-mask",
    "X",
    "(relu X)",
    "(mul X (to (gts X 0) float64))",
    "(mul X (to (lts X 0) float64))",
)
law("relu-plus-const", "X", "(relu (adds (relu X) 1))", "(adds (relu X) 1)", "(relu (adds X 1))")
law(
    "leaky-max",
    "(var X f _) (attr s float)",
    "(leaky_relu X s)",
    "(max2 X (muls X s))",
    "(min2 X (muls X s))",
    where="(> s 0) (< s 1)",
)
law(
    "leaky-two-relus",
    "(var X f _) (attr s float)",
    "(leaky_relu X s)",
    "(sub (relu X) (muls (relu (neg X)) s))",
    "(add (relu X) (muls (relu (neg X)) s))",
)
law(
    "leaky-compose",
    "X",
    "(leaky_relu (leaky_relu X 0.5) 0.25)",
    "(leaky_relu X 0.125)",
    "(leaky_relu X 0.75)",
)
law(
    "prelu-like",
    "(var x f (N M)) (var v f (M))",
    "(where (gts x 0) x (mul v x))",
    "(add (relu x) (mul v (clamp_max x 0)))",
    "(add (relu x) (mul v x))",
)
law("abs-max-neg", "X", "(abs X)", "(max2 X (neg X))", "(max2 X (mul X X))")
law("abs-sq", "X", "(mul (abs X) (abs X))", "(mul X X)", "(mul (abs X) X)")
law("abs-abs-diff", "X Y", "(abs (sub X Y))", "(abs (sub Y X))", "(sub (abs X) (abs Y))")
law(
    "abs-scale",
    "(var X f _) (attr s float)",
    "(abs (muls X s))",
    "(muls (abs X) s)",
    "(muls X s)",
    where="(>= s 0)",
)
law("sign-mul", "X Y", "(sign (mul X Y))", "(mul (sign X) (sign Y))", "(sign X)")
law("sign-sign", "X", "(sign (sign X))", "(sign X)", "X")
law("sign-neg", "X", "(sign (neg X))", "(neg (sign X))", "(sign X)")
law("square-neg", "X", "(square (neg X))", "(square X)", "(neg (square X))")
law(
    "square-diff",
    "X Y",
    "(square (sub X Y))",
    "(add (sub (square X) (muls (mul X Y) 2)) (square Y))",
    "(sub (square X) (square Y))",
)
law("pow4", "X", "(pow X 4)", "(square (square X))", "(mul (square X) X)")
law("pow-sum", "(var X f _)", "(mul (pow X 3) (pow X 2))", "(pow X 5)", "(pow X 6)")
law("pow-odd-neg", "X", "(pow (neg X) 3)", "(neg (pow X 3))", "(pow X 3)")
law("pow-product", "X Y", "(pow (mul X Y) 3)", "(mul (pow X 3) (pow Y 3))", "(mul (pow X 3) Y)")
law(
    "cube-sum",
    "X Y",
    "(pow (add X Y) 3)",
    "(add (add (pow X 3) (muls (mul (mul X X) Y) 3)) (add (muls (mul X (mul Y Y)) 3) (pow Y 3)))",
    "(add (pow X 3) (pow Y 3))",
)
law("sqrt-sqrt", "X", "(sqrt (sqrt X))", "(pow X 0.25)", "(sqrt X)")
law("sqrt-div", "X Y", "(div X (sqrt X))", "(sqrt X)", "(rsqrt X)")
law("rsqrt-mul-self", "X", "(mul X (rsqrt X))", "(sqrt X)", "X")
law("rsqrt-recip", "X", "(reciprocal (rsqrt X))", "(sqrt X)", "(rsqrt X)")
law("sqrt-recip", "X", "(sqrt (reciprocal X))", "(rsqrt X)", "(reciprocal X)")
law("div-const", "X", "(divs X 8)", "(muls X 0.125)", "(muls X 0.12)")
law("div-of-div", "X Y Z", "(div X (div Y Z))", "(div (mul X Z) Y)", "(div X (mul Y Z))")
law(
    "div-common",
    "X Y Z",
    "(div (add X Y) Z)",
    "(add (mul X (reciprocal Z)) (div Y Z))",
    "(add X (div Y Z))",
)
law("div-neg", "X Y", "(div (neg X) Y)", "(div X (neg Y))", "(div (neg X) (neg Y))")
law(
    "recip-mul",
    "X Y",
    "(mul (reciprocal X) (reciprocal Y))",
    "(reciprocal (mul X Y))",
    "(reciprocal (add X Y))",
)
law(
    "add-chain",
    "X Y Z",
    "(add (add X 1.5) (add Y 2.5))",
    "(adds (add X Y) 4)",
    "(adds (add X Y) 3.5)",
)
law("sub-chain", "X Y Z", "(sub X (sub Y Z))", "(add (sub X Y) Z)", "(sub (sub X Y) Z)")
law("mul-chain", "X", "(muls (muls X 3) 0.5)", "(muls X 1.5)", "(muls X 3.5)")
law("add-self-mul", "X Y", "(add (mul X Y) X)", "(mul X (adds Y 1))", "(mul X Y)")
law("factor", "X Y Z", "(add (mul X Z) (mul Y Z))", "(mul (add X Y) Z)", "(mul (mul X Y) Z)")
law(
    "factor-two",
    "X Y",
    "(sub (mul X X) (mul Y Y))",
    "(mul (add X Y) (sub X Y))",
    "(mul (sub X Y) (sub X Y))",
)
law("rsub-written", "X Y", "(rsub.Tensor X Y :alpha 2)", "(sub Y (muls X 2))", "(sub X (muls Y 2))")
law("addcmul-chain", "X Y Z", "(addcmul X Y Z :value -1)", "(sub X (mul Y Z))", "(add X (mul Y Z))")
law("lerp-half", "X Y", "(lerps X Y 0.5)", "(muls (add X Y) 0.5)", "(muls (sub X Y) 0.5)")
law("lerp-ends", "x y", "(lerps x y 1)", "y", "x")
law(
    "ema",
    "(var X f _) (var Y f _) (attr m float)",
    "(lerps X Y m)",
    "(add (muls X (- 1 m)) (muls Y m))",
    "(add (muls X m) (muls Y (- 1 m)))",
)
law("exp-sub", "X Y", "(exp (sub X Y))", "(div (exp X) (exp Y))", "(div (exp Y) (exp X))")
law("exp-square", "X", "(square (exp X))", "(exp (muls X 2))", "(exp (square X))")
law("exp-sqrt", "X", "(sqrt (exp X))", "(exp (muls X 0.5))", "(exp (sqrt X))")
law("exp-recip", "X", "(reciprocal (exp (neg X)))", "(exp X)", "(exp (neg X))")
law("exp-max", "X Y", "(max2 (exp X) (exp Y))", "(exp (max2 X Y))", "(exp (min2 X Y))")
law("log-recip", "X", "(log (reciprocal X))", "(neg (log X))", "(reciprocal (log X))")
law("log-sqrt", "X", "(log (sqrt X))", "(muls (log X) 0.5)", "(sqrt (log X))")
law("log-base", "X", "(log2 X)", "(div (log10 X) (log10 (full_like X 2)))", "(log10 X)")
law("logaddexp-comm", "X Y", "(logaddexp X Y)", "(logaddexp Y X)", "(add X Y)")
law(
    "logaddexp-shift",
    "X Y Z",
    "(logaddexp (add X Z) (add Y Z))",
    "(add (logaddexp X Y) Z)",
    "(logaddexp X Y)",
)
law(
    "logaddexp-stable",
    "X Y",
    "(logaddexp X Y)",
    "(add (max2 X Y) (log1p (exp (neg (abs (sub X Y))))))",
    "(add (min2 X Y) (log1p (exp (neg (abs (sub X Y))))))",
)
law("logaddexp-same", "X", "(exp (logaddexp X X))", "(muls (exp X) 2)", "(exp X)")
law("sigmoid-sum", "X", "(add (sigmoid X) (sigmoid (neg X)))", "(ones_like X)", "(zeros_like X)")
law("sigmoid-logit", "X", "(log (div (sigmoid X) (rsub.Scalar (sigmoid X) 1)))", "X", "(neg X)")
law("sigmoid-of-log", "X", "(sigmoid (log X))", "(div X (adds X 1))", "(div X (adds X 2))")
law("silu-odd-part", "X", "(sub (silu X) (silu (neg X)))", "X", "(silu X)")
law(
    "silu-even",
    "X",
    "(sub (silu X) X)",
    "(neg (mul X (sigmoid (neg X))))",
    "(mul X (sigmoid (neg X)))",
)
law(
    "tanh-double",
    "X",
    "(tanh (muls X 2))",
    "(div (muls (tanh X) 2) (adds (square (tanh X)) 1))",
    "(muls (tanh X) 2)",
)
law(
    "tanh-square",
    "X",
    "(rsub.Scalar (square (tanh X)) 1)",
    "(reciprocal (square (cosh X)))",
    "(reciprocal (cosh X))",
)
law(
    "cosh-sinh", "X", "(sub (square (cosh X)) (square (sinh X)))", "(ones_like X)", "(zeros_like X)"
)
law("sinh-cosh-exp", "X", "(add (sinh X) (cosh X))", "(exp X)", "(exp (neg X))")
law("sinh-odd", "X", "(sinh (neg X))", "(neg (sinh X))", "(sinh X)")
law("gelu-even-part", "X", "(sub (gelu X) (gelu (neg X)))", "X", "(gelu X)")
law("gelu-reflect", "X", "(gelu (neg X))", "(sub (gelu X) X)", "(neg (gelu X))")
law(
    "gelu-tanh-reflect",
    "X",
    '(gelu (neg X) :approximate "tanh")',
    '(sub (gelu X :approximate "tanh") X)',
    "(sub (gelu X) X)",
)
law("softplus-diff", "X", "(sub (log1p (exp X)) (log1p (exp (neg X))))", "X", "(neg X)")
law(
    "softplus-beta",
    "X",
    "(log1p (exp (muls X 2)))",
    "(logaddexp (muls X 2) (zeros_like X))",
    "(muls (log1p (exp X)) 2)",
)
law("logsigmoid-diff", "X", "(sub (log_sigmoid X) (log_sigmoid (neg X)))", "X", "(neg X)")
law("erf-erfc", "X", "(add (erf X) (erfc X))", "(ones_like X)", "(erf X)")
law("erfc-neg", "X", "(erfc (neg X))", "(rsub.Scalar (erfc X) 2)", "(rsub.Scalar (erfc X) 1)")
law(
    "sin-shift-add",
    "X Y",
    "(sin (add X Y))",
    "(add (mul (sin X) (cos Y)) (mul (cos X) (sin Y)))",
    "(sub (mul (sin X) (cos Y)) (mul (cos X) (sin Y)))",
)
law(
    "cos-diff",
    "X Y",
    "(cos (sub X Y))",
    "(add (mul (cos X) (cos Y)) (mul (sin X) (sin Y)))",
    "(sub (mul (cos X) (cos Y)) (mul (sin X) (sin Y)))",
)
law(
    "sin-square-half",
    "X",
    "(square (sin X))",
    "(muls (rsub.Scalar (cos (muls X 2)) 1) 0.5)",
    "(muls (cos (muls X 2)) 0.5)",
)
law(
    "hardswish-clamp",
    "X",
    "(hardswish X)",
    "(mul X (divs (clamp (adds X 3) 0 6) 6))",
    "(mul X (divs (clamp (adds X 3) 0 6) 3))",
)
law(
    "hardsigmoid-reflect",
    "X",
    "(add (hardsigmoid X) (hardsigmoid (neg X)))",
    "(ones_like X)",
    "(hardsigmoid X)",
)
law("relu6-clamp", "X", "(relu6 (adds X 3))", "(clamp (adds X 3) 0 6)", "(clamp X 0 6)")
law("threshold-relu", "X", "(threshold X 0 0)", "(relu X)", "(neg (relu X))")
law("elu-relu", "X", "(add (relu X) (clamp_max (expm1 X) 0))", "(elu X)", "(relu X)")
law("celu-elu", "X", "(celu X 1)", "(elu X 1)", "(elu X 2)")
law(
    "swiglu",
    "(var x f (N K)) (var w f (M K)) (var v f (M K))",
    "(mul (silu (lin x w)) (lin x v))",
    (
        "(mul (silu (slice (lin x (cat (list w v) 0)) 1 0 M)) (slice (lin x (cat (list w v) 0)) 1 "
        "M (* 2 M)))"
    ),
    (
        "(mul (silu (slice (lin x (cat (list w v) 0)) 1 M (* 2 M))) (slice (lin x (cat (list w v) "
        "0)) 1 0 M))"
    ),
)
law(
    "glu-swap",
    "(var x f (N M)) (var y f (N M))",
    "(glu (cat (list x y) 1) 1)",
    "(mul x (sigmoid y))",
    "(mul y (sigmoid x))",
)

# ---- integers, rounding, quantisation
law(
    "floor-add-int",
    "(var X f _) (attr k int)",
    "(floor (adds X k))",
    "(adds (floor X) k)",
    "(floor X)",
)
law("floor-neg-ceil", "X", "(floor (neg X))", "(neg (ceil X))", "(neg (floor X))")
law("ceil-of-floor", "X", "(ceil (floor X))", "(floor X)", "(ceil X)")
law("round-of-floor", "X", "(round (floor X))", "(floor X)", "(round X)")
law(
    "trunc-parts",
    "X",
    "(trunc X)",
    "(where (lts X 0) (ceil X) (floor X))",
    "(where (lts X 0) (floor X) (ceil X))",
)
law("frac-range", "X", "(add (trunc X) (frac X))", "X", "(trunc X)")
law("floor-frac", "X", "(floor (sub X (floor X)))", "(zeros_like X)", "(floor X)")
law(
    "quant-dequant",
    "(var X f _) (attr s float)",
    "(muls (round (muls (round X) 1)) s)",
    "(muls (round X) s)",
    "(muls X s)",
)
law(
    "quant-clamp",
    "X",
    "(clamp (round X) -128 127)",
    "(round (clamp X -128 127))",
    "(round (clamp X -128.6 127.4))",
    "(clamp X -128 127)",
)
law("quant-floor-clamp", "X", "(floor (clamp X 0 15))", "(clamp (floor X) 0 15)", "(clamp X 0 15)")
law(
    "quant-zero-point",
    "(var X f _) (attr z int)",
    "(subs (clamp (adds (round X) z) 0 255) z)",
    "(clamp (round X) (- 0 z) (- 255 z))",
    "(clamp (round X) 0 255)",
)
law(
    "quant-mm-zero",
    "(var A f (N K)) (var B f (K M)) (attr z float)",
    "(mm (subs A z) B)",
    "(sub (mm A B) (muls (sum B (list 0)) z))",
    "(subs (mm A B) z)",
    "(sub (mm A B) (sum B (list 0)))",
)
law(
    "quant-mm-scales",
    "(var A f (N K)) (var B f (K M)) (var u f (N 1)) (var v f (M))",
    "(mm (mul A u) (mul B v))",
    "(mul (mul (mm A B) u) v)",
    "(mul (mm A B) u)",
)
law(
    "quant-group",
    "(var x f (N (* G K))) (var w f (O (* G K)))",
    "(lin x w)",
    (
        "(sum (bmm (T (view x (list N G K)) 0 1) (permute (view w (list O G K)) (list 1 2 0))) "
        "(list 0))"
    ),
    (
        "(sum (bmm (T (view x (list N G K)) 0 1) (permute (view w (list O G K)) (list 1 2 0))) "
        "(list 1))"
    ),
)
law("int-mod-mod", "I", "(rems (rems I 12) 4)", "(rems I 4)", "(rems I 12)")
law(
    "int-div-div",
    "I",
    "(floor_divide.Scalar (floor_divide.Scalar I 3) 4)",
    "(floor_divide.Scalar I 12)",
    "(floor_divide.Scalar I 7)",
)
law("int-mod-add", "I", "(rems (adds I 8) 8)", "(rems I 8)", "(rems (adds I 1) 8)")
law(
    "int-div-shift",
    "I",
    "(floor_divide.Scalar (adds I 6) 3)",
    "(adds (floor_divide.Scalar I 3) 2)",
    "(adds (floor_divide.Scalar I 3) 6)",
)
law("int-mul-div", "I", "(floor_divide.Scalar (muls I 6) 3)", "(muls I 2)", "(muls I 3)")
law("int-mul-mod", "I", "(rems (muls I 6) 3)", "(zeros_like I)", "I")
law("int-mul-mod-scale", "I", "(rems (muls I 4) 12)", "(muls (rems I 3) 4)", "(rems I 3)")
law("int-cmp-succ", "I J", "(lt I J)", "(le (adds I 1) J)", "(le I J)")
law("int-cmp-double", "I J", "(lt (muls I 2) (muls J 2))", "(lt I J)", "(le I J)")
law("int-cmp-double-odd", "I J", "(lt (muls I 2) (adds (muls J 2) 1))", "(le I J)", "(lt I J)")
law("int-max-succ", "I J", "(max2 (adds I 1) (adds J 1))", "(adds (max2 I J) 1)", "(max2 I J)")
law("int-eq-parts", "I J", "(logical_and (le I J) (le J I))", "(eq I J)", "(le I J)")
law("int-neg-mod", "I", "(rems (neg (rems I 4)) 4)", "(rems (neg I) 4)", "(rems I 4)")

# ---- masks, where, logic
law(
    "where-fold-add",
    "P X Y Z",
    "(add (where P X Y) Z)",
    "(where P (add X Z) (add Y Z))",
    "(where P (add X Z) Y)",
)
law(
    "where-unary",
    "P X Y",
    "(exp (where P X Y))",
    "(where P (exp X) (exp Y))",
    "(where P (exp X) Y)",
)
law("where-both", "p x y", "(mul (where p x y) (where p y x))", "(mul x y)", "(mul x x)")
law(
    "where-both-open",
    "P X Y",
    "(mul (where P X Y) (where P Y X))",
    "(mul (where P X X) Y)",
    "(mul X Y)",
)
law(
    "where-nest-and",
    "P Q X Y",
    "(where P (where Q X Y) Y)",
    "(where (logical_and P Q) X Y)",
    "(where (logical_or P Q) X Y)",
)
law(
    "where-nest-or",
    "P Q X Y",
    "(where P X (where Q X Y))",
    "(where (logical_or P Q) X Y)",
    "(where (logical_and P Q) X Y)",
)
law("where-same-cond", "p x y z", "(where p (where p x y) z)", "(where p x z)", "(where p y z)")
law("where-cmp-max", "X Y", "(where (ge X Y) X Y)", "(max2 X Y)", "(min2 X Y)")
law("where-eq", "x y", "(where (eq x y) x y)", "y", "x")
law(
    "where-sum",
    "(var p b (N M)) (var x f (N M))",
    "(add (where p x (zeros_like x)) (where (logical_not p) x (zeros_like x)))",
    "x",
    "(zeros_like x)",
)
law(
    "where-reduce",
    "(var p b (N 1)) (var x f (N M)) (var y f (N M))",
    "(sum (where p x y) (list 1))",
    "(where (squeeze p 1) (sum x (list 1)) (sum y (list 1)))",
    "(sum x (list 1))",
)
law(
    "where-mm-rows",
    "(var p b (N 1)) (var A f (N K)) (var D f (N K)) (var B f (K M))",
    "(mm (where p A D) B)",
    "(where p (mm A B) (mm D B))",
    "(where p (mm D B) (mm A B))",
)
law(
    "mask-add-inf",
    "(var p b (N M)) (var x f (N M))",
    "(exp (mfill x p -inf))",
    "(mul (exp x) (to (logical_not p) float64))",
    "(mul (exp x) (to p float64))",
)
law(
    "mask-causal-arange",
    "(var x f (N N))",
    "(where (le (arange N) (unsqueeze (arange N) 1)) x (zeros_like x))",
    "(tril x)",
    "(triu x)",
    "(tril x -1)",
)
law(
    "mask-window",
    "(var x f (N N))",
    "(triu (tril x) -2)",
    (
        "(where (logical_and (le (arange N) (unsqueeze (arange N) 1)) (le (unsqueeze (arange N) 1) "
        "(adds (arange N) 2))) x (zeros_like x))"
    ),
    (
        "(where (logical_and (le (arange N) (unsqueeze (arange N) 1)) (le (unsqueeze (arange N) 1) "
        "(adds (arange N) 3))) x (zeros_like x))"
    ),
)
law(
    "logic-distribute",
    "(var P b _) (var Q b _) (var R b _)",
    "(logical_and P (logical_or Q R))",
    "(logical_or (logical_and P Q) (logical_and P R))",
    "(logical_or (logical_and P Q) R)",
)
law(
    "logic-xor-assoc",
    "(var P b _) (var Q b _) (var R b _)",
    "(logical_xor (logical_xor P Q) R)",
    "(logical_xor P (logical_xor Q R))",
    "(logical_or P (logical_xor Q R))",
)
law("logic-xor-self", "p q", "(logical_xor (logical_xor p q) q)", "p", "q")
law("logic-absorb", "p q", "(logical_or p (logical_and p q))", "p", "q")
law("logic-implies", "P Q", "(logical_or (logical_not P) Q)", "(le P Q)", "(lt P Q)")
law("logic-eq", "P Q", "(eq P Q)", "(logical_not (logical_xor P Q))", "(logical_xor P Q)")
law(
    "bool-mul",
    "(var P b _) (var X f _)",
    "(mul X P)",
    "(where P X (zeros_like X))",
    "(where P (zeros_like X) X)",
)
law(
    "bool-sum-count",
    "(var p b (N M))",
    "(sum p (list 1))",
    "(sum (to p int64) (list 1))",
    "(sum (to (logical_not p) int64) (list 1))",
)
law(
    "any-or",
    "(var p b (N M)) (var q b (N M))",
    "(any (logical_or p q) 1)",
    "(logical_or (any p 1) (any q 1))",
    "(logical_and (any p 1) (any q 1))",
)
law(
    "all-not-any",
    "(var p b (N M))",
    "(all p 1)",
    "(logical_not (any (logical_not p) 1))",
    "(any p 1)",
)
law("cmp-neg", "X Y", "(lt (neg X) (neg Y))", "(gt X Y)", "(lt X Y)")
law("cmp-shift-two", "x y z", "(le (add x z) (add y z))", "(le x y)", "(lt x y)")
law("cmp-scale", "X Y", "(lt (muls X 3) (muls Y 3))", "(lt X Y)", "(gt X Y)")
law(
    "cmp-max",
    "X Y Z",
    "(lt (max2 X Y) Z)",
    "(logical_and (lt X Z) (lt Y Z))",
    "(logical_or (lt X Z) (lt Y Z))",
)
law(
    "cmp-min",
    "X Y Z",
    "(lt (min2 X Y) Z)",
    "(logical_or (lt X Z) (lt Y Z))",
    "(logical_and (lt X Z) (lt Y Z))",
)
law("cmp-abs", "X", "(lts (abs X) 1)", "(logical_and (lts X 1) (gts X -1))", "(lts X 1)")
law("cmp-square", "X Y", "(ges (square X) 0)", "(ones_like X :dtype bool)", "(gts (square X) 0)")
law("cmp-exp", "X Y", "(lt (exp X) (exp Y))", "(lt X Y)", "(le X Y)")
law("cmp-relu", "X", "(gts (relu X) 0)", "(gts X 0)", "(ges X 0)")
