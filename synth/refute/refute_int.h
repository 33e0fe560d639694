/* Private to synth/refute/: runs of both sides, margins for rounding, and draws of leaves. */
#ifndef SYNTH_REFUTE_INT_H
#define SYNTH_REFUTE_INT_H

#include "synth/joint/joint.h"
#include "synth/refute/refute.h"

static inline iso_code st_no_memory(iso_error *err) {
  return iso_fail(err, ISO_NOMEM, "out of memory");
}

/* ---- runs (runs.c) ---- */

/* Room for a value of each leaf of both sides; false: no memory. `leaf` is to be freed. */
bool st_new_leaves(const state *s, rule_tensor **leaf[2]);
/* The leaves' values on draw `d`. Owns: st_free_leaves, also after an error. */
iso_code st_leaves_of_draw(state *s, size_t d, rule_tensor **leaf[2], iso_error *err);
void st_free_leaves(const state *s, rule_tensor **leaf[2]);
iso_code st_run_both(state *s, rule_tensor **const leaf[2], bool keep_all, st_run run[2],
                     iso_error *err);
/* The value of output `k`, NULL: it has none. */
static inline const rule_tensor *st_output(const state *s, int side, const st_run *r, size_t k) {
  const st_value_list *v = &r->value[s->graph[side]->output[k].node];
  return v->n ? v->v[0] : NULL;
}

/* ---- margins for rounding (rounding.c) ---- */

typedef struct st_margin {
  double rel,
      noise; /* differences must exceed rel * the slice's norm and noise * the move by rounding */
  bool nonfinite; /* NaN or infinity on one side only counts */
} st_margin;
/* The first output (of the left) that differs beyond rounding between two runs from the given
 * leaves. `streams`: numbers of its own. */
iso_code st_differs(state *s, rule_tensor **const leaf[2], const st_run base[2], st_margin sc,
                    uint64_t streams, st_difference *out, iso_error *err);

/* ---- draws (draw_leaves.c) ---- */

/* Kinds of draws: the listed ones, then some at random. */
enum {
  ST_DRAW_KINDS = 25,
  ST_DRAWS = ST_DRAW_KINDS + 8,
  ST_TIES_DRAW = 5,
  ST_ZERO_ROW_DRAW = 21,
  ST_VECTORS_DRAW = 12,  /* of both signs */
  ST_NEGATIVE_DRAW = 13, /* parameters */
  ST_ALL_NEGATIVE_DRAW = 23,
  ST_SIGNS_DRAW = ST_DRAWS, /* after the random ones, for calls that some signs make undefined */
  ST_SIGNS = 10,
  ST_ZERO_SIGNS_DRAW = ST_SIGNS_DRAW + ST_SIGNS, /* after those, zeros of either sign */
  ST_ZERO_SIGNS = 4,
  ST_ZEROS_DRAW = ST_DRAW_KINDS - 1,
  ST_LITERALS = 16
};
typedef struct st_drawing {
  state *s;
  size_t k;         /* number of the draw */
  rule_tensor **of; /* by class: its value on this draw */
  double literal[ST_LITERALS];
  size_t n_literal;
  bool undefined;  /* NaN on one side only counts */
  st_poles *poles; /* NULL, or inputs are drawn there */
  bool plain;      /* of poles: this leaf has none on this draw */
  bool large;      /* inputs, and parameters now and then, are so large that products overflow */
} st_drawing;
/* The first output that is not the same on both sides, numbers but for rounding and none at the
 * same places; the number of outputs: none (overflow.c). */
size_t st_parted(const state *s, const st_run run[2]);
/* Whether a number among the operands of `t` is infinite, or none (overflow.c). */
bool st_infinite_operand(const rule_term *t, const st_run *run);
/* The value of a leaf on large draw `k` (overflow.c). Owns: `out`. */
iso_code st_draw_large(size_t k, rule_tensor *captured, iso_rng *rng, rule_tensor **out,
                       iso_error *err);
/* The numbers that the graph compares with. */
void st_collect_literals(st_drawing *h, const rule_term *t);
/* All leaves' values on this draw, borrowed from h->of. */
iso_code st_draw_all(st_drawing *h, rule_tensor **leaf[2], iso_error *err);
/* Forget them, before the next draw. */
void st_forget_draw(st_drawing *h);
/* The class of `e` has this value. */
void st_preset(st_drawing *h, eg_node e, rule_tensor *v);
/* The leaves of a draw, except those that stay as captured. */
iso_code st_leaves_as_loaded(state *s, size_t d, rule_tensor **leaf[2], iso_error *err);

#endif
