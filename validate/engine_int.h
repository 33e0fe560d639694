/* Private to validate/: what the ladder reads of the engine, and how it looks into an evaluation. */
#ifndef VALIDATE_ENGINE_INT_H
#define VALIDATE_ENGINE_INT_H

#include "validate/validate.h"

const val_options *val_engine_options(const val_engine *e);
rule_schemas *val_engine_schemas(val_engine *e);
/* The caller's reason to stop, or NULL. */
static inline const char *val_stopped(const val_options *o) { return o && o->stop ? o->stop(o->ctx) : NULL; }

/* The operators of a term in the order in which they ran, and which branches of their choices were taken (cover.c). */
enum { VAL_COVER = 96 };
typedef struct val_covered {
  char name[46]; /* the operator's, cut */
  uint8_t need, seen;
} val_covered;
typedef struct val_cover {
  val_covered op[VAL_COVER];
  size_t n; /* may exceed VAL_COVER; what lies behind is not looked at */
} val_cover;
/* `term` has made the `call` of `n` tensors, whose first result is `out`. */
void val_cover_note(val_cover *c, const rule_term *term, const rule_term *call, rule_tensor *const *bind, size_t n, const rule_tensor *out);
void val_cover_add(val_cover *all, const val_cover *one);
/* An operator of which one branch was never taken, or NULL. */
const char *val_cover_gap(const val_cover *c);

/* What an evaluation in float64 went through (probe.c). All bits zero: look only. */
typedef struct val_probe {
  iso_rng *noise;   /* in: NULL, or the operators are blurred: see val_probe_blur */
  int lean;         /* in: 1 or -1 where all noise goes up or down, 0 at random */
  double magnitude; /* out: largest absolute value below 1e30 among all intermediate results */
  bool undefined;   /* out: an operator made a NaN, or an infinity from finite arguments, or integers left their range */
  bool far;         /* out: an operator made a number beyond 1e30 from smaller ones: no mask, but a large result */
  bool unbounded;   /* in: integers are meant without end, so that where they may wrap nothing is defined */
  bool blur_all;    /* in, with `noise`: numbers beyond 1e30 move too, which stay otherwise: masks do */
  bool tied;        /* out, with `noise`: equal values decided a sort, a maximum's place or the like */
  size_t n_run;     /* out: operators that ran, also where the evaluation failed */
  val_cover *cover; /* in: NULL, or where to note the branches that were taken */
  int how;          /* private: of the call that runs now */
} val_probe;
ISO_MUST_USE iso_code val_eval_probe(val_engine *e, const rule_term *t, rule_tensor *const *bind, val_probe *probe,
                                     rule_tensor **out, iso_error *err);

/* Used by the engine around each call. `bind` has `n` borrowed tensors: blur replaces them by counted ones (blurred
 * where the operator rounds), unblur gives those back. `note` looks at the results, and blurs them. */
ISO_MUST_USE iso_code val_probe_blur(val_probe *p, const rule_term *call, rule_tensor **bind, size_t n, iso_error *err);
void val_probe_unblur(rule_tensor **bind, size_t n);
ISO_MUST_USE iso_code val_probe_note(val_probe *p, const rule_term *call, rule_tensor *const *bind, size_t n,
                                     rule_tensor **out, size_t n_out, iso_error *err);

#endif
