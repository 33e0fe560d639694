/* Masks of the two graphs (rules/masks.h): whether they may be read as minus infinity, and how near
 * to them other numbers come.
 *
 * Masks are read in the graph as the e-graph has it. Runs of a graph by itself keep its masks as
 * they were captured, so that a witness is one of the captured graph. Masks of one kind are read in
 * both graphs, or in none, since one e-node may stand for nodes of both. */
#include "synth/joint/joint.h"
#include "rules/operators.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct st_masks {
  size_t n;
  rule_mask_node *node;
  rule_tensor **fixed; /* what `node` borrows */
  rule_masks *of[ST_MASK_KINDS];
};

static iso_code nomem(iso_error *err) { return iso_fail(err, ISO_NOMEM, "out of memory"); }

static void one_free(st_masks *m) {
  for (int kind = 0; kind < ST_MASK_KINDS; kind++) rule_masks_free(m->of[kind]);
  for (size_t i = 0; m->fixed && i < m->n; i++) rule_tensor_unref(m->fixed[i]);
  free(m->fixed);
  free(m->node);
  *m = (st_masks){0};
}

void st_masks_free(state *s) {
  for (int side = 0; side < 2; side++) {
    for (size_t set = 0; s->masks.of[side] && set < s->n_sets; set++)
      one_free(&s->masks.of[side][set]);
    free(s->masks.of[side]);
    s->masks.of[side] = NULL;
  }
}

/* ---- the graph as rules/masks.h wants it ---- */

static iso_code describe(const state *s, int side, const bool *live, st_masks *m, iso_error *err) {
  const synth_graph *g = s->graph[side];
  m->n = g->n_nodes;
  m->node = calloc(g->n_nodes + 1, sizeof *m->node);
  m->fixed = calloc(g->n_nodes + 1, sizeof *m->fixed);
  if (!m->node || !m->fixed) return nomem(err);
  for (size_t i = 0; i < g->n_nodes; i++) {
    const synth_node *n = &g->node[i];
    m->node[i] =
        (rule_mask_node){.call = n->kind == SYNTH_OP ? s->constants.as_given[side][i].call : NULL,
                         .dtype = n->dtype,
                         .shape = &n->shape,
                         .live = live[i]};
  }
  for (size_t k = 0; k < g->n_outputs; k++) m->node[g->output[k].node].output = true;
  return ISO_OK;
}

/* ---- what is read, before anything has values ---- */

static bool has_half(const synth_graph *g, const bool *live) {
  for (size_t i = 0; i < g->n_nodes; i++)
    if (live[i] && g->node[i].dtype == RULE_F16) return true;
  return false;
}

static bool all_fixed(const st_masks *m, const rule_term *t) {
  if (t->kind == RULE_VAR) return m->fixed[t->u.i] != NULL;
  for (uint32_t k = 0; k < t->n; k++)
    if (!all_fixed(m, t->child[k])) return false;
  return true;
}

/* A node that cannot be run here is unknown: its masks, if it has any, are not read. */
static iso_code run_fixed(state *s, st_masks *m, size_t i, iso_error *err) {
  rule_tensor *out[MAX_OUT];
  size_t n = 0;
  iso_error why;
  const rule_term *call = m->node[i].call;
  if (rule_is_getitem(call->u.s)) return ISO_OK;
  const iso_code c = s->oracle->call(s->oracle->ctx, call, m->fixed, false, out, MAX_OUT, &n, &why);
  if (c == ISO_NOMEM) return nomem(err);
  if (c) return ISO_OK;
  if (n == 1) m->fixed[i] = out[0];
  else
    for (size_t k = 0; k < n; k++) rule_tensor_unref(out[k]);
  return ISO_OK;
}

static iso_code fix(state *s, int side, size_t set, st_masks *m, iso_error *err) {
  const synth_graph *g = s->graph[side];
  iso_code c = ISO_OK;
  for (size_t i = 0; i < m->n && !c; i++) {
    const synth_node *n = &g->node[i];
    if (!m->node[i].live) continue;
    if (n->kind != SYNTH_OP && s->rec[s->map[side][i].i].konst)
      m->fixed[i] = rule_tensor_ref(n->value[n->kind == SYNTH_INPUT ? set : 0]);
    else if (n->kind == SYNTH_OP && n->n_outputs == 1 && all_fixed(m, n->call))
      c = run_fixed(s, m, i, err);
    m->node[i].fixed = m->fixed[i];
  }
  return c;
}

/* The masks of one side on one set of inputs. */
static iso_code look_at(state *s, int side, size_t set, const bool *live, bool any[], bool vanish[],
                        iso_error *err) {
  st_masks *m = &s->masks.of[side][set];
  iso_code c = describe(s, side, live, m, err);
  if (!c) c = fix(s, side, set, m, err);
  for (int kind = 0; kind < ST_MASK_KINDS && !c; kind++) {
    if (kind == ST_MASK_OTHER && !s->masks.try_others) continue;
    c = rule_masks_new(s->oracle, m->node, m->n, kind == ST_MASK_HALF, &m->of[kind], err);
    if (c) break;
    any[kind] |= rule_masks_any(m->of[kind]);
    vanish[kind] &= rule_masks_vanish(m->of[kind], NULL);
  }
  return c;
}

iso_code st_find_masks(state *s, const bool *const live[2], iso_error *err) {
  static const char *const text[] = {
      "a mask's -65504, the least finite float16, is read as minus infinity",
      "a mask of the least finite number, or half of it, is read as minus infinity"};
  bool any[ST_MASK_KINDS] = {false}, vanish[ST_MASK_KINDS] = {true, true};
  const eg_node none = {EG_NONE};
  iso_code c = ISO_OK;
  for (int side = 0; side < 2 && !c && !s->masks.as_written; side++) {
    if (!s->masks.try_others && !has_half(s->graph[side], live[side])) continue;
    s->masks.of[side] = calloc(s->n_sets + 1, sizeof *s->masks.of[side]);
    if (!s->masks.of[side]) c = nomem(err);
    for (size_t set = 0; set < s->n_sets && !c; set++)
      c = look_at(s, side, set, live[side], any, vanish, err);
  }
  for (int kind = 0; kind < ST_MASK_KINDS && !c; kind++) {
    s->masks.read[kind] = any[kind] && vanish[kind];
    if (s->masks.read[kind] && !st_assume(s, RULE_ASSUMES_LITERAL, none, none, NULL, text[kind]))
      c = nomem(err);
  }
  return c;
}

/* The masks of a kind that are read. */
static const rule_masks *read_in(const st_mask_state *m, int side, size_t set, int kind) {
  return m->read[kind] && m->of[side] ? m->of[side][set].of[kind] : NULL;
}

bool st_masked(const state *s, int side, size_t i) {
  for (int kind = 0; kind < ST_MASK_KINDS; kind++) {
    const rule_masks *m = read_in(&s->masks, side, 0, kind);
    if (m && rule_masks_at(m, i)) return true;
  }
  return false;
}

bool st_mask_source(const state *s, int side, size_t i) {
  for (int kind = 0; kind < ST_MASK_KINDS; kind++) {
    const rule_masks *m = read_in(&s->masks, side, 0, kind);
    if (m && rule_masks_source(m, i)) return true;
  }
  return false;
}

iso_code st_mask_value(const state *s, int side, size_t i, size_t set, rule_tensor **out,
                       iso_error *err) {
  for (int kind = 0; kind < ST_MASK_KINDS; kind++) {
    const rule_masks *m = read_in(&s->masks, side, set, kind);
    if (m && rule_masks_source(m, i)) return rule_masks_value(m, i, out, err);
  }
  /* No mask on this set. */
  *out = rule_tensor_ref(s->masks.of[side][set].fixed[i]);
  return ISO_OK;
}

const rule_term *st_read_call(const state *s, int side, size_t i, iso_arena *a) {
  const rule_term *call = s->constants.as_given[side][i].call;
  for (int kind = 0; kind < ST_MASK_KINDS; kind++) {
    const rule_masks *m = read_in(&s->masks, side, 0, kind);
    const rule_term *as = m ? rule_masks_read(m, i, a) : call;
    if (as != call) return as;
  }
  return call;
}

/* ---- numbers beside them ---- */

static double largest_in(const rule_tensor *t, bool infinite) {
  double most = 0;
  for (int64_t i = 0; t && i < t->numel; i++) {
    const double x = fabs(rule_tensor_get(t, i));
    if (isinf(x) && infinite) continue;
    if (!(x <= most)) most = isnan(x) ? INFINITY : x;
  }
  return t ? most : INFINITY;
}

typedef struct among {
  state *s;
  int side;
  bool infinite;     /* masks of their own count as none */
  const st_run *run; /* of these values; NULL: of all draws */
} among;

static double largest_of(void *ctx, size_t i) {
  const among *a = ctx;
  state *s = a->s;
  double most = 0;
  if (a->run) return a->run->value[i].n ? largest_in(a->run->value[i].v[0], a->infinite) : INFINITY;
  const eg_node e = s->map[a->side][i];
  for (size_t d = 0; d < s->n_draws; d++)
    most = fmax(most, s->rec[e.i].valued ? largest_in(st_val(s, e, d), a->infinite) : INFINITY);
  return most;
}

iso_code st_near_masks(state *s, const st_run run[2], bool *near, iso_error *err) {
  iso_code c = ISO_OK;
  *near = false;
  for (int side = 0; side < 2 && !c; side++)
    for (int kind = 0; kind < ST_MASK_KINDS && !c; kind++) {
      among a = {s, side, kind == ST_MASK_OTHER, run ? &run[side] : NULL};
      const rule_masks *m = read_in(&s->masks, side, 0, kind);
      double most = 0;
      if (m) c = rule_masks_bound(m, largest_of, &a, &most, err);
      *near |= !(most <= (kind == ST_MASK_HALF ? RULE_MASK_F16_BOUND : RULE_MASK_BOUND));
    }
  return c;
}

static bool hides_row(const synth_graph *g, const st_run *run) {
  for (size_t i = 0; i < g->n_nodes; i++) {
    const rule_term *call = g->node[i].kind == SYNTH_OP ? g->node[i].call : NULL;
    for (uint32_t k = 0; call && call->kind == RULE_OP && k < call->n; k++) {
      if (call->child[k]->kind != RULE_VAR) continue;
      const st_value_list *v = &run->value[call->child[k]->u.i];
      if (v->n == 1 && rule_mask_hides_row(call, k, v->v[0])) return true;
    }
  }
  return false;
}

bool st_hides_row(const state *s, const st_run run[2]) {
  return hides_row(s->graph[LEFT], &run[LEFT]) || hides_row(s->graph[RIGHT], &run[RIGHT]);
}

void st_refuse_masks(const st_mask_state *m, rule_verdict *v) {
  if (!m->near || !(v->rests_on & RULE_RESTS_ON_MASKS)) return;
  v->status = RULE_UNKNOWN;
  snprintf(v->reason, sizeof v->reason,
           "proved with finite masks read as minus infinity, and numbers come near them");
}

/* The masks of the other dtypes are read by rules, each where it is used. */
static iso_code look_at_others(state *s, int side, const bool *live, bool *any, bool *vanish,
                               iso_error *err) {
  st_masks m = {0};
  iso_code c = describe(s, side, live, &m, err);
  for (size_t i = 0; i < s->graph[side]->n_nodes && !c; i++) {
    const rec *r = live[i] ? &s->rec[s->map[side][i].i] : NULL;
    if (r && r->cval && r->n_out == 1) m.node[i].fixed = r->cval[0];
  }
  rule_masks *of = NULL;
  if (!c) c = rule_masks_new(s->oracle, m.node, m.n, false, &of, err);
  double most = 0;
  if (!c && rule_masks_any(of)) {
    among a = {s, side, true, NULL};
    *any = true;
    *vanish &= rule_masks_vanish(of, NULL);
    c = rule_masks_bound(of, largest_of, &a, &most, err);
  }
  s->masks.near |= !(most <= RULE_MASK_BOUND);
  rule_masks_free(of);
  one_free(&m);
  return c;
}

/* ---- whether the graphs write one mask ---- */

enum { MAX_LEVELS = 8 };

/* The numbers that a graph writes as masks, minus infinity among them. */
typedef struct levels {
  double at[MAX_LEVELS];
  size_t n;
} levels;

/* Float16's -65504 is one where it is read. */
static void note_level(const state *s, levels *l, rule_dtype dtype, double x) {
  if (s->masks.read[ST_MASK_HALF] && x == RULE_MASK_F16) x = -(double)INFINITY;
  bool known = !rule_is_mask(dtype, x) && x != -(double)INFINITY;
  for (size_t i = 0; i < l->n; i++) known |= l->at[i] == x;
  if (!known && l->n < MAX_LEVELS) l->at[l->n++] = x;
}

static void note_literal_levels(const state *s, levels *l, const rule_term *t) {
  if (t->kind == RULE_FLOAT) note_level(s, l, RULE_F32, t->u.f);
  for (uint32_t k = 0; k < t->n; k++) note_literal_levels(s, l, t->child[k]);
}

static levels levels_of(const state *s, int side, const bool *live) {
  levels l = {.n = 0};
  for (size_t i = 0; i < s->graph[side]->n_nodes; i++) {
    const synth_node *n = &s->graph[side]->node[i];
    if (live[i] && n->kind == SYNTH_OP) note_literal_levels(s, &l, n->call);
    const rec *r = live[i] && n->kind != SYNTH_OP ? &s->rec[s->map[side][i].i] : NULL;
    const rule_tensor *v = r && r->cval && r->n_out == 1 ? r->cval[0] : NULL;
    for (int64_t k = 0; v && rule_dtype_is_float(v->dtype) && k < v->numel; k++)
      note_level(s, &l, v->dtype, rule_tensor_get(v, k));
  }
  return l;
}

static bool subset(const levels *a, const levels *b) {
  for (size_t i = 0; i < a->n; i++) {
    bool in = false;
    for (size_t k = 0; k < b->n; k++) in |= a->at[i] == b->at[k];
    if (!in) return false;
  }
  return true;
}

static bool levels_differ(const state *s, const bool *const live[2]) {
  const levels l = levels_of(s, LEFT, live[LEFT]), r = levels_of(s, RIGHT, live[RIGHT]);
  return !(subset(&l, &r) && subset(&r, &l));
}

iso_code st_other_masks(state *s, const bool *const live[2], iso_error *err) {
  bool any = false, vanish = true;
  iso_code c = ISO_OK;
  for (int side = 0; side < 2 && !c; side++)
    c = look_at_others(s, side, live[side], &any, &vanish, err);
  s->masks.others_vanish = !c && any && vanish && !s->masks.near;
  s->masks.others_differ = s->masks.others_vanish && levels_differ(s, live);
  return c;
}

/* ---- outputs ---- */

bool st_far_apart(const rule_tensor *l, const rule_tensor *r) {
  if (!rule_dtype_is_float(l->dtype) || !rule_dtype_is_float(r->dtype) || l->numel != r->numel)
    return false;
  for (int64_t i = 0; i < l->numel; i++) {
    const double x = rule_tensor_get(l, i), y = rule_tensor_get(r, i),
                 size = fmax(fabs(x), fabs(y));
    if (x == y || isnan(x) || isnan(y) || fmin(fabs(x), fabs(y)) < 1e30) continue;
    if (isinf(size) || fabs(x - y) > 1e-6 * size) return true;
  }
  return false;
}
