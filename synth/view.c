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

static bool run_equal(const unsigned char *a, int64_t sa, const unsigned char *b, int64_t sb, int64_t n, size_t item,
                      int64_t *work) {
  if (sa == 1 && sb == 1) {
    *work -= 1 + n / 16; /* fast, and short where they differ */
    return memcmp(a, b, (size_t)n * item) == 0;
  }
  for (int64_t i = 0; i < n; i++) {
    *work -= 1;
    if (memcmp(a + (size_t)(i * sa) * item, b + (size_t)(i * sb) * item, item) != 0) return false;
  }
  return true;
}

bool view_equal(const view *a, const view *b, int64_t *work) {
  int64_t at[RULE_MAX_RANK] = {0}, i = 0, j = 0;
  if (a->rank == 0) return memcmp(a->data, b->data, a->item) == 0;
  uint32_t last = a->rank - 1;
  for (uint32_t d = 0; d < a->rank; d++)
    if (a->dim[d] == 0) return true;
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

/* Polynomial hashes of all unit slices along `d`, in one pass over the memory: an element is added to its line's hash
 * in row-major order of the other dimensions. */
static inline __attribute__((always_inline)) void lines_pass(const view *v, uint32_t d, size_t item, uint64_t *hash) {
  int64_t outer = 1, inner = 1;
  for (uint32_t k = 0; k < d; k++) outer *= v->dim[k];
  for (uint32_t k = d + 1; k < v->rank; k++) inner *= v->dim[k];
  const unsigned char *p = v->data;
  for (int64_t o = 0; o < outer; o++)
    for (int64_t l = 0; l < v->dim[d]; l++) {
      uint64_t h = hash[l];
      for (int64_t i = 0; i < inner; i++, p += item) h = h * 0xd6e8feb86659fd93u + view_element(p, item);
      hash[l] = h;
    }
}

uint64_t *view_hash_lines(const view *v, uint32_t d) {
  uint64_t *hash = calloc((size_t)v->dim[d] + 1, sizeof *hash);
  if (!hash) return NULL;
  switch (v->item) {
  case 1: lines_pass(v, d, 1, hash); break;
  case 2: lines_pass(v, d, 2, hash); break;
  case 4: lines_pass(v, d, 4, hash); break;
  case 8: lines_pass(v, d, 8, hash); break;
  default: lines_pass(v, d, 16, hash); break;
  }
  return hash;
}

static inline __attribute__((always_inline)) uint64_t multiset_pass(const rule_tensor *t, size_t item, uint64_t *present, uint64_t mask) {
  const unsigned char *p = t->data;
  uint64_t sum = 0;
  for (int64_t i = 0; i < t->numel; i++, p += item) {
    const uint64_t e = view_element(p, item);
    sum += view_mix(e);
    if (present) present[(e & mask) / 64] |= UINT64_C(1) << (e % 64);
  }
  return sum;
}

uint64_t view_hash_multiset(const rule_tensor *t, uint64_t *present, uint64_t mask) {
  switch (rule_dtype_size(t->dtype)) {
  case 1: return multiset_pass(t, 1, present, mask);
  case 2: return multiset_pass(t, 2, present, mask);
  case 4: return multiset_pass(t, 4, present, mask);
  case 8: return multiset_pass(t, 8, present, mask);
  default: return multiset_pass(t, 16, present, mask);
  }
}
