/* Proof obligations: axioms of sines and cosines, at the angles that occur. */
#include "validate/smt/obligation_int.h"

static sx fn(sc *c, sx_func f, sx a) { return sc_node(c, X_FN, (uint32_t[2]){f, a}, 2); }
static sx of_two(sc *c, sx_func f, sx a, sx b) {
  return sc_node(c, X_FN, (uint32_t[3]){f, a, b}, 3);
}

/* Of a sum: of its parts; of k t, for a small whole k: of t and (k - 1) t. */
sx smt_turned(sc *c, sx x) {
  const bool sine = smt_is_fn(c, x, F_SIN);
  uint32_t q;
  int64_t k;
  sx b, d;
  if (!sine && !smt_is_fn(c, x, F_COS)) return 0;
  const sx a = sc_word(c, x, 1);
  if (smt_is_fn(c, a, F_ADD)) {
    b = sc_word(c, a, 1), d = sc_word(c, a, 2);
  } else {
    const uint32_t i = smt_is_fn(c, a, F_MUL) ? (sx_is_q(c, sc_word(c, a, 1), &q)   ? 1
                                                 : sx_is_q(c, sc_word(c, a, 2), &q) ? 2
                                                                                    : 0)
                                              : 0;
    if (i == 0 || !pv_q_is_int(&c->q, q, &k) || k < 2 || k > 4) return 0;
    b = sc_word(c, a, 3 - i), d = k == 2 ? b : of_two(c, F_MUL, sx_int(c, k - 1), b);
  }
  const sx p = of_two(c, F_MUL, fn(c, sine ? F_SIN : F_COS, b), fn(c, F_COS, d)),
           r = of_two(c, F_MUL, fn(c, sine ? F_COS : F_SIN, b), fn(c, F_SIN, d));
  return of_two(c, F_ADD, p, sine ? r : of_two(c, F_MUL, c->minus_one, r));
}

/* The sine and cosine of b + d, from those of both. */
static void of_sum(smt_writer *w, smt_name r, bool sine, sx b, sx d) {
  sc *c = w->c;
  const smt_name sb = smt_write(w, fn(c, F_SIN, b)), cb = smt_write(w, fn(c, F_COS, b));
  const smt_name sd = smt_write(w, fn(c, F_SIN, d)), cd = smt_write(w, fn(c, F_COS, d));
  const smt_name p = smt_product(w, sine ? sb : cb, cd), q = smt_product(w, sine ? cb : sb, sd);
  smt_line(w, "(assert (= %s (%s %s %s))) ; of a sum\n", r.s, sine ? "+" : "-", p.s, q.s);
}

/* The angle a = asin u or atan u. */
static void of_arc(smt_writer *w, smt_name r, bool sine, sx a) {
  sc *c = w->c;
  const sx u = sc_word(c, a, 1), square = of_two(c, F_MUL, u, u),
           half = sx_q(c, pv_q_pow(&c->q, pv_q_int(&c->q, 2), -1));
  const smt_name v = smt_real(w, u);
  if (sc_word(c, a, 0) == F_ASIN) {
    const sx rest = of_two(c, F_ADD, c->one, of_two(c, F_MUL, c->minus_one, square));
    smt_line(w, "(assert (= %s %s)) ; of an arc sine\n", r.s,
             sine ? v.s : smt_real(w, of_two(c, F_POWER, rest, half)).s);
    return;
  }
  const sx rest = of_two(c, F_ADD, c->one, square),
           inverse = of_two(c, F_POWER, of_two(c, F_POWER, rest, half), c->minus_one);
  const smt_name i = smt_real(w, inverse), p = smt_product(w, v, i);
  smt_line(w, "(assert (= %s %s)) ; of an arc tangent\n", r.s, sine ? p.s : i.s);
}

/* The angle k t, for a whole k as t + (k - 1) t; for t / 2 the other way round, t as the sum of
 * two. */
static void of_multiple(smt_writer *w, smt_name r, bool sine, uint32_t q, sx t, sx a) {
  sc *c = w->c;
  int64_t k;
  const bool right = smt_is_fn(c, t, F_ATAN) && sc_word(c, t, 1) == c->one; /* half a right angle */
  if (right && q == pv_q_int(&c->q, 2)) {
    smt_line(w, "(assert (= %s %s)) ; of a right angle\n", r.s, sine ? "1.0" : "0.0");
  } else if (pv_q_is_int(&c->q, q, &k) && k > 1 && k <= 4) {
    of_sum(w, r, sine, t, k == 2 ? t : of_two(c, F_MUL, sx_int(c, k - 1), t));
  } else if (q == pv_q_pow(&c->q, pv_q_int(&c->q, 2), -1)) {
    of_sum(w, smt_write(w, fn(c, sine ? F_SIN : F_COS, t)), sine, a, a);
    if (smt_is_fn(c, t, F_ADD)) { /* half a sum is the sum of halves */
      const sx b = of_two(c, F_MUL, sx_q(c, q), sc_word(c, t, 1)),
               d = of_two(c, F_MUL, sx_q(c, q), sc_word(c, t, 2));
      of_sum(w, r, sine, b, d);
    }
  }
}

void smt_tell_turn(smt_writer *w, bool sine, sx a, smt_name r) {
  sc *c = w->c;
  uint32_t q;
  const smt_name other = smt_write(w, fn(c, sine ? F_COS : F_SIN, a));
  const smt_name p = smt_product(w, r, r), o = smt_product(w, other, other);
  smt_line(w, "(assert (= (+ %s %s) 1.0)) ; sin^2 + cos^2\n", p.s, o.s);
  if (smt_is_fn(c, a, F_ADD)) of_sum(w, r, sine, sc_word(c, a, 1), sc_word(c, a, 2));
  else if (smt_is_fn(c, a, F_ASIN) || smt_is_fn(c, a, F_ATAN)) of_arc(w, r, sine, a);
  for (uint32_t i = 1; i <= 2 && smt_is_fn(c, a, F_MUL); i++)
    if (sx_is_q(c, sc_word(c, a, i), &q))
      return of_multiple(w, r, sine, q, sc_word(c, a, 3 - i), a);
}
