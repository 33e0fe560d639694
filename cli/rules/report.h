/* Findings about rules as JSON, text and Python. */
#ifndef CLI_RULES_REPORT_H
#define CLI_RULES_REPORT_H

#include <jansson.h>
#include <stdio.h>

#include "validate/validate.h"

/* One entry of `rules check --json`: name, status, scope, method, float, counterexample, reason and
 * assumptions. Returns: NULL when there is no memory. */
json_t *rules_finding_json(const char *file, const rule *r, const val_finding *f,
                           rule_schemas *schemas);
/* The facts that a proof rests on (RULE_RESTS_*), as a list of words, and back. */
json_t *rules_rests_json(unsigned rests_on);
unsigned rules_rests_read(const json_t *words);
/* An entry for a rule that could not be decided. */
json_t *rules_failure_json(const char *file, const rule *r, const char *reason);
/* A line or a few for people. */
void rules_entry_text(FILE *f, const json_t *entry, bool verbose);
/* Python that runs both sides of a counterexample in PyTorch and shows the difference. Owns:
 * malloc'ed; NULL when there is no memory. */
char *rules_python(const rule *r, const val_counterexample *w, rule_schemas *schemas);

#endif
