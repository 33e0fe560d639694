/* The tensors beside a graph: weights, inputs, the recorded values of a trace, each from its file
 * in the folder of a capture. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "capture/pt2/pt2_int.h"
#include "rules/operators.h"
#include "egraph/base/vec.h"
#include "capture/capture_int.h"

/* ---- tensors ---- */

/* Give `node` its tensor. Takes over `x`, also on error; NULL: there is none. */
iso_code cap_take_value(rule_tensor *x, const cap_node *node, const char *path, rule_tensor **out,
                        iso_error *err) {
  iso_code code = ISO_OK;
  if (x == NULL)
    return iso_fail(err, ISO_FORMAT, "%s: node \"%.120s\": there is no tensor \"%.120s\"", path,
                    node->id, node->name);
  const cap_output *o = &node->output[0];
  if (x->dtype != o->dtype || !rule_shape_eq(&x->shape, &o->shape)) {
    char a[128], b[128];
    code = iso_fail(err, ISO_FORMAT,
                    "%s: node \"%.120s\": tensor \"%.120s\" is %s %s, the graph says %s %s", path,
                    node->id, node->name, rule_dtype_name(x->dtype),
                    rule_shape_print(&x->shape, a, sizeof a), rule_dtype_name(o->dtype),
                    rule_shape_print(&o->shape, b, sizeof b));
    rule_tensor_unref(x);
    return code;
  }
  *out = x;
  return ISO_OK;
}

/* The name that a leaf has in its file. */
static const char *stored_name(const cap_graph *g, size_t node) {
  const impl *m = g->impl;
  return m->stored && m->stored[node] ? m->stored[node] : g->node[node].name;
}

typedef struct source { /* of tensors: a file, or the files of the weights */
  cap_tensors *file;
  const char *path;
  cap_weights *weights;
} source;

static iso_code get(void *ctx, const char *name, rule_tensor **out, const char **path,
                    iso_error *err) {
  const source *s = ctx;
  *path = s->path;
  return s->file ? cap_tensors_get(s->file, name, out, err)
                 : cap_weights_get(s->weights, name, out, path, err);
}

/* The leaf's tensor, and those that other ranks have of their own. */
static iso_code take_tensor(cap_graph *g, source *s, size_t node, rule_tensor **out,
                            iso_error *err) {
  const char *path = NULL;
  rule_tensor *x = NULL;
  iso_code code = get(s, stored_name(g, node), &x, &path, err);
  if (code == ISO_OK) code = cap_take_value(x, &g->node[node], path, out, err);
  return code == ISO_OK ? cap_role_add(g, node, get, s, err) : code;
}

/* The tensors of `path` for the inputs into `slot` by node. */
iso_code cap_load_tensors(cap_graph *g, const char *path, rule_tensor **slot, iso_error *err) {
  source s = {.path = path};
  iso_code code = cap_tensors_open(path, &s.file, err);
  for (size_t i = 0; i < g->n_nodes && code == ISO_OK; i++)
    if (g->node[i].kind == CAP_INPUT) code = take_tensor(g, &s, i, &slot[i], err);
  cap_tensors_close(s.file);
  return code;
}

/* Room for one more input set. */
iso_code cap_grow_inputs(cap_graph *g, size_t set, size_t *cap, iso_error *err) {
  impl *m = g->impl;
  size_t need;
  if (__builtin_mul_overflow(set + 1, g->n_nodes + 1, &need) || !iso_grow(m->input, *cap, need))
    return cap_no_memory(err);
  g->n_sets = set + 1;
  g->input = m->input;
  return ISO_OK;
}

static iso_code load_inputs(cap_graph *g, iso_error *err) {
  size_t cap = 0;
  for (size_t set = 0;; set++) {
    char *path = set == 0 ? iso_arena_printf(&g->arena, "%s/inputs.safetensors", g->path)
                          : iso_arena_printf(&g->arena, "%s/inputs.%zu.safetensors", g->path, set);
    if (path == NULL) return cap_no_memory(err);
    struct stat st;
    if (set > 0 && stat(path, &st) != 0 && errno == ENOENT) return ISO_OK;
    iso_code code = cap_grow_inputs(g, set, &cap, err);
    if (code == ISO_OK)
      code = cap_load_tensors(g, path, ((impl *)g->impl)->input + set * g->n_nodes, err);
    if (code != ISO_OK) return code;
  }
}

/* Weights: from weights.safetensors, and those that it lacks from the checkpoint beside it. */
static iso_code load_weights(cap_graph *g, bool all, iso_error *err) {
  impl *m = g->impl;
  source s = {0};
  m->weight = calloc(g->n_nodes + 1, sizeof *m->weight);
  iso_code code =
      m->weight != NULL ? cap_weights_open(g->path, &s.weights, err) : cap_no_memory(err);
  for (size_t i = 0; i < g->n_nodes && code == ISO_OK; i++) {
    rule_tensor *x = NULL;
    const char *path = NULL;
    if (g->node[i].kind == CAP_OP || g->node[i].kind == CAP_INPUT) continue;
    const bool may_lack = !all && g->node[i].kind == CAP_PARAMETER;
    if (may_lack) code = get(&s, stored_name(g, i), &x, &path, err);
    const bool lacks = may_lack && x == NULL;
    rule_tensor_unref(x);
    if (code == ISO_OK && !lacks) code = take_tensor(g, &s, i, &m->weight[i], err);
  }
  cap_weights_close(s.weights);
  return code;
}

static iso_code load_trace(cap_graph *g, iso_error *err) {
  char *path = iso_arena_printf(&g->arena, "%s/trace.safetensors", g->path);
  if (path == NULL) return cap_no_memory(err);
  struct stat st;
  if (stat(path, &st) != 0 && errno == ENOENT) return ISO_OK;
  return cap_tensors_open(path, &((impl *)g->impl)->trace, err);
}

void cap_show_values(cap_graph *g) {
  const impl *m = g->impl;
  cap_node *node = (cap_node *)(uintptr_t)g->node; /* ours until cap_load returns */
  for (size_t i = 0; i < g->n_nodes; i++)
    node[i].value = m->weight[i] != NULL ? m->weight[i] : m->input[i];
}

iso_code cap_load_values(cap_graph *g, const cap_options *o, iso_error *err) {
  iso_code code;
  size_t cap = 0;
  if ((code = load_weights(g, !(o && o->no_weights), err)) != ISO_OK) return code;
  if (cap_is_moved(g)) { /* inputs and traces are of other sizes */
    code = cap_grow_inputs(g, 0, &cap, err);
    if (code == ISO_OK) cap_show_values(g);
    return code;
  }
  if ((code = load_inputs(g, err)) != ISO_OK) return code;
  if ((code = load_trace(g, err)) != ISO_OK) return code;
  ((impl *)g->impl)->stored = NULL; /* nodes may be numbered anew from here on */
  cap_show_values(g);
  for (uint32_t i = 0; i < g->n_nodes && code == ISO_OK; i++) code = cap_check_domain(g, i, err);
  return code;
}
