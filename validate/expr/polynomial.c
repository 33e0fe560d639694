/* Numbers in normal form: sums of rational * monomial, products of powers. Terms are collected on a
 * stack, sorted and merged; conditions among them are lifted outside first. */
#include <stdlib.h>

#include "validate/expr/expr_int.h"

enum { MAX_TERMS = 6000 };

/* ---- the scratch stack ---- */

static int by_first(const void *a, const void *b) {
  const uint32_t *x = a, *y = b;
  return x[0] < y[0] ? -1 : x[0] > y[0];
}

static int by_second(const void *a, const void *b) {
  const uint32_t *x = a, *y = b;
  return x[1] < y[1] ? -1 : x[1] > y[1];
}

/* ---- constants ---- */

sx sx_q(sc *c, uint32_t q) { return sc_node(c, X_CONST, &q, 1); }

sx sx_int(sc *c, int64_t i) { return sx_q(c, pv_q_int(&c->q, i)); }

sx sx_double(sc *c, double f) { return sx_q(c, pv_q_double(&c->q, f)); }

bool sx_is_q(const sc *c, sx x, uint32_t *q) {
  if (sc_op(c, x) != X_CONST) return false;
  *q = sc_word(c, x, 0);
  return true;
}

bool sx_is_int(const sc *c, sx x, int64_t *out) {
  uint32_t q;
  return sx_is_q(c, x, &q) && pv_q_is_int(&c->q, q, out);
}

/* ---- terms and factors ---- */

size_t sx_terms(const sc *c, sx x) {
  if (x == c->zero) return 0;
  return sc_op(c, x) == X_ADD ? c->store.node[x].n / 2 : 1;
}

void sx_term(const sc *c, sx x, size_t i, uint32_t *q, sx *m) {
  *q = PV_ONE_Q;
  *m = x;
  if (sc_op(c, x) == X_ADD) *q = sc_word(c, x, 2 * i), *m = sc_word(c, x, 2 * i + 1);
  else if (sc_op(c, x) == X_CONST) *q = sc_word(c, x, 0), *m = c->one;
}

size_t sx_factors(const sc *c, sx m) {
  if (m == c->one) return 0;
  return sc_op(c, m) == X_MUL ? c->store.node[m].n / 2 : 1;
}

void sx_factor(const sc *c, sx m, size_t i, sx *base, uint32_t *e) {
  *base = m;
  *e = PV_ONE_Q;
  if (sc_op(c, m) == X_MUL) *base = sc_word(c, m, 2 * i), *e = sc_word(c, m, 2 * i + 1);
}

bool sx_is_long(const sc *c, sx x) { return sc_op(c, x) == X_ADD && c->store.node[x].n > 2; }

bool sx_of_sizes(const sc *c, const sx *a, size_t n) {
  for (size_t i = 0; i < n; i++) {
    const sx_op op = sc_op(c, a[i]);
    if (!sc_has(c, a[i], S_INT) && op != X_CONST && op != X_SYM && op != X_ADD && op != X_MUL)
      return false;
  }
  return true;
}

/* ---- sums ---- */

sx sx_smallest_guard(const sc *c, const sx *a, size_t n) {
  sx g = 0;
  for (size_t i = 0; i < n; i++) {
    const sx t = sx_top_guard(c, a[i]);
    if (t && (!g || t < g)) g = t;
  }
  return g;
}

/* Terms from `start` to the stack's top, which it takes off. */
static sx finish_sum(sc *c, size_t start) {
  const size_t n = c->store.sp - start;
  size_t m = 0;
  uint32_t *t = c->store.stack + 2 * start;
  c->store.sp = start;
  if (!sc_work(c, n)) return c->zero;
  qsort(t, n, 2 * sizeof *t, by_second);
  for (size_t i = 0; i < n;) {
    uint32_t q = t[2 * i];
    const uint32_t x = t[2 * i + 1];
    for (i++; i < n && t[2 * i + 1] == x; i++) q = pv_q_add(&c->q, q, t[2 * i]);
    if (q != PV_ZERO_Q) t[2 * m] = q, t[2 * m + 1] = x, m++;
  }
  if (m == 0 || c->fault.failed) return c->zero;
  if (m > MAX_TERMS) sc_fail(c, "a sum of more than %d terms", (int)MAX_TERMS);
  if (m == 1 && t[1] == c->one) return sx_q(c, t[0]);
  if (m == 1 && t[0] == PV_ONE_Q) return t[1];
  return sc_node(c, X_ADD, t, 2 * m);
}

static sx lift_sum(sc *c, sx g, const sx *a, size_t n) {
  sx *b = malloc((n + 1) * sizeof *b);
  if (!b) {
    c->fault.no_memory = true;
    sc_fail(c, "out of memory");
    return c->zero;
  }
  for (size_t i = 0; i < n; i++) b[i] = sx_cofactor(c, a[i], g, true);
  const sx x = sx_addn(c, b, n);
  for (size_t i = 0; i < n; i++) b[i] = sx_cofactor(c, a[i], g, false);
  const sx y = sx_addn(c, b, n);
  free(b);
  return x == y ? x : sc_node(c, X_ITE, (uint32_t[3]){g, x, y}, 3);
}

sx sx_addn(sc *c, const sx *a, size_t n) {
  if (c->fault.failed || n == 0) return c->zero;
  if (n == 1) return a[0];
  const sx g = sx_smallest_guard(c, a, n);
  if (g) return lift_sum(c, g, a, n);
  for (size_t i = 0; i < n; i++) {
    if (a[i] == c->neginf) return a[i];
    if (sc_flags(c, a[i]) & S_BOOL) sc_fail(c, "arithmetic on truth values");
  }
  if (c->reading.plain && !sx_of_sizes(c, a, n)) {
    sx r = a[0];
    for (size_t i = 1; i < n; i++) r = sx_fn2(c, F_ADD, r, a[i]);
    return r;
  }
  const size_t start = c->store.sp;
  for (size_t i = 0; i < n; i++)
    for (size_t k = 0, m = sx_terms(c, a[i]); k < m && !c->fault.failed; k++) {
      uint32_t q;
      sx x;
      sx_term(c, a[i], k, &q, &x);
      sx_push(c, q, x);
    }
  return finish_sum(c, start);
}

sx sx_add(sc *c, sx a, sx b) {
  if (a == c->zero) return b;
  if (b == c->zero) return a;
  return sx_addn(c, (sx[2]){a, b}, 2);
}

sx sx_scale(sc *c, uint32_t q, sx a) {
  if (q == PV_ONE_Q || c->fault.failed) return a;
  if (q == PV_ZERO_Q && a != c->neginf) return c->zero;
  const sx g = sx_top_guard(c, a);
  if (g) {
    const sx x = sx_scale(c, q, sx_cofactor(c, a, g, true)),
             y = sx_scale(c, q, sx_cofactor(c, a, g, false));
    return x == y ? x : sc_node(c, X_ITE, (uint32_t[3]){g, x, y}, 3);
  }
  if (a == c->neginf) {
    if (pv_q_sign(&c->q, q) <= 0) sc_fail(c, "minus infinity times a number that is not positive");
    return a;
  }
  if (c->reading.plain && !sx_of_sizes(c, &a, 1)) return sx_fn2(c, F_MUL, sx_q(c, q), a);
  const size_t start = c->store.sp;
  for (size_t k = 0, m = sx_terms(c, a); k < m && !c->fault.failed; k++) {
    uint32_t p;
    sx x;
    sx_term(c, a, k, &p, &x);
    sx_push(c, pv_q_mul(&c->q, p, q), x);
  }
  return finish_sum(c, start);
}

sx sx_neg(sc *c, sx a) { return sx_scale(c, PV_MINUS_Q, a); }

sx sx_sub(sc *c, sx a, sx b) {
  return a == b && !c->reading.plain && a != c->neginf && !sx_top_guard(c, a)
             ? c->zero
             : sx_add(c, a, sx_neg(c, b));
}

/* ---- products ---- */

/* floor of a rational. */
bool sx_q_floor(const sc *c, uint32_t q, int64_t *out) {
  const __int128 large = (__int128)1 << 100;
  if (pv_q_is_int(&c->q, q, out)) return true;
  pv_q v;
  if (!pv_q_small(&c->q, q, &v)) return false;
  for (; v.e < 0 && v.d < large; v.e++) v.d *= 2;
  for (; v.e > 0 && v.n < large && v.n > -large; v.e--) v.n *= 2;
  if (v.e) return false;
  __int128 f = v.n / v.d;
  if (v.n < 0 && f * v.d != v.n) f--;
  *out = (int64_t)f;
  return f <= INT32_MAX && f >= INT32_MIN;
}

/* One merged factor: kept in place (true), or turned into something in `*extra`. */
static bool keep_factor(sc *c, uint32_t *w, uint32_t *coef, sx *extra) {
  const sx b = w[0];
  const uint32_t e = w[1];
  if (e == PV_ZERO_Q) return false;
  int64_t whole;
  if (!sx_q_floor(c, e, &whole)) whole = 0; /* kept as it is */
  const sx_op op = sc_op(c, b);
  if (op == X_CONST) { /* a root of a number: the exponent within (0, 1) */
    if (whole) {
      *coef = pv_q_mul(&c->q, *coef, pv_q_pow(&c->q, sc_word(c, b, 0), whole));
      w[1] = pv_q_add(&c->q, e, pv_q_int(&c->q, -whole));
    }
    return w[1] != PV_ZERO_Q;
  }
  if (op == X_IVER && pv_q_sign(&c->q, e) > 0) {
    w[1] = PV_ONE_Q;
    return true;
  }
  if (op == X_FN && sc_word(c, b, 0) == F_ABS && pv_q_is_int(&c->q, e, &(int64_t){0}) &&
      (whole >= 2 || whole <= -1)) {
    const int64_t even = whole & ~(int64_t)1;
    *extra = sx_mul(c, *extra, sx_powi(c, sc_word(c, b, 1), even));
    w[1] = pv_q_int(&c->q, whole - even);
    return w[1] != PV_ZERO_Q;
  }
  const bool sum = op == X_ADD, product = op == X_MUL;
  if ((sum && whole >= 1) || (product && (whole >= 1 || pv_q_is_int(&c->q, e, &(int64_t){0})))) {
    *extra = sx_mul(c, *extra, sx_powi(c, b, whole));
    w[1] = pv_q_add(&c->q, e, pv_q_int(&c->q, -whole));
    return w[1] != PV_ZERO_Q;
  }
  return true;
}

sx sx_product_finish(sc *c, size_t start, uint32_t q) {
  const size_t n = c->store.sp - start;
  size_t m = 0;
  uint32_t *t = c->store.stack + 2 * start;
  sx extra = c->one;
  if (!sc_work(c, n)) {
    c->store.sp = start;
    return c->zero;
  }
  qsort(t, n, 2 * sizeof *t, by_first);
  for (size_t i = 0; i < n;) {
    uint32_t w[2] = {t[2 * i], t[2 * i + 1]};
    for (i++; i < n && t[2 * i] == w[0]; i++) w[1] = pv_q_add(&c->q, w[1], t[2 * i + 1]);
    if (keep_factor(c, w, &q, &extra)) t[2 * m] = w[0], t[2 * m + 1] = w[1], m++;
  }
  sx r = c->fault.failed              ? c->zero
         : m == 0                     ? c->one
         : m == 1 && t[1] == PV_ONE_Q ? t[0]
                                      : sc_node(c, X_MUL, t, 2 * m);
  c->store.sp = start;
  if (q != PV_ONE_Q) r = sx_scale(c, q, r);
  return extra == c->one ? r : sx_mul(c, r, extra);
}

static void push_factors(sc *c, sx m, uint32_t times) {
  for (size_t i = 0, n = sx_factors(c, m); i < n; i++) {
    sx b;
    uint32_t e;
    sx_factor(c, m, i, &b, &e);
    sx_push(c, b, times == PV_ONE_Q ? e : pv_q_mul(&c->q, e, times));
  }
}

static sx mul_monomials(sc *c, uint32_t q, sx a, sx b) {
  if (a == c->one || b == c->one) return sx_scale(c, q, a == c->one ? b : a);
  const size_t start = c->store.sp;
  push_factors(c, a, PV_ONE_Q);
  push_factors(c, b, PV_ONE_Q);
  return sx_product_finish(c, start, q);
}

/* (sum)^e among b's factors with e < 0 takes the sum away. */
static bool cancels(sc *c, sx sum, sx b, sx *out) {
  uint32_t q;
  sx m;
  if (!sx_is_long(c, sum) || sx_is_long(c, b) || b == c->zero) return false;
  sx_term(c, b, 0, &q, &m);
  for (size_t i = 0, n = sx_factors(c, m); i < n; i++) {
    sx base;
    uint32_t e;
    sx_factor(c, m, i, &base, &e);
    if (base != sum || pv_q_sign(&c->q, e) >= 0) continue;
    const size_t start = c->store.sp;
    push_factors(c, m, PV_ONE_Q);
    sx_push(c, sum, PV_ONE_Q);
    *out = sx_product_finish(c, start, q);
    return true;
  }
  return false;
}

/* Whether p is max(0, x), so that p x is p^2. */
static bool is_positive_part(const sc *c, sx p, sx x) {
  if (sc_op(c, p) != X_MAX || c->store.node[p].n != 2) return false;
  const sx u = sc_word(c, p, 0), v = sc_word(c, p, 1);
  return (u == c->zero && v == x) || (v == c->zero && u == x);
}

sx sx_mul(sc *c, sx a, sx b) {
  sx r;
  if (c->fault.failed) return c->zero;
  if (a == c->one) return b;
  if (b == c->one) return a;
  const sx g = sx_smallest_guard(c, (sx[2]){a, b}, 2);
  if (g) {
    const sx x = sx_mul(c, sx_cofactor(c, a, g, true), sx_cofactor(c, b, g, true));
    const sx y = sx_mul(c, sx_cofactor(c, a, g, false), sx_cofactor(c, b, g, false));
    return x == y ? x : sc_node(c, X_ITE, (uint32_t[3]){g, x, y}, 3);
  }
  if (a == c->neginf || b == c->neginf) {
    if (!sc_has(c, a == c->neginf ? b : a, S_POS))
      sc_fail(c, "minus infinity times a number that may not be positive");
    return c->neginf;
  }
  if ((sc_flags(c, a) | sc_flags(c, b)) & S_BOOL) sc_fail(c, "arithmetic on truth values");
  if (c->reading.plain && !sx_of_sizes(c, (sx[2]){a, b}, 2)) return sx_fn2(c, F_MUL, a, b);
  if (cancels(c, a, b, &r) || cancels(c, b, a, &r)) return r;
  if (is_positive_part(c, a, b)) return sx_powi(c, a, 2);
  if (is_positive_part(c, b, a)) return sx_powi(c, b, 2);
  const size_t n = sx_terms(c, a), m = sx_terms(c, b), start = c->store.sp;
  if (n * m > MAX_TERMS) sc_fail(c, "a product of more than %d terms", (int)MAX_TERMS);
  for (size_t i = 0; i < n && !c->fault.failed; i++)
    for (size_t k = 0; k < m && !c->fault.failed; k++) {
      uint32_t p, q;
      sx x, y;
      sx_term(c, a, i, &p, &x);
      sx_term(c, b, k, &q, &y);
      const sx z = mul_monomials(c, pv_q_mul(&c->q, p, q), x, y);
      if (n == 1 && m == 1) return z;
      for (size_t j = 0, l = sx_terms(c, z); j < l && !c->fault.failed; j++) {
        sx_term(c, z, j, &q, &y);
        sx_push(c, q, y);
      }
    }
  return finish_sum(c, start);
}

sx sx_mul3(sc *c, sx a, sx b, sx d) { return sx_mul(c, sx_mul(c, a, b), d); }
