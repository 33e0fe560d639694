/* Sums that cancel: which do, and how large all that they add up is, which tells two of them apart
 * where both are 0. */
#include "rules/names.h"
#include "synth/joint/joint.h"
#include "tests/support/suite.h"
#include "tests/synth/small_terms.h"

enum { N = 4 };

static eg_node ramp(double scale) {
  rule_tensor *t = keep(make((rule_shape){1, {N}}));
  for (int64_t i = 0; i < N; i++) rule_tensor_set(t, i, scale * (double)(i + 1));
  return add_leaf(t);
}

static const rule_term *list_of(uint32_t a, uint32_t b) {
  const rule_term *of[2] = {v(a), v(b)};
  return rule_list(&st.arena, of, 2);
}

static eg_node call2(const char *op, const rule_term *a, const rule_term *b) {
  const rule_term *arg[2] = {a, b};
  return add_made(rule_op(&st.arena, op, arg, 2));
}

static eg_node sum_of(uint32_t a, uint32_t b, const char *how) {
  return call2(OP_DIST_ALL_REDUCE, list_of(a, b), rule_string(&st.arena, how));
}

static const rec *of(eg_node e) { return &st.rec[e.i]; }

START_TEST(a_sum_of_which_rounding_is_left_is_0_and_has_its_terms) {
  begin_terms();
  ramp(1), ramp(-1), ramp(-0.5);
  const eg_node zero = sum_of(0, 1, "sum"), mean = sum_of(0, 1, "avg"), some = sum_of(0, 2, "sum");
  ck_assert(of(zero)->cancels && of(mean)->cancels && !of(some)->cancels);
  ck_assert(fabs(of(zero)->terms - 20) < 1e-9 && fabs(of(mean)->terms - 10) < 1e-9);
  end_state();
}
END_TEST

START_TEST(what_is_made_of_such_sums_has_the_terms_of_all) {
  begin_terms();
  ramp(1), ramp(-1), ramp(0.25), ramp(-0.25);
  sum_of(0, 1, "sum"), sum_of(2, 3, "sum"); /* 20 and 5 */
  const rule_term *two = rule_int(&st.arena, 2), *shape[2] = {two, two};
  const eg_node cat = call2(OP_CAT, list_of(4, 5), rule_int(&st.arena, 0)),
                turned = call2(OP_RESHAPE, v(4), rule_list(&st.arena, shape, 2)),
                half = call2(OP_DIV_TENSOR, v(4), rule_float(&st.arena, 2)),
                all = sum_of(4, 5, "sum");
  ck_assert(of(cat)->cancels && of(turned)->cancels && of(half)->cancels && of(all)->cancels);
  ck_assert(fabs(of(cat)->terms - 25) < 1e-9 && fabs(of(all)->terms - 25) < 1e-9);
  ck_assert(fabs(of(turned)->terms - 20) < 1e-9 && fabs(of(half)->terms - 10) < 1e-9);
  const rule_term *sum[3] = {v(4), v(5), rule_int(&st.arena, 1)};
  const eg_node added = add_made(rule_op(&st.arena, OP_ADD_TENSOR, sum, 3)),
                third = call2("aten::mul.Tensor", v(4), rule_float(&st.arena, 0.25));
  ck_assert(fabs(of(added)->terms - 25) < 1e-9 && fabs(of(third)->terms - 5) < 1e-9);
  rule_tensor *fifth = keep(make((rule_shape){0}));
  rule_tensor_set(fifth, 0, -0.2);
  const uint32_t by = (uint32_t)n_made;
  add_leaf(fifth);
  ck_assert(fabs(of(call2("aten::mul.Tensor", v(4), v(by)))->terms - 4) < 1e-9);
  ck_assert(fabs(of(call2(OP_DIV_TENSOR, v(4), v(by)))->terms - 100) < 1e-9);
  end_state();
}
END_TEST

/* Of a part of it nobody knows how much was added up there. */
START_TEST(terms_of_a_part_are_not_known) {
  begin_terms();
  ramp(1), ramp(-1);
  sum_of(0, 1, "sum");
  const rule_term *arg[5] = {v(2), rule_int(&st.arena, 0), rule_int(&st.arena, 0),
                             rule_int(&st.arena, 2), rule_int(&st.arena, 1)};
  const eg_node part = add_made(rule_op(&st.arena, "aten::slice.Tensor", arg, 5));
  ck_assert(of(part)->cancels && of(part)->terms == 0);
  const eg_node cat = call2(OP_CAT, list_of(2, 3), rule_int(&st.arena, 0));
  ck_assert(of(cat)->cancels && of(cat)->terms == 0);
  end_state();
}
END_TEST

int main(void) {
  Suite *s = suite_create("cancelled");
  TCase *t = tcase_create("cancelled");
  tcase_add_test(t, a_sum_of_which_rounding_is_left_is_0_and_has_its_terms);
  tcase_add_test(t, what_is_made_of_such_sums_has_the_terms_of_all);
  tcase_add_test(t, terms_of_a_part_are_not_known);
  suite_add_tcase(s, t);
  return run_suite(s);
}
