/* Operators of an exported program: in-place ones become the functions that they are, results are
 * bound to the names that the program gives them. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "capture/pt2/pt2_translate.h"
#include "egraph/base/vec.h"
#include "capture/pt2/pt2_int.h"

/* ---- operators ---- */

typedef struct operator{
  char *space, *name, *overload; /* "aten", "add", "Tensor"; overload "" where it is the default */
  const char *op;                /* "aten::add.Tensor" */
  const rule_schema *schema;     /* NULL: not known */
}
operator;

static iso_code operator_of(translation *t, const char *target, operator* o) {
  char *copy = iso_arena_strdup(t->w.arena, target + strlen("torch.ops."));
  if (copy == NULL) return pt2_no_memory(&t->w);
  o->space = copy;
  o->name = strchr(copy, '.');
  if (o->name != NULL) *o->name++ = '\0';
  o->overload = o->name != NULL ? strchr(o->name, '.') : NULL;
  if (o->overload == NULL || o->space[0] == '\0' || o->name[0] == '\0')
    return iso_fail(t->w.err, ISO_FORMAT, "target \"%.120s\" names no operator", target);
  *o->overload++ = '\0';
  if (strcmp(o->overload, "default") == 0) o->overload += strlen(o->overload);
  o->op = *o->overload != '\0'
              ? iso_arena_printf(t->w.arena, "%s::%s.%s", o->space, o->name, o->overload)
              : iso_arena_printf(t->w.arena, "%s::%s", o->space, o->name);
  if (o->op == NULL) return pt2_no_memory(&t->w);
  o->schema = rule_schemas_find(t->w.schemas, o->op);
  return o->schema == NULL && rule_schemas_starved(t->w.schemas) ? pt2_no_memory(&t->w) : ISO_OK;
}

bool pt2_is_any(const char *name, const char *const *names) {
  for (; *names != NULL; names++)
    if (strcmp(name, *names) == 0) return true;
  return false;
}

/* Results that are tensors of one node: the node itself, or its projections. */
static iso_code bind_results(translation *t, frame *f, const json_t *node, const operator* o,
                             const results *r, json_t *kwargs) {
  json_t *outputs = json_array(), *made = NULL;
  pt2_cell *meta = iso_arena_alloc(t->w.arena, (r->n + 1) * sizeof *meta);
  iso_code code = outputs != NULL && meta != NULL ? ISO_OK : pt2_no_memory(&t->w);
  for (size_t i = 0; i < r->n && code == ISO_OK; i++) {
    code = pt2_meta_of(t, f, r->name[i], &meta[i]);
    if (code == ISO_OK && json_array_append_new(outputs, pt2_meta_json(&meta[i])) != 0)
      code = pt2_no_memory(&t->w);
  }
  if (code != ISO_OK) {
    json_decref(outputs);
    json_decref(kwargs);
    return code;
  }
  const bool several = r->list || r->n > 1;
  const char *id, *arg = "", *own = pt2_str(node, "name");
  pt2_cell *base = strcmp(o->space, "aten") == 0 ? pt2_tensor_argument(t, f, node, 0, &arg) : NULL;
  code = pt2_emit(&t->w, o->op, kwargs, outputs,
                  !several       ? r->name[0]
                  : *own != '\0' ? own
                                 : o->name,
                  &id, &made);
  for (size_t i = 0; i < r->n && code == ISO_OK; i++) {
    const char *at = id;
    if (several) code = pt2_getitem(&t->w, id, (int64_t)i, &meta[i], r->name[i], &at);
    if (code != ISO_OK) break;
    pt2_cell *c = pt2_cell_new(&t->w, &meta[i], at);
    if (c != NULL && base != NULL)
      pt2_view(c, base, pt2_shares(o->name, json_object_get(made, "kwargs"), base, c), made, arg,
               several ? (int64_t)i : -1);
    code = pt2_bind_tensor(t, f, r->name[i], c);
  }
  return code;
}

static iso_code in_place(translation *t, frame *f, const json_t *node, const operator* o,
                         const results *r) {
  pt2_cell *self = pt2_tensor_argument(t, f, node, 0, NULL), *arg[64];
  size_t n = 0;
  json_t *kwargs = NULL;
  if (self == NULL)
    return iso_fail(t->w.err, ISO_UNSUPPORTED, "%s writes to something that is no tensor", o->op);
  for (size_t i = 0; i < json_array_size(json_object_get(node, "inputs")) && n < 64; i++)
    if ((arg[n] = pt2_tensor_argument(t, f, node, i, NULL)) != NULL) n++;
  pt2_cell after;
  if (r->n == 1) {
    iso_code code = pt2_meta_of(t, f, r->name[0], &after);
    if (code != ISO_OK) return code;
    if (!rule_shape_eq(&after.shape, &self->shape) || after.dtype != self->dtype)
      return iso_fail(t->w.err, ISO_UNSUPPORTED,
                      "%s changes a tensor's shape; a capture cannot hold it", o->op);
  } else if (r->n > 1) {
    return iso_fail(t->w.err, ISO_UNSUPPORTED,
                    "%s writes in place and has no functional counterpart", o->op);
  }
  iso_code code = pt2_arguments(t, f, node, true, &kwargs);
  if (code == ISO_OK)
    code = pt2_in_place(&t->w, &(pt2_named){o->name, o->overload, r->n == 1 ? r->name[0] : o->name},
                        kwargs, arg, n, self);
  return code == ISO_OK && r->n == 1 ? pt2_bind_tensor(t, f, r->name[0], self) : code;
}

/* An operator outside PyTorch that writes to arguments: a function whose outputs are its own
 * results, then the tensors that it wrote. */
static iso_code functionalized(translation *t, frame *f, const json_t *node, const operator* o,
                               const results *r) {
  json_t *kwargs = NULL, *outputs = json_array(), *writes = json_array(), *made = NULL;
  pt2_cell *written[64], *meta = iso_arena_alloc(t->w.arena, (r->n + 1) * sizeof *meta);
  size_t n = 0;
  iso_code code = outputs != NULL && writes != NULL && meta != NULL
                      ? pt2_arguments(t, f, node, true, &kwargs)
                      : pt2_no_memory(&t->w);
  for (size_t i = 0; i < r->n && code == ISO_OK; i++) {
    code = pt2_meta_of(t, f, r->name[i], &meta[i]);
    if (code == ISO_OK && json_array_append_new(outputs, pt2_meta_json(&meta[i])) != 0)
      code = pt2_no_memory(&t->w);
  }
  for (size_t k = 0; k < o->schema->n_args && code == ISO_OK; k++) {
    if (!o->schema->arg[k].written) continue;
    const char *name = "";
    pt2_cell *c = NULL;
    for (size_t i = 0; i < json_array_size(json_object_get(node, "inputs")) && c == NULL; i++)
      if (strcmp(pt2_str(json_array_get(json_object_get(node, "inputs"), i), "name"),
                 o->schema->arg[k].name) == 0)
        c = pt2_tensor_argument(t, f, node, i, &name);
    if (c == NULL || n == 64)
      code = iso_fail(t->w.err, ISO_UNSUPPORTED, "%s writes to \"%.80s\", which is no tensor here",
                      o->op, o->schema->arg[k].name);
    else if (json_array_append_new(outputs, pt2_meta_json(c)) != 0 ||
             json_array_append_new(writes, json_string(name)) != 0)
      code = pt2_no_memory(&t->w);
    else written[n++] = c;
  }
  if (code != ISO_OK) {
    json_decref(kwargs);
    json_decref(outputs);
    json_decref(writes);
    return code;
  }
  const char *id = NULL;
  code = pt2_emit(&t->w, o->op, kwargs, outputs, r->n == 1 ? r->name[0] : o->name, &id, &made);
  if (code != ISO_OK) json_decref(writes);
  else if (json_object_set_new(
               made, "functionalized",
               json_pack("{s:I, s:o}", "returns", (json_int_t)r->n, "writes", writes)) != 0)
    return pt2_no_memory(&t->w);
  const bool several = r->n + n > 1;
  for (size_t i = 0; i < r->n + n && code == ISO_OK; i++) {
    const pt2_cell like = i < r->n ? meta[i] : *written[i - r->n];
    const char *at = id, *hint = i < r->n ? r->name[i] : like.id;
    if (several) code = pt2_getitem(&t->w, id, (int64_t)i, &like, hint, &at);
    if (code == ISO_OK && i < r->n)
      code = pt2_bind_tensor(t, f, r->name[i], pt2_cell_new(&t->w, &like, at));
    else if (code == ISO_OK) code = pt2_write(&t->w, written[i - r->n], at);
  }
  return code;
}

/* Operators that return their operands. */
static iso_code handed_on(translation *t, frame *f, const json_t *node, const operator* o,
                          const results *r, bool *done) {
  static const char *const same[] = {"detach_", "requires_grad_", NULL}, *const copies[] = {
                                                                             "lift_fresh_copy",
                                                                             NULL};
  *done = strcmp(o->space, "aten") == 0 && r->n == 1 &&
          (pt2_is_any(o->name, same) || pt2_is_any(o->name, copies));
  if (!*done) return ISO_OK;
  pt2_cell *c = pt2_tensor_argument(t, f, node, 0, NULL);
  if (c == NULL) return iso_fail(t->w.err, ISO_FORMAT, "%s takes no tensor", o->op);
  iso_code code = pt2_read(&t->w, c);
  if (code == ISO_OK && pt2_is_any(o->name, copies)) c = pt2_cell_new(&t->w, c, c->id);
  return code == ISO_OK ? pt2_bind_tensor(t, f, r->name[0], c) : code;
}

static bool writes_in_place(const operator* o) {
  const size_t n = strlen(o->name);
  return strcmp(o->space, "aten") == 0 && n > 1 && o->name[n - 1] == '_' && o->name[n - 2] != '_';
}

iso_code pt2_operator_call(translation *t, frame *f, const json_t *node, const char *target,
                           const results *r) {
  operator o = {0};
  bool done = false;
  json_t *kwargs = NULL;
  iso_code code = operator_of(t, target, &o);
  if (code == ISO_OK) code = handed_on(t, f, node, &o, r, &done);
  if (code != ISO_OK || done) return code;
  if (writes_in_place(&o)) return in_place(t, f, node, &o, r);
  if (o.schema == NULL && strcmp(o.space, "aten") == 0)
    return iso_fail(t->w.err, ISO_UNSUPPORTED,
                    "%.120s is no operator that is known to be a function", o.op);
  if (o.schema == NULL && t->training)
    return iso_fail(t->w.err, ISO_UNSUPPORTED,
                    "nothing in the archive says whether %.120s writes to its arguments; export "
                    "with run_decompositions({}), or capture with isomer-capture",
                    o.op);
  if (o.schema != NULL && o.schema->writes) return functionalized(t, f, node, &o, r);
  if (r->n == 0) return ISO_OK; /* an assertion */
  code = pt2_arguments(t, f, node, o.schema != NULL, &kwargs);
  return code == ISO_OK ? bind_results(t, f, node, &o, r, kwargs) : code;
}
