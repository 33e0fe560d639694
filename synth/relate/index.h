/* Private to synth/relation*.c and index.c: source tensors, hashed as a whole and line by line.
 *
 * A line is one unit slice along one dimension (a row, a column, an element of a vector). Nothing
 * is hashed before a target asks: most leaves of two real models equal a leaf of the other side,
 * which comparing their bytes tells, and a target's lines are looked up among lines of their own
 * shape only. Hashes only propose: the caller compares the bytes. */
#ifndef SYNTH_RELATE_INDEX_H
#define SYNTH_RELATE_INDEX_H

#include "synth/synth.h"
#include "synth/relate/tensor_view.h"

/* The lines of one form of one source along one dimension. */
typedef struct line_set {
  uint32_t src, dim;
  form form;
  rule_shape shape; /* of the form */
  int64_t n;        /* lines */
  uint64_t *hash;
} line_set;

/* A stretch of equal lines. Stretches and not lines are looked up, so that constant tensors stay
 * cheap. */
typedef struct entry {
  uint64_t hash;
  uint32_t set;
  int64_t start, len;
} entry;

/* All sources' lines of one shape. */
typedef struct shelf {
  rule_shape shape; /* of a tensor of such lines; their dimension counts 0 */
  uint32_t dim;     /* along which; for matrices always 0: rows stand for columns too */
  entry *entry;     /* by hash, then by set and start */
  size_t n, cap;
} shelf;

typedef struct summary {
  uint64_t flat, multiset;
  bool has_flat, has_multiset, filtered;
} summary;

struct synth_index {
  size_t n;
  const rule_tensor **source;
  char **name;
  summary *sum;
  rule_schemas *schemas;
  unsigned threads;
  line_set *
      set; /* in the order in which they were asked for; of one shelf in the order of the sources */
  size_t n_sets, cap_sets;
  shelf *shelf;
  size_t n_shelves, cap_shelves;
  uint64_t *present; /* a bit per hash of an element that occurs in some source that was asked for;
                        NULL before */
};

uint64_t index_flat(synth_index *x, size_t i);     /* of the bytes in order */
uint64_t index_multiset(synth_index *x, size_t i); /* of the elements in any order */

/* The lines that can be lines along `dim` of a tensor of shape `s`. Returns: NULL when there is no
 * memory. Owns: valid until the next call. */
const shelf *index_shelf(synth_index *x, const rule_shape *s, uint32_t dim);
/* The first entry whose hash is at least `hash`; further entries of one hash follow it. */
size_t index_entries(const shelf *s, uint64_t hash);

/* Whether all elements of `t` occur in sources of at most `most` elements, as far as a filter
 * tells. Returns: in `out` false where one surely does not; false itself when there is no memory.
 */
bool index_may_hold(synth_index *x, const rule_tensor *t, int64_t most, bool *out);

/* Length of the stretch of equal hashes that starts at `at`. */
int64_t index_stretch(const uint64_t *h, int64_t at, int64_t n);

#endif
