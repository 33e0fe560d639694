/* The terms of a certificate: captured nodes of either side, and calls over terms, each call once.
 *
 * Invariant: the first ids are the left graph's nodes, then the right one's; `up` is a union-find
 * of the terms that the steps so far make equal. */
#include "synth/result/proof_chain_int.h"
#include "synth/joint/joint.h"
#include "synth/leaves/leaves.h"
#include "egraph/base/hash.h"
#include "rules/permutation.h"

#include <stdlib.h>
#include <string.h>

iso_code pc_nomem(writer *w) { return iso_fail(w->err, ISO_NOMEM, "out of memory"); }

/* ---- terms ---- */

uint32_t pc_root(writer *w, uint32_t i) {
  while (w->up[i] != i) i = w->up[i] = w->up[w->up[i]];
  return i;
}

uint32_t pc_captured(const writer *w, int side, size_t node) {
  return (uint32_t)(node + (side == RIGHT ? w->s->graph[LEFT]->n_nodes : 0));
}

static uint64_t hash_term(const rule_term *t) {
  uint64_t h = (uint64_t)t->kind * 31 + t->n;
  if (t->kind == RULE_OP || t->kind == RULE_STRING) h = iso_hash(t->u.s, strlen(t->u.s), h);
  else if (t->kind != RULE_LIST && t->kind != RULE_NONE) h = iso_hash(&t->u, sizeof t->u, h);
  for (uint32_t k = 0; k < t->n; k++) h = (h ^ hash_term(t->child[k])) * 0x9e3779b97f4a7c15u;
  return h ^ h >> 29;
}

static uint32_t *slot(writer *w, const rule_term *t) {
  for (uint64_t h = hash_term(t);; h++) {
    uint32_t *x = &w->table[h & (w->n_table - 1)];
    if (*x == 0 || rule_term_eq(w->term[*x - 1].call, t)) return x;
  }
}

bool pc_enlarge(writer *w) {
  uint32_t *old = w->table;
  const size_t n = w->n_table;
  w->n_table = n ? 2 * n : 1024;
  if (!(w->table = calloc(w->n_table, sizeof *w->table))) {
    w->table = old, w->n_table = n;
    return false;
  }
  for (size_t i = 0; i < n; i++)
    if (old[i]) *slot(w, w->term[old[i] - 1].call) = old[i];
  free(old);
  return true;
}

iso_code pc_push(writer *w, synth_cert_term t) {
  if (w->n_terms >= NONE - 1 || !iso_grow(w->term, w->cap_terms, w->n_terms + 1) ||
      !iso_grow(w->up, w->cap_up, w->n_terms + 1))
    return pc_nomem(w);
  w->up[w->n_terms] = (uint32_t)w->n_terms;
  w->term[w->n_terms++] = t;
  return ISO_OK;
}

iso_code pc_call(writer *w, const rule_term *t, uint32_t *out) {
  if (2 * w->n_terms >= w->n_table && !pc_enlarge(w)) return pc_nomem(w);
  uint32_t *x = slot(w, t);
  if (*x == 0) {
    iso_code c = pc_push(w, (synth_cert_term){.call = t});
    if (c) return c;
    *x = (uint32_t)w->n_terms;
  }
  *out = *x - 1;
  return ISO_OK;
}

const rule_term *pc_over_terms(writer *w, int side, const rule_term *t) {
  iso_arena *a = &w->s->arena;
  if (t->kind == RULE_VAR) return rule_var(a, pc_captured(w, side, (size_t)t->u.i));
  if (t->kind != RULE_OP && t->kind != RULE_LIST) return t;
  const rule_term **child = iso_arena_alloc(a, (t->n + 1) * sizeof *child);
  if (!child) return NULL;
  for (uint32_t k = 0; k < t->n; k++)
    if (!(child[k] = pc_over_terms(w, side, t->child[k]))) return NULL;
  return t->kind == RULE_OP ? rule_op(a, t->u.s, child, t->n) : rule_list(a, child, t->n);
}

const rule_term *pc_as_read(writer *w, int side, size_t node) {
  const rule_term *call = st_read_call(w->s, side, node, &w->s->arena);
  return call ? pc_over_terms(w, side, call) : NULL;
}

/* The node of `side` that is literally this call. Returns: NONE if none. */
static uint32_t captured_as(writer *w, eg_node e, int side, const rule_term *call, bool *starved) {
  const int32_t n = w->s->rec[e.i].node[side];
  if (n < 0 || w->s->graph[side]->node[n].kind != SYNTH_OP) return NONE;
  const rule_term *t = pc_as_read(w, side, (size_t)n);
  *starved |= !t;
  return t && rule_term_eq(t, call) ? pc_captured(w, side, (size_t)n) : NONE;
}

/* A term over terms, each of whose calls becomes one. */
static iso_code flatten(writer *w, const rule_term *t, const rule_term **out) {
  const rule_term **child = iso_arena_alloc(&w->s->arena, (t->n + 1) * sizeof *child);
  iso_code c = child ? ISO_OK : pc_nomem(w);
  *out = t;
  for (uint32_t k = 0; k < t->n && !c; k++) c = flatten(w, t->child[k], &child[k]);
  if (c || (t->kind != RULE_OP && t->kind != RULE_LIST)) return c;
  if (t->kind == RULE_LIST)
    return (*out = rule_list(&w->s->arena, child, t->n)) ? ISO_OK : pc_nomem(w);
  const rule_term *call = rule_op(&w->s->arena, t->u.s, child, t->n);
  uint32_t id;
  if (!call) return pc_nomem(w);
  if ((c = pc_call(w, call, &id))) return c;
  return (*out = rule_var(&w->s->arena, id)) ? ISO_OK : pc_nomem(w);
}

/* The numbers whose order an input of different integers begins. */
static iso_code name_order(writer *w, eg_node leaf, const rule_term **out) {
  state *s = w->s;
  const int side = s->rec[leaf.i].node[LEFT] >= 0 ? LEFT : RIGHT;
  const synth_node *n = &s->graph[side]->node[s->rec[leaf.i].node[side]];
  const rule_term *t;
  iso_code c = rule_order(&s->arena, s->schemas, n->domain, &n->shape, w->arg[leaf.i], &t, w->err);
  return c ? c : flatten(w, t, out);
}

iso_code pc_name_node(writer *w, eg_node e) {
  state *s = w->s;
  iso_arena *a = &s->arena;
  const rule_term *lit = st_literal(s, e);
  const size_t n = eg_node_arity(s->g, e);
  uint32_t id = NONE;
  if (lit) {
    w->arg[e.i] = lit;
    return ISO_OK;
  }
  if (st_bound_by(&s->leaves, e, true)) {
    const st_bound *b = st_bound_by(&s->leaves, e, true);
    w->arg[e.i] = w->arg[b->leaf.i];
    return b->other ? name_order(w, b->leaf, &w->arg[e.i]) : ISO_OK;
  }
  for (int side = 0; side < 2 && s->rec[e.i].leaf && id == NONE; side++)
    if (s->rec[e.i].node[side] >= 0) id = pc_captured(w, side, (size_t)s->rec[e.i].node[side]);
  if (id == NONE) {
    const rule_term **child = iso_arena_alloc(a, (n + 1) * sizeof *child);
    if (!child) return pc_nomem(w);
    for (size_t k = 0; k < n; k++)
      if (!(child[k] = w->arg[eg_node_original(s->g, e, k).i])) return pc_nomem(w);
    if (st_is_list(s, e)) return (w->arg[e.i] = rule_list(a, child, n)) ? ISO_OK : pc_nomem(w);
    const rule_term *call = rule_op(a, st_operator(s, e), child, n);
    bool starved = !call;
    for (int side = 0; side < 2 && call && id == NONE; side++)
      id = captured_as(w, e, side, call, &starved);
    if (starved) return pc_nomem(w);
    iso_code c = id == NONE ? pc_call(w, call, &id) : ISO_OK;
    if (c) return c;
  }
  return (w->arg[e.i] = rule_var(a, id)) ? ISO_OK : pc_nomem(w);
}

uint32_t pc_term_of(const writer *w, eg_node e) {
  return w->arg[e.i]->kind == RULE_VAR ? (uint32_t)w->arg[e.i]->u.i : NONE;
}
