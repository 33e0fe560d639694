/* What some ranks do, and others leave out. */
#include "lint/placement/placement_int.h"
#include "rules/operators.h"

enum { MOST_STEPS = 8 };

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
