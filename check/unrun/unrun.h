/* Certificates of graphs of which nothing was run (docs/static.md): parameters have no values, or
 * those of a checkpoint, and no step may rest on running a call that depends on them. */
#ifndef CHECK_UNRUN_UNRUN_H
#define CHECK_UNRUN_UNRUN_H

#include "check/check_int.h"

/* ---- leaves.c ---- */
/* Whether a leaf step relates parameters, which nothing but names and bytes tells apart. */
bool chk_of_weights(const chk_state *k, const chk_step *x);
/* Before the steps: no parameter is in two relations by which an element of it could be another
 * one of it. */
iso_code chk_unrun_relations(chk_state *k);
/* A parameter is one of the other side's, or a layout of some: by name where their names are one,
 * as the pair that was learned from has it, or byte for byte where no other leaf has these bytes.
 */
iso_code chk_unrun_leaf(chk_state *k, uint32_t a, uint32_t b, size_t step);
/* Whether a call only moves the dimensions of its argument, which has `rank` of them; from[d]:
 * which of these is its dimension d. */
bool chk_turned(const rule_term *call, uint32_t rank, uint32_t from[RULE_MAX_RANK]);

/* ---- learned.c ---- */
/* Whether the relation is one of the learned pair's with other numbers in its names. */
bool chk_was_learned(const chk_state *k, uint32_t a, uint32_t b);
/* The relations of parameters that the steps have, into the report. */
iso_code chk_publish_related(chk_state *k);

/* ---- types.c ---- */
/* After the steps: checks kinds and shapes of the terms that rules' variables stand for. */
iso_code chk_unrun_variables(chk_state *k);

/* ---- numbers.c ---- */
/* After the rules: refuses unless every rule is proved and holds for NaN and infinity, too, and no
 * operator of the captures may look at such a number. */
iso_code chk_unrun_numbers(chk_state *k);

#endif
