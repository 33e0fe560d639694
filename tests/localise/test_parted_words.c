/* A tensor that the two sides take apart otherwise: the words name the tensor that both have, each
 * side's operators and the bounds of its parts. */
#include "tests/localise/small_parting.h"
#include "tests/support/suite.h"

enum { WIDE = 8 };

static uint32_t part(graph *g, uint32_t x, int64_t dim, int64_t start, int64_t stop, int64_t by) {
  return step_by(
      g, call_of("aten::slice.Tensor",
                 (const rule_term *const[5]){v(x), num(dim), num(start), num(stop), num(by)}));
}

/* x, and in front of its parts an operator that both sides have, or one of the right's own. */
static uint32_t source(int side, bool own) {
  graph *g = graph_of(side);
  const uint32_t x = input(g, positive(3, SHAPE(3, WIDE), 1));
  return side && own ? relu(g, neg(g, x)) : relu(g, x);
}

static const char *words(int64_t l, int64_t r) {
  place_all();
  for (int side = 0; side < 2; side++) ck_assert(lo_index(&p, side, &err) == ISO_OK);
  return lo_parted_otherwise(&p, l, r);
}

START_TEST(bounds_of_parts_are_said) {
  for (int64_t to = 2; to < WIDE; to++) {
    begin();
    const uint32_t l = part(&w.l, source(LEFT, false), 1, 0, to, 1),
                   turned =
                       op(&w.r, "aten::transpose.int", v(source(RIGHT, false)), num(0), num(1)),
                   r = part(&w.r, turned, 0, 0, to - 1, 1);
    neg(&w.l, l);
    neg(&w.r, r);
    const char
        *const said = words(l, r),
               *want = iso_arena_printf(
                   &w.arena,
                   "\"%s\" is taken apart otherwise: by slice (dim 1, start 0, end %d) on the "
                   "left, by transpose, slice (start 0, end %d) on the right",
                   w.l.node[1].id, (int)to, (int)to - 1);
    ck_assert_msg(said && strcmp(said, want) == 0, "%s, not %s", said ? said : "nothing", want);
    end();
  }
}
END_TEST

/* The nearest tensor that both have is the one that is named: what is cut off before it is the
 * same. */
START_TEST(what_both_cut_alike_is_not_said) {
  begin();
  uint32_t at[2];
  for (int side = 0; side < 2; side++) {
    graph *g = graph_of(side);
    const uint32_t rows = part(g, source(side, false), 0, 0, 2, 1);
    at[side] = part(g, rows, 1, side, WIDE, 2);
    neg(g, at[side]);
  }
  const char *const said = words(at[LEFT], at[RIGHT]);
  ck_assert_ptr_nonnull(said);
  ck_assert_ptr_nonnull(strstr(said,
                               "by slice (dim 1, start 0, end 8, step 2) on the left, by slice "
                               "(dim 1, start 1, end 8, step 2) on the right"));
  end();
}
END_TEST

START_TEST(parts_of_other_tensors_and_equal_parts_are_left_to_others) {
  for (int equal = 0; equal < 2; equal++) {
    begin();
    const uint32_t l = part(&w.l, source(LEFT, false), 1, 0, 4, 1),
                   r = part(&w.r, source(RIGHT, !equal), 1, 0, equal ? 4 : 5, 1);
    neg(&w.l, l);
    neg(&w.r, r);
    ck_assert_ptr_null(words(l, r));
    end();
  }
}
END_TEST

int main(void) {
  Suite *s = suite_create("parted_words");
  TCase *t = tcase_create("all");
  tcase_add_test(t, bounds_of_parts_are_said);
  tcase_add_test(t, what_both_cut_alike_is_not_said);
  tcase_add_test(t, parts_of_other_tensors_and_equal_parts_are_left_to_others);
  suite_add_tcase(s, t);
  return run_suite(s);
}
