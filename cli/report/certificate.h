/* A comparison's certificate as JSON (docs/certificate.md). */
#ifndef CLI_REPORT_CERTIFICATE_H
#define CLI_REPORT_CERTIFICATE_H

#include "capture/capture.h"
#include "synth/synth.h"

/* How the captures became the graphs that were compared. */
typedef struct certificate_of {
  const cap_options *from; /* with which the captures were loaded */
  const char *relations;   /* lines about outputs that were inferred */
  bool pinned;             /* parameters are constants */
  bool unrun;              /* nothing was run */
  size_t n_ranks;          /* of the right side, which were decided once; 0: none were */
} certificate_of;
/* Requires: r->certificate is there. Owns: malloc'ed text. Errors: ISO_IO for a file of a capture;
 * ISO_UNSUPPORTED, with the reason, where this chain cannot be certified; ISO_NOMEM. */
ISO_MUST_USE iso_code certificate_text(const synth_result *r, const cap_graph *left,
                                       const cap_graph *right, const certificate_of *of, char **out,
                                       iso_error *err);

#endif
