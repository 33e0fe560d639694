/* Equality saturation over the joint e-graph: terms of neither graph, made by rules, until pairs of
 * tensors meet.
 *
 * A region of the joint e-graph is copied into the compact engine (eg_sat), which knows no values:
 * of a tensor it knows dtype and shape. There rules are applied both ways, within limits that are
 * counts. Where a pair met, the rule applications that its explanation names, and nothing else, are
 * repeated in the joint e-graph: their terms are added and run on every draw, their rules decided
 * if they are not yet, and each becomes an application as any other. So each merge is explained,
 * checked and certified as if the search had found it: a bug in the copy can lose a pair, and
 * cannot join a wrong one. */
#ifndef SYNTH_SATURATE_SATURATE_H
#define SYNTH_SATURATE_SATURATE_H

#include "synth/comparison.h"

typedef struct st_goal { /* two e-nodes of one shape, dtype and value */
  eg_node a, b;
} st_goal;

typedef struct st_saturation {
  const st_goal *goal;
  size_t n_goals;
  const bool *use;   /* by rule of s->rules.set: may be used; NULL: those that st_usable says */
  bool given;        /* and the rules in s->known */
  bool trusted;      /* values are left to st_merge: where they differ, that is an error */
  size_t iterations; /* of matching and applying */
  size_t nodes;      /* e-nodes of the compact e-graph, those of the copy not counted */
  size_t classes;    /* of the joint e-graph that are copied, at most */
  /* out */
  size_t n_joined;   /* goals that were not equal before, and are now */
  size_t n_grown;    /* e-nodes that rules made, in all runs */
  const char *limit; /* which limit the last run ended at; NULL: none */
} st_saturation;

/* Requires: the e-graph is rebuilt. */
iso_code st_saturate(state *s, st_saturation *x, iso_error *err);

/* Saturates for the classes that keep the outputs apart, and continues with the new merges.
 * Returns: in `gained` whether there were any. */
iso_code st_saturate_open(state *s, const st_goal *output, size_t n_outputs, bool *gained,
                          iso_error *err);

/* Which of the records from `from` on are operators of several tensors, as their schemas say. */
void st_mark_multi(state *s, size_t from);
/* Run a term's e-nodes that have no value yet. Returns: in `ok` whether all could be run. */
iso_code st_add_valued(state *s, const rule_term *t, const eg_node *var, eg_node *out, bool *ok,
                       iso_error *err);

#endif
