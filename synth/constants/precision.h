/* Private to synth/: values of a constant in precisions other than the captured one. */
#ifndef SYNTH_CONSTANTS_PRECISION_H
#define SYNTH_CONSTANTS_PRECISION_H

#include "synth/comparison.h"

/* The computation of a constant: leaves and constants that both sides have are given, the
 * operators above them run. */
typedef struct pr_step {
  eg_node e;
  const rule_term *call; /* RULE_VAR i is step i; NULL: its value is given */
  rule_dtype held; /* of a given value: the narrowest floating dtype that its numbers fit in */
  bool rounded; /* given, and not all of its numbers are short: the number that is meant is near */
  bool excerpt; /* given: a few numbers of a table, as stored there */
  bool before_power; /* an exponential or a power is made of it: it is rounded as the graph says, or
                        not at all */
  rule_tensor **v;
  size_t n;
} pr_step;

typedef struct pr_cone {
  state *s;
  iso_arena arena;
  pr_step *step;
  size_t n, cap;
  int32_t *at;     /* by e-node: its step, -1 if none */
  bool pure;       /* nothing that is given may be a rounded number */
  rule_dtype held; /* the narrowest of the given ones' */
} pr_cone;

enum { PR_FORMULAS = 5 }; /* for one geometric progression: see progression() */

/* How to run it. All zero: in float64. */
typedef struct pr_how {
  bool rounds; /* results of steps first <= i < last are rounded to `dtype` */
  size_t first, last;
  rule_dtype dtype;
  unsigned formula; /* 1..PR_FORMULAS: progressions are computed by it, in float32 */
  uint64_t noise;   /* not 0: each rounding step moves its result, and given values move by their
                       rounding */
} pr_how;

/* Owns: pr_cone_free, also after an error. */
iso_code pr_cone_new(state *s, eg_node e, pr_cone *out, iso_error *err);
void pr_cone_free(pr_cone *c);
/* The constant's value so, on kept set `set`. Owns: the caller unrefs. */
iso_code pr_run(pr_cone *c, const pr_how *how, size_t set, rule_tensor **out, iso_error *err);
/* By how much each element moves under noise, over several runs. Owns: the caller unrefs. */
iso_code pr_spread(pr_cone *c, size_t set, const rule_tensor *exact, rule_tensor **out,
                   iso_error *err);
/* The unit in the last place of `x` in a dtype. */
double pr_ulp(double x, rule_dtype dtype);

#endif
