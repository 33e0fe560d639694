/* Private to synth/relation*.c, index.c and tensor_view.c: tensors read under other shapes,
 * compared and hashed line by line. */
#ifndef SYNTH_RELATE_TENSOR_VIEW_H
#define SYNTH_RELATE_TENSOR_VIEW_H

#include <string.h>

#include "rules/tensor.h"

/* A reading of a tensor's bytes under another shape, so that lines of tensors of different rank
 * meet. */
typedef enum form {
  FORM_SELF,
  FORM_ROWS,   /* rank >= 3: [all but the last dimension, last] */
  FORM_VECTOR, /* rank >= 2 with one size other than 1: [n] */
  FORM_ROW,    /* rank 1: [1, n] */
  FORM_COUNT
} form;

/* The shape of `t` read as `f`. Returns: false where there is no such reading. */
bool view_form_shape(const rule_tensor *t, form f, rule_shape *out);
rule_shape view_shape2(int64_t rows, int64_t columns);

typedef struct view {
  const unsigned char *data;
  size_t item; /* bytes */
  uint32_t rank;
  int64_t dim[RULE_MAX_RANK];
  int64_t stride[RULE_MAX_RANK]; /* elements */
} view;

view view_dense(const rule_tensor *t, const rule_shape *s);
/* Both dimensions exchanged. Requires: rank 2. */
view view_turned(view v);
view view_slice(view v, uint32_t d, int64_t start, int64_t len);
/* Equal bits everywhere? Requires: same item, rank and sizes. `work` is lowered by about the
 * elements compared. */
bool view_equal(const view *a, const view *b, int64_t *work);

/* Returns: malloc'ed hashes of the unit slices of a dense view along `d`; NULL when there is no
 * memory. `threads`: at most so many, here and below; the hashes are the same with any number. */
uint64_t *view_hash_lines(const view *v, uint32_t d, unsigned threads);
/* The sum of the elements' hashes: equal for every order of the elements. */
uint64_t view_hash_multiset(const rule_tensor *t, unsigned threads);
/* Whether an element of t is equal to the one at e, byte by byte. */
bool view_has_element(const rule_tensor *t, const unsigned char *e);
/* A bit for each element is set in `present`, `mask` being its bits less 1; whether those of all
 * elements are. */
void view_mark_elements(const rule_tensor *t, uint64_t *present, uint64_t mask);
bool view_marked(const rule_tensor *t, const uint64_t *present, uint64_t mask);

static inline uint64_t view_mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

static inline __attribute__((always_inline)) uint64_t view_element(const unsigned char *p,
                                                                   size_t item) {
  uint64_t x = 0, y = 0;
  if (item == 16) {
    memcpy(&x, p, 8);
    memcpy(&y, p + 8, 8);
    return view_mix(x) * 3 + view_mix(~y);
  }
  memcpy(&x, p, item);
  return view_mix(x);
}

/* An element as one number. Floats with few digits end in zero bits, which a sum would keep, so the
 * upper half of a 64-bit element is folded in. */
static inline __attribute__((always_inline)) uint64_t view_number(const unsigned char *p,
                                                                  size_t item) {
  uint64_t x = 0;
  if (item == 16) return view_element(p, item);
  memcpy(&x, p, item);
  return item == 8 ? x ^ (x >> 32) : x;
}

#endif
