/* Layers repeat: where one block of a graph departs from its sibling in one operator, that operator is suspect. */
#include "synth/synth_int.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_DEPTH = 24, MAX_SIBLINGS = 64, MAX_STEPS = 400 };

typedef struct twins {
  const state *s;
  const synth_graph *g;
  const bool *stop;
  size_t mismatches, steps;
  uint32_t at, model; /* the last mismatch */
} twins;

/* The same two operators, met on several ways, are one mismatch. */
static void mismatch(twins *t, uint32_t a, uint32_t b) {
  if (t->mismatches && t->at == a && t->model == b) return;
  t->mismatches++;
  t->at = a;
  t->model = b;
}

static void compare_nodes(twins *t, uint32_t a, uint32_t b, int depth);

/* Whether the literals agree; tensors are walked into. */
static bool compare_terms(twins *t, const rule_term *x, const rule_term *y, int depth) {
  if (x->kind == RULE_VAR && y->kind == RULE_VAR) {
    compare_nodes(t, (uint32_t)x->u.i, (uint32_t)y->u.i, depth + 1);
    return true;
  }
  if (x->kind != y->kind || x->n != y->n) return false;
  if (x->kind != RULE_LIST && x->kind != RULE_OP) return rule_term_eq(x, y);
  if (x->kind == RULE_OP && strcmp(x->u.s, y->u.s) != 0) return false;
  for (uint32_t k = 0; k < x->n; k++)
    if (!compare_terms(t, x->child[k], y->child[k], depth)) return false;
  return true;
}

static void compare_nodes(twins *t, uint32_t a, uint32_t b, int depth) {
  const synth_node *x = &t->g->node[a], *y = &t->g->node[b];
  if (a == b || t->stop[a] || depth > MAX_DEPTH || ++t->steps > MAX_STEPS) return;
  if (x->kind != SYNTH_OP || y->kind != SYNTH_OP) {
    if (x->kind != y->kind) mismatch(t, a, b);
    return;
  }
  if (strcmp(x->op, y->op) != 0 || x->call->n != y->call->n) {
    mismatch(t, a, b);
    return;
  }
  const size_t before = t->mismatches;
  if (!compare_terms(t, x->call, y->call, depth)) {
    t->mismatches = before;
    mismatch(t, a, b);
  } else if (t->mismatches > before + 1) { /* several arguments differ: they are in the wrong places */
    t->mismatches = before;
    mismatch(t, a, b);
  }
}

int64_t st_odd_one_out(const state *s, int side, uint32_t node, const bool *stop, uint32_t *model) {
  const synth_graph *g = s->graph[side];
  const synth_node *n = &g->node[node];
  size_t best = SIZE_MAX, depth = 0, tried = 0; /* of equal siblings the one that was followed the longest */
  int64_t at = -1;
  if (n->kind != SYNTH_OP) return -1;
  for (uint32_t m = 0; m < g->n_nodes && tried < MAX_SIBLINGS; m++) {
    const synth_node *o = &g->node[m];
    if (m == node || o->kind != SYNTH_OP || s->map[side][m].i == EG_NONE || strcmp(o->op, n->op) != 0 || !rule_shape_eq(&o->shape, &n->shape)) continue;
    tried++;
    twins t = {.s = s, .g = g, .stop = stop};
    compare_nodes(&t, node, m, 0);
    if (t.mismatches > best || (t.mismatches == best && t.steps <= depth)) continue;
    best = t.mismatches;
    depth = t.steps;
    at = t.at;
    *model = t.model;
  }
  return best == 1 && at != (int64_t)node ? at : -1;
}
