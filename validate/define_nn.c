/* Reductions, contractions, norms, attention, tables, and the kernels that have a declared definition. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "validate/encode_int.h"

static void *take(pv_cx *c, size_t n) {
  void *p = c->failed ? NULL : iso_arena_alloc(&c->arena, n);
  if (!p && !c->failed) {
    c->no_memory = true;
    pv_fail(c, "out of memory");
  }
  return p;
}

/* ---- reductions ---- */

enum { SUM, MEAN, AMAX, AMIN };

/* The reduced dimensions last: outer x inner elements; `out` is the result's shape. */
static pv_tensor *reduced_last(pv_call_args *a, pv_tensor *x, const char *dim_name, rule_shape *out, int64_t *inner) {
  pv_cx *c = a->c;
  int64_t dims[RULE_MAX_RANK], stride[RULE_MAX_RANK], dense[RULE_MAX_RANK];
  uint32_t n = 0, d;
  bool drop[RULE_MAX_RANK] = {false}, keep = pv_arg_int(a, "keepdim", 0);
  if (!pv_arg_ints(a, dim_name, dims, &n) || n == 0)
    for (uint32_t k = 0; k < x->s.rank; k++) drop[k] = true;
  for (uint32_t i = 0; i < n; i++) {
    if (!pv_dim(c, dims[i], x->s.rank, &d) || (x->s.rank && drop[d])) return NULL;
    drop[d] = true;
  }
  rule_shape s = {.rank = 0};
  *out = (rule_shape){.rank = 0};
  *inner = 1;
  pv_dense(&x->s, dense);
  for (uint32_t k = 0; k < x->s.rank; k++) {
    if (!drop[k]) stride[s.rank] = dense[k], s.dim[s.rank++] = x->s.dim[k];
    if (!drop[k] || keep) out->dim[out->rank++] = drop[k] ? 1 : x->s.dim[k];
  }
  for (uint32_t k = 0; k < x->s.rank; k++)
    if (drop[k]) stride[s.rank] = dense[k], s.dim[s.rank++] = x->s.dim[k], *inner *= x->s.dim[k];
  return pv_strided(c, x, &s, stride, 0);
}

static pv_id mean(pv_cx *c, const pv_id *e, int64_t n) {
  return pv_scale(c, pv_q_pow(c, pv_q_int(c, n), -1), pv_sum(c, e, (size_t)n));
}

static pv_id reduce(pv_cx *c, int which, const pv_id *e, int64_t n) {
  pv_id *w, r;
  switch (which) {
  case SUM: return pv_sum(c, e, (size_t)n);
  case MEAN: return mean(c, e, n);
  case AMAX: return pv_max(c, e, (size_t)n);
  default:
    w = take(c, (size_t)n * sizeof *w);
    if (!w) return c->zero;
    for (int64_t i = 0; i < n; i++) w[i] = pv_neg(c, e[i]);
    r = pv_max(c, w, (size_t)n);
    return pv_neg(c, r);
  }
}

static pv_value *define_reduction(pv_call_args *a, int which) {
  pv_cx *c = a->c;
  pv_tensor *x = pv_arg_tensor(a, "self");
  rule_shape s;
  rule_dtype d;
  int64_t inner = 1;
  if (!x) return NULL;
  if (pv_arg_dtype(a, "dtype", &d)) {
    if (!rule_dtype_is_float(d)) return NULL;
    x = pv_kind(c, x, 'f');
  }
  if (which == MEAN && x->kind != 'f') return NULL;
  if (which == SUM && x->kind == 'b') x = pv_kind(c, x, 'i');
  if (x->kind == 'b') return NULL;
  pv_tensor *t = reduced_last(a, x, "dim", &s, &inner);
  if (!t || inner == 0) return NULL;
  pv_tensor *r = pv_tensor_new(c, x->kind, &s);
  for (int64_t i = 0; r && i < r->n && !c->failed; i++) r->e[i] = reduce(c, which, t->e + i * inner, inner);
  return pv_value_of(c, r);
}

/* Runs of the last dimension. */
static int64_t last_dim(const pv_tensor *t) { return t->s.rank ? t->s.dim[t->s.rank - 1] : 1; }

static pv_value *define_cumsum(pv_call_args *a, int which) {
  (void)which;
  pv_cx *c = a->c;
  pv_tensor *x = pv_arg_tensor(a, "self");
  rule_dtype dt;
  uint32_t d;
  if (!x || !pv_dim(c, pv_arg_int(a, "dim", 0), x->s.rank, &d) || x->s.rank == 0) return NULL;
  if (pv_arg_dtype(a, "dtype", &dt)) {
    if (!rule_dtype_is_float(dt)) return NULL;
    x = pv_kind(c, x, 'f');
  }
  if (x->kind == 'b') x = pv_kind(c, x, 'i');
  pv_tensor *t = pv_transpose(c, x, d, x->s.rank - 1), *r = t ? pv_tensor_new(c, t->kind, &t->s) : NULL;
  int64_t n = t ? last_dim(t) : 1;
  for (int64_t i = 0; r && i < r->n && !c->failed; i++) r->e[i] = pv_sum(c, t->e + i - i % n, (size_t)(i % n) + 1);
  return r ? pv_value_of(c, pv_transpose(c, r, d, x->s.rank - 1)) : NULL;
}

/* ---- softmax ---- */

/* The number in a sum. */
static uint32_t constant_of(pv_cx *c, pv_id x) {
  uint32_t q = PV_ZERO_Q;
  const pv_node *p = pv_at(c, x);
  if (pv_is_const(c, x, &q) || !p || p->op != PV_SUM) return q;
  for (uint32_t i = 0; i < p->n; i += 2)
    if (c->word[p->off + i + 1] == c->one) return c->word[p->off + i];
  return PV_ZERO_Q;
}

/* A softmax is the same after a shift of its row: the first number that is there becomes 0, so that distances counted from
 * elsewhere (ALiBi) come out equal. Writes to `to` and returns it, or returns `s`. */
static const pv_id *shifted(pv_cx *c, const pv_id *s, pv_id *to, int64_t n) {
  uint32_t first = PV_ZERO_Q;
  bool found = false;
  for (int64_t j = 0; j < n; j++) {
    if (pv_flags(c, s[j]) & PV_EXT && s[j] != c->neginf && s[j] != c->negbig) return s;
    if (found || s[j] == c->neginf || s[j] == c->negbig) continue;
    first = constant_of(c, s[j]);
    found = true;
  }
  if (first == PV_ZERO_Q) return s;
  const pv_id by = pv_const(c, pv_q_mul(c, PV_MINUS_Q, first));
  for (int64_t j = 0; j < n && !c->failed; j++) to[j] = s[j] == c->neginf || s[j] == c->negbig ? s[j] : pv_add(c, s[j], by);
  return to;
}

/* e^s / sum e^s. `zero_rows`: a row without any element that is not minus infinity is 0, as attention has it. */
static void softmax_row(pv_cx *c, const pv_id *s, pv_id *out, int64_t n, bool zero_rows) {
  bool any = false, certain = false, masked = false;
  s = shifted(c, s, out, n);
  for (int64_t j = 0; j < n && !c->failed; j++) {
    bool gone = s[j] == c->neginf || s[j] == c->negbig, ext = pv_flags(c, s[j]) & PV_EXT;
    any |= !gone;
    certain |= !ext;
    masked |= ext;
    out[j] = pv_exp(c, s[j]);
  }
  if (!any && zero_rows && !c->big_mask) return;
  if (!any) pv_fail(c, "a softmax over a row that is wholly masked");
  /* A finite mask is minus infinity only in rows that keep an element. */
  if (masked && !certain && c->big_mask) pv_fail(c, "a finite mask that may cover a whole row");
  pv_id inverse = pv_pow(c, pv_sum(c, out, (size_t)n), -1);
  for (int64_t j = 0; j < n && !c->failed; j++) out[j] = pv_mul(c, out[j], inverse);
}

static pv_value *define_softmax(pv_call_args *a, int which) {
  (void)which;
  pv_cx *c = a->c;
  pv_tensor *x = pv_arg_tensor(a, "self");
  rule_dtype dt;
  uint32_t d;
  if (!x || !pv_dim(c, pv_arg_int(a, "dim", 0), x->s.rank, &d)) return NULL;
  if (pv_arg_dtype(a, "dtype", &dt)) {
    if (!rule_dtype_is_float(dt)) return NULL;
    x = pv_kind(c, x, 'f');
  }
  if (!x || x->kind != 'f') return NULL;
  uint32_t last = x->s.rank ? x->s.rank - 1 : 0;
  pv_tensor *t = pv_transpose(c, x, d, last), *r = t ? pv_tensor_new(c, 'f', &t->s) : NULL;
  int64_t n = t ? last_dim(t) : 1;
  for (int64_t i = 0; r && i < r->n && !c->failed; i += n) softmax_row(c, t->e + i, r->e + i, n, false);
  return r ? pv_value_of(c, pv_transpose(c, r, d, last)) : NULL;
}

/* ---- contractions ---- */

static bool vectors(pv_cx *c, const pv_id *e, int64_t n, int64_t k, pv_vec **out) {
  *out = take(c, (size_t)n * sizeof **out);
  for (int64_t i = 0; *out && i < n && !c->failed; i++) (*out)[i] = pv_vec_of(c, e + i * k, (size_t)k);
  return *out && !c->failed;
}

/* r[i, j] = sum over k of a[i, k] b[j, k] */
static void contract(pv_cx *c, const pv_id *a, const pv_id *b, int64_t m, int64_t n, int64_t k, pv_id *r) {
  pv_vec *x, *y;
  if (!vectors(c, a, m, k, &x) || !vectors(c, b, n, k, &y)) return;
  for (int64_t i = 0; i < m; i++)
    for (int64_t j = 0; j < n && !c->failed; j++) r[i * n + j] = k ? pv_dot(c, &x[i], &y[j]) : c->zero;
}

/* a: [..., m, k] and b: [..., n, k] of one batch shape (broadcast); result [..., m, n]. */
static pv_tensor *batched(pv_cx *c, pv_tensor *a, pv_tensor *b) {
  rule_shape p, q, s;
  if (!a || !b || a->kind != b->kind || a->kind == 'b') return NULL;
  int64_t m = a->s.dim[a->s.rank - 2], k = last_dim(a), n = b->s.dim[b->s.rank - 2];
  if (last_dim(b) != k) return NULL;
  p = a->s, q = b->s;
  p.rank -= 2, q.rank -= 2;
  if (!pv_broadcast(c, &p, &q, &s)) return NULL;
  p = q = s;
  p.rank = q.rank = s.rank + 2;
  if (p.rank > RULE_MAX_RANK) return NULL;
  p.dim[s.rank] = m, p.dim[s.rank + 1] = k;
  q.dim[s.rank] = n, q.dim[s.rank + 1] = k;
  a = pv_expand(c, a, &p);
  b = pv_expand(c, b, &q);
  p.dim[s.rank + 1] = n;
  pv_tensor *r = a && b ? pv_tensor_new(c, a->kind, &p) : NULL;
  int64_t batches = r && r->n ? r->n / (m * n) : 0;
  for (int64_t i = 0; i < batches && !c->failed; i++)
    contract(c, a->e + i * m * k, b->e + i * n * k, m, n, k, r->e + i * m * n);
  return r;
}

static pv_tensor *with_dim(pv_cx *c, pv_tensor *t, bool front) {
  return pv_reshape(c, t, front ? &(rule_shape){2, {1, t->n}} : &(rule_shape){2, {t->n, 1}});
}

static pv_tensor *matmul(pv_cx *c, pv_tensor *a, pv_tensor *b) {
  if (!a || !b || a->s.rank == 0 || b->s.rank == 0) return NULL;
  bool va = a->s.rank == 1, vb = b->s.rank == 1;
  if (va) a = with_dim(c, a, true);
  if (vb) b = with_dim(c, b, false);
  if (!a || !b) return NULL;
  pv_tensor *r = batched(c, a, pv_transpose(c, b, b->s.rank - 2, b->s.rank - 1));
  if (!r || (!va && !vb)) return r;
  rule_shape s = {.rank = 0};
  for (uint32_t i = 0; i < r->s.rank; i++)
    if (!(va && i == r->s.rank - 2) && !(vb && i == r->s.rank - 1)) s.dim[s.rank++] = r->s.dim[i];
  return pv_reshape(c, r, &s);
}

enum { MM, BMM, MATMUL };

static pv_value *define_matmul(pv_call_args *a, int which) {
  pv_tensor *x = pv_arg_tensor(a, "self"), *y = pv_arg_tensor(a, pv_arg(a, "mat2") ? "mat2" : "other");
  if (!x || !y) return NULL;
  uint32_t rank = which == MM ? 2 : 3;
  if (which != MATMUL && (x->s.rank != rank || y->s.rank != rank || (which == BMM && x->s.dim[0] != y->s.dim[0])))
    return NULL;
  return pv_value_of(a->c, matmul(a->c, x, y));
}

/* p * a + q * b, a broadcast to b's shape. */
static pv_tensor *combine(pv_cx *c, pv_id p, pv_tensor *a, pv_id q, pv_tensor *b) {
  if (!a || !b || !(a = pv_expand(c, a, &b->s)) || a->kind != b->kind) return NULL;
  pv_tensor *r = pv_tensor_new(c, b->kind, &b->s);
  for (int64_t i = 0; r && i < r->n && !c->failed; i++) {
    pv_id x = p == c->zero ? c->zero : pv_mul(c, p, a->e[i]);
    r->e[i] = pv_add(c, x, pv_mul(c, q, b->e[i]));
  }
  return r;
}

enum { ADDMM, BADDBMM };

static pv_value *define_addmm(pv_call_args *a, int which) {
  pv_cx *c = a->c;
  pv_tensor *bias = pv_arg_tensor(a, "self"), *x = pv_arg_tensor(a, which == ADDMM ? "mat1" : "batch1"),
            *y = pv_arg_tensor(a, which == ADDMM ? "mat2" : "batch2");
  uint32_t rank = which == ADDMM ? 2 : 3;
  char k1 = 'i', k2 = 'i';
  if (!bias || !x || !y || x->s.rank != rank || y->s.rank != rank) return NULL;
  if (which == BADDBMM && x->s.dim[0] != y->s.dim[0]) return NULL;
  pv_id beta = pv_arg_scalar(a, "beta", &k1), alpha = pv_arg_scalar(a, "alpha", &k2);
  pv_tensor *r = matmul(c, x, y);
  if (!r || r->kind != 'f' || k1 == 'b' || k2 == 'b') return NULL;
  return pv_value_of(c, combine(c, beta, bias, alpha, r));
}

static pv_value *define_linear(pv_call_args *a, int which) {
  (void)which;
  pv_cx *c = a->c;
  pv_tensor *x = pv_arg_tensor(a, "input"), *w = pv_arg_tensor(a, "weight"), *b = pv_arg_tensor(a, "bias");
  if (!x || !w || x->s.rank == 0 || w->s.rank != 2 || (b && b->s.rank > 1)) return NULL;
  int64_t k = last_dim(x);
  if (k == 0 || w->s.dim[1] != k) return NULL;
  pv_tensor *r = batched(c, pv_reshape(c, x, &(rule_shape){2, {x->n / k, k}}), w);
  rule_shape s = x->s;
  s.dim[s.rank - 1] = w->s.dim[0];
  r = r ? pv_reshape(c, r, &s) : NULL;
  return pv_value_of(c, b ? combine(c, c->one, b, c->one, r) : r);
}

/* ---- norms ---- */

/* One row: (x - mean) / sqrt(var + eps) * w + b. Also gives mean and reciprocal deviation. */
static void layer_norm_row(pv_cx *c, const pv_id *x, const pv_id *w, const pv_id *b, int64_t n, pv_id eps, pv_id *out,
                           pv_id *m, pv_id *r) {
  *m = mean(c, x, n);
  pv_id *y = take(c, 2 * (size_t)n * sizeof *y);
  if (!y) return;
  for (int64_t i = 0; i < n && !c->failed; i++) {
    y[i] = pv_sub(c, x[i], *m);
    y[n + i] = pv_pow(c, y[i], 2);
  }
  *r = pv_pow(c, pv_sqrt(c, pv_add(c, mean(c, y + n, n), eps)), -1);
  for (int64_t i = 0; i < n && !c->failed; i++) {
    out[i] = pv_mul(c, y[i], *r);
    if (w) out[i] = pv_mul(c, out[i], w[i]);
    if (b) out[i] = pv_add(c, out[i], b[i]);
  }
}

enum { LAYER_NORM, NATIVE_LAYER_NORM };

/* How many elements a norm spans: `normalized_shape` must be the input's last dimensions. */
static int64_t norm_span(pv_call_args *a, const pv_tensor *x, uint32_t *dims) {
  int64_t d[RULE_MAX_RANK], n = 1;
  if (!pv_arg_ints(a, "normalized_shape", d, dims) || *dims == 0 || *dims > x->s.rank) return 0;
  for (uint32_t k = 0; k < *dims; k++) {
    if (d[k] != x->s.dim[x->s.rank - *dims + k]) return 0;
    n *= d[k];
  }
  return n;
}

/* A weight of the norm: of the same shape as what it spans. */
static bool spans(const pv_tensor *w, const pv_tensor *x, uint32_t dims) {
  if (!w) return true;
  bool same = w->kind == 'f' && w->s.rank == dims && dims <= x->s.rank;
  for (uint32_t k = 0; k < dims && same; k++) same = w->s.dim[k] == x->s.dim[x->s.rank - dims + k];
  return same;
}

static pv_value *define_layer_norm(pv_call_args *a, int which) {
  pv_cx *c = a->c;
  pv_tensor *x = pv_arg_tensor(a, "input"), *w = pv_arg_tensor(a, "weight"), *b = pv_arg_tensor(a, "bias");
  uint32_t dims = 0;
  int64_t n = x && x->kind == 'f' ? norm_span(a, x, &dims) : 0;
  if (n == 0 || !spans(w, x, dims) || !spans(b, x, dims)) return NULL;
  pv_id eps = pv_literal(c, pv_arg_float(a, "eps", 1e-5));
  rule_shape s = x->s;
  for (uint32_t k = s.rank - dims; k < s.rank; k++) s.dim[k] = 1;
  pv_tensor *t[3] = {pv_tensor_new(c, 'f', &x->s), pv_tensor_new(c, 'f', &s), pv_tensor_new(c, 'f', &s)};
  for (int64_t i = 0; t[0] && t[1] && t[2] && i < x->n / n && !c->failed; i++)
    layer_norm_row(c, x->e + i * n, w ? w->e : NULL, b ? b->e : NULL, n, eps, t[0]->e + i * n, &t[1]->e[i], &t[2]->e[i]);
  return which == LAYER_NORM ? pv_value_of(c, t[0]) : pv_value_list(c, t, 3);
}

/* x / sqrt(mean x^2 + eps) * w over rows of n, the last `dims` dimensions. */
static pv_tensor *rms_norm(pv_cx *c, const pv_tensor *x, const pv_tensor *w, int64_t n, uint32_t dims, pv_id eps) {
  if (!x || x->kind != 'f' || n == 0 || !spans(w, x, dims)) return NULL;
  pv_tensor *r = pv_tensor_new(c, 'f', &x->s);
  pv_id *y = take(c, (size_t)n * sizeof *y);
  for (int64_t i = 0; r && y && i < x->n && !c->failed; i += n) {
    for (int64_t j = 0; j < n; j++) y[j] = pv_pow(c, x->e[i + j], 2);
    pv_id s = pv_pow(c, pv_sqrt(c, pv_add(c, mean(c, y, n), eps)), -1);
    for (int64_t j = 0; j < n && !c->failed; j++) {
      r->e[i + j] = pv_mul(c, x->e[i + j], s);
      if (w) r->e[i + j] = pv_mul(c, r->e[i + j], w->e[j]);
    }
  }
  return r;
}

static pv_value *define_rms_norm(pv_call_args *a, int which) {
  (void)which;
  pv_tensor *x = pv_arg_tensor(a, "input"), *w = pv_arg_tensor(a, "weight");
  uint32_t dims = 0;
  /* Without eps it depends on the dtype. */
  if (!x || !pv_arg(a, "eps")) return NULL;
  const int64_t n = norm_span(a, x, &dims);
  return pv_value_of(a->c, rms_norm(a->c, x, w, n, dims, pv_literal(a->c, pv_arg_float(a, "eps", 0))));
}

/* ---- attention ---- */

typedef struct attention {
  int64_t n_queries, n_keys, dim, value_dim;
  pv_id scale;
  bool causal;
  const pv_id *mask; /* n_queries x n_keys, or NULL */
  char mask_kind;
  int64_t window;   /* a query sees the last so many keys; 0: all */
  pv_id cap, slope; /* 0: none */
} attention;

/* A score as the kernels have it after scaling: capped, then with its distance's penalty. */
static pv_id score(pv_cx *c, const attention *s, pv_id x, int64_t query, int64_t key) {
  if (s->cap) x = pv_mul(c, s->cap, pv_tanh(c, pv_div(c, x, s->cap)));
  if (s->slope) x = pv_add(c, x, pv_mul(c, s->slope, pv_int(c, key - query)));
  const bool hidden = (s->causal && key > query) || (s->window > 0 && key <= query - s->window);
  return hidden ? c->neginf : x;
}

/* One head: q [Tq, d], k [Tk, d], v [Tk, e] to out [Tq, e]. */
static void attend(pv_cx *c, const attention *s, const pv_id *q, const pv_id *k, const pv_id *v, pv_id *out) {
  int64_t m = s->n_queries, n = s->n_keys, e = s->value_dim;
  pv_id *p = take(c, (size_t)(m * n) * sizeof *p), *t = take(c, (size_t)(n * e) * sizeof *t);
  if (!p || !t) return;
  contract(c, q, k, m, n, s->dim, p);
  for (int64_t i = 0; i < m * n && !c->failed; i++) {
    p[i] = score(c, s, pv_mul(c, p[i], s->scale), i / n, i % n);
    if (s->mask) p[i] = s->mask_kind == 'b' ? pv_ite(c, s->mask[i], p[i], c->neginf) : pv_add(c, p[i], s->mask[i]);
  }
  for (int64_t i = 0; i < m && !c->failed; i++) softmax_row(c, p + i * n, p + i * n, n, true);
  for (int64_t i = 0; i < n * e; i++) t[i % e * n + i / e] = v[i];
  if (!c->failed) contract(c, p, t, m, e, n, out);
}

static pv_id scale_of(pv_call_args *a, int64_t d) {
  pv_cx *c = a->c;
  if (pv_arg(a, "scale")) return pv_literal(c, pv_arg_float(a, "scale", 1));
  return pv_pow(c, pv_sqrt(c, pv_int(c, d)), -1);
}

static pv_tensor *grouped(pv_cx *c, pv_tensor *t, int64_t heads) {
  uint32_t d = t->s.rank - 3;
  int64_t inner = t->s.dim[d + 1] * t->s.dim[d + 2], h = t->s.dim[d];
  rule_shape s = t->s;
  if (h == heads) return t;
  if (h == 0 || heads % h) return NULL;
  s.dim[d] = heads;
  pv_tensor *r = pv_tensor_new(c, t->kind, &s);
  for (int64_t i = 0; r && inner && i < r->n / inner; i++) {
    int64_t b = i / heads, g = i % heads / (heads / h);
    memcpy(r->e + i * inner, t->e + (b * h + g) * inner, (size_t)inner * sizeof *r->e);
  }
  return r;
}

/* All but the last two dimensions broadcast against each other. */
static bool same_batch(pv_cx *c, pv_tensor **const t[3], uint32_t r) {
  rule_shape batch = {.rank = r - 2};
  for (uint32_t d = 0; d + 2 < r; d++) batch.dim[d] = 1;
  for (int i = 0; i < 3; i++) {
    rule_shape own = (*t[i])->s;
    own.rank = r - 2;
    if (!pv_broadcast(c, &batch, &own, &batch)) return false;
  }
  for (int i = 0; i < 3; i++) {
    rule_shape s = (*t[i])->s;
    memcpy(s.dim, batch.dim, (r - 2) * sizeof *s.dim);
    *t[i] = pv_expand(c, *t[i], &s);
    if (!*t[i]) return false;
  }
  return true;
}

static pv_value *define_sdpa(pv_call_args *a, int which) {
  (void)which;
  pv_cx *c = a->c;
  pv_tensor *q = pv_arg_tensor(a, "query"), *k = pv_arg_tensor(a, "key"), *v = pv_arg_tensor(a, "value"),
            *mask = pv_arg_tensor(a, "attn_mask");
  if (!q || !k || !v || q->kind != 'f' || k->kind != 'f' || v->kind != 'f' || c->failed) return NULL;
  uint32_t r = q->s.rank;
  if (r < 3 || k->s.rank != r || v->s.rank != r || pv_arg_float(a, "dropout_p", 0) != 0) return NULL;
  if (pv_arg_int(a, "enable_gqa", 0)) {
    k = grouped(c, k, q->s.dim[r - 3]);
    v = grouped(c, v, q->s.dim[r - 3]);
    if (!k || !v) return NULL;
  }
  attention s = {q->s.dim[r - 2], k->s.dim[r - 2], q->s.dim[r - 1], v->s.dim[r - 1], c->one,
                 pv_arg_int(a, "is_causal", 0) != 0, NULL, 'f', 0, 0, 0};
  if (!same_batch(c, (pv_tensor **[3]){&q, &k, &v}, r)) return NULL;
  if (v->s.dim[r - 2] != s.n_keys || k->s.dim[r - 1] != s.dim || s.n_keys == 0 || s.dim == 0) return NULL;
  s.scale = scale_of(a, s.dim);
  rule_shape scores = q->s, shape = q->s;
  scores.dim[r - 1] = s.n_keys;
  shape.dim[r - 1] = s.value_dim;
  if (mask) {
    if ((mask->kind != 'b' && mask->kind != 'f') || s.causal) return NULL;
    mask = pv_expand(c, mask, &scores);
    if (!mask) return NULL;
    s.mask_kind = mask->kind;
  }
  pv_tensor *o = pv_tensor_new(c, 'f', &shape);
  int64_t per = s.n_queries * s.value_dim, heads = o && per ? o->n / per : 0;
  for (int64_t h = 0; h < heads && !c->failed; h++) {
    if (mask) s.mask = mask->e + h * s.n_queries * s.n_keys;
    attend(c, &s, q->e + h * s.n_queries * s.dim, k->e + h * s.n_keys * s.dim, v->e + h * s.n_keys * s.value_dim,
           o->e + h * per);
  }
  return pv_value_of(c, o);
}

/* ---- tables ---- */

/* Rows of a table [V, D] (any elements) picked by index: one sequence per column. */
static pv_tensor *pick(pv_cx *c, const pv_tensor *table, const pv_tensor *index, rule_shape s, int64_t v, int64_t d) {
  pv_tensor *r = pv_tensor_new(c, table->kind, &s);
  pv_id *column = take(c, (size_t)v * sizeof *column), *seq = take(c, (size_t)d * sizeof *seq);
  uint32_t q;
  bool variable = false;
  if (!r || !column || !seq || table->kind == 'b' || index->kind != 'i') return NULL;
  for (int64_t i = 0; i < index->n; i++) variable |= !pv_is_const(c, index->e[i], &q);
  for (int64_t j = 0; j < d && variable && !c->failed; j++) {
    for (int64_t i = 0; i < v; i++) column[i] = table->e[i * d + j];
    seq[j] = pv_seq(c, column, (size_t)v);
  }
  for (int64_t i = 0; i < index->n && !c->failed; i++) {
    int64_t row = 0;
    bool fixed = pv_is_const(c, index->e[i], &q);
    if (fixed && (!pv_q_is_int(c, q, &row) || row < 0 || row >= v)) pv_fail(c, "a table read out of range");
    for (int64_t j = 0; j < d && !c->failed; j++)
      r->e[i * d + j] = fixed ? table->e[row * d + j] : pv_select(c, seq[j], index->e[i]);
  }
  return r;
}

enum { EMBEDDING, INDEX_SELECT };

static pv_value *define_pick(pv_call_args *a, int which) {
  pv_cx *c = a->c;
  pv_tensor *t = pv_arg_tensor(a, which == EMBEDDING ? "weight" : "self"),
            *i = pv_arg_tensor(a, which == EMBEDDING ? "indices" : "index");
  uint32_t d = 0;
  if (!t || !i || t->s.rank == 0) return NULL;
  if (which == EMBEDDING) {
    rule_shape s = i->s;
    if (t->s.rank != 2 || s.rank >= RULE_MAX_RANK) return NULL;
    s.dim[s.rank++] = t->s.dim[1];
    return pv_value_of(c, pick(c, t, i, s, t->s.dim[0], t->s.dim[1]));
  }
  if (i->s.rank > 1 || !pv_dim(c, pv_arg_int(a, "dim", 0), t->s.rank, &d)) return NULL;
  t = pv_transpose(c, t, 0, d);
  if (!t) return NULL;
  int64_t v = t->s.dim[0];
  if (v == 0) return NULL;
  rule_shape s = t->s;
  s.dim[0] = i->n;
  pv_tensor *r = pick(c, t, i, s, v, t->n / v);
  return r ? pv_value_of(c, pv_transpose(c, r, 0, d)) : NULL;
}

/* ---- kernels, by their declared definitions ---- */

static pv_value *kernel_rms_norm(pv_call_args *a, int which) {
  pv_cx *c = a->c;
  pv_tensor *x = pv_arg_tensor(a, "input"), *w = pv_arg_tensor(a, "weight");
  pv_tensor *added = which ? pv_arg_tensor(a, "residual") : NULL;
  if (!x || !w || x->kind != 'f' || x->s.rank == 0) return NULL;
  pv_id eps = pv_literal(c, pv_arg_float(a, "epsilon", 0));
  if (which) {
    if (!added || !rule_shape_eq(&added->s, &x->s)) return NULL;
    x = combine(c, c->one, added, c->one, x);
    if (!x) return NULL;
  }
  pv_tensor *t[2] = {rms_norm(c, x, w, last_dim(x), 1, eps), x};
  return which ? pv_value_list(c, t, 2) : pv_value_of(c, t[0]);
}

enum { SILU_AND_MUL, GELU_AND_MUL, GELU_TANH_AND_MUL, GELU_NEW, GELU_QUICK };

static pv_id activation(pv_cx *c, int which, pv_id x) {
  switch (which) {
  case SILU_AND_MUL: return pv_mul(c, x, pv_sigmoid(c, x));
  case GELU_AND_MUL: return pv_gelu(c, x, false);
  case GELU_QUICK: return pv_mul(c, x, pv_sigmoid(c, pv_scale(c, pv_q_double(c, 1.702), x)));
  default: return pv_gelu(c, x, true);
  }
}

static pv_value *kernel_activation(pv_call_args *a, int which) {
  pv_cx *c = a->c;
  pv_tensor *x = pv_arg_tensor(a, "input");
  bool halves = which <= GELU_TANH_AND_MUL;
  if (!x || x->kind != 'f' || (halves && (x->s.rank == 0 || last_dim(x) % 2))) return NULL;
  rule_shape s = x->s;
  int64_t n = halves ? last_dim(x) / 2 : 1;
  if (halves) s.dim[s.rank - 1] = n;
  pv_tensor *r = pv_tensor_new(c, 'f', &s);
  for (int64_t i = 0; r && i < r->n && !c->failed; i++) {
    if (!halves) {
      r->e[i] = activation(c, which, x->e[i]);
      continue;
    }
    const pv_id *row = x->e + i / n * 2 * n;
    pv_id g = activation(c, which, row[i % n]);
    r->e[i] = pv_mul(c, g, row[n + i % n]);
  }
  return pv_value_of(c, r);
}

/* Positions stand in front of x's other sizes. */
static bool in_front(const pv_tensor *p, const pv_tensor *x) {
  bool same = p->s.rank <= x->s.rank;
  for (uint32_t k = 0; k < p->s.rank && same; k++) same = p->s.dim[k] == x->s.dim[k];
  return same;
}

/* Rotate pairs of each head's first `rot` elements by the table row of the token's position: [cos | sin]. */
static pv_tensor *rotate(pv_cx *c, const pv_tensor *x, const pv_tensor *rows, int64_t head, bool neox) {
  int64_t tokens = rows->s.dim[0], rot = rows->s.dim[1], half = rot / 2;
  if (x->kind != 'f' || head <= 0 || rot % 2 || rot > head || tokens == 0 || head > x->n / tokens || x->n % (tokens * head)) return NULL;
  pv_tensor *r = pv_tensor_new(c, 'f', &x->s);
  int64_t per = r ? x->n / tokens : 0;
  for (int64_t i = 0; r && i < r->n && !c->failed; i++) {
    const pv_id *row = rows->e + i / per * rot;
    int64_t at = i % per % head, base = i - at, k = neox ? at % (half ? half : 1) : at / 2;
    bool second = neox ? at >= half : at % 2;
    r->e[i] = x->e[i];
    if (at >= rot) continue;
    pv_id p = x->e[base + (neox ? k : 2 * k)], q = x->e[base + (neox ? half + k : 2 * k + 1)];
    pv_id u = pv_mul(c, second ? q : p, row[k]), v = pv_mul(c, second ? p : q, row[half + k]);
    r->e[i] = second ? pv_add(c, u, v) : pv_sub(c, u, v);
  }
  return r;
}

static pv_value *kernel_rotary(pv_call_args *a, int which) {
  (void)which;
  pv_cx *c = a->c;
  pv_tensor *p = pv_arg_tensor(a, "positions"), *q = pv_arg_tensor(a, "query"), *k = pv_arg_tensor(a, "key"),
            *table = pv_arg_tensor(a, "cos_sin_cache");
  int64_t head = pv_arg_int(a, "head_size", 0);
  bool neox = pv_arg_int(a, "is_neox", 0);
  if (!p || !q || !k || !table || table->s.rank != 2 || c->failed || table->kind != 'f') return NULL;
  if (!in_front(p, q) || !in_front(p, k)) return NULL;
  rule_shape s = {2, {p->n, table->s.dim[1]}};
  pv_tensor *rows = pick(c, table, p, s, table->s.dim[0], table->s.dim[1]);
  if (!rows) return NULL;
  pv_tensor *t[2] = {rotate(c, q, rows, head, neox), rotate(c, k, rows, head, neox)};
  return pv_value_list(c, t, 2);
}

/* Slopes of all heads; false: not usable. NULL in `out`: none. */
static bool slopes_of(pv_call_args *a, int64_t heads, const pv_id **out) {
  const rule_term *t = pv_arg(a, "alibi_slopes");
  *out = NULL;
  if (!t) return true;
  pv_id *e = take(a->c, (size_t)heads * sizeof *e);
  if (!e || t->kind != RULE_LIST || (int64_t)t->n != heads) return false;
  for (uint32_t i = 0; i < t->n; i++) {
    const rule_term *v = t->child[i];
    if (v->kind != RULE_FLOAT && v->kind != RULE_INT) return false;
    e[i] = v->kind == RULE_INT ? pv_int(a->c, v->u.i) : pv_literal(a->c, v->u.f);
  }
  *out = e;
  return !a->c->failed;
}

/* x [T, heads d] or [T, heads, d] as [heads, T, d]; `*d` 0: whatever it is. NULL: it does not fit. */
static pv_tensor *by_head(pv_cx *c, pv_tensor *x, int64_t t, int64_t heads, int64_t *d) {
  if (x->kind != 'f' || (x->s.rank != 2 && x->s.rank != 3) || x->s.dim[0] != t) return NULL;
  const int64_t width = x->s.rank == 3 ? x->s.dim[2] : x->s.dim[1] / heads;
  if (x->s.rank == 3 ? x->s.dim[1] != heads : x->s.dim[1] % heads != 0) return NULL;
  if (width < 1 || (*d && width != *d)) return NULL;
  *d = width;
  x = pv_reshape(c, x, &(rule_shape){3, {t, heads, width}});
  return x ? pv_transpose(c, x, 0, 1) : NULL;
}

/* Attention over one sequence: query [T, H D] or [T, H, D], key [T, G D] or [T, G, D], value [T, G E] or [T, G, E];
 * top-left causal. */
static pv_value *kernel_attention(pv_call_args *a, int which) {
  (void)which;
  pv_cx *c = a->c;
  pv_tensor *q = pv_arg_tensor(a, "query"), *k = pv_arg_tensor(a, "key"), *v = pv_arg_tensor(a, "value");
  int64_t heads = pv_arg_int(a, "num_heads", 0), groups = pv_arg_int(a, "num_kv_heads", 0), d = pv_arg_int(a, "head_size", 0), e = 0;
  const int64_t window = pv_arg_int(a, "sliding_window", 0);
  const double cap = pv_arg_float(a, "logits_soft_cap", 0);
  const pv_id *slopes;
  if (!q || !k || !v || c->failed || heads < 1 || groups < 1 || d < 1 || heads > 65536 || d > 65536 || heads % groups || window < 0) return NULL;
  const int64_t t = q->s.rank ? q->s.dim[0] : 0;
  const bool flat = q->s.rank == 2;
  if (t < 1 || !slopes_of(a, heads, &slopes)) return NULL;
  q = by_head(c, q, t, heads, &d);
  k = by_head(c, k, t, groups, &d);
  v = by_head(c, v, t, groups, &e);
  if (!q || !k || !v) return NULL;
  attention s = {t, t, d, e, scale_of(a, d), pv_arg_int(a, "causal", 0) != 0, NULL, 'f', window, 0, 0};
  if (cap < 0 || cap > 0) s.cap = pv_literal(c, cap);
  pv_tensor *o = pv_tensor_new(c, 'f', &(rule_shape){3, {heads, t, e}});
  for (int64_t h = 0; o && h < heads && !c->failed; h++) {
    const int64_t g = h / (heads / groups);
    if (slopes) s.slope = slopes[h];
    attend(c, &s, q->e + h * t * d, k->e + g * t * d, v->e + g * t * e, o->e + h * t * e);
  }
  o = o && !c->failed ? pv_transpose(c, o, 0, 1) : NULL;
  return o ? pv_value_of(c, flat ? pv_reshape(c, o, &(rule_shape){2, {t, heads * e}}) : o) : NULL;
}

static const pv_definition table[] = {
    {"aten::sum.dim_IntList", define_reduction, SUM},
    {"aten::sum", define_reduction, SUM},
    {"aten::mean.dim", define_reduction, MEAN},
    {"aten::mean", define_reduction, MEAN},
    {"aten::amax", define_reduction, AMAX},
    {"aten::amin", define_reduction, AMIN},
    {"aten::cumsum", define_cumsum, 0},
    {"aten::softmax.int", define_softmax, 0},
    {"aten::_softmax", define_softmax, 0},
    {"aten::mm", define_matmul, MM},
    {"aten::bmm", define_matmul, BMM},
    {"aten::matmul", define_matmul, MATMUL},
    {"aten::addmm", define_addmm, ADDMM},
    {"aten::baddbmm", define_addmm, BADDBMM},
    {"aten::linear", define_linear, 0},
    {"aten::layer_norm", define_layer_norm, LAYER_NORM},
    {"aten::native_layer_norm", define_layer_norm, NATIVE_LAYER_NORM},
    {"aten::rms_norm", define_rms_norm, 0},
    {"aten::scaled_dot_product_attention", define_sdpa, 0},
    {"aten::embedding", define_pick, EMBEDDING},
    {"aten::index_select", define_pick, INDEX_SELECT},
    {"_C::rms_norm.isomer", kernel_rms_norm, 0},
    {"_C::fused_add_rms_norm.isomer", kernel_rms_norm, 1},
    {"_C::rotary_embedding.isomer", kernel_rotary, 0},
    {"_C::silu_and_mul.isomer", kernel_activation, SILU_AND_MUL},
    {"_C::gelu_and_mul.isomer", kernel_activation, GELU_AND_MUL},
    {"_C::gelu_tanh_and_mul.isomer", kernel_activation, GELU_TANH_AND_MUL},
    {"_C::gelu_new.isomer", kernel_activation, GELU_NEW},
    {"_C::gelu_quick.isomer", kernel_activation, GELU_QUICK},
    {"vllm::unified_attention.isomer", kernel_attention, 0},
    {"vllm::unified_attention_with_output.isomer", kernel_attention, 0},
};

const pv_definition *pv_define_nn(const char *name) {
  for (size_t i = 0; i < sizeof table / sizeof *table; i++)
    if (!strcmp(table[i].name, name)) return &table[i];
  return NULL;
}
