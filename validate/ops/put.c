/* index_put for the symbolic prover: elements and rows put, or added, where tensors of integers
 * say. */
#include <string.h>

#include "validate/ops/ops.h"

/* in[0] but, where the integers of list[0 .. n_list) name the first indices, what in[1] has there;
 * or with it added (`which`). k[0]: the rank of those integers. */
static sx put_elem(sc *c, const pt_tensor *t, const sx *idx) {
  const uint32_t rank = (uint32_t)t->k[0], n = (uint32_t)t->n_list;
  sx at[2 * RULE_MAX_RANK], here = c->yes;
  for (uint32_t i = 0; i < rank; i++) at[i] = sc_index(c, t->list[0]->dim[i]);
  for (uint32_t i = n; i < t->rank; i++) at[rank + i - n] = idx[i];
  for (uint32_t i = 0; i < n; i++)
    here = sx_and(c, here, sx_eq(c, pt_at(c, t->list[i], at), idx[i]));
  const sx old = pt_at(c, t->in[0], idx);
  sx put = sx_ite(c, here, pt_at(c, t->in[1], at), c->zero),
     times = sx_ite(c, here, c->one, c->zero);
  for (uint32_t i = rank; i-- > 0;) put = sx_sum(c, at[i], put);
  if (t->which) return sx_add(c, old, put);
  for (uint32_t i = rank; i-- > 0;) times = sx_sum(c, at[i], times);
  sc_defined_if(
      c, sx_le(c, times, c->one)); /* of two values for one place it is not said which stays */
  if (old == c->zero && !c->plain) return put;
  return sx_ite(c, sx_lt(c, c->zero, times), put, old);
}

static const pt_value *define_put(pt_args *a, int which) {
  sc *c = a->c;
  const pt_tensor *x = pt_arg_tensor(a, "self"), *v = pt_arg_tensor(a, "values"), *const * list;
  size_t n;
  uint32_t rank, want = 0;
  uint64_t lead;
  sx dim[2 * RULE_MAX_RANK];
  (void)which;
  if (!x || !v || x->lead || v->lead || x->kind == 'b' || x->kind != v->kind ||
      !pt_arg_list(a, "indices", &list, &n) || n == 0 || n > x->rank)
    return NULL;
  const pt_tensor **by = sc_take(c, n * sizeof *by);
  for (size_t i = 0; i < n && by; i++)
    if (!list[i] || list[i]->kind != 'i' || !(by[i] = pt_from_end(c, list[i], x->dim[i])))
      return NULL;
  if (!by || !pt_broadcast(c, by, n, dim, &rank, &lead) || lead ||
      rank + x->rank - n > RULE_MAX_RANK)
    return NULL;
  for (size_t i = 0; i < n; i++)
    if (!(by[i] = pt_expand(c, by[i], dim, rank, 0))) return NULL;
  for (want = rank; want < rank + x->rank - n; want++) dim[want] = x->dim[n + want - rank];
  pt_tensor *t = pt_like(c, x, x->kind, put_elem);
  if (!t || !(v = pt_expand(c, v, dim, want, 0))) return NULL;
  t->in[1] = v;
  t->list = by;
  t->n_list = n;
  t->k[0] = (int32_t)rank;
  t->which = pt_arg_flag(a, "accumulate", false);
  return pt_one(c, t);
}

static const pt_definition table[] = {
    {"index_put", define_put, 0},
    {"_unsafe_index_put", define_put, 0},
};

bool pt_define_put(const char *name, pt_definition *out) {
  return pt_find(table, sizeof table / sizeof *table, name, out);
}
