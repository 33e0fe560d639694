/* Private to validate/: a rule with open sizes and attributes, and instances of it where all are
 * numbers.
 *
 * Samples, counterexamples and tests all work on instances: rules whose shapes and attributes are
 * literal. Values are drawn so that the conditions hold; further demands of operators (sizes that
 * must agree, products that must match) are met by running both sides and keeping the try that got
 * further. Nothing here has to be complete: an instance that is not found is a sample that is not
 * taken. */
#ifndef VALIDATE_INSTANCE_INT_H
#define VALIDATE_INSTANCE_INT_H

#include "validate/exec/engine_int.h"

enum { VAL_MAX_NAMES = 96, VAL_MAX_LIST = 6, VAL_MAX_LEAD = 4 };

/* Operators of a rule whose instances are small: each result takes its room. */
enum { VAL_MANY = 64 };

/* A size, an attribute, or a dimension that the rule leaves unnamed. */
typedef struct val_name {
  const char *name;
  char kind; /* 's' size, 'i' integer, 'f' real, 'l' list of integers */
  char role; /* of an attribute: 'd' a dimension, 'e' a small positive number, 'p' positive, 0
                unknown */
  bool set, hidden; /* hidden: it stands for an unnamed dimension */
  int64_t i;
  double f;
  uint32_t n; /* of a list */
  int64_t list[VAL_MAX_LIST];
} val_name;

typedef struct val_problem {
  const rule *r;
  rule_schemas *schemas;
  iso_arena arena;
  uint32_t n_names, n_where;
  val_name name[VAL_MAX_NAMES];
  const rule_term **where; /* the conjuncts, and "size >= 1" of expressions among sizes */
  int64_t suggested[32];   /* integers of the rule: sizes to try */
  uint32_t n_suggested;
  uint32_t lead_rank[RULE_MAX_VARS]; /* of `...` and `_` shapes, as drawn */
  int64_t lead[RULE_MAX_VARS][VAL_MAX_LEAD];
  bool open;        /* something is open: else the rule is its own instance */
  bool many;        /* operators: variables have few elements, as each result takes its room */
  int64_t max_size; /* the largest size drawn; default 6 */
  unsigned turn;    /* of val_twist */
  bool few;         /* no size is large, even where the rule's literals suggest it */
  bool roomy;       /* draw larger ones: values that tell functions apart need places */
  bool twisted;     /* the instance has attributes from val_twist */
  uint32_t pinned;  /* 1 + the name that is `pin` where the conditions let it; 0: none */
  int64_t pin;
} val_problem;

/* Set the names and the open dimensions to a counterexample's. */
void val_problem_set(val_problem *p, const val_counterexample *w);
/* The open parts of `r`. Borrows both. Owns: val_problem_fini. Errors: ISO_UNSUPPORTED where it is
 * too large. */
ISO_MUST_USE iso_code val_problem_init(val_problem *p, const rule *r, rule_schemas *s,
                                       iso_error *err);
void val_problem_fini(val_problem *p);

typedef enum val_truth { VAL_FALSE, VAL_TRUE, VAL_OPEN } val_truth;
/* A condition at the values that are set. VAL_OPEN: a name in it is not set, or it divides by zero.
 */
val_truth val_condition_at(const val_problem *p, const rule_term *t);
/* Returns: false where it is no integer, or a name is not set. */
bool val_size_at(const val_problem *p, const rule_term *t, int64_t *out);
/* The same of a real attribute. Returns: false where it is not finite. */
bool val_real_at(const val_problem *p, const rule_term *t, double *out);
/* Whether exactly one name in `t` is not set: which. */
bool val_last_open(const val_problem *p, const rule_term *t, uint32_t *which);
/* Set that name so that `t` holds. Returns: false where no value was found. */
bool val_solve_last(val_problem *p, const rule_term *t, uint32_t which, iso_rng *rng);

/* Draw values for all names so that the conditions hold. Returns: false where none were found in
 * some hundred tries. */
bool val_draw_names(val_problem *p, iso_rng *rng);
/* Change the attributes to the next case where they matter (twist.c). Returns: false where nothing
 * was changed, or the conditions do not hold any more. */
bool val_twist(val_problem *p);
/* Whether all names are set, and the conditions hold. */
bool val_names_hold(const val_problem *p);
/* Draw one or two things anew; the rest stays where the conditions let it. */
bool val_vary_names(val_problem *p, iso_rng *rng);
/* The name that stands for dimension `d` of the variable, which the rule leaves unnamed. */
const val_name *val_hidden_of(const val_problem *p, const char *var, uint32_t d);
/* A size at which a literal of the rule begins to count: one element more than a window is long. */
typedef struct val_size_edge {
  uint32_t name;
  int64_t size;
} val_size_edge;
/* Sizes at and beyond the integers of the rule that chance does not draw, as far as the tensors of
 * both sides there fit in memory. Returns: in `n` how many there are. Errors: ISO_NOMEM. */
ISO_MUST_USE iso_code val_size_edges(val_engine *e, val_problem *p, iso_rng *rng,
                                     val_size_edge *out, size_t cap, size_t *n, iso_error *err);
/* An integer on one side alone that no size of a sample reaches, of a rule whose sizes are open. 0:
 * there is none. */
int64_t val_beyond_sizes(const val_problem *p);

/* Values from Z3. Returns: in `out` VAL_FALSE where the conditions have no solution, VAL_OPEN where
 * it does not know. */
ISO_MUST_USE iso_code val_ask_names(val_problem *p, uint64_t rlimit, val_truth *out,
                                    iso_error *err);

/* The rule at the values that are set, in `a`. Returns: ISO_UNSUPPORTED where a shape is not
 * positive or is too large. */
ISO_MUST_USE iso_code val_instantiate(const val_problem *p, iso_arena *a, rule *out,
                                      iso_error *err);

/* An instance that was sought. */
typedef struct val_found {
  rule r;
  bool found;     /* there is one */
  unsigned tries; /* how many were tried */
  char why[200];  /* else why the best try failed */
} val_found;
/* An instance on which both sides run, in `a`; its values stay set in `p`. */
ISO_MUST_USE iso_code val_find_instance(val_engine *e, val_problem *p, iso_rng *rng, iso_arena *a,
                                        val_found *out, iso_error *err);

#endif
