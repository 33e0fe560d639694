/* Private to egraph/: terms of an eg_graph as they are spelled. */
#ifndef EGRAPH_GRAPH_TEXT_INT_H
#define EGRAPH_GRAPH_TEXT_INT_H

#include "egraph/egraph.h"

/* ---- egraph.c ---- */
/* As eg_add, but the e-node that comes has these very children: where one is only congruent,
 * another is added. */
ISO_MUST_USE iso_code egi_add_exact(eg_graph *g, eg_symbol op, const eg_class *child, size_t n,
                                    eg_node *out, iso_error *err);

/* ---- text.c: a term as text, which grows ---- */

typedef struct egi_text {
  char *p;
  size_t n, cap;
  bool full; /* over the limit */
} egi_text;

/* Returns: false over 2^26 characters, or without memory. */
bool egi_text_put(egi_text *t, const char *s, size_t n);
/* Hands the text over where it is whole, else frees it. */
ISO_MUST_USE iso_code egi_text_done(egi_text *t, bool ok, char **out, iso_error *err);

#endif
