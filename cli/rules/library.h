/* Rule libraries: made small, characterised, and written for other tools. */
#ifndef CLI_RULES_LIBRARY_H
#define CLI_RULES_LIBRARY_H

#include <jansson.h>
#include <stdio.h>

#include "validate/validate.h"

/* Which rules follow from those that stay: larger rules are tried first, and of equal ones the
 * later in the set. A rule goes where its two sides meet in an e-graph that the others grow
 * (synth_follows), on three instances whose sizes differ; only rules with evidence at least as
 * strong take part. Owns: the caller decrefs *report, {"kept": [name], "dropped": [{"name", "from":
 * [name]}], "without_instance": [name]}, and frees *drop (by rule). Errors: ISO_FORMAT where a rule
 * joined two values that differ: it does not hold. */
ISO_MUST_USE iso_code rules_minimize(const rule_set *set, const val_options *o, bool given,
                                     bool **drop, json_t **report, iso_error *err);

/* Statistics of a set: counts, families, evidence; with reports of comparisons (compare --json)
 * also instances, distinct rules and which of them models share. Owns: the caller decrefs. */
ISO_MUST_USE iso_code rules_stats(rule_set *const *set, size_t n_sets, const char *const *path,
                                  size_t n_reports, json_t **out, iso_error *err);
void rules_stats_text(FILE *f, const json_t *stats);

/* The rules for another tool, one of rules_targets. Rules that a target cannot express are left
 * out, and are listed in `*refused`, {"name": reason}, and in a comment of the text. `unchecked`:
 * nobody has proved them, which the text says. Owns: the caller frees *text and decrefs *refused.
 * Errors: ISO_USAGE for a target that is not there; ISO_NOMEM. */
ISO_MUST_USE iso_code rules_export(const rule_set *set, const char *target, bool unchecked,
                                   char **text, json_t **refused, iso_error *err);
bool rules_is_target(const char *name);
extern const char rules_targets[]; /* "egg, egglog, ..." */

#endif
