/* Private to the prover's cases: the hypotheses of a case, the symbols solved for, and the same
 * case in numbers. */
#ifndef VALIDATE_CASES_INT_H
#define VALIDATE_CASES_INT_H

#include "validate/prove/prove.h"

/* The numbers asked for, of one case. */
typedef struct sc_wanted {
  const sc_point *given;
  sc_numbers *out;
} sc_wanted;

typedef struct sc_cases {
  sc *c;
  sc_guess guess[SC_MAX_GUESSES];
  size_t n;
  int seen;        /* cases tried */
  bool some_model; /* one of them had sizes that meet it, and both sides were defined */
  const sc_wanted
      *at; /* only the case that these numbers meet, its left side in numbers; NULL: all, proved */
  char why[200];
} sc_cases;

/* Every case below these hypotheses in which both sides are defined. false: one is open, `why`. */
bool sc_prove_case(sc_cases *k);

/* ---- equations (solve.c) ---- */

enum { SC_MAX_SOLVED = 40 };
/* Solves p = 0 for a name, which is replaced by the solution. */
bool sc_solve(sc *c, sx p);
/* f >= 0 says that an integer attribute is at least k >= 0: it gives way to a symbol of which that
 * is known. */
bool sc_bounded_below(sc *c, sx f);
/* f >= 0 says that an integer attribute is at most k <= 0: minus a symbol of which its least value
 * is known. */
bool sc_bounded_above(sc *c, sx f);

/* ---- in numbers (values.c) ---- */

/* Whether the numbers given meet the case; the left side's elements there, for the caller. */
bool sc_case_meets(sc_cases *k);
bool sc_case_in_numbers(sc_cases *k, const pt_tensor *t);

#endif
