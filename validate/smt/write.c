/* Expressions as SMT-LIB: sorts and names, symbols, functions with their axioms at the arguments
 * that occur. */
#include <stdarg.h>

#include "validate/smt/obligation_int.h"

void cert_give_up(cert_writer *w, const char *why) {
  if (!w->failed) w->failed = why;
}

void cert_line(cert_writer *w, const char *fmt, ...) {
  va_list ap;
  if (++w->n_lines > CERT_MAX_LINES)
    cert_give_up(w, "more instances of axioms than a file may have");
  va_start(ap, fmt);
  vfprintf(w->f, fmt, ap);
  va_end(ap);
}

/* ---- sorts and names ---- */

cert_name cert_named(const char *fmt, ...) {
  cert_name n;
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(n.s, sizeof n.s, fmt, ap);
  va_end(ap);
  return n;
}

cert_name cert_plain_name(char role, const char *s, size_t at) {
  cert_name n = cert_named("%c_%.40s", role, s);
  bool changed = strlen(s) > 40 ||
                 (role != 'n' && role != 'a'); /* what is not the rule's own may be called alike */
  for (char *p = n.s; *p; p++)
    if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_", *p))
      *p = '_', changed = true;
  return changed ? cert_named("%.42s_%zu", n.s, at) : n;
}

/* As a real number. */
cert_name cert_real(cert_writer *w, sx x) {
  const cert_name n = cert_write(w, x);
  return cert_sort_of(w->c, x) == 'i' ? cert_named("(to_real %s)", n.s) : n;
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
  for (; e > 0; e -= room)
    fputc(' ', f), write_whole((unsigned __int128)1 << (e < room ? e : room), whole, f);
}

static void write_power(int32_t e, FILE *f) {
  for (; e > 0; e -= 60) fprintf(f, " %lld.0", 1LL << (e < 60 ? e : 60));
}

/* A number that 128 bits do not hold. It is no integer's coefficient: those are int64. */
static void write_large(cert_writer *w, uint32_t q, bool whole, FILE *f) {
  const int32_t e = pv_q_exponent(&w->c->q, q);
  char *n, *d;
  if (whole || e > 1100 || e < -1100) return cert_give_up(w, "a number too large to write");
  if (!pv_q_decimals(&w->c->q, q, &n, &d)) {
    w->c->no_memory = true;
    return;
  }
  const bool negative = pv_q_sign(&w->c->q, q) < 0;
  fputs(negative ? "(- (/ (* " : "(/ (* ", f);
  fprintf(f, "%s.0 1.0", n);
  write_power(e, f);
  fprintf(f, ") (* %s.0 1.0", d);
  write_power(-e, f);
  fputs(negative ? ")))" : "))", f);
  free(n);
  free(d);
}

static void write_rational(cert_writer *w, uint32_t q, bool whole, FILE *f) {
  pv_q v;
  if (!pv_q_small(&w->c->q, q, &v)) return write_large(w, q, whole, f);
  const bool negative = v.n < 0;
  const unsigned __int128 n = (unsigned __int128)(negative ? -v.n : v.n),
                          d = (unsigned __int128)v.d;
  if (v.e > 1100 || v.e < -1100) return cert_give_up(w, "a number too large to write");
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

static cert_name define(cert_writer *w, sx x, const char *text) {
  static const char *const sort[] = {['b'] = "Bool", ['i'] = "Int", ['r'] = "Real"};
  if (x < w->cap_memo && *w->memo[x])
    return cert_named("%s", w->memo[x]); /* an axiom of a part of it has named it */
  cert_line(w, "(define-fun t%u () %s %s)\n", (unsigned)x, sort[(int)cert_sort_of(w->c, x)], text);
  const cert_name r = cert_named("t%u", (unsigned)x);
  if (x < w->cap_memo)
    snprintf(w->memo[x], CERT_NAME_BYTES, "%s", r.s); /* its axioms may speak of it again */
  return r;
}

/* A definition of which the text is a real number, though its value may be known to be whole. */
static cert_name define_real(cert_writer *w, sx x, const char *text) {
  char floor[300];
  if (cert_sort_of(w->c, x) != 'i' || (x < w->cap_memo && *w->memo[x])) return define(w, x, text);
  snprintf(floor, sizeof floor, "(to_int %s)", text);
  const cert_name r = define(w, x, floor);
  cert_line(w, "(assert (= (to_real %s) %s)) ; it is whole\n", r.s, text);
  return r;
}

/* ---- what a symbol stands for ---- */

static cert_name symbol(cert_writer *w, sx x) {
  sc *c = w->c;
  const uint32_t at = sc_word(c, x, 0);
  const sx_sym s = c->sym[at];
  const bool index = s.role == 'x', whole = s.flags & S_INT;
  const cert_name n = index ? cert_named("i%u", (unsigned)at)
                            : cert_plain_name(s.role == 's' ? 'n' : s.role, s.name, at);
  if (at >= 1 << 12) cert_give_up(w, "too many indices");
  if (w->failed || w->sym[at]) return n;
  w->sym[at] = true;
  const cert_name high = s.high ? cert_write(w, s.high) : cert_named("0");
  cert_line(w, "(declare-const %s %s)\n", n.s, whole ? "Int" : "Real");
  bool witness = false;
  for (size_t i = 0; i < w->n_witnesses; i++) witness |= w->witness[i] == x;
  if (witness) return n; /* its range stands where it is used */
  const bool low = s.has_low;
  if (low) cert_line(w, "(assert (<= %lld %s))\n", (long long)s.low, n.s);
  if (s.high) cert_line(w, "(assert (< %s %s))\n", n.s, high.s);
  if (index || low) return n;
  if (s.flags & S_POS) cert_line(w, "(assert (> %s 0))\n", n.s);
  else if (s.flags & S_NONNEG) cert_line(w, "(assert (>= %s 0))\n", n.s);
  else if (s.flags & S_NONZERO) cert_line(w, "(assert (distinct %s 0))\n", n.s);
  return n;
}

/* The witnesses in x are within their ranges: "(and ...)". */
cert_name cert_within(cert_writer *w, sx x) {
  cert_name r = cert_named("true");
  for (size_t i = 0; i < w->n_witnesses; i++) {
    if (!sx_occurs(w->c, w->witness[i], x)) continue;
    const uint32_t at = sc_word(w->c, w->witness[i], 0);
    const cert_name k = cert_write(w, w->witness[i]), high = cert_write(w, w->c->sym[at].high);
    cert_line(w, "(define-fun in%u_%zu () Bool (and %s (<= 0 %s) (< %s %s)))\n", (unsigned)at,
              w->n_lines, r.s, k.s, k.s, high.s);
    r = cert_named("in%u_%zu", (unsigned)at, w->n_lines - 1);
  }
  return r;
}

sx cert_witness(cert_writer *w, sx high) {
  const sx k = w->n_witnesses < CERT_MAX_PAIRS ? sc_index(w->c, high) : 0;
  if (!k || k == w->c->zero) return 0;
  return w->witness[w->n_witnesses++] = k;
}

/* ---- real functions, with their axioms at the arguments that occur ---- */

/* Not by their own names: some solvers know a function of that name. */
static const char *const fn[] = {"f_exp",  "f_log",   "f_erf",      "f_sin",  "f_cos",   "f_tan",
                                 "f_atan", "f_abs",   "f_floor",    "f_ceil", "f_round", "f_trunc",
                                 "f_pow",  "f_atan2", "f_safe_inv", "f_f32",  "f_f16",   "f_bf16",
                                 "f_f8",   "f_int",   "f_asin",     "f_and"};

void cert_spoken_of(const cert_writer *w, char *text, size_t cap) {
  size_t n = (size_t)snprintf(text, cap, "products%s", w->n_sums ? ", sums" : "");
  for (size_t f = 0; f < sizeof fn / sizeof *fn; f++)
    if ((w->fn[f] || w->two[f]) && n + 16 < cap)
      n += (size_t)snprintf(text + n, cap - n, ", %s", fn[f] + 2);
}

cert_name cert_product(cert_writer *w, cert_name a, cert_name b) {
  const size_t at = w->n_lines;
  cert_line(w, "(define-fun p%zu () Real (mul %s %s))\n", at, a.s, b.s);
  cert_line(w, "(assert (= p%zu (mul %s %s)))\n", at, b.s, a.s);
  cert_line(w, "(assert (=> (= %s 0.0) (= p%zu 0.0)))\n(assert (=> (= %s 0.0) (= p%zu 0.0)))\n",
            a.s, at, b.s, at);
  cert_line(w, "(assert (=> (= %s 1.0) (= p%zu %s)))\n(assert (=> (= %s 1.0) (= p%zu %s)))\n", a.s,
            at, b.s, b.s, at, a.s);
  cert_line(
      w, "(assert (=> (> %s 0.0) (and (= (> %s 0.0) (> p%zu 0.0)) (= (< %s 0.0) (< p%zu 0.0)))))\n",
      a.s, b.s, at, b.s, at);
  cert_line(
      w, "(assert (=> (> %s 0.0) (and (= (> %s 0.0) (> p%zu 0.0)) (= (< %s 0.0) (< p%zu 0.0)))))\n",
      b.s, a.s, at, a.s, at);
  return cert_named("p%zu", at);
}

static void declare_fn(cert_writer *w, const char *name, int n, const char *to) {
  cert_line(w, "(declare-fun %s (%s) %s)\n", name, n == 1 ? "Real" : "Real Real", to);
}

static cert_name inverse(cert_writer *w, cert_name a, sx whose);

/* a of e^-a; 0: it is none. */
static sx negated_exponent(sc *c, sx x) {
  sx a = cert_is_fn(c, x, F_EXP) ? sc_word(c, x, 1) : 0;
  uint32_t q, all = PV_MINUS_Q;
  while (a && cert_is_fn(c, a, F_MUL) && sx_is_q(c, sc_word(c, a, 1), &q))
    all = pv_q_mul(&c->q, all, q), a = sc_word(c, a, 2);
  if (!a || pv_q_sign(&c->q, all) <= 0) return 0;
  return all == PV_ONE_Q ? a : sc_node(c, X_FN, (uint32_t[3]){F_MUL, sx_q(c, all), a}, 3);
}

/* r = 1/(p + q), p + q being written as a. */
static void inverse_of_sum(cert_writer *w, cert_name a, cert_name r, sx whose) {
  sc *c = w->c;
  if (!cert_is_fn(c, whose, F_ADD)) return;
  const sx p = sc_word(c, whose, 1), q = sc_word(c, whose, 2);
  const cert_name m = cert_product(w, cert_real(w, p), r), n = cert_product(w, cert_real(w, q), r);
  cert_line(
      w, "(assert (=> (distinct %s 0.0) (= (+ %s %s) 1.0))) ; (p + q) / (p + q), multiplied out\n",
      a.s, m.s, n.s);
  const sx minus = p == c->one ? negated_exponent(c, q) : q == c->one ? negated_exponent(c, p) : 0;
  if (!minus) return;
  const sx up = sc_node(c, X_FN, (uint32_t[2]){F_EXP, minus}, 2),
           other = sc_node(c, X_FN, (uint32_t[3]){F_ADD, c->one, up}, 3);
  const cert_name e = cert_real(w, up), o = inverse(w, cert_real(w, other), other),
                  t = cert_product(w, e, o);
  cert_line(w, "(assert (= %s %s)) ; 1 / (1 + e^-a) = e^a / (1 + e^a)\n", r.s, t.s);
}

static cert_name inverse(cert_writer *w, cert_name a, sx whose) {
  if (!w->fn[30]) declare_fn(w, "inv", 1, "Real"), w->fn[30] = true;
  const cert_name in = cert_within(w, whose);
  const size_t at = w->n_lines;
  cert_line(w, "(define-fun v%zu () Real (inv %s))\n", at, a.s);
  const cert_name r = cert_named("v%zu", at);
  cert_line(w, "(assert (=> %s (distinct %s 0.0))) ; it is divided by\n", in.s, a.s);
  const cert_name p = cert_product(w, a, r);
  cert_line(w, "(assert (=> (distinct %s 0.0) (= %s 1.0)))\n", a.s, p.s);
  cert_line(w, "(assert (=> (> %s 0.0) (> %s 0.0)))\n(assert (=> (< %s 0.0) (< %s 0.0)))\n", a.s,
            r.s, a.s, r.s);
  inverse_of_sum(w, a, r, whose);
  if (sc_op(w->c, whose) == X_FN && sc_word(w->c, whose, 0) == F_EXP) {
    const sx minus =
        sc_node(w->c, X_FN, (uint32_t[3]){F_MUL, w->c->minus_one, sc_word(w->c, whose, 1)}, 3);
    cert_line(w, "(assert (= %s %s)) ; 1 / e^a = e^-a\n", r.s,
              cert_real(w, sc_node(w->c, X_FN, (uint32_t[2]){F_EXP, minus}, 2)).s);
  }
  return r;
}

static cert_name root(cert_writer *w, cert_name a, sx whose) {
  if (!w->fn[31]) declare_fn(w, "f_sqrt", 1, "Real"), w->fn[31] = true;
  const size_t at = w->n_lines;
  cert_line(w, "(define-fun r%zu () Real (f_sqrt %s))\n", at, a.s);
  const cert_name r = cert_named("r%zu", at), p = cert_product(w, r, r), in = cert_within(w, whose);
  cert_line(w, "(assert (=> %s (>= %s 0.0))) ; its root is taken\n", in.s, a.s);
  cert_line(w, "(assert (=> (>= %s 0.0) (and (>= %s 0.0) (= %s %s))))\n", a.s, r.s, p.s, a.s);
  sc *c = w->c;
  if (cert_is_fn(c, whose, F_POWER) && sc_word(c, whose, 2) == sx_int(c, 2)) {
    const cert_name b = cert_real(w, sc_word(c, whose, 1));
    cert_line(w, "(assert (= %s (ite (>= %s 0.0) %s (- %s)))) ; the root of a square\n", r.s, b.s,
              b.s, b.s);
  }
  if (cert_is_fn(c, whose, F_MUL)) {
    const sx s = sc_word(c, whose, 1), t = sc_word(c, whose, 2);
    const cert_name m = cert_real(w, s), n = cert_real(w, t), u = cert_named("(f_sqrt %s)", m.s),
                    v = cert_named("(f_sqrt %s)", n.s), both = cert_product(w, u, v);
    cert_line(w, "(assert (=> (and (>= %s 0.0) (>= %s 0.0)) (= %s %s))) ; the root of a product\n",
              m.s, n.s, r.s, both.s);
  }
  return r;
}

/* x^q for a q that is a multiple of 1/2. */
static cert_name power(cert_writer *w, sx x, uint32_t q) {
  int64_t k;
  cert_name b = cert_real(w, x), r;
  const bool whole = pv_q_is_int(&w->c->q, q, &k);
  if (!whole && !pv_q_is_int(&w->c->q, pv_q_mul(&w->c->q, q, pv_q_int(&w->c->q, 2)), &k))
    cert_give_up(w, "a power that is no multiple of 1/2");
  if (w->failed || k > 8 || k < -8 || k == 0) {
    cert_give_up(w, "a power too high");
    return b;
  }
  if (!whole) b = root(w, b, x);
  r = b;
  for (int64_t i = 1; i < (k < 0 ? -k : k); i++) r = cert_product(w, r, b);
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

/* x = q times what is returned. */
static sx without_numbers(sc *c, sx x, uint32_t *q) {
  uint32_t one;
  *q = PV_ONE_Q;
  for (int i = 0; i < 16 && cert_is_fn(c, x, F_MUL); i++) {
    const sx a = sc_word(c, x, 1), b = sc_word(c, x, 2);
    if (sx_is_q(c, a, &one)) x = b;
    else if (sx_is_q(c, b, &one)) x = a;
    else break;
    *q = pv_q_mul(&c->q, *q, one);
  }
  return x;
}

/* An odd or even function of what begins with a negative number, of its opposite; `*sign`: what
 * that changes. 0: it is none. */
static sx turned_round(sc *c, sx x, bool *sign) {
  uint32_t q;
  if (!cert_is_fn(c, x, F_SIN) && !cert_is_fn(c, x, F_COS) && !cert_is_fn(c, x, F_ERF)) return 0;
  const sx rest = without_numbers(c, sc_word(c, x, 1), &q);
  if (pv_q_sign(&c->q, q) >= 0) return 0;
  q = pv_q_mul(&c->q, q, PV_MINUS_Q);
  *sign = !cert_is_fn(c, x, F_COS);
  return sc_node(c, X_FN,
                 (uint32_t[2]){sc_word(c, x, 0),
                               q == PV_ONE_Q
                                   ? rest
                                   : sc_node(c, X_FN, (uint32_t[3]){F_MUL, sx_q(c, q), rest}, 3)},
                 2);
}

/* e^a as powers of the exponentials of what a is made of. */
static void collect(cert_writer *w, chain *k, sx x, bool inverse);
static bool collect_exp(cert_writer *w, chain *k, sx a, bool inverse) {
  sc *c = w->c;
  uint32_t q;
  int64_t e;
  if (cert_is_fn(c, a, F_ADD)) {
    collect(w, k, sc_node(c, X_FN, (uint32_t[2]){F_EXP, sc_word(c, a, 1)}, 2), inverse);
    collect(w, k, sc_node(c, X_FN, (uint32_t[2]){F_EXP, sc_word(c, a, 2)}, 2), inverse);
    return true;
  }
  const sx rest = without_numbers(c, a, &q);
  if (rest == a || !pv_q_is_int(&c->q, q, &e) || e == 0 || e > 4 || e < -4) return false;
  const sx one = sc_node(c, X_FN, (uint32_t[2]){F_EXP, rest}, 2);
  for (int64_t i = e < 0 ? -e : e; i > 0; i--) collect(w, k, one, inverse != (e < 0));
  return true;
}

/* A number whose root is written somewhere is the square of it. */
static sx root_of(cert_writer *w, sx x) {
  sc *c = w->c;
  const sx half = sx_q(c, pv_q_pow(&c->q, pv_q_int(&c->q, 2), -1)),
           r = sc_node(c, X_FN, (uint32_t[3]){F_POWER, x, half}, 3);
  return r < w->cap_memo && *w->memo[r] ? r : 0;
}

/* A product of sizes and of their inverses. */
static bool whole_powers(const sc *c, sx x) {
  if (sc_op(c, x) != X_MUL) return false;
  for (size_t i = 0, n = sx_factors(c, x); i < n; i++) {
    sx base;
    uint32_t power;
    int64_t e;
    sx_factor(c, x, i, &base, &power);
    if (!sc_has(c, base, S_INT | S_POS) || !pv_q_is_int(&c->q, power, &e) || e > 4 || e < -4)
      return false;
  }
  return true;
}

static void collect(cert_writer *w, chain *k, sx x, bool inverse) {
  sc *c = w->c;
  uint32_t q;
  int64_t e;
  sx r;
  bool sign = false;
  if (sx_is_q(c, x, &q)) {
    if (q == PV_ZERO_Q) k->open = true;
    else k->coef = pv_q_mul(&c->q, k->coef, inverse ? pv_q_pow(&c->q, q, -1) : q);
  } else if (sc_op(c, x) == X_FN && sc_word(c, x, 0) == F_MUL) {
    collect(w, k, sc_word(c, x, 1), inverse);
    collect(w, k, sc_word(c, x, 2), inverse);
  } else if (sc_op(c, x) == X_FN && sc_word(c, x, 0) == F_POWER &&
             sx_is_q(c, sc_word(c, x, 2), &q) && pv_q_is_int(&c->q, q, &e) && e >= -8 && e <= 8) {
    for (int64_t i = e < 0 ? -e : e; i > 0; i--)
      collect(w, k, sc_word(c, x, 1), inverse != (e < 0));
  } else if ((r = turned_round(c, x, &sign)) != 0) {
    if (sign) k->coef = pv_q_mul(&c->q, k->coef, PV_MINUS_Q);
    collect(w, k, r, inverse);
  } else if (cert_is_fn(c, x, F_EXP) && collect_exp(w, k, sc_word(c, x, 1), inverse)) {
    return;
  } else if (cert_is_fn(c, x, F_LOG) && cert_is_fn(c, sc_word(c, x, 1), F_EXP)) {
    collect(w, k, sc_word(c, sc_word(c, x, 1), 1), inverse);
  } else if (whole_powers(c, x)) {
    for (size_t i = 0, n = sx_factors(c, x); i < n; i++) {
      sx base;
      uint32_t power;
      sx_factor(c, x, i, &base, &power);
      if (!pv_q_is_int(&c->q, power, &e)) k->open = true;
      else
        for (int64_t m = e < 0 ? -e : e; m > 0; m--) collect(w, k, base, inverse != (e < 0));
    }
  } else if ((r = cert_factored(c, x)) != 0 && (!inverse || !cert_is_fn(c, r, F_ADD))) {
    collect(w, k, r, inverse);
  } else if ((r = root_of(w, x)) != 0) {
    collect(w, k, r, inverse);
    collect(w, k, r, inverse);
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

static cert_name coefficient(cert_writer *w, uint32_t q, cert_name r) {
  if (q == PV_ONE_Q) return r;
  const cert_name k = cert_real(w, sx_q(w->c, q));
  const size_t at = w->n_lines;
  cert_line(w, "(define-fun k%zu () Real (* %s %s))\n", at, k.s, r.s);
  return cert_named("k%zu", at);
}

/* Whether something in x is divided by. */
static bool has_inverse(const sc *c, sx x, int depth) {
  uint32_t q;
  if (depth > 12 || sc_op(c, x) != X_FN) return false;
  const uint32_t f = sc_word(c, x, 0);
  if (f == F_POWER) return sx_is_q(c, sc_word(c, x, 2), &q) && pv_q_sign(&c->q, q) < 0;
  return (f == F_ADD || f == F_MUL) && (has_inverse(c, sc_word(c, x, 1), depth + 1) ||
                                        has_inverse(c, sc_word(c, x, 2), depth + 1));
}

/* A factor that is a sum, or the sine or cosine of one, as the sum: those first in which something
 * is divided, so that it cancels. */
static bool a_sum(cert_writer *w, const chain *k, size_t *at, sx *sum) {
  sc *c = w->c;
  for (int quotients = 1; quotients >= 0; quotients--)
    for (size_t i = 0; i < k->n; i++) {
      const sx x = k->f[i].x, s = k->f[i].inverse           ? 0
                                  : cert_is_fn(c, x, F_ADD) ? x
                                                            : cert_turned(c, x);
      if (s && (quotients == 0 || has_inverse(c, s, 0))) return *at = i, *sum = s, true;
    }
  return false;
}

/* The square of a cosine among the factors. */
static bool a_square(const sc *c, const chain *k, size_t *first, size_t *second) {
  for (size_t i = 0; i < k->n; i++)
    for (size_t j = i + 1; j < k->n && cert_is_fn(c, k->f[i].x, F_COS) && !k->f[i].inverse; j++)
      if (k->f[j].x == k->f[i].x && !k->f[j].inverse) return *first = i, *second = j, true;
  return false;
}

/* In one order, sums among the factors multiplied out, of cosines no square; `left`: how many
 * products that may take. */
static cert_name in_order(cert_writer *w, chain k, int *left) {
  sc *c = w->c;
  size_t i, j;
  sx x;
  if (!k.open && *left > 0 && !w->failed && a_sum(w, &k, &i, &x)) {
    chain a = k, b = k;
    (*left)--;
    a.f[i] = a.f[--a.n];
    b = a;
    collect(w, &a, sc_word(c, x, 1), false);
    collect(w, &b, sc_word(c, x, 2), false);
    if (!a.open && !b.open) {
      const cert_name m = in_order(w, a, left), n = in_order(w, b, left);
      const size_t at = w->n_lines;
      cert_line(w, "(define-fun a%zu () Real (+ %s %s))\n", at, m.s, n.s);
      return cert_named("a%zu", at);
    }
  }
  if (!k.open && *left > 0 && !w->failed && a_square(c, &k, &i, &j)) {
    chain a = k;
    (*left)--;
    const sx sine = sc_node(c, X_FN, (uint32_t[2]){F_SIN, sc_word(c, k.f[i].x, 1)}, 2);
    a.f[j] = a.f[--a.n];
    a.f[i] = a.f[--a.n];
    chain b = a;
    b.f[b.n++] = (factor){sine, false};
    b.f[b.n++] = (factor){sine, false};
    const cert_name m = in_order(w, a, left), n = in_order(w, b, left);
    const size_t at = w->n_lines;
    cert_line(w, "(define-fun a%zu () Real (- %s %s)) ; cos^2 = 1 - sin^2\n", at, m.s, n.s);
    return cert_named("a%zu", at);
  }
  qsort(k.f, k.n, sizeof *k.f, by_factor);
  cert_name r = cert_named("1.0");
  for (size_t at = 0; at < k.n && !w->failed; at++) {
    const cert_name f = cert_real(w, k.f[at].x), g = k.f[at].inverse ? inverse(w, f, k.f[at].x) : f;
    r = at ? cert_product(w, r, g) : g;
  }
  return coefficient(w, k.coef, r);
}

/* What x and y divide by, each once for its highest power. */
enum { MAX_DIVISORS = 5, MAX_CLEARED = 300 };
typedef struct divisors {
  sx base[MAX_DIVISORS];
  int64_t power[MAX_DIVISORS];
  size_t n;
  bool too_many;
} divisors;

/* d times e^k: powers are added; or (`most`) what both divide. */
static void join(divisors *d, const divisors *e, int64_t k, bool most) {
  for (size_t j = 0; j < e->n; j++) {
    size_t i = 0;
    while (i < d->n && d->base[i] != e->base[j]) i++;
    if (i == MAX_DIVISORS) {
      d->too_many = true;
      return;
    }
    if (i == d->n) d->base[d->n++] = e->base[j], d->power[i] = 0;
    if (!most) d->power[i] += k * e->power[j];
    else if (e->power[j] > d->power[i]) d->power[i] = e->power[j];
    d->too_many |= d->power[i] > 6;
  }
  d->too_many |= e->too_many;
}

static divisors divisors_of(const sc *c, sx x, int depth) {
  divisors d = {.n = 0};
  uint32_t q;
  int64_t k;
  if (depth > 40 || sc_op(c, x) != X_FN) return d;
  const uint32_t f = sc_word(c, x, 0);
  if (f == F_ADD || f == F_MUL)
    for (uint32_t i = 1; i <= 2; i++) {
      const divisors e = divisors_of(c, sc_word(c, x, i), depth + 1);
      join(&d, &e, 1, f == F_ADD);
    }
  if (f != F_POWER || !sx_is_q(c, sc_word(c, x, 2), &q) || !pv_q_is_int(&c->q, q, &k)) return d;
  const divisors e = k > 0 ? divisors_of(c, sc_word(c, x, 1), depth + 1)
                           : (divisors){.n = 1, .base = {sc_word(c, x, 1)}, .power = {1}};
  join(&d, &e, k > 0 ? k : -k, false);
  return d;
}

/* Both sides over one denominator: multiplied by what they divide by they are sums of products, of
 * which z3 sees whether they are equal. */
void cert_clear(cert_writer *w, sx x, sx y, cert_name a, cert_name b) {
  sc *c = w->c;
  divisors d = divisors_of(c, x, 0);
  const divisors e = divisors_of(c, y, 0);
  chain k[2] = {{.coef = PV_ONE_Q}, {.coef = PV_ONE_Q}};
  join(&d, &e, 1, true);
  if (d.too_many || w->failed) return;
  cert_name all = cert_named("1.0"), side[2];
  for (size_t i = 0; i < d.n; i++)
    for (int64_t p = 0; p < d.power[i]; p++) {
      const cert_name one = cert_real(w, d.base[i]), before = all;
      all = i || p ? cert_product(w, all, one) : one;
      if (i || p)
        cert_line(w,
                  "(assert (=> (and (distinct %s 0.0) (distinct %s 0.0)) (distinct %s 0.0))) ; no "
                  "divisors of 0\n",
                  before.s, one.s, all.s);
    }
  for (int s = 0; s < 2; s++) {
    for (size_t i = 0; i < d.n; i++)
      for (int64_t p = 0; p < d.power[i]; p++) collect(w, &k[s], d.base[i], false);
    const cert_name whole = d.n ? cert_product(w, all, s ? b : a) : s ? b : a;
    collect(w, &k[s], s ? y : x, false);
    if (k[s].open) return;
    int left = MAX_CLEARED;
    side[s] = in_order(w, k[s], &left);
    if (left <= 0) return;
    cert_line(w, "(assert (= %s %s)) ; multiplied out over one denominator\n", whole.s, side[s].s);
    if (s == 0) continue;
    const cert_name first = d.n ? cert_named("(mul %s %s)", all.s, a.s) : a;
    cert_line(
        w, "(assert (=> (and (distinct %s 0.0) (= %s %s)) (= %s %s))) ; a factor that is not 0\n",
        all.s, first.s, whole.s, a.s, b.s);
  }
}

/* x = a^q, and what it is multiplied out. */
static cert_name ordered_power(cert_writer *w, sx x, uint32_t q) {
  const cert_name p = power(w, sc_word(w->c, x, 1), q);
  chain k = {.coef = PV_ONE_Q};
  if (w->failed || !pv_q_is_int(&w->c->q, q, &(int64_t){0})) return p;
  if (x < w->cap_memo) snprintf(w->memo[x], CERT_NAME_BYTES, "%s", p.s);
  collect(w, &k, x, false);
  const cert_name o = k.open ? p : in_order(w, k, &(int){16});
  if (strcmp(o.s, p.s) != 0)
    cert_line(w, "(assert (= %s %s)) ; multiplied out, factors in one order\n", p.s, o.s);
  return p;
}

/* |a|, a being written as n. */
static cert_name absolute(cert_writer *w, sx x, sx a, cert_name n) {
  sc *c = w->c;
  char text[256];
  snprintf(text, sizeof text, "(ite (>= %s 0.0) %s (- %s))", n.s, n.s, n.s);
  const cert_name r = define_real(w, x, text), real = cert_real(w, x),
                  p = cert_product(w, real, real), o = cert_product(w, n, n);
  cert_line(w, "(assert (= %s %s)) ; |a| |a| = a a\n", p.s, o.s);
  if (cert_is_fn(c, a, F_MUL)) {
    const cert_name s = cert_real(w, sc_node(c, X_FN, (uint32_t[2]){F_ABS, sc_word(c, a, 1)}, 2)),
                    t = cert_real(w, sc_node(c, X_FN, (uint32_t[2]){F_ABS, sc_word(c, a, 2)}, 2));
    const cert_name both = cert_product(w, s, t);
    cert_line(w, "(assert (= %s %s)) ; |a b| = |a| |b|\n", real.s, both.s);
  }
  return r;
}

/* log a, a being written as n, with what is known of it where it is an exponential or a power. */
static cert_name log_of(cert_writer *w, sx a, cert_name n) {
  sc *c = w->c;
  if (cert_is_fn(c, a, F_EXP)) return cert_real(w, sc_word(c, a, 1));
  return cert_is_fn(c, a, F_POWER) ? cert_write(w, sc_node(c, X_FN, (uint32_t[2]){F_LOG, a}, 2))
                                   : cert_named("(f_log %s)", n.s);
}

/* What is known of r = log a. */
static void facts_of_log(cert_writer *w, sx x, sx a, cert_name n, cert_name r) {
  sc *c = w->c;
  uint32_t q;
  const cert_name in = cert_within(w, a),
                  e = cert_write(w, sc_node(c, X_FN, (uint32_t[2]){F_EXP, x}, 2));
  cert_line(w, "(assert (=> %s (> %s 0.0))) ; its logarithm is taken\n", in.s, n.s);
  cert_line(w, "(assert (=> (> %s 0.0) (= %s %s))) ; e^log a = a\n", n.s, e.s, n.s);
  if (sc_op(c, a) == X_FN && sc_word(c, a, 0) == F_EXP)
    cert_line(w, "(assert (= %s %s)) ; log e^a = a\n", r.s, cert_real(w, sc_word(c, a, 1)).s);
  int64_t times = 0;
  if (cert_is_fn(c, a, F_POWER) && sx_is_q(c, sc_word(c, a, 2), &q)) {
    const bool half = !pv_q_is_int(&c->q, q, &times);
    if (half && !pv_q_is_int(&c->q, pv_q_mul(&c->q, q, pv_q_int(&c->q, 2)), &times)) times = 0;
    const cert_name p = cert_real(w, sc_word(c, a, 1)),
                    o = cert_write(w, sc_node(c, X_FN, (uint32_t[2]){F_LOG, sc_word(c, a, 1)}, 2));
    if (times)
      cert_line(w, "(assert (=> (> %s 0.0) (= %s (* (/ %s%lld.0%s %d.0) %s)))) ; log a^k\n", p.s,
                r.s, times < 0 ? "(- " : "", (long long)(times < 0 ? -times : times),
                times < 0 ? ")" : "", half ? 2 : 1, o.s);
  }
  const sx product = cert_is_fn(c, a, F_MUL) ? a : cert_factored(c, a);
  if (product && cert_is_fn(c, product, F_MUL)) {
    const sx s = sc_word(c, product, 1), t = sc_word(c, product, 2);
    if (!sx_is_q(c, s, &q) || pv_q_sign(&c->q, q) > 0) {
      const cert_name p = cert_real(w, s), o = cert_real(w, t), u = log_of(w, s, p),
                      v = log_of(w, t, o);
      cert_line(w, "(assert (=> (and (> %s 0.0) (> %s 0.0)) (= %s (+ %s %s)))) ; log ab\n", p.s,
                o.s, r.s, u.s, v.s);
    }
  }
}

/* What is known of r = e^a where a is a product or a sum. */
static void facts_of_exp(cert_writer *w, sx x, sx a, bool minus, cert_name r) {
  sc *c = w->c;
  uint32_t q;
  if (cert_is_fn(c, a, F_MUL) && !minus) {
    chain k = {.coef = PV_ONE_Q};
    collect(w, &k, x, false);
    if (!k.open && k.n > 1)
      cert_line(w, "(assert (= %s %s)) ; e^(ka) = (e^a)^k\n", r.s, in_order(w, k, &(int){16}).s);
    const sx h = sc_word(c, a, 1), double_of = cert_is_fn(c, a, F_MUL) && sx_is_q(c, h, &q)
                                                   ? sx_scale(c, pv_q_int(&c->q, 2), h)
                                                   : 0;
    if (double_of && double_of == c->one) { /* a half: the other way round */
      const cert_name whole_of = cert_write(
                          w, sc_node(c, X_FN, (uint32_t[2]){F_EXP, sc_word(c, a, 2)}, 2)),
                      p = cert_product(w, r, r);
      cert_line(w, "(assert (= %s %s)) ; (e^(a / 2))^2 = e^a\n", p.s, whole_of.s);
    }
  }
  if (sc_op(c, a) == X_FN && sc_word(c, a, 0) == F_ADD) {
    const sx one = sc_node(c, X_FN, (uint32_t[2]){F_EXP, sc_word(c, a, 1)}, 2),
             two = sc_node(c, X_FN, (uint32_t[2]){F_EXP, sc_word(c, a, 2)}, 2);
    const cert_name p = cert_write(w, one), s = cert_write(w, two), t = cert_product(w, p, s);
    cert_line(w, "(assert (= %s %s)) ; e^(a + b) = e^a e^b\n", r.s, t.s);
  }
}

/* x where `cond` holds or not, as far as it is the first thing that x asks. */
static sx in_case(const sc *c, sx x, sx cond, bool holds) {
  return cert_is_fn(c, x, F_IF) && sc_word(c, x, 1) == cond ? sc_word(c, x, holds ? 2 : 3) : x;
}

/* p = a b where a or b is one thing or another: a product in either case, in which signs and
 * factors can come out. */
static void by_case(cert_writer *w, sx a, sx b, cert_name p) {
  sc *c = w->c;
  const sx first = cert_is_fn(c, a, F_IF)   ? a
                   : cert_is_fn(c, b, F_IF) ? b
                                            : 0,
           g = first ? sc_word(c, first, 1) : 0;
  cert_name r[2];
  if (!g || w->n_lines > CERT_MAX_LINES / 4) return;
  for (int k = 0; k < 2; k++)
    r[k] = cert_real(
        w, sc_node(c, X_FN,
                   (uint32_t[3]){F_MUL, in_case(c, a, g, k == 0), in_case(c, b, g, k == 0)}, 3));
  cert_line(w, "(assert (= %s (ite %s %s %s))) ; by case\n", p.s, cert_write(w, g).s, r[0].s,
            r[1].s);
}

static cert_name call(cert_writer *w, sx x) {
  sc *c = w->c;
  const sx_func f = (sx_func)sc_word(c, x, 0);
  const sx a = sc_word(c, x, 1);
  char text[256];
  uint32_t q;
  if (f == F_ADD || f == F_MUL || f == F_POWER || f == F_POW || f == F_ATAN2 || f == F_AND) {
    const sx b = sc_word(c, x, 2);
    if (f == F_POWER) return sx_is_q(c, b, &q) ? ordered_power(w, x, q) : cert_named("0.0");
    const cert_name m = cert_real(w, a), n = cert_real(w, b);
    chain k = {.coef = PV_ONE_Q};
    if (f == F_MUL) collect(w, &k, x, false);
    cert_name p;
    if (f == F_MUL && sc_op(c, a) != X_CONST && sc_op(c, b) != X_CONST) {
      p = cert_product(w, m, n);
    } else {
      if ((f == F_POW || f == F_ATAN2 || f == F_AND) && !w->two[f])
        declare_fn(w, fn[f], 2, "Real"), w->two[f] = true;
      snprintf(text, sizeof text, "(%s %s %s)",
               f == F_ADD   ? "+"
               : f == F_MUL ? "*"
                            : fn[f],
               m.s, n.s);
      p = define_real(w, x, text);
    }
    if (f == F_MUL) by_case(w, a, b, p);
    if (f != F_MUL || k.open) return p;
    const cert_name o = in_order(w, k, &(int){16});
    if (strcmp(o.s, p.s) != 0)
      cert_line(w, "(assert (= %s %s)) ; multiplied out, factors in one order\n", p.s, o.s);
    return p;
  }
  if (f == F_PLACE) {
    const cert_name o = cert_place(w, x);
    if (x < w->cap_memo) snprintf(w->memo[x], CERT_NAME_BYTES, "%s", o.s);
    return o;
  }
  if (f == F_IF) {
    const cert_name g = cert_write(w, a), m = cert_real(w, sc_word(c, x, 2)),
                    n = cert_real(w, sc_word(c, x, 3));
    snprintf(text, sizeof text, "(ite %s %s %s)", g.s, m.s, n.s);
    return define_real(w, x, text);
  }
  const cert_name n = cert_real(w, a);
  const bool whole = f == F_FLOOR || f == F_CEIL || f == F_ROUND || f == F_TRUNC || f == F_CAST_INT;
  if (f == F_ABS) return absolute(w, x, a, n);
  if (!w->fn[f]) declare_fn(w, fn[f], 1, whole ? "Int" : "Real"), w->fn[f] = true;
  snprintf(text, sizeof text, "(%s %s)", fn[f], n.s);
  const cert_name r = whole ? define(w, x, text) : define_real(w, x, text);
  if (a == c->zero && (f == F_EXP || f == F_SIN || f == F_COS))
    return cert_line(w, "(assert (= %s %s)) ; at 0\n", r.s, f == F_SIN ? "0.0" : "1.0"), r;
  if (f == F_EXP) {
    cert_line(w, "(assert (> %s 0.0))\n", r.s);
    for (size_t i = 0; i < w->n_exponents; i++) {
      const cert_name m = cert_real(w, w->exponent[i]),
                      e = cert_write(w, sc_node(c, X_FN, (uint32_t[2]){F_EXP, w->exponent[i]}, 2));
      cert_line(w, "(assert (and (= (< %s %s) (< %s %s)) (= (= %s %s) (= %s %s)))) ; e^a rises\n",
                n.s, m.s, r.s, e.s, n.s, m.s, r.s, e.s);
    }
    if (w->n_exponents < CERT_MAX_EXPS) w->exponent[w->n_exponents++] = a;
  }
  if (f == F_FLOOR)
    cert_line(w, "(assert (and (<= (to_real %s) %s) (< %s (to_real (+ %s 1)))))\n", r.s, n.s, n.s,
              r.s);
  if (f == F_TRUNC)
    cert_line(w, "(assert (= %s (ite (>= %s 0.0) (to_int %s) (- (to_int (- %s))))))\n", r.s, n.s,
              n.s, n.s);
  const sx minus =
      sc_op(c, a) == X_FN && sc_word(c, a, 0) == F_MUL && sc_word(c, a, 1) == c->minus_one
          ? sc_word(c, a, 2)
          : 0;
  if (minus && (f == F_EXP || f == F_SIN || f == F_TAN || f == F_ERF || f == F_ATAN ||
                f == F_ASIN || f == F_COS)) {
    const cert_name o = cert_write(w, sc_node(c, X_FN, (uint32_t[2]){f, minus}, 2));
    if (f == F_EXP) {
      const cert_name p = cert_product(w, r, o);
      cert_line(w, "(assert (= %s 1.0)) ; e^-a e^a = 1\n", p.s);
    } else {
      cert_line(w, f == F_COS ? "(assert (= %s %s)) ; even\n" : "(assert (= %s (- %s))) ; odd\n",
                r.s, o.s);
    }
  }
  if (f == F_LOG) facts_of_log(w, x, a, n, r);
  if (f == F_SAFE_INV) {
    const cert_name p = cert_product(w, n, r);
    cert_line(w, "(assert (=> (distinct %s 0.0) (= %s 1.0)))\n", n.s, p.s);
    if (!w->fn[30]) declare_fn(w, "inv", 1, "Real"), w->fn[30] = true;
    cert_line(w, "(assert (=> (distinct %s 0.0) (= %s (inv %s)))) ; there it is the inverse\n", n.s,
              r.s, n.s);
  }
  if (f == F_EXP) facts_of_exp(w, x, a, minus != 0, r);
  if ((f == F_SIN || f == F_COS) && !minus) cert_tell_turn(w, f == F_SIN, a, r);
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

static cert_name constant_of_sum(cert_writer *w, sx x) {
  const cert_name n = cert_named("s%u", (unsigned)x);
  char *text = sx_print(w->c, x);
  cert_line(w, "(declare-const %s %s) ; %.900s\n", n.s,
            cert_sort_of(w->c, x) == 'i' ? "Int" : "Real", text ? text : "");
  free(text);
  if (w->n_sums == CERT_MAX_SUMS) cert_give_up(w, "too many sums");
  else w->sum[w->n_sums++] = (cert_sum){.id = x, .side = w->side, .contents = contents(w->c, x, 0)};
  return n;
}

/* ---- expressions ---- */

static cert_name list(cert_writer *w, sx x) {
  sc *c = w->c;
  const sx_node p = *sc_at(c, x);
  const bool whole = cert_sort_of(c, x) == 'i';
  char *text = NULL;
  size_t n_text = 0;
  cert_name part[64];
  if (p.n / 2 > 64) cert_give_up(w, "a polynomial of too many terms");
  if (p.op == X_MUL && !whole) {
    cert_name r = cert_named("1.0");
    for (uint32_t i = 0; i < p.n && !w->failed; i += 2) {
      const cert_name f = power(w, sc_word(c, x, i), sc_word(c, x, i + 1));
      r = i ? cert_product(w, r, f) : f;
    }
    return r;
  }
  for (uint32_t i = 0; i < p.n && !w->failed; i += 2) {
    const sx m = sc_word(c, x, p.op == X_ADD ? i + 1 : i);
    part[i / 2] = whole ? cert_write(w, m) : cert_real(w, m);
  }
  FILE *f = w->failed ? NULL : open_memstream(&text, &n_text);
  if (!f) return cert_named("0");
  fputs(p.op == X_MUL ? "(* 1" : p.n == 2 ? "(+ 0" : "(+", f);
  for (uint32_t i = 0; i < p.n; i += 2) {
    int64_t k = 1;
    if (p.op == X_ADD) {
      const bool one = sc_word(c, x, i) == PV_ONE_Q;
      fputs(one ? " " : " (* ", f);
      if (!one) write_rational(w, sc_word(c, x, i), whole, f);
      fprintf(f, one ? "%s" : " %s)", part[i / 2].s);
    } else {
      if (!pv_q_is_int(&c->q, sc_word(c, x, i + 1), &k)) cert_give_up(w, "a power of a size");
      for (; k > 0; k--) fprintf(f, " %s", part[i / 2].s);
    }
  }
  fputc(')', f);
  fclose(f);
  const cert_name r = define(w, x, text);
  free(text);
  return r;
}

static cert_name leaf(cert_writer *w, sx x) {
  sc *c = w->c;
  const uint32_t var = sc_word(c, x, 0), n = sc_at(c, x)->n - 1;
  const cert_name v = cert_plain_name('v', c->r->var[var].name, var);
  const char kind = c->r->var[var].kind;
  char text[512] = "";
  size_t at = 0;
  if (!w->declared[var]) {
    w->declared[var] = true;
    cert_line(w, "(declare-fun %s (", v.s);
    for (uint32_t i = 0; i < n; i++) cert_line(w, "%sInt", i ? " " : "");
    cert_line(w, ") %s)\n", kind == 'b' ? "Bool" : kind == 'i' ? "Int" : "Real");
  }
  if (n == 0) return define(w, x, v.s);
  at = (size_t)snprintf(text, sizeof text, "(%s", v.s);
  for (uint32_t i = 0; i < n && at < sizeof text - 80; i++) {
    const cert_name k = cert_write(w, sc_word(c, x, i + 1));
    at += (size_t)snprintf(text + at, sizeof text - at, " %s", k.s);
  }
  snprintf(text + at, sizeof text - at, ")");
  return define(w, x, text);
}

static cert_name quotient(cert_writer *w, sx x) {
  const cert_name p = cert_write(w, sc_word(w->c, x, 0)), d = cert_write(w, sc_word(w->c, x, 1)),
                  n = cert_named("t%u", (unsigned)x);
  cert_line(w, "(declare-const %s Int) ; floor(%s / %s)\n", n.s, p.s, d.s);
  cert_line(w, "(assert (and (<= (* %s %s) %s) (< %s (+ (* %s %s) %s))))\n", d.s, n.s, p.s, p.s,
            d.s, n.s, d.s);
  return n;
}

static cert_name compound(cert_writer *w, sx x) {
  sc *c = w->c;
  char text[400];
  const sx a = sc_at(c, x)->n ? sc_word(c, x, 0) : 0;
  cert_name m, n, g;
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
    m = cert_write(w, a);
    snprintf(text, sizeof text, "(%s %s %s)", sc_op(c, x) == X_LT ? "<" : "=", m.s,
             cert_sort_of(c, a) == 'i' ? "0" : "0.0");
    return define(w, x, text);
  case X_IVER:
    g = cert_write(w, a);
    snprintf(text, sizeof text, "(ite %s 1 0)", g.s);
    return define(w, x, text);
  case X_ITE:
    g = cert_write(w, a);
    m = cert_sort_of(c, x) == 'r' ? cert_real(w, sc_word(c, x, 1))
                                  : cert_write(w, sc_word(c, x, 1));
    n = cert_sort_of(c, x) == 'r' ? cert_real(w, sc_word(c, x, 2))
                                  : cert_write(w, sc_word(c, x, 2));
    snprintf(text, sizeof text, "(ite %s %s %s)", g.s, m.s, n.s);
    return define(w, x, text);
  case X_MAX:
    whole = cert_sort_of(c, x) == 'i';
    m = whole ? cert_write(w, a) : cert_real(w, a);
    for (uint32_t i = 1; i < sc_at(c, x)->n; i++) {
      n = whole ? cert_write(w, sc_word(c, x, i)) : cert_real(w, sc_word(c, x, i));
      const size_t at = w->n_lines;
      cert_line(w,
                whole ? "(define-fun m%zu () Int (ite (>= %s %s) %s %s))\n"
                      : "(define-fun m%zu () Real (ite (>= %s %s) %s %s))\n",
                at, m.s, n.s, m.s, n.s);
      m = cert_named("m%zu", at);
    }
    return m;
  default:
    cert_give_up(w, sc_op(c, x) == X_NEGINF ? "minus infinity outside an exponential"
                                            : "an expression that has no text");
    return cert_named("0");
  }
}

cert_name cert_write(cert_writer *w, sx x) {
  sc *c = w->c;
  int64_t k;
  if (w->failed || c->failed)
    return cert_give_up(w, c->reason[0] ? "what the definitions give is too large" : "too large"),
           cert_named("0");
  if (sc_op(c, x) == X_TRUE || sc_op(c, x) == X_FALSE)
    return cert_named(x == c->yes ? "true" : "false");
  if (sc_op(c, x) == X_SYM) return symbol(w, x);
  if (sx_is_int(c, x, &k))
    return k < 0 ? cert_named("(- %lld)", -(long long)k) : cert_named("%lld", (long long)k);
  if (x >= w->cap_memo) {
    const size_t cap = 2 * ((size_t)x + 64);
    char(*more)[CERT_NAME_BYTES] = realloc(w->memo, cap * sizeof *more);
    if (!more) return cert_give_up(w, "out of memory"), cert_named("0");
    memset(more + w->cap_memo, 0, (cap - w->cap_memo) * sizeof *more);
    w->memo = more;
    w->cap_memo = cap;
  }
  if (*w->memo[x]) return cert_named("%s", w->memo[x]);
  cert_name r;
  if (sc_op(c, x) == X_CONST) {
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);
    if (!f) return cert_give_up(w, "out of memory"), cert_named("0");
    write_rational(w, sc_word(c, x, 0), false, f);
    fclose(f);
    r = define(w, x, text);
    free(text);
  } else {
    r = compound(w, x);
  }
  if (x < w->cap_memo) snprintf(w->memo[x], CERT_NAME_BYTES, "%s", r.s);
  return r;
}
