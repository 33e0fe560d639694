/* Definitions for the symbolic prover: tensors turned by quarters, laid side by side, cut at given
 * places, spread on a grid, and the windows and enlargements of images. All of them only move
 * elements. */
#include <string.h>

#include "validate/ops/ops.h"

/* ---- turned ---- */

/* p[0]: quarters (1 to 3); k[0], k[1]: from which dimension to which. */
static sx quarter_elem(sc *c, const pt_tensor *t, const sx *idx) {
  const uint32_t d = (uint32_t)t->k[0], e = (uint32_t)t->k[1];
  sx in[RULE_MAX_RANK];
  memcpy(in, idx, t->rank * sizeof *in);
  const sx i = t->which == 2 ? idx[d] : idx[e], j = t->which == 2 ? idx[e] : idx[d];
  const sx last_d = sx_sub(c, t->in[0]->dim[d], c->one),
           last_e = sx_sub(c, t->in[0]->dim[e], c->one);
  in[d] = t->which == 1 ? i : sx_sub(c, last_d, i);
  in[e] = t->which == 3 ? j : sx_sub(c, last_e, j);
  return pt_at(c, t->in[0], in);
}

static const pt_value *define_quarters(pt_args *a, int which) {
  (void)which;
  const pt_tensor *x = pt_arg_tensor(a, "self");
  uint32_t d[RULE_MAX_RANK], n;
  int64_t k;
  if (!x || x->rank < 2 || !pt_arg_dims(a, "dims", x, d, &n) || n != 2 || d[0] == d[1] ||
      !sx_is_int(a->c, pt_arg_size(a, "k", 1), &k))
    return NULL;
  k = (k % 4 + 4) % 4;
  if (k == 0) return pt_one(a->c, x);
  pt_tensor *t = pt_like(a->c, x, x->kind, quarter_elem);
  if (!t) return NULL;
  t->which = (int)k;
  for (uint32_t i = 0; i < 2; i++) {
    t->k[i] = (int32_t)d[i];
    if (k != 2) t->dim[d[i]] = x->dim[d[1 - i]];
  }
  return pt_one(a->c, t);
}

/* ---- laid out ---- */

enum { MOST_TENSORS = 16 };

static const pt_value *define_block_diag(pt_args *a, int which) {
  (void)which;
  sc *c = a->c;
  const pt_tensor *const *x, *row[MOST_TENSORS];
  size_t n;
  sx before = c->zero, all = c->zero;
  if (!pt_arg_list(a, "tensors", &x, &n) || n == 0 || n > MOST_TENSORS) return NULL;
  for (size_t i = 0; i < n; i++) {
    if (!x[i] || x[i]->lead || x[i]->rank != 2 || x[i]->kind != x[0]->kind || x[i]->kind == 'b')
      return NULL;
    all = sx_add(c, all, x[i]->dim[1]);
  }
  for (size_t i = 0; i < n; i++) {
    const sx end = sx_add(c, before, x[i]->dim[1]);
    if (!(row[i] = pt_pad(c, x[i], 1, before, sx_sub(c, all, end), c->zero))) return NULL;
    before = end;
  }
  return pt_one(c, pt_cat(c, row, n, 0));
}

enum { GRID_ROWS_FIRST, GRID_COLUMNS_FIRST };

/* Tensor i of n along dimension i (the first two exchanged for "xy"). */
static const pt_value *define_meshgrid(pt_args *a, int which) {
  sc *c = a->c;
  const pt_tensor *const *x, *out[RULE_MAX_RANK];
  size_t n;
  sx dim[RULE_MAX_RANK];
  if (!pt_arg_list(a, "tensors", &x, &n) || n == 0 || n > RULE_MAX_RANK) return NULL;
  if (pt_arg(a, "indexing")) {
    which = pt_arg_is(a, "indexing", "xy") ? GRID_COLUMNS_FIRST : GRID_ROWS_FIRST;
    if (which == GRID_ROWS_FIRST && !pt_arg_is(a, "indexing", "ij")) return NULL;
  }
  const bool exchanged = which == GRID_COLUMNS_FIRST && n > 1;
  for (size_t i = 0; i < n; i++) {
    if (!x[i] || x[i]->lead || x[i]->rank > 1 || x[i]->kind != x[0]->kind) return NULL;
    dim[exchanged && i < 2 ? 1 - i : i] = x[i]->rank ? x[i]->dim[0] : c->one;
  }
  for (size_t i = 0; i < n; i++) {
    sx own[RULE_MAX_RANK];
    const size_t at = exchanged && i < 2 ? 1 - i : i;
    for (size_t k = 0; k < n; k++) own[k] = k == at ? dim[k] : c->one;
    const pt_tensor *r = pt_reshape(c, x[i], own, (uint32_t)n);
    if (!r || !(out[i] = pt_expand(c, r, dim, (uint32_t)n, 0))) return NULL;
  }
  return pt_list(c, out, n);
}

static const pt_value *define_broadcast(pt_args *a, int which) {
  (void)which;
  const pt_tensor *const *x, *out[MOST_TENSORS];
  size_t n;
  sx dim[RULE_MAX_RANK];
  uint32_t rank;
  uint64_t lead;
  if (!pt_arg_list(a, "tensors", &x, &n) || n == 0 || n > MOST_TENSORS) return NULL;
  for (size_t i = 0; i < n; i++)
    if (!x[i]) return NULL;
  if (!pt_broadcast(a->c, x, n, dim, &rank, &lead)) return NULL;
  for (size_t i = 0; i < n; i++)
    if (!(out[i] = pt_expand(a->c, x[i], dim, rank, lead))) return NULL;
  return pt_list(a->c, out, n);
}

/* ---- windows of an image, as columns ---- */

/* [batch, channel, i, j, y, x] of the framed in[0]; p[0..1] stride, p[2..3] dilation. */
static sx columns_elem(sc *c, const pt_tensor *t, const sx *idx) {
  sx in[4] = {idx[0], idx[1]};
  for (uint32_t k = 0; k < 2; k++)
    in[2 + k] = sx_add(c, sx_mul(c, idx[4 + k], t->p[k]), sx_mul(c, idx[2 + k], t->p[2 + k]));
  return pt_at(c, t->in[0], in);
}

/* Sizes and numbers that may be 0 are refused.
 *
 * call: "(var x f ($P $A $B $C))" "(aten::im2col x (list 1 1) (list 1 1) (list 1 1) (list 1 1))"
 * call: "(var x f (1 2 $B 3))" "(aten::im2col x (list $A 2) (list 1 $C) (list 1 0) (list $D 1))" */
static const pt_value *define_columns(pt_args *a, int which) {
  (void)which;
  static const char *const names[] = {"kernel_size", "dilation", "padding", "stride"};
  sc *c = a->c;
  const pt_tensor *x = pt_arg_tensor(a, "self");
  sx v[4][RULE_MAX_RANK];
  uint32_t n;
  if (!x || x->lead || x->kind != 'f' || (x->rank != 3 && x->rank != 4)) return NULL;
  for (int i = 0; i < 4; i++) {
    if (!pt_arg_sizes(a, names[i], v[i], &n) || n != 2) return NULL;
    for (uint32_t k = 0; k < 2; k++)
      if (!sc_require(c, i == 2 ? sx_le(c, c->zero, v[i][k]) : sx_lt(c, c->zero, v[i][k])))
        return NULL;
  }
  const bool batched = x->rank == 4;
  if (!batched) x = pt_unsqueeze(c, x, 0);
  pt_tensor *t = pt_new(c, 'f', columns_elem);
  if (!t || !x) return NULL;
  /* Anything but the batch has to have elements. */
  for (uint32_t k = 1; k < 4; k++)
    if (!sc_require(c, sx_lt(c, c->zero, x->dim[k]))) return NULL;
  t->rank = 6;
  t->dim[0] = x->dim[0], t->dim[1] = x->dim[1];
  for (uint32_t k = 0; k < 2; k++) {
    const sx span = sx_add(c, sx_mul(c, v[1][k], sx_sub(c, v[0][k], c->one)), c->one);
    if (!(x = pt_frame(c, x, 2 + k, v[2][k], v[2][k])) ||
        !sc_require(c, sx_le(c, span, x->dim[2 + k])))
      return NULL;
    t->p[k] = v[3][k], t->p[2 + k] = v[1][k];
    t->dim[2 + k] = v[0][k];
    t->dim[4 + k] = sx_add(c, sx_div(c, sx_sub(c, x->dim[2 + k], span), v[3][k]), c->one);
  }
  t->in[0] = x;
  const sx flat[3] = {t->dim[0], sx_prod_dims(c, t->dim + 1, 3), sx_prod_dims(c, t->dim + 4, 2)};
  return pt_one(c, pt_reshape(c, t, flat + !batched, batched ? 3 : 2));
}

/* ---- enlarged ---- */

/* Each element as often as the result is larger; by other ratios it is not modelled. */
static const pt_value *define_enlarged(pt_args *a, int dims) {
  sc *c = a->c;
  const bool vec = !pt_arg(a, "self");
  const pt_tensor *x = pt_arg_tensor(a, vec ? "input" : "self");
  const rule_term *factor = vec ? pt_arg(a, "scale_factors") : NULL;
  const uint32_t n = (uint32_t)dims;
  sx size[RULE_MAX_RANK], times;
  uint32_t m = 0;
  if (!x || x->lead || x->kind != 'f' || x->rank != n + 2 || pt_arg(a, "scales") ||
      pt_arg(a, "scales_h") || pt_arg(a, "scales_w") || pt_arg(a, "scales_d"))
    return NULL;
  if (factor && (pt_arg(a, "output_size") || factor->kind != RULE_LIST || factor->n != n))
    return NULL;
  if (!factor && (!pt_arg_sizes(a, "output_size", size, &m) || m != n)) return NULL;
  for (uint32_t k = 1; k < x->rank; k++)
    if (!sc_require(c, sx_lt(c, c->zero, x->dim[k]))) return NULL;
  for (uint32_t k = 0; k < n; k++) {
    if (factor) {
      const rule_term *f = factor->child[k];
      const double whole = f->kind == RULE_FLOAT ? f->u.f
                           : f->kind == RULE_INT ? (double)f->u.i
                                                 : 0;
      if (!(whole >= 1 && whole <= 1024) || whole != (double)(int64_t)whole) return NULL;
      times = sx_int(c, (int64_t)whole);
    } else if (!sc_require(c, sx_lt(c, c->zero, size[k])) ||
               !sx_divides(c, x->dim[2 + k], size[k], &times)) {
      return NULL;
    }
    if (!(x = pt_repeat_each(c, x, 2 + k, times))) return NULL;
  }
  return pt_one(c, x);
}

static const pt_definition table[] = {
    {"rot90", define_quarters, 0},
    {"block_diag", define_block_diag, 0},
    {"meshgrid", define_meshgrid, GRID_ROWS_FIRST},
    {"broadcast_tensors", define_broadcast, 0},
    {"im2col", define_columns, 0},
    {"upsample_nearest1d", define_enlarged, 1},
    {"upsample_nearest2d", define_enlarged, 2},
    {"upsample_nearest3d", define_enlarged, 3},
    {"_upsample_nearest_exact1d", define_enlarged, 1},
    {"_upsample_nearest_exact2d", define_enlarged, 2},
    {"_upsample_nearest_exact3d", define_enlarged, 3},
};

bool pt_define_views(const char *name, pt_definition *out) {
  return pt_find(table, sizeof table / sizeof *table, name, out);
}
