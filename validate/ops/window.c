/* Definitions for the symbolic prover: what takes windows of its last dimensions, convolution,
 * pooling and transposed convolution; and padding that repeats elements. */
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

/* Over the last n dimensions. */
static const pt_tensor *conv_transpose(pt_args *a, uint32_t n, const pt_tensor *x,
                                       const pt_tensor *w) {
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

/* y + bias (NULL: none), before the last n dimensions. */
static const pt_tensor *by_channel(sc *c, const pt_tensor *y, const pt_tensor *bias, uint32_t n) {
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
  return pt_one(a->c, by_channel(a->c, conv_transpose(a, (uint32_t)n, x, w), bias, (uint32_t)n));
}

/* ---- convolution and pooling ---- */

typedef struct window {
  uint32_t n; /* dimensions */
  sx size[3], stride[3], pad[3], dilation[3];
  sx more[3]; /* padding behind beyond that before; 0: none */
  bool over;  /* the last window may stand over the end */
} window;

/* How many windows there are where the last one may stand over the end, as long as it begins within
 * x or the padding before it, and by how much it does. */
static bool windows_over(sc *c, const window *w, uint32_t i, sx size, sx span, sx *out, sx *over) {
  const sx whole = sx_add(c, size, sx_add(c, w->pad[i], w->pad[i]));
  const sx n = sx_add(
      c,
      sx_div(c, sx_add(c, sx_sub(c, whole, span), sx_sub(c, w->stride[i], c->one)), w->stride[i]),
      c->one);
  bool beyond, some;
  if (c->fault.failed ||
      !sc_decide(
          c, sx_le(c, sx_add(c, size, w->pad[i]), sx_mul(c, sx_sub(c, n, c->one), w->stride[i])),
          &beyond))
    return false;
  *out = beyond ? sx_sub(c, n, c->one) : n;
  *over = sx_sub(c, sx_add(c, sx_mul(c, sx_sub(c, *out, c->one), w->stride[i]), span), whole);
  if (!sc_require(c, sx_lt(c, c->zero, *out)) || !sc_decide(c, sx_lt(c, c->zero, *over), &some))
    return false;
  if (!some) *over = c->zero;
  return true;
}

/* x padded by `value` around its last dimensions, and the result's sizes. */
static const pt_tensor *framed(sc *c, const pt_tensor *x, const window *w, sx value, sx *out) {
  for (uint32_t i = 0; i < w->n && x; i++) {
    const uint32_t d = x->rank - w->n + i;
    if (!sc_require(c, sx_and(c, sx_le(c, c->zero, w->pad[i]),
                              sx_and(c, sx_lt(c, c->zero, w->stride[i]),
                                     sx_lt(c, c->zero, w->dilation[i])))))
      return NULL;
    sx own = w->more[i];
    const sx span = sx_add(c, sx_mul(c, w->dilation[i], sx_sub(c, w->size[i], c->one)), c->one);
    if (w->over && !windows_over(c, w, i, x->dim[d], span, &out[i], &own)) return NULL;
    const sx behind = own ? sx_add(c, w->pad[i], own) : w->pad[i];
    x = value == c->zero ? pt_frame(c, x, d, w->pad[i], behind)
                         : pt_pad(c, x, d, w->pad[i], behind, value);
    if (!x) return NULL;
    if (w->over) continue;
    const sx room = sx_sub(c, x->dim[d], span);
    if (!sc_require(c, sx_le(c, c->zero, room))) return NULL;
    out[i] = sx_add(c, sx_div(c, room, w->stride[i]), c->one);
  }
  return x;
}

/* p[0..2] stride, p[3..5] dilation; k[0] window dimensions, k[1] whether batched; in[0] framed
 * input, in[1] weight; which: groups (in p[6], p[7]: channels in and out of one). */
static sx conv_elem(sc *c, const pt_tensor *t, const sx *idx) {
  const pt_tensor *x = t->in[0], *w = t->in[1];
  const uint32_t n = (uint32_t)t->k[0], b = (uint32_t)t->k[1];
  sx at[RULE_MAX_RANK], in[RULE_MAX_RANK], k[4];
  const sx o = idx[b];
  k[0] = sc_index(c, w->dim[1]);
  if (b) at[0] = idx[0];
  at[b] = t->which ? sx_add(c, sx_mul(c, sx_div(c, o, t->p[7]), t->p[6]), k[0]) : k[0];
  in[0] = o;
  in[1] = k[0];
  for (uint32_t i = 0; i < n; i++) {
    in[2 + i] = k[1 + i] = sc_index(c, w->dim[2 + i]);
    at[b + 1 + i] = sx_add(c, sx_mul(c, idx[b + 1 + i], t->p[i]), sx_mul(c, k[1 + i], t->p[3 + i]));
  }
  sx r = sx_mul(c, pt_at(c, x, at), pt_at(c, w, in));
  for (uint32_t i = n + 1; i-- > 0;) r = sx_sum(c, k[i], r);
  return r;
}

static const pt_value *define_conv(pt_args *a, int n) {
  sc *c = a->c;
  const pt_tensor *x = pt_arg_tensor(a, "input"), *w = pt_arg_tensor(a, "weight"),
                  *bias = pt_arg(a, "bias") ? pt_arg_tensor(a, "bias") : NULL;
  window win = {.n = (uint32_t)n};
  sx out[3], per;
  const bool any = n == 0; /* aten::convolution */
  if (any && w) n = (int)w->rank - 2, win.n = (uint32_t)n;
  if (!x || !w || n < 1 || n > 3 || c->fault.failed || x->kind != 'f' || w->kind != 'f' ||
      x->lead || w->lead || w->rank != win.n + 2)
    return NULL;
  if (x->rank != win.n + 2 && (any || x->rank != win.n + 1)) return NULL;
  if (pt_arg(a, "transposed") && pt_arg_flag(a, "transposed", false))
    return pt_one(c, by_channel(c, conv_transpose(a, win.n, x, w), bias, win.n));
  const uint32_t b = x->rank == win.n + 2;
  for (uint32_t i = 0; i < win.n; i++) win.size[i] = w->dim[2 + i];
  const bool word = pt_arg(a, "padding") && pt_arg(a, "padding")->kind == RULE_STRING;
  if (!pt_arg_each(a, "stride", win.n, c->one, win.stride) ||
      !pt_arg_each(a, "dilation", win.n, c->one, win.dilation))
    return NULL;
  const bool same = word && pt_arg_is(a, "padding", "same");
  if (word && !same && !pt_arg_is(a, "padding", "valid")) return NULL;
  if (word ? !pt_arg_each(a, "none", win.n, c->zero, win.pad)
           : !pt_arg_each(a, "padding", win.n, c->zero, win.pad))
    return NULL;
  for (uint32_t i = 0; i < win.n && same; i++) { /* as long as x: what is odd is behind */
    const sx total = sx_mul(c, win.dilation[i], sx_sub(c, win.size[i], c->one));
    win.pad[i] = sx_div(c, total, sx_int(c, 2));
    win.more[i] = sx_sub(c, total, sx_add(c, win.pad[i], win.pad[i]));
    if (!sc_require_eq(c, win.stride[i], c->one)) return NULL;
  }
  sx more[3];
  if (!pt_arg_each(a, "output_padding", win.n, c->zero, more)) return NULL;
  for (uint32_t i = 0; i < win.n; i++)
    if (!sc_require(c, sx_le(c, c->zero, more[i]))) return NULL;
  const sx groups = pt_arg_size(a, "groups", 1);
  pt_tensor *t = pt_new(c, 'f', conv_elem);
  x = framed(c, x, &win, c->zero, out);
  if (!t || !x) return NULL;
  if (groups != c->one) {
    if (!sc_multiple(c, w->dim[0], groups, &per)) return NULL;
    t->which = 1;
    t->p[6] = w->dim[1];
    t->p[7] = per;
  }
  if (!sc_require_eq(c, x->dim[b], sx_mul(c, w->dim[1], groups))) return NULL;
  t->in[0] = x;
  t->in[1] = w;
  t->k[0] = n;
  t->k[1] = (int32_t)b;
  if (b) t->dim[t->rank++] = x->dim[0];
  t->dim[t->rank++] = w->dim[0];
  for (uint32_t i = 0; i < win.n; i++)
    t->p[i] = win.stride[i], t->p[3 + i] = win.dilation[i], t->dim[t->rank++] = out[i];
  return pt_one(c, by_channel(c, t, bias, win.n));
}

enum { AVERAGE, LARGEST };

/* p[0..2] stride, p[3..5] dilation, p[6] 1 / divisor; k[1..] window sizes are in `data` of the
 * framed tensor. */
static sx pool_elem(sc *c, const pt_tensor *t, const sx *idx) {
  const uint32_t n = (uint32_t)t->k[0], first = t->rank - n;
  sx at[RULE_MAX_RANK], k[3];
  memcpy(at, idx, t->rank * sizeof *at);
  for (uint32_t i = 0; i < n; i++) {
    k[i] = sc_index(c, t->size[i]);
    at[first + i] = sx_add(c, sx_mul(c, idx[first + i], t->p[i]), sx_mul(c, k[i], t->p[3 + i]));
  }
  sx r = pt_at(c, t->in[0], at);
  for (uint32_t i = n; i-- > 0;)
    r = t->which == AVERAGE ? sx_sum(c, k[i], r) : sx_largest(c, k[i], r);
  return t->which == AVERAGE ? sx_mul(c, r, t->p[6]) : r;
}

static sx one_of(sc *c, sx x) { return (void)x, c->one; }

/* x, framed, in windows; `share`: the factor of an average's sum. */
static const pt_tensor *pooled(sc *c, const pt_tensor *x, const window *w, int kind, sx share,
                               const sx *out) {
  pt_tensor *t = x ? pt_like(c, x, 'f', pool_elem) : NULL;
  if (!t) return NULL;
  t->which = kind;
  t->k[0] = (int32_t)w->n;
  t->p[6] = share;
  for (uint32_t i = 0; i < w->n; i++) {
    t->p[i] = w->stride[i], t->p[3 + i] = w->dilation[i], t->size[i] = w->size[i];
    t->dim[x->rank - w->n + i] = out[i];
  }
  return t;
}

static const pt_value *define_pool(pt_args *a, int which) {
  sc *c = a->c;
  const int n = which >> 1, kind = which & 1;
  const pt_tensor *x = pt_arg_tensor(a, "self");
  window w = {.n = (uint32_t)n};
  sx out[3];
  if (!x || x->kind != 'f' || x->lead || (x->rank != w.n + 1 && x->rank != w.n + 2) ||
      !pt_arg_each(a, "kernel_size", w.n, c->one, w.size))
    return NULL;
  const rule_term *st = pt_arg(a, "stride");
  if (!st || (st->kind == RULE_LIST && st->n == 0)) memcpy(w.stride, w.size, sizeof w.stride);
  else if (!pt_arg_each(a, "stride", w.n, c->one, w.stride)) return NULL;
  if (!pt_arg_each(a, "padding", w.n, c->zero, w.pad) ||
      !pt_arg_each(a, "dilation", w.n, c->one, w.dilation))
    return NULL;
  w.over = pt_arg_flag(a, "ceil_mode", false);
  if (w.over && kind == AVERAGE) return NULL;
  bool padded = false;
  sx count = c->one;
  for (uint32_t i = 0; i < w.n; i++) {
    padded |= w.pad[i] != c->zero;
    count = sx_mul(c, count, w.size[i]);
    if (!sc_require(c, sx_and(c, sx_lt(c, c->zero, w.size[i]),
                              sx_le(c, sx_add(c, w.pad[i], w.pad[i]), w.size[i]))))
      return NULL;
  }
  const bool given = pt_arg(a, "divisor_override"),
             inside =
                 kind == AVERAGE && padded && !given && !pt_arg_flag(a, "count_include_pad", true);
  if (given) count = pt_arg_size(a, "divisor_override", 1);
  const pt_tensor *ones = inside ? pt_unary(c, x, one_of) : NULL;
  x = framed(c, x, &w, kind == AVERAGE ? c->zero : c->neginf, out);
  const pt_tensor *sum = x ? pooled(c, x, &w, kind, inside ? c->one : sx_inv(c, count), out) : NULL;
  if (!inside || !sum) return pt_one(c, sum);
  ones = framed(c, ones, &w, c->zero, out);
  return pt_one(c, pt_times(c, sum, pt_unary(c, pooled(c, ones, &w, kind, c->one, out), sx_inv)));
}

static const pt_definition table[] = {
    {"conv1d", define_conv, 1},
    {"conv2d", define_conv, 2},
    {"conv3d", define_conv, 3},
    {"convolution", define_conv, 0},
    {"_convolution", define_conv, 0},
    {"avg_pool1d", define_pool, 2 | AVERAGE},
    {"avg_pool2d", define_pool, 4 | AVERAGE},
    {"avg_pool3d", define_pool, 6 | AVERAGE},
    {"max_pool1d", define_pool, 2 | LARGEST},
    {"max_pool2d", define_pool, 4 | LARGEST},
    {"max_pool3d", define_pool, 6 | LARGEST},
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
