/* Integers of 64 bits and of fewer, which wrap.
 *
 * An operator's result is its whole number modulo 2^64, or 2^32 and so on as its dtype is. It is
 * written F_WRAP of the whole number, or another function for each narrower dtype. All that is
 * known of these is that equal numbers give equal results in the range; where the number surely
 * fits, the result is the number itself. Sums and products do not see that their operands were
 * wrapped before, in as many bits or more, so that wrap(wrap(x + 5) - 5) is x. A comparison, a
 * quotient, a place in a table do, and so does an operator on more bits. */
#include <math.h>

#include "validate/expr/expr_int.h"
#include "validate/tensor/tensor.h"

enum { MAX_DEPTH = 24, MAX_PARTS = 2000 };

/* A product of sizes is the number of elements of a tensor, which an address space holds. */
static const double most_elements = 0x1p47, end = 0x1p63;

static const struct {
  sx_func f;
  unsigned bits;
  int64_t least, most;
} of_type[] = {[RULE_I64] = {F_WRAP, 64, INT64_MIN, INT64_MAX},
               [RULE_I32] = {F_WRAP_I32, 32, INT32_MIN, INT32_MAX},
               [RULE_I16] = {F_WRAP_I16, 16, INT16_MIN, INT16_MAX},
               [RULE_I8] = {F_WRAP_I8, 8, INT8_MIN, INT8_MAX},
               [RULE_U8] = {F_WRAP_U8, 8, 0, UINT8_MAX}};

static rule_dtype type_of_wrap(sx_func f) {
  rule_dtype d = RULE_I64;
  while (d < RULE_U8 && of_type[d].f != f) d++;
  return d;
}

bool sx_is_wrap(sx_func f) { return of_type[type_of_wrap(f)].f == f; }

double sx_wrapped_number(sx_func f, double x) {
  const rule_dtype d = type_of_wrap(f);
  if (!(fabs(x) <= (d == RULE_I64 ? 0x1p62 : 0x1p53))) return NAN;
  if (d == RULE_I64) return x;
  const double size = ldexp(1, (int)of_type[d].bits), low = (double)of_type[d].least;
  return x - size * floor((x - low) / size);
}

/* The integer type that the element or function x is of, in `d`. */
static bool typed(const sc *c, sx x, rule_dtype *d) {
  const bool leaf = sc_op(c, x) == X_LEAF && c->r->var[sc_word(c, x, 0)].kind == 'i';
  if (leaf) return *d = rule_variable_dtype(&c->r->var[sc_word(c, x, 0)]), true;
  if (sc_op(c, x) != X_FN || !sx_is_wrap((sx_func)sc_word(c, x, 0))) return false;
  return *d = type_of_wrap((sx_func)sc_word(c, x, 0)), true;
}

bool sx_narrow_bounds(sc *c, sx x, sx *low, sx *high) {
  rule_dtype d;
  if (!typed(c, x, &d) || d == RULE_I64) return false;
  *low = sx_int(c, of_type[d].least);
  *high = sx_int(c, of_type[d].most + 1);
  return true;
}

/* Whether x is an integer of type d by itself. */
static bool is_machine_integer(const sc *c, sx x, rule_dtype d) {
  rule_dtype own;
  if (typed(c, x, &own))
    return of_type[d].least <= of_type[own].least && of_type[own].most <= of_type[d].most;
  if (d != RULE_I64 || sc_op(c, x) != X_FN) return false;
  switch ((sx_func)sc_word(c, x, 0)) {
  case F_PLACE:
  case F_FLOOR: /* of a real number that is cast: past the ends nothing is said of it */
  case F_CEIL:
  case F_ROUND:
  case F_TRUNC:
  case F_CAST_INT: return true;
  default: return false;
  }
}

/* ---- how large ---- */

/* A size, an index, or a symbol derived of these alone: no attribute, of which nothing is known. */
static bool is_size(const sc *c, sx x) {
  uint32_t q, e;
  sx m, b;
  if (sc_op(c, x) == X_CONST) return true;
  if (sc_op(c, x) == X_SYM) {
    const sx_sym *s = &c->store.sym[sc_word(c, x, 0)];
    return s->role == 's' || s->role == 'x' || s->role == 'c' ||
           (s->role == 'q' && s->of && is_size(c, s->of));
  }
  for (size_t i = 0, n = sx_terms(c, x); i < n; i++) {
    sx_term(c, x, i, &q, &m);
    for (size_t k = 0, l = sx_factors(c, m); k < l; k++) {
      sx_factor(c, m, k, &b, &e);
      if (b == x || (sc_op(c, b) != X_SYM && sc_op(c, b) != X_DIV) ||
          !is_size(c, sc_op(c, b) == X_DIV ? sc_word(c, b, 0) : b))
        return false;
    }
  }
  return true;
}

static double largest(sc *c, sx x, int depth, int *left);

static double largest_leaf(sc *c, sx x) {
  const uint32_t at = sc_word(c, x, 0);
  const rule_variable *v = &c->r->var[at];
  int64_t low = 0, high;
  if (v->kind != 'i') return INFINITY;
  if (v->high && sx_is_int(c, sc_size(c, v->high), &high) &&
      (!v->low || sx_is_int(c, sc_size(c, v->low), &low)))
    return fmax(fabs((double)low), fabs((double)high));
  const double most = ldexp(1, (int)of_type[rule_variable_dtype(v)].bits - (v->narrow != RULE_U8));
  return c->ranges.table_size[at & 63] || (v->high && !v->low) ? fmin(most, most_elements) : most;
}

static double largest_product(sc *c, sx x, int depth, int *left) {
  double sizes = 1, others = 1;
  uint32_t e;
  int64_t k;
  sx b;
  for (size_t i = 0, n = sx_factors(c, x); i < n; i++) {
    sx_factor(c, x, i, &b, &e);
    if (!pv_q_is_int(&c->q, e, &k) || k < 0) return INFINITY;
    double *to = sc_op(c, b) == X_SYM ? &sizes : &others;
    *to *= pow(fmax(largest(c, b, depth, left), 1), (double)k);
  }
  return (sizes < INFINITY ? fmin(sizes, most_elements) : sizes) * others;
}

/* Over n indices: the number of terms times the largest, where they add up. */
static double largest_bound(sc *c, sx x, int depth, int *left) {
  const uint32_t n = sc_word(c, x, 0);
  double terms = 1;
  for (uint32_t i = 0; i < n; i++) terms *= largest(c, sc_word(c, x, i + 1), depth, left);
  return (sc_op(c, x) == X_SUM ? fmin(terms, most_elements) : 1) *
         largest(c, sc_word(c, x, n + 1), depth, left);
}

static double largest_function(sc *c, sx x, int depth, int *left) {
  const double a = largest(c, sc_word(c, x, 1), depth, left);
  switch ((sx_func)sc_word(c, x, 0)) {
  case F_WRAP: return end;
  case F_WRAP_I32:
  case F_WRAP_I16:
  case F_WRAP_I8:
  case F_WRAP_U8: return ldexp(1, (int)of_type[type_of_wrap((sx_func)sc_word(c, x, 0))].bits);
  case F_PLACE: return most_elements;
  case F_ABS: return a;
  case F_FLOOR:
  case F_CEIL:
  case F_ROUND:
  case F_TRUNC:
  case F_CAST_INT: return fmin(a + 1, end);
  case F_AND: return 2 * fmax(a, largest(c, sc_word(c, x, 2), depth, left));
  default: return INFINITY;
  }
}

/* No smaller than the absolute value of x can be. */
static double largest(sc *c, sx x, int depth, int *left) {
  double r = 0;
  uint32_t q;
  sx m;
  int64_t d;
  if (depth >= MAX_DEPTH || --*left < 0) return INFINITY;
  switch (sc_op(c, x)) {
  case X_CONST: return sx_is_q(c, x, &q) ? fabs(pv_q_value(&c->q, q)) : INFINITY;
  case X_SYM:
    m = c->store.sym[sc_word(c, x, 0)].high;
    return m && sx_is_int(c, m, &d) ? (double)d : is_size(c, x) ? most_elements : INFINITY;
  case X_BOUND: return most_elements;
  case X_ADD:
    for (size_t i = 0, n = sx_terms(c, x); i < n; i++) {
      sx_term(c, x, i, &q, &m);
      r += fabs(pv_q_value(&c->q, q)) * largest(c, m, depth + 1, left);
    }
    return r;
  case X_MUL: return largest_product(c, x, depth + 1, left);
  case X_DIV:
    r = largest(c, sc_word(c, x, 0), depth + 1, left);
    return sx_is_int(c, sc_word(c, x, 1), &d) && d > 0 ? r / (double)d + 1 : r;
  case X_LEAF: return largest_leaf(c, x);
  case X_FN: return largest_function(c, x, depth + 1, left);
  case X_SUM:
  case X_TOP: return largest_bound(c, x, depth + 1, left);
  case X_MAX:
    for (uint32_t i = 0; i < sc_at(c, x)->n; i++)
      r = fmax(r, largest(c, sc_word(c, x, i), depth + 1, left));
    return r;
  case X_ITE:
    return fmax(largest(c, sc_word(c, x, 1), depth + 1, left),
                largest(c, sc_word(c, x, 2), depth + 1, left));
  case X_IVER: return 1;
  default: return INFINITY;
  }
}

bool sx_within(sc *c, sx x, double most) {
  /* Rounded as it is, the bound is right within a part of 2^40. */
  return largest(c, x, 0, &(int){MAX_PARTS}) <= most * (1 - 0x1p-40);
}

/* k floor(p / k) + r for an integer p of type d and 0 <= r < k: it lies in the block of k numbers
 * that p is in. A power of two cuts the integers of a type into whole blocks. */
static bool in_block(sc *c, sx x, rule_dtype d) {
  const size_t n = sx_terms(c, x);
  uint32_t q;
  int64_t k = 0, r = 0, by;
  sx m, div = 0;
  for (size_t i = 0; i < n && i < 3; i++) {
    sx_term(c, x, i, &q, &m);
    if (m == c->one ? !pv_q_is_int(&c->q, q, &r) : div != 0 || !pv_q_is_int(&c->q, q, &k))
      return false;
    if (m != c->one) div = m;
  }
  if (n > 2 || !div || sc_op(c, div) != X_DIV || !sx_is_int(c, sc_word(c, div, 1), &by) ||
      by != k || k < 1 || r < 0 || r >= k || !is_machine_integer(c, sc_word(c, div, 0), d))
    return false;
  return (k & (k - 1)) == 0 && k <= of_type[d].most / 2;
}

static size_t variable_terms(const sc *c, sx x) {
  const size_t n = sx_terms(c, x);
  uint32_t q;
  sx m;
  for (size_t i = 0; i < n; i++) {
    sx_term(c, x, i, &q, &m);
    if (m == c->one) return n - 1;
  }
  return n;
}

/* Whether x + by floor(p / k) holds what makes it q r of a remainder 0 <= r < k: by p, or by
 * another floor of p. In `rest`, x without it; in `*q` by what r is multiplied. */
static bool without_remainder(sc *c, sx x, sx div, int64_t by, int64_t *k, int64_t *q, sx *rest) {
  const sx p = sc_word(c, div, 0);
  uint32_t e;
  int64_t of, own;
  sx m;
  if (!sx_is_int(c, sc_word(c, div, 1), k) || *k < 2 || !sc_has(c, p, S_INT)) return false;
  const sx others = sx_sub(c, x, sx_scale(c, pv_q_int(&c->q, by), div));
  if (by % *k == 0) {
    *q = -(by / *k);
    *rest = sx_sub(c, others, sx_scale(c, pv_q_int(&c->q, *q), p));
    if (variable_terms(c, *rest) + 2 <= variable_terms(c, x)) return true;
  }
  for (size_t i = 0, n = sx_terms(c, others); i < n; i++) {
    sx_term(c, others, i, &e, &m);
    if (sc_op(c, m) != X_DIV || sc_word(c, m, 0) != p || !sx_is_int(c, sc_word(c, m, 1), &own) ||
        own < 1 || *k % own != 0 || !pv_q_is_int(&c->q, e, &of) || by % (*k / own) != 0 ||
        of != -(by / (*k / own)))
      continue;
    *k /= own;
    *q = of;
    *rest = sx_sub(c, others, sx_scale(c, e, m));
    return true;
  }
  return false;
}

/* The ends of a sum of multiples of remainders and a number: what masks of bits leave, and rings of
 * other sizes. false: x is no such sum. */
static bool ends_of_remainders(sc *c, sx x, int64_t *low, int64_t *high) {
  enum { MOST = 8 };
  int64_t by, k, q, far;
  uint32_t e;
  sx m;
  *low = *high = 0;
  for (int round = 0; round < MOST && !c->fault.failed; round++) {
    bool found = false;
    if (sx_is_int(c, x, &k))
      return !__builtin_add_overflow(*low, k, low) && !__builtin_add_overflow(*high, k, high);
    for (size_t i = 0, n = sx_terms(c, x); i < n && n <= MOST && !found; i++) {
      sx_term(c, x, i, &e, &m);
      found = sc_op(c, m) == X_DIV && pv_q_is_int(&c->q, e, &by) && by != INT64_MIN &&
              without_remainder(c, x, m, by, &k, &q, &x);
    }
    if (!found || __builtin_mul_overflow(q, k - 1, &far)) return false;
    int64_t *const side = q < 0 ? low : high;
    if (__builtin_add_overflow(*side, far, side)) return false;
  }
  return false;
}

static bool fits(sc *c, sx x, rule_dtype d) {
  int64_t low, high;
  if (is_machine_integer(c, x, d) || in_block(c, x, d)) return true;
  if (sx_is_of_bits(c, x, is_machine_integer, d)) return true;
  if (ends_of_remainders(c, x, &low, &high) && low >= of_type[d].least && high <= of_type[d].most)
    return true;
  if ((d != RULE_U8 || sc_has(c, x, S_NONNEG)) && sx_within(c, x, (double)of_type[d].most))
    return true;
  return sx_never_negative(c, sx_sub(c, sx_int(c, of_type[d].most), x)) &&
         sx_never_negative(c, sx_sub(c, x, sx_int(c, of_type[d].least)));
}

/* ---- what adds up and multiplies ---- */

static sx strip(sc *c, sx x, unsigned bits, int depth);

static sx strip_product(sc *c, sx m, unsigned bits, int depth) {
  sx r = c->one, b;
  uint32_t e;
  int64_t k;
  for (size_t i = 0, n = sx_factors(c, m); i < n && !c->fault.failed; i++) {
    sx_factor(c, m, i, &b, &e);
    const bool whole = pv_q_is_int(&c->q, e, &k) && k > 0;
    r = sx_mul(c, r, sx_pow(c, whole ? strip(c, b, bits, depth) : b, e));
  }
  return r;
}

static sx strip_sum(sc *c, sx x, unsigned bits, int depth) {
  sx k[SX_MAX_BLOCK];
  uint32_t n;
  const sx body = sx_open(c, x, k, &n), inner = strip(c, body, bits, depth);
  if (c->fault.failed || inner == body) return x;
  sx r = inner;
  for (uint32_t i = n; i-- > 0 && !c->fault.failed;) r = sx_sum(c, k[i], r);
  return r;
}

/* The number of least absolute value that is the integer q modulo 2^bits. */
static uint32_t residue(sc *c, uint32_t q, unsigned bits) {
  int64_t k;
  if (bits > 32 || !pv_q_is_int(&c->q, q, &k)) return q;
  const int64_t size = (int64_t)1 << bits, r = (k % size + size) % size;
  return pv_q_int(&c->q, r < size / 2 ? r : r - size);
}

/* A number that is x modulo 2^bits, not wrapped where only sums and products stand around it. */
static sx strip(sc *c, sx x, unsigned bits, int depth) {
  sx r = c->zero, m;
  uint32_t q;
  int64_t k;
  if (c->fault.failed || depth >= MAX_DEPTH || !sc_has(c, x, S_INT)) return x;
  const sx_func f = sc_op(c, x) == X_FN ? (sx_func)sc_word(c, x, 0) : F_IF;
  if (sx_is_wrap(f) && of_type[type_of_wrap(f)].bits >= bits)
    return strip(c, sc_word(c, x, 1), bits, depth + 1);
  switch (sc_op(c, x)) {
  case X_ADD:
    for (size_t i = 0, n = sx_terms(c, x); i < n; i++) {
      sx_term(c, x, i, &q, &m);
      if (!pv_q_is_int(&c->q, q, &k)) return x;
    }
    for (size_t i = 0, n = sx_terms(c, x); i < n && !c->fault.failed; i++) {
      sx_term(c, x, i, &q, &m);
      q = sc_has(c, m, S_INT) ? residue(c, q, bits) : q;
      r = sx_add(c, r, sx_scale(c, q, strip(c, m, bits, depth + 1)));
    }
    return r;
  case X_MUL: return strip_product(c, x, bits, depth + 1);
  case X_SUM: return strip_sum(c, x, bits, depth + 1);
  default: return x;
  }
}

sx sx_unwrapped(sc *c, sx x, unsigned bits) {
  return c->fault.failed || sx_top_guard(c, x) ? x : strip(c, x, bits, 0);
}

/* x as an integer of the narrow type d. */
static sx in_type(sc *c, sx x, rule_dtype d) {
  const sx least = sx_int(c, of_type[d].least), size = sx_int(c, (int64_t)1 << of_type[d].bits);
  return sx_add(c, least, sx_mod(c, sx_sub(c, x, least), size));
}

sx sx_wrap_written_out(sc *c, sx x) {
  const sx_func f = sc_op(c, x) == X_FN ? (sx_func)sc_word(c, x, 0) : F_IF;
  if (!sx_is_wrap(f) || f == F_WRAP || sx_top_guard(c, sc_word(c, x, 1))) return x;
  return in_type(c, sc_word(c, x, 1), type_of_wrap(f));
}

sx sx_of_equal_size(sc *c, sx x) {
  const sx_func f = sc_op(c, x) == X_FN ? (sx_func)sc_word(c, x, 0) : F_IF;
  if (!sx_is_wrap(f) || f == F_WRAP_U8) return x;
  const sx y = sx_wrap(c, sx_neg(c, sc_word(c, x, 1)), type_of_wrap(f));
  return sc_op(c, y) == X_FN && sc_word(c, y, 0) == f ? x : y;
}

static sx wrap_end(sc *c, sx x, const void *ctx) {
  const rule_dtype d = *(const rule_dtype *)ctx;
  if (c->fault.failed || x == c->neginf || is_machine_integer(c, x, d) || !sc_has(c, x, S_INT))
    return x;
  if (fits(c, x, d)) return x;
  const sx y = strip(c, x, of_type[d].bits, 0);
  if (sx_top_guard(c, y)) return sx_wrap(c, y, d);
  if (sc_op(c, y) == X_CONST && d != RULE_I64) return in_type(c, y, d);
  const bool in_range = fits(c, y, d);
  /* Programs choose few bits for how they wrap, and a cast to them for the bits that it cuts
   * off. */
  const bool whole = c->reading.whole && d == RULE_I64;
  if (whole && !c->fault.failed && !in_range) c->reading.whole_used = true;
  return c->fault.failed || whole || in_range ? y
                                              : sc_node(c, X_FN, (uint32_t[2]){of_type[d].f, y}, 2);
}

/* For n more hypotheses. */
static bool has_room(const sc *c, size_t n) {
  return c->here.n_path + n <= SC_MAX_GUESSES && c->here.n_facts + 2 * n <= SC_MAX_FACTS;
}

/* Under the condition g or its opposite: what is known of x there may say that it fits. */
static sx wrap_where(sc *c, sx x, sx g, bool holds, rule_dtype d) {
  const size_t facts = c->here.n_facts, path = c->here.n_path;
  sx r = sx_cofactor(c, x, g, holds);
  if (!sc_assume(c, g, holds)) r = c->zero; /* nowhere */
  const sx h = sx_top_guard(c, r);
  r = !h || !has_room(c, 2)
          ? sx_lift(c, r, wrap_end, &d)
          : sx_ite(c, sx_truth(c, h), wrap_where(c, r, h, true, d), wrap_where(c, r, h, false, d));
  c->here.n_facts = facts, c->here.n_path = path;
  return r;
}

/* Whether one of the ends of x is wrapped. */
static bool some_wrapped(const sc *c, sx x, rule_dtype d) {
  if (sc_op(c, x) == X_ITE)
    return some_wrapped(c, sc_word(c, x, 1), d) || some_wrapped(c, sc_word(c, x, 2), d);
  return sc_op(c, x) == X_FN && sc_word(c, x, 0) == (uint32_t)of_type[d].f;
}

sx sx_wrap(sc *c, sx x, rule_dtype d) {
  if (c->fault.failed) return c->zero;
  const sx r = sx_lift(c, x, wrap_end, &d), g = sx_top_guard(c, x);
  if (!g || !some_wrapped(c, r, d) || !has_room(c, 2)) return r;
  return sx_ite(c, sx_truth(c, g), wrap_where(c, x, g, true, d), wrap_where(c, x, g, false, d));
}

sx sx_wrapped_where(sc *c, sx cond, bool holds, sx x) {
  const sx_func f = sc_op(c, x) == X_FN ? (sx_func)sc_word(c, x, 0) : F_IF;
  const sx g = sx_is_wrap(f) ? sx_top_guard(c, cond) : 0;
  if (c->fault.failed || !g || !has_room(c, 2)) return x;
  if (cond != sx_truth(c, g)) holds = !holds;
  if (cond != sx_truth(c, g) && cond != sx_not(c, sx_truth(c, g))) return x;
  const size_t facts = c->here.n_facts, path = c->here.n_path;
  const bool own = sc_assume(c, g, holds) && fits(c, sc_word(c, x, 1), type_of_wrap(f));
  c->here.n_facts = facts, c->here.n_path = path;
  return own ? sc_word(c, x, 1) : x;
}
