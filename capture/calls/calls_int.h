/* Between the files of capture/calls/. */
#ifndef CAPTURE_CALLS_CALLS_INT_H
#define CAPTURE_CALLS_CALLS_INT_H

#include "capture/calls/calls.h"
#include "capture/capture_int.h"

enum { CALLS_NOWHERE = UINT32_MAX, CALLS_ALL = CALLS_MOST + 1 };

/* How tensors of several calls are one of the other side. */
typedef enum calls_way { CALLS_APART, CALLS_SAME, CALLS_BEHIND, CALLS_GROWING } calls_way;

/* The tensors of one name, in the order of their calls. */
typedef struct calls_parts {
  const char *name;
  uint32_t call[CALLS_ALL], node[CALLS_ALL];
  size_t n;
  calls_way way;
  uint32_t along;   /* the dimension of BEHIND and GROWING */
  bool last_alone;  /* the last one has the whole's shape */
  rule_shape whole; /* of all but APART */
  /* The whole's sizes as the other side writes them, where symbols are kept. */
  const rule_term *dim[RULE_MAX_RANK];
  const char *text[RULE_MAX_RANK]; /* of an input; NULL: a number */
  bool loose; /* a dimension that is left out as it is 1 may be another one at other sizes */
} calls_parts;

/* The result of a new operator. */
typedef struct calls_made {
  cap_output what;
  const rule_term *const *dim; /* of these the next two: where symbols are kept */
  const rule_term *sized;
} calls_made;

typedef struct chain {
  cap_graph *g[CALLS_ALL]; /* the calls */
  size_t n;
  const cap_graph *other; /* the other side's one call; NULL: it has as many */
  /* The same at their captured sizes. */
  const cap_graph *captured[CALLS_ALL], *other_captured;
  /* The graph whose symbols sizes of all calls are written with, `other` or the first call; NULL:
   * sizes are those captured. */
  const cap_graph *scale;
  cap_symbol *range;                 /* the scale's symbols, within what is known of all calls' */
  const rule_term **size[CALLS_ALL]; /* by symbol of a call: it, over the scale's */
  const rule_term *one;              /* 1 */
  bool moved; /* the calls are read at other sizes than those captured: inputs have no values */
  const cap_graph *other_last; /* the other side's last call */
  uint32_t *to[CALLS_ALL];     /* by node of a call: where it comes to stand */
  bool *used[CALLS_ALL];       /* by result of a call: a later call reads it */
  cap_new_node *node;
  size_t n_nodes;
  cap_names ids, inputs, weights; /* that are taken */
  rule_tensor **made;             /* values that were joined; owned */
  size_t n_made;
  cap_result *result;
  size_t n_results;
  const char **said; /* what is joined and left out */
  size_t n_said;
  iso_arena *a; /* the first call's */
  iso_error *err;
} chain;

/* ---- parts.c ---- */
/* How parts make up the tensor that is `node` on the other side. */
void calls_settle_way(const chain *x, calls_parts *p, uint32_t node);
/* The same of parts that the other side has no input of: places that go on from call to call, as
 * positions of tokens do, are one input of them all. */
iso_code calls_settle_places(chain *x, calls_parts *p);
/* The result of that name; -1: there is none. */
int64_t calls_result(const cap_graph *g, const char *name);
int64_t calls_input(const cap_graph *g, const char *name);
/* The call and its result that an input of call `k` is; false: none. */
bool calls_source(const chain *x, size_t k, const char *name, size_t *call, size_t *result);
/* The inputs of that name, of the calls that take it from outside. */
calls_parts calls_inputs(const chain *x, const char *name);
/* The outputs of that name that no later call reads. */
calls_parts calls_outputs(const chain *x, const char *name);
/* `name` as call `k` has it where an earlier one has it too. NULL: no memory. */
const char *calls_later(const chain *x, size_t k, const char *name);

/* ---- nodes.c ---- */
/* All nodes of all calls. */
iso_code calls_add_nodes(chain *x);
iso_code calls_add_operator(chain *x, const char *id, const rule_term *call, const calls_made *made,
                            uint32_t *node);
/* ---- results.c ---- */
iso_code calls_add_results(chain *x);
iso_code calls_say(chain *x, const char *line);

/* ---- sizes.c ---- */
/* Which symbols the sizes of all calls are written with: x->scale and x->size. */
iso_code calls_settle_sizes(chain *x);
/* A term of call `k`, a size or over its nodes, with the nodes and sizes of all. Requires:
 * x->scale. NULL: no memory. */
const rule_term *calls_translate(chain *x, size_t k, const rule_term *t);
/* A size of all in text. NULL: no memory. */
const char *calls_size_text(chain *x, const rule_term *t);
/* What calls_translate gives, of a size or guard in text. */
const char *calls_text(chain *x, size_t k, const char *text);
/* a + b, sizes of all. NULL: no memory. */
const rule_term *calls_sum(chain *x, const rule_term *a, const rule_term *b);
/* The symbols of all, their ranges, guards and numbers: those of a graph of them all. Requires:
 * x->scale. */
iso_code calls_give_symbols(chain *x, cap_graph *g);
/* What the symbols of call `k` are where those of all are `at`, which may leave some out. Requires:
 * x->scale. */
iso_code calls_size_at(chain *x, size_t k, const cap_size *at, size_t n, cap_size *out);

#endif
