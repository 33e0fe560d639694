"""Laws: attention, open leading dimensions, shares of ranks."""

from notation import law

# ---- attention
AT = "h k g"
sc = "(mul (matmul h (T k 2 3)) s)"
law(
    "sdpa",
    AT,
    "(sdpa h k g :scale s)",
    "(matmul (softmax %s -1) g)" % sc,
    "(matmul (softmax %s -2) g)" % sc,
    "(matmul (softmax (matmul h (T k 2 3)) -1) g)",
    "(matmul (softmax %s -1) k)" % sc,
    attrs="(attr s float)",
    where="(> s 0)",
)
law(
    "sdpa-default",
    AT,
    "(sdpa h k g)",
    "(sdpa h k g :scale s)",
    "(sdpa k h g)",
    "(sdpa h k g :scale (+ D 1))" if False else "(sdpa h k g :scale 0.3)",
    where="(= (* (* s s) D) 1) (> s 0)",
    attrs="(attr s float)",
)
law(
    "sdpa-causal",
    AT,
    "(sdpa h k g none 0.0 true)",
    "(sdpa h k g (tril (ones (list S S) :dtype bool)))",
    "(sdpa h k g)",
    "(sdpa h k g (triu (ones (list S S) :dtype bool)))",
)
law("sdpa-T", AT, "(matmul h (T k 2 3))", "(T (matmul k (T h 2 3)) 2 3)", "(matmul k (T h 2 3))")
law(
    "sdpa-q-scale",
    AT,
    "(matmul (mul h s) (T k 2 3))",
    "(matmul h (T (mul k s) 2 3))",
    "(matmul h (T k 2 3))",
    attrs="(attr s float)",
)
law(
    "sdpa-heads",
    (
        "(var h f (B H S D)) (var k f (B H S D)) (var g f (B H S D)) (var H2 f (B L S D)) (var K2 "
        "f (B L S D)) (var G2 f (B L S D))"
    ),
    "(sdpa (cat (list h H2) 1) (cat (list k K2) 1) (cat (list g G2) 1))",
    "(cat (list (sdpa h k g) (sdpa H2 K2 G2)) 1)",
    "(cat (list (sdpa H2 K2 G2) (sdpa h k g)) 1)",
    "(cat (list (sdpa h K2 g) (sdpa H2 k G2)) 1)",
)
law(
    "gqa",
    "(var h f (B H S D)) (var k f (B G S D)) (var g f (B G S D))",
    "(sdpa h (repint k R 1) (repint g R 1))",
    "(sdpa h k g :enable_gqa true)",
    "(sdpa h (repeat k (list 1 R 1 1)) (repeat g (list 1 R 1 1)))",
    where="(= H (* R G)) (>= R 1)",
)

# ---- open leading dimensions
law(
    "lead-softmax",
    "(var x f (... K))",
    "(softmax (add x 1.0) -1)",
    "(softmax x -1)",
    "(softmax x 0)",
)
law(
    "lead-mean",
    "(var x f (... K))",
    "(mean x (list -1))",
    "(div (sum x (list -1)) K)",
    "(sum x (list -1))",
)
law(
    "lead-norm",
    "(var x f (... K))",
    "(rms_norm x (list K) none 1e-06)",
    "(mul x (rsqrt (add (mean (mul x x) (list -1) true) 1e-06)))",
    "(mul x (rsqrt (mean (mul x x) (list -1) true)))",
)
law("lead-unsqueeze", "(var x f (... K))", "(squeeze (unsqueeze x -1) -1)", "x", "(unsqueeze x -1)")
law("unnamed", "(var x f (_ _))", "(T (T x 0 1) 0 1)", "x", "(T x 0 1)")
law(
    "unnamed-each",
    "(var x f (_)) (var y f (_))",
    "(outer x y)",
    "(T (outer y x) 0 1)",
    "(outer y x)",
)

# ---- tensor parallel
law(
    "mlp-shards",
    "(var x f (N K)) (var w f (M K)) (var y f (L K)) (var c f (M O)) (var d f (L O))",
    "(mm (gelu (mm x (T (cat (list w y) 0) 0 1))) (cat (list c d) 0))",
    "(add (mm (gelu (mm x (T w 0 1))) c) (mm (gelu (mm x (T y 0 1))) d))",
    "(mm (gelu (mm x (T w 0 1))) c)",
    "(add (mm (gelu (mm x (T w 0 1))) c) (mm (gelu (mm x (T w 0 1))) c))",
)
law(
    "bias-once",
    "(var x f (N K)) (var e f (N L)) (var w f (O K)) (var y f (O L)) (var n f (O))",
    "(lin (cat (list x e) 1) (cat (list w y) 1) n)",
    "(add (lin x w) (lin e y n))",
    "(add (lin x w n) (lin e y n))",
    "(add (lin x w) (lin e y))",
)
law(
    "gelu-cat",
    "(var x f (N K)) (var e f (N L))",
    "(gelu (cat (list x e) 1))",
    "(cat (list (gelu x) (gelu e)) 1)",
    "(cat (list (gelu e) (gelu x)) 1)",
)
