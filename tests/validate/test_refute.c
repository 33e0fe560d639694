/* Wrong rules on small tensors (needs libtorch): refuted by samples as candidates and as rules of a
 * file, for any seed and whichever side stands first; true ones that rounding disturbs are not. */
#include "tests/validate/engine_test.h"

typedef struct pair {
  const char *vars, *lhs, *rhs;
} pair;

#define X "(var x f (4 12)) "
#define ROW "(var x f (3 64)) "
#define IX "(var x i (4 12)) "
#define IY "(var y i (4 12)) "
#define I "(var i i32 (4 12)) "
#define NONE "(aten::full (list) nan :dtype float64)"

static const pair wrong[] = {
    {X, "(aten::clamp x -1000 1000)", "x"},
    {X, "(aten::clamp x -1000 1000)", "(aten::clamp x -1000 2000)"},
    {X, "(aten::clamp_max x 10000000.0)", "x"},
    {X, "(aten::minimum x (aten::full_like x 1000.0))", "x"},
    {X, "(aten::where.self (aten::gt.Scalar x 1000) (aten::full_like x 1000) x)", "x"},
    {X, "(aten::gt.Scalar x 0.5)", "(aten::ge.Scalar x 0.5)"},
    {X, "(aten::threshold x 1.0 5.0)",
     "(aten::where.self (aten::ge.Scalar x 1.0) x (aten::full_like x 5.0))"},
    {X, "(aten::round x)", "(aten::floor (aten::add.Tensor x 0.5))"},
    {X, "(aten::mul.Tensor (aten::round (aten::div.Tensor x 0.1)) 0.1)", "x"},
    {X, "(aten::mul.Tensor (aten::round (aten::mul.Tensor x 127.0)) 0.007874015748031496)", "x"},
    {ROW, "(aten::amax (aten::relu x) (list 1))", "(aten::amax x (list 1))"},
    {ROW, "(aten::argmax x 1)", "(aten::argmax (aten::abs x) 1)"},
    {ROW, "(aten::argmax x 1)", "(aten::argmax (aten::relu x) 1)"},
    {ROW, "(getitem (aten::topk x 3 1) 0)", "(getitem (aten::topk (aten::relu x) 3 1) 0)"},
    {"(var x b (3 64)) ", "(aten::any.dim x 1)", "(aten::any.dim (aten::slice.Tensor x 1 0 63) 1)"},
    {"(var x b (3 64)) ", "(aten::all.dim x 1)", "(aten::all.dim (aten::slice.Tensor x 1 1 64) 1)"},
    {IX, "(aten::to.dtype (aten::to.dtype x int32) int64)", "x"},
    {IX, "(aten::to.dtype (aten::to.dtype x int8) int64)", "x"},
    {IX, "(aten::to.dtype x bfloat16)", "(aten::to.dtype x float64)"},
    {IX, "(aten::to.dtype x float16)", "(aten::to.dtype x float64)"},
    {IX, "(aten::to.dtype x float32)", "(aten::to.dtype x float64)"},
    {IX IY, "(aten::lt.Tensor x y)",
     "(aten::lt.Tensor (aten::to.dtype x float32) (aten::to.dtype y float32))"},
    {IX IY, "(aten::eq.Tensor x y)",
     "(aten::eq.Tensor (aten::to.dtype x float16) (aten::to.dtype y float16))"},
    {IX, "(aten::argmax x 1)", "(aten::argmax (aten::to.dtype x float32) 1)"},
    {IX, "(aten::_to_copy x :dtype bfloat16)", "(aten::_to_copy x :dtype float64)"},
    {X, "(aten::cat (list (aten::mul.Tensor x 1000000.0) (aten::mul.Tensor x 0.001)) 1)",
     "(aten::cat (list (aten::mul.Tensor x 1000000.0) (aten::mul.Tensor x 0.0010001)) 1)"},
    {X, "(aten::log_softmax.int x 1)", "(aten::clamp_min (aten::log_softmax.int x 1) -100.0)"},
    {X, "(aten::layer_norm x (list 12) none none 1e-12)",
     "(aten::layer_norm x (list 12) none none 1e-13)"},
    {X, "(aten::rms_norm x (list 12) none 1e-12)", "(aten::rms_norm x (list 12) none 1e-13)"},
    {X, "(aten::sqrt (aten::mul.Tensor x x))", "x"},
    {X, "(aten::abs x)", "x"},
    {X I, "(aten::where.self (aten::ge.Scalar i 0) x " NONE ")", "x"},
    {X I, "(aten::where.self (aten::ge.Scalar i 0) x " NONE ")",
     "(aten::where.self (aten::gt.Scalar i 0) x " NONE ")"},
    {X, "(aten::where.self (aten::gt.Scalar x 0) x " NONE ")", "(aten::relu x)"},
};

/* True over the reals where defined. */
static const pair right[] = {
    {X, "(aten::log (aten::abs x))", "(aten::log x)"},
    {X, "(aten::exp (aten::log x))", "x"},
    {X, "(aten::div.Tensor x x)", "(aten::ones_like x)"},
    {X, "(aten::pow.Tensor_Scalar (aten::sqrt x) 2)", "x"},
    {X, "(aten::nan_to_num x)", "x"},
    {X, "(aten::sub.Scalar (aten::add.Scalar x 1000000000000.0) 1000000000000.0)", "x"},
    {X, "(aten::sum.dim_IntList x (list 1))",
     "(aten::sum.dim_IntList (aten::flip x (list 1)) (list 1))"},
    {X, "(aten::var.correction x (list 1) :correction 0)",
     "(aten::sub.Tensor (aten::mean.dim (aten::mul.Tensor x x) (list 1)) (aten::pow.Tensor_Scalar "
     "(aten::mean.dim x (list 1)) 2))"},
    {X, "(aten::log1p x)", "(aten::log (aten::add.Scalar x 1.0))"},
    {X, "(aten::expm1 x)", "(aten::sub.Scalar (aten::exp x) 1.0)"},
    {X, "(aten::logsumexp x (list 1))",
     "(aten::log (aten::sum.dim_IntList (aten::exp x) (list 1)))"},
    {X, "(aten::softmax.int x 1)",
     "(aten::div.Tensor (aten::exp x) (aten::sum.dim_IntList (aten::exp x) (list 1) true))"},
    {X, "(aten::sub.Tensor (aten::ones_like x) (aten::sigmoid x))",
     "(aten::sigmoid (aten::neg x))"},
    {X, "(aten::log (aten::sub.Scalar (aten::exp x) 1.0))", "(aten::log (aten::expm1 x))"},
    {X, "(aten::reciprocal (aten::sub.Scalar (aten::add.Scalar x 1.0) 1.0))",
     "(aten::reciprocal x)"},
    {X, "(aten::to.dtype x bfloat16)", "x"},
    {X I, "(aten::where.self (aten::gt.Scalar i -1) x " NONE ")",
     "(aten::where.self (aten::ge.Scalar i 0) x " NONE ")"},
    {X "(var y f (4 12)) ",
     "(aten::where.self (aten::gt.Scalar (aten::sub.Tensor x y) 0) x " NONE ")",
     "(aten::where.self (aten::gt.Tensor x y) x " NONE ")"},
};

/* Sides that differ in numbers only, too little for samples: never tested. */
static const pair close[] = {
    {X, "(aten::mul.Tensor x 1.000000001)", "x"},
    {X, "(aten::mul.Tensor x 1.000000000000001)", "x"},
    {X, "(aten::add.Tensor x 1e-12)", "x"},
    {X, "(aten::add.Tensor x 1e-30)", "x"},
    {X, "(aten::layer_norm x (list 12) none none 1e-12)",
     "(aten::layer_norm x (list 12) none none 1.0000001e-12)"},
};

/* As a candidate, or as a rule of a file. */
static rule_verdict decide(const pair *p, bool turned, bool strict, uint64_t seed) {
  static char text[1 << 14];
  rule_set *set = NULL;
  iso_error err = {0};
  val_options o = val_options_default();
  val_engine *e = NULL;
  rule_verdict v;
  snprintf(text, sizeof text, "(rule r %s (lhs %s) (rhs %s))", p->vars, turned ? p->rhs : p->lhs,
           turned ? p->lhs : p->rhs);
  ck_assert_msg(rule_set_parse(text, SIZE_MAX, "test", &set, &err) == ISO_OK, "%s: %s", err.msg,
                text);
  o.seed = seed;
  ck_assert(val_new(&o, schemas, &e, &err) == ISO_OK);
  if (strict) {
    val_finding f;
    ck_assert_msg(val_check(e, rule_set_at(set, 0), &f, &err) == ISO_OK, "%s: %s", err.msg, text);
    v = f.verdict;
    ck_assert(f.counterexample.found == (v.status == RULE_REFUTED));
    val_finding_free(&f);
  } else {
    rule_tensor *example[8] = {NULL}; /* by variable */
    ck_assert_msg(val_decide(e, rule_set_at(set, 0), example, &v, &err) == ISO_OK, "%s: %s",
                  err.msg, text);
  }
  val_free(e);
  rule_set_free(set);
  return v;
}

/* Of so many elements that small sizes are looked at first (ladder/cropped.c). */
#define TALL "(var x f (9000 5)) "
#define WIDE "(var w f (7 4096)) "
#define PLACES "(var t f (5000 6)) (var p i (40)) "

static const pair tall_wrong[] = {
    {TALL "(var y f (9000 1)) ", "(aten::add.Tensor x y)",
     "(aten::add.Tensor x (aten::slice.Tensor y 0 0 1))"},
    {TALL, "(aten::slice.Tensor x 0 1 20)", "(aten::slice.Tensor x 0 0 19)"},
    {WIDE, "(aten::softmax.int w 1)", "(aten::softmax.int w 0)"},
    {PLACES, "(aten::embedding t p)", "(aten::embedding (aten::flip t (list 0)) p)"},
};

/* These hold, though some of them not where the large size is another. */
static const pair tall_right[] = {
    {TALL, "(aten::mean.dim x (list 0))",
     "(aten::mul.Tensor (aten::sum.dim_IntList x (list 0)) 0.00011111111111111112)"},
    {TALL, "(aten::mean.dim x (list 0))",
     "(aten::div.Tensor (aten::sum.dim_IntList x (list 0)) 9000)"},
    {TALL, "(aten::mul.Tensor (aten::mul.Tensor x 90) 100)", "(aten::mul.Tensor x 9000)"},
    {TALL, "(aten::view x (list 45000))", "(aten::reshape x (list 45000))"},
    {TALL, "(aten::cat (list (aten::slice.Tensor x 0 0 70) (aten::slice.Tensor x 0 70 9000)))",
     "x"},
    {"(var x f (9000 5)) (var y f (9001 5)) ",
     "(aten::slice.Tensor (aten::cat (list x y)) 0 0 9000)", "x"},
    {WIDE, "(aten::slice.Tensor w 1 0 9223372036854775807)", "w"},
    {WIDE, "(aten::var.correction w (list 1) :correction 1)",
     "(aten::mul.Tensor (aten::var.correction w (list 1) :correction 0) 1.0002442002442003)"},
    {PLACES, "(aten::embedding t p)", "(aten::index.Tensor t (list p))"},
};

/* Of so many that a sample costs more than a proof: none is taken where small ones show no fault.
 */
#define TABLE "(var t f (40000 40)) (var p i (40)) "

static const pair huge_right[] = {
    {TABLE, "(aten::embedding t p)", "(aten::index.Tensor t (list p))"},
    {TABLE, "(aten::mul.Tensor (aten::embedding t p) 40000)",
     "(aten::embedding (aten::mul.Tensor t 40000) p)"}, /* a size that is calculated with */
};

enum { SEEDS = 3 };
#define EACH(list, strict) \
  for (size_t i = 0; i < sizeof list / sizeof *list; i++) \
    for (int turned = 0; turned < 2; turned++) \
      for (uint64_t seed = 0; seed < SEEDS; seed++) \
        for (rule_verdict v = decide(&list[i], turned, strict, seed), *once = &v; once != NULL; \
             once = NULL)

START_TEST(wrong_rules_are_refuted) {
  EACH(wrong, true)
  ck_assert_msg(v.status == RULE_REFUTED, "seed %d: %s (%s): %s <=> %s", (int)seed,
                rule_status_name(v.status), v.reason, wrong[i].lhs, wrong[i].rhs);
}
END_TEST

START_TEST(wrong_candidates_are_refuted) {
  EACH(wrong, false)
  ck_assert_msg(v.status == RULE_REFUTED, "seed %d: %s (%s): %s <=> %s", (int)seed,
                rule_status_name(v.status), v.reason, wrong[i].lhs, wrong[i].rhs);
}
END_TEST

START_TEST(wrong_candidates_of_large_tensors_are_refuted_on_small_ones) {
  EACH(tall_wrong, false) {
    ck_assert_msg(v.status == RULE_REFUTED, "seed %d: %s (%s): %s <=> %s", (int)seed,
                  rule_status_name(v.status), v.reason, tall_wrong[i].lhs, tall_wrong[i].rhs);
    ck_assert_msg(strstr(v.reason, "where a size of") != NULL, "%s", v.reason);
  }
}
END_TEST

START_TEST(no_sample_of_a_huge_tensor_is_drawn_where_small_ones_agree) {
  EACH(huge_right, false) {
    ck_assert_msg(v.status == RULE_PROVED, "seed %d: %s (%s): %s <=> %s", (int)seed,
                  rule_status_name(v.status), v.reason, huge_right[i].lhs, huge_right[i].rhs);
    ck_assert_uint_eq(v.n_samples, i);
  }
}
END_TEST

START_TEST(true_candidates_of_large_tensors_are_not_refuted) {
  EACH(tall_right, false)
  ck_assert_msg(v.status == RULE_PROVED || v.status == RULE_TESTED, "seed %d: %s (%s): %s <=> %s",
                (int)seed, rule_status_name(v.status), v.reason, tall_right[i].lhs,
                tall_right[i].rhs);
}
END_TEST

/* Branches that few numbers take: not refuted, perhaps, and no evidence either way. */
static const pair unseen[] = {
    {"(var w f (4 8)) (var b f (4 8))", "w",
     "(aten::where.self (aten::gt.Scalar (aten::mul.Tensor w w) 1e+15) b w)"},
    {"(var w f (4 8))", "(aten::add.Tensor w 1.0)",
     "(aten::add.Tensor (aten::where.ScalarSelf (aten::gt.Scalar (aten::exp w) 1e+35) 0.0 w) 1.0)"},
    {"(var w f (4 8)) (var b f (4 8))", "w",
     "(aten::where.self (aten::lt.Scalar (aten::abs (aten::sub.Tensor (aten::mul.Tensor w w) "
     "12345.678)) 0.01) b w)"},
    {"(var w f (4 8)) (var b f (4 8))", "w",
     "(aten::where.self (aten::eq.Scalar (aten::sub.Tensor (aten::mul.Tensor w 2.0) 1.0) 0.12345) "
     "b w)"},
    {"(var w f (4 8)) (var b f (4 8))", "w",
     "(aten::where.self (aten::logical_and (aten::gt.Scalar (aten::mul.Tensor w w) 1000.0) "
     "(aten::lt.Scalar (aten::mul.Tensor w w) 1001.0)) b w)"},
    {"(var w f (4 8))", "(aten::exp (aten::exp w))",
     "(aten::clamp (aten::exp (aten::exp w)) none 1e+100)"},
    {"(var w f (4 8))", "(aten::lgamma w)", "(aten::clamp (aten::lgamma w) none 1e+14)"},
    {"(var w f (4 8))", "(aten::special_i0e w)", "(aten::clamp (aten::special_i0e w) 1e-06)"},
    {"(var w f (4 8))", "w", "(aten::add.Tensor w (aten::trunc (aten::div.Tensor w 1e+09)))"},
    {"(var w f (4 8))", "(aten::softplus w 1.0 15.0)", "(aten::log1p (aten::exp w))"},
    {"(var w f (4 8))", "(aten::div.Tensor w 3.0)", "(aten::mul.Tensor w 0.33333333333)"}};

START_TEST(branches_that_no_sample_takes_are_never_tested) {
  EACH(unseen, false)
  ck_assert_msg(v.status == RULE_REFUTED || v.status == RULE_UNKNOWN, "seed %d: %s: %s <=> %s",
                (int)seed, rule_status_name(v.status), unseen[i].lhs, unseen[i].rhs);
}
END_TEST

START_TEST(true_rules_hold_whatever_rounding_does) {
  EACH(right, true)
  ck_assert_msg(v.status == RULE_PROVED || v.status == RULE_TESTED, "seed %d: %s (%s): %s <=> %s",
                (int)seed, rule_status_name(v.status), v.reason, right[i].lhs, right[i].rhs);
}
END_TEST

/* A sum loses its operand here, and far from 0 the functions below it take more digits than there
 * are. */
#define FAR(f) "(aten::softmax.int (aten::add.Scalar (aten::mul.Scalar " f " 0.001) 1e+100) 0)"
#define NEAR(f) "(aten::softmax.int (aten::mul.Scalar " f " 0.001) 0)"
static const pair lossy[] = {
    {"(var w f (N))", FAR("(aten::silu w)"), NEAR("(aten::silu w)")},
    {"(var w f (N))", FAR("(aten::gelu w)"), NEAR("(aten::gelu w)")},
    {"(var w f (N))", FAR("(aten::mul.Tensor w (aten::sigmoid w))"), NEAR("(aten::silu w)")}};

START_TEST(what_only_a_lost_operand_tells_apart_is_not_refuted) {
  EACH(lossy, true)
  ck_assert_msg(v.status != RULE_REFUTED, "seed %d: %s: %s", (int)seed, v.reason, lossy[i].lhs);
}
END_TEST

/* Of all sizes, and proved where all parts are numbers; then false everywhere. */
#define RATIO(f) "(aten::div.Tensor " f " " f ")", "(aten::ones_like w)"
static const pair partly[] = {{"(var w f (N))", RATIO("w")},
                              {"(var w f (N M))", RATIO("(aten::sin w)")}};
static const pair nowhere[] = {
    {"(var w f (N))", "(aten::div.Tensor w w)", "(aten::full_like w 2)"},
    {"(var w f (N M))", "(aten::div.Tensor w (aten::sin w))", "(aten::ones_like w)"}};

START_TEST(a_refuted_rule_says_whether_it_is_proved_of_numbers) {
  EACH(partly, false)
  ck_assert_msg(v.status == RULE_REFUTED && (v.rests_on & RULE_RESTS_ON_NUMBERS), "%s: %s",
                rule_status_name(v.status), partly[i].lhs);
  EACH(nowhere, false)
  ck_assert_msg(v.status == RULE_REFUTED && !(v.rests_on & RULE_RESTS_ON_NUMBERS), "%s: %s",
                rule_status_name(v.status), nowhere[i].lhs);
}
END_TEST

/* True of integers that wrap, in what casts, masks and remainders cut off; then only of those that
 * do not. */
#define INTEGER(a, b) \
  { "(var k i (N))", a, b }
#define BYTE(x) "(aten::to.dtype " x " uint8)"
#define WORD(x) "(aten::to.dtype " x " int64)"
static const pair cut_off[] = {
    INTEGER("(aten::bitwise_and.Scalar k 255)", "(aten::remainder.Scalar k 256)"),
    INTEGER(BYTE("(aten::bitwise_and.Scalar k 255)"), BYTE("k")),
    INTEGER(WORD(BYTE("k")), "(aten::remainder.Scalar k 256)"),
    INTEGER("(aten::bitwise_not " BYTE("k") ")", "(aten::bitwise_xor.Scalar " BYTE("k") " 255)"),
    INTEGER("(aten::bitwise_not " BYTE("k") ")", BYTE("(aten::sub.Tensor (aten::full (list N) 511 "
                                                      ":dtype int64) k)")),
    INTEGER(WORD("(aten::to.dtype k int8)"),
            "(aten::sub.Scalar (aten::remainder.Scalar (aten::add.Scalar k 128) 256) 128)"),
    INTEGER("(aten::remainder.Scalar k 100)",
            "(aten::sub.Tensor k (aten::mul.Scalar (aten::floor_divide.Scalar k 100) 100))")};
static const pair beyond[] = {
    INTEGER("(aten::remainder.Scalar k 100)",
            "(aten::remainder.Scalar (aten::add.Scalar k 100) 100)"),
    INTEGER(WORD(BYTE("k")), "(aten::remainder.Scalar k 128)"),
    INTEGER(WORD("(aten::to.dtype k int8)"), "(aten::remainder.Scalar k 256)"),
    INTEGER(WORD(BYTE("(aten::add.Scalar k 1)")), "(aten::add.Scalar " WORD(BYTE("k")) " 1)"),
    INTEGER("(aten::bitwise_and.Scalar k 240)", "(aten::remainder.Scalar k 241)")};

START_TEST(what_is_cut_off_tells_no_wrap) {
  EACH(cut_off, false)
  ck_assert_msg(v.status == RULE_PROVED && !(v.rests_on & RULE_RESTS_ON_WHOLE), "%s: %s <=> %s",
                rule_status_name(v.status), cut_off[i].lhs, cut_off[i].rhs);
  EACH(beyond, false)
  ck_assert_msg(v.status == RULE_REFUTED || v.status == RULE_UNKNOWN, "%s: %s <=> %s",
                rule_status_name(v.status), beyond[i].lhs, beyond[i].rhs);
}
END_TEST

START_TEST(literals_too_close_are_never_tested) {
  EACH(close, true)
  ck_assert_msg(v.status == RULE_REFUTED || v.status == RULE_UNKNOWN, "%s: %s",
                rule_status_name(v.status), close[i].lhs);
  EACH(close, false)
  ck_assert_msg(v.status == RULE_REFUTED || v.status == RULE_UNKNOWN, "%s: %s",
                rule_status_name(v.status), close[i].lhs);
}
END_TEST

int main(void) {
  Suite *s = suite_create("refute");
  TCase *t = tcase_create("samples");
  tcase_add_checked_fixture(t, engine_setup, engine_teardown);
  tcase_set_timeout(t, 240);
  tcase_add_test(t, wrong_rules_are_refuted);
  tcase_add_test(t, wrong_candidates_are_refuted);
  tcase_add_test(t, wrong_candidates_of_large_tensors_are_refuted_on_small_ones);
  tcase_add_test(t, no_sample_of_a_huge_tensor_is_drawn_where_small_ones_agree);
  tcase_add_test(t, true_candidates_of_large_tensors_are_not_refuted);
  tcase_add_test(t, branches_that_no_sample_takes_are_never_tested);
  tcase_add_test(t, true_rules_hold_whatever_rounding_does);
  tcase_add_test(t, a_refuted_rule_says_whether_it_is_proved_of_numbers);
  tcase_add_test(t, what_is_cut_off_tells_no_wrap);
  tcase_add_test(t, literals_too_close_are_never_tested);
  tcase_add_test(t, what_only_a_lost_operand_tells_apart_is_not_refuted);
  suite_add_tcase(s, t);
  return run_suite(s);
}
