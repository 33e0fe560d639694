/* Two graphs of which nothing is run but constants (synth/synth.h, synth_compare_unrun). */
#ifndef SYNTH_UNRUN_UNRUN_H
#define SYNTH_UNRUN_UNRUN_H

#include "synth/comparison.h"

/* ---- typed_leaves.c ---- */
/* The leaves of both graphs in the e-graph: inputs that are one by name or value, parameters by
 * name, constants with their values. Leaves without values are `typed`. */
iso_code st_type_leaves(state *s, const bool *const live[2], iso_error *err);
/* All operators but constants are typed, too. Requires: both graphs were added. */
void st_type_operators(state *s);

/* ---- typed_terms.c ---- */
typedef struct st_term_types st_term_types;
/* Owns: st_term_types_free. */
iso_code st_term_types_new(state *s, st_term_types **out, iso_error *err);
void st_term_types_free(st_term_types *t);
/* Types for the terms of neither graph whose records are `from` and later ones. */
iso_code st_type_terms(st_term_types *t, size_t from, iso_error *err);

/* ---- leaf_bytes.c: parameters of a checkpoint, held against each other as they lie in its files.
 * Both files are at hand, so that no hash is needed: bytes are compared, in any dtype. ---- */
/* Whether nothing is said of a leaf yet. */
bool st_unjoined(const state *s, int side, size_t i);
/* The pages of a mapped file that hold these bytes are read from now on, beside other work. */
void st_read_soon(const void *from, size_t n);
bool st_same_bytes(state *s, const rule_tensor *a, const rule_tensor *b);
/* Leaves of `side` without a partner that are leaves of the other side, rows below rows: one of
 * them, or q, k and v in one. */
iso_code st_join_stacked(state *s, int side, const bool *const live[2], iso_error *err);
/* How leaf `r` of the right differs from its namesake, or a fused one from the leaves that it is
 * put together of, in words of the result's; NULL in `out`: it does not, or either has no
 * values. */
iso_code st_leaf_differs(state *s, size_t r, const char **out, iso_error *err);
/* Where leaf `i` of `side` was joined by its bytes alone to leaves of the other side, and the
 * numbers in their names say that these are another layer's: that, in words of the result's. NULL
 * in `out`: they do not. */
iso_code st_leaf_misplaced(state *s, int side, size_t i, const char **out, iso_error *err);

/* ---- hinted_leaves.c ---- */
/* Leaves that a comparison of graphs that are alike related. Before those that are one by name: a
 * matrix that one side has transposed has the same name on both. */
iso_code st_join_hinted(state *s, const bool *const live[2], iso_error *err);

/* ---- identities.c ---- */
/* Adds `x <=> op(x)` for each operator of the graph that may return its operand unchanged. New
 * terms are in `a`. */
iso_code st_add_identities(const synth_graph *g, rule_set *set, iso_arena *a, iso_error *err);

/* ---- gaps.c ---- */
/* Where the chain has gaps: operators all of whose arguments have a counterpart, and which have
 * none; and leaves without one. Into the result's reason and its divergences. */
iso_code st_name_gaps(state *s, const bool *const live[2], iso_error *err);

#endif
