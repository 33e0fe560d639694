/* Sines and cosines of sums by those of their terms, and sin^2 as 1 - cos^2. */
#include <math.h>

#include "validate/prove/equal_int.h"

static bool is_angle(const sc *c, sx a) {
  return sc_op(c, a) == X_FN && (sc_word(c, a, 0) == F_SIN || sc_word(c, a, 0) == F_COS);
}

/* d times the powers of sines and cosines that it divides by. */
static sx without_angles_below(sc *c, sx d) {
  sx a[SC_MAX_ATOMS];
  for (size_t i = 0, n = sc_atoms(c, d, a); i < n && !c->fault.failed; i++) {
    uint32_t least = PV_ZERO_Q, q, e;
    sx m, b;
    for (size_t k = 0, l = is_angle(c, a[i]) ? sx_terms(c, d) : 0; k < l; k++) {
      sx_term(c, d, k, &q, &m);
      for (size_t j = 0, f = sx_factors(c, m); j < f; j++) {
        sx_factor(c, m, j, &b, &e);
        if (b == a[i] &&
            pv_q_sign(&c->q, pv_q_add(&c->q, e, pv_q_mul(&c->q, least, PV_MINUS_Q))) < 0)
          least = e;
      }
    }
    if (least != PV_ZERO_Q) d = sx_mul(c, d, sx_pow(c, a[i], pv_q_mul(&c->q, least, PV_MINUS_Q)));
  }
  return d;
}

/* The least part of m that all angles in d have whole multiples of: 1 / the least common
 * denominator. */
static uint32_t unit_of(sc *c, const sx *a, size_t n, sx m) {
  int64_t all = 1;
  for (size_t i = 0; i < n; i++) {
    for (size_t k = 0, l = is_angle(c, a[i]) ? sx_terms(c, sc_word(c, a[i], 1)) : 0; k < l; k++) {
      uint32_t q;
      sx t;
      int64_t whole;
      sx_term(c, sc_word(c, a[i], 1), k, &q, &t);
      while (t == m && all < 16 &&
             !pv_q_is_int(&c->q, pv_q_mul(&c->q, q, pv_q_int(&c->q, all)), &whole))
        all++;
    }
  }
  return all < 16 ? pv_q_pow(&c->q, pv_q_int(&c->q, all), -1) : PV_ONE_Q;
}

sx sc_angles_apart(sc *c, sx d) {
  sx a[SC_MAX_ATOMS], m;
  uint32_t q;
  int64_t times;
  bool found = false;
  for (int round = 0; round < 3 * SC_MAX_ROUNDS && !c->fault.failed; round++) {
    const size_t n = sc_atoms(c, d, a);
    size_t i = 0;
    sx x = 0, first = 0;
    for (; i < n; i++) {
      if (!is_angle(c, a[i])) continue;
      x = sc_word(c, a[i], 1);
      sx_term(c, x, 0, &q, &m);
      const uint32_t unit = unit_of(c, a, n, m);
      const bool whole =
          pv_q_is_int(&c->q, pv_q_mul(&c->q, q, pv_q_pow(&c->q, unit, -1)), &times) &&
          (times > 1 || times < -1) && times < 9 && times > -9;
      first = whole ? sx_scale(c, unit, m) : sx_scale(c, q, m);
      found = true;
      if (sx_is_long(c, x) || whole) break;
    }
    if (i == n) break;
    const sx rest = sx_sub(c, x, first), sa = sx_fn(c, F_SIN, first), ca = sx_fn(c, F_COS, first),
             sb = sx_fn(c, F_SIN, rest), cb = sx_fn(c, F_COS, rest);
    const bool sine = sc_word(c, a[i], 0) == F_SIN;
    d = sc_replaced(c, d, a[i],
                    sine ? sx_add(c, sx_mul(c, sa, cb), sx_mul(c, ca, sb))
                         : sx_sub(c, sx_mul(c, ca, cb), sx_mul(c, sa, sb)));
  }
  if (found) d = without_angles_below(c, sc_without_denominators(c, d));
  sx r = c->zero;
  for (size_t i = 0, n = sx_terms(c, d); found && i < n && !c->fault.failed; i++) {
    sx t = c->one, b;
    uint32_t e;
    sx_term(c, d, i, &q, &m);
    for (size_t k = 0, l = sx_factors(c, m); k < l; k++) {
      sx_factor(c, m, k, &b, &e);
      const bool square = sc_op(c, b) == X_FN && sc_word(c, b, 0) == F_SIN &&
                          pv_q_is_int(&c->q, e, &times) && times >= 2 && times < 8;
      if (!square) {
        t = sx_mul(c, t, sx_pow(c, b, e));
        continue;
      }
      const sx cosine = sx_fn(c, F_COS, sc_word(c, b, 1)),
               rest = sx_sub(c, c->one, sx_powi(c, cosine, 2));
      t = sx_mul(c, sx_mul(c, t, sx_powi(c, rest, times / 2)), sx_powi(c, b, times % 2));
    }
    r = sx_add(c, r, sx_scale(c, q, t));
  }
  return found ? r : d;
}
