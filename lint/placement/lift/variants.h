/* Private to lint/placement/lift/: from the call of a rank to that of the whole program. */
#ifndef LINT_VARIANTS_H
#define LINT_VARIANTS_H

#include "lint/placement/placement_int.h"

/* ---- call.c ---- */
bool plc_is_getitem(const plc *x, const plc_tuple *t);

/* ---- bounds.c ---- */
/* The bound that one rank alone has in place of `v`; `v` where it is none. */
int64_t plc_whole_bound(const plc *x, int64_t v);
/* The same of a number with which a tensor is filled. */
double plc_whole_number(const plc *x, double v);

/* ---- by_hand.c ---- */
/* Whether some of what it is made of was sent by other ranks, and did not meet yet. */
bool plc_reads_sent(const plc *x, const plc_tuple *t);
/* Reads `t`, which natural readings leave loose or of another size, as an earlier tensor of the
 * whole program. Returns: whether the ranks hold one. */
bool plc_lift_by_hand(plc *x, plc_tuple *t);

/* ---- variants.c ---- */
void plc_drop_wholes(plc_tuple *t);
/* Along which axes something may be other than replicas. */
uint32_t plc_free_axes(const plc *x, const plc_tuple *t, bool *scaled);
/* Whether the variant has a whole, in t->whole; `fits`: and the ranks hold it somehow. `as_is`:
 * shapes with the ranks' own integers, once these were tried; rank RULE_MAX_RANK + 1 before. */
bool plc_try_variant(plc *x, plc_tuple *t, const plc_variant *v, uint32_t axes, bool blocks,
                     rule_shape *as_is, bool *fits);
/* Tries all. Returns: whether there is a whole; t->state says whether the ranks hold it. */
bool plc_lift_variants(plc *x, plc_tuple *t, uint32_t axes, bool scaled);

#endif
