/* Two tensors with the same elements: the layout term (unsqueeze, reshape, transpose, permute) that
 * turns one into the other, read off the values. */
#include "synth/relate/layout.h"
#include "rules/names.h"

#include <math.h>
#include <string.h>

enum { MAX_PERM = 5 }; /* dimensions other than 1 that are permuted: 120 orders at most */

static rule_shape squeezed(const rule_shape *s) {
  rule_shape q = {0};
  for (uint32_t i = 0; i < s->rank; i++)
    if (s->dim[i] != 1) q.dim[q.rank++] = s->dim[i];
  return q;
}

static bool close_enough(double a, double b, double tol) {
  if (a == b) return true;
  if (isnan(a) || isnan(b)) return isnan(a) && isnan(b);
  return fabs(a - b) <= tol;
}

/* to[i0, .., ik] = y[.., at p[j] the index ij, ..] for y a reshape of `from` to shape q, q[p[j]] =
 * to's size j. */
static bool permuted(const rule_tensor *from, const rule_tensor *to, const rule_shape *t,
                     const uint32_t *p, double tol) {
  int64_t stride[RULE_MAX_RANK], q[RULE_MAX_RANK], step = 1;
  for (uint32_t j = 0; j < t->rank; j++) q[p[j]] = t->dim[j];
  for (uint32_t k = t->rank; k-- > 0;) {
    stride[k] = step;
    step *= q[k];
  }
  int64_t idx[RULE_MAX_RANK] = {0};
  for (int64_t e = 0; e < to->numel; e++) {
    int64_t at = 0;
    for (uint32_t j = 0; j < t->rank; j++) at += idx[j] * stride[p[j]];
    if (!close_enough(rule_tensor_get(from, at), rule_tensor_get(to, e), tol)) return false;
    for (uint32_t j = t->rank; j-- > 0;) {
      if (++idx[j] < t->dim[j]) break;
      idx[j] = 0;
    }
  }
  return true;
}

bool rel_next_permutation(uint32_t *p, uint32_t n) {
  if (n < 2) return false;
  uint32_t i = n - 1;
  while (i > 0 && p[i - 1] >= p[i]) i--;
  if (i == 0) return false;
  uint32_t j = n - 1;
  while (p[j] <= p[i - 1]) j--;
  uint32_t x = p[i - 1];
  p[i - 1] = p[j];
  p[j] = x;
  for (uint32_t a = i, b = n - 1; a < b; a++, b--) {
    x = p[a];
    p[a] = p[b];
    p[b] = x;
  }
  return true;
}

static const rule_term *ints(iso_arena *a, const int64_t *v, uint32_t n) {
  const rule_term *c[RULE_MAX_RANK];
  for (uint32_t i = 0; i < n; i++) c[i] = rule_int(a, v[i]);
  return rule_list(a, c, n);
}

static const rule_term *op2(iso_arena *a, const char *op, const rule_term *x, const rule_term *y) {
  const rule_term *c[2] = {x, y};
  return rule_op(a, op, c, 2);
}

/* From shape `has` to shape `want`, the same elements in the same order. */
static const rule_term *regroup(iso_arena *a, const rule_term *x, const rule_shape *has,
                                const rule_shape *want) {
  if (rule_shape_eq(has, want)) return x;
  uint32_t k = 0;
  bool inserts = want->rank > has->rank;
  uint32_t at[RULE_MAX_RANK], n_at = 0;
  for (uint32_t i = 0; i < want->rank && inserts; i++) {
    if (k < has->rank && want->dim[i] == has->dim[k]) k++;
    else if (want->dim[i] == 1) at[n_at++] = i;
    else inserts = false;
  }
  if (inserts && k == has->rank) {
    for (uint32_t i = 0; i < n_at; i++) x = op2(a, OP_UNSQUEEZE, x, rule_int(a, at[i]));
    return x;
  }
  return op2(a, OP_RESHAPE, x, ints(a, want->dim, want->rank));
}

const rule_term *synth_layout(iso_arena *a, rule_schemas *sc, const rule_tensor *from,
                              const rule_tensor *to, const rule_oracle *oracle, double rel_tol) {
  (void)sc;
  if (from->numel != to->numel || from->dtype != to->dtype) return NULL;
  const rule_term *x = rule_var(a, 0);
  if (oracle->compare(oracle->ctx, to, from, rel_tol).equal)
    return regroup(a, x, &from->shape, &to->shape);
  double scale = 0;
  for (int64_t i = 0; i < to->numel; i++) {
    const double v = fabs(rule_tensor_get(to, i));
    if (v > scale && v < 1e30) scale = v;
  }
  const rule_shape t = squeezed(&to->shape), f = squeezed(&from->shape);
  if (t.rank < 2 || t.rank > MAX_PERM) return NULL;
  uint32_t p[MAX_PERM];
  for (uint32_t i = 0; i < t.rank; i++) p[i] = i;
  while (rel_next_permutation(p, t.rank)) {
    if (!permuted(from, to, &t, p, rel_tol * scale)) continue;
    rule_shape q = {.rank = t.rank};
    for (uint32_t j = 0; j < t.rank; j++) q.dim[p[j]] = t.dim[j];
    (void)f;
    x = regroup(a, x, &from->shape, &q);
    uint32_t moved = 0, first = 0, last = 0;
    int64_t order[MAX_PERM];
    for (uint32_t j = 0; j < t.rank; j++) {
      order[j] = p[j];
      if (p[j] == j) continue;
      if (!moved++) first = j;
      last = j;
    }
    if (moved == 2) {
      const rule_term *c[3] = {x, rule_int(a, first), rule_int(a, last)};
      x = rule_op(a, OP_TRANSPOSE_INT, c, 3);
    } else {
      x = op2(a, OP_PERMUTE, x, ints(a, order, t.rank));
    }
    return regroup(a, x, &t, &to->shape);
  }
  return NULL;
}
