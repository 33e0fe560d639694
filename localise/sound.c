/* Steps of a region that are right all the same: other graphs have none like them, and their
 * readers outside of the region are right. */
#include "localise/alignment.h"
#include "rules/operators.h"
#include "synth/joint/joint.h"

#include <stdlib.h>

static iso_code nomem(iso_error *err) { return iso_fail(err, ISO_NOMEM, "out of memory"); }

static void mark_read(const parting *p, int side, const rule_term *t, bool *any) {
  if (t->kind == RULE_VAR && lo_in_region(p, side, (uint32_t)t->u.i) &&
      !p->s->rec[p->s->map[side][t->u.i].i].konst && p->s->ranks.part[side][t->u.i] != PART_WRONG &&
      p->s->graph[side]->node[t->u.i].kind == SYNTH_OP)
    p->sound[side][t->u.i] = *any = true;
  for (uint32_t k = 0; k < t->n; k++) mark_read(p, side, t->child[k], any);
}

/* Nodes outside of the region that lead, by steps outside of it, to numbers that are right. Owns:
 * malloc'ed; NULL: no memory. */
static bool *leads_right(const parting *p, int side) {
  const synth_graph *g = p->s->graph[side];
  bool *right = calloc(g->n_nodes + 1, 1);
  for (uint32_t i = (uint32_t)g->n_nodes; right && i-- > 0;) {
    const synth_node *n = &g->node[i];
    if (n->kind != SYNTH_OP || p->s->map[side][i].i == EG_NONE || lo_in_region(p, side, i)) {
      right[i] = false;
      continue;
    }
    right[i] =
        right[i] || (n->n_outputs == 1 && rule_dtype_is_float(n->dtype) && lo_matched(p, side, i));
    if (right[i]) st_term_mark(n->call, right);
  }
  return right;
}

/* Marks integers and decisions that node `n` reads directly, whether or not its result is right:
 * rows of a table are all looked up. */
static void mark_decided(const parting *p, int side, const synth_node *n, bool *any) {
  const uint32_t table = rule_operator_of(n->op)->table;
  for (uint32_t k = 0; k < n->call->n; k++) {
    const rule_term *t = n->call->child[k];
    if (t->kind != RULE_VAR || (table ? k != table : lo_takes_part(n->op))) continue;
    if (!rule_dtype_is_float(p->s->graph[side]->node[t->u.i].dtype)) mark_read(p, side, t, any);
  }
}

/* Steps amid operators that both sides have, which a faulty operator elsewhere reads: their readers
 * outside of the region are right. A part may be right where the whole is not, and so may a
 * decision. A rank decides by steps of its own which ids are its own, and reads the outcome in
 * several places: if it is right in one, it is no fault in another. */
iso_code lo_find_sound(const parting *p, int side, bool *any, iso_error *err) {
  const synth_graph *g = p->s->graph[side];
  bool *right = NULL;
  *any = false;
  if (p->s->ranks.n_peers && !(right = leads_right(p, side))) return nomem(err);
  for (uint32_t i = 0; i < g->n_nodes; i++) {
    const synth_node *n = &g->node[i];
    if (n->kind != SYNTH_OP || p->s->map[side][i].i == EG_NONE || lo_in_region(p, side, i))
      continue;
    if (right && right[i]) mark_decided(p, side, n, any);
    if (!lo_takes_part(n->op) && n->n_outputs == 1 && rule_dtype_is_float(n->dtype))
      mark_read(p, side, n->call, any);
  }
  free(right);
  return ISO_OK;
}
