/* Layers repeat: where one block of a graph departs from its sibling in one operator, that operator
 * is suspect. */
#include "localise/localise_int.h"
#include "rules/operators.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_DEPTH = 24, MAX_SIBLINGS = 64, MAX_STEPS = 400 };

typedef struct twins {
  const state *s;
  int side;
  const synth_graph *g;
  const bool *stop;
  /* Nodes that have been met with one that they agree with; where such a node meets another one, it
   * stands in the wrong place. Found in the first round for nodes not to look behind, in the second
   * for the others, used in the third. */
  bool *right;
  int round;
  size_t mismatches, steps, agreed;
  size_t met;                 /* mismatches, each as often as it was met */
  uint32_t at, model;         /* the last mismatch */
  int64_t above, above_model; /* what reads the two that are compared; -1: nothing yet */
  size_t in_constants;
  uint32_t constant_at, constant_model;
} twins;

/* The same two operators, met on several ways, are one mismatch. */
static void mismatch(twins *t, uint32_t a, uint32_t b) {
  t->met++;
  if (t->mismatches && t->at == a && t->model == b) return;
  t->mismatches++;
  t->at = a;
  t->model = b;
}

static void compare_nodes(twins *t, uint32_t a, uint32_t b, int depth);

static bool constant(const twins *t, uint32_t i) {
  const eg_node e = t->s->map[t->side][i];
  return e.i != EG_NONE && t->s->rec[e.i].konst;
}

/* Layers may differ in a constant (a mask with a window) and be right: that counts where nothing
 * else differs. */
static void compare_operands(twins *t, uint32_t a, uint32_t b, int depth) {
  const twins was = *t;
  compare_nodes(t, a, b, depth);
  if (t->mismatches == was.mismatches || !constant(t, a) || !constant(t, b)) return;
  t->in_constants += t->mismatches - was.mismatches;
  t->constant_at = t->at, t->constant_model = t->model;
  t->mismatches = was.mismatches, t->met = was.met, t->at = was.at, t->model = was.model;
}

/* Whether the literals agree; tensors are walked into. */
static bool compare_terms(twins *t, const rule_term *x, const rule_term *y, int depth) {
  if (x->kind == RULE_VAR && y->kind == RULE_VAR) {
    const size_t before = t->mismatches;
    compare_operands(t, (uint32_t)x->u.i, (uint32_t)y->u.i, depth + 1);
    if (t->round < 2 || t->mismatches == before || !t->right[x->u.i]) return true;
    t->mismatches = before;
    return false;
  }
  if (x->kind != y->kind || x->n != y->n) return false;
  if (x->kind != RULE_LIST && x->kind != RULE_OP) return rule_term_eq(x, y);
  if (x->kind == RULE_OP && strcmp(x->u.s, y->u.s) != 0) return false;
  for (uint32_t k = 0; k < x->n; k++)
    if (!compare_terms(t, x->child[k], y->child[k], depth)) return false;
  return true;
}

/* The number of an operator's output that a node takes, -1 for other nodes. */
static int64_t part(const synth_node *n) {
  return n->kind == SYNTH_OP && rule_is_getitem(n->call->u.s) ? n->call->child[1]->u.i : -1;
}

/* Joined, or constants of one value: tables that each layer computes for itself. */
static bool one_tensor(const twins *t, uint32_t a, uint32_t b) {
  const state *s = t->s;
  const eg_node x = s->map[t->side][a], y = s->map[t->side][b];
  if (x.i == EG_NONE || y.i == EG_NONE) return false;
  if (eg_equal(s->g, x, y)) return true;
  const rec *p = &s->rec[x.i], *q = &s->rec[y.i];
  return p->konst && q->konst && p->valued && q->valued && p->n_out == 1 && q->n_out == 1 &&
         p->val[0] && q->val[0] && rule_tensor_same(p->val[0], q->val[0]);
}

/* Whether an argument of `y` is like `x`: then y's operator is missing between x and its reader. */
static bool reads_one_like(const twins *t, const synth_node *y, const synth_node *x) {
  for (uint32_t k = 0; k < y->call->n; k++) {
    const rule_term *c = y->call->child[k];
    const synth_node *n = c->kind == RULE_VAR ? &t->g->node[c->u.i] : NULL;
    if (n && n->kind == SYNTH_OP && strcmp(n->op, x->op) == 0 &&
        rule_shape_eq(&n->shape, &x->shape))
      return true;
  }
  return false;
}

static void compare_nodes(twins *t, uint32_t a, uint32_t b, int depth) {
  const synth_node *x = &t->g->node[a], *y = &t->g->node[b];
  if (a == b || one_tensor(t, a, b) || depth > MAX_DEPTH || ++t->steps > MAX_STEPS) return;
  if (t->stop[a]) { /* that much is seen from outside: what it is, and which part */
    const bool alike = x->kind == y->kind &&
                       (x->kind != SYNTH_OP || (strcmp(x->op, y->op) == 0 && part(x) == part(y)));
    if (t->round == 0) t->right[a] |= alike;
    else if (t->right[a] && !alike) mismatch(t, a, b);
    return;
  }
  if (x->kind != SYNTH_OP || y->kind != SYNTH_OP) {
    if (x->kind != y->kind) mismatch(t, a, b);
    return;
  }
  if (strcmp(x->op, y->op) != 0 || x->call->n != y->call->n) {
    if (t->above >= 0 && reads_one_like(t, y, x))
      mismatch(t, (uint32_t)t->above, (uint32_t)t->above_model);
    else mismatch(t, a, b);
    return;
  }
  const int64_t above = t->above, above_model = t->above_model;
  t->above = a, t->above_model = b;
  const size_t before = t->mismatches, met = t->met;
  const bool literals = compare_terms(t, x->call, y->call, depth);
  t->above = above, t->above_model = above_model;
  if (!literals) {
    t->mismatches = before;
    mismatch(t, a, b);
  } else if (t->mismatches >
             before + 1) { /* several arguments differ: they are in the wrong places */
    t->mismatches = before;
    mismatch(t, a, b);
  } else if (t->met == met) {
    t->agreed++;
    if (t->round == 1) t->right[a] = true;
  }
}

int64_t lo_odd_one_out(const state *s, int side, uint32_t node, const bool *stop, uint32_t *model) {
  const synth_graph *g = s->graph[side];
  const synth_node *n = &g->node[node];
  size_t best = SIZE_MAX, agreed = 0,
         tried = 0; /* of equal siblings the one that agrees in the most */
  int64_t at = -1;
  if (n->kind != SYNTH_OP) return -1;
  bool *right = malloc(g->n_nodes + 1);
  if (!right) return -1;
  for (uint32_t m = 0; m < g->n_nodes && tried < MAX_SIBLINGS; m++) {
    const synth_node *o = &g->node[m];
    if (m == node || o->kind != SYNTH_OP || s->map[side][m].i == EG_NONE ||
        strcmp(o->op, n->op) != 0 || !rule_shape_eq(&o->shape, &n->shape) ||
        eg_equal(s->g, s->map[side][m], s->map[side][node])) /* itself, passed on */
      continue;
    tried++;
    memset(right, 0, g->n_nodes + 1);
    twins t = {0};
    for (int round = 0; round < 3; round++) {
      t = (twins){
          .s = s, .side = side, .g = g, .stop = stop, .right = right, .round = round, .above = -1};
      compare_nodes(&t, node, m, 0);
    }
    if (t.mismatches == 0)
      t.mismatches = t.in_constants, t.at = t.constant_at, t.model = t.constant_model;
    if (t.mismatches > best || (t.mismatches == best && t.agreed <= agreed)) continue;
    best = t.mismatches;
    agreed = t.agreed;
    at = t.at;
    *model = t.model;
  }
  free(right);
  return best == 1 && at != (int64_t)node ? at : -1;
}
