/* Operators that compute in a narrower dtype than float64, as a user's kernel for GPUs does. Their
 * results are compared within `tolerance` (relative to the largest number of a row), and so is
 * every tensor that depends on them: rule_tensor.coarse carries it. C and C++: the shim resolves no
 * symbol of the program. */
#ifndef VALIDATE_NARROW_KERNELS_H
#define VALIDATE_NARROW_KERNELS_H

#include "rules/tensor.h"

/* 0: float64. float32: some hundred times its last place, since sums add up the rounding of each
 * step (two ways of writing one block differ by 5e-7, an eps of another size by 6e-6). */
static inline double narrow_tolerance(rule_dtype d) {
  switch (d) {
  case RULE_F32:
  case RULE_C64: return 1e-5;
  case RULE_F16: return 1e-2;
  case RULE_BF16: return 5e-2;
  case RULE_F8E4M3FN:
  case RULE_F8E5M2: return 0.5;
  default: return 0;
  }
}

#endif
