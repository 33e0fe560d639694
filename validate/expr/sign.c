/* Comparing: p < 0 and p = 0 as conditions in normal form, decided where bounds, signs or parts of
 * p say so. */
#include "validate/expr/expr_int.h"

sx sx_scaled(sc *c, sx p) {
  const sx common = sx_content(c, p, false);
  if (common != c->one) p = sx_without(c, p, common);
  for (size_t i = 0; i < sx_terms(c, p) && !c->fault.failed; i++) {
    uint32_t q;
    sx m;
    int64_t k;
    sx_term(c, p, i, &q, &m);
    if (pv_q_is_int(&c->q, q, &k)) continue;
    pv_q v;
    if (!pv_q_small(&c->q, q, &v) || v.d > (1 << 30) || v.e < -60 || (v.d == 1 && v.e >= 0))
      return p; /* too large, or whole and larger */
    uint32_t d = pv_q_int(&c->q, (int64_t)v.d);
    if (v.e < 0) d = pv_q_mul(&c->q, d, pv_q_int(&c->q, (int64_t)1 << -v.e));
    p = sx_scale(c, d, p);
    i = (size_t)-1;
  }
  return p;
}

/* p = g * r + k: the greatest common divisor of the coefficients, and the constant. false: too
 * large. */
static bool coefficients(const sc *c, sx p, int64_t *g, int64_t *k) {
  *g = *k = 0;
  for (size_t i = 0, n = sx_terms(c, p); i < n; i++) {
    uint32_t q;
    sx m;
    int64_t v;
    sx_term(c, p, i, &q, &m);
    if (!pv_q_is_int(&c->q, q, &v) || v > (1LL << 50) || v < -(1LL << 50)) return false;
    if (m == c->one) *k = v;
    else *g = sx_gcd(*g, v);
  }
  return *g > 0;
}

static sx positive_at(sc *c, sx p) { /* real p < 0, scaled */
  const sx common = sx_content(c, p, false);
  if (common != c->one) p = sx_without(c, p, common);
  uint32_t q;
  sx m;
  uint64_t least = UINT64_MAX;
  uint32_t best = PV_ONE_Q;
  for (size_t i = 0, n = sx_terms(c, p); i < n; i++) {
    sx_term(c, p, i, &q, &m);
    if (m != c->one && sc_at(c, m)->hash < least) least = sc_at(c, m)->hash, best = q;
  }
  if (pv_q_sign(&c->q, best) < 0) best = pv_q_mul(&c->q, best, PV_MINUS_Q);
  return sx_scale(c, pv_q_pow(&c->q, best, -1), p);
}

/* The sign of a real number as far as it is known: -1, 1, or 0. */
static int sign_known(sc *c, sx p) {
  if (sc_has(c, p, S_POS)) return 1;
  if (sc_has(c, sx_neg(c, p), S_POS)) return -1;
  for (int s = -1; s <= 1; s += 2) {
    const sx t = positive_at(c, s < 0 ? p : sx_neg(c, p));
    for (size_t i = 0; i < c->here.n_path; i++)
      if (c->here.path[i].holds && sc_op(c, c->here.path[i].cond) == X_LT &&
          sc_word(c, c->here.path[i].cond, 0) == t)
        return s;
  }
  return 0;
}

/* The exponent of a monomial that is made of exponentials. */
static bool exponent(sc *c, sx m, sx *out) {
  *out = c->zero;
  for (size_t i = 0, n = sx_factors(c, m); i < n; i++) {
    sx b;
    uint32_t e;
    sx_factor(c, m, i, &b, &e);
    if (sc_op(c, b) != X_FN || sc_word(c, b, 0) != F_EXP) return false;
    *out = sx_add(c, *out, sx_scale(c, e, sc_word(c, b, 1)));
  }
  return !c->fault.failed;
}

static sx negative(sc *c, sx p);

/* p < 0 for a real p, by what is simpler: e^a < e^b is a < b; a factor of a known sign goes; of two
 * factors one is negative and the other is positive. */
static bool by_parts(sc *c, sx p, sx *out) {
  uint32_t q, r;
  sx m, k, a, b;
  if (c->reading.plain) return false;
  if (sx_terms(c, p) == 2) {
    sx_term(c, p, 0, &q, &m);
    sx_term(c, p, 1, &r, &k);
    if (pv_q_mul(&c->q, q, PV_MINUS_Q) == r && exponent(c, m, &a) && exponent(c, k, &b))
      return *out = negative(c, pv_q_sign(&c->q, q) > 0 ? sx_sub(c, a, b) : sx_sub(c, b, a)), true;
  }
  const sx common = sx_content(c, p, true);
  if (sx_is_long(c, p) && common != c->one && sc_op(c, common) != X_CONST) {
    const sx rest = sx_without(c, p, common);
    const int sign = sign_known(c, rest), own = sign_known(c, common);
    if (sign) return *out = negative(c, sign > 0 ? common : sx_neg(c, common)), true;
    if (own) return *out = negative(c, own > 0 ? rest : sx_neg(c, rest)), true;
    if (sx_is_long(c, common)) return false;
    *out = sx_or(c, sx_and(c, negative(c, common), negative(c, sx_neg(c, rest))),
                 sx_and(c, negative(c, sx_neg(c, common)), negative(c, rest)));
    return true;
  }
  if (sx_terms(c, p) != 1) return false;
  sx_term(c, p, 0, &q, &m);
  if (sx_factors(c, m) < 2 || sx_factors(c, m) > 4) return false;
  sx_factor(c, m, 0, &k, &r);
  a = sx_pow(c, k, r);
  b = sx_scale(c, q, sx_mul(c, m, sx_inv(c, a)));
  *out = sx_or(c, sx_and(c, negative(c, a), negative(c, sx_neg(c, b))),
               sx_and(c, negative(c, sx_neg(c, a)), negative(c, b)));
  return true;
}

/* An integer p < 0 with a floor(x / d) in it, once: floor(x / d) < -b is x < -b d, and -floor(x /
 * d) < -b is (b + 1) d <= x. */
static bool by_quotient(sc *c, sx p, sx *out) {
  for (size_t i = 0, n = c->reading.plain ? 0 : sx_terms(c, p); i < n; i++) {
    uint32_t q;
    sx m, a, b;
    sx_term(c, p, i, &q, &m);
    if (sc_op(c, m) != X_DIV || (q != PV_ONE_Q && q != PV_MINUS_Q) || !sx_linear(c, p, m, &a, &b) ||
        a != sx_q(c, q) || sx_occurs(c, m, b))
      continue;
    const sx x = sc_word(c, m, 0), d = sc_word(c, m, 1);
    if (sx_top_guard(c, x) || sx_top_guard(c, b)) continue;
    *out = q == PV_ONE_Q ? sx_add(c, x, sx_mul(c, b, d))
                         : sx_sub(c, sx_mul(c, sx_add(c, b, c->one), d), sx_add(c, x, c->one));
    return true;
  }
  return false;
}

/* An integer p < 0 with a largest in it, once, of which one operand alone says so or is out of the
 * question: a clamp that is compared with a number is what it clamps, compared. */
static bool by_largest(sc *c, sx p, sx *out) {
  for (size_t i = 0, n = c->reading.plain ? 0 : sx_terms(c, p); i < n; i++) {
    uint32_t q, number;
    sx m, a, b;
    bool some = false;
    sx_term(c, p, i, &q, &m);
    const bool up = q == PV_ONE_Q;
    if (sc_op(c, m) != X_MAX || (!up && q != PV_MINUS_Q) || !sx_linear(c, p, m, &a, &b) ||
        a != sx_q(c, q) || sx_occurs(c, m, b))
      continue;
    *out = up ? c->yes : c->no; /* all of the operands, or one of them */
    for (uint32_t k = 0; k < sc_at(c, m)->n; k++) {
      const sx own = sx_add(c, b, sx_mul(c, a, sc_word(c, m, k)));
      some |= sx_is_q(c, own, &number);
      *out = up ? sx_and(c, *out, negative(c, own)) : sx_or(c, *out, negative(c, own));
    }
    if (some) return true;
  }
  return false;
}

static sx negative(sc *c, sx p) {
  uint32_t q;
  sx r, s;
  if (sx_is_q(c, p, &q)) return pv_q_sign(&c->q, q) < 0 ? c->yes : c->no;
  if (sc_has(c, p, S_NONNEG)) return c->no;
  if (sc_has(c, sx_neg(c, p), S_POS)) return c->yes;
  const sx t = sx_scaled(c, p);
  int64_t g, k;
  if (c->fault.failed) return c->no;
  if (!sc_has(c, t, S_INT)) {
    if (sx_always_positive(c, sx_neg(c, p))) return c->yes;
    p = positive_at(c, p);
    if (sx_never_negative(c, p)) return c->no;
    if (by_parts(c, p, &r)) return r;
    return sx_truth(c, sc_node(c, X_LT, &p, 1));
  }
  p = t;
  if (sx_is_q(c, p, &q)) return pv_q_sign(&c->q, q) < 0 ? c->yes : c->no;
  if (coefficients(c, p, &g, &k) && g > 1) {
    const sx rest =
        sx_scale(c, pv_q_pow(&c->q, pv_q_int(&c->q, g), -1), sx_sub(c, p, sx_int(c, k)));
    p = sx_sub(c, rest, sx_int(c, sx_floor_div(-1 - k, g) + 1));
  }
  if (sx_never_negative(c, p)) return c->no;
  if (sx_never_negative(c, sx_sub(c, c->minus_one, p))) return c->yes;
  if (sx_split_radix(c, p, &r, &s) && r != p) return negative(c, r);
  if (by_quotient(c, p, &r)) return negative(c, r);
  if (by_largest(c, p, &r)) return r;
  return sx_truth(c, sc_node(c, X_LT, &p, 1));
}

static sx is_zero(sc *c, sx p);

/* p = 0 for a product, also one with the common factors of its terms taken out: one of the factors
 * is. 0: no such thing. */
static sx zero_factor(sc *c, sx p) {
  uint32_t q, e;
  sx m = p, b, r = c->no, rest = c->one;
  if (c->reading.plain) return 0;
  if (sx_is_long(c, p)) {
    const sx common = sx_content(c, p, true);
    if (common == c->one) return 0;
    rest = sx_without(c, p, common);
    m = common;
    if (sx_is_long(c, m) || sc_op(c, m) == X_CONST) return 0;
  } else {
    sx_term(c, p, 0, &q, &m);
    if (sx_factors(c, m) < 2 || sx_factors(c, m) > 4) return 0;
  }
  for (size_t i = 0, n = sx_factors(c, m); i < n && !c->fault.failed; i++) {
    sx_factor(c, m, i, &b, &e);
    if (pv_q_sign(&c->q, e) > 0) r = sx_or(c, r, is_zero(c, b));
  }
  return rest == c->one ? r : sx_or(c, r, is_zero(c, rest));
}

static sx is_zero(sc *c, sx p) {
  uint32_t q;
  if (sx_is_q(c, p, &q)) return q == PV_ZERO_Q ? c->yes : c->no;
  if (sc_has(c, p, S_NONZERO)) return c->no;
  p = sx_scaled(c, p);
  if (c->fault.failed) return c->no;
  if (sc_has(c, p, S_INT)) {
    int64_t g, k;
    if (sx_ge0(c, sx_sub(c, p, c->one)) || sx_ge0(c, sx_sub(c, c->minus_one, p))) return c->no;
    if (coefficients(c, p, &g, &k)) {
      if (k % g) return c->no;
      p = sx_scale(c, pv_q_pow(&c->q, pv_q_int(&c->q, g), -1), p);
    }
    sx r, s;
    if (sx_split_radix(c, p, &r, &s) && sx_terms(c, s) < sx_terms(c, p) && r != p) {
      return sx_and(c, is_zero(c, r), is_zero(c, s));
    }
  }
  const sx parts = zero_factor(c, p);
  if (parts) return parts;
  /* Signs and scale: the term with the least hash gets coefficient 1. */
  uint32_t best = PV_ONE_Q;
  uint64_t least = UINT64_MAX;
  for (size_t i = 0, n = sx_terms(c, p); i < n; i++) {
    sx m;
    sx_term(c, p, i, &q, &m);
    if (m != c->one && sc_at(c, m)->hash < least) least = sc_at(c, m)->hash, best = q;
  }
  if (!sc_has(c, p, S_INT)) p = sx_scale(c, pv_q_pow(&c->q, best, -1), p);
  else if (pv_q_sign(&c->q, best) < 0) p = sx_neg(c, p);
  return sx_truth(c, sc_node(c, X_EQ, &p, 1));
}

/* f at the ends of two diagrams. */
static sx lift2(sc *c, sx a, sx b, sx (*f)(sc *c, sx a, sx b)) {
  const sx g = sx_top_guard(c, a), h = sx_top_guard(c, b);
  if (c->fault.failed) return c->no;
  if (!g && !h) return f(c, a, b);
  const sx t = !h || (g && g < h) ? g : h;
  const sx x = lift2(c, sx_cofactor(c, a, t, true), sx_cofactor(c, b, t, true), f);
  const sx y = lift2(c, sx_cofactor(c, a, t, false), sx_cofactor(c, b, t, false), f);
  return sx_ite(c, sx_truth(c, t), x, y);
}

static sx lt_end(sc *c, sx a, sx b) {
  if (a == c->neginf || b == c->neginf) return b == c->neginf ? c->no : c->yes;
  return negative(c, sx_sub(c, a, b));
}

static sx eq_end(sc *c, sx a, sx b) {
  if (a == b) return c->yes;
  if (a == c->neginf || b == c->neginf) return c->no;
  if ((sc_flags(c, a) & S_BOOL) || (sc_flags(c, b) & S_BOOL)) return sx_ite(c, a, b, sx_not(c, b));
  return is_zero(c, sx_sub(c, a, b));
}

sx sx_lt(sc *c, sx a, sx b) { return lift2(c, a, b, lt_end); }

sx sx_le(sc *c, sx a, sx b) {
  const sx d = sx_top_guard(c, a) || sx_top_guard(c, b) || a == c->neginf || b == c->neginf
                   ? 0
                   : sx_sub(c, a, b);
  /* Integers have one form only: a <= b is a < b + 1. */
  if (d && sc_has(c, sx_scaled(c, d), S_INT))
    return negative(c, sx_sub(c, sx_scaled(c, d), c->one));
  return sx_not(c, sx_lt(c, b, a));
}

sx sx_eq(sc *c, sx a, sx b) { return lift2(c, a, b, eq_end); }
