/* A divisor that is cancelled on one side: undecided where some input makes it 0, though no draw
 * comes upon that. */
#include "tests/support/suite.h"
#include "tests/synth/small_graphs.h"

static uint32_t data(graph *g, const char *name, rule_shape s) {
  rule_tensor *t = noise(name[0], s, 0, 1);
  return leaf(g, SYNTH_INPUT, name, t, t);
}

static uint32_t plus(graph *g, uint32_t x, double c) {
  return op(g, "aten::add.Tensor", v(x), rule_float(&w.arena, c), NULL);
}
static uint32_t quotient(graph *g, uint32_t x, uint32_t y) {
  return op(g, "aten::div.Tensor", v(x), v(y), NULL);
}

/* x squared plus c: it is 0 somewhere where c is below 0. */
static uint32_t squared(graph *g, uint32_t x, double c) { return plus(g, mul(g, x, x), c); }

typedef enum way {
  CANCELLED,     /* a d / d */
  CANCELLED_TWO, /* of which only the second divisor may be 0 */
  INVERTED       /* a / (1 / d) */
} way;

/* What the right divides by. */
typedef enum other { NOTHING, SAME, DOUBLED, POSITIVE } other;

static uint32_t begin(graph *g, uint32_t *a, rule_shape s) {
  *a = data(g, "a", s);
  return data(g, "x", s);
}

static uint32_t right_of(uint32_t a, uint32_t d, other what) {
  uint32_t e = d;
  if (what == NOTHING) return a;
  if (what == DOUBLED) e = op(&w.r, "aten::mul.Tensor", v(d), rule_float(&w.arena, 2), NULL);
  if (what == POSITIVE) e = plus(&w.r, d, 100);
  return quotient(&w.r, mul(&w.r, e, a), e);
}

/* Left divides by (x / wide) squared plus c; all of it is cancelled. Returns: in `by` the node that
 * divides last. */
static void build(way how, double c, double wide, other what, uint32_t *by) {
  uint32_t a, x = begin(&w.l, &a, SHAPE(3));
  if (wide != 1) x = op(&w.l, "aten::mul.Tensor", v(x), rule_float(&w.arena, 1 / wide), NULL);
  uint32_t d = squared(&w.l, x, c);
  if (how == CANCELLED) *by = quotient(&w.l, mul(&w.l, a, d), d);
  if (how == CANCELLED_TWO) {
    const uint32_t e = squared(&w.l, a, 1);
    *by = quotient(&w.l, mul(&w.l, quotient(&w.l, mul(&w.l, a, e), e), d), d);
  }
  if (how == INVERTED) *by = quotient(&w.l, a, quotient(&w.l, ones(&w.l, 3), d));
  output(&w.l, "y", *by);
  x = begin(&w.r, &a, SHAPE(3));
  d = squared(&w.r, x, c);
  output(&w.r, "y", how == INVERTED ? mul(&w.r, a, d) : right_of(a, d, what));
}

static void named(uint32_t by) {
  expect(SYNTH_UNDECIDED);
  ck_assert_msg(strstr(w.res->reason, "between two inputs") != NULL, "%s", w.res->reason);
  ck_assert_ptr_nonnull(strstr(w.res->reason, w.l.node[by].id));
}

START_TEST(a_cancelled_divisor_that_crosses_0_is_named) {
  static const double at[] = {-2, -3, -0.37, -50};
  uint32_t by;
  build(_i % 2 ? CANCELLED_TWO : CANCELLED, at[_i / 2], 1, NOTHING, &by);
  named(by);
}
END_TEST

/* Beyond all numbers that stand in the graphs; and where the other side divides by another tensor
 * that is never 0. */
START_TEST(it_is_looked_for_among_larger_numbers_and_beside_other_divisors) {
  uint32_t by;
  build(CANCELLED, -2, _i ? 1 : 10, _i ? POSITIVE : NOTHING, &by);
  named(by);
}
END_TEST

START_TEST(a_cancelled_divisor_that_is_never_0_is_none) {
  static const double at[] = {2, 0.37, 1e-3};
  uint32_t by;
  build(_i % 2 ? CANCELLED_TWO : CANCELLED, at[_i / 2], 1, NOTHING, &by);
  expect(SYNTH_EQUIVALENT);
}
END_TEST

/* Both outputs are no numbers there. */
START_TEST(a_divisor_of_both_sides_tells_nothing) {
  uint32_t by;
  build(CANCELLED, -2, 1, _i ? SAME : DOUBLED, &by);
  expect(SYNTH_EQUIVALENT);
}
END_TEST

/* 1 / d is infinite there, and a / (1 / d) is 0 as a d is. */
START_TEST(a_divisor_that_leaves_numbers_tells_nothing) {
  uint32_t by;
  build(INVERTED, -2, 1, NOTHING, &by);
  expect(SYNTH_EQUIVALENT);
}
END_TEST

int main(void) {
  Suite *s = suite_create("crossing");
  TCase *t = tcase_create("crossing");
  tcase_add_checked_fixture(t, setup, teardown);
  tcase_set_timeout(t, 60);
  tcase_add_loop_test(t, a_cancelled_divisor_that_crosses_0_is_named, 0, 8);
  tcase_add_loop_test(t, a_cancelled_divisor_that_is_never_0_is_none, 0, 6);
  tcase_add_loop_test(t, it_is_looked_for_among_larger_numbers_and_beside_other_divisors, 0, 2);
  tcase_add_loop_test(t, a_divisor_of_both_sides_tells_nothing, 0, 2);
  tcase_add_test(t, a_divisor_that_leaves_numbers_tells_nothing);
  suite_add_tcase(s, t);
  return run_suite(s);
}
