/* Masks: numbers that stand for minus infinity, and where that is the same function.
 *
 * Half precision writes -65504 where others write -3.4e38 or minus infinity. A graph that does so
 * is read as the same graph with minus infinity, and this is shown of the captured graph: a mask is
 * followed from where it stands through calls that move, choose or add it; it vanishes in a softmax
 * whose rows each keep an element, in an exponential, in a largest element beside others. If one
 * path goes elsewhere (to an output, into a comparison, a product, a clamp) nothing is read. Which
 * elements are masked is found by running the same calls on zeros and ones; the elements that a
 * mask hides may depend on the captured sizes and on inputs that are kept, but on no value that is
 * drawn.
 *
 * A mask hides its elements only if all numbers beside it are far from it: rule_masks_bound says
 * how large these are. */
#ifndef RULES_MASKS_H
#define RULES_MASKS_H

#include "rules/operators.h"
#include "rules/rules.h"

#ifdef __cplusplus
extern "C" {
#endif

#define RULE_MASK_HIDES 1e30 /* as far below 0 a number is one in an infinite or a large dtype */
#define RULE_MASK_F16 (-65504.0)          /* float16's least number */
#define RULE_MASK_F16_BOUND (65504.0 / 4) /* numbers beside it lie within this */
#define RULE_MASK_BOUND \
  1e30 /* the same beside float32's, bfloat16's and float64's least number \
        */

/* NULL: masks must not get there. */
const rule_mask_op *rule_mask_op_of(const char *op);

/* Whether `x` in `dtype` is a mask: float16's least number; elsewhere half of bfloat16's least
 * number and below. */
bool rule_is_mask(rule_dtype dtype, double x);

/* Whether the value `v` of argument `k` masks a row of the call wholly. */
bool rule_mask_hides_row(const rule_term *call, uint32_t k, const rule_tensor *v);

typedef struct rule_mask_node {
  const rule_term *call;   /* over the numbers of nodes before it; NULL: a leaf */
  rule_dtype dtype;        /* of its first output */
  const rule_shape *shape; /* the same */
  rule_tensor *
      fixed; /* its value in captured dtypes, where nothing that is drawn goes into it; else NULL */
  bool live, output;
} rule_mask_node;

typedef struct rule_masks rule_masks;
/* Follow the masks of float16 (`half`) or of the other dtypes. `oracle` runs the calls on zeros and
 * ones. Requires: `node` stays until rule_masks_free. */
ISO_MUST_USE iso_code rule_masks_new(const rule_oracle *oracle, const rule_mask_node *node,
                                     size_t n, bool half, rule_masks **out, iso_error *err);
void rule_masks_free(rule_masks *m);
/* Whether there is any mask. */
bool rule_masks_any(const rule_masks *m);
/* Whether node `i` is a mask or has one in it. */
bool rule_masks_at(const rule_masks *m, size_t i);
/* Whether every path of every mask ends where it vanishes. Returns: in `where` (may be NULL) a node
 * that shows that it does not. */
bool rule_masks_vanish(const rule_masks *m, size_t *where);
/* The largest number that may occur beside a mask, where `largest` gives that of a node whose
 * numbers do. */
ISO_MUST_USE iso_code rule_masks_bound(const rule_masks *m, double (*largest)(void *ctx, size_t i),
                                       void *ctx, double *out, iso_error *err);
/* The call of node `i` with its mask written as minus infinity; its own where it writes none. NULL:
 * there is no memory. */
const rule_term *rule_masks_read(const rule_masks *m, size_t i, iso_arena *a);
/* Whether node `i` has a known value with masks that it did not get from others: then it is read as
 * rule_masks_value, and not by its call. */
bool rule_masks_source(const rule_masks *m, size_t i);
/* The value of a source with its masks read, in its own dtype. Owns: the caller unrefs. */
ISO_MUST_USE iso_code rule_masks_value(const rule_masks *m, size_t i, rule_tensor **out,
                                       iso_error *err);

#ifdef __cplusplus
}
#endif
#endif
