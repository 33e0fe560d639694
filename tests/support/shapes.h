/* A shape from its sizes: SHAPE(2, 3). */
#ifndef TESTS_SUPPORT_SHAPES_H
#define TESTS_SUPPORT_SHAPES_H

#include "rules/tensor.h"

static inline rule_shape shape_of(uint32_t rank, const int64_t *dim) {
  rule_shape s = {.rank = rank};
  for (uint32_t d = 0; d < rank; d++) s.dim[d] = dim[d];
  return s;
}
#define SHAPE(...) \
  shape_of((uint32_t)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (int64_t[]){__VA_ARGS__})

#endif
