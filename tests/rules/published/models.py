"""Published rules: attention and rotary positions, norms, adapters and experts."""

from notation import law

# ---- attention, rotary, groups
H = "(var q f (B H T D)) (var k f (B H S D)) (var v f (B H S E))"
law(
    "attn-scale-split",
    H + " (attr s float)",
    "(sdpa q k v :scale (* s s))",
    "(sdpa (muls q s) (muls k s) v :scale 1.0)",
    "(sdpa (muls q s) k v :scale 1.0)",
    where="(> s 0)",
)
law(
    "attn-permute-keys",
    H,
    "(sdpa q (flip k (list 2)) (flip v (list 2)))",
    "(sdpa q k v)",
    "(sdpa q (flip k (list 2)) v)",
)
law(
    "attn-permute-queries",
    H,
    "(sdpa (flip q (list 2)) k v)",
    "(flip (sdpa q k v) (list 2))",
    "(sdpa q k v)",
)
law(
    "attn-shift-keys",
    H + " (var c f (B H 1 D))",
    "(sdpa q (add k c) v)",
    "(sdpa q k v)",
    "(sdpa (add q c) k v)",
)
law(
    "attn-shift-values",
    H + " (var c f (E))",
    "(sdpa q k (add v c))",
    "(add (sdpa q k v) c)",
    "(sdpa q k v)",
)
law(
    "attn-value-proj",
    H + " (var W f (E F))",
    "(matmul (sdpa q k v) W)",
    "(sdpa q k (matmul v W))",
    "(sdpa q (matmul v W) v)",
)
law(
    "attn-one-key",
    "(var q f (B H T D)) (var k f (B H 1 D)) (var v f (B H 1 E))",
    "(sdpa q k v)",
    "(expand v (list B H T E))",
    "(expand k (list B H T D))",
)
law(
    "attn-causal-bias",
    "(var q f (B H T D)) (var k f (B H T D)) (var v f (B H T E))",
    "(sdpa q k v none 0.0 true)",
    (
        "(sdpa q k v (where (le (arange T) (unsqueeze (arange T) 1)) (zeros (list T T) :dtype "
        "float64) (full (list T T) -inf :dtype float64)))"
    ),
    (
        "(sdpa q k v (where (lt (arange T) (unsqueeze (arange T) 1)) (zeros (list T T) :dtype "
        "float64) (full (list T T) -inf :dtype float64)))"
    ),
)
law(
    "attn-causal-first",
    "(var q f (B H T D)) (var k f (B H T D)) (var v f (B H T E))",
    "(select (sdpa q k v none 0.0 true) 2 0)",
    "(select v 2 0)",
    "(select v 2 -1)",
)
law(
    "attn-causal-last",
    "(var q f (B H T D)) (var k f (B H T D)) (var v f (B H T E))",
    "(slice (sdpa q k v none 0.0 true) 2 (- T 1) T)",
    "(sdpa (slice q 2 (- T 1) T) k v)",
    "(sdpa (slice q 2 0 1) k v)",
)
law(
    "attn-prefix",
    "(var q f (B H T D)) (var k f (B H T D)) (var v f (B H T E)) (attr n int)",
    "(slice (sdpa q k v none 0.0 true) 2 0 n)",
    "(sdpa (slice q 2 0 n) (slice k 2 0 n) (slice v 2 0 n) none 0.0 true)",
    "(sdpa (slice q 2 0 n) (slice k 2 0 n) (slice v 2 0 n))",
    where="(>= n 1) (<= n T)",
)
law(
    "attn-two-blocks",
    "(var q f (T D)) (var k f (S D)) (var l f (R D)) (var v f (S E)) (var w f (R E))",
    "(mm (softmax (mm q (T (cat (list k l) 0) 0 1)) 1) (cat (list v w) 0))",
    (
        "(div (add (mm (exp (mm q (T k 0 1))) v) (mm (exp (mm q (T l 0 1))) w)) (add (sum (exp (mm "
        "q (T k 0 1))) (list 1) true) (sum (exp (mm q (T l 0 1))) (list 1) true)))"
    ),
    (
        "(div (add (mm (exp (mm q (T k 0 1))) v) (mm (exp (mm q (T l 0 1))) w)) (sum (exp (mm q (T "
        "k 0 1))) (list 1) true))"
    ),
)
law(
    "attn-online",
    "(var q f (T D)) (var k f (S D)) (var v f (S E)) (var m f (T 1))",
    "(mm (softmax (mm q (T k 0 1)) 1) v)",
    (
        "(div (mm (exp (sub (mm q (T k 0 1)) m)) v) (sum (exp (sub (mm q (T k 0 1)) m)) (list 1) "
        "true))"
    ),
    "(div (mm (exp (sub (mm q (T k 0 1)) m)) v) (sum (exp (mm q (T k 0 1))) (list 1) true))",
)
law(
    "attn-sink",
    "(var s f (N S)) (var z f (N 1)) (var v f (S E))",
    "(mm (slice (softmax (cat (list s z) 1) 1) 1 0 S) v)",
    "(div (mm (exp s) v) (add (sum (exp s) (list 1) true) (exp z)))",
    "(mm (softmax s 1) v)",
)
law(
    "mqa",
    "(var q f (B H T D)) (var k f (B 1 S D)) (var v f (B 1 S E))",
    "(sdpa q k v)",
    "(sdpa q (expand k (list B H S D)) (expand v (list B H S E)))",
    "(sdpa q (expand k (list B H S D)) (neg (expand v (list B H S E))))",
)
law(
    "gqa-fold",
    "(var q f (B (* G R) T D)) (var k f (B G S D)) (var v f (B G S E))",
    "(sdpa q k v :enable_gqa true)",
    "(reshape (sdpa (reshape q (list B G (* R T) D)) k v) (list B (* G R) T E))",
    "(reshape (sdpa (reshape q (list B G (* R T) D)) k v) (list B (* R G) E T))",
)
law(
    "softcap",
    "(var s f (N M)) (attr c float)",
    "(muls (tanh (divs s c)) c)",
    "(muls (subs (muls (sigmoid (muls (divs s c) 2)) 2) 1) c)",
    "(muls (subs (muls (sigmoid (divs s c)) 2) 1) c)",
    where="(> c 0)",
)
R = "(var x f (T (* 2 D))) (var c f (T D)) (var s f (T D))"


def rot(x, c="c", s="s"):
    return (
        "(cat (list (sub (mul (slice %s 1 0 D) %s) (mul (slice %s 1 D (* 2 D)) %s)) (add (mul "
        "(slice %s 1 D (* 2 D)) %s) (mul (slice %s 1 0 D) %s))) 1)"
    ) % (x, c, x, s, x, c, x, s)


law(
    "rope-rotate-half",
    R,
    rot("x"),
    (
        "(add (mul x (cat (list c c) 1)) (mul (cat (list (neg (slice x 1 D (* 2 D))) (slice x 1 0 "
        "D)) 1) (cat (list s s) 1)))"
    ),
    (
        "(add (mul x (cat (list c c) 1)) (mul (cat (list (slice x 1 D (* 2 D)) (neg (slice x 1 0 "
        "D))) 1) (cat (list s s) 1)))"
    ),
)
law(
    "rope-sign-sin",
    R,
    rot("x", "c", "(neg s)"),
    (
        "(sub (mul x (cat (list c c) 1)) (mul (cat (list (neg (slice x 1 D (* 2 D))) (slice x 1 0 "
        "D)) 1) (cat (list s s) 1)))"
    ),
    rot("x"),
)
law(
    "rope-norm",
    "(var x f (T)) (var y f (T)) (var t f (T))",
    (
        "(add (square (sub (mul x (cos t)) (mul y (sin t)))) (square (add (mul x (sin t)) (mul y "
        "(cos t)))))"
    ),
    "(add (square x) (square y))",
    "(sub (square x) (square y))",
)
law(
    "rope-relative",
    "(var a f (N)) (var b f (N)) (var c f (N)) (var d f (N)) (var m f (N)) (var n f (N))",
    (
        "(add (mul (sub (mul a (cos m)) (mul b (sin m))) (sub (mul c (cos n)) (mul d (sin n)))) "
        "(mul (add (mul a (sin m)) (mul b (cos m))) (add (mul c (sin n)) (mul d (cos n)))))"
    ),
    (
        "(add (mul (add (mul a c) (mul b d)) (cos (sub m n))) (mul (sub (mul a d) (mul b c)) (sin "
        "(sub m n))))"
    ),
    (
        "(add (mul (add (mul a c) (mul b d)) (cos (sub m n))) (mul (sub (mul b c) (mul a d)) (sin "
        "(sub m n))))"
    ),
)

# ---- norms
N = "(var x f (T K)) (var w f (K)) (var b f (K))"
law(
    "ln-no-weight",
    N,
    "(layer_norm x (list K) w b 1e-05)",
    "(add (mul (layer_norm x (list K) none none 1e-05) w) b)",
    "(mul (add (layer_norm x (list K) none none 1e-05) b) w)",
)
law(
    "ln-into-linear",
    N + " (var W f (O K)) (var c f (O))",
    "(lin (layer_norm x (list K) w b 1e-05) W c)",
    "(lin (layer_norm x (list K) none none 1e-05) (mul W w) (add c (mv W b)))",
    "(lin (layer_norm x (list K) none none 1e-05) (mul W w) (add c (mv (mul W w) b)))",
)
law(
    "ln-var-mean",
    N,
    "(layer_norm x (list K) none none 1e-05)",
    (
        "(div (sub x (mean x (list 1) true)) (sqrt (adds (sub (mean (square x) (list 1) true) "
        "(square (mean x (list 1) true))) 1e-05)))"
    ),
    "(div (sub x (mean x (list 1) true)) (sqrt (adds (mean (square x) (list 1) true) 1e-05)))",
)
law(
    "ln-negate",
    N,
    "(layer_norm (neg x) (list K) none none 1e-05)",
    "(neg (layer_norm x (list K) none none 1e-05))",
    "(layer_norm x (list K) none none 1e-05)",
)
law(
    "ln-scale-eps",
    "(var x f (T K)) (attr a float)",
    "(layer_norm (muls x a) (list K) none none 0.01)",
    (
        "(muls (div (sub x (mean x (list 1) true)) (sqrt (adds (muls (var x (list 1) :correction 0 "
        ":keepdim true) (* a a)) 0.01))) a)"
    ),
    "(layer_norm x (list K) none none 0.01)",
    where="(> a 0)",
)
law(
    "ln-mean-zero",
    "(var x f (T K))",
    "(mean (layer_norm x (list K) none none 1e-05) (list 1))",
    "(zeros (list T) :dtype float64)",
    "(ones (list T) :dtype float64)",
)
law(
    "rms-of-negated",
    N,
    "(rms_norm (neg x) (list K) w 1e-06)",
    "(neg (rms_norm x (list K) w 1e-06))",
    "(rms_norm x (list K) w 1e-06)",
)
law(
    "rms-plus-one",
    N,
    "(rms_norm x (list K) (adds w 1) 1e-06)",
    "(add (rms_norm x (list K) w 1e-06) (rms_norm x (list K) none 1e-06))",
    "(adds (rms_norm x (list K) w 1e-06) 1)",
)
law(
    "rms-l2",
    "(var x f (T K))",
    "(rms_norm x (list K) none 1e-06)",
    "(mul x (rsqrt (adds (divs (sum (square x) (list 1) true) K) 1e-06)))",
    "(mul x (rsqrt (adds (sum (square x) (list 1) true) 1e-06)))",
)
law(
    "rms-into-linear",
    N + " (var W f (O K))",
    "(lin (rms_norm x (list K) w 1e-06) W)",
    "(mul (lin x (mul W w)) (rsqrt (adds (mean (square x) (list 1) true) 1e-06)))",
    "(mul (lin x W) (rsqrt (adds (mean (square x) (list 1) true) 1e-06)))",
)
law(
    "rms-flip",
    N,
    "(rms_norm (flip x (list 1)) (list K) (flip w (list 0)) 1e-06)",
    "(flip (rms_norm x (list K) w 1e-06) (list 1))",
    "(flip (rms_norm x (list K) (flip w (list 0)) 1e-06) (list 1))",
)
law(
    "ln-center",
    "(var x f (T K))",
    "(layer_norm (sub x (mean x (list 1) true)) (list K) none none 1e-05)",
    "(layer_norm x (list K) none none 1e-05)",
    "(layer_norm (sub x (mean x (list 0) true)) (list K) none none 1e-05)",
)
law(
    "ln-rms-of-centered",
    "(var x f (T K)) (var w f (K))",
    "(layer_norm x (list K) w none 1e-05)",
    "(rms_norm (sub x (mean x (list 1) true)) (list K) w 1e-05)",
    "(rms_norm x (list K) w 1e-05)",
)
law(
    "gn-as-ln",
    "(var x f (N C T))",
    "(group_norm x 1 none none 1e-05)",
    "(view (layer_norm (view x (list N (* C T))) (list (* C T)) none none 1e-05) (list N C T))",
    "(layer_norm x (list T) none none 1e-05)",
)
law(
    "gn-instance",
    "(var x f (N C T))",
    "(group_norm x C none none 1e-05)",
    "(layer_norm x (list T) none none 1e-05)",
    "(group_norm x 1 none none 1e-05)",
)
law(
    "qk-norm",
    "(var x f (T H D)) (var w f (D))",
    "(T (rms_norm x (list D) w 1e-06) 0 1)",
    "(rms_norm (T x 0 1) (list D) w 1e-06)",
    "(T (rms_norm x (list D) none 1e-06) 0 1)",
)
law(
    "l2-normalise",
    "(var x f (T K)) (var s f (T 1))",
    "(div (mul x s) (normd (mul x s) 2 (list 1) true))",
    "(mul (div x (normd x 2 (list 1) true)) (sign s))",
    "(div x (normd x 2 (list 1) true))",
)
law(
    "cosine",
    "(var x f (T K)) (var y f (T K))",
    "(sum (mul (div x (normd x 2 (list 1) true)) (div y (normd y 2 (list 1) true))) (list 1))",
    "(div (sum (mul x y) (list 1)) (mul (normd x 2 (list 1)) (normd y 2 (list 1))))",
    "(div (sum (mul x y) (list 1)) (normd x 2 (list 1)))",
)

# ---- adapters, tensor parallelism, experts
L = "(var x f (T K)) (var w f (O K)) (var a f (R K)) (var b f (O R))"
law(
    "lora-merge",
    L + " (attr s float)",
    "(add (lin x w) (muls (lin (lin x a) b) s))",
    "(lin x (add w (muls (mm b a) s)))",
    "(lin x (add w (mm b a)))",
)
law(
    "lora-two",
    L + " (var c f (P K)) (var d f (O P))",
    "(add (lin (lin x a) b) (lin (lin x c) d))",
    "(lin (lin x (cat (list a c) 0)) (cat (list b d) 1))",
    "(lin (lin x (cat (list c a) 0)) (cat (list b d) 1))",
)
law(
    "dora",
    "(var w f (O K)) (var m f (O 1)) (var x f (T K))",
    "(lin x (mul w m))",
    "(mul (lin x w) (squeeze m 1))",
    "(mul (lin x w) (square (squeeze m 1)))",
)
law(
    "ia3",
    "(var x f (T K)) (var w f (O K)) (var g f (O))",
    "(mul (lin x w) g)",
    "(lin x (mul w (unsqueeze g 1)))",
    "(lin x (mul w (unsqueeze g 0)))",
)
law(
    "column-parallel",
    "(var x f (T K)) (var w f ((* 2 O) K))",
    "(lin x w)",
    "(cat (list (lin x (getitem (chunk w 2 0) 0)) (lin x (getitem (chunk w 2 0) 1))) 1)",
    "(cat (list (lin x (getitem (chunk w 2 0) 1)) (lin x (getitem (chunk w 2 0) 0))) 1)",
)
law(
    "row-parallel",
    "(var x f (T (* 2 K))) (var w f (O (* 2 K)))",
    "(lin x w)",
    (
        "(add (lin (getitem (chunk x 2 1) 0) (getitem (chunk w 2 1) 0)) (lin (getitem (chunk x 2 "
        "1) 1) (getitem (chunk w 2 1) 1)))"
    ),
    (
        "(add (lin (getitem (chunk x 2 1) 0) (getitem (chunk w 2 1) 1)) (lin (getitem (chunk x 2 "
        "1) 1) (getitem (chunk w 2 1) 0)))"
    ),
)
law(
    "row-parallel-4",
    "(var x f (T (* 4 K))) (var w f (O (* 4 K)))",
    "(lin x w)",
    (
        "(add (add (lin (slice x 1 0 K) (slice w 1 0 K)) (lin (slice x 1 K (* 2 K)) (slice w 1 K "
        "(* 2 K)))) (add (lin (slice x 1 (* 2 K) (* 3 K)) (slice w 1 (* 2 K) (* 3 K))) (lin (slice "
        "x 1 (* 3 K) (* 4 K)) (slice w 1 (* 3 K) (* 4 K)))))"
    ),
    "(add (lin (slice x 1 0 K) (slice w 1 0 K)) (lin (slice x 1 K (* 2 K)) (slice w 1 K (* 2 K))))",
)
law(
    "sequence-parallel",
    "(var x f (T K)) (var y f (S K)) (var w f (K))",
    "(rms_norm (cat (list x y) 0) (list K) w 1e-06)",
    "(cat (list (rms_norm x (list K) w 1e-06) (rms_norm y (list K) w 1e-06)) 0)",
    "(cat (list (rms_norm y (list K) w 1e-06) (rms_norm x (list K) w 1e-06)) 0)",
)
law(
    "swiglu-shards",
    (
        "(var x f (T K)) (var a f (I K)) (var b f (J K)) (var c f (I K)) (var d f (J K)) (var e f "
        "(O I)) (var g f (O J))"
    ),
    "(lin (mul (silu (lin x (cat (list a b) 0))) (lin x (cat (list c d) 0))) (cat (list e g) 1))",
    "(add (lin (mul (silu (lin x a)) (lin x c)) e) (lin (mul (silu (lin x b)) (lin x d)) g))",
    "(add (lin (mul (silu (lin x a)) (lin x d)) e) (lin (mul (silu (lin x b)) (lin x c)) g))",
)
law(
    "vocab-parallel-softmax",
    "(var x f (T K)) (var w f (V K)) (var u f (U K))",
    "(softmax (lin x (cat (list w u) 0)) 1)",
    (
        "(div (exp (cat (list (lin x w) (lin x u)) 1)) (add (sum (exp (lin x w)) (list 1) true) "
        "(sum (exp (lin x u)) (list 1) true)))"
    ),
    "(div (exp (cat (list (lin x w) (lin x u)) 1)) (sum (exp (lin x w)) (list 1) true))",
)
law(
    "moe-weighted",
    "(var x f (T K)) (var w f (O K)) (var u f (O K)) (var g f (T 1)) (var h f (T 1))",
    "(add (mul g (lin x w)) (mul h (lin x u)))",
    "(sum (mul (stack (list (lin x w) (lin x u)) 1) (unsqueeze (cat (list g h) 1) 2)) (list 1))",
    "(sum (mul (stack (list (lin x w) (lin x u)) 1) (unsqueeze (cat (list h g) 1) 2)) (list 1))",
)
law(
    "moe-one-hot",
    "(var w f (E O K)) (var i i (T)) (var x f (T K))",
    "(squeeze (bmm (index_select w 0 i) (unsqueeze x 2)) 2)",
    (
        '(sum (mul (unsqueeze (to (one_hot i E) float64) 2) (einsum "eok,tk->teo" (list w x))) '
        "(list 1))"
    ),
    '(sum (einsum "eok,tk->teo" (list w x)) (list 1))',
)
