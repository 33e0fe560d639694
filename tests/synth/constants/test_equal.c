/* Constants are one where two computations of one number may round so: tables in float32 and
 * float64, by two units; single numbers, integers and narrow floats only where they are equal. */
#include "synth/constants/constants.h"
#include "synth/constants/constants_int.h"
#include "tests/support/small_operators.h"
#include "tests/support/suite.h"

enum { SIZE = 6, SEEDS = 300 };

static rule_tensor *table(rule_dtype d, rule_shape s, uint64_t seed) {
  rule_tensor *t = make_as(d, s);
  iso_rng rng = iso_rng_new(seed, 1);
  for (int64_t i = 0; i < t->numel; i++)
    rule_tensor_set(t, i, rule_dtype_is_float(d) ? iso_rng_normal(&rng) : (double)(i % 5));
  return t;
}

/* A copy in which one element is `by` of the dtype's steps from 1 to the next number further. */
static rule_tensor *off(const rule_tensor *t, int64_t at, double by) {
  rule_tensor *u = make_as(t->dtype, t->shape);
  for (int64_t i = 0; i < t->numel; i++) {
    const double x = rule_tensor_get(t, i);
    rule_tensor_set(u, i, i == at ? x * (1 + by * cn_epsilon(t->dtype)) : x);
  }
  return u;
}

static bool same(rule_tensor *a, rule_tensor *b) {
  const bool yes = st_same_constant(a, b), back = st_same_constant(b, a);
  ck_assert_int_eq(yes, back);
  rule_tensor_unref(a);
  rule_tensor_unref(b);
  return yes;
}

START_TEST(tables_of_many_digits_may_round_by_two_units) {
  static const rule_dtype wide[] = {RULE_F32, RULE_F64}, narrow[] = {RULE_F16, RULE_BF16};
  for (uint64_t seed = 0; seed < SEEDS; seed++) {
    const int64_t at = (int64_t)(seed % SIZE);
    rule_tensor *t = table(wide[seed % 2], SHAPE(SIZE), seed),
                *u = table(narrow[seed % 2], SHAPE(SIZE), seed);
    ck_assert(same(rule_tensor_ref(t), off(t, at, 1.4)));
    ck_assert(!same(rule_tensor_ref(t), off(t, at, 4)));
    ck_assert(same(rule_tensor_ref(u), off(u, at, 0)));
    ck_assert(!same(rule_tensor_ref(u), off(u, at, 1.4)));
    rule_tensor_unref(t);
    rule_tensor_unref(u);
  }
}
END_TEST

/* One number, or one everywhere, is meant as it stands. */
START_TEST(single_numbers_are_exact) {
  rule_tensor *one = table(RULE_F64, (rule_shape){0}, 1), *fill = table(RULE_F64, SHAPE(SIZE), 2);
  for (int64_t i = 0; i < SIZE; i++) rule_tensor_set(fill, i, 0.1);
  ck_assert(same(rule_tensor_ref(one), off(one, 0, 0)));
  ck_assert(!same(rule_tensor_ref(one), off(one, 0, 1.4)));
  ck_assert(!same(rule_tensor_ref(fill), off(fill, 0, 1.4)));
  rule_tensor_unref(one);
  rule_tensor_unref(fill);
}
END_TEST

/* Other shapes, kinds, integers of another type; numbers that are none, or infinite on one side. */
START_TEST(constants_of_other_kinds_are_none) {
  const rule_dtype all[] = {RULE_F64, RULE_F32, RULE_I64, RULE_I32, RULE_BOOL};
  for (int a = 0; a < 5; a++)
    for (int b = 0; b < 5; b++) {
      rule_tensor *l = make_as(all[a], SHAPE(SIZE)), *r = make_as(all[b], SHAPE(SIZE));
      for (int64_t i = 0; i < SIZE; i++) rule_tensor_set(l, i, 1), rule_tensor_set(r, i, 1);
      ck_assert_msg(same(l, r) == (a == b || (a < 2 && b < 2)), "%d %d", a, b);
    }
  ck_assert(!same(table(RULE_F64, SHAPE(2, 3), 1), table(RULE_F64, SHAPE(3, 2), 1)));
  static const double odd[][2] = {{NAN, NAN}, {INFINITY, 1}, {INFINITY, -INFINITY}};
  for (int k = 0; k < 3; k++) {
    rule_tensor *l = table(RULE_F64, SHAPE(SIZE), 1), *r = table(RULE_F64, SHAPE(SIZE), 1);
    rule_tensor_set(l, 2, odd[k][0]), rule_tensor_set(r, 2, odd[k][1]);
    ck_assert_msg(!same(l, r), "%d", k);
  }
  rule_tensor *l = table(RULE_F64, SHAPE(SIZE), 1), *r = table(RULE_F64, SHAPE(SIZE), 1);
  rule_tensor_set(l, 2, INFINITY), rule_tensor_set(r, 2, INFINITY);
  rule_tensor_set(l, 3, 0.0), rule_tensor_set(r, 3, -0.0); /* one real number */
  ck_assert(same(l, r));
}
END_TEST

int main(void) {
  Suite *s = suite_create("equal");
  TCase *t = tcase_create("equal");
  tcase_add_test(t, tables_of_many_digits_may_round_by_two_units);
  tcase_add_test(t, single_numbers_are_exact);
  tcase_add_test(t, constants_of_other_kinds_are_none);
  suite_add_tcase(s, t);
  return run_suite(s);
}
