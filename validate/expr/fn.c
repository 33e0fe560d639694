/* Expressions of the symbolic prover: functions, the larger of two, elements of variables. */
#include <stdlib.h>
#include <string.h>

#include "validate/expr/expr_int.h"

/* ---- functions ---- */

static sx raw_fn(sc *c, sx_func f, sx a) { return sc_node(c, X_FN, (uint32_t[2]){f, a}, 2); }

/* Whether the term with the least hash has a negative coefficient. */
static bool leads_negative(sc *c, sx a) { return pv_q_sign(&c->q, sx_leading(c, a, true)) < 0; }

static sx abs_of(sc *c, sx a) {
  if (sc_has(c, a, S_NONNEG)) return a;
  if (sx_is_long(c, a)) return raw_fn(c, F_ABS, leads_negative(c, a) ? sx_neg(c, a) : a);
  uint32_t q, e;
  sx m, b, r = c->one;
  sx_term(c, a, 0, &q, &m);
  for (size_t i = 0, n = sx_factors(c, m); i < n && !c->fault.failed; i++) {
    sx_factor(c, m, i, &b, &e);
    if (!sc_has(c, b, S_NONNEG)) b = raw_fn(c, F_ABS, b);
    r = sx_mul(c, r, sx_single(c, b, e));
  }
  return sx_scale(c, pv_q_sign(&c->q, q) < 0 ? pv_q_mul(&c->q, q, PV_MINUS_Q) : q, r);
}

static sx exp_of(sc *c, sx a) {
  sx r = c->one;
  for (size_t i = 0, n = sx_terms(c, a); i < n && !c->fault.failed; i++) {
    uint32_t q;
    sx m;
    sx_term(c, a, i, &q, &m);
    if (sc_op(c, m) == X_FN && sc_word(c, m, 0) == F_LOG)
      r = sx_mul(c, r, sx_pow(c, sc_word(c, m, 1), q));
    else r = sx_mul(c, r, sx_single(c, raw_fn(c, F_EXP, m), q));
  }
  return r;
}

static sx log_of(sc *c, sx a) {
  uint32_t q, e;
  sx m, b, r = c->zero, rest = c->one;
  if (a == c->one) return c->zero;
  if (sx_is_long(c, a)) {
    const sx common = sx_content(c, a, false);
    if (common == c->one) return raw_fn(c, F_LOG, a);
    return sx_add(c, log_of(c, common), log_of(c, sx_without(c, a, common)));
  }
  sx_term(c, a, 0, &q, &m);
  for (size_t i = 0, n = sx_factors(c, m); i < n && !c->fault.failed; i++) {
    sx_factor(c, m, i, &b, &e);
    const bool power = sc_op(c, b) == X_FN && sc_word(c, b, 0) == F_EXP;
    if (power) r = sx_add(c, r, sx_scale(c, e, sc_word(c, b, 1)));
    else if (sc_has(c, b, S_POS) || n == 1)
      r = sx_add(c, r, sx_scale(c, e, raw_fn(c, F_LOG, sx_q_even(c, e) ? sx_abs(c, b) : b)));
    else rest = sx_mul(c, rest, sx_single(c, b, e));
  }
  if (pv_q_sign(&c->q, q) <= 0) return raw_fn(c, F_LOG, a);
  if (q != PV_ONE_Q) r = sx_add(c, r, raw_fn(c, F_LOG, sx_q(c, q)));
  return rest == c->one ? r : sx_add(c, r, raw_fn(c, F_LOG, rest));
}

typedef struct fn_ctx {
  sx_func f;
} fn_ctx;

static sx fn_end(sc *c, sx a, const void *ctx);

/* f(q max(u...) + rest) with f not falling: the largest, or for q < 0 the least, of f(q u + rest).
 * 0 where a is not such. */
static sx within_max(sc *c, sx_func f, sx a) {
  uint32_t q = PV_ZERO_Q;
  sx m = 0, rest = c->zero, r = 0;
  for (size_t i = 0, n = sx_terms(c, a); i < n; i++) {
    uint32_t p;
    sx t;
    sx_term(c, a, i, &p, &t);
    if (sc_op(c, t) == X_MAX && m == 0) m = t, q = p;
    else rest = sx_add(c, rest, sx_scale(c, p, t));
  }
  if (m == 0 || c->reading.plain) return 0;
  const bool up = pv_q_sign(&c->q, q) > 0;
  for (uint32_t i = 0, n = sc_at(c, m)->n; i < n && !c->fault.failed; i++) {
    const sx x = fn_end(c, sx_add(c, sx_scale(c, q, sc_word(c, m, i)), rest), &(fn_ctx){f});
    r = i == 0 ? x : up ? sx_max(c, r, x) : sx_min(c, r, x);
  }
  return r;
}

/* floor(whole + rest) = whole + floor(rest). */
static sx floor_of(sc *c, sx a) {
  sx whole = c->zero, rest = c->zero;
  uint32_t q;
  for (size_t i = 0, n = sx_terms(c, a); i < n && !c->fault.failed; i++) {
    sx m;
    sx_term(c, a, i, &q, &m);
    m = sx_scale(c, q, m);
    if (sc_has(c, m, S_INT)) whole = sx_add(c, whole, m);
    else rest = sx_add(c, rest, m);
  }
  int64_t k;
  if (sx_is_q(c, rest, &q) && sx_q_floor(c, q, &k)) return sx_add(c, whole, sx_int(c, k));
  const sx inner = within_max(c, F_FLOOR, rest);
  return sx_add(c, whole, inner ? inner : raw_fn(c, F_FLOOR, rest));
}

/* The terms of a that are even integers. */
static sx even_part(sc *c, sx a) {
  sx r = c->zero, m;
  uint32_t q;
  for (size_t i = 0, n = sx_terms(c, a); i < n && !c->fault.failed; i++) {
    sx_term(c, a, i, &q, &m);
    if (sx_q_even(c, q) && sc_has(c, m, S_INT)) r = sx_add(c, r, sx_scale(c, q, m));
  }
  return r;
}

/* a = n pi / 2 + rest, pi being 4 atan(1), with n in [0, 4): n. */
static int quarter_turns(sc *c, sx a, sx *rest) {
  const sx quarter = raw_fn(c, F_ATAN, c->one);
  int64_t k = 0;
  *rest = a;
  for (size_t i = 0, n = sx_terms(c, a); i < n; i++) {
    uint32_t q;
    sx m;
    sx_term(c, a, i, &q, &m);
    if (m != quarter || !pv_q_is_int(&c->q, q, &k) || k % 2) continue;
    *rest = sx_sub(c, a, sx_scale(c, q, m));
    return (int)(k / 2 % 4 + 4) % 4;
  }
  return 0;
}

/* sin or cos of an angle that is an arc itself: 0 where it is none. */
static sx of_arc(sc *c, bool sine, sx a) {
  uint32_t q;
  sx m;
  if (sx_terms(c, a) != 1) return 0;
  sx_term(c, a, 0, &q, &m);
  if (q != PV_ONE_Q || sc_op(c, m) != X_FN) return 0;
  const sx u = sc_word(c, m, 1);
  const bool arc_sine = sc_word(c, m, 0) == F_ASIN;
  if (!arc_sine && sc_word(c, m, 0) != F_ATAN) return 0;
  if (arc_sine && sine) return u;
  const sx square = sx_powi(c, u, 2),
           root = sx_sqrt(c, arc_sine ? sx_sub(c, c->one, square) : sx_add(c, c->one, square));
  return arc_sine ? root : sine ? sx_mul(c, u, sx_inv(c, root)) : sx_inv(c, root);
}

static sx sine_or_cosine(sc *c, bool sine, sx a) {
  const int turns = quarter_turns(c, a, &a);
  if (turns) {
    const sx r = sine_or_cosine(c, (turns % 2) ? !sine : sine, a);
    const bool negative = sine ? turns >= 2 : turns == 1 || turns == 2;
    return negative ? sx_neg(c, r) : r;
  }
  if (a == c->zero) return sine ? a : c->one;
  if (leads_negative(c, a))
    return sine ? sx_neg(c, sine_or_cosine(c, true, sx_neg(c, a)))
                : sine_or_cosine(c, false, sx_neg(c, a));
  const sx plain = of_arc(c, sine, a);
  return plain ? plain : raw_fn(c, sine ? F_SIN : F_COS, a);
}

/* The least whole number by which a's coefficients are whole; 0: none that is small. */
static int64_t common_denominator(const sc *c, sx a) {
  int64_t all = 1;
  for (size_t i = 0, n = sx_terms(c, a); i < n; i++) {
    uint32_t q;
    sx m;
    sx_term(c, a, i, &q, &m);
    pv_q v;
    if (!pv_q_small(&c->q, q, &v) || v.d > (1 << 20) || v.e < -20) return 0;
    int64_t d = (int64_t)v.d << (v.e < 0 ? -v.e : 0), x = all, y = d;
    while (y) {
      const int64_t t = x % y;
      x = y;
      y = t;
    }
    all = all / x * d;
    if (all > (1 << 30)) return 0;
  }
  return all;
}

/* floor(p / n) of an integer p. 0: a is no such quotient. */
static sx whole_quotient(sc *c, sx a) {
  const int64_t n = common_denominator(c, a);
  const sx p = n > 1 ? sx_scale(c, pv_q_int(&c->q, n), a) : 0;
  return p && sc_has(c, p, S_INT) ? sx_div(c, p, sx_int(c, n)) : 0;
}

static sx fn_end(sc *c, sx a, const void *ctx) {
  const sx_func f = ((const fn_ctx *)ctx)->f;
  sx inner;
  if (a == c->neginf) {
    if (f == F_EXP) return c->zero;
    sc_fail(c, "a function of minus infinity");
    return a;
  }
  if (sc_flags(c, a) & S_BOOL) sc_fail(c, "a function of a truth value");
  if (c->reading.plain && !sc_has(c, a, S_INT)) return raw_fn(c, f, a);
  switch (f) {
  case F_WRAP: return sx_wrap(c, a, RULE_I64);
  case F_WRAP_I32: return sx_wrap(c, a, RULE_I32);
  case F_WRAP_I16: return sx_wrap(c, a, RULE_I16);
  case F_WRAP_I8: return sx_wrap(c, a, RULE_I8);
  case F_WRAP_U8: return sx_wrap(c, a, RULE_U8);
  case F_EXP: return exp_of(c, a);
  case F_LOG: return log_of(c, a);
  case F_ABS: return abs_of(c, sx_of_equal_size(c, a));
  case F_SAFE_INV: return sc_has(c, a, S_POS) ? sx_inv(c, a) : raw_fn(c, f, a);
  case F_SIN:
  case F_COS: return sine_or_cosine(c, f == F_SIN, a);
  case F_TAN:
  case F_ERF:
  case F_ATAN:
  case F_ASIN: /* odd */
    if (a == c->zero) return a;
    if (f == F_ASIN && (a == c->one || a == c->minus_one))
      return sx_scale(c, pv_q_int(&c->q, a == c->one ? 2 : -2), raw_fn(c, F_ATAN, c->one));
    return leads_negative(c, a) ? sx_neg(c, raw_fn(c, f, sx_neg(c, a))) : raw_fn(c, f, a);
  case F_FLOOR:
  case F_CEIL:
  case F_ROUND:
  case F_TRUNC:
  case F_CAST_INT:
    if (sc_has(c, a, S_INT)) return a;
    if (f == F_CAST_INT) return raw_fn(c, F_TRUNC, a);
    if (f == F_FLOOR) {
      inner = whole_quotient(c, a);
      return inner ? inner : floor_of(c, a);
    }
    if (f == F_CEIL) return raw_fn(c, f, a);
    if (f == F_ROUND) { /* ties stay with the even ones */
      const sx even = even_part(c, a);
      if (even != c->zero) return sx_add(c, even, sx_fn(c, F_ROUND, sx_sub(c, a, even)));
    }
    inner = within_max(c, f, a);
    if (inner) return inner;
    return leads_negative(c, a) ? sx_neg(c, raw_fn(c, f, sx_neg(c, a)))
                                : raw_fn(c, f, a); /* odd, both */
  default: return raw_fn(c, f, a);
  }
}

sx sx_fn(sc *c, sx_func f, sx a) {
  return c->fault.failed ? c->zero : sx_lift(c, a, fn_end, &(fn_ctx){f});
}
sx sx_exp(sc *c, sx a) { return sx_fn(c, F_EXP, a); }
sx sx_log(sc *c, sx a) { return sx_fn(c, F_LOG, a); }
sx sx_abs(sc *c, sx a) { return sx_fn(c, F_ABS, a); }

sx sx_fn2(sc *c, sx_func f, sx a, sx b) {
  if (c->fault.failed) return c->zero;
  if (f == F_AND) return sx_bits_and(c, a, b);
  const sx g = sx_smallest_guard(c, (sx[2]){a, b}, 2);
  if (g) {
    const sx x = sx_fn2(c, f, sx_cofactor(c, a, g, true), sx_cofactor(c, b, g, true));
    const sx y = sx_fn2(c, f, sx_cofactor(c, a, g, false), sx_cofactor(c, b, g, false));
    return x == y ? x : sc_node(c, X_ITE, (uint32_t[3]){g, x, y}, 3);
  }
  if (a == c->neginf || b == c->neginf) sc_fail(c, "a function of minus infinity");
  return sc_node(c, X_FN, (uint32_t[3]){f, a, b}, 3);
}

/* ---- the larger of two ---- */

static int by_id(const void *a, const void *b) {
  const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
  return x < y ? -1 : x > y;
}

static bool is_exp(const sc *c, sx x) { return sc_op(c, x) == X_FN && sc_word(c, x, 0) == F_EXP; }

static sx max_flat(sc *c, sx a, sx b) {
  sx w[256];
  size_t n = 0, m = 0;
  for (int k = 0; k < 2; k++) {
    const sx x = k ? b : a;
    const size_t l = sc_op(c, x) == X_MAX ? c->store.node[x].n : 1;
    for (size_t i = 0; i < l && n < 256; i++) w[n++] = sc_op(c, x) == X_MAX ? sc_word(c, x, i) : x;
  }
  if (n == 256) sc_fail(c, "too many operands of max");
  qsort(w, n, sizeof *w, by_id);
  for (size_t i = 0; i < n; i++)
    if (m == 0 || w[m - 1] != w[i]) w[m++] = w[i];
  /* One of two constants goes; so does an operand known to be the smaller. */
  for (size_t i = 0; i < m; i++)
    for (size_t k = 0; k < m; k++) {
      if (i == k) continue;
      const sx d = sx_sub(c, w[k], w[i]);
      if (sx_never_negative(c, d)) {
        memmove(w + i, w + i + 1, (m - i - 1) * sizeof *w);
        m--, i--;
        break;
      }
    }
  if (m == 1 || c->fault.failed) return w[0];
  if (m == 2 && w[0] == sx_neg(c, w[1])) return sx_abs(c, w[0]);
  if (m == 2 && is_exp(c, w[0]) && is_exp(c, w[1]))
    return sx_exp(c, sx_max(c, sc_word(c, w[0], 1), sc_word(c, w[1], 1)));
  return sc_node(c, X_MAX, w, m);
}

sx sx_max(sc *c, sx a, sx b) {
  if (c->fault.failed) return c->zero;
  const sx g = sx_smallest_guard(c, (sx[2]){a, b}, 2);
  if (g) {
    const sx x = sx_max(c, sx_cofactor(c, a, g, true), sx_cofactor(c, b, g, true));
    const sx y = sx_max(c, sx_cofactor(c, a, g, false), sx_cofactor(c, b, g, false));
    return x == y ? x : sc_node(c, X_ITE, (uint32_t[3]){g, x, y}, 3);
  }
  if (a == b || b == c->neginf) return a;
  if (a == c->neginf) return b;
  if (c->reading.plain && !(sc_has(c, a, S_INT) && sc_has(c, b, S_INT)))
    return sc_node(c, X_MAX, (uint32_t[2]){a, b}, 2);
  return max_flat(c, a, b);
}
/* An integer within bounds: the least of a largest is the largest of the leasts, each of which may
 * be one of the two as far as the integer's range says. */
static sx min_of_max(sc *c, sx a, sx b) {
  const uint32_t n = sc_at(c, a)->n;
  sx r = sx_min(c, sc_word(c, a, 0), b);
  for (uint32_t i = 1; i < n; i++) r = sx_max(c, r, sx_min(c, sc_word(c, a, i), b));
  return r;
}

sx sx_min(sc *c, sx a, sx b) {
  if (!c->fault.failed && sc_op(c, a) == X_MAX && sc_op(c, b) == X_CONST && sc_has(c, a, S_INT))
    return min_of_max(c, a, b);
  return sx_neg(c, sx_max(c, sx_neg(c, a), sx_neg(c, b)));
}

/* ---- elements of variables ---- */

static sx leaf_from(sc *c, uint32_t var, const sx *idx, uint32_t n) {
  const sx g = sx_smallest_guard(c, idx, n);
  if (g) {
    sx a[RULE_MAX_RANK], b[RULE_MAX_RANK];
    for (uint32_t i = 0; i < n; i++)
      a[i] = sx_cofactor(c, idx[i], g, true), b[i] = sx_cofactor(c, idx[i], g, false);
    const sx x = leaf_from(c, var, a, n), y = leaf_from(c, var, b, n);
    return x == y ? x : sc_node(c, X_ITE, (uint32_t[3]){g, x, y}, 3);
  }
  uint32_t w[RULE_MAX_RANK + 1] = {var};
  for (uint32_t i = 0; i < n; i++) w[i + 1] = idx[i];
  return sc_node(c, X_LEAF, w, n + 1);
}

sx sx_leaf(sc *c, uint32_t var, const sx *idx, uint32_t n) {
  const sx x = c->fault.failed ? c->zero : leaf_from(c, var, idx, n);
  return x;
}
