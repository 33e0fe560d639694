/* In-place operators of an exported program, made functions.
 *
 * A write to a view computes the new value of the view, carries it up to the root through the
 * inverse of each view (a slice_scatter for a slice, the inverse permutation for a permute, a
 * reshape for a view), and leaves every other view stale. A write to a view that has no such
 * inverse is refused, and so is a write to memory that another tensor may or may not share. Whether
 * contiguous() and its like copy depends on the strides; where those in the archive do not settle
 * it, the root is marked.
 *
 * capture/isomer_capture/alias.py does the same while it captures, on real tensors. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "capture/pt2/pt2_int.h"
#include "rules/names.h"
#include "rules/operators.h"

enum { MAX_VIEWS = 500 }; /* views of views: each costs a level of recursion */

/* ---- who shares memory ---- */

bool pt2_is_dense(const pt2_cell *t) {
  int64_t next = 1;
  for (uint32_t k = t->shape.rank; k-- > 0;) {
    if (t->shape.dim[k] == 0) return true;
    if (t->shape.dim[k] != 1 && t->stride[k] != next) return false;
    next *= t->shape.dim[k];
  }
  return true;
}

/* A reshape of dense memory is a view. Of other memory it may be one: not known. */
static pt2_sharing reshaped(const pt2_cell *base, const pt2_cell *out) {
  if (pt2_is_dense(base) || rule_shape_eq(&base->shape, &out->shape)) return PT2_SAME;
  return PT2_UNSURE;
}

static pt2_sharing cast(const json_t *kwargs, const pt2_cell *base, const pt2_cell *out) {
  if (base->dtype != out->dtype || json_is_true(json_object_get(kwargs, "copy"))) return PT2_FRESH;
  return json_is_null(json_object_get(kwargs, "memory_format")) ||
                 json_object_get(kwargs, "memory_format") == NULL
             ? PT2_SAME
             : PT2_UNSURE;
}

/* The table's line of the operator with this bare name; none of an operator whose copy this is. */
static const rule_operator *line_of(const char *name) {
  static const rule_operator none;
  char op[96];
  snprintf(op, sizeof op, OP_ATEN "%s", name);
  const rule_operator *o = rule_operator_of(op);
  return strcmp(o->name, name) == 0 ? o : &none;
}

pt2_sharing pt2_shares(const char *name, const json_t *kwargs, const pt2_cell *base,
                       const pt2_cell *out) {
  switch (line_of(name)->shares) {
  case RULE_SHARES_NOTHING: return PT2_FRESH;
  case RULE_SHARES_IN_ORDER: return base->dtype == out->dtype ? PT2_SAME : PT2_UNSURE;
  case RULE_SHARES_VIEW: return PT2_VIEW;
  case RULE_SHARES_UNLESS_TRAINED:
    return json_is_true(json_object_get(kwargs, "train")) ? PT2_FRESH : PT2_SAME;
  case RULE_SHARES_IF_DENSE: return reshaped(base, out);
  case RULE_SHARES_IF_DENSE_ONLY:
    return json_is_object(json_object_get(kwargs, "memory_format")) ? PT2_UNSURE
           : pt2_is_dense(base)                                     ? PT2_SAME
                                                                    : PT2_FRESH;
  case RULE_SHARES_UNLESS_CAST: return cast(kwargs, base, out);
  default: return PT2_UNSURE;
  }
}

static pt2_cell *root_of(pt2_cell *c) {
  while (c->parent != NULL) c = c->parent;
  return c;
}

void pt2_view(pt2_cell *c, pt2_cell *base, pt2_sharing how, const json_t *node, const char *arg,
              int64_t index) {
  pt2_cell *root = root_of(base);
  if (how == PT2_FRESH) return;
  if (how == PT2_UNSURE || base->depth >= MAX_VIEWS) {
    root->unsure = c->unsure = true;
    return;
  }
  c->parent = base;
  c->node = node;
  c->arg = arg;
  c->index = index;
  c->version = root->version;
  c->depth = base->depth + 1;
}

/* ---- reading ---- */

iso_code pt2_read(pt2_writer *w, pt2_cell *c) {
  if (c->parent == NULL || c->version == root_of(c)->version) return ISO_OK;
  iso_code code = pt2_read(w, c->parent);
  if (code != ISO_OK) return code;
  json_t *kwargs = json_deep_copy(json_object_get(c->node, "kwargs")),
         *outputs = json_deep_copy(json_object_get(c->node, "outputs"));
  if (kwargs != NULL && json_object_set_new(kwargs, c->arg, pt2_ref(c->parent->id)) != 0) {
    json_decref(kwargs);
    kwargs = NULL;
  }
  const char *id;
  code = pt2_emit(w, json_string_value(json_object_get(c->node, "op")), kwargs, outputs,
                  json_string_value(json_object_get(c->node, "id")), &id, NULL);
  if (code == ISO_OK && c->index >= 0) code = pt2_getitem(w, id, c->index, c, c->id, &id);
  if (code != ISO_OK) return code;
  c->id = id;
  c->version = root_of(c)->version;
  return ISO_OK;
}

/* ---- inverses of views ---- */

static int64_t int_of(const json_t *kwargs, const char *key, int64_t otherwise) {
  const json_t *v = json_object_get(kwargs, key);
  return json_is_integer(v) ? json_integer_value(v) : otherwise;
}

static int64_t dim_of(const json_t *kwargs, const char *key, int64_t otherwise, uint32_t rank) {
  int64_t d = int_of(kwargs, key, otherwise);
  return d < 0 ? d + (int64_t)rank : d;
}

typedef struct inverse {
  pt2_writer *w;
  const pt2_cell *view, *old; /* `old`: what is viewed, with the value before the write */
  const json_t *kwargs;       /* of the view */
  const char *name, *fresh;   /* fresh: the node with the view's new value */
  const char **out;
} inverse;

static iso_code refused(const inverse *v) {
  return iso_fail(v->w->err, ISO_UNSUPPORTED,
                  "the program writes in place through a view made by aten::%s, which cannot be "
                  "turned into a function; write to a copy (clone) instead",
                  v->name);
}

/* An operator whose result is like `old`. `kwargs` may lack memory. */
static iso_code give(const inverse *v, const char *op, json_t *kwargs) {
  return pt2_emit(v->w, op, kwargs, pt2_outputs(v->old), v->name, v->out, NULL);
}

static json_t *sizes(const rule_shape *s) {
  json_t *a = json_array();
  for (uint32_t k = 0; k < s->rank; k++) json_array_append_new(a, json_integer(s->dim[k]));
  return a;
}

static iso_code as_before(const inverse *v) {
  int64_t a, b;
  if (rule_shape_numel(&v->view->shape, &a, NULL) != ISO_OK ||
      rule_shape_numel(&v->old->shape, &b, NULL) != ISO_OK || a != b)
    return refused(v);
  if (rule_shape_eq(&v->view->shape, &v->old->shape)) {
    *v->out = v->fresh;
    return ISO_OK;
  }
  return give(v, OP_RESHAPE,
              json_pack("{s:o, s:o}", "self", pt2_ref(v->fresh), "shape", sizes(&v->old->shape)));
}

/* out: order of the viewed dimensions in the view. Returns: false where it is no permutation. */
static bool order_of(const inverse *v, int64_t *order) {
  /* operator: each has an inverse of its own */
  const uint32_t n = v->old->shape.rank;
  for (uint32_t k = 0; k < n; k++) order[k] = k;
  int64_t a = n >= 2 ? (int64_t)n - 2 : 0, b = n >= 2 ? (int64_t)n - 1 : 0;
  if (strcmp(v->name, "permute") == 0) {
    const json_t *dims = json_object_get(v->kwargs, "dims");
    if (json_array_size(dims) != n) return false;
    for (uint32_t k = 0; k < n; k++) {
      order[k] = json_integer_value(json_array_get(dims, k));
      if (order[k] < 0) order[k] += n;
    }
  } else if (strcmp(v->name, "numpy_T") == 0) {
    for (uint32_t k = 0; k < n; k++) order[k] = (int64_t)n - 1 - k;
  } else {
    if (strcmp(v->name, "transpose") == 0 || strcmp(v->name, "swapdims") == 0) {
      a = dim_of(v->kwargs, "dim0", -99, n);
      b = dim_of(v->kwargs, "dim1", -99, n);
    } else if (strcmp(v->name, "swapaxes") == 0) {
      a = dim_of(v->kwargs, "axis0", -99, n);
      b = dim_of(v->kwargs, "axis1", -99, n);
    }
    if (n == 0) return true;
    if (a < 0 || b < 0 || a >= (int64_t)n || b >= (int64_t)n) return false;
    order[a] = b;
    order[b] = a;
  }
  uint32_t seen = 0;
  for (uint32_t k = 0; k < n; k++) {
    if (order[k] < 0 || order[k] >= (int64_t)n) return false;
    seen |= 1u << order[k];
  }
  return seen == (1u << n) - 1;
}

static iso_code permuted_back(const inverse *v) {
  int64_t order[RULE_MAX_RANK], back[RULE_MAX_RANK];
  const bool conjugates = rule_dtype_is_complex(v->old->dtype) && !line_of(v->name)->rearranges;
  if (conjugates || !order_of(v, order)) return refused(v);
  for (uint32_t k = 0; k < v->old->shape.rank; k++) back[order[k]] = k;
  json_t *dims = json_array();
  for (uint32_t k = 0; k < v->old->shape.rank; k++)
    json_array_append_new(dims, json_integer(back[k]));
  return give(v, OP_PERMUTE, json_pack("{s:o, s:o}", "self", pt2_ref(v->fresh), "dims", dims));
}

static iso_code scattered_slice(const inverse *v, int64_t dim, json_t *start, json_t *end,
                                int64_t step) {
  return give(v, OP_SLICE_SCATTER,
              json_pack("{s:o, s:o, s:I, s:o, s:o, s:I}", "self", pt2_ref(v->old->id), "src",
                        pt2_ref(v->fresh), "dim", (json_int_t)dim, "start", start, "end", end,
                        "step", (json_int_t)step));
}

static json_t *given(const json_t *kwargs, const char *key) {
  json_t *v = json_object_get(kwargs, key);
  return v != NULL ? json_incref(v) : json_null();
}

static iso_code scattered_part(const inverse *v) {
  const int64_t dim = dim_of(v->kwargs, "dim", 0, v->old->shape.rank);
  if (dim < 0 || dim >= (int64_t)v->old->shape.rank || v->view->index < 0) return refused(v);
  int64_t start = 0;
  const json_t *list = json_object_get(v->kwargs, "split_sizes");
  if (list == NULL && json_is_array(json_object_get(v->kwargs, "split_size")))
    list = json_object_get(v->kwargs, "split_size");
  if (list != NULL) {
    for (int64_t k = 0; k < v->view->index; k++)
      start += json_integer_value(json_array_get(list, (size_t)k));
  } else { /* equal parts, the last perhaps smaller */
    int64_t size = int_of(v->kwargs, "split_size", 0);
    const int64_t chunks = int_of(v->kwargs, "chunks", 0);
    if (size <= 0 && chunks > 0) size = (v->old->shape.dim[dim] + chunks - 1) / chunks;
    if (size <= 0) return refused(v);
    start = size * v->view->index;
  }
  return scattered_slice(v, dim, json_integer(start), json_integer(start + v->view->shape.dim[dim]),
                         1);
}

static iso_code scattered_select(const inverse *v, int64_t index) {
  return give(v, OP_SELECT_SCATTER,
              json_pack("{s:o, s:o, s:I, s:I}", "self", pt2_ref(v->old->id), "src",
                        pt2_ref(v->fresh), "dim",
                        (json_int_t)dim_of(v->kwargs, "dim", 0, v->old->shape.rank), "index",
                        (json_int_t)index));
}

static iso_code scattered_diagonal(const inverse *v) {
  return give(v, OP_DIAGONAL_SCATTER,
              json_pack("{s:o, s:o, s:I, s:I, s:I}", "self", pt2_ref(v->old->id), "src",
                        pt2_ref(v->fresh), "offset", (json_int_t)int_of(v->kwargs, "offset", 0),
                        "dim1", (json_int_t)int_of(v->kwargs, "dim1", 0), "dim2",
                        (json_int_t)int_of(v->kwargs, "dim2", 1)));
}

static iso_code scattered_narrow(const inverse *v) {
  const uint32_t rank = v->old->shape.rank;
  const int64_t dim = dim_of(v->kwargs, "dim", 0, rank);
  if (dim < 0 || dim >= (int64_t)rank || !json_is_integer(json_object_get(v->kwargs, "start")))
    return refused(v);
  int64_t start = int_of(v->kwargs, "start", 0);
  if (start < 0) start += v->old->shape.dim[dim];
  return scattered_slice(v, dim, json_integer(start),
                         json_integer(start + int_of(v->kwargs, "length", 0)), 1);
}

/* Returns: in *v->out the new value of the tensor that is viewed. */
static iso_code invert(const inverse *v) {
  switch (line_of(v->name)->undo) {
  case RULE_UNDONE_BY_RESHAPE: return as_before(v);
  case RULE_UNDONE_BY_PERMUTE: return permuted_back(v);
  case RULE_UNDONE_BY_PARTS: return scattered_part(v);
  case RULE_UNDONE_BY_SLICE:
    return scattered_slice(v, int_of(v->kwargs, "dim", 0), given(v->kwargs, "start"),
                           given(v->kwargs, "end"), int_of(v->kwargs, "step", 1));
  case RULE_UNDONE_BY_NARROW: return scattered_narrow(v);
  case RULE_UNDONE_BY_SELECT: return scattered_select(v, int_of(v->kwargs, "index", 0));
  case RULE_UNDONE_BY_UNBIND: return scattered_select(v, v->view->index);
  case RULE_UNDONE_BY_DIAGONAL: return scattered_diagonal(v);
  case RULE_UNDONE_BY_REAL:
    return give(v, OP_VIEW_AS_REAL, json_pack("{s:o}", "self", pt2_ref(v->fresh)));
  case RULE_UNDONE_BY_COMPLEX:
    return give(v, OP_VIEW_AS_COMPLEX, json_pack("{s:o}", "self", pt2_ref(v->fresh)));
  default: return refused(v);
  }
}

/* "slice" of "aten::slice.Tensor", in `buf`. */
static const char *short_name(const char *op, char *buf, size_t n) {
  const char *colons = strstr(op, "::");
  const char *from = colons != NULL ? colons + 2 : op;
  size_t len = strcspn(from, ".");
  if (len >= n) len = n - 1;
  memcpy(buf, from, len);
  buf[len] = '\0';
  return buf;
}

iso_code pt2_write(pt2_writer *w, pt2_cell *c, const char *id) {
  if (root_of(c)->unsure)
    return iso_fail(w->err, ISO_UNSUPPORTED,
                    "the program writes in place to memory that another tensor may share or have "
                    "copied; write to a copy (clone) instead");
  pt2_cell *x = c;
  x->next = id;
  while (x->parent != NULL) {
    char name[64];
    iso_code code = pt2_read(w, x->parent);
    if (code != ISO_OK) return code;
    const inverse v = {
        .w = w,
        .view = x,
        .old = x->parent,
        .kwargs = json_object_get(x->node, "kwargs"),
        .name = short_name(json_string_value(json_object_get(x->node, "op")), name, sizeof name),
        .fresh = x->next,
        .out = &x->parent->next};
    if ((code = invert(&v)) != ISO_OK) return code;
    x = x->parent;
  }
  x->version++;
  for (pt2_cell *y = c; y != NULL; y = y->parent) {
    y->id = y->next;
    y->version = x->version;
  }
  return ISO_OK;
}

/* ---- in-place operators ---- */

static int width(rule_dtype d) { return d == RULE_F64 ? 3 : d == RULE_F32 ? 2 : 1; }

/* The dtype of the function's result, of tensors of which the first is written to: PyTorch's
 * promotion, as far as a result that fits back into `self` can need it. */
static bool promoted(const char *name, pt2_cell *const *args, size_t n, const pt2_cell *self,
                     rule_dtype *out) {
  const rule_operator *o = line_of(name);
  const bool tests = o->choice == RULE_CHOICE_COMPARE ||
                     (o->choice == RULE_CHOICE_LOGIC && o->elementwise && o->observes);
  *out = self->dtype;
  if (tests) *out = RULE_BOOL;
  if (tests || o->in_place == RULE_IN_PLACE_KEEPS_DTYPE) return true;
  for (size_t i = 0; i < n; i++) {
    const pt2_cell *t = args[i];
    if (t == self || t->dtype == *out || t->shape.rank == 0) continue;
    if (!rule_dtype_is_float(self->dtype)) {
      if (rule_dtype_is_complex(self->dtype) || !rule_dtype_is_int(self->dtype) ||
          t->dtype != RULE_BOOL)
        return false;
      continue; /* an integer and a bool */
    }
    if (!rule_dtype_is_float(t->dtype)) {
      if (rule_dtype_is_complex(t->dtype)) return false;
      continue;
    }
    if (self->shape.rank == 0) return false;
    if (width(t->dtype) == width(*out)) *out = RULE_F32; /* float16 and bfloat16 */
    else if (width(t->dtype) > width(*out)) *out = t->dtype;
  }
  return true;
}

static iso_code to_dtype(pt2_writer *w, const pt2_cell *like, const char **id) {
  return pt2_emit(w, OP_TO_DTYPE,
                  json_pack("{s:o, s:{s:s}}", "self", pt2_ref(*id), "dtype", "dtype",
                            rule_dtype_name(like->dtype)),
                  pt2_outputs(like), "to", id, NULL);
}

/* The contents of `self` after `src` was copied into it. */
static iso_code copied(pt2_writer *w, const pt2_cell *self, const pt2_cell *src, const char **id) {
  *id = src->id;
  pt2_cell cast = *src;
  cast.dtype = self->dtype;
  iso_code code = src->dtype != self->dtype ? to_dtype(w, &cast, id) : ISO_OK;
  if (code == ISO_OK && !rule_shape_eq(&src->shape, &self->shape))
    code = pt2_emit(w, OP_EXPAND,
                    json_pack("{s:o, s:o}", "self", pt2_ref(*id), "size", sizes(&self->shape)),
                    pt2_outputs(self), "expand", id, NULL);
  return code;
}

/* The operator that returns the value that the in-place one writes. Returns: NULL where there is
 * none. */
static const rule_schema *counterpart(pt2_writer *w, const char *name, const char *overload) {
  const char *op = *overload != '\0' ? iso_arena_printf(w->arena, "aten::%s.%s", name, overload)
                                     : iso_arena_printf(w->arena, "aten::%s", name);
  const rule_schema *s = op != NULL ? rule_schemas_find(w->schemas, op) : NULL;
  return s != NULL && !s->writes && s->n_returns == 1 && s->n_args > 0 &&
                 strcmp(s->arg[0].name, "self") == 0
             ? s
             : NULL;
}

iso_code pt2_in_place(pt2_writer *w, const pt2_named *op, json_t *kwargs, pt2_cell *const *args,
                      size_t n_args, pt2_cell *self) {
  char base[80];
  const char *id = NULL;
  const char *name = op->name, *overload = op->overload;
  const size_t n = strlen(name);
  if (kwargs == NULL) return pt2_no_memory(w);
  const bool fits = n > 0 && n < sizeof base;
  snprintf(base, sizeof base, "%.*s", fits ? (int)n - 1 : 0, name);
  if (!fits || line_of(base)->in_place == RULE_IN_PLACE_CHANGES_SHAPE) {
    json_decref(kwargs);
    return iso_fail(
        w->err, ISO_UNSUPPORTED,
        "the program calls aten::%.80s, which changes a tensor's memory; a capture cannot hold it",
        name);
  }
  /* operator: these two have no plain form with their name and arguments. */
  if (strcmp(base, "copy") == 0 && n_args == 2) {
    json_decref(kwargs);
    iso_code code = copied(w, self, args[1], &id);
    return code == ISO_OK ? pt2_write(w, self, id) : code;
  }
  const bool zero = strcmp(base, "zero") == 0;
  const rule_schema *s = zero ? counterpart(w, "zeros_like", "") : counterpart(w, base, overload);
  pt2_cell result = *self;
  if (s == NULL || !promoted(base, args, n_args, self, &result.dtype)) {
    json_decref(kwargs);
    return iso_fail(w->err, ISO_UNSUPPORTED,
                    "aten::%.80s%s%.40s writes in place and has no functional counterpart", name,
                    *overload ? "." : "", overload);
  }
  iso_code code = pt2_emit(w, s->name, kwargs, pt2_outputs(&result), op->hint, &id, NULL);
  if (code == ISO_OK && result.dtype != self->dtype) code = to_dtype(w, self, &id);
  return code == ISO_OK ? pt2_write(w, self, id) : code;
}
