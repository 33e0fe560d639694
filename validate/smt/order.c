/* Places in an order (topk, sort, argmax) in a proof obligation: an unknown number each, with the
 * axiom that the order of a row decides it. Two places of one rank are the same, or the rows put
 * some two elements i and j in different orders: i and j are named. For these two, axioms carry the
 * order of an element's arguments over to the element. */
#include "validate/smt/obligation_int.h"

smt_name smt_place(smt_writer *w, sx x) {
  sc *c = w->c;
  const sx row = sc_word(c, x, 2);
  const smt_name rank = smt_write(w, sc_word(c, x, 1)), n = smt_write(w, sc_word(c, row, 1)),
                 o = smt_named("o%u", (unsigned)x);
  smt_line(w, "(declare-const %s Int) ; where the element of rank %s stands\n", o.s, rank.s);
  smt_line(w, "(assert (=> (and (<= 0 %s) (< %s %s)) (and (<= 0 %s) (< %s %s))))\n", rank.s, rank.s,
           n.s, o.s, o.s, n.s);
  if (w->n_places == SMT_MAX_PLACES) smt_give_up(w, "too many places in an order");
  else w->place[w->n_places++] = x;
  return o;
}

/* Tells that a and b, one expression at two places, are in the order of their arguments. */
void smt_monotone(smt_writer *w, sx a, sx b, int depth) {
  sc *c = w->c;
  if (a == b || depth > 12 || w->failed || sc_op(c, a) != X_FN || sc_op(c, b) != X_FN ||
      sc_word(c, a, 0) != sc_word(c, b, 0))
    return;
  const sx_func f = (sx_func)sc_word(c, a, 0);
  const sx p = sc_word(c, a, 1), q = sc_word(c, b, 1);
  if (f == F_ADD) {
    smt_monotone(w, p, q, depth + 1);
    smt_monotone(w, sc_word(c, a, 2), sc_word(c, b, 2), depth + 1);
    return;
  }
  const smt_name x = smt_real(w, a), y = smt_real(w, b);
  if (f == F_MUL) {
    const bool first = p == q;
    const sx fixed = first ? p : sc_word(c, a, 2), u = first ? sc_word(c, a, 2) : p,
             v = first ? sc_word(c, b, 2) : q;
    if (!first && sc_word(c, a, 2) != sc_word(c, b, 2)) return;
    const smt_name k = smt_real(w, fixed), m = smt_real(w, u), n = smt_real(w, v);
    smt_line(w, "(assert (=> (> %s 0.0) (= (< %s %s) (< %s %s)))) ; a positive factor\n", k.s, m.s,
             n.s, x.s, y.s);
    smt_line(w, "(assert (=> (< %s 0.0) (= (< %s %s) (< %s %s)))) ; a negative factor\n", k.s, n.s,
             m.s, x.s, y.s);
    const sx base = smt_is_fn(c, fixed, F_POWER) ? sc_word(c, fixed, 1) : fixed;
    if (sc_op(c, base) == X_SUM) smt_positive_sum(w, base);
    smt_monotone(w, u, v, depth + 1);
    return;
  }
  const smt_name m = smt_real(w, p), n = smt_real(w, q);
  if (f == F_EXP) {
    smt_line(w, "(assert (= (< %s %s) (< %s %s))) ; e^a rises\n", m.s, n.s, x.s, y.s);
  } else if (f == F_LOG) {
    smt_line(w, "(assert (=> (and (> %s 0.0) (> %s 0.0)) (= (< %s %s) (< %s %s)))) ; log a rises\n",
             m.s, n.s, m.s, n.s, x.s, y.s);
  } else if (f == F_POWER && sc_word(c, a, 2) == sc_word(c, b, 2)) {
    uint32_t e;
    if (!sx_is_q(c, sc_word(c, a, 2), &e)) return;
    const bool up = pv_q_sign(&c->q, e) > 0;
    smt_line(w,
             "(assert (=> (and (> %s 0.0) (> %s 0.0)) (= (< %s %s) (< %s %s)))) ; a power of what "
             "is positive\n",
             m.s, n.s, up ? m.s : n.s, up ? n.s : m.s, x.s, y.s);
  } else {
    return;
  }
  smt_monotone(w, p, q, depth + 1);
}

static void same_order(smt_writer *w, sx a, sx b) {
  sc *c = w->c;
  sx k[8], l[8], at[2], x[2], y[2];
  uint32_t n, m;
  const sx row = sc_word(c, a, 2), other = sc_word(c, b, 2), high = sc_word(c, row, 1);
  if (row == other || !sx_same(c, high, sc_word(c, other, 1))) return;
  const sx body = sx_open(c, row, k, &n), second = sx_open(c, other, l, &m);
  for (int i = 0; i < 2; i++) {
    if (!(at[i] = smt_skolem(w, high))) return;
    x[i] = sx_subst(c, body, &(sx_map){k[0], at[i]}, 1);
    y[i] = sx_subst(c, second, &(sx_map){l[0], at[i]}, 1);
  }
  const smt_name p = smt_write(w, a), q = smt_write(w, b), r = smt_write(w, sc_word(c, a, 1)),
                 s = smt_write(w, sc_word(c, b, 1)), top = smt_write(w, high);
  const smt_name i = smt_write(w, at[0]), j = smt_write(w, at[1]);
  const smt_name x0 = smt_real(w, x[0]), x1 = smt_real(w, x[1]), y0 = smt_real(w, y[0]),
                 y1 = smt_real(w, y[1]);
  smt_line(w,
           "(assert (or (= %s %s) (distinct %s %s) (and (<= 0 %s) (< %s %s) (<= 0 %s) (< %s %s) "
           "(distinct (< %s %s) (< %s %s))))) ; the same, or %s and %s differ in order\n",
           p.s, q.s, r.s, s.s, i.s, i.s, top.s, j.s, j.s, top.s, x0.s, x1.s, y0.s, y1.s, i.s, j.s);
  smt_monotone(w, x[0], x[1], 0);
  smt_monotone(w, y[0], y[1], 0);
}

void smt_tell_orders(smt_writer *w) {
  sc *c = w->c;
  for (size_t i = 0; i < w->n_places; i++)
    for (size_t k = 0; k < i && !w->failed && !c->fault.failed; k++) {
      const sx a = w->place[k], b = w->place[i];
      if (sc_word(c, a, 2) != sc_word(c, b, 2)) {
        same_order(w, a, b);
        continue;
      }
      const smt_name p = smt_write(w, a), q = smt_write(w, b), r = smt_write(w, sc_word(c, a, 1)),
                     s = smt_write(w, sc_word(c, b, 1));
      smt_line(w, "(assert (= (= %s %s) (= %s %s))) ; each rank has a place of its own\n", r.s, s.s,
               p.s, q.s);
    }
}
