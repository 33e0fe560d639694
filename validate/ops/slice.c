/* Parts of a tensor along one dimension: slices, rows, and several pieces of one size or of listed
 * ones. Bounds are clamped as PyTorch does. */
#include <stdio.h>
#include <string.h>
#include "validate/ops/ops.h"

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

const pt_tensor *pt_undropped(sc *c, const pt_tensor *x, uint32_t d) {
  return x->elem == drop_elem && (uint32_t)x->which == d
             ? pt_slice(c, x->in[0], d, x->p[0], c->one, c->one)
             : NULL;
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
  return !c->fault.failed;
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
  for (int64_t r = 0; r < k && !c->fault.failed; r++) {
    const sx u =
        sc_derived(c, "share", sx_add(c, size, sx_mul(c, n, sc_symbol_named(c, "per"))), r == 0);
    if (c->fault.failed) return false;
    const sx g = sx_eq(c, size, sx_add(c, sx_mul(c, n, u), sx_int(c, r)));
    if (!sx_top_guard(c, g)) {
      sc_fail(c, "parts of sizes that are not known");
      return false;
    }
    c->here.choice[r] = (sc_guess){sx_top_guard(c, g), true};
  }
  if (!c->fault.failed) c->here.n_choices = (size_t)k;
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

static const pt_definition table[] = {
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
};

bool pt_define_slice(const char *name, pt_definition *out) {
  return pt_find(table, sizeof table / sizeof *table, name, out);
}
