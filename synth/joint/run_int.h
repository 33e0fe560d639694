/* Private to runs of one graph by itself: how roundings are disturbed, and operands that stand in a
 * run as they are stored. */
#ifndef SYNTH_JOINT_RUN_INT_H
#define SYNTH_JOINT_RUN_INT_H

#include "synth/joint/joint.h"

/* ---- disturb.c ---- */
typedef struct st_disturbing {
  double noise;
  bool but_short; /* numbers with few digits stay, where nothing was rounded */
  double least;   /* st_least_operand, with but_short */
  bool faint;     /* what is 0 may have underflowed */
  bool whole;     /* by all of the noise, up or down, so that one number is not left nearly alone */
  st_signs signs; /* of a zero */
} st_disturbing;
/* Values beyond 1e30 (masks) and integers stay. Owns: the caller unrefs; floats are in float64. */
iso_code st_disturbed(const rule_tensor *t, const st_disturbing *how, iso_rng *rng,
                      rule_tensor **out, iso_error *err);
bool st_few_digits(double x, double digits);
double st_up_or_down(iso_rng *rng, bool whole);
/* The least number other than 0 among a call's operands. */
double st_least_operand(const rule_term *t, rule_tensor *const *bind);

/* ---- narrow.c ---- */
enum { ST_WIDE = 4 };
typedef struct st_wide {                  /* operands of one node in float64, for all runs of it */
  rule_tensor *of[ST_WIDE], *is[ST_WIDE]; /* `of` is borrowed */
  uint32_t n;
} st_wide;
/* In `bind`, the call's operands that are stored in narrower floats, in float64. */
iso_code st_widen_operands(const rule_term *call, st_wide *w, unsigned threads, rule_tensor **bind,
                           iso_error *err);
void st_wide_free(st_wide *w);
/* A look-up of few rows of a table that is stored so is bound to a table of just these. Owns: the
 * caller unrefs the `*n` in `own`. */
iso_code st_few_rows(const rule_term *call, rule_tensor **bind, rule_tensor *own[2], size_t *n,
                     iso_error *err);

/* ---- by_rows.c ---- */
typedef struct st_matrix_rows { /* a matrix of which few rows at a time are made, in float64 */
  int64_t n, width;
  iso_code (*give)(void *ctx, int64_t from, int64_t n, rule_tensor **out, iso_error *err);
  void *ctx;
} st_matrix_rows;
/* The variable that is the matrix of a product of which each row makes one column. -1: it is no
 * such call. */
int64_t st_matrix_of(const rule_term *call);
/* Whether one of this shape is worth it. */
bool st_is_matrix(const rule_shape *shape);
/* Such a call, with all but the matrix bound. Owns: the caller unrefs. */
iso_code st_call_by_rows(state *s, const rule_term *call, rule_tensor **bind,
                         const st_matrix_rows *rows, rule_tensor **out, iso_error *err);
typedef struct st_stored { /* `ctx` of st_stored_rows: floats as they are stored */
  const rule_tensor *matrix;
  double noise; /* by which each number is disturbed; 0: not at all */
  iso_rng *rng;
} st_stored;
iso_code st_stored_rows(void *ctx, int64_t from, int64_t n, rule_tensor **out, iso_error *err);
/* The same where the matrix is atom `matrix` on a draw. Requires: what st_draw_rows does. */
iso_code st_call_with_drawn(state *s, const rule_term *call, rule_tensor **bind, eg_node matrix,
                            size_t draw, rule_tensor **out, iso_error *err);

#endif
