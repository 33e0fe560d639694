/* Files that a command is asked to write. */
#ifndef CLI_REPORT_TARGETS_H
#define CLI_REPORT_TARGETS_H

#include <stddef.h>

#include "egraph/base/error.h"

/* Whether each of `n` files (NULL: not asked for; "-": standard output) can be written when the
 * work is done, and none of them is another one: looked at before, since the work may take hours.
 * Nothing is created. Errors: ISO_USAGE with the file and why. */
ISO_MUST_USE iso_code targets_check(const char *const *path, size_t n, iso_error *err);

#endif
