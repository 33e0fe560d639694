/* Operators that only move elements, and those that make constant tensors: exact index maps. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "validate/encode_int.h"

void pv_dense(const rule_shape *s, int64_t *stride) {
  int64_t n = 1;
  for (uint32_t k = s->rank; k-- > 0;) {
    stride[k] = n;
    n *= s->dim[k];
  }
}

pv_tensor *pv_strided(pv_cx *c, const pv_tensor *src, const rule_shape *s, const int64_t *stride, int64_t offset) {
  pv_tensor *r = pv_tensor_new(c, src->kind, s);
  int64_t at[RULE_MAX_RANK] = {0}, from = offset;
  for (int64_t i = 0; r && i < r->n; i++) {
    ISO_CHECK(from >= 0 && from < src->n);
    r->e[i] = src->e[from];
    for (uint32_t k = s->rank; k-- > 0;) {
      from += stride[k];
      if (++at[k] < s->dim[k]) break;
      from -= stride[k] * s->dim[k];
      at[k] = 0;
    }
  }
  return r;
}

/* The same elements under another shape. */
pv_tensor *pv_reshape(pv_cx *c, pv_tensor *t, const rule_shape *s) {
  int64_t n = 0;
  if (!t || rule_shape_numel(s, &n, NULL) != ISO_OK || n != t->n) {
    pv_fail(c, "a reshape to another number of elements");
    return NULL;
  }
  pv_tensor *r = iso_arena_alloc(&c->arena, sizeof *r);
  if (!r) {
    c->no_memory = true;
    pv_fail(c, "out of memory");
    return NULL;
  }
  *r = (pv_tensor){t->kind, *s, n, t->e};
  return r;
}

pv_tensor *pv_expand(pv_cx *c, pv_tensor *t, const rule_shape *s) {
  int64_t dense[RULE_MAX_RANK], stride[RULE_MAX_RANK];
  if (!t) return NULL;
  if (rule_shape_eq(&t->s, s)) return t;
  bool ok = t->s.rank <= s->rank;
  pv_dense(&t->s, dense);
  for (uint32_t k = 0; k < s->rank && ok; k++) {
    uint32_t lead = s->rank - t->s.rank;
    int64_t d = k < lead ? 1 : t->s.dim[k - lead];
    stride[k] = d == 1 ? 0 : dense[k - lead];
    ok = d == 1 || d == s->dim[k];
  }
  if (!ok) {
    pv_fail(c, "an expansion of another size");
    return NULL;
  }
  return pv_strided(c, t, s, stride, 0);
}

static pv_tensor *permute(pv_cx *c, pv_tensor *t, const uint32_t *order) {
  rule_shape s = {.rank = t->s.rank};
  int64_t dense[RULE_MAX_RANK], stride[RULE_MAX_RANK];
  pv_dense(&t->s, dense);
  for (uint32_t k = 0; k < s.rank; k++) s.dim[k] = t->s.dim[order[k]], stride[k] = dense[order[k]];
  return pv_strided(c, t, &s, stride, 0);
}

pv_tensor *pv_transpose(pv_cx *c, pv_tensor *t, uint32_t a, uint32_t b) {
  uint32_t order[RULE_MAX_RANK];
  if (!t) return NULL;
  if (t->s.rank == 0) return t;
  for (uint32_t k = 0; k < t->s.rank; k++) order[k] = k == a ? b : k == b ? a : k;
  return permute(c, t, order);
}

/* ---- shapes given as numbers ---- */

/* `name` with one -1 worked out. */
static bool wanted_shape(pv_call_args *a, const char *name, int64_t n, rule_shape *out) {
  pv_cx *c = a->c;
  uint32_t hole = RULE_MAX_RANK;
  int64_t rest = 1;
  if (!pv_arg_ints(a, name, out->dim, &out->rank)) return false;
  for (uint32_t k = 0; k < out->rank; k++) {
    if (out->dim[k] == -1 && hole == RULE_MAX_RANK) hole = k;
    else if (out->dim[k] < 0 || __builtin_mul_overflow(rest, out->dim[k], &rest)) return false;
  }
  if (hole < RULE_MAX_RANK) {
    if (rest == 0 || n % rest) {
      pv_fail(c, "a reshape to another number of elements");
      return false;
    }
    out->dim[hole] = n / rest;
  }
  return true;
}

enum { VIEW, FLATTEN, UNFLATTEN, RESHAPE_AS, UNSQUEEZE, SQUEEZE, SQUEEZE_DIM, SQUEEZE_DIMS };

static bool flattened(pv_call_args *a, const pv_tensor *x, rule_shape *s) {
  uint32_t b, e;
  if (!pv_dim(a->c, pv_arg_int(a, "start_dim", 0), x->s.rank, &b) ||
      !pv_dim(a->c, pv_arg_int(a, "end_dim", -1), x->s.rank, &e) || b > e)
    return false;
  if (x->s.rank == 0) {
    *s = (rule_shape){1, {1}};
    return true;
  }
  *s = (rule_shape){.rank = 0};
  for (uint32_t k = 0; k < x->s.rank; k++) {
    if (k > b && k <= e) s->dim[s->rank - 1] *= x->s.dim[k];
    else s->dim[s->rank++] = x->s.dim[k];
  }
  return true;
}

static bool unflattened(pv_call_args *a, const pv_tensor *x, rule_shape *s) {
  uint32_t d;
  rule_shape part;
  if (x->s.rank == 0 || !pv_dim(a->c, pv_arg_int(a, "dim", 0), x->s.rank, &d) ||
      !wanted_shape(a, "sizes", x->s.dim[d], &part) || x->s.rank + part.rank > RULE_MAX_RANK)
    return false;
  *s = (rule_shape){.rank = 0};
  for (uint32_t k = 0; k < x->s.rank; k++) {
    if (k != d) s->dim[s->rank++] = x->s.dim[k];
    for (uint32_t j = 0; k == d && j < part.rank; j++) s->dim[s->rank++] = part.dim[j];
  }
  int64_t n = 1;
  for (uint32_t j = 0; j < part.rank; j++) n *= part.dim[j];
  return n == x->s.dim[d];
}

static bool unsqueezed(pv_call_args *a, const pv_tensor *x, rule_shape *s) {
  uint32_t d;
  if (x->s.rank >= RULE_MAX_RANK || !pv_dim(a->c, pv_arg_int(a, "dim", 0), x->s.rank + 1, &d)) return false;
  *s = (rule_shape){.rank = 0};
  for (uint32_t k = 0; k <= x->s.rank; k++) {
    if (k == d) s->dim[s->rank++] = 1;
    if (k < x->s.rank) s->dim[s->rank++] = x->s.dim[k];
  }
  return true;
}

static bool squeezed(pv_call_args *a, const pv_tensor *x, int which, rule_shape *s) {
  bool drop[RULE_MAX_RANK] = {false};
  int64_t dims[RULE_MAX_RANK];
  uint32_t n = 0, d;
  if (which != SQUEEZE && !pv_arg_ints(a, "dim", dims, &n)) return false;
  for (uint32_t i = 0; i < n; i++) {
    if (!pv_dim(a->c, dims[i], x->s.rank, &d)) return false;
    if (x->s.rank && drop[d]) return false; /* named twice */
    if (x->s.rank) drop[d] = true;
  }
  *s = (rule_shape){.rank = 0};
  for (uint32_t k = 0; k < x->s.rank; k++)
    if (x->s.dim[k] != 1 || (which != SQUEEZE && !drop[k])) s->dim[s->rank++] = x->s.dim[k];
  return true;
}

static pv_value *define_reshape(pv_call_args *a, int which) {
  pv_cx *c = a->c;
  pv_tensor *x = pv_arg_tensor(a, "self"), *o = NULL;
  rule_shape s;
  bool ok = false;
  if (!x) return NULL;
  switch (which) {
  case VIEW: ok = wanted_shape(a, pv_arg(a, "size") ? "size" : "shape", x->n, &s); break;
  case FLATTEN: ok = flattened(a, x, &s); break;
  case UNFLATTEN: ok = unflattened(a, x, &s); break;
  case RESHAPE_AS:
    o = pv_arg_tensor(a, "other");
    if ((ok = o != NULL)) s = o->s;
    break;
  case UNSQUEEZE: ok = unsqueezed(a, x, &s); break;
  default: ok = squeezed(a, x, which, &s); break;
  }
  return ok ? pv_value_of(c, pv_reshape(c, x, &s)) : NULL;
}

/* ---- orders of dimensions ---- */

enum { TRANSPOSE, PERMUTE, T, MOVEDIM };

static bool moved(pv_call_args *a, uint32_t rank, uint32_t *order) {
  int64_t from[RULE_MAX_RANK], to[RULE_MAX_RANK];
  uint32_t n, m, s, d, next = 0;
  bool used[RULE_MAX_RANK] = {false}, set[RULE_MAX_RANK] = {false};
  if (!pv_arg_ints(a, "source", from, &n) || !pv_arg_ints(a, "destination", to, &m) || n != m || rank == 0) return false;
  for (uint32_t i = 0; i < n; i++) {
    if (!pv_dim(a->c, from[i], rank, &s) || !pv_dim(a->c, to[i], rank, &d) || used[s] || set[d]) return false;
    used[s] = set[d] = true;
    order[d] = s;
  }
  for (uint32_t k = 0; k < rank; k++) {
    if (set[k]) continue;
    while (used[next]) next++;
    order[k] = next++;
  }
  return true;
}

static pv_value *define_order(pv_call_args *a, int which) {
  pv_cx *c = a->c;
  pv_tensor *x = pv_arg_tensor(a, "self");
  int64_t dims[RULE_MAX_RANK];
  uint32_t n, p, q, order[RULE_MAX_RANK];
  if (!x) return NULL;
  if (which == TRANSPOSE) {
    if (!pv_dim(c, pv_arg_int(a, "dim0", 0), x->s.rank, &p) || !pv_dim(c, pv_arg_int(a, "dim1", 0), x->s.rank, &q))
      return NULL;
    return pv_value_of(c, pv_transpose(c, x, p, q));
  }
  if (which == T) {
    if (x->s.rank > 2) return NULL;
    return pv_value_of(c, x->s.rank < 2 ? x : pv_transpose(c, x, 0, 1));
  }
  if (which == MOVEDIM) return moved(a, x->s.rank, order) ? pv_value_of(c, permute(c, x, order)) : NULL;
  bool used[RULE_MAX_RANK] = {false};
  if (!pv_arg_ints(a, "dims", dims, &n) || n != x->s.rank) return NULL;
  for (uint32_t k = 0; k < n; k++) {
    if (!pv_dim(c, dims[k], n, &order[k]) || used[order[k]]) return NULL;
    used[order[k]] = true;
  }
  return pv_value_of(c, permute(c, x, order));
}

/* ---- repetition ---- */

enum { EXPAND, EXPAND_AS, REPEAT };

static pv_value *define_expand(pv_call_args *a, int which) {
  pv_cx *c = a->c;
  pv_tensor *x = pv_arg_tensor(a, "self");
  rule_shape s = {.rank = 0};
  if (!x) return NULL;
  if (which == EXPAND_AS) {
    pv_tensor *o = pv_arg_tensor(a, "other");
    return o ? pv_value_of(c, pv_expand(c, x, &o->s)) : NULL;
  }
  if (!pv_arg_ints(a, which == EXPAND ? "size" : "repeats", s.dim, &s.rank) || s.rank < x->s.rank) return NULL;
  uint32_t lead = s.rank - x->s.rank;
  if (which == EXPAND) {
    for (uint32_t k = 0; k < s.rank; k++) {
      if (s.dim[k] == -1 && k >= lead) s.dim[k] = x->s.dim[k - lead];
      if (s.dim[k] < 0) return NULL;
    }
    return pv_value_of(c, pv_expand(c, x, &s));
  }
  /* repeat: view the source as [1, d] pairs, expand to [r, d], flatten. */
  if (2 * s.rank > RULE_MAX_RANK) return NULL;
  rule_shape pairs = {.rank = 2 * s.rank}, wide, flat = {.rank = s.rank};
  wide = pairs;
  for (uint32_t k = 0; k < s.rank; k++) {
    int64_t d = k < lead ? 1 : x->s.dim[k - lead];
    if (s.dim[k] < 0) return NULL;
    pairs.dim[2 * k] = 1, pairs.dim[2 * k + 1] = d;
    wide.dim[2 * k] = s.dim[k], wide.dim[2 * k + 1] = d;
    if (__builtin_mul_overflow(s.dim[k], d, &flat.dim[k])) return NULL;
  }
  pv_tensor *t = pv_expand(c, pv_reshape(c, x, &pairs), &wide);
  return t ? pv_value_of(c, pv_reshape(c, t, &flat)) : NULL;
}

static pv_value *define_repeat_interleave(pv_call_args *a, int which) {
  (void)which;
  pv_cx *c = a->c;
  pv_tensor *x = pv_arg_tensor(a, "self");
  uint32_t d = 0;
  int64_t times = pv_arg_int(a, "repeats", 1);
  if (!x || times < 0) return NULL;
  if (!pv_arg(a, "dim")) x = pv_reshape(c, x, &(rule_shape){1, {x->n}});
  else if (!pv_dim(c, pv_arg_int(a, "dim", 0), x->s.rank, &d)) return NULL;
  if (!x || x->s.rank == 0 || x->s.rank >= RULE_MAX_RANK) return NULL;
  rule_shape one = {.rank = x->s.rank + 1}, wide, flat = x->s;
  for (uint32_t k = 0; k < one.rank; k++) one.dim[k] = k <= d ? x->s.dim[k] : k == d + 1 ? 1 : x->s.dim[k - 1];
  wide = one;
  wide.dim[d + 1] = times;
  if (__builtin_mul_overflow(flat.dim[d], times, &flat.dim[d])) return NULL;
  pv_tensor *t = pv_expand(c, pv_reshape(c, x, &one), &wide);
  return t ? pv_value_of(c, pv_reshape(c, t, &flat)) : NULL;
}

/* ---- parts ---- */

static pv_tensor *part(pv_cx *c, pv_tensor *x, uint32_t d, int64_t start, int64_t n, int64_t step) {
  rule_shape s = x->s;
  int64_t stride[RULE_MAX_RANK];
  pv_dense(&x->s, stride);
  int64_t offset = start * stride[d];
  s.dim[d] = n;
  stride[d] *= step;
  return pv_strided(c, x, &s, stride, offset);
}

static pv_tensor *without(pv_cx *c, pv_tensor *x, uint32_t d) {
  rule_shape s = {.rank = 0};
  if (!x) return NULL;
  for (uint32_t k = 0; k < x->s.rank; k++)
    if (k != d) s.dim[s.rank++] = x->s.dim[k];
  return pv_reshape(c, x, &s);
}

enum { SLICE, SELECT, NARROW, SPLIT, SPLIT_SIZES, CHUNK, UNBIND, FLIP, ROLL };

static int64_t bound(int64_t v, int64_t n) {
  if (v < 0) v += n;
  return v < 0 ? 0 : v > n ? n : v;
}

static pv_value *define_part(pv_call_args *a, int which) {
  pv_cx *c = a->c;
  pv_tensor *x = pv_arg_tensor(a, "self");
  uint32_t d;
  if (!x || x->s.rank == 0 || !pv_dim(c, pv_arg_int(a, "dim", 0), x->s.rank, &d)) return NULL;
  int64_t size = x->s.dim[d], start = pv_arg_int(a, which == SELECT ? "index" : "start", 0), end, step, n;
  switch (which) {
  case SLICE:
    step = pv_arg_int(a, "step", 1);
    end = bound(pv_arg_int(a, "end", INT64_MAX), size);
    start = bound(start, size);
    if (step < 1) return NULL;
    n = end > start ? (end - start - 1) / step + 1 : 0;
    return pv_value_of(c, part(c, x, d, start, n, n > 1 ? step : 1));
  case SELECT:
    if (start < 0) start += size;
    if (start < 0 || start >= size) return NULL;
    return pv_value_of(c, without(c, part(c, x, d, start, 1, 1), d));
  default:
    n = pv_arg_int(a, "length", 0);
    if (start < 0) start += size;
    if (start < 0 || n < 0 || start > size || n > size - start) return NULL;
    return pv_value_of(c, part(c, x, d, start, n, 1));
  }
}

enum { MAX_PARTS = 4096 };

static pv_value *define_split(pv_call_args *a, int which) {
  pv_cx *c = a->c;
  pv_tensor *x = pv_arg_tensor(a, "self");
  uint32_t d;
  if (!x || x->s.rank == 0 || !pv_dim(c, pv_arg_int(a, "dim", 0), x->s.rank, &d)) return NULL;
  int64_t size = x->s.dim[d], step = 1, at = 0, n = 0;
  const rule_term *sizes = which == SPLIT_SIZES ? pv_arg(a, pv_arg(a, "split_sizes") ? "split_sizes" : "split_size") : NULL;
  if (which == SPLIT_SIZES && (!sizes || sizes->kind != RULE_LIST)) return NULL;
  if (which == SPLIT) step = pv_arg_int(a, "split_size", 1);
  if (which == CHUNK) {
    n = pv_arg_int(a, "chunks", 1);
    if (n < 1) return NULL;
    step = size / n + (size % n != 0);
  }
  if (step < 1) return NULL;
  n = sizes ? sizes->n : size / step + (size % step != 0);
  if (n < 1 || n > MAX_PARTS) return NULL;
  pv_tensor **t = iso_arena_alloc(&c->arena, (size_t)n * sizeof *t);
  for (int64_t i = 0; t && i < n; i++) {
    int64_t w = step < size - at ? step : size - at;
    if (sizes) {
      if (sizes->child[i]->kind != RULE_INT) return NULL;
      w = sizes->child[i]->u.i;
    }
    if (w < 0 || w > size - at) return NULL;
    t[i] = part(c, x, d, at, w, 1);
    if (which == UNBIND) t[i] = without(c, t[i], d);
    at += w;
  }
  return t && at == size ? pv_value_list(c, t, (size_t)n) : NULL;
}

static pv_value *define_flip(pv_call_args *a, int which) {
  pv_cx *c = a->c;
  pv_tensor *x = pv_arg_tensor(a, "self");
  int64_t dims[RULE_MAX_RANK], shifts[RULE_MAX_RANK];
  uint32_t n, m = 0, d;
  if (!x || x->s.rank == 0 || x->n == 0 || !pv_arg_ints(a, "dims", dims, &n) || n == 0) return NULL;
  if (which == ROLL && (!pv_arg_ints(a, "shifts", shifts, &m) || m != n)) return NULL;
  bool used[RULE_MAX_RANK] = {false};
  for (uint32_t i = 0; i < n && x; i++) {
    if (!pv_dim(c, dims[i], x->s.rank, &d) || (which == FLIP && used[d])) return NULL;
    used[d] = true;
    int64_t size = x->s.dim[d], inner = 1, shift = which == ROLL ? shifts[i] % size : 0;
    for (uint32_t k = d + 1; k < x->s.rank; k++) inner *= x->s.dim[k];
    if (shift < 0) shift += size;
    pv_tensor *r = pv_tensor_new(c, x->kind, &x->s);
    for (int64_t j = 0; r && j < x->n; j++) {
      int64_t p = j / inner % size, q = which == FLIP ? size - 1 - p : (p - shift + size) % size;
      r->e[j] = x->e[j + (q - p) * inner];
    }
    x = r;
  }
  return pv_value_of(c, x);
}

/* ---- joining ---- */

pv_tensor *pv_join(pv_cx *c, pv_tensor *const *t, size_t n, uint32_t d) {
  rule_shape s = t[0]->s;
  int64_t outer = 1, inner = 1, at = 0;
  s.dim[d] = 0;
  for (size_t i = 0; i < n; i++) {
    if (t[i]->s.rank != s.rank || t[i]->kind != t[0]->kind) return NULL;
    for (uint32_t k = 0; k < s.rank; k++)
      if (k != d && t[i]->s.dim[k] != s.dim[k]) return NULL;
    s.dim[d] += t[i]->s.dim[d];
  }
  for (uint32_t k = 0; k < d; k++) outer *= s.dim[k];
  for (uint32_t k = d + 1; k < s.rank; k++) inner *= s.dim[k];
  pv_tensor *r = pv_tensor_new(c, t[0]->kind, &s);
  for (size_t i = 0; i < n && r; i++) {
    int64_t row = t[i]->s.dim[d] * inner;
    for (int64_t o = 0; o < outer && row; o++)
      memcpy(r->e + o * s.dim[d] * inner + at, t[i]->e + o * row, (size_t)row * sizeof *r->e);
    at += row;
  }
  return r;
}

enum { CAT, STACK };

static pv_value *define_join(pv_call_args *a, int which) {
  pv_cx *c = a->c;
  pv_tensor **t = NULL;
  size_t n = pv_arg_tensors(a, "tensors", &t);
  uint32_t d;
  if (n == 0 || (which == CAT && t[0]->s.rank == 0) || t[0]->s.rank >= RULE_MAX_RANK) return NULL;
  uint32_t rank = t[0]->s.rank;
  if (!pv_dim(c, pv_arg_int(a, "dim", 0), rank + (which == STACK), &d)) return NULL;
  for (size_t i = 0; i < n && which == STACK; i++) {
    rule_shape s = {.rank = rank + 1};
    if (t[i]->s.rank != rank) return NULL;
    for (uint32_t k = 0; k < s.rank; k++) s.dim[k] = k < d ? t[i]->s.dim[k] : k == d ? 1 : t[i]->s.dim[k - 1];
    if (!(t[i] = pv_reshape(c, t[i], &s))) return NULL;
  }
  char kind = t[0]->kind;
  for (size_t i = 0; i < n && which == CAT; i++) kind = kind == 'f' || t[i]->kind == 'b' ? kind : t[i]->kind;
  for (size_t i = 0; i < n && which == CAT; i++)
    if (!(t[i] = pv_kind(c, t[i], kind))) return NULL;
  return pv_value_of(c, pv_join(c, t, n, d));
}

/* ---- triangles and constants ---- */

enum { TRIL, TRIU };

static pv_value *define_triangle(pv_call_args *a, int which) {
  pv_cx *c = a->c;
  pv_tensor *x = pv_arg_tensor(a, "self");
  int64_t diagonal = pv_arg_int(a, "diagonal", 0);
  if (!x || x->s.rank < 2 || diagonal > (1 << 30) || diagonal < -(1 << 30)) return NULL;
  int64_t m = x->s.dim[x->s.rank - 1], rows = x->s.dim[x->s.rank - 2];
  pv_tensor *r = pv_tensor_new(c, x->kind, &x->s);
  pv_id nothing = x->kind == 'b' ? c->no : c->zero;
  for (int64_t i = 0; r && i < r->n; i++) {
    int64_t off = i % m - i / m % rows;
    r->e[i] = (which == TRIL ? off <= diagonal : off >= diagonal) ? x->e[i] : nothing;
  }
  return pv_value_of(c, r);
}

/* The element that a constant of this kind and dtype holds. */
static pv_id fill_value(pv_cx *c, pv_id e, char from, char to) {
  uint32_t q;
  if (from == to || (from == 'i' && to == 'f')) return e;
  if (from == 'b') return e == c->yes ? c->one : c->zero;
  if (to == 'b' && pv_is_const(c, e, &q)) return pv_bool(c, q != PV_ZERO_Q);
  pv_fail(c, "a float literal in a tensor of integers");
  return e;
}

enum { FULL, ZEROS, ONES, FULL_LIKE, ZEROS_LIKE, ONES_LIKE, NEW_FULL, NEW_ZEROS, NEW_ONES, SCALAR };

static pv_value *define_full(pv_call_args *a, int which) {
  pv_cx *c = a->c;
  rule_shape s = {.rank = 0};
  rule_dtype d;
  char from = 'i', to = 'f';
  pv_id e = which % 3 == ZEROS || which == SCALAR ? c->zero : c->one;
  if (which % 3 == FULL && which != SCALAR) e = pv_arg_scalar(a, "fill_value", &from);
  if (which == SCALAR) e = pv_arg_scalar(a, "s", &from);
  if (which == FULL) to = from;
  if (which >= FULL_LIKE && which <= NEW_ONES) {
    pv_tensor *like = pv_arg_tensor(a, "self");
    if (!like) return NULL;
    s = like->s;
    to = like->kind;
  }
  if (which < FULL_LIKE || (which >= NEW_FULL && which <= NEW_ONES)) {
    if (!pv_arg_ints(a, "size", s.dim, &s.rank)) return NULL;
    for (uint32_t k = 0; k < s.rank; k++)
      if (s.dim[k] < 0) return NULL;
  }
  if (pv_arg_dtype(a, "dtype", &d)) {
    if (rule_dtype_is_complex(d)) return NULL;
    to = rule_dtype_is_float(d) ? 'f' : d == RULE_BOOL ? 'b' : 'i';
  }
  uint32_t q;
  int64_t v = 0;
  e = fill_value(c, e, from, to);
  /* What wraps in a narrow type is left alone. */
  if (to == 'i' && (!pv_is_const(c, e, &q) || !pv_q_is_int(c, q, &v) || v < 0 || v > 127)) {
    if (!pv_arg_dtype(a, "dtype", &d) ? which != FULL : d != RULE_I64) return NULL;
  }
  pv_tensor *r = pv_tensor_new(c, to, &s);
  for (int64_t i = 0; r && i < r->n; i++) r->e[i] = e;
  return pv_value_of(c, r);
}

static pv_value *define_arange(pv_call_args *a, int which) {
  (void)which;
  pv_cx *c = a->c;
  rule_dtype d;
  char kind = 'i';
  const char *names[3] = {"start", "end", "step"};
  int64_t v[3] = {0, 0, 1};
  for (int k = 0; k < 3; k++) {
    const rule_term *t = pv_arg(a, names[k]);
    if (t && t->kind == RULE_FLOAT) {
      kind = 'f';
      if (t->u.f != nearbyint(t->u.f) || fabs(t->u.f) > 1e9) return NULL;
      v[k] = (int64_t)t->u.f;
    } else {
      v[k] = pv_arg_int(a, names[k], v[k]);
    }
    if (v[k] > 1000000000 || v[k] < -1000000000) return NULL;
  }
  if (pv_arg_dtype(a, "dtype", &d)) {
    if (rule_dtype_is_complex(d) || d == RULE_BOOL || (kind == 'f' && !rule_dtype_is_float(d))) return NULL;
    if (!rule_dtype_is_float(d) && d != RULE_I64 && d != RULE_I32) return NULL;
    kind = rule_dtype_is_float(d) ? 'f' : 'i';
  }
  if (v[2] == 0) return NULL;
  int64_t span = v[2] > 0 ? v[1] - v[0] : v[0] - v[1], step = v[2] > 0 ? v[2] : -v[2];
  if (span < 0) return NULL;
  pv_tensor *r = pv_tensor_new(c, kind, &(rule_shape){1, {(span + step - 1) / step}});
  for (int64_t i = 0; r && i < r->n; i++) r->e[i] = pv_int(c, v[0] + i * v[2]);
  return pv_value_of(c, r);
}

static const pv_definition table[] = {
    {"aten::view", define_reshape, VIEW},
    {"aten::reshape", define_reshape, VIEW},
    {"aten::_unsafe_view", define_reshape, VIEW},
    {"aten::view_as", define_reshape, RESHAPE_AS},
    {"aten::reshape_as", define_reshape, RESHAPE_AS},
    {"aten::flatten.using_ints", define_reshape, FLATTEN},
    {"aten::unflatten.int", define_reshape, UNFLATTEN},
    {"aten::unsqueeze", define_reshape, UNSQUEEZE},
    {"aten::squeeze", define_reshape, SQUEEZE},
    {"aten::squeeze.dim", define_reshape, SQUEEZE_DIM},
    {"aten::squeeze.dims", define_reshape, SQUEEZE_DIMS},
    {"aten::transpose.int", define_order, TRANSPOSE},
    {"aten::permute", define_order, PERMUTE},
    {"aten::t", define_order, T},
    {"aten::movedim.int", define_order, MOVEDIM},
    {"aten::movedim.intlist", define_order, MOVEDIM},
    {"aten::expand", define_expand, EXPAND},
    {"aten::expand_as", define_expand, EXPAND_AS},
    {"aten::repeat", define_expand, REPEAT},
    {"aten::repeat_interleave.self_int", define_repeat_interleave, 0},
    {"aten::slice.Tensor", define_part, SLICE},
    {"aten::select.int", define_part, SELECT},
    {"aten::narrow", define_part, NARROW},
    {"aten::split.Tensor", define_split, SPLIT},
    {"aten::split_with_sizes", define_split, SPLIT_SIZES},
    {"aten::split.sizes", define_split, SPLIT_SIZES},
    {"aten::split", define_split, SPLIT_SIZES},
    {"aten::chunk", define_split, CHUNK},
    {"aten::unbind.int", define_split, UNBIND},
    {"aten::flip", define_flip, FLIP},
    {"aten::roll", define_flip, ROLL},
    {"aten::cat", define_join, CAT},
    {"aten::stack", define_join, STACK},
    {"aten::tril", define_triangle, TRIL},
    {"aten::triu", define_triangle, TRIU},
    {"aten::full", define_full, FULL},
    {"aten::zeros", define_full, ZEROS},
    {"aten::ones", define_full, ONES},
    {"aten::full_like", define_full, FULL_LIKE},
    {"aten::zeros_like", define_full, ZEROS_LIKE},
    {"aten::ones_like", define_full, ONES_LIKE},
    {"aten::new_full", define_full, NEW_FULL},
    {"aten::new_zeros", define_full, NEW_ZEROS},
    {"aten::new_ones", define_full, NEW_ONES},
    {"aten::scalar_tensor", define_full, SCALAR},
    {"aten::arange", define_arange, 0},
    {"aten::arange.start", define_arange, 0},
    {"aten::arange.start_step", define_arange, 0},
};

const pv_definition *pv_define_layout(const char *name) {
  for (size_t i = 0; i < sizeof table / sizeof *table; i++)
    if (!strcmp(table[i].name, name)) return &table[i];
  return NULL;
}
