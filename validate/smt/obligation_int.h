/* Writing proof obligations as SMT-LIB: declarations shared by its parts (obligation.c describes
 * them). */
#ifndef VALIDATE_OBLIGATION_INT_H
#define VALIDATE_OBLIGATION_INT_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "egraph/base/vec.h"
#include "validate/prove/prove.h"

enum {
  SMT_MAX_SUMS = 160,
  SMT_MAX_PAIRS = 240,
  SMT_MAX_LINES = 8000,
  SMT_NAME_BYTES = 72,
  SMT_MAX_EXPS = 10,
  SMT_MAX_PLACES = 8
};

typedef struct smt_sum {
  sx id;
  unsigned side;     /* 1 left, 2 right */
  bool told;         /* an axiom takes it apart */
  bool cut;          /* where another one ends */
  uint64_t contents; /* which variables' elements it has */
} smt_sum;

/* The name of an expression in a line: "t12". */
typedef struct smt_name {
  char s[SMT_NAME_BYTES];
} smt_name;

/* Ways to tell of the two sides, tried in this order. */
typedef enum smt_how {
  SMT_PLAIN,
  SMT_CLEAR, /* and both over one denominator */
  SMT_WHOLE, /* products of sums are left as they are: for others they are too many */
  SMT_HOWS
} smt_how;

typedef struct smt_writer {
  sc *c;
  FILE *f;
  char (*memo)[SMT_NAME_BYTES]; /* by expression: its name */
  size_t cap_memo;
  smt_sum sum[SMT_MAX_SUMS];
  size_t n_sums, n_lines;
  sx skolem[SMT_MAX_PAIRS];
  size_t n_skolems;
  sx exponent[SMT_MAX_EXPS]; /* of exponentials: which is the larger is told of each two */
  size_t n_exponents;
  sx place[SMT_MAX_PLACES]; /* places in an order */
  size_t n_places;
  smt_how how;
  bool *declared;       /* variables */
  bool fn[32], two[32]; /* functions of one and of two arguments */
  bool sym[1 << 12];
  unsigned side;
  const char *failed;
} smt_writer;

static inline char smt_sort_of(const sc *c, sx x) {
  return sc_flags(c, x) & S_BOOL ? 'b' : sc_flags(c, x) & S_INT ? 'i' : 'r';
}
static inline bool smt_is_fn(const sc *c, sx x, sx_func f) {
  return sc_op(c, x) == X_FN && sc_word(c, x, 0) == f;
}

/* ---- expressions (write.c) ---- */

/* No text is written for this proof, and this is why: the first reason stays. */
void smt_give_up(smt_writer *w, const char *why);
/* One line of the text; too many, and it is given up. */
void smt_line(smt_writer *w, const char *fmt, ...) ISO_PRINTF(2, 3);
smt_name smt_named(const char *fmt, ...) ISO_PRINTF(1, 2);
/* A name that SMT-LIB takes, of a symbol of that role; `at` tells those of one name apart. */
smt_name smt_plain_name(char role, const char *s, size_t at);
void smt_spoken_of(const smt_writer *w, char *text,
                   size_t cap);          /* the functions that have axioms: "products, sums, exp" */
smt_name smt_write(smt_writer *w, sx x); /* its name, its lines written before */
smt_name smt_real(smt_writer *w, sx x);  /* as a real number */
smt_name smt_product(smt_writer *w, smt_name a, smt_name b);
smt_name smt_within(smt_writer *w, sx x); /* the Skolem constants in x are within their ranges */
void smt_clear(smt_writer *w, sx x, sx y, smt_name a,
               smt_name b); /* of x and y, written as a and b: the same over one denominator */
sx smt_turned(sc *c,
              sx x); /* a sine or cosine of a sum or multiple as a sum; 0: it is none (turn.c) */
void smt_tell_turn(smt_writer *w, bool sine, sx a,
                   smt_name r); /* of r, the sine or cosine of a (turn.c) */
sx smt_skolem(smt_writer *w,
              sx high); /* a fresh index, of which the range is said where it is used; 0: no room */

/* ---- axioms (sums.c, order.c) ---- */

void smt_tell_axioms(smt_writer *w);
sx smt_factored(sc *c, sx s); /* a sum as a product of factors that do not depend on its index and
                                 the rest, or as a sum of sums; 0: neither */
/* A sum is positive, or some summand is not. */
void smt_positive_sum(smt_writer *w, sx s);
smt_name smt_place(smt_writer *w, sx x);
void smt_monotone(smt_writer *w, sx a, sx b, int depth);
void smt_tell_orders(smt_writer *w);

/* ---- powers and products (powers.c), names (write.c) ---- */

/* Factors of a product: expressions and inverses of such. */
typedef struct factor {
  sx x;
  bool inverse;
} factor;
typedef struct chain {
  factor f[24];
  size_t n;
  uint32_t coef;
  bool open; /* more than fits, or a power that is no whole one */
} chain;

/* By function: its name in the text; NULL: it has none. */
extern const char *const smt_fn[];
void smt_declare_fn(smt_writer *w, const char *name, int n, const char *to);
smt_name smt_power(smt_writer *w, sx x, uint32_t q);
void smt_collect(smt_writer *w, chain *k, sx x, bool inverse);
smt_name smt_in_order(smt_writer *w, chain k, int *left);
smt_name smt_ordered_power(smt_writer *w, sx x, uint32_t q);

/* ---- numerals (numerals.c) ---- */
void smt_write_rational(smt_writer *w, uint32_t q, bool whole, FILE *f);

#endif
