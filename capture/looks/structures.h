/* Structures of zeros and ones over two dimensions: what attention sees, or segments. */
#ifndef CAPTURE_LOOKS_STRUCTURES_H
#define CAPTURE_LOOKS_STRUCTURES_H

#include <stdbool.h>
#include <stdint.h>

typedef struct looks_part { /* `q` rows and `n` columns of a block */
  const char *at;
  int64_t stride, q, n;
} looks_part;

static inline char looks_bit(looks_part p, int64_t i, int64_t j) { return p.at[i * p.stride + j]; }
static inline bool looks_square(looks_part p) { return p.q == p.n && p.n >= 3; }
bool looks_symmetric(looks_part p);

/* How much speaks for a structure: in bits, how unlikely it is that rows which mean nothing of the
 * kind look so. 0: there is none. Small batches look like triangles and steps by chance. `batch`:
 * rows may be those of a batch, whose padding leaves no borders. */
double looks_structure(looks_part p, bool batch);
/* Whether it is one that sizes and a width tell: causal, a window, a prefix, chunks. Others,
 * segments of a batch or a tree, are data. Requires: there is one. */
bool looks_regular(looks_part p, bool batch);

#endif
