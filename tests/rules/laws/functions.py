"""Laws: exponentials, logarithms, activations; comparisons and choices."""

from notation import law

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
