/* Private to synth/parts/: parts of one tensor that ranks hold. */
#ifndef SYNTH_PARTS_PARTS_H
#define SYNTH_PARTS_PARTS_H

#include "synth/comparison.h"

enum { MAX_RANKS = 64, MOST_WHOLES = 16 };

/* The peers' e-nodes, one of each class, in rank order. */
typedef struct st_parts {
  eg_node of[MAX_RANKS];
  const rule_tensor *value[MAX_RANKS]; /* on the last draw */
  uint32_t n;
  int64_t by;   /* the whole is the parts', divided by this */
  double scale; /* 1 / by */
  bool pieces;  /* of one rank: it adds them up itself, no collective does */
} st_parts;

/* The description of a tensor of the other graph that is looked for. */
typedef struct st_sought {
  int side; /* the parts' */
  int64_t numel;
  double moment[4];
  bool any_terms; /* of a sum that cancels, whatever it adds up (st_wholes) */
  bool met;       /* there is one, */
  eg_node at;     /* this, the first of all */
} st_sought;

/* ---- parts.c ---- */
/* E-nodes of the other graph, one of each class, that fit the description. Returns: how many, at
 * most MOST_WHOLES. Of sums that cancel, which are all 0, those that add up as much as the parts
 * do; another association of the sum may add up other terms: x->any_terms asks for the rest, where
 * none is computed from what the parts are computed from. */
uint32_t st_wholes(state *s, const st_parts *p, const st_sought *x, eg_node *out);
/* Whether two numbers are one but for rounding: elements of a whole and of its parts. */
bool st_near_element(double a, double b);
/* Whether the whole is put together of the parts. */
bool st_is_cut(const rule_tensor *whole, const st_parts *p);
/* Whether it is along a dimension of the parts: in `d`, which. */
bool st_is_cut_along(const rule_tensor *whole, const st_parts *p, uint32_t *d);
/* Joins the parts with the sought tensor, where that is their concatenation. */
iso_code st_join_cut(state *s, const st_parts *p, st_sought *x, iso_error *err);
/* Moments of the concatenation. Returns: its elements. */
int64_t st_moments_of_all(const st_parts *p, double out[4]);
/* Moments of a tensor, times `by`, by its moments. */
void st_scale_moments(const double m[4], double by, double out[4]);
/* The concatenation of the parts along `d`, by value. Owns; NULL: they have none. */
iso_code st_concatenated(const st_parts *p, uint32_t d, rule_tensor **out, iso_error *err);
/* The terms over RULE_VAR k, part k; NULL: no memory. The parts along `d`, each viewed as `shape`
 * unless it has it, or that is NULL; and reduced, as a collective does. */
const rule_term *st_joined(iso_arena *a, const st_parts *p, const rule_shape *shape, uint32_t d);
const rule_term *st_reduced(state *s, const st_parts *p, const char *how);
/* A term divided by a number. NULL: no memory. */
const rule_term *st_divided(state *s, const rule_term *t, int64_t by);
/* Joins the parts with the sought tensor, where that is their sum, divided by p->by. */
iso_code st_join_sum(state *s, const st_parts *p, st_sought *x, iso_error *err);

/* Joins `whole` with a term of the search, if a few tries find a rule of that and of another such
 * term that it is joined with already. Requires: `*done` is false. */
iso_code st_prove_alike(state *s, eg_node whole, eg_node aux, bool *done, iso_error *err);
/* Joins `whole` with the parts, concatenated or reduced, if that gives it. Returns: in `met`
 * whether it does by value, also where no rule was found. */
iso_code st_join_whole(state *s, const st_parts *p, eg_node whole, bool *met, iso_error *err);

/* ---- rows.c ---- */
/* `whole` as `n` parts along `d`, made by its own steps, which a rule joins with it. Returns: in
 * `there` whether it has such. */
iso_code st_rows_of(state *s, eg_node whole, uint32_t n, uint32_t d, eg_node *part, bool *there,
                    iso_error *err);
/* Joins `whole`, which is the parts along `d`, with them rank by rank: its steps are repeated on
 * the rows that each rank holds. */
iso_code st_join_rows(state *s, const st_parts *p, eg_node whole, uint32_t d, iso_error *err);

/* ---- tiles.c ---- */
/* Joins operands of products that the peers add up, each with the part of a tensor of the other
 * side that it is along both of the last dimensions. Returns: in `any` whether some are such tiles.
 */
iso_code st_join_tiles(state *s, const peers *p, bool *any, iso_error *err);
void st_free_tiles(state *s);

/* ---- running.c ---- */
/* Joins what a graph computes of scores that come block by block (running maxima and sums) with the
 * same of all blocks put together. */
iso_code st_join_running(state *s, int side, iso_error *err);

/* ---- scaled.c ---- */
/* The next larger number of times that parts may hold theirs: a mean over some of `n` peers, or
 * over all ranks that became one, or of a loss that was scaled so. INT64_MAX: there is none. */
int64_t st_next_times(const state *s, uint32_t n, int64_t by);
/* The whole numbers, or one over them, that elementwise calls of the graphs take beside a tensor.
 */
void st_find_times(state *s);
/* Joins the tensor of the other graph that `lifted`, divided by `by`, is, if a rule says so: in
 * `found` whether there is one. `any_terms`: as x->any_terms of st_wholes. */
iso_code st_join_lifted(state *s, int side, eg_node lifted, int64_t by, bool any_terms, bool *found,
                        iso_error *err);

/* The term that a tensor was joined with before it was divided. EG_NONE: it was not joined. */
eg_node st_undivided(state *s, eg_node e, int64_t by);
/* As st_join_scaled, where both graphs take the same step: micro-batches of one and ranks of the
 * other. */
iso_code st_join_twins(state *s, eg_node u, eg_node t, bool *any, iso_error *err);

/* ---- summands.c ---- */
/* The tensors that node `i` adds up over ranks and pieces: results of one operator, or of several,
 * equally many of each (a weight's gradients in both of its places), those of one operator beside
 * one another. Returns: how many, 0 where there are none, or where one collective adds up its
 * ranks' alone; in `each` how many of one operator. Sums on the way are flagged in `inner`,
 * but for node `i` itself.
 * Requires: room for MAX_RANKS in `node`. */
uint32_t st_summands(const synth_graph *g, uint32_t i, bool *inner, uint32_t *node, uint32_t *each);

/* ---- grid.c ---- */
/* Joins the parts, put together by two groups at once, with `whole`; EG_NONE: with a tensor that is
 * looked for. */
iso_code st_join_grid(state *s, const st_parts *p, eg_node whole, st_sought *x, iso_error *err);

/* ---- batches.c ---- */
/* How many pieces a graph takes an input in, one after another: micro-batches; 0: it takes all. */
uint32_t st_n_batches(state *s, int side);
/* The number of ranks: some peers are of fewer. */
uint32_t st_most_ranks(state *s, int side);

/* ---- lift.c ---- */
/* Whether a term says the sizes of `shape`, as a list or as a number of rows; and the term with
 * another shape's there (NULL: no memory). */
bool st_says_shape(const rule_term *t, const rule_shape *shape);
const rule_term *st_with_shape(iso_arena *a, const rule_term *t, const rule_shape *from,
                               const rule_shape *to);
/* The peers as one tensor, made of their operands as one, joined with them: in p->whole,
 * which stays EG_NONE where values tell that they are not.
 * `resized`: where the call says a rank's shape, with the whole's in its place, or not at all. */
iso_code st_lift(state *s, peers *p, const st_parts *of, bool resized, iso_error *err);
/* The same for the results of collectives of several groups, over their operands' wholes. */
iso_code st_lift_collective(state *s, peers *p, const st_parts *of, iso_error *err);
/* For peers whose whole is not known: guesses the whole of the first operand, where the step only
 * moves it or hides some of it. A later step has to confirm it. */
iso_code st_guess_whole(state *s, peers *p, const st_parts *of, iso_error *err);

#endif
