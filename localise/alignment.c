/* Two runs of the graphs side by side: which value has a counterpart on the other side, which
 * operators make none of their own, which outputs differ. */
#include "localise/alignment.h"
#include "rules/operators.h"
#include "synth/joint/joint.h"
#include "synth/search/search.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static iso_code nomem(iso_error *err) { return iso_fail(err, ISO_NOMEM, "out of memory"); }

/* ---- values ---- */

rule_tensor *lo_value(const parting *p, int side, uint32_t i) {
  const st_value_list *v = &p->run[side].value[i];
  return v->n == 1 ? v->v[0] : NULL;
}

static int by_size(const void *a, const void *b) {
  const feature *x = a, *y = b;
  if (x->numel != y->numel) return x->numel < y->numel ? -1 : 1;
  return x->node < y->node ? -1 : x->node > y->node;
}

static int by_moment(const void *a, const void *b) {
  const feature *x = a, *y = b;
  if (x->moment[1] != y->moment[1]) return x->moment[1] < y->moment[1] ? -1 : 1;
  return x->node < y->node ? -1 : x->node > y->node;
}

iso_code lo_index(parting *p, int side, iso_error *err) {
  const synth_graph *g = p->s->graph[side];
  free(p->by_size[side]);
  p->n_feature[side] = 0;
  if (!(p->by_size[side] = calloc(g->n_nodes + 1, sizeof *p->by_size[side]))) return nomem(err);
  for (uint32_t i = 0; i < g->n_nodes; i++) {
    const rule_tensor *v = lo_value(p, side, i);
    if (v) p->by_size[side][p->n_feature[side]++] = (feature){.numel = v->numel, .node = i};
  }
  qsort(p->by_size[side], p->n_feature[side], sizeof *p->by_size[side], by_size);
  return ISO_OK;
}

/* The first feature with `numel` elements or more. */
static size_t first_of_size(const parting *p, int side, int64_t numel) {
  size_t lo = 0, hi = p->n_feature[side];
  while (lo < hi) {
    const size_t mid = lo + (hi - lo) / 2;
    if (p->by_size[side][mid].numel < numel) lo = mid + 1;
    else hi = mid;
  }
  return lo;
}

/* Values of one size are measured when one of that size is asked for: most of a model's weights
 * never are, and they are most of its numbers. */
static void measure(const parting *p, int side, size_t from, size_t to) {
  feature *f = p->by_size[side];
  if (from == to || f[from].measured) return;
  for (size_t i = from; i < to; i++) {
    st_moments(lo_value(p, side, f[i].node), f[i].moment);
    f[i].measured = true;
  }
  qsort(f + from, to - from, sizeof *f, by_moment);
}

bool lo_same_but_ones(const rule_shape *a, const rule_shape *b) {
  uint32_t i = 0, j = 0;
  for (;;) {
    while (i < a->rank && a->dim[i] == 1) i++;
    while (j < b->rank && b->dim[j] == 1) j++;
    if (i == a->rank || j == b->rank) return i == a->rank && j == b->rank;
    if (a->dim[i++] != b->dim[j++]) return false;
  }
}

/* Equal element by element where the shapes are alike, else as far as order-free moments tell. */
bool lo_agree(const parting *p, const rule_tensor *a, const rule_tensor *b) {
  if (a->numel != b->numel || rule_dtype_is_float(a->dtype) != rule_dtype_is_float(b->dtype))
    return false;
  if (lo_same_but_ones(&a->shape, &b->shape))
    return p->s->oracle->compare(p->s->oracle->ctx, a, b, p->s->o->rel_tol).equal;
  double ma[4], mb[4];
  st_moments(a, ma);
  st_moments(b, mb);
  return st_near_moments(ma, mb);
}

/* Some node of the other side has this value, as it is now. */
bool lo_occurs(const parting *p, int side, uint32_t i) {
  const rule_tensor *v = lo_value(p, side, i);
  return v && lo_has(p, !side, v);
}

bool lo_has(const parting *p, int side, const rule_tensor *v) {
  double m[4];
  size_t lo = first_of_size(p, side, v->numel), hi = first_of_size(p, side, v->numel + 1);
  if (lo == hi) return false;
  measure(p, side, lo, hi);
  st_moments(v, m);
  const double slack = 1e-7 * fabs(m[1]);
  const feature *f = p->by_size[side];
  const size_t end = hi;
  while (lo < hi) {
    const size_t mid = lo + (hi - lo) / 2;
    if (f[mid].moment[1] < m[1] - slack) lo = mid + 1;
    else hi = mid;
  }
  for (; lo < end && f[lo].moment[1] <= m[1] + slack; lo++)
    if (lo_agree(p, v, lo_value(p, side, f[lo].node))) return true;
  return false;
}

static bool changed(const parting *p, int side, uint32_t i) {
  return side == RIGHT && p->changed[i];
}

/* Joined with a node of the other side, or in one group with it (equal up to layout on every draw)
 * and equal here. */
bool lo_joined(const parting *p, int side, uint32_t i) {
  state *s = p->s;
  const eg_node *m, e = s->map[side][i];
  const size_t n = eg_class_nodes(s->g, eg_class_of(s->g, e), &m);
  for (size_t k = 0; k < n; k++) {
    const rec *r = &s->rec[m[k].i];
    if (r->node[!side] >= 0 && !changed(p, !side, (uint32_t)r->node[!side])) return true;
    if (r->group < 0 || p->gap) continue;
    const group *g = &s->groups.of[r->group];
    for (size_t j = 0; j < g->n; j++) {
      const int32_t o = s->rec[g->member[j].i].node[!side];
      if (o < 0 || changed(p, !side, (uint32_t)o)) continue;
      const rule_tensor *a = lo_value(p, side, i), *b = lo_value(p, !side, (uint32_t)o);
      if (!a || !b || lo_agree(p, a, b)) return true;
    }
  }
  return false;
}
static bool auxiliary(const state *s, eg_node e) { return st_made(&s->rec[e.i]); }

/* Constants: related through an auxiliary layout term on either side. */
static bool class_related(const state *s, eg_node e) {
  const eg_node *m;
  size_t n = eg_class_nodes(s->g, eg_class_of(s->g, e), &m);
  for (size_t i = 0; i < n; i++)
    if (auxiliary(s, m[i])) return true;
  n = eg_class_parents(s->g, eg_class_of(s->g, e), &m);
  for (size_t i = 0; i < n; i++)
    if (auxiliary(s, m[i]) && s->rec[m[i].i].konst) return true;
  return false;
}

static const rule_tensor *constant_value(const state *s, uint32_t i) {
  const rec *r = &s->rec[i];
  return r->konst && r->tensor && r->valued && r->n_out == 1 ? r->val[s->witness.set] : NULL;
}

/* A table that each layer computes for itself need not be joined with the first one to be it. */
bool lo_constant_related(state *s, eg_node e) {
  const rule_tensor *v = constant_value(s, e.i);
  if (class_related(s, e)) return true;
  for (uint32_t i = 0; i < s->n_rec && v && v->numel > 1; i++) {
    const rule_tensor *w = i != e.i ? constant_value(s, i) : NULL;
    if (w && w->numel == v->numel && rule_tensor_same(v, w) && class_related(s, (eg_node){i}))
      return true;
  }
  return false;
}

static bool class_on(const state *s, eg_class c, int side) {
  const eg_node *m;
  const size_t n = eg_class_nodes(s->g, c, &m);
  for (size_t i = 0; i < n; i++)
    if (s->rec[m[i].i].node[side] >= 0) return true;
  return false;
}

enum { FAR = 6 };

/* Terms of ours lead from a class down to one of the other side, or up. */
static bool tied_below(const state *s, eg_class c, int other, int depth) {
  const eg_node *m;
  const size_t n = eg_class_nodes(s->g, c, &m);
  if (class_on(s, c, other)) return true;
  for (size_t i = 0; i < n && depth; i++)
    for (size_t k = 0; auxiliary(s, m[i]) && k < eg_node_arity(s->g, m[i]); k++)
      if (tied_below(s, eg_node_child(s->g, m[i], k), other, depth - 1)) return true;
  return false;
}

static bool tied_above(const state *s, eg_class c, int other, int depth) {
  const eg_node *m;
  const size_t n = eg_class_parents(s->g, c, &m);
  if (class_on(s, c, other)) return true;
  for (size_t i = 0; i < n && depth; i++)
    if (auxiliary(s, m[i]) && tied_above(s, eg_class_of(s->g, m[i]), other, depth - 1)) return true;
  return false;
}

bool lo_constant_tied(const state *s, eg_node e, int other) {
  return tied_below(s, eg_class_of(s->g, e), other, FAR) ||
         tied_above(s, eg_class_of(s->g, e), other, FAR);
}

/* Joined up to a layout term. */
static bool linked(state *s, eg_node e, int other) {
  const eg_node *m;
  size_t n = eg_class_nodes(s->g, eg_class_of(s->g, e), &m);
  for (size_t i = 0; i < n; i++)
    if (auxiliary(s, m[i]))
      for (size_t k = 0; k < eg_node_arity(s->g, m[i]); k++)
        if (class_on(s, eg_node_child(s->g, m[i], k), other)) return true;
  n = eg_class_parents(s->g, eg_class_of(s->g, e), &m);
  for (size_t i = 0; i < n; i++)
    if (auxiliary(s, m[i]) && class_on(s, eg_class_of(s->g, m[i]), other)) return true;
  return false;
}

/* A cast that leaves the imaginary part out, or a view of one: its result is a part of a table of
 * the other side, and yet no counterpart. */
static bool drops_imaginary(const synth_graph *g, uint32_t i) {
  for (;;) {
    const synth_node *n = &g->node[i];
    const rule_term *x = n->kind == SYNTH_OP && n->call->n ? n->call->child[0] : NULL;
    if (!x || x->kind != RULE_VAR || !lo_transparent(n->op)) return false;
    const bool cast = rule_operator_of(n->op)->cast;
    if (cast && rule_dtype_is_complex(g->node[x->u.i].dtype) && !rule_dtype_is_complex(n->dtype))
      return true;
    i = (uint32_t)x->u.i;
  }
}

/* A view of a leaf that is not the part that its rank should hold. */
static bool views_wrong_leaf(const parting *p, int side, uint32_t i) {
  const synth_node *n = &p->s->graph[side]->node[i];
  const rule_term *x = n->call->n ? n->call->child[0] : NULL;
  return x && x->kind == RULE_VAR && p->s->ranks.part[side][x->u.i] == PART_WRONG &&
         p->s->graph[side]->node[x->u.i].kind != SYNTH_OP && lo_passes(p->s->graph[side], i);
}

bool lo_matched(const parting *p, int side, uint32_t i) {
  state *s = p->s;
  const eg_node e = s->map[side][i];
  const rule_tensor *v = lo_value(p, side, i);
  if (v && v->numel == 0) return true; /* nothing in it can differ */
  if (p->gap && linked(s, e, !side)) return true;
  if (!p->gap && views_wrong_leaf(p, side, i)) return false;
  if (!p->gap && s->rec[e.i].konst && drops_imaginary(s->graph[side], i)) return false;
  if (!changed(p, side, i) && lo_joined(p, side, i)) return true;
  if (!p->gap && s->ranks.part[side][i] == PART_RIGHT) return true;
  if (s->rec[e.i].konst) return lo_constant_related(s, e);
  /* Values that a carried reference brought about are compared as they are. */
  return p->changed[s->graph[RIGHT]->n_nodes] && lo_occurs(p, side, i);
}

/* A leaf is explained where a relation ties it to the other side, and, of a rank, to the part that
 * is this rank's. */
bool lo_leaf_explained(const parting *p, int side, uint32_t i) {
  state *s = p->s;
  const eg_node e = s->map[side][i], *q;
  if (!p->gap && s->ranks.part[side][i] == PART_WRONG) return false;
  if (s->leaves.replica[side][i] >= 0)
    return lo_leaf_explained(p, side, (uint32_t)s->leaves.replica[side][i]);
  if (!s->rec[e.i].atom || s->rec[e.i].konst || lo_joined(p, side, i)) return true;
  const size_t n = eg_class_parents(s->g, eg_class_of(s->g, e), &q);
  for (size_t k = 0; k < n; k++) /* an auxiliary term over it defines a leaf of the other side */
    if (auxiliary(s, q[k])) return true;
  return false;
}

bool lo_in_region(const parting *p, int side, uint32_t i) {
  return p->seen[side][i] == 1 || p->seen[side][i] == 2;
}

/* ---- operators that make no value ---- */

bool lo_transparent(const char *op) {
  const rule_operator *o = rule_operator_of(op);
  return o->identity || o->rearranges || o->cast || rule_is_getitem(op);
}

bool lo_takes_part(const char *op) {
  const rule_operator *o = rule_operator_of(op);
  return o->part || o->table || rule_is_getitem(op);
}

/* A cast that changes numbers (to integers, to bool, from complex to real) is an operator like
 * others. */
static bool casts(const synth_graph *g, uint32_t i) {
  const rule_term *t = g->node[i].call;
  const char *op = t->u.s;
  if (!rule_operator_of(op)->cast) return false;
  const rule_dtype from = t->n && t->child[0]->kind == RULE_VAR ? g->node[t->child[0]->u.i].dtype
                                                                : g->node[i].dtype,
                   to = g->node[i].dtype;
  return from != to && !(rule_dtype_is_float(from) && rule_dtype_is_float(to));
}
bool lo_passes(const synth_graph *g, uint32_t i) {
  return lo_transparent(g->node[i].op) && !casts(g, i);
}

static bool same_bits(const rule_tensor *a, const rule_tensor *b) {
  return a && b && a->numel == b->numel && a->dtype == b->dtype &&
         memcmp(a->data, b->data, (size_t)a->numel * rule_dtype_size(a->dtype)) == 0;
}

static bool is_argument(const parting *p, int side, const rule_term *t, const rule_tensor *v) {
  if (t->kind == RULE_VAR) return same_bits(lo_value(p, side, (uint32_t)t->u.i), v);
  for (uint32_t k = 0; k < t->n; k++)
    if (is_argument(p, side, t->child[k], v)) return true;
  return false;
}

/* Whether the result is the operand: a view, a cast, a concatenation with nothing. */
bool lo_passes_on(const parting *p, int side, uint32_t i) {
  const synth_node *n = &p->s->graph[side]->node[i];
  return lo_transparent(n->op) || is_argument(p, side, n->call, lo_value(p, side, i));
}
/* ---- outputs ---- */

/* The side's outputs once more, with roundings disturbed: how far each moves, at least. */
static iso_code shake(parting *p, int side, uint64_t stream, const bool *again, iso_error *err) {
  enum { MARGIN = 100 };
  const synth_graph *g = p->s->graph[side];
  rule_tensor **none = calloc(g->n_nodes + 1, sizeof *none);
  st_run run = {0};
  if (!none) return nomem(err);
  const st_carry with = {.from = &p->run[side], .again = again, .value = none};
  const st_run_how how = {
      .noise = 4 * DBL_EPSILON, .stream = stream, .keep_all = true, .with = &with};
  const iso_code c = st_run_graph(p->s, side, NULL, &how, &run, err);
  for (size_t o = 0; !c && o < p->s->graph[LEFT]->n_outputs; o++) {
    const uint32_t at = g->output[side == LEFT ? o : p->s->right_of[o]].node;
    const rule_tensor *x = lo_value(p, side, at),
                      *y = run.value[at].n == 1 ? run.value[at].v[0] : NULL;
    for (int64_t i = 0; x && y && i < x->numel && i < y->numel; i++) {
      const double by = MARGIN * fabs(rule_tensor_get(x, i) - rule_tensor_get(y, i));
      if (by > p->slack[o]) p->slack[o] = by;
    }
  }
  if (!c) st_run_free(&run);
  free(none);
  return c == ISO_NOMEM ? c : ISO_OK;
}

iso_code lo_find_slack(parting *p, iso_error *err) {
  enum { SHAKES = 2 };
  const size_t n = p->s->graph[LEFT]->n_outputs;
  iso_code c = (p->slack = calloc(n + 1, sizeof *p->slack)) ? ISO_OK : nomem(err);
  if (p->gap || n < 2) return c;
  for (int side = 0; side < 2 && !c; side++) {
    const synth_graph *g = p->s->graph[side];
    bool *again = calloc(g->n_nodes + 1, 1);
    if (!again) return nomem(err);
    for (size_t i = 0; i < g->n_nodes; i++)
      again[i] = g->node[i].kind == SYNTH_OP && p->s->map[side][i].i != EG_NONE;
    for (uint64_t k = 0; k < SHAKES && !c; k++) c = shake(p, side, k, again, err);
    free(again);
  }
  if (!c && !lo_any_output_apart(p)) memset(p->slack, 0, n * sizeof *p->slack);
  return c;
}

bool lo_output_apart(const parting *p, size_t o) {
  const state *s = p->s;
  if (p->gap) return !s->res->pair[o].equivalent;
  const rule_tensor *l = lo_value(p, LEFT, s->graph[LEFT]->output[o].node),
                    *r = lo_value(p, RIGHT, s->graph[RIGHT]->output[s->right_of[o]].node);
  const double tol = p->rounded ? fmax(s->o->rel_tol, 1e-6) : s->o->rel_tol;
  if (!l || !r || l->numel != r->numel) return l && r;
  const rule_diff d = s->oracle->compare(s->oracle->ctx, l, r, tol);
  return !d.equal && !(d.max_abs <= p->slack[o]);
}

/* Where the regions end by nothing earlier: at the first outputs that differ. */
void lo_apart_at(const parting *p, int64_t end[2]) {
  const state *s = p->s;
  for (size_t o = 0; o < s->graph[LEFT]->n_outputs && end[LEFT] < 0; o++)
    if (lo_output_apart(p, o))
      end[LEFT] = s->graph[LEFT]->output[o].node,
      end[RIGHT] = s->graph[RIGHT]->output[s->right_of[o]].node;
}

bool lo_any_output_apart(const parting *p) {
  for (size_t o = 0; o < p->s->graph[LEFT]->n_outputs; o++)
    if (lo_output_apart(p, o)) return true;
  return false;
}
