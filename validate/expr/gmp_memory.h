/* Private to validate/: memory for GMP and MPFR, whose allocators must not return NULL.
 *
 * So each piece of work takes a reserve before it begins, and may fail there. While it runs, an
 * allocation that the system refuses is served from the reserve, and `needed` is set: the work ends
 * soon after, frees everything, and reports that there was no memory. The reserve is larger than
 * any one step needs: tests/validate/test_precise_oom.c lets every allocation fail from some point
 * on. */
#ifndef VALIDATE_GMP_MEMORY_H
#define VALIDATE_GMP_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

typedef struct gmp_memory { /* of one thread */
  char *base;
  size_t used;
  bool needed;              /* the system had none */
  struct gmp_memory *outer; /* pieces of work may be nested */
} gmp_memory;

bool gmp_memory_begin(gmp_memory *m); /* false: no memory */
/* Requires: no number that was made since gmp_memory_begin is alive, MPFR's caches included. */
void gmp_memory_end(gmp_memory *m);

#endif
