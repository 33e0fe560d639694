/* Relations by value: terms with their shapes (synth/relate/relation.c has the whole). */
#include <stdlib.h>

#include "synth/relate/relation_int.h"
#include "rules/names.h"

static rel_made make_call(search *s, const char *op, const rule_term *const *arg, size_t n,
                          const rule_shape *shape) {
  rel_made m = {.shape = *shape};
  for (size_t i = 0; i < n; i++)
    if (!arg[i]) rel_no_memory(s);
  if (s->code == ISO_OK) s->code = rule_call(s->arena, s->x->schemas, op, arg, n, &m.term, s->err);
  return m;
}

static const rule_term *make_ints(search *s, const int64_t *v, uint32_t n) {
  const rule_term *e[RULE_MAX_RANK];
  for (uint32_t i = 0; i < n; i++) e[i] = rule_int(s->arena, v[i]);
  return rule_list(s->arena, e, n);
}

rel_made rel_source(search *s, uint32_t i) {
  rel_made m = {.term = rule_var(s->arena, i), .shape = s->x->source[i]->shape};
  if (!m.term) rel_no_memory(s);
  return m;
}

rel_made rel_slice(search *s, rel_made a, uint32_t d, int64_t from, int64_t to) {
  if (from == 0 && to == a.shape.dim[d]) return a;
  const rule_term *arg[5] = {a.term, rule_int(s->arena, d), rule_int(s->arena, from),
                             rule_int(s->arena, to), rule_int(s->arena, 1)};
  a.shape.dim[d] = to - from;
  return make_call(s, OP_SLICE_TENSOR, arg, 5, &a.shape);
}

rel_made rel_transpose(search *s, rel_made a) {
  const rule_term *arg[3] = {a.term, rule_int(s->arena, 0), rule_int(s->arena, 1)};
  rule_shape shape = view_shape2(a.shape.dim[1], a.shape.dim[0]);
  return make_call(s, OP_TRANSPOSE_INT, arg, 3, &shape);
}

/* Is `to` the shape `from` with a size 1 put in? Returns where, or -1. */
static int inserted_one(const rule_shape *from, const rule_shape *to) {
  if (to->rank != from->rank + 1) return -1;
  uint32_t d = 0;
  while (d < from->rank && from->dim[d] == to->dim[d]) d++;
  if (to->dim[d] != 1) return -1;
  for (uint32_t k = d; k < from->rank; k++)
    if (from->dim[k] != to->dim[k + 1]) return -1;
  while (d > 0 && to->dim[d - 1] == 1) d--;
  return (int)d;
}

rel_made rel_reshape(search *s, rel_made a, const rule_shape *shape) {
  if (rule_shape_eq(&a.shape, shape)) return a;
  int d = inserted_one(&a.shape, shape);
  const rule_term *arg[2] = {a.term, d >= 0 ? rule_int(s->arena, d)
                                            : make_ints(s, shape->dim, shape->rank)};
  return make_call(s, d >= 0 ? OP_UNSQUEEZE : OP_RESHAPE, arg, 2, shape);
}

rel_made rel_permute(search *s, rel_made a, const uint32_t *perm) {
  int64_t p[RULE_MAX_RANK];
  rule_shape shape = a.shape;
  for (uint32_t d = 0; d < shape.rank; d++) {
    p[d] = perm[d];
    shape.dim[d] = a.shape.dim[perm[d]];
  }
  const rule_term *arg[2] = {a.term, make_ints(s, p, shape.rank)};
  return make_call(s, OP_PERMUTE, arg, 2, &shape);
}

rel_made rel_cat(search *s, const rel_made *part, size_t n, uint32_t d) {
  if (n == 1) return part[0];
  const rule_term **list = calloc(n, sizeof *list);
  rule_shape shape = part[0].shape;
  shape.dim[d] = 0;
  if (!list) {
    rel_no_memory(s);
    return (rel_made){.shape = shape};
  }
  for (size_t i = 0; i < n; i++) {
    list[i] = part[i].term;
    shape.dim[d] += part[i].shape.dim[d];
  }
  const rule_term *arg[2] = {rule_list(s->arena, list, n), rule_int(s->arena, d)};
  free(list);
  return make_call(s, OP_CAT, arg, 2, &shape);
}

bool rel_finish(search *s, rel_made m, bool tied, synth_relation *out) {
  if (s->code != ISO_OK) return false;
  ISO_CHECK(rule_shape_eq(&m.shape, &s->t->shape));
  *out = (synth_relation){.term = m.term, .tied = tied};
  return true;
}

rule_shape rel_shape_split(const rule_shape *s, uint32_t d, const int64_t *factor, uint32_t n) {
  rule_shape r = {.rank = s->rank + n - 1};
  for (uint32_t k = 0; k < d; k++) r.dim[k] = s->dim[k];
  for (uint32_t k = 0; k < n; k++) r.dim[d + k] = factor[k];
  for (uint32_t k = d + 1; k < s->rank; k++) r.dim[k + n - 1] = s->dim[k];
  return r;
}
