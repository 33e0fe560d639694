"""Published rules: products of matrices (TASO, PET, Tensat)."""

from notation import law

A2 = "(var A f (N K)) (var B f (K M)) (var C f (K M))"
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
        "(K M))"
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
        "0) (cat (list x y) 0))"
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
