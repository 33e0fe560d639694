/* Expressions as SMT-LIB: sorts and names, symbols, functions with their axioms at the arguments
 * that occur. */
#include <stdarg.h>

#include "validate/smt/obligation_int.h"

void smt_give_up(smt_writer *w, const char *why) {
  if (!w->failed) w->failed = why;
}

void smt_line(smt_writer *w, const char *fmt, ...) {
  va_list ap;
  if (++w->n_lines > SMT_MAX_LINES) smt_give_up(w, "more instances of axioms than a file may have");
  va_start(ap, fmt);
  vfprintf(w->f, fmt, ap);
  va_end(ap);
}

/* ---- sorts and names ---- */

smt_name smt_named(const char *fmt, ...) {
  smt_name n;
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(n.s, sizeof n.s, fmt, ap);
  va_end(ap);
  return n;
}

smt_name smt_plain_name(char role, const char *s, size_t at) {
  smt_name n = smt_named("%c_%.40s", role, s);
  bool changed = strlen(s) > 40 ||
                 (role != 'n' && role != 'a'); /* what is not the rule's own may be called alike */
  for (char *p = n.s; *p; p++)
    if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_", *p))
      *p = '_', changed = true;
  return changed ? smt_named("%.42s_%zu", n.s, at) : n;
}

/* As a real number. */
smt_name smt_real(smt_writer *w, sx x) {
  const smt_name n = smt_write(w, x);
  return smt_sort_of(w->c, x) == 'i' ? smt_named("(to_real %s)", n.s) : n;
}

static smt_name smt_define(smt_writer *w, sx x, const char *text) {
  static const char *const sort[] = {['b'] = "Bool", ['i'] = "Int", ['r'] = "Real"};
  if (x < w->cap_memo && *w->memo[x])
    return smt_named("%s", w->memo[x]); /* an axiom of a part of it has named it */
  smt_line(w, "(define-fun t%u () %s %s)\n", (unsigned)x, sort[(int)smt_sort_of(w->c, x)], text);
  const smt_name r = smt_named("t%u", (unsigned)x);
  if (x < w->cap_memo)
    snprintf(w->memo[x], SMT_NAME_BYTES, "%s", r.s); /* its axioms may speak of it again */
  return r;
}

/* A definition of which the text is a real number, though its value may be known to be whole. */
static smt_name define_real(smt_writer *w, sx x, const char *text) {
  char floor[300];
  if (smt_sort_of(w->c, x) != 'i' || (x < w->cap_memo && *w->memo[x]))
    return smt_define(w, x, text);
  snprintf(floor, sizeof floor, "(to_int %s)", text);
  const smt_name r = smt_define(w, x, floor);
  smt_line(w, "(assert (= (to_real %s) %s)) ; it is whole\n", r.s, text);
  return r;
}

/* ---- what a symbol stands for ---- */

static smt_name symbol(smt_writer *w, sx x) {
  sc *c = w->c;
  const uint32_t at = sc_word(c, x, 0);
  const sx_sym s = c->store.sym[at];
  const bool index = s.role == 'x', whole = s.flags & S_INT;
  const smt_name n = index ? smt_named("i%u", (unsigned)at)
                           : smt_plain_name(s.role == 's' ? 'n' : s.role, s.name, at);
  if (at >= 1 << 12) smt_give_up(w, "too many indices");
  if (w->failed || w->sym[at]) return n;
  w->sym[at] = true;
  const smt_name high = s.high ? smt_write(w, s.high) : smt_named("0");
  smt_line(w, "(declare-const %s %s)\n", n.s, whole ? "Int" : "Real");
  bool skolem = false;
  for (size_t i = 0; i < w->n_skolems; i++) skolem |= w->skolem[i] == x;
  if (skolem) return n; /* its range stands where it is used */
  const bool low = s.has_low;
  if (low) smt_line(w, "(assert (<= %lld %s))\n", (long long)s.low, n.s);
  if (s.high) smt_line(w, "(assert (< %s %s))\n", n.s, high.s);
  if (index || low) return n;
  if (s.flags & S_POS) smt_line(w, "(assert (> %s 0))\n", n.s);
  else if (s.flags & S_NONNEG) smt_line(w, "(assert (>= %s 0))\n", n.s);
  else if (s.flags & S_NONZERO) smt_line(w, "(assert (distinct %s 0))\n", n.s);
  return n;
}

/* The Skolem constants in x are within their ranges: "(and ...)". */
smt_name smt_within(smt_writer *w, sx x) {
  smt_name r = smt_named("true");
  for (size_t i = 0; i < w->n_skolems; i++) {
    if (!sx_occurs(w->c, w->skolem[i], x)) continue;
    const uint32_t at = sc_word(w->c, w->skolem[i], 0);
    const smt_name k = smt_write(w, w->skolem[i]), high = smt_write(w, w->c->store.sym[at].high);
    smt_line(w, "(define-fun in%u_%zu () Bool (and %s (<= 0 %s) (< %s %s)))\n", (unsigned)at,
             w->n_lines, r.s, k.s, k.s, high.s);
    r = smt_named("in%u_%zu", (unsigned)at, w->n_lines - 1);
  }
  return r;
}

sx smt_skolem(smt_writer *w, sx high) {
  const sx k = w->n_skolems < SMT_MAX_PAIRS ? sc_index(w->c, high) : 0;
  if (!k || k == w->c->zero) return 0;
  return w->skolem[w->n_skolems++] = k;
}

/* |a|, a being written as n. */
static smt_name absolute(smt_writer *w, sx x, sx a, smt_name n) {
  sc *c = w->c;
  char text[256];
  snprintf(text, sizeof text, "(ite (>= %s 0.0) %s (- %s))", n.s, n.s, n.s);
  const smt_name r = define_real(w, x, text), real = smt_real(w, x), p = smt_product(w, real, real),
                 o = smt_product(w, n, n);
  smt_line(w, "(assert (= %s %s)) ; |a| |a| = a a\n", p.s, o.s);
  if (smt_is_fn(c, a, F_MUL)) {
    const smt_name s = smt_real(w, sc_node(c, X_FN, (uint32_t[2]){F_ABS, sc_word(c, a, 1)}, 2)),
                   t = smt_real(w, sc_node(c, X_FN, (uint32_t[2]){F_ABS, sc_word(c, a, 2)}, 2));
    const smt_name both = smt_product(w, s, t);
    smt_line(w, "(assert (= %s %s)) ; |a b| = |a| |b|\n", real.s, both.s);
  }
  return r;
}

/* log a, a being written as n, with the facts of it where it is an exponential or a power. */
static smt_name log_of(smt_writer *w, sx a, smt_name n) {
  sc *c = w->c;
  if (smt_is_fn(c, a, F_EXP)) return smt_real(w, sc_word(c, a, 1));
  return smt_is_fn(c, a, F_POWER) ? smt_write(w, sc_node(c, X_FN, (uint32_t[2]){F_LOG, a}, 2))
                                  : smt_named("(f_log %s)", n.s);
}

/* Facts about r = log a. */
static void facts_of_log(smt_writer *w, sx x, sx a, smt_name n, smt_name r) {
  sc *c = w->c;
  uint32_t q;
  const smt_name in = smt_within(w, a),
                 e = smt_write(w, sc_node(c, X_FN, (uint32_t[2]){F_EXP, x}, 2));
  smt_line(w, "(assert (=> %s (> %s 0.0))) ; its logarithm is taken\n", in.s, n.s);
  smt_line(w, "(assert (=> (> %s 0.0) (= %s %s))) ; e^log a = a\n", n.s, e.s, n.s);
  if (sc_op(c, a) == X_FN && sc_word(c, a, 0) == F_EXP)
    smt_line(w, "(assert (= %s %s)) ; log e^a = a\n", r.s, smt_real(w, sc_word(c, a, 1)).s);
  int64_t times = 0;
  if (smt_is_fn(c, a, F_POWER) && sx_is_q(c, sc_word(c, a, 2), &q)) {
    const bool half = !pv_q_is_int(&c->q, q, &times);
    if (half && !pv_q_is_int(&c->q, pv_q_mul(&c->q, q, pv_q_int(&c->q, 2)), &times)) times = 0;
    const smt_name p = smt_real(w, sc_word(c, a, 1)),
                   o = smt_write(w, sc_node(c, X_FN, (uint32_t[2]){F_LOG, sc_word(c, a, 1)}, 2));
    if (times)
      smt_line(w, "(assert (=> (> %s 0.0) (= %s (* (/ %s%lld.0%s %d.0) %s)))) ; log a^k\n", p.s,
               r.s, times < 0 ? "(- " : "", (long long)(times < 0 ? -times : times),
               times < 0 ? ")" : "", half ? 2 : 1, o.s);
  }
  const sx product = smt_is_fn(c, a, F_MUL) ? a : smt_factored(c, a);
  if (product && smt_is_fn(c, product, F_MUL)) {
    const sx s = sc_word(c, product, 1), t = sc_word(c, product, 2);
    if (!sx_is_q(c, s, &q) || pv_q_sign(&c->q, q) > 0) {
      const smt_name p = smt_real(w, s), o = smt_real(w, t), u = log_of(w, s, p),
                     v = log_of(w, t, o);
      smt_line(w, "(assert (=> (and (> %s 0.0) (> %s 0.0)) (= %s (+ %s %s)))) ; log ab\n", p.s, o.s,
               r.s, u.s, v.s);
    }
  }
}

/* Facts about r = e^a where a is a product or a sum. */
static void facts_of_exp(smt_writer *w, sx x, sx a, bool minus, smt_name r) {
  sc *c = w->c;
  uint32_t q;
  if (smt_is_fn(c, a, F_MUL) && !minus) {
    chain k = {.coef = PV_ONE_Q};
    smt_collect(w, &k, x, false);
    if (!k.open && k.n > 1)
      smt_line(w, "(assert (= %s %s)) ; e^(ka) = (e^a)^k\n", r.s, smt_in_order(w, k, &(int){16}).s);
    const sx h = sc_word(c, a, 1), double_of = smt_is_fn(c, a, F_MUL) && sx_is_q(c, h, &q)
                                                   ? sx_scale(c, pv_q_int(&c->q, 2), h)
                                                   : 0;
    if (double_of && double_of == c->one) { /* a half: the other way round */
      const smt_name whole_of =
                         smt_write(w, sc_node(c, X_FN, (uint32_t[2]){F_EXP, sc_word(c, a, 2)}, 2)),
                     p = smt_product(w, r, r);
      smt_line(w, "(assert (= %s %s)) ; (e^(a / 2))^2 = e^a\n", p.s, whole_of.s);
    }
  }
  if (sc_op(c, a) == X_FN && sc_word(c, a, 0) == F_ADD) {
    const sx one = sc_node(c, X_FN, (uint32_t[2]){F_EXP, sc_word(c, a, 1)}, 2),
             two = sc_node(c, X_FN, (uint32_t[2]){F_EXP, sc_word(c, a, 2)}, 2);
    const smt_name p = smt_write(w, one), s = smt_write(w, two), t = smt_product(w, p, s);
    smt_line(w, "(assert (= %s %s)) ; e^(a + b) = e^a e^b\n", r.s, t.s);
  }
}

/* x where `cond` holds or not, as far as it is the first thing that x asks. */
static sx in_case(const sc *c, sx x, sx cond, bool holds) {
  return smt_is_fn(c, x, F_IF) && sc_word(c, x, 1) == cond ? sc_word(c, x, holds ? 2 : 3) : x;
}

/* p = a b where a or b is one thing or another: a product in either case, in which signs and
 * factors can come out. */
static void by_case(smt_writer *w, sx a, sx b, smt_name p) {
  sc *c = w->c;
  const sx first = smt_is_fn(c, a, F_IF)   ? a
                   : smt_is_fn(c, b, F_IF) ? b
                                           : 0,
           g = first ? sc_word(c, first, 1) : 0;
  smt_name r[2];
  if (!g || w->n_lines > SMT_MAX_LINES / 4) return;
  for (int k = 0; k < 2; k++)
    r[k] = smt_real(
        w, sc_node(c, X_FN,
                   (uint32_t[3]){F_MUL, in_case(c, a, g, k == 0), in_case(c, b, g, k == 0)}, 3));
  smt_line(w, "(assert (= %s (ite %s %s %s))) ; by case\n", p.s, smt_write(w, g).s, r[0].s, r[1].s);
}

static bool has_two(sx_func f) {
  return f == F_ADD || f == F_MUL || f == F_POWER || f == F_POW || f == F_ATAN2 || f == F_AND;
}

static smt_name call_of_two(smt_writer *w, sx x, sx_func f, sx a) {
  sc *c = w->c;
  char text[256];
  uint32_t q;
  const sx b = sc_word(c, x, 2);
  if (f == F_POWER) return sx_is_q(c, b, &q) ? smt_ordered_power(w, x, q) : smt_named("0.0");
  const smt_name m = smt_real(w, a), n = smt_real(w, b);
  chain k = {.coef = PV_ONE_Q};
  if (f == F_MUL) smt_collect(w, &k, x, false);
  smt_name p;
  if (f == F_MUL && sc_op(c, a) != X_CONST && sc_op(c, b) != X_CONST) {
    p = smt_product(w, m, n);
  } else {
    if ((f == F_POW || f == F_ATAN2 || f == F_AND) && !w->two[f])
      smt_declare_fn(w, smt_fn[f], 2, "Real"), w->two[f] = true;
    snprintf(text, sizeof text, "(%s %s %s)",
             f == F_ADD   ? "+"
             : f == F_MUL ? "*"
                          : smt_fn[f],
             m.s, n.s);
    p = define_real(w, x, text);
  }
  if (f == F_MUL) by_case(w, a, b, p);
  if (f != F_MUL || k.open) return p;
  const smt_name o = smt_in_order(w, k, &(int){16});
  if (strcmp(o.s, p.s) != 0)
    smt_line(w, "(assert (= %s %s)) ; multiplied out, factors in one order\n", p.s, o.s);
  return p;
}

/* e^a is positive, and rises: beside each exponential that was written before. */
static void facts_of_rise(smt_writer *w, sx a, smt_name n, smt_name r) {
  sc *c = w->c;
  smt_line(w, "(assert (> %s 0.0))\n", r.s);
  for (size_t i = 0; i < w->n_exponents; i++) {
    const smt_name m = smt_real(w, w->exponent[i]),
                   e = smt_write(w, sc_node(c, X_FN, (uint32_t[2]){F_EXP, w->exponent[i]}, 2));
    smt_line(w, "(assert (and (= (< %s %s) (< %s %s)) (= (= %s %s) (= %s %s)))) ; e^a rises\n", n.s,
             m.s, r.s, e.s, n.s, m.s, r.s, e.s);
  }
  if (w->n_exponents < SMT_MAX_EXPS) w->exponent[w->n_exponents++] = a;
}

/* The b of which `a` is -b; 0: there is none. */
static sx negated(const sc *c, sx a) {
  const bool is =
      sc_op(c, a) == X_FN && sc_word(c, a, 0) == F_MUL && sc_word(c, a, 1) == c->minus_one;
  return is ? sc_word(c, a, 2) : 0;
}

/* f(-a) beside f(a), of functions that are odd or even, and of e^a. */
static void facts_of_sign(smt_writer *w, sx_func f, sx minus, smt_name r) {
  sc *c = w->c;
  if (minus && (f == F_EXP || f == F_SIN || f == F_TAN || f == F_ERF || f == F_ATAN ||
                f == F_ASIN || f == F_COS)) {
    const smt_name o = smt_write(w, sc_node(c, X_FN, (uint32_t[2]){f, minus}, 2));
    if (f == F_EXP) {
      const smt_name p = smt_product(w, r, o);
      smt_line(w, "(assert (= %s 1.0)) ; e^-a e^a = 1\n", p.s);
    } else {
      smt_line(w, f == F_COS ? "(assert (= %s %s)) ; even\n" : "(assert (= %s (- %s))) ; odd\n",
               r.s, o.s);
    }
  }
}

static void facts_of_safe_inverse(smt_writer *w, smt_name n, smt_name r) {
  const smt_name p = smt_product(w, n, r);
  smt_line(w, "(assert (=> (distinct %s 0.0) (= %s 1.0)))\n", n.s, p.s);
  if (!w->fn[30]) smt_declare_fn(w, "inv", 1, "Real"), w->fn[30] = true;
  smt_line(w, "(assert (=> (distinct %s 0.0) (= %s (inv %s)))) ; there it is the inverse\n", n.s,
           r.s, n.s);
}

static void facts_of_whole(smt_writer *w, sx_func f, smt_name n, smt_name r) {
  if (f == F_FLOOR)
    smt_line(w, "(assert (and (<= (to_real %s) %s) (< %s (to_real (+ %s 1)))))\n", r.s, n.s, n.s,
             r.s);
  if (f == F_TRUNC)
    smt_line(w, "(assert (= %s (ite (>= %s 0.0) (to_int %s) (- (to_int (- %s))))))\n", r.s, n.s,
             n.s, n.s);
}

static smt_name call(smt_writer *w, sx x) {
  sc *c = w->c;
  const sx_func f = (sx_func)sc_word(c, x, 0);
  const sx a = sc_word(c, x, 1);
  char text[256];
  if (has_two(f)) return call_of_two(w, x, f, a);
  if (f == F_PLACE) {
    const smt_name o = smt_place(w, x);
    if (x < w->cap_memo) snprintf(w->memo[x], SMT_NAME_BYTES, "%s", o.s);
    return o;
  }
  if (f == F_IF) {
    const smt_name g = smt_write(w, a), m = smt_real(w, sc_word(c, x, 2)),
                   n = smt_real(w, sc_word(c, x, 3));
    snprintf(text, sizeof text, "(ite %s %s %s)", g.s, m.s, n.s);
    return define_real(w, x, text);
  }
  const smt_name n = smt_real(w, a);
  const bool whole = f == F_FLOOR || f == F_CEIL || f == F_ROUND || f == F_TRUNC ||
                     f == F_CAST_INT || sx_is_wrap(f);
  if (f == F_ABS) return absolute(w, x, a, n);
  if (!w->fn[f]) smt_declare_fn(w, smt_fn[f], 1, whole ? "Int" : "Real"), w->fn[f] = true;
  snprintf(text, sizeof text, "(%s %s)", smt_fn[f], n.s);
  const smt_name r = whole ? smt_define(w, x, text) : define_real(w, x, text);
  if (a == c->zero && (f == F_EXP || f == F_SIN || f == F_COS))
    return smt_line(w, "(assert (= %s %s)) ; at 0\n", r.s, f == F_SIN ? "0.0" : "1.0"), r;
  if (f == F_EXP) facts_of_rise(w, a, n, r);
  facts_of_whole(w, f, n, r);
  const sx minus = negated(c, a);
  facts_of_sign(w, f, minus, r);
  if (f == F_LOG) facts_of_log(w, x, a, n, r);
  if (f == F_SAFE_INV) facts_of_safe_inverse(w, n, r);
  if (f == F_EXP) facts_of_exp(w, x, a, minus != 0, r);
  if ((f == F_SIN || f == F_COS) && !minus) smt_tell_turn(w, f == F_SIN, a, r);
  return r;
}

/* ---- sums ---- */

static uint64_t contents(const sc *c, sx x, int depth) {
  const sx_node *p = sc_at(c, x);
  uint64_t h = 0;
  if (depth > 60 || p->op == X_CONST || p->op == X_SYM || p->op == X_BOUND) return 0;
  if (p->op == X_LEAF) return 1000003ULL * (1 + sc_word(c, x, 0)) * (1 + sc_word(c, x, 0));
  for (uint32_t i = 0; i < p->n; i++) {
    const bool child = p->op == X_ADD                                      ? i & 1
                       : p->op == X_MUL                                    ? !(i & 1)
                       : p->op == X_FN || p->op == X_SUM || p->op == X_TOP ? i > 0
                                                                           : true;
    if (child) h += contents(c, sc_word(c, x, i), depth + 1);
  }
  return p->op == X_FN && sc_word(c, x, 0) < F_ADD ? h * 31 + sc_word(c, x, 0) : h;
}

static smt_name constant_of_sum(smt_writer *w, sx x) {
  const smt_name n = smt_named("s%u", (unsigned)x);
  char *text = sx_print(w->c, x);
  smt_line(w, "(declare-const %s %s) ; %.900s\n", n.s, smt_sort_of(w->c, x) == 'i' ? "Int" : "Real",
           text ? text : "");
  free(text);
  if (w->n_sums == SMT_MAX_SUMS) smt_give_up(w, "too many sums");
  else w->sum[w->n_sums++] = (smt_sum){.id = x, .side = w->side, .contents = contents(w->c, x, 0)};
  return n;
}

/* ---- expressions ---- */

static smt_name list(smt_writer *w, sx x) {
  sc *c = w->c;
  const sx_node p = *sc_at(c, x);
  const bool whole = smt_sort_of(c, x) == 'i';
  char *text = NULL;
  size_t n_text = 0;
  smt_name part[64];
  if (p.n / 2 > 64) smt_give_up(w, "a polynomial of too many terms");
  if (p.op == X_MUL && !whole) {
    smt_name r = smt_named("1.0");
    for (uint32_t i = 0; i < p.n && !w->failed; i += 2) {
      const smt_name f = smt_power(w, sc_word(c, x, i), sc_word(c, x, i + 1));
      r = i ? smt_product(w, r, f) : f;
    }
    return r;
  }
  for (uint32_t i = 0; i < p.n && !w->failed; i += 2) {
    const sx m = sc_word(c, x, p.op == X_ADD ? i + 1 : i);
    part[i / 2] = whole ? smt_write(w, m) : smt_real(w, m);
  }
  FILE *f = w->failed ? NULL : open_memstream(&text, &n_text);
  if (!f) return smt_named("0");
  fputs(p.op == X_MUL ? "(* 1" : p.n == 2 ? "(+ 0" : "(+", f);
  for (uint32_t i = 0; i < p.n; i += 2) {
    int64_t k = 1;
    if (p.op == X_ADD) {
      const bool one = sc_word(c, x, i) == PV_ONE_Q;
      fputs(one ? " " : " (* ", f);
      if (!one) smt_write_rational(w, sc_word(c, x, i), whole, f);
      fprintf(f, one ? "%s" : " %s)", part[i / 2].s);
    } else {
      if (!pv_q_is_int(&c->q, sc_word(c, x, i + 1), &k)) smt_give_up(w, "a power of a size");
      for (; k > 0; k--) fprintf(f, " %s", part[i / 2].s);
    }
  }
  fputc(')', f);
  fclose(f);
  const smt_name r = smt_define(w, x, text);
  free(text);
  return r;
}

static smt_name leaf(smt_writer *w, sx x) {
  sc *c = w->c;
  const uint32_t var = sc_word(c, x, 0), n = sc_at(c, x)->n - 1;
  const smt_name v = smt_plain_name('v', c->r->var[var].name, var);
  const char kind = c->r->var[var].kind;
  char text[512] = "";
  size_t at = 0;
  if (!w->declared[var]) {
    w->declared[var] = true;
    smt_line(w, "(declare-fun %s (", v.s);
    for (uint32_t i = 0; i < n; i++) smt_line(w, "%sInt", i ? " " : "");
    smt_line(w, ") %s)\n", kind == 'b' ? "Bool" : kind == 'i' ? "Int" : "Real");
  }
  if (n == 0) return smt_define(w, x, v.s);
  at = (size_t)snprintf(text, sizeof text, "(%s", v.s);
  for (uint32_t i = 0; i < n && at < sizeof text - 80; i++) {
    const smt_name k = smt_write(w, sc_word(c, x, i + 1));
    at += (size_t)snprintf(text + at, sizeof text - at, " %s", k.s);
  }
  snprintf(text + at, sizeof text - at, ")");
  return smt_define(w, x, text);
}

static smt_name quotient(smt_writer *w, sx x) {
  const smt_name p = smt_write(w, sc_word(w->c, x, 0)), d = smt_write(w, sc_word(w->c, x, 1)),
                 n = smt_named("t%u", (unsigned)x);
  smt_line(w, "(declare-const %s Int) ; floor(%s / %s)\n", n.s, p.s, d.s);
  smt_line(w, "(assert (and (<= (* %s %s) %s) (< %s (+ (* %s %s) %s))))\n", d.s, n.s, p.s, p.s, d.s,
           n.s, d.s);
  return n;
}

static smt_name compound(smt_writer *w, sx x) {
  sc *c = w->c;
  char text[400];
  const sx a = sc_at(c, x)->n ? sc_word(c, x, 0) : 0;
  smt_name m, n, g;
  bool whole;
  switch (sc_op(c, x)) {
  case X_ADD:
  case X_MUL: return list(w, x);
  case X_DIV: return quotient(w, x);
  case X_LEAF: return leaf(w, x);
  case X_FN: return call(w, x);
  case X_SUM:
  case X_TOP: return constant_of_sum(w, x);
  case X_LT:
  case X_EQ:
    m = smt_write(w, a);
    snprintf(text, sizeof text, "(%s %s %s)", sc_op(c, x) == X_LT ? "<" : "=", m.s,
             smt_sort_of(c, a) == 'i' ? "0" : "0.0");
    return smt_define(w, x, text);
  case X_IVER:
    g = smt_write(w, a);
    snprintf(text, sizeof text, "(ite %s 1 0)", g.s);
    return smt_define(w, x, text);
  case X_ITE:
    g = smt_write(w, a);
    m = smt_sort_of(c, x) == 'r' ? smt_real(w, sc_word(c, x, 1)) : smt_write(w, sc_word(c, x, 1));
    n = smt_sort_of(c, x) == 'r' ? smt_real(w, sc_word(c, x, 2)) : smt_write(w, sc_word(c, x, 2));
    snprintf(text, sizeof text, "(ite %s %s %s)", g.s, m.s, n.s);
    return smt_define(w, x, text);
  case X_MAX:
    whole = smt_sort_of(c, x) == 'i';
    m = whole ? smt_write(w, a) : smt_real(w, a);
    for (uint32_t i = 1; i < sc_at(c, x)->n; i++) {
      n = whole ? smt_write(w, sc_word(c, x, i)) : smt_real(w, sc_word(c, x, i));
      const size_t at = w->n_lines;
      smt_line(w,
               whole ? "(define-fun m%zu () Int (ite (>= %s %s) %s %s))\n"
                     : "(define-fun m%zu () Real (ite (>= %s %s) %s %s))\n",
               at, m.s, n.s, m.s, n.s);
      m = smt_named("m%zu", at);
    }
    return m;
  case X_NEGINF: /* any number: what holds for all of them holds of their limit */
    smt_line(w, "(declare-const ninf Real)\n");
    return smt_named("ninf");
  default: smt_give_up(w, "an expression that has no text"); return smt_named("0");
  }
}

smt_name smt_write(smt_writer *w, sx x) {
  sc *c = w->c;
  int64_t k;
  if (w->failed || c->fault.failed)
    return smt_give_up(w,
                       c->fault.reason[0] ? "what the definitions give is too large" : "too large"),
           smt_named("0");
  if (sc_op(c, x) == X_TRUE || sc_op(c, x) == X_FALSE)
    return smt_named(x == c->yes ? "true" : "false");
  if (sc_op(c, x) == X_SYM) return symbol(w, x);
  if (sx_is_int(c, x, &k))
    return k < 0 ? smt_named("(- %lld)", -(long long)k) : smt_named("%lld", (long long)k);
  if (x >= w->cap_memo) {
    const size_t cap = 2 * ((size_t)x + 64);
    char(*more)[SMT_NAME_BYTES] = realloc(w->memo, cap * sizeof *more);
    if (!more) return smt_give_up(w, "out of memory"), smt_named("0");
    memset(more + w->cap_memo, 0, (cap - w->cap_memo) * sizeof *more);
    w->memo = more;
    w->cap_memo = cap;
  }
  if (*w->memo[x]) return smt_named("%s", w->memo[x]);
  smt_name r;
  if (sc_op(c, x) == X_CONST) {
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);
    if (!f) return smt_give_up(w, "out of memory"), smt_named("0");
    smt_write_rational(w, sc_word(c, x, 0), false, f);
    fclose(f);
    r = smt_define(w, x, text);
    free(text);
  } else {
    r = compound(w, x);
  }
  if (x < w->cap_memo) snprintf(w->memo[x], SMT_NAME_BYTES, "%s", r.s);
  return r;
}
