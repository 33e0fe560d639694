/* Operators that take rows of a table by an index: embedding, gather, index_select, index, one_hot.
 * Each says in which range its index lies (pt_bound_index): proofs take the index's bounds from
 * that, and samples its range. */
#include <stdio.h>
#include <string.h>
#include "validate/ops/ops.h"

/* ---- tables ---- */

/* in[0] at in[1]'s value along dimension `which`; k[0]: rank of the index. */
static sx pick_elem(sc *c, const pt_tensor *t, const sx *idx) {
  const pt_tensor *table = t->in[0], *index = t->in[1];
  sx at[RULE_MAX_RANK];
  const uint32_t d = (uint32_t)t->which, n = index->rank;
  for (uint32_t k = 0; k < table->rank; k++)
    at[k] = k < d ? idx[k] : k > d ? idx[k + n - 1] : pt_at(c, index, idx + d);
  return pt_at(c, table, at);
}

/* All elements of an integer variable are seen in `index`, each at a place of its own. */
static bool shows_all(sc *c, const pt_tensor *index, uint32_t *var) {
  sx idx[RULE_MAX_RANK];
  for (uint32_t i = 0; i < index->rank; i++) idx[i] = sc_index(c, index->dim[i]);
  const sx x = pt_at(c, index, idx);
  if (c->fault.failed || sc_op(c, x) != X_LEAF) return false;
  const rule_variable *v = &c->r->var[ *var = sc_word(c, x, 0)];
  if (v->any_shape || v->leading || sc_at(c, x)->n != v->n_dims + 1) return false;
  for (uint32_t k = 0; k < v->n_dims; k++) {
    const sx at = sc_word(c, x, k + 1),
             size = v->dim[k]->kind == RULE_NONE ? 0 : sc_size(c, v->dim[k]);
    if (!size || (at == c->zero && size == c->one)) {
      if (!size) return false;
      continue;
    }
    if (sc_op(c, at) != X_SYM || !c->store.sym[sc_word(c, at, 0)].high ||
        !sx_same(c, c->store.sym[sc_word(c, at, 0)].high, size))
      return false;
    for (uint32_t j = 0; j < k; j++)
      if (sc_word(c, x, j + 1) == at) return false;
  }
  return true;
}

static bool of_variable(sc *c, const pt_tensor *index, uint32_t *var) {
  if (!pt_is_variable(index)) return shows_all(c, index, var);
  *var = (uint32_t)index->which;
  return true;
}

/* A variable may be an index that counts from the end in one place, and in another a class, or a
 * number further below that names no class. It then is a class. */
static void note_both(sc *c, const pt_tensor *index, sx size, bool from_end, sx besides) {
  uint32_t var;
  if ((!from_end && !besides) || !of_variable(c, index, &var)) return;
  sx *end = &c->ranges.end_size[var & 63], *class = &c->ranges.class_size[var & 63],
     *none = &c->ranges.no_class[var & 63];
  if (from_end) *end = size;
  else *class = size, *none = besides;
  if (!*end || !*class || !sx_ge0(c, sx_sub(c, sx_neg(c, sx_add(c, *none, *end)), c->one))) return;
  sx *known = &c->ranges.table_size[var & 63];
  if (!*known || !sx_ge0(c, sx_sub(c, *class, *known))) *known = *class;
}

void pt_bound_index_else(sc *c, const pt_tensor *index, sx size, bool from_end, sx besides) {
  if (c->hooks.on_index && !c->fault.failed) c->hooks.on_index(c, index, size, from_end, besides);
  if (!c->fault.failed) note_both(c, index, size, from_end, besides);
}

static void in_range(sc *c, const pt_tensor *index, sx size) {
  uint32_t var;
  if (!of_variable(c, index, &var)) return;
  sx *known =
      &c->ranges.table_size[var & 63]; /* of several tables the smallest that is known to be */
  if (!*known || !sx_ge0(c, sx_sub(c, size, *known))) *known = size;
}

void pt_bound_index(sc *c, const pt_tensor *index, sx size) {
  pt_bound_index_else(c, index, size, false, 0);
  in_range(c, index, size);
}

static const pt_tensor *pick(sc *c, const pt_tensor *table, const pt_tensor *index, uint32_t d) {
  if (!table || !index || index->kind != 'i' || table->lead || (index->lead && d)) return NULL;
  pt_tensor *t = pt_new(c, table->kind, pick_elem);
  if (!t || table->rank + index->rank > RULE_MAX_RANK) return NULL;
  t->in[0] = table;
  t->in[1] = index;
  t->which = (int)d;
  t->lead = index->lead;
  for (uint32_t k = 0; k < d; k++) t->dim[t->rank++] = table->dim[k];
  for (uint32_t k = 0; k < index->rank; k++) t->dim[t->rank++] = index->dim[k];
  for (uint32_t k = d + 1; k < table->rank; k++) t->dim[t->rank++] = table->dim[k];
  return t;
}

static sx gather_elem(sc *c, const pt_tensor *t, const sx *idx) {
  sx at[RULE_MAX_RANK];
  memcpy(at, idx, t->rank * sizeof *at);
  at[t->which] = pt_at(c, t->in[1], idx);
  return pt_at(c, t->in[0], at);
}

static sx one_hot_elem(sc *c, const pt_tensor *t, const sx *idx) {
  return sx_ite(c, sx_eq(c, pt_at(c, t->in[0], idx), idx[t->rank - 1]), c->one, c->zero);
}

static sx wrap_elem(sc *c, const pt_tensor *t, const sx *idx) {
  const sx i = pt_at(c, t->in[0], idx);
  return sx_ite(c, sx_lt(c, i, c->zero), sx_add(c, i, t->p[0]), i);
}

/* An index from 0 on, of one that may count from the end of the size. */
const pt_tensor *pt_from_end(sc *c, const pt_tensor *index, sx size) {
  pt_tensor *w = pt_like(c, index, 'i', wrap_elem);
  if (!w) return NULL;
  w->p[0] = size;
  pt_bound_index_else(c, index, size, true, 0);
  in_range(c, w, size);
  return w;
}

enum { EMBEDDING, INDEX_SELECT, GATHER, ONE_HOT, INDEX };
enum { SOME_CLASSES = 4 /* of a one_hot that counts them itself, in samples */ };

/* in[0] at list[k] along each dimension k that has one; their own indices stand from `which` on,
 * k[0] many. */
static sx picks_elem(sc *c, const pt_tensor *t, const sx *idx) {
  const uint32_t at = (uint32_t)t->which, n = (uint32_t)t->k[0];
  sx in[RULE_MAX_RANK];
  uint32_t next = 0;
  for (uint32_t k = 0; k < t->in[0]->rank; k++) {
    if (next == at) next += n;
    in[k] = t->list[k] ? pt_at(c, t->list[k], idx + at) : idx[next++];
  }
  return pt_at(c, t->in[0], in);
}

/* Several indices, broadcast; `by`: for each dimension of x its own, or NULL. */
static const pt_tensor *pick_several(sc *c, const pt_tensor *x, const pt_tensor *const *by) {
  const pt_tensor *several[RULE_MAX_RANK], **list = sc_take(c, x->rank * sizeof *list);
  uint32_t n = 0, first = 0, last = 0, rank;
  uint64_t lead;
  sx dim[RULE_MAX_RANK];
  for (uint32_t k = 0; k < x->rank; k++) {
    if (!by[k]) continue;
    if (n == 0) first = k;
    last = k;
    several[n++] = by[k];
  }
  pt_tensor *t = pt_new(c, x->kind, picks_elem);
  if (!t || !list || !pt_broadcast(c, several, n, dim, &rank, &lead) || lead ||
      x->rank - n + rank > RULE_MAX_RANK)
    return NULL;
  t->which =
      last - first + 1 == n ? (int)first : 0; /* in front where they do not stand side by side */
  t->k[0] = (int32_t)rank;
  t->in[0] = x;
  t->list = list;
  t->n_list = x->rank;
  for (uint32_t k = 0; k <= x->rank; k++) {
    if (t->rank == (uint32_t)t->which)
      for (uint32_t i = 0; i < rank; i++) t->dim[t->rank++] = dim[i];
    if (k == x->rank) break;
    list[k] = by[k] ? pt_expand(c, by[k], dim, rank, 0) : NULL;
    if (by[k] && !list[k]) return NULL;
    if (!by[k]) t->dim[t->rank++] = x->dim[k];
  }
  return t;
}

static const pt_value *define_index(pt_args *a) {
  sc *c = a->c;
  const pt_tensor *x = pt_arg_tensor(a, "self"), *by[RULE_MAX_RANK] = {NULL};
  const pt_tensor *const *list;
  size_t n, several = 0, at = 0;
  if (!x || x->lead || !pt_arg_list(a, "indices", &list, &n) || n > x->rank) return NULL;
  for (size_t i = 0; i < n; i++) {
    if (!list[i]) continue;
    /* Bytes are truth values here. */
    const bool places = list[i]->kind == 'i' && list[i]->narrow != RULE_U8;
    by[at = i] = places ? pt_from_end(c, list[i], x->dim[i]) : NULL;
    if (!by[i]) return NULL;
    several++;
  }
  if (several == 0) return NULL;
  if (several == 1) return pt_one(c, pick(c, x, by[at], (uint32_t)at));
  return pt_one(c, pick_several(c, x, by));
}

static const pt_value *define_pick(pt_args *a, int which) {
  sc *c = a->c;
  const pt_tensor *x, *i;
  pt_tensor *t;
  uint32_t d = 0;
  bool counted;
  sx n;
  switch (which) {
  case EMBEDDING:
    x = pt_arg_tensor(a, "weight"), i = pt_arg_tensor(a, "indices");
    if (!x || !i || x->rank != 2) return NULL;
    pt_bound_index(c, i, x->dim[0]);
    return pt_one(c, pick(c, x, i, 0));
  case INDEX_SELECT:
    x = pt_arg_tensor(a, "self"), i = pt_arg_tensor(a, "index");
    if (!x || !i || x->rank == 0 || i->rank > 1 || !pt_arg_dim(a, "dim", 0, x, &d)) return NULL;
    pt_bound_index(c, i, x->dim[d]);
    return pt_one(c, pick(c, x, i->rank ? i : pt_unsqueeze(c, i, 0), d));
  case GATHER:
    x = pt_arg_tensor(a, "self"), i = pt_arg_tensor(a, "index");
    if (!x || !i || i->kind != 'i' || x->lead || i->lead || x->rank != i->rank || x->rank == 0 ||
        !pt_arg_dim(a, "dim", 0, x, &d))
      return NULL;
    for (uint32_t k = 0; k < x->rank; k++)
      if (k != d && !sc_require(c, sx_le(c, i->dim[k], x->dim[k]))) return NULL;
    t = pt_like(c, i, x->kind, gather_elem);
    if (!t) return NULL;
    t->in[0] = x;
    t->in[1] = i;
    t->which = (int)d;
    pt_bound_index(c, i, x->dim[d]);
    return pt_one(c, t);
  case ONE_HOT:
    x = pt_arg_tensor(a, "self");
    n = pt_arg_size(a, "num_classes", -1);
    if (!x || x->kind != 'i' || x->rank == RULE_MAX_RANK ||
        !sc_decide(c, sx_eq(c, n, c->minus_one), &counted))
      return NULL;
    if (counted)
      return pt_bound_index_else(c, x, sx_q(c, pv_q_int(&c->q, SOME_CLASSES)), false, 0),
             NULL; /* as many as the values ask for: none is told of */
    pt_bound_index(c, x, n);
    t = pt_like(c, x, 'i', one_hot_elem);
    if (!t) return NULL;
    t->dim[t->rank++] = n;
    return sc_require(c, sx_lt(c, c->zero, t->dim[t->rank - 1])) ? pt_one(c, t) : NULL;
  default: return define_index(a);
  }
}

/* ---- places among given numbers ---- */

/* How many of the numbers in[1], k[0] of them, are below in[0]'s element; `which`: or equal to it.
 */
static sx bucket_elem(sc *c, const pt_tensor *t, const sx *idx) {
  const sx x = pt_at(c, t->in[0], idx);
  sx n = c->zero;
  for (int32_t k = 0; k < t->k[0]; k++) {
    const sx at = sx_int(c, k), y = pt_at(c, t->in[1], &at);
    n = sx_add(c, n, sx_ite(c, t->which ? sx_le(c, y, x) : sx_lt(c, y, x), c->one, c->zero));
  }
  return n;
}

/* Of numbers that are written, and stand in their order: what others give is not said.
 * call: "(var x f ($A $B))" "(aten::bucketize.Tensor x (aten::arange 3))"
 * call: "(var n i ($A $B))" "(aten::bucketize.Tensor n (aten::arange 4) :right true)"
 * call: "(var x f ($A $B))" "(aten::searchsorted.Tensor (aten::arange 3) x)"
 * call: "(var x f ($A $B))" "(aten::searchsorted.Tensor (aten::arange 2) x :right true)" */
static const pt_value *define_bucket(pt_args *a, int sorted) {
  enum { MOST = 64 };
  sc *c = a->c;
  const pt_tensor *x = pt_arg_tensor(a, "self"),
                  *of = pt_arg_tensor(a, sorted ? "sorted_sequence" : "boundaries");
  if (!x || !of || x->kind == 'b' || of->kind == 'b' || of->lead || of->rank != 1 ||
      pt_arg_flag(a, "out_int32", false))
    return NULL;
  if (sorted && (pt_arg(a, "side") || pt_arg(a, "sorter"))) return NULL;
  int64_t n;
  if (!sx_is_int(c, of->dim[0], &n) || n > MOST) return NULL;
  for (int64_t k = 1; k < n; k++) {
    const sx at[2] = {sx_int(c, k - 1), sx_int(c, k)};
    if (sx_le(c, pt_at(c, of, &at[0]), pt_at(c, of, &at[1])) != c->yes) return NULL;
  }
  pt_tensor *t = pt_like(c, x, 'i', bucket_elem);
  if (!t) return NULL;
  t->in[1] = of;
  t->which = pt_arg_flag(a, "right", false);
  t->k[0] = (int32_t)n;
  return pt_one(c, t);
}

static const pt_definition table[] = {
    {"bucketize.Tensor", define_bucket, false},
    {"searchsorted.Tensor", define_bucket, true},
    {"embedding", define_pick, EMBEDDING},
    {"index_select", define_pick, INDEX_SELECT},
    {"gather", define_pick, GATHER},
    {"one_hot", define_pick, ONE_HOT},
    {"index.Tensor", define_pick, INDEX},
    {"_unsafe_index", define_pick, INDEX},
};

bool pt_define_pick(const char *name, pt_definition *out) {
  return pt_find(table, sizeof table / sizeof *table, name, out);
}
