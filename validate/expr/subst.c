/* Substitution, and binders opened. Each expression is rewritten once; one that a substitution
 * cannot touch is known by its bloom filter and stays. */
#include <stdlib.h>
#include <string.h>

#include "validate/expr/expr_int.h"

typedef struct subst {
  const sx_map *map;
  size_t n;
  uint64_t bloom;
  bool raw; /* names only: nothing is simplified, binders stay closed */
  sx *key, *value;
  size_t used, cap;
} subst;

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

static sx run(sc *c, subst *s, sx x);

sx sx_with_map(sc *c, sx x, const sx_map *map, size_t n, bool raw) {
  subst s = {.map = map, .n = n, .raw = raw};
  for (size_t i = 0; i < n; i++) s.bloom |= sc_at(c, map[i].from)->bloom;
  const sx r = run(c, &s, x);
  free(s.key);
  free(s.value);
  return r;
}

sx sx_subst(sc *c, sx x, const sx_map *map, size_t n) { return sx_with_map(c, x, map, n, false); }

/* A condition under the substitution, as a diagram. */
static sx run_guard(sc *c, subst *s, sx g) {
  const sx y = run(c, s, g);
  return sx_lift(c, y, truth, NULL);
}

static sx run_binder(sc *c, subst *s, sx x) {
  const sx_node p = *sc_at(c, x);
  uint32_t w[SX_MAX_BLOCK + 2];
  const uint32_t n = sc_word(c, x, 0);
  if (s->raw) {
    for (uint32_t i = 0; i < p.n; i++) w[i] = i ? run(c, s, sc_word(c, x, i)) : n;
    return sc_node(c, (sx_op)p.op, w, p.n);
  }
  sx k[SX_MAX_BLOCK], body;
  sx_map map[SX_MAX_BLOCK + 72];
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
    c->fault.no_memory = true;
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
    for (uint32_t i = 0; i < p.n / 2 && !c->fault.failed; i++) {
      q = sc_word(c, x, 2 * i + 1);
      r = sx_mul(c, r, sx_pow(c, run(c, s, sc_word(c, x, 2 * i)), q));
    }
    break;
  default: /* X_MAX */
    r = c->neginf;
    for (uint32_t i = 0; i < p.n && !c->fault.failed; i++)
      r = sx_max(c, r, run(c, s, sc_word(c, x, i)));
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
    if (c->reading.mask_frames) { /* it stays a factor */
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
  if (c->fault.failed) return c->zero;
  if (!(sc_at(c, x)->bloom & s->bloom)) return x;
  if (s->cap) {
    const size_t h = slot(s, x);
    if (s->key[h]) return s->value[h];
  }
  for (size_t i = 0; i < s->n && !s->raw; i++)
    if (s->map[i].from == x) return s->map[i].to;
  if (++c->budget.depth > SX_MAX_DEPTH) sc_fail(c, "an expression too deep");
  const sx r = c->fault.failed ? c->zero : run_op(c, s, x);
  c->budget.depth--;
  if (!remember(s, x, r)) {
    c->fault.no_memory = true;
    sc_fail(c, "out of memory");
  }
  return r;
}

sx sx_open(sc *c, sx binder, sx *k, uint32_t *n) {
  sx_map map[SX_MAX_BLOCK];
  *n = sc_word(c, binder, 0);
  const sx body = sc_word(c, binder, *n + 1);
  const uint32_t base = sc_at(c, body)->height;
  for (uint32_t i = 0; i < *n; i++) {
    k[i] = sc_index(c, sc_word(c, binder, i + 1));
    map[i] = (sx_map){sc_node(c, X_BOUND, &(uint32_t){base + 1 + i}, 1), k[i]};
  }
  return sx_with_map(c, body, map, *n, true);
}
