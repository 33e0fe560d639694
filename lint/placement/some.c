/* Steps that some ranks take and others leave out, and numbers whose value on one rank alone is not
 * known. */
#include <stdlib.h>
#include <string.h>

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

/* Whether ranks that lack `t` go on with `rest` where the others go on with a tensor made of it. */
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

/* Whether a step moves the numbers of its operands, and computes nothing. */
static bool is_moved(const plc *x, const plc_tuple *t) {
  if (t->node[0] == PLC_NONE || t->mixed) return false;
  const rule_operator *o = rule_operator_of(plc_node(x, t->node[0])->op);
  return o->rearranges || o->part || o->identity;
}

/* Whether all that reads `t` moves it on to where ranks meet. */
static bool goes_to_others(const plc *x, const plc_tuple *t, uint32_t depth) {
  bool read = false;
  for (size_t i = 0; i < x->n_tuples; i++) {
    const plc_tuple *u = x->tuple[i];
    bool reads = false;
    for (uint32_t k = 0; k < u->n_args && !u->mixed; k++) reads |= u->arg[k] == t->id;
    if (!reads) continue;
    read = true;
    if (u->collective) continue;
    if (!is_moved(x, u) || depth == MOST_STEPS || !goes_to_others(x, u, depth + 1)) return false;
  }
  return read;
}

bool plc_is_met(const plc *x, const plc_tuple *t) {
  const plc_tuple *from = t;
  while (from->n_args == 1 && is_moved(x, from) && !from->collective) from = x->tuple[from->arg[0]];
  for (size_t i = 0; i < x->n_tuples; i++) {
    const plc_tuple *u = x->tuple[i];
    for (uint32_t k = 0; k < u->n_args; k++) {
      if (u->arg[k] != from->id || u == from) continue;
      if (u->collective || (is_moved(x, u) && goes_to_others(x, u, 0))) return true;
    }
  }
  return false;
}

static bool reads(const plc_tuple *u, const plc_tuple *t) {
  for (uint32_t k = 0; k < u->n_args && !u->mixed; k++)
    if (u->arg[k] == t->id) return true;
  return false;
}

static const rule_operator *operator_of(const plc *x, const plc_tuple *t) {
  return t->leaf || t->mixed || t->collective || t->node[0] == PLC_NONE
             ? NULL
             : rule_operator_of(plc_node(x, t->node[0])->op);
}

/* Whether `t` takes a part of one tensor. */
static bool takes_part(const plc *x, const plc_tuple *t) {
  const rule_operator *o = operator_of(x, t);
  return o && o->part && t->n_args == 1;
}

bool plc_is_exchanged(const plc *x, const plc_tuple *t) {
  bool cut = false;
  for (uint32_t i = 0; i < t->n_args; i++) {
    const plc_tuple *o = x->tuple[t->arg[i]];
    cut |= o->state == PLC_PLACED && plc_has(x, &o->place[0], PLC_S);
  }
  if (!cut || !operator_of(x, t)) return false;
  if (takes_part(x, t) && goes_to_others(x, t, 0)) return true;
  for (size_t i = 0; i < x->n_tuples; i++) /* a part of what it gives */
    if (reads(x->tuple[i], t) && takes_part(x, x->tuple[i]) && goes_to_others(x, x->tuple[i], 0))
      return true;
  return false;
}

/* ---- parts of a sum ---- */

/* The tensor of which each rank takes a part, by its own literals; NULL: none. `split`: the step
 * that split it; else `t` itself. */
static const plc_tuple *taken_of(const plc *x, const plc_tuple *t, const plc_tuple **split) {
  if (!t->differs || t->n_args != 1 || t->mixed || t->collective || t->leaf) return NULL;
  const plc_tuple *o = x->tuple[t->arg[0]];
  *split = t->apart ? o : t;
  if (t->apart) return o->n_args ? x->tuple[o->arg[0]] : NULL;
  return takes_part(x, t) ? o : NULL;
}

/* Whether another part of it is taken, that ranks may exchange. */
static bool is_taken_otherwise(const plc *x, const plc_tuple *t, const plc_tuple *of,
                               const plc_tuple *split) {
  for (size_t i = 0; i < x->n_tuples; i++) {
    const plc_tuple *u = x->tuple[i];
    if (u == t || u == split || u->mixed) continue;
    if (split != t && reads(u, split)) return true;
    if (reads(u, of) && (u->collective || is_moved(x, u))) return true;
  }
  return goes_to_others(x, t, 0);
}

const plc_tuple *plc_part_of_sum(const plc *x, const plc_tuple *t) {
  const plc_tuple *split = NULL, *of = t->state == PLC_VARYING ? taken_of(x, t, &split) : NULL;
  if (!of || of->state != PLC_PLACED || of->n_out != 1) return NULL;
  for (uint32_t r = 0; r < x->mesh.n; r++)
    if (t->node[r] == PLC_NONE) return NULL;
  for (size_t i = 0; i < x->n_tuples; i++)
    if (plc_is_passed(x, x->tuple[i])) return NULL;
  for (uint32_t a = 0; a < x->mesh.n_axes; a++)
    if (of->place[0].axis[a].kind == PLC_P && of->place[0].axis[a].reduce == PLC_SUM)
      return is_taken_otherwise(x, t, of, split) ? NULL : of;
  return NULL;
}

void plc_blame_part(plc *x, const plc_tuple *t, const plc_tuple *of) {
  const char *mend = iso_arena_printf(x->keep, "reduce_scatter %s instead", plc_say(x, of));
  if (!plc_need(x, mend)) return;
  plc_found(x, LINT_BAD_PLACEMENT, t, mend,
            "%s is each rank's own part of %s, which is %s: what the others have of it is lost",
            plc_say(x, t), plc_say(x, of), plc_print(x, &of->place[0], x->keep));
}

/* ---- pieces ---- */

static int64_t elements(const plc *x, const plc_tuple *t) {
  const rule_shape *s = &plc_node(x, t->node[0])->output[0].shape;
  int64_t n = 1;
  for (uint32_t d = 0; d < s->rank; d++) n *= s->dim[d];
  return n;
}

/* Whether an earlier step takes the very same. */
static bool is_again(const plc *x, size_t i) {
  const rule_term *c = plc_node(x, x->tuple[i]->node[0])->call;
  for (size_t k = 0; k < i; k++) {
    const plc_tuple *u = x->tuple[k];
    if (takes_part(x, u) && rule_term_eq(plc_node(x, u->node[0])->call, c)) return true;
  }
  return false;
}

bool plc_is_piece(const plc *x, const plc_tuple *t) {
  const rule_operator *o = operator_of(x, t);
  const bool given = o && rule_is_getitem(plc_node(x, t->node[0])->op);
  if (!(given || takes_part(x, t)) || t->differs) return false;
  const plc_tuple *of = x->tuple[t->arg[0]];
  if (given) return takes_part(x, of) && plc_has(x, &x->tuple[of->arg[0]]->place[0], PLC_S);
  if (of->node[0] == PLC_NONE || !plc_has(x, &of->place[0], PLC_S)) return false;
  int64_t all = 0;
  for (size_t i = 0; i < x->n_tuples; i++) {
    const plc_tuple *u = x->tuple[i];
    if (!reads(u, of) || !takes_part(x, u) || is_again(x, i)) continue;
    if (strcmp(plc_node(x, u->node[0])->op, plc_node(x, t->node[0])->op) != 0) return false;
    all += elements(x, u);
  }
  return all == elements(x, of) && all > elements(x, t);
}

/* ---- behind what is not known ---- */

bool plc_is_passed(const plc *x, const plc_tuple *t) {
  if (t->state == PLC_PLACED && plc_is_replica(x, &t->place[0])) return false;
  if (t->stands_for != PLC_NONE) return false;
  for (uint32_t r = 0; r < x->mesh.n; r++)
    if (t->node[r] != PLC_NONE && !(x->ranks_of[t->node[r]] >> r & 1)) return true;
  return false;
}

const plc_tuple *plc_passed_behind(const plc *x, const plc_tuple *t, bool *seen) {
  if (seen[t->id] || t->stands_for != PLC_NONE) return NULL;
  seen[t->id] = true;
  if (plc_is_passed(x, t)) return t;
  for (uint32_t i = 0; i < t->n_args; i++) {
    const plc_tuple *u = plc_passed_behind(x, x->tuple[t->arg[i]], seen);
    if (u) return u;
  }
  return NULL;
}

bool plc_is_behind(const plc *x, const plc_tuple *t, bool *seen) {
  if (seen[t->id]) return false;
  seen[t->id] = true;
  for (uint32_t i = 0; i < t->n_args; i++) {
    const plc_tuple *o = x->tuple[t->arg[i]];
    const bool lost = o->state == PLC_VARYING || o->state == PLC_UNKNOWN;
    const bool met = o->collective || (!o->leaf && !o->mixed && plc_takes_part(x, o));
    if (met && lost && !o->several && !o->mended) return true;
    if (o->stands_for != PLC_NONE) continue;
    if (plc_is_passed(x, o)) return true;
    if (o->stuck && (plc_is_exchanged(x, o) || plc_is_piece(x, o))) return true;
    if (plc_is_behind(x, o, seen)) return true;
  }
  return false;
}

/* Whether ranks took parts by their own literals behind it. */
static bool took_apart(const plc *x, const plc_tuple *t, uint32_t depth) {
  if (t->differs) return true;
  for (uint32_t i = 0; i < t->n_args && depth < MOST_STEPS && !t->collective; i++)
    if (took_apart(x, x->tuple[t->arg[i]], depth + 1)) return true;
  return false;
}

bool plc_is_reordered(const plc *x, const plc_tuple *t) {
  const plc_tuple *o = t->collective && t->n_args ? x->tuple[t->arg[0]] : NULL;
  if (!o || o->state != PLC_PLACED || !plc_has_blocks(x, &o->place[0]) || !took_apart(x, o, 0))
    return false;
  bool read = false;
  for (size_t i = 0; i < x->n_tuples; i++) {
    const plc_tuple *u = x->tuple[i];
    for (uint32_t k = 0; k < u->n_args; k++) {
      if (u->arg[k] != t->id) continue;
      if (!is_moved(x, u)) return false;
      read = true;
    }
  }
  return read;
}
