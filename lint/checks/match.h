/* Messages that lack their other side. */
#ifndef LINT_MATCH_H
#define LINT_MATCH_H

#include "lint/check.h"

typedef struct lint_lost {
  lint_at at;
  uint32_t src, dst, group; /* procs and group instance of its channel */
  int32_t tag;
  bool told;
} lint_lost;

/* Findings about them; two that one change joins are one finding. */
ISO_MUST_USE iso_code lint_report_lost(lint_check *c, lint_lost *lost, size_t n);

#endif
