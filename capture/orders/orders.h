/* Tensors that are permuted along a dimension, each row in an order of its own. */
#ifndef CAPTURE_ORDERS_ORDERS_H
#define CAPTURE_ORDERS_ORDERS_H

#include "capture/capture_int.h"

typedef struct along {
  bool depends;              /* else the tensor is the same in all orders */
  uint8_t at[RULE_MAX_RANK]; /* where each dimension of the call's results lies in it */
} along;

typedef struct followed {
  const cap_graph *g;
  uint32_t rank, permuted; /* of the call's results; the dimension whose order is open */
  along *node;             /* by node */
} followed;

/* The order of node `i`, some operands of which are permuted. Returns: false where the order may be
 * seen in it. */
bool along_follow(const followed *f, uint32_t i, along *out);

#endif
