/* A handful of operators in plain C, so that code built on operators can be tested without
 * libtorch. Arithmetic is of float64; layouts keep the dtype. */
#ifndef TESTS_SUPPORT_SMALL_OPERATORS_H
#define TESTS_SUPPORT_SMALL_OPERATORS_H

#include <check.h>
#include <math.h>
#include <string.h>

#include "rules/rules.h"
#include "tests/support/shapes.h"

enum { MAX_ARGS = 8 };

static inline rule_tensor *make_as(rule_dtype dtype, rule_shape shape) {
  rule_tensor *t;
  iso_error err;
  ck_assert_msg(rule_tensor_new(dtype, &shape, &t, &err) == ISO_OK, "%s", err.msg);
  return t;
}
static inline rule_tensor *make(rule_shape shape) { return make_as(RULE_F64, shape); }

/* Where element `i` of a tensor of shape `s` lies in one of shape `of`, sizes 1 and missing ones
 * repeated. */
static inline int64_t broadcast_at(const rule_shape *s, int64_t i, const rule_shape *of) {
  int64_t at = 0, step = 1;
  for (uint32_t d = 0; d < s->rank; d++) {
    const int64_t size = s->dim[s->rank - 1 - d], k = i % size;
    i /= size;
    if (d >= of->rank) continue;
    const int64_t own = of->dim[of->rank - 1 - d];
    if (own != 1) at += k * step;
    step *= own;
  }
  return at;
}

static inline bool broadcast(const rule_shape *a, const rule_shape *b, rule_shape *out) {
  out->rank = a->rank > b->rank ? a->rank : b->rank;
  for (uint32_t d = 0; d < out->rank; d++) {
    const int64_t x = d < a->rank ? a->dim[a->rank - 1 - d] : 1,
                  y = d < b->rank ? b->dim[b->rank - 1 - d] : 1;
    if (x != y && x != 1 && y != 1) return false;
    out->dim[out->rank - 1 - d] = x == 1 ? y : x;
  }
  return true;
}

static inline double number(const rule_term *t) {
  return t->kind == RULE_FLOAT ? t->u.f : (double)t->u.i;
}

/* A tensor argument; numbers stand for tensors without dimensions. Owns. */
static inline rule_tensor *operand(const rule_term *t, rule_tensor *const *bind) {
  if (t->kind == RULE_VAR) return rule_tensor_ref(bind[t->u.i]);
  ck_assert(t->kind == RULE_INT || t->kind == RULE_FLOAT);
  rule_tensor *r = make((rule_shape){0});
  rule_tensor_set(r, 0, number(t));
  return r;
}

static inline rule_tensor *pointwise(const rule_term *t, rule_tensor *const *bind) {
  const bool add = strcmp(t->u.s, "aten::add.Tensor") == 0,
             div = strcmp(t->u.s, "aten::div.Tensor") == 0;
  rule_tensor *x = operand(t->child[0], bind), *y = operand(t->child[1], bind), *r = NULL;
  const double alpha = add ? number(t->child[2]) : 1;
  rule_shape s = {0};
  if (broadcast(&x->shape, &y->shape, &s)) {
    r = make(s);
    for (int64_t i = 0; i < r->numel; i++) {
      const double a = rule_tensor_get(x, broadcast_at(&s, i, &x->shape)),
                   b = rule_tensor_get(y, broadcast_at(&s, i, &y->shape));
      rule_tensor_set(r, i, add ? a + alpha * b : div ? a / b : a * b);
    }
  }
  rule_tensor_unref(x);
  rule_tensor_unref(y);
  return r;
}

static inline rule_tensor *reshaped(const rule_tensor *x, rule_shape s) {
  int64_t n = 1;
  for (uint32_t d = 0; d < s.rank; d++) n *= s.dim[d];
  if (n != x->numel) return NULL;
  rule_tensor *r = make_as(x->dtype, s);
  for (int64_t i = 0; i < r->numel; i++) rule_tensor_set(r, i, rule_tensor_get(x, i));
  return r;
}

static inline rule_shape list_shape(const rule_term *t) {
  rule_shape s = {.rank = t->n};
  for (uint32_t d = 0; d < t->n; d++) s.dim[d] = t->child[d]->u.i;
  return s;
}

static inline rule_tensor *transposed(const rule_tensor *x, int64_t a, int64_t b) {
  const int64_t rank = x->shape.rank;
  if (a < 0) a += rank;
  if (b < 0) b += rank;
  if (a < 0 || b < 0 || a >= rank || b >= rank) return NULL;
  rule_shape s = x->shape;
  s.dim[a] = x->shape.dim[b];
  s.dim[b] = x->shape.dim[a];
  rule_tensor *r = make_as(x->dtype, s);
  for (int64_t i = 0; i < r->numel; i++) {
    int64_t at[RULE_MAX_RANK], rest = i, from = 0;
    for (int64_t d = rank; d-- > 0; rest /= s.dim[d]) at[d] = rest % s.dim[d];
    const int64_t swap = at[a];
    at[a] = at[b];
    at[b] = swap;
    for (int64_t d = 0; d < rank; d++) from = from * x->shape.dim[d] + at[d];
    rule_tensor_set(r, i, rule_tensor_get(x, from));
  }
  return r;
}

/* Elements from, from + step ... along dimension d, as many as `s` has there. */
static inline rule_tensor *strided(const rule_tensor *x, uint32_t d, int64_t from, int64_t step,
                                   rule_shape s) {
  rule_tensor *r = make_as(x->dtype, s);
  int64_t inner = 1;
  for (uint32_t k = d + 1; k < s.rank; k++) inner *= s.dim[k];
  for (int64_t i = 0; i < r->numel; i++) {
    const int64_t at = i / inner % s.dim[d], outer = i / inner / s.dim[d];
    const int64_t place = outer * x->shape.dim[d] + from + at * step;
    rule_tensor_set(r, i, rule_tensor_get(x, place * inner + i % inner));
  }
  return r;
}

/* slice(x, dim, start, end, step), with numbers that lie within the size. */
static inline rule_tensor *sliced(const rule_tensor *x, const rule_term *const *arg) {
  const uint32_t d = (uint32_t)arg[1]->u.i;
  const int64_t from = arg[2]->u.i, to = arg[3]->u.i, step = arg[4]->u.i;
  rule_shape s = x->shape;
  if (d >= s.rank || from < 0 || to > s.dim[d] || from > to || step < 1) return NULL;
  s.dim[d] = (to - from + step - 1) / step;
  return strided(x, d, from, step, s);
}

/* The sum over the first dimension, which it loses; NULL over others. */
static inline rule_tensor *summed(const rule_tensor *x, const rule_term *dims) {
  rule_shape s = {.rank = x->shape.rank - 1};
  if (dims->n != 1 || dims->child[0]->u.i != 0 || x->shape.rank == 0) return NULL;
  for (uint32_t d = 0; d < s.rank; d++) s.dim[d] = x->shape.dim[d + 1];
  rule_tensor *r = make(s);
  for (int64_t i = 0; i < x->numel; i++)
    rule_tensor_set(r, i % r->numel, rule_tensor_get(x, i) + rule_tensor_get(r, i % r->numel));
  return r;
}

static inline rule_tensor *joined(const rule_term *list, uint32_t d, rule_tensor *const *bind) {
  const rule_tensor *first = bind[list->child[0]->u.i];
  rule_shape s = first->shape;
  int64_t inner = 1, at = 0;
  if (d >= s.rank) return NULL;
  for (uint32_t k = d + 1; k < s.rank; k++) inner *= s.dim[k];
  s.dim[d] = 0;
  for (uint32_t p = 0; p < list->n; p++) s.dim[d] += bind[list->child[p]->u.i]->shape.dim[d];
  rule_tensor *r = make_as(first->dtype, s);
  for (uint32_t p = 0; p < list->n; p++) {
    const rule_tensor *part = bind[list->child[p]->u.i];
    const int64_t run = part->shape.dim[d] * inner;
    for (int64_t i = 0; i < part->numel; i++)
      rule_tensor_set(r, i / run * s.dim[d] * inner + at + i % run, rule_tensor_get(part, i));
    at += run;
  }
  return r;
}

/* The reduction of the ranks' tensors: sum, mean, largest or least. */
static inline rule_tensor *reduced(const rule_term *list, const char *how,
                                   rule_tensor *const *bind) {
  rule_tensor *r = reshaped(bind[list->child[0]->u.i], bind[list->child[0]->u.i]->shape);
  const bool mean = strcmp(how, "avg") == 0;
  for (int64_t i = 0; i < r->numel; i++) {
    double x = rule_tensor_get(r, i);
    for (uint32_t p = 1; p < list->n; p++) {
      const double y = rule_tensor_get(bind[list->child[p]->u.i], i);
      x = strcmp(how, "max") == 0 ? fmax(x, y) : strcmp(how, "min") == 0 ? fmin(x, y) : x + y;
    }
    rule_tensor_set(r, i, mean ? x / list->n : x);
  }
  return r;
}

/* Of one dimension. Equal numbers: by place upwards, and, descending, the last place first. */
static inline rule_tensor *places_in_order(const rule_tensor *x, bool descending) {
  rule_tensor *r = make_as(RULE_I64, x->shape);
  for (int64_t i = 0; i < x->numel; i++) {
    const double v = rule_tensor_get(x, i);
    int64_t before = 0;
    for (int64_t j = 0; j < x->numel; j++)
      before += rule_tensor_get(x, j) < v || (rule_tensor_get(x, j) == v && j < i);
    rule_tensor_set_int(r, descending ? x->numel - 1 - before : before, i);
  }
  return r;
}

static inline rule_tensor *repeated(const rule_tensor *x, rule_shape times) {
  if (times.rank != x->shape.rank) return NULL;
  rule_shape s = x->shape;
  for (uint32_t d = 0; d < s.rank; d++) s.dim[d] *= times.dim[d];
  rule_tensor *r = make_as(x->dtype, s);
  for (int64_t i = 0; i < r->numel; i++) {
    int64_t from = 0, step = 1, at = i;
    for (uint32_t d = s.rank; d-- > 0; at /= s.dim[d], step *= x->shape.dim[d])
      from += at % s.dim[d] % x->shape.dim[d] * step;
    rule_tensor_set(r, i, rule_tensor_get(x, from));
  }
  return r;
}

static inline rule_tensor *run_op(const rule_term *t, rule_tensor *const *bind) {
  const char *op = t->u.s;
  if (strcmp(op, "aten::add.Tensor") == 0 || strcmp(op, "aten::mul.Tensor") == 0 ||
      strcmp(op, "aten::div.Tensor") == 0)
    return pointwise(t, bind);
  if (strcmp(op, "aten::full") == 0) {
    rule_tensor *r = make(list_shape(t->child[0]));
    for (int64_t i = 0; i < r->numel; i++) rule_tensor_set(r, i, number(t->child[1]));
    return r;
  }
  if (strcmp(op, "aten::cat") == 0 || strcmp(op, "dist::all_gather") == 0)
    return joined(t->child[0], (uint32_t)t->child[1]->u.i, bind);
  if (strcmp(op, "dist::broadcast") == 0) {
    if (t->child[1]->u.i >= t->child[0]->n) return NULL;
    const rule_tensor *sent = bind[t->child[0]->child[t->child[1]->u.i]->u.i];
    return reshaped(sent, sent->shape);
  }
  if (strcmp(op, "dist::all_reduce") == 0) return reduced(t->child[0], t->child[1]->u.s, bind);
  if (t->n == 0 || t->child[0]->kind != RULE_VAR) return NULL;
  const rule_tensor *x = bind[t->child[0]->u.i];
  if (strcmp(op, "aten::alias") == 0) return reshaped(x, x->shape);
  if (strcmp(op, "aten::nan_to_num") == 0) { /* but for infinities */
    rule_tensor *r = make(x->shape);
    for (int64_t i = 0; i < r->numel; i++) {
      const double v = rule_tensor_get(x, i);
      rule_tensor_set(r, i, isnan(v) ? number(t->child[1]) : v);
    }
    return r;
  }
  if (strcmp(op, "aten::argsort") == 0) return places_in_order(x, t->child[2]->u.i);
  const bool neg = strcmp(op, "aten::neg") == 0;
  if (neg || strcmp(op, "aten::relu") == 0) {
    rule_tensor *r = make(x->shape);
    for (int64_t i = 0; i < r->numel; i++) {
      const double v = rule_tensor_get(x, i);
      rule_tensor_set(r, i, neg ? -v : v > 0 ? v : 0);
    }
    return r;
  }
  if (strcmp(op, "aten::unsqueeze") == 0) {
    rule_shape s = {.rank = x->shape.rank + 1};
    int64_t at = t->child[1]->u.i;
    if (at < 0) at += s.rank;
    for (uint32_t d = 0, k = 0; d < s.rank; d++) s.dim[d] = d == at ? 1 : x->shape.dim[k++];
    return reshaped(x, s);
  }
  if (strcmp(op, "aten::repeat") == 0) return repeated(x, list_shape(t->child[1]));
  if (strcmp(op, "aten::reshape") == 0) return reshaped(x, list_shape(t->child[1]));
  if (strcmp(op, "aten::transpose.int") == 0)
    return transposed(x, t->child[1]->u.i, t->child[2]->u.i);
  if (strcmp(op, "aten::t") == 0) return transposed(x, 0, 1);
  if (strcmp(op, "aten::slice.Tensor") == 0) return sliced(x, t->child);
  if (strcmp(op, "aten::sum.dim_IntList") == 0) return summed(x, t->child[1]);
  return NULL;
}

static inline rule_diff small_compare(void *ctx, const rule_tensor *a, const rule_tensor *b,
                                      double rel_tol) {
  (void)ctx;
  if (a->numel != b->numel)
    return (rule_diff){.max_abs = INFINITY, .max_rel = INFINITY, .index = -1};
  rule_diff d = {.equal = true, .index = -1};
  double norm = 0;
  for (int64_t i = 0; i < a->numel; i++) norm = fmax(norm, fabs(rule_tensor_get(a, i)));
  for (int64_t i = 0; i < a->numel; i++) {
    const double x = rule_tensor_get(a, i), y = rule_tensor_get(b, i);
    const double diff = x == y ? 0 : fabs(x - y); /* of one infinity, too */
    if (!(diff <= rel_tol * norm)) d.equal = false;
    d.max_abs = fmax(d.max_abs, diff);
    const double rel = diff == 0 ? 0 : diff / norm;
    if (rel > d.max_rel) {
      d.max_rel = rel;
      d.index = i;
    }
  }
  return d;
}

/* One call on tensors. Owns; NULL where it cannot run. */
typedef rule_tensor *run_one(const rule_term *t, rule_tensor *const *bind);

static inline rule_tensor *run_term_by(run_one *run, const rule_term *t, rule_tensor *const *bind);

/* The tensors that a call reads, those in its lists too. */
typedef struct small_args {
  run_one *run;
  rule_tensor *arg[4 * MAX_ARGS];
  uint32_t n;
  bool fine;
  iso_arena arena;
} small_args;

/* An argument with a variable for each tensor. */
static inline const rule_term *small_arg(small_args *a, const rule_term *t,
                                         rule_tensor *const *bind) {
  if (t->kind == RULE_LIST && t->n <= MAX_ARGS) {
    const rule_term *item[MAX_ARGS];
    for (uint32_t i = 0; i < t->n; i++) item[i] = small_arg(a, t->child[i], bind);
    return rule_list(&a->arena, item, t->n);
  }
  if (t->kind != RULE_VAR && t->kind != RULE_OP) return t;
  ck_assert_uint_lt(a->n, 4 * MAX_ARGS);
  a->arg[a->n] = run_term_by(a->run, t, bind);
  a->fine &= a->arg[a->n] != NULL;
  return rule_var(&a->arena, a->n++);
}

/* A term on a few tensors, each call of it by `run`. Owns; NULL where something cannot run. */
static inline rule_tensor *run_term_by(run_one *run, const rule_term *t, rule_tensor *const *bind) {
  if (t->kind == RULE_VAR) return rule_tensor_ref(bind[t->u.i]);
  if (t->kind != RULE_OP || t->n > MAX_ARGS) return NULL;
  small_args a = {.run = run, .fine = true};
  const rule_term *child[MAX_ARGS];
  iso_arena_init(&a.arena);
  for (uint32_t i = 0; i < t->n && a.fine; i++) child[i] = small_arg(&a, t->child[i], bind);
  rule_tensor *r = a.fine ? run(rule_op(&a.arena, t->u.s, child, t->n), a.arg) : NULL;
  for (uint32_t i = 0; i < a.n; i++) rule_tensor_unref(a.arg[i]);
  iso_arena_fini(&a.arena);
  return r;
}

static inline rule_tensor *run_term(const rule_term *t, rule_tensor *const *bind) {
  return run_term_by(run_op, t, bind);
}

#endif
