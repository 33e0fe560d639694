/* Expressions of the symbolic prover: hash-consing, and the normal form of sums, products, powers
 * and functions. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "egraph/base/hash.h"
#include "egraph/base/vec.h"
#include "validate/prove/prove_int.h"

enum {
  MAX_STACK = 1 << 22,
  MAX_TERMS = 6000,
  MAX_EXPAND = 12,
  VISITS_A_UNIT = 8 /* a step of a walk costs less than an expression made */
};

void sc_fail(sc *c, const char *fmt, ...) {
  if (c->failed) return;
  c->failed = true;
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(c->reason, sizeof c->reason, fmt, ap);
  va_end(ap);
}

/* A coefficient that has no room is 0 from then on: two that have none would be the same. */
static void numbers_failed(void *ctx, const char *why) { sc_fail(ctx, "%s", why); }

bool sc_work(sc *c, size_t n) {
  c->work += (int64_t)n + c->walk->visited / VISITS_A_UNIT;
  c->walk->visited %= VISITS_A_UNIT;
  if (c->work > c->max_work) sc_fail(c, "more work than the prover's budget");
  c->no_memory |= c->q.no_memory;
  if (c->work > c->next_look) {
    const char *why = val_stopped(c->o);
    c->next_look = c->work + SC_LOOK_WORK;
    if (why) sc_fail(c, "%s", why), c->work = SC_MAX_WORK + 1; /* no other case is tried */
  }
  return !c->failed;
}

/* ---- nodes ---- */

static uint64_t mix(uint64_t a, uint64_t b) {
  a ^= b + 0x9e3779b97f4a7c15ULL + (a << 6) + (a >> 2);
  a *= 0xff51afd7ed558ccdULL;
  return a ^ (a >> 32);
}

static bool is_child(sx_op op, size_t i) {
  switch (op) {
  case X_CONST:
  case X_SYM:
  case X_BOUND: return false;
  case X_ADD: return i & 1;
  case X_MUL: return !(i & 1);
  case X_LEAF:
  case X_FN:
  case X_SUM:
  case X_TOP:
  case X_PROD:
  case X_ROW: return i > 0;
  default: return true;
  }
}

static uint64_t q_hash(const sc *c, uint32_t q) {
  if (c->q.q[q].large) return pv_q_hash(&c->q, q);
  const pv_q *v = &c->q.q[q].small;
  return mix(mix((uint64_t)v->n, (uint64_t)v->d), (uint64_t)(int64_t)v->e);
}

static uint64_t structure(const sc *c, sx_op op, const uint32_t *w, size_t n) {
  uint64_t h = mix(op, 77), sum = 0;
  if (op == X_SYM) {
    const sx_sym *s = &c->sym[w[0]];
    return s->role == 'x' ? mix(h, s->high ? c->node[s->high].hash : 5) : mix(h, 1000 + w[0]);
  }
  if (op == X_CONST) return mix(h, q_hash(c, w[0]));
  if (op == X_ADD || op == X_MUL) {
    for (size_t i = 0; i < n; i += 2) {
      const uint32_t q = op == X_ADD ? w[i] : w[i + 1], x = op == X_ADD ? w[i + 1] : w[i];
      sum += mix(q_hash(c, q), c->node[x].hash);
    }
    return mix(h, sum);
  }
  if (op == X_MAX) {
    for (size_t i = 0; i < n; i++) sum += mix(9, c->node[w[i]].hash);
    return mix(h, sum);
  }
  for (size_t i = 0; i < n; i++) h = mix(h, is_child(op, i) ? c->node[w[i]].hash : w[i]);
  return h;
}

static unsigned add_flags(const sc *c, const uint32_t *w, size_t n) {
  unsigned integer = S_INT, pos = 0, nonneg = S_NONNEG;
  int64_t k;
  for (size_t i = 0; i < n; i += 2) {
    const unsigned f = c->node[w[i + 1]].flags;
    if (!(f & S_INT) || !pv_q_is_int(&c->q, w[i], &k)) integer = 0;
    if (pv_q_sign(&c->q, w[i]) < 0 || !(f & S_NONNEG)) nonneg = 0;
    pos |= f & S_POS;
  }
  if (n == 2 && (c->node[w[1]].flags & S_NONZERO)) integer |= S_NONZERO;
  return integer | nonneg | (nonneg && pos ? S_POS | S_NONZERO : 0u);
}

bool sx_q_even(const sc *c, uint32_t q) {
  int64_t k;
  return pv_q_is_int(&c->q, q, &k) && k % 2 == 0;
}

static unsigned mul_flags(const sc *c, const uint32_t *w, size_t n) {
  bool pos = true, nonneg = true, nonzero = true, integer = true;
  int64_t k;
  for (size_t i = 0; i < n; i += 2) {
    const unsigned f = c->node[w[i]].flags;
    const bool whole = pv_q_is_int(&c->q, w[i + 1], &k), even = whole && k % 2 == 0;
    const bool known =
        (f & S_NONZERO) || pv_q_sign(&c->q, w[i + 1]) < 0; /* an inverse is of what is not 0 */
    if (!(f & S_POS) && !((even || !whole) && known)) pos = false;
    if (!(f & S_NONNEG) && whole && !even) nonneg = false;
    if (!known) nonzero = false;
    if (!(f & S_INT) || !whole || k < 0) integer = false;
  }
  return (pos ? S_POS | S_NONNEG | S_NONZERO : 0u) | (nonneg ? S_NONNEG : 0u) |
         (nonzero ? S_NONZERO : 0u) | (integer ? S_INT : 0u);
}

static unsigned fn_flags(const sc *c, const uint32_t *w) {
  const unsigned f = c->node[w[1]].flags;
  switch ((sx_func)w[0]) {
  case F_EXP: return S_POS | S_NONNEG | S_NONZERO;
  case F_ABS: return S_NONNEG | (f & (S_NONZERO | S_INT)) | (f & S_NONZERO ? S_POS : 0u);
  case F_FLOOR:
  case F_CEIL:
  case F_ROUND:
  case F_TRUNC:
  case F_CAST_INT: return S_INT | (f & S_NONNEG);
  case F_AND: return S_INT | ((f | c->node[w[2]].flags) & S_NONNEG);
  case F_PLACE: return S_INT | S_NONNEG;
  case F_CAST_F32:
  case F_CAST_BF16:
    return f &
           (S_INT |
            S_NONNEG); /* an integer is rounded to one: beyond 2^24 and 2^8 there are no others */
  default: return 0;
  }
}

static unsigned flags_of(const sc *c, sx_op op, const uint32_t *w, size_t n) {
  const unsigned positive = S_POS | S_NONNEG | S_NONZERO;
  unsigned f = 0, all = ~0u;
  int64_t k;
  int s;
  switch (op) {
  case X_CONST:
    s = pv_q_sign(&c->q, w[0]);
    return (s > 0    ? positive
            : s == 0 ? S_NONNEG
                     : S_NONZERO) |
           (pv_q_is_int(&c->q, w[0], &k) ? S_INT : 0u);
  case X_SYM: return c->sym[w[0]].flags;
  case X_BOUND: return S_INT | S_NONNEG;
  case X_ADD: return add_flags(c, w, n);
  case X_MUL: return mul_flags(c, w, n);
  case X_DIV: return S_INT | (c->node[w[0]].flags & S_NONNEG);
  case X_LEAF:
    f = c->r->var[w[0]].kind == 'i' ? S_INT : c->r->var[w[0]].kind == 'b' ? S_BOOL : 0u;
    return f;
  case X_FN: return fn_flags(c, w);
  case X_SUM:
    f = c->node[w[n - 1]].flags;
    for (size_t i = 1; i + 1 < n; i++) all &= c->node[w[i]].flags;
    return (f & (S_INT | S_NONNEG)) | ((f & all & S_POS) ? positive : 0u);
  case X_TOP:
  case X_PROD: return c->node[w[n - 1]].flags & (S_INT | positive);
  case X_MAX:
    for (size_t i = 0; i < n; i++) {
      all &= c->node[w[i]].flags;
      f |= c->node[w[i]].flags & (S_POS | S_NONNEG);
    }
    return (all & (S_INT | S_NONZERO)) | f | (f & S_POS ? S_NONZERO : 0u);
  case X_ITE: return c->node[w[1]].flags & c->node[w[2]].flags & (S_INT | S_BOOL | positive);
  case X_LT:
  case X_EQ:
  case X_TRUE:
  case X_FALSE: return S_BOOL;
  case X_IVER: return S_INT | S_NONNEG;
  default: return 0;
  }
}

static void describe(const sc *c, sx_node *p, const uint32_t *w) {
  const sx_op op = (sx_op)p->op;
  p->hash = structure(c, op, w, p->n);
  p->flags = (uint8_t)(flags_of(c, op, w, p->n) & ~(unsigned)(S_INDEX | S_MASKED));
  if (op == X_NEGINF) p->flags = S_MASKED;
  if (op == X_SYM) {
    p->bloom = 1ULL << (mix(w[0], 3) & 63);
    if (c->sym[w[0]].role == 'x') p->flags |= S_INDEX;
    return;
  }
  if (op == X_BOUND) p->bloom = 1ULL << (mix(w[0], 11) & 63);
  if (op == X_LEAF)
    p->bloom = 1ULL << (mix(w[0], 17) & 63); /* what has no symbol can be substituted too */
  for (size_t i = 0; i < p->n; i++) {
    if (!is_child(op, i)) continue;
    const sx_node *k = &c->node[w[i]];
    p->bloom |= k->bloom;
    p->flags |= k->flags & (S_INDEX | S_MASKED);
    if (k->height > p->height) p->height = k->height;
  }
  if (op == X_SUM || op == X_TOP || op == X_PROD || op == X_ROW)
    p->height = (uint16_t)(p->height + w[0]);
}

static size_t node_slot(const sc *c, sx_op op, const uint32_t *w, size_t n) {
  return iso_hash(w, n * sizeof *w, (uint64_t)op) & (c->cap_table - 1);
}

static bool grow_table(sc *c) {
  const size_t cap = 2 * c->cap_table;
  uint32_t *t = calloc(cap, sizeof *t);
  if (!t) return false;
  free(c->table);
  c->table = t;
  c->cap_table = cap;
  for (sx x = 1; x < c->n_nodes; x++) {
    size_t h = node_slot(c, (sx_op)c->node[x].op, c->word + c->node[x].off, c->node[x].n);
    while (t[h]) h = (h + 1) & (cap - 1);
    t[h] = x;
  }
  return true;
}

sx sc_node(sc *c, sx_op op, const uint32_t *w, size_t n) {
  if (!sc_work(c, n + 1)) return c->zero;
  if (2 * ((size_t)c->n_nodes + 1) > c->cap_table && !grow_table(c)) {
    c->no_memory = true;
    sc_fail(c, "out of memory");
    return c->zero;
  }
  size_t h = node_slot(c, op, w, n);
  for (; c->table[h]; h = (h + 1) & (c->cap_table - 1)) {
    const sx_node *p = &c->node[c->table[h]];
    if (p->op == op && p->n == n && !memcmp(c->word + p->off, w, n * sizeof *w)) return c->table[h];
  }
  if (c->n_nodes >= SC_MAX_NODES || n > SC_MAX_WORDS - c->n_words) {
    sc_fail(c, "more than %d expressions", (int)SC_MAX_NODES);
    return c->zero;
  }
  const sx id = c->n_nodes++;
  sx_node *p = &c->node[id];
  *p = (sx_node){.op = (uint8_t)op, .n = (uint32_t)n, .off = (uint32_t)c->n_words};
  uint32_t *to = c->word + c->n_words;
  if (n) memmove(to, w, n * sizeof *w);
  c->n_words += n;
  describe(c, p, to);
  c->table[h] = id;
  return id;
}

/* Reserved, not touched: a small rule costs a few pages. */
struct sc_scratch {
  sx_node *node;
  uint32_t *word, *stack;
  bool taken;
};

static bool reserve(struct sc_scratch *x) {
  if (!x->node) x->node = malloc(SC_MAX_NODES * sizeof *x->node);
  if (!x->word) x->word = malloc((size_t)SC_MAX_WORDS * sizeof *x->word);
  if (!x->stack) x->stack = malloc((size_t)MAX_STACK * 2 * sizeof *x->stack);
  return x->node && x->word && x->stack;
}

static void let_go(struct sc_scratch *x) {
  free(x->node);
  free(x->word);
  free(x->stack);
  *x = (struct sc_scratch){0};
}

struct sc_scratch *sc_scratch_new(void) {
  return calloc(1, sizeof(struct sc_scratch));
}

void sc_scratch_free(struct sc_scratch *x) {
  if (x) let_go(x);
  free(x);
}

static bool take_memory(sc *c, const val_options *o) {
  struct sc_scratch own = {0}, *x = o && o->scratch && !o->scratch->taken ? o->scratch : &own;
  c->scratch = x == &own ? NULL : x;
  if (!reserve(x)) {
    let_go(x);
    c->scratch = NULL;
    return false;
  }
  x->taken = true;
  c->node = x->node;
  c->word = x->word;
  c->stack = x->stack;
  return true;
}

/* What a large proof has written is given back to the system. */
static void give_memory(sc *c) {
  enum { KEPT_NODES = 1 << 14, KEPT_WORDS = 1 << 17 };
  struct sc_scratch own = {c->node, c->word, c->stack, false}, *x = c->scratch ? c->scratch : &own;
  x->taken = false;
  if (x == &own || c->n_nodes > KEPT_NODES || c->n_words > KEPT_WORDS) let_go(x);
}

bool sc_init(sc *c, const rule *r, rule_schemas *s, const val_options *o) {
  *c = (sc){.r = r, .schemas = s, .max_work = SC_MAX_WORK};
  c->walk = &c->own_walk;
  if (!take_memory(c, o)) return false;
  c->cap_table = SC_TABLE;
  c->table = calloc(SC_TABLE, sizeof *c->table);
  if (!c->table) return false;
  if (!pv_q_init(&c->q)) return false;
  c->q.failure = numbers_failed;
  c->q.ctx = c;
  c->n_nodes = 1;
  c->node[0] = (sx_node){.op = X_NONE};
  c->zero = sx_q(c, PV_ZERO_Q);
  c->one = sx_q(c, PV_ONE_Q);
  c->minus_one = sx_q(c, PV_MINUS_Q);
  c->no = sc_node(c, X_FALSE, &(uint32_t){0}, 0);
  c->yes = sc_node(c, X_TRUE, &(uint32_t){0}, 0);
  c->neginf = sc_node(c, X_NEGINF, &(uint32_t){0}, 0);
  c->o = o; /* from here on it may stop */
  c->next_look = 0;
  return !c->failed;
}

void sc_fini(sc *c) {
  sc_z3_close(c);
  give_memory(c);
  free(c->table);
  for (size_t i = 0; i < c->n_owned && i < 256; i++) free(c->owned[i]);
  free(c->sym);
  pv_q_fini(&c->q);
  free(c->memo);
  free(c->elems);
  iso_arena_fini(&c->arena);
}

/* Where ranges are cut again and again at the borders of windows, another way to look at them is
 * tried. */
static size_t most_symbols(const sc *c) {
  return c->has_frames && !c->mask_frames ? SC_MAX_CUT_SYMS : SC_MAX_SYMS;
}

sx sc_symbol(sc *c, const char *name, char role, unsigned flags) {
  if (c->n_syms >= most_symbols(c) || !iso_grow(c->sym, c->cap_syms, c->n_syms + 1)) {
    if (c->n_syms < most_symbols(c)) c->no_memory = true;
    sc_fail(c, "too many indices");
    return c->zero;
  }
  c->sym[c->n_syms] = (sx_sym){.name = name, .role = role, .flags = flags};
  return sc_node(c, X_SYM, &(uint32_t){(uint32_t)c->n_syms++}, 1);
}

sx sc_symbol_named(sc *c, const char *name) {
  for (size_t i = 0; i < c->n_syms; i++)
    if (c->sym[i].role == 'c' && !strcmp(c->sym[i].name, name))
      return sc_node(c, X_SYM, &(uint32_t){(uint32_t)i}, 1);
  return sc_symbol(c, name, 'c', S_POS | S_NONNEG | S_NONZERO);
}

sx sc_unknown(sc *c, const char *name) {
  for (size_t i = 0; i < c->n_syms; i++)
    if (c->sym[i].role == 'u' && !strcmp(c->sym[i].name, name))
      return sc_node(c, X_SYM, &(uint32_t){(uint32_t)i}, 1);
  char *copy = c->n_owned < 256 ? strdup(name) : NULL;
  if (!copy) {
    c->no_memory |= c->n_owned < 256;
    sc_fail(c, "too many names");
    return c->zero;
  }
  c->owned[c->n_owned++] = copy;
  return sc_symbol(c, copy, 'u', 0);
}

sx sc_derived(sc *c, const char *name, sx of, int64_t low) {
  for (size_t i = 0; i < c->n_syms; i++)
    if (c->sym[i].role == 'q' && c->sym[i].of == of && c->sym[i].low == low &&
        !strcmp(c->sym[i].name, name))
      return sc_node(c, X_SYM, &(uint32_t){(uint32_t)i}, 1);
  const size_t at = c->n_syms;
  const sx u = sc_symbol(c, name, 'q',
                         S_INT | (low >= 0 ? S_NONNEG : 0u) | (low > 0 ? S_POS | S_NONZERO : 0u));
  if (!c->failed) c->sym[at].has_low = true, c->sym[at].low = low, c->sym[at].of = of;
  return u;
}

sx sc_index(sc *c, sx high) {
  if (high == c->one) return c->zero;
  const size_t at = c->n_syms;
  if (c->failed || at >= most_symbols(c)) return sc_symbol(c, "i", 'x', S_INT | S_NONNEG);
  if (!iso_grow(c->sym, c->cap_syms, at + 1)) {
    c->no_memory = true;
    sc_fail(c, "out of memory");
    return c->zero;
  }
  c->sym[at] =
      (sx_sym){.name = "i", .role = 'x', .flags = S_INT | S_NONNEG, .has_low = true, .high = high};
  c->n_syms++;
  return sc_node(c, X_SYM, &(uint32_t){(uint32_t)at}, 1);
}

/* ---- the scratch stack ---- */

static void push(sc *c, uint32_t a, uint32_t b) {
  if (c->sp >= MAX_STACK) {
    sc_fail(c, "an expression with too many terms");
    return;
  }
  c->stack[2 * c->sp] = a;
  c->stack[2 * c->sp + 1] = b;
  c->sp++;
}

static int by_first(const void *a, const void *b) {
  const uint32_t *x = a, *y = b;
  return x[0] < y[0] ? -1 : x[0] > y[0];
}
static int by_second(const void *a, const void *b) {
  const uint32_t *x = a, *y = b;
  return x[1] < y[1] ? -1 : x[1] > y[1];
}

/* ---- constants ---- */

sx sx_q(sc *c, uint32_t q) { return sc_node(c, X_CONST, &q, 1); }
sx sx_int(sc *c, int64_t i) { return sx_q(c, pv_q_int(&c->q, i)); }
sx sx_double(sc *c, double f) { return sx_q(c, pv_q_double(&c->q, f)); }
bool sx_is_q(const sc *c, sx x, uint32_t *q) {
  if (sc_op(c, x) != X_CONST) return false;
  *q = sc_word(c, x, 0);
  return true;
}
bool sx_is_int(const sc *c, sx x, int64_t *out) {
  uint32_t q;
  return sx_is_q(c, x, &q) && pv_q_is_int(&c->q, q, out);
}

/* ---- terms and factors ---- */

size_t sx_terms(const sc *c, sx x) {
  if (x == c->zero) return 0;
  return sc_op(c, x) == X_ADD ? c->node[x].n / 2 : 1;
}
void sx_term(const sc *c, sx x, size_t i, uint32_t *q, sx *m) {
  *q = PV_ONE_Q;
  *m = x;
  if (sc_op(c, x) == X_ADD) *q = sc_word(c, x, 2 * i), *m = sc_word(c, x, 2 * i + 1);
  else if (sc_op(c, x) == X_CONST) *q = sc_word(c, x, 0), *m = c->one;
}
size_t sx_factors(const sc *c, sx m) {
  if (m == c->one) return 0;
  return sc_op(c, m) == X_MUL ? c->node[m].n / 2 : 1;
}
void sx_factor(const sc *c, sx m, size_t i, sx *base, uint32_t *e) {
  *base = m;
  *e = PV_ONE_Q;
  if (sc_op(c, m) == X_MUL) *base = sc_word(c, m, 2 * i), *e = sc_word(c, m, 2 * i + 1);
}

bool sx_is_long(const sc *c, sx x) { return sc_op(c, x) == X_ADD && c->node[x].n > 2; }

/* Made of sizes, attributes and indices: in normal form also where elements are written as the
 * definitions give them. */
static bool of_sizes(const sc *c, const sx *a, size_t n) {
  for (size_t i = 0; i < n; i++) {
    const sx_op op = sc_op(c, a[i]);
    if (!sc_has(c, a[i], S_INT) && op != X_CONST && op != X_SYM && op != X_ADD && op != X_MUL)
      return false;
  }
  return true;
}

/* ---- sums ---- */

sx sx_smallest_guard(const sc *c, const sx *a, size_t n) {
  sx g = 0;
  for (size_t i = 0; i < n; i++) {
    const sx t = sx_top_guard(c, a[i]);
    if (t && (!g || t < g)) g = t;
  }
  return g;
}

/* Terms from `start` to the stack's top, which it takes off. */
static sx finish_sum(sc *c, size_t start) {
  const size_t n = c->sp - start;
  size_t m = 0;
  uint32_t *t = c->stack + 2 * start;
  c->sp = start;
  if (!sc_work(c, n)) return c->zero;
  qsort(t, n, 2 * sizeof *t, by_second);
  for (size_t i = 0; i < n;) {
    uint32_t q = t[2 * i];
    const uint32_t x = t[2 * i + 1];
    for (i++; i < n && t[2 * i + 1] == x; i++) q = pv_q_add(&c->q, q, t[2 * i]);
    if (q != PV_ZERO_Q) t[2 * m] = q, t[2 * m + 1] = x, m++;
  }
  if (m == 0 || c->failed) return c->zero;
  if (m > MAX_TERMS) sc_fail(c, "a sum of more than %d terms", (int)MAX_TERMS);
  if (m == 1 && t[1] == c->one) return sx_q(c, t[0]);
  if (m == 1 && t[0] == PV_ONE_Q) return t[1];
  return sc_node(c, X_ADD, t, 2 * m);
}

static sx lift_sum(sc *c, sx g, const sx *a, size_t n) {
  sx *b = malloc((n + 1) * sizeof *b);
  if (!b) {
    c->no_memory = true;
    sc_fail(c, "out of memory");
    return c->zero;
  }
  for (size_t i = 0; i < n; i++) b[i] = sx_cofactor(c, a[i], g, true);
  const sx x = sx_addn(c, b, n);
  for (size_t i = 0; i < n; i++) b[i] = sx_cofactor(c, a[i], g, false);
  const sx y = sx_addn(c, b, n);
  free(b);
  return x == y ? x : sc_node(c, X_ITE, (uint32_t[3]){g, x, y}, 3);
}

sx sx_addn(sc *c, const sx *a, size_t n) {
  if (c->failed || n == 0) return c->zero;
  if (n == 1) return a[0];
  const sx g = sx_smallest_guard(c, a, n);
  if (g) return lift_sum(c, g, a, n);
  for (size_t i = 0; i < n; i++) {
    if (a[i] == c->neginf) return a[i];
    if (sc_flags(c, a[i]) & S_BOOL) sc_fail(c, "arithmetic on truth values");
  }
  if (c->plain && !of_sizes(c, a, n)) {
    sx r = a[0];
    for (size_t i = 1; i < n; i++) r = sx_fn2(c, F_ADD, r, a[i]);
    return r;
  }
  const size_t start = c->sp;
  for (size_t i = 0; i < n; i++)
    for (size_t k = 0, m = sx_terms(c, a[i]); k < m && !c->failed; k++) {
      uint32_t q;
      sx x;
      sx_term(c, a[i], k, &q, &x);
      push(c, q, x);
    }
  return finish_sum(c, start);
}

sx sx_add(sc *c, sx a, sx b) {
  if (a == c->zero) return b;
  if (b == c->zero) return a;
  return sx_addn(c, (sx[2]){a, b}, 2);
}

sx sx_scale(sc *c, uint32_t q, sx a) {
  if (q == PV_ONE_Q || c->failed) return a;
  if (q == PV_ZERO_Q && a != c->neginf) return c->zero;
  const sx g = sx_top_guard(c, a);
  if (g) {
    const sx x = sx_scale(c, q, sx_cofactor(c, a, g, true)),
             y = sx_scale(c, q, sx_cofactor(c, a, g, false));
    return x == y ? x : sc_node(c, X_ITE, (uint32_t[3]){g, x, y}, 3);
  }
  if (a == c->neginf) {
    if (pv_q_sign(&c->q, q) <= 0) sc_fail(c, "minus infinity times a number that is not positive");
    return a;
  }
  if (c->plain && !of_sizes(c, &a, 1)) return sx_fn2(c, F_MUL, sx_q(c, q), a);
  const size_t start = c->sp;
  for (size_t k = 0, m = sx_terms(c, a); k < m && !c->failed; k++) {
    uint32_t p;
    sx x;
    sx_term(c, a, k, &p, &x);
    push(c, pv_q_mul(&c->q, p, q), x);
  }
  return finish_sum(c, start);
}
sx sx_neg(sc *c, sx a) { return sx_scale(c, PV_MINUS_Q, a); }
sx sx_sub(sc *c, sx a, sx b) {
  return a == b && !c->plain && a != c->neginf && !sx_top_guard(c, a) ? c->zero
                                                                      : sx_add(c, a, sx_neg(c, b));
}

/* ---- products ---- */

/* floor of a rational. */
int64_t sx_q_floor(const sc *c, uint32_t q) {
  int64_t k;
  if (pv_q_is_int(&c->q, q, &k)) return k;
  pv_q v;
  if (!pv_q_small(&c->q, q, &v)) return 0; /* out of reach: kept as it is */
  for (; v.e < 0 && v.d < ((__int128)1 << 100); v.e++) v.d *= 2;
  for (; v.e > 0 && v.n < ((__int128)1 << 100) && v.n > -((__int128)1 << 100); v.e--) v.n *= 2;
  if (v.e) return 0; /* out of reach: kept as it is */
  __int128 f = v.n / v.d;
  if (v.n < 0 && f * v.d != v.n) f--;
  return f > INT32_MAX || f < INT32_MIN ? 0 : (int64_t)f;
}

/* One merged factor: kept in place (true), or turned into something in `*extra`. */
static bool keep_factor(sc *c, uint32_t *w, uint32_t *coef, sx *extra) {
  const sx b = w[0];
  const uint32_t e = w[1];
  if (e == PV_ZERO_Q) return false;
  const int64_t whole = sx_q_floor(c, e);
  const sx_op op = sc_op(c, b);
  if (op == X_CONST) { /* a root of a number: the exponent within (0, 1) */
    if (whole) {
      *coef = pv_q_mul(&c->q, *coef, pv_q_pow(&c->q, sc_word(c, b, 0), whole));
      w[1] = pv_q_add(&c->q, e, pv_q_int(&c->q, -whole));
    }
    return w[1] != PV_ZERO_Q;
  }
  if (op == X_IVER && pv_q_sign(&c->q, e) > 0) {
    w[1] = PV_ONE_Q;
    return true;
  }
  if (op == X_FN && sc_word(c, b, 0) == F_ABS && pv_q_is_int(&c->q, e, &(int64_t){0}) &&
      (whole >= 2 || whole <= -1)) {
    const int64_t even = whole & ~(int64_t)1;
    *extra = sx_mul(c, *extra, sx_powi(c, sc_word(c, b, 1), even));
    w[1] = pv_q_int(&c->q, whole - even);
    return w[1] != PV_ZERO_Q;
  }
  const bool sum = op == X_ADD, product = op == X_MUL;
  if ((sum && whole >= 1) || (product && (whole >= 1 || pv_q_is_int(&c->q, e, &(int64_t){0})))) {
    *extra = sx_mul(c, *extra, sx_powi(c, b, whole));
    w[1] = pv_q_add(&c->q, e, pv_q_int(&c->q, -whole));
    return w[1] != PV_ZERO_Q;
  }
  return true;
}

/* Factors from `start` to the stack's top, times q. */
static sx finish_product(sc *c, size_t start, uint32_t q) {
  const size_t n = c->sp - start;
  size_t m = 0;
  uint32_t *t = c->stack + 2 * start;
  sx extra = c->one;
  if (!sc_work(c, n)) {
    c->sp = start;
    return c->zero;
  }
  qsort(t, n, 2 * sizeof *t, by_first);
  for (size_t i = 0; i < n;) {
    uint32_t w[2] = {t[2 * i], t[2 * i + 1]};
    for (i++; i < n && t[2 * i] == w[0]; i++) w[1] = pv_q_add(&c->q, w[1], t[2 * i + 1]);
    if (keep_factor(c, w, &q, &extra)) t[2 * m] = w[0], t[2 * m + 1] = w[1], m++;
  }
  sx r = c->failed                    ? c->zero
         : m == 0                     ? c->one
         : m == 1 && t[1] == PV_ONE_Q ? t[0]
                                      : sc_node(c, X_MUL, t, 2 * m);
  c->sp = start;
  if (q != PV_ONE_Q) r = sx_scale(c, q, r);
  return extra == c->one ? r : sx_mul(c, r, extra);
}

static void push_factors(sc *c, sx m, uint32_t times) {
  for (size_t i = 0, n = sx_factors(c, m); i < n; i++) {
    sx b;
    uint32_t e;
    sx_factor(c, m, i, &b, &e);
    push(c, b, times == PV_ONE_Q ? e : pv_q_mul(&c->q, e, times));
  }
}

static sx mul_monomials(sc *c, uint32_t q, sx a, sx b) {
  if (a == c->one || b == c->one) return sx_scale(c, q, a == c->one ? b : a);
  const size_t start = c->sp;
  push_factors(c, a, PV_ONE_Q);
  push_factors(c, b, PV_ONE_Q);
  return finish_product(c, start, q);
}

/* (sum)^e among b's factors with e < 0 takes the sum away. */
static bool cancels(sc *c, sx sum, sx b, sx *out) {
  uint32_t q;
  sx m;
  if (!sx_is_long(c, sum) || sx_is_long(c, b) || b == c->zero) return false;
  sx_term(c, b, 0, &q, &m);
  for (size_t i = 0, n = sx_factors(c, m); i < n; i++) {
    sx base;
    uint32_t e;
    sx_factor(c, m, i, &base, &e);
    if (base != sum || pv_q_sign(&c->q, e) >= 0) continue;
    const size_t start = c->sp;
    push_factors(c, m, PV_ONE_Q);
    push(c, sum, PV_ONE_Q);
    *out = finish_product(c, start, q);
    return true;
  }
  return false;
}

/* Whether p is max(0, x), so that p x is p^2. */
static bool is_positive_part(const sc *c, sx p, sx x) {
  if (sc_op(c, p) != X_MAX || c->node[p].n != 2) return false;
  const sx u = sc_word(c, p, 0), v = sc_word(c, p, 1);
  return (u == c->zero && v == x) || (v == c->zero && u == x);
}

sx sx_mul(sc *c, sx a, sx b) {
  sx r;
  if (c->failed) return c->zero;
  if (a == c->one) return b;
  if (b == c->one) return a;
  const sx g = sx_smallest_guard(c, (sx[2]){a, b}, 2);
  if (g) {
    const sx x = sx_mul(c, sx_cofactor(c, a, g, true), sx_cofactor(c, b, g, true));
    const sx y = sx_mul(c, sx_cofactor(c, a, g, false), sx_cofactor(c, b, g, false));
    return x == y ? x : sc_node(c, X_ITE, (uint32_t[3]){g, x, y}, 3);
  }
  if (a == c->neginf || b == c->neginf) {
    if (!sc_has(c, a == c->neginf ? b : a, S_POS))
      sc_fail(c, "minus infinity times a number that may not be positive");
    return c->neginf;
  }
  if ((sc_flags(c, a) | sc_flags(c, b)) & S_BOOL) sc_fail(c, "arithmetic on truth values");
  if (c->plain && !of_sizes(c, (sx[2]){a, b}, 2)) return sx_fn2(c, F_MUL, a, b);
  if (cancels(c, a, b, &r) || cancels(c, b, a, &r)) return r;
  if (is_positive_part(c, a, b)) return sx_powi(c, a, 2);
  if (is_positive_part(c, b, a)) return sx_powi(c, b, 2);
  const size_t n = sx_terms(c, a), m = sx_terms(c, b), start = c->sp;
  if (n * m > MAX_TERMS) sc_fail(c, "a product of more than %d terms", (int)MAX_TERMS);
  for (size_t i = 0; i < n && !c->failed; i++)
    for (size_t k = 0; k < m && !c->failed; k++) {
      uint32_t p, q;
      sx x, y;
      sx_term(c, a, i, &p, &x);
      sx_term(c, b, k, &q, &y);
      const sx z = mul_monomials(c, pv_q_mul(&c->q, p, q), x, y);
      if (n == 1 && m == 1) return z;
      for (size_t j = 0, l = sx_terms(c, z); j < l && !c->failed; j++) {
        sx_term(c, z, j, &q, &y);
        push(c, q, y);
      }
    }
  return finish_sum(c, start);
}
sx sx_mul3(sc *c, sx a, sx b, sx d) { return sx_mul(c, sx_mul(c, a, b), d); }

/* ---- powers ---- */

/* n^(1/2) for a rational: square factors come out, primes stay. Other roots stand as they are. */
static sx root_of_number(sc *c, uint32_t v, uint32_t e) {
  pv_q x;
  const bool fits = pv_q_small(&c->q, v, &x);
  if (pv_q_sign(&c->q, v) < 0) {
    sc_fail(c, "a root of a negative number");
    return c->zero;
  }
  if (v == PV_ZERO_Q) return c->zero;
  if (!fits || x.n > 100000000 || x.d > 100000000) {
    const size_t start = c->sp;
    push(c, sx_q(c, v), e);
    return finish_product(c, start, PV_ONE_Q);
  }
  const size_t start = c->sp;
  push(c, sx_int(c, 2), pv_q_mul(&c->q, pv_q_int(&c->q, x.e), e));
  int64_t part[2] = {(int64_t)x.n, (int64_t)x.d};
  for (int k = 0; k < 2; k++) {
    for (int64_t p = 3; p * p <= part[k]; p += 2)
      for (; part[k] % p == 0; part[k] /= p)
        push(c, sx_int(c, p), k ? pv_q_mul(&c->q, e, PV_MINUS_Q) : e);
    if (part[k] > 1) push(c, sx_int(c, part[k]), k ? pv_q_mul(&c->q, e, PV_MINUS_Q) : e);
  }
  return finish_product(c, start, PV_ONE_Q);
}

/* Exponent of `b` in monomial m. */
static uint32_t exponent_in(const sc *c, sx m, sx b) {
  for (size_t i = 0, n = sx_factors(c, m); i < n; i++) {
    sx x;
    uint32_t e;
    sx_factor(c, m, i, &x, &e);
    if (x == b) return e;
  }
  return PV_ZERO_Q;
}

static int q_compare(sc *c, uint32_t a, uint32_t b) {
  return pv_q_sign(&c->q, pv_q_add(&c->q, a, pv_q_mul(&c->q, b, PV_MINUS_Q)));
}

/* The common factor of a sum's terms: known-positive bases at their least exponent, others
 * (`any_base`) where all terms have them; and the coefficient of the term with the least hash (its
 * absolute value unless `any_base`). */
sx sx_content(sc *c, sx a, bool any_base) {
  enum { LONG_SUM = 24 };
  const size_t n = sx_terms(c, a);
  sx r = c->one;
  for (size_t i = 0; i < n && !c->failed; i++) {
    uint32_t q, e;
    sx m, b;
    sx_term(c, a, i, &q, &m);
    for (size_t k = 0, l = sx_factors(c, m); k < l; k++) {
      sx_factor(c, m, k, &b, &e);
      if (exponent_in(c, r, b) != PV_ZERO_Q || sc_op(c, b) == X_CONST || sc_op(c, b) == X_IVER)
        continue;
      const bool pos = sc_has(c, b, S_POS);
      if (!pos && !any_base) continue;
      if (n >= LONG_SUM && !sc_work(c, n))
        return c->one; /* what takes the square of its length is not to run away */
      uint32_t least = e;
      for (size_t j = 0; j < n; j++) {
        uint32_t p;
        sx o;
        sx_term(c, a, j, &p, &o);
        const uint32_t f = exponent_in(c, o, b);
        if (q_compare(c, f, least) < 0) least = f;
      }
      if (least != PV_ZERO_Q && (pos || pv_q_sign(&c->q, least) > 0)) {
        const size_t start = c->sp;
        push(c, b, least);
        r = sx_mul(c, r, finish_product(c, start, PV_ONE_Q));
      }
    }
  }
  return r;
}

/* Factor by factor, so that a sum among them is not multiplied out where it cancels. */
sx sx_without(sc *c, sx a, sx common) {
  sx r = c->zero;
  for (size_t i = 0, n = sx_terms(c, a); i < n && !c->failed; i++) {
    uint32_t q, e;
    sx m, b;
    sx_term(c, a, i, &q, &m);
    sx t = sx_q(c, q);
    for (size_t k = 0, l = sx_factors(c, m); k < l; k++) {
      sx_factor(c, m, k, &b, &e);
      if (exponent_in(c, common, b) == PV_ZERO_Q) t = sx_mul(c, t, sx_single(c, b, e));
    }
    for (size_t k = 0, l = sx_factors(c, common); k < l; k++) {
      sx_factor(c, common, k, &b, &e);
      t = sx_mul(
          c, t,
          sx_pow(c, b, pv_q_add(&c->q, exponent_in(c, m, b), pv_q_mul(&c->q, e, PV_MINUS_Q))));
    }
    r = sx_add(c, r, t);
  }
  return r;
}

uint32_t sx_leading(sc *c, sx a, bool any_sign) {
  uint32_t best = PV_ONE_Q;
  uint64_t least = UINT64_MAX;
  for (size_t i = 0, n = sx_terms(c, a); i < n; i++) {
    uint32_t q;
    sx m;
    sx_term(c, a, i, &q, &m);
    if (c->node[m].hash < least) least = c->node[m].hash, best = q;
  }
  if (!any_sign && pv_q_sign(&c->q, best) < 0) best = pv_q_mul(&c->q, best, PV_MINUS_Q);
  return best;
}

sx sx_single(sc *c, sx base, uint32_t q) {
  const size_t start = c->sp;
  push(c, base, q);
  return finish_product(c, start, PV_ONE_Q);
}

static sx pow_sum(sc *c, sx a, uint32_t q) {
  const bool whole = pv_q_is_int(&c->q, q, &(int64_t){0});
  const sx common = sx_content(c, a, whole);
  sx base = common == c->one ? a : sx_without(c, a, common);
  const uint32_t lead = sx_leading(c, base, whole);
  base = sx_scale(c, pv_q_pow(&c->q, lead, -1), base);
  if (c->failed) return c->zero;
  sx r = sx_single(c, base, q);
  if (common != c->one) r = sx_mul(c, r, sx_pow(c, common, q));
  return lead == PV_ONE_Q ? r : sx_mul(c, r, sx_pow(c, sx_q(c, lead), q));
}

static sx pow_monomial(sc *c, uint32_t coef, sx m, uint32_t q) {
  const bool whole = pv_q_is_int(&c->q, q, &(int64_t){0});
  sx r = c->one, rest = c->one;
  for (size_t i = 0, n = sx_factors(c, m); i < n && !c->failed; i++) {
    sx b;
    uint32_t e;
    sx_factor(c, m, i, &b, &e);
    const bool fractional = !pv_q_is_int(&c->q, e, &(int64_t){0});
    const size_t start = c->sp;
    if (whole || fractional || sc_has(c, b, S_NONNEG)) {
      push(c, b, pv_q_mul(&c->q, e, q));
      r = sx_mul(c, r, finish_product(c, start, PV_ONE_Q));
    } else if (sx_q_even(c, e)) { /* (b^2)^q is |b|^2q */
      push(c, sx_abs(c, b), pv_q_mul(&c->q, e, q));
      r = sx_mul(c, r, finish_product(c, start, PV_ONE_Q));
    } else {
      push(c, b, e);
      rest = sx_mul(c, rest, finish_product(c, start, PV_ONE_Q));
    }
  }
  if (whole || pv_q_sign(&c->q, coef) > 0) {
    if (coef != PV_ONE_Q) r = sx_mul(c, r, sx_pow(c, sx_q(c, coef), q));
    if (rest == c->one) return r;
    return sx_mul(c, r, sx_single(c, rest, q));
  }
  rest = sx_scale(c, PV_MINUS_Q, rest);
  r = sx_mul(c, r, sx_pow(c, sx_q(c, pv_q_mul(&c->q, coef, PV_MINUS_Q)), q));
  if (rest == c->minus_one) {
    sc_fail(c, "a root of a negative number");
    return c->zero;
  }
  return sx_mul(c, r, sx_single(c, rest, q));
}

typedef struct pow_ctx {
  uint32_t q;
} pow_ctx;

static sx pow_end(sc *c, sx a, const void *ctx) {
  const uint32_t q = ((const pow_ctx *)ctx)->q;
  int64_t k;
  const bool whole = pv_q_is_int(&c->q, q, &k);
  if (a == c->neginf) {
    sc_fail(c, "a power of minus infinity");
    return a;
  }
  if (sc_flags(c, a) & S_BOOL) sc_fail(c, "arithmetic on truth values");
  if (sc_op(c, a) == X_CONST) {
    if (a == c->zero) {
      if (pv_q_sign(&c->q, q) < 0) sc_fail(c, "division by zero where a condition holds");
      return c->zero;
    }
    if (!whole) return root_of_number(c, sc_word(c, a, 0), q);
    return sx_q(c, pv_q_pow(&c->q, sc_word(c, a, 0), k));
  }
  if (c->plain && !of_sizes(c, &a, 1)) return sx_fn2(c, F_POWER, a, sx_q(c, q));
  if (sx_is_long(c, a)) {
    if (!whole || k < 0) return pow_sum(c, a, q);
    if (k > MAX_EXPAND) {
      sc_fail(c, "a high power of a sum");
      return c->zero;
    }
    sx r = a;
    while (--k > 0) r = sx_mul(c, r, a);
    return r;
  }
  uint32_t coef;
  sx m;
  sx_term(c, a, 0, &coef, &m);
  return pow_monomial(c, coef, m, q);
}

sx sx_pow(sc *c, sx a, uint32_t q) {
  if (q == PV_ZERO_Q) return c->one;
  if (q == PV_ONE_Q || c->failed) return a;
  if (a == c->zero && pv_q_sign(&c->q, q) < 0) {
    c->undefined = true;
    sc_fail(c, "division by zero");
    return a;
  }
  if (pv_q_sign(&c->q, q) < 0) a = sx_within(c, a, c->zero);
  return sx_lift(c, a, pow_end, &(pow_ctx){q});
}
sx sx_powi(sc *c, sx a, int64_t k) { return sx_pow(c, a, pv_q_int(&c->q, k)); }
sx sx_inv(sc *c, sx a) { return sx_pow(c, a, PV_MINUS_Q); }
sx sx_sqrt(sc *c, sx a) { return sx_pow(c, a, pv_q_pow(&c->q, pv_q_int(&c->q, 2), -1)); }

/* ---- parts of polynomials ---- */

static bool occurs(const sc *c, sx x, sx in, uint32_t walk) {
  if (x == in) return true;
  if (c->node[x].bloom & ~c->node[in].bloom || !sc_walk_first(c, in, walk)) return false;
  const sx_node *p = &c->node[in];
  for (uint32_t i = 0; i < p->n; i++)
    if (is_child((sx_op)p->op, i) && occurs(c, x, c->word[p->off + i], walk)) return true;
  return false;
}

bool sx_occurs(const sc *c, sx x, sx in) {
  if (x == in || c->node[x].bloom & ~c->node[in].bloom) return x == in;
  return occurs(c, x, in, sc_walk_start(c));
}

static sx find_place(const sc *c, sx k, sx in, uint32_t walk) {
  const sx_node *p = &c->node[in];
  sx r = 0;
  if (c->node[k].bloom & ~p->bloom || !sc_walk_first(c, in, walk)) return 0;
  if (p->op == X_FN && c->word[p->off] == F_PLACE && c->word[p->off + 1] == k) return in;
  for (uint32_t i = 0; i < p->n && !r; i++)
    if (is_child((sx_op)p->op, i)) r = find_place(c, k, c->word[p->off + i], walk);
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
  for (size_t i = 0; i < n && n >= sx_terms(c, d) && n < 40 && !c->failed; i++) {
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
      f = exponent_in(c, m, b);
      if (q_compare(c, f, e) < 0) return false;
    }
  }
  *quotient = sx_mul(c, p, sx_inv(c, d));
  return !c->failed;
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
    if (exponent_in(c, m, atom) != PV_ONE_Q) return false;
    const sx rest = sx_mul(c, m, sx_inv(c, atom));
    if (sx_occurs(c, atom, rest)) return false;
    *a = sx_add(c, *a, sx_scale(c, q, rest));
  }
  return !c->failed;
}
