/* Known divergences, accepted with a reason (docs/reports.md). */
#ifndef CLI_REPORT_BASELINE_H
#define CLI_REPORT_BASELINE_H

#include <jansson.h>

#include "capture/capture.h"
#include "synth/synth.h"

typedef struct baseline {
  size_t n;                 /* divergences of the result */
  const char **reason;      /* of each: why it is accepted, NULL where it is new */
  size_t n_new, n_stale;    /* new divergences; entries that match none */
  const char *const *stale; /* "left / right" */
  iso_arena arena;          /* private */
} baseline;

/* The document of a baseline, and its list `key`. Owns: json_decref of `doc`.
 * Errors: ISO_IO, ISO_FORMAT. */
ISO_MUST_USE iso_code baseline_read(const char *path, const char *key, json_t **doc, json_t **list,
                                    iso_error *err);
/* Match a result's divergences with the entries of `path`. Owns: baseline_free, also after an
 * error. Errors: ISO_IO, ISO_FORMAT with the file and the entry; ISO_NOMEM. */
ISO_MUST_USE iso_code baseline_load(const char *path, const synth_result *r, const cap_graph *left,
                                    const cap_graph *right, baseline *out, iso_error *err);
void baseline_free(baseline *b);
/* DIFFERENT, and every divergence is accepted. */
bool baseline_accepts(const baseline *b, const synth_result *r);

#endif
