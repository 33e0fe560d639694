/* The last step of the symbolic prover: the hypotheses of this path of conditions, as linear real
 * arithmetic in Z3.
 *
 * Atoms and products are unknown numbers here, of which Z3 is told only signs, and of quotients and
 * roundings their definitions. For a quotient floor(x / d) by a symbol that is compared with t, it
 * is also told that floor(x / d) <= t exactly where x <= d t + d - 1, whose products have the same
 * form as all others. The assumptions alone are shown to have a model, so that a proof is not
 * vacuous; where they have none the path cannot be taken, and there is nothing to show. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "validate/prove/prove.h"
#include "validate/prove/z3_lazy.h"

enum { MAX_LEMMAS = 48 };

typedef struct solver {
  sc *c;
  Z3_context z;
  Z3_solver s;
  Z3_sort real, integer;
  size_t n_lemmas;
  sx key[512];
  Z3_ast value[512];
  size_t n;
  bool failed;
} solver;

static Z3_ast numeral(solver *m, __int128 v, Z3_sort sort) {
  char buf[48], *p = buf + sizeof buf;
  const bool negative = v < 0;
  unsigned __int128 u = negative ? -(unsigned __int128)v : (unsigned __int128)v;
  *--p = 0;
  do *--p = (char)('0' + (int)(u % 10));
  while (u /= 10);
  if (negative) *--p = '-';
  return z3.mk_numeral(m->z, p, sort);
}
static Z3_ast integer(solver *m, __int128 v) { return numeral(m, v, m->real); }

/* n / d of a number of any length. */
static Z3_ast quotient(solver *m, uint32_t q) {
  pv_q v;
  if (pv_q_small(&m->c->q, q, &v)) return z3.mk_div(m->z, integer(m, v.n), integer(m, v.d));
  char *n, *d;
  if (!pv_q_decimals(&m->c->q, q, &n, &d)) {
    m->failed = m->c->fault.no_memory = true;
    return integer(m, 0);
  }
  const Z3_ast r =
      z3.mk_div(m->z, z3.mk_numeral(m->z, n, m->real), z3.mk_numeral(m->z, d, m->real));
  free(n);
  free(d);
  return pv_q_sign(&m->c->q, q) < 0 ? z3.mk_unary_minus(m->z, r) : r;
}

static Z3_ast rational(solver *m, uint32_t q) {
  Z3_ast r = quotient(m, q);
  const int32_t power = pv_q_exponent(&m->c->q, q);
  int32_t e = power < 0 ? -power : power;
  for (; e > 0; e -= 62) {
    Z3_ast p = integer(m, (__int128)1 << (e < 62 ? e : 62));
    r = power < 0 ? z3.mk_div(m->z, r, p) : z3.mk_mul(m->z, 2, (Z3_ast[2]){r, p});
  }
  return z3.simplify(m->z, r);
}

static Z3_ast number(solver *m, int v) { return z3.mk_int(m->z, v, m->real); }
static bool is_whole(solver *m, Z3_ast a) { return z3.get_sort(m->z, a) == m->integer; }
/* Integers stay among themselves: mixed with reals they are much harder to decide. */
static Z3_ast real_of(solver *m, Z3_ast a) { return is_whole(m, a) ? z3.mk_int2real(m->z, a) : a; }
static Z3_ast same_sort(solver *m, int v, Z3_ast as) {
  return z3.mk_int(m->z, v, z3.get_sort(m->z, as));
}
static void assume(solver *m, Z3_ast a) { z3.solver_assert(m->z, m->s, a); }

static Z3_ast linear(solver *m, sx x);

/* low <= x <= high, both polynomials. */
static void between(solver *m, sx low, sx x, sx high) {
  const Z3_ast above = linear(m, sx_sub(m->c, x, low)), below = linear(m, sx_sub(m->c, high, x));
  assume(m, z3.mk_ge(m->z, above, same_sort(m, 0, above)));
  assume(m, z3.mk_ge(m->z, below, same_sort(m, 0, below)));
}

/* A rounding by its definition. `v` is x's value. */
static void rounding(solver *m, sx x, Z3_ast v) {
  sc *c = m->c;
  if (sc_op(c, x) == X_DIV) {
    const sx d = sc_word(c, x, 1);
    if (!sx_gt0(c, d))
      return; /* elsewhere a quotient says nothing, and no path may end for what it says */
    between(m, c->zero, sx_sub(c, sc_word(c, x, 0), sx_mul(c, d, x)), sx_sub(c, d, c->one));
    return;
  }
  if (sc_op(c, x) != X_FN) return;
  const sx_func f = (sx_func)sc_word(c, x, 0);
  if (f != F_FLOOR && f != F_CEIL && f != F_ROUND) return;
  const Z3_ast d = z3.mk_sub(m->z, 2,
                             (Z3_ast[2]){real_of(m, linear(m, sc_word(c, x, 1))), real_of(m, v)}),
               zero = number(m, 0);
  if (f == F_ROUND) {
    const Z3_ast twice = z3.mk_add(m->z, 2, (Z3_ast[2]){d, d});
    assume(m, z3.mk_le(m->z, twice, number(m, 1)));
    assume(m, z3.mk_ge(m->z, twice, number(m, -1)));
    return;
  }
  assume(m, f == F_FLOOR ? z3.mk_ge(m->z, d, zero) : z3.mk_le(m->z, d, zero));
  assume(m, f == F_FLOOR ? z3.mk_lt(m->z, d, number(m, 1)) : z3.mk_gt(m->z, d, number(m, -1)));
}

static Z3_ast unknown(solver *m, sx x);

/* x <= d t + k, as a truth value. */
static Z3_ast at_most(solver *m, sx x, sx d, sx t, sx k) {
  const Z3_ast p = linear(m, sx_sub(m->c, x, sx_add(m->c, sx_mul(m->c, d, t), k)));
  return z3.mk_le(m->z, p, same_sort(m, 0, p));
}

/* Whether one unknown number is at least 0. */
static Z3_ast sign_of(solver *m, Z3_ast v, bool at_least) {
  const Z3_ast zero = same_sort(m, 0, v);
  return at_least ? z3.mk_ge(m->z, v, zero) : z3.mk_le(m->z, v, zero);
}

/* a <= b goes over to the products with a common factor that is not negative; both to each other
 * where it is positive. */
static void factor_in_common(solver *m, sx x, sx y) {
  sc *c = m->c;
  sx f, u, v;
  uint32_t e;
  for (size_t i = 0, n = sx_factors(c, x); i < n && m->n_lemmas < MAX_LEMMAS; i++) {
    sx_factor(c, x, i, &f, &e);
    if (e != PV_ONE_Q || !sc_has(c, f, S_NONNEG) || !sx_divides(c, f, y, &v) ||
        !sx_divides(c, f, x, &u))
      continue;
    m->n_lemmas++;
    const Z3_ast less = at_most(m, u, c->one, v, c->zero), more = at_most(m, v, c->one, u, c->zero);
    const Z3_ast less_times = at_most(m, x, c->one, y, c->zero),
                 more_times = at_most(m, y, c->one, x, c->zero);
    assume(m, z3.mk_implies(m->z, less, less_times));
    assume(m, z3.mk_implies(m->z, more, more_times));
    if (!sc_has(c, f, S_POS)) continue;
    assume(m, z3.mk_implies(m->z, less_times, less));
    assume(m, z3.mk_implies(m->z, more_times, more));
  }
}

/* Facts of a product x, whose value is v: its sign by those of its factors, and products
 * that share a factor. */
static void product(solver *m, sx x, Z3_ast v) {
  sc *c = m->c;
  sx a, b;
  uint32_t e, f;
  const size_t n = sx_factors(c, x), known = m->n;
  for (size_t i = 0; i < n; i++) {
    sx_factor(c, x, i, &a, &e);
    if (sc_op(c, a) == X_DIV) (void)unknown(m, a);
  }
  if (n == 2 && m->n_lemmas < MAX_LEMMAS) {
    sx_factor(c, x, 0, &a, &e);
    sx_factor(c, x, 1, &b, &f);
    m->n_lemmas++;
    for (int k = 0; k < 4 && e == PV_ONE_Q && f == PV_ONE_Q; k++)
      assume(m, z3.mk_implies(m->z,
                              z3.mk_and(m->z, 2,
                                        (Z3_ast[2]){sign_of(m, unknown(m, a), k & 1),
                                                    sign_of(m, unknown(m, b), k & 2)}),
                              sign_of(m, v, (k & 1) == (k >> 1))));
  }
  for (size_t i = 0; i < known && i < 40; i++)
    if (m->key[i] != x && sc_op(c, m->key[i]) == X_MUL) factor_in_common(m, x, m->key[i]);
}

/* A monomial or atom: one unknown. */
static Z3_ast unknown(solver *m, sx x) {
  for (size_t i = 0; i < m->n; i++)
    if (m->key[i] == x) return m->value[i];
  if (m->n == 512) {
    m->failed = true;
    return z3.mk_int(m->z, 0, sc_has(m->c, x, S_INT) ? m->integer : m->real);
  }
  const unsigned f = sc_flags(m->c, x);
  const Z3_ast v = z3.mk_fresh_const(m->z, "x", f & S_INT ? m->integer : m->real),
               zero = same_sort(m, 0, v);
  m->key[m->n] = x;
  m->value[m->n++] = v;
  if (f & S_POS) assume(m, z3.mk_gt(m->z, v, zero));
  else if (f & S_NONNEG) assume(m, z3.mk_ge(m->z, v, zero));
  if (sc_op(m->c, x) == X_SYM && sc_has(m->c, x, S_INT)) {
    const sx_sym *s = &m->c->store.sym[sc_word(m->c, x, 0)];
    if (s->has_low) assume(m, z3.mk_ge(m->z, v, z3.mk_int64(m->z, s->low, m->integer)));
    if (s->high) between(m, m->c->zero, x, sx_sub(m->c, s->high, m->c->one));
  }
  rounding(m, x, v);
  if (sc_op(m->c, x) == X_MUL) product(m, x, v);
  if (sc_op(m->c, x) == X_MAX) {
    Z3_ast r = real_of(m, linear(m, sc_word(m->c, x, 0)));
    for (uint32_t i = 1; i < sc_at(m->c, x)->n; i++) {
      const Z3_ast y = real_of(m, linear(m, sc_word(m->c, x, i)));
      r = z3.mk_ite(m->z, z3.mk_ge(m->z, r, y), r, y);
    }
    assume(m, z3.mk_eq(m->z, real_of(m, v), r));
  }
  if (sc_op(m->c, x) == X_FN && sc_word(m->c, x, 0) == F_ABS) {
    const Z3_ast y = linear(m, sc_word(m->c, x, 1));
    const Z3_ast positive = z3.mk_ge(m->z, y, same_sort(m, 0, y));
    assume(m, z3.mk_eq(m->z, real_of(m, v),
                       real_of(m, z3.mk_ite(m->z, positive, y, z3.mk_unary_minus(m->z, y)))));
  }
  return v;
}

/* Whether its coefficients and its monomials are integers. */
static bool whole_terms(const sc *c, sx x) {
  int64_t k;
  for (size_t i = 0, n = sx_terms(c, x); i < n; i++) {
    uint32_t q;
    sx mono;
    sx_term(c, x, i, &q, &mono);
    if (!pv_q_is_int(&c->q, q, &k) || !sc_has(c, mono, S_INT)) return false;
  }
  return true;
}

static Z3_ast linear(solver *m, sx x) {
  const size_t n = sx_terms(m->c, x);
  const bool whole = whole_terms(m->c, x);
  Z3_ast r = z3.mk_int(m->z, 0, whole ? m->integer : m->real);
  for (size_t i = 0; i < n && !m->failed; i++) {
    uint32_t q;
    sx mono;
    int64_t v = 0;
    sx_term(m->c, x, i, &q, &mono);
    if (whole) (void)pv_q_is_int(&m->c->q, q, &v);
    const Z3_ast k = whole ? z3.mk_int64(m->z, v, m->integer) : rational(m, q);
    Z3_ast t = k;
    if (mono != m->c->one) {
      const Z3_ast u = unknown(m, mono);
      t = z3.mk_mul(m->z, 2, (Z3_ast[2]){k, whole ? u : real_of(m, u)});
    }
    r = i == 0 ? t : z3.mk_add(m->z, 2, (Z3_ast[2]){r, t});
  }
  return r;
}

/* p is compared with 0: each quotient by a symbol in it, with coefficient 1 or -1, with the rest.
 */
static void compared(solver *m, sx p) {
  sc *c = m->c;
  for (size_t i = 0, n = sx_terms(c, p);
       i < n && n < 12 && m->n_lemmas < MAX_LEMMAS && sc_has(c, p, S_INT); i++) {
    uint32_t q;
    sx u;
    sx_term(c, p, i, &q, &u);
    if (sc_op(c, u) != X_DIV || sc_op(c, sc_word(c, u, 1)) == X_CONST ||
        (q != PV_ONE_Q && q != PV_MINUS_Q))
      continue;
    if (!sx_gt0(c, sc_word(c, u, 1))) continue;
    m->n_lemmas++;
    const sx x = sc_word(c, u, 0), d = sc_word(c, u, 1), rest = sx_sub(c, p, sx_scale(c, q, u)),
             t = q == PV_ONE_Q ? sx_neg(c, rest) : rest;
    const sx less = sx_sub(c, d, c->one), more = sx_sub(c, sx_add(c, d, d), c->one);
    /* Against t - 1, t and t + 1: conditions on integers are off by one. */
    assume(m, z3.mk_iff(m->z, at_most(m, u, c->one, t, c->minus_one),
                        at_most(m, x, d, t, c->minus_one)));
    assume(m, z3.mk_iff(m->z, at_most(m, u, c->one, t, c->zero), at_most(m, x, d, t, less)));
    assume(m, z3.mk_iff(m->z, at_most(m, u, c->one, t, c->one), at_most(m, x, d, t, more)));
  }
}

static Z3_ast condition(solver *m, sx g) {
  Z3_ast p;
  if (sc_op(m->c, g) == X_LT || sc_op(m->c, g) == X_EQ) compared(m, sc_word(m->c, g, 0));
  switch (sc_op(m->c, g)) {
  case X_TRUE: return z3.mk_true(m->z);
  case X_FALSE: return z3.mk_false(m->z);
  case X_LT:
  case X_EQ:
    p = linear(m, sc_word(m->c, g, 0));
    return sc_op(m->c, g) == X_LT ? z3.mk_lt(m->z, p, same_sort(m, 0, p))
                                  : z3.mk_eq(m->z, p, same_sort(m, 0, p));
  case X_ITE:
    return z3.mk_ite(m->z, condition(m, sc_word(m->c, g, 0)), condition(m, sc_word(m->c, g, 1)),
                     condition(m, sc_word(m->c, g, 2)));
  default: p = unknown(m, g); return z3.mk_eq(m->z, p, same_sort(m, 1, p));
  }
}

static void assumptions(solver *m, const sc_guess *g, size_t n) {
  sc *c = m->c;
  for (size_t i = 0; i < c->here.n_facts; i++) {
    const Z3_ast p = linear(m, c->here.fact[i]);
    assume(m, z3.mk_ge(m->z, p, same_sort(m, 0, p)));
  }
  for (size_t i = 0; i < c->here.n_path + n; i++) {
    const sc_guess p = i < c->here.n_path ? c->here.path[i] : g[i - c->here.n_path];
    const Z3_ast a = condition(m, p.cond);
    assume(m, p.holds ? a : z3.mk_not(m->z, a));
  }
}

typedef struct sc_z3 {
  Z3_context z;
  Z3_solver s;
} sc_z3;

/* One context serves all questions of a rule: making one takes longer than most answers. */
static bool open_context(sc *c) {
  if (c->z3) return true;
  sc_z3 *k = calloc(1, sizeof *k);
  if (k) k->z = val_z3_context();
  if (!k || !k->z) {
    free(k);
    return false;
  }
  k->s = z3.mk_simple_solver(k->z);
  z3.solver_inc_ref(k->z, k->s);
  Z3_params p = z3.mk_params(k->z);
  z3.params_inc_ref(k->z, p);
  z3.params_set_uint(k->z, p, z3.mk_string_symbol(k->z, "arith.solver"), 6);
  z3.solver_set_params(k->z, k->s, p);
  z3.params_dec_ref(k->z, p);
  val_z3_limit(k->z, k->s, 400000);
  c->z3 = k;
  return true;
}

void sc_z3_close(sc *c) {
  if (!c->z3) return;
  z3.solver_dec_ref(c->z3->z, c->z3->s);
  z3.del_context(c->z3->z);
  free(c->z3);
  c->z3 = NULL;
}

static bool start(solver *m, sc *c) {
  *m = (solver){.c = c};
  if (c->budget.rlimit == 0 || !open_context(c)) return false;
  m->z = c->z3->z;
  m->s = c->z3->s;
  m->real = z3.mk_real_sort(m->z);
  m->integer = z3.mk_int_sort(m->z);
  z3.solver_push(m->z, m->s);
  return true;
}

static Z3_lbool check(solver *m) {
  Z3_lbool r = z3.solver_check(m->z, m->s);
  if (m->failed || z3.get_error_code(m->z) != Z3_OK) r = Z3_L_UNDEF;
#ifdef PROVE_TRACE
  fprintf(stderr, "z3: %d %s\n", (int)r, Z3_solver_get_reason_unknown(m->z, m->s));
  fprintf(stderr, "%s\n", Z3_solver_to_string(m->z, m->s));
#endif
  if (r == Z3_L_UNDEF && val_z3_overran(m->z, m->s))
    m->c->fault.overran = true, sc_fail(m->c, "%s", VAL_Z3_OVERRAN);
  const uint64_t cost =
      20000; /* each question counts alike, so that the answer does not depend on the machine */
  m->c->budget.rlimit = m->c->budget.rlimit > cost ? m->c->budget.rlimit - cost : 0;
  return r;
}

static void stop(solver *m) { z3.solver_pop(m->z, m->s, 1); }

/* Whether one of its terms is a quotient or a rounding. */
static bool rounds(const sc *c, sx x) {
  for (size_t i = 0, n = sx_terms(c, x); i < n; i++) {
    uint32_t q;
    sx m;
    sx_term(c, x, i, &q, &m);
    if (sc_op(c, m) == X_DIV || (sc_op(c, m) == X_FN && sc_word(c, m, 0) == F_FLOOR)) return true;
  }
  return false;
}

bool sc_z3_equal(sc *c, sx a, sx b) {
  solver m;
  bool ok = false;
  /* Without a condition on the path, a choice or a quotient there is nothing that Z3 could add. */
  if ((c->here.n_path == 0 && !rounds(c, a)) || c->fault.failed || !start(&m, c)) return false;
  assumptions(&m, NULL, 0);
  const sx d = sx_sub(c, a, b);
  compared(&m, d);
  const Z3_ast p = linear(&m, d);
  assume(&m, z3.mk_not(m.z, z3.mk_eq(m.z, p, same_sort(&m, 0, p))));
  ok = check(&m) == Z3_L_FALSE;
  if (ok) c->used.z3 = true;
  stop(&m);
  return ok;
}

bool sc_z3_possible(sc *c, const sc_guess *g, size_t n) {
  solver m;
  if (c->fault.failed || !start(&m, c)) return true;
  assumptions(&m, g, n);
  const bool possible = check(&m) != Z3_L_FALSE;
  if (!possible) c->used.z3 = true;
  stop(&m);
  return possible;
}
