/* The nodes that a translation of torch.export's program writes, as graph.json would say them: ids,
 * places, tensors. */
#include <stdlib.h>
#include <string.h>

#include "capture/pt2/pt2_translate.h"

iso_code pt2_no_memory(pt2_writer *w) { return iso_fail(w->err, ISO_NOMEM, "out of memory"); }

const char *pt2_str(const json_t *object, const char *key) {
  const char *s = json_string_value(json_object_get(object, key));
  return s != NULL ? s : "";
}

/* ---- places ---- */

/* The module path: the last "key,path,type" of nn_module_stack. */
static const char *scope_of(pt2_writer *w, const char *stack) {
  const char *last = strrchr(stack, ';'), *comma = strchr(last != NULL ? last + 1 : stack, ',');
  if (comma == NULL) return "";
  const char *path = comma + 1, *end = strchr(path, ',');
  size_t n = end != NULL ? (size_t)(end - path) : strlen(path);
  static const char *const roots[] = {"L['self'].", "L['self']", "L__self__.", "L__self__", NULL};
  for (size_t k = 0; roots[k] != NULL; k++)
    if (n >= strlen(roots[k]) && memcmp(path, roots[k], strlen(roots[k])) == 0) {
      path += strlen(roots[k]);
      n -= strlen(roots[k]);
      break;
    }
  const char *out = iso_arena_strndup(w->arena, path, n);
  return out != NULL ? out : "";
}

/* A path from its package's folder on: no folder of whoever exported the program. */
static const char *from_package(const char *path) {
  static const char *const marks[] = {"/site-packages/", "/dist-packages/", NULL};
  for (size_t k = 0; marks[k] != NULL; k++)
    for (const char *at; (at = strstr(path, marks[k])) != NULL;) path = at + strlen(marks[k]);
  if (*path != '/') return path;
  return strrchr(path, '/') + 1;
}

/* file:line of the innermost frame outside PyTorch. "" where there is none. */
static const char *source_of(pt2_writer *w, const char *trace) {
  const char *found = "";
  for (const char *at = trace; (at = strstr(at, "File \"")) != NULL;) {
    const char *path = at + 6, *quote = strchr(path, '"');
    at = path;
    if (quote == NULL || strncmp(quote, "\", line ", 8) != 0) continue;
    char *file = iso_arena_strndup(w->arena, path, (size_t)(quote - path));
    const char *name = file != NULL ? from_package(file) : "";
    if (strncmp(name, "torch/", 6) == 0 || *name == '<' || *name == '\0') continue;
    const char *line = iso_arena_printf(w->arena, "%s:%ld", name, strtol(quote + 8, NULL, 10));
    if (line != NULL) found = line;
  }
  return found;
}

/* ---- writing nodes ---- */

static const char *fresh_id(pt2_writer *w, const char *hint) {
  const char *id = iso_arena_strdup(w->arena, hint != NULL && *hint != '\0' ? hint : "n");
  for (unsigned k = 1; id != NULL && cap_names_find(&w->ids, id) != CAP_NO_INDEX; k++) {
    /* Clashes are few: names of the export are unique, and "_k" is tried from the number of nodes
     * where they are not. */
    if (k > 50) k += (unsigned)json_array_size(w->nodes);
    id = iso_arena_printf(w->arena, "%s_%u", hint != NULL && *hint != '\0' ? hint : "n", k);
  }
  return id;
}

json_t *pt2_ref(const char *id) { return json_pack("{s:s}", "ref", id); }

json_t *pt2_meta_json(const pt2_cell *t) {
  json_t *shape = json_array();
  for (uint32_t k = 0; k < t->shape.rank; k++)
    json_array_append_new(shape, json_integer(t->shape.dim[k]));
  return json_pack("{s:o, s:s}", "shape", shape, "dtype", rule_dtype_name(t->dtype));
}

json_t *pt2_outputs(const pt2_cell *t) { return json_pack("[o]", pt2_meta_json(t)); }

static bool place(pt2_writer *w, json_t *node) {
  const char *scope = scope_of(w, pt2_str(w->here, "nn_module_stack")),
             *source = source_of(w, pt2_str(w->here, "stack_trace"));
  return (*scope == '\0' || json_object_set_new(node, "scope", json_string(scope)) == 0) &&
         (*source == '\0' || json_object_set_new(node, "source", json_string(source)) == 0);
}

iso_code pt2_append(pt2_writer *w, json_t *node, const char *hint, const char **id, json_t **out) {
  const char *name = fresh_id(w, hint);
  if (node == NULL || name == NULL || json_object_set_new(node, "id", json_string(name)) != 0 ||
      !place(w, node)) {
    json_decref(node);
    return pt2_no_memory(w);
  }
  if (json_array_append_new(w->nodes, node) != 0 ||
      !cap_names_add(&w->ids, name, json_array_size(w->nodes) - 1))
    return pt2_no_memory(w);
  *id = name;
  if (out != NULL) *out = node;
  return ISO_OK;
}

iso_code pt2_emit(pt2_writer *w, const char *op, json_t *kwargs, json_t *outputs, const char *hint,
                  const char **id, json_t **node) {
  if (kwargs == NULL || outputs == NULL) {
    json_decref(kwargs);
    json_decref(outputs);
    return pt2_no_memory(w);
  }
  return pt2_append(
      w, json_pack("{s:s, s:[], s:o, s:o}", "op", op, "args", "kwargs", kwargs, "outputs", outputs),
      hint, id, node);
}

iso_code pt2_getitem(pt2_writer *w, const char *of, int64_t index, const pt2_cell *meta,
                     const char *hint, const char **id) {
  return pt2_append(w,
                    json_pack("{s:s, s:[o, I], s:{}, s:o}", "op", "getitem", "args", pt2_ref(of),
                              (json_int_t)index, "kwargs", "outputs", pt2_outputs(meta)),
                    hint, id, NULL);
}

pt2_cell *pt2_cell_new(pt2_writer *w, const pt2_cell *meta, const char *id) {
  pt2_cell *c = iso_arena_alloc(w->arena, sizeof *c);
  if (c == NULL) return NULL;
  c->shape = meta->shape;
  c->dtype = meta->dtype;
  memcpy(c->stride, meta->stride, sizeof c->stride);
  c->id = id;
  c->index = -1;
  return c;
}
