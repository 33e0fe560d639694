/* Of a witness that was drawn anew, what the difference does not need is as it was captured: every
 * element that is told as changed is needed, and is what the witness has there. */
#include "tests/support/suite.h"
#include "tests/synth/refute/on_witness.h"

enum { SIZE = 8, SEEDS = 6 };

static uint32_t data(graph *g) { return input(g, positive(5, SHAPE(SIZE), 20)); }

static void compare_seed(uint64_t seed) {
  w.options.seed = seed;
  w.options.keep_witness = true;
  w.options.shrink = false;
  compare_one(&w.l, &w.r, SYNTH_DIFFERENT);
  ck_assert(w.res->redrawn);
}

static double captured(const graph *g, uint32_t node, int64_t i) {
  return rule_tensor_get(g->value[node][0], i);
}

/* What is told is what the witness has, and all of it is needed. */
static void look(uint32_t x, size_t n) {
  const rule_tensor *t = w.res->witness_leaf[0][x];
  size_t others = 0;
  ck_assert(apart(x, -1, 0) > 1e-6);
  ck_assert_uint_eq(w.res->n_changed, n);
  ck_assert_uint_eq(w.res->n_changed_all, n);
  for (int64_t i = 0; i < SIZE; i++) others += rule_tensor_get(t, i) != captured(&w.l, x, i);
  ck_assert_uint_eq(others, n);
  for (size_t k = 0; k < n; k++) {
    const synth_changed *c = &w.res->changed[k];
    ck_assert(!c->right);
    ck_assert_uint_eq(c->node, x);
    ck_assert_double_eq(c->value, rule_tensor_get(t, c->index));
    ck_assert_double_eq(c->captured, captured(&w.l, x, c->index));
    ck_assert_double_ne(c->value, c->captured);
    ck_assert_double_le(apart(x, c->index, c->captured), 1e-9);
  }
}

/* They differ where an element is negative, as none was. */
START_TEST(one_element_is_enough) {
  for (int side = 0; side < 2; side++) {
    graph *g = side ? &w.r : &w.l;
    const uint32_t x = data(g);
    output(g, "y", add(g, x, side ? relu(g, x) : x));
  }
  for (uint64_t seed = 0; seed < SEEDS; seed++) {
    compare_seed(seed);
    look(0, 1);
    ck_assert_double_lt(w.res->changed[0].value, 0);
    ck_assert(!w.res->redrawn_parameters);
  }
}
END_TEST

/* They differ where an element and its partner are negative, both. */
START_TEST(two_elements_are_needed_together) {
  const rule_term *size[2] = {num(2), num(SIZE / 2)};
  for (int side = 0; side < 2; side++) {
    graph *g = side ? &w.r : &w.l;
    const uint32_t x = data(g),
                   m = op(g, "aten::reshape", v(x), rule_list(&w.arena, size, 2), NULL);
    uint32_t row[2];
    for (int k = 0; k < 2; k++)
      row[k] = relu(g, neg(g, step_by(g, call_of("aten::slice.Tensor",
                                                 (const rule_term *const[5]){
                                                     v(m), num(0), num(k), num(k + 1), num(1)}))));
    const uint32_t sum = add(g, row[0], row[1]);
    output(g, "y", side ? sum : add(g, sum, mul(g, row[0], row[1])));
  }
  for (uint64_t seed = 0; seed < SEEDS; seed++) {
    compare_seed(seed);
    look(0, 2);
    ck_assert_int_eq(llabs(w.res->changed[0].index - w.res->changed[1].index), SIZE / 2);
  }
}
END_TEST

/* They differ where a parameter is negative: no element of an input was changed for it. */
START_TEST(parameters_that_are_needed_are_told) {
  for (int side = 0; side < 2; side++) {
    graph *g = side ? &w.r : &w.l;
    const uint32_t x = data(g), m = weight(g, "w", positive(6, SHAPE(SIZE), 1));
    output(g, "y", add(g, x, side ? relu(g, m) : m));
  }
  for (uint64_t seed = 0; seed < SEEDS; seed++) {
    compare_seed(seed);
    ck_assert(w.res->redrawn_parameters);
    ck_assert_uint_eq(w.res->n_changed_all, 0);
    ck_assert(apart(0, -1, 0) > 1e-6);
  }
}
END_TEST

/* Parameters that the difference does not need are as they were captured. */
START_TEST(parameters_that_are_not_needed_are_put_back) {
  for (int side = 0; side < 2; side++) {
    graph *g = side ? &w.r : &w.l;
    const uint32_t x = data(g), m = weight(g, "w", positive(6, SHAPE(SIZE), 1));
    output(g, "y", mul(g, m, side ? relu(g, x) : x));
  }
  for (uint64_t seed = 0; seed < SEEDS; seed++) {
    compare_seed(seed);
    look(0, 1);
    ck_assert(!w.res->redrawn_parameters);
    for (int64_t i = 0; i < SIZE; i++)
      ck_assert_double_eq(rule_tensor_get(w.res->witness_leaf[0][1], i), captured(&w.l, 1, i));
  }
}
END_TEST

int main(void) {
  Suite *s = suite_create("needed");
  TCase *t = tcase_create("needed");
  tcase_add_checked_fixture(t, setup, teardown);
  tcase_add_test(t, one_element_is_enough);
  tcase_add_test(t, two_elements_are_needed_together);
  tcase_add_test(t, parameters_that_are_needed_are_told);
  tcase_add_test(t, parameters_that_are_not_needed_are_put_back);
  suite_add_tcase(s, t);
  return run_suite(s);
}
