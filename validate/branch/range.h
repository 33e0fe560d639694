/* Private to validate/: interval bounds on the results of operators, for all values of the
 * variables. */
#ifndef VALIDATE_BRANCH_RANGE_H
#define VALIDATE_BRANCH_RANGE_H

#include "validate/exec/engine_int.h"

/* All numbers from `low` to `high`. An open end is not reached itself. */
typedef struct val_range {
  double low, high;
  bool low_open, high_open;
} val_range;

/* The ranges of the tensors of an evaluation. All bits zero: none. */
typedef struct val_ranges {
  struct {
    const rule_tensor *tensor;
    val_range range;
  } * of;
  size_t n, cap;
} val_ranges;
/* The ranges of a call's operands; a tensor that is not in `all` is a variable. */
void val_ranges_in(const val_ranges *all, rule_tensor *const *bind, size_t n, val_range *in);
/* Note the results of a call. Returns: false where there is no memory. */
bool val_ranges_note(val_ranges *all, const rule_term *call, rule_tensor *const *bind,
                     const val_range *in, size_t n, rule_tensor *const *out, size_t n_out);

/* The range of the one result of a flat call of `n` tensors, whose ranges are `in`: holds where the
 * call is defined. */
val_range val_range_of(const rule_term *call, rule_tensor *const *bind, const val_range *in,
                       size_t n, const rule_tensor *out);
/* For zeros.c: notes a call's result, which lies in `known` on every draw. */
void val_zeros_note(val_zeros *z, size_t at, const rule_term *term, const rule_term *call,
                    val_range known, const rule_tensor *out);
/* The branches of `need` (choice_int.h) that values in these ranges can take. A comparison with one
 * answer needs nothing. */
uint16_t val_range_needs(const rule_term *call, rule_tensor *const *bind, const val_range *in,
                         size_t n, const rule_tensor *out, uint16_t need);

#endif
