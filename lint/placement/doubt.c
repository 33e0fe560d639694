/* Readings of which another would be as good, so that nothing is decided on them.
 *
 * The whole program is the ranks' own, read with other sizes: where ranks exchange tensors that
 * they laid out by rank, and an exchange is left out, there often is a whole program all the same,
 * which no one meant: the rank's number is a dimension of it. Three things tell.
 *
 * A view keeps a cut among the dimensions that it was in. What ranks have once is no part of as
 * many copies. And cuts are followed: inputs are cut along their rows, say, an exchange cuts along
 * another dimension, and a second one along rows again. The two kinds never meet in one operator,
 * and outputs are of the first. */
#include <stdlib.h>
#include <string.h>

#include "lint/placement/placement_int.h"

static const char *const why_moved =
    "it moves what is cut to a dimension beside it, as if the rank's number were one";
static const char *const why_met =
    "one operand is cut as the inputs are, another as they are behind an exchange";
static const char *const why_repeated =
    "one rank alone would repeat, as often as there are ranks, what each rank has once";
static const char *const why_counted =
    "a number that it reads counts what each rank has of an input, and one rank alone has more";
static const char *const why_ends =
    "the ranks' parts are those behind an exchange, and were not exchanged back";

/* ---- views ---- */

static int64_t product(const rule_shape *s, uint32_t from, uint32_t to) {
  int64_t n = 1;
  for (uint32_t d = from; d < to; d++) n *= s->dim[d];
  return n;
}

/* The nearest number of elements, from `n` down or up, before which a dimension of both begins or
 * ends; `beyond`: another one than `n`. */
static int64_t border(const rule_shape *s, const rule_shape *t, int64_t n, bool up, bool beyond) {
  int64_t found = up ? INT64_MAX : 1;
  for (uint32_t d = 0; d <= s->rank; d++)
    for (uint32_t e = 0; e <= t->rank; e++) {
      const int64_t at = product(s, 0, d);
      if (at != product(t, 0, e) || (beyond && at == n)) continue;
      if (up ? at >= n && at < found : at <= n && at > found) found = at;
    }
  return found;
}

/* Whether dimension `k` of a view lies among those that dimension `j` became, or was put beside as
 * it is one element long. */
static bool among(const rule_shape *own, uint32_t j, const rule_shape *view, uint32_t k) {
  const bool one = own->dim[j] == 1;
  const int64_t from = border(own, view, product(own, 0, j), false, one);
  const int64_t to = border(own, view, product(own, 0, j + 1), true, one);
  return product(view, 0, k) >= from && product(view, 0, k + 1) <= to;
}

/* Whether the numbers of a rank stand in one order in both. */
static bool is_view(const plc *x, const plc_tuple *t, const plc_tuple *o) {
  rule_tensor *in[PLC_RANKS], *out[PLC_RANKS];
  plc_locals(x, o, 0, 0, in);
  plc_locals(x, t, 0, 0, out);
  for (uint32_t r = 0; r < x->mesh.n; r++) {
    const rule_tensor *a = in[r], *b = out[r];
    if (!a || !b || a->dtype != b->dtype || a->numel != b->numel || !a->numel) return false;
    if (rule_shape_eq(&a->shape, &b->shape)) return false;
    if (memcmp(a->data, b->data, (size_t)a->numel * rule_dtype_size(a->dtype)) != 0) return false;
  }
  return true;
}

/* Whether ranks have one row of an input that is cut along the axis. */
static bool has_single_rows(const plc *x, uint32_t axis) {
  for (size_t i = 0; i < x->n_tuples; i++) {
    const plc_tuple *t = x->tuple[i];
    if (!plc_input(x, t) || t->state != PLC_PLACED) continue;
    const plc_one *o = &t->place[0].axis[axis];
    const rule_shape *s = &plc_node(x, t->node[0])->output[0].shape;
    if (o->kind == PLC_S && o->dim < s->rank && s->dim[o->dim] == 1) return true;
  }
  return false;
}

/* Whether a view moves the cut to another dimension. A dimension of size 1 may be a number of
 * heads, where parameters are cut, or of rows, where inputs have one. */
static bool moves(const plc *x, const plc_tuple *t, uint32_t axis) {
  const plc_tuple *o = t->n_args == 1 ? x->tuple[t->arg[0]] : NULL;
  if (!o || t->collective || t->mixed || t->n_out != 1 || o->n_out != 1) return false;
  if (t->state != PLC_PLACED || o->state != PLC_PLACED || t->node[0] == PLC_NONE) return false;
  const plc_one *was = &o->place[0].axis[axis], *is = &t->place[0].axis[axis];
  if (was->kind != PLC_S || is->kind != PLC_S || o->node[0] == PLC_NONE) return false;
  const rule_shape *own = &plc_node(x, o->node[0])->output[0].shape;
  const rule_shape *view = &plc_node(x, t->node[0])->output[0].shape;
  if (was->dim >= own->rank || is->dim >= view->rank || !is_view(x, t, o)) return false;
  if (!among(own, was->dim, view, is->dim)) return true;
  return t->cut[axis] != PLC_UNCUT && view->dim[is->dim] == 1 && own->dim[was->dim] > 1 &&
         !has_single_rows(x, axis);
}

/* The literal of a call at a slot; NULL: there is none. */
static const rule_term *literal(const rule_term *c, uint32_t slot, uint32_t *at) {
  if (c->kind == RULE_INT || c->kind == RULE_FLOAT) return (*at)++ == slot ? c : NULL;
  for (uint32_t i = 0; i < c->n; i++) {
    const rule_term *t = literal(c->child[i], slot, at);
    if (t) return t;
  }
  return NULL;
}

/* Whether a tensor that all ranks have is read as shards of as many copies as there are ranks. Each
 * may have a batch of one, where inputs have one row. */
static bool repeats(const plc *x, const plc_tuple *t, uint32_t axis) {
  const plc_one *is = &t->place[0].axis[axis];
  const rule_term *c = t->node[0] == PLC_NONE ? NULL : plc_node(x, t->node[0])->call;
  if (!c || t->differs || t->n_args != 1 || is->kind != PLC_S || has_single_rows(x, axis))
    return false;
  const plc_tuple *o = x->tuple[t->arg[0]];
  if (o->state != PLC_PLACED || o->place[0].axis[axis].kind != PLC_R) return false;
  const rule_shape *own = &plc_node(x, t->node[0])->output[0].shape;
  if (is->dim >= own->rank || own->dim[is->dim] == 1) return false;
  for (uint32_t i = 0; i < t->variant.n; i++) {
    uint32_t at = 0;
    const rule_term *n = literal(c, t->variant.slot[i], &at);
    if (n && n->kind == RULE_INT && n->u.i == 1 && t->variant.by[i] > 1) return true;
  }
  return false;
}

/* Whether ranks have so many of an input along the dimension in which it is cut. */
static bool is_own_size(const plc *x, int64_t n, uint32_t axis) {
  for (size_t i = 0; i < x->n_tuples; i++) {
    const plc_tuple *t = x->tuple[i];
    if (!plc_input(x, t) || t->state != PLC_PLACED || t->node[0] == PLC_NONE) continue;
    const plc_one *o = &t->place[0].axis[axis];
    const rule_shape *s = &plc_node(x, t->node[0])->output[0].shape;
    if (o->kind == PLC_S && o->dim < s->rank && s->dim[o->dim] == n) return true;
  }
  return false;
}

/* Whether it sums up a tensor that is filled, and read as that of one rank alone, with as many
 * numbers as each rank has of an input. */
static bool counts_own(const plc *x, const plc_tuple *t, uint32_t axis) {
  const plc_tuple *o = t->konst && t->n_args == 1 ? x->tuple[t->arg[0]] : NULL;
  if (t->state != PLC_PLACED || t->place[0].axis[axis].kind != PLC_R) return false;
  if (!o || o->leaf || o->collective || o->n_args || !o->slots || o->n_out != 1) return false;
  if (t->collective || t->n_out != 1 || t->node[0] == PLC_NONE || o->node[0] == PLC_NONE)
    return false;
  const rule_shape *own = &plc_node(x, o->node[0])->output[0].shape;
  const rule_shape *sum = &plc_node(x, t->node[0])->output[0].shape;
  for (uint32_t d = 0; d < own->rank; d++)
    if (own->dim[d] > 1 && is_own_size(x, own->dim[d], axis) &&
        product(sum, 0, sum->rank) * own->dim[d] <= product(own, 0, own->rank))
      return true;
  return false;
}

/* ---- what is cut ---- */

static const rule_term *call_of(const plc *x, const plc_tuple *t) {
  for (uint32_t r = 0; r < x->mesh.n; r++)
    if (t->node[r] != PLC_NONE) return plc_node(x, t->node[r])->call;
  return NULL;
}

/* operator: collectives are words of captures. Whether ranks exchange parts that they laid out by
 * rank. They do so along one dimension, so that only their numbers say which parts these are. */
static bool exchanges(const rule_term *c) {
  return c && strcmp(c->u.s, "dist::all_to_all") == 0 && c->n == 3 &&
         rule_term_eq(c->child[1], c->child[2]);
}

static void doubt(plc_tuple *t, const char *why) {
  if (!t->doubt) t->doubt = why;
}

/* The cause of the cut of a collective's result, where its operand was cut by `was`. */
static plc_cause met(const plc *x, plc_tuple *t, plc_cause was) {
  const rule_term *c = call_of(x, t);
  if (exchanges(c)) return was == PLC_DATA ? PLC_AWAY : was == PLC_AWAY ? PLC_DATA : was;
  if (c && t->several) return was;
  if (was == PLC_AWAY) doubt(t, why_ends);
  return PLC_UNCUT;
}

/* Whether one rank alone would have as many parts as the ranks lay out to exchange them. */
static bool keeps_parts(const plc *x, const plc_tuple *t, uint32_t axis) {
  const rule_term *c = call_of(x, t);
  if (!t->collective || !(t->axes >> axis & 1) || !exchanges(c)) return false;
  const plc_tuple *o = x->tuple[t->arg[0]];
  const int64_t dim = c->child[1]->kind == RULE_INT ? c->child[1]->u.i : -1;
  if (!o->whole || !o->whole[0] || o->node[0] == PLC_NONE) return false;
  const rule_shape *own = &plc_node(x, o->node[0])->output[0].shape, *all = &o->whole[0]->shape;
  return dim >= 0 && dim < own->rank && own->rank == all->rank &&
         all->dim[dim] * c->child[0]->n != own->dim[dim];
}

/* Whether ranks hold the same numbers although nothing that they do here makes them meet: what was
 * exchanged were equal copies. */
static bool equal_by_chance(const plc *x, const plc_tuple *t) {
  if (t->collective || t->konst || plc_takes_part(x, t)) return false;
  return !t->whole[0] || !t->whole[1] || !rule_tensor_same_bytes(t->whole[0], t->whole[1]);
}

static void follow_axis(const plc *x, plc_tuple *t, uint32_t axis) {
  plc_cause is = PLC_UNCUT;
  for (uint32_t i = 0; i < t->n_args; i++) {
    const plc_cause was = x->tuple[t->arg[i]]->cut[axis];
    if (is != PLC_UNCUT && was != PLC_UNCUT && was != is) doubt(t, why_met);
    if (was != PLC_UNCUT) is = was;
    if (!t->konst && !t->collective && counts_own(x, x->tuple[t->arg[i]], axis))
      doubt(t, why_counted);
  }
  if (t->collective && (t->axes >> axis & 1)) is = met(x, t, is);
  const bool placed = t->state == PLC_PLACED && t->n_out == 1 && !t->several;
  const plc_kind kind = placed ? t->place[0].axis[axis].kind : PLC_V;
  if (placed && kind == PLC_R) {
    if (is == PLC_AWAY && equal_by_chance(x, t)) doubt(t, why_ends);
    is = PLC_UNCUT;
  }
  if (placed && kind == PLC_S && is == PLC_UNCUT && (t->differs || plc_input(x, t))) is = PLC_DATA;
  t->cut[axis] = is;
  t->keeps |= keeps_parts(x, t, axis);
  if (moves(x, t, axis)) doubt(t, why_moved);
  if (placed && repeats(x, t, axis)) doubt(t, why_repeated);
}

void plc_follow_cuts(const plc *x, plc_tuple *t) {
  t->doubt = NULL;
  t->keeps = false;
  for (uint32_t a = 0; a < x->mesh.n_axes; a++) follow_axis(x, t, a);
}

/* ---- what is not known then ---- */

static const plc_tuple *behind(const plc *x, const plc_tuple *t, bool kept, bool *seen) {
  if (seen[t->id]) return NULL;
  seen[t->id] = true;
  if (t->doubt || (kept && t->keeps)) return t;
  for (uint32_t i = 0; i < t->n_args; i++) {
    const plc_tuple *u = behind(x, x->tuple[t->arg[i]], kept, seen);
    if (u) return u;
  }
  return NULL;
}

static const plc_tuple *look(plc *x, const plc_tuple *t, bool kept) {
  bool *seen = calloc(x->n_tuples + 1, sizeof *seen);
  const plc_tuple *u = plc_need(x, seen) ? behind(x, t, kept, seen) : NULL;
  free(seen);
  return u;
}

bool plc_is_doubtful(plc *x, const plc_tuple *t) { return look(x, t, true) != NULL; }

bool plc_doubts(plc *x, const plc_output *o) {
  const plc_tuple *t = x->tuple[o->tuple], *u = NULL;
  const bool holds = !o->declared || plc_output_holds(x, o);
  if (t->state == PLC_PLACED) u = look(x, t, !holds);
  if (u && !x->undecided)
    x->undecided = iso_arena_printf(
        x->keep, "output %s rests on a doubtful reading of %s: %s", o->name, plc_say(x, u),
        u->doubt ? u->doubt : "one rank alone would lay out one part, and exchange nothing");
  return u != NULL;
}
