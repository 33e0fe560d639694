/* Facts that rule_fact_of tells of a call hold for libtorch's result (needs libtorch): of all calls
 * by which the prover's definitions are tested, on operands with each of the facts that it is told.
 */
#include "rules/rules.h"
#include "tests/validate/prove_diff.h"

enum { TIMES = 48 };

/* Where an operator is undefined, or changes its sign, that those calls do not show. */
static const call more[] = {
    {X, "(aten::sqrt x)", false},
    {X, "(aten::rsqrt x)", false},
    {X, "(aten::reciprocal x)", false},
    {X, "(aten::log x)", false},
    {X, "(aten::log1p x)", false},
    {X, "(aten::log2 x)", false},
    {X, "(aten::log10 x)", false},
    {X, "(aten::acos x)", false},
    {XY, "(aten::div.Tensor x y)", false},
    {XY, "(aten::div.Tensor_mode x y \"floor\")", false},
    {XY, "(aten::div.Tensor_mode x y \"trunc\")", false},
    {XY, "(aten::true_divide.Tensor x y)", false},
    {XY, "(aten::floor_divide x y)", false},
    {XY, "(aten::remainder.Tensor x y)", false},
    {XY, "(aten::fmod.Tensor x y)", false},
    {XY, "(aten::pow.Tensor_Tensor x y)", false},
    {X, "(aten::pow.Tensor_Scalar x -1)", false},
    {X, "(aten::pow.Tensor_Scalar x 0.5)", false},
    {X, "(aten::to.dtype x int64)", false},
    {XY, "(aten::add.Tensor x y :alpha -1)", false},
    {XY, "(aten::add.Tensor x y :alpha 0)", false},
    {X, "(aten::clamp x 1.0 -1.0)", false},
    {X, "(aten::clamp x 0.5)", false},
    {X, "(aten::clamp x -0.5)", false},
    {X, "(aten::clamp x -0.5 -2.0)", false},
    {X, "(aten::add.Tensor (aten::mul.Tensor x 3.0) 4.75)", false},
    {X, "(aten::sub.Tensor (aten::mul.Tensor x x) -0.5)", false},
    {X, "(aten::add.Tensor x -1.25 :alpha 2)", false},
    {X, "(aten::mul.Tensor x -2.0)", false},
    {X, "(aten::div.Tensor (aten::sub.Tensor x 3.0) 0.3)", false},
    {X, "(aten::div.Tensor x -0.3)", false},
    {X, "(aten::sub.Tensor 1.0 x)", false},
    {X, "(aten::rsub.Scalar x 1.0)", false},
    {X, "(aten::amin x (list 1))", false},
    {X, "(aten::sum.dim_IntList x (list 1))", false},
    {XY, "(aten::add.Tensor x y)", false},
    {XY, "(aten::add.Tensor x y :alpha 2)", false},
    {XY, "(aten::mul.Tensor (aten::add.Tensor x y) (aten::add.Tensor x y))", false},
    {X, "(aten::clamp x none 0.5)", false},
    {X, "(aten::new_full x (list 2 3) -1.5)", false},
    {X, "(aten::full_like x -1.5)", false},
    {X, "(aten::full (list 2 3) -1.5)", false},
    {X, "(aten::arange.start -4 4)", false},
    {"(var m b ($A $B)) " X, "(aten::where.ScalarSelf m 1.0 x)", false},
    {"(var m b ($A $B)) " X, "(aten::where.ScalarOther m x 1.0)", false},
    {"(var m b ($A $B)) " X, "(aten::masked_fill.Scalar x m -1.0)", false},
    {"(var m b ($A $B)) " X, "(aten::masked_fill.Scalar x m 0.0)", false},
    {X, "(aten::constant_pad_nd x (list 1 1) -1.0)", false}};

static double drawn(iso_rng *rng, const rule_fact *f, bool huge) {
  static const double edges[] = {0, 1, -1, -3, 0.5, 2}, far[] = {1e160, 1.7e308, -1.7e308, 800};
  double x = iso_rng_below(rng, 3) ? iso_rng_normal(rng) : edges[iso_rng_below(rng, 6)];
  if (huge && iso_rng_below(rng, 3)) x = far[iso_rng_below(rng, 4)];
  if (f->nonnegative) x = fabs(x);
  if (f->bounded) x = fmax(x, f->low);
  return f->nonzero && !(fabs(x) > 0) ? 1.25 : x;
}

/* The part of `f` that the result does not keep to; NULL: none. Of huge numbers, that it is finite:
 * signs are those of real numbers, of which none underflows. */
static const char *broken(const rule_fact *f, const rule_tensor *y, bool huge) {
  for (int64_t i = 0; i < y->numel; i++) {
    const double e = rule_tensor_get(y, i);
    if (huge && (f->large || isfinite(e))) continue;
    if (!f->undefined && !f->masked && !isfinite(e)) return "a number";
    if (f->nonnegative && e < 0) return "not negative";
    if (f->bounded && e < f->low - 1e-9 * fabs(f->low)) return "not below its bound";
    if (f->nonzero && e == 0 && !f->undefined) return "not 0";
  }
  return NULL;
}

/* Where sizes alone decide that nothing is a number, as in a variance of too few, no input tells.
 */
static bool never_a_number(const rule_tensor *y) {
  for (int64_t i = 0; i < y->numel; i++)
    if (isfinite(rule_tensor_get(y, i))) return false;
  return true;
}

static void look_at(const call *c, int *told, int *n_wrong) {
  const char *wrong = NULL;
  for (uint64_t time = 0; time < TIMES && !wrong; time++) {
    iso_rng rng = rng_of(c, time);
    const bool huge = time % 2;
    rule_fact given[8] = {{0}};
    iso_error err;
    sample s;
    if (!sample_take(&s, c, &rng, false)) continue;
    const rule *r = rule_set_at(s.set, 0);
    for (uint32_t v = 0; v < r->n_vars; v++) {
      rule_tensor *x = s.v.bind[v];
      if (r->var[v].kind != 'f') continue;
      given[v].nonnegative = iso_rng_below(&rng, 2);
      given[v].nonzero = iso_rng_below(&rng, 2);
      given[v].bounded = iso_rng_below(&rng, 2);
      given[v].low = given[v].nonnegative ? 0.25 : -1.5;
      for (int64_t i = 0; i < x->numel; i++) rule_tensor_set(x, i, drawn(&rng, &given[v], huge));
    }
    rule_tensor *y = NULL;
    const rule_fact f = rule_fact_of(r->lhs, given);
    if (val_eval(engine, r->lhs, s.v.bind, VAL_FLOAT64, &y, &err) == ISO_OK &&
        !rule_dtype_is_complex(y->dtype) && !never_a_number(y)) {
      wrong = broken(&f, y, huge);
      *told += f.nonnegative + f.nonzero + !f.undefined + !f.large;
    }
    if (wrong) fprintf(stderr, "said to be %s: %s\n", wrong, s.text);
    rule_tensor_unref(y);
    sample_free(&s);
  }
  *n_wrong += wrong != NULL;
}

START_TEST(what_is_said_of_numbers_is_true) {
  int told = 0, n_wrong = 0;
  for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) look_at(&calls[i], &told, &n_wrong);
  for (size_t i = 0; i < sizeof more / sizeof *more; i++) look_at(&more[i], &told, &n_wrong);
  ck_assert_int_eq(n_wrong, 0);
  ck_assert_int_gt(told, 30000);
}
END_TEST

int main(void) {
  Suite *s = suite_create("signs");
  TCase *t = tcase_create("signs");
  tcase_set_timeout(t, 300);
  tcase_add_test(t, what_is_said_of_numbers_is_true);
  suite_add_tcase(s, t);
  return run_suite_with_engine(s);
}
