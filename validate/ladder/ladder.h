/* Private to validate/: the state of one decision, as it climbs from samples to a proof and back to
 * samples (oracle.c).
 *
 * A sample counts where both sides ran within their domains and rounding does not hide the result.
 * A difference just above rounding must show on a second sample before it refutes. A sample on
 * which a side fails to run says nothing. A rule with open sizes gets another instance for every
 * sample. */
#ifndef VALIDATE_LADDER_H
#define VALIDATE_LADDER_H

#include "validate/branch/choice_int.h"
#include "validate/branch/cover_int.h"
#include "validate/branch/meet_int.h"
#include "validate/sample/sample_int.h"

enum { VAL_LEAST_SAMPLES = 8 };

enum { VAL_FLATS = 48 }; /* functions of both sides that are looked at */

/* Facts of a variable in a function that may be flat, which counted samples have shown. */
enum {
  VAL_NOTHING,
  VAL_LOST, /* the function's operand moved with it, and the function did not */
  VAL_MOVED
};

typedef struct val_ladder {
  val_engine *e;
  const rule *given; /* as it was asked: the prover gets this one */
  const rule *r;     /* in canonical form: samples do not depend on how it is spelled */
  uint64_t seed;
  rule_tensor *const *example; /* by variable of r */
  val_problem problem;
  iso_rng rng;
  bool strict;
  bool glance;    /* the first samples and the proof are all that there is */
  bool unproved;  /* samples now are all that there is: they count to the last digits */
  unsigned first; /* samples that take all kinds in turn, before the proof */
  unsigned poles; /* not 0: open sizes are drawn so often to look at poles, and that is all */
  uint32_t good, failed, blind, outside, soft, no_instance;
  uint32_t agree_cropped; /* samples with large sizes made small on which the sides agree */
  uint32_t settled, sure; /* samples that were looked at in many digits, and those of them where
                             nothing was lost */
  uint32_t worked[VAL_ALL_KINDS]; /* samples of each kind that counted */
  val_cover cover[2];             /* of the samples that counted, left and right */
  val_cover undefined[2];         /* of those where a side is undefined */
  int64_t work; /* left for looking whether anything shows a branch, and for samples that do */
  unsigned soft_kind; /* of the sample that differed by so little that another one should, too */
  double max_rel;
  uint8_t seen[VAL_FLATS][RULE_MAX_VARS]; /* by function and variable of r (moved.c) */
  uint32_t looked;                        /* samples in which variables were moved */
  bool whole;    /* the proof is of integers that do not wrap, and these may */
  bool wraps;    /* some sample is left out since its integers may wrap */
  bool masked;   /* some sample differs where a number of a mask's size overflows */
  bool guarded;  /* some sample differs where a number on the way is undefined */
  bool apart;    /* the sides part where some part of them is no number, or an operator sees it */
  bool parted;   /* two conditions were not seen in all cases */
  bool ties;     /* some sample differs where equal numbers leave a choice open */
  bool cut;      /* some sample differs on an axis, by the sign of a zero */
  bool doubt;    /* some sample differs by more than such a tolerance, if not surely */
  double coarse; /* the largest tolerance of samples whose operators compute in a narrower dtype */
  char last_error[200];
  val_counterexample *counterexample; /* NULL: not wanted */
  rule *general;                      /* NULL: not wanted; else the rule that is proved */
  iso_arena *arena;                   /* of its new parts */
  rule_verdict *out;                  /* the verdict, in the end */
  bool refuted;                       /* by a sample: nothing more is to be done */
  bool none; /* that sample shows only that one side alone may be no number */
} val_ladder;

/* ---- samples (weigh.c) ---- */

/* Tries a sample, and records which branches and numbers it has shown. */
ISO_MUST_USE iso_code val_weigh(val_ladder *l, const rule *r, unsigned k, unsigned kind,
                                rule_tensor *const *bind, val_trial *t, iso_error *err);
/* After all kinds have had their turn: one that counted before, more often than not. */
unsigned val_choose_kind(val_ladder *l, unsigned k);
/* Sample `k`, on an instance of its own. */
ISO_MUST_USE iso_code val_sample_instance(val_ladder *l, unsigned k, unsigned kind, iso_error *err);
/* A rule makes a claim only where both of its sides are defined. Between two graphs it must not
 * join 0/0 with a number either, whether it was found or given: so each variable that may be at a
 * pole is zero once. */
ISO_MUST_USE iso_code val_sample_poles(val_ladder *l, iso_error *err);
/* The same at l->poles instances and nothing else: all operands of one are asked at it. Sizes that
 * one search has not met are not looked for again. */
ISO_MUST_USE iso_code val_sample_only_poles(val_ladder *l, iso_error *err);
/* A candidate about large tensors, with its large sizes made small (cropped.c). It is refuted where
 * that differs: a rule that holds at these sizes alone is given up, which costs a join at most. */
ISO_MUST_USE iso_code val_sample_cropped(val_ladder *l, iso_error *err);
/* Rows that are longer than the rule's windows, slices and thresholds. */
ISO_MUST_USE iso_code val_sample_sizes(val_ladder *l, unsigned k, iso_error *err);
/* Complex numbers on the axes. */
ISO_MUST_USE iso_code val_sample_axes(val_ladder *l, unsigned k, iso_error *err);

/* ---- where a rule's parts are no numbers (origins.c) ---- */

/* Looks for samples on which parts that may be undefined, and occur on one side alone, are
 * undefined. Sets l->apart where the sides part on one of these, or where a part was a number on
 * all of them. */
ISO_MUST_USE iso_code val_seek_origins(val_ladder *l, iso_error *err);

/* ---- what variables do (moved.c) ---- */

/* Notes which variables move which side of a sample that counted, or cancel there. */
ISO_MUST_USE iso_code val_note_moved(val_ladder *l, const rule *r, rule_tensor *const *bind,
                                     iso_error *err);
/* A variable that was lost in a function on some sample, and moved it on none. NULL: none. */
const char *val_unmoved(const val_ladder *l);

/* ---- what literals do (literals.c) ---- */

typedef struct val_twin {
  rule r;        /* one side of a rule, and the same with another number */
  double number; /* the one that was changed */
  bool found;
} val_twin;
/* Twin `which` of the rule, from 0; not found: there are no more. Its terms live in `a`. Errors:
 * ISO_NOMEM. */
ISO_MUST_USE iso_code val_literal_twin(iso_arena *a, rule_schemas *schemas, const rule *r,
                                       size_t which, val_twin *out, iso_error *err);

/* ---- samples made for branches and numbers that none has shown (made.c) ---- */

/* Samples made for the branches that nothing has shown. */
ISO_MUST_USE iso_code val_seek_branches(val_ladder *l, iso_error *err);
/* Samples in which rare events happen together. A rule that is only tested claims all numbers,
 * those beyond a mask too: that a mask may be read as minus infinity is shown by a proof, or by the
 * graphs (rules/masks.h). */
ISO_MUST_USE iso_code val_sample_rare(val_ladder *l, iso_error *err);

/* ---- the verdict (conclude.c) ---- */

/* Whether a sample costs more than most proofs: a table of words, the matrices of a real model. */
bool val_heavy(const rule *r);
/* The choice of an operator that no sample has shown yet, in words. NULL: all are shown. */
const char *val_ladder_gap(const val_ladder *l);
/* The verdict from the samples that counted, or from the proof. */
void val_conclude(const val_ladder *l, const rule_verdict *proof);

#endif
