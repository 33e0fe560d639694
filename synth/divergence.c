/* Where two graphs part: on the draw that shows the outputs different, walk back from them, through what has no
 * counterpart of equal value on the other side, to the first operators all of whose arguments have one. Then the
 * reference's value is put in the place of the faulty one and the right graph runs on: what still differs is a
 * divergence of its own (architecture.md, section 2). Nothing found here enters a rule or a merge. */
#include "synth/synth_int.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_DIVERGENCES = 64, MAX_EXITS = 24 };

static iso_code nomem(iso_error *err) { return iso_fail(err, ISO_NOMEM, "out of memory"); }

/* ---- values and their counterparts ---- */

typedef struct feature { /* of one node's value */
  double moment[4];
  int64_t numel;
  uint32_t node;
} feature;

typedef struct parting {
  state *s;
  st_run run[2];        /* the values looked at; the right ones change as references are carried on */
  bool *changed;        /* right nodes whose values are no longer those of the witness */
  feature *by_size[2];  /* by the moment of |x| */
  size_t n_feature[2];
  uint8_t *seen[2];     /* per node: 1 in the region, 2 a root, 3 has a counterpart */
  bool rounded;         /* a constant was computed anew: what follows is off by its storage's rounding */
  bool gap;             /* the outputs agree: look for what no rule joined, not for values that differ */
} parting;

static rule_tensor *value_of(const parting *p, int side, uint32_t i) {
  const st_value_list *v = &p->run[side].value[i];
  return v->n == 1 ? v->v[0] : NULL;
}

static int by_moment(const void *a, const void *b) {
  const feature *x = a, *y = b;
  if (x->moment[1] != y->moment[1]) return x->moment[1] < y->moment[1] ? -1 : 1;
  return x->node < y->node ? -1 : x->node > y->node;
}

static iso_code index_values(parting *p, int side, iso_error *err) {
  const synth_graph *g = p->s->graph[side];
  free(p->by_size[side]);
  p->n_feature[side] = 0;
  if (!(p->by_size[side] = calloc(g->n_nodes + 1, sizeof *p->by_size[side]))) return nomem(err);
  for (uint32_t i = 0; i < g->n_nodes; i++) {
    const rule_tensor *v = value_of(p, side, i);
    if (!v) continue;
    feature *f = &p->by_size[side][p->n_feature[side]++];
    *f = (feature){.numel = v->numel, .node = i};
    st_moments(v, f->moment);
  }
  qsort(p->by_size[side], p->n_feature[side], sizeof *p->by_size[side], by_moment);
  return ISO_OK;
}

static bool same_but_ones(const rule_shape *a, const rule_shape *b) {
  uint32_t i = 0, j = 0;
  for (;;) {
    while (i < a->rank && a->dim[i] == 1) i++;
    while (j < b->rank && b->dim[j] == 1) j++;
    if (i == a->rank || j == b->rank) return i == a->rank && j == b->rank;
    if (a->dim[i++] != b->dim[j++]) return false;
  }
}

/* Equal element by element where the shapes are alike, else as far as order-free moments tell. */
static bool agree(const parting *p, const rule_tensor *a, const rule_tensor *b) {
  if (a->numel != b->numel || rule_dtype_is_float(a->dtype) != rule_dtype_is_float(b->dtype)) return false;
  if (same_but_ones(&a->shape, &b->shape)) return p->s->oracle->compare(p->s->oracle->ctx, a, b, p->s->o->rel_tol).equal;
  double ma[4], mb[4];
  st_moments(a, ma);
  st_moments(b, mb);
  return st_near_moments(ma, mb);
}

/* Some node of the other side has this value, as it is now. */
static bool value_occurs(const parting *p, int side, uint32_t i) {
  const rule_tensor *v = value_of(p, side, i);
  if (!v) return false;
  double m[4];
  st_moments(v, m);
  const double slack = 1e-7 * fabs(m[1]);
  const feature *f = p->by_size[!side];
  size_t lo = 0, hi = p->n_feature[!side];
  while (lo < hi) {
    const size_t mid = lo + (hi - lo) / 2;
    if (f[mid].moment[1] < m[1] - slack) lo = mid + 1;
    else hi = mid;
  }
  for (; lo < p->n_feature[!side] && f[lo].moment[1] <= m[1] + slack; lo++)
    if (f[lo].numel == v->numel && agree(p, v, value_of(p, !side, f[lo].node))) return true;
  return false;
}

static bool changed(const parting *p, int side, uint32_t i) { return side == RIGHT && p->changed[i]; }

/* Joined with a node of the other side, or in one group with it (equal up to layout on every draw) and equal here. */
static bool joined(const parting *p, int side, uint32_t i) {
  state *s = p->s;
  const eg_node *m, e = s->map[side][i];
  const size_t n = eg_class_nodes(s->g, eg_class_of(s->g, e), &m);
  for (size_t k = 0; k < n; k++) {
    const rec *r = &s->rec[m[k].i];
    if (r->node[!side] >= 0 && !changed(p, !side, (uint32_t)r->node[!side])) return true;
    if (r->group < 0 || p->gap) continue;
    const group *g = &s->group[r->group];
    for (size_t j = 0; j < g->n; j++) {
      const int32_t o = s->rec[g->member[j].i].node[!side];
      if (o < 0 || changed(p, !side, (uint32_t)o)) continue;
      const rule_tensor *a = value_of(p, side, i), *b = value_of(p, !side, (uint32_t)o);
      if (!a || !b || agree(p, a, b)) return true;
    }
  }
  return false;
}

static bool auxiliary(const state *s, eg_node e) { return s->rec[e.i].node[0] < 0 && s->rec[e.i].node[1] < 0; }

/* Constants: related through an auxiliary layout term on either side. */
static bool constant_related(state *s, eg_node e) {
  const eg_node *m;
  size_t n = eg_class_nodes(s->g, eg_class_of(s->g, e), &m);
  for (size_t i = 0; i < n; i++)
    if (auxiliary(s, m[i])) return true;
  n = eg_class_parents(s->g, eg_class_of(s->g, e), &m);
  for (size_t i = 0; i < n; i++)
    if (auxiliary(s, m[i]) && s->rec[m[i].i].konst) return true;
  return false;
}

static bool class_on(const state *s, eg_class c, int side) {
  const eg_node *m;
  const size_t n = eg_class_nodes(s->g, c, &m);
  for (size_t i = 0; i < n; i++)
    if (s->rec[m[i].i].node[side] >= 0) return true;
  return false;
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

static bool matched(const parting *p, int side, uint32_t i) {
  state *s = p->s;
  const eg_node e = s->map[side][i];
  const rule_tensor *v = value_of(p, side, i);
  if (v && v->numel == 0) return true; /* nothing in it can differ */
  if (p->gap && linked(s, e, !side)) return true;
  if (!changed(p, side, i) && joined(p, side, i)) return true;
  if (!p->gap && s->part[side][i] == PART_RIGHT) return true;
  if (s->rec[e.i].konst) return constant_related(s, e);
  /* Values that a carried reference brought about are compared as they are. */
  return p->changed[s->graph[RIGHT]->n_nodes] && value_occurs(p, side, i);
}

/* A leaf is explained where a relation ties it to the other side, and, of a rank, to the part that is this rank's. */
static bool leaf_explained(const parting *p, int side, uint32_t i) {
  state *s = p->s;
  const eg_node e = s->map[side][i], *q;
  if (!p->gap && s->part[side][i] == PART_WRONG) return false;
  if (s->replica[side][i] >= 0) return leaf_explained(p, side, (uint32_t)s->replica[side][i]);
  if (!s->rec[e.i].atom || s->rec[e.i].konst || joined(p, side, i)) return true;
  const size_t n = eg_class_parents(s->g, eg_class_of(s->g, e), &q);
  for (size_t k = 0; k < n; k++) /* an auxiliary term over it defines a leaf of the other side */
    if (auxiliary(s, q[k])) return true;
  return false;
}

/* ---- walking back ---- */

static bool transparent(const char *op) {
  static const char *const ops[] = {"aten::to.dtype", "aten::to.dtype_layout", "aten::_to_copy", "aten::view", "aten::reshape",
                                    "aten::_unsafe_view", "aten::alias", "aten::detach", "aten::contiguous", "aten::clone",
                                    "aten::unsqueeze", "aten::squeeze.dim", "aten::transpose.int", "aten::permute", "aten::t",
                                    "aten::expand", "aten::flatten.using_ints", "aten::dropout", "aten::lift_fresh_copy", "getitem"};
  for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
    if (strcmp(op, ops[i]) == 0) return true;
  return false;
}

/* A cast that changes what the numbers are (to integers, to bool, from complex to real) is an operator as others are. */
static bool casts(const synth_graph *g, uint32_t i) {
  const rule_term *t = g->node[i].call;
  const char *op = t->u.s;
  if (strncmp(op, "aten::to.", 9) != 0 && strcmp(op, "aten::_to_copy") != 0) return false;
  const rule_dtype from = t->n && t->child[0]->kind == RULE_VAR ? g->node[t->child[0]->u.i].dtype : g->node[i].dtype, to = g->node[i].dtype;
  return from != to && !(rule_dtype_is_float(from) && rule_dtype_is_float(to));
}

static bool passes(const synth_graph *g, uint32_t i) { return transparent(g->node[i].op) && !casts(g, i); }

static bool visit(parting *p, int side, uint32_t i);

/* ---- a rank's rows of a product, in an order of its own ---- */

typedef struct column {
  double sum, size; /* of its elements, of their magnitudes */
  int64_t at;
} column;

static int by_sum(const void *a, const void *b) {
  const column *x = a, *y = b;
  return (x->sum > y->sum) - (x->sum < y->sum);
}

static column *columns_of(const rule_tensor *t, int64_t n) {
  column *c = calloc((size_t)n + 1, sizeof *c);
  for (int64_t i = 0; c && i < t->numel; i++) {
    const double x = rule_tensor_get(t, i);
    c[i % n].sum += x;
    c[i % n].size += fabs(x);
    c[i % n].at = i % n;
  }
  return c;
}

static bool same_column(const rule_tensor *a, int64_t i, const rule_tensor *b, int64_t j, int64_t na, int64_t nb, double scale) {
  for (int64_t r = 0; r < a->numel / na; r++)
    if (!(fabs(rule_tensor_get(a, r * na + i) - rule_tensor_get(b, r * nb + j)) <= 1e-9 * scale)) return false;
  return true;
}

/* Every column of `v` is one of `whole`. */
static bool columns_occur(const rule_tensor *v, const rule_tensor *whole) {
  const int64_t n = v->shape.dim[v->shape.rank - 1], m = whole->shape.dim[whole->shape.rank - 1];
  if (n < 2 || m < n || v->numel / n != whole->numel / m) return false;
  column *a = columns_of(v, n), *b = columns_of(whole, m);
  bool all = a && b;
  if (all) qsort(b, (size_t)m, sizeof *b, by_sum);
  for (int64_t i = 0; i < n && all; i++) {
    int64_t lo = 0, hi = m;
    const double slack = 1e-9 * (a[i].size + 1e-300);
    while (lo < hi) {
      const int64_t mid = lo + (hi - lo) / 2;
      if (b[mid].sum < a[i].sum - slack) lo = mid + 1;
      else hi = mid;
    }
    bool found = false;
    for (; lo < m && b[lo].sum <= a[i].sum + slack && !found; lo++) found = same_column(v, i, whole, b[lo].at, n, m, a[i].size);
    all = found;
  }
  free(a);
  free(b);
  return all;
}

/* With several ranks: a product with rows of the other side's weight, whichever it holds. It is right; what takes it apart may not be. */
static bool selected(const parting *p, int side, uint32_t i) {
  const state *s = p->s;
  const synth_graph *g = s->graph[!side];
  const rule_tensor *v = value_of(p, side, i);
  if (s->n_peers == 0 || p->gap || !v || v->shape.rank < 2 || !rule_dtype_is_float(v->dtype) || v->numel == 0 ||
      strcmp(s->graph[side]->node[i].op, "aten::linear") != 0)
    return false;
  for (uint32_t k = 0; k < g->n_nodes; k++) {
    const rule_tensor *w = g->node[k].kind == SYNTH_OP && strcmp(g->node[k].op, "aten::linear") == 0 ? value_of(p, !side, k) : NULL;
    if (w && w->shape.rank >= 2 && w->numel > 0 && columns_occur(v, w)) return true;
  }
  return false;
}

static bool reads_operator(const synth_graph *g, const rule_term *t) {
  return t->n && t->child[0]->kind == RULE_VAR && g->node[t->child[0]->u.i].kind == SYNTH_OP;
}

static bool visit_args(parting *p, int side, const rule_term *t) {
  bool open = false;
  if (t->kind == RULE_VAR) return visit(p, side, (uint32_t)t->u.i);
  for (uint32_t k = 0; k < t->n; k++) open |= visit_args(p, side, t->child[k]);
  return open;
}

/* Returns: whether node i has no counterpart (belongs to the region). */
static bool visit(parting *p, int side, uint32_t i) {
  state *s = p->s;
  const synth_node *n = &s->graph[side]->node[i];
  const eg_node e = s->map[side][i];
  if (p->seen[side][i]) return p->seen[side][i] != 3;
  p->seen[side][i] = 3; /* has a counterpart */
  if (n->kind == SYNTH_OP && n->n_outputs == 1 && matched(p, side, i)) return false;
  if (n->kind != SYNTH_OP && leaf_explained(p, side, i)) return false;
  if (s->rec[e.i].konst && (n->dtype == RULE_BOOL || n->n_outputs != 1)) return false;
  p->seen[side][i] = 1;
  /* A constant is where it parts from the other side: what it is computed from need not occur there. */
  const bool end = n->kind != SYNTH_OP || (s->rec[e.i].konst && !(passes(s->graph[side], i) && reads_operator(s->graph[side], n->call)));
  if (end || !visit_args(p, side, n->call)) p->seen[side][i] = !end && selected(p, side, i) ? 3 : 2;
  return p->seen[side][i] != 3;
}

/* The earliest root; a transparent one only where nothing else is there; a constant only where nothing else is there. */
static int64_t pick(const parting *p, int side) {
  const state *s = p->s;
  const synth_graph *g = s->graph[side];
  for (int strict = 2; strict >= 0; strict--)
    for (uint32_t i = 0; i < g->n_nodes; i++) {
      if (p->seen[side][i] != 2) continue;
      if (strict >= 1 && g->node[i].kind == SYNTH_OP && passes(g, i)) continue;
      if (strict == 2 && s->rec[s->map[side][i].i].konst) continue;
      return i;
    }
  return -1;
}

/* ---- carrying the reference on ---- */

/* Live nodes that depend on `root`, itself included. Owns: malloc'ed. */
static bool *downstream(const parting *p, int side, int64_t root) {
  const synth_graph *g = p->s->graph[side];
  bool *flag = calloc(g->n_nodes + 1, 1);
  if (!flag) return NULL;
  flag[root] = true;
  for (size_t i = (size_t)root + 1; i < g->n_nodes; i++)
    if (g->node[i].kind == SYNTH_OP && p->s->map[side][i].i != EG_NONE && st_term_uses(g->node[i].call, flag)) flag[i] = true;
  return flag;
}

static bool output_apart(const parting *p, size_t o) {
  const state *s = p->s;
  if (p->gap) return !s->res->pair[o].equivalent;
  const rule_tensor *l = value_of(p, LEFT, s->graph[LEFT]->output[o].node), *r = value_of(p, RIGHT, s->graph[RIGHT]->output[s->right_of[o]].node);
  const double tol = p->rounded ? fmax(s->o->rel_tol, 1e-6) : s->o->rel_tol;
  return l && r && (l->numel != r->numel || !s->oracle->compare(s->oracle->ctx, l, r, tol).equal);
}

/* Where the regions end by nothing earlier: at the first outputs that differ. */
static void apart_at(const parting *p, int64_t end[2]) {
  const state *s = p->s;
  for (size_t o = 0; o < s->graph[LEFT]->n_outputs && end[LEFT] < 0; o++)
    if (output_apart(p, o)) end[LEFT] = s->graph[LEFT]->output[o].node, end[RIGHT] = s->graph[RIGHT]->output[s->right_of[o]].node;
}

static bool any_output_apart(const parting *p) {
  for (size_t o = 0; o < p->s->graph[LEFT]->n_outputs; o++)
    if (output_apart(p, o)) return true;
  return false;
}

/* The left value takes the right node's place: what follows is run again. */
static iso_code carry(const parting *p, uint32_t a, uint32_t b, const bool *after, st_run *out, iso_error *err) {
  const rule_tensor *x = value_of(p, LEFT, a), *y = value_of(p, RIGHT, b);
  rule_tensor *v;
  iso_code c = rule_tensor_new(x->dtype, &y->shape, &v, err);
  if (c) return c;
  memcpy(v->data, x->data, (size_t)x->numel * rule_dtype_size(x->dtype));
  rule_tensor **instead = calloc(p->s->graph[RIGHT]->n_nodes + 1, sizeof *instead);
  const st_carry with = {.from = &p->run[RIGHT], .again = after, .value = instead};
  if (!instead) c = nomem(err);
  else {
    instead[b] = v;
    c = st_run_graph(p->s, RIGHT, NULL, 0, 0, true, &with, out, err);
  }
  free(instead);
  rule_tensor_unref(v);
  return c;
}

static bool same_bits(const rule_tensor *a, const rule_tensor *b) {
  return a && b && a->numel == b->numel && a->dtype == b->dtype && memcmp(a->data, b->data, (size_t)a->numel * rule_dtype_size(a->dtype)) == 0;
}

static bool is_argument(const parting *p, int side, const rule_term *t, const rule_tensor *v) {
  if (t->kind == RULE_VAR) return same_bits(value_of(p, side, (uint32_t)t->u.i), v);
  for (uint32_t k = 0; k < t->n; k++)
    if (is_argument(p, side, t->child[k], v)) return true;
  return false;
}

/* What comes out is what went in: a view, a cast, a concatenation with nothing. */
static bool passes_on(const parting *p, int side, uint32_t i) {
  const synth_node *n = &p->s->graph[side]->node[i];
  return transparent(n->op) || is_argument(p, side, n->call, value_of(p, side, i));
}

/* Carrying on made the rest meet: every use of `b` in the region has a counterpart now, or the outputs agree. */
static bool helped(const parting *q, uint32_t b, const bool *region) {
  const synth_graph *g = q->s->graph[RIGHT];
  bool used = false, all = true;
  bool *flag = calloc(g->n_nodes + 1, 1);
  if (!flag) return false;
  flag[b] = true;
  for (size_t i = b + 1; i < g->n_nodes && all; i++) {
    if (!region[i] || g->node[i].kind != SYNTH_OP || !st_term_uses(g->node[i].call, flag)) continue;
    if (passes_on(q, RIGHT, (uint32_t)i)) flag[i] = true;
    else used = true, all = value_occurs(q, RIGHT, (uint32_t)i);
  }
  free(flag);
  return (used && all) || !any_output_apart(q);
}

/* Find where both regions end: a pair of nodes whose values should be one. `first`: the roots. In `next`: the
 * right graph's values with the reference carried on from there. */
static iso_code leave(const parting *p, const int64_t first[2], int64_t exit[2], st_run *next, bool *touched, iso_error *err) {
  state *s = p->s;
  bool *after[2] = {downstream(p, LEFT, first[LEFT]), downstream(p, RIGHT, first[RIGHT])}, *region = NULL;
  const size_t n_right = s->graph[RIGHT]->n_nodes;
  iso_code c = after[LEFT] && after[RIGHT] && (region = calloc(n_right + 1, 1)) ? ISO_OK : nomem(err);
  exit[LEFT] = exit[RIGHT] = -1;
  int tries = 0;
  for (size_t i = 0; i < n_right && !c; i++) region[i] = p->seen[RIGHT][i] == 1 || p->seen[RIGHT][i] == 2;
  for (uint32_t b = (uint32_t)first[RIGHT]; !c && b < n_right && exit[LEFT] < 0 && tries < MAX_EXITS; b++) {
    const rule_tensor *y = value_of(p, RIGHT, b);
    if (!after[RIGHT][b] || !region[b] || !y) continue;
    bool *again = downstream(p, RIGHT, b);
    if (!again) c = nomem(err);
    for (uint32_t a = (uint32_t)first[LEFT]; !c && a < s->graph[LEFT]->n_nodes && exit[LEFT] < 0 && tries < MAX_EXITS; a++) {
      const rule_tensor *x = value_of(p, LEFT, a);
      if (!after[LEFT][a] || (p->seen[LEFT][a] != 1 && p->seen[LEFT][a] != 2) || !x || x->dtype != y->dtype ||
          !same_but_ones(&x->shape, &y->shape))
        continue;
      tries++;
      parting q = *p;
      q.by_size[RIGHT] = NULL;
      q.run[RIGHT] = (st_run){0};
      c = carry(p, a, b, again, &q.run[RIGHT], err);
      if (c == ISO_TORCH || c == ISO_RANGE) {
        c = ISO_OK;
        continue;
      }
      if (!c && helped(&q, b, region)) {
        exit[LEFT] = a, exit[RIGHT] = b;
        memcpy(touched, again, n_right);
        *next = q.run[RIGHT];
      } else st_run_free(&q.run[RIGHT]);
    }
    free(again);
  }
  free(after[LEFT]);
  free(after[RIGHT]);
  free(region);
  return c;
}

/* ---- what is said of a divergence ---- */

/* Region nodes between the root and the exit (to the outputs where there is none). */
static uint32_t *region(const parting *p, int side, int64_t exit, size_t *n) {
  const state *s = p->s;
  const synth_graph *g = s->graph[side];
  const uint8_t *seen = p->seen[side];
  uint32_t *r = iso_arena_alloc(&s->res->arena, (g->n_nodes + 1) * sizeof *r);
  bool *flag = calloc(g->n_nodes + 1, 1);
  *n = 0;
  if (!r || !flag) {
    free(flag);
    return NULL;
  }
  if (exit < 0) memset(flag, 1, g->n_nodes);
  else {
    flag[exit] = true;
    for (size_t i = (size_t)exit + 1; i-- > 0;)
      if (flag[i] && (seen[i] == 1 || seen[i] == 2) && g->node[i].kind == SYNTH_OP) st_term_mark(g->node[i].call, flag);
  }
  for (uint32_t i = 0; i < g->n_nodes; i++)
    if (flag[i] && (seen[i] == 1 || seen[i] == 2)) r[(*n)++] = i;
  free(flag);
  return r;
}

/* The first consumer of a leaf that is live. */
static int64_t consumer(const state *s, int side, uint32_t leaf) {
  const synth_graph *g = s->graph[side];
  bool *flag = calloc(g->n_nodes + 1, 1);
  int64_t found = leaf;
  if (!flag) return leaf;
  flag[leaf] = true;
  for (size_t i = leaf + 1; i < g->n_nodes && found == leaf; i++)
    if (g->node[i].kind == SYNTH_OP && s->map[side][i].i != EG_NONE && st_term_uses(g->node[i].call, flag)) found = (int64_t)i;
  free(flag);
  return found;
}

/* The same operator over the same tensors, with another attribute. */
static const char *attribute_hint(const parting *p, const synth_node *l, const synth_node *r) {
  state *s = p->s;
  if (!l->call || !r->call || strcmp(l->call->u.s, r->call->u.s) != 0 || l->call->n != r->call->n) return NULL;
  for (uint32_t k = 0; k < l->call->n && !p->gap; k++) {
    const rule_term *a = l->call->child[k], *b = r->call->child[k];
    if ((a->kind == RULE_VAR) != (b->kind == RULE_VAR)) return NULL;
    const rule_tensor *x = a->kind == RULE_VAR ? value_of(p, LEFT, (uint32_t)a->u.i) : NULL, *y = a->kind == RULE_VAR ? value_of(p, RIGHT, (uint32_t)b->u.i) : NULL;
    if (x && y && !agree(p, x, y)) return NULL;
  }
  const rule_schema *sc = rule_schemas_find(s->schemas, l->call->u.s);
  for (uint32_t k = 0; k < l->call->n; k++) {
    const rule_term *a = l->call->child[k], *b = r->call->child[k];
    const bool la = a->kind != RULE_VAR && a->kind != RULE_LIST, lb = b->kind != RULE_VAR && b->kind != RULE_LIST;
    if (!la || !lb || rule_term_eq(a, b)) continue;
    char *ta = rule_term_print(a, s->schemas, NULL), *tb = rule_term_print(b, s->schemas, NULL);
    const char *hint = ta && tb ? iso_arena_printf(&s->res->arena, "%s is %s on the left and %s on the right",
                                                   sc && k < sc->n_args ? sc->arg[k].name : "an argument", ta, tb)
                                : NULL;
    free(ta);
    free(tb);
    return hint;
  }
  return NULL;
}

/* Same operator, its arguments in another order: which two. */
static const char *swap_hint(const parting *p, const synth_node *l, const synth_node *r) {
  state *s = p->s;
  if (!l->call || !r->call || strcmp(l->call->u.s, r->call->u.s) != 0 || l->call->n != r->call->n) return NULL;
  const rule_schema *sc = rule_schemas_find(s->schemas, l->call->u.s);
  for (uint32_t i = 0; i < l->call->n; i++)
    for (uint32_t j = i + 1; j < l->call->n; j++) {
      const rule_term *a = l->call->child[i], *b = l->call->child[j], *x = r->call->child[i], *y = r->call->child[j];
      if (a->kind != RULE_VAR || b->kind != RULE_VAR || x->kind != RULE_VAR || y->kind != RULE_VAR) continue;
      const rule_tensor *va = value_of(p, LEFT, (uint32_t)a->u.i), *vb = value_of(p, LEFT, (uint32_t)b->u.i),
                        *vx = value_of(p, RIGHT, (uint32_t)x->u.i), *vy = value_of(p, RIGHT, (uint32_t)y->u.i);
      if (!va || !vb || !vx || !vy || agree(p, va, vx) || agree(p, vb, vy) || !agree(p, va, vy) || !agree(p, vb, vx)) continue;
      if (sc && j < sc->n_args)
        return iso_arena_printf(&s->res->arena, "%s and %s are exchanged", sc->arg[i].name, sc->arg[j].name);
      return "two arguments are exchanged";
    }
  return NULL;
}

/* One number explains the difference: a factor, an offset, an order of the same elements. */
static const char *value_hint(const parting *p, const rule_tensor *a, const rule_tensor *b) {
  state *s = p->s;
  if (!a || !b || a->numel != b->numel || a->numel < 2 || !rule_dtype_is_float(a->dtype) || !same_but_ones(&a->shape, &b->shape)) return NULL;
  double ab = 0, aa = 0, off = 0, norm = 0;
  for (int64_t i = 0; i < a->numel; i++) {
    const double x = rule_tensor_get(a, i), y = rule_tensor_get(b, i);
    if (!(fabs(x) < 1e30) || !(fabs(y) < 1e30)) return NULL;
    ab += x * y;
    aa += x * x;
    off += (y - x) / (double)a->numel;
    norm = fmax(norm, fmax(fabs(x), fabs(y)));
  }
  const double factor = aa > 0 ? ab / aa : 0;
  bool scaled = factor != 0, shifted = true;
  for (int64_t i = 0; i < a->numel; i++) {
    const double x = rule_tensor_get(a, i), y = rule_tensor_get(b, i);
    scaled &= fabs(y - factor * x) <= 1e-9 * norm;
    shifted &= fabs(y - x - off) <= 1e-9 * norm;
  }
  if (scaled && fabs(factor + 1) < 1e-9) return "the right has the other sign";
  if (scaled) return iso_arena_printf(&s->res->arena, "the right is %.9g times the left", factor);
  if (shifted) return iso_arena_printf(&s->res->arena, "the right is the left %c %.9g", off < 0 ? '-' : '+', fabs(off));
  double ma[4], mb[4];
  st_moments(a, ma);
  st_moments(b, mb);
  return st_near_moments(ma, mb) ? "the right has the elements of the left in another order" : NULL;
}

static const char *leaf_hint(const parting *p, int side, int64_t i) {
  const state *s = p->s;
  const synth_graph *g = s->graph[side];
  if (s->part[side][i] == PART_WRONG)
    return iso_arena_printf(&s->res->arena, "%s is not the part that its rank should hold; first used by \"%s\"", g->node[i].name,
                            g->node[consumer(s, side, (uint32_t)i)].id);
  return iso_arena_printf(&s->res->arena, "no leaf of the %s has the values of %s; first used by \"%s\"", side == LEFT ? "right" : "left",
                          g->node[i].name, g->node[consumer(s, side, (uint32_t)i)].id);
}

static const char *operator_hint(const parting *p, const synth_node *l, const synth_node *r) {
  if (l->kind != SYNTH_OP || r->kind != SYNTH_OP || strcmp(l->op, r->op) == 0) return NULL;
  return iso_arena_printf(&p->s->res->arena, "%s on the left, %s on the right", l->op, r->op);
}

static void measure(const parting *p, const rule_tensor *x, const rule_tensor *y, synth_divergence *d) {
  if (!x || !y || x->numel != y->numel) return;
  const rule_diff df = p->s->oracle->compare(p->s->oracle->ctx, x, y, p->s->o->rel_tol);
  d->max_abs = df.max_abs;
  d->max_rel = df.max_rel;
  d->index = df.index;
  d->shape = x->shape;
}

static const char *hint(const parting *p, const synth_divergence *d, const rule_tensor *x, const rule_tensor *y) {
  const synth_node *l = &p->s->graph[LEFT]->node[d->left], *r = &p->s->graph[RIGHT]->node[d->right];
  const char *h = attribute_hint(p, l, r);
  if (!h) h = swap_hint(p, l, r);
  if (!h && l->kind != SYNTH_OP) h = leaf_hint(p, LEFT, d->left);
  if (!h && r->kind != SYNTH_OP) h = leaf_hint(p, RIGHT, d->right);
  if (!h) h = value_hint(p, x, y);
  if (!h) h = operator_hint(p, l, r);
  return h;
}

/* ---- which operator it was ---- */

enum { MAX_SUSPECTS = 80 };

/* The region, and what it reads through constants and operators that only pass values on; `levels` more of what those
 * read. Owns: malloc'ed. */
static bool *around(const parting *p, int side, const uint32_t *node, size_t n, int levels) {
  const state *s = p->s;
  const synth_graph *g = s->graph[side];
  bool *flag = calloc(g->n_nodes + 1, 1);
  uint8_t *read = calloc(g->n_nodes + 1, 1); /* how many levels away from the region, plus 1 */
  bool *args = calloc(g->n_nodes + 1, 1);
  if (flag && read && args) {
    for (size_t i = 0; i < n; i++) flag[node[i]] = true;
    for (size_t i = g->n_nodes; i-- > 0;) {
      if (g->node[i].kind != SYNTH_OP || s->map[side][i].i == EG_NONE) continue;
      int far = flag[i] ? 0 : read[i];
      if (!flag[i] && !read[i]) continue;
      if (!flag[i] && (s->rec[s->map[side][i].i].konst || passes_on(p, side, (uint32_t)i))) far--;
      if (far > levels) continue;
      flag[i] = true;
      memset(args, 0, g->n_nodes);
      st_term_mark(g->node[i].call, args);
      for (size_t k = 0; k < i; k++)
        if (args[k] && (!read[k] || read[k] > far + 1)) read[k] = (uint8_t)(far + 1);
    }
  }
  free(read);
  free(args);
  return flag;
}

/* What only passes a value on is not where it went wrong: the operator above that made it, if the other side has no such value; else `node`. */
static uint32_t maker(const parting *p, int side, uint32_t node) {
  const synth_graph *g = p->s->graph[side];
  for (uint32_t at = node; passes(g, at);) {
    const rule_term *call = g->node[at].call;
    if (call->n == 0 || call->child[0]->kind != RULE_VAR) return node;
    at = (uint32_t)call->child[0]->u.i;
    if (g->node[at].kind != SYNTH_OP || !value_of(p, side, at) || value_occurs(p, side, at)) return node;
    if (!passes(g, at)) return at;
  }
  return node;
}

static bool integer_constant(const state *s, int side, uint32_t i) {
  const rule_dtype t = s->graph[side]->node[i].dtype;
  return s->rec[s->map[side][i].i].konst && !rule_dtype_is_float(t) && !rule_dtype_is_complex(t);
}

/* What the other side has in the place of `node`, whose value should be `v`: a node of the region, else one of the same operator. */
static int64_t counterpart(const parting *p, int side, uint32_t node, const bool *other, const rule_tensor *v) {
  const synth_graph *g = p->s->graph[!side];
  for (int pass = 0; pass < 2; pass++)
    for (size_t i = g->n_nodes; i-- > 0;) {
      const rule_tensor *w = g->node[i].kind == SYNTH_OP || !pass ? value_of(p, !side, (uint32_t)i) : NULL;
      if (!w || (pass ? strcmp(g->node[i].op, p->s->graph[side]->node[node].op) != 0 : !other[i])) continue;
      if (agree(p, v, w) && !(side == RIGHT && !pass && g->node[i].kind == SYNTH_OP && transparent(g->node[i].op))) return (int64_t)i;
    }
  return -1;
}

/* A leaf that was given other values than it should have: nothing else reads it. */
static bool faulty_leaf(const parting *p, int side, int64_t leaf, uint32_t reader) {
  const state *s = p->s;
  const synth_graph *g = s->graph[side];
  bool *flag = calloc(g->n_nodes + 1, 1);
  bool only = flag && leaf >= 0 && g->node[leaf].kind == SYNTH_PARAMETER && !joined(p, side, (uint32_t)leaf);
  if (only) flag[leaf] = true;
  for (uint32_t i = 0; i < g->n_nodes && only; i++)
    only = i == reader || g->node[i].kind != SYNTH_OP || s->map[side][i].i == EG_NONE || !st_term_uses(g->node[i].call, flag);
  free(flag);
  return only;
}

/* The change on `side` that explains the divergence. Puts its node into d and, for the right, the repaired values into `next`.
 * `integers`: only of what a table is read at. */
static iso_code explain_by_repair(const parting *p, int side, bool integers, const int64_t exit[2], synth_divergence *d, st_run *next, bool *touched,
                                  bool *found, iso_error *err) {
  state *s = p->s;
  const synth_graph *g = s->graph[side];
  const uint32_t *own_region = side == LEFT ? d->left_region : d->right_region, *other_region = side == LEFT ? d->right_region : d->left_region;
  const size_t n_own = side == LEFT ? d->n_left_region : d->n_right_region, n_other = side == LEFT ? d->n_right_region : d->n_left_region;
  bool *own = around(p, side, own_region, n_own, 0), *wide = around(p, side, own_region, n_own, 3), *other = around(p, !side, other_region, n_other, 0);
  bool *stop = calloc(g->n_nodes + 1, 1);
  uint32_t suspect[2 * MAX_SUSPECTS + 1], model = 0;
  iso_code c = own && other && wide && stop ? ISO_OK : nomem(err);
  st_repair_task task = {.side = side, .run = &p->run[side], .other_run = &p->run[!side], .suspect = suspect, .other_region = other};
  for (size_t i = 0; i < g->n_nodes && !c; i++) stop[i] = !own[i];
  const int64_t odd = c || integers || exit[side] < 0 ? -1 : st_odd_one_out(s, side, (uint32_t)exit[side], stop, &model);
  size_t n = 0;
  if (odd >= 0) suspect[n++] = (uint32_t)odd;
  task.n_suspects[0] = n;
  for (uint32_t i = 0; i < g->n_nodes && !c && task.n_suspects[1] < MAX_SUSPECTS; i++)
    if (own[i] && (!integers || integer_constant(s, side, i))) suspect[n++] = i, task.n_suspects[1]++;
  for (uint32_t i = 0; i < g->n_nodes && !c && task.n_suspects[2] < MAX_SUSPECTS; i++)
    if (wide[i] && !own[i] && (!integers || integer_constant(s, side, i))) suspect[n++] = i, task.n_suspects[2]++;
  int64_t goal[2] = {exit[LEFT], exit[RIGHT]};
  apart_at(p, goal);
  task.goal = (uint32_t)goal[side];
  task.want = goal[!side] < 0 ? NULL : value_of(p, !side, (uint32_t)goal[!side]);
  st_repair_result r = {0};
  if (!c && task.want) c = st_repair(s, &task, &r, err);
  *found = r.found;
  if (r.found) {
    *(side == LEFT ? &d->left : &d->right) = maker(p, side, r.node);
    d->hint = side == LEFT ? iso_arena_printf(&s->res->arena, "on the left %s", r.what) : r.what;
    const int64_t partner = counterpart(p, side, r.node, other, r.instead[r.node]);
    if (partner >= 0) *(side == LEFT ? &d->right : &d->left) = partner;
    if (side == RIGHT && r.leaf >= 0 && faulty_leaf(p, side, r.operand, r.node)) {
      d->left = r.leaf;
      d->right = r.operand;
      d->hint = iso_arena_printf(&s->res->arena, "%s does not have the values of %s; first used by \"%s\"", g->node[r.operand].name,
                                 s->graph[!side]->node[r.leaf].name, g->node[r.node].id);
    }
    /* A constant computed anew is not rounded as its storage is: what reads it takes the reference instead. */
    if (side == RIGHT && !c && !(s->rec[s->map[RIGHT][r.node].i].konst && next->value)) {
      bool *again = calloc(g->n_nodes + 1, 1);
      const st_carry with = {.from = &p->run[RIGHT], .again = again, .value = r.instead};
      if (!again) c = nomem(err);
      for (size_t i = 0; i < g->n_nodes && !c; i++)
        again[i] = r.instead[i] || (g->node[i].kind == SYNTH_OP && s->map[side][i].i != EG_NONE && st_term_uses(g->node[i].call, again));
      st_run repaired;
      if (!c && !st_run_graph(s, RIGHT, NULL, 0, 0, true, &with, &repaired, err)) {
        st_run_free(next);
        *next = repaired;
        memcpy(touched, again, g->n_nodes);
      }
      free(again);
    }
    for (size_t i = 0; i < g->n_nodes; i++) rule_tensor_unref(r.instead[i]);
    free(r.instead);
  }
  if (!c && !r.found && odd >= 0 && side == RIGHT) {
    *found = true;
    d->right = odd;
    d->hint = iso_arena_printf(&s->res->arena, "unlike \"%s\" (%s), its counterpart in %s", g->node[model].id, g->node[model].op,
                               g->node[model].scope && *g->node[model].scope ? g->node[model].scope : "the same graph");
  }
  free(own);
  free(wide);
  free(other);
  free(stop);
  return c;
}

/* ---- all of them ---- */

static bool odd_table(const parting *p, int side, uint32_t i) {
  state *s = p->s;
  const synth_node *d = &s->graph[side]->node[i];
  const eg_node e = s->map[side][i];
  return s->rec[e.i].konst && rule_dtype_is_float(d->dtype) && d->n_outputs == 1 && value_of(p, side, i) && value_of(p, side, i)->numel > 1 && !joined(p, side, i) &&
         !constant_related(s, e);
}

/* A constant that the region reads as it is and that the other side does not have: the first operator that computes it, -1 if there is none. */
static int64_t odd_constant(const parting *p, int side, const uint32_t *node, size_t n, iso_code *c, iso_error *err) {
  state *s = p->s;
  const synth_graph *g = s->graph[side];
  bool *flag = calloc(g->n_nodes + 1, 1);
  int64_t found = -1;
  if (!flag) *c = nomem(err);
  bool any = false; /* what is read first: a later one may be the other side's in other words */
  for (size_t i = 0; i < n && flag && !any; i++) {
    if (g->node[node[i]].kind != SYNTH_OP) continue;
    if (s->rec[s->map[side][node[i]].i].konst) flag[node[i]] = true;
    else st_term_mark(g->node[node[i]].call, flag);
    for (size_t k = 0; k < g->n_nodes; k++) any |= flag[k] = flag[k] && odd_table(p, side, (uint32_t)k);
  }
  for (size_t i = g->n_nodes; flag && i-- > 0;) {
    if (!flag[i] || g->node[i].kind != SYNTH_OP) continue;
    found = (int64_t)i;
    st_term_mark(g->node[i].call, flag);
    for (size_t k = 0; k < i; k++) flag[k] = flag[k] && odd_table(p, side, (uint32_t)k);
  }
  free(flag);
  while (found >= 0) { /* what took a part of a table is not what made it */
    const rule_term *call = g->node[found].call;
    const bool part = transparent(call->u.s) || strncmp(call->u.s, "aten::chunk", 11) == 0 || strncmp(call->u.s, "aten::split", 11) == 0 ||
                      strncmp(call->u.s, "aten::slice", 11) == 0;
    if (!part || call->n == 0 || call->child[0]->kind != RULE_VAR || g->node[call->child[0]->u.i].kind != SYNTH_OP) break;
    found = call->child[0]->u.i;
  }
  return found;
}

static iso_code describe(parting *p, const int64_t root[2], synth_divergence *d, bool *more, iso_error *err) {
  state *s = p->s;
  const size_t n_right = s->graph[RIGHT]->n_nodes;
  int64_t exit[2] = {-1, -1};
  st_run next = {0};
  bool *touched = calloc(n_right + 1, 1), repaired = false;
  iso_code c = touched ? ISO_OK : nomem(err);
  const rule_tensor *x = value_of(p, LEFT, (uint32_t)root[LEFT]), *y = value_of(p, RIGHT, (uint32_t)root[RIGHT]);
  d->hint = hint(p, d, x, y);
  measure(p, x, y, d);
  if (!c && !p->gap) c = leave(p, root, exit, &next, touched, err);
  if (!c && exit[LEFT] >= 0 && d->max_abs == 0) measure(p, value_of(p, LEFT, (uint32_t)exit[LEFT]), value_of(p, RIGHT, (uint32_t)exit[RIGHT]), d);
  if (!c && !(d->left_region = region(p, LEFT, exit[LEFT], &d->n_left_region))) c = nomem(err);
  if (!c && !(d->right_region = region(p, RIGHT, exit[RIGHT], &d->n_right_region))) c = nomem(err);
  const synth_node *l = &s->graph[LEFT]->node[root[LEFT]], *r = &s->graph[RIGHT]->node[root[RIGHT]];
  const bool plain = r->kind != SYNTH_OP || l->kind != SYNTH_OP || attribute_hint(p, l, r) != NULL;
  int64_t constant[2] = {-1, -1};
  if (!c && !p->gap && !plain) {
    constant[LEFT] = odd_constant(p, LEFT, d->left_region, d->n_left_region, &c, err);
    constant[RIGHT] = odd_constant(p, RIGHT, d->right_region, d->n_right_region, &c, err);
  }
  /* Where a table is read comes before what it holds. */
  if (!c && constant[RIGHT] >= 0) c = explain_by_repair(p, RIGHT, true, exit, d, &next, touched, &repaired, err);
  if (!c && constant[LEFT] >= 0 && !repaired) c = explain_by_repair(p, LEFT, true, exit, d, &next, touched, &repaired, err);
  if (repaired) p->rounded = true;
  else if (constant[LEFT] >= 0 && constant[RIGHT] >= 0) {
    d->left = constant[LEFT];
    d->right = constant[RIGHT];
    d->hint = iso_arena_printf(&s->res->arena, "constants differ: the left has none with the values of \"%s\", the right none with those of \"%s\"",
                               s->graph[RIGHT]->node[constant[RIGHT]].id, s->graph[LEFT]->node[constant[LEFT]].id);
  } else if (!c && !p->gap && !plain && !repaired) {
    c = explain_by_repair(p, RIGHT, false, exit, d, &next, touched, &repaired, err);
    if (!c && !repaired) c = explain_by_repair(p, LEFT, false, exit, d, &next, touched, &repaired, err);
  }
  if (!c && !p->gap && s->o->keep_witness && s->res->n_divergences == 0) {
    int64_t end[2] = {exit[LEFT], exit[RIGHT]};
    apart_at(p, end);
    if (end[LEFT] >= 0) c = st_cut(s, p->run, end, d, err);
  }
  *more = false;
  if (!c && next.value) {
    for (size_t i = 0; i < n_right; i++) p->changed[i] |= touched[i];
    p->changed[n_right] = true;
    st_run_free(&p->run[RIGHT]);
    p->run[RIGHT] = next;
    next = (st_run){0};
    c = index_values(p, RIGHT, err);
    if (!c) c = st_mark_parts(s, p->run, err);
    *more = !c && any_output_apart(p);
  }
  st_run_free(&next);
  free(touched);
  return c;
}

static iso_code find_one(parting *p, synth_divergence *d, bool *more, iso_error *err) {
  state *s = p->s;
  int64_t root[2];
  *more = false;
  for (int side = 0; side < 2; side++) {
    const synth_graph *g = s->graph[side];
    memset(p->seen[side], 0, g->n_nodes + 1);
    for (size_t o = 0; o < s->graph[LEFT]->n_outputs; o++)
      if (output_apart(p, o)) visit(p, side, g->output[side == LEFT ? o : s->right_of[o]].node);
    root[side] = pick(p, side);
  }
  if (root[LEFT] < 0 && root[RIGHT] < 0 && p->changed[s->graph[RIGHT]->n_nodes]) return ISO_OK;
  for (int side = 0; side < 2; side++)
    if (root[side] < 0) root[side] = s->graph[side]->output[0].node;
  *d = (synth_divergence){.left = root[LEFT], .right = root[RIGHT], .index = -1};
  iso_code c = describe(p, root, d, more, err);
  bool known = false; /* one faulty operator that several places read */
  for (size_t i = 0; i < s->res->n_divergences; i++) known |= d->right == s->res->divergence[i].right;
  if (!known) s->res->n_divergences++;
  return c;
}

iso_code st_divergences(state *s, iso_error *err) {
  parting p = {.s = s};
  iso_code c = ISO_OK;
  synth_divergence *d = iso_arena_alloc(&s->res->arena, MAX_DIVERGENCES * sizeof *d);
  for (int side = 0; side < 2; side++)
    if (!(p.seen[side] = calloc(s->graph[side]->n_nodes + 1, 1))) c = nomem(err);
  if (!d || !(p.changed = calloc(s->graph[RIGHT]->n_nodes + 1, 1))) c = nomem(err);
  p.gap = s->res->verdict == SYNTH_UNDECIDED;
  if (!c && !s->witness[LEFT].value) c = st_run_draw(s, 0, err);
  p.run[LEFT] = s->witness[LEFT];
  p.run[RIGHT] = s->witness[RIGHT];
  s->witness[LEFT] = s->witness[RIGHT] = (st_run){0};
  if (!c) c = index_values(&p, LEFT, err);
  if (!c) c = index_values(&p, RIGHT, err);
  if (!c) c = st_mark_parts(s, p.run, err);
  bool more = s->graph[LEFT]->n_outputs > 0;
  s->res->divergence = d;
  for (size_t i = 0; i < MAX_DIVERGENCES && more && !c; i++) c = find_one(&p, &d[s->res->n_divergences], &more, err);
  for (int side = 0; side < 2; side++) {
    st_run_free(&p.run[side]);
    free(p.by_size[side]);
    free(p.seen[side]);
  }
  free(p.changed);
  return c;
}
