/* Findings of `isomer lint` as text, as JSON and for other programs; and which of them are known.
 */
#ifndef CLI_REPORT_LINT_REPORT_H
#define CLI_REPORT_LINT_REPORT_H

#include <stdio.h>

#include "egraph/base/arena.h"
#include "lint/lint.h"

typedef struct lint_known {
  const char **reason; /* of each finding: why it is accepted, NULL where it is new */
  size_t n_known, n_stale;
  const char **stale;
  iso_arena arena;
} lint_known;

typedef struct lint_view {
  const lint_report *r;
  const char *path;        /* of the first input */
  const lint_known *known; /* NULL: none was given */
  bool strict, quiet;
} lint_view;

/* Match findings with the entries of a baseline (docs/reports.md). Owns: lint_known_free, also
 * after an error. Errors: ISO_IO, ISO_FORMAT, ISO_NOMEM. */
ISO_MUST_USE iso_code lint_known_load(const char *path, const lint_report *r, lint_known *out,
                                      iso_error *err);
void lint_known_free(lint_known *k);

/* Findings that count and are not known; with `strict` warnings count. */
size_t lint_view_open(const lint_view *v);
/* The last line is `isomer: CLEAN`, `isomer: FINDINGS n: ...` or `isomer: UNDECIDED: why`. */
void lint_put_text(const lint_view *v, FILE *f);
void lint_put_github(const lint_view *v, FILE *f);
/* Owns: malloc'ed. Returns: NULL when there is no memory. */
char *lint_to_json(const lint_view *v);
char *lint_to_sarif(const lint_view *v);
char *lint_to_junit(const lint_view *v);
/* The page: findings, timelines, the circle of a hang, placements (lint_html.c). */
char *lint_to_html(const lint_view *v);

#endif
