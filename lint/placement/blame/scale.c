/* Tensors that are a multiple or a fraction of the whole: the step that made them so, and whether a
 * literal may account for it. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lint/placement/blame/scale.h"
#include "rules/operators.h"

/* The first tensor on the way to `t` of which there are more or fewer than one of the whole; `t`
 * itself where none of its operands is so. Parts of a mean are right, until a collective adds them
 * up. */
static const plc_tuple *scaled_first(const plc *x, const plc_tuple *t) {
  for (bool moved = true; moved;) {
    moved = false;
    for (uint32_t i = 0; i < t->n_args && !moved; i++) {
      const plc_tuple *o = x->tuple[t->arg[i]];
      const bool part = o->several; /* its getitems are placed */
      if (t->collective && plc_has(x, &o->place[0], PLC_P)) continue;
      if (o->state == PLC_PLACED && (o->place[0].scale != 1 || part) && o->order < t->order)
        t = o, moved = !part;
    }
  }
  return t;
}

const plc_tuple *plc_scaled_by(const plc *x, const plc_tuple *t) {
  const plc_tuple *first = scaled_first(x, t);
  return first->collective ? first : NULL;
}

/* Whether a number is the product of some neighbouring sizes on a rank, and the whole has another
 * one there. */
static bool counts(const rule_shape *own, const rule_shape *all, double n) {
  for (uint32_t i = 0; i < own->rank; i++) {
    double a = 1, b = 1;
    for (uint32_t k = i; k < own->rank; k++) {
      a *= (double)own->dim[k];
      b *= all && all->rank == own->rank ? (double)all->dim[k] : 0;
      if (a == n && b != n) return true;
    }
  }
  return false;
}

static bool in_shapes(const plc *x, const plc_tuple *t, double n, bool *seen) {
  if (seen[t->id]) return false;
  seen[t->id] = true;
  const rule_tensor *whole = t->n_out == 1 && t->whole ? t->whole[0] : NULL;
  for (uint32_t r = 0; r < x->mesh.n; r++)
    if (t->node[r] != PLC_NONE &&
        counts(&plc_node(x, t->node[r])->output[0].shape, whole ? &whole->shape : NULL, n))
      return true;
  for (uint32_t i = 0; i < t->n_args; i++)
    if (in_shapes(x, x->tuple[t->arg[i]], n, seen)) return true;
  return false;
}

/* A factor or divisor on the way to `t` that may be a number of a rank's elements: for one rank
 * alone it would be the number of all. */
static bool may_count(plc *x, const plc_tuple *t, const plc_tuple *top, bool *seen) {
  if (seen[t->id]) return false;
  seen[t->id] = true;
  const bool known = plc_counts_ranks(x, t) || plc_counts_nothing(x, t);
  for (uint32_t r = 0; r < x->mesh.n && !t->leaf && !known; r++) {
    const rule_term *c = t->node[r] == PLC_NONE ? NULL : plc_node(x, t->node[r])->call;
    if (!c) continue;
    const rule_arithmetic how = rule_operator_of(c->u.s)->arithmetic;
    if (how != RULE_ARITHMETIC_MUL && how != RULE_ARITHMETIC_DIV) continue;
    for (uint32_t k = 0; k < c->n; k++) {
      const rule_term *v = c->child[k];
      const double n = v->kind == RULE_FLOAT ? v->u.f : v->kind == RULE_INT ? (double)v->u.i : 1;
      const double size = n > 0 && n < 1 ? nearbyint(1 / n) : n;
      if (plc_whole_count(x, t, n) > 0) continue;
      bool *other = calloc(x->n_tuples + 1, sizeof *other);
      const bool found = plc_need(x, other) && size > 1 && in_shapes(x, top, size, other);
      free(other);
      if (found) return true;
    }
  }
  for (uint32_t i = 0; i < t->n_args; i++)
    if (may_count(x, x->tuple[t->arg[i]], top, seen)) return true;
  return false;
}

bool plc_ambiguous(plc *x, const plc_tuple *t) {
  bool *seen = calloc(x->n_tuples + 1, sizeof *seen);
  const bool found = plc_need(x, seen) && may_count(x, t, t, seen);
  free(seen);
  if (found && !x->undecided)
    x->undecided = iso_arena_printf(
        x->keep,
        "%s is %s if no literal before it is a number of elements: an output \"loss\" "
        "would tell",
        plc_say(x, t), plc_place_of(x, t));
  return found;
}

/* Whether `t` is a product with, or a quotient by, a number like these: the ranks that meet. */
static bool by_size(const plc *x, const plc_tuple *t, const double *size, uint32_t n) {
  if (plc_counts_ranks(x, t) || plc_counts_nothing(x, t)) return false;
  const rule_term *c = t->leaf || t->node[0] == PLC_NONE ? NULL : plc_node(x, t->node[0])->call;
  const rule_arithmetic how = c ? rule_operator_of(c->u.s)->arithmetic : RULE_ARITHMETIC_NONE;
  if (how != RULE_ARITHMETIC_MUL && how != RULE_ARITHMETIC_DIV) return false;
  for (uint32_t k = 0; k < c->n; k++) {
    const rule_term *v = c->child[k];
    if (v->kind != RULE_FLOAT && v->kind != RULE_INT) continue;
    const double f = v->kind == RULE_FLOAT ? v->u.f : (double)v->u.i;
    for (uint32_t i = 0; i < n; i++)
      if (fabs(f - size[i]) < 1e-6 * size[i] || fabs(f * size[i] - 1) < 1e-6) return true;
  }
  return false;
}

static bool unclear(plc *x, const plc_tuple *t) {
  if (!x->undecided)
    x->undecided = iso_arena_printf(
        x->keep, "%s may divide by the number of ranks, which is 1 for one rank", plc_say(x, t));
  return true;
}

bool plc_divided_again(plc *x, const plc_tuple *t) {
  while (!t->collective) {
    const plc_tuple *next = NULL;
    for (uint32_t i = 0; i < t->n_args && !next; i++) {
      const plc_tuple *o = x->tuple[t->arg[i]];
      if (o->state == PLC_PLACED && o->place[0].scale != 1 && o->order < t->order) next = o;
    }
    if (!next) return false;
    if (by_size(x, t, &next->place[0].scale, 1)) return unclear(x, t);
    t = next;
  }
  return false;
}

bool plc_divided_before(plc *x, const plc_tuple *t) {
  double size[PLC_AXES + 1] = {x->mesh.n};
  for (uint32_t a = 0; a < x->mesh.n_axes; a++) size[a + 1] = x->mesh.size[a];
  for (uint32_t i = 0; i < t->n_args; i++) {
    const plc_tuple *o = x->tuple[t->arg[i]];
    if (plc_is_replica(x, &o->place[0]) && by_size(x, o, size, x->mesh.n_axes + 1))
      return unclear(x, o);
  }
  return false;
}

/* How many times the whole a collective gives. */
static double scale_after(const plc *x, const plc_tuple *by) {
  for (size_t i = 0; i < x->n_tuples && by->several; i++) {
    const plc_tuple *t = x->tuple[i];
    if (t->n_args && t->arg[0] == by->id && t->state == PLC_PLACED) return t->place[0].scale;
  }
  return by->place[0].scale;
}

/* The same for a tensor that was divided by the number of ranks before a collective added it up, as
 * averaged gradients are. */
static bool divided_first(plc *x, const plc_tuple *by) {
  double size[PLC_AXES + 1] = {x->mesh.n};
  for (uint32_t a = 0; a < x->mesh.n_axes; a++) size[a + 1] = x->mesh.size[a];
  const plc_tuple *t = by->n_args ? x->tuple[by->arg[0]] : by;
  for (uint32_t i = 0; i < PLC_AHEAD; i++) {
    if (by_size(x, t, size, x->mesh.n_axes + 1)) return unclear(x, t);
    if (t->n_args != 1) return false;
    t = x->tuple[t->arg[0]];
  }
  return false;
}

void plc_blame_scale(plc *x, const plc_tuple *by, bool gradient, const char *what) {
  if (plc_ambiguous(x, by) || divided_first(x, by)) return;
  const plc_tuple *o = x->tuple[by->arg[0]];
  const bool replicas = plc_is_replica(x, &o->place[0]);
  const char *how = plc_reduction(x, by), *mend;
  const bool sum = strcmp(how, "sum") == 0;
  if (replicas) {
    mend = by->several ? "take a slice in place of this collective" : "leave this collective out";
    plc_found(
        x, gradient ? LINT_GRADIENT_SCALED : LINT_BAD_COLLECTIVE, by, mend,
        "%s adds up %s, which is the same on all ranks already: %s is %g times what it should "
        "be",
        plc_say(x, by), plc_say(x, o), what, scale_after(x, by) / o->place[0].scale);
    return;
  }
  mend = sum ? "reduce with avg" : "reduce with sum";
  plc_found(x, gradient ? LINT_GRADIENT_SCALED : LINT_BAD_COLLECTIVE, by, mend,
            "%s reduces %s, which is %s, with %s: %s is %g times what it should be", plc_say(x, by),
            plc_say(x, o), plc_place_of(x, o), how, what, scale_after(x, by));
}

bool plc_goes_into(const plc *x, const plc_tuple *t, const plc_tuple *u, bool *seen) {
  if (t == u) return true;
  if (seen[u->id]) return false;
  seen[u->id] = true;
  for (uint32_t i = 0; i < u->n_args; i++)
    if (plc_goes_into(x, t, x->tuple[u->arg[i]], seen)) return true;
  return false;
}

/* Whether it goes into gradients and updates of leaves, and into nothing else. */
static bool for_leaves(plc *x, const plc_tuple *t) {
  bool *seen = calloc(x->n_tuples + 1, sizeof *seen), only = seen != NULL, some = false;
  for (size_t i = 0; plc_need(x, seen) && i < x->n_outputs && only; i++) {
    const plc_output *o = &x->output[i];
    memset(seen, 0, x->n_tuples + 1);
    if (!plc_goes_into(x, t, x->tuple[o->tuple], seen)) continue;
    only = o->gradient || o->leaf != PLC_NONE;
    some = true;
  }
  free(seen);
  return only && some;
}

bool plc_blame_count(plc *x, const plc_tuple *t, bool gradient) {
  const plc_tuple *by = scaled_first(x, t);
  if (by->leaf || by->mixed || by->collective || by->n_args == 0 || by->state != PLC_PLACED ||
      by->place[0].scale == 1 || !plc_counts_ranks(x, by))
    return false;
  if (plc_count_answers(x, by, by->place[0].scale)) return true;
  const plc_tuple *o = x->tuple[by->arg[0]];
  const bool summed = o->collective && strcmp(plc_reduction(x, o), "sum") == 0;
  gradient |= for_leaves(x, by);
  plc_found(x, gradient ? LINT_GRADIENT_SCALED : LINT_BAD_COLLECTIVE, by, "leave this step out",
            "%s has %s, which is %s, times %g for a number of ranks%s: that is %g times what it "
            "should be",
            plc_say(x, by), plc_say(x, o), plc_place_of(x, o), by->place[0].scale,
            summed ? ", and the sum was meant" : "", by->place[0].scale);
  return true;
}
