/* What the oracle is asked of all sizes: constants as the terms that compute them, and what both
 * sides are made of for any tensor. */
#include "tests/support/suite.h"
#include "tests/synth/scope/sized.h"

static uint32_t scaled(graph *g, rule_tensor *x, uint32_t by) {
  const rule_term *whole = sizes(size("T"), NULL);
  return sized_op(g, whole, "aten::mul.Tensor", v(input(g, x)), v(by), NULL);
}

/* A fill of T numbers. */
static uint32_t filled(graph *g, double number) {
  const rule_term *whole = sizes(size("T"), NULL);
  return sized_op(g, whole, "aten::full", whole, rule_float(&w.arena, number),
                  rule_dtype_term(&w.arena, RULE_F64));
}

static uint32_t sum(graph *g, uint32_t a, uint32_t b) {
  return sized_op(g, sizes(size("T"), NULL), "aten::add.Tensor", v(a), v(b), NULL);
}
static uint32_t positions(graph *g) {
  return sized_op(g, sizes(size("T"), NULL), "aten::arange", size("T"), NULL, NULL);
}
static uint32_t up_to(graph *g, int64_t most) {
  return sized_op(g, sizes(size("T"), NULL), "aten::clamp_max", v(positions(g)), num(most), NULL);
}
static uint32_t stored(graph *g) {
  rule_tensor *t = keep(make_as(RULE_I64, SHAPE(4)));
  for (int64_t i = 0; i < 4; i++) rule_tensor_set_int(t, i, i);
  const uint32_t all = leaf(g, SYNTH_BUFFER, "positions", t, t);
  dims(g, all, sizes(num(4), NULL));
  return all;
}

typedef enum form { ONES, HALVES, POSITIONS, UP_TO_3, UP_TO_9, STORED } form;
static uint32_t form_of(graph *g, form f) {
  switch (f) {
  case ONES: return filled(g, 1);
  case HALVES: return sum(g, filled(g, 0.5), filled(g, 0.5));
  case POSITIONS: return positions(g);
  case UP_TO_3: return up_to(g, 3);
  case UP_TO_9: return up_to(g, 9);
  case STORED: return stored(g);
  }
  return 0;
}

/* x, which has T elements, times a constant, which is one on both sides at T = 4. */
static void pair(form left, form right, int64_t max) {
  teardown();
  set_up_sized();
  symbols("T", 1, max);
  rule_tensor *x = noise(1, SHAPE(4), 0, 1);
  for (int side = 0; side < 2; side++) {
    graph *g = side ? &w.r : &w.l;
    const uint32_t by = form_of(g, side ? right : left);
    output(g, "y", scaled(g, x, by));
    for (uint32_t i = 0; i < g->g.n_nodes; i++)
      if (g->node[i].kind == SYNTH_INPUT) dims(g, i, sizes(size("T"), NULL));
  }
}

START_TEST(constants_are_the_terms_that_compute_them) {
  pair(ONES, HALVES, INT64_MAX);
  for_all_sizes("ones in two ways");
  pair(HALVES, ONES, INT64_MAX);
  for_all_sizes("ones in two ways");
  pair(UP_TO_9, POSITIONS, 9);
  for_all_sizes("a bound that no size reaches");
}
END_TEST

START_TEST(constants_that_are_one_at_the_captured_size_are_held_back) {
  pair(POSITIONS, UP_TO_3, INT64_MAX);
  held_back("a bound beyond the captured sizes", "for all sizes it is refuted");
  pair(UP_TO_3, POSITIONS, 5);
  held_back("a bound within the range", "their values at the largest size differ");
  pair(POSITIONS, UP_TO_3, 4);
  for_all_sizes("a bound beyond the range");
}
END_TEST

START_TEST(what_was_seen_at_one_size_is_no_proof) {
  static const unsigned seen_once[] = {RULE_RESTS_ON_NUMBERS, RULE_RESTS_ON_MASKS};
  for (int i = 0; i < 2; i++) {
    pair(ONES, HALVES, INT64_MAX);
    rests_on = seen_once[i];
    held_back("it rests on values", "for all sizes it is proved");
  }
  pair(ONES, HALVES, INT64_MAX);
  only_tested = true;
  held_back("tested", "for all sizes it is tested");
}
END_TEST

/* The sides' inputs are one tensor, whatever its size: the stored places have four. */
START_TEST(a_stored_constant_is_of_its_size) {
  pair(POSITIONS, STORED, INT64_MAX);
  held_back("four places", "for all sizes it is refuted");
  pair(STORED, POSITIONS, INT64_MAX);
  held_back("four places", "for all sizes it is refuted");
}
END_TEST

int main(void) {
  Suite *s = suite_create("scope_prove");
  TCase *t = tcase_create("scope_prove");
  tcase_add_checked_fixture(t, set_up_sized, teardown);
  tcase_add_test(t, constants_are_the_terms_that_compute_them);
  tcase_add_test(t, constants_that_are_one_at_the_captured_size_are_held_back);
  tcase_add_test(t, what_was_seen_at_one_size_is_no_proof);
  tcase_add_test(t, a_stored_constant_is_of_its_size);
  suite_add_tcase(s, t);
  return run_suite(s);
}
