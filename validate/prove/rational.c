/* Exact rationals: see rational.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "egraph/base/hash.h"
#include "egraph/base/vec.h"
#include "validate/prove/rational.h"

typedef __int128 i128;

static void fail(pv_rationals *c, const char *why) {
  if (!c->failed) c->reason = why;
  c->failed = true;
  if (c->failure) c->failure(c->ctx, why);
}

static i128 gcd(i128 a, i128 b) {
  if (a < 0) a = -a;
  while (b) {
    i128 t = a % b;
    a = b;
    b = t;
  }
  return a;
}

static pv_q normalize(pv_q q) {
  if (q.n == 0) return (pv_q){0, 1, 0};
  while (!(q.n & 1)) q.n /= 2, q.e++;
  while (!(q.d & 1)) q.d /= 2, q.e--;
  i128 g = gcd(q.n, q.d);
  q.n /= g;
  q.d /= g;
  return q;
}

static uint64_t hash_q(const pv_q *q) {
  uint64_t w[5] = {(uint64_t)q->n, (uint64_t)(q->n >> 64), (uint64_t)q->d, (uint64_t)(q->d >> 64),
                   (uint64_t)q->e};
  return iso_hash(w, sizeof w, 0);
}

static bool grow_table(pv_rationals *c) {
  size_t cap = c->cap_table ? 2 * c->cap_table : 64;
  uint32_t *t = calloc(cap, sizeof *t);
  if (!t) return false;
  for (size_t i = 0; i < c->n_q; i++) {
    size_t h = hash_q(&c->q[i]) & (cap - 1);
    while (t[h]) h = (h + 1) & (cap - 1);
    t[h] = (uint32_t)i + 1;
  }
  free(c->table);
  c->table = t;
  c->cap_table = cap;
  return true;
}

static uint32_t intern(pv_rationals *c, pv_q q) {
  q = normalize(q);
  if (2 * (c->n_q + 1) > c->cap_table && !grow_table(c)) goto memory;
  size_t h = hash_q(&q) & (c->cap_table - 1);
  for (; c->table[h]; h = (h + 1) & (c->cap_table - 1)) {
    const pv_q *p = &c->q[c->table[h] - 1];
    if (p->n == q.n && p->d == q.d && p->e == q.e) return c->table[h] - 1;
  }
  if (!iso_grow(c->q, c->cap_q, c->n_q + 1)) goto memory;
  c->q[c->n_q++] = q;
  c->table[h] = (uint32_t)c->n_q;
  return (uint32_t)c->n_q - 1;
memory:
  c->no_memory = true;
  fail(c, "out of memory");
  return 0;
}

bool pv_q_init(pv_rationals *c) {
  *c = (pv_rationals){0};
  for (int64_t i = 0; i < 3; i++) (void)intern(c, (pv_q){i == 2 ? -1 : i, 1, 0});
  return !c->failed;
}

void pv_q_fini(pv_rationals *c) {
  free(c->q);
  free(c->table);
}

uint32_t pv_q_int(pv_rationals *c, int64_t i) { return intern(c, (pv_q){i, 1, 0}); }

uint32_t pv_q_double(pv_rationals *c, double f) {
  if (!isfinite(f)) {
    fail(c, "a literal that is not finite");
    return PV_ZERO_Q;
  }
  int e = 0;
  double m = frexp(f, &e);
  return intern(c, (pv_q){(i128)(int64_t)ldexp(m, 53), 1, e - 53});
}

uint32_t pv_q_mul(pv_rationals *c, uint32_t a, uint32_t b) {
  if (a == PV_ONE_Q) return b;
  if (b == PV_ONE_Q) return a;
  if (a == PV_ZERO_Q || b == PV_ZERO_Q) return PV_ZERO_Q;
  pv_q x = c->q[a], y = c->q[b], r;
  i128 g = gcd(x.n, y.d), h = gcd(y.n, x.d);
  if (__builtin_mul_overflow(x.n / g, y.n / h, &r.n) ||
      __builtin_mul_overflow(x.d / h, y.d / g, &r.d) || __builtin_add_overflow(x.e, y.e, &r.e) ||
      abs(r.e) > 100000) {
    fail(c, "a coefficient beyond 128 bits");
    return PV_ZERO_Q;
  }
  return intern(c, r);
}

/* n * 2^k, or false where it does not fit. */
static bool shift(i128 *n, int32_t k) {
  for (; k > 0; k--)
    if (__builtin_mul_overflow(*n, (i128)2, n)) return false;
  return true;
}

uint32_t pv_q_add(pv_rationals *c, uint32_t a, uint32_t b) {
  if (a == PV_ZERO_Q) return b;
  if (b == PV_ZERO_Q) return a;
  pv_q x = c->q[a], y = c->q[b], r;
  i128 g = gcd(x.d, y.d), p, q;
  r.e = x.e < y.e ? x.e : y.e;
  if (x.e - r.e > 127 || y.e - r.e > 127 || __builtin_mul_overflow(x.n, y.d / g, &p) ||
      __builtin_mul_overflow(y.n, x.d / g, &q) || !shift(&p, x.e - r.e) || !shift(&q, y.e - r.e) ||
      __builtin_add_overflow(p, q, &r.n) || __builtin_mul_overflow(x.d, y.d / g, &r.d)) {
    fail(c, "a coefficient beyond 128 bits");
    return PV_ZERO_Q;
  }
  return intern(c, r);
}

static uint32_t inverse(pv_rationals *c, uint32_t a) {
  pv_q x = c->q[a];
  if (x.n == 0) {
    fail(c, "division by zero");
    return PV_ZERO_Q;
  }
  return intern(c, x.n < 0 ? (pv_q){-x.d, -x.n, -x.e} : (pv_q){x.d, x.n, -x.e});
}

uint32_t pv_q_pow(pv_rationals *c, uint32_t a, int64_t k) {
  if (k < 0) {
    a = inverse(c, a);
    k = -k;
  }
  if (a == PV_ONE_Q) return a;
  if (k > 200) {
    fail(c, "a coefficient beyond 128 bits");
    return PV_ZERO_Q;
  }
  uint32_t r = PV_ONE_Q;
  while (k-- > 0 && !c->failed) r = pv_q_mul(c, r, a);
  return r;
}

int pv_q_sign(const pv_rationals *c, uint32_t a) { return c->q[a].n < 0 ? -1 : c->q[a].n > 0; }

bool pv_q_is_int(const pv_rationals *c, uint32_t a, int64_t *out) {
  pv_q x = c->q[a];
  if (x.d != 1 || x.e < 0 || x.e > 62) return false;
  i128 n = x.n;
  if (!shift(&n, x.e) || n > INT64_MAX || n < -INT64_MAX) return false;
  *out = (int64_t)n;
  return true;
}
