/* Collectives over the tensors of all ranks: what each means is its definition over the ranks. */
#include "validate/encode_int.h"

#include <string.h>

static bool alike(pv_tensor *const *t, size_t n) {
  for (size_t i = 1; i < n; i++)
    if (t[i]->kind != t[0]->kind || !rule_shape_eq(&t[i]->s, &t[0]->s)) return false;
  return n > 0;
}

static pv_tensor *total(pv_cx *c, pv_tensor *const *t, size_t n) {
  if (!alike(t, n) || t[0]->kind == 'b') return NULL;
  pv_tensor *r = pv_tensor_new(c, t[0]->kind, &t[0]->s);
  pv_id *term = iso_arena_alloc(&c->arena, n * sizeof *term);
  if (!term) pv_fail(c, "out of memory");
  for (int64_t i = 0; r && i < r->n && !c->failed; i++) {
    for (size_t k = 0; k < n; k++) term[k] = t[k]->e[i];
    r->e[i] = pv_sum(c, term, n);
  }
  return r;
}

static pv_value *define_all_reduce(pv_call_args *a, int which) {
  (void)which;
  pv_tensor **t = NULL;
  const size_t n = pv_arg_tensors(a, "inputs", &t);
  if (!n || !pv_arg_is(a, "op", "sum")) return NULL;
  return pv_value_of(a->c, total(a->c, t, n));
}

static pv_value *define_all_gather(pv_call_args *a, int which) {
  (void)which;
  pv_tensor **t = NULL;
  const size_t n = pv_arg_tensors(a, "inputs", &t);
  uint32_t d;
  if (!alike(t, n) || t[0]->s.rank == 0 || !pv_dim(a->c, pv_arg_int(a, "dim", 0), t[0]->s.rank, &d)) return NULL;
  return pv_value_of(a->c, pv_join(a->c, t, n, d));
}

/* The sum, cut along `dim`: one part for each rank. */
static pv_value *define_reduce_scatter(pv_call_args *a, int which) {
  (void)which;
  pv_cx *c = a->c;
  pv_tensor **t = NULL;
  const size_t n = pv_arg_tensors(a, "inputs", &t);
  uint32_t d;
  if (!n || !pv_arg_is(a, "op", "sum")) return NULL;
  pv_tensor *sum = total(c, t, n);
  if (!sum || sum->s.rank == 0 || !pv_dim(c, pv_arg_int(a, "dim", 0), sum->s.rank, &d) || sum->s.dim[d] % (int64_t)n != 0) return NULL;
  pv_tensor **part = iso_arena_alloc(&c->arena, n * sizeof *part);
  if (!part) {
    pv_fail(c, "out of memory");
    return NULL;
  }
  rule_shape s = sum->s;
  s.dim[d] /= (int64_t)n;
  int64_t stride[RULE_MAX_RANK];
  pv_dense(&sum->s, stride);
  for (size_t k = 0; k < n; k++)
    if (!(part[k] = pv_strided(c, sum, &s, stride, (int64_t)k * s.dim[d] * stride[d]))) return NULL;
  return pv_value_list(c, part, n);
}

static const pv_definition table[] = {
    {"dist::all_reduce", define_all_reduce, 0},
    {"dist::all_gather", define_all_gather, 0},
    {"dist::reduce_scatter", define_reduce_scatter, 0},
};

const pv_definition *pv_define_dist(const char *name) {
  for (size_t i = 0; i < sizeof table / sizeof *table; i++)
    if (!strcmp(table[i].name, name)) return &table[i];
  return NULL;
}
