/* Conditions as decision diagrams, ordered by id from the outside in, and hypotheses about them. */
#include "validate/expr/expr_int.h"

sx sx_top_guard(const sc *c, sx x) { return sc_op(c, x) == X_ITE ? sc_word(c, x, 0) : 0; }

sx sx_cofactor(sc *c, sx x, sx guard, bool holds) {
  if (sc_op(c, x) != X_ITE || sc_word(c, x, 0) != guard) return x;
  return sc_word(c, x, holds ? 1 : 2);
}

/* Whether `t` counts how often a place is among the first of an order, which is once or not at
 * all. */
static bool counts_once(sc *c, sx t) {
  sx k[SX_MAX_BLOCK], a, rest;
  uint32_t n;
  if (sc_op(c, t) != X_SUM || sc_word(c, t, 0) != 1) return false;
  const sx body = sx_open(c, t, k, &n), is = sc_op(c, body) == X_IVER ? sc_word(c, body, 0) : 0;
  if (!is || sc_op(c, is) != X_EQ) return false;
  const sx p = sc_word(c, is, 0), place = sx_find_place(c, k[0], p);
  return place && sx_linear(c, p, place, &a, &rest) && (a == c->one || a == c->minus_one) &&
         !sx_occurs(c, k[0], rest) && !sx_occurs(c, k[0], sc_word(c, place, 2));
}

/* Whether a condition holds where its number is that one. */
static bool holds_of(const sc *c, sx g, sx number) {
  const int sign = pv_q_sign(&c->q, sc_word(c, number, 0));
  return sc_op(c, g) == X_LT ? sign < 0 : sign == 0;
}

/* What a condition on such a count chooses needs no condition: the count says it. 0: it is on
 * something else, or chooses what is no number. */
static sx by_count(sc *c, sx g, sx x, sx y) {
  sx t = 0, a, b;
  uint32_t q;
  if (sc_op(c, g) != X_LT && sc_op(c, g) != X_EQ) return 0;
  const sx p = sc_word(c, g, 0);
  const size_t n = sx_terms(c, p);
  for (size_t i = 0; i < n && n <= 2 && !t; i++) {
    sx m;
    sx_term(c, p, i, &q, &m);
    if (counts_once(c, m)) t = m;
  }
  if (!t || !sx_linear(c, p, t, &a, &b) || sc_op(c, a) != X_CONST || sc_op(c, b) != X_CONST)
    return 0;
  const bool none = holds_of(c, g, b), once = holds_of(c, g, sx_add(c, a, b));
  if (none == once) return once ? x : y;
  if ((sc_flags(c, x) | sc_flags(c, y)) & (S_BOOL | S_MASKED)) return 0;
  return sx_add(c, none ? x : y, sx_mul(c, t, none ? sx_sub(c, y, x) : sx_sub(c, x, y)));
}

static sx choose(sc *c, sx g, sx x, sx y) {
  if (x == y) return x;
  const sx counted = by_count(c, g, x, y);
  return counted ? counted : sc_node(c, X_ITE, (uint32_t[3]){g, x, y}, 3);
}

sx sx_ite(sc *c, sx cond, sx a, sx b) {
  if (c->fault.failed || !sc_work(c, 1)) return c->zero;
  if (cond == c->yes || a == b) return a;
  if (cond == c->no) return b;
  if (c->reading.plain && !sx_top_guard(c, a) && !sx_top_guard(c, b) && a != c->neginf &&
      b != c->neginf && !((sc_flags(c, a) | sc_flags(c, b)) & S_BOOL) &&
      !(sc_has(c, a, S_INT) && sc_has(c, b, S_INT)))
    return sc_node(c, X_FN, (uint32_t[4]){F_IF, cond, a, b}, 4);
  sx g = sx_top_guard(c, cond);
  if (!g) {
    sc_fail(c, "a condition that is none");
    return c->zero;
  }
  const sx ga = sx_top_guard(c, a), gb = sx_top_guard(c, b);
  if (ga && ga < g) g = ga;
  if (gb && gb < g) g = gb;
  const sx x = sx_ite(c, sx_cofactor(c, cond, g, true), sx_cofactor(c, a, g, true),
                      sx_cofactor(c, b, g, true));
  const sx y = sx_ite(c, sx_cofactor(c, cond, g, false), sx_cofactor(c, a, g, false),
                      sx_cofactor(c, b, g, false));
  return choose(c, g, x, y);
}

sx sx_not(sc *c, sx a) { return sx_ite(c, a, c->no, c->yes); }

sx sx_and(sc *c, sx a, sx b) { return sx_ite(c, a, b, c->no); }

sx sx_or(sc *c, sx a, sx b) { return sx_ite(c, a, c->yes, b); }

/* The result of f at one end may have conditions of its own, so that the diagram is put in order
 * again. */
sx sx_lift(sc *c, sx x, sx (*f)(sc *c, sx x, const void *ctx), const void *ctx) {
  const sx g = sx_top_guard(c, x);
  if (c->fault.failed) return c->zero;
  if (!g) return f(c, x, ctx);
  const sx a = sx_lift(c, sc_word(c, x, 1), f, ctx), b = sx_lift(c, sc_word(c, x, 2), f, ctx);
  return sx_ite(c, sc_node(c, X_ITE, (uint32_t[3]){g, c->yes, c->no}, 3), a, b);
}

sx sx_iver(sc *c, sx guard) { return sc_node(c, X_IVER, &guard, 1); }

bool sc_assume(sc *c, sx guard, bool holds) {
  if (c->here.n_facts + 2 > SC_MAX_FACTS || c->here.n_path >= SC_MAX_GUESSES) {
    sc_fail(c, "too many cases within cases");
    return false;
  }
  c->here.path[c->here.n_path++] = (sc_guess){guard, holds};
  if (sc_op(c, guard) != X_LT && sc_op(c, guard) != X_EQ) return true;
  const sx p = sc_word(c, guard, 0);
  if (!sc_has(c, p, S_INT)) return true;
  sx f = 0; /* what is at least 0 then */
  if (sc_op(c, guard) == X_LT) {
    f = holds ? sx_sub(c, c->minus_one, p) : p;
  } else if (holds) {
    if (sx_ge0(c, sx_sub(c, p, c->one)) || sx_ge0(c, sx_sub(c, c->minus_one, p))) return false;
    c->here.fact[c->here.n_facts++] = p;
    c->here.fact[c->here.n_facts++] = sx_neg(c, p);
  } else if (sx_ge0(c, p)) {
    f = sx_sub(c, p, c->one);
  } else if (sx_ge0(c, sx_neg(c, p))) {
    f = sx_sub(c, c->minus_one, p);
  }
  if (f && sx_ge0(c, sx_sub(c, c->minus_one, f))) return false;
  if (f) c->here.fact[c->here.n_facts++] = f;
  return !c->fault.failed;
}

/* ---- ends that no index reaches ---- */

static sx without(sc *c, sx x, sx none, int depth);

/* One branch of x; `*alive` is false where the facts leave no index that takes it. */
static sx branch(sc *c, sx x, sx g, bool holds, sx none, int depth, bool *alive) {
  const size_t facts = c->here.n_facts, path = c->here.n_path;
  *alive = sc_assume(c, g, holds);
  const sx y = sx_cofactor(c, x, g, holds), r = *alive ? without(c, y, none, depth + 1) : y;
  c->here.n_facts = facts, c->here.n_path = path;
  return r;
}

static sx without(sc *c, sx x, sx none, int depth) {
  const sx g = sx_top_guard(c, x);
  if (!g || depth > 16 || c->fault.failed) return x;
  const sx y = sx_cofactor(c, x, g, true), z = sx_cofactor(c, x, g, false);
  bool first, second;
  const sx u = branch(c, x, g, true, none, depth, &first);
  const sx v = branch(c, x, g, false, none, depth, &second);
  if (!first && y == none) return v;
  if (!second && z == none) return u;
  if (u == y && v == z) return x;
  return u == v ? u : sc_node(c, X_ITE, (uint32_t[3]){g, u, v}, 3);
}

sx sx_reached(sc *c, sx x, sx none) { return without(c, x, none, 0); }
