/* The joint e-graph of both captured graphs with the values of its e-nodes, and runs of one graph
 * by itself. */
#ifndef SYNTH_JOINT_JOINT_H
#define SYNTH_JOINT_JOINT_H

#include <string.h>

#include "synth/comparison.h"

/* ---- joint_graph.c ---- */
/* The empty joint e-graph: s->g. */
iso_code st_new_graph(state *s, iso_error *err);
/* An e-node `name` without children, for a leaf that no relation defines yet: an atom of that
 * shape, without values. */
iso_code st_add_atom(state *s, const char *name, const rule_shape *shape, eg_node *out,
                     iso_error *err);
iso_code st_add_term(state *s, const rule_term *t, const eg_node *bind, eg_node *out,
                     iso_error *err);
/* The symbol of a literal, which is known from then on. */
iso_code st_literal_symbol(state *s, const rule_term *t, eg_symbol *out, iso_error *err);
/* Adds the live operators of a graph; leaves are there. */
iso_code st_add_graph(state *s, int side, const bool *live, iso_error *err);
/* Values of a tensor or multi e-node on all draws, computed from its children's classes. */
iso_code st_value(state *s, eg_node n, iso_error *err);
/* Forget the values of an e-node, so that st_value computes them again. */
void st_forget(state *s, eg_node n);
/* The results of `e` on draw `d`, called once more in float64 on its arguments' values. Owns: the
 * caller unrefs out[0 .. n). */
iso_code st_call_again(state *s, eg_node e, size_t d, rule_tensor **out, size_t *n, iso_error *err);
typedef struct st_sum {
  bool cancels; /* its elements are no more than rounding of its terms (cancelled.c) */
  double terms; /* the sum of the terms' sizes, where it does */
} st_sum;
/* Whether a call adds its terms up, so that they may. */
bool st_adds(const rule_term *call);
/* `bind`: the call's n variables. */
iso_code st_cancels(const state *s, const rule_term *call, rule_tensor *const *bind, uint32_t n,
                    const rule_tensor *out, st_sum *as, iso_error *err);
/* The sum of the terms' sizes that a call's result has from operands that cancel; 0: that is not
 * known. `dep`: the call's n variables. */
double st_terms_of(state *s, const rule_term *call, const eg_node *dep, uint32_t n);
/* The first valued tensor e-node of a class, EG_NONE if none. */
eg_node st_rep(state *s, eg_class c);
const rule_term *st_literal(state *s, eg_node n); /* NULL if not a literal */
bool st_is_list(state *s, eg_node n);
const rec *st_rec(const state *s, eg_node n);
/* The name of an e-node's operator; of a list "#list". Borrowed. */
static inline const char *st_operator(const state *s, eg_node e) {
  return eg_symbol_name(s->g, eg_node_symbol(s->g, e));
}
/* Whether it is a call of the operator with this name (rules/names.h). */
static inline bool st_calls(const state *s, eg_node e, const char *op) {
  return strcmp(st_operator(s, e), op) == 0;
}
/* Requires: valued tensor. Returns: borrowed, until st_trim where st_spare says so; NULL where it
 * could not be made again (st_lost). */
rule_tensor *st_val(state *s, eg_node n, size_t draw);
/* Which of a constant's values draw `draw` has. */
static inline size_t st_kept_set(const state *s, size_t draw) {
  return draw < s->n_sets && s->n_kept > 1 ? draw : 0;
}
iso_code st_lost(const st_values *v, iso_error *err);
/* Whether its values are computed on demand and dropped again: they are large and depend on
 * parameters alone. Their dtype is float64, their shape the record's. */
bool st_spare(const state *s, eg_node n);
bool st_large(const rule_shape *shape);
/* The e-node that holds the values of `n`. */
eg_node st_home(const state *s, eg_node n);
/* Of a valued tensor, without making it. */
rule_dtype st_dtype(const state *s, eg_node n);
int64_t st_numel(const state *s, eg_node n);
/* Let the oldest of the values go that can be made again, down to a fixed amount. */
void st_trim(state *s);
const char *st_assume(state *s, rule_assumption kind, eg_node left, eg_node right,
                      const char *relation, const char *text);
const char *st_any_id(const state *s, eg_node n);
iso_code st_merge(state *s, eg_node a, eg_node b, uint32_t kind, uint32_t data, iso_error *err);

/* ---- masks.c ---- */
/* Which masks are read as minus infinity (rules/masks.h): s->masks.read. Requires: leaves are
 * related, no operator was added. */
iso_code st_find_masks(state *s, const bool *const live[2], iso_error *err);
void st_masks_free(state *s);
/* Whether node `i` of `side` has masks that are read. */
bool st_masked(const state *s, int side, size_t i);
/* Whether they are its own: a constant of the e-graph, as st_mask_value says for each set, in its
 * dtype. */
bool st_mask_source(const state *s, int side, size_t i);
iso_code st_mask_value(const state *s, int side, size_t i, size_t set, rule_tensor **out,
                       iso_error *err);
/* The call of node `i` with its mask as it is read; the node's own where it has none. NULL: there
 * is no memory. */
const rule_term *st_read_call(const state *s, int side, size_t i, iso_arena *a);
/* Whether numbers beside masks that are read come near them: on the values of both runs, or (NULL)
 * on all draws. */
iso_code st_near_masks(state *s, const st_run run[2], bool *near, iso_error *err);
/* Whether a call has a row that is masked wholly, in runs that kept all values. */
bool st_hides_row(const state *s, const st_run run[2]);
/* As st_near_masks, of all other masks, which rules read: s->masks.near. Requires: everything has
 * values. */
iso_code st_other_masks(state *s, const bool *const live[2], iso_error *err);
/* A proof that reads masks does not count then. */
void st_refuse_masks(const st_mask_state *m, rule_verdict *v);
/* Whether numbers beyond 1e30 differ, which comparisons leave out as masks. */
bool st_far_apart(const rule_tensor *l, const rule_tensor *r);

/* ---- open_order.c ---- */
/* Which of equal numbers comes first where an operator leaves that open. */
typedef enum st_order { ST_ORDER_KEPT, ST_ORDER_UP, ST_ORDER_DOWN } st_order;
/* In `out`, `n` results of the call in float64, those where equal numbers stand in that order; as
 * they are where the call leaves no order open, or none is known that it could be given. */
iso_code st_order_otherwise(state *s, const rule_term *call, rule_tensor **bind, st_order order,
                            rule_tensor **out, size_t n, iso_error *err);
/* The same in the order that gives the earlier places: one for all operators, so that two of one
 * meaning agree. */
iso_code st_order_first(state *s, const rule_term *call, rule_tensor **bind, rule_tensor **out,
                        size_t n, iso_error *err);

/* ---- narrow.c ---- */
/* Whether it holds floats in a narrower dtype than float64, as which a run reads them. */
bool st_is_narrow(const rule_tensor *t);
/* A large parameter as it is stored, where that is the leaf's value on the draw and narrower than
 * float64. NULL: it is not, or may not be had so. Borrowed. */
iso_code st_stored_leaf(state *s, int side, size_t i, size_t draw, rule_tensor **out,
                        iso_error *err);

/* ---- run_graph.c ---- */
typedef struct st_carry { /* run on from other values: those of `from`, but for those in `value`;
                             flagged nodes are run again */
  const st_run *from;
  const bool *again;         /* per node */
  rule_tensor *const *value; /* per node, NULL: none */
  const rule_term *const
      *call; /* for st_run_to, per node: a call in place of its own, NULL: its own; may be NULL */
} st_carry;
#define ST_STORAGE \
  (-1.0) /* as `noise`: constants that the other side does not have are disturbed as their storage \
            rounds them; so are lonely parameters of both */
#define ST_FAINT 1e-300 /* as large at most is what may have underflowed, once disturbed */
/* Whether an operator's results are rounded: they are no elements of its arguments. */
bool st_op_rounds(const char *op);
/* Which sign a zero gets that is computed. */
typedef enum st_signs { ST_ZEROS_KEPT, ST_ZEROS_ABOVE, ST_ZEROS_BELOW, ST_ZEROS_DRAWN } st_signs;
typedef struct st_run_how {
  double noise;         /* relative, of each rounding; 0: none */
  uint64_t stream;      /* of its numbers */
  bool keep_all;        /* values of all live nodes, not of the outputs only */
  bool anew;            /* what depends on no drawn leaf is computed, too, of the leaves given */
  const st_carry *with; /* NULL, or the values carried over: then no leaves are needed */
  st_signs signs;       /* with noise */
  st_order order;
} st_run_how;
/* Run one captured graph in float64; `leaf` per node, large ones as they are stored where that is
 * narrower. Owns: st_run_free. */
iso_code st_run_graph(state *s, int side, rule_tensor *const *leaf, const st_run_how *how,
                      st_run *r, iso_error *err);
enum { ST_TOGETHER = 4 };
/* The same several times, as how[0 .. n) says, into r[0 .. n). Requires: n <= ST_TOGETHER, one
 * keep_all for all. */
iso_code st_run_together(state *s, int side, rule_tensor *const *leaf, const st_run_how *how,
                         size_t n, st_run *r, iso_error *err);
void st_run_free(st_run *r);
/* The same for the one value of node `goal`, without noise; nothing else is kept. Adds the work
 * done to `work` (may be NULL). Owns: the caller unrefs. */
iso_code st_run_to(state *s, int side, const st_carry *with, uint32_t goal, rule_tensor **out,
                   size_t *work, iso_error *err);
/* The cost of node i, called as `call`, by its values in `r`, in calls of small operators.
 */
size_t st_work(const rule_term *call, const st_run *r, uint32_t i);
/* Whether a term has a variable that is flagged; flag all of them. */
bool st_term_uses(const rule_term *t, const bool *flag);
void st_term_mark(const rule_term *t, bool *flag);

/* ---- moments.c ---- */
/* Order-free moments of a tensor: sum, sum of |x|, of squares, of x |x|; values beyond 1e30 are
 * counted only. */
void st_moments(const rule_tensor *t, double m[4]);
bool st_near_moments(const double a[4], const double b[4]);
/* Within so much of the larger one. */
bool st_near_within(const double a[4], const double b[4], double tol);
/* Whether an element is no number. */
bool st_holds_nan(const rule_tensor *t);

#endif
