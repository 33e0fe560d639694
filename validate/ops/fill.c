/* Definitions for the symbolic prover: masks, borders, diagonals, windows, and constant tensors. */
#include <math.h>
#include <string.h>

#include "validate/ops/ops.h"

/* ---- masks and borders ---- */

static sx triangle_elem(sc *c, const pt_tensor *t, const sx *idx) {
  const sx i = idx[t->rank - 2], j = idx[t->rank - 1], d = sx_sub(c, j, i);
  const sx keep = t->which ? sx_le(c, t->p[0], d) : sx_le(c, d, t->p[0]);
  return sx_ite(c, keep, pt_at(c, t->in[0], idx), t->kind == 'b' ? c->no : c->zero);
}

static const pt_value *define_triangle(pt_args *a, int upper) {
  const pt_tensor *x = pt_arg_tensor(a, "self");
  pt_tensor *t = x && x->rank >= 2 ? pt_like(a->c, x, x->kind, triangle_elem) : NULL;
  if (!t) return NULL;
  t->which = upper;
  t->p[0] = pt_arg_size(a, "diagonal", 0);
  return pt_one(a->c, t);
}

/* 1 where a condition on integers holds, else 0, as a factor. */
static sx indicator(sc *c, sx cond) {
  if (cond == c->yes || cond == c->no) return cond == c->yes ? c->one : c->zero;
  return sx_iver(c, sc_word(c, cond, 1) == c->yes && sc_word(c, cond, 2) == c->no
                        ? sx_top_guard(c, cond)
                        : cond);
}

static sx pad_elem(sc *c, const pt_tensor *t, const sx *idx) {
  sx in[RULE_MAX_RANK];
  memcpy(in, idx, t->rank * sizeof *in);
  const sx i = sx_sub(c, idx[t->which], t->p[0]);
  if (t->k[0] && c->reading.mask_frames && !c->reading.plain) {
    in[t->which] = i;
    const sx low = indicator(c, sx_le(c, c->zero, i)),
             high = indicator(c, sx_lt(c, i, t->in[0]->dim[t->which]));
    return low == c->zero || high == c->zero ? c->zero
                                             : sx_mul3(c, low, high, pt_at(c, t->in[0], in));
  }
  const sx inside = sx_and(c, sx_le(c, c->zero, i), sx_lt(c, i, t->in[0]->dim[t->which]));
  in[t->which] = i;
  return sx_ite(c, inside, pt_at(c, t->in[0], in), t->p[1]);
}

/* x, which may be padded already, with one border for both along d. NULL: it is not, or by another
 * value, or something is cut off. */
static const pt_tensor *padded_more(sc *c, const pt_tensor *x, uint32_t d, sx left, sx right,
                                    sx value) {
  if (x->elem != pad_elem || x->p[1] != value || c->reading.plain) return NULL;
  const uint32_t own = (uint32_t)x->which;
  const sx before = x->p[0], behind = sx_sub(c, x->dim[own], sx_add(c, before, x->in[0]->dim[own]));
  if (own != d) {
    const pt_tensor *inner = padded_more(c, x->in[0], d, left, right, value);
    return inner ? pt_pad(c, inner, own, before, behind, value) : NULL;
  }
  if (!sx_ge0(c, before) || !sx_ge0(c, behind) || !sx_ge0(c, left) || !sx_ge0(c, right))
    return NULL;
  return pt_pad(c, x->in[0], d, sx_add(c, before, left), sx_add(c, behind, right), value);
}

const pt_tensor *pt_pad(sc *c, const pt_tensor *x, uint32_t d, sx left, sx right, sx value) {
  if (!x || (left == c->zero && right == c->zero)) return x;
  const pt_tensor *both = padded_more(c, x, d, left, right, value);
  if (both) return both;
  pt_tensor *t = pt_like(c, x, x->kind, pad_elem);
  if (!t) return NULL;
  t->which = (int)d;
  t->p[0] = left;
  t->p[1] = value;
  t->dim[d] = sx_add(c, sx_add(c, left, right), x->dim[d]);
  return sc_require(c, sx_le(c, c->zero, t->dim[d])) ? t : NULL;
}

const pt_tensor *pt_frame(sc *c, const pt_tensor *x, uint32_t d, sx before, sx behind) {
  const pt_tensor *t = pt_pad(c, x, d, before, behind, c->zero);
  if (!t || t == x) return t;
  pt_tensor *own = sc_take(c, sizeof *own);
  if (!own) return NULL;
  *own = *t;
  own->k[0] = 1;
  c->reading.has_frames = true;
  return own;
}

static const pt_value *define_pad(pt_args *a, int which) {
  (void)which;
  sc *c = a->c;
  const pt_tensor *x = pt_arg_tensor(a, "self");
  sx pad[RULE_MAX_RANK], value = c->zero;
  uint32_t n;
  char kind = 'i';
  if (!x || !pt_arg_sizes(a, "pad", pad, &n) || n % 2 || n / 2 > x->rank) return NULL;
  const rule_term *mode = pt_arg(a, "mode");
  if (mode && (mode->kind != RULE_STRING || (strcmp(mode->u.s, "constant") && pt_arg(a, "value"))))
    return NULL;
  if (mode && strcmp(mode->u.s, "constant"))
    return strcmp(mode->u.s, "reflect") && strcmp(mode->u.s, "replicate") &&
                   strcmp(mode->u.s, "circular")
               ? NULL
               : pt_one(c, pt_mirror(a, "pad", x, mode->u.s));
  if (pt_arg(a, "value")) value = pt_arg_scalar(a, "value", &kind);
  if (kind == 'b' || x->kind == 'b' || (x->kind == 'i' && kind == 'f' && value != c->zero))
    return NULL;
  for (uint32_t k = 0; k < n / 2 && x; k++) {
    /* A cut on one side and an addition on the other are two steps. */
    const uint32_t d = x->rank - 1 - k;
    for (int i = 0; i < 2; i++)
      if (!sc_require(c, sx_le(c, c->zero, sx_add(c, x->dim[d], pad[2 * k + (uint32_t)i]))))
        return NULL;
    x = pt_pad(c, x, d, pad[2 * k], pad[2 * k + 1], value);
  }
  return pt_one(c, x);
}

/* self with src in place of a slice or row. */
static sx scatter_elem(sc *c, const pt_tensor *t, const sx *idx) {
  sx in[RULE_MAX_RANK];
  memcpy(in, idx, t->rank * sizeof *in);
  const sx i = sx_sub(c, idx[t->which], t->p[0]);
  const sx inside = sx_and(c, sx_le(c, c->zero, i), sx_lt(c, i, t->in[1]->dim[t->which]));
  in[t->which] = i;
  return sx_ite(c, inside, pt_at(c, t->in[1], in), pt_at(c, t->in[0], idx));
}

static const pt_value *define_scatter(pt_args *a, int one_row) {
  sc *c = a->c;
  const pt_tensor *x = pt_arg_tensor(a, "self"), *s = pt_arg_tensor(a, "src");
  uint32_t d;
  sx start, n = c->one, step = c->one;
  bool negative;
  if (!x || !s || x->kind != s->kind || x->lead || s->lead || !pt_arg_dim(a, "dim", 0, x, &d))
    return NULL;
  if (one_row) {
    start = pt_arg_size(a, "index", 0);
    if (!sc_decide(c, sx_lt(c, start, c->zero), &negative)) return NULL;
    if (negative) start = sx_add(c, start, x->dim[d]);
    if (!sc_require(c, sx_and(c, sx_le(c, c->zero, start), sx_lt(c, start, x->dim[d]))))
      return NULL;
    s = s->rank + 1 == x->rank ? pt_unsqueeze(c, s, d) : NULL;
  } else if (!pt_slice_bounds(a, x, d, &start, &n, &step) || step != c->one) {
    return NULL;
  }
  if (!s || s->rank != x->rank) return NULL;
  for (uint32_t k = 0; k < x->rank; k++)
    if (!sc_require_eq(c, s->dim[k], k == d ? n : x->dim[k])) return NULL;
  pt_tensor *t = pt_like(c, x, x->kind, scatter_elem);
  if (!t) return NULL;
  t->in[1] = s;
  t->which = (int)d;
  t->p[0] = start;
  return pt_one(c, t);
}

static sx diagonal_elem(sc *c, const pt_tensor *t, const sx *idx) {
  sx in[RULE_MAX_RANK];
  uint32_t n = 0;
  const sx i = idx[t->rank - 1];
  for (uint32_t k = 0; k < t->in[0]->rank; k++)
    in[k] = k == (uint32_t)t->k[0]   ? sx_add(c, i, t->p[0])
            : k == (uint32_t)t->k[1] ? sx_add(c, i, t->p[1])
                                     : idx[n++];
  return pt_at(c, t->in[0], in);
}

/* A vector along a diagonal: p[0] and p[1] are where its rows and columns begin. */
static sx on_diagonal_elem(sc *c, const pt_tensor *t, const sx *idx) {
  const sx i = sx_sub(c, idx[0], t->p[0]), j = sx_sub(c, idx[1], t->p[1]);
  return sx_ite(c, sx_eq(c, i, j), pt_at(c, t->in[0], &i), t->kind == 'b' ? c->no : c->zero);
}

static const pt_tensor *on_diagonal(sc *c, const pt_tensor *x, sx off) {
  bool negative;
  pt_tensor *t = x->lead || !sc_decide(c, sx_lt(c, off, c->zero), &negative)
                     ? NULL
                     : pt_new(c, x->kind, on_diagonal_elem);
  if (!t) return NULL;
  t->in[0] = x;
  t->p[0] = negative ? sx_neg(c, off) : c->zero;
  t->p[1] = negative ? c->zero : off;
  t->rank = 2;
  t->dim[0] = t->dim[1] = sx_add(c, x->dim[0], sx_add(c, t->p[0], t->p[1]));
  return t;
}

static const pt_value *define_diagonal(pt_args *a, int which) {
  (void)which;
  sc *c = a->c;
  const pt_tensor *x = pt_arg_tensor(a, "self");
  const bool plain = a->schema->n_args == 2; /* diag(self, diagonal) */
  uint32_t d = 0, e = 1;
  bool negative, less, some;
  if (x && plain && x->rank == 1)
    return pt_one(c, on_diagonal(c, x, pt_arg_size(a, "diagonal", 0)));
  if (!x ||
      (plain ? x->rank != 2 || x->lead
             : !pt_arg_dim(a, "dim1", 0, x, &d) || !pt_arg_dim(a, "dim2", 1, x, &e)) ||
      d == e)
    return NULL;
  const sx off = pt_arg_size(a, plain ? "diagonal" : "offset", 0);
  pt_tensor *t = pt_new(c, x->kind, diagonal_elem);
  if (!t || !sc_decide(c, sx_lt(c, off, c->zero), &negative)) return NULL;
  t->in[0] = x;
  t->lead = x->lead;
  t->k[0] = (int32_t)d, t->k[1] = (int32_t)e;
  t->p[0] = negative ? sx_neg(c, off) : c->zero;
  t->p[1] = negative ? c->zero : off;
  const sx h = sx_sub(c, x->dim[d], t->p[0]), w = sx_sub(c, x->dim[e], t->p[1]);
  if (!sc_decide(c, sx_le(c, h, w), &less)) return NULL;
  const sx n = less ? h : w;
  if (!sc_decide(c, sx_lt(c, c->zero, n), &some)) return NULL;
  for (uint32_t k = 0; k < x->rank; k++)
    if (k != d && k != e) t->dim[t->rank++] = x->dim[k];
  t->dim[t->rank++] = some ? n : c->zero;
  return pt_one(c, t);
}

static sx unfold_elem(sc *c, const pt_tensor *t, const sx *idx) {
  sx in[RULE_MAX_RANK];
  memcpy(in, idx, t->in[0]->rank * sizeof *in);
  in[t->which] = sx_add(c, sx_mul(c, idx[t->which], t->p[0]), idx[t->rank - 1]);
  return pt_at(c, t->in[0], in);
}

static const pt_value *define_unfold(pt_args *a, int which) {
  (void)which;
  sc *c = a->c;
  const pt_tensor *x = pt_arg_tensor(a, "self");
  uint32_t d;
  if (!x || x->rank == 0 || x->rank == RULE_MAX_RANK || !pt_arg_dim(a, "dimension", 0, x, &d))
    return NULL;
  const sx size = pt_arg_size(a, "size", 1), step = pt_arg_size(a, "step", 1);
  if (!sc_require(c, sx_and(c, sx_le(c, c->zero, size), sx_lt(c, c->zero, step))) ||
      !sc_require(c, sx_le(c, size, x->dim[d])))
    return NULL;
  pt_tensor *t = pt_like(c, x, x->kind, unfold_elem);
  if (!t) return NULL;
  t->which = (int)d;
  t->p[0] = step;
  t->dim[d] = sx_add(c, c->one, sx_div(c, sx_sub(c, x->dim[d], size), step));
  t->dim[t->rank++] = size;
  return pt_one(c, t);
}

/* ---- constant tensors ---- */

static const pt_tensor *filled(sc *c, sx value, char kind, const sx *dim, uint32_t rank,
                               uint64_t lead) {
  pt_tensor *t = (pt_tensor *)pt_scalar_tensor(c, value, kind);
  if (!t) return NULL;
  t->wrapped = false;
  t->rank = rank;
  t->lead = lead;
  if (rank) memcpy(t->dim, dim, rank * sizeof *dim);
  for (uint32_t k = 0; k < rank; k++)
    if (!sc_require(c, sx_le(c, c->zero, dim[k]))) return NULL;
  return t;
}

static char kind_of(rule_dtype d) {
  return rule_dtype_is_float(d) ? 'f' : d == RULE_BOOL ? 'b' : rule_dtype_is_int(d) ? 'i' : 'c';
}

static bool as_kind(sc *c, sx *v, char from, char to) {
  if (from == to || (from == 'i' && to == 'f')) return true;
  if (from == 'b') *v = sx_ite(c, *v, c->one, c->zero);
  else if (to == 'b') *v = sx_not(c, sx_eq(c, *v, c->zero));
  else return false;
  return true;
}

enum { ZEROS, ONES, FULL, SCALAR };

/* What XLA gives where an index is outside of its table: nothing is said of it that is read. */
static sx none_elem(sc *c, const pt_tensor *t, const sx *idx) {
  (void)t, (void)idx;
  sc_fail(c, "an undefined literal is read");
  return c->zero;
}

/* No number, of this size. */
static const pt_value *define_none(pt_args *a) {
  pt_tensor *t = pt_new(a->c, 'f', none_elem);
  a->c->reading.has_none = true;
  return t && pt_arg_sizes(a, "size", t->dim, &t->rank) ? pt_one(a->c, t) : NULL;
}

static const pt_value *define_filled(pt_args *a, int which) {
  sc *c = a->c;
  const rule_term *fill = which == FULL ? pt_arg(a, "fill_value") : NULL;
  if (fill && fill->kind == RULE_FLOAT && isnan(fill->u.f) && pt_arg(a, "size"))
    return define_none(a);
  const pt_tensor *x = pt_arg(a, "self") ? pt_arg_tensor(a, "self") : NULL;
  sx dim[RULE_MAX_RANK], v = which == ONES ? c->one : c->zero;
  uint32_t rank = 0;
  rule_dtype d;
  char kind = 'i', to;
  const bool sized = pt_arg(a, "size") != NULL;
  if (pt_arg(a, "self") && !x) return NULL;
  if (which == FULL) v = pt_arg_scalar(a, "fill_value", &kind);
  if (which == SCALAR) v = pt_arg_scalar(a, "s", &kind);
  to = pt_arg_dtype(a, "dtype", &d) ? kind_of(d) : x ? x->kind : which == FULL ? kind : 'f';
  if (to == 'c' || !as_kind(c, &v, kind, to)) return NULL;
  if (sized ? !pt_arg_sizes(a, "size", dim, &rank) : (!x && which != SCALAR)) return NULL;
  if (!sized && x) return pt_one(c, filled(c, v, to, x->dim, x->rank, x->lead));
  return pt_one(c, filled(c, v, to, dim, rank, 0));
}

static sx arange_elem(sc *c, const pt_tensor *t, const sx *idx) {
  return sx_add(c, t->p[0], sx_mul(c, idx[0], t->p[1]));
}

static const pt_value *define_arange(pt_args *a, int which) {
  (void)which;
  sc *c = a->c;
  char k[3] = {'i', 'i', 'i'};
  const sx start = pt_arg(a, "start") ? pt_arg_scalar(a, "start", &k[0]) : c->zero,
           end = pt_arg_scalar(a, "end", &k[1]),
           step = pt_arg(a, "step") ? pt_arg_scalar(a, "step", &k[2]) : c->one;
  const sx length = sx_sub(c, end, start);
  rule_dtype d;
  bool up;
  if (c->fault.failed || !sc_has(c, length, S_INT) || !sc_has(c, step, S_INT) || step == c->zero)
    return NULL;
  if (!sc_decide(c, sx_lt(c, c->zero, step), &up)) return NULL;
  pt_tensor *t = pt_new(c, 'i', arange_elem);
  if (!t) return NULL;
  const sx way = up ? length : sx_neg(c, length), by = up ? step : sx_neg(c, step);
  if (!sc_require(c, sx_le(c, c->zero, way))) return NULL;
  t->rank = 1;
  t->dim[0] = sx_div(c, sx_add(c, way, sx_sub(c, by, c->one)), by);
  t->p[0] = start;
  t->p[1] = step;
  const bool floats = k[0] == 'f' || k[1] == 'f' || k[2] == 'f';
  if (pt_arg_dtype(a, "dtype", &d))
    return rule_dtype_is_int(d) && floats
               ? NULL
               : pt_one(c, pt_cast(c, t, d)); /* ATen cuts the numbers off first */
  return pt_one(c, floats ? pt_cast(c, t, RULE_F32) : t);
}

static sx eye_elem(sc *c, const pt_tensor *t, const sx *idx) {
  return sx_ite(c, sx_eq(c, idx[0], idx[1]), t->kind == 'b' ? c->yes : c->one,
                t->kind == 'b' ? c->no : c->zero);
}

static const pt_value *define_eye(pt_args *a, int which) {
  (void)which;
  sc *c = a->c;
  rule_dtype d;
  pt_tensor *t = pt_new(c, pt_arg_dtype(a, "dtype", &d) ? kind_of(d) : 'f', eye_elem);
  if (!t || t->kind == 'c') return NULL;
  t->rank = 2;
  t->dim[0] = pt_arg_size(a, "n", 1);
  t->dim[1] = pt_arg(a, "m") ? pt_arg_size(a, "m", 1) : t->dim[0];
  for (int k = 0; k < 2; k++)
    if (!sc_require(c, sx_le(c, c->zero, t->dim[k]))) return NULL;
  return pt_one(c, t);
}

static const pt_definition table[] = {
    {"tril", define_triangle, 0},
    {"triu", define_triangle, 1},
    {"constant_pad_nd", define_pad, 0},
    {"pad", define_pad, 0},
    {"slice_scatter", define_scatter, 0},
    {"select_scatter", define_scatter, 1},
    {"diagonal", define_diagonal, 0},
    {"diag", define_diagonal, 0},
    {"unfold", define_unfold, 0},
    {"zeros", define_filled, ZEROS},
    {"ones", define_filled, ONES},
    {"zeros_like", define_filled, ZEROS},
    {"ones_like", define_filled, ONES},
    {"new_zeros", define_filled, ZEROS},
    {"new_ones", define_filled, ONES},
    {"full", define_filled, FULL},
    {"full_like", define_filled, FULL},
    {"new_full", define_filled, FULL},
    {"scalar_tensor", define_filled, SCALAR},
    {"arange", define_arange, 0},
    {"eye", define_eye, 0},
};

bool pt_define_fill(const char *name, pt_definition *out) {
  return pt_find(table, sizeof table / sizeof *table, name, out);
}
