"""Passes: fusions and foldings of graph optimisers, relational algebra, index notation."""

from notation import law

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
        "true)) 2) (list -1) true) eps)))"
    ),
    (
        "(div (sub x (mean x (list -1) true)) (adds (sqrt (mean (pow (sub x (mean x (list -1) "
        "true)) 2) (list -1) true)) eps))"
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
        "0 0 N) 1 0 M)"
    ),
    "(mm a b)",
    (
        (
            "(slice (slice (mm (constant_pad_nd a (list 0 q 0 0)) (constant_pad_nd b (list 0 0 q "
            "0))) 0 0 N) 1 0 M)"
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
        "0 0 N) 1 0 M)"
    ),
    "(mm a b)",
    (
        "(slice (slice (mm (constant_pad_nd a (list 0 0 0 p)) (constant_pad_nd b (list 0 r 0 0))) "
        "0 p (+ N p)) 1 0 M)"
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
        "u) (dot v v)))"
    ),
    (
        "(sub (sub (sum.dim_IntList (square x) (list 0 1)) (muls (dot u (mv x v)) 2)) (mul (dot u "
        "u) (dot v v)))"
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
