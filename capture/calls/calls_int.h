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
  uint32_t dim;     /* of BEHIND and GROWING */
  rule_shape whole; /* of all but APART */
} calls_parts;

typedef struct chain {
  cap_graph *g[CALLS_ALL]; /* the calls */
  size_t n;
  const cap_graph *other;      /* the other side's one call; NULL: it has as many */
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
/* How parts make up a tensor of shape p->whole. */
void calls_settle_way(const chain *x, calls_parts *p);
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
iso_code calls_add_operator(chain *x, const char *id, const rule_term *call, cap_output what,
                            uint32_t *node);
/* ---- results.c ---- */
iso_code calls_add_results(chain *x);
iso_code calls_say(chain *x, const char *line);

#endif
