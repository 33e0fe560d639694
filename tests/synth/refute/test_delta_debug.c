/* A counterexample that was made small shows the difference still, and no element of it can be 0
 * for that. */
#include "tests/support/suite.h"
#include "tests/synth/refute/on_witness.h"

enum { SIZE = 12 };

/* Without element `at`, unless that is -1. */
static bool differs(uint32_t leaf, int64_t at) { return apart(leaf, at, 0) > 1e-6; }

static int64_t count(const rule_tensor *t) {
  int64_t n = 0;
  for (int64_t i = 0; i < t->numel; i++) n += rule_tensor_get(t, i) != 0;
  return n;
}

static void compare_kept(uint64_t seed, bool shrink) {
  w.options.seed = seed;
  w.options.keep_witness = true;
  w.options.shrink = shrink;
  compare_one(&w.l, &w.r, SYNTH_DIFFERENT);
}

static uint32_t data(graph *g) { return input(g, positive(5, SHAPE(SIZE), 20)); }

/* They differ where an element of x is negative; or, the second time, where it is positive, and
 * then it can be 1. */
START_TEST(one_element_is_left_of_a_difference_of_one) {
  for (int side = 0; side < 2; side++) {
    graph *g = side ? &w.r : &w.l;
    const uint32_t x = data(g), y = relu(g, x);
    output(g, "y", add(g, side ? y : x, _i ? y : x));
    if (_i == 0) continue;
    g->out[0].node = side ? y : add(g, y, y);
  }
  for (uint64_t seed = 0; seed < 5; seed++) {
    compare_kept(seed, true);
    const rule_tensor *x = witness_of(0);
    ck_assert_int_eq(count(x), 1);
    for (int64_t i = 0; i < SIZE; i++)
      ck_assert(_i ? rule_tensor_get(x, i) == 0 || rule_tensor_get(x, i) == 1
                   : rule_tensor_get(x, i) <= 0);
    ck_assert(differs(0, -1));
    compare_kept(seed, false);
    ck_assert_int_gt(count(witness_of(0)), 1);
  }
}
END_TEST

/* They differ by a product of two elements: both stay, and no other one. */
START_TEST(every_element_that_is_left_is_needed) {
  const rule_term *size[2] = {num(2), num(SIZE / 2)};
  for (int side = 0; side < 2; side++) {
    graph *g = side ? &w.r : &w.l;
    const uint32_t x = data(g),
                   m = op(g, "aten::reshape", v(x), rule_list(&w.arena, size, 2), NULL);
    uint32_t row[2];
    for (int k = 0; k < 2; k++)
      row[k] = step_by(
          g, call_of("aten::slice.Tensor",
                     (const rule_term *const[5]){v(m), num(0), num(k), num(k + 1), num(1)}));
    const uint32_t sum = add(g, row[0], row[1]);
    output(g, "y", side ? sum : add(g, sum, mul(g, row[0], row[1])));
  }
  for (uint64_t seed = 0; seed < 5; seed++) {
    compare_kept(seed, true);
    const rule_tensor *x = witness_of(0);
    ck_assert_int_eq(count(x), 2);
    ck_assert(differs(0, -1));
    for (int64_t i = 0; i < SIZE; i++)
      if (rule_tensor_get(x, i) != 0) {
        ck_assert(rule_tensor_get(x, (i + SIZE / 2) % SIZE) != 0); /* its partner */
        ck_assert(!differs(0, i));
      }
    ck_assert_str_eq(w.res->witness_output, "y");
    ck_assert(w.res->witness_abs > 0 && w.res->witness_rel > 1e-6);
  }
}
END_TEST

int main(void) {
  Suite *s = suite_create("delta_debug");
  TCase *t = tcase_create("delta_debug");
  tcase_add_checked_fixture(t, setup, teardown);
  tcase_set_timeout(t, 60);
  tcase_add_loop_test(t, one_element_is_left_of_a_difference_of_one, 0, 2);
  tcase_add_test(t, every_element_that_is_left_is_needed);
  suite_add_tcase(s, t);
  return run_suite(s);
}
