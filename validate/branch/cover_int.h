/* Private to validate/: the branches that samples took, that something showed, and samples that are
 * made to take the others. */
#ifndef VALIDATE_COVER_INT_H
#define VALIDATE_COVER_INT_H

#include "validate/oracle_int.h"
#include "validate/sample/sample_int.h"

/* The call of that name and place in `c`, or NULL. */
val_covered *val_cover_at(const val_cover *c, const val_covered *like);
/* The branches of it that nothing has shown yet, and those worth looking for besides: `other` is
 * the rule's other side. */
uint16_t val_cover_sought(const val_covered *o, const val_cover *other);

/* Note a sample of one side in `c`: of its branches that `all` lacks, those whose result, made
 * otherwise, moves the side's value are `seen`. `index`: where not -1, the one element of operator
 * `at` whose truth value is flipped; `*moved` tells whether that moved the side's value. `work`:
 * the budget left, which is reduced. Errors: ISO_NOMEM. */
ISO_MUST_USE iso_code val_observe(val_engine *e, const val_shown *side, const val_cover *all,
                                  const val_cover *other, val_cover *c, int64_t *work,
                                  iso_error *err);
ISO_MUST_USE iso_code val_observe_one(val_engine *e, const val_shown *side, size_t at,
                                      int64_t index, bool *moved, int64_t *work, iso_error *err);

/* A sample changed so that element `element` of a call is where it jumps, or takes a branch. */
typedef struct val_root {
  bool found;
  bool across;     /* no integer meets it: this sample lies on one side, and with `beyond` for the
                      variable on the other */
  bool truth;      /* private */
  bool unique;     /* along the line that was searched there is no other one */
  int64_t element; /* of the call's result */
  uint32_t var;    /* the variable that was changed */
  double operand;  /* the call's operand there */
  rule_tensor *beyond;   /* NULL, or the variable on the root's other side, or beside it. Owns: the
                            caller unrefs */
  rule_tensor *close[2]; /* NULL, or the variable of floats close by on either side of where a jump
                            is, met or not. Owns: the caller unrefs */
} val_root;
/* A sample that may be changed, of an instance whose variables have domains. */
typedef struct val_bench {
  val_engine *e;
  const rule *r;
  val_domain *domain;
  iso_rng *rng;
  rule_tensor **bind;
  int64_t *work; /* left to spend: it shrinks */
} val_bench;
/* Element `element` of the call that `term` makes is to take `bit`. */
typedef struct val_target {
  const rule_term *term;
  uint16_t bit;
  int64_t element;
} val_target;
/* Change one variable of the sample so that it meets the target. Returns: in `out` whether it does.
 * Errors: ISO_NOMEM. */
ISO_MUST_USE iso_code val_solve(const val_bench *on, const val_target *t, val_root *out,
                                iso_error *err);

/* A sample that was made: the call `op` of side `side` takes `bit` in it, at `root`. */
typedef struct val_made {
  int side;
  const val_covered *op;
  uint16_t bit;
  const val_root *root;
} val_made;
/* Somebody who weighs samples, which are drawn by `rng`. Sets `*stop` where no more are wanted. */
typedef struct val_seeker {
  iso_code (*weigh)(void *ctx, const rule *r, rule_tensor **bind, const val_made *made, bool *stop,
                    iso_error *err);
  void *ctx;
  iso_rng *rng;
  int64_t *work; /* left to spend: it shrinks */
} val_seeker;
/* Makes samples of the instance `r` for all branches that `all` (left and right) lacks. Errors:
 * ISO_NOMEM, and those of `weigh`. */
ISO_MUST_USE iso_code val_seek(val_engine *e, const rule *r, rule_tensor *const *example,
                               const val_cover all[2], const val_seeker *who, iso_error *err);
/* An edge was met on purpose and nothing moved. After many such ones, that are not all the same
 * place, there is nothing to see. */
void val_cover_barren(val_covered *o, uint16_t bit, const val_root *root);
/* A branch that was taken only where a side is undefined needs no sample. */
void val_cover_excuse(val_cover *all, const val_cover *outside);

#endif
