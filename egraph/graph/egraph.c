/* The graph as its users see it: create, intern, add, merge, read, free.
 *
 * Adding takes all room first and commits last, so that a failure leaves the graph as it was. */
#include "egraph/egraph.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "egraph/base/hash.h"
#include "egraph/base/vec.h"
#include "egraph/graph/graph_int.h"
#include "egraph/graph/text_int.h"

iso_code eg_new(const eg_analysis *analysis, eg_graph **out, iso_error *err) {
  eg_graph *g = calloc(1, sizeof *g);
  if (!g) return iso_fail(err, ISO_NOMEM, "out of memory for an e-graph");
  if (analysis) g->analysis = *analysis;
  iso_arena_init(&g->names);
  egi_queue_init(&g->stale);
  egi_queue_init(&g->look);
  egi_queue_init(&g->repair);
  *out = g;
  return ISO_OK;
}

void eg_free(eg_graph *g) {
  if (!g) return;
  for (size_t i = 0; i < g->n_nodes; i++) {
    egi_class *c = &g->cls[i];
    if (c->data && g->analysis.free) g->analysis.free(g->analysis.ctx, c->data);
    egi_list_fini(&c->nodes);
    egi_list_fini(&c->parents);
  }
  iso_arena_fini(&g->names);
  void *owned[] = {g->symbol,    g->symbols.slot, g->hashcons.slot, g->node, g->up,
                   g->cls,       g->key,          g->original,      g->edge, g->stale.link,
                   g->look.link, g->repair.link,  g->words,         g->mark, g};
  for (size_t i = 0; i < sizeof owned / sizeof *owned; i++) free(owned[i]);
}

iso_code eg_intern(eg_graph *g, const char *name, size_t n, eg_symbol *out, iso_error *err) {
  const uint32_t hash = (uint32_t)iso_hash(name, n, 0);
  const uint32_t id = egi_symbol_find(g, name, n, hash);
  if (id != EG_NONE) {
    *out = (eg_symbol){id};
    return ISO_OK;
  }
  if (g->n_symbols >= EG_NONE) return iso_fail(err, ISO_LIMIT, "too many symbols");
  char *copy = NULL;
  if (iso_grow(g->symbol, g->cap_symbol, g->n_symbols + 1) && egi_table_reserve(&g->symbols))
    copy = iso_arena_strndup(&g->names, name, n);
  if (!copy) return iso_fail(err, ISO_NOMEM, "out of memory for a symbol of %zu bytes", n);
  *out = (eg_symbol){(uint32_t)g->n_symbols};
  g->symbol[g->n_symbols++] = (egi_symbol){copy, n};
  egi_table_insert(&g->symbols, hash, out->i);
  return ISO_OK;
}

size_t eg_count_symbols(const eg_graph *g) { return g->n_symbols; }

const char *eg_symbol_name(const eg_graph *g, eg_symbol s) { return g->symbol[s.i].name; }

/* Room for one more e-node whose key is in `words`. */
static bool add_reserve(eg_graph *g, size_t arity) {
  const size_t n = g->n_nodes + 1, n_key = g->n_key + arity + 1;
  bool ok =
      iso_grow(g->node, g->cap_node, n) && iso_grow(g->up, g->cap_up, n) &&
      iso_grow(g->cls, g->cap_cls, n) && iso_grow(g->edge, g->cap_edge, n) &&
      iso_grow(g->key, g->cap_key, n_key) &&
      iso_grow(g->original, g->cap_original, n_key - n + 1) && egi_queue_reserve(&g->stale, n) &&
      (!g->analysis.make || egi_queue_reserve(&g->look, n)) &&
      (!g->analysis.repair || egi_queue_reserve(&g->repair, n)) && egi_table_reserve(&g->hashcons);
  for (size_t k = 1; ok && k <= arity; k++) {
    egi_list *parents = &g->cls[g->words[k]].parents;
    ok = egi_list_reserve(parents, (size_t)parents->n + 1);
  }
  return ok;
}

/* Put the e-node in `words` into all tables; a twin not into the hashcons. Requires: reserved. */
static void add_commit(eg_graph *g, const eg_class *child, size_t arity, uint32_t hash, bool twin) {
  const uint32_t id = (uint32_t)g->n_nodes++;
  g->node[id] = (egi_node){(uint32_t)g->n_key, (uint32_t)arity, EG_NONE, EG_NONE, twin};
  memcpy(g->key + g->n_key, g->words, (arity + 1) * sizeof *g->words);
  for (size_t k = 0; k < arity; k++) g->original[g->n_key - id + k] = child[k].i;
  g->n_key += arity + 1;
  g->up[id] = id;
  g->cls[id] = (egi_class){0};
  egi_list_push(&g->cls[id].nodes, id);
  for (size_t k = 1; k <= arity; k++) {
    egi_class *c = &g->cls[g->words[k]];
    if (c->parents.n > 0 && egi_list_items(&c->parents)[c->parents.n - 1].i == id)
      continue; /* a child twice */
    egi_list_push(&c->parents, id);
    c->weight++;
  }
  if (!twin) egi_table_insert(&g->hashcons, hash, id);
  egi_data_make(g, id);
}

static bool is_spelled(const eg_graph *g, uint32_t node, const eg_class *child, size_t n) {
  for (size_t k = 0; k < n; k++)
    if (eg_node_original(g, (eg_node){node}, k).i != child[k].i) return false;
  return true;
}

/* The e-node congruent to `like` that was added with these very children, EG_NONE if there is none.
 */
static uint32_t spelled_so(const eg_graph *g, uint32_t like, const eg_class *child, size_t n) {
  if (is_spelled(g, like, child, n)) return like;
  egi_list *l = &g->cls[egi_find(g, like)].nodes;
  const eg_node *node = egi_list_items(l);
  for (uint32_t i = 0; i < l->n; i++)
    if (eg_node_symbol(g, node[i]).i == eg_node_symbol(g, (eg_node){like}).i &&
        eg_node_arity(g, node[i]) == n && is_spelled(g, node[i].i, child, n))
      return node[i].i;
  return EG_NONE;
}

static iso_code add(eg_graph *g, eg_symbol op, const eg_class *child, size_t n, bool exact,
                    eg_node *out, iso_error *err) {
  assert(op.i < g->n_symbols);
  /* Edges, parents with repetitions and key words are counted in 32 bits; none exceeds the key
   * words. */
  if (n >= EG_NONE - 1 || g->n_key + n + 1 >= EG_NONE)
    return iso_fail(err, ISO_LIMIT, "too many e-nodes");
  if (!iso_grow(g->words, g->cap_words, n + 1)) goto nomem;
  g->words[0] = op.i;
  for (size_t k = 0; k < n; k++) {
    assert(child[k].i < g->n_nodes);
    g->words[k + 1] = egi_find(g, child[k].i);
  }
  const uint32_t hash = egi_key_hash(g->words, n + 1);
  /* A stale key has a child that is not canonical, so a key found here is congruent even before a
   * rebuild. */
  const uint32_t found = egi_hashcons_find(g, g->words, n + 1, hash);
  const uint32_t there = found != EG_NONE && exact ? spelled_so(g, found, child, n) : found;
  if (there != EG_NONE) {
    *out = (eg_node){there};
    return ISO_OK;
  }
  if (!add_reserve(g, n)) goto nomem;
  if (found != EG_NONE) {
    egi_list *nodes = &g->cls[egi_find(g, found)].nodes;
    if (!egi_list_reserve(nodes, (size_t)nodes->n + 1)) goto nomem;
  }
  *out = (eg_node){(uint32_t)g->n_nodes};
  add_commit(g, child, n, hash, found != EG_NONE);
  if (found == EG_NONE) return ISO_OK;
  /* Its class has one e-node and no parents: the room reserved is enough. */
  ISO_CHECK(egi_union_reserve(g, out->i, found));
  egi_union(g, out->i, found, (eg_why){EG_WHY_CONGRUENCE, 0});
  return ISO_OK;
nomem:
  return iso_fail(err, ISO_NOMEM, "out of memory for an e-node of \"%s\"", eg_symbol_name(g, op));
}

iso_code eg_add(eg_graph *g, eg_symbol op, const eg_class *child, size_t n, eg_node *out,
                iso_error *err) {
  return add(g, op, child, n, false, out, err);
}
iso_code egi_add_exact(eg_graph *g, eg_symbol op, const eg_class *child, size_t n, eg_node *out,
                       iso_error *err) {
  return add(g, op, child, n, true, out, err);
}

iso_code eg_merge(eg_graph *g, eg_node a, eg_node b, eg_why why, iso_error *err) {
  assert(a.i < g->n_nodes && b.i < g->n_nodes && why.kind != EG_WHY_CONGRUENCE);
  if (egi_find(g, a.i) == egi_find(g, b.i)) return ISO_OK;
  if (!egi_union_reserve(g, a.i, b.i)) return iso_fail(err, ISO_NOMEM, "out of memory for a merge");
  egi_union(g, a.i, b.i, why);
  return ISO_OK;
}

eg_class eg_find(const eg_graph *g, eg_class c) { return (eg_class){egi_find(g, c.i)}; }
eg_class eg_class_of(const eg_graph *g, eg_node n) { return (eg_class){egi_find(g, n.i)}; }
bool eg_equal(const eg_graph *g, eg_node a, eg_node b) {
  return egi_find(g, a.i) == egi_find(g, b.i);
}

eg_symbol eg_node_symbol(const eg_graph *g, eg_node n) {
  return (eg_symbol){g->key[g->node[n.i].key]};
}
size_t eg_node_arity(const eg_graph *g, eg_node n) { return g->node[n.i].arity; }
eg_class eg_node_child(const eg_graph *g, eg_node n, size_t k) {
  assert(k < g->node[n.i].arity);
  return (eg_class){egi_find(g, g->key[g->node[n.i].key + 1 + k])};
}
eg_class eg_node_original(const eg_graph *g, eg_node n, size_t k) {
  assert(k < g->node[n.i].arity);
  return (eg_class){g->original[g->node[n.i].key - n.i + k]};
}

size_t eg_count_nodes(const eg_graph *g) { return g->hashcons.n; }
size_t eg_count_classes(const eg_graph *g) { return g->n_nodes - g->n_edges; }
size_t eg_count_added(const eg_graph *g) { return g->n_nodes; }

size_t eg_class_nodes(const eg_graph *g, eg_class c, const eg_node **out) {
  egi_list *l = &g->cls[egi_find(g, c.i)].nodes;
  *out = egi_list_sort(l);
  return l->n;
}

size_t eg_class_parents(eg_graph *g, eg_class c, const eg_node **out) {
  egi_list *l = &g->cls[egi_find(g, c.i)].parents;
  *out = egi_list_sort(l);
  return l->n;
}
