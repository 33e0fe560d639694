/* Bounds of a rank's own rows.
 *
 * A rank that has some rows of a table numbers them from 0, and asks whether a row is among them
 * (`row < 0 | row >= rows`), or clamps it there. One rank alone has all rows: its bound is that of
 * the whole table. The number alone does not tell, so that this is one of two readings. */
#include "lint/placement/lift/variants.h"
#include "rules/operators.h"

/* The whole size of a dimension that is `local` on each rank; 0: there is none, or several. */
static int64_t whole_size(const plc *x, int64_t local) {
  int64_t found = 0;
  for (size_t i = 0; i < x->n_tuples; i++) {
    const plc_tuple *t = x->tuple[i];
    if (!t->leaf || t->state != PLC_PLACED || !t->whole || !t->whole[0]) continue;
    const rule_shape *own = &plc_node(x, t->node[0])->output[0].shape, *all = &t->whole[0]->shape;
    for (uint32_t d = 0; own->rank == all->rank && d < own->rank; d++) {
      if (own->dim[d] != local || all->dim[d] == local) continue;
      if (found && found != all->dim[d]) return 0;
      found = all->dim[d];
    }
  }
  return found;
}

int64_t plc_whole_bound(const plc *x, int64_t v) {
  const int64_t rows = v > 0 ? whole_size(x, v) : 0;
  const int64_t last = v > 0 && !rows ? whole_size(x, v + 1) : 0;
  return rows ? rows : last ? last - 1 : v;
}

static bool has_bound(const plc *x, const rule_term *t) {
  if (t->kind == RULE_INT) return plc_whole_bound(x, t->u.i) != t->u.i;
  for (uint32_t i = 0; i < t->n; i++)
    if (has_bound(x, t->child[i])) return true;
  return false;
}

bool plc_is_bounded(const plc *x, const plc_tuple *t) {
  if (t->leaf || t->collective || t->mixed || t->n_args == 0 || t->differs) return false;
  const plc_tuple *o = x->tuple[t->arg[0]];
  if (t->node[0] == PLC_NONE || o->n_out != 1 || !o->whole || !o->whole[0]) return false;
  if (!rule_dtype_is_int(o->whole[0]->dtype)) return false;
  const rule_term *c = plc_node(x, t->node[0])->call;
  const rule_choice how = rule_operator_of(c->u.s)->choice;
  return (how == RULE_CHOICE_COMPARE || how == RULE_CHOICE_BOUND || how == RULE_CHOICE_REMAINDER) &&
         has_bound(x, c);
}
