/* Private to check/evaluate*.c: tensors of balls, and one evaluation of a rule's sides. */
#ifndef CHECK_EVALUATE_EVALUATE_INT_H
#define CHECK_EVALUATE_EVALUATE_INT_H

#include "check/evaluate/ball.h"
#include "check/evaluate/evaluate.h"

typedef struct ev_tensor {
  char kind; /* 'f', 'i' or 'b' */
  uint32_t rank;
  int64_t dim[RULE_MAX_RANK];
  int64_t n;
  ball *v; /* row by row; may be shared */
} ev_tensor;

typedef struct ev_list {
  const ev_tensor **t;
  size_t n;
} ev_list;

enum { EV_MAX_LIST = 64 };

typedef struct ev {
  iso_arena arena;
  const rule *r;
  const rule_values *values; /* of names */
  const rule_term *(*list)(const void *ctx,
                           const char *name); /* a name that is a list of integers */
  const ev_tensor **var;
  bool reading, masks, rounded;
  int64_t work, limit;
  const char *why; /* it is over, and why */
  bool nomem;
} ev;

/* Over. Returns: NULL. */
void *ev_fail(ev *e, const char *why);
/* Room for `n` things, and so much work. */
void *ev_take(ev *e, int64_t n, size_t size);
bool ev_spend(ev *e, int64_t work);
ev_tensor *ev_new(ev *e, char kind, uint32_t rank, const int64_t *dim);
/* The same elements in another shape. */
const ev_tensor *ev_shaped(ev *e, const ev_tensor *t, uint32_t rank, const int64_t *dim);
/* Element (i0, i1, ...) is element offset + sum of i * stride of `t`. */
const ev_tensor *ev_strided(ev *e, const ev_tensor *t, uint32_t rank, const int64_t *dim,
                            const int64_t *stride, int64_t offset);
void ev_strides(const ev_tensor *t, int64_t *stride);
const ev_tensor *ev_scalar(ev *e, ball v, char kind);

/* ---- arguments (terms.c); each ends the evaluation where there is none such ---- */

const ev_tensor *ev_eval(ev *e, const rule_term *t);
bool ev_eval_list(ev *e, const rule_term *t, ev_list *out);
bool ev_none(const rule_term *t, uint32_t i);
const ev_tensor *ev_arg(ev *e, const rule_term *t, uint32_t i); /* a tensor, or a number as one */
bool ev_number(ev *e, const rule_term *t, uint32_t i, ball *out);
bool ev_int(ev *e, const rule_term *t, uint32_t i, int64_t *out);
bool ev_ints(ev *e, const rule_term *t, uint32_t i, int64_t *out,
             uint32_t *n); /* room for EV_MAX_LIST */
bool ev_flag(ev *e, const rule_term *t, uint32_t i);
/* A dimension of `rank`, from the end where it is negative. */
bool ev_dim(ev *e, const rule_term *t, uint32_t i, uint32_t rank, uint32_t *out);
bool ev_wrap(ev *e, int64_t d, uint32_t rank, uint32_t *out);

/* ---- operators: by name, with a number that tells apart those of one function ---- */

typedef const ev_tensor *(*ev_function)(ev *e, const rule_term *t, int which);
typedef struct ev_op {
  const char *name;
  ev_function f;
  int which;
} ev_op;

extern const ev_op ev_elementwise[], ev_layouts[], ev_sums[], ev_windows[],
    ev_kernels[]; /* up to one without a name */
/* Operators with several results. Returns: false where the call is none of these, or evaluation has
 * ended. */
bool ev_parts(ev *e, const rule_term *t, ev_list *out);
bool ev_kernel_parts(ev *e, const rule_term *t, ev_list *out);

/* ---- building blocks of operators ---- */

const ev_tensor *ev_map(ev *e, const ev_tensor *a, char kind, ball (*f)(ball));
const ev_tensor *ev_zip(ev *e, const ev_tensor *a, const ev_tensor *b, char kind,
                        ball (*f)(ball, ball));
const ev_tensor *ev_expand(ev *e, const ev_tensor *t, uint32_t rank, const int64_t *dim);
/* Both with the dimensions before their last `keep` broadcast. */
bool ev_broadcast(ev *e, const ev_tensor **a, const ev_tensor **b, uint32_t keep);
const ev_tensor *ev_swapped(ev *e, const ev_tensor *t, uint32_t a, uint32_t b);
const ev_tensor *ev_slice(ev *e, const ev_tensor *t, uint32_t d, int64_t start, int64_t end,
                          int64_t step);
const ev_tensor *ev_cat(ev *e, const ev_list *l, uint32_t d);
const ev_tensor *ev_rows_of(ev *e, const ev_tensor *table, uint32_t d, const ev_tensor *index);
/* x / root(mean of squares of the last `over` elements + eps), with the mean taken off where
 * `centred`. */
const ev_tensor *ev_normed(ev *e, const ev_tensor *x, int64_t over, ball eps, bool centred);
void ev_softmax_row(ball *row, int64_t n, int64_t stride);

#endif
