/* Functions that read and write large tensors in several threads give the same bits with any number
 * of them. `make tsan` runs this under -fsanitize=thread, where places that two threads share are
 * an error. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "egraph/base/parallel.h"
#include "egraph/base/rng.h"
#include "synth/relate/tensor_view.h"
#include "tests/support/suite.h"

enum { LARGE = (1 << 22) + 5, MOST = 5 };

static rule_tensor *drawn(rule_dtype dtype, const rule_shape *shape) {
  rule_tensor *t;
  iso_rng rng = iso_rng_new(7, 1);
  ck_assert(rule_tensor_new(dtype, shape, &t, NULL) == ISO_OK);
  for (int64_t i = 0; i < t->numel; i++)
    rule_tensor_set(t, i, (double)(iso_rng_next(&rng) % 1001) / 8);
  return t;
}

static void count_part(void *ctx, int64_t from, int64_t to) {
  unsigned char *seen = ctx;
  for (int64_t i = from; i < to; i++) seen[i]++;
}

/* Every place once, for sizes at and around multiples of the number of parts. */
START_TEST(parts_make_up_the_whole) {
  static const int64_t sizes[] = {0, 1, 3, 1 << 21, (1 << 21) + 1, (1 << 22) - 1, LARGE};
  unsigned char *seen = calloc(LARGE, 1);
  ck_assert(seen != NULL);
  for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++)
    for (unsigned threads = 0; threads <= 40; threads += 8) {
      memset(seen, 0, LARGE);
      iso_parallel(threads, sizes[k], k % 2 ? 1 : 1 << 20, count_part, seen);
      int64_t wrong = 0;
      for (int64_t i = 0; i < LARGE; i++) wrong += seen[i] != (i < sizes[k]);
      ck_assert_int_eq(wrong, 0);
    }
  free(seen);
}
END_TEST

START_TEST(hashes_do_not_depend_on_threads) {
  static const rule_dtype dtypes[] = {RULE_F32, RULE_F64, RULE_BF16, RULE_U8, RULE_C128};
  const rule_dtype dtype = dtypes[_i];
  const rule_shape shape = {.rank = 3, .dim = {11, 3001, 129}}; /* odd sizes: blocks have rests */
  rule_tensor *t = drawn(dtype, &shape);
  const view v = view_dense(t, &shape);
  for (uint32_t d = 0; d < 3; d++) {
    uint64_t *one = view_hash_lines(&v, d, 1);
    ck_assert(one != NULL);
    for (unsigned threads = 2; threads <= MOST; threads++) {
      uint64_t *many = view_hash_lines(&v, d, threads);
      ck_assert(many != NULL);
      ck_assert_mem_eq(one, many, (size_t)shape.dim[d] * sizeof *one);
      free(many);
    }
    int64_t alike = 0;
    for (int64_t l = 1; l < shape.dim[d]; l++) alike += one[l] == one[l - 1];
    ck_assert_int_eq(alike, 0);
    free(one);
  }
  for (unsigned threads = 2; threads <= MOST; threads++)
    ck_assert(view_hash_multiset(t, threads) == view_hash_multiset(t, 1));
  rule_tensor_unref(t);
}
END_TEST

/* Lines that lie otherwise have the hash of equal lines that lie one after the other. */
START_TEST(lines_hash_alike_however_they_lie) {
  const rule_dtype dtype = _i ? RULE_F64 : RULE_F32;
  const rule_shape rows = {.rank = 2, .dim = {70, 131}}, columns = {.rank = 2, .dim = {131, 70}};
  rule_tensor *t = drawn(dtype, &rows), *u;
  ck_assert(rule_tensor_new(dtype, &columns, &u, NULL) == ISO_OK);
  for (int64_t r = 0; r < 70; r++)
    for (int64_t c = 0; c < 131; c++)
      rule_tensor_set(u, c * 70 + r, rule_tensor_get(t, r * 131 + c));
  const view a = view_dense(t, &rows), b = view_dense(u, &columns);
  uint64_t *x = view_hash_lines(&a, 0, 1), *y = view_hash_lines(&b, 1, 1);
  ck_assert(x && y);
  ck_assert_mem_eq(x, y, 70 * sizeof *x);
  ck_assert(view_hash_multiset(t, 1) == view_hash_multiset(u, 1));
  free(x);
  free(y);
  rule_tensor_unref(t);
  rule_tensor_unref(u);
}
END_TEST

START_TEST(elements_are_found) {
  static const rule_dtype dtypes[] = {RULE_F32, RULE_F64, RULE_BF16, RULE_I64, RULE_I32};
  const rule_shape shape = {.rank = 1, .dim = {203}};
  rule_tensor *t;
  ck_assert(rule_tensor_new(dtypes[_i], &shape, &t, NULL) == ISO_OK);
  for (int64_t i = 0; i < 203; i++) rule_tensor_set(t, i, (double)(2 * (i % 100) + 2 * (i == 202)));
  rule_tensor *e = drawn(dtypes[_i], &(rule_shape){.rank = 1, .dim = {1}});
  for (int64_t i = 0; i < 220; i++) {
    rule_tensor_set(e, 0, (double)i);
    ck_assert_int_eq(view_has_element(t, e->data), i % 2 == 0 && i < 200);
  }
  rule_tensor_set(t, 202, 211); /* behind the last block */
  rule_tensor_set(e, 0, 211);
  ck_assert(view_has_element(t, e->data));
  rule_tensor_unref(t);
  rule_tensor_unref(e);
}
END_TEST

START_TEST(widening_does_not_depend_on_threads) {
  static const rule_dtype dtypes[] = {RULE_F32, RULE_F16, RULE_BF16, RULE_C64, RULE_F8E5M2};
  const rule_shape shape = {.rank = 1, .dim = {LARGE}};
  rule_tensor *t = drawn(dtypes[_i], &shape), *one, *many;
  ck_assert(rule_tensor_to_float64(t, &one, NULL) == ISO_OK);
  ck_assert(rule_tensor_to_float64_in(t, 4, &many, NULL) == ISO_OK);
  ck_assert(rule_tensor_same(one, many));
  for (int64_t i = 0; i < 300; i++)
    ck_assert_double_eq(rule_tensor_get(one, i), rule_tensor_get(t, i));
  for (int64_t i = LARGE - 300; i < LARGE; i++)
    ck_assert_double_eq(rule_tensor_get(one, i), rule_tensor_get(t, i));
  rule_tensor_unref(t);
  rule_tensor_unref(one);
  rule_tensor_unref(many);
}
END_TEST

/* Numbers drawn many at once, from anywhere in the stream, are those drawn one by one. */
START_TEST(numbers_at_once_are_numbers_one_by_one) {
  enum { N = 40000 };
  double *x = malloc(N * sizeof *x), *y = malloc(N * sizeof *y);
  ck_assert(x && y);
  for (size_t n = 0; n < N; n = 2 * n + 127) {
    iso_rng a = iso_rng_new(3, n), b = a;
    for (size_t i = 0; i < n; i++) x[i] = iso_rng_normal(&a);
    iso_rng_fill_normal(&b, y, n);
    ck_assert_mem_eq(x, y, n * sizeof *x);
    ck_assert(a.state == b.state);
    for (size_t i = 0; i < n; i++) x[i] = 0.25 + 1e-19 * (double)(int64_t)iso_rng_next(&a);
    iso_rng_fill_even(&b, 0.25, 1e-19, y, n / 3);
    ck_assert_mem_eq(x, y, n / 3 * sizeof *x);
    b = iso_rng_after(b, n - n / 3);
    ck_assert(a.state == b.state);
  }
  free(x);
  free(y);
}
END_TEST

int main(void) {
  Suite *s = suite_create("threads");
  TCase *t = tcase_create("large tensors");
  tcase_set_timeout(t, 120);
  tcase_add_test(t, parts_make_up_the_whole);
  tcase_add_loop_test(t, hashes_do_not_depend_on_threads, 0, 5);
  tcase_add_loop_test(t, lines_hash_alike_however_they_lie, 0, 2);
  tcase_add_loop_test(t, elements_are_found, 0, 5);
  tcase_add_loop_test(t, widening_does_not_depend_on_threads, 0, 5);
  tcase_add_test(t, numbers_at_once_are_numbers_one_by_one);
  suite_add_tcase(s, t);
  return run_suite(s);
}
