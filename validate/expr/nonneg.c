/* That a real number is at least 0, by what bounds its parts: an element by the largest of its row
 * or, where none is negative, by their sum; a maximum by its operands; what is rounded by whole
 * numbers; a condition that counts is 0 or 1, so that a count is at most as large as there are. So
 * a bound is known that never binds: |x| / (max |x| / 127 + 1e-6) is at most 127, a softmax at
 * most 1. Each step replaces a part by one that is at most as large, so that where all of them are
 * at least 0 the whole is. */
#include "validate/expr/expr_int.h"

enum { MAX_STEPS = 40, MAX_TERMS = 16, MAX_DENOMINATORS = 4, MAX_INDICES = 12 };

typedef struct search {
  sc *c;
  int left;    /* steps */
  bool counts; /* a condition was put in as a number: what is left may be places */
} search;

static bool at_least_0(search *s, sx p);

/* The least exponent of b in the terms of p. */
static uint32_t least_exponent(sc *c, sx p, sx b) {
  uint32_t least = PV_ZERO_Q, q;
  sx m;
  for (size_t i = 0, n = sx_terms(c, p); i < n; i++) {
    sx_term(c, p, i, &q, &m);
    const uint32_t e = sx_exponent_in(c, m, b);
    if (sx_q_compare(c, e, least) < 0) least = e;
  }
  return least;
}

/* The positive divisors of a term of p, as powers; `one` where there are none. */
static sx denominator(search *s, sx p) {
  sc *c = s->c;
  for (size_t i = 0, n = sx_terms(c, p); i < n; i++) {
    uint32_t q, e;
    sx m, b;
    sx_term(c, p, i, &q, &m);
    for (size_t k = 0, l = sx_factors(c, m); k < l; k++) {
      sx_factor(c, m, k, &b, &e);
      if (pv_q_sign(&c->q, e) < 0 && sc_op(c, b) != X_CONST &&
          (sc_has(c, b, S_NONNEG) || at_least_0(s, b)))
        return sx_single(c, b, least_exponent(c, p, b));
    }
  }
  return c->one;
}

/* p times what its terms are divided by. What is divided by is not 0. */
static sx without_denominators(search *s, sx p) {
  sc *c = s->c;
  for (int round = 0; round < MAX_DENOMINATORS && !c->fault.failed; round++) {
    const sx d = denominator(s, p);
    if (d == c->one) break;
    p = sx_without(c, p, d);
  }
  return p;
}

/* ---- parts ---- */

typedef enum kind { NONE, LARGEST, SUM, MAXIMUM, SIZE, ROUNDED, WAVE, CONDITION, LOGARITHM } kind;

/* The exponential of a largest is the largest exponential. */
static bool largest_power(const sc *c, sx atom) {
  return sc_op(c, atom) == X_FN && sc_word(c, atom, 0) == F_EXP &&
         sc_op(c, sc_word(c, atom, 1)) == X_TOP;
}

static kind kind_of(const sc *c, sx atom) {
  if (sc_has(c, atom, S_MASKED)) return NONE;
  if (largest_power(c, atom)) return LARGEST;
  switch (sc_op(c, atom)) {
  case X_TOP: return LARGEST;
  case X_SUM: return SUM;
  case X_MAX: return MAXIMUM;
  case X_IVER: return CONDITION;
  case X_FN: break;
  default: return NONE;
  }
  switch ((sx_func)sc_word(c, atom, 0)) {
  case F_ABS: return SIZE;
  case F_FLOOR:
  case F_CEIL:
  case F_ROUND:
  case F_TRUNC: return ROUNDED;
  case F_SIN:
  case F_COS:
  case F_ERF: return WAVE;
  case F_LOG: return LOGARITHM;
  default: return NONE;
  }
}

/* p = a * atom + b; `up` where a is at least 0, else it is at most 0. */
typedef struct part {
  sx atom, a, b;
  sx over; /* what the atom is the largest of, or the sum: a binder */
  kind kind;
  bool up;
} part;

/* Parts that are bounded in one way come first, then those of which one of several bounds has to be
 * chosen; last a logarithm, whose bound is an exponential of all that stands beside it. */
static int order(const part *t) {
  if (t->kind == ROUNDED || t->kind == WAVE || t->kind == CONDITION) return 2;
  if (t->kind == LOGARITHM) return 5;
  return !t->up ? 1 : t->kind == SUM ? 4 : 3;
}

enum { MOST_PARTS = 6 };

/* The parts of p, in that order. Returns: how many. */
static size_t find_parts(sc *c, sx p, part *out) {
  size_t found = 0;
  for (size_t i = 0, n = sx_terms(c, p); i < n && !c->fault.failed; i++) {
    uint32_t q, e;
    sx m;
    sx_term(c, p, i, &q, &m);
    for (size_t k = 0, l = sx_factors(c, m); k < l && found < MOST_PARTS; k++) {
      part t = {0};
      sx_factor(c, m, k, &t.atom, &e);
      t.kind = kind_of(c, t.atom);
      t.over = largest_power(c, t.atom) ? sc_word(c, t.atom, 1) : t.atom;
      t.up = pv_q_sign(&c->q, q) > 0;
      if (t.kind == NONE || e != PV_ONE_Q || !sx_linear(c, p, t.atom, &t.a, &t.b) ||
          !sc_has(c, t.up ? t.a : sx_neg(c, t.a), S_NONNEG))
        continue;
      size_t at = found++;
      for (; at > 0 && order(&out[at - 1]) > order(&t); at--) out[at] = out[at - 1];
      out[at] = t;
    }
  }
  return c->fault.failed ? 0 : found;
}

static bool with(search *s, const part *t, sx x) {
  return at_least_0(s, sx_add(s->c, sx_mul(s->c, t->a, x), t->b));
}

/* ---- elements that a largest or a sum is over ---- */

static bool bound_within(const sc *c, sx x) {
  if (sc_op(c, x) == X_BOUND) return true;
  for (uint32_t i = 0; i < sc_at(c, x)->n; i++)
    if (sx_is_child(sc_op(c, x), i) && bound_within(c, sc_word(c, x, i))) return true;
  return false;
}

typedef struct opened {
  sx k[SX_MAX_BLOCK], at[SX_MAX_BLOCK]; /* at: the place that is asked for; 0: not known yet */
  uint32_t n;
} opened;

/* The places by which `leaf`, an element in the body, becomes `element`. */
static bool place_of(sc *c, sx leaf, sx element, opened *o) {
  for (uint32_t i = 0; i < o->n; i++) o->at[i] = 0;
  for (uint32_t w = 1; w < sc_at(c, leaf)->n; w++)
    for (uint32_t i = 0; i < o->n; i++) {
      const sx index = sc_word(c, leaf, w);
      sx a, b;
      if (o->at[i] || !sx_occurs(c, o->k[i], index)) continue;
      if (!sx_linear(c, index, o->k[i], &a, &b) || a != c->one || bound_within(c, b)) continue;
      for (uint32_t j = 0; j < o->n; j++)
        if (sx_occurs(c, o->k[j], b)) return false;
      o->at[i] = sx_sub(c, sc_word(c, element, w), b);
    }
  for (uint32_t i = 0; i < o->n; i++) {
    if (!o->at[i] || bound_within(c, o->at[i]) || sx_top_guard(c, o->at[i])) return false;
    if (!sx_ge0(c, o->at[i]) || !sx_gt0(c, sx_sub(c, sx_range_of(c, o->k[i]), o->at[i])))
      return false;
  }
  return !c->fault.failed;
}

typedef struct leaves {
  sx x[MAX_INDICES];
  uint32_t n;
} leaves;

static void leaves_of(sc *c, sx x, leaves *out, uint32_t walk) {
  if (out->n == MAX_INDICES || !sc_walk_first(c, x, walk)) return;
  if (sc_op(c, x) == X_LEAF) out->x[out->n++] = x;
  for (uint32_t i = 0; i < sc_at(c, x)->n; i++)
    if (sx_is_child(sc_op(c, x), i)) leaves_of(c, sc_word(c, x, i), out, walk);
}

/* An element of those that the part is over, at fresh indices `k`. */
static sx element_of(sc *c, const part *t, sx *k, uint32_t *n) {
  const sx x = sx_open(c, t->over, k, n);
  return t->over == t->atom ? x : sx_exp(c, x);
}

static bool at_places(search *s, const part *t, sx body, const opened *o) {
  sx_map map[SX_MAX_BLOCK];
  for (uint32_t k = 0; k < o->n; k++) map[k] = (sx_map){o->k[k], o->at[k]};
  const sx x = sx_subst(s->c, body, map, o->n);
  return !s->c->fault.failed && with(s, t, x);
}

/* The first place of all, where there is one. */
static bool first_place(sc *c, opened *o) {
  for (uint32_t k = 0; k < o->n; k++) {
    if (o->k[k] != c->zero && !sx_gt0(c, sx_range_of(c, o->k[k]))) return false;
    o->at[k] = c->zero;
  }
  return true;
}

/* A sum of what is not negative is at least the sum of fewer of the same terms. */
static bool by_fewer(search *s, const part *t) {
  sc *c = s->c;
  for (size_t i = 0, n = sx_terms(c, t->b); i < n; i++) {
    uint32_t q, e;
    sx m, b;
    sx_term(c, t->b, i, &q, &m);
    for (size_t k = 0, l = sx_factors(c, m); k < l; k++) {
      sx_factor(c, m, k, &b, &e);
      if (sc_op(c, b) != X_SUM || sc_word(c, b, 0) != 1 || sc_word(c, t->atom, 0) != 1 ||
          sc_word(c, b, 2) != sc_word(c, t->atom, 2) ||
          !sx_ge0(c, sx_sub(c, sc_word(c, t->atom, 1), sc_word(c, b, 1))))
        continue;
      if (with(s, t, b)) return true;
    }
  }
  return false;
}

/* A largest that is added is at least the element at any one place, and so is a sum of what is not
 * negative. The places are those of other elements of the same tensor, and the first. */
static bool by_element(search *s, const part *t) {
  sc *c = s->c;
  opened o;
  leaves in = {0}, other = {0};
  const sx body = element_of(c, t, o.k, &o.n);
  if (c->fault.failed || sx_top_guard(c, body)) return false;
  leaves_of(c, body, &in, sc_walk_start(c));
  leaves_of(c, t->b, &other, sc_walk_start(c));
  for (uint32_t i = 0; i < in.n; i++)
    for (uint32_t j = 0; j < other.n && s->left > 0; j++)
      if (sc_word(c, in.x[i], 0) == sc_word(c, other.x[j], 0) &&
          place_of(c, in.x[i], other.x[j], &o) && at_places(s, t, body, &o))
        return true;
  return first_place(c, &o) && at_places(s, t, body, &o);
}

/* A largest is the element at some place, and a sum at most, or at least, as many times one of its
 * elements as it has: whichever it is. */
static bool at_any_place(search *s, const part *t) {
  sx k[SX_MAX_BLOCK];
  uint32_t n;
  sx x = element_of(s->c, t, k, &n);
  for (uint32_t i = 0; i < n && t->kind == SUM; i++)
    x = sx_mul(s->c, x, k[i] == s->c->zero ? s->c->one : sx_range_of(s->c, k[i]));
  return with(s, t, x);
}

/* One of the operands where a maximum is added, each where it is taken away. */
static bool by_operands(search *s, const part *t) {
  for (uint32_t i = 0; i < sc_at(s->c, t->atom)->n; i++) {
    const bool holds = with(s, t, sc_word(s->c, t->atom, i));
    if (holds == t->up) return holds;
  }
  return !t->up;
}

/* a |u| + d u is at least 0 where a + d and a - d are. */
static bool by_size(search *s, const part *t) {
  sc *c = s->c;
  sx d, b;
  const sx u = sc_word(c, t->atom, 1), v = sx_neg(c, u);
  if (!t->up) return with(s, t, u) && with(s, t, v);
  if (sx_linear(c, t->b, u, &d, &b) && sc_has(c, sx_add(c, t->a, d), S_NONNEG) &&
      sc_has(c, sx_sub(c, t->a, d), S_NONNEG) && at_least_0(s, b))
    return true;
  return with(s, t, u) || with(s, t, v);
}

/* Rounding keeps bounds that are whole numbers. */
static bool before_rounding(search *s, const part *t) {
  sc *c = s->c;
  uint32_t a, b;
  if (!sx_is_q(c, t->a, &a) || !sx_is_q(c, t->b, &b)) return false;
  int64_t k;
  if (!t->up) a = pv_q_mul(&c->q, a, PV_MINUS_Q);
  if (!sx_q_floor(c, pv_q_mul(&c->q, b, pv_q_pow(&c->q, a, -1)), &k)) return false;
  const sx whole = sx_int(c, k), u = sc_word(c, t->atom, 1);
  return at_least_0(s, t->up ? sx_add(c, u, whole) : sx_sub(c, whole, u));
}

/* log u is at least v where u is at least exp v. */
static bool by_exponential(search *s, const part *t) {
  sc *c = s->c;
  uint32_t a;
  if (!sx_is_q(c, t->a, &a)) return false;
  const sx u = sc_word(c, t->atom, 1),
           v = sx_exp(c, sx_scale(c, pv_q_mul(&c->q, PV_MINUS_Q, pv_q_pow(&c->q, a, -1)), t->b));
  return at_least_0(s, t->up ? sx_sub(c, u, v) : sx_sub(c, v, u));
}

static bool by_part(search *s, const part *t) {
  switch (t->kind) {
  case LARGEST: return t->up ? by_element(s, t) : at_any_place(s, t);
  case SUM:
    return (t->up && sc_has(s->c, t->atom, S_NONNEG) && (by_fewer(s, t) || by_element(s, t))) ||
           at_any_place(s, t);
  case MAXIMUM: return by_operands(s, t);
  case SIZE: return by_size(s, t);
  case ROUNDED: return before_rounding(s, t);
  case LOGARITHM: return by_exponential(s, t);
  case WAVE: return with(s, t, t->up ? s->c->minus_one : s->c->one);
  case CONDITION: s->counts = true; return with(s, t, t->up ? s->c->zero : s->c->one);
  case NONE: break;
  }
  return false;
}

/* The square of a sum that is taken away is at most as many times the sum of the squares as it has
 * terms (Cauchy and Schwarz). */
static bool by_squares(search *s, sx p) {
  sc *c = s->c;
  for (size_t i = 0, n = sx_terms(c, p); i < n; i++) {
    uint32_t q, e, many;
    sx m, b, k[SX_MAX_BLOCK];
    sx_term(c, p, i, &q, &m);
    for (size_t j = 0, l = pv_q_sign(&c->q, q) < 0 ? sx_factors(c, m) : 0; j < l; j++) {
      int64_t power;
      sx_factor(c, m, j, &b, &e);
      if (sc_op(c, b) != X_SUM || !pv_q_is_int(&c->q, e, &power) || power != 2) continue;
      const sx rest = sx_mul(c, m, sx_powi(c, b, -2));
      if (!sc_has(c, rest, S_NONNEG)) continue;
      sx squares = sx_powi(c, sx_open(c, b, k, &many), 2), times = sx_scale(c, q, rest);
      for (uint32_t d = 0; d < many; d++) {
        if (k[d] != c->zero) times = sx_mul(c, times, sx_range_of(c, k[d]));
        squares = sx_sum(c, k[d], squares);
      }
      const sx others = sx_sub(c, p, sx_scale(c, q, m));
      return at_least_0(s, sx_add(c, others, sx_mul(c, times, squares)));
    }
  }
  return false;
}

/* A root is at least what is smaller than it when squared. */
static bool by_root(search *s, sx p) {
  sc *c = s->c;
  const uint32_t half = pv_q_pow(&c->q, pv_q_int(&c->q, 2), -1);
  for (size_t i = 0, n = sx_terms(c, p); i < n; i++) {
    uint32_t q, e;
    sx m, b;
    sx_term(c, p, i, &q, &m);
    for (size_t j = 0, l = pv_q_sign(&c->q, q) > 0 ? sx_factors(c, m) : 0; j < l; j++) {
      sx_factor(c, m, j, &b, &e);
      if (sx_q_compare(c, e, half) != 0 || sc_op(c, b) == X_CONST) continue;
      const sx root = sx_scale(c, q, m), others = sx_sub(c, root, p);
      if (!sc_has(c, root, S_NONNEG)) continue;
      return at_least_0(s, sx_sub(c, sx_powi(c, root, 2), sx_powi(c, others, 2)));
    }
  }
  return false;
}

/* Of integers, by the ranges of indices. */
static bool within_ranges(sc *c, sx p) {
  const sx whole = sx_scaled(c, p);
  return !c->fault.failed && sc_has(c, whole, S_INT) && sx_ge0(c, whole);
}

static bool at_least_0(search *s, sx p) {
  sc *c = s->c;
  part t[MOST_PARTS];
  if (c->fault.failed || s->left-- <= 0 || sc_has(c, p, S_MASKED)) return false;
  const sx g = sx_top_guard(c, p);
  if (g)
    return at_least_0(s, sx_cofactor(c, p, g, true)) && at_least_0(s, sx_cofactor(c, p, g, false));
  if (sc_has(c, p, S_NONNEG) || (s->counts && within_ranges(c, p))) return true;
  if (sc_op(c, p) == X_CONST || sx_terms(c, p) > MAX_TERMS) return false;
  const sx common = sx_content(c, p, false);
  if (common != c->one) p = sx_without(c, p, common);
  p = without_denominators(s, p);
  if (sc_has(c, p, S_NONNEG)) return true;
  if (by_squares(s, p) || by_root(s, p)) return true;
  const size_t n = find_parts(c, p, t);
  for (size_t i = 0; i < n; i++)
    if (by_part(s, &t[i]) || (t[i].up && sc_has(c, t[i].atom, S_NONNEG) && at_least_0(s, t[i].b)))
      return true;
  return false;
}

/* p less its constant, where that is positive, or less one of `parts` of it. */
static sx without_constant(sc *c, sx p, int64_t parts) {
  uint32_t q;
  sx m;
  for (size_t i = 0, n = sx_terms(c, p); i < n; i++) {
    sx_term(c, p, i, &q, &m);
    if (m == c->one && pv_q_sign(&c->q, q) > 0)
      return sx_sub(c, p, sx_q(c, pv_q_mul(&c->q, q, pv_q_pow(&c->q, pv_q_int(&c->q, parts), -1))));
  }
  return p;
}

/* Of what a proof may take bounds have an eighth, so that none fails for being sought. What was in
 * vain once is not sought again: more facts may be known by then, which is a bound less. */
static bool sought(sc *c, sx p) {
  enum { SHARE = 8 };
  sc_budget_left *b = &c->budget;
  sx *known = &b->no_bound[p % SC_NO_BOUNDS];
  if (sc_has(c, p, S_NONNEG)) return true;
  if (c->reading.plain || *known == p || b->bounds_work > b->max_work / SHARE ||
      b->bounds_symbols > SC_MAX_CUT_SYMS / SHARE)
    return false;
  const int64_t work = b->work;
  const size_t symbols = c->store.n_syms;
  const bool found = at_least_0(&(search){c, MAX_STEPS, false}, p);
  b->bounds_work += b->work - work;
  b->bounds_symbols += c->store.n_syms - symbols;
  if (!found) *known = p;
  return found;
}

bool sx_never_negative(sc *c, sx p) {
  if (sc_has(c, p, S_NONNEG)) return true;
  if (sx_top_guard(c, p) || sc_has(c, p, S_MASKED)) return false;
  if (sc_has(c, p, S_INT) && sx_ge0(c, p)) return true;
  const sx less = without_constant(c, p, 1);
  return (less != p && sought(c, less)) || sought(c, p);
}

/* What stays at least 0 without a part of its constant. */
bool sx_always_positive(sc *c, sx p) {
  enum { SMALL = 1 << 30 };
  if (sc_has(c, p, S_POS)) return true;
  if (sx_top_guard(c, p) || sc_has(c, p, S_MASKED)) return false;
  const sx less = without_constant(c, p, 1), slightly = without_constant(c, p, SMALL);
  return less != p && (sought(c, less) || sought(c, slightly));
}
