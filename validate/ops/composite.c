/* Definitions for the symbolic prover: operators that are made of others, and sums into the places
 * that an index names. */
#include <string.h>

#include "validate/ops/ops.h"

/* ---- element by element ---- */

/* The constants are ATen's. */
static sx selu(sc *c, sx x) {
  const sx scale = sx_double(c, 1.0507009873554804934193349852946),
           alpha = sx_double(c, 1.6732632423543772848170429916717);
  const sx below = sx_mul(c, sx_mul(c, scale, alpha), sx_sub(c, sx_exp(c, x), c->one));
  return sx_ite(c, sx_lt(c, c->zero, x), sx_mul(c, scale, x), below);
}

static sx finite_end(sc *c, sx x, const void *ctx) {
  (void)ctx;
  if (x == c->neginf) sc_fail(c, "nan_to_num of minus infinity");
  return x;
}
static sx finite(sc *c, sx x) { return sx_lift(c, x, finite_end, NULL); }

static sx logit(sc *c, sx x) {
  sc_defined_if(c, sx_and(c, sx_lt(c, c->zero, x), sx_lt(c, x, c->one)));
  return sx_sub(c, sx_log(c, x), sx_log(c, sx_sub(c, c->one, x)));
}

/* Of x between p[0] and p[1]. */
static sx bounded_logit(sc *c, const pt_tensor *t, const sx *idx) {
  return logit(c, sx_min(c, sx_max(c, pt_at(c, t->in[0], idx), t->p[0]), t->p[1]));
}

static const pt_value *define_logit(pt_args *a, int which) {
  (void)which;
  sc *c = a->c;
  const pt_tensor *x = pt_arg_tensor(a, "self");
  char kind;
  if (!x || x->kind != 'f') return NULL;
  if (!pt_arg(a, "eps")) return pt_one(c, pt_unary(c, x, logit));
  pt_tensor *t = pt_like(c, x, 'f', bounded_logit);
  const sx eps = pt_arg_scalar(a, "eps", &kind);
  uint32_t q;
  const double least = eps && sx_is_q(c, eps, &q) ? pv_q_value(&c->q, q) : -1;
  if (!t || !(least >= 0 && least < 0.5)) return NULL; /* others clamp to no interval */
  t->p[0] = eps;
  t->p[1] = pt_literal(c, 1 - least); /* the kernel takes it off in floating point */
  return pt_one(c, t);
}

enum { SELU, NAN_TO_NUM };

static const pt_value *define_unary(pt_args *a, int which) {
  static sx (*const f[])(sc * c, sx x) = {selu, finite};
  const pt_tensor *x = pt_arg_tensor(a, "self");
  return x && x->kind == 'f' ? pt_one(a->c, pt_unary(a->c, x, f[which])) : NULL;
}

/* p[0]: the bound. */
static sx hardshrink_elem(sc *c, const pt_tensor *t, const sx *idx) {
  const sx x = pt_at(c, t->in[0], idx), l = t->p[0];
  return sx_ite(c, sx_and(c, sx_le(c, sx_neg(c, l), x), sx_le(c, x, l)), c->zero, x);
}
static sx softshrink_elem(sc *c, const pt_tensor *t, const sx *idx) {
  const sx x = pt_at(c, t->in[0], idx), l = t->p[0];
  const sx below = sx_ite(c, sx_lt(c, x, sx_neg(c, l)), sx_add(c, x, l), c->zero);
  return sx_ite(c, sx_lt(c, l, x), sx_sub(c, x, l), below);
}
/* Integers times or by p[0], a power of two; 0: by all their bits but the sign. */
static sx shift_elem(sc *c, const pt_tensor *t, const sx *idx) {
  const sx x = pt_at(c, t->in[0], idx);
  if (t->p[0] == c->zero) return sx_ite(c, sx_lt(c, x, c->zero), c->minus_one, c->zero);
  return t->which ? sx_div(c, x, t->p[0]) : sx_mul(c, x, t->p[0]);
}

enum { HARDSHRINK, SOFTSHRINK };

static const pt_value *define_shrink(pt_args *a, int which) {
  const pt_tensor *x = pt_arg_tensor(a, "self");
  char kind;
  pt_tensor *t =
      x && x->kind == 'f'
          ? pt_like(a->c, x, 'f', which == HARDSHRINK ? hardshrink_elem : softshrink_elem)
          : NULL;
  if (!t) return NULL;
  t->p[0] = pt_arg_scalar(a, "lambd", &kind);
  return which == HARDSHRINK || sc_require(a->c, sx_le(a->c, a->c->zero, t->p[0])) ? pt_one(a->c, t)
                                                                                   : NULL;
}

/* A simulated quantisation (fake_quantize): the nearest step of a scale p[0] from a zero p[1],
 * clamped to p[2] and p[3]; KEPT: whether it was within these. */
enum { QUANTIZED, KEPT };

static sx quantized_elem(sc *c, const pt_tensor *t, const sx *idx) {
  const sx x = sx_mul(c, pt_at(c, t->in[0], idx), sx_inv(c, t->p[0]));
  const sx step = sx_add(c, sx_fn(c, F_ROUND, x), t->p[1]);
  if (t->which == KEPT) return sx_and(c, sx_le(c, t->p[2], step), sx_le(c, step, t->p[3]));
  const sx kept = sx_min(c, sx_max(c, step, t->p[2]), t->p[3]);
  return sx_mul(c, sx_sub(c, kept, t->p[1]), t->p[0]);
}

static const pt_value *define_quantized(pt_args *a, int masked) {
  static const char *const names[] = {"scale", "zero_point", "quant_min", "quant_max"};
  const pt_tensor *x = pt_arg_tensor(a, "self"), *out[2];
  sc *c = a->c;
  sx p[4];
  char kind;
  if (!x || x->kind != 'f') return NULL;
  for (int i = 0; i < 4; i++) p[i] = pt_arg_scalar(a, names[i], &kind);
  if (!sc_require(c, sx_le(c, p[2], p[1])) || !sc_require(c, sx_le(c, p[1], p[3])) ||
      !sc_require(c, sx_not(c, sx_eq(c, p[0], c->zero))))
    return NULL;
  for (int i = 0; i < 2; i++) {
    pt_tensor *t = pt_like(c, x, i == KEPT ? 'b' : 'f', quantized_elem);
    if (!t) return NULL;
    t->which = i;
    memcpy(t->p, p, sizeof p);
    out[i] = t;
  }
  return masked ? pt_list(c, out, 2) : pt_one(c, out[0]);
}

static const pt_value *define_shift(pt_args *a, int right) {
  const pt_tensor *x = pt_arg_tensor(a, "self");
  const rule_term *by = pt_arg(a, "other");
  const bool sign = right && by && by->kind == RULE_INT && by->u.i == 63;
  pt_tensor *t =
      x && x->kind == 'i' && by && by->kind == RULE_INT && by->u.i >= 0 && (by->u.i < 31 || sign)
          ? pt_like(a->c, x, 'i', shift_elem)
          : NULL;
  if (!t) return NULL;
  t->which = right;
  t->p[0] = sign ? a->c->zero : sx_int(a->c, (int64_t)1 << by->u.i);
  return pt_one(a->c, t);
}

/* in[0] and in[1] broadcast. */
static sx fmod_elem(sc *c, const pt_tensor *t, const sx *idx) {
  const sx x = pt_at(c, t->in[0], idx), y = pt_at(c, t->in[1], idx);
  sc_defined_if(c, sx_not(c, sx_eq(c, y, c->zero)));
  return sx_sub(c, x, sx_mul(c, y, sx_fn(c, F_TRUNC, sx_mul(c, x, sx_inv(c, y)))));
}
static sx heaviside_elem(sc *c, const pt_tensor *t, const sx *idx) {
  const sx x = pt_at(c, t->in[0], idx);
  return sx_ite(c, sx_eq(c, x, c->zero), pt_at(c, t->in[1], idx),
                sx_ite(c, sx_lt(c, x, c->zero), c->zero, c->one));
}
static sx hypot_elem(sc *c, const pt_tensor *t, const sx *idx) {
  return sx_sqrt(
      c, sx_add(c, sx_powi(c, pt_at(c, t->in[0], idx), 2), sx_powi(c, pt_at(c, t->in[1], idx), 2)));
}
static sx slope_elem(sc *c, const pt_tensor *t, const sx *idx) {
  const sx x = pt_at(c, t->in[0], idx);
  return sx_ite(c, sx_lt(c, c->zero, x), x, sx_mul(c, pt_at(c, t->in[1], idx), x));
}

/* The result is of x's kind. */
static const pt_tensor *pairwise(sc *c, const pt_tensor *x, const pt_tensor *y, pt_elem f) {
  const pt_tensor *both[2] = {x, y};
  sx dim[RULE_MAX_RANK];
  uint32_t rank;
  uint64_t lead;
  if (!x || !y || x->kind == 'b' || y->kind == 'b' || (x->kind == 'i' && y->kind == 'f') ||
      !pt_broadcast(c, both, 2, dim, &rank, &lead))
    return NULL;
  x = pt_expand(c, x, dim, rank, lead);
  y = pt_expand(c, y, dim, rank, lead);
  pt_tensor *t = x && y ? pt_like(c, x, x->kind, f) : NULL;
  if (t) t->in[1] = y;
  return t;
}

enum { FMOD, HEAVISIDE, HYPOT, SLOPE, PRELU, COPYSIGN, XLOGY };

/* The real number 0 has no sign: it counts as positive. */
static sx copysign_elem(sc *c, const pt_tensor *t, const sx *idx) {
  const sx x = sx_abs(c, pt_at(c, t->in[0], idx)), y = pt_at(c, t->in[1], idx);
  return sx_ite(c, sx_lt(c, y, c->zero), sx_neg(c, x), x);
}

/* x log y, and 0 where x is. */
static sx xlogy_elem(sc *c, const pt_tensor *t, const sx *idx) {
  const sx x = pt_at(c, t->in[0], idx), y = pt_at(c, t->in[1], idx), none = sx_eq(c, x, c->zero);
  sc_defined_if(c, sx_or(c, none, sx_lt(c, c->zero, y)));
  return sx_ite(c, none, c->zero, sx_mul(c, x, sx_log(c, y)));
}

static const pt_value *define_pairwise(pt_args *a, int which) {
  static const pt_elem f[] = {fmod_elem,  heaviside_elem, hypot_elem, slope_elem,
                              slope_elem, copysign_elem,  xlogy_elem};
  static const char *const second[] = {"other",  "values", "other", "weight",
                                       "weight", "other",  "other"};
  sc *c = a->c;
  const pt_tensor *x = pt_arg_tensor(a, "self"), *y = pt_arg_tensor(a, second[which]);
  if (!x || !y || (which != FMOD && (x->kind != 'f' || y->kind != 'f'))) return NULL;
  if (which == PRELU) { /* one slope, or one for each channel (dimension 1) */
    sx dim[RULE_MAX_RANK];
    bool one;
    if (y->rank != 1 || y->lead || x->lead || !sc_decide(c, sx_eq(c, y->dim[0], c->one), &one))
      return NULL;
    if (!one && (x->rank < 2 ? !sc_require(c, c->no) : !sc_require_eq(c, y->dim[0], x->dim[1])))
      return NULL;
    for (uint32_t k = 0; k < x->rank; k++) dim[k] = k == 1 ? y->dim[0] : c->one;
    y = pt_reshape(c, y, dim, x->rank);
  }
  return pt_one(c, pairwise(c, x, y, f[which]));
}

/* ---- layout ---- */

enum { SHUFFLE, UNSHUFFLE };

static const pt_value *define_shuffle(pt_args *a, int which) {
  sc *c = a->c;
  const pt_tensor *x = pt_arg_tensor(a, "self");
  sx dim[RULE_MAX_RANK], channels, h, w;
  uint32_t order[RULE_MAX_RANK];
  if (!x || x->lead || x->rank < 3 || x->rank + 2 > RULE_MAX_RANK) return NULL;
  const uint32_t n = x->rank - 3;
  const sx r = pt_arg_size(a, which == SHUFFLE ? "upscale_factor" : "downscale_factor", 1);
  if (!sc_require(c, sx_lt(c, c->zero, r))) return NULL;
  memcpy(dim, x->dim, sizeof dim);
  for (uint32_t k = 0; k < n; k++) order[k] = k;
  if (which == SHUFFLE) { /* [C, r, r, H, W] as [C, H, r, W, r] */
    static const uint32_t to[] = {0, 3, 1, 4, 2};
    if (!sc_multiple(c, x->dim[n], sx_mul(c, r, r), &channels)) return NULL;
    h = x->dim[n + 1], w = x->dim[n + 2];
    dim[n] = channels, dim[n + 1] = dim[n + 2] = r, dim[n + 3] = h, dim[n + 4] = w;
    for (uint32_t k = 0; k < 5; k++) order[n + k] = n + to[k];
  } else { /* [C, H, r, W, r] as [C, r, r, H, W] */
    static const uint32_t to[] = {0, 2, 4, 1, 3};
    channels = x->dim[n];
    if (!sc_multiple(c, x->dim[n + 1], r, &h) || !sc_multiple(c, x->dim[n + 2], r, &w)) return NULL;
    dim[n] = channels, dim[n + 1] = h, dim[n + 2] = r, dim[n + 3] = w, dim[n + 4] = r;
    for (uint32_t k = 0; k < 5; k++) order[n + k] = n + to[k];
  }
  const pt_tensor *y = pt_reshape(c, x, dim, x->rank + 2);
  y = y ? pt_permute(c, y, order) : NULL;
  dim[n] = which == SHUFFLE ? channels : sx_mul(c, channels, sx_mul(c, r, r));
  dim[n + 1] = which == SHUFFLE ? sx_mul(c, h, r) : h;
  dim[n + 2] = which == SHUFFLE ? sx_mul(c, w, r) : w;
  return pt_one(c, pt_reshape(c, y, dim, x->rank));
}

static sx diag_embed_elem(sc *c, const pt_tensor *t, const sx *idx) {
  return sx_ite(c, sx_eq(c, idx[t->rank - 2], idx[t->rank - 1]), pt_at(c, t->in[0], idx), c->zero);
}

static const pt_value *define_diag_embed(pt_args *a, int which) {
  (void)which;
  sc *c = a->c;
  const pt_tensor *x = pt_arg_tensor(a, "self");
  if (!x || x->kind == 'b' || x->rank == 0 || x->rank == RULE_MAX_RANK ||
      pt_arg_size(a, "offset", 0) != c->zero)
    return NULL;
  if (pt_arg_size(a, "dim1", -2) != sx_int(c, -2) || pt_arg_size(a, "dim2", -1) != c->minus_one)
    return NULL;
  pt_tensor *t = pt_like(c, x, x->kind, diag_embed_elem);
  if (!t) return NULL;
  t->dim[t->rank++] = x->dim[x->rank - 1];
  return pt_one(c, t);
}

/* ---- contractions ---- */

static sx trace_elem(sc *c, const pt_tensor *t, const sx *idx) {
  (void)idx;
  const sx k = sc_index(c, t->p[0]);
  return sx_sum(c, k, pt_at(c, t->in[0], (sx[2]){k, k}));
}

static const pt_value *define_trace(pt_args *a, int which) {
  (void)which;
  sc *c = a->c;
  const pt_tensor *x = pt_arg_tensor(a, "self");
  bool less;
  if (!x || x->lead || x->rank != 2 || x->kind == 'b' ||
      !sc_decide(c, sx_le(c, x->dim[0], x->dim[1]), &less))
    return NULL;
  pt_tensor *t = pt_new(c, x->kind, trace_elem);
  if (!t) return NULL;
  t->in[0] = x;
  t->p[0] = x->dim[less ? 0 : 1];
  return pt_one(c, t);
}

enum { ADDR, ADDBMM };

static const pt_value *define_add_product(pt_args *a, int which) {
  static const char *const names[][2] = {{"vec1", "vec2"}, {"batch1", "batch2"}};
  sc *c = a->c;
  const pt_tensor *s = pt_arg_tensor(a, "self"), *x = pt_arg_tensor(a, names[which][0]),
                  *y = pt_arg_tensor(a, names[which][1]), *r;
  char p, q;
  const uint32_t rank = which == ADDR ? 1 : 3;
  if (!s || !x || !y || s->lead || x->lead || y->lead || s->kind != 'f' || x->kind != 'f' ||
      y->kind != 'f' || x->rank != rank || y->rank != rank)
    return NULL;
  const sx beta = pt_arg_scalar(a, "beta", &p), alpha = pt_arg_scalar(a, "alpha", &q);
  if (p == 'b' || q == 'b') return NULL;
  if (which == ADDR) {
    r = pt_times(c, pt_unsqueeze(c, x, 1), pt_unsqueeze(c, y, 0));
  } else { /* the batch is summed over: one product with an inner dimension of them all */
    if (!sc_require_eq(c, x->dim[0], y->dim[0]) || !sc_require_eq(c, x->dim[2], y->dim[1]))
      return NULL;
    const sx inner = sx_mul(c, x->dim[0], x->dim[2]);
    const pt_tensor *left = pt_transpose(c, x, 0, 1);
    r = pt_matmul(c, pt_reshape(c, left, (sx[2]){x->dim[1], inner}, 2),
                  pt_reshape(c, y, (sx[2]){inner, y->dim[2]}, 2));
  }
  return r ? pt_one(c, pt_combine(c, beta, pt_expand(c, s, r->dim, r->rank, 0), alpha, r)) : NULL;
}

static const pt_value *define_inner(pt_args *a, int which) {
  (void)which;
  const pt_tensor *x = pt_arg_tensor(a, "self"), *y = pt_arg_tensor(a, "other");
  if (!x || !y || x->lead || y->lead || x->rank == 0 || y->rank == 0 || y->rank > 2) return NULL;
  return pt_one(a->c, pt_matmul(a->c, x, y->rank == 2 ? pt_transpose(a->c, y, 0, 1) : y));
}

static const pt_value *define_chain(pt_args *a, int which) {
  (void)which;
  const pt_tensor *const *t, *r;
  size_t n;
  if (!pt_arg_list(a, pt_arg(a, "tensors") ? "tensors" : "matrices", &t, &n) || n == 0) return NULL;
  r = t[0];
  for (size_t i = 0; i < n; i++)
    if (!t[i] || t[i]->lead || t[i]->rank != 2) return NULL;
  for (size_t i = 1; i < n && r; i++) r = pt_matmul(a->c, r, t[i]);
  return pt_one(a->c, r);
}

static const pt_value *define_kron(pt_args *a, int which) {
  (void)which;
  sc *c = a->c;
  const pt_tensor *x = pt_arg_tensor(a, "self"), *y = pt_arg_tensor(a, "other");
  if (!x || !y || x->lead || y->lead || x->rank != 2 || y->rank != 2) return NULL;
  const sx n = x->dim[0], m = x->dim[1], p = y->dim[0], q = y->dim[1];
  const pt_tensor *r = pt_times(c, pt_reshape(c, x, (sx[4]){n, c->one, m, c->one}, 4),
                                pt_reshape(c, y, (sx[4]){c->one, p, c->one, q}, 4));
  return r ? pt_one(c, pt_reshape(c, r, (sx[2]){sx_mul(c, n, p), sx_mul(c, m, q)}, 2)) : NULL;
}

static const pt_value *define_tensordot(pt_args *a, int which) {
  (void)which;
  sc *c = a->c;
  const pt_tensor *t[2] = {pt_arg_tensor(a, "self"), pt_arg_tensor(a, "other")};
  uint32_t d[2][RULE_MAX_RANK], n[2], order[RULE_MAX_RANK], free_dims = 0;
  sx out[2 * RULE_MAX_RANK];
  if (!t[0] || !t[1] || t[0]->lead || t[1]->lead ||
      !pt_arg_dims(a, "dims_self", t[0], d[0], &n[0]) ||
      !pt_arg_dims(a, "dims_other", t[1], d[1], &n[1]))
    return NULL;
  if (n[0] != n[1] || t[0]->rank + t[1]->rank > 2 * n[0] + RULE_MAX_RANK) return NULL;
  for (uint32_t k = 0; k < n[0]; k++)
    if (!pt_same_index(c, t[0]->dim[d[0][k]], t[1]->dim[d[1][k]])) return NULL;
  for (int s = 0; s < 2; s++) { /* what is summed over last in the first, first in the second */
    bool gone[RULE_MAX_RANK] = {false};
    uint32_t m = 0;
    sx rest = c->one, inner = c->one;
    for (uint32_t k = 0; k < n[s]; k++) {
      if (gone[d[s][k]]) return NULL;
      gone[d[s][k]] = true;
      inner = sx_mul(c, inner, t[s]->dim[d[s][k]]);
      if (s) order[m++] = d[s][k];
    }
    for (uint32_t k = 0; k < t[s]->rank; k++)
      if (!gone[k]) order[m++] = k, rest = sx_mul(c, rest, out[free_dims++] = t[s]->dim[k]);
    for (uint32_t k = 0; k < n[s] && !s; k++) order[m++] = d[s][k];
    t[s] = pt_reshape(c, pt_permute(c, t[s], order),
                      s ? (sx[2]){inner, rest} : (sx[2]){rest, inner}, 2);
  }
  const pt_tensor *r = pt_matmul(c, t[0], t[1]);
  return r ? pt_one(c, pt_reshape(c, r, out, free_dims)) : NULL;
}

/* ---- sums into places ---- */

/* in[0] and, from in[2], p[0] times all rows of which in[1] names this one; which: the dimension.
 */
static sx index_add_elem(sc *c, const pt_tensor *t, const sx *idx) {
  sx at[RULE_MAX_RANK];
  memcpy(at, idx, t->rank * sizeof *at);
  const sx k = at[t->which] = sc_index(c, t->in[1]->dim[0]);
  const sx here = sx_eq(c, pt_at(c, t->in[1], &k), idx[t->which]);
  const sx added = sx_sum(c, k, sx_ite(c, here, pt_at(c, t->in[2], at), c->zero));
  return sx_add(c, pt_at(c, t->in[0], idx), sx_mul(c, t->p[0], added));
}

static const pt_value *define_index_add(pt_args *a, int which) {
  (void)which;
  sc *c = a->c;
  const pt_tensor *x = pt_arg_tensor(a, "self"), *i = pt_arg_tensor(a, "index"),
                  *s = pt_arg_tensor(a, "source");
  uint32_t d;
  char kind;
  if (!x || !i || !s || x->lead || i->lead || s->lead || i->kind != 'i' || x->kind != s->kind ||
      x->kind == 'b' || x->rank == 0 || i->rank > 1)
    return NULL;
  if (s->rank != x->rank || !pt_arg_dim(a, "dim", 0, x, &d)) return NULL;
  if (i->rank == 0) i = pt_unsqueeze(c, i, 0);
  const sx alpha = pt_arg_scalar(a, "alpha", &kind);
  if (!i || kind == 'b' || (x->kind == 'i' && kind == 'f')) return NULL;
  for (uint32_t k = 0; k < x->rank; k++)
    if (!sc_require_eq(c, s->dim[k], k == d ? i->dim[0] : x->dim[k])) return NULL;
  pt_tensor *t = pt_like(c, x, x->kind, index_add_elem);
  if (!t) return NULL;
  t->in[1] = i;
  t->in[2] = s;
  t->which = (int)d;
  t->p[0] = alpha;
  pt_bound_index(c, i, x->dim[d]);
  return pt_one(c, t);
}

enum { SCATTER_ADD, SCATTER_MEAN, SCATTER_PRODUCT, SCATTER_LARGEST, SCATTER_LEAST };

/* What in[2]'s elements `src` make of the element `old` over k, where `here` says that they belong
 * there. */
static sx scattered(sc *c, int how, sx k, sx here, sx src, sx old) {
  if (how == SCATTER_LARGEST) return sx_max(c, old, sx_largest(c, k, sx_ite(c, here, src, old)));
  if (how == SCATTER_LEAST)
    return sx_neg(c, scattered(c, SCATTER_LARGEST, k, here, sx_neg(c, src), sx_neg(c, old)));
  if (how == SCATTER_PRODUCT) return sx_mul(c, old, sx_product(c, k, sx_ite(c, here, src, c->one)));
  const sx sum = sx_add(c, old, sx_sum(c, k, sx_ite(c, here, src, c->zero)));
  if (how == SCATTER_ADD) return sum;
  const sx more = sx_sum(c, k, sx_ite(c, here, c->one, c->zero));
  return sx_mul(c, sum, sx_inv(c, sx_add(c, c->one, more)));
}

/* The same with an index for each element of in[2], which may be smaller than in[0] along the other
 * dimensions. k[0]: what it makes of several. */
static sx scatter_elem(sc *c, const pt_tensor *t, const sx *idx) {
  const pt_tensor *i = t->in[1];
  sx at[RULE_MAX_RANK], inside = c->yes;
  memcpy(at, idx, t->rank * sizeof *at);
  for (uint32_t k = 0; k < t->rank; k++)
    if (k != (uint32_t)t->which) inside = sx_and(c, inside, sx_lt(c, idx[k], i->dim[k]));
  const sx k = at[t->which] = sc_index(c, i->dim[t->which]);
  const sx here = sx_eq(c, pt_at(c, i, at), idx[t->which]), old = pt_at(c, t->in[0], idx);
  return sx_ite(c, inside, scattered(c, t->k[0], k, here, pt_at(c, t->in[2], at), old), old);
}

static const pt_value *define_scatter_add(pt_args *a, int how) {
  sc *c = a->c;
  const pt_tensor *x = pt_arg_tensor(a, "self"), *i = pt_arg_tensor(a, "index"),
                  *s = pt_arg_tensor(a, "src");
  uint32_t d;
  if (!x || !i || !s || x->lead || i->lead || s->lead || i->kind != 'i' || x->kind != s->kind ||
      x->kind == 'b' || x->rank == 0)
    return NULL;
  if (i->rank != x->rank || s->rank != x->rank || !pt_arg_dim(a, "dim", 0, x, &d)) return NULL;
  for (uint32_t k = 0; k < x->rank; k++) {
    if (!sc_require(c, sx_le(c, i->dim[k], s->dim[k]))) return NULL;
    if (k != d && !sc_require(c, sx_le(c, i->dim[k], x->dim[k]))) return NULL;
  }
  if (how >= SCATTER_LARGEST && !sc_require(c, sx_lt(c, c->zero, i->dim[d]))) return NULL;
  pt_tensor *t = pt_like(c, x, x->kind, scatter_elem);
  if (!t) return NULL;
  t->in[1] = i;
  t->in[2] = s;
  t->which = (int)d;
  t->k[0] = how;
  pt_bound_index(c, i, x->dim[d]);
  return pt_one(c, t);
}

/* With what stands there counted among them; a mean of whole numbers is rounded, and not modelled.
 */
static const pt_value *define_scatter_reduce(pt_args *a, int which) {
  /* operator: words of an argument, by which it reduces */
  static const char *const name[] = {"sum", "mean", "prod", "amax", "amin"};
  const pt_tensor *x = pt_arg_tensor(a, "self");
  int how = which;
  while (how <= SCATTER_LEAST && !pt_arg_is(a, "reduce", name[how])) how++;
  if (how > SCATTER_LEAST || !x || !pt_arg_flag(a, "include_self", true)) return NULL;
  if (how == SCATTER_MEAN && x->kind != 'f') return NULL;
  return define_scatter_add(a, how);
}

static const pt_definition table[] = {
    {"selu", define_unary, SELU},
    {"nan_to_num", define_unary, NAN_TO_NUM},
    {"logit", define_logit, 0},
    {"hardshrink", define_shrink, HARDSHRINK},
    {"softshrink", define_shrink, SOFTSHRINK},
    {"fake_quantize_per_tensor_affine", define_quantized, false},
    {"fake_quantize_per_tensor_affine_cachemask", define_quantized, true},
    {"bitwise_left_shift", define_shift, 0},
    {"__lshift__", define_shift, 0},
    {"bitwise_right_shift", define_shift, 1},
    {"__rshift__", define_shift, 1},
    {"fmod", define_pairwise, FMOD},
    {"heaviside", define_pairwise, HEAVISIDE},
    {"hypot", define_pairwise, HYPOT},
    {"copysign", define_pairwise, COPYSIGN},
    {"xlogy", define_pairwise, XLOGY},
    {"special_xlogy", define_pairwise, XLOGY},
    {"_prelu_kernel", define_pairwise, SLOPE},
    {"prelu", define_pairwise, PRELU},
    {"pixel_shuffle", define_shuffle, SHUFFLE},
    {"pixel_unshuffle", define_shuffle, UNSHUFFLE},
    {"diag_embed", define_diag_embed, 0},
    {"trace", define_trace, 0},
    {"addr", define_add_product, ADDR},
    {"addbmm", define_add_product, ADDBMM},
    {"inner", define_inner, 0},
    {"linalg_multi_dot", define_chain, 0},
    {"chain_matmul", define_chain, 0},
    {"kron", define_kron, 0},
    {"tensordot", define_tensordot, 0},
    {"index_add", define_index_add, 0},
    {"scatter_add", define_scatter_add, SCATTER_ADD},
    {"scatter_reduce.two", define_scatter_reduce, SCATTER_ADD},
};

bool pt_define_composite(const char *name, pt_definition *out) {
  return pt_find(table, sizeof table / sizeof *table, name, out);
}
