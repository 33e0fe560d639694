/* Two operands of the same elements in another order: the words name the tensor that both have and
 * each side's steps, or the exchanged dimensions, and the place is the first step that only one
 * side takes. */
#include "localise/words/wiring.h"
#include "tests/localise/small_parting.h"
#include "tests/support/suite.h"

static int64_t step[2];

static uint32_t source(int side, rule_tensor *x) {
  graph *g = graph_of(side);
  return neg(g, input(g, x));
}
static uint32_t turned(graph *g, uint32_t x, int64_t a, int64_t b) {
  return op(g, "aten::transpose.int", v(x), num(a), num(b));
}
static uint32_t viewed(graph *g, uint32_t x, rule_shape s) {
  const rule_term *size[RULE_MAX_RANK];
  for (uint32_t k = 0; k < s.rank; k++) size[k] = num(s.dim[k]);
  return op(g, "aten::reshape", v(x), rule_list(&w.arena, size, s.rank), NULL);
}

static const char *words(uint32_t l, uint32_t r) {
  add(&w.l, l, l), add(&w.r, r, r);
  place_all();
  for (int side = 0; side < 2; side++) ck_assert(lo_index(&p, side, &err) == ISO_OK);
  step[LEFT] = step[RIGHT] = -1;
  return lo_other_layout(&p, (uint32_t[2]){l, r}, step);
}
static void want(const char *said, const char *words, int64_t l, int64_t r) {
  ck_assert_msg(said && strcmp(said, words) == 0, "%s, not %s", said ? said : "nothing", words);
  ck_assert_int_eq(step[LEFT], l);
  ck_assert_int_eq(step[RIGHT], r);
}

START_TEST(steps_of_both_sides_are_named_at_the_first_other_one) {
  for (int64_t n = 2; n < 6; n++)
    for (int both = 0; both < 2; both++) {
      begin();
      rule_tensor *x = positive(3, SHAPE(n, 6), 1);
      const uint32_t a = source(LEFT, x), b = source(RIGHT, x);
      /* a step that both sides take first, under another name */
      const uint32_t c = both ? viewed(&w.l, a, SHAPE(n, 6, 1)) : a,
                     d = both ? op(&w.r, "aten::unsqueeze", v(b), num(2), NULL) : b,
                     l = turned(&w.l, c, 0, 1),
                     r = viewed(&w.r, d, both ? SHAPE(6, n, 1) : SHAPE(6, n));
      want(words(l, r),
           iso_arena_printf(&w.arena,
                            "the elements of \"%s\" stand in another order: the left reads them "
                            "through %stranspose, the right through %sreshape",
                            w.l.node[a].id, both ? "reshape, " : "", both ? "unsqueeze, " : ""),
           l, r);
      end();
    }
}
END_TEST

START_TEST(exchanged_dimensions_are_named) {
  for (int64_t n = 2; n < 6; n++)
    for (int made = 0; made < 2; made++) { /* from the tensor that the left reads, or otherwise */
      begin();
      rule_tensor *x = noise(3, SHAPE(n, 2, n), 0, 1);
      const uint32_t a = input(&w.l, x), b = input(&w.r, x), l = neg(&w.l, a);
      const uint32_t r = made ? turned(&w.r, neg(&w.r, b), 0, 2) : neg(&w.r, turned(&w.r, b, 0, 2));
      const char *const said = words(l, r);
      want(said,
           iso_arena_printf(
               &w.arena,
               "\"%s\" on the right is \"%s\" on the left with dimensions 0 and 2 exchanged",
               w.r.node[r].id, w.l.node[l].id),
           made ? -1 : (int64_t)l, r);
      end();
    }
}
END_TEST

START_TEST(what_others_read_too_is_no_place) {
  begin();
  rule_tensor *x = noise(3, SHAPE(4, 4), 0, 1);
  const uint32_t a = source(LEFT, x), b = source(RIGHT, x), r = turned(&w.r, b, 0, 1);
  neg(&w.r, r);
  ck_assert_ptr_nonnull(words(a, r));
  ck_assert_int_eq(step[LEFT], -1);
  ck_assert_int_eq(step[RIGHT], -1);
  end();
}
END_TEST

START_TEST(other_numbers_are_left_to_others) {
  for (int kind = 0; kind < 2; kind++) {
    begin();
    rule_tensor *x = noise(3, SHAPE(4, 4), 0, 1);
    const uint32_t a = source(LEFT, x), b = source(RIGHT, x);
    ck_assert_ptr_null(words(a, kind ? turned(&w.r, neg(&w.r, b), 0, 1) : add(&w.r, b, b)));
    ck_assert_int_eq(step[RIGHT], -1);
    end();
  }
}
END_TEST

int main(void) {
  Suite *s = suite_create("layout_words");
  TCase *t = tcase_create("all");
  tcase_add_test(t, steps_of_both_sides_are_named_at_the_first_other_one);
  tcase_add_test(t, exchanged_dimensions_are_named);
  tcase_add_test(t, what_others_read_too_is_no_place);
  tcase_add_test(t, other_numbers_are_left_to_others);
  suite_add_tcase(s, t);
  return run_suite(s);
}
