/* Private to this folder: the steps of st_relate_constants. */
#ifndef SYNTH_CONSTANTS_CONSTANTS_INT_H
#define SYNTH_CONSTANTS_CONSTANTS_INT_H

#include "synth/comparison.h"

/* The constants at hand, one of each class; which of them need no relation any more. */
typedef struct cn_list {
  const eg_node *all;
  size_t n;
  bool *related;
} cn_list;

/* ---- constants.c ---- */
/* `e` joins the class of one of all[0 .. n) that has the same value, or becomes the next of them.
 */
iso_code cn_join_equal(state *s, eg_node *all, size_t *n, eg_node e, iso_error *err);

/* The real or the imaginary part of a constant, as relate_parts adds it. */
bool cn_is_part(const state *s, eg_node e);

/* ---- equal.c ---- */
double cn_epsilon(rule_dtype d);
/* On every set; not where signs of zeros tell them apart. */
bool cn_alike(const state *s, eg_node a, eg_node b);
/* Bit for bit. */
bool cn_identical(const state *s, eg_node a, eg_node b);
iso_code cn_note(state *s, eg_node l, eg_node r, const char *relation, iso_error *err);
/* Two that agree to 2 ulp, as same_constants has it: equal, or apart by nothing but rounding. That
 * is noted. `relation`: `b` in words, as a layout of a captured constant; NULL: it is one. */
iso_code cn_note_agreement(state *s, eg_node a, eg_node b, const char *relation, bool *fine,
                           iso_error *err);
/* Two inputs that were captured with the same values are two inputs all the same. */
bool cn_two_inputs(state *s, eg_node a, eg_node b);
/* Merge constants that may differ by 2 ulp of a captured dtype: more than float64's tolerance, so
 * that one value goes first. */
iso_code cn_merge(state *s, eg_node a, eg_node b, iso_error *err);

/* ---- layouts.c ---- */
/* Constant `self` of those at hand as a layout of the other side's; `smaller`: only of ones with
 * fewer elements. */
iso_code cn_relate_layout(state *s, const cn_list *at, size_t self, bool smaller, iso_error *err);

/* ---- tiled.c ---- */
/* Rows of constant `k` of those at hand as tiles that the other side has, beside one another. */
iso_code cn_relate_tiled(state *s, const cn_list *at, size_t k, iso_error *err);

/* ---- written_out.c ---- */
iso_code cn_relate_triangle(state *s, eg_node e, iso_error *err);
/* For rules that hold for these numbers only. */
iso_code cn_relate_numbers(state *s, eg_node e, iso_error *err);
/* An input of zeros and ones (which tokens are padding) is one of truth values: a rule that
 * compares it with 0 on one side and subtracts it from 1 on the other holds for those, and for no
 * other integers. Where it is the same on every set, it is its numbers, too. */
iso_code cn_relate_flags(state *s, eg_node e, iso_error *err);
/* A stored mask that is added is one that chooses: by truth values that the other side may have. */
iso_code cn_relate_hiding(state *s, eg_node e, eg_node *all, size_t *n, iso_error *err);

#endif
