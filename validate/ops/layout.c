/* Definitions for the symbolic prover: operators that move elements, join and cut tensors, and make
 * constant ones. */
#include <stdio.h>
#include <string.h>

#include "validate/ops/ops.h"

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

typedef struct group { /* of dimensions */
  const uint32_t *dim;
  uint32_t n;
} group;

/* One group: the flat position of the result's indices, taken apart by the input's sizes. */
static void regroup(sc *c, const pt_tensor *t, const sx *idx, sx *in, group result, group input) {
  const uint32_t *to = result.dim, *from = input.dim, n_to = result.n, n_from = input.n;
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
    regroup(c, t, idx, in, (group){to + i, p}, (group){from + j, q});
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
  return !c->fault.failed;
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
  const pt_tensor *slice = pt_undropped(c, x, d);
  if (slice) return slice;
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
      if (c->fault.failed) return NULL;
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
    {"flip", define_turn, FLIP},
    {"roll", define_turn, ROLL},
};

bool pt_define_layout(const char *name, pt_definition *out) {
  return pt_find(table, sizeof table / sizeof *table, name, out);
}
