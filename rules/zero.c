/* Where 0 and -0, which are one real number, are told apart: by operators that read a sign, and at
 * the pole of a quotient. */
#include <math.h>
#include <stdlib.h>

#include "rules/operators.h"
#include "rules/rules.h"

bool rule_reads_zero_sign(const rule_term *call) {
  return call->kind == RULE_OP && rule_operator_of(call->u.s)->reads_zero_sign;
}

static bool uses(const rule_term *t, const bool *flag) {
  if (t->kind == RULE_VAR) return flag[t->u.i];
  for (uint32_t i = 0; i < t->n; i++)
    if (uses(t->child[i], flag)) return true;
  return false;
}

static bool all_of(const rule_term *t, const bool *flag) {
  if (t->kind == RULE_VAR) return flag[t->u.i];
  for (uint32_t i = 0; i < t->n; i++)
    if (!all_of(t->child[i], flag)) return false;
  return true;
}

bool rule_zero_sign_matters(const rule_term *call, bool *fixed, bool *carries, size_t node) {
  if (call == NULL) return false;
  fixed[node] = all_of(call, fixed);
  if (!uses(call, carries)) return false;
  if (call->kind != RULE_OP) return true;
  const rule_operator *o = rule_operator_of(call->u.s);
  if (!rule_is_getitem(call->u.s) &&
      (!rule_is_aten(call->u.s) || o->reads_zero_sign || o->makes_complex))
    return true;
  if (o->signed_pole && o->signed_pole <= call->n && uses(call->child[o->signed_pole - 1], carries))
    return true;
  /* A sum of zeros below 0 is one, too. */
  carries[node] |= !o->drops_zero_sign || fixed[node];
  return false;
}

bool rule_tensor_same_numbers(const rule_tensor *a, const rule_tensor *b) {
  if (a->dtype != b->dtype || !rule_dtype_is_float(a->dtype) ||
      !rule_shape_eq(&a->shape, &b->shape))
    return false;
  for (int64_t i = 0; i < a->numel; i++)
    if (!(rule_tensor_get(a, i) == rule_tensor_get(b, i))) return false;
  return true;
}

bool rule_tensor_same_zeros(const rule_tensor *a, const rule_tensor *b) {
  if (!rule_dtype_is_float(a->dtype) || !rule_dtype_is_float(b->dtype) || a->numel != b->numel)
    return true;
  for (int64_t i = 0; i < a->numel; i++) {
    const double x = rule_tensor_get(a, i), y = rule_tensor_get(b, i);
    if (x == 0 && y == 0 && !signbit(x) != !signbit(y)) return false;
  }
  return true;
}
