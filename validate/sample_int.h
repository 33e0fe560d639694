/* Private to validate/: seeded samples for one rule. */
#ifndef VALIDATE_SAMPLE_INT_H
#define VALIDATE_SAMPLE_INT_H

#include "validate/validate.h"

enum {
  VAL_KINDS = 11,           /* kinds of float values; each is taken once before they come at random */
  VAL_PLAIN = 0             /* the kind that most operators are defined on */
};

/* Draw sample number `k` (kinds of values cycle with k) into `bind` (one tensor per variable; caller unrefs).
 * Errors: ISO_UNSUPPORTED where a shape is symbolic. */
ISO_MUST_USE iso_code val_sample(val_engine *e, const rule *r, rule_tensor *const *example, iso_rng *rng, unsigned k,
                                 rule_tensor **bind, iso_error *err);

#endif
