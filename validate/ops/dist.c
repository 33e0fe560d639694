/* Definitions for the symbolic prover: collectives, over the tensors of all ranks. */
#include <string.h>

#include "validate/ops/ops.h"

/* The ranks' tensors. `alike`: their sizes must be, too. 0: not usable. */
static size_t inputs(pt_args *a, bool alike, const pt_tensor *const **t) {
  sc *c = a->c;
  size_t n;
  if (!pt_arg_list(a, "inputs", t, &n) || n == 0) return 0;
  for (size_t i = 0; i < n; i++) {
    const pt_tensor *x = (*t)[i], *first = (*t)[0];
    if (!x || x->kind != first->kind || x->rank != first->rank || x->lead != first->lead) return 0;
    for (uint32_t d = 0; d < x->rank && alike; d++)
      if (!sc_require_eq(c, x->dim[d], first->dim[d])) return 0;
  }
  return n;
}

/* in[0] and in[1], element by element: the larger, or the smaller (which = 1). */
static sx extreme_elem(sc *c, const pt_tensor *t, const sx *idx) {
  const sx x = pt_at(c, t->in[0], idx), y = pt_at(c, t->in[1], idx);
  return t->which ? sx_min(c, x, y) : sx_max(c, x, y);
}

/* The ranks' tensors as one, by the name of the reduction. NULL: another name. */
static const pt_tensor *total(pt_args *a, const pt_tensor *const *t, size_t n) {
  sc *c = a->c;
  const bool max = pt_arg_is(a, "op", "max"), min = pt_arg_is(a, "op", "min"),
             mean = pt_arg_is(a, "op", "avg");
  const pt_tensor *r =
      n && t[0]->kind != 'b' && (max || min || mean || pt_arg_is(a, "op", "sum")) ? t[0] : NULL;
  if (mean && r && r->kind != 'f') return NULL;
  for (size_t i = 1; i < n && r; i++) {
    if (!max && !min) {
      r = pt_combine(c, c->one, r, c->one, t[i]);
      continue;
    }
    pt_tensor *m = pt_like(c, r, r->kind, extreme_elem);
    if (!m) return NULL;
    m->in[1] = t[i];
    m->which = min;
    r = m;
  }
  return mean && r ? pt_times(c, r, pt_scalar_tensor(c, sx_inv(c, sx_int(c, (int64_t)n)), 'f')) : r;
}

enum { ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER };

/* Part k of `n` along dimension `d`. */
static const pt_tensor *part_of(sc *c, const pt_tensor *t, uint32_t d, size_t n, size_t k) {
  sx step;
  if (!sc_multiple(c, t->dim[d], sx_int(c, (int64_t)n), &step)) return NULL;
  return pt_slice(c, t, d, sx_mul(c, sx_int(c, (int64_t)k), step), step, c->one);
}

static const pt_value *define_all_to_all(pt_args *a, int which) {
  sc *c = a->c;
  const pt_tensor *const *t;
  const size_t n = inputs(a, false, &t);
  uint32_t split, cat;
  (void)which;
  if (n == 0 || t[0]->rank == 0 || !pt_arg_dim(a, "split_dim", 0, t[0], &split) ||
      !pt_arg_dim(a, "cat_dim", 0, t[0], &cat))
    return NULL;
  const pt_tensor **part = sc_take(c, n * sizeof *part), **got = sc_take(c, n * sizeof *got);
  for (size_t k = 0; part && got && k < n; k++) {
    for (size_t r = 0; r < n; r++)
      if (!(part[r] = part_of(c, t[r], split, n, k))) return NULL;
    if (!(got[k] = pt_cat(c, part, n, cat))) return NULL;
  }
  return part && got ? pt_list(c, got, n) : NULL;
}

static const pt_value *define_broadcast(pt_args *a, int which) {
  const pt_tensor *const *t;
  const size_t n = inputs(a, true, &t);
  int64_t src;
  (void)which;
  if (n == 0 || !pt_int(a->c, pt_arg_size(a, "src", 0), &src) || src < 0 || src >= (int64_t)n)
    return NULL;
  return pt_one(a->c, t[src]);
}

static const pt_value *define_receive(pt_args *a, int which) {
  (void)which;
  return pt_one(a->c, pt_arg_tensor(a, "input"));
}

static const pt_value *define_collective(pt_args *a, int which) {
  sc *c = a->c;
  const pt_tensor *const *t;
  const size_t n = inputs(a, true, &t);
  uint32_t d = 0;
  if (n == 0) return NULL;
  if (which != ALL_REDUCE && (t[0]->rank == 0 || !pt_arg_dim(a, "dim", 0, t[0], &d))) return NULL;
  if (which == ALL_GATHER) return pt_one(c, pt_cat(c, t, n, d));
  const pt_tensor *sum = total(a, t, n);
  if (!sum || which == ALL_REDUCE) return sum ? pt_one(c, sum) : NULL;
  const pt_tensor **part = sc_take(c, n * sizeof *part);
  for (size_t k = 0; part && k < n; k++)
    if (!(part[k] = part_of(c, sum, d, n, k))) return NULL;
  return part ? pt_list(c, part, n) : NULL;
}

bool pt_define_dist(const char *name, pt_definition *out) {
  static const pt_definition table[] = {{"dist::all_reduce", define_collective, ALL_REDUCE},
                                        {"dist::all_gather", define_collective, ALL_GATHER},
                                        {"dist::reduce_scatter", define_collective, REDUCE_SCATTER},
                                        {"dist::all_to_all", define_all_to_all, 0},
                                        {"dist::broadcast", define_broadcast, 0},
                                        {"dist::receive", define_receive, 0}};
  for (size_t i = 0; i < sizeof table / sizeof *table; i++)
    if (!strcmp(name, table[i].name)) return *out = table[i], true;
  return false;
}
