/* Writing proof obligations as SMT-LIB: what is shared between the parts (obligation.c says what
 * they are). */
#ifndef VALIDATE_CERTIFY_INT_H
#define VALIDATE_CERTIFY_INT_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "egraph/base/vec.h"
#include "validate/prove/prove.h"

enum {
  CERT_MAX_SUMS = 160,
  CERT_MAX_PAIRS = 240,
  CERT_MAX_LINES = 8000,
  CERT_NAME_BYTES = 72,
  CERT_MAX_EXPS = 10,
  CERT_MAX_PLACES = 8
};

typedef struct cert_sum {
  sx id;
  unsigned side;     /* 1 left, 2 right */
  bool told;         /* an axiom takes it apart */
  bool cut;          /* where another one ends */
  uint64_t contents; /* which variables' elements it has */
} cert_sum;

/* What stands for an expression in a line: "t12". */
typedef struct cert_name {
  char s[CERT_NAME_BYTES];
} cert_name;

/* What is told of the two sides, tried in this order. */
typedef enum cert_how {
  CERT_PLAIN,
  CERT_CLEAR, /* and both over one denominator */
  CERT_WHOLE, /* products of sums are left as they are: for others they are too many */
  CERT_HOWS
} cert_how;

typedef struct cert_writer {
  sc *c;
  FILE *f;
  char (*memo)[CERT_NAME_BYTES]; /* by expression: what stands for it */
  size_t cap_memo;
  cert_sum sum[CERT_MAX_SUMS];
  size_t n_sums, n_lines;
  sx witness[CERT_MAX_PAIRS];
  size_t n_witnesses;
  sx exponent[CERT_MAX_EXPS]; /* of exponentials: which is the larger is told of each two */
  size_t n_exponents;
  sx place[CERT_MAX_PLACES]; /* places in an order */
  size_t n_places;
  cert_how how;
  bool *declared;       /* variables */
  bool fn[32], two[32]; /* functions of one and of two arguments */
  bool sym[1 << 12];
  unsigned side;
  const char *failed;
} cert_writer;

static inline char cert_sort_of(const sc *c, sx x) {
  return sc_flags(c, x) & S_BOOL ? 'b' : sc_flags(c, x) & S_INT ? 'i' : 'r';
}
static inline bool cert_is_fn(const sc *c, sx x, sx_func f) {
  return sc_op(c, x) == X_FN && sc_word(c, x, 0) == f;
}

/* ---- expressions (write.c) ---- */

void cert_give_up(cert_writer *w, const char *why);
void cert_line(cert_writer *w, const char *fmt, ...) ISO_PRINTF(2, 3);
cert_name cert_named(const char *fmt, ...) ISO_PRINTF(1, 2);
cert_name cert_plain_name(char role, const char *s, size_t at);
void cert_spoken_of(const cert_writer *w, char *text,
                    size_t cap);            /* of what it has axioms: "products, sums, exp" */
cert_name cert_write(cert_writer *w, sx x); /* its name, its lines written before */
cert_name cert_real(cert_writer *w, sx x);  /* as a real number */
cert_name cert_product(cert_writer *w, cert_name a, cert_name b);
cert_name cert_within(cert_writer *w, sx x); /* the witnesses in x are within their ranges */
void cert_clear(cert_writer *w, sx x, sx y, cert_name a,
                cert_name b); /* of x and y, written as a and b: the same over one denominator */
sx cert_turned(sc *c,
               sx x); /* a sine or cosine of a sum or multiple as a sum; 0: it is none (turn.c) */
void cert_tell_turn(cert_writer *w, bool sine, sx a,
                    cert_name r); /* of r, the sine or cosine of a (turn.c) */
sx cert_witness(
    cert_writer *w,
    sx high); /* a fresh index, of which the range is said where it is used; 0: no room */

/* ---- axioms (sums.c, order.c) ---- */

void cert_tell_axioms(cert_writer *w);
sx cert_factored(sc *c, sx s); /* a sum as a product of what does not move with its index and the
                                  rest, or as a sum of sums; 0: neither */
/* A sum is positive, or some summand is not. */
void cert_positive_sum(cert_writer *w, sx s);
cert_name cert_place(cert_writer *w, sx x);
void cert_monotone(cert_writer *w, sx a, sx b, int depth);
void cert_tell_orders(cert_writer *w);

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
extern const char *const cert_fn[];
void cert_declare_fn(cert_writer *w, const char *name, int n, const char *to);
cert_name cert_power(cert_writer *w, sx x, uint32_t q);
void cert_collect(cert_writer *w, chain *k, sx x, bool inverse);
cert_name cert_in_order(cert_writer *w, chain k, int *left);
cert_name cert_ordered_power(cert_writer *w, sx x, uint32_t q);

/* ---- numerals (numerals.c) ---- */
void cert_write_rational(cert_writer *w, uint32_t q, bool whole, FILE *f);

#endif
