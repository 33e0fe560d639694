/* The fault of a tensor that fits nowhere, and the one change that mends it. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lint/placement/placement_int.h"
#include "rules/operators.h"

enum { MOST_AHEAD = 6 /* steps to a collective that was meant for it */ };

/* ---- helpers ---- */

static const char *place_of(plc *x, const plc_tuple *t) {
  return plc_print(x, &t->place[0], x->keep);
}

/* "sum" of a reduction, else "". */
static const char *reduction(const plc *x, const plc_tuple *t) {
  for (uint32_t r = 0; r < x->mesh.n; r++) {
    if (t->node[r] == PLC_NONE) continue;
    const rule_term *c = plc_node(x, t->node[r])->call;
    return c->n > 1 && c->child[1]->kind == RULE_STRING ? c->child[1]->u.s : "";
  }
  return "";
}

static bool adds_up(const plc *x, const plc_tuple *t) {
  const char *r = reduction(x, t);
  return t->collective && (strcmp(r, "sum") == 0 || strcmp(r, "avg") == 0);
}

/* A collective that adds up what was made of `t` soon after it; NULL: none does. */
static const plc_tuple *summed_later(const plc *x, const plc_tuple *t, uint32_t depth) {
  for (size_t i = 0; i < x->n_tuples && depth < MOST_AHEAD; i++) {
    const plc_tuple *u = x->tuple[i];
    for (uint32_t k = 0; k < u->n_args; k++) {
      if (u->arg[k] != t->id) continue;
      if (adds_up(x, u)) return u;
      const plc_tuple *v = u->collective ? NULL : summed_later(x, u, depth + 1);
      if (v) return v;
    }
  }
  return NULL;
}

static const char *text(plc *x, const char *s) { return s ? s : plc_need(x, s); }

/* An operand that is a part of a sum, a largest or a smallest; else one that is a shard. */
static const plc_tuple *operand(const plc *x, const plc_tuple *t, plc_kind kind) {
  for (uint32_t i = 0; i < t->n_args; i++) {
    const plc_tuple *o = x->tuple[t->arg[i]];
    if (o->state == PLC_PLACED && plc_has(x, &o->place[0], kind)) return o;
  }
  return NULL;
}

static uint32_t shard_dim(const plc *x, const plc_place *p) {
  for (uint32_t a = 0; a < x->mesh.n_axes; a++)
    if (p->axis[a].kind == PLC_S) return p->axis[a].dim;
  return 0;
}

/* ---- added on every rank ---- */

static rule_tensor *zeros_like(plc *x, const rule_tensor *t) {
  rule_tensor *z = NULL;
  if (!plc_failed(x)) x->code = rule_tensor_new(t->dtype, &t->shape, &z, x->err);
  return z;
}

/* The result of a rank's call with other operands: `zero`, 0 for all that is no replica, else drawn
 * parts of the whole. Owns. */
static rule_tensor *with_others(plc *x, const plc_tuple *t, uint32_t rank, bool zero) {
  const uint32_t i = t->node[rank];
  rule_tensor *out = NULL, *was[PLC_ARGS] = {0}, *part[PLC_RANKS], *each[PLC_RANKS];
  rule_shape shape[PLC_RANKS];
  iso_error err = {0};
  size_t n = 0;
  for (uint32_t k = 0; k < t->n_args && !plc_failed(x); k++) {
    const plc_tuple *o = x->tuple[t->arg[k]];
    const uint32_t node = o->node[rank];
    if (o->n_out != 1 || node == PLC_NONE || plc_is_replica(x, &o->place[0])) continue;
    rule_tensor *other = NULL;
    plc_locals(x, o, 1, 0, each);
    if (!plc_shapes(x, each, shape)) continue;
    if (zero) other = zeros_like(x, each[rank]);
    else if (plc_cut(x, o->whole[1], &o->place[0], shape, x->seed + 99 + k, part)) {
      other = rule_tensor_ref(part[rank]);
      for (uint32_t r = 0; r < x->mesh.n; r++) rule_tensor_unref(part[r]);
    }
    if (!other) continue;
    was[k] = x->value[1][node];
    x->value[1][node] = other;
  }
  if (!plc_failed(x) &&
      x->oracle->call(x->oracle->ctx, plc_node(x, i)->call, x->value[1], true, &out, 1, &n, &err))
    out = NULL;
  for (uint32_t k = t->n_args; k-- > 0;) {
    const uint32_t node = x->tuple[t->arg[k]]->node[rank];
    if (!was[k]) continue;
    rule_tensor_unref(x->value[1][node]);
    x->value[1][node] = was[k];
  }
  return out;
}

static bool summed_but_once(plc *x, const plc_tuple *t, uint32_t axis) {
  rule_tensor *own[PLC_RANKS] = {0};
  plc_place p = plc_replica();
  p.axis[axis].kind = PLC_P;
  bool fits = true;
  for (uint32_t r = 0; r < x->mesh.n && fits; r++) {
    rule_tensor *rest = with_others(x, t, r, true), *each = with_others(x, t, r, false);
    own[r] = rest && each ? zeros_like(x, each) : NULL;
    fits = own[r] && rule_shape_eq(&rest->shape, &each->shape);
    const bool first = plc_along(&x->mesh, r, axis) == 0;
    for (int64_t i = 0; fits && i < own[r]->numel; i++)
      rule_tensor_set(own[r], i, rule_tensor_get(each, i) - (first ? 0 : rule_tensor_get(rest, i)));
    rule_tensor_unref(rest);
    rule_tensor_unref(each);
  }
  fits = fits && plc_holds(x, own, t->whole[1], &p, t->floor);
  for (uint32_t r = 0; r < x->mesh.n; r++) rule_tensor_unref(own[r]);
  return fits;
}

/* Whether the ranks' sum has too often what does not depend on their parts. */
static bool added_on_each(plc *x, const plc_tuple *t) {
  for (uint32_t r = 0; r < x->mesh.n; r++)
    if (t->node[r] == PLC_NONE) return false;
  for (uint32_t i = 0; i < t->n_args; i++)
    if (x->tuple[t->arg[i]]->state != PLC_PLACED) return false;
  for (uint32_t a = 0; a < x->mesh.n_axes && t->n_out == 1 && t->whole[1]; a++)
    if (summed_but_once(x, t, a)) return true;
  return false;
}

/* ---- scales ---- */

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

/* The collective from which on it is so. */
static const plc_tuple *scaled_by(const plc *x, const plc_tuple *t) {
  const plc_tuple *first = scaled_first(x, t);
  return first->collective ? first : NULL;
}

/* Whether a number is the product of some neighbouring sizes. */
static bool counts(const rule_shape *s, double n) {
  for (uint32_t i = 0; i < s->rank; i++) {
    double all = 1;
    for (uint32_t k = i; k < s->rank; k++)
      if ((all *= (double)s->dim[k]) == n) return true;
  }
  return false;
}

static bool in_shapes(const plc *x, const plc_tuple *t, double n, bool *seen) {
  if (seen[t->id]) return false;
  seen[t->id] = true;
  for (uint32_t r = 0; r < x->mesh.n; r++)
    if (t->node[r] != PLC_NONE && counts(&plc_node(x, t->node[r])->output[0].shape, n)) return true;
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

/* Whether the scale of `t` rests on how a literal is read; then nothing is decided. */
static bool ambiguous(plc *x, const plc_tuple *t) {
  bool *seen = calloc(x->n_tuples + 1, sizeof *seen);
  const bool found = plc_need(x, seen) && may_count(x, t, t, seen);
  free(seen);
  if (found && !x->undecided)
    x->undecided = iso_arena_printf(
        x->keep,
        "%s is %s if no literal before it is a number of elements: an output \"loss\" "
        "would tell",
        plc_say(x, t), place_of(x, t));
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

/* Whether what a collective has too often is divided by a number that may be the ranks', between it
 * and `t`; then nothing is decided. */
static bool divided_again(plc *x, const plc_tuple *t) {
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

/* The same of what is added on every rank. */
static bool divided_before(plc *x, const plc_tuple *t) {
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

/* The same of what was divided by the number of ranks before a collective added it up, as gradients
 * are that are averaged so. */
static bool divided_first(plc *x, const plc_tuple *by) {
  double size[PLC_AXES + 1] = {x->mesh.n};
  for (uint32_t a = 0; a < x->mesh.n_axes; a++) size[a + 1] = x->mesh.size[a];
  const plc_tuple *t = by->n_args ? x->tuple[by->arg[0]] : by;
  for (uint32_t i = 0; i < MOST_AHEAD; i++) {
    if (by_size(x, t, size, x->mesh.n_axes + 1)) return unclear(x, t);
    if (t->n_args != 1) return false;
    t = x->tuple[t->arg[0]];
  }
  return false;
}

static void blame_scale(plc *x, const plc_tuple *by, bool gradient, const char *what) {
  if (ambiguous(x, by) || divided_first(x, by)) return;
  const plc_tuple *o = x->tuple[by->arg[0]];
  const bool replicas = plc_is_replica(x, &o->place[0]);
  const char *how = reduction(x, by), *mend;
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
            plc_say(x, o), place_of(x, o), how, what, scale_after(x, by));
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

/* A step that divides the whole by a number of ranks, or multiplies it, and is what `t` is scaled
 * by. Returns: whether there is one. */
static bool blame_count(plc *x, const plc_tuple *t, bool gradient) {
  const plc_tuple *by = scaled_first(x, t);
  if (by->leaf || by->mixed || by->collective || by->n_args == 0 || by->state != PLC_PLACED ||
      by->place[0].scale == 1 || !plc_counts_ranks(x, by))
    return false;
  if (plc_count_answers(x, by, by->place[0].scale)) return true;
  const plc_tuple *o = x->tuple[by->arg[0]];
  const bool summed = o->collective && strcmp(reduction(x, o), "sum") == 0;
  gradient |= for_leaves(x, by);
  plc_found(x, gradient ? LINT_GRADIENT_SCALED : LINT_BAD_COLLECTIVE, by, "leave this step out",
            "%s has %s, which is %s, times %g for a number of ranks%s: that is %g times what it "
            "should be",
            plc_say(x, by), plc_say(x, o), place_of(x, o), by->place[0].scale,
            summed ? ", and the sum was meant" : "", by->place[0].scale);
  return true;
}

/* ---- tensors that fit nowhere ---- */

/* Groups of one step that do not do the same. */
static bool groups_differ(const plc *x, const plc_tuple *t) {
  const rule_term *first = NULL;
  for (uint32_t r = 0; r < x->mesh.n; r++) {
    const rule_term *c = t->node[r] == PLC_NONE ? NULL : plc_node(x, t->node[r])->call;
    if (!first) first = c;
    for (uint32_t k = 1; c && k < c->n; k++)
      if (c->n != first->n || !rule_term_eq(c->child[k], first->child[k])) return true;
  }
  return false;
}

/* operator: collectives are words of captures. The dimension that a gathering collective joins;
 * PLC_NONE: it gathers nothing. */
static uint32_t gathers(const plc *x, const plc_tuple *t) {
  for (uint32_t r = 0; r < x->mesh.n; r++) {
    const rule_term *c = t->node[r] == PLC_NONE ? NULL : plc_node(x, t->node[r])->call;
    if (!c) continue;
    const bool is = strcmp(c->u.s, "dist::all_gather") == 0 && c->n == 2;
    return is && c->child[1]->kind == RULE_INT ? (uint32_t)c->child[1]->u.i : PLC_NONE;
  }
  return PLC_NONE;
}

/* Another axis, over whose ranks this collective would fit, while it fits none of its own. */
static uint32_t meant_axis(const plc *x, const plc_tuple *t, const plc_tuple *o) {
  const uint32_t dim = gathers(x, t);
  uint32_t meant = PLC_NONE;
  for (uint32_t a = 0; a < x->mesh.n_axes; a++) {
    const plc_one *p = &o->place[0].axis[a];
    const bool fits = dim != PLC_NONE
                          ? p->kind == PLC_S && p->dim == dim
                          : p->kind == PLC_P && *reduction(x, t) && p->reduce != PLC_NORM &&
                                adds_up(x, t) == (p->reduce == PLC_SUM);
    if (!fits) continue;
    if (t->axes >> a & 1) return PLC_NONE;
    meant = a;
  }
  return meant;
}

static void blame_collective(plc *x, const plc_tuple *t) {
  if (groups_differ(x, t)) {
    plc_found(x, LINT_REDUCE_MISMATCH, t, NULL,
              "%s is not the same in all groups: ranks of one reduce otherwise than others",
              plc_say(x, t));
    return;
  }
  const plc_tuple *o = x->tuple[t->arg[0]];
  const char *mend = NULL, *how = reduction(x, t);
  const uint32_t meant = meant_axis(x, t, o);
  if (meant != PLC_NONE) {
    mend = text(x, iso_arena_printf(x->keep, "call it over %s", x->mesh.name[meant]));
    plc_found(x, LINT_GROUP_MISMATCH, t, mend,
              "%s joins ranks that do not have the parts of %s, which is %s", plc_say(x, t),
              plc_say(x, o), place_of(x, o));
    return;
  }
  if (plc_has(x, &o->place[0], PLC_P)) {
    mend = *how ? "reduce with sum" : "all_reduce with sum instead";
    for (uint32_t a = 0; a < x->mesh.n_axes; a++)
      if (o->place[0].axis[a].kind == PLC_P && o->place[0].axis[a].reduce != PLC_SUM)
        mend = o->place[0].axis[a].reduce == PLC_NORM  ? "add up its squares"
               : o->place[0].axis[a].reduce == PLC_MAX ? "reduce with max"
                                                       : "reduce with min";
  } else if (plc_has(x, &o->place[0], PLC_S)) {
    const uint32_t d = shard_dim(x, &o->place[0]);
    mend = text(x, iso_arena_printf(x->keep, "all_gather along dimension %u instead", d));
  } else mend = "leave this collective out";
  plc_found(x, LINT_BAD_COLLECTIVE, t, mend, "%s%s%s does not fit %s, which is %s", plc_say(x, t),
            *how ? " with " : "", how, plc_say(x, o), place_of(x, o));
}

static const char *reduce_before(plc *x, const plc_tuple *o) {
  return text(x, iso_arena_printf(x->keep, "all_reduce %s before this", plc_say(x, o)));
}

static bool said_already(const plc *x, const char *mend) {
  for (size_t i = 0; i < x->n_findings; i++)
    if (x->finding[i].mend && strcmp(x->finding[i].mend, mend) == 0) return true;
  return false;
}

static void blame_parts(plc *x, const plc_tuple *t, const plc_tuple *part) {
  const plc_tuple *later = summed_later(x, t, 0);
  if (added_on_each(x, t)) {
    if (divided_before(x, t)) return;
    const char *mend =
        later  ? text(x, iso_arena_printf(x->keep, "add it behind %s, or on one rank alone",
                                          plc_say(x, later)))
        : part ? reduce_before(x, part)
               : "all_reduce the product first, and add behind that";
    plc_found(x, LINT_PARTIAL_BIAS, t, mend,
              "%s adds something to a part of a sum%s%s on every rank: the sum has it %u times",
              plc_say(x, t), part ? ", " : "", part ? plc_say(x, part) : "", x->mesh.n);
    return;
  }
  const char *mend = part ? reduce_before(x, part) : NULL;
  if (mend && said_already(x, mend)) return; /* of another reader */
  plc_found(x, LINT_PARTIAL_NONLINEAR, t, mend,
            "%s is not linear in %s, which is %s: the ranks' results do not add up to the result "
            "of the sum",
            plc_say(x, t), part ? plc_say(x, part) : "its operand", part ? place_of(x, part) : "?");
}

static void blame_shards(plc *x, const plc_tuple *t) {
  const char *say = "";
  for (uint32_t i = 0; i < t->n_args; i++) {
    const plc_tuple *o = x->tuple[t->arg[i]];
    say = text(x, iso_arena_printf(x->keep, "%s%s%s %s", say, i ? ", " : "", plc_say(x, o),
                                   place_of(x, o)));
    if (!say) return;
  }
  const plc_tuple *o = operand(x, t, PLC_S);
  const char *mend = o ? text(x, iso_arena_printf(x->keep,
                                                  "all_gather %s along dimension %u "
                                                  "before this",
                                                  plc_say(x, o), shard_dim(x, &o->place[0])))
                       : NULL;
  plc_found(x, LINT_BAD_PLACEMENT, t, mend,
            "%s of %s: what the ranks compute is no shard and no part of the whole result",
            plc_say(x, t), say);
}

void plc_blame(plc *x, plc_tuple *t) {
  const plc_tuple *part = operand(x, t, PLC_P), *by = scaled_by(x, t);
  if (t->mixed || t->leaf || t->n_args == 0) {
    plc_found(x, LINT_REPLICAS_DIFFER, t, NULL, "%s: %s", plc_say(x, t), t->why);
  } else if (t->state == PLC_UNKNOWN) plc_blame_unfit(x, t);
  else if (t->collective) blame_collective(x, t);
  else if (!by && !part && blame_count(x, t, false)) return;
  else if (by && !part && divided_again(x, t)) return;
  else if (by && !part) blame_scale(x, by, false, plc_say(x, t));
  else if (part || added_on_each(x, t)) blame_parts(x, t, part);
  else blame_shards(x, t);
}

/* ---- what cannot be run ---- */

static void blame_group(plc *x, const plc_tuple *t) {
  const plc_tuple *o = x->tuple[t->arg[0]];
  const cap_node *first = NULL;
  for (uint32_t r = 0; r < x->mesh.n; r++) {
    if (o->node[r] == PLC_NONE) continue;
    const cap_node *n = plc_node(x, o->node[r]);
    if (!first) first = n;
    const cap_output *a = &first->output[0], *b = &n->output[0];
    char p[64], q[64];
    if (a->dtype != b->dtype)
      return plc_found(x, LINT_DTYPE_MISMATCH, t, NULL, "%s meets %s of %s and %s of %s",
                       plc_say(x, t), first->id, rule_dtype_name(a->dtype), n->id,
                       rule_dtype_name(b->dtype));
    if (!rule_shape_eq(&a->shape, &b->shape))
      return plc_found(x, LINT_SIZE_MISMATCH, t, "pad the shards to one size",
                       "%s meets %s of %s and %s of %s", plc_say(x, t), first->id,
                       rule_shape_print(&a->shape, p, sizeof p), n->id,
                       rule_shape_print(&b->shape, q, sizeof q));
  }
  plc_found(x, LINT_SIZE_MISMATCH, t, NULL, "%s: %s", plc_say(x, t), t->why);
}

/* Whether a rank has one of something of which there are several: it broadcasts what one rank alone
 * would have to repeat. */
static bool broadcasts(const plc *x, const plc_tuple *t) {
  for (uint32_t i = 0; i < t->n_args; i++) {
    const plc_tuple *o = x->tuple[t->arg[i]];
    if (o->state != PLC_PLACED || !o->whole || !o->whole[0]) continue;
    for (uint32_t r = 0; r < x->mesh.n; r++) {
      const rule_shape *s =
          o->node[r] == PLC_NONE ? NULL : &plc_node(x, o->node[r])->output[0].shape;
      for (uint32_t d = 0; s && d < s->rank && d < o->whole[0]->shape.rank; d++)
        if (s->dim[d] == 1 && o->whole[0]->shape.dim[d] > 1) return true;
    }
  }
  return false;
}

void plc_blame_unfit(plc *x, plc_tuple *t) {
  if (t->collective && groups_differ(x, t)) {
    blame_collective(x, t);
    return;
  }
  if (t->unfit && t->collective && t->n_args) blame_group(x, t);
  else if (!t->leaf && !t->mixed && !plc_has_sizes(x, t) && t->n_args && t->guess == PLC_NONE &&
           t->whole_refused && !broadcasts(x, t))
    blame_shards(x, t);
}

/* ---- outputs ---- */

static const char *axis_of(const plc *x, const plc_place *p, plc_kind kind) {
  for (uint32_t a = 0; a < x->mesh.n_axes; a++)
    if (p->axis[a].kind == kind) return x->mesh.name[a];
  return "";
}

void plc_blame_gradient(plc *x, const plc_output *o, double scale) {
  const plc_tuple *t = x->tuple[o->tuple], *by = t;
  while (!by->collective && by->n_args) by = x->tuple[by->arg[0]];
  if (!by->collective) by = NULL;
  const plc_tuple *of = by ? x->tuple[by->arg[0]] : NULL;
  const char *how = by ? reduction(x, by) : "", *mend = NULL;
  if (of && of->state == PLC_PLACED && plc_is_replica(x, &of->place[0]))
    mend = "leave this collective out";
  else if (by) mend = strcmp(how, "sum") == 0 ? "reduce with avg" : "reduce with sum";
  plc_found(x, LINT_GRADIENT_SCALED, by ? by : t, mend,
            "output %s is %g times the derivative of the loss that the ranks give%s%s", o->name,
            plc_size_near(x, scale), *how ? ": it is reduced with " : "", how);
}

void plc_blame_output(plc *x, const plc_output *o) {
  plc_tuple *t = x->tuple[o->tuple];
  const plc_place want = plc_wanted(x, o), *p = &t->place[0];
  const plc_tuple *by = scaled_by(x, t);
  const char *is = plc_print(x, p, x->keep), *should = plc_print(x, &want, x->keep), *mend;
  if (plc_has(x, p, PLC_P)) {
    const bool mean = strstr(is, "avg") != NULL;
    mend = text(x, iso_arena_printf(x->keep, "all_reduce it with %s over %s", mean ? "avg" : "sum",
                                    axis_of(x, p, PLC_P)));
    plc_found(x, o->gradient ? LINT_GRADIENT_UNREDUCED : LINT_PARTIAL_OUTPUT, t, mend,
              "output %s should be %s and is %s", o->name, should, is);
  } else if (p->scale != 1 && !by && blame_count(x, t, o->gradient)) return;
  else if (p->scale != 1 && divided_again(x, t)) return;
  else if (p->scale != 1 && by) blame_scale(x, by, o->gradient, o->name);
  else if (p->scale != 1 && ambiguous(x, t)) return;
  else if (p->scale != 1 && o->gradient)
    plc_found(x, LINT_GRADIENT_SCALED, t, NULL, "output %s is %s", o->name, is);
  else {
    mend = plc_has(x, p, PLC_S)
               ? text(x, iso_arena_printf(x->keep, "all_gather it along dimension %u",
                                          shard_dim(x, p)))
               : NULL;
    plc_found(x, LINT_BAD_PLACEMENT, t, mend, "output %s should be %s and is %s", o->name, should,
              is);
  }
}
