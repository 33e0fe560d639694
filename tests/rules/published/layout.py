"""Published rules: layout (XLA, MLIR, TVM)."""

from notation import law

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
