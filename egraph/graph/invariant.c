/* The full invariant check: I1 to I6 of graph_int.h, and that the graph is rebuilt. Slow, and reads
 * everything.
 *
 * The partition is rebuilt from the edges alone, in order of time, by a plain union-find here; a
 * congruence edge must find its premises equal at that time. All other tables are then compared
 * with that partition. */
#include <stdlib.h>

#include "egraph/graph/graph_int.h"

#define BROKEN(...) return iso_fail(err, ISO_INTERNAL, "e-graph invariant: " __VA_ARGS__)

/* In the engine's union-find: without shortening, so that the check changes nothing. */
static uint32_t root(const uint32_t *up, uint32_t x) {
  while (up[x] != x) x = up[x];
  return x;
}

/* In the one made here, whose links go to smaller ids. */
static uint32_t found(uint32_t *up, uint32_t x) {
  while (up[x] != x) x = up[x] = up[up[x]];
  return x;
}
static void join(uint32_t *up, uint32_t x, uint32_t y) {
  if (x < y) up[y] = x;
  else up[x] = y;
}

static iso_code check_edge(const eg_graph *g, uint32_t *up, size_t i, iso_error *err) {
  const egi_edge *e = &g->edge[i];
  if (e->from >= g->n_nodes || e->to >= g->n_nodes) BROKEN("edge %zu names no e-node", i);
  const egi_node *p = &g->node[e->from], *q = &g->node[e->to];
  if (e->why.kind == EG_WHY_CONGRUENCE) {
    if (g->key[p->key] != g->key[q->key] || p->arity != q->arity)
      BROKEN("edge %zu: different symbols", i);
    for (uint32_t k = 0; k < p->arity; k++)
      if (found(up, g->original[p->key - e->from + k]) !=
          found(up, g->original[q->key - e->to + k]))
        BROKEN("edge %zu: premise %u is younger than the edge", i, k);
  }
  const uint32_t x = found(up, e->from), y = found(up, e->to);
  if (x == y) BROKEN("edge %zu closes a cycle", i);
  join(up, x, y);
  return ISO_OK;
}

static iso_code check_union_find(const eg_graph *g, uint32_t *up, iso_error *err) {
  for (uint32_t i = 0; i < g->n_nodes; i++) {
    size_t steps = 0;
    for (uint32_t x = i; g->up[x] != x; x = g->up[x])
      if (g->up[x] >= g->n_nodes || ++steps > g->n_nodes)
        BROKEN("union-find of e-node %u does not end", i);
    /* Equal partitions: each refines the other, seen from the two representatives. */
    if (root(g->up, found(up, i)) != root(g->up, i))
      BROKEN("e-node %u is apart from what its edges say", i);
    if (found(up, root(g->up, i)) != found(up, i))
      BROKEN("e-node %u is equal to what no edge says", i);
  }
  return ISO_OK;
}

static iso_code check_forest(const eg_graph *g, iso_error *err) {
  for (uint32_t i = 0; i < g->n_nodes; i++) {
    const egi_node *e = &g->node[i];
    if (e->proof_up == EG_NONE) continue;
    if (e->proof_edge >= g->n_edges) BROKEN("e-node %u hangs on no edge", i);
    const egi_edge *f = &g->edge[e->proof_edge];
    if (!((f->from == i && f->to == e->proof_up) || (f->to == i && f->from == e->proof_up)))
      BROKEN("e-node %u hangs on a foreign edge", i);
    /* Each edge once: its other end must not hang on it as well. */
    if (g->node[e->proof_up].proof_up == i)
      BROKEN("e-nodes %u and %u hang on each other", i, e->proof_up);
  }
  size_t hanging = 0;
  for (uint32_t i = 0; i < g->n_nodes; i++) hanging += g->node[i].proof_up != EG_NONE;
  if (hanging != g->n_edges) BROKEN("%zu e-nodes hang on %zu edges", hanging, g->n_edges);
  return ISO_OK;
}

static iso_code check_hashcons(const eg_graph *g, iso_error *err) {
  size_t held = 0;
  uint32_t *key = malloc((g->cap_words + 1) * sizeof *key);
  if (!key) return iso_fail(err, ISO_NOMEM, "out of memory for a check");
  iso_code code = ISO_OK;
  for (uint32_t i = 0; i < g->n_nodes && !code; i++) {
    const egi_node *e = &g->node[i];
    key[0] = g->key[e->key];
    for (uint32_t k = 1; k <= e->arity; k++) {
      key[k] = root(g->up, g->key[e->key + k]);
      if (key[k] != g->key[e->key + k] && !e->twin)
        code = iso_fail(err, ISO_INTERNAL, "e-graph invariant: key of e-node %u is stale", i);
      if (key[k] != root(g->up, g->original[e->key - i + k - 1]))
        code = iso_fail(err, ISO_INTERNAL, "e-graph invariant: e-node %u has a foreign child", i);
    }
    const uint32_t hit =
        egi_hashcons_find(g, key, e->arity + (size_t)1, egi_key_hash(key, e->arity + (size_t)1));
    if (code) break;
    if (hit == EG_NONE)
      code = iso_fail(err, ISO_INTERNAL, "e-graph invariant: e-node %u is not in the hashcons", i);
    else if ((hit == i) == e->twin)
      code = iso_fail(err, ISO_INTERNAL, "e-graph invariant: e-node %u and %u share a key", i, hit);
    else if (root(g->up, hit) != root(g->up, i))
      code = iso_fail(err, ISO_INTERNAL,
                      "e-graph invariant: e-nodes %u and %u are congruent and apart", i, hit);
    held += !e->twin;
  }
  free(key);
  if (!code && held != g->hashcons.n)
    BROKEN("%zu e-nodes in a hashcons of %zu", held, g->hashcons.n);
  return code;
}

static bool has(const eg_node *list, size_t n, uint32_t id) {
  size_t i = 0;
  for (size_t j = n; i < j;) {
    size_t mid = i + (j - i) / 2;
    if (list[mid].i < id) i = mid + 1;
    else j = mid;
  }
  return i < n && list[i].i == id;
}

static iso_code check_lists(eg_graph *g, iso_error *err) {
  const eg_node *list;
  size_t nodes = 0, parents = 0, links = 0;
  for (uint32_t i = 0; i < g->n_nodes; i++) {
    const uint32_t r = root(g->up, i);
    size_t n = eg_class_nodes(g, (eg_class){r}, &list);
    if (!has(list, n, i)) BROKEN("e-node %u is missing in its class", i);
    const egi_node *e = &g->node[i];
    for (uint32_t k = 0; k < e->arity; k++) {
      const uint32_t c = root(g->up, g->original[e->key - i + k]);
      bool again = false; /* the same class was an earlier child */
      for (uint32_t j = 0; j < k && !again; j++)
        again = root(g->up, g->original[e->key - i + j]) == c;
      if (again) continue;
      links++;
      n = eg_class_parents(g, (eg_class){c}, &list);
      if (!has(list, n, i)) BROKEN("e-node %u is missing among the parents of class %u", i, c);
    }
    if (r != i && (g->cls[i].nodes.n || g->cls[i].parents.n || g->cls[i].data))
      BROKEN("class %u is gone but full", i);
    if (r != i) continue;
    nodes += eg_class_nodes(g, (eg_class){r}, &list);
    parents += eg_class_parents(g, (eg_class){r}, &list);
  }
  if (nodes != g->n_nodes) BROKEN("%zu e-nodes in classes, %zu added", nodes, g->n_nodes);
  if (parents != links) BROKEN("%zu parents in lists, %zu in e-nodes", parents, links);
  return ISO_OK;
}

iso_code eg_check(eg_graph *g, iso_error *err) {
  if (g->stale.head != EG_NONE || g->look.head != EG_NONE || g->repair.head != EG_NONE)
    BROKEN("checked before it was rebuilt");
  uint32_t *up = malloc((g->n_nodes + 1) * sizeof *up);
  if (!up) return iso_fail(err, ISO_NOMEM, "out of memory for a check");
  for (uint32_t i = 0; i < g->n_nodes; i++) up[i] = i;
  iso_code code = ISO_OK;
  for (size_t i = 0; i < g->n_edges && !code; i++) code = check_edge(g, up, i, err);
  if (!code) code = check_union_find(g, up, err);
  if (!code) code = check_forest(g, err);
  if (!code) code = check_hashcons(g, err);
  if (!code) code = check_lists(g, err);
  free(up);
  return code;
}
