/* Arguments that are one thing in several spellings: sizes of which one is left open, dimensions
 * and indices counted from the end, slices without a bound. A term has the one spelling in which
 * all are written out. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "capture/capture_int.h"
#include "rules/operators.h"

/* The node in whose shape a call's dimensions count: the first tensor, or the one of highest rank
 * for the few operators that broadcast first. NULL where no argument is a tensor. */
static const cap_node *counted_in(const cap_lowering *l, const char *op,
                                  const rule_term *const *child, size_t n) {
  const bool all = rule_operator_of(op)->dims == RULE_DIMS_WIDEST;
  const cap_node *found = NULL;
  for (size_t i = 0; i < n; i++) {
    const rule_term *t = child[i];
    if (t->kind == RULE_LIST && t->n > 0) t = t->child[0];
    if (t->kind != RULE_VAR) continue;
    const cap_node *x = &l->node[t->u.i];
    if (!all) return x;
    if (found == NULL || x->output[0].shape.rank > found->output[0].shape.rank) found = x;
  }
  return found;
}

/* Whether negative dimensions of `op` are known to count from the end. In other namespaces `dim`
 * can be anything, say a head's size; gradients' first tensor may be of another rank. */
static bool has_dims(const char *op) {
  if (rule_is_collective(op)) return true;
  return rule_is_aten(op) && strstr(op, "backward") == NULL &&
         rule_operator_of(op)->dims != RULE_DIMS_UNTOLD;
}

static const rule_term *wrap_dim(iso_arena *a, const rule_term *t, uint32_t rank) {
  if (t->kind == RULE_INT && t->u.i < 0 && t->u.i + (int64_t)rank >= 0)
    return rule_int(a, t->u.i + (int64_t)rank);
  if (t->kind != RULE_LIST) return t;
  const rule_term **child = iso_arena_alloc(a, (t->n + 1) * sizeof(const rule_term *));
  if (child == NULL) return NULL;
  for (uint32_t i = 0; i < t->n; i++)
    child[i] = t->child[i]->kind == RULE_INT ? wrap_dim(a, t->child[i], rank) : t->child[i];
  return rule_list(a, child, t->n);
}

/* Whether nothing of an operand is joined, at any size: a cache that is empty yet. */
static bool is_empty(const cap_lowering *l, const rule_term *t) {
  const cap_node *n = t->kind == RULE_VAR ? &l->node[t->u.i] : NULL;
  return n != NULL && n->n_outputs > 0 && n->output[0].shape.rank == 1 &&
         n->output[0].shape.dim[0] == 0 &&
         (n->dim == NULL || (n->dim[0]->kind == RULE_INT && n->dim[0]->u.i == 0));
}

/* Drops operands that an operator leaves out, where others say the result's dtype. */
static iso_code drop_empty(const cap_lowering *l, const cap_node *node, const rule_schema *s,
                           const rule_term **child, iso_error *err) {
  const rule_term *all = s->n_args ? child[0] : NULL;
  if (!rule_operator_of(s->name)->skips_empty || all->kind != RULE_LIST) return ISO_OK;
  const rule_term **kept = cap_new_list(l, all->n);
  if (kept == NULL) return cap_no_memory(err);
  uint32_t n = 0;
  bool typed = false;
  for (uint32_t i = 0; i < all->n; i++) {
    const rule_term *t = all->child[i];
    if (is_empty(l, t)) continue;
    typed |= t->kind == RULE_VAR && l->node[t->u.i].n_outputs > 0 && node->n_outputs > 0 &&
             l->node[t->u.i].output[0].dtype == node->output[0].dtype;
    kept[n++] = t;
  }
  return n == all->n || !typed ? ISO_OK : cap_given(rule_list(l->arena, kept, n), &child[0], err);
}

static iso_code wrap_dims(const cap_lowering *l, const rule_schema *s, const rule_shape *shape,
                          const rule_term **child, iso_error *err) {
  if (!has_dims(s->name) || shape == NULL) return ISO_OK;
  uint32_t rank = shape->rank + (rule_operator_of(s->name)->dims == RULE_DIMS_RESULT ? 1 : 0);
  if (rank == 0) rank = 1; /* a scalar's one dimension may be called 0 or -1 */
  for (size_t i = 0; i < s->n_args; i++) {
    if (!rule_arg_is_dim(&s->arg[i])) continue;
    if ((child[i] = wrap_dim(l->arena, child[i], rank)) == NULL) return cap_no_memory(err);
  }
  return ISO_OK;
}

/* The sizes asked for must be the output's; -1 ("the remaining size", "unchanged") is replaced by
 * the output's. */
static iso_code fill_sizes(const cap_lowering *l, const cap_node *node, const rule_schema *s,
                           const rule_term **child, iso_error *err) {
  if (!rule_operator_of(s->name)->sizes) return ISO_OK;
  size_t k = cap_find_arg(s, "size");
  if (k == CAP_NO_INDEX) k = cap_find_arg(s, "shape");
  if (k == CAP_NO_INDEX || child[k]->kind != RULE_LIST) return ISO_OK; /* view.dtype */
  const rule_shape *o = &node->output[0].shape;
  const rule_term *size = child[k], **fresh = cap_new_list(l, size->n);
  if (fresh == NULL) return cap_no_memory(err);
  if (size->n != o->rank)
    return iso_fail(err, ISO_FORMAT, "asks for %" PRIu32 " dimensions, its output has %" PRIu32,
                    size->n, o->rank);
  for (uint32_t i = 0; i < size->n; i++) {
    int64_t want = size->child[i]->u.i;
    if (want != -1 && want != o->dim[i])
      return iso_fail(err, ISO_FORMAT,
                      "asks for size %" PRId64 " at dimension %" PRIu32 ", its output has %" PRId64,
                      want, i, o->dim[i]);
    if ((fresh[i] = rule_int(l->arena, o->dim[i])) == NULL) return cap_no_memory(err);
  }
  return cap_given(rule_list(l->arena, fresh, size->n), &child[k], err);
}

/* Requires: the dimension is wrapped. Returns: false where the call is not of that form. */
static bool size_at(const rule_schema *s, const rule_shape *shape, const rule_term *const *child,
                    int64_t *out) {
  size_t k = cap_find_arg(s, "dim");
  if (k == CAP_NO_INDEX || shape == NULL || child[k]->kind != RULE_INT) return false;
  int64_t dim = child[k]->u.i;
  if (dim < 0 || dim >= (int64_t)shape->rank) return false;
  *out = shape->dim[dim];
  return true;
}

static int64_t bound_of(const rule_term *t, int64_t none, int64_t size) {
  int64_t i = t->kind == RULE_INT ? t->u.i : none;
  if (i < 0) i += size;
  return i < 0 ? 0 : i > size ? size : i;
}

static iso_code close_slice(const cap_lowering *l, const rule_schema *s, const rule_shape *shape,
                            const rule_term **child, iso_error *err) {
  int64_t size;
  if (rule_operator_of(s->name)->placed != RULE_PLACED_RANGE || !size_at(s, shape, child, &size))
    return ISO_OK;
  size_t b = cap_find_arg(s, "start"), e = cap_find_arg(s, "end");
  if (b == CAP_NO_INDEX || e == CAP_NO_INDEX) return ISO_OK;
  int64_t begin = bound_of(child[b], 0, size), end = bound_of(child[e], size, size);
  if (end < begin) end = begin;
  child[b] = rule_int(l->arena, begin);
  child[e] = rule_int(l->arena, end);
  return child[b] != NULL && child[e] != NULL ? ISO_OK : cap_no_memory(err);
}

static iso_code wrap_index(const cap_lowering *l, const rule_schema *s, const rule_shape *shape,
                           const rule_term **child, iso_error *err) {
  int64_t size;
  if (rule_operator_of(s->name)->placed != RULE_PLACED_INDEX || !size_at(s, shape, child, &size))
    return ISO_OK;
  size_t k = cap_find_arg(s, "index");
  if (k == CAP_NO_INDEX || child[k]->kind != RULE_INT || child[k]->u.i >= 0 ||
      child[k]->u.i + size < 0)
    return ISO_OK;
  return cap_given(rule_int(l->arena, child[k]->u.i + size), &child[k], err);
}

iso_code cap_one_spelling(const cap_lowering *l, const cap_node *node, const rule_schema *s,
                          const rule_term **child, iso_error *err) {
  iso_code code = drop_empty(l, node, s, child, err);
  if (code != ISO_OK) return code;
  const cap_node *in = counted_in(l, s->name, child, s->n_args);
  const rule_shape *shape = in != NULL ? &in->output[0].shape : NULL;
  if ((code = wrap_dims(l, s, shape, child, err)) != ISO_OK) return code;
  if ((code = fill_sizes(l, node, s, child, err)) != ISO_OK) return code;
  if ((code = close_slice(l, s, shape, child, err)) != ISO_OK) return code;
  return wrap_index(l, s, shape, child, err);
}

/* ---- the same, of sizes as they are written ---- */

/* `op` of a place and the size that it lies in. */
static iso_code placed(const cap_lowering *l, const char *op, const rule_term *size,
                       const rule_term **place, iso_error *err) {
  const rule_term *of[2] = {*place, size};
  return cap_given(rule_expr(l->arena, op, of, 2), place, err);
}

/* -1 among the sizes asked for is the output's. */
static iso_code take_sizes(const cap_lowering *l, const cap_node *node, const rule_schema *s,
                           const rule_term **child, iso_error *err) {
  if (!rule_operator_of(s->name)->sizes) return ISO_OK;
  size_t k = cap_find_arg(s, "size");
  if (k == CAP_NO_INDEX) k = cap_find_arg(s, "shape");
  if (k == CAP_NO_INDEX || child[k]->kind != RULE_LIST) return ISO_OK;
  const rule_term *size = child[k], **fresh = cap_new_list(l, size->n);
  if (fresh == NULL) return cap_no_memory(err);
  for (uint32_t i = 0; i < size->n; i++) {
    const bool left = size->child[i]->kind == RULE_INT && size->child[i]->u.i == -1;
    fresh[i] = left ? node->dim[i] : size->child[i];
  }
  return cap_given(rule_list(l->arena, fresh, size->n), &child[k], err);
}

static iso_code place_slice(const cap_lowering *l, const rule_schema *s, const rule_term *size,
                            const rule_term **child, iso_error *err) {
  const size_t b = cap_find_arg(s, "start"), e = cap_find_arg(s, "end");
  if (b == CAP_NO_INDEX || e == CAP_NO_INDEX) return ISO_OK;
  if (child[b]->kind == RULE_NONE) child[b] = rule_int(l->arena, 0);
  iso_code code = child[b] != NULL ? placed(l, "bound", size, &child[b], err) : cap_no_memory(err);
  if (child[e]->kind == RULE_NONE) child[e] = size;
  else if (code == ISO_OK) code = placed(l, "bound", size, &child[e], err);
  return code == ISO_OK ? placed(l, "max", child[b], &child[e], err) : code;
}

iso_code cap_one_spelling_sized(const cap_lowering *l, const cap_node *node, const rule_schema *s,
                                const rule_term **child, iso_error *err) {
  iso_code code = drop_empty(l, node, s, child, err);
  if (code != ISO_OK) return code;
  const cap_node *in = counted_in(l, s->name, child, s->n_args);
  const rule_shape *shape = in != NULL ? &in->output[0].shape : NULL;
  const rule_placed where = rule_operator_of(s->name)->placed;
  int64_t size;
  if ((code = wrap_dims(l, s, shape, child, err)) != ISO_OK) return code;
  if ((code = take_sizes(l, node, s, child, err)) != ISO_OK) return code;
  const size_t dim = cap_find_arg(s, "dim"), k = cap_find_arg(s, "index");
  if (!size_at(s, shape, child, &size)) return ISO_OK;
  const rule_term *written = in->dim[child[dim]->u.i];
  if (where == RULE_PLACED_RANGE) return place_slice(l, s, written, child, err);
  if (where == RULE_PLACED_INDEX && k != CAP_NO_INDEX && child[k]->kind != RULE_VAR)
    return placed(l, "wrap", written, &child[k], err);
  return ISO_OK;
}
