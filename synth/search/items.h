/* Private to items.c and numbers.c: numbers and lists of them. */
#ifndef SYNTH_SEARCH_ITEMS_H
#define SYNTH_SEARCH_ITEMS_H

#include "rules/names.h"
#include "rules/operators.h"
#include "synth/joint/joint.h"
#include "synth/search/frontier.h"
#include "synth/search/search.h"
#include "synth/search/search_int.h"

#include <string.h>

/* FEW numbers are joined as any; a sum may have LONG, one after another. */
enum { FEW = 4, MOST_OPERANDS = RULE_MAX_VARS, LONG = 2 * MOST_OPERANDS };

static inline eg_node items_operand(const state *s, eg_node e, uint32_t k) {
  return (eg_node){eg_node_original(s->g, e, k).i};
}

static inline bool items_is_number(const state *s, eg_node e) {
  const rec *r = &s->rec[e.i];
  return r->tensor && r->valued && r->shape.rank == 0;
}

/* Instantiates two terms by `bind`, and joins them. */
typedef struct identity {
  eg_node from, to;
  const rule_term *l, *r;
  const eg_node *bind;
  size_t n;
} identity;

/* ---- items.c ---- */
/* Joins both ends, if the rule that says so holds. */
iso_code st_join_by(state *s, const identity *x, bool *done, iso_error *err);
/* Whether `e` is a list of numbers as a vector. Returns: in `list` the list. */
bool st_stacked(state *s, eg_node e, eg_node *list);
/* Joins a number with one of graph `side`, if there is one of its value. */
iso_code st_join_number(state *s, eg_node e, int side, bool *joined, iso_error *err);

/* ---- numbers.c ---- */
/* One rule of both numbers, over those that ranks compute from tensors, or both graphs have. */
iso_code st_join_as_numbers(state *s, eg_node u, eg_node t, bool *done, iso_error *err);

#endif
