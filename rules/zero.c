/* Where 0 and -0, which are one real number, are told apart: by what reads a sign, and at the pole
 * of a quotient. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "rules/rules_int.h"

bool rule_reads_zero_sign(const rule_term *call) {
  static const char *const reads[] = {"signbit",   "copysign", "atan2", "arctan2",
                                      "nextafter", "angle",    "frexp", NULL};
  return call->kind == RULE_OP &&
         (rule_is_one_of(call->u.s, reads) || strcmp(call->u.s, "aten::view.dtype") == 0);
}

static bool has_pole(const rule_term *call) {
  static const char *const poles[] = {"reciprocal",  "rsqrt", "div", "divide",
                                      "true_divide", "pow",   NULL};
  return rule_is_one_of(call->u.s, poles);
}

/* What has one result for both. */
static bool forgets(const rule_term *call) {
  static const char *const ops[] = {
      "add",      "sub",        "rsub",       "sum",         "mean",
      "mm",       "matmul",     "linear",     "addmm",       "bmm",
      "baddbmm",  "einsum",     "softmax",    "log_softmax", "layer_norm",
      "rms_norm", "group_norm", "batch_norm", "exp",         "cos",
      "sigmoid",  "abs",        "square",     "eq",          "ne",
      "lt",       "le",         "gt",         "ge",          "scaled_dot_product_attention",
      "conv1d",   "conv2d",     "conv3d",     NULL};
  return rule_is_one_of(call->u.s, ops);
}

static bool uses(const rule_term *t, const bool *flag) {
  if (t->kind == RULE_VAR) return flag[t->u.i];
  for (uint32_t i = 0; i < t->n; i++)
    if (uses(t->child[i], flag)) return true;
  return false;
}

bool rule_zero_sign_matters(const rule_term *call, bool *carries, size_t node) {
  if (call == NULL || !uses(call, carries)) return false;
  if (call->kind != RULE_OP || rule_reads_zero_sign(call) || has_pole(call) ||
      strncmp(call->u.s, "aten::", 6) != 0) {
    if (call->kind != RULE_OP || strcmp(call->u.s, "getitem") != 0) return true;
  }
  carries[node] = !forgets(call);
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
