/* Tensors read under other shapes. */
#include "synth/view.h"

#include <stdlib.h>

rule_shape view_shape1(int64_t n) {
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
  case FORM_SELF:
    *out = *s;
    return s->rank >= 1;
  case FORM_ROWS:
    if (s->rank < 3) return false;
    *out = view_shape2(t->numel / s->dim[s->rank - 1], s->dim[s->rank - 1]);
    return true;
  case FORM_VECTOR:
    *out = view_shape1(t->numel);
    return s->rank >= 2 && t->numel == most;
  case FORM_ROW:
    *out = view_shape2(1, t->numel);
    return s->rank == 1;
  default:
    return false;
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

static inline __attribute__((always_inline)) bool strided_equal(const unsigned char *a, int64_t sa, const unsigned char *b, int64_t sb, int64_t n,
                                                                 size_t item, int64_t *work) {
  for (int64_t i = 0; i < n; i++)
    if (memcmp(a + (size_t)(i * sa) * item, b + (size_t)(i * sb) * item, item) != 0) {
      *work -= i + 1;
      return false;
    }
  *work -= n;
  return true;
}

static bool run_equal(const unsigned char *a, int64_t sa, const unsigned char *b, int64_t sb, int64_t n, size_t item,
                      int64_t *work) {
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
        if (!run_equal(a->data + (size_t)(k * a->stride[0] + c * a->stride[1]) * a->item, a->stride[1],
                       b->data + (size_t)(k * b->stride[0] + c * b->stride[1]) * b->item, b->stride[1], n, a->item, work))
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
  if (a->rank == 2 && (a->stride[0] < a->stride[1]) != (b->stride[0] < b->stride[1])) return turned_equal(a, b, work);
  for (;;) {
    if (!run_equal(a->data + (size_t)i * a->item, a->stride[last], b->data + (size_t)j * a->item, b->stride[last],
                   a->dim[last], a->item, work))
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

/* Sums of the elements, each times a weight of its place in its line in row-major order (multilinear hashing: Lemire, Kaser, "Strongly
 * universal string hashing is fast", 2014): the terms of a sum do not wait for one another, whichever way the lines lie. */
static inline __attribute__((always_inline)) void lines_pass(const view *v, uint32_t d, size_t item, const uint64_t *weight, int64_t outer, int64_t inner,
                                                             uint64_t *hash) {
  const unsigned char *p = v->data;
  const int64_t n = v->dim[d];
  for (int64_t o = 0; o < outer; o++) {
    const uint64_t *w = weight + o * inner;
    if (inner == 1) {
      for (int64_t l = 0; l < n; l++, p += item) hash[l] += w[0] * view_number(p, item);
      continue;
    }
    for (int64_t l = 0; l < n; l++) {
      uint64_t h = 0;
      for (int64_t i = 0; i < inner; i++, p += item) h += w[i] * view_number(p, item);
      hash[l] += h;
    }
  }
}

uint64_t *view_hash_lines(const view *v, uint32_t d) {
  int64_t outer = 1, inner = 1;
  for (uint32_t k = 0; k < d; k++) outer *= v->dim[k];
  for (uint32_t k = d + 1; k < v->rank; k++) inner *= v->dim[k];
  uint64_t *hash = calloc((size_t)v->dim[d] + 1, sizeof *hash), *weight = malloc(((size_t)(outer * inner) + 1) * sizeof *weight);
  if (!hash || !weight) {
    free(hash);
    free(weight);
    return NULL;
  }
  for (int64_t i = 0; i < outer * inner; i++) weight[i] = view_mix((uint64_t)i * 0x9e3779b97f4a7c15u) | 1;
  switch (v->item) {
  case 1: lines_pass(v, d, 1, weight, outer, inner, hash); break;
  case 2: lines_pass(v, d, 2, weight, outer, inner, hash); break;
  case 4: lines_pass(v, d, 4, weight, outer, inner, hash); break;
  case 8: lines_pass(v, d, 8, weight, outer, inner, hash); break;
  default: lines_pass(v, d, 16, weight, outer, inner, hash); break;
  }
  free(weight);
  return hash;
}

static inline __attribute__((always_inline)) uint64_t multiset_pass(const rule_tensor *t, size_t item) {
  const unsigned char *p = t->data;
  uint64_t sum = 0;
  for (int64_t i = 0; i < t->numel; i++, p += item) {
    const uint64_t x = view_number(p, item) * 0xd6e8feb86659fd93u;
    sum += (x ^ (x >> 32)) * 0x9e3779b97f4a7c15u;
  }
  return sum;
}

uint64_t view_hash_multiset(const rule_tensor *t) {
  switch (rule_dtype_size(t->dtype)) {
  case 1: return multiset_pass(t, 1);
  case 2: return multiset_pass(t, 2);
  case 4: return multiset_pass(t, 4);
  case 8: return multiset_pass(t, 8);
  default: return multiset_pass(t, 16);
  }
}

static inline __attribute__((always_inline)) bool has_pass(const rule_tensor *t, const unsigned char *e, size_t item) {
  const unsigned char *p = t->data;
  for (int64_t i = 0; i < t->numel; i++, p += item)
    if (!memcmp(p, e, item)) return true;
  return false;
}

bool view_has_element(const rule_tensor *t, const unsigned char *e) {
  switch (rule_dtype_size(t->dtype)) {
  case 4: return has_pass(t, e, 4);
  case 8: return has_pass(t, e, 8);
  default: return has_pass(t, e, rule_dtype_size(t->dtype));
  }
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
