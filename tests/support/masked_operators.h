/* Places, comparisons, masks and a softmax in plain C, beside those of small_operators.h. */
#ifndef TESTS_SUPPORT_MASKED_OPERATORS_H
#define TESTS_SUPPORT_MASKED_OPERATORS_H

#include "tests/support/small_operators.h"

static inline rule_tensor *places(int64_t from, int64_t to) {
  if (from > to) return NULL;
  rule_tensor *r = make_as(RULE_I64, SHAPE(to - from));
  for (int64_t i = from; i < to; i++) rule_tensor_set_int(r, i - from, i);
  return r;
}

/* Of two tensors that are broadcast: truth values. */
static inline rule_tensor *truth(const char *op, const rule_tensor *x, const rule_tensor *y) {
  rule_shape s = {0};
  if (!broadcast(&x->shape, &y->shape, &s)) return NULL;
  rule_tensor *r = make_as(RULE_BOOL, s);
  for (int64_t i = 0; i < r->numel; i++) {
    const double a = rule_tensor_get(x, broadcast_at(&s, i, &x->shape)),
                 b = rule_tensor_get(y, broadcast_at(&s, i, &y->shape));
    rule_tensor_set(r, i,
                    strcmp(op, "aten::eq.Tensor") == 0    ? a == b
                    : strcmp(op, "aten::lt.Tensor") == 0  ? a < b
                    : strcmp(op, "aten::logical_or") == 0 ? a != 0 || b != 0
                                                          : a != 0 && b != 0);
  }
  return r;
}

/* `number` where the condition says so, elsewhere x. */
static inline rule_tensor *chosen(const rule_tensor *on, bool where, const rule_tensor *x,
                                  double number) {
  rule_shape s = {0};
  if (!broadcast(&on->shape, &x->shape, &s)) return NULL;
  rule_tensor *r = make_as(x->dtype, s);
  for (int64_t i = 0; i < r->numel; i++)
    rule_tensor_set(r, i,
                    (rule_tensor_get(on, broadcast_at(&s, i, &on->shape)) != 0) == where
                        ? number
                        : rule_tensor_get(x, broadcast_at(&s, i, &x->shape)));
  return r;
}

/* A number less than each integer. */
static inline rule_tensor *less(const rule_tensor *x, int64_t by) {
  rule_tensor *r = make_as(x->dtype, x->shape);
  for (int64_t i = 0; i < r->numel; i++) rule_tensor_set_int(r, i, rule_tensor_get_int(x, i) - by);
  return r;
}

/* Of two dimensions, along one of them. */
static inline rule_tensor *softmax(const rule_tensor *x, int64_t along) {
  if (x->shape.rank != 2) return NULL;
  if (along < 0) along += 2;
  rule_tensor *r = make(x->shape);
  const int64_t n = x->shape.dim[1], rows = x->shape.dim[!along], len = x->shape.dim[along];
  for (int64_t i = 0; i < rows; i++) {
    double most = -INFINITY, sum = 0;
    for (int64_t j = 0; j < len; j++)
      most = fmax(most, rule_tensor_get(x, along ? i * n + j : j * n + i));
    for (int64_t j = 0; j < len; j++)
      sum += exp(rule_tensor_get(x, along ? i * n + j : j * n + i) - most);
    for (int64_t j = 0; j < len; j++) {
      const int64_t at = along ? i * n + j : j * n + i;
      rule_tensor_set(r, at, exp(rule_tensor_get(x, at) - most) / sum);
    }
  }
  return r;
}

/* Each element by `f`, in the same dtype. */
static inline rule_tensor *each(const rule_tensor *x, double f(double, double), double by) {
  rule_tensor *r = make_as(x->dtype, x->shape);
  for (int64_t i = 0; i < r->numel; i++) rule_tensor_set(r, i, f(rule_tensor_get(x, i), by));
  return r;
}
static inline double not_of(double x, double by) { return by - (x != 0); }

static inline rule_tensor *backwards(const rule_tensor *x) {
  rule_tensor *r = make_as(x->dtype, x->shape);
  for (int64_t i = 0; i < r->numel; i++)
    rule_tensor_set(r, i, rule_tensor_get(x, x->numel - 1 - i));
  return r;
}

/* Of two dimensions: what lies on one side of a diagonal. */
static inline rule_tensor *triangle(const rule_tensor *x, int64_t from, bool above) {
  if (x->shape.rank != 2) return NULL;
  rule_tensor *r = make_as(x->dtype, x->shape);
  const int64_t n = x->shape.dim[1];
  for (int64_t i = 0; i < r->numel; i++) {
    const int64_t behind = i % n - i / n;
    if (above ? behind >= from : behind <= from) rule_tensor_set(r, i, rule_tensor_get(x, i));
    else rule_tensor_set(r, i, 0);
  }
  return r;
}

/* Tensor k of a call; NULL: it is none. */
static inline const rule_tensor *tensor_of(const rule_term *t, uint32_t k,
                                           rule_tensor *const *bind) {
  return k < t->n && t->child[k]->kind == RULE_VAR ? bind[t->child[k]->u.i] : NULL;
}

/* Those whose first argument is the tensor x. */
static inline rule_tensor *run_of_one(const rule_term *t, const rule_tensor *x) {
  const char *op = t->u.s;
  const int64_t by = t->n > 1 && t->child[1]->kind == RULE_INT ? t->child[1]->u.i : 0;
  if (strcmp(op, "aten::sub.Tensor") == 0) return rule_dtype_is_int(x->dtype) ? less(x, by) : NULL;
  if (strcmp(op, "aten::logical_not") == 0) return each(x, not_of, 1);
  if (strcmp(op, "aten::clamp_max") == 0) return each(x, fmin, number(t->child[1]));
  if (strcmp(op, "aten::triu") == 0) return triangle(x, by, true);
  if (strcmp(op, "aten::tril") == 0) return triangle(x, by, false);
  if (strcmp(op, "aten::flip") == 0) return backwards(x);
  return strcmp(op, "aten::softmax.int") == 0 ? softmax(x, by) : NULL;
}

static inline rule_tensor *run_masked(const rule_term *t, rule_tensor *const *bind) {
  const char *op = t->u.s;
  if (strcmp(op, "aten::arange") == 0)
    return t->child[0]->kind == RULE_INT ? places(0, t->child[0]->u.i) : NULL;
  if (strcmp(op, "aten::arange.start") == 0)
    return t->child[0]->kind == RULE_INT && t->child[1]->kind == RULE_INT
               ? places(t->child[0]->u.i, t->child[1]->u.i)
               : NULL;
  const rule_tensor *x = tensor_of(t, 0, bind), *y = tensor_of(t, 1, bind),
                    *z = tensor_of(t, 2, bind);
  if (strcmp(op, "aten::eq.Tensor") == 0 || strcmp(op, "aten::lt.Tensor") == 0 ||
      strcmp(op, "aten::logical_and") == 0 || strcmp(op, "aten::logical_or") == 0)
    return x && y ? truth(op, x, y) : NULL;
  if (strcmp(op, "aten::masked_fill.Scalar") == 0)
    return x && y ? chosen(y, true, x, number(t->child[2])) : NULL;
  if (strcmp(op, "aten::where.ScalarSelf") == 0)
    return x && z ? chosen(x, true, z, number(t->child[1])) : NULL;
  if (strcmp(op, "aten::where.ScalarOther") == 0)
    return x && y ? chosen(x, false, y, number(t->child[2])) : NULL;
  rule_tensor *r = x ? run_of_one(t, x) : NULL;
  return r ? r : run_op(t, bind);
}

/* parameters: those of rule_oracle.call. */
static inline iso_code masked_call(void *ctx, const rule_term *call, rule_tensor *const *bind,
                                   bool float64, rule_tensor **out, size_t cap, size_t *n_out,
                                   iso_error *err) {
  (void)ctx, (void)float64, (void)cap;
  out[0] = run_masked(call, bind);
  if (!out[0]) return iso_fail(err, ISO_UNSUPPORTED, "%s cannot run", call->u.s);
  *n_out = 1;
  return ISO_OK;
}

/* small_compare beside infinities, which are equal to themselves alone and are no measure of what
 * is small. */
static inline rule_diff masked_compare(void *ctx, const rule_tensor *a, const rule_tensor *b,
                                       double rel_tol) {
  rule_diff d = {.max_abs = INFINITY, .max_rel = INFINITY, .index = -1};
  if (a->numel != b->numel) return d;
  rule_tensor *x = make(a->shape), *y = make(b->shape);
  bool same = true;
  for (int64_t i = 0; i < a->numel; i++) {
    const double u = rule_tensor_get(a, i), v = rule_tensor_get(b, i);
    same &= (isinf(u) == 0 && isinf(v) == 0) || u == v;
    rule_tensor_set(x, i, isinf(u) ? 0 : u);
    rule_tensor_set(y, i, isinf(v) ? 0 : v);
  }
  if (same) d = small_compare(ctx, x, y, rel_tol);
  rule_tensor_unref(x);
  rule_tensor_unref(y);
  return d;
}

#endif
