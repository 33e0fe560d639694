/* Definitions for the symbolic prover: collectives, over the tensors of all ranks. */
#include <string.h>

#include "validate/prove_int.h"

/* The ranks' tensors, which must be alike. 0: not usable. */
static size_t inputs(pt_args *a, const pt_tensor *const **t) {
  sc *c = a->c;
  size_t n;
  if (!pt_arg_list(a, "inputs", t, &n) || n == 0) return 0;
  for (size_t i = 0; i < n; i++) {
    const pt_tensor *x = (*t)[i], *first = (*t)[0];
    if (!x || x->kind != first->kind || x->rank != first->rank || x->lead != first->lead) return 0;
    for (uint32_t d = 0; d < x->rank; d++)
      if (!sc_require_eq(c, x->dim[d], first->dim[d])) return 0;
  }
  return n;
}

static const pt_tensor *total(sc *c, const pt_tensor *const *t, size_t n) {
  const pt_tensor *sum = n && t[0]->kind != 'b' ? t[0] : NULL;
  for (size_t i = 1; i < n && sum; i++) sum = pt_combine(c, c->one, sum, c->one, t[i]);
  return sum;
}

enum { ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER };

static const pt_value *define_collective(pt_args *a, int which) {
  sc *c = a->c;
  const pt_tensor *const *t;
  const size_t n = inputs(a, &t);
  uint32_t d = 0;
  sx step;
  if (n == 0 || (which != ALL_GATHER && !pt_arg_is(a, "op", "sum"))) return NULL;
  if (which != ALL_REDUCE && (t[0]->rank == 0 || !pt_arg_dim(a, "dim", 0, t[0], &d))) return NULL;
  if (which == ALL_GATHER) return pt_one(c, pt_cat(c, t, n, d));
  const pt_tensor *sum = total(c, t, n);
  if (!sum || which == ALL_REDUCE) return sum ? pt_one(c, sum) : NULL;
  const pt_tensor **part = sc_take(c, n * sizeof *part);
  if (!part || !sc_multiple(c, sum->dim[d], sx_int(c, (int64_t)n), &step)) return NULL;
  for (size_t k = 0; k < n; k++)
    if (!(part[k] = pt_slice(c, sum, d, sx_mul(c, sx_int(c, (int64_t)k), step), step, c->one))) return NULL;
  return pt_list(c, part, n);
}

bool pt_define_dist(const char *name, pt_definition *out) {
  static const char *const names[] = {"dist::all_reduce", "dist::all_gather", "dist::reduce_scatter"};
  for (int i = 0; i < 3; i++)
    if (!strcmp(name, names[i])) return *out = (pt_definition){names[i], define_collective, i}, true;
  return false;
}
