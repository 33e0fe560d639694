/* Private to running.c and running_gradients.c: scores that come block by block. */
#ifndef SYNTH_PARTS_RUNNING_H
#define SYNTH_PARTS_RUNNING_H

#include "synth/comparison.h"

enum { NONE = -1 };

/* After a block. */
typedef struct step {
  eg_node top;          /* the largest score so far */
  eg_node scores;       /* of all blocks so far */
  eg_node block, value; /* the scores of this block, and the values they weigh; EG_NONE: none */
  eg_node values;       /* of all blocks so far */
  const char *product;  /* the operator that weighs them */
  eg_node factor;       /* from the step before: exp(its top - this top) */
  eg_node weights;      /* of this block: exp(block - top) */
  eg_node total, out;   /* the running sums; EG_NONE: not found */
  int32_t before;       /* the step that it goes on from; NONE: it is the first */
  uint32_t d;           /* dimension of the scores */
  int32_t row;          /* of the last step: its weights' place among rows of tiles; NONE */
  uint32_t node;        /* of `top` */
} step;

/* A tensor times the factor from the step before `from` to `to`. */
typedef struct scaled {
  eg_node e, of;
  int32_t from, to;
} scaled;

typedef struct running {
  state *s;
  const synth_graph *g;
  int side;
  uint32_t *call; /* the nodes that may belong to it, in order */
  size_t n_calls;
  step *step;
  size_t n, cap;
  scaled *scaled;
  size_t n_scaled, cap_scaled;
  bool hides; /* a block is masked wholly */
} running;

/* The e-node of operand k of a call; EG_NONE: it is no tensor. */
eg_node rn_operand(const running *x, uint32_t i, uint32_t k);
/* Whether both are there, and equal. */
bool rn_same(const running *x, eg_node a, eg_node b);
/* Whether node `i` is a call of the operator on tensors with values. */
bool rn_calls(const running *x, uint32_t i, const char *op);
/* Whether a call reduces one dimension, which it keeps as 1: in `d`, which. */
bool rn_reduced(const running *x, uint32_t i, uint32_t *d);
/* op(l, r), and exp(a - b). NULL: no memory, or an operand is NULL. */
const rule_term *rn_call(state *s, const char *op, const rule_term *l, const rule_term *r);
const rule_term *rn_exp_below(state *s, const rule_term *a, const rule_term *b);
/* What a tensor is times a factor. NULL: nothing is known. */
const scaled *rn_scaled(const running *x, eg_node e);
/* The last step after it. */
step *rn_end(const running *x, step *at);

/* ---- running_gradients.c ---- */
/* Joins what gradients of the blocks are computed from with the same, made of each block's weights
 * as parts of the whole sum. */
iso_code rn_join_gradients(running *x, iso_error *err);

#endif
