/* What callers compute from a mask and give beside it: lengths, positions, bounds of sequences. */
#ifndef CAPTURE_LOOKS_LAWS_H
#define CAPTURE_LOOKS_LAWS_H

#include "egraph/base/arena.h"
#include "rules/tensor.h"

typedef struct looks_law {
  int number; /* 0: none */
  bool zeros; /* of the mask with ones for its zeros */
} looks_law;

/* The first law behind `after` (number 0: of all) by which `value` comes of `base`, zeros and ones
 * whose rows lie along the last dimension, on each of `n` sets: in `out`, number 0 where none of
 * ours does. Returns: false where there is no memory. */
bool looks_find_law(const rule_tensor *const *base, const rule_tensor *const *value, size_t n,
                    looks_law after, looks_law *out);
/* How unlikely it is, in bits, that other numbers of that range are what the law gives for `base`:
 * one number of a short row is soon some count of it. */
double looks_law_bits(looks_law law, const rule_tensor *base);
/* What it gives for `base`, in `out`. Requires: as many elements as the law was found with. */
void looks_apply_law(looks_law law, const rule_tensor *base, int64_t *out);
/* In words: "how many ones each row has". Returns: NULL where there is no memory. */
const char *looks_law_words(looks_law law, iso_arena *arena);

#endif
