/* Definitions for the symbolic prover: losses over classes that are named by number, and rows put
 * at places that are. */
#include <string.h>

#include "validate/ops/ops.h"

/* ---- losses ---- */

enum { NONE, MEAN, SUM }; /* reductions */

/* The class of a sample: in[1]; where it is the one to ignore, p[0], none. */
static sx class_of(sc *c, const pt_tensor *t, const sx *sample, sx *ignored) {
  const sx k = pt_at(c, t->in[1], sample);
  *ignored = t->p[0] ? sx_eq(c, k, t->p[0]) : c->no;
  return k;
}

/* A place in in[0] and in[1]'s rows of class k: classes are dimension 1 of a tensor with samples,
 * else the only one. */
static void at_class(const pt_tensor *t, const sx *sample, sx k, sx *at) {
  const uint32_t d = t->in[0]->rank > 1;
  for (uint32_t i = 0; i < t->in[0]->rank; i++) at[i] = i == d ? k : sample[i < d ? i : i - 1];
}

static sx weight_of(sc *c, const pt_tensor *t, sx k) {
  return t->in[2] ? pt_at(c, t->in[2], &k) : c->one;
}

/* - weight log p of all classes, summed. */
static sx of_all(sc *c, const pt_tensor *t, const sx *sample, bool by_probability) {
  sx at[RULE_MAX_RANK];
  const sx k = sc_index(c, t->p[1]);
  at_class(t, sample, k, at);
  sx x = sx_mul(c, weight_of(c, t, k), pt_at(c, t->in[0], at));
  if (by_probability) {
    const sx even = sx_mul(c, t->p[2], sx_inv(c, t->p[1])),
             own = sx_mul(c, sx_sub(c, c->one, t->p[2]), pt_at(c, t->in[1], at));
    x = sx_mul(c, x, sx_add(c, own, even));
  }
  return sx_neg(c, sx_sum(c, k, x));
}

/* in[0] log probabilities, in[1] classes (`which` false) or probabilities, in[2] weights of classes
 * or NULL; p[0] the class to ignore, p[1] how many there are, p[2] the share of all classes alike.
 */
static sx loss_elem(sc *c, const pt_tensor *t, const sx *idx) {
  sx at[RULE_MAX_RANK], ignored;
  if (t->which) return of_all(c, t, idx, true);
  const sx k = class_of(c, t, idx, &ignored);
  at_class(t, idx, k, at);
  sx x = sx_neg(c, sx_mul(c, weight_of(c, t, k), pt_at(c, t->in[0], at)));
  if (t->p[2] != c->zero) {
    const sx even = sx_mul(c, sx_mul(c, t->p[2], sx_inv(c, t->p[1])), of_all(c, t, idx, false));
    x = sx_add(c, sx_mul(c, sx_sub(c, c->one, t->p[2]), x), even);
  }
  return sx_ite(c, ignored, c->zero, x);
}

static sx share_elem(sc *c, const pt_tensor *t, const sx *idx) {
  sx ignored;
  if (t->which) return c->one;
  const sx k = class_of(c, t, idx, &ignored);
  return sx_ite(c, ignored, c->zero, weight_of(c, t, k));
}

/* 1/x; anything where x is 0, which has no mean. */
static sx inverse_or_none(sc *c, sx x, const void *ctx) {
  (void)ctx;
  return x == c->zero ? x : sx_inv(c, x);
}

/* The sum over all of in[0], over that of in[1] where there is one. */
static sx total_elem(sc *c, const pt_tensor *t, const sx *idx) {
  sx total[2] = {c->zero, c->one};
  (void)idx;
  for (int i = 0; i < 2 && t->in[i]; i++) {
    sx k[RULE_MAX_RANK];
    for (uint32_t d = 0; d < t->in[i]->rank; d++) k[d] = sc_index(c, t->in[i]->dim[d]);
    total[i] = pt_at(c, t->in[i], k);
    for (uint32_t d = t->in[i]->rank; d-- > 0;) total[i] = sx_sum(c, k[d], total[i]);
  }
  sc_defined_if(c, sx_not(c, sx_eq(c, total[1], c->zero)));
  return sx_mul(c, total[0], sx_lift(c, total[1], inverse_or_none, NULL));
}

static const pt_tensor *total(sc *c, const pt_tensor *x, const pt_tensor *share) {
  pt_tensor *t = x ? pt_new(c, 'f', total_elem) : NULL;
  if (t) t->in[0] = x, t->in[1] = share;
  return t;
}

/* Whether the operands fit: classes for each sample, as many weights as there are classes. */
static bool losses_fit(pt_args *a, const pt_tensor *x, const pt_tensor *y, const pt_tensor *w,
                       bool probabilities) {
  sc *c = a->c;
  const uint32_t d = x->rank > 1;
  if (x->kind != 'f' || x->lead || y->lead || x->rank == 0 ||
      y->kind != (probabilities ? 'f' : 'i'))
    return false;
  if (y->rank + (probabilities ? 0 : 1) != x->rank) return false;
  for (uint32_t i = 0; i < y->rank; i++)
    if (!sc_require_eq(c, y->dim[i], x->dim[probabilities ? i : i < d ? i : i + 1])) return false;
  return !w ||
         (w->rank == 1 && !w->lead && w->kind == 'f' && sc_require_eq(c, w->dim[0], x->dim[d]));
}

/* Of log probabilities x. `share` (may be NULL): the weights, by whose sum a mean divides. */
static const pt_tensor *loss(pt_args *a, const pt_tensor *x, const pt_tensor *y, bool probabilities,
                             sx smoothing, int64_t reduction, const pt_tensor **share) {
  sc *c = a->c;
  const pt_tensor *w = pt_arg(a, "weight") ? pt_arg_tensor(a, "weight") : NULL;
  if (c->fault.failed || !losses_fit(a, x, y, w, probabilities)) return NULL;
  const uint32_t d = x->rank > 1;
  pt_tensor *t = pt_new(c, 'f', loss_elem), *s = pt_new(c, 'f', share_elem);
  if (!t || !s) return NULL;
  t->in[0] = x;
  t->in[1] = y;
  t->in[2] = w;
  t->which = probabilities;
  t->p[0] = probabilities ? 0 : pt_arg_size(a, "ignore_index", -100);
  t->p[1] = x->dim[d];
  t->p[2] = smoothing;
  for (uint32_t i = 0; i < x->rank; i++)
    if (i != d) t->dim[t->rank++] = x->dim[i];
  if (!probabilities) pt_bound_index_else(c, y, x->dim[d], false, t->p[0]);
  const pt_elem f = s->elem;
  *s = *t;
  s->elem = f;
  s->id = ++c->terms.n_tensors;
  if (share) *share = total(c, s, NULL);
  if (reduction == NONE) return t;
  return total(c, t, reduction == MEAN ? s : NULL);
}

static bool reduction_of(pt_args *a, int64_t *out) {
  const rule_term *t = pt_arg(a, "reduction");
  *out = MEAN;
  return !t || (pt_int(a->c, sc_size(a->c, t), out) && *out >= NONE && *out <= SUM);
}

enum { NLL, NLL_2D, NLL_FORWARD, NLL_2D_FORWARD };

static const pt_value *define_nll(pt_args *a, int which) {
  const pt_tensor *x = pt_arg_tensor(a, "self"), *y = pt_arg_tensor(a, "target"), *share = NULL;
  int64_t reduction;
  const bool flat = which == NLL || which == NLL_FORWARD;
  if (!x || !y || !reduction_of(a, &reduction) ||
      (strcmp(a->schema->name, "aten::nll_loss_nd") && (flat ? x->rank > 2 : x->rank != 4)))
    return NULL;
  const pt_tensor *r = loss(a, x, y, false, a->c->zero, reduction, &share);
  if (which == NLL || which == NLL_2D || !r) return pt_one(a->c, r);
  if (reduction == NONE) share = pt_scalar_tensor(a->c, a->c->zero, 'f');
  return pt_list(a->c, (const pt_tensor *[]){r, share}, 2);
}

static sx log_softmax_elem(sc *c, const pt_tensor *t, const sx *idx) {
  sx in[RULE_MAX_RANK];
  memcpy(in, idx, t->rank * sizeof *in);
  const sx k = in[t->k[0]] = sc_index(c, t->dim[t->k[0]]);
  return sx_sub(c, pt_at(c, t->in[0], idx),
                sx_log(c, sx_sum(c, k, sx_exp(c, pt_at(c, t->in[0], in)))));
}

static const pt_value *define_cross_entropy(pt_args *a, int which) {
  sc *c = a->c;
  const pt_tensor *x = pt_arg_tensor(a, "self"), *y = pt_arg_tensor(a, "target");
  int64_t reduction;
  char kind;
  (void)which;
  if (!x || !y || x->kind != 'f' || x->rank == 0 || x->lead || !reduction_of(a, &reduction))
    return NULL;
  sx smoothing = pt_arg_scalar(a, "label_smoothing", &kind);
  bool some;
  if (!sc_decide(c, sx_lt(c, c->zero, smoothing), &some)) return NULL;
  if (!some) smoothing = c->zero; /* below 0, too */
  if (!sc_require(c, sx_le(c, smoothing, c->one))) return NULL;
  pt_tensor *p = pt_like(c, x, 'f', log_softmax_elem);
  if (!p ||
      (y->kind == 'f' && !sc_require(c, sx_lt(c, pt_arg_size(a, "ignore_index", -100), c->zero))))
    return NULL;
  p->k[0] = x->rank > 1;
  return pt_one(c, loss(a, p, y, y->kind == 'f', smoothing, reduction, NULL));
}

/* ---- rows and elements in places ---- */

/* in[0], with in[2]'s elements at the places that in[1] names, or the number p[0] where there is no
 * in[2]: elements (SCATTER, an index for each) or rows. Several that name one place would have to
 * agree: in[2] is used only at places that are named once. */
enum { SCATTER, COPY, FILL };

/* Whether places[k] differ for all k: those of a row's ranks do. */
static bool all_apart(const sc *c, sx place, sx k) {
  return sc_op(c, place) == X_FN && sc_word(c, place, 0) == F_PLACE && sc_word(c, place, 1) == k &&
         !sx_occurs(c, k, sc_word(c, place, 2));
}

static sx placed_elem(sc *c, const pt_tensor *t, const sx *idx) {
  const pt_tensor *i = t->in[1];
  const uint32_t d = (uint32_t)t->k[0];
  sx at[RULE_MAX_RANK], inside = c->yes;
  memcpy(at, idx, t->rank * sizeof *at);
  for (uint32_t k = 0; k < t->rank && t->which == SCATTER; k++)
    if (k != d) inside = sx_and(c, inside, sx_lt(c, idx[k], i->dim[k]));
  const sx k = at[d] = sc_index(c, i->dim[t->which == SCATTER ? d : 0]);
  const sx place = pt_at(c, i, t->which == SCATTER ? at : &k), here = sx_eq(c, place, idx[d]),
           old = pt_at(c, t->in[0], idx);
  const sx times = sx_sum(c, k, sx_ite(c, here, c->one, c->zero));
  const bool apart = k != c->zero && all_apart(c, place, k);
  sx put = t->in[2] ? pt_at(c, t->in[2], at) : t->p[0];
  if (t->in[2] && apart) put = sx_subst(c, put, &(sx_map){place, idx[d]}, 1); /* if it is here */
  if (t->in[2]) put = sx_sum(c, k, sx_ite(c, here, put, c->zero));
  if (t->in[2]) sc_defined_if(c, sx_or(c, sx_not(c, inside), sx_le(c, times, c->one)));
  /* Where `times` is 0 or 1, and either nothing is put or nothing was there before, no condition is
   * needed: a sum says it. */
  const bool finite = old != c->neginf && put != c->neginf && !c->reading.plain;
  if (finite && t->in[2] && old == c->zero) return sx_ite(c, inside, put, old);
  if (finite && !t->in[2] && apart)
    return sx_ite(c, inside, sx_add(c, old, sx_mul(c, times, sx_sub(c, put, old))), old);
  return sx_ite(c, sx_and(c, inside, sx_lt(c, c->zero, times)), put, old);
}

static const pt_value *define_placed(pt_args *a, int which) {
  sc *c = a->c;
  const pt_tensor *x = pt_arg_tensor(a, "self"), *i = pt_arg_tensor(a, "index"),
                  *s = pt_arg_tensor(a, which == COPY ? "source" : "src");
  uint32_t d;
  if (!x || !i || !s || x->lead || i->lead || s->lead || i->kind != 'i' || x->kind != s->kind ||
      x->kind == 'b' || x->rank == 0)
    return NULL;
  if (s->rank != x->rank || !pt_arg_dim(a, "dim", 0, x, &d)) return NULL;
  if (which == COPY && i->rank == 0) i = pt_unsqueeze(c, i, 0);
  if (!i || i->rank != (which == COPY ? 1 : x->rank)) return NULL;
  for (uint32_t k = 0; k < x->rank; k++) {
    if (which == COPY) {
      if (!sc_require_eq(c, s->dim[k], k == d ? i->dim[0] : x->dim[k])) return NULL;
    } else if (!sc_require(c, sx_le(c, i->dim[k], s->dim[k])) ||
               (k != d && !sc_require(c, sx_le(c, i->dim[k], x->dim[k])))) {
      return NULL;
    }
  }
  pt_tensor *t = pt_like(c, x, x->kind, placed_elem);
  if (!t) return NULL;
  t->in[1] = i;
  t->in[2] = s;
  t->which = which;
  t->k[0] = (int32_t)d;
  pt_bound_index(c, i, x->dim[d]);
  return pt_one(c, t);
}

static const pt_value *define_named(pt_args *a, int which) {
  sc *c = a->c;
  const pt_tensor *x = pt_arg_tensor(a, "self"), *i = pt_arg_tensor(a, "index");
  uint32_t d;
  char kind;
  if (!x || !i || x->lead || i->lead || i->kind != 'i' || x->kind == 'b' || x->rank == 0 ||
      !pt_arg_dim(a, "dim", 0, x, &d))
    return NULL;
  if (which == FILL && i->rank == 0) i = pt_unsqueeze(c, i, 0);
  if (!i || i->rank != (which == FILL ? 1 : x->rank)) return NULL;
  if (which == FILL && !(i = pt_from_end(c, i, x->dim[d]))) return NULL;
  const sx value = pt_arg_scalar(a, "value", &kind);
  if (kind == 'b' || (x->kind == 'i' && kind == 'f')) return NULL;
  for (uint32_t k = 0; k < x->rank && which == SCATTER; k++)
    if (k != d && !sc_require(c, sx_le(c, i->dim[k], x->dim[k]))) return NULL;
  pt_tensor *t = pt_like(c, x, x->kind, placed_elem);
  if (!t) return NULL;
  t->in[1] = i;
  t->which = which;
  t->k[0] = (int32_t)d;
  t->p[0] = value;
  if (which != FILL) pt_bound_index(c, i, x->dim[d]);
  return pt_one(c, t);
}

/* ---- elements and rows put where integers say ---- */

/* Which of the lists is 0, 1, 2, ...: each row is named once. n_list: none. */
static uint32_t counting(sc *c, const pt_tensor *t, const sx *at) {
  uint32_t i = 0;
  while (i < t->n_list && pt_at(c, t->list[i], at) != at[0]) i++;
  return i;
}

/* The same as put_elem where list `row` counts: no sum is needed. */
static sx put_in_row(sc *c, const pt_tensor *t, const sx *idx, uint32_t row, sx *at) {
  const sx old = pt_at(c, t->in[0], idx);
  sx here = sx_lt(c, idx[row], t->list[row]->dim[0]);
  sx_map is[RULE_MAX_RANK];
  size_t n = 0;
  at[0] = idx[row];
  for (uint32_t i = 0; i < t->n_list; i++) {
    const sx place = pt_at(c, t->list[i], at);
    if (i == row || place == idx[i]) continue;
    here = sx_and(c, here, sx_eq(c, place, idx[i]));
    is[n++] = (sx_map){place, idx[i]};
  }
  sx put = pt_at(c, t->in[1], at);
  if (n) put = sx_subst(c, put, is, n); /* where they are equal */
  return sx_ite(c, here, t->which ? sx_add(c, old, put) : put, old);
}

/* in[0], with in[1]'s elements where the integers of list[0 .. n_list) name the first indices; or
 * with these added (`which`). k[0]: the rank of those integers. */
static sx put_elem(sc *c, const pt_tensor *t, const sx *idx) {
  const uint32_t rank = (uint32_t)t->k[0], n = (uint32_t)t->n_list;
  sx at[2 * RULE_MAX_RANK], here = c->yes;
  for (uint32_t i = 0; i < rank; i++) at[i] = sc_index(c, t->list[0]->dim[i]);
  for (uint32_t i = n; i < t->rank; i++) at[rank + i - n] = idx[i];
  const uint32_t row = rank == 1 ? counting(c, t, at) : n;
  if (row < n) return put_in_row(c, t, idx, row, at);
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
  if (old == c->zero && !c->reading.plain) return put;
  return sx_ite(c, sx_lt(c, c->zero, times), put, old);
}

/* in[0], and in[2], or that added (`which`), where the mask in[1] says so. */
static sx fill_elem(sc *c, const pt_tensor *t, const sx *idx) {
  const sx old = pt_at(c, t->in[0], idx), v = pt_at(c, t->in[2], idx);
  return sx_ite(c, pt_at(c, t->in[1], idx), t->which ? sx_add(c, old, v) : v, old);
}

/* A mask of the first dimensions, and what is the same for each place that it names. */
static const pt_value *define_fill(pt_args *a, const pt_tensor *x, const pt_tensor *mask,
                                   const pt_tensor *v) {
  sc *c = a->c;
  if (mask->rank == 0 || mask->rank > x->rank || mask->lead || v->rank > x->rank - mask->rank)
    return NULL;
  for (uint32_t k = 0; k < mask->rank; k++)
    if (!sc_require_eq(c, mask->dim[k], x->dim[k])) return NULL;
  pt_tensor *t = pt_like(c, x, x->kind, fill_elem);
  if (!t || !(v = pt_expand(c, v, x->dim, x->rank, 0))) return NULL;
  t->in[1] = mask;
  t->in[2] = v;
  t->which = pt_arg_flag(a, "accumulate", false);
  return pt_one(c, t);
}

/* Dimensions first .. first + n go before the others, or from there to where they were. */
static const pt_tensor *to_front(sc *c, const pt_tensor *x, uint32_t first, uint32_t n) {
  uint32_t order[RULE_MAX_RANK];
  for (uint32_t k = 0; k < x->rank; k++) order[k] = k < n ? first + k : k < n + first ? k - n : k;
  return first ? pt_permute(c, x, order) : x;
}

static const pt_tensor *from_front(sc *c, const pt_tensor *x, uint32_t first, uint32_t n) {
  return to_front(c, x, n, first);
}

/* `by`: the indices of n dimensions, all of one shape, of the `first` one on. Of the dimensions
 * before there are none. */
static const pt_value *put_at(pt_args *a, const pt_tensor *x, const pt_tensor *const *by,
                              uint32_t first, uint32_t n) {
  sc *c = a->c;
  const uint32_t rank = by[0]->rank, want = rank + x->rank - n;
  const pt_tensor *v = pt_arg_tensor(a, "values");
  sx dim[RULE_MAX_RANK];
  if (want > RULE_MAX_RANK) return NULL;
  for (uint32_t k = 0; k < want; k++)
    dim[k] = k < first          ? x->dim[k]
             : k < first + rank ? by[0]->dim[k - first]
                                : x->dim[k - rank + n];
  if (!(v = pt_expand(c, v, dim, want, 0)) || !(v = to_front(c, v, first, rank)) ||
      !(x = to_front(c, x, first, n)))
    return NULL;
  pt_tensor *t = pt_like(c, x, x->kind, put_elem);
  if (!t) return NULL;
  t->in[1] = v;
  t->list = by;
  t->n_list = n;
  t->k[0] = (int32_t)rank;
  t->which = pt_arg_flag(a, "accumulate", false);
  const pt_tensor *out = from_front(c, t, first, n);
  return out ? pt_one(c, out) : NULL;
}

static const pt_value *define_put(pt_args *a, int which) {
  sc *c = a->c;
  const pt_tensor *x = pt_arg_tensor(a, "self"), *v = pt_arg_tensor(a, "values"), *const * list;
  size_t n;
  uint32_t rank, first = 0;
  uint64_t lead;
  sx dim[2 * RULE_MAX_RANK];
  (void)which;
  if (!x || !v || x->lead || v->lead || x->kind == 'b' || x->kind != v->kind ||
      !pt_arg_list(a, "indices", &list, &n) || n == 0 || n > x->rank)
    return NULL;
  if (n == 1 && list[0] && list[0]->kind == 'b') return define_fill(a, x, list[0], v);
  while (first < n && !list[first]) first++;
  n -= first;
  const pt_tensor **by = sc_take(c, (n + 1) * sizeof *by);
  for (size_t i = 0; i < n && by; i++) {
    const pt_tensor *at = list[first + i];
    if (!at || at->kind != 'i' || at->narrow == RULE_U8 || /* a mask */
        !(by[i] = pt_from_end(c, at, x->dim[first + i])))
      return NULL;
  }
  if (!by || n == 0 || !pt_broadcast(c, by, n, dim, &rank, &lead) || lead || rank > RULE_MAX_RANK)
    return NULL;
  for (size_t i = 0; i < n; i++)
    if (!(by[i] = pt_expand(c, by[i], dim, rank, 0))) return NULL;
  return put_at(a, x, by, first, (uint32_t)n);
}

/* ---- along a dimension ---- */

static sx along_elem(sc *c, const pt_tensor *t, const sx *idx) {
  sx at[RULE_MAX_RANK];
  const pt_tensor *x = t->in[0], *i = t->in[1];
  const uint32_t d = (uint32_t)t->k[0];
  for (uint32_t k = 0; k < t->rank; k++) at[k] = i->dim[k] == c->one ? c->zero : idx[k];
  const sx row = pt_at(c, i, at);
  for (uint32_t k = 0; k < t->rank; k++)
    at[k] = k == d ? row : x->dim[k] == c->one ? c->zero : idx[k];
  return pt_at(c, x, at);
}

/* gather, broadcast along the other dimensions. */
static const pt_value *define_along(pt_args *a, int which) {
  sc *c = a->c;
  const pt_tensor *x = pt_arg_tensor(a, "self"), *i = pt_arg_tensor(a, "indices");
  uint32_t d = 0, rank;
  uint64_t lead;
  (void)which;
  if (!x || !i || x->lead || i->lead || i->kind != 'i') return NULL;
  if (!pt_arg(a, "dim")) { /* of all elements in a row */
    if (x->rank > 1) x = pt_flatten(c, x, 0, x->rank - 1);
    if (i->rank > 1) i = pt_flatten(c, i, 0, i->rank - 1);
  }
  if (!x || !i || x->rank != i->rank || x->rank == 0 ||
      (pt_arg(a, "dim") && !pt_arg_dim(a, "dim", 0, x, &d)))
    return NULL;
  pt_tensor p = *x, q = *i, *t = pt_new(c, x->kind, along_elem);
  p.dim[d] = c->one;
  q.dim[d] = c->one;
  if (!t || !pt_broadcast(c, (const pt_tensor *[]){&p, &q}, 2, t->dim, &rank, &lead)) return NULL;
  t->rank = rank;
  t->dim[d] = i->dim[d];
  t->in[0] = x;
  t->in[1] = i;
  t->k[0] = (int32_t)d;
  pt_bound_index(c, i, x->dim[d]);
  return pt_one(c, t);
}

static const pt_definition table[] = {
    {"nll_loss", define_nll, NLL},
    {"nll_loss_nd", define_nll, NLL},
    {"nll_loss2d", define_nll, NLL_2D},
    {"nll_loss_forward", define_nll, NLL_FORWARD},
    {"nll_loss2d_forward", define_nll, NLL_2D_FORWARD},
    {"cross_entropy_loss", define_cross_entropy, 0},
    {"scatter.src", define_placed, SCATTER},
    {"index_copy", define_placed, COPY},
    {"scatter.value", define_named, SCATTER},
    {"index_fill.int_Scalar", define_named, FILL},
    {"take_along_dim", define_along, 0},
    {"index_put", define_put, 0},
    {"_unsafe_index_put", define_put, 0},
};

bool pt_define_index(const char *name, pt_definition *out) {
  return pt_find(table, sizeof table / sizeof *table, name, out);
}
