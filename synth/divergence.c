/* Where two graphs part: on the draw that shows the outputs different, walk back from them, through what has no
 * counterpart of equal value on the other side, to the first operators all of whose arguments have one. Then the
 * reference's value is put in the place of the faulty one and the right graph runs on: what still differs is a
 * divergence of its own (architecture.md, section 2). Nothing found here enters a rule or a merge. */
#include "synth/parting.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_DIVERGENCES = 64, MAX_EXITS = 24 };

static iso_code nomem(iso_error *err) { return iso_fail(err, ISO_NOMEM, "out of memory"); }

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
  const rule_tensor *v = pt_value(p, side, i);
  if (s->n_peers == 0 || p->gap || !v || v->shape.rank < 2 || !rule_dtype_is_float(v->dtype) || v->numel == 0 ||
      strcmp(s->graph[side]->node[i].op, "aten::linear") != 0)
    return false;
  for (uint32_t k = 0; k < g->n_nodes; k++) {
    const rule_tensor *w = g->node[k].kind == SYNTH_OP && strcmp(g->node[k].op, "aten::linear") == 0 ? pt_value(p, !side, k) : NULL;
    if (w && w->shape.rank >= 2 && w->numel > 0 && columns_occur(v, w)) return true;
  }
  return false;
}

/* ---- walking back ---- */

static bool visit(parting *p, int side, uint32_t i);

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
  if (n->kind == SYNTH_OP && n->n_outputs == 1 && pt_matched(p, side, i)) return false;
  if (n->kind != SYNTH_OP && pt_leaf_explained(p, side, i)) return false;
  if (s->rec[e.i].konst && (n->dtype == RULE_BOOL || n->n_outputs != 1)) return false;
  p->seen[side][i] = 1;
  /* A constant is where it parts from the other side: what it is computed from need not occur there. */
  const bool end = n->kind != SYNTH_OP || (s->rec[e.i].konst && !(pt_passes(s->graph[side], i) && reads_operator(s->graph[side], n->call)));
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
      if (strict >= 1 && g->node[i].kind == SYNTH_OP && pt_passes(g, i)) continue;
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

/* The left value takes the right node's place: what follows is run again. */
static iso_code carry(const parting *p, uint32_t a, uint32_t b, const bool *after, st_run *out, iso_error *err) {
  const rule_tensor *x = pt_value(p, LEFT, a), *y = pt_value(p, RIGHT, b);
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

/* Carrying on made the rest meet: every use of `b` in the region has a counterpart now, or the outputs agree. */
static bool helped(const parting *q, uint32_t b, const bool *region) {
  const synth_graph *g = q->s->graph[RIGHT];
  bool used = false, all = true;
  bool *flag = calloc(g->n_nodes + 1, 1);
  if (!flag) return false;
  flag[b] = true;
  for (size_t i = b + 1; i < g->n_nodes && all; i++) {
    if (!region[i] || g->node[i].kind != SYNTH_OP || !st_term_uses(g->node[i].call, flag)) continue;
    if (pt_passes_on(q, RIGHT, (uint32_t)i)) flag[i] = true;
    else used = true, all = pt_occurs(q, RIGHT, (uint32_t)i);
  }
  free(flag);
  return (used && all) || !pt_any_output_apart(q);
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
    const rule_tensor *y = pt_value(p, RIGHT, b);
    if (!after[RIGHT][b] || !region[b] || !y) continue;
    bool *again = downstream(p, RIGHT, b);
    if (!again) c = nomem(err);
    for (uint32_t a = (uint32_t)first[LEFT]; !c && a < s->graph[LEFT]->n_nodes && exit[LEFT] < 0 && tries < MAX_EXITS; a++) {
      const rule_tensor *x = pt_value(p, LEFT, a);
      if (!after[LEFT][a] || (p->seen[LEFT][a] != 1 && p->seen[LEFT][a] != 2) || !x || x->dtype != y->dtype ||
          !pt_same_but_ones(&x->shape, &y->shape))
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

/* ---- all of them ---- */

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

static iso_code describe(parting *p, const int64_t root[2], synth_divergence *d, bool *more, iso_error *err) {
  state *s = p->s;
  const size_t n_right = s->graph[RIGHT]->n_nodes;
  int64_t exit[2] = {-1, -1};
  st_run next = {0};
  bool *touched = calloc(n_right + 1, 1), repaired = false;
  iso_code c = touched ? ISO_OK : nomem(err);
  const rule_tensor *x = pt_value(p, LEFT, (uint32_t)root[LEFT]), *y = pt_value(p, RIGHT, (uint32_t)root[RIGHT]);
  d->hint = pt_hint(p, d, x, y);
  if (!c) c = pt_measure(p, root, d, err);
  if (!c && !p->gap) c = leave(p, root, exit, &next, touched, err);
  if (!c && exit[LEFT] >= 0 && d->max_abs == 0) c = pt_measure(p, exit, d, err);
  if (!c && !(d->left_region = region(p, LEFT, exit[LEFT], &d->n_left_region))) c = nomem(err);
  if (!c && !(d->right_region = region(p, RIGHT, exit[RIGHT], &d->n_right_region))) c = nomem(err);
  const synth_node *l = &s->graph[LEFT]->node[root[LEFT]], *r = &s->graph[RIGHT]->node[root[RIGHT]];
  const bool plain = r->kind != SYNTH_OP || l->kind != SYNTH_OP || pt_attribute_hint(p, l, r) != NULL;
  int64_t constant[2] = {-1, -1};
  if (!c && !p->gap && !plain) {
    constant[LEFT] = pt_odd_constant(p, LEFT, d->left_region, d->n_left_region, &c, err);
    constant[RIGHT] = pt_odd_constant(p, RIGHT, d->right_region, d->n_right_region, &c, err);
  }
  /* Where a table is read comes before what it holds. */
  if (!c && constant[RIGHT] >= 0) c = pt_explain_by_repair(p, RIGHT, true, exit, d, &next, touched, &repaired, err);
  if (!c && constant[LEFT] >= 0 && !repaired) c = pt_explain_by_repair(p, LEFT, true, exit, d, &next, touched, &repaired, err);
  if (repaired) p->rounded = true;
  else if (constant[LEFT] >= 0 && constant[RIGHT] >= 0) {
    d->left = constant[LEFT];
    d->right = constant[RIGHT];
    d->hint = iso_arena_printf(&s->res->arena, "constants differ: the left has none with the values of \"%s\", the right none with those of \"%s\"",
                               s->graph[RIGHT]->node[constant[RIGHT]].id, s->graph[LEFT]->node[constant[LEFT]].id);
  } else if (!c && !p->gap && !plain && !repaired) {
    c = pt_explain_by_repair(p, RIGHT, false, exit, d, &next, touched, &repaired, err);
    if (!c && !repaired) c = pt_explain_by_repair(p, LEFT, false, exit, d, &next, touched, &repaired, err);
  }
  if (!c && !p->gap && s->o->keep_witness && s->res->n_divergences == 0) {
    int64_t end[2] = {exit[LEFT], exit[RIGHT]};
    pt_apart_at(p, end);
    if (end[LEFT] >= 0) c = st_cut(s, p->run, end, d, err);
  }
  *more = false;
  if (!c && next.value) {
    for (size_t i = 0; i < n_right; i++) p->changed[i] |= touched[i];
    p->changed[n_right] = true;
    st_run_free(&p->run[RIGHT]);
    p->run[RIGHT] = next;
    next = (st_run){0};
    c = pt_index(p, RIGHT, err);
    if (!c) c = st_mark_parts(s, p->run, err);
    *more = !c && pt_any_output_apart(p);
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
      if (pt_output_apart(p, o)) visit(p, side, g->output[side == LEFT ? o : s->right_of[o]].node);
    root[side] = pick(p, side);
  }
  if (root[LEFT] < 0 && root[RIGHT] < 0 && p->changed[s->graph[RIGHT]->n_nodes]) return ISO_OK;
  for (int side = 0; side < 2; side++)
    if (root[side] < 0) root[side] = s->graph[side]->output[0].node;
  *d = (synth_divergence){.left = root[LEFT], .right = root[RIGHT], .index = -1, .at = {-1, -1}};
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
  if (!c) c = pt_index(&p, LEFT, err);
  if (!c) c = pt_index(&p, RIGHT, err);
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
