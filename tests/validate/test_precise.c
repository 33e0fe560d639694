/* Operators in many digits against libtorch's float64 (needs libtorch), on the calls by which the
 * prover's definitions are tested, on calls of operators that only validate/precise/ has, and on
 * calls of complex numbers; no definition may be left out but with a reason. */
#include "rules/operators.h"
#include "tests/validate/prove_diff.h"
#include "validate/ops/ops.h"
#include "validate/precise/precise_int.h"

enum { TIMES = 12 };

static int covered;

/* ---- which operators were evaluated ---- */

enum { MOST_OPERATORS = 1000 };
static bool evaluated[MOST_OPERATORS];

static const struct {
  const char *name, *why;
} left_out[] = {{"_int_mm", "int8 alone, which has no samples; libtorch computes it on integers"},
                {"repeat_interleave.Tensor", "the result's size depends on values"},
                {"repeat_interleave.self_Tensor", "as repeat_interleave.Tensor"},
                {"view.dtype", "reads bits, not numbers"},
                {"vllm::inplace_fused_experts", "no call of it here: it takes tables of experts"},
                {"vllm::outplace_fused_experts", "as vllm::inplace_fused_experts"}};

static bool is_left_out(const char *name) {
  for (size_t i = 0; i < sizeof left_out / sizeof *left_out; i++)
    if (strcmp(left_out[i].name, name) == 0) return true;
  return false;
}

static void note_operator(const char *full, size_t n) {
  char name[128];
  size_t count;
  const rule_operator *all = rule_operators(&count);
  snprintf(name, sizeof name, "%.*s", (int)n, full);
  const rule_operator *o = rule_operator_of(name);
  ck_assert(count <= MOST_OPERATORS);
  if (*o->name) evaluated[o - all] = true;
}

static void note_operators(const char *text) {
  for (const char *p = strchr(text, '('); p; p = strchr(p + 1, '(')) {
    const size_t n = strcspn(p + 1, " )");
    const char *colons = strstr(p + 1, "::");
    if (colons && colons < p + 1 + n) note_operator(p + 1, n);
  }
}

static const char *const signatures[] = {
#define S(text) text,
#include "rules/kernels.def"
#include "rules/schemas.def"
#undef S
};

/* Whether the prover defines an operator of that line of the table. */
static bool is_defined(const rule_operator *o) {
  for (size_t i = 0; i < sizeof signatures / sizeof *signatures; i++) {
    char name[128];
    pt_definition d;
    snprintf(name, sizeof name, "%.*s", (int)strcspn(signatures[i], "("), signatures[i]);
    if (rule_operator_of(name) == o && pt_define_any(name, &d)) return true;
  }
  return false;
}

START_TEST(no_definition_is_forgotten) {
#ifdef VAL_HAS_MPFR
  int missing = 0;
  size_t n;
  const rule_operator *all = rule_operators(&n);
  for (size_t i = 0; i < n; i++) {
    const bool out = is_left_out(all[i].name);
    if (evaluated[i] ? !out : out || !is_defined(&all[i])) continue;
    fprintf(stderr, out ? "%s is evaluated: it is not to be left out\n" : "%s is not evaluated\n",
            all[i].name);
    missing++;
  }
  ck_assert_int_eq(missing, 0);
#endif
}
END_TEST

/* ---- against libtorch ---- */

/* Whether libtorch computes some of it in float32. */
static bool is_narrow(const rule_term *t) {
  bool yes = t->kind == RULE_OP && rule_operator_of(t->u.s)->narrow;
  for (uint32_t i = 0; i < t->n && !yes; i++) yes = is_narrow(t->child[i]);
  return yes;
}

/* The left side compared with libtorch's result, as a variable of its own. */
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
  var[r->n_vars] = (rule_variable){.name = "want",
                                   .kind = rule_dtype_is_float(s->want->dtype) ? 'f'
                                           : s->want->dtype == RULE_BOOL       ? 'b'
                                                                               : 'i'};
  both.var = var;
  both.rhs = rule_var(&a, r->n_vars);
  memcpy(bind, s->v.bind, r->n_vars * sizeof *bind);
  bind[r->n_vars] = s->want;
  ck_assert(val_precise_sides(engine, &both, bind, &p, &err) == ISO_OK);
  const bool settled = p.answer == VAL_PRECISE_SAME || p.answer == VAL_PRECISE_APART;
  covered += settled;
  if (settled) note_operators(text);
  if (getenv("PRECISE_VERBOSE")) fprintf(stderr, "%d %s\n", (int)p.answer, text);
  const double near = is_narrow(r->lhs) ? 1e-6 : 1e-9;
  ck_assert_msg(p.answer != VAL_PRECISE_APART || p.abs < near || p.rel < near,
                "element %d is off by %g: %s", (int)p.index, p.abs, text);
  iso_arena_fini(&a);
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"
/* Calls whose shape depends on values, or that no proof has. */
static const call more_calls[] = {
    {X, "(aten::_adaptive_avg_pool3d (aten::view x (list 1 1 1 $A $B)) (list 1 1 1))"},
    {X, "(getitem (aten::adaptive_max_pool1d x (list 1)) 0)"},
    {X, "(getitem (aten::adaptive_max_pool1d x (list 1)) 1)"},
    {X, "(getitem (aten::adaptive_max_pool2d (aten::unsqueeze x 0) (list 1 1)) 0)"},
    {X, "(getitem (aten::adaptive_max_pool3d (aten::view x (list 1 1 $A $B)) (list 1 1 1)) 1)"},
    {X, "(getitem (aten::_aminmax x) 1)"},
    {X, "(getitem (aten::aminmax x :dim 1) 0)"},
    {X, "(aten::_upsample_nearest_exact1d (aten::unsqueeze x 0) (list 5) none)"},
    {X, "(aten::_upsample_nearest_exact3d (aten::view x (list 1 1 1 $A $B)) (list 2 3 5) none none "
        "none)"},
    {"(var n i (5))", "(aten::bincount (aten::abs n))"},
    {X "(var d f (3))", "(aten::bucketize.Tensor x (getitem (aten::sort d) 0))"},
    {X "(var d f (3))", "(aten::searchsorted.Tensor (getitem (aten::sort d) 0) x)"},
    {X, "(getitem (aten::cummax x 1) 0)"},
    {X, "(getitem (aten::cummax x 1) 1)"},
    {X, "(getitem (aten::cummin x 0) 1)"},
    {X "(var d f (3))", "(aten::isin.Tensor_Tensor x d)"},
    {X, "(getitem (aten::kthvalue x 1) 0)"},
    {X, "(getitem (aten::kthvalue x 1 0) 1)"},
    {X, "(getitem (aten::median.dim x 1) 0)"},
    {X, "(aten::median x)"},
    {X, "(getitem (aten::nanmedian.dim x 1) 0)"},
    {X, "(aten::nanmedian x)"},
    {X, "(getitem (aten::mode x 1) 0)"},
    {X, "(aten::msort x)"},
    {X, "(aten::masked_select x (aten::gt.Scalar x 0.3))"},
    {X, "(aten::masked_scatter x (aten::gt.Scalar x 0.3) (aten::neg x))"},
    {X, "(aten::nonzero (aten::gt.Scalar x 0.3))"},
    {X, "(aten::arctanh (aten::tanh x))"}, /* few numbers of one's own are in their domains */
    {X, "(aten::arccosh (aten::exp (aten::abs x)))"},
    {"(var n i (5))", "(aten::bitwise_or.Tensor n n)"}};
#pragma GCC diagnostic pop
enum { N_MORE = sizeof more_calls / sizeof *more_calls };

START_TEST(many_digits_are_what_operators_compute) {
  const call *k = _i < N_CALLS ? &calls[_i] : &more_calls[_i - N_CALLS];
  const int before = covered;
  for (int seed = 0; seed < TIMES; seed++) {
    iso_rng rng = rng_of(k, (uint64_t)seed);
    sample s;
    if (!sample_take(&s, k, &rng, true)) {
      if (_i >= N_CALLS && seed == 0) fprintf(stderr, "no rule: %s\n", s.text);
      continue;
    }
    bool finite = s.want != NULL;
    for (int64_t i = 0; finite && i < s.want->numel; i++)
      finite = isfinite(rule_tensor_get(s.want, i)) != 0;
    if (finite) compare_with_torch(&s, s.text);
    sample_free(&s);
  }
#ifdef VAL_HAS_MPFR
  ck_assert_msg(_i < N_CALLS || covered > before, "%s is not evaluated", k->text);
#else
  (void)before;
#endif
}
END_TEST

/* ---- complex numbers ---- */

static const struct {
  const char *call;
  bool real;
} complex_calls[] = {{"(aten::add.Tensor x y)", false},
                     {"(aten::add.Tensor x y :alpha 2)", false},
                     {"(aten::sub.Tensor x y)", false},
                     {"(aten::mul.Tensor x y)", false},
                     {"(aten::div.Tensor x y)", false},
                     {"(aten::neg x)", false},
                     {"(aten::exp x)", false},
                     {"(aten::log x)", false},
                     {"(aten::sqrt x)", false},
                     {"(aten::abs x)", true},
                     {"(aten::angle x)", true},
                     {"(aten::square x)", false},
                     {"(aten::reciprocal x)", false},
                     {"(aten::sin x)", false},
                     {"(aten::cos x)", false},
                     {"(aten::tanh x)", false},
                     {"(aten::sigmoid x)", false},
                     {"(aten::sgn x)", false},
                     {"(aten::conj_physical x)", false},
                     {"(aten::conj x)", false},
                     {"(aten::real x)", true},
                     {"(aten::imag x)", true},
                     {"(aten::view_as_real x)", true},
                     {"(aten::sum x)", false},
                     {"(aten::sum.dim_IntList x (list 1))", false},
                     {"(aten::mean.dim x (list 0) true)", false},
                     {"(aten::prod.dim_int x 1)", false},
                     {"(aten::cumsum x 0)", false},
                     {"(aten::cumsum x 1)", false},
                     {"(aten::cumprod x 0)", false},
                     {"(aten::cumprod x 1)", false},
                     {"(aten::cumprod x 1)", false},
                     {"(aten::mm x (aten::t y))", false},
                     {"(aten::bmm (aten::unsqueeze x 0) (aten::unsqueeze (aten::t y) 0))", false},
                     {"(aten::pow.Tensor_Scalar x 3.0)", false},
                     {"(aten::pow.Tensor_Scalar x -2.0)", false},
                     {"(aten::pow.Tensor_Scalar x 0.3)", false},
                     {"(aten::pow.Tensor_Tensor x y)", false},
                     {"(aten::polar (aten::abs x) (aten::angle y))", false},
                     {"(aten::complex (aten::real x) (aten::imag y))", false},
                     {"(aten::mul.Tensor x (aten::real y))", false},
                     {"(aten::add.Scalar x 1.5)", false},
                     {"(aten::transpose.int x 0 1)", false},
                     {"(aten::index_select x 0 (aten::arange 2))", false},
                     {"(aten::where.self (aten::gt.Scalar (aten::abs x) 1.0) x y)", false},
                     {"(aten::view_as_complex (aten::view_as_real x))", false},
                     {"(aten::eq.Tensor x x)", true}};
enum { N_COMPLEX = sizeof complex_calls / sizeof *complex_calls };

START_TEST(complex_numbers_too) {
  char text[800];
  rule_set *set = NULL;
  iso_error err = {ISO_OK, ""};
  rule_tensor *bind[3] = {NULL, NULL, NULL};
  val_precise p;
  const char *of = complex_calls[_i].call;
  snprintf(text, sizeof text,
           "(rule r (var x c (2 3)) (var y c (2 3)) (var want %c _) (lhs %s) (rhs want))",
           complex_calls[_i].real ? 'f' : 'c', of);
  ck_assert_msg(rule_set_parse(text, SIZE_MAX, "test", &set, &err) == ISO_OK, "%s", err.msg);
  const rule *r = rule_set_at(set, 0);
  for (int seed = 0; seed < TIMES; seed++) {
    iso_rng rng = iso_rng_new((uint64_t)seed, (uint64_t)_i);
    for (int k = 0; k < 2; k++) {
      ck_assert(rule_tensor_new(RULE_C128, &(rule_shape){2, {2, 3}}, &bind[k], &err) == ISO_OK);
      for (int i = 0; i < 12; i++) ((double *)bind[k]->data)[i] = iso_rng_normal(&rng);
    }
    ck_assert_msg(val_eval(engine, r->lhs, bind, VAL_FLOAT64, &bind[2], &err) == ISO_OK, "%s: %s",
                  of, err.msg);
    ck_assert(val_precise_sides(engine, r, bind, &p, &err) == ISO_OK);
#ifdef VAL_HAS_MPFR
    ck_assert_msg(p.answer == VAL_PRECISE_SAME || (p.answer == VAL_PRECISE_APART && p.abs < 1e-9),
                  "%s: %d, off by %g", of, (int)p.answer, p.abs);
    note_operators(of);
#endif
    for (int k = 0; k < 3; k++) rule_tensor_unref(bind[k]);
  }
  rule_set_free(set);
}
END_TEST

/* An evaluation that gives up on everything would pass all of the above. */
START_TEST(many_calls_are_covered) {
#ifdef VAL_HAS_MPFR
  ck_assert_msg(covered > 10000, "only %d samples were evaluated", covered);
#endif
}
END_TEST

/* Digits that float64 loses, and digits that it makes up. */
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

static const struct {
  const char *lhs, *rhs;
  val_precise_answer want;
} cases[] = {
    {"(aten::sub.Scalar (aten::add.Scalar x 1e20) 1e20)", "x", VAL_PRECISE_SAME},
    {"(aten::sub.Scalar (aten::add.Scalar x 1e20) 1e20)", "(aten::mul.Scalar x 0.0)",
     VAL_PRECISE_APART},
    {"(aten::sub.Scalar (aten::add.Scalar x 1e200) 1e200)", "x", VAL_PRECISE_SAME},
    {"(aten::sub.Scalar (aten::add.Scalar x 1e200) 1e200)", "(aten::mul.Scalar x 0.0)",
     VAL_PRECISE_APART},
    {"(aten::add.Tensor x (aten::mul.Scalar y 1e-40))", "x", VAL_PRECISE_APART},
    {"(aten::mul.Scalar (aten::mul.Scalar x 0.1) 0.2)", "(aten::mul.Scalar x 0.02)",
     VAL_PRECISE_SAME},
    {"(aten::mul.Scalar x 0.70710678118654757)", "(aten::div.Scalar x 1.4142135623730951)",
     VAL_PRECISE_SAME},
    {"(aten::add.Tensor (aten::mul.Scalar x 0.70710678118654757) (aten::mul.Scalar y 1e-30))",
     "(aten::mul.Scalar x 0.70710678118654757)", VAL_PRECISE_OPEN},
    {"(aten::logsumexp (aten::stack (list x y)) (list 0))", "(aten::maximum x y)",
     VAL_PRECISE_APART},
    {"(aten::softmax.int (aten::add.Scalar x 1e17) 0)", "(aten::softmax.int x 0)",
     VAL_PRECISE_SAME},
    {"(aten::special_i0 x)", "(aten::special_i0 x)", VAL_PRECISE_LACKS},
    {"(aten::erf (aten::erfinv (aten::mul.Scalar x 0.01)))", "(aten::mul.Scalar x 0.01)",
     VAL_PRECISE_SAME},
    /* below all exponents that there are: nothing is left to compare */
    {"(aten::pow.Tensor_Scalar (aten::exp (aten::neg (aten::abs y))) 1e20)",
     "(aten::pow.Tensor_Scalar (aten::exp (aten::neg (aten::abs y))) 2e20)", VAL_PRECISE_OPEN},
    {"(aten::erfinv (aten::mul.Scalar x 0.01))", "(aten::mul.Scalar x 0.0088622)",
     VAL_PRECISE_APART}};

START_TEST(what_float64_loses_is_seen) {
#ifdef VAL_HAS_MPFR
  const double x[] = {0.5, -0.25, 30, 1e-3}, y[] = {-45, 1, -90, 0.125};
  char text[800];
  snprintf(text, sizeof text, "(rule r (var x f (4)) (var y f (4)) (lhs %s) (rhs %s))",
           cases[_i].lhs, cases[_i].rhs);
  const val_precise p = answer_of(text, x, y, 4);
  ck_assert_msg(p.answer == cases[_i].want, "%s: %d", text, (int)p.answer);
#endif
}
END_TEST

/* Digits that cannot be had are neither a difference nor an agreement. */
START_TEST(what_no_digits_reach_is_lost) {
#ifdef VAL_HAS_MPFR
  const double x[] = {-4000, -3000, -3500, -5000}, y[] = {1, 2, 3, 4};
  const val_precise far =
      answer_of("(rule r (var x f (4)) (var y f (4)) (lhs (aten::mul.Tensor (aten::exp x) y))"
                " (rhs (aten::mul.Tensor (aten::sub.Scalar (aten::add.Scalar (aten::exp x) 1e300) "
                "1e300) y)))",
                x, y, 4);
  ck_assert(far.lost && far.answer != VAL_PRECISE_SAME && far.answer != VAL_PRECISE_APART);
  const val_precise near = answer_of("(rule r (var x f (4)) (var y f (4)) (lhs y)"
                                     " (rhs (aten::sub.Scalar (aten::add.Scalar y 1e300) 1e300)))",
                                     x, y, 4);
  ck_assert(!near.lost && near.answer == VAL_PRECISE_SAME);
#endif
}
END_TEST

int main(void) {
  Suite *s = suite_create("precise");
  TCase *t = tcase_create("precise");
  tcase_set_timeout(t, 120);
  tcase_add_loop_test(t, many_digits_are_what_operators_compute, 0, N_CALLS + N_MORE);
  tcase_add_test(t, many_calls_are_covered);
  tcase_add_loop_test(t, complex_numbers_too, 0, N_COMPLEX);
  tcase_add_test(t, no_definition_is_forgotten);
  tcase_add_test(t, what_no_digits_reach_is_lost);
  tcase_add_loop_test(t, what_float64_loses_is_seen, 0, (int)(sizeof cases / sizeof *cases));
  suite_add_tcase(s, t);
  return run_suite_with_engine(s);
}
