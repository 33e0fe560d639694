/* The last step of a proof: one pair of element expressions in Z3, as linear arithmetic with uninterpreted functions.
 *
 * Products are uninterpreted too: the normal form has already ordered them, and Z3's own products do not stop in
 * reasonable time. Ground instances of axioms stand in for the terms that occur: a b = b a, 0 a = 0, 1 a = a;
 * exp(x) > 0, and so are products known to be positive; v >= 0 => sqrt(v) >= 0 and sqrt(v)^2 = v; and for a product m
 * with 1/s, s a sum: s != 0 => s m = m / (1/s), its left side multiplied out. Integers are taken as reals, which only
 * makes proving harder. `unsat` of the negated goal counts once the axioms alone are shown satisfiable. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "validate/encode_int.h"
#include "validate/validate.h"
#include "validate/z3_lazy.h"

typedef struct solver {
  pv_cx *c;
  Z3_context z;
  Z3_solver s;
  Z3_sort real;
  Z3_ast *of; /* by id */
  Z3_func_decl inverse, product, square_root, exponential, fn[4];
  int made;     /* translated expressions and products */
  int expanded; /* products multiplied out so far */
  bool expanding; /* what comes out is not multiplied out again */
  const char *failed;
} solver;

/* MAX_MADE: applications, products and their axioms, of a question: beyond it Z3 takes seconds only to hear it. */
enum { WATCH_MS = 50, MAX_MADE = 40000, LOOK_MADE = 256, MAX_DEPTH = 2000, MAX_POWER = 8, MAX_EXPANDED = 64, MAX_EXPANDED_TERMS = 64 };

/* Z3's own handler would end the process. */
static Z3_ast translate(solver *m, pv_id id, int depth);

static char *digits(__int128 v, char *end) {
  bool negative = v < 0;
  unsigned __int128 u = negative ? -(unsigned __int128)v : (unsigned __int128)v;
  *--end = 0;
  do *--end = (char)('0' + (int)(u % 10));
  while (u /= 10);
  if (negative) *--end = '-';
  return end;
}

static Z3_ast integer(solver *m, __int128 v) {
  char buf[48];
  return z3.mk_numeral(m->z, digits(v, buf + sizeof buf), m->real);
}

static Z3_ast rational(solver *m, uint32_t q) {
  pv_q v = m->c->q[q];
  Z3_ast r = z3.mk_div(m->z, integer(m, v.n), integer(m, v.d));
  int32_t e = v.e < 0 ? -v.e : v.e;
  for (; e > 0; e -= 62) {
    Z3_ast p = integer(m, (__int128)1 << (e < 62 ? e : 62));
    Z3_ast two[2] = {r, p};
    r = v.e < 0 ? z3.mk_div(m->z, r, p) : z3.mk_mul(m->z, 2, two);
  }
  return z3.simplify(m->z, r);
}

static Z3_ast times(solver *m, Z3_ast a, Z3_ast b) { return z3.mk_mul(m->z, 2, (Z3_ast[2]){a, b}); }
static Z3_ast number(solver *m, int v) { return z3.mk_int(m->z, v, m->real); }
static void assume(solver *m, Z3_ast a) { z3.solver_assert(m->z, m->s, a); }

/* a = v => r = w */
static void when(solver *m, Z3_ast a, Z3_ast v, Z3_ast r, Z3_ast w) {
  assume(m, z3.mk_implies(m->z, z3.mk_eq(m->z, a, v), z3.mk_eq(m->z, r, w)));
}

/* One more expression for Z3: too many, or is it time to stop? */
static void count(solver *m) {
  if (++m->made > MAX_MADE && !m->failed) m->failed = "an element too large for z3";
  if (m->made % LOOK_MADE == 0 && !m->failed) m->failed = val_stopped(m->c->o);
}

/* A product that Z3 does not look into, but for factors 0 and 1. */
static Z3_ast product(solver *m, Z3_ast a, Z3_ast b) {
  count(m);
  Z3_ast x = z3.mk_app(m->z, m->product, 2, (Z3_ast[2]){a, b}), y = z3.mk_app(m->z, m->product, 2, (Z3_ast[2]){b, a});
  Z3_ast zero = number(m, 0), one = number(m, 1);
  if (x != y) assume(m, z3.mk_eq(m->z, x, y));
  when(m, a, zero, x, zero);
  when(m, b, zero, x, zero);
  when(m, a, one, x, b);
  when(m, b, one, x, a);
  return x;
}
static Z3_ast fresh(solver *m, Z3_sort s) { return z3.mk_fresh_const(m->z, "x", s); }
static Z3_ast app(solver *m, Z3_func_decl f, Z3_ast x) { return z3.mk_app(m->z, f, 1, &x); }

static Z3_ast inverse_of(solver *m, Z3_ast x) {
  Z3_ast r = app(m, m->inverse, x), zero = z3.mk_eq(m->z, x, number(m, 0));
  assume(m, z3.mk_or(m->z, 2, (Z3_ast[2]){zero, z3.mk_eq(m->z, product(m, x, r), number(m, 1))}));
  return r;
}

static Z3_ast power(solver *m, Z3_ast x, int32_t k) {
  if (k < 0) x = inverse_of(m, x), k = -k;
  if (k > MAX_POWER) {
    m->failed = "a power too high for z3";
    k = 1;
  }
  Z3_ast r = x;
  while (--k > 0) r = product(m, r, x);
  return r;
}

static Z3_ast linear(solver *m, const uint32_t *w, uint32_t n, bool sum, int depth) {
  Z3_ast *t = malloc((n / 2 + 1) * sizeof *t), r = NULL;
  if (!t) {
    m->failed = "out of memory";
    return number(m, 0);
  }
  for (uint32_t i = 0; i < n && !m->failed; i += 2) {
    Z3_ast x = translate(m, sum ? w[i + 1] : w[i], depth + 1);
    if (m->failed) break;
    if (!sum) t[i / 2] = power(m, x, (int32_t)w[i + 1]);
    else t[i / 2] = w[i] == PV_ONE_Q ? x : times(m, rational(m, w[i]), x);
  }
  if (m->failed) r = number(m, 0);
  else r = sum ? z3.mk_add(m->z, n / 2, t) : t[0];
  for (uint32_t i = 1; i < n / 2 && !sum && !m->failed; i++) r = product(m, r, t[i]);
  free(t);
  return r;
}

/* The instances for 1/s in a product: s != 0 => (s m multiplied out) = m with one 1/s less. */
static void multiply_out(solver *m, pv_id id, const pv_node *p, int depth) {
  pv_cx *c = m->c;
  for (uint32_t i = 0; i < p->n && !m->failed; i += 2) {
    pv_id s = c->word[p->off + i];
    const pv_node *b = pv_at(c, s);
    if ((int32_t)c->word[p->off + i + 1] >= 0 || !b || b->op != PV_SUM || b->n > 2 * MAX_EXPANDED_TERMS) continue;
    if (m->expanded++ >= MAX_EXPANDED) return;
    pv_id left = c->zero, right = c->one;
    for (uint32_t k = 0; k < b->n; k += 2)
      left = pv_add(c, left, pv_scale(c, c->word[b->off + k], pv_mul(c, c->word[b->off + k + 1], id)));
    for (uint32_t k = 0; k < p->n; k += 2) {
      int32_t x = (int32_t)c->word[p->off + k + 1] + (k == i);
      if (x) right = pv_mul(c, right, pv_pow(c, c->word[p->off + k], x));
    }
    if (c->failed) m->failed = "an expression beyond the budget";
    if (m->failed) return;
    m->expanding = true;
    Z3_ast base = translate(m, s, depth + 1), x = translate(m, left, depth + 1), y = translate(m, right, depth + 1);
    m->expanding = false;
    if (m->failed) return;
    Z3_ast zero = z3.mk_eq(m->z, base, number(m, 0));
    assume(m, z3.mk_or(m->z, 2, (Z3_ast[2]){zero, z3.mk_eq(m->z, x, y)}));
  }
}

static Z3_ast junction(solver *m, const uint32_t *w, uint32_t n, bool conjunction, int depth) {
  Z3_ast r = translate(m, w[0], depth + 1);
  for (uint32_t i = 1; i < n && !m->failed; i++) {
    Z3_ast two[2] = {r, translate(m, w[i], depth + 1)};
    if (!m->failed) r = conjunction ? z3.mk_and(m->z, 2, two) : z3.mk_or(m->z, 2, two);
  }
  return r;
}

static Z3_ast maximum(solver *m, const uint32_t *w, uint32_t n, int depth) {
  Z3_ast r = translate(m, w[0], depth + 1);
  for (uint32_t i = 1; i < n && !m->failed; i++) {
    Z3_ast y = translate(m, w[i], depth + 1);
    if (!m->failed) r = z3.mk_ite(m->z, z3.mk_ge(m->z, r, y), r, y);
  }
  return r;
}

static Z3_ast named(solver *m, const char *what, uint32_t k, Z3_ast x) {
  char name[48];
  snprintf(name, sizeof name, "%s%u", what, (unsigned)k);
  Z3_func_decl f = z3.mk_func_decl(m->z, z3.mk_string_symbol(m->z, name), 1, &m->real, m->real);
  return app(m, f, x);
}

static Z3_ast root_of(solver *m, Z3_ast v) {
  Z3_ast s = app(m, m->square_root, v), zero = number(m, 0);
  Z3_ast both[2] = {z3.mk_ge(m->z, s, zero), z3.mk_eq(m->z, product(m, s, s), v)};
  assume(m, z3.mk_implies(m->z, z3.mk_ge(m->z, v, zero), z3.mk_and(m->z, 2, both)));
  return s;
}

/* Operators of one argument whose translation is a function of it. */
static Z3_ast function(solver *m, const pv_node *p, const uint32_t *w, int depth) {
  Z3_ast x = translate(m, p->op == PV_FN || p->op == PV_SELECT ? w[1] : w[0], depth + 1), r;
  if (m->failed) return x;
  switch (p->op) {
  case PV_EXP:
    r = app(m, m->exponential, x);
    assume(m, z3.mk_gt(m->z, r, number(m, 0)));
    return r;
  case PV_SQRT: return root_of(m, x);
  case PV_FN: return app(m, m->fn[w[0]], x);
  case PV_POW: return named(m, "pow", w[1], x);
  case PV_SELECT: return named(m, "table", w[0], x);
  default: return z3.mk_not(m->z, x);
  }
}

static Z3_ast leaf(solver *m, pv_id id) {
  const pv_cx *c = m->c;
  char kind = 'f';
  for (uint32_t i = 0; i < c->r->n_vars; i++)
    if (c->var_base[i] <= id) kind = c->r->var[i].kind;
  if (c->r->n_attrs && id >= c->attr_leaf[0]) kind = 'f';
  return fresh(m, kind == 'b' ? z3.mk_bool_sort(m->z) : m->real);
}

static Z3_ast compound(solver *m, const pv_node *p, int depth) {
  const uint32_t *w = pv_words(m->c, p);
  Z3_ast x, y, z;
  switch (p->op) {
  case PV_CONST: return rational(m, w[0]);
  case PV_SUM: return linear(m, w, p->n, true, depth);
  case PV_PROD: return linear(m, w, p->n, false, depth);
  case PV_MAX: return maximum(m, w, p->n, depth);
  case PV_BOOL: return w[0] ? z3.mk_true(m->z) : z3.mk_false(m->z);
  case PV_AND: case PV_OR: return junction(m, w, p->n, p->op == PV_AND, depth);
  case PV_ITE: case PV_LT: case PV_EQ:
    x = translate(m, w[0], depth + 1);
    y = m->failed ? x : translate(m, w[1], depth + 1);
    z = m->failed || p->op != PV_ITE ? y : translate(m, w[2], depth + 1);
    if (m->failed) return x;
    return p->op == PV_ITE ? z3.mk_ite(m->z, x, y, z) : p->op == PV_LT ? z3.mk_lt(m->z, x, y) : z3.mk_eq(m->z, x, y);
  case PV_DOT: case PV_RSUM: return fresh(m, m->real); /* one number, whatever it is */
  case PV_ROOT:
    x = fresh(m, m->real);
    assume(m, z3.mk_gt(m->z, x, number(m, 0)));
    return x;
  case PV_EXP: case PV_SQRT: case PV_FN: case PV_POW: case PV_SELECT: case PV_NOT: return function(m, p, w, depth);
  default: m->failed = "minus infinity outside an exponential"; return number(m, 0);
  }
}

static Z3_ast translate(solver *m, pv_id id, int depth) {
  if (m->of[id]) return m->of[id];
  const pv_node *p = pv_at(m->c, id);
  count(m);
  if (depth > MAX_DEPTH) m->failed = "an expression too deep for z3";
  if (m->failed) return number(m, 0);
  Z3_ast r = p ? compound(m, p, depth) : leaf(m, id);
  if (!m->failed && z3.get_error_code(m->z) != Z3_OK) m->failed = "z3 refused the question";
  if (m->failed) return r;
  m->of[id] = r;
  if (p && p->op == PV_PROD && (p->flags & PV_POS)) assume(m, z3.mk_gt(m->z, r, number(m, 0)));
  if (p && p->op == PV_PROD && !m->expanding) multiply_out(m, id, p, depth);
  return r;
}

static Z3_func_decl declare(solver *m, const char *name) {
  return z3.mk_func_decl(m->z, z3.mk_string_symbol(m->z, name), 1, &m->real, m->real);
}

static void set_limits(solver *m, uint64_t rlimit) {
  Z3_params p = z3.mk_params(m->z);
  z3.params_inc_ref(m->z, p);
  z3.params_set_uint(m->z, p, z3.mk_string_symbol(m->z, "arith.solver"), 6);
  z3.params_set_uint(m->z, p, z3.mk_string_symbol(m->z, "rlimit"), rlimit > UINT32_MAX ? UINT32_MAX : (unsigned)rlimit);
  z3.params_set_uint(m->z, p, z3.mk_string_symbol(m->z, "timeout"), 60000); /* a backstop: rlimit comes first */
  z3.solver_set_params(m->z, m->s, p);
  z3.params_dec_ref(m->z, p);
}

/* What the solver has used since it was made. */
static uint64_t used(solver *m) {
  uint64_t n = 0;
  Z3_stats st = z3.solver_get_statistics(m->z, m->s);
  if (!st) return 0;
  z3.stats_inc_ref(m->z, st);
  for (unsigned i = 0; i < z3.stats_size(m->z, st); i++)
    if (!strcmp(z3.stats_get_key(m->z, st, i), "rlimit count") && z3.stats_is_uint(m->z, st, i))
      n = z3.stats_get_uint_value(m->z, st, i);
  z3.stats_dec_ref(m->z, st);
  return n;
}

/* ---- stopping while Z3 runs ---- */

/* A thread that asks the caller's `stop` while another is within Z3. */
typedef struct watch {
  Z3_context z;
  const val_options *o;
  pthread_mutex_t lock;
  pthread_cond_t ended;
  bool over;
} watch;

static void *watching(void *ctx) {
  watch *w = ctx;
  pthread_mutex_lock(&w->lock);
  while (!w->over) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    t.tv_nsec += WATCH_MS * 1000000L;
    if (t.tv_nsec >= 1000000000L) t.tv_sec++, t.tv_nsec -= 1000000000L;
    pthread_cond_timedwait(&w->ended, &w->lock, &t);
    if (!w->over && val_stopped(w->o)) z3.interrupt(w->z); /* again and again: one that came too early is lost */
  }
  pthread_mutex_unlock(&w->lock);
  return NULL;
}

/* Without a thread the limit alone bounds it. */
static Z3_lbool check(solver *m) {
  watch w = {.z = m->z, .o = m->c->o, .lock = PTHREAD_MUTEX_INITIALIZER, .ended = PTHREAD_COND_INITIALIZER};
  pthread_t thread;
  const bool watched = w.o && w.o->stop && pthread_create(&thread, NULL, watching, &w) == 0;
  const Z3_lbool r = z3.solver_check(m->z, m->s);
  if (watched) {
    pthread_mutex_lock(&w.lock);
    w.over = true;
    pthread_cond_signal(&w.ended);
    pthread_mutex_unlock(&w.lock);
    pthread_join(thread, NULL);
  }
  return r;
}

static pv_answer ask(solver *m, pv_id a, pv_id b, uint64_t *rlimit, char *reason) {
  Z3_ast x = translate(m, a, 0), y = m->failed ? x : translate(m, b, 0);
  if (m->failed) {
    snprintf(reason, 200, "%s", m->failed);
    return PV_NO_ANSWER;
  }
  set_limits(m, *rlimit);
  z3.solver_push(m->z, m->s);
  assume(m, z3.mk_not(m->z, z3.mk_eq(m->z, x, y)));
  Z3_lbool r = check(m);
  if (z3.get_error_code(m->z) != Z3_OK) r = Z3_L_UNDEF;
  uint64_t spent = used(m);
  if (r == Z3_L_FALSE) {
    z3.solver_pop(m->z, m->s, 1);
    Z3_lbool v = check(m);
    if (z3.get_error_code(m->z) != Z3_OK || v != Z3_L_TRUE) {
      snprintf(reason, 200, "z3 could not show that the assumptions have a model");
      return PV_NO_ANSWER;
    }
  }
  if (r == Z3_L_UNDEF) snprintf(reason, 200, "z3 gave up within its limit");
  *rlimit = spent < *rlimit ? *rlimit - spent : 0;
  return r == Z3_L_FALSE ? PV_VALID : r == Z3_L_TRUE ? PV_NOT_VALID : PV_NO_ANSWER;
}

pv_answer pv_solve(pv_cx *c, pv_id a, pv_id b, uint64_t *rlimit, char *reason) {
  pv_answer r = PV_NO_ANSWER;
  const char *stopped = val_stopped(c->o);
  if (*rlimit == 0 || stopped) {
    snprintf(reason, 200, "%s", stopped ? stopped : "z3's limit is used up");
    return r;
  }
  solver m = {.c = c};
  m.of = calloc((size_t)c->n_leaves + PV_MAX_NODES, sizeof *m.of); /* expanding makes new expressions */
  m.z = val_z3_context();
  if (m.z) m.s = z3.mk_simple_solver(m.z);
  if (!m.of || !m.z || !m.s) {
    snprintf(reason, 200, "z3 did not start");
  } else {
    z3.solver_inc_ref(m.z, m.s);
    m.real = z3.mk_real_sort(m.z);
    m.inverse = declare(&m, "inv");
    m.product = z3.mk_func_decl(m.z, z3.mk_string_symbol(m.z, "mul"), 2, (Z3_sort[2]){m.real, m.real}, m.real);
    m.square_root = declare(&m, "sqrt");
    m.exponential = declare(&m, "exp");
    m.fn[PV_LOG] = declare(&m, "log");
    m.fn[PV_ERF] = declare(&m, "erf");
    m.fn[PV_SIN] = declare(&m, "sin");
    m.fn[PV_COS] = declare(&m, "cos");
    r = ask(&m, a, b, rlimit, reason);
    z3.solver_dec_ref(m.z, m.s);
  }
  if (m.z) z3.del_context(m.z);
  free(m.of);
  return r;
}

void val_z3_version(char *out, size_t n) {
  unsigned major, minor, build, revision;
  if (!val_z3_load()) {
    snprintf(out, n, "not found");
    return;
  }
  z3.get_version(&major, &minor, &build, &revision);
  snprintf(out, n, "%u.%u.%u", major, minor, build);
}
