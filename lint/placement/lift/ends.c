/* Facts that only the program's text shows. Places that it counts from the end: the last token of a
 * shard is not the last of the whole. Sizes of 1: they are seldom a rank's part of a larger
 * size. */
#include <string.h>

#include "lint/placement/placement_int.h"
#include "rules/operators.h"

/* The position of an argument of that name; SIZE_MAX: there is none. */
static size_t find(const rule_schema *s, const char *name) {
  for (size_t k = 0; k < s->n_args; k++)
    if (strcmp(s->arg[k].name, name) == 0) return k;
  return SIZE_MAX;
}

const rule_term *plc_from_end(plc *x, const plc_tuple *t, const rule_term *call, iso_arena *a) {
  uint32_t r = 0;
  while (r + 1 < x->mesh.n && t->node[r] == PLC_NONE) r++;
  const cap_node *n = t->node[r] == PLC_NONE ? NULL : plc_node(x, t->node[r]);
  if (!call || !n || call->kind != RULE_OP || !(n->from_end || n->to_end)) return call;
  const plc_tuple *of = t->n_args ? x->tuple[t->arg[0]] : NULL;
  const rule_schema *s = rule_schemas_find(x->schemas, call->u.s);
  if (!s || !of || of->node[r] == PLC_NONE || of->n_out != 1 || !of->whole || !of->whole[0])
    return call;
  const size_t d = find(s, "dim");
  if (d >= call->n || call->child[d]->kind != RULE_INT) return call;
  const int64_t dim = call->child[d]->u.i;
  const rule_shape *own = &plc_node(x, of->node[r])->output[0].shape, *all = &of->whole[0]->shape;
  if (dim < 0 || dim >= own->rank || own->rank != all->rank) return call;
  const rule_term **child = iso_arena_alloc(a, call->n * sizeof *child);
  if (!plc_need(x, child)) return NULL;
  memcpy(child, call->child, call->n * sizeof *child);
  const size_t e = find(s, "end"); /* left out, it is the end */
  const bool open =
      e < call->n && n->call->child[e]->kind == RULE_INT && n->call->child[e]->u.i == own->dim[dim];
  const char *const name[] = {n->from_end ? "index" : "", n->from_end ? "start" : "",
                              n->to_end || open ? "end" : ""};
  for (size_t i = 0; i < 3; i++) {
    const size_t k = find(s, name[i]);
    if (k >= call->n || n->call->child[k]->kind != RULE_INT) continue;
    child[k] = rule_int(a, n->call->child[k]->u.i + all->dim[dim] - own->dim[dim]);
    if (!plc_need(x, child[k])) return NULL;
  }
  return rule_op(a, call->u.s, child, call->n);
}

/* Whether the literal at `slot` of a call is 1. */
static bool is_one(const rule_term *t, uint32_t slot, uint32_t *at) {
  if (t->kind == RULE_INT || t->kind == RULE_FLOAT)
    return (*at)++ == slot && t->kind == RULE_INT && t->u.i == 1;
  for (uint32_t i = 0; i < t->n; i++)
    if (is_one(t->child[i], slot, at)) return true;
  return false;
}

bool plc_grew_one(const plc *x, const plc_tuple *t, uint32_t depth) {
  uint32_t r = 0;
  while (r + 1 < x->mesh.n && t->node[r] == PLC_NONE) r++;
  const rule_term *c = t->node[r] == PLC_NONE || t->leaf ? NULL : plc_node(x, t->node[r])->call;
  for (uint32_t i = 0; c && t->state == PLC_PLACED && i < t->variant.n; i++) {
    uint32_t at = 0;
    if (t->variant.by[i] > 1 && is_one(c, t->variant.slot[i], &at)) return true;
  }
  for (uint32_t i = 0; i < t->n_args && i < 3 && depth; i++)
    if (plc_grew_one(x, x->tuple[t->arg[i]], depth - 1)) return true;
  return false;
}
