/* Definitions for the symbolic prover: operators that move elements, join and cut tensors, and make
 * constant ones. */
#include <stdio.h>
#include <string.h>

#include "validate/prove/prove_int.h"

/* ---- shapes ---- */

sx sx_prod_dims(sc *c, const sx *d, uint32_t n) {
  sx r = c->one;
  for (uint32_t i = 0; i < n; i++) r = sx_mul(c, r, d[i]);
  return r;
}

/* Positions of dimensions that are not 1. */
static uint32_t wide(const sc *c, const pt_tensor *t, uint32_t *at) {
  uint32_t n = 0;
  for (uint32_t k = 0; k < t->rank; k++)
    if (t->dim[k] != c->one) at[n++] = k;
  return n;
}

/* One group: the flat position of the result's indices, taken apart by the input's sizes. */
static void regroup(sc *c, const pt_tensor *t, const sx *idx, sx *in, const uint32_t *to,
                    uint32_t n_to, const uint32_t *from, uint32_t n_from) {
  sx flat = c->zero;
  for (uint32_t k = 0; k < n_to; k++)
    flat = sx_add(c, k ? sx_mul(c, flat, t->dim[to[k]]) : c->zero, idx[to[k]]);
  for (uint32_t k = n_from; k-- > 1;) {
    const sx d = t->in[0]->dim[from[k]], q = sx_div(c, flat, d);
    in[from[k]] = sx_sub(c, flat, sx_mul(c, d, q));
    flat = q;
  }
  if (n_from) in[from[0]] = flat;
}

static sx reshape_elem(sc *c, const pt_tensor *t, const sx *idx) {
  uint32_t to[RULE_MAX_RANK], from[RULE_MAX_RANK];
  const uint32_t n = wide(c, t, to), m = wide(c, t->in[0], from);
  sx in[RULE_MAX_RANK];
  for (uint32_t k = 0; k < t->in[0]->rank; k++) in[k] = c->zero;
  for (uint32_t i = 0, j = 0; i < n || j < m;) {
    uint32_t p = i < n, q = j < m;
    sx a = p ? t->dim[to[i]] : c->one, b = q ? t->in[0]->dim[from[j]] : c->one, x;
    while (!sx_same(c, a, b) && (i + p < n || j + q < m)) {
      const bool grow_to = i + p < n && (j + q >= m || !sx_divides(c, b, a, &x));
      if (grow_to) a = sx_mul(c, a, t->dim[to[i + p++]]);
      else b = sx_mul(c, b, t->in[0]->dim[from[j + q++]]);
    }
    regroup(c, t, idx, in, to + i, p, from + j, q);
    i += p;
    j += q;
  }
  return pt_at(c, t->in[0], in);
}

const pt_tensor *pt_reshape(sc *c, const pt_tensor *x, const sx *dim, uint32_t rank) {
  if (!x || !sc_require_eq(c, sx_prod_dims(c, x->dim, x->rank), sx_prod_dims(c, dim, rank)))
    return NULL;
  bool same = x->rank == rank;
  for (uint32_t k = 0; k < rank && same; k++) same = x->dim[k] == dim[k];
  if (same) return x;
  pt_tensor *t = pt_new(c, x->kind, reshape_elem);
  if (!t) return NULL;
  t->in[0] = x;
  t->lead = x->lead;
  t->rank = rank;
  memcpy(t->dim, dim, rank * sizeof *dim);
  return t;
}

const pt_tensor *pt_flatten(sc *c, const pt_tensor *t, uint32_t from, uint32_t to) {
  sx dim[RULE_MAX_RANK];
  uint32_t n = 0;
  if (!t) return NULL;
  if (t->rank == 0) return pt_reshape(c, t, &c->one, 1);
  for (uint32_t k = 0; k < t->rank; k++) {
    if (k > from && k <= to) dim[n - 1] = sx_mul(c, dim[n - 1], t->dim[k]);
    else dim[n++] = t->dim[k];
  }
  return pt_reshape(c, t, dim, n);
}

/* Sizes as they are given: one that may be -1 is decided, as -1 means something else; others are
 * not negative. */
static bool settled(sc *c, sx *dim, uint32_t n) {
  for (uint32_t k = 0; k < n; k++) {
    bool hole = dim[k] == c->minus_one;
    if (hole || sc_has(c, dim[k], S_NONNEG)) continue;
    if (!sc_decide(c, sx_eq(c, dim[k], c->minus_one), &hole)) return false;
    if (hole) dim[k] = c->minus_one;
    else if (!sc_require(c, sx_le(c, c->zero, dim[k]))) return false;
  }
  return !c->failed;
}

/* Sizes with one -1 worked out against `total`. */
static bool wanted(sc *c, sx *dim, uint32_t n, sx total) {
  uint32_t hole = n;
  sx rest = c->one;
  for (uint32_t k = 0; k < n; k++) {
    if (dim[k] == c->minus_one && hole == n) hole = k;
    else rest = sx_mul(c, rest, dim[k]);
  }
  if (hole == n) return true;
  /* Another -1, or a size of 0: refused. */
  if (!sx_gt0(c, rest) && !sc_require(c, sx_lt(c, c->zero, rest))) return false;
  return sc_multiple(c, total, rest, &dim[hole]);
}

enum { VIEW, FLATTEN, UNFLATTEN, RESHAPE_AS, UNSQUEEZE, SQUEEZE, SQUEEZE_DIM };

static const pt_value *define_reshape(pt_args *a, int which) {
  sc *c = a->c;
  const pt_tensor *x = pt_arg_tensor(a, "self"), *o;
  sx dim[RULE_MAX_RANK], part[RULE_MAX_RANK];
  uint32_t n = 0, d, e;
  if (!x) return NULL;
  switch (which) {
  case VIEW:
    if (x->lead || !pt_arg_sizes(a, pt_arg(a, "size") ? "size" : "shape", dim, &n)) return NULL;
    if (!settled(c, dim, n) || !wanted(c, dim, n, sx_prod_dims(c, x->dim, x->rank))) return NULL;
    return pt_one(c, pt_reshape(c, x, dim, n));
  case FLATTEN:
    if (!pt_arg_dim(a, "start_dim", 0, x, &d) || !pt_arg_dim(a, "end_dim", -1, x, &e) || d > e)
      return NULL;
    return pt_one(c, pt_flatten(c, x, d, e));
  case UNFLATTEN:
    if (!pt_arg_dim(a, "dim", 0, x, &d) || !pt_arg_sizes(a, "sizes", part, &e) ||
        !settled(c, part, e) || !wanted(c, part, e, x->dim[d]))
      return NULL;
    if (x->rank + e > RULE_MAX_RANK || !sc_require_eq(c, sx_prod_dims(c, part, e), x->dim[d]))
      return NULL;
    for (uint32_t k = 0; k < x->rank; k++)
      for (uint32_t j = 0; j < (k == d ? e : 1); j++) dim[n++] = k == d ? part[j] : x->dim[k];
    return pt_one(c, pt_reshape(c, x, dim, n));
  case RESHAPE_AS:
    o = pt_arg_tensor(a, "other");
    if (!o || o->lead != x->lead) return NULL;
    return pt_one(c, pt_reshape(c, x, o->dim, o->rank));
  default: return NULL;
  }
}

const pt_tensor *pt_unsqueeze(sc *c, const pt_tensor *x, uint32_t d) {
  sx dim[RULE_MAX_RANK];
  if (!x || x->rank + 1 > RULE_MAX_RANK) return NULL;
  for (uint32_t k = 0; k <= x->rank; k++)
    dim[k] = k < d ? x->dim[k] : k == d ? c->one : x->dim[k - 1];
  return pt_reshape(c, x, dim, x->rank + 1);
}

static const pt_value *define_unsqueeze(pt_args *a, int which) {
  (void)which;
  const pt_tensor *x = pt_arg_tensor(a, "self");
  uint32_t d;
  if (!x || !pt_arg(a, "dim") || !pt_dim(a->c, pt_arg(a, "dim"), x, 1, &d)) return NULL;
  return pt_one(a->c, pt_unsqueeze(a->c, x, d));
}

static const pt_value *define_squeeze(pt_args *a, int which) {
  (void)which;
  sc *c = a->c;
  const pt_tensor *x = pt_arg_tensor(a, "self");
  uint32_t d[RULE_MAX_RANK], n = 0, m = 0;
  sx dim[RULE_MAX_RANK];
  if (!x) return NULL;
  const bool all = !pt_arg(a, "dim");
  if (!all && !pt_arg_dims(a, "dim", x, d, &n)) return NULL;
  if (all && x->lead) return NULL;
  for (uint32_t k = 0; k < x->rank; k++) {
    bool drop = all, one = false;
    for (uint32_t i = 0, times = 0; i < n; i++) {
      if (d[i] == k && x->rank && times++) return NULL; /* named twice */
      drop |= d[i] == k;
    }
    if (drop && !sc_decide(c, sx_eq(c, x->dim[k], c->one), &one)) return NULL;
    if (!(drop && one)) dim[m++] = x->dim[k];
  }
  return pt_one(c, pt_reshape(c, x, dim, m));
}

/* ---- orders of dimensions ---- */

static sx permute_elem(sc *c, const pt_tensor *t, const sx *idx) {
  sx in[RULE_MAX_RANK];
  for (uint32_t k = 0; k < t->rank; k++) in[t->k[k]] = idx[k];
  return pt_at(c, t->in[0], in);
}

const pt_tensor *pt_permute(sc *c, const pt_tensor *x, const uint32_t *order) {
  pt_tensor *t = x ? pt_like(c, x, x->kind, permute_elem) : NULL;
  for (uint32_t k = 0; t && k < x->rank; k++)
    t->k[k] = (int32_t)order[k], t->dim[k] = x->dim[order[k]];
  return t;
}

const pt_tensor *pt_transpose(sc *c, const pt_tensor *x, uint32_t a, uint32_t b) {
  uint32_t order[RULE_MAX_RANK];
  if (!x || a == b) return x;
  for (uint32_t k = 0; k < x->rank; k++) order[k] = k == a ? b : k == b ? a : k;
  return pt_permute(c, x, order);
}

enum { TRANSPOSE, SWAP, PERMUTE, T, MOVEDIM, REVERSED, MATRIX };

static bool moved(pt_args *a, const pt_tensor *x, uint32_t *order) {
  uint32_t from[RULE_MAX_RANK], to[RULE_MAX_RANK], n, m, next = 0;
  bool used[RULE_MAX_RANK] = {false}, set[RULE_MAX_RANK] = {false};
  if (!pt_arg_dims(a, "source", x, from, &n) || !pt_arg_dims(a, "destination", x, to, &m) || n != m)
    return false;
  for (uint32_t i = 0; i < n; i++) {
    if (used[from[i]] || set[to[i]]) return false;
    used[from[i]] = set[to[i]] = true;
    order[to[i]] = from[i];
  }
  for (uint32_t k = 0; k < x->rank; k++) {
    if (set[k]) continue;
    while (used[next]) next++;
    order[k] = next++;
  }
  return true;
}

static const pt_value *define_order(pt_args *a, int which) {
  sc *c = a->c;
  const pt_tensor *x = pt_arg_tensor(a, "self");
  uint32_t order[RULE_MAX_RANK], n, d, e;
  bool used[RULE_MAX_RANK] = {false};
  if (!x) return NULL;
  switch (which) {
  case TRANSPOSE:
  case SWAP:
    if (!pt_arg_dim(a, which == SWAP ? "axis0" : "dim0", 0, x, &d) ||
        !pt_arg_dim(a, which == SWAP ? "axis1" : "dim1", 0, x, &e))
      return NULL;
    return pt_one(c, pt_transpose(c, x, d, e));
  case T:
    if (x->rank > 2 || x->lead) return NULL;
    return pt_one(c, x->rank < 2 ? x : pt_transpose(c, x, 0, 1));
  case MATRIX: return x->rank < 2 ? NULL : pt_one(c, pt_transpose(c, x, x->rank - 2, x->rank - 1));
  case REVERSED:
    if (x->lead) return NULL;
    for (uint32_t k = 0; k < x->rank; k++) order[k] = x->rank - 1 - k;
    return pt_one(c, pt_permute(c, x, order));
  case MOVEDIM: return !x->lead && moved(a, x, order) ? pt_one(c, pt_permute(c, x, order)) : NULL;
  default:
    if (x->lead || !pt_arg_dims(a, "dims", x, order, &n) || n != x->rank) return NULL;
    for (uint32_t k = 0; k < n; k++) {
      if (used[order[k]]) return NULL;
      used[order[k]] = true;
    }
    return pt_one(c, pt_permute(c, x, order));
  }
}

/* ---- repetition ---- */

enum { EXPAND, EXPAND_AS, REPEAT, TILE };

static sx repeat_elem(sc *c, const pt_tensor *t, const sx *idx) {
  sx in[RULE_MAX_RANK];
  const uint32_t skip = t->rank - t->in[0]->rank;
  for (uint32_t k = 0; k < t->in[0]->rank; k++) in[k] = sx_mod(c, idx[k + skip], t->in[0]->dim[k]);
  return pt_at(c, t->in[0], in);
}

static const pt_value *define_expand(pt_args *a, int which) {
  sc *c = a->c;
  const pt_tensor *x = pt_arg_tensor(a, "self");
  sx dim[RULE_MAX_RANK];
  uint32_t n;
  if (!x) return NULL;
  if (which == EXPAND_AS) {
    const pt_tensor *o = pt_arg_tensor(a, "other");
    return o ? pt_one(c, pt_expand(c, x, o->dim, o->rank, o->lead)) : NULL;
  }
  if (x->lead || !pt_arg_sizes(a,
                               which == EXPAND ? "size"
                               : which == TILE ? "dims"
                                               : "repeats",
                               dim, &n))
    return NULL;
  if (which == TILE && n < x->rank) {
    memmove(dim + (x->rank - n), dim, n * sizeof *dim);
    for (uint32_t k = 0; k < x->rank - n; k++) dim[k] = c->one;
    n = x->rank;
  }
  if (n < x->rank) return NULL;
  const uint32_t skip = n - x->rank;
  if (which == EXPAND) {
    if (!settled(c, dim, n)) return NULL;
    for (uint32_t k = 0; k < n; k++) {
      if (dim[k] != c->minus_one) continue;
      if (k < skip && !sc_require(c, c->no))
        return NULL; /* a dimension that is not there has no size to keep */
      dim[k] = x->dim[k - skip];
    }
    return pt_one(c, pt_expand(c, x, dim, n, 0));
  }
  pt_tensor *t = pt_new(c, x->kind, repeat_elem);
  if (!t) return NULL;
  t->in[0] = x;
  t->rank = n;
  for (uint32_t k = 0; k < n; k++) {
    if (!sc_require(c, sx_le(c, c->zero, dim[k]))) return NULL;
    t->dim[k] = k < skip ? dim[k] : sx_mul(c, dim[k], x->dim[k - skip]);
  }
  return pt_one(c, t);
}

static sx repeat_each_elem(sc *c, const pt_tensor *t, const sx *idx) {
  sx in[RULE_MAX_RANK];
  memcpy(in, idx, t->rank * sizeof *in);
  in[t->which] = sx_div(c, idx[t->which], t->p[0]);
  return pt_at(c, t->in[0], in);
}

const pt_tensor *pt_repeat_each(sc *c, const pt_tensor *x, uint32_t d, sx times) {
  bool none;
  if (!x || !sc_require(c, sx_le(c, c->zero, times)) ||
      !sc_decide(c, sx_eq(c, times, c->zero), &none))
    return NULL;
  if (none) return pt_slice(c, x, d, c->zero, c->zero, c->one);
  pt_tensor *t = pt_like(c, x, x->kind, repeat_each_elem);
  if (!t) return NULL;
  t->which = (int)d;
  t->p[0] = times;
  t->dim[d] = sx_mul(c, x->dim[d], times);
  return t;
}

static const pt_value *define_repeat_interleave(pt_args *a, int which) {
  (void)which;
  sc *c = a->c;
  const pt_tensor *x = pt_arg_tensor(a, "self");
  const rule_term *times = pt_arg(a, "repeats");
  uint32_t d = 0;
  if (!x || !times || times->kind == RULE_VAR || times->kind == RULE_OP) return NULL;
  if (pt_arg(a, "dim")) {
    if (!pt_arg_dim(a, "dim", 0, x, &d)) return NULL;
  } else {
    if (x->lead) return NULL;
    x = pt_flatten(c, x, 0, x->rank - 1);
  }
  return x && x->rank ? pt_one(c, pt_repeat_each(c, x, d, sc_size(c, times))) : NULL;
}

/* ---- parts ---- */

static sx slice_elem(sc *c, const pt_tensor *t, const sx *idx) {
  sx in[RULE_MAX_RANK];
  memcpy(in, idx, t->rank * sizeof *in);
  in[t->which] = sx_add(c, t->p[0], sx_mul(c, idx[t->which], t->p[1]));
  return pt_at(c, t->in[0], in);
}

const pt_tensor *pt_slice(sc *c, const pt_tensor *x, uint32_t d, sx start, sx n, sx step) {
  if (!x || (start == c->zero && step == c->one && n == x->dim[d])) return x;
  pt_tensor *t = pt_like(c, x, x->kind, slice_elem);
  if (!t) return NULL;
  t->which = (int)d;
  t->p[0] = start;
  t->p[1] = step;
  t->dim[d] = n;
  return t;
}

static sx drop_elem(sc *c, const pt_tensor *t, const sx *idx) {
  sx in[RULE_MAX_RANK];
  for (uint32_t k = 0; k < t->in[0]->rank; k++)
    in[k] = k == (uint32_t)t->which ? t->p[0] : idx[k > (uint32_t)t->which ? k - 1 : k];
  return pt_at(c, t->in[0], in);
}

const pt_tensor *pt_drop(sc *c, const pt_tensor *x, uint32_t d, sx at) {
  pt_tensor *t = x ? pt_new(c, x->kind, drop_elem) : NULL;
  if (!t) return NULL;
  t->in[0] = x;
  t->lead = x->lead;
  t->which = (int)d;
  t->p[0] = at;
  for (uint32_t k = 0; k < x->rank; k++)
    if (k != d) t->dim[t->rank++] = x->dim[k];
  return t;
}

/* A slice's bound: from the end where negative, within [0, n]. */
static bool clamped(sc *c, sx v, sx n, sx *out) {
  bool holds;
  if (!sc_decide(c, sx_lt(c, v, c->zero), &holds)) return false;
  if (holds) {
    v = sx_add(c, v, n);
    if (!sc_decide(c, sx_lt(c, v, c->zero), &holds)) return false;
    *out = holds ? c->zero : v;
    return true;
  }
  if (!sc_decide(c, sx_le(c, v, n), &holds)) return false;
  *out = holds ? v : n;
  return true;
}

bool pt_slice_bounds(pt_args *a, const pt_tensor *x, uint32_t d, sx *start, sx *n, sx *step) {
  sc *c = a->c;
  const rule_term *e = pt_arg(a, "end");
  const sx size = x->dim[d];
  bool some;
  sx end = size;
  if (!clamped(c, pt_arg_size(a, "start", 0), size, start)) return false;
  if (e && !(e->kind == RULE_INT && e->u.i > (INT64_C(1) << 60)) &&
      !clamped(c, sc_size(c, e), size, &end))
    return false;
  *step = pt_arg_size(a, "step", 1);
  if (!sc_require(c, sx_lt(c, c->zero, *step)) || !sc_decide(c, sx_lt(c, *start, end), &some))
    return false;
  const sx length = sx_sub(c, end, *start);
  *n = !some             ? c->zero
       : *step == c->one ? length
                         : sx_add(c, c->one, sx_div(c, sx_sub(c, length, c->one), *step));
  return !c->failed;
}

enum { SLICE, SELECT, NARROW };

static const pt_value *define_part(pt_args *a, int which) {
  sc *c = a->c;
  const pt_tensor *x = pt_arg_tensor(a, "self");
  uint32_t d;
  sx start, n, step;
  bool negative;
  if (!x || x->rank == 0 || !pt_arg_dim(a, "dim", 0, x, &d)) return NULL;
  const sx size = x->dim[d];
  if (which == SLICE)
    return pt_slice_bounds(a, x, d, &start, &n, &step)
               ? pt_one(c, pt_slice(c, x, d, start, n, step))
               : NULL;
  start = pt_arg_size(a, which == SELECT ? "index" : "start", 0);
  if (!sc_decide(c, sx_lt(c, start, c->zero), &negative)) return NULL;
  if (negative) start = sx_add(c, start, size);
  n = which == SELECT ? c->one : pt_arg_size(a, "length", 0);
  if (!sc_require(c, sx_and(c, sx_le(c, c->zero, start), sx_le(c, c->zero, n))) ||
      !sc_require(c, sx_le(c, sx_add(c, start, n), size)))
    return NULL;
  return pt_one(c, which == SELECT ? pt_drop(c, x, d, start) : pt_slice(c, x, d, start, n, c->one));
}

/* ceil(size / n), by cases of the remainder where n is a number and does not divide the size as it
 * is written. */
static bool share(sc *c, sx size, sx n, sx *out, int64_t *rest) {
  int64_t k, v;
  *rest = 0;
  if (sx_divides(c, n, size, out)) return true;
  if (sx_is_int(c, size, &v) && sx_is_int(c, n, &k) && k > 0)
    return *rest = v % k, *out = sx_int(c, v / k), true;
  if (!sx_is_int(c, n, &k) || k > 8 || k < 1) {
    sc_fail(c, "parts of sizes that are not known");
    return false;
  }
  /* size = k u + r where it has been solved for already. */
  for (int64_t r = 1; r < k; r++)
    if (sx_divides(c, n, sx_sub(c, size, sx_int(c, r)), out)) return *rest = r, true;
  for (int64_t r = 0; r < k && !c->failed; r++) {
    const sx u =
        sc_derived(c, "share", sx_add(c, size, sx_mul(c, n, sc_symbol_named(c, "per"))), r == 0);
    if (c->failed) return false;
    const sx g = sx_eq(c, size, sx_add(c, sx_mul(c, n, u), sx_int(c, r)));
    if (!sx_top_guard(c, g)) {
      sc_fail(c, "parts of sizes that are not known");
      return false;
    }
    c->choice[r] = (sc_guess){sx_top_guard(c, g), true};
  }
  if (!c->failed) c->n_choices = (size_t)k;
  sc_fail(c, "a case split");
  return false;
}

static pt_value *pieces(sc *c, const pt_tensor *x, uint32_t d, sx step, bool unbind) {
  pt_value *v = sc_take(c, sizeof *v);
  if (v)
    *v = (pt_value){
        .several = true, .n = SIZE_MAX, .base = x, .dim = d, .step = step, .unbind = unbind};
  return v;
}

enum { SPLIT, SPLIT_SIZES, CHUNK, UNBIND, SECTIONS };

static const pt_value *listed(sc *c, const pt_tensor *x, uint32_t d, const sx *size, uint32_t n) {
  const pt_tensor *t[64];
  sx at = c->zero;
  for (uint32_t i = 0; i < n; i++) {
    if (!sc_require(c, sx_le(c, c->zero, size[i]))) return NULL;
    t[i] = pt_slice(c, x, d, at, size[i], c->one);
    at = sx_add(c, at, size[i]);
  }
  return sc_require_eq(c, at, x->dim[d]) ? pt_list(c, t, n) : NULL;
}

static const pt_value *define_split(pt_args *a, int which) {
  sc *c = a->c;
  const pt_tensor *x = pt_arg_tensor(a, "self");
  uint32_t d, n;
  sx size[64], step;
  int64_t rest, k;
  if (!x || x->rank == 0 || !pt_arg_dim(a, "dim", 0, x, &d)) return NULL;
  switch (which) {
  case UNBIND: return pieces(c, x, d, c->one, true);
  case SPLIT:
    if (pt_arg(a, "split_size") && pt_arg(a, "split_size")->kind == RULE_LIST) break;
    step = pt_arg_size(a, "split_size", 1);
    return sc_require(c, sx_lt(c, c->zero, step)) ? pieces(c, x, d, step, false) : NULL;
  case CHUNK:
    step = pt_arg_size(a, "chunks", 1);
    if (!sc_require(c, sx_lt(c, c->zero, step)) || !share(c, x->dim[d], step, &step, &rest))
      return NULL;
    return pieces(c, x, d, rest ? sx_add(c, step, c->one) : step, false);
  case SECTIONS:
    if (!sx_is_int(c, pt_arg_size(a, "sections", 1), &k) || k < 1 || k > 8 ||
        !share(c, x->dim[d], sx_int(c, k), &step, &rest))
      return NULL;
    for (int64_t i = 0; i < k; i++) size[i] = i < rest ? sx_add(c, step, c->one) : step;
    return listed(c, x, d, size, (uint32_t)k);
  default: break;
  }
  const char *name = pt_arg(a, "split_sizes") ? "split_sizes" : "split_size";
  const rule_term *l = pt_arg(a, name);
  if (!l || l->kind != RULE_LIST || l->n > RULE_MAX_RANK || !pt_arg_sizes(a, name, size, &n))
    return NULL;
  return listed(c, x, d, size, n);
}

/* ---- turned and moved ---- */

enum { FLIP, ROLL };

static sx turn_elem(sc *c, const pt_tensor *t, const sx *idx) {
  sx in[RULE_MAX_RANK];
  memcpy(in, idx, t->rank * sizeof *in);
  const sx i = idx[t->k[0]], n = t->dim[t->k[0]], back = sx_sub(c, i, t->p[0]);
  in[t->k[0]] = t->which == FLIP ? sx_sub(c, sx_sub(c, n, c->one), i)
                                 : sx_ite(c, sx_lt(c, i, t->p[0]), sx_add(c, back, n), back);
  return pt_at(c, t->in[0], in);
}

static const pt_tensor *turned(sc *c, const pt_tensor *x, int which, uint32_t d, sx shift) {
  bool holds;
  if (!x) return NULL;
  if (which == ROLL) { /* into [0, n) */
    if (!sc_decide(c, sx_lt(c, shift, c->zero), &holds)) return NULL;
    if (holds) shift = sx_add(c, shift, x->dim[d]);
    if (!sc_decide(c, sx_and(c, sx_le(c, c->zero, shift), sx_lt(c, shift, x->dim[d])), &holds))
      return NULL;
    if (!holds) {
      shift = sx_mod(c, shift, x->dim[d]);
      if (c->failed) return NULL;
    }
  }
  pt_tensor *t = pt_like(c, x, x->kind, turn_elem);
  if (!t) return NULL;
  t->which = which;
  t->k[0] = (int32_t)d;
  t->p[0] = shift;
  return t;
}

static const pt_value *define_turn(pt_args *a, int which) {
  sc *c = a->c;
  const pt_tensor *x = pt_arg_tensor(a, "self"), *whole = x;
  uint32_t d[RULE_MAX_RANK], n = 0, m = 0;
  sx shift[RULE_MAX_RANK] = {0};
  if (!x || (which == ROLL && !pt_arg_sizes(a, "shifts", shift, &m))) return NULL;
  const rule_term *dims = pt_arg(a, "dims");
  const bool flat = which == ROLL && (!dims || (dims->kind == RULE_LIST && dims->n == 0));
  if (flat) {
    if (m != 1 || x->lead || x->rank == 0) return NULL;
    x = pt_flatten(c, x, 0, x->rank - 1);
    d[n++] = 0;
  } else if (!pt_arg_dims(a, "dims", x, d, &n)) {
    return NULL;
  }
  if ((which == ROLL && n != m) || !x || x->rank == 0) return NULL;
  for (uint32_t i = 0; i < n && which == FLIP; i++)
    for (uint32_t k = 0; k < i; k++)
      if (d[i] == d[k]) return NULL;
  for (uint32_t i = 0; i < n; i++) x = turned(c, x, which, d[i], shift[i]);
  return pt_one(c, flat ? pt_reshape(c, x, whole->dim, whole->rank) : x);
}

/* ---- joining ---- */

static sx cat_elem(sc *c, const pt_tensor *t, const sx *idx) {
  sx in[RULE_MAX_RANK], end = t->dim[t->which], r = 0;
  memcpy(in, idx, t->rank * sizeof *in);
  const sx i = idx[t->which];
  for (size_t k = t->n_list; k-- > 0;) {
    const sx start = sx_sub(c, end, t->list[k]->dim[t->which]);
    /* A part that the index is known to miss need not be looked into. */
    if (r && sx_lt(c, i, end) == c->no) {
      end = start;
      continue;
    }
    in[t->which] = sx_sub(c, i, start);
    const sx size = t->list[k]->dim[t->which];
    const bool within = t->n_list > 1 && sc_within_begin(c, in[t->which], size);
    const sx x = pt_at(c, t->list[k], in);
    if (within) sc_within_end(c);
    r = r ? sx_ite(c, sx_lt(c, i, end), x, r) : x;
    end = start;
  }
  return r ? r : c->zero;
}

const pt_tensor *pt_cat(sc *c, const pt_tensor *const *t, size_t n, uint32_t d) {
  if (n == 0) return NULL;
  char kind = t[0]->kind;
  for (size_t i = 0; i < n; i++)
    kind = t[i]->kind == 'f' || kind == 'f' ? 'f' : t[i]->kind == 'i' || kind == 'i' ? 'i' : 'b';
  const pt_tensor **list = sc_take(c, n * sizeof *list);
  pt_tensor *r = list ? pt_like(c, t[0], kind, cat_elem) : NULL;
  if (!r) return NULL;
  r->dim[d] = c->zero;
  for (size_t i = 0; i < n; i++) {
    if (t[i]->rank != r->rank) {
      sc_fail(c, "a concatenation of different ranks");
      return NULL;
    }
    if (r->lead || t[i]->lead) {
      if (!r->lead || !t[i]->lead) return NULL;
      pt_join_leads(c, r->lead, t[i]->lead);
    }
    for (uint32_t k = 0; k < r->rank; k++)
      if (k != d && !sc_require_eq(c, r->dim[k], t[i]->dim[k])) return NULL;
    r->dim[d] = sx_add(c, r->dim[d], t[i]->dim[d]);
    if (!(list[i] = pt_kind(c, t[i], kind))) return NULL;
  }
  r->which = (int)d;
  r->list = list;
  r->n_list = n;
  return r;
}

/* Tensors of any shape: which part an element is in, and where there, depends on the parts' shapes
 * and the dimension alone. Each such concatenation stands for a shape of its own (a bit from the
 * top among the leading dimensions). */
static sx open_cat_elem(sc *c, const pt_tensor *t, const sx *idx) {
  const uint32_t outer = c->at_place;
  sx r = 0;
  for (size_t k = t->n_list; k-- > 0 && !c->failed;) {
    char name[64];
    uint32_t p = 0;
    while (p < c->n_places && (c->place[p].join != (size_t)t->which || c->place[p].part != k ||
                               c->place[p].outer != outer))
      p++;
    if (p == 63 || c->n_owned == 256) {
      sc_fail(c, "too many concatenations");
      break;
    }
    if (p == c->n_places) {
      c->place[p].join = (size_t)t->which, c->place[p].part = k, c->place[p].outer = outer;
      c->n_places++;
    }
    c->at_place = p + 1;
    const sx x = pt_at(c, t->list[k], idx);
    c->at_place = outer;
    snprintf(name, sizeof name, "part %d %zu %u", t->which, k, (unsigned)outer);
    r = r ? sx_ite(c, sx_lt(c, sc_unknown(c, name), c->zero), x, r) : x;
  }
  return r ? r : c->zero;
}

static const pt_tensor *open_cat(sc *c, const pt_tensor *const *t, size_t n, sx dim) {
  size_t j = 0;
  pt_tensor *r = pt_new(c, t[0]->kind, open_cat_elem);
  if (!r || n > 8 || c->r->n_vars > 40) return NULL;
  for (size_t i = 0; i < n; i++)
    if (t[i]->rank || !t[i]->lead || t[i]->kind != t[0]->kind) return NULL;
  for (bool found = false; j < c->n_joins && !found; j += !found) {
    found = c->join[j].n == n && c->join[j].dim == dim;
    for (size_t i = 0; i < n && found; i++) found = c->join[j].lead[i] == t[i]->lead;
  }
  if (j == 16) return NULL;
  if (j == c->n_joins) {
    c->join[j].n = n;
    c->join[j].dim = dim;
    for (size_t i = 0; i < n; i++) c->join[j].lead[i] = t[i]->lead;
    c->n_joins++;
  }
  const pt_tensor **list = sc_take(c, n * sizeof *list);
  if (!list) return NULL;
  memcpy(list, t, n * sizeof *list);
  r->lead = 1ULL << (63 - j);
  r->which = (int)j;
  r->list = list;
  r->n_list = n;
  return r;
}

enum { CAT, STACK, HSTACK, VSTACK, COLUMNS, GATHER };

static const pt_value *define_cat(pt_args *a, int which) {
  sc *c = a->c;
  const char *name = pt_arg(a, "tensors") ? "tensors" : "inputs";
  const rule_term *t = pt_arg(a, name);
  const pt_tensor *const *list, *each[64];
  size_t n;
  uint32_t d = 0;
  if (t && t->kind == RULE_OP && which == CAT) { /* all pieces of one tensor, however many */
    const pt_value *v = pt_eval(c, t);
    if (v && !v->t && !v->unbind && pt_arg_dim(a, "dim", 0, v->base, &d) && d == v->dim)
      return pt_one(c, v->base);
  }
  if (!pt_arg_list(a, name, &list, &n) || n == 0 || n > 64) return NULL;
  for (size_t i = 0; i < n; i++)
    if (!(each[i] = list[i])) return NULL;
  if (which == CAT && each[0]->lead && each[0]->rank == 0)
    return pt_one(c, open_cat(c, each, n, pt_arg_size(a, "dim", 0)));
  switch (which) {
  case STACK:
    if (!pt_arg(a, "dim") || !pt_dim(c, pt_arg(a, "dim"), each[0], 1, &d)) return NULL;
    for (size_t i = 0; i < n; i++)
      if (list[i]->rank != list[0]->rank || !(each[i] = pt_unsqueeze(c, list[i], d))) return NULL;
    break;
  case HSTACK:
  case VSTACK:
  case COLUMNS:
    for (size_t i = 0; i < n; i++) {
      if (each[i]->lead || each[i]->rank == 0) return NULL;
      if (which != HSTACK && each[i]->rank == 1)
        each[i] = pt_unsqueeze(c, each[i], which == COLUMNS);
      if (!each[i]) return NULL;
    }
    d = which == COLUMNS || (which == HSTACK && each[0]->rank > 1);
    break;
  default:
    if (each[0]->rank == 0 || !pt_arg_dim(a, "dim", 0, each[0], &d)) return NULL;
    for (size_t i = 1; i < n && which == GATHER; i++)
      if (each[i]->rank != each[0]->rank || !sc_require_eq(c, each[i]->dim[d], each[0]->dim[d]))
        return NULL;
  }
  return pt_one(c, pt_cat(c, each, n, d));
}

static const pt_definition table[] = {
    {"view", define_reshape, VIEW},
    {"reshape", define_reshape, VIEW},
    {"_unsafe_view", define_reshape, VIEW},
    {"flatten", define_reshape, FLATTEN},
    {"ravel", define_reshape, FLATTEN},
    {"unflatten", define_reshape, UNFLATTEN},
    {"view_as", define_reshape, RESHAPE_AS},
    {"reshape_as", define_reshape, RESHAPE_AS},
    {"unsqueeze", define_unsqueeze, 0},
    {"squeeze", define_squeeze, 0},
    {"transpose", define_order, TRANSPOSE},
    {"swapdims", define_order, TRANSPOSE},
    {"swapaxes", define_order, SWAP},
    {"permute", define_order, PERMUTE},
    {"t", define_order, T},
    {"movedim", define_order, MOVEDIM},
    {"moveaxis", define_order, MOVEDIM},
    {"numpy_T", define_order, REVERSED},
    {"mT", define_order, MATRIX},
    {"adjoint", define_order, MATRIX},
    {"expand", define_expand, EXPAND},
    {"broadcast_to", define_expand, EXPAND},
    {"expand_as", define_expand, EXPAND_AS},
    {"repeat", define_expand, REPEAT},
    {"tile", define_expand, TILE},
    {"repeat_interleave", define_repeat_interleave, 0},
    {"slice", define_part, SLICE},
    {"select", define_part, SELECT},
    {"narrow", define_part, NARROW},
    {"split", define_split, SPLIT},
    {"unsafe_split", define_split, SPLIT},
    {"split_with_sizes", define_split, SPLIT_SIZES},
    {"unsafe_split_with_sizes", define_split, SPLIT_SIZES},
    {"chunk", define_split, CHUNK},
    {"unsafe_chunk", define_split, CHUNK},
    {"tensor_split.sections", define_split, SECTIONS},
    {"unbind", define_split, UNBIND},
    {"flip", define_turn, FLIP},
    {"roll", define_turn, ROLL},
    {"cat", define_cat, CAT},
    {"concat", define_cat, CAT},
    {"concatenate", define_cat, CAT},
    {"stack", define_cat, STACK},
    {"hstack", define_cat, HSTACK},
    {"vstack", define_cat, VSTACK},
    {"row_stack", define_cat, VSTACK},
    {"column_stack", define_cat, COLUMNS},
};

bool pt_define_layout(const char *name, pt_definition *out) {
  if (!strcmp(name, "dist::all_gather"))
    return *out = (pt_definition){name, define_cat, GATHER}, true;
  return pt_find(table, sizeof table / sizeof *table, name, out);
}
