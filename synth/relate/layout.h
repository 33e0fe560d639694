/* Layout terms between two tensors with the same elements. */
#ifndef SYNTH_RELATE_LAYOUT_H
#define SYNTH_RELATE_LAYOUT_H

#include "synth/comparison.h"

/* ---- layout.c ---- */
/* A layout term over RULE_VAR 0 (a tensor of `from`'s shape) that equals `to` as far as the values
 * of draw `draw` tell, or NULL. */
const rule_term *synth_layout(iso_arena *a, rule_schemas *sc, const rule_tensor *from,
                              const rule_tensor *to, const rule_oracle *oracle, double rel_tol);

/* p[0..n) becomes the next permutation in the order of dictionaries. Returns: false after the last.
 */
bool rel_next_permutation(uint32_t *p, uint32_t n);

#endif
