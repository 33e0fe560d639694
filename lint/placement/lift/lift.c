/* The whole of a step, and the ranks' placement of it. */
#include <math.h>

#include "lint/placement/lift/variants.h"
#include "rules/operators.h"

/* The remainder of sums that cancel, relative to their terms. */
static const double cancelled = 1e-14;

static void varies(plc_tuple *t, plc_state state, const char *why) {
  t->state = state;
  t->why = why;
  plc_drop_wholes(t);
}

/* A tensor that is the same on all ranks is a replica of itself. */
static bool lift_replica(plc *x, plc_tuple *t) {
  rule_tensor *each[PLC_RANKS];
  for (uint32_t d = 0; d < PLC_DRAWS; d++)
    for (uint32_t k = 0; k < t->n_out; k++) {
      plc_locals(x, t, d, k, each);
      if (!each[0]) return false;
      t->whole[d * t->n_out + k] = rule_tensor_ref(each[0]);
      t->place[k] = plc_replica();
    }
  t->state = PLC_PLACED;
  return true;
}

/* A division by a number of ranks; one rank alone divides by 1. */
static bool lift_counting(plc *x, plc_tuple *t) {
  const plc_variant none = {0};
  rule_shape as_is;
  bool fits = false;
  if (!plc_counts_ranks(x, t) || t->n_out != 1) return false;
  plc_try_variant(x, t, &none, UINT32_MAX, false, &as_is, &fits);
  if (fits) t->state = PLC_PLACED;
  return fits;
}

static bool several(const plc *x, const plc_tuple *t) {
  for (uint32_t r = 0; r < x->mesh.n; r++)
    if (t->node[r] != PLC_NONE && plc_node(x, t->node[r])->n_outputs > 1) return true;
  return false;
}

/* A collective is an identity on the whole; on constants it makes a constant. */
static void lift_identity(plc *x, plc_tuple *t, const plc_tuple *o) {
  for (uint32_t d = 0; d < PLC_DRAWS; d++) t->whole[d] = rule_tensor_ref(o->whole[d * o->n_out]);
  t->state = PLC_PLACED;
  if (several(x, t)) { /* its getitems are placed */
    t->state = o->state;
    t->why = o->why;
    t->several = true;
    return;
  }
  if (plc_match(x, t, 0, UINT32_MAX, &t->place[0])) return;
  t->state = PLC_VARYING;
  t->why = "the collective does not fit what the ranks hold";
}

static bool constant_replica(plc *x, plc_tuple *t) {
  rule_tensor *each[PLC_RANKS];
  const plc_place p = plc_replica();
  plc_locals(x, t, 0, 0, each);
  for (uint32_t r = 0; r < x->mesh.n; r++)
    if (!each[r]) return false;
  return plc_holds(x, each, each[0], &p, t->floor);
}

/* Nodes of several steps: together they have the whole of one of these. */
static void lift_mixed(plc *x, plc_tuple *t) {
  const plc_tuple *last = NULL;
  for (uint32_t i = 0; i < t->n_args && !plc_failed(x); i++) {
    const plc_tuple *o = x->tuple[t->arg[i]];
    if ((o->state != PLC_PLACED && o->state != PLC_VARYING) || o->n_out != 1 || !o->whole[0])
      continue;
    if (!last || o->order > last->order) last = o, t->from = i;
    for (uint32_t d = 0; d < PLC_DRAWS; d++) t->whole[d] = rule_tensor_ref(o->whole[d]);
    if (plc_match(x, t, 0, UINT32_MAX, &t->place[0])) {
      t->state = PLC_PLACED;
      t->from = i;
      return;
    }
    plc_drop_wholes(t);
  }
  varies(t, last ? PLC_VARYING : PLC_UNKNOWN, "ranks have it from different operators");
  for (uint32_t d = 0; last && d < PLC_DRAWS; d++) t->whole[d] = rule_tensor_ref(last->whole[d]);
}

/* Each rank takes another part: together they have the tensor that was split. */
static void lift_own_parts(plc *x, plc_tuple *t, const plc_tuple *o) {
  const plc_tuple *base = o->n_args ? x->tuple[o->arg[0]] : NULL;
  t->apart = base && base->n_out == 1 && base->whole && base->whole[0];
  varies(t, t->apart ? PLC_VARYING : PLC_UNKNOWN, "the ranks take parts that are no shards");
  if (!t->apart) return;
  for (uint32_t d = 0; d < PLC_DRAWS; d++) t->whole[d] = rule_tensor_ref(base->whole[d]);
  if (plc_match(x, t, 0, UINT32_MAX, &t->place[0])) t->state = PLC_PLACED;
}

static void lift_getitem(plc *x, plc_tuple *t, const plc_tuple *o) {
  uint32_t k = 0;
  if (t->differs && !o->collective) {
    lift_own_parts(x, t, o);
    return;
  }
  for (uint32_t r = 0; r < x->mesh.n; r++)
    if (t->node[r] != PLC_NONE && !o->collective)
      k = (uint32_t)plc_node(x, t->node[r])->call->child[1]->u.i;
  for (uint32_t d = 0; d < PLC_DRAWS; d++) {
    rule_tensor *whole = o->whole[d * o->n_out + k];
    if (!whole) break;
    t->whole[d] = rule_tensor_ref(whole);
  }
  if (!t->whole[0]) {
    varies(t, PLC_UNKNOWN, o->why);
    return;
  }
  t->state = PLC_PLACED;
  if (o->state == PLC_PLACED && !o->collective) t->place[0] = o->place[k];
  else if (!plc_match(x, t, 0, UINT32_MAX, &t->place[0])) {
    t->state = PLC_VARYING;
    t->why = o->why ? o->why : "the collective does not fit what the ranks hold";
  }
}

bool plc_takes_part(const plc *x, const plc_tuple *t) {
  return plc_is_getitem(x, t) && x->tuple[t->arg[0]]->collective;
}

/* As one rank alone would run it. */
static void lift_as_it_is(plc *x, plc_tuple *t) {
  bool scaled = false, known = true;
  for (uint32_t i = 0; i < t->n_args; i++) {
    const plc_tuple *o = x->tuple[t->arg[i]];
    known &= o->state == PLC_PLACED || o->state == PLC_VARYING;
    rule_tensor *each[PLC_RANKS];
    plc_locals(x, o, 0, 0, each);
    for (uint32_t r = 0; r < x->mesh.n && o->n_out == 1; r++)
      if (each[r]) t->floor = fmax(t->floor, plc_largest(each[r]) * cancelled);
    t->floor = fmax(t->floor, o->floor);
  }
  if (t->mixed) lift_mixed(x, t);
  else if (!known) varies(t, PLC_UNKNOWN, "what it reads has no whole");
  else if (t->collective) {
    const plc_tuple *o = x->tuple[t->arg[0]];
    t->constant = o->konst && !several(x, t) && constant_replica(x, t) && lift_replica(x, t);
    if (!t->constant) lift_identity(x, t, o);
  } else if (plc_is_getitem(x, t)) {
    lift_getitem(x, t, x->tuple[t->arg[0]]);
  } else {
    const uint32_t axes = plc_free_axes(x, t, &scaled);
    const bool other = plc_tried(x, t) > 0 || (x->bounds && plc_is_bounded(x, t));
    if (axes == 0 && !other && lift_counting(x, t)) return;
    if (axes == 0 && !other && lift_replica(x, t)) {
      /* It may as well be a shard each of something larger. */
      t->chosen = t->slots > 0 && t->n_out == 1;
      return;
    }
    if (plc_lift_variants(x, t, other ? UINT32_MAX : axes, scaled) || plc_failed(x)) return;
    varies(t, PLC_UNKNOWN, "one rank could not run it on whole tensors");
    t->whole_refused = true;
  }
}

void plc_lift(plc *x, plc_tuple *t) {
  t->sent = t->by_messages = plc_reads_sent(x, t);
  lift_as_it_is(x, t);
  if (!t->sent || plc_failed(x)) return;
  plc_lift_by_hand(x, t);
  if (t->state != PLC_PLACED || t->n_out != 1 || t->place[0].scale != 1) return;
  t->sent = plc_has(x, &t->place[0], PLC_P);
}
