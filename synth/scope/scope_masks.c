/* Masks that are read as minus infinity stay masks at other sizes only where each row of each
 * softmax keeps an element there, too. A stronger and simpler property is shown: no mask ever hides
 * the diagonal of its last two dimensions, which are of one size.
 *
 * Of a constant mask M the oracle proves that M is itself with zeros on the diagonal, of a choice
 * by a condition that the condition is itself with the diagonal left out. Where masks go from there
 * they keep their places (sums, casts, expansions), and end in a softmax of the last dimension or
 * in an attention's mask. A mask of any other form keeps the verdict at the captured sizes. */
#include <stdlib.h>
#include <string.h>

#include "rules/operators.h"
#include "synth/joint/joint.h"
#include "synth/scope/scope_int.h"

static const rule_term *default_call(scoping *z, const char *op, const rule_term *const *arg,
                                     size_t n) {
  const rule_term *t = NULL;
  iso_error ignored;
  return rule_call(&z->s->arena, z->s->schemas, op, arg, n, &t, &ignored) ? NULL : t;
}

/* A call of ours with its leading arguments, as a term. Returns: NULL without memory or room. */
static const rule_term *add(scoping *z, const char *op, const rule_term *a, const rule_term *b,
                            const rule_term *c) {
  const rule_term *arg[3] = {a, b, c};
  const rule_term *call = a ? default_call(z, op, arg, c ? 3 : b ? 2 : 1) : NULL;
  if (!call || z->n_spare == SCOPE_SPARE) return NULL;
  const uint32_t t = (uint32_t)(z->n_terms - SCOPE_SPARE + z->n_spare++);
  z->call[t] = z->sized[t] = call;
  return rule_var(&z->s->arena, t);
}

/* operator: how the question is written. Truth values: whether a place is on the diagonal of a
 * square of this size. */
static const rule_term *diagonal(scoping *z, const rule_term *size) {
  const rule_term *column = add(z, "aten::arange", size, NULL, NULL);
  const rule_term *row =
      column ? add(z, "aten::unsqueeze", column, rule_int(&z->s->arena, 1), NULL) : NULL;
  return row ? add(z, "aten::eq.Tensor", row, column, NULL) : NULL;
}

/* The size of the last two dimensions. Returns: NULL where they are not one. */
static const rule_term *square(scoping *z, uint32_t t) {
  const scope_dims *d = scope_dims_of(z, t);
  if (!d || d->rank < 2 || !size_equal(&d->of[d->rank - 1], &d->of[d->rank - 2])) return NULL;
  return size_term(&z->space, &d->of[d->rank - 1]);
}

/* operator: how the question is written. Whether `t` is unchanged when `op` leaves its diagonal
 * out. */
static iso_code keeps(scoping *z, uint32_t t, bool number, bool complement, bool *yes) {
  iso_arena *a = &z->s->arena;
  const uint32_t spare = z->n_spare;
  const rule_term *size = square(z, t), *self = rule_var(a, t), *out = NULL;
  const rule_term *on = size ? diagonal(z, size) : NULL;
  *yes = false;
  if (!size) return ISO_OK;
  if (on && number) out = add(z, "aten::where.ScalarSelf", on, rule_float(a, 0), self);
  else if (on && complement) out = add(z, "aten::logical_or", self, on, NULL);
  else if (on)
    out = add(z, "aten::logical_and", self, add(z, "aten::logical_not", on, NULL, NULL), NULL);
  iso_code c = out ? scope_prove(z, (uint32_t)out->u.i, t, NULL, 0, yes) : scope_no_memory(z);
  z->n_spare = spare;
  return c;
}

/* The same of any term that is equal, those first that the certificate made. */
static iso_code some_keeps(scoping *z, uint32_t t, bool number, bool complement, bool *yes) {
  const uint32_t root = scope_root(z, t), n = (uint32_t)z->n_terms - SCOPE_SPARE;
  iso_code c = ISO_OK;
  *yes = false;
  for (uint32_t i = n; i-- > 0 && !c && !*yes;)
    if (scope_root(z, i) == root && !z->captured[i] && z->sized[i])
      c = keeps(z, i, number, complement, yes);
  return c || *yes ? c : keeps(z, t, number, complement, yes);
}

typedef struct side_masks {
  scoping *z;
  int side;
  uint32_t first; /* its nodes' first term */
  uint8_t *shown; /* by node: 1: the diagonal is kept, 2: it is not shown */
} side_masks;

static bool constant(const side_masks *m, size_t i) {
  const eg_node e = m->z->s->map[m->side][i];
  return e.i != EG_NONE && m->z->s->rec[e.i].konst;
}

/* operator: where the condition stands, and which of its sides is the mask. Whether the node writes
 * masks itself, where a condition says so. Returns: the condition, and its sense. */
static bool chooses(const rule_term *call, uint32_t *condition, bool *complement) {
  const bool fill = strcmp(call->u.s, "aten::masked_fill.Scalar") == 0,
             self = strcmp(call->u.s, "aten::where.ScalarSelf") == 0,
             other = strcmp(call->u.s, "aten::where.ScalarOther") == 0;
  const rule_term *c = fill ? call->child[1] : self || other ? call->child[0] : NULL;
  if (!c || c->kind != RULE_VAR) return false;
  *condition = (uint32_t)c->u.i;
  *complement = other;
  return true;
}

static iso_code carrier(side_masks *m, size_t i, bool *fine);

/* Every argument that has masks keeps its diagonal, and is as long in the last two dimensions. */
static iso_code arguments(side_masks *m, const rule_term *t, const rule_term *size, bool *fine) {
  iso_code c = ISO_OK;
  if (t->kind == RULE_VAR && st_masked(m->z->s, m->side, (size_t)t->u.i)) {
    const rule_term *own = square(m->z, m->first + (uint32_t)t->u.i);
    *fine &= own && size && scope_same_size(m->z, own, size);
    return *fine ? carrier(m, (size_t)t->u.i, fine) : ISO_OK;
  }
  for (uint32_t k = 0; k < t->n && !c && *fine; k++) c = arguments(m, t->child[k], size, fine);
  return c;
}

static iso_code carrier(side_masks *m, size_t i, bool *fine) {
  scoping *z = m->z;
  const uint32_t t = m->first + (uint32_t)i;
  const rule_term *given = z->s->constants.as_given[m->side][i].call,
                  *read = st_read_call(z->s, m->side, i, &z->s->arena);
  uint32_t condition;
  bool complement = false, kept = true;
  iso_code c = ISO_OK;
  if (m->shown[i]) return *fine &= m->shown[i] == 1, ISO_OK;
  if (st_mask_source(z->s, m->side, i) || !given || !read) kept = false;
  else if (constant(m, i)) c = some_keeps(z, t, true, false, &kept);
  else {
    const rule_term *size = square(z, t);
    if (read == given) kept = rule_keeps_places(given->u.s);
    else if (!chooses(given, &condition, &complement)) kept = false;
    else {
      const uint32_t by = m->first + condition;
      const rule_term *own = square(z, by);
      kept = own && size && scope_same_size(z, own, size);
      if (kept) c = some_keeps(z, by, false, complement, &kept);
    }
    if (!c && kept) c = arguments(m, given, size, &kept);
  }
  m->shown[i] = kept ? 1 : 2;
  *fine &= kept;
  return c;
}

/* Where masks vanish: everywhere, or in rows of the last dimension that keep an element. */
static bool ends(const side_masks *m, const rule_term *call) {
  const rule_mask_op *how = rule_mask_op_of(call->u.s);
  const synth_graph *g = m->z->s->graph[m->side];
  if (!how) return false;
  if (how->role == RULE_MASK_ALL) return true;
  if (how->role != RULE_MASK_ROWS && how->role != RULE_MASK_REDUCED) return false;
  const rule_term *dim = how->dim ? call->child[how->dim] : NULL;
  for (uint32_t k = 0; dim && k < call->n; k++) {
    const rule_term *x = call->child[k];
    if (x->kind != RULE_VAR || !st_masked(m->z->s, m->side, (size_t)x->u.i)) continue;
    const rule_term *d = dim->kind == RULE_LIST && dim->n == 1 ? dim->child[0] : dim;
    if (d->kind != RULE_INT || d->u.i != (int64_t)g->node[x->u.i].shape.rank - 1) return false;
  }
  return true;
}

static bool has_masks(const side_masks *m, const rule_term *t) {
  if (t->kind == RULE_VAR) return st_masked(m->z->s, m->side, (size_t)t->u.i);
  for (uint32_t k = 0; k < t->n; k++)
    if (has_masks(m, t->child[k])) return true;
  return false;
}

static bool any_square(side_masks *m, const rule_term *t, const rule_term **size) {
  if (t->kind == RULE_VAR && st_masked(m->z->s, m->side, (size_t)t->u.i))
    return (*size = square(m->z, m->first + (uint32_t)t->u.i)) != NULL;
  for (uint32_t k = 0; k < t->n; k++)
    if (any_square(m, t->child[k], size)) return true;
  return false;
}

iso_code scope_masks(scoping *z, bool *kept, const char **where) {
  iso_code c = ISO_OK;
  *kept = true;
  for (int side = 0; side < 2 && !c && *kept; side++) {
    const synth_graph *g = z->s->graph[side];
    side_masks m = {z, side, side ? (uint32_t)z->s->graph[LEFT]->n_nodes : 0,
                    calloc(g->n_nodes + 1, 1)};
    if (!m.shown) return scope_no_memory(z);
    for (size_t i = 0; i < g->n_nodes && !c && *kept; i++) {
      const synth_node *n = &g->node[i];
      const rule_term *size = NULL;
      if (n->kind != SYNTH_OP || st_masked(z->s, side, i) || !has_masks(&m, n->call)) continue;
      if (z->s->map[side][i].i == EG_NONE) continue; /* no output reads it */
      *kept = ends(&m, n->call) && any_square(&m, n->call, &size);
      if (*kept) c = arguments(&m, n->call, size, kept);
      if (!*kept) *where = n->id;
    }
    free(m.shown);
  }
  return c;
}
