/* Exact rationals: see rational.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "egraph/base/hash.h"
#include "egraph/base/vec.h"
#include "validate/expr/gmp_memory.h"
#include "validate/expr/rational.h"

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

static uint64_t hash_small(const pv_q *q) {
  uint64_t w[5] = {(uint64_t)q->n, (uint64_t)(q->n >> 64), (uint64_t)q->d, (uint64_t)(q->d >> 64),
                   (uint64_t)q->e};
  return iso_hash(w, sizeof w, 0);
}

static uint64_t hash_large(mpz_srcptr n, mpz_srcptr d, int32_t e) {
  const uint64_t h = iso_hash(mpz_limbs_read(n), mpz_size(n) * sizeof(mp_limb_t),
                              (uint64_t)(mpz_sgn(n) + 1) + ((uint64_t)(uint32_t)e << 2));
  return iso_hash(mpz_limbs_read(d), mpz_size(d) * sizeof(mp_limb_t), h);
}

static uint64_t hash_number(const pv_number *x) {
  return x->large ? hash_large(x->large->n, x->large->d, x->small.e) : hash_small(&x->small);
}

static bool grow_table(pv_rationals *c) {
  size_t cap = c->cap_table ? 2 * c->cap_table : 64;
  uint32_t *t = calloc(cap, sizeof *t);
  if (!t) return false;
  for (size_t i = 0; i < c->n_q; i++) {
    size_t h = hash_number(&c->q[i]) & (cap - 1);
    while (t[h]) h = (h + 1) & (cap - 1);
    t[h] = (uint32_t)i + 1;
  }
  free(c->table);
  c->table = t;
  c->cap_table = cap;
  return true;
}

static uint32_t no_memory(pv_rationals *c) {
  c->no_memory = true;
  fail(c, "out of memory");
  return PV_ZERO_Q;
}

/* Room for one more number, in the table too. */
static bool make_room(pv_rationals *c) {
  if (2 * (c->n_q + 1) > c->cap_table && !grow_table(c)) return false;
  return iso_grow(c->q, c->cap_q, c->n_q + 1);
}

static uint32_t append(pv_rationals *c, size_t slot, pv_number x) {
  c->q[c->n_q++] = x;
  c->table[slot] = (uint32_t)c->n_q;
  return (uint32_t)c->n_q - 1;
}

static uint32_t intern(pv_rationals *c, pv_q q) {
  q = normalize(q);
  if (!make_room(c)) return no_memory(c);
  size_t h = hash_small(&q) & (c->cap_table - 1);
  for (; c->table[h]; h = (h + 1) & (c->cap_table - 1)) {
    const pv_number *p = &c->q[c->table[h] - 1];
    if (!p->large && p->small.n == q.n && p->small.d == q.d && p->small.e == q.e)
      return c->table[h] - 1;
  }
  return append(c, h, (pv_number){.small = q});
}

/* ---- what does not fit ---- */

/* A number under way, in GMP's memory: between begin and end alone. */
typedef struct wide {
  mpz_t n, d;
  int64_t e;
} wide;

enum { SMALL_BITS = 127 };

static void set_small(mpz_ptr x, i128 v) {
  const unsigned __int128 u = v < 0 ? -(unsigned __int128)v : (unsigned __int128)v;
  const uint64_t half[2] = {(uint64_t)u, (uint64_t)(u >> 64)};
  mpz_import(x, 2, -1, sizeof *half, 0, 0, half);
  if (v < 0) mpz_neg(x, x);
}

static i128 get_small(mpz_srcptr x) {
  uint64_t half[2] = {0, 0};
  mpz_export(half, NULL, -1, sizeof *half, 0, 0, x);
  const i128 u = (i128)(((unsigned __int128)half[1] << 64) | half[0]);
  return mpz_sgn(x) < 0 ? -u : u;
}

static void wide_init(wide *w, const pv_number *x) {
  mpz_init(w->n);
  mpz_init(w->d);
  if (x->large) {
    mpz_set(w->n, x->large->n);
    mpz_set(w->d, x->large->d);
  } else {
    set_small(w->n, x->small.n);
    set_small(w->d, x->small.d);
  }
  w->e = x->small.e;
}

static void wide_clear(wide *w) {
  mpz_clear(w->n);
  mpz_clear(w->d);
}

static void without_twos(mpz_ptr x, int64_t *e, int sign) {
  const mp_bitcnt_t k = mpz_scan1(x, 0);
  mpz_tdiv_q_2exp(x, x, k);
  *e += sign * (int64_t)k;
}

/* n and d odd, without a common factor. Requires: n is not 0. */
static void wide_normalize(wide *w) {
  without_twos(w->n, &w->e, 1);
  without_twos(w->d, &w->e, -1);
  mpz_t g;
  mpz_init(g);
  mpz_gcd(g, w->n, w->d);
  mpz_divexact(w->n, w->n, g);
  mpz_divexact(w->d, w->d, g);
  mpz_clear(g);
}

/* A copy outside of GMP's memory, in one block. NULL: no memory. */
static pv_large *copy_large(const wide *w, size_t *bytes) {
  const size_t n = mpz_size(w->n), d = mpz_size(w->d);
  *bytes = sizeof(pv_large) + (n + d) * sizeof(mp_limb_t);
  pv_large *r = malloc(*bytes);
  if (!r) return NULL;
  mp_limb_t *limb = (mp_limb_t *)(r + 1);
  memcpy(limb, mpz_limbs_read(w->n), n * sizeof *limb);
  memcpy(limb + n, mpz_limbs_read(w->d), d * sizeof *limb);
  mpz_roinit_n(r->n, limb, mpz_sgn(w->n) < 0 ? -(mp_size_t)n : (mp_size_t)n);
  mpz_roinit_n(r->d, limb + n, (mp_size_t)d);
  return r;
}

static uint32_t intern_large(pv_rationals *c, const wide *w) {
  if (!make_room(c)) return no_memory(c);
  const int32_t e = (int32_t)w->e;
  size_t h = hash_large(w->n, w->d, e) & (c->cap_table - 1), bytes;
  for (; c->table[h]; h = (h + 1) & (c->cap_table - 1)) {
    const pv_number *p = &c->q[c->table[h] - 1];
    if (p->large && p->small.e == e && mpz_cmp(p->large->n, w->n) == 0 &&
        mpz_cmp(p->large->d, w->d) == 0)
      return c->table[h] - 1;
  }
  pv_large *x = copy_large(w, &bytes);
  if (!x) return no_memory(c);
  c->bytes += bytes;
  return append(c, h, (pv_number){.small = {0, 1, e}, .large = x});
}

static uint32_t intern_wide(pv_rationals *c, wide *w) {
  if (mpz_sgn(w->n) == 0) return PV_ZERO_Q;
  wide_normalize(w);
  const size_t n = mpz_sizeinbase(w->n, 2), d = mpz_sizeinbase(w->d, 2);
  if (n > PV_MOST_BITS || d > PV_MOST_BITS || c->bytes > PV_MOST_BYTES || w->e > PV_MOST_SHIFT ||
      w->e < -PV_MOST_SHIFT) {
    fail(c, "a coefficient that is too long");
    return PV_ZERO_Q;
  }
  if (n <= SMALL_BITS && d <= SMALL_BITS)
    return intern(c, (pv_q){get_small(w->n), get_small(w->d), (int32_t)w->e});
  return intern_large(c, w);
}

/* x becomes x y, or x + y. Returns: false where that is out of bounds. */
static bool wide_mul(wide *x, const wide *y) {
  mpz_mul(x->n, x->n, y->n);
  mpz_mul(x->d, x->d, y->d);
  x->e += y->e;
  return true;
}

static bool wide_add(wide *x, wide *y) {
  const int64_t e = x->e < y->e ? x->e : y->e;
  if (x->e - e > PV_MOST_BITS || y->e - e > PV_MOST_BITS) return false;
  mpz_mul(x->n, x->n, y->d);
  mpz_mul(y->n, y->n, x->d);
  mpz_mul_2exp(x->n, x->n, (mp_bitcnt_t)(x->e - e));
  mpz_mul_2exp(y->n, y->n, (mp_bitcnt_t)(y->e - e));
  mpz_add(x->n, x->n, y->n);
  mpz_mul(x->d, x->d, y->d);
  x->e = e;
  return true;
}

static uint32_t in_gmp(pv_rationals *c, uint32_t a, uint32_t b, bool product) {
  gmp_memory memory;
  if (!gmp_memory_begin(&memory)) return no_memory(c);
  wide x, y;
  wide_init(&x, &c->q[a]);
  wide_init(&y, &c->q[b]);
  uint32_t r = PV_ZERO_Q;
  if (product ? wide_mul(&x, &y) : wide_add(&x, &y)) r = intern_wide(c, &x);
  else fail(c, "a coefficient that is too long");
  wide_clear(&x);
  wide_clear(&y);
  const bool needed = memory.needed;
  gmp_memory_end(&memory);
  return needed ? no_memory(c) : r;
}

/* ---- numbers ---- */

bool pv_q_init(pv_rationals *c) {
  *c = (pv_rationals){0};
  for (int64_t i = 0; i < 3; i++) (void)intern(c, (pv_q){i == 2 ? -1 : i, 1, 0});
  return !c->failed;
}

void pv_q_fini(pv_rationals *c) {
  for (size_t i = 0; i < c->n_q; i++) free((void *)(uintptr_t)c->q[i].large);
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
  if (c->q[a].large || c->q[b].large) return in_gmp(c, a, b, true);
  pv_q x = c->q[a].small, y = c->q[b].small, r;
  i128 g = gcd(x.n, y.d), h = gcd(y.n, x.d);
  if (__builtin_mul_overflow(x.n / g, y.n / h, &r.n) ||
      __builtin_mul_overflow(x.d / h, y.d / g, &r.d))
    return in_gmp(c, a, b, true);
  r.e = x.e + y.e; /* both within PV_MOST_SHIFT */
  if (abs(r.e) > PV_MOST_SHIFT) {
    fail(c, "a coefficient that is too long");
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
  if (c->q[a].large || c->q[b].large) return in_gmp(c, a, b, false);
  pv_q x = c->q[a].small, y = c->q[b].small, r;
  i128 g = gcd(x.d, y.d), p, q;
  r.e = x.e < y.e ? x.e : y.e;
  if (x.e - r.e > SMALL_BITS || y.e - r.e > SMALL_BITS ||
      __builtin_mul_overflow(x.n, y.d / g, &p) || __builtin_mul_overflow(y.n, x.d / g, &q) ||
      !shift(&p, x.e - r.e) || !shift(&q, y.e - r.e) || __builtin_add_overflow(p, q, &r.n) ||
      __builtin_mul_overflow(x.d, y.d / g, &r.d))
    return in_gmp(c, a, b, false);
  return intern(c, r);
}

static uint32_t inverse_of_large(pv_rationals *c, uint32_t a) {
  gmp_memory memory;
  if (!gmp_memory_begin(&memory)) return no_memory(c);
  wide x;
  wide_init(&x, &c->q[a]);
  mpz_swap(x.n, x.d);
  x.e = -x.e;
  if (mpz_sgn(x.d) < 0) {
    mpz_neg(x.n, x.n);
    mpz_neg(x.d, x.d);
  }
  const uint32_t r = intern_wide(c, &x);
  wide_clear(&x);
  const bool needed = memory.needed;
  gmp_memory_end(&memory);
  return needed ? no_memory(c) : r;
}

static uint32_t inverse(pv_rationals *c, uint32_t a) {
  if (c->q[a].large) return inverse_of_large(c, a);
  pv_q x = c->q[a].small;
  if (x.n == 0) {
    fail(c, "division by zero");
    return PV_ZERO_Q;
  }
  return intern(c, x.n < 0 ? (pv_q){-x.d, -x.n, -x.e} : (pv_q){x.d, x.n, -x.e});
}

uint32_t pv_q_pow(pv_rationals *c, uint32_t a, int64_t k) {
  if (k < 0) {
    if (k == INT64_MIN) {
      fail(c, "a coefficient that is too long");
      return PV_ZERO_Q;
    }
    a = inverse(c, a);
    k = -k;
  }
  uint32_t r = PV_ONE_Q;
  for (; k && !c->failed; k >>= 1) {
    if (k & 1) r = pv_q_mul(c, r, a);
    if (k > 1) a = pv_q_mul(c, a, a);
  }
  return r;
}

int pv_q_sign(const pv_rationals *c, uint32_t a) {
  if (c->q[a].large) return mpz_sgn(c->q[a].large->n);
  return c->q[a].small.n < 0 ? -1 : c->q[a].small.n > 0;
}

bool pv_q_is_int(const pv_rationals *c, uint32_t a, int64_t *out) {
  pv_q x;
  if (!pv_q_small(c, a, &x) || x.d != 1 || x.e < 0 || x.e > 62) return false;
  i128 n = x.n;
  if (!shift(&n, x.e) || n > INT64_MAX || n < -INT64_MAX) return false;
  *out = (int64_t)n;
  return true;
}

bool pv_q_small(const pv_rationals *c, uint32_t a, pv_q *out) {
  *out = c->q[a].small;
  return !c->q[a].large;
}

int32_t pv_q_exponent(const pv_rationals *c, uint32_t a) { return c->q[a].small.e; }

double pv_q_value(const pv_rationals *c, uint32_t a) {
  const pv_number *x = &c->q[a];
  if (!x->large) return ldexp((double)x->small.n / (double)x->small.d, x->small.e);
  long en = 0, ed = 0;
  const double n = mpz_get_d_2exp(&en, x->large->n), d = mpz_get_d_2exp(&ed, x->large->d);
  return ldexp(n / d, (int)(en - ed) + x->small.e);
}

uint64_t pv_q_hash(const pv_rationals *c, uint32_t a) { return hash_number(&c->q[a]); }

bool pv_q_decimals(const pv_rationals *c, uint32_t a, char **n, char **d) {
  gmp_memory memory;
  *n = *d = NULL;
  if (!gmp_memory_begin(&memory)) return false;
  wide x;
  wide_init(&x, &c->q[a]);
  mpz_abs(x.n, x.n);
  *n = malloc(mpz_sizeinbase(x.n, 10) + 2);
  *d = malloc(mpz_sizeinbase(x.d, 10) + 2);
  const bool both = *n && *d;
  if (both) {
    mpz_get_str(*n, 10, x.n);
    mpz_get_str(*d, 10, x.d);
  }
  wide_clear(&x);
  const bool needed = memory.needed;
  gmp_memory_end(&memory);
  if (both && !needed) return true;
  free(*n);
  free(*d);
  *n = *d = NULL;
  return false;
}
