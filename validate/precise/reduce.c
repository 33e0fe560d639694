/* Reductions of tensors of intervals, and operators along a dimension: sums, norms, softmax,
 * running sums, normalisations. */
#include "validate/precise/ops_int.h"

#ifdef VAL_HAS_MPFR
#include <math.h>
#include <string.h>

typedef enum fold {
  FOLD_SUM,
  FOLD_PROD,
  FOLD_MAX,
  FOLD_MIN,
  FOLD_SQUARES,
  FOLD_ABS,
  FOLD_EXP
} fold;

/* The dimensions of argument `name`, as flags; all where it is left out. Returns: false where they
 * are no numbers. */
static bool dims_of(const rule_term *t, uint32_t rank, bool *in) {
  const bool none = !vp_is_given(t) || (t->kind == RULE_LIST && t->n == 0);
  for (uint32_t d = 0; d < rank; d++) in[d] = none;
  if (none) return true;
  const uint32_t n = t->kind == RULE_LIST ? t->n : 1;
  for (uint32_t i = 0; i < n; i++) {
    const rule_term *one = t->kind == RULE_LIST ? t->child[i] : t;
    if (one->kind != RULE_INT) return false;
    const int64_t d = one->u.i < 0 ? one->u.i + (int64_t)rank : one->u.i;
    if (rank && (d < 0 || d >= (int64_t)rank)) return false;
    if (rank) in[d] = true;
  }
  return true;
}

/* The element of the reduced tensor to which element `i` goes. */
static int64_t group_of(const rule_shape *s, const bool *in, int64_t i) {
  int64_t at = 0, stride = 1;
  for (uint32_t d = s->rank; d-- > 0; i /= s->dim[d]) {
    if (in[d]) continue;
    at += i % s->dim[d] * stride;
    stride *= s->dim[d];
  }
  return at;
}

static rule_shape kept(const rule_shape *s, const bool *in) {
  rule_shape r = {0};
  for (uint32_t d = 0; d < s->rank; d++)
    if (!in[d]) r.dim[r.rank++] = s->dim[d];
  return r;
}

static void fold_in(vp *v, vn *into, const vn *x, fold f, bool first) {
  vn *t = &v->tmp[7];
  vn_set(t, x);
  if (f == FOLD_SQUARES) vn_square(v, t, x);
  if (f == FOLD_ABS) vn_abs(v, t, x);
  if (f == FOLD_EXP) vn_exp(v, t, x);
  if (first) vn_set(into, t);
  else if (f == FOLD_PROD) vn_mul(v, into, into, t);
  else if (f == FOLD_MAX) vn_max(v, into, into, t);
  else if (f == FOLD_MIN) vn_min(v, into, into, t);
  else vn_add(v, into, into, t);
}

/* Of each group of `x` (a value for each of its elements, from `less` on, may be NULL). */
static vp_tensor *folded(vp *v, const vp_tensor *x, const bool *in, fold f) {
  const rule_shape s = kept(&x->shape, in);
  vp_tensor *out = vp_new(v, RULE_F64, &s);
  bool *seen = out ? iso_arena_alloc(&v->arena, (size_t)out->n + 1) : NULL;
  vn *t = vp_new_number(v);
  if (!seen || !t) return NULL;
  for (int64_t i = 0; i < x->n && vp_go(v, f == FOLD_EXP ? 25 : 1); i++) {
    const int64_t at = group_of(&x->shape, in, i);
    vp_element(v, x, i, t);
    fold_in(v, &out->x[at], t, f, !seen[at]);
    seen[at] = true;
  }
  for (int64_t i = 0; i < out->n; i++)
    if (!seen[i] && f == FOLD_PROD) vn_int(v, &out->x[i], 1);
  return out;
}

static void divide_all(vp *v, vp_tensor *t, double by) {
  vn *d = vp_new_number(v);
  if (!t || !d) return;
  vn_double(v, d, by);
  for (int64_t i = 0; i < t->n && vp_go(v, 2); i++) vn_div(v, &t->x[i], &t->x[i], d);
}

/* Each element less its group's mean. */
static vp_tensor *centred(vp *v, const vp_tensor *x, const bool *in) {
  vp_tensor *mean = folded(v, x, in, FOLD_SUM), *out = vp_new(v, RULE_F64, &x->shape);
  vn *t = vp_new_number(v);
  if (!mean || !out || !t || mean->n == 0) return NULL;
  divide_all(v, mean, (double)(x->n / mean->n));
  for (int64_t i = 0; i < x->n && vp_go(v, 1); i++) {
    vp_element(v, x, i, t);
    vn_sub(v, &out->x[i], t, &mean->x[group_of(&x->shape, in, i)]);
  }
  return out;
}

static void map_all(vp *v, vp_tensor *t, vn_unary f, int cost) {
  vn *a = vp_new_number(v);
  for (int64_t i = 0; t && a && i < t->n && vp_go(v, cost); i++) {
    vn_set(a, &t->x[i]);
    f(v, &t->x[i], a);
  }
}

static vp_tensor *shaped_as(vp *v, vp_tensor *t, const vp_call *k) {
  if (!t || t->n != k->got[0]->numel || v->open) return v->open ? t : NULL;
  t->shape = k->got[0]->shape;
  return t;
}

static const vp_tensor *variance(vp *v, const vp_call *k, const vp_tensor *x, const bool *in) {
  double correction = vp_flag(k, "unbiased", true) ? 1 : 0;
  if (vp_is_given(vp_arg(k, "correction")) && !vp_number_of(vp_arg(k, "correction"), &correction))
    return NULL;
  vp_tensor *c = centred(v, x, in), *out = c ? folded(v, c, in, FOLD_SQUARES) : NULL;
  const double n = out && out->n ? (double)(x->n / out->n) - correction : 0;
  if (!(n > 0)) return NULL;
  divide_all(v, out, n);
  if (strcmp(k->name, "std") == 0) map_all(v, out, vn_sqrt, 2);
  return shaped_as(v, out, k);
}

static const vp_tensor *norm(vp *v, const vp_call *k, const vp_tensor *x, const bool *in) {
  double p = 2;
  const rule_term *ord = vp_arg(k, "ord") ? vp_arg(k, "ord") : vp_arg(k, "p");
  if (vp_is_given(ord) && !vp_number_of(ord, &p)) return NULL;
  const bool two = !(p < 2) && !(p > 2), one = !(p < 1) && !(p > 1);
  if (!two && !one) return NULL;
  vp_tensor *out = folded(v, x, in, two ? FOLD_SQUARES : FOLD_ABS);
  if (two) map_all(v, out, vn_sqrt, 2);
  return shaped_as(v, out, k);
}

const vp_tensor *vp_reduction(vp *v, const vp_call *k) {
  static const struct {
    const char *name;
    fold f;
  } plain[] = {{"sum", FOLD_SUM},  {"mean", FOLD_SUM},     {"prod", FOLD_PROD},
               {"amax", FOLD_MAX}, {"amin", FOLD_MIN},     {"max", FOLD_MAX},
               {"min", FOLD_MIN},  {"logsumexp", FOLD_EXP}};
  const vp_tensor *x = vp_operand_at(k, 0);
  bool in[RULE_MAX_RANK];
  if (!x || !dims_of(vp_arg(k, "dim"), x->shape.rank, in)) return NULL;
  if (strcmp(k->name, "var") == 0 || strcmp(k->name, "std") == 0) return variance(v, k, x, in);
  if (strcmp(k->name, "norm") == 0 || strcmp(k->name, "linalg_vector_norm") == 0)
    return norm(v, k, x, in);
  for (size_t i = 0; i < sizeof plain / sizeof *plain; i++) {
    if (strcmp(plain[i].name, k->name) != 0) continue;
    vp_tensor *out = folded(v, x, in, plain[i].f);
    if (out && out->n && strcmp(k->name, "mean") == 0) divide_all(v, out, (double)(x->n / out->n));
    if (plain[i].f == FOLD_EXP) map_all(v, out, vn_log, 24);
    return shaped_as(v, out, k);
  }
  return NULL;
}

vp_tensor *vp_softmax_of(vp *v, const vp_tensor *x, uint32_t dim, bool logarithm) {
  bool in[RULE_MAX_RANK] = {false};
  in[dim] = x->shape.rank > 0;
  vp_tensor *top = folded(v, x, in, FOLD_MAX), *e = vp_new(v, RULE_F64, &x->shape);
  vn *m = vp_new_number(v), *t = vp_new_number(v);
  if (!top || !e || !m || !t) return NULL;
  for (int64_t i = 0; i < x->n && vp_go(v, 26); i++) {
    const double near = mpfr_get_d(&top->x[group_of(&x->shape, in, i)].hi, MPFR_RNDN);
    vn_double(v, m, isfinite(near) ? near : 0);
    vp_element(v, x, i, t);
    vn_sub(v, &e->x[i], t, m);
    if (!logarithm) vn_exp(v, &e->x[i], &e->x[i]);
  }
  vp_tensor *sum = folded(v, e, in, logarithm ? FOLD_EXP : FOLD_SUM);
  if (logarithm) map_all(v, sum, vn_log, 24);
  for (int64_t i = 0; sum && i < x->n && vp_go(v, 2); i++) {
    const int64_t at = group_of(&x->shape, in, i);
    if (logarithm) vn_sub(v, &e->x[i], &e->x[i], &sum->x[at]);
    else vn_div(v, &e->x[i], &e->x[i], &sum->x[at]);
  }
  return sum ? e : NULL;
}

static bool one_dim(const vp_call *k, const vp_tensor *x, uint32_t *dim) {
  const rule_term *t = vp_arg(k, "dim");
  if (!t || t->kind != RULE_INT) return false;
  const int64_t d = t->u.i < 0 ? t->u.i + (int64_t)x->shape.rank : t->u.i;
  *dim = (uint32_t)d;
  return d >= 0 && (d < (int64_t)x->shape.rank || x->shape.rank == 0);
}

const vp_tensor *vp_softmax(vp *v, const vp_call *k) {
  const vp_tensor *x = vp_operand_at(k, 0);
  uint32_t dim;
  if (!x || !one_dim(k, x, &dim)) return NULL;
  return vp_softmax_of(v, x, dim, strstr(k->name, "log") != NULL);
}

const vp_tensor *vp_running(vp *v, const vp_call *k) {
  const vp_tensor *x = vp_operand_at(k, 0);
  vp_tensor *out = x ? vp_result(v, k) : NULL;
  uint32_t dim;
  vn *t = vp_new_number(v);
  if (!out || !t || !one_dim(k, x, &dim)) return NULL;
  int64_t stride = 1;
  for (uint32_t d = dim + 1; d < x->shape.rank; d++) stride *= x->shape.dim[d];
  for (int64_t i = 0; i < x->n && vp_go(v, 1); i++) {
    const bool first = x->shape.rank == 0 || i / stride % x->shape.dim[dim] == 0;
    vp_element(v, x, i, t);
    if (first) vn_set(&out->x[i], t);
    else if (strcmp(k->name, "cumprod") == 0) vn_mul(v, &out->x[i], &out->x[i - stride], t);
    else vn_add(v, &out->x[i], &out->x[i - stride], t);
  }
  return out;
}

const vp_tensor *vp_layer_norm(vp *v, const vp_call *k) {
  const bool rms = strcmp(k->name, "rms_norm") == 0;
  const vp_tensor *x = vp_operand_at(k, 0);
  const rule_term *over = vp_arg(k, "normalized_shape"), *eps = vp_arg(k, "eps");
  bool in[RULE_MAX_RANK] = {false};
  if (!x || !over || over->kind != RULE_LIST || over->n > x->shape.rank) return NULL;
  for (uint32_t d = x->shape.rank - over->n; d < x->shape.rank; d++) in[d] = true;
  vp_tensor *out = rms ? vp_result(v, k) : centred(v, x, in);
  for (int64_t i = 0; rms && out && i < x->n; i++) vp_element(v, x, i, &out->x[i]);
  vp_tensor *square = out ? folded(v, out, in, FOLD_SQUARES) : NULL;
  vn *e = NULL, *t = vp_new_number(v);
  if (!square || !square->n || !t) return NULL;
  if (vp_is_given(eps) ? !vp_literal(v, eps, &e) : !(e = vp_new_number(v))) return NULL;
  if (!vp_is_given(eps)) vn_double(v, e, 0x1p-52);
  divide_all(v, square, (double)(x->n / square->n));
  for (int64_t i = 0; i < square->n && vp_go(v, 4); i++) {
    vn_add(v, &square->x[i], &square->x[i], e);
    vn_sqrt(v, &square->x[i], &square->x[i]);
  }
  vp_operand w, b;
  const rule_term *weight = vp_arg(k, "weight"), *bias = vp_arg(k, "bias");
  if ((vp_is_given(weight) && !vp_operand_of(v, k, weight, &x->shape, &w)) ||
      (vp_is_given(bias) && !vp_operand_of(v, k, bias, &x->shape, &b)))
    return NULL;
  for (int64_t i = 0; i < x->n && vp_go(v, 4); i++) {
    vn_div(v, &out->x[i], &out->x[i], &square->x[group_of(&x->shape, in, i)]);
    if (vp_is_given(weight))
      vp_operand_get(v, &w, &x->shape, i, t), vn_mul(v, &out->x[i], &out->x[i], t);
    if (vp_is_given(bias))
      vp_operand_get(v, &b, &x->shape, i, t), vn_add(v, &out->x[i], &out->x[i], t);
  }
  return shaped_as(v, out, k);
}
#endif
