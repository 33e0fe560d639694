/* Rounding of both sides (localise/rounding/), in reports. */
#ifndef CLI_REPORT_ROUNDING_H
#define CLI_REPORT_ROUNDING_H

#include <jansson.h>

#include "cli/report/report.h"

/* Says the conclusion in one line where it was asked for. */
void report_rounding_line(const report *p, FILE *f);
/* Figures, losses, and how errors grow along the layers. */
void report_rounding_text(const report *p, FILE *f);
/* Adds `rounding`, `rounding_curve` and `rounding_conclusion`: empty and null where it was not
 * asked for. */
void report_rounding_json(const report *p, json_t *doc);

#endif
