/* Union-find, and the merge of two e-classes.
 *
 * Paths are halved on find. That is safe beside explanations because the proof forest is a separate
 * structure: `up` says only which class, never why, so shortening it loses nothing.
 *
 * The class with more parents survives (the one with the smaller id if equal): only parents of the
 * class that goes have stale keys, so each e-node's key is redone at most log2(n) times per child
 * (Downey, Sethi and Tarjan, Variations on the common subexpression problem, JACM 1980). The proof
 * tree with fewer e-nodes is turned round to hang below the other, by the same argument
 * (Nieuwenhuis and Oliveras, RTA 2005, section 3). */
#include <assert.h>

#include "egraph/graph/graph_int.h"

uint32_t egi_find(const eg_graph *g, uint32_t x) {
  uint32_t *up = g->up;
  while (up[x] != x) x = up[x] = up[up[x]];
  return x;
}

bool egi_union_reserve(eg_graph *g, uint32_t a, uint32_t b) {
  egi_class *x = &g->cls[egi_find(g, a)], *y = &g->cls[egi_find(g, b)];
  return egi_list_join_reserve(&x->nodes, &y->nodes) &&
         egi_list_join_reserve(&x->parents, &y->parents);
}

/* Make `x` the root of its proof tree: each edge on the way to the old root changes hands. */
static void proof_reroot(eg_graph *g, uint32_t x) {
  uint32_t below = EG_NONE, edge = EG_NONE;
  while (x != EG_NONE) {
    egi_node *e = &g->node[x];
    uint32_t up = e->proof_up, up_edge = e->proof_edge;
    e->proof_up = below;
    e->proof_edge = edge;
    below = x;
    edge = up_edge;
    x = up;
  }
}

/* Requires: a's tree is the smaller. */
static void proof_link(eg_graph *g, uint32_t a, uint32_t b, uint32_t edge) {
  proof_reroot(g, a);
  g->node[a].proof_up = b;
  g->node[a].proof_edge = edge;
}

void egi_union(eg_graph *g, uint32_t a, uint32_t b, eg_why why) {
  const uint32_t ra = egi_find(g, a), rb = egi_find(g, b);
  assert(ra != rb && g->n_edges < g->cap_edge);
  const uint32_t edge = (uint32_t)g->n_edges++;
  g->edge[edge] = (egi_edge){a, b, why};
  if (g->cls[ra].nodes.n <= g->cls[rb].nodes.n) proof_link(g, a, b, edge);
  else proof_link(g, b, a, edge);

  const uint32_t wa = g->cls[ra].weight, wb = g->cls[rb].weight;
  const bool a_stays = wa > wb || (wa == wb && ra < rb);
  const uint32_t kept = a_stays ? ra : rb, gone = a_stays ? rb : ra;
  egi_class *k = &g->cls[kept], *o = &g->cls[gone];
  g->up[gone] = kept;
  /* Sorted first: the order of later merges must not depend on who looked at the list before. */
  const eg_node *parent = egi_list_sort(&o->parents);
  for (uint32_t i = 0; i < o->parents.n; i++)
    if (!g->node[parent[i].i].twin) {
      egi_queue_push(&g->stale, parent[i].i);
      if (g->analysis.make) egi_queue_push(&g->look, parent[i].i);
    }
  egi_list_join(&k->nodes, &o->nodes);
  egi_list_join(&k->parents, &o->parents);
  k->weight += o->weight;
  egi_data_merge(g, kept, gone);
}
