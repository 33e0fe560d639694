/* Instances of the axioms of sums: splits at a bound, arithmetic, ranges that are products,
 * exchange, congruence. */
#include "validate/smt/obligation_int.h"

/* The sum of body over `n` values of k from `from` on. */
static sx part(sc *c, sx op, sx k, sx body, sx from, sx n) {
  if (n == c->zero) return c->zero;
  const sx i = sc_index(c, n);
  body = sx_subst(c, body, &(sx_map){k, sx_add(c, i, from)}, 1);
  return i == c->zero ? body : sx_close(c, (sx_op)op, i, body);
}

static void equal_to(smt_writer *w, sx s, sx r, const char *why) {
  const smt_name a = smt_real(w, s), b = smt_real(w, r);
  smt_line(w, "(assert (= %s %s)) ; %s\n", a.s, b.s, why);
}

/* A range cut at `at`: below it and above it. */
static void split(smt_writer *w, sx s, sx k, sx body, sx high, sx at) {
  sc *c = w->c;
  const sx zero = c->zero;
  const smt_name cut = smt_write(w, at), n = smt_write(w, high), whole = smt_real(w, s);
  const bool above = sx_ge0(c, at), below = sx_ge0(c, sx_sub(c, high, at));
  const smt_name low = smt_real(w, part(c, X_SUM, k, body, zero, at)),
                 up = smt_real(w, part(c, X_SUM, k, body, at, sx_sub(c, high, at)));
  smt_line(w, "(assert (=> (and (<= 0 %s) (<= %s %s)) (= %s (+ %s %s)))) ; split at %s\n", cut.s,
           cut.s, n.s, whole.s, low.s, up.s, cut.s);
  if (above && below) return;
  const size_t facts = c->here.n_facts;
  if (facts + 1 >= SC_MAX_FACTS) return;
  if (!below) {
    c->here.fact[c->here.n_facts++] = sx_sub(c, at, high); /* wholly below */
    const smt_name r = smt_real(w, part(c, X_SUM, k, body, zero, high));
    smt_line(w, "(assert (=> (>= %s %s) (= %s %s))) ; wholly below %s\n", cut.s, n.s, whole.s, r.s,
             cut.s);
    c->here.n_facts = facts;
  }
  if (!above) {
    c->here.fact[c->here.n_facts++] = sx_neg(c, at);
    const smt_name r = smt_real(w, part(c, X_SUM, k, body, zero, high));
    smt_line(w, "(assert (=> (<= %s 0) (= %s %s))) ; wholly above %s\n", cut.s, whole.s, r.s,
             cut.s);
    c->here.n_facts = facts;
  }
}

/* Factors of a product as it is written. */
static size_t factors(sc *c, sx x, sx *out, size_t n, size_t cap) {
  if (sc_op(c, x) == X_FN && sc_word(c, x, 0) == F_MUL) {
    n = factors(c, sc_word(c, x, 1), out, n, cap);
    return factors(c, sc_word(c, x, 2), out, n, cap);
  }
  if (smt_is_fn(c, x, F_EXP) && smt_is_fn(c, sc_word(c, x, 1), F_ADD)) { /* e^(a + b) = e^a e^b */
    const sx a = sc_word(c, x, 1);
    n = factors(c, sc_node(c, X_FN, (uint32_t[2]){F_EXP, sc_word(c, a, 1)}, 2), out, n, cap);
    return factors(c, sc_node(c, X_FN, (uint32_t[2]){F_EXP, sc_word(c, a, 2)}, 2), out, n, cap);
  }
  if (n < cap) out[n] = x;
  return n + 1;
}

static sx times_all(sc *c, const sx *x, size_t n) {
  sx r = c->one;
  for (size_t i = 0; i < n; i++) r = sx_mul(c, r, x[i]);
  return r;
}

/* Indices of the sums around one. */
typedef struct around {
  sx k;
  const struct around *next;
} around;

static bool moves(const sc *c, const around *k, sx x) {
  for (; k; k = k->next)
    if (sx_occurs(c, k->k, x)) return true;
  return false;
}

/* Sums of a sum, of a product with a factor that does not move with the index or that is a sum, and
 * of a sum of such, by the rules of arithmetic. Returns: an expression equal to the sum of body
 * over k, and why; 0: none. In nested sums all factors that move with any of the indices stay
 * innermost, so that the sums can change places. `whole`: factors that move are not multiplied
 * out. */
static sx by_arithmetic(sc *c, sx k, sx body, const around *outside, bool whole, const char **why) {
  const around here = {k, outside};
  sx f[32], in[32], out[32];
  const size_t n = factors(c, body, f, 0, 32);
  size_t n_in = 0, n_out = 0;
  if (sc_op(c, body) == X_FN && sc_word(c, body, 0) == F_ADD) {
    *why = "linearity";
    return sx_fn2(c, F_ADD, sx_close(c, X_SUM, k, sc_word(c, body, 1)),
                  sx_close(c, X_SUM, k, sc_word(c, body, 2)));
  }
  if (sc_op(c, body) == X_SUM) {
    sx j[8];
    uint32_t m;
    const sx inner = sx_open(c, body, j, &m),
             r = m == 1 && j[0] != c->zero && !sx_top_guard(c, inner)
                     ? by_arithmetic(c, j[0], inner, &here, whole, why)
                     : 0;
    return r ? sx_close(c, X_SUM, k, r) : 0;
  }
  if (n > 32) return 0;
  for (size_t i = 0; i < n; i++)
    if (moves(c, &here, f[i])) in[n_in++] = f[i];
    else out[n_out++] = f[i];
  if (n_out > 0) {
    const sx rest =
        n_in ? sx_close(c, X_SUM, k, times_all(c, in, n_in)) : c->store.sym[sc_word(c, k, 0)].high;
    *why = "a factor that does not move with the index";
    return sx_fn2(c, F_MUL, times_all(c, out, n_out), rest);
  }
  if (whole) return 0;
  for (size_t i = 0; i < n_in && n_in > 1; i++) {
    if (sc_op(c, in[i]) != X_FN || sc_word(c, in[i], 0) != F_ADD) continue;
    const sx sum = in[i];
    *why = "multiplied out, linearity";
    in[i] = sc_word(c, sum, 1);
    const sx one = sx_close(c, X_SUM, k, times_all(c, in, n_in));
    in[i] = sc_word(c, sum, 2);
    return sx_fn2(c, F_ADD, one, sx_close(c, X_SUM, k, times_all(c, in, n_in)));
  }
  /* A sum among the factors: everything goes into it, and the two sums change places. */
  for (size_t i = 0; i < n_in && n_in > 1; i++) {
    sx j[8];
    uint32_t m;
    if (sc_op(c, in[i]) != X_SUM) continue;
    const sx inner = sx_open(c, in[i], j, &m);
    if (m != 1 || j[0] == c->zero || sx_occurs(c, k, c->store.sym[sc_word(c, j[0], 0)].high))
      continue;
    in[i] = inner;
    *why = "factors into the inner sum";
    return sx_close(c, X_SUM, k, sx_close(c, X_SUM, j[0], times_all(c, in, n_in)));
  }
  return 0;
}

sx smt_factored(sc *c, sx s) {
  sx k[8];
  uint32_t n;
  if (sc_op(c, s) != X_SUM || sc_word(c, s, 0) != 1) return 0;
  const sx body = sx_open(c, s, k, &n),
           high = n == 1 && k[0] != c->zero ? c->store.sym[sc_word(c, k[0], 0)].high : 0;
  const char *why = "";
  if (!high || sx_top_guard(c, body) || sc_op(c, body) == X_SUM) return 0;
  const sx r = by_arithmetic(c, k[0], body, NULL, false, &why);
  return r && r != s && (*why == 'a' || *why == 'l') ? r : 0; /* "a factor ...", "linearity" */
}

/* Two nested sums, and the index and range of the inner one. false: `body` is no sum over one
 * index, or its range moves with k. */
static bool nested(sc *c, sx k, sx body, sx *j, sx *inner, sx *range) {
  sx in[8];
  uint32_t m;
  if (sc_op(c, body) != X_SUM) return false;
  *inner = sx_open(c, body, in, &m);
  if (m != 1 || in[0] == c->zero) return false;
  *j = in[0];
  *range = c->store.sym[sc_word(c, in[0], 0)].high;
  return !sx_occurs(c, k, *range);
}

static bool exchange(smt_writer *w, sx s, sx k, sx body) {
  sc *c = w->c;
  sx j, inner, other;
  const sx high = c->store.sym[sc_word(c, k, 0)].high;
  if (!nested(c, k, body, &j, &inner, &other)) return false;
  if (sc_at(c, high)->hash <= sc_at(c, other)->hash) return false; /* one order is enough */
  equal_to(w, s, sx_close(c, X_SUM, j, sx_close(c, X_SUM, k, inner)), "sums exchanged");
  return true;
}

/* The sum over u and v of a body in which they are one index, n u + v for v in [0, n). 0: they are
 * not. */
static sx as_one(sc *c, sx u, sx v, sx body) {
  const sx m = c->store.sym[sc_word(c, u, 0)].high, n = c->store.sym[sc_word(c, v, 0)].high,
           k = sc_index(c, sx_mul(c, m, n));
  sx d;
  if (k == c->zero || c->fault.failed) return 0;
  const sx_map to[] = {{u, sx_div(c, k, n)}, {v, sx_mod(c, k, n)}};
  const sx one = sx_subst(c, body, to, 2);
  return sx_apart_at(c, one, k, &d) ? 0 : sx_close(c, X_SUM, k, one);
}

/* Nested sums over the two digits of an index are one over that index. */
static bool join(smt_writer *w, sx s, sx k, sx body) {
  sc *c = w->c;
  sx j, inner, other, r;
  if (!nested(c, k, body, &j, &inner, &other)) return false;
  if (!(r = as_one(c, k, j, inner))) r = as_one(c, j, k, inner);
  if (r) equal_to(w, s, r, "two ranges whose product is one");
  return r;
}

static bool is_open(const sc *c, sx x) {
  const sx_node *p = sc_at(c, x);
  if (p->op == X_BOUND) return true;
  if (p->op == X_CONST || p->op == X_SYM) return false;
  for (uint32_t i = p->op == X_LEAF || p->op == X_FN || p->op == X_SUM || p->op == X_TOP; i < p->n;
       i++) {
    const bool child = p->op == X_ADD ? i & 1 : p->op == X_MUL ? !(i & 1) : true;
    if (child && is_open(c, sc_word(c, x, i))) return true;
  }
  return false;
}

/* A bound within the body at which a condition on the index changes, none that moves with the index
 * of a sum within. */
static bool find_cut(sc *c, sx x, sx k, sx *at, int depth) {
  const sx_node p = *sc_at(c, x);
  bool lower;
  if (depth > 40 || !sx_occurs(c, k, x)) return false;
  if (p.op == X_LT || p.op == X_EQ) return sx_cuts(c, x, k, at, &lower) && !is_open(c, *at);
  if (p.op != X_FN && p.op != X_ITE && p.op != X_MAX && p.op != X_SUM) return false;
  for (uint32_t i = p.op == X_FN ? 1 : p.op == X_SUM ? sc_word(c, x, 0) + 1 : 0; i < p.n; i++)
    if (find_cut(c, sc_word(c, x, i), k, at, depth + 1)) return true;
  return false;
}

/* The inner one of two nested sums cut where a condition on its own index changes. */
static bool split_inner(smt_writer *w, sx s, sx k, sx body) {
  sc *c = w->c;
  sx j, inner, high, at;
  if (!nested(c, k, body, &j, &inner, &high) || !find_cut(c, inner, j, &at, 0) ||
      sx_occurs(c, k, at) || !sx_ge0(c, at) || !sx_ge0(c, sx_sub(c, high, at)))
    return false;
  const sx low = sx_close(c, X_SUM, k, part(c, X_SUM, j, inner, c->zero, at)),
           up = sx_close(c, X_SUM, k, part(c, X_SUM, j, inner, at, sx_sub(c, high, at)));
  equal_to(w, s, sx_fn2(c, F_ADD, low, up), "inner sums split");
  return true;
}

/* A condition on whole numbers within the body that has none of its indices. */
static sx find_fixed(const sc *c, sx x, sx k, int depth) {
  const sx_node p = *sc_at(c, x);
  if (depth > 60 || p.op == X_CONST || p.op == X_SYM || p.op == X_BOUND || p.op == X_LEAF) return 0;
  if (p.op == X_LT)
    return sc_has(c, sc_word(c, x, 0), S_INT) && !sx_occurs(c, k, x) && !is_open(c, x) ? x : 0;
  for (uint32_t i = p.op == X_FN || p.op == X_SUM || p.op == X_TOP; i < p.n; i++) {
    const bool child = p.op == X_ADD ? i & 1 : p.op == X_MUL ? !(i & 1) : true;
    const sx g = child ? find_fixed(c, sc_word(c, x, i), k, depth + 1) : 0;
    if (g) return g;
  }
  return 0;
}

static size_t symbols_in(const sc *c, sx x, sx_map *map, size_t n, size_t cap) {
  const sx_node p = *sc_at(c, x);
  if (p.op == X_SYM) {
    for (size_t i = 0; i < n; i++)
      if (map[i].from == x) return n;
    if (n < cap) map[n++] = (sx_map){x, x};
    return n;
  }
  if (p.op == X_CONST || p.op == X_BOUND) return n;
  for (uint32_t i = p.op == X_LEAF || p.op == X_FN || p.op == X_SUM || p.op == X_TOP; i < p.n; i++)
    if (p.op == X_ADD ? i & 1 : p.op == X_MUL ? !(i & 1) : true)
      n = symbols_in(c, sc_word(c, x, i), map, n, cap);
  return n;
}

/* The sum with the condition g < 0 decided in it, under that hypothesis. */
static sx decided(sc *c, sx s, sx g, bool holds) {
  const size_t facts = c->here.n_facts;
  const sx p = sc_word(c, g, 0);
  sx_map map[24];
  if (facts == SC_MAX_FACTS) return s;
  c->here.fact[c->here.n_facts++] = holds ? sx_sub(c, c->minus_one, p) : p;
  const sx r = sx_subst(
      c, s, map, symbols_in(c, g, map, 0, 24)); /* each symbol by itself: all is looked at anew */
  c->here.n_facts = facts;
  return r;
}

static bool by_condition(smt_writer *w, sx s, sx k, sx body) {
  sc *c = w->c;
  const sx g = find_fixed(c, body, k, 0);
  const sx x = g ? decided(c, s, g, true) : s, y = g ? decided(c, s, g, false) : s;
  if (x == s || y == s || c->fault.failed) return false;
  const smt_name m = smt_write(w, g), a = smt_real(w, s), t = smt_real(w, x), e = smt_real(w, y);
  smt_line(w, "(assert (= %s (ite %s %s %s))) ; a condition that does not move with the index\n",
           a.s, m.s, t.s, e.s);
  return true;
}

/* How often k is counted down within x. */
static int downwards(const sc *c, sx x, sx k, int depth) {
  const sx_node p = *sc_at(c, x);
  int n = 0;
  if (depth > 40 || !sx_occurs(c, k, x)) return 0;
  for (uint32_t i = 0; p.op == X_ADD && i < p.n; i += 2)
    n += sc_word(c, x, i + 1) == k ? (pv_q_sign(&c->q, sc_word(c, x, i)) < 0 ? 1 : -1) : 0;
  for (uint32_t i = p.op == X_LEAF || p.op == X_FN; i < p.n; i++)
    if (p.op == X_LEAF || p.op == X_FN || p.op == X_ITE || p.op == X_MAX)
      n += sc_word(c, x, i) == k ? -1 : downwards(c, sc_word(c, x, i), k, depth + 1);
  return n;
}

/* The same sum from its end. */
static bool reversed(smt_writer *w, sx s, sx k, sx body, sx high) {
  sc *c = w->c;
  if (downwards(c, body, k, 0) <= 0) return false;
  const sx i = sc_index(c, high),
           other = sx_subst(c, body, &(sx_map){k, sx_sub(c, sx_sub(c, high, c->one), i)}, 1);
  if (downwards(c, other, i, 0) > 0) return false;
  equal_to(w, s, sx_close(c, X_SUM, i, other), "from its end");
  return true;
}

/* The largest of a range cut at a bound is the larger of both parts. */
static bool split_largest(smt_writer *w, sx s) {
  sc *c = w->c;
  sx k[8], at;
  uint32_t n;
  const sx body = sx_open(c, s, k, &n);
  if (n != 1) return false;
  if (k[0] == c->zero) return equal_to(w, s, body, "one element"), true;
  const sx high = c->store.sym[sc_word(c, k[0], 0)].high;
  if (!find_cut(c, body, k[0], &at, 0) || !sx_gt0(c, at) || !sx_gt0(c, sx_sub(c, high, at)))
    return false;
  const smt_name whole = smt_real(w, s), low = smt_real(w, part(c, X_TOP, k[0], body, c->zero, at)),
                 up = smt_real(w, part(c, X_TOP, k[0], body, at, sx_sub(c, high, at)));
  smt_line(w, "(assert (= %s (ite (>= %s %s) %s %s))) ; the larger of two parts\n", whole.s, low.s,
           up.s, low.s, up.s);
  return true;
}

/* The axiom that takes a sum apart. Returns: whether there is one. */
static bool take_apart(smt_writer *w, sx s) {
  sc *c = w->c;
  sx k[8], at, d, q;
  uint32_t n;
  if (sc_op(c, s) == X_TOP) return split_largest(w, s);
  if (sc_op(c, s) != X_SUM) return false;
  const sx body = sx_open(c, s, k, &n), g = sx_top_guard(c, body);
  if (n != 1) return false;
  if (k[0] != c->zero && !sx_gt0(c, c->store.sym[sc_word(c, k[0], 0)].high)) {
    const smt_name none = smt_write(w, c->store.sym[sc_word(c, k[0], 0)].high),
                   sum = smt_real(w, s);
    smt_line(w, "(assert (=> (<= %s 0) (= %s 0.0))) ; nothing to sum\n", none.s, sum.s);
  }
  if (k[0] == c->zero) return equal_to(w, s, body, "one term"), true;
  const sx high = c->store.sym[sc_word(c, k[0], 0)].high;
  if (g && !sx_occurs(c, k[0], g)) {
    const smt_name m = smt_write(w, g), a = smt_real(w, s),
                   x = smt_real(w, sx_close(c, X_SUM, k[0], sc_word(c, body, 1))),
                   y = smt_real(w, sx_close(c, X_SUM, k[0], sc_word(c, body, 2)));
    smt_line(w, "(assert (= %s (ite %s %s %s))) ; a condition that does not move with the index\n",
             a.s, m.s, x.s, y.s);
    return true;
  }
  if (by_condition(w, s, k[0], body)) return true;
  if (find_cut(c, body, k[0], &at, 0)) return split(w, s, k[0], body, high, at), true;
  if (sx_apart_at(c, body, k[0], &d) && sx_divides(c, d, high, &q)) {
    const sx u = sc_index(c, q), v = sc_index(c, d);
    const sx two = sx_subst(c, body, &(sx_map){k[0], sx_add(c, sx_mul(c, u, d), v)}, 1);
    const sx inner = v == c->zero ? two : sx_close(c, X_SUM, v, two);
    equal_to(w, s, u == c->zero ? inner : sx_close(c, X_SUM, u, inner),
             "a range that is a product");
    return true;
  }
  if (split_inner(w, s, k[0], body) || join(w, s, k[0], body)) return true;
  if (reversed(w, s, k[0], body, high)) return true;
  if (g) return false;
  const char *why = "";
  const sx r = by_arithmetic(c, k[0], body, NULL, w->how == SMT_WHOLE, &why);
  if (r) equal_to(w, s, r, why);
  return r || exchange(w, s, k[0], body);
}

/* Two sums are equal where their ranges are, or their summands differ somewhere. */
static void largest(smt_writer *w, sx a, sx b);
static void congruent(smt_writer *w, sx a, sx b) {
  sc *c = w->c;
  if (sc_op(c, a) == X_TOP) {
    largest(w, a, b);
    return;
  }
  sx k[8], l[8];
  uint32_t n, m;
  const sx x = sx_open(c, a, k, &n), y = sx_open(c, b, l, &m);
  if (n != 1 || m != 1 || k[0] == c->zero || l[0] == c->zero || w->n_skolems == SMT_MAX_PAIRS)
    return;
  const unsigned side = w->side;
  const sx high = c->store.sym[sc_word(c, k[0], 0)].high, at = k[0];
  w->skolem[w->n_skolems++] = at;
  const smt_name i = smt_write(w, at), top = smt_write(w, high),
                 other = smt_write(w, c->store.sym[sc_word(c, l[0], 0)].high), s = smt_real(w, a),
                 t = smt_real(w, b);
  w->side = 1;
  const smt_name u = smt_real(w, x);
  w->side = 2;
  const smt_name v = smt_real(w, sx_subst(c, y, &(sx_map){l[0], at}, 1));
  w->side = side;
  smt_line(w,
           "(assert (=> (= %s %s) (or (= %s %s) (and (<= 0 %s) (< %s %s) (distinct %s %s))))) ; "
           "equal, or they differ at %s\n",
           top.s, other.s, s.s, t.s, i.s, i.s, top.s, u.s, v.s, i.s);
}

/* Each of two largest elements stands somewhere, i and j, and is not below its own element at the
 * other's place. */
static void largest(smt_writer *w, sx a, sx b) {
  sc *c = w->c;
  sx k[8], l[8], at[2], e[2][2];
  uint32_t n, m;
  const sx x = sx_open(c, a, k, &n), y = sx_open(c, b, l, &m);
  if (n != 1 || m != 1 || k[0] == c->zero || l[0] == c->zero) return;
  const sx high = c->store.sym[sc_word(c, k[0], 0)].high;
  for (int i = 0; i < 2; i++) {
    if (!(at[i] = smt_skolem(w, high))) return;
    e[0][i] = sx_subst(c, x, &(sx_map){k[0], at[i]}, 1);
    e[1][i] = sx_subst(c, y, &(sx_map){l[0], at[i]}, 1);
  }
  const smt_name top = smt_write(w, high), s[2] = {smt_real(w, a), smt_real(w, b)};
  for (int i = 0; i < 2; i++) {
    const smt_name p = smt_write(w, at[i]), own = smt_real(w, e[i][i]),
                   far = smt_real(w, e[1 - i][i]);
    smt_line(w,
             "(assert (=> (> %s 0) (and (<= 0 %s) (< %s %s) (= %s %s) (>= %s %s)))) ; the largest "
             "stands at %s\n",
             top.s, p.s, p.s, top.s, s[i].s, own.s, s[1 - i].s, far.s, p.s);
  }
  for (int i = 0; i < 2; i++) smt_monotone(w, e[i][0], e[i][1], 0);
}

void smt_positive_sum(smt_writer *w, sx s) {
  sc *c = w->c;
  sx k[8];
  uint32_t n;
  const sx body = sx_open(c, s, k, &n), high = n == 1 ? sc_word(c, s, 1) : 0,
           at = high ? smt_skolem(w, high) : 0;
  if (!at) return;
  const smt_name sum = smt_real(w, s), i = smt_write(w, at), top = smt_write(w, high),
                 x = smt_real(w, sx_subst(c, body, &(sx_map){k[0], at}, 1));
  smt_line(w,
           "(assert (or (> %s 0.0) (<= %s 0) (and (<= 0 %s) (< %s %s) (<= %s 0.0)))) ; positive, "
           "or not at %s\n",
           sum.s, top.s, i.s, i.s, top.s, x.s, i.s);
}

/* The other side has a sum of the same elements over the same range. */
static bool has_partner(smt_writer *w, const smt_sum *a) {
  for (size_t i = 0; i < w->n_sums; i++) {
    const smt_sum *b = &w->sum[i];
    if (b->side != a->side && b->contents == a->contents && sc_op(w->c, b->id) == X_SUM &&
        sx_same(w->c, sc_word(w->c, a->id, 1), sc_word(w->c, b->id, 1)))
      return true;
  }
  return false;
}

/* A sum over more than another one of the same elements is cut where that one ends. One at a time:
 * the parts come first. */
static void cut_at_others(smt_writer *w) {
  sc *c = w->c;
  for (size_t i = 0;
       i < w->n_sums && w->n_sums < SMT_MAX_SUMS / 2 && !w->failed && !c->fault.failed; i++) {
    if (w->sum[i].cut || w->sum[i].told || has_partner(w, &w->sum[i])) continue;
    for (size_t j = 0; j < w->n_sums; j++) {
      smt_sum *a = &w->sum[i], *b = &w->sum[j];
      if (a->told || a->cut || sc_op(c, a->id) != X_SUM || sc_op(c, b->id) != X_SUM ||
          a->contents != b->contents)
        continue;
      const sx n = sc_word(c, a->id, 1), m = sc_word(c, b->id, 1);
      if (sc_word(c, a->id, 0) != 1 || sc_word(c, b->id, 0) != 1 || !sx_gt0(c, m) ||
          !sx_gt0(c, sx_sub(c, n, m)))
        continue;
      sx k[8];
      uint32_t ranges;
      const sx body = sx_open(c, a->id, k, &ranges);
      a->cut = true;
      w->side = a->side;
      split(w, a->id, k[0], body, n, m);
      return;
    }
  }
}

void smt_tell_axioms(smt_writer *w) {
  sc *c = w->c;
  smt_tell_orders(w);
  size_t told = 0, paired = 0;
  while (!w->failed && !c->fault.failed && told < w->n_sums) {
    for (; told < w->n_sums && !w->failed && !c->fault.failed; told++) {
      w->side = w->sum[told].side;
      w->sum[told].told = take_apart(w, w->sum[told].id);
    }
    for (; paired < told && !w->failed && !c->fault.failed; paired++)
      for (size_t i = 0; i < paired && !w->failed; i++) {
        const smt_sum a = w->sum[i], b = w->sum[paired];
        if (a.told || b.told || sc_op(c, a.id) != sc_op(c, b.id) || a.contents != b.contents)
          continue;
        if (!sx_same(c, sc_word(c, a.id, 1), sc_word(c, b.id, 1))) continue;
        congruent(w, a.id, b.id);
      }
    if (told == w->n_sums) cut_at_others(w);
  }
}
