/* Private to synth/: the parts of the loop in compare.c, in the order in which it calls them. */
#ifndef SYNTH_LOOP_H
#define SYNTH_LOOP_H

#include "synth/comparison.h"

/* By this much outputs differ, relative, where it is not constants in float32 that are off (see
 * constants/wide.c). */
#define ST_BEYOND_CONSTANTS 0x1p-17

typedef struct pairing {
  uint32_t left, right; /* indices of outputs */
  eg_node aux; /* the right output in the left one's shape, which the left one must equal */
  const rule_term *term; /* that, over the right graph's nodes */
  const char *relation;
} pairing;

/* ---- compare.c ---- */
/* The comparison's state for the two graphs. Owns: st_state_free, and `p` by free. */
iso_code st_prepare(state *s, pairing **p, iso_error *err);
/* Builds one e-graph of both, with leaves related and drawn, and values for all nodes. */
iso_code st_fill(state *s, bool *const live[2], iso_error *err);
void st_state_free(state *s);
/* The chain of a certificate, where one was asked for and the outputs have met. */
iso_code st_write_chain(state *s, const pairing *p, iso_error *err);

/* ---- admit.c ---- */
/* The nodes in the comparison's own spelling; which of them the outputs depend on; refuses graphs
 * that cannot be compared. */
iso_code st_look_over(state *s, synth_graph own[2], bool *live[2], iso_error *err);

/* ---- outputs.c ---- */
iso_code st_output_terms(state *s, pairing *p, iso_error *err);
bool st_outputs_met(state *s, const pairing *p, size_t n);
/* Whether the values of a pair of outputs agree on every draw; on which they do not is added to
 * `apart`. */
iso_code st_outputs_agree(state *s, const pairing *p, bool *apart, bool *equal, iso_error *err);
/* Whether outputs differ at the captured inputs by ST_BEYOND_CONSTANTS. */
iso_code st_outputs_part(state *s, const pairing *p, size_t n, bool *yes, iso_error *err);
/* The same over the real numbers: where float64 tells the outputs apart on a draw, many digits may
 * show that rounding did. They may still be equal. */
iso_code st_outputs_hold_as_numbers(state *s, const pairing *p, bool *apart, bool *equal,
                                    iso_error *err);

/* ---- looks.c ---- */
/* Leaves the sets out on which a difference may be none: what fails there may fail because no
 * program has such inputs. Returns: whether others that were drawn by looks are left, and fewer. */
bool st_keep_sure(synth_graph graph[2]);
/* Whether there are input sets that were drawn by what inputs look like. */
bool st_has_looks(const synth_graph *left, const synth_graph *right);
/* Runs both graphs on these. Returns: in `differ` whether their outputs differ on one; in `stopped`
 * whether a limit was reached before that was seen. Errors: ISO_TORCH where an operator cannot take
 * one. */
ISO_MUST_USE iso_code st_run_looks(const synth_graph *left, const synth_graph *right,
                                   const rule_oracle *oracle, rule_schemas *schemas,
                                   const synth_options *o, bool *differ, bool *stopped,
                                   iso_error *err);

/* The same where an operator fails on some of those that st_keep_sure leaves out: each by itself,
 * and those that it fails on are none. Returns: where they differ, in `one` the graphs with that
 * set alone, in `arena`. */
ISO_MUST_USE iso_code st_run_unsure(const synth_graph *left, const synth_graph *right,
                                    const rule_oracle *oracle, rule_schemas *schemas,
                                    const synth_options *o, iso_arena *arena, synth_graph one[2],
                                    bool *differ, bool *stopped, iso_error *err);

/* Runs both graphs with integers drawn that are kept by what they look like by chance. Returns: in
 * `freed` the name of one where their outputs differ then, else NULL. */
ISO_MUST_USE iso_code st_run_chance(const synth_graph *left, const synth_graph *right,
                                    const rule_oracle *oracle, rule_schemas *schemas,
                                    const synth_options *o, const char **freed, bool *stopped,
                                    iso_error *err);

/* ---- evaluate.c ---- */
iso_code st_evaluate(state *s, iso_error *err);

/* ---- judge.c ---- */
/* Many candidates in vain: perhaps there is no rule to be found, and a witness tells so sooner than
 * all the candidates that are left. */
iso_code st_hunt_early(state *s, const pairing *p, size_t n_pairs, iso_error *err);
iso_code st_judge(state *s, pairing *p, iso_error *err);
/* An operator that fails on one side only is a divergence at that place; on both sides it is an
 * error. */
iso_code st_operator_fails(state *s, bool *alone, bool *drawn, iso_error *err);

#endif
