/* Operators that tell what is no number from numbers. Over the reals they do nothing, so that no
 * proof sees them. */
#include <math.h>

#include "rules/operators.h"
#include "rules/rules.h"

/* A comparison of something with itself, or with an infinity. */
static bool compares_nothing(const rule_term *call) {
  if (call->n < 2 || rule_operator_of(call->u.s)->choice != RULE_CHOICE_COMPARE) return false;
  const rule_term *a = call->child[0], *b = call->child[1];
  return (b->kind == RULE_FLOAT && !isfinite(b->u.f)) ||
         (a->kind == RULE_VAR && rule_term_eq(a, b));
}

bool rule_sees_undefined(const rule_term *call) {
  return call->kind == RULE_OP &&
         (rule_operator_of(call->u.s)->sees_undefined || compares_nothing(call));
}
