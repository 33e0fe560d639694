/* Operators on tensors of intervals: element by element, sums of products, reductions,
 * normalisations. Shapes are libtorch's own. */
#include "validate/precise/precise_int.h"

#ifdef VAL_HAS_MPFR
#include <math.h>
#include <string.h>

/* ---- arguments ---- */

const rule_term *vp_arg(const vp_call *k, const char *name) {
  for (uint32_t i = 0; k->schema && i < k->schema->n_args && i < k->call->n; i++)
    if (strcmp(k->schema->arg[i].name, name) == 0) return k->call->child[i];
  return NULL;
}

const vp_tensor *vp_arg_tensor(const vp_call *k, const char *name) {
  const rule_term *t = vp_arg(k, name);
  return t && t->kind == RULE_VAR ? k->in[t->u.i] : NULL;
}

static bool number_of(const rule_term *t, double *out) {
  if (!t || (t->kind != RULE_INT && t->kind != RULE_FLOAT && t->kind != RULE_BOOLEAN)) return false;
  *out = t->kind == RULE_FLOAT ? t->u.f : (double)t->u.i;
  return true;
}

static bool flag(const vp_call *k, const char *name, bool if_none) {
  const rule_term *t = vp_arg(k, name);
  return t && t->kind == RULE_BOOLEAN ? t->u.i != 0 : if_none;
}

static bool given(const rule_term *t) { return t && t->kind != RULE_NONE; }

static void element(vp *v, const vp_tensor *t, int64_t i, vn *out) {
  if (t->x) vn_set(out, &t->x[i]);
  else vn_int(v, out, rule_tensor_get_int(t->plain, i));
}

/* An operand that broadcasts: a tensor, or a number. */
typedef struct operand {
  const vp_tensor *t;
  int64_t stride[RULE_MAX_RANK];
  vn *number;
} operand;

static vn *new_number(vp *v) {
  const vp_tensor *t = vp_new(v, RULE_F64, &(rule_shape){0});
  return t ? t->x : NULL;
}

static bool literal(vp *v, const rule_term *t, vn **out) {
  double d;
  if (!number_of(t, &d) || !(*out = new_number(v))) return false;
  if (t->kind == RULE_FLOAT) vn_literal(v, *out, d);
  else vn_int(v, *out, t->u.i);
  return true;
}

static bool operand_of(vp *v, const vp_call *k, const rule_term *a, const rule_shape *to,
                       operand *o) {
  *o = (operand){0};
  if (!a) return false;
  if (a->kind != RULE_VAR) return literal(v, a, &o->number);
  o->t = k->in[a->u.i];
  const rule_shape *s = &o->t->shape;
  if (s->rank > to->rank) return false;
  int64_t stride = 1;
  for (uint32_t d = s->rank; d-- > 0;) {
    const uint32_t at = d + to->rank - s->rank;
    if (s->dim[d] != to->dim[at] && s->dim[d] != 1) return false;
    o->stride[at] = s->dim[d] == 1 ? 0 : stride;
    stride *= s->dim[d];
  }
  return true;
}

static void take(vp *v, const operand *o, const rule_shape *to, int64_t i, vn *out) {
  int64_t at = 0;
  if (!o->t) {
    vn_set(out, o->number);
    return;
  }
  for (uint32_t d = to->rank; d-- > 0; i /= to->dim[d]) at += i % to->dim[d] * o->stride[d];
  element(v, o->t, at, out);
}

static vp_tensor *result(vp *v, const vp_call *k) {
  return vp_new(v, k->got[0]->dtype, &k->got[0]->shape);
}

/* ---- element by element ---- */

static const vp_tensor *unary(vp *v, const vp_call *k, vn_unary f, int cost) {
  const vp_tensor *x =
      k->call->n && k->call->child[0]->kind == RULE_VAR ? k->in[k->call->child[0]->u.i] : NULL;
  vp_tensor *out = x ? result(v, k) : NULL;
  vn *a = new_number(v);
  for (int64_t i = 0; out && a && i < out->n && vp_go(v, cost); i++) {
    element(v, x, i, a);
    f(v, &out->x[i], a);
  }
  return out;
}

/* f(a, b), for two operands of the call. */
static const vp_tensor *binary(vp *v, const vp_call *k, const rule_term *left,
                               const rule_term *right, vn_binary f, int cost) {
  vp_tensor *out = result(v, k);
  operand a, b;
  vn *x = new_number(v), *y = new_number(v);
  if (!out || !x || !y || !operand_of(v, k, left, &out->shape, &a) ||
      !operand_of(v, k, right, &out->shape, &b))
    return NULL;
  for (int64_t i = 0; i < out->n && vp_go(v, cost); i++) {
    take(v, &a, &out->shape, i, x);
    take(v, &b, &out->shape, i, y);
    f(v, &out->x[i], x, y);
  }
  return out;
}

/* a + factor * b, the factor an argument of the call. */
static const vp_tensor *scaled_sum(vp *v, const vp_call *k, const rule_term *left,
                                   const rule_term *right, const rule_term *factor, double sign) {
  vp_tensor *out = result(v, k);
  operand a, b;
  vn *x = new_number(v), *y = new_number(v), *by = NULL;
  if (!out || !x || !y || !operand_of(v, k, left, &out->shape, &a) ||
      !operand_of(v, k, right, &out->shape, &b))
    return NULL;
  if (given(factor) && !literal(v, factor, &by)) return NULL;
  for (int64_t i = 0; i < out->n && vp_go(v, 2); i++) {
    take(v, &a, &out->shape, i, x);
    take(v, &b, &out->shape, i, y);
    if (by) vn_mul(v, y, y, by);
    if (sign < 0) vn_sub(v, &out->x[i], x, y);
    else vn_add(v, &out->x[i], x, y);
  }
  return out;
}

static const vp_tensor *sum_or_difference(vp *v, const vp_call *k) {
  const rule_term *a = vp_arg(k, "self"), *b = vp_arg(k, "other"), *alpha = vp_arg(k, "alpha");
  if (strcmp(k->name, "rsub") == 0) return scaled_sum(v, k, b, a, alpha, -1);
  return scaled_sum(v, k, a, b, alpha, strcmp(k->name, "add") == 0 ? 1 : -1);
}

static const vp_tensor *quotient(vp *v, const vp_call *k) {
  const rule_term *mode = vp_arg(k, "rounding_mode");
  int cost = 2;
  const vn_binary f = vn_binary_find(
      given(mode) && strcmp(mode->u.s, "floor") == 0 ? "floor_divide" : "div", &cost);
  if (given(mode) && strcmp(mode->u.s, "floor") != 0) return NULL;
  return binary(v, k, vp_arg(k, "self"), vp_arg(k, "other"), f, cost);
}

static const vp_tensor *gelu(vp *v, const vp_call *k) {
  const rule_term *how = vp_arg(k, "approximate");
  const bool by_tanh = how && how->kind == RULE_STRING && strcmp(how->u.s, "tanh") == 0;
  const vp_tensor *in = vp_arg_tensor(k, "self");
  vp_tensor *out = in ? result(v, k) : NULL;
  vn *x = new_number(v), *y = new_number(v), *c = new_number(v), *two = new_number(v);
  if (!out || !x || !y || !c || !two) return NULL;
  vn_int(v, two, 2);
  for (int64_t i = 0; i < out->n && vp_go(v, 300); i++) {
    element(v, in, i, x);
    if (by_tanh) {
      vn_square(v, y, x);
      vn_mul(v, y, y, x);
      vn_literal(v, c, 0.044715);
      vn_mul(v, y, y, c);
      vn_add(v, y, y, x);
      mpfr_const_pi(&c->lo, MPFR_RNDD);
      mpfr_const_pi(&c->hi, MPFR_RNDU);
      vn_div(v, c, two, c);
      vn_sqrt(v, c, c);
      vn_mul(v, y, y, c);
      vn_tanh(v, y, y);
    } else {
      vn_sqrt(v, c, two);
      vn_div(v, y, x, c);
      vn_erf(v, y, y);
    }
    vn_int(v, c, 1);
    vn_add(v, y, y, c);
    vn_mul(v, y, y, x);
    vn_div(v, &out->x[i], y, two);
  }
  return out;
}

/* Functions that are one thing on one side of a bound and another on the other. Returns: false
 * where the side is open. */
static bool above(vp *v, const vn *x, const vn *bound, bool *yes) {
  const int c = vn_compare(x, bound);
  *yes = c > 0;
  v->open |= c == 2;
  return c != 2;
}

static void softplus(vp *v, vn *r, const vn *x, vn *const *p) { /* beta, threshold */
  bool linear;
  vn_mul(v, p[4], x, p[0]);
  if (!above(v, p[4], p[1], &linear)) return;
  if (linear) {
    vn_set(r, x);
    return;
  }
  vn_exp(v, p[4], p[4]);
  vn_unary_find("log1p", &(int){0})(v, p[4], p[4]);
  vn_div(v, r, p[4], p[0]);
}

static void leaky_relu(vp *v, vn *r, const vn *x, vn *const *p) {
  bool right;
  vn_int(v, p[4], 0);
  if (!above(v, x, p[4], &right)) return;
  if (right) vn_set(r, x);
  else vn_mul(v, r, x, p[0]);
}

static void elu(vp *v, vn *r, const vn *x, vn *const *p) { /* alpha, scale, input_scale */
  bool right;
  vn_int(v, p[4], 0);
  if (!above(v, x, p[4], &right)) return;
  if (right) {
    vn_mul(v, r, x, p[1]);
    return;
  }
  vn_mul(v, p[4], x, p[2]);
  vn_unary_find("expm1", &(int){0})(v, p[4], p[4]);
  vn_mul(v, p[4], p[4], p[0]);
  vn_mul(v, r, p[4], p[1]);
}

static void celu(vp *v, vn *r, const vn *x, vn *const *p) {
  bool right;
  vn_int(v, p[4], 0);
  if (!above(v, x, p[4], &right)) return;
  if (right) {
    vn_set(r, x);
    return;
  }
  vn_div(v, p[4], x, p[0]);
  vn_unary_find("expm1", &(int){0})(v, p[4], p[4]);
  vn_mul(v, r, p[4], p[0]);
}

static void threshold(vp *v, vn *r, const vn *x, vn *const *p) {
  bool right;
  if (above(v, x, p[0], &right)) vn_set(r, right ? x : p[1]);
}

/* x + 3 between 0 and 6, by 6; and that times x. */
static void hardsigmoid(vp *v, vn *r, const vn *x, vn *const *p) {
  vn_int(v, p[4], 3);
  vn_add(v, r, x, p[4]);
  vn_int(v, p[4], 0);
  vn_max(v, r, r, p[4]);
  vn_int(v, p[4], 6);
  vn_min(v, r, r, p[4]);
  vn_div(v, r, r, p[4]);
}

static void hardswish(vp *v, vn *r, const vn *x, vn *const *p) {
  hardsigmoid(v, p[3], x, p);
  vn_mul(v, r, p[3], x);
}

static void relu6(vp *v, vn *r, const vn *x, vn *const *p) {
  vn_int(v, p[4], 0);
  vn_max(v, r, x, p[4]);
  vn_int(v, p[4], 6);
  vn_min(v, r, r, p[4]);
}

typedef struct shaped {
  const char *name;
  void (*f)(vp *v, vn *r, const vn *x, vn *const *p);
  const char *arg[3];
} shaped;

static const shaped shapes[] = {{"softplus", softplus, {"beta", "threshold"}},
                                {"leaky_relu", leaky_relu, {"negative_slope"}},
                                {"elu", elu, {"alpha", "scale", "input_scale"}},
                                {"celu", celu, {"alpha"}},
                                {"threshold", threshold, {"threshold", "value"}},
                                {"hardsigmoid", hardsigmoid, {0}},
                                {"hardswish", hardswish, {0}},
                                {"relu6", relu6, {0}}};

static const vp_tensor *of_shape(vp *v, const vp_call *k, const shaped *s) {
  const vp_tensor *x =
      k->call->n && k->call->child[0]->kind == RULE_VAR ? k->in[k->call->child[0]->u.i] : NULL;
  vp_tensor *out = x ? result(v, k) : NULL;
  vn *p[5], *a = new_number(v);
  for (int i = 0; i < 5; i++)
    if (!(p[i] = new_number(v))) return NULL;
  for (int i = 0; i < 3 && s->arg[i]; i++)
    if (!literal(v, vp_arg(k, s->arg[i]), &p[i])) return NULL;
  for (int64_t i = 0; out && a && i < out->n && vp_go(v, 60); i++) {
    element(v, x, i, a);
    s->f(v, &out->x[i], a, p);
  }
  return out;
}

static const vp_tensor *clamp(vp *v, const vp_call *k) {
  const bool hard = strcmp(k->name, "hardtanh") == 0;
  const rule_term *low = vp_arg(k, hard ? "min_val" : "min"),
                  *high = vp_arg(k, hard ? "max_val" : "max");
  vp_tensor *out = result(v, k);
  operand x, a, b;
  vn *t = new_number(v);
  if (!out || !t || !operand_of(v, k, vp_arg(k, "self"), &out->shape, &x)) return NULL;
  if (given(low) && !operand_of(v, k, low, &out->shape, &a)) return NULL;
  if (given(high) && !operand_of(v, k, high, &out->shape, &b)) return NULL;
  for (int64_t i = 0; i < out->n && vp_go(v, 2); i++) {
    take(v, &x, &out->shape, i, &out->x[i]);
    if (given(low)) take(v, &a, &out->shape, i, t), vn_max(v, &out->x[i], &out->x[i], t);
    if (given(high)) take(v, &b, &out->shape, i, t), vn_min(v, &out->x[i], &out->x[i], t);
  }
  return out;
}

/* self + value * (a * b), or a / b. */
static const vp_tensor *addc(vp *v, const vp_call *k) {
  const bool by = strcmp(k->name, "addcdiv") == 0;
  vp_tensor *out = result(v, k);
  operand x, a, b;
  vn *s = new_number(v), *t = new_number(v), *value = NULL;
  if (!out || !s || !t || !operand_of(v, k, vp_arg(k, "self"), &out->shape, &x) ||
      !operand_of(v, k, vp_arg(k, "tensor1"), &out->shape, &a) ||
      !operand_of(v, k, vp_arg(k, "tensor2"), &out->shape, &b) ||
      !literal(v, vp_arg(k, "value"), &value))
    return NULL;
  for (int64_t i = 0; i < out->n && vp_go(v, 4); i++) {
    take(v, &a, &out->shape, i, s);
    take(v, &b, &out->shape, i, t);
    if (by) vn_div(v, s, s, t);
    else vn_mul(v, s, s, t);
    vn_mul(v, s, s, value);
    take(v, &x, &out->shape, i, t);
    vn_add(v, &out->x[i], t, s);
  }
  return out;
}

static const vp_tensor *lerp(vp *v, const vp_call *k) {
  vp_tensor *out = result(v, k);
  operand x, y, w;
  vn *s = new_number(v), *t = new_number(v);
  if (!out || !s || !t || !operand_of(v, k, vp_arg(k, "self"), &out->shape, &x) ||
      !operand_of(v, k, vp_arg(k, "end"), &out->shape, &y) ||
      !operand_of(v, k, vp_arg(k, "weight"), &out->shape, &w))
    return NULL;
  for (int64_t i = 0; i < out->n && vp_go(v, 4); i++) {
    take(v, &x, &out->shape, i, s);
    take(v, &y, &out->shape, i, t);
    vn_sub(v, t, t, s);
    take(v, &w, &out->shape, i, &out->x[i]);
    vn_mul(v, t, t, &out->x[i]);
    vn_add(v, &out->x[i], t, s);
  }
  return out;
}

/* Comparisons of numbers: booleans, where each is settled. */
static const vp_tensor *compared(vp *v, const vp_call *k, const char *what) {
  vp_tensor *out = result(v, k);
  operand a, b;
  vn *x = new_number(v), *y = new_number(v);
  if (!out || !out->plain || !x || !y || !operand_of(v, k, k->call->child[0], &out->shape, &a) ||
      !operand_of(v, k, k->call->child[1], &out->shape, &b))
    return NULL;
  for (int64_t i = 0; i < out->n && vp_go(v, 1); i++) {
    take(v, &a, &out->shape, i, x);
    take(v, &b, &out->shape, i, y);
    const int c = vn_compare(x, y);
    v->open |= c == 2;
    const bool yes = what[0] == 'e'   ? c == 0
                     : what[0] == 'n' ? c != 0
                     : what[0] == 'l' ? (c < 0 || (what[1] == 'e' && c == 0))
                                      : (c > 0 || (what[1] == 'e' && c == 0));
    rule_tensor_set(out->plain, i, yes);
  }
  return out;
}

/* ---- sums of products ---- */

/* Of a matrix, or of a vector as one: places of element (row, column) in a batch. */
typedef struct matrix {
  const vp_tensor *t;
  int64_t rows, columns, by_row, by_column, batches;
} matrix;

static matrix matrix_of(const vp_tensor *t, bool left, bool turned) {
  matrix m = {.t = t, .batches = 1};
  const rule_shape *s = &t->shape;
  if (s->rank == 1) {
    m.rows = left ? 1 : s->dim[0], m.columns = left ? s->dim[0] : 1;
    m.by_row = left ? 0 : 1, m.by_column = left ? 1 : 0;
    return m;
  }
  const int64_t a = s->dim[s->rank - 2], b = s->dim[s->rank - 1];
  m.rows = turned ? b : a, m.columns = turned ? a : b;
  m.by_row = turned ? 1 : b, m.by_column = turned ? b : 1;
  for (uint32_t d = 0; d + 2 < s->rank; d++) m.batches *= s->dim[d];
  return m;
}

/* The batch of `m` that batch `i` of the result takes: broadcast from the right. */
static int64_t batch_of(const matrix *m, const rule_shape *lead, int64_t i) {
  const rule_shape *s = &m->t->shape;
  const uint32_t own = s->rank > 2 ? s->rank - 2 : 0;
  int64_t at = 0, stride = 1;
  for (uint32_t d = 0; d < own; d++) {
    const int64_t size = s->dim[own - 1 - d], of = lead->dim[lead->rank - 1 - d];
    at += (size == 1 ? 0 : i % of) * stride;
    stride *= size, i /= of;
  }
  return at;
}

/* The product into `x`, row by row and batch by batch. */
static bool multiply(vp *v, matrix a, matrix b, const rule_shape *lead, int64_t batches, vn *x,
                     const vn *times) {
  vn *p = new_number(v), *q = new_number(v), *s = new_number(v);
  if (!p || !q || !s || a.columns != b.rows) return false;
  for (int64_t batch = 0; batch < batches; batch++) {
    const int64_t from_a = batch_of(&a, lead, batch) * a.rows * a.columns,
                  from_b = batch_of(&b, lead, batch) * b.rows * b.columns;
    for (int64_t i = 0; i < a.rows; i++)
      for (int64_t j = 0; j < b.columns; j++, x++) {
        if (!vp_go(v, 2 * a.columns)) return false;
        vn_int(v, s, 0);
        for (int64_t k = 0; k < a.columns; k++) {
          element(v, a.t, from_a + i * a.by_row + k * a.by_column, p);
          element(v, b.t, from_b + k * b.by_row + j * b.by_column, q);
          vn_mul(v, p, p, q);
          vn_add(v, s, s, p);
        }
        if (times) vn_mul(v, x, s, times);
        else vn_set(x, s);
      }
  }
  return true;
}

/* The leading dimensions that two matrices share. */
static rule_shape leading(const matrix *a, const matrix *b, int64_t *batches) {
  const uint32_t ra = a->t->shape.rank > 2 ? a->t->shape.rank - 2 : 0,
                 rb = b->t->shape.rank > 2 ? b->t->shape.rank - 2 : 0;
  rule_shape lead = {.rank = ra > rb ? ra : rb};
  *batches = 1;
  for (uint32_t d = 0; d < lead.rank; d++) {
    const int64_t x = d < ra ? a->t->shape.dim[ra - 1 - d] : 1,
                  y = d < rb ? b->t->shape.dim[rb - 1 - d] : 1;
    lead.dim[lead.rank - 1 - d] = x > y ? x : y;
    *batches *= x > y ? x : y;
  }
  return lead;
}

static const vp_tensor *product(vp *v, const vp_call *k, const vp_tensor *a, const vp_tensor *b,
                                bool turned, const vn *times) {
  vp_tensor *out = a && b && a->shape.rank && b->shape.rank ? result(v, k) : NULL;
  if (!out || (turned && b->shape.rank != 2)) return NULL;
  const matrix x = matrix_of(a, true, false), y = matrix_of(b, false, turned);
  int64_t batches;
  const rule_shape lead = leading(&x, &y, &batches);
  if (x.columns != y.rows || out->n != batches * x.rows * y.columns) return NULL;
  return multiply(v, x, y, &lead, batches, out->x, times) ? out : NULL;
}

static const vp_tensor *plus_bias(vp *v, const vp_call *k, const vp_tensor *y,
                                  const rule_term *bias, const vn *times) {
  operand b;
  vn *t = new_number(v);
  if (!y || !given(bias)) return y;
  if (!t || !operand_of(v, k, bias, &y->shape, &b)) return NULL;
  for (int64_t i = 0; i < y->n && vp_go(v, 2); i++) {
    take(v, &b, &y->shape, i, t);
    if (times) vn_mul(v, t, t, times);
    vn_add(v, &y->x[i], &y->x[i], t);
  }
  return y;
}

static const vp_tensor *first_of(const vp_call *k, uint32_t i) {
  return i < k->call->n && k->call->child[i]->kind == RULE_VAR ? k->in[k->call->child[i]->u.i]
                                                               : NULL;
}

static const vp_tensor *added_product(vp *v, const vp_call *k) { /* beta * self + alpha * a @ b */
  vn *alpha = NULL, *beta = NULL;
  if (!literal(v, vp_arg(k, "alpha"), &alpha) || !literal(v, vp_arg(k, "beta"), &beta)) return NULL;
  return plus_bias(v, k, product(v, k, first_of(k, 1), first_of(k, 2), false, alpha),
                   vp_arg(k, "self"), beta);
}

static const vp_tensor *contraction(vp *v, const vp_call *k) {
  if (strcmp(k->name, "linear") == 0)
    return plus_bias(v, k, product(v, k, first_of(k, 0), first_of(k, 1), true, NULL),
                     vp_arg(k, "bias"), NULL);
  if (strcmp(k->name, "outer") == 0 || strcmp(k->name, "ger") == 0) {
    const vp_tensor *a = first_of(k, 0), *b = first_of(k, 1);
    vp_tensor *out = a && b ? result(v, k) : NULL;
    for (int64_t i = 0; out && i < out->n && vp_go(v, 1); i++)
      vn_mul(v, &out->x[i], &a->x[i / b->n], &b->x[i % b->n]);
    return out;
  }
  return product(v, k, first_of(k, 0), first_of(k, 1), false, NULL);
}

/* ---- reductions ---- */

/* The dimensions of argument `name`, as flags; all where it is left out. Returns: false where they
 * are no numbers. */
static bool dims_of(const rule_term *t, uint32_t rank, bool *in) {
  const bool none = !given(t) || (t->kind == RULE_LIST && t->n == 0);
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

typedef enum fold {
  FOLD_SUM,
  FOLD_PROD,
  FOLD_MAX,
  FOLD_MIN,
  FOLD_SQUARES,
  FOLD_ABS,
  FOLD_EXP
} fold;

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
  vn *t = new_number(v);
  if (!seen || !t) return NULL;
  for (int64_t i = 0; i < x->n && vp_go(v, f == FOLD_EXP ? 25 : 1); i++) {
    const int64_t at = group_of(&x->shape, in, i);
    element(v, x, i, t);
    fold_in(v, &out->x[at], t, f, !seen[at]);
    seen[at] = true;
  }
  for (int64_t i = 0; i < out->n; i++)
    if (!seen[i] && f == FOLD_PROD) vn_int(v, &out->x[i], 1);
  return out;
}

static void divide_all(vp *v, vp_tensor *t, double by) {
  vn *d = new_number(v);
  if (!t || !d) return;
  vn_double(v, d, by);
  for (int64_t i = 0; i < t->n && vp_go(v, 2); i++) vn_div(v, &t->x[i], &t->x[i], d);
}

/* Each element less its group's mean. */
static vp_tensor *centred(vp *v, const vp_tensor *x, const bool *in) {
  vp_tensor *mean = folded(v, x, in, FOLD_SUM), *out = vp_new(v, RULE_F64, &x->shape);
  vn *t = new_number(v);
  if (!mean || !out || !t || mean->n == 0) return NULL;
  divide_all(v, mean, (double)(x->n / mean->n));
  for (int64_t i = 0; i < x->n && vp_go(v, 1); i++) {
    element(v, x, i, t);
    vn_sub(v, &out->x[i], t, &mean->x[group_of(&x->shape, in, i)]);
  }
  return out;
}

static void map_all(vp *v, vp_tensor *t, vn_unary f, int cost) {
  vn *a = new_number(v);
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
  double correction = flag(k, "unbiased", true) ? 1 : 0;
  if (given(vp_arg(k, "correction")) && !number_of(vp_arg(k, "correction"), &correction))
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
  if (given(ord) && !number_of(ord, &p)) return NULL;
  const bool two = !(p < 2) && !(p > 2), one = !(p < 1) && !(p > 1);
  if (!two && !one) return NULL;
  vp_tensor *out = folded(v, x, in, two ? FOLD_SQUARES : FOLD_ABS);
  if (two) map_all(v, out, vn_sqrt, 2);
  return shaped_as(v, out, k);
}

static const vp_tensor *reduction(vp *v, const vp_call *k) {
  static const struct {
    const char *name;
    fold f;
  } plain[] = {{"sum", FOLD_SUM},  {"mean", FOLD_SUM},     {"prod", FOLD_PROD},
               {"amax", FOLD_MAX}, {"amin", FOLD_MIN},     {"max", FOLD_MAX},
               {"min", FOLD_MIN},  {"logsumexp", FOLD_EXP}};
  const vp_tensor *x = first_of(k, 0);
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

/* Along one dimension: exponentials of what is left above a number near the largest, which changes
 * neither quotient. */
static vp_tensor *softmax_of(vp *v, const vp_tensor *x, uint32_t dim, bool logarithm) {
  bool in[RULE_MAX_RANK] = {false};
  in[dim] = x->shape.rank > 0;
  vp_tensor *top = folded(v, x, in, FOLD_MAX), *e = vp_new(v, RULE_F64, &x->shape);
  vn *m = new_number(v), *t = new_number(v);
  if (!top || !e || !m || !t) return NULL;
  for (int64_t i = 0; i < x->n && vp_go(v, 26); i++) {
    const double near = mpfr_get_d(&top->x[group_of(&x->shape, in, i)].hi, MPFR_RNDN);
    vn_double(v, m, isfinite(near) ? near : 0);
    element(v, x, i, t);
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

static const vp_tensor *softmax(vp *v, const vp_call *k) {
  const vp_tensor *x = first_of(k, 0);
  uint32_t dim;
  if (!x || !one_dim(k, x, &dim)) return NULL;
  return softmax_of(v, x, dim, strstr(k->name, "log") != NULL);
}

/* Sums or products from the front on. */
static const vp_tensor *running(vp *v, const vp_call *k) {
  const vp_tensor *x = first_of(k, 0);
  vp_tensor *out = x ? result(v, k) : NULL;
  uint32_t dim;
  vn *t = new_number(v);
  if (!out || !t || !one_dim(k, x, &dim)) return NULL;
  int64_t stride = 1;
  for (uint32_t d = dim + 1; d < x->shape.rank; d++) stride *= x->shape.dim[d];
  for (int64_t i = 0; i < x->n && vp_go(v, 1); i++) {
    const bool first = x->shape.rank == 0 || i / stride % x->shape.dim[dim] == 0;
    element(v, x, i, t);
    if (first) vn_set(&out->x[i], t);
    else if (strcmp(k->name, "cumprod") == 0) vn_mul(v, &out->x[i], &out->x[i - stride], t);
    else vn_add(v, &out->x[i], &out->x[i - stride], t);
  }
  return out;
}

/* ---- normalisations ---- */

/* Layer norm, or without its mean (`rms`), over the last dimensions. */
static const vp_tensor *layer_norm(vp *v, const vp_call *k) {
  const bool rms = strcmp(k->name, "rms_norm") == 0;
  const vp_tensor *x = first_of(k, 0);
  const rule_term *over = vp_arg(k, "normalized_shape"), *eps = vp_arg(k, "eps");
  bool in[RULE_MAX_RANK] = {false};
  if (!x || !over || over->kind != RULE_LIST || over->n > x->shape.rank) return NULL;
  for (uint32_t d = x->shape.rank - over->n; d < x->shape.rank; d++) in[d] = true;
  vp_tensor *out = rms ? result(v, k) : centred(v, x, in);
  for (int64_t i = 0; rms && out && i < x->n; i++) element(v, x, i, &out->x[i]);
  vp_tensor *square = out ? folded(v, out, in, FOLD_SQUARES) : NULL;
  vn *e = NULL, *t = new_number(v);
  if (!square || !square->n || !t) return NULL;
  if (given(eps) ? !literal(v, eps, &e) : !(e = new_number(v))) return NULL;
  if (!given(eps)) vn_double(v, e, 0x1p-52);
  divide_all(v, square, (double)(x->n / square->n));
  for (int64_t i = 0; i < square->n && vp_go(v, 4); i++) {
    vn_add(v, &square->x[i], &square->x[i], e);
    vn_sqrt(v, &square->x[i], &square->x[i]);
  }
  operand w, b;
  const rule_term *weight = vp_arg(k, "weight"), *bias = vp_arg(k, "bias");
  if ((given(weight) && !operand_of(v, k, weight, &x->shape, &w)) ||
      (given(bias) && !operand_of(v, k, bias, &x->shape, &b)))
    return NULL;
  for (int64_t i = 0; i < x->n && vp_go(v, 4); i++) {
    vn_div(v, &out->x[i], &out->x[i], &square->x[group_of(&x->shape, in, i)]);
    if (given(weight)) take(v, &w, &x->shape, i, t), vn_mul(v, &out->x[i], &out->x[i], t);
    if (given(bias)) take(v, &b, &x->shape, i, t), vn_add(v, &out->x[i], &out->x[i], t);
  }
  return shaped_as(v, out, k);
}

/* Scores of queries and keys, a mask, softmax, values. */
static const vp_tensor *attention(vp *v, const vp_call *k) {
  const vp_tensor *q = first_of(k, 0), *key = first_of(k, 1), *value = first_of(k, 2);
  const rule_term *scale = vp_arg(k, "scale"), *mask = vp_arg(k, "attn_mask");
  double dropout = 0;
  if (!q || !key || !value || flag(k, "enable_gqa", false) ||
      !number_of(vp_arg(k, "dropout_p"), &dropout) || dropout > 0 || q->shape.rank < 2)
    return NULL;
  const matrix a = matrix_of(q, true, false), b = matrix_of(key, false, true),
               c = matrix_of(value, false, false);
  int64_t batches;
  const rule_shape lead = leading(&a, &b, &batches);
  rule_shape s = lead;
  s.dim[s.rank++] = a.rows, s.dim[s.rank++] = b.columns;
  vp_tensor *scores = vp_new(v, RULE_F64, &s), *out = result(v, k);
  vn *by = NULL, *t = new_number(v);
  operand m;
  if (!scores || !out || !t) return NULL;
  if (given(scale) ? !literal(v, scale, &by) : !(by = new_number(v))) return NULL;
  if (!given(scale)) vn_int(v, by, a.columns), vn_sqrt(v, by, by), vn_recip(v, by, by);
  if (!multiply(v, a, b, &lead, batches, scores->x, by)) return NULL;
  if (given(mask) && !operand_of(v, k, mask, &s, &m)) return NULL;
  for (int64_t i = 0; i < scores->n && vp_go(v, 2); i++) {
    const int64_t row = i / b.columns % a.rows, column = i % b.columns;
    bool off = flag(k, "is_causal", false) && column > row;
    if (given(mask)) take(v, &m, &s, i, t);
    if (given(mask) && m.t && m.t->plain) off |= mpfr_zero_p(&t->lo) != 0;
    else if (given(mask)) vn_add(v, &scores->x[i], &scores->x[i], t);
    if (off) vn_double(v, &scores->x[i], -(double)INFINITY);
  }
  vp_tensor *p = softmax_of(v, scores, s.rank - 1, false);
  if (!p || !multiply(v, matrix_of(p, true, false), c, &lead, batches, out->x, NULL)) return NULL;
  return out;
}

/* ---- by name ---- */

typedef const vp_tensor *(*compute)(vp *v, const vp_call *k);

static compute find(const char *name) {
  static const struct {
    const char *name;
    compute f;
  } table[] = {{"add", sum_or_difference},
               {"sub", sum_or_difference},
               {"subtract", sum_or_difference},
               {"rsub", sum_or_difference},
               {"div", quotient},
               {"divide", quotient},
               {"true_divide", quotient},
               {"gelu", gelu},
               {"clamp", clamp},
               {"clip", clamp},
               {"clamp_min", clamp},
               {"clamp_max", clamp},
               {"hardtanh", clamp},
               {"addcmul", addc},
               {"addcdiv", addc},
               {"lerp", lerp},
               {"mm", contraction},
               {"bmm", contraction},
               {"matmul", contraction},
               {"mv", contraction},
               {"dot", contraction},
               {"linear", contraction},
               {"outer", contraction},
               {"ger", contraction},
               {"addmm", added_product},
               {"baddbmm", added_product},
               {"addmv", added_product},
               {"sum", reduction},
               {"mean", reduction},
               {"prod", reduction},
               {"amax", reduction},
               {"amin", reduction},
               {"var", reduction},
               {"std", reduction},
               {"norm", reduction},
               {"linalg_vector_norm", reduction},
               {"logsumexp", reduction},
               {"softmax", softmax},
               {"_softmax", softmax},
               {"log_softmax", softmax},
               {"_log_softmax", softmax},
               {"cumsum", running},
               {"cumprod", running},
               {"layer_norm", layer_norm},
               {"rms_norm", layer_norm},
               {"scaled_dot_product_attention", attention}};
  for (size_t i = 0; i < sizeof table / sizeof *table; i++)
    if (strcmp(table[i].name, name) == 0) return table[i].f;
  return NULL;
}

/* The comparison that the operator is: two letters. */
static const char *comparison(const char *name) {
  static const char *const names[][2] = {
      {"eq", "eq"},         {"ne", "ne"},      {"lt", "lt"},           {"le", "le"},
      {"gt", "gt"},         {"ge", "ge"},      {"not_equal", "ne"},    {"less", "lt"},
      {"less_equal", "le"}, {"greater", "gt"}, {"greater_equal", "ge"}};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (strcmp(names[i][0], name) == 0) return names[i][1];
  return NULL;
}

const vp_tensor *vp_compute(vp *v, const vp_call *k, bool *known) {
  int cost = 1;
  const vn_unary one = vn_unary_find(k->name, &cost);
  const char *compares = comparison(k->name);
  for (size_t i = 0; i < k->n + 1; i++) {
    const rule_dtype d = i < k->n ? k->in[i]->dtype : k->got[0]->dtype;
    if (rule_dtype_is_complex(d)) return vp_compute_complex(v, k, known);
  }
  *known = true;
  if (compares && k->call->n == 2) return compared(v, k, compares);
  if (!rule_dtype_is_float(k->got[0]->dtype)) return *known = false, NULL;
  if (one && k->call->n == 1) return unary(v, k, one, cost);
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
    if (strcmp(shapes[i].name, k->name) == 0) return of_shape(v, k, &shapes[i]);
  const compute f = find(k->name);
  if (f) return f(v, k);
  /* max and min of a dimension, of all, or of two tensors */
  const bool extreme = strcmp(k->name, "max") == 0 || strcmp(k->name, "min") == 0;
  if (extreme && vp_arg(k, "other"))
    return binary(v, k, vp_arg(k, "self"), vp_arg(k, "other"), k->name[1] == 'a' ? vn_max : vn_min,
                  1);
  if (extreme) return reduction(v, k);
  const vn_binary two = vn_binary_find(k->name, &cost);
  if (two && k->call->n == 2) return binary(v, k, k->call->child[0], k->call->child[1], two, cost);
  *known = false;
  return NULL;
}
#endif
