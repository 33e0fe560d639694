/* A parameter that was computed when its model was loaded is written as that computation.
 *
 * The other graph has the leaves that it was computed from, so this one gets copies: leaves first,
 * then the operators over them, then its own nodes. The parameter's own node, its id kept, becomes
 * the last operator of the computation, so that its readers need no change. */
#include <stdlib.h>
#include <string.h>

#include "capture/capture_int.h"

enum { NOWHERE = UINT32_MAX };

typedef struct folding {
  cap_graph *g;
  const cap_fold *f;
  uint32_t *of_old, *of_from; /* by node of either graph: where it comes to stand */
  bool *needed;               /* by node of the other graph: the term depends on it */
  cap_node *node;             /* the new nodes */
  uint32_t *from;             /* by new node: where its values are: of_old's, or NOWHERE */
  rule_tensor **weight;       /* by new node; owned */
  uint32_t n;
  iso_error *err;
} folding;

/* ---- terms ---- */

const rule_term *cap_renumber(iso_arena *a, const rule_term *t, const uint32_t *to) {
  if (t->kind == RULE_VAR) return rule_var(a, to[t->u.i]);
  if (t->kind != RULE_OP && t->kind != RULE_LIST) return rule_term_copy(a, t);
  const rule_term **child = malloc((t->n + 1) * sizeof *child);
  bool fine = child != NULL;
  for (uint32_t i = 0; i < t->n && fine; i++)
    fine = (child[i] = cap_renumber(a, t->child[i], to)) != NULL;
  const rule_term *out = !fine                  ? NULL
                         : t->kind == RULE_LIST ? rule_list(a, child, t->n)
                                                : rule_op(a, t->u.s, child, t->n);
  free(child);
  return out;
}

static void mark(const cap_graph *from, const rule_term *t, bool *needed) {
  if (t->kind == RULE_VAR && !needed[t->u.i]) {
    needed[t->u.i] = true;
    if (from->node[t->u.i].call) mark(from, from->node[t->u.i].call, needed);
  }
  for (uint32_t i = 0; i < t->n; i++) mark(from, t->child[i], needed);
}

static uint32_t count_calls(const rule_term *t) {
  uint32_t n = t->kind == RULE_OP;
  for (uint32_t i = 0; i < t->n; i++) n += count_calls(t->child[i]);
  return n;
}

/* ---- names ---- */

static bool has_name(const folding *x, const char *name, bool id) {
  for (uint32_t i = 0; i < x->n; i++) {
    const char *own = id ? x->node[i].id : x->node[i].name;
    if (own && strcmp(own, name) == 0) return true;
  }
  for (size_t i = 0; i < x->g->n_nodes; i++) {
    const cap_node *n = &x->g->node[i];
    const char *own = id ? n->id : i == x->f->leaf ? NULL : n->name;
    if (own && strcmp(own, name) == 0) return true;
  }
  return false;
}

/* `s`, or with a number behind it, as no other node has it. NULL: no memory. */
static const char *own_name(folding *x, const char *s, bool id) {
  const char *name = iso_arena_strdup(&x->g->arena, s);
  for (size_t k = 1; name && has_name(x, name, id); k++)
    name = iso_arena_printf(&x->g->arena, "%s_%zu", s, k);
  return name;
}

/* ---- nodes ---- */

/* The leaf that this graph has already, of that name and value: -1, none. */
static int64_t same_leaf(const folding *x, const cap_node *n) {
  for (size_t i = 0; i < x->g->n_nodes; i++) {
    const cap_node *m = &x->g->node[i];
    if (i != x->f->leaf && m->kind == n->kind && m->name && strcmp(m->name, n->name) == 0 &&
        m->value->dtype == n->value->dtype && rule_tensor_same(m->value, n->value))
      return (int64_t)i;
  }
  return -1;
}

static void add(folding *x, cap_node node, uint32_t from) {
  x->from[x->n] = from;
  x->node[x->n++] = node;
}

static iso_code add_old(folding *x, bool ops) {
  for (uint32_t i = 0; i < x->g->n_nodes; i++) {
    cap_node n = x->g->node[i];
    if ((n.kind == CAP_OP) != ops || i == x->f->leaf) continue;
    x->of_old[i] = x->n;
    add(x, n, i);
  }
  return ISO_OK;
}

/* A node of the other graph. */
static iso_code add_copy(folding *x, uint32_t i) {
  iso_arena *a = &x->g->arena;
  cap_node n = x->f->from->node[i];
  cap_output *out = iso_arena_alloc(a, (n.n_outputs + 1) * sizeof *out);
  n.id = own_name(x, n.id, true);
  if (n.name) n.name = own_name(x, n.name, false);
  n.op = n.op ? iso_arena_strdup(a, n.op) : NULL;
  n.scope = iso_arena_strdup(a, n.scope);
  n.source = iso_arena_strdup(a, n.source);
  n.caller = iso_arena_strdup(a, n.caller);
  if (n.call) n.call = cap_renumber(a, n.call, x->of_from);
  const bool leaf = x->f->from->node[i].kind != CAP_OP;
  if (!out || !n.id || !n.scope || !n.source || !n.caller || (leaf ? !n.name : !n.call))
    return cap_no_memory(x->err);
  memcpy(out, x->f->from->node[i].output, n.n_outputs * sizeof *out);
  n.output = out;
  x->of_from[i] = x->n;
  if (leaf) x->weight[x->n] = rule_tensor_ref(n.value);
  add(x, n, NOWHERE);
  return ISO_OK;
}

static iso_code add_leaves(folding *x) {
  const cap_graph *from = x->f->from;
  iso_code c = ISO_OK;
  for (uint32_t i = 0; i < from->n_nodes && !c; i++) {
    const cap_node *n = &from->node[i];
    if (!x->needed[i] || n->kind == CAP_OP) continue;
    const int64_t same = same_leaf(x, n);
    if (same >= 0) x->of_from[i] = x->of_old[same];
    else c = add_copy(x, i);
  }
  return c;
}

static const cap_output *what_of(const cap_fold *f, const rule_term *t) {
  for (size_t i = 0; i < f->n_calls; i++)
    if (f->call[i].term == t) return &f->call[i].what;
  return NULL;
}

/* The parameter's node as the last call of its computation. */
static void add_folded(folding *x, const rule_term *call) {
  cap_node n = x->g->node[x->f->leaf];
  n.kind = CAP_OP;
  n.name = NULL;
  n.op = call->u.s;
  n.call = call;
  n.value = NULL;
  n.domain = NULL;
  x->of_old[x->f->leaf] = x->n;
  add(x, n, NOWHERE);
}

static iso_code add_call(folding *x, const rule_term *t, const rule_term **out);

/* An argument of a call: calls in it become nodes. */
static iso_code argument(folding *x, const rule_term *t, const rule_term **out) {
  iso_arena *a = &x->g->arena;
  iso_code c = ISO_OK;
  if (t->kind == RULE_OP) return add_call(x, t, out);
  if (t->kind == RULE_LIST) {
    const rule_term **child = iso_arena_alloc(a, (t->n + 1) * sizeof *child);
    if (!child) return cap_no_memory(x->err);
    for (uint32_t i = 0; i < t->n && !c; i++) c = argument(x, t->child[i], &child[i]);
    *out = c ? NULL : rule_list(a, child, t->n);
  } else {
    *out = t->kind == RULE_VAR ? rule_var(a, x->of_from[t->u.i]) : rule_term_copy(a, t);
  }
  return c ? c : *out ? ISO_OK : cap_no_memory(x->err);
}

static iso_code add_call(folding *x, const rule_term *t, const rule_term **out) {
  iso_arena *a = &x->g->arena;
  const rule_term **child = iso_arena_alloc(a, (t->n + 1) * sizeof *child);
  iso_code c = child ? ISO_OK : cap_no_memory(x->err);
  for (uint32_t i = 0; i < t->n && !c; i++) c = argument(x, t->child[i], &child[i]);
  const rule_term *call = c ? NULL : rule_op(a, t->u.s, child, t->n);
  if (c || !call) return c ? c : cap_no_memory(x->err);
  if (t == x->f->term) return add_folded(x, call), ISO_OK;
  cap_output *what = iso_arena_alloc(a, sizeof *what);
  const char *id = own_name(x, "fold", true);
  if (!what || !id || !(*out = rule_var(a, x->n))) return cap_no_memory(x->err);
  *what = *what_of(x->f, t);
  cap_node node = cap_operator_node(id, call, what, 1);
  node.scope = x->g->node[x->f->leaf].scope;
  add(x, node, NOWHERE);
  return ISO_OK;
}

/* The operators of the other graph that the term depends on, then its own. */
static iso_code add_operators(folding *x) {
  const cap_graph *from = x->f->from;
  const rule_term *t = x->f->term, *ignored;
  iso_code c = ISO_OK;
  for (uint32_t i = 0; i < from->n_nodes && !c; i++) {
    if (!x->needed[i] || from->node[i].kind != CAP_OP) continue;
    if (t->kind != RULE_VAR || (uint32_t)t->u.i != i) c = add_copy(x, i);
    else {
      const rule_term *call = cap_renumber(&x->g->arena, from->node[i].call, x->of_from);
      if (!call) return cap_no_memory(x->err);
      add_folded(x, call);
    }
  }
  return c || t->kind == RULE_VAR ? c : add_call(x, t, &ignored);
}

/* ---- the graph ---- */

static void renumber_old(folding *x, bool *fine) {
  for (uint32_t i = 0; i < x->n && *fine; i++) {
    if (x->from[i] == NOWHERE || !x->node[i].call) continue;
    x->node[i].call = cap_renumber(&x->g->arena, x->node[i].call, x->of_old);
    *fine = x->node[i].call != NULL;
    if (*fine && x->node[i].sized) {
      x->node[i].sized = cap_renumber(&x->g->arena, x->node[i].sized, x->of_old);
      *fine = x->node[i].sized != NULL;
    }
  }
}

/* Everything is there, and nothing fails any more. */
static void take_over(folding *x, rule_tensor **input, cap_result *result) {
  cap_graph *g = x->g;
  impl *m = g->impl;
  for (uint32_t i = 0; i < x->n; i++) {
    if (x->from[i] == NOWHERE) continue;
    x->weight[i] = m->weight[x->from[i]];
    for (size_t set = 0; set < g->n_sets; set++)
      input[set * x->n + i] = m->input[set * g->n_nodes + x->from[i]];
  }
  for (size_t i = 0; i < g->n_results; i++)
    result[i] = (cap_result){g->result[i].name, x->of_old[g->result[i].node]};
  rule_tensor_unref(m->weight[x->f->leaf]);
  free(m->weight);
  free(m->input);
  m->weight = x->weight;
  g->input = m->input = input;
  g->node = x->node;
  g->n_nodes = x->n;
  g->result = result;
  x->weight = NULL;
  cap_show_values(g);
}

iso_code cap_fold_leaf(cap_graph *g, const cap_fold *f, iso_error *err) {
  const size_t most = g->n_nodes + f->from->n_nodes + count_calls(f->term) + 1;
  if (most >= INT32_MAX) return iso_fail(err, ISO_LIMIT, "%s: too many nodes", g->path);
  folding x = {.g = g,
               .f = f,
               .of_old = calloc(g->n_nodes + 1, sizeof *x.of_old),
               .of_from = calloc(f->from->n_nodes + 1, sizeof *x.of_from),
               .needed = calloc(f->from->n_nodes + 1, 1),
               .node = iso_arena_alloc(&g->arena, most * sizeof *x.node),
               .from = calloc(most, sizeof *x.from),
               .weight = calloc(most, sizeof *x.weight),
               .err = err};
  rule_tensor **input = calloc(g->n_sets * most + 1, sizeof *input);
  cap_result *result = iso_arena_alloc(&g->arena, (g->n_results + 1) * sizeof *result);
  bool fine = x.of_old && x.of_from && x.needed && x.node && x.from && x.weight && input && result;
  iso_code c = fine ? ISO_OK : cap_no_memory(err);
  if (!c) mark(f->from, f->term, x.needed);
  if (!c) c = add_old(&x, false);
  if (!c) c = add_leaves(&x);
  if (!c) c = add_operators(&x);
  if (!c) c = add_old(&x, true);
  if (!c) renumber_old(&x, &fine);
  if (!c && !fine) c = cap_no_memory(err);
  if (!c) take_over(&x, input, result);
  else free(input);
  for (uint32_t i = 0; x.weight && i < x.n; i++)
    if (x.from[i] == NOWHERE) rule_tensor_unref(x.weight[i]);
  free(x.weight);
  free(x.of_old);
  free(x.of_from);
  free(x.needed);
  free(x.from);
  return c;
}
