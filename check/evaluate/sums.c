/* Sums, extremes, softmax, products of matrices, norms. */
#include <stdlib.h>
#include <string.h>

#include "check/evaluate/evaluate_int.h"

/* ---- rows ---- */

/* `t` with the flagged dimensions last, as rows of them: `inner` elements each. */
static const ev_tensor *rows(ev *e, const ev_tensor *t, const bool *flag, int64_t *inner) {
  int64_t dim[RULE_MAX_RANK], own[RULE_MAX_RANK], stride[RULE_MAX_RANK];
  uint32_t n = 0;
  ev_strides(t, own);
  *inner = 1;
  for (int last = 0; last < 2; last++)
    for (uint32_t d = 0; d < t->rank; d++)
      if (flag[d] == (last == 1)) {
        dim[n] = t->dim[d];
        stride[n++] = own[d];
        if (last) *inner *= t->dim[d];
      }
  return ev_strided(e, t, n, dim, stride, 0);
}

static ball sum_of(const ball *v, int64_t n) {
  ball s = ball_exact(0);
  for (int64_t i = 0; i < n; i++) s = ball_add(s, v[i]);
  return s;
}

static ball mean_of(const ball *v, int64_t n) {
  return ball_div(sum_of(v, n), ball_exact((long double)n));
}

static ball max_of(const ball *v, int64_t n) {
  ball m = n ? v[0] : ball_unknown();
  for (int64_t i = 1; i < n; i++) m = ball_max(m, v[i]);
  return m;
}

static ball min_of(const ball *v, int64_t n) {
  ball m = n ? v[0] : ball_unknown();
  for (int64_t i = 1; i < n; i++) m = ball_min(m, v[i]);
  return m;
}

static ball prod_of(const ball *v, int64_t n) {
  ball p = ball_exact(1);
  for (int64_t i = 0; i < n; i++) p = ball_mul(p, v[i]);
  return p;
}

static ball truth(ball x) { return ball_equal(ball_equal(x, ball_exact(0)), ball_exact(0)); }

static ball any_of(const ball *v, int64_t n) {
  ball any = ball_exact(0);
  for (int64_t i = 0; i < n; i++) any = ball_max(any, truth(v[i]));
  return any;
}

static ball all_of(const ball *v, int64_t n) {
  ball all = ball_exact(1);
  for (int64_t i = 0; i < n; i++) all = ball_min(all, truth(v[i]));
  return all;
}

/* A shift that is the same in a row does not change the quotient; it keeps exponentials small. */
static ball shift_of(const ball *v, int64_t n) {
  long double m = -INFINITY;
  for (int64_t i = 0; i < n; i++)
    if (isfinite(v[i].mid) && v[i].mid > m) m = v[i].mid;
  return ball_exact(isfinite(m) ? m : 0);
}

static ball logsumexp_of(const ball *v, int64_t n) {
  const ball shift = shift_of(v, n);
  ball s = ball_exact(0);
  for (int64_t i = 0; i < n; i++) s = ball_add(s, ball_exp(ball_sub(v[i], shift)));
  return ball_add(shift, ball_log(s));
}

static ball squares_of(const ball *v, int64_t n, ball mean) {
  ball s = ball_exact(0);
  for (int64_t i = 0; i < n; i++) s = ball_add(s, ball_square(ball_sub(v[i], mean)));
  return s;
}

static ball norm_of(const ball *v, int64_t n) { return ball_sqrt(squares_of(v, n, ball_exact(0))); }

enum { SUM, MEAN, MAX, MIN, PROD, ANY, ALL, LOGSUMEXP, NORM };
static ball (*const reduction[])(const ball *, int64_t) = {
    [SUM] = sum_of, [MEAN] = mean_of,           [MAX] = max_of,
    [MIN] = min_of, [PROD] = prod_of,           [ANY] = any_of,
    [ALL] = all_of, [LOGSUMEXP] = logsumexp_of, [NORM] = norm_of};

static const ev_tensor *reduced(ev *e, const ev_tensor *a, const bool *flag, bool keep, int which) {
  int64_t inner, dim[RULE_MAX_RANK];
  uint32_t n = 0;
  const ev_tensor *in = rows(e, a, flag, &inner);
  for (uint32_t d = 0; d < a->rank; d++)
    if (!flag[d] || keep) dim[n++] = flag[d] ? 1 : a->dim[d];
  const char kind = which == ANY || which == ALL    ? 'b'
                    : which == SUM || which == PROD ? (a->kind == 'b' ? 'i' : a->kind)
                    : which == MAX || which == MIN  ? a->kind
                                                    : 'f';
  ev_tensor *r = in && ev_spend(e, in->n) ? ev_new(e, kind, n, dim) : NULL;
  for (int64_t i = 0; r && i < r->n; i++) r->v[i] = reduction[which](in->v + i * inner, inner);
  return r;
}

/* The dimensions that argument `i` names; none, or an empty list: all. */
static bool flags(ev *e, const rule_term *t, uint32_t i, uint32_t rank, bool *flag) {
  int64_t d[EV_MAX_LIST];
  uint32_t n = 0, at;
  memset(flag, 0, RULE_MAX_RANK);
  if (!ev_none(t, i) && t->child[i]->kind != RULE_LIST) {
    if (!ev_int(e, t, i, d)) return false;
    n = 1;
  } else if (!ev_none(t, i) && !ev_ints(e, t, i, d, &n)) return false;
  if (n == 0) memset(flag, 1, RULE_MAX_RANK);
  for (uint32_t k = 0; k < n; k++) {
    if (!ev_wrap(e, d[k], rank, &at)) return false;
    flag[at] = true;
  }
  return true;
}

enum { OF_ALL = 64 };

/* (self, dim, keepdim), or of all. */
static const ev_tensor *reduce(ev *e, const rule_term *t, int which) {
  const ev_tensor *a = ev_arg(e, t, 0);
  bool flag[RULE_MAX_RANK];
  const bool all = which & OF_ALL;
  if (!a) return NULL;
  if (all) memset(flag, 1, sizeof flag);
  else if (!flags(e, t, 1, a->rank, flag)) return NULL;
  const bool keep = !all && t->n > 2 && ev_flag(e, t, 2);
  if ((which & ~OF_ALL) == MEAN && a->kind != 'f') return ev_fail(e, "a mean of integers");
  return e->why ? NULL : reduced(e, a, flag, keep, which & ~OF_ALL);
}

/* linalg_vector_norm(self, ord, dim, keepdim) of order 2. */
static const ev_tensor *vector_norm(ev *e, const rule_term *t, int which) {
  (void)which;
  const ev_tensor *a = ev_arg(e, t, 0);
  bool flag[RULE_MAX_RANK];
  ball ord;
  if (!a || !ev_number(e, t, 1, &ord) || !flags(e, t, 2, a->rank, flag)) return NULL;
  if (ord.mid != 2) return ev_fail(e, t->u.s);
  const bool keep = ev_flag(e, t, 3);
  return e->why ? NULL : reduced(e, a, flag, keep, NORM);
}

/* var and std (`which`: 1) by a correction, none: 1. */
static const ev_tensor *var(ev *e, const rule_term *t, int which) {
  const ev_tensor *a = ev_arg(e, t, 0);
  bool flag[RULE_MAX_RANK];
  ball off = ball_exact(1);
  int64_t inner;
  if (!a || !flags(e, t, 1, a->rank, flag) || (!ev_none(t, 2) && !ev_number(e, t, 2, &off)))
    return NULL;
  const bool keep = ev_flag(e, t, 3);
  const ev_tensor *r = e->why ? NULL : reduced(e, a, flag, keep, MEAN),
                  *in = r ? rows(e, a, flag, &inner) : NULL;
  for (int64_t i = 0; in && i < r->n; i++) {
    const ball s = squares_of(in->v + i * inner, inner, r->v[i]);
    r->v[i] = ball_div(s, ball_sub(ball_exact((long double)inner), off));
  }
  return in && which ? ev_map(e, r, 'f', ball_sqrt) : in ? r : NULL;
}

static const ev_tensor *cumsum(ev *e, const rule_term *t, int which) {
  (void)which;
  const ev_tensor *a = ev_arg(e, t, 0);
  uint32_t d;
  int64_t stride[RULE_MAX_RANK];
  if (!a || !ev_dim(e, t, 1, a->rank, &d)) return NULL;
  ev_tensor *r = ev_new(e, a->kind == 'b' ? 'i' : a->kind, a->rank, a->dim);
  ev_strides(a, stride);
  for (int64_t i = 0; r && i < r->n; i++)
    r->v[i] =
        a->rank && i / stride[d] % a->dim[d] > 0 ? ball_add(r->v[i - stride[d]], a->v[i]) : a->v[i];
  return r;
}

/* ---- softmax ---- */

void ev_softmax_row(ball *row, int64_t n, int64_t stride) {
  long double m = -INFINITY;
  ball s = ball_exact(0);
  for (int64_t i = 0; i < n; i++)
    if (isfinite(row[i * stride].mid) && row[i * stride].mid > m) m = row[i * stride].mid;
  for (int64_t i = 0; i < n; i++) {
    row[i * stride] = ball_exp(ball_sub(row[i * stride], ball_exact(isfinite(m) ? m : 0)));
    s = ball_add(s, row[i * stride]);
  }
  for (int64_t i = 0; i < n; i++) row[i * stride] = ball_div(row[i * stride], s);
}

static const ev_tensor *softmax(ev *e, const rule_term *t, int which) {
  const ev_tensor *a = ev_arg(e, t, 0);
  uint32_t d;
  int64_t stride[RULE_MAX_RANK];
  if (!a || !ev_dim(e, t, 1, a->rank, &d)) return NULL;
  if (a->rank == 0 || a->kind != 'f') return ev_fail(e, "a softmax of no row");
  ev_strides(a, stride);
  const ev_tensor *r = ev_spend(e, 4 * a->n) ? ev_strided(e, a, a->rank, a->dim, stride, 0) : NULL;
  for (int64_t i = 0; r && i < r->n; i++)
    if (i / stride[d] % a->dim[d] == 0) ev_softmax_row(r->v + i, a->dim[d], stride[d]);
  return r && which ? ev_map(e, r, 'f', ball_log) : r;
}

/* ---- products ---- */

static ball dot(const ball *x, int64_t sx, const ball *y, int64_t sy, int64_t n) {
  ball s = ball_exact(0);
  for (int64_t i = 0; i < n; i++) s = ball_add(s, ball_mul(x[i * sx], y[i * sy]));
  return s;
}

static const ev_tensor *ev_matmul(ev *e, const ev_tensor *a, const ev_tensor *b) {
  if (!a || !b) return NULL;
  const bool row = a->rank == 1, column = b->rank == 1;
  if (a->rank == 0 || b->rank == 0) return ev_fail(e, "a product of no matrices");
  if (row) a = ev_shaped(e, a, 2, (int64_t[]){1, a->dim[0]});
  if (column) b = ev_shaped(e, b, 2, (int64_t[]){b->dim[0], 1});
  if (!ev_broadcast(e, &a, &b, 2)) return NULL;
  const uint32_t rank = a->rank;
  const int64_t m = a->dim[rank - 2], k = a->dim[rank - 1], n = b->dim[rank - 1];
  int64_t dim[RULE_MAX_RANK];
  if (b->dim[rank - 2] != k) return ev_fail(e, "shapes do not fit");
  memcpy(dim, a->dim, sizeof dim);
  dim[rank - 1] = n;
  ev_tensor *r = ev_new(e, a->kind == 'f' || b->kind == 'f' ? 'f' : 'i', rank, dim);
  if (!r || (r->n && !ev_spend(e, r->n * k))) return NULL;
  for (int64_t i = 0; i < r->n; i++) {
    const int64_t batch = i / (m * n), at = i / n % m;
    r->v[i] = dot(a->v + (batch * m + at) * k, 1, b->v + batch * k * n + i % n, n, k);
  }
  uint32_t out = 0;
  for (uint32_t d = 0; d < rank; d++)
    if (!(row && d == rank - 2) && !(column && d == rank - 1)) dim[out++] = dim[d];
  return ev_shaped(e, r, out, dim);
}

/* `which`: the rank that both must have; 0: any. */
static const ev_tensor *matmul(ev *e, const rule_term *t, int which) {
  const ev_tensor *a = ev_arg(e, t, 0), *b = ev_arg(e, t, 1);
  if (!a || !b) return NULL;
  const uint32_t rank = (uint32_t)which;
  if (rank && (a->rank != rank || b->rank != rank)) return ev_fail(e, "shapes do not fit");
  if (rank == 3 && a->dim[0] != b->dim[0]) return ev_fail(e, "shapes do not fit");
  return ev_matmul(e, a, b);
}

static const ev_tensor *linear(ev *e, const rule_term *t, int which) {
  (void)which;
  const ev_tensor *x = ev_arg(e, t, 0), *w = ev_arg(e, t, 1);
  if (!x || !w) return NULL;
  if (w->rank != 2) return ev_fail(e, "shapes do not fit");
  const ev_tensor *y = ev_matmul(e, x, ev_swapped(e, w, 0, 1));
  return y && !ev_none(t, 2) ? ev_zip(e, y, ev_arg(e, t, 2), 'f', ball_add) : y;
}

/* beta * self + alpha * (a @ b) */
static const ev_tensor *addmm(ev *e, const rule_term *t, int which) {
  const ev_tensor *s = ev_arg(e, t, 0), *a = ev_arg(e, t, 1), *b = ev_arg(e, t, 2),
                  *beta = ev_arg(e, t, 3), *alpha = ev_arg(e, t, 4);
  if (!s || !a || !b || !beta || !alpha) return NULL;
  if (a->rank != (uint32_t)which || b->rank != a->rank) return ev_fail(e, "shapes do not fit");
  if (which == 3 && a->dim[0] != b->dim[0]) return ev_fail(e, "shapes do not fit");
  const ev_tensor *p = ev_zip(e, ev_matmul(e, a, b), alpha, 'f', ball_mul);
  return p ? ev_zip(e, ev_expand(e, ev_zip(e, s, beta, 'f', ball_mul), p->rank, p->dim), p, 'f',
                    ball_add)
           : NULL;
}

/* ---- norms ---- */

const ev_tensor *ev_normed(ev *e, const ev_tensor *x, int64_t over, ball eps, bool centred) {
  ev_tensor *r = x && over > 0 && ev_spend(e, 4 * x->n) ? ev_new(e, 'f', x->rank, x->dim) : NULL;
  for (int64_t i = 0; r && i + over <= r->n; i += over) {
    const ball mean = centred ? mean_of(x->v + i, over) : ball_exact(0);
    const ball var = ball_div(squares_of(x->v + i, over, mean), ball_exact((long double)over));
    const ball scale = ball_rsqrt(ball_add(var, eps));
    for (int64_t j = i; j < i + over; j++) r->v[j] = ball_mul(ball_sub(x->v[j], mean), scale);
  }
  return r;
}

static const ev_tensor *affine(ev *e, const rule_term *t, uint32_t weight, uint32_t bias,
                               const ev_tensor *x) {
  if (x && !ev_none(t, weight)) x = ev_zip(e, x, ev_arg(e, t, weight), 'f', ball_mul);
  return x && bias && !ev_none(t, bias) ? ev_zip(e, x, ev_arg(e, t, bias), 'f', ball_add) : x;
}

/* (input, shape, weight, bias, eps), or without bias (`which`: where eps stands). */
static const ev_tensor *layer_norm(ev *e, const rule_term *t, int which) {
  const ev_tensor *x = ev_arg(e, t, 0);
  int64_t dim[EV_MAX_LIST], over = 1;
  uint32_t n;
  ball eps;
  if (!x || !ev_ints(e, t, 1, dim, &n) || !ev_number(e, t, (uint32_t)which, &eps)) return NULL;
  if (n > x->rank) return ev_fail(e, "shapes do not fit");
  for (uint32_t d = 0; d < n; d++) {
    over *= dim[d];
    if (dim[d] != x->dim[x->rank - n + d]) return ev_fail(e, "shapes do not fit");
  }
  return affine(e, t, 2, which == 4 ? 3 : 0, ev_normed(e, x, over, eps, which == 4));
}

#define ALL_OF(w) ((w) | OF_ALL)
const ev_op ev_sums[] = {{"aten::sum", reduce, ALL_OF(SUM)},
                         {"aten::sum.dim_IntList", reduce, SUM},
                         {"aten::mean", reduce, ALL_OF(MEAN)},
                         {"aten::mean.dim", reduce, MEAN},
                         {"aten::amax", reduce, MAX},
                         {"aten::amin", reduce, MIN},
                         {"aten::max", reduce, ALL_OF(MAX)},
                         {"aten::min", reduce, ALL_OF(MIN)},
                         {"aten::prod", reduce, ALL_OF(PROD)},
                         {"aten::prod.dim_int", reduce, PROD},
                         {"aten::any", reduce, ALL_OF(ANY)},
                         {"aten::any.dim", reduce, ANY},
                         {"aten::all", reduce, ALL_OF(ALL)},
                         {"aten::all.dim", reduce, ALL},
                         {"aten::logsumexp", reduce, LOGSUMEXP},
                         {"aten::linalg_vector_norm", vector_norm, 0},
                         {"aten::var.correction", var, 0},
                         {"aten::std.correction", var, 1},
                         {"aten::cumsum", cumsum, 0},
                         {"aten::softmax.int", softmax, 0},
                         {"aten::_softmax", softmax, 0},
                         {"aten::log_softmax.int", softmax, 1},
                         {"aten::_log_softmax", softmax, 1},
                         {"aten::mm", matmul, 2},
                         {"aten::bmm", matmul, 3},
                         {"aten::matmul", matmul, 0},
                         {"aten::linear", linear, 0},
                         {"aten::addmm", addmm, 2},
                         {"aten::baddbmm", addmm, 3},
                         {"aten::layer_norm", layer_norm, 4},
                         {"aten::rms_norm", layer_norm, 3},
                         {NULL, NULL, 0}};
