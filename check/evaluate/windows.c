/* Convolutions, and operators that repeat elements. */
#include <string.h>

#include "check/evaluate/evaluate_int.h"

/* ---- convolution: of N dimensions behind batch and channels ---- */

typedef struct window {
  uint32_t n;
  int64_t stride[3], pad[3], dilation[3], groups;
} window;

/* A number for each dimension, or one for all. */
static bool each(ev *e, const rule_term *t, uint32_t i, uint32_t n, int64_t *out) {
  int64_t v[EV_MAX_LIST];
  uint32_t count;
  if (!ev_ints(e, t, i, v, &count)) return false;
  if (count != n && count != 1) return ev_fail(e, "not a number for each dimension") != NULL;
  for (uint32_t d = 0; d < n; d++) out[d] = v[count == 1 ? 0 : d];
  return true;
}

/* Element `at` of the result (channel `out`) of batch `b`. */
static ball convolved(const ev_tensor *x, const ev_tensor *w, const window *k, int64_t b,
                      int64_t out, const int64_t *at) {
  int64_t sx[RULE_MAX_RANK], sw[RULE_MAX_RANK], kernel = 1;
  const int64_t per = w->dim[1], first = out / (w->dim[0] / k->groups) * per;
  ball s = ball_exact(0);
  ev_strides(x, sx);
  ev_strides(w, sw);
  for (uint32_t d = 0; d < k->n; d++) kernel *= w->dim[2 + d];
  for (int64_t c = 0; c < per; c++)
    for (int64_t i = 0; i < kernel; i++) {
      int64_t from = b * sx[0] + (first + c) * sx[1], rest = i;
      bool in = true;
      for (uint32_t d = k->n; d-- > 0; rest /= w->dim[2 + d]) {
        const int64_t place = at[d] * k->stride[d] - k->pad[d];
        const int64_t p = place + rest % w->dim[2 + d] * k->dilation[d];
        in = in && p >= 0 && p < x->dim[2 + d];
        from += p * sx[2 + d];
      }
      if (in) s = ball_add(s, ball_mul(x->v[from], w->v[out * sw[0] + c * sw[1] + i]));
    }
  return s;
}

static bool fits(const ev_tensor *x, const ev_tensor *w, const window *k) {
  bool fine = x->rank == 2 + k->n && w->rank == x->rank && k->groups > 0;
  fine = fine && w->dim[0] % k->groups == 0 && x->dim[1] == w->dim[1] * k->groups;
  for (uint32_t d = 0; fine && d < k->n; d++)
    fine = k->stride[d] > 0 && k->dilation[d] > 0 && k->pad[d] >= 0 && w->dim[2 + d] > 0;
  return fine;
}

static const ev_tensor *convolve(ev *e, const ev_tensor *x, const ev_tensor *w, const window *k) {
  int64_t dim[RULE_MAX_RANK], at[3], work = 1;
  if (!fits(x, w, k)) return ev_fail(e, "shapes do not fit");
  dim[0] = x->dim[0], dim[1] = w->dim[0];
  for (uint32_t d = 0; d < k->n; d++) {
    const int64_t reach = k->dilation[d] * (w->dim[2 + d] - 1) + 1;
    dim[2 + d] = (x->dim[2 + d] + 2 * k->pad[d] - reach) / k->stride[d] + 1;
    if (x->dim[2 + d] + 2 * k->pad[d] < reach) return ev_fail(e, "shapes do not fit");
  }
  ev_tensor *r = ev_new(e, 'f', x->rank, dim);
  for (uint32_t d = 1; d < w->rank; d++) work *= w->dim[d];
  if (!r || !ev_spend(e, r->n * work)) return NULL;
  for (int64_t i = 0; i < r->n; i++) {
    int64_t rest = i;
    for (uint32_t d = k->n; d-- > 0; rest /= dim[2 + d]) at[d] = rest % dim[2 + d];
    r->v[i] = convolved(x, w, k, rest / dim[1], rest % dim[1], at);
  }
  return r;
}

/* A number for each channel is added. */
static const ev_tensor *with_bias(ev *e, const rule_term *t, const ev_tensor *y) {
  int64_t dim[RULE_MAX_RANK];
  const ev_tensor *b = y && !ev_none(t, 2) ? ev_arg(e, t, 2) : NULL;
  if (!y || ev_none(t, 2)) return y;
  if (!b || b->rank != 1 || b->n != y->dim[1]) return ev_fail(e, "shapes do not fit");
  for (uint32_t d = 1; d < y->rank; d++) dim[d - 1] = d == 1 ? b->n : 1;
  return ev_zip(e, y, ev_shaped(e, b, y->rank - 1, dim), 'f', ball_add);
}

/* (input, weight, bias, stride, padding, dilation, groups) in `which` dimensions; 0: those of
 * aten::convolution, which has `transposed` and the output's padding before the groups. */
static const ev_tensor *conv(ev *e, const rule_term *t, int which) {
  const ev_tensor *x = ev_arg(e, t, 0), *w = ev_arg(e, t, 1);
  if (!x || !w) return NULL;
  if (x->rank < 3 || x->rank > 5 || (which && x->rank != (uint32_t)which + 2))
    return ev_fail(e, "a convolution of one image");
  window k = {.n = x->rank - 2};
  if (!each(e, t, 3, k.n, k.stride) || !each(e, t, 4, k.n, k.pad) ||
      !each(e, t, 5, k.n, k.dilation) || !ev_int(e, t, which ? 6 : 8, &k.groups))
    return NULL;
  if (!which && (ev_flag(e, t, 6) || e->why)) return ev_fail(e, "a transposed convolution");
  return with_bias(e, t, convolve(e, x, w, &k));
}

/* ---- repeated ---- */

static const ev_tensor *interleave(ev *e, const rule_term *t, int which) {
  (void)which;
  const ev_tensor *a = ev_arg(e, t, 0);
  int64_t times;
  uint32_t d = 0;
  if (!a || !ev_int(e, t, 1, &times)) return NULL;
  if (times < 1 || times > e->limit) return ev_fail(e, "it is repeated never, or too often");
  if (ev_none(t, 2)) a = ev_shaped(e, a, 1, &a->n);
  else if (!ev_dim(e, t, 2, a->rank, &d)) return NULL;
  if (!a || a->rank == 0) return ev_fail(e, "there is no such dimension");
  const int64_t n = a->dim[d] * times;
  ev_tensor *index = ev_new(e, 'i', 1, &n);
  for (int64_t i = 0; index && i < n; i++) index->v[i] = ball_exact((long double)(i / times));
  return ev_rows_of(e, a, d, index);
}

static const ev_tensor *outer(ev *e, const rule_term *t, int which) {
  (void)which;
  const ev_tensor *a = ev_arg(e, t, 0), *b = ev_arg(e, t, 1);
  if (!a || !b) return NULL;
  if (a->rank != 1 || b->rank != 1) return ev_fail(e, "shapes do not fit");
  return ev_zip(e, ev_shaped(e, a, 2, (int64_t[]){a->n, 1}), b, 'f', ball_mul);
}

const ev_op ev_windows[] = {{"aten::conv1d", conv, 1},
                            {"aten::conv2d", conv, 2},
                            {"aten::conv3d", conv, 3},
                            {"aten::convolution", conv, 0},
                            {"aten::repeat_interleave.self_int", interleave, 0},
                            {"aten::outer", outer, 0},
                            {NULL, NULL, 0}};
