/* Tensors read under other shapes. */
#include "synth/relate/tensor_view.h"

#include <stdlib.h>

#include "egraph/base/parallel.h"
#include "egraph/base/wide.h"

static rule_shape view_shape1(int64_t n) {
  rule_shape s = {.rank = 1};
  s.dim[0] = n;
  return s;
}

rule_shape view_shape2(int64_t r, int64_t c) {
  rule_shape s = {.rank = 2};
  s.dim[0] = r;
  s.dim[1] = c;
  return s;
}

bool view_form_shape(const rule_tensor *t, form f, rule_shape *out) {
  const rule_shape *s = &t->shape;
  int64_t most = 1;
  for (uint32_t d = 0; d < s->rank; d++)
    if (s->dim[d] > most) most = s->dim[d];
  switch (f) {
  case FORM_SELF: *out = *s; return s->rank >= 1;
  case FORM_ROWS:
    if (s->rank < 3) return false;
    *out = view_shape2(t->numel / s->dim[s->rank - 1], s->dim[s->rank - 1]);
    return true;
  case FORM_VECTOR: *out = view_shape1(t->numel); return s->rank >= 2 && t->numel == most;
  case FORM_ROW: *out = view_shape2(1, t->numel); return s->rank == 1;
  default: return false;
  }
}

view view_dense(const rule_tensor *t, const rule_shape *s) {
  view v = {.data = t->data, .item = rule_dtype_size(t->dtype), .rank = s->rank};
  int64_t n = 1;
  for (uint32_t d = s->rank; d-- > 0;) {
    v.dim[d] = s->dim[d];
    v.stride[d] = n;
    n *= s->dim[d];
  }
  return v;
}

view view_turned(view v) {
  int64_t n = v.dim[0], st = v.stride[0];
  v.dim[0] = v.dim[1], v.stride[0] = v.stride[1];
  v.dim[1] = n, v.stride[1] = st;
  return v;
}

view view_slice(view v, uint32_t d, int64_t start, int64_t len) {
  v.data += (size_t)(start * v.stride[d]) * v.item;
  v.dim[d] = len;
  return v;
}

static inline __attribute__((always_inline)) bool strided_equal(const unsigned char *a, int64_t sa,
                                                                const unsigned char *b, int64_t sb,
                                                                int64_t n, size_t item,
                                                                int64_t *work) {
  for (int64_t i = 0; i < n; i++)
    if (memcmp(a + (size_t)(i * sa) * item, b + (size_t)(i * sb) * item, item) != 0) {
      *work -= i + 1;
      return false;
    }
  *work -= n;
  return true;
}

static bool run_equal(const unsigned char *a, int64_t sa, const unsigned char *b, int64_t sb,
                      int64_t n, size_t item, int64_t *work) {
  if (sa == 1 && sb == 1) {
    *work -= 1 + n / 16; /* fast, and short where they differ */
    return memcmp(a, b, (size_t)n * item) == 0;
  }
  switch (item) {
  case 2: return strided_equal(a, sa, b, sb, n, 2, work);
  case 4: return strided_equal(a, sa, b, sb, n, 4, work);
  case 8: return strided_equal(a, sa, b, sb, n, 8, work);
  default: return strided_equal(a, sa, b, sb, n, item, work);
  }
}

/* A matrix against one that lies the other way, in squares: both stay in the cache. */
static bool turned_equal(const view *a, const view *b, int64_t *work) {
  enum { SIDE = 32 };
  for (int64_t r = 0; r < a->dim[0]; r += SIDE)
    for (int64_t c = 0; c < a->dim[1]; c += SIDE) {
      const int64_t n = a->dim[1] - c < SIDE ? a->dim[1] - c : SIDE;
      for (int64_t k = r; k < r + SIDE && k < a->dim[0]; k++)
        if (!run_equal(a->data + (size_t)(k * a->stride[0] + c * a->stride[1]) * a->item,
                       a->stride[1],
                       b->data + (size_t)(k * b->stride[0] + c * b->stride[1]) * b->item,
                       b->stride[1], n, a->item, work))
          return false;
    }
  return true;
}

bool view_equal(const view *a, const view *b, int64_t *work) {
  int64_t at[RULE_MAX_RANK] = {0}, i = 0, j = 0;
  if (a->rank == 0) return memcmp(a->data, b->data, a->item) == 0;
  uint32_t last = a->rank - 1;
  for (uint32_t d = 0; d < a->rank; d++)
    if (a->dim[d] == 0) return true;
  if (a->rank == 2 && (a->stride[0] < a->stride[1]) != (b->stride[0] < b->stride[1]))
    return turned_equal(a, b, work);
  for (;;) {
    if (!run_equal(a->data + (size_t)i * a->item, a->stride[last], b->data + (size_t)j * a->item,
                   b->stride[last], a->dim[last], a->item, work))
      return false;
    uint32_t d = last;
    for (;;) {
      if (d == 0) return true;
      d--;
      i += a->stride[d], j += b->stride[d];
      if (++at[d] < a->dim[d]) break;
      i -= at[d] * a->stride[d], j -= at[d] * b->stride[d];
      at[d] = 0;
    }
  }
}

/* ---- hashes ---- */

/* Elements of 4 and 8 bytes, which nearly all are, go in blocks of one length: compilers turn those
 * into vectors. */
enum { BLOCK = 64 };

static inline __attribute__((always_inline)) uint64_t number_at(const unsigned char *p, int64_t i,
                                                                size_t item) {
  if (item == 4) {
    uint32_t x;
    memcpy(&x, p + 4 * i, 4);
    return x;
  }
  return view_number(p + (size_t)i * item, item);
}

/* The sum of n numbers, each times its weight. */
static inline __attribute__((always_inline)) uint64_t
weighed(const unsigned char *p, const uint64_t *w, int64_t n, size_t item) {
  uint64_t h = 0;
  int64_t i = 0;
  for (; n - i >= BLOCK; i += BLOCK)
    for (int64_t k = 0; k < BLOCK; k++) h += w[i + k] * number_at(p + (size_t)i * item, k, item);
  for (; i < n; i++) h += w[i] * number_at(p, i, item);
  return h;
}

ISO_WIDE static uint64_t weighed4(const unsigned char *p, const uint64_t *w, int64_t n) {
  return weighed(p, w, n, 4);
}
ISO_WIDE static uint64_t weighed8(const unsigned char *p, const uint64_t *w, int64_t n) {
  return weighed(p, w, n, 8);
}

static uint64_t weigh(const unsigned char *p, const uint64_t *w, int64_t n, size_t item) {
  switch (item) {
  case 1: return weighed(p, w, n, 1);
  case 2: return weighed(p, w, n, 2);
  case 4: return weighed4(p, w, n);
  case 8: return weighed8(p, w, n);
  default: return weighed(p, w, n, 16);
  }
}

/* To each of n hashes a number times one weight. */
static inline __attribute__((always_inline)) void
added(const unsigned char *p, uint64_t w, int64_t n, size_t item, uint64_t *restrict hash) {
  int64_t i = 0;
  for (; n - i >= BLOCK; i += BLOCK)
    for (int64_t k = 0; k < BLOCK; k++) hash[i + k] += w * number_at(p + (size_t)i * item, k, item);
  for (; i < n; i++) hash[i] += w * number_at(p, i, item);
}

ISO_WIDE static void added4(const unsigned char *p, uint64_t w, int64_t n,
                            uint64_t *restrict hash) {
  added(p, w, n, 4, hash);
}
ISO_WIDE static void added8(const unsigned char *p, uint64_t w, int64_t n,
                            uint64_t *restrict hash) {
  added(p, w, n, 8, hash);
}

static void add_each(const unsigned char *p, uint64_t w, int64_t n, size_t item, uint64_t *hash) {
  switch (item) {
  case 1: added(p, w, n, 1, hash); break;
  case 2: added(p, w, n, 2, hash); break;
  case 4: added4(p, w, n, hash); break;
  case 8: added8(p, w, n, hash); break;
  default: added(p, w, n, 16, hash); break;
  }
}

/* Sums of the elements, each times a weight of its place in its line in row-major order
 * (multilinear hashing: Lemire, Kaser, "Strongly universal string hashing is fast", 2014): the
 * terms of a sum do not wait for one another, whichever way the lines lie. */
typedef struct lines {
  const view *v;
  const uint64_t *weight;
  uint64_t *hash;
  int64_t outer, inner, n;
} lines;

/* Lines from .. to - 1. */
static void hash_some(void *ctx, int64_t from, int64_t to) {
  const lines *s = ctx;
  const size_t item = s->v->item;
  for (int64_t o = 0; o < s->outer; o++) {
    const unsigned char *p = s->v->data + (size_t)(o * s->n + from) * (size_t)s->inner * item;
    if (s->inner == 1) add_each(p, s->weight[o], to - from, item, s->hash + from);
    else
      for (int64_t l = from; l < to; l++, p += (size_t)s->inner * item)
        s->hash[l] += weigh(p, s->weight + o * s->inner, s->inner, item);
  }
}

uint64_t *view_hash_lines(const view *v, uint32_t d, unsigned threads) {
  int64_t outer = 1, inner = 1;
  for (uint32_t k = 0; k < d; k++) outer *= v->dim[k];
  for (uint32_t k = d + 1; k < v->rank; k++) inner *= v->dim[k];
  uint64_t *hash = calloc((size_t)v->dim[d] + 1, sizeof *hash),
           *weight = malloc(((size_t)(outer * inner) + 1) * sizeof *weight);
  if (!hash || !weight) {
    free(hash);
    free(weight);
    return NULL;
  }
  for (int64_t i = 0; i < outer * inner; i++)
    weight[i] = view_mix((uint64_t)i * 0x9e3779b97f4a7c15u) | 1;
  lines s = {v, weight, hash, outer, inner, v->dim[d]};
  iso_parallel(threads, v->dim[d], outer * inner, hash_some, &s);
  free(weight);
  return hash;
}

static inline __attribute__((always_inline)) uint64_t spread_number(uint64_t number) {
  const uint64_t x = number * 0xd6e8feb86659fd93u;
  return (x ^ (x >> 32)) * 0x9e3779b97f4a7c15u;
}

static inline __attribute__((always_inline)) uint64_t spread(const unsigned char *p, int64_t n,
                                                             size_t item) {
  uint64_t sum = 0;
  int64_t i = 0;
  for (; n - i >= BLOCK; i += BLOCK)
    for (int64_t k = 0; k < BLOCK; k++)
      sum += spread_number(number_at(p + (size_t)i * item, k, item));
  for (; i < n; i++) sum += spread_number(number_at(p, i, item));
  return sum;
}

ISO_WIDE static uint64_t spread4(const unsigned char *p, int64_t n) { return spread(p, n, 4); }
ISO_WIDE static uint64_t spread8(const unsigned char *p, int64_t n) { return spread(p, n, 8); }

typedef struct multiset {
  const rule_tensor *t;
  _Atomic uint64_t sum; /* of integers: the order does not matter */
} multiset;

static void add_some(void *ctx, int64_t from, int64_t to) {
  multiset *m = ctx;
  const size_t item = rule_dtype_size(m->t->dtype);
  const unsigned char *p = (const unsigned char *)m->t->data + (size_t)from * item;
  switch (item) {
  case 1: m->sum += spread(p, to - from, 1); break;
  case 2: m->sum += spread(p, to - from, 2); break;
  case 4: m->sum += spread4(p, to - from); break;
  case 8: m->sum += spread8(p, to - from); break;
  default: m->sum += spread(p, to - from, 16); break;
  }
}

uint64_t view_hash_multiset(const rule_tensor *t, unsigned threads) {
  multiset m = {t, 0};
  iso_parallel(threads, t->numel, 1, add_some, &m);
  return m.sum;
}

/* ---- which elements there are ---- */

/* Whether one of n numbers is e. */
static inline __attribute__((always_inline)) bool among(const unsigned char *p, int64_t n,
                                                        uint64_t e, size_t item) {
  int64_t i = 0;
  for (; n - i >= BLOCK; i += BLOCK) {
    uint64_t found = 0;
    for (int64_t k = 0; k < BLOCK; k++) {
      uint64_t x = 0;
      if (item == 4) x = number_at(p + (size_t)i * item, k, 4);
      else memcpy(&x, p + (size_t)(i + k) * item, item);
      found |= x == e;
    }
    if (found) return true;
  }
  for (; i < n; i++)
    if (item == 4 ? number_at(p, i, 4) == e : !memcmp(p + (size_t)i * item, &e, item)) return true;
  return false;
}

ISO_WIDE static bool among4(const unsigned char *p, int64_t n, uint64_t e) {
  return among(p, n, e, 4);
}
ISO_WIDE static bool among8(const unsigned char *p, int64_t n, uint64_t e) {
  return among(p, n, e, 8);
}

bool view_has_element(const rule_tensor *t, const unsigned char *e) {
  const size_t item = rule_dtype_size(t->dtype);
  const unsigned char *p = t->data;
  if (item == 4 || item == 8) {
    uint64_t x = 0;
    uint32_t y;
    if (item == 8) memcpy(&x, e, 8);
    else memcpy(&y, e, 4), x = y;
    return item == 4 ? among4(p, t->numel, x) : among8(p, t->numel, x);
  }
  for (int64_t i = 0; i < t->numel; i++, p += item)
    if (!memcmp(p, e, item)) return true;
  return false;
}

void view_mark_elements(const rule_tensor *t, uint64_t *present, uint64_t mask) {
  const size_t item = rule_dtype_size(t->dtype);
  const unsigned char *p = t->data;
  for (int64_t i = 0; i < t->numel; i++, p += item) {
    const uint64_t e = view_element(p, item) & mask;
    present[e / 64] |= UINT64_C(1) << (e % 64);
  }
}

bool view_marked(const rule_tensor *t, const uint64_t *present, uint64_t mask) {
  const size_t item = rule_dtype_size(t->dtype);
  const unsigned char *p = t->data;
  for (int64_t i = 0; i < t->numel; i++, p += item) {
    const uint64_t e = view_element(p, item) & mask;
    if (!(present[e / 64] >> (e % 64) & 1)) return false;
  }
  return true;
}
