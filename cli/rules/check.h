/* Rules decided by worker processes. */
#ifndef CLI_RULES_CHECK_H
#define CLI_RULES_CHECK_H

#include <jansson.h>

#include "validate/validate.h"

typedef struct rules_job {
  const char *file;
  const rule *r;
} rules_job;

/* Decide each rule, by `workers` processes that load libtorch on their own: what crashes or hangs
 * in an operator is one rule's `unknown`. Returns: in `out` one entry (report.h) per job, in the
 * order of the jobs, whatever the number of workers. `limit_s`: a backstop per rule.
 * `certificates`: NULL, or a folder for the obligations of what is proved; their names are in the
 * entry. Owns: the caller decrefs. */
ISO_MUST_USE iso_code rules_check(const rules_job *job, size_t n, size_t workers, double limit_s,
                                  const char *certificates, const val_options *o, json_t **out,
                                  iso_error *err);

#endif
