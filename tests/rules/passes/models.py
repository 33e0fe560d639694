"""Passes: attention, positions, normalisation, parallel layers, quantisation."""

from notation import law

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
        "(view (sdpa (view q (list (* B H) T D)) (view k (list (* B H) S D)) (view v (list (* B H) "
        "S D))) (list B H T D))"
    ),
    (
        "(view (sdpa (view q (list (* B H) T D)) (view v (list (* B H) S D)) (view k (list (* B H) "
        "S D))) (list B H T D))"
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
        "k))) (list 1) true) (sum (exp (mm q (t l))) (list 1) true)))"
    ),
    "(add (mm (softmax (mm q (t k)) 1) v) (mm (softmax (mm q (t l)) 1) u))",
)
law(
    "online-softmax-merge",
    "(var a f (N M)) (var b f (N K)) (var v f (M D)) (var u f (K D))",
    "(mm (softmax (cat (list a b) 1) 1) (cat (list v u) 0))",
    (
        "(add (mul (mm (softmax a 1) v) (unsqueeze (sigmoid (sub (lse a (list 1)) (lse b (list "
        "1)))) 1)) (mul (mm (softmax b 1) u) (unsqueeze (sigmoid (sub (lse b (list 1)) (lse a "
        "(list 1)))) 1)))"
    ),
    (
        "(add (mul (mm (softmax a 1) v) (unsqueeze (sigmoid (sub (lse b (list 1)) (lse a (list "
        "1)))) 1)) (mul (mm (softmax b 1) u) (unsqueeze (sigmoid (sub (lse a (list 1)) (lse b "
        "(list 1)))) 1)))"
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
        "D)) 1) (cat (list s s) 1)))"
    ),
    (
        "(cat (list (sub (mul (slice x 1 0 D) c) (mul (slice x 1 D (* 2 D)) s)) (add (mul (slice x "
        "1 D (* 2 D)) c) (mul (slice x 1 0 D) s))) 1)"
    ),
    (
        "(cat (list (add (mul (slice x 1 0 D) c) (mul (slice x 1 D (* 2 D)) s)) (sub (mul (slice x "
        "1 D (* 2 D)) c) (mul (slice x 1 0 D) s))) 1)"
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
        "B)) (divs (muls (square (sub (mean x (list 1)) (mean y (list 1)))) (* A B)) (+ A B)))"
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
        "(L A)) (var w f (L B))"
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
