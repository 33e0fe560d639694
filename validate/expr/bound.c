/* Bounds of integers: that one is at least 0, by the bounds of its atoms, by the least
 * values of sizes, and by the facts of the case. */
#include "validate/expr/expr_int.h"
#include "validate/tensor/tensor.h"

enum { MAX_GE_DEPTH = 24, MAX_FACT_DEPTH = 3, MAX_GE_STEPS = 300 };
enum { MAX_HALVES = 30, MAX_PARTS = 1 << 30 };

bool sx_leaf_range(sc *c, sx leaf, sx *low, sx *high) {
  if (sc_op(c, leaf) != X_LEAF) return false;
  const rule_variable *v = &c->r->var[sc_word(c, leaf, 0)];
  const sx table = c->ranges.table_size[sc_word(c, leaf, 0) & 63];
  const bool said = v->kind == 'i' && v->high;
  *low = said && v->low ? sc_size(c, v->low) : c->zero;
  *high = said ? sc_size(c, v->high) : table;
  return *high != 0;
}

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
      if (sc_op(c, b) == X_SYM && c->store.sym[sc_word(c, b, 0)].role == 'x')
        hi = c->store.sym[sc_word(c, b, 0)].high;
      else if (sc_op(c, b) == X_IVER) hi = sx_int(c, 2);
      else if (sc_op(c, b) == X_FN && sc_word(c, b, 0) == F_PLACE)
        hi = sc_word(c, sc_word(c, b, 2), 1);
      else if (!sx_leaf_range(c, b, &lo, &hi) && !sx_narrow_bounds(c, b, &lo, &hi) &&
               sc_op(c, b) != X_DIV)
        continue;
      if (b > best) best = b, *low = lo, *high = hi;
    }
  }
  return best;
}

/* All sizes as their least value + something: no negative coefficient is left. Other atoms stand as
 * they are. */
static bool by_shift(sc *c, sx p) {
  sx t = c->zero;
  for (size_t i = 0, l = sx_terms(c, p); i < l && !c->fault.failed; i++) {
    uint32_t q, e;
    sx m, b;
    sx_term(c, p, i, &q, &m);
    sx r = sx_q(c, q);
    for (size_t k = 0, n = sx_factors(c, m); k < n; k++) {
      sx_factor(c, m, k, &b, &e);
      const sx_sym *s = sc_op(c, b) == X_SYM ? &c->store.sym[sc_word(c, b, 0)] : NULL;
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
  return !c->fault.failed;
}

static bool ge0(sc *c, sx p, int facts);

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

static bool few_values(const sc *c, sx x) {
  int64_t high;
  return sc_op(c, x) == X_SYM && c->store.sym[sc_word(c, x, 0)].role == 'x' &&
         sx_is_int(c, c->store.sym[sc_word(c, x, 0)].high, &high);
}

/* How far below 0 an integer p may seem to be by a fact times q that takes the index `at` out of
 * it: by all but one of q's parts. An integer above -1 is at least 0. Of open sizes that would be
 * asked in vain too often. */
static sx slack(sc *c, sx p, sx at, uint32_t q) {
  pv_q x;
  if (!few_values(c, at) || !sc_has(c, p, S_INT) || !pv_q_small(&c->q, q, &x) ||
      x.e < -MAX_HALVES || x.d > MAX_PARTS)
    return c->zero;
  const int64_t parts = (int64_t)x.d << (x.e < 0 ? -x.e : 0);
  return sx_q(
      c, pv_q_mul(&c->q, pv_q_int(&c->q, parts - 1), pv_q_pow(&c->q, pv_q_int(&c->q, parts), -1)));
}

/* p = m * fact + something that is at least 0, with m a monomial that is. */
static bool by_fact(sc *c, sx p, int facts) {
  for (size_t k = 0; k < c->here.n_facts && !c->fault.failed; k++) {
    const sx f = c->here.fact[k];
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
        const uint32_t times = pv_q_mul(&c->q, q, pv_q_pow(&c->q, r, -1));
        m = sx_scale(c, times, m);
        const sx rest = sx_sub(c, p, sx_mul(c, m, f));
        if (ge0(c, sx_add(c, rest, slack(c, p, x, times)), facts - 1)) return true;
      }
  }
  return false;
}

static bool ge0(sc *c, sx p, int facts) {
  sx low = 0, high = 0;
  bool ok = false;
  if (c->fault.failed || !sc_work(c, 8)) return false;
  if (sc_has(c, p, S_NONNEG)) return true;
  if (sc_op(c, p) == X_CONST || c->budget.ge_depth >= MAX_GE_DEPTH || sx_terms(c, p) > 60 ||
      c->budget.ge_left-- <= 0)
    return false;
  c->budget.ge_depth++;
  const sx atom = bounded_atom(c, p, &low, &high);
  if (atom) ok = by_atom(c, p, atom, low, high, facts);
  else ok = by_shift(c, p);
  if (!ok && facts > 0) ok = by_fact(c, p, facts);
  c->budget.ge_depth--;
  return ok;
}

/* The greatest common divisor of an integer's coefficients, its constant aside, which is in
 * *constant; at least 1. */
static int64_t content(sc *c, sx p, int64_t *constant) {
  int64_t all = 0;
  *constant = 0;
  for (size_t i = 0, n = sx_terms(c, p); i < n; i++) {
    uint32_t q;
    int64_t k;
    sx m;
    sx_term(c, p, i, &q, &m);
    if (!pv_q_is_int(&c->q, q, &k) || k <= -MAX_PARTS || k >= MAX_PARTS) return 1;
    if (m == c->one) *constant = k;
    else
      for (int64_t r = k < 0 ? -k : k; r; k = all % r, all = r, r = k) continue;
  }
  return all ? all : 1;
}

/* g x + k is at least 0 where x + floor(k / g) is, for integers: 2 i - 1 where i - 1 is. */
static sx tightened(sc *c, sx p) {
  int64_t k;
  if (!sc_has(c, p, S_INT)) return p;
  const int64_t g = content(c, p, &k);
  if (g == 1) return p;
  const int64_t down = k >= 0 ? k / g : -((-k + g - 1) / g);
  const uint32_t part = pv_q_pow(&c->q, pv_q_int(&c->q, g), -1);
  return sx_add(c, sx_scale(c, part, sx_sub(c, p, sx_int(c, k))), sx_int(c, down));
}

bool sx_ge0(sc *c, sx p) {
  if (sx_top_guard(c, p) || sc_op(c, p) == X_NEGINF) return false;
  if (c->budget.ge_depth == 0) c->budget.ge_left = MAX_GE_STEPS;
  if (!sc_has(c, p, S_NONNEG) && c->budget.ge_depth == 0) p = tightened(c, p);
  return ge0(c, p, MAX_FACT_DEPTH);
}

bool sx_gt0(sc *c, sx p) { return sc_has(c, p, S_POS) || sx_ge0(c, sx_sub(c, p, c->one)); }

bool sx_same(sc *c, sx a, sx b) {
  if (a == b) return true;
  if (sx_top_guard(c, a) || sx_top_guard(c, b)) return false;
  const sx d = sx_sub(c, a, b);
  return d == c->zero || (sc_has(c, d, S_INT) && sx_ge0(c, d) && sx_ge0(c, sx_neg(c, d)));
}
