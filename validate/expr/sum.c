/* Binders: substitution, sums over an index and their normal form, the largest over an index. */
#include <stdlib.h>
#include <string.h>

#include "egraph/base/vec.h"
#include "validate/prove/prove_int.h"

enum { MAX_BLOCK = 8, MAX_ORDERS = 48, MAX_COPIES = 4, MAX_DEPTH = 300 };

/* ---- substitution ---- */

typedef struct subst {
  const sx_map *map;
  size_t n;
  uint64_t bloom;
  bool raw; /* names only: nothing is simplified, binders stay closed */
  sx *key, *value;
  size_t used, cap;
} subst;

static sx run(sc *c, subst *s, sx x);

static sx truth(sc *c, sx guard, const void *ctx) {
  (void)ctx;
  if (guard == c->yes || guard == c->no) return guard;
  return sc_node(c, X_ITE, (uint32_t[3]){guard, c->yes, c->no}, 3);
}

static size_t slot(const subst *s, sx x) {
  size_t h = (x * 2654435761u) & (s->cap - 1);
  while (s->key[h] && s->key[h] != x) h = (h + 1) & (s->cap - 1);
  return h;
}

static bool remember(subst *s, sx x, sx v) {
  if (2 * (s->used + 1) > s->cap) {
    subst t = *s;
    s->cap = s->cap ? 2 * s->cap : 64;
    s->key = calloc(s->cap, sizeof *s->key);
    s->value = calloc(s->cap, sizeof *s->value);
    if (!s->key || !s->value) {
      free(s->key);
      free(s->value);
      *s = t;
      return false;
    }
    for (size_t i = 0; i < t.cap; i++)
      if (t.key[i]) {
        const size_t h = slot(s, t.key[i]);
        s->key[h] = t.key[i];
        s->value[h] = t.value[i];
      }
    free(t.key);
    free(t.value);
  }
  const size_t h = slot(s, x);
  s->used += !s->key[h];
  s->key[h] = x;
  s->value[h] = v;
  return true;
}

static sx with_map(sc *c, sx x, const sx_map *map, size_t n, bool raw) {
  subst s = {.map = map, .n = n, .raw = raw};
  for (size_t i = 0; i < n; i++) s.bloom |= sc_at(c, map[i].from)->bloom;
  const sx r = run(c, &s, x);
  free(s.key);
  free(s.value);
  return r;
}

sx sx_subst(sc *c, sx x, const sx_map *map, size_t n) { return with_map(c, x, map, n, false); }

/* A condition under the substitution, as a diagram. */
static sx run_guard(sc *c, subst *s, sx g) {
  const sx y = run(c, s, g);
  return sx_lift(c, y, truth, NULL);
}

static sx run_binder(sc *c, subst *s, sx x) {
  const sx_node p = *sc_at(c, x);
  uint32_t w[MAX_BLOCK + 2];
  const uint32_t n = sc_word(c, x, 0);
  if (s->raw) {
    for (uint32_t i = 0; i < p.n; i++) w[i] = i ? run(c, s, sc_word(c, x, i)) : n;
    return sc_node(c, (sx_op)p.op, w, p.n);
  }
  sx k[MAX_BLOCK], body;
  sx_map map[MAX_BLOCK + 72];
  if (s->n > 64) {
    sc_fail(c, "too many substitutions");
    return c->zero;
  }
  memcpy(map, s->map, s->n * sizeof *map);
  const uint32_t base = sc_at(c, sc_word(c, x, n + 1))->height;
  for (uint32_t i = 0; i < n; i++) {
    k[i] = sc_index(c, run(c, s, sc_word(c, x, i + 1)));
    map[s->n + i] = (sx_map){sc_node(c, X_BOUND, &(uint32_t){base + 1 + i}, 1), k[i]};
  }
  body = sx_subst(c, sc_word(c, x, n + 1), map, s->n + n);
  for (uint32_t i = n; i-- > 0;)
    body = p.op == X_SUM    ? sx_sum(c, k[i], body)
           : p.op == X_TOP  ? sx_largest(c, k[i], body)
           : p.op == X_PROD ? sx_product(c, k[i], body)
                            : sx_row(c, k[i], body);
  return body;
}

static sx run_many(sc *c, subst *s, sx x) {
  const sx_node p = *sc_at(c, x);
  sx small[16], *w = p.n <= 16 ? small : malloc(p.n * sizeof *w), r = c->zero;
  uint32_t q;
  if (!w) {
    c->no_memory = true;
    sc_fail(c, "out of memory");
    return r;
  }
  switch (p.op) {
  case X_ADD:
    for (uint32_t i = 0; i < p.n / 2; i++) {
      q = sc_word(c, x, 2 * i);
      w[i] = sx_scale(c, q, run(c, s, sc_word(c, x, 2 * i + 1)));
    }
    r = sx_addn(c, w, p.n / 2);
    break;
  case X_MUL:
    r = c->one;
    for (uint32_t i = 0; i < p.n / 2 && !c->failed; i++) {
      q = sc_word(c, x, 2 * i + 1);
      r = sx_mul(c, r, sx_pow(c, run(c, s, sc_word(c, x, 2 * i)), q));
    }
    break;
  default: /* X_MAX */
    r = c->neginf;
    for (uint32_t i = 0; i < p.n && !c->failed; i++) r = sx_max(c, r, run(c, s, sc_word(c, x, i)));
  }
  if (w != small) free(w);
  return r;
}

static sx run_leaf(sc *c, subst *s, sx x) {
  const uint32_t n = sc_at(c, x)->n - 1;
  sx idx[RULE_MAX_RANK];
  for (uint32_t i = 0; i < n; i++) idx[i] = run(c, s, sc_word(c, x, i + 1));
  return sx_leaf(c, sc_word(c, x, 0), idx, n);
}

static sx run_op(sc *c, subst *s, sx x) {
  const sx_node p = *sc_at(c, x);
  const sx a = p.n ? sc_word(c, x, 0) : 0, b = p.n > 1 ? sc_word(c, x, 1) : 0,
           d = p.n > 2 ? sc_word(c, x, 2) : 0;
  sx y, z;
  switch ((sx_op)p.op) {
  case X_SYM:
  case X_BOUND:
    for (size_t i = 0; i < s->n; i++)
      if (s->map[i].from == x) return s->map[i].to;
    return x;
  case X_ADD:
  case X_MUL:
  case X_MAX: return run_many(c, s, x);
  case X_DIV:
    y = run(c, s, a), z = run(c, s, b);
    return s->raw ? sc_node(c, X_DIV, (uint32_t[2]){y, z}, 2) : sx_div(c, y, z);
  case X_LEAF: return run_leaf(c, s, x);
  case X_FN:
    y = run(c, s, b);
    if (a == F_IF) {
      z = run(c, s, d);
      const sx other = run(c, s, sc_word(c, x, 3));
      return s->raw ? sc_node(c, X_FN, (uint32_t[4]){F_IF, y, z, other}, 4)
                    : sx_ite(c, y, z, other);
    }
    for (size_t i = 0; a == F_PLACE && i < s->n; i++)
      if (s->map[i].from == x) return s->map[i].to;
    if (a == F_PLACE && !s->raw) return sx_place(c, y, run(c, s, d));
    if (p.n == 2)
      return s->raw ? sc_node(c, X_FN, (uint32_t[2]){a, y}, 2) : sx_fn(c, (sx_func)a, y);
    return sx_fn2(c, (sx_func)a, y, run(c, s, d));
  case X_SUM:
  case X_TOP:
  case X_PROD:
  case X_ROW: return run_binder(c, s, x);
  case X_ITE: y = run_guard(c, s, a); return sx_ite(c, y, run(c, s, b), run(c, s, d));
  case X_LT:
  case X_EQ:
    y = run(c, s, a);
    if (s->raw) return sc_node(c, (sx_op)p.op, &y, 1);
    return p.op == X_LT ? sx_lt(c, y, c->zero) : sx_eq(c, y, c->zero);
  case X_IVER:
    if (s->raw) return sx_iver(c, run(c, s, a));
    if (c->mask_frames) { /* it stays a factor */
      y = run_guard(c, s, a);
      if (y == c->yes || y == c->no) return y == c->yes ? c->one : c->zero;
      return sx_iver(c, sc_word(c, y, 1) == c->yes && sc_word(c, y, 2) == c->no ? sx_top_guard(c, y)
                                                                                : y);
    }
    return sx_ite(c, run_guard(c, s, a), c->one, c->zero);
  default: return x;
  }
}

static sx run(sc *c, subst *s, sx x) {
  if (c->failed) return c->zero;
  if (!(sc_at(c, x)->bloom & s->bloom)) return x;
  if (s->cap) {
    const size_t h = slot(s, x);
    if (s->key[h]) return s->value[h];
  }
  for (size_t i = 0; i < s->n && !s->raw; i++)
    if (s->map[i].from == x) return s->map[i].to;
  if (++c->depth > MAX_DEPTH) sc_fail(c, "an expression too deep");
  const sx r = c->failed ? c->zero : run_op(c, s, x);
  c->depth--;
  if (!remember(s, x, r)) {
    c->no_memory = true;
    sc_fail(c, "out of memory");
  }
  return r;
}

sx sx_open(sc *c, sx binder, sx *k, uint32_t *n) {
  sx_map map[MAX_BLOCK];
  *n = sc_word(c, binder, 0);
  const sx body = sc_word(c, binder, *n + 1);
  const uint32_t base = sc_at(c, body)->height;
  for (uint32_t i = 0; i < *n; i++) {
    k[i] = sc_index(c, sc_word(c, binder, i + 1));
    map[i] = (sx_map){sc_node(c, X_BOUND, &(uint32_t){base + 1 + i}, 1), k[i]};
  }
  return with_map(c, body, map, *n, true);
}

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
      if (sc_op(c, b) != X_SYM || c->sym[sc_word(c, b, 0)].role != 'x' || (only && b != only))
        continue;
      const sx high = c->sym[sc_word(c, b, 0)].high;
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
    const bool child = p.op == X_ADD   ? i & 1
                       : p.op == X_MUL ? !(i & 1)
                       : p.op == X_LEAF || p.op == X_FN || p.op == X_SUM || p.op == X_TOP ||
                               p.op == X_PROD || p.op == X_ROW
                           ? i > 0
                           : p.op != X_CONST && p.op != X_SYM && p.op != X_BOUND;
    if (child && apart_in(c, sc_word(c, x, i), only, k, d, walk)) return true;
  }
  return false;
}

bool sx_apart(sc *c, sx x, sx *k, sx *d) { return apart_in(c, x, 0, k, d, sc_walk_start(c)); }
bool sx_apart_at(sc *c, sx x, sx k, sx *d) {
  return apart_in(c, x, k, &(sx){0}, d, sc_walk_start(c));
}

/* ---- closing a block of indices over one monomial ---- */

static sx named(sc *c, sx body, const sx *k, const uint32_t *level, uint32_t n) {
  sx_map map[MAX_BLOCK];
  for (uint32_t i = 0; i < n; i++) map[i] = (sx_map){k[i], sc_node(c, X_BOUND, &level[i], 1)};
  return with_map(c, body, map, n, true);
}

static sx range_of(const sc *c, sx k) { return c->sym[sc_word(c, k, 0)].high; }

static uint64_t signature(sc *c, sx body, sx k) {
  const sx x = named(c, body, &k, &(uint32_t){60000}, 1);
  return sc_at(c, x)->hash * 31 + sc_at(c, range_of(c, k))->hash;
}

static sx in_order(sc *c, sx_op op, sx body, const sx *k, uint32_t n) {
  uint32_t w[MAX_BLOCK + 2] = {n}, level[MAX_BLOCK];
  const uint32_t base = sc_at(c, body)->height;
  for (uint32_t i = 0; i < n; i++) level[i] = base + 1 + i, w[i + 1] = range_of(c, k[i]);
  w[n + 1] = named(c, body, k, level, n);
  return sc_node(c, op, w, n + 2);
}

static bool better(const sc *c, sx a, sx b) {
  if (!b) return true;
  const uint64_t x = sc_at(c, a)->hash, y = sc_at(c, b)->hash;
  return x != y ? x < y : a < b;
}

/* All orders of those with equal signatures. */
static void orders(sc *c, sx_op op, sx body, sx *k, const uint64_t *sig, uint32_t n, uint32_t at,
                   int *left, sx *best) {
  if (at == n) {
    if ((*left)-- <= 0 && *best) return;
    const sx x = in_order(c, op, body, k, n);
    if (better(c, x, *best)) *best = x;
    return;
  }
  for (uint32_t i = at; i < n && sig[i] == sig[at] && !c->failed; i++) {
    const sx t = k[at];
    k[at] = k[i], k[i] = t;
    orders(c, op, body, k, sig, n, at + 1, left, best);
    k[i] = k[at], k[at] = t;
  }
}

static sx close_block(sc *c, sx_op op, sx body, sx *k, uint32_t n) {
  uint64_t sig[MAX_BLOCK];
  sx best = 0;
  int left = MAX_ORDERS;
  if (c->failed) return c->zero;
  for (uint32_t i = 0; i < n; i++) sig[i] = n > 1 ? signature(c, body, k[i]) : 0;
  for (uint32_t i = 1; i < n; i++)
    for (uint32_t j = i; j > 0 && sig[j - 1] > sig[j]; j--) {
      const uint64_t s = sig[j];
      const sx t = k[j];
      sig[j] = sig[j - 1], k[j] = k[j - 1];
      sig[j - 1] = s, k[j - 1] = t;
    }
  orders(c, op, body, k, sig, n, 0, &left, &best);
  return c->failed ? c->zero : best;
}

sx sx_close(sc *c, sx_op op, sx k, sx body) { return close_block(c, op, body, &k, 1); }

/* The sum of k, k^2 and k^3 over k < n. 0: of something else. */
static sx closed_form(sc *c, sx body, sx k) {
  uint32_t e;
  sx b;
  int64_t p;
  if (sx_factors(c, body) != 1) return 0;
  sx_factor(c, body, 0, &b, &e);
  if (b != k || !pv_q_is_int(&c->q, e, &p) || p < 1 || p > 3) return 0;
  const sx n = range_of(c, k), less = sx_sub(c, n, c->one),
           pairs = sx_scale(c, pv_q_pow(&c->q, pv_q_int(&c->q, 2), -1), sx_mul(c, n, less));
  if (p == 1) return pairs;
  if (p == 3) return sx_powi(c, pairs, 2);
  return sx_scale(c, pv_q_pow(&c->q, pv_q_int(&c->q, 3), -1), sx_mul(c, pairs, sx_add(c, n, less)));
}

/* Each connected part of the block is a sum of its own. */
static sx close_parts(sc *c, sx body, sx *k, uint32_t n) {
  sx result = c->one, rest = body;
  bool done[MAX_BLOCK] = {false};
  for (uint32_t i = 0; i < n && !c->failed; i++) {
    if (done[i]) continue;
    sx part[MAX_BLOCK] = {k[i]}, mine = c->one;
    uint32_t m = 1;
    done[i] = true;
    for (bool grew = true; grew && !c->failed;) {
      grew = false;
      sx other = c->one;
      for (size_t j = 0, l = sx_factors(c, rest); j < l; j++) {
        sx b;
        uint32_t e;
        bool linked = false;
        sx_factor(c, rest, j, &b, &e);
        for (uint32_t t = 0; t < m; t++) linked |= sx_occurs(c, part[t], b);
        if (!linked) {
          other = sx_mul(c, other, sx_pow(c, b, e));
          continue;
        }
        mine = sx_mul(c, mine, sx_pow(c, b, e));
        grew = true;
        for (uint32_t t = 0; t < n; t++)
          if (!done[t] && sx_occurs(c, k[t], b)) done[t] = true, part[m++] = k[t];
      }
      rest = other;
    }
    const sx closed = m == 1 ? closed_form(c, mine, part[0]) : 0;
    result = sx_mul(c, result,
                    mine == c->one ? range_of(c, k[i])
                    : closed       ? closed
                                   : close_block(c, X_SUM, mine, part, m));
  }
  return sx_mul(c, result, rest);
}

/* Whether b, an X_SUM with exponent e, can join the block: its ranges do not move with it. */
static bool joins(sc *c, sx b, uint32_t e, const sx *k, uint32_t n, int64_t *times) {
  if (sc_op(c, b) != X_SUM || !pv_q_is_int(&c->q, e, times) || *times < 1 || *times > MAX_COPIES)
    return false;
  bool linked = false;
  const uint32_t inner = sc_word(c, b, 0);
  for (uint32_t t = 0; t < n; t++) {
    linked |= sx_occurs(c, k[t], b);
    for (uint32_t i = 0; i < inner; i++)
      if (sx_occurs(c, k[t], sc_word(c, b, i + 1))) return false;
  }
  return linked && n + inner * (uint32_t)*times <= MAX_BLOCK;
}

/* The index in two, where a division takes it apart. */
static bool in_two(sc *c, sx k, sx body, sx (*f)(sc *c, sx k, sx body), sx *out) {
  sx at, d, q;
  if (!apart_in(c, body, k, &at, &d, sc_walk_start(c)) || !sx_divides(c, d, range_of(c, k), &q))
    return false;
  const sx u = sc_index(c, q), v = sc_index(c, d);
  body = sx_subst(c, body, &(sx_map){k, sx_add(c, sx_mul(c, u, d), v)}, 1);
  *out = f(c, u, f(c, v, body));
  return true;
}

static sx sum_monomial(sc *c, sx k, sx m) {
  sx sym[MAX_BLOCK] = {k}, body = c->one;
  uint32_t n = 1;
  for (bool again = true; again && !c->failed;) {
    again = false;
    body = c->one;
    const sx from = m;
    for (size_t i = 0, l = sx_factors(c, from); i < l && !c->failed; i++) {
      sx b, inner[MAX_BLOCK];
      uint32_t e, more;
      int64_t times;
      sx_factor(c, from, i, &b, &e);
      if (again || !joins(c, b, e, sym, n, &times)) {
        body = sx_mul(c, body, sx_pow(c, b, e));
        continue;
      }
      for (again = true; times > 0; times--) {
        body = sx_mul(c, body, sx_open(c, b, inner, &more));
        for (uint32_t t = 0; t < more; t++)
          if (inner[t] != c->zero) sym[n++] = inner[t];
      }
    }
    m = body;
  }
  if (sx_terms(c, body) > 1 || sx_top_guard(c, body)) { /* what was opened is no product any more */
    for (uint32_t i = n; i-- > 0;) body = sx_sum(c, sym[i], body);
    return body;
  }
  uint32_t q;
  sx_term(c, body, 0, &q, &m);
  return sx_scale(c, q, close_parts(c, m, sym, n));
}

/* ---- sums ---- */

typedef struct cut {
  sx at;      /* k < at on the lower side */
  bool lower; /* the condition holds there */
  bool point; /* k = at */
} cut;

static bool cut_of(sc *c, sx g, sx k, cut *out) {
  sx a, b;
  if (sc_op(c, g) != X_LT && sc_op(c, g) != X_EQ) return false;
  if (!sx_linear(c, sc_word(c, g, 0), k, &a, &b) || (a != c->one && a != c->minus_one) ||
      !sc_has(c, b, S_INT))
    return false;
  out->point = sc_op(c, g) == X_EQ;
  out->lower = a == c->one;
  out->at = out->lower ? sx_neg(c, b) : b;
  if (!out->point && !out->lower) out->at = sx_add(c, b, c->one);
  return true;
}

bool sx_cuts(sc *c, sx g, sx k, sx *at, bool *lower) {
  cut t;
  if (!cut_of(c, g, k, &t) || t.point) return false;
  *at = t.at;
  *lower = t.lower;
  return true;
}

/* Over [from, from + n) of the index. */
static sx over(sc *c, sx k, sx body, sx from, sx n, sx (*f)(sc *c, sx k, sx body)) {
  if (n == c->zero) return c->zero;
  const sx i = sc_index(c, n);
  body = sx_subst(c, body, &(sx_map){k, sx_add(c, i, from)}, 1);
  if (i == c->zero) return body;
  return f(c, i, body);
}

static sx sum_cut(sc *c, sx k, const cut *t, sx x, sx y) {
  const sx high = range_of(c, k), low_part = t->lower ? x : y, high_part = t->lower ? y : x;
  if (t->point) {
    const sx in = sx_and(c, sx_le(c, c->zero, t->at), sx_lt(c, t->at, high));
    const sx_map to = {k, t->at};
    return sx_add(c,
                  sx_ite(c, in, sx_sub(c, sx_subst(c, x, &to, 1), sx_subst(c, y, &to, 1)), c->zero),
                  sx_sum(c, k, y));
  }
  return sx_add(c, over(c, k, low_part, c->zero, t->at, sx_sum),
                over(c, k, high_part, t->at, sx_sub(c, high, t->at), sx_sum));
}

static sx sum_ite(sc *c, sx k, sx body) {
  const sx g = sx_top_guard(c, body), x = sc_word(c, body, 1), y = sc_word(c, body, 2),
           high = range_of(c, k);
  cut t;
  if (!sx_occurs(c, k, g)) return sx_ite(c, truth(c, g, NULL), sx_sum(c, k, x), sx_sum(c, k, y));
  if (cut_of(c, g, k, &t)) {
    if (t.point) return sum_cut(c, k, &t, x, y);
    const bool above = sx_ge0(c, t.at), below = sx_ge0(c, sx_sub(c, high, t.at));
    if (above && below) return sum_cut(c, k, &t, x, y);
    if (above)
      return sx_ite(c, sx_le(c, t.at, high), sum_cut(c, k, &t, x, y),
                    sx_sum(c, k, t.lower ? x : y));
    if (below)
      return sx_ite(c, sx_le(c, c->zero, t.at), sum_cut(c, k, &t, x, y),
                    sx_sum(c, k, t.lower ? y : x));
  }
  const sx apart = sx_by_radix(c, g);
  if (apart) return sx_sum(c, k, sx_ite(c, apart, x, y));
  const sx i = sx_iver(c, g);
  if (sc_op(c, g) == X_LT && sc_has(c, sc_word(c, g, 0), S_INT)) {
    const sx p = sc_word(c, g, 0), n = sx_sub(c, c->minus_one, p);
    const sx other = sx_iver(c, sc_node(c, X_LT, &n, 1));
    return sx_add(c, sx_sum(c, k, sx_mul(c, i, x)), sx_sum(c, k, sx_mul(c, other, y)));
  }
  return sx_add(c, sx_sum(c, k, sx_mul(c, i, sx_sub(c, x, y))), sx_sum(c, k, y));
}

sx sx_sum(sc *c, sx k, sx body) {
  if (c->failed || k == c->zero) return c->failed ? c->zero : body;
  if (body == c->neginf) sc_fail(c, "minus infinity in a sum");
  if (sc_flags(c, body) & S_BOOL) sc_fail(c, "a sum of truth values");
  if (c->plain) return sx_close(c, X_SUM, k, body);
  if (range_of(c, k) == c->zero) return c->zero;
  sx_over_places(c, k, &body);
  if (!sx_occurs(c, k, body)) return sx_mul(c, range_of(c, k), body);
  if (++c->depth > MAX_DEPTH) sc_fail(c, "sums nested too deeply");
  sx r = c->zero;
  if (c->failed || in_two(c, k, body, sx_sum, &r)) r = c->failed ? c->zero : r;
  else if (sx_top_guard(c, body)) r = sum_ite(c, k, body);
  else
    for (size_t i = 0, n = sx_terms(c, body); i < n && !c->failed; i++) {
      uint32_t q;
      sx m;
      sx_term(c, body, i, &q, &m);
      r = sx_add(
          c, r,
          sx_scale(c, q,
                   sx_occurs(c, k, m) ? sum_monomial(c, k, m) : sx_mul(c, range_of(c, k), m)));
    }
  c->depth--;
  return r;
}

/* ---- the largest ---- */

static sx top_ite(sc *c, sx k, sx body) {
  const sx g = sx_top_guard(c, body), x = sc_word(c, body, 1), y = sc_word(c, body, 2),
           high = range_of(c, k);
  cut t;
  if (!sx_occurs(c, k, g))
    return sx_ite(c, truth(c, g, NULL), sx_largest(c, k, x), sx_largest(c, k, y));
  if (cut_of(c, g, k, &t) && !t.point && sx_ge0(c, t.at) && sx_ge0(c, sx_sub(c, high, t.at))) {
    const sx low = t.lower ? x : y, up = t.lower ? y : x, n = sx_sub(c, high, t.at);
    const bool some_low = sx_gt0(c, t.at), some_up = sx_gt0(c, n);
    if (up == c->neginf && some_low) return over(c, k, low, c->zero, t.at, sx_largest);
    if (low == c->neginf && some_up) return over(c, k, up, t.at, n, sx_largest);
    if (some_low && some_up && up != c->neginf && low != c->neginf)
      return sx_max(c, over(c, k, low, c->zero, t.at, sx_largest),
                    over(c, k, up, t.at, n, sx_largest));
  }
  return close_block(c, X_TOP, body, &k, 1);
}

/* The largest (`least`: the least) over k of what rises or falls with something simpler: f at that
 * one's. 0: nothing of the kind. */
static sx top_within(sc *c, sx k, sx x, bool least) {
  uint32_t q, e;
  sx m, b;
  sx_term(c, x, 0, &q, &m);
  if (sx_terms(c, x) != 1 || q != PV_ONE_Q || sx_factors(c, m) != 1) return 0;
  sx_factor(c, m, 0, &b, &e);
  const bool exponential = sc_op(c, b) == X_FN && sc_word(c, b, 0) == F_EXP,
             log = sc_op(c, b) == X_FN && sc_word(c, b, 0) == F_LOG && e == PV_ONE_Q;
  if (!exponential && !log && (e == PV_ONE_Q || !sc_has(c, b, S_POS))) return 0;
  const sx inner = exponential || log ? sc_word(c, b, 1) : b;
  if (pv_q_sign(&c->q, e) < 0) least = !least;
  const sx at = least ? sx_neg(c, sx_largest(c, k, sx_neg(c, inner))) : sx_largest(c, k, inner);
  return sx_pow(c, exponential ? sx_exp(c, at) : log ? sx_log(c, at) : at, e);
}

static sx top_monomial(sc *c, sx k, uint32_t q, sx m) {
  sx in = c->one, out = c->one, sym[MAX_BLOCK] = {k};
  uint32_t n = 1, more;
  for (size_t i = 0, l = sx_factors(c, m); i < l && !c->failed; i++) {
    sx b;
    uint32_t e;
    sx_factor(c, m, i, &b, &e);
    const bool free_of_k = !sx_occurs(c, k, b) && sc_has(c, b, S_NONNEG);
    if (free_of_k) out = sx_mul(c, out, sx_pow(c, b, e));
    else in = sx_mul(c, in, sx_pow(c, b, e));
  }
  const bool negative = pv_q_sign(&c->q, q) < 0;
  if (negative) q = pv_q_mul(&c->q, q, PV_MINUS_Q);
  out = sx_scale(c, q, out);
  const sx within = top_within(c, k, in, negative);
  if (within) return sx_mul(c, out, negative ? sx_neg(c, within) : within);
  if (negative) in = sx_neg(c, in);
  if (sc_op(c, in) == X_TOP && sc_word(c, in, 0) + 1 <= MAX_BLOCK) {
    bool moves = false;
    for (uint32_t i = 0; i < sc_word(c, in, 0); i++)
      moves |= sx_occurs(c, k, sc_word(c, in, i + 1));
    if (!moves) {
      in = sx_open(c, in, sym + 1, &more);
      n += more;
    }
  }
  return sx_mul(c, out, close_block(c, X_TOP, in, sym, n));
}

sx sx_largest(sc *c, sx k, sx body) {
  if (c->failed || k == c->zero || !sx_occurs(c, k, body)) return c->failed ? c->zero : body;
  if (c->plain) return sx_close(c, X_TOP, k, body);
  sx_over_places(c, k, &body);
  if (++c->depth > MAX_DEPTH) sc_fail(c, "binders nested too deeply");
  sx r = c->neginf, in = c->zero, out = c->zero, two;
  if (c->failed) r = c->zero;
  else if (in_two(c, k, body, sx_largest, &two)) r = two;
  else if (sx_top_guard(c, body)) r = top_ite(c, k, body);
  else if (sc_op(c, body) == X_MAX)
    for (uint32_t i = 0, n = sc_at(c, body)->n; i < n && !c->failed; i++)
      r = sx_max(c, r, sx_largest(c, k, sc_word(c, body, i)));
  else {
    for (size_t i = 0, n = sx_terms(c, body); i < n; i++) {
      uint32_t q;
      sx m;
      sx_term(c, body, i, &q, &m);
      m = sx_scale(c, q, m);
      if (sx_occurs(c, k, m)) in = sx_add(c, in, m);
      else out = sx_add(c, out, m);
    }
    if (sx_terms(c, in) == 1) {
      uint32_t q;
      sx m;
      sx_term(c, in, 0, &q, &m);
      r = top_monomial(c, k, q, m);
    } else {
      r = close_block(c, X_TOP, in, &k, 1);
    }
    r = sx_add(c, r, out);
  }
  c->depth--;
  return r;
}

/* ---- products ---- */

enum { MAX_FACTORS = 8 }; /* of a product that is written out */

/* The product over k of b^e as a power of a product over k, one block with b's own. 0: its exponent
 * is not whole. */
static sx product_of(sc *c, sx k, sx b, uint32_t e) {
  sx sym[MAX_BLOCK] = {k};
  uint32_t n = 1, more;
  int64_t times;
  if (!pv_q_is_int(&c->q, e, &times)) return 0;
  bool joins = sc_op(c, b) == X_PROD && sc_word(c, b, 0) + 1 <= MAX_BLOCK;
  for (uint32_t i = 0; joins && i < sc_word(c, b, 0); i++)
    joins = !sx_occurs(c, k, sc_word(c, b, i + 1));
  if (joins) b = sx_open(c, b, sym + 1, &more), n += more;
  return sx_pow(c, close_block(c, X_PROD, b, sym, n), e);
}

static sx product_monomial(sc *c, sx k, sx body) {
  int64_t n = 0;
  uint32_t q = PV_ONE_Q;
  sx m, r = c->one, rest = c->one;
  const bool known = sx_is_int(c, range_of(c, k), &n);
  sx_term(c, body, 0, &q, &m);
  if (known) r = sx_powi(c, sx_q(c, q), n);
  else rest = sx_q(c, q);
  for (size_t i = 0, l = m == c->one ? 0 : sx_factors(c, m); i < l && !c->failed; i++) {
    sx b;
    uint32_t e;
    sx_factor(c, m, i, &b, &e);
    const sx p =
        !sx_occurs(c, k, b) ? (known ? sx_powi(c, sx_pow(c, b, e), n) : 0) : product_of(c, k, b, e);
    if (p) r = sx_mul(c, r, p);
    else rest = sx_mul(c, rest, sx_pow(c, b, e));
  }
  return rest == c->one ? r : sx_mul(c, r, close_block(c, X_PROD, rest, &k, 1));
}

static sx product_ite(sc *c, sx k, sx body) {
  const sx g = sx_top_guard(c, body), x = sc_word(c, body, 1), y = sc_word(c, body, 2),
           high = range_of(c, k);
  cut t;
  if (!sx_occurs(c, k, g))
    return sx_ite(c, truth(c, g, NULL), sx_product(c, k, x), sx_product(c, k, y));
  if (cut_of(c, g, k, &t) && !t.point && sx_gt0(c, t.at) && sx_gt0(c, sx_sub(c, high, t.at)))
    return sx_mul(c, over(c, k, t.lower ? x : y, c->zero, t.at, sx_product),
                  over(c, k, t.lower ? y : x, t.at, sx_sub(c, high, t.at), sx_product));
  return close_block(c, X_PROD, body, &k, 1);
}

sx sx_product(sc *c, sx k, sx body) {
  int64_t n;
  sx r = c->one;
  if (c->failed || k == c->zero) return c->failed ? c->zero : body;
  if (body == c->neginf) sc_fail(c, "minus infinity in a product");
  if (sc_flags(c, body) & S_BOOL) sc_fail(c, "a product of truth values");
  if (c->plain) return sx_close(c, X_PROD, k, body);
  if (++c->depth > MAX_DEPTH) sc_fail(c, "products nested too deeply");
  if (c->failed) r = c->zero;
  else if (sx_is_int(c, range_of(c, k), &n) && n <= MAX_FACTORS)
    for (int64_t i = 0; i < n && !c->failed; i++)
      r = sx_mul(c, r, sx_subst(c, body, &(sx_map){k, sx_int(c, i)}, 1));
  else if (in_two(c, k, body, sx_product, &r)) r = c->failed ? c->zero : r;
  else if (sx_top_guard(c, body)) r = product_ite(c, k, body);
  else if (sx_terms(c, body) == 1) r = product_monomial(c, k, body);
  else r = close_block(c, X_PROD, body, &k, 1);
  c->depth--;
  return r;
}
