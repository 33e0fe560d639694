/* The result of a comparison, as text and as JSON (version 1, docs/architecture.md section 4). */
#ifndef CLI_REPORT_REPORT_H
#define CLI_REPORT_REPORT_H

#include <stdio.h>

#include "capture/capture.h"
#include "cli/report/baseline.h"
#include "cli/report/looked.h"
#include "cli/report/obligations.h"
#include "cli/report/refinement.h"
#include "localise/rounding/rounding.h"
#include "synth/synth.h"

typedef struct report {
  const cap_graph *left, *right;
  const synth_result *r;
  rule_schemas *schemas;
  uint64_t seed;
  const obligations *obligations; /* NULL, or not asked for: nothing is said of them */
  const refinement *refinement;   /* NULL: nothing was inferred */
  const looked *looked;           /* at other sizes; NULL: nothing is known of them */
  const baseline *known;          /* NULL: none was given */
  const rounding *rounding;       /* NULL: it was not asked for */
  double load, total;             /* seconds */
  bool verbose, explain, quiet;
  bool colour;
  bool same_graph;                    /* of both sides, so that only leaves could differ */
  bool pinned;                        /* parameters kept their captured values */
  size_t n_roles;                     /* ranks of the right side that were decided once */
  bool no_stats;                      /* no figures that differ from run to run: `stats` is null */
  const char *counterexample, *repro; /* files that were written, or NULL */
} report;

/* Reports of `n` pairs of captures of the same models, of which `decides` has everything's verdict.
 * Text for people; its last line is `isomer: VERDICT ...`. */
void report_text(const report *p, size_t n, size_t decides, FILE *f);
/* The JSON report as one malloc'ed string; NULL when there is no memory. With several pairs it is
 * the deciding one's, and `pairs` has all of them. */
char *report_json(const report *p, size_t n, size_t decides);
/* FILE.word.json for FILE.json. Owns: the caller frees; NULL when there is no memory. */
char *report_beside(const char *path, const char *word);
/* Write text to `path` through a temporary file beside it, or to stdout for "-". */
ISO_MUST_USE iso_code report_write(const char *path, const char *text, iso_error *err);

#endif
