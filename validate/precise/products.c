/* Sums of products of tensors of intervals: matrices in batches, with a bias, and attention. */
#include "validate/precise/ops_int.h"

#ifdef VAL_HAS_MPFR
#include <math.h>
#include <string.h>

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
  vn *p = vp_new_number(v), *q = vp_new_number(v), *s = vp_new_number(v);
  if (!p || !q || !s || a.columns != b.rows) return false;
  for (int64_t batch = 0; batch < batches; batch++) {
    const int64_t from_a = batch_of(&a, lead, batch) * a.rows * a.columns,
                  from_b = batch_of(&b, lead, batch) * b.rows * b.columns;
    for (int64_t i = 0; i < a.rows; i++)
      for (int64_t j = 0; j < b.columns; j++, x++) {
        if (!vp_go(v, 2 * a.columns)) return false;
        vn_int(v, s, 0);
        for (int64_t k = 0; k < a.columns; k++) {
          vp_element(v, a.t, from_a + i * a.by_row + k * a.by_column, p);
          vp_element(v, b.t, from_b + k * b.by_row + j * b.by_column, q);
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
static rule_shape vp_leading(const matrix *a, const matrix *b, int64_t *batches) {
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
  vp_tensor *out = a && b && a->shape.rank && b->shape.rank ? vp_result(v, k) : NULL;
  if (!out || (turned && b->shape.rank != 2)) return NULL;
  const matrix x = matrix_of(a, true, false), y = matrix_of(b, false, turned);
  int64_t batches;
  const rule_shape lead = vp_leading(&x, &y, &batches);
  if (x.columns != y.rows || out->n != batches * x.rows * y.columns) return NULL;
  return multiply(v, x, y, &lead, batches, out->x, times) ? out : NULL;
}

static const vp_tensor *plus_bias(vp *v, const vp_call *k, const vp_tensor *y,
                                  const rule_term *bias, const vn *times) {
  vp_operand b;
  vn *t = vp_new_number(v);
  if (!y || !vp_is_given(bias)) return y;
  if (!t || !vp_operand_of(v, k, bias, &y->shape, &b)) return NULL;
  for (int64_t i = 0; i < y->n && vp_go(v, 2); i++) {
    vp_operand_get(v, &b, &y->shape, i, t);
    if (times) vn_mul(v, t, t, times);
    vn_add(v, &y->x[i], &y->x[i], t);
  }
  return y;
}

const vp_tensor *vp_added_product(vp *v, const vp_call *k) { /* beta * self + alpha * a @ b */
  vn *alpha = NULL, *beta = NULL;
  if (!vp_literal(v, vp_arg(k, "alpha"), &alpha) || !vp_literal(v, vp_arg(k, "beta"), &beta))
    return NULL;
  return plus_bias(v, k, product(v, k, vp_operand_at(k, 1), vp_operand_at(k, 2), false, alpha),
                   vp_arg(k, "self"), beta);
}

const vp_tensor *vp_contraction(vp *v, const vp_call *k) {
  if (strcmp(k->name, "linear") == 0)
    return plus_bias(v, k, product(v, k, vp_operand_at(k, 0), vp_operand_at(k, 1), true, NULL),
                     vp_arg(k, "bias"), NULL);
  if (strcmp(k->name, "outer") == 0 || strcmp(k->name, "ger") == 0) {
    const vp_tensor *a = vp_operand_at(k, 0), *b = vp_operand_at(k, 1);
    vp_tensor *out = a && b ? vp_result(v, k) : NULL;
    for (int64_t i = 0; out && i < out->n && vp_go(v, 1); i++)
      vn_mul(v, &out->x[i], &a->x[i / b->n], &b->x[i % b->n]);
    return out;
  }
  return product(v, k, vp_operand_at(k, 0), vp_operand_at(k, 1), false, NULL);
}

const vp_tensor *vp_attention(vp *v, const vp_call *k) {
  const vp_tensor *q = vp_operand_at(k, 0), *key = vp_operand_at(k, 1),
                  *value = vp_operand_at(k, 2);
  const rule_term *scale = vp_arg(k, "scale"), *mask = vp_arg(k, "attn_mask");
  double dropout = 0;
  if (!q || !key || !value || vp_flag(k, "enable_gqa", false) ||
      !vp_number_of(vp_arg(k, "dropout_p"), &dropout) || dropout > 0 || q->shape.rank < 2)
    return NULL;
  const matrix a = matrix_of(q, true, false), b = matrix_of(key, false, true),
               c = matrix_of(value, false, false);
  int64_t batches;
  const rule_shape lead = vp_leading(&a, &b, &batches);
  rule_shape s = lead;
  s.dim[s.rank++] = a.rows, s.dim[s.rank++] = b.columns;
  vp_tensor *scores = vp_new(v, RULE_F64, &s), *out = vp_result(v, k);
  vn *by = NULL, *t = vp_new_number(v);
  vp_operand m;
  if (!scores || !out || !t) return NULL;
  if (vp_is_given(scale) ? !vp_literal(v, scale, &by) : !(by = vp_new_number(v))) return NULL;
  if (!vp_is_given(scale)) vn_int(v, by, a.columns), vn_sqrt(v, by, by), vn_recip(v, by, by);
  if (!multiply(v, a, b, &lead, batches, scores->x, by)) return NULL;
  if (vp_is_given(mask) && !vp_operand_of(v, k, mask, &s, &m)) return NULL;
  for (int64_t i = 0; i < scores->n && vp_go(v, 2); i++) {
    const int64_t row = i / b.columns % a.rows, column = i % b.columns;
    bool off = vp_flag(k, "is_causal", false) && column > row;
    if (vp_is_given(mask)) vp_operand_get(v, &m, &s, i, t);
    if (vp_is_given(mask) && m.t && m.t->plain) off |= mpfr_zero_p(&t->lo) != 0;
    else if (vp_is_given(mask)) vn_add(v, &scores->x[i], &scores->x[i], t);
    if (off) vn_double(v, &scores->x[i], -(double)INFINITY);
  }
  vp_tensor *p = vp_softmax_of(v, scores, s.rank - 1, false);
  if (!p || !multiply(v, matrix_of(p, true, false), c, &lead, batches, out->x, NULL)) return NULL;
  return out;
}
#endif
