/* needs libtorch. No memory while a sample is evaluated in many digits: MPFR and GMP, which end the
 * process where an allocator gives nothing, live on a reserve until the evaluation has ended. Every
 * allocation of the program's and of theirs fails once, and then all from some point on. */
#define FAIL_ONLY_OURS
#include "tests/support/failalloc.h"

#include "tests/validate/engine_test.h"
#include "validate/precise/precise_int.h"
#include "tests/support/suite.h"

static const char *const sides[][2] = {
    {"(aten::sub.Scalar (aten::add.Scalar (aten::exp x) 1e200) 1e200)", "(aten::exp x)"},
    {"(aten::lgamma (aten::add.Scalar (aten::square x) 2.0))",
     "(aten::digamma (aten::add.Scalar (aten::square x) 2.0))"},
    {"(aten::erf (aten::mul.Scalar x 0.25))", "(aten::neg (aten::erf (aten::mul.Scalar x -0.25)))"},
    {"(aten::tan (aten::mul.Scalar x 1e30))", "(aten::neg (aten::tan (aten::mul.Scalar x -1e30)))"},
    {"(aten::conv1d (aten::view x (list 1 1 4)) (aten::view y (list 1 1 4)))",
     "(aten::view (aten::sum (aten::mul.Tensor x y)) (list 1 1 1))"},
    {"(getitem (aten::topk x 2) 0)", "(getitem (aten::topk (aten::mul.Scalar x 1.0) 2) 0)"},
    {"(aten::pow.Tensor_Tensor (aten::abs x) y)",
     "(aten::exp (aten::mul.Tensor (aten::log (aten::abs x)) y))"},
    {"(aten::mul.Scalar x 0.70710678118654757)", "(aten::div.Scalar x 1.4142135623730951)"}};

enum { N_SIDES = sizeof sides / sizeof *sides, EVERY = 150, SPREAD = 150 };

typedef struct asked {
  rule_set *set;
  rule_tensor *bind[2];
} asked;

static void ask(asked *q, int i) {
  static const double x[] = {0.5, -0.25, 1.75, 1e-3}, y[] = {-3, 1, -2.5, 0.125};
  char text[800];
  iso_error err = {ISO_OK, ""};
  snprintf(text, sizeof text, "(rule r (var x f (4)) (var y f (4)) (lhs %s) (rhs %s))", sides[i][0],
           sides[i][1]);
  ck_assert_msg(rule_set_parse(text, SIZE_MAX, "test", &q->set, &err) == ISO_OK, "%s", err.msg);
  for (int k = 0; k < 2; k++) {
    ck_assert(rule_tensor_new(RULE_F64, &(rule_shape){1, {4}}, &q->bind[k], &err) == ISO_OK);
    memcpy(q->bind[k]->data, k ? y : x, sizeof x);
  }
}

static void forget(asked *q) {
  rule_set_free(q->set);
  for (int k = 0; k < 2; k++) rule_tensor_unref(q->bind[k]);
}

static iso_code answer(asked *q, val_precise *p, iso_error *err) {
  *err = (iso_error){ISO_OK, ""};
  return val_precise_sides(engine, rule_set_at(q->set, 0), q->bind, p, err);
}

/* `on`: from the n-th allocation on all fail, else it alone. */
static void fail_at(asked *q, long n, bool on, val_precise_answer want) {
  val_precise p = {.answer = VAL_PRECISE_LACKS};
  iso_error err;
  const long live = fail_live;
  fail_always = on;
  fail_arm(n);
  const iso_code c = answer(q, &p, &err);
  fail_disarm();
  fail_always = false;
  if (c) {
    ck_assert_msg(c == ISO_NOMEM, "allocation %ld: code %d: %s", n, (int)c, err.msg);
    ck_assert_msg(err.msg[0] && !strchr(err.msg, '\n'), "allocation %ld: \"%s\"", n, err.msg);
  } else if (p.answer != VAL_PRECISE_LACKS && p.answer != VAL_PRECISE_OPEN) {
    ck_assert_msg(p.answer == want, "allocation %ld: %d", n, (int)p.answer);
  }
  ck_assert_msg(fail_live <= live, "allocation %ld: %ld blocks stay", n, fail_live - live);
}

START_TEST(evaluating) {
#ifdef VAL_HAS_MPFR
  asked q;
  val_precise p;
  iso_error err;
  ask(&q, _i);
  for (int i = 0; i < 2; i++) ck_assert_msg(answer(&q, &p, &err) == ISO_OK, "%s", err.msg);
  ck_assert_msg(p.answer != VAL_PRECISE_LACKS, "%s is not evaluated", sides[_i][0]);
  fail_arm(1000000000);
  ck_assert_int_eq(answer(&q, &p, &err), ISO_OK);
  const long calls = 1000000000 - fail_after;
  fail_disarm();
  const long step = calls > EVERY + SPREAD ? (calls - EVERY) / SPREAD + 1 : 1;
  for (long n = 0; n < calls; n += n < EVERY ? 1 : step)
    for (int on = 0; on < 2; on++) fail_at(&q, n, on, p.answer);
  val_precise again;
  ck_assert_int_eq(answer(&q, &again, &err), ISO_OK); /* nothing that was half done is kept */
  ck_assert_int_eq(again.answer, p.answer);
  forget(&q);
#endif
}
END_TEST

int main(void) {
  Suite *s = suite_create("precise_oom");
  TCase *t = tcase_create("precise_oom");
  tcase_set_timeout(t, 240);
  tcase_add_unchecked_fixture(t, engine_setup, engine_teardown);
  tcase_add_loop_test(t, evaluating, 0, N_SIDES);
  suite_add_tcase(s, t);
  return run_suite_here(s);
}
