/* Conditions as decision diagrams, and what is known about integers: bounds, division. */
#include "validate/prove/prove_int.h"

#include <string.h>

enum { MAX_GE_DEPTH = 24, MAX_FACT_DEPTH = 3, MAX_GE_STEPS = 300 };

/* ---- diagrams ---- */

sx sx_top_guard(const sc *c, sx x) { return sc_op(c, x) == X_ITE ? sc_word(c, x, 0) : 0; }

sx sx_cofactor(sc *c, sx x, sx guard, bool holds) {
  if (sc_op(c, x) != X_ITE || sc_word(c, x, 0) != guard) return x;
  return sc_word(c, x, holds ? 1 : 2);
}

static sx choose(sc *c, sx g, sx x, sx y) {
  return x == y ? x : sc_node(c, X_ITE, (uint32_t[3]){g, x, y}, 3);
}

sx sx_ite(sc *c, sx cond, sx a, sx b) {
  if (c->failed || !sc_work(c, 1)) return c->zero;
  if (cond == c->yes || a == b) return a;
  if (cond == c->no) return b;
  if (c->plain && !sx_top_guard(c, a) && !sx_top_guard(c, b) && a != c->neginf && b != c->neginf &&
      !((sc_flags(c, a) | sc_flags(c, b)) & S_BOOL) &&
      !(sc_has(c, a, S_INT) && sc_has(c, b, S_INT)))
    return sc_node(c, X_FN, (uint32_t[4]){F_IF, cond, a, b}, 4);
  sx g = sx_top_guard(c, cond);
  if (!g) {
    sc_fail(c, "a condition that is none");
    return c->zero;
  }
  const sx ga = sx_top_guard(c, a), gb = sx_top_guard(c, b);
  if (ga && ga < g) g = ga;
  if (gb && gb < g) g = gb;
  const sx x = sx_ite(c, sx_cofactor(c, cond, g, true), sx_cofactor(c, a, g, true),
                      sx_cofactor(c, b, g, true));
  const sx y = sx_ite(c, sx_cofactor(c, cond, g, false), sx_cofactor(c, a, g, false),
                      sx_cofactor(c, b, g, false));
  return choose(c, g, x, y);
}

sx sx_not(sc *c, sx a) { return sx_ite(c, a, c->no, c->yes); }
sx sx_and(sc *c, sx a, sx b) { return sx_ite(c, a, b, c->no); }
sx sx_or(sc *c, sx a, sx b) { return sx_ite(c, a, c->yes, b); }

/* The result of f at one end may have conditions of its own, so that the diagram is put in order
 * again. */
sx sx_lift(sc *c, sx x, sx (*f)(sc *c, sx x, const void *ctx), const void *ctx) {
  const sx g = sx_top_guard(c, x);
  if (c->failed) return c->zero;
  if (!g) return f(c, x, ctx);
  const sx a = sx_lift(c, sc_word(c, x, 1), f, ctx), b = sx_lift(c, sc_word(c, x, 2), f, ctx);
  return sx_ite(c, sc_node(c, X_ITE, (uint32_t[3]){g, c->yes, c->no}, 3), a, b);
}

sx sx_iver(sc *c, sx guard) { return sc_node(c, X_IVER, &guard, 1); }

static sx truth(sc *c, sx guard) {
  return sc_node(c, X_ITE, (uint32_t[3]){guard, c->yes, c->no}, 3);
}

/* ---- bounds of integers ---- */

/* An atom with known bounds in p, the latest first: [*low, *high). For a division, *high is 0. */
static sx bounded_atom(sc *c, sx p, sx *low, sx *high) {
  sx best = 0;
  for (size_t i = 0, n = sx_terms(c, p); i < n; i++) {
    uint32_t q, e;
    sx m, b;
    sx_term(c, p, i, &q, &m);
    for (size_t k = 0, l = sx_factors(c, m); k < l; k++) {
      sx_factor(c, m, k, &b, &e);
      sx lo = c->zero, hi = 0;
      if (sc_op(c, b) == X_SYM && c->sym[sc_word(c, b, 0)].role == 'x')
        hi = c->sym[sc_word(c, b, 0)].high;
      else if (sc_op(c, b) == X_IVER) hi = sx_int(c, 2);
      else if (sc_op(c, b) == X_LEAF && c->r->var[sc_word(c, b, 0)].kind == 'i' &&
               c->r->var[sc_word(c, b, 0)].high) {
        const rule_variable *v = &c->r->var[sc_word(c, b, 0)];
        lo = v->low ? sc_size(c, v->low) : c->zero;
        hi = sc_size(c, v->high);
      } else if (sc_op(c, b) == X_LEAF && c->table_size[sc_word(c, b, 0) & 63]) {
        hi = c->table_size[sc_word(c, b, 0) & 63];
      } else if (sc_op(c, b) == X_FN && sc_word(c, b, 0) == F_PLACE) {
        hi = sc_word(c, sc_word(c, b, 2), 1);
      } else if (sc_op(c, b) != X_DIV) continue;
      if (b > best) best = b, *low = lo, *high = hi;
    }
  }
  return best;
}

static bool ge0(sc *c, sx p, int facts);

/* All sizes as their least value + something: no negative coefficient is left. Other atoms stand as
 * they are. */
static bool by_shift(sc *c, sx p) {
  sx t = c->zero;
  for (size_t i = 0, l = sx_terms(c, p); i < l && !c->failed; i++) {
    uint32_t q, e;
    sx m, b;
    sx_term(c, p, i, &q, &m);
    sx r = sx_q(c, q);
    for (size_t k = 0, n = sx_factors(c, m); k < n; k++) {
      sx_factor(c, m, k, &b, &e);
      const sx_sym *s = sc_op(c, b) == X_SYM ? &c->sym[sc_word(c, b, 0)] : NULL;
      int64_t whole;
      if (!s && !sc_has(c, b, S_NONNEG)) return false;
      if (s && !s->has_low && !sc_has(c, b, S_NONNEG)) return false;
      const bool moves = s && s->has_low && s->low && pv_q_is_int(&c->q, e, &whole) && whole > 0;
      r = sx_mul(c, r, sx_pow(c, moves ? sx_add(c, b, sx_int(c, s->low)) : b, e));
    }
    t = sx_add(c, t, r);
  }
  for (size_t i = 0, l = sx_terms(c, t); i < l; i++) {
    uint32_t q;
    sx m;
    sx_term(c, t, i, &q, &m);
    if (pv_q_sign(&c->q, q) < 0) return false;
  }
  return !c->failed;
}

static bool by_atom(sc *c, sx p, sx atom, sx low, sx high, int facts) {
  sx a, b;
  if (!sx_linear(c, p, atom, &a, &b)) return false;
  if (!high) { /* d * floor(x / d) = x - m with m in [0, d) */
    const sx x = sc_word(c, atom, 0), d = sc_word(c, atom, 1),
             base = sx_add(c, sx_mul(c, a, x), sx_mul(c, b, d));
    if (a == c->one) return ge0(c, base, facts); /* floor(x / d) >= -b where x >= -b d */
    if (a == c->minus_one)
      return ge0(c, sx_add(c, base, sx_sub(c, d, c->one)),
                 facts); /* floor(x / d) <= b where x < (b + 1) d */
    const bool up = ge0(c, a, 0);
    if (up || !ge0(c, sx_neg(c, a), 0)) {
      if (!ge0(c, sx_sub(c, base, sx_mul(c, a, sx_sub(c, d, c->one))), facts)) return false;
      if (up) return true;
    }
    return ge0(c, base, facts);
  }
  const sx least = sx_add(c, sx_mul(c, a, low), b),
           most = sx_add(c, sx_mul(c, a, sx_sub(c, high, c->one)), b);
  if (ge0(c, a, 0)) return ge0(c, least, facts);
  if (ge0(c, sx_neg(c, a), 0)) return ge0(c, most, facts);
  return ge0(c, least, facts) && ge0(c, most, facts);
}

/* p = m * fact + something that is at least 0, with m a monomial that is. */
static bool by_fact(sc *c, sx p, int facts) {
  for (size_t k = 0; k < c->n_facts && !c->failed; k++) {
    const sx f = c->fact[k];
    if (f == p) return true;
    for (size_t i = 0, n = sx_terms(c, p); i < n; i++)
      for (size_t j = 0, l = sx_terms(c, f); j < l; j++) {
        uint32_t q, r;
        sx x, y, m;
        sx_term(c, p, i, &q, &x);
        sx_term(c, f, j, &r, &y);
        if (pv_q_sign(&c->q, q) != pv_q_sign(&c->q, r) || (y == c->one && x != c->one) ||
            (x == c->one && l > 1))
          continue;
        if (!sx_divides(c, y, x, &m) || !sc_has(c, m, S_NONNEG)) continue;
        m = sx_scale(c, pv_q_mul(&c->q, q, pv_q_pow(&c->q, r, -1)), m);
        if (ge0(c, sx_sub(c, p, sx_mul(c, m, f)), facts - 1)) return true;
      }
  }
  return false;
}

static bool ge0(sc *c, sx p, int facts) {
  sx low = 0, high = 0;
  bool ok = false;
  if (c->failed || !sc_work(c, 8)) return false;
  if (sc_has(c, p, S_NONNEG)) return true;
  if (sc_op(c, p) == X_CONST || c->ge_depth >= MAX_GE_DEPTH || sx_terms(c, p) > 60 ||
      c->ge_left-- <= 0)
    return false;
  c->ge_depth++;
  const sx atom = bounded_atom(c, p, &low, &high);
  if (atom) ok = by_atom(c, p, atom, low, high, facts);
  else ok = by_shift(c, p);
  if (!ok && facts > 0) ok = by_fact(c, p, facts);
  c->ge_depth--;
  return ok;
}

bool sx_ge0(sc *c, sx p) {
  if (sx_top_guard(c, p) || sc_op(c, p) == X_NEGINF) return false;
  if (c->ge_depth == 0) c->ge_left = MAX_GE_STEPS;
  return ge0(c, p, MAX_FACT_DEPTH);
}
bool sx_gt0(sc *c, sx p) { return sc_has(c, p, S_POS) || sx_ge0(c, sx_sub(c, p, c->one)); }
bool sx_same(sc *c, sx a, sx b) {
  if (a == b) return true;
  if (sx_top_guard(c, a) || sx_top_guard(c, b)) return false;
  const sx d = sx_sub(c, a, b);
  return d == c->zero || (sc_has(c, d, S_INT) && sx_ge0(c, d) && sx_ge0(c, sx_neg(c, d)));
}

/* ---- comparing ---- */

/* Integer coefficients without a common divisor; positive factors common to all terms taken off. */
static sx scaled(sc *c, sx p) {
  const sx common = sx_content(c, p, false);
  if (common != c->one) p = sx_without(c, p, common);
  for (size_t i = 0; i < sx_terms(c, p) && !c->failed; i++) {
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

static int64_t gcd(int64_t a, int64_t b) {
  if (a < 0) a = -a;
  if (b < 0) b = -b;
  while (b) {
    const int64_t t = a % b;
    a = b;
    b = t;
  }
  return a;
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
    else *g = gcd(*g, v);
  }
  return *g > 0;
}

static int64_t floor_div(int64_t a, int64_t b) {
  return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

/* The part of term i that a division could take out: its coefficient and sizes. */
static sx radix(sc *c, sx p, size_t i) {
  uint32_t q, e;
  sx m, b, r;
  int64_t k;
  sx_term(c, p, i, &q, &m);
  if (m == c->one || !pv_q_is_int(&c->q, q, &k)) return c->one;
  r = sx_int(c, k < 0 ? -k : k);
  for (size_t j = 0, n = sx_factors(c, m); j < n; j++) {
    sx_factor(c, m, j, &b, &e);
    if (sc_op(c, b) == X_SYM && c->sym[sc_word(c, b, 0)].role != 'x' && sc_has(c, b, S_POS))
      r = sx_mul(c, r, sx_pow(c, b, e));
  }
  return r;
}

/* p = e * r + s: the terms that e divides, and the rest. */
static void split_by(sc *c, sx p, sx e, sx *r, sx *s) {
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

static bool within(sc *c, sx s, sx e) {
  return sx_ge0(c, s) && sx_ge0(c, sx_sub(c, sx_sub(c, e, c->one), s));
}

/* p = e r + s with s + t e in [0, e): p < 0 exactly where r < t, p = 0 where r = t and s + t e = 0.
 */
static bool by_radix(sc *c, sx p, sx *r, sx *s) {
  for (size_t i = 0, n = sx_terms(c, p); i < n && !c->failed; i++) {
    const sx e = radix(c, p, i);
    if (e == c->one) continue;
    sx a, b;
    split_by(c, p, e, &a, &b);
    if (a == c->zero || (b == c->zero && a == p)) continue;
    for (int t = 0; t < 3; t++) {
      const int64_t shift = t == 2 ? -1 : t;
      const sx moved = sx_add(c, b, sx_mul(c, sx_int(c, shift), e));
      if (!within(c, moved, e)) continue;
      *r = sx_sub(c, a, sx_int(c, shift));
      *s = moved;
      return true;
    }
  }
  return false;
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

static sx negative(sc *c, sx p);
static sx is_zero(sc *c, sx p);

/* What is known of the sign of a real number: -1, 1, or 0 for nothing. */
static int sign_known(sc *c, sx p) {
  if (sc_has(c, p, S_POS)) return 1;
  if (sc_has(c, sx_neg(c, p), S_POS)) return -1;
  for (int s = -1; s <= 1; s += 2) {
    const sx t = positive_at(c, s < 0 ? p : sx_neg(c, p));
    for (size_t i = 0; i < c->n_path; i++)
      if (c->path[i].holds && sc_op(c, c->path[i].cond) == X_LT &&
          sc_word(c, c->path[i].cond, 0) == t)
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
  return !c->failed;
}

/* p < 0 for a real p, by what is simpler: e^a < e^b is a < b; a factor of a known sign goes; of two
 * factors one is negative and the other is positive. */
static bool by_parts(sc *c, sx p, sx *out) {
  uint32_t q, r;
  sx m, k, a, b;
  if (c->plain) return false;
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
  for (size_t i = 0, n = c->plain ? 0 : sx_terms(c, p); i < n; i++) {
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

bool sx_largest_ge0(sc *c, sx p) {
  sx first = 0, all = c->zero;
  for (size_t i = 0, n = sx_terms(c, p); i < n && !c->failed; i++) {
    uint32_t q;
    sx m;
    sx_term(c, p, i, &q, &m);
    if (sc_op(c, m) != X_TOP || sc_word(c, m, 0) != 1 || pv_q_sign(&c->q, q) < 0 ||
        (first && sc_word(c, m, 1) != sc_word(c, first, 1)))
      return false;
    first = first ? first : m;
  }
  if (!first || !sx_gt0(c, sc_word(c, first, 1))) return false;
  for (size_t i = 0, n = sx_terms(c, p); i < n && !c->failed; i++) {
    uint32_t q, k;
    sx m, at[8];
    sx_term(c, p, i, &q, &m);
    const sx body = sx_open(c, m, at, &k);
    all = sx_add(
        c, all,
        sx_scale(c, q, at[0] == c->zero ? body : sx_subst(c, body, &(sx_map){at[0], c->zero}, 1)));
  }
  return !c->failed && sc_has(c, all, S_NONNEG);
}

static sx negative(sc *c, sx p) {
  uint32_t q;
  sx r, s;
  if (sx_is_q(c, p, &q)) return pv_q_sign(&c->q, q) < 0 ? c->yes : c->no;
  if (sc_has(c, p, S_NONNEG)) return c->no;
  if (sc_has(c, sx_neg(c, p), S_POS)) return c->yes;
  const sx t = scaled(c, p);
  int64_t g, k;
  if (c->failed) return c->no;
  if (!sc_has(c, t, S_INT)) {
    p = positive_at(c, p);
    if (sx_largest_ge0(c, p)) return c->no;
    if (by_parts(c, p, &r)) return r;
    return truth(c, sc_node(c, X_LT, &p, 1));
  }
  p = t;
  if (sx_is_q(c, p, &q)) return pv_q_sign(&c->q, q) < 0 ? c->yes : c->no;
  if (coefficients(c, p, &g, &k) && g > 1) {
    const sx rest =
        sx_scale(c, pv_q_pow(&c->q, pv_q_int(&c->q, g), -1), sx_sub(c, p, sx_int(c, k)));
    p = sx_sub(c, rest, sx_int(c, floor_div(-1 - k, g) + 1));
  }
  if (sx_ge0(c, p)) return c->no;
  if (sx_ge0(c, sx_sub(c, c->minus_one, p))) return c->yes;
  if (by_radix(c, p, &r, &s) && r != p) return negative(c, r);
  if (by_quotient(c, p, &r)) return negative(c, r);
  return truth(c, sc_node(c, X_LT, &p, 1));
}

/* p = 0 for what is a product, also after what its terms share is taken out: one of the factors is.
 * 0: no such thing. */
static sx zero_factor(sc *c, sx p) {
  uint32_t q, e;
  sx m = p, b, r = c->no, rest = c->one;
  if (c->plain) return 0;
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
  for (size_t i = 0, n = sx_factors(c, m); i < n && !c->failed; i++) {
    sx_factor(c, m, i, &b, &e);
    if (pv_q_sign(&c->q, e) > 0) r = sx_or(c, r, is_zero(c, b));
  }
  return rest == c->one ? r : sx_or(c, r, is_zero(c, rest));
}

static sx is_zero(sc *c, sx p) {
  uint32_t q;
  if (sx_is_q(c, p, &q)) return q == PV_ZERO_Q ? c->yes : c->no;
  if (sc_has(c, p, S_NONZERO)) return c->no;
  p = scaled(c, p);
  if (c->failed) return c->no;
  if (sc_has(c, p, S_INT)) {
    int64_t g, k;
    if (sx_ge0(c, sx_sub(c, p, c->one)) || sx_ge0(c, sx_sub(c, c->minus_one, p))) return c->no;
    if (coefficients(c, p, &g, &k)) {
      if (k % g) return c->no;
      p = sx_scale(c, pv_q_pow(&c->q, pv_q_int(&c->q, g), -1), p);
    }
    sx r, s;
    if (by_radix(c, p, &r, &s) && sx_terms(c, s) < sx_terms(c, p) && r != p) {
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
  return truth(c, sc_node(c, X_EQ, &p, 1));
}

/* f at the ends of two diagrams. */
static sx lift2(sc *c, sx a, sx b, sx (*f)(sc *c, sx a, sx b)) {
  const sx g = sx_top_guard(c, a), h = sx_top_guard(c, b);
  if (c->failed) return c->no;
  if (!g && !h) return f(c, a, b);
  const sx t = !h || (g && g < h) ? g : h;
  const sx x = lift2(c, sx_cofactor(c, a, t, true), sx_cofactor(c, b, t, true), f);
  const sx y = lift2(c, sx_cofactor(c, a, t, false), sx_cofactor(c, b, t, false), f);
  return sx_ite(c, truth(c, t), x, y);
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
  if (d && sc_has(c, scaled(c, d), S_INT)) return negative(c, sx_sub(c, scaled(c, d), c->one));
  return sx_not(c, sx_lt(c, b, a));
}
sx sx_eq(sc *c, sx a, sx b) { return lift2(c, a, b, eq_end); }

/* ---- division ---- */

static sx constant_term(sc *c, sx p) {
  for (size_t i = 0, n = sx_terms(c, p); i < n; i++) {
    uint32_t q;
    sx m;
    sx_term(c, p, i, &q, &m);
    if (m == c->one) return sx_q(c, q);
  }
  return c->zero;
}

/* How often a number d goes into the constant of r: what is left of it is in [0, d). */
static sx constant_beyond(sc *c, sx r, sx d) {
  int64_t k, n;
  if (!sx_is_int(c, d, &n) || n <= 0 || !sx_is_int(c, constant_term(c, r), &k)) return c->zero;
  return sx_int(c, floor_div(k, n));
}

static sx div_end(sc *c, sx p, const void *ctx) {
  const sx d = *(const sx *)ctx;
  sx q, r, a, b, e;
  int64_t x, y;
  if (sx_is_int(c, p, &x) && sx_is_int(c, d, &y) && y > 0) return sx_int(c, floor_div(x, y));
  split_by(c, p, d, &q, &r);
  if (within(c, r, d)) return q;
  const sx whole = constant_beyond(c, r, d);
  if (whole != c->zero)
    return sx_add(c, sx_add(c, q, whole), sx_div(c, sx_sub(c, r, sx_mul(c, whole, d)), d));
  for (int t = -1; t <= 1; t += 2)
    if (within(c, sx_sub(c, r, sx_mul(c, sx_int(c, t), d)), d)) return sx_add(c, q, sx_int(c, t));
  for (size_t i = 0, n = sx_terms(c, r); i < n && !c->failed; i++) {
    e = radix(c, r, i);
    if (e == c->one || !sx_divides(c, e, d, &b)) {
      /* The common part of e and a numeric d. */
      if (!sx_is_int(c, d, &y) || !sx_is_int(c, e, &x) || gcd(x, y) == 1) continue;
      e = sx_int(c, gcd(x, y));
      if (!sx_divides(c, e, d, &b)) continue;
    }
    const sx inner = b;
    split_by(c, r, e, &a, &b);
    if (a != c->zero && within(c, b, e)) return sx_add(c, q, sx_div(c, a, inner));
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
  if (d == c->one || c->failed) return p;
  bool positive = !sx_top_guard(c, d) && sx_gt0(c, d);
  if (!positive && !sx_top_guard(c, d) && !c->plain &&
      !sc_decide(c, sx_lt(c, c->zero, d), &positive))
    return c->zero;
  if (!positive) {
    sc_fail(c, "a division by what may not be positive");
    return c->zero;
  }
  return sx_lift(c, p, div_end, &d);
}
sx sx_mod(sc *c, sx p, sx d) { return sx_sub(c, p, sx_mul(c, d, sx_div(c, p, d))); }

/* ---- hypotheses ---- */

bool sc_assume(sc *c, sx guard, bool holds) {
  if (c->n_facts + 2 > SC_MAX_FACTS || c->n_path >= SC_MAX_GUESSES) {
    sc_fail(c, "too many cases within cases");
    return false;
  }
  c->path[c->n_path++] = (sc_guess){guard, holds};
  if (sc_op(c, guard) != X_LT && sc_op(c, guard) != X_EQ) return true;
  const sx p = sc_word(c, guard, 0);
  if (!sc_has(c, p, S_INT)) return true;
  if (sc_op(c, guard) == X_LT) {
    const sx f = holds ? sx_sub(c, c->minus_one, p) : p;
    if (sx_ge0(c, sx_sub(c, c->minus_one, f))) return false;
    c->fact[c->n_facts++] = f;
  } else if (holds) {
    if (sx_ge0(c, sx_sub(c, p, c->one)) || sx_ge0(c, sx_sub(c, c->minus_one, p))) return false;
    c->fact[c->n_facts++] = p;
    c->fact[c->n_facts++] = sx_neg(c, p);
  } else if (sx_ge0(c, p)) {
    c->fact[c->n_facts++] = sx_sub(c, p, c->one);
  } else if (sx_ge0(c, sx_neg(c, p))) {
    c->fact[c->n_facts++] = sx_sub(c, c->minus_one, p);
  }
  return !c->failed;
}
