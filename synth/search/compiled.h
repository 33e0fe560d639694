/* Rules' sides with their operators as symbols of the joint e-graph, so that matching compares
 * numbers and not names. */
#ifndef SYNTH_SEARCH_COMPILED_H
#define SYNTH_SEARCH_COMPILED_H

#include "synth/comparison.h"

/* One term of a side. `op` is its symbol where it is an operator or a list. */
typedef struct st_pattern {
  const rule_term *t;
  eg_symbol op;
  bool rearranges;                /* an operator that only rearranges its first operand */
  const struct st_pattern *child; /* t->n of them; NULL where there are none */
} st_pattern;

typedef struct st_compiled {
  const st_pattern *side[2]; /* lhs, rhs; NULL: not compiled yet */
} st_compiled;

/* Rule `i` of a set, `r`, compiled on the first call and kept. Patterns live as long as the
 * comparison. Returns: borrowed, in `out`. */
iso_code st_compile(state *s, st_compiled_rules *of, size_t i, const rule *r, st_compiled *out,
                    iso_error *err);

#endif
