/* Tensors of a graph that lie in memory row by row. Captures tell shapes, not strides: an operator
 * that reads memory as such (as_strided) has a meaning where these follow from the graph. Views in
 * another order, and all that is computed elementwise of them, do not lie so. */
#include <string.h>

#include "rules/operators.h"
#include "rules/rules.h"

bool rule_reads_memory(const rule_term *call) {
  return call->kind == RULE_OP && rule_operator_of(call->u.s)->reads_memory;
}

static bool operands_dense(const rule_term *t, const bool *dense) {
  if (t->kind == RULE_VAR) return dense[t->u.i];
  for (uint32_t i = 0; i < t->n; i++)
    if (!operands_dense(t->child[i], dense)) return false;
  return true;
}

static bool names_a_format(const rule_term *t) {
  if (t->kind == RULE_STRING && strstr(t->u.s, "channels_last")) return true;
  for (uint32_t i = 0; i < t->n; i++)
    if (names_a_format(t->child[i])) return true;
  return false;
}

bool rule_gives_dense(const rule_term *call, const bool *dense) {
  const rule_operator *o = rule_operator_of(call->u.s);
  if (names_a_format(call)) return false;
  return o->dense || (!o->strided && operands_dense(call, dense));
}
