/* Operators that tell what is no number from numbers. Over the reals they do nothing, so that no
 * proof sees them. */
#include <math.h>
#include <string.h>

#include "rules/rules_int.h"

/* A comparison of something with itself, or with an infinity. */
static bool compares_nothing(const rule_term *call) {
  static const char *const ops[] = {"eq", "ne", "ge", "le", "gt", "lt", NULL};
  if (call->n < 2 || !rule_is_one_of(call->u.s, ops)) return false;
  const rule_term *a = call->child[0], *b = call->child[1];
  return (b->kind == RULE_FLOAT && !isfinite(b->u.f)) ||
         (a->kind == RULE_VAR && rule_term_eq(a, b));
}

bool rule_sees_undefined(const rule_term *call) {
  static const char *const guards[] = {
      "nan_to_num", "isnan",     "isinf",       "isfinite", "isneginf", "isposinf", "nanmean",
      "nansum",     "nanmedian", "nanquantile", "fmax",     "fmin",     NULL};
  return call->kind == RULE_OP && (rule_is_one_of(call->u.s, guards) || compares_nothing(call));
}
