/* Tensors with names, relations sought between them, and an evaluator that knows the seven layout
 * operators and nothing else. */
#ifndef TESTS_SYNTH_RELATION_WORLD_H
#define TESTS_SYNTH_RELATION_WORLD_H

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "egraph/base/rng.h"
#include "synth/synth.h"
#include "tests/support/shapes.h"

enum { MAX_SOURCES = 24 };

/* ---- a small world of tensors ---- */

typedef struct world {
  rule_tensor *src[MAX_SOURCES];
  const char *name[MAX_SOURCES];
  size_t n;
  iso_rng rng;
  iso_arena arena;
  rule_schemas *schemas;
  synth_index *index;
  synth_relation got;
} world;

static inline rule_tensor *make(rule_dtype dtype, rule_shape shape) {
  rule_tensor *t;
  iso_error err;
  ck_assert_msg(rule_tensor_new(dtype, &shape, &t, &err) == ISO_OK, "%s", err.msg);
  return t;
}

/* Random bit patterns: of floats, NaNs and zeros of both signs among them. */
static inline rule_tensor *noise(world *w, rule_dtype dtype, rule_shape shape) {
  rule_tensor *t = make(dtype, shape);
  size_t bytes = (size_t)t->numel * rule_dtype_size(dtype);
  for (size_t i = 0; i < bytes; i++)
    ((unsigned char *)t->data)[i] = (unsigned char)iso_rng_below(&w->rng, 256);
  return t;
}

static inline rule_tensor *filled(rule_shape shape, double v) {
  rule_tensor *t = make(RULE_F32, shape);
  for (int64_t i = 0; i < t->numel; i++) rule_tensor_set(t, i, v);
  return t;
}

static inline void setup(world *w, uint64_t seed) {
  *w = (world){.rng = iso_rng_new(seed, 1)};
  iso_arena_init(&w->arena);
  ck_assert(rule_schemas_new(&w->schemas, NULL) == ISO_OK);
}

static inline void teardown(world *w) {
  synth_index_free(w->index);
  for (size_t i = 0; i < w->n; i++) rule_tensor_unref(w->src[i]);
  rule_schemas_free(w->schemas);
  iso_arena_fini(&w->arena);
}

static inline uint32_t add(world *w, const char *name, rule_tensor *t) {
  ck_assert(w->n < MAX_SOURCES && !w->index);
  w->src[w->n] = t;
  w->name[w->n] = name;
  return (uint32_t)w->n++;
}

/* ---- layout operators ---- */

static inline const unsigned char *at(const rule_tensor *t, int64_t i) {
  return (const unsigned char *)t->data + (size_t)i * rule_dtype_size(t->dtype);
}
static inline void put(rule_tensor *t, int64_t i, const unsigned char *p) {
  memcpy((unsigned char *)t->data + (size_t)i * rule_dtype_size(t->dtype), p,
         rule_dtype_size(t->dtype));
}

static inline void index_of(const rule_shape *s, int64_t i, int64_t *at_dim) {
  for (uint32_t d = s->rank; d-- > 0;) {
    at_dim[d] = i % s->dim[d];
    i /= s->dim[d];
  }
}
static inline int64_t flat_of(const rule_shape *s, const int64_t *at_dim) {
  int64_t i = 0;
  for (uint32_t d = 0; d < s->rank; d++) i = i * s->dim[d] + at_dim[d];
  return i;
}

static inline rule_tensor *op_permute(const rule_tensor *x, const int64_t *perm) {
  rule_shape s = x->shape;
  for (uint32_t d = 0; d < s.rank; d++) s.dim[d] = x->shape.dim[perm[d]];
  rule_tensor *r = make(x->dtype, s);
  for (int64_t i = 0; i < r->numel; i++) {
    int64_t a[RULE_MAX_RANK], b[RULE_MAX_RANK];
    index_of(&s, i, a);
    for (uint32_t d = 0; d < s.rank; d++) b[perm[d]] = a[d];
    put(r, i, at(x, flat_of(&x->shape, b)));
  }
  return r;
}

static inline rule_tensor *op_slice(const rule_tensor *x, uint32_t dim, int64_t from, int64_t to) {
  rule_shape s = x->shape;
  ck_assert(dim < s.rank && 0 <= from && from < to && to <= s.dim[dim]);
  s.dim[dim] = to - from;
  rule_tensor *r = make(x->dtype, s);
  for (int64_t i = 0; i < r->numel; i++) {
    int64_t a[RULE_MAX_RANK];
    index_of(&s, i, a);
    a[dim] += from;
    put(r, i, at(x, flat_of(&x->shape, a)));
  }
  return r;
}

static inline rule_tensor *op_reshape(const rule_tensor *x, rule_shape s) {
  rule_tensor *r = make(x->dtype, s);
  ck_assert_int_eq(r->numel, x->numel);
  memcpy(r->data, x->data, (size_t)x->numel * rule_dtype_size(x->dtype));
  return r;
}

static inline rule_tensor *op_cat(rule_tensor *const *x, size_t n, uint32_t dim) {
  rule_shape s = x[0]->shape;
  s.dim[dim] = 0;
  for (size_t k = 0; k < n; k++) {
    ck_assert_uint_eq(x[k]->shape.rank, s.rank);
    for (uint32_t d = 0; d < s.rank; d++) ck_assert(d == dim || x[k]->shape.dim[d] == s.dim[d]);
    s.dim[dim] += x[k]->shape.dim[dim];
  }
  rule_tensor *r = make(x[0]->dtype, s);
  int64_t base = 0;
  for (size_t k = 0; k < n; base += x[k++]->shape.dim[dim])
    for (int64_t i = 0; i < x[k]->numel; i++) {
      int64_t a[RULE_MAX_RANK];
      index_of(&x[k]->shape, i, a);
      a[dim] += base;
      put(r, flat_of(&s, a), at(x[k], i));
    }
  return r;
}

static inline int64_t int_of(const rule_term *t) {
  ck_assert_int_eq(t->kind, RULE_INT);
  return t->u.i;
}

static inline rule_shape ints_of(const rule_term *t) {
  rule_shape s = {.rank = t->n};
  ck_assert(t->kind == RULE_LIST && t->n <= RULE_MAX_RANK);
  for (uint32_t i = 0; i < t->n; i++) s.dim[i] = int_of(t->child[i]);
  return s;
}

static inline rule_tensor *evaluate(const world *w, const rule_term *t) {
  if (t->kind == RULE_VAR) return rule_tensor_ref(w->src[t->u.i]);
  ck_assert_int_eq(t->kind, RULE_OP);
  if (!strcmp(t->u.s, "aten::cat")) {
    rule_tensor *x[512], *r;
    uint32_t n = t->child[0]->n;
    ck_assert(t->child[0]->kind == RULE_LIST && n >= 2 && n <= 512);
    for (uint32_t i = 0; i < n; i++) x[i] = evaluate(w, t->child[0]->child[i]);
    r = op_cat(x, n, (uint32_t)int_of(t->child[1]));
    for (uint32_t i = 0; i < n; i++) rule_tensor_unref(x[i]);
    return r;
  }
  rule_tensor *x = evaluate(w, t->child[0]), *r = NULL;
  if (!strcmp(t->u.s, "aten::transpose.int")) {
    ck_assert(x->shape.rank == 2 && int_of(t->child[1]) == 0 && int_of(t->child[2]) == 1);
    r = op_permute(x, (int64_t[]){1, 0});
  } else if (!strcmp(t->u.s, "aten::permute")) {
    rule_shape p = ints_of(t->child[1]);
    ck_assert_uint_eq(p.rank, x->shape.rank);
    r = op_permute(x, p.dim);
  } else if (!strcmp(t->u.s, "aten::reshape")) {
    r = op_reshape(x, ints_of(t->child[1]));
  } else if (!strcmp(t->u.s, "aten::unsqueeze")) {
    rule_shape s = {.rank = x->shape.rank + 1};
    int64_t d = int_of(t->child[1]);
    for (uint32_t k = 0, j = 0; k < s.rank; k++) s.dim[k] = k == d ? 1 : x->shape.dim[j++];
    r = op_reshape(x, s);
  } else if (!strcmp(t->u.s, "aten::slice.Tensor")) {
    ck_assert(t->n == 5 && int_of(t->child[4]) == 1);
    r = op_slice(x, (uint32_t)int_of(t->child[1]), int_of(t->child[2]), int_of(t->child[3]));
  }
  ck_assert_msg(r != NULL, "unexpected operator %s", t->u.s);
  rule_tensor_unref(x);
  return r;
}

/* Relates, and checks any relation found. */
static inline bool relate(world *w, const rule_tensor *t, const char *name) {
  iso_error err = {0};
  if (!w->index)
    ck_assert(synth_index_new(w->src, w->name, w->n, w->schemas, &w->index, &err) == ISO_OK);
  ck_assert_msg(synth_relate(w->index, t, name, &w->arena, &w->got, &err) == ISO_OK, "%s", err.msg);
  if (!w->got.term) return false;
  rule_tensor *r = evaluate(w, w->got.term);
  ck_assert_msg(rule_tensor_same(r, t), "the term does not evaluate to the target");
  rule_tensor_unref(r);
  return true;
}

static inline size_t count_ops(const rule_term *t, const char *op) {
  size_t n = t->kind == RULE_OP && (!op || !strcmp(t->u.s, op));
  for (uint32_t i = 0; i < t->n; i++) n += count_ops(t->child[i], op);
  return n;
}

static inline bool mentions(const rule_term *t, int64_t var) {
  if (t->kind == RULE_VAR && t->u.i == var) return true;
  for (uint32_t i = 0; i < t->n; i++)
    if (mentions(t->child[i], var)) return true;
  return false;
}

static inline bool is_var(const rule_term *t, int64_t var) {
  return t->kind == RULE_VAR && t->u.i == var;
}

/* Found, with `ops` operators in all (0: any number); frees the target. */
static inline void expect(world *w, rule_tensor *t, const char *name, size_t ops) {
  ck_assert_msg(relate(w, t, name), "no relation");
  if (ops) ck_assert_uint_eq(count_ops(w->got.term, NULL), ops);
  rule_tensor_unref(t);
}

static inline void expect_none(world *w, rule_tensor *t) {
  ck_assert(!relate(w, t, NULL));
  rule_tensor_unref(t);
}

static inline rule_tensor *turned(const rule_tensor *x) { return op_permute(x, (int64_t[]){1, 0}); }

/* Apply `f` to a temporary and drop it. */
static inline rule_tensor *after_reshape(rule_tensor *x, rule_shape s) {
  rule_tensor *r = op_reshape(x, s);
  rule_tensor_unref(x);
  return r;
}
static inline rule_tensor *after_permute(rule_tensor *x, const int64_t *p) {
  rule_tensor *r = op_permute(x, p);
  rule_tensor_unref(x);
  return r;
}
static inline rule_tensor *after_slice(rule_tensor *x, uint32_t d, int64_t a, int64_t b) {
  rule_tensor *r = op_slice(x, d, a, b);
  rule_tensor_unref(x);
  return r;
}
static inline rule_tensor *after_cat(rule_tensor **x, size_t n, uint32_t d) {
  rule_tensor *r = op_cat(x, n, d);
  for (size_t i = 0; i < n; i++) rule_tensor_unref(x[i]);
  return r;
}

#endif
