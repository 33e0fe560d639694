/* Closing a block of indices over one body: of all orders of the indices the one with the least
 * hash, so that binders are equal up to renaming and order. An index that a division takes apart
 * becomes two first. */
#include "validate/expr/expr_int.h"

enum { MAX_ORDERS = 48 };

/* ---- indices taken apart ---- */

/* The index by which the quotient x takes it apart, `only` where that is one, and into parts of
 * which size. */
static bool taken_apart(sc *c, sx x, sx only, sx *k, sx *d) {
  const sx r = sc_word(c, x, 0), by = sc_word(c, x, 1);
  for (size_t i = 0, n = sx_terms(c, r); i < n; i++) {
    uint32_t q, e;
    sx m, b, a, rest, part, times;
    sx_term(c, r, i, &q, &m);
    for (size_t j = 0, l = sx_factors(c, m); j < l; j++) {
      sx_factor(c, m, j, &b, &e);
      if (sc_op(c, b) != X_SYM || c->store.sym[sc_word(c, b, 0)].role != 'x' || (only && b != only))
        continue;
      const sx high = c->store.sym[sc_word(c, b, 0)].high;
      if (!sx_linear(c, r, b, &a, &rest) || !sx_divides(c, a, by, &part) || part == c->one)
        continue;
      if (!high || !sx_divides(c, part, high, &times) || times == c->one || !sx_gt0(c, part))
        continue;
      *k = b;
      *d = part;
      return true;
    }
  }
  return false;
}

static bool apart_in(sc *c, sx x, sx only, sx *k, sx *d, uint32_t walk) {
  const bool without = only && sc_at(c, only)->bloom & ~sc_at(c, x)->bloom;
  if (!(sc_flags(c, x) & S_INDEX) || without || !sc_walk_first(c, x, walk)) return false;
  const sx_node p = *sc_at(c, x);
  if (p.op == X_DIV && taken_apart(c, x, only, k, d)) return true;
  for (uint32_t i = 0; i < p.n; i++) {
    if (sx_is_child((sx_op)p.op, i) && apart_in(c, sc_word(c, x, i), only, k, d, walk)) return true;
  }
  return false;
}

bool sx_apart(sc *c, sx x, sx *k, sx *d) { return apart_in(c, x, 0, k, d, sc_walk_start(c)); }

static bool divided_in(sc *c, sx x, sx k, uint32_t walk) {
  if (!(sc_flags(c, x) & S_INDEX) || sc_at(c, k)->bloom & ~sc_at(c, x)->bloom ||
      !sc_walk_first(c, x, walk))
    return false;
  const sx_node p = *sc_at(c, x);
  if (p.op == X_DIV && sx_occurs(c, k, x)) return true;
  for (uint32_t i = 0; i < p.n; i++)
    if (sx_is_child((sx_op)p.op, i) && divided_in(c, sc_word(c, x, i), k, walk)) return true;
  return false;
}

bool sx_divided(sc *c, sx x, sx k) { return divided_in(c, x, k, sc_walk_start(c)); }

bool sx_apart_at(sc *c, sx x, sx k, sx *d) {
  return apart_in(c, x, k, &(sx){0}, d, sc_walk_start(c));
}

/* ---- closing a block of indices over one monomial ---- */

static sx named(sc *c, sx body, const sx *k, const uint32_t *level, uint32_t n) {
  sx_map map[SX_MAX_BLOCK];
  for (uint32_t i = 0; i < n; i++) map[i] = (sx_map){k[i], sc_node(c, X_BOUND, &level[i], 1)};
  return sx_with_map(c, body, map, n, true);
}

static uint64_t signature(sc *c, sx body, sx k) {
  const sx x = named(c, body, &k, &(uint32_t){60000}, 1);
  return sc_at(c, x)->hash * 31 + sc_at(c, sx_range_of(c, k))->hash;
}

static sx in_order(sc *c, sx_op op, sx body, const sx *k, uint32_t n) {
  uint32_t w[SX_MAX_BLOCK + 2] = {n}, level[SX_MAX_BLOCK];
  const uint32_t base = sc_at(c, body)->height;
  for (uint32_t i = 0; i < n; i++) level[i] = base + 1 + i, w[i + 1] = sx_range_of(c, k[i]);
  w[n + 1] = named(c, body, k, level, n);
  return sc_node(c, op, w, n + 2);
}

static bool better(const sc *c, sx a, sx b) {
  if (!b) return true;
  const uint64_t x = sc_at(c, a)->hash, y = sc_at(c, b)->hash;
  return x != y ? x < y : a < b;
}

typedef struct ordering {
  sx_op op;
  sx body, *k; /* n indices, by their signatures */
  const uint64_t *sig;
  uint32_t n;
  int left; /* orders that may still be looked at */
  sx best;
} ordering;

/* All orders of those with equal signatures, from place `at` on. */
static void orders(sc *c, ordering *o, uint32_t at) {
  if (at == o->n) {
    if (o->left-- <= 0 && o->best) return;
    const sx x = in_order(c, o->op, o->body, o->k, o->n);
    if (better(c, x, o->best)) o->best = x;
    return;
  }
  sx *k = o->k;
  for (uint32_t i = at; i < o->n && o->sig[i] == o->sig[at] && !c->fault.failed; i++) {
    const sx t = k[at];
    k[at] = k[i], k[i] = t;
    orders(c, o, at + 1);
    k[i] = k[at], k[at] = t;
  }
}

sx sx_close_block(sc *c, sx_op op, sx body, sx *k, uint32_t n) {
  uint64_t sig[SX_MAX_BLOCK];
  if (c->fault.failed) return c->zero;
  for (uint32_t i = 0; i < n; i++) sig[i] = n > 1 ? signature(c, body, k[i]) : 0;
  for (uint32_t i = 1; i < n; i++)
    for (uint32_t j = i; j > 0 && sig[j - 1] > sig[j]; j--) {
      const uint64_t s = sig[j];
      const sx t = k[j];
      sig[j] = sig[j - 1], k[j] = k[j - 1];
      sig[j - 1] = s, k[j - 1] = t;
    }
  ordering o = {op, body, k, sig, n, MAX_ORDERS, 0};
  orders(c, &o, 0);
  return c->fault.failed ? c->zero : o.best;
}

sx sx_close(sc *c, sx_op op, sx k, sx body) { return sx_close_block(c, op, body, &k, 1); }

bool sx_index_in_two(sc *c, sx k, sx body, sx (*f)(sc *c, sx k, sx body), sx *out) {
  sx at, d, q;
  if (!apart_in(c, body, k, &at, &d, sc_walk_start(c)) || !sx_divides(c, d, sx_range_of(c, k), &q))
    return false;
  const sx u = sc_index(c, q), v = sc_index(c, d);
  body = sx_subst(c, body, &(sx_map){k, sx_add(c, sx_mul(c, u, d), v)}, 1);
  *out = f(c, u, f(c, v, body));
  return true;
}
