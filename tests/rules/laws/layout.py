"""Laws: reshaping, cutting, joining; look-ups."""

from notation import law

# ---- layout
law("T-T", "x", "(T (T x 0 1) 0 1)", "x", "(T x 0 1)")
law("t-T", "x", "(aten::t x)", "(T x 0 1)", "x")
law("T-neg-dim", "t", "(T t 1 2)", "(T t -2 -1)", "(T t 0 1)", "(T t 0 2)")
law("T-swap", "t", "(T t 0 2)", "(T t 2 0)", "(T t 1 2)")
law(
    "permute", "t", "(permute t (list 0 2 1))", "(T t 1 2)", "(T t 0 1)", "(permute t (list 1 2 0))"
)
law(
    "permute-permute",
    "t",
    "(permute (permute t (list 1 2 0)) (list 1 2 0))",
    "(permute t (list 2 0 1))",
    "(permute t (list 1 2 0))",
    "t",
)
law(
    "permute-inverse",
    "t",
    "(permute (permute t (list 1 2 0)) (list 2 0 1))",
    "t",
    "(permute t (list 2 0 1))",
)
law("T-add", "x y", "(T (add x y) 0 1)", "(add (T x 0 1) (T y 0 1))", "(add x y)")
law("T-relu", "x", "(T (relu x) 0 1)", "(relu (T x 0 1))", "(relu x)")
law(
    "view-view",
    "x",
    "(view (view x (list (* N M))) (list M N))",
    "(view x (list M N))",
    "(T x 0 1)",
)
law("view-back", "x", "(view (view x (list (* N M))) (list N M))", "x", "(neg x)")
law("reshape-infer", "x", "(reshape x (list -1))", "(flatten x)", "(flatten (T x 0 1))")
law(
    "reshape-view",
    "t",
    "(reshape t (list B (* N M)))",
    "(flatten t 1 2)",
    "(flatten (T t 1 2) 1 2)",
    "(reshape (T t 0 1) (list B (* N M)))",
)
law(
    "view-relu",
    "x",
    "(relu (view x (list (* N M))))",
    "(view (relu x) (list (* N M)))",
    "(view x (list (* N M)))",
)
law(
    "view-attr",
    "x",
    "(view (view x (list A B)) (list N M))",
    "x",
    "(neg x)",
    where="(= (* A B) (* N M))",
)
law("unsqueeze-squeeze", "x", "(squeeze (unsqueeze x 1) 1)", "x", "(unsqueeze x 1)")
law("unsqueeze-view", "x", "(unsqueeze x 1)", "(view x (list N 1 M))", "(view x (list 1 N M))")
law(
    "unsqueeze-attr",
    "x",
    "(squeeze (unsqueeze x d) d)",
    "x",
    "(unsqueeze x d)",
    attrs="(attr d int)",
)
law("expand", "v", "(expand v (list N M))", "(repeat v (list N 1))", "(repeat v (list 1 N))")
law("expand-add", "x v", "(add x (expand v (list N M)))", "(add x v)", "x")
law("expand-sum", "v", "(sum (expand v (list N M)) (list 0))", "(mul v N)", "(mul v M)", "v")
law(
    "repeat-cat",
    "x",
    "(repeat x (list 2 1))",
    "(cat (list x x) 0)",
    "(cat (list x x) 1)",
    "(repeat x (list 1 2))",
)
law(
    "repint",
    "x",
    "(repint x 2 0)",
    "(view (expand (unsqueeze x 1) (list N 2 M)) (list (* 2 N) M))",
    "(repeat x (list 2 1))",
    "(repint x 2 1)",
)
law(
    "repint-attr",
    "x",
    "(repint x R 0)",
    "(view (expand (unsqueeze x 1) (list N R M)) (list (* N R) M))",
    "(repeat x (list R 1))",
    where="(>= R 1)",
)
law(
    "cat-relu",
    "x y",
    "(relu (cat (list x y) 0))",
    "(cat (list (relu x) (relu y)) 0)",
    "(cat (list x y) 0)",
    "(cat (list (relu y) (relu x)) 0)",
)
law(
    "cat-assoc",
    "x y z",
    "(cat (list (cat (list x y) 0) z) 0)",
    "(cat (list x y z) 0)",
    "(cat (list y x z) 0)",
    "(cat (list x y z) 1)",
)
law(
    "cat-T",
    "x y",
    "(T (cat (list x y) 0) 0 1)",
    "(cat (list (T x 0 1) (T y 0 1)) 1)",
    "(cat (list (T x 0 1) (T y 0 1)) 0)",
)
law(
    "cat-slice",
    "(var x f (N M)) (var y f (K M))",
    "(slice (cat (list x y) 0) 0 0 N)",
    "x",
    "(neg x)",
    ("(slice (cat (list x y) 0) 0 1 (+ N 1))", "x"),
    ("(slice (cat (list x y) 0) 0 0 K)", "x"),
)
law(
    "cat-slice-2",
    "(var x f (N M)) (var y f (K M))",
    "(slice (cat (list x y) 0) 0 N)",
    "y",
    ("(slice (cat (list x y) 0) 0 K)", "y"),
)
law(
    "slice-cat",
    "x",
    "(cat (list (slice x 0 0 k) (slice x 0 k)) 0)",
    "x",
    "(cat (list (slice x 0 k) (slice x 0 0 k)) 0)",
    ("(cat (list (slice x 0 0 k) (slice x 0 (+ k 1))) 0)", "x"),
    where="(>= k 0)",
)
law(
    "cat-big-small",
    "x",
    "(cat (list (mul x 1000000.0) (mul x 0.001)) 1)",
    "(cat (list (mul x 1000000.0) (div x 1000.0)) 1)",
    "(cat (list (mul x 1000000.0) (mul x 0.0010001)) 1)",
    "(cat (list (mul x 1000000.0) (mul x 0.0)) 1)",
)
law(
    "cat-sum",
    "x y",
    "(sum (cat (list x y) 0) (list 0))",
    "(add (sum x (list 0)) (sum y (list 0)))",
    "(sum x (list 0))",
)
law(
    "stack",
    "x y",
    "(stack (list x y) 0)",
    "(cat (list (unsqueeze x 0) (unsqueeze y 0)) 0)",
    "(cat (list (unsqueeze y 0) (unsqueeze x 0)) 0)",
    "(stack (list x y) 1)",
)
law("stack-select", "x y", "(select (stack (list x y) 0) 0 1)", "y", "x")
law("stack-sum", "x y", "(sum (stack (list x y) 0) (list 0))", "(add x y)", "x")
law(
    "select-slice",
    "x",
    "(select x 0 0)",
    "(squeeze (slice x 0 0 1) 0)",
    "(select x 0 -1)",
    "(select x 1 0)",
)
law(
    "select-attr",
    "x",
    "(select x 0 k)",
    "(squeeze (slice x 0 k (+ k 1)) 0)",
    "(select x 0 (- k 1))" if False else "(select x 0 0)",
    where="(>= k 0) (< k N)",
)
law("slice-slice", "x", "(slice (slice x 0 1) 0 1)", "(slice x 0 2)", "(slice x 0 1)")
law(
    "slice-slice-attr",
    "x",
    "(slice (slice x 0 a) 0 b)",
    "(slice x 0 (+ a b))",
    "(slice x 0 b)",
    where="(>= a 0) (>= b 0)",
)
law(
    "slice-add",
    "x y",
    "(slice (add x y) 0 1)",
    "(add (slice x 0 1) (slice y 0 1))",
    ("(slice (add x y) 0 1)", "(slice x 0 1)"),
)
law(
    "slice-mm",
    "a b",
    "(slice (mm a b) 1 0 k)",
    "(mm a (slice b 1 0 k))",
    ("(slice (mm a b) 0 0 k)", "(mm a (slice b 1 0 k))"),
    where="(>= k 1) (<= k M)",
)
law(
    "slice-step",
    "x",
    "(slice x 0 0 none 2)" if False else "(slice x 0 0 9223372036854775807 2)",
    "(index_select x 0 (arange.start_step 0 N 2))",
    "(slice x 0 1 9223372036854775807 2)",
    "(slice x 0 0 9223372036854775807 3)",
)
law(
    "narrow",
    "x",
    "(narrow x 0 k l)",
    "(slice x 0 k (+ k l))",
    "(slice x 0 k l)",
    where="(>= k 0) (>= l 1) (<= (+ k l) N)",
)
law(
    "split-chunk",
    "x",
    "(getitem (split x S 1) 1)",
    "(getitem (chunk x 3 1) 1)",
    "(getitem (chunk x 3 1) 0)",
    ("(getitem (split x S 1) 1)", "(getitem (chunk x 3 1) 1)", "(= (* 2 S) M)"),
    where="(= (* 3 S) M)",
)
law(
    "split-slice",
    "x",
    "(getitem (split x S 0) 0)",
    "(slice x 0 0 S)",
    "(slice x 0 1 S)",
    "(slice x 0 0 (+ S 1))",
    where="(>= S 1)",
)
law(
    "split-cat",
    "x",
    "(cat (list (getitem (split x S 0) 0) (getitem (split x S 0) 1)) 0)",
    "x",
    "(cat (list (getitem (split x S 0) 1) (getitem (split x S 0) 0)) 0)",
    where="(= (* 2 S) N)",
)
law("unbind", "(var x f (2 M))", "(getitem (unbind x 0) 1)", "(select x 0 1)", "(select x 0 0)")
law("flip-flip", "x", "(flip (flip x (list 0)) (list 0))", "x", "(flip x (list 0))")
law(
    "flip-both",
    "x",
    "(flip x (list 0 1))",
    "(flip (flip x (list 1)) (list 0))",
    "(flip x (list 0))",
)
law(
    "flip-sum",
    "x",
    "(sum (flip x (list 1)) (list 1))",
    "(sum x (list 1))",
    ("(sum (flip x (list 0)) (list 1))", "(sum x (list 1))"),
)
law(
    "flip-cat",
    "x y",
    "(flip (cat (list x y) 0) (list 0))",
    "(cat (list (flip y (list 0)) (flip x (list 0))) 0)",
    "(cat (list (flip x (list 0)) (flip y (list 0))) 0)",
)
law(
    "roll-roll",
    "x",
    "(roll (roll x (list 1) (list 0)) (list 2) (list 0))",
    "(roll x (list 3) (list 0))",
    "(roll x (list 2) (list 0))",
)
law(
    "roll-back",
    "x",
    "(roll (roll x (list k) (list 0)) (list (- 0 k)) (list 0))",
    "x",
    "(roll x (list k) (list 0))",
)
law(
    "roll-full",
    "x",
    "(roll x (list N) (list 0))",
    "x",
    ("(roll x (list M) (list 0))", "x"),
    ("(roll x (list (+ N 1)) (list 0))", "x"),
)
law(
    "tril-triu",
    "(var x f (N N))",
    "(add (tril x) (triu x 1))",
    "x",
    "(add (tril x) (triu x))",
    "(tril x)",
)
law(
    "tril-T",
    "(var x f (N N))",
    "(T (tril x) 0 1)",
    "(triu (T x 0 1))",
    "(tril (T x 0 1))",
    "(triu x)",
)
law("tril-idem", "x", "(tril (tril x))", "(tril x)", "x", "(triu x)", "(tril x -1)")
law(
    "tril-mask",
    "(var x f (N N))",
    "(tril x)",
    "(mul x (tril (ones (list N N) :dtype float64)))",
    "(mul x (triu (ones (list N N) :dtype float64)))",
    "(mul x (tril (ones (list N N) :dtype float64) -1))",
)
law(
    "pad-zero",
    "x",
    "(constant_pad_nd x (list 0 2))",
    "(cat (list x (zeros (list N 2) :dtype float64)) 1)",
    "(cat (list (zeros (list N 2) :dtype float64) x) 1)",
    "(cat (list x (ones (list N 2) :dtype float64)) 1)",
)
law(
    "pad-slice",
    "x",
    "(slice (constant_pad_nd x (list 1 1)) 1 1 (+ M 1))",
    "x",
    ("(slice (constant_pad_nd x (list 1 1)) 1 0 M)", "x"),
)
law(
    "pad-sum",
    "x",
    "(sum (constant_pad_nd x (list 1 1)) (list 1))",
    "(sum x (list 1))",
    ("(sum (constant_pad_nd x (list 1 1) 1.0) (list 1))", "(sum x (list 1))"),
)
law(
    "diag",
    "(var x f (N N))",
    "(diagonal x)",
    "(diagonal (T x 0 1))",
    "(neg (diagonal x))",
    "(diagonal x 0 1 0)" if False else "(diagonal (flip x (list 0)))",
)
law(
    "movedim",
    "t",
    "(movedim.int t 0 2)",
    "(permute t (list 1 2 0))",
    "(permute t (list 2 0 1))",
    "t",
)
law("clone", "X", "(clone X)", "X", "(neg X)")
law("contiguous", "x", "(contiguous (T x 0 1))", "(T x 0 1)", "x")
law("cast-float", "X", "(to X float16)", "X", "(neg X)")
law(
    "cast-int",
    "I",
    "(to (to I float64) int64)",
    "I",
    ("(to (to I float32) int64)", "I"),
    ("(to (to I bfloat16) int64)", "I"),
    ("(to (to I float16) int64)", "I"),
)
law(
    "cast-int-float",
    "I",
    "(to I float64)",
    "(mul (to I float64) 1.0)",
    "(to (to I int32) float64)",
    "(to (to I int8) float64)",
    "(to I bfloat16)",
    "(to I float16)",
    "(to I float32)",
)
law(
    "cast-int32",
    "I",
    "(to (to I int32) int32)",
    "(to I int32)",
    ("(to (to I int32) int64)", "I"),
    ("(to (to I int8) int64)", "I"),
    ("(to (to I int16) int64)", "I"),
    "I",
)
law("cast-trunc", "X", "(to (to X int64) float64)", "(trunc X)", "(floor X)", "(round X)", "X")
law("cast-bool", "X", "(to X bool)", "(nes X 0)", "(gts X 0)")
law("int-add", "I J", "(add I J)", "(add J I)", "(sub I J)", "(add I I)")
law(
    "int-mul-shift",
    "I",
    "(mul.Scalar I 4)" if False else "(muls I 4)",
    "(shl I 2)",
    "(shl I 1)",
    "(shl I 3)",
)
law(
    "int-div",
    "i",
    '(divm i (full_like i 2) :rounding_mode "floor")',
    "(bitwise_right_shift.Tensor_Scalar i 1)",
    '(divm i (full_like i 2) :rounding_mode "trunc")',
)

# ---- indexing
W = "(var w f (V M)) (var i i (N))"
law(
    "embedding",
    W,
    "(embedding w i)",
    "(index_select w 0 i)",
    "(embedding (flip w (list 0)) i)",
    "(mul (embedding w i) 2.0)",
)
law(
    "embedding-scale",
    W,
    "(embedding (mul w 2.0) i)",
    "(mul (embedding w i) 2.0)",
    "(embedding w i)",
)
law(
    "embedding-range",
    W,
    "(embedding w i)",
    "(embedding (slice w 0 0 R) i)",
    ("(embedding w i)", "(embedding (slice (roll w (list 1) (list 0)) 0 0 R) i)"),
    where="(in i 0 R) (<= R V)",
)
law(
    "embedding-clamp",
    W,
    "(embedding w i)",
    "(embedding w (clamp i 0 (- V 1)))",
    "(embedding w (clamp i 1 none))",
    "(embedding w (clamp i none (- V 2)))" if False else "(embedding w (clamp i 0 0))",
)
law(
    "one-hot",
    W,
    "(mm (to (one_hot i V) float64) w)",
    "(embedding w i)",
    "(embedding (neg w) i)",
    where="(in i 0 V)",
)
law(
    "index-T",
    W,
    "(index_select (T w 0 1) 1 i)",
    "(T (index_select w 0 i) 0 1)",
    "(index_select w 0 i)",
)
law(
    "gather-self",
    "(var x f (N M)) (var i i (N M))",
    "(gather (mul x 2.0) 1 i)",
    "(mul (gather x 1 i) 2.0)",
    "(gather x 1 i)",
)
law(
    "gather-dim",
    "(var x f (N N)) (var i i (N N))",
    "(gather x 0 i)",
    "(T (gather (T x 0 1) 1 (T i 0 1)) 0 1)",
    "(gather x 1 i)",
    "(T (gather x 1 (T i 0 1)) 0 1)",
)
law(
    "index",
    W,
    "(index.Tensor w (list i))",
    "(index.Tensor (cat (list w w) 0) (list (remainder.Scalar i V)))",
    "(index.Tensor (flip w (list 0)) (list i))",
)
law(
    "arange-index",
    "x",
    "(index_select x 0 (arange N))",
    "x",
    "(neg x)",
    "(index_select x 0 (flip (arange N) (list 0)))",
)
law(
    "flip-index",
    "x",
    "(flip x (list 0))",
    "(index_select x 0 (sub (full (list N) (- N 1)) (arange N)))",
    "x",
)
law(
    "arange",
    "u",
    "(add u (arange N))",
    "(add u (arange.start 0 N))",
    "(add u (arange.start 1 (+ N 1)))",
)
law("full", "x", "(add x (full (list N M) 2.0))", "(add x 2.0)", "(add x (full (list N M) 3.0))")
law("ones", "x", "(mul x (ones (list N M)))", "x", "(mul x (zeros (list N M)))")
law("eye", "(var x f (N M))", "(mm (eye N :dtype float64) x)", "x", "(neg x)")
