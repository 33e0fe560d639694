/* Calls that leave the order of their results open (topk that need not sort). What depends on that
 * order is followed; where no output does, the call is read as one that sorts: two programs of
 * which one sorts, or each of which leaves it open, are then one in this. */
#include <stdlib.h>
#include <string.h>

#include "capture/orders/orders.h"
#include "rules/operators.h"

/* The place of the argument that says false to sorting; 0: there is none. */
static uint32_t unsorted(const cap_graph *g, const rule_term *call) {
  const rule_operator *o = rule_operator_of(call->u.s);
  const rule_schema *s =
      o->choice == RULE_CHOICE_ORDER && o->axis ? rule_schemas_find(g->schemas, call->u.s) : NULL;
  const size_t k = s ? cap_find_arg(s, "sorted") : CAP_NO_INDEX;
  const bool open = k < call->n && call->child[k]->kind == RULE_BOOLEAN && call->child[k]->u.i == 0;
  return open ? (uint32_t)k : 0;
}

static bool reads_permuted(const rule_term *t, const along *node) {
  if (t->kind == RULE_VAR) return node[t->u.i].depends;
  for (uint32_t k = 0; k < t->n; k++)
    if (reads_permuted(t->child[k], node)) return true;
  return false;
}

/* Whether an output may depend on the order of the call's results. */
static bool is_seen(const cap_graph *g, uint32_t i, along *node) {
  const rule_term *call = g->node[i].call, *dim = call->child[rule_operator_of(call->u.s)->axis];
  const uint32_t rank = g->node[i].output[0].shape.rank;
  if (dim->kind != RULE_INT || dim->u.i < 0 || dim->u.i >= rank) return true;
  const followed f = {g, rank, (uint32_t)dim->u.i, node};
  memset(node, 0, g->n_nodes * sizeof *node);
  node[i].depends = true;
  for (uint32_t r = 0; r < rank; r++) node[i].at[r] = (uint8_t)r;
  for (uint32_t v = i + 1; v < g->n_nodes; v++)
    if (g->node[v].call && reads_permuted(g->node[v].call, node) && !along_follow(&f, v, &node[v]))
      return true;
  for (size_t k = 0; k < g->n_results; k++)
    if (node[g->result[k].node].depends) return true;
  return false;
}

static const rule_term *that_sorts(iso_arena *a, const rule_term *call, uint32_t at) {
  const rule_term **child = iso_arena_alloc(a, call->n * sizeof *child), *yes = rule_bool(a, true);
  if (!child || !yes) return NULL;
  memcpy(child, call->child, call->n * sizeof *child);
  child[at] = yes;
  return rule_op(a, call->u.s, child, call->n);
}

iso_code cap_sort_unseen(cap_graph *g, iso_error *err) {
  along *node = NULL;
  bool failed = false;
  for (uint32_t i = 0; i < g->n_nodes && !failed; i++) {
    cap_node *v = (cap_node *)(uintptr_t)&g->node[i];
    const uint32_t at = v->call ? unsorted(g, v->call) : 0;
    if (!at) continue;
    if (!node && !(node = calloc(g->n_nodes, sizeof *node))) return cap_no_memory(err);
    if (is_seen(g, i, node)) continue;
    const rule_term *call = that_sorts(&g->arena, v->call, at),
                    *sized = v->sized ? that_sorts(&g->arena, v->sized, at) : NULL;
    failed = !call || (v->sized && !sized);
    if (!failed) v->call = call, v->sized = sized;
  }
  free(node);
  return failed ? cap_no_memory(err) : ISO_OK;
}
