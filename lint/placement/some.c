/* What some ranks do, and others leave out; and numbers of which it is not known what one rank
 * alone would have. */
#include "lint/placement/placement_int.h"
#include "rules/operators.h"

enum { MOST_STEPS = 8 };

/* Whether integers were computed, and not only moved, from those of leaves. */
static bool is_computed(const plc *x, const plc_tuple *t, uint32_t depth) {
  if (t->leaf || depth == MOST_STEPS) return false;
  uint32_t rank = 0;
  while (rank + 1 < x->mesh.n && t->node[rank] == PLC_NONE) rank++;
  if (t->node[rank] == PLC_NONE) return false;
  const rule_operator *o = rule_operator_of(plc_node(x, t->node[rank])->op);
  const bool moved = t->collective || t->mixed || o->rearranges || o->part;
  if (!moved) return t->slots > 0 || t->differs;
  for (uint32_t i = 0; i < t->n_args; i++)
    if (is_computed(x, x->tuple[t->arg[i]], depth + 1)) return true;
  return false;
}

bool plc_reads_numbers(const plc *x, const plc_tuple *t) {
  for (uint32_t i = 0; i < t->n_args; i++) {
    const plc_tuple *o = x->tuple[t->arg[i]];
    const rule_tensor *v = o->n_out == 1 && o->whole ? o->whole[0] : NULL;
    if (v && rule_dtype_is_int(v->dtype) && is_computed(x, o, 0)) return true;
  }
  return false;
}

/* Whether `u` is `t`, or made of it within a few steps. */
static bool is_made_of(const plc *x, const plc_tuple *u, const plc_tuple *t, uint32_t depth) {
  if (u == t) return true;
  for (uint32_t i = 0; i < u->n_args && depth < MOST_STEPS && !u->collective; i++)
    if (is_made_of(x, x->tuple[u->arg[i]], t, depth + 1)) return true;
  return false;
}

/* Whether ranks that lack `t` go on with `rest` where the others go on with what it led to. */
static bool is_skipped(const plc *x, const plc_tuple *t, const plc_tuple *rest) {
  for (size_t i = 0; i < x->n_tuples; i++) {
    const plc_tuple *m = x->tuple[i];
    bool skips = m->mixed;
    for (uint32_t r = 0; r < x->mesh.n && skips; r++)
      skips = m->node[r] != PLC_NONE &&
              (t->node[r] == PLC_NONE ? m->node[r] == rest->node[r]
                                      : is_made_of(x, x->tuple[x->step_of[m->node[r]]], t, 0));
    if (skips) return true;
  }
  return false;
}

static bool is_cut(const plc *x, const plc_tuple *t) {
  return plc_has(x, &t->place[0], PLC_P) || plc_has(x, &t->place[0], PLC_S);
}

const plc_tuple *plc_lost_parts(const plc *x, const plc_tuple *t) {
  uint32_t rank = 0;
  if (t->n_args != 2 || t->state != PLC_VARYING || t->unsure || t->mixed) return NULL;
  while (t->node[rank] == PLC_NONE) rank++;
  const rule_term *call = plc_node(x, t->node[rank])->call;
  if (rule_operator_of(call->u.s)->arithmetic != RULE_ARITHMETIC_ADD) return NULL;
  for (uint32_t k = 0; k < 2; k++) {
    const plc_tuple *o = x->tuple[t->arg[k]], *rest = x->tuple[t->arg[1 - k]];
    if (o->state == PLC_PLACED && o->n_out == 1 && rest->state == PLC_PLACED && is_cut(x, o) &&
        is_skipped(x, t, rest))
      return o;
  }
  return NULL;
}

void plc_blame_lost(plc *x, const plc_tuple *t, const plc_tuple *lost) {
  plc_found(x, LINT_BAD_PLACEMENT, t, "do this on every rank",
            "%s adds %s, which is %s, on some ranks alone: what the others have of it is lost",
            plc_say(x, t), plc_say(x, lost), plc_print(x, &lost->place[0], x->keep));
}
