/* Masks of drawn leaves: they move, and two of them hide together what they hid. */
#include <math.h>

#include "synth/leaves/leaves.h"
#include "tests/support/suite.h"
#include "tests/synth/small_state.h"

enum { B = 2, T = 4, U = 5, ALL = B * T * U };

/* 0, and minus infinity where a number that is drawn for the element says so. */
static rule_tensor *drawn(rule_shape s, iso_rng *rng) {
  rule_tensor *t = make_as(RULE_F64, s);
  for (int64_t i = 0; i < t->numel; i++)
    rule_tensor_set(t, i, iso_rng_below(rng, 2) ? -INFINITY : 0);
  return t;
}

static void put(const rule_tensor *v, size_t round, double *to) {
  for (int64_t i = 0; i < v->numel; i++) to[i] = 7;
  st_put_masks(v, round, 0, v->numel, to);
}

static int hidden_of(const double *x, int64_t n) {
  int k = 0;
  for (int64_t i = 0; i < n; i++) k += isinf(x[i]) != 0;
  return k;
}

/* [b, t, u] and [t, u] are added: how many elements rows lack. */
static void rows_lack(const double *m, const double *p, int of[U + 1]) {
  for (int k = 0; k <= U; k++) of[k] = 0;
  for (int row = 0; row < B * T; row++) {
    double sum[U];
    for (int j = 0; j < U; j++) sum[j] = m[row * U + j] + p[row % T * U + j];
    of[hidden_of(sum, U)]++;
  }
}

START_TEST(two_masks_hide_together_what_they_hid) {
  iso_rng rng = iso_rng_new(9, (uint64_t)_i);
  rule_tensor *m = drawn(SHAPE(B, T, U), &rng), *p = drawn(SHAPE(T, U), &rng);
  double was[2][ALL], is[2][ALL];
  int before[U + 1], after[U + 1];
  put(m, 0, was[0]);
  put(p, 0, was[1]);
  rows_lack(was[0], was[1], before);
  for (size_t round = 1; round < 9; round++) {
    put(m, round, is[0]);
    put(p, round, is[1]);
    rows_lack(is[0], is[1], after);
    for (int k = 0; k <= U; k++) ck_assert_int_eq(before[k], after[k]);
  }
  rule_tensor_unref(m);
  rule_tensor_unref(p);
}
END_TEST

START_TEST(a_triangle_a_diagonal_and_padding_move) {
  enum { TRIANGLE, DIAGONAL, PADDING };
  double was[T * T], is[T * T];
  rule_tensor *t = make_as(RULE_F64, SHAPE(T, T));
  for (int i = 0; i < T; i++)
    for (int j = 0; j < T; j++) {
      const bool shows = _i == TRIANGLE ? j <= i : _i == DIAGONAL ? j == i : j < 3;
      rule_tensor_set(t, i * T + j, shows ? 0 : -INFINITY);
    }
  put(t, 0, was);
  put(t, 1, is);
  bool moves = false;
  for (int64_t i = 0; i < T * T; i++) {
    ck_assert_int_eq(isinf(was[i]) != 0, isinf(rule_tensor_get(t, i)) != 0);
    ck_assert(isinf(was[i]) || was[i] == 7);
    moves |= isinf(was[i]) != isinf(is[i]);
  }
  ck_assert(moves);
  rule_tensor_unref(t);
}
END_TEST

START_TEST(rows_by_themselves_are_those_of_the_whole) {
  iso_rng rng = iso_rng_new(10, 0);
  rule_tensor *t = drawn(SHAPE(T, U), &rng);
  double whole[T * U], row[U];
  put(t, 1, whole);
  for (int64_t i = 0; i < T; i++) {
    for (int64_t j = 0; j < U; j++) row[j] = 7;
    st_put_masks(t, 1, i * U, U, row);
    for (int64_t j = 0; j < U; j++) ck_assert(row[j] == whole[i * U + j]);
  }
  rule_tensor_unref(t);
}
END_TEST

/* One element of many masks: it is seen, and stands elsewhere in each later round. */
START_TEST(a_lone_mask_is_kept) {
  enum { ROWS = 3, COLUMNS = 5001 };
  begin_state();
  iso_rng rng = iso_rng_new((uint64_t)_i, 11);
  rule_tensor *t = noise((uint64_t)_i, SHAPE(ROWS, COLUMNS), 0, 1);
  const int64_t at = (int64_t)iso_rng_below(&rng, ROWS * COLUMNS);
  rule_tensor_set(t, at, -INFINITY);
  input(&w.l, t);
  for (size_t round = 0; round < 3; round++) {
    st_spread of = {0};
    rule_tensor *out = NULL;
    ck_assert(st_redraw(&st, LEFT, 0, (st_stream){0, round}, &of, &out, &err) == ISO_OK);
    ck_assert_int_eq(hidden_of(out->data, out->numel), 1);
    ck_assert_int_eq(isinf(rule_tensor_get(out, at)) != 0, round == 0);
    rule_tensor_unref(out);
  }
  end_state();
}
END_TEST

int main(void) {
  Suite *s = suite_create("draw_masks");
  TCase *t = tcase_create("masks");
  tcase_add_loop_test(t, two_masks_hide_together_what_they_hid, 0, 20);
  tcase_add_loop_test(t, a_triangle_a_diagonal_and_padding_move, 0, 3);
  tcase_add_test(t, rows_by_themselves_are_those_of_the_whole);
  tcase_add_loop_test(t, a_lone_mask_is_kept, 0, 8);
  suite_add_tcase(s, t);
  return run_suite(s);
}
