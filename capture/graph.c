/* graph.json and the tensors that belong to it.
 *
 * Nodes are read in the file's order; a reference finds only what has been read, so a graph that
 * loads is acyclic and in topological order. Each malformed part is an error "PATH/graph.json: node
 * "ID": reason". Keys that the format does not know are ignored; keys that it knows must be of
 * their type. */
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

/* State that lives while a graph.json is read. */
typedef struct reader {
  cap_graph *g;
  cap_node *node;
  cap_names ids, inputs, weights; /* ids of nodes; names of leaves by the file they are in */
  cap_lowering lower;
  const cap_options *options; /* or NULL */
  const char *const **size;   /* by node: what its sizes are written as; NULL: all are numbers */
  cap_written written;        /* where size is not NULL */
} reader;

iso_code cap_no_memory(iso_error *err) { return iso_fail(err, ISO_NOMEM, "out of memory"); }

/* ---- strings ---- */

static iso_code keep(iso_arena *a, const char *s, const char **out, iso_error *err) {
  *out = iso_arena_strdup(a, s);
  return *out != NULL ? ISO_OK : cap_no_memory(err);
}

/* An optional string: "" where it is missing or null. */
static iso_code keep_optional(iso_arena *a, const json_t *object, const char *key, const char **out,
                              iso_error *err) {
  const json_t *v = json_object_get(object, key);
  if (v != NULL && !json_is_null(v) && !json_is_string(v))
    return iso_fail(err, ISO_FORMAT, "\"%s\" is not a string", key);
  return keep(a, json_is_string(v) ? json_string_value(v) : "", out, err);
}

static iso_code keep_required(iso_arena *a, const json_t *object, const char *key, const char **out,
                              iso_error *err) {
  const char *s = json_string_value(json_object_get(object, key));
  if (s == NULL || *s == '\0') return iso_fail(err, ISO_FORMAT, "has no \"%s\"", key);
  return keep(a, s, out, err);
}

static iso_code take_name(cap_names *t, const char *what, const char *name, size_t index,
                          iso_error *err) {
  if (cap_names_find(t, name) != CAP_NO_INDEX)
    return iso_fail(err, ISO_FORMAT, "the %s \"%.120s\" is taken", what, name);
  return cap_names_add(t, name, index) ? ISO_OK : cap_no_memory(err);
}

/* ---- one node ---- */

static iso_code read_output(const json_t *v, cap_output *out, iso_error *err) {
  const json_t *shape = json_object_get(v, "shape");
  const char *dtype = json_string_value(json_object_get(v, "dtype"));
  if (!json_is_array(shape)) return iso_fail(err, ISO_FORMAT, "has no shape");
  if (dtype == NULL) return iso_fail(err, ISO_FORMAT, "has no dtype");
  if (!rule_dtype_find(dtype, &out->dtype))
    return iso_fail(err, ISO_FORMAT, "has unknown dtype \"%.40s\"", dtype);
  if (json_array_size(shape) > RULE_MAX_RANK)
    return iso_fail(err, ISO_RANGE, "has rank %zu, above %d", json_array_size(shape),
                    RULE_MAX_RANK);
  out->shape.rank = (uint32_t)json_array_size(shape);
  for (uint32_t i = 0; i < out->shape.rank; i++) {
    const json_t *d = json_array_get(shape, i);
    if (!json_is_integer(d))
      return iso_fail(err, ISO_FORMAT, "dimension %" PRIu32 " is not an integer", i);
    out->shape.dim[i] = json_integer_value(d);
  }
  int64_t numel;
  return rule_shape_numel(&out->shape, &numel, err);
}

static iso_code read_outputs(iso_arena *a, const json_t *v, cap_node *node, iso_error *err) {
  size_t n = json_array_size(v);
  if (n == 0) return iso_fail(err, ISO_FORMAT, "has no outputs");
  cap_output *out = iso_arena_alloc(a, n * sizeof *out);
  if (out == NULL) return cap_no_memory(err);
  for (size_t i = 0; i < n; i++) {
    iso_code code = read_output(json_array_get(v, i), &out[i], err);
    if (code != ISO_OK) {
      iso_prefix(err, "output %zu: ", i);
      return code;
    }
  }
  node->n_outputs = n;
  node->output = out;
  return ISO_OK;
}

static bool leaf_kind(const char *op, cap_kind *out) {
  static const struct {
    const char *op;
    cap_kind kind;
  } kinds[] = {{"input", CAP_INPUT},
               {"parameter", CAP_PARAMETER},
               {"buffer", CAP_BUFFER},
               {"constant", CAP_CONSTANT}};
  for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
    if (strcmp(op, kinds[i].op) == 0) {
      *out = kinds[i].kind;
      return true;
    }
  return false;
}

/* namespace::name or namespace::name.overload */
static bool is_operator_name(const char *op) {
  static const char *const letters =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.:-";
  const char *colons = strstr(op, "::");
  return colons != NULL && colons != op && colons[2] != '\0' && op[strspn(op, letters)] == '\0';
}

/* Whether a leaf's elements lie in another order than row by row: values are kept without strides.
 */
static iso_code read_order(const json_t *v, cap_node *node, iso_error *err) {
  const json_t *strided = json_object_get(v, "strided");
  if (strided != NULL && !json_is_boolean(strided))
    return iso_fail(err, ISO_FORMAT, "\"strided\" is neither true nor false");
  node->reordered = json_is_true(strided);
  return ISO_OK;
}

static iso_code read_leaf(reader *r, const json_t *v, cap_node *node, size_t index,
                          iso_error *err) {
  iso_code code = keep_required(&r->g->arena, v, "name", &node->name, err);
  if (code != ISO_OK) return code;
  if (node->n_outputs != 1)
    return iso_fail(err, ISO_FORMAT, "a leaf with %zu outputs", node->n_outputs);
  if (json_array_size(json_object_get(v, "args")) > 0 ||
      json_object_size(json_object_get(v, "kwargs")) > 0)
    return iso_fail(err, ISO_FORMAT, "a leaf with arguments");
  if ((code = read_order(v, node, err)) != ISO_OK) return code;
  if (r->size != NULL) node->size = r->size[index];
  if (r->size != NULL) code = cap_read_sized(&r->lower, &r->written, v, NULL, node, err);
  if (code == ISO_OK) code = cap_read_domain(&r->g->arena, v, r->g->path, node, err);
  if (code != ISO_OK) return code;
  return take_name(node->kind == CAP_INPUT ? &r->inputs : &r->weights, "name", node->name, index,
                   err);
}

static iso_code check_getitem(const cap_node *node, const cap_node *of, int64_t k, iso_error *err) {
  if (of->call == NULL || rule_is_getitem(of->op))
    return iso_fail(err, ISO_FORMAT, "takes an output of \"%.120s\", which is no operator", of->id);
  if (k < 0 || (uint64_t)k >= of->n_outputs)
    return iso_fail(err, ISO_FORMAT, "takes output %" PRId64 " of \"%.120s\", which has %zu", k,
                    of->id, of->n_outputs);
  const cap_output *want = &of->output[k], *have = &node->output[0];
  if (node->n_outputs != 1 || want->dtype != have->dtype ||
      !rule_shape_eq(&want->shape, &have->shape)) {
    char a[128], b[128];
    return iso_fail(err, ISO_FORMAT, "is %s %s, output %" PRId64 " of \"%.120s\" is %s %s",
                    rule_dtype_name(have->dtype), rule_shape_print(&have->shape, a, sizeof a), k,
                    of->id, rule_dtype_name(want->dtype),
                    rule_shape_print(&want->shape, b, sizeof b));
  }
  return ISO_OK;
}

static iso_code read_getitem(reader *r, cap_node *node, const cap_raw *raw, iso_error *err) {
  const json_t *index = json_array_get(raw->args, 1);
  if (json_array_size(raw->args) != 2 || json_object_size(raw->kwargs) > 0 ||
      !json_is_integer(index))
    return iso_fail(err, ISO_FORMAT, "getitem takes a reference and an index");
  uint32_t of;
  iso_code code = cap_lower_ref(&r->lower, json_array_get(raw->args, 0), true, &of, err);
  if (code == ISO_OK) code = check_getitem(node, &r->node[of], json_integer_value(index), err);
  if (code != ISO_OK) return code;
  iso_arena *a = &r->g->arena;
  const rule_term *child[2] = {rule_var(a, of), rule_int(a, json_integer_value(index))};
  node->call = rule_op(a, "getitem", child, 2);
  return node->call != NULL ? ISO_OK : cap_no_memory(err);
}

static iso_code read_functionalized(const json_t *v, const cap_node *node, cap_raw *raw,
                                    iso_error *err) {
  const json_t *returns = json_object_get(v, "returns"), *writes = json_object_get(v, "writes");
  if (!json_is_integer(returns) || json_integer_value(returns) < 0 || !json_is_array(writes))
    return iso_fail(err, ISO_FORMAT,
                    "functionalized is not of the form {\"returns\": n, \"writes\": [...]}");
  for (size_t i = 0; i < json_array_size(writes); i++)
    if (!json_is_string(json_array_get(writes, i)))
      return iso_fail(err, ISO_FORMAT, "functionalized writes what is no argument's name");
  uint64_t n = (uint64_t)json_integer_value(returns) + json_array_size(writes);
  if (n != node->n_outputs)
    return iso_fail(err, ISO_FORMAT, "has %zu outputs, functionalized says %" PRIu64,
                    node->n_outputs, n);
  raw->writes = writes;
  return ISO_OK;
}

/* The optional member `key`, which must be of type `t`; null is as good as missing. */
static iso_code member(const json_t *object, const char *key, json_type t, const json_t **out,
                       iso_error *err) {
  const json_t *v = json_object_get(object, key);
  if (v == NULL || json_is_null(v)) return ISO_OK;
  if (json_typeof(v) != t)
    return iso_fail(err, ISO_FORMAT, "\"%s\" is not %s", key,
                    t == JSON_ARRAY ? "an array" : "an object");
  *out = v;
  return ISO_OK;
}

static iso_code read_operator(reader *r, const json_t *v, cap_node *node, iso_error *err) {
  cap_raw raw = {0};
  const json_t *f = NULL;
  iso_code code;
  if ((code = member(v, "args", JSON_ARRAY, &raw.args, err)) != ISO_OK) return code;
  if ((code = member(v, "kwargs", JSON_OBJECT, &raw.kwargs, err)) != ISO_OK) return code;
  if ((code = member(v, "attributes", JSON_OBJECT, &raw.attributes, err)) != ISO_OK) return code;
  if ((code = member(v, "functionalized", JSON_OBJECT, &f, err)) != ISO_OK) return code;
  if (f != NULL && (code = read_functionalized(f, node, &raw, err)) != ISO_OK) return code;
  const bool getitem = rule_is_getitem(node->op);
  if (!getitem && !is_operator_name(node->op))
    return iso_fail(err, ISO_FORMAT, "op \"%.80s\" is neither a leaf nor namespace::name",
                    node->op);
  if (getitem) code = read_getitem(r, node, &raw, err);
  else code = cap_lower(&r->lower, node, &raw, &node->call, err);
  if (code == ISO_OK && !getitem) code = cap_note_ends(&r->lower, &raw, node, err);
  node->reordered = code == ISO_OK && cap_reorders(&raw);
  if (code == ISO_OK && r->size != NULL)
    code = cap_read_sized(&r->lower, &r->written, v, &raw, node, err);
  /* An operator that was not found for want of memory must not be taken for an unknown one. */
  return rule_schemas_starved(r->lower.schemas) ? cap_no_memory(err) : code;
}

static iso_code read_body(reader *r, const json_t *v, cap_node *node, size_t index,
                          iso_error *err) {
  iso_arena *a = &r->g->arena;
  iso_code code;
  if ((code = keep_required(a, v, "op", &node->op, err)) != ISO_OK) return code;
  if ((code = keep_optional(a, v, "scope", &node->scope, err)) != ISO_OK) return code;
  if ((code = keep_optional(a, v, "source", &node->source, err)) != ISO_OK) return code;
  if ((code = keep_optional(a, v, "caller", &node->caller, err)) != ISO_OK) return code;
  cap_read_counts(v, node);
  if ((code = read_outputs(a, json_object_get(v, "outputs"), node, err)) != ISO_OK) return code;
  node->kind = CAP_OP;
  code = leaf_kind(node->op, &node->kind) ? read_leaf(r, v, node, index, err)
                                          : read_operator(r, v, node, err);
  return code != ISO_OK ? code : take_name(&r->ids, "id", node->id, index, err);
}

static iso_code read_node(reader *r, const json_t *v, size_t index, iso_error *err) {
  cap_node *node = &r->node[index];
  iso_code code = json_is_object(v) ? keep_required(&r->g->arena, v, "id", &node->id, err)
                                    : iso_fail(err, ISO_FORMAT, "is not an object");
  if (code != ISO_OK) return iso_prefix(err, "node %zu: ", index);
  code = read_body(r, v, node, index, err);
  if (code != ISO_OK) iso_prefix(err, "node \"%.120s\": ", node->id);
  return code;
}

/* ---- the graph ---- */

static iso_code read_nodes(reader *r, const json_t *nodes, iso_error *err) {
  if (!json_is_array(nodes)) return iso_fail(err, ISO_FORMAT, "\"nodes\" is not an array");
  size_t n = json_array_size(nodes);
  if (n > UINT32_MAX) return iso_fail(err, ISO_LIMIT, "too many nodes");
  cap_graph *g = r->g;
  r->node = iso_arena_alloc(&g->arena, (n + 1) * sizeof *r->node);
  if (r->node == NULL) return cap_no_memory(err);
  g->node = r->node;
  r->lower = (cap_lowering){&g->arena, g->schemas, &r->ids, r->node, NULL};
  for (size_t i = 0; i < n; i++) {
    iso_code code = read_node(r, json_array_get(nodes, i), i, err);
    if (code != ISO_OK) return code;
  }
  g->n_nodes = n;
  return ISO_OK;
}

static iso_code read_result(reader *r, const json_t *v, cap_names *names, size_t i, cap_result *out,
                            iso_error *err) {
  iso_code code = keep_required(&r->g->arena, v, "name", &out->name, err);
  if (code == ISO_OK) code = cap_lower_ref(&r->lower, v, false, &out->node, err);
  return code != ISO_OK ? code : take_name(names, "name", out->name, i, err);
}

static iso_code read_results(reader *r, const json_t *v, iso_error *err) {
  size_t n = json_array_size(v);
  if (n == 0) return iso_fail(err, ISO_FORMAT, "the graph has no outputs");
  cap_result *out = iso_arena_alloc(&r->g->arena, n * sizeof *out);
  if (out == NULL) return cap_no_memory(err);
  cap_names names = {0};
  iso_code code = ISO_OK;
  for (size_t i = 0; i < n && code == ISO_OK; i++) {
    code = read_result(r, json_array_get(v, i), &names, i, &out[i], err);
    if (code != ISO_OK) iso_prefix(err, "output %zu of the graph: ", i);
  }
  cap_names_fini(&names);
  r->g->n_results = n;
  r->g->result = out;
  return code;
}

/* ---- the file ---- */

static iso_code read_top(reader *r, json_t *top, iso_error *err) {
  cap_graph *g = r->g;
  const char *format = json_string_value(json_object_get(top, "format"));
  const json_t *version = json_object_get(top, "version");
  if (format == NULL || strcmp(format, "isomer-capture") != 0)
    return iso_fail(err, ISO_FORMAT, "\"format\" is not \"isomer-capture\"");
  if (!json_is_integer(version)) return iso_fail(err, ISO_FORMAT, "\"version\" is not an integer");
  if (json_integer_value(version) < 1 || json_integer_value(version) > 3)
    return iso_fail(err, ISO_FORMAT, "version %lld of the format is unknown",
                    (long long)json_integer_value(version));
  const struct {
    const char *key, **out;
  } text[] = {{"model", &g->model},
              {"framework", &g->framework},
              {"framework_version", &g->framework_version},
              {"torch_version", &g->torch_version}};
  for (size_t i = 0; i < sizeof text / sizeof text[0]; i++) {
    iso_code code = keep_optional(&g->arena, top, text[i].key, text[i].out, err);
    if (code != ISO_OK) return code;
  }
  iso_code code = cap_read_metadata(g, json_object_get(top, "metadata"), err);
  if (code == ISO_OK && json_integer_value(version) == 2)
    code = cap_settle_sizes(g, top, r->options, &r->size, &r->written, err);
  else if (code == ISO_OK && r->options != NULL && r->options->n_sizes > 0)
    code = iso_fail(err, ISO_USAGE, "there are no symbols in a graph of version %d",
                    (int)json_integer_value(version));
  if (code == ISO_OK) code = read_nodes(r, json_object_get(top, "nodes"), err);
  if (code == ISO_OK) code = read_results(r, json_object_get(top, "outputs"), err);
  if (code == ISO_OK) code = cap_promote(g, err);
  if (code == ISO_OK) code = cap_note_units(g, err);
  return code == ISO_OK && json_integer_value(version) == 3
             ? cap_read_role(g, json_object_get(top, "roles"),
                             r->options && r->options->keep_role && !r->options->no_weights, err)
             : code;
}

static iso_code read_json(cap_graph *g, json_t *top, const cap_options *o, iso_error *err) {
  reader r = {.g = g, .options = o};
  iso_code code = json_is_object(top) ? read_top(&r, top, err)
                                      : iso_fail(err, ISO_FORMAT, "is not a JSON object");
  cap_names_fini(&r.ids);
  cap_names_fini(&r.inputs);
  cap_names_fini(&r.weights);
  free(r.written.of);
  return code;
}

static iso_code read_text(cap_graph *g, cap_text text, const cap_options *o, iso_error *err) {
  json_error_t je;
  json_t *top = json_loadb(text.at, text.n, JSON_REJECT_DUPLICATES, &je);
  if (top == NULL)
    return cap_json_no_memory(&je)
               ? cap_no_memory(err)
               : iso_fail(err, ISO_FORMAT, "line %d, column %d: %s%s", je.line, je.column,
                          json_error_code(&je) == json_error_invalid_utf8 ? "not UTF-8: " : "",
                          je.text);
  iso_code code = read_json(g, top, o, err);
  json_decref(top);
  return code;
}

static iso_code new_graph(const char *dir, rule_schemas *schemas, cap_graph **out, iso_error *err) {
  cap_graph *g = calloc(1, sizeof *g);
  impl *m = calloc(1, sizeof *m);
  if (g != NULL) {
    iso_arena_init(&g->arena);
    g->impl = m;
    g->path = iso_arena_strdup(&g->arena, dir);
    g->schemas = schemas;
    g->n_sets = 1;
  } else {
    free(m);
  }
  if (g == NULL || m == NULL || g->path == NULL) {
    cap_free(g);
    return cap_no_memory(err);
  }
  *out = g;
  return ISO_OK;
}

/* ---- archives of torch.export.save ---- */

static iso_code archive_weights(cap_graph *g, const pt2_archive *a, iso_error *err) {
  impl *m = g->impl;
  iso_code code = ISO_OK;
  m->weight = calloc(g->n_nodes + 1, sizeof *m->weight);
  if (m->weight == NULL) return cap_no_memory(err);
  for (size_t i = 0; i < g->n_nodes && code == ISO_OK; i++)
    if (g->node[i].kind != CAP_OP && g->node[i].kind != CAP_INPUT)
      code =
          cap_take_value(pt2_weight(a, g->node[i].name), &g->node[i], g->path, &m->weight[i], err);
  return code;
}

static iso_code example_inputs(cap_graph *g, pt2_archive *a, iso_error *err) {
  size_t cap = 0;
  iso_code code = cap_grow_inputs(g, 0, &cap, err);
  for (size_t i = 0; i < g->n_nodes && code == ISO_OK; i++) {
    rule_tensor *x = NULL;
    if (g->node[i].kind != CAP_INPUT) continue;
    if ((code = pt2_example(a, g->node[i].name, &x, err)) != ISO_OK)
      iso_prefix(err, "%s: ", g->path);
    else if (x == NULL)
      code = iso_fail(
          err, ISO_FORMAT,
          "%s: the archive has no example inputs; give them with --inputs FILE.safetensors",
          g->path);
    else code = cap_take_value(x, &g->node[i], g->path, &((impl *)g->impl)->input[i], err);
  }
  return code;
}

static iso_code given_inputs(cap_graph *g, const cap_options *o, iso_error *err) {
  size_t cap = 0;
  iso_code code = ISO_OK;
  for (size_t set = 0; set < o->n_inputs && code == ISO_OK; set++) {
    code = cap_grow_inputs(g, set, &cap, err);
    if (code == ISO_OK)
      code = cap_load_tensors(g, o->inputs[set], ((impl *)g->impl)->input + set * g->n_nodes, err);
  }
  return code;
}

static iso_code fill_from_archive(cap_graph *g, cap_bytes *file, const cap_options *o,
                                  iso_error *err) {
  pt2_archive *a = NULL;
  iso_code code = pt2_open(file, g->path, g->schemas, &a, err);
  if (code == ISO_OK) code = read_json(g, pt2_top(a), o, err);
  if (code != ISO_OK) iso_prefix(err, "%s: ", g->path);
  if (code == ISO_OK) code = archive_weights(g, a, err);
  size_t cap = 0;
  if (code == ISO_OK && cap_is_moved(g)) code = cap_grow_inputs(g, 0, &cap, err);
  else if (code == ISO_OK)
    code = o != NULL && o->n_inputs > 0 ? given_inputs(g, o, err) : example_inputs(g, a, err);
  if (code == ISO_OK) cap_show_values(g);
  pt2_close(a);
  return code;
}

iso_code cap_load_archive(cap_bytes *file, const char *path, const cap_options *o,
                          rule_schemas *schemas, cap_graph **out, iso_error *err) {
  cap_graph *g = NULL;
  iso_code code = new_graph(path, schemas, &g, err);
  if (code == ISO_OK) code = fill_from_archive(g, file, o, err);
  if (code == ISO_OK) *out = g;
  else cap_free(g);
  return code;
}

/* ---- loading ---- */

enum { MAX_GRAPH = 1 << 30 }; /* bytes; a model of a hundred layers takes a few million */

static iso_code read_fd(int fd, char **out, size_t *n, iso_error *err) {
  struct stat st;
  if (fstat(fd, &st) != 0) return iso_fail(err, ISO_IO, "%s", strerror(errno));
  if (!S_ISREG(st.st_mode)) return iso_fail(err, ISO_IO, "not a regular file");
  if (st.st_size > MAX_GRAPH)
    return iso_fail(err, ISO_LIMIT, "%lld bytes are too many for a graph", (long long)st.st_size);
  char *text = malloc((size_t)st.st_size + 1);
  if (text == NULL) return cap_no_memory(err);
  size_t have = 0;
  while (have < (size_t)st.st_size) {
    ssize_t k = read(fd, text + have, (size_t)st.st_size - have);
    if (k < 0 && errno == EINTR) continue;
    if (k < 0) {
      free(text);
      return iso_fail(err, ISO_IO, "%s", strerror(errno));
    }
    if (k == 0) break;
    have += (size_t)k;
  }
  *out = text;
  *n = have;
  return ISO_OK;
}

/* Owns: *out is malloc'ed. */
static iso_code read_file(const char *path, char **out, size_t *n, iso_error *err) {
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a FIFO must not make us wait */
  if (fd < 0) return iso_fail(err, ISO_IO, "%s", strerror(errno));
  iso_code code = read_fd(fd, out, n, err);
  close(fd);
  return code;
}

iso_code cap_parse(cap_text text, const char *dir, const cap_options *o, rule_schemas *schemas,
                   cap_graph **out, iso_error *err) {
  cap_graph *g = NULL;
  iso_code code = new_graph(dir, schemas, &g, err);
  if (code != ISO_OK) return code;
  size_t cap = 0;
  code = read_text(g, text, o, err);
  if (code != ISO_OK) iso_prefix(err, "%s/graph.json: ", dir);
  else code = cap_grow_inputs(g, 0, &cap, err);
  if (code == ISO_OK) *out = g;
  else cap_free(g);
  return code;
}

bool cap_is_archive(const char *path) {
  struct stat st;
  return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

static iso_code load_folder(const char *dir, const cap_options *o, rule_schemas *schemas,
                            cap_graph **out, iso_error *err) {
  cap_graph *g = NULL;
  char *text = NULL;
  size_t n = 0;
  iso_code code = new_graph(dir, schemas, &g, err);
  if (code != ISO_OK) return code;
  char *path = iso_arena_printf(&g->arena, "%s/graph.json", dir);
  if (path == NULL) {
    code = cap_no_memory(err);
  } else {
    code = read_file(path, &text, &n, err);
    if (code == ISO_OK) code = read_text(g, (cap_text){text, n}, o, err);
    if (code == ISO_IO && access(path, F_OK) != 0)
      code = iso_fail(err, ISO_IO, "%s (a capture is a folder with this file)", strerror(ENOENT));
    if (code != ISO_OK) iso_prefix(err, "%s: ", path);
  }
  free(text);
  if (code == ISO_OK) code = cap_load_values(g, o, err);
  if (code == ISO_OK) *out = g;
  else cap_free(g);
  return code;
}

static iso_code load_file(const char *path, const cap_options *o, rule_schemas *schemas,
                          cap_graph **out, iso_error *err) {
  cap_bytes *file = NULL;
  iso_code code = cap_bytes_open(path, &file, err);
  if (code != ISO_OK) return iso_prefix(err, "%s: ", path);
  code = cap_load_archive(file, path, o, schemas, out, err);
  cap_bytes_unref(file);
  return code;
}

iso_code cap_load_with(const char *path, const cap_options *o, rule_schemas *schemas,
                       cap_graph **out, iso_error *err) {
  iso_code code = cap_is_archive(path) ? load_file(path, o, schemas, out, err)
                                       : load_folder(path, o, schemas, out, err);
  if (code == ISO_OK && o && o->sort_unseen && (code = cap_sort_unseen(*out, err)) != ISO_OK) {
    cap_free(*out);
    *out = NULL;
  }
  return code;
}

iso_code cap_load(const char *path, rule_schemas *schemas, cap_graph **out, iso_error *err) {
  return cap_load_with(path, NULL, schemas, out, err);
}

void cap_idle(const cap_graph *g) {
  for (size_t i = 0; i < g->n_nodes; i++) cap_bytes_idle(g->node[i].value);
}

bool cap_same_outputs(const cap_node *a, const cap_node *b) {
  if (a->n_outputs != b->n_outputs) return false;
  for (size_t i = 0; i < a->n_outputs; i++)
    if (a->output[i].dtype != b->output[i].dtype ||
        !rule_shape_eq(&a->output[i].shape, &b->output[i].shape))
      return false;
  return true;
}

void cap_free(cap_graph *g) {
  if (g == NULL) return;
  impl *m = g->impl;
  if (m != NULL) {
    cap_role_end(g);
    if (m->input != NULL)
      for (size_t i = 0; i < g->n_sets * g->n_nodes; i++) rule_tensor_unref(m->input[i]);
    if (m->weight != NULL)
      for (size_t i = 0; i < g->n_nodes; i++) rule_tensor_unref(m->weight[i]);
    free(m->input);
    free(m->weight);
    cap_tensors_close(m->trace);
    for (size_t i = 0; m->after != NULL && m->after[i] != NULL; i++) cap_free(m->after[i]);
    free(m->after);
    free(m);
  }
  iso_arena_fini(&g->arena);
  free(g);
}
