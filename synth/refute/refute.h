/* Counterexamples, made small, and the coverage of draws. */
#ifndef SYNTH_REFUTE_REFUTE_H
#define SYNTH_REFUTE_REFUTE_H

#include "synth/comparison.h"

/* ---- counterexample.c ---- */
/* An output (of the left) that differs, and how. `signs`: none does so, but one was infinite of
 * both signs where real numbers have no quotient; it is set and never taken back. */
typedef struct st_difference {
  bool found, signs;
  bool clear; /* by so much more than roundings move it, of constants too, that none explains it */
  size_t output;
  rule_diff diff;
} st_difference;
/* Whether outputs that differ on draw `d` do so by more than rounding explains: the first such
 * output. Found, its values are kept in s->witness. */
iso_code st_confirm(state *s, size_t d, st_difference *out, iso_error *err);
/* Look for an input and parameters on which the outputs differ; the same. */
iso_code st_hunt(state *s, st_difference *out, iso_error *err);
/* The same among inputs on which a call may be undefined (rows of zeros; `signs`: numbers of given
 * signs), and where one output is NaN and the other a number. */
iso_code st_hunt_undefined(state *s, bool signs, st_difference *out, iso_error *err);
/* The same among inputs with zeros of either sign, where an operator tells these apart. */
iso_code st_hunt_zero_signs(state *s, st_difference *out, iso_error *err);
/* An operator failed (in `err`): whether it does so on one side only, on the captured inputs; then
 * the witness is that node. `drawn`: on these inputs none fails. */
iso_code st_fails_alone(state *s, int *side, int64_t *node, bool *alone, bool *drawn,
                        iso_error *err);
/* Refuses graphs whose outputs depend on uninitialised memory. Errors: ISO_UNSUPPORTED. */
iso_code st_check_unspecified(state *s, iso_error *err);
/* The witness with other values for some leaves (atoms; leaves defined by them follow). */
typedef struct st_variant {
  const eg_node *leaf;
  rule_tensor **value;
  size_t n;
  bool anew;     /* some of them are kept otherwise: what depends on these alone is computed, too */
  size_t output; /* out: which differs */
} st_variant;
/* Whether the outputs still differ there: clearly, or with `sure` as st_confirm has it; then `leaf`
 * gets references to all leaves' values by node, for the caller to drop. Values that an operator
 * does not take show nothing. Requires: s->res->witness_leaf. */
iso_code st_try_variant(state *s, st_variant *v, bool sure, rule_tensor **leaf[2], rule_diff *diff,
                        bool *shows, iso_error *err);
/* Keep the leaves' values of s->witness.run in the result. */
iso_code st_keep_witness(state *s, iso_error *err);

/* All values of one side on the captured inputs and parameters. Owns: st_run_free. */
iso_code st_run_captured(state *s, int side, st_run *out, iso_error *err);
/* The number of elements of all inputs, parameters and constants. */
int64_t st_leaf_elements(const synth_graph *g);
/* Whether two nodes are the same real numbers on draw `d`, even if float64 rounds them apart.
 * `yes`: false too where that is not known. With `by_noise`, for tensors that a rule joins or has
 * yet to join, it is true then where they differ by no more than rounding moves them. */
ISO_MUST_USE iso_code st_same_numbers(state *s, size_t d, const eg_node e[2], bool by_noise,
                                      bool *yes, iso_error *err);
/* Whether two nodes that differ by an infinity on draw `d` do so where real numbers have no
 * quotient. */
ISO_MUST_USE iso_code st_same_pole(state *s, size_t d, const eg_node e[2], bool *yes,
                                   iso_error *err);
/* The runs that st_same_numbers keeps, which all outputs are asked of in turn. */
void st_free_output_runs(state *s);
/* Keep the values of draw `d` in s->witness. */
iso_code st_run_draw(state *s, size_t d, iso_error *err);

/* ---- delta_debug.c ---- */
/* Make the witness in the result small. Requires: st_keep_witness. */
iso_code st_shrink(state *s, iso_error *err);

/* ---- needed.c ---- */
/* Finds out which elements of a drawn witness matter, for the result. Requires: st_keep_witness. */
ISO_MUST_USE iso_code st_needed(state *s, iso_error *err);
/* Makes `value` of an input agree with the masks of the witness, as captured values do. Returns:
 * whether it did not. */
bool st_agree_with_masks(const state *s, int side, size_t node, rule_tensor *value);
/* UNDECIDED where the witness has ids and a mask that no caller gives together. */
ISO_MUST_USE iso_code st_doubt_fills(state *s, iso_error *err);

/* ---- together.c ---- */
/* UNDECIDED where changing either of two inputs alone shows the difference, and one of them may
 * have been computed from the other. Requires: st_needed. */
ISO_MUST_USE iso_code st_doubt_together(state *s, iso_error *err);

/* Whether there are integers, or zeros and ones, and a float input that is no more than one of them
 * has: it may have been computed from one, and rounded. */
bool st_some_computed(const state *s);

/* ---- properties.c ---- */
/* UNDECIDED where captured integers are a permutation, say, and the outputs differ only where they
 * are none. Requires: st_needed. */
ISO_MUST_USE iso_code st_doubt_properties(state *s, iso_error *err);

/* ---- needed.c ---- */
/* Undo st_keep_witness. */
void st_drop_witness(state *s);

/* ---- undefined.c ---- */
enum { ST_POLES = 24 };
/* Numbers at which a call may be undefined, and the operators that would tell. */
typedef struct st_poles {
  double value[ST_POLES];
  size_t n;
  /* Draws with one number everywhere, those before one number in each row, and all of them. */
  size_t n_one, n_mixed, n_draws;
  bool *watch[2];   /* by node of left and right: it may be undefined, and an operator sees it */
  bool watched;     /* any of them */
  bool small;       /* both graphs are: draws cost little */
  bool apart;       /* an output may be undefined on one side only */
  bool undefined;   /* or on either */
  bool reached;     /* on some draw one of them was NaN or infinite */
  bool *tells[2];   /* by node: it tells whether a number that may be large has overflowed */
  bool told;        /* any of them, but of those that tell masks */
  bool *steady[2];  /* by node: a truth value, of numbers that may be large, that is the same on all
                       draws */
  bool jumps;       /* any that tells something, or decides, of numbers that may be large */
  bool hides;       /* any that tells masks, or is steady */
  bool *origin[2];  /* by node: it may be undefined though its operands are numbers, and a watched
                       node depends on it */
  bool *none[2];    /* of these: it had an element that is NaN, outputs agreed, and leaves were told
                       apart: those that do not feed them, or all of them */
  bool *parted[2];  /* of these: outputs did not agree where it had one, though rounding may explain
                       that */
  bool others;      /* some input does not feed them */
  bool *divides[2]; /* by node: it divides by a tensor that may be 0 */
  bool *feeds;      /* by class of leaves: a watched node is computed from it; NULL: no matter */
} st_poles;
typedef struct st_within { /* numbers x of a leaf: low <= x < high; infinite: any */
  double low, high;
} st_within;
/* Owns: st_poles_free, also after an error. */
iso_code st_poles_of(state *s, st_poles *p, iso_error *err);
void st_poles_free(st_poles *p);
/* Whether some operator tells overflowed numbers from others, or decides by them. Where a draw
 * overflows, tensors that were joined as real numbers may then differ. */
ISO_MUST_USE iso_code st_tells_overflow(state *s, bool *yes, iso_error *err);
/* Whether a class of leaves has no poles on draw `k`, but numbers that can be told apart. */
bool st_poles_plain(const st_poles *p, size_t k, size_t class);
/* Values of a leaf for draw `k`: first one number everywhere, then rows of all kinds; plain ones
 * alone. Requires: `v` is of floats, or its numbers are within `in`. */
void st_poles_fill(const st_poles *p, size_t k, bool plain_only, iso_rng *rng, st_within in,
                   rule_tensor *v);
/* Note the poles that both runs of draw `draw` reached, which kept all values. `agreed`: the
 * outputs were the same. */
void st_poles_note(st_poles *p, size_t draw, bool agreed, const st_run run[2]);
/* Look there; as st_hunt. */
iso_code st_hunt_poles(state *s, st_poles *p, st_difference *out, iso_error *err);

/* Which nodes of a side watched nodes are computed from, and these. NULL: no memory. Owns: the
 * caller frees. */
bool *st_below_watched(const state *s, const st_poles *p, int side);
/* The fact of a node, by those of the nodes before it. */
void st_note_fact(state *s, int side, size_t i, rule_fact *fact);
bool st_any_undefined(const rule_term *t, const rule_fact *fact);

/* ---- shown.c ---- */
/* Whether it is proved that all that watched operators see are numbers. */
ISO_MUST_USE iso_code st_sees_numbers(state *s, const st_poles *p, bool *yes, iso_error *err);

/* ---- put_in.c ---- */
/* A node that was never undefined on a draw, though it may be, becomes NaN on both sides. Gives the
 * node at which outputs part then. NULL: none does. Requires: st_hunt_poles has run. */
ISO_MUST_USE iso_code st_part_where_undefined(state *s, const st_poles *p, const char **node,
                                              iso_error *err);

/* ---- crossing.c ---- */
/* A node that divides by what is positive on one input and negative on another, where outputs are a
 * number on one side alone at the 0 between. NULL: none is found. */
ISO_MUST_USE iso_code st_part_where_zero(state *s, const st_poles *p, const char **node,
                                         iso_error *err);

/* ---- overflow.c ---- */
enum { ST_LARGE_DRAWS = 16 };
/* Runs both sides on numbers so large that results overflow. `apart`: on some of them an operator
 * that can tell reads an overflowed number, and the outputs differ. It is a found difference where
 * the outputs are numbers and the difference is due to those operators: they agree once these give
 * what they give of finite operands. */
iso_code st_hunt_large(state *s, const st_poles *p, bool *apart, st_difference *out,
                       iso_error *err);

/* ---- coverage.c ---- */
iso_code st_cover(state *s, const bool *const live[2], iso_error *err);

#endif
