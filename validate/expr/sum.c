/* Sums and products over an index. A sum is linear, factors that do not depend on the index move
 * outside, nested sums are one block split into connected parts, and ranges are cut where a
 * condition on the index changes. */
#include "validate/expr/expr_int.h"

enum { MAX_COPIES = 4 };
enum { MAX_VALUES = 16 }; /* of an index that is given each of them */
enum { MAX_FACTORS = 8 }; /* of a product that is written out */

/* ---- closing a block of indices over one monomial ---- */

/* The sum of k, k^2 and k^3 over k < n. 0: of something else. */
static sx closed_form(sc *c, sx body, sx k) {
  uint32_t e;
  sx b;
  int64_t p;
  if (sx_factors(c, body) != 1) return 0;
  sx_factor(c, body, 0, &b, &e);
  if (b != k || !pv_q_is_int(&c->q, e, &p) || p < 1 || p > 3) return 0;
  const sx n = sx_range_of(c, k), less = sx_sub(c, n, c->one),
           pairs = sx_scale(c, pv_q_pow(&c->q, pv_q_int(&c->q, 2), -1), sx_mul(c, n, less));
  if (p == 1) return pairs;
  if (p == 3) return sx_powi(c, pairs, 2);
  return sx_scale(c, pv_q_pow(&c->q, pv_q_int(&c->q, 3), -1), sx_mul(c, pairs, sx_add(c, n, less)));
}

/* Each connected part of the block is a sum of its own. */
static sx close_parts(sc *c, sx body, sx *k, uint32_t n) {
  sx result = c->one, rest = body;
  bool done[SX_MAX_BLOCK] = {false};
  for (uint32_t i = 0; i < n && !c->fault.failed; i++) {
    if (done[i]) continue;
    sx part[SX_MAX_BLOCK] = {k[i]}, mine = c->one;
    uint32_t m = 1;
    done[i] = true;
    for (bool grew = true; grew && !c->fault.failed;) {
      grew = false;
      sx other = c->one;
      for (size_t j = 0, l = sx_factors(c, rest); j < l; j++) {
        sx b;
        uint32_t e;
        bool linked = false;
        sx_factor(c, rest, j, &b, &e);
        for (uint32_t t = 0; t < m; t++) linked |= sx_occurs(c, part[t], b);
        if (!linked) {
          other = sx_mul(c, other, sx_pow(c, b, e));
          continue;
        }
        mine = sx_mul(c, mine, sx_pow(c, b, e));
        grew = true;
        for (uint32_t t = 0; t < n; t++)
          if (!done[t] && sx_occurs(c, k[t], b)) done[t] = true, part[m++] = k[t];
      }
      rest = other;
    }
    const sx closed = m == 1 ? closed_form(c, mine, part[0]) : 0;
    result = sx_mul(c, result,
                    mine == c->one ? sx_range_of(c, k[i])
                    : closed       ? closed
                                   : sx_close_block(c, X_SUM, mine, part, m));
  }
  return sx_mul(c, result, rest);
}

/* Whether b, an X_SUM with exponent e, can join the block: its ranges do not move with it. */
static bool joins(sc *c, sx b, uint32_t e, const sx *k, uint32_t n, int64_t *times) {
  if (sc_op(c, b) != X_SUM || !pv_q_is_int(&c->q, e, times) || *times < 1 || *times > MAX_COPIES)
    return false;
  bool linked = false;
  const uint32_t inner = sc_word(c, b, 0);
  for (uint32_t t = 0; t < n; t++) {
    linked |= sx_occurs(c, k[t], b);
    for (uint32_t i = 0; i < inner; i++)
      if (sx_occurs(c, k[t], sc_word(c, b, i + 1))) return false;
  }
  return linked && n + inner * (uint32_t)*times <= SX_MAX_BLOCK;
}

static sx sum_monomial(sc *c, sx k, sx m) {
  sx sym[SX_MAX_BLOCK] = {k}, body = c->one;
  uint32_t n = 1;
  for (bool again = true; again && !c->fault.failed;) {
    again = false;
    body = c->one;
    const sx from = m;
    for (size_t i = 0, l = sx_factors(c, from); i < l && !c->fault.failed; i++) {
      sx b, inner[SX_MAX_BLOCK];
      uint32_t e, more;
      int64_t times;
      sx_factor(c, from, i, &b, &e);
      if (again || !joins(c, b, e, sym, n, &times)) {
        body = sx_mul(c, body, sx_pow(c, b, e));
        continue;
      }
      for (again = true; times > 0; times--) {
        body = sx_mul(c, body, sx_open(c, b, inner, &more));
        for (uint32_t t = 0; t < more; t++)
          if (inner[t] != c->zero) sym[n++] = inner[t];
      }
    }
    m = body;
  }
  if (sx_terms(c, body) > 1 || sx_top_guard(c, body)) { /* what was opened is no product any more */
    for (uint32_t i = n; i-- > 0;) body = sx_sum(c, sym[i], body);
    return body;
  }
  uint32_t q;
  sx_term(c, body, 0, &q, &m);
  return sx_scale(c, q, close_parts(c, m, sym, n));
}

/* ---- sums ---- */

bool sx_cut_of(sc *c, sx g, sx k, sx_cut *out) {
  sx a, b;
  if (sc_op(c, g) != X_LT && sc_op(c, g) != X_EQ) return false;
  if (!sx_linear(c, sc_word(c, g, 0), k, &a, &b) || (a != c->one && a != c->minus_one) ||
      !sc_has(c, b, S_INT))
    return false;
  out->point = sc_op(c, g) == X_EQ;
  out->lower = a == c->one;
  out->at = out->lower ? sx_neg(c, b) : b;
  if (!out->point && !out->lower) out->at = sx_add(c, b, c->one);
  return true;
}

bool sx_cuts(sc *c, sx g, sx k, sx *at, bool *lower) {
  sx_cut t;
  if (!sx_cut_of(c, g, k, &t) || t.point) return false;
  *at = t.at;
  *lower = t.lower;
  return true;
}

sx sx_over(sc *c, sx k, sx body, sx from, sx n, sx (*f)(sc *c, sx k, sx body)) {
  if (n == c->zero) return c->zero;
  const sx i = sc_index(c, n);
  body = sx_subst(c, body, &(sx_map){k, sx_add(c, i, from)}, 1);
  if (i == c->zero) return body;
  return f(c, i, body);
}

static sx sum_cut(sc *c, sx k, const sx_cut *t, sx x, sx y) {
  const sx high = sx_range_of(c, k), low_part = t->lower ? x : y, high_part = t->lower ? y : x;
  if (t->point) {
    const sx in = sx_and(c, sx_le(c, c->zero, t->at), sx_lt(c, t->at, high));
    const sx_map to = {k, t->at};
    return sx_add(c,
                  sx_ite(c, in, sx_sub(c, sx_subst(c, x, &to, 1), sx_subst(c, y, &to, 1)), c->zero),
                  sx_sum(c, k, y));
  }
  return sx_add(c, sx_over(c, k, low_part, c->zero, t->at, sx_sum),
                sx_over(c, k, high_part, t->at, sx_sub(c, high, t->at), sx_sum));
}

/* The element of an integer variable that the condition compares with a number. 0: it compares
 * something else. */
static sx compared(sc *c, sx g, sx *number) {
  const sx p = sc_word(c, g, 0);
  uint32_t q;
  sx a, m;
  if ((sc_op(c, g) != X_LT && sc_op(c, g) != X_EQ) || !sc_has(c, p, S_INT)) return 0;
  for (size_t i = 0, n = sx_terms(c, p); i < n && n <= 2; i++) {
    sx_term(c, p, i, &q, &m);
    if (sc_op(c, m) != X_LEAF || !sx_linear(c, p, m, &a, number) ||
        (a != c->one && a != c->minus_one) || sc_op(c, *number) != X_CONST)
      continue;
    if (a == c->one) *number = sx_neg(c, *number);
    return m;
  }
  return 0;
}

/* The sum over k of a body that compares an index with a number, where the index has few values:
 * for each of them one sum, over those k where it has that value. So experts that are looked up in
 * one tensor are the same experts as those that stand in tensors of their own. */
static bool sum_by_value(sc *c, sx k, sx body, sx g, sx *out) {
  sx number, high;
  int64_t low = 0, end;
  const sx leaf = sc_op(c, g) == X_LT ? compared(c, g, &number) : 0;
  if (!leaf || !sx_leaf_range(c, leaf, &number, &high) || !sx_is_int(c, number, &low) ||
      !sx_is_int(c, high, &end) || end - low > MAX_VALUES)
    return false;
  *out = c->zero;
  for (int64_t v = low; v < end && !c->fault.failed; v++) {
    const sx at = sx_int(c, v), here = sx_subst(c, body, &(sx_map){leaf, at}, 1);
    *out = sx_add(c, *out, sx_sum(c, k, sx_ite(c, sx_eq(c, leaf, at), here, c->zero)));
  }
  return true;
}

static sx sum_ite(sc *c, sx k, sx body) {
  const sx g = sx_top_guard(c, body), y = sc_word(c, body, 2), high = sx_range_of(c, k);
  sx x = sc_word(c, body, 1);
  sx_cut t;
  if (!sx_occurs(c, k, g)) return sx_ite(c, sx_truth(c, g), sx_sum(c, k, x), sx_sum(c, k, y));
  if (sx_cut_of(c, g, k, &t)) {
    if (t.point) return sum_cut(c, k, &t, x, y);
    const bool above = sx_ge0(c, t.at), below = sx_ge0(c, sx_sub(c, high, t.at));
    if (above && below) return sum_cut(c, k, &t, x, y);
    if (above)
      return sx_ite(c, sx_le(c, t.at, high), sum_cut(c, k, &t, x, y),
                    sx_sum(c, k, t.lower ? x : y));
    if (below)
      return sx_ite(c, sx_le(c, c->zero, t.at), sum_cut(c, k, &t, x, y),
                    sx_sum(c, k, t.lower ? y : x));
  }
  const sx apart = sx_by_radix(c, g);
  if (apart) return sx_sum(c, k, sx_ite(c, apart, x, y));
  sx number, by_value;
  if (sum_by_value(c, k, body, g, &by_value)) return by_value;
  const sx i = sx_iver(c, g), leaf = sc_op(c, g) == X_EQ ? compared(c, g, &number) : 0;
  if (leaf) x = sx_subst(c, x, &(sx_map){leaf, number}, 1);
  if (sc_op(c, g) == X_LT && sc_has(c, sc_word(c, g, 0), S_INT)) {
    const sx p = sc_word(c, g, 0), n = sx_sub(c, c->minus_one, p);
    const sx other = sx_iver(c, sc_node(c, X_LT, &n, 1));
    return sx_add(c, sx_sum(c, k, sx_mul(c, i, x)), sx_sum(c, k, sx_mul(c, other, y)));
  }
  return sx_add(c, sx_sum(c, k, sx_mul(c, i, sx_sub(c, x, y))), sx_sum(c, k, y));
}

sx sx_sum(sc *c, sx k, sx body) {
  if (c->fault.failed || k == c->zero) return c->fault.failed ? c->zero : body;
  if (body == c->neginf) sc_fail(c, "minus infinity in a sum");
  if (sc_flags(c, body) & S_BOOL) sc_fail(c, "a sum of truth values");
  if (c->reading.plain) return sx_close(c, X_SUM, k, body);
  if (sx_range_of(c, k) == c->zero) return c->zero;
  sx_over_places(c, k, &body);
  if (!sx_occurs(c, k, body)) return sx_mul(c, sx_range_of(c, k), body);
  if (++c->budget.depth > SX_MAX_DEPTH) sc_fail(c, "sums nested too deeply");
  sx r = c->zero;
  if (c->fault.failed || sx_index_in_two(c, k, body, sx_sum, &r)) r = c->fault.failed ? c->zero : r;
  else if (sx_top_guard(c, body)) r = sum_ite(c, k, body);
  else
    for (size_t i = 0, n = sx_terms(c, body); i < n && !c->fault.failed; i++) {
      uint32_t q;
      sx m;
      sx_term(c, body, i, &q, &m);
      r = sx_add(
          c, r,
          sx_scale(c, q,
                   sx_occurs(c, k, m) ? sum_monomial(c, k, m) : sx_mul(c, sx_range_of(c, k), m)));
    }
  c->budget.depth--;
  return r;
}

/* ---- products ---- */

/* The product over k of b^e as a power of a product over k, one block with b's own. 0: its exponent
 * is not whole. */
static sx product_of(sc *c, sx k, sx b, uint32_t e) {
  sx sym[SX_MAX_BLOCK] = {k};
  uint32_t n = 1, more;
  int64_t times;
  if (!pv_q_is_int(&c->q, e, &times)) return 0;
  bool joins = sc_op(c, b) == X_PROD && sc_word(c, b, 0) + 1 <= SX_MAX_BLOCK;
  for (uint32_t i = 0; joins && i < sc_word(c, b, 0); i++)
    joins = !sx_occurs(c, k, sc_word(c, b, i + 1));
  if (joins) b = sx_open(c, b, sym + 1, &more), n += more;
  return sx_pow(c, sx_close_block(c, X_PROD, b, sym, n), e);
}

static sx product_monomial(sc *c, sx k, sx body) {
  int64_t n = 0;
  uint32_t q = PV_ONE_Q;
  sx m, r = c->one, rest = c->one;
  const bool known = sx_is_int(c, sx_range_of(c, k), &n);
  sx_term(c, body, 0, &q, &m);
  if (known) r = sx_powi(c, sx_q(c, q), n);
  else rest = sx_q(c, q);
  for (size_t i = 0, l = m == c->one ? 0 : sx_factors(c, m); i < l && !c->fault.failed; i++) {
    sx b;
    uint32_t e;
    sx_factor(c, m, i, &b, &e);
    const sx p =
        !sx_occurs(c, k, b) ? (known ? sx_powi(c, sx_pow(c, b, e), n) : 0) : product_of(c, k, b, e);
    if (p) r = sx_mul(c, r, p);
    else rest = sx_mul(c, rest, sx_pow(c, b, e));
  }
  return rest == c->one ? r : sx_mul(c, r, sx_close_block(c, X_PROD, rest, &k, 1));
}

static sx product_ite(sc *c, sx k, sx body) {
  const sx g = sx_top_guard(c, body), x = sc_word(c, body, 1), y = sc_word(c, body, 2),
           high = sx_range_of(c, k);
  sx_cut t;
  if (!sx_occurs(c, k, g))
    return sx_ite(c, sx_truth(c, g), sx_product(c, k, x), sx_product(c, k, y));
  if (sx_cut_of(c, g, k, &t) && !t.point && sx_gt0(c, t.at) && sx_gt0(c, sx_sub(c, high, t.at)))
    return sx_mul(c, sx_over(c, k, t.lower ? x : y, c->zero, t.at, sx_product),
                  sx_over(c, k, t.lower ? y : x, t.at, sx_sub(c, high, t.at), sx_product));
  return sx_close_block(c, X_PROD, body, &k, 1);
}

sx sx_product(sc *c, sx k, sx body) {
  int64_t n;
  sx r = c->one;
  if (c->fault.failed || k == c->zero) return c->fault.failed ? c->zero : body;
  if (body == c->neginf) sc_fail(c, "minus infinity in a product");
  if (sc_flags(c, body) & S_BOOL) sc_fail(c, "a product of truth values");
  if (c->reading.plain) return sx_close(c, X_PROD, k, body);
  if (++c->budget.depth > SX_MAX_DEPTH) sc_fail(c, "products nested too deeply");
  if (c->fault.failed) r = c->zero;
  else if (sx_is_int(c, sx_range_of(c, k), &n) && n <= MAX_FACTORS)
    for (int64_t i = 0; i < n && !c->fault.failed; i++)
      r = sx_mul(c, r, sx_subst(c, body, &(sx_map){k, sx_int(c, i)}, 1));
  else if (sx_index_in_two(c, k, body, sx_product, &r)) r = c->fault.failed ? c->zero : r;
  else if (sx_top_guard(c, body)) r = product_ite(c, k, body);
  else if (sx_terms(c, body) == 1) r = product_monomial(c, k, body);
  else r = sx_close_block(c, X_PROD, body, &k, 1);
  c->budget.depth--;
  return r;
}
