/* Values of leaves on every draw: captured ones first, then fresh ones (draw.c) that keep the
 * relations between leaves. A leaf that is defined by others takes its value from them.
 *
 * Invariant: an atom is drawn freely unless no relation ties it to the other side (`lonely`): then
 * one may have been missed, and it keeps its captured value. */
#include "synth/joint/joint.h"
#include "synth/leaves/leaves.h"

#include <stdlib.h>

static iso_code nomem(iso_error *err) { return iso_fail(err, ISO_NOMEM, "out of memory"); }

/* ---- drawing ---- */

iso_code st_set_values(state *s, eg_node e, rule_tensor **val, iso_error *err) {
  rec *r = &s->rec[e.i];
  r->val = calloc(s->n_draws, sizeof *r->val);
  if (!r->val) return nomem(err);
  r->n_out = 1;
  for (size_t d = 0; d < s->n_draws; d++) r->val[d] = rule_tensor_ref(val[d]);
  r->valued = true;
  return ISO_OK;
}

iso_code st_values_of(state *s, eg_node e, eg_node from, iso_error *err) {
  rule_tensor **val = calloc(s->n_draws + 1, sizeof *val);
  iso_code c = val ? ISO_OK : nomem(err);
  for (size_t d = 0; d < s->n_draws && !c; d++)
    if (!(val[d] = st_val(s, from, d))) c = st_lost(&s->values, err);
  if (!c) c = st_set_values(s, e, val, err);
  free(val);
  return c;
}

/* Large parameters take values on demand. `rep`: the e-node that they equal, if any. */
static iso_code draw_later(state *s, eg_node e, eg_node rep, size_t ordinal, iso_error *err) {
  rec *r = &s->rec[e.i];
  r->n_out = 1;
  r->valued = true;
  if (rep.i != EG_NONE) r->from = st_home(s, rep).i;
  else {
    r->ordinal = ordinal;
    if (!(r->val = calloc(s->n_draws, sizeof *r->val))) return nomem(err);
  }
  return ISO_OK;
}

/* So do the terms that define them, whose results have the leaf's shape. */
static iso_code define_later(state *s, eg_node def, const rule_shape *shape, iso_error *err) {
  rec *r = &s->rec[def.i];
  r->n_out = 1;
  r->valued = true;
  r->shape = *shape;
  return (r->val = calloc(s->n_draws, sizeof *r->val)) ? ISO_OK : nomem(err);
}

/* Whether some leaf or operator of `side` is in the class. Nodes that no output needs count only
 * with `unread`. */
static bool class_on_side(const state *s, eg_class c, int side, bool unread) {
  const eg_node *m;
  const size_t n = eg_class_nodes(s->g, c, &m);
  for (size_t i = 0; i < n; i++)
    if (s->rec[m[i].i].node[side] >= 0 &&
        (unread || !s->leaves.unread[side][s->rec[m[i].i].node[side]]))
      return true;
  return false;
}

/* Whether a leaf of `side` has the class, or is defined by a layout of it: cat(slice(c), ...) = a
 * leaf there. */
static bool ties_to(const state *s, eg_class c, int side, bool unread, int depth) {
  if (class_on_side(s, c, side, unread)) return true;
  const eg_node *p;
  const size_t n = depth > 0 ? eg_class_parents(s->g, c, &p) : 0;
  for (size_t i = 0; i < n; i++) {
    const rec *r = &s->rec[p[i].i];
    if (r->node[LEFT] < 0 && r->node[RIGHT] < 0 &&
        ties_to(s, eg_class_of(s->g, p[i]), side, unread, depth - 1))
      return true;
  }
  return false;
}

bool st_generic(const rule_tensor *t) {
  enum { LOOKED_AT = 4096, ENOUGH = 64 };
  double seen[ENOUGH];
  const int64_t step = t->numel / LOOKED_AT + 1;
  int64_t count = 0, distinct = 0;
  for (int64_t i = 0; i < t->numel && distinct < ENOUGH; i += step, count++) {
    const double x = rule_tensor_get(t, i);
    int64_t k = distinct;
    while (k > 0 && seen[k - 1] != x) k--;
    if (k == 0) seen[distinct++] = x;
  }
  return distinct > 1 && (distinct == ENOUGH || 2 * distinct >= count);
}

enum { TIE_DEPTH = 8 }; /* of the layout terms that relate leaves */

/* A parameter that is drawn. One of few numbers, or of one everywhere, tells little at its captured
 * value: such a one is drawn even where another leaf is related to it. */
static bool may_be_lonely(const state *s, int side, size_t i) {
  const synth_node *n = &s->graph[side]->node[i];
  return n->kind == SYNTH_PARAMETER && s->rec[s->map[side][i].i].atom && st_generic(n->value[0]);
}

/* The other side holds these parameters, and reads them nowhere, but has some that are related to
 * nothing: it may have computed those of them when it was loaded. */
static bool mark_held_only(state *s, int side) {
  bool any = false;
  for (size_t i = 0; i < s->graph[side]->n_nodes; i++) {
    const eg_node *m;
    if (!may_be_lonely(s, side, i) || s->leaves.unread[side][i]) continue;
    const eg_class own = eg_class_of(s->g, s->map[side][i]);
    if (ties_to(s, own, !side, false, TIE_DEPTH)) continue;
    const size_t n = eg_class_nodes(s->g, own, &m);
    for (size_t k = 0; k < n; k++) s->rec[m[k].i].lonely = true;
    any = true;
  }
  return any;
}

/* Where both sides have parameters that no relation ties to the other, those of one may have been
 * computed from the other's when they were loaded (-exp(A_log), a norm's weight + 1, an adapter
 * merged into its weight), and are off by their storage's rounding. */
static void mark_lonely(state *s) {
  bool lonely[2] = {false, false};
  for (int side = 0; side < 2; side++)
    for (size_t i = 0; i < s->graph[side]->n_nodes; i++) {
      const eg_node e = s->map[side][i];
      if (s->leaves.keep_integers && s->graph[side]->node[i].kind == SYNTH_INPUT &&
          !rule_dtype_is_inexact(s->graph[side]->node[i].value[0]->dtype))
        s->rec[e.i].lonely = true;
      if (s->leaves.kept[side][i]) {
        s->rec[e.i].lonely = true;
        continue;
      }
      if (!may_be_lonely(s, side, i)) continue;
      s->rec[e.i].lonely = !ties_to(s, eg_class_of(s->g, e), !side, true, TIE_DEPTH);
      lonely[side] |= s->rec[e.i].lonely && !s->leaves.unread[side][i];
    }
  const bool left = lonely[RIGHT] && mark_held_only(s, LEFT),
             right = lonely[LEFT] && mark_held_only(s, RIGHT);
  s->leaves.lonely_both = (lonely[LEFT] || left) && (lonely[RIGHT] || right);
}

/* No leaf that the e-node is made of lacks values. */
static bool ready(state *s, eg_node e) {
  for (size_t k = 0; k < eg_node_arity(s->g, e); k++) {
    const eg_class c = eg_node_child(s->g, e, k);
    const eg_node *m;
    const size_t n = eg_class_nodes(s->g, c, &m);
    if (st_rep(s, c).i != EG_NONE) continue;
    for (size_t i = 0; i < n; i++)
      if (s->rec[m[i].i].leaf || !ready(s, m[i])) return false;
  }
  return true;
}

/* The term that defines a leaf; EG_NONE: its class has values, or there is none. */
static eg_node definition(state *s, eg_class c) {
  const eg_node *m;
  const size_t n = eg_class_nodes(s->g, c, &m);
  for (size_t i = 0; i < n && st_rep(s, c).i == EG_NONE; i++)
    if (!s->rec[m[i].i].leaf) return m[i];
  return (eg_node){EG_NONE};
}

/* A leaf takes the values of its class where there are some, else of its definition, else its own.
 */
static iso_code draw_leaf(state *s, int side, size_t i, size_t ordinal, iso_error *err) {
  const synth_node *n = &s->graph[side]->node[i];
  const eg_node e = s->map[side][i];
  rec *r = &s->rec[e.i];
  iso_code c = ISO_OK;
  if (r->valued) return ISO_OK;
  eg_node rep = st_rep(s, eg_class_of(s->g, e));
  if (rep.i == EG_NONE && !r->atom) {
    rep = definition(s, eg_class_of(s->g, e));
    ISO_CHECK(rep.i != EG_NONE || r->konst); /* one that was joined unrun has its own value */
    if (r->konst && rep.i != EG_NONE) s->rec[rep.i].konst = true;
    if (r->param && s->rec[rep.i].param && !r->konst && st_large(&n->shape))
      c = define_later(s, rep, &n->shape, err);
    else if (rep.i != EG_NONE) c = st_value(s, rep, err);
    if (c) return c;
    r = &s->rec[e.i];
  }
  if (r->param && st_large(&n->shape) && (rep.i == EG_NONE || st_spare(s, rep)))
    return draw_later(s, e, rep, ordinal, err);
  if (r->konst) {
    r->cval = calloc(s->n_kept, sizeof *r->cval);
    if (!r->cval) return nomem(err);
    r->n_out = 1;
    for (size_t set = 0; set < s->n_kept && !c; set++)
      if (st_mask_source(s, side, i)) c = st_mask_value(s, side, i, set, &r->cval[set], err);
      else r->cval[set] = rule_tensor_ref(n->value[n->kind == SYNTH_INPUT ? set : 0]);
    if (c) return c;
  }
  if (rep.i != EG_NONE) return st_values_of(s, e, rep, err);
  rule_tensor **val = calloc(s->n_draws, sizeof *val);
  if (!val) return nomem(err);
  st_spread of = {0};
  for (size_t d = 0; d < s->n_draws && !c; d++) {
    if (d < s->n_sets) {
      c = rule_tensor_to_float64(r->konst ? r->cval[st_kept_set(s, d)]
                                          : n->value[n->kind == SYNTH_INPUT ? d : 0],
                                 &val[d], err);
    } else if (r->konst || r->lonely) val[d] = rule_tensor_ref(val[0]);
    else c = st_redraw(s, side, i, (st_stream){ordinal, d - s->n_sets}, &of, &val[d], err);
  }
  if (!c) c = st_set_values(s, e, val, err);
  for (size_t d = 0; d < s->n_draws; d++) rule_tensor_unref(val[d]);
  free(val);
  return c;
}

/* A kept input that differs from set to set (positions further on): constants then have a value for
 * every set. */
static bool kept_inputs_vary(const state *s) {
  for (int side = 0; side < 2; side++)
    for (size_t i = 0; i < s->graph[side]->n_nodes; i++) {
      const synth_node *n = &s->graph[side]->node[i];
      if (n->kind != SYNTH_INPUT || !s->rec[s->map[side][i].i].konst) continue;
      for (size_t set = 1; set < s->n_sets; set++)
        if (!rule_tensor_same(n->value[0], n->value[set])) return true;
    }
  return false;
}

/* A constant whose masks are read as something else is one of the e-graph's leaves. */
static iso_code value_source(state *s, int side, size_t i, iso_error *err) {
  const eg_node e = s->map[side][i];
  rec *r = &s->rec[e.i];
  if (r->valued) return ISO_OK;
  if (!(r->cval = calloc(s->n_kept, sizeof *r->cval))) return nomem(err);
  r->n_out = 1;
  iso_code c = ISO_OK;
  for (size_t set = 0; set < s->n_kept && !c; set++)
    c = st_mask_value(s, side, i, set, &r->cval[set], err);
  rule_tensor **val = calloc(s->n_draws, sizeof *val);
  if (!val && !c) c = nomem(err);
  for (size_t d = 0; d < s->n_draws && !c; d++)
    c = rule_tensor_to_float64(r->cval[st_kept_set(s, d)], &val[d], err);
  if (!c) c = st_set_values(s, e, val, err);
  for (size_t d = 0; val && d < s->n_draws; d++) rule_tensor_unref(val[d]);
  free(val);
  return c;
}

static iso_code value_sources(state *s, iso_error *err) {
  iso_code c = ISO_OK;
  for (int side = 0; side < 2 && !c; side++)
    for (size_t i = 0; i < s->graph[side]->n_nodes && !c; i++)
      if (s->graph[side]->node[i].kind == SYNTH_OP && st_mask_source(s, side, i))
        c = value_source(s, side, i, err);
  return c;
}

/* Those atoms, or those leaves that are made of others, whose values can be found now. Returns: in
 * `left` how many could not, of these. */
static iso_code draw_some(state *s, bool atoms, size_t *ordinal, size_t *left, iso_error *err) {
  *left = 0;
  for (int side = 0; side < 2; side++)
    for (size_t i = 0; i < s->graph[side]->n_nodes; i++) {
      const eg_node e = s->map[side][i];
      if (s->graph[side]->node[i].kind == SYNTH_OP || s->rec[e.i].atom != atoms ||
          s->rec[e.i].valued)
        continue;
      const eg_node def = definition(s, eg_class_of(s->g, e));
      if (!atoms && def.i != EG_NONE && !ready(s, def)) {
        ++*left;
        continue;
      }
      iso_code c = draw_leaf(s, side, i, (*ordinal)++, err);
      if (c)
        return iso_prefix(err, "%s: leaf \"%s\": ", s->graph[side]->path,
                          s->graph[side]->node[i].id);
    }
  return ISO_OK;
}

iso_code st_draw_leaves(state *s, iso_error *err) {
  size_t ordinal = 0, left, before = SIZE_MAX;
  mark_lonely(s);
  s->n_kept = kept_inputs_vary(s) ? s->n_sets : 1;
  /* Atoms first: definitions read them, and leaves that definitions define. */
  iso_code c = draw_some(s, true, &ordinal, &left, err);
  for (left = 1; left && !c; before = left) {
    c = draw_some(s, false, &ordinal, &left, err);
    ISO_CHECK(c || left < before);
  }
  return c ? c : value_sources(s, err);
}
