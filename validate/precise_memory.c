/* Memory for MPFR and GMP, which take no for no answer: an allocator of theirs may not give NULL,
 * and what they do in the middle of a function cannot be left by a jump, since their caches would
 * stay half written.
 *
 * So each evaluation takes a reserve before it begins, and may fail there. While it runs, what the
 * system does not give comes from the reserve, and the evaluation is told: it ends after the number
 * that it is at (vp_go), lets everything go, and says that there was no memory. The reserve is
 * larger than what any one number takes: tests/validate/test_precise_oom.c lets every allocation
 * fail from some point on. */
#include "validate/precise/precise_int.h"

#ifdef VAL_HAS_MPFR
#include <gmp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RESERVE = 8 << 20, ALIGN = 16 };

static _Thread_local vp_memory *current;

static bool reserved(const void *p) {
  return current && (const char *)p >= current->base && (const char *)p < current->base + RESERVE;
}

static size_t rounded(size_t n) { return (n + ALIGN - 1) & ~(size_t)(ALIGN - 1); }

static void *from_reserve(size_t n) {
  if (!current || n > RESERVE || rounded(n) > RESERVE - current->used) {
    fputs("isomer: out of memory\n", stderr);
    _Exit(2);
  }
  void *p = current->base + current->used;
  current->used += rounded(n);
  current->needed = true;
  return p;
}

static void *allocate(size_t n) {
  void *p = malloc(n ? n : 1);
  return p ? p : from_reserve(n);
}

static bool last(const void *p, size_t n) {
  return (const char *)p + rounded(n) == current->base + current->used;
}

static void release(void *p, size_t n) {
  if (!reserved(p)) free(p);
  else if (last(p, n)) current->used -= rounded(n);
}

static void *reallocate(void *p, size_t old, size_t n) {
  if (!reserved(p)) {
    void *q = realloc(p, n ? n : 1);
    if (q) return q;
  } else if (last(p, old) && n <= RESERVE &&
             rounded(n) <= RESERVE - (size_t)((char *)p - current->base)) {
    current->used = (size_t)((char *)p - current->base) + rounded(n);
    return p;
  }
  void *q = from_reserve(n);
  memcpy(q, p, old < n ? old : n);
  release(p, old);
  return q;
}

static void install(void) { mp_set_memory_functions(allocate, reallocate, release); }

bool vp_memory_begin(vp_memory *m) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, install);
  *m = (vp_memory){.base = malloc(RESERVE)};
  current = m->base ? m : NULL;
  return m->base != NULL;
}

void vp_memory_end(vp_memory *m) {
  mpfr_free_cache(); /* some of it may lie in the reserve */
  current = NULL;
  free(m->base);
}
#endif
