/* Proposing candidates and rules.
 *
 * Relations (relation.c): which tensors are layout expressions (slices, concatenations, transposes,
 * reshapes) of others, by value. Frontiers, candidates and the loop: see synth/compare.c. */
#ifndef SYNTH_SYNTH_H
#define SYNTH_SYNTH_H

#include "rules/assumption.h"
#include "rules/domain.h"
#include "rules/rules.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- relations by value ----
 * An index of source tensors by exact hashes of whole values, rows and columns. */
typedef struct synth_index synth_index;
/* `source` tensors are borrowed until synth_index_free. NULL entries are skipped. Names break ties
 * (may be NULL). */
ISO_MUST_USE iso_code synth_index_new(rule_tensor *const *source, const char *const *name, size_t n,
                                      rule_schemas *schemas, synth_index **out, iso_error *err);
void synth_index_free(synth_index *x);
/* Large tensors are read in at most so many threads; without this call, in one. Results do not
 * depend on the number of threads. */
void synth_index_threads(synth_index *x, unsigned threads);

typedef struct synth_relation {
  const rule_term *term; /* over RULE_VAR i = source[i]; evaluates to the target, shape included;
                            NULL: none found */
  bool tied;             /* another source would have done as well: values did not decide */
} synth_relation;
/* Express `target` (name may be NULL) by the sources, exactly (bit patterns), simplest first: the
 * source itself; a transpose of it; a reshape; a slice along one dimension; a concatenation along
 * one dimension of sources, slices of them, or either transposed; a reshape of a permutation of a
 * reshape. Only aten::t/transpose.int/permute/reshape/unsqueeze/slice.Tensor/cat terms are
 * produced. The term lives in `arena`. Ties are broken by `name`, then by order. A target of which
 * some elements occur in no source has no relation. */
ISO_MUST_USE iso_code synth_relate(synth_index *x, const rule_tensor *target, const char *name,
                                   iso_arena *arena, synth_relation *out, iso_error *err);

/* ---- comparing two graphs ----
 * The pipeline of architecture.md, section 2: leaves related, constants related, values on several
 * draws, candidates, shared frontiers, rules, merges in one e-graph, verdict, divergences. */

typedef enum synth_kind {
  SYNTH_INPUT,
  SYNTH_PARAMETER,
  SYNTH_BUFFER,
  SYNTH_CONSTANT,
  SYNTH_OP
} synth_kind;

typedef struct synth_node {
  const char *id, *name; /* name: of a leaf, else NULL */
  const char *op, *scope, *source;
  synth_kind kind;
  const rule_term *call; /* RULE_VAR i is node i of the same graph; NULL for leaves */
  bool reordered;        /* its elements do not lie row by row: of a leaf so said, else by a memory
                            format that is asked for */
  size_t n_outputs;
  rule_shape shape; /* of output 0 */
  rule_dtype dtype;
  rule_tensor *const
      *value; /* leaves: per input set (parameters: one entry, the same for all sets); borrowed */
  const rule_domain *domain; /* inputs: the values that they may have; NULL: all. The same for
                                inputs that are one */
  bool kept;      /* inputs: the input sets alone have other values, by what this one hangs on */
  bool by_chance; /* and so few numbers may do so by chance */
  /* In graphs with symbols, as capture/capture.h has them: the sizes of output 0, and the call
   * with sizes for numbers; NULL: not known. */
  const rule_term *const *dim;
  const rule_term *sized;
} synth_node;

/* A size that the program does not fix. */
typedef struct synth_symbol {
  const char *name;
  int64_t min, max; /* max: INT64_MAX where nothing bounds it */
} synth_symbol;

typedef struct synth_output {
  const char *name;
  uint32_t node;
  const char *relation; /* the relation that a user gave, in words: for the report; NULL: none */
} synth_output;

/* A user's relation of a leaf of the left graph to leaves of the right one, in place of one found
 * by values and names. A leaf may have several. */
typedef struct synth_given {
  uint32_t left;
  const rule_term *term;   /* RULE_VAR i is right node i; NULL: it is related to nothing */
  const rule_term *equals; /* in place of a left leaf: this of right leaves is equal to `term` */
  bool forbid;             /* `term` is one right leaf, and the relation may not be made of it */
  const char *where;       /* file and line, for errors */
} synth_given;

/* How two graphs that are alike but for their sizes and layers had a leaf: it is this of the other
 * side's leaves. Names are those of the graphs that this was found in. */
typedef struct synth_hint {
  bool right; /* the leaf's side */
  const char *leaf;
  const rule_term *term; /* RULE_VAR i: leaf name[i] of the other side */
  const char *const *name;
  size_t n_names;
} synth_hint;

/* An assumption of the caller's. */
typedef struct synth_note {
  rule_assumption kind;
  const char *text;
  int64_t left, right; /* nodes that it is about; -1: none */
} synth_note;

typedef struct synth_graph {
  const char *path;
  size_t n_nodes;
  const synth_node *node;
  size_t n_outputs;
  const synth_output *output;
  size_t n_sets;     /* input sets */
  size_t n_captured; /* of these: later ones were drawn by the caller; 0: all were captured */
  size_t n_said;     /* later ones by the looks of inputs, of which nothing is said; 0: none */
  size_t n_sure;     /* a difference on those from here on may be none: `unsure` says why */
  const char *unsure;
  size_t n_symbols;
  const synth_symbol *symbol;
  bool guarded; /* not all sizes within the symbols' ranges are the program's */
} synth_graph;

/* Parts that can be switched off, to measure each; the verdict must not change. */
enum {
  SYNTH_SIGNATURE =
      16, /* of several candidates, those that depend on the same leaves are tried first */
  SYNTH_FINGERPRINT = 1, /* only tensors that agree in a few moments of their values are compared */
  SYNTH_REACHABLE = 2,   /* frontiers are cut at classes that both sides depend on */
  SYNTH_LAZY = 4,        /* finer frontiers are made when a coarser one was refuted */
  SYNTH_REUSE = 8,       /* known rules are tried first, and decided once */
  SYNTH_SATURATE = 32    /* rules are saturated where nothing else joins the outputs. Without it a
                            verdict may be undecided that is equivalent with it */
};

/* Where graphs depart from each other whose outputs differ. The code is in localise/
 * (localise/localise.h), and no verdict needs it. */
typedef struct synth_localiser synth_localiser;

typedef struct synth_options {
  bool scope; /* where graphs have symbols, and they are equivalent: for which sizes. Requires:
                 `certificate` */
  bool certificate; /* make a certificate; it is in the result where the verdict is SYNTH_EQUIVALENT
                     */
  uint64_t seed;
  uint32_t n_redrawn;         /* draws with fresh parameters; default 2 */
  double rel_tol;             /* default 1e-9 */
  size_t max_pattern;         /* operators in one side of a rule; default 120 */
  size_t max_tries;           /* frontiers tried for a candidate; default 32 */
  size_t saturate_iterations; /* of saturation (synth/saturate/), default 12 */
  size_t saturate_nodes;      /* e-nodes that it may make at a time, default 20000 */
  double deadline;            /* seconds from now; 0: none */
  unsigned threads; /* for large tensors, at most; default 1. Results do not depend on it */
  unsigned disable; /* of SYNTH_FINGERPRINT ... */
  const char *(*stop)(void *ctx); /* asked between steps: why to stop here (static), NULL to go on;
                                     then UNDECIDED. May be NULL */
  bool require_proved;
  const synth_given *given;
  size_t n_given; /* held against the captured values first: ISO_USAGE where one is wrong */
  const synth_hint *hint;
  size_t n_hints; /* of synth_compare_unrun: leaves whose names differ from these in numbers alone
                     are related alike */
  const char *const *noted;
  size_t n_noted; /* assumptions of kind definition that the caller makes */
  const synth_note *said;
  size_t n_said;     /* and others */
  bool keep_witness; /* keep the leaves' values that show a difference, and the first divergence's
                        regions */
  bool shrink;       /* with keep_witness: make these inputs small first */
  void (*progress)(void *ctx, const char *stage, size_t done, size_t total); /* may be NULL */
  void (*idle)(
      void *ctx); /* the leaves' captured values will not be read for a while; may be NULL */
  void (*trace)(void *ctx, const char *line); /* each merge; may be NULL */
  void *ctx;
  const synth_localiser *localiser; /* NULL: only the verdict is given, and no place */
} synth_options;
synth_options synth_options_default(void);

typedef enum synth_verdict { SYNTH_EQUIVALENT, SYNTH_DIFFERENT, SYNTH_UNDECIDED } synth_verdict;

typedef struct synth_assumption {
  rule_assumption kind;
  const char *what; /* of a definition: the operator whose kernel is meant, or NULL */
  const char *text;
  const char *left, *right; /* one id each, or NULL */
  const char *relation;     /* or NULL */
} synth_assumption;

typedef struct synth_rule_use {
  const rule *what;
  rule_verdict verdict;
  size_t uses;
  bool loaded;              /* came with the rules given */
  bool needed;              /* the explanation of the outputs' equality uses it */
  const uint32_t *of_class; /* the classes (class_of of the result) in which it made two tensors
                               one; ascending */
  size_t n_of_class;
} synth_rule_use;

/* Where two tensors differ, for people to look at: both read as a matrix of all dimensions but the
 * last against the last, in cells of equal sizes (the last ones may be smaller). */
enum { SYNTH_PICTURE_ROWS = 48, SYNTH_PICTURE_COLUMNS = 64 };
typedef struct synth_picture {
  int64_t n_rows, n_columns;     /* of the matrix */
  int64_t row_step, column_step; /* elements to a cell */
  uint32_t rows, columns;        /* cells */
  const float
      *cell; /* row-major: the largest |left - right| inside; INFINITY: a number on one side only */
  int64_t n_differ;   /* elements that differ by more than 1e-9 of the largest finite |left| */
  double largest;     /* that largest finite |left| */
  int64_t index;      /* row-major, of the largest difference */
  double left, right; /* the values there */
} synth_picture;

typedef struct synth_divergence {
  int64_t left, right; /* node indices; -1 where a side has none */
  const uint32_t *left_region, *right_region;
  size_t n_left_region, n_right_region;
  double max_abs, max_rel; /* between the two nodes, or where the regions end if their shapes
                              differ; 0: not comparable */
  int64_t index;           /* row-major, of the largest; -1: none */
  rule_shape shape;        /* of the left tensor that index is in */
  const char *hint;        /* or NULL */
  int64_t at[2];           /* the nodes whose tensors were held against each other, -1: none were */
  const synth_picture *picture; /* of these; NULL where they are not comparable, or agree */
} synth_divergence;

/* The regions of a divergence on their own. Given the values of a few nodes, the operators of each
 * region compute the tensor where it ends; the two should be one, up to their shapes. */
typedef struct synth_cut {
  size_t n_nodes[2], n_given[2]; /* left, right */
  const uint32_t *node[2];       /* operators, in order */
  const uint32_t *given[2];      /* the nodes that they read and that are not among them */
  rule_tensor **value[2];        /* their values on the witness, in float64 where floating */
  const rule_term *const *same;  /* by right given: its value as a term over the left ones (RULE_VAR
                                    i: given i), NULL: none */
  uint32_t end[2];
  bool constants; /* tables are computed inside: rounding of stored ones shows (1e-7) */
  int fails; /* the side (0, 1) whose one operator cannot be run, the other then has none; -1: both
                run */
  size_t divergence; /* which one it is of */
} synth_cut;

/* Coverage: the limits of the evidence. */
typedef struct synth_branch {
  bool right;
  uint32_t node;
  const char *missing; /* the side of it that no draw took */
} synth_branch;
typedef struct synth_coverage {
  size_t n_reached[2], n_unreached[2]; /* nodes that the outputs depend on, and those that they do
                                          not: left, right */
  const uint32_t *unreached[2];
  int64_t not_run[2];           /* the operator that failed on this side only, -1: none */
  size_t n_captured, n_redrawn; /* draws: captured inputs; fresh inputs and parameters */
  size_t n_searched;            /* and those made in search of a difference */
  size_t n_points;              /* operators that branch on values */
  size_t n_branches;
  const synth_branch *branch;
} synth_coverage;

typedef struct synth_pair {
  const char *left, *right; /* output names */
  const char *relation;     /* "equal", "unsqueeze(right, 0)", ... */
  bool equivalent;
} synth_pair;

/* The justification of a node's equality with the other side. */
typedef enum synth_standing {
  SYNTH_UNREAD, /* no output reads it */
  SYNTH_ALONE,  /* nothing of the other side was found equal, and something that reads it is alone
                   too (or it is an output) */
  SYNTH_SAME,   /* the other side has the same operator on equal arguments, or one that differs by a
                   layout of the comparison's */
  SYNTH_BY_RULE, /* a rule joined its class */
  SYNTH_WITHIN,  /* it has no counterpart of its own; whatever reads it has one, or lies within such
                    parts itself */
  SYNTH_ASSUMED  /* a leaf or a constant, related by value */
} synth_standing;

struct synth_leaf_ref {
  bool right;
  uint32_t node;
};

/* The chain from the left outputs to the right ones, for an independent check (docs/certificate.md
 * has the claim of each step). Terms are numbered; a term is a node of a captured graph, or a call
 * whose RULE_VAR i is term i, i smaller. */
typedef struct synth_cert_term {
  const rule_term *call; /* NULL: captured node `node` of the left (right) graph */
  bool right;
  uint32_t node;
} synth_cert_term;

typedef enum synth_cert_kind {
  SYNTH_CERT_LEAF,     /* two leaves, or a leaf and a layout of leaves, have one value */
  SYNTH_CERT_BOUND,    /* a leaf of indices equals itself clamped */
  SYNTH_CERT_VALUE,    /* two constants have one value */
  SYNTH_CERT_ROUNDING, /* two constants that rounding tells apart, or a call and itself with a
                          literal of more digits */
  SYNTH_CERT_RULE,     /* the two sides of `applied`, its variables replaced by the terms `var` */
  SYNTH_CERT_SAME      /* congruence */
} synth_cert_kind;

typedef struct synth_cert_step {
  synth_cert_kind kind;
  uint32_t a, b;
  const rule *applied; /* borrowed from the result */
  const uint32_t *var; /* applied->n_vars terms; UINT32_MAX: the rule does not use it */
  uint32_t n_names; /* sizes and attributes that the rule leaves open, and their values: INT, FLOAT
                       or a LIST of INT */
  const char *const *name;
  const rule_term *const *value;
} synth_cert_step;

/* A step of the chain for all sizes: step `step` of the certificate with symbols in place of
 * numbers. */
typedef enum synth_sized_how {
  SYNTH_SIZED_PLAIN,  /* as its kind says */
  SYNTH_SIZED_PROVED, /* proved, over the rule's variables and leaves */
  SYNTH_SIZED_SHARED, /* the same, over all that both sides are made of, too */
  SYNTH_SIZED_TABLE   /* constants by value at the largest size, each proved to be the first places
                         of that at every other */
} synth_sized_how;

typedef struct synth_sized_step {
  uint32_t step;
  synth_sized_how how;
  uint32_t n_names; /* of a rule: sizes and attributes with their values, INT, NAME, EXPR or as in
                       the step */
  const char *const *name;
  const rule_term *const *value;
} synth_sized_step;

typedef struct synth_sized_call { /* a call of the certificate's own with sizes over the left's
                                     symbols; its RULE_VAR are the certificate's terms */
  uint32_t term;
  const rule_term *call;
} synth_sized_call;

typedef struct synth_certificate {
  size_t n_terms;
  const synth_cert_term *term;
  size_t n_steps;
  const synth_cert_step *step;
  size_t n_outputs;
  const uint32_t (*output)[2]; /* terms, in the order of the result's pairs; the right one in the
                                  left one's shape */
  size_t n_fixed;
  const struct synth_leaf_ref *fixed;  /* inputs that keep their captured values */
  size_t n_sized_steps, n_sized_calls; /* where synth_scope.all is set */
  const synth_sized_step *sized_step;
  const synth_sized_call *sized_call;
  bool masks_read[2];  /* masks of float16, of other dtypes: read as minus infinity */
  const char *missing; /* why there is none, NULL where there is; static or as long as the result */
} synth_certificate;

/* For which sizes the captures are equivalent. */
typedef struct synth_scope {
  bool all; /* all that both captures admit, and not the captured ones alone */
  size_t n_symbols;
  const synth_symbol *symbol; /* the left's, in the ranges that both admit */
  size_t n_held;
  const char *const *held; /* reasons why it is no wider, some lines */
} synth_scope;

typedef struct synth_changed { /* an element of an input on the witness */
  bool right;
  uint32_t node;
  int64_t index;    /* row-major */
  rule_shape shape; /* of the input */
  double value, captured;
} synth_changed;

typedef struct synth_result {
  synth_verdict verdict;
  rule_status evidence; /* the weakest rule on the chain; PROVED where no rule was needed */
  const char *reason;   /* UNDECIDED: which gap; else NULL */
  size_t n_assumptions;
  const synth_assumption *assumption;
  size_t n_rules;
  const synth_rule_use *rule;
  size_t n_divergences;
  const synth_divergence *divergence;
  size_t n_pairs;
  const synth_pair *pair;
  size_t n_classes;
  const uint32_t
      *class_of[2]; /* which nodes of the left and the right graph were found equal, up to layout:
                       one number, below n_classes; UINT32_MAX: no output reads it */
  const uint8_t *standing_of[2]; /* synth_standing, by node */
  size_t n_by_name;              /* leaves that are one by name alone: of graphs that are not run */
  size_t n_unexplained;
  const struct synth_leaf_ref *unexplained;
  /* the witness of DIFFERENT */
  bool redrawn;            /* on other inputs, or parameters, than those captured */
  bool redrawn_parameters; /* on other parameters, perhaps on other inputs too */
  /* The elements of inputs that are not as captured, and have to be: the first of them, and how
   * many they are. */
  size_t n_changed, n_changed_all;
  const struct synth_changed *changed;
  const char *witness_output;
  double witness_abs, witness_rel;
  uint64_t witness_seed;
  rule_tensor **witness_leaf[2]; /* with keep_witness, by node of left and right: live leaves'
                                    values there, else NULL; NULL where not kept */
  size_t n_leaf[2];
  synth_cut *cut; /* of the first divergence; NULL where not kept or not possible */
  synth_coverage coverage;
  double largest_merged; /* largest relative difference among merged values */
  double seconds_execute, seconds_relate, seconds_synthesise, seconds_validate;
  const char
      *slowest_rule; /* which rule's decision used the processor most; NULL: none was decided */
  double slowest_rule_cpu_s;
  size_t n_candidates, n_merges, n_synthesised, n_refuted, n_reused;
  size_t n_saturated, n_grown; /* pairs that saturation joined; e-nodes that it made */
  size_t n_steps;
  const char *const
      *step; /* why the outputs are equal, a line each; steps that one relies on come after it */
  synth_scope scope;              /* with `scope` */
  synth_certificate *certificate; /* NULL unless asked for, and EQUIVALENT */
  iso_arena arena, terms;         /* private */
  rule_set *rules; /* the rules that were validated; borrowed until synth_result_free */
} synth_result;

/* Compare. `known` may be NULL: rules to try first (validated again through the oracle before use).
 * Owns: synth_result_free. Errors: ISO_USAGE where the outputs cannot be paired; ISO_TORCH,
 * ISO_UNSUPPORTED with file and node where an operator cannot run; ISO_NOMEM; ISO_INTERNAL where a
 * check of ours failed. */
ISO_MUST_USE iso_code synth_compare(const synth_graph *left, const synth_graph *right,
                                    const rule_set *known, const rule_oracle *oracle,
                                    rule_schemas *schemas, const synth_options *o,
                                    synth_result **out, iso_error *err);
void synth_result_free(synth_result *r);

/* ---- how outputs are put together ---- A relation is clean where it rearranges right outputs or
 * adds up the ranks' tensors: made of dist::all_reduce of a list, cat, slice, permute, reshape and
 * sizes 1 only. */

typedef struct synth_found {
  uint32_t left;         /* output */
  const rule_term *term; /* RULE_VAR i is output i of the right graph; NULL: nothing was found */
  bool holds;            /* by value on every draw; else only shapes suggest it */
  bool clean;            /* false: `scale` times the term holds */
  double scale;
  const char *surprise; /* an oddity of it, a line; NULL: none */
  /* Where nothing was found: an element of the output that no right output holds, and no sum of
   * some; -1: none was looked for, or there is none. */
  int64_t apart;
  bool redrawn;          /* on drawn inputs and parameters */
  double value, nearest; /* that element, and the nearest one on the right */
} synth_found;

typedef struct synth_refinement {
  size_t n;
  const synth_found *found; /* by left output, the simplest first; replicas one after another */
  bool *used;               /* by right output: some relation has it */
  const char *stopped;      /* the limit that was reached before anything was looked for, or NULL */
  iso_arena arena;
} synth_refinement;

/* Find the right outputs that each left output with `open` set is made of, as the values of both
 * graphs on captured and drawn inputs suggest. `hoped`: the relation that a user expects, tried
 * first. The result is a proposal, for synth_compare to justify. Where the graphs cannot be run
 * nothing is found. Owns: synth_refinement_free. */
ISO_MUST_USE iso_code synth_infer(const synth_graph *left, const synth_graph *right,
                                  const rule_oracle *oracle, rule_schemas *schemas,
                                  const synth_options *o, const bool *open,
                                  const synth_found *hoped, size_t n_hoped, synth_refinement **out,
                                  iso_error *err);
void synth_refinement_free(synth_refinement *r);
/* The rank in an output's name: "NAME_rank<r>", "NAME.rank<r>", "rank<r>.NAME". Returns: the length
 * of NAME, where it begins, and the rank; of another name all of it, and rank 0. */
size_t synth_stem(const char *name, const char **stem, unsigned long *rank);
bool synth_same_stem(const char *a, const char *b);

/* ---- parameters that were computed when a model was loaded (folds/) ---- */

/* A parameter of one side as computed from tensors of the other, up to rounding. */
typedef struct synth_fold {
  bool right; /* the parameter is of the right graph */
  uint32_t leaf;
  /* Over the other graph's leaves; a node of it that is an operator is written as a call "node".
   * Calls have the arguments that a line of a relations file has. */
  const rule_term *term;
} synth_fold;
typedef struct synth_folds {
  const synth_fold *of;
  size_t n;
} synth_folds;
/* Proposes computations from which parameters of `open` may have come. `value`: of both sides, by
 * node, in float64, for leaves that are not inputs and nodes computed from such alone; NULL: none.
 * The caller must check each proposal against the values. They live in `a`. */
ISO_MUST_USE iso_code synth_find_folds(const synth_graph *const graph[2],
                                       rule_tensor *const *const value[2],
                                       const struct synth_leaf_ref *open, size_t n_open,
                                       iso_arena *a, synth_folds *out, iso_error *err);
/* Whether a tensor has many different numbers: it is not zeros, ones, an identity, a mask. */
bool synth_generic(const rule_tensor *t);

/* ---- graphs that are not run ---- */

/* As synth_compare, but nothing is run beside constants, and `known` has all rules there are: those
 * that are proved for all sizes are applied wherever they match. Parameters need no values: those
 * of one name, shape and dtype are taken for one, which is an assumption. Inputs have values, and
 * were made the same on both sides. Returns: a result that is SYNTH_EQUIVALENT or
 * SYNTH_UNDECIDED. */
ISO_MUST_USE iso_code synth_compare_unrun(const synth_graph *left, const synth_graph *right,
                                          const rule_set *known, const rule_oracle *oracle,
                                          rule_schemas *schemas, const synth_options *o,
                                          synth_result **out, iso_error *err);

/* Relations of parameters that a comparison found, for one of graphs alike. Requires: `r` has a
 * certificate, else there are none. They live in `a`. */
ISO_MUST_USE iso_code synth_hints(const synth_graph *left, const synth_graph *right,
                                  const synth_result *r, iso_arena *a, const synth_hint **out,
                                  size_t *n, iso_error *err);

/* ---- rules that follow from others ---- */

typedef struct synth_follow_limits {
  size_t iterations, nodes; /* rounds of matching, e-nodes: 5 and 2000 by default */
  bool given; /* terms of the two sides only, none is made: as synth_compare uses rules */
} synth_follow_limits;
synth_follow_limits synth_follow_limits_default(void);

/* The rules from which another may follow. */
typedef struct synth_following {
  const rule_set *known;
  const bool *use; /* by rule: those that grow the e-graph */
  bool *used;      /* by rule: an equality rests on it; set where true, never cleared */
  const rule_oracle *oracle;
  rule_schemas *schemas;
  synth_follow_limits limits;
} synth_following;
/* Whether the two sides of `r`, whose sizes and attributes are numbers, meet in an e-graph that the
 * rules in use grow, both ways, on the values `bind` of its variables. A rule with a range of
 * values (`in`) must not be used. Says nothing about other sizes. Errors: ISO_INTERNAL where a rule
 * would join two values that differ: it does not hold; ISO_NOMEM. */
ISO_MUST_USE iso_code synth_follows(const rule *r, rule_tensor *const *bind,
                                    const synth_following *from, bool *follows, iso_error *err);

#ifdef __cplusplus
}
#endif
#endif
