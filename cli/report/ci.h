/* Reports for other programs than our own: code scanning, test runners, viewers. */
#ifndef CLI_REPORT_CI_H
#define CLI_REPORT_CI_H

#include "cli/report/report.h"

/* SARIF 2.1.0: one result for each divergence. Owns: malloc'ed; NULL when there is no memory. */
char *report_sarif(const report *p);
/* JUnit's XML: one test case for each output. Owns: malloc'ed; NULL when there is no memory. */
char *report_junit(const report *p);
/* GitHub's workflow commands, a line for each divergence. */
void report_github(const report *p, FILE *f);
/* Model Explorer's files into folder `dir`: left.json, right.json, their node data, and sync.json.
 * The folder is made where it is missing. */
ISO_MUST_USE iso_code report_model_explorer(const report *p, const char *dir, iso_error *err);

#endif
