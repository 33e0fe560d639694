#!/usr/bin/env python3
"""Write published.rules: rules in the manner of published sets, written from what they are known to
rewrite.

    tests/rules/make_published.py > tests/rules/published.rules

Graph optimisers' substitutions (TASO, PET, Tensat), simplifiers of compilers (TVM, XLA, MLIR, ONNX
Runtime, Inductor, Halide), e-graph papers, and what inference engines do to models (attention in
blocks, rotary positions, grouped heads, adapters, tensor parallelism, quantisation). Beside each at
least one near miss, named no-...; notation: make_laws.py."""

import make_laws
from make_laws import law

make_laws.out.clear()
make_laws.names.clear()

A2 = "(var A f (N K)) (var B f (K M)) (var C f (K M))"
IMG = "(var x f (N C H W)) (var w f (O C 3 3)) (var v f (O C 3 3))"
IMGS = "(var x f (N C H W)) (var y f (N C H W)) (var w f (O C 3 3))"
VEC = "(var x f (N)) (var y f (N))"

# ---- TASO, PET, Tensat: products
law(
    "mm-scalar",
    A2 + " (var s f ())",
    "(mm (mul A s) B)",
    "(mul (mm A B) s)",
    "(mul (mm A B) (mul s s))",
)
law("mm-scalar-right", A2 + " (attr s float)", "(mm A (muls B s))", "(muls (mm A B) s)", "(mm A B)")
law(
    "mm-cat-both",
    "(var A f (N K)) (var D f (L K)) (var B f (K M)) (var C f (K P))",
    "(mm (cat (list A D) 0) (cat (list B C) 1))",
    "(cat (list (cat (list (mm A B) (mm A C)) 1) (cat (list (mm D B) (mm D C)) 1)) 0)",
    "(cat (list (cat (list (mm A B) (mm D C)) 1) (cat (list (mm D B) (mm A C)) 1)) 0)",
)
law(
    "mm-three-inner",
    (
        "(var a f (N I)) (var b f (N J)) (var c f (N K)) (var d f (I M)) (var e f (J M)) (var f f "
        "(K "
        "M))"
    ),
    "(mm (cat (list a b c) 1) (cat (list d e f) 0))",
    "(add (add (mm a d) (mm b e)) (mm c f))",
    "(add (add (mm a d) (mm b e)) (mm b e))",
)
law(
    "mm-split-columns",
    "(var A f (N K)) (var B f (K (* 2 M)))",
    "(getitem (split (mm A B) M 1) 1)",
    "(mm A (getitem (split B M 1) 1))",
    "(mm A (getitem (split B M 1) 0))",
)
law(
    "mm-split-rows",
    "(var A f ((* 3 N) K)) (var B f (K M))",
    "(getitem (chunk (mm A B) 3 0) 2)",
    "(mm (getitem (chunk A 3 0) 2) B)",
    "(mm (getitem (chunk A 3 0) 1) B)",
)
law("mm-sub-shared", A2, "(sub (mm A B) (mm A C))", "(mm A (sub B C))", "(mm A (sub C B))")
law("mm-T-T", A2, "(T (mm A B) 0 1)", "(mm (T B 0 1) (T A 0 1))", "(mm A B)", "(mm (T B 0 1) A)")
law(
    "mm-diag-left",
    A2 + " (var u f (N))",
    "(mm (diag_embed u) (mm A B))",
    "(mul (unsqueeze u 1) (mm A B))",
    "(mul (unsqueeze u 0) (mm A B))",
)
law(
    "mm-diag-right",
    A2 + " (var v f (M))",
    "(mul (mm A B) v)",
    "(mm A (mul B v))",
    "(mm A (mul B 2.0))",
)
law(
    "mm-inner-scale",
    A2 + " (var u f (K))",
    "(mm (mul A u) B)",
    "(mm A (mul (unsqueeze u 1) B))",
    "(mm A B)",
)
law(
    "mm-four",
    "(var a f (N K)) (var b f (K M)) (var c f (M L)) (var d f (L P))",
    "(mm (mm (mm a b) c) d)",
    "(mm a (mm b (mm c d)))",
    "(mm (mm a b) (mm c (neg d)))",
)
law(
    "mm-pad-inner",
    A2 + " (attr l int)",
    "(mm (constant_pad_nd A (list 0 l)) (constant_pad_nd B (list 0 0 0 l)))",
    "(mm A B)",
    "(muls (mm A B) 2)",
    where="(>= l 0)",
)
law(
    "mm-pad-ones",
    A2,
    "(mm (constant_pad_nd A (list 0 1) 1.0) (constant_pad_nd B (list 0 0 0 1) 1.0))",
    "(adds (mm A B) 1)",
    "(mm A B)",
)
law(
    "bias-as-column",
    "(var A f (N K)) (var B f (K M)) (var v f (M))",
    "(addmm v A B)",
    "(mm (cat (list A (ones (list N 1))) 1) (cat (list B (unsqueeze v 0)) 0))",
    "(mm (cat (list (ones (list N 1)) A) 1) (cat (list B (unsqueeze v 0)) 0))",
)
law(
    "mm-flip-inner",
    A2,
    "(mm (flip A (list 1)) (flip B (list 0)))",
    "(mm A B)",
    "(mm (flip A (list 1)) B)",
)
law(
    "mm-roll-inner",
    A2,
    "(mm (roll A (list 1) (list 1)) (roll B (list 1) (list 0)))",
    "(mm A B)",
    "(mm (roll A (list 1) (list 1)) (roll B (list -1) (list 0)))",
)
law(
    "mm-block-diagonal",
    "(var a f (N K)) (var b f (M L)) (var x f (K P)) (var y f (L P))",
    (
        "(mm (cat (list (cat (list a (zeros (list N L))) 1) (cat (list (zeros (list M K)) b) 1)) "
        "0) "
        "(cat (list x y) 0))"
    ),
    "(cat (list (mm a x) (mm b y)) 0)",
    "(cat (list (mm a x) (mm b y)) 1)",
    "(cat (list (mm b y) (mm a x)) 0)",
)
law(
    "bmm-fold",
    "(var A f (N T K)) (var B f (K M))",
    "(matmul A B)",
    "(view (mm (view A (list (* N T) K)) B) (list N T M))",
    "(T (view (mm (view A (list (* N T) K)) B) (list T N M)) 0 1)",
)
law(
    "bmm-expand",
    "(var A f (N T K)) (var B f (K M))",
    "(matmul A B)",
    "(bmm A (expand (unsqueeze B 0) (list N K M)))",
    "(bmm A (neg (expand (unsqueeze B 0) (list N K M))))",
)
law(
    "bmm-sum-batch",
    "(var A f (B N K)) (var C f (B K M))",
    "(sum (bmm A C) (list 0))",
    "(mm (reshape (T A 0 1) (list N (* B K))) (reshape C (list (* B K) M)))",
    "(mm (reshape (permute A (list 1 2 0)) (list N (* B K))) (reshape C (list (* B K) M)))",
)
law(
    "bmm-T",
    "(var A f (B N K)) (var C f (B K M))",
    "(T (bmm A C) 1 2)",
    "(bmm (T C 1 2) (T A 1 2))",
    "(T (bmm A C) 0 2)",
)
law(
    "matmul-unsqueeze-vec",
    "(var A f (N K)) (var v f (K))",
    "(mv A v)",
    "(squeeze (mm A (unsqueeze v 1)) 1)",
    "(mv (neg A) v)",
)
law("dot-sum", VEC, "(dot x y)", "(sum (mul x y) (list 0))", "(sum (add x y) (list 0))")
law("dot-comm", VEC, "(dot x y)", "(dot y x)", "(neg (dot y x))")
law(
    "outer-mul",
    "(var x f (N)) (var y f (M))",
    "(outer x y)",
    "(mul (unsqueeze x 1) (unsqueeze y 0))",
    "(mul (unsqueeze x 1) (unsqueeze x 1))",
)
law(
    "outer-mm",
    "(var x f (N)) (var y f (M)) (var v f (M))",
    "(mv (outer x y) v)",
    "(mul x (dot y v))",
    "(mul x (sum (mul y y) (list 0)))",
)
law(
    "quadratic",
    "(var x f (N)) (var A f (N N))",
    "(dot x (mv A x))",
    "(sum (mul A (outer x x)) (list 0 1))",
    "(sum (mul A (outer x x)) (list 0))",
)
law(
    "trace-cyclic",
    "(var A f (N K)) (var B f (K N))",
    "(sum (diagonal (mm A B)) (list 0))",
    "(sum (diagonal (mm B A)) (list 0))",
    "(sum (mm B A) (list 0 1))",
)
law(
    "trace-frobenius",
    "(var A f (N K)) (var B f (N K))",
    "(sum (diagonal (mm A (T B 0 1))) (list 0))",
    "(sum (mul A B) (list 0 1))",
    "(sum (mul A A) (list 0 1))",
)
law(
    "addmm-split",
    A2 + " (var v f (M))",
    "(addmm v A B)",
    "(add (mm A B) v)",
    "(add (mm A B) (muls v 2))",
)
law("addmm-beta0", A2 + " (var v f (M))", "(addmm v A B :beta 0)", "(mm A B)", "(addmm v A B)")
law(
    "addmm-alpha-in",
    A2 + " (var v f (M)) (attr s float)",
    "(addmm v A B :alpha s)",
    "(addmm v (muls A s) B)",
    "(addmm (muls v s) A B)",
)
law(
    "baddbmm-written",
    "(var z f (B N M)) (var A f (B N K)) (var C f (B K M))",
    "(baddbmm z A C :beta 2 :alpha 3)",
    "(add (muls z 2) (muls (bmm A C) 3))",
    "(add (muls z 3) (muls (bmm A C) 2))",
)
law(
    "linear-cat-in",
    "(var x f (N K)) (var e f (N L)) (var w f (O K)) (var y f (O L))",
    "(lin (cat (list x e) 1) (cat (list w y) 1))",
    "(add (lin x w) (lin e y))",
    "(add (lin x w) (lin x w))",
)
law(
    "linear-cat-out",
    "(var x f (N K)) (var w f (O K)) (var y f (P K)) (var a f (O)) (var b f (P))",
    "(lin x (cat (list w y) 0) (cat (list a b) 0))",
    "(cat (list (lin x w a) (lin x y b)) 1)",
    "(cat (list (lin x w a) (lin x y b)) 0)",
    "(cat (list (lin x y b) (lin x w a)) 1)",
)
law(
    "linear-of-mul",
    "(var x f (N K)) (var g f (K)) (var w f (O K))",
    "(lin (mul x g) w)",
    "(lin x (mul w g))",
    "(mul (lin x w) g)",
)
law(
    "linear-of-shift",
    "(var x f (N K)) (var g f (K)) (var w f (O K))",
    "(lin (add x g) w)",
    "(lin x w (mv w g))",
    "(lin x w)",
)
law(
    "linear-row-scale",
    "(var x f (N K)) (var g f (O)) (var w f (O K)) (var b f (O))",
    "(mul (lin x w b) g)",
    "(lin x (mul w (unsqueeze g 1)) (mul b g))",
    "(lin x (mul w (unsqueeze g 1)) b)",
)
law(
    "linear-neg",
    "(var x f (N K)) (var w f (O K))",
    "(lin (neg x) w)",
    "(lin x (neg w))",
    "(lin (neg x) (neg w))",
)
law(
    "linear-unflatten",
    "(var x f (B T K)) (var w f (O K))",
    "(lin x w)",
    "(unflatten.int (lin (flatten x 0 1) w) 0 (list B T))",
    "(unflatten.int (lin (flatten x 0 1) w) 0 (list T B))",
)
law(
    "linear-select",
    "(var x f (B T K)) (var w f (O K)) (var b f (O))",
    "(select (lin x w b) 1 -1)",
    "(lin (select x 1 -1) w b)",
    "(lin (select x 1 0) w b)",
)
law(
    "linear-index",
    "(var x f (T K)) (var w f (O K)) (var i i (P))",
    "(index_select (lin x w) 0 i)",
    "(lin (index_select x 0 i) w)",
    "(lin x w)",
)
law(
    "linear-drop-columns",
    "(var x f (T K)) (var w f (O K)) (var b f (O)) (var i i (P))",
    "(index_select (lin x w b) 1 i)",
    "(lin x (index_select w 0 i) (index_select b 0 i))",
    "(lin x (index_select w 0 i))",
)
law(
    "linear-mean",
    "(var x f (B T K)) (var w f (O K)) (var b f (O))",
    "(mean (lin x w b) (list 1))",
    "(lin (mean x (list 1)) w b)",
    "(lin (sum x (list 1)) w b)",
)

# ---- convolution and pooling
law(
    "conv-bn-fold",
    (
        "(var x f (N C H W)) (var w f (O C 3 3)) (var g f (O)) (var b f (O)) (var m f (O)) (var r "
        "f "
        "(O))"
    ),
    "(batch_norm (conv2d x w) g b m r false 0.1 1e-05 false)",
    (
        "(conv2d x (mul w (view (mul g (rsqrt (add r 1e-05))) (list O 1 1 1))) (sub b (mul m (mul "
        "g "
        "(rsqrt (add r 1e-05))))))"
    ),
    "(conv2d x (mul w (view (mul g (rsqrt (add r 1e-05))) (list O 1 1 1))) (sub b m))",
    "(conv2d x (mul w (view g (list O 1 1 1))) (sub b (mul m g)))",
)
law(
    "conv-bn-fold-bias",
    (
        "(var x f (N C T)) (var w f (O C 3)) (var a f (O)) (var g f (O)) (var b f (O)) (var m f "
        "(O)) "
        "(var r f (O))"
    ),
    "(batch_norm (conv1d x w a) g b m r false 0.1 0.001 false)",
    (
        "(conv1d x (mul w (view (div g (sqrt (add r 0.001))) (list O 1 1))) (add b (mul (sub a m) "
        "(div g (sqrt (add r 0.001))))))"
    ),
    (
        "(conv1d x (mul w (view (div g (sqrt (add r 0.001))) (list O 1 1))) (add b (mul (add a m) "
        "(div g (sqrt (add r 0.001))))))"
    ),
)
law(
    "linear-bn-fold",
    "(var x f (N K)) (var w f (O K)) (var g f (O)) (var b f (O)) (var m f (O)) (var r f (O))",
    "(batch_norm (lin x w) g b m r false 0.1 1e-05 false)",
    (
        "(lin x (mul w (unsqueeze (mul g (rsqrt (add r 1e-05))) 1)) (sub b (mul m (mul g (rsqrt "
        "(add "
        "r 1e-05))))))"
    ),
    "(lin x (mul w (unsqueeze g 1)) (sub b (mul m g)))",
)
law(
    "conv-add-weights",
    IMG,
    "(add (conv2d x w) (conv2d x v))",
    "(conv2d x (add w v))",
    "(conv2d x (mul w v))",
)
law(
    "conv-add-inputs",
    IMGS,
    "(add (conv2d x w) (conv2d y w))",
    "(conv2d (add x y) w)",
    "(conv2d (add x y) (add w w))",
)
law("conv-neg", IMG, "(conv2d (neg x) w)", "(neg (conv2d x w))", "(conv2d x w)")
law(
    "conv-scale-both",
    IMG + " (attr s float)",
    "(conv2d (muls x s) w)",
    "(conv2d x (muls w s))",
    "(conv2d (muls x s) (muls w s))",
)
law(
    "conv-cat-in",
    "(var x f (N C H W)) (var y f (N D H W)) (var w f (O C 3 3)) (var v f (O D 3 3))",
    "(conv2d (cat (list x y) 1) (cat (list w v) 1))",
    "(add (conv2d x w) (conv2d y v))",
    "(conv2d (cat (list x x) 1) (cat (list w w) 1))",
)
law(
    "conv-cat-batch",
    IMGS,
    "(conv2d (cat (list x y) 0) w)",
    "(cat (list (conv2d x w) (conv2d y w)) 0)",
    "(cat (list (conv2d x w) (conv2d y w)) 1)",
)
law(
    "conv-1x1-linear",
    "(var x f (N C H W)) (var w f (O C 1 1)) (var b f (O))",
    "(conv2d x w b)",
    "(permute (lin (permute x (list 0 2 3 1)) (view w (list O C)) b) (list 0 3 1 2))",
    "(permute (lin (permute x (list 0 2 3 1)) (view w (list O C)) b) (list 0 3 2 1))",
)
law(
    "conv-1x1-stride",
    "(var x f (N C H W)) (var w f (O C 1 1))",
    "(conv2d x w none (list 2 2))",
    "(conv2d (slice (slice x 2 0 9223372036854775807 2) 3 0 9223372036854775807 2) w)",
    "(conv2d x w)",
    "(conv2d (slice (slice x 2 1 9223372036854775807 2) 3 1 9223372036854775807 2) w)",
)
law(
    "conv-pad-merge",
    IMG,
    "(conv2d (constant_pad_nd x (list 1 1 1 1)) w)",
    "(conv2d x w none (list 1 1) (list 1 1))",
    "(conv2d x w none (list 1 1) (list 1 0))",
    "(conv2d x w)",
)
law(
    "conv-pad-merge-2",
    IMG,
    "(conv2d (pad x (list 2 2 0 0)) w none (list 1 1) (list 1 1))",
    "(conv2d x w none (list 1 1) (list 1 3))",
    "(conv2d x w none (list 1 1) (list 3 1))",
)
law(
    "conv-enlarge",
    "(var x f (N C H W)) (var w f (O C 1 1))",
    "(conv2d x w)",
    "(conv2d x (constant_pad_nd w (list 1 1 1 1)) none (list 1 1) (list 1 1))",
    "(conv2d x (constant_pad_nd w (list 2 0 1 1)) none (list 1 1) (list 1 1))",
)
law(
    "conv1d-as-2d",
    "(var x f (N C T)) (var w f (O C K)) (var b f (O))",
    "(conv1d x w b (list 2))",
    "(squeeze (conv2d (unsqueeze x 2) (unsqueeze w 2) b (list 1 2)) 2)",
    "(squeeze (conv2d (unsqueeze x 2) (unsqueeze w 2) b (list 1 1)) 2)",
)
law(
    "conv-dilate",
    "(var x f (N C T)) (var w f (O C 2))",
    "(conv1d x w none (list 1) (list 0) (list 2))",
    "(conv1d x (cat (list (slice w 2 0 1) (zeros (list O C 1)) (slice w 2 1 2)) 2))",
    "(conv1d x (cat (list (slice w 2 1 2) (zeros (list O C 1)) (slice w 2 0 1)) 2))",
)
law(
    "conv-flip",
    "(var x f (N C T)) (var w f (O C K))",
    "(conv1d (flip x (list 2)) (flip w (list 2)))",
    "(flip (conv1d x w) (list 2))",
    "(conv1d x w)",
)
law(
    "conv-shift",
    "(var x f (N C T)) (var w f (O C K))",
    "(slice (conv1d x w) 2 1 9223372036854775807)",
    "(conv1d (slice x 2 1 9223372036854775807) w)",
    "(conv1d (slice x 2 0 -1) w)",
    where="(>= T (+ K 1))",
)
law(
    "conv-groups-cat",
    "(var x f (N C T)) (var y f (N C T)) (var w f (O C K)) (var v f (O C K))",
    "(conv1d (cat (list x y) 1) (cat (list w v) 0) none (list 1) (list 0) (list 1) 2)",
    "(cat (list (conv1d x w) (conv1d y v)) 1)",
    "(cat (list (conv1d x v) (conv1d y w)) 1)",
)
law(
    "conv-causal",
    "(var x f (N C T)) (var w f (C 1 4))",
    "(slice (conv1d x w none (list 1) (list 3) (list 1) C) 2 0 T)",
    "(conv1d (constant_pad_nd x (list 3 0)) w none (list 1) (list 0) (list 1) C)",
    "(conv1d (constant_pad_nd x (list 0 3)) w none (list 1) (list 0) (list 1) C)",
)
law(
    "conv-depthwise-taps",
    "(var x f (N C T)) (var w f (C 1 2))",
    "(conv1d x w none (list 1) (list 0) (list 1) C)",
    (
        "(add (mul (slice x 2 0 -1) (select w 2 0)) (mul (slice x 2 1 9223372036854775807) "
        "(select w "
        "2 1)))"
    ),
    (
        "(add (mul (slice x 2 0 -1) (select w 2 1)) (mul (slice x 2 1 9223372036854775807) "
        "(select w "
        "2 0)))"
    ),
    where="(>= T 2)",
)
law(
    "patchify",
    "(var x f (N C (* P H) (* P W))) (var w f (O C P P))",
    "(conv2d x w none (list P P))",
    (
        "(permute (view (lin (reshape (permute (view x (list N C H P W P)) (list 0 2 4 1 3 5)) "
        "(list "
        "(* (* N H) W) (* C (* P P)))) (reshape w (list O (* C (* P P))))) (list N H W O)) (list "
        "0 3 "
        "1 2))"
    ),
    (
        "(permute (view (lin (reshape (permute (view x (list N C H P W P)) (list 0 2 4 1 5 3)) "
        "(list "
        "(* (* N H) W) (* C (* P P)))) (reshape w (list O (* C (* P P))))) (list N H W O)) (list "
        "0 3 "
        "1 2))"
    ),
)
law(
    "max-pool-stride1",
    "(var x f (N C T))",
    "(max_pool1d (max_pool1d x (list 2) (list 1)) (list 2) (list 1))",
    "(max_pool1d x (list 3) (list 1))",
    "(max_pool1d x (list 4) (list 1))",
    where="(>= T 3)",
)
law(
    "max-pool-clamp",
    "(var x f (N C H W)) (attr a float)",
    "(max_pool2d (clamp_min x a) (list 2 2))",
    "(clamp_min (max_pool2d x (list 2 2)) a)",
    "(clamp_max (max_pool2d x (list 2 2)) a)",
)
law(
    "max-pool-affine",
    "(var x f (N C T)) (attr a float)",
    "(max_pool1d (muls x a) (list 2))",
    "(muls (max_pool1d x (list 2)) a)",
    "(max_pool1d x (list 2))",
    ("(max_pool1d (muls x a) (list 2))", "(muls (max_pool1d x (list 2)) a)", ""),
    where="(> a 0)",
)
law(
    "max-pool-pairs",
    "(var x f (N C T))",
    "(max_pool1d x (list 2) (list 1))",
    "(max2 (slice x 2 0 -1) (slice x 2 1 9223372036854775807))",
    "(min2 (slice x 2 0 -1) (slice x 2 1 9223372036854775807))",
    where="(>= T 2)",
)
law(
    "avg-pool-affine",
    "(var x f (N C H W)) (attr a float)",
    "(avg_pool2d (adds x a) (list 2 2))",
    "(adds (avg_pool2d x (list 2 2)) a)",
    "(adds (avg_pool2d x (list 2 2)) (* 4 a))",
)
law(
    "avg-pool-of-sum",
    "(var x f (N C H W)) (var y f (N C H W))",
    "(avg_pool2d (add x y) (list 3 3) (list 1 1) (list 1 1))",
    (
        "(add (avg_pool2d x (list 3 3) (list 1 1) (list 1 1)) (avg_pool2d y (list 3 3) (list 1 1) "
        "(list 1 1)))"
    ),
    "(avg_pool2d (mul x y) (list 3 3) (list 1 1) (list 1 1))",
)
law(
    "avg-pool-mean",
    "(var x f (N C (* 2 T)))",
    "(avg_pool1d x (list 2))",
    "(mean (view x (list N C T 2)) (list 3))",
    "(mean (view x (list N C 2 T)) (list 2))",
)
law(
    "avg-pool-global",
    "(var x f (N C H W))",
    "(avg_pool2d x (list H W))",
    "(mean x (list 2 3) true)",
    "(sum x (list 2 3) true)",
)
law(
    "avg-pool-chan",
    "(var x f (N C H W)) (var w f (O C 1 1))",
    "(avg_pool2d (conv2d x w) (list 2 2))",
    "(conv2d (avg_pool2d x (list 2 2)) w)",
    "(conv2d (max_pool2d x (list 2 2)) w)",
)

# ---- XLA, MLIR, TVM: layout
law(
    "reshape-reshape",
    "(var x f (A B C))",
    "(reshape (reshape x (list (* A B) C)) (list A (* B C)))",
    "(reshape x (list A (* B C)))",
    "(reshape (T x 0 1) (list A (* B C)))",
)
law("reshape-of-T-1", "(var x f (A 1 C))", "(T x 0 1)", "(reshape x (list 1 A C))", "(T x 0 2)")
law(
    "transpose-merge",
    "(var x f (A B C D))",
    "(permute (permute x (list 3 1 2 0)) (list 1 2 0 3))",
    "(permute x (list 1 2 3 0))",
    "(permute x (list 2 1 3 0))",
)
law(
    "transpose-of-broadcast",
    "(var v f (M)) (var x f (N M))",
    "(T (expand v (list N M)) 0 1)",
    "(expand (unsqueeze v 1) (list M N))",
    "(expand (unsqueeze v 1) (list M M))",
)
law(
    "broadcast-of-broadcast",
    "(var v f (M))",
    "(expand (expand (view v (list 1 1 M)) (list 1 N M)) (list L N M))",
    "(expand v (list L N M))",
    "(expand v (list N L M))",
    where="(>= N 1) (>= L 1)",
)
law(
    "reshape-of-broadcast",
    "(var v f (M))",
    "(reshape (expand v (list A B M)) (list (* A B) M))",
    "(expand v (list (* A B) M))",
    "(expand v (list A M))",
    where="(>= A 1) (>= B 1)",
)
law(
    "reduce-of-broadcast",
    "(var v f (M))",
    "(sum (expand v (list n M)) (list 0))",
    "(muls v n)",
    "v",
    where="(>= n 1)",
)
law(
    "reduce-of-reduce",
    "(var x f (A B C D))",
    "(sum (sum x (list 1)) (list 1))",
    "(sum x (list 1 2))",
    "(sum x (list 1 3))",
)
law(
    "reduce-of-reshape",
    "(var x f (A B C))",
    "(sum (reshape x (list (* A B) C)) (list 0))",
    "(sum x (list 0 1))",
    "(sum x (list 0 2))",
)
law(
    "reduce-of-concat",
    "(var x f (N M)) (var y f (N L))",
    "(amax (cat (list x y) 1) (list 1))",
    "(max2 (amax x (list 1)) (amax y (list 1)))",
    "(add (amax x (list 1)) (amax y (list 1)))",
)
law(
    "reduce-of-pad",
    "(var x f (N M)) (attr l int) (attr h int)",
    "(sum (constant_pad_nd x (list l h)) (list 1))",
    "(sum x (list 1))",
    "(sum (constant_pad_nd x (list l h)) (list 1) true)",
    where="(>= l 0) (>= h 0)",
)
law(
    "pad-of-pad",
    "(var x f (N M)) (attr a int) (attr b int)",
    "(constant_pad_nd (constant_pad_nd x (list a 0) 2) (list b 0) 2)",
    "(constant_pad_nd x (list (+ a b) 0) 2)",
    "(constant_pad_nd x (list (+ a b) 0) 1)",
    where="(>= a 0) (>= b 1)",
)
law(
    "pad-negative",
    "(var x f (N M)) (attr a int)",
    "(constant_pad_nd x (list (- 0 a) 0))",
    "(slice x 1 a 9223372036854775807)",
    "(slice x 1 0 (- M a))",
    where="(>= a 0) (<= a M)",
)
law(
    "pad-of-mul",
    "(var x f (N M)) (var y f (N M))",
    "(constant_pad_nd (mul x y) (list 1 2))",
    "(mul (constant_pad_nd x (list 1 2)) (constant_pad_nd y (list 1 2)))",
    "(mul (constant_pad_nd x (list 1 2) 1) (constant_pad_nd y (list 1 2) 1))",
)
law(
    "pad-transpose",
    "(var x f (N M))",
    "(T (constant_pad_nd x (list 1 2)) 0 1)",
    "(constant_pad_nd (T x 0 1) (list 0 0 1 2))",
    "(constant_pad_nd (T x 0 1) (list 1 2))",
)
law(
    "pad-as-cat",
    "(var x f (N M))",
    "(constant_pad_nd x (list 2 3) 0.5)",
    "(cat (list (full (list N 2) 0.5) x (full (list N 3) 0.5)) 1)",
    "(cat (list (full (list N 3) 0.5) x (full (list N 2) 0.5)) 1)",
)
law(
    "slice-of-pad",
    "(var x f (N M)) (attr a int)",
    "(slice (constant_pad_nd x (list a a)) 1 a (+ a M))",
    "x",
    "(slice (constant_pad_nd x (list a a)) 1 0 M)",
    where="(>= a 1)",
)
law(
    "slice-of-slice",
    "(var x f (N)) (attr a int) (attr b int) (attr c int) (attr d int)",
    "(slice (slice x 0 a b) 0 c d)",
    "(slice x 0 (+ a c) (+ a d))",
    "(slice x 0 c (+ a d))",
    where="(>= a 0) (<= a b) (<= b N) (>= c 0) (<= c d) (<= d (- b a))",
)
law(
    "slice-stride",
    "(var x f (N))",
    "(slice (slice x 0 0 9223372036854775807 2) 0 0 9223372036854775807 3)",
    "(slice x 0 0 9223372036854775807 6)",
    "(slice x 0 0 9223372036854775807 5)",
)
law(
    "slice-of-reverse",
    "(var x f (N)) (attr a int)",
    "(slice (flip x (list 0)) 0 0 a)",
    "(flip (slice x 0 (- N a) N) (list 0))",
    "(flip (slice x 0 0 a) (list 0))",
    where="(>= a 0) (<= a N)",
)
law(
    "slice-of-broadcast",
    "(var v f (M)) (attr a int)",
    "(slice (expand v (list N M)) 1 0 a)",
    "(expand (slice v 0 0 a) (list N a))",
    "(expand (slice v 0 (- M a) M) (list N a))",
    where="(>= a 1) (<= a M) (>= N 1)",
)
law(
    "slice-of-unary",
    "(var x f (N M)) (attr a int) (attr b int)",
    "(slice (gelu x) 1 a b)",
    "(gelu (slice x 1 a b))",
    "(gelu (slice x 0 a b))",
)
law(
    "slice-elementwise",
    "(var x f (N M)) (var y f (N M)) (attr a int)",
    "(slice (mul x y) 1 a 9223372036854775807)",
    "(mul (slice x 1 a 9223372036854775807) (slice y 1 a 9223372036854775807))",
    "(mul (slice x 1 a 9223372036854775807) (slice y 1 0 (- M a)))",
)
law(
    "select-of-stack",
    "(var x f (N M)) (var y f (N M)) (var z f (N M))",
    "(select (stack (list x y z) 1) 1 1)",
    "y",
    "z",
    "x",
)
law(
    "select-of-cat",
    "(var x f (N M)) (var y f (L M))",
    "(select (cat (list x y) 0) 0 N)",
    "(select y 0 0)",
    "(select x 0 -1)",
)
law(
    "select-of-expand",
    "(var x f (N M)) (attr a int)",
    "(select (expand (unsqueeze x 1) (list N 5 M)) 1 a)",
    "x",
    "(neg x)",
    where="(in a 0 5)",
)
law(
    "select-slice",
    "(var x f (N M)) (attr a int)",
    "(select x 0 a)",
    "(squeeze (slice x 0 a (+ a 1)) 0)",
    "(squeeze (slice x 0 (- a 1) a) 0)",
    where="(>= a 0) (< a N)",
)
law(
    "stack-as-cat",
    "(var x f (N M)) (var y f (N M))",
    "(stack (list x y) 1)",
    "(cat (list (unsqueeze x 1) (unsqueeze y 1)) 1)",
    "(view (cat (list x y) 1) (list N M 2))",
    "(stack (list x y) 0)",
)
law(
    "stack-view",
    "(var x f (N M)) (var y f (N M))",
    "(stack (list x y) 1)",
    "(view (cat (list x y) 1) (list N 2 M))",
    "(view (cat (list x y) 0) (list N 2 M))",
)
law(
    "interleave",
    "(var x f (N M)) (var y f (N M))",
    "(slice (view (stack (list x y) 2) (list N (* 2 M))) 1 1 9223372036854775807 2)",
    "y",
    "x",
)
law(
    "unbind-stack",
    "(var x f (3 N M))",
    "(stack (list (getitem (unbind x 0) 0) (getitem (unbind x 0) 1) (getitem (unbind x 0) 2)) 0)",
    "x",
    "(stack (list (getitem (unbind x 0) 2) (getitem (unbind x 0) 1) (getitem (unbind x 0) 0)) 0)",
)
law(
    "unbind-qkv",
    "(var x f (B T (* 3 (* H D))))",
    "(getitem (unbind (permute (view x (list B T 3 H D)) (list 2 0 3 1 4)) 0) 1)",
    "(T (view (getitem (split x (* H D) 2) 1) (list B T H D)) 1 2)",
    "(T (view (getitem (split x (* H D) 2) 2) (list B T H D)) 1 2)",
)
law(
    "qkv-interleaved",
    "(var x f (B T (* H (* 3 D))))",
    "(getitem (split (view x (list B T H (* 3 D))) D 3) 1)",
    "(select (view x (list B T H 3 D)) 3 1)",
    "(view (getitem (split x (* H D) 2) 1) (list B T H D))",
)
law(
    "chunk-slice",
    "(var x f (N (* 4 M)))",
    "(getitem (chunk x 4 1) 2)",
    "(slice x 1 (* 2 M) (* 3 M))",
    "(slice x 1 M (* 2 M))",
)
law(
    "split-sizes-slice",
    "(var x f (N M)) (attr a int) (attr b int)",
    "(getitem (split_with_sizes x (list a b) 1) 1)",
    "(slice x 1 a M)",
    "(slice x 1 b M)",
    where="(= (+ a b) M) (>= a 0) (>= b 0)",
)
law(
    "cat-empty",
    "(var x f (N M))",
    "(cat (list (slice x 0 0 0) x) 0)",
    "x",
    "(cat (list (slice x 0 0 1) x) 0)",
)
law(
    "cat-flip",
    "(var x f (N M)) (var y f (L M))",
    "(flip (cat (list x y) 0) (list 0))",
    "(cat (list (flip y (list 0)) (flip x (list 0))) 0)",
    "(cat (list (flip x (list 0)) (flip y (list 0))) 0)",
)
law(
    "cat-reshape",
    "(var x f (N M)) (var y f (L M))",
    "(reshape (cat (list x y) 0) (list (* (+ N L) M)))",
    "(cat (list (reshape x (list (* N M))) (reshape y (list (* L M)))) 0)",
    "(cat (list (reshape y (list (* L M))) (reshape x (list (* N M)))) 0)",
)
law(
    "cat-cat-transposed",
    "(var a f (N M)) (var b f (N L)) (var c f (P M)) (var d f (P L))",
    "(cat (list (cat (list a b) 1) (cat (list c d) 1)) 0)",
    "(cat (list (cat (list a c) 0) (cat (list b d) 0)) 1)",
    "(T (cat (list (cat (list a b) 1) (cat (list c d) 1)) 0) 0 1)",
)
law(
    "roll-two",
    "(var x f (N)) (attr a int) (attr b int)",
    "(roll (roll x (list a) (list 0)) (list b) (list 0))",
    "(roll x (list (+ a b)) (list 0))",
    "(roll x (list (- a b)) (list 0))",
    where="(>= a 0) (>= b 0) (< (+ a b) N)",
)
law(
    "roll-as-cat",
    "(var x f (N M)) (attr a int)",
    "(roll x (list a) (list 0))",
    "(cat (list (slice x 0 (- N a) N) (slice x 0 0 (- N a))) 0)",
    "(cat (list (slice x 0 a N) (slice x 0 0 a)) 0)",
    where="(>= a 0) (<= a N)",
)
law(
    "roll-flip",
    "(var x f (N))",
    "(flip (roll x (list 1) (list 0)) (list 0))",
    "(roll (flip x (list 0)) (list -1) (list 0))",
    "(roll (flip x (list 0)) (list 1) (list 0))",
)
law(
    "repeat-tile",
    "(var x f (N M))",
    "(repeat x (list 2 3))",
    "(cat (list (cat (list x x x) 1) (cat (list x x x) 1)) 0)",
    "(cat (list (cat (list x x) 1) (cat (list x x) 1) (cat (list x x) 1)) 0)",
)
law(
    "repeat-sum",
    "(var x f (N M))",
    "(sum (repeat x (list 3 1)) (list 0))",
    "(muls (sum x (list 0)) 3)",
    "(sum x (list 0))",
)
law(
    "repint-slice",
    "(var x f (N M)) (attr r int)",
    "(slice (repint x r 0) 0 0 9223372036854775807 r)",
    "x",
    "(slice (repint x r 0) 0 0 N)",
    where="(>= r 1)",
)
law(
    "repint-view",
    "(var x f (B H T D)) (attr r int)",
    "(repint x r 1)",
    "(reshape (expand (unsqueeze x 2) (list B H r T D)) (list B (* H r) T D))",
    "(reshape (expand (unsqueeze x 1) (list B r H T D)) (list B (* r H) T D))",
    where="(>= r 1)",
)
law(
    "diagonal-outer",
    "(var u f (N)) (var v f (N))",
    "(diagonal (outer u v))",
    "(mul u v)",
    "(mul u u)",
)
law(
    "tril-mask",
    "(var x f (N N))",
    "(tril x)",
    "(mfill x (triu (ones (list N N) :dtype bool) 1) 0)",
    "(mfill x (triu (ones (list N N) :dtype bool) 0) 0)",
)
law(
    "triu-arange",
    "(var x f (N M))",
    "(triu x 1)",
    "(mul x (to (lt (unsqueeze (arange N) 1) (unsqueeze (arange M) 0)) float64))",
    "(mul x (to (le (unsqueeze (arange N) 1) (unsqueeze (arange M) 0)) float64))",
)
law(
    "tril-outer",
    "(var u f (N)) (var v f (N)) (var x f (N N))",
    "(mul (tril x) (outer u v))",
    "(tril (mul x (outer u v)))",
    "(triu (mul x (outer u v)))",
)
law(
    "movedim-permute",
    "(var x f (A B C D))",
    "(movedim.int x 1 -1)",
    "(permute x (list 0 2 3 1))",
    "(T x 1 3)",
)
law(
    "flatten-permute",
    "(var x f (A B C))",
    "(flatten (permute x (list 1 0 2)))",
    "(reshape (T x 0 1) (list (* (* A B) C)))",
    "(reshape x (list (* (* A B) C)))",
)
law(
    "pixel-shuffle",
    "(var x f (N (* C 4) H W))",
    "(reshape (permute (view x (list N C 2 2 H W)) (list 0 1 4 2 5 3)) (list N C (* 2 H) (* 2 W)))",
    "(pixel_shuffle x 2)",
    "(reshape (permute (view x (list N C 2 2 H W)) (list 0 1 4 3 5 2)) (list N C (* 2 H) (* 2 W)))",
)
law(
    "space-to-depth",
    "(var x f (N C (* 2 H) (* 2 W)))",
    "(select (permute (view x (list N C H 2 W 2)) (list 0 3 5 1 2 4)) 1 0)",
    "(permute (view (slice x 2 0 9223372036854775807 2) (list N C H W 2)) (list 0 4 1 2 3))",
    "(permute (view (slice x 2 1 9223372036854775807 2) (list N C H W 2)) (list 0 4 1 2 3))",
)

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
        "M "
        "(* 2 M)))"
    ),
    (
        "(mul (silu (slice (lin x (cat (list w v) 0)) 1 M (* 2 M))) (slice (lin x (cat (list w v) "
        "0)) "
        "1 0 M))"
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
        "(list "
        "0))"
    ),
    (
        "(sum (bmm (T (view x (list N G K)) 0 1) (permute (view w (list O G K)) (list 1 2 0))) "
        "(list "
        "1))"
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
        "(div (add (mm (exp (mm q (T k 0 1))) v) (mm (exp (mm q (T l 0 1))) w)) (add (sum (exp "
        "(mm q "
        "(T k 0 1))) (list 1) true) (sum (exp (mm q (T l 0 1))) (list 1) true)))"
    ),
    (
        "(div (add (mm (exp (mm q (T k 0 1))) v) (mm (exp (mm q (T l 0 1))) w)) (sum (exp (mm q "
        "(T k "
        "0 1))) (list 1) true))"
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
        "D)) "
        "1) (cat (list s s) 1)))"
    ),
    (
        "(add (mul x (cat (list c c) 1)) (mul (cat (list (slice x 1 D (* 2 D)) (neg (slice x 1 0 "
        "D))) "
        "1) (cat (list s s) 1)))"
    ),
)
law(
    "rope-sign-sin",
    R,
    rot("x", "c", "(neg s)"),
    (
        "(sub (mul x (cat (list c c) 1)) (mul (cat (list (neg (slice x 1 D (* 2 D))) (slice x 1 0 "
        "D)) "
        "1) (cat (list s s) 1)))"
    ),
    rot("x"),
)
law(
    "rope-norm",
    "(var x f (T)) (var y f (T)) (var t f (T))",
    (
        "(add (square (sub (mul x (cos t)) (mul y (sin t)))) (square (add (mul x (sin t)) (mul y "
        "(cos "
        "t)))))"
    ),
    "(add (square x) (square y))",
    "(sub (square x) (square y))",
)
law(
    "rope-relative",
    "(var a f (N)) (var b f (N)) (var c f (N)) (var d f (N)) (var m f (N)) (var n f (N))",
    (
        "(add (mul (sub (mul a (cos m)) (mul b (sin m))) (sub (mul c (cos n)) (mul d (sin n)))) "
        "(mul "
        "(add (mul a (sin m)) (mul b (cos m))) (add (mul c (sin n)) (mul d (cos n)))))"
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
        "(square "
        "(mean x (list 1) true))) 1e-05)))"
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
        "1) "
        "1) (getitem (chunk w 2 1) 1)))"
    ),
    (
        "(add (lin (getitem (chunk x 2 1) 0) (getitem (chunk w 2 1) 1)) (lin (getitem (chunk x 2 "
        "1) "
        "1) (getitem (chunk w 2 1) 0)))"
    ),
)
law(
    "row-parallel-4",
    "(var x f (T (* 4 K))) (var w f (O (* 4 K)))",
    "(lin x w)",
    (
        "(add (add (lin (slice x 1 0 K) (slice w 1 0 K)) (lin (slice x 1 K (* 2 K)) (slice w 1 K "
        "(* 2 "
        "K)))) (add (lin (slice x 1 (* 2 K) (* 3 K)) (slice w 1 (* 2 K) (* 3 K))) (lin (slice x 1 "
        "(* "
        "3 K) (* 4 K)) (slice w 1 (* 3 K) (* 4 K)))))"
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
        "(O "
        "I)) (var g f (O J))"
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
# ---- einsum
law(
    "ein-bmm",
    "(var a f (B N K)) (var c f (B K M))",
    '(einsum "bnk,bkm->bnm" (list a c))',
    "(bmm a c)",
    "(bmm (neg a) c)",
)
law(
    "ein-swap",
    "(var a f (N K)) (var b f (K M))",
    '(einsum "nk,km->mn" (list a b))',
    "(T (mm a b) 0 1)",
    "(mm a (neg b))",
)
law(
    "ein-three",
    "(var a f (N K)) (var b f (K M)) (var c f (M L))",
    '(einsum "nk,km,ml->nl" (list a b c))',
    "(mm a (mm b c))",
    "(mm a (mm b (neg c)))",
)
law(
    "ein-attn",
    "(var q f (B T H D)) (var k f (B S H D))",
    '(einsum "bthd,bshd->bhts" (list q k))',
    "(matmul (T q 1 2) (permute k (list 0 2 3 1)))",
    "(matmul (T k 1 2) (permute q (list 0 2 3 1)))",
)
law(
    "ein-out-proj",
    "(var a f (B T H D)) (var w f (H D E))",
    '(einsum "bthd,hde->bte" (list a w))',
    "(matmul (view a (list B T (* H D))) (view w (list (* H D) E)))",
    "(matmul (view (T a 2 3) (list B T (* H D))) (view w (list (* H D) E)))",
    "(matmul (reshape (T a 2 3) (list B T (* H D))) (view w (list (* H D) E)))",
)
law(
    "ein-diag-sum", "(var a f (N N))", '(einsum "ii->" (list a))', "(trace a)", "(sum a (list 0 1))"
)
law(
    "ein-row-sum",
    "(var a f (N M))",
    '(einsum "nm->n" (list a))',
    "(sum a (list 1))",
    "(sum a (list 0))",
)
law(
    "ein-hadamard",
    "(var a f (N M)) (var b f (N M))",
    '(einsum "nm,nm->n" (list a b))',
    "(sum (mul a b) (list 1))",
    "(sum (mul a b) (list 0))",
)
law(
    "ein-outer-sum",
    "(var a f (N)) (var b f (M))",
    '(einsum "n,m->" (list a b))',
    "(mul (sum a (list 0)) (sum b (list 0)))",
    "(sum (outer a b) (list 0))",
)
# ---- gather, index, one_hot, cumsum, scatter
W = "(var w f (V K)) (var i i (T))"
law(
    "emb-scale",
    W + " (attr s float)",
    "(embedding (muls w s) i)",
    "(muls (embedding w i) s)",
    "(embedding w i)",
)
law(
    "emb-linear",
    W + " (var u f (O K))",
    "(lin (embedding w i) u)",
    "(embedding (lin w u) i)",
    "(embedding (lin (neg w) u) i)",
)
law(
    "emb-layer-norm",
    W,
    "(layer_norm (embedding w i) (list K) none none 1e-05)",
    "(embedding (layer_norm w (list K) none none 1e-05) i)",
    "(embedding w i)",
)
law(
    "emb-sum",
    W + " (var u f (V K))",
    "(add (embedding w i) (embedding u i))",
    "(embedding (add w u) i)",
    "(embedding (mul w u) i)",
)
law(
    "emb-cat",
    W + " (var j i (S))",
    "(embedding w (cat (list i j) 0))",
    "(cat (list (embedding w i) (embedding w j)) 0)",
    "(cat (list (embedding w j) (embedding w i)) 0)",
)
law(
    "emb-onehot-mm",
    W,
    "(embedding w i)",
    "(mm (to (one_hot i V) float64) w)",
    "(mm (to (one_hot i V) float64) (neg w))",
)
law(
    "index-compose",
    W + " (var j i (S))",
    "(index_select (index_select w 0 i) 0 j)",
    "(index_select w 0 (index_select i 0 j))",
    "(index_select w 0 j)",
)
law(
    "index-both",
    "(var w f (V K)) (var i i (T)) (var j i (S))",
    "(index_select (index_select w 0 i) 1 j)",
    "(index_select (index_select w 1 j) 0 i)",
    "(index_select (index_select w 1 i) 0 j)",
)
law(
    "index-arange-slice",
    "(var w f (V K))",
    "(index_select w 0 (arange.start 1 V))",
    "(slice w 0 1 V)",
    "(slice w 0 0 (- V 1))",
    where="(>= V 2)",
)
law(
    "index-expand",
    W,
    "(index_select w 0 i)",
    "(gather w 0 (expand (unsqueeze i 1) (list T K)))",
    "(gather (neg w) 0 (expand (unsqueeze i 1) (list T K)))",
)
law(
    "gather-mul",
    "(var x f (N M)) (var y f (N M)) (var i i (N L))",
    "(gather (mul x y) 1 i)",
    "(mul (gather x 1 i) (gather y 1 i))",
    "(gather (add x y) 1 i)",
)
law(
    "gather-logsoftmax",
    "(var x f (N M)) (var i i (N 1))",
    "(gather (logsoftmax x 1) 1 i)",
    "(sub (gather x 1 i) (lse x (list 1) true))",
    "(sub (gather x 1 i) (lse x (list 0) true))",
)
law(
    "onehot-eq",
    "(var i i (T))",
    "(one_hot i V)",
    "(to (eq (unsqueeze i 1) (arange V)) int64)",
    "(to (ne (unsqueeze i 1) (arange V)) int64)",
    where="(>= V 1)",
)
law(
    "index-add-twice",
    "(var x f (V K)) (var i i (T)) (var a f (T K)) (var b f (T K))",
    "(index_add (index_add x 0 i a) 0 i b)",
    "(index_add x 0 i (add a b))",
    "(index_add x 0 i a)",
)
law(
    "index-add-cat",
    "(var x f (V K)) (var i i (T)) (var j i (S)) (var a f (T K)) (var b f (S K))",
    "(index_add x 0 (cat (list i j) 0) (cat (list a b) 0))",
    "(index_add (index_add x 0 i a) 0 j b)",
    "(index_add (index_add x 0 i a) 0 j (neg b))",
)
law(
    "index-add-onehot",
    "(var x f (V K)) (var i i (T)) (var a f (T K))",
    "(index_add x 0 i a)",
    "(add x (mm (T (to (one_hot i V) float64) 0 1) a))",
    "(mm (T (to (one_hot i V) float64) 0 1) a)",
)
law(
    "index-add-alpha",
    "(var x f (V K)) (var i i (T)) (var a f (T K)) (attr s float)",
    "(index_add x 0 i a :alpha s)",
    "(index_add x 0 i (muls a s))",
    "(index_add x 0 i a)",
)
law(
    "index-add-total",
    "(var x f (V K)) (var i i (T)) (var a f (T K))",
    "(sum (index_add x 0 i a) (list 0))",
    "(add (sum x (list 0)) (sum a (list 0)))",
    "(sum x (list 0))",
)
law(
    "scatter-add-index-add",
    "(var x f (V K)) (var i i (T)) (var a f (T K))",
    "(scatter_add x 0 (expand (unsqueeze i 1) (list T K)) a)",
    "(index_add x 0 i a)",
    "(index_add x 0 i (neg a))",
)
law(
    "cumsum-diff",
    "(var x f (N M))",
    "(sub (slice (cumsum x 1) 1 1 M) (slice (cumsum x 1) 1 0 (- M 1)))",
    "(slice x 1 1 M)",
    "(slice x 1 0 (- M 1))",
    where="(>= M 2)",
)
law(
    "cumsum-mm",
    "(var x f (N M))",
    "(cumsum x 0)",
    "(mm (tril (ones (list N N) :dtype float64)) x)",
    "(mm (triu (ones (list N N) :dtype float64)) x)",
)
law(
    "cumsum-cat",
    "(var x f (N M)) (var y f (L M))",
    "(cumsum (cat (list x y) 0) 0)",
    "(cat (list (cumsum x 0) (add (cumsum y 0) (sum x (list 0) true))) 0)",
    "(cat (list (cumsum x 0) (cumsum y 0)) 0)",
)
law(
    "cumsum-first",
    "(var x f (N M))",
    "(select (cumsum x 1) 1 0)",
    "(select x 1 0)",
    "(select x 1 -1)",
)
law(
    "cumsum-reversed",
    "(var x f (N))",
    "(flip (cumsum (flip x (list 0)) 0) (list 0))",
    "(add (sub (sum x (list 0)) (cumsum x 0)) x)",
    "(sub (sum x (list 0)) (cumsum x 0))",
)
# ---- loss, reductions
law(
    "ce-written",
    "(var x f (N M))",
    "(neg (logsoftmax x 1))",
    "(sub (lse x (list 1) true) x)",
    "(sub x (lse x (list 1) true))",
)
law(
    "mean-center",
    "(var x f (N M))",
    "(sum (sub x (mean x (list 1) true)) (list 1))",
    "(zeros (list N) :dtype float64)",
    "(sum x (list 1))",
)
law(
    "var-pairs",
    "(var x f (N 2))",
    "(var x (list 1) :correction 1)",
    "(muls (square (sub (select x 1 0) (select x 1 1))) 0.5)",
    "(square (sub (select x 1 0) (select x 1 1)))",
)
law(
    "sum-square-norm",
    "(var x f (N M)) (var y f (N M))",
    "(sum (square (sub x y)) (list 1))",
    (
        "(add (sub (sum (square x) (list 1)) (muls (sum (mul x y) (list 1)) 2)) "
        "(sum (square y) (list 1)))"
    ),
    "(sub (sum (square x) (list 1)) (sum (square y) (list 1)))",
)
law(
    "pairwise-dist",
    "(var x f (N K)) (var y f (M K))",
    "(sum (square (sub (unsqueeze x 1) (unsqueeze y 0))) (list 2))",
    (
        "(add (sub (sum (square x) (list 1) true) (muls (mm x (T y 0 1)) 2)) "
        "(sum (square y) (list 1)))"
    ),
    "(add (sub (sum (square x) (list 1) true) (mm x (T y 0 1))) (sum (square y) (list 1)))",
)
law(
    "max-subtract",
    "(var x f (N M))",
    "(amax (sub x (amax x (list 1) true)) (list 1))",
    "(zeros (list N) :dtype float64)",
    "(amax x (list 1))",
)
law(
    "amax-scale-pos",
    "(var x f (N M)) (attr s float)",
    "(amax (muls x s) (list 1))",
    "(muls (amax x (list 1)) s)",
    ("(amax (muls x s) (list 1))", "(muls (amax x (list 1)) s)", ""),
    where="(> s 0)",
)
law(
    "amax-exp",
    "(var x f (N M))",
    "(amax (exp x) (list 1))",
    "(exp (amax x (list 1)))",
    "(exp (amin x (list 1)))",
)
law(
    "amax-sigmoid",
    "(var x f (N M))",
    "(amax (sigmoid x) (list 1))",
    "(sigmoid (amax x (list 1)))",
    "(sigmoid (amin x (list 1)))",
)
law(
    "amax-minus",
    "(var x f (N M)) (var u f (N 1))",
    "(amax (sub u x) (list 1) true)",
    "(sub u (amin x (list 1) true))",
    "(sub u (amax x (list 1) true))",
)
law(
    "amin-max-neg",
    "(var x f (N M))",
    "(amin x (list 1))",
    "(neg (amax (neg x) (list 1)))",
    "(neg (amax x (list 1)))",
)
law(
    "softmax-two",
    "(var x f (N 1)) (var y f (N 1))",
    "(select (softmax (cat (list x y) 1) 1) 1 0)",
    "(sigmoid (squeeze (sub x y) 1))",
    "(sigmoid (squeeze (sub y x) 1))",
)
law(
    "softmax-log",
    "(var x f (N M))",
    "(softmax (log x) 1)",
    "(div x (sum x (list 1) true))",
    "(div x (sum x (list 0) true))",
)
law(
    "softmax-renorm",
    "(var x f (N M)) (var y f (N M))",
    "(div (mul (softmax x 1) (exp y)) (sum (mul (softmax x 1) (exp y)) (list 1) true))",
    "(softmax (add x y) 1)",
    "(softmax (sub x y) 1)",
)
law(
    "softmax-slice-renorm",
    "(var x f (N M)) (attr a int)",
    "(div (slice (softmax x 1) 1 0 a) (sum (slice (softmax x 1) 1 0 a) (list 1) true))",
    "(softmax (slice x 1 0 a) 1)",
    "(slice (softmax x 1) 1 0 a)",
    where="(>= a 1) (<= a M)",
)
law(
    "lse-cat",
    "(var x f (N M)) (var y f (N L))",
    "(lse (cat (list x y) 1) (list 1))",
    "(logaddexp (lse x (list 1)) (lse y (list 1)))",
    "(add (lse x (list 1)) (lse y (list 1)))",
)
law(
    "lse-scalar",
    "(var x f (N M))",
    "(lse (adds x 3) (list 1))",
    "(adds (lse x (list 1)) 3)",
    "(lse x (list 1))",
)
law(
    "mean-of-mean",
    "(var x f (N (* G K)))",
    "(mean x (list 1))",
    "(mean (mean (view x (list N G K)) (list 2)) (list 1))",
    "(sum (mean (view x (list N G K)) (list 2)) (list 1))",
)
law(
    "std-scale",
    "(var x f (N M)) (attr s float)",
    "(std.correction (muls x s) (list 1) :correction 1)",
    "(muls (std.correction x (list 1) :correction 1) s)",
    (
        "(std.correction (muls x s) (list 1) :correction 1)",
        "(muls (std.correction x (list 1) :correction 1) s)",
        "",
    ),
    where="(> s 0)",
)

if __name__ == "__main__":
    print(
        (
            "; Written by make_published.py: %d rules. A name that begins with no- is of one that "
            "does not hold."
        )
        % len(make_laws.out)
    )
    print("\n".join(make_laws.out))
