/* Operators in many digits against libtorch's float64 (needs libtorch), on the calls by which the prover's definitions are tested. */
#include "tests/validate/prove_diff.h"
#include "validate/precise_int.h"

enum { TIMES = 12 };

static int covered;

/* The left side beside what libtorch gave, as a variable of its own. */
static void compare_with_torch(const sample *s, const char *text) {
  const rule *r = rule_set_at(s->set, 0);
  iso_arena a = {0};
  iso_error err = {ISO_OK, ""};
  rule_tensor *bind[9];
  val_precise p;
  rule both = *r;
  both.n_vars = r->n_vars + 1;
  rule_variable var[9];
  memcpy(var, r->var, r->n_vars * sizeof *var);
  var[r->n_vars] = (rule_variable){.name = "want", .kind = 'f'};
  both.var = var;
  both.rhs = rule_var(&a, r->n_vars);
  memcpy(bind, s->v.bind, r->n_vars * sizeof *bind);
  bind[r->n_vars] = s->want;
  ck_assert(val_precise_sides(engine, &both, bind, &p, &err) == ISO_OK);
  covered += p.answer == VAL_PRECISE_SAME || p.answer == VAL_PRECISE_APART;
  ck_assert_msg(p.answer != VAL_PRECISE_APART || p.abs < 1e-9 || p.rel < 1e-9, "element %d is off by %g: %s", (int)p.index, p.abs, text);
  iso_arena_fini(&a);
}

START_TEST(many_digits_are_what_operators_compute) {
  const call *k = &calls[_i];
  for (int seed = 0; seed < TIMES; seed++) {
    iso_rng rng = iso_rng_new((uint64_t)seed, (uint64_t)_i + 7 * N_CALLS);
    sample s;
    if (!sample_take(&s, k, &rng, true)) continue;
    bool finite = s.want != NULL;
    for (int64_t i = 0; finite && i < s.want->numel; i++) finite = isfinite(rule_tensor_get(s.want, i)) != 0;
    if (finite) compare_with_torch(&s, s.text);
    sample_free(&s);
  }
}
END_TEST

/* An evaluation that gives up on everything would pass all of the above. */
START_TEST(many_calls_are_covered) {
#ifdef VAL_HAS_MPFR
  ck_assert_msg(covered > 2000, "only %d samples were evaluated", covered);
#endif
}
END_TEST

/* What float64 loses, and what it makes up. */
static val_precise answer_of(const char *text, const double *x, const double *y, int64_t n) {
  rule_set *set = NULL;
  iso_error err = {ISO_OK, ""};
  rule_tensor *bind[2] = {NULL, NULL};
  val_precise p;
  ck_assert_msg(rule_set_parse(text, SIZE_MAX, "test", &set, &err) == ISO_OK, "%s", err.msg);
  const double *from[2] = {x, y};
  for (int k = 0; k < 2; k++) {
    ck_assert(rule_tensor_new(RULE_F64, &(rule_shape){1, {n}}, &bind[k], &err) == ISO_OK);
    memcpy(bind[k]->data, from[k], (size_t)n * sizeof(double));
  }
  ck_assert(val_precise_sides(engine, rule_set_at(set, 0), bind, &p, &err) == ISO_OK);
  rule_set_free(set);
  for (int k = 0; k < 2; k++) rule_tensor_unref(bind[k]);
  return p;
}

static const struct { const char *lhs, *rhs; val_precise_answer want; } cases[] = {
    {"(aten::sub.Scalar (aten::add.Scalar x 1e20) 1e20)", "x", VAL_PRECISE_SAME},
    {"(aten::sub.Scalar (aten::add.Scalar x 1e20) 1e20)", "(aten::mul.Scalar x 0.0)", VAL_PRECISE_APART},
    {"(aten::sub.Scalar (aten::add.Scalar x 1e200) 1e200)", "x", VAL_PRECISE_SAME},
    {"(aten::sub.Scalar (aten::add.Scalar x 1e200) 1e200)", "(aten::mul.Scalar x 0.0)", VAL_PRECISE_APART},
    {"(aten::add.Tensor x (aten::mul.Scalar y 1e-40))", "x", VAL_PRECISE_APART},
    {"(aten::mul.Scalar (aten::mul.Scalar x 0.1) 0.2)", "(aten::mul.Scalar x 0.02)", VAL_PRECISE_SAME},
    {"(aten::mul.Scalar x 0.70710678118654757)", "(aten::div.Scalar x 1.4142135623730951)", VAL_PRECISE_SAME},
    {"(aten::add.Tensor (aten::mul.Scalar x 0.70710678118654757) (aten::mul.Scalar y 1e-30))", "(aten::mul.Scalar x 0.70710678118654757)", VAL_PRECISE_OPEN},
    {"(aten::logsumexp (aten::stack (list x y)) (list 0))", "(aten::maximum x y)", VAL_PRECISE_APART},
    {"(aten::softmax.int (aten::add.Scalar x 1e17) 0)", "(aten::softmax.int x 0)", VAL_PRECISE_SAME},
    {"(aten::erfinv x)", "(aten::erfinv x)", VAL_PRECISE_LACKS}};

START_TEST(what_float64_loses_is_seen) {
#ifdef VAL_HAS_MPFR
  const double x[] = {0.5, -0.25, 30, 1e-3}, y[] = {-45, 1, -90, 0.125};
  char text[800];
  snprintf(text, sizeof text, "(rule r (var x f (4)) (var y f (4)) (lhs %s) (rhs %s))", cases[_i].lhs, cases[_i].rhs);
  const val_precise p = answer_of(text, x, y, 4);
  ck_assert_msg(p.answer == cases[_i].want, "%s: %d", text, (int)p.answer);
#endif
}
END_TEST

int main(void) {
  Suite *s = suite_create("precise");
  TCase *t = tcase_create("precise");
  tcase_set_timeout(t, 120);
  tcase_add_loop_test(t, many_digits_are_what_operators_compute, 0, N_CALLS);
  tcase_add_test(t, many_calls_are_covered);
  tcase_add_loop_test(t, what_float64_loses_is_seen, 0, (int)(sizeof cases / sizeof *cases));
  suite_add_tcase(s, t);
  SRunner *r = srunner_create(s);
  srunner_set_fork_status(r, CK_NOFORK);
  iso_error err;
  if (rule_schemas_new(&schemas, &err) != ISO_OK || val_new(NULL, schemas, &engine, &err) != ISO_OK) {
    fprintf(stderr, "%s\n", err.msg);
    return 2;
  }
  srunner_run_all(r, CK_ENV);
  engine_teardown();
  const int failed = srunner_ntests_failed(r);
  srunner_free(r);
  return failed != 0;
}
