"""Laws: sums, means and extremes of rows; norms."""

from notation import VARS, law

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
        "(div (exp (sub x (amax x (list 1) true))) (sum (exp (sub x (amax x (list 1) true))) (list "
        "1) true))"
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
        ":keepdim true) 1e-05))) v)"
    ),
    "(layer_norm x (list M) v none 1e-06)",
    (
        "(mul (mul (sub x (mean x (list 1) true)) (rsqrt (add (var x (list 1) :correction 1 "
        ":keepdim true) 1e-05))) v)"
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
