/* Comparing: differences that a tolerance accepts, and those that it never does. */
#include <check.h>
#include <math.h>
#include <stdlib.h>

#include "validate/validate.h"
#include "tests/support/suite.h"

static rule_tensor *tensor(rule_dtype d, uint32_t rank, const int64_t *dim, const double *v) {
  rule_shape s = {.rank = rank};
  for (uint32_t i = 0; i < rank; i++) s.dim[i] = dim[i];
  rule_tensor *t = NULL;
  iso_error err;
  ck_assert_msg(rule_tensor_new(d, &s, &t, &err) == ISO_OK, "%s", err.msg);
  for (int64_t i = 0; v && i < t->numel; i++) rule_tensor_set(t, i, v[i]);
  return t;
}

/* Two rows of three. */
static rule_tensor *rows(rule_dtype d, double a, double b, double c, double p, double q, double r) {
  return tensor(d, 2, (int64_t[]){2, 3}, (double[]){a, b, c, p, q, r});
}

/* Compares and lets both go. */
static val_diff compare(rule_tensor *a, rule_tensor *b, double rel, double floor_abs) {
  val_diff d = val_compare(a, b, rel, floor_abs);
  rule_tensor_unref(a);
  rule_tensor_unref(b);
  return d;
}

static double ulps(rule_tensor *a, rule_tensor *b) {
  double u = val_ulp_normwise(a, b);
  rule_tensor_unref(a);
  rule_tensor_unref(b);
  return u;
}

START_TEST(equal_is_equal) {
  val_diff d = compare(rows(RULE_F32, 1, 2, 3, 0, -0.0, 1e-40),
                       rows(RULE_F32, 1, 2, 3, -0.0, 0, 1e-40), 0, 0);
  ck_assert(d.equal && d.max_abs == 0 && d.max_rel == 0 && d.index == -1 && d.n_nan == 0);
}
END_TEST

START_TEST(each_slice_has_its_own_norm) {
  /* 1e-3 of a row of ones is a difference, however large the row above it is. */
  val_diff d =
      compare(rows(RULE_F64, 1e9, 1, 1, 1, 1, 1), rows(RULE_F64, 1e9, 1, 1, 1, 1.001, 1), 1e-9, 0);
  ck_assert(!d.equal && d.index == 4);
  ck_assert_double_eq_tol(d.max_rel, 1e-3, 1e-12);
  /* Within the slice of the large element it is none. */
  d = compare(rows(RULE_F64, 1e9, 1, 1, 1, 1, 1), rows(RULE_F64, 1e9, 1, 1.001, 1, 1, 1), 1e-9, 0);
  ck_assert(d.equal && d.index == 2 && d.max_abs > 9e-4);
}
END_TEST

START_TEST(the_floor_is_absolute) {
  val_diff d =
      compare(rows(RULE_F64, 0, 0, 0, 1, 1, 1), rows(RULE_F64, 0, 1e-14, 0, 1, 1, 1), 1e-9, 1e-13);
  ck_assert(d.equal && isfinite(d.max_rel));
  d = compare(rows(RULE_F64, 0, 0, 0, 1, 1, 1), rows(RULE_F64, 0, 1e-14, 0, 1, 1, 1), 1e-9, 0);
  ck_assert(!d.equal && d.index == 1 && isinf(d.max_rel));
  /* A row that is zero but for rounding is not measured by itself. */
  d = compare(rows(RULE_F64, 1e-15, 0, 0, 1, 4, 1), rows(RULE_F64, 0, 1e-15, 0, 1, 4, 1), 1e-9,
              1e-13);
  ck_assert(d.equal && d.index == -1 && d.max_abs > 9e-16);
  ck_assert_double_eq_tol(d.max_rel, 1e-15 / 4, 1e-20);
}
END_TEST

START_TEST(what_is_not_finite_has_its_place) {
  const double odd[] = {NAN, INFINITY, -INFINITY, 1e31, -1e31, 5};
  for (size_t i = 0; i < 6; i++)
    for (size_t k = 0; k < 6; k++) {
      val_diff d = compare(rows(RULE_F64, odd[i], 1, 1, 1, 1, 1),
                           rows(RULE_F64, odd[k], 1, 1, 1, 1, 1), 1e-9, 1e300);
      /* An infinity and a number beyond 1e30 are the same mask. */
      bool both_up = (i == 1 || i == 3) && (k == 1 || k == 3),
           both_down = (i == 2 || i == 4) && (k == 2 || k == 4);
      ck_assert_msg(d.equal == (i == k || both_up || both_down), "%g against %g", odd[i], odd[k]);
      ck_assert(d.n_nan == (i == 0 && k == 0));
    }
}
END_TEST

START_TEST(a_mask_hides_nothing) {
  val_diff d = compare(rows(RULE_F64, -INFINITY, 1, 1, 1, 1, 1),
                       rows(RULE_F64, -INFINITY, 1, 1.1, 1, 1, 1), 1e-9, 0);
  ck_assert(!d.equal && d.index == 2);
  d = compare(rows(RULE_F32, -3.4e38, 1, 1, 1, 1, 1), rows(RULE_F32, -3.4e38, 1, 1.1, 1, 1, 1),
              1e-6, 0);
  ck_assert(!d.equal && d.index == 2);
}
END_TEST

START_TEST(integers_are_exact) {
  rule_tensor *a = tensor(RULE_I64, 1, (int64_t[]){2}, NULL),
              *b = tensor(RULE_I64, 1, (int64_t[]){2}, NULL);
  ((int64_t *)a->data)[1] = (1LL << 60) + 1;
  ((int64_t *)b->data)[1] = 1LL << 60; /* the same double */
  val_diff d = compare(a, b, 1, 1e9);
  ck_assert(!d.equal && d.index == 1 && d.max_abs > 0);
  d = compare(rows(RULE_BOOL, 0, 1, 0, 1, 1, 0), rows(RULE_BOOL, 0, 1, 0, 1, 0, 0), 1, 1e9);
  ck_assert(!d.equal && d.index == 4);
}
END_TEST

START_TEST(shapes_may_differ_and_counts_may_not) {
  const double v[] = {1, 2, 3, 4, 5, 6};
  ck_assert(compare(tensor(RULE_F64, 1, (int64_t[]){6}, v),
                    tensor(RULE_F64, 2, (int64_t[]){3, 2}, v), 0, 0)
                .equal);
  ck_assert(
      !compare(tensor(RULE_F64, 1, (int64_t[]){5}, v), tensor(RULE_F64, 1, (int64_t[]){6}, v), 1, 1)
           .equal);
  ck_assert(compare(tensor(RULE_F64, 2, (int64_t[]){3, 0}, v),
                    tensor(RULE_F64, 1, (int64_t[]){0}, v), 0, 0)
                .equal);
  ck_assert(
      compare(tensor(RULE_F64, 0, NULL, v), tensor(RULE_F64, 1, (int64_t[]){1}, v), 0, 0).equal);
}
END_TEST

START_TEST(complex_numbers_by_component) {
  rule_tensor *a = tensor(RULE_C128, 1, (int64_t[]){2}, (double[]){1, 2});
  rule_tensor *b = tensor(RULE_C128, 1, (int64_t[]){2}, (double[]){1, 2});
  ((double *)b->data)[3] = 0.5;
  rule_tensor *real = tensor(RULE_F64, 1, (int64_t[]){2}, (double[]){1, 2});
  ck_assert(val_compare(a, real, 0, 0).equal);
  ck_assert(!val_compare(real, b, 1e-9, 0).equal); /* an imaginary part against none */
  rule_tensor_unref(real);
  val_diff d = compare(a, b, 1e-9, 0);
  ck_assert(!d.equal && d.index == 1);
}
END_TEST

START_TEST(ulps_are_normwise) {
  ck_assert_double_eq(
      ulps(rows(RULE_F32, 1, 0, 0, 2, 0, 0), rows(RULE_F32, 1, 0x1p-22, 0, 2, 0, 0)), 1);
  ck_assert_double_eq(ulps(rows(RULE_F32, 1, 2, 3, 4, 5, 6), rows(RULE_F32, 1, 2, 3, 4, 5, 6)), 0);
  /* The coarser dtype counts. */
  ck_assert_double_eq(
      ulps(rows(RULE_BF16, 1, 1, 1, 1, 1, 1), rows(RULE_F64, 1, 1 + 0x1p-7, 1, 1, 1, 1)), 1);
  ck_assert(isinf(ulps(rows(RULE_F32, NAN, 1, 1, 1, 1, 1), rows(RULE_F32, 1, 1, 1, 1, 1, 1))));
  ck_assert(isinf(ulps(rows(RULE_I32, 1, 1, 1, 1, 1, 1), rows(RULE_I32, 1, 1, 1, 1, 1, 2))));
  ck_assert(isinf(ulps(rows(RULE_F32, 0, 0, 0, 0, 0, 0), rows(RULE_F32, 0, 0, 1, 0, 0, 0))));
  ck_assert_double_eq(
      ulps(rows(RULE_F32, -INFINITY, 1, 1, 1, 1, 1), rows(RULE_F32, -INFINITY, 1, 1, 1, 1, 1)), 0);
}
END_TEST

START_TEST(samples_are_normal_and_reproducible) {
  rule_tensor *a = tensor(RULE_F64, 1, (int64_t[]){20000}, NULL),
              *b = tensor(RULE_F64, 1, (int64_t[]){20000}, NULL);
  iso_rng r = iso_rng_new(7, 1), s = iso_rng_new(7, 1);
  val_sample_normal(&r, a, 3, 2);
  val_sample_normal(&s, b, 3, 2);
  ck_assert(val_compare(a, b, 0, 0).equal);
  double sum = 0, squares = 0;
  for (int64_t i = 0; i < a->numel; i++) {
    double x = rule_tensor_get(a, i);
    sum += x;
    squares += (x - 3) * (x - 3);
  }
  ck_assert_double_eq_tol(sum / 20000, 3, 0.06);
  ck_assert_double_eq_tol(squares / 20000, 4, 0.2);
  rule_tensor_unref(a);
  rule_tensor_unref(b);
  rule_tensor *c = tensor(RULE_C64, 1, (int64_t[]){64}, NULL);
  val_sample_normal(&r, c, 0, 1);
  ck_assert(((float *)c->data)[1] != 0);
  rule_tensor_unref(c);
}
END_TEST

int main(void) {
  Suite *s = suite_create("compare");
  TCase *c = tcase_create("compare");
  tcase_add_test(c, equal_is_equal);
  tcase_add_test(c, each_slice_has_its_own_norm);
  tcase_add_test(c, the_floor_is_absolute);
  tcase_add_test(c, what_is_not_finite_has_its_place);
  tcase_add_test(c, a_mask_hides_nothing);
  tcase_add_test(c, integers_are_exact);
  tcase_add_test(c, shapes_may_differ_and_counts_may_not);
  tcase_add_test(c, complex_numbers_by_component);
  tcase_add_test(c, ulps_are_normwise);
  tcase_add_test(c, samples_are_normal_and_reproducible);
  suite_add_tcase(s, c);
  return run_suite(s);
}
