/* A graph of version 3, which is one rank's, as that of all ranks. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "capture/capture_int.h"
#include "capture/roles/roles_int.h"
#include "rules/names.h"
#include "rules/operators.h"

enum { MOST_RANKS = 1 << 16, MOST_NODES = 1 << 22 };

typedef struct spreading {
  cap_graph *g; /* of one rank, until the end */
  iso_error *err;
  uint32_t n_ranks;
  cap_names own;   /* leaves of which each rank has another tensor */
  uint32_t *first; /* by node of one rank: the first rank's of the new graph */
  cap_node *node;
  const char **stored;
  size_t n;
} spreading;

/* A node in which all ranks meet. */
static bool joins(const cap_node *n) {
  return n->call && n->call->kind == RULE_OP && rule_operator_of(n->call->u.s)->collective;
}

static bool shares(const cap_node *n) {
  return joins(n) && rule_is_overload(n->op, OP_DIST_REDUCE_SCATTER);
}

/* Whether each rank has a node of its own: of a result that is shared out, each has the part that
 * it takes. */
static bool each_has(const cap_node *n) { return !joins(n) || shares(n); }

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

static iso_code spread_leaf(spreading *s, const cap_node *n, uint32_t r) {
  iso_arena *a = &s->g->arena;
  const char *rest, *name = iso_arena_printf(a, "rank%" PRIu32 ".%s", r, n->name);
  if (roles_rank_of(n->name, &rest) >= 0) /* its tensor would be another leaf's */
    return iso_fail(s->err, ISO_FORMAT, "node \"%.120s\": \"%.120s\" is one rank's leaf", n->id,
                    n->name);
  const size_t at = s->n;
  const iso_code c = append(s, n, iso_arena_printf(a, "r%" PRIu32 "_%s", r, n->id), NULL);
  if (c || !name) return c ? c : cap_no_memory(s->err);
  s->node[at].name = name;
  s->stored[at] = cap_names_find(&s->own, n->name) == CAP_NO_INDEX ? n->name : name;
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
  const rule_term *t = n->call, *list = t->n ? t->child[0] : NULL;
  if (!list || list->kind != RULE_LIST || list->n != 1 || list->child[0]->kind != RULE_VAR ||
      n->n_outputs != 1)
    return iso_fail(s->err, ISO_FORMAT,
                    "node \"%.120s\": a collective of a role names one tensor and has one output",
                    n->id);
  const uint32_t at = (uint32_t)s->n;
  iso_code c = append(s, n, iso_arena_printf(a, "all_%s", n->id), meeting(s, t));
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
    if (joins(n)) c = spread_collective(s, n, k);
    else if (n->call && rule_is_collective(n->op))
      c = iso_fail(s->err, ISO_FORMAT, "node \"%.120s\": %.40s is no operator of a role", n->id,
                   n->op);
    else
      for (uint32_t r = 0; r < s->n_ranks && !c; r++)
        c = n->call ? spread_operator(s, n, r) : spread_leaf(s, n, r);
  }
  return c;
}

/* Rank after rank; the first's are called as they stand. */
static iso_code spread_results(spreading *s, cap_result **out) {
  cap_graph *g = s->g;
  cap_names taken = {0};
  iso_code c = ISO_OK;
  cap_result *all = iso_arena_alloc(&g->arena, s->n_ranks * g->n_results * sizeof *all);
  if (!all) return cap_no_memory(s->err);
  for (size_t i = 0; i < s->n_ranks * g->n_results && !c; i++) {
    const cap_result *one = &g->result[i % g->n_results];
    const uint32_t r = (uint32_t)(i / g->n_results);
    const char *name = r ? iso_arena_printf(&g->arena, "%s_rank%" PRIu32, one->name, r) : one->name;
    if (!name) c = cap_no_memory(s->err);
    else if (cap_names_find(&taken, name) != CAP_NO_INDEX)
      c = iso_fail(s->err, ISO_FORMAT, "two outputs are called \"%.120s\"", name);
    else if (!cap_names_add(&taken, name, i)) c = cap_no_memory(s->err);
    else all[i] = (cap_result){name, image(s, one->node, r)};
  }
  cap_names_fini(&taken);
  *out = all;
  return c;
}

static bool is_leaf(const cap_graph *g, const char *name) {
  for (size_t i = 0; i < g->n_nodes; i++)
    if (g->node[i].name && strcmp(g->node[i].name, name) == 0) return true;
  return false;
}

/* {"ranks": 64, "own": ["ids", "labels"]} */
static iso_code read_roles(spreading *s, const json_t *said) {
  const json_t *ranks = json_object_get(said, "ranks"), *own = json_object_get(said, "own");
  if (!json_is_integer(ranks) || json_integer_value(ranks) < 2 ||
      json_integer_value(ranks) > MOST_RANKS)
    return iso_fail(s->err, ISO_FORMAT, "\"roles\" has no \"ranks\" from 2 to %d", MOST_RANKS);
  s->n_ranks = (uint32_t)json_integer_value(ranks);
  if (!json_is_array(own))
    return iso_fail(s->err, ISO_FORMAT, "\"roles\" has no \"own\", a list of names");
  if ((s->g->n_nodes + 1) * (s->n_ranks + 1) > MOST_NODES)
    return iso_fail(s->err, ISO_LIMIT, "%zu nodes on %" PRIu32 " ranks are too many", s->g->n_nodes,
                    s->n_ranks);
  for (size_t i = 0; i < json_array_size(own); i++) {
    const char *name = json_string_value(json_array_get(own, i));
    if (!name || !is_leaf(s->g, name))
      return iso_fail(s->err, ISO_FORMAT, "\"own\" names \"%.120s\", which is no leaf",
                      name ? name : "");
    if (cap_names_find(&s->own, name) != CAP_NO_INDEX) continue;
    if (!cap_names_add(&s->own, name, i)) return cap_no_memory(s->err);
  }
  return ISO_OK;
}

iso_code cap_spread(cap_graph *g, const json_t *said, iso_error *err) {
  spreading s = {.g = g, .err = err};
  cap_result *result = NULL;
  iso_code c = read_roles(&s, said);
  const size_t room = c ? 0 : (g->n_nodes + 1) * (s.n_ranks + 1);
  if (!c) {
    s.first = calloc(g->n_nodes + 1, sizeof *s.first);
    s.node = iso_arena_alloc(&g->arena, room * sizeof *s.node);
    s.stored = iso_arena_alloc(&g->arena, room * sizeof *s.stored);
    c = s.first && s.node && s.stored ? ISO_OK : cap_no_memory(err);
  }
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
  cap_names_fini(&s.own);
  return c;
}
