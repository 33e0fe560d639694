/* Symbolic sizes, which a capture writes as "2*T + 1" and a rule as (* 2 size0), and facts that
 * hold of them for all values that the symbols may have.
 *
 * A sum is a polynomial over atoms in one order, so that equal polynomials are equal sums. An atom
 * is a symbol with the range of its values, or an expression that is no polynomial (a quotient
 * rounded down, the lesser of two), which is an unknown number within bounds. A sum that cannot be
 * represented (too many products, a number that leaves 64 bits) gives "no": every answer "yes"
 * holds for all values, and "no" means only that nothing shows it. */
#ifndef SYNTH_SCOPE_SIZES_H
#define SYNTH_SCOPE_SIZES_H

#include "rules/rules.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { SIZE_DEGREE = 7, SIZE_PRODUCTS = 24, SIZE_ATOMS = 250 };

typedef struct size_product {
  int64_t by;
  uint8_t n, of[SIZE_DEGREE]; /* atoms, ascending; one may be there several times */
} size_product;

typedef struct size_sum {
  uint32_t n; /* 0: the number 0 */
  size_product of[SIZE_PRODUCTS];
} size_sum;

typedef struct size_atom {
  const rule_term *as; /* a NAME, or the expression that it stands for */
  int64_t min, max;    /* INT64_MIN, INT64_MAX: nothing bounds it */
} size_atom;

typedef struct size_space {
  iso_arena *arena; /* borrowed */
  uint32_t n;
  size_atom atom[SIZE_ATOMS];
} size_space;

/* The meaning of names in a term. */
typedef struct size_names {
  bool (*value)(const void *ctx, const char *name, size_sum *out); /* false: it has no size */
  const void *ctx;
} size_names;

size_sum size_number(int64_t x);
/* A symbol, as an atom of its own. Returns: false where there is no room. */
bool size_symbol(size_space *s, const char *name, int64_t min, int64_t max, size_sum *out);
/* The sum that an INT, NAME or EXPR is ("+", "-", "*", "//", "%", "min", "max"; "bound" and "wrap"
 * of capture/capture.h). Returns: false where it is none that can be spoken of. */
bool size_read(size_space *s, const rule_term *t, const size_names *names, size_sum *out);
bool size_equal(const size_sum *a, const size_sum *b);
/* Whether it is this number at all sizes. */
bool size_is_number(const size_sum *a, int64_t *x);
/* Whether a >= b + by for all values of the symbols. */
bool size_at_least(const size_space *s, const size_sum *a, const size_sum *b, int64_t by);
/* As INT, NAME or EXPR of "+" and "*", in which each atom is as it was read. Returns: NULL where
 * there is no memory. */
const rule_term *size_term(const size_space *s, const size_sum *a);
/* Whether every atom is a symbol. */
bool size_is_polynomial(const size_space *s, const size_sum *a);

#ifdef __cplusplus
}
#endif
#endif
