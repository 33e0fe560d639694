/* Changes to a graph that was read: nodes appended, results and inputs replaced, casts that
 * operators make of their operands written out, values of a trace.
 * The graph stays one that a reader would accept: ids are fresh, names are unique. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "capture/pt2/pt2_int.h"
#include "rules/names.h"
#include "rules/operators.h"
#include "egraph/base/vec.h"
#include "capture/capture_int.h"

/* ---- what a user says of it ---- */

/* The number behind "<id>_"; 0: it is another name. */
static uint64_t number_behind(const char *name, const char *id, size_t n) {
  char *end;
  if (strncmp(name, id, n) != 0 || name[n] != '_' || name[n + 1] < '1' || name[n + 1] > '9')
    return 0;
  const uint64_t k = strtoull(name + n + 1, &end, 10);
  return *end ? 0 : k;
}

static const char *fresh_id(cap_graph *g, const char *id) {
  const size_t length = strlen(id);
  uint64_t last = 0;
  bool taken = false;
  for (size_t i = 0; i < g->n_nodes; i++) {
    const uint64_t k = number_behind(g->node[i].id, id, length);
    taken |= strcmp(g->node[i].id, id) == 0;
    last = k > last ? k : last;
  }
  if (!taken) return iso_arena_strdup(&g->arena, id);
  return last < UINT64_MAX ? iso_arena_printf(&g->arena, "%s_%" PRIu64, id, last + 1) : NULL;
}

cap_node cap_operator_node(const char *id, const rule_term *call, const cap_output *output,
                           size_t n_outputs) {
  return (cap_node){.id = id,
                    .kind = CAP_OP,
                    .op = call->u.s,
                    .call = call,
                    .n_outputs = n_outputs,
                    .output = output,
                    .scope = "",
                    .source = "",
                    .caller = ""};
}

iso_code cap_append(cap_graph *g, const char *id, const rule_term *call, const cap_output *output,
                    uint32_t *node, iso_error *err) {
  impl *m = g->impl;
  const size_t n = g->n_nodes;
  if (n >= INT32_MAX) return iso_fail(err, ISO_LIMIT, "%s: too many nodes", g->path);
  cap_node *nodes = iso_arena_alloc(&g->arena, (n + 1) * sizeof *nodes);
  cap_output *out = iso_arena_alloc(&g->arena, sizeof *out);
  const char *own = fresh_id(g, id);
  rule_tensor **input = calloc(g->n_sets * (n + 1) + 1, sizeof *input),
              **weight = calloc(n + 2, sizeof *weight);
  if (!nodes || !out || !own || !input || !weight) {
    free(input);
    free(weight);
    return cap_no_memory(err);
  }
  memcpy(nodes, g->node, n * sizeof *nodes);
  for (size_t set = 0; set < g->n_sets; set++)
    memcpy(input + set * (n + 1), m->input + set * n, n * sizeof *input);
  memcpy(weight, m->weight, n * sizeof *weight);
  free(m->input);
  free(m->weight);
  *out = *output;
  nodes[n] = cap_operator_node(own, call, out, 1);
  m->input = input;
  m->weight = weight;
  g->node = nodes;
  g->input = input;
  g->n_nodes = n + 1;
  *node = (uint32_t)n;
  return ISO_OK;
}

iso_code cap_set_results(cap_graph *g, const cap_result *result, size_t n, iso_error *err) {
  cap_result *own = iso_arena_alloc(&g->arena, (n + 1) * sizeof *own);
  if (!own) return cap_no_memory(err);
  if (n) memcpy(own, result, n * sizeof *own);
  g->result = own;
  g->n_results = n;
  return ISO_OK;
}

iso_code cap_replace_nodes(cap_graph *g, const cap_new_node *node, size_t n, iso_error *err) {
  impl *m = g->impl;
  cap_node *own = iso_arena_alloc(&g->arena, (n + 1) * sizeof *own);
  rule_tensor **input = calloc(g->n_sets * n + 1, sizeof *input),
              **weight = calloc(n + 1, sizeof *weight);
  if (!own || !input || !weight) {
    free(input);
    free(weight);
    return cap_no_memory(err);
  }
  for (size_t i = 0; i < n; i++) {
    own[i] = node[i].node;
    const bool leaf = own[i].kind != CAP_OP, set = own[i].kind == CAP_INPUT;
    if (leaf && !set) weight[i] = rule_tensor_ref(node[i].value[0]);
    for (size_t k = 0; k < g->n_sets && set; k++)
      input[k * n + i] = rule_tensor_ref(node[i].value[k]);
  }
  cap_role_end(g);
  for (size_t i = 0; i < g->n_nodes; i++) rule_tensor_unref(m->weight[i]);
  for (size_t i = 0; i < g->n_sets * g->n_nodes; i++) rule_tensor_unref(m->input[i]);
  free(m->weight);
  free(m->input);
  m->weight = weight;
  g->input = m->input = input;
  g->node = own;
  g->n_nodes = n;
  g->n_results = 0;
  cap_show_values(g);
  return ISO_OK;
}

void cap_set_domain(cap_graph *g, uint32_t node, const rule_domain *d) {
  ((cap_node *)(uintptr_t)g->node)[node].domain = d;
}

void cap_keep_input(cap_graph *g, uint32_t node, bool by_chance) {
  cap_node *n = (cap_node *)(uintptr_t)&g->node[node];
  n->kept = true;
  n->by_chance = by_chance;
}

void cap_set_part(cap_graph *g, uint32_t node, uint32_t whole, uint32_t dim, int64_t from) {
  cap_node *n = (cap_node *)(uintptr_t)&g->node[node];
  n->part_of = whole + 1;
  n->part_dim = dim;
  n->part_from = from;
}

void cap_replace_inputs(cap_graph *g, rule_tensor **input, size_t n_sets) {
  impl *m = g->impl;
  for (size_t i = 0; i < g->n_sets * g->n_nodes; i++) rule_tensor_unref(m->input[i]);
  free(m->input);
  g->input = m->input = input;
  g->n_sets = n_sets;
  cap_show_values(g);
}

/* ---- promotion ---- */

/* The floating dtype in which a call computes whatever its operands are stored in; COUNT: it does
 * not, or that is not told. Of comparisons it is that of their operands of floats. */
static rule_dtype computes_in(const cap_graph *g, const cap_node *n) {
  const rule_operator *o = n->call ? rule_operator_of(n->op) : NULL;
  if (!o || !rule_is_aten(n->op) || !o->elementwise || n->n_outputs != 1) return RULE_DTYPE_COUNT;
  if (o->algebraic || o->transcendental)
    return rule_dtype_is_float(n->output[0].dtype) ? n->output[0].dtype : RULE_DTYPE_COUNT;
  rule_dtype d = RULE_DTYPE_COUNT;
  for (uint32_t k = 0; k < n->call->n && o->choice == RULE_CHOICE_COMPARE; k++) {
    const rule_term *t = n->call->child[k];
    if (t->kind != RULE_VAR || !rule_dtype_is_float(g->node[t->u.i].output[0].dtype)) continue;
    if (d != RULE_DTYPE_COUNT && d != g->node[t->u.i].output[0].dtype) return RULE_DTYPE_COUNT;
    d = g->node[t->u.i].output[0].dtype;
  }
  return d;
}

/* Whether operand `t` holds integers that `d` rounds. */
static bool is_rounded(const cap_graph *g, const rule_term *t, rule_dtype d) {
  if (t->kind != RULE_VAR || d == RULE_DTYPE_COUNT) return false;
  const rule_dtype from = g->node[t->u.i].output[0].dtype;
  return rule_dtype_is_int(from) && (int)rule_dtype_size(from) * 8 - 1 > rule_dtype_digits(d);
}

/* The cast of operand `k`, over the old numbers. */
static iso_code cast_operand(cap_graph *g, const cap_node *n, uint32_t k, cap_node *out,
                             iso_error *err) {
  const rule_term *arg[] = {n->call->child[k], rule_dtype_term(&g->arena, computes_in(g, n))},
                  *call;
  const cap_node *x = &g->node[arg[0]->u.i];
  cap_output *o = iso_arena_alloc(&g->arena, sizeof *o);
  const char *id = iso_arena_printf(&g->arena, "%s_operand%u", n->id, k);
  if (id) id = fresh_id(g, id);
  if (!arg[1] || !o || !id) return cap_no_memory(err);
  iso_code c = rule_call(&g->arena, g->schemas, OP_TO_DTYPE, arg, 2, &call, err);
  if (c) return c;
  *o = (cap_output){x->output[0].shape, (rule_dtype)arg[1]->u.i};
  *out = cap_operator_node(id, call, o, 1);
  out->op = OP_TO_DTYPE;
  out->dim = x->dim;
  out->sized = x->dim ? call : NULL;
  out->scope = n->scope, out->source = n->source, out->caller = n->caller;
  return ISO_OK;
}

static const rule_term *with_operand(cap_graph *g, const rule_term *call, uint32_t k, uint32_t i) {
  const rule_term **child = iso_arena_alloc(&g->arena, (call->n + 1) * sizeof *child);
  const rule_term *v = rule_var(&g->arena, i);
  if (!child || !v) return NULL;
  memcpy(child, call->child, call->n * sizeof *child);
  child[k] = v;
  return rule_op(&g->arena, call->u.s, child, call->n);
}

/* `n`, a node of the old numbers, behind the casts of its operands. */
static iso_code add_promoted(cap_graph *g, const cap_node *n, const uint32_t *to, cap_node *node,
                             uint32_t *count, iso_error *err) {
  cap_node own = *n;
  iso_code c = ISO_OK;
  if (n->call && !(own.call = cap_renumber(&g->arena, n->call, to))) return cap_no_memory(err);
  if (n->sized && !(own.sized = cap_renumber(&g->arena, n->sized, to))) return cap_no_memory(err);
  for (uint32_t k = 0; n->call && k < n->call->n && !c; k++) {
    if (!is_rounded(g, n->call->child[k], computes_in(g, n))) continue;
    cap_node *x = &node[*count];
    if ((c = cast_operand(g, n, k, x, err))) break;
    const rule_term *call = cap_renumber(&g->arena, x->call, to);
    own.call = with_operand(g, own.call, k, *count);
    if (own.sized) own.sized = with_operand(g, own.sized, k, *count);
    if (!call || !own.call || (n->sized && !own.sized)) return cap_no_memory(err);
    if (x->sized) x->sized = call;
    x->call = call;
    ++*count;
  }
  if (!c) node[(*count)++] = own;
  return c;
}

iso_code cap_promote(cap_graph *g, iso_error *err) {
  size_t casts = 0;
  for (size_t i = 0; i < g->n_nodes; i++) {
    const rule_term *call = g->node[i].call;
    for (uint32_t k = 0; call && k < call->n; k++)
      casts += is_rounded(g, call->child[k], computes_in(g, &g->node[i]));
  }
  if (!casts) return ISO_OK;
  if (g->n_nodes + casts > INT32_MAX) return iso_fail(err, ISO_LIMIT, "too many nodes");
  cap_node *node = iso_arena_alloc(&g->arena, (g->n_nodes + casts) * sizeof *node);
  cap_result *result = iso_arena_alloc(&g->arena, (g->n_results + 1) * sizeof *result);
  uint32_t *to = malloc((g->n_nodes + 1) * sizeof *to), n = 0;
  iso_code c = node && result && to ? ISO_OK : cap_no_memory(err);
  for (size_t i = 0; i < g->n_nodes && !c; i++) {
    c = add_promoted(g, &g->node[i], to, node, &n, err);
    to[i] = n - 1;
  }
  for (size_t k = 0; k < g->n_results && !c; k++) {
    result[k] = g->result[k];
    result[k].node = to[g->result[k].node];
  }
  free(to);
  if (c) return c;
  g->node = node;
  g->n_nodes = n;
  g->result = result;
  return ISO_OK;
}

/* ---- the trace ---- */

bool cap_has_trace(const cap_graph *g) { return ((const impl *)g->impl)->trace != NULL; }

static iso_code check_traced(const cap_graph *g, const cap_node *node, size_t k,
                             const rule_tensor *x, iso_error *err) {
  const cap_output *o = &node->output[k];
  if (x->dtype == o->dtype && rule_shape_eq(&x->shape, &o->shape)) return ISO_OK;
  char a[128], b[128];
  return iso_fail(err, ISO_FORMAT,
                  "%s/trace.safetensors: node \"%.120s\": output %zu is recorded as %s %s, the "
                  "graph says %s %s",
                  g->path, node->id, k, rule_dtype_name(x->dtype),
                  rule_shape_print(&x->shape, a, sizeof a), rule_dtype_name(o->dtype),
                  rule_shape_print(&o->shape, b, sizeof b));
}

iso_code cap_trace(const cap_graph *g, uint32_t node, size_t k, rule_tensor **out, iso_error *err) {
  const impl *m = g->impl;
  const cap_node *x = &g->node[node];
  *out = NULL;
  if (m->trace == NULL || k >= x->n_outputs) return ISO_OK;
  char *key = NULL;
  if ((x->n_outputs == 1 ? asprintf(&key, "%s", x->id) : asprintf(&key, "%s.%zu", x->id, k)) < 0)
    return cap_no_memory(err);
  rule_tensor *t = NULL;
  iso_code code = cap_tensors_get(m->trace, key, &t, err);
  free(key);
  if (code == ISO_OK && t != NULL) code = check_traced(g, x, k, t, err);
  if (code == ISO_OK) *out = t;
  else rule_tensor_unref(t);
  return code;
}
