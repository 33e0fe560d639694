/* An ExportedProgram of torch.export (the JSON of a .pt2 archive, schema 8) as graph.json would say
 * it.
 *
 * Nodes are read in order, each value bound to its name in the scope of its graph, so a reference
 * finds only earlier values. Symbolic sizes are the numbers that the archive has for them (its
 * hints); a size that has none depends on data. Wrappers without a meaning of their own (no_grad,
 * autocast that is off) are replaced by their bodies, assertions are dropped, in-place operators
 * become functions (pt2_alias.c), and in the end nodes that no output needs are left out. The
 * result is checked as every graph.json is.
 *
 * Source: PyTorch, torch/_export/serde/schema.py (major version 8). */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "capture/pt2/pt2_translate.h"
#include "egraph/base/vec.h"
#include "capture/pt2/pt2_int.h"

enum { MAX_DEPTH = 32 }; /* of graphs in graphs */

/* ---- names and meta data ---- */

iso_code pt2_bind(translation *t, frame *f, const char *name, value v) {
  if (*name == '\0') return iso_fail(t->w.err, ISO_FORMAT, "a value has no name");
  size_t at = cap_names_find(&f->names, name);
  if (at != CAP_NO_INDEX)
    return iso_fail(t->w.err, ISO_FORMAT, "the name \"%.120s\" is taken", name);
  if (!iso_grow(f->value, f->cap, f->n + 1) || !cap_names_add(&f->names, name, f->n))
    return pt2_no_memory(&t->w);
  f->value[f->n++] = v;
  return ISO_OK;
}

static iso_code lookup(translation *t, const frame *f, const char *name, value *out) {
  size_t at = cap_names_find(&f->names, name);
  if (at == CAP_NO_INDEX)
    return iso_fail(t->w.err, ISO_FORMAT, "refers to \"%.120s\", which is nothing before it", name);
  *out = f->value[at];
  return ISO_OK;
}

iso_code pt2_lookup_tensor(translation *t, const frame *f, const char *name, pt2_cell **out) {
  value v = {0};
  iso_code code = lookup(t, f, name, &v);
  if (code == ISO_OK && v.kind != V_TENSOR)
    code = iso_fail(t->w.err, ISO_FORMAT, "\"%.120s\" is no tensor", name);
  if (code == ISO_OK) *out = v.cell;
  return code;
}

bool pt2_size_of(const json_t *v, int64_t *out) {
  const json_t *n = json_object_get(v, "as_int");
  if (n == NULL)
    n = json_object_get(json_object_get(json_object_get(v, "as_expr"), "hint"), "as_int");
  if (!json_is_integer(n)) return false;
  *out = json_integer_value(n);
  return true;
}

/* PyTorch's number of a dtype. Returns: false where a capture cannot hold it. */
static bool pt2_dtype(int64_t scalar_type, rule_dtype *out) {
  static const struct {
    int64_t n;
    rule_dtype d;
  } known[] = {{1, RULE_U8},        {2, RULE_I8},     {3, RULE_I16},   {4, RULE_I32},
               {5, RULE_I64},       {6, RULE_F16},    {7, RULE_F32},   {8, RULE_F64},
               {10, RULE_C64},      {11, RULE_C128},  {12, RULE_BOOL}, {13, RULE_BF16},
               {29, RULE_F8E4M3FN}, {30, RULE_F8E5M2}};
  for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
    if (known[i].n == scalar_type) {
      *out = known[i].d;
      return true;
    }
  return false;
}

iso_code pt2_meta(const json_t *m, pt2_cell *out, int64_t *offset, iso_error *err) {
  const json_t *sizes = json_object_get(m, "sizes"), *strides = json_object_get(m, "strides"),
               *dtype = json_object_get(m, "dtype"), *layout = json_object_get(m, "layout");
  *out = (pt2_cell){.index = -1};
  if (!json_is_array(sizes) || !json_is_array(strides) ||
      json_array_size(sizes) != json_array_size(strides) || !json_is_integer(dtype))
    return iso_fail(err, ISO_FORMAT, "its sizes, strides or dtype are missing");
  if (json_array_size(sizes) > RULE_MAX_RANK)
    return iso_fail(err, ISO_RANGE, "rank %zu is above %d", json_array_size(sizes), RULE_MAX_RANK);
  if (json_is_integer(layout) && json_integer_value(layout) != 7)
    return iso_fail(err, ISO_UNSUPPORTED, "is not a dense tensor");
  if (!pt2_dtype(json_integer_value(dtype), &out->dtype))
    return iso_fail(err, ISO_UNSUPPORTED, "has a dtype (number %lld) that a capture cannot hold",
                    (long long)json_integer_value(dtype));
  out->shape.rank = (uint32_t)json_array_size(sizes);
  for (uint32_t k = 0; k < out->shape.rank; k++) {
    if (!pt2_size_of(json_array_get(sizes, k), &out->shape.dim[k]))
      return iso_fail(err, ISO_UNSUPPORTED, "its size at dimension %" PRIu32 " depends on data", k);
    if (!pt2_size_of(json_array_get(strides, k), &out->stride[k]))
      return iso_fail(err, ISO_UNSUPPORTED, "its stride at dimension %" PRIu32 " depends on data",
                      k);
  }
  int64_t from = 0;
  if (!pt2_size_of(json_object_get(m, "storage_offset"), &from)) from = 0;
  out->within = from != 0;
  if (offset != NULL) *offset = from;
  int64_t numel;
  return rule_shape_numel(&out->shape, &numel, err);
}

iso_code pt2_meta_of(translation *t, const frame *f, const char *name, pt2_cell *out) {
  const json_t *m = json_object_get(json_object_get(f->graph, "tensor_values"), name);
  if (m == NULL) return iso_fail(t->w.err, ISO_FORMAT, "tensor_values has no \"%.120s\"", name);
  iso_code code = pt2_meta(m, out, NULL, t->w.err);
  if (code != ISO_OK) iso_prefix(t->w.err, "value \"%.120s\": ", name);
  return code;
}

/* ---- arguments ---- */

/* A number that a name stands for, as JSON. */
static iso_code number_json(translation *t, const frame *f, const char *name, json_t **out) {
  value v = {0};
  iso_code code = lookup(t, f, name, &v);
  if (code != ISO_OK) return code;
  switch (v.kind) {
  case V_INT: *out = json_integer(v.i); break;
  case V_FLOAT: *out = json_real(v.f); break;
  case V_BOOL: *out = json_boolean(v.i); break;
  case V_NONE: *out = json_null(); break;
  case V_TENSOR:
    return iso_fail(t->w.err, ISO_FORMAT, "\"%.120s\" is a tensor where a number should be", name);
  case V_UNKNOWN:
    return iso_fail(t->w.err, ISO_UNSUPPORTED,
                    "the number \"%.120s\" depends on data, or the archive does not say what it is",
                    name);
  }
  return *out != NULL ? ISO_OK : pt2_no_memory(&t->w);
}

static iso_code tensor_json(translation *t, const frame *f, const json_t *v, json_t **out) {
  pt2_cell *c = NULL;
  iso_code code = pt2_lookup_tensor(t, f, pt2_str(v, "name"), &c);
  if (code == ISO_OK) code = pt2_read(&t->w, c);
  if (code != ISO_OK) return code;
  *out = pt2_ref(c->id);
  return *out != NULL ? ISO_OK : pt2_no_memory(&t->w);
}

static iso_code float_json(translation *t, const json_t *v, json_t **out) {
  const char *s = json_string_value(v);
  if (json_is_number(v)) *out = json_real(json_number_value(v));
  else if (s != NULL && strcmp(s, "Infinity") == 0) *out = json_pack("{s:s}", "float", "inf");
  else if (s != NULL && strcmp(s, "-Infinity") == 0) *out = json_pack("{s:s}", "float", "-inf");
  else if (s != NULL && strcmp(s, "NaN") == 0) *out = json_pack("{s:s}", "float", "nan");
  else return iso_fail(t->w.err, ISO_FORMAT, "a float is no number");
  return *out != NULL ? ISO_OK : pt2_no_memory(&t->w);
}

static iso_code one(translation *t, const frame *f, const char *kind, const json_t *v,
                    json_t **out);

/* A list of `kind`, each item converted as one(). */
static iso_code many(translation *t, const frame *f, const char *kind, const json_t *v,
                     json_t **out) {
  if (!json_is_array(v)) return iso_fail(t->w.err, ISO_FORMAT, "%ss is no list", kind);
  json_t *list = json_array();
  iso_code code = list != NULL ? ISO_OK : pt2_no_memory(&t->w);
  for (size_t i = 0; i < json_array_size(v) && code == ISO_OK; i++) {
    json_t *item = NULL;
    code = one(t, f, kind, json_array_get(v, i), &item);
    if (code == ISO_OK && json_array_append_new(list, item) != 0) code = pt2_no_memory(&t->w);
  }
  if (code == ISO_OK) *out = list;
  else json_decref(list);
  return code;
}

static iso_code symbolic(translation *t, const frame *f, const json_t *v, json_t **out) {
  const json_t *number = json_object_get(v, "as_int");
  if (number == NULL) number = json_object_get(v, "as_float");
  if (number == NULL) number = json_object_get(v, "as_bool");
  if (number == NULL) return number_json(t, f, pt2_str(v, "as_name"), out);
  if (!json_is_number(number) && !json_is_boolean(number))
    return iso_fail(t->w.err, ISO_FORMAT, "a symbolic number is none");
  *out = json_incref((json_t *)(uintptr_t)number);
  return ISO_OK;
}

bool pt2_kind_is(const char *kind, const char *a, const char *b) {
  return strcmp(kind, a) == 0 || (b != NULL && strcmp(kind, b) == 0);
}

static iso_code one(translation *t, const frame *f, const char *kind, const json_t *v,
                    json_t **out) {
  rule_dtype d;
  if (strcmp(kind, "as_tensor") == 0) return tensor_json(t, f, v, out);
  if (strcmp(kind, "as_optional_tensor") == 0) {
    if (json_object_get(v, "as_none") != NULL) *out = json_null();
    else return tensor_json(t, f, json_object_get(v, "as_tensor"), out);
  } else if (strcmp(kind, "as_none") == 0) *out = json_null();
  else if (strcmp(kind, "as_float") == 0) return float_json(t, v, out);
  else if (strncmp(kind, "as_sym_", 7) == 0) return symbolic(t, f, v, out);
  else if (strcmp(kind, "as_scalar_type") == 0) {
    if (!json_is_integer(v) || !pt2_dtype(json_integer_value(v), &d))
      return iso_fail(t->w.err, ISO_UNSUPPORTED, "a dtype (number %lld) that a capture cannot hold",
                      (long long)json_integer_value(v));
    *out = json_pack("{s:s}", "dtype", rule_dtype_name(d));
  } else if (strcmp(kind, "as_device") == 0)
    *out = json_pack("{s:s}", "device", *pt2_str(v, "type") ? pt2_str(v, "type") : "cpu");
  else if (strcmp(kind, "as_layout") == 0) {
    if (json_integer_value(v) != 7)
      return iso_fail(t->w.err, ISO_UNSUPPORTED, "a layout that is not strided");
    *out = json_pack("{s:s}", "layout", "strided");
  } else if (strcmp(kind, "as_memory_format") == 0) {
    static const char *const format[] = {"unknown", "contiguous", "channels_last",
                                         "channels_last_3d", "preserve"};
    const json_int_t k = json_integer_value(v);
    *out = json_pack("{s:s}", "memory_format", k >= 0 && k < 5 ? format[k] : "unknown");
  } else if ((strcmp(kind, "as_int") == 0 && json_is_integer(v)) ||
             (strcmp(kind, "as_bool") == 0 && json_is_boolean(v)) ||
             (pt2_kind_is(kind, "as_string", "as_str") && json_is_string(v)))
    *out = json_incref((json_t *)(uintptr_t)v);
  else
    return iso_fail(t->w.err, ISO_UNSUPPORTED,
                    "a value of kind \"%.40s\" has no place in a capture", kind);
  return *out != NULL ? ISO_OK : pt2_no_memory(&t->w);
}

const char *pt2_variant(const json_t *arg, const json_t **v) {
  void *it = json_object_iter((json_t *)(uintptr_t)arg);
  if (it == NULL) return "";
  *v = json_object_iter_value(it);
  return json_object_iter_key(it);
}

static iso_code argument(translation *t, const frame *f, const json_t *arg, json_t **out) {
  static const struct {
    const char *list, *item;
  } lists[] = {{"as_tensors", "as_tensor"},
               {"as_ints", "as_int"},
               {"as_floats", "as_float"},
               {"as_strings", "as_string"},
               {"as_bools", "as_bool"},
               {"as_sym_ints", "as_sym_int"},
               {"as_sym_floats", "as_sym_float"},
               {"as_sym_bools", "as_sym_bool"},
               {"as_optional_tensors", "as_optional_tensor"}};
  const json_t *v = NULL;
  const char *kind = pt2_variant(arg, &v);
  for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++)
    if (strcmp(kind, lists[i].list) == 0) return many(t, f, lists[i].item, v, out);
  return one(t, f, kind, v, out);
}

/* The arguments by name. Those that are none of an operator without a schema say nothing. */
iso_code pt2_arguments(translation *t, const frame *f, const json_t *node, bool keep_none,
                       json_t **out) {
  const json_t *inputs = json_object_get(node, "inputs");
  json_t *kwargs = json_object();
  iso_code code = kwargs != NULL ? ISO_OK : pt2_no_memory(&t->w);
  for (size_t i = 0; i < json_array_size(inputs) && code == ISO_OK; i++) {
    const json_t *in = json_array_get(inputs, i);
    const char *name = pt2_str(in, "name");
    json_t *v = NULL;
    if (*name == '\0') code = iso_fail(t->w.err, ISO_FORMAT, "argument %zu has no name", i);
    else code = argument(t, f, json_object_get(in, "arg"), &v);
    if (code == ISO_OK && json_is_null(v) && !keep_none) json_decref(v);
    else if (code == ISO_OK && json_object_set_new(kwargs, name, v) != 0)
      code = pt2_no_memory(&t->w);
    if (code != ISO_OK && code != ISO_NOMEM) iso_prefix(t->w.err, "argument \"%.80s\": ", name);
  }
  if (code == ISO_OK) *out = kwargs;
  else json_decref(kwargs);
  return code;
}

/* The tensor that argument `i` is, or NULL. */
pt2_cell *pt2_tensor_argument(translation *t, const frame *f, const json_t *node, size_t i,
                              const char **name) {
  const json_t *in = json_array_get(json_object_get(node, "inputs"), i),
               *v = json_object_get(json_object_get(in, "arg"), "as_tensor");
  size_t at = v != NULL ? cap_names_find(&f->names, pt2_str(v, "name")) : CAP_NO_INDEX;
  (void)t;
  if (at == CAP_NO_INDEX || f->value[at].kind != V_TENSOR) return NULL;
  if (name != NULL) *name = pt2_str(in, "name");
  return f->value[at].cell;
}

/* ---- outputs of a node ---- */

static iso_code add_result(translation *t, results *r, const json_t *v) {
  const char *name = pt2_str(v, "name");
  if (*name == '\0') return iso_fail(t->w.err, ISO_UNSUPPORTED, "an output is no tensor");
  if (!iso_grow(r->name, r->cap, r->n + 1)) return pt2_no_memory(&t->w);
  r->name[r->n++] = name;
  return ISO_OK;
}

static iso_code results_of(translation *t, const json_t *node, results *r) {
  const json_t *outputs = json_object_get(node, "outputs");
  iso_code code = ISO_OK;
  for (size_t i = 0; i < json_array_size(outputs) && code == ISO_OK; i++) {
    const json_t *v = NULL;
    const char *kind = pt2_variant(json_array_get(outputs, i), &v);
    if (strcmp(kind, "as_tensor") == 0) code = add_result(t, r, v);
    else if (strcmp(kind, "as_tensors") == 0) {
      r->list = true;
      for (size_t k = 0; k < json_array_size(v) && code == ISO_OK; k++)
        code = add_result(t, r, json_array_get(v, k));
    } else
      code = iso_fail(t->w.err, ISO_UNSUPPORTED,
                      "an output of kind \"%.40s\" has no place in a capture", kind);
  }
  return code;
}

iso_code pt2_bind_tensor(translation *t, frame *f, const char *name, pt2_cell *c) {
  return c != NULL ? pt2_bind(t, f, name, (value){.kind = V_TENSOR, .cell = c})
                   : pt2_no_memory(&t->w);
}

/* ---- numbers ---- */

/* The value of a node that computes with sizes: the archive's hint, which for a size is checked
 * against the tensor. */
static iso_code number_node(translation *t, frame *f, const json_t *node, const char *target) {
  const json_t *outputs = json_object_get(node, "outputs");
  iso_code code = ISO_OK;
  for (size_t i = 0; i < json_array_size(outputs) && code == ISO_OK; i++) {
    const json_t *v = NULL;
    const char *kind = pt2_variant(json_array_get(outputs, i), &v), *name = pt2_str(v, "as_name");
    if (*name == '\0') continue;
    value out = {.kind = V_UNKNOWN};
    const bool reads =
        strstr(target, ".item.") != NULL || strstr(target, "_local_scalar_dense") != NULL;
    if (!reads && strcmp(kind, "as_sym_int") == 0 &&
        pt2_size_of(json_object_get(json_object_get(f->graph, "sym_int_values"), name), &out.i))
      out.kind = V_INT;
    const pt2_cell *of = pt2_tensor_argument(t, f, node, 0, NULL);
    const json_t *dim = json_object_get(
        json_object_get(json_array_get(json_object_get(node, "inputs"), 1), "arg"), "as_int");
    if (strstr(target, "sym_size.int") != NULL && of != NULL && json_is_integer(dim)) {
      int64_t d = json_integer_value(dim);
      if (d < 0) d += of->shape.rank;
      if (d < 0 || d >= (int64_t)of->shape.rank || (out.kind == V_INT && out.i != of->shape.dim[d]))
        return iso_fail(t->w.err, ISO_FORMAT, "the size \"%.80s\" is not the tensor's", name);
      out.kind = V_INT;
      out.i = of->shape.dim[d];
    }
    code = pt2_bind(t, f, name, out);
  }
  return code;
}

static bool gives_numbers(const json_t *node) {
  const json_t *outputs = json_object_get(node, "outputs"), *v = NULL;
  for (size_t i = 0; i < json_array_size(outputs); i++)
    if (strncmp(pt2_variant(json_array_get(outputs, i), &v), "as_sym_", 7) != 0) return false;
  return json_array_size(outputs) > 0;
}

/* ---- wrappers ---- */

static iso_code autocast_is_off(translation *t, const json_t *inputs, size_t at) {
  for (size_t i = 0; i < at; i++) {
    const json_t *on =
        json_object_get(json_object_get(json_array_get(inputs, i), "arg"), "as_bool");
    if (on != NULL)
      return json_is_false(on)
                 ? ISO_OK
                 : iso_fail(t->w.err, ISO_UNSUPPORTED,
                            "the program turns autocast on; export it with autocast off");
  }
  return ISO_OK; /* left to its default, which is none of a written wrapper's */
}

/* Bind the wrapped graph's inputs to the operands, and read it. */
static iso_code enter(translation *t, const frame *f, frame *inner, const json_t *inputs,
                      size_t at) {
  const json_t *own = json_object_get(inner->graph, "inputs");
  iso_code code = ISO_OK;
  size_t k = 0;
  for (size_t i = at + 1; i < json_array_size(inputs) && code == ISO_OK; i++) {
    const json_t *arg = json_object_get(json_array_get(inputs, i), "arg"), *v = NULL, *to = NULL;
    const char *kind = pt2_variant(arg, &v);
    if (strcmp(kind, "as_string") == 0) continue; /* the name of a region */
    pt2_variant(json_array_get(own, k++), &to);
    value given = {.kind = V_UNKNOWN};
    const char *name = *pt2_str(v, "name") ? pt2_str(v, "name") : pt2_str(v, "as_name");
    if (*name != '\0') code = lookup(t, f, name, &given);
    else if (strcmp(kind, "as_int") == 0)
      given = (value){.kind = V_INT, .i = json_integer_value(v)};
    if (code == ISO_OK)
      code = pt2_bind(t, inner, *pt2_str(to, "name") ? pt2_str(to, "name") : pt2_str(to, "as_name"),
                      given);
  }
  if (code == ISO_OK && k != json_array_size(own))
    code = iso_fail(t->w.err, ISO_FORMAT, "wraps a graph of %zu inputs and gives %zu",
                    json_array_size(own), k);
  return code == ISO_OK ? pt2_read_graph(t, inner) : code;
}

static iso_code leave(translation *t, frame *f, const frame *inner, const results *r) {
  const json_t *own = json_object_get(inner->graph, "outputs");
  iso_code code = ISO_OK;
  if (json_array_size(own) < r->n)
    return iso_fail(t->w.err, ISO_FORMAT, "wraps a graph of %zu outputs and has %zu",
                    json_array_size(own), r->n);
  for (size_t i = 0; i < r->n && code == ISO_OK; i++) {
    const json_t *v = NULL;
    pt2_cell *c = NULL;
    pt2_variant(json_array_get(own, i), &v);
    code = pt2_lookup_tensor(t, inner, pt2_str(v, "name"), &c);
    if (code == ISO_OK) code = pt2_bind_tensor(t, f, r->name[i], c);
  }
  return code;
}

static iso_code wrapper(translation *t, frame *f, const json_t *node, const char *name,
                        const results *r) {
  static const char *const wraps[] = {"wrap_with_set_grad_enabled",
                                      "wrap_with_autocast",
                                      "invoke_subgraph",
                                      "wrap",
                                      "wrap_activation_checkpoint",
                                      "tag_activation_checkpoint",
                                      "hints_wrapper",
                                      "strict_mode",
                                      "checkpoint",
                                      NULL};
  const json_t *inputs = json_object_get(node, "inputs"), *body = NULL;
  size_t at = 0;
  for (size_t i = 0; i < json_array_size(inputs); i++) {
    const json_t *g =
        json_object_get(json_object_get(json_array_get(inputs, i), "arg"), "as_graph");
    if (g == NULL) continue;
    if (body != NULL)
      return iso_fail(t->w.err, ISO_UNSUPPORTED,
                      "the program branches by torch's %.80s, which a capture cannot hold", name);
    body = json_object_get(g, "graph");
    at = i;
  }
  if (body == NULL || !pt2_is_any(name, wraps))
    return iso_fail(t->w.err, ISO_UNSUPPORTED,
                    "the program uses torch's %.80s, which a capture cannot hold", name);
  if (f->depth >= MAX_DEPTH) return iso_fail(t->w.err, ISO_LIMIT, "graphs are nested too deeply");
  iso_code code = strcmp(name, "wrap_with_autocast") == 0 ? autocast_is_off(t, inputs, at) : ISO_OK;
  frame inner = {.graph = body, .depth = f->depth + 1};
  if (code == ISO_OK) code = enter(t, f, &inner, inputs, at);
  if (code == ISO_OK) code = leave(t, f, &inner, r);
  cap_names_fini(&inner.names);
  free(inner.value);
  return code;
}

/* ---- nodes ---- */

static bool is_assertion(const char *target) {
  static const char *const skipped[] = {"_assert_async",
                                        "_assert_scalar",
                                        "_assert_tensor_metadata",
                                        "sym_constrain_range",
                                        "sym_constrain_range_for_size",
                                        "_print",
                                        NULL};
  char name[64];
  if (strncmp(target, "torch.ops.aten.", 15) != 0) return false;
  size_t n = strcspn(target + 15, ".");
  if (n >= sizeof name) return false;
  memcpy(name, target + 15, n);
  name[n] = '\0';
  return pt2_is_any(name, skipped);
}

static iso_code read_node(translation *t, frame *f, const json_t *node) {
  const char *target = pt2_str(node, "target");
  const json_t *outer = t->w.here;
  results r = {0};
  if (is_assertion(target)) return ISO_OK;
  if (gives_numbers(node)) return number_node(t, f, node, target);
  t->w.here = json_object_get(node, "metadata");
  iso_code code = results_of(t, node, &r);
  if (code == ISO_OK && strncmp(target, "torch.ops.higher_order.", 23) == 0)
    code = wrapper(t, f, node, target + 23, &r);
  else if (code == ISO_OK && strncmp(target, "torch.ops.", 10) == 0)
    code = pt2_operator_call(t, f, node, target, &r);
  else if (code == ISO_OK && r.n > 0)
    code = iso_fail(t->w.err, ISO_UNSUPPORTED, "%.120s is no operator that a capture can hold",
                    target);
  if (code != ISO_OK && code != ISO_NOMEM &&
      strncmp(t->w.err != NULL ? t->w.err->msg : "", "node \"", 6) != 0)
    iso_prefix(t->w.err, "node \"%.120s\": ", r.n > 0 ? r.name[0] : *target ? target : "?");
  free(r.name);
  t->w.here = outer;
  return code;
}

iso_code pt2_read_graph(translation *t, frame *f) {
  const json_t *nodes = json_object_get(f->graph, "nodes");
  if (!json_is_array(nodes)) return iso_fail(t->w.err, ISO_FORMAT, "the graph has no nodes");
  iso_code code = ISO_OK;
  for (size_t i = 0; i < json_array_size(nodes) && code == ISO_OK; i++)
    code = read_node(t, f, json_array_get(nodes, i));
  return code;
}
