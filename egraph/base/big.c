/* Arrays that grow far. Small ones come from malloc; large ones are mappings of their own where the
 * system has mremap: growing then moves no byte and never holds the old and the new, new room takes
 * no memory before it is used, and freed memory goes back at once. Under AddressSanitizer all come
 * from malloc, which it watches. */
#include "egraph/base/big.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* The unused rest is not copied: that would touch it. */
static void *grow_small(void *p, size_t old, size_t used, size_t new) {
  if (used > old / 2 || !old) return realloc(p, new);
  void *q = malloc(new);
  if (!q) return NULL;
  memcpy(q, p, used);
  free(p);
  return q;
}

#if defined(__linux__) && !defined(__SANITIZE_ADDRESS__)
#include <sys/mman.h>

/* From PAGES_FROM bytes on huge pages are asked for: fewer faults, and fewer TLB misses. */
enum { LARGE = 1 << 17, PAGES_FROM = 1 << 23, FILLED_FROM = 1 << 20 };

static void *resize(void *p, size_t old, size_t used, size_t new) {
  if (new < LARGE) return grow_small(p, old, used, new);
  void *q = old < LARGE
                ? mmap(NULL, new, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
                : mremap(p, old, new, MREMAP_MAYMOVE);
  if (q == MAP_FAILED) return NULL;
  if (old < LARGE && old) {
    memcpy(q, p, used);
    free(p);
  }
  if (new >= PAGES_FROM) (void)madvise(q, new, MADV_HUGEPAGE);
  return q;
}

void egi_big_filled(void *p, size_t bytes) {
  if (bytes >= FILLED_FROM) (void)madvise(p, bytes, MADV_HUGEPAGE);
}

void egi_big_free(void *p, size_t bytes) {
  if (bytes >= LARGE) (void)munmap(p, bytes);
  else free(p);
}
#else
static void *resize(void *p, size_t old, size_t used, size_t new) {
  return grow_small(p, old, used, new);
}

void egi_big_filled(void *p, size_t bytes) {
  (void)p;
  (void)bytes;
}

void egi_big_free(void *p, size_t bytes) {
  (void)bytes;
  free(p);
}
#endif

/* Small arrays grow by four: unused room is never touched, but a move touches all that is used. */
enum { FIRST = 512, SMALL = 1 << 16 };

bool egi_big_grow(void **p, size_t *cap, size_t used, size_t need, size_t elem) {
  if (need <= *cap) return true;
  size_t n = *cap ? *cap : elem < FIRST / 16 ? FIRST / elem : 16;
  while (n < need) {
    if (n > SIZE_MAX / 4 / elem) return false;
    n *= n * elem < SMALL ? 4 : 2;
  }
  void *q = resize(*p, *cap * elem, used * elem, n * elem);
  if (!q) return false;
  *p = q;
  *cap = n;
  return true;
}
