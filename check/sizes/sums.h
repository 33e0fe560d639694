/* Sizes over symbols, as the checker computes with them: polynomials over atoms. An atom is a
 * symbol, or an expression that is not a polynomial (a quotient rounded down, the lesser of two).
 * Every answer "yes" holds for all values that the symbols may have; "no" means that nothing shows
 * it. */
#ifndef CHECK_SIZES_SUMS_H
#define CHECK_SIZES_SUMS_H

#include "rules/rules.h"

enum { CHK_ATOMS = 24, CHK_PRODUCTS = 24, CHK_DEGREE = 8 };

typedef struct chk_product {
  int64_t by;
  uint8_t power[CHK_ATOMS]; /* of each atom */
} chk_product;

/* Products in the order of their powers, none times 0: equal polynomials are equal sums. */
typedef struct chk_sum {
  uint32_t n;
  chk_product of[CHK_PRODUCTS];
} chk_sum;

typedef struct chk_atom {
  const char *name; /* of a symbol; NULL: `op` of a and b */
  char op;          /* '/', '%', '<' the lesser, '>' the greater */
  chk_sum a, b;
  int64_t min, max; /* INT64_MIN, INT64_MAX: nothing bounds it */
} chk_atom;

typedef struct chk_atoms {
  uint32_t n;
  chk_atom of[CHK_ATOMS];
} chk_atoms;

/* The meaning of names. Returns: NULL where that is not known. */
typedef struct chk_meaning {
  const chk_sum *(*of)(const void *ctx, const char *name);
  const void *ctx;
} chk_meaning;

/* Returns: false where there are too many. */
bool chk_atom_symbol(chk_atoms *x, const char *name, int64_t min, int64_t max, chk_sum *out);
/* The sum that an INT, NAME or EXPR is (capture/capture.h says which EXPR there are). Returns:
 * false where that cannot be said. */
bool chk_sum_read(chk_atoms *x, const rule_term *t, const chk_meaning *names, chk_sum *out);
bool chk_sum_equal(const chk_sum *a, const chk_sum *b);
bool chk_sum_is_number(const chk_sum *a, int64_t *out);
/* Whether a >= b + by for all values of the symbols. */
bool chk_sum_at_least(const chk_atoms *x, const chk_sum *a, const chk_sum *b, int64_t by);
bool chk_sum_times(const chk_sum *a, const chk_sum *b, chk_sum *out);
/* At values of the symbols, by atom. Returns: false where that leaves 64 bits. */
bool chk_sum_at(const chk_atoms *x, const chk_sum *a, const int64_t *value, int64_t *out);
/* In the rule language. Returns: NULL where it is no polynomial over symbols, or without memory. */
const rule_term *chk_sum_term(const chk_atoms *x, const chk_sum *a, iso_arena *arena);

#endif
