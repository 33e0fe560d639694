/* Private to localise/rounding/: cuts, and runs of a graph side by side. */
#ifndef LOCALISE_ROUNDING_ROUNDING_INT_H
#define LOCALISE_ROUNDING_ROUNDING_INT_H

#include "localise/rounding/rounding.h"

enum { LR_DRAWS = 8 };

/* ---- distance.c ---- */
/* The root mean square of a - b over that of `scale`, which has their elements. Where `scale` is
 * infinite, or a mask, nothing is looked at. Returns: INFINITY where one of the two is no number.
 */
double lr_distance(const rule_tensor *a, const rule_tensor *b, const rule_tensor *scale);
/* Whether some element is no number where `exact` is one. */
bool lr_overflows(const rule_tensor *t, const rule_tensor *exact);
/* `t`, of float64, rounded to neighbours in `to` at random, each as likely as it is near. Owns: the
 * caller unrefs. */
iso_code lr_round(rule_tensor *t, rule_dtype to, iso_rng *rng, rule_tensor **out, iso_error *err);
/* `t` in another floating dtype, rounded to nearest. Owns: the caller unrefs. */
iso_code lr_cast(rule_tensor *t, rule_dtype to, rule_tensor **out, iso_error *err);
/* Bits of the significand, the first one too; 0: not floating. */
int lr_digits(rule_dtype d);

/* ---- cuts.c ---- */

/* A tensor that both sides hold in one dtype. Rounding between two cuts is measured by itself: at
 * each cut runs start anew from the exact value, rounded to the dtype. */
typedef struct lr_cut {
  uint32_t node[2];              /* the first of each side */
  double error[2];               /* of the captured run, from the inputs on */
  double spread[2];              /* of stochastic rounding, from the inputs on */
  double own[2];                 /* of stochastic rounding, since the cuts before */
  double nearest[2];             /* of the captured operators, since the cuts before */
  rule_tensor *captured, *exact; /* of the left side */
  double difference;
} lr_cut;

typedef struct lr_cuts {
  const synth_graph *graph[2];
  const synth_result *result;
  const rule_oracle *oracle;
  const synth_options *o;
  bool *live[2];  /* by node: an output depends on it */
  int32_t *of[2]; /* by node: its cut, -1: none */
  lr_cut *cut;    /* in the left graph's order */
  size_t n;
  size_t n_pairs;
  uint32_t *output[2]; /* by pair: which output of each side */
  int64_t overflow[2]; /* the first operator that does, -1: none */
} lr_cuts;
/* Requires: outputs were paired. */
iso_code lr_cuts_find(lr_cuts *c, iso_error *err);
void lr_cuts_free(lr_cuts *c);

/* ---- tracks.c ---- */

/* Values of one side's outputs, by output. */
typedef struct lr_values {
  rule_tensor **captured, **exact, **drawn[LR_DRAWS];
} lr_values;
/* Run a side in all ways at once, and measure its cuts. Owns: lr_values_free, whatever is returned.
 */
iso_code lr_run(lr_cuts *c, int side, lr_values *out, iso_error *err);
/* Run a side in float64 with the error that its captured operators make before each marked cut
 * added there. Returns: in `moved`, by output, how far that moves it. */
iso_code lr_run_with(lr_cuts *c, int side, const bool *marked, double *moved, iso_error *err);
void lr_values_free(const lr_cuts *c, int side, lr_values *v);

/* ---- losses.c ---- */
/* Where a side loses digits that the other keeps. `pair`: the measurements of the outputs. Returns:
 * in `out` the losses that show in the outputs. Requires: both sides were run. */
iso_code lr_find_losses(lr_cuts *c, const rounding_output *pair, rounding *out, iso_error *err);

/* ---- words.c ---- */

/* A side's operators between two cuts: from one back to those before. */
typedef struct lr_region {
  const uint32_t *node; /* ascending */
  size_t n;
} lr_region;
/* Words for how side `side` loses digits, and for the other side's way of computing there; "":
 * nothing is said. NULL: no memory. */
typedef struct lr_words {
  uint32_t node; /* the operator that loses them */
  const char *what, *other;
} lr_words;
/* `digits`: by side and class, the widest format that the side holds the class in. */
lr_words lr_loss_words(const lr_cuts *c, const lr_cut *cut, int side, const lr_region region[2],
                       const int *const digits[2], iso_arena *a);
/* Whether the operator makes numbers of its own, and so rounds. */
bool lr_rounds(const synth_node *n);

#endif
