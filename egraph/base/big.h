/* Arrays that grow far, without being copied where the system can move them. */
#ifndef EGRAPH_BASE_BIG_H
#define EGRAPH_BASE_BIG_H

#include <stdbool.h>
#include <stddef.h>

/* An array of EGI_LARGE bytes or more begins at a cache line. */
enum { EGI_LARGE = 1 << 17, EGI_LINE = 64 };

/* As iso_grow, except that new room is not zeroed, and only the first `used` elements stay.
 * `full`: most of the room will be used, and may be touched. */
bool egi_big_grow(void **p, size_t *cap, size_t used, size_t need, size_t elem, bool full);
#define egi_grow_used(p, cap, used, need, full) \
  ((need) <= (cap) || egi_big_grow((void **)&(p), &(cap), (used), (need), sizeof *(p), (full)))
#define egi_grow(p, cap, need) egi_grow_used(p, cap, cap, need, true)
void egi_big_free(void *p, size_t bytes); /* all its room */
#define egi_grown_free(p, cap) egi_big_free((p), (cap) * sizeof *(p))

#endif
