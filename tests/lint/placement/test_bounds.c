/* Numbers of a rank's own rows become those of the whole where one leaf's sizes say which, and no
 * other's say otherwise. */
#include "lint/placement/lift/variants.h"
#include "tests/lint/placement/tuples.h"
#include "tests/support/suite.h"

enum { SEEDS = 500, LEAVES = 3, ROWS = LEAVES, STEP, N_TUPLES };

/* A leaf of so many dimensions, of which the ranks have some in parts. */
static void draw_leaf(iso_rng *rng, uint32_t k) {
  rule_shape own = {.rank = 1 + (uint32_t)iso_rng_below(rng, 3)}, all;
  for (uint32_t d = 0; d < own.rank; d++) own.dim[d] = 1 + (int64_t)iso_rng_below(rng, 4);
  all = own;
  for (uint32_t d = 0; d < own.rank; d++)
    if (iso_rng_below(rng, 3) == 0) all.dim[d] *= 2;
  set_shape(k, own);
  wholes[k][0] = make(all);
  tuple[k].leaf = true;
}

static int64_t product(const rule_shape *s, uint32_t from, uint32_t to) {
  int64_t n = 1;
  for (uint32_t d = from; d < to; d++) n *= s->dim[d];
  return n;
}

/* By all ranges of dimensions: the one other number that `n` rows of a rank are; 0. */
static int64_t naive_size(int64_t n) {
  int64_t found = 0;
  for (uint32_t k = 0; k < LEAVES; k++) {
    const rule_shape *own = &output[at[k][0]].shape, *all = &wholes[k][0]->shape;
    for (uint32_t i = 0; i < own->rank; i++)
      for (uint32_t j = i + 1; j <= own->rank; j++) {
        const int64_t whole = product(all, i, j);
        if (product(own, i, j) != n || whole == n) continue;
        if (found && found != whole) return 0;
        found = whole;
      }
  }
  return found;
}

START_TEST(a_number_of_rows_is_that_of_the_whole_if_all_leaves_agree) {
  int changed = 0;
  for (uint64_t seed = 0; seed < SEEDS; seed++) {
    iso_rng rng = iso_rng_new(seed, 1);
    begin_tuples("a=2", N_TUPLES);
    for (uint32_t k = 0; k < LEAVES; k++) draw_leaf(&rng, k);
    for (int64_t n = -1; n <= 12; n++) {
      const int64_t rows = n > 0 ? naive_size(n) : 0, last = n > 0 ? naive_size(n + 1) : 0;
      const int64_t want = rows ? rows : last ? last - 1 : n;
      changed += want != n;
      ck_assert_msg(plc_whole_bound(&ranks, n) == want, "seed %d, %d", (int)seed, (int)n);
      ck_assert_double_eq(plc_whole_number(&ranks, (double)n), (double)(rows ? rows : n));
      ck_assert_double_eq(plc_whole_number(&ranks, (double)n + 0.5), (double)n + 0.5);
    }
    end_tuples();
  }
  ck_assert_int_gt(changed, SEEDS);
}
END_TEST

/* Leaves that are not placed, or have no whole, say nothing; nor do tensors that are no leaves. */
START_TEST(only_leaves_with_a_whole_tell_sizes) {
  for (int k = 0; k < 5; k++) {
    begin_tuples("a=2", N_TUPLES);
    wholes[0][0] = make(SHAPE(4, 3));
    if (k == 1) tuple[0].leaf = false;
    if (k == 2) tuple[0].state = PLC_VARYING;
    if (k == 3) tuple[0].whole = NULL;
    if (k == 4) wholes[0][0] = make(SHAPE(4, 3, 1));
    ck_assert_int_eq(plc_whole_bound(&ranks, 2), k ? 2 : 4);
    end_tuples();
  }
}
END_TEST

/* A comparison, bound or remainder of integers by such a number, and a tensor filled with it. */
START_TEST(integers_that_are_held_against_rows_are_bounded) {
  static const struct {
    const char *op;
    int64_t by;
    bool bounded;
  } cases[] = {{"aten::lt.Scalar", 2, true},
               {"aten::ge.Scalar", 2, true},
               {"aten::clamp_max", 1, true}, /* the last row */
               {"aten::remainder.Scalar", 2, true},
               {"aten::lt.Scalar", 3, false}, /* all ranks have as many columns */
               {"aten::add.Scalar", 2, false},
               {"aten::mul.Scalar", 2, false}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    for (int k = 0; k < 4; k++) {
      const rule_shape s = SHAPE(2);
      rule_tensor *rows;
      begin_tuples("a=2", N_TUPLES);
      wholes[0][0] = make(SHAPE(4, 3));
      ck_assert(rule_tensor_new(k == 1 ? RULE_F64 : RULE_I64, &s, &rows, &err) == ISO_OK);
      wholes[ROWS][0] = keep(rows);
      const rule_term *const by = rule_int(&terms, cases[i].by);
      reads(STEP, cases[i].op, (uint32_t[]){ROWS}, 1, &by, 1);
      if (k == 2) tuple[STEP].differs = true;
      if (k == 3) tuple[STEP].collective = true;
      ck_assert_msg(plc_is_bounded(&ranks, &tuple[STEP]) == (k == 0 && cases[i].bounded), "%s %d",
                    cases[i].op, k);
      end_tuples();
    }
  for (int n = 2; n <= 3; n++) {
    begin_tuples("a=2", N_TUPLES);
    wholes[0][0] = make(SHAPE(4, 3));
    const rule_term *const arg[] = {rule_list(&terms, NULL, 0), rule_float(&terms, n)};
    reads(STEP, "aten::full", NULL, 0, arg, 2);
    ck_assert_int_eq(plc_is_bounded(&ranks, &tuple[STEP]), n == 2);
    end_tuples();
  }
}
END_TEST

int main(void) {
  Suite *s = suite_create("bounds");
  TCase *t = tcase_create("bounds");
  tcase_add_test(t, a_number_of_rows_is_that_of_the_whole_if_all_leaves_agree);
  tcase_add_test(t, only_leaves_with_a_whole_tell_sizes);
  tcase_add_test(t, integers_that_are_held_against_rows_are_bounded);
  suite_add_tcase(s, t);
  return run_suite(s);
}
