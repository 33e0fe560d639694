/* A difference over its atoms: denominators taken out, one atom put for another, powers and
 * logarithms of products taken apart where their parts have the same. */
#include <math.h>

#include "validate/prove/equal_int.h"

sx sc_without_denominators(sc *c, sx d) {
  for (int round = 0; round < SC_MAX_ROUNDS && !c->fault.failed; round++) {
    sx base = 0;
    uint32_t least = PV_ZERO_Q;
    for (size_t i = 0, n = sx_terms(c, d); i < n; i++) {
      uint32_t q, e;
      sx m, b;
      sx_term(c, d, i, &q, &m);
      for (size_t k = 0, l = sx_factors(c, m); k < l; k++) {
        sx_factor(c, m, k, &b, &e);
        if (sc_op(c, b) != X_ADD || pv_q_sign(&c->q, e) >= 0 || (base && b != base)) continue;
        base = b;
        if (pv_q_sign(&c->q, pv_q_add(&c->q, e, pv_q_mul(&c->q, least, PV_MINUS_Q))) < 0) least = e;
      }
    }
    if (!base) return d;
    sx r = c->zero;
    for (size_t i = 0, n = sx_terms(c, d); i < n && !c->fault.failed; i++) {
      uint32_t q, e, mine = PV_ZERO_Q;
      sx m, b, rest = c->one;
      sx_term(c, d, i, &q, &m);
      for (size_t k = 0, l = sx_factors(c, m); k < l; k++) {
        sx_factor(c, m, k, &b, &e);
        if (b == base) mine = e;
        else rest = sx_mul(c, rest, sx_pow(c, b, e));
      }
      mine = pv_q_add(&c->q, mine, pv_q_mul(&c->q, least, PV_MINUS_Q));
      r = sx_add(c, r, sx_scale(c, q, sx_mul(c, rest, sx_pow(c, base, mine))));
    }
    d = r;
  }
  return d;
}

size_t sc_atoms(const sc *c, sx d, sx *out) {
  size_t n = 0;
  for (size_t i = 0, l = sx_terms(c, d); i < l; i++) {
    uint32_t q, e;
    sx m, b;
    sx_term(c, d, i, &q, &m);
    for (size_t k = 0, f = sx_factors(c, m); k < f; k++) {
      sx_factor(c, m, k, &b, &e);
      bool seen = sc_op(c, b) == X_SYM || sc_op(c, b) == X_CONST;
      for (size_t j = 0; j < n && !seen; j++) seen = out[j] == b;
      if (!seen && n < SC_MAX_ATOMS) out[n++] = b;
    }
  }
  return n;
}

sx sc_replaced(sc *c, sx d, sx u, sx v) {
  sx r = c->zero;
  for (size_t i = 0, n = sx_terms(c, d); i < n && !c->fault.failed; i++) {
    uint32_t q, e;
    sx m, b, t = c->one;
    sx_term(c, d, i, &q, &m);
    for (size_t k = 0, l = sx_factors(c, m); k < l; k++) {
      sx_factor(c, m, k, &b, &e);
      t = sx_mul(c, t, sx_pow(c, b == u ? v : b, e));
    }
    r = sx_add(c, r, sx_scale(c, q, t));
  }
  return r;
}

/* Whether some term has a root of b: then b is not negative. */
static bool has_root(const sc *c, sx d, sx base) {
  for (size_t i = 0, n = sx_terms(c, d); i < n; i++) {
    uint32_t q, e;
    sx m, b;
    sx_term(c, d, i, &q, &m);
    for (size_t k = 0, l = sx_factors(c, m); k < l; k++) {
      sx_factor(c, m, k, &b, &e);
      if (b == base && !pv_q_is_int(&c->q, e, &(int64_t){0})) return true;
    }
  }
  return false;
}

/* The powers of the product m in d as products of powers. */
static sx split_root(sc *c, sx d, sx product) {
  sx r = c->zero;
  for (size_t i = 0, n = sx_terms(c, d); i < n && !c->fault.failed; i++) {
    uint32_t q, e, f;
    sx m, b, x, t = c->one;
    sx_term(c, d, i, &q, &m);
    for (size_t k = 0, l = sx_factors(c, m); k < l; k++) {
      sx_factor(c, m, k, &b, &e);
      if (b != product) {
        t = sx_mul(c, t, sx_pow(c, b, e));
        continue;
      }
      for (size_t j = 0, o = sx_factors(c, product); j < o; j++) {
        sx_factor(c, product, j, &x, &f);
        if (!has_root(c, d, x)) x = sx_abs(c, x);
        t = sx_mul(c, t, sx_pow(c, x, pv_q_mul(&c->q, e, f)));
      }
    }
    r = sx_add(c, r, sx_scale(c, q, t));
  }
  return r;
}

sx sc_split_products(sc *c, sx d) {
  sx a[SC_MAX_ATOMS];
  const size_t n = sc_atoms(c, d, a);
  for (size_t i = 0; i < n && !c->fault.failed; i++) {
    const bool log = sc_op(c, a[i]) == X_FN && sc_word(c, a[i], 0) == F_LOG;
    const sx m = log ? sc_word(c, a[i], 1) : a[i];
    bool all = sc_op(c, m) == X_MUL;
    sx parts = c->zero;
    for (size_t k = 0, l = sx_factors(c, m); k < l && all; k++) {
      sx b;
      uint32_t e;
      sx_factor(c, m, k, &b, &e);
      const sx size = sx_abs(c, b), plain = sc_node(c, X_FN, (uint32_t[2]){F_LOG, b}, 2),
               of_size = sc_node(c, X_FN, (uint32_t[2]){F_LOG, size}, 2);
      sx own = 0;
      all = !log && (has_root(c, d, b) || has_root(c, d, size));
      for (size_t j = 0; j < n && log && !all; j++) {
        all = a[j] == plain || a[j] == of_size;
        if (all) own = a[j];
      }
      if (log && all) parts = sx_add(c, parts, sx_scale(c, e, own));
    }
    if (all) return log ? sc_replaced(c, d, a[i], parts) : split_root(c, d, m);
  }
  return d;
}

/* Whether some term of d divides by all that the monomial `inverse` divides by. */
static bool divides_by(const sc *c, sx d, sx inverse) {
  for (size_t i = 0, n = sx_terms(c, d); i < n; i++) {
    uint32_t q, e;
    sx m, b, want;
    bool all = true;
    sx_term(c, d, i, &q, &m);
    for (size_t j = 0, l = sx_factors(c, inverse); j < l && all; j++) {
      sx_factor(c, inverse, j, &want, &e);
      bool found = false;
      for (size_t k = 0, f = sx_factors(c, m); k < f; k++) {
        sx_factor(c, m, k, &b, &e);
        found |= b == want && pv_q_sign(&c->q, e) < 0;
      }
      all = found;
    }
    if (all) return true;
  }
  return false;
}

sx sc_plain_inverses(sc *c, sx d) {
  sx a[SC_MAX_ATOMS], m;
  uint32_t q;
  const size_t n = sc_atoms(c, d, a);
  for (size_t i = 0; i < n && !c->fault.failed; i++) {
    if (sc_op(c, a[i]) != X_FN || sc_word(c, a[i], 0) != F_SAFE_INV) continue;
    const sx inverse = sx_inv(c, sc_word(c, a[i], 1));
    sx_term(c, inverse, 0, &q, &m);
    if (sx_terms(c, inverse) == 1 && sx_factors(c, m) && divides_by(c, d, m))
      return sc_replaced(c, d, a[i], inverse);
  }
  return d;
}

/* x^e and (x y)^e by other powers in d, which are of the same sides and therefore defined: e^(y log
 * x), 1 / x^-e, x^(e - k) x^k, x^a x^(e - a), x^e y^e. 0: by none. */
static sx by_powers(sc *c, const sx *a, size_t n, sx p) {
  const sx x = sc_word(c, p, 1), e = sc_word(c, p, 2),
           log = sc_node(c, X_FN, (uint32_t[2]){F_LOG, x}, 2);
  for (size_t i = 0; i < n; i++)
    if (sx_occurs(c, log, a[i])) return sx_exp(c, sx_mul(c, e, log));
  for (size_t i = 0; i < n && !c->fault.failed; i++) {
    if (a[i] == p || sc_op(c, a[i]) != X_FN || sc_word(c, a[i], 0) != F_POW) continue;
    const sx y = sc_word(c, a[i], 1), f = sc_word(c, a[i], 2);
    int64_t k;
    if (x == y) {
      const sx rest = sx_sub(c, e, f), other = sc_node(c, X_FN, (uint32_t[3]){F_POW, x, rest}, 3);
      if (sx_is_int(c, rest, &k) && k > 0) return sx_mul(c, a[i], sx_powi(c, x, k));
      if (sx_add(c, e, f) == c->zero) return e < f ? sx_inv(c, a[i]) : 0;
      for (size_t j = 0; j < n; j++)
        if (a[j] == other) return sx_mul(c, a[i], other);
    } else if (e == f && sx_factors(c, x) > 1) {
      const sx z = sx_mul(c, x, sx_inv(c, y)),
               other = sc_node(c, X_FN, (uint32_t[3]){F_POW, z, e}, 3);
      for (size_t j = 0; j < n; j++)
        if (a[j] == other) return sx_mul(c, a[i], other);
    }
  }
  return 0;
}

sx sc_powers_apart(sc *c, sx d) {
  for (int round = 0; round < SC_MAX_ROUNDS && !c->fault.failed; round++) {
    sx a[SC_MAX_ATOMS], v = 0;
    const size_t n = sc_atoms(c, d, a);
    for (size_t i = 0; i < n && !v; i++) {
      if (sc_op(c, a[i]) != X_FN || sc_word(c, a[i], 0) != F_POW) continue;
      v = by_powers(c, a, n, a[i]);
      if (v) d = sc_replaced(c, d, a[i], v);
    }
    if (!v) break;
  }
  return d;
}

sx sc_extremes(sc *c, sx d) {
  sx a[SC_MAX_ATOMS];
  const size_t n = sc_atoms(c, d, a);
  for (size_t i = 0; i < n && !c->fault.failed; i++) {
    if (sc_op(c, a[i]) != X_LEAF) continue;
    sx idx[RULE_MAX_RANK], k[8];
    const uint32_t rank = sc_at(c, a[i])->n - 1, var = sc_word(c, a[i], 0);
    for (uint32_t j = 0; j < rank; j++) {
      const sx at = sc_word(c, a[i], j + 1),
               row = sc_op(c, at) == X_FN && sc_word(c, at, 0) == F_PLACE ? sc_word(c, at, 2) : 0;
      uint32_t m;
      if (!row || sc_word(c, at, 1) != c->zero) continue;
      for (uint32_t l = 0; l < rank; l++) idx[l] = sc_word(c, a[i], l + 1);
      const sx body = sx_open(c, row, k, &m);
      idx[j] = k[0];
      const sx x = sx_leaf(c, var, idx, rank), least = sx_neg(c, x);
      if (body == x) d = sc_replaced(c, d, a[i], sx_largest(c, k[0], x));
      else if (body == least) d = sc_replaced(c, d, a[i], sx_neg(c, sx_largest(c, k[0], least)));
      break;
    }
  }
  return d;
}
