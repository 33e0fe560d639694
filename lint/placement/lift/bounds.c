/* Numbers of a rank's own rows.
 *
 * A rank that has some rows of a table numbers them from 0, and asks whether a row is among them
 * (`row < 0 | row >= rows`), or clamps it there; or it fills a tensor with how many rows it has, to
 * add these up. One rank alone has all rows. The number alone does not tell, so that this is one of
 * two readings. */
#include <math.h>

#include "lint/placement/lift/variants.h"
#include "rules/operators.h"

/* Whether `n` is a leaf's size along some neighbouring dimensions on a rank, and `*found` or
 * another number that of the whole leaf. */
static bool sizes_of(const rule_shape *own, const rule_shape *all, int64_t n, int64_t *found) {
  for (uint32_t i = 0; own->rank == all->rank && i < own->rank; i++) {
    int64_t a = 1, b = 1;
    for (uint32_t k = i; k < own->rank && a <= n; k++) {
      a *= own->dim[k];
      b *= all->dim[k];
      if (a != n || b == n) continue;
      if (*found && *found != b) return false;
      *found = b;
    }
  }
  return true;
}

/* The whole size of a dimension that is `local` on each rank; 0: there is none, or several. */
static int64_t whole_size(const plc *x, int64_t local) {
  int64_t found = 0;
  for (size_t i = 0; i < x->n_tuples; i++) {
    const plc_tuple *t = x->tuple[i];
    if (!t->leaf || t->state != PLC_PLACED || !t->whole || !t->whole[0]) continue;
    const rule_shape *own = &plc_node(x, t->node[0])->output[0].shape;
    if (!sizes_of(own, &t->whole[0]->shape, local, &found)) return 0;
  }
  return found;
}

int64_t plc_whole_bound(const plc *x, int64_t v) {
  const int64_t rows = v > 0 ? whole_size(x, v) : 0;
  const int64_t last = v > 0 && !rows ? whole_size(x, v + 1) : 0;
  return rows ? rows : last ? last - 1 : v;
}

double plc_whole_number(const plc *x, double v) {
  const int64_t n = v > 0 && v < INT32_MAX && v == floor(v) ? whole_size(x, (int64_t)v) : 0;
  return n ? (double)n : v;
}

static bool has_bound(const plc *x, const rule_term *t, bool filled) {
  if (filled && t->kind == RULE_FLOAT) return plc_whole_number(x, t->u.f) != t->u.f;
  if (!filled && t->kind == RULE_INT) return plc_whole_bound(x, t->u.i) != t->u.i;
  for (uint32_t i = 0; i < t->n; i++)
    if (has_bound(x, t->child[i], filled)) return true;
  return false;
}

bool plc_is_bounded(const plc *x, const plc_tuple *t) {
  if (t->leaf || t->collective || t->mixed || t->differs || t->node[0] == PLC_NONE) return false;
  const rule_term *c = plc_node(x, t->node[0])->call;
  const rule_operator *op = rule_operator_of(c->u.s);
  if (t->n_args == 0) return op->fills && has_bound(x, c, true);
  const plc_tuple *o = x->tuple[t->arg[0]];
  if (o->n_out != 1 || !o->whole || !o->whole[0]) return false;
  if (!rule_dtype_is_int(o->whole[0]->dtype)) return false;
  const rule_choice how = op->choice;
  return (how == RULE_CHOICE_COMPARE || how == RULE_CHOICE_BOUND || how == RULE_CHOICE_REMAINDER) &&
         has_bound(x, c, false);
}
