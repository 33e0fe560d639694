/* Literals that compete with values: a fill of -1e6 behind a maximum is minus infinity as long as
 * nothing lies below it. Values are drawn around such a literal, row by row, so that either one
 * wins, and beyond it in each variable alone, so that products come there too. */
#include "validate/branch/meet_int.h"

#include <math.h>

#include "rules/operators.h"
#include "validate/branch/choice_int.h"

static const double little = 4, /* literals up to here are met by chance */
    most = 1e300;               /* beyond, what is added to one overflows */

/* Whether the call weighs numbers against one another: by its operator, or by a word that says so
 * (scatter_reduce by "amin"). */
static bool competes(const rule_term *t) {
  const rule_choice c = rule_operator_of(t->u.s)->choice;
  for (uint32_t i = 0; i < t->n; i++)
    if (t->child[i]->kind == RULE_STRING &&
        rule_operator_of(t->child[i]->u.s)->choice == RULE_CHOICE_EXTREME)
      return true;
  return c == RULE_CHOICE_EXTREME || c == RULE_CHOICE_ORDER || c == RULE_CHOICE_BOUND ||
         c == RULE_CHOICE_WEIGHT;
}

static void collect(const rule_term *t, bool below, double *out, size_t *n) {
  if (below && (t->kind == RULE_FLOAT || t->kind == RULE_INT)) {
    const double v = t->kind == RULE_FLOAT ? t->u.f : (double)t->u.i;
    bool known = !(fabs(v) > little) || !(fabs(v) < most);
    for (size_t i = 0; i < *n; i++) known |= out[i] == v;
    if (!known && *n < VAL_FILLS) out[(*n)++] = v;
  }
  below |= t->kind == RULE_OP && competes(t);
  for (uint32_t i = 0; i < t->n; i++) collect(t->child[i], below, out, n);
}

size_t val_fill_literals(const rule *r, double out[VAL_FILLS]) {
  size_t n = 0;
  collect(r->lhs, false, out, &n);
  collect(r->rhs, false, out, &n);
  return n;
}

/* `row` is one of each row's own, of 0 .. 3. */
static double around(double l, unsigned turn, uint64_t row, double z) {
  const double beyond = l + l * fabs(z);
  switch (turn) {
  case 0: return l + l * z; /* around it */
  case 1: return beyond;    /* all on its far side */
  case 2: return l + z;     /* close by, as exponentials see it */
  case 3: return row == 0 ? beyond : row == 1 ? l + l * z : row == 2 ? l + z : z;
  default: return beyond;
  }
}

/* Rows that fall or rise by more than the literal from place to place, as differences see it. */
static double ramp(double l, unsigned turn, int64_t place, double z) {
  return (turn == 7 ? 2 : -2) * l * ((double)place + fabs(z) / 8);
}

/* One variable beyond the literal, the others of one sign and plain. */
static double apart(double l, unsigned turn, bool chosen, double z) {
  const double size = fabs(z) + 0.05;
  return chosen ? turn == 6 ? -l * size : l + l * size : size;
}

void val_fill_around(const rule *r, const val_domain *domain, double l, unsigned turn, iso_rng *rng,
                     rule_tensor **bind) {
  uint32_t n = 0, chosen = 0;
  for (uint32_t v = 0; v < r->n_vars; v++)
    if (r->var[v].kind == 'f' && iso_rng_below(rng, ++n) == 0) chosen = v;
  for (uint32_t v = 0; v < r->n_vars; v++) {
    rule_tensor *t = bind[v];
    double low = -INFINITY, high = INFINITY;
    const bool whole = r->var[v].kind == 'i';
    if (whole) val_variable_range(r, v, &domain[v], t->dtype, &low, &high);
    if (!whole && r->var[v].kind != 'f') continue;
    const int64_t last = t->shape.rank ? t->shape.dim[t->shape.rank - 1] : 1;
    uint64_t row = 0;
    for (int64_t i = 0; i < t->numel; i++) {
      const double z = iso_rng_normal(rng);
      if (i % last == 0) row = iso_rng_below(rng, 4);
      const double x = turn >= 7             ? ramp(l, turn, i % last, z)
                       : turn >= 4 && !whole ? apart(l, turn, v == chosen, z)
                                             : around(l, turn % 4, row, z);
      rule_tensor_set(t, i, whole ? fmin(fmax(nearbyint(x), low), high - 1) : x);
    }
  }
}
