/* Powers, roots and inverses of real numbers, with their axioms at the arguments that occur, and
 * the products of exponentials that these combine to. */
#include <stdarg.h>
#include "validate/smt/obligation_int.h"

static smt_name smt_inverse(smt_writer *w, smt_name a, sx whose);

/* ---- real functions, with their axioms at the arguments that occur ---- */

/* Not by their own names: some solvers know a function of that name. */
const char *const smt_fn[] = {[F_EXP] = "f_exp",
                              [F_LOG] = "f_log",
                              [F_ERF] = "f_erf",
                              [F_SIN] = "f_sin",
                              [F_COS] = "f_cos",
                              [F_TAN] = "f_tan",
                              [F_ATAN] = "f_atan",
                              [F_ABS] = "f_abs",
                              [F_FLOOR] = "f_floor",
                              [F_CEIL] = "f_ceil",
                              [F_ROUND] = "f_round",
                              [F_TRUNC] = "f_trunc",
                              [F_POW] = "f_pow",
                              [F_ATAN2] = "f_atan2",
                              [F_SAFE_INV] = "f_safe_inv",
                              [F_CAST_F32] = "f_f32",
                              [F_CAST_F16] = "f_f16",
                              [F_CAST_BF16] = "f_bf16",
                              [F_CAST_F8E4M3FN] = "f_f8e4m3fn",
                              [F_CAST_F8E5M2] = "f_f8e5m2",
                              [F_CAST_INT] = "f_int",
                              [F_ASIN] = "f_asin",
                              [F_AND] = "f_and",
                              [F_WRAP] = "f_wrap",
                              [F_WRAP_I32] = "f_wrap_i32",
                              [F_WRAP_I16] = "f_wrap_i16",
                              [F_WRAP_I8] = "f_wrap_i8",
                              [F_WRAP_U8] = "f_wrap_u8"};

void smt_spoken_of(const smt_writer *w, char *text, size_t cap) {
  size_t n = (size_t)snprintf(text, cap, "products%s", w->n_sums ? ", sums" : "");
  for (size_t f = 0; f < sizeof smt_fn / sizeof *smt_fn; f++)
    if ((w->fn[f] || w->two[f]) && n + 16 < cap)
      n += (size_t)snprintf(text + n, cap - n, ", %s", smt_fn[f] + 2);
}

smt_name smt_product(smt_writer *w, smt_name a, smt_name b) {
  const size_t at = w->n_lines;
  smt_line(w, "(define-fun p%zu () Real (mul %s %s))\n", at, a.s, b.s);
  smt_line(w, "(assert (= p%zu (mul %s %s)))\n", at, b.s, a.s);
  smt_line(w, "(assert (=> (= %s 0.0) (= p%zu 0.0)))\n(assert (=> (= %s 0.0) (= p%zu 0.0)))\n", a.s,
           at, b.s, at);
  smt_line(w, "(assert (=> (= %s 1.0) (= p%zu %s)))\n(assert (=> (= %s 1.0) (= p%zu %s)))\n", a.s,
           at, b.s, b.s, at, a.s);
  smt_line(
      w, "(assert (=> (> %s 0.0) (and (= (> %s 0.0) (> p%zu 0.0)) (= (< %s 0.0) (< p%zu 0.0)))))\n",
      a.s, b.s, at, b.s, at);
  smt_line(
      w, "(assert (=> (> %s 0.0) (and (= (> %s 0.0) (> p%zu 0.0)) (= (< %s 0.0) (< p%zu 0.0)))))\n",
      b.s, a.s, at, a.s, at);
  return smt_named("p%zu", at);
}

void smt_declare_fn(smt_writer *w, const char *name, int n, const char *to) {
  smt_line(w, "(declare-fun %s (%s) %s)\n", name, n == 1 ? "Real" : "Real Real", to);
}

/* a of e^-a; 0: it is none. */
static sx negated_exponent(sc *c, sx x) {
  sx a = smt_is_fn(c, x, F_EXP) ? sc_word(c, x, 1) : 0;
  uint32_t q, all = PV_MINUS_Q;
  while (a && smt_is_fn(c, a, F_MUL) && sx_is_q(c, sc_word(c, a, 1), &q))
    all = pv_q_mul(&c->q, all, q), a = sc_word(c, a, 2);
  if (!a || pv_q_sign(&c->q, all) <= 0) return 0;
  return all == PV_ONE_Q ? a : sc_node(c, X_FN, (uint32_t[3]){F_MUL, sx_q(c, all), a}, 3);
}

/* r = 1/(p + q), p + q being written as a. */
static void inverse_of_sum(smt_writer *w, smt_name a, smt_name r, sx whose) {
  sc *c = w->c;
  if (!smt_is_fn(c, whose, F_ADD)) return;
  const sx p = sc_word(c, whose, 1), q = sc_word(c, whose, 2);
  const smt_name m = smt_product(w, smt_real(w, p), r), n = smt_product(w, smt_real(w, q), r);
  smt_line(
      w, "(assert (=> (distinct %s 0.0) (= (+ %s %s) 1.0))) ; (p + q) / (p + q), multiplied out\n",
      a.s, m.s, n.s);
  const sx minus = p == c->one ? negated_exponent(c, q) : q == c->one ? negated_exponent(c, p) : 0;
  if (!minus) return;
  const sx up = sc_node(c, X_FN, (uint32_t[2]){F_EXP, minus}, 2),
           other = sc_node(c, X_FN, (uint32_t[3]){F_ADD, c->one, up}, 3);
  const smt_name e = smt_real(w, up), o = smt_inverse(w, smt_real(w, other), other),
                 t = smt_product(w, e, o);
  smt_line(w, "(assert (= %s %s)) ; 1 / (1 + e^-a) = e^a / (1 + e^a)\n", r.s, t.s);
}

static smt_name smt_inverse(smt_writer *w, smt_name a, sx whose) {
  if (!w->fn[30]) smt_declare_fn(w, "inv", 1, "Real"), w->fn[30] = true;
  const smt_name in = smt_within(w, whose);
  const size_t at = w->n_lines;
  smt_line(w, "(define-fun v%zu () Real (inv %s))\n", at, a.s);
  const smt_name r = smt_named("v%zu", at);
  smt_line(w, "(assert (=> %s (distinct %s 0.0))) ; it is divided by\n", in.s, a.s);
  const smt_name p = smt_product(w, a, r);
  smt_line(w, "(assert (=> (distinct %s 0.0) (= %s 1.0)))\n", a.s, p.s);
  smt_line(w, "(assert (=> (> %s 0.0) (> %s 0.0)))\n(assert (=> (< %s 0.0) (< %s 0.0)))\n", a.s,
           r.s, a.s, r.s);
  inverse_of_sum(w, a, r, whose);
  if (sc_op(w->c, whose) == X_FN && sc_word(w->c, whose, 0) == F_EXP) {
    const sx minus =
        sc_node(w->c, X_FN, (uint32_t[3]){F_MUL, w->c->minus_one, sc_word(w->c, whose, 1)}, 3);
    smt_line(w, "(assert (= %s %s)) ; 1 / e^a = e^-a\n", r.s,
             smt_real(w, sc_node(w->c, X_FN, (uint32_t[2]){F_EXP, minus}, 2)).s);
  }
  return r;
}

static smt_name root(smt_writer *w, smt_name a, sx whose) {
  if (!w->fn[31]) smt_declare_fn(w, "f_sqrt", 1, "Real"), w->fn[31] = true;
  const size_t at = w->n_lines;
  smt_line(w, "(define-fun r%zu () Real (f_sqrt %s))\n", at, a.s);
  const smt_name r = smt_named("r%zu", at), p = smt_product(w, r, r), in = smt_within(w, whose);
  smt_line(w, "(assert (=> %s (>= %s 0.0))) ; its root is taken\n", in.s, a.s);
  smt_line(w, "(assert (=> (>= %s 0.0) (and (>= %s 0.0) (= %s %s))))\n", a.s, r.s, p.s, a.s);
  sc *c = w->c;
  if (smt_is_fn(c, whose, F_POWER) && sc_word(c, whose, 2) == sx_int(c, 2)) {
    const smt_name b = smt_real(w, sc_word(c, whose, 1));
    smt_line(w, "(assert (= %s (ite (>= %s 0.0) %s (- %s)))) ; the root of a square\n", r.s, b.s,
             b.s, b.s);
  }
  if (smt_is_fn(c, whose, F_MUL)) {
    const sx s = sc_word(c, whose, 1), t = sc_word(c, whose, 2);
    const smt_name m = smt_real(w, s), n = smt_real(w, t), u = smt_named("(f_sqrt %s)", m.s),
                   v = smt_named("(f_sqrt %s)", n.s), both = smt_product(w, u, v);
    smt_line(w, "(assert (=> (and (>= %s 0.0) (>= %s 0.0)) (= %s %s))) ; the root of a product\n",
             m.s, n.s, r.s, both.s);
  }
  return r;
}

/* x^q for a q that is a multiple of 1/2. */
smt_name smt_power(smt_writer *w, sx x, uint32_t q) {
  int64_t k;
  smt_name b = smt_real(w, x), r;
  const bool whole = pv_q_is_int(&w->c->q, q, &k);
  if (!whole && !pv_q_is_int(&w->c->q, pv_q_mul(&w->c->q, q, pv_q_int(&w->c->q, 2)), &k))
    smt_give_up(w, "a power that is no multiple of 1/2");
  if (w->failed || k > 8 || k < -8 || k == 0) {
    smt_give_up(w, "a power too high");
    return b;
  }
  if (!whole) b = root(w, b, x);
  r = b;
  for (int64_t i = 1; i < (k < 0 ? -k : k); i++) r = smt_product(w, r, b);
  return k < 0 ? smt_inverse(w, r, x) : r;
}

/* Returns: x / q, for the number q that is a factor of x. */
static sx without_numbers(sc *c, sx x, uint32_t *q) {
  uint32_t one;
  *q = PV_ONE_Q;
  for (int i = 0; i < 16 && smt_is_fn(c, x, F_MUL); i++) {
    const sx a = sc_word(c, x, 1), b = sc_word(c, x, 2);
    if (sx_is_q(c, a, &one)) x = b;
    else if (sx_is_q(c, b, &one)) x = a;
    else break;
    *q = pv_q_mul(&c->q, *q, one);
  }
  return x;
}

/* An odd or even function of an argument with a negative leading number, as the function of its
 * opposite; `*sign`: the sign that this costs. 0: it is none. */
static sx turned_round(sc *c, sx x, bool *sign) {
  uint32_t q;
  if (!smt_is_fn(c, x, F_SIN) && !smt_is_fn(c, x, F_COS) && !smt_is_fn(c, x, F_ERF)) return 0;
  const sx rest = without_numbers(c, sc_word(c, x, 1), &q);
  if (pv_q_sign(&c->q, q) >= 0) return 0;
  q = pv_q_mul(&c->q, q, PV_MINUS_Q);
  *sign = !smt_is_fn(c, x, F_COS);
  return sc_node(c, X_FN,
                 (uint32_t[2]){sc_word(c, x, 0),
                               q == PV_ONE_Q
                                   ? rest
                                   : sc_node(c, X_FN, (uint32_t[3]){F_MUL, sx_q(c, q), rest}, 3)},
                 2);
}

static bool collect_exp(smt_writer *w, chain *k, sx a, bool inverse) {
  sc *c = w->c;
  uint32_t q;
  int64_t e;
  if (smt_is_fn(c, a, F_ADD)) {
    smt_collect(w, k, sc_node(c, X_FN, (uint32_t[2]){F_EXP, sc_word(c, a, 1)}, 2), inverse);
    smt_collect(w, k, sc_node(c, X_FN, (uint32_t[2]){F_EXP, sc_word(c, a, 2)}, 2), inverse);
    return true;
  }
  const sx rest = without_numbers(c, a, &q);
  if (rest == a || !pv_q_is_int(&c->q, q, &e) || e == 0 || e > 4 || e < -4) return false;
  const sx one = sc_node(c, X_FN, (uint32_t[2]){F_EXP, rest}, 2);
  for (int64_t i = e < 0 ? -e : e; i > 0; i--) smt_collect(w, k, one, inverse != (e < 0));
  return true;
}

/* A number whose root is written somewhere is the square of it. */
static sx root_of(smt_writer *w, sx x) {
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

void smt_collect(smt_writer *w, chain *k, sx x, bool inverse) {
  sc *c = w->c;
  uint32_t q;
  int64_t e;
  sx r;
  bool sign = false;
  if (sx_is_q(c, x, &q)) {
    if (q == PV_ZERO_Q) k->open = true;
    else k->coef = pv_q_mul(&c->q, k->coef, inverse ? pv_q_pow(&c->q, q, -1) : q);
  } else if (sc_op(c, x) == X_FN && sc_word(c, x, 0) == F_MUL) {
    smt_collect(w, k, sc_word(c, x, 1), inverse);
    smt_collect(w, k, sc_word(c, x, 2), inverse);
  } else if (sc_op(c, x) == X_FN && sc_word(c, x, 0) == F_POWER &&
             sx_is_q(c, sc_word(c, x, 2), &q) && pv_q_is_int(&c->q, q, &e) && e >= -8 && e <= 8) {
    for (int64_t i = e < 0 ? -e : e; i > 0; i--)
      smt_collect(w, k, sc_word(c, x, 1), inverse != (e < 0));
  } else if ((r = turned_round(c, x, &sign)) != 0) {
    if (sign) k->coef = pv_q_mul(&c->q, k->coef, PV_MINUS_Q);
    smt_collect(w, k, r, inverse);
  } else if (smt_is_fn(c, x, F_EXP) && collect_exp(w, k, sc_word(c, x, 1), inverse)) {
    return;
  } else if (smt_is_fn(c, x, F_LOG) && smt_is_fn(c, sc_word(c, x, 1), F_EXP)) {
    smt_collect(w, k, sc_word(c, sc_word(c, x, 1), 1), inverse);
  } else if (whole_powers(c, x)) {
    for (size_t i = 0, n = sx_factors(c, x); i < n; i++) {
      sx base;
      uint32_t power;
      sx_factor(c, x, i, &base, &power);
      if (!pv_q_is_int(&c->q, power, &e)) k->open = true;
      else
        for (int64_t m = e < 0 ? -e : e; m > 0; m--) smt_collect(w, k, base, inverse != (e < 0));
    }
  } else if ((r = smt_factored(c, x)) != 0 && (!inverse || !smt_is_fn(c, r, F_ADD))) {
    smt_collect(w, k, r, inverse);
  } else if ((r = root_of(w, x)) != 0) {
    smt_collect(w, k, r, inverse);
    smt_collect(w, k, r, inverse);
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

static smt_name coefficient(smt_writer *w, uint32_t q, smt_name r) {
  if (q == PV_ONE_Q) return r;
  const smt_name k = smt_real(w, sx_q(w->c, q));
  const size_t at = w->n_lines;
  smt_line(w, "(define-fun k%zu () Real (* %s %s))\n", at, k.s, r.s);
  return smt_named("k%zu", at);
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
static bool a_sum(smt_writer *w, const chain *k, size_t *at, sx *sum) {
  sc *c = w->c;
  for (int quotients = 1; quotients >= 0; quotients--)
    for (size_t i = 0; i < k->n; i++) {
      const sx x = k->f[i].x, s = k->f[i].inverse          ? 0
                                  : smt_is_fn(c, x, F_ADD) ? x
                                                           : smt_turned(c, x);
      if (s && (quotients == 0 || has_inverse(c, s, 0))) return *at = i, *sum = s, true;
    }
  return false;
}

/* The square of a cosine among the factors. */
static bool a_square(const sc *c, const chain *k, size_t *first, size_t *second) {
  for (size_t i = 0; i < k->n; i++)
    for (size_t j = i + 1; j < k->n && smt_is_fn(c, k->f[i].x, F_COS) && !k->f[i].inverse; j++)
      if (k->f[j].x == k->f[i].x && !k->f[j].inverse) return *first = i, *second = j, true;
  return false;
}

/* In one order, sums among the factors multiplied out, of cosines no square; `left`: how many
 * products that may take. */
smt_name smt_in_order(smt_writer *w, chain k, int *left) {
  sc *c = w->c;
  size_t i, j;
  sx x;
  if (!k.open && *left > 0 && !w->failed && a_sum(w, &k, &i, &x)) {
    chain a = k, b = k;
    (*left)--;
    a.f[i] = a.f[--a.n];
    b = a;
    smt_collect(w, &a, sc_word(c, x, 1), false);
    smt_collect(w, &b, sc_word(c, x, 2), false);
    if (!a.open && !b.open) {
      const smt_name m = smt_in_order(w, a, left), n = smt_in_order(w, b, left);
      const size_t at = w->n_lines;
      smt_line(w, "(define-fun a%zu () Real (+ %s %s))\n", at, m.s, n.s);
      return smt_named("a%zu", at);
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
    const smt_name m = smt_in_order(w, a, left), n = smt_in_order(w, b, left);
    const size_t at = w->n_lines;
    smt_line(w, "(define-fun a%zu () Real (- %s %s)) ; cos^2 = 1 - sin^2\n", at, m.s, n.s);
    return smt_named("a%zu", at);
  }
  qsort(k.f, k.n, sizeof *k.f, by_factor);
  smt_name r = smt_named("1.0");
  for (size_t at = 0; at < k.n && !w->failed; at++) {
    const smt_name f = smt_real(w, k.f[at].x),
                   g = k.f[at].inverse ? smt_inverse(w, f, k.f[at].x) : f;
    r = at ? smt_product(w, r, g) : g;
  }
  return coefficient(w, k.coef, r);
}

/* Divisors of x and y, each once for its highest power. */
enum { MAX_DIVISORS = 5, MAX_CLEARED = 300 };
typedef struct divisors {
  sx base[MAX_DIVISORS];
  int64_t power[MAX_DIVISORS];
  size_t n;
  bool too_many;
} divisors;

/* d times e^k: powers are added; or (`most`) the least common multiple. */
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

/* Both sides over one denominator: multiplied by their divisors they are sums of products, which z3
 * can compare. */
void smt_clear(smt_writer *w, sx x, sx y, smt_name a, smt_name b) {
  sc *c = w->c;
  divisors d = divisors_of(c, x, 0);
  const divisors e = divisors_of(c, y, 0);
  chain k[2] = {{.coef = PV_ONE_Q}, {.coef = PV_ONE_Q}};
  join(&d, &e, 1, true);
  if (d.too_many || w->failed) return;
  smt_name all = smt_named("1.0"), side[2];
  for (size_t i = 0; i < d.n; i++)
    for (int64_t p = 0; p < d.power[i]; p++) {
      const smt_name one = smt_real(w, d.base[i]), before = all;
      all = i || p ? smt_product(w, all, one) : one;
      if (i || p)
        smt_line(w,
                 "(assert (=> (and (distinct %s 0.0) (distinct %s 0.0)) (distinct %s 0.0))) ; no "
                 "divisors of 0\n",
                 before.s, one.s, all.s);
    }
  for (int s = 0; s < 2; s++) {
    for (size_t i = 0; i < d.n; i++)
      for (int64_t p = 0; p < d.power[i]; p++) smt_collect(w, &k[s], d.base[i], false);
    const smt_name whole = d.n ? smt_product(w, all, s ? b : a) : s ? b : a;
    smt_collect(w, &k[s], s ? y : x, false);
    if (k[s].open) return;
    int left = MAX_CLEARED;
    side[s] = smt_in_order(w, k[s], &left);
    if (left <= 0) return;
    smt_line(w, "(assert (= %s %s)) ; multiplied out over one denominator\n", whole.s, side[s].s);
    if (s == 0) continue;
    const smt_name first = d.n ? smt_named("(mul %s %s)", all.s, a.s) : a;
    smt_line(w,
             "(assert (=> (and (distinct %s 0.0) (= %s %s)) (= %s %s))) ; a factor that is not 0\n",
             all.s, first.s, whole.s, a.s, b.s);
  }
}

/* x = a^q, and its product multiplied out. */
smt_name smt_ordered_power(smt_writer *w, sx x, uint32_t q) {
  const smt_name p = smt_power(w, sc_word(w->c, x, 1), q);
  chain k = {.coef = PV_ONE_Q};
  if (w->failed || !pv_q_is_int(&w->c->q, q, &(int64_t){0})) return p;
  if (x < w->cap_memo) snprintf(w->memo[x], SMT_NAME_BYTES, "%s", p.s);
  smt_collect(w, &k, x, false);
  const smt_name o = k.open ? p : smt_in_order(w, k, &(int){16});
  if (strcmp(o.s, p.s) != 0)
    smt_line(w, "(assert (= %s %s)) ; multiplied out, factors in one order\n", p.s, o.s);
  return p;
}
