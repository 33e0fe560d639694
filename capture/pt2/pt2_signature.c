/* The signature of torch.export's program: its leaves and outputs, and the translation as a whole
 * (pt2_graph.c has the nodes). */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "capture/pt2/pt2_translate.h"
#include "egraph/base/vec.h"

enum { MAX_DEPTH = 32, MAX_SPEC = 200 }; /* of lists in arguments; of containers in outputs */

/* ---- the signature ---- */

/* Values are kept row by row: where the program has another order in memory, the leaf says so. */
static iso_code add_leaf_node(translation *t, const char *kind, const char *name,
                              const pt2_cell *meta, const char *hint, pt2_cell **out) {
  const char *id = NULL;
  json_t *strided = pt2_is_dense(meta) && !meta->within ? NULL : json_true();
  iso_code code = pt2_append(&t->w,
                             json_pack("{s:s, s:s, s:o, s:o*}", "op", kind, "name", name, "outputs",
                                       pt2_outputs(meta), "strided", strided),
                             hint, &id, NULL);
  if (code != ISO_OK) return code;
  *out = pt2_cell_new(&t->w, meta, id);
  return *out != NULL ? ISO_OK : pt2_no_memory(&t->w);
}

/* An earlier leaf of the same name, or over the same memory: tied tensors are one leaf. */
static bool tied(const translation *t, const char *name, const rule_tensor *x, size_t *out) {
  for (size_t i = 0; i < t->out->n_leaves; i++) {
    const rule_tensor *y = t->out->leaf[i].value;
    if (strcmp(t->out->leaf[i].name, name) == 0 ||
        (x->numel > 0 && x->data == y->data && x->dtype == y->dtype &&
         rule_shape_eq(&x->shape, &y->shape))) {
      *out = i;
      return true;
    }
  }
  return false;
}

static iso_code weight(translation *t, frame *f, const char *kind, const char *name,
                       const char *placeholder, bool constant, pt2_cell **leaf) {
  rule_tensor *x = NULL;
  pt2_cell meta, *c = NULL;
  size_t k = 0;
  if (*name == '\0') return iso_fail(t->w.err, ISO_FORMAT, "an input of the graph has no name");
  iso_code code = pt2_meta_of(t, f, placeholder, &meta);
  if (code == ISO_OK) code = t->fetch(t->ctx, name, constant, &x, t->w.err);
  if (code == ISO_OK && tied(t, name, x, &k)) {
    rule_tensor_unref(x);
    return pt2_bind_tensor(t, f, placeholder, leaf[k]);
  }
  pt2_program *p = t->out;
  if (code == ISO_OK && !iso_grow(p->leaf, p->cap_leaves, p->n_leaves + 1))
    code = pt2_no_memory(&t->w);
  if (code != ISO_OK) {
    rule_tensor_unref(x);
    return code;
  }
  const char *own = iso_arena_strdup(&p->arena, name);
  p->leaf[p->n_leaves++] = (pt2_leaf){own, x};
  if (own == NULL) return pt2_no_memory(&t->w);
  code = add_leaf_node(t, kind, own, &meta, placeholder, &c);
  leaf[p->n_leaves - 1] = c;
  return code == ISO_OK ? pt2_bind_tensor(t, f, placeholder, c) : code;
}

static iso_code user_input(translation *t, frame *f, const json_t *arg) {
  const json_t *v = NULL;
  const char *kind = pt2_variant(arg, &v),
             *name = *pt2_str(v, "name") ? pt2_str(v, "name") : pt2_str(v, "as_name");
  pt2_program *p = t->out;
  iso_code code = ISO_OK;
  if (!iso_grow(p->input, p->cap_inputs, p->n_inputs + 1)) return pt2_no_memory(&t->w);
  p->input[p->n_inputs++] = NULL;
  if (strcmp(kind, "as_tensor") == 0) {
    pt2_cell meta, *c = NULL;
    code = pt2_meta_of(t, f, name, &meta);
    const char *own = iso_arena_strdup(&p->arena, name);
    if (code == ISO_OK && own == NULL) code = pt2_no_memory(&t->w);
    if (code == ISO_OK) code = add_leaf_node(t, "input", own, &meta, name, &c);
    if (code == ISO_OK) p->input[p->n_inputs - 1] = own;
    return code == ISO_OK ? pt2_bind_tensor(t, f, name, c) : code;
  }
  if (strncmp(kind, "as_sym_", 7) != 0 || *name == '\0')
    return ISO_OK; /* a number or none, which the nodes have in them */
  value given = {.kind = V_UNKNOWN};
  if (pt2_size_of(json_object_get(json_object_get(f->graph, "sym_int_values"), name), &given.i))
    given.kind = V_INT;
  return pt2_bind(t, f, name, given);
}

static iso_code input_spec(translation *t, frame *f, const json_t *spec, pt2_cell **leaf) {
  const json_t *v = NULL;
  const char *kind = pt2_variant(spec, &v),
             *placeholder = pt2_str(json_object_get(v, "arg"), "name");
  if (strcmp(kind, "parameter") == 0)
    return weight(t, f, "parameter", pt2_str(v, "parameter_name"), placeholder, false, leaf);
  if (strcmp(kind, "buffer") == 0)
    return weight(t, f, "buffer", pt2_str(v, "buffer_name"), placeholder,
                  json_is_false(json_object_get(v, "persistent")), leaf);
  if (strcmp(kind, "tensor_constant") == 0)
    return weight(t, f, "constant", pt2_str(v, "tensor_constant_name"), placeholder, true, leaf);
  if (strcmp(kind, "user_input") == 0) return user_input(t, f, json_object_get(v, "arg"));
  if (strcmp(kind, "constant_input") == 0) {
    pt2_program *p = t->out;
    if (!iso_grow(p->input, p->cap_inputs, p->n_inputs + 1)) return pt2_no_memory(&t->w);
    p->input[p->n_inputs++] = NULL;
    return ISO_OK;
  }
  return iso_fail(t->w.err, ISO_UNSUPPORTED,
                  "the program holds an input of kind \"%.40s\", which a capture cannot hold",
                  kind);
}

static iso_code read_inputs(translation *t, frame *f, const json_t *specs) {
  if (!json_is_array(specs)) return iso_fail(t->w.err, ISO_FORMAT, "there is no signature");
  pt2_cell **leaf = iso_arena_alloc(t->w.arena, (json_array_size(specs) + 1) * sizeof *leaf);
  iso_code code = leaf != NULL ? ISO_OK : pt2_no_memory(&t->w);
  for (size_t i = 0; i < json_array_size(specs) && code == ISO_OK; i++)
    code = input_spec(t, f, json_array_get(specs, i), leaf);
  return code;
}

/* ---- outputs ---- */

typedef struct names {
  const char **name;
  size_t n, cap;
} names;

/* The paths of the leaves of a tree's description, keys joined by dots. */
static iso_code spec_names(translation *t, const json_t *spec, const char *path, int depth,
                           names *out) {
  const json_t *children = json_object_get(spec, "children_spec");
  if (depth > MAX_SPEC || out->n > 100000)
    return iso_fail(t->w.err, ISO_LIMIT, "the outputs are nested too deeply");
  if (!json_is_string(json_object_get(spec, "type"))) {
    if (!iso_grow(out->name, out->cap, out->n + 1)) return pt2_no_memory(&t->w);
    out->name[out->n++] = path;
    return ISO_OK;
  }
  const char *context = pt2_str(spec, "context");
  json_t *keys = *context == '[' ? json_loads(context, 0, NULL) : NULL;
  iso_code code = ISO_OK;
  for (size_t i = 0; i < json_array_size(children) && code == ISO_OK; i++) {
    const char *key = json_string_value(json_array_get(keys, i)), *dot = *path != '\0' ? "." : "";
    const char *below = key != NULL ? iso_arena_printf(t->w.arena, "%s%s%s", path, dot, key)
                                    : iso_arena_printf(t->w.arena, "%s%s%zu", path, dot, i);
    code = below != NULL ? spec_names(t, json_array_get(children, i), below, depth + 1, out)
                         : pt2_no_memory(&t->w);
  }
  json_decref(keys);
  return code;
}

/* As isomer_capture names them: by the path to them, "output" where there is one, "output_0" where
 * a path begins with a number. */
static iso_code output_names(translation *t, const json_t *exported, names *out) {
  const json_t *calls =
      json_object_get(json_object_get(exported, "graph_module"), "module_call_graph");
  const char *text = pt2_str(json_object_get(json_array_get(calls, 0), "signature"), "out_spec");
  json_t *spec = *text != '\0' ? json_loads(text, 0, NULL) : NULL;
  iso_code code = json_is_array(spec) ? spec_names(t, json_array_get(spec, 1), "", 0, out) : ISO_OK;
  json_decref(spec);
  for (size_t i = 0; i < out->n && code == ISO_OK; i++) {
    if (out->name[i][0] == '\0') out->name[i] = "output";
    else if (out->name[i][0] >= '0' && out->name[i][0] <= '9' &&
             (out->name[i] = iso_arena_printf(t->w.arena, "output_%s", out->name[i])) == NULL)
      code = pt2_no_memory(&t->w);
  }
  return code;
}

/* Outputs, and the effects that a comparison leaves out. */
typedef struct left {
  json_t *outputs;
  json_t *no_tensors; /* by name: a number, a text, none */
  json_t *written;    /* leaves whose new values are no outputs */
} left;

/* The value that the archive has of a symbolic number, if it has one. */
static const json_t *symbolic_value(const frame *f, const char *kind, const json_t *v) {
  const bool whole = strcmp(kind, "as_sym_int") == 0;
  return whole ? json_object_get(json_object_get(f->graph, "sym_int_values"), pt2_str(v, "as_name"))
               : NULL;
}

/* Whether an expression has a symbol of PyTorch's for a size that depends on data: u0, u1, ... */
static bool counts_data(const char *expr) {
  for (const char *c = expr; *c; c++)
    if (*c == 'u' && isdigit((unsigned char)c[1]) &&
        (c == expr || (!isalnum((unsigned char)c[-1]) && c[-1] != '_')))
      return true;
  return false;
}

/* A number of known value is that one, an expression over sizes that expression; of another
 * formula no more is known than that it is one. */
static iso_code leave_out(translation *t, const frame *f, const json_t *arg, const char *name,
                          left *to) {
  static const char *const plain[] = {"as_int", "as_float", "as_bool", "as_string"};
  const json_t *v = NULL;
  const char *kind = pt2_variant(arg, &v);
  json_t *said = strcmp(kind, "as_none") == 0 ? json_null()
                                              : json_pack("{s:[O?]}", kind, (json_t *)(uintptr_t)v);
  if (strncmp(kind, "as_sym_", strlen("as_sym_")) == 0) {
    const json_t *known = symbolic_value(f, kind, v);
    kind = pt2_variant(known ? known : v, &v);
    if (strcmp(kind, "as_expr") == 0 && !counts_data(pt2_str(v, "expr_str"))) {
      json_decref(said);
      said = json_pack("{s:s}", "size", pt2_str(v, "expr_str"));
    }
  }
  for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
    if (strcmp(kind, plain[i]) == 0 && !json_is_object(v) &&
        json_is_string(v) == (strcmp(kind, "as_string") == 0)) {
      json_decref(said);
      said = json_incref((json_t *)(uintptr_t)v);
    }
  return said && json_object_set_new(to->no_tensors, name, said) == 0 ? ISO_OK
                                                                      : pt2_no_memory(&t->w);
}

static iso_code add_output(translation *t, const frame *f, const json_t *arg, const char *name,
                           cap_names *taken, left *to) {
  const json_t *v = json_object_get(arg, "as_tensor");
  pt2_cell *c = NULL;
  iso_code code = pt2_lookup_tensor(t, f, pt2_str(v, "name"), &c);
  if (code == ISO_OK) code = pt2_read(&t->w, c);
  if (code == ISO_OK && cap_names_find(taken, name) != CAP_NO_INDEX)
    code = iso_fail(t->w.err, ISO_FORMAT, "two outputs are named \"%.120s\"", name);
  if (code != ISO_OK) return code;
  if (!cap_names_add(taken, name, 0) ||
      json_array_append_new(to->outputs, json_pack("{s:s, s:s}", "name", name, "ref", c->id)) != 0)
    return pt2_no_memory(&t->w);
  return ISO_OK;
}

/* The name of the leaf that a specification speaks of; NULL: of none. */
static const char *leaf_of(const json_t *spec) {
  static const char *const key[] = {"buffer_name", "parameter_name", "tensor_constant_name",
                                    "user_input_name"};
  for (size_t i = 0; i < sizeof key / sizeof *key; i++)
    if (*pt2_str(spec, key[i]) != '\0') return pt2_str(spec, key[i]);
  return NULL;
}

/* Leaves that the graph itself writes to: their final values are no outputs. */
static iso_code note_written(translation *t, const frame *f, const json_t *specs, left *to) {
  iso_code code = ISO_OK;
  for (size_t i = 0; i < json_array_size(specs) && code == ISO_OK; i++) {
    const json_t *v = NULL;
    (void)pt2_variant(json_array_get(specs, i), &v);
    const json_t *arg = json_object_get(v, "arg"), *tensor = json_object_get(arg, "as_tensor");
    const char *name = pt2_str(tensor ? tensor : arg, "name"), *shown = leaf_of(v);
    pt2_cell *c = NULL;
    if (*name == '\0' || (tensor == NULL && shown == NULL)) continue;
    code = pt2_lookup_tensor(t, f, name, &c);
    if (code == ISO_OK && c->version > 0 &&
        json_array_append_new(to->written, json_string(shown ? shown : name)) != 0)
      code = pt2_no_memory(&t->w);
  }
  return code;
}

/* A buffer, an input or a parameter that the signature says is changed. */
static iso_code leave_written(translation *t, const char *kind, const json_t *spec, left *to) {
  const char *name = leaf_of(spec);
  return json_array_append_new(to->written, json_string(name ? name : kind)) == 0
             ? ISO_OK
             : pt2_no_memory(&t->w);
}

static iso_code read_outputs(translation *t, const frame *f, const json_t *exported,
                             const json_t *specs, left *to) {
  names path = {0};
  cap_names taken = {0};
  size_t k = 0;
  iso_code code = output_names(t, exported, &path);
  for (size_t i = 0; i < json_array_size(specs) && code == ISO_OK; i++) {
    const json_t *v = NULL;
    const char *kind = pt2_variant(json_array_get(specs, i), &v);
    if (!pt2_kind_is(kind, "user_output", "loss_output")) { /* what the call leaves behind */
      code = leave_written(t, kind, v, to);
      continue;
    }
    const char *name = k < path.n ? path.name[k] : iso_arena_printf(t->w.arena, "output_%zu", k);
    k++;
    const json_t *arg = json_object_get(v, "arg");
    if (name == NULL) code = pt2_no_memory(&t->w);
    else if (json_object_get(arg, "as_tensor") == NULL) code = leave_out(t, f, arg, name, to);
    else code = add_output(t, f, arg, name, &taken, to);
  }
  cap_names_fini(&taken);
  free(path.name);
  return code;
}

/* ---- what no output needs ---- */

static void mark(const translation *t, const json_t *v, bool *needed, int depth) {
  if (depth > MAX_DEPTH) return;
  const char *id = json_string_value(json_object_get(v, "ref")), *key;
  json_t *item;
  if (id != NULL) {
    size_t at = cap_names_find(&t->w.ids, id);
    if (at != CAP_NO_INDEX) needed[at] = true;
  }
  for (size_t i = 0; i < json_array_size(v); i++) mark(t, json_array_get(v, i), needed, depth + 1);
  if (id == NULL && json_is_object(v)) {
    json_object_foreach((json_t *)(uintptr_t)v, key, item) mark(t, item, needed, depth + 1);
  }
}

/* A node refers to nodes before it, so one walk from the end finds all that is needed. */
static json_t *pruned(translation *t, const json_t *outputs) {
  const size_t n = json_array_size(t->w.nodes);
  bool *needed = iso_arena_alloc(t->w.arena, n + 1);
  json_t *kept = json_array();
  if (needed == NULL || kept == NULL) {
    json_decref(kept);
    return NULL;
  }
  mark(t, outputs, needed, 0);
  for (size_t i = n; i-- > 0;) {
    const json_t *node = json_array_get(t->w.nodes, i);
    needed[i] |= strcmp(pt2_str(node, "op"), "input") == 0;
    if (!needed[i]) continue;
    mark(t, json_object_get(node, "args"), needed, 0);
    mark(t, json_object_get(node, "kwargs"), needed, 0);
  }
  for (size_t i = 0; i < n; i++)
    if (needed[i]) json_array_append(kept, json_array_get(t->w.nodes, i));
  return kept;
}

/* ---- the whole ---- */

static iso_code check_version(const json_t *exported, iso_error *err) {
  const json_t *version = json_object_get(exported, "schema_version"),
               *major = json_object_get(version, "major");
  if (!json_is_integer(major)) return iso_fail(err, ISO_FORMAT, "its schema has no version");
  if (json_integer_value(major) != 8)
    return iso_fail(err, ISO_UNSUPPORTED,
                    "its schema has major version %lld; version 8 can be read",
                    (long long)json_integer_value(major));
  return ISO_OK;
}

static bool is_training(const json_t *exported) {
  const json_t *verifiers = json_object_get(exported, "verifiers");
  for (size_t i = 0; i < json_array_size(verifiers); i++) {
    const char *s = json_string_value(json_array_get(verifiers, i));
    if (s == NULL || strcmp(s, "TRAINING") == 0) return true;
  }
  return json_array_size(verifiers) == 0;
}

static iso_code translate(translation *t, frame *f, const json_t *exported, const char *model,
                          left *to) {
  const json_t *signature = json_object_get(json_object_get(exported, "graph_module"), "signature");
  iso_code code = read_inputs(t, f, json_object_get(signature, "input_specs"));
  if (code == ISO_OK) code = pt2_read_graph(t, f);
  if (code == ISO_OK)
    code = read_outputs(t, f, exported, json_object_get(signature, "output_specs"), to);
  if (code == ISO_OK) code = note_written(t, f, json_object_get(signature, "input_specs"), to);
  if (code != ISO_OK) return code;
  json_t *kept = pruned(t, to->outputs);
  t->out->top =
      kept == NULL
          ? NULL
          : json_pack("{s:s, s:i, s:s, s:s, s:s, s:s, s:o, s:O, s:{s:O, s:O}}", "format",
                      "isomer-capture", "version", 1, "model", model, "framework", "torch.export",
                      "framework_version", pt2_str(exported, "torch_version"), "torch_version",
                      pt2_str(exported, "torch_version"), "nodes", kept, "outputs", to->outputs,
                      "metadata", "no_tensors", to->no_tensors, "written_leaves", to->written);
  return t->out->top != NULL ? ISO_OK : pt2_no_memory(&t->w);
}

iso_code pt2_translate(const json_t *exported, const char *model, rule_schemas *schemas,
                       pt2_fetch fetch, void *ctx, pt2_program *out, iso_error *err) {
  *out = (pt2_program){0};
  iso_arena_init(&out->arena);
  iso_arena scratch;
  iso_arena_init(&scratch);
  translation t = {.w = {.arena = &scratch, .schemas = schemas, .nodes = json_array(), .err = err},
                   .out = out,
                   .fetch = fetch,
                   .ctx = ctx};
  frame f = {.graph = json_object_get(json_object_get(exported, "graph_module"), "graph")};
  left to = {json_array(), json_object(), json_array()};
  iso_code code = t.w.nodes && to.outputs && to.no_tensors && to.written
                      ? check_version(exported, err)
                      : pt2_no_memory(&t.w);
  t.training = is_training(exported);
  if (code == ISO_OK) code = translate(&t, &f, exported, model, &to);
  cap_names_fini(&f.names);
  free(f.value);
  cap_names_fini(&t.w.ids);
  json_decref(t.w.nodes);
  json_decref(to.outputs);
  json_decref(to.no_tensors);
  json_decref(to.written);
  iso_arena_fini(&scratch);
  return code;
}

void pt2_program_fini(pt2_program *p) {
  for (size_t i = 0; i < p->n_leaves; i++) rule_tensor_unref(p->leaf[i].value);
  free(p->leaf);
  free(p->input);
  json_decref(p->top);
  iso_arena_fini(&p->arena);
}
