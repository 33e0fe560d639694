/* Masks that one side writes as float32's least number and the other one as minus infinity: for all
 * sizes only where every row keeps an element at each, and the diagonal is what is shown to be
 * kept. */
#include "tests/support/suite.h"
#include "tests/synth/scope/sized.h"

#define LEAST (-3.4028234663852886e+38)

typedef enum how { FILLED, WHERE_SELF, WHERE_OTHER } how;
typedef enum pattern { LATER, EARLIER, OTHERS, ITSELF } pattern;

/* Whether a place is hidden, T by T, by its row and column; LATER: those behind it. */
static uint32_t hidden(graph *g, pattern p) {
  const rule_term *line = sizes(size("T"), NULL), *column = sizes(size("T"), num(1)),
                  *square = sizes(size("T"), size("T"));
  const uint32_t j = sized_op(g, line, "aten::arange", size("T"), NULL, NULL),
                 i = sized_op(g, column, "aten::unsqueeze", v(j), num(1), NULL);
  const bool equal = p == OTHERS || p == ITSELF;
  const uint32_t a = p == EARLIER ? j : i, b = p == EARLIER ? i : j;
  const uint32_t on =
      sized_op(g, square, equal ? "aten::eq.Tensor" : "aten::lt.Tensor", v(a), v(b), NULL);
  return p == OTHERS ? sized_op(g, square, "aten::logical_not", v(on), NULL, NULL) : on;
}

/* softmax of the scores x, those that are hidden at `number`. */
static void side_of(graph *g, rule_tensor *x, pattern p, how h, double number, int64_t along) {
  const rule_term *square = sizes(size("T"), size("T")), *least = rule_float(&w.arena, number);
  const uint32_t in = input(g, x);
  dims(g, in, square);
  uint32_t on = hidden(g, p), scores;
  if (h == WHERE_OTHER) on = sized_op(g, square, "aten::logical_not", v(on), NULL, NULL);
  if (h == FILLED) scores = sized_op(g, square, "aten::masked_fill.Scalar", v(in), v(on), least);
  else if (h == WHERE_SELF)
    scores = sized_op(g, square, "aten::where.ScalarSelf", v(on), least, v(in));
  else scores = sized_op(g, square, "aten::where.ScalarOther", v(on), v(in), least);
  output(g, "y", sized_op(g, square, "aten::softmax.int", v(scores), num(along), NULL));
}

static void pair(pattern p, how left, how right, double number, int64_t along) {
  teardown();
  set_up_sized();
  symbols("T", 1, INT64_MAX);
  rule_tensor *x = noise(1, SHAPE(4, 4), 0, 1);
  side_of(&w.l, x, p, left, LEAST, along);
  side_of(&w.r, x, p, right, number, along);
}

static const char *const name[] = {"later", "earlier", "others", "itself"};

START_TEST(rows_that_keep_their_own_place_keep_it_at_all_sizes) {
  static const pattern kept[] = {LATER, EARLIER, OTHERS};
  for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
    for (how h = FILLED; h <= WHERE_OTHER; h++) {
      pair(kept[i], h, FILLED, -INFINITY, 1);
      for_all_sizes(name[kept[i]]);
      ck_assert(w.res->certificate->masks_read[0] || w.res->certificate->masks_read[1]);
    }
}
END_TEST

/* Of four places each row keeps three, of one place none. */
START_TEST(rows_that_hide_their_own_place_are_held_back) {
  for (how h = FILLED; h <= WHERE_OTHER; h++) {
    pair(ITSELF, h, FILLED, -INFINITY, 1);
    held_back(name[ITSELF], "masks are read as minus infinity");
  }
}
END_TEST

/* Along columns, the last dimension's rows say nothing. */
START_TEST(rows_of_another_dimension_are_held_back) {
  pair(LATER, FILLED, FILLED, -INFINITY, 0);
  held_back("along columns", "masks are read as minus infinity");
}
END_TEST

/* Nothing is read where both sides write the same number. */
START_TEST(masks_that_are_not_read_are_not_asked_about) {
  pair(ITSELF, FILLED, WHERE_SELF, LEAST, 1);
  for_all_sizes("one number on both sides");
  ck_assert(!w.res->certificate->masks_read[0] && !w.res->certificate->masks_read[1]);
}
END_TEST

int main(void) {
  Suite *s = suite_create("scope_masks");
  TCase *t = tcase_create("scope_masks");
  tcase_add_checked_fixture(t, set_up_sized, teardown);
  tcase_add_test(t, rows_that_keep_their_own_place_keep_it_at_all_sizes);
  tcase_add_test(t, rows_that_hide_their_own_place_are_held_back);
  tcase_add_test(t, rows_of_another_dimension_are_held_back);
  tcase_add_test(t, masks_that_are_not_read_are_not_asked_about);
  suite_add_tcase(s, t);
  return run_suite(s);
}
