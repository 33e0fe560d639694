/* The prover, and the one definition of each operator that there is: elementwise.c, layout.c,
 * views.c, fill.c, reduce.c, nn.c, window.c, index.c, order.c, dist.c, composite.c, written.c and
 * kernels.c (integer types: narrow.c). A definition gives the result's sizes, its element at any
 * index, and under which conditions it has one (sc_require: on sizes; sc_defined_if: on values).
 * From it come the proof, the certificate (obligation.c), and the shapes and numbers that the
 * differential test holds against libtorch (sc_values). Where sizes are numbers they are sizes like
 * others.
 *
 * Expressions: one per tensor, at one generic index, hash-consed and in normal form.
 *
 * A tensor is its sizes (polynomials over size names) and a way to give its element at an index
 * (expressions again). Both sides of a rule are asked for their element at the same fresh index
 * symbols; equal ids are equal functions.
 *
 * Normal form. Numbers are polynomials: sums of rational * monomial, a monomial being powers
 * (rational exponents) of atoms: symbols, elements of variables, functions, sums over an index
 * (binders), floor division and remainder of indices. Sums over an index are linear, factors that
 * do not depend on the index stand outside, nested sums are one block, split into what is
 * connected; the ranges are cut where a condition on the index changes and where an index is taken
 * apart by division. Conditions stand outside of everything, as a decision diagram ordered by id
 * (X_ITE); inside a sum what cannot be cut stands as a factor that is 0 or 1 (X_IVER). Bound
 * indices are numbered by height, so that binders are equal up to renaming; of the orders of a
 * block the one with the least hash is taken.
 *
 * Soundness. Every constructor returns an expression equal to what its arguments say wherever these
 * are defined. A rule speaks of values for which both sides and all their parts are defined, so x *
 * (1/x) is 1 and sqrt(x)^2 is x. What is not modelled calls sc_fail, which sticks: the rule is then
 * unknown. Whether sizes agree is decided by cases: where it matters, sc_require asks for a split,
 * and every case must be proved (cases.c). */
#ifndef VALIDATE_PROVE_INT_H
#define VALIDATE_PROVE_INT_H

#include "validate/exec/engine_int.h"
#include "validate/expr/rational.h"

typedef uint32_t sx; /* an expression; 0 is none */

typedef enum sx_op {
  X_NONE,
  X_CONST, /* [rational] */
  X_SYM,   /* [symbol] */
  X_BOUND, /* [level]: the index of a closed binder */
  X_ADD,   /* [rational, monomial]...: sorted by monomial */
  X_MUL,   /* [base, rational exponent]...: sorted by base */
  X_DIV,   /* [p, d]: floor(p / d), d > 0 */
  X_LEAF,  /* [variable, index...]: an element of a variable */
  X_FN,    /* [function, x...] */
  X_SUM,   /* [n, range..., body]: over n indices */
  X_TOP,   /* [n, range..., body]: the largest over n indices */
  X_MAX,   /* [x...]: sorted, distinct */
  X_ITE,   /* [condition, x, y]: conditions in order of their ids from the outside in */
  X_LT,    /* [p]: p < 0 */
  X_EQ,    /* [p]: p = 0 */
  X_TRUE,
  X_FALSE,
  X_NEGINF, /* minus infinity, of a mask */
  X_IVER,   /* [condition]: 1 where it holds, else 0 */
  X_PROD,   /* [n, range..., body]: the product over n indices */
  X_ROW     /* [1, range, body]: a row, up to its order; only in F_PLACE (order.c) */
} sx_op;

typedef enum sx_func {
  F_EXP,
  F_LOG,
  F_ERF,
  F_SIN,
  F_COS,
  F_TAN,
  F_ATAN,
  F_ABS,
  F_FLOOR,
  F_CEIL,
  F_ROUND,
  F_TRUNC,
  F_POW,
  F_ATAN2,
  F_SAFE_INV, /* 1/x, or anything where x = 0: its factor is 0 there */
  F_CAST_F32,
  F_CAST_F16,
  F_CAST_BF16,
  F_CAST_F8E4M3FN,
  F_CAST_F8E5M2,
  F_CAST_INT,
  F_ASIN,
  F_AND,   /* of the bits of integers (bits.c) */
  F_PLACE, /* (rank, row): where the element of that rank stands, the largest first */
  F_ADD,
  F_MUL,
  F_POWER,
  F_IF /* as a definition says it, where nothing is simplified: sc.plain */
} sx_func;

enum {
  S_POS = 1,
  S_NONNEG = 2,
  S_NONZERO = 4,
  S_INT = 8,
  S_BOOL = 16,
  S_INDEX = 32 /* has a symbol with a range in it */,
  S_MASKED = 64 /* minus infinity */
};

typedef struct sx_node {
  uint8_t op, flags;
  uint16_t height; /* the highest level bound inside */
  uint32_t n, off; /* words */
  uint32_t seen;   /* by which walk last, see sc_walk */
  uint64_t hash;   /* of the structure; symbols with a range count by their range */
  uint64_t bloom;  /* of the symbols and levels in it */
} sx_node;

typedef struct sx_sym {
  const char *name;
  char role;      /* 's' size, 'a' attribute, 'x' index */
  unsigned flags; /* S_... */
  bool has_low;
  int64_t low;
  sx high; /* exclusive; 0 where there is none */
  sx of;   /* of a derived one: what it was derived from */
} sx_sym;

typedef struct sc sc;
typedef struct pt_tensor pt_tensor;
typedef struct pt_args pt_args;
/* The element of `t` at `idx`. */
typedef sx (*pt_elem)(sc *c, const pt_tensor *t, const sx *idx);

struct pt_tensor {
  char kind;     /* 'f', 'i', 'b' */
  uint64_t lead; /* variables whose leading dimensions stand in front, one bit each */
  uint32_t rank; /* of the dimensions behind them */
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

/* A term that was evaluated. */
typedef struct sc_memo {
  const rule_term *t;
  const pt_value *v;
} sc_memo;

/* A walk visits each expression once, however many ways lead to it: as a tree an expression can be
 * of any size. */
typedef struct sc_walk {
  uint32_t stamp;
  int64_t visited; /* not counted as work yet */
} sc_walk;

typedef struct sc_guess { /* a hypothesis: a condition and whether it holds */
  sx cond;
  bool holds;
} sc_guess;

/* A term that is taken for an unknown tensor, variable `var` of the rule: it was shown to be `as`,
 * up to layout, which is the same one. */
typedef struct sc_cut {
  const rule_term *term, *as;
  uint32_t var;
  bool piece; /* `as` is a chunk of what the variable stands for */
} sc_cut;

/* The sizes of a term's value, in one model of what the rule assumes. */
typedef struct sc_noted {
  const rule_term *t;
  uint32_t rank;
  double dim[RULE_MAX_RANK], numel;
  bool known;
} sc_noted;

/* What a proof used that its verdict is to say. */
typedef struct sc_used {
  bool literal, z3, ties, unsorted, parts;
} sc_used;

/* One way to look at a rule. */
typedef struct sc_look {
  bool read_literals, mask_frames; /* as in struct sc */
  int64_t max_work;
  const sc_cut *cut; /* (parts.c) */
  size_t n_cuts;
  uint32_t n_own; /* variables that are not for cuts; where there are such */
  sc_used used;   /* by the proofs of the cuts */
  bool part;      /* the sides may differ in layout */
  const rule *
      of; /* with `part`, NULL or the rule: nothing is shown but where both its sides are defined */
  bool chunk; /* the left side is a chunk of what is to be cut out: something has to be computed in
                 it */
  bool one_term; /* the sides are one term: nothing is shown but that it has a value */
  int witness; /* not 0: nothing is shown but that both sides are defined where each variable is one
                  number, 1 or another one */
  sc_noted *noted; /* with `witness`: terms of which the sizes are wanted; where there are such */
  size_t n_noted;
} sc_look;

/* And what was seen. */
typedef struct sc_sight {
  bool has_frames, readable; /* as in struct sc */
  bool masked;               /* an element may be minus infinity */
  int64_t work;
  sc_used used;
} sc_sight;

enum {
  SC_MAX_NODES = 1 << 21,
  SC_MAX_WORDS = 1 << 25,
  SC_TABLE = 1 << 11 /* to begin with */,
  SC_MAX_WORK = 12000000,
  SC_LEAST_WORK = 260000,
  SC_LOOK_WORK = 1 << 16,
  SC_MAX_SYMS = 20000,
  SC_MAX_CUT_SYMS = 3000
};
enum { SC_MAX_RELATIVE = 16, SC_MAX_CHOICES = 40, SC_MAX_GUESSES = 64, SC_MAX_FACTS = 256 };
enum { SC_MAX_WITHIN = 8 };

/* The obligations of a proof, one text per case (obligation.c). */
enum { SC_MAX_CERTIFICATES = 64 };
typedef struct sc_certificate {
  char *text[SC_MAX_CERTIFICATES];
  size_t n;
  bool some;      /* one of them is of a case that some sizes meet */
  bool unchecked; /* also what is not proved, and not shown to z3: for tests */
  char why[200];  /* not empty: there is none */
} sc_certificate;

struct sc {
  pv_rationals q;
  const rule *r;
  rule_schemas *schemas;
  sc_certificate *certify; /* NULL: not wanted */
  bool plain; /* real numbers as the definitions give them, not in normal form: for certificates */
  bool mask_frames;   /* zeros around a convolution's input as factors that are 0 or 1, where ranges
                         are cut otherwise */
  bool has_frames;    /* there are such */
  bool read_literals; /* float literals as the roots that they stand for */
  bool readable;      /* there was one that could be read so */
  bool decimals;      /* float literals as the decimals that they are printed as, where these are
                         short: for evaluations */
  bool read_masks;    /* finite masks as minus infinity: then each row of a softmax has to keep an
                         element (mask.c) */
  sx_node *node;
  uint32_t n_nodes;
  uint32_t *word;
  size_t n_words;
  uint32_t *table;
  size_t cap_table;
  uint32_t *stack; /* scratch: pairs of words */
  size_t sp;
  sx_sym *sym;
  size_t n_syms, cap_syms;
  sx zero, one, minus_one, yes, no, neginf;
  sx fact[SC_MAX_FACTS]; /* integers known to be at least 0 */
  size_t n_facts;
  sc_guess path[SC_MAX_GUESSES]; /* conditions on real numbers that hold here */
  size_t n_path;
  sc_guess choice[SC_MAX_CHOICES]; /* a case split asked for: one of these holds where both sides
                                      are defined */
  size_t n_choices;
  struct {
    sx from, to;
  } bound_size[SC_MAX_GUESSES]; /* symbols solved for in this case */
  size_t n_bound_sizes;
  struct {
    uint64_t lead[8];
    size_t n;
    sx dim;
  } join[16]; /* concatenations of tensors of any shape */
  size_t n_joins;
  struct {
    size_t join, part;
    uint32_t outer;
  } place[64];                 /* within which part of one an element is */
  uint32_t n_places, at_place; /* 0: within none */
  struct {
    sx at, size;
  } within[SC_MAX_WITHIN]; /* 0 <= at < size: parts of concatenations */
  size_t n_within;
  sx table_size[64]; /* of an integer variable that indexes a table: its values are in [0, this) */
  uint64_t lead_of[64];              /* union-find: variables whose leading dimensions are equal */
  bool narrow;                       /* some integers are not int64 */
  bool overran;                      /* Z3: then there is no verdict */
  bool failed, no_memory, undefined; /* undefined: no value in this case */
  bool literal, masks, used_z3, ties, unsorted, in_parts; /* what a proof used */
  const sc_look *look;
  bool masked;      /* an element that was compared may be minus infinity */
  struct sc_z3 *z3; /* made on first need */
  char reason[200];
  sc_walk own_walk, *walk; /* the one points to the other: walks leave everything else as it is */
  int64_t work, depth;
  int ge_depth, ge_left;
  int64_t residues; /* cases by remainders so far, 1 to begin with */
  uint64_t rlimit;  /* of Z3; the work below is bounded in proportion */
  int64_t max_work;
  const val_options *o;       /* for `stop` and `scratch`; may be NULL */
  struct sc_scratch *scratch; /* where node, word and stack are from; NULL: its own */
  int64_t next_look;          /* work at which to ask it again */
  iso_arena arena;            /* of this case */
  sc_memo *memo;
  size_t n_memo, cap_memo;
  uint32_t n_tensors, next_index;
  sx domain[SC_MAX_FACTS]; /* conditions under which the parts are defined */
  size_t n_domain;
  const char *relative[SC_MAX_RELATIVE];
  size_t n_relative;
  struct sc_elem *elems;
  size_t n_elems, cap_elems;
  char *owned[256]; /* names made here */
  size_t n_owned;
  double (*value_of)(void *ctx, uint32_t var, const int64_t *idx); /* for sc_number */
  void *value_ctx;
  void (*on_index)(sc *c, const pt_tensor *index, sx size, bool from_end,
                   sx besides); /* NULL, or told of each bound of an index; see index_ranges.c */
  const pt_tensor *(*otherwise)(sc *c,
                                const rule_term *t); /* NULL, or asked for what has no definition */
  void *index_ctx;
};

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

/* ---- expressions (expr.c) ---- */

/* The number of a new walk; whether that walk comes to `x` for the first time, as far as it knows:
 * a walk within it may forget for it. */
static inline uint32_t sc_walk_start(const sc *c) { return ++c->walk->stamp; }
static inline bool sc_walk_first(const sc *c, sx x, uint32_t walk) {
  if (c->node[x].seen == walk) return false;
  c->walk->visited++;
  c->node[x].seen = walk;
  return true;
}

/* What a proof writes first, kept for the next one: mapping it anew and its first pages cost as
 * much as a small proof. NULL: no memory. */
struct sc_scratch *sc_scratch_new(void);
void sc_scratch_free(struct sc_scratch *x);
bool sc_init(sc *c, const rule *r, rule_schemas *s, const val_options *o); /* false: no memory */
void sc_declare_names(sc *c); /* of the rule's sizes and attributes (cases.c) */
void sc_fini(sc *c);
void sc_fail(sc *c, const char *fmt, ...) ISO_PRINTF(2, 3); /* the first reason stays */
bool sc_work(sc *c, size_t n);
sx sc_node(sc *c, sx_op op, const uint32_t *w, size_t n); /* interned as it is */
sx sc_symbol(sc *c, const char *name, char role, unsigned flags);
sx sc_unknown(sc *c,
              const char *name); /* a real number of which nothing is known; `name` is copied */
sx sc_derived(sc *c, const char *name, sx of,
              int64_t low);  /* an integer of at least `low`; the same one each time */
sx sc_index(sc *c, sx high); /* a fresh one in [0, high); 0 where high is 1 */

static inline const sx_node *sc_at(const sc *c, sx x) { return &c->node[x]; }
static inline sx_op sc_op(const sc *c, sx x) { return (sx_op)c->node[x].op; }
static inline unsigned sc_flags(const sc *c, sx x) { return c->node[x].flags; }
static inline uint32_t sc_word(const sc *c, sx x, size_t i) { return c->word[c->node[x].off + i]; }
static inline bool sc_has(const sc *c, sx x, unsigned flags) {
  return (c->node[x].flags & flags) == flags;
}

sx sx_q(sc *c, uint32_t q);
sx sx_int(sc *c, int64_t i);
sx sx_double(sc *c, double f);                   /* exact */
bool sx_is_int(const sc *c, sx x, int64_t *out); /* an integer constant */
bool sx_is_q(const sc *c, sx x, uint32_t *q);
sx sx_add(sc *c, sx a, sx b);
sx sx_sub(sc *c, sx a, sx b);
sx sx_neg(sc *c, sx a);
sx sx_scale(sc *c, uint32_t q, sx a);
sx sx_addn(sc *c, const sx *a, size_t n);
sx sx_mul(sc *c, sx a, sx b);
sx sx_mul3(sc *c, sx a, sx b, sx d);
sx sx_pow(sc *c, sx a, uint32_t q);
sx sx_powi(sc *c, sx a, int64_t k);
sx sx_inv(sc *c, sx a);
sx sx_sqrt(sc *c, sx a);
sx sx_fn(sc *c, sx_func f, sx a);
sx sx_fn2(sc *c, sx_func f, sx a, sx b);
sx sx_exp(sc *c, sx a);
sx sx_log(sc *c, sx a);
sx sx_abs(sc *c, sx a);
sx sx_max(sc *c, sx a, sx b);
sx sx_min(sc *c, sx a, sx b);
sx sx_leaf(sc *c, uint32_t var, const sx *idx, uint32_t n);
sx sx_bits_and(sc *c, sx x, sx y); /* of integers, bit by bit (bits.c) */
sx sx_bits_or(sc *c, sx x, sx y);
sx sx_bits_xor(sc *c, sx x, sx y);
sx sx_bits_not(sc *c, sx x);
/* Terms of a polynomial: number, and each. A monomial of 1 is `one`. */
size_t sx_terms(const sc *c, sx x);
void sx_term(const sc *c, sx x, size_t i, uint32_t *q, sx *m);
/* Factors of a monomial. */
size_t sx_factors(const sc *c, sx m);
void sx_factor(const sc *c, sx m, size_t i, sx *base, uint32_t *exponent);
bool sx_divides(sc *c, sx d, sx p, sx *quotient); /* exactly, by a monomial d */
bool sx_is_long(const sc *c, sx x);               /* a sum of several terms */
sx sx_single(sc *c, sx base, uint32_t q);         /* base^q as one factor */
uint32_t sx_leading(sc *c, sx a,
                    bool any_sign); /* the coefficient of the term with the least hash */
int64_t sx_q_floor(const sc *c, uint32_t q);
bool sx_q_even(const sc *c, uint32_t q);
sx sx_smallest_guard(const sc *c, const sx *a,
                     size_t n);            /* the top condition of several diagrams, 0 for none */
sx sx_without(sc *c, sx a, sx common);     /* a / common, its content */
sx sx_content(sc *c, sx a, bool any_base); /* the common factor of its terms, see expr.c */
bool sx_linear(sc *c, sx p, sx atom, sx *a,
               sx *b); /* p = a * atom + b, neither with `atom` in it */
bool sx_occurs(const sc *c, sx x, sx in);
sx sx_find_place(const sc *c, sx k, sx in); /* F_PLACE of the rank k, a symbol; 0: there is none */

/* ---- conditions and integers (guard.c) ---- */

sx sx_lt(sc *c, sx a, sx b);
sx sx_le(sc *c, sx a, sx b);
sx sx_eq(sc *c, sx a, sx b);
sx sx_not(sc *c, sx a);
sx sx_and(sc *c, sx a, sx b);
sx sx_or(sc *c, sx a, sx b);
sx sx_ite(sc *c, sx cond, sx a, sx b);
sx sx_cofactor(sc *c, sx x, sx guard, bool holds); /* where `guard` is the top condition */
sx sx_top_guard(const sc *c, sx x);                /* 0 where it is no X_ITE */
sx sx_iver(sc *c, sx guard);                       /* of one atom, or a diagram */
sx sx_lift(sc *c, sx x, sx (*f)(sc *c, sx x, const void *ctx),
           const void *ctx); /* f at the diagram's ends */
bool sx_ge0(sc *c, sx p);    /* known to be at least 0 (integers) */
bool sx_gt0(sc *c, sx p);
bool sx_same(sc *c, sx a, sx b); /* integers known to be equal */
/* A sum of the largest elements of rows over one range, which is at least that of the elements at
 * any one place: known to be at least 0. */
bool sx_largest_ge0(sc *c, sx p);
sx sx_div(sc *c, sx p, sx d);
sx sx_mod(sc *c, sx p, sx d);
/* Assume a condition in this case. false: it contradicts what is known. */
bool sc_assume(sc *c, sx guard, bool holds);

/* The condition D x + y < 0, |y| < D, on x and y by themselves (radix.c). 0: none. */
sx sx_by_radix(sc *c, sx g);

/* ---- parts of concatenations (within.c) ---- */

/* From here on elements are asked for of a part, where 0 <= at < size. false: it is not noted,
 * and there is no end to it. */
bool sc_within_begin(sc *c, sx at, sx size);
void sc_within_end(sc *c);
/* x, of which an operator has no value where it is `none`, without that outside of the parts. */
sx sx_within(sc *c, sx x, sx none);

/* ---- binders and substitution (sum.c) ---- */

typedef struct sx_map {
  sx from, to;
} sx_map;
sx sx_subst(sc *c, sx x, const sx_map *map, size_t n);
sx sx_sum(sc *c, sx k,
          sx body); /* over the index symbol k, in its range (k may be 0, for a range of 1) */
sx sx_largest(sc *c, sx k, sx body);
sx sx_product(sc *c, sx k, sx body);
/* A row of elements `body` over k, up to what keeps its order; the place of the element that is the
 * `rank`-th largest. */
sx sx_row(sc *c, sx k, sx body);
sx sx_place(sc *c, sx rank, sx row);
/* Where k, a bound index, is nothing but the rank of places in one row, all of its ranks: `body` by
 * the places themselves, in k. They are a permutation, and what binds k asks for no order. */
void sx_over_places(sc *c, sx k, sx *body);
sx sx_close(sc *c, sx_op op, sx k, sx body); /* a binder over one index, as it is */
/* Open a binder: fresh symbols in `k` (room for 8), the body in them. */
sx sx_open(sc *c, sx binder, sx *k, uint32_t *n);
/* An index symbol `k` in x that a division takes apart: into quotient and remainder by `d`, which
 * divides its range. */
bool sx_apart(sc *c, sx x, sx *k, sx *d);
bool sx_apart_at(sc *c, sx x, sx k, sx *d);
/* A condition that holds (`lower`: below, else above) up to a bound of the index k. */
bool sx_cuts(sc *c, sx g, sx k, sx *at, bool *lower);

/* ---- comparing (equal.c, z3.c) ---- */

bool sc_equal(sc *c, sx a, sx b); /* under the facts and the path */
bool sc_z3_equal(sc *c, sx a, sx b);
bool sc_z3_possible(sc *c, const sc_guess *g, size_t n); /* false: known to be contradictory */
void sc_z3_close(sc *c);
/* Do the facts and hypotheses have a model with small sizes? */
bool sc_has_model(
    sc *c, bool *defined); /* defined (may be NULL): the functions of the domain facts are, there */
bool sc_model(sc *c, double *v); /* by symbol */

/* ---- certificates (obligation.c) ---- */

/* The obligation of this case into c->certify, or why there is none. */
void sc_certify(sc *c, const pt_tensor *a, const pt_tensor *b, const sx *idx);

/* ---- tensors (tensor.c) ---- */

pt_tensor *pt_new(sc *c, char kind, pt_elem f);
sx pt_at(sc *c, const pt_tensor *t, const sx *idx); /* its element; remembered */
const pt_value *pt_eval(sc *c, const rule_term *t);
const pt_tensor *pt_eval_tensor(sc *c, const rule_term *t);
pt_value *pt_one(sc *c, const pt_tensor *t);
pt_value *pt_list(sc *c, const pt_tensor *const *t, size_t n);
const pt_tensor *pt_piece(sc *c, const pt_value *v, size_t k); /* NULL: failed */
void *sc_take(sc *c, size_t n);

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
void sc_defined_if(sc *c, sx cond);    /* note a condition on values */
sx sc_size(sc *c, const rule_term *t); /* a size, attribute or expression of them */
sx sc_condition(sc *c, const rule_term *t);

/* Arguments by the schema's names. */
struct pt_args {
  sc *c;
  const rule_term *t;
  const rule_schema *schema;
};
const rule_term *pt_arg(pt_args *a, const char *name);
const pt_tensor *pt_arg_tensor(pt_args *a, const char *name);
sx pt_arg_size(pt_args *a, const char *name, int64_t if_none);
bool pt_arg_dim(pt_args *a, const char *name, int64_t if_none, const pt_tensor *x, uint32_t *out);
bool pt_dim(sc *c, const rule_term *t, const pt_tensor *x, uint32_t extra, uint32_t *out);
bool pt_arg_dims(pt_args *a, const char *name, const pt_tensor *x, uint32_t *out,
                 uint32_t *n);                                         /* false: failed or none */
bool pt_arg_sizes(pt_args *a, const char *name, sx *out, uint32_t *n); /* false: none */
bool pt_arg_flag(pt_args *a, const char *name, bool if_none);
bool pt_arg_is(pt_args *a, const char *name, const char *text);
bool pt_arg_dtype(pt_args *a, const char *name, rule_dtype *out);
sx pt_arg_scalar(pt_args *a, const char *name, char *kind);
bool pt_arg_list(pt_args *a, const char *name, const pt_tensor *const **out, size_t *n);
sx pt_literal(sc *c, double f);
sx pt_scalar(sc *c, const rule_term *t, char *kind);
const pt_tensor *pt_scalar_tensor(sc *c, sx x,
                                  char kind); /* a number: gives its kind way to tensors' */
sx sc_symbol_named(sc *c, const char *name);  /* a positive real constant of that name */
bool pt_int(sc *c, sx x, int64_t *out);

typedef const pt_value *(*pt_define)(pt_args *a, int which);
typedef struct pt_definition {
  const char *name;
  pt_define f;
  int which;
} pt_definition;
bool pt_define_elementwise(const char *name, pt_definition *out);
bool pt_define_layout(const char *name, pt_definition *out);
bool pt_define_views(const char *name, pt_definition *out);
bool pt_define_pick(const char *name, pt_definition *out);
bool pt_define_slice(const char *name, pt_definition *out);
bool pt_define_cat(const char *name, pt_definition *out);
bool pt_define_fill(const char *name, pt_definition *out);
bool pt_define_reduce(const char *name, pt_definition *out);
bool pt_define_nn(const char *name, pt_definition *out);
bool pt_define_window(const char *name, pt_definition *out);
bool pt_define_index(const char *name, pt_definition *out);
bool pt_define_put(const char *name, pt_definition *out);
bool pt_define_order(const char *name, pt_definition *out);
bool pt_define_dist(const char *name, pt_definition *out);
bool pt_define_composite(const char *name, pt_definition *out);
bool pt_define_kernel(const char *name, pt_definition *out);
bool pt_define_written(const char *name, pt_definition *out);

/* Helpers shared by definitions. */
bool pt_named(const char *full, const char *base);
/* The entry of a table for an operator of aten; names in tables are without "aten::". */
bool pt_find(const pt_definition *entry, size_t n, const char *name, pt_definition *out);
pt_tensor *pt_like(sc *c, const pt_tensor *x, char kind,
                   pt_elem f); /* x's shape, x its first input */
const pt_tensor *pt_cast(sc *c, const pt_tensor *x, rule_dtype d); /* elements alone */
/* Integers of another width (narrow.c): the same, where each fits. What is no tensor of integers
 * stays. */
const pt_tensor *pt_typed(sc *c, const pt_tensor *t, rule_dtype d);
/* The results of a call with their integer types. */
const pt_value *pt_typed_results(pt_args *a, const pt_value *v);
void pt_join_leads(sc *c, uint64_t a,
                   uint64_t b); /* these variables' leading dimensions are equal */
const pt_tensor *pt_kind(sc *c, const pt_tensor *t, char kind);
const pt_tensor *pt_expand(sc *c, const pt_tensor *t, const sx *dim, uint32_t rank, uint64_t lead);
bool pt_broadcast(sc *c, const pt_tensor *const *t, size_t n, sx *dim, uint32_t *rank,
                  uint64_t *lead);
const pt_tensor *pt_transpose(sc *c, const pt_tensor *t, uint32_t a, uint32_t b);
const pt_tensor *pt_permute(sc *c, const pt_tensor *t, const uint32_t *order);
const pt_tensor *pt_reshape(sc *c, const pt_tensor *t, const sx *dim, uint32_t rank);
const pt_tensor *pt_matmul(sc *c, const pt_tensor *a, const pt_tensor *b);
bool pt_same_index(
    sc *c, sx p,
    sx q); /* sizes of one index of an einsum: equal, or one is 1, which is not modelled */
const pt_tensor *pt_slice(sc *c, const pt_tensor *t, uint32_t d, sx start, sx n, sx step);
const pt_tensor *pt_drop(sc *c, const pt_tensor *t, uint32_t d, sx at);
const pt_tensor *pt_cat(sc *c, const pt_tensor *const *t, size_t n, uint32_t d);
const pt_tensor *pt_combine(sc *c, sx p, const pt_tensor *a, sx q,
                            const pt_tensor *b); /* p a + q b, broadcast */
const pt_tensor *pt_times(sc *c, const pt_tensor *a, const pt_tensor *b);
bool pt_is_variable(const pt_tensor *t);
/* A slice's start, length and step, from the arguments start, end and step. */
bool pt_slice_bounds(pt_args *a, const pt_tensor *x, uint32_t d, sx *start, sx *n, sx *step);
const pt_tensor *pt_flatten(sc *c, const pt_tensor *t, uint32_t from, uint32_t to);
const pt_tensor *pt_unsqueeze(sc *c, const pt_tensor *t, uint32_t d);
const pt_tensor *pt_pad(sc *c, const pt_tensor *t, uint32_t d, sx left, sx right, sx value);
/* Padding with x's own elements ("reflect", "replicate", "circular") by the sizes of the argument
 * `name`. */
const pt_tensor *pt_mirror(pt_args *a, const char *name, const pt_tensor *x, const char *mode);
const pt_tensor *pt_conv_transpose(pt_args *a, uint32_t n, const pt_tensor *x,
                                   const pt_tensor *w); /* over the last n dimensions */
const pt_tensor *pt_by_channel(sc *c, const pt_tensor *y, const pt_tensor *bias,
                               uint32_t n); /* y + bias (NULL: none), before the last n */
/* Zeros before and behind x along d, as a convolution pads: see mask_frames. */
const pt_tensor *pt_frame(sc *c, const pt_tensor *x, uint32_t d, sx before, sx behind);
/* A table of this size is read or written at `index`, whose values are in [0, size). From here come
 * what a proof knows of them and the range in which samples are drawn (index_ranges.c): every
 * definition that takes an index says so. */
void pt_bound_index(sc *c, const pt_tensor *index, sx size);
/* The same where others have a value too: from -size on, counted from the end; or `besides`, a
 * number that names no row (0: none). */
void pt_bound_index_else(sc *c, const pt_tensor *index, sx size, bool from_end, sx besides);
/* An index that may count from the end of `size`, from 0 on; its bound is told. */
const pt_tensor *pt_from_end(sc *c, const pt_tensor *index, sx size);
const pt_tensor *pt_pick(sc *c, const pt_tensor *table, const pt_tensor *index, uint32_t d);
const pt_tensor *pt_unary(sc *c, const pt_tensor *x, sx (*f)(sc *c, sx x));
const pt_tensor *pt_repeat_each(sc *c, const pt_tensor *x, uint32_t d, sx times);
const pt_tensor *pt_softmax(sc *c, const pt_tensor *x, uint32_t d, bool safe);
const pt_tensor *pt_rms(sc *c, const pt_tensor *x,
                        sx eps); /* x / sqrt(mean x^2 + eps) over the last dimension */
const pt_tensor *pt_attention(sc *c, const pt_tensor *q, const pt_tensor *k, const pt_tensor *v,
                              sx scale, bool causal, const pt_tensor *mask);
const pt_tensor *pt_grouped(sc *c, const pt_tensor *k, sx heads);
sx sx_sigmoid(sc *c, sx x);
sx sx_tanh(sc *c, sx x);
sx sx_silu(sc *c, sx x);
sx sx_gelu(sc *c, sx x);
sx sx_gelu_tanh(sc *c, sx x);
sx sx_prod_dims(sc *c, const sx *d, uint32_t n);
void pt_note(sc *c, const char *op);

/* The value of a cut term, of which `v` is what its definition says. Where it is none: v. */
const pt_value *sc_cut_value(sc *c, const rule_term *t, const pt_value *v);
/* The sizes that look->noted asks for, of the terms that have a value here. */
void sc_note_sizes(sc *c);
/* Whether a and b, of the same sizes, have other numbers at some element, for some values of all
 * that is free. No proof of anything: it spares the normal form of what is not equal. */
bool sc_differ_in_numbers(sc *c, const pt_tensor *a, const pt_tensor *b);
/* One attempt at a rule, looked at in one way. Returns: in `out` whether it is proved. Errors:
 * ISO_NOMEM; ISO_LIMIT where Z3 overran. */
ISO_MUST_USE iso_code sc_attempt(const rule *r, rule_schemas *schemas, const val_options *o,
                                 const sc_look *look, sc_certificate *certify, sc_sight *sight,
                                 rule_verdict *out, iso_error *err);
/* The work that an answer may take with these options. */
int64_t sc_budget(const val_options *o);
void sc_forget_certificates(sc_certificate *k);
/* Prove a rule for all sizes that it leaves open. `read_literals`: see pt_literal. `sight` (may be
 * NULL): whether that, or else its opposite, could have had another answer; and the work of all
 * attempts. */
ISO_MUST_USE iso_code sc_prove(const rule *r, rule_schemas *schemas, const val_options *o,
                               bool read_literals, sc_certificate *certify, rule_verdict *out,
                               sc_sight *sight, iso_error *err);
/* val_prove, and the work that it was. */
ISO_MUST_USE iso_code sc_prove_read(const rule *r, rule_schemas *schemas, const val_options *o,
                                    rule_verdict *out, int64_t *work, iso_error *err);
char *sx_print(sc *c, sx x); /* for reading; malloc'ed */

/* ---- for tests: definitions as numbers ---- */

/* `sym[i]` is the value of symbol i. NaN where it has none, or takes too long. */
double sc_number(sc *c, sx x, const double *sym);
/* The same in `most` steps, which count as work; NaN where they are not enough. */
double sc_number_within(sc *c, sx x, const double *sym, size_t most);
/* Numbers at which definitions are looked at: of a rule's sizes and integer attributes, and of its
 * variables' elements. */
typedef struct sc_point {
  size_t n;
  const char *const *name;
  const int64_t *value;
  double (*value_of)(void *ctx, uint32_t var, const int64_t *idx);
  void *ctx;
} sc_point;
/* The left side of a rule, element by element from its definitions, by the case of a proof that the
 * numbers meet. NaN where a function's argument is not in its domain. Returns: false where the
 * definitions do not cover it (`reason`, 200 bytes), with `undefined` where they say that it has no
 * value. Owns: malloc'ed numbers in `out`. */
bool sc_values(const rule *r, rule_schemas *schemas, const sc_point *at, rule_shape *shape,
               char *kind, double **out, bool *undefined, char *reason);

#endif
