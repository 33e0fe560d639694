/* The result of isomer check, as text and as JSON. */
#ifndef CLI_REPORT_CHECK_REPORT_H
#define CLI_REPORT_CHECK_REPORT_H

#include <stdint.h>
#include <stdio.h>

#include "check/check.h"

/* Prints how each rule was shown, which steps use it, and the assumptions that the equality rests
 * on. `seed`: of the samples, as the user gave it. */
void check_report_text(const chk_report *r, uint64_t seed, FILE *f);
/* "B >= 2, 2 <= T <= 4096": the sizes for which the chain was replayed. Requires: r->symbol.
 * Returns: NULL when there is no memory. */
const char *check_report_scope(const chk_report *r, iso_arena *a);
/* The same and the outcome (docs/certificate.md). Owns: malloc'ed; NULL when there is no memory. */
char *check_report_json(const chk_report *r);

#endif
