/* Private to localise/: the two graphs on the draw that shows their outputs different, and where
 * they part. */
#ifndef LOCALISE_ALIGNMENT_H
#define LOCALISE_ALIGNMENT_H

#include "localise/localise_int.h"

typedef struct feature { /* of one node's value */
  double moment[4];
  int64_t numel;
  uint32_t node;
  bool measured; /* `moment` is set: of a size that was asked for */
} feature;

typedef struct parting {
  state *s;
  st_run run[2]; /* the values looked at; the right ones change as references are carried on */
  bool *changed; /* right nodes whose values are no longer those of the witness */
  feature *by_size[2]; /* by size, those measured of one size by the moment of |x| */
  size_t n_feature[2];
  uint8_t *seen[2]; /* per node: 1 in the region, 2 a root, 3 has a counterpart */
  bool *sound[2]; /* nodes of a region that operators outside of it read as well, with right results
                     there */
  bool *settled[2]; /* nodes where a divergence ended: later ones start from there */
  bool odd_rank[2]; /* other ranks have the root right */
  bool rounded; /* a constant was computed anew: later values are off by its storage's rounding */
  lo_change change[8]; /* the changes that mended the divergences so far */
  size_t n_changes;
  double *slack; /* by output of the left: how far disturbed roundings move it; a difference within
                    that is none: of a gradient that is 0 nothing else is left */
  bool kept;     /* an output that gives a leaf as it was is named */
  bool mended;   /* a collective explains it: nothing more is said of the ranks */
  bool gap; /* the outputs agree: look for nodes that no rule joined, not for values that differ */
  size_t a_run; /* the work of a run of both graphs, as st_work counts */
} parting;

/* ---- alignment.c ---- */
/* A node's value where it is one tensor, NULL else. Borrowed. */
rule_tensor *lo_value(const parting *p, int side, uint32_t i);
/* Builds the index that lo_occurs searches, for the values as they are now. */
iso_code lo_index(parting *p, int side, iso_error *err);
/* Some node of the other side has the value of node i, up to layout. */
bool lo_occurs(const parting *p, int side, uint32_t i);
/* Some node of `side` has the value v. */
bool lo_has(const parting *p, int side, const rule_tensor *v);
/* Node i has no counterpart: it belongs to the region (or is a root). */
bool lo_in_region(const parting *p, int side, uint32_t i);
bool lo_same_but_ones(const rule_shape *a, const rule_shape *b);
/* Equal element by element where the shapes are alike, else as far as order-free moments tell. */
bool lo_agree(const parting *p, const rule_tensor *a, const rule_tensor *b);
/* Joined with a node of the other side, or equal to one on every draw. */
bool lo_joined(const parting *p, int side, uint32_t i);
/* A constant that a layout ties to the other side. */
bool lo_constant_related(state *s, eg_node e);
/* The same to a node of side `other` itself: numbers that were written out are no tie. */
bool lo_constant_tied(const state *s, eg_node e, int other);
/* An operator's result has a counterpart; a leaf is explained. */
bool lo_matched(const parting *p, int side, uint32_t i);
bool lo_leaf_explained(const parting *p, int side, uint32_t i);
/* Operators that only pass values on. lo_transparent: by name (views, casts, copies); lo_passes:
 * those of them that keep the numbers; lo_passes_on: any whose result is one of its arguments. */
bool lo_transparent(const char *op);
bool lo_passes(const synth_graph *g, uint32_t i);
/* Whether the operator's results are parts of its operand. */
bool lo_takes_part(const char *op);
bool lo_passes_on(const parting *p, int side, uint32_t i);
/* Fill p->slack. */
iso_code lo_find_slack(parting *p, iso_error *err);
/* Output o of the left differs from its counterpart; the first that does, where `end` names none
 * yet; whether any does. */
bool lo_output_apart(const parting *p, size_t o);
void lo_apart_at(const parting *p, int64_t end[2]);
bool lo_any_output_apart(const parting *p);

/* ---- region_end.c ---- */
/* Where both regions end. */
typedef struct lo_ending {
  int64_t exit[2]; /* by side: nodes whose values should be one, -1 where there are none */
  st_run next;     /* the right graph's values with the reference carried on from there; Owns */
  bool *touched;   /* by right node: its value in `next` is not that of before */
  bool repaired;   /* `next` has the values under a change that explains the divergence */
} lo_ending;
/* The roots of the regions that begin at `first`. Requires: `end` is empty but for room in
 * `touched`. */
iso_code lo_leave(const parting *p, const int64_t first[2], lo_ending *end, iso_error *err);

/* ---- hints.c ---- */
/* The first live operator that reads a leaf; the leaf where there is none. */
int64_t lo_consumer(const state *s, int side, uint32_t leaf);
/* One change that tells the nodes of `d` (or their values x and y) apart, in words; NULL: none. */
/* One number that explains how two values differ: a factor, an offset, a power; or that they are
 * the same elements in another order. NULL: none. */
const char *lo_value_hint(const parting *p, const rule_tensor *a, const rule_tensor *b);
const char *lo_hint(const parting *p, const synth_divergence *d, const rule_tensor *x,
                    const rule_tensor *y);
/* The change on `side` that explains a divergence, for later ones. */
void lo_remember(parting *p, const lo_change *change);
/* The same operator over the same tensors, with another attribute: which argument, -1 where not so;
 * and in words, NULL. */
int64_t lo_attribute_apart(const parting *p, const synth_node *l, const synth_node *r);
/* Whether two leaves above the roots that both sides have by name hold one another's values; names
 * them. */
bool lo_exchanged_leaves(const parting *p, const int64_t root[2], synth_divergence *d);
/* The largest difference of the values of two nodes (left, right), where it is, and a picture of
 * it. */
iso_code lo_measure(const parting *p, const int64_t at[2], synth_divergence *d, iso_error *err);

/* ---- words/wiring_words.c ---- */
/* Where the roots are wired otherwise: another operand, a step or a module left out, the other
 * order. NULL: they are not, or more than one of these is. Where a step is missing, d gets the
 * tensor after which it belongs. In `mask`: it only says how many places another mask hides. */
const char *lo_wiring_hint(const parting *p, const int64_t root[2], synth_divergence *d,
                           bool *mask);
/* Views and parts make one tensor into parts that the other side does not have, from nodes l and r
 * on, in words; NULL: not so. */
const char *lo_parted_otherwise(const parting *p, int64_t l, int64_t r);
/* Two tables (left, right), the rows of one those of the other some positions further, in words;
 * NULL: not so. */
const char *lo_rows_moved(const parting *p, const char *name, const rule_tensor *x,
                          const rule_tensor *y);

/* ---- words/leaf_words.c ---- */
/* What became of x (left) in y, both of that name, in words; NULL: they are alike, or no tensors of
 * one shape. */
const char *lo_leaf_changed(const parting *p, const char *name, const rule_tensor *x,
                            const rule_tensor *y);

/* A rank's input that nothing reads, where right node r reads another rank's of that name; NULL:
 * none. */
const char *lo_unread_instead(const parting *p, const synth_node *r);

/* ---- words/step_words.c ---- */
/* A step or a module that side `without` leaves out: the tensor exit[without] of it is read where
 * the other side's exit is. NULL: there is more to it. */
const char *lo_without_step(const parting *p, int without, const int64_t exit[2]);

/* ---- suspects.c ---- */
typedef enum lo_search {
  LO_ANY,
  LO_INTEGERS,     /* only of the indices of a table */
  LO_OF_INTEGERS,  /* the same, and only of an operator itself: its numbers, another of its kind */
  LO_OPTIONAL_ONE, /* only an attribute that may be left out */
  LO_WITHOUT_ONE,  /* only an operator too many */
} lo_search;
/* The change that explains the divergence, on one of `sides`: of one operator first, on either
 * side, then operators and operands too many or too few. Puts its node into d and, for the right,
 * the repaired values into `end`, where end->repaired tells of it. */
iso_code lo_explain_by_repair(parting *p, lo_search what, const bool sides[2], synth_divergence *d,
                              lo_ending *end, iso_error *err);
/* The same for one number from which a mask is computed: where it mends the outputs, it says more
 * than how many places are hidden, which is what d's hint says so far. */
iso_code lo_explain_mask(parting *p, synth_divergence *d, lo_ending *end, iso_error *err);
/* A constant that the region reads as it is and that the other side does not have: the first
 * operator that computes it, -1 if there is none. */
int64_t lo_odd_constant(const parting *p, int side, const uint32_t *node, size_t n, iso_code *c,
                        iso_error *err);

/* ---- rank_words.c ---- */
/* An output that is a parameter, a state or an input unchanged, where the left returns an updated
 * one: a rank that is not updated. Returns: in `hint` words for it, NULL where there is none; in
 * `root` the two nodes then. */
iso_code lo_kept_output(parting *p, int64_t root[2], const char **hint, iso_error *err);
/* With several ranks on the right: the first left operator whose operands they hold and whose
 * result they do not, -1 where there is none, and in words the tensors that they hold; "": nothing
 * is said. */
iso_code lo_rank_words(parting *p, int64_t *node, const char **text, iso_error *err);

/* ---- left_out.c ---- */
/* Where the right root is a part of the left one, and nothing on the right is the rest of it, as
 * where a micro-batch's gradient is not added: d is the step that adds up, and says so. Else d
 * stays as it is. */
iso_code lo_left_out(const parting *p, const int64_t root[2], synth_divergence *d, iso_error *err);

/* ---- sound.c ---- */
/* Marks in p->sound the nodes of the region whose values are right. Returns: in `any` whether there
 * are some. */
iso_code lo_find_sound(const parting *p, int side, bool *any, iso_error *err);

/* ---- rank_mend.c ---- */
/* With several ranks on the right: the one collective that would have to do something else, or that
 * is missing, for the outputs to be right. Fills `d` and `end` where there is one, which
 * end->repaired tells. */
iso_code lo_mend_ranks(parting *p, synth_divergence *d, lo_ending *end, iso_error *err);

/* ---- rank_rows.c ---- */
/* A node's value where it is a product with a weight, NULL else. */
const rule_tensor *lo_product(const parting *p, int side, uint32_t i);
/* With several ranks: a product with rows of the other side's weight, whichever one of it, or its
 * ranks together, hold. The product is right; an operator that takes it apart may not be. */
bool lo_selected(const parting *p, int side, uint32_t i);

#endif
