/* Rounding at random, and tensors held against each other. */
#include "localise/rounding/rounding_int.h"
#include "egraph/base/rng.h"
#include "tests/support/suite.h"

#include <math.h>

static iso_error err;

static rule_tensor *tensor(rule_dtype d, const double *x, int64_t n) {
  const rule_shape s = {.rank = 1, .dim = {n}};
  rule_tensor *t;
  ck_assert_int_eq(rule_tensor_new(d, &s, &t, &err), ISO_OK);
  for (int64_t i = 0; i < n; i++) rule_tensor_set(t, i, x[i]);
  return t;
}

static const rule_dtype narrow[] = {RULE_F32, RULE_F16, RULE_BF16, RULE_F8E4M3FN, RULE_F8E5M2};

START_TEST(what_a_format_holds_stays) {
  for (size_t k = 0; k < sizeof narrow / sizeof *narrow; k++) {
    const double x[] = {0, -0.0, 1, -1.5, 0.25, 192, ldexp(1, -6), -ldexp(1, -7)};
    rule_tensor *t = tensor(RULE_F64, x, 8), *r;
    iso_rng rng = iso_rng_new(1, k);
    ck_assert_int_eq(lr_round(t, narrow[k], &rng, &r, &err), ISO_OK);
    ck_assert(rule_tensor_same(t, r));
    rule_tensor_unref(t);
    rule_tensor_unref(r);
  }
}
END_TEST

/* Each result is one of the two numbers of the format beside the operand, as the cast of both to
 * the format says, and the mean of many is the operand. */
START_TEST(neighbours_are_drawn_without_bias) {
  enum { N = 4000 };
  static double x[N];
  iso_rng rng = iso_rng_new(7, (uint64_t)_i);
  const rule_dtype to = narrow[_i];
  const double of = iso_rng_normal(&rng) * 3;
  for (int64_t i = 0; i < N; i++) x[i] = of;
  rule_tensor *t = tensor(RULE_F64, x, N), *r, *cast;
  ck_assert_int_eq(lr_round(t, to, &rng, &r, &err), ISO_OK);
  ck_assert_int_eq(lr_cast(r, to, &cast, &err), ISO_OK);
  double sum = 0, low = INFINITY, high = -INFINITY;
  for (int64_t i = 0; i < N; i++) {
    const double y = rule_tensor_get(r, i);
    ck_assert(rule_tensor_get(cast, i) == y);
    low = fmin(low, y), high = fmax(high, y), sum += y / N;
  }
  ck_assert(low <= of && of <= high);
  ck_assert(high - low <= fabs(of) * ldexp(2, -lr_digits(to) + 1));
  ck_assert(fabs(sum - of) <= 4 * (high - low) / sqrt(N));
  rule_tensor_unref(t);
  rule_tensor_unref(r);
  rule_tensor_unref(cast);
}
END_TEST

START_TEST(masks_and_infinities) {
  const double exact[] = {3, 4, -1e38, -INFINITY}, own[] = {3, 4.5, -2e38, -INFINITY},
               gone[] = {3, INFINITY, -1e38, -INFINITY};
  rule_tensor *e = tensor(RULE_F64, exact, 4), *x = tensor(RULE_F64, own, 4),
              *y = tensor(RULE_F64, gone, 4);
  ck_assert(fabs(lr_distance(x, e, e) - 0.1) < 1e-12);
  ck_assert(isinf(lr_distance(y, e, e)));
  ck_assert(lr_overflows(y, e) && !lr_overflows(x, e));
  rule_tensor_unref(e);
  rule_tensor_unref(x);
  rule_tensor_unref(y);
}
END_TEST

START_TEST(beyond_the_largest_is_infinite) {
  const double x[] = {65504, 65519, 70000, -70000};
  rule_tensor *t = tensor(RULE_F64, x, 4), *r;
  iso_rng rng = iso_rng_new(1, 1);
  ck_assert_int_eq(lr_round(t, RULE_F16, &rng, &r, &err), ISO_OK);
  ck_assert(rule_tensor_get(r, 0) == 65504);
  ck_assert(isinf(rule_tensor_get(r, 2)) && rule_tensor_get(r, 3) < 0);
  rule_tensor_unref(t);
  rule_tensor_unref(r);
}
END_TEST

int main(void) {
  Suite *s = suite_create("rounding");
  TCase *t = tcase_create("rounding");
  tcase_add_test(t, what_a_format_holds_stays);
  tcase_add_loop_test(t, neighbours_are_drawn_without_bias, 0, 5);
  tcase_add_test(t, masks_and_infinities);
  tcase_add_test(t, beyond_the_largest_is_infinite);
  suite_add_tcase(s, t);
  return run_suite(s);
}
