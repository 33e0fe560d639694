/* Growing arrays: a pointer, a capacity, and this one function. */
#ifndef EGRAPH_BASE_VEC_H
#define EGRAPH_BASE_VEC_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Make room for `need` elements of `elem` bytes in the malloc'ed array `*p` of capacity `*cap`;
 * new room is zeroed. Returns: false when there is no memory, and then nothing changed.
 * Cost: amortized O(1) per element (the capacity doubles). */
bool iso_grow_bytes(void **p, size_t *cap, size_t need, size_t elem);

/* `p` is a variable of type T*, `cap` a size_t variable. */
#define iso_grow(p, cap, need) iso_grow_bytes((void **)&(p), &(cap), (need), sizeof *(p))

#ifdef __cplusplus
}
#endif
#endif
