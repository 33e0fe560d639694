/* Private to synth/relation*.c: the search for one relation and the terms it is rel_made of. */
#ifndef SYNTH_RELATE_RELATION_INT_H
#define SYNTH_RELATE_RELATION_INT_H

#include "synth/relate/index.h"

enum { MAX_PIECES = 512 }; /* arguments of a concatenation */

typedef struct search {
  synth_index *x;
  const rule_tensor *t;
  const char *name;
  iso_arena *arena;
  iso_error *err;
  iso_code code;  /* the first error; then nothing more is tried */
  int32_t *like;  /* per source: likeness of names, -1 where not yet asked */
  uint32_t *used; /* per source: the walk that used it last */
  uint32_t walks;
  int64_t walk_work, permute_work, window_work; /* the budgets left */
  uint64_t flat, multiset;                      /* of the target */
  bool has_flat, has_multiset, late;            /* late: some source of its size began alike */
} search;

/* How alike the names of the target and of source `src` are; numbers count most. Without a name: 0.
 */
int32_t rel_likeness(search *s, uint32_t src);

/* Record the error, unless there was one. Returns: false. */
bool rel_no_memory(search *s);

/* Source of the target's dtype and with elements? */
bool rel_usable(const search *s, size_t i);

/* ---- terms with their shapes (relation_term.c) ---- */

typedef struct rel_made {
  const rule_term *term; /* NULL after an error */
  rule_shape shape;
} rel_made;

rel_made rel_source(search *s, uint32_t i);
rel_made rel_slice(search *s, rel_made a, uint32_t d, int64_t from, int64_t to);
rel_made rel_transpose(search *s, rel_made a); /* of a matrix */
rel_made rel_reshape(search *s, rel_made a, const rule_shape *shape);
rel_made rel_permute(search *s, rel_made a, const uint32_t *perm);
rel_made rel_cat(search *s, const rel_made *part, size_t n, uint32_t d);

/* `s` with dimension `d` as `n` ones of sizes `factor`. */
rule_shape rel_shape_split(const rule_shape *s, uint32_t d, const int64_t *factor, uint32_t n);

/* Give `m` out, unless there was an error. Requires: the target's shape. */
bool rel_finish(search *s, rel_made m, bool tied, synth_relation *out);

/* ---- kinds of relations that have a file of their own ---- */

typedef struct piece {
  uint32_t set;
  int64_t start, len;
  int64_t outer, inner; /* above 0: the lines read as (len / (outer * inner), outer, inner), their
                           last two dimensions transposed */
} piece;

/* Relates by a rank's name where values do not decide, as small whole numbers occur in several
 * places and zeros everywhere: rank r's leaf is block r of the source of the same name
 * (relation_block.c). */
bool rel_find_block(search *s, synth_relation *out);
bool rel_find_cover(
    search *s, synth_relation *out); /* slices and concatenations of lines (relation_cover.c) */
bool rel_find_turned(search *s, synth_relation *out); /* the same, in another order of dimensions */
bool rel_find_constant(search *s, synth_relation *out); /* all elements equal: by names */
bool rel_find_window(search *s,
                     synth_relation *out); /* columns of a range of rows (relation_window.c) */

#endif
