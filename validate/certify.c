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

static void write_whole(unsigned __int128 v, bool whole, FILE *f) {
  char buf[48], *p = buf + sizeof buf;
  *--p = 0;
  do *--p = (char)('0' + (int)(v % 10));
  while (v /= 10);
  fprintf(f, whole ? "%s" : "%s.0", p);
}

/* 2^e x, in factors that fit. */
static void write_scaled(unsigned __int128 v, int32_t e, bool whole, FILE *f) {
  const int32_t room = 60;
  if (e > 0) fputs(whole ? "(* 1 " : "(* 1.0 ", f); /* closed by the caller */
  if (e > 0 && v < ((unsigned __int128)1 << 60)) {
    const int32_t step = e < room ? e : room;
    v <<= step, e -= step;
  }
  write_whole(v, whole, f);
  for (; e > 0; e -= room) fputc(' ', f), write_whole((unsigned __int128)1 << (e < room ? e : room), whole, f);
}

static void write_rational(writer *w, uint32_t q, bool whole, FILE *f) {
  const pv_q v = w->c->q.q[q];
  const bool negative = v.n < 0;
  const unsigned __int128 n = (unsigned __int128)(negative ? -v.n : v.n), d = (unsigned __int128)v.d;
  if (v.e > 1100 || v.e < -1100) return give_up(w, "a number too large to write");
  if (negative) fputs("(- ", f);
  if (d == 1 && v.e == 0) {
    write_whole(n, whole, f);
  } else if (v.e >= 0 && d == 1) {
    write_scaled(n, v.e, whole, f);
    fputc(')', f);
  } else {
    fputs("(/ ", f);
    write_scaled(n, v.e > 0 ? v.e : 0, whole, f);
    fputs(v.e > 0 ? ") " : " ", f);
    write_scaled(d, v.e < 0 ? -v.e : 0, whole, f);
    fputs(v.e < 0 ? "))" : ")", f);
  }
  if (negative) fputs(")", f);
}

static name define(writer *w, sx x, const char *text) {
  static const char *const sort[] = {['b'] = "Bool", ['i'] = "Int", ['r'] = "Real"};
  line(w, "(define-fun t%u () %s %s)\n", (unsigned)x, sort[(int)sort_of(w->c, x)], text);
  const name r = named("t%u", (unsigned)x);
  if (x < w->cap_memo) snprintf(w->memo[x], NAME_BYTES, "%s", r.s); /* its axioms may speak of it again */
  return r;
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

static name root(writer *w, name a, sx whose) {
  if (!w->fn[31]) declare_fn(w, "f_sqrt", 1, "Real"), w->fn[31] = true;
  const size_t at = w->n_lines;
  line(w, "(define-fun r%zu () Real (f_sqrt %s))\n", at, a.s);
  const name r = named("r%zu", at), p = product(w, r, r), in = within(w, whose);
  line(w, "(assert (=> %s (>= %s 0.0))) ; its root is taken\n", in.s, a.s);
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
  if (!whole) b = root(w, b, x);
  r = b;
  for (int64_t i = 1; i < (k < 0 ? -k : k); i++) r = product(w, r, b);
  return k < 0 ? inverse(w, r, x) : r;
}

/* Factors of a product: expressions and inverses of such. */
typedef struct factor {
  sx x;
  bool inverse;
} factor;
typedef struct chain {
  factor f[24];
  size_t n;
  uint32_t coef;
  bool open; /* more than fits, or a power that is no whole one */
} chain;

static void collect(writer *w, chain *k, sx x, bool inverse) {
  sc *c = w->c;
  uint32_t q;
  int64_t e;
  if (sx_is_q(c, x, &q)) {
    if (q == PV_ZERO_Q) k->open = true;
    else k->coef = pv_q_mul(&c->q, k->coef, inverse ? pv_q_pow(&c->q, q, -1) : q);
  } else if (sc_op(c, x) == X_FN && sc_word(c, x, 0) == F_MUL) {
    collect(w, k, sc_word(c, x, 1), inverse);
    collect(w, k, sc_word(c, x, 2), inverse);
  } else if (sc_op(c, x) == X_FN && sc_word(c, x, 0) == F_POWER && sx_is_q(c, sc_word(c, x, 2), &q) && pv_q_is_int(&c->q, q, &e) && e >= -4 && e <= 4) {
    for (int64_t i = e < 0 ? -e : e; i > 0; i--) collect(w, k, sc_word(c, x, 1), inverse != (e < 0));
  } else {
    size_t i = 0;
    while (i < k->n && (k->f[i].x != x || k->f[i].inverse == inverse)) i++;
    if (i < k->n) k->f[i] = k->f[--k->n]; /* x / x */
    else if (k->n == 24) k->open = true;
    else k->f[k->n++] = (factor){x, inverse};
  }
}

static int by_factor(const void *a, const void *b) {
  const factor *x = a, *y = b;
  return x->x != y->x ? (x->x < y->x ? -1 : 1) : (int)x->inverse - (int)y->inverse;
}

static name coefficient(writer *w, uint32_t q, name r) {
  if (q == PV_ONE_Q) return r;
  const name k = real(w, sx_q(w->c, q));
  const size_t at = w->n_lines;
  line(w, "(define-fun k%zu () Real (* %s %s))\n", at, k.s, r.s);
  return named("k%zu", at);
}

/* In one order, sums among the factors multiplied out; `left`: how many products that may take. */
static name in_order(writer *w, chain k, int *left) {
  sc *c = w->c;
  for (size_t i = 0; i < k.n && !k.open && *left > 0; i++) {
    const sx x = k.f[i].x;
    if (k.f[i].inverse || sc_op(c, x) != X_FN || sc_word(c, x, 0) != F_ADD) continue;
    chain a = k, b = k;
    (*left)--;
    a.f[i] = a.f[--a.n];
    b = a;
    collect(w, &a, sc_word(c, x, 1), false);
    collect(w, &b, sc_word(c, x, 2), false);
    if (a.open || b.open) break;
    const name m = in_order(w, a, left), n = in_order(w, b, left);
    const size_t at = w->n_lines;
    line(w, "(define-fun a%zu () Real (+ %s %s))\n", at, m.s, n.s);
    return named("a%zu", at);
  }
  qsort(k.f, k.n, sizeof *k.f, by_factor);
  name r = named("1.0");
  for (size_t i = 0; i < k.n && !w->failed; i++) {
    const name f = real(w, k.f[i].x), g = k.f[i].inverse ? inverse(w, f, k.f[i].x) : f;
    r = i ? product(w, r, g) : g;
  }
  return coefficient(w, k.coef, r);
}

static name call(writer *w, sx x) {
  /* Not by their own names: some solvers know a function of that name. */
  static const char *const fn[] = {"f_exp", "f_log", "f_erf", "f_sin", "f_cos", "f_tan", "f_atan", "f_abs", "f_floor", "f_ceil", "f_round", "f_trunc", "f_pow", "f_atan2", "f_safe_inv", "f_f32", "f_f16", "f_bf16", "f_f8", "f_int"};
  sc *c = w->c;
  const sx_func f = (sx_func)sc_word(c, x, 0);
  const sx a = sc_word(c, x, 1);
  char text[256];
  uint32_t q;
  if (f == F_ADD || f == F_MUL || f == F_POWER || f == F_POW || f == F_ATAN2) {
    const sx b = sc_word(c, x, 2);
    if (f == F_POWER) return sx_is_q(c, b, &q) ? power(w, a, q) : named("0.0");
    const name m = real(w, a), n = real(w, b);
    chain k = {.coef = PV_ONE_Q};
    if (f == F_MUL) collect(w, &k, x, false);
    name p;
    if (f == F_MUL && sc_op(c, a) != X_CONST && sc_op(c, b) != X_CONST) {
      p = product(w, m, n);
    } else {
      if ((f == F_POW || f == F_ATAN2) && !w->two[f]) declare_fn(w, fn[f], 2, "Real"), w->two[f] = true;
      snprintf(text, sizeof text, "(%s %s %s)", f == F_ADD ? "+" : f == F_MUL ? "*" : fn[f], m.s, n.s);
      p = define(w, x, text);
    }
    if (f != F_MUL || k.open) return p;
    const name o = in_order(w, k, &(int){16});
    if (strcmp(o.s, p.s) != 0) line(w, "(assert (= %s %s)) ; multiplied out, factors in one order\n", p.s, o.s);
    return p;
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
  const sx minus = sc_op(c, a) == X_FN && sc_word(c, a, 0) == F_MUL && sc_word(c, a, 1) == c->minus_one ? sc_word(c, a, 2) : 0;
  if (minus && (f == F_EXP || f == F_SIN || f == F_TAN || f == F_ERF || f == F_ATAN || f == F_COS)) {
    const name o = write(w, sc_node(c, X_FN, (uint32_t[2]){f, minus}, 2));
    if (f == F_EXP) {
      const name p = product(w, r, o);
      line(w, "(assert (= %s 1.0)) ; e^-a e^a = 1\n", p.s);
    } else {
      line(w, f == F_COS ? "(assert (= %s %s)) ; even\n" : "(assert (= %s (- %s))) ; odd\n", r.s, o.s);
    }
  }
  if (f == F_LOG) {
    const name in = within(w, a), e = write(w, sc_node(c, X_FN, (uint32_t[2]){F_EXP, x}, 2));
    line(w, "(assert (=> %s (> %s 0.0))) ; its logarithm is taken\n", in.s, n.s);
    line(w, "(assert (=> (> %s 0.0) (= %s %s))) ; e^log a = a\n", n.s, e.s, n.s);
    if (sc_op(c, a) == X_FN && sc_word(c, a, 0) == F_EXP) line(w, "(assert (= %s %s)) ; log e^a = a\n", r.s, real(w, sc_word(c, a, 1)).s);
    if (sc_op(c, a) == X_FN && sc_word(c, a, 0) == F_MUL) {
      const sx s = sc_word(c, a, 1), t = sc_word(c, a, 2);
      if (!sx_is_q(c, s, &q) || pv_q_sign(&c->q, q) > 0) {
        const name p = real(w, s), o = real(w, t);
        line(w, "(assert (=> (and (> %s 0.0) (> %s 0.0)) (= %s (+ (f_log %s) (f_log %s))))) ; log ab\n", p.s, o.s, r.s, p.s, o.s);
      }
    }
  }
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

static void head(const sc *c, FILE *f) {
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
  /* With products of its own z3 4.8 now and then does not stop, whatever its limits. */
  fputs("(declare-fun mul (Real Real) Real) ; products; of them only what follows is told\n", f);
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
  Z3_context z = Z3_mk_context(cfg);
  Z3_del_config(cfg);
  if (!z) return NULL;
  Z3_set_error_handler(z, NULL);
  (void)Z3_eval_smtlib2_string(z, "(set-option :timeout 1500)(set-option :rlimit 1000000)"); /* not in the file */
  const char *r = Z3_eval_smtlib2_string(z, text);
  char *copy = r ? strdup(r) : NULL;
  Z3_del_context(z);
  return copy;
}

static char *compose(writer *w, const char *body, const char *end) {
  char *text = NULL;
  size_t n = 0;
  FILE *f = open_memstream(&text, &n);
  if (!f) return NULL;
  head(w->c, f);
  fputs(body, f);
  fputs(end, f);
  fclose(f);
  return text;
}

/* Goal and vacuity, in this order. */
static char *ending(writer *w, name x, name y, bool pin) {
  char *text = NULL;
  size_t n = 0;
  double *v = calloc(w->c->n_syms + 1, sizeof *v);
  FILE *body = w->f, *f = v && (!pin || sc_model(w->c, v)) ? open_memstream(&text, &n) : NULL;
  if (f) {
    w->f = f;
    fprintf(f, "; the sides are equal: unsat\n(push 1)\n(assert (not (= %s %s)))\n(check-sat)\n(pop 1)\n", x.s, y.s);
    fprintf(f, "; and what was assumed has a model%s: sat\n(push 1)\n", pin ? ", at these sizes" : "");
    if (pin) pinned(w, v);
    fputs("(check-sat)\n(pop 1)\n", f);
    fclose(f);
    w->f = body;
  }
  free(v);
  return text;
}

/* A case that no sizes meet: what holds in it is contradictory by itself, and that is its obligation. */
static char *empty_case(writer *w) {
  writer *k = calloc(1, sizeof *k);
  char *body = NULL, *text = NULL, *got = NULL;
  size_t n = 0;
  if (k) k->c = w->c, k->declared = calloc(w->c->r->n_vars + 1, sizeof *k->declared), k->f = open_memstream(&body, &n);
  if (k && k->f) {
    hypotheses(k);
    fclose(k->f);
    text = k->failed || !k->declared ? NULL : compose(k, body, "; no sizes meet this case: unsat\n(check-sat)\n");
    got = text ? answers(text) : NULL;
  }
  if (k) free(k->memo), free(k->declared);
  const bool empty = got && !strcmp(got, "unsat\n");
  if (!empty) free(text);
  free(got);
  free(body);
  free(k);
  return empty ? text : NULL;
}

static void write_case(writer *w, sx x, sx y, char **out, char *why) {
  char *body = NULL;
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
  char *end[2] = {NULL, NULL};
  for (int pin = 0; pin < 2 && !w->failed; pin++) end[pin] = ending(w, a, b, pin);
  fclose(w->f);
  /* Sizes of a model that was found, then any. */
  for (int pin = 1; pin >= 0 && !w->failed && !*out; pin--) {
    if (!end[pin]) continue;
    char *text = compose(w, body, end[pin]), *got = text ? answers(text) : NULL;
    if (got && (c->certify->unchecked || !strcmp(got, "unsat\nsat\n"))) *out = text, text = NULL;
    const bool goal = got && !strncmp(got, "unsat", 5);
    if (!*out) snprintf(why, 200, "z3 does not answer as it should: %.100s", got ? got : "");
    for (char *p = why; *p; p++)
      if (*p == '\n') *p = ' ';
    free(got);
    free(text);
    if (!goal || c->certify->unchecked) break; /* other sizes change nothing in the goal */
  }
  if (!*out && !w->failed && !c->certify->unchecked) *out = empty_case(w);
  else if (*out) c->certify->some = true;
  if (w->failed) snprintf(why, 200, "%s", w->failed);
  free(body);
  free(end[0]);
  free(end[1]);
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
  const char *why = k->why[0] ? k->why : v.status != RULE_PROVED && !unchecked ? v.reason : !k->some ? "no case has elements to compare" : "";
  snprintf(out->reason, sizeof out->reason, "%.199s", *why || v.status == RULE_PROVED ? why : v.reason);
  if (!c && !*why) {
    out->text = malloc(k->n * sizeof *out->text);
    if (!out->text) c = iso_fail(err, ISO_NOMEM, "out of memory");
    else memcpy(out->text, k->text, k->n * sizeof *out->text), out->n = k->n, k->n = 0;
  }
  for (size_t i = 0; i < k->n; i++) free(k->text[i]);
  free(k);
  return c;
}
