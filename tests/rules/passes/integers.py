"""Passes: integers: quotients, remainders, limits."""

from notation import law

A = "(var A i (N))"
AB = "(var A i (N)) (var B i (N))"
ABC = AB + " (var C i (N))"
INT = " (attr c int) (attr e int)"

# ---- integers: quotients, remainders, limits (simplifiers of array compilers)
law(
    "div-mono-min",
    AB + INT,
    "(minimum (floor_divide.Scalar A c) (floor_divide.Scalar B c))",
    "(floor_divide.Scalar (minimum A B) c)",
    "(floor_divide.Scalar (maximum A B) c)",
    (
        "(minimum (floor_divide.Scalar A c) (floor_divide.Scalar B e))",
        "(floor_divide.Scalar (minimum A B) c)",
        "(> c 0) (> e 0)",
    ),
    where="(> c 0)",
)
law(
    "div-max-three",
    ABC + INT,
    "(maximum (maximum (floor_divide.Scalar A c) B) (floor_divide.Scalar C c))",
    "(maximum (floor_divide.Scalar (maximum A C) c) B)",
    "(maximum (floor_divide.Scalar (maximum A B) c) C)",
    where="(> c 0)",
)
law(
    "div-round-up",
    A + INT,
    "(rsub.Scalar (floor_divide.Scalar (rsub.Scalar A c) e) 0)",
    "(floor_divide.Scalar (adds A (- (- e c) 1)) e)",
    "(floor_divide.Scalar (adds A (- e c)) e)",
    where="(> e 0)",
)
law(
    "minus-div",
    A + INT,
    "(sub A (floor_divide.Scalar A c))",
    "(floor_divide.Scalar (adds (muls A (- c 1)) (- c 1)) c)",
    "(floor_divide.Scalar (muls A (- c 1)) c)",
    where="(> c 0)",
)
law(
    "halves",
    A,
    "(add (floor_divide.Scalar A 2) (rems A 2))",
    "(floor_divide.Scalar (adds A 1) 2)",
    "(floor_divide.Scalar (adds A 2) 2)",
)
law(
    "parity-sum",
    AB,
    "(rems (sub A B) 2)",
    "(rems (add A B) 2)",
    ("(rems (sub A B) 3)", "(rems (add A B) 3)"),
)
law(
    "clamp-multiple",
    AB + INT,
    "(minimum (muls (minimum (floor_divide.Scalar (adds B e) c) A) c) B)",
    "(minimum (muls A c) B)",
    (
        "(minimum (muls (minimum (floor_divide.Scalar (adds B e) c) A) c) B)",
        "(minimum (muls A c) B)",
        "(> c 0) (<= c (+ e 2))",
    ),
    where="(> c 0) (<= c (+ e 1))",
)
law(
    "div-less",
    AB + INT,
    "(lt (floor_divide.Scalar (maximum A (adds (muls B c) e)) c) B)",
    "(lt (floor_divide.Scalar A c) B)",
    (
        "(lt (floor_divide.Scalar (maximum A (adds (muls B c) e)) c) B)",
        "(lt (floor_divide.Scalar A c) B)",
        "(> c 0) (<= e 0)",
    ),
    where="(> c 0) (< e 0)",
)
law(
    "mul-less-neg",
    AB + INT,
    "(lt (muls A c) (muls B c))",
    "(lt B A)",
    ("(lt (muls A c) (muls B c))", "(lt B A)", "(<= c 0)"),
    where="(< c 0)",
)
law(
    "mul-less-pos",
    AB + INT,
    "(le (muls A c) (muls B c))",
    "(le A B)",
    ("(le (muls A c) (muls B c))", "(le A B)", "(>= c 0)"),
    where="(> c 0)",
)
law(
    "product-is-zero",
    AB,
    "(eqs (mul A B) 0)",
    "(logical_or (eqs A 0) (eqs B 0))",
    "(logical_and (eqs A 0) (eqs B 0))",
)
law("product-is-factor", AB, "(eq (mul A B) A)", "(logical_or (eqs A 0) (eqs B 1))", "(eqs B 1)")
law("max-times-min", AB, "(mul (maximum A B) (minimum A B))", "(mul A B)", "(mul A A)")
law(
    "max-minus-max",
    ABC,
    "(sub (maximum A B) (maximum A C))",
    "(maximum (sub A (maximum A C)) (sub B (maximum A C)))",
    "(sub B C)",
)
law(
    "select-max",
    A + INT,
    "(where.ScalarOther (gts A c) (adds A e) (+ c e))",
    "(clamp_min (adds A e) (+ c e))",
    "(clamp_min (adds A e) (+ (+ c e) 2))",
)
law(
    "select-min-scaled",
    A + INT,
    "(where (gts A 0) (clamp_max (muls A c) e) (muls A c))",
    "(clamp_max (muls A c) e)",
    (
        "(where (gts A 0) (clamp_max (muls A c) e) (muls A c))",
        "(clamp_max (muls A c) e)",
        "(>= c 0)",
    ),
    where="(>= c 0) (>= e 0)",
)
law(
    "relu-product",
    AB,
    "(where.ScalarSelf (lts A 0) 0 (mul A B))",
    "(mul (clamp_min A 0) B)",
    "(clamp_min (mul A B) 0)",
)
law(
    "min-of-min-div",
    A + " (attr c int) (attr e int) (attr d int)",
    "(minimum (floor_divide.Scalar (adds A d) c) (muls (floor_divide.Scalar A (* c e)) e))",
    "(floor_divide.Scalar (adds A d) c)",
    "(muls (floor_divide.Scalar A (* c e)) e)",
    where="(> c 0) (> e 0) (<= (- (+ d (* c e)) c) 0)",
)
law(
    "wrap-cancel",
    ABC + " (var D i (N))",
    "(sub (minimum (add (mul (add A B) C) D) B) (mul A C))",
    "(minimum (sub B (mul A C)) (add (mul B C) D))",
    "(minimum (sub B (mul A C)) (add (mul A C) D))",
)
law(
    "mod-nested",
    A + INT,
    "(rems (rems A (* c e)) c)",
    "(rems A c)",
    "(rems A e)",
    where="(> c 0) (> e 0)",
)
law(
    "div-nested",
    A + INT,
    "(floor_divide.Scalar (floor_divide.Scalar A c) e)",
    "(floor_divide.Scalar A (* c e))",
    "(floor_divide.Scalar A (+ c e))",
    where="(> c 0) (> e 0)",
)
law(
    "mod-of-scaled",
    A + INT,
    "(rems (muls A c) (* c e))",
    "(muls (rems A e) c)",
    "(rems (muls A c) e)",
    where="(> c 0) (> e 0)",
)
law(
    "align-up-idempotent",
    A + INT,
    (
        "(muls (floor_divide.Scalar (adds (muls (floor_divide.Scalar (adds A (- c 1)) c) c) (- c "
        "1)) c) c)"
    ),
    "(muls (floor_divide.Scalar (adds A (- c 1)) c) c)",
    "(muls (floor_divide.Scalar A c) c)",
    where="(> c 0)",
)
law(
    "cmp-remainder",
    A + INT,
    "(gts (rems A c) (- c 2))",
    "(eqs (rems A c) (- c 1))",
    "(eqs (rems A c) 1)",
    where="(> c 2)",
)
law(
    "cmp-floor",
    A + INT,
    "(lts (floor_divide.Scalar A c) e)",
    "(lts A (* c e))",
    "(les A (* c e))",
    where="(> c 0)",
)
law(
    "cmp-floor-ge",
    A + INT,
    "(gts (floor_divide.Scalar A c) e)",
    "(gts A (- (+ (* c e) c) 1))",
    "(gts A (* c e))",
    where="(> c 0)",
)
law(
    "ne-or-eq",
    A + INT,
    "(logical_or (nes A c) (eqs A e))",
    "(nes A c)",
    ("(logical_or (nes A c) (eqs A e))", "(nes A c)", ""),
    where="(!= c e)",
)
law(
    "lt-and-le",
    A + INT,
    "(logical_and (lts A c) (les A e))",
    "(lts A c)",
    ("(logical_and (lts A c) (les A e))", "(lts A c)", "(<= (- c 2) e)"),
    where="(<= (- c 1) e)",
)
law(
    "lt-or-gt",
    A + INT,
    "(logical_or (lts A c) (gts A e))",
    "(ones_like A :dtype bool)",
    ("(logical_or (lts A c) (gts A e))", "(ones_like A :dtype bool)", "(<= e c)"),
    where="(< e c)",
)
law("max-eq-left", AB, "(eq (maximum A B) A)", "(ge A B)", "(gt A B)")
law(
    "max-lt-both",
    ABC,
    "(lt (maximum A B) C)",
    "(logical_and (lt A C) (lt B C))",
    "(logical_or (lt A C) (lt B C))",
)
law(
    "min-le-either",
    ABC,
    "(le (minimum A B) C)",
    "(logical_or (le A C) (le B C))",
    "(logical_and (le A C) (le B C))",
)
