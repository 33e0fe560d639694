/* Tensors of one graph that hold so many times a tensor of the other one.
 *
 * A gradient of a mean over all rows is a part of that over a rank's own, all the way down: a loss
 * was divided early on one side, and its gradients late on the other one. Each step of the two is
 * joined by a rule of that step, operands first: written out as one rule the way between the two
 * divisions is as long as the model is deep. */
#include "rules/names.h"
#include "rules/operators.h"
#include "synth/joint/joint.h"
#include "synth/parts/parts.h"
#include "synth/search/search.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static iso_code nomem(iso_error *err) { return iso_fail(err, ISO_NOMEM, "out of memory"); }

/* ---- how many times ---- */

int64_t st_next_times(const state *s, uint32_t n, int64_t by) {
  int64_t next = INT64_MAX;
  for (int64_t k = by + 1; k <= (int64_t)n && next == INT64_MAX; k++)
    if (n % k == 0) next = k;
  for (size_t i = 0; i < s->ranks.n_times; i++)
    if (s->ranks.times[i] > by && s->ranks.times[i] < next) next = s->ranks.times[i];
  return next;
}

static void note_times(st_ranks *r, double x) {
  if (x > 0 && x < 1) x = 1 / x;
  if (!(x >= 2 && x <= 1 << 24) || x != floor(x)) return;
  const int64_t by = (int64_t)x;
  size_t at = 0;
  while (at < r->n_times && r->times[at] < by) at++;
  if (r->n_times == sizeof r->times / sizeof *r->times || (at < r->n_times && r->times[at] == by))
    return;
  memmove(&r->times[at + 1], &r->times[at], (r->n_times - at) * sizeof *r->times);
  r->times[at] = by;
  r->n_times++;
}

/* A product has such a number, and others too many do no harm. */
void st_find_times(state *s) {
  for (int side = 0; side < 2; side++)
    for (size_t i = 0; i < s->graph[side]->n_nodes; i++) {
      const rule_term *t = s->graph[side]->node[i].call, *by = t && t->n > 1 ? t->child[1] : NULL;
      if (!by || !rule_operator_of(t->u.s)->elementwise) continue;
      if (by->kind == RULE_INT) note_times(&s->ranks, (double)by->u.i);
      if (by->kind == RULE_FLOAT) note_times(&s->ranks, by->u.f);
    }
}

eg_node st_undivided(state *s, eg_node e, int64_t by) {
  const eg_node *m;
  const size_t n = eg_class_nodes(s->g, eg_class_of(s->g, e), &m);
  for (size_t i = 0; i < n; i++) {
    if (!st_made(&s->rec[m[i].i]) || s->rec[m[i].i].leaf || !st_calls(s, m[i], OP_DIV_TENSOR))
      continue;
    const rule_term *d = st_literal(s, (eg_node){eg_node_original(s->g, m[i], 1).i});
    if (d && d->kind == RULE_FLOAT && d->u.f == (double)by)
      return (eg_node){eg_node_original(s->g, m[i], 0).i};
  }
  return (eg_node){EG_NONE};
}

/* Whether operand `a` of a step on `side` is operand `b` of one of the other graph, divided. */
static bool alike_operand(state *s, int side, const rule_term *a, const rule_term *b, int64_t by,
                          int depth);

/* Whether nodes of the two graphs call one operator on operands that are joined: the same, or one
 * divided, or constants; or move the elements of such, in one way or another. A result of several
 * is so by what computes it. */
static bool alike(state *s, int side, int32_t i, int32_t j, int64_t by, int depth) {
  enum { DEEP = 3 };
  if (i < 0 || j < 0 || depth == DEEP) return false;
  const rule_term *a = s->graph[side]->node[i].call, *b = s->graph[!side]->node[j].call;
  if (!a || !b || a->kind != RULE_OP || b->kind != RULE_OP) return false;
  if (rule_operator_of(a->u.s)->moves && rule_operator_of(b->u.s)->moves)
    return alike_operand(s, side, a->child[0], b->child[0], by, depth);
  bool same = a->n == b->n && strcmp(a->u.s, b->u.s) == 0;
  for (uint32_t k = 0; same && k < a->n; k++)
    same = alike_operand(s, side, a->child[k], b->child[k], by, depth);
  return same;
}

static bool alike_operand(state *s, int side, const rule_term *a, const rule_term *b, int64_t by,
                          int depth) {
  if (a->kind != b->kind || a->kind == RULE_OP) return false;
  if (a->kind == RULE_LIST) {
    bool same = a->n == b->n;
    for (uint32_t k = 0; same && k < a->n; k++)
      same = alike_operand(s, side, a->child[k], b->child[k], by, depth);
    return same;
  }
  if (a->kind != RULE_VAR) return true;
  const eg_node x = s->map[side][a->u.i], y = s->map[!side][b->u.i];
  if (x.i == EG_NONE || y.i == EG_NONE) return false;
  if (eg_equal(s->g, x, y) || (s->rec[x.i].konst && s->rec[y.i].konst)) return true;
  if (!s->rec[x.i].tensor) return alike(s, side, (int32_t)a->u.i, (int32_t)b->u.i, by, depth + 1);
  const eg_node of = st_undivided(s, x, by);
  return of.i != EG_NONE && eg_equal(s->g, of, y);
}

iso_code st_join_lifted(state *s, int side, eg_node lifted, int64_t by, bool any_terms, bool *found,
                        iso_error *err) {
  const rule_tensor *v = st_val(s, lifted, s->n_draws - 1);
  st_parts one = {.n = 1, .of = {lifted}, .value = {v}, .by = by};
  st_sought x = {.side = side, .any_terms = any_terms};
  eg_node whole[MOST_WHOLES];
  bool done = false;
  iso_code c = ISO_OK;
  if (!v) return st_lost(&s->values, err);
  x.numel = v->numel;
  st_moments(v, x.moment);
  st_scale_moments(x.moment, 1.0 / (double)by, x.moment);
  uint32_t n = st_wholes(s, &one, &x, whole);
  for (uint32_t i = n; s->ranks.twins && i-- > 0;)
    if (!alike(s, !side, s->rec[whole[i].i].node[!side], s->rec[lifted.i].node[side], by, 0))
      memmove(&whole[i], &whole[i + 1], (--n - i) * sizeof *whole);
  if (n > 0 && by > 1) {
    const rule_term *t = st_divided(s, rule_var(&s->arena, 0), by);
    if (!t) return nomem(err);
    c = st_add_term(s, t, &lifted, &one.of[0], err);
    if (!c) c = st_value(s, one.of[0], err);
  }
  for (uint32_t i = 0; i < n && !c && !done; i++) {
    if (!rule_shape_eq(&s->rec[whole[i].i].shape, &s->rec[lifted.i].shape) ||
        !st_values_equal(s, whole[i], one.of[0]))
      continue;
    s->ranks.whole = true;
    c = st_prove_alike(s, whole[i], one.of[0], &done, err);
    if (!c && !done) c = st_prove(s, whole[i], one.of[0], &done, err);
    s->ranks.whole = false;
    if (!c && !done) c = st_prove(s, whole[i], one.of[0], &done, err);
    *found |= done || !s->rec[lifted.i].cancels; /* of two that are 0 only a rule tells */
  }
  return c;
}

/* ---- each step below two tensors ---- */

/* Of a captured node: it was collected, for twins alone; it was joined with what it is so many
 * times. */
enum { COLLECTED = 1, FOR_TWINS = 2, JOINED = 4 };

typedef struct scaled_walk {
  state *s;
  int32_t node[512]; /* captured nodes that were not looked at before */
  int8_t side[512];
  size_t n;
  uint8_t mark;
} scaled_walk;

/* Collects the captured nodes below `e`, operands first, that the other graph does not hold. */
static void collect(scaled_walk *w, eg_node e, int depth) {
  enum { DEEP = 4096 };
  state *s = w->s;
  if (depth == DEEP) return;
  bool fresh = s->rec[e.i].node[LEFT] < 0 && s->rec[e.i].node[RIGHT] < 0;
  for (int side = 0; side < 2; side++) {
    const int32_t at = s->rec[e.i].node[side];
    if (at < 0 || s->ranks.scaled[side][at] & w->mark) continue;
    s->ranks.scaled[side][at] |= w->mark;
    fresh = true;
  }
  if (!fresh || st_made(&s->rec[e.i])) return;
  for (size_t k = 0; k < eg_node_arity(s->g, e); k++) {
    const eg_node *m;
    const size_t n = eg_class_nodes(s->g, eg_node_child(s->g, e, k), &m);
    bool side[2] = {false, false};
    for (size_t i = 0; i < n; i++)
      for (int d = 0; d < 2; d++) side[d] |= s->rec[m[i].i].node[d] >= 0;
    for (size_t i = 0; i < n && !(side[LEFT] && side[RIGHT]); i++) collect(w, m[i], depth + 1);
  }
  for (int8_t side = 0; side < 2; side++)
    if (s->rec[e.i].node[side] >= 0 && w->n < sizeof w->side) {
      w->node[w->n] = s->rec[e.i].node[side];
      w->side[w->n++] = side;
    }
}

/* Whether it is the same on all draws, e.g. a number of tokens: then it is so many times another by
 * chance. */
static bool keeps_value(state *s, eg_node e) {
  const rule_tensor *first = st_val(s, e, 0);
  bool same = first && s->n_draws > 1;
  for (size_t d = 1; d < s->n_draws && same; d++) {
    const rule_tensor *v = st_val(s, e, d);
    same = v && rule_tensor_same(first, v);
  }
  return same;
}

/* The tensor of the other graph that holds so many times `e`. */
static iso_code join_times(state *s, int side, eg_node e, int64_t by, bool *found, iso_error *err) {
  const rule_tensor *v = st_val(s, e, s->n_draws - 1);
  const st_parts one = {.n = 1, .of = {e}, .value = {v}, .by = by};
  st_sought x = {.side = side, .any_terms = true};
  eg_node more[MOST_WHOLES];
  iso_code c = ISO_OK;
  if (!v) return st_lost(&s->values, err);
  x.numel = v->numel;
  st_moments(v, x.moment);
  st_scale_moments(x.moment, (double)by, x.moment);
  const uint32_t n = st_wholes(s, &one, &x, more);
  for (uint32_t i = 0; i < n && !c && !*found; i++) {
    const int32_t at = s->rec[more[i].i].node[!side];
    if (at < 0 || st_has_side(s, more[i], side)) continue;
    bool one_of = false;
    c = st_join_lifted(s, !side, more[i], by, true, &one_of, err);
    if (one_of) s->ranks.scaled[!side][at] |= JOINED;
    *found = one_of && st_undivided(s, e, by).i != EG_NONE; /* and not another of such moments */
  }
  return c;
}

iso_code st_join_scaled(state *s, eg_node u, eg_node t, bool *any, iso_error *err) {
  enum { MOST_VAIN = 4 };
  *any = false;
  if (s->ranks.linking || s->ranks.scaling || s->ranks.vain == MOST_VAIN) return ISO_OK;
  if (!s->ranks.scaled[LEFT]) {
    for (int side = 0; side < 2; side++)
      if (!(s->ranks.scaled[side] = calloc(s->graph[side]->n_nodes + 1, 1))) return nomem(err);
    st_find_times(s);
  }
  if (!s->ranks.n_times) return ISO_OK;
  scaled_walk w = {.s = s, .mark = s->ranks.twins ? FOR_TWINS : COLLECTED};
  collect(&w, u, 0);
  collect(&w, t, 0);
  iso_code c = ISO_OK;
  s->ranks.scaling = true;
  for (size_t i = 0; i < w.n && !c && s->ranks.vain < MOST_VAIN; i++) {
    const eg_node e = s->map[w.side[i]][w.node[i]];
    const rec *r = &s->rec[e.i];
    if (s->ranks.scaled[w.side[i]][w.node[i]] & JOINED || st_has_side(s, e, !w.side[i]) ||
        !r->tensor || !r->valued || !rule_dtype_is_float(st_dtype(s, e)) || keeps_value(s, e))
      continue;
    bool found = false;
    for (int64_t by = st_next_times(s, 1, 1); by < INT64_MAX && !c && !found;
         by = st_next_times(s, 1, by)) {
      const size_t before = s->res->n_merges;
      c = st_join_lifted(s, w.side[i], e, by, true, &found, err);
      if (!c && !found) c = join_times(s, w.side[i], e, by, &found, err);
      if (!found) continue;
      const bool joined = s->res->n_merges > before;
      if (!s->ranks.twins) s->ranks.vain = joined ? 0 : s->ranks.vain + 1;
      *any |= joined;
    }
  }
  /* Those of which the operands are not joined yet may be twins another time. */
  for (size_t i = 0; i < w.n && s->ranks.twins; i++)
    if (!st_has_side(s, s->map[w.side[i]][w.node[i]], !w.side[i]))
      s->ranks.scaled[w.side[i]][w.node[i]] &= (uint8_t)~FOR_TWINS;
  s->ranks.scaling = false;
  return c;
}

iso_code st_join_twins(state *s, eg_node u, eg_node t, bool *any, iso_error *err) {
  *any = false;
  if (s->ranks.scaling) return ISO_OK;
  s->ranks.twins = true;
  const iso_code c = st_join_scaled(s, u, t, any, err);
  s->ranks.twins = false;
  return c;
}
