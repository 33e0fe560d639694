/* Ranks that run one program, as a graph of version 3 has them: read as the graph of all ranks, or
 * kept as the one program, with the tensors that each rank has of its own beside it. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "egraph/base/vec.h"
#include "capture/capture_int.h"
#include "capture/roles/roles_int.h"
#include "rules/operators.h"

enum { MOST_RANKS = 1 << 16 };

bool cap_role_joins(const cap_node *n) {
  return n->call && n->call->kind == RULE_OP && rule_operator_of(n->call->u.s)->collective;
}

static iso_code check_node(const cap_node *n, iso_error *err) {
  const rule_term *list = n->call && n->call->n ? n->call->child[0] : NULL;
  const char *rest;
  if (!n->call && roles_rank_of(n->name, &rest) >= 0) /* its tensor would be another leaf's */
    return iso_fail(err, ISO_FORMAT, "node \"%.120s\": \"%.120s\" is one rank's leaf", n->id,
                    n->name);
  if (!cap_role_joins(n))
    return n->call && rule_is_collective(n->op)
               ? iso_fail(err, ISO_FORMAT, "node \"%.120s\": %.40s is no operator of a role", n->id,
                          n->op)
               : ISO_OK;
  if (!list || list->kind != RULE_LIST || list->n != 1 || list->child[0]->kind != RULE_VAR ||
      n->n_outputs != 1)
    return iso_fail(err, ISO_FORMAT,
                    "node \"%.120s\": a collective of a role names one tensor and has one output",
                    n->id);
  return ISO_OK;
}

/* The rank that an output's name ends in, as cap_spread writes it; 0: none, or the first, whose
 * outputs are called as the graph calls them. */
static unsigned long rank_behind(const char *digits) {
  char *end = NULL;
  if (*digits < '1' || *digits > '9') return 0;
  const unsigned long r = strtoul(digits, &end, 10);
  return *end ? 0 : r;
}

/* Another rank's output is called as the first's, with the rank behind. */
static iso_code check_outputs(const cap_graph *g, uint32_t n_ranks, iso_error *err) {
  cap_names taken = {0};
  iso_code c = ISO_OK;
  for (size_t i = 0; i < g->n_results && !c; i++)
    if (!cap_names_add(&taken, g->result[i].name, i)) c = cap_no_memory(err);
  for (size_t i = 0; i < g->n_results && !c; i++) {
    const char *own = g->result[i].name;
    for (const char *at = own; !c && (at = strstr(at, "_rank")); at++) {
      char *first = strndup(own, (size_t)(at - own));
      const unsigned long r = rank_behind(at + strlen("_rank"));
      if (!first) c = cap_no_memory(err);
      else if (r && r < n_ranks && cap_names_find(&taken, first) != CAP_NO_INDEX)
        c = iso_fail(err, ISO_FORMAT, "two outputs are called \"%.120s\"", own);
      free(first);
    }
  }
  cap_names_fini(&taken);
  return c;
}

static uint32_t leaf_of(const cap_graph *g, const char *name) {
  for (uint32_t i = 0; name && i < g->n_nodes; i++)
    if (g->node[i].name && strcmp(g->node[i].name, name) == 0) return i;
  return ROLES_NONE;
}

/* {"ranks": 64, "own": ["ids", "labels"]} */
static iso_code read(cap_graph *g, const json_t *said, cap_role *x, iso_error *err) {
  const json_t *ranks = json_object_get(said, "ranks"), *own = json_object_get(said, "own");
  if (!json_is_integer(ranks) || json_integer_value(ranks) < 2 ||
      json_integer_value(ranks) > MOST_RANKS)
    return iso_fail(err, ISO_FORMAT, "\"roles\" has no \"ranks\" from 2 to %d", MOST_RANKS);
  x->n_ranks = (uint32_t)json_integer_value(ranks);
  if (!json_is_array(own))
    return iso_fail(err, ISO_FORMAT, "\"roles\" has no \"own\", a list of names");
  x->own = iso_arena_alloc(&g->arena, (g->n_nodes + 1) * sizeof *x->own);
  if (!x->own) return cap_no_memory(err);
  memset(x->own, 0, (g->n_nodes + 1) * sizeof *x->own);
  for (size_t i = 0; i < json_array_size(own); i++) {
    const char *name = json_string_value(json_array_get(own, i));
    const uint32_t leaf = leaf_of(g, name);
    if (leaf == ROLES_NONE)
      return iso_fail(err, ISO_FORMAT, "\"own\" names \"%.120s\", which is no leaf",
                      name ? name : "");
    x->own[leaf] = 1;
  }
  return ISO_OK;
}

/* Numbers the leaves of which each rank has its own, inputs by themselves, and says what the
 * first rank's tensors are called. */
static iso_code keep(cap_graph *g, cap_role *x, iso_error *err) {
  impl *m = g->impl;
  m->stored = iso_arena_alloc(&g->arena, (g->n_nodes + 1) * sizeof *m->stored);
  m->role = iso_arena_alloc(&g->arena, sizeof *m->role);
  if (!m->stored || !m->role) {
    m->role = NULL;
    return cap_no_memory(err);
  }
  for (uint32_t i = 0; i < g->n_nodes; i++) {
    const bool input = g->node[i].kind == CAP_INPUT;
    m->stored[i] = NULL;
    if (!x->own[i]) continue;
    x->own[i] = input ? ++x->n_inputs : ++x->n_weights;
    m->stored[i] = iso_arena_printf(&g->arena, "rank0.%s", g->node[i].name);
    if (!m->stored[i]) return cap_no_memory(err);
  }
  *m->role = *x;
  return ISO_OK;
}

iso_code cap_read_role(cap_graph *g, const json_t *said, bool kept, iso_error *err) {
  cap_role x = {0};
  iso_code c = read(g, said, &x, err);
  for (size_t i = 0; i < g->n_nodes && !c; i++) c = check_node(&g->node[i], err);
  if (!c) c = check_outputs(g, x.n_ranks, err);
  if (c) return c;
  return kept ? keep(g, &x, err) : cap_spread(g, &x, err);
}

uint32_t cap_role_ranks(const cap_graph *g) {
  const cap_role *x = ((const impl *)g->impl)->role;
  return x ? x->n_ranks : 0;
}

iso_code cap_role_add(cap_graph *g, size_t node, cap_get_fn *get, void *ctx, iso_error *err) {
  cap_role *x = ((impl *)g->impl)->role;
  if (!x || !x->own[node]) return ISO_OK;
  for (uint32_t r = 0; r < x->n_ranks; r++) {
    const char *path = NULL;
    cap_node own = g->node[node];
    rule_tensor *t = NULL;
    own.name = iso_arena_printf(&g->arena, "rank%" PRIu32 ".%s", r, g->node[node].name);
    if (!own.name || !iso_grow(x->value, x->cap, x->n_values + 1)) return cap_no_memory(err);
    iso_code c = get(ctx, own.name, &t, &path, err);
    if (!c) c = cap_take_value(t, &own, path, &x->value[x->n_values], err);
    if (c) return c;
    x->n_values++;
  }
  return ISO_OK;
}

rule_tensor *cap_role_value(const cap_graph *g, size_t node, uint32_t rank, size_t set) {
  const cap_role *x = ((const impl *)g->impl)->role;
  const bool input = g->node[node].kind == CAP_INPUT;
  if (!x || !x->own[node]) return input ? g->input[set * g->n_nodes + node] : g->node[node].value;
  const size_t at = (input ? x->n_weights + set * x->n_inputs : 0) + x->own[node] - 1;
  return x->value[at * x->n_ranks + rank];
}

void cap_role_end(cap_graph *g) {
  impl *m = g->impl;
  if (!m->role) return;
  for (size_t i = 0; i < m->role->n_values; i++) rule_tensor_unref(m->role->value[i]);
  free(m->role->value);
  m->role = NULL;
}
