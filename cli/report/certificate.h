/* A comparison's certificate as JSON (docs/certificate.md). */
#ifndef CLI_REPORT_CERTIFICATE_H
#define CLI_REPORT_CERTIFICATE_H

#include "capture/capture.h"
#include "synth/synth.h"

/* `relations`: lines about outputs that were inferred. `from`: with what the captures were loaded.
 * Requires: r->certificate is there. Owns: malloc'ed text. Errors: ISO_IO for a file of a capture;
 * ISO_UNSUPPORTED, with the reason, where this chain cannot be certified; ISO_NOMEM. */
ISO_MUST_USE iso_code certificate_text(const synth_result *r, const cap_graph *left,
                                       const cap_graph *right, const cap_options *from,
                                       const char *relations, char **out, iso_error *err);

#endif
