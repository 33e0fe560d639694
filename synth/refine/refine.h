/* Private to synth/refine/: left outputs as put together from right outputs, by value. */
#ifndef SYNTH_REFINE_REFINE_H
#define SYNTH_REFINE_REFINE_H

#include "synth/comparison.h"

enum { ST_MAX_PARTS = 64 };

typedef struct st_refiner {
  state *s;
  iso_arena *arena; /* of the terms that are found */
  size_t n_draws;
  rule_tensor *const *left;  /* by left output and draw, in float64 where floating */
  rule_tensor *const *right; /* by right output and draw */
} st_refiner;

/* A candidate for an output: a term over right outputs, with the shape of its value. */
typedef struct st_piece {
  const rule_term *term;
  rule_shape shape;
} st_piece;

/* ---- value.c ---- */
/* The term's value on a draw. Owns: the caller unrefs. */
iso_code st_piece_value(const st_refiner *x, const rule_term *t, size_t draw, rule_tensor **out,
                        iso_error *err);
/* Whether the term is left output `left` on every draw, but for sizes 1. In `scale` (may be NULL):
 * the number by which it is multiplied where that is so, 0 where it is not. */
iso_code st_holds(const st_refiner *x, uint32_t left, const rule_term *t, bool *holds,
                  double *scale, iso_error *err);
/* Whether `a` is `b` times a number: that in `scale`, found where it is NAN and else held against;
 * 0 where it is not, and where both are zero. */
iso_code st_multiple(const st_refiner *x, const rule_tensor *a, const rule_tensor *b, double *scale,
                     iso_error *err);
rule_tensor *st_left_value(const st_refiner *x, uint32_t left, size_t draw);
rule_tensor *st_right_value(const st_refiner *x, uint32_t right, size_t draw);

/* ---- surprise.c ---- */
/* Why the relation of a left output is odd, a line (static); NULL: it is not. */
const char *st_surprise(const synth_graph *left, const synth_graph *right, uint32_t output,
                        const rule_term *t);

/* ---- apart.c ---- */
/* An element of left output `left` that no rearrangement of right outputs, nor of sums of some, can
 * give: in `out`. */
iso_code st_seek_apart(const st_refiner *x, uint32_t left, size_t n_right, synth_found *out,
                       iso_error *err);

/* ---- given.c ---- */
/* Whether ranks were given a leaf of the wanted shape so: its parts, put in the places of the right
 * outputs of their ranks in the term, are a leaf of the left graph. */
iso_code st_given_so(const st_refiner *x, const rule_term *t, const rule_shape *want, bool *yes,
                     iso_error *err);

/* ---- together.c ---- */
/* A term that puts the pieces together to left output `left`: concatenations and sums of
 * neighbours, in the ranks' order, every piece once; or in the order of a mesh gone through from
 * the outside, where leaves are given so. By value, or with `by_shape` by shapes alone. Returns: in
 * `out` NULL where there is none; with `scale` (NULL: not asked for) the best that holds but for a
 * factor, and that factor. */
iso_code st_put_together(const st_refiner *x, uint32_t left, const st_piece *piece, size_t n,
                         bool by_shape, const rule_term **out, double *scale, iso_error *err);

#endif
