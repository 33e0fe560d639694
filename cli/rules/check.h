/* Rules decided by worker processes. */
#ifndef CLI_RULES_CHECK_H
#define CLI_RULES_CHECK_H

#include <jansson.h>

#include "validate/validate.h"

typedef struct rules_job {
  const char *file;
  const rule *r;
} rules_job;

typedef struct rules_how {
  size_t workers;          /* processes that load libtorch on their own */
  double limit_s;          /* a backstop per rule */
  const char *obligations; /* NULL, or a folder for the obligations of proved rules */
  const val_options *o;
} rules_how;

/* Decides each rule. An operator that crashes or hangs makes only its own rule `unknown`. Returns:
 * in `out` one entry (report.h) per job, in the order of the jobs, whatever the number of workers;
 * with the names of its obligations. Owns: the caller decrefs. */
ISO_MUST_USE iso_code rules_check(const rules_job *job, size_t n, const rules_how *how,
                                  json_t **out, iso_error *err);

#endif
