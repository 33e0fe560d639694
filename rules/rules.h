/* The language of operators, rules and verdicts, which every later stage uses.
 *
 * Ideas and terms
 *   schema   an operator's argument names, types and defaults, by its dispatcher name
 *            ("aten::add.Tensor"), from a table in the tree, so that reading a graph needs no
 *            libtorch.
 *   term an operator applied to terms, literals and variables. Arguments are in schema order,
 *            complete, with the defaults filled in: two spellings of one call are one term. An
 *            operator with several results is projected by `getitem`. Terms are immutable trees
 *            (shared parts may be shared pointers) in somebody's arena.
 *   rule     lhs <=> rhs over declared variables, with conditions and evidence (docs/rules.md).
 *   verdict  the outcome of validating a rule: unknown < tested < proved, or refuted.
 *   oracle   how `synth` reaches validation without depending on it: two functions and a context.
 *
 * Example (tests/rules/example.c has it as a program):
 *
 *     const char *text = "(rule r (var x f _) (lhs (aten::relu x))"
 *                        " (rhs (aten::relu (aten::relu x))))";
 *     rule_set *set = NULL;
 *     iso_error err;
 *     if (rule_set_parse(text, SIZE_MAX, "example", &set, &err) == ISO_OK) {
 *       char *printed = rule_print(rule_set_at(set, 0));
 *       puts(printed);
 *       free(printed);
 *     }
 *     rule_set_free(set);
 */
#ifndef RULES_RULES_H
#define RULES_RULES_H

#include "egraph/base/arena.h"
#include "rules/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- schemas ---- */

typedef enum rule_arg_type {
  RULE_ARG_TENSOR,
  RULE_ARG_TENSORS, /* Tensor, Tensor[] (also of optionals) */
  RULE_ARG_INT,
  RULE_ARG_INTS,
  RULE_ARG_FLOAT,
  RULE_ARG_FLOATS,
  RULE_ARG_BOOL,
  RULE_ARG_BOOLS,
  RULE_ARG_SCALAR,
  RULE_ARG_SCALARS, /* int or float, kept as written */
  RULE_ARG_STRING,
  RULE_ARG_DTYPE,
  RULE_ARG_CONTEXT /* device, layout, memory_format, pin_memory, generator: accepted, and always
                      lowered to none */
} rule_arg_type;

typedef struct rule_term rule_term;

typedef struct rule_arg {
  const char *name;
  rule_arg_type type;
  bool optional; /* "?": none is allowed */
  bool kwarg_only;
  bool written;      /* the operator writes to it ("(a!)") */
  int32_t list_size; /* int[2] with one int given means [i, i]; 0 where it does not broadcast */
  const rule_term *deflt; /* NULL: must be given */
} rule_arg;

typedef struct rule_schema {
  const char *name; /* with the overload, "aten::add.Tensor"; the default overload has no dot */
  size_t n_args;
  const rule_arg *arg;
  size_t n_returns; /* its own; SIZE_MAX for a tensor list, whose length depends on the call */
  bool writes;      /* some argument is written to */
  bool random;      /* may draw random numbers (bernoulli, rand; dropout does with train=True):
                       rule_draws decides */
} rule_schema;

/* A table of schemas: the built-in ones (PyTorch's operators and the reference kernels), and those
 * that a program adds. */
typedef struct rule_schemas rule_schemas;
/* Owns: the caller frees. Parsed lazily: cheap to make. */
ISO_MUST_USE iso_code rule_schemas_new(rule_schemas **out, iso_error *err);
void rule_schemas_free(rule_schemas *s);
/* Add one schema in PyTorch's notation ("ns::name.overload(Tensor x, *, float eps=1e-5) ->
 * Tensor"). */
ISO_MUST_USE iso_code rule_schemas_add(rule_schemas *s, const char *text, iso_error *err);
/* Returns: NULL when there is none of that name. Borrowed until rule_schemas_free. `name` as in
 * captures. "getitem" is there too, as (Tensor self, int index). Of two schemas added under one
 * name the later counts. */
const rule_schema *rule_schemas_find(rule_schemas *s, const char *name);
/* Returns: whether a look-up since the last question found nothing for want of memory, and not for
 * want of an operator. */
bool rule_schemas_starved(rule_schemas *s);
/* Outputs in functional form: its own results, then the new value of each written argument in
 * schema order. Returns: SIZE_MAX where it is a list whose length depends on the call. */
size_t rule_schema_outputs(const rule_schema *s);
/* Whether the argument names a dimension, or several. */
bool rule_arg_is_dim(const rule_arg *arg);

/* ---- terms ---- */

typedef enum rule_kind {
  RULE_VAR,     /* u.i: index of a tensor variable (of a rule, or of a graph's nodes, as the context
                   says) */
  RULE_OP,      /* u.s: operator; children in schema order. "getitem": (term, INT) */
  RULE_LIST,    /* children: tensors, numbers */
  RULE_INT,     /* u.i */
  RULE_FLOAT,   /* u.f: any double, also infinities and nan */
  RULE_BOOLEAN, /* u.i: 0 or 1 */
  RULE_NONE,
  RULE_STRING, /* u.s */
  RULE_DTYPE,  /* u.i: a rule_dtype */
  RULE_NAME,   /* u.s: a size name or attribute variable */
  RULE_EXPR /* u.s: "+ - *" over sizes and attributes; in conditions also "= != < <= > >= / mod in
               divides and or not" */
} rule_kind;

struct rule_term {
  rule_kind kind;
  uint32_t n;
  const rule_term *const *child;
  union {
    int64_t i;
    double f;
    const char *s;
  } u;
};

/* Constructors: into `a`; strings and child arrays are copied, children are not. NULL when there is
 * no memory (or when a child is NULL, so that calls nest). */
const rule_term *rule_var(iso_arena *a, uint32_t index);
const rule_term *rule_op(iso_arena *a, const char *op, const rule_term *const *child, size_t n);
/* Places `from` to `to` of `t` along `d`. */
const rule_term *rule_slice(iso_arena *a, const rule_term *t, uint32_t d, int64_t from, int64_t to);
const rule_term *rule_list(iso_arena *a, const rule_term *const *child, size_t n);
const rule_term *rule_int(iso_arena *a, int64_t i);
const rule_term *rule_float(iso_arena *a, double f);
const rule_term *rule_bool(iso_arena *a, bool b);
const rule_term *rule_none(iso_arena *a);
const rule_term *rule_string(iso_arena *a, const char *s);
const rule_term *rule_dtype_term(iso_arena *a, rule_dtype d);
const rule_term *rule_name(iso_arena *a, const char *s);
const rule_term *rule_expr(iso_arena *a, const char *op, const rule_term *const *child, size_t n);
/* A call with the leading arguments given and the rest at their defaults.
 * Errors: ISO_USAGE where the operator is unknown or an argument without default is missing. */
ISO_MUST_USE iso_code rule_call(iso_arena *a, rule_schemas *s, const char *op,
                                const rule_term *const *arg, size_t n, const rule_term **out,
                                iso_error *err);
/* The one spelling of `v` as a value of argument `arg`, so that two spellings of one call are one
 * term: an int for a float becomes a float, a number for an int[2] the list of two, a dtype's bare
 * name the dtype; a value that only names the context (a device, a layout) becomes none. Errors:
 * ISO_USAGE where `v` cannot be that argument; ISO_NOMEM. */
ISO_MUST_USE iso_code rule_arg_value(iso_arena *a, const rule_arg *arg, const rule_term *v,
                                     const rule_term **out, iso_error *err);
/* Whether the call `t` (complete arguments) draws random numbers: a random operator, unless its
 * train or training argument is false or its probability 0 (dropout), or one whose dropout_p is not
 * 0. */
bool rule_draws(rule_schemas *s, const rule_term *t);
/* Whether the call, of a node of so many outputs, writes to an argument, so that it is no function
 * even where nothing reads its result: by its schema, its name, or an overload that is not known of
 * an operator that is. */
bool rule_writes(rule_schemas *s, const rule_term *t, size_t n_outputs);
/* The first node that writes running statistics, of which its schema says nothing (batch_norm in
 * training), where something else may read these: then the order of nodes matters. SIZE_MAX: there
 * is none. `call`: of each of `n` nodes (RULE_VAR i: node i), NULL of leaves. */
size_t rule_shared_write(const rule_term *const *call, size_t n, const uint32_t *output,
                         size_t n_outputs);
/* Whether the call tells NaN or an infinity from numbers (nan_to_num, isnan, x != x). */
bool rule_sees_undefined(const rule_term *call);
/* How an operator treats NaN and infinities (rules/operators.def). */
typedef enum rule_undefined {
  RULE_UNDEFINED_PASSES, /* its result is none where an operand is none */
  RULE_UNDEFINED_MAKES,  /* and for some numbers, too */
  RULE_UNDEFINED_SEES,   /* its result is a number or a truth value even there, and tells it */
  RULE_UNDEFINED_KEEPS,  /* some of them come out again, and places or bounds tell of them */
  RULE_UNDEFINED_BOTH    /* MAKES and KEEPS */
} rule_undefined;
rule_undefined rule_undefined_of(const char *op);
/* The operand of a call that is a number of it for no 0: a divisor, what a logarithm is taken of.
 * Returns: its place; -1: none is known. */
int rule_pole_at_zero(const rule_term *call);
/* Facts that hold of all elements of a tensor. All bits zero: nothing but that it is given, and so
 * a number. */
typedef struct rule_fact {
  bool undefined; /* some may be NaN or infinite: nothing shows that they are not */
  bool masked;    /* some are minus infinity, at places that constants alone decide */
  bool constant;  /* the same on all inputs */
  bool nonnegative, nonzero;
  bool bounded; /* none is below `low`, a number */
  double low;
  bool places; /* of several results: the second are places, and the rest is of the first */
  bool parts;  /* of several results, or of one: each is of its first operand's numbers */
  bool counts; /* of several results: the second is a number of those that count, above zero */
  bool seen;   /* an operator on the way here saw a number that may be undefined */
  bool large;  /* some may have overflowed: calculated from finite numbers, without a bound */
  bool some;   /* it has elements: its shape is known, and no size is 0 */
  bool kept;   /* each row along dimension `along` has a number in it, and not masks alone */
  int64_t along;
} rule_fact;
/* The fact for a tensor of this shape. Of a tensor without elements, every statement about all
 * elements is true and none may be used: a mean over it is 0/0. It loses these, and `some`, which
 * is set where the shape has elements. */
rule_fact rule_fact_in_shape(rule_fact f, const rule_shape *shape);
/* The facts that the domain of an input (may be NULL) states of all its elements. */
struct rule_domain;
rule_fact rule_fact_of_domain(const struct rule_domain *d);
/* The fact of a term over nodes (RULE_VAR i: node i); `node` NULL: over given numbers. */
rule_fact rule_fact_of(const rule_term *t, const rule_fact *node);
/* How an operator of the term, over nodes, tells of a number that may be large. Proofs are about
 * real numbers, and do not see it. */
typedef enum rule_tells {
  RULE_TELLS_NOTHING,
  RULE_TELLS_MASKS,   /* by a comparison with minus infinity, which masks are */
  RULE_TELLS_OVERFLOW /* whether it is infinite or NaN (isinf, isnan, nan_to_num, x == inf) */
} rule_tells;
rule_tells rule_tells_overflow(const rule_term *t, const rule_fact *node);
/* Whether some operator of the term would tell an undefined number (NaN, infinity) from others. */
bool rule_looks_at_undefined(const rule_term *t);
/* Whether the call reads the sign of a zero (signbit, copysign, atan2). */
bool rule_reads_zero_sign(const rule_term *call);
/* Whether the call leaves open which of equal numbers comes first (topk, an unstable sort). */
bool rule_leaves_ties(const rule_term *call);
/* Whether `call`, node `node` of a graph (RULE_VAR i: node i), can tell 0 from -0 in an operand
 * that `carries` flags, by node. Where it cannot, its own flag is set to whether its result carries
 * such zeros on. Infinities of quotients count. `fixed`: by node, whether it is the same on all
 * inputs; this node's is written. `call` may be NULL (a leaf), whose flags are the caller's. */
bool rule_zero_sign_matters(const rule_term *call, bool *fixed, bool *carries, size_t node);
/* Whether the call reads memory by strides (as_strided): it is a function of its operand only where
 * that is row-major. */
bool rule_reads_memory(const rule_term *call);
/* Whether the result of a call over nodes (RULE_VAR i: node i) surely lies in memory row by row,
 * where no memory format is asked for. `dense`: by node, whether that does. */
bool rule_gives_dense(const rule_term *call, const bool *dense);
/* Equal kinds, values (floats by bit pattern, all NaNs equal) and children. */
bool rule_term_eq(const rule_term *a, const rule_term *b);
/* A deep copy into `a`. */
const rule_term *rule_term_copy(iso_arena *a, const rule_term *t);
/* Nodes of kind VAR, OP and LIST in the tree. */
size_t rule_term_size(const rule_term *t);
/* In the rule language: trailing defaults left out, keyword-only arguments as `:name value`. `vars`
 * names variables (x0, x1, ... if NULL). Owns: malloc'ed text; NULL when there is no memory. */
char *rule_term_print(const rule_term *t, rule_schemas *s, const char *const *vars);

/* ---- rules ---- */

typedef enum rule_status {
  RULE_UNKNOWN,
  RULE_REFUTED,
  RULE_ASSUMED,
  RULE_TESTED,
  RULE_PROVED,
  RULE_CERTIFIED /* of a whole equality: z3 answered an obligation of each of its rules */
} rule_status;
const char *rule_status_name(
    rule_status s); /* "unknown", "refuted", "assumed", "tested", "proved", "certified" */

typedef enum rule_scope {
  RULE_SCOPE_NONE,
  RULE_THESE_SHAPES,
  RULE_THESE_RANKS,
  RULE_ALL_SHAPES
} rule_scope;
const char *rule_scope_name(rule_scope s); /* "", "these shapes", "these ranks", "all shapes" */

/* Variables of a rule that is decided, found or applied; a file may have rules with more. */
enum { RULE_MAX_VARS = 192 };

typedef struct rule_variable {
  const char *name;
  char kind;         /* 'f', 'i', 'b' or 'c' */
  rule_dtype narrow; /* of integers in fewer than 64 bits: their dtype; else 0 */
  bool any_shape;    /* `_`: any rank and sizes; then n_dims is 0 */
  bool leading;      /* `...` in front: any leading dimensions */
  uint32_t n_dims;
  const rule_term *const *dim; /* INT, NAME, EXPR, or NONE for an unnamed size `_` */
  const rule_term *low,
      *high; /* `(in x lo hi)`: integer values in [lo, hi); NULL where not given */
} rule_variable;

/* How a rule file writes its kind: "f", "b", "c", "i" (int64), "i32", "i16", "i8", "u8". Static. */
const char *rule_variable_kind(const rule_variable *v);
/* Sets kind and width by that text. Returns: false where it is none. */
bool rule_variable_read_kind(rule_variable *v, const char *text);
/* Sets kind and width to those of tensors of `d`. */
void rule_variable_set_dtype(rule_variable *v, rule_dtype d);
/* Whether it stands for tensors of `d`: of any floating dtype, of any complex one, of one of
 * integers. */
bool rule_variable_takes(const rule_variable *v, rule_dtype d);
/* The dtype of its samples: the widest of its kind, of integers their own. */
rule_dtype rule_variable_dtype(const rule_variable *v);

typedef struct rule_attribute {
  const char *name;
  char kind; /* 'i' int, 'f' float, 'l' ints */
} rule_attribute;

typedef struct rule {
  const char *name;
  uint32_t n_vars, n_attrs, n_where, n_relative;
  const rule_variable *var;
  const rule_attribute *attr; /* the declared ones */
  const rule_term *lhs, *rhs;
  const rule_term *const *where;
  const char *const *relative_to; /* operators whose declared definition the evidence rests on */
  rule_status claimed;            /* (evidence ...): a claim, or this run's finding */
  rule_scope scope;
  unsigned rests_on;       /* RULE_RESTS_*: of a proof that this run found; no file says it */
  const char *float_class; /* "exact", "rounding", "unsafe", or NULL */
  bool reads_literals; /* `(literals read)`: it speaks of the numbers that its float literals stand
                        * for (0.28867513459481287 for 1/sqrt(12), a mask's -3.4028234663852886e+38
                        * for minus infinity), and not of the doubles */
} rule;

/* ---- conditions at given values ---- */

typedef enum rule_truth { RULE_FALSE, RULE_TRUE, RULE_OPEN } rule_truth;

typedef struct rule_values {
  bool (*value)(const void *ctx, const char *name,
                rule_term *out); /* a RULE_INT or RULE_FLOAT; false while the name has none */
  const void *ctx;
  double rel_tol; /* within which two reals are equal; integers and fractions are exact. Negative:
                     other reals equal nothing. Positive: a literal is any real that rounds to it,
                     and a sum whose cancellation leaves a larger error is open */
} rule_values;
/* A condition (RULE_EXPR) at these values. RULE_OPEN: a name has no value, or it divides by zero,
 * an integer leaves 128 bits, or rounding leaves it open. */
rule_truth rule_condition_at(const rule_term *t, const rule_values *v);
/* An expression over sizes and integers. Returns: false where it is no integer or open. */
bool rule_size_at(const rule_term *t, const rule_values *v, int64_t *out);
/* The same, as a real; NaN where it is open. */
double rule_number_at(const rule_term *t, const rule_values *v);

/* How a rule was shown. */
typedef enum rule_method {
  RULE_BY_NOTHING,
  RULE_BY_ELEMENT,
  RULE_BY_CASES,
  RULE_BY_TESTS
} rule_method;

/* Assumptions of a proof. */
enum {
  RULE_RESTS_ON_LITERALS = 1, /* float literals read as the numbers that they stand for */
  RULE_RESTS_ON_MASKS =
      2, /* and among them finite masks as minus infinity: numbers beside them are far from them */
  RULE_RESTS_ON_TIES = 4,   /* an order among equal elements is left open */
  RULE_RESTS_IN_PARTS = 16, /* nothing: elements were compared part by part */
  RULE_RESTS_ON_ORDER = 8,  /* topk without sorted in libtorch's order */
  RULE_RESTS_ON_WHOLE =
      32, /* no integer wraps: of those that do not fit into 64 bits nothing is said */
  RULE_RESTS_ON_NUMBERS =
      64 /* all parts are numbers: where some are not, the sides part, or an operator sees it. Of a
            refuted rule: it is proved so, and refuted by one side alone that is no number */
};

typedef struct rule_verdict {
  rule_status status; /* UNKNOWN, REFUTED, TESTED or PROVED */
  rule_scope scope;
  rule_method method;
  unsigned rests_on;   /* RULE_RESTS_ON_* */
  double within;       /* BY_TESTS of a kernel that computes in few bits: their tolerance; else 0 */
  uint32_t n_relative; /* kernels whose declared definition the proof rests on */
  char relative_to[48]; /* the first of them; "" where its name is longer */
  uint64_t seed;        /* of the samples, or of the refuting one */
  uint32_t n_samples;   /* samples that agreed within rel_tol */
  double rel_tol;       /* relative, per slice of the last dimension; 0 means bit-equal */
  double max_rel;       /* largest relative difference among the samples that agreed */
  char reason[256];     /* UNKNOWN: the limit or construct; REFUTED: the counterexample in a line */
} rule_verdict;

/* The facts that a proof may rest on, in words. */
typedef struct rule_rest {
  unsigned bits; /* RULE_RESTS_* */
  const char *text;
} rule_rest;
enum { RULE_N_RESTS = 6 };
extern const rule_rest rule_rests[RULE_N_RESTS];

enum { RULE_METHOD_TEXT = 256 }; /* all of them, and a kernel's name */
/* How a rule was shown, and on what assumptions, in the words of reports: "generic element,
 * literals read". Returns: `text`. */
const char *rule_verdict_method(const rule_verdict *v, char text[RULE_METHOD_TEXT]);

/* An ordered set of rules without duplicates (same variables, sides and conditions up to names).
 * Owns its rules. */
typedef struct rule_set rule_set;
ISO_MUST_USE iso_code rule_set_new(rule_set **out, iso_error *err);
void rule_set_free(rule_set *s);
size_t rule_set_count(const rule_set *s);
const rule *rule_set_at(const rule_set *s, size_t i); /* borrowed until rule_set_free */
/* Copy `r` into the set. Returns: in `index` where it is, and in `fresh` whether it was new. A name
 * that is taken gets a number appended. `index` and `fresh` may be NULL. */
ISO_MUST_USE iso_code rule_set_add(rule_set *s, const rule *r, size_t *index, bool *fresh,
                                   iso_error *err);
/* Change the evidence of rule `i`. */
void rule_set_evidence(rule_set *s, size_t i, rule_status status, rule_scope scope);
/* The facts that the proof of rule `i` rests on, RULE_RESTS_*. */
void rule_set_rests_on(rule_set *s, size_t i, unsigned rests_on);

/* `r` in canonical form: variables in the order of their first occurrence, conditions sorted,
 * declarations in one order, no evidence; names of variables and sizes stay as they are. Two
 * spellings of one rule give equal forms up to names, and one `hash`, which is of the sides alone.
 * New terms live in `a`, the rest is `r`'s. Returns: in `from` (room for r->n_vars), by variable
 * of `out`, that of `r`. */
ISO_MUST_USE iso_code rule_canonical(iso_arena *a, const rule *r, rule *out, uint32_t *from,
                                     uint64_t *hash, iso_error *err);
/* Equal subterms of both sides become one term, so that each is visited and computed once. New
 * terms are in `a`. Returns: false when there is no memory. */
ISO_MUST_USE bool rule_share(iso_arena *a, rule *r);
/* Values of a rule's sizes and attributes: INT, FLOAT or a LIST of INT. Borrowed. */
typedef struct rule_assignment {
  uint32_t n;
  const char *const *name;
  const rule_term *const *value;
  double within; /* conditions hold of the reals that floats stand for, so near, relative; 0: of the
                    doubles as they are */
} rule_assignment;
/* The rule with these values, in `a`: only parts without a name are open then. Returns: false in
 * `whole` where a name has no value, an expression is no integer, or a condition does not hold;
 * then `out` is no rule. Errors: ISO_NOMEM. */
ISO_MUST_USE iso_code rule_at(const rule *r, const rule_assignment *v, iso_arena *a, rule *out,
                              bool *whole, iso_error *err);

/* Parse a rule file's text (`n` bytes, or SIZE_MAX for a NUL-terminated one; it may hold anything).
 * Errors: ISO_FORMAT "FILE:LINE: reason". Nesting is bounded. Operators unknown to the built-in
 * schemas are errors. */
ISO_MUST_USE iso_code rule_set_parse(const char *text, size_t n, const char *file, rule_set **out,
                                     iso_error *err);
ISO_MUST_USE iso_code rule_set_load(const char *path, rule_set **out, iso_error *err);
/* The same, every rule as the file has it: duplicates too, so that each can be reported. */
ISO_MUST_USE iso_code rule_set_load_all(const char *path, rule_set **out, iso_error *err);
/* The rule in the rule language; parsing it gives an equal rule. Owns: malloc'ed; NULL when there
 * is no memory. */
char *rule_print(const rule *r);
/* One side, as in reports. Owns: malloc'ed. */
char *rule_side_print(const rule *r, bool rhs);
/* Write all rules to `path` (to a temporary file beside it, then renamed). */
ISO_MUST_USE iso_code rule_set_save(const rule_set *s, const char *path, iso_error *err);

/* ---- the oracle ---- */

typedef struct rule_diff {
  bool equal; /* within tolerance */
  double max_abs,
      max_rel;   /* the largest difference, and relative to its slice's largest |reference| */
  int64_t index; /* row-major, of the largest relative difference; -1 if none */
} rule_diff;

/* A graph on given values: each step is a value, or a call of which RULE_VAR i is step i, before
 * it. `getitem` picks a result of a step. */
typedef struct rule_step {
  const rule_term *call; /* NULL: `value`, whose floats are float64 */
  rule_tensor *value;
} rule_step;
typedef struct rule_program {
  const rule_step *step;
  size_t n, output;
} rule_program;

/* Whether two tensors of real numbers are one. */
typedef enum rule_numbers {
  RULE_NUMBERS_UNKNOWN, /* it is not to be had: an operator, a size, or too much work */
  RULE_NUMBERS_OPEN,    /* undefined, or too far apart in size */
  RULE_NUMBERS_JUMP,    /* a comparison hangs on numbers that no digits tell apart */
  RULE_NUMBERS_LOST,    /* nothing shows a difference, and a sum may have lost one */
  RULE_NUMBERS_APART,
  RULE_NUMBERS_SAME /* to ten digits of each row: any difference is rounding */
} rule_numbers;

typedef struct rule_oracle {
  void *ctx;
  /* One operator call, all its tensors: RULE_VAR i is bind[i]; in captured dtypes or in float64.
   * Owns: caller unrefs. */
  iso_code (*call)(void *ctx, const rule_term *call, rule_tensor *const *bind, bool float64,
                   rule_tensor **out, size_t cap, size_t *n_out, iso_error *err);
  /* Compare flat, per slice of the last dimension of `a` (the reference), relative; see
   * val_compare. */
  rule_diff (*compare)(void *ctx, const rule_tensor *a, const rule_tensor *b, double rel_tol);
  /* Decide a candidate. `example[i]`, where not NULL, is the captured value of variable i (for
   * ranges and scale). */
  iso_code (*decide)(void *ctx, const rule *r, rule_tensor *const *example, rule_verdict *out,
                     iso_error *err);
  /* The same as `decide` for a candidate with literal sizes, made as general as its proof stays
   * (literal sizes and attributes become names with conditions; variables keep their order).
   * Returns: in `general` the rule that `out` is about, `r` itself where nothing could be made
   * general; its new parts live in `a`. May be NULL: rules stay as they are. */
  iso_code (*generalise)(void *ctx, const rule *r, rule_tensor *const *example, iso_arena *a,
                         rule *general, rule_verdict *out, iso_error *err);
  /* The same by the first samples and the proof alone, which cost a fraction of what a rule costs
   * that is only tested. Returns: a status of unknown says that `generalise` has to be asked, or
   * `decide` where `general` is NULL: the rule is wanted as it stands. May be NULL. */
  iso_code (*glance)(void *ctx, const rule *r, rule_tensor *const *example, iso_arena *a,
                     rule *general, rule_verdict *out, iso_error *err);
  /* Obligations of the rule, as SMT-LIB, which z3 answered as it should. Returns: in `n` how many;
   * 0: in `why` (200 bytes) why there are none. May be NULL. */
  iso_code (*certify)(void *ctx, const rule *r, size_t *n, char *why, iso_error *err);
  /* The results of two programs, in real numbers. May be NULL: unknown. */
  iso_code (*same_numbers)(void *ctx, const rule_program side[2], rule_numbers *out,
                           iso_error *err);
} rule_oracle;

#ifdef __cplusplus
}
#endif
#endif
