/* Expressions are hash-consed: equal structures are one node. A node derives from its children the
 * facts about its value, its hash, and which symbols can be in it. */
#include <stdlib.h>
#include <string.h>

#include "egraph/base/hash.h"
#include "validate/expr/expr_int.h"

static uint64_t mix(uint64_t a, uint64_t b) {
  a ^= b + 0x9e3779b97f4a7c15ULL + (a << 6) + (a >> 2);
  a *= 0xff51afd7ed558ccdULL;
  return a ^ (a >> 32);
}

static uint64_t q_hash(const sc *c, uint32_t q) {
  if (c->q.q[q].large) return pv_q_hash(&c->q, q);
  const pv_q *v = &c->q.q[q].small;
  return mix(mix((uint64_t)v->n, (uint64_t)v->d), (uint64_t)(int64_t)v->e);
}

static uint64_t structure(const sc *c, sx_op op, const uint32_t *w, size_t n) {
  uint64_t h = mix(op, 77), sum = 0;
  if (op == X_SYM) {
    const sx_sym *s = &c->store.sym[w[0]];
    return s->role == 'x' ? mix(h, s->high ? c->store.node[s->high].hash : 5) : mix(h, 1000 + w[0]);
  }
  if (op == X_CONST) return mix(h, q_hash(c, w[0]));
  if (op == X_ADD || op == X_MUL) {
    for (size_t i = 0; i < n; i += 2) {
      const uint32_t q = op == X_ADD ? w[i] : w[i + 1], x = op == X_ADD ? w[i + 1] : w[i];
      sum += mix(q_hash(c, q), c->store.node[x].hash);
    }
    return mix(h, sum);
  }
  if (op == X_MAX) {
    for (size_t i = 0; i < n; i++) sum += mix(9, c->store.node[w[i]].hash);
    return mix(h, sum);
  }
  for (size_t i = 0; i < n; i++) h = mix(h, sx_is_child(op, i) ? c->store.node[w[i]].hash : w[i]);
  return h;
}

static unsigned add_flags(const sc *c, const uint32_t *w, size_t n) {
  unsigned integer = S_INT, pos = 0, nonneg = S_NONNEG;
  int64_t k;
  for (size_t i = 0; i < n; i += 2) {
    const unsigned f = c->store.node[w[i + 1]].flags;
    if (!(f & S_INT) || !pv_q_is_int(&c->q, w[i], &k)) integer = 0;
    if (pv_q_sign(&c->q, w[i]) < 0 || !(f & S_NONNEG)) nonneg = 0;
    pos |= f & S_POS;
  }
  if (n == 2 && (c->store.node[w[1]].flags & S_NONZERO)) integer |= S_NONZERO;
  return integer | nonneg | (nonneg && pos ? S_POS | S_NONZERO : 0u);
}

static unsigned mul_flags(const sc *c, const uint32_t *w, size_t n) {
  bool pos = true, nonneg = true, nonzero = true, integer = true;
  int64_t k;
  for (size_t i = 0; i < n; i += 2) {
    const unsigned f = c->store.node[w[i]].flags;
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
  const unsigned f = c->store.node[w[1]].flags;
  switch ((sx_func)w[0]) {
  case F_EXP: return S_POS | S_NONNEG | S_NONZERO;
  case F_ABS: return S_NONNEG | (f & (S_NONZERO | S_INT)) | (f & S_NONZERO ? S_POS : 0u);
  case F_FLOOR:
  case F_CEIL:
  case F_ROUND:
  case F_TRUNC:
  case F_CAST_INT: return S_INT | (f & S_NONNEG);
  case F_AND: return S_INT | ((f | c->store.node[w[2]].flags) & S_NONNEG);
  case F_WRAP:
  case F_WRAP_I32:
  case F_WRAP_I16:
  case F_WRAP_I8: return S_INT;
  case F_WRAP_U8: return S_INT | S_NONNEG;
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
  case X_SYM: return c->store.sym[w[0]].flags;
  case X_BOUND: return S_INT | S_NONNEG;
  case X_ADD: return add_flags(c, w, n);
  case X_MUL: return mul_flags(c, w, n);
  case X_DIV: return S_INT | (c->store.node[w[0]].flags & S_NONNEG);
  case X_LEAF:
    f = c->r->var[w[0]].kind == 'i' ? S_INT : c->r->var[w[0]].kind == 'b' ? S_BOOL : 0u;
    return f | (c->r->var[w[0]].narrow == RULE_U8 ? S_NONNEG : 0u);
  case X_FN: return fn_flags(c, w);
  case X_SUM:
    f = c->store.node[w[n - 1]].flags;
    for (size_t i = 1; i + 1 < n; i++) all &= c->store.node[w[i]].flags;
    return (f & (S_INT | S_NONNEG)) | ((f & all & S_POS) ? positive : 0u);
  case X_TOP:
  case X_PROD: return c->store.node[w[n - 1]].flags & (S_INT | positive);
  case X_MAX:
    for (size_t i = 0; i < n; i++) {
      all &= c->store.node[w[i]].flags;
      f |= c->store.node[w[i]].flags & (S_POS | S_NONNEG);
    }
    return (all & (S_INT | S_NONZERO)) | f | (f & S_POS ? S_NONZERO : 0u);
  case X_ITE:
    return c->store.node[w[1]].flags & c->store.node[w[2]].flags & (S_INT | S_BOOL | positive);
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
    if (c->store.sym[w[0]].role == 'x') p->flags |= S_INDEX;
    return;
  }
  if (op == X_BOUND) p->bloom = 1ULL << (mix(w[0], 11) & 63);
  if (op == X_LEAF)
    p->bloom = 1ULL << (mix(w[0], 17) & 63); /* what has no symbol can be substituted too */
  for (size_t i = 0; i < p->n; i++) {
    if (!sx_is_child(op, i)) continue;
    const sx_node *k = &c->store.node[w[i]];
    p->bloom |= k->bloom;
    p->flags |= k->flags & (S_INDEX | S_MASKED);
    if (k->height > p->height) p->height = k->height;
  }
  if (op == X_SUM || op == X_TOP || op == X_PROD || op == X_ROW)
    p->height = (uint16_t)(p->height + w[0]);
}

static size_t node_slot(const sc *c, sx_op op, const uint32_t *w, size_t n) {
  return iso_hash(w, n * sizeof *w, (uint64_t)op) & (c->store.cap_table - 1);
}

static bool grow_table(sc *c) {
  const size_t cap = 2 * c->store.cap_table;
  uint32_t *t = calloc(cap, sizeof *t);
  if (!t) return false;
  free(c->store.table);
  c->store.table = t;
  c->store.cap_table = cap;
  for (sx x = 1; x < c->store.n_nodes; x++) {
    size_t h = node_slot(c, (sx_op)c->store.node[x].op, c->store.word + c->store.node[x].off,
                         c->store.node[x].n);
    while (t[h]) h = (h + 1) & (cap - 1);
    t[h] = x;
  }
  return true;
}

sx sc_node(sc *c, sx_op op, const uint32_t *w, size_t n) {
  if (!sc_work(c, n + 1)) return c->zero;
  if (2 * ((size_t)c->store.n_nodes + 1) > c->store.cap_table && !grow_table(c)) {
    c->fault.no_memory = true;
    sc_fail(c, "out of memory");
    return c->zero;
  }
  size_t h = node_slot(c, op, w, n);
  for (; c->store.table[h]; h = (h + 1) & (c->store.cap_table - 1)) {
    const sx_node *p = &c->store.node[c->store.table[h]];
    if (p->op == op && p->n == n && !memcmp(c->store.word + p->off, w, n * sizeof *w))
      return c->store.table[h];
  }
  if (c->store.n_nodes >= SC_MAX_NODES || n > SC_MAX_WORDS - c->store.n_words) {
    sc_fail(c, "more than %d expressions", (int)SC_MAX_NODES);
    return c->zero;
  }
  const sx id = c->store.n_nodes++;
  sx_node *p = &c->store.node[id];
  *p = (sx_node){.op = (uint8_t)op, .n = (uint32_t)n, .off = (uint32_t)c->store.n_words};
  uint32_t *to = c->store.word + c->store.n_words;
  if (n) memmove(to, w, n * sizeof *w);
  c->store.n_words += n;
  describe(c, p, to);
  c->store.table[h] = id;
  return id;
}
