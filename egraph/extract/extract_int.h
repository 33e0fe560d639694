/* Private to egraph/extract/: choices by tree cost, and the part of a graph that roots reach, laid
 * out for choosing by DAG cost. */
#ifndef EGRAPH_EXTRACT_INT_H
#define EGRAPH_EXTRACT_INT_H

#include <math.h>

#include "egraph/sat/sat_int.h"

struct eg_extract {
  const eg_sat *s;
  eg_cost cost;
  double *best;          /* per class */
  uint32_t *choice;      /* rows */
  uint32_t *mark, stamp; /* scratch of walks */
  uint32_t *stack;
  size_t cap_stack;
};
double egi_node_cost(const eg_extract *x, uint32_t row);
double egi_tree_cost(const eg_extract *x, uint32_t row, double *child); /* child: scratch */

/* Classes and e-nodes that the roots reach, both numbered from 0. Left out are e-nodes that need
 * their own class or one without a finite term, and those that another one of the class beats: it
 * costs no more, and has no child that they lack. */
typedef struct egi_dag {
  eg_extract *x;
  uint32_t n_cls, n_node, n_root;
  uint32_t *cls;       /* the e-class */
  uint32_t *first;     /* e-nodes of a class: from here to the next one's */
  uint32_t *of, *row;  /* per e-node: its class, its row */
  double *cost;        /* likewise */
  uint32_t *at, *kid;  /* children of an e-node, each once: from `at` to the next one's */
  uint32_t *component; /* strongly connected; EG_NONE: a class by itself */
  uint32_t *root;      /* each once */
  uint32_t *choice;    /* per class an e-node; no class needs itself by these */
  uint32_t *uses;      /* per class: how often roots and chosen e-nodes of used classes need it */
  double total;        /* of the e-nodes chosen for used classes */
  uint32_t *mark, stamp, *stack; /* scratch of walks */
  size_t work;                   /* steps left */
} egi_dag;

static inline bool egi_dag_spend(egi_dag *d, size_t n) {
  d->work = d->work > n ? d->work - n : 0;
  return d->work > 0;
}
/* Would a class need itself if this e-node were chosen? Only classes with a choice are walked
 * through. */
bool egi_dag_circle(egi_dag *d, uint32_t node);

/* ---- bound.c ---- */

/* Finds the best choices and, where they cost less than `d->choice`, puts them there. Returns: in
 * `bound` a lower bound on the cost of all choices, and in `done` whether the search was
 * exhaustive. */
ISO_MUST_USE iso_code egi_dag_search(egi_dag *d, double *bound, bool *done, iso_error *err);

#endif
