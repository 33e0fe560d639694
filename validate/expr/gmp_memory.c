/* Memory for GMP and MPFR: see gmp_memory.h. A jump out of the middle of one of their functions
 * would leave their caches half written; hence the reserve. */
#include "validate/expr/gmp_memory.h"

#include <gmp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RESERVE = 8 << 20, ALIGN = 16 };

static _Thread_local gmp_memory *current;

/* The reserve that contains `p`; NULL: it is the system's. */
static gmp_memory *reserve_of(const void *p) {
  for (gmp_memory *m = current; m; m = m->outer)
    if ((const char *)p >= m->base && (const char *)p < m->base + RESERVE) return m;
  return NULL;
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

static bool last(const gmp_memory *m, const void *p, size_t n) {
  return (const char *)p + rounded(n) == m->base + m->used;
}

static void release(void *p, size_t n) {
  gmp_memory *m = reserve_of(p);
  if (!m) free(p);
  else if (last(m, p, n)) m->used -= rounded(n);
}

static void *reallocate(void *p, size_t old, size_t n) {
  gmp_memory *m = reserve_of(p);
  const size_t at = m ? (size_t)((char *)p - m->base) : 0;
  if (!m) {
    void *q = realloc(p, n ? n : 1);
    if (q) return q;
  } else if (last(m, p, old) && n <= RESERVE && rounded(n) <= RESERVE - at) {
    m->used = at + rounded(n);
    return p;
  }
  void *q = from_reserve(n);
  memcpy(q, p, old < n ? old : n);
  release(p, old);
  return q;
}

static void install(void) { mp_set_memory_functions(allocate, reallocate, release); }

bool gmp_memory_begin(gmp_memory *m) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, install);
  *m = (gmp_memory){.base = malloc(RESERVE), .outer = current};
  if (m->base) current = m;
  return m->base != NULL;
}

void gmp_memory_end(gmp_memory *m) {
  current = m->outer;
  free(m->base);
}
