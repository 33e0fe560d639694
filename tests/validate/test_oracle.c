/* The whole ladder (needs libtorch): true rules come out tested or proved, wrong ones refuted, on
 * every seed. */
#include "tests/validate/engine_test.h"

#include <sys/resource.h>

typedef struct pair {
  const char *vars, *lhs, *rhs;
} pair;

static rule_verdict decide(const pair *p, const rule_tensor *mask) {
  static char text[1 << 14];
  rule_set *set = NULL;
  rule_verdict v[4];
  iso_error err = {0};
  snprintf(text, sizeof text, "(rule r %s (lhs %s) (rhs %s))", p->vars, p->lhs, p->rhs);
  ck_assert_msg(rule_set_parse(text, SIZE_MAX, "test", &set, &err) == ISO_OK, "%s: %s", err.msg,
                text);
  const rule *r = rule_set_at(set, 0);
  rule_tensor *example[8] = {NULL};
  ck_assert_uint_le(r->n_vars, 8);
  for (uint32_t i = 0; i < r->n_vars; i++)
    if (mask && strcmp(r->var[i].name, "m") == 0) example[i] = (rule_tensor *)mask;
  for (uint64_t seed = 0; seed < 4; seed++) {
    val_options o = val_options_default();
    val_engine *e = NULL;
    o.seed = seed;
    ck_assert_msg(val_new(&o, schemas, &e, &err) == ISO_OK, "%s", err.msg);
    ck_assert_msg(val_decide(e, r, example, &v[seed], &err) == ISO_OK, "%s: %s", err.msg, text);
    val_free(e);
    ck_assert_msg(v[seed].status == v[0].status, "%s with seed 0, %s with seed %d (%s): %s",
                  rule_status_name(v[0].status), rule_status_name(v[seed].status), (int)seed,
                  v[seed].reason, text);
    ck_assert_uint_eq(v[seed].seed, seed);
  }
  rule_set_free(set);
  if (getenv("ORACLE_VERBOSE"))
    fprintf(stderr, "%s [%s] %s: %s\n", rule_status_name(v[0].status),
            rule_verdict_method(&v[0], (char[RULE_METHOD_TEXT]){0}), v[0].reason, text);
  return v[0];
}

static void holds(const pair *p) {
  rule_verdict v = decide(p, NULL);
  ck_assert_msg(v.status == RULE_TESTED || v.status == RULE_PROVED, "%s (%s): %s <=> %s",
                rule_status_name(v.status), v.reason, p->lhs, p->rhs);
  ck_assert_uint_ge(v.n_samples, 1);
  ck_assert(v.max_rel <= v.rel_tol && v.method != RULE_BY_NOTHING && v.scope != RULE_SCOPE_NONE);
}

static void fails(const pair *p, const rule_tensor *mask) {
  rule_verdict v = decide(p, mask);
  ck_assert_msg(v.status == RULE_REFUTED, "%s (%s): %s <=> %s", rule_status_name(v.status),
                rule_verdict_method(&v, (char[RULE_METHOD_TEXT]){0}), p->lhs, p->rhs);
  ck_assert(v.reason[0] != 0);
}

#define X34 "(var x f (3 4))"
#define XY X34 " (var y f (3 4))"
#define QKV "(var q f (1 2 3 4)) (var k f (1 2 3 4)) (var v f (1 2 3 4))"
#define SCORES "(aten::matmul q (aten::transpose.int k -2 -1))"
#define ATTEND(scores) "(aten::matmul (aten::softmax.int " scores " -1) v)"
#define SCALED "(aten::mul.Tensor " SCORES " 0.5)"
#define RMS(eps) \
  "(aten::mul.Tensor x (aten::rsqrt (aten::add.Tensor (aten::mean.dim (aten::pow.Tensor_Scalar x " \
  "2) (list -1) true) " eps ")))"
#define INNER \
  "(aten::mul.Tensor (aten::add.Tensor x (aten::mul.Tensor (aten::pow.Tensor_Scalar x 3.0) " \
  "0.044715)) 0.7978845608028654)"
#define TRIANGLE(low) "(aten::triu (aten::full (list 3 3) " low " :dtype float64) 1)"
#define LOW "-3.4028234663852886e+38"

/* Each with variants that differ in one thing. */
static const pair right[] = {
    {X34, "(aten::gelu x)",
     "(aten::mul.Tensor (aten::mul.Tensor x 0.5) (aten::add.Tensor (aten::erf (aten::mul.Tensor x "
     "0.7071067811865476)) 1.0))"},
    {X34, "(aten::gelu x :approximate \"tanh\")",
     "(aten::mul.Tensor (aten::mul.Tensor x 0.5) (aten::add.Tensor (aten::tanh " INNER ") 1.0))"},
    {X34 " (var w f (4)) (var b f (4))", "(aten::layer_norm x (list 4) w b 1e-05)",
     "(getitem (aten::native_layer_norm x (list 4) w b 1e-05) 0)"},
    {X34, RMS("1e-06"), "(aten::rms_norm x (list 4) none 1e-06)"},
    {QKV, "(aten::scaled_dot_product_attention q k v)", ATTEND(SCALED)},
    {QKV, "(aten::scaled_dot_product_attention q k v :scale 0.25)",
     ATTEND("(aten::mul.Tensor " SCORES " 0.25)")},
    {QKV, "(aten::scaled_dot_product_attention q k v none 0.0 true)",
     ATTEND("(aten::add.Tensor " SCALED " " TRIANGLE("-inf") ")")},
    {QKV, "(aten::scaled_dot_product_attention q k v none 0.0 true)",
     ATTEND("(aten::add.Tensor " SCALED " " TRIANGLE(LOW) ")")},
    {XY, "(aten::sub.Tensor x y)", "(aten::add.Tensor x (aten::neg y))"},
    {XY, "(aten::sub.Tensor x y)", "(aten::neg (aten::sub.Tensor y x))"},
    {X34, "(aten::softmax.int x 1)", "(aten::softmax.int x -1)"},
    {X34, "(aten::softmax.int x 0)", "(aten::t (aten::softmax.int (aten::t x) 1))"},
    {X34, "(aten::clamp (aten::relu x) none 6)", "(aten::clamp x 0 6)"},
    {X34, "(aten::abs (aten::abs x))", "(aten::abs x)"},
    {X34, "(aten::add.Tensor (aten::relu x) (aten::neg (aten::relu (aten::neg x))))", "x"},
    {"(var w f (10 4)) (var i i (3))", "(aten::index_select w 0 i)", "(aten::embedding w i)"},
    {"(var w f (10 4)) (var i i (2 3))", "(aten::mul.Tensor (aten::embedding w i) 2.0)",
     "(aten::embedding (aten::mul.Tensor w 2.0) i)"},
    /* Indices stay below 5: the smaller table bounds them. */
    {"(var w f (5 4)) (var u f (7 4)) (var i i (6))",
     "(aten::add.Tensor (aten::embedding w i) (aten::embedding u i))",
     "(aten::embedding (aten::add.Tensor w (aten::slice.Tensor u 0 0 5)) i)"},
};

static const pair wrong[] = {
    {X34, "(aten::gelu x)", "(aten::gelu x :approximate \"tanh\")"},
    {X34, "(aten::gelu x)",
     "(aten::mul.Tensor (aten::mul.Tensor x 0.5) (aten::add.Tensor (aten::tanh " INNER ") 1.0))"},
    {X34, "(aten::gelu x)", "(aten::silu x)"},
    {X34 " (var w f (4)) (var b f (4))", "(aten::layer_norm x (list 4) w b 1e-05)",
     "(aten::layer_norm x (list 4) w b 1e-06)"},
    {X34, RMS("1e-06"), RMS("1e-05")},
    {X34, RMS("1e-06"), "(aten::rms_norm x (list 4) none 1e-05)"},
    {X34 " (var w f (4))", "(_C::rms_norm.isomer x w 1e-06)", "(_C::rms_norm.isomer x w 1e-05)"},
    {QKV, "(aten::scaled_dot_product_attention q k v)", ATTEND(SCORES)},
    {QKV, "(aten::scaled_dot_product_attention q k v)",
     "(aten::scaled_dot_product_attention q k v :scale 0.25)"},
    {QKV, "(aten::scaled_dot_product_attention q k v)",
     "(aten::scaled_dot_product_attention q k v :scale 0.50001)"},
    {QKV, "(aten::scaled_dot_product_attention q k v)",
     "(aten::scaled_dot_product_attention k q v)"},
    {QKV, "(aten::scaled_dot_product_attention q k v)",
     "(aten::scaled_dot_product_attention q k v none 0.0 true)"},
    {QKV, "(aten::scaled_dot_product_attention q k v none 0.0 true)",
     ATTEND("(aten::add.Tensor " SCALED
            " (aten::tril (aten::full (list 3 3) -inf :dtype float64) -1))")},
    {XY, "(aten::sub.Tensor x y)", "(aten::sub.Tensor y x)"},
    {XY, "(aten::sub.Tensor x y)", "(aten::add.Tensor x y)"},
    {XY, "(aten::div.Tensor x y)", "(aten::div.Tensor y x)"},
    {XY, "(aten::add.Tensor x y)", "(aten::add.Tensor x y :alpha 2)"},
    {X34, "(aten::softmax.int x 1)", "(aten::softmax.int x 0)"},
    {"(var x f (4 4))", "(aten::softmax.int x 1)", "(aten::softmax.int x 0)"},
    {"(var x f (4 4))", "(aten::mean.dim x (list 1))", "(aten::mean.dim x (list 0))"},
    {X34, "(aten::clamp x -7 7)", "x"},
    {X34, "(aten::clamp x -300.0 300.0)", "x"},
    {X34, "(aten::clamp x 0 6)", "(aten::relu x)"},
    {X34, "(aten::clamp x 0 6)", "(aten::clamp x 0 5)"},
    {X34, "x", "(aten::abs x)"},
    {X34, "x", "(aten::relu x)"},
    {X34, "x", "(aten::neg x)"},
    {X34, "(aten::relu x)", "(aten::leaky_relu x)"},
    {X34, "(aten::ge.Scalar x 0)", "(aten::gt.Scalar x 0)"},
    {X34, "x", "(aten::unsqueeze x 0)"},
    {X34, "x", "(aten::t x)"},
    {X34, "(aten::gt.Scalar x 0)", "(aten::relu x)"},
    {"(var w f (10 4)) (var u f (10 4)) (var i i (3))", "(aten::embedding w i)",
     "(aten::embedding u i)"},
    {"(var w f (10 4)) (var u f (12 4)) (var i i (3))", "(aten::embedding w i)",
     "(aten::embedding u i)"},
    {"(var w f (10 4)) (var i i (3))", "(aten::embedding w i)",
     "(aten::embedding (aten::flip w (list 0)) i)"},
    {"(var w f (10 4)) (var i i (3)) (var j i (3))", "(aten::embedding w i)",
     "(aten::embedding w j)"},
    /* They differ at the first and at the last row of a table only. */
    {"(var w f (1000 4)) (var i i (3))", "(aten::embedding w i)",
     "(aten::embedding (aten::cat (list (aten::slice.Tensor w 0 0 999) (aten::slice.Tensor w 0 0 "
     "1)) 0) i)"},
    {"(var w f (1000 4)) (var i i (3))", "(aten::embedding w i)",
     "(aten::embedding w (aten::clamp i none 998))"},
    {"(var w f (1000 4)) (var i i (3))", "(aten::embedding w i)",
     "(aten::embedding w (aten::clamp i 1 none))"},
};

/* One at a time, so that each has Check's time limit. */
START_TEST(true_rules_hold) { holds(&right[_i]); }
END_TEST

START_TEST(wrong_rules_are_refuted) {
  fails(&wrong[_i], NULL);
  const pair turned = {wrong[_i].vars, wrong[_i].rhs, wrong[_i].lhs};
  fails(&turned, NULL);
}
END_TEST

/* Rows that are masked wholly: minus infinity gives NaN or zeros, -3.4e38 the mean of all. */
#define FULL_ROW(low) \
  "(aten::add.Tensor " SCALED " (aten::triu (aten::full (list 3 3) " low " :dtype float64) 0))"
static const pair masked_right = {QKV,
                                  "(aten::scaled_dot_product_attention q k v " TRIANGLE("-inf") ")",
                                  "(aten::scaled_dot_product_attention q k v " TRIANGLE(LOW) ")"};
static const pair masked_wrong[] = {
    {QKV, TRIANGLE("-inf"), TRIANGLE(LOW)},
    {QKV,
     "(aten::scaled_dot_product_attention q k v (aten::triu (aten::full (list 3 3) -inf :dtype "
     "float64) 0))",
     ATTEND(FULL_ROW(LOW))},
    {X34 " (var m b (3 4))", "(aten::masked_fill.Scalar x m -inf)",
     "(aten::masked_fill.Scalar x m " LOW ")"},
    {X34 " (var m b (3 4))", "(aten::_safe_softmax (aten::masked_fill.Scalar x m -inf) -1)",
     "(aten::softmax.int (aten::masked_fill.Scalar x m " LOW ") -1)"},
    {QKV " (var m b (3 3))", "(aten::scaled_dot_product_attention q k v m)",
     ATTEND("(aten::masked_fill.Scalar " SCALED " (aten::logical_not m) " LOW ")")},
};

START_TEST(masks_hide_what_they_hide) { holds(&masked_right); }
END_TEST

START_TEST(a_row_masked_wholly_tells_masks_apart) { fails(&masked_wrong[_i], NULL); }
END_TEST

START_TEST(masks_are_sampled_as_masks) {
  /* The example is a mask, so that half the samples are: a sum that drops it shows, one that keeps
   * it holds. */
  rule_tensor *m = counting(RULE_F32, SHAPE(3, 4));
  for (int64_t i = 0; i < m->numel; i++)
    rule_tensor_set(m, i, i % 4 > i / 4 ? -3.4028234663852886e38 : 0);
  const pair drops = {X34 " (var m f (3 4))", "(aten::softmax.int (aten::add.Tensor x m) -1)",
                      "(aten::softmax.int x -1)"};
  const pair keeps = {X34 " (var m f (3 4))", "(aten::softmax.int (aten::add.Tensor x m) -1)",
                      "(aten::softmax.int (aten::add.Tensor m x) -1)"};
  fails(&drops, m);
  rule_verdict v = decide(&keeps, m);
  ck_assert_msg(v.status == RULE_TESTED || v.status == RULE_PROVED, "%s (%s)",
                rule_status_name(v.status), v.reason);
  rule_tensor_unref(m);
}
END_TEST

/* Of the example's dtype, and no wider. */
START_TEST(indices_are_sampled_as_they_are_stored) {
  rule_tensor *m = counting(RULE_I32, SHAPE(600));
  for (int64_t i = 0; i < m->numel; i++) rule_tensor_set(m, i, (double)(i % 3));
  const pair p = {X34 " (var m i (600))", "(aten::index.Tensor x (list m))",
                  "(aten::neg (aten::neg (aten::index.Tensor x (list m))))"};
  rule_verdict v = decide(&p, m);
  ck_assert_msg(v.status == RULE_TESTED || v.status == RULE_PROVED, "%s (%s)",
                rule_status_name(v.status), v.reason);
  rule_tensor_unref(m);
}
END_TEST

/* A rule that cannot be run is unknown, neither true nor wrong. */
START_TEST(what_cannot_be_run_is_unknown) {
  const pair p = {XY, "(aten::mm x y)", "(aten::mm y x)"};
  rule_verdict v = decide(&p, NULL);
  ck_assert_int_eq(v.status, RULE_UNKNOWN);
  ck_assert_ptr_nonnull(strstr(v.reason, "could not be run"));
}
END_TEST

/* binary_cross_entropy keeps its logarithms above -100: where nobody has looked, no sample shows
 * it. In a term that both sides have it does not matter. */
START_TEST(operators_that_nobody_knows_are_not_tested) {
  const pair apart = {XY, "(aten::abs x)",
                      "(aten::binary_cross_entropy (aten::exp (aten::neg (aten::abs x))) "
                      "(aten::ones_like x) none 0)"};
  rule_verdict v = decide(&apart, NULL);
  ck_assert_int_eq(v.status, RULE_UNKNOWN);
  ck_assert_ptr_nonnull(strstr(v.reason, "binary_cross_entropy has no definition"));
#define BOTH "(aten::binary_cross_entropy (aten::sigmoid x) (aten::ones_like x) none 0)"
  const pair shared = {XY, "(aten::neg (aten::neg " BOTH "))", BOTH};
  v = decide(&shared, NULL);
  ck_assert_int_ge(v.status, RULE_TESTED);
}
END_TEST

/* libtorch does not check the indices of embedding_bag. */
START_TEST(indices_that_nothing_asks_for_are_asked_for) {
  const pair p = {
      "(var x f (3 4)) (var i i (5))",
      "(getitem (aten::embedding_bag x (aten::add.Scalar i 1000000) (aten::arange 5)) 0)",
      "(getitem (aten::embedding_bag x i (aten::arange 5)) 0)"};
  const rule_verdict v = decide(&p, NULL);
  ck_assert_int_eq(v.status, RULE_UNKNOWN);
}
END_TEST

#define CHOICE(b) \
  "(getitem (aten::topk (aten::softmax.int (aten::linear (aten::view (aten::mul.Tensor " b \
  " (aten::mul.Tensor (aten::add.Tensor x " \
  "(aten::linear y w)) (aten::rsqrt (aten::add.Tensor z 1e-05)))) (list 9 64)) w2) 1) 2 1) 1)"
START_TEST(choices_by_different_tensors_are_never_tested) {
  static const char text[] =
      "(rule topk-reshape (var b f (64)) (var x f (1 9 64)) (var y f (1 9 64)) (var w f (64 64)) "
      "(var z f (1 9 1)) "
      "(var w2 f (4 64)) (var b2 f (64)) (lhs " CHOICE(
          "b") ") (rhs (aten::reshape (aten::reshape " CHOICE("b2") " (list 18)) (list 9 2))))";
  rule_set *set = NULL;
  iso_error err = {0};
  ck_assert_msg(rule_set_parse(text, SIZE_MAX, "test", &set, &err) == ISO_OK, "%s", err.msg);
  for (uint64_t seed = 0; seed < 6; seed++) {
    val_options o = val_options_default();
    val_engine *e = NULL;
    rule_tensor *example[8] = {NULL};
    rule_verdict v;
    o.seed = seed;
    ck_assert_msg(val_new(&o, schemas, &e, &err) == ISO_OK, "%s", err.msg);
    ck_assert_msg(val_decide(e, rule_set_at(set, 0), example, &v, &err) == ISO_OK, "%s", err.msg);
    val_free(e);
    ck_assert_msg(v.status < RULE_TESTED, "seed %d: %s after %u samples", (int)seed,
                  rule_status_name(v.status), v.n_samples);
  }
  rule_set_free(set);
}
END_TEST

static long most_resident(void) {
  struct rusage u;
  getrusage(RUSAGE_SELF, &u);
  return u.ru_maxrss;
}

/* Drawn sizes may ask for more memory than there is: that is no failure. Nor is any of it taken,
 * whether literals say how much or an operand is repeated, or products do. */
START_TEST(sizes_that_no_memory_holds_are_passed_over) {
#define SUM "(aten::sum.dim_IntList x (list 0 1) false)"
#define ALL "(list 0 1 2 3 4) false)"
#define SIZES "(list n (* n n) (* n n) (* n n) (* n n))"
  static const char *const large[] = {
      "(aten::full " SIZES " v :dtype float64)",
      "(aten::expand y " SIZES ")",
      "(aten::mul.Tensor (aten::mul.Tensor a b) (aten::mul.Tensor c (aten::mul.Tensor d e)))",
  };
  for (size_t i = 0; i < sizeof large / sizeof *large; i++) {
    char text[4096], product[1024];
    const long before = most_resident();
    rule_set *set = NULL;
    rule_verdict v;
    rule_tensor *example[7] = {NULL};
    iso_error err = {0};
    snprintf(product, sizeof product, "(aten::mul.Tensor %s " SUM ")", large[i]);
    snprintf(text, sizeof text,
             "(rule r (var x f (n 4)) %s (attr n int) %s (lhs (aten::div.Tensor "
             "(aten::sum.dim_IntList %s " ALL " " SUM "))"
             "(rhs (aten::sum.dim_IntList (aten::div.Tensor %s " SUM ") " ALL ") (where (>= n 1)))",
             i == 0   ? ""
             : i == 1 ? "(var y f (1 1 1 1 1))"
                      : "(var a f (n 1 1 1 1)) (var b f (1 (* n n) 1 1 1)) (var c f (1 1 (* n n) 1 "
                        "1)) (var d f (1 1 1 (* n n) 1)) (var e f (1 1 1 1 (* n n)))",
             i == 0 ? "(attr v float)" : "", product, product);
    ck_assert_msg(rule_set_parse(text, SIZE_MAX, "test", &set, &err) == ISO_OK, "%s", err.msg);
    ck_assert_msg(val_decide(engine, rule_set_at(set, 0), example, &v, &err) == ISO_OK, "%s",
                  err.msg);
    ck_assert_msg(v.status == RULE_PROVED, "%zu: %d", i, v.status);
    ck_assert_int_lt(most_resident() - before, 1 << 18); /* KiB */
    rule_set_free(set);
  }
#undef SIZES
#undef ALL
#undef SUM
}
END_TEST

START_TEST(the_oracle_is_the_ladder) {
  rule_oracle o = val_oracle(engine);
  rule_set *set = NULL;
  rule_verdict a, b;
  iso_error err;
  const char *text = "(rule r (var x f (3 4)) (lhs x) (rhs (aten::relu x)))";
  ck_assert(rule_set_parse(text, SIZE_MAX, "test", &set, &err) == ISO_OK);
  rule_tensor *example[1] = {NULL};
  ck_assert(o.decide(o.ctx, rule_set_at(set, 0), example, &a, &err) == ISO_OK);
  ck_assert(val_decide(engine, rule_set_at(set, 0), example, &b, &err) == ISO_OK);
  ck_assert(a.status == RULE_REFUTED && b.status == RULE_REFUTED);
  ck_assert_str_eq(a.reason, b.reason); /* the same rule gets the same samples */
  rule_set_free(set);
}
END_TEST

#define N(a) (int)(sizeof(a) / sizeof *(a))

int main(void) {
  Suite *s = suite_create("oracle");
  TCase *t = tcase_create("decide");
  tcase_add_checked_fixture(t, engine_setup, engine_teardown);
  tcase_set_timeout(t, 120);
  tcase_add_loop_test(t, true_rules_hold, 0, N(right));
  tcase_add_loop_test(t, wrong_rules_are_refuted, 0, N(wrong));
  tcase_add_test(t, masks_hide_what_they_hide);
  tcase_add_loop_test(t, a_row_masked_wholly_tells_masks_apart, 0, N(masked_wrong));
  tcase_add_test(t, masks_are_sampled_as_masks);
  tcase_add_test(t, indices_are_sampled_as_they_are_stored);
  tcase_add_test(t, what_cannot_be_run_is_unknown);
  tcase_add_test(t, operators_that_nobody_knows_are_not_tested);
  tcase_add_test(t, indices_that_nothing_asks_for_are_asked_for);
  tcase_add_test(t, choices_by_different_tensors_are_never_tested);
  tcase_add_test(t, sizes_that_no_memory_holds_are_passed_over);
  tcase_add_test(t, the_oracle_is_the_ladder);
  suite_add_tcase(s, t);
  return run_suite(s);
}
