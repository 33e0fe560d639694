/* Arrays that grow, side by side, against what was written into them: drawn sizes, so that they lie
 * in malloc's memory, on shelves and in mappings, and go from one to the next; in several threads
 * at once too, which share shelves (`make tsan`). */
#include <check.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

#include "egraph/base/big.h"
#include "egraph/base/rng.h"
#include "tests/support/suite.h"

enum { ARRAYS = 40, STEPS = 1500, MOST = 22, THREADS = 3, TOUCHED = 64 };

/* Of each block of so many bytes the first word says which array it is and where. */
enum { BLOCK = 1 << 12, PER_BLOCK = BLOCK / sizeof(uint64_t) };
typedef struct array {
  uint64_t *p;
  size_t cap, n; /* n: elements that are used */
} array;

static uint64_t mark(uint64_t seed, size_t k, size_t at) { return seed << 48 ^ k << 32 ^ at; }

static void write_on(array *a, size_t from, uint64_t seed, size_t k) {
  for (size_t i = (from + PER_BLOCK - 1) / PER_BLOCK * PER_BLOCK; i < a->n; i += PER_BLOCK)
    a->p[i] = mark(seed, k, i);
}
static bool is_whole(const array *a, uint64_t seed, size_t k) {
  for (size_t i = 0; i < a->n; i += PER_BLOCK)
    if (a->p[i] != mark(seed, k, i)) return false;
  return true;
}

/* Sizes of all scales. Some arrays start anew, as the table does; some grow by what is not used. */
static bool grow(array *a, iso_rng *rng, uint64_t seed, size_t k) {
  const size_t bytes = (size_t)1 << (8 + iso_rng_below(rng, MOST - 8)),
               need = bytes / sizeof *a->p + iso_rng_below(rng, 2 * TOUCHED), from = a->n,
               cap = a->cap;
  const unsigned kind = (unsigned)iso_rng_below(rng, 4);
  bool good = true;
  if (kind == 0) {
    good = egi_grow_used(a->p, a->cap, 0, need, true);
    if (a->cap != cap) a->n = 0;
  } else if (kind == 1) {
    good = egi_grow_used(a->p, a->cap, a->n, need, false);
  } else {
    good = egi_grow(a->p, a->cap, need);
  }
  if (!good || (a->cap * sizeof *a->p >= EGI_LARGE && (uintptr_t)a->p % EGI_LINE)) return false;
  const size_t kept = a->n < from ? 0 : from;
  a->n = need > a->n ? need : a->n;
  write_on(a, kept, seed, k);
  return is_whole(a, seed, k);
}

static void *run(void *ctx) {
  const uint64_t seed = *(const uint64_t *)ctx;
  array a[ARRAYS] = {{0}};
  iso_rng rng = iso_rng_new(seed, 0);
  bool good = true;
  for (int step = 0; step < STEPS && good; step++) {
    const size_t k = iso_rng_below(&rng, ARRAYS);
    good = is_whole(&a[k], seed, k);
    if (iso_rng_below(&rng, 3) == 0) {
      egi_grown_free(a[k].p, a[k].cap);
      a[k] = (array){0};
    } else {
      good = good && grow(&a[k], &rng, seed, k);
    }
  }
  for (size_t k = 0; k < ARRAYS; k++) {
    good = good && is_whole(&a[k], seed, k);
    egi_grown_free(a[k].p, a[k].cap);
  }
  return good ? ctx : NULL;
}

START_TEST(arrays_keep_what_they_have) {
  for (uint64_t seed = 1; seed <= 8; seed++) ck_assert_ptr_nonnull(run(&seed));
}
END_TEST

START_TEST(threads_share_shelves) {
  pthread_t thread[THREADS];
  uint64_t seed[THREADS];
  void *good;
  for (int i = 0; i < THREADS; i++) {
    seed[i] = 100 + (uint64_t)i;
    ck_assert_int_eq(pthread_create(&thread[i], NULL, run, &seed[i]), 0);
  }
  for (int i = 0; i < THREADS; i++) {
    ck_assert_int_eq(pthread_join(thread[i], &good), 0);
    ck_assert_ptr_nonnull(good);
  }
}
END_TEST

int main(void) {
  Suite *suite = suite_create("big");
  TCase *t = tcase_create("arrays");
  tcase_set_timeout(t, 300);
  tcase_add_test(t, arrays_keep_what_they_have);
  tcase_add_test(t, threads_share_shelves);
  suite_add_tcase(suite, t);
  return run_suite(suite);
}
