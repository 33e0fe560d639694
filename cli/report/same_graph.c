/* Two graphs walked side by side from their outputs: each node of the left has one partner. */
#include "cli/report/same_graph.h"

#include <stdlib.h>
#include <string.h>

typedef struct walk {
  const cap_graph *left, *right;
  int64_t *partner, *back; /* by node of the left and of the right; -1: not met yet */
  uint32_t *stack;         /* nodes of the left whose calls are still to be compared */
  size_t n;
} walk;

/* The two are partners from now on, or have been. */
static bool meet(walk *w, uint32_t a, uint32_t b) {
  if (w->partner[a] >= 0 || w->back[b] >= 0) return w->partner[a] == (int64_t)b;
  const cap_node *x = &w->left->node[a], *y = &w->right->node[b];
  if (x->kind != y->kind || !x->call != !y->call || !cap_same_outputs(x, y)) return false;
  w->partner[a] = b, w->back[b] = a;
  w->stack[w->n++] = a;
  return true;
}

static bool same_term(walk *w, const rule_term *a, const rule_term *b) {
  if (a->kind != b->kind || a->n != b->n) return false;
  if (a->kind == RULE_VAR) return meet(w, (uint32_t)a->u.i, (uint32_t)b->u.i);
  if (a->n == 0) return rule_term_eq(a, b);
  if (a->kind != RULE_LIST && strcmp(a->u.s, b->u.s) != 0) return false;
  for (uint32_t i = 0; i < a->n; i++)
    if (!same_term(w, a->child[i], b->child[i])) return false;
  return true;
}

static bool walk_down(walk *w) {
  for (size_t i = 0; i < w->left->n_results; i++)
    if (!meet(w, w->left->result[i].node, w->right->result[i].node)) return false;
  while (w->n > 0) {
    const uint32_t a = w->stack[--w->n];
    const rule_term *call = w->left->node[a].call;
    if (call && !same_term(w, call, w->right->node[w->partner[a]].call)) return false;
  }
  return true;
}

iso_code same_graph(const cap_graph *left, const cap_graph *right, bool *out, iso_error *err) {
  *out = false;
  if (left->n_results != right->n_results || !left->n_nodes || !right->n_nodes) return ISO_OK;
  walk w = {left,
            right,
            malloc(left->n_nodes * sizeof *w.partner),
            malloc(right->n_nodes * sizeof *w.back),
            malloc(left->n_nodes * sizeof *w.stack),
            0};
  const bool room = w.partner && w.back && w.stack;
  for (size_t i = 0; room && i < left->n_nodes; i++) w.partner[i] = -1;
  for (size_t i = 0; room && i < right->n_nodes; i++) w.back[i] = -1;
  if (room) *out = walk_down(&w);
  free(w.partner);
  free(w.back);
  free(w.stack);
  return room ? ISO_OK : iso_fail(err, ISO_NOMEM, "out of memory");
}
