/* Powers with rational exponents: roots of numbers, common factors of sums taken out, (x^2)^(1/2)
 * as the absolute value. */
#include "validate/expr/expr_int.h"

enum { MAX_EXPAND = 12 };

bool sx_q_even(const sc *c, uint32_t q) {
  int64_t k;
  return pv_q_is_int(&c->q, q, &k) && k % 2 == 0;
}

/* A whole number at the exponent e: its small primes, and what is left. */
static void push_factors(sc *c, __int128 n, uint32_t e) {
  enum { SMALL = 10000, HALF = 62 };
  const bool wide = n > INT64_MAX; /* stands as it is */
  uint64_t left = wide ? 1 : (uint64_t)n;
  for (uint64_t p = 3; p * p <= left && p < SMALL; p += 2)
    for (; left % p == 0; left /= p) sx_push(c, sx_int(c, (int64_t)p), e);
  if (left > 1) sx_push(c, sx_int(c, (int64_t)left), e);
  if (!wide) return;
  const uint32_t high = pv_q_mul(&c->q, pv_q_int(&c->q, (int64_t)(n >> HALF)),
                                 pv_q_pow(&c->q, pv_q_int(&c->q, 2), HALF)),
                 low = pv_q_int(&c->q, (int64_t)(n & ((INT64_C(1) << HALF) - 1)));
  sx_push(c, sx_q(c, pv_q_add(&c->q, high, low)), e);
}

/* v^e for a rational v, e a fraction: the factors of its numerator and of its denominator, so that
 * squares come out and roots of v and of 1/v cancel. Numbers of more than 128 bits stand as they
 * are. */
static sx root_of_number(sc *c, uint32_t v, uint32_t e) {
  pv_q x;
  if (pv_q_sign(&c->q, v) < 0) {
    sc_fail(c, "a root of a negative number");
    return c->zero;
  }
  if (v == PV_ZERO_Q) return c->zero;
  const size_t start = c->store.sp;
  if (pv_q_small(&c->q, v, &x)) {
    sx_push(c, sx_int(c, 2), pv_q_mul(&c->q, pv_q_int(&c->q, x.e), e));
    push_factors(c, x.n, e);
    push_factors(c, x.d, pv_q_mul(&c->q, e, PV_MINUS_Q));
  } else {
    sx_push(c, sx_q(c, v), e);
  }
  return sx_product_finish(c, start, PV_ONE_Q);
}

uint32_t sx_exponent_in(const sc *c, sx m, sx b) {
  for (size_t i = 0, n = sx_factors(c, m); i < n; i++) {
    sx x;
    uint32_t e;
    sx_factor(c, m, i, &x, &e);
    if (x == b) return e;
  }
  return PV_ZERO_Q;
}

int sx_q_compare(sc *c, uint32_t a, uint32_t b) {
  return pv_q_sign(&c->q, pv_q_add(&c->q, a, pv_q_mul(&c->q, b, PV_MINUS_Q)));
}

/* The common factor of a sum's terms: known-positive bases at their least exponent, others
 * (`any_base`) where all terms have them; and the coefficient of the term with the least hash (its
 * absolute value unless `any_base`). */
sx sx_content(sc *c, sx a, bool any_base) {
  enum { LONG_SUM = 24 };
  const size_t n = sx_terms(c, a);
  sx r = c->one;
  for (size_t i = 0; i < n && !c->fault.failed; i++) {
    uint32_t q, e;
    sx m, b;
    sx_term(c, a, i, &q, &m);
    for (size_t k = 0, l = sx_factors(c, m); k < l; k++) {
      sx_factor(c, m, k, &b, &e);
      if (sx_exponent_in(c, r, b) != PV_ZERO_Q || sc_op(c, b) == X_CONST || sc_op(c, b) == X_IVER)
        continue;
      const bool pos = sc_has(c, b, S_POS);
      if (!pos && !any_base) continue;
      if (n >= LONG_SUM && !sc_work(c, n))
        return c->one; /* what takes the square of its length is not to run away */
      uint32_t least = e;
      for (size_t j = 0; j < n; j++) {
        uint32_t p;
        sx o;
        sx_term(c, a, j, &p, &o);
        const uint32_t f = sx_exponent_in(c, o, b);
        if (sx_q_compare(c, f, least) < 0) least = f;
      }
      if (least != PV_ZERO_Q && (pos || pv_q_sign(&c->q, least) > 0)) {
        const size_t start = c->store.sp;
        sx_push(c, b, least);
        r = sx_mul(c, r, sx_product_finish(c, start, PV_ONE_Q));
      }
    }
  }
  return r;
}

/* Factor by factor, so that a sum among them is not multiplied out where it cancels. */
sx sx_without(sc *c, sx a, sx common) {
  sx r = c->zero;
  for (size_t i = 0, n = sx_terms(c, a); i < n && !c->fault.failed; i++) {
    uint32_t q, e;
    sx m, b;
    sx_term(c, a, i, &q, &m);
    sx t = sx_q(c, q);
    for (size_t k = 0, l = sx_factors(c, m); k < l; k++) {
      sx_factor(c, m, k, &b, &e);
      if (sx_exponent_in(c, common, b) == PV_ZERO_Q) t = sx_mul(c, t, sx_single(c, b, e));
    }
    for (size_t k = 0, l = sx_factors(c, common); k < l; k++) {
      sx_factor(c, common, k, &b, &e);
      t = sx_mul(
          c, t,
          sx_pow(c, b, pv_q_add(&c->q, sx_exponent_in(c, m, b), pv_q_mul(&c->q, e, PV_MINUS_Q))));
    }
    r = sx_add(c, r, t);
  }
  return r;
}

uint32_t sx_leading(sc *c, sx a, bool any_sign) {
  uint32_t best = PV_ONE_Q;
  uint64_t least = UINT64_MAX;
  for (size_t i = 0, n = sx_terms(c, a); i < n; i++) {
    uint32_t q;
    sx m;
    sx_term(c, a, i, &q, &m);
    if (c->store.node[m].hash < least) least = c->store.node[m].hash, best = q;
  }
  if (!any_sign && pv_q_sign(&c->q, best) < 0) best = pv_q_mul(&c->q, best, PV_MINUS_Q);
  return best;
}

sx sx_single(sc *c, sx base, uint32_t q) {
  const size_t start = c->store.sp;
  sx_push(c, base, q);
  return sx_product_finish(c, start, PV_ONE_Q);
}

static sx pow_sum(sc *c, sx a, uint32_t q) {
  const bool whole = pv_q_is_int(&c->q, q, &(int64_t){0});
  const sx common = sx_content(c, a, whole);
  sx base = common == c->one ? a : sx_without(c, a, common);
  const uint32_t lead = sx_leading(c, base, whole);
  base = sx_scale(c, pv_q_pow(&c->q, lead, -1), base);
  if (c->fault.failed) return c->zero;
  sx r = sx_single(c, base, q);
  if (common != c->one) r = sx_mul(c, r, sx_pow(c, common, q));
  return lead == PV_ONE_Q ? r : sx_mul(c, r, sx_pow(c, sx_q(c, lead), q));
}

static sx pow_monomial(sc *c, uint32_t coef, sx m, uint32_t q) {
  const bool whole = pv_q_is_int(&c->q, q, &(int64_t){0});
  sx r = c->one, rest = c->one;
  for (size_t i = 0, n = sx_factors(c, m); i < n && !c->fault.failed; i++) {
    sx b;
    uint32_t e;
    sx_factor(c, m, i, &b, &e);
    const bool fractional = !pv_q_is_int(&c->q, e, &(int64_t){0});
    const size_t start = c->store.sp;
    if (whole || fractional || sc_has(c, b, S_NONNEG)) {
      sx_push(c, b, pv_q_mul(&c->q, e, q));
      r = sx_mul(c, r, sx_product_finish(c, start, PV_ONE_Q));
    } else if (sx_q_even(c, e)) { /* (b^2)^q is |b|^2q */
      sx_push(c, sx_abs(c, b), pv_q_mul(&c->q, e, q));
      r = sx_mul(c, r, sx_product_finish(c, start, PV_ONE_Q));
    } else {
      sx_push(c, b, e);
      rest = sx_mul(c, rest, sx_product_finish(c, start, PV_ONE_Q));
    }
  }
  if (whole || pv_q_sign(&c->q, coef) > 0) {
    if (coef != PV_ONE_Q) r = sx_mul(c, r, sx_pow(c, sx_q(c, coef), q));
    if (rest == c->one) return r;
    return sx_mul(c, r, sx_single(c, rest, q));
  }
  rest = sx_scale(c, PV_MINUS_Q, rest);
  r = sx_mul(c, r, sx_pow(c, sx_q(c, pv_q_mul(&c->q, coef, PV_MINUS_Q)), q));
  if (rest == c->minus_one) {
    sc_fail(c, "a root of a negative number");
    return c->zero;
  }
  return sx_mul(c, r, sx_single(c, rest, q));
}

typedef struct pow_ctx {
  uint32_t q;
} pow_ctx;

static sx pow_end(sc *c, sx a, const void *ctx) {
  const uint32_t q = ((const pow_ctx *)ctx)->q;
  int64_t k;
  const bool whole = pv_q_is_int(&c->q, q, &k);
  if (a == c->neginf) {
    sc_fail(c, "a power of minus infinity");
    return a;
  }
  if (sc_flags(c, a) & S_BOOL) sc_fail(c, "arithmetic on truth values");
  if (sc_op(c, a) == X_CONST) {
    if (a == c->zero) {
      if (pv_q_sign(&c->q, q) < 0) sc_fail(c, "division by zero where a condition holds");
      return c->zero;
    }
    if (!whole) return root_of_number(c, sc_word(c, a, 0), q);
    return sx_q(c, pv_q_pow(&c->q, sc_word(c, a, 0), k));
  }
  if (c->reading.plain && !sx_of_sizes(c, &a, 1)) return sx_fn2(c, F_POWER, a, sx_q(c, q));
  if (sx_is_long(c, a)) {
    if (!whole || k < 0) return pow_sum(c, a, q);
    if (k > MAX_EXPAND) {
      sc_fail(c, "a high power of a sum");
      return c->zero;
    }
    sx r = a;
    while (--k > 0) r = sx_mul(c, r, a);
    return r;
  }
  uint32_t coef;
  sx m;
  sx_term(c, a, 0, &coef, &m);
  return pow_monomial(c, coef, m, q);
}

sx sx_pow(sc *c, sx a, uint32_t q) {
  if (q == PV_ZERO_Q) return c->one;
  if (q == PV_ONE_Q || c->fault.failed) return a;
  if (a == c->zero && pv_q_sign(&c->q, q) < 0) {
    c->fault.undefined = true;
    sc_fail(c, "division by zero");
    return a;
  }
  if (pv_q_sign(&c->q, q) < 0) a = sx_reached(c, a, c->zero);
  return sx_lift(c, a, pow_end, &(pow_ctx){q});
}

sx sx_powi(sc *c, sx a, int64_t k) { return sx_pow(c, a, pv_q_int(&c->q, k)); }

sx sx_inv(sc *c, sx a) { return sx_pow(c, a, PV_MINUS_Q); }

sx sx_sqrt(sc *c, sx a) { return sx_pow(c, a, pv_q_pow(&c->q, pv_q_int(&c->q, 2), -1)); }
