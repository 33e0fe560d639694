/* Private to lint/placement/blame/. */
#ifndef LINT_SCALE_H
#define LINT_SCALE_H

#include "lint/placement/placement_int.h"

/* Steps within which a collective is looked for. */
enum { PLC_AHEAD = 6 };

static inline const char *plc_place_of(plc *x, const plc_tuple *t) {
  return plc_print(x, &t->place[0], x->keep);
}
/* "sum" of a reduction, else "". */
const char *plc_reduction(const plc *x, const plc_tuple *t);

/* ---- added.c ---- */
/* How many times the ranks' sum contains a summand that does not depend on their parts; 0 where it
 * contains none too often. */
uint32_t plc_added_on_each(plc *x, const plc_tuple *t);

/* ---- scale.c ---- */
/* The collective from which on there are more or fewer than one of the whole; NULL: it is none. */
const plc_tuple *plc_scaled_by(const plc *x, const plc_tuple *t);
/* Whether the scale of `t` rests on how a literal is read; then nothing is decided. */
bool plc_ambiguous(plc *x, const plc_tuple *t);
/* Whether, between a collective that counts a summand too often and `t`, there is a division by a
 * number that may be the number of ranks. Then nothing is decided. */
bool plc_divided_again(plc *x, const plc_tuple *t);
/* The same for a summand that is added on every rank. */
bool plc_divided_before(plc *x, const plc_tuple *t);
void plc_blame_scale(plc *x, const plc_tuple *by, bool gradient, const char *what);
/* Blames a step that divides or multiplies the whole by a number of ranks, and so explains the
 * scale of `t`. Returns: whether there is one. */
bool plc_blame_count(plc *x, const plc_tuple *t, bool gradient);

#endif
