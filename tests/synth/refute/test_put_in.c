/* What no draw made undefined is made so by hand: undecided where the outputs part then. */
#include "tests/support/suite.h"
#include "tests/synth/small_graphs.h"

static uint32_t data(graph *g, const char *name) {
  rule_tensor *t = noise(name[0], SHAPE(3), 0, 1);
  return leaf(g, SYNTH_INPUT, name, t, t);
}

static uint32_t plus(graph *g, uint32_t x, double c) {
  return op(g, "aten::add.Tensor", v(x), rule_float(&w.arena, c), NULL);
}

static uint32_t numbers_of(graph *g, uint32_t x, double instead) {
  return op(g, "aten::nan_to_num", v(x), rule_float(&w.arena, instead), NULL);
}

/* (a a - 2) / (b + c): 0/0 where a is a root of 2 and b is -c, and infinite for other a; or, with
 * b where it is above 0 and 0 elsewhere in place of b, it always is a number. No float is a root
 * of 2. */
static uint32_t quotient(graph *g, double c, bool is_number) {
  const uint32_t a = data(g, "a"), b = data(g, "b");
  const uint32_t above = plus(g, mul(g, a, a), -2), below = plus(g, is_number ? relu(g, b) : b, c);
  return op(g, "aten::div.Tensor", v(above), v(below), NULL);
}

/* The left gives another number in place of none, the right does not. */
static uint32_t one_side(double c, bool is_number) {
  const uint32_t q = quotient(&w.l, c, is_number);
  output(&w.l, "y", numbers_of(&w.l, q, 7));
  output(&w.r, "y", quotient(&w.r, c, is_number));
  return q;
}

START_TEST(a_node_that_only_one_side_replaces_is_named) {
  const uint32_t q = one_side(_i ? 3 : -1, false);
  expect(SYNTH_UNDECIDED);
  ck_assert_msg(strstr(w.res->reason, "is no number") && strstr(w.res->reason, w.l.node[q].id),
                "%s", w.res->reason);
}
END_TEST

START_TEST(a_node_that_always_is_a_number_is_none) {
  one_side(3, true);
  expect(SYNTH_EQUIVALENT);
}
END_TEST

/* Whatever stands in its place, both sides have it; or other numbers. */
START_TEST(a_node_that_both_sides_replace_parts_nothing_unless_otherwise) {
  for (int side = 0; side < 2; side++) {
    graph *g = side ? &w.r : &w.l;
    const uint32_t q = numbers_of(g, quotient(g, 3, false), side && _i ? 8 : 7), a = 0;
    output(g, "y", side ? add(g, a, q) : add(g, q, a));
  }
  expect(_i ? SYNTH_UNDECIDED : SYNTH_EQUIVALENT);
  ck_assert(!_i || strstr(w.res->reason, "is no number"));
}
END_TEST

/* 1 / x is infinite where x is 0, and never no number. */
START_TEST(infinities_alone_are_none) {
  for (int side = 0; side < 2; side++) {
    graph *g = side ? &w.r : &w.l;
    const uint32_t q = op(g, "aten::div.Tensor", v(ones(g, 3)), v(plus(g, data(g, "b"), 3)), NULL);
    output(g, "y", side ? q : numbers_of(g, q, 7));
  }
  expect(SYNTH_EQUIVALENT);
}
END_TEST

int main(void) {
  Suite *s = suite_create("put_in");
  TCase *t = tcase_create("put_in");
  tcase_add_checked_fixture(t, setup, teardown);
  tcase_set_timeout(t, 60);
  tcase_add_loop_test(t, a_node_that_only_one_side_replaces_is_named, 0, 2);
  tcase_add_test(t, a_node_that_always_is_a_number_is_none);
  tcase_add_loop_test(t, a_node_that_both_sides_replace_parts_nothing_unless_otherwise, 0, 2);
  tcase_add_test(t, infinities_alone_are_none);
  suite_add_tcase(s, t);
  return run_suite(s);
}
