/* Equations among the hypotheses of a case are solved for a size or an attribute, which then gives
 * way to the solution everywhere. */
#include <string.h>

#include "validate/prove/cases_int.h"

static bool bind(sc *c, sx sym, sx to) {
  if (c->here.n_bound_sizes >= SC_MAX_SOLVED || c->fault.failed) return false;
  const sx_map map = {sym, to};
  for (size_t i = 0; i < c->here.n_bound_sizes; i++)
    c->here.bound_size[i].to = sx_subst(c, c->here.bound_size[i].to, &map, 1);
  c->here.bound_size[c->here.n_bound_sizes].from = sym;
  c->here.bound_size[c->here.n_bound_sizes++].to = to;
  return !c->fault.failed;
}

static int negatives(const sc *c, sx p) {
  int k = 0;
  for (size_t i = 0, n = sx_terms(c, p); i < n; i++) {
    uint32_t q;
    sx m;
    sx_term(c, p, i, &q, &m);
    k += pv_q_sign(&c->q, q) < 0;
  }
  return k;
}

static bool is_name(const sc *c, sx m) {
  return sc_op(c, m) == X_SYM && strchr("saq", c->store.sym[sc_word(c, m, 0)].role) != NULL;
}

/* sym = -b / a from a sym + b = 0, a = +-1, or a number that is not 0 for a real attribute. */
static bool solve_linear(sc *c, sx p) {
  sx best = 0, to = 0;
  int least = 1000;
  for (size_t i = 0, n = sx_terms(c, p); i < n && !c->fault.failed; i++) {
    uint32_t q, e;
    sx m, s, a, b;
    sx_term(c, p, i, &q, &m);
    for (size_t k = 0, l = sx_factors(c, m); k < l; k++) {
      sx_factor(c, m, k, &s, &e);
      if (!is_name(c, s) || !sx_linear(c, p, s, &a, &b)) continue;
      const bool whole = sc_has(c, s, S_INT), unit = a == c->one || a == c->minus_one;
      sx v;
      if (unit) v = a == c->one ? sx_neg(c, b) : b;
      else if (!whole && sc_has(c, a, S_NONZERO)) v = sx_neg(c, sx_mul(c, b, sx_inv(c, a)));
      else continue;
      if (whole && !sc_has(c, v, S_INT)) continue;
      const int cost = 4 * negatives(c, v) + (c->store.sym[sc_word(c, s, 0)].role == 's');
      if (cost < least) least = cost, best = s, to = v;
    }
  }
  return best && bind(c, best, to);
}

/* Two terms: a S = b T with numbers; s^k m = n with s > 0; a product of sizes that is 1. */
static bool solve_two(sc *c, sx p) {
  uint32_t q[2], e;
  sx m[2], s;
  int64_t k, a, b;
  if (sx_terms(c, p) != 2) return false;
  sx_term(c, p, 0, &q[0], &m[0]);
  sx_term(c, p, 1, &q[1], &m[1]);
  for (int i = 0; i < 2; i++) {
    if (m[1 - i] != c->one || !sc_has(c, p, S_INT) || pv_q_mul(&c->q, q[i], PV_MINUS_Q) != q[1 - i])
      continue;
    if (sx_factors(c, m[i]) < 2) continue;
    sx_factor(c, m[i], 0, &s, &e);
    if (is_name(c, s) && sc_has(c, m[i], S_POS)) return bind(c, s, c->one);
  }
  if (is_name(c, m[0]) && is_name(c, m[1]) && sc_has(c, m[0], S_INT | S_POS) &&
      sc_has(c, m[1], S_INT | S_POS) && pv_q_is_int(&c->q, q[0], &a) &&
      pv_q_is_int(&c->q, q[1], &b) && (a > 0) != (b > 0)) {
    const sx u = sc_derived(c, "common part", p, 1);
    return bind(c, m[0], sx_mul(c, sx_int(c, b < 0 ? -b : b), u)) &&
           bind(c, m[1], sx_mul(c, sx_int(c, a < 0 ? -a : a), u));
  }
  for (int i = 0; i < 2; i++)
    for (size_t j = 0, l = sx_factors(c, m[i]); j < l; j++) {
      sx_factor(c, m[i], j, &s, &e);
      if (!is_name(c, s) || sc_has(c, s, S_INT) || !sc_has(c, s, S_POS) ||
          !pv_q_is_int(&c->q, e, &k) || k == 0)
        continue;
      if (sx_occurs(c, s, m[1 - i])) continue;
      const sx rest = sx_mul(c, m[i], sx_powi(c, s, -k));
      const sx v =
          sx_neg(c, sx_mul(c, sx_scale(c, q[1 - i], m[1 - i]), sx_inv(c, sx_scale(c, q[i], rest))));
      if (!sc_has(c, v, S_POS)) continue;
      return bind(c, s, sx_pow(c, v, pv_q_pow(&c->q, pv_q_int(&c->q, k), -1)));
    }
  return false;
}

bool sc_solve(sc *c, sx p) { return solve_linear(c, p) || solve_two(c, p); }

bool sc_bounded_below(sc *c, sx f) {
  for (size_t i = 0, n = sx_terms(c, f); i < n && n <= 2; i++) {
    uint32_t q;
    sx m, a, b;
    int64_t k;
    sx_term(c, f, i, &q, &m);
    if (!is_name(c, m) || !sc_has(c, m, S_INT) || !sx_linear(c, f, m, &a, &b) || a != c->one ||
        !sx_is_int(c, b, &k) || k > 0)
      continue;
    const sx_sym s = c->store.sym[sc_word(c, m, 0)];
    if (s.role == 's' || (s.has_low && s.low >= -k)) continue;
    return bind(c, m, sc_derived(c, s.name, m, -k));
  }
  return false;
}

bool sc_bounded_above(sc *c, sx f) {
  uint32_t q;
  sx m, a, b;
  int64_t k;
  for (size_t i = 0, n = sx_terms(c, f); i < n && n <= 2; i++) {
    sx_term(c, f, i, &q, &m);
    if (!is_name(c, m) || !sc_has(c, m, S_INT) || !sx_linear(c, f, m, &a, &b) ||
        a != c->minus_one || !sx_is_int(c, b, &k) || k > 0)
      continue;
    const sx_sym s = c->store.sym[sc_word(c, m, 0)];
    if (s.role == 's' || s.has_low) continue;
    return bind(c, m, sx_neg(c, sc_derived(c, s.name, m, -k)));
  }
  return false;
}
