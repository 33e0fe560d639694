/* A limit on memory counts memory in use: blocks kept for later tensors are freed before anything
 * stops. */
#include <check.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/config/limits.h"
#include "rules/tensor.h"
#include "tests/support/suite.h"

enum { BLOCK = 32 << 20, BLOCKS = 6 }; /* large beside all else that the process has */

/* Fill blocks and let them go. */
static void keep_some(void) {
  void *p[BLOCKS];
  for (int i = 0; i < BLOCKS; i++) {
    ck_assert((p[i] = rule_memory_take(BLOCK)) != NULL);
    ck_assert((uintptr_t)p[i] % 64 == 0);
    memset(p[i], 1, BLOCK);
  }
  for (int i = 0; i < BLOCKS; i++) rule_memory_give(p[i], BLOCK);
}

START_TEST(what_is_kept_is_bounded) {
  keep_some();
  ck_assert_uint_eq(rule_memory_kept(), (size_t)BLOCKS * BLOCK);
  void *again = rule_memory_take(BLOCK);
  ck_assert_uint_eq(rule_memory_kept(), (size_t)(BLOCKS - 1) * BLOCK);
  rule_memory_keep((size_t)2 * BLOCK + 5);
  ck_assert_uint_eq(rule_memory_kept(), (size_t)2 * BLOCK);
  rule_memory_give(again, BLOCK);
  ck_assert_uint_eq(rule_memory_kept(), (size_t)2 * BLOCK);
  void *large = rule_memory_take((size_t)3 * BLOCK);
  rule_memory_give(large, (size_t)3 * BLOCK); /* more than is kept of all */
  ck_assert_uint_eq(rule_memory_kept(), (size_t)2 * BLOCK);
  rule_memory_give(NULL, BLOCK);
  rule_memory_keep(0);
  ck_assert_uint_eq(rule_memory_kept(), 0);
  keep_some();
  ck_assert_uint_eq(rule_memory_kept(), 0);
}
END_TEST

static uint64_t resident(void) {
  unsigned long long size, pages = 0;
  FILE *f = fopen("/proc/self/statm", "re");
  ck_assert(f != NULL && fscanf(f, "%llu %llu", &size, &pages) == 2);
  fclose(f);
  return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* Sanitizers and valgrind keep freed memory. */
static bool frees_at_once(void) {
  void *p = rule_memory_take((size_t)4 * BLOCK);
  ck_assert(p != NULL);
  memset(p, 1, (size_t)4 * BLOCK);
  const uint64_t full = resident();
  rule_memory_give(p, (size_t)4 * BLOCK);
  rule_memory_keep(0);
  rule_memory_keep((size_t)BLOCKS * BLOCK);
  return resident() < full - (uint64_t)2 * BLOCK;
}

START_TEST(what_is_kept_does_not_stop_anything) {
  if (!frees_at_once()) return;
  const uint64_t before = resident();
  keep_some();
  ck_assert(resident() > before + (uint64_t)(BLOCKS - 1) * BLOCK);
  limits l = {.memory_bytes = before + (uint64_t)2 * BLOCK, .end = 1e300};
  ck_assert_ptr_null(limits_reached(&l));
  ck_assert_uint_eq(rule_memory_kept(), 0);
  void *used = rule_memory_take((size_t)4 * BLOCK);
  ck_assert(used != NULL);
  memset(used, 1, (size_t)4 * BLOCK);
  ck_assert_ptr_nonnull(limits_reached(&l));
  rule_memory_give(used, (size_t)4 * BLOCK);
}
END_TEST

START_TEST(a_limit_bounds_what_is_kept) {
  limits l = {.memory_bytes = (uint64_t)16 * BLOCK};
  limits_start(&l);
  keep_some();
  ck_assert_uint_eq(rule_memory_kept(), (size_t)2 * BLOCK);
}
END_TEST

int main(void) {
  Suite *s = suite_create("limits");
  TCase *t = tcase_create("memory");
  tcase_set_timeout(t, 60);
  tcase_add_test(t, what_is_kept_is_bounded);
  tcase_add_test(t, what_is_kept_does_not_stop_anything);
  tcase_add_test(t, a_limit_bounds_what_is_kept);
  suite_add_tcase(s, t);
  return run_suite(s);
}
