/* Ranks of one role are decided once, with the rank as a symbol.
 *
 * A capture of several ranks whose ranks have the same graph, up to names, peers and shard numbers,
 * becomes a graph of one: the tensors that the ranks hold in one place become one tensor, of which
 * each has a copy, a part along a dimension, or a summand. Nothing of this is assumed:
 *
 *   same     every rank's graph is compared with the first's node by node (same.c): operator,
 *            literals, the leaf of the same name, the place in a collective. One rank that deviates
 *            and there is no role.
 *   place    of every node it is shown how the ranks' values are one tensor (place.c), by a rule of
 *            two parts of any number of ranks, A and B, which the oracle proves (claim.c):
 *            op(cat(x, y)) = cat(op(x), op(y)), or = op(x) + op(y). From one rank to any number is
 *            induction: the rule takes the claim of A ranks and of B ranks to that of A + B.
 *   whole    the operators on these tensors (whole.c). Collectives of all ranks are gone: a sum of
 *            summands is the tensor itself, and so are parts that are gathered.
 *   replay   every rank's own nodes are run (replay.c), on the captured leaves and on drawn ones,
 *            and each place is held against the new graph's. Where a run
 *            disagrees, the ranks are not one.
 *
 * Where the ranks are several groups, of which each does something else among its members, they
 * become one in turns: a group's members are a rank of the next graph each. So data over tensor
 * parallel is first the tensor parallel ranks on the whole batch, and then one rank.
 *
 * Where a step cannot be shown, the graph stays as it is, and `why` names the step. */
#ifndef CAPTURE_ROLES_ROLES_H
#define CAPTURE_ROLES_ROLES_H

#include "capture/capture.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct roles_rule {
  size_t index; /* in `rules` */
  rule_verdict verdict;
  size_t uses;
} roles_rule;

typedef struct roles_parts { /* an output of the new graph that ranks hold parts of */
  const char *output, *said; /* said: in words, the ranks' tensors that make it up */
} roles_parts;

typedef struct roles_result {
  size_t n_ranks;  /* that were decided once; 0: none, the graph is as it was */
  size_t left;     /* ranks that the graph has now */
  const char *why; /* where n_ranks is 0: the step that was not shown. NULL: the capture is not of
                      several ranks */
  rule_set *rules; /* the rules that the oracle was asked; NULL: none */
  const roles_rule *rule; /* the rules that the argument uses */
  size_t n_rules;
  const roles_parts *parts;
  size_t n_parts;
  const char *const *note; /* how leaves are read, in words */
  size_t n_notes;
  iso_arena arena; /* private */
} roles_result;

typedef struct roles_asked {
  const cap_graph *whole; /* the other graph: a leaf of its shape is the same on all ranks */
  const rule_oracle *oracle;
  size_t least;  /* with fewer ranks nothing is done */
  bool parts;    /* outputs may be held in parts */
  uint64_t seed; /* of the leaves that the ranks are run on beside the captured ones */
} roles_asked;

/* How many ranks a graph has leaves of; 0: its leaves are of no rank. */
size_t roles_count(const cap_graph *g);
/* Makes the ranks of `g` one, where that is shown. Of a graph that is each rank's
 * (cap_options.keep_role) no copy is made for a rank, and where they are not one it stays that of a
 * rank, which alone says nothing. Owns: roles_free, whatever is returned. Errors:
 * ISO_NOMEM, and errors of the oracle. */
ISO_MUST_USE iso_code roles_fold(cap_graph *g, const roles_asked *q, roles_result *out,
                                 iso_error *err);
void roles_free(roles_result *r);

#ifdef __cplusplus
}
#endif
#endif
