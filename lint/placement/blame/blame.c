/* The fault of a tensor that fits nowhere, and the one change that mends it. */
#include <string.h>

#include "lint/placement/blame/scale.h"
#include "rules/names.h"
#include "rules/operators.h"

/* ---- helpers ---- */

const char *plc_reduction(const plc *x, const plc_tuple *t) {
  for (uint32_t r = 0; r < x->mesh.n; r++) {
    if (t->node[r] == PLC_NONE) continue;
    const rule_term *c = plc_node(x, t->node[r])->call;
    return c->n > 1 && c->child[1]->kind == RULE_STRING ? c->child[1]->u.s : "";
  }
  return "";
}

static bool adds_up(const plc *x, const plc_tuple *t) {
  const char *r = plc_reduction(x, t);
  return t->collective && (strcmp(r, "sum") == 0 || strcmp(r, "avg") == 0);
}

/* A collective, soon after `t`, that adds up tensors made of it; NULL: none. */
static const plc_tuple *summed_later(const plc *x, const plc_tuple *t, uint32_t depth) {
  for (size_t i = 0; i < x->n_tuples && depth < PLC_AHEAD; i++) {
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

/* The dimension that a gathering collective joins; PLC_NONE: it gathers nothing. */
static uint32_t gathers(const plc *x, const plc_tuple *t) {
  for (uint32_t r = 0; r < x->mesh.n; r++) {
    const rule_term *c = t->node[r] == PLC_NONE ? NULL : plc_node(x, t->node[r])->call;
    if (!c) continue;
    const bool is = strcmp(c->u.s, OP_DIST_ALL_GATHER) == 0 && c->n == 2;
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
                          : p->kind == PLC_P && *plc_reduction(x, t) && p->reduce != PLC_NORM &&
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
  const char *mend = NULL, *how = plc_reduction(x, t);
  const uint32_t meant = meant_axis(x, t, o);
  if (meant != PLC_NONE) {
    mend = text(x, iso_arena_printf(x->keep, "call it over %s", x->mesh.name[meant]));
    plc_found(x, LINT_GROUP_MISMATCH, t, mend,
              "%s joins ranks that do not have the parts of %s, which is %s", plc_say(x, t),
              plc_say(x, o), plc_place_of(x, o));
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
            *how ? " with " : "", how, plc_say(x, o), plc_place_of(x, o));
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
  const uint32_t times = plc_added_on_each(x, t);
  if (times) {
    if (plc_divided_before(x, t)) return;
    const char *mend =
        later  ? text(x, iso_arena_printf(x->keep, "add it behind %s, or on one rank alone",
                                          plc_say(x, later)))
        : part ? reduce_before(x, part)
               : "all_reduce the product first, and add behind that";
    plc_found(x, LINT_PARTIAL_BIAS, t, mend,
              "%s adds something to a part of a sum%s%s on every rank: the sum has it %u times",
              plc_say(x, t), part ? ", " : "", part ? plc_say(x, part) : "", times);
    return;
  }
  const char *mend = part ? reduce_before(x, part) : NULL;
  if (mend && said_already(x, mend)) return; /* of another reader */
  plc_found(x, LINT_PARTIAL_NONLINEAR, t, mend,
            "%s is not linear in %s, which is %s: the ranks' results do not add up to the result "
            "of the sum",
            plc_say(x, t), part ? plc_say(x, part) : "its operand",
            part ? plc_place_of(x, part) : "?");
}

static void blame_shards(plc *x, const plc_tuple *t) {
  const char *say = "";
  for (uint32_t i = 0; i < t->n_args; i++) {
    const plc_tuple *o = x->tuple[t->arg[i]];
    say = text(x, iso_arena_printf(x->keep, "%s%s%s %s", say, i ? ", " : "", plc_say(x, o),
                                   plc_place_of(x, o)));
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
  const plc_tuple *part = operand(x, t, PLC_P), *by = plc_scaled_by(x, t);
  const plc_tuple *table = part || t->state != PLC_VARYING ? NULL : plc_own_rows(x, t);
  if (t->mixed || t->leaf || t->n_args == 0) {
    plc_found(x, LINT_REPLICAS_DIFFER, t, NULL, "%s: %s", plc_say(x, t), t->why);
  } else if (t->state == PLC_UNKNOWN) plc_blame_unfit(x, t);
  else if (t->collective) blame_collective(x, t);
  else if (table) plc_blame_rows(x, t, table);
  else if (!by && !part && plc_blame_count(x, t, false)) return;
  else if (by && !part && plc_divided_again(x, t)) return;
  else if (by && !part) plc_blame_scale(x, by, false, plc_say(x, t));
  else if (part || plc_added_on_each(x, t)) blame_parts(x, t, part);
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

/* Whether each rank takes the same part, one nth, of a tensor: one rank alone would need all of it.
 */
static bool is_part_of(const plc *x, const plc_tuple *t, int64_t n) {
  while (t->n_args == 1 && plc_complete(x, t) && !t->mixed && !t->leaf) {
    const rule_operator *o = rule_operator_of(plc_node(x, t->node[0])->op);
    const plc_tuple *of = x->tuple[t->arg[0]];
    if (o->part && !t->differs && t->whole && t->whole[0] && of->whole && of->n_out == 1)
      return of->whole[0] && of->whole[0]->numel == n * t->whole[0]->numel;
    if (!o->rearranges) return false;
    t = of;
  }
  return false;
}

/* Whether a rank has size 1 where the whole has more: it broadcasts a tensor that one rank alone
 * would have to repeat. */
static bool broadcasts(const plc *x, const plc_tuple *t) {
  for (uint32_t i = 0; i < t->n_args; i++) {
    const plc_tuple *o = x->tuple[t->arg[i]];
    if (o->state != PLC_PLACED || !o->whole || !o->whole[0]) continue;
    for (uint32_t r = 0; r < x->mesh.n; r++) {
      const rule_shape *s =
          o->node[r] == PLC_NONE ? NULL : &plc_node(x, o->node[r])->output[0].shape;
      for (uint32_t d = 0; s && d < s->rank && d < o->whole[0]->shape.rank; d++) {
        const int64_t n = o->whole[0]->shape.dim[d];
        bool taken = false;
        for (uint32_t k = 0; k < t->n_args; k++)
          taken |= k != i && is_part_of(x, x->tuple[t->arg[k]], n);
        if (s->dim[d] == 1 && n > 1 && !taken) return true;
      }
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
  const char *how = by ? plc_reduction(x, by) : "", *mend = NULL;
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
  const plc_tuple *by = plc_scaled_by(x, t);
  const char *is = plc_print(x, p, x->keep), *should = plc_print(x, &want, x->keep), *mend;
  if (plc_has(x, p, PLC_P)) {
    const bool mean = strstr(is, "avg") != NULL;
    mend = text(x, iso_arena_printf(x->keep, "all_reduce it with %s over %s", mean ? "avg" : "sum",
                                    axis_of(x, p, PLC_P)));
    plc_found(x, o->gradient ? LINT_GRADIENT_UNREDUCED : LINT_PARTIAL_OUTPUT, t, mend,
              "output %s should be %s and is %s", o->name, should, is);
  } else if (p->scale != 1 && !by && plc_blame_count(x, t, o->gradient)) return;
  else if (p->scale != 1 && plc_divided_again(x, t)) return;
  else if (p->scale != 1 && by) plc_blame_scale(x, by, o->gradient, o->name);
  else if (p->scale != 1 && plc_ambiguous(x, t)) return;
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
