/* Two graphs of which nothing is run but constants (synth/synth.h, synth_compare_unrun). */
#ifndef SYNTH_UNRUN_UNRUN_H
#define SYNTH_UNRUN_UNRUN_H

#include "synth/comparison.h"

/* ---- typed_leaves.c ---- */
/* The leaves of both graphs in the e-graph: inputs that are one by name or value, parameters by
 * name, constants with their values. What has no values is `typed`. */
iso_code st_type_leaves(state *s, const bool *const live[2], iso_error *err);
/* All operators but constants are typed, too. Requires: both graphs were added. */
void st_type_operators(state *s);

/* ---- gaps.c ---- */
/* Where the chain has gaps: operators all of whose arguments have a counterpart, and which have
 * none; and leaves without one. Into the result's reason and its divergences. */
iso_code st_name_gaps(state *s, const bool *const live[2], iso_error *err);

#endif
