/* Definitions for the symbolic prover: places in an order (topk, sort, argmax).
 *
 * Where the k-th largest element of a row stands is an unknown function of k and of the row
 * (X_ROW), and its value is the row's element there. A row stands for its order alone: a function
 * that increases strictly in the element, the same for the whole row, is taken off (a positive
 * factor, a summand, a logarithm, an exponential), so that a softmax has its scores' order. Which
 * of equal elements comes first is left open (assumption `ties`). A place read from the end of a
 * row is the same only where the operators leave ties open, too. A condition that is the same for
 * a whole row, as of rows that are put together, moves outside: it chooses between rows. */
#include <string.h>

#include "validate/ops/ops.h"

enum { MAX_STRIPPED = 15 };

/* The terms of p in which k occurs. */
static sx terms_with(sc *c, sx p, sx k) {
  sx r = c->zero;
  for (size_t i = 0, n = sx_terms(c, p); i < n && !c->fault.failed; i++) {
    uint32_t q;
    sx m;
    sx_term(c, p, i, &q, &m);
    if (sx_occurs(c, k, m)) r = sx_add(c, r, sx_scale(c, q, m));
  }
  return r;
}

/* One monomial without the positive factors that k does not occur in. */
static sx factors_with(sc *c, sx m, sx k) {
  sx r = c->one;
  for (size_t i = 0, n = sx_factors(c, m); i < n && !c->fault.failed; i++) {
    sx b;
    uint32_t e;
    sx_factor(c, m, i, &b, &e);
    if (sx_occurs(c, k, b) || !sc_has(c, b, S_POS)) r = sx_mul(c, r, sx_pow(c, b, e));
  }
  return r;
}

/* An expression that strictly increases with the monomial m, which is positive: its logarithm where
 * it is made of exponentials, its base where it is a power. m where nothing simpler is known. */
static sx inner(sc *c, sx m) {
  sx r = c->zero, b = m;
  uint32_t e = PV_ONE_Q;
  const size_t n = sx_factors(c, m);
  bool exponential = n > 0;
  for (size_t i = 0; i < n; i++) {
    sx_factor(c, m, i, &b, &e);
    exponential &= sc_op(c, b) == X_FN && sc_word(c, b, 0) == F_EXP;
    if (exponential) r = sx_add(c, r, sx_scale(c, e, sc_word(c, b, 1)));
  }
  if (exponential) return r;
  if (n == 1 && sc_has(c, b, S_POS) && e != PV_ONE_Q)
    return pv_q_sign(&c->q, e) < 0 ? sx_neg(c, b) : b;
  /* x / (a sum), as a sigmoid is: -(the sum) / x increases with it. */
  bool over_sum = false;
  for (size_t i = 0; i < n; i++) {
    sx_factor(c, m, i, &b, &e);
    over_sum |= sx_is_long(c, b) && e == PV_MINUS_Q;
  }
  return over_sum ? sx_neg(c, sx_inv(c, m)) : m;
}

/* One step towards the simplest of a row's expressions with the same order. */
static sx stripped(sc *c, sx k, sx p) {
  uint32_t q;
  sx m;
  p = terms_with(c, p, k);
  const sx common = sx_is_long(c, p) ? sx_content(c, p, false) : c->one;
  if (common != c->one && !sx_occurs(c, k, common) && sc_has(c, common, S_POS))
    p = sx_mul(c, p, sx_inv(c, common));
  if (p == c->zero || sx_terms(c, p) != 1) return p;
  sx_term(c, p, 0, &q, &m);
  const bool falls = pv_q_sign(&c->q, q) < 0;
  m = factors_with(c, m, k);
  if (sc_op(c, m) == X_FN && sc_word(c, m, 0) == F_LOG && sc_has(c, sc_word(c, m, 1), S_POS))
    m = sc_word(c, m, 1);
  else if (sc_has(c, m, S_POS)) m = inner(c, m);
  return falls ? sx_neg(c, m) : m;
}

static sx simplest(sc *c, sx k, sx body) {
  for (int i = 0; i < MAX_STRIPPED && !c->reading.plain && !sx_top_guard(c, body) &&
                  body != c->neginf && !c->fault.failed;
       i++) {
    const sx next = stripped(c, k, body);
    if (next == body) break;
    body = next;
  }
  return body;
}

/* The first condition of a diagram where it is the same for the whole row over k; else 0. */
static sx guard_of_row(const sc *c, sx k, sx body) {
  const sx g = c->reading.plain ? 0 : sx_top_guard(c, body);
  return g && !sx_occurs(c, k, g) ? g : 0;
}

sx sx_row(sc *c, sx k, sx body) {
  if (c->fault.failed || k == c->zero) return c->zero;
  const sx g = guard_of_row(c, k, body);
  if (g)
    return sx_ite(c, sx_truth(c, g), sx_row(c, k, sx_cofactor(c, body, g, true)),
                  sx_row(c, k, sx_cofactor(c, body, g, false)));
  if (sc_flags(c, body) & S_BOOL) sc_fail(c, "an order of truth values");
  return sx_close(c, X_ROW, k, simplest(c, k, body));
}

static bool is_place(const sc *c, sx x) {
  return sc_op(c, x) == X_FN && sc_word(c, x, 0) == F_PLACE;
}

/* Where the number j stands in a row of the places of another row, all of them, is j's own place
 * there: the place of that is j. With rank = place(r, row of place(k, row)) or of -place(k, row): n
 * - 1 - r, or r. 0: it is none. */
static sx undone(sc *c, sx rank, sx row) {
  sx k[8];
  uint32_t n;
  if (c->reading.plain || !is_place(c, rank)) return 0;
  const sx of = sc_word(c, rank, 2), r = sc_word(c, rank, 1), high = sc_word(c, row, 1);
  if (!sx_same(c, sc_word(c, of, 1), high)) return 0;
  const sx body = sx_open(c, of, k, &n), down = sx_neg(c, body),
           inner = is_place(c, body)   ? body
                   : is_place(c, down) ? down
                                       : 0;
  if (n != 1 || !inner || sc_word(c, inner, 1) != k[0] || sc_word(c, inner, 2) != row) return 0;
  return inner == body ? sx_sub(c, sx_sub(c, high, c->one), r) : r;
}

sx sx_place(sc *c, sx rank, sx row) {
  if (row == c->zero) return c->zero; /* of one element */
  const sx g = sx_top_guard(c, row);
  if (g)
    return sx_ite(c, sx_truth(c, g), sx_place(c, rank, sx_cofactor(c, row, g, true)),
                  sx_place(c, rank, sx_cofactor(c, row, g, false)));
  c->used.ties = true;
  const sx back = undone(c, rank, row);
  return back ? back : sx_fn2(c, F_PLACE, rank, row);
}

void sx_over_places(sc *c, sx k, sx *body) {
  if (!c->used.ties || c->reading.plain || c->fault.failed) return;
  const sx place = sx_find_place(c, k, *body), high = c->store.sym[sc_word(c, k, 0)].high;
  if (!place || sx_occurs(c, k, sc_word(c, place, 2)) ||
      !sx_same(c, sc_word(c, sc_word(c, place, 2), 1), high))
    return;
  const sx at = sc_index(c, high), by_place = sx_subst(c, *body, &(sx_map){place, at}, 1);
  if (!c->fault.failed && !sx_occurs(c, k, by_place))
    *body = sx_subst(c, by_place, &(sx_map){at, k}, 1);
}

/* The place of that rank among the elements `body` over k, the greatest or the least first. Of a
 * row and its negative, one stands for both: the falling one is read from the end. `in_order`: not
 * so, since the operator says which of equal elements comes first, and from the end it is another
 * one. */
typedef struct ranked {
  sx k, rank, n;
  bool least, in_order;
} ranked;

static sx place_among(sc *c, const ranked *r, sx body) {
  const sx k = r->k, n = r->n, g = guard_of_row(c, k, body);
  sx rank = r->rank;
  if (k == c->zero || c->fault.failed) return c->zero;
  if (g)
    return sx_ite(c, sx_truth(c, g), place_among(c, r, sx_cofactor(c, body, g, true)),
                  place_among(c, r, sx_cofactor(c, body, g, false)));
  if (r->least && (body == c->neginf || sx_top_guard(c, body)))
    sc_fail(c, "an order from the least with conditions");
  if (r->least) body = sx_neg(c, body);
  body = simplest(c, k, body);
  const bool known =
      !c->reading.plain && !sx_top_guard(c, body) && body != c->neginf && !c->fault.failed;
  if (!r->in_order && known && pv_q_sign(&c->q, sx_leading(c, body, true)) < 0) {
    body = sx_neg(c, body);
    rank = sx_sub(c, sx_sub(c, n, c->one), rank);
  }
  return sx_place(c, rank, sx_row(c, k, body));
}

/* ---- operators ---- */

/* Of in[0] along dimension k[0]; k[1]: the smallest first; k[2]: the first only, without the
 * dimension; k[3]: of equal elements the first one. */
static sx place_at(sc *c, const pt_tensor *t, const sx *idx, sx *at) {
  const pt_tensor *x = t->in[0];
  const uint32_t d = (uint32_t)t->k[0];
  for (uint32_t i = 0; i < x->rank; i++)
    at[i] = i < d || !t->k[2] ? idx[i] : i > d ? idx[i - 1] : c->zero;
  const sx rank = t->k[2] ? c->zero : idx[d], k = sc_index(c, x->dim[d]);
  at[d] = k;
  const ranked r = {k, rank, x->dim[d], t->k[1], t->k[3]};
  return at[d] = place_among(c, &r, pt_at(c, x, at));
}

static sx place_elem(sc *c, const pt_tensor *t, const sx *idx) {
  sx at[RULE_MAX_RANK];
  return place_at(c, t, idx, at);
}

static sx value_elem(sc *c, const pt_tensor *t, const sx *idx) {
  sx at[RULE_MAX_RANK];
  place_at(c, t, idx, at);
  return pt_at(c, t->in[0], at);
}

static pt_tensor *ordered(sc *c, const pt_tensor *x, uint32_t d, bool least, char kind, pt_elem f) {
  pt_tensor *t = x && x->kind != 'b' ? pt_like(c, x, kind, f) : NULL;
  if (!t) return NULL;
  t->k[0] = (int32_t)d;
  t->k[1] = least;
  return t;
}

enum { TOPK, SORT, ARGSORT };

static const pt_value *define_order(pt_args *a, int which) {
  sc *c = a->c;
  const pt_tensor *x = pt_arg_tensor(a, "self");
  uint32_t d;
  if (!x || x->rank == 0 || x->kind == 'b' || !pt_arg_dim(a, "dim", -1, x, &d)) return NULL;
  const bool least =
      which == TOPK ? !pt_arg_flag(a, "largest", true) : !pt_arg_flag(a, "descending", false);
  pt_tensor *place = ordered(c, x, d, least, 'i', place_elem),
            *value = ordered(c, x, d, least, x->kind, value_elem);
  if (!place || !value || c->fault.failed) return NULL;
  place->k[3] = value->k[3] = which != TOPK && pt_arg_flag(a, "stable", false);
  if (which == TOPK) {
    const sx k = pt_arg_size(a, "k", 1);
    if (!sc_require(c, sx_le(c, c->zero, k)) || !sc_require(c, sx_le(c, k, x->dim[d]))) return NULL;
    if (!pt_arg_flag(a, "sorted", true)) {
      /* Any order is allowed. Of two, libtorch takes the largest, which its partitioning
       * leaves at the end. */
      int64_t n;
      if (!pt_int(c, k, &n) || n > 2) {
        sc_fail(c, "a topk in no order");
        return NULL;
      }
      c->used.unsorted |= n == 2;
    }
    place->dim[d] = value->dim[d] = k;
  }
  return which == ARGSORT ? pt_one(c, place) : pt_list(c, (const pt_tensor *[]){value, place}, 2);
}

static const pt_value *define_arg(pt_args *a, int least) {
  sc *c = a->c;
  const pt_tensor *x = pt_arg_tensor(a, "self");
  uint32_t d = 0;
  const bool keep = pt_arg_flag(a, "keepdim", false), all = !pt_arg(a, "dim");
  if (!x || x->rank == 0 || x->kind == 'b' || c->fault.failed || (all && (keep || x->lead)))
    return NULL;
  if (all) x = pt_flatten(c, x, 0, x->rank - 1);
  if (!x || (!all && !pt_arg_dim(a, "dim", 0, x, &d)) ||
      !sc_require(c, sx_lt(c, c->zero, x->dim[d])))
    return NULL;
  pt_tensor *t = ordered(c, x, d, least, 'i', place_elem);
  if (!t) return NULL;
  t->k[2] = t->k[3] = 1;
  memmove(t->dim + d, t->dim + d + 1, (t->rank - d - 1) * sizeof *t->dim);
  t->rank--;
  return pt_one(c, keep ? pt_unsqueeze(c, t, d) : t);
}

static const struct {
  const char *name;
  pt_define f;
  int which;
} table[] = {
    {"aten::topk", define_order, TOPK},
    {"aten::sort", define_order, SORT},
    {"aten::sort.stable", define_order, SORT},
    {"aten::argsort", define_order, ARGSORT},
    {"aten::argsort.stable", define_order, ARGSORT},
    {"aten::argmax", define_arg, false},
    {"aten::argmin", define_arg, true},
};

bool pt_define_order(const char *name, pt_definition *out) {
  for (size_t i = 0; i < sizeof table / sizeof *table; i++)
    if (!strcmp(name, table[i].name))
      return *out = (pt_definition){table[i].name, table[i].f, table[i].which}, true;
  return false;
}
