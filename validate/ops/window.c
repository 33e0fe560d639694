/* Definitions for the symbolic prover: transposed convolution, and padding that repeats
 * elements. */
#include <string.h>

#include "validate/ops/ops.h"

/* ---- padding ---- */

enum { REFLECT, REPLICATE, CIRCULAR };

/* in[0] along k[0], with p[0] elements in front that are elements of it. */
static sx mirrored_elem(sc *c, const pt_tensor *t, const sx *idx) {
  const uint32_t d = (uint32_t)t->k[0];
  const sx n = t->in[0]->dim[d], i = sx_sub(c, idx[d], t->p[0]), last = sx_sub(c, n, c->one);
  sx in[RULE_MAX_RANK], low, high;
  memcpy(in, idx, t->rank * sizeof *in);
  switch (t->which) {
  case REFLECT: low = sx_neg(c, i), high = sx_sub(c, sx_add(c, last, last), i); break;
  case REPLICATE: low = c->zero, high = last; break;
  default: low = sx_add(c, i, n), high = sx_sub(c, i, n); break;
  }
  const sx place[3] = {low, high, i};
  sx part[3];
  for (int k = 0; k < 3; k++) in[d] = place[k], part[k] = pt_at(c, t->in[0], in);
  return sx_ite(c, sx_lt(c, i, c->zero), part[0], sx_ite(c, sx_lt(c, last, i), part[1], part[2]));
}

/* libtorch: mirrored, no element of the border is taken twice; around, none at all. */
static const pt_tensor *mirrored(sc *c, const pt_tensor *x, uint32_t d, const sx *pad, int how) {
  pt_tensor *t = x ? pt_like(c, x, x->kind, mirrored_elem) : NULL;
  if (!t) return NULL;
  for (int k = 0; k < 2; k++)
    if (how == REFLECT && !sc_require(c, sx_lt(c, pad[k], x->dim[d]))) return NULL;
  t->which = how;
  t->k[0] = (int32_t)d;
  t->p[0] = pad[0];
  t->dim[d] = sx_add(c, x->dim[d], sx_add(c, pad[0], pad[1]));
  return sc_require(c, sx_le(c, c->one, t->dim[d])) ? t : NULL;
}

/* In circular padding, the elements cut off on one side are not those repeated on the other. */
static const pt_tensor *around(sc *c, const pt_tensor *x, uint32_t d, const sx *pad) {
  sx cut[2], add[2];
  for (int k = 0; k < 2; k++) {
    bool less;
    if (!x || !sc_require(c, sx_le(c, pad[k], x->dim[d])) ||
        !sc_decide(c, sx_lt(c, pad[k], c->zero), &less))
      return NULL;
    cut[k] = less ? sx_neg(c, pad[k]) : c->zero;
    add[k] = less ? c->zero : pad[k];
  }
  const sx left = sx_sub(c, x->dim[d], sx_add(c, cut[0], cut[1]));
  for (int k = 0; k < 2; k++)
    if (!sc_require_modelled(c, sx_le(c, add[k], left), "more around than what is cut off leaves"))
      return NULL; /* libtorch reads what was never written */
  return mirrored(c, left == x->dim[d] ? x : pt_slice(c, x, d, cut[0], left, c->one), d, add,
                  CIRCULAR);
}

/* Of the last n dimensions, with one dimension of channels in front and perhaps one of samples. */
const pt_tensor *pt_mirror(pt_args *a, const char *name, const pt_tensor *x, const char *mode) {
  sc *c = a->c;
  sx pad[RULE_MAX_RANK];
  uint32_t n;
  const int how = !strcmp(mode, "reflect")     ? REFLECT
                  : !strcmp(mode, "replicate") ? REPLICATE
                                               : CIRCULAR;
  if (!x || x->lead || x->kind == 'b' || !pt_arg_sizes(a, name, pad, &n) || n == 0 || n % 2 ||
      n > 6)
    return NULL;
  if (x->rank != n / 2 + 1 && x->rank != n / 2 + 2) return NULL;
  for (uint32_t k = 0; k < n / 2 && x; k++) {
    const uint32_t d = x->rank - 1 - k;
    x = how == CIRCULAR ? around(c, x, d, pad + (size_t)2 * k)
                        : mirrored(c, x, d, pad + (size_t)2 * k, how);
  }
  return x;
}

static const pt_value *define_mirror(pt_args *a, int which) {
  const rule_term *pad = pt_arg(a, "padding");
  const uint32_t n = (uint32_t)which >> 1, given = pad && pad->kind == RULE_LIST ? pad->n : 1;
  const pt_tensor *x = pt_arg_tensor(a, "self");
  if (given != 2 * n) return NULL;
  return pt_one(a->c, pt_mirror(a, "padding", x, which & 1 ? "replicate" : "reflect"));
}

/* ---- transposed convolution ---- */

/* Element y of the result takes weight k at the input's place i where i stride + k dilation = y +
 * padding: `whole`, whether there is one. */
static sx place(sc *c, const pt_tensor *t, uint32_t d, sx y, sx k, sx *whole) {
  const sx stride = t->p[d], from = sx_sub(c, sx_add(c, y, t->many[d]), sx_mul(c, k, t->p[3 + d])),
           i = sx_div(c, from, stride);
  const sx inside = sx_and(c, sx_le(c, c->zero, from), sx_lt(c, i, t->size[d]));
  *whole = sx_and(c, inside, sx_eq(c, sx_sub(c, from, sx_mul(c, i, stride)), c->zero));
  return i;
}

/* in[0] input, in[1] weight [channels in, channels out of a group, ...]; k[0] dimensions of the
 * window, k[1] whether there are samples; p[0..2] stride, p[3..5] dilation, p[6] channels into a
 * group, p[7] out of one; `many` padding; `size` the input's. */
static sx transposed_elem(sc *c, const pt_tensor *t, const sx *idx) {
  const uint32_t n = (uint32_t)t->k[0], b = (uint32_t)t->k[1];
  const sx o = idx[b], group = t->p[7] == t->dim[b] ? c->zero : sx_div(c, o, t->p[7]);
  sx x[RULE_MAX_RANK], w[RULE_MAX_RANK], k[4] = {sc_index(c, t->p[6])}, there = c->yes, whole;
  if (b) x[0] = idx[0];
  x[b] = w[0] = sx_add(c, sx_mul(c, group, t->p[6]), k[0]);
  w[1] = sx_sub(c, o, sx_mul(c, group, t->p[7]));
  for (uint32_t d = 0; d < n; d++) {
    w[2 + d] = k[1 + d] = sc_index(c, t->in[1]->dim[2 + d]);
    x[b + 1 + d] = place(c, t, d, idx[b + 1 + d], k[1 + d], &whole);
    there = sx_and(c, there, whole);
  }
  sx r = sx_ite(c, there, sx_mul(c, pt_at(c, t->in[0], x), pt_at(c, t->in[1], w)), c->zero);
  for (uint32_t i = n + 1; i-- > 0;) r = sx_sum(c, k[i], r);
  return r;
}

static bool shaped(sc *c, pt_tensor *t, const pt_tensor *x, const pt_tensor *w, uint32_t d, sx pad,
                   sx more) {
  const uint32_t at = (uint32_t)t->k[1] + 1 + d;
  const sx stride = t->p[d], dilation = t->p[3 + d];
  if (!sc_require(c, sx_le(c, c->zero, pad)) || !sc_require(c, sx_lt(c, c->zero, stride)) ||
      !sc_require(c, sx_lt(c, c->zero, dilation)))
    return false;
  if (!sc_require(c, sx_le(c, c->zero, more)) ||
      !sc_require(c, sx_or(c, sx_lt(c, more, stride), sx_lt(c, more, dilation))))
    return false;
  const sx span = sx_mul(c, dilation, sx_sub(c, w->dim[2 + d], c->one)),
           all = sx_add(c, sx_mul(c, sx_sub(c, x->dim[at], c->one), stride), span);
  t->dim[at] = sx_add(c, sx_sub(c, all, sx_add(c, pad, pad)), sx_add(c, more, c->one));
  t->size[d] = x->dim[at];
  return sc_require(c, sx_le(c, c->one, t->dim[at]));
}

const pt_tensor *pt_conv_transpose(pt_args *a, uint32_t n, const pt_tensor *x, const pt_tensor *w) {
  sc *c = a->c;
  sx stride[3], dilation[3], pad[3], more[3], *copy = sc_take(c, sizeof pad);
  if (!x || !w || !copy || n < 1 || n > 3 || x->kind != 'f' || w->kind != 'f' || x->lead ||
      w->lead || w->rank != n + 2)
    return NULL;
  if (x->rank != n + 2 && x->rank != n + 1) return NULL;
  if (!pt_arg_each(a, "stride", n, c->one, stride) ||
      !pt_arg_each(a, "dilation", n, c->one, dilation) ||
      !pt_arg_each(a, "padding", n, c->zero, pad) ||
      !pt_arg_each(a, "output_padding", n, c->zero, more))
    return NULL;
  const sx groups = pt_arg_size(a, "groups", 1);
  pt_tensor *t = pt_new(c, 'f', transposed_elem);
  if (!t || !sc_require(c, sx_lt(c, c->zero, groups))) return NULL;
  const uint32_t b = x->rank == n + 2;
  t->in[0] = x;
  t->in[1] = w;
  t->k[0] = (int32_t)n;
  t->k[1] = (int32_t)b;
  if (!sc_require_eq(c, x->dim[b], w->dim[0]) || !sc_multiple(c, w->dim[0], groups, &t->p[6]))
    return NULL;
  t->p[7] = w->dim[1];
  t->rank = x->rank;
  if (b) t->dim[0] = x->dim[0];
  t->dim[b] = sx_mul(c, w->dim[1], groups);
  memcpy(copy, pad, sizeof pad);
  t->many = copy;
  for (uint32_t d = 0; d < n; d++) {
    t->p[d] = stride[d];
    t->p[3 + d] = dilation[d];
    if (!shaped(c, t, x, w, d, pad[d], more[d])) return NULL;
  }
  return t;
}

const pt_tensor *pt_by_channel(sc *c, const pt_tensor *y, const pt_tensor *bias, uint32_t n) {
  if (!y || !bias) return y;
  if (bias->rank != 1 || bias->lead || bias->kind != 'f' ||
      !sc_require_eq(c, bias->dim[0], y->dim[y->rank - n - 1]))
    return NULL;
  for (uint32_t i = 0; i < n; i++) bias = pt_unsqueeze(c, bias, bias ? bias->rank : 0);
  return pt_combine(c, c->one, y, c->one, bias);
}

static const pt_value *define_conv_transpose(pt_args *a, int n) {
  const pt_tensor *x = pt_arg_tensor(a, "input"), *w = pt_arg_tensor(a, "weight"),
                  *bias = pt_arg(a, "bias") ? pt_arg_tensor(a, "bias") : NULL;
  if (a->c->fault.failed) return NULL;
  return pt_one(a->c,
                pt_by_channel(a->c, pt_conv_transpose(a, (uint32_t)n, x, w), bias, (uint32_t)n));
}

static const pt_definition table[] = {
    {"conv_transpose1d", define_conv_transpose, 1},
    {"conv_transpose2d.input", define_conv_transpose, 2},
    {"conv_transpose3d.input", define_conv_transpose, 3},
    {"reflection_pad1d", define_mirror, 2},
    {"reflection_pad2d", define_mirror, 4},
    {"reflection_pad3d", define_mirror, 6},
    {"replication_pad1d", define_mirror, 3},
    {"replication_pad2d", define_mirror, 5},
    {"replication_pad3d", define_mirror, 7},
};

bool pt_define_window(const char *name, pt_definition *out) {
  return pt_find(table, sizeof table / sizeof *table, name, out);
}
