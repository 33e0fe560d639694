/* Expressions within polynomials: where a part occurs, exact quotients, a polynomial as linear in
 * an atom. */
#include "validate/expr/expr_int.h"

static bool occurs(const sc *c, sx x, sx in, uint32_t walk) {
  if (x == in) return true;
  if (c->store.node[x].bloom & ~c->store.node[in].bloom || !sc_walk_first(c, in, walk))
    return false;
  const sx_node *p = &c->store.node[in];
  for (uint32_t i = 0; i < p->n; i++)
    if (sx_is_child((sx_op)p->op, i) && occurs(c, x, c->store.word[p->off + i], walk)) return true;
  return false;
}

bool sx_occurs(const sc *c, sx x, sx in) {
  if (x == in || c->store.node[x].bloom & ~c->store.node[in].bloom) return x == in;
  return occurs(c, x, in, sc_walk_start(c));
}

static sx find_place(const sc *c, sx k, sx in, uint32_t walk) {
  const sx_node *p = &c->store.node[in];
  sx r = 0;
  if (c->store.node[k].bloom & ~p->bloom || !sc_walk_first(c, in, walk)) return 0;
  if (p->op == X_FN && c->store.word[p->off] == F_PLACE && c->store.word[p->off + 1] == k)
    return in;
  for (uint32_t i = 0; i < p->n && !r; i++)
    if (sx_is_child((sx_op)p->op, i)) r = find_place(c, k, c->store.word[p->off + i], walk);
  return r;
}

sx sx_find_place(const sc *c, sx k, sx in) { return find_place(c, k, in, sc_walk_start(c)); }

/* By a sum: term after term of the quotient, as long as fewer terms are left. */
static bool divides_by_sum(sc *c, sx d, sx p, sx *quotient) {
  const size_t n = sx_terms(c, p);
  uint32_t q;
  sx m, t, rest;
  if (d == p) return *quotient = c->one, true;
  sx_term(c, d, 0, &q, &m);
  const sx first = sx_scale(c, q, m);
  for (size_t i = 0; i < n && n >= sx_terms(c, d) && n < 40 && !c->fault.failed; i++) {
    sx_term(c, p, i, &q, &m);
    if (!sx_divides(c, first, sx_scale(c, q, m), &t)) continue;
    const sx left = sx_sub(c, p, sx_mul(c, t, d));
    if (left == c->zero) return *quotient = t, true;
    if (sx_terms(c, left) < n && divides_by_sum(c, d, left, &rest))
      return *quotient = sx_add(c, t, rest), true;
  }
  return false;
}

bool sx_divides(sc *c, sx d, sx p, sx *quotient) {
  if (d == c->one) return *quotient = p, true;
  if (p == c->zero || d == c->zero) return *quotient = p, p == c->zero;
  if (sx_is_long(c, d)) return divides_by_sum(c, d, p, quotient);
  uint32_t dq;
  sx dm;
  int64_t k;
  sx_term(c, d, 0, &dq, &dm);
  for (size_t i = 0, n = sx_terms(c, p); i < n; i++) {
    uint32_t q, e, f;
    sx m, b;
    sx_term(c, p, i, &q, &m);
    if (!pv_q_is_int(&c->q, pv_q_mul(&c->q, q, pv_q_pow(&c->q, dq, -1)), &k)) return false;
    for (size_t j = 0, l = sx_factors(c, dm); j < l; j++) {
      sx_factor(c, dm, j, &b, &e);
      f = sx_exponent_in(c, m, b);
      if (sx_q_compare(c, f, e) < 0) return false;
    }
  }
  *quotient = sx_mul(c, p, sx_inv(c, d));
  return !c->fault.failed;
}

bool sx_linear(sc *c, sx p, sx atom, sx *a, sx *b) {
  const size_t n = sx_terms(c, p);
  *a = *b = c->zero;
  for (size_t i = 0; i < n; i++) {
    uint32_t q;
    sx m;
    sx_term(c, p, i, &q, &m);
    if (!sx_occurs(c, atom, m)) {
      *b = sx_add(c, *b, sx_scale(c, q, m));
      continue;
    }
    if (sx_exponent_in(c, m, atom) != PV_ONE_Q) return false;
    const sx rest = sx_mul(c, m, sx_inv(c, atom));
    if (sx_occurs(c, atom, rest)) return false;
    *a = sx_add(c, *a, sx_scale(c, q, rest));
  }
  return !c->fault.failed;
}
