/* Tensors: conversions against a search for the nearest value, shapes, reference counts. */
#include <check.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "egraph/base/rng.h"
#include "rules/tensor.h"
#include "tests/support/suite.h"

static rule_tensor *scalar(rule_dtype d) {
  rule_tensor *t;
  const rule_shape s = {0};
  ck_assert_int_eq(rule_tensor_new(d, &s, &t, NULL), ISO_OK);
  return t;
}

/* Every value of a small format, in order of its bits. */
static double value_of(rule_tensor *t, uint32_t bits) {
  if (rule_dtype_size(t->dtype) == 1) *(uint8_t *)t->data = (uint8_t)bits;
  else *(uint16_t *)t->data = (uint16_t)bits;
  return rule_tensor_get(t, 0);
}

static uint32_t bits_of(const rule_tensor *t) {
  return rule_dtype_size(t->dtype) == 1 ? *(const uint8_t *)t->data : *(const uint16_t *)t->data;
}

static const struct {
  rule_dtype dtype;
  uint32_t n;      /* positive finite values, zero among them */
  double max, min; /* largest, smallest above 0 */
} small[] = {{RULE_F16, 0x7c00, 65504, 0x1p-24},
             {RULE_BF16, 0x7f80, 0x1.fep127, 0x1p-133},
             {RULE_F8E4M3FN, 0x7f, 448, 0x1p-9},
             {RULE_F8E5M2, 0x7c, 57344, 0x1p-16}};

START_TEST(small_formats_round_trip) {
  rule_tensor *t = scalar(small[_i].dtype);
  const uint32_t sign = rule_dtype_size(t->dtype) == 1 ? 0x80 : 0x8000;
  double last = -1;
  for (uint32_t b = 0; b < small[_i].n; b++) {
    const double v = value_of(t, b);
    ck_assert(v > last);
    last = v;
    rule_tensor_set(t, 0, v);
    ck_assert_uint_eq(bits_of(t), b);
    rule_tensor_set(t, 0, -v);
    ck_assert_uint_eq(bits_of(t), b | sign);
    ck_assert(value_of(t, b | sign) == -v && signbit(value_of(t, b | sign)));
  }
  ck_assert(last == small[_i].max);
  ck_assert(value_of(t, 1) == small[_i].min);
  rule_tensor_unref(t);
}
END_TEST

/* Halfway between two neighbours goes to the even one, a hair beside it to the nearer. */
START_TEST(small_formats_round_to_nearest_even) {
  rule_tensor *t = scalar(small[_i].dtype);
  for (uint32_t b = 0; b + 1 < small[_i].n; b++) {
    const double lo = value_of(t, b), hi = value_of(t, b + 1), mid = lo + (hi - lo) / 2;
    rule_tensor_set(t, 0, mid);
    ck_assert_uint_eq(bits_of(t), b + (b & 1));
    rule_tensor_set(t, 0, nextafter(mid, 0));
    ck_assert_uint_eq(bits_of(t), b);
    rule_tensor_set(t, 0, nextafter(mid, INFINITY));
    ck_assert_uint_eq(bits_of(t), b + 1);
  }
  rule_tensor_unref(t);
}
END_TEST

START_TEST(small_formats_at_their_ends) {
  rule_tensor *t = scalar(small[_i].dtype);
  const bool finite = t->dtype == RULE_F8E4M3FN;
  const double past[] = {small[_i].max * 1.5, 1e300, INFINITY};
  for (size_t k = 0; k < 3; k++) {
    rule_tensor_set(t, 0, past[k]);
    ck_assert(finite ? isnan(rule_tensor_get(t, 0)) : isinf(rule_tensor_get(t, 0)));
    rule_tensor_set(t, 0, -past[k]);
    ck_assert(finite ? isnan(rule_tensor_get(t, 0)) : rule_tensor_get(t, 0) == -INFINITY);
  }
  rule_tensor_set(t, 0, NAN);
  ck_assert(isnan(rule_tensor_get(t, 0)));
  rule_tensor_set(t, 0, 5e-324);
  ck_assert(rule_tensor_get(t, 0) == 0);
  rule_tensor_set(t, 0, -0.0);
  ck_assert(signbit(rule_tensor_get(t, 0)));
  rule_tensor_unref(t);
}
END_TEST

/* A double just above a tie would round down to it in float, and then to even: one rounding must
 * not. */
START_TEST(no_double_rounding) {
  rule_tensor *t = scalar(RULE_F16);
  rule_tensor_set(t, 0, 1 + 0x1p-11 + 0x1p-40);
  ck_assert(rule_tensor_get(t, 0) == 1 + 0x1p-10);
  rule_tensor_unref(t);
}
END_TEST

/* The overflow threshold is halfway to the value that would come next. */
START_TEST(overflow_thresholds) {
  rule_tensor *t = scalar(RULE_F16);
  rule_tensor_set(t, 0, nextafter(65520, 0));
  ck_assert(rule_tensor_get(t, 0) == 65504);
  rule_tensor_set(t, 0, 65520);
  ck_assert(isinf(rule_tensor_get(t, 0)));
  rule_tensor_unref(t);
  t = scalar(RULE_F8E4M3FN);
  rule_tensor_set(t, 0, 464);
  ck_assert(rule_tensor_get(t, 0) == 448);
  rule_tensor_set(t, 0, nextafter(464, 500));
  ck_assert(isnan(rule_tensor_get(t, 0)));
  rule_tensor_unref(t);
}
END_TEST

START_TEST(float64_of_every_dtype) {
  iso_rng rng = iso_rng_new(1, (uint64_t)_i);
  const rule_shape s = {.rank = 2, .dim = {3, 5}};
  rule_tensor *t, *d;
  ck_assert_int_eq(rule_tensor_new((rule_dtype)_i, &s, &t, NULL), ISO_OK);
  for (int64_t i = 0; i < t->numel; i++) rule_tensor_set(t, i, 4 * iso_rng_normal(&rng));
  ck_assert_int_eq(rule_tensor_to_float64(t, &d, NULL), ISO_OK);
  ck_assert(rule_shape_eq(&d->shape, &t->shape));
  if (rule_dtype_is_float(t->dtype)) ck_assert_int_eq(d->dtype, RULE_F64);
  else if (rule_dtype_is_complex(t->dtype)) ck_assert_int_eq(d->dtype, RULE_C128);
  else ck_assert_ptr_eq(d, t);
  for (int64_t i = 0; i < t->numel; i++) ck_assert(rule_tensor_get(d, i) == rule_tensor_get(t, i));
  rule_tensor_unref(t);
  rule_tensor_unref(d);
}
END_TEST

/* Rounding is what storing does, and the unit is the distance of the numbers about. */
START_TEST(numbers_round_as_they_are_stored) {
  const rule_dtype d = small[_i].dtype;
  rule_tensor *t = scalar(d);
  iso_rng rng = iso_rng_new(4, (uint64_t)_i);
  for (int k = 0; k < 20000; k++) {
    const double x = ldexp(iso_rng_uniform(&rng) * 2 - 1, (int)iso_rng_below(&rng, 280) - 150);
    const double y = rule_dtype_round(d, x);
    rule_tensor_set(t, 0, x);
    const double stored = rule_tensor_get(t, 0);
    ck_assert(isfinite(stored) ? y == stored : isinf(y) && signbit(y) == signbit(x));
  }
  double last = 0;
  for (uint32_t b = 1; b < small[_i].n; b++) {
    const double v = value_of(t, b);
    ck_assert(rule_dtype_unit(d, last) == v - last && rule_dtype_unit(d, -last) == v - last);
    last = v;
  }
  ck_assert(rule_dtype_largest(d) == small[_i].max);
  ck_assert(rule_dtype_unit(d, 1) == ldexp(1, 1 - rule_dtype_digits(d)));
  rule_tensor_unref(t);
}
END_TEST

START_TEST(other_dtypes_hold) {
  static const struct {
    rule_dtype dtype;
    double unit, largest;
  } wide[] = {{RULE_F64, DBL_EPSILON, DBL_MAX},
              {RULE_F32, FLT_EPSILON, FLT_MAX},
              {RULE_C128, DBL_EPSILON, DBL_MAX},
              {RULE_C64, FLT_EPSILON, FLT_MAX},
              {RULE_I64, 0, 0},
              {RULE_BOOL, 0, 0}};
  for (size_t k = 0; k < sizeof wide / sizeof *wide; k++) {
    const rule_dtype d = wide[k].dtype;
    const double third = 1.0 / 3;
    ck_assert(rule_dtype_unit(d, 1) == wide[k].unit && rule_dtype_largest(d) == wide[k].largest);
    ck_assert(rule_dtype_round(d, third) == (wide[k].unit == FLT_EPSILON ? (float)third : third));
  }
  ck_assert(rule_dtype_round(RULE_F32, 1e-42) == (double)1e-42f);
  ck_assert(isinf(rule_dtype_round(RULE_F32, 1e39)) && isnan(rule_dtype_round(RULE_F32, NAN)));
}
END_TEST

START_TEST(dtype_names) {
  rule_dtype d;
  for (int i = 0; i < RULE_DTYPE_COUNT; i++) {
    ck_assert(rule_dtype_find(rule_dtype_name((rule_dtype)i), &d) && d == (rule_dtype)i);
    const int kinds =
        rule_dtype_is_float(d) + rule_dtype_is_complex(d) + rule_dtype_is_int(d) + (d == RULE_BOOL);
    ck_assert_int_eq(kinds, 1);
  }
  ck_assert(!rule_dtype_find("float", &d) && !rule_dtype_find("", &d));
  ck_assert_uint_eq(rule_dtype_size(RULE_C128), 16);
}
END_TEST

START_TEST(integers) {
  rule_tensor *t = scalar(RULE_I64);
  const struct {
    double v;
    int64_t want;
  } cases[] = {{1.9, 1},
               {-1.9, -1},
               {NAN, 0},
               {1e30, INT64_MAX},
               {-1e30, INT64_MIN},
               {0x1p62, 1ll << 62},
               {-0x1p63, INT64_MIN}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    rule_tensor_set(t, 0, cases[i].v);
    ck_assert_int_eq(rule_tensor_get_int(t, 0), cases[i].want);
  }
  rule_tensor_unref(t);
  t = scalar(RULE_I8);
  rule_tensor_set(t, 0, 200);
  ck_assert_int_eq(rule_tensor_get_int(t, 0), -56);
  rule_tensor_unref(t);
  t = scalar(RULE_U8);
  rule_tensor_set(t, 0, 200);
  ck_assert(rule_tensor_get(t, 0) == 200);
  rule_tensor_unref(t);
  t = scalar(RULE_BOOL);
  rule_tensor_set(t, 0, 0.5);
  ck_assert_int_eq(rule_tensor_get_int(t, 0), 1);
  rule_tensor_unref(t);
}
END_TEST

START_TEST(shapes) {
  int64_t n = -1;
  iso_error err;
  rule_shape s = {0};
  ck_assert(rule_shape_numel(&s, &n, &err) == ISO_OK && n == 1);
  s = (rule_shape){.rank = 3, .dim = {2, 0, 3}};
  ck_assert(rule_shape_numel(&s, &n, &err) == ISO_OK && n == 0);
  s = (rule_shape){.rank = 3, .dim = {0, 1ll << 40, 1ll << 40}};
  ck_assert_int_eq(rule_shape_numel(&s, &n, &err), ISO_RANGE);
  s = (rule_shape){.rank = 2, .dim = {0, -1}};
  ck_assert_int_eq(rule_shape_numel(&s, &n, &err), ISO_RANGE);
  s = (rule_shape){.rank = 1, .dim = {1ll << 60}};
  ck_assert_int_eq(rule_shape_numel(&s, &n, &err), ISO_RANGE);
  s = (rule_shape){.rank = 1, .dim = {(1ll << 60) - 1}};
  ck_assert_int_eq(rule_shape_numel(&s, &n, &err), ISO_OK);
  rule_tensor *t;
  ck_assert_int_eq(rule_tensor_new(RULE_C128, &s, &t, &err), ISO_RANGE);
  s.rank = RULE_MAX_RANK + 1;
  ck_assert_int_eq(rule_shape_numel(&s, &n, &err), ISO_RANGE);
  char buf[64], tiny[5];
  s = (rule_shape){.rank = 2, .dim = {2, 3}};
  ck_assert_str_eq(rule_shape_print(&s, buf, sizeof buf), "[2, 3]");
  ck_assert_str_eq(rule_shape_print(&s, tiny, sizeof tiny), "[2, ");
  s.rank = 0;
  ck_assert_str_eq(rule_shape_print(&s, buf, sizeof buf), "[]");
}
END_TEST

static void count(void *owner) { ++*(int *)owner; }

START_TEST(references) {
  double data[6] = {0, 1, 2, 3, 4, 5};
  int released = 0;
  rule_shape s = {.rank = 2, .dim = {2, 3}}, flat = {.rank = 1, .dim = {6}},
             wrong = {.rank = 1, .dim = {5}};
  rule_tensor *t, *v, *w;
  s.rank = 99;
  ck_assert_int_eq(rule_tensor_wrap(RULE_F64, &s, data, &released, count, &t, NULL), ISO_RANGE);
  ck_assert_int_eq(released, 0);
  s.rank = 2;
  ck_assert_int_eq(rule_tensor_wrap(RULE_F64, &s, data, &released, count, &t, NULL), ISO_OK);
  ck_assert_int_eq(rule_tensor_reshape(t, &wrong, &v, NULL), ISO_USAGE);
  ck_assert_int_eq(rule_tensor_reshape(t, &flat, &v, NULL), ISO_OK);
  ck_assert_int_eq(rule_tensor_reshape(v, &s, &w, NULL), ISO_OK);
  ck_assert_ptr_eq(rule_tensor_ref(t), t);
  rule_tensor_unref(t);
  rule_tensor_unref(t);
  rule_tensor_unref(v);
  ck_assert_int_eq(released, 0);
  ck_assert(rule_tensor_get(w, 5) == 5);
  rule_tensor_unref(w);
  ck_assert_int_eq(released, 1);
  rule_tensor_unref(NULL);
  ck_assert_ptr_null(rule_tensor_ref(NULL));
}
END_TEST

START_TEST(sameness) {
  double a[2] = {1, 2}, b[2] = {1, 2}, zero[2] = {1, -0.0};
  const rule_shape row = {.rank = 2, .dim = {1, 2}}, flat = {.rank = 1, .dim = {2}},
                   none = {.rank = 1, .dim = {0}};
  rule_tensor *x, *y, *r, *z, *e, *f;
  ck_assert_int_eq(rule_tensor_wrap(RULE_F64, &flat, a, NULL, NULL, &x, NULL), ISO_OK);
  ck_assert_int_eq(rule_tensor_wrap(RULE_F64, &flat, b, NULL, NULL, &y, NULL), ISO_OK);
  ck_assert_int_eq(rule_tensor_wrap(RULE_F64, &row, b, NULL, NULL, &r, NULL), ISO_OK);
  ck_assert_int_eq(rule_tensor_wrap(RULE_F64, &flat, zero, NULL, NULL, &z, NULL), ISO_OK);
  ck_assert_int_eq(rule_tensor_wrap(RULE_F64, &none, NULL, NULL, NULL, &e, NULL),
                   ISO_OK); /* without memory */
  ck_assert_int_eq(rule_tensor_new(RULE_F64, &none, &f, NULL), ISO_OK);
  ck_assert_ptr_nonnull(e->data);
  ck_assert(rule_tensor_same(x, y) && rule_tensor_same(e, f) && rule_tensor_same_bytes(x, r));
  ck_assert(!rule_tensor_same(x, r) && !rule_tensor_same_bytes(x, z) &&
            !rule_tensor_same_bytes(x, e));
  b[1] = -0.0, zero[1] = 0.0;
  ck_assert(!rule_tensor_same(y, z));
  rule_tensor *all[] = {x, y, r, z, e, f};
  for (size_t i = 0; i < 6; i++) rule_tensor_unref(all[i]);
}
END_TEST

/* A large one takes over the memory of another of its size, and begins as zeros all the same. */
START_TEST(large_ones_are_zero) {
  const rule_shape large = {.rank = 2, .dim = {1 << 12, 1 << 10}},
                   other = {.rank = 1, .dim = {(1 << 22) + 1}};
  rule_tensor *t, *u, *v, *w;
  ck_assert_int_eq(rule_tensor_new_unset(RULE_F64, &large, &t, NULL), ISO_OK);
  ck_assert_int_eq(rule_tensor_new(RULE_F64, &other, &w, NULL), ISO_OK);
  for (int64_t i = 0; i < t->numel; i++) ((double *)t->data)[i] = 1;
  const void *at = t->data;
  double sum = 0;
  rule_tensor_unref(t);
  ck_assert_int_eq(rule_tensor_new(RULE_F64, &large, &u, NULL), ISO_OK);
  ck_assert_int_eq(rule_tensor_new(RULE_F64, &large, &v, NULL), ISO_OK);
  ck_assert(u->data == at && v->data != at);
  for (int64_t i = 0; i < u->numel; i++) sum += ((double *)u->data)[i] + ((double *)v->data)[i];
  ck_assert(sum == 0);
  rule_tensor_unref(u);
  rule_tensor_unref(v);
  rule_tensor_unref(w);
}
END_TEST

int main(void) {
  Suite *s = suite_create("rules/tensor");
  TCase *t = tcase_create("tensor");
  tcase_set_timeout(t, 60);
  tcase_add_loop_test(t, small_formats_round_trip, 0, 4);
  tcase_add_loop_test(t, small_formats_round_to_nearest_even, 0, 4);
  tcase_add_loop_test(t, small_formats_at_their_ends, 0, 4);
  tcase_add_test(t, no_double_rounding);
  tcase_add_test(t, overflow_thresholds);
  tcase_add_loop_test(t, float64_of_every_dtype, 0, RULE_DTYPE_COUNT);
  tcase_add_loop_test(t, numbers_round_as_they_are_stored, 0, 4);
  tcase_add_test(t, other_dtypes_hold);
  tcase_add_test(t, dtype_names);
  tcase_add_test(t, integers);
  tcase_add_test(t, shapes);
  tcase_add_test(t, references);
  tcase_add_test(t, sameness);
  tcase_add_test(t, large_ones_are_zero);
  suite_add_tcase(s, t);
  return run_suite(s);
}
