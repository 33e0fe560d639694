/* Candidates by fingerprint, rules from shared frontiers, rules applied. */
#ifndef SYNTH_SEARCH_SEARCH_H
#define SYNTH_SEARCH_SEARCH_H

#include "synth/comparison.h"

/* ---- ../parts/rank_sums.c ---- */
/* Whether a graph's ranks give one another tensors. */
bool st_has_collective(const state *s, int side);
/* Propose which nodes are peers. Requires: both graphs are in the e-graph, their outputs paired. */
iso_code st_find_peers(state *s, iso_error *err);
/* Of which peers a class has one; UINT32_MAX: of none. */
uint32_t st_peers_in(const state *s, eg_class of);
/* The peers that these nodes are, by rank; NULL: none. */
const peers *st_peers_of(const state *s, int side, const uint32_t *node, uint32_t n);
/* On the values of both runs: which tensors are a rank's part of one of the other graph's
 * (s->ranks.part). */
iso_code st_mark_parts(state *s, const st_run run[2], iso_error *err);

/* ---- ../parts/link.c ---- */
/* Joins tensors below `u` and `t` that ranks hold in parts with the whole tensors of the other
 * graph. Returns: in `any` whether one was joined. */
iso_code st_link_shards(state *s, eg_node u, eg_node t, bool *any, iso_error *err);
/* Joins tensors below `u` and `t` that hold so many times another graph's, as gradients of a scaled
 * loss do, divided by that. Returns: in `any` whether one was joined. */
iso_code st_join_scaled(state *s, eg_node u, eg_node t, bool *any, iso_error *err);
/* Whether tensors of two classes are steps of different ranks that are the same. False before
 * tensors below others are linked. */
bool st_are_peers(const state *s, eg_class a, eg_class b);
void st_free_links(state *s);

/* ---- apply_rule.c ---- */
/* Whether the rule is validated strongly enough for this run. */
bool st_usable(const state *s, size_t rule);
/* Try every validated rule on the pair; merges where one applies. */
iso_code st_apply_rules(state *s, eg_node u, eg_node t, bool *done, iso_error *err);
iso_code st_apply_known(state *s, eg_node u, eg_node t, bool *done, iso_error *err);
/* Rule `known` of s->known validated: as it is, if its names have in `n` values as declared; else
 * `at`, the rule at the shapes of `var`, which its variables stand for (NULL: they have no values).
 * Returns: in `index` which rule of s->rules.set is to be used; SIZE_MAX: none holds. */
struct names;
iso_code st_admit_known(state *s, size_t known, const rule *at, const eg_node *var,
                        const struct names *n, size_t *index, iso_error *err);
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
/* Every rule of s->known that is proved, both ways, wherever one of its sides matches at `u`: the
 * other side is added and joined. `smaller`: only where that has fewer operators. Nothing is run,
 * and no values are looked at. */
iso_code st_rewrite(state *s, eg_node u, bool smaller, bool *joined, iso_error *err);
iso_code st_record_application(state *s, const st_use *use, iso_error *err);

/* ---- frontier.c ---- */
/* Synthesise a rule for the pair, have it validated, merge. */
iso_code st_synthesise(state *s, eg_node u, eg_node t, bool *done, iso_error *err);

/* ---- candidate.c ---- */
/* An equality that is known to hold, if at all, of these terms. */
typedef struct st_stated {
  const rule_term *l, *r; /* over RULE_VAR k, var[k] */
  const eg_node *var;
  uint32_t n; /* at most RULE_MAX_VARS */
} st_stated;
/* Adds both terms, and joins them by a rule of just these, where their values agree. Nothing is
 * searched: for terms that pass through tensors which the other one does without. */
iso_code st_join_stated(state *s, const st_stated *x, bool *done, iso_error *err);

/* ---- items.c ---- */
/* Notes whether norms of tensors are taken somewhere in the graphs: st_join_numbers is for these.
 */
void st_find_norms(state *s);
/* Where one of the two is a list of numbers as a vector, and the other is computed as a vector:
 * join them number by number. */
iso_code st_join_items(state *s, eg_node u, eg_node t, bool *done, iso_error *err);
/* Where both are numbers that are computed from vectors: joins these number by number, and both. */
iso_code st_join_numbers(state *s, eg_node u, eg_node t, bool *done, iso_error *err);

/* ---- uniform.c ---- */
/* Join a tensor that is one number everywhere with a fill by that number, if a rule says so. */
iso_code st_join_fill(state *s, eg_node e, iso_error *err);
/* The same of a tensor that is of neither graph, a constant, too: several fills beside one another.
 */
iso_code st_join_fill_made(state *s, eg_node e, iso_error *err);

/* ---- fingerprint.c ---- */
/* Joins `e` with the members of its group that a rule shows equal; on the first visit it is put
 * into a group. */
iso_code st_visit(state *s, eg_node e, iso_error *err);
/* What is laid out alike is one, where ranks or calls hold tensors in parts: undoes the layouts
 * that joined tensors so far. Returns: in `gained` whether tensors were joined by that. */
iso_code st_lay_back(state *s, bool *gained, iso_error *err);
/* A rule for two tensors of equal values: one that is there already, else one that is synthesised;
 * merges. */
iso_code st_prove(state *s, eg_node u, eg_node t, bool *done, iso_error *err);
/* Whether two tensors agree on every draw. */
bool st_values_equal(state *s, eg_node a, eg_node b);
/* The first group after `after` (-1: the first of all) whose values may have these moments; -1:
 * none. */
int32_t st_next_group(state *s, int64_t numel, rule_dtype dtype, const double m[4], int32_t after);
bool st_has_side(state *s, eg_node e, int side);
/* Whether one of the class is made of a sum that cancels. */
bool st_rests(state *s, eg_node e);
/* Whether two valued tensors agree on every draw, element by element in order. */
bool st_values_equal(state *s, eg_node a, eg_node b);
/* 0: the same shape, 1: the same but for sizes 1, 2: another. */
int st_shape_distance(const rule_shape *a, const rule_shape *b);

#endif
