/* Comparing two elements: by cases over the conditions in them, then as polynomials, then atom by
 * atom, then in Z3. */
#include <math.h>

#include "validate/prove/equal_int.h"

enum { MAX_DEEP = 5, MAX_CHOICES = 2 };
enum { MAX_MODULUS = 16, MAX_RESIDUES = 72 };

/* -p < 0 for p < 0 over the reals; 0 where that is no condition of its own. */
static sx opposite(sc *c, sx g) {
  const sx t = sx_lt(c, c->zero, sc_word(c, g, 0)), h = sx_top_guard(c, t);
  return h && sc_op(c, h) == X_LT && sc_word(c, t, 1) == c->yes && sc_word(c, t, 2) == c->no ? h
                                                                                             : 0;
}

/* The condition under the present hypotheses: yes, no, or still open (0). */
static sx decided(sc *c, sx g) {
  for (size_t i = 0; i < c->here.n_path; i++)
    if (c->here.path[i].cond == g) return c->here.path[i].holds ? c->yes : c->no;
  if (sc_op(c, g) != X_LT && sc_op(c, g) != X_EQ) return 0;
  const sx other = sc_op(c, g) == X_LT ? opposite(c, g) : 0;
  for (size_t i = 0; i < c->here.n_path && other; i++)
    if (c->here.path[i].cond == other && c->here.path[i].holds) return c->no;
  const sx p = sc_word(c, g, 0),
           t = sc_op(c, g) == X_LT ? sx_lt(c, p, c->zero) : sx_eq(c, p, c->zero);
  return t == c->yes || t == c->no ? t : 0;
}

/* i = e for an index symbol that the equation g fixes. */
static bool fixes(sc *c, sx g, sx_map *out) {
  const sx p = sc_word(c, g, 0);
  if (sc_op(c, g) != X_EQ || !sc_has(c, p, S_INT)) return false;
  for (size_t i = 0, n = sx_terms(c, p); i < n; i++) {
    uint32_t q;
    sx m, a, b;
    sx_term(c, p, i, &q, &m);
    if (sc_op(c, m) != X_SYM || c->store.sym[sc_word(c, m, 0)].role != 'x') continue;
    if (!sx_linear(c, p, m, &a, &b) || (a != c->one && a != c->minus_one)) continue;
    *out = (sx_map){m, a == c->one ? sx_neg(c, b) : b};
    return true;
  }
  return false;
}

static bool zero(sc *c, sx d, int deep);

/* p, where g leaves 0 alone for it: neither p < 0 nor -p < 0, or p = 0. 0: it does not. */
static sx vanishing(sc *c, sx g, bool holds) {
  const sx p = sc_op(c, g) == X_LT || sc_op(c, g) == X_EQ ? sc_word(c, g, 0) : 0;
  if (!p || (sc_op(c, g) == X_EQ) != holds) return 0;
  const sx other = sc_op(c, g) == X_LT ? opposite(c, g) : 0;
  bool zero = sc_op(c, g) == X_EQ;
  for (size_t i = 0; i < c->here.n_path && other; i++)
    zero |= c->here.path[i].cond == other && !c->here.path[i].holds;
  if (!zero && sc_has(c, p, S_INT)) zero = sx_ge0(c, p) && sx_ge0(c, sx_neg(c, p));
  return zero ? p : 0;
}

/* What may have one value: an element, an attribute, or a function of some. */
static bool valued(const sc *c, sx m) {
  switch ((sx_op)sc_op(c, m)) {
  case X_SYM: return c->store.sym[sc_word(c, m, 0)].role == 'a';
  case X_LEAF:
  case X_FN:
  case X_SUM:
  case X_TOP:
  case X_MAX: return true;
  default: return false;
  }
}

/* p = 0: the value of a term of p, of an element or attribute if there is one. */
static bool value_of(sc *c, sx p, sx_map *out) {
  for (int round = 0; round < 2; round++)
    for (size_t i = 0, n = p ? sx_terms(c, p) : 0; i < n; i++) {
      uint32_t q;
      sx m, a, b;
      sx_term(c, p, i, &q, &m);
      const bool simple = sc_op(c, m) == X_SYM || sc_op(c, m) == X_LEAF;
      if (!valued(c, m) || simple != (round == 0) || !sx_linear(c, p, m, &a, &b) ||
          sc_op(c, a) != X_CONST || sx_occurs(c, m, b))
        continue;
      if (sc_has(c, p, S_INT) && a != c->one && a != c->minus_one) continue;
      *out = (sx_map){m, sx_neg(c, sx_mul(c, b, sx_inv(c, a)))};
      return true;
    }
  return false;
}

/* An index symbol of few values that the facts leave only one of. */
static bool pinned(sc *c, sx g, sx_map *out) {
  if (sc_op(c, g) != X_LT) return false;
  const sx p = sc_word(c, g, 0);
  for (size_t i = 0, n = sx_terms(c, p); i < n; i++) {
    uint32_t q;
    sx m;
    int64_t high;
    sx_term(c, p, i, &q, &m);
    if (sc_op(c, m) != X_SYM || c->store.sym[sc_word(c, m, 0)].role != 'x' ||
        !sx_is_int(c, c->store.sym[sc_word(c, m, 0)].high, &high) || high > 8)
      continue;
    for (int64_t v = 0; v < high; v++)
      if (sx_same(c, m, sx_int(c, v))) return *out = (sx_map){m, sx_int(c, v)}, true;
  }
  return false;
}

/* An index symbol of which the facts leave one value, where they bound a sum from both sides: the
 * one place of the last part. */
static bool met(sc *c, sx g, bool holds, sx_map *out) {
  if (sc_op(c, g) != X_LT) return false;
  const sx p = sc_word(c, g, 0), d = holds ? sx_add(c, p, c->one) : p;
  if (!sc_has(c, p, S_INT) || !sx_ge0(c, d) || !sx_ge0(c, sx_neg(c, d))) return false;
  for (size_t i = 0, n = sx_terms(c, d); i < n; i++) {
    uint32_t q;
    sx m, a, b;
    sx_term(c, d, i, &q, &m);
    if (sc_op(c, m) != X_SYM || c->store.sym[sc_word(c, m, 0)].role != 'x' ||
        !sx_linear(c, d, m, &a, &b) || (a != c->one && a != c->minus_one) || sx_occurs(c, m, b))
      continue;
    return *out = (sx_map){m, a == c->one ? sx_neg(c, b) : b}, true;
  }
  return false;
}

static bool equal(sc *c, sx a, sx b, int deep);

/* The hypotheses so far, with what is now known of an expression: conditions that come later speak
 * of it so. Returns: false where they contradict each other. */
static bool restate(sc *c, const sx_map *map) {
  for (size_t i = 0, n = c->here.n_path; i < n && c->here.n_path + 1 < SC_MAX_GUESSES; i++) {
    const sc_guess was = c->here.path[i];
    if (!sx_occurs(c, map->from, was.cond)) continue;
    const sx t = sx_subst(c, sx_truth(c, was.cond), map, 1), g = sx_top_guard(c, t);
    if (t == c->yes || t == c->no) {
      if ((t == c->yes) != was.holds) return false;
    } else if (g && t == sx_truth(c, g) && g != was.cond && !sc_assume(c, g, was.holds)) {
      return false;
    }
  }
  return true;
}

static bool same_binder(sc *c, sx u, sx v, int deep) {
  const uint32_t n = sc_word(c, u, 0);
  sx k[16], a, b;
  uint32_t m;
  if (n != sc_word(c, v, 0)) return false;
  for (uint32_t i = 0; i < n; i++)
    if (!sx_same(c, sc_word(c, u, i + 1), sc_word(c, v, i + 1))) return false;
  a = sx_open(c, u, k, &m);
  sx_map map[16];
  const sx body = sc_word(c, v, n + 1);
  const uint32_t base = sc_at(c, body)->height;
  for (uint32_t i = 0; i < n; i++)
    map[i] = (sx_map){sc_node(c, X_BOUND, &(uint32_t){base + 1 + i}, 1), k[i]};
  b = sx_subst(c, body, map, n);
  if (equal(c, a, b, deep)) return true;
  if (n != 2 || !sx_same(c, sc_word(c, u, 1), sc_word(c, u, 2))) return false;
  map[0].to = k[1], map[1].to = k[0];
  return equal(c, a, sx_subst(c, body, map, n), deep);
}

/* Are two atoms of one kind equal? */
static bool unify(sc *c, sx u, sx v, int deep) {
  const sx_node p = *sc_at(c, u), q = *sc_at(c, v);
  if (u == v) return true;
  if (p.op != q.op || (p.n != q.n && p.op != X_ADD)) return false;
  if (p.op == X_FN && sc_word(c, u, 0) != sc_word(c, v, 0)) return false;
  if (p.op != X_LEAF && sc_differs(c, u, v)) return false;
  switch ((sx_op)p.op) {
  case X_FN:
    for (uint32_t i = 1; i < p.n; i++)
      if (!equal(c, sc_word(c, u, i), sc_word(c, v, i), deep)) return false;
    return true;
  case X_ADD: return equal(c, u, v, deep);
  case X_MUL: return equal(c, u, v, deep);
  case X_SUM:
  case X_TOP:
  case X_PROD:
  case X_ROW: return same_binder(c, u, v, deep);
  case X_LEAF:
    if (sc_word(c, u, 0) != sc_word(c, v, 0)) return false;
    for (uint32_t i = 1; i < p.n; i++)
      if (!sx_same(c, sc_word(c, u, i), sc_word(c, v, i))) return false;
    return true;
  case X_MAX:
    for (uint32_t i = 0; i < p.n; i++)
      if (!equal(c, sc_word(c, u, i), sc_word(c, v, i), deep)) return false;
    return true;
  default: return false;
  }
}

/* A max, an absolute value or a cut towards zero anywhere in x: one with none inside, so that
 * conditions on it have none. */
static sx choice_in(const sc *c, sx x, int depth) {
  const sx_node *p = sc_at(c, x);
  if (depth > 12) return 0;
  const bool choice = p->op == X_MAX ||
                      (p->op == X_FN && (sc_word(c, x, 0) == F_ABS || sc_word(c, x, 0) == F_TRUNC));
  if (p->op == X_SUM || p->op == X_TOP || p->op == X_PROD || p->op == X_ROW || p->op == X_CONST ||
      p->op == X_SYM || p->op == X_BOUND)
    return 0;
  for (uint32_t i = 0; i < p->n; i++) {
    const bool child = sx_is_child((sx_op)p->op, i);
    const sx r = child ? choice_in(c, sc_word(c, x, i), depth + 1) : 0;
    if (r) return r;
  }
  return choice ? x : 0;
}

/* A choice as the cases that it is. */
static sx_map as_cases(sc *c, sx m) {
  sx cond, x, y;
  if (sc_op(c, m) == X_MAX) {
    sx rest = sc_word(c, m, 1);
    for (uint32_t i = 2; i < sc_at(c, m)->n; i++) rest = sx_max(c, rest, sc_word(c, m, i));
    x = sc_word(c, m, 0), y = rest;
    cond = sx_lt(c, x, y);
  } else {
    x = sc_word(c, m, 1);
    cond = sx_lt(c, x, c->zero);
    y = sx_neg(c, x);
    if (sc_word(c, m, 0) == F_TRUNC) y = sx_neg(c, sx_fn(c, F_FLOOR, y)), x = sx_fn(c, F_FLOOR, x);
  }
  return (sx_map){m, sx_ite(c, cond, y, x)};
}

static bool by_choice(sc *c, sx d, sx m, int deep) {
  const sx_map map = as_cases(c, m);
  return equal(c, sx_subst(c, d, &map, 1), c->zero, deep);
}

/* a = b where p = 0, which the hypotheses say; 0 for p: they say no such thing. Of an absolute
 * value or a largest in p each case has a value of its own. */
static bool at_zero(sc *c, sx p, sx a, sx b, int choices, int deep) {
  const sx m = p && choices ? choice_in(c, p, 0) : 0;
  sx_map map = m ? as_cases(c, m) : (sx_map){0};
  const sx g = m ? sx_top_guard(c, map.to) : 0, known = g ? decided(c, g) : 0;
  if (g) {
    const sx to = map.to;
    bool ok = true;
    for (int holds = 1; holds >= 0 && ok; holds--) {
      const size_t facts = c->here.n_facts, path = c->here.n_path;
      if (known && (known == c->yes) != (holds == 1)) continue;
      map.to = sx_cofactor(c, to, g, holds == 1);
      if (sx_top_guard(c, map.to)) return equal(c, a, b, deep);
      if ((known || sc_assume(c, g, holds == 1)) && restate(c, &map))
        ok = at_zero(c, sx_subst(c, p, &map, 1), sx_subst(c, a, &map, 1), sx_subst(c, b, &map, 1),
                     choices - 1, deep);
      c->here.n_facts = facts, c->here.n_path = path;
    }
    return ok && !c->fault.failed;
  }
  if (!p || !value_of(c, p, &map)) return equal(c, a, b, deep);
  a = sx_subst(c, a, &map, 1), b = sx_subst(c, b, &map, 1);
  return !restate(c, &map) || equal(c, a, b, deep);
}

static bool branch(sc *c, sx g, bool holds, sx a, sx b, int deep) {
  const size_t facts = c->here.n_facts, path = c->here.n_path;
  bool ok = true, possible = sc_assume(c, g, holds);
  if (possible) {
    sx_map map;
    a = sx_cofactor(c, a, g, holds);
    b = sx_cofactor(c, b, g, holds);
    if ((holds && fixes(c, g, &map)) || pinned(c, g, &map) || met(c, g, holds, &map)) {
      a = sx_subst(c, a, &map, 1), b = sx_subst(c, b, &map, 1);
      possible = restate(c, &map);
      ok = !possible || equal(c, a, b, deep);
    } else {
      ok = at_zero(c, vanishing(c, g, holds), a, b, MAX_CHOICES, deep);
    }
  }
  c->here.n_facts = facts;
  c->here.n_path = path;
  return ok && !c->fault.failed;
}

/* A largest of integers in an equation of integers: a place that is clamped. 0: there is none. */
static sx clamped_in(const sc *c, sx g) {
  const sx p = sc_op(c, g) == X_EQ ? sc_word(c, g, 0) : 0;
  const sx m = p && sc_has(c, p, S_INT) ? choice_in(c, p, 0) : 0;
  return m && sc_op(c, m) == X_MAX && sc_has(c, m, S_INT) ? m : 0;
}

/* P + R sqrt(b) = 0 for P >= 0 >= R, or the other way: P^2 = R^2 b. false: not of that form. */
static bool by_square(sc *c, sx d, int deep) {
  sx root = 0, p = c->zero, r = c->zero, b;
  const uint32_t half = pv_q_pow(&c->q, pv_q_int(&c->q, 2), -1);
  uint32_t q, e;
  for (size_t i = 0, n = sx_terms(c, d); i < n && !c->fault.failed; i++) {
    sx m, mine = 0;
    sx_term(c, d, i, &q, &m);
    for (size_t k = 0, l = sx_factors(c, m); k < l; k++) {
      sx_factor(c, m, k, &b, &e);
      if (sc_op(c, b) == X_ADD && e == half) mine = b;
    }
    if (mine && root && mine != root) return false;
    if (mine)
      root = mine,
      r = sx_add(c, r, sx_scale(c, q, sx_mul(c, m, sx_inv(c, sx_single(c, mine, half)))));
    else p = sx_add(c, p, sx_scale(c, q, m));
  }
  if (!root || p == c->zero || c->fault.failed) return false;
  const bool signs = (sc_has(c, p, S_NONNEG) && sc_has(c, sx_neg(c, r), S_NONNEG)) ||
                     (sc_has(c, r, S_NONNEG) && sc_has(c, sx_neg(c, p), S_NONNEG));
  return signs && equal(c, sx_powi(c, p, 2), sx_mul(c, sx_powi(c, r, 2), root), deep);
}

/* q log a + r log b + ... + rest = 0 where a^q b^r ... = e^-rest, since numbers with a logarithm
 * are positive. false: no such sum. */
static bool by_logarithms(sc *c, sx d, int deep) {
  sx product = c->one, rest = c->zero;
  size_t logs = 0;
  for (size_t i = 0, n = sx_terms(c, d); i < n && !c->fault.failed; i++) {
    uint32_t q;
    int64_t k;
    sx m;
    sx_term(c, d, i, &q, &m);
    if (sc_op(c, m) == X_FN && sc_word(c, m, 0) == F_LOG && pv_q_is_int(&c->q, q, &k) && k >= -3 &&
        k <= 3) {
      product = sx_mul(c, product, sx_powi(c, sc_word(c, m, 1), k));
      logs++;
    } else {
      rest = sx_add(c, rest, sx_scale(c, q, m));
    }
  }
  return logs > 0 && logs < 6 && !c->fault.failed &&
         equal(c, product, sx_exp(c, sx_neg(c, rest)), deep);
}

/* A floor of integers anywhere in x, none within it. */
static sx quotient_in(const sc *c, sx x, int depth) {
  const sx_node *p = sc_at(c, x);
  if (depth > 12 || p->op == X_SUM || p->op == X_TOP || p->op == X_ROW || p->op == X_CONST ||
      p->op == X_SYM || p->op == X_BOUND)
    return 0;
  for (uint32_t i = 0; i < p->n; i++) {
    const bool child = sx_is_child((sx_op)p->op, i);
    const sx r = child ? quotient_in(c, sc_word(c, x, i), depth + 1) : 0;
    if (r) return r;
  }
  return p->op == X_DIV ? x : 0;
}

/* The floors in d under the present hypotheses. */
static sx quotients_now(sc *c, sx d) {
  for (int i = 0; i < SC_MAX_ROUNDS && !c->fault.failed; i++) {
    const sx u = quotient_in(c, d, 0);
    sx v = u ? sx_div(c, sc_word(c, u, 0), sc_word(c, u, 1)) : u;
    if (u == v && u)
      v = sx_same(c, u, c->zero) ? c->zero : sx_same(c, u, c->minus_one) ? c->minus_one : u;
    if (u == v) break;
    d = sx_subst(c, d, &(sx_map){u, v}, 1);
  }
  return d;
}

/* An integer element by which the remainder of a polynomial by a small number goes. */
static sx element_in(const sc *c, sx p) {
  sx a[SC_MAX_ATOMS];
  for (size_t i = 0, n = sc_atoms(c, p, a); i < n; i++)
    if (sc_op(c, a[i]) == X_LEAF && sc_has(c, a[i], S_INT)) return a[i];
  return 0;
}

/* floor(p / k) for each remainder by k of an element in p. false: that is no way. */
static bool by_residues(sc *c, sx d, int deep) {
  const sx u = quotient_in(c, d, 0), x = u ? element_in(c, sc_word(c, u, 0)) : 0;
  int64_t k;
  if (!x || !sx_is_int(c, sc_word(c, u, 1), &k) || k > MAX_MODULUS ||
      c->here.residues * k > MAX_RESIDUES)
    return false;
  const sx times = sc_symbol(c, "times", 'q', S_INT | (sc_flags(c, x) & S_NONNEG));
  c->here.residues *= k;
  bool ok = !c->fault.failed;
  for (int64_t r = 0; r < k && ok; r++)
    ok = equal(
        c,
        sx_subst(c, d,
                 &(sx_map){x, sx_add(c, sx_scale(c, pv_q_int(&c->q, k), times), sx_int(c, r))}, 1),
        c->zero, deep);
  c->here.residues /= k;
  return ok;
}

/* A value that is wrapped to few bits anywhere in x, none within it. */
static sx narrow_in(sc *c, sx x, int depth) {
  const sx_node p = *sc_at(c, x);
  if (depth > 12 || p.op == X_SUM || p.op == X_TOP || p.op == X_ROW || p.op == X_CONST ||
      p.op == X_SYM || p.op == X_BOUND)
    return 0;
  for (uint32_t i = 0; i < p.n; i++) {
    const sx r = sx_is_child((sx_op)p.op, i) ? narrow_in(c, sc_word(c, x, i), depth + 1) : 0;
    if (r) return r;
  }
  return p.op == X_FN && sx_is_wrap((sx_func)sc_word(c, x, 0)) && sc_word(c, x, 0) != F_WRAP ? x
                                                                                             : 0;
}

/* With what is wrapped to few bits as the remainder that it is: other integers may be cut off by a
 * mask or a remainder in its place. false: there is none, or that shows nothing. */
static bool by_wraps(sc *c, sx d, int deep) {
  const sx before = d;
  for (int i = 0; i < SC_MAX_ROUNDS && !c->fault.failed; i++) {
    const sx u = narrow_in(c, d, 0), v = u ? sx_wrap_written_out(c, u) : 0;
    if (u == v) break;
    d = sx_subst(c, d, &(sx_map){u, v}, 1);
  }
  return d != before && !c->fault.failed && equal(c, d, c->zero, deep);
}

static bool zero(sc *c, sx d, int deep) {
  d = sc_split_products(c, sc_without_denominators(c, sc_plain_inverses(c, sc_extremes(c, d))));
  for (int round = 0; round < SC_MAX_ROUNDS && !c->fault.failed; round++) {
    sx a[SC_MAX_ATOMS], v;
    if (d == c->zero) return true;
    if (sx_top_guard(c, d)) return equal(c, d, c->zero, deep - 1);
    const size_t n = sc_atoms(c, d, a);
    bool changed = false;
    for (size_t i = 0; i < n && !changed && !c->fault.failed; i++)
      for (size_t k = 0; k < n && !changed && !c->fault.failed; k++) {
        if (i == k) continue;
        if (sc_split_range(c, a[i], a[k], &v)) d = sc_replaced(c, d, a[i], v), changed = true;
        else if (sc_rewritten(c, a[i], a[k])) d = sc_replaced(c, d, a[i], a[k]), changed = true;
        else if (i < k && deep > 0 && unify(c, a[i], a[k], deep - 1))
          d = sc_replaced(c, d, a[k], a[i]), changed = true;
      }
    for (size_t i = 0; i < n && !changed && !c->fault.failed; i++) {
      if (sc_empty_sum(c, a[i])) d = sc_replaced(c, d, a[i], c->zero), changed = true;
      for (size_t k = 0; k < n && !changed && !c->fault.failed; k++)
        if (i != k && (sc_split_anywhere(c, a[i], a[k], &v) || sc_in_one(c, a[k], a[i], &v)))
          d = sc_replaced(c, d, a[i], v), changed = true;
    }
    if (!changed) break;
    d = sc_without_denominators(c, d);
  }
  if (d == c->zero || c->fault.failed) return !c->fault.failed;
  d = sc_powers_apart(c, sc_angles_apart(c, d));
  if (d == c->zero) return true;
  if (deep > 0 && by_square(c, d, deep - 1)) return true;
  if (c->fault.failed) return false;
  sx body;
  if (deep > 0 && sc_one_body(c, d, &body) && equal(c, body, c->zero, deep - 1)) return true;
  if (c->fault.failed) return false;
  if (deep > 0) {
    const sx u = sc_all_unrolled(c, d);
    if (c->fault.failed) return false;
    if (u != d) return equal(c, u, c->zero, deep - 1);
    const sx m = choice_in(c, d, 0);
    if (m) return by_choice(c, d, m, deep - 1);
    const sx now = c->here.n_path ? quotients_now(c, d) : d;
    if (now != d) return equal(c, now, c->zero, deep - 1);
    if (by_wraps(c, d, deep - 1)) return true;
    if (by_logarithms(c, d, deep - 1) || (deep > 1 && by_residues(c, d, deep - 1))) return true;
  }
  return sc_z3_equal(c, d, c->zero);
}

static bool equal(sc *c, sx a, sx b, int deep) {
  if (a == b) return true;
  if (c->fault.failed || deep < 0 || !sc_work(c, 200)) return false;
  const sx g = sx_top_guard(c, a), h = sx_top_guard(c, b);
  if (g || h) {
    const sx t = !h || (g && g < h) ? g : h, known = decided(c, t);
    if (known)
      return equal(c, sx_cofactor(c, a, t, known == c->yes), sx_cofactor(c, b, t, known == c->yes),
                   deep);
    if (c->here.n_path > 40) return false;
    const sx m = clamped_in(c, t);
    if (m) {
      const sx_map map = as_cases(c, m);
      return equal(c, sx_subst(c, a, &map, 1), sx_subst(c, b, &map, 1), deep);
    }
    return branch(c, t, true, a, b, deep) && branch(c, t, false, a, b, deep);
  }
  if ((sc_flags(c, a) & S_BOOL) || (sc_flags(c, b) & S_BOOL) || a == c->neginf || b == c->neginf)
    return c->here.n_path > 0 && !sc_z3_possible(c, NULL, 0);
  return zero(c, sx_sub(c, a, b), deep);
}

bool sc_equal(sc *c, sx a, sx b) { return equal(c, a, b, MAX_DEEP) && !c->fault.failed; }
