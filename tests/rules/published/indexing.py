"""Published rules: einsum, look-ups and scatters, losses and reductions."""

from notation import law

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
