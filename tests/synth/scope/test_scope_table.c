/* Tables of positions: one side computes them, the other one looks the first T rows of a stored one
 * up. Rows beyond the captured ones count, and so does how they are computed. */
#include "tests/support/suite.h"
#include "tests/synth/scope/sized.h"

enum { ROWS = 6, WIDTH = 2 };

typedef enum computed { PLACES, BACKWARDS, CLAMPED } computed;

/* Rows of positions times numbers, on x of T rows; T is 4 in the captures. */
static void computes(graph *g, rule_tensor *x, rule_tensor *by, computed how) {
  const rule_term *line = sizes(size("T"), NULL), *column = sizes(size("T"), num(1)),
                  *whole = sizes(size("T"), num(WIDTH));
  const uint32_t in = input(g, x), factors = leaf(g, SYNTH_BUFFER, "factors", by, by);
  dims(g, in, whole);
  dims(g, factors, sizes(num(WIDTH), NULL));
  uint32_t at = sized_op(g, line, "aten::arange", size("T"), NULL, NULL);
  const rule_term *first = num(0);
  if (how == BACKWARDS)
    at = sized_op(g, line, "aten::flip", v(at), rule_list(&w.arena, &first, 1), NULL);
  if (how == CLAMPED) at = sized_op(g, line, "aten::clamp_max", v(at), num(3), NULL);
  const uint32_t rows = sized_op(g, column, "aten::unsqueeze", v(at), num(1), NULL),
                 table = sized_op(g, whole, "aten::mul.Tensor", v(rows), v(factors), NULL);
  output(g, "y", sized_op(g, whole, "aten::mul.Tensor", v(in), v(table), NULL));
}

static void stores(graph *g, rule_tensor *x, rule_tensor *table) {
  const rule_term *whole = sizes(size("T"), num(WIDTH));
  const uint32_t in = input(g, x), all = leaf(g, SYNTH_BUFFER, "table", table, table);
  dims(g, in, whole);
  dims(g, all, sizes(num(ROWS), num(WIDTH)));
  const uint32_t rows =
      sized_step(g,
                 call_of("aten::slice.Tensor",
                         (const rule_term *const[5]){v(all), num(0), num(0), size("T"), num(1)}),
                 whole);
  output(g, "y", sized_op(g, whole, "aten::mul.Tensor", v(in), v(rows), NULL));
}

/* A stored table whose element in row `wrong` is another one. */
static void pair(computed how, int64_t wrong, int64_t max, bool exchanged) {
  teardown();
  set_up_sized();
  symbols("T", 1, max);
  rule_tensor *x = noise(1, SHAPE(4, WIDTH), 0, 1), *by = noise(2, SHAPE(WIDTH), 0, 1),
              *table = keep(make(SHAPE(ROWS, WIDTH)));
  for (int64_t i = 0; i < table->numel; i++) {
    const int64_t row = i / WIDTH;
    const double at = (double)(how == BACKWARDS ? 3 - row : how == CLAMPED && row > 3 ? 3 : row);
    rule_tensor_set(table, i, at * rule_tensor_get(by, i % WIDTH) + (row == wrong));
  }
  computes(exchanged ? &w.r : &w.l, x, by, how);
  stores(exchanged ? &w.l : &w.r, x, table);
}

START_TEST(a_table_is_the_first_rows_of_what_it_is_at_the_largest_size) {
  for (int exchanged = 0; exchanged < 2; exchanged++) {
    pair(PLACES, -1, ROWS, exchanged);
    for_all_sizes("places");
    pair(CLAMPED, -1, ROWS, exchanged);
    for_all_sizes("places up to the third");
    bool table = false;
    for (size_t i = 0; i < w.res->certificate->n_sized_steps; i++)
      table |= w.res->certificate->sized_step[i].how == SYNTH_SIZED_TABLE;
    ck_assert(table);
  }
}
END_TEST

START_TEST(every_row_up_to_the_largest_size_counts) {
  for (int exchanged = 0; exchanged < 2; exchanged++)
    for (int64_t row = 4; row < ROWS; row++) {
      pair(PLACES, row, ROWS, exchanged);
      held_back("a row is wrong", "their values at the largest size differ");
      pair(PLACES, row, row, exchanged);
      for_all_sizes("no size reaches the row");
    }
}
END_TEST

START_TEST(a_table_from_its_end_on_is_another_one_at_each_size) {
  for (int exchanged = 0; exchanged < 2; exchanged++) {
    pair(BACKWARDS, -1, ROWS, exchanged);
    held_back("counted from the end", "for all sizes it is");
  }
}
END_TEST

START_TEST(without_a_largest_size_nothing_is_compared) {
  pair(PLACES, -1, INT64_MAX, false);
  held_back("no largest size", "for all sizes it is refuted");
}
END_TEST

int main(void) {
  Suite *s = suite_create("scope_table");
  TCase *t = tcase_create("scope_table");
  tcase_add_checked_fixture(t, set_up_sized, teardown);
  tcase_add_test(t, a_table_is_the_first_rows_of_what_it_is_at_the_largest_size);
  tcase_add_test(t, every_row_up_to_the_largest_size_counts);
  tcase_add_test(t, a_table_from_its_end_on_is_another_one_at_each_size);
  tcase_add_test(t, without_a_largest_size_nothing_is_compared);
  suite_add_tcase(s, t);
  return run_suite(s);
}
