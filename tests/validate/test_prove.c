/* The prover: true rules are proved by the means expected, wrong ones never. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "validate/validate.h"
#include "tests/support/suite.h"

typedef struct example {
  const char *vars, *lhs, *rhs;
} example;

static rule_verdict prove(const example *e) {
  static char text[1 << 14];
  rule_set *set = NULL;
  rule_schemas *schemas = NULL;
  rule_verdict v = {.status = RULE_REFUTED};
  iso_error err = {ISO_OK, ""};
  snprintf(text, sizeof text, "(rule r %s (lhs %s) (rhs %s))", e->vars, e->lhs, e->rhs);
  ck_assert_msg(rule_set_parse(text, SIZE_MAX, "test", &set, &err) == ISO_OK, "%s: %s", err.msg,
                text);
  ck_assert_uint_eq(rule_set_count(set), 1);
  ck_assert_int_eq(rule_schemas_new(&schemas, &err), ISO_OK);
  ck_assert_msg(val_prove(rule_set_at(set, 0), schemas, &(val_options){.z3_rlimit = 5000000}, &v,
                          &err) == ISO_OK,
                "%s: %s", err.msg, text);
  rule_schemas_free(schemas);
  rule_set_free(set);
  if (getenv("PROVE_VERBOSE"))
    fprintf(stderr, "%ld %s [%s] %s: %s\n", (long)clock() / 1000, rule_status_name(v.status),
            rule_verdict_method(&v, (char[RULE_METHOD_TEXT]){0}), v.reason, text);
  return v;
}

/* ---- true rules ---- */

#define X34 "(var x f (3 4))"
#define LIN X34 "(var w f (5 4)) (var b f (5))"
#define ROT "(var x f (2 6)) (var y f (2 6)) (var c f (2 6)) (var s f (2 6))"
#define QKV "(var q f (1 2 3 4)) (var k f (1 2 3 4)) (var v f (1 2 3 4))"
#define SCORES "(aten::matmul q (aten::transpose.int k -2 -1))"
#define CAUSAL \
  "(aten::where.self (aten::le.Tensor (aten::arange 3) (aten::unsqueeze (aten::arange 3) 1)) S " \
  "(aten::scalar_tensor -inf))"

static const example moved[] = {
    {X34, "(aten::transpose.int (aten::transpose.int x 0 1) 0 1)", "x"},
    {X34, "(aten::t x)", "(aten::permute x (list 1 0))"},
    {X34, "(aten::view (aten::unsqueeze x 0) (list 12))", "(aten::flatten.using_ints x)"},
    {X34, "(aten::to.dtype x bfloat16)", "x"},
    {X34, "(aten::contiguous (aten::dropout x 0.1 false))", "(aten::alias x)"},
    {X34 "(var y f (3 4))", "(getitem (aten::split.Tensor (aten::cat (list x y) 1) 4 1) 1)", "y"},
    {X34 "(var y f (3 2))",
     "(getitem (aten::split_with_sizes (aten::cat (list x y) 1) (list 4 2) 1) 0)", "x"},
    {X34, "(aten::cat (list (getitem (aten::chunk x 2 -1) 0) (getitem (aten::chunk x 2 -1) 1)) -1)",
     "x"},
    {X34, "(aten::slice.Tensor x 1 2 9223372036854775807)", "(getitem (aten::chunk x 2 1) 1)"},
    {X34, "(aten::stack (list x x) 0)", "(aten::expand (aten::unsqueeze x 0) (list 2 -1 -1))"},
    {X34,
     "(aten::stack (list (aten::select.int x 0 0) (aten::select.int x 0 1) "
     "(aten::select.int x 0 2)) 0)",
     "x"},
    {X34, "(aten::stack (list (aten::select.int x 0 2) (aten::select.int x 0 1)) 1)",
     "(aten::transpose.int (aten::flip (aten::slice.Tensor x 0 1 3) (list 0)) 0 1)"},
    {X34, "(aten::flip (aten::flip x (list 0 1)) (list 1))", "(aten::flip x (list 0))"},
    {X34, "(aten::roll x (list 1) (list 0))",
     "(aten::cat (list (aten::narrow x 0 2 1) (aten::narrow x 0 0 2)) 0)"},
    {"(var x f (2 3 4 5))", "(aten::movedim.int x 1 3)", "(aten::permute x (list 0 2 3 1))"},
    {"(var x f (2 3 4))",
     "(aten::reshape (aten::expand (aten::unsqueeze x 1) (list 2 2 3 4)) (list 4 3 4))",
     "(aten::repeat_interleave.self_int x 2 0)"},
    {X34, "(getitem (aten::unbind.int x 0) 2)", "(aten::select.int x 0 -1)"},
    {"(var w f (10 4)) (var i i (2 3))", "(aten::embedding w (aten::view i (list 6)))",
     "(aten::view (aten::embedding w i) (list 6 4))"},
    {"(var w f (10 4))", "(aten::embedding w (aten::arange 3))", "(aten::slice.Tensor w 0 0 3)"},
    {"(var w f (10 4)) (var i i (3))", "(aten::index_select w 0 i)", "(aten::embedding w i)"},
    {"", "(aten::arange.start 2 5)", "(aten::slice.Tensor (aten::arange 8) 0 2 5)"},
};

static const example normal[] = {
    {LIN, "(aten::linear (aten::unsqueeze x 0) w b)", "(aten::unsqueeze (aten::linear x w b) 0)"},
    {X34 "(var c f (4 5)) (var b f (5))", "(aten::linear x (aten::transpose.int c 0 1) b)",
     "(aten::addmm b x c)"},
    {LIN, "(aten::linear x w b)", "(aten::add.Tensor (aten::mm x (aten::t w)) b)"},
    {LIN, "(aten::linear x w b)", "(aten::add.Tensor b (aten::matmul x (aten::t w)))"},
    {X34 "(var w f (5 4)) (var u f (2 4))",
     "(getitem (aten::split_with_sizes (aten::linear x (aten::cat (list w u) 0)) (list 5 2) -1) 1)",
     "(aten::linear x u)"},
    {X34
     "(var p f (5 4)) (var q f (2 4)) (var r f (2 4)) (var bp f (5)) (var bq f (2)) (var br f (2))",
     "(getitem (aten::split_with_sizes (aten::linear x (aten::cat (list p q r) 0) (aten::cat (list "
     "bp bq br) 0)) "
     "(list 5 2 2) -1) 0)",
     "(aten::linear x p bp)"},
    {X34 "(var w f (5 4)) (var y f (3 2)) (var u f (5 2))",
     "(aten::linear (aten::cat (list x y) 1) (aten::cat (list w u) 1))",
     "(aten::add.Tensor (aten::linear x w) (aten::linear y u))"},
    {X34 "(var y f (3 4)) (var w f (5 4))", "(aten::linear (aten::add.Tensor x y) w)",
     "(aten::add.Tensor (aten::linear x w) (aten::linear y w))"},
    {X34 "(var y f (3 4)) (var z f (3 4))", "(aten::add.Tensor (aten::add.Tensor x y) z)",
     "(aten::add.Tensor x (aten::add.Tensor y z))"},
    {X34 "(var y f (3 4)) (var z f (3 4))", "(aten::mul.Tensor (aten::add.Tensor x y) z)",
     "(aten::add.Tensor (aten::mul.Tensor x z) (aten::mul.Tensor z y))"},
    {X34, "(aten::mul.Tensor x (aten::sigmoid x))", "(aten::silu x)"},
    {X34, "(aten::div.Tensor x (aten::add.Tensor (aten::exp (aten::neg x)) 1))", "(aten::silu x)"},
    {X34, "(aten::reciprocal (aten::sqrt x))", "(aten::rsqrt x)"},
    {X34, "(aten::pow.Tensor_Scalar x 2)", "(aten::mul.Tensor x x)"},
    {X34, "(aten::pow.Tensor_Scalar x 2.0)", "(aten::square x)"},
    {X34, "(aten::pow.Tensor_Scalar x -0.5)", "(aten::rsqrt x)"},
    {X34, "(aten::rsub.Scalar x 1.0)", "(aten::add.Tensor (aten::neg x) 1.0)"},
    {X34, "(aten::relu (aten::relu x))", "(aten::clamp_min x 0)"},
    {X34, "(aten::div.Tensor x 2.0)", "(aten::mul.Tensor x 0.5)"},
    {X34,
     "(aten::unsqueeze (aten::mul.Tensor x (aten::rsqrt (aten::add.Tensor (aten::mean.dim "
     "(aten::pow.Tensor_Scalar x 2) "
     "(list -1) true) 1e-06))) 0)",
     "(aten::mul.Tensor (aten::unsqueeze x 0) (aten::rsqrt (aten::add.Tensor (aten::mean.dim "
     "(aten::pow.Tensor_Scalar "
     "(aten::unsqueeze x 0) 2) (list -1) true) 1e-06)))"},
    {"(var x f (3 4)) (var w f (4)) (var b f (4))", "(aten::layer_norm x (list 4) w b 1e-05)",
     "(aten::add.Tensor (aten::mul.Tensor (aten::mul.Tensor (aten::sub.Tensor x (aten::mean.dim x "
     "(list -1) true)) "
     "(aten::rsqrt (aten::add.Tensor (aten::mean.dim (aten::pow.Tensor_Scalar (aten::sub.Tensor x "
     "(aten::mean.dim x "
     "(list -1) true)) 2) (list -1) true) 1e-05))) w) b)"},
    {"(var x f (3 4)) (var w f (4)) (var b f (4))",
     "(getitem (aten::native_layer_norm x (list 4) w b 1e-05) 0)",
     "(aten::layer_norm x (list 4) w b 1e-05)"},
    {X34, "(aten::mean.dim x (list 1))", "(aten::div.Tensor (aten::sum.dim_IntList x (list 1)) 4)"},
    {X34, "(aten::mean.dim x (list 1))",
     "(aten::mul.Tensor (aten::sum.dim_IntList x (list 1)) 0.25)"},
    {X34, "(aten::softmax.int x -1)",
     "(aten::div.Tensor (aten::exp x) (aten::sum.dim_IntList (aten::exp x) (list -1) true))"},
    {X34, "(aten::softmax.int x -1)",
     "(aten::div.Tensor (aten::exp (aten::sub.Tensor x (aten::amax x (list -1) true))) "
     "(aten::sum.dim_IntList "
     "(aten::exp (aten::sub.Tensor x (aten::amax x (list -1) true))) (list -1) true))"},
    {X34, "(aten::softmax.int x 0)",
     "(aten::transpose.int (aten::_softmax (aten::t x) 1 false) 0 1)"},
    {X34, "(aten::cumsum x 1)", "(aten::matmul x (aten::triu (aten::ones (list 4 4))))"},
    {X34, "(aten::gelu x)",
     "(aten::mul.Tensor (aten::mul.Tensor x 0.5) (aten::add.Tensor (aten::erf (aten::mul.Tensor x "
     "0.7071067811865476)) 1.0))"},
    {X34, "(aten::gelu x)",
     "(aten::mul.Tensor (aten::mul.Tensor x 0.5) (aten::add.Tensor (aten::erf (aten::div.Tensor x "
     "1.4142135623730951)) 1.0))"},
    {X34, "(aten::gelu x :approximate \"tanh\")",
     "(aten::mul.Tensor (aten::mul.Tensor x 0.5) (aten::add.Tensor (aten::tanh (aten::mul.Tensor "
     "(aten::add.Tensor x "
     "(aten::mul.Tensor (aten::pow.Tensor_Scalar x 3.0) 0.044715)) 0.7978845608028654)) 1.0))"},
    {X34, "(_C::gelu_new.isomer x)", "(aten::gelu x :approximate \"tanh\")"},
    {ROT,
     "(aten::cat (list (aten::sub.Tensor (aten::mul.Tensor x c) (aten::mul.Tensor y s)) "
     "(aten::add.Tensor (aten::mul.Tensor y c) (aten::mul.Tensor x s))) -1)",
     "(aten::add.Tensor (aten::mul.Tensor (aten::cat (list x y) -1) (aten::cat (list c c) -1)) "
     "(aten::mul.Tensor (aten::cat (list (aten::neg y) x) -1) (aten::cat (list s s) -1)))"},
    {QKV, "(aten::matmul (aten::softmax.int (aten::mul.Tensor " SCORES " 0.5) -1) v)",
     "(aten::scaled_dot_product_attention q k v)"},
    {QKV,
     "(aten::matmul (aten::softmax.int (aten::matmul (aten::mul.Tensor q 0.5) (aten::transpose.int "
     "k -2 -1)) -1) v)",
     "(aten::scaled_dot_product_attention q k v)"},
    {"(var q f (1 2 3 12)) (var k f (1 2 3 12)) (var v f (1 2 3 12))",
     "(aten::scaled_dot_product_attention q k v :scale 0.28867513459481287)",
     "(aten::scaled_dot_product_attention q k v)"},
    {QKV,
     "(aten::matmul (aten::softmax.int (aten::where.self (aten::le.Tensor (aten::arange 3) "
     "(aten::unsqueeze (aten::arange "
     "3) 1)) (aten::mul.Tensor " SCORES " 0.5) (aten::scalar_tensor -inf)) -1) v)",
     "(aten::scaled_dot_product_attention q k v none 0.0 true)"},
    {QKV,
     "(aten::matmul (aten::softmax.int (aten::add.Tensor (aten::mul.Tensor " SCORES
     " 0.5) (aten::triu (aten::full "
     "(list 3 3) -3.4028234663852886e+38) 1)) -1) v)",
     "(aten::scaled_dot_product_attention q k v none 0.0 true)"},
    {QKV "(var m b (3 3))", "(aten::scaled_dot_product_attention q k v m)",
     "(aten::scaled_dot_product_attention q k v (aten::where.self m (aten::zeros (list 3 3)) "
     "(aten::scalar_tensor -inf)))"},
    {"(var q f (1 4 3 2)) (var k f (1 2 3 2)) (var v f (1 2 3 2))",
     "(aten::scaled_dot_product_attention q k v none 0.0 true :enable_gqa true)",
     "(aten::scaled_dot_product_attention q (aten::repeat_interleave.self_int k 2 1) "
     "(aten::repeat_interleave.self_int v 2 1) "
     "none 0.0 true)"},
    {"(var q f (3 8)) (var k f (3 4)) (var v f (3 4))",
     "(vllm::unified_attention.isomer q k v :num_heads 4 :num_kv_heads 2 :head_size 2 :scale "
     "0.7071067811865475 "
     ":sliding_window none :logits_soft_cap none :alibi_slopes none :causal true)",
     "(aten::reshape (aten::transpose.int (aten::scaled_dot_product_attention (aten::transpose.int "
     "(aten::view q (list 1 3 4 2)) "
     "1 2) (aten::transpose.int (aten::view k (list 1 3 2 2)) 1 2) (aten::transpose.int "
     "(aten::view v (list 1 3 2 2)) 1 2) "
     "none 0.0 true :enable_gqa true) 1 2) (list 3 8))"},
    {"(var x f (3 4)) (var w f (4))", "(_C::rms_norm.isomer x w 1e-06)",
     "(aten::mul.Tensor w (aten::mul.Tensor x (aten::rsqrt (aten::add.Tensor (aten::mean.dim "
     "(aten::pow.Tensor_Scalar x 2) "
     "(list -1) true) 1e-06))))"},
    {"(var x f (3 4)) (var r f (3 4)) (var w f (4))",
     "(getitem (_C::fused_add_rms_norm.isomer x r w 1e-06) 0)",
     "(_C::rms_norm.isomer (aten::add.Tensor r x) w 1e-06)"},
    {"(var x f (3 8))", "(_C::silu_and_mul.isomer x)",
     "(aten::mul.Tensor (aten::silu (getitem (aten::chunk x 2 -1) 0)) (getitem (aten::chunk x 2 "
     "-1) 1))"},
    {"(var p i (3)) (var q f (3 8)) (var k f (3 4)) (var t f (5 4))",
     "(aten::view (getitem (_C::rotary_embedding.isomer p q k 4 t true) 0) (list 3 2 4))",
     "(aten::cat (list (aten::sub.Tensor (aten::mul.Tensor (aten::slice.Tensor (aten::view q (list "
     "3 2 4)) 2 0 2) "
     "(aten::slice.Tensor (aten::unsqueeze (aten::index_select t 0 p) 1) 2 0 2)) (aten::mul.Tensor "
     "(aten::slice.Tensor "
     "(aten::view q (list 3 2 4)) 2 2 4) (aten::slice.Tensor (aten::unsqueeze (aten::index_select "
     "t 0 p) 1) 2 2 4))) "
     "(aten::add.Tensor (aten::mul.Tensor (aten::slice.Tensor (aten::view q (list 3 2 4)) 2 2 4) "
     "(aten::slice.Tensor "
     "(aten::unsqueeze (aten::index_select t 0 p) 1) 2 0 2)) (aten::mul.Tensor (aten::slice.Tensor "
     "(aten::view q (list 3 2 4)) "
     "2 0 2) (aten::slice.Tensor (aten::unsqueeze (aten::index_select t 0 p) 1) 2 2 4)))) -1)"},
    {"(var a f (2 3 4)) (var b f (2 4 5)) (var c f (2 3 5))", "(aten::baddbmm c a b)",
     "(aten::add.Tensor (aten::bmm a b) c)"},
    {"(var a f (3 4)) (var b f (4 5)) (var c f (5 2))", "(aten::mm (aten::mm a b) c)",
     "(aten::mm a (aten::mm b c))"},
    {X34, "(aten::neg (aten::maximum (aten::neg x) 0))", "(aten::clamp x none 0)"},
};

static const example chosen[] = {
    {"(var x f (2))", "(aten::where.self (aten::gt.Scalar x 0) x (aten::zeros_like x))",
     "(aten::relu x)"},
    {"(var x f (2))", "(aten::where.self (aten::ge.Scalar x 0) x (aten::neg x))", "(aten::abs x)"},
    {"(var x f (2)) (var y f (2))", "(aten::minimum x y)",
     "(aten::where.self (aten::lt.Tensor x y) x y)"},
    {"(var m b (2)) (var n b (2))", "(aten::logical_not (aten::logical_and m n))",
     "(aten::logical_or (aten::logical_not m) (aten::logical_not n))"},
    {"(var m b (3)) (var x f (3)) (var y f (3))",
     "(aten::where.self m (aten::mul.Tensor x y) (aten::zeros_like x))",
     "(aten::mul.Tensor (aten::where.self m x (aten::zeros_like x)) y)"},
    {X34, "(aten::sigmoid (aten::neg x))", "(aten::rsub.Scalar (aten::sigmoid x) 1)"},
    {X34, "(aten::tanh x)",
     "(aten::sub.Tensor (aten::mul.Tensor (aten::sigmoid (aten::mul.Tensor x 2)) 2) 1)"},
};

static const example any_shape[] = {
    {"(var x f _)", "(aten::relu x)", "(aten::relu (aten::relu x))"},
    {"(var x f _) (var y f _)", "(aten::mul.Tensor x y)", "(aten::mul.Tensor y x)"},
    {"(var x f _)", "(aten::silu x)", "(aten::mul.Tensor x (aten::sigmoid x))"},
};

static void all_proved(const example *e, size_t n, rule_method method) {
  for (size_t i = 0; i < n; i++) {
    rule_verdict v = prove(&e[i]);
    ck_assert_msg(v.status == RULE_PROVED, "%s: %s <=> %s", v.reason, e[i].lhs, e[i].rhs);
    ck_assert_msg(v.method == method, "%d instead of %d: %s", (int)v.method, (int)method, e[i].lhs);
    ck_assert_int_eq((int)v.scope, (int)RULE_THESE_SHAPES);
  }
}

#define LENGTH(a) (sizeof(a) / sizeof *(a))

START_TEST(moves_are_rearrangements) { all_proved(moved, LENGTH(moved), RULE_BY_ELEMENT); }
END_TEST
START_TEST(arithmetic_has_a_normal_form) { all_proved(normal, LENGTH(normal), RULE_BY_ELEMENT); }
END_TEST
START_TEST(choices_are_cases) { all_proved(chosen, LENGTH(chosen), RULE_BY_ELEMENT); }
END_TEST

START_TEST(elementwise_rules_hold_for_any_shape) {
  for (size_t i = 0; i < LENGTH(any_shape); i++) {
    rule_verdict v = prove(&any_shape[i]);
    ck_assert_msg(v.status == RULE_PROVED, "%s: %s", v.reason, any_shape[i].lhs);
    ck_assert_int_eq((int)v.scope, (int)RULE_ALL_SHAPES);
  }
}
END_TEST

/* ---- wrong rules ---- */

static const example wrong[] = {
    {LIN, "(aten::linear x w b)", "(aten::add.Tensor (aten::linear x w b) b)"},
    {LIN, "(aten::linear x w b)", "(aten::linear x w)"},
    {"(var x f (4 4)) (var w f (4 4))", "(aten::linear x w)", "(aten::linear w x)"},
    {"(var x f (4 4)) (var w f (4 4))", "(aten::linear x w)", "(aten::mm x w)"},
    {"(var x f (4 4)) (var c f (4 4)) (var b f (4))", "(aten::linear x c b)",
     "(aten::addmm b x c)"},
    {"(var x f (4 4))", "(aten::transpose.int x 0 1)", "x"},
    {"(var x f (4 4))", "(aten::softmax.int x 0)", "(aten::softmax.int x 1)"},
    {"(var x f (4 4))", "(aten::view x (list 16))", "(aten::view (aten::t x) (list 16))"},
    {X34, "(aten::reshape x (list 4 3))", "(aten::t x)"},
    {X34, "(aten::gelu x)", "(aten::gelu x :approximate \"tanh\")"},
    {X34 "(var w f (4))", "(aten::layer_norm x (list 4) w none 1e-05)",
     "(aten::layer_norm x (list 4) w none 1e-06)"},
    {X34 "(var w f (4))", "(_C::rms_norm.isomer x w 1e-05)", "(_C::rms_norm.isomer x w 1e-06)"},
    {X34, "(getitem (aten::chunk x 2 -1) 0)", "(getitem (aten::chunk x 2 -1) 1)"},
    {X34 "(var y f (3 4))", "(aten::cat (list x y) 0)", "(aten::cat (list y x) 0)"},
    {X34, "(aten::rsqrt x)", "(aten::reciprocal x)"},
    {X34, "(aten::pow.Tensor_Scalar x 2)", "(aten::pow.Tensor_Scalar x 3)"},
    {X34, "(aten::sqrt (aten::square x))", "x"},
    {X34, "(aten::div.Tensor (aten::mul.Tensor x x) x)", "(aten::abs x)"},
    {X34, "(aten::silu x)", "(aten::sigmoid x)"},
    {X34, "(aten::mean.dim x (list 1))", "(aten::sum.dim_IntList x (list 1))"},
    {X34, "(aten::mean.dim x (list 1))", "(aten::mean.dim x (list 1) true)"},
    {X34, "(aten::relu x)", "(aten::abs x)"},
    {X34, "(aten::relu x)", "x"},
    {X34, "(aten::mul.Tensor x 0.3)",
     "(aten::div.Tensor (aten::mul.Tensor x 3) 10)"}, /* the double 0.3 is not 3/10 */
    {"(var x i (3))", "(aten::to.dtype x bool)", "x"},
    {"(var x i (3))", "(aten::to.dtype x float32)", "x"},
    {"(var x f (3))", "(aten::to.dtype (aten::to.dtype x int64) float32)", "x"},
    {QKV, "(aten::scaled_dot_product_attention q k v)",
     "(aten::scaled_dot_product_attention q k v none 0.0 true)"},
    {QKV, "(aten::scaled_dot_product_attention q k v)",
     "(aten::scaled_dot_product_attention q v k)"},
    {QKV, "(aten::scaled_dot_product_attention q k v)",
     "(aten::scaled_dot_product_attention q k v :scale 0.25)"},
    {QKV, "(aten::matmul (aten::softmax.int " SCORES " -1) v)",
     "(aten::scaled_dot_product_attention q k v)"},
    {QKV "(var m b (3 3))", "(aten::scaled_dot_product_attention q k v m)",
     "(aten::scaled_dot_product_attention q k v (aten::logical_not m))"},
    /* A wholly masked row: 0 on one side, uniform on the other. */
    {QKV "(var m b (3 3))", "(aten::scaled_dot_product_attention q k v m)",
     "(aten::scaled_dot_product_attention q k v (aten::where.self m (aten::zeros (list 3 3)) "
     "(aten::scalar_tensor "
     "-3.4028234663852886e+38)))"},
    {"(var q f (1 4 3 2)) (var k f (1 2 3 2)) (var v f (1 2 3 2))",
     "(aten::scaled_dot_product_attention q k v none 0.0 true :enable_gqa true)",
     "(aten::scaled_dot_product_attention q (aten::repeat k (list 1 2 1 1)) (aten::repeat v (list "
     "1 2 1 1)) none 0.0 true)"},
    {ROT,
     "(aten::cat (list (aten::sub.Tensor (aten::mul.Tensor x c) (aten::mul.Tensor y s)) "
     "(aten::add.Tensor (aten::mul.Tensor y c) (aten::mul.Tensor x s))) -1)",
     "(aten::add.Tensor (aten::mul.Tensor (aten::cat (list x y) -1) (aten::cat (list c c) -1)) "
     "(aten::mul.Tensor (aten::cat (list y x) -1) (aten::cat (list s s) -1)))"},
    {"(var p i (3)) (var q f (3 8)) (var k f (3 4)) (var t f (5 4))",
     "(getitem (_C::rotary_embedding.isomer p q k 4 t true) 0)",
     "(getitem (_C::rotary_embedding.isomer p q k 4 t false) 0)"},
    {"(var x f (3 8))", "(_C::silu_and_mul.isomer x)",
     "(aten::mul.Tensor (aten::silu (getitem (aten::chunk x 2 -1) 1)) (getitem (aten::chunk x 2 "
     "-1) 0))"},
    {"(var x f (3 4)) (var r f (3 4)) (var w f (4))",
     "(getitem (_C::fused_add_rms_norm.isomer x r w 1e-06) 0)",
     "(getitem (_C::fused_add_rms_norm.isomer x r w 1e-06) 1)"},
    {"(var w f (10 4)) (var i i (3)) (var j i (3))", "(aten::embedding w i)",
     "(aten::embedding w j)"},
    {"(var w f (10 4)) (var u f (10 4)) (var i i (3))", "(aten::embedding w i)",
     "(aten::embedding u i)"},
    {X34, "(aten::dropout x 0.1 true)", "x"},
    {X34, "(aten::tril (aten::softmax.int x -1))", "(aten::softmax.int (aten::tril x) -1)"},
    {"(var x f (2)) (var y f (2))", "(aten::minimum x y)",
     "(aten::where.self (aten::gt.Tensor x y) x y)"},
    {"(var x f _) (var y f _)", "(aten::sub.Tensor (aten::add.Tensor x y) y)",
     "x"}, /* broadcasting */
    {"(var x f _) (var y f _)", "(aten::sub.Tensor x y)", "(aten::sub.Tensor y x)"},
    {"(var x f (N M))", "(aten::transpose.int x 0 1)", "x"},
    {X34, "(aten::exp (aten::add.Tensor x 1))", "(aten::add.Tensor (aten::exp x) 1)"},
    {X34, "(aten::tanh x)", "(aten::sigmoid x)"},
    {X34, "(aten::cos x)", "(aten::sin x)"},
    {X34, "(aten::sin (aten::neg x))", "(aten::sin x)"},
    {X34, "(aten::zeros_like x)", "(aten::mul.Tensor x -inf)"},
    /* Whole parts that are large, or of numbers next to 0. */
    {X34, "(aten::mul.Tensor x (aten::floor (aten::full (list 3 4) 3000000000.5 :dtype float64)))",
     "(aten::mul.Tensor x 0.0)"},
    {X34, "(aten::mul.Tensor x (aten::floor (aten::full (list 3 4) -1e-40 :dtype float64)))",
     "(aten::mul.Tensor x 0.0)"},
};

START_TEST(wrong_rules_are_not_proved) {
  for (size_t i = 0; i < LENGTH(wrong); i++) {
    rule_verdict v = prove(&wrong[i]);
    ck_assert_msg(v.status == RULE_UNKNOWN, "%s: %s <=> %s",
                  rule_verdict_method(&v, (char[RULE_METHOD_TEXT]){0}), wrong[i].lhs, wrong[i].rhs);
    ck_assert_msg(v.reason[0], "no reason: %s", wrong[i].lhs);
  }
}
END_TEST

START_TEST(assumptions_are_named) {
  const example kernel = {
      "(var x f (3 8)) (var w f (8))", "(_C::silu_and_mul.isomer (_C::rms_norm.isomer x w 1e-06))",
      "(_C::silu_and_mul.isomer (_C::rms_norm.isomer (aten::alias x) w 1e-06))"};
  rule_verdict v = prove(&kernel);
  ck_assert_int_eq((int)v.status, (int)RULE_PROVED);
  ck_assert_str_eq(rule_verdict_method(&v, (char[RULE_METHOD_TEXT]){0}),
                   "generic element, relative to kernels");
  ck_assert_str_eq(v.reason, "relative to _C::rms_norm.isomer, _C::silu_and_mul.isomer");
  const example literal = {"(var x f (3))", "(aten::mul.Tensor x 0.7071067811865476)",
                           "(aten::div.Tensor x 1.4142135623730951)"};
  v = prove(&literal);
  ck_assert_str_eq(rule_verdict_method(&v, (char[RULE_METHOD_TEXT]){0}),
                   "generic element, literals read");
  ck_assert_uint_eq(v.rests_on, RULE_RESTS_ON_LITERALS);
}
END_TEST

START_TEST(large_contractions_stay_small) {
  const example e[] = {
      {"(var x f (7 48)) (var w f (48 144)) (var b f (144))",
       "(aten::unsqueeze (aten::addmm b x w) 0)",
       "(aten::linear (aten::unsqueeze x 0) (aten::t w) b)"},
      {"(var x f (4 2048)) (var w f (64 2048))", "(aten::linear x w)", "(aten::mm x (aten::t w))"},
  };
  all_proved(e, LENGTH(e), RULE_BY_ELEMENT);
}
END_TEST

START_TEST(answers_do_not_change) {
  rule_verdict a = prove(&chosen[0]), b = prove(&chosen[0]);
  ck_assert_int_eq((int)a.method, (int)b.method);
  ck_assert_uint_eq(a.rests_on, b.rests_on);
  ck_assert_int_eq((int)a.status, (int)b.status);
}
END_TEST

/* ---- bounds ---- */

static rule_verdict prove_within(const char *text, const val_options *o, double *seconds) {
  rule_set *set = NULL;
  rule_schemas *schemas = NULL;
  rule_verdict v = {.status = RULE_REFUTED};
  iso_error err = {ISO_OK, ""};
  ck_assert_msg(rule_set_parse(text, SIZE_MAX, "test", &set, &err) == ISO_OK, "%s: %s", err.msg,
                text);
  ck_assert_int_eq(rule_schemas_new(&schemas, &err), ISO_OK);
  const clock_t before = clock();
  ck_assert_msg(val_prove(rule_set_at(set, 0), schemas, o, &v, &err) == ISO_OK, "%s: %s", err.msg,
                text);
  *seconds = (double)(clock() - before) / CLOCKS_PER_SEC;
  rule_schemas_free(schemas);
  rule_set_free(set);
  return v;
}

/* Each element is a quotient of sums of a few hundred clamped sums: too much for Z3, which must not
 * be given it. */
#define CLAMPED(X, W) "(aten::clamp (aten::mm " X " " W ") -8.0 8.0)"
#define ATTEND \
  "(aten::mm (aten::softmax.int (aten::mm " CLAMPED("x", "w") " (aten::t " CLAMPED( \
      "x", "u") ")) -1) " CLAMPED("x", "y") ")"
static const char *const large =
    "(rule r (var x f (9 16)) (var w f (16 16)) (var u f (16 16)) (var y f (16 16)) (lhs "
    "(aten::mm " ATTEND " w)) (rhs (aten::mm " ATTEND " u)))";

START_TEST(large_elements_are_given_up) {
  double seconds;
  const rule_verdict v = prove_within(large, &(val_options){.z3_rlimit = 5000000}, &seconds);
  ck_assert_int_eq((int)v.status, (int)RULE_UNKNOWN);
  ck_assert_msg(seconds < 20, "%g s, %s", seconds, v.reason);
}
END_TEST

typedef struct countdown {
  long left;
} countdown;

static const char *counted(void *ctx) {
  countdown *c = ctx;
  return __atomic_sub_fetch(&c->left, 1, __ATOMIC_SEQ_CST) < 0 ? "enough" : NULL;
}

/* Wherever it falls, a stop ends the proof with its reason and never with a claim that a longer run
 * would not make. */
START_TEST(a_stop_ends_a_proof) {
  for (long k = 0; k < 200; k = 2 * k + 1) {
    countdown c = {k};
    double seconds;
    const rule_verdict v = prove_within(
        large, &(val_options){.z3_rlimit = 5000000, .stop = counted, .ctx = &c}, &seconds);
    ck_assert_int_eq((int)v.status, (int)RULE_UNKNOWN);
    if (k == 0) ck_assert_str_eq(v.reason, "enough");
    if (k == 0) ck_assert_msg(seconds < 0.5, "%g s after the stop", seconds);
  }
}
END_TEST

int main(void) {
  Suite *s = suite_create("prove");
  TCase *t = tcase_create("prove");
  tcase_set_timeout(t, 120);
  tcase_add_test(t, moves_are_rearrangements);
  tcase_add_test(t, arithmetic_has_a_normal_form);
  tcase_add_test(t, choices_are_cases);
  tcase_add_test(t, elementwise_rules_hold_for_any_shape);
  tcase_add_test(t, wrong_rules_are_not_proved);
  tcase_add_test(t, assumptions_are_named);
  tcase_add_test(t, large_contractions_stay_small);
  tcase_add_test(t, answers_do_not_change);
  tcase_add_test(t, large_elements_are_given_up);
  tcase_add_test(t, a_stop_ends_a_proof);
  suite_add_tcase(s, t);
  return run_suite(s);
}
