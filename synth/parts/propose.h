/* Proposing peers, among rank_sums.c, which follows them through the graph, and batches.c. */
#ifndef SYNTH_PARTS_PROPOSE_H
#define SYNTH_PARTS_PROPOSE_H

#include "synth/parts/parts.h"

typedef struct st_proposing { /* peers of one side */
  state *s;
  int side;
  iso_code code;
  size_t todo; /* peers from here on were not yet followed */
  bool pieces; /* what is proposed are pieces of one rank */
  bool known;  /* no new peers are proposed */
  bool again;  /* some are no pieces, as was thought */
  bool shared; /* what ranks of a group have in common has no rank in its name, and is followed with
                  the group */
} st_proposing;

/* Notes the nodes as peers, if they may be and are not known as such. In t->code: ISO_NOMEM. */
void st_propose(st_proposing *t, const uint32_t *node, uint32_t n);

/* ---- batches.c ---- */
/* Results of several ranks from several micro-batches: a rank's pieces of the first, and the ranks'
 * peers of each, as pieces. */
void st_propose_grids(st_proposing *t);
/* Groups of a side's peers, as many as the other side has micro-batches: ranks or pieces beside one
 * another, or equally far from one another. Requires: both sides' peers. Returns: false where there
 * is no memory. */
bool st_propose_groups(state *s, int side);

#endif
