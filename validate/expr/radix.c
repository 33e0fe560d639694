/* Conditions on indices in mixed radix. D a + b < D c + d with b and d below D is a < c, or a = c
 * and b < d: so a triangle over tokens is one over chunks of D tokens, and one within a chunk. */
#include "validate/expr/expr_int.h"

/* p = d x + y, with as many of p's terms in x as d divides. */
static void divided(sc *c, sx p, sx d, sx *x, sx *y) {
  *x = *y = c->zero;
  int64_t by, times;
  const bool number = sx_is_int(c, d, &by);
  for (size_t i = 0, n = sx_terms(c, p); i < n && !c->fault.failed; i++) {
    uint32_t q;
    sx m, part = 0;
    sx_term(c, p, i, &q, &m);
    const sx t = sx_scale(c, q, m);
    if (number && pv_q_is_int(&c->q, q, &times) && times % by == 0)
      part = sx_scale(c, pv_q_int(&c->q, times / by), m);
    if (!number && !sx_divides(c, d, t, &part)) part = 0;
    if (part) *x = sx_add(c, *x, part);
    else *y = sx_add(c, *y, t);
  }
}

/* The radix that a term of p has: how far p moves with an index, if more than 1. 0: none. */
static sx radix_of(sc *c, sx p, size_t i) {
  uint32_t q, e;
  sx m, b, a, rest;
  int64_t times;
  sx_term(c, p, i, &q, &m);
  for (size_t k = 0, n = m == c->one ? 0 : sx_factors(c, m); k < n; k++) {
    sx_factor(c, m, k, &b, &e);
    if (sc_op(c, b) != X_SYM || c->store.sym[sc_word(c, b, 0)].role != 'x') continue;
    if (!sx_linear(c, p, b, &a, &rest)) continue;
    if (sx_is_int(c, a, &times) ? times < 0 : sx_leading(c, a, true) && !sx_ge0(c, a))
      a = sx_neg(c, a);
    if (a != c->one && sx_gt0(c, a)) return a;
  }
  return 0;
}

sx sx_by_radix(sc *c, sx g) {
  const sx p = sc_word(c, g, 0);
  if (sc_op(c, g) != X_LT || !sc_has(c, p, S_INT)) return 0;
  for (size_t i = 0, n = sx_terms(c, p); i < n && !c->fault.failed; i++) {
    const sx d = radix_of(c, p, i);
    sx x, y;
    if (!d) continue;
    divided(c, p, d, &x, &y);
    if (x == c->zero || !sc_has(c, x, S_INT) || !sc_has(c, y, S_INT)) continue;
    const sx most = sx_sub(c, d, c->one);
    if (!sx_ge0(c, sx_sub(c, most, y)) || !sx_ge0(c, sx_add(c, most, y))) continue;
    const sx within = sx_and(c, sx_eq(c, x, c->zero), sx_lt(c, y, c->zero));
    return c->fault.failed ? 0 : sx_or(c, sx_lt(c, x, c->zero), within);
  }
  return 0;
}

/* ---- a polynomial by one radix ---- */

sx sx_radix_at(sc *c, sx p, size_t i) {
  uint32_t q, e;
  sx m, b, r;
  int64_t k;
  sx_term(c, p, i, &q, &m);
  if (m == c->one || !pv_q_is_int(&c->q, q, &k)) return c->one;
  r = sx_int(c, k < 0 ? -k : k);
  for (size_t j = 0, n = sx_factors(c, m); j < n; j++) {
    sx_factor(c, m, j, &b, &e);
    if (sc_op(c, b) == X_SYM && c->store.sym[sc_word(c, b, 0)].role != 'x' && sc_has(c, b, S_POS))
      r = sx_mul(c, r, sx_pow(c, b, e));
  }
  return r;
}

void sx_split_by(sc *c, sx p, sx e, sx *r, sx *s) {
  *r = *s = c->zero;
  for (size_t i = 0, n = sx_terms(c, p); i < n; i++) {
    uint32_t q;
    sx m, d;
    sx_term(c, p, i, &q, &m);
    m = sx_scale(c, q, m);
    if (sx_divides(c, e, m, &d)) *r = sx_add(c, *r, d);
    else *s = sx_add(c, *s, m);
  }
}

bool sx_in_range(sc *c, sx s, sx e) {
  return sx_ge0(c, s) && sx_ge0(c, sx_sub(c, sx_sub(c, e, c->one), s));
}

/* How often the number e goes into the number that p has as a term. */
static int64_t times_in(const sc *c, sx p, sx e) {
  uint32_t q;
  int64_t by, k;
  sx m;
  for (size_t i = 0, n = sx_is_int(c, e, &by) && by > 0 ? sx_terms(c, p) : 0; i < n; i++) {
    sx_term(c, p, i, &q, &m);
    if (m == c->one && pv_q_is_int(&c->q, q, &k)) return sx_floor_div(k, by);
  }
  return 0;
}

bool sx_split_radix(sc *c, sx p, sx *r, sx *s) {
  for (size_t i = 0, n = sx_terms(c, p); i < n && !c->fault.failed; i++) {
    const sx e = sx_radix_at(c, p, i);
    if (e == c->one) continue;
    sx a, b;
    sx_split_by(c, p, e, &a, &b);
    if (a == c->zero || (b == c->zero && a == p)) continue;
    const int64_t times = times_in(c, b, e);
    for (int t = 0; t < 3; t++) {
      const int64_t shift = (t == 2 ? -1 : t) - times;
      const sx moved = sx_add(c, b, sx_mul(c, sx_int(c, shift), e));
      if (!sx_in_range(c, moved, e)) continue;
      *r = sx_sub(c, a, sx_int(c, shift));
      *s = moved;
      return true;
    }
  }
  return false;
}
