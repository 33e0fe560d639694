/* Tensors of a graph that are row-major in memory. Captures tell shapes, not strides: an operator
 * that reads memory as such (as_strided) has a meaning where these follow from the graph. Views in
 * another order, and elementwise results of them, are not; nor are results that a kernel writes in
 * an order of its own, as those of linear algebra do. Of an operator that the table does not list
 * nothing is known. */
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

bool rule_gives_dense(const rule_term *call, const bool *dense) {
  const rule_operator *o = rule_operator_of(call->u.s);
  if (rule_is_getitem(call->u.s)) return operands_dense(call, dense);
  if (!*o->name) return false;
  return o->dense || (!o->strided && operands_dense(call, dense));
}
