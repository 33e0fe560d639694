/* Private to the prover's comparison: steps that bring a difference nearer to 0. Each returns one
 * that is 0 where the given one is. */
#ifndef VALIDATE_EQUAL_INT_H
#define VALIDATE_EQUAL_INT_H

#include "validate/prove/prove.h"

enum { SC_MAX_ATOMS = 64, SC_MAX_ROUNDS = 12 };

/* ---- atoms and powers (equal_powers.c) ---- */

/* The atoms of d, in `out` (room for SC_MAX_ATOMS). Returns: how many. */
size_t sc_atoms(const sc *c, sx d, sx *out);
/* D with the atom u taken for v. */
sx sc_replaced(sc *c, sx d, sx u, sx v);
/* D times the least power of sums that takes them out of its denominators. */
sx sc_without_denominators(sc *c, sx d);
/* 1/s written with care for s = 0 is 1/s where the other side divides by s. */
sx sc_plain_inverses(sc *c, sx d);
/* (x y)^q where x and y have roots of their own here, and log(x y) where they have logarithms: they
 * are not negative. Where only |x| has one it takes x's place: x y, of which there is a root, is |x
 * y|. */
sx sc_split_products(sc *c, sx d);
sx sc_powers_apart(sc *c, sx d);
/* Rewrites the element of a row at the place of its largest or smallest one as that one. */
sx sc_extremes(sc *c, sx d);

/* ---- angles (equal_angles.c) ---- */

/* sin(a + b) and cos(a + b) by those of a and b, and sin^2 as 1 - cos^2. */
sx sc_angles_apart(sc *c, sx d);

/* ---- numbers (apart.c) ---- */

/* Whether the two differ at a point that the hypotheses admit. false: that is not known. */
bool sc_differs(sc *c, sx a, sx b);

/* ---- binders (equal_sums.c) ---- */

/* Two sums that are one but for the range of one index: the longer one is the shorter one, its
 * beginning, and the rest. */
bool sc_split_range(sc *c, sx u, sx v, sx *out);
/* u written with v's indices: an index run from its end, or taken as two. */
bool sc_rewritten(sc *c, sx u, sx v);
/* The same where v is the beginning of u or its end, run either way; the order of the indices in a
 * block depends on their ranges. */
bool sc_split_anywhere(sc *c, sx u, sx v, sx *out);
/* A sum v over chunks and the places in one as a sum over all places, as u is one, however far. */
bool sc_in_one(sc *c, sx u, sx v, sx *out);
bool sc_empty_sum(sc *c, sx u);
/* The summand of a polynomial of several sums over the same ranges, with choices where sums have
 * brackets. The polynomial is 0 where that is 0 at all indices. */
bool sc_one_body(sc *c, sx d, sx *out);
sx sc_all_unrolled(sc *c, sx d);

#endif
