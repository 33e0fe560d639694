/* Operators that give their operand back: `contiguous`, `alias`, a cast to the dtype that is there
 * or between floating ones. A model captured at its full size may have some that its small one
 * lacks (tensors without memory are laid out otherwise, and weights are in another dtype), so that
 * nothing was learned of them. Each becomes a rule, which is decided as every other one is. */
#include "synth/unrun/unrun.h"
#include "rules/operators.h"

#include <string.h>

static iso_code nomem(iso_error *err) { return iso_fail(err, ISO_NOMEM, "out of memory"); }

/* Whether the node may equal its only operand, by the table's facts of its operator. */
static bool may_be_none(const synth_graph *g, const synth_node *n) {
  const rule_term *t = n->call;
  if (n->kind != SYNTH_OP || n->n_outputs != 1 || t->kind != RULE_OP || t->n == 0 ||
      t->child[0]->kind != RULE_VAR)
    return false;
  for (uint32_t k = 1; k < t->n; k++)
    if (t->child[k]->kind == RULE_VAR || t->child[k]->n > 0) return false;
  const rule_operator *o = rule_operator_of(t->u.s);
  const rule_dtype from = g->node[t->child[0]->u.i].dtype;
  return o->identity || (o->cast && (from == n->dtype ||
                                     (rule_dtype_is_float(from) && rule_dtype_is_float(n->dtype))));
}

static const char *title(const char *op, iso_arena *a) {
  const char *colons = strstr(op, "::");
  const char *base = colons ? colons + 2 : op;
  return iso_arena_printf(a, "id-%.*s", (int)strcspn(base, "."), base);
}

static iso_code add_one(const rule_term *call, rule_dtype dtype, rule_set *set, iso_arena *a,
                        iso_error *err) {
  rule_variable x = {.name = "x", .any_shape = true};
  rule_variable_set_dtype(&x, dtype);
  const rule_term **child = iso_arena_alloc(a, call->n * sizeof *child);
  if (!child) return nomem(err);
  memcpy(child, call->child, call->n * sizeof *child);
  const rule_term *whole = child[0] = rule_var(a, 0);
  const rule r = {.name = title(call->u.s, a),
                  .n_vars = 1,
                  .var = &x,
                  .lhs = whole,
                  .rhs = rule_op(a, call->u.s, child, call->n)};
  if (!r.name || !r.lhs || !r.rhs) return nomem(err);
  return rule_set_add(set, &r, NULL, NULL, err);
}

iso_code st_add_identities(const synth_graph *g, rule_set *set, iso_arena *a, iso_error *err) {
  iso_code c = ISO_OK;
  for (size_t i = 0; i < g->n_nodes && !c; i++) {
    const synth_node *n = &g->node[i];
    if (may_be_none(g, n)) c = add_one(n->call, g->node[n->call->child[0]->u.i].dtype, set, a, err);
  }
  return c;
}
