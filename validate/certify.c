/* A proof obligation as an SMT-LIB file that a stock z3 answers.
 *
 * The elements of both sides are written down as the definitions give them (sc.plain: real numbers are not brought into
 * normal form; conditions on indices stand outside, and arithmetic on indices is simplified), at generic indices and
 * symbolic sizes. Each sum over an index is a constant of which only instances of axioms are told: split at a bound,
 * linearity, factors outside, a range that is a product, exchange, and congruence (two sums over one range are equal, or
 * their summands differ at a place w, which is named). Which instances are needed is a guess: nothing rests on it, since the
 * answer is z3's. What z3 does not answer with `unsat` for the goal and `sat` without it is given up. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <z3.h>

#include "egraph/base/vec.h"
#include "validate/prove_int.h"

enum { MAX_SUMS = 160, MAX_PAIRS = 240, MAX_LINES = 6000, NAME_BYTES = 72 };

typedef struct sum_of {
  sx id;
  unsigned side; /* 1 left, 2 right */
  bool told;     /* an axiom takes it apart */
  uint64_t contents; /* which variables' elements it has */
} sum_of;

typedef struct writer {
  sc *c;
  FILE *f;
  char (*memo)[NAME_BYTES]; /* by expression: what stands for it */
  size_t cap_memo;
  sum_of sum[MAX_SUMS];
  size_t n_sums, n_lines;
  sx witness[MAX_PAIRS];
  size_t n_witnesses;
  bool *declared; /* variables */
  bool fn[32], two[32];   /* functions of one and of two arguments */
  bool sym[1 << 12];
  unsigned side;
  const char *failed;
} writer;

static void give_up(writer *w, const char *why) {
  if (!w->failed) w->failed = why;
}

static void line(writer *w, const char *fmt, ...) ISO_PRINTF(2, 3);
static void line(writer *w, const char *fmt, ...) {
  va_list ap;
  if (++w->n_lines > MAX_LINES) give_up(w, "more instances of axioms than a file may have");
  va_start(ap, fmt);
  vfprintf(w->f, fmt, ap);
  va_end(ap);
}

/* ---- sorts and names ---- */

static char sort_of(const sc *c, sx x) { return sc_flags(c, x) & S_BOOL ? 'b' : sc_flags(c, x) & S_INT ? 'i' : 'r'; }

/* What stands for an expression in a line: "t12". */
typedef struct name {
  char s[NAME_BYTES];
} name;
static name named(const char *fmt, ...) ISO_PRINTF(1, 2);
static name named(const char *fmt, ...) {
  name n;
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(n.s, sizeof n.s, fmt, ap);
  va_end(ap);
  return n;
}

static name plain_name(char role, const char *s, size_t at) {
  name n = named("%c_%.40s", role, s);
  bool changed = strlen(s) > 40;
  for (char *p = n.s; *p; p++)
    if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_", *p)) *p = '_', changed = true;
  return changed ? named("%.42s_%zu", n.s, at) : n;
}

static name write(writer *w, sx x); /* its name, its lines written before */

/* As a real number. */
static name real(writer *w, sx x) {
  const name n = write(w, x);
  return sort_of(w->c, x) == 'i' ? named("(to_real %s)", n.s) : n;
}

static void write_rational(writer *w, uint32_t q, bool whole, FILE *f) {
  const pv_q v = w->c->q.q[q];
  if (v.e > 60 || v.e < -1000 || v.d >= ((__int128)1 << 62) || v.n >= ((__int128)1 << 62) || -v.n >= ((__int128)1 << 62)) {
    give_up(w, "a number too large to write");
    return;
  }
  const bool negative = v.n < 0;
  const unsigned long long n = (unsigned long long)(negative ? -v.n : v.n), d = (unsigned long long)v.d;
  if (negative) fputs("(- ", f);
  const char *dot = whole ? "" : ".0";
  if (v.e > 0) fprintf(f, "(* %llu%s %llu%s)", n, dot, 1ULL << v.e, dot);
  else if (d == 1 && v.e == 0) fprintf(f, "%llu%s", n, dot);
  else if (v.e > -40 && d < 1 << 20) {
    fprintf(f, "(/ %llu.0 %llu.0)", n, d << -v.e);
  } else {
    fprintf(f, "(/ %llu.0 (* %llu.0", n, d);
    for (int32_t e = -v.e; e > 0; e -= 62) fprintf(f, " %llu.0", 1ULL << (e < 62 ? e : 62));
    fputs(" 1.0))", f);
  }
  if (negative) fputs(")", f);
}

static name define(writer *w, sx x, const char *text) {
  static const char *const sort[] = {['b'] = "Bool", ['i'] = "Int", ['r'] = "Real"};
  line(w, "(define-fun t%u () %s %s)\n", (unsigned)x, sort[(int)sort_of(w->c, x)], text);
  return named("t%u", (unsigned)x);
}

/* ---- what a symbol stands for ---- */

static name symbol(writer *w, sx x) {
  sc *c = w->c;
  const uint32_t at = sc_word(c, x, 0);
  const sx_sym s = c->sym[at];
  const bool index = s.role == 'x', whole = s.flags & S_INT;
  const name n = index ? named("i%u", (unsigned)at) : plain_name(s.role == 's' ? 'n' : s.role, s.name, at);
  if (at >= 1 << 12) give_up(w, "too many indices");
  if (w->failed || w->sym[at]) return n;
  w->sym[at] = true;
  const name high = s.high ? write(w, s.high) : named("0");
  line(w, "(declare-const %s %s)\n", n.s, whole ? "Int" : "Real");
  bool witness = false;
  for (size_t i = 0; i < w->n_witnesses; i++) witness |= w->witness[i] == x;
  if (witness) return n; /* its range stands where it is used */
  const bool low = s.has_low;
  if (low) line(w, "(assert (<= %lld %s))\n", (long long)s.low, n.s);
  if (s.high) line(w, "(assert (< %s %s))\n", n.s, high.s);
  if (index || low) return n;
  if (s.flags & S_POS) line(w, "(assert (> %s 0))\n", n.s);
  else if (s.flags & S_NONNEG) line(w, "(assert (>= %s 0))\n", n.s);
  else if (s.flags & S_NONZERO) line(w, "(assert (distinct %s 0))\n", n.s);
  return n;
}

/* The witnesses in x are within their ranges: "(and ...)". */
static name within(writer *w, sx x) {
  name r = named("true");
  for (size_t i = 0; i < w->n_witnesses; i++) {
    if (!sx_occurs(w->c, w->witness[i], x)) continue;
    const uint32_t at = sc_word(w->c, w->witness[i], 0);
    const name k = write(w, w->witness[i]), high = write(w, w->c->sym[at].high);
    line(w, "(define-fun in%u_%zu () Bool (and %s (<= 0 %s) (< %s %s)))\n", (unsigned)at, w->n_lines, r.s, k.s, k.s, high.s);
    r = named("in%u_%zu", (unsigned)at, w->n_lines - 1);
  }
  return r;
}

/* ---- real functions, with their axioms at the arguments that occur ---- */

static name product(writer *w, name a, name b) {
  const size_t at = w->n_lines;
  line(w, "(define-fun p%zu () Real (mul %s %s))\n", at, a.s, b.s);
  line(w, "(assert (= p%zu (mul %s %s)))\n", at, b.s, a.s);
  line(w, "(assert (=> (= %s 0.0) (= p%zu 0.0)))\n(assert (=> (= %s 0.0) (= p%zu 0.0)))\n", a.s, at, b.s, at);
  line(w, "(assert (=> (= %s 1.0) (= p%zu %s)))\n(assert (=> (= %s 1.0) (= p%zu %s)))\n", a.s, at, b.s, b.s, at, a.s);
  return named("p%zu", at);
}

static void declare_fn(writer *w, const char *fn, int n, const char *to) {
  line(w, "(declare-fun %s (%s) %s)\n", fn, n == 1 ? "Real" : "Real Real", to);
}

static name inverse(writer *w, name a, sx whose) {
  if (!w->fn[30]) declare_fn(w, "inv", 1, "Real"), w->fn[30] = true;
  const name in = within(w, whose);
  const size_t at = w->n_lines;
  line(w, "(define-fun v%zu () Real (inv %s))\n", at, a.s);
  const name r = named("v%zu", at);
  line(w, "(assert (=> %s (distinct %s 0.0))) ; it is divided by\n", in.s, a.s);
  const name p = product(w, a, r);
  line(w, "(assert (=> (distinct %s 0.0) (= %s 1.0)))\n", a.s, p.s);
  return r;
}

static name root(writer *w, name a) {
  if (!w->fn[31]) declare_fn(w, "sqrt", 1, "Real"), w->fn[31] = true;
  const size_t at = w->n_lines;
  line(w, "(define-fun r%zu () Real (sqrt %s))\n", at, a.s);
  const name r = named("r%zu", at), p = product(w, r, r);
  line(w, "(assert (=> (>= %s 0.0) (and (>= %s 0.0) (= %s %s))))\n", a.s, r.s, p.s, a.s);
  return r;
}

/* x^q for a q that is a multiple of 1/2. */
static name power(writer *w, sx x, uint32_t q) {
  int64_t k;
  name b = real(w, x), r;
  const bool whole = pv_q_is_int(&w->c->q, q, &k);
  if (!whole && !pv_q_is_int(&w->c->q, pv_q_mul(&w->c->q, q, pv_q_int(&w->c->q, 2)), &k)) give_up(w, "a power that is no multiple of 1/2");
  if (w->failed || k > 8 || k < -8 || k == 0) {
    give_up(w, "a power too high");
    return b;
  }
  if (!whole) b = root(w, b);
  r = b;
  for (int64_t i = 1; i < (k < 0 ? -k : k); i++) r = product(w, r, b);
  return k < 0 ? inverse(w, r, x) : r;
}

static name call(writer *w, sx x) {
  static const char *const fn[] = {"exp", "log", "erf", "sin", "cos", "tan", "atan", "abs", "floor", "ceil", "round", "trunc", "pow", "atan2", "safe_inv", "f32", "f16", "bf16", "f8", "int"};
  sc *c = w->c;
  const sx_func f = (sx_func)sc_word(c, x, 0);
  const sx a = sc_word(c, x, 1);
  char text[256];
  uint32_t q;
  if (f == F_ADD || f == F_MUL || f == F_POWER || f == F_POW || f == F_ATAN2) {
    const sx b = sc_word(c, x, 2);
    if (f == F_POWER) return sx_is_q(c, b, &q) ? power(w, a, q) : named("0.0");
    const name m = real(w, a), n = real(w, b);
    if (f == F_MUL && sc_op(c, a) != X_CONST && sc_op(c, b) != X_CONST) return product(w, m, n);
    if ((f == F_POW || f == F_ATAN2) && !w->two[f]) declare_fn(w, fn[f], 2, "Real"), w->two[f] = true;
    snprintf(text, sizeof text, "(%s %s %s)", f == F_ADD ? "+" : f == F_MUL ? "*" : fn[f], m.s, n.s);
    return define(w, x, text);
  }
  if (f == F_PLACE) {
    give_up(w, "an order of elements");
    return named("0.0");
  }
  if (f == F_IF) {
    const name g = write(w, a), m = real(w, sc_word(c, x, 2)), n = real(w, sc_word(c, x, 3));
    snprintf(text, sizeof text, "(ite %s %s %s)", g.s, m.s, n.s);
    return define(w, x, text);
  }
  const name n = real(w, a);
  const bool whole = f == F_FLOOR || f == F_CEIL || f == F_ROUND || f == F_TRUNC || f == F_CAST_INT;
  if (f == F_ABS) {
    snprintf(text, sizeof text, "(ite (>= %s 0.0) %s (- %s))", n.s, n.s, n.s);
    return define(w, x, text);
  }
  if (!w->fn[f]) declare_fn(w, fn[f], 1, whole ? "Int" : "Real"), w->fn[f] = true;
  snprintf(text, sizeof text, "(%s %s)", fn[f], n.s);
  const name r = define(w, x, text);
  if (f == F_EXP) line(w, "(assert (> %s 0.0))\n", r.s);
  if (f == F_SAFE_INV) {
    const name p = product(w, n, r);
    line(w, "(assert (=> (distinct %s 0.0) (= %s 1.0)))\n", n.s, p.s);
  }
  if (f == F_EXP && sc_op(c, a) == X_FN && sc_word(c, a, 0) == F_ADD) {
    const sx one = sc_node(c, X_FN, (uint32_t[2]){F_EXP, sc_word(c, a, 1)}, 2), two = sc_node(c, X_FN, (uint32_t[2]){F_EXP, sc_word(c, a, 2)}, 2);
    const name p = write(w, one), s = write(w, two), t = product(w, p, s);
    line(w, "(assert (= %s %s)) ; e^(a + b) = e^a e^b\n", r.s, t.s);
  }
  return r;
}

/* ---- sums ---- */

static uint64_t contents(const sc *c, sx x, int depth) {
  const sx_node *p = sc_at(c, x);
  uint64_t h = 0;
  if (depth > 60 || p->op == X_CONST || p->op == X_SYM || p->op == X_BOUND) return 0;
  if (p->op == X_LEAF) return 1000003ULL * (1 + sc_word(c, x, 0)) * (1 + sc_word(c, x, 0));
  for (uint32_t i = 0; i < p->n; i++) {
    const bool child = p->op == X_ADD ? i & 1 : p->op == X_MUL ? !(i & 1) : p->op == X_FN || p->op == X_SUM || p->op == X_TOP ? i > 0 : true;
    if (child) h += contents(c, sc_word(c, x, i), depth + 1);
  }
  return p->op == X_FN && sc_word(c, x, 0) < F_ADD ? h * 31 + sc_word(c, x, 0) : h;
}

static name constant_of_sum(writer *w, sx x) {
  const name n = named("s%u", (unsigned)x);
  char *text = sx_print(w->c, x);
  line(w, "(declare-const %s %s) ; %.900s\n", n.s, sort_of(w->c, x) == 'i' ? "Int" : "Real", text ? text : "");
  free(text);
  if (w->n_sums == MAX_SUMS) give_up(w, "too many sums");
  else w->sum[w->n_sums++] = (sum_of){x, w->side, false, contents(w->c, x, 0)};
  return n;
}

/* ---- expressions ---- */

static name list(writer *w, sx x) {
  sc *c = w->c;
  const sx_node p = *sc_at(c, x);
  const bool whole = sort_of(c, x) == 'i';
  char *text = NULL;
  size_t n_text = 0;
  name part[64];
  if (p.n / 2 > 64) give_up(w, "a polynomial of too many terms");
  if (p.op == X_MUL && !whole) {
    name r = named("1.0");
    for (uint32_t i = 0; i < p.n && !w->failed; i += 2) {
      const name f = power(w, sc_word(c, x, i), sc_word(c, x, i + 1));
      r = i ? product(w, r, f) : f;
    }
    return r;
  }
  for (uint32_t i = 0; i < p.n && !w->failed; i += 2) {
    const sx m = sc_word(c, x, p.op == X_ADD ? i + 1 : i);
    part[i / 2] = whole ? write(w, m) : real(w, m);
  }
  FILE *f = w->failed ? NULL : open_memstream(&text, &n_text);
  if (!f) return named("0");
  fputs(p.op == X_MUL ? "(* 1" : p.n == 2 ? "(+ 0" : "(+", f);
  for (uint32_t i = 0; i < p.n; i += 2) {
    int64_t k = 1;
    if (p.op == X_ADD) {
      const bool one = sc_word(c, x, i) == PV_ONE_Q;
      fputs(one ? " " : " (* ", f);
      if (!one) write_rational(w, sc_word(c, x, i), whole, f);
      fprintf(f, one ? "%s" : " %s)", part[i / 2].s);
    } else {
      if (!pv_q_is_int(&c->q, sc_word(c, x, i + 1), &k)) give_up(w, "a power of a size");
      for (; k > 0; k--) fprintf(f, " %s", part[i / 2].s);
    }
  }
  fputc(')', f);
  fclose(f);
  const name r = define(w, x, text);
  free(text);
  return r;
}

static name leaf(writer *w, sx x) {
  sc *c = w->c;
  const uint32_t var = sc_word(c, x, 0), n = sc_at(c, x)->n - 1;
  const name v = plain_name('v', c->r->var[var].name, var);
  const char kind = c->r->var[var].kind;
  char text[512] = "";
  size_t at = 0;
  if (!w->declared[var]) {
    w->declared[var] = true;
    line(w, "(declare-fun %s (", v.s);
    for (uint32_t i = 0; i < n; i++) line(w, "%sInt", i ? " " : "");
    line(w, ") %s)\n", kind == 'b' ? "Bool" : kind == 'i' ? "Int" : "Real");
  }
  if (n == 0) return define(w, x, v.s);
  at = (size_t)snprintf(text, sizeof text, "(%s", v.s);
  for (uint32_t i = 0; i < n && at < sizeof text - 80; i++) {
    const name k = write(w, sc_word(c, x, i + 1));
    at += (size_t)snprintf(text + at, sizeof text - at, " %s", k.s);
  }
  snprintf(text + at, sizeof text - at, ")");
  return define(w, x, text);
}

static name quotient(writer *w, sx x) {
  const name p = write(w, sc_word(w->c, x, 0)), d = write(w, sc_word(w->c, x, 1)), n = named("t%u", (unsigned)x);
  line(w, "(declare-const %s Int) ; floor(%s / %s)\n", n.s, p.s, d.s);
  line(w, "(assert (and (<= (* %s %s) %s) (< %s (+ (* %s %s) %s))))\n", d.s, n.s, p.s, p.s, d.s, n.s, d.s);
  return n;
}

static name compound(writer *w, sx x) {
  sc *c = w->c;
  char text[400];
  const sx a = sc_at(c, x)->n ? sc_word(c, x, 0) : 0;
  name m, n, g;
  switch (sc_op(c, x)) {
  case X_ADD: case X_MUL: return list(w, x);
  case X_DIV: return quotient(w, x);
  case X_LEAF: return leaf(w, x);
  case X_FN: return call(w, x);
  case X_SUM: case X_TOP: return constant_of_sum(w, x);
  case X_LT: case X_EQ:
    m = write(w, a);
    snprintf(text, sizeof text, "(%s %s %s)", sc_op(c, x) == X_LT ? "<" : "=", m.s, sort_of(c, a) == 'i' ? "0" : "0.0");
    return define(w, x, text);
  case X_IVER:
    g = write(w, a);
    snprintf(text, sizeof text, "(ite %s 1 0)", g.s);
    return define(w, x, text);
  case X_ITE:
    g = write(w, a);
    m = sort_of(c, x) == 'r' ? real(w, sc_word(c, x, 1)) : write(w, sc_word(c, x, 1));
    n = sort_of(c, x) == 'r' ? real(w, sc_word(c, x, 2)) : write(w, sc_word(c, x, 2));
    snprintf(text, sizeof text, "(ite %s %s %s)", g.s, m.s, n.s);
    return define(w, x, text);
  case X_MAX:
    m = real(w, a);
    for (uint32_t i = 1; i < sc_at(c, x)->n; i++) {
      const size_t at = w->n_lines;
      n = real(w, sc_word(c, x, i));
      line(w, "(define-fun m%zu () Real (ite (>= %s %s) %s %s))\n", at, m.s, n.s, m.s, n.s);
      m = named("m%zu", at);
    }
    return m;
  default: give_up(w, sc_op(c, x) == X_NEGINF ? "minus infinity outside an exponential" : "an expression that has no text"); return named("0");
  }
}

static name write(writer *w, sx x) {
  sc *c = w->c;
  int64_t k;
  if (w->failed || c->failed) return give_up(w, c->reason[0] ? "what the definitions give is too large" : "too large"), named("0");
  if (sc_op(c, x) == X_TRUE || sc_op(c, x) == X_FALSE) return named(x == c->yes ? "true" : "false");
  if (sc_op(c, x) == X_SYM) return symbol(w, x);
  if (sx_is_int(c, x, &k)) return k < 0 ? named("(- %lld)", -(long long)k) : named("%lld", (long long)k);
  if (x >= w->cap_memo) {
    const size_t cap = 2 * ((size_t)x + 64);
    char(*more)[NAME_BYTES] = realloc(w->memo, cap * sizeof *more);
    if (!more) return give_up(w, "out of memory"), named("0");
    memset(more + w->cap_memo, 0, (cap - w->cap_memo) * sizeof *more);
    w->memo = more;
    w->cap_memo = cap;
  }
  if (*w->memo[x]) return named("%s", w->memo[x]);
  name r;
  if (sc_op(c, x) == X_CONST) {
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);
    if (!f) return give_up(w, "out of memory"), named("0");
    write_rational(w, sc_word(c, x, 0), false, f);
    fclose(f);
    r = define(w, x, text);
    free(text);
  } else {
    r = compound(w, x);
  }
  if (x < w->cap_memo) snprintf(w->memo[x], NAME_BYTES, "%s", r.s);
  return r;
}

/* ---- axioms of sums ---- */

/* The sum of body over `n` values of k from `from` on. */
static sx part(sc *c, sx op, sx k, sx body, sx from, sx n) {
  if (n == c->zero) return c->zero;
  const sx i = sc_index(c, n);
  body = sx_subst(c, body, &(sx_map){k, sx_add(c, i, from)}, 1);
  return i == c->zero ? body : sx_close(c, (sx_op)op, i, body);
}

static void equal_to(writer *w, sx s, sx r, const char *why) {
  const name a = real(w, s), b = real(w, r);
  line(w, "(assert (= %s %s)) ; %s\n", a.s, b.s, why);
}

/* A range cut at `at`: below it and above it. */
static void split(writer *w, sx s, sx k, sx body, sx high, sx at) {
  sc *c = w->c;
  const sx zero = c->zero;
  const name cut = write(w, at), n = write(w, high), whole = real(w, s);
  const bool above = sx_ge0(c, at), below = sx_ge0(c, sx_sub(c, high, at));
  const name low = real(w, part(c, X_SUM, k, body, zero, at)), up = real(w, part(c, X_SUM, k, body, at, sx_sub(c, high, at)));
  line(w, "(assert (=> (and (<= 0 %s) (<= %s %s)) (= %s (+ %s %s)))) ; split at %s\n", cut.s, cut.s, n.s, whole.s, low.s, up.s, cut.s);
  if (above && below) return;
  const size_t facts = c->n_facts;
  if (facts + 1 >= SC_MAX_FACTS) return;
  if (!below) {
    c->fact[c->n_facts++] = sx_sub(c, at, high); /* wholly below */
    const name r = real(w, part(c, X_SUM, k, body, zero, high));
    line(w, "(assert (=> (>= %s %s) (= %s %s))) ; wholly below %s\n", cut.s, n.s, whole.s, r.s, cut.s);
    c->n_facts = facts;
  }
  if (!above) {
    c->fact[c->n_facts++] = sx_neg(c, at);
    const name r = real(w, part(c, X_SUM, k, body, zero, high));
    line(w, "(assert (=> (<= %s 0) (= %s %s))) ; wholly above %s\n", cut.s, whole.s, r.s, cut.s);
    c->n_facts = facts;
  }
}

/* Factors of a product as it is written. */
static size_t factors(const sc *c, sx x, sx *out, size_t n, size_t cap) {
  if (sc_op(c, x) == X_FN && sc_word(c, x, 0) == F_MUL) {
    n = factors(c, sc_word(c, x, 1), out, n, cap);
    return factors(c, sc_word(c, x, 2), out, n, cap);
  }
  if (n < cap) out[n] = x;
  return n + 1;
}

static sx times_all(sc *c, const sx *x, size_t n) {
  sx r = c->one;
  for (size_t i = 0; i < n; i++) r = sx_mul(c, r, x[i]);
  return r;
}

static bool moves_out(writer *w, sx s, sx k, sx body) {
  sc *c = w->c;
  sx f[32], in[32], out[32];
  const size_t n = factors(c, body, f, 0, 32);
  size_t n_in = 0, n_out = 0;
  if (n > 32) return false;
  for (size_t i = 0; i < n; i++)
    if (sx_occurs(c, k, f[i])) in[n_in++] = f[i];
    else out[n_out++] = f[i];
  if (n_out > 0) {
    const sx rest = n_in ? sx_close(c, X_SUM, k, times_all(c, in, n_in)) : c->sym[sc_word(c, k, 0)].high;
    equal_to(w, s, sx_fn2(c, F_MUL, times_all(c, out, n_out), rest), "a factor that does not move with the index");
    return true;
  }
  /* A sum among the factors: everything goes into it, and the two sums change places. */
  for (size_t i = 0; i < n_in && n_in > 1; i++) {
    sx j[8];
    uint32_t m;
    if (sc_op(c, in[i]) != X_SUM) continue;
    const sx inner = sx_open(c, in[i], j, &m);
    if (m != 1 || j[0] == c->zero || sx_occurs(c, k, c->sym[sc_word(c, j[0], 0)].high)) continue;
    in[i] = inner;
    const sx both = times_all(c, in, n_in);
    equal_to(w, s, sx_close(c, X_SUM, k, sx_close(c, X_SUM, j[0], both)), "factors into the inner sum");
    return true;
  }
  return false;
}

static bool exchange(writer *w, sx s, sx k, sx body) {
  sc *c = w->c;
  sx j[8];
  uint32_t m;
  if (sc_op(c, body) != X_SUM) return false;
  const sx inner = sx_open(c, body, j, &m), high = c->sym[sc_word(c, k, 0)].high;
  if (m != 1 || j[0] == c->zero || sx_occurs(c, k, c->sym[sc_word(c, j[0], 0)].high)) return false;
  const sx other = c->sym[sc_word(c, j[0], 0)].high;
  if (sc_at(c, high)->hash <= sc_at(c, other)->hash) return false; /* one order is enough */
  equal_to(w, s, sx_close(c, X_SUM, j[0], sx_close(c, X_SUM, k, inner)), "sums exchanged");
  return true;
}

/* A bound within the body at which a condition on the index changes; not within other sums. */
static bool find_cut(sc *c, sx x, sx k, sx *at, int depth) {
  const sx_node p = *sc_at(c, x);
  bool lower;
  if (depth > 40 || !sx_occurs(c, k, x)) return false;
  if (p.op == X_LT || p.op == X_EQ) return sx_cuts(c, x, k, at, &lower);
  if (p.op != X_FN && p.op != X_ITE && p.op != X_MAX) return false;
  for (uint32_t i = p.op == X_FN; i < p.n; i++)
    if (find_cut(c, sc_word(c, x, i), k, at, depth + 1)) return true;
  return false;
}

static bool is_open(const sc *c, sx x) {
  const sx_node *p = sc_at(c, x);
  if (p->op == X_BOUND) return true;
  if (p->op == X_CONST || p->op == X_SYM) return false;
  for (uint32_t i = p->op == X_LEAF || p->op == X_FN || p->op == X_SUM || p->op == X_TOP; i < p->n; i++) {
    const bool child = p->op == X_ADD ? i & 1 : p->op == X_MUL ? !(i & 1) : true;
    if (child && is_open(c, sc_word(c, x, i))) return true;
  }
  return false;
}

/* A condition on whole numbers within the body that has none of its indices. */
static sx find_fixed(const sc *c, sx x, sx k, int depth) {
  const sx_node p = *sc_at(c, x);
  if (depth > 60 || p.op == X_CONST || p.op == X_SYM || p.op == X_BOUND || p.op == X_LEAF) return 0;
  if (p.op == X_LT) return sc_has(c, sc_word(c, x, 0), S_INT) && !sx_occurs(c, k, x) && !is_open(c, x) ? x : 0;
  for (uint32_t i = p.op == X_FN || p.op == X_SUM || p.op == X_TOP; i < p.n; i++) {
    const bool child = p.op == X_ADD ? i & 1 : p.op == X_MUL ? !(i & 1) : true;
    const sx g = child ? find_fixed(c, sc_word(c, x, i), k, depth + 1) : 0;
    if (g) return g;
  }
  return 0;
}

static size_t symbols_in(const sc *c, sx x, sx_map *map, size_t n, size_t cap) {
  const sx_node p = *sc_at(c, x);
  if (p.op == X_SYM) {
    for (size_t i = 0; i < n; i++)
      if (map[i].from == x) return n;
    if (n < cap) map[n++] = (sx_map){x, x};
    return n;
  }
  if (p.op == X_CONST || p.op == X_BOUND) return n;
  for (uint32_t i = p.op == X_LEAF || p.op == X_FN || p.op == X_SUM || p.op == X_TOP; i < p.n; i++)
    if (p.op == X_ADD ? i & 1 : p.op == X_MUL ? !(i & 1) : true) n = symbols_in(c, sc_word(c, x, i), map, n, cap);
  return n;
}

/* The sum with g < 0 decided in it, by what is then known. */
static sx decided(sc *c, sx s, sx g, bool holds) {
  const size_t facts = c->n_facts;
  const sx p = sc_word(c, g, 0);
  sx_map map[24];
  if (facts == SC_MAX_FACTS) return s;
  c->fact[c->n_facts++] = holds ? sx_sub(c, c->minus_one, p) : p;
  const sx r = sx_subst(c, s, map, symbols_in(c, g, map, 0, 24)); /* each symbol by itself: all is looked at anew */
  c->n_facts = facts;
  return r;
}

static bool by_condition(writer *w, sx s, sx k, sx body) {
  sc *c = w->c;
  const sx g = find_fixed(c, body, k, 0);
  const sx x = g ? decided(c, s, g, true) : s, y = g ? decided(c, s, g, false) : s;
  if (x == s || y == s || c->failed) return false;
  const name m = write(w, g), a = real(w, s), t = real(w, x), e = real(w, y);
  line(w, "(assert (= %s (ite %s %s %s))) ; a condition that does not move with the index\n", a.s, m.s, t.s, e.s);
  return true;
}

/* The axiom that takes a sum apart. Returns: whether there is one. */
static bool take_apart(writer *w, sx s) {
  sc *c = w->c;
  sx k[8], at, d, q;
  uint32_t n;
  if (sc_op(c, s) != X_SUM) return false;
  const sx body = sx_open(c, s, k, &n), g = sx_top_guard(c, body);
  if (n != 1) return false;
  if (k[0] == c->zero) return equal_to(w, s, body, "one term"), true;
  const sx high = c->sym[sc_word(c, k[0], 0)].high;
  if (g && !sx_occurs(c, k[0], g)) {
    const name m = write(w, g), a = real(w, s), x = real(w, sx_close(c, X_SUM, k[0], sc_word(c, body, 1))),
               y = real(w, sx_close(c, X_SUM, k[0], sc_word(c, body, 2)));
    line(w, "(assert (= %s (ite %s %s %s))) ; a condition that does not move with the index\n", a.s, m.s, x.s, y.s);
    return true;
  }
  if (by_condition(w, s, k[0], body)) return true;
  if (find_cut(c, body, k[0], &at, 0)) return split(w, s, k[0], body, high, at), true;
  if (sx_apart_at(c, body, k[0], &d) && sx_divides(c, d, high, &q)) {
    const sx u = sc_index(c, q), v = sc_index(c, d);
    const sx two = sx_subst(c, body, &(sx_map){k[0], sx_add(c, sx_mul(c, u, d), v)}, 1);
    const sx inner = v == c->zero ? two : sx_close(c, X_SUM, v, two);
    equal_to(w, s, u == c->zero ? inner : sx_close(c, X_SUM, u, inner), "a range that is a product");
    return true;
  }
  if (g) return false;
  if (sc_op(c, body) == X_FN && sc_word(c, body, 0) == F_ADD) {
    const name a = real(w, s), x = real(w, sx_close(c, X_SUM, k[0], sc_word(c, body, 1))), y = real(w, sx_close(c, X_SUM, k[0], sc_word(c, body, 2)));
    line(w, "(assert (= %s (+ %s %s))) ; linearity\n", a.s, x.s, y.s);
    return true;
  }
  return moves_out(w, s, k[0], body) || exchange(w, s, k[0], body);
}

/* Two sums are equal where their ranges are, or their summands differ somewhere. */
static void congruent(writer *w, sx a, sx b) {
  sc *c = w->c;
  sx k[8], l[8];
  uint32_t n, m;
  const sx x = sx_open(c, a, k, &n), y = sx_open(c, b, l, &m);
  if (n != 1 || m != 1 || k[0] == c->zero || l[0] == c->zero || w->n_witnesses == MAX_PAIRS) return;
  const unsigned side = w->side;
  const sx high = c->sym[sc_word(c, k[0], 0)].high, at = k[0];
  w->witness[w->n_witnesses++] = at;
  const name i = write(w, at), top = write(w, high), other = write(w, c->sym[sc_word(c, l[0], 0)].high), s = real(w, a), t = real(w, b);
  w->side = 1;
  const name u = real(w, x);
  w->side = 2;
  const name v = real(w, sx_subst(c, y, &(sx_map){l[0], at}, 1));
  w->side = side;
  line(w, "(assert (=> (= %s %s) (or (= %s %s) (and (<= 0 %s) (< %s %s) (distinct %s %s))))) ; equal, or they differ at %s\n", top.s, other.s, s.s, t.s,
       i.s, i.s, top.s, u.s, v.s, i.s);
}

static void tell_axioms(writer *w) {
  sc *c = w->c;
  size_t told = 0, paired = 0;
  while (!w->failed && !c->failed && told < w->n_sums) {
    for (; told < w->n_sums && !w->failed && !c->failed; told++) {
      w->side = w->sum[told].side;
      w->sum[told].told = take_apart(w, w->sum[told].id);
    }
    for (; paired < told && !w->failed && !c->failed; paired++)
      for (size_t i = 0; i < paired && !w->failed; i++) {
        const sum_of a = w->sum[i], b = w->sum[paired];
        if (a.told || b.told || sc_op(c, a.id) != sc_op(c, b.id) || a.contents != b.contents) continue;
        if (!sx_same(c, sc_word(c, a.id, 1), sc_word(c, b.id, 1))) continue;
        congruent(w, a.id, b.id);
      }
  }
}

/* ---- the file ---- */

static void hypotheses(writer *w) {
  sc *c = w->c;
  line(w, "; what holds in this case\n");
  for (size_t i = 0; i < c->n_facts; i++) {
    const name n = write(w, c->fact[i]);
    line(w, "(assert (>= %s 0))\n", n.s);
  }
  for (size_t i = 0; i < c->n_path; i++) {
    const name n = write(w, c->path[i].cond);
    line(w, c->path[i].holds ? "(assert %s)\n" : "(assert (not %s))\n", n.s);
  }
}

static void comment(FILE *f, const char *text) {
  fputs("; ", f);
  for (; *text; text++) {
    fputc(*text, f);
    if (*text == '\n' && text[1]) fputs("; ", f);
  }
  if (text[-1] != '\n') fputc('\n', f);
}

static void head(const sc *c, FILE *f, bool arithmetic) {
  char *text = rule_print(c->r);
  fputs("; The negation of this rule, at one element of both sides, is unsatisfiable in the case below:\n", f);
  if (text) comment(f, text);
  free(text);
  fputs(";\n; n_N is the size N, v_x(i, ...) an element of the variable x, i7 an index in its range, s7 a sum over an index ($ its\n"
        "; bound indices), of which only the instances of axioms below are told. t7, p7, ... are definitions. Real numbers stand as\n"
        "; the operators' definitions give them; arithmetic on indices is simplified. What is divided by is not 0: the rule speaks\n"
        "; of values for which both sides are defined.\n", f);
  for (size_t i = 0; i < c->n_bound_sizes; i++) {
    char *from = sx_print((sc *)c, c->bound_size[i].from), *to = sx_print((sc *)c, c->bound_size[i].to);
    fprintf(f, "; in this case %s is %s\n", from ? from : "", to ? to : "");
    free(from);
    free(to);
  }
  fputs(arithmetic ? "(define-fun mul ((a Real) (b Real)) Real (* a b))\n" : "(declare-fun mul (Real Real) Real) ; products; of them only what follows is told\n", f);
}

/* Sizes and attributes for which the assumptions are to have a model. */
static void pinned(writer *w, const double *v) {
  const sc *c = w->c;
  for (size_t i = 0; i < c->n_syms && i < sizeof w->sym; i++) {
    const sx_sym *s = &c->sym[i];
    if (!w->sym[i] || !strchr("saq", s->role)) continue;
    const name n = plain_name(s->role == 's' ? 'n' : s->role, s->name, i);
    const char *negative = v[i] < 0 ? "(- " : "", *end = v[i] < 0 ? ")" : "";
    fprintf(w->f, s->flags & S_INT ? "(assert (= %s %s%.0f%s))\n" : "(assert (= %s %s%.2f%s))\n", n.s, negative, v[i] < 0 ? -v[i] : v[i], end);
  }
}

static char *answers(const char *text) {
  Z3_config cfg = Z3_mk_config();
  if (!cfg) return NULL;
  Z3_set_param_value(cfg, "timeout", "5000");
  Z3_set_param_value(cfg, "rlimit", "3000000");
  Z3_context z = Z3_mk_context(cfg);
  Z3_del_config(cfg);
  if (!z) return NULL;
  Z3_set_error_handler(z, NULL);
  const char *r = Z3_eval_smtlib2_string(z, text);
  char *copy = r ? strdup(r) : NULL;
  Z3_del_context(z);
  return copy;
}

static char *compose(writer *w, const char *body, const char *end, bool arithmetic) {
  char *text = NULL;
  size_t n = 0;
  FILE *f = open_memstream(&text, &n);
  if (!f) return NULL;
  head(w->c, f, arithmetic);
  fputs(body, f);
  fputs(end, f);
  fclose(f);
  return text;
}

/* Goal and vacuity, in this order. */
static char *ending(writer *w, name x, name y, const char *eq) {
  char *text = NULL;
  size_t n = 0;
  double *v = calloc(w->c->n_syms + 1, sizeof *v);
  FILE *body = w->f, *f = v && sc_model(w->c, v) ? open_memstream(&text, &n) : NULL;
  if (f) {
    w->f = f;
    fprintf(f, "; the sides are equal: unsat\n(push 1)\n(assert (not (%s %s %s)))\n(check-sat)\n(pop 1)\n", eq, x.s, y.s);
    fputs("; and what was assumed has a model, at these sizes: sat\n(push 1)\n", f);
    pinned(w, v);
    fputs("(check-sat)\n(pop 1)\n", f);
    fclose(f);
    w->f = body;
  }
  free(v);
  return text;
}

static void write_case(writer *w, sx x, sx y, char **out, char *why) {
  char *body = NULL, *end = NULL;
  size_t n = 0;
  sc *c = w->c;
  w->f = open_memstream(&body, &n);
  if (!w->f) return;
  hypotheses(w);
  const bool truth = sort_of(c, x) == 'b';
  line(w, "; the left side\n");
  w->side = 1;
  const name a = truth ? write(w, x) : real(w, x);
  line(w, "; the right side\n");
  w->side = 2;
  const name b = truth ? write(w, y) : real(w, y);
  line(w, "; sums\n");
  tell_axioms(w);
  if (c->failed) give_up(w, c->reason);
  if (!w->failed) end = ending(w, a, b, "=");
  fclose(w->f);
  if (!w->failed && !end) give_up(w, "no sizes were found at which to show that the assumptions have a model");
  for (int arithmetic = 0; arithmetic < 2 && !w->failed && !*out; arithmetic++) {
    char *text = compose(w, body, end, arithmetic), *got = text ? answers(text) : NULL;
    if (got && (c->certify->unchecked || !strcmp(got, "unsat\nsat\n"))) *out = text, text = NULL;
    else snprintf(why, 200, "z3 does not answer as it should: %.100s", got ? got : "");
    for (char *p = why; *p; p++)
      if (*p == '\n') *p = ' ';
    free(got);
    free(text);
    if (c->certify->unchecked) break;
  }
  if (w->failed) snprintf(why, 200, "%s", w->failed);
  free(body);
  free(end);
}

static void forget_elements(sc *c) {
  free(c->elems);
  c->elems = NULL;
  c->n_elems = c->cap_elems = 0;
}

void sc_certify(sc *c, const pt_tensor *a, const pt_tensor *b, const sx *idx) {
  sc_certificate *k = c->certify;
  const size_t facts = c->n_facts, path = c->n_path;
  char *text = NULL;
  if (k->why[0]) return;
  writer *w = calloc(1, sizeof *w);
  if (w) w->declared = calloc(c->r->n_vars + 1, sizeof *w->declared);
  if (w && w->declared && (k->n < SC_MAX_CERTIFICATES)) {
    w->c = c;
    c->plain = true;
    forget_elements(c);
    const sx x = pt_at(c, a, idx), y = pt_at(c, b, idx);
    if (c->failed) snprintf(k->why, sizeof k->why, "%s", c->reason);
    else write_case(w, x, y, &text, k->why);
    forget_elements(c);
    c->plain = false;
  }
  c->n_facts = facts;
  c->n_path = path;
  if (text) k->why[0] = 0, k->text[k->n++] = text;
  else if (!k->why[0]) snprintf(k->why, sizeof k->why, "too many cases");
  if (w) free(w->memo), free(w->declared);
  free(w);
}

void val_certificate_free(val_certificate *k) {
  for (size_t i = 0; i < k->n; i++) free(k->text[i]);
  free(k->text);
  *k = (val_certificate){0};
}

iso_code val_certify(const rule *r, rule_schemas *schemas, const val_options *o, bool unchecked, val_certificate *out, iso_error *err) {
  *out = (val_certificate){0};
  sc_certificate *k = calloc(1, sizeof *k);
  if (!k) return iso_fail(err, ISO_NOMEM, "out of memory");
  k->unchecked = unchecked;
  rule_verdict v = {0};
  iso_code c = sc_prove(r, schemas, o, false, k, &v, err);
  const char *why = k->why[0] ? k->why : v.status != RULE_PROVED && !unchecked ? v.reason : k->n == 0 ? "no case has elements to compare" : "";
  snprintf(out->reason, sizeof out->reason, "%.199s", why);
  if (!c && !*why) {
    out->text = malloc(k->n * sizeof *out->text);
    if (!out->text) c = iso_fail(err, ISO_NOMEM, "out of memory");
    else memcpy(out->text, k->text, k->n * sizeof *out->text), out->n = k->n, k->n = 0;
  }
  for (size_t i = 0; i < k->n; i++) free(k->text[i]);
  free(k);
  return c;
}
