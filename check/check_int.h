/* Private to check/: a certificate in memory, and the facts known of its terms. */
#ifndef CHECK_CHECK_INT_H
#define CHECK_CHECK_INT_H

#include "check/check.h"
#include "egraph/base/rng.h"
#include "rules/masks.h"

enum { CHK_NONE = UINT32_MAX };
enum { CHK_LAYOUT_DEPTH = 64 };
enum { LEFT = 0, RIGHT = 1 };

/* Terms by number: the nodes of the left capture, those of the right, then the calls of the
 * certificate. A term's arguments have smaller numbers. */
typedef struct chk_term {
  const rule_term *call; /* RULE_VAR i is term i; NULL: a leaf */
  const cap_node *node;  /* captured; NULL: of the certificate */
  int side;
  uint32_t index; /* of the node */
  uint32_t depth;
} chk_term;

typedef enum chk_kind {
  CHK_LEAF,
  CHK_BOUND,
  CHK_VALUE,
  CHK_ROUNDING,
  CHK_RULE,
  CHK_SAME,
  CHK_KINDS
} chk_kind;

typedef struct chk_step {
  chk_kind kind;
  uint32_t a, b;
  uint32_t rule, first_var;     /* RULE: which, and where its terms are in `var` */
  uint32_t first_name, n_names; /* and the values of its sizes and attributes, in `name` */
} chk_step;

typedef struct chk_name {
  const char *name;
  const rule_term *value;
} chk_name;

typedef struct chk_output {
  const char *left, *right;
  uint32_t a, b;
} chk_output;

typedef struct chk_values {
  rule_tensor **v;
  size_t n;
} chk_values;

typedef struct chk_sizes chk_sizes;                     /* sizes/sizes.h */
typedef struct chk_masks chk_masks;                     /* masks.c */
enum { CHK_MASK_HALF, CHK_MASK_OTHER, CHK_MASK_KINDS }; /* float16's least number; other dtypes' */

/* The certificate as it was read; nothing of it changes afterwards. */
typedef struct chk_certificate {
  uint32_t *number; /* by its own numbers of terms: the term here */
  size_t n_numbers, cap_numbers;
  chk_step *step;
  size_t n_steps, cap_steps;
  uint32_t *var; /* of steps by rules: terms, in the order of the rule's variables */
  size_t n_vars, cap_vars;
  chk_name *name; /* of steps by rules: sizes and attributes */
  size_t n_names, cap_names;
  chk_output *output;
  size_t n_outputs, cap_outputs;
  uint32_t *fixed; /* leaves that are kept as captured */
  size_t n_fixed, cap_fixed;
  chk_sizes *sizes; /* the scope that is claimed; NULL: none */
  rule_status evidence;
  const char **digest[2], **file[2]; /* as the certificate has them */
  size_t n_files[2];
} chk_certificate;

/* Its rules, each shown again once, whatever the number of steps that use it. */
typedef struct chk_rules_shown {
  rule_set **rule; /* one rule each */
  bool *read;      /* by rule: used where float literals are read as the numbers they stand for */
  unsigned *rests_on; /* by rule: the means by which it was shown again */
  size_t n, cap;
} chk_rules_shown;

/* One set of captured inputs: the steps are taken anew on each, and nothing of another one holds.
 * All arrays are by term. */
typedef struct chk_set {
  size_t set;
  uint32_t *up;        /* equal so far */
  chk_values *konst;   /* by class: the value of a constant, in captured dtypes */
  chk_values *real;    /* in float64, where needed */
  rule_tensor **drawn; /* NULL, or other values of free leaves than the captured ones */
  rule_tensor **other; /* NULL, or other values of fixed inputs, by term */
  bool *unpinned;      /* a buffer or constant that is a floating parameter on the other side */
  bool *zeros;         /* a step joins its zeros with those of another sign; NULL: none does */
  double own, most; /* elements in results of the certificate's own calls, and the limit on them */
  bool as_captured; /* terms are run from each side's captured values */
} chk_set;

/* Questions for constants that ended without an answer. They are kept, for without that a question
 * takes time without bounds. */
typedef struct chk_questions {
  uint32_t *answered; /* by term: the question that it was no answer to */
  uint32_t *on;       /* by term: the leaf that it depends on */
  uint32_t n;
} chk_questions;

/* Masks that the certificate reads as minus infinity. */
typedef struct chk_masks_read {
  bool reads[CHK_MASK_KINDS];
  bool near;                /* numbers come near masks that rules read */
  chk_masks *found;         /* on this set; NULL: none are read */
  const rule_term **unread; /* by captured term: its call before masks were read; NULL: none are */
} chk_masks_read;

/* The grounds on which it held. */
typedef struct chk_means {
  bool rounded; /* constants were taken to be one but for rounding */
  chk_assumption *assumption;
  size_t n, cap;
} chk_means;

typedef struct chk_state {
  const cap_graph *graph[2];
  rule_schemas *schemas;
  const rule_oracle *oracle;
  const chk_options *o;
  chk_report *report;
  iso_arena *arena; /* the report's */
  chk_term *term;
  size_t n_terms, cap_terms;
  chk_certificate cert;
  chk_rules_shown rules;
  chk_set here;
  chk_questions asked;
  chk_masks_read mask;
  chk_means used;
  iso_error *err;
} chk_state;

/* Settle the outcome, unless it is settled. Returns ISO_OK, so that callers can end with it. */
iso_code chk_settle(chk_state *k, chk_outcome outcome, const char *fmt, ...) ISO_PRINTF(3, 4);
static inline bool chk_settled(const chk_state *k) { return k->report->outcome != CHK_HOLDS; }
/* Takes back what was settled on values that were put in to try something. */
static inline void chk_unsettle(chk_state *k) {
  k->report->outcome = CHK_HOLDS;
  k->report->reason[0] = 0;
}
iso_code chk_nomem(chk_state *k);
/* `text` NULL: there is no memory. */
iso_code chk_assume(chk_state *k, rule_assumption kind, const char *text);

/* The input sets on which steps must hold: of graphs that are not run, those too that were drawn by
 * what inputs look like. */
static inline size_t chk_n_sets(const chk_state *k) {
  const size_t l = k->graph[0]->n_sets, r = k->graph[1]->n_sets, n = l < r ? l : r;
  const size_t said = k->o->agreed ? k->o->agreed->n_said : 0;
  return said && said < n && !k->o->unrun ? said : n;
}

static inline uint32_t chk_root(chk_state *k, uint32_t i) {
  while (k->here.up[i] != i) i = k->here.up[i] = k->here.up[k->here.up[i]];
  return i;
}

static inline rule_tensor *chk_captured(const chk_state *k, uint32_t leaf, size_t set) {
  const chk_term *t = &k->term[leaf];
  return t->node->kind == CAP_INPUT
             ? k->graph[t->side]->input[set * k->graph[t->side]->n_nodes + t->index]
             : t->node->value;
}

/* A leaf that is a parameter of real or complex numbers. */
static inline bool chk_is_weight(const cap_node *n) {
  return n->kind == CAP_PARAMETER &&
         rule_dtype_is_inexact(n->value ? n->value->dtype : n->output[0].dtype);
}

/* ---- check.c ---- */
/* Arguments at the same place: equal by the steps so far. */
bool chk_same_argument(chk_state *k, const rule_term *a, const rule_term *b);
/* The operator leaves an order among equal elements open. */
bool chk_leaves_ties(const char *op);
/* The captures at hand are those that the certificate names, by content. */
iso_code chk_same_files(chk_state *k, int side);

/* ---- read.c ---- */
iso_code chk_read(chk_state *k, const char *path);

/* ---- masks.c ---- */
/* On this set: masks that the certificate reads vanish, or it is refused; terms and constants are
 * then as read. Behind chk_begin_values. */
iso_code chk_find_masks(chk_state *k);
void chk_masks_free(chk_state *k);
/* Whether a captured term has masks that are read in it; whether they are its own; whether an
 * output reads it. */
bool chk_masked(const chk_state *k, uint32_t t);
bool chk_mask_source(const chk_state *k, uint32_t t);
bool chk_is_live(const chk_state *k, uint32_t t);
/* Behind chk_run: numbers beside masks are far from them. */
iso_code chk_near_masks(chk_state *k);

/* ---- value.c ---- */
/* Constants and fixed inputs get their values on this set; nothing is equal yet. */
iso_code chk_begin_values(chk_state *k);
/* The value of a term that depends on constants only, in captured dtypes: one for its class.
 * Returns: in `out` NULL where it depends on something else (`on`: a leaf), or cannot be run
 * (settled). */
iso_code chk_constant(chk_state *k, uint32_t t, int depth, const chk_values **out, uint32_t *on);
/* The captured call that is the certificate's own call `t`, by the steps so far or on constants of
 * the same values; `t` if none. */
iso_code chk_captured_alike(chk_state *k, uint32_t t, uint32_t *out);
/* A leaf against a leaf or layout of leaves, on all input sets. Settles where they differ or are no
 * such terms. */
iso_code chk_same_leaves(chk_state *k, uint32_t a, uint32_t b, size_t step);
const char *chk_leaves_differ(const rule_tensor *a, const rule_tensor *b,
                              bool inputs); /* NULL, or how */
/* The value of a layout of leaves where `leaf` gives each leaf's. NULL in `out`: it is none
 * (settled). Owns: the caller unrefs. */
typedef iso_code (*chk_leaf_value)(chk_state *k, void *ctx, uint32_t leaf, rule_tensor **out);
iso_code chk_layout(chk_state *k, uint32_t t, size_t step, chk_leaf_value leaf, void *ctx,
                    rule_tensor **out);
/* A captured term has this value, whatever its call gives. */
iso_code chk_set_constant(chk_state *k, uint32_t term, rule_tensor *v);
iso_code chk_same_constants(chk_state *k, uint32_t a, uint32_t b, size_t step);
iso_code chk_bounded(chk_state *k, uint32_t a, uint32_t b, size_t step);
/* NULL if the two are one constant: equal, or tables of one dtype to 2 ulp; else why they are none.
 */
const char *chk_constants_differ(const rule_tensor *a, const rule_tensor *b);
/* Whether an operator moves, selects or makes elements and rounds nothing. */
bool chk_rounds_nothing(const char *op);
/* A term in the rule language over the captures' names, cut past `room` calls. Returns: NULL when
 * there is no memory. */
const char *chk_spelled(chk_state *k, uint32_t id, int *room);

/* ---- zeros.c ---- */
/* A step joins term `a`, which has value `x`, with one that has `y`, equal but for zeros' signs and
 * rounding: that is kept in mind. */
iso_code chk_zeros_joined(chk_state *k, uint32_t a, const rule_tensor *x, const rule_tensor *y);
/* Behind the steps of a set: refused where something tells such zeros apart. */
iso_code chk_zeros(chk_state *k);

/* ---- rounding/formula.c ---- */
enum { CHK_FORMULAS = 5 };
/* Put the numbers of a geometric progression in place as formula 1 to CHK_FORMULAS computes them in
 * float32; other tensors stay as they are. */
void chk_by_formula(unsigned formula, rule_tensor *t);

/* ---- rounding/rounding.c ---- */
/* Two constants that differ by no more than rounding, or a call and itself with literals of more
 * digits. */
iso_code chk_rounded(chk_state *k, uint32_t a, uint32_t b, size_t step);

/* Computes in float64, on this set, the terms that rules' variables stand for, and the outputs,
 * which must agree. */
iso_code chk_run(chk_state *k);
/* Runs both captures on the sets that were drawn by what inputs look like, on which no step has to
 * hold: outputs that differ there are refused, where no more is hidden than was captured. */
iso_code chk_run_looks(chk_state *k);
/* The outputs on this set. `need`: gets what they are computed from. Returns: in `done` whether
 * operators take the values, in `hides` whether a mask hides a row. */
iso_code chk_run_set(chk_state *k, bool *need, bool *done, bool *hides);
/* Refuses outputs that differ there, by more than any table is rounded. `where`: in words. */
iso_code chk_agree_clearly(chk_state *k, const bool *need, const char *where);
void chk_free_values(chk_state *k);

/* Evaluate a term in float64 on this set into k->here.real, from its arguments' values there; a
 * leaf by k->here.drawn, where that has it. */
iso_code chk_run_term(chk_state *k, uint32_t id);
/* Flag, by term, all that the flagged ones are computed from. */
void chk_mark_below(chk_state *k, bool *need);

/* ---- leaves.c ---- */
/* Elements of free leaves by number; those that the relations of leaves make one are in one class.
 */
typedef struct chk_elements {
  uint32_t *first; /* by leaf term: the leaf that is it by plain relations */
  int64_t *base;   /* by such a leaf: its first element's number, -1 where it has none */
  uint32_t *up;    /* by element; NULL where there are none, or too many (UINT32_MAX) */
  size_t n;
} chk_elements;

/* Whether the leaf is an input that is not fixed or a floating parameter, or is equal to such a
 * leaf of the other side. */
bool chk_leaf_is_free(chk_state *k, uint32_t leaf);
/* After the steps of a set. `most` 0: of those leaves that layouts speak of. INT64_MAX: of every
 * free leaf. Else of every free leaf of at most so many elements of which no layout speaks. Owns:
 * chk_elements_free, also after an error. */
iso_code chk_elements_new(chk_state *k, int64_t most, chk_elements *out);
/* The class of element `i` of a leaf; -1 where the leaf's have no numbers. */
int64_t chk_element(chk_elements *e, uint32_t leaf, int64_t i);
bool chk_has_elements(chk_elements *e, uint32_t leaf);
void chk_elements_free(chk_elements *e);
/* Before the steps: checks names, sides and kinds of the leaves that leaf steps relate. */
iso_code chk_relations(chk_state *k);
/* After the steps: no two elements of one leaf have become one. */
iso_code chk_free_elements(chk_state *k);
bool chk_namesakes(const chk_state *k, uint32_t a, uint32_t b);

/* ---- fixed.c ---- */
/* Whether a leaf is an input that may be kept: its captured values have a structure, or it is a
 * position that one side computes with and the other looks up. */
iso_code chk_may_be_fixed(chk_state *k, uint32_t leaf, bool *yes);
/* Runs both captures on other integers than those that are kept for what they look like by chance,
 * too: outputs that differ there are refused. */
iso_code chk_run_chance(chk_state *k);

/* ---- domain.c ---- */
/* Whether term `b` is an input `a` as something that cannot leave its domain, or those of the parts
 * that make it up: then these are assumed. */
iso_code chk_stays_inside(chk_state *k, uint32_t a, uint32_t b, bool *yes);
/* The inputs on which the captures are run, as assumptions. */
iso_code chk_agreed(chk_state *k);
bool chk_has_domain(const chk_state *k, uint32_t leaf);
/* Moves the values drawn for an input into its domain. Returns: false where they cannot be.
 * `number`: of the draw. */
bool chk_fit_drawn(const chk_state *k, uint32_t leaf, size_t number, rule_tensor *t);

/* ---- edges.c ---- */
typedef struct chk_edges chk_edges;
/* How elements of a leaf are drawn, in turn by the number of the draw: each anywhere, all alike,
 * one after the other, beside edges, in steps as large as edges. */
enum {
  CHK_EDGE_ANY,
  CHK_EDGE_ONE,
  CHK_EDGE_IN_TURN,
  CHK_EDGE_BESIDE,
  CHK_EDGE_RAMP,
  CHK_EDGE_KINDS
};
/* After chk_run: for each free leaf, numbers at which a needed term jumps or bends. Owns: in `out`,
 * to be freed after an error, too. */
iso_code chk_edges_new(chk_state *k, const bool *need, chk_edges **out);
void chk_edges_free(chk_edges *e);
bool chk_any_edges(const chk_edges *e);
bool chk_has_edges(chk_state *k, const chk_edges *e, uint32_t leaf);
/* Element `i` of a leaf that has edges: beside one, between two or past them. */
double chk_draw_edge(chk_state *k, const chk_edges *e, uint32_t leaf, size_t number, int64_t i,
                     iso_rng *rng);

/* ---- noise.c ---- */
bool chk_any_number(const rule_tensor *t, bool (*what)(double)); /* of a tensor of floats */
/* Whether term `id`, just run, made an infinity of finite numbers, other than at a pole (1/0, log
 * 0). */
bool chk_overflows(const chk_state *k, uint32_t id);
/* Whether it is a cast that makes integers of what is no number: which, is the machine's own
 * affair.
 */
bool chk_casts_no_number(const chk_state *k, uint32_t id);
/* Whether two outputs that differ by more than `tol` on this set do so by no more than rounding in
 * the operators moves them, or since numbers grow too large. Afterwards the needed terms have their
 * values again. */
iso_code chk_rounding_explains(chk_state *k, const bool *need, const chk_output *o, double tol,
                               bool *yes);

/* ---- ties.c ---- */
/* Whether two outputs that differ on this set do so, by more than `tol`, only in elements that
 * depend on which of equal numbers an operator takes first. Afterwards the needed terms have their
 * values again. */
iso_code chk_order_explains(chk_state *k, const bool *need, const chk_output *o, double tol,
                            bool *yes);

/* ---- redrawn.c ---- */
/* After all else: outputs agree on other inputs and parameters, too, and are NaN together. */
iso_code chk_redrawn(chk_state *k);
/* Whether an operator reads a row whose every element is masked. */
bool chk_hides_row(const chk_state *k);

/* ---- undefined.c ---- */
/* Whether some call of either capture may be NaN or infinite for some signs of the drawn
 * numbers. */
bool chk_may_be_undefined(const chk_state *k);
enum { CHK_POLES = 32 };
/* Numbers at which something may be undefined. */
typedef struct chk_poles {
  double value[CHK_POLES];
  size_t n;
  bool seen;  /* an operator of a capture sees a number that may be undefined */
  bool apart; /* an output may be undefined on one side only */
  bool told;  /* an operator of a capture tells whether a number that may be large has overflowed */
} chk_poles;
iso_code chk_poles_of(chk_state *k, chk_poles *p);
/* Rules that may see an undefined number count as tested there, and no more. Called after the
 * rules; and once more, with `last`, where nothing was found to differ: then a certificate that
 * claims more is refused. */
iso_code chk_weigh_undefined(chk_state *k, bool last);

/* ---- outputs.c ---- */
iso_code chk_outputs(chk_state *k);
iso_code chk_fixed_inputs(chk_state *k);
/* Whether ids past `high` read rows of zeros, or none, of some table that this input looks up. */
iso_code chk_covers_table(chk_state *k, uint32_t input, int64_t high, bool *covers);

/* ---- rules.c ---- */
/* Literally the rule's sides with its variables, sizes and attributes replaced, and its conditions
 * hold of these. */
iso_code chk_instance(chk_state *k, const chk_step *x, size_t step);
/* Checks, on this set, kinds and shapes of the terms that variables stand for. */
iso_code chk_variables(chk_state *k);
/* Whether a tensor of this kind and shape may stand for the variable of the step's rule. */
bool chk_variable_fits(const chk_state *k, const chk_step *x, const rule_variable *v,
                       rule_dtype dtype, const rule_shape *shape);
/* Each rule is shown again, and how is put into the report. */
iso_code chk_rules(chk_state *k);

#endif
