/* Definitions for the symbolic prover: reductions, softmax, running sums and norms. */
#include <math.h>
#include <string.h>

#include "validate/ops/ops.h"

enum {
  SUM,
  MEAN,
  AMAX,
  AMIN,
  VAR,
  STD,
  ANY,
  ALL,
  NORM,
  LOGSUMEXP,
  SUM_SQUARES,
  DIM_MAX,
  DIM_MIN,
  SUM_ABS,
  MAX_ABS,
  MIN_ABS,
  COUNT,
  PROD
};

/* t->k[i]: whether dimension i of the input is reduced; t->p[7]: how many elements that is. */
typedef struct reduced {
  sx k[RULE_MAX_RANK]; /* the fresh indices */
  uint32_t n;
  sx in[RULE_MAX_RANK];
} reduced;

static void open_dims(sc *c, const pt_tensor *x, const int32_t *drop, const sx *idx, bool keep,
                      reduced *r) {
  uint32_t at = 0;
  r->n = 0;
  for (uint32_t i = 0; i < x->rank; i++) {
    if (drop[i]) r->in[i] = r->k[r->n++] = sc_index(c, x->dim[i]);
    if (!drop[i]) r->in[i] = idx[at];
    if (!drop[i] || keep) at++;
  }
}

static sx closed(sc *c, const reduced *r, sx body, sx (*f)(sc *c, sx k, sx body)) {
  for (uint32_t i = r->n; i-- > 0;) body = f(c, r->k[i], body);
  return body;
}

static sx summed(sc *c, const pt_tensor *t, const sx *idx, bool squares, sx minus) {
  reduced r;
  open_dims(c, t->in[0], t->k, idx, t->p[6] == c->one, &r);
  sx x = pt_at(c, t->in[0], r.in);
  if (minus) x = sx_sub(c, x, minus);
  return closed(c, &r, squares ? sx_powi(c, x, 2) : x, sx_sum);
}

static sx mean_of(sc *c, const pt_tensor *t, const sx *idx) {
  return sx_mul(c, summed(c, t, idx, false, 0), sx_inv(c, t->p[7]));
}

/* Whether the condition holds for some of the indices: of "g or h", that one of them does. */
static sx some(sc *c, const reduced *r, sx x) {
  const sx g = sx_top_guard(c, x), a = g ? sc_word(c, x, 1) : 0, b = g ? sc_word(c, x, 2) : 0;
  if (g && a == c->yes && b != c->no)
    return sx_or(c, some(c, r, sc_node(c, X_ITE, (uint32_t[3]){g, c->yes, c->no}, 3)),
                 some(c, r, b));
  if (g && b == c->yes && a != c->no)
    return sx_or(c, some(c, r, sc_node(c, X_ITE, (uint32_t[3]){g, c->no, c->yes}, 3)),
                 some(c, r, a));
  return sx_lt(c, c->zero, closed(c, r, sx_ite(c, x, c->one, c->zero), sx_sum));
}

static sx reduce_elem(sc *c, const pt_tensor *t, const sx *idx) {
  reduced r;
  sx x;
  switch (t->which) {
  case SUM: return summed(c, t, idx, false, 0);
  case MEAN: return mean_of(c, t, idx);
  case VAR:
  case STD: /* p[0]: the correction */
    x = sx_sub(c, t->p[7], t->p[0]);
    sc_defined_if(c, sx_not(c, sx_eq(c, x, c->zero)));
    x = sx_mul(c, summed(c, t, idx, true, mean_of(c, t, idx)), sx_inv(c, x));
    return t->which == VAR ? x : sx_sqrt(c, x);
  case NORM: return sx_sqrt(c, summed(c, t, idx, true, 0));
  case SUM_SQUARES: return summed(c, t, idx, true, 0);
  default: break;
  }
  open_dims(c, t->in[0], t->k, idx, t->p[6] == c->one, &r);
  x = pt_at(c, t->in[0], r.in);
  switch (t->which) {
  case AMAX:
  case DIM_MAX: return closed(c, &r, x, sx_largest);
  case AMIN:
  case DIM_MIN: return sx_neg(c, closed(c, &r, sx_neg(c, x), sx_largest));
  case SUM_ABS: return closed(c, &r, sx_abs(c, x), sx_sum);
  case MAX_ABS: return closed(c, &r, sx_abs(c, x), sx_largest);
  case MIN_ABS: return sx_neg(c, closed(c, &r, sx_neg(c, sx_abs(c, x)), sx_largest));
  case PROD: return closed(c, &r, x, sx_product);
  case COUNT: return closed(c, &r, sx_ite(c, x, c->one, c->zero), sx_sum);
  case LOGSUMEXP: return sx_log(c, closed(c, &r, sx_exp(c, x), sx_sum));
  case ANY: return some(c, &r, x);
  default: return sx_not(c, some(c, &r, sx_not(c, x)));
  }
}

static pt_tensor *over_dims(sc *c, const pt_tensor *x, const bool *drop, bool keep, char kind) {
  pt_tensor *t = pt_new(c, kind, reduce_elem);
  if (!t) return NULL;
  t->in[0] = x;
  t->lead = x->lead;
  t->p[6] = keep ? c->one : c->zero;
  t->p[7] = c->one;
  for (uint32_t k = 0; k < x->rank; k++) {
    t->k[k] = drop[k];
    if (drop[k]) t->p[7] = sx_mul(c, t->p[7], x->dim[k]);
    if (!drop[k] || keep) t->dim[t->rank++] = drop[k] ? c->one : x->dim[k];
  }
  return t;
}

/* The dimensions asked for; none means all. */
static bool dims_of(pt_args *a, const pt_tensor *x, bool *drop) {
  uint32_t d[RULE_MAX_RANK], n = 0;
  const rule_term *t = pt_arg(a, "dim");
  memset(drop, 0, RULE_MAX_RANK * sizeof *drop);
  if (!t || (t->kind == RULE_LIST && t->n == 0)) {
    if (x->lead) {
      sc_fail(a->c, "a reduction of open dimensions");
      return false;
    }
    for (uint32_t k = 0; k < x->rank; k++) drop[k] = true;
    return true;
  }
  if (!pt_arg_dims(a, "dim", x, d, &n)) return false;
  for (uint32_t i = 0; i < n; i++) {
    if (x->rank && drop[d[i]]) return false;
    if (x->rank) drop[d[i]] = true;
  }
  return true;
}

static sx never_elem(sc *c, const pt_tensor *t, const sx *idx) {
  (void)t;
  (void)idx;
  sc_fail(c, "the place of an extreme value");
  return c->zero;
}

/* The dtype argument; NULL where it asks for something that is not modelled. */
static const pt_tensor *as_dtype(pt_args *a, const pt_tensor *x) {
  rule_dtype d;
  if (x && pt_arg_dtype(a, "dtype", &d))
    return rule_dtype_is_float(d)            ? pt_cast(a->c, x, d)
           : d == RULE_I64 && x->kind != 'f' ? pt_kind(a->c, x, 'i')
                                             : NULL;
  return x;
}

/* Of which order a norm is: the root of the sum of squares, where nothing is said. */
static bool order_of_norm(pt_args *a, pt_tensor *t) {
  const char *name = pt_arg(a, "ord") ? "ord" : "p";
  const rule_term *said = pt_arg(a, name);
  char kind;
  if (!said) return true;
  if (said->kind == RULE_FLOAT && isinf(said->u.f)) {
    t->which = said->u.f > 0 ? MAX_ABS : MIN_ABS;
    return true;
  }
  const sx p = pt_arg_scalar(a, name, &kind);
  if (p == a->c->one) t->which = SUM_ABS;
  return p == a->c->one || p == sx_int(a->c, 2);
}

static const pt_value *define_reduction(pt_args *a, int which) {
  sc *c = a->c;
  const pt_tensor *x = as_dtype(a, pt_arg_tensor(a, "self"));
  bool drop[RULE_MAX_RANK];
  char kind;
  if (!x || !dims_of(a, x, drop)) return NULL;
  const bool logic = which == ANY || which == ALL || which == COUNT,
             floats = which == MEAN || which == VAR || which == STD || which == NORM ||
                      which == LOGSUMEXP;
  if (floats && x->kind != 'f') return NULL;
  if ((which == SUM || which == PROD) && x->kind == 'b') x = pt_kind(c, x, 'i');
  if (logic) x = pt_kind(c, x, 'b');
  if (!x || (!logic && x->kind == 'b')) return NULL;
  pt_tensor *t =
      over_dims(c, x, drop, pt_arg_flag(a, "keepdim", false), which == COUNT ? 'i' : x->kind);
  if (!t) return NULL;
  t->which = which;
  if (which == VAR || which == STD) {
    t->p[0] = c->one;
    if (pt_arg(a, "correction")) t->p[0] = pt_arg_scalar(a, "correction", &kind);
    if (pt_arg(a, "unbiased") && !pt_arg_flag(a, "unbiased", true)) t->p[0] = c->zero;
    const sx left = sx_sub(c, t->p[7], t->p[0]);
    /* With more than there are elements it has no value; the mean beside it has one. */
    if (strstr(a->schema->name, "_mean")
            ? !sc_require_modelled(c, sx_le(c, c->zero, left), "a mean beside no variance")
            : !sc_require(c, sx_le(c, c->zero, left)))
      return NULL;
  }
  if (which == NORM && !order_of_norm(a, t)) return NULL;
  if (which != DIM_MAX && which != DIM_MIN) return pt_one(c, t);
  pt_tensor *where = pt_like(c, t, 'i', never_elem);
  return where ? pt_list(c, (const pt_tensor *[]){t, where}, 2) : NULL;
}

/* To one element: the mean over the last dimensions. */
static const pt_value *define_adaptive(pt_args *a, int n) {
  sc *c = a->c;
  const pt_tensor *x = pt_arg_tensor(a, "self");
  sx size[RULE_MAX_RANK];
  uint32_t m;
  bool drop[RULE_MAX_RANK] = {false};
  if (!x || x->lead || x->kind != 'f' ||
      (x->rank != (uint32_t)n + 1 && x->rank != (uint32_t)n + 2) ||
      !pt_arg_sizes(a, "output_size", size, &m))
    return NULL;
  for (uint32_t k = 0; k < m; k++)
    if (size[k] != c->one) return NULL;
  for (uint32_t k = 0; k < (uint32_t)n; k++) drop[x->rank - 1 - k] = true;
  pt_tensor *t = over_dims(c, x, drop, true, 'f');
  if (!t) return NULL;
  t->which = MEAN;
  return pt_one(c, t);
}

static const pt_value *define_var_mean(pt_args *a, int which) {
  sc *c = a->c;
  const pt_value *v = define_reduction(a, which), *m = v ? define_reduction(a, MEAN) : NULL;
  return m ? pt_list(c, (const pt_tensor *[]){v->t[0], m->t[0]}, 2) : NULL;
}

/* ---- running sums and products ---- */

static sx running(sc *c, const pt_tensor *t, const sx *idx, sx (*f)(sc *c, sx k, sx body)) {
  sx in[RULE_MAX_RANK];
  memcpy(in, idx, t->rank * sizeof *in);
  const sx k = sc_index(c, sx_add(c, idx[t->which], c->one));
  in[t->which] = k;
  return f(c, k, pt_at(c, t->in[0], in));
}

static sx cumsum_elem(sc *c, const pt_tensor *t, const sx *idx) {
  return running(c, t, idx, sx_sum);
}

static sx cumprod_elem(sc *c, const pt_tensor *t, const sx *idx) {
  return running(c, t, idx, sx_product);
}

static sx cummax_elem(sc *c, const pt_tensor *t, const sx *idx) {
  return running(c, t, idx, sx_largest);
}

static sx least(sc *c, sx k, sx body) { return sx_neg(c, sx_largest(c, k, sx_neg(c, body))); }

static sx cummin_elem(sc *c, const pt_tensor *t, const sx *idx) {
  return running(c, t, idx, least);
}

/* Of equal elements no place is modelled.
 * call: "(var x f ($A $B))" "(getitem (aten::cummax x 1) 0)"
 * call: "(var x f ($A $B $C))" "(getitem (aten::cummin x 1) 0)"
 * call: "(var n i ($A $B))" "(getitem (aten::cummax n 0) 0)" */
static const pt_value *define_running_extreme(pt_args *a, int is_least) {
  const pt_tensor *x = pt_arg_tensor(a, "self");
  uint32_t d;
  if (!x || x->rank == 0 || x->kind == 'b' || !pt_arg_dim(a, "dim", 0, x, &d)) return NULL;
  pt_tensor *t = pt_like(a->c, x, x->kind, is_least ? cummin_elem : cummax_elem),
            *where = pt_like(a->c, x, 'i', never_elem);
  if (!t || !where) return NULL;
  t->which = (int)d;
  return pt_list(a->c, (const pt_tensor *[]){t, where}, 2);
}

enum { CUMSUM, CUMPROD };

static const pt_value *define_running(pt_args *a, int which) {
  const pt_tensor *x = as_dtype(a, pt_arg_tensor(a, "self"));
  uint32_t d;
  if (x && x->kind == 'b') x = pt_kind(a->c, x, 'i');
  if (!x || x->rank == 0 || !pt_arg_dim(a, "dim", 0, x, &d)) return NULL;
  pt_tensor *t = pt_like(a->c, x, x->kind, which == CUMPROD ? cumprod_elem : cumsum_elem);
  if (!t) return NULL;
  t->which = (int)d;
  return pt_one(a->c, t);
}

/* ---- softmax ---- */

enum { SOFTMAX, LOG_SOFTMAX, SAFE_SOFTMAX };

static sx softmax_elem(sc *c, const pt_tensor *t, const sx *idx) {
  sx in[RULE_MAX_RANK];
  memcpy(in, idx, t->rank * sizeof *in);
  const sx k = t->rank ? sc_index(c, t->dim[t->k[0]]) : c->zero;
  if (t->rank) in[t->k[0]] = k;
  const sx sum = sx_sum(c, k, sx_exp(c, pt_at(c, t->in[0], in))), x = pt_at(c, t->in[0], idx);
  if (c->reading.read_masks && (t->which == LOG_SOFTMAX || !sc_row_keeps(c, t, idx)))
    sc_fail(c, "a finite mask that may cover a whole row");
  if (t->which == LOG_SOFTMAX) return sx_sub(c, x, sx_log(c, sum));
  /* A row that is masked wholly: attention gives 0, softmax is not defined. */
  return sx_mul(c, sx_exp(c, x),
                t->which == SAFE_SOFTMAX ? sx_fn(c, F_SAFE_INV, sum) : sx_inv(c, sum));
}

const pt_tensor *pt_softmax(sc *c, const pt_tensor *x, uint32_t d, bool safe) {
  pt_tensor *t = x ? pt_like(c, x, 'f', softmax_elem) : NULL;
  if (!t) return NULL;
  t->which = safe ? SAFE_SOFTMAX : SOFTMAX;
  t->k[0] = (int32_t)d;
  return t;
}

static const pt_value *define_softmax(pt_args *a, int which) {
  const pt_tensor *x = as_dtype(a, pt_arg_tensor(a, "self"));
  uint32_t d;
  if (!x || x->kind != 'f' || !pt_arg_dim(a, "dim", 0, x, &d)) return NULL;
  pt_tensor *t = (pt_tensor *)pt_softmax(a->c, x, d, false);
  if (!t) return NULL;
  t->which = which;
  return pt_one(a->c, t);
}

/* ---- norms ---- */

/* (x - m) / sqrt(mean (x - m)^2 + eps) over the dimensions in t->k, m the mean, or 0 (which = 1).
 */
static sx norm_elem(sc *c, const pt_tensor *t, const sx *idx) {
  pt_tensor mean = *t;
  const sx m = t->which ? 0 : mean_of(c, &mean, idx);
  const sx var = sx_mul(c, summed(c, &mean, idx, true, m), sx_inv(c, t->p[7]));
  const sx x = pt_at(c, t->in[0], idx);
  return sx_mul(c, m ? sx_sub(c, x, m) : x, sx_inv(c, sx_sqrt(c, sx_add(c, var, t->p[0]))));
}

static sx rstd_elem(sc *c, const pt_tensor *t, const sx *idx) {
  const sx var = sx_mul(c, summed(c, t, idx, true, mean_of(c, t, idx)), sx_inv(c, t->p[7]));
  return sx_inv(c, sx_sqrt(c, sx_add(c, var, t->p[0])));
}

static pt_tensor *norm_over(sc *c, const pt_tensor *x, const bool *drop, sx eps, bool rms,
                            pt_elem f) {
  pt_tensor *t = over_dims(c, x, drop, true, 'f');
  if (!t) return NULL;
  t->elem = f;
  t->which = rms;
  t->p[0] = eps;
  if (f == norm_elem) memcpy(t->dim, x->dim, sizeof t->dim);
  return t;
}

const pt_tensor *pt_rms(sc *c, const pt_tensor *x, sx eps) {
  bool drop[RULE_MAX_RANK] = {false};
  if (!x || x->rank == 0 || x->kind != 'f') return NULL;
  drop[x->rank - 1] = true;
  return norm_over(c, x, drop, eps, true, norm_elem);
}

static const pt_tensor *affine(sc *c, const pt_tensor *x, const pt_tensor *w, const pt_tensor *b) {
  if (w) x = pt_times(c, x, w);
  return b ? pt_combine(c, c->one, x, c->one, b) : x;
}

enum { LAYER_NORM, NATIVE_LAYER_NORM, RMS_NORM };

static const pt_value *define_layer_norm(pt_args *a, int which) {
  sc *c = a->c;
  const pt_tensor *x = pt_arg_tensor(a, "input"), *w = pt_arg_tensor(a, "weight"),
                  *b = pt_arg(a, "bias") ? pt_arg_tensor(a, "bias") : NULL;
  sx shape[RULE_MAX_RANK];
  uint32_t n;
  char kind;
  bool drop[RULE_MAX_RANK] = {false};
  if (!x || x->kind != 'f' || c->fault.failed || !pt_arg_sizes(a, "normalized_shape", shape, &n) ||
      n == 0 || n > x->rank)
    return NULL;
  if (!pt_arg(a, "eps")) return NULL; /* rms_norm's depends on the dtype */
  const sx eps = pt_arg_scalar(a, "eps", &kind);
  for (uint32_t k = 0; k < n; k++) {
    const uint32_t d = x->rank - n + k;
    drop[d] = true;
    if (!sc_require_eq(c, shape[k], x->dim[d])) return NULL;
    for (int i = 0; i < 2; i++) {
      const pt_tensor *p = i ? b : w;
      if (p &&
          (p->rank != n || p->lead || p->kind != 'f' || !sc_require_eq(c, p->dim[k], shape[k])))
        return NULL;
    }
  }
  const pt_tensor *y = affine(c, norm_over(c, x, drop, eps, which == RMS_NORM, norm_elem), w, b);
  if (which != NATIVE_LAYER_NORM) return pt_one(c, y);
  pt_tensor *m = over_dims(c, x, drop, true, 'f'),
            *r = norm_over(c, x, drop, eps, false, rstd_elem);
  if (!m || !r || !y) return NULL;
  m->which = MEAN;
  return pt_list(c, (const pt_tensor *[]){y, m, r}, 3);
}

/* A vector over channels (dimension 1) against x. */
static const pt_tensor *by_channel(sc *c, const pt_tensor *v, const pt_tensor *x) {
  sx dim[RULE_MAX_RANK];
  if (!v || v->rank != 1 || v->kind != 'f' || !sc_require_eq(c, v->dim[0], x->dim[1])) return NULL;
  for (uint32_t k = 0; k < x->rank; k++) dim[k] = k == 1 ? v->dim[0] : c->one;
  return pt_reshape(c, v, dim, x->rank);
}

/* x normalised over each of `groups` groups of its channels, then scaled and shifted by channel.
 * `stat`, where not NULL: the groups' means and reciprocal deviations, [batch, groups]. */
static const pt_tensor *group_norm(sc *c, const pt_tensor *x, const pt_tensor *w,
                                   const pt_tensor *b, sx groups, sx eps, const pt_tensor **stat) {
  bool drop[RULE_MAX_RANK] = {false};
  sx dim[RULE_MAX_RANK], per;
  if (!x || x->lead || x->rank < 2 || x->rank + 1 > RULE_MAX_RANK || x->kind != 'f' ||
      c->fault.failed)
    return NULL;
  if (!sc_multiple(c, x->dim[1], groups, &per)) return NULL;
  for (uint32_t k = 0; k <= x->rank; k++)
    dim[k] = k == 0 ? x->dim[0] : k == 1 ? groups : k == 2 ? per : x->dim[k - 1], drop[k] = k > 1;
  const pt_tensor *parts = pt_reshape(c, x, dim, x->rank + 1);
  const pt_tensor *y = parts ? norm_over(c, parts, drop, eps, false, norm_elem) : NULL;
  y = y ? pt_reshape(c, y, x->dim, x->rank) : NULL;
  if (y && w) y = pt_times(c, y, by_channel(c, w, x));
  if (y && b) y = pt_combine(c, c->one, y, c->one, by_channel(c, b, x));
  if (!y || !stat) return y;
  pt_tensor *m = over_dims(c, parts, drop, true, 'f'),
            *r = norm_over(c, parts, drop, eps, false, rstd_elem);
  if (!m || !r) return NULL;
  m->which = MEAN;
  stat[0] = pt_reshape(c, m, dim, 2);
  stat[1] = pt_reshape(c, r, dim, 2);
  return stat[0] && stat[1] ? y : NULL;
}

enum { GROUP_NORM, NATIVE_GROUP_NORM, INSTANCE_NORM };

static const pt_value *define_group_norm(pt_args *a, int which) {
  sc *c = a->c;
  const pt_tensor *x = pt_arg_tensor(a, "input"),
                  *w = pt_arg(a, "weight") ? pt_arg_tensor(a, "weight") : NULL,
                  *b = pt_arg(a, "bias") ? pt_arg_tensor(a, "bias") : NULL, *out[3];
  char kind;
  const sx eps = pt_arg_scalar(a, "eps", &kind);
  if (!x || x->rank < 2) return NULL;
  if (which ==
      INSTANCE_NORM) /* a group is a channel; its own statistics, which running ones do not touch */
    return x->rank > 2 && pt_arg_flag(a, "use_input_stats", false) && !pt_arg(a, "running_mean") &&
                   !pt_arg(a, "running_var")
               ? pt_one(c, group_norm(c, x, w, b, x->dim[1], eps, NULL))
               : NULL;
  if (which == GROUP_NORM)
    return pt_one(c, group_norm(c, x, w, b, pt_arg_size(a, "num_groups", 1), eps, NULL));
  const sx rest = sx_prod_dims(c, x->dim + 2, x->rank - 2);
  if (!sc_require_eq(c, pt_arg_size(a, "N", 0), x->dim[0]) ||
      !sc_require_eq(c, pt_arg_size(a, "C", 0), x->dim[1]) ||
      !sc_require_eq(c, pt_arg_size(a, "HxW", 0), rest))
    return NULL;
  out[0] = group_norm(c, x, w, b, pt_arg_size(a, "group", 1), eps, out + 1);
  return out[0] ? pt_list(c, out, 3) : NULL;
}

static sx inverse_root(sc *c, sx x) { return sx_inv(c, sx_sqrt(c, x)); }

static const pt_value *define_batch_norm(pt_args *a, int which) {
  sc *c = a->c;
  const pt_tensor *x = pt_arg_tensor(a, "input"),
                  *w = pt_arg(a, "weight") ? pt_arg_tensor(a, "weight") : NULL,
                  *b = pt_arg(a, "bias") ? pt_arg_tensor(a, "bias") : NULL,
                  *m = pt_arg(a, "running_mean") ? pt_arg_tensor(a, "running_mean") : NULL,
                  *v = pt_arg(a, "running_var") ? pt_arg_tensor(a, "running_var") : NULL;
  char kind;
  (void)which;
  if (!x || x->lead || x->rank < 2 || x->kind != 'f' || c->fault.failed) return NULL;
  if (pt_arg_flag(a, "training",
                  true)) { /* its own statistics; running ones, where given, would be written to */
    bool drop[RULE_MAX_RANK];
    if (m || v) return NULL;
    for (uint32_t k = 0; k < x->rank; k++) {
      drop[k] = k != 1;
      if (!sc_require(c, sx_lt(c, c->zero, x->dim[k]))) return NULL;
    }
    const pt_tensor *y = norm_over(c, x, drop, pt_arg_scalar(a, "eps", &kind), false, norm_elem);
    if (y && w) y = pt_times(c, y, by_channel(c, w, x));
    if (y && b) y = pt_combine(c, c->one, y, c->one, by_channel(c, b, x));
    return pt_one(c, y);
  }
  if (!m || !v) return NULL;
  const pt_tensor *eps = pt_scalar_tensor(c, pt_arg_scalar(a, "eps", &kind), 'f');
  const pt_tensor *scale =
      pt_unary(c, pt_combine(c, c->one, by_channel(c, v, x), c->one, eps), inverse_root);
  if (w) scale = pt_times(c, scale, by_channel(c, w, x));
  const pt_tensor *y =
      pt_times(c, pt_combine(c, c->one, x, c->minus_one, by_channel(c, m, x)), scale);
  if (y && b) y = pt_combine(c, c->one, y, c->one, by_channel(c, b, x));
  return pt_one(c, y);
}

static const pt_definition table[] = {
    {"sum", define_reduction, SUM},
    {"mean", define_reduction, MEAN},
    {"amax", define_reduction, AMAX},
    {"amin", define_reduction, AMIN},
    {"var", define_reduction, VAR},
    {"std", define_reduction, STD},
    {"var_mean", define_var_mean, VAR},
    {"std_mean", define_var_mean, STD},
    {"any", define_reduction, ANY},
    {"all", define_reduction, ALL},
    {"logsumexp", define_reduction, LOGSUMEXP},
    {"norm", define_reduction, NORM},
    {"linalg_vector_norm", define_reduction, NORM},
    {"count_nonzero", define_reduction, COUNT},
    {"prod", define_reduction, PROD},
    {"adaptive_avg_pool1d", define_adaptive, 1},
    {"adaptive_avg_pool2d", define_adaptive, 2},
    {"_adaptive_avg_pool2d", define_adaptive, 2},
    {"adaptive_avg_pool3d", define_adaptive, 3},
    {"_adaptive_avg_pool3d", define_adaptive, 3},
    {"cummax", define_running_extreme, false},
    {"cummin", define_running_extreme, true},
    {"cumsum", define_running, CUMSUM},
    {"cumprod", define_running, CUMPROD},
    {"softmax", define_softmax, SOFTMAX},
    {"special_softmax", define_softmax, SOFTMAX},
    {"_safe_softmax", define_softmax, SAFE_SOFTMAX},
    {"_softmax", define_softmax, SOFTMAX},
    {"log_softmax", define_softmax, LOG_SOFTMAX},
    {"_log_softmax", define_softmax, LOG_SOFTMAX},
    {"layer_norm", define_layer_norm, LAYER_NORM},
    {"native_layer_norm", define_layer_norm, NATIVE_LAYER_NORM},
    {"rms_norm", define_layer_norm, RMS_NORM},
    {"group_norm", define_group_norm, GROUP_NORM},
    {"native_group_norm", define_group_norm, NATIVE_GROUP_NORM},
    {"instance_norm", define_group_norm, INSTANCE_NORM},
    {"batch_norm", define_batch_norm, 0},
};

bool pt_define_reduce(const char *full, pt_definition *out) {
  if (strncmp(full, "aten::", 6)) return false;
  const char *name = full + 6;
  if (!strcmp(name, "max") || !strcmp(name, "min"))
    return *out = (pt_definition){name, define_reduction, name[1] == 'a' ? AMAX : AMIN}, true;
  if (!strcmp(name, "max.dim") || !strcmp(name, "min.dim"))
    return *out = (pt_definition){name, define_reduction, name[1] == 'a' ? DIM_MAX : DIM_MIN}, true;
  return pt_find(table, sizeof table / sizeof *table, full, out);
}
