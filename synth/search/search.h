/* Candidates by fingerprint, rules from shared frontiers, rules applied. */
#ifndef SYNTH_SEARCH_SEARCH_H
#define SYNTH_SEARCH_SEARCH_H

#include "synth/comparison.h"

/* ---- rank_sums.c ---- */
/* Propose which nodes are peers. Requires: both graphs are in the e-graph, their outputs paired. */
iso_code st_find_peers(state *s, iso_error *err);
/* Join what ranks hold in parts below `u` and `t` with what the other graph holds whole. Returns:
 * in `any`, whether something was found. */
iso_code st_link_shards(state *s, eg_node u, eg_node t, bool *any, iso_error *err);

/* On the values of both runs: which tensors are a rank's part of one of the other graph's
 * (s->ranks.part). */
iso_code st_mark_parts(state *s, const st_run run[2], iso_error *err);

/* ---- apply_rule.c ---- */
/* Validated strongly enough for what this run asks for. */
bool st_usable(const state *s, size_t rule);
/* Try every validated rule on the pair; merges where one applies. */
iso_code st_apply_rules(state *s, eg_node u, eg_node t, bool *done, iso_error *err);
iso_code st_apply_known(state *s, eg_node u, eg_node t, bool *done, iso_error *err);
/* One side of a rule found at an e-node, where its conditions hold. */
typedef struct st_match {
  eg_node root;
  const eg_node *var;  /* what stands for each variable; EG_NONE: not in that side */
  const premise *prem; /* the equalities that the match relied on */
  size_t n_prem;
  const rule_term *other; /* the other side with the names' values, over `var`; in s->arena */
} st_match;
/* Call `each` with every match of the side `rhs` (or the left one) of rule `index` (in
 * s->rules.set) in class `at` for which the other side is known whole. It must not change the
 * e-graph, and returns false to stop. */
iso_code st_match_side(state *s, size_t index, bool rhs, eg_class at,
                       bool (*each)(void *ctx, const st_match *m), void *ctx, iso_error *err);
/* A rule that ties two e-nodes. For a certificate, `as`: the rule as it was matched, its sizes and
 * attributes being numbers, whose variables may be numbered otherwise than the set's; `var`: the
 * e-node that each of those stood for. NULL in `as`: nothing is noted. */
typedef struct st_use {
  size_t rule; /* in s->rules.set */
  eg_node from, to;
  const premise *prem; /* the equalities that the match of both sides relied on */
  size_t n_prem;
  const rule *as;
  const eg_node *var;
} st_use;
iso_code st_record_application(state *s, const st_use *use, iso_error *err);

/* ---- frontier.c ---- */
/* Synthesise a rule for the pair, have it validated, merge. */
iso_code st_synthesise(state *s, eg_node u, eg_node t, bool *done, iso_error *err);

/* ---- fingerprint.c ---- */
/* Join `e` with what of its group a rule ties it to; on the first visit it is put into a group. */
iso_code st_visit(state *s, eg_node e, iso_error *err);
/* Try to join `e` with tensors of `side` that have its value, up to layout. Returns: in `same`,
 * whether there is one. */
iso_code st_meet(state *s, eg_node e, int side, bool *same, iso_error *err);
/* A rule for two tensors of equal values: one that is there already, else one that is synthesised;
 * merges. */
iso_code st_prove(state *s, eg_node u, eg_node t, bool *done, iso_error *err);
/* Order-free moments of a tensor: sum, sum of |x|, of squares, of x |x|; values beyond 1e30 are
 * counted only. */
void st_moments(const rule_tensor *t, double m[4]);
bool st_near_moments(const double a[4], const double b[4]);
bool st_has_side(state *s, eg_node e, int side);
/* 0: the same shape, 1: the same but for sizes 1, 2: another. */
int st_shape_distance(const rule_shape *a, const rule_shape *b);

#endif
