/* Private to parts.c and lift.c: what ranks hold of one tensor. */
#ifndef SYNTH_SEARCH_PARTS_H
#define SYNTH_SEARCH_PARTS_H

#include "synth/comparison.h"

enum { MAX_RANKS = 64 };

/* The peers' e-nodes, one of each class, in rank order. */
typedef struct st_parts {
  eg_node of[MAX_RANKS];
  const rule_tensor *value[MAX_RANKS]; /* on the last draw */
  uint32_t n;
  int64_t by;   /* the whole is the parts', divided by this */
  double scale; /* 1 / by */
} st_parts;

/* ---- parts.c ---- */
/* Join `whole` with what the parts make, put together or reduced, if they make it. In `met`: they
 * do, whether a rule was found or not. */
iso_code st_join_whole(state *s, const st_parts *p, eg_node whole, bool *met, iso_error *err);

/* ---- lift.c ---- */
/* What the peers would be as one, made of what their operands are as one (p->whole), and joined
 * with them. */
iso_code st_lift(state *s, peers *p, const st_parts *of, iso_error *err);

#endif
