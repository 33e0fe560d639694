/* A node of a capture to a call: arguments in schema order, complete, in one spelling.
 *
 * Two nodes that compute the same by the same operator should give the same term, so every part
 * that PyTorch lets one write in two ways is written in one: defaults are filled in, negative
 * dimensions counted from the front, open slices closed, -1 in a list of sizes replaced by the
 * size. And two nodes that differ must never give the same term: nothing that an operator may
 * depend on is dropped, so that an attribute or argument which the `.isomer` overload has no place
 * for keeps the node under its own name. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "capture/capture_int.h"
#include "rules/names.h"
#include "rules/operators.h"

enum { MAX_DEPTH = 64 }; /* of lists in lists */

static iso_code no_memory(iso_error *err) { return iso_fail(err, ISO_NOMEM, "out of memory"); }

iso_code cap_given(const rule_term *t, const rule_term **out, iso_error *err) {
  if (t == NULL) return no_memory(err);
  *out = t;
  return ISO_OK;
}

/* ---- JSON values ---- */

static const char *const object_kind[] = {"ref",    "dtype",         "device",
                                          "layout", "memory_format", "float"};

/* The one key of a value that is an object, NULL of others. Requires: check_value has passed. */
static const char *key_of(const json_t *v) {
  return json_is_object(v) ? json_object_iter_key(json_object_iter((json_t *)(uintptr_t)v)) : NULL;
}
static bool is_object(const json_t *v, const char *key) {
  const char *k = key_of(v);
  return k != NULL && strcmp(k, key) == 0;
}
static const char *text_of(const json_t *v) {
  return json_string_value(json_object_get(v, key_of(v)));
}

static bool float_of(const char *s, double *out) {
  if (strcmp(s, "inf") == 0) *out = INFINITY;
  else if (strcmp(s, "-inf") == 0) *out = -INFINITY;
  else if (strcmp(s, "nan") == 0) *out = NAN;
  else return false;
  return true;
}

static const char *kind_of(const json_t *v) {
  const char *k = key_of(v);
  if (k == NULL) {
    static const char *const name[] = {
        [JSON_OBJECT] = "an object", [JSON_ARRAY] = "a list", [JSON_STRING] = "a string",
        [JSON_INTEGER] = "an int",   [JSON_REAL] = "a float", [JSON_TRUE] = "a bool",
        [JSON_FALSE] = "a bool",     [JSON_NULL] = "none"};
    return name[json_typeof(v)];
  }
  return strcmp(k, "ref") == 0 ? "a tensor" : strcmp(k, "float") == 0 ? "a float" : k;
}

static iso_code check_object(const json_t *v, iso_error *err) {
  const char *k = key_of(v);
  if (k == NULL || json_object_size(v) != 1)
    return iso_fail(err, ISO_FORMAT, "an object among its arguments is not of one key");
  bool known = false;
  for (size_t i = 0; i < sizeof object_kind / sizeof object_kind[0]; i++)
    known |= strcmp(object_kind[i], k) == 0;
  if (!known) return iso_fail(err, ISO_FORMAT, "unknown object {\"%.40s\"} among its arguments", k);
  const char *s = text_of(v);
  if (s == NULL)
    return iso_fail(err, ISO_FORMAT, "{\"%s\"} among its arguments does not hold a string", k);
  rule_dtype d;
  double f;
  if (strcmp(k, "dtype") == 0 && !rule_dtype_find(s, &d))
    return iso_fail(err, ISO_FORMAT, "unknown dtype \"%.40s\"", s);
  if (strcmp(k, "float") == 0 && !float_of(s, &f))
    return iso_fail(err, ISO_FORMAT, "unknown float \"%.40s\"", s);
  return ISO_OK;
}

static iso_code check_value(const json_t *v, int depth, iso_error *err) {
  if (depth > MAX_DEPTH) return iso_fail(err, ISO_FORMAT, "its arguments are nested too deeply");
  if (json_is_object(v)) return check_object(v, err);
  iso_code code = ISO_OK;
  for (size_t i = 0; i < json_array_size(v) && code == ISO_OK; i++)
    code = check_value(json_array_get(v, i), depth + 1, err);
  return code;
}

iso_code cap_lower_ref(const cap_lowering *l, const json_t *v, bool projected, uint32_t *out,
                       iso_error *err) {
  const char *id = json_string_value(json_object_get(v, "ref"));
  if (id == NULL) return iso_fail(err, ISO_FORMAT, "a reference is not of the form {\"ref\": id}");
  size_t i = cap_names_find(l->ids, id);
  if (i == CAP_NO_INDEX)
    return iso_fail(err, ISO_FORMAT, "refers to \"%.120s\", which is no node before it", id);
  if (!projected && l->node[i].n_outputs != 1)
    return iso_fail(err, ISO_FORMAT, "refers to \"%.120s\", which has %zu outputs, without getitem",
                    id, l->node[i].n_outputs);
  *out = (uint32_t)i;
  return ISO_OK;
}

static iso_code lower_ref(const cap_lowering *l, const json_t *v, const rule_term **out,
                          iso_error *err) {
  uint32_t i;
  iso_code code = cap_lower_ref(l, v, false, &i, err);
  return code != ISO_OK ? code : cap_given(rule_var(l->arena, i), out, err);
}

const rule_term **cap_new_list(const cap_lowering *l, size_t n) {
  return iso_arena_alloc(l->arena, (n + 1) * sizeof(const rule_term *));
}

/* A value for which no schema gives a type. */
static iso_code as_written(const cap_lowering *l, const json_t *v, const rule_term **out,
                           iso_error *err) {
  iso_arena *a = l->arena;
  double f;
  rule_dtype d;
  switch (json_typeof(v)) {
  case JSON_NULL: return cap_given(rule_none(a), out, err);
  case JSON_TRUE:
  case JSON_FALSE: return cap_given(rule_bool(a, json_is_true(v)), out, err);
  case JSON_INTEGER:
    if (l->written != NULL && cap_written_as(l->written, v) != NULL)
      return cap_given(cap_written_as(l->written, v), out, err);
    return cap_given(rule_int(a, json_integer_value(v)), out, err);
  case JSON_REAL: return cap_given(rule_float(a, json_real_value(v)), out, err);
  case JSON_STRING: return cap_given(rule_string(a, json_string_value(v)), out, err);
  case JSON_OBJECT:
    if (is_object(v, "ref")) return lower_ref(l, v, out, err);
    if (is_object(v, "float") && float_of(text_of(v), &f))
      return cap_given(rule_float(a, f), out, err);
    if (is_object(v, "dtype") && rule_dtype_find(text_of(v), &d))
      return cap_given(rule_dtype_term(a, d), out, err);
    return cap_given(rule_none(a), out, err); /* device, layout, memory format */
  case JSON_ARRAY: break;
  }
  size_t n = json_array_size(v);
  const rule_term **child = cap_new_list(l, n);
  iso_code code = child != NULL ? ISO_OK : no_memory(err);
  for (size_t i = 0; i < n && code == ISO_OK; i++)
    code = as_written(l, json_array_get(v, i), &child[i], err);
  return code != ISO_OK ? code : cap_given(rule_list(a, child, n), out, err);
}

/* ---- values by the schema's type ---- */

static const char *type_name(rule_arg_type t) {
  static const char *const name[] = {[RULE_ARG_TENSOR] = "a tensor",
                                     [RULE_ARG_TENSORS] = "a list of tensors",
                                     [RULE_ARG_INT] = "an int",
                                     [RULE_ARG_INTS] = "a list of ints",
                                     [RULE_ARG_FLOAT] = "a float",
                                     [RULE_ARG_FLOATS] = "a list of floats",
                                     [RULE_ARG_BOOL] = "a bool",
                                     [RULE_ARG_BOOLS] = "a list of bools",
                                     [RULE_ARG_SCALAR] = "a number",
                                     [RULE_ARG_SCALARS] = "a list of numbers",
                                     [RULE_ARG_STRING] = "a string",
                                     [RULE_ARG_DTYPE] = "a dtype",
                                     [RULE_ARG_CONTEXT] = "a device, layout or the like"};
  return name[t];
}

static bool item_type(rule_arg_type t, rule_arg_type *item) {
  switch (t) {
  case RULE_ARG_TENSORS: *item = RULE_ARG_TENSOR; return true;
  case RULE_ARG_INTS: *item = RULE_ARG_INT; return true;
  case RULE_ARG_FLOATS: *item = RULE_ARG_FLOAT; return true;
  case RULE_ARG_BOOLS: *item = RULE_ARG_BOOL; return true;
  case RULE_ARG_SCALARS: *item = RULE_ARG_SCALAR; return true;
  default: return false;
  }
}

static bool is_number(const json_t *v) {
  return json_is_number(v) || json_is_boolean(v) || is_object(v, "float");
}

/* Whether `v` may stand for one item of type `t`. */
static bool fits(rule_arg_type t, const json_t *v) {
  switch (t) {
  case RULE_ARG_TENSOR: return is_object(v, "ref") || is_number(v);
  case RULE_ARG_INT: return json_is_integer(v);
  case RULE_ARG_FLOAT: return json_is_number(v) || is_object(v, "float");
  case RULE_ARG_BOOL: return json_is_boolean(v);
  case RULE_ARG_SCALAR: return is_number(v);
  case RULE_ARG_STRING: return json_is_string(v);
  case RULE_ARG_DTYPE: return is_object(v, "dtype");
  case RULE_ARG_CONTEXT:
    return !json_is_array(v) && !is_object(v, "ref"); /* dropping these would drop values */
  default: return false;
  }
}

static iso_code wrong_kind(const rule_arg *arg, const json_t *v, iso_error *err) {
  return iso_fail(err, ISO_FORMAT, "argument \"%.80s\" is %s, given is %s", arg->name,
                  type_name(arg->type), kind_of(v));
}

static iso_code lower_item(const cap_lowering *l, const rule_arg *arg, rule_arg_type t,
                           const json_t *v, const rule_term **out, iso_error *err) {
  if (!fits(t, v)) return wrong_kind(arg, v, err);
  if (t == RULE_ARG_CONTEXT) return cap_given(rule_none(l->arena), out, err);
  const bool size = l->written != NULL && cap_written_as(l->written, v) != NULL;
  if (t == RULE_ARG_FLOAT && json_is_integer(v) && !size)
    return cap_given(rule_float(l->arena, (double)json_integer_value(v)), out, err);
  return as_written(l, v, out, err);
}

static iso_code lower_items(const cap_lowering *l, const rule_arg *arg, rule_arg_type item,
                            const json_t *v, const rule_term **out, iso_error *err) {
  bool list = json_is_array(v);
  if (!list && (arg->list_size <= 0 || !fits(item, v))) return wrong_kind(arg, v, err);
  size_t n = list ? json_array_size(v) : (size_t)arg->list_size;
  const rule_term **child = cap_new_list(l, n);
  iso_code code = child != NULL ? ISO_OK : no_memory(err);
  for (size_t i = 0; i < n && code == ISO_OK; i++) {
    const json_t *e = list ? json_array_get(v, i) : v;
    if (item == RULE_ARG_TENSOR && json_is_null(e))
      code = cap_given(rule_none(l->arena), &child[i], err); /* Tensor?[] */
    else code = lower_item(l, arg, item, e, &child[i], err);
  }
  return code != ISO_OK ? code : cap_given(rule_list(l->arena, child, n), out, err);
}

static iso_code lower_value(const cap_lowering *l, const rule_arg *arg, const json_t *v,
                            const rule_term **out, iso_error *err) {
  rule_arg_type item;
  if (json_is_null(v) && (arg->optional || arg->type == RULE_ARG_CONTEXT))
    return cap_given(rule_none(l->arena), out, err);
  if (item_type(arg->type, &item)) return lower_items(l, arg, item, v, out, err);
  return lower_item(l, arg, arg->type, v, out, err);
}

/* ---- arguments to the schema's places ---- */

size_t cap_find_arg(const rule_schema *s, const char *name) {
  for (size_t i = 0; i < s->n_args; i++)
    if (strcmp(s->arg[i].name, name) == 0) return i;
  return CAP_NO_INDEX;
}

/* Fills `slot` (of s->n_args, NULLs) with the node's arguments; others stay NULL. */
static iso_code bind_args(const rule_schema *s, const cap_raw *raw, const json_t **slot,
                          iso_error *err) {
  size_t n_positional = 0;
  while (n_positional < s->n_args && !s->arg[n_positional].kwarg_only) n_positional++;
  size_t n = json_array_size(raw->args);
  if (n > n_positional)
    return iso_fail(err, ISO_FORMAT, "%.120s takes at most %zu positional arguments, given are %zu",
                    s->name, n_positional, n);
  for (size_t i = 0; i < n; i++) slot[i] = json_array_get(raw->args, i);
  const char *name;
  json_t *v;
  json_object_foreach((json_t *)(uintptr_t)raw->kwargs, name, v) {
    size_t i = cap_find_arg(s, name);
    if (i == CAP_NO_INDEX)
      return iso_fail(err, ISO_FORMAT, "%.120s has no argument \"%.80s\"", s->name, name);
    if (slot[i] != NULL)
      return iso_fail(err, ISO_FORMAT, "argument \"%.80s\" is given twice", name);
    slot[i] = v;
  }
  return ISO_OK;
}

static iso_code lower_slots(const cap_lowering *l, const rule_schema *s, const json_t *const *slot,
                            const rule_term **child, iso_error *err) {
  for (size_t i = 0; i < s->n_args; i++) {
    const rule_arg *arg = &s->arg[i];
    iso_code code = ISO_OK;
    if (slot[i] != NULL) code = lower_value(l, arg, slot[i], &child[i], err);
    else if (arg->type == RULE_ARG_CONTEXT) code = cap_given(rule_none(l->arena), &child[i], err);
    else if (arg->deflt != NULL) child[i] = arg->deflt;
    else
      code =
          iso_fail(err, ISO_FORMAT, "argument \"%.80s\" of %.120s is missing", arg->name, s->name);
    if (code != ISO_OK) return code;
  }
  return ISO_OK;
}

/* ---- attributes ---- */

static int by_key(const void *a, const void *b) {
  return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The object's (name, value) pairs by name, each a list of two, except `skip` (may be NULL). */
static iso_code pairs(const cap_lowering *l, const json_t *object, const char *skip,
                      const rule_term **child, size_t *n, iso_error *err) {
  const char **key = iso_arena_alloc(l->arena, (json_object_size(object) + 1) * sizeof *key);
  if (key == NULL) return no_memory(err);
  size_t k = 0;
  const char *name;
  json_t *v;
  json_object_foreach((json_t *)(uintptr_t)object, name, v) {
    if (skip == NULL || strcmp(name, skip) != 0) key[k++] = name;
  }
  if (k > 1) qsort(key, k, sizeof *key, by_key);
  for (size_t i = 0; i < k; i++) {
    const rule_term *pair[2] = {rule_string(l->arena, key[i]), NULL};
    iso_code code = as_written(l, json_object_get(object, key[i]), &pair[1], err);
    if (code == ISO_OK) code = cap_given(rule_list(l->arena, pair, 2), &child[(*n)++], err);
    if (code != ISO_OK) return code;
  }
  return ISO_OK;
}

/* The node's own operator, its arguments, and behind them one list of the attributes, if there are
 * any. */
static iso_code with_attributes(const cap_lowering *l, const cap_node *node, const cap_raw *raw,
                                const rule_term **child, size_t n, const rule_term **out,
                                iso_error *err) {
  if (json_object_size(raw->attributes) > 0) {
    size_t k = 0;
    const rule_term **pair = cap_new_list(l, json_object_size(raw->attributes));
    iso_code code = pair != NULL ? pairs(l, raw->attributes, NULL, pair, &k, err) : no_memory(err);
    if (code == ISO_OK) code = cap_given(rule_list(l->arena, pair, k), &child[n++], err);
    if (code != ISO_OK) return code;
  }
  return cap_given(rule_op(l->arena, node->op, child, n), out, err);
}

/* ---- .isomer overloads ---- */

static bool is_written(const cap_raw *raw, const char *name) {
  for (size_t i = 0; i < json_array_size(raw->writes); i++)
    if (strcmp(json_string_value(json_array_get(raw->writes, i)), name) == 0) return true;
  return false;
}

static bool is_default(const cap_lowering *l, const rule_arg *arg, const json_t *v) {
  const rule_term *t;
  if (v == NULL || json_is_null(v)) return true;
  return arg->deflt != NULL && lower_value(l, arg, v, &t, NULL) == ISO_OK &&
         rule_term_eq(t, arg->deflt);
}

/* Whether the functional overload says all that the node says: every attribute and every argument
 * has its place there, is written only, is at its default, or names the layer whose facts the
 * attributes are. */
static bool isomer_covers(const cap_lowering *l, const rule_schema *iso, const rule_schema *base,
                          const cap_raw *raw, const json_t *const *slot) {
  const char *name;
  json_t *v;
  json_object_foreach((json_t *)(uintptr_t)raw->attributes, name, v) {
    if (cap_find_arg(iso, name) == CAP_NO_INDEX) return false;
  }
  for (size_t i = 0; i < base->n_args; i++) {
    const rule_arg *arg = &base->arg[i];
    if (cap_find_arg(iso, arg->name) != CAP_NO_INDEX || is_written(raw, arg->name)) continue;
    if (raw->attributes != NULL && arg->type == RULE_ARG_STRING &&
        strcmp(arg->name, "layer_name") == 0)
      continue;
    if (!is_default(l, arg, slot[i])) return false;
  }
  return true;
}

/* A value for each argument of the overload: attributes by name, else arguments. `topk` is not
 * among a router's arguments; its buffers' last size says it, and so does the output's. */
static bool isomer_slots(const rule_schema *iso, const rule_schema *base, const cap_node *node,
                         const cap_raw *raw, const json_t *const *slot, const json_t **out,
                         json_t **topk) {
  for (size_t i = 0; i < iso->n_args; i++) {
    const char *name = iso->arg[i].name;
    size_t k = cap_find_arg(base, name);
    const rule_shape *o = &node->output[0].shape;
    if ((out[i] = json_object_get(raw->attributes, name)) == NULL && k != CAP_NO_INDEX)
      out[i] = slot[k];
    if (out[i] == NULL && k == CAP_NO_INDEX && strcmp(name, "topk") == 0 && o->rank > 0 &&
        *topk == NULL)
      out[i] = *topk = json_integer(o->dim[o->rank - 1]);
    if (out[i] == NULL && iso->arg[i].deflt == NULL && iso->arg[i].type != RULE_ARG_CONTEXT)
      return false;
  }
  return true;
}

/* Returns: in `out` NULL where the table has no overload that fits. */
static iso_code lower_isomer(const cap_lowering *l, const cap_node *node, const rule_schema *base,
                             const cap_raw *raw, const json_t *const *slot, const rule_term **out,
                             iso_error *err) {
  *out = NULL;
  char *name = iso_arena_printf(l->arena, "%s.isomer", node->op);
  if (name == NULL) return no_memory(err);
  const rule_schema *iso = rule_schemas_find(l->schemas, name);
  if (iso == NULL || (iso->n_returns != SIZE_MAX && iso->n_returns != node->n_outputs))
    return ISO_OK;
  const json_t **value = iso_arena_alloc(l->arena, (iso->n_args + 1) * sizeof *value);
  const rule_term **child = cap_new_list(l, iso->n_args);
  if (value == NULL || child == NULL) return no_memory(err);
  json_t *topk = NULL;
  iso_code code = ISO_OK;
  if (isomer_covers(l, iso, base, raw, slot) &&
      isomer_slots(iso, base, node, raw, slot, value, &topk)) {
    code = lower_slots(l, iso, value, child, err);
    if (code == ISO_OK) code = cap_given(rule_op(l->arena, name, child, iso->n_args), out, err);
  }
  json_decref(topk);
  return code;
}

/* ---- nodes ---- */

/* A memory format but row by row, or as the operand lies. */
static bool reorders(const json_t *v) {
  if (!is_object(v, "memory_format")) return false;
  const char *format = text_of(v);
  return strncmp(format, "contiguous", 10) != 0 && strncmp(format, "preserve", 8) != 0;
}

bool cap_reorders(const cap_raw *raw) {
  const char *name;
  json_t *v;
  size_t i;
  json_array_foreach(raw->args, i, v) if (reorders(v)) return true;
  json_object_foreach((json_t *)(uintptr_t)raw->kwargs, name, v) if (reorders(v)) return true;
  return false;
}

static iso_code check_values(const cap_raw *raw, iso_error *err) {
  const char *name;
  json_t *v;
  iso_code code = check_value(raw->args, -1, err);
  if (code != ISO_OK) return code;
  json_object_foreach((json_t *)(uintptr_t)raw->kwargs, name, v) {
    if ((code = check_value(v, 0, err)) != ISO_OK) return code;
  }
  json_object_foreach((json_t *)(uintptr_t)raw->attributes, name, v) {
    if ((code = check_value(v, 0, err)) != ISO_OK) return code;
    if (is_object(v, "ref"))
      return iso_fail(err, ISO_FORMAT, "attribute \"%.80s\" is a tensor", name);
  }
  return ISO_OK;
}

static iso_code lower_unknown(const cap_lowering *l, const cap_node *node, const cap_raw *raw,
                              const rule_term **out, iso_error *err) {
  size_t n = json_array_size(raw->args);
  const rule_term **child = cap_new_list(l, n + json_object_size(raw->kwargs) + 1);
  iso_code code = child != NULL ? ISO_OK : no_memory(err);
  for (size_t i = 0; i < n && code == ISO_OK; i++)
    code = as_written(l, json_array_get(raw->args, i), &child[i], err);
  /* By name: f(x, a=1) and f(x, b=1) must not become one term. */
  if (code == ISO_OK)
    code = pairs(l, raw->kwargs, raw->attributes != NULL ? "layer_name" : NULL, child, &n, err);
  return code != ISO_OK ? code : with_attributes(l, node, raw, child, n, out, err);
}

static iso_code check_writes(const cap_node *node, const rule_schema *s, const cap_raw *raw,
                             iso_error *err) {
  if (s->writes && raw->writes == NULL)
    return iso_fail(err, ISO_FORMAT,
                    "%.120s writes to its arguments, and the node is not functionalized", s->name);
  for (size_t i = 0; i < json_array_size(raw->writes); i++) {
    const char *name = json_string_value(json_array_get(raw->writes, i));
    size_t k = cap_find_arg(s, name);
    if (k == CAP_NO_INDEX || !s->arg[k].written)
      return iso_fail(err, ISO_FORMAT, "%.120s does not write to \"%.80s\"", s->name, name);
  }
  if (!s->writes && s->n_returns != SIZE_MAX && node->n_outputs > s->n_returns)
    return iso_fail(err, ISO_FORMAT, "%.120s returns %zu tensors, the node has %zu outputs",
                    s->name, s->n_returns, node->n_outputs);
  return ISO_OK;
}

iso_code cap_note_ends(const cap_lowering *l, const cap_raw *raw, cap_node *node, iso_error *err) {
  static const char *const name[] = {"index", "start", "end"};
  const rule_schema *s = rule_schemas_find(l->schemas, node->op);
  if (s == NULL || rule_operator_of(s->name)->placed == RULE_PLACED_NOTHING) return ISO_OK;
  const json_t **slot = iso_arena_alloc(l->arena, (s->n_args + 1) * sizeof *slot);
  if (slot == NULL) return no_memory(err);
  const iso_code code = bind_args(s, raw, slot, err);
  if (code != ISO_OK) return code;
  for (size_t i = 0; i < 3; i++) {
    const size_t k = cap_find_arg(s, name[i]);
    const bool ends =
        k != CAP_NO_INDEX && json_is_integer(slot[k]) && json_integer_value(slot[k]) < 0;
    if (i < 2) node->from_end |= ends;
    else node->to_end = ends;
  }
  return ISO_OK;
}

iso_code cap_lower(const cap_lowering *l, const cap_node *node, const cap_raw *raw,
                   const rule_term **out, iso_error *err) {
  iso_code code = check_values(raw, err);
  if (code != ISO_OK) return code;
  const rule_schema *s = rule_schemas_find(l->schemas, node->op);
  if (s == NULL) return lower_unknown(l, node, raw, out, err);
  const json_t **slot = iso_arena_alloc(l->arena, (s->n_args + 1) * sizeof *slot);
  const rule_term **child = cap_new_list(l, s->n_args + 1), *call;
  if (slot == NULL || child == NULL) return no_memory(err);
  if ((code = check_writes(node, s, raw, err)) != ISO_OK) return code;
  if ((code = bind_args(s, raw, slot, err)) != ISO_OK) return code;
  if ((code = lower_slots(l, s, slot, child, err)) != ISO_OK) return code;
  if ((code = lower_isomer(l, node, s, raw, slot, &call, err)) != ISO_OK) return code;
  if (call != NULL) {
    *out = call;
    return ISO_OK;
  }
  size_t name = cap_find_arg(s, "layer_name");
  if (raw->attributes != NULL && name != CAP_NO_INDEX &&
      (code = cap_given(rule_none(l->arena), &child[name], err)) != ISO_OK)
    return code;
  code = l->written != NULL ? cap_one_spelling_sized(l, node, s, child, err)
                            : cap_one_spelling(l, node, s, child, err);
  return code != ISO_OK ? code : with_attributes(l, node, raw, child, s->n_args, out, err);
}
