/* Proposing candidates and rules.
 *
 * Relations (relation.c): which tensors are layout expressions (slices, concatenations, transposes, reshapes) of others, by
 * value. Frontiers, candidates and the loop: see synth/loop.c. */
#ifndef SYNTH_SYNTH_H
#define SYNTH_SYNTH_H

#include "rules/rules.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- relations by value ----
 * An index of source tensors by exact hashes of whole values, rows and columns. */
typedef struct synth_index synth_index;
/* `source` tensors are borrowed until synth_index_free. NULL entries are skipped. Names break ties (may be NULL). */
ISO_MUST_USE iso_code synth_index_new(rule_tensor *const *source, const char *const *name, size_t n, rule_schemas *schemas,
                                      synth_index **out, iso_error *err);
void synth_index_free(synth_index *x);

typedef struct synth_relation {
  const rule_term *term; /* over RULE_VAR i = source[i]; evaluates to the target, shape included; NULL: none found */
  bool tied;             /* another source would have done as well: values did not decide */
} synth_relation;
/* Express `target` (name may be NULL) by the sources, exactly (bit patterns), simplest first: the source itself; a transpose of it; a reshape;
 * a slice along one dimension; a concatenation along one dimension of sources, slices of them, or either transposed; a reshape of a
 * permutation of a reshape. Only aten::t/transpose.int/permute/reshape/unsqueeze/slice.Tensor/cat terms are produced. The term lives in `arena`. Ties are broken by `name`, then by order.
 * A target of which some elements occur in no source has no relation. */
ISO_MUST_USE iso_code synth_relate(synth_index *x, const rule_tensor *target, const char *name, iso_arena *arena,
                                   synth_relation *out, iso_error *err);

#ifdef __cplusplus
}
#endif
#endif
