/* Files for Model Explorer's two panes: the graphs, the findings about each node, and which nodes
 * belong together. */
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/report/ci.h"

/* Namespaces are divided by slashes: "model.layers.0.mlp" is "model/layers.0/mlp", so that a layer
 * is one box. */
static json_t *namespace_of(const char *scope) {
  char *s = strdup(scope);
  if (!s) return NULL;
  for (char *p = s; *p; p++)
    if (*p == '.' && !(p[1] >= '0' && p[1] <= '9')) *p = '/';
  json_t *j = json_string(s);
  free(s);
  return j;
}

static void add_attribute(json_t *list, const char *key, const char *value) {
  if (value && *value)
    json_array_append_new(list, json_pack("{s:s, s:s}", "key", key, "value", value));
}

static void add_edges(const cap_graph *g, const rule_term *t, json_t *list) {
  if (t->kind == RULE_VAR) {
    char id[24];
    snprintf(id, sizeof id, "%zu", json_array_size(list));
    json_array_append_new(list, json_pack("{s:s, s:s, s:s}", "sourceNodeId", g->node[t->u.i].id,
                                          "sourceNodeOutputId", "0", "targetNodeInputId", id));
  }
  for (uint32_t i = 0; i < t->n; i++) add_edges(g, t->child[i], list);
}

static json_t *node_json(const cap_graph *g, size_t i) {
  const cap_node *n = &g->node[i];
  json_t *attrs = json_array(), *edges = json_array(), *outputs = json_array();
  char shape[160];
  add_attribute(attrs, "op", n->op);
  add_attribute(attrs, "name", n->name);
  add_attribute(attrs, "source", n->source);
  if (n->call) add_edges(g, n->call, edges);
  for (size_t k = 0; k < n->n_outputs; k++) {
    char id[24];
    snprintf(id, sizeof id, "%zu", k);
    const size_t at =
        (size_t)snprintf(shape, sizeof shape, "%s", rule_dtype_name(n->output[k].dtype));
    rule_shape_print(&n->output[k].shape, shape + at, sizeof shape - at);
    json_array_append_new(outputs, json_pack("{s:s, s:[{s:s, s:s}]}", "id", id, "attrs", "key",
                                             "tensor_shape", "value", shape));
  }
  const char *label = n->kind == CAP_OP ? n->op : n->name;
  return json_pack("{s:s, s:s, s:o, s:o, s:o, s:o}", "id", n->id, "label", label, "namespace",
                   namespace_of(n->scope), "attrs", attrs, "incomingEdges", edges,
                   "outputsMetadata", outputs);
}

static json_t *graph_json(const cap_graph *g, const char *id) {
  json_t *nodes = json_array();
  for (size_t i = 0; i < g->n_nodes; i++) json_array_append_new(nodes, node_json(g, i));
  return json_pack("{s:s, s:[{s:s, s:o}]}", "label", g->model, "graphs", "id", id, "nodes", nodes);
}

/* ---- what was found ---- */

static bool in_region(const report *p, bool right, size_t node) {
  for (size_t i = 0; i < p->r->n_divergences; i++) {
    const synth_divergence *d = &p->r->divergence[i];
    const uint32_t *region = right ? d->right_region : d->left_region;
    const size_t n = right ? d->n_right_region : d->n_left_region;
    if ((right ? d->right : d->left) == (int64_t)node) return true;
    for (size_t k = 0; k < n; k++)
      if (region[k] == node) return true;
  }
  return false;
}

static json_t *found_json(const report *p, bool right, const bool *met, const char *id) {
  const cap_graph *g = right ? p->right : p->left;
  const uint32_t *cls = p->r->class_of[right];
  json_t *results = json_object();
  for (size_t i = 0; i < g->n_nodes; i++) {
    const char *value = "not shown equal", *colour = "#d9d9d9";
    if (in_region(p, right, i))
      value = p->r->verdict == SYNTH_DIFFERENT ? "diverges" : "gap", colour = "#f4a261";
    else if (!cls || cls[i] == UINT32_MAX) value = "not used", colour = "#ffffff";
    else if (met[cls[i]]) value = "equal", colour = "#a8d5ba";
    json_object_set_new(results, g->node[i].id,
                        json_pack("{s:s, s:s}", "value", value, "bgColor", colour));
  }
  return json_pack("{s:{s:s, s:o}}", id, "name", "isomer", "results", results);
}

static json_t *members(const cap_graph *g, const uint32_t *cls, uint32_t of) {
  json_t *a = json_array();
  for (size_t i = 0; i < g->n_nodes; i++)
    if (cls[i] == of) json_array_append_new(a, json_string(g->node[i].id));
  return a;
}

/* Whole classes: a node stands in one entry only. */
static json_t *sync_json(const report *p, const bool *met) {
  json_t *entries = json_array();
  const uint32_t *l = p->r->class_of[0], *r = p->r->class_of[1];
  for (size_t i = 0; l && r && i < p->left->n_nodes; i++) {
    bool first = l[i] != UINT32_MAX && met[l[i]];
    for (size_t k = 0; k < i && first; k++) first = l[k] != l[i];
    if (first)
      json_array_append_new(entries,
                            json_pack("{s:o, s:o}", "leftNodeIds", members(p->left, l, l[i]),
                                      "rightNodeIds", members(p->right, r, l[i])));
  }
  return json_pack("{s:s, s:o}", "type", "sync_navigation", "mappingEntries", entries);
}

/* Takes over `j`. */
static iso_code save(const char *dir, const char *name, json_t *j, iso_error *err) {
  char path[4096];
  char *text = j ? json_dumps(j, JSON_INDENT(1)) : NULL;
  json_decref(j);
  iso_code c = text ? ISO_OK : iso_fail(err, ISO_NOMEM, "out of memory");
  if (!c && snprintf(path, sizeof path, "%s/%s", dir, name) >= (int)sizeof path)
    c = iso_fail(err, ISO_IO, "%s: the name is too long", dir);
  if (!c) c = report_write(path, text, err);
  free(text);
  return c;
}

iso_code report_model_explorer(const report *p, const char *dir, iso_error *err) {
  if (mkdir(dir, 0777) != 0 && errno != EEXIST)
    return iso_fail(err, ISO_IO, "%s: %s", dir, strerror(errno));
  bool *side[2] = {calloc(p->r->n_classes + 1, 1), calloc(p->r->n_classes + 1, 1)};
  iso_code c = side[0] && side[1] ? ISO_OK : iso_fail(err, ISO_NOMEM, "out of memory");
  for (int k = 0; k < 2 && !c; k++)
    for (size_t i = 0; p->r->class_of[k] && i < (k ? p->right : p->left)->n_nodes; i++)
      if (p->r->class_of[k][i] != UINT32_MAX) side[k][p->r->class_of[k][i]] = true;
  for (size_t i = 0; i < p->r->n_classes && !c; i++)
    side[0][i] &= side[1][i]; /* classes with members on both sides */
  if (!c) c = save(dir, "left.json", graph_json(p->left, "left"), err);
  if (!c) c = save(dir, "right.json", graph_json(p->right, "right"), err);
  if (!c) c = save(dir, "left.data.json", found_json(p, false, side[0], "left"), err);
  if (!c) c = save(dir, "right.data.json", found_json(p, true, side[0], "right"), err);
  if (!c) c = save(dir, "sync.json", sync_json(p, side[0]), err);
  free(side[0]);
  free(side[1]);
  return c;
}
