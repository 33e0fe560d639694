/* Element expressions: hash-consing and the normal form of sums, products, exponentials and conditions. */
#include "validate/encode_int.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "egraph/base/hash.h"

void pv_fail(pv_cx *c, const char *fmt, ...) {
  if (c->failed) return;
  c->failed = true;
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(c->reason, sizeof c->reason, fmt, ap);
  va_end(ap);
}

static bool work(pv_cx *c, size_t n) {
  c->work += (int64_t)n;
  if (c->work > PV_MAX_WORK) pv_fail(c, "more work than the prover's budget");
  if (c->work > c->next_look) {
    const char *why = val_stopped(c->o);
    c->next_look = c->work + PV_LOOK_WORK;
    if (why) pv_fail(c, "%s", why);
  }
  return !c->failed;
}

/* ---- nodes ---- */

/* The sign that can be told from the parts. */
static unsigned sum_flags(const pv_cx *c, const uint32_t *w, size_t n) {
  unsigned pos = 0;
  for (size_t i = 0; i < n; i += 2) {
    unsigned f = pv_flags(c, w[i + 1]);
    if (pv_q_sign(c, w[i]) < 0 || !(f & PV_NONNEG)) return 0;
    pos |= f & PV_POS;
  }
  return pos ? PV_POS | PV_NONNEG | PV_NONZERO : PV_NONNEG;
}

static unsigned prod_flags(const pv_cx *c, const uint32_t *w, size_t n) {
  bool pos = true, nonneg = true, nonzero = true;
  for (size_t i = 0; i < n; i += 2) {
    unsigned f = pv_flags(c, w[i]);
    bool even = !(w[i + 1] & 1);
    if (!(f & PV_POS) && !(even && (f & PV_NONZERO))) pos = false;
    if (!(f & PV_NONNEG) && !even) nonneg = false;
    if (!(f & PV_NONZERO)) nonzero = false;
  }
  return (pos ? PV_POS | PV_NONNEG | PV_NONZERO : 0u) | (nonneg ? PV_NONNEG : 0u) | (nonzero ? PV_NONZERO : 0u);
}

static unsigned flags_of(const pv_cx *c, pv_op op, const uint32_t *w, size_t n) {
  const unsigned positive = PV_POS | PV_NONNEG | PV_NONZERO;
  int s;
  unsigned f = 0, g;
  switch (op) {
  case PV_CONST:
    s = pv_q_sign(c, w[0]);
    return s > 0 ? positive : s == 0 ? PV_NONNEG : PV_NONZERO;
  case PV_SUM: return sum_flags(c, w, n);
  case PV_PROD: return prod_flags(c, w, n);
  case PV_EXP: case PV_ROOT: return positive;
  case PV_SQRT: return PV_NONNEG | (pv_flags(c, w[0]) & (PV_POS | PV_NONZERO));
  case PV_POW: return pv_flags(c, w[0]) & PV_POS ? positive : 0;
  case PV_MAX:
    for (size_t i = 0; i < n; i++) f |= pv_flags(c, w[i]) & (PV_POS | PV_NONNEG);
    return f & PV_POS ? positive : f;
  case PV_ITE:
    f = pv_flags(c, w[1]), g = pv_flags(c, w[2]);
    return (f & g & positive) | ((f | g) & PV_EXT);
  case PV_RSUM: { /* all elements nonnegative (positive): so is the sum */
    const pv_node *q = pv_at(c, w[0]);
    f = q->n ? positive : 0;
    for (size_t i = 0; i < q->n; i++) f &= pv_flags(c, c->word[q->off + i]);
    return f & (PV_POS | PV_NONNEG) ? f | (f & PV_POS ? PV_NONZERO : 0u) : 0;
  }
  case PV_SEQ:
    for (size_t i = 0; i < n; i++) f |= pv_flags(c, w[i]) & PV_EXT;
    return f;
  case PV_NEGINF: case PV_NEGBIG: return PV_EXT;
  default: return 0;
  }
}

static uint64_t hash_node(pv_op op, const uint32_t *w, size_t n) { return iso_hash(w, n * sizeof *w, (uint64_t)op); }

/* The table grows with what is in it: a small rule's nodes scattered over a large one would touch a page each. */
static bool grow_table(pv_cx *c) {
  const size_t slots = c->table_mask ? 2 * (c->table_mask + 1) : PV_TABLE;
  uint32_t *table = calloc(slots, sizeof *table);
  if (!table) return false;
  for (uint32_t i = 0; i < c->n_nodes; i++) {
    const pv_node *p = &c->node[i];
    size_t h = hash_node((pv_op)p->op, c->word + p->off, p->n) & (slots - 1);
    while (table[h]) h = (h + 1) & (slots - 1);
    table[h] = i + 1;
  }
  free(c->table);
  c->table = table;
  c->table_mask = slots - 1;
  return true;
}

/* `w` must not point into c->word. */
static pv_id node(pv_cx *c, pv_op op, const uint32_t *w, size_t n) {
  if (c->failed || !work(c, n)) return c->zero;
  if (2 * (size_t)c->n_nodes > c->table_mask && !grow_table(c)) {
    pv_fail(c, "out of memory");
    return c->zero;
  }
  size_t h = hash_node(op, w, n) & c->table_mask;
  for (; c->table[h]; h = (h + 1) & c->table_mask) {
    const pv_node *p = &c->node[c->table[h] - 1];
    if (p->op == op && p->n == n && !memcmp(c->word + p->off, w, n * sizeof *w))
      return c->n_leaves + c->table[h] - 1;
  }
  if (c->n_nodes >= PV_MAX_NODES || n > PV_MAX_WORDS - c->n_words) {
    pv_fail(c, "more than %d expressions", (int)PV_MAX_NODES);
    return c->zero;
  }
  pv_node *p = &c->node[c->n_nodes];
  *p = (pv_node){(uint8_t)op, (uint8_t)flags_of(c, op, w, n), (uint32_t)n, (uint32_t)c->n_words};
  if (n) memcpy(c->word + c->n_words, w, n * sizeof *w);
  c->n_words += n;
  c->table[h] = ++c->n_nodes;
  return c->n_leaves + c->n_nodes - 1;
}

bool pv_init(pv_cx *c, const rule *r, rule_schemas *s, int level, pv_id n_leaves) {
  *c = (pv_cx){.r = r, .schemas = s, .level = level, .n_leaves = n_leaves};
  /* Reserved, not touched: a small rule costs a few pages. */
  c->node = malloc(PV_MAX_NODES * sizeof *c->node);
  c->word = malloc((size_t)PV_MAX_WORDS * sizeof *c->word);
  c->scratch = malloc((size_t)PV_MAX_SCRATCH * sizeof *c->scratch);
  if (!c->node || !c->word || !c->scratch || !grow_table(c)) return false;
  for (int64_t i = 0; i < 3; i++) (void)pv_q_int(c, i == 2 ? -1 : i);
  c->zero = n_leaves;
  c->zero = pv_const(c, PV_ZERO_Q);
  c->one = pv_const(c, PV_ONE_Q);
  c->neginf = node(c, PV_NEGINF, &(uint32_t){0}, 0);
  c->negbig = node(c, PV_NEGBIG, &(uint32_t){0}, 0);
  c->no = node(c, PV_BOOL, &(uint32_t){0}, 1);
  c->yes = node(c, PV_BOOL, &(uint32_t){1}, 1);
  return !c->failed;
}

void pv_fini(pv_cx *c) {
  free(c->node);
  free(c->word);
  free(c->scratch);
  free(c->table);
  free(c->q);
  free(c->q_table);
  free(c->memo);
  iso_arena_fini(&c->arena);
}

/* ---- the scratch stack ---- */

static void push(pv_cx *c, uint32_t a, uint32_t b) {
  if (c->sp >= PV_MAX_SCRATCH) {
    pv_fail(c, "an expression with too many terms");
    return;
  }
  memcpy(&c->scratch[c->sp++], (uint32_t[2]){a, b}, 8);
}
static uint32_t *pair_at(const pv_cx *c, size_t i) { return (uint32_t *)&c->scratch[i]; }

static int cmp_term(const void *a, const void *b) {
  const uint32_t *x = a, *y = b;
  return x[1] < y[1] ? -1 : x[1] > y[1];
}
/* By base, then positive exponents first. */
static int cmp_factor(const void *a, const void *b) {
  const uint32_t *x = a, *y = b;
  if (x[0] != y[0]) return x[0] < y[0] ? -1 : 1;
  return (int)(x[1] >> 31) - (int)(y[1] >> 31);
}

static void sort_pairs(uint64_t *p, size_t n, int (*cmp)(const void *, const void *)) {
  if (n > 12) {
    qsort(p, n, sizeof *p, cmp);
    return;
  }
  for (size_t i = 1; i < n; i++)
    for (size_t j = i; j > 0 && cmp(&p[j - 1], &p[j]) > 0; j--) {
      uint64_t t = p[j];
      p[j] = p[j - 1];
      p[j - 1] = t;
    }
}

/* ---- constants ---- */

pv_id pv_const(pv_cx *c, uint32_t q) { return node(c, PV_CONST, &q, 1); }
pv_id pv_int(pv_cx *c, int64_t i) { return pv_const(c, pv_q_int(c, i)); }
bool pv_is_const(const pv_cx *c, pv_id a, uint32_t *q) {
  if (!pv_is(c, a, PV_CONST)) return false;
  *q = pv_words(c, pv_at(c, a))[0];
  return true;
}
pv_id pv_root(pv_cx *c) { return node(c, PV_ROOT, &(uint32_t){0}, 0); }

pv_id pv_literal(pv_cx *c, double f) {
  if (f == -INFINITY) return c->neginf;
  if (isnan(f) || isinf(f)) {
    pv_fail(c, "an infinite or undefined literal");
    return c->zero;
  }
  if (f <= -0.5 * 3.3895313892515355e38) {
    c->big_mask = true;
    return c->negbig;
  }
  uint32_t q = pv_q_double(c, f);
  double a = fabs(f);
  if (c->failed || a < 1e-3 || a > 1e3) return pv_const(c, q);
  pv_q v = c->q[q];
  if (v.n < (1 << 24) && v.n > -(1 << 24)) return pv_const(c, q); /* dyadic: meant as it stands */
  /* The double nearest to an irrational number is read as that number (assumption `literal`). */
  pv_id r = c->zero;
  double up = nearbyint(a * a), down = nearbyint(1 / (a * a)), fourth = nearbyint(1 / (a * a * a * a));
  if (a == 0.79788456080286541) r = pv_root(c);
  else if (up >= 2 && a == sqrt(up)) r = pv_sqrt(c, pv_int(c, (int64_t)up));
  else if (down >= 2 && (a == 1 / sqrt(down) || a == (double)(1 / sqrtl((long double)down))))
    r = pv_pow(c, pv_sqrt(c, pv_int(c, (int64_t)down)), -1);
  else if (fourth >= 2 && a == sqrt(1 / sqrt(fourth))) /* attention's scale on each factor */
    r = pv_pow(c, pv_sqrt(c, pv_sqrt(c, pv_int(c, (int64_t)fourth))), -1);
  else return pv_const(c, q);
  c->literal = true;
  return f < 0 ? pv_neg(c, r) : r;
}

/* ---- sums ---- */

static void push_terms(pv_cx *c, uint32_t q, pv_id a) {
  const pv_node *p = pv_at(c, a);
  if (p && p->op == PV_CONST) {
    push(c, pv_q_mul(c, q, pv_words(c, p)[0]), c->one);
  } else if (p && p->op == PV_SUM) {
    if (!work(c, p->n)) return;
    for (uint32_t i = 0; i < p->n && !c->failed; i += 2)
      push(c, pv_q_mul(c, q, c->word[p->off + i]), c->word[p->off + i + 1]);
  } else {
    if (p && (p->flags & PV_EXT)) pv_fail(c, "minus infinity in arithmetic");
    push(c, q, a);
  }
}

/* Terms from `start` up to the stack's top, which it takes off. */
static pv_id finish_sum(pv_cx *c, size_t start) {
  size_t n = c->sp - start, m = 0;
  uint64_t *t = c->scratch + start;
  c->sp = start;
  if (c->failed) return c->zero;
  sort_pairs(t, n, cmp_term);
  for (size_t i = 0; i < n;) {
    uint32_t w[2];
    memcpy(w, &t[i], 8);
    for (i++; i < n && ((uint32_t *)&t[i])[1] == w[1]; i++) w[0] = pv_q_add(c, w[0], ((uint32_t *)&t[i])[0]);
    if (w[0] != PV_ZERO_Q) memcpy(&t[m++], w, 8);
  }
  if (c->failed || m == 0) return c->zero;
  const uint32_t *w = (const uint32_t *)t;
  if (m == 1 && w[1] == c->one) return pv_const(c, w[0]);
  if (m == 1 && w[0] == PV_ONE_Q) return w[1];
  return node(c, PV_SUM, w, 2 * m);
}

/* Adding to what may be minus infinity happens in its branches. */
static pv_id add_ext(pv_cx *c, pv_id ext, pv_id b) {
  if (pv_is(c, ext, PV_NEGINF)) return ext;
  if (pv_is(c, ext, PV_NEGBIG)) return pv_is(c, b, PV_NEGINF) ? b : ext;
  const uint32_t *w = pv_words(c, pv_at(c, ext));
  pv_id cond = w[0], x = w[1], y = w[2];
  if (!work(c, 1)) return c->zero;
  x = pv_add(c, x, b);
  return pv_ite(c, cond, x, pv_add(c, y, b));
}

pv_id pv_add(pv_cx *c, pv_id a, pv_id b) {
  c->arithmetic = true;
  if (c->failed) return c->zero;
  if (pv_flags(c, a) & PV_EXT) return add_ext(c, a, b);
  if (pv_flags(c, b) & PV_EXT) return add_ext(c, b, a);
  size_t start = c->sp;
  push_terms(c, PV_ONE_Q, a);
  push_terms(c, PV_ONE_Q, b);
  return finish_sum(c, start);
}

pv_id pv_scale(pv_cx *c, uint32_t q, pv_id a) {
  c->arithmetic = true;
  if (q == PV_ONE_Q || c->failed) return a;
  const pv_node *p = pv_at(c, a);
  if (p && (p->flags & PV_EXT)) {
    if (pv_q_sign(c, q) <= 0) {
      if (q == PV_ZERO_Q && p->op == PV_NEGBIG) return c->zero;
      pv_fail(c, "minus infinity times a number that is not positive");
      return c->zero;
    }
    /* A finite mask made smaller need not be a mask any more. */
    if (p->op == PV_NEGBIG && q != PV_ONE_Q) pv_fail(c, "a scaled finite mask");
    if (p->op != PV_ITE) return a;
    pv_id cond = c->word[p->off], x = c->word[p->off + 1], y = c->word[p->off + 2];
    x = pv_scale(c, q, x);
    return pv_ite(c, cond, x, pv_scale(c, q, y));
  }
  size_t start = c->sp;
  push_terms(c, q, a);
  return finish_sum(c, start);
}

pv_id pv_neg(pv_cx *c, pv_id a) { return pv_scale(c, PV_MINUS_Q, a); }
pv_id pv_sub(pv_cx *c, pv_id a, pv_id b) { return pv_add(c, a, pv_neg(c, b)); }

/* ---- products ---- */

/* a as q * rest, where rest has no coefficient (or is a sum of several terms). */
static pv_id monic(const pv_cx *c, pv_id a, uint32_t *q) {
  const pv_node *p = pv_at(c, a);
  *q = PV_ONE_Q;
  if (p && p->op == PV_CONST) {
    *q = c->word[p->off];
    return c->one;
  }
  if (p && p->op == PV_SUM && p->n == 2) {
    *q = c->word[p->off];
    return c->word[p->off + 1];
  }
  return a;
}

static bool is_long(const pv_cx *c, pv_id a) {
  const pv_node *p = pv_at(c, a);
  return p && p->op == PV_SUM && p->n > 2;
}

static void push_factors(pv_cx *c, pv_id m, int32_t times) {
  const pv_node *p = pv_at(c, m);
  if (m == c->one) return;
  if (p && p->op == PV_PROD) {
    for (uint32_t i = 0; i < p->n; i += 2) {
      int32_t x;
      if (__builtin_mul_overflow((int32_t)c->word[p->off + i + 1], times, &x)) pv_fail(c, "an exponent too large");
      push(c, c->word[p->off + i], (uint32_t)x);
    }
  } else {
    push(c, m, (uint32_t)times);
  }
}

/* Factors from `start` to the stack's top, times q. */
static pv_id finish_product(pv_cx *c, size_t start, uint32_t q) {
  size_t n = c->sp - start, m = 0;
  uint64_t *t = c->scratch + start;
  c->sp = start;
  if (c->failed || q == PV_ZERO_Q) return c->zero;
  sort_pairs(t, n, cmp_factor);
  /* Positive and negative powers of one base meet only where the base is known not to be zero. */
  for (size_t i = 0; i < n;) {
    uint32_t w[2];
    memcpy(w, &t[i], 8);
    bool nonzero = pv_flags(c, w[0]) & PV_NONZERO;
    int64_t x = (int32_t)w[1];
    for (i++; i < n; i++) {
      const uint32_t *v = (const uint32_t *)&t[i];
      if (v[0] != w[0] || (!nonzero && (v[1] >> 31) != (w[1] >> 31))) break;
      x += (int32_t)v[1];
    }
    if (x > INT32_MAX / 4 || x < INT32_MIN / 4) pv_fail(c, "an exponent too large");
    w[1] = (uint32_t)(int32_t)x;
    if (x) memcpy(&t[m++], w, 8);
  }
  if (c->failed) return c->zero;
  /* sqrt(v)^2 is v: these factors leave the list and are multiplied in afterwards. */
  size_t kept = 0;
  c->sp = start + m;
  size_t out = c->sp;
  for (size_t i = 0; i < m; i++) {
    uint32_t w[2];
    memcpy(w, &t[i], 8);
    const pv_node *p = pv_at(c, w[0]);
    int32_t x = (int32_t)w[1];
    if (p && p->op == PV_SQRT && (pv_flags(c, c->word[p->off]) & PV_NONNEG) && (x >= 2 || x <= -1)) {
      bool constant = pv_is(c, c->word[p->off], PV_CONST);
      int32_t half = x / 2, rest = x % 2;
      if (constant && rest < 0) half--, rest = 1; /* 1/sqrt(2) is sqrt(2)/2 */
      if (half) push(c, c->word[p->off], (uint32_t)half);
      if (!rest) continue;
      w[1] = (uint32_t)rest;
    }
    memcpy(&t[kept++], w, 8);
  }
  const uint32_t *w = (const uint32_t *)t;
  pv_id r = kept == 0 ? c->one : kept == 1 && w[1] == 1 ? w[0] : node(c, PV_PROD, w, 2 * kept);
  if (q != PV_ONE_Q || is_long(c, r)) r = pv_scale(c, q, r);
  size_t end = c->sp;
  for (size_t i = out; i < end && !c->failed; i++) {
    uint32_t v[2];
    memcpy(v, pair_at(c, i), 8);
    r = pv_mul(c, r, pv_pow(c, v[0], (int32_t)v[1]));
  }
  c->sp = start;
  return r;
}

/* The smallest exponent of `b` in monomial m, of the sign asked for; 0 where it does not occur. */
static int32_t exponent(const pv_cx *c, pv_id m, pv_id b, bool negative) {
  const pv_node *p = pv_at(c, m);
  if (m == b) return negative ? 0 : 1;
  if (!p || p->op != PV_PROD) return 0;
  for (uint32_t i = 0; i < p->n; i += 2)
    if (c->word[p->off + i] == b && (c->word[p->off + i + 1] >> 31) == (uint32_t)negative)
      return (int32_t)c->word[p->off + i + 1];
  return 0;
}

enum { MAX_COMMON = 8 };
typedef struct common {
  pv_id b[MAX_COMMON];
  int32_t x[MAX_COMMON];
  uint32_t n;
} common;

static void candidate(const pv_cx *c, common *g, pv_id b, int32_t x) {
  (void)c;
  for (uint32_t i = 0; i < g->n; i++)
    if (g->b[i] == b && (g->x[i] < 0) == (x < 0)) return;
  if (g->n < MAX_COMMON) g->b[g->n] = b, g->x[g->n++] = x;
}

static void candidates(const pv_cx *c, common *g, pv_id m, bool only_negative) {
  const pv_node *p = pv_at(c, m);
  if (m == c->one) return;
  if (!p || p->op != PV_PROD) {
    if (!only_negative) candidate(c, g, m, 1);
    return;
  }
  for (uint32_t i = 0; i < p->n; i += 2) {
    int32_t x = (int32_t)c->word[p->off + i + 1];
    bool positive = pv_flags(c, c->word[p->off + i]) & PV_POS;
    if (!only_negative || (positive && x < 0)) candidate(c, g, c->word[p->off + i], x);
  }
}

/* The exponent of the common factor: the one nearest to zero of one sign; for positive bases the least one, so that
 * 1 + 1/e becomes (e + 1)/e. m runs over monomials m[0], m[stride], ... */
static int32_t least(const pv_cx *c, const uint32_t *m, size_t n, size_t stride, pv_id b, int32_t x) {
  bool positive = pv_flags(c, b) & PV_POS;
  int32_t best = 0;
  for (size_t i = 0; i < n; i++) {
    if (m[i * stride] == c->zero) continue; /* of a sequence */
    int32_t y = exponent(c, m[i * stride], b, x < 0);
    if (positive && y == 0) y = exponent(c, m[i * stride], b, x > 0);
    if (!positive && y == 0) return 0;
    if (i == 0 || best == INT32_MIN) best = y;
    else if (positive) best = y < best ? y : best;
    else best = abs(y) < abs(best) ? y : best;
    if (best == 0 && !positive) return 0;
  }
  return best;
}

/* m / (common factor) */
static pv_id divide(pv_cx *c, pv_id m, const common *g) {
  size_t start = c->sp;
  push_factors(c, m, 1);
  for (uint32_t i = 0; i < g->n; i++) {
    if (!g->x[i]) continue;
    /* Cancel by hand: the base may be zero for all we know, but it occurs in m with this sign. */
    bool done = false;
    for (size_t k = start; k < c->sp && !done; k++) {
      uint32_t *w = pair_at(c, k);
      if (w[0] != g->b[i] || ((int32_t)w[1] < 0) != (g->x[i] < 0)) continue;
      w[1] = (uint32_t)((int32_t)w[1] - g->x[i]);
      done = true;
    }
    if (!done) push(c, g->b[i], (uint32_t)-g->x[i]);
  }
  return finish_product(c, start, PV_ONE_Q);
}

/* a long sum as q * (common factors, pushed times `k`) * S', where S' begins with coefficient 1. */
static pv_id content(pv_cx *c, pv_id a, uint32_t *q, int32_t k) {
  const pv_node *p = pv_at(c, a);
  *q = PV_ONE_Q;
  common g = {.n = 0};
  const uint32_t *w = c->word + p->off;
  size_t n = p->n / 2;
  if (!work(c, p->n)) return c->one;
  candidates(c, &g, w[1], false);
  for (size_t i = 0; i < n && g.n < MAX_COMMON; i++) candidates(c, &g, w[2 * i + 1], true);
  bool any = false;
  for (uint32_t i = 0; i < g.n; i++) {
    g.x[i] = least(c, w + 1, n, 2, g.b[i], g.x[i]);
    for (uint32_t j = 0; j < i; j++)
      if (g.b[j] == g.b[i] && g.x[j] == g.x[i]) g.x[i] = 0;
    any |= g.x[i] != 0;
  }
  if (any) {
    size_t start = c->sp;
    for (size_t i = 0; i < n && !c->failed; i++) {
      pv_id m = divide(c, w[2 * i + 1], &g);
      push_terms(c, w[2 * i], m);
    }
    a = finish_sum(c, start);
    for (uint32_t i = 0; i < g.n; i++)
      if (g.x[i]) push(c, g.b[i], (uint32_t)(g.x[i] * k));
  }
  if (is_long(c, a)) {
    uint32_t lead = c->word[pv_at(c, a)->off];
    if (lead != PV_ONE_Q) {
      a = pv_scale(c, pv_q_pow(c, lead, -1), a);
      *q = lead;
    }
  } else {
    a = monic(c, a, q);
  }
  return a;
}

enum { MAX_EXPANDED = 1 << 16 };

static size_t n_terms(const pv_cx *c, pv_id a) { return is_long(c, a) ? pv_at(c, a)->n / 2 : 1; }

static pv_id distribute(pv_cx *c, pv_id a, pv_id b) {
  size_t n = n_terms(c, a), m = n_terms(c, b), start = c->sp;
  for (size_t i = 0; i < n && !c->failed; i++)
    for (size_t j = 0; j < m && !c->failed; j++) {
      pv_id x = a, y = b;
      uint32_t p = PV_ONE_Q, q = PV_ONE_Q;
      if (is_long(c, a)) p = c->word[pv_at(c, a)->off + 2 * i], x = c->word[pv_at(c, a)->off + 2 * i + 1];
      else x = monic(c, a, &p);
      if (is_long(c, b)) q = c->word[pv_at(c, b)->off + 2 * j], y = c->word[pv_at(c, b)->off + 2 * j + 1];
      else y = monic(c, b, &q);
      size_t mark = c->sp;
      push_factors(c, x, 1);
      push_factors(c, y, 1);
      pv_id r = finish_product(c, mark, pv_q_mul(c, p, q));
      push_terms(c, PV_ONE_Q, r);
    }
  return finish_sum(c, start);
}

pv_id pv_mul(pv_cx *c, pv_id a, pv_id b) {
  uint32_t p, q, r = PV_ONE_Q;
  c->arithmetic = true;
  if (c->failed) return c->zero;
  if (pv_is_const(c, a, &p)) return pv_scale(c, p, b);
  if (pv_is_const(c, b, &q)) return pv_scale(c, q, a);
  if ((pv_flags(c, a) | pv_flags(c, b)) & PV_EXT) {
    pv_fail(c, "minus infinity in a product");
    return c->zero;
  }
  if (is_long(c, a) || is_long(c, b)) {
    if (c->level == 2 && n_terms(c, a) * n_terms(c, b) <= MAX_EXPANDED) return distribute(c, a, b);
    c->expansion_left = true;
  }
  size_t start = c->sp;
  a = monic(c, a, &p);
  b = monic(c, b, &q);
  p = pv_q_mul(c, p, q);
  if (is_long(c, a)) a = content(c, a, &r, 1), p = pv_q_mul(c, p, r);
  push_factors(c, a, 1);
  if (is_long(c, b)) b = content(c, b, &r, 1), p = pv_q_mul(c, p, r);
  push_factors(c, b, 1);
  return finish_product(c, start, p);
}

pv_id pv_pow(pv_cx *c, pv_id a, int64_t k) {
  uint32_t q, r = PV_ONE_Q;
  c->arithmetic = true;
  if (k == 1 || c->failed) return a;
  if (k == 0) return c->one;
  if (k > 1000 || k < -1000) pv_fail(c, "an exponent too large");
  if (pv_flags(c, a) & PV_EXT) pv_fail(c, "minus infinity in a power");
  if (c->failed) return c->zero;
  if (pv_is_const(c, a, &q)) return pv_const(c, pv_q_pow(c, q, k));
  if (c->level == 2 && k > 1 && k <= 8 && is_long(c, a)) return pv_mul(c, a, pv_pow(c, a, k - 1));
  size_t start = c->sp;
  a = monic(c, a, &q);
  if (is_long(c, a)) a = content(c, a, &r, (int32_t)k);
  push_factors(c, a, (int32_t)k);
  return finish_product(c, start, pv_q_pow(c, pv_q_mul(c, q, r), k));
}

pv_id pv_div(pv_cx *c, pv_id a, pv_id b) {
  pv_id inverse = pv_pow(c, b, -1);
  return pv_mul(c, a, inverse);
}

/* ---- functions ---- */

/* The root of a positive integer as k * sqrt(m), m without squares below the bound. */
static pv_id sqrt_int(pv_cx *c, int64_t v) {
  int64_t k = 1;
  for (int64_t f = 2; f <= 65536 && f * f <= v; f++)
    while (v % (f * f) == 0) v /= f * f, k *= f;
  int64_t s = (int64_t)llround(sqrt((double)v));
  if (s * s == v) return pv_int(c, k * s);
  pv_id n = pv_int(c, v);
  return pv_scale(c, pv_q_int(c, k), node(c, PV_SQRT, &n, 1));
}

static pv_id sqrt_const(pv_cx *c, uint32_t q) {
  pv_q v = c->q[q];
  if (v.n < 0) {
    pv_fail(c, "the root of a negative number");
    return c->zero;
  }
  if (v.n == 0) return c->zero;
  /* n/d 2^e = n d 2^(e odd) / d^2 4^(e/2) */
  int32_t half = v.e >= 0 ? v.e / 2 : -((1 - v.e) / 2), odd = v.e - 2 * half;
  if (v.n < (1 << 20) && v.d < (1 << 20)) {
    pv_id r = sqrt_int(c, (int64_t)(v.n * v.d) << odd);
    r = pv_scale(c, pv_q_pow(c, pv_q_int(c, (int64_t)v.d), -1), r);
    return pv_scale(c, pv_q_pow(c, pv_q_int(c, 2), half), r);
  }
  pv_id n = pv_const(c, q);
  return node(c, PV_SQRT, &n, 1);
}

pv_id pv_sqrt(pv_cx *c, pv_id a) {
  uint32_t q;
  c->arithmetic = true;
  if (pv_flags(c, a) & PV_EXT) pv_fail(c, "the root of minus infinity");
  if (pv_is_const(c, a, &q)) return sqrt_const(c, q);
  return node(c, PV_SQRT, &a, 1);
}

/* e^(q x) for one term of an exponent: onto the stack as a factor. */
static void push_exp(pv_cx *c, uint32_t q, pv_id x) {
  int64_t k;
  if (!pv_q_is_int(c, q, &k) || k > 64 || k < -64) {
    k = pv_q_sign(c, q);
    x = pv_scale(c, k < 0 ? pv_q_mul(c, q, PV_MINUS_Q) : q, x);
  }
  push(c, node(c, PV_EXP, &x, 1), (uint32_t)(int32_t)k);
}

pv_id pv_exp(pv_cx *c, pv_id a) {
  c->arithmetic = true;
  if (c->failed) return c->zero;
  if (a == c->zero) return c->one;
  if (a == c->neginf || a == c->negbig) return c->zero;
  if (pv_flags(c, a) & PV_EXT) {
    const uint32_t *w = pv_words(c, pv_at(c, a));
    pv_id cond = w[0], x = w[1], y = w[2];
    x = pv_exp(c, x);
    return pv_ite(c, cond, x, pv_exp(c, y));
  }
  /* A short sum becomes a product of exponentials (so that e^(x - max) cancels), a long one stays whole. */
  size_t n = n_terms(c, a), start = c->sp;
  if (n > 4) {
    uint32_t lead = c->word[pv_at(c, a)->off];
    push_exp(c, lead, pv_scale(c, pv_q_pow(c, lead, -1), a));
  } else if (n > 1) {
    for (size_t i = 0; i < n; i++) {
      uint32_t off = pv_at(c, a)->off + 2 * (uint32_t)i;
      push_exp(c, c->word[off], c->word[off + 1]);
    }
  } else {
    uint32_t q;
    pv_id m = monic(c, a, &q);
    push_exp(c, q, m);
  }
  return finish_product(c, start, PV_ONE_Q);
}

pv_id pv_call(pv_cx *c, pv_fn f, pv_id a) {
  uint32_t q;
  c->arithmetic = true;
  if (pv_flags(c, a) & PV_EXT) pv_fail(c, "a function of minus infinity");
  if (f == PV_LOG && pv_is_const(c, a, &q) && pv_q_sign(c, q) <= 0) pv_fail(c, "log outside its domain");
  if (a == c->zero && (f == PV_ERF || f == PV_SIN)) return c->zero;
  if (a == c->zero && f == PV_COS) return c->one;
  if (f == PV_LOG && a == c->one) return c->zero;
  if (f == PV_LOG && pv_is(c, a, PV_EXP)) return pv_words(c, pv_at(c, a))[0];
  /* Odd and even functions take a leading coefficient that is positive. */
  const pv_node *p = pv_at(c, a);
  bool negative = f != PV_LOG && p && ((p->op == PV_SUM && pv_q_sign(c, c->word[p->off]) < 0) ||
                                       (pv_is_const(c, a, &q) && pv_q_sign(c, q) < 0));
  if (negative) a = pv_neg(c, a);
  pv_id r = node(c, PV_FN, (uint32_t[2]){(uint32_t)f, a}, 2);
  return negative && f != PV_COS ? pv_neg(c, r) : r;
}

pv_id pv_powq(pv_cx *c, pv_id a, uint32_t q) {
  int64_t k;
  c->arithmetic = true;
  if (pv_q_is_int(c, q, &k)) return pv_pow(c, a, k);
  if (pv_q_is_int(c, pv_q_mul(c, pv_q_int(c, 2), q), &k) && k <= 9 && k >= -9) return pv_pow(c, pv_sqrt(c, a), k);
  if (pv_flags(c, a) & PV_EXT) pv_fail(c, "a power of minus infinity");
  return node(c, PV_POW, (uint32_t[2]){a, q}, 2);
}

/* ---- maximum ---- */

static int cmp_id(const void *a, const void *b) {
  uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
  return x < y ? -1 : x > y;
}

/* Sorts and removes repetitions; returns the new length. */
static size_t sort_ids(uint32_t *a, size_t n) {
  qsort(a, n, sizeof *a, cmp_id);
  size_t m = 0;
  for (size_t i = 0; i < n; i++)
    if (m == 0 || a[m - 1] != a[i]) a[m++] = a[i];
  return m;
}

pv_id pv_max(pv_cx *c, const pv_id *a, size_t n) {
  c->arithmetic = true;
  if (n == 0) pv_fail(c, "the maximum of nothing");
  if (c->failed) return c->zero;
  size_t cap = 0, m = 0;
  for (size_t i = 0; i < n; i++) cap += pv_is(c, a[i], PV_MAX) ? pv_at(c, a[i])->n : 1;
  if (cap > PV_MAX_SCRATCH - c->sp) pv_fail(c, "an expression with too many terms");
  if (c->failed || !work(c, cap)) return c->zero;
  uint32_t *w = pair_at(c, c->sp), best = 0, q;
  bool constant = false;
  for (size_t i = 0; i < n; i++) {
    if (a[i] == c->neginf) continue;
    if (pv_flags(c, a[i]) & PV_EXT) pv_fail(c, "the maximum of a mask that depends on values");
    const pv_node *p = pv_at(c, a[i]);
    size_t k = p && p->op == PV_MAX ? p->n : 1;
    for (size_t j = 0; j < k; j++) {
      pv_id x = p && p->op == PV_MAX ? c->word[p->off + j] : a[i];
      if (!pv_is_const(c, x, &q)) w[m++] = x;
      else if (!constant || pv_q_sign(c, pv_q_add(c, q, pv_q_mul(c, PV_MINUS_Q, best))) > 0) constant = true, best = q;
    }
  }
  if (constant) w[m++] = pv_const(c, best);
  if (c->failed) return c->zero;
  if (m == 0) return c->neginf;
  m = sort_ids(w, m);
  return m == 1 ? w[0] : node(c, PV_MAX, w, m);
}

pv_id pv_max2(pv_cx *c, pv_id a, pv_id b) { return pv_max(c, (pv_id[2]){a, b}, 2); }

/* ---- sequences ---- */

pv_id pv_seq(pv_cx *c, const pv_id *a, size_t n) { return node(c, PV_SEQ, a, n); }

/* The elements without their common coefficient and factors: onto the stack's memory as ids; the factor is returned. */
static pv_id common_factor(pv_cx *c, const pv_id *a, size_t n, uint32_t *out) {
  uint32_t q = PV_ZERO_Q, r;
  common g = {.n = 0};
  bool same = true, first = true;
  for (size_t i = 0; i < n; i++) {
    out[i] = a[i];
    if (pv_flags(c, a[i]) & PV_EXT) pv_fail(c, "minus infinity in a sum");
    if (a[i] == c->zero) continue;
    pv_id m = monic(c, a[i], &r);
    if (first) q = r, candidates(c, &g, m, false);
    else if (q != r) same = false;
    first = false;
  }
  if (first || c->failed) return c->one;
  if (!same) q = PV_ONE_Q;
  for (size_t i = 0; i < n && same && q != PV_ONE_Q; i++)
    if (a[i] != c->zero) out[i] = monic(c, a[i], &r);
  /* With different coefficients only the coefficients stay where they are. */
  bool any = false;
  size_t start = c->sp;
  for (uint32_t k = 0; k < g.n; k++) {
    int32_t best = 0;
    bool begun = false;
    for (size_t i = 0; i < n; i++) {
      if (a[i] == c->zero) continue;
      pv_id m = monic(c, a[i], &r);
      int32_t y = is_long(c, m) && m != g.b[k] ? 0 : least(c, &m, 1, 1, g.b[k], g.x[k]);
      bool positive = pv_flags(c, g.b[k]) & PV_POS;
      if (!begun) best = y;
      else if (positive) best = y < best ? y : best;
      else best = abs(y) < abs(best) ? y : best;
      begun = true;
      if (best == 0) break;
    }
    g.x[k] = best;
    any |= best != 0;
  }
  if (!work(c, n)) return c->one;
  if (any) {
    for (size_t i = 0; i < n && !c->failed; i++) {
      if (a[i] == c->zero) continue;
      pv_id m = monic(c, a[i], &r), d = divide(c, m, &g);
      out[i] = same ? d : pv_scale(c, r, d);
    }
    for (uint32_t k = 0; k < g.n; k++)
      if (g.x[k]) push(c, g.b[k], (uint32_t)g.x[k]);
  }
  return finish_product(c, start, q);
}

pv_vec pv_vec_of(pv_cx *c, const pv_id *a, size_t n) {
  pv_vec v = {c->one, c->zero, a, n};
  if (c->level > 0 || c->failed) return v;
  uint32_t *w = malloc((n ? n : 1) * sizeof *w);
  if (!w) {
    c->no_memory = true;
    pv_fail(c, "out of memory");
    return v;
  }
  v.factor = common_factor(c, a, n, w);
  v.seq = pv_seq(c, w, n);
  free(w);
  return v;
}

static bool all_zero(const pv_cx *c, const pv_id *a, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (a[i] != c->zero) return false;
  return true;
}

pv_id pv_dot(pv_cx *c, const pv_vec *a, const pv_vec *b) {
  c->arithmetic = true;
  if (c->failed || !work(c, 1)) return c->zero;
  if (c->level > 0 || a->n == 1) {
    size_t start = c->sp;
    for (size_t k = 0; k < a->n && !c->failed; k++)
      if (a->e[k] != c->zero && b->e[k] != c->zero) {
        pv_id m = pv_mul(c, a->e[k], b->e[k]);
        push_terms(c, PV_ONE_Q, m);
      }
    return finish_sum(c, start);
  }
  if (all_zero(c, a->e, a->n) || all_zero(c, b->e, b->n)) return c->zero;
  pv_id x = a->seq < b->seq ? a->seq : b->seq, y = a->seq < b->seq ? b->seq : a->seq;
  pv_id d = node(c, PV_DOT, (uint32_t[2]){x, y}, 2);
  c->expansion_left = true;
  return pv_mul(c, pv_mul(c, d, a->factor), b->factor);
}

pv_id pv_sum(pv_cx *c, const pv_id *a, size_t n) {
  c->arithmetic = true;
  if (c->failed || n == 0) return c->zero;
  if (c->level > 0 || n == 1) {
    size_t start = c->sp;
    for (size_t i = 0; i < n && !c->failed; i++) push_terms(c, PV_ONE_Q, a[i]);
    return finish_sum(c, start);
  }
  uint32_t *w = malloc(n * sizeof *w);
  if (!w) {
    c->no_memory = true;
    pv_fail(c, "out of memory");
    return c->zero;
  }
  pv_id f = common_factor(c, a, n, w);
  size_t m = 0;
  for (size_t i = 0; i < n; i++)
    if (w[i] != c->zero) w[m++] = w[i];
  qsort(w, m, sizeof *w, cmp_id);
  pv_id s = m == 0 ? c->zero : m == 1 ? w[0] : pv_seq(c, w, m);
  if (m > 1) {
    s = node(c, PV_RSUM, &s, 1);
    c->expansion_left = true;
  }
  free(w);
  return pv_mul(c, f, s);
}

pv_id pv_select(pv_cx *c, pv_id seq, pv_id index) {
  uint32_t q;
  int64_t i;
  const pv_node *s = pv_at(c, seq);
  if (c->failed) return c->zero;
  if (pv_is_const(c, index, &q)) {
    if (pv_q_is_int(c, q, &i) && i >= 0 && i < (int64_t)s->n) return c->word[s->off + (uint32_t)i];
    pv_fail(c, "a table read out of range");
    return c->zero;
  }
  if (s->flags & PV_EXT) pv_fail(c, "minus infinity in a table");
  return node(c, PV_SELECT, (uint32_t[2]){seq, index}, 2);
}

/* ---- conditions ---- */

pv_id pv_bool(const pv_cx *c, bool b) { return b ? c->yes : c->no; }

pv_id pv_not(pv_cx *c, pv_id a) {
  if (a == c->yes) return c->no;
  if (a == c->no) return c->yes;
  if (pv_is(c, a, PV_NOT)) return pv_words(c, pv_at(c, a))[0];
  c->arithmetic = true;
  return node(c, PV_NOT, &a, 1);
}

static pv_id junction(pv_cx *c, pv_op op, pv_id a, pv_id b) {
  uint32_t w[64];
  size_t n = 0;
  for (int k = 0; k < 2; k++) {
    pv_id x = k ? b : a;
    const pv_node *p = pv_at(c, x);
    if (p && p->op == op && p->n <= 31)
      for (uint32_t i = 0; i < p->n; i++) w[n++] = c->word[p->off + i];
    else w[n++] = x;
  }
  c->arithmetic = true;
  n = sort_ids(w, n);
  return n == 1 ? w[0] : node(c, op, w, n);
}

pv_id pv_and(pv_cx *c, pv_id a, pv_id b) {
  if (a == c->no || b == c->no) return c->no;
  if (a == c->yes) return b;
  if (b == c->yes) return a;
  return junction(c, PV_AND, a, b);
}

pv_id pv_or(pv_cx *c, pv_id a, pv_id b) {
  if (a == c->yes || b == c->yes) return c->yes;
  if (a == c->no) return b;
  if (b == c->no) return a;
  return junction(c, PV_OR, a, b);
}

pv_id pv_lt(pv_cx *c, pv_id a, pv_id b) {
  uint32_t p, q;
  if (a == b) return c->no;
  if (pv_is_const(c, a, &p) && pv_is_const(c, b, &q))
    return pv_bool(c, pv_q_sign(c, pv_q_add(c, q, pv_q_mul(c, PV_MINUS_Q, p))) > 0);
  c->arithmetic = true;
  if (a == c->neginf && !(pv_flags(c, b) & PV_EXT)) return c->yes;
  if (b == c->neginf && !(pv_flags(c, a) & PV_EXT)) return c->no;
  if ((pv_flags(c, a) | pv_flags(c, b)) & PV_EXT) pv_fail(c, "minus infinity in a comparison");
  return node(c, PV_LT, (uint32_t[2]){a, b}, 2);
}

pv_id pv_eq(pv_cx *c, pv_id a, pv_id b) {
  uint32_t p, q;
  if (a == b) return c->yes;
  if (pv_is_const(c, a, &p) && pv_is_const(c, b, &q)) return c->no;
  c->arithmetic = true;
  if (a == c->neginf && !(pv_flags(c, b) & PV_EXT)) return c->no;
  if (b == c->neginf && !(pv_flags(c, a) & PV_EXT)) return c->no;
  if ((pv_flags(c, a) | pv_flags(c, b)) & PV_EXT) pv_fail(c, "minus infinity in a comparison");
  return node(c, PV_EQ, (uint32_t[2]){a < b ? a : b, a < b ? b : a}, 2);
}

pv_id pv_ite(pv_cx *c, pv_id cond, pv_id a, pv_id b) {
  if (cond == c->yes || a == b) return a;
  if (cond == c->no) return b;
  if (pv_is(c, cond, PV_NOT)) return pv_ite(c, pv_words(c, pv_at(c, cond))[0], b, a);
  c->arithmetic = true;
  return node(c, PV_ITE, (uint32_t[3]){cond, a, b}, 3);
}

pv_id pv_ite_bool(pv_cx *c, pv_id cond, pv_id a, pv_id b) {
  if (a == b) return a;
  pv_id x = pv_and(c, cond, a);
  return pv_or(c, x, pv_and(c, pv_not(c, cond), b));
}
