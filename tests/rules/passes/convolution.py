"""Passes: convolutions of convolutions, and what folds into them."""

from notation import law

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
        "f (D)) (attr eps float)"
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
