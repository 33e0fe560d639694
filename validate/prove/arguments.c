/* Which numbers of a call are sizes, floats, or kept in few bits (generalise.h). */
#include <string.h>

#include "validate/prove/generalise.h"

bool sc_counts(const rule_arg *arg) {
  static const char *const places[] = {"index",  "diagonal", "offset",  "correction", "step",
                                       "stride", "dilation", "padding", "groups"};
  if (arg->type != RULE_ARG_INT && arg->type != RULE_ARG_INTS) return false;
  if (rule_arg_is_dim(arg)) return false;
  for (size_t i = 0; i < sizeof places / sizeof *places; i++)
    if (!strcmp(arg->name, places[i])) return false;
  return true;
}

bool sc_takes_floats(const rule_arg *arg) {
  return arg->type == RULE_ARG_FLOAT || arg->type == RULE_ARG_SCALAR ||
         arg->type == RULE_ARG_TENSOR;
}

int64_t sc_narrow_limit(const rule_term *t) {
  int64_t least = 0;
  if (t->kind == RULE_DTYPE && rule_dtype_is_int((rule_dtype)t->u.i) && t->u.i != RULE_I64)
    least = (int64_t)1 << (8 * rule_dtype_size((rule_dtype)t->u.i) - 1);
  for (uint32_t k = 0; k < t->n; k++) {
    const int64_t one = sc_narrow_limit(t->child[k]);
    if (one && (!least || one < least)) least = one;
  }
  return least;
}
