/* Operators that move, make or look up elements. */
#include <stdlib.h>
#include <string.h>

#include "check/evaluate/evaluate_int.h"

static int64_t product(const int64_t *dim, uint32_t from, uint32_t to) {
  int64_t n = 1;
  for (uint32_t d = from; d < to; d++) n *= dim[d];
  return n;
}

const ev_tensor *ev_swapped(ev *e, const ev_tensor *t, uint32_t a, uint32_t b) {
  int64_t dim[RULE_MAX_RANK], stride[RULE_MAX_RANK];
  if (!t || t->rank == 0 || a == b) return t;
  memcpy(dim, t->dim, sizeof dim);
  ev_strides(t, stride);
  const int64_t n = dim[a], s = stride[a];
  dim[a] = dim[b], stride[a] = stride[b];
  dim[b] = n, stride[b] = s;
  return ev_strided(e, t, t->rank, dim, stride, 0);
}

/* From start to end, which count from the end where they are negative, and are clamped to the
 * size. */
const ev_tensor *ev_slice(ev *e, const ev_tensor *t, uint32_t d, int64_t start, int64_t end,
                          int64_t step) {
  int64_t dim[RULE_MAX_RANK], stride[RULE_MAX_RANK];
  if (!t) return NULL;
  if (d >= t->rank || step < 1) return ev_fail(e, "there is no such slice");
  const int64_t n = t->dim[d];
  if (start < 0) start = start + n < 0 ? 0 : start + n;
  if (end < 0) end += n;
  if (start > n) start = n;
  if (end > n) end = n;
  memcpy(dim, t->dim, sizeof dim);
  ev_strides(t, stride);
  const int64_t offset = start * stride[d];
  dim[d] = end > start ? (end - start + step - 1) / step : 0;
  stride[d] *= step;
  return ev_strided(e, t, t->rank, dim, stride, dim[d] ? offset : 0);
}

const ev_tensor *ev_cat(ev *e, const ev_list *l, uint32_t d) {
  int64_t dim[RULE_MAX_RANK], at = 0;
  memcpy(dim, l->t[0]->dim, sizeof dim);
  if (d >= l->t[0]->rank) return ev_fail(e, "there is no such dimension");
  dim[d] = 0;
  for (size_t i = 0; i < l->n; i++) {
    const ev_tensor *t = l->t[i];
    bool fits = t->rank == l->t[0]->rank && t->kind == l->t[0]->kind;
    for (uint32_t k = 0; fits && k < t->rank; k++) fits = k == d || t->dim[k] == dim[k];
    if (!fits) return ev_fail(e, "shapes do not fit");
    dim[d] += t->dim[d];
  }
  ev_tensor *r = ev_new(e, l->t[0]->kind, l->t[0]->rank, dim);
  const int64_t outer = product(dim, 0, d), inner = product(dim, d + 1, l->t[0]->rank);
  for (size_t i = 0; r && i < l->n; at += l->t[i++]->dim[d] * inner)
    for (int64_t o = 0; o < outer; o++)
      for (int64_t j = 0; j < l->t[i]->dim[d] * inner; j++)
        r->v[o * dim[d] * inner + at + j] = l->t[i]->v[o * l->t[i]->dim[d] * inner + j];
  return r;
}

/* ---- shapes ---- */

/* A shape with one size left out (-1). */
static bool complete(ev *e, int64_t *dim, uint32_t n, int64_t numel) {
  int64_t known = 1, open = -1;
  for (uint32_t d = 0; d < n; d++) {
    if (dim[d] < -1 || (dim[d] == -1 && open >= 0) || dim[d] > e->limit)
      return ev_fail(e, "there is no such shape") != NULL;
    if (dim[d] == -1) open = d;
    else if ((known *= dim[d]) > e->limit) return ev_fail(e, "it is too large") != NULL;
  }
  if (open >= 0) {
    if (known == 0 || numel % known) return ev_fail(e, "shapes do not fit") != NULL;
    dim[open] = numel / known;
  }
  return true;
}

static const ev_tensor *view(ev *e, const rule_term *t, int which) {
  (void)which;
  int64_t dim[EV_MAX_LIST];
  uint32_t n;
  const ev_tensor *a = ev_arg(e, t, 0);
  return a && ev_ints(e, t, 1, dim, &n) && complete(e, dim, n, a->n) ? ev_shaped(e, a, n, dim)
                                                                     : NULL;
}

static const ev_tensor *flatten(ev *e, const rule_term *t, int which) {
  const ev_tensor *a = ev_arg(e, t, 0);
  int64_t dim[RULE_MAX_RANK];
  uint32_t from = 0, to = a && a->rank ? a->rank - 1 : 0, n = 0;
  if (!a || (which && (!ev_dim(e, t, 1, a->rank, &from) || !ev_dim(e, t, 2, a->rank, &to))))
    return NULL;
  if (a->rank == 0) return ev_shaped(e, a, 1, (int64_t[]){1});
  if (from > to) return ev_fail(e, "there is no such dimension");
  for (uint32_t d = 0; d < from; d++) dim[n++] = a->dim[d];
  dim[n++] = product(a->dim, from, to + 1);
  for (uint32_t d = to + 1; d < a->rank; d++) dim[n++] = a->dim[d];
  return ev_shaped(e, a, n, dim);
}

static const ev_tensor *unflatten(ev *e, const rule_term *t, int which) {
  (void)which;
  const ev_tensor *a = ev_arg(e, t, 0);
  int64_t dim[2 * EV_MAX_LIST], part[EV_MAX_LIST];
  uint32_t at, k, n = 0;
  if (!a || !ev_dim(e, t, 1, a->rank, &at) || !ev_ints(e, t, 2, part, &k) ||
      !complete(e, part, k, a->dim[at]))
    return NULL;
  for (uint32_t d = 0; d < at; d++) dim[n++] = a->dim[d];
  for (uint32_t d = 0; d < k; d++) dim[n++] = part[d];
  for (uint32_t d = at + 1; d < a->rank; d++) dim[n++] = a->dim[d];
  return ev_shaped(e, a, n, dim);
}

static const ev_tensor *unsqueezed(ev *e, const ev_tensor *a, uint32_t at) {
  int64_t dim[RULE_MAX_RANK + 1];
  if (!a || a->rank == RULE_MAX_RANK) return NULL;
  for (uint32_t d = 0; d <= a->rank; d++) dim[d] = d < at ? a->dim[d] : d == at ? 1 : a->dim[d - 1];
  return ev_shaped(e, a, a->rank + 1, dim);
}

static const ev_tensor *unsqueeze(ev *e, const rule_term *t, int which) {
  (void)which;
  const ev_tensor *a = ev_arg(e, t, 0);
  uint32_t at;
  return a && ev_dim(e, t, 1, a->rank + 1, &at) ? unsqueezed(e, a, at) : NULL;
}

static const ev_tensor *squeezed(ev *e, const ev_tensor *a, const bool *drop) {
  int64_t dim[RULE_MAX_RANK];
  uint32_t n = 0;
  for (uint32_t d = 0; d < a->rank; d++)
    if (!drop[d] || a->dim[d] != 1) dim[n++] = a->dim[d];
  return ev_shaped(e, a, n, dim);
}

/* `which`: all, one, several dimensions. */
static const ev_tensor *squeeze(ev *e, const rule_term *t, int which) {
  const ev_tensor *a = ev_arg(e, t, 0);
  bool drop[RULE_MAX_RANK] = {false};
  int64_t d[EV_MAX_LIST];
  uint32_t n = 1, at;
  if (!a) return NULL;
  if (which == 0) memset(drop, true, sizeof drop);
  else if (which == 1 ? !ev_int(e, t, 1, d) : !ev_ints(e, t, 1, d, &n)) return NULL;
  for (uint32_t i = 0; which && i < n; i++) {
    if (!ev_wrap(e, d[i], a->rank, &at)) return NULL;
    drop[at] = true;
  }
  return squeezed(e, a, drop);
}

static const ev_tensor *transpose(ev *e, const rule_term *t, int which) {
  const ev_tensor *a = ev_arg(e, t, 0);
  uint32_t x, y;
  if (!a) return NULL;
  if (which && a->rank > 2) return ev_fail(e, "it has too many dimensions"); /* t */
  if (which) return a->rank < 2 ? a : ev_swapped(e, a, 0, 1);
  return ev_dim(e, t, 1, a->rank, &x) && ev_dim(e, t, 2, a->rank, &y) ? ev_swapped(e, a, x, y)
                                                                      : NULL;
}

static const ev_tensor *permute(ev *e, const rule_term *t, int which) {
  (void)which;
  const ev_tensor *a = ev_arg(e, t, 0);
  int64_t order[EV_MAX_LIST], dim[RULE_MAX_RANK], own[RULE_MAX_RANK], stride[RULE_MAX_RANK];
  bool seen[RULE_MAX_RANK] = {false};
  uint32_t n, at;
  if (!a || !ev_ints(e, t, 1, order, &n)) return NULL;
  if (n != a->rank) return ev_fail(e, "shapes do not fit");
  ev_strides(a, own);
  for (uint32_t d = 0; d < n; d++) {
    if (!ev_wrap(e, order[d], n, &at)) return NULL;
    if (seen[at]) return ev_fail(e, "a dimension twice");
    seen[at] = true;
    dim[d] = a->dim[at];
    stride[d] = own[at];
  }
  return ev_strided(e, a, n, dim, stride, 0);
}

static const ev_tensor *slice(ev *e, const rule_term *t, int which) {
  const ev_tensor *a = ev_arg(e, t, 0);
  int64_t start = 0, end = INT64_MAX, step = 1;
  uint32_t d;
  if (!a || !ev_dim(e, t, 1, a->rank, &d)) return NULL;
  if (!ev_none(t, 2) && !ev_int(e, t, 2, &start)) return NULL;
  if (!ev_none(t, 3) && !ev_int(e, t, 3, &end)) return NULL;
  if (!which && !ev_none(t, 4) && !ev_int(e, t, 4, &step)) return NULL;
  if (!which || a->rank == 0) return ev_slice(e, a, d, start, end, step);
  if (start < 0) start += a->dim[d]; /* narrow: from start on, so many */
  if (start < 0 || end < 0 || start > a->dim[d] || end > a->dim[d] - start)
    return ev_fail(e, "there is no such part");
  return ev_slice(e, a, d, start, start + end, 1);
}

static const ev_tensor *selected(ev *e, const ev_tensor *a, uint32_t d, int64_t i) {
  bool drop[RULE_MAX_RANK] = {false};
  if (!a || a->rank == 0) return ev_fail(e, "there is no such dimension");
  if (i < 0) i += a->dim[d];
  if (i < 0 || i >= a->dim[d]) return ev_fail(e, "there is no such place");
  drop[d] = true;
  const ev_tensor *s = ev_slice(e, a, d, i, i + 1, 1);
  return s ? squeezed(e, s, drop) : NULL;
}

static const ev_tensor *select_one(ev *e, const rule_term *t, int which) {
  (void)which;
  const ev_tensor *a = ev_arg(e, t, 0);
  uint32_t d;
  int64_t i;
  return a && ev_dim(e, t, 1, a->rank, &d) && ev_int(e, t, 2, &i) ? selected(e, a, d, i) : NULL;
}

static const ev_tensor *cat(ev *e, const rule_term *t, int which) {
  ev_list l;
  uint32_t d;
  if (!ev_eval_list(e, t->child[0], &l) || !ev_dim(e, t, 1, l.t[0]->rank + (which ? 1 : 0), &d))
    return NULL;
  for (size_t i = 0; i < l.n && which; i++)
    if (!(l.t[i] = unsqueezed(e, l.t[i], d))) return NULL;
  return ev_cat(e, &l, d);
}

/* -1 keeps a size. */
static const ev_tensor *expand(ev *e, const rule_term *t, int which) {
  const ev_tensor *a = ev_arg(e, t, 0), *like = which ? ev_arg(e, t, 1) : NULL;
  int64_t dim[EV_MAX_LIST];
  uint32_t n;
  if (!a || (which && !like)) return NULL;
  if (which) return ev_expand(e, a, like->rank, like->dim);
  if (!ev_ints(e, t, 1, dim, &n)) return NULL;
  for (uint32_t d = 0; d < n; d++)
    if (dim[d] == -1 && d + a->rank >= n) dim[d] = a->dim[d + a->rank - n];
  return ev_expand(e, a, n, dim);
}

static const ev_tensor *repeat(ev *e, const rule_term *t, int which) {
  (void)which;
  const ev_tensor *a = ev_arg(e, t, 0);
  int64_t times[EV_MAX_LIST];
  uint32_t n;
  if (!a || !ev_ints(e, t, 1, times, &n)) return NULL;
  if (n < a->rank) return ev_fail(e, "shapes do not fit");
  while (a && a->rank < n) a = unsqueezed(e, a, 0);
  for (uint32_t d = 0; a && d < n; d++) {
    ev_list l = {.t = times[d] > 0 && times[d] <= EV_MAX_LIST ? ev_take(e, times[d], sizeof *l.t)
                                                              : NULL};
    if (!l.t) return ev_fail(e, "it is repeated never, or too often");
    for (; (int64_t)l.n < times[d]; l.n++) l.t[l.n] = a;
    a = ev_cat(e, &l, d);
  }
  return a;
}

static const ev_tensor *flip(ev *e, const rule_term *t, int which) {
  (void)which;
  const ev_tensor *a = ev_arg(e, t, 0);
  int64_t dims[EV_MAX_LIST], stride[RULE_MAX_RANK];
  uint32_t n, d;
  if (!a || !ev_ints(e, t, 1, dims, &n)) return NULL;
  for (uint32_t i = 0; a && i < n && a->rank && a->n; i++) {
    if (!ev_wrap(e, dims[i], a->rank, &d)) return NULL;
    ev_strides(a, stride);
    const int64_t last = (a->dim[d] - 1) * stride[d];
    stride[d] = -stride[d];
    a = ev_strided(e, a, a->rank, a->dim, stride, last);
  }
  return a;
}

static const ev_tensor *roll(ev *e, const rule_term *t, int which) {
  (void)which;
  const ev_tensor *a = ev_arg(e, t, 0);
  int64_t by[EV_MAX_LIST], dims[EV_MAX_LIST];
  uint32_t n, m, d;
  if (!a || !ev_ints(e, t, 1, by, &n) || !ev_ints(e, t, 2, dims, &m)) return NULL;
  if (m == 0 || n != m) return ev_fail(e, "rolled as one row");
  for (uint32_t i = 0; a && i < n; i++) {
    if (!ev_wrap(e, dims[i], a->rank, &d) || a->rank == 0 || a->dim[d] == 0) return NULL;
    const int64_t cut = ((-by[i]) % a->dim[d] + a->dim[d]) % a->dim[d];
    ev_list l = {.t = ev_take(e, 2, sizeof *l.t), .n = 2};
    if (!l.t || !(l.t[0] = ev_slice(e, a, d, cut, INT64_MAX, 1)) ||
        !(l.t[1] = ev_slice(e, a, d, 0, cut, 1)))
      return NULL;
    a = ev_cat(e, &l, d);
  }
  return a;
}

/* Below a diagonal, or above it (`which`); 0 elsewhere. */
static const ev_tensor *triangle(ev *e, const rule_term *t, int which) {
  const ev_tensor *a = ev_arg(e, t, 0);
  int64_t k;
  if (!a || !ev_int(e, t, 1, &k)) return NULL;
  if (a->rank < 2) return ev_fail(e, "it has too few dimensions");
  ev_tensor *r = ev_new(e, a->kind, a->rank, a->dim);
  const int64_t n = a->dim[a->rank - 1], m = a->dim[a->rank - 2];
  for (int64_t i = 0; r && i < r->n; i++) {
    const int64_t row = i / n % m, column = i % n;
    const bool in = which ? column - row >= k : column - row <= k;
    r->v[i] = in ? a->v[i] : ball_exact(0);
  }
  return r;
}

static const ev_tensor *pad(ev *e, const rule_term *t, int which) {
  (void)which;
  const ev_tensor *a = ev_arg(e, t, 0);
  int64_t by[EV_MAX_LIST];
  uint32_t n;
  ball fill;
  if (!a || !ev_ints(e, t, 1, by, &n) || !ev_number(e, t, 2, &fill)) return NULL;
  if (n % 2 || n / 2 > a->rank) return ev_fail(e, "shapes do not fit");
  for (uint32_t i = 0; a && i < n / 2; i++) {
    const uint32_t d = a->rank - 1 - i;
    ev_list l = {.t = ev_take(e, 3, sizeof *l.t), .n = 3};
    if (by[2 * i] < 0 || by[2 * i + 1] < 0) return ev_fail(e, "a negative padding");
    for (int side = 0; side < 2 && l.t; side++) {
      int64_t dim[RULE_MAX_RANK];
      memcpy(dim, a->dim, sizeof dim);
      dim[d] = by[2 * i + (uint32_t)side];
      ev_tensor *p = ev_new(e, a->kind, a->rank, dim);
      for (int64_t j = 0; p && j < p->n; j++) p->v[j] = fill;
      l.t[2 * side] = p;
    }
    if (!l.t || !(l.t[1] = a) || !l.t[0] || !l.t[2]) return NULL;
    a = ev_cat(e, &l, d);
  }
  return a;
}

/* ---- made ---- */

/* `which`: where the number stands; 0, -1: zeros, ones. */
static const ev_tensor *filled(ev *e, const rule_term *t, char kind, uint32_t rank,
                               const int64_t *dim, int which) {
  ball v = ball_exact(which == -1);
  if (which > 0 && !ev_number(e, t, (uint32_t)which, &v)) return NULL;
  ev_tensor *r = ev_new(e, kind, rank, dim);
  for (int64_t i = 0; r && i < r->n; i++) r->v[i] = v;
  return r;
}

static char dtype_at(const rule_term *t, uint32_t i, char otherwise) {
  if (ev_none(t, i) || t->child[i]->kind != RULE_DTYPE) return otherwise;
  const rule_dtype d = (rule_dtype)t->child[i]->u.i;
  return rule_dtype_is_float(d) ? 'f' : d == RULE_BOOL ? 'b' : 'i';
}

static char number_kind(const rule_term *t, uint32_t i) {
  return i >= t->n || t->child[i]->kind == RULE_FLOAT ? 'f'
         : t->child[i]->kind == RULE_BOOLEAN          ? 'b'
         : t->child[i]->kind == RULE_INT              ? 'i'
                                                      : 'f';
}

static const ev_tensor *full(ev *e, const rule_term *t, int which) {
  int64_t dim[EV_MAX_LIST];
  uint32_t n;
  const char kind = which > 0 ? dtype_at(t, 2, number_kind(t, 1)) : dtype_at(t, 1, 'f');
  return ev_ints(e, t, 0, dim, &n) ? filled(e, t, kind, n, dim, which) : NULL;
}

static const ev_tensor *full_like(ev *e, const rule_term *t, int which) {
  const ev_tensor *a = ev_arg(e, t, 0);
  return a ? filled(e, t, dtype_at(t, which > 0 ? 2 : 1, a->kind), a->rank, a->dim, which) : NULL;
}

static const ev_tensor *new_full(ev *e, const rule_term *t, int which) {
  const ev_tensor *a = ev_arg(e, t, 0);
  int64_t dim[EV_MAX_LIST];
  uint32_t n;
  return a && ev_ints(e, t, 1, dim, &n)
             ? filled(e, t, dtype_at(t, which > 0 ? 3 : 2, a->kind), n, dim, which)
             : NULL;
}

static const ev_tensor *scalar_tensor(ev *e, const rule_term *t, int which) {
  (void)which;
  ball v;
  return ev_number(e, t, 0, &v) ? ev_scalar(e, v, dtype_at(t, 1, number_kind(t, 0))) : NULL;
}

/* From start, by step, to before end; `which`: how many of the three stand there. */
static const ev_tensor *arange(ev *e, const rule_term *t, int which) {
  int64_t start = 0, end, step = 1;
  if (which > 1 && !ev_int(e, t, 0, &start)) return NULL;
  if (!ev_int(e, t, which > 1 ? 1 : 0, &end) || (which > 2 && !ev_int(e, t, 2, &step))) return NULL;
  if (step == 0) return ev_fail(e, "a step of 0");
  const int64_t n = (end - start + step + (step > 0 ? -1 : 1)) / step;
  ev_tensor *r = ev_new(e, dtype_at(t, (uint32_t)which, 'i'), 1, (int64_t[]){n > 0 ? n : 0});
  for (int64_t i = 0; r && i < r->n; i++) r->v[i] = ball_exact((long double)(start + i * step));
  return r;
}

/* ---- looked up ---- */

/* The place that a ball says, in [0, n); -1: none, or not known. */
static int64_t place(ball x, int64_t n) {
  return x.rad == 0 && x.mid >= 0 && x.mid < (long double)n ? (int64_t)x.mid : -1;
}

/* The slices of `table` along `d` that `index` chooses, in the shape of `index`. A slice whose
 * index is out of range is unknown. */
const ev_tensor *ev_rows_of(ev *e, const ev_tensor *table, uint32_t d, const ev_tensor *index) {
  int64_t dim[2 * RULE_MAX_RANK];
  uint32_t n = 0;
  if (!table || !index) return NULL;
  if (d >= table->rank || index->kind != 'i') return ev_fail(e, "no places in a table");
  for (uint32_t k = 0; k < d; k++) dim[n++] = table->dim[k];
  for (uint32_t k = 0; k < index->rank; k++) dim[n++] = index->dim[k];
  for (uint32_t k = d + 1; k < table->rank; k++) dim[n++] = table->dim[k];
  ev_tensor *r = ev_new(e, table->kind, n, dim);
  const int64_t inner = product(table->dim, d + 1, table->rank), rows = table->dim[d];
  for (int64_t i = 0; r && i < r->n; i++) {
    const int64_t outer = i / (inner * index->n), at = place(index->v[i / inner % index->n], rows);
    r->v[i] = at < 0 ? ball_unknown() : table->v[(outer * rows + at) * inner + i % inner];
  }
  return r;
}

static const ev_tensor *embedding(ev *e, const rule_term *t, int which) {
  const ev_tensor *a = ev_arg(e, t, 0), *i = ev_arg(e, t, which ? 2 : 1);
  uint32_t d = 0;
  if (!a || !i || (which && !ev_dim(e, t, 1, a->rank, &d))) return NULL;
  if (which && i->rank != 1) return ev_fail(e, "no row of places");
  return ev_rows_of(e, a, d, i);
}

static const ev_tensor *gather(ev *e, const rule_term *t, int which) {
  (void)which;
  const ev_tensor *a = ev_arg(e, t, 0), *index = ev_arg(e, t, 2);
  int64_t own[RULE_MAX_RANK], stride[RULE_MAX_RANK];
  uint32_t d;
  if (!a || !index || !ev_dim(e, t, 1, a->rank, &d)) return NULL;
  if (a->rank != index->rank || a->rank == 0) return ev_fail(e, "shapes do not fit");
  for (uint32_t k = 0; k < a->rank; k++)
    if (k != d && index->dim[k] > a->dim[k]) return ev_fail(e, "shapes do not fit");
  ev_tensor *r = ev_new(e, a->kind, a->rank, index->dim);
  ev_strides(index, own);
  ev_strides(a, stride);
  for (int64_t i = 0; r && i < r->n; i++) {
    const int64_t p = place(index->v[i], a->dim[d]);
    int64_t at = p * stride[d];
    for (uint32_t k = 0; k < a->rank; k++)
      if (k != d) at += i / own[k] % index->dim[k] * stride[k];
    r->v[i] = p < 0 ? ball_unknown() : a->v[at];
  }
  return r;
}

/* ---- several results ---- */

static bool cut(ev *e, const ev_tensor *a, uint32_t d, const int64_t *size, int64_t n,
                ev_list *out) {
  int64_t at = 0;
  if (n < 0 || n > 1 << 16 || !(out->t = ev_take(e, n, sizeof *out->t))) return false;
  for (; (int64_t)out->n < n; at += size[out->n++])
    if (size[out->n] < 0 || !(out->t[out->n] = ev_slice(e, a, d, at, at + size[out->n], 1)))
      return false;
  return at == a->dim[d] || ev_fail(e, "the parts are not the whole") != NULL;
}

/* In parts of `size`, the last one possibly smaller. */
static bool in_parts(ev *e, const ev_tensor *a, uint32_t d, int64_t size, ev_list *out) {
  if (size < 1) return ev_fail(e, "parts of nothing") != NULL;
  const int64_t n = (a->dim[d] + size - 1) / size;
  int64_t *each = ev_take(e, n, sizeof *each);
  for (int64_t i = 0; each && i < n; i++) each[i] = i < n - 1 ? size : a->dim[d] - size * (n - 1);
  return each && cut(e, a, d, each, n, out);
}

static bool unbind(ev *e, const ev_tensor *a, uint32_t d, ev_list *out) {
  if (!(out->t = ev_take(e, a->dim[d], sizeof *out->t))) return false;
  for (; (int64_t)out->n < a->dim[d]; out->n++)
    if (!(out->t[out->n] = selected(e, a, d, (int64_t)out->n))) return false;
  return true;
}

bool ev_parts(ev *e, const rule_term *t, ev_list *out) {
  const bool split =
      !strcmp(t->u.s, "aten::split.Tensor") || !strcmp(t->u.s, "aten::unsafe_split.Tensor");
  const bool sizes =
      !strcmp(t->u.s, "aten::split_with_sizes") || !strcmp(t->u.s, "aten::split.sizes");
  const bool chunk = !strcmp(t->u.s, "aten::chunk"), apart = !strcmp(t->u.s, "aten::unbind.int");
  int64_t each[EV_MAX_LIST], n;
  uint32_t d, count;
  *out = (ev_list){0};
  if (!split && !sizes && !chunk && !apart) return false;
  const ev_tensor *a = ev_arg(e, t, 0);
  if (!a || !ev_dim(e, t, apart ? 1 : 2, a->rank, &d)) return false;
  if (a->rank == 0) return ev_fail(e, "there is no such dimension") != NULL;
  if (apart) return unbind(e, a, d, out);
  if (sizes) return ev_ints(e, t, 1, each, &count) && cut(e, a, d, each, count, out);
  if (!ev_int(e, t, 1, &n)) return false;
  if (chunk && n < 1) return ev_fail(e, "parts of nothing") != NULL;
  return in_parts(e, a, d, chunk ? (a->dim[d] + n - 1) / n : n, out);
}

const ev_op ev_layouts[] = {{"aten::view", view, 0},
                            {"aten::reshape", view, 0},
                            {"aten::_unsafe_view", view, 0},
                            {"aten::flatten.using_ints", flatten, 1},
                            {"aten::ravel", flatten, 0},
                            {"aten::unflatten.int", unflatten, 0},
                            {"aten::unsqueeze", unsqueeze, 0},
                            {"aten::squeeze", squeeze, 0},
                            {"aten::squeeze.dim", squeeze, 1},
                            {"aten::squeeze.dims", squeeze, 2},
                            {"aten::transpose.int", transpose, 0},
                            {"aten::swapaxes", transpose, 0},
                            {"aten::t", transpose, 1},
                            {"aten::permute", permute, 0},
                            {"aten::slice.Tensor", slice, 0},
                            {"aten::narrow", slice, 1},
                            {"aten::select.int", select_one, 0},
                            {"aten::cat", cat, 0},
                            {"aten::stack", cat, 1},
                            {"aten::expand", expand, 0},
                            {"aten::broadcast_to", expand, 0},
                            {"aten::expand_as", expand, 1},
                            {"aten::repeat", repeat, 0},
                            {"aten::flip", flip, 0},
                            {"aten::roll", roll, 0},
                            {"aten::tril", triangle, 0},
                            {"aten::triu", triangle, 1},
                            {"aten::constant_pad_nd", pad, 0},
                            {"aten::full", full, 1},
                            {"aten::zeros", full, 0},
                            {"aten::ones", full, -1},
                            {"aten::full_like", full_like, 1},
                            {"aten::zeros_like", full_like, 0},
                            {"aten::ones_like", full_like, -1},
                            {"aten::new_full", new_full, 2},
                            {"aten::new_zeros", new_full, 0},
                            {"aten::new_ones", new_full, -1},
                            {"aten::scalar_tensor", scalar_tensor, 0},
                            {"aten::arange", arange, 1},
                            {"aten::arange.start", arange, 2},
                            {"aten::arange.start_step", arange, 3},
                            {"aten::embedding", embedding, 0},
                            {"aten::index_select", embedding, 1},
                            {"aten::gather", gather, 0},
                            {NULL, NULL, 0}};
