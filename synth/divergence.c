/* Where two graphs part: walk back from outputs that differ, through what has no counterpart of equal value on the other
 * side, to the first operators all of whose inputs have one. */
#include "synth/synth_int.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Equal also where the outputs were found to differ, as far as order-free moments of the values tell. */
static bool agree_on_witness(const state *s, int side, int32_t i, int32_t other) {
  if (!s->witness[LEFT].value) return true;
  const st_value_list *a = &s->witness[side].value[i], *b = &s->witness[!side].value[other];
  if (a->n != 1 || b->n != 1 || a->v[0]->numel != b->v[0]->numel) return true;
  double ma[4], mb[4];
  st_moments(a->v[0], ma);
  st_moments(b->v[0], mb);
  return st_near_moments(ma, mb);
}

/* The value occurs on the other side (up to layout), or the class is joined with it. */
static bool matched(state *s, eg_node e, int side) {
  const eg_node *m;
  size_t n = eg_class_nodes(s->g, eg_class_of(s->g, e), &m);
  for (size_t i = 0; i < n; i++) {
    const rec *r = &s->rec[m[i].i];
    if (r->node[!side] >= 0) return true;
    if (r->group < 0) continue;
    const group *g = &s->group[r->group];
    for (size_t k = 0; k < g->n; k++) {
      const int32_t other = s->rec[g->member[k].i].node[!side];
      if (other >= 0 && agree_on_witness(s, side, s->rec[e.i].node[side], other)) return true;
    }
  }
  if (!s->rec[e.i].konst) return false;
  /* Constants: related through an auxiliary layout term on either side. */
  for (size_t i = 0; i < n; i++)
    if (s->rec[m[i].i].node[0] < 0 && s->rec[m[i].i].node[1] < 0) return true;
  n = eg_class_parents(s->g, eg_class_of(s->g, e), &m);
  for (size_t i = 0; i < n; i++)
    if (s->rec[m[i].i].node[0] < 0 && s->rec[m[i].i].node[1] < 0 && s->rec[m[i].i].konst) return true;
  return false;
}

/* A leaf is explained where a relation ties it to the other side. */
static bool leaf_explained(state *s, eg_node e, int side) {
  if (!s->rec[e.i].atom || matched(s, e, side)) return true;
  const eg_node *p;
  const size_t n = eg_class_parents(s->g, eg_class_of(s->g, e), &p);
  for (size_t i = 0; i < n; i++) /* an auxiliary term over it defines a leaf of the other side */
    if (s->rec[p[i].i].node[0] < 0 && s->rec[p[i].i].node[1] < 0) return true;
  return false;
}

typedef struct walk {
  state *s;
  int side;
  uint8_t *seen; /* per captured node: 1 in the region, 2 a root */
  size_t n_region, n_roots;
} walk;

static bool transparent(const char *op) {
  static const char *const ops[] = {"aten::to.dtype", "aten::to.dtype_layout", "aten::_to_copy", "aten::view", "aten::reshape",
                                    "aten::_unsafe_view", "aten::alias", "aten::detach", "aten::contiguous", "aten::clone",
                                    "aten::unsqueeze", "aten::squeeze.dim", "aten::transpose.int", "aten::permute", "aten::t",
                                    "aten::expand", "aten::flatten.using_ints", "aten::dropout", "aten::lift_fresh_copy", "getitem"};
  for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
    if (strcmp(op, ops[i]) == 0) return true;
  return false;
}

static bool visit(walk *w, uint32_t i);

static bool visit_args(walk *w, const rule_term *t) {
  bool open = false;
  if (t->kind == RULE_VAR) return visit(w, (uint32_t)t->u.i);
  for (uint32_t k = 0; k < t->n; k++) open |= visit_args(w, t->child[k]);
  return open;
}

/* Returns: whether node i has no counterpart (belongs to the region). */
static bool visit(walk *w, uint32_t i) {
  state *s = w->s;
  const synth_node *n = &s->graph[w->side]->node[i];
  const eg_node e = s->map[w->side][i];
  if (w->seen[i]) return true;
  if (n->kind == SYNTH_OP && n->n_outputs == 1 && matched(s, e, w->side)) return false;
  if (n->kind != SYNTH_OP && (leaf_explained(s, e, w->side) || s->rec[e.i].konst)) return false;
  if (s->rec[e.i].konst && (n->dtype == RULE_BOOL || n->n_outputs != 1)) return false;
  w->seen[i] = 1;
  w->n_region++;
  if (n->kind != SYNTH_OP || s->rec[e.i].konst || !visit_args(w, n->call)) {
    w->seen[i] = 2;
    w->n_roots++;
  }
  return true;
}

static const uint32_t *region(state *s, const walk *w, size_t n_nodes, size_t *n) {
  uint32_t *r = iso_arena_alloc(&s->res->arena, (w->n_region + 1) * sizeof *r);
  if (!r) return NULL;
  *n = 0;
  for (uint32_t i = 0; i < n_nodes; i++)
    if (w->seen[i]) r[(*n)++] = i;
  return r;
}

static void mark(const rule_term *t, bool *flag) {
  if (t->kind == RULE_VAR) flag[t->u.i] = true;
  for (uint32_t k = 0; k < t->n; k++) mark(t->child[k], flag);
}

/* The first consumer of a leaf that is live. */
static int64_t consumer(const synth_graph *g, uint32_t leaf) {
  for (size_t i = leaf + 1; i < g->n_nodes; i++) {
    if (g->node[i].kind != SYNTH_OP) continue;
    bool *flag = calloc(g->n_nodes + 1, 1);
    if (!flag) return leaf;
    mark(g->node[i].call, flag);
    const bool uses = flag[leaf];
    free(flag);
    if (uses) return (int64_t)i;
  }
  return leaf;
}

/* The earliest root; a transparent one only where nothing else is there; a constant only where the other side has an
 * unmatched constant too, or nothing else is there. */
static int64_t pick(state *s, const walk *w) {
  const synth_graph *g = s->graph[w->side];
  for (int strict = 2; strict >= 0; strict--)
    for (uint32_t i = 0; i < g->n_nodes; i++) {
      if (w->seen[i] != 2) continue;
      const bool konst = s->rec[s->map[w->side][i].i].konst;
      if (strict >= 1 && g->node[i].kind == SYNTH_OP && transparent(g->node[i].op)) continue;
      if (strict == 2 && konst) continue;
      return i;
    }
  return -1;
}

static const char *attribute_hint(state *s, const synth_node *l, const synth_node *r) {
  if (!l->call || !r->call || strcmp(l->call->u.s, r->call->u.s) != 0 || l->call->n != r->call->n) return NULL;
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

iso_code st_divergences(state *s, iso_error *err) {
  walk w[2];
  iso_code c = ISO_OK;
  int64_t root[2] = {-1, -1};
  for (int side = 0; side < 2; side++) {
    const synth_graph *g = s->graph[side];
    w[side] = (walk){.s = s, .side = side, .seen = calloc(g->n_nodes + 1, 1)};
    if (!w[side].seen) c = iso_fail(err, ISO_NOMEM, "out of memory");
  }
  for (int side = 0; side < 2 && !c; side++) {
    const synth_graph *g = s->graph[side];
    for (size_t k = 0; k < g->n_outputs; k++) visit(&w[side], g->output[k].node);
    root[side] = pick(s, &w[side]);
  }
  if (!c) {
    synth_divergence *d = iso_arena_alloc(&s->res->arena, sizeof *d);
    if (!d) c = iso_fail(err, ISO_NOMEM, "out of memory");
    else {
      *d = (synth_divergence){.left = root[LEFT], .right = root[RIGHT]};
      if (d->left < 0 && s->graph[LEFT]->n_outputs) d->left = s->graph[LEFT]->output[0].node;
      if (d->right < 0 && s->graph[RIGHT]->n_outputs) d->right = s->graph[RIGHT]->output[0].node;
      d->left_region = region(s, &w[LEFT], s->graph[LEFT]->n_nodes, &d->n_left_region);
      d->right_region = region(s, &w[RIGHT], s->graph[RIGHT]->n_nodes, &d->n_right_region);
      if (!d->left_region || !d->right_region) c = iso_fail(err, ISO_NOMEM, "out of memory");
      const synth_node *l = &s->graph[LEFT]->node[d->left], *r = &s->graph[RIGHT]->node[d->right];
      d->hint = attribute_hint(s, l, r);
      if (l->kind != SYNTH_OP && !d->hint)
        d->hint = iso_arena_printf(&s->res->arena, "no leaf of the right has the values of %s; first used by \"%s\"", l->name,
                                   s->graph[LEFT]->node[consumer(s->graph[LEFT], (uint32_t)d->left)].id);
      if (r->kind != SYNTH_OP && !d->hint)
        d->hint = iso_arena_printf(&s->res->arena, "no leaf of the left has the values of %s; first used by \"%s\"", r->name,
                                   s->graph[RIGHT]->node[consumer(s->graph[RIGHT], (uint32_t)d->right)].id);
      const eg_node a = s->map[LEFT][d->left], b = s->map[RIGHT][d->right];
      if (s->rec[a.i].valued && s->rec[b.i].valued && !s->rec[a.i].multi && !s->rec[b.i].multi) {
        const size_t draw = s->res->redrawn ? s->n_draws - 1 : 0;
        const st_run *wl = &s->witness[LEFT], *wr = &s->witness[RIGHT];
        const bool hunted = wl->value && wl->value[d->left].n == 1 && wr->value[d->right].n == 1;
        const rule_tensor *x = hunted ? wl->value[d->left].v[0] : st_val(s, a, draw), *y = hunted ? wr->value[d->right].v[0] : st_val(s, b, draw);
        if (x->numel == y->numel) {
          rule_diff df = s->oracle->compare(s->oracle->ctx, x, y, s->o->rel_tol);
          d->max_abs = df.max_abs;
          d->max_rel = df.max_rel;
        }
      }
      s->res->divergence = d;
      s->res->n_divergences = 1;
    }
  }
  free(w[0].seen);
  free(w[1].seen);
  return c;
}
