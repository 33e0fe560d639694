/* Definitions for the symbolic prover: gradients of operators that are not element by element, and
 * of gelu. Results of the forward pass that a gradient takes (a softmax's result, a norm's mean)
 * are operands like any other: the definition holds for arbitrary values of them. */
#include <string.h>

#include "validate/ops/ops.h"

static bool same_sizes(sc *c, const pt_tensor *a, const pt_tensor *b) {
  if (a->rank != b->rank || a->lead || b->lead) return false;
  for (uint32_t k = 0; k < a->rank; k++)
    if (!sc_require_eq(c, a->dim[k], b->dim[k])) return false;
  return true;
}

static const pt_tensor *floats(pt_args *a, const char *name) {
  const pt_tensor *x = pt_arg_tensor(a, name);
  return x && x->kind == 'f' ? x : NULL;
}

/* ---- softmax ---- */

/* in[0] the gradient, in[1] the result, k[0] the dimension: y (g - sum g y); of the logarithm
 * (which = 1) g - exp y sum g. */
static sx softmax_elem(sc *c, const pt_tensor *t, const sx *idx) {
  sx at[RULE_MAX_RANK];
  memcpy(at, idx, t->rank * sizeof *at);
  const sx k = at[t->k[0]] = sc_index(c, t->dim[t->k[0]]);
  const sx g = pt_at(c, t->in[0], at);
  const sx total = sx_sum(c, k, t->which ? g : sx_mul(c, g, pt_at(c, t->in[1], at)));
  const sx own = pt_at(c, t->in[0], idx), y = pt_at(c, t->in[1], idx);
  return t->which ? sx_sub(c, own, sx_mul(c, sx_exp(c, y), total))
                  : sx_mul(c, y, sx_sub(c, own, total));
}

static const pt_value *define_softmax(pt_args *a, int which) {
  sc *c = a->c;
  const pt_tensor *g = floats(a, "grad_output"), *y = floats(a, "output");
  uint32_t d;
  if (!g || !y || y->rank == 0 || !same_sizes(c, g, y) || !pt_arg_dim(a, "dim", 0, y, &d))
    return NULL;
  pt_tensor *t = pt_like(c, g, 'f', softmax_elem);
  if (!t) return NULL;
  t->in[1] = y;
  t->k[0] = (int32_t)d;
  t->which = which;
  return pt_one(c, t);
}

/* ---- gelu ---- */

/* The constants are ATen's. */
static sx gelu_slope(sc *c, sx x) {
  const sx half = sx_double(c, 0.5), root = pt_literal(c, 0.70710678118654752440),
           density = pt_literal(c, 0.39894228040143267794);
  const sx share = sx_mul(c, half, sx_add(c, c->one, sx_fn(c, F_ERF, sx_mul(c, x, root))));
  const sx bell = sx_exp(c, sx_neg(c, sx_mul(c, half, sx_mul(c, x, x))));
  return sx_add(c, share, sx_mul(c, sx_mul(c, x, bell), density));
}

static sx gelu_tanh_slope(sc *c, sx x) {
  const sx half = sx_double(c, 0.5), beta = pt_literal(c, 0.79788456080286541),
           kappa = sx_double(c, 0.044715), square = sx_mul(c, x, x);
  const sx inner = sx_mul(c, beta, sx_add(c, x, sx_mul(c, kappa, sx_mul(c, square, x))));
  const sx th = sx_tanh(c, inner);
  const sx steep =
      sx_mul(c, beta, sx_add(c, c->one, sx_mul(c, sx_mul(c, sx_int(c, 3), kappa), square)));
  const sx straight = sx_mul(c, half, sx_add(c, c->one, th)),
           bend = sx_mul(c, sx_mul(c, half, x),
                         sx_mul(c, sx_sub(c, c->one, sx_mul(c, th, th)), steep));
  return sx_add(c, straight, bend);
}

static const pt_value *define_gelu(pt_args *a, int which) {
  const pt_tensor *g = floats(a, "grad_output"), *x = floats(a, "self");
  const bool tanh = pt_arg_is(a, "approximate", "tanh");
  (void)which;
  if (!g || !x || (!tanh && !pt_arg_is(a, "approximate", "none"))) return NULL;
  return pt_one(a->c, pt_times(a->c, g, pt_unary(a->c, x, tanh ? gelu_tanh_slope : gelu_slope)));
}

/* ---- layer norm ---- */

/* The sum of `x` over dimensions from..to of `at`. */
static sx summed(sc *c, const pt_tensor *x, sx *at, uint32_t from, uint32_t to,
                 const pt_tensor *by) {
  for (uint32_t k = from; k < to; k++) at[k] = sc_index(c, x->dim[k]);
  sx v = pt_at(c, x, at);
  if (by) v = sx_mul(c, v, pt_at(c, by, at));
  for (uint32_t k = to; k-- > from;) v = sx_sum(c, at[k], v);
  return v;
}

/* in[0] the gradient times the weight, in[1] the tensor that was normalised, in[2] the reciprocal
 * deviation, k[0] the dimensions in front of those that a mean is over, p[0] the elements of a
 * mean. */
static sx norm_input_elem(sc *c, const pt_tensor *t, const sx *idx) {
  sx at[RULE_MAX_RANK], front[RULE_MAX_RANK];
  const uint32_t from = (uint32_t)t->k[0];
  memcpy(at, idx, t->rank * sizeof *at);
  memcpy(front, idx, t->rank * sizeof *front);
  for (uint32_t k = from; k < t->rank; k++) front[k] = c->zero;
  const sx of = sx_inv(c, t->p[0]), all = summed(c, t->in[0], at, from, t->rank, NULL),
           along = summed(c, t->in[0], at, from, t->rank, t->in[1]);
  const sx shift = sx_mul(c, of, sx_add(c, all, sx_mul(c, pt_at(c, t->in[1], idx), along)));
  return sx_mul(c, pt_at(c, t->in[2], front), sx_sub(c, pt_at(c, t->in[0], idx), shift));
}

/* Of the weight: in[0] times in[1] (NULL: of the bias) over the k[0] dimensions in front. */
static sx norm_weight_elem(sc *c, const pt_tensor *t, const sx *idx) {
  sx at[RULE_MAX_RANK];
  memcpy(at + t->k[0], idx, t->rank * sizeof *at);
  return summed(c, t->in[0], at, 0, (uint32_t)t->k[0], t->in[1]);
}

static const pt_tensor *norm_weight(sc *c, const pt_tensor *g, const pt_tensor *x, uint32_t front) {
  pt_tensor *t = pt_new(c, 'f', norm_weight_elem);
  if (!t) return NULL;
  t->in[0] = g;
  t->in[1] = x;
  t->k[0] = (int32_t)front;
  t->rank = g->rank - front;
  memcpy(t->dim, g->dim + front, t->rank * sizeof *t->dim);
  return t;
}

/* A mean, or a reciprocal deviation: the sizes in front, then ones. */
static bool is_statistic(sc *c, const pt_tensor *s, const pt_tensor *x, uint32_t front) {
  if (!s || s->rank != x->rank || s->lead) return false;
  for (uint32_t k = 0; k < x->rank; k++)
    if (!sc_require_eq(c, s->dim[k], k < front ? x->dim[k] : c->one)) return false;
  return true;
}

static bool is_wanted(pt_args *a, bool want[3]) {
  const rule_term *t = pt_arg(a, "output_mask");
  if (!t || t->n != 3) return false;
  for (uint32_t k = 0; k < 3; k++) {
    if (t->child[k]->kind != RULE_BOOLEAN) return false;
    want[k] = t->child[k]->u.i;
  }
  return true;
}

static sx no_elem(sc *c, const pt_tensor *t, const sx *idx) {
  (void)t;
  (void)idx;
  return c->zero;
}

/* A gradient that was not asked for is a tensor without elements. */
static const pt_tensor *unwanted(sc *c) {
  pt_tensor *t = pt_new(c, 'f', no_elem);
  if (!t) return NULL;
  t->rank = 1;
  t->dim[0] = c->zero;
  return t;
}

/* A weight or a bias, if there is one, is of the sizes that are normalised. */
static bool is_scale(sc *c, const pt_tensor *w, const sx *shape, uint32_t n) {
  if (!w) return true;
  if (w->rank != n || w->lead) return false;
  for (uint32_t k = 0; k < n; k++)
    if (!sc_require_eq(c, w->dim[k], shape[k])) return false;
  return true;
}

/* Gradients of `x`, of the weight and of the bias, as far as they are wanted. */
static const pt_value *norm_gradients(sc *c, const pt_tensor *const in[4], uint32_t front, sx count,
                                      const bool want[3]) {
  const pt_tensor *g = in[0], *normal = in[1], *r = in[2], *w = in[3];
  const pt_tensor *weighed = w ? pt_times(c, g, w) : g, *of[3];
  pt_tensor *t = weighed ? pt_like(c, weighed, 'f', norm_input_elem) : NULL;
  if (!t || !normal) return NULL;
  t->in[0] = weighed;
  t->in[1] = normal;
  t->in[2] = r;
  t->k[0] = (int32_t)front;
  t->p[0] = count;
  of[0] = want[0] ? t : unwanted(c);
  of[1] = want[1] ? norm_weight(c, g, normal, front) : unwanted(c);
  of[2] = want[2] ? norm_weight(c, g, NULL, front) : unwanted(c);
  return of[0] && of[1] && of[2] ? pt_list(c, of, 3) : NULL;
}

static const pt_value *define_layer_norm(pt_args *a, int which) {
  sc *c = a->c;
  const pt_tensor *g = floats(a, "grad_out"), *x = floats(a, "input"), *m = floats(a, "mean"),
                  *r = floats(a, "rstd"), *w = pt_arg(a, "weight") ? floats(a, "weight") : NULL,
                  *b = pt_arg(a, "bias") ? floats(a, "bias") : NULL;
  sx shape[RULE_MAX_RANK], count = c->one;
  bool want[3];
  uint32_t n;
  (void)which;
  if (!g || !x || !m || !r || (pt_arg(a, "weight") && !w) || (pt_arg(a, "bias") && !b) ||
      !is_wanted(a, want) || (want[1] && !w) || (want[2] && !b) || !same_sizes(c, g, x) ||
      !pt_arg_sizes(a, "normalized_shape", shape, &n) || n == 0 || n > x->rank ||
      !is_scale(c, w, shape, n) || !is_scale(c, b, shape, n))
    return NULL;
  const uint32_t front = x->rank - n;
  if (!is_statistic(c, m, x, front) || !is_statistic(c, r, x, front)) return NULL;
  for (uint32_t k = 0; k < n; k++) {
    if (!sc_require_eq(c, shape[k], x->dim[front + k])) return NULL;
    count = sx_mul(c, count, shape[k]);
  }
  const pt_tensor *normal = pt_times(c, pt_combine(c, c->one, x, c->minus_one, m), r);
  return norm_gradients(c, (const pt_tensor *[]){g, normal, r, w}, front, count, want);
}

/* ---- attention ---- */

/* in[0] scores, in[1] the logarithms of the sums of their exponentials, k[0] whether they are
 * causal: the weight of each value. */
static sx weight_elem(sc *c, const pt_tensor *t, const sx *idx) {
  const sx v = sx_exp(c, sx_sub(c, pt_at(c, t->in[0], idx), pt_at(c, t->in[1], idx)));
  return t->k[0] ? sx_ite(c, sx_le(c, idx[t->rank - 1], idx[t->rank - 2]), v, c->zero) : v;
}

/* in[0] weights, in[1] their gradients, in[2] and in[3] the results and theirs: of the scores. */
static sx score_elem(sc *c, const pt_tensor *t, const sx *idx) {
  sx at[RULE_MAX_RANK];
  memcpy(at, idx, t->rank * sizeof *at);
  const sx k = at[t->rank - 1] = sc_index(c, t->in[2]->dim[t->rank - 1]);
  const sx all = sx_sum(c, k, sx_mul(c, pt_at(c, t->in[2], at), pt_at(c, t->in[3], at)));
  return sx_mul(c, pt_at(c, t->in[0], idx), sx_sub(c, pt_at(c, t->in[1], idx), all));
}

/* in[0] gradients of heads of which p[0] have one key: their sums. */
static sx group_elem(sc *c, const pt_tensor *t, const sx *idx) {
  sx at[RULE_MAX_RANK];
  memcpy(at, idx, t->rank * sizeof *at);
  const sx k = sc_index(c, t->p[0]);
  at[1] = sx_add(c, sx_mul(c, idx[1], t->p[0]), k);
  return sx_sum(c, k, pt_at(c, t->in[0], at));
}

static const pt_tensor *of_group(sc *c, const pt_tensor *x, sx heads) {
  pt_tensor *t = x && x->dim[1] != heads ? pt_like(c, x, 'f', group_elem) : NULL;
  if (!t || !sc_multiple(c, x->dim[1], heads, &t->p[0])) return x && !t ? x : NULL;
  t->dim[1] = heads;
  return t;
}

/* Gradients of query, key and value: in[0] to in[4] these, the result and its gradient. */
static const pt_value *attention_gradients(sc *c, const pt_tensor *const in[5],
                                           const pt_tensor *weights, sx scale, sx heads) {
  const pt_tensor *q = in[0], *k = in[1], *v = in[2], *out = in[3], *g = in[4],
                  *by = pt_scalar_tensor(c, scale, 'f'),
                  *grad = pt_matmul(c, g, pt_transpose(c, v, 2, 3));
  pt_tensor *s = weights ? pt_like(c, weights, 'f', score_elem) : NULL;
  if (!s || !grad || !by) return NULL;
  s->in[1] = grad;
  s->in[2] = out;
  s->in[3] = g;
  const pt_tensor *gq = pt_matmul(c, s, k), *gk = pt_matmul(c, pt_transpose(c, s, 2, 3), q),
                  *gv = pt_matmul(c, pt_transpose(c, weights, 2, 3), g);
  gk = of_group(c, gk, heads);
  gv = of_group(c, gv, heads);
  if (!gq || !gk || !gv) return NULL;
  const pt_tensor *of[3] = {pt_times(c, gq, by), pt_times(c, gk, by), gv};
  return of[0] && of[1] ? pt_list(c, of, 3) : NULL;
}

/* [batch, heads, tokens, width], logarithms of one dimension less. */
static bool is_attention(sc *c, const pt_tensor *const in[5], const pt_tensor *sums) {
  const pt_tensor *q = in[0], *k = in[1];
  if (q->rank != 4 || k->rank != 4 || q->lead || k->lead || sums->rank != 3 || sums->lead ||
      !same_sizes(c, k, in[2]) || !same_sizes(c, q, in[3]) || !same_sizes(c, q, in[4]))
    return false;
  for (uint32_t d = 0; d < 4; d++)
    if (((d == 0 || d == 3) && !sc_require_eq(c, q->dim[d], k->dim[d])) ||
        (d != 3 && !sc_require_eq(c, sums->dim[d], q->dim[d])))
      return false;
  return true;
}

static const pt_value *define_attention(pt_args *a, int which) {
  static const char *const name[] = {"query", "key", "value", "out", "grad_out"};
  sc *c = a->c;
  const pt_tensor *in[5], *sums = floats(a, "logsumexp"),
                          *mask = pt_arg(a, "attn_mask") ? floats(a, "attn_mask") : NULL;
  const bool causal = pt_arg_flag(a, "is_causal", false);
  char kind;
  (void)which;
  for (uint32_t i = 0; i < 5; i++)
    if (!(in[i] = floats(a, name[i]))) return NULL;
  if (!sums || (pt_arg(a, "attn_mask") && (!mask || causal)) ||
      pt_arg_scalar(a, "dropout_p", &kind) != c->zero || !is_attention(c, in, sums))
    return NULL;
  const sx scale =
      pt_arg(a, "scale") ? pt_arg_scalar(a, "scale", &kind) : sx_inv(c, sx_sqrt(c, in[0]->dim[3]));
  const sx heads = in[1]->dim[1];
  for (uint32_t i = 1; i < 3; i++)
    if (!(in[i] = pt_grouped(c, in[i], in[0]->dim[1]))) return NULL;
  const pt_tensor *s = pt_scores(c, in[0], in[1], scale, mask);
  pt_tensor *weights = s ? pt_like(c, s, 'f', weight_elem) : NULL;
  sums = weights ? pt_unsqueeze(c, sums, 3) : NULL;
  weights = sums ? weights : NULL;
  if (weights) weights->in[1] = pt_expand(c, sums, s->dim, s->rank, s->lead);
  if (!weights || !weights->in[1]) return NULL;
  weights->k[0] = causal;
  return attention_gradients(c, in, weights, scale, heads);
}

/* ---- tables ---- */

/* in[0] gradients of rows, in[1] which rows were read, p[0] the row without a gradient: the sum of
 * those of this row. */
static sx table_elem(sc *c, const pt_tensor *t, const sx *idx) {
  sx at[RULE_MAX_RANK];
  const uint32_t n = t->in[1]->rank;
  for (uint32_t k = 0; k < n; k++) at[k] = sc_index(c, t->in[1]->dim[k]);
  at[n] = idx[1];
  const sx here = sx_eq(c, pt_at(c, t->in[1], at), idx[0]);
  sx v = sx_ite(c, here, pt_at(c, t->in[0], at), c->zero);
  for (uint32_t k = n; k-- > 0;) v = sx_sum(c, at[k], v);
  return t->p[0] ? sx_ite(c, sx_eq(c, idx[0], t->p[0]), c->zero, v) : v;
}

static const pt_value *define_embedding(pt_args *a, int which) {
  sc *c = a->c;
  const pt_tensor *g = floats(a, "grad_output"), *i = pt_arg_tensor(a, "indices");
  const sx rows = pt_arg_size(a, "num_weights", 0), none = pt_arg_size(a, "padding_idx", -1);
  const rule_term *by_use = pt_arg(a, "scale_grad_by_freq");
  int64_t padding;
  (void)which;
  if (!g || !i || i->kind != 'i' || i->lead || g->lead || g->rank != i->rank + 1 || !by_use ||
      by_use->kind != RULE_BOOLEAN || by_use->u.i || !pt_int(c, none, &padding))
    return NULL;
  for (uint32_t k = 0; k < i->rank; k++)
    if (!sc_require_eq(c, g->dim[k], i->dim[k])) return NULL;
  pt_tensor *t = pt_new(c, 'f', table_elem);
  if (!t) return NULL;
  t->in[0] = g;
  t->in[1] = i;
  t->p[0] = padding < 0 ? 0 : none;
  t->rank = 2;
  t->dim[0] = rows;
  t->dim[1] = g->dim[i->rank];
  pt_bound_index(c, i, rows);
  return pt_one(c, t);
}

/* ---- losses over classes ---- */

enum { NONE, MEAN, SUM }; /* reductions */

/* 1/x; anything where x is 0, where the gradient is not defined. */
static sx inverse_or_none(sc *c, sx x, const void *ctx) {
  (void)ctx;
  return x == c->zero ? x : sx_inv(c, x);
}

/* in[0] the gradient of the loss, in[1] classes, in[2] weights of classes or NULL, in[3] the
 * divisor of a mean or NULL; p[0] the class that is left out. */
static sx nll_elem(sc *c, const pt_tensor *t, const sx *idx) {
  const sx row = idx[0], k = t->rank > 1 ? idx[1] : idx[0];
  const sx label = pt_at(c, t->in[1], t->rank > 1 ? &row : NULL);
  const bool each = t->in[0]->rank > 0;
  sx v = sx_neg(c, pt_at(c, t->in[0], each ? &row : NULL));
  if (t->in[2]) v = sx_mul(c, v, pt_at(c, t->in[2], &k));
  const sx counts = sx_and(c, sx_eq(c, label, k), sx_not(c, sx_eq(c, label, t->p[0])));
  if (t->in[3]) {
    const sx n = pt_at(c, t->in[3], NULL);
    sc_defined_if(c, sx_not(c, sx_and(c, counts, sx_eq(c, n, c->zero))));
    v = sx_mul(c, v, sx_lift(c, n, inverse_or_none, NULL));
  }
  return sx_ite(c, counts, v, c->zero);
}

static const pt_value *define_nll(pt_args *a, int which) {
  sc *c = a->c;
  const pt_tensor *g = floats(a, "grad_output"), *x = floats(a, "self"),
                  *y = pt_arg_tensor(a, "target"), *n = floats(a, "total_weight"),
                  *w = pt_arg(a, "weight") ? floats(a, "weight") : NULL;
  const rule_term *by = pt_arg(a, "reduction");
  (void)which;
  if (!g || !x || !y || !n || (pt_arg(a, "weight") && !w) || y->kind != 'i' || x->rank == 0 ||
      x->rank > 2 || y->rank + 1 != x->rank || x->lead || y->lead || g->lead || n->rank ||
      n->lead || !by || by->kind != RULE_INT || by->u.i < NONE || by->u.i > SUM)
    return NULL;
  const bool each = by->u.i == NONE && x->rank > 1;
  const sx classes = x->dim[x->rank - 1];
  if (g->rank != (each ? 1 : 0) || (each && !sc_require_eq(c, g->dim[0], x->dim[0])) ||
      (y->rank && !sc_require_eq(c, y->dim[0], x->dim[0])) ||
      (w && (w->rank != 1 || w->lead || !sc_require_eq(c, w->dim[0], classes))))
    return NULL;
  pt_tensor *t = pt_like(c, x, 'f', nll_elem);
  if (!t) return NULL;
  t->in[0] = g;
  t->in[1] = y;
  t->in[2] = w;
  t->in[3] = by->u.i == MEAN ? n : NULL;
  t->p[0] = pt_arg_size(a, "ignore_index", -100);
  pt_bound_index_else(c, y, classes, false, t->p[0]);
  return pt_one(c, t);
}

/* ---- parts ---- */

/* The gradient where the part was, zeros elsewhere. */
static const pt_value *define_part(pt_args *a, int which) {
  static const char *const named[2][3] = {{"dim", "start", "end"}, {"dim", "index", NULL}};
  static const char *const op[] = {"aten::slice_scatter", "aten::select_scatter"};
  sc *c = a->c;
  const rule_term *sizes = pt_arg(a, "input_sizes"), *zeros, *out, *arg[6] = {NULL};
  const pt_tensor *g = floats(a, "grad_output");
  iso_error err;
  size_t n = 0;
  if (!g || !sizes ||
      rule_call(&c->arena, c->schemas, "aten::zeros", &sizes, 1, &zeros, &err) != ISO_OK)
    return NULL;
  arg[n++] = zeros;
  for (size_t i = 0; i < a->schema->n_args; i++)
    if (!strcmp(a->schema->arg[i].name, "grad_output")) arg[n++] = a->t->child[i];
  for (int k = 0; k < 3 && named[which][k]; k++)
    if (!(arg[n++] = pt_arg(a, named[which][k]))) return NULL;
  if (which == 0 && !(arg[n++] = pt_arg(a, "step"))) return NULL;
  return rule_call(&c->arena, c->schemas, op[which], arg, n, &out, &err) == ISO_OK
             ? pt_one(c, pt_eval_tensor(c, out))
             : NULL;
}

static const pt_definition table[] = {
    {"_softmax_backward_data", define_softmax, 0},
    {"_log_softmax_backward_data", define_softmax, 1},
    {"gelu_backward", define_gelu, 0},
    {"native_layer_norm_backward", define_layer_norm, 0},
    {"_scaled_dot_product_flash_attention_for_cpu_backward", define_attention, 0},
    {"embedding_dense_backward", define_embedding, 0},
    {"nll_loss_backward", define_nll, 0},
    {"slice_backward", define_part, 0},
    {"select_backward", define_part, 1},
};

bool pt_define_backward(const char *name, pt_definition *out) {
  return pt_find(table, sizeof table / sizeof *table, name, out);
}
