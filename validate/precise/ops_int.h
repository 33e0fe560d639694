/* Private to validate/precise/: helpers that operators on tensors of intervals share. */
#ifndef VALIDATE_PRECISE_OPS_INT_H
#define VALIDATE_PRECISE_OPS_INT_H

#include "validate/precise/precise_int.h"

#ifdef VAL_HAS_MPFR

/* ---- arguments (ops.c) ---- */

static inline bool vp_is_given(const rule_term *t) { return t && t->kind != RULE_NONE; }
/* The double that a literal is. false: it is no number. */
bool vp_number_of(const rule_term *t, double *out);
bool vp_flag(const vp_call *k, const char *name, bool if_none);
/* Element `i`, row-major, of a real tensor. */
void vp_element(vp *v, const vp_tensor *t, int64_t i, vn *out);
/* A number for as long as the evaluation lasts. NULL: stopped. */
vn *vp_new_number(vp *v);
/* A number that the rule writes, in *out. */
bool vp_literal(vp *v, const rule_term *t, vn **out);
/* An operand that broadcasts: a tensor, or a number. */
typedef struct vp_operand {
  const vp_tensor *t;
  int64_t stride[RULE_MAX_RANK];
  vn *number;
} vp_operand;
/* An argument as an operand of a result of the shape `to`. false: it does not broadcast to that, or
 * is left out. */
bool vp_operand_of(vp *v, const vp_call *k, const rule_term *a, const rule_shape *to,
                   vp_operand *o);
/* Element i of the operand, of `to`'s elements. */
void vp_operand_get(vp *v, const vp_operand *o, const rule_shape *to, int64_t i, vn *out);
/* A new tensor of the call's first result. NULL: stopped. */
vp_tensor *vp_result(vp *v, const vp_call *k);
/* Argument i, where it is a tensor. */
const vp_tensor *vp_operand_at(const vp_call *k, uint32_t i);

/* Operators: the first result of a call. NULL: stopped, or not with these arguments. */

/* ---- element by element (elementwise.c) ---- */

const vp_tensor *vp_unary(vp *v, const vp_call *k, vn_unary f, int cost);
/* f(a, b), for two operands of the call. */
const vp_tensor *vp_binary(vp *v, const vp_call *k, const rule_term *left, const rule_term *right,
                           vn_binary f, int cost);
/* An activation that has attributes. false: the operator is none. */
bool vp_activation(vp *v, const vp_call *k, const vp_tensor **out);
const vp_tensor *vp_sum_or_difference(vp *v, const vp_call *k);
const vp_tensor *vp_quotient(vp *v, const vp_call *k);
const vp_tensor *vp_gelu(vp *v, const vp_call *k);
const vp_tensor *vp_clamp(vp *v, const vp_call *k);
/* self + value * (a * b), or a / b. */
const vp_tensor *vp_addc(vp *v, const vp_call *k);
const vp_tensor *vp_lerp(vp *v, const vp_call *k);
/* Comparisons of numbers: booleans, where each is settled. */
const vp_tensor *vp_compared(vp *v, const vp_call *k, const char *what);

/* ---- sums of products (products.c) ---- */

const vp_tensor *vp_added_product(vp *v, const vp_call *k);
const vp_tensor *vp_contraction(vp *v, const vp_call *k);
/* Scores of queries and keys, a mask, softmax, values. */
const vp_tensor *vp_attention(vp *v, const vp_call *k);

/* ---- reductions (reduce.c) ---- */

/* Along one dimension: exponentials of the differences from a number near the largest, which
 * changes neither quotient. */
vp_tensor *vp_softmax_of(vp *v, const vp_tensor *x, uint32_t dim, bool logarithm);
const vp_tensor *vp_reduction(vp *v, const vp_call *k);
const vp_tensor *vp_softmax(vp *v, const vp_call *k);
/* Sums or products from the front on. */
const vp_tensor *vp_running(vp *v, const vp_call *k);
/* Layer norm, or without its mean (`rms`), over the last dimensions. */
const vp_tensor *vp_layer_norm(vp *v, const vp_call *k);
#endif

#endif
