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
/* Whether both cones hold the tiles that a row is put together of, beside one another: then a rule
 * is of these, while tiles are joined. */
bool fr_tiled_row(state *s, const cone *k, uint32_t c);
/* Whether both cones hold what a tile is below its mask: the same. */
bool fr_masked_tile(state *s, const cone *k, uint32_t c);
/* While ranks are joined: the part of which `c` is a layout made by joining, that no graph has;
 * EG_NONE: `c` is none. A rule with cuts at both would speak of each part twice. */
uint32_t fr_view_of_part(state *s, const cone *k, uint32_t c);
/* Notes of a cone that is explored, and of a graph that stays as it is, all that no cut changes:
 * pricing one cut after another would ask the e-graph the same each time. */
iso_code fr_cone_ways(state *s, cone *k, iso_error *err);
/* Smallest patterns, by class, by relaxation: cycles never win, since every operator costs. Needs
 * fr_cone_ways, as fr_root_cost does. */
void fr_costs(state *s, cone *k);
/* The same after fr_costs, once these classes are no more cut: sizes only grow, of those alone
 * whose patterns hold one. */
void fr_costs_without(state *s, cone *k, const uint32_t *of, size_t n);
/* The size of the pattern at a root, which is expanded unless it is cut. */
double fr_root_cost(state *s, cone *k, eg_node root);
/* Removes cuts that one of the roots reaches only through other cuts. Its pattern cannot contain
 * such a variable, and the other root computes it from one that both patterns can contain. */
void fr_narrow(state *s, cone *k, eg_node u, eg_node t);

/* Where in its graph a class is computed, from 0 at the start to 1 at the end; of both, the later.
 */
double fr_place(const state *s, uint32_t c);

/* ---- pattern.c ---- */
/* Removes cuts until both patterns have the same variables: a class that one pattern alone has is
 * opened, the one that is computed last first, with its peers. What is removed all at once may open
 * both forms of one tensor, and leads down to the leaves. Returns: false where the patterns get too
 * large. `b` is overwritten. */
bool fr_narrow_patterns(builder *b, eg_node u, eg_node t);
/* Both patterns under the current cut. Returns: false where one cannot be built. */
bool fr_build(builder *b, eg_node u, eg_node t, const rule_term **l, const rule_term **r);

/* ---- candidate.c ---- */
/* Two patterns as a rule over the builder's variables, each with its shape; `example`: their values
 * on the first draw, borrowed. Returns: false where a variable has no shape. */
bool fr_rule(state *s, builder *b, const rule_term *l, const rule_term *r, rule *out,
             rule_tensor **example);
typedef struct fr_decision {
  size_t index; /* the accepted rule's place among the rules; SIZE_MAX: it was not accepted */
  rule_verdict v;
  bool fresh; /* it had to be validated */
  bool open;  /* a glance does not tell: a few samples and a proof leave it open */
} fr_decision;
/* Validates a candidate, once. `glance`: by a few samples and a proof alone, as long as nobody has
 * decided it. */
iso_code fr_decide(state *s, const rule *r, rule_tensor **example, bool glance, fr_decision *out,
                   iso_error *err);

#endif
