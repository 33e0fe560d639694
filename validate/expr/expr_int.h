/* Private to validate/expr/: helpers that its files share. */
#ifndef VALIDATE_EXPR_INT_H
#define VALIDATE_EXPR_INT_H

#include "validate/expr/expr.h"

enum { SX_MAX_STACK = 1 << 22, SX_MAX_BLOCK = 8, SX_MAX_DEPTH = 300 };

/* ---- integers ---- */

static inline int64_t sx_gcd(int64_t a, int64_t b) {
  if (a < 0) a = -a;
  if (b < 0) b = -b;
  while (b) {
    const int64_t t = a % b;
    a = b;
    b = t;
  }
  return a;
}
static inline int64_t sx_floor_div(int64_t a, int64_t b) {
  return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

/* ---- polynomials ---- */

/* A pair of words on the scratch stack: a coefficient and a monomial, or a base and an exponent. */
static inline void sx_push(sc *c, uint32_t a, uint32_t b) {
  if (c->store.sp >= SX_MAX_STACK) {
    sc_fail(c, "an expression with too many terms");
    return;
  }
  c->store.stack[2 * c->store.sp] = a;
  c->store.stack[2 * c->store.sp + 1] = b;
  c->store.sp++;
}
/* Factors from `start` to the stack's top, times q. */
sx sx_product_finish(sc *c, size_t start, uint32_t q);
/* Made of sizes, attributes and indices: in normal form also where elements are written as the
 * definitions give them. */
bool sx_of_sizes(const sc *c, const sx *a, size_t n);
/* Exponent of `b` in monomial m. */
uint32_t sx_exponent_in(const sc *c, sx m, sx b);
/* The sign of a - b, of rationals. */
int sx_q_compare(sc *c, uint32_t a, uint32_t b);

/* ---- a polynomial by one radix (radix.c) ---- */

/* The part of term i that a division could take out: its coefficient and sizes. */
sx sx_radix_at(sc *c, sx p, size_t i);
/* p = e * r + s: the terms that e divides, and the rest. */
void sx_split_by(sc *c, sx p, sx e, sx *r, sx *s);
/* 0 <= s < e. */
bool sx_in_range(sc *c, sx s, sx e);
/* p = e r + s with s + t e in [0, e): p < 0 exactly where r < t, p = 0 where r = t and s + t e = 0.
 */
bool sx_split_radix(sc *c, sx p, sx *r, sx *s);

/* p times a positive number: integer coefficients without a common divisor; positive factors common
 * to all terms taken off. */
sx sx_scaled(sc *c, sx p);

/* ---- binders ---- */

static inline sx sx_range_of(const sc *c, sx k) { return c->store.sym[sc_word(c, k, 0)].high; }
/* x with names put for others; `raw`: nothing is simplified, binders stay closed. */
sx sx_with_map(sc *c, sx x, const sx_map *map, size_t n, bool raw);
/* A binder over the n indices k of one body, in the order that gives the least hash. */
sx sx_close_block(sc *c, sx_op op, sx body, sx *k, uint32_t n);
/* The index in two, where a division takes it apart. */
bool sx_index_in_two(sc *c, sx k, sx body, sx (*f)(sc *c, sx k, sx body), sx *out);

/* Where a condition on the index k changes. */
typedef struct sx_cut {
  sx at;      /* k < at on the lower side */
  bool lower; /* the condition holds there */
  bool point; /* k = at */
} sx_cut;
bool sx_cut_of(sc *c, sx g, sx k, sx_cut *out);
/* Over [from, from + n) of the index. */
sx sx_over(sc *c, sx k, sx body, sx from, sx n, sx (*f)(sc *c, sx k, sx body));

#endif
