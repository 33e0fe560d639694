/* Private to folds/: computations from which a parameter may have come when its model was
 * loaded. */
#ifndef SYNTH_FOLDS_FOLDS_H
#define SYNTH_FOLDS_FOLDS_H

#include <math.h>

#include "synth/synth.h"

/* A tensor of the other side, as it is or as one operator makes it, read as a list of numbers. */
typedef struct vector {
  const rule_term *term;
  const double *x;
  uint32_t rank; /* of the term's shape */
} vector;

/* The source found for a parameter of two dimensions or more: its vectors may have been
 * computed with it. */
typedef struct fold_of {
  int64_t source;         /* the node of the other side that its elements are multiples of, or
                             itself where nothing was needed; -1: unknown */
  const rule_term *scale; /* of its first dimension; NULL: none */
  const double *by;       /* its values */
} fold_of;

typedef struct finder {
  const synth_graph *to, *from; /* of the parameters that are looked for; the other */
  rule_tensor *const *value;    /* of `from`, by node, in float64; NULL: none */
  iso_arena *arena;
  double *number; /* that occur in either graph, or come of sizes */
  size_t n_numbers, cap_numbers;
  fold_of *found;       /* by node of `to` */
  const rule_tensor *t; /* the parameter at hand */
  double ulp, least;    /* half a unit in the last place of 1, in its dtype, and of its least
                           number */
  bool failed;          /* there was no memory */
} finder;

/* ---- near.c ---- */
/* The vectors of `n` elements that operators near those that read `node` read, too, each as it is
 * and as one operator makes it. Returns: how many of `cap`. */
size_t fold_vectors(finder *f, uint32_t node, int64_t n, vector *out, size_t cap);
/* The number that `c`, known to `off`, may have been meant as. */
bool fold_number(const finder *f, double c, double off, double *meant);
/* How far a number may be off that one element tells. */
static inline double fold_off(const finder *f, double c) { return 4 * f->ulp * fabs(c); }
/* Whether the parameter at hand has so few digits that elements tell a number together. */
bool fold_is_narrow(const finder *f);
/* Collect the numbers of both graphs. */
bool fold_collect(finder *f);

/* ---- terms (near.c); NULL where there is no memory ---- */
const rule_term *fold_node(finder *f, uint32_t node);
const rule_term *fold_call(finder *f, const char *op, const rule_term *a, const rule_term *b);
const rule_term *fold_literal(finder *f, double c);
const rule_term *fold_reshape(finder *f, const rule_term *t, const rule_shape *shape);

/* ---- vectors.c ---- */
/* A vector of numbers as a product of those near `node`; its values are known to `ulp`. NULL: as
 * none. */
const rule_term *fold_product(finder *f, uint32_t node, const double *x, int64_t n);
/* The parameter at hand, of one dimension, whose operator also reads a parameter found as `w`. */
const rule_term *fold_bias(finder *f, const fold_of *w);

#endif
