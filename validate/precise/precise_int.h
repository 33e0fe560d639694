/* Private to validate/: terms evaluated in interval arithmetic of many digits (MPFR), for samples
 * whose float64 numbers show nothing.
 *
 * A number is an interval that holds the real number which the operators' definitions mean. So two
 * sides whose intervals are apart differ, even where float64 rounded the difference away, and a
 * difference that rounding made is none. Precision is raised until nothing that was added to
 * something else can have been lost in it: twice as many bits as lie between the largest and the
 * least number that was met. */
#ifndef VALIDATE_PRECISE_INT_H
#define VALIDATE_PRECISE_INT_H

#include "validate/exec/engine_int.h"

typedef enum val_precise_answer {
  VAL_PRECISE_SAME,  /* the sides agree, and nothing was lost on the way */
  VAL_PRECISE_APART, /* they differ */
  VAL_PRECISE_OPEN,  /* not settled: undefined, at a jump, or the numbers are too far apart */
  VAL_PRECISE_LACKS  /* an operator, a kind of numbers or a size that is not evaluated so */
} val_precise_answer;

typedef struct val_precise {
  val_precise_answer answer;
  int64_t index; /* APART: of the element that differs most */
  double abs, rel;
  bool by_literals; /* SAME: up to the digits that long decimals leave open */
  bool close;       /* for every answer: no element is off by 2^-36 of its row's largest one */
  bool jump; /* OPEN, LACKS: because numbers that are compared were not told apart by any digits */
  bool lost; /* OPEN, LACKS: nothing shows a difference, and numbers were met that lie further apart
                than the digits reach: a sum may have lost one */
} val_precise;

/* Both sides of `r`, whose shapes and attributes are literal, on `bind`. Errors: ISO_NOMEM. Cost:
 * bounded by a count of operations. */
ISO_MUST_USE iso_code val_precise_sides(val_engine *e, const rule *r, rule_tensor *const *bind,
                                        val_precise *out, iso_error *err);
/* The outputs of two programs, compared. Errors: ISO_NOMEM. Cost: the same bound. */
ISO_MUST_USE iso_code val_precise_programs(val_engine *e, const rule_program side[2],
                                           val_precise *out, iso_error *err);

/* The rest is between the files of this folder. */
#if __has_include(<mpfr.h>)
#define VAL_HAS_MPFR 1
#include <mpfr.h>

#include "validate/expr/rational.h"
#include "validate/expr/gmp_memory.h"

typedef struct vn { /* a number between lo and hi */
  __mpfr_struct lo, hi;
} vn;

/* The number that a literal of the rule stands for: the double; the decimal as it is printed;
 * anything that rounds to a decimal of many digits. */
typedef enum vp_reading { VP_DOUBLES, VP_DECIMALS, VP_WIDE } vp_reading;

typedef struct vp_tensor {
  rule_dtype dtype;
  rule_shape shape;
  int64_t n;
  vn *x;              /* of floats; of complex numbers two each */
  rule_tensor *plain; /* of integers and booleans */
} vp_tensor;

typedef struct vp_value {
  size_t n;
  const vp_tensor **out;
} vp_value;

enum { VP_TEMPS = 12 };

typedef struct vp {
  val_engine *e;
  gmp_memory *memory;
  const vp_value **var; /* of RULE_VAR i; NULL: it has none */
  size_t n_var;
  mpfr_prec_t prec;
  vp_reading reading;
  vn tmp[VP_TEMPS];
  bool any;       /* a number other than 0 was met: */
  long low, high; /* the least and the largest exponent */
  int64_t work;   /* operations so far, in additions of the least precision */
  bool open, lacks, no_memory;
  bool jump; /* open because of a comparison */
  iso_arena arena;
  struct vp_done *done; /* terms that were evaluated */
  rule_tensor **owned;
  size_t n_owned, cap_owned;
  unsigned depth;
} vp;

/* Whether to go on. `cost`: of the next step. */
bool vp_go(vp *v, int64_t cost);
void vp_at_jump(vp *v);                                          /* a comparison is open */
bool vp_stop(vp *v, bool *why);                                  /* false */
vp_tensor *vp_new(vp *v, rule_dtype d, const rule_shape *shape); /* NULL: stopped */
void *vp_take(vp *v, size_t n); /* zeros, for as long as the evaluation lasts. NULL: no memory */
/* A tensor of the program. NULL: stopped. */
const vp_tensor *vp_given(vp *v, rule_tensor *x);
/* The value of a term; NULL: stopped, or there is none. */
const vp_tensor *vp_tensor_of(vp *v, const rule_term *t);
const vp_value *vp_value_of(vp *v, const rule_term *t);
/* Makes the temporary numbers of a new evaluation. false: stopped. */
bool vp_start(vp *v);
void vp_end(vp *v);

enum { VP_LEAST_BITS = 192, VP_MOST_BITS = 4096, VP_MOST_WORK = 60000 };

/* ---- numbers (number.c); results may be operands ---- */

void vn_init(vp *v, vn *x, void *limbs);
size_t vn_limb_bytes(const vp *v); /* of one number */
void vn_set(vn *r, const vn *a);
void vn_int(vp *v, vn *r, int64_t i);
void vn_double(vp *v, vn *r, double d);  /* exactly */
void vn_literal(vp *v, vn *r, double d); /* as v->reading says */
bool vn_long_decimal(double d);

typedef void (*vn_unary)(vp *v, vn *r, const vn *a);
typedef void (*vn_binary)(vp *v, vn *r, const vn *a, const vn *b);

void vn_add(vp *v, vn *r, const vn *a, const vn *b);
void vn_sub(vp *v, vn *r, const vn *a, const vn *b);
void vn_mul(vp *v, vn *r, const vn *a, const vn *b);
void vn_div(vp *v, vn *r, const vn *a, const vn *b);
void vn_pow(vp *v, vn *r, const vn *a, const vn *b);
void vn_max(vp *v, vn *r, const vn *a, const vn *b);
void vn_min(vp *v, vn *r, const vn *a, const vn *b);
void vn_exp(vp *v, vn *r, const vn *a);
void vn_log(vp *v, vn *r, const vn *a);
void vn_sqrt(vp *v, vn *r, const vn *a);
void vn_tanh(vp *v, vn *r, const vn *a);
void vn_erf(vp *v, vn *r, const vn *a);
void vn_abs(vp *v, vn *r, const vn *a);
void vn_square(vp *v, vn *r, const vn *a);
void vn_recip(vp *v, vn *r, const vn *a);
/* -1 where a < b, 0 where they are one number, 1 where a > b, 2 where that is open. */
int vn_compare(const vn *a, const vn *b);
/* The interval function of an elementwise operator without attributes, by its bare name; NULL:
 * none. */
vn_unary vn_unary_find(const char *name, int *cost);
vn_binary vn_binary_find(const char *name, int *cost);

/* r = n / d * 2^e, and 2 / pi's root, which GELU has. */
void vn_rational(vp *v, vn *r, const pv_rationals *c, uint32_t q);
void vn_gelu_root(vp *v, vn *r);
void vn_hull(vn *r, const vn *a, const vn *b); /* both of them */

/* ---- operators (ops.c, complex.c, definition.c) ---- */

typedef struct vp_call {
  const rule_term *call; /* flat: RULE_VAR i is in[i] */
  const rule_schema *schema;
  const char *name; /* bare */
  const vp_tensor **in;
  size_t n;
  rule_tensor *const *got; /* libtorch's results: shapes and dtypes */
  size_t n_got;
} vp_call;

const rule_term *vp_arg(const vp_call *k, const char *name);
const vp_tensor *vp_arg_tensor(const vp_call *k, const char *name);
/* Result 0 of the call, NULL: there is no such operator here, or v has stopped. `known`: there is
 * one. */
const vp_tensor *vp_compute(vp *v, const vp_call *k, bool *known);
/* The same where numbers are complex. */
const vp_tensor *vp_compute_complex(vp *v, const vp_call *k, bool *known);
/* All results, of an operator that compares numbers and no more (order.c). */
bool vp_by_ranks(vp *v, const vp_call *k, const vp_tensor **out);
/* All results, of an operator that has nothing above, by the prover's definition of it. false: it
 * has none, or does not go as far; or v has stopped. */
bool vp_by_definition(vp *v, const vp_call *k, const vp_tensor **out);

/* Intervals, for functions of them (number.c). */
void vn_note(vp *v, const vn *r);
void vn_negate(vp *v, vn *r, const vn *a);
bool vn_is_point(const vn *a);
bool vn_is_zero(const vn *a);
#endif

#endif
