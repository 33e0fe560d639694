/* Noise or bug: how far two captures are from exact in the dtypes in which they were captured, how
 * far from each other, and the distances that rounding alone predicts.
 *
 * Each side is run in its captured dtypes, in float64 (which stands for exact), and several times
 * in float64 with every result rounded up or down at random to the dtype that it was captured in
 * (stochastic arithmetic). The comparison says which tensors both sides have; where both hold one
 * in the same dtype the digits that were lost since the last such place are counted apart. A side
 * that loses more there than the other, and whose outputs show it, is named with the operator.
 *
 * Nothing here enters a verdict: it is said beside it.
 *
 * Sources: Vignes, A stochastic arithmetic for reliable scientific computation (1993); Parker,
 * Monte Carlo arithmetic (UCLA CSD-970002, 1997). */
#ifndef LOCALISE_ROUNDING_ROUNDING_H
#define LOCALISE_ROUNDING_ROUNDING_H

#include "synth/synth.h"

#ifdef __cplusplus
extern "C" {
#endif

/* All errors are root mean squares over a tensor, relative to that of its exact values. Infinite: a
 * number on one side only. */

/* The least share of a side's squared error at an output that a loss is told for. */
#define ROUNDING_LEAST_SHARE 0.005

/* A tensor that both sides have. */
typedef struct rounding_point {
  uint32_t node[2]; /* left, right */
  double error[2];
  double difference; /* NAN: the two lie in memory in other orders */
  double predicted;  /* the difference that stochastic rounding predicts */
} rounding_point;

/* Where one side loses digits that the other keeps, in all the layers that do it alike. */
typedef struct rounding_loss {
  int side;            /* 0 left, 1 right */
  uint32_t node;       /* the operator that loses them; the first of several */
  double ratio;        /* this side's own error there to the other's, the largest; INFINITY: it
                          overflows */
  size_t places;       /* such places */
  const double *share; /* by output: of this side's squared error */
  const char *text;
} rounding_loss;

typedef struct rounding_output {
  const char *left, *right; /* names */
  double error[2], difference, predicted;
  double exact;     /* between the two in float64 */
  bool explained;   /* the difference is no more than rounding makes it, and no side loses digits
                       that the other keeps */
  const char *text; /* that in words */
} rounding_output;

typedef struct rounding {
  size_t n_outputs;
  const rounding_output *output;
  size_t n_points;
  const rounding_point *point; /* in the left graph's order */
  size_t n_losses;
  const rounding_loss *loss;
  bool explained;      /* of all outputs */
  const char *text;    /* the conclusion, one line */
  const char *missing; /* why nothing was measured, and all else is empty; NULL: it was */
  iso_arena arena;     /* private */
} rounding;

/* Measure. `r`: the comparison's result for these two graphs. Of `o` only the seed and the stop
 * callback are read. Operators that cannot run in their captured dtypes are no error: `missing`
 * says so, as it does where all was stopped. Owns: rounding_free. Errors: ISO_NOMEM. */
ISO_MUST_USE iso_code rounding_measure(const synth_graph *left, const synth_graph *right,
                                       const synth_result *r, const rule_oracle *oracle,
                                       const synth_options *o, rounding *out, iso_error *err);
void rounding_free(rounding *r);

#ifdef __cplusplus
}
#endif
#endif
