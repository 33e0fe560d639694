/* Two outputs, against how far disturbed runs move them. */
#include "synth/refute/margins.h"
#include "tests/support/suite.h"
#include "tests/synth/small_terms.h"

enum { N = 4 };

static rule_tensor *numbers(double by) {
  rule_tensor *t = keep(make((rule_shape){1, {N}}));
  for (int64_t i = 0; i < N; i++) rule_tensor_set(t, i, (double)(i + 1) * (1 + by));
  return t;
}

/* Sides that are `apart`, each moved by `noise` in one run, and by `storage` in the last. */
static st_outputs sides(double apart, double noise, double storage) {
  st_outputs o = {.base = {numbers(0), numbers(apart)}};
  for (int side = 0; side < 2; side++)
    for (int k = 0; k < NOISE_RUNS; k++) {
      const double by = k == 1 ? noise : k == STORAGE_RUN ? storage : 0;
      o.run[side][k] = numbers((side ? apart : 0) + by);
    }
  return o;
}

static bool beyond(double apart, double noise, double storage, double margin) {
  begin_terms();
  st_outputs o = sides(apart, noise, storage);
  rule_diff d;
  const bool yes = st_beyond_rounding(&o, (st_margin){1e-9, margin, true}, &d);
  ck_assert(yes == !d.equal);
  end_state();
  return yes;
}

START_TEST(a_difference_is_beyond_what_moves_it_or_none) {
  ck_assert(beyond(1e-5, 0, 0, 100) && beyond(1e-5, 1e-8, 0, 100));
  ck_assert(!beyond(1e-5, 1e-6, 0, 100) && beyond(1e-5, 1e-6, 0, 1));
  ck_assert(!beyond(1e-5, 0, 1e-5, 100) && beyond(1e-5, 0, 1e-6, 100));
  ck_assert(!beyond(1e-12, 0, 0, 100) && !beyond(0, 0, 0, 100));
}
END_TEST

START_TEST(the_farthest_of_the_runs_counts) {
  begin_terms();
  st_outputs o = sides(1e-5, 1e-7, 1e-3);
  ck_assert(fabs(st_moved(o.base[0], o.run[0], 0, STORAGE_RUN, 3) - 4e-7) < 1e-12);
  ck_assert(fabs(st_moved(o.base[0], o.run[0], 0, NOISE_RUNS, 3) - 4e-3) < 1e-9);
  ck_assert(st_moved(o.base[0], o.run[0], 0, 1, 3) == 0);
  end_state();
}
END_TEST

int main(void) {
  Suite *s = suite_create("margins");
  TCase *t = tcase_create("margins");
  tcase_add_test(t, a_difference_is_beyond_what_moves_it_or_none);
  tcase_add_test(t, the_farthest_of_the_runs_counts);
  suite_add_tcase(s, t);
  return run_suite(s);
}
