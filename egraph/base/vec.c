#include "egraph/base/vec.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

bool iso_grow_bytes(void **p, size_t *cap, size_t need, size_t elem) {
  if (need <= *cap) return true;
  size_t n = *cap ? *cap : 8;
  while (n < need) {
    if (n > SIZE_MAX / 2) return false;
    n *= 2;
  }
  if (n > SIZE_MAX / elem) return false;
  void *q = realloc(*p, n * elem);
  if (!q) return false;
  memset((char *)q + *cap * elem, 0, (n - *cap) * elem);
  *p = q;
  *cap = n;
  return true;
}
