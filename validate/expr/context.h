/* The context of a proof: the expressions made so far, the hypotheses of the case at hand, the
 * budget. A constructor that fails says so here (sc_fail), and the reason sticks: every later call
 * gives up, so that callers need not ask after each step. */
#ifndef VALIDATE_EXPR_CONTEXT_H
#define VALIDATE_EXPR_CONTEXT_H

#include "validate/expr/rational.h"
#include "validate/validate.h"

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
  F_PLACE, /* (rank, row): the place of the element of that rank, the largest first */
  F_ADD,
  F_MUL,
  F_POWER,
  F_WRAP, /* of an integer, as 64 bits hold it (wrap.c) */
  F_WRAP_I32,
  F_WRAP_I16,
  F_WRAP_I8,
  F_WRAP_U8,
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
  sx of;   /* of a derived one: the symbol it was derived from */
} sx_sym;

typedef struct sc sc;
typedef struct pt_tensor pt_tensor;           /* (tensor/tensor.h) */
typedef struct sc_memo sc_memo;               /* a term that was evaluated */
typedef struct sc_look sc_look;               /* one way to look at a rule (prove/prove.h) */
typedef struct sc_obligations sc_obligations; /* the obligations of a proof */

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

enum {
  SC_MAX_NODES = 1 << 21,
  SC_MAX_WORDS = 1 << 25,
  SC_TABLE = 1 << 11 /* to begin with */,
  SC_MAX_WORK = 12000000,
  SC_LEAST_WORK = 260000,
  SC_LOOK_WORK = 1 << 16,
  SC_MAX_SYMS = 20000,
  SC_MAX_CUT_SYMS = 3000,
  SC_NO_BOUNDS = 1024
};
enum { SC_MAX_RELATIVE = 16, SC_MAX_CHOICES = 40, SC_MAX_GUESSES = 64, SC_MAX_FACTS = 256 };

/* How literals, masks and integers are read. */
typedef struct sc_reading {
  bool plain; /* real numbers as the definitions give them, not in normal form: for obligations */
  bool mask_frames;   /* zeros around a convolution's input as factors that are 0 or 1, where ranges
                         are cut otherwise */
  bool has_frames;    /* there are such */
  bool has_none;      /* there is a literal that is no number */
  bool read_literals; /* float literals as the roots that they stand for */
  bool readable;      /* there was one that could be read so */
  bool decimals;      /* float literals as the decimals that they are printed as, where these are
                         short: for evaluations */
  bool read_masks;    /* finite masks as minus infinity: then each row of a softmax has to keep an
                         element (mask.c) */
  bool narrow;        /* some integers are not int64 */
  bool machine; /* integers are of 64 bits and wrap: for proofs; else they are whole numbers */
  bool whole, whole_used; /* none wraps: it is noted where one might */
} sc_reading;

/* Expressions and symbols. A node's words are contiguous, and equal nodes are one. */
typedef struct sc_store {
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
} sc_store;

/* The hypotheses of the case at hand. */
typedef struct sc_case {
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
  sx domain[SC_MAX_FACTS]; /* conditions under which the parts are defined */
  size_t n_domain;
  int64_t residues; /* cases by remainders so far, 1 to begin with */
} sc_case;

/* Concatenations of tensors of any shape, and within which part of one an element is. */
typedef struct sc_parts {
  struct {
    uint64_t lead[8];
    size_t n;
    sx dim;
  } join[16]; /* of tensors of any shape */
  size_t n_joins;
  struct {
    size_t join, part;
    uint32_t outer;
  } place[64];
  uint32_t n_places, at_place; /* 0: within none */
} sc_parts;

/* By variable: the values of one that indexes a table. */
typedef struct sc_ranges {
  sx table_size[64];               /* they are in [0, this) */
  sx end_size[64];                 /* or in [-this, this), where they may count from the end */
  sx class_size[64], no_class[64]; /* or in [0, this), or the number that names no class */
  uint64_t lead_of[64];            /* union-find: variables whose leading dimensions are equal */
} sc_ranges;

/* The budget of a proof, and how much of it is spent. */
typedef struct sc_budget_left {
  sc_walk own_walk, *walk; /* the one points to the other: walks leave everything else as it is */
  int64_t work, depth, max_work;
  int64_t next_look; /* work at which to ask `stop` again */
  int ge_depth, ge_left;
  int64_t bounds_work; /* spent on bounds of real numbers, as far as that may go (nonneg.c) */
  size_t bounds_symbols;
  sx no_bound[SC_NO_BOUNDS]; /* numbers for which that was in vain, each at its place */
  uint64_t rlimit;           /* of Z3; the work is bounded in proportion */
} sc_budget_left;

/* Why there is no proof. */
typedef struct sc_fault {
  bool failed, no_memory, undefined; /* undefined: no value in this case */
  bool overran;                      /* Z3: then there is no verdict */
  char reason[200];
} sc_fault;

/* The means that a proof used, for its assumptions. */
typedef struct sc_means {
  bool literal, masks, z3, ties, unsorted, in_parts;
  bool masked; /* an element that was compared may be minus infinity */
} sc_means;

/* Terms that were evaluated, and their tensors. */
typedef struct sc_terms {
  sc_memo *memo;
  size_t n_memo, cap_memo;
  uint32_t n_tensors, next_index;
  struct sc_elem *elems;
  size_t n_elems, cap_elems;
  char *owned[256]; /* names made here */
  size_t n_owned;
  const char *relative[SC_MAX_RELATIVE];
  size_t n_relative;
} sc_terms;

/* Numbers drawn for symbols, by symbol; NaN: none yet. */
typedef struct sc_draws {
  double *sym;
  uint32_t *met; /* the symbols that have one */
  size_t n_met, cap;
} sc_draws;

/* Who is asked or told; each may be NULL. */
typedef struct sc_hooks {
  double (*value_of)(void *ctx, uint32_t var, const int64_t *idx); /* for sc_number */
  void *value_ctx;
  /* Told of each bound of an index; see index_ranges.c. */
  void (*on_index)(sc *c, const pt_tensor *index, sx size, bool from_end, sx besides);
  /* Asked for the value of a term whose operator has no definition. */
  const pt_tensor *(*otherwise)(sc *c, const rule_term *t);
  void *index_ctx;
} sc_hooks;

struct sc {
  const rule *r;
  rule_schemas *schemas;
  const sc_look *look;
  const val_options *o;        /* for `stop` and `scratch`; may be NULL */
  sc_obligations *obligations; /* NULL: not wanted */
  sx zero, one, minus_one, yes, no, neginf;
  sc_reading reading;
  sc_store store;
  sc_case here;
  sc_parts parts;
  sc_ranges ranges;
  sc_budget_left budget;
  sc_fault fault;
  sc_means used;
  sc_terms terms;
  sc_hooks hooks;
  sc_draws draws;
  pv_rationals q;
  iso_arena arena;            /* of this case */
  struct sc_scratch *scratch; /* where node, word and stack are from; NULL: its own */
  struct sc_z3 *z3;           /* made on first need */
};

#endif
