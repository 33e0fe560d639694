/* Floor division and remainder of integers. */
#include "validate/expr/expr_int.h"
#include "validate/tensor/tensor.h"

static sx constant_term(sc *c, sx p) {
  for (size_t i = 0, n = sx_terms(c, p); i < n; i++) {
    uint32_t q;
    sx m;
    sx_term(c, p, i, &q, &m);
    if (m == c->one) return sx_q(c, q);
  }
  return c->zero;
}

/* How often a number d goes into the constant of r: the remainder is in [0, d). */
static sx constant_beyond(sc *c, sx r, sx d) {
  int64_t k, n;
  if (!sx_is_int(c, d, &n) || n <= 0 || !sx_is_int(c, constant_term(c, r), &k)) return c->zero;
  return sx_int(c, sx_floor_div(k, n));
}

static sx div_end(sc *c, sx p, const void *ctx) {
  const sx d = *(const sx *)ctx;
  sx q, r, a, b, e;
  int64_t x, y;
  if (sx_is_int(c, p, &x) && sx_is_int(c, d, &y) && y > 0) return sx_int(c, sx_floor_div(x, y));
  sx_split_by(c, p, d, &q, &r);
  if (sx_in_range(c, r, d)) return q;
  const sx whole = constant_beyond(c, r, d);
  if (whole != c->zero)
    return sx_add(c, sx_add(c, q, whole), sx_div(c, sx_sub(c, r, sx_mul(c, whole, d)), d));
  for (int t = -1; t <= 1; t += 2)
    if (sx_in_range(c, sx_sub(c, r, sx_mul(c, sx_int(c, t), d)), d))
      return sx_add(c, q, sx_int(c, t));
  for (size_t i = 0, n = sx_terms(c, r); i < n && !c->fault.failed; i++) {
    e = sx_radix_at(c, r, i);
    if (e == c->one || !sx_divides(c, e, d, &b)) {
      /* The common part of e and a numeric d. */
      if (!sx_is_int(c, d, &y) || !sx_is_int(c, e, &x) || sx_gcd(x, y) == 1) continue;
      e = sx_int(c, sx_gcd(x, y));
      if (!sx_divides(c, e, d, &b)) continue;
    }
    const sx inner = b;
    sx_split_by(c, r, e, &a, &b);
    if (a != c->zero && sx_in_range(c, b, e)) return sx_add(c, q, sx_div(c, a, inner));
  }
  /* floor((floor(x / e) + k) / d) = floor((x + k e) / (d e)) */
  const sx k = constant_term(c, r), inner = sx_sub(c, r, k);
  if (sc_op(c, inner) == X_DIV) {
    const sx x2 = sc_word(c, inner, 0), d2 = sc_word(c, inner, 1);
    return sx_add(c, q, sx_div(c, sx_add(c, x2, sx_mul(c, k, d2)), sx_mul(c, d2, d)));
  }
  return sx_add(c, q, sc_node(c, X_DIV, (uint32_t[2]){r, d}, 2));
}

sx sx_div(sc *c, sx p, sx d) {
  if (d == c->one || c->fault.failed) return p;
  bool positive = !sx_top_guard(c, d) && sx_gt0(c, d);
  if (!positive && !sx_top_guard(c, d) && !c->reading.plain &&
      !sc_decide(c, sx_lt(c, c->zero, d), &positive))
    return c->zero;
  if (!positive) {
    sc_fail(c, "a division by what may not be positive");
    return c->zero;
  }
  return sx_lift(c, p, div_end, &d);
}

sx sx_mod(sc *c, sx p, sx d) { return sx_sub(c, p, sx_mul(c, d, sx_div(c, p, d))); }
