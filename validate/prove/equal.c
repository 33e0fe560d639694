/* Comparing two elements: by cases over the conditions in them, then as polynomials, then atom by
 * atom, then in Z3. */
#include <string.h>

#include "validate/prove/prove_int.h"

enum { MAX_ATOMS = 64, MAX_DEEP = 5, MAX_ROUNDS = 12, MAX_UNROLLED = 8 };

static bool equal(sc *c, sx a, sx b, int deep);

/* -p < 0 for p < 0 over the reals; 0 where that is no condition of its own. */
static sx opposite(sc *c, sx g) {
  const sx t = sx_lt(c, c->zero, sc_word(c, g, 0)), h = sx_top_guard(c, t);
  return h && sc_op(c, h) == X_LT && sc_word(c, t, 1) == c->yes && sc_word(c, t, 2) == c->no ? h
                                                                                             : 0;
}

/* The condition as it stands under what is known by now: yes, no, or still open (0). */
static sx decided(sc *c, sx g) {
  for (size_t i = 0; i < c->n_path; i++)
    if (c->path[i].cond == g) return c->path[i].holds ? c->yes : c->no;
  if (sc_op(c, g) != X_LT && sc_op(c, g) != X_EQ) return 0;
  const sx other = sc_op(c, g) == X_LT ? opposite(c, g) : 0;
  for (size_t i = 0; i < c->n_path && other; i++)
    if (c->path[i].cond == other && c->path[i].holds) return c->no;
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
    if (sc_op(c, m) != X_SYM || c->sym[sc_word(c, m, 0)].role != 'x') continue;
    if (!sx_linear(c, p, m, &a, &b) || (a != c->one && a != c->minus_one)) continue;
    *out = (sx_map){m, a == c->one ? sx_neg(c, b) : b};
    return true;
  }
  return false;
}

/* Neither p < 0 nor -p < 0, or p = 0: the value of an element or attribute that is a term of p. */
static bool vanishes(sc *c, sx g, bool holds, sx *out_from, sx *out_to) {
  const sx p = sc_op(c, g) == X_LT || sc_op(c, g) == X_EQ ? sc_word(c, g, 0) : 0;
  if (!p || (sc_op(c, g) == X_EQ) != holds) return false;
  const sx other = sc_op(c, g) == X_LT ? opposite(c, g) : 0;
  bool zero = sc_op(c, g) == X_EQ;
  for (size_t i = 0; i < c->n_path && other; i++)
    zero |= c->path[i].cond == other && !c->path[i].holds;
  if (!zero && sc_has(c, p, S_INT)) zero = sx_ge0(c, p) && sx_ge0(c, sx_neg(c, p));
  for (size_t i = 0, n = sx_terms(c, p); i < n && zero; i++) {
    uint32_t q;
    sx m, a, b;
    sx_term(c, p, i, &q, &m);
    const bool attribute = sc_op(c, m) == X_SYM && c->sym[sc_word(c, m, 0)].role == 'a';
    if ((sc_op(c, m) != X_LEAF && !attribute) || !sx_linear(c, p, m, &a, &b) ||
        sc_op(c, a) != X_CONST || sx_occurs(c, m, b))
      continue;
    if (sc_has(c, p, S_INT) && a != c->one && a != c->minus_one) continue;
    *out_from = m;
    *out_to = sx_neg(c, sx_mul(c, b, sx_inv(c, a)));
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
    if (sc_op(c, m) != X_SYM || c->sym[sc_word(c, m, 0)].role != 'x' ||
        !sx_is_int(c, c->sym[sc_word(c, m, 0)].high, &high) || high > 8)
      continue;
    for (int64_t v = 0; v < high; v++)
      if (sx_same(c, m, sx_int(c, v))) return *out = (sx_map){m, sx_int(c, v)}, true;
  }
  return false;
}

static bool branch(sc *c, sx g, bool holds, sx a, sx b, int deep) {
  const size_t facts = c->n_facts, path = c->n_path;
  bool ok = true;
  if (sc_assume(c, g, holds)) {
    sx_map map;
    a = sx_cofactor(c, a, g, holds);
    b = sx_cofactor(c, b, g, holds);
    if ((holds && fixes(c, g, &map)) || pinned(c, g, &map) ||
        vanishes(c, g, holds, &map.from, &map.to))
      a = sx_subst(c, a, &map, 1), b = sx_subst(c, b, &map, 1);
    ok = equal(c, a, b, deep);
  }
  c->n_facts = facts;
  c->n_path = path;
  return ok && !c->failed;
}

/* ---- polynomials ---- */

/* D times the least power of sums that takes them out of its denominators. */
static sx without_denominators(sc *c, sx d) {
  for (int round = 0; round < MAX_ROUNDS && !c->failed; round++) {
    sx base = 0;
    uint32_t least = PV_ZERO_Q;
    for (size_t i = 0, n = sx_terms(c, d); i < n; i++) {
      uint32_t q, e;
      sx m, b;
      sx_term(c, d, i, &q, &m);
      for (size_t k = 0, l = sx_factors(c, m); k < l; k++) {
        sx_factor(c, m, k, &b, &e);
        if (sc_op(c, b) != X_ADD || pv_q_sign(&c->q, e) >= 0 || (base && b != base)) continue;
        base = b;
        if (pv_q_sign(&c->q, pv_q_add(&c->q, e, pv_q_mul(&c->q, least, PV_MINUS_Q))) < 0) least = e;
      }
    }
    if (!base) return d;
    sx r = c->zero;
    for (size_t i = 0, n = sx_terms(c, d); i < n && !c->failed; i++) {
      uint32_t q, e, mine = PV_ZERO_Q;
      sx m, b, rest = c->one;
      sx_term(c, d, i, &q, &m);
      for (size_t k = 0, l = sx_factors(c, m); k < l; k++) {
        sx_factor(c, m, k, &b, &e);
        if (b == base) mine = e;
        else rest = sx_mul(c, rest, sx_pow(c, b, e));
      }
      mine = pv_q_add(&c->q, mine, pv_q_mul(&c->q, least, PV_MINUS_Q));
      r = sx_add(c, r, sx_scale(c, q, sx_mul(c, rest, sx_pow(c, base, mine))));
    }
    d = r;
  }
  return d;
}

static size_t atoms(const sc *c, sx d, sx *out) {
  size_t n = 0;
  for (size_t i = 0, l = sx_terms(c, d); i < l; i++) {
    uint32_t q, e;
    sx m, b;
    sx_term(c, d, i, &q, &m);
    for (size_t k = 0, f = sx_factors(c, m); k < f; k++) {
      sx_factor(c, m, k, &b, &e);
      bool seen = sc_op(c, b) == X_SYM || sc_op(c, b) == X_CONST;
      for (size_t j = 0; j < n && !seen; j++) seen = out[j] == b;
      if (!seen && n < MAX_ATOMS) out[n++] = b;
    }
  }
  return n;
}

/* D with the atom u taken for v. */
static sx replaced(sc *c, sx d, sx u, sx v) {
  sx r = c->zero;
  for (size_t i = 0, n = sx_terms(c, d); i < n && !c->failed; i++) {
    uint32_t q, e;
    sx m, b, t = c->one;
    sx_term(c, d, i, &q, &m);
    for (size_t k = 0, l = sx_factors(c, m); k < l; k++) {
      sx_factor(c, m, k, &b, &e);
      t = sx_mul(c, t, sx_pow(c, b == u ? v : b, e));
    }
    r = sx_add(c, r, sx_scale(c, q, t));
  }
  return r;
}

/* Number `at` of the ranges of u, where all others are v's in their places; n: none, or several. */
static uint32_t other_range(const sc *c, sx u, sx v, uint32_t n) {
  uint32_t at = n;
  for (uint32_t i = 0; i < n; i++) {
    if (sc_word(c, u, i + 1) == sc_word(c, v, i + 1)) continue;
    if (at < n) return n;
    at = i;
  }
  return at;
}

/* The part of the sum u where its index number `at` is in [from, from + n). 0: that index has one
 * value. */
static sx part_of_sum(sc *c, sx u, uint32_t at, sx from, sx n) {
  sx k[16];
  uint32_t m;
  sx body = sx_open(c, u, k, &m);
  if (k[at] == c->zero) return 0;
  const sx i = sc_index(c, n);
  body = sx_subst(c, body, &(sx_map){k[at], sx_add(c, i, from)}, 1);
  k[at] = i;
  for (uint32_t j = m; j-- > 0;) body = sx_sum(c, k[j], body);
  return body;
}

/* Two sums that are one but for the range of one index: the longer one is the shorter one, its
 * beginning, and the rest. */
static bool split_range(sc *c, sx u, sx v, sx *out) {
  const uint32_t n = sc_op(c, u) == X_SUM && sc_op(c, v) == X_SUM ? sc_word(c, u, 0) : 0;
  if (n == 0 || n != sc_word(c, v, 0) || c->failed) return false;
  const uint32_t at = other_range(c, u, v, n);
  if (at == n || sc_word(c, u, n + 1) != sc_word(c, v, n + 1)) return false;
  const sx longer = sc_word(c, u, at + 1), shorter = sc_word(c, v, at + 1),
           rest = sx_sub(c, longer, shorter);
  if (sx_same(c, longer, shorter)) return *out = v, true;
  const sx more = rest != c->zero && sx_ge0(c, rest) ? part_of_sum(c, u, at, shorter, rest) : 0;
  if (more) *out = sx_add(c, v, more);
  return more && !c->failed;
}

/* u with one index replaced. */
static sx reindexed(sc *c, sx u, uint32_t at, sx (*to)(sc *c, sx k, sx d, sx *more, uint32_t *n),
                    sx d) {
  sx k[16], more[2];
  uint32_t m, n = 0;
  sx body = sx_open(c, u, k, &m);
  if (m > 12 || k[at] == c->zero) return u;
  const sx value = to(c, k[at], d, more, &n);
  if (n == 0) return u;
  body = sx_subst(c, body, &(sx_map){k[at], value}, 1);
  k[at] = more[0];
  if (n == 2) k[m++] = more[1];
  for (uint32_t j = m; j-- > 0;)
    body = sc_op(c, u) == X_SUM    ? sx_sum(c, k[j], body)
           : sc_op(c, u) == X_PROD ? sx_product(c, k[j], body)
                                   : sx_largest(c, k[j], body);
  return body;
}

static sx from_the_end(sc *c, sx k, sx d, sx *more, uint32_t *n) {
  (void)d;
  const sx high = c->sym[sc_word(c, k, 0)].high;
  more[(*n)++] = sc_index(c, high);
  return sx_sub(c, sx_sub(c, high, c->one), more[0]);
}
static sx in_two(sc *c, sx k, sx d, sx *more, uint32_t *n) {
  sx q;
  if (!sx_divides(c, d, c->sym[sc_word(c, k, 0)].high, &q) || q == c->one || d == c->one) return k;
  more[0] = sc_index(c, q);
  more[1] = sc_index(c, d);
  *n = 2;
  return sx_add(c, sx_mul(c, more[0], d), more[1]);
}

/* u written with v's indices: an index run from its end, or taken as two. */
static bool rewritten(sc *c, sx u, sx v) {
  if (sc_op(c, u) != sc_op(c, v) ||
      (sc_op(c, u) != X_SUM && sc_op(c, u) != X_TOP && sc_op(c, u) != X_PROD))
    return false;
  const uint32_t n = sc_word(c, u, 0), m = sc_word(c, v, 0);
  for (uint32_t i = 0; i < n && n == m; i++)
    if (reindexed(c, u, i, from_the_end, 0) == v) return true;
  for (uint32_t i = 0; i < n && m == n + 1; i++)
    for (uint32_t j = 0; j < m; j++)
      if (reindexed(c, u, i, in_two, sc_word(c, v, j + 1)) == v) return true;
  return false;
}

/* Whether the ranges of u are v's in some order, but for number i of u and number j of v. */
static bool ranges_permuted(const sc *c, sx u, sx v, uint32_t n, uint32_t i, uint32_t j) {
  uint32_t taken = 1u << j;
  for (uint32_t a = 0; a < n; a++) {
    uint32_t b = 0;
    if (a == i) continue;
    while (b < n && (taken >> b & 1 || sc_word(c, u, a + 1) != sc_word(c, v, b + 1))) b++;
    if (b == n) return false;
    taken |= 1u << b;
  }
  return true;
}

/* The same where v is the beginning of u or its end, run either way; the order of the indices in a
 * block depends on their ranges. */
static bool split_anywhere(sc *c, sx u, sx v, sx *out) {
  const uint32_t n = sc_op(c, u) == X_SUM && sc_op(c, v) == X_SUM ? sc_word(c, u, 0) : 0;
  if (n == 0 || n != sc_word(c, v, 0)) return false;
  const sx a = sc_word(c, u, n + 1), b = sc_word(c, v, n + 1);
  if (sc_op(c, a) != sc_op(c, b) || sc_at(c, a)->n != sc_at(c, b)->n ||
      (sc_op(c, a) == X_LEAF && sc_word(c, a, 0) != sc_word(c, b, 0)))
    return false;
  for (uint32_t i = 0; i < n; i++)
    for (uint32_t j = 0; j < n && !c->failed; j++) {
      const sx longer = sc_word(c, u, i + 1), shorter = sc_word(c, v, j + 1),
               rest = sx_sub(c, longer, shorter);
      if (rest == c->zero || !ranges_permuted(c, u, v, n, i, j) || !sx_ge0(c, rest) ||
          !sx_ge0(c, shorter))
        continue;
      const sx back = reindexed(c, v, j, from_the_end, 0);
      for (int end = 0; end < 2 && !c->failed; end++) {
        const sx part = part_of_sum(c, u, i, end ? rest : c->zero, shorter);
        if (part != v && part != back) continue;
        *out = sx_add(c, v, part_of_sum(c, u, i, end ? c->zero : shorter, rest));
        return !c->failed;
      }
    }
  return false;
}

/* A sum v over chunks and the places in one as a sum over all places, as u is one, however far. */
static bool in_one(sc *c, sx u, sx v, sx *out) {
  const uint32_t n = sc_op(c, u) == X_SUM && sc_op(c, v) == X_SUM ? sc_word(c, u, 0) : 0;
  if (n == 0 || sc_word(c, v, 0) != n + 1) return false;
  for (uint32_t i = 0; i < n; i++)
    for (uint32_t j = 0; j <= n; j++)
      for (uint32_t k = 0; k < j && !c->failed; k++) {
        const sx all = sx_mul(c, sc_word(c, v, j + 1), sc_word(c, v, k + 1));
        if (all == sc_word(c, u, i + 1) || !sx_ge0(c, all)) continue;
        const sx one = part_of_sum(c, u, i, c->zero, all);
        if (one && rewritten(c, one, v)) return *out = one, !c->failed;
      }
  return false;
}

static bool empty_sum(sc *c, sx u) {
  for (uint32_t i = 0, n = sc_op(c, u) == X_SUM ? sc_word(c, u, 0) : 0; i < n; i++)
    if (sx_ge0(c, sx_neg(c, sc_word(c, u, i + 1)))) return true;
  return false;
}

/* Whether some term has a root of b: then b is not negative. */
static bool has_root(const sc *c, sx d, sx base) {
  for (size_t i = 0, n = sx_terms(c, d); i < n; i++) {
    uint32_t q, e;
    sx m, b;
    sx_term(c, d, i, &q, &m);
    for (size_t k = 0, l = sx_factors(c, m); k < l; k++) {
      sx_factor(c, m, k, &b, &e);
      if (b == base && !pv_q_is_int(&c->q, e, &(int64_t){0})) return true;
    }
  }
  return false;
}

/* The powers of the product m in d as products of powers. */
static sx split_root(sc *c, sx d, sx product) {
  sx r = c->zero;
  for (size_t i = 0, n = sx_terms(c, d); i < n && !c->failed; i++) {
    uint32_t q, e, f;
    sx m, b, x, t = c->one;
    sx_term(c, d, i, &q, &m);
    for (size_t k = 0, l = sx_factors(c, m); k < l; k++) {
      sx_factor(c, m, k, &b, &e);
      if (b != product) {
        t = sx_mul(c, t, sx_pow(c, b, e));
        continue;
      }
      for (size_t j = 0, o = sx_factors(c, product); j < o; j++) {
        sx_factor(c, product, j, &x, &f);
        if (!has_root(c, d, x)) x = sx_abs(c, x);
        t = sx_mul(c, t, sx_pow(c, x, pv_q_mul(&c->q, e, f)));
      }
    }
    r = sx_add(c, r, sx_scale(c, q, t));
  }
  return r;
}

/* (x y)^q where x and y have roots of their own here, and log(x y) where they have logarithms: they
 * are not negative. Where only |x| has one it takes x's place: x y, of which there is a root, is |x
 * y|. */
static sx split_products(sc *c, sx d) {
  sx a[MAX_ATOMS];
  const size_t n = atoms(c, d, a);
  for (size_t i = 0; i < n && !c->failed; i++) {
    const bool log = sc_op(c, a[i]) == X_FN && sc_word(c, a[i], 0) == F_LOG;
    const sx m = log ? sc_word(c, a[i], 1) : a[i];
    bool all = sc_op(c, m) == X_MUL;
    sx parts = c->zero;
    for (size_t k = 0, l = sx_factors(c, m); k < l && all; k++) {
      sx b;
      uint32_t e;
      sx_factor(c, m, k, &b, &e);
      const sx size = sx_abs(c, b), plain = sc_node(c, X_FN, (uint32_t[2]){F_LOG, b}, 2),
               of_size = sc_node(c, X_FN, (uint32_t[2]){F_LOG, size}, 2);
      sx own = 0;
      all = !log && (has_root(c, d, b) || has_root(c, d, size));
      for (size_t j = 0; j < n && log && !all; j++) {
        all = a[j] == plain || a[j] == of_size;
        if (all) own = a[j];
      }
      if (log && all) parts = sx_add(c, parts, sx_scale(c, e, own));
    }
    if (all) return log ? replaced(c, d, a[i], parts) : split_root(c, d, m);
  }
  return d;
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
  switch ((sx_op)p.op) {
  case X_FN:
    if (sc_word(c, u, 0) != sc_word(c, v, 0)) return false;
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

/* Whether some term of d divides by all that the monomial `inverse` divides by. */
static bool divides_by(const sc *c, sx d, sx inverse) {
  for (size_t i = 0, n = sx_terms(c, d); i < n; i++) {
    uint32_t q, e;
    sx m, b, want;
    bool all = true;
    sx_term(c, d, i, &q, &m);
    for (size_t j = 0, l = sx_factors(c, inverse); j < l && all; j++) {
      sx_factor(c, inverse, j, &want, &e);
      bool found = false;
      for (size_t k = 0, f = sx_factors(c, m); k < f; k++) {
        sx_factor(c, m, k, &b, &e);
        found |= b == want && pv_q_sign(&c->q, e) < 0;
      }
      all = found;
    }
    if (all) return true;
  }
  return false;
}

/* 1/s written with care for s = 0 is 1/s where the other side divides by s. */
static sx plain_inverses(sc *c, sx d) {
  sx a[MAX_ATOMS], m;
  uint32_t q;
  const size_t n = atoms(c, d, a);
  for (size_t i = 0; i < n && !c->failed; i++) {
    if (sc_op(c, a[i]) != X_FN || sc_word(c, a[i], 0) != F_SAFE_INV) continue;
    const sx inverse = sx_inv(c, sc_word(c, a[i], 1));
    sx_term(c, inverse, 0, &q, &m);
    if (sx_terms(c, inverse) == 1 && sx_factors(c, m) && divides_by(c, d, m))
      return replaced(c, d, a[i], inverse);
  }
  return d;
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
    const bool child = p->op == X_ADD   ? i & 1
                       : p->op == X_MUL ? !(i & 1)
                                        : (p->op != X_FN && p->op != X_LEAF) || i > 0;
    const sx r = child ? choice_in(c, sc_word(c, x, i), depth + 1) : 0;
    if (r) return r;
  }
  return choice ? x : 0;
}

static bool by_choice(sc *c, sx d, sx m, int deep) {
  sx cond, x, y;
  if (sc_op(c, m) == X_MAX) {
    sx rest = sc_word(c, m, 1);
    for (uint32_t i = 2; i < sc_at(c, m)->n; i++) rest = sx_max(c, rest, sc_word(c, m, i));
    x = sc_word(c, m, 0), y = rest;
    cond = sx_lt(c, x, y);
    return equal(c, sx_subst(c, d, &(sx_map){m, sx_ite(c, cond, y, x)}, 1), c->zero, deep);
  }
  x = sc_word(c, m, 1);
  cond = sx_lt(c, x, c->zero);
  y = sx_neg(c, x);
  if (sc_word(c, m, 0) == F_TRUNC) y = sx_neg(c, sx_fn(c, F_FLOOR, y)), x = sx_fn(c, F_FLOOR, x);
  return equal(c, sx_subst(c, d, &(sx_map){m, sx_ite(c, cond, y, x)}, 1), c->zero, deep);
}

/* A sum or maximum with an index of few values, anywhere in x but within another. */
static sx small_binder_in(const sc *c, sx x, int depth) {
  const sx_node *p = sc_at(c, x);
  int64_t high;
  if (depth > 12 || p->op == X_PROD || p->op == X_ROW || p->op == X_CONST || p->op == X_SYM ||
      p->op == X_BOUND || p->op == X_LEAF)
    return 0;
  if (p->op == X_SUM || p->op == X_TOP) {
    for (uint32_t i = 0; i < sc_word(c, x, 0); i++)
      if (sx_is_int(c, sc_word(c, x, i + 1), &high) && high <= MAX_UNROLLED) return x;
    return 0;
  }
  for (uint32_t i = 0; i < p->n; i++) {
    const bool child = p->op == X_ADD ? i & 1 : p->op == X_MUL ? !(i & 1) : p->op != X_FN || i > 0;
    const sx r = child ? small_binder_in(c, sc_word(c, x, i), depth + 1) : 0;
    if (r) return r;
  }
  return 0;
}

/* u with one such index given each of its values. */
static sx unrolled(sc *c, sx u) {
  const bool sum = sc_op(c, u) == X_SUM;
  sx k[16], r = 0;
  uint32_t n, at = 0;
  int64_t high = 0;
  const sx body = sx_open(c, u, k, &n);
  while (at < n && !(sx_is_int(c, sc_word(c, u, at + 1), &high) && high <= MAX_UNROLLED)) at++;
  if (at == n || k[at] == c->zero) return u;
  for (int64_t v = 0; v < high && !c->failed; v++) {
    sx b = sx_subst(c, body, &(sx_map){k[at], sx_int(c, v)}, 1);
    for (uint32_t j = n; j-- > 0;)
      if (j != at) b = sum ? sx_sum(c, k[j], b) : sx_largest(c, k[j], b);
    r = v == 0 ? b : sum ? sx_add(c, r, b) : sx_max(c, r, b);
  }
  return r ? r : u;
}

static sx all_unrolled(sc *c, sx d) {
  for (int i = 0; i < 2 * MAX_ROUNDS && !c->failed; i++) {
    const sx u = small_binder_in(c, d, 0), v = u ? unrolled(c, u) : u;
    if (u == v) break;
    d = sx_subst(c, d, &(sx_map){u, v}, 1);
  }
  return d;
}

static bool is_angle(const sc *c, sx a) {
  return sc_op(c, a) == X_FN && (sc_word(c, a, 0) == F_SIN || sc_word(c, a, 0) == F_COS);
}

/* d times the powers of sines and cosines that it divides by. */
static sx without_angles_below(sc *c, sx d) {
  sx a[MAX_ATOMS];
  for (size_t i = 0, n = atoms(c, d, a); i < n && !c->failed; i++) {
    uint32_t least = PV_ZERO_Q, q, e;
    sx m, b;
    for (size_t k = 0, l = is_angle(c, a[i]) ? sx_terms(c, d) : 0; k < l; k++) {
      sx_term(c, d, k, &q, &m);
      for (size_t j = 0, f = sx_factors(c, m); j < f; j++) {
        sx_factor(c, m, j, &b, &e);
        if (b == a[i] &&
            pv_q_sign(&c->q, pv_q_add(&c->q, e, pv_q_mul(&c->q, least, PV_MINUS_Q))) < 0)
          least = e;
      }
    }
    if (least != PV_ZERO_Q) d = sx_mul(c, d, sx_pow(c, a[i], pv_q_mul(&c->q, least, PV_MINUS_Q)));
  }
  return d;
}

/* The least part of m that all angles in d have whole multiples of: 1 / the least common
 * denominator. */
static uint32_t unit_of(sc *c, const sx *a, size_t n, sx m) {
  int64_t all = 1;
  for (size_t i = 0; i < n; i++) {
    for (size_t k = 0, l = is_angle(c, a[i]) ? sx_terms(c, sc_word(c, a[i], 1)) : 0; k < l; k++) {
      uint32_t q;
      sx t;
      int64_t whole;
      sx_term(c, sc_word(c, a[i], 1), k, &q, &t);
      while (t == m && all < 16 &&
             !pv_q_is_int(&c->q, pv_q_mul(&c->q, q, pv_q_int(&c->q, all)), &whole))
        all++;
    }
  }
  return all < 16 ? pv_q_pow(&c->q, pv_q_int(&c->q, all), -1) : PV_ONE_Q;
}

/* sin(a + b) and cos(a + b) by those of a and b, and sin^2 as 1 - cos^2. */
static sx angles_apart(sc *c, sx d) {
  sx a[MAX_ATOMS], m;
  uint32_t q;
  int64_t times;
  bool found = false;
  for (int round = 0; round < 3 * MAX_ROUNDS && !c->failed; round++) {
    const size_t n = atoms(c, d, a);
    size_t i = 0;
    sx x = 0, first = 0;
    for (; i < n; i++) {
      if (!is_angle(c, a[i])) continue;
      x = sc_word(c, a[i], 1);
      sx_term(c, x, 0, &q, &m);
      const uint32_t unit = unit_of(c, a, n, m);
      const bool whole =
          pv_q_is_int(&c->q, pv_q_mul(&c->q, q, pv_q_pow(&c->q, unit, -1)), &times) &&
          (times > 1 || times < -1) && times < 9 && times > -9;
      first = whole ? sx_scale(c, unit, m) : sx_scale(c, q, m);
      found = true;
      if (sx_is_long(c, x) || whole) break;
    }
    if (i == n) break;
    const sx rest = sx_sub(c, x, first), sa = sx_fn(c, F_SIN, first), ca = sx_fn(c, F_COS, first),
             sb = sx_fn(c, F_SIN, rest), cb = sx_fn(c, F_COS, rest);
    const bool sine = sc_word(c, a[i], 0) == F_SIN;
    d = replaced(c, d, a[i],
                 sine ? sx_add(c, sx_mul(c, sa, cb), sx_mul(c, ca, sb))
                      : sx_sub(c, sx_mul(c, ca, cb), sx_mul(c, sa, sb)));
  }
  if (found) d = without_angles_below(c, without_denominators(c, d));
  sx r = c->zero;
  for (size_t i = 0, n = sx_terms(c, d); found && i < n && !c->failed; i++) {
    sx t = c->one, b;
    uint32_t e;
    sx_term(c, d, i, &q, &m);
    for (size_t k = 0, l = sx_factors(c, m); k < l; k++) {
      sx_factor(c, m, k, &b, &e);
      const bool square = sc_op(c, b) == X_FN && sc_word(c, b, 0) == F_SIN &&
                          pv_q_is_int(&c->q, e, &times) && times >= 2 && times < 8;
      if (!square) {
        t = sx_mul(c, t, sx_pow(c, b, e));
        continue;
      }
      const sx cosine = sx_fn(c, F_COS, sc_word(c, b, 1)),
               rest = sx_sub(c, c->one, sx_powi(c, cosine, 2));
      t = sx_mul(c, sx_mul(c, t, sx_powi(c, rest, times / 2)), sx_powi(c, b, times % 2));
    }
    r = sx_add(c, r, sx_scale(c, q, t));
  }
  return found ? r : d;
}

/* x^e and (x y)^e by other powers in d, which are of the same sides and therefore defined: e^(y log
 * x), 1 / x^-e, x^(e - k) x^k, x^a x^(e - a), x^e y^e. 0: by none. */
static sx by_powers(sc *c, const sx *a, size_t n, sx p) {
  const sx x = sc_word(c, p, 1), e = sc_word(c, p, 2),
           log = sc_node(c, X_FN, (uint32_t[2]){F_LOG, x}, 2);
  for (size_t i = 0; i < n; i++)
    if (sx_occurs(c, log, a[i])) return sx_exp(c, sx_mul(c, e, log));
  for (size_t i = 0; i < n && !c->failed; i++) {
    if (a[i] == p || sc_op(c, a[i]) != X_FN || sc_word(c, a[i], 0) != F_POW) continue;
    const sx y = sc_word(c, a[i], 1), f = sc_word(c, a[i], 2);
    int64_t k;
    if (x == y) {
      const sx rest = sx_sub(c, e, f), other = sc_node(c, X_FN, (uint32_t[3]){F_POW, x, rest}, 3);
      if (sx_is_int(c, rest, &k) && k > 0) return sx_mul(c, a[i], sx_powi(c, x, k));
      if (sx_add(c, e, f) == c->zero) return e < f ? sx_inv(c, a[i]) : 0;
      for (size_t j = 0; j < n; j++)
        if (a[j] == other) return sx_mul(c, a[i], other);
    } else if (e == f && sx_factors(c, x) > 1) {
      const sx z = sx_mul(c, x, sx_inv(c, y)),
               other = sc_node(c, X_FN, (uint32_t[3]){F_POW, z, e}, 3);
      for (size_t j = 0; j < n; j++)
        if (a[j] == other) return sx_mul(c, a[i], other);
    }
  }
  return 0;
}

static sx powers_apart(sc *c, sx d) {
  for (int round = 0; round < MAX_ROUNDS && !c->failed; round++) {
    sx a[MAX_ATOMS], v = 0;
    const size_t n = atoms(c, d, a);
    for (size_t i = 0; i < n && !v; i++) {
      if (sc_op(c, a[i]) != X_FN || sc_word(c, a[i], 0) != F_POW) continue;
      v = by_powers(c, a, n, a[i]);
      if (v) d = replaced(c, d, a[i], v);
    }
    if (!v) break;
  }
  return d;
}

/* P + R sqrt(b) = 0 for P >= 0 >= R, or the other way: P^2 = R^2 b. false: not of that form. */
static bool by_square(sc *c, sx d, int deep) {
  sx root = 0, p = c->zero, r = c->zero, b;
  const uint32_t half = pv_q_pow(&c->q, pv_q_int(&c->q, 2), -1);
  uint32_t q, e;
  for (size_t i = 0, n = sx_terms(c, d); i < n && !c->failed; i++) {
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
  if (!root || p == c->zero || c->failed) return false;
  const bool signs = (sc_has(c, p, S_NONNEG) && sc_has(c, sx_neg(c, r), S_NONNEG)) ||
                     (sc_has(c, r, S_NONNEG) && sc_has(c, sx_neg(c, p), S_NONNEG));
  return signs && equal(c, sx_powi(c, p, 2), sx_mul(c, sx_powi(c, r, 2), root), deep);
}

/* The element of a row that stands at the place of its largest or smallest one, as that. */
static sx extremes(sc *c, sx d) {
  sx a[MAX_ATOMS];
  const size_t n = atoms(c, d, a);
  for (size_t i = 0; i < n && !c->failed; i++) {
    if (sc_op(c, a[i]) != X_LEAF) continue;
    sx idx[RULE_MAX_RANK], k[8];
    const uint32_t rank = sc_at(c, a[i])->n - 1, var = sc_word(c, a[i], 0);
    for (uint32_t j = 0; j < rank; j++) {
      const sx at = sc_word(c, a[i], j + 1),
               row = sc_op(c, at) == X_FN && sc_word(c, at, 0) == F_PLACE ? sc_word(c, at, 2) : 0;
      uint32_t m;
      if (!row || sc_word(c, at, 1) != c->zero) continue;
      for (uint32_t l = 0; l < rank; l++) idx[l] = sc_word(c, a[i], l + 1);
      const sx body = sx_open(c, row, k, &m);
      idx[j] = k[0];
      const sx x = sx_leaf(c, var, idx, rank), least = sx_neg(c, x);
      if (body == x) d = replaced(c, d, a[i], sx_largest(c, k[0], x));
      else if (body == least) d = replaced(c, d, a[i], sx_neg(c, sx_largest(c, k[0], least)));
      break;
    }
  }
  return d;
}

/* q log a + r log b + ... + rest = 0 where a^q b^r ... = e^-rest: what has a logarithm is positive.
 * false: no such sum. */
static bool by_logarithms(sc *c, sx d, int deep) {
  sx product = c->one, rest = c->zero;
  size_t logs = 0;
  for (size_t i = 0, n = sx_terms(c, d); i < n && !c->failed; i++) {
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
  return logs > 0 && logs < 6 && !c->failed && equal(c, product, sx_exp(c, sx_neg(c, rest)), deep);
}

/* A floor of integers anywhere in x, none within it. */
static sx quotient_in(const sc *c, sx x, int depth) {
  const sx_node *p = sc_at(c, x);
  if (depth > 12 || p->op == X_SUM || p->op == X_TOP || p->op == X_ROW || p->op == X_CONST ||
      p->op == X_SYM || p->op == X_BOUND)
    return 0;
  for (uint32_t i = 0; i < p->n; i++) {
    const bool child = p->op == X_ADD   ? i & 1
                       : p->op == X_MUL ? !(i & 1)
                                        : (p->op != X_FN && p->op != X_LEAF) || i > 0;
    const sx r = child ? quotient_in(c, sc_word(c, x, i), depth + 1) : 0;
    if (r) return r;
  }
  return p->op == X_DIV ? x : 0;
}

/* The floors in d as they are under what is known by now. */
static sx quotients_now(sc *c, sx d) {
  for (int i = 0; i < MAX_ROUNDS && !c->failed; i++) {
    const sx u = quotient_in(c, d, 0);
    sx v = u ? sx_div(c, sc_word(c, u, 0), sc_word(c, u, 1)) : u;
    if (u == v && u)
      v = sx_same(c, u, c->zero) ? c->zero : sx_same(c, u, c->minus_one) ? c->minus_one : u;
    if (u == v) break;
    d = sx_subst(c, d, &(sx_map){u, v}, 1);
  }
  return d;
}

enum { MAX_MODULUS = 16, MAX_RESIDUES = 72 };

/* An integer element by which the remainder of a polynomial by a small number goes. */
static sx element_in(const sc *c, sx p) {
  sx a[MAX_ATOMS];
  for (size_t i = 0, n = atoms(c, p, a); i < n; i++)
    if (sc_op(c, a[i]) == X_LEAF && sc_has(c, a[i], S_INT)) return a[i];
  return 0;
}

/* floor(p / k) for each remainder by k of an element in p. false: that is no way. */
static bool by_residues(sc *c, sx d, int deep) {
  const sx u = quotient_in(c, d, 0), x = u ? element_in(c, sc_word(c, u, 0)) : 0;
  int64_t k;
  if (!x || !sx_is_int(c, sc_word(c, u, 1), &k) || k > MAX_MODULUS ||
      c->residues * k > MAX_RESIDUES)
    return false;
  const sx times = sc_symbol(c, "times", 'q', S_INT | (sc_flags(c, x) & S_NONNEG));
  c->residues *= k;
  bool ok = !c->failed;
  for (int64_t r = 0; r < k && ok; r++)
    ok = equal(
        c,
        sx_subst(c, d,
                 &(sx_map){x, sx_add(c, sx_scale(c, pv_q_int(&c->q, k), times), sx_int(c, r))}, 1),
        c->zero, deep);
  c->residues /= k;
  return ok;
}

static bool zero(sc *c, sx d, int deep) {
  d = split_products(c, without_denominators(c, plain_inverses(c, extremes(c, d))));
  for (int round = 0; round < MAX_ROUNDS && !c->failed; round++) {
    sx a[MAX_ATOMS], v;
    if (d == c->zero) return true;
    if (sx_top_guard(c, d)) return equal(c, d, c->zero, deep - 1);
    const size_t n = atoms(c, d, a);
    bool changed = false;
    for (size_t i = 0; i < n && !changed && !c->failed; i++)
      for (size_t k = 0; k < n && !changed && !c->failed; k++) {
        if (i == k) continue;
        if (split_range(c, a[i], a[k], &v)) d = replaced(c, d, a[i], v), changed = true;
        else if (rewritten(c, a[i], a[k])) d = replaced(c, d, a[i], a[k]), changed = true;
        else if (i < k && deep > 0 && unify(c, a[i], a[k], deep - 1))
          d = replaced(c, d, a[k], a[i]), changed = true;
      }
    for (size_t i = 0; i < n && !changed && !c->failed; i++) {
      if (empty_sum(c, a[i])) d = replaced(c, d, a[i], c->zero), changed = true;
      for (size_t k = 0; k < n && !changed && !c->failed; k++)
        if (i != k && (split_anywhere(c, a[i], a[k], &v) || in_one(c, a[k], a[i], &v)))
          d = replaced(c, d, a[i], v), changed = true;
    }
    if (!changed) break;
    d = without_denominators(c, d);
  }
  if (d == c->zero || c->failed) return !c->failed;
  d = powers_apart(c, angles_apart(c, d));
  if (d == c->zero) return true;
  if (deep > 0 && by_square(c, d, deep - 1)) return true;
  if (c->failed) return false;
  if (deep > 0) {
    const sx u = all_unrolled(c, d);
    if (c->failed) return false;
    if (u != d) return equal(c, u, c->zero, deep - 1);
    const sx m = choice_in(c, d, 0);
    if (m) return by_choice(c, d, m, deep - 1);
    const sx now = c->n_path ? quotients_now(c, d) : d;
    if (now != d) return equal(c, now, c->zero, deep - 1);
    if (by_logarithms(c, d, deep - 1) || (deep > 1 && by_residues(c, d, deep - 1))) return true;
  }
  return sc_z3_equal(c, d, c->zero);
}

static bool equal(sc *c, sx a, sx b, int deep) {
  if (a == b) return true;
  if (c->failed || deep < 0 || !sc_work(c, 200)) return false;
  const sx g = sx_top_guard(c, a), h = sx_top_guard(c, b);
  if (g || h) {
    const sx t = !h || (g && g < h) ? g : h, known = decided(c, t);
    if (known)
      return equal(c, sx_cofactor(c, a, t, known == c->yes), sx_cofactor(c, b, t, known == c->yes),
                   deep);
    if (c->n_path > 40) return false;
    return branch(c, t, true, a, b, deep) && branch(c, t, false, a, b, deep);
  }
  if ((sc_flags(c, a) & S_BOOL) || (sc_flags(c, b) & S_BOOL) || a == c->neginf || b == c->neginf)
    return c->n_path > 0 && !sc_z3_possible(c, NULL, 0);
  return zero(c, sx_sub(c, a, b), deep);
}

bool sc_equal(sc *c, sx a, sx b) { return equal(c, a, b, MAX_DEEP) && !c->failed; }
