/* Shared by the files about collectives. */
#ifndef LINT_COLLECTIVE_H
#define LINT_COLLECTIVE_H

#include "lint/check.h"

typedef struct lint_collective_lost_item {
  lint_at at;    /* the collective */
  uint32_t proc; /* who lacks it, or who has it alone */
  bool missing, told;
  bool outside; /* in a group of others */
} lint_collective_lost_item;

typedef struct lint_collective_lost {
  lint_check *c;
  lint_collective_lost_item *item;
  size_t n, cap;
} lint_collective_lost;

/* The kind of misfit that keeps two from being the same collective. Returns: LINT_KINDS where there
 * is none. */
lint_kind lint_collective_misfit(const lint_trace *t, lint_at s, lint_at r);

/* A fault in the sizes, the splits or the root of one member by itself. Returns: NULL where
 * nothing is. */
const char *lint_own_fault(const lint_trace *t, const lint_group *g, lint_at at, lint_kind *kind);
/* Proc `proc` lacks `at`, or has it alone. */
ISO_MUST_USE iso_code lint_collective_lose(lint_collective_lost *l, lint_at at, uint32_t proc,
                                           bool missing);
/* Reports the calls that lost their collective: one that turns up in another group is one
 * finding. */
ISO_MUST_USE iso_code lint_collective_report(lint_collective_lost *l);
/* Sizes of one meeting: inputs against results, splits against splits, the root. */
ISO_MUST_USE iso_code lint_check_sizes(lint_check *c, const lint_group *g, const lint_at *at,
                                       size_t n);

#endif
