/* The chain of a comparison for all sizes: each step that was shown at the captured sizes is
 * justified again with the captures' symbols in place of numbers. */
#ifndef SYNTH_SCOPE_SCOPE_H
#define SYNTH_SCOPE_SCOPE_H

#include "synth/comparison.h"

/* Into s->res->scope. Requires: a certificate is there, or the reason why none is. Errors:
 * ISO_NOMEM. */
ISO_MUST_USE iso_code st_scope(state *s, iso_error *err);

#endif
