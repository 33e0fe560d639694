/* Private to validate/: operators that choose between values or jump, and the result of such a call
 * had it chosen otherwise.
 *
 * The kinds are those of rules/operators.h. A call is looked at element by element: on which side
 * of its choice it lies, and the number that an operator like it, with the other convention there,
 * would have put in its place (cover.c, observe.c). */
#ifndef VALIDATE_CHOICE_INT_H
#define VALIDATE_CHOICE_INT_H

#include "rules/operators.h"
#include "validate/exec/engine_int.h"

/* Effects that a call may be seen to have. The first eight are told of everywhere; the others are
 * kinds of VAL_EDGE. */
enum {
  VAL_SAME = 1, /* its operand as it is, the middle piece */
  VAL_UP = 2,   /* more than that, or the upper piece, or above 0 */
  VAL_DOWN = 4,
  VAL_YES = 8,
  VAL_NO = 16,
  VAL_SOME = 32,         /* not 0 */
  VAL_EDGE = 64,         /* where it jumps: it has a value of its own there */
  VAL_FAR = 128,         /* out of the range of the integers that it gives */
  VAL_EDGE_BELOW = 256,  /* the same at a negative number; VAL_EDGE is at any */
  VAL_EDGE_ODD = 512,    /* where the integer below is odd: halves are rounded to even ones */
  VAL_EDGE_ABOVE = 1024, /* at a positive number with an even integer below it */
  VAL_MEET = 2048, /* VAL_EDGE of an element that was away from it before one variable moved: x == x
                      is no such one */
  VAL_BITS = 12
};

/* A flat call (engine_int.h) of `n` tensors whose first result is `out`. */
typedef struct val_site {
  const rule_term *call;
  rule_tensor *const *bind;
  size_t n;
  const rule_tensor *out;
  rule_choice choice;
  val_operands o;
  bool aligned; /* o is set */
} val_site;

val_site val_site_of(const rule_term *call, rule_tensor *const *bind, size_t n,
                     const rule_tensor *out);
/* Effects that have to be seen of the call before samples show anything of it, and in `wanted`
 * those worth looking for besides. */
uint16_t val_site_needs(const val_site *s, uint16_t *wanted);
/* Whether element `i` takes the branch of this one bit. Returns: then in `other` its value with
 * that choice made the other way. */
bool val_site_slip(const val_site *s, uint16_t bit, int64_t i, double *other);
/* Whether any element does. */
bool val_site_takes(const val_site *s, uint16_t bit);
/* How far element `i` is from where it jumps or where its pieces meet: 0 there, of either sign
 * beside it. `pick` tells apart several such places; `at` is of the call as it was when the search
 * began, so that the place stays the same. Returns: NaN where there is none. */
double val_site_distance(const val_site *s, uint16_t bit, int64_t i, uint64_t pick, double *at);

/* Operators that find places by comparing numbers (order.c). */
bool val_finds_places(const rule_term *call);
/* Which of a call's results the choice shows in: the places, where it gives values too. */
size_t val_shown_result(const rule_term *call, rule_tensor *const *out, size_t n_out);
/* Whether `side` reads result `k` of the call that `term` makes. The first is read by all. */
bool val_reads_result(const rule_term *side, const rule_term *term, size_t k);
/* Whether the operator's manual leaves open which of several equal numbers' places it returns. */
bool val_leaves_ties_open(const rule_term *call, rule_tensor *const *out, size_t n_out);
/* Whether the numbers that it orders are themselves places in an order, and so never equal. */
bool val_orders_places(const rule_term *term);
/* As val_site_slip and so on. VAL_EDGE: at another place there is the same number; VAL_SOME: there
 * is another place. */
bool val_order_slip(const val_site *s, uint16_t bit, int64_t i, double *other);
uint16_t val_order_needs(const val_site *s, uint16_t *wanted);
double val_order_distance(const val_site *s, int64_t i, uint64_t pick);

#endif
