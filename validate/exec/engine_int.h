/* Private to validate/: the engine's facts for the ladder, and the probes that look into an
 * evaluation. */
#ifndef VALIDATE_ENGINE_INT_H
#define VALIDATE_ENGINE_INT_H

#include "validate/validate.h"

const val_options *val_engine_options(const val_engine *e);
rule_schemas *val_engine_schemas(val_engine *e);
/* The caller's reason to stop, or NULL. */
static inline const char *val_stopped(const val_options *o) {
  return o && o->stop ? o->stop(o->ctx) : NULL;
}

/* An operator's name without namespace and overload, in `buf`. */
const char *val_base_name(const char *op, char buf[64]);

/* The operands of an elementwise call: tensors that broadcast to the result's shape, or numbers. */
typedef struct val_operands {
  const rule_tensor *tensor[2]; /* NULL: a number, in `scalar` */
  double scalar[2];
  int64_t stride[2][RULE_MAX_RANK];
  rule_shape shape;
  int64_t numel;
  bool two; /* there is a second one */
} val_operands;
/* The operands of a flat call with the result `out`. Returns: false where it has other kinds of
 * operands. */
bool val_operands_of(const rule_term *call, rule_tensor *const *bind, size_t n,
                     const rule_tensor *out, val_operands *o);
/* The place in operand `k` of the element that result `i` takes from it, and that element. */
int64_t val_operand_place(const val_operands *o, int k, int64_t i);
double val_operand(const val_operands *o, int k, int64_t i);

/* Arithmetic that rounds correctly, or is known at one number. */
typedef enum val_step {
  VAL_NO_STEP,
  VAL_ADD,
  VAL_SUB,
  VAL_RSUB,
  VAL_MUL,
  VAL_DIV,
  VAL_SQRT,
  VAL_SQUARE,
  VAL_RECIPROCAL,
  VAL_RSQRT,
  VAL_AT_ZERO,
  VAL_AT_ONE
} val_step;
/* The operator of `call`. */
val_step val_step_of(const rule_term *call);
/* Whether its result on these doubles is the real number's, without rounding. */
bool val_step_exact(val_step step, double a, double b);

/* The operators of a term that choose or jump (choice_int.h), and which branches of their choices
 * samples took (cover.c). */
enum { VAL_COVER = 96, VAL_ROOTS = 16 };
typedef struct val_covered {
  char name[46];            /* the operator's, cut */
  uint16_t need, want;      /* branches that samples must show, and those looked for besides */
  uint16_t taken, seen;     /* branches that samples took, and those that moved the side's value */
  size_t at;                /* how many operators ran before it */
  uint64_t term;            /* a hash of the term: one that occurs on both sides makes one choice */
  const rule_term *where;   /* the term, while its instance lives */
  int64_t numel;            /* of its result */
  uint32_t n_met;           /* edges that were met on purpose, and something moved */
  uint32_t n_hidden;        /* edges whose effect rounding hid */
  uint32_t n_barren;        /* edges that were met on purpose, and nothing moved */
  bool orders;              /* it finds places by comparing numbers */
  uint32_t n_tied;          /* samples with equal ones where nothing moved */
  bool several;             /* and there was more than one along a line */
  double barren[VAL_ROOTS]; /* by how much the variable was changed for those */
} val_covered;
/* Results that depend on variables and came out as 0 in every element (zeros.c): a product of
 * conditions that never held together has shown nothing. By the number of operators that ran
 * before. */
enum { VAL_ZEROS = 512 };
typedef struct val_zeros {
  uint64_t term[VAL_ZEROS]; /* a hash; 0: it was nowhere so */
  const char *name[VAL_ZEROS];
  bool some[VAL_ZEROS]; /* a sample had a number other than 0 */
} val_zeros;
typedef struct val_cover {
  val_covered op[VAL_COVER];
  size_t n;
  bool full; /* there are more, which are not looked at */
  val_zeros zeros;
} val_cover;
/* A call that ran: flat, of `n` tensors, with its results. */
typedef struct val_ran {
  const rule_term *call;
  rule_tensor *const *bind;
  size_t n;
  rule_tensor **out;
  size_t n_out;
} val_ran;
/* `term` is the operator number `at` that ran, and has made the call `ran`, of whose results number
 * `shown` is the one that its choice shows in; `in`: where its operands can lie (range.h). */
struct val_range;
void val_cover_note(val_cover *c, size_t at, const rule_term *term, const val_ran *ran,
                    const struct val_range *in, size_t shown);
void val_cover_add(val_cover *all, const val_cover *one);
void val_zeros_add(val_zeros *all, const val_zeros *one);
/* An operator of `z` that was 0 on every sample and is not one of `other`, or NULL. */
const char *val_zeros_gap(const val_zeros *z, const val_zeros *other);
/* An operator of a rule's sides of which one branch was never taken, or which jumps and was never
 * seen where it does, or NULL. `observed`: or was, and nothing showed it. */
const char *val_cover_gap(const val_cover *left, const val_cover *right, bool observed);
/* Whether one side has an operator that jumps and that is not, on the same operands, one of the
 * other side's. */
bool val_cover_jumps(const val_cover *left, const val_cover *right);

/* Terms that lost an operand: a summand is less than the rounding of the sum, or a function is flat
 * there (absorb.c). */
enum { VAL_ABSORBED = 32 };
typedef struct val_absorbed {
  bool functions;              /* in: these alone, sums are known to be right */
  uint64_t term[VAL_ABSORBED]; /* hashes */
  size_t n;                    /* may exceed VAL_ABSORBED */
} val_absorbed;
void val_absorb_note(val_engine *e, val_absorbed *a, const rule_term *term, const rule_term *call,
                     rule_tensor *const *bind, size_t n, const rule_tensor *out);
/* Whether one side lost an operand that the other did not lose in the same term. */
bool val_absorbed_apart(const val_absorbed *left, const val_absorbed *right);
uint64_t val_term_hash(const rule_term *t, uint64_t seed);
/* A call whose result is made otherwise (observe.c). */
typedef struct val_slip {
  size_t at;    /* how many operators ran before it */
  uint16_t bit; /* the elements that do this; 0: that of `index` alone, a truth value */
  int64_t index;
} val_slip;
/* Change one of `n_out` results, the one that the choice shows in. Errors: ISO_NOMEM, and all of
 * them are let go. */
ISO_MUST_USE iso_code val_slip_apply(const val_slip *s, const rule_term *call,
                                     rule_tensor *const *bind, size_t n, rule_tensor **out,
                                     size_t n_out, iso_error *err);
/* Somebody who looks at one call of an evaluation. */
typedef struct val_tap {
  const rule_term *term;
  void (*look)(void *ctx, const rule_term *call, rule_tensor *const *bind, size_t n,
               const rule_tensor *out);
  void *ctx;
} val_tap;

/* Notes of an evaluation in float64 (probe.c). All bits zero: look only. */
typedef struct val_probe {
  iso_rng *noise;   /* in: NULL, or the operators are blurred: see val_probe_blur */
  int lean;         /* in: 1 or -1 where all noise goes up or down, 0 at random */
  double magnitude; /* out: largest absolute value below 1e30 among all intermediate results */
  bool undefined; /* out: an operator made a NaN, or an infinity from finite arguments, or integers
                     left their range */
  bool wraps;     /* out, where `unbounded`: it is undefined since integers may have wrapped */
  bool pole;      /* out: the first of these is of real numbers: 0/0, the root of -1, a row that is
                     masked wholly; nothing overflowed before */
  bool far; /* out: an operator made a number beyond 1e30 from smaller ones: no mask, but a large
               result */
  bool unbounded; /* in: integers are meant without end, so that where they may wrap nothing is
                     defined */
  bool
      blur_all; /* in, with `noise`: numbers beyond 1e30 move too, which stay otherwise: masks do */
  bool tied;    /* out, with `noise`: equal values decided a sort, whose manual does not say
                   how */
  bool even;    /* out, with `noise`: a place was found among values of which some were equal */
  const rule_term *other; /* in: NULL, or a term whose own choices among equal values are no ties
                             here: they are the same */
  int64_t largest;        /* out: elements of the largest intermediate result */
  int64_t all, most;      /* out: elements of all of them; in: how many these may be, 0: any */
  size_t n_run;           /* out: operators that ran, also where the evaluation failed */
  val_cover *cover;       /* in: NULL, or where to note the branches that were taken */
  uint64_t narrow_calls;  /* out: a hash of the calls of operators that compute in a narrower dtype,
                             with their operands; 0: none */
  val_absorbed *absorbed; /* in: NULL, or where to note operands that sums lost */
  const val_slip *slip;   /* in: NULL, or the branch to take otherwise */
  const val_tap *tap;     /* in: NULL, or who looks at one of the calls */
  int how;                /* private: of the call that runs now */
} val_probe;
/* Notes a call whose result is coarse (rule_tensor), with its operands. */
void val_narrow_note(val_probe *p, const rule_term *call, rule_tensor *const *bind,
                     rule_tensor *const *out, size_t n);
/* Whether some operator of the term is undefined at some numbers (1/0, log 0, the root of -1), or
 * has an infinity in it. Flags in `at` the variables below such an operator (`below`: the whole
 * term is). */
bool val_poles(const rule_term *t, bool below, bool *at);
ISO_MUST_USE iso_code val_eval_probe(val_engine *e, const rule_term *t, rule_tensor *const *bind,
                                     val_probe *probe, rule_tensor **out, iso_error *err);

/* Used by the engine around each call. `bind` has `n` borrowed tensors: blur replaces them by
 * counted ones (blurred where the operator rounds), unblur gives those back. `note` looks at the
 * results, and blurs them. */
ISO_MUST_USE iso_code val_probe_blur(val_probe *p, const rule_term *call, rule_tensor **bind,
                                     size_t n, iso_error *err);
void val_probe_unblur(rule_tensor **bind, size_t n);
ISO_MUST_USE iso_code val_probe_note(val_probe *p, const rule_term *call, rule_tensor *const *bind,
                                     size_t n, rule_tensor **out, size_t n_out, iso_error *err);

#endif
