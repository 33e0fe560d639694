/* A graph of version 3, which is one rank's, as that of all ranks. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "capture/capture_int.h"
#include "capture/roles/roles_int.h"
#include "rules/names.h"
#include "rules/operators.h"

enum { MOST_NODES = 1 << 22 };

typedef struct spreading {
  cap_graph *g; /* of one rank, until the end */
  iso_error *err;
  uint32_t n_ranks;
  const cap_role *role;
  uint32_t *first; /* by node of one rank: the first rank's of the new graph */
  cap_node *node;
  const char **stored;
  size_t n;
} spreading;

static bool shares(const cap_node *n) {
  return cap_role_joins(n) && rule_is_overload(n->op, OP_DIST_REDUCE_SCATTER);
}

/* Whether each rank has a node of its own: of a result that is shared out, each has the part that
 * it takes. */
static bool each_has(const cap_node *n) { return !cap_role_joins(n) || shares(n); }

static uint32_t image(const spreading *s, int64_t node, uint32_t r) {
  return s->first[node] + (each_has(&s->g->node[node]) ? r : 0);
}

/* Rank `r`'s own term. NULL: there is no memory. */
static const rule_term *term_of(const spreading *s, const rule_term *t, uint32_t r) {
  iso_arena *a = &s->g->arena;
  if (t->kind == RULE_VAR) return rule_var(a, image(s, t->u.i, r));
  if (t->kind != RULE_OP && t->kind != RULE_LIST) return t;
  const rule_term **child = iso_arena_alloc(a, (t->n + 1) * sizeof *child);
  for (uint32_t i = 0; i < t->n; i++)
    if (!child || !(child[i] = term_of(s, t->child[i], r))) return NULL;
  return !child               ? NULL
         : t->kind == RULE_OP ? rule_op(a, t->u.s, child, t->n)
                              : rule_list(a, child, t->n);
}

static iso_code append(spreading *s, const cap_node *like, const char *id, const rule_term *call) {
  if (!id || (like->call && !call)) return cap_no_memory(s->err);
  s->node[s->n] = *like;
  s->node[s->n].id = id;
  s->node[s->n].call = call;
  s->n++;
  return ISO_OK;
}

static iso_code spread_leaf(spreading *s, uint32_t k, uint32_t r) {
  const cap_node *n = &s->g->node[k];
  iso_arena *a = &s->g->arena;
  const char *name = iso_arena_printf(a, "rank%" PRIu32 ".%s", r, n->name);
  const size_t at = s->n;
  const iso_code c = append(s, n, iso_arena_printf(a, "r%" PRIu32 "_%s", r, n->id), NULL);
  if (c || !name) return c ? c : cap_no_memory(s->err);
  s->node[at].name = name;
  s->stored[at] = s->role->own[k] ? name : n->name;
  return ISO_OK;
}

static iso_code spread_operator(spreading *s, const cap_node *n, uint32_t r) {
  return append(s, n, iso_arena_printf(&s->g->arena, "r%" PRIu32 "_%s", r, n->id),
                term_of(s, n->call, r));
}

/* The operator on the tensors that all ranks have in the place of its one operand. */
static const rule_term *meeting(const spreading *s, const rule_term *t) {
  iso_arena *a = &s->g->arena;
  const rule_term **of = iso_arena_alloc(a, s->n_ranks * sizeof *of);
  const rule_term **child = iso_arena_alloc(a, t->n * sizeof *child);
  if (!of || !child) return NULL;
  for (uint32_t r = 0; r < s->n_ranks; r++)
    if (!(of[r] = term_of(s, t->child[0]->child[0], r))) return NULL;
  memcpy(child, t->child, t->n * sizeof *child);
  return (child[0] = rule_list(a, of, s->n_ranks)) ? rule_op(a, t->u.s, child, t->n) : NULL;
}

static iso_code spread_collective(spreading *s, const cap_node *n, uint32_t k) {
  iso_arena *a = &s->g->arena;
  const uint32_t at = (uint32_t)s->n;
  iso_code c = append(s, n, iso_arena_printf(a, "all_%s", n->id), meeting(s, n->call));
  s->first[k] = at + shares(n);
  if (c || !shares(n)) return c;
  cap_output *out = iso_arena_alloc(a, s->n_ranks * sizeof *out);
  if (!out) return cap_no_memory(s->err);
  for (uint32_t r = 0; r < s->n_ranks; r++) out[r] = n->output[0];
  s->node[at].n_outputs = s->n_ranks;
  s->node[at].output = out;
  for (uint32_t r = 0; r < s->n_ranks && !c; r++) {
    cap_node share = {.kind = CAP_OP,
                      .op = "getitem",
                      .n_outputs = 1,
                      .output = n->output,
                      .scope = n->scope,
                      .source = n->source,
                      .caller = n->caller,
                      .call = n->call};
    const rule_term *child[2] = {rule_var(a, at), rule_int(a, r)};
    c = append(s, &share, iso_arena_printf(a, "r%" PRIu32 "_%s", r, n->id),
               child[0] && child[1] ? rule_op(a, "getitem", child, 2) : NULL);
  }
  return c;
}

static iso_code spread_nodes(spreading *s) {
  iso_code c = ISO_OK;
  for (uint32_t k = 0; k < s->g->n_nodes && !c; k++) {
    const cap_node *n = &s->g->node[k];
    s->first[k] = (uint32_t)s->n;
    if (cap_role_joins(n)) c = spread_collective(s, n, k);
    else
      for (uint32_t r = 0; r < s->n_ranks && !c; r++)
        c = n->call ? spread_operator(s, n, r) : spread_leaf(s, k, r);
  }
  return c;
}

/* Rank after rank; the first's are called as they stand. */
static iso_code spread_results(const spreading *s, cap_result **out) {
  cap_graph *g = s->g;
  cap_result *all = iso_arena_alloc(&g->arena, s->n_ranks * g->n_results * sizeof *all);
  if (!all) return cap_no_memory(s->err);
  for (size_t i = 0; i < s->n_ranks * g->n_results; i++) {
    const cap_result *one = &g->result[i % g->n_results];
    const uint32_t r = (uint32_t)(i / g->n_results);
    const char *name = r ? iso_arena_printf(&g->arena, "%s_rank%" PRIu32, one->name, r) : one->name;
    if (!name) return cap_no_memory(s->err);
    all[i] = (cap_result){name, image(s, one->node, r)};
  }
  *out = all;
  return ISO_OK;
}

iso_code cap_spread(cap_graph *g, const cap_role *role, iso_error *err) {
  spreading s = {.g = g, .err = err, .n_ranks = role->n_ranks, .role = role};
  cap_result *result = NULL;
  const size_t room = (g->n_nodes + 1) * (s.n_ranks + 1);
  if (room > MOST_NODES)
    return iso_fail(err, ISO_LIMIT, "%zu nodes on %" PRIu32 " ranks are too many", g->n_nodes,
                    s.n_ranks);
  s.first = calloc(g->n_nodes + 1, sizeof *s.first);
  s.node = iso_arena_alloc(&g->arena, room * sizeof *s.node);
  s.stored = iso_arena_alloc(&g->arena, room * sizeof *s.stored);
  iso_code c = s.first && s.node && s.stored ? ISO_OK : cap_no_memory(err);
  if (!c) memset(s.stored, 0, room * sizeof *s.stored);
  if (!c) c = spread_nodes(&s);
  if (!c) c = spread_results(&s, &result);
  if (!c) {
    g->node = s.node;
    g->n_nodes = s.n;
    g->result = result;
    g->n_results *= s.n_ranks;
    ((impl *)g->impl)->stored = s.stored;
  }
  free(s.first);
  return c;
}
