/* Bounds of real numbers: what has a largest and a least value, moved and scaled, is clamped near
 * to one of them. That the clamp changes nothing is proved where the bound lies outside, and never
 * where it lies inside. The same of a cast to few bits. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "egraph/base/rng.h"
#include "validate/validate.h"
#include "tests/support/suite.h"

#define LENGTH(a) (sizeof(a) / sizeof *(a))

enum { ROUNDS = 600, TEXT = 1 << 13 };

/* Numbers between `low` and `high`, which are reached or approached. */
typedef struct bounded {
  const char *text;
  double low, high;
} bounded;

#define SIZE "(aten::abs x)"
#define LARGEST "(aten::amax " SIZE " (list 1) true)"
#define SPAN "(aten::sub.Tensor (aten::amax x (list 1) true) (aten::amin x (list 1) true))"
#define GROUPS "(aten::reshape x (list 3 2 2))"

static const bounded all[] = {
    {"(aten::softmax.int x 1)", 0, 1},
    {"(aten::sigmoid x)", 0, 1},
    {"(aten::tanh x)", -1, 1},
    {"(aten::sin x)", -1, 1},
    {"(aten::cos (aten::mul.Tensor x x))", -1, 1},
    {"(aten::erf x)", -1, 1},
    {"(aten::exp (aten::sub.Tensor x (aten::amax x (list 1) true)))", 0, 1},
    {"(aten::div.Tensor x (aten::add.Tensor " LARGEST " 1e-5))", -1, 1},
    {"(aten::div.Tensor x (aten::clamp " LARGEST " 1e-5))", -1, 1},
    {"(aten::div.Tensor " SIZE " (aten::add.Tensor (aten::sum.dim_IntList " SIZE
     " (list 1) true) 1e-5))",
     0, 1},
    {"(aten::div.Tensor x (aten::add.Tensor (aten::sum.dim_IntList " SIZE " (list 1) true) 1e-5))",
     -1, 1},
    {"(aten::div.Tensor (aten::mul.Tensor x x) (aten::add.Tensor (aten::sum.dim_IntList "
     "(aten::mul.Tensor x x) (list 1) true) 1e-5))",
     0, 1},
    {"(aten::div.Tensor (aten::sub.Tensor x (aten::amin x (list 1) true)) (aten::add.Tensor " SPAN
     " 1e-5))",
     0, 1},
    {"(aten::sub.Tensor (aten::amax x (list 1) true) (aten::mean.dim x (list 1) true))", 0,
     INFINITY},
    {"(aten::add.Tensor (aten::mul.Tensor x x) (aten::relu x))", 0, INFINITY},
    {"(aten::sub.Tensor (aten::mean.dim (aten::mul.Tensor x x) (list 1) true) (aten::mul.Tensor "
     "(aten::mean.dim x (list 1) true) (aten::mean.dim x (list 1) true)))",
     0, INFINITY},
    {"(aten::round (aten::div.Tensor x (aten::add.Tensor (aten::div.Tensor " LARGEST
     " 127.0) 1e-6)))",
     -127, 127},
    {"(aten::trunc (aten::mul.Tensor (aten::div.Tensor x (aten::clamp " LARGEST " 1e-6)) 7.0))", -7,
     7},
    {"(aten::div.Tensor " GROUPS " (aten::add.Tensor (aten::amax (aten::abs " GROUPS
     ") (list 2) true) 1e-5))",
     -1, 1},
    {"(aten::minimum (aten::sigmoid x) (aten::sin x))", -1, 1},
    {"(aten::cumsum (aten::softmax.int x 1) 1)", 0, 1},
    {"(aten::sum.dim_IntList (aten::to.dtype (aten::gt.Scalar x 0.5) float32) (list 1) true)", 0,
     4},
    {"(aten::cumsum (aten::to.dtype (aten::gt.Scalar x 0.5) float32) 1)", 0, 4},
    {"(aten::neg (aten::log_softmax.int x 1))", 0, INFINITY},
    {"(aten::sub.Tensor (aten::logsumexp x (list 1) true) x)", 0, INFINITY},
    {"(aten::mul.Tensor (aten::softmax.int x 1) (aten::neg (aten::log_softmax.int x 1)))", 0,
     INFINITY},
    {"(aten::div.Tensor x (aten::sqrt (aten::add.Tensor (aten::sum.dim_IntList (aten::mul.Tensor x "
     "x) (list 1) true) 1e-6)))",
     -1, 1},
    {"(aten::mul.Tensor x (aten::rsqrt (aten::add.Tensor (aten::mean.dim (aten::mul.Tensor x x) "
     "(list 1) true) 1e-6)))",
     -2, 2},
};

static const char *number(char *to, double v) {
  snprintf(to, 32, "%.9g", v);
  if (!strpbrk(to, ".e")) strncat(to, ".0", 31 - strlen(to));
  return to;
}

/* Whether `changed` is proved to be `text`. */
static bool proved(const char *changed, const char *text) {
  static char rule_text[3 * TEXT];
  rule_set *set = NULL;
  rule_schemas *schemas = NULL;
  rule_verdict verdict = {.status = RULE_REFUTED};
  iso_error err = {ISO_OK, ""};
  snprintf(rule_text, sizeof rule_text, "(rule r (var x f (3 4)) (lhs %s) (rhs %s))", changed,
           text);
  ck_assert_msg(!rule_set_parse(rule_text, SIZE_MAX, "test", &set, &err), "%s: %s", err.msg,
                rule_text);
  ck_assert(!rule_schemas_new(&schemas, &err));
  ck_assert_msg(!val_prove(rule_set_at(set, 0), schemas, &(val_options){.z3_rlimit = 5000000},
                           &verdict, &err),
                "%s", err.msg);
  rule_schemas_free(schemas);
  rule_set_free(set);
  return verdict.status == RULE_PROVED;
}

/* `text`, clamped from below (`up`: above) at `at`. */
static const char *clamped(const char *text, bool up, double at) {
  static char to[2 * TEXT];
  char v[32];
  number(v, at);
  snprintf(to, sizeof to, "(aten::clamp %s %s %s)", text, up ? "none" : v, up ? v : "none");
  return to;
}

static double one_of(iso_rng *g, const double *v, size_t n) { return v[iso_rng_below(g, n)]; }

START_TEST(a_bound_is_dropped_where_it_never_binds) {
  static char text[TEXT];
  char v[32], w[32];
  size_t outside = 0, dropped = 0;
  iso_rng g = iso_rng_new(5, 0);
  for (int round = 0; round < ROUNDS; round++) {
    const bounded *b = &all[(size_t)round % LENGTH(all)];
    const double times = one_of(&g, (double[]){1, 2, 0.5, -1, -3}, 5),
                 plus = one_of(&g, (double[]){0, 1, -0.25, 5}, 4),
                 off = one_of(&g, (double[]){0, 1e-3, 0.5, -1e-3, -0.25}, 5);
    const double a = times * b->low + plus, z = times * b->high + plus, low = a < z ? a : z,
                 high = a < z ? z : a;
    const bool up = iso_rng_below(&g, 2) == 1;
    if (isinf(up ? high : low)) continue;
    snprintf(text, sizeof text, "(aten::add.Tensor (aten::mul.Tensor %s %s) %s)", b->text,
             number(v, times), number(w, plus));
    const bool known = proved(clamped(text, up, up ? high + off : low - off), text);
    ck_assert_msg(off >= 0 || !known, "%s is within %g and %g", text, low, high);
    outside += off >= 0;
    dropped += known;
  }
  ck_assert_uint_eq(dropped, outside);
}
END_TEST

/* What is above its bound by some is positive, and what is not above it is not. */
START_TEST(a_comparison_beyond_a_bound_is_decided) {
  static char text[2 * TEXT], always[TEXT];
  char v[32], w[32];
  size_t beyond = 0, known = 0;
  iso_rng g = iso_rng_new(6, 0);
  for (int round = 0; round < ROUNDS; round++) {
    const bounded *b = &all[(size_t)round % LENGTH(all)];
    const double times = one_of(&g, (double[]){1, 2, 0.5, -1, -3}, 5),
                 off = one_of(&g, (double[]){1e-3, 0.5, 7, -1e-3, -0.25}, 5),
                 least = fmin(times * b->low, times * b->high);
    if (isinf(least)) continue;
    snprintf(always, sizeof always, "(aten::ge.Scalar (aten::abs %s) 0.0)", b->text);
    snprintf(text, sizeof text,
             "(aten::gt.Scalar (aten::add.Tensor (aten::mul.Tensor %s %s) %s) 0.0)", b->text,
             number(v, times), number(w, off - least));
    const bool positive = proved(text, always);
    if (off > 0 && !positive) printf("open: %s * %g off %g\n", b->text, times, off);
    ck_assert_msg(off > 0 || !positive, "%s times %g is above %g", b->text, times, least - off);
    beyond += off > 0;
    known += positive;
  }
  ck_assert_uint_eq(known, beyond);
}
END_TEST

/* A whole number that is cast to few bits, and back, is itself where it fits. */
START_TEST(a_cast_is_dropped_where_all_numbers_fit) {
  static char text[TEXT], cast[2 * TEXT];
  char v[32];
  static const struct {
    const char *name;
    double least, most;
  } type[] = {{"int8", -128, 127}, {"uint8", 0, 255}, {"int16", -32768, 32767}};
  static const double scale[] = {1, 127, 127.5, 128, 129, 255, 256, 300, 32767, 32768, -127, -129};
  size_t fit = 0, known = 0;
  for (size_t i = 0; i < LENGTH(all); i++)
    for (size_t k = 0; k < LENGTH(type) * LENGTH(scale); k++) {
      const double times = scale[k / LENGTH(type)], a = times * all[i].low, z = times * all[i].high,
                   low = rint(fmin(a, z)), high = rint(fmax(a, z));
      const size_t t = k % LENGTH(type);
      snprintf(text, sizeof text, "(aten::round (aten::mul.Tensor %s %s))", all[i].text,
               number(v, times));
      snprintf(cast, sizeof cast, "(aten::to.dtype (aten::to.dtype %s %s) float32)", text,
               type[t].name);
      const bool same = proved(cast, text), fits = low >= type[t].least && high <= type[t].most;
      ck_assert_msg(fits || !same, "%s in %s", text, type[t].name);
      fit += fits;
      known += same;
    }
  ck_assert_uint_eq(known, fit);
}
END_TEST

int main(void) {
  Suite *s = suite_create("nonneg");
  TCase *t = tcase_create("nonneg");
  tcase_set_timeout(t, 120);
  tcase_add_test(t, a_bound_is_dropped_where_it_never_binds);
  tcase_add_test(t, a_comparison_beyond_a_bound_is_decided);
  tcase_add_test(t, a_cast_is_dropped_where_all_numbers_fit);
  suite_add_tcase(s, t);
  return run_suite(s);
}
