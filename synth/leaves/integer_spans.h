/* Between which numbers the integers of a graph lie, by those of its leaves, and where they choose
 * rows. */
#ifndef SYNTH_LEAVES_INTEGER_SPANS_H
#define SYNTH_LEAVES_INTEGER_SPANS_H

#include "rules/operators.h"
#include "synth/joint/joint.h"

typedef struct st_span {
  int64_t low, high; /* both may be taken */
  uint64_t of;       /* the leaves that it depends on, a bit for each, by their number modulo 64 */
  bool told;         /* low and high are known */
  bool loose; /* it may be far narrower: values that go together, or a choice by a condition */
  bool some;  /* not all elements of the leaves are here, or not for all values of other leaves */
} st_span;

/* A place where integers choose rows. */
typedef struct st_look_up {
  size_t index; /* the node that holds them */
  int64_t rows;
  int64_t used; /* less rows of zeros at the end */
  bool wraps;   /* negative ones count from the end */
  bool has_none;
  int64_t none; /* a number that chooses no row */
} st_look_up;

typedef struct st_walk_node {
  size_t node;
  const rule_operator *op;
  bool real; /* of floats: the leaves that they depend on are noted once */
} st_walk_node;

/* The part of a graph that integers run through on their way to a reading. */
typedef struct st_walk {
  const synth_graph *g;
  st_span *span; /* by node; leaves' are the caller's to set */
  bool *needed;  /* by node: integers run through it */
  st_walk_node *node;
  size_t n_node, cap_node;
  st_look_up *read;
  size_t n_read, cap_read;
  bool traced; /* the leaves that floats depend on are noted */
} st_walk;

/* Owns: st_walk_free, also where it fails. Requires: the graph is in the e-graph. */
ISO_MUST_USE iso_code st_walk_new(const state *s, int side, st_walk *w, iso_error *err);
void st_walk_free(st_walk *w);
/* Spans of all nodes, by those of the leaves: no smaller where these are no smaller. */
void st_walk_evaluate(st_walk *w);
st_span st_span_join(st_span a, st_span b);

#endif
