/* Sums, products and largest elements of which one is the other over another range: cut in two, run
 * from the end, taken as two indices or as one, or written out. */
#include "validate/prove/equal_int.h"

enum { MAX_UNROLLED = 8 };

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

bool sc_split_range(sc *c, sx u, sx v, sx *out) {
  const uint32_t n = sc_op(c, u) == X_SUM && sc_op(c, v) == X_SUM ? sc_word(c, u, 0) : 0;
  if (n == 0 || n != sc_word(c, v, 0) || c->fault.failed) return false;
  const uint32_t at = other_range(c, u, v, n);
  if (at == n || sc_word(c, u, n + 1) != sc_word(c, v, n + 1)) return false;
  const sx longer = sc_word(c, u, at + 1), shorter = sc_word(c, v, at + 1),
           rest = sx_sub(c, longer, shorter);
  if (sx_same(c, longer, shorter)) return *out = v, true;
  const sx more = rest != c->zero && sx_ge0(c, rest) ? part_of_sum(c, u, at, shorter, rest) : 0;
  if (more) *out = sx_add(c, v, more);
  return more && !c->fault.failed;
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
  const sx high = c->store.sym[sc_word(c, k, 0)].high;
  more[(*n)++] = sc_index(c, high);
  return sx_sub(c, sx_sub(c, high, c->one), more[0]);
}

static sx in_two(sc *c, sx k, sx d, sx *more, uint32_t *n) {
  sx q;
  if (!sx_divides(c, d, c->store.sym[sc_word(c, k, 0)].high, &q) || q == c->one || d == c->one)
    return k;
  more[0] = sc_index(c, q);
  more[1] = sc_index(c, d);
  *n = 2;
  return sx_add(c, sx_mul(c, more[0], d), more[1]);
}

bool sc_rewritten(sc *c, sx u, sx v) {
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

bool sc_split_anywhere(sc *c, sx u, sx v, sx *out) {
  const uint32_t n = sc_op(c, u) == X_SUM && sc_op(c, v) == X_SUM ? sc_word(c, u, 0) : 0;
  if (n == 0 || n != sc_word(c, v, 0)) return false;
  const sx a = sc_word(c, u, n + 1), b = sc_word(c, v, n + 1);
  if (sc_op(c, a) != sc_op(c, b) || sc_at(c, a)->n != sc_at(c, b)->n ||
      (sc_op(c, a) == X_LEAF && sc_word(c, a, 0) != sc_word(c, b, 0)))
    return false;
  for (uint32_t i = 0; i < n; i++)
    for (uint32_t j = 0; j < n && !c->fault.failed; j++) {
      const sx longer = sc_word(c, u, i + 1), shorter = sc_word(c, v, j + 1),
               rest = sx_sub(c, longer, shorter);
      if (rest == c->zero || !ranges_permuted(c, u, v, n, i, j) || !sx_ge0(c, rest) ||
          !sx_ge0(c, shorter))
        continue;
      const sx back = reindexed(c, v, j, from_the_end, 0);
      for (int end = 0; end < 2 && !c->fault.failed; end++) {
        const sx part = part_of_sum(c, u, i, end ? rest : c->zero, shorter);
        if (part != v && part != back) continue;
        *out = sx_add(c, v, part_of_sum(c, u, i, end ? c->zero : shorter, rest));
        return !c->fault.failed;
      }
    }
  return false;
}

bool sc_in_one(sc *c, sx u, sx v, sx *out) {
  const uint32_t n = sc_op(c, u) == X_SUM && sc_op(c, v) == X_SUM ? sc_word(c, u, 0) : 0;
  if (n == 0 || sc_word(c, v, 0) != n + 1) return false;
  for (uint32_t i = 0; i < n; i++)
    for (uint32_t j = 0; j <= n; j++)
      for (uint32_t k = 0; k < j && !c->fault.failed; k++) {
        const sx all = sx_mul(c, sc_word(c, v, j + 1), sc_word(c, v, k + 1));
        if (all == sc_word(c, u, i + 1) || !sx_ge0(c, all)) continue;
        const sx one = part_of_sum(c, u, i, c->zero, all);
        if (one && sc_rewritten(c, one, v)) return *out = one, !c->fault.failed;
      }
  return false;
}

bool sc_empty_sum(sc *c, sx u) {
  for (uint32_t i = 0, n = sc_op(c, u) == X_SUM ? sc_word(c, u, 0) : 0; i < n; i++)
    if (sx_ge0(c, sx_neg(c, sc_word(c, u, i + 1)))) return true;
  return false;
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
    const bool child = sx_is_child((sx_op)p->op, i);
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
  for (int64_t v = 0; v < high && !c->fault.failed; v++) {
    sx b = sx_subst(c, body, &(sx_map){k[at], sx_int(c, v)}, 1);
    for (uint32_t j = n; j-- > 0;)
      if (j != at) b = sum ? sx_sum(c, k[j], b) : sx_largest(c, k[j], b);
    r = v == 0 ? b : sum ? sx_add(c, r, b) : sx_max(c, r, b);
  }
  return r ? r : u;
}

sx sc_all_unrolled(sc *c, sx d) {
  for (int i = 0; i < 2 * SC_MAX_ROUNDS && !c->fault.failed; i++) {
    const sx u = small_binder_in(c, d, 0), v = u ? unrolled(c, u) : u;
    if (u == v) break;
    d = sx_subst(c, d, &(sx_map){u, v}, 1);
  }
  return d;
}

/* x with each bracket in it, which is 1 or 0, as a choice of the two. */
static sx brackets_apart(sc *c, sx x, int depth) {
  sx a[SC_MAX_ATOMS], u = 0;
  for (size_t i = 0, n = sx_top_guard(c, x) ? 0 : sc_atoms(c, x, a); i < n && !u; i++)
    if (sc_op(c, a[i]) == X_IVER) u = a[i];
  if (!u || depth == SC_MAX_ROUNDS || c->fault.failed) return x;
  const sx g = sc_word(c, u, 0), truth[3] = {g, c->yes, c->no};
  const sx holds = sc_op(c, g) == X_ITE ? g : sc_node(c, X_ITE, truth, 3);
  const sx yes = sx_subst(c, x, &(sx_map){u, c->one}, 1),
           no = sx_subst(c, x, &(sx_map){u, c->zero}, 1);
  return sx_ite(c, holds, brackets_apart(c, yes, depth + 1), brackets_apart(c, no, depth + 1));
}

/* The body of the sum v, its indices those k of u, whose ranges are v's in some order. 0: they are
 * others. */
static sx body_over(sc *c, sx u, sx v, const sx *k) {
  const uint32_t n = sc_word(c, u, 0);
  const sx closed = sc_word(c, v, n + 1);
  const uint32_t base = sc_at(c, closed)->height;
  uint32_t taken = 0;
  sx_map map[16];
  for (uint32_t j = 0; j < n; j++) {
    uint32_t i = 0;
    while (i < n && (taken >> i & 1 || sc_word(c, u, i + 1) != sc_word(c, v, j + 1))) i++;
    if (i == n) return 0;
    taken |= 1u << i;
    map[j] = (sx_map){sc_node(c, X_BOUND, &(uint32_t){base + 1 + j}, 1), k[i]};
  }
  return sx_subst(c, closed, map, n);
}

bool sc_one_body(sc *c, sx d, sx *out) {
  const size_t terms = sx_terms(c, d);
  sx first = 0, k[16], body = c->zero;
  uint32_t q, n = 0, m;
  for (size_t i = 0; i < terms && !c->fault.failed; i++) {
    sx u, own;
    sx_term(c, d, i, &q, &u);
    if (sc_op(c, u) != X_SUM || (first && sc_word(c, u, 0) != n)) return false;
    if (first) own = body_over(c, first, u, k);
    else own = sx_open(c, first = u, k, &m), n = sc_word(c, u, 0);
    if (!own || n > 16) return false;
    body = sx_add(c, body, sx_scale(c, q, brackets_apart(c, own, 0)));
  }
  *out = body;
  return terms > 1 && !c->fault.failed;
}
