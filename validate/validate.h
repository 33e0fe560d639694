/* Deciding one candidate rule, and running operators.
 *
 * The engine opens the libtorch shim (a shared library beside the program, loaded on first need)
 * and the library of reference kernels. Rules are decided on a ladder: pre-check, refutation on
 * samples, proof by Z3, random tests. Equality is over the reals; samples are float64. See docs/
 * and the header of each file for sources.
 *
 * Example (tests/validate/example.c has it as a program):
 *
 *     double magnitude = 0;
 *     if (val_eval_magnitude(e, side, &x, VAL_FLOAT64, &y, &magnitude, &err)) goto done;
 *     val_diff d = val_compare(x, y, 1e-9, 64 * DBL_EPSILON * magnitude);
 *     printf("transposing twice %s\n", d.equal ? "changes nothing" : "changes something");
 */
#ifndef VALIDATE_VALIDATE_H
#define VALIDATE_VALIDATE_H

#include "egraph/base/rng.h"
#include "rules/rules.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct val_options {
  uint64_t seed;
  uint64_t other_samples; /* not 0: val_decide takes a rule for tested where it is so with a seed
                             that is larger by this, too */
  uint32_t n_samples;     /* random tests for a `tested` rule; default 24 */
  uint32_t least_samples; /* val_check: so many of every rule, of proved ones too; default 0: no
                             more than it takes */
  uint64_t z3_rlimit;     /* default 5 million */
  double rel_tol;         /* default 1e-9, per slice of the last dimension */
  const char *device;     /* "cpu" (default) or "cuda" */
  const char *const *ops; /* users' operator libraries */
  size_t n_ops;
  const char *helper; /* NULL, or the command of a process that runs operators that neither libtorch
                         nor a library has (helper.c) */
  /* Why to stop here (static), NULL to go on; may be NULL. Asked within proofs too, and from
   * another thread while Z3 runs: the work under way is given up within a fraction of a second, and
   * its rule is RULE_UNKNOWN with that reason. */
  const char *(*stop)(void *ctx);
  void *ctx;
  bool whole; /* proofs speak of integers that do not wrap, and say so (RULE_RESTS_ON_WHOLE) where
                 that is more than is true of 64 bits; default false */
  struct sc_scratch *scratch; /* an engine's own: memory that its proofs take in turn */
} val_options;
val_options val_options_default(void);

typedef struct val_engine val_engine;
/* Cheap: nothing is loaded yet. `schemas` is borrowed. Owns: val_free. */
ISO_MUST_USE iso_code val_new(const val_options *o, rule_schemas *schemas, val_engine **out,
                              iso_error *err);
void val_free(val_engine *e);
/* Version of libtorch for reports, e.g. "2.13.0"; loads it. Static. */
ISO_MUST_USE iso_code val_torch_version(val_engine *e, const char **out, iso_error *err);
/* Version of Z3, e.g. "4.8.12", into `out` of `n` bytes; loads it. "not found" where it cannot be.
 */
void val_z3_version(char *out, size_t n);
/* How the device failed (its memory ran out, its context is lost), NULL where it did not. From then
 * on each call fails with ISO_DEVICE, also where a sample or a search swallows that: no verdict
 * rests on a call after it. Borrowed until val_free. */
const char *val_lost(const val_engine *e);
/* The schema of an operator in PyTorch's notation, as libtorch (or a library it has loaded)
 * declares it. Returns: NULL in `out` where there is none. Owns: malloc'ed text. */
ISO_MUST_USE iso_code val_torch_schema(val_engine *e, const char *op, char **out, iso_error *err);

/* ---- running ---- */

enum {
  VAL_FLOAT64 = 1
}; /* flags: floating dtype arguments and results in float64; else as captured */

/* One operator call: `call` is a RULE_OP (not getitem) whose children are literals, lists and
 * variables; RULE_VAR i is bind[i]. Returns: in `out` (room for `cap`) its tensors, in `n_out` how
 * many (Owns: caller unrefs each). Errors: ISO_TORCH with the operator's first line;
 * ISO_UNSUPPORTED where nobody implements it; ISO_RANGE where there is no room. */
ISO_MUST_USE iso_code val_call(val_engine *e, const rule_term *call, rule_tensor *const *bind,
                               unsigned flags, rule_tensor **out, size_t cap, size_t *n_out,
                               iso_error *err);
/* A whole term (nested operators, getitem). Shared subterms (same pointer) run once. */
ISO_MUST_USE iso_code val_eval(val_engine *e, const rule_term *t, rule_tensor *const *bind,
                               unsigned flags, rule_tensor **out, iso_error *err);
/* The same, and in `magnitude` the largest absolute value below 1e30 among all intermediate
 * results. */
ISO_MUST_USE iso_code val_eval_magnitude(val_engine *e, const rule_term *t,
                                         rule_tensor *const *bind, unsigned flags,
                                         rule_tensor **out, double *magnitude, iso_error *err);

/* ---- comparing ---- */

typedef struct val_diff {
  bool equal;              /* within tolerance */
  double max_abs, max_rel; /* largest difference, and relative to its slice's largest |reference|;
                              to the tensor's, where floor_abs alone makes a slice equal */
  int64_t index;           /* row-major, of the largest relative difference; -1 if none */
  int64_t n_nan;           /* elements that are NaN on both sides (equal, but say nothing) */
} val_diff;
/* Compare flat (the shapes may differ in size-1 dimensions or wholly; the element counts must not):
 * per slice of `a`'s last dimension |a - b| <= rel_tol * max|a| of the slice, or <= floor_abs.
 * Infinities and values beyond 1e30 in magnitude must be in the same places with the same sign, NaN
 * in the same places; integers and bools are exact. */
val_diff val_compare(const rule_tensor *a, const rule_tensor *b, double rel_tol, double floor_abs);
/* Normwise in units in the last place of the coarser dtype: max|a - b| / (eps * max|a|). For `run`
 * against traces. */
double val_ulp_normwise(const rule_tensor *trace, const rule_tensor *got);

/* Fill a float tensor with draws of N(0, 1). */
void val_sample_normal(iso_rng *rng, rule_tensor *t, double mean, double deviation);

/* ---- deciding ---- */

/* Try to prove lhs = rhs for all values of the variables (sizes as the rule gives them: numbers, or
 * symbolic sizes). Never claims more than it shows; anything it does not model is RULE_UNKNOWN with
 * the reason. Deterministic unless stopped: size and work are bounded by counts. Of `o` it reads
 * z3_rlimit and stop. Returns: RULE_PROVED or RULE_UNKNOWN in out->status. */
ISO_MUST_USE iso_code val_prove(const rule *r, rule_schemas *schemas, const val_options *o,
                                rule_verdict *out, iso_error *err);

/* How a rule is made general. */
typedef struct val_generality {
  iso_arena *a; /* of its new parts */
  /* NULL, or a further demand on the proved rule. Returns: in `yes` whether it is met. */
  iso_code (*admits)(void *ctx, const rule *r, bool *yes, iso_error *err);
  void *ctx;
} val_generality;

/* A rule with literal sizes, made as general as its proof stays and as it is admitted: sizes, the
 * integers that go with them and float attributes become names, with conditions (a scale that is
 * 1/sqrt of a size). Returns: in `out` the rule (old parts are borrowed from `r`) and in `verdict`
 * RULE_PROVED with its scope. Where nothing could be made general `out` is `r`, and the verdict
 * that of val_prove. */
ISO_MUST_USE iso_code val_generalise(const rule *r, rule_schemas *schemas, const val_options *o,
                                     const val_generality *how, rule *out, rule_verdict *verdict,
                                     iso_error *err);

/* The whole ladder for a candidate; `example[i]`, where not NULL, is a captured value of variable
 * i. */
ISO_MUST_USE iso_code val_decide(val_engine *e, const rule *r, rule_tensor *const *example,
                                 rule_verdict *out, iso_error *err);
/* The same as a rule_oracle: `ctx` is the engine. */
rule_oracle val_oracle(val_engine *e);

/* ---- rules of a file ---- */

/* `r` at sizes and attributes that meet its conditions, as different from one another as can be,
 * and values of its variables on which both sides run. Equal seeds give equal instances. */
typedef struct val_concrete {
  rule r;             /* all sizes are numbers */
  rule_tensor **bind; /* room for r->n_vars, the caller's. Owns: caller unrefs each */
  bool found;         /* else there is none */
} val_concrete;
/* out->r lives in `a`. Errors: ISO_NOMEM. */
ISO_MUST_USE iso_code val_instance(val_engine *e, const rule *r, uint64_t seed, iso_arena *a,
                                   val_concrete *out, iso_error *err);

/* A counterexample: the rule at sizes and attributes that meet its conditions, and values on which
 * its sides differ. */
typedef struct val_counterexample {
  bool found;
  const rule *r;    /* all shapes and attributes are numbers */
  uint32_t n_names; /* sizes and attributes of the rule, as chosen */
  const char *const *name;
  const rule_term *const *value; /* INT, FLOAT or a LIST of INT */
  rule_tensor **bind;            /* r->n_vars values */
  rule_tensor *lhs, *rhs;        /* in float64 */
  char what;                     /* 's' shapes differ, 'd' dtypes, 'v' values */
  int64_t index;                 /* of the value that differs most, row-major; -1 */
  double max_abs, max_rel;       /* there; infinite for 's' and 'd' */
  iso_arena arena;               /* private */
} val_counterexample;

typedef struct val_finding {
  rule_verdict verdict;
  const char *float_class; /* "exact", "rounding", "unsafe"; NULL unless proved or tested. Static */
  val_counterexample
      counterexample; /* of a refuted rule: the smallest found, shapes first, then values */
} val_finding;

/* The ladder for a rule with open sizes, ranks and attributes, stricter than for candidates:
 * literals count as the doubles they are, and differences beyond rounding count however small.
 * Owns: val_finding_free, also after an error. */
ISO_MUST_USE iso_code val_check(val_engine *e, const rule *r, val_finding *out, iso_error *err);
/* Whether a proved rule holds for NaN and infinity, too: as far as samples at poles show, its sides
 * are undefined together, and none of its operators can tell. */
ISO_MUST_USE iso_code val_undefined_together(val_engine *e, const rule *r, bool *yes,
                                             iso_error *err);
void val_finding_free(val_finding *f);

/* The obligations of a proof for all sizes, as SMT-LIB: one text per case of the proof. To each, z3
 * answers `unsat` (the sides do not differ) and then `sat` (the assumptions have a model); to a
 * case that no sizes meet, `unsat` alone. It was asked before this returns. */
typedef struct val_obligations {
  size_t n; /* 0: there is none, see `reason` */
  char **text;
  char reason[200]; /* why it could not be expressed, or that z3 does not answer so */
} val_obligations;
/* Literals count as the doubles they are. `unchecked`: the obligations of a rule whether or not it
 * holds, not shown to z3, and in `reason` why it is not proved (for tests of z3's answers to false
 * ones). Owns: val_obligations_free. */
ISO_MUST_USE iso_code val_write_obligations(const rule *r, rule_schemas *schemas,
                                            const val_options *o, bool unchecked,
                                            val_obligations *out, iso_error *err);
void val_obligations_free(val_obligations *k);

#ifdef __cplusplus
}
#endif
#endif
