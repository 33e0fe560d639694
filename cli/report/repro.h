/* A divergence as a PyTorch script that runs alone, and the inputs that show it as a file. */
#ifndef CLI_REPORT_REPRO_H
#define CLI_REPORT_REPRO_H

#include "cli/report/report.h"

/* The script: both regions of the first divergence as functions, the values that they read (drawn
 * from a seed where they are large), the difference of their results printed; exit status 1 while
 * there is one, 0 once it is mended. Returns: malloc'ed text, NULL when there is no memory.
 * Requires: p->r->cut. */
char *repro_script(const report *p);

/* The leaves that show the difference, as safetensors: "left.NAME" and "right.NAME" for every
 * input, and for every parameter that does not have its captured value; in their captured dtypes
 * where these hold the values. Errors: ISO_IO, ISO_NOMEM. */
ISO_MUST_USE iso_code repro_inputs(const report *p, const char *path, iso_error *err);

#endif
