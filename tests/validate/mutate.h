/* Included before a file of definitions, so that each place where it combines expressions can be
 * made to do it wrongly: the mutants of test_prove_mutants.c. A place is named by its file
 * (MUTANT_FILE) and its number within the file. */
#ifndef TESTS_VALIDATE_MUTATE_H
#define TESTS_VALIDATE_MUTATE_H

#include "validate/ops/ops.h"

/* Notes that the place was passed; returns whether it is the one that is wrong now. */
bool mutant_here(int site, const char *file, int line, const char *what);

enum { MUTANTS_PER_FILE = 1000 };
#define MUTANT_PLACE int site, const char *file, int line
#define MUTANT_NOW (MUTANT_FILE * MUTANTS_PER_FILE + __COUNTER__), __FILE__, __LINE__
#define MUTANT_BINARY(NAME, WRONG) \
  static inline sx mutant_##NAME(MUTANT_PLACE, sc *c, sx a, sx b) { \
    return mutant_here(site, file, line, #NAME) ? (WRONG) : NAME(c, a, b); \
  }
#define MUTANT_UNARY(NAME, WRONG) \
  static inline sx mutant_##NAME(MUTANT_PLACE, sc *c, sx a) { \
    return mutant_here(site, file, line, #NAME) ? (WRONG) : NAME(c, a); \
  }

#pragma GCC diagnostic ignored "-Wunused-function"
MUTANT_BINARY(sx_add, sx_sub(c, a, b))
MUTANT_BINARY(sx_sub, sx_add(c, a, b))
MUTANT_BINARY(sx_mul, sx_add(c, a, b))
MUTANT_BINARY(sx_max, sx_min(c, a, b))
MUTANT_BINARY(sx_min, sx_max(c, a, b))
MUTANT_BINARY(sx_lt, sx_le(c, a, b))
MUTANT_BINARY(sx_le, sx_lt(c, a, b))
MUTANT_BINARY(sx_eq, sx_not(c, sx_eq(c, a, b)))
MUTANT_BINARY(sx_and, sx_or(c, a, b))
MUTANT_BINARY(sx_or, sx_and(c, a, b))
MUTANT_BINARY(sx_sum, sx_scale(c, pv_q_int(&c->q, 2), sx_sum(c, a, b)))
MUTANT_BINARY(sx_largest, sx_neg(c, sx_largest(c, a, sx_neg(c, b))))
MUTANT_BINARY(sx_div, sx_add(c, sx_div(c, a, b), c->one))
MUTANT_BINARY(sx_mod, sx_div(c, a, b))
MUTANT_UNARY(sx_neg, a)
MUTANT_UNARY(sx_inv, a)
MUTANT_UNARY(sx_sqrt, a)
MUTANT_UNARY(sx_exp, a)
MUTANT_UNARY(sx_log, a)
MUTANT_UNARY(sx_abs, a)
MUTANT_UNARY(sx_not, a)

static inline sx mutant_sx_ite(MUTANT_PLACE, sc *c, sx g, sx a, sx b) {
  return mutant_here(site, file, line, "sx_ite") ? sx_ite(c, g, b, a) : sx_ite(c, g, a, b);
}
static inline sx mutant_sx_int(MUTANT_PLACE, sc *c, int64_t i) {
  return sx_int(c, i + mutant_here(site, file, line, "sx_int"));
}
static inline sx mutant_sx_double(MUTANT_PLACE, sc *c, double f) {
  return sx_double(c, f + (mutant_here(site, file, line, "sx_double") ? 0.015625 : 0));
}
static inline sx mutant_sx_powi(MUTANT_PLACE, sc *c, sx a, int64_t k) {
  return sx_powi(c, a, k + mutant_here(site, file, line, "sx_powi"));
}
static inline sx mutant_sx_scale(MUTANT_PLACE, sc *c, uint32_t q, sx a) {
  return mutant_here(site, file, line, "sx_scale") ? sx_neg(c, sx_scale(c, q, a))
                                                   : sx_scale(c, q, a);
}

#define sx_add(...) mutant_sx_add(MUTANT_NOW, __VA_ARGS__)
#define sx_sub(...) mutant_sx_sub(MUTANT_NOW, __VA_ARGS__)
#define sx_mul(...) mutant_sx_mul(MUTANT_NOW, __VA_ARGS__)
#define sx_max(...) mutant_sx_max(MUTANT_NOW, __VA_ARGS__)
#define sx_min(...) mutant_sx_min(MUTANT_NOW, __VA_ARGS__)
#define sx_lt(...) mutant_sx_lt(MUTANT_NOW, __VA_ARGS__)
#define sx_le(...) mutant_sx_le(MUTANT_NOW, __VA_ARGS__)
#define sx_eq(...) mutant_sx_eq(MUTANT_NOW, __VA_ARGS__)
#define sx_and(...) mutant_sx_and(MUTANT_NOW, __VA_ARGS__)
#define sx_or(...) mutant_sx_or(MUTANT_NOW, __VA_ARGS__)
#define sx_sum(...) mutant_sx_sum(MUTANT_NOW, __VA_ARGS__)
#define sx_largest(...) mutant_sx_largest(MUTANT_NOW, __VA_ARGS__)
#define sx_div(...) mutant_sx_div(MUTANT_NOW, __VA_ARGS__)
#define sx_mod(...) mutant_sx_mod(MUTANT_NOW, __VA_ARGS__)
#define sx_neg(...) mutant_sx_neg(MUTANT_NOW, __VA_ARGS__)
#define sx_inv(...) mutant_sx_inv(MUTANT_NOW, __VA_ARGS__)
#define sx_sqrt(...) mutant_sx_sqrt(MUTANT_NOW, __VA_ARGS__)
#define sx_exp(...) mutant_sx_exp(MUTANT_NOW, __VA_ARGS__)
#define sx_log(...) mutant_sx_log(MUTANT_NOW, __VA_ARGS__)
#define sx_abs(...) mutant_sx_abs(MUTANT_NOW, __VA_ARGS__)
#define sx_not(...) mutant_sx_not(MUTANT_NOW, __VA_ARGS__)
#define sx_ite(...) mutant_sx_ite(MUTANT_NOW, __VA_ARGS__)
#define sx_int(...) mutant_sx_int(MUTANT_NOW, __VA_ARGS__)
#define sx_double(...) mutant_sx_double(MUTANT_NOW, __VA_ARGS__)
#define sx_powi(...) mutant_sx_powi(MUTANT_NOW, __VA_ARGS__)
#define sx_scale(...) mutant_sx_scale(MUTANT_NOW, __VA_ARGS__)

#endif
