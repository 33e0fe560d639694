/* The largest over an index: ranges are cut as for sums, factors that are not negative move
 * outside, and a monotone function is taken at its argument's largest or least. */
#include <math.h>

#include "validate/expr/expr_int.h"

static sx top_ite(sc *c, sx k, sx body) {
  const sx g = sx_top_guard(c, body), x = sc_word(c, body, 1), y = sc_word(c, body, 2),
           high = sx_range_of(c, k);
  sx_cut t;
  if (!sx_occurs(c, k, g))
    return sx_ite(c, sx_truth(c, g), sx_largest(c, k, x), sx_largest(c, k, y));
  if (sx_cut_of(c, g, k, &t) && !t.point && sx_ge0(c, t.at) && sx_ge0(c, sx_sub(c, high, t.at))) {
    const sx low = t.lower ? x : y, up = t.lower ? y : x, n = sx_sub(c, high, t.at);
    const bool some_low = sx_gt0(c, t.at), some_up = sx_gt0(c, n);
    if (up == c->neginf && some_low) return sx_over(c, k, low, c->zero, t.at, sx_largest);
    if (low == c->neginf && some_up) return sx_over(c, k, up, t.at, n, sx_largest);
    if (some_low && some_up && up != c->neginf && low != c->neginf)
      return sx_max(c, sx_over(c, k, low, c->zero, t.at, sx_largest),
                    sx_over(c, k, up, t.at, n, sx_largest));
  }
  return sx_close_block(c, X_TOP, body, &k, 1);
}

/* The largest (`least`: the least) over k of a monotone function f: f at its argument's. 0: x is
 * none. */
static sx top_within(sc *c, sx k, sx x, bool least) {
  uint32_t q, e;
  sx m, b;
  sx_term(c, x, 0, &q, &m);
  if (sx_terms(c, x) != 1 || q != PV_ONE_Q || sx_factors(c, m) != 1) return 0;
  sx_factor(c, m, 0, &b, &e);
  const bool exponential = sc_op(c, b) == X_FN && sc_word(c, b, 0) == F_EXP,
             log = sc_op(c, b) == X_FN && sc_word(c, b, 0) == F_LOG && e == PV_ONE_Q;
  if (!exponential && !log && (e == PV_ONE_Q || !sc_has(c, b, S_POS))) return 0;
  const sx inner = exponential || log ? sc_word(c, b, 1) : b;
  if (pv_q_sign(&c->q, e) < 0) least = !least;
  const sx at = least ? sx_neg(c, sx_largest(c, k, sx_neg(c, inner))) : sx_largest(c, k, inner);
  return sx_pow(c, exponential ? sx_exp(c, at) : log ? sx_log(c, at) : at, e);
}

static sx top_monomial(sc *c, sx k, uint32_t q, sx m) {
  sx in = c->one, out = c->one, sym[SX_MAX_BLOCK] = {k};
  uint32_t n = 1, more;
  for (size_t i = 0, l = sx_factors(c, m); i < l && !c->fault.failed; i++) {
    sx b;
    uint32_t e;
    sx_factor(c, m, i, &b, &e);
    const bool free_of_k = !sx_occurs(c, k, b) && sc_has(c, b, S_NONNEG);
    if (free_of_k) out = sx_mul(c, out, sx_pow(c, b, e));
    else in = sx_mul(c, in, sx_pow(c, b, e));
  }
  const bool negative = pv_q_sign(&c->q, q) < 0;
  if (negative) q = pv_q_mul(&c->q, q, PV_MINUS_Q);
  out = sx_scale(c, q, out);
  const sx within = top_within(c, k, in, negative);
  if (within) return sx_mul(c, out, negative ? sx_neg(c, within) : within);
  if (negative) in = sx_neg(c, in);
  if (sc_op(c, in) == X_TOP && sc_word(c, in, 0) + 1 <= SX_MAX_BLOCK) {
    bool moves = false;
    for (uint32_t i = 0; i < sc_word(c, in, 0); i++)
      moves |= sx_occurs(c, k, sc_word(c, in, i + 1));
    if (!moves) {
      in = sx_open(c, in, sym + 1, &more);
      n += more;
    }
  }
  return sx_mul(c, out, sx_close_block(c, X_TOP, in, sym, n));
}

sx sx_largest(sc *c, sx k, sx body) {
  if (c->fault.failed || k == c->zero || !sx_occurs(c, k, body))
    return c->fault.failed ? c->zero : body;
  if (c->reading.plain) return sx_close(c, X_TOP, k, body);
  sx_over_places(c, k, &body);
  if (++c->budget.depth > SX_MAX_DEPTH) sc_fail(c, "binders nested too deeply");
  sx r = c->neginf, in = c->zero, out = c->zero, two;
  if (c->fault.failed) r = c->zero;
  else if (sx_index_in_two(c, k, body, sx_largest, &two)) r = two;
  else if (sx_top_guard(c, body)) r = top_ite(c, k, body);
  else if (sc_op(c, body) == X_MAX)
    for (uint32_t i = 0, n = sc_at(c, body)->n; i < n && !c->fault.failed; i++)
      r = sx_max(c, r, sx_largest(c, k, sc_word(c, body, i)));
  else {
    for (size_t i = 0, n = sx_terms(c, body); i < n; i++) {
      uint32_t q;
      sx m;
      sx_term(c, body, i, &q, &m);
      m = sx_scale(c, q, m);
      if (sx_occurs(c, k, m)) in = sx_add(c, in, m);
      else out = sx_add(c, out, m);
    }
    if (sx_terms(c, in) == 1) {
      uint32_t q;
      sx m;
      sx_term(c, in, 0, &q, &m);
      r = top_monomial(c, k, q, m);
    } else {
      r = sx_close_block(c, X_TOP, in, &k, 1);
    }
    r = sx_add(c, r, out);
  }
  c->budget.depth--;
  return r;
}
