/* Rules, evaluated by code of the checker's own.
 *
 * Both sides of a rule are computed element by element, in balls (ball.h), at the sizes where the
 * certificate uses it and at a few small ones that meet its conditions, on numbers that are drawn:
 * small binary fractions of both signs, positive ones, numbers at and beside the rule's literals,
 * and of many magnitudes. Where two balls do not meet, the rule is false, however it was proved.
 *
 * Operators' definitions, arithmetic, sizes and draws are all its own; nothing of the prover, of
 * the writer of obligations, of libtorch or of the search takes part. Shared are terms, rules and
 * the arithmetic of conditions, which rules/ reads as everywhere. A rule whose sides differ at the
 * sizes and numbers that are tried is refused. This is no proof: a difference that shows only
 * elsewhere (at a number that no draw meets, at other sizes) is not seen, and sides that are
 * undefined (0/0) are not compared.
 *
 * Operators covered: arithmetic, elementwise functions, comparisons and choices, sums and
 * extremes, softmax, products of matrices, convolutions, norms, attention, layouts, tables that
 * are looked up, and the kernels of rules/kernels.def but experts'. Not: sorting, scatters,
 * complex numbers. */
#ifndef CHECK_EVALUATE_EVALUATE_H
#define CHECK_EVALUATE_EVALUATE_H

#include "rules/rules.h"

typedef enum chk_agreement {
  CHK_NOT_EVALUATED, /* an operator has no definition here, or it is too large */
  CHK_AGREES,        /* each element was compared, and is one number on both sides */
  CHK_DIFFERS
} chk_agreement;

typedef struct chk_evaluation {
  chk_agreement agreement;
  size_t n_sizes; /* at which it agrees */
  char why[160];  /* NOT_EVALUATED: the obstacle; DIFFERS: where */
} chk_evaluation;

typedef struct chk_evaluated {
  const rule *r;
  uint32_t n_names; /* sizes and attributes, as the certificate's step has them; 0: drawn */
  const char *const *name;
  const rule_term *const *value;
  rule_tensor *const *example; /* by variable: a value there, or NULL; NULL: none */
  bool reading;                /* float literals stand for numbers near them, */
  bool masks;                  /* and the least ones for minus infinity */
  bool rounded;                /* all float literals of many digits are rounded numbers */
  uint64_t seed;
} chk_evaluated;

/* Errors: ISO_NOMEM. */
ISO_MUST_USE iso_code chk_evaluate(const chk_evaluated *x, chk_evaluation *out, iso_error *err);

#endif
