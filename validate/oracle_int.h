/* Private to validate/: trying one sample of a rule, as the ladder and the search for the smallest
 * counterexample do. */
#ifndef VALIDATE_ORACLE_INT_H
#define VALIDATE_ORACLE_INT_H

#include "validate/sample/instance_int.h"

typedef enum val_outcome {
  VAL_AGREE,
  VAL_DIFFER,  /* a counterexample */
  VAL_BLIND,   /* rounding, ties or emptiness hide whether they agree */
  VAL_OUTSIDE, /* a value overflowed, is NaN, or left a domain */
  VAL_FAILED   /* an operator refused */
} val_outcome;

typedef struct val_trial {
  val_outcome outcome;
  char what;       /* of VAL_DIFFER: 's' shapes, 'd' dtypes, 'v' values */
  int64_t index;   /* of the element that differs most beyond rounding; -1 */
  double abs, rel; /* its difference */
  bool soft;       /* so small that a second sample should show it too */
  bool none;       /* of VAL_DIFFER: there a side alone is no number */
  bool gross;      /* far beyond the rounding of any intermediate value */
  bool sure;       /* of VAL_AGREE: nothing was lost in sums */
  bool wraps;      /* of VAL_OUTSIDE: integers may have wrapped */
  bool apart;      /* of VAL_OUTSIDE: the sides differ, or one of them alone is no number, and not
                      since numbers overflowed */
  bool masked;     /* of VAL_OUTSIDE: a number of a mask's size overflowed, and the sides part */
  bool guarded;    /* of VAL_OUTSIDE: a number on the way is undefined, and the sides are finite and
                      differ: a choice hides it on one of them */
  bool ties;       /* the sides differ where equal numbers leave a choice open */
  bool unmet;      /* the thresholds that float64 met are none of the numbers that it stands for */
  double max_rel;  /* of VAL_AGREE: largest relative difference seen */
  bool doubt; /* coarse results differ by more than their tolerance, and not so much that it is sure
               */
  double
      coarse; /* 0, or the tolerance: an operator computes in a narrower dtype (narrow_kernels.h) */
  val_cover cover[2];     /* of both sides */
  rule_tensor *lhs, *rhs; /* unless VAL_FAILED; val_trial_fini */
  char reason[200];       /* VAL_FAILED: the operator's words */
} val_trial;

/* A side of a rule on a sample. */
typedef struct val_shown {
  const rule_term *term;
  rule_tensor *const *bind;
  const rule_tensor *plain; /* its value there */
} val_shown;

/* How a sample is tried. */
typedef struct val_trying {
  iso_rng *rng; /* draws noise */
  double rel_tol;
  bool strict;    /* differences that only cancellation could explain are looked into as well */
  bool unbounded; /* integers are meant without end */
} val_trying;
/* Evaluate both sides of `r`, whose shapes and attributes are literal, on `bind`, and compare.
 * Errors: ISO_NOMEM. */
ISO_MUST_USE iso_code val_try(val_engine *e, const rule *r, rule_tensor *const *bind,
                              const val_trying *how, val_trial *out, iso_error *err);
void val_trial_fini(val_trial *t);
/* Have the outcome of val_try settled by many digits (settle.c): a difference that rounding made is
 * dropped, one that it hid is found, and an agreement of numbers that sums have lost shows nothing.
 * `all`: agreements too, else only the outcomes that noise had to decide. Errors: ISO_NOMEM. */
ISO_MUST_USE iso_code val_trial_settle(val_engine *e, const rule *r, rule_tensor *const *bind,
                                       bool all, val_trial *t, iso_error *err);

/* rule_oracle's same_numbers; `engine` is a val_engine. */
ISO_MUST_USE iso_code val_same_numbers(void *engine, const rule_program side[2], rule_numbers *out,
                                       iso_error *err);

/* Whether a side's result is coarse, and not by calls that the other makes too: those round alike.
 */
bool val_narrow_apart(const val_trial *t, const val_probe *a, const val_probe *b);
/* Set the outcome by the tolerance of coarse results, and by how far they move with the variables.
 * Errors: ISO_NOMEM. */
ISO_MUST_USE iso_code val_narrow_judge(val_engine *e, const rule *r, rule_tensor *const *bind,
                                       iso_rng *rng, val_trial *t, iso_error *err);
/* Whether the sides differ by float literals that samples in float64 are too coarse for: then
 * agreeing shows nothing. */
bool val_rests_on_literals(const rule *r);
/* Whether each side reads a variable that the other does not. That they are equal says that neither
 * matters: of a choice (the largest ones) samples show nothing of the kind, since it moves only
 * where numbers come near each other. */
bool val_reads_apart(const rule *r);
/* An operator of PyTorch's that nobody has looked at, in a term that the other side does not have:
 * where it jumps, or keeps within a bound of its own, no sample need come. NULL: there is none. */
const char *val_unlooked(const rule *r);

/* Keep the trial `t` of the instance `r` (copied) as a counterexample. */
ISO_MUST_USE iso_code val_counterexample_take(val_counterexample *w, const val_problem *p,
                                              const rule *r, rule_tensor *const *bind,
                                              const val_trial *t, iso_error *err);
/* The counterexample that is left after it was made small, in a line: the verdict's reason. */
void val_counterexample_describe(const val_counterexample *w, rule_verdict *out);
/* Look for a smaller one: fewer elements first, then small integers. */
ISO_MUST_USE iso_code val_counterexample_shrink(val_engine *e, val_counterexample *w,
                                                val_problem *p, iso_rng *rng, bool strict,
                                                iso_error *err);

/* val_prove with float literals as the doubles that they are. */
ISO_MUST_USE iso_code val_prove_as_written(const rule *r, rule_schemas *schemas,
                                           const val_options *o, rule_verdict *out, iso_error *err);

/* exact, rounding or unsafe, from samples at extreme magnitudes; NULL where none of them ran. */
ISO_MUST_USE iso_code val_float_class(val_engine *e, const rule *r, const char **out,
                                      iso_error *err);

#endif
