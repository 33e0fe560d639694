/* Terms as tensors: sizes, which are polynomials over the names of sizes, and a way to give the
 * element at any index, which is an expression again. An operator's definition (validate/ops/ops.h)
 * makes one from those of its arguments. Where it needs to know more than the case says, a case
 * split is asked for, and evaluation begins again in each case. */
#ifndef VALIDATE_TENSOR_H
#define VALIDATE_TENSOR_H

#include "validate/expr/expr.h"

/* The element of `t` at `idx`. */
typedef sx (*pt_elem)(sc *c, const pt_tensor *t, const sx *idx);

struct pt_tensor {
  char kind;     /* 'f', 'i', 'b' */
  uint64_t lead; /* variables whose leading dimensions come first, one bit each */
  uint32_t rank; /* of the dimensions after them */
  sx dim[RULE_MAX_RANK];
  pt_elem elem;
  int which;
  const pt_tensor *in[4];
  const pt_tensor *const *list; /* of operators that take many */
  size_t n_list;
  sx p[8];                  /* parameters */
  const sx *many;           /* more of them, `which` many */
  int32_t k[RULE_MAX_RANK]; /* dimensions */
  sx (*unary)(sc *c, sx x);
  bool wrapped;     /* a plain number */
  uint8_t narrow;   /* of integers: their rule_dtype, 0 where that is int64 */
  const char *text; /* of an einsum */
  sx size[3];       /* of a window */
  uint32_t id;
};

/* Several tensors: either listed or pieces of one size along a dimension. */
typedef struct pt_value {
  bool several;
  size_t n; /* SIZE_MAX: as many as there are (equal pieces) */
  const pt_tensor **t;
  const pt_tensor
      *base; /* pieces of it along `dim`, `step` each, without that dimension if `unbind` */
  uint32_t dim;
  sx step;
  bool unbind;
} pt_value;

struct sc_memo {
  const rule_term *t;
  const pt_value *v;
};

/* What is returned here lives as long as the context. NULL, and false of what asks or needs: the
 * evaluation has failed (sc_fail, which sticks: c->fault says why) or a case split was asked for,
 * and the caller returns at once. An expression has no NULL: of a failed context it is 0, the
 * number. */

/* ---- tensors (tensor.c, eval.c) ---- */

/* A tensor without dimensions, for the caller to fill in; its elements are those of `f`. */
pt_tensor *pt_new(sc *c, char kind, pt_elem f);
/* The element at `idx`, an index for each of its dimensions; remembered. */
sx pt_at(sc *c, const pt_tensor *t, const sx *idx);
/* The value of a term, evaluated once; and the one tensor that it is. */
const pt_value *pt_eval(sc *c, const rule_term *t);
const pt_tensor *pt_eval_tensor(sc *c, const rule_term *t);
/* A tensor as a call's only result (NULL: of NULL); several results. */
pt_value *pt_one(sc *c, const pt_tensor *t);
pt_value *pt_list(sc *c, const pt_tensor *const *t, size_t n);
/* Result `k`. */
const pt_tensor *pt_piece(sc *c, const pt_value *v, size_t k);
/* `n` bytes, as they come. */
void *sc_take(sc *c, size_t n);
/* A variable of the rule, and whether a tensor is one. */
const pt_tensor *pt_variable(sc *c, int64_t index);
bool pt_is_variable(const pt_tensor *t);

/* ---- case splits (split.c) ---- */

/* p = q is needed for this to be defined: checked, or a case split is asked for. false: stop. */
bool sc_require_eq(sc *c, sx p, sx q);
bool sc_require(sc *c, sx cond); /* a condition (diagram) that definedness asks for */
bool sc_require_modelled(
    sc *c, sx cond, const char *otherwise); /* else the operator has a value that is not modelled */
bool sc_decide(sc *c, sx cond,
               bool *out); /* whether it holds; asks for a split where unknown (false: stop) */
/* a = b * *out: where it is not seen at once, b is supposed to divide a (else nothing is defined).
 */
bool sc_multiple(sc *c, sx a, sx b, sx *out);
void sc_defined_if(sc *c, sx cond); /* note a condition on values */
void pt_join_leads(sc *c, uint64_t a,
                   uint64_t b); /* these variables' leading dimensions are equal */

/* ---- sizes and numbers (literal.c) ---- */

sx sc_size(sc *c, const rule_term *t); /* a size, attribute or expression of them */
sx sc_condition(sc *c, const rule_term *t);
/* A float that the rule writes: exact, or as the root or the minus infinity that it stands for,
 * where c->reading says so. */
sx pt_literal(sc *c, double f);
/* A number argument, and its kind. */
sx pt_scalar(sc *c, const rule_term *t, char *kind);
/* A tensor without dimensions that holds it; beside tensors its kind gives way to theirs. */
const pt_tensor *pt_scalar_tensor(sc *c, sx x, char kind);
/* The number that a size is; fails where it is not one. */
bool pt_int(sc *c, sx x, int64_t *out);

/* ---- finite masks (mask.c) ---- */

/* At or below half of the least finite number of float32 and bfloat16: read as minus infinity. */
bool sc_mask_literal(double f);
/* Whether the rule has such literals, and all of them reach a softmax as masks: added to scores,
 * chosen in their place, laid out. */
bool sc_only_masks(const rule *r);
/* Whether the row of `t` (in[0] along its dimension k[0]) at `idx` has an element that is never
 * minus infinity. */
bool sc_row_keeps(sc *c, const pt_tensor *t, const sx *idx);
/* The condition under which the element of `t` at `idx` is minus infinity, found without a normal
 * form of it. 0: not found. */
sx sc_masked_if(sc *c, const pt_tensor *t, const sx *idx);

/* ---- arguments by the schema's names (argument.c) ---- */

typedef struct pt_args pt_args;
struct pt_args {
  sc *c;
  const rule_term *t;
  const rule_schema *schema;
};
/* An argument; NULL: left out, none, or not in the schema. As a tensor: NULL too where it failed.
 */
const rule_term *pt_arg(pt_args *a, const char *name);
const pt_tensor *pt_arg_tensor(pt_args *a, const char *name);
sx pt_arg_size(pt_args *a, const char *name, int64_t if_none);
/* A dimension of `x` (of `extra` more than it has), counted from the front: in [0, rank), and 0 for
 * a tensor without dimensions. One that is out of range is undefined. */
bool pt_arg_dim(pt_args *a, const char *name, int64_t if_none, const pt_tensor *x, uint32_t *out);
bool pt_dim(sc *c, const rule_term *t, const pt_tensor *x, uint32_t extra, uint32_t *out);
/* One dimension, or a list of them, as they stand there; sizes. false: failed, or left out. Room:
 * RULE_MAX_RANK. */
bool pt_arg_dims(pt_args *a, const char *name, const pt_tensor *x, uint32_t *out, uint32_t *n);
bool pt_arg_sizes(pt_args *a, const char *name, sx *out, uint32_t *n);
/* A number for each of `n` dimensions, of a list of as many or of one for all; where it is left out
 * `if_none`. Returns: false where it is there, and not usable. */
bool pt_arg_each(pt_args *a, const char *name, uint32_t n, sx if_none, sx *out);
bool pt_arg_flag(pt_args *a, const char *name, bool if_none);
/* Whether it is this string. */
bool pt_arg_is(pt_args *a, const char *name, const char *text);
/* false: it is no dtype, or left out. */
bool pt_arg_dtype(pt_args *a, const char *name, rule_dtype *out);
/* A number that has to be there. */
sx pt_arg_scalar(pt_args *a, const char *name, char *kind);
/* A list of tensors, NULL for those that are none; or the results of one call. false: failed, or it
 * is no list. */
bool pt_arg_list(pt_args *a, const char *name, const pt_tensor *const **out, size_t *n);

#endif
