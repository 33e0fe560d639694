"""Laws: matrices."""

from notation import VARS, law

# ---- products
law(
    "mm-T",
    "a b",
    "(T (mm a b) 0 1)",
    "(mm (T b 0 1) (T a 0 1))",
    "(mm (T a 0 1) (T b 0 1))",
    "(mm a b)",
)
law("mm-assoc", "a b d", "(mm (mm a b) d)", "(mm a (mm b d))", "(mm a b)")
law(
    "mm-dist",
    "a b c",
    "(mm a (add b c))",
    "(add (mm a b) (mm a c))",
    "(add (mm a b) c)",
    "(mm a b)",
)
law("mm-scale", "a b", "(mm (mul a 2.0) b)", "(mul (mm a b) 2.0)", "(mm (mul a 2.0) (mul b 2.0))")
law(
    "mm-scale-attr",
    "a b",
    "(mm (mul a s) (mul b t))",
    "(mul (mm a b) (* s t))" if False else "(mul (mul (mm a b) s) t)",
    "(mul (mm a b) s)",
    attrs="(attr s float) (attr t float)",
)
law("mm-neg", "a b", "(mm (neg a) b)", "(mm a (neg b))", "(mm a b)")
law(
    "mm-sum",
    "a b",
    "(mm a b)",
    "(sum (mul (unsqueeze a 2) (unsqueeze b 0)) (list 1))",
    "(sum (mul (unsqueeze a 2) (unsqueeze b 0)) (list 0))",
)
law("mm-matmul", "a b", "(mm a b)", "(matmul a b)", "(mm (mul a 1.001) b)")
law(
    "mm-row-scale",
    "a b u",
    "(mm (mul a (unsqueeze u 1)) b)",
    "(mul (mm a b) (unsqueeze u 1))",
    "(mm a b)",
)
law("mm-col-scale", "a b v", "(mul (mm a b) v)", "(mm a (mul b v))", "(mm a b)")
law(
    "linear-addmm",
    "(var a f (N K)) (var c f (K M)) (var v f (M))",
    "(lin a (T c 0 1) v)",
    "(addmm v a c)",
    "(lin a (T c 0 1))",
    "(addmm v a c :beta 2)",
    "(add (addmm v a c) v)",
)
law(
    "linear-mm",
    "(var a f (N K)) (var c f (M K))",
    "(lin a c)",
    "(mm a (T c 0 1))",
    "(mm c (T a 0 1))",
)
law(
    "linear-square-trap",
    "(var a f (K K)) (var c f (K K))",
    "(lin a c)",
    "(mm a (T c 0 1))",
    "(mm a c)",
    "(mm (T a 0 1) c)",
)
law(
    "linear-lead",
    "(var x f (... K)) (var c f (M K))",
    "(lin x c)",
    "(matmul x (T c 0 1))",
    "(mul (matmul x (T c 0 1)) 2.0)",
)
law(
    "addmm",
    "x a b",
    "(addmm x a b :beta 2 :alpha 3)",
    "(add (mul x 2.0) (mul (mm a b) 3.0))",
    "(add (mul x 3.0) (mul (mm a b) 2.0))",
    "(add x (mm a b))",
)
law(
    "addmm-attr",
    "x a b",
    "(addmm x a b :beta s :alpha t)",
    "(add (mul x s) (mul (mm a b) t))",
    "(add (mul x t) (mul (mm a b) s))",
    attrs="(attr s float) (attr t float)",
)
law(
    "bmm",
    "(var a f (B N K)) (var b f (B K M))",
    "(bmm a b)",
    "(matmul a b)",
    "(matmul b a)" if False else "(matmul a (flip b (list 0)))",
)
law(
    "bmm-T",
    "(var a f (B N K)) (var b f (B K M))",
    "(T (bmm a b) 1 2)",
    "(bmm (T b 1 2) (T a 1 2))",
    "(bmm a b)",
)
law(
    "baddbmm",
    "(var x f (B N M)) (var a f (B N K)) (var b f (B K M))",
    "(baddbmm x a b)",
    "(add x (bmm a b))",
    "(bmm a b)",
    "(sub x (bmm a b))",
)
law("mv", "x v", "(mv x v)", "(squeeze (mm x (unsqueeze v 1)) 1)", "(sum x (list 1))")
law(
    "dot",
    "v (var n f (M))".replace("v ", VARS["v"] + " "),
    "(dot v n)",
    "(aten::sum (mul v n))",
    "(aten::sum (add v n))",
)
law(
    "outer",
    "u v",
    "(outer u v)",
    "(mul (unsqueeze u 1) (unsqueeze v 0))",
    "(add (unsqueeze u 1) (unsqueeze v 0))",
)
law("einsum-mm", "a b", '(einsum "ik,km->im" (list a b))', "(mm a b)", "(mul (mm a b) 2.0)")
law("einsum-T", "x", '(einsum "ij->ji" (list x))', "(T x 0 1)", "x")
law("einsum-sum", "x", '(einsum "ij->i" (list x))', "(sum x (list 1))", "(sum x (list 0))")
law(
    "block-mm",
    "(var a f (N K)) (var b f (N L)) (var c f (K M)) (var d f (L M))",
    "(mm (cat (list a b) 1) (cat (list c d) 0))",
    "(add (mm a c) (mm b d))",
    "(mm a c)",
    "(sub (mm a c) (mm b d))",
)
law(
    "mm-cat-cols",
    "a b c",
    "(mm a (cat (list b c) 1))",
    "(cat (list (mm a b) (mm a c)) 1)",
    "(cat (list (mm a c) (mm a b)) 1)",
    "(cat (list (mm a b) (mm a b)) 1)",
)
law(
    "mm-cat-rows",
    "(var a f (N K)) (var e f (L K)) (var b f (K M))",
    "(mm (cat (list a e) 0) b)",
    "(cat (list (mm a b) (mm e b)) 0)",
    "(cat (list (mm e b) (mm a b)) 0)",
)
law(
    "linear-fused",
    "(var x f (N K)) (var w f (M K)) (var y f (L K))",
    "(slice (lin x (cat (list w y) 0)) 1 0 M)",
    "(lin x w)",
    "(lin x y)",
    ("(slice (lin x (cat (list w y) 0)) 1 L)", "(lin x w)"),
)
law(
    "conv-linear",
    "(var x f (B C 1)) (var w f (O C 1))",
    "(squeeze (conv1d x w) 2)",
    "(lin (squeeze x 2) (squeeze w 2))",
    "(neg (lin (squeeze x 2) (squeeze w 2)))",
)
law(
    "conv-scale",
    "(var x f (B C L)) (var w f (O C 2))",
    "(conv1d (mul x 2.0) w)",
    "(mul (conv1d x w) 2.0)",
    "(conv1d x w)",
)
law(
    "conv-add",
    "(var x f (B C L)) (var w f (O C 2)) (var y f (O C 2))",
    "(conv1d x (add w y))",
    "(add (conv1d x w) (conv1d x y))",
    "(conv1d x w)",
)
law(
    "conv-cat",
    "(var x f (B C L)) (var w f (O C 2)) (var y f (P C 2))",
    "(conv1d x (cat (list w y) 0))",
    "(cat (list (conv1d x w) (conv1d x y)) 1)",
    "(cat (list (conv1d x y) (conv1d x w)) 1)",
)
law(
    "conv-bias",
    "(var x f (B C L)) (var w f (O C 2)) (var n f (O))",
    "(conv1d x w n)",
    "(add (conv1d x w) (unsqueeze n 1))",
    "(conv1d x w)",
)
law(
    "conv-merge",
    "(var x f (B 2 5 5)) (var w f (3 2 3 3)) (var y f (3 2 3 3))",
    "(add (conv2d x w) (conv2d x y))",
    "(conv2d x (add w y))",
    "(conv2d x w)",
)
law(
    "conv-enlarge",
    "(var x f (1 2 4 4)) (var w f (3 2 1 1))",
    "(conv2d x w)",
    "(conv2d x (constant_pad_nd w (list 1 1 1 1)) none (list 1 1) (list 1 1))",
    "(conv2d x (constant_pad_nd w (list 0 2 1 1)) none (list 1 1) (list 1 1))",
)
law(
    "avg-pool",
    "(var x f (B C L))",
    "(avg_pool1d x (list 2) (list 2))",
    "(squeeze (avg_pool2d (unsqueeze x 2) (list 1 2) (list 1 2)) 2)",
    "(max_pool1d x (list 2) (list 2))",
)
law(
    "max-pool-relu",
    "(var x f (B C H W))",
    "(max_pool2d (relu x) (list 2 2))",
    "(relu (max_pool2d x (list 2 2)))",
    "(max_pool2d x (list 2 2))",
    where="(>= H 2) (>= W 2)",
)
law(
    "avg-pool-linear",
    "(var x f (B C H W))",
    "(avg_pool2d (mul x 3.0) (list 2 2))",
    "(mul (avg_pool2d x (list 2 2)) 3.0)",
    "(avg_pool2d x (list 2 2))",
    where="(>= H 2) (>= W 2)",
)
