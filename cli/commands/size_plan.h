/* Which other sizes a pair of captures is compared at. */
#ifndef CLI_COMMANDS_SIZE_PLAN_H
#define CLI_COMMANDS_SIZE_PLAN_H

#include "capture/calls/calls.h"

typedef struct size_plan {
  size_t n, n_symbols;
  int64_t *value;  /* n times one of each of the left's symbols; smaller ones first */
  size_t left_out; /* there were more */
  double most;     /* elements that the two graphs may have together */
} size_plan;

/* The least and the next sizes, the largest that `most` admits, each number that the graphs compare
 * with, count to or have tables of, and those beside it, and some drawn ones. Owns:
 * size_plan_free. */
ISO_MUST_USE iso_code size_plan_make(cap_graph *const graph[2], const calls_side side[2],
                                     const cap_options *from, uint64_t seed, size_plan *out,
                                     iso_error *err);
void size_plan_free(size_plan *p);
/* Elements of all tensors of a graph. */
double size_plan_work(const cap_graph *g);

#endif
