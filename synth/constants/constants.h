/* Constants of one side related to those of the other, exactly or up to rounding. */
#ifndef SYNTH_CONSTANTS_CONSTANTS_H
#define SYNTH_CONSTANTS_CONSTANTS_H

#include "synth/comparison.h"

/* ---- constants.c ---- */
iso_code st_relate_constants(state *s, iso_error *err);
/* Whether a member of the class is of that side, or is part of a constant of that side. */
bool st_constant_on(state *s, eg_node e, int side);
/* Whether a call that is no constant reads it. */
bool st_feeds_values(state *s, eg_node e);
/* A table in which each element is repeated in place (cos, cos, ...), by the elements as they are
 * once. */
iso_code st_relate_repeated(state *s, synth_index *x, const rule_tensor *t, synth_relation *rel,
                            iso_error *err);
/* A constant of `side` was related to a layout `term` of all[0 .. n): flags the constants that need
 * no relation any more. */
iso_code st_mark_related(state *s, const eg_node *all, size_t n, const rule_term *term, int side,
                         bool *related, iso_error *err);
/* NULL where there is none. */
const rule_term *st_fill_term(state *s, const rule_term *shape, const rule_term *number,
                              rule_dtype dtype);

/* ---- equal.c ---- */
/* Whether two computations of one constant may have given these. */
bool st_same_constant(const rule_tensor *a, const rule_tensor *b);

/* ---- signs.c ---- */
/* Whether the zeros of two constants have different signs, and something of the graphs tells these
 * apart; true where there is no memory to find out. */
bool st_zeros_told(const state *s, eg_node a, eg_node b);

/* ---- literals.c ---- */
/* Find the literals that float32 rounded on one side only. Requires: the graphs as captured. */
iso_code st_find_readings(state *s, const bool *const live[2], iso_error *err);
/* The call of a node with these as they are meant, and say so. NULL in `out`: it has none. */
iso_code st_read_rounded(state *s, int side, uint32_t node, const rule_term **out, iso_error *err);
/* A float32 number that needs its digits. */
bool st_uses_float32(double v);

/* ---- wide.c ---- */
/* Constants that one side alone computes in float32: noted in s->constants.narrowed; made in
 * float64 where s->constants.widen asks for it. */
iso_code st_widen_constants(state *s, iso_error *err);
/* One constant, from its arguments' values, in float64; it stays as captured where that is farther
 * off than rounding. Returns: in `moved` (or NULL) whether it changed. */
iso_code st_widen(state *s, eg_node e, bool *moved, iso_error *err);

/* ---- movement.c ---- */
/* Say in each assumption of kind `rounding` how far the outputs move by it, once. Where that is no
 * number, or far more than rounding explains, s->constants.doubtful says so. */
iso_code st_measure_rounding(state *s, iso_error *err);

/* ---- rounding.c ---- */
/* Constants of one number that the other side writes as a literal, or divides by, and that were
 * stored in fewer digits. Before numbers are taken as they are stored. */
iso_code st_relate_literals(state *s, const eg_node *all, size_t n, iso_error *err);
/* Join those of all[0 .. n) that rounding tells apart, but for those that are `related` by now. */
iso_code st_relate_rounded(state *s, const eg_node *all, size_t n, bool *related, iso_error *err);

#endif
