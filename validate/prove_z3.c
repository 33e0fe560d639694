/* The last step of the symbolic prover: what holds on this path of conditions, as linear real arithmetic in Z3.
 *
 * Atoms and products are unknown numbers here, of which only signs are told; integers are taken as reals, which only
 * makes proving harder. The assumptions alone are shown to have a model, so that a proof is not vacuous; where they have
 * none the path cannot be taken, and there is nothing to show. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <z3.h>

#include "validate/prove_int.h"

typedef struct solver {
  sc *c;
  Z3_context z;
  Z3_solver s;
  Z3_sort real;
  sx key[512];
  Z3_ast value[512];
  size_t n;
  bool failed;
} solver;

static void on_error(Z3_context z, Z3_error_code e) {
  (void)z;
  (void)e;
}

static Z3_ast integer(solver *m, __int128 v) {
  char buf[48], *p = buf + sizeof buf;
  const bool negative = v < 0;
  unsigned __int128 u = negative ? -(unsigned __int128)v : (unsigned __int128)v;
  *--p = 0;
  do *--p = (char)('0' + (int)(u % 10));
  while (u /= 10);
  if (negative) *--p = '-';
  return Z3_mk_numeral(m->z, p, m->real);
}

static Z3_ast rational(solver *m, uint32_t q) {
  const pv_q v = m->c->q.q[q];
  Z3_ast r = Z3_mk_div(m->z, integer(m, v.n), integer(m, v.d));
  int32_t e = v.e < 0 ? -v.e : v.e;
  for (; e > 0; e -= 62) {
    Z3_ast p = integer(m, (__int128)1 << (e < 62 ? e : 62));
    r = v.e < 0 ? Z3_mk_div(m->z, r, p) : Z3_mk_mul(m->z, 2, (Z3_ast[2]){r, p});
  }
  return Z3_simplify(m->z, r);
}

static Z3_ast number(solver *m, int v) { return Z3_mk_int(m->z, v, m->real); }
static void assume(solver *m, Z3_ast a) { Z3_solver_assert(m->z, m->s, a); }

static Z3_ast linear(solver *m, sx x);

/* A monomial or atom: one unknown. */
static Z3_ast unknown(solver *m, sx x) {
  for (size_t i = 0; i < m->n; i++)
    if (m->key[i] == x) return m->value[i];
  if (m->n == 512) {
    m->failed = true;
    return number(m, 0);
  }
  const unsigned f = sc_flags(m->c, x);
  const Z3_ast v = Z3_mk_fresh_const(m->z, "x", m->real), zero = number(m, 0);
  m->key[m->n] = x;
  m->value[m->n++] = v;
  if (f & S_POS) assume(m, Z3_mk_gt(m->z, v, zero));
  else if (f & S_NONNEG) assume(m, Z3_mk_ge(m->z, v, zero));
  if (sc_op(m->c, x) == X_SYM && sc_has(m->c, x, S_INT)) {
    const sx_sym *s = &m->c->sym[sc_word(m->c, x, 0)];
    if (s->has_low) assume(m, Z3_mk_ge(m->z, v, Z3_mk_int64(m->z, s->low, m->real)));
    if (s->high) assume(m, Z3_mk_le(m->z, v, Z3_mk_sub(m->z, 2, (Z3_ast[2]){linear(m, s->high), number(m, 1)})));
  }
  if (sc_op(m->c, x) == X_MAX) {
    Z3_ast r = linear(m, sc_word(m->c, x, 0));
    for (uint32_t i = 1; i < sc_at(m->c, x)->n; i++) {
      const Z3_ast y = linear(m, sc_word(m->c, x, i));
      r = Z3_mk_ite(m->z, Z3_mk_ge(m->z, r, y), r, y);
    }
    assume(m, Z3_mk_eq(m->z, v, r));
  }
  if (sc_op(m->c, x) == X_FN && sc_word(m->c, x, 0) == F_ABS) {
    const Z3_ast y = linear(m, sc_word(m->c, x, 1));
    assume(m, Z3_mk_eq(m->z, v, Z3_mk_ite(m->z, Z3_mk_ge(m->z, y, zero), y, Z3_mk_unary_minus(m->z, y))));
  }
  return v;
}

static Z3_ast linear(solver *m, sx x) {
  const size_t n = sx_terms(m->c, x);
  Z3_ast r = number(m, 0);
  for (size_t i = 0; i < n && !m->failed; i++) {
    uint32_t q;
    sx mono;
    sx_term(m->c, x, i, &q, &mono);
    const Z3_ast k = rational(m, q), t = mono == m->c->one ? k : Z3_mk_mul(m->z, 2, (Z3_ast[2]){k, unknown(m, mono)});
    r = i == 0 ? t : Z3_mk_add(m->z, 2, (Z3_ast[2]){r, t});
  }
  return r;
}

static Z3_ast condition(solver *m, sx g) {
  switch (sc_op(m->c, g)) {
  case X_TRUE: return Z3_mk_true(m->z);
  case X_FALSE: return Z3_mk_false(m->z);
  case X_LT: return Z3_mk_lt(m->z, linear(m, sc_word(m->c, g, 0)), number(m, 0));
  case X_EQ: return Z3_mk_eq(m->z, linear(m, sc_word(m->c, g, 0)), number(m, 0));
  case X_ITE:
    return Z3_mk_ite(m->z, condition(m, sc_word(m->c, g, 0)), condition(m, sc_word(m->c, g, 1)), condition(m, sc_word(m->c, g, 2)));
  default: return Z3_mk_eq(m->z, unknown(m, g), number(m, 1));
  }
}

static void assumptions(solver *m, const sc_guess *g, size_t n) {
  sc *c = m->c;
  for (size_t i = 0; i < c->n_facts; i++) assume(m, Z3_mk_ge(m->z, linear(m, c->fact[i]), number(m, 0)));
  for (size_t i = 0; i < c->n_path + n; i++) {
    const sc_guess p = i < c->n_path ? c->path[i] : g[i - c->n_path];
    const Z3_ast a = condition(m, p.cond);
    assume(m, p.holds ? a : Z3_mk_not(m->z, a));
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
  Z3_config cfg = k ? Z3_mk_config() : NULL;
  if (cfg) k->z = Z3_mk_context(cfg);
  if (cfg) Z3_del_config(cfg);
  if (!k || !k->z) {
    free(k);
    return false;
  }
  Z3_set_error_handler(k->z, on_error);
  k->s = Z3_mk_simple_solver(k->z);
  Z3_solver_inc_ref(k->z, k->s);
  Z3_params p = Z3_mk_params(k->z);
  Z3_params_inc_ref(k->z, p);
  Z3_params_set_uint(k->z, p, Z3_mk_string_symbol(k->z, "arith.solver"), 6);
  Z3_params_set_uint(k->z, p, Z3_mk_string_symbol(k->z, "rlimit"), 400000);
  Z3_params_set_uint(k->z, p, Z3_mk_string_symbol(k->z, "timeout"), 20000); /* a backstop: rlimit comes first */
  Z3_solver_set_params(k->z, k->s, p);
  Z3_params_dec_ref(k->z, p);
  c->z3 = k;
  return true;
}

void sc_z3_close(sc *c) {
  if (!c->z3) return;
  Z3_solver_dec_ref(c->z3->z, c->z3->s);
  Z3_del_context(c->z3->z);
  free(c->z3);
  c->z3 = NULL;
}

static bool start(solver *m, sc *c) {
  *m = (solver){.c = c};
  if (c->rlimit == 0 || !open_context(c)) return false;
  m->z = c->z3->z;
  m->s = c->z3->s;
  m->real = Z3_mk_real_sort(m->z);
  Z3_solver_push(m->z, m->s);
  return true;
}

static Z3_lbool check(solver *m) {
  Z3_lbool r = Z3_solver_check(m->z, m->s);
  if (m->failed || Z3_get_error_code(m->z) != Z3_OK) r = Z3_L_UNDEF;
  const uint64_t cost = 20000; /* each question counts alike, so that the answer does not depend on the machine */
  m->c->rlimit = m->c->rlimit > cost ? m->c->rlimit - cost : 0;
  return r;
}

static void stop(solver *m) { Z3_solver_pop(m->z, m->s, 1); }

bool sc_z3_equal(sc *c, sx a, sx b) {
  solver m;
  bool ok = false;
  /* Without a condition on the path and without a choice there is nothing that Z3 could add. */
  if (c->n_path == 0 || c->failed || !start(&m, c)) return false;
  assumptions(&m, NULL, 0);
  const Z3_ast x = linear(&m, a), y = linear(&m, b);
  assume(&m, Z3_mk_not(m.z, Z3_mk_eq(m.z, x, y)));
  ok = check(&m) == Z3_L_FALSE;
  if (ok) c->used_z3 = true;
  stop(&m);
  return ok;
}

bool sc_z3_possible(sc *c, const sc_guess *g, size_t n) {
  solver m;
  if (c->failed || !start(&m, c)) return true;
  assumptions(&m, g, n);
  const bool possible = check(&m) != Z3_L_FALSE;
  if (!possible) c->used_z3 = true;
  stop(&m);
  return possible;
}
