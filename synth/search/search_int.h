/* Private to frontier.c, cone.c, pattern.c and candidate.c: the steps of st_synthesise. */
#ifndef SYNTH_SEARCH_SEARCH_INT_H
#define SYNTH_SEARCH_SEARCH_INT_H

#include "synth/search/frontier.h"

enum { CONE_MAX = 600, CONE_WIDE = 2400 }; /* classes of a cone; of one that ranks share */

/* The classes that are being looked at, the last one first: two shapes of one table are made of
 * each other. */
typedef struct asked {
  eg_class c;
  const struct asked *above;
} asked;

/* ---- cone.c ---- */
/* An empty cone in an e-graph of `n` e-nodes. Returns: false without memory. Owns: fr_cone_free,
 * also then. */
bool fr_cone_new(cone *k, size_t n);
void fr_cone_free(cone *k);
/* Literals are no part of a cone: a pattern holds them as they are. */
const rule_term *fr_literal_class(state *s, uint32_t c);
/* Breadth first through the members of every class: near classes come first, and the bound cuts off
 * far ones. `other`: the root of the other cone. */
iso_code fr_explore(state *s, cone *k, eg_node root, eg_node other, uint8_t bit, iso_error *err);
/* A constant's numbers as a term without leaves: an arange, a fill, a table's in order. */
bool fr_numbers_of(state *s, eg_node e, const asked *above);
/* While ranks are joined: the part of which `c` is a layout made by joining, that no graph has;
 * EG_NONE: `c` is none. A rule with cuts at both would speak of each part twice. */
uint32_t fr_view_of_part(state *s, const cone *k, uint32_t c);
/* Smallest patterns, by class, by relaxation: cycles never win, since every operator costs. */
void fr_costs(state *s, cone *k);
/* The size of the pattern at a root, which is expanded unless it is cut. */
double fr_root_cost(state *s, cone *k, eg_node root);
/* Removes cuts that one of the roots reaches only through other cuts. Its pattern cannot contain
 * such a variable, and the other root computes it from one that both patterns can contain. */
void fr_narrow(state *s, cone *k, eg_node u, eg_node t);

/* ---- pattern.c ---- */
/* Both patterns under the current cut. Returns: false where one cannot be built. */
bool fr_build(builder *b, eg_node u, eg_node t, const rule_term **l, const rule_term **r);

/* ---- candidate.c ---- */
/* Two patterns as a rule over the builder's variables, each with its shape; `example`: their values
 * on the first draw, borrowed. Returns: false where a variable has no shape. */
bool fr_rule(state *s, builder *b, const rule_term *l, const rule_term *r, rule *out,
             rule_tensor **example);
/* Looks at a candidate that nobody has decided: by a few samples and a proof. Returns: in `unknown`
 * whether these do not tell. */
iso_code fr_glance(state *s, const rule *r, rule_tensor **example, bool *unknown, iso_error *err);
/* Validates a candidate, once. Returns: in `index` the accepted rule's place among the rules,
 * SIZE_MAX where it was not accepted; in `fresh` whether it had to be validated. */
iso_code fr_decide(state *s, const rule *r, rule_tensor **example, size_t *index, rule_verdict *v,
                   bool *fresh, iso_error *err);

#endif
