"""Published rules: convolution and pooling."""

from notation import law

IMG = "(var x f (N C H W)) (var w f (O C 3 3)) (var v f (O C 3 3))"
IMGS = "(var x f (N C H W)) (var y f (N C H W)) (var w f (O C 3 3))"

# ---- convolution and pooling
law(
    "conv-bn-fold",
    (
        "(var x f (N C H W)) (var w f (O C 3 3)) (var g f (O)) (var b f (O)) (var m f (O)) (var r "
        "f (O))"
    ),
    "(batch_norm (conv2d x w) g b m r false 0.1 1e-05 false)",
    (
        "(conv2d x (mul w (view (mul g (rsqrt (add r 1e-05))) (list O 1 1 1))) (sub b (mul m (mul "
        "g (rsqrt (add r 1e-05))))))"
    ),
    "(conv2d x (mul w (view (mul g (rsqrt (add r 1e-05))) (list O 1 1 1))) (sub b m))",
    "(conv2d x (mul w (view g (list O 1 1 1))) (sub b (mul m g)))",
)
law(
    "conv-bn-fold-bias",
    (
        "(var x f (N C T)) (var w f (O C 3)) (var a f (O)) (var g f (O)) (var b f (O)) (var m f "
        "(O)) (var r f (O))"
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
        "(add r 1e-05))))))"
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
        "(add (mul (slice x 2 0 -1) (select w 2 0)) (mul (slice x 2 1 9223372036854775807) (select "
        "w 2 1)))"
    ),
    (
        "(add (mul (slice x 2 0 -1) (select w 2 1)) (mul (slice x 2 1 9223372036854775807) (select "
        "w 2 0)))"
    ),
    where="(>= T 2)",
)
law(
    "patchify",
    "(var x f (N C (* P H) (* P W))) (var w f (O C P P))",
    "(conv2d x w none (list P P))",
    (
        "(permute (view (lin (reshape (permute (view x (list N C H P W P)) (list 0 2 4 1 3 5)) "
        "(list (* (* N H) W) (* C (* P P)))) (reshape w (list O (* C (* P P))))) (list N H W O)) "
        "(list 0 3 1 2))"
    ),
    (
        "(permute (view (lin (reshape (permute (view x (list N C H P W P)) (list 0 2 4 1 5 3)) "
        "(list (* (* N H) W) (* C (* P P)))) (reshape w (list O (* C (* P P))))) (list N H W O)) "
        "(list 0 3 1 2))"
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
