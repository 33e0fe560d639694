/* Literals that may be numbers of a rank's elements.
 *
 * A mean's derivative divides by how many numbers there were. On a rank that has a shard these are
 * the shard's, and for one rank alone they would be all: the literal says neither. Where a program
 * is right for one of both readings, nothing is decided. */
#include <math.h>
#include <stdlib.h>

#include "lint/placement/placement_int.h"
#include "rules/operators.h"

enum { MOST_APART = 6 /* steps between a literal and what it may count */ };

bool plc_counts_ranks(const plc *x, const plc_tuple *t) {
  for (uint32_t r = 0; r < x->mesh.n; r++)
    if (t->node[r] != PLC_NONE && !plc_node(x, t->node[r])->counts_ranks) return false;
  return true;
}

bool plc_counts_nothing(const plc *x, const plc_tuple *t) {
  for (uint32_t r = 0; r < x->mesh.n; r++)
    if (t->node[r] != PLC_NONE && !plc_node(x, t->node[r])->counts_nothing) return false;
  return true;
}

static bool counts_elements(const plc *x, const plc_tuple *t) {
  for (uint32_t r = 0; r < x->mesh.n; r++)
    if (t->node[r] != PLC_NONE && !plc_node(x, t->node[r])->counts_elements) return false;
  return !t->leaf;
}

/* A constant of one row on each rank fits many rows as it does one: it is not seen whether it is
 * larger for one rank alone. */
static bool is_broadcast(const plc *x, const plc_tuple *t) {
  if (!counts_elements(x, t) || t->n_args == 0) return false;
  const plc_tuple *o = x->tuple[t->arg[0]];
  if (!o->konst || !o->whole || !o->whole[0] || o->node[0] == PLC_NONE) return false;
  const rule_shape *own = &plc_node(x, o->node[0])->output[0].shape, *all = &o->whole[0]->shape;
  bool one = false;
  for (uint32_t d = 0; d < own->rank; d++) one |= own->dim[d] == 1;
  return one && rule_shape_eq(own, all);
}

/* The elements of some neighbouring dimensions: those of which a rank has `n`. */
double plc_whole_count(const plc *x, const plc_tuple *t, double n) {
  if (!counts_elements(x, t) || t->n_args == 0) return 0;
  const plc_tuple *o = x->tuple[t->arg[0]];
  if (o->n_out != 1 || !o->whole || !o->whole[0] || o->node[0] == PLC_NONE) return 0;
  const rule_shape *own = &plc_node(x, o->node[0])->output[0].shape, *all = &o->whole[0]->shape;
  double found = 0;
  if (is_broadcast(x, t)) return 0;
  for (uint32_t i = 0; own->rank == all->rank && i < own->rank; i++) {
    double a = 1, b = 1;
    for (uint32_t k = i; k < own->rank; k++) {
      a *= (double)own->dim[k];
      b *= (double)all->dim[k];
      if (a != n) continue;
      if (found > 0 && b != found) return 0;
      found = b;
    }
  }
  return found;
}

/* The number by which a step multiplies or divides, as one above 1; 0: there is none. */
static double factor_of(const plc *x, const plc_tuple *t, uint32_t rank) {
  if (plc_counts_ranks(x, t) || plc_counts_nothing(x, t)) return 0;
  const rule_term *c = t->leaf ? NULL : plc_node(x, t->node[rank])->call;
  const rule_arithmetic how = c ? rule_operator_of(c->u.s)->arithmetic : RULE_ARITHMETIC_NONE;
  if (how != RULE_ARITHMETIC_MUL && how != RULE_ARITHMETIC_DIV) return 0;
  for (uint32_t k = 0; k < c->n; k++) {
    const rule_term *v = c->child[k];
    const double n = v->kind == RULE_FLOAT ? v->u.f : v->kind == RULE_INT ? (double)v->u.i : 0;
    if (n > 1) return plc_whole_count(x, t, n) > 0 ? 0 : n;
    if (n > 0 && n < 1) return 1 / n;
  }
  return 0;
}

static double elements(const plc *x, const plc_tuple *t, uint32_t rank) {
  const rule_shape *s = &plc_node(x, t->node[rank])->output[0].shape;
  double n = 1;
  for (uint32_t i = 0; i < s->rank; i++) n *= (double)s->dim[i];
  return n;
}

static bool has(const plc_tuple *t, uint32_t rank) {
  return t->node[rank] != PLC_NONE && t->n_out == 1 && t->whole && t->whole[0];
}

/* Whether so many elements of one are summed up in, or made of, one of the other on a rank, and
 * another number for one rank alone. */
static bool counts(const plc *x, const plc_tuple *t, const plc_tuple *u, uint32_t rank, double n) {
  const double a = elements(x, t, rank), b = elements(x, u, rank);
  const double p = (double)t->whole[0]->numel, q = (double)u->whole[0]->numel;
  if (!(a > 0 && b > 0 && p > 0 && q > 0) || fabs(fmax(a, b) / fmin(a, b) - n) > 1e-6 * n)
    return false;
  return fabs(fmax(p, q) / fmin(p, q) - n) > 1e-6 * n;
}

/* Looks at the tensors that `t` was made of, one operand at a time. */
static bool counted_before(const plc *x, const plc_tuple *t, uint32_t rank, double n) {
  const plc_tuple *u = t;
  for (uint32_t i = 0; i < MOST_APART && u->n_args == 1; i++) {
    u = x->tuple[u->arg[0]];
    if (!has(u, rank)) return false;
    if (counts(x, t, u, rank, n)) return true;
  }
  return false;
}

/* Looks at the results made of `v`, as of the one operand that it is. */
static bool counted_behind(const plc *x, const plc_tuple *t, const plc_tuple *v, uint32_t rank,
                           double n, uint32_t within) {
  for (size_t i = 0; i < x->n_tuples && within; i++) {
    const plc_tuple *u = x->tuple[i];
    if (u->n_args != 1 || u->arg[0] != v->id || !has(u, rank)) continue;
    if (counts(x, t, u, rank, n) || counted_behind(x, t, u, rank, n, within - 1)) return true;
  }
  return false;
}

double plc_may_count(const plc *x, const plc_tuple *t) {
  for (uint32_t r = 0; r < x->mesh.n; r++) {
    const double n = has(t, r) ? factor_of(x, t, r) : 0;
    if (n > 0 && is_broadcast(x, t)) return n;
    if (n > 0 && (counted_before(x, t, r, n) || counted_behind(x, t, t, r, n, MOST_APART)))
      return n;
  }
  return 0;
}

static const plc_tuple *behind(const plc *x, const plc_tuple *t, bool *seen) {
  if (seen[t->id]) return NULL;
  seen[t->id] = true;
  for (uint32_t i = 0; i < t->n_args; i++) {
    const plc_tuple *u = behind(x, x->tuple[t->arg[i]], seen);
    if (u) return u;
  }
  return plc_may_count(x, t) > 0 ? t : NULL;
}

const plc_tuple *plc_count_behind(plc *x, const plc_tuple *t) {
  bool *seen = calloc(x->n_tuples + 1, sizeof *seen);
  const plc_tuple *u = plc_need(x, seen) ? behind(x, t, seen) : NULL;
  free(seen);
  return u;
}

bool plc_count_answers(plc *x, const plc_tuple *t, double scale) {
  const plc_tuple *u = plc_count_behind(x, t);
  bool answers = u && fabs(scale * x->mesh.n - 1) < 1e-6;
  for (uint32_t a = 0; u && a < x->mesh.n_axes; a++)
    answers |= fabs(scale * x->mesh.size[a] - 1) < 1e-6;
  if (answers && !x->undecided)
    x->undecided = iso_arena_printf(
        x->keep,
        "%s is right if the %g of %s is a number of a rank's elements, of which one rank "
        "alone has more",
        plc_say(x, t), plc_may_count(x, u), plc_say(x, u));
  return answers;
}
