/* Numbers as rounding may have left them: by how much, which stay, and that a weight moves the same
 * as it is stored and in float64. */
#include "synth/joint/run_int.h"
#include "tests/support/suite.h"
#include "tests/synth/small_terms.h"

enum { N = 10000 };

static rule_tensor *weights(rule_dtype dtype) {
  rule_tensor *t = keep(make_as(dtype, (rule_shape){1, {N}}));
  for (int64_t i = 0; i < N; i++) rule_tensor_set(t, i, (double)(i % 251 - 125) / 128);
  return t;
}

static rule_tensor *disturbed(const rule_tensor *t, st_disturbing how, uint64_t stream) {
  iso_rng rng = iso_rng_new(7, stream);
  rule_tensor *out = NULL;
  ck_assert(!st_disturbed(t, &how, &rng, &out, NULL));
  return keep(out);
}

START_TEST(each_number_moves_by_a_part_of_the_noise) {
  const double noise = 1e-9;
  begin_terms();
  rule_tensor *t = weights(RULE_F64);
  ((double *)t->data)[3] = -1e38;
  const rule_tensor *a = disturbed(t, (st_disturbing){.noise = noise}, 1),
                    *b = disturbed(t, (st_disturbing){.noise = noise}, 2);
  int64_t moved = 0, apart = 0;
  for (int64_t i = 0; i < N; i++) {
    const double x = rule_tensor_get(t, i), y = rule_tensor_get(a, i);
    ck_assert(fabs(y - x) <= 1.001 * noise * fabs(x));
    moved += y != x;
    apart += y != rule_tensor_get(b, i);
  }
  ck_assert(rule_tensor_get(a, 3) == -1e38 && moved > N * 9 / 10 && apart > N * 9 / 10);
  end_state();
}
END_TEST

START_TEST(a_stored_weight_moves_as_it_does_in_float64) {
  static const rule_dtype narrow[] = {RULE_F32, RULE_F16, RULE_BF16};
  static const st_disturbing how[] = {{.noise = 1e-9}, {.noise = 1e-9, .whole = true}};
  begin_terms();
  for (size_t d = 0; d < 3; d++)
    for (size_t h = 0; h < 2; h++)
      ck_assert(rule_tensor_same(disturbed(weights(narrow[d]), how[h], 5),
                                 disturbed(weights(RULE_F64), how[h], 5)));
  end_state();
}
END_TEST

int main(void) {
  Suite *s = suite_create("disturb");
  TCase *t = tcase_create("disturb");
  tcase_add_test(t, each_number_moves_by_a_part_of_the_noise);
  tcase_add_test(t, a_stored_weight_moves_as_it_does_in_float64);
  suite_add_tcase(s, t);
  return run_suite(s);
}
